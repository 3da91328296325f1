//! Where the ticks of an axis stand and what they say.

use crate::domain::SimDuration;

/// The ticks of a value axis that begins at zero.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ValueAxis {
    /// The value at the top.
    pub top: f64,
    /// Value and label of each tick.
    pub ticks: Vec<(f64, String)>,
}

/// Ticks at multiples of 1, 2 or 5 times a power of ten, at most five above zero; whole numbers where only those occur.
pub(super) fn value_axis(max: f64, whole: bool) -> ValueAxis {
    let max = if max.is_finite() && max > 0.0 { max.min(1e15) } else { 1.0 };
    let mut power = if whole { 0_i32 } else { -9 };
    loop {
        for factor in [1.0, 2.0, 5.0] {
            // Multiplying and dividing by exact powers keeps 0.3 from becoming 0.30000000000000004.
            let at = |n: u32| {
                let multiple = f64::from(n) * factor;
                if power < 0 { multiple / ten_to(-power) } else { multiple * ten_to(power) }
            };
            if at(5) >= max {
                let count = (1..=5).find(|&n| at(n) >= max).unwrap_or(5);
                let decimals = usize::try_from(-power).unwrap_or(0);
                let ticks = (0..=count).map(|n| (at(n), format!("{:.decimals$}", at(n)))).collect();
                return ValueAxis { top: at(count), ticks };
            }
        }
        power += 1;
    }
}

fn ten_to(power: i32) -> f64 {
    (0..power).fold(1.0, |product, _| product * 10.0)
}

/// The ticks of a time axis from zero to `duration`: position and label, at most nine.
pub(super) fn time_ticks(duration: SimDuration) -> Vec<(SimDuration, String)> {
    const STEPS_SECONDS: [i64; 24] = [
        1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800,
        604_800, 1_209_600, 2_592_000, 7_776_000, 31_536_000,
    ];
    let fits = |step: &&i64| duration.as_secs() / **step <= 8;
    let step = STEPS_SECONDS.iter().find(fits).copied().unwrap_or_else(|| duration.as_secs() / 8 + 1);
    (0..=duration.as_secs() / step)
        .map(|n| {
            let at = SimDuration::from_secs(n * step);
            (at, at.to_string())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{time_ticks, value_axis};
    use crate::domain::SimDuration;

    fn labels(max: f64, whole: bool) -> Vec<String> {
        value_axis(max, whole).ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn value_ticks_are_round_and_reach_the_maximum() {
        assert_eq!(labels(7.0, true), ["0", "2", "4", "6", "8"]);
        assert_eq!(labels(1.0, true), ["0", "1"]);
        assert_eq!(labels(0.27, false), ["0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(labels(1_234.0, false), ["0", "500", "1000", "1500"]);
        assert_eq!(labels(f64::NAN, false), labels(1.0, false));
        assert!(value_axis(1e300, false).top >= 1e15);
    }

    #[test]
    fn time_axis_has_at_most_nine_ticks() {
        for seconds in [0, 1, 59, 3_600, 86_400, 1_000_000, 300_000_000, 9_000_000_000] {
            let ticks = time_ticks(SimDuration::from_secs(seconds));
            assert!(!ticks.is_empty() && ticks.len() <= 9, "{seconds}: {ticks:?}");
            assert!(ticks.iter().all(|(at, _)| at.as_secs() <= seconds));
        }
        let hour: Vec<String> = time_ticks(SimDuration::from_secs(3_600)).into_iter().map(|tick| tick.1).collect();
        assert_eq!(hour, ["0s", "10m", "20m", "30m", "40m", "50m", "1h"]);
    }
}

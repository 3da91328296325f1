//! How long things live, whatever the distribution: Kaplan and Meier's estimate.

use super::Z;

/// One life, in hours.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lifetime {
    /// Its age when it was first seen.
    pub from: f64,
    /// Its age at its end, or when it was last seen.
    pub until: f64,
    /// Whether it ended by the event in question.
    pub event: bool,
}

/// The share that is still there at an age, with its 95 % interval by Greenwood's formula on the scale of log(-log).
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct Survival {
    /// The age in hours.
    pub hours: f64,
    /// The share.
    pub share: f64,
    /// The interval; `None` where nothing has happened yet, or nothing is left.
    pub interval: Option<(f64, f64)>,
    /// Lives that were seen at that age.
    pub at_risk: usize,
}

/// Survival at these ages.
pub fn survival(lives: &[Lifetime], ages: &[f64]) -> Vec<Survival> {
    let mut events: Vec<f64> = lives.iter().filter(|life| life.event).map(|life| life.until).collect();
    events.sort_by(f64::total_cmp);
    events.dedup();
    ages.iter().map(|&age| at(lives, &events, age)).collect()
}

fn at(lives: &[Lifetime], events: &[f64], age: f64) -> Survival {
    let (mut share, mut greenwood) = (1.0, 0.0);
    for &event in events.iter().take_while(|event| **event <= age) {
        let at_risk = lives.iter().filter(|life| life.from < event && life.until >= event).count() as f64;
        let ended = lives.iter().filter(|life| life.event && life.until.total_cmp(&event).is_eq()).count() as f64;
        if at_risk > 0.0 {
            share *= 1.0 - ended / at_risk;
            greenwood += ended / (at_risk * (at_risk - ended));
        }
    }
    let seen = lives.iter().filter(|life| life.from <= age && life.until >= age).count();
    let interval = (share > 0.0 && share < 1.0).then(|| {
        let log = libm::log(share);
        let error = Z * libm::sqrt(greenwood) / log.abs();
        (libm::exp(log * libm::exp(error)), libm::exp(log * libm::exp(-error)))
    });
    Survival { hours: age, share, interval, at_risk: seen }
}

#[cfg(test)]
mod tests {
    use super::{Lifetime, survival};

    #[test]
    fn other_departures_censor_survival_times() {
        let life = |until, event| Lifetime { from: 0.0, until, event };
        let lives = [life(1.0, true), life(2.0, false), life(3.0, true), life(4.0, false)];
        let shares: Vec<f64> = survival(&lives, &[0.5, 1.0, 3.0]).iter().map(|at| at.share).collect();
        assert_eq!(shares.iter().map(|share| (share * 1_000.0).round() as i64).collect::<Vec<_>>(), [1_000, 750, 375]);
        let wide = survival(&lives, &[1.0])[0].interval.unwrap();
        assert!(wide.0 < 0.75 && wide.1 > 0.75);
        assert_eq!(survival(&lives, &[0.5])[0].interval, None);
    }
}

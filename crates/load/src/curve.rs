//! Rates of arrival over time: piecewise constant curves and what can be done to them.
//!
//! Every load that does not depend on the answers becomes a [`Curve`], so that between two of its steps nothing changes and
//! a simulation needs no time step of its own.
//!
//! What must not live here: files and keys (`scenario`), and what arriving requests do (`load::model`).

use nodecast_engine::Stream;
use nodecast_model::domain::SimDuration;

/// From `from` on, counted from the load's start, requests arrive at `rate` per second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CurveStep {
    /// When; below zero after a shift to an earlier time.
    pub from: SimDuration,
    /// Requests per second, finite and at least 0.
    pub rate: f64,
}

/// A rate over time, piecewise constant: zero before the first step, and after the last step its rate for ever.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Curve {
    /// In order of time, no two at one instant.
    steps: Vec<CurveStep>,
}

/// By how much demand may differ from what was foreseen.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Uncertainty {
    /// Standard deviation of the logarithm of one factor on the whole curve; the factor's mean is 1.
    pub factor: f64,
    /// Standard deviation of the logarithm of a factor that is drawn anew for every stretch; its mean is 1.
    pub noise: f64,
    /// Length of such a stretch.
    pub noise_every: SimDuration,
}

/// A mean month of the Gregorian calendar: a twelfth of 365.2425 days.
const MONTH_SECONDS: f64 = 2_629_746.0;
/// Growth raises a flat stretch this often.
const GROWTH_STEP: SimDuration = SimDuration::from_secs(86_400);

impl Curve {
    /// The same rate for ever.
    pub fn constant(rate: f64) -> Self {
        Self { steps: vec![CurveStep { from: SimDuration::ZERO, rate }] }
    }

    /// The curve of these steps, which must be in order of time.
    pub fn from_steps(steps: Vec<CurveStep>) -> Self {
        debug_assert!(steps.is_sorted_by(|a, b| a.from < b.from), "steps come in order of time");
        Self { steps }
    }

    /// A curve whose rate in each stretch of length `every` up to `end` is the value of `mean_rate` for the stretch's begin
    /// and end in seconds; at least 0. After `end` the last rate goes on.
    pub fn sampled(every: SimDuration, end: SimDuration, mean_rate: impl Fn(f64, f64) -> f64) -> Self {
        let every = every.max(SimDuration::RESOLUTION);
        let mut steps = Vec::new();
        let mut from = SimDuration::ZERO;
        while steps.is_empty() || from < end {
            let rate = mean_rate(from.as_secs_f64(), (from + every).as_secs_f64()).max(0.0);
            steps.push(CurveStep { from, rate });
            from += every;
        }
        let mut curve = Self { steps };
        curve.merge_equal();
        curve
    }

    /// The curve of single arrivals at these instants, in order of time: requests per second in stretches of `bin`.
    pub fn of_arrivals(arrivals: &[SimDuration], bin: SimDuration) -> Self {
        let width = bin.as_micros().max(1);
        let cell = |arrival: SimDuration| arrival.as_micros().div_euclid(width);
        let mut steps: Vec<CurveStep> = Vec::new();
        for together in arrivals.chunk_by(|&a, &b| cell(a) == cell(b)) {
            let from =
                together.first().map_or(SimDuration::ZERO, |&first| SimDuration::from_micros(cell(first) * width));
            // The silence after the stretch before ends here, maybe at once.
            steps.pop_if(|silence| silence.from == from);
            steps.push(CurveStep { from, rate: together.len() as f64 / bin.as_secs_f64() });
            steps.push(CurveStep { from: from + bin, rate: 0.0 });
        }
        let mut curve = Self { steps };
        curve.merge_equal();
        curve
    }

    /// The steps in order of time.
    pub fn steps(&self) -> &[CurveStep] {
        &self.steps
    }

    /// The steps that hold from the start on: the first at zero, with the rate that holds there.
    pub fn steps_from_start(&self) -> impl Iterator<Item = CurveStep> + '_ {
        let later = self.steps.partition_point(|step| step.from <= SimDuration::ZERO);
        let before = later.checked_sub(1).and_then(|last| self.steps.get(last));
        let first = CurveStep { from: SimDuration::ZERO, rate: before.map_or(0.0, |step| step.rate) };
        std::iter::once(first).chain(self.steps.iter().skip(later).copied())
    }

    /// Requests that arrive from the start to `end`.
    pub fn requests_until(&self, end: SimDuration) -> f64 {
        let steps: Vec<CurveStep> = self.steps_from_start().take_while(|step| step.from < end).collect();
        let until = steps.iter().skip(1).map(|step| step.from).chain([end]);
        steps.iter().zip(until).map(|(step, until)| step.rate * (until - step.from).as_secs_f64()).sum()
    }

    /// Every rate times `factor`.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        for step in &mut self.steps {
            step.rate *= factor;
        }
        self
    }

    /// The same, later by `delay` (earlier if it is negative).
    #[must_use]
    pub fn shifted(mut self, delay: SimDuration) -> Self {
        for step in &mut self.steps {
            step.from += delay;
        }
        self
    }

    /// The same shape in a shorter time: times divided by `factor`, rates as they are.
    #[must_use]
    pub fn sped_up(mut self, factor: f64) -> Self {
        let mut last = None;
        self.steps.retain_mut(|step| {
            step.from = SimDuration::from_secs_f64(step.from.as_secs_f64() / factor);
            // Steps that fall on one microsecond: the first stands for all of them.
            last.replace(step.from) != Some(step.from)
        });
        self
    }

    /// The stretch from zero to `period`, again and again until `end`, and backwards in time from `begin`.
    #[must_use]
    pub fn repeated(self, period: SimDuration, begin: SimDuration, end: SimDuration) -> Self {
        let once: Vec<CurveStep> = self.steps_from_start().take_while(|step| step.from < period).collect();
        let width = period.as_micros().max(1);
        let first = begin.as_micros().div_euclid(width);
        let last = end.as_micros().div_euclid(width).max(first);
        let round = |number: i64| {
            let start = SimDuration::from_micros(number * width);
            once.iter().map(move |step| CurveStep { from: step.from + start, ..*step })
        };
        let mut curve = Self { steps: (first..=last).flat_map(round).collect() };
        curve.merge_equal();
        curve
    }

    /// Growth by `share` (0.1 for a tenth) every month from the load's start, compounded. Stretches longer than a day are
    /// raised day by day up to `end`.
    #[must_use]
    pub fn growing(self, share: f64, end: SimDuration) -> Self {
        let factor = |from: SimDuration| libm::pow(1.0 + share, from.as_secs_f64() / MONTH_SECONDS);
        let mut steps = Vec::with_capacity(self.steps.len());
        for (position, step) in self.steps.iter().enumerate() {
            let until = self.steps.get(position + 1).map_or(end, |next| next.from);
            let mut from = step.from;
            while from == step.from || from < until {
                steps.push(CurveStep { from, rate: step.rate * factor(from) });
                from += GROWTH_STEP;
            }
        }
        Self { steps }
    }

    /// The rates of all curves added up.
    pub fn sum(curves: &[Self]) -> Self {
        let mut instants: Vec<SimDuration> =
            curves.iter().flat_map(|curve| &curve.steps).map(|step| step.from).collect();
        instants.sort_unstable();
        instants.dedup();
        let mut next = vec![0_usize; curves.len()];
        let mut steps = Vec::with_capacity(instants.len());
        for from in instants {
            let mut rate = 0.0;
            for (curve, next) in curves.iter().zip(&mut next) {
                while curve.steps.get(*next).is_some_and(|step| step.from <= from) {
                    *next += 1;
                }
                rate += next.checked_sub(1).map_or(0.0, |last| curve.steps[last].rate);
            }
            steps.push(CurveStep { from, rate });
        }
        Self { steps }
    }

    /// The demand that came instead of this one: everything times one draw for the whole and one for every stretch up to
    /// `end`. Each draw has the mean 1, so that the expected demand is this curve.
    #[must_use]
    pub fn varied(self, uncertainty: Uncertainty, end: SimDuration, whole: &mut Stream, noise: &mut Stream) -> Self {
        let draw = |stream: &mut Stream, sigma: f64| stream.lognormal(libm::exp(-0.5 * sigma * sigma), sigma);
        let factor = if uncertainty.factor > 0.0 { draw(whole, uncertainty.factor) } else { 1.0 };
        let every = uncertainty.noise_every.max(SimDuration::RESOLUTION);
        if uncertainty.noise <= 0.0 {
            return self.scaled(factor);
        }
        let mut cells = Vec::new();
        let mut from = SimDuration::ZERO;
        while from < end {
            cells.push(CurveStep { from, rate: factor * draw(noise, uncertainty.noise) });
            from += every;
        }
        product(&self, &Self { steps: cells })
    }

    /// Takes out steps that change nothing.
    fn merge_equal(&mut self) {
        let mut before = 0.0_f64;
        let mut first = true;
        self.steps.retain(|step| {
            let news = first || step.rate.to_bits() != before.to_bits();
            (before, first) = (step.rate, false);
            news
        });
        // It stays for the whole run, and was made in room that had grown by doubling.
        self.steps.shrink_to_fit();
    }
}

/// The rates of one curve times those of the other, from the first instant of both on.
fn product(rates: &Curve, factors: &Curve) -> Curve {
    let mut steps = Vec::with_capacity(rates.steps.len() + factors.steps.len());
    let (mut a, mut b) = (0, 0);
    let value = |curve: &Curve, next: usize| next.checked_sub(1).map(|last| curve.steps[last].rate);
    while a < rates.steps.len() || b < factors.steps.len() {
        let upcoming = [rates.steps.get(a), factors.steps.get(b)];
        let Some(from) = upcoming.iter().flatten().map(|step| step.from).min() else { break };
        a += usize::from(rates.steps.get(a).is_some_and(|step| step.from == from));
        b += usize::from(factors.steps.get(b).is_some_and(|step| step.from == from));
        let rate = value(rates, a).unwrap_or(0.0) * value(factors, b).unwrap_or(1.0);
        steps.push(CurveStep { from, rate });
    }
    Curve { steps }
}

#[cfg(test)]
mod tests {
    use super::{Curve, CurveStep, Uncertainty};
    use nodecast_engine::Streams;
    use nodecast_model::domain::SimDuration;

    fn secs(seconds: i64) -> SimDuration {
        SimDuration::from_secs(seconds)
    }

    fn curve(steps: &[(i64, f64)]) -> Curve {
        Curve::from_steps(steps.iter().map(|&(from, rate)| CurveStep { from: secs(from), rate }).collect())
    }

    #[test]
    fn arrivals_keep_their_number_whatever_the_bin() {
        let arrivals: Vec<SimDuration> = [0, 100, 900, 1_000, 5_500, 5_600].map(SimDuration::from_millis).to_vec();
        let seconds = Curve::of_arrivals(&arrivals, secs(1));
        assert_eq!(seconds, curve(&[(0, 3.0), (1, 1.0), (2, 0.0), (5, 2.0), (6, 0.0)]));
        assert!((Curve::of_arrivals(&arrivals, secs(4)).requests_until(secs(60)) - 6.0).abs() < 1e-9);
    }

    #[test]
    fn a_sum_holds_at_every_instant() {
        let sum = Curve::sum(&[curve(&[(0, 1.0), (10, 3.0)]), curve(&[(5, 10.0)])]);
        assert_eq!(sum, curve(&[(0, 1.0), (5, 11.0), (10, 13.0)]));
        assert!((sum.requests_until(secs(20)) - (5.0 + 55.0 + 130.0)).abs() < 1e-9);
    }

    #[test]
    fn shifted_repeating_curve_is_already_running_at_start() {
        let day = curve(&[(0, 1.0), (12, 2.0)]).repeated(secs(24), secs(-6), secs(48)).shifted(secs(6));
        let first: Vec<_> = day.steps_from_start().take(3).map(|step| (step.from.as_secs(), step.rate)).collect();
        assert_eq!(first, [(0, 2.0), (6, 1.0), (18, 2.0)]);
    }

    #[test]
    fn growth_compounds_by_the_month() {
        let grown = Curve::constant(100.0).growing(0.1, secs(2_629_746 * 12 + 1));
        let last = grown.steps().last().unwrap();
        assert!((last.rate - 100.0 * libm::pow(1.1, 12.0)).abs() < 1.0, "{last:?}");
        assert!(grown.steps().len() > 360);
    }

    #[test]
    fn speedup_shortens_curve_and_keeps_rates() {
        assert_eq!(curve(&[(0, 1.0), (60, 2.0)]).sped_up(4.0), curve(&[(0, 1.0), (15, 2.0)]));
    }

    #[test]
    fn varied_demand_has_the_curve_as_its_mean() {
        let uncertainty = Uncertainty { factor: 0.3, noise: 0.2, noise_every: secs(60) };
        let (mut sum, mut squares) = (0.0, 0.0);
        for seed in 0..2_000 {
            let streams = Streams::new(seed);
            let (mut whole, mut noise) = (streams.stream("a", ""), streams.stream("b", ""));
            let varied = Curve::constant(10.0).varied(uncertainty, secs(600), &mut whole, &mut noise);
            let mean = varied.requests_until(secs(600)) / 600.0;
            sum += mean;
            squares += mean * mean;
        }
        let mean = sum / 2_000.0;
        let deviation = libm::sqrt(squares / 2_000.0 - mean * mean);
        assert!((mean - 10.0).abs() < 4.0 * deviation / libm::sqrt(2_000.0), "{mean}");
        assert!((2.8..3.6).contains(&deviation), "{deviation}");
    }
}

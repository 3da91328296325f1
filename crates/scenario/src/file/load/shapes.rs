//! Rates by formula: steps, ramps, waves, days, bursts.

use super::super::{Reading, ScenarioError};
use super::{check_count, check_count_over};
use crate::domain::SimDuration;
use crate::reader::Fields;
use crate::schema::rates::{Burst, Diurnal, Ramp, Sine};
use crate::tree::Location;
use nodecast_load::{Curve, CurveStep};

/// A slope or a wave is cut into so many steps.
const STEPS_OF_A_SHAPE: i64 = 100;
const HOUR: f64 = 3_600.0;

/// From one rate to another in a straight line, then on at the last rate.
pub(crate) fn ramp(reading: &mut Reading<'_, '_>, fields: Fields<'_, '_>, ramp: Ramp) -> Result<Curve, ScenarioError> {
    let Ramp { from, to, over, every } = ramp;
    let every = every.unwrap_or_else(|| part_of(over));
    check_count_over(reading, place(fields, &["every", "over"]), over, every, 1)?;
    let seconds = over.as_secs_f64();
    let slope =
        Curve::sampled(every, over, |begin, end| from + (to - from) * (begin + end.min(seconds)) / 2.0 / seconds);
    let mut steps = slope.steps().to_vec();
    steps.retain(|step| step.from < over);
    steps.push(CurveStep { from: over, rate: to });
    Ok(Curve::from_steps(steps))
}

/// A wave around a mean, which it crosses upwards at the load's start; where it would be negative, 0.
pub(crate) fn sine(reading: &mut Reading<'_, '_>, fields: Fields<'_, '_>, sine: Sine) -> Result<Curve, ScenarioError> {
    let Sine { mean, amplitude, period, every } = sine;
    let every = every.unwrap_or_else(|| part_of(period));
    check_count(reading, place(fields, &["every", "period"]), every, 1)?;
    let turn = 2.0 * std::f64::consts::PI / period.as_secs_f64();
    Ok(Curve::sampled(every, reading.span.length, |begin, end| {
        mean + amplitude * (libm::cos(turn * begin) - libm::cos(turn * end)) / (turn * (end - begin))
    }))
}

/// A day after the other: `night` and `peak` are the lowest and highest rate, twelve hours apart, with a cosine between
/// them; Saturdays and Sundays times `weekend`. The hours are those of `time_zone`, UTC unless given.
pub(crate) fn diurnal(
    reading: &mut Reading<'_, '_>,
    fields: Fields<'_, '_>,
    diurnal: Diurnal,
) -> Result<Curve, ScenarioError> {
    let Diurnal { night, peak, weekend, time_zone, every, .. } = diurnal;
    let peak_at = diurnal.peak_at.as_secs_f64() / HOUR;
    check_count(reading, place(fields, &["every"]), every, 1)?;
    let span = reading.span;
    Ok(Curve::sampled(every, span.length, |begin, end| {
        let middle = SimDuration::from_secs_f64((begin + end) / 2.0);
        let local = time_zone.to_datetime(span.clock + jiff::SignedDuration::from_micros(middle.as_micros()));
        let hour = f64::from(local.hour()) + f64::from(local.minute()) / 60.0 + f64::from(local.second()) / HOUR;
        let busy = 0.5 + 0.5 * libm::cos(2.0 * std::f64::consts::PI * (hour - peak_at) / 24.0);
        let rate = night + (peak - night) * busy;
        let rests = matches!(local.weekday(), jiff::civil::Weekday::Saturday | jiff::civil::Weekday::Sunday);
        if rests { rate * weekend } else { rate }
    }))
}

/// A base rate, and every so often a higher one for a while; the first burst comes after `first`, at once unless given.
pub(crate) fn burst(
    reading: &mut Reading<'_, '_>,
    fields: Fields<'_, '_>,
    burst: Burst,
) -> Result<Curve, ScenarioError> {
    let Burst { base, peak, every, length: (length, at), first: mut from } = burst;
    if length >= every {
        return Err(reading
            .error(at, format!("a burst of {length} every {every} never ends"))
            .because("not shorter than `every`")
            .help("write a shorter `for`, or a `constant` rate"));
    }
    check_count(reading, place(fields, &["every"]), every, 2)?;
    let mut steps = Vec::new();
    if from > SimDuration::ZERO {
        steps.push(CurveStep { from: SimDuration::ZERO, rate: base });
    }
    while steps.is_empty() || from < reading.span.length {
        steps.push(CurveStep { from, rate: peak });
        steps.push(CurveStep { from: from + length, rate: base });
        from += every;
    }
    Ok(Curve::from_steps(steps))
}

/// Where the first of these keys stands that is given, or the map.
fn place(fields: Fields<'_, '_>, keys: &[&'static str]) -> Location {
    keys.iter().find_map(|key| fields.get(key)).map_or(fields.at, |node| node.at)
}

/// A hundredth of a span, in whole seconds, at least one.
fn part_of(span: SimDuration) -> SimDuration {
    SimDuration::from_secs((span.as_secs() / STEPS_OF_A_SHAPE).max(1))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::LoadSpan;
    use crate::catalog::Catalog;
    use crate::domain::SimDuration;
    use crate::file::{Files, Reading};
    use crate::reader::Reader;
    use crate::schema::kind::Kind;
    use crate::schema::rates::{Burst, Diurnal, Ramp, Sine};
    use crate::tree::{self, Variables};
    use crate::{Limits, ScenarioError, Source};
    use nodecast_load::Curve;

    fn read<K: Kind<Value = Curve>>(text: &str) -> Result<Curve, ScenarioError> {
        let (source, limits) = (Source::new("a.yaml", text), Limits::default());
        let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
        let documents = tree::parse(&source, &Variables::new(), &limits)?;
        let files = Files::new(PathBuf::new(), Variables::new(), &limits, &region);
        let mut reading = Reading::new(Reader::new(Some(&source)), files);
        // A Friday.
        let clock = "2026-07-10T00:00:00Z".parse().unwrap();
        reading.span = LoadSpan { clock, length: SimDuration::from_secs(3 * 86_400) };
        K::read(&mut reading, &documents[0], "requests")
    }

    fn rate_at(curve: &Curve, seconds: i64) -> f64 {
        let next = curve.steps().partition_point(|step| step.from.as_secs() <= seconds);
        curve.steps()[next - 1].rate
    }

    #[test]
    fn ramp_has_mean_and_ends_at_last_rate() {
        let curve = read::<Ramp>("{ from: 10, to: 30, over: 10m }").unwrap();
        assert!((curve.requests_until(SimDuration::from_secs(600)) - 12_000.0).abs() < 1e-6);
        assert!((rate_at(&curve, 600) - 30.0).abs() < 1e-12);
        // A last step that is cut short keeps the mean too.
        let curve = read::<Ramp>("{ to: 30, over: 10s, every: 3s }").unwrap();
        assert!((curve.requests_until(SimDuration::from_secs(10)) - 150.0).abs() < 1e-9);
    }

    #[test]
    fn sine_starts_at_mean_and_stays_nonnegative() {
        let curve = read::<Sine>("{ mean: 10, amplitude: 20, period: 1h }").unwrap();
        assert!((rate_at(&curve, 900) - 30.0).abs() < 0.1);
        assert!(rate_at(&curve, 2_700).abs() < 1e-12);
    }

    #[test]
    fn diurnal_load_peaks_at_local_hour() {
        let text = "{ night: 10, peak: 50, peak_at: 14h, weekend: 50%, time_zone: Europe/Paris }";
        let curve = read::<Diurnal>(text).unwrap();
        // Two in the afternoon in Paris is noon UTC in summer.
        assert!((rate_at(&curve, 12 * 3_600) - 50.0).abs() < 0.1);
        assert!((rate_at(&curve, 0) - 10.0).abs() < 0.1);
        assert!((rate_at(&curve, 36 * 3_600) - 25.0).abs() < 0.1);
    }

    #[test]
    fn bursts_come_every_so_often() {
        let curve = read::<Burst>("{ base: 1, peak: 9, every: 1h, for: 5m, first: 10m }").unwrap();
        let rates = [0, 600, 899, 900, 4_200, 4_500].map(|at| rate_at(&curve, at) as i64);
        assert_eq!(rates, [1, 9, 9, 1, 9, 1]);
        let error = read::<Burst>("{ peak: 9, every: 1h, for: 1h }").unwrap_err();
        assert_eq!(error.to_string(), "a burst of 1h every 1h never ends");
    }
}

//! Rates by formula: steps, ramps, waves, days, bursts.

use super::super::super::reader::Reader;
use super::super::super::tree::Node;
use super::super::ScenarioError;
use super::{LoadSpan, amount, check_count, positive_duration, share};
use crate::domain::SimDuration;
use crate::load::{Curve, CurveStep};
use crate::scenario::schema::rates::{BURST, DIURNAL, RAMP, SINE, STEP};

/// A slope or a wave is cut into so many steps.
const STEPS_OF_A_SHAPE: i64 = 100;
/// A day is cut into steps of this length.
const STEP_OF_A_DAY: SimDuration = SimDuration::from_secs(300);
/// The hour at which a day is busiest unless the scenario says so.
const PEAK_AT: SimDuration = SimDuration::from_secs(14 * 3_600);
const HOUR: f64 = 3_600.0;

/// Steps; `at` counts from the start of the load.
pub(super) fn steps<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Curve, ScenarioError> {
    let mut steps: Vec<CurveStep> = Vec::new();
    for node in reader.list(node, "steps")? {
        let fields = reader.fields(node, &STEP.shape)?;
        let at_node = fields.required(reader, "at")?;
        let from = reader.duration(at_node, "at")?;
        if steps.last().is_some_and(|last| last.from >= from) {
            return Err(reader
                .error(at_node.at, "the steps of a rate come in order of time")
                .because("not after the step before")
                .help("`at` counts from the start of this load; sort the steps"));
        }
        steps.push(CurveStep { from, rate: amount(reader, fields.required(reader, "rate")?, "rate")? });
    }
    Ok(Curve::from_steps(steps))
}

/// From one rate to another in a straight line, then on at the last rate.
pub(super) fn ramp<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Curve, ScenarioError> {
    let fields = reader.fields(node, &RAMP.shape)?;
    let from = fields.get("from").map(|node| amount(reader, node, "from")).transpose()?.unwrap_or(0.0);
    let to = amount(reader, fields.required(reader, "to")?, "to")?;
    let over_node = fields.required(reader, "over")?;
    let over = positive_duration(reader, over_node, "over")?;
    let every = fields.get("every").map(|node| positive_duration(reader, node, "every")).transpose()?;
    let every = every.unwrap_or_else(|| part_of(over));
    check_count(reader, fields.get("every").unwrap_or(over_node), over, every, 1)?;
    let seconds = over.as_secs_f64();
    let slope =
        Curve::sampled(every, over, |begin, end| from + (to - from) * (begin + end.min(seconds)) / 2.0 / seconds);
    let mut steps = slope.steps().to_vec();
    steps.retain(|step| step.from < over);
    steps.push(CurveStep { from: over, rate: to });
    Ok(Curve::from_steps(steps))
}

/// A wave around a mean, which it crosses upwards at the load's start; where it would be negative, 0.
pub(super) fn sine<'s>(reader: &mut Reader<'s>, node: &Node<'s>, span: &LoadSpan) -> Result<Curve, ScenarioError> {
    let fields = reader.fields(node, &SINE.shape)?;
    let mean = amount(reader, fields.required(reader, "mean")?, "mean")?;
    let amplitude = amount(reader, fields.required(reader, "amplitude")?, "amplitude")?;
    let period_node = fields.required(reader, "period")?;
    let period = positive_duration(reader, period_node, "period")?;
    let every = fields.get("every").map(|node| positive_duration(reader, node, "every")).transpose()?;
    let every = every.unwrap_or_else(|| part_of(period));
    check_count(reader, fields.get("every").unwrap_or(period_node), span.length, every, 1)?;
    let turn = 2.0 * std::f64::consts::PI / period.as_secs_f64();
    Ok(Curve::sampled(every, span.length, |begin, end| {
        mean + amplitude * (libm::cos(turn * begin) - libm::cos(turn * end)) / (turn * (end - begin))
    }))
}

/// A day after the other: `night` and `peak` are the lowest and highest rate, twelve hours apart, with a cosine between
/// them; Saturdays and Sundays times `weekend`. The hours are those of `time_zone`, UTC unless given.
pub(super) fn diurnal<'s>(reader: &mut Reader<'s>, node: &Node<'s>, span: &LoadSpan) -> Result<Curve, ScenarioError> {
    let fields = reader.fields(node, &DIURNAL.shape)?;
    let night = amount(reader, fields.required(reader, "night")?, "night")?;
    let peak = amount(reader, fields.required(reader, "peak")?, "peak")?;
    let peak_at =
        fields.optional("peak_at", |n, what| reader.duration(n, what))?.unwrap_or(PEAK_AT).as_secs_f64() / HOUR;
    let weekend = fields.get("weekend").map(|node| share(reader, node, "weekend")).transpose()?.unwrap_or(1.0);
    let zone = fields.get("time_zone").map(|node| time_zone(reader, node)).transpose()?;
    let zone = zone.unwrap_or(jiff::tz::TimeZone::UTC);
    let every = fields.get("every").map(|node| positive_duration(reader, node, "every")).transpose()?;
    let every = every.unwrap_or(STEP_OF_A_DAY);
    check_count(reader, fields.get("every").unwrap_or(node), span.length, every, 1)?;
    Ok(Curve::sampled(every, span.length, |begin, end| {
        let middle = SimDuration::from_secs_f64((begin + end) / 2.0);
        let local = zone.to_datetime(span.clock + jiff::SignedDuration::from_micros(middle.as_micros()));
        let hour = f64::from(local.hour()) + f64::from(local.minute()) / 60.0 + f64::from(local.second()) / HOUR;
        let busy = 0.5 + 0.5 * libm::cos(2.0 * std::f64::consts::PI * (hour - peak_at) / 24.0);
        let rate = night + (peak - night) * busy;
        let rests = matches!(local.weekday(), jiff::civil::Weekday::Saturday | jiff::civil::Weekday::Sunday);
        if rests { rate * weekend } else { rate }
    }))
}

fn time_zone(reader: &Reader<'_>, node: &Node<'_>) -> Result<jiff::tz::TimeZone, ScenarioError> {
    let name = reader.text(node, "time_zone")?;
    jiff::tz::TimeZone::get(name).map_err(|_| {
        reader
            .error(node.at, "`time_zone` is not a time zone")
            .because("unknown")
            .help("write a name of the IANA database, for example `Europe/Paris`")
    })
}

/// A base rate, and every so often a higher one for a while; the first burst comes after `first`, at once unless given.
pub(super) fn burst<'s>(reader: &mut Reader<'s>, node: &Node<'s>, span: &LoadSpan) -> Result<Curve, ScenarioError> {
    let fields = reader.fields(node, &BURST.shape)?;
    let base = fields.get("base").map(|node| amount(reader, node, "base")).transpose()?.unwrap_or(0.0);
    let peak = amount(reader, fields.required(reader, "peak")?, "peak")?;
    let every_node = fields.required(reader, "every")?;
    let every = positive_duration(reader, every_node, "every")?;
    let for_node = fields.required(reader, "for")?;
    let length = positive_duration(reader, for_node, "for")?;
    if length >= every {
        return Err(reader
            .error(for_node.at, format!("a burst of {length} every {every} never ends"))
            .because("not shorter than `every`")
            .help("write a shorter `for`, or a `constant` rate"));
    }
    check_count(reader, every_node, span.length, every, 2)?;
    let mut from = fields.optional("first", |n, what| reader.duration(n, what))?.unwrap_or_default();
    let mut steps = Vec::new();
    if from > SimDuration::ZERO {
        steps.push(CurveStep { from: SimDuration::ZERO, rate: base });
    }
    while steps.is_empty() || from < span.length {
        steps.push(CurveStep { from, rate: peak });
        steps.push(CurveStep { from: from + length, rate: base });
        from += every;
    }
    Ok(Curve::from_steps(steps))
}

/// A hundredth of a span, in whole seconds, at least one.
fn part_of(span: SimDuration) -> SimDuration {
    SimDuration::from_secs((span.as_secs() / STEPS_OF_A_SHAPE).max(1))
}

#[cfg(test)]
mod tests {
    use super::{LoadSpan, burst, diurnal, ramp, sine};
    use crate::domain::SimDuration;
    use crate::load::Curve;
    use crate::scenario::reader::Reader;
    use crate::scenario::tree::{self, Node, Variables};
    use crate::scenario::{Limits, ScenarioError, Source};

    fn read<F>(text: &str, read: F) -> Result<Curve, ScenarioError>
    where
        F: for<'s> Fn(&mut Reader<'s>, &Node<'s>, &LoadSpan) -> Result<Curve, ScenarioError>,
    {
        let source = Source::new("a.yaml", text);
        let documents = tree::parse(&source, &Variables::new(), &Limits::default())?;
        // A Friday.
        let span =
            LoadSpan { clock: "2026-07-10T00:00:00Z".parse().unwrap(), length: SimDuration::from_secs(3 * 86_400) };
        read(&mut Reader::new(Some(&source)), &documents[0], &span)
    }

    fn rate_at(curve: &Curve, seconds: i64) -> f64 {
        let next = curve.steps().partition_point(|step| step.from.as_secs() <= seconds);
        curve.steps()[next - 1].rate
    }

    #[test]
    fn a_ramp_has_its_mean_and_ends_at_its_last_rate() {
        let curve = read("{ from: 10, to: 30, over: 10m }", |r, n, _| ramp(r, n)).unwrap();
        assert!((curve.requests_until(SimDuration::from_secs(600)) - 12_000.0).abs() < 1e-6);
        assert!((rate_at(&curve, 600) - 30.0).abs() < 1e-12);
        // A last step that is cut short keeps the mean too.
        let curve = read("{ to: 30, over: 10s, every: 3s }", |r, n, _| ramp(r, n)).unwrap();
        assert!((curve.requests_until(SimDuration::from_secs(10)) - 150.0).abs() < 1e-9);
    }

    #[test]
    fn a_wave_starts_at_its_mean_and_never_falls_below_zero() {
        let curve = read("{ mean: 10, amplitude: 20, period: 1h }", sine).unwrap();
        assert!((rate_at(&curve, 900) - 30.0).abs() < 0.1);
        assert!(rate_at(&curve, 2_700).abs() < 1e-12);
    }

    #[test]
    fn a_day_peaks_at_its_hour_of_the_zone_and_rests_on_weekends() {
        let text = "{ night: 10, peak: 50, peak_at: 14h, weekend: 50%, time_zone: Europe/Paris }";
        let curve = read(text, diurnal).unwrap();
        // Two in the afternoon in Paris is noon UTC in summer.
        assert!((rate_at(&curve, 12 * 3_600) - 50.0).abs() < 0.1);
        assert!((rate_at(&curve, 0) - 10.0).abs() < 0.1);
        assert!((rate_at(&curve, 36 * 3_600) - 25.0).abs() < 0.1);
    }

    #[test]
    fn bursts_come_every_so_often() {
        let curve = read("{ base: 1, peak: 9, every: 1h, for: 5m, first: 10m }", burst).unwrap();
        let rates = [0, 600, 899, 900, 4_200, 4_500].map(|at| rate_at(&curve, at) as i64);
        assert_eq!(rates, [1, 9, 9, 1, 9, 1]);
        let error = read("{ peak: 9, every: 1h, for: 1h }", burst).unwrap_err();
        assert_eq!(error.to_string(), "a burst of 1h every 1h never ends");
    }
}

//! Warnings of records that leave a load without requests: where rows are missing, where the record is over, where it lies outside the run.

use super::Reading;
use crate::definition::Requests;
use crate::domain::SimDuration;
use crate::reader::Fields;
use crate::schema::load::REQUESTS;
use crate::tree::Node;
use nodecast_load::{Curve, CurveStep};
use nodecast_settings::lints;

/// The kinds of load that come from a record.
const RECORDS: [&str; 5] = ["csv", "trace", "prometheus", "cloudwatch", "datadog"];
/// A load that is over for so long, and for half of its time, is remarkable: that what autoscalers do afterwards is looked at takes less.
const REST_MIN: SimDuration = SimDuration::from_secs(6 * 3_600);

/// Whether any of these steps has a rate.
pub(super) fn has_rate(steps: &[CurveStep]) -> bool {
    steps.iter().any(|step| step.rate > 0.0)
}

/// Warns of rows that are missing in a table.
pub(super) fn warn_of_missing<'s>(reading: &mut Reading<'_, 's>, node: &Node<'s>, missing: Option<String>) {
    let Some(text) = missing else { return };
    let help = "write a row with an empty value where nobody recorded, and a row for each time where something came";
    reading.reader.warn(&lints::file::MISSING_ROWS, node.at, text, "rows are missing", help);
}

/// Until then times are taken to count from the record's own start, as those of hand-written records do: the end of 1970.
const OWN_CLOCK_UNTIL: i64 = 365 * 86_400;

/// Says that a record is moved to the start of its load, where it was recorded at another time and no `shift` is stated.
pub(super) fn tell_of_start<'s>(
    reading: &mut Reading<'_, 's>,
    (kind, node): (&str, &Node<'s>),
    fields: Fields<'_, 's>,
    first: f64,
) {
    let Ok(first) = jiff::Timestamp::from_microsecond(libm::round(first * 1e6) as i64) else { return };
    let start = reading.span.clock;
    let has_own_clock = first.as_second() < OWN_CLOCK_UNTIL;
    if has_own_clock || fields.get("shift").is_some() || first.as_second() == start.as_second() {
        return;
    }
    let message = format!(
        "the first sample of this `{kind}` is of {first}, and its load starts at {start}: the record is moved to the start of the load"
    );
    let help = format!("for the recorded times of day set `start: {first}`; a `shift` states that the move is wanted");
    reading.reader.warn(&lints::file::MOVED_RECORD, node.at, message, "moved", &help);
}

/// Warns of a record that has rates, none of which falls into the time of its load.
pub(super) fn warn_of_none<'s>(reading: &mut Reading<'_, 's>, (kind, node): (&str, &Node<'s>), curve: &Curve) {
    let length = reading.span.length;
    let mut within = curve.steps_from_start().take_while(|step| step.from < length);
    if !RECORDS.contains(&kind) || length == SimDuration::ZERO || within.any(|step| step.rate > 0.0) {
        return;
    }
    let first = curve.steps().iter().find(|step| step.rate > 0.0).map(|step| step.from);
    let when = match first {
        Some(first) if first >= length => format!("it begins {first} after the load does, which has {length} left"),
        Some(_) => "it is over before the load begins".to_owned(),
        None => "`repeat` is shorter than the time before its first rate".to_owned(),
    };
    let message = format!("no data from this `{kind}` falls within the run: {when}");
    let help = "times count from the beginning of the load, not from 1970 or from midnight; `shift` moves them";
    reading.reader.warn(&lints::file::EMPTY_RECORD, node.at, message, "brings nothing", help);
}

/// Warns of a record that is over long before its load, so that nothing comes from then on.
pub(super) fn warn_of_rest<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    requests: &Requests,
    stated: Option<SimDuration>,
) {
    let (Requests::Open(open) | Requests::Cpu(open)) = requests else { return };
    let Some(node) = fields.get("requests").or_else(|| fields.get("cpu")) else { return };
    let Ok(fields) = reading.reader.fields(node, &REQUESTS.shape) else { return };
    let Some((kind, node)) = REQUESTS.given(fields).into_iter().find(|(kind, _)| RECORDS.contains(kind)) else {
        return;
    };
    let length = stated.map_or(reading.span.length, |stated| stated.min(reading.span.length));
    let Some(end) = open.curve.steps().last().filter(|last| last.rate <= 0.0).map(|last| last.from) else { return };
    let rest = length - end;
    if end <= SimDuration::ZERO || rest < REST_MIN || rest < end {
        return;
    }
    let message = format!("this `{kind}` ends after {end}; the load is zero for the remaining {rest}");
    let help = "set `repeat` to loop it, or `for` if the load should end here";
    reading.reader.warn(&lints::file::SHORT_RECORD, node.at, message, "ends early", help);
}

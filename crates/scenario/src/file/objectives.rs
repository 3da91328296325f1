//! `objectives`: the limits that the answer is held against.

use super::{Reading, ScenarioError};
use crate::definition::{WaitLimit, WaitMeasure};
use crate::reader::Fields;
use crate::schema::Section;
use crate::schema::whole::Waits;

/// What is wrong with an entry of `waits` that does not say whose waits it limits, or says it twice.
pub(crate) fn whose_waits(reading: &Reading<'_, '_>, _: &Section, fields: Fields<'_, '_>, _: usize) -> ScenarioError {
    reading
        .error(fields.at, "a limit on waits is on those of one workload or of one priority")
        .because("this entry")
        .help("give it `workload: NAMESPACE/NAME` or `priority: NUMBER`")
}

/// The limits of an entry of `waits`, at least one.
pub(crate) fn limits(
    reading: &Reading<'_, '_>,
    fields: Fields<'_, '_>,
    waits: Waits,
) -> Result<Vec<WaitLimit>, ScenarioError> {
    let whose = waits.whose;
    let stated = [
        (WaitMeasure::Mean, waits.mean),
        (WaitMeasure::P50, waits.p50),
        (WaitMeasure::P95, waits.p95),
        (WaitMeasure::P99, waits.p99),
        (WaitMeasure::Longest, waits.longest),
    ];
    let limits = stated.into_iter().filter_map(|(measure, limit)| Some(WaitLimit { whose, measure, limit: limit? }));
    let limits: Vec<WaitLimit> = limits.collect();
    if limits.is_empty() {
        let keys: Vec<String> = WaitMeasure::ALL.iter().map(|(key, _)| format!("`{key}`")).collect();
        return Err(reading
            .error(fields.at, "an entry of `waits` limits nothing")
            .because("no limit")
            .help(format!("give it one or more of {}: `p95: 30s`", keys.join(", "))));
    }
    Ok(limits)
}

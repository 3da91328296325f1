//! `usage`: what pods use beside requests.

use super::load::{self, LoadSpan, Measure};
use super::{Reading, ScenarioError};
use crate::definition::UsageSpec;
use crate::reader::Fields;
use crate::schema::usage::UsageEntry;

/// What one workload's pods use. Its times count from the start of the run.
pub(crate) fn usage<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    usage_entry: UsageEntry,
) -> Result<UsageSpec, ScenarioError> {
    reading.span = LoadSpan { clock: reading.start, length: reading.duration };
    let mut curve = |key, measure| fields.get(key).map(|node| load::amounts(reading, node, measure)).transpose();
    let (cpu, memory) = (curve("cpu", Measure::Cores)?, curve("memory", Measure::Mebibytes)?);
    if cpu.is_none() && memory.is_none() && usage_entry.start_up.is_none() {
        return Err(reading
            .error(fields.at, "an entry of `usage` has `cpu`, `memory`, `start_up` or some of them")
            .because("states no use")
            .help("write for example `memory: { constant: 300 }` for 300 MiB in each pod"));
    }
    let (workload, _) = usage_entry.workload;
    Ok(UsageSpec {
        workload,
        container: usage_entry.container,
        of_workload: usage_entry.per,
        cpu,
        memory,
        start_up: usage_entry.start_up,
    })
}

//! The table of what VerticalPodAutoscalers recommended.

use std::io;

use super::output::{Kind, Output, table};
use super::workload_names;
use crate::domain::{ResourceName, Resources};
use nodecast_world::Outcome;

/// `recommendations.csv`: what each VerticalPodAutoscaler recommended for each container, over time.
///
/// # Errors
/// Whatever `output` returns.
pub fn recommendations(outcome: &Outcome, output: &mut Output<'_>) -> io::Result<()> {
    let columns = [
        ("at_seconds", Kind::Seconds),
        ("autoscaler", Kind::Text),
        ("workload", Kind::Text),
        ("container", Kind::Text),
        ("pods", Kind::Whole),
        ("cpu_request_milli", Kind::Whole),
        ("cpu_used_milli", Kind::Whole),
        ("cpu_target_milli", Kind::Whole),
        ("cpu_lower_bound_milli", Kind::Whole),
        ("cpu_upper_bound_milli", Kind::Whole),
        ("memory_request_bytes", Kind::Whole),
        ("memory_used_bytes", Kind::Whole),
        ("memory_target_bytes", Kind::Whole),
        ("memory_lower_bound_bytes", Kind::Whole),
        ("memory_upper_bound_bytes", Kind::Whole),
        ("cpu_uncapped_target_milli", Kind::Whole),
        ("memory_uncapped_target_bytes", Kind::Whole),
    ];
    let names = workload_names(outcome);
    let rows = outcome
        .record
        .verticals
        .iter()
        .flat_map(|vertical| vertical.samples.iter().map(move |sample| (vertical, sample)));
    table(output, &columns, rows, |(item, sample), row| {
        row.at(sample.at)
            .shown(item.name)
            .text(names.get(item.workload.index()).map_or("", String::as_str))
            .text(sample.container.as_str())
            .whole(sample.pods);
        for resource in [ResourceName::CPU, ResourceName::MEMORY] {
            let of = |amounts: &Resources| amounts.find(resource);
            for amounts in [&sample.request, &sample.used, &sample.target, &sample.lower_bound, &sample.upper_bound] {
                row.optional_whole(of(amounts));
            }
        }
        for resource in [ResourceName::CPU, ResourceName::MEMORY] {
            row.optional_whole(sample.uncapped_target.find(resource));
        }
    })
}

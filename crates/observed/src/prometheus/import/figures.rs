//! Figures of the whole window, for people and for whoever fits or judges.

use std::collections::BTreeMap;

use nodecast_model::domain::SimTime;

use super::answer_reader::AnswerReader;
use super::pods::waits_of;
use crate::observation::about::{Disrupted, Figures, StageFigures, WorkloadFigures};
use crate::observation::tables::Stage;
use crate::observation::{Count, Observation};

/// Days are judged by their totals where there are so many or more.
const DAYS_MIN: usize = 5;
/// Nodes are counted all the time, or it is told.
const COUNTED_MIN: f64 = 0.99;
/// A day is not typical if it is so many median deviations from the median.
const DEVIATIONS: f64 = 3.0;

pub(super) fn figures(told: &AnswerReader<'_>, observation: &Observation, workloads: Vec<WorkloadFigures>) -> Figures {
    let nodes = told.first_answered(&["nodes", "karpenter_nodes", "node_present"]).and_then(|role| told.asked(role));
    let step = nodes.map(|asked| asked.step);
    let end = observation.about.window.seconds * 1_000_000;
    let hours = |is_counted: &dyn Fn(&str) -> bool| {
        // A sample stands for the step that it begins.
        let counts = observation.node_counts.as_ref()?.iter().filter(|node_count| node_count.at.as_micros() < end);
        let counts = counts.filter(|node_count| is_counted(node_count.capacity_type.as_deref().unwrap_or_default()));
        Some(counts.map(|node_count| node_count.nodes as f64).sum::<f64>() * step? as f64 / 3_600.0)
    };
    let mut together: BTreeMap<i64, i64> = BTreeMap::new();
    for node_count in observation.node_counts.iter().flatten() {
        *together.entry(node_count.at.as_micros()).or_default() += node_count.nodes;
    }
    // A window that is cut to what was recorded leaves counts of the time before.
    let within = |count: &&Count| count.at > SimTime::ZERO && count.at.as_micros() <= end;
    let counted = |what: &str| {
        let count = observation.counts.iter().flatten().filter(within).filter(|count| count.what == what);
        count.map(|count| count.count).sum::<f64>()
    };
    let knows_launches =
        told.first_answered(&["claims_created", "claims_created_v0_33", "claims_created_machines"]).is_some();
    let mut disruptions: BTreeMap<String, f64> = BTreeMap::new();
    for count in observation.counts.iter().flatten().filter(within).filter(|count| count.what == "disrupted") {
        *disruptions.entry(count.reason.clone().unwrap_or_default()).or_default() += count.count;
    }
    Figures {
        workloads,
        node_hours: hours(&|_| true),
        spot_node_hours: hours(&|capacity| capacity == "spot"),
        nodes_max: together.values().max().copied(),
        launches: knows_launches.then(|| counted("launched")),
        disruptions: disruptions.into_iter().map(|(reason, nodes)| Disrupted { reason, nodes }).collect(),
        stages: observation.stages.as_deref().map(stages).unwrap_or_default(),
        waits: observation.pods.as_deref().and_then(waits_of),
    }
}

fn stages(rows: &[Stage]) -> Vec<StageFigures> {
    let whole = rows.iter().filter(|row| row.up_to_seconds.is_none());
    whole
        .map(|stage_times| {
            let buckets: Vec<(f64, f64)> = rows
                .iter()
                .filter(|bucket| bucket.stage == stage_times.stage)
                .filter_map(|bucket| Some((bucket.up_to_seconds?, bucket.launches)))
                .collect();
            StageFigures {
                stage: stage_times.stage.clone(),
                launches: stage_times.launches,
                mean_seconds: stage_times.seconds.map(|seconds| seconds / stage_times.launches),
                median_seconds: median(&buckets, stage_times.launches),
            }
        })
        .collect()
}

/// The median of a histogram, as `histogram_quantile` interpolates it: evenly within its bucket.
fn median(buckets: &[(f64, f64)], all: f64) -> Option<f64> {
    let rank = all * 0.5;
    let place = buckets.iter().position(|(_, launches)| *launches >= rank)?;
    let (bound, upper) = buckets[place];
    let (from, lower) = place.checked_sub(1).and_then(|before| buckets.get(before)).copied().unwrap_or((0.0, 0.0));
    let within = if upper > lower { (rank - lower) / (upper - lower) } else { 1.0 };
    Some(from + (bound - from) * within)
}

/// Whole days whose demand is far from the others': a deployment, an incident, a holiday.
pub(super) fn untypical_days(observation: &Observation) -> Vec<String> {
    let mut totals: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for workload in observation.workloads.iter().flatten() {
        let day = totals.entry(workload.at.as_secs().div_euclid(86_400)).or_default();
        day.0 += workload.requests_per_second.unwrap_or(0.0);
        day.1 += workload.cpu_used_milli.unwrap_or(0.0);
    }
    let days = observation.about.window.seconds / 86_400;
    totals.retain(|day, _| (0..days).contains(day));
    let mut warnings = Vec::new();
    for (what, pick) in [("requests", 0_usize), ("CPU", 1)] {
        let of_day: BTreeMap<i64, f64> =
            totals.iter().map(|(day, total)| (*day, if pick == 0 { total.0 } else { total.1 })).collect();
        warnings.extend(far_days(&of_day).into_iter().map(|(day, percent)| {
            let from = observation.about.window.start_micros().unwrap_or(0) / 1_000_000 + day * 86_400;
            format!("the day from {} has {percent:+.0}% of {what} against the median day: leave it out if it is not typical", super::time_text(from))
        }));
    }
    warnings
}

/// That nodes were not counted for a part of the window, in which there are none in any sum.
pub(super) fn uncounted(observation: &Observation) -> Option<String> {
    let counts = observation.about.quantities.iter().find(|quantity| quantity.quantity == "node types")?;
    (counts.coverage < COUNTED_MIN).then(|| {
        let absent = (1.0 - counts.coverage) * 100.0;
        format!("nodes were not counted for {absent:.1}% of the window: node-hours are of the rest")
    })
}

/// Days further from the median than three median deviations (and a tenth), with the difference in percent.
fn far_days(totals: &BTreeMap<i64, f64>) -> Vec<(i64, f64)> {
    if totals.len() < DAYS_MIN {
        return Vec::new();
    }
    let middle = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let median = middle(totals.values().copied().collect());
    let deviation = middle(totals.values().map(|total| (total - median).abs()).collect());
    let is_far =
        |number: f64| (number - median).abs() > DEVIATIONS * deviation && (number - median).abs() > 0.1 * median;
    totals
        .iter()
        .filter(|(_, key)| median > 0.0 && is_far(**key))
        .map(|(day, total)| (*day, (total / median - 1.0) * 100.0))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{far_days, median};

    #[test]
    fn a_median_lies_evenly_in_its_bucket() {
        let buckets = [(32.0, 0.0), (64.0, 13.0), (128.0, 22.0)];
        assert!((median(&buckets, 22.0).unwrap() - (32.0 + 32.0 * 11.0 / 13.0)).abs() < 1e-12);
        assert!(median(&[], 3.0).is_none());
    }

    #[test]
    fn outlier_day_is_reported() {
        let mut days: BTreeMap<i64, f64> = (0..7).map(|day| (day, 100.0 + day as f64)).collect();
        assert!(far_days(&days).is_empty());
        days.insert(3, 40.0);
        assert_eq!(far_days(&days).iter().map(|far_day| far_day.0).collect::<Vec<_>>(), [3]);
    }
}

//! What node autoscalers count: increases between samples, whatever happens to the counters in between.

use std::collections::BTreeMap;

use nodecast_model::domain::SimTime;
use nodecast_model::text::InputError;

use super::super::answer::Series;
use super::super::catalogue::ALTERNATIVES;
use super::answer_reader::AnswerReader;
use super::{Frame, text};
use crate::observation::{Count, Stage};

/// What is counted: the role of its answer, and the word of the table.
const COUNTED: [(&str, &str); 9] = [
    ("claims_created", "launched"),
    ("claims_terminated", "terminated"),
    ("claims_disrupted", "disrupted"),
    ("decisions", "decisions"),
    ("interruptions", "interruption messages"),
    ("evictions", "evictions"),
    ("ca_scaled_up", "scaled up"),
    ("ca_scaled_down", "scaled down"),
    ("ca_failed_scale_ups", "failed scale-ups"),
];

/// The roles of answers with the sums of launch stages, the newest names first.
const SUMS: &[&str] = &["claim_stage_sum", "claim_stage_sum_v1_0"];
/// The same of numbers of launches.
const LAUNCHES: &[&str] = &["claim_stage_count", "claim_stage_count_v1_0"];
/// The same of buckets.
const BUCKETS: &[&str] = &["claim_stage_bucket", "claim_conditions", "claim_stage_bucket_v1_0"];

/// The roles of answers with stages of launches.
pub(super) fn stage_roles() -> Vec<&'static str> {
    [SUMS, LAUNCHES, BUCKETS].concat()
}

/// The roles of answers with counters, older names included.
pub(super) fn roles() -> Vec<&'static str> {
    COUNTED.iter().flat_map(|(role, _)| std::iter::once(*role).chain(older(role).iter().copied())).collect()
}

/// The older names of a role's counter.
fn older(role: &str) -> &'static [&'static str] {
    ALTERNATIVES.iter().find(|alternative| alternative.role == role).map_or(&[], |alternative| alternative.older)
}

/// NodePool, capacity type and reason of a count.
type Of = [Option<String>; 3];

/// Everything that was counted, by the stretch between two samples; stretches without any are left out.
///
/// # Errors
/// If an answer cannot be read.
pub(super) fn counts(told: &mut AnswerReader<'_>, frame: Frame) -> Result<Vec<Count>, InputError> {
    let mut rows = Vec::new();
    let up = told.series("karpenter_up")?;
    for (role, what) in COUNTED {
        let mut sums: BTreeMap<(SimTime, Of), f64> = BTreeMap::new();
        // Where an upgrade lies in the window, each name counts where no newer one does.
        let mut known: Option<(i64, i64)> = None;
        for role in std::iter::once(&role).chain(older(role)) {
            let all = told.series(role)?;
            let since = counted_since(&up, &all);
            let instants = || all.iter().flat_map(|series| series.samples.iter().map(|sample| sample.at));
            for item in &all {
                for (at, increase) in increases(item, since) {
                    if known.is_none_or(|(from, to)| at < from || at > to) {
                        *sums.entry((Frame::instant(frame, at), labels(item))).or_default() += increase;
                    }
                }
            }
            if let Some((from, to)) = instants().min().zip(instants().max()) {
                known = Some(known.map_or((from, to), |(first, last)| (first.min(from), last.max(to))));
            }
        }
        rows.extend(sums.into_iter().filter(|(_, count)| *count > 0.0).map(|((at, labels), count)| {
            let [node_pool, capacity_type, reason] = labels;
            Count { at, what: what.to_owned(), node_pool, capacity_type, reason, count }
        }));
    }
    rows.sort_by_key(|row| row.at);
    Ok(rows)
}

impl Frame {
    fn instant(self, unix_micros: i64) -> SimTime {
        crate::observation::Window::instant(self.start, unix_micros)
    }
}

/// Whom a series counts for, under the labels of any release.
fn labels(series: &Series) -> Of {
    let first = |labels: &[&str]| labels.iter().find_map(|label| text(series, label));
    let reason = match (first(&["decision", "action"]), first(&["reason", "method", "type", "message_type", "code"])) {
        (Some(decision), Some(reason)) => Some(format!("{decision} {reason}")),
        (decision, reason) => decision.or(reason),
    };
    // Before v1.2 reasons began with a capital: `Underutilized`.
    [first(&["nodepool", "provisioner"]), first(&["capacity_type"]), reason.map(|reason| reason.to_ascii_lowercase())]
}

/// From when on the first value of a new series is news: since when its target, or any series beside it, has been scraped.
fn counted_since(up: &[Series], all: &[Series]) -> Option<i64> {
    let first = |series: &Series| series.samples.first().map(|sample| sample.at);
    up.iter().chain(all).filter_map(first).min()
}

/// The increases of a counter. After a fall it has begun anew, and its value is the increase; a series that was not there while its
/// target was scraped has counted from nothing.
fn increases(series: &Series, since: Option<i64>) -> Vec<(i64, f64)> {
    let mut all = Vec::new();
    let mut before: Option<f64> = None;
    for sample in series.samples.iter().filter(|sample| sample.value.is_finite()) {
        let increase = match before {
            Some(before) if sample.value >= before => sample.value - before,
            Some(_) => sample.value,
            None if since.is_some_and(|since| since < sample.at) => sample.value,
            None => 0.0,
        };
        all.push((sample.at, increase));
        before = Some(sample.value);
    }
    all
}

/// The stages of launches: sums, counts and buckets, each over the whole window.
///
/// # Errors
/// If an answer cannot be read.
pub(super) fn stages(told: &mut AnswerReader<'_>) -> Result<Vec<Stage>, InputError> {
    let mut total = |roles: &[&str]| -> Result<BTreeMap<(String, String), f64>, InputError> {
        let mut sums = BTreeMap::new();
        for first_series in told.first_series(roles)? {
            let values = first_series.samples.iter().map(|sample| sample.value).filter(|value| value.is_finite());
            let key = (first_series.label("type").to_owned(), first_series.label("le").to_owned());
            *sums.entry(key).or_insert(0.0) += values.sum::<f64>();
        }
        Ok(sums)
    };
    let seconds = total(SUMS)?;
    let launches = total(LAUNCHES)?;
    let buckets = total(BUCKETS)?;
    let mut rows = Vec::new();
    for stage in ["Launched", "Registered", "Initialized"] {
        let key = |le: &str| (stage.to_owned(), le.to_owned());
        let all = launches.get(&key("")).or_else(|| buckets.get(&key("+Inf"))).copied().filter(|all| *all > 0.0);
        let Some(all) = all else { continue };
        rows.push(Stage {
            stage: stage.to_owned(),
            up_to_seconds: None,
            launches: all,
            seconds: seconds.get(&key("")).copied(),
        });
        let mut stages: Vec<Stage> = buckets
            .iter()
            .filter(|((labels, _), _)| labels == stage)
            .filter_map(|((_, le), launches)| {
                let bound = le.parse::<f64>().ok().filter(|bound| bound.is_finite())?;
                Some(Stage { stage: stage.to_owned(), up_to_seconds: Some(bound), launches: *launches, seconds: None })
            })
            .collect();
        stages.sort_by(|one, other| one.up_to_seconds.unwrap_or(0.0).total_cmp(&other.up_to_seconds.unwrap_or(0.0)));
        rows.extend(stages);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::super::answer::{Sample, Series};
    use super::increases;

    fn total(samples: &[(i64, f64)], since: i64) -> f64 {
        let samples = samples.iter().map(|(at, value)| Sample { at: *at, value: *value }).collect();
        increases(&Series { labels: BTreeMap::new(), samples }, Some(since)).iter().map(|(_, key)| key).sum()
    }

    #[test]
    fn a_counter_that_begins_anew_loses_nothing() {
        assert!((total(&[(0, 5.0), (1, 7.0), (2, 1.0), (3, 1.0), (4, 4.0)], 0) - 6.0).abs() < 1e-12);
    }

    #[test]
    fn first_counter_value_counts_after_earlier_scrape() {
        assert!((total(&[(5, 3.0), (6, 4.0)], 0) - 4.0).abs() < 1e-12);
        assert!((total(&[(5, 3.0), (6, 4.0)], 5) - 1.0).abs() < 1e-12);
    }
}

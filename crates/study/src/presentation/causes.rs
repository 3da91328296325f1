//! Sentences of a comparison that name causes: workloads behind a number, and a difference that changed nothing.

use std::collections::BTreeMap;

use crate::comparison::Comparison;
use crate::domain::words::some_of;
use crate::points::Point;
use crate::report::format::{counted, span};

/// A difference between two sides in the time without a Ready replica that is worth a sentence, in seconds.
const AT_ZERO_MUCH: f64 = 60.0;

/// The points of the policy at `position`, in order of seed.
fn points(comparison: &Comparison, position: usize) -> impl Iterator<Item = &Point> {
    let name = comparison.policies.get(position).map(|policy| policy.name.as_str());
    comparison.points.iter().filter(move |point| Some(point.policy.as_str()) == name)
}

/// That everything happened alike under the policy at `position` and under the first.
pub(super) fn unchanged(comparison: &Comparison, position: usize) -> Option<String> {
    let (name, first) = (&comparison.policies.get(position)?.name, &comparison.policies.first()?.name);
    let pairs: Vec<(&Point, &Point)> = points(comparison, 0).zip(points(comparison, position)).collect();
    let differ = |(one, other): &(&Point, &Point)| one.event_hash.is_empty() || one.event_hash != other.event_hash;
    if pairs.is_empty() || pairs.iter().any(differ) {
        return None;
    }
    let runs = match pairs.len() {
        1 => "the one replication".to_owned(),
        many => format!("all {}", counted(many as u64, "replication", "replications")),
    };
    let is_equal = pairs.iter().all(|(one, other)| one.figures == other.figures);
    let effect = if is_equal {
        "what differs between them changed nothing in this run"
    } else {
        "only what is billed or counted differs"
    };
    let [subject, other] = [name, first].map(|policy| comparison.wording.subject(policy));
    Some(format!("{subject} and {other} have the same events in {runs}: {effect}."))
}

/// The mean time, over the replications of a policy, for which each workload wanted replicas and had none Ready.
fn at_zero(comparison: &Comparison, position: usize) -> BTreeMap<&str, f64> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    let mut count = 0;
    for point in points(comparison, position) {
        count += 1;
        for (workload, seconds) in &point.at_zero_seconds {
            *sums.entry(workload).or_insert(0.0) += seconds;
        }
    }
    sums.values_mut().for_each(|sum| *sum /= f64::from(count.max(1)));
    sums
}

/// The workloads that had none Ready under each policy, where two policies differ in them.
pub(super) fn workloads_at_zero(comparison: &Comparison) -> Option<String> {
    let all: Vec<BTreeMap<&str, f64>> =
        (0..comparison.policies.len()).map(|position| at_zero(comparison, position)).collect();
    let (first, others) = all.split_first()?;
    let time = |side: &BTreeMap<&str, f64>, name: &str| side.get(name).copied().unwrap_or(0.0);
    let differs = |other: &BTreeMap<&str, f64>| {
        first.keys().chain(other.keys()).any(|name| {
            let (one, two) = (time(first, name), time(other, name));
            (one - two).abs() >= AT_ZERO_MUCH || (one > 0.0) != (two > 0.0)
        })
    };
    if !others.iter().any(differs) {
        return None;
    }
    let sides = comparison.policies.iter().zip(&all).map(|(policy, side)| {
        let mut worst: Vec<(&str, f64)> = side.iter().map(|(name, seconds)| (*name, *seconds)).collect();
        worst.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(other.0)));
        let named: Vec<String> = worst.iter().map(|(name, seconds)| format!("{name} for {}", span(*seconds))).collect();
        let named = if named.is_empty() { "none".to_owned() } else { some_of(&named) };
        format!("{}: {named}", policy.name)
    });
    Some(format!("Workloads with zero Ready replicas at some time: {}.", sides.collect::<Vec<_>>().join("; ")))
}

//! How many of the replicas wanted served, and which autoscalers had no more to give.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::service::workload_name;
use super::{made_anew, rounded};
use crate::domain::{SimDuration, WorkloadId};
use crate::format;
use nodecast_world::Outcome;
use nodecast_world::outcome::ReplicaAutoscaler;
use nodecast_world::record::{AvailabilityFacts, WorkloadKind};

/// Microseconds of a minute.
const MINUTE_MICROS: f64 = 60e6;

/// How many of the replicas wanted served. Deployments and StatefulSets count; what holds room for others and does nothing
/// itself stands in its own line and in no sum.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AvailabilitySummary {
    /// Replicas wanted and not Ready, times the minutes for which they were not, summed over workloads.
    pub unavailable_pod_minutes: f64,
    /// The same as a share of what was wanted, 0 to 1; `null` if nothing was.
    pub unavailable_share: Option<f64>,
    /// Workloads that at some time wanted replicas and had none Ready.
    pub workloads_at_zero: u64,
    /// The longest time, summed over its stretches, for which a workload wanted replicas and had none Ready.
    pub at_zero_seconds: f64,
    /// The longest time for which an autoscaler of replicas stood at its maximum; `null` without an autoscaler that has room.
    pub at_max_seconds: Option<f64>,
    /// One entry for each Deployment and StatefulSet.
    pub workloads: Vec<WorkloadAvailability>,
    /// One entry for each autoscaler of replicas, as they were at the end, those left out whose minimum is their maximum.
    pub autoscalers: Vec<AutoscalerAtMax>,
}

/// How many of the replicas that one workload wanted served.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkloadAvailability {
    /// Namespace and name.
    pub workload: String,
    /// Whether it holds room for others and does nothing itself.
    pub placeholder: bool,
    /// Replicas wanted, times the minutes for which they were.
    pub wanted_pod_minutes: f64,
    /// Of these, those that were not Ready.
    pub unavailable_pod_minutes: f64,
    /// Time for which some were wanted and none was Ready.
    pub at_zero_seconds: f64,
    /// How often that began.
    pub times_at_zero: u64,
    /// The longest such stretch.
    pub longest_at_zero_seconds: f64,
    /// When the longest began, from the start of the run; `null` without one.
    pub longest_at_zero_from_seconds: Option<f64>,
}

/// How long an autoscaler of replicas stood at its maximum.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AutoscalerAtMax {
    /// Namespace and name of the HorizontalPodAutoscaler.
    pub autoscaler: String,
    /// Namespace and name of what it scales.
    pub workload: String,
    /// The most replicas that it may give.
    pub max_replicas: u64,
    /// Time for which the workload wanted as many, or more; without what a cron trigger alone asks for.
    pub at_max_seconds: f64,
    /// When that first began, from the start of the run; `null` where it never did.
    #[serde(default)]
    pub at_max_from_seconds: Option<f64>,
}

impl AvailabilitySummary {
    /// The workloads that count, those that lacked most first, then by name.
    pub fn worst(&self) -> Vec<&WorkloadAvailability> {
        let mut all: Vec<&WorkloadAvailability> =
            self.workloads.iter().filter(|workload| !workload.placeholder).collect();
        let lacks = |workload_availability: &WorkloadAvailability| {
            (workload_availability.at_zero_seconds, workload_availability.unavailable_pod_minutes)
        };
        all.sort_by(|a, b| {
            let ((zero_a, missing_a), (zero_b, missing_b)) = (lacks(a), lacks(b));
            zero_b.total_cmp(&zero_a).then(missing_b.total_cmp(&missing_a)).then(a.workload.cmp(&b.workload))
        });
        all
    }

    /// The autoscalers that stood at their maximum, the longest first, then by name.
    pub fn full(&self) -> Vec<&AutoscalerAtMax> {
        let mut all: Vec<&AutoscalerAtMax> =
            self.autoscalers.iter().filter(|autoscaler| autoscaler.at_max_seconds > 0.0).collect();
        all.sort_by(|a, b| b.at_max_seconds.total_cmp(&a.at_max_seconds).then_with(|| a.autoscaler.cmp(&b.autoscaler)));
        all
    }
}

impl WorkloadAvailability {
    /// The time without a Ready replica in words: `data/db for 1h06m`.
    pub fn at_zero_words(&self) -> String {
        let total = format::span(self.at_zero_seconds);
        let times = match self.times_at_zero {
            0 | 1 => String::new(),
            many => format!(" in {many} periods, longest {}", format::span(self.longest_at_zero_seconds)),
        };
        format!("{} for {total}{times}", self.workload)
    }
}

impl AutoscalerAtMax {
    /// The time at the maximum in words: `shop/web, 40 replicas, for 2h03m from 19h10m on`.
    pub fn words(&self) -> String {
        let replicas = format::counted(self.max_replicas, "replica", "replicas");
        let from = self.at_max_from_seconds.map_or_else(String::new, |from| format!(" from {} on", format::span(from)));
        format!("{}, {replicas}, for {}{from}", self.autoscaler, format::span(self.at_max_seconds))
    }
}

/// Sums up a run.
pub(super) fn summary(outcome: &Outcome) -> AvailabilitySummary {
    let kept = |kind| matches!(kind, WorkloadKind::Deployment | WorkloadKind::StatefulSet);
    let facts = outcome.record.workloads.iter().zip(&outcome.record.availability).enumerate();
    let firsts = firsts_of_wholes(outcome);
    let mut together: BTreeMap<(usize, bool), AvailabilityFacts> = BTreeMap::new();
    for (index, (workload, fact)) in facts.filter(|(_, (workload, _))| kept(workload.kind)) {
        together.entry((firsts[index].index(), workload.placeholder)).or_default().add(fact);
    }
    let counted = || together.iter().filter(|((_, placeholder), _)| !placeholder).map(|(_, key)| key);
    let (wanted, missing) =
        counted().fold((0, 0), |(wanted, missing), names| (wanted + names.wanted, missing + names.missing));
    let longest = |spans: &mut dyn Iterator<Item = SimDuration>| spans.max().map(SimDuration::as_secs_f64);
    let autoscalers = autoscalers(outcome);
    AvailabilitySummary {
        unavailable_pod_minutes: pod_minutes(missing),
        unavailable_share: (wanted > 0).then(|| rounded(missing as f64 / wanted as f64, 6)),
        workloads_at_zero: counted().filter(|item| item.at_zero > SimDuration::ZERO).count() as u64,
        at_zero_seconds: longest(&mut counted().map(|item| item.at_zero)).unwrap_or(0.0),
        at_max_seconds: autoscalers.iter().map(|autoscaler| autoscaler.at_max_seconds).max_by(f64::total_cmp),
        workloads: together
            .iter()
            .map(|(&(index, placeholder), together)| of_workload(outcome, index, placeholder, together))
            .collect(),
        autoscalers,
    }
}

/// For each workload, by number, the first that its replicas are counted with: the first of its kind and name, or the first part of its whole.
fn firsts_of_wholes(outcome: &Outcome) -> Vec<WorkloadId> {
    let mut firsts = made_anew::firsts(outcome);
    let mut wholes = BTreeMap::new();
    for (index, facts) in outcome.record.workloads.iter().enumerate() {
        if let Some(whole) = facts.part_of {
            firsts[index] = *wholes.entry(whole).or_insert_with(|| WorkloadId::from_index(index));
        }
    }
    firsts
}

/// Replica microseconds in replica minutes.
fn pod_minutes(micros: i128) -> f64 {
    rounded(micros as f64 / MINUTE_MICROS, 6)
}

fn of_workload(
    outcome: &Outcome,
    index: usize,
    placeholder: bool,
    availability_facts: &AvailabilityFacts,
) -> WorkloadAvailability {
    WorkloadAvailability {
        workload: whole_of(outcome, index).unwrap_or_else(|| workload_name(outcome, WorkloadId::from_index(index))),
        placeholder,
        wanted_pod_minutes: pod_minutes(availability_facts.wanted),
        unavailable_pod_minutes: pod_minutes(availability_facts.missing),
        at_zero_seconds: availability_facts.at_zero.as_secs_f64(),
        times_at_zero: u64::from(availability_facts.times_at_zero),
        longest_at_zero_seconds: availability_facts.longest_at_zero.as_secs_f64(),
        longest_at_zero_from_seconds: availability_facts.longest_at_zero_from.map(|at| at.as_secs_f64()),
    }
}

/// The name of the whole that a workload is part of.
fn whole_of(outcome: &Outcome, index: usize) -> Option<String> {
    outcome.record.workloads.get(index)?.part_of.map(|whole| whole.to_string())
}

fn autoscalers(outcome: &Outcome) -> Vec<AutoscalerAtMax> {
    let firsts = made_anew::firsts(outcome);
    let at_max = |replica_autoscaler: &ReplicaAutoscaler| {
        let same = |index: &WorkloadId| *index == made_anew::first_of(&firsts, replica_autoscaler.workload);
        let facts = || outcome.record.availability.iter().zip(&firsts).filter(|(_, first)| same(first));
        (replica_autoscaler.min_replicas < replica_autoscaler.max_replicas).then(|| AutoscalerAtMax {
            autoscaler: replica_autoscaler.name.to_string(),
            workload: workload_name(outcome, replica_autoscaler.workload),
            max_replicas: u64::try_from(replica_autoscaler.max_replicas).unwrap_or(0),
            at_max_seconds: facts().fold(SimDuration::ZERO, |sum, (item, _)| sum + item.at_max).as_secs_f64(),
            at_max_from_seconds: facts()
                .filter_map(|(availability_facts, _)| availability_facts.at_max_from)
                .min()
                .map(|at| at.as_secs_f64()),
        })
    };
    outcome.objects.replica_autoscalers.iter().filter_map(at_max).collect()
}

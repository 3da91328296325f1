//! `metrics.om`: the run in the text format of OpenMetrics 1.0, under the names that the programs of a real cluster use,
//! with timestamps, so that a Prometheus can take it in and dashboards made for real clusters show it.
//! `docs/metrics.md` explains each metric.
//!
//! Families of the cluster and its workloads have a sample at every step. Those of single nodes and pods have one where
//! their value changes and one every four minutes; where there would be too many of them, they are left out.

mod cluster_autoscaler;
mod distributions;
mod exposition;
mod karpenter;
mod kube_nodes;
mod kube_pods;
mod kube_workloads;
mod lives;
mod own;

use std::io::{self, Write};

use self::exposition::{Exposition, STEP_MAX};
use self::lives::Lives;
use super::format::count;
use crate::domain::{SimDuration, SimTime};
use crate::simulation::Outcome;

/// The file.
pub const FILE: &str = "metrics.om";

/// How much is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Time between samples, at most four minutes.
    pub step: SimDuration,
    /// About how many samples of single nodes there may be, and how many of single pods; that of workloads only makes
    /// steps longer.
    pub samples_max: u64,
}

impl Settings {
    /// Samples of nodes, and of pods, unless given: some 400 MB each.
    pub const SAMPLES_MAX: u64 = 2_000_000;

    /// Samples every `step`, as many as usual.
    pub const fn every(step: SimDuration) -> Self {
        Self { step, samples_max: Self::SAMPLES_MAX }
    }
}

/// What is written, as far as it is less than was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Time between samples.
    pub step: SimDuration,
    /// Whether it is more than was asked for.
    pub longer: bool,
    /// Samples of single nodes that there would be.
    pub of_nodes: u64,
    /// Whether they are written.
    pub nodes: bool,
    /// Samples of single pods that there would be.
    pub of_pods: u64,
    /// Whether they are written.
    pub pods: bool,
}

impl Extent {
    /// What of `outcome` is written with these settings. The numbers of samples are estimates.
    pub fn of(outcome: &Outcome, settings: Settings) -> Self {
        let mut step = settings.step.max(SimDuration::from_micros(1)).min(STEP_MAX);
        while of_workloads(outcome, step) > settings.samples_max && step < STEP_MAX {
            step = SimDuration::from_micros(step.as_micros() * 2).min(STEP_MAX);
        }
        let (of_nodes, of_pods) = (of_nodes(outcome), of_pods(outcome));
        Self {
            step,
            longer: step > settings.step,
            of_nodes,
            nodes: of_nodes <= settings.samples_max,
            of_pods,
            pods: of_pods <= settings.samples_max,
        }
    }

    /// What is left out, for people.
    pub fn notes(&self) -> Vec<String> {
        let left_out = |whose: &str, number: u64| {
            let number = count(number);
            format!("{FILE}: series of single {whose} are left out, about {number} samples (--open-metrics-samples)")
        };
        let mut notes = Vec::new();
        if self.longer {
            notes.push(format!("{FILE}: samples are {} apart, to be fewer (--open-metrics-samples)", self.step));
        }
        if !self.nodes {
            notes.push(left_out("nodes", self.of_nodes));
        }
        if !self.pods {
            notes.push(left_out("pods", self.of_pods));
        }
        notes
    }
}

/// Samples of the cluster, its workloads and pools.
fn of_workloads(outcome: &Outcome, step: SimDuration) -> u64 {
    let workloads = (outcome.record.workloads.len() + outcome.objects.replica_autoscalers.len()) as u64;
    let (pools, groups) = (outcome.objects.node_pools.len() as u64, outcome.objects.node_groups.len() as u64);
    let series = workloads * (kube_workloads::SERIES + own::SERIES)
        + pools * karpenter::POOL_SERIES
        + groups * cluster_autoscaler::GROUP_SERIES
        + distributions::HISTOGRAM_LINES;
    let instants = outcome.about.duration.as_micros() / step.as_micros().max(1) + 1;
    series * instants.unsigned_abs()
}

/// Samples of lives that begin and end so, in `series` series each: some for each change, and one every four minutes.
fn of_lives(lives: impl Iterator<Item = (SimTime, Option<SimTime>)>, end: SimTime, series: u64) -> u64 {
    let samples = lives.map(|(from, until)| {
        let lived = until.unwrap_or(end).saturating_since(from.max(SimTime::ZERO));
        3 + lived.as_micros().unsigned_abs() / STEP_MAX.as_micros().unsigned_abs()
    });
    samples.sum::<u64>() * series
}

fn of_nodes(outcome: &Outcome) -> u64 {
    let series = kube_nodes::SERIES + if outcome.objects.karpenter { karpenter::NODE_SERIES } else { 0 };
    let lives = outcome.record.nodes.iter().filter_map(|node| Some((node.registered?, node.terminated)));
    of_lives(lives, SimTime::ZERO + outcome.about.duration, series)
}

fn of_pods(outcome: &Outcome) -> u64 {
    let series = kube_pods::SERIES + if outcome.objects.karpenter { karpenter::POD_SERIES } else { 0 };
    let lives = outcome.record.pods.iter().map(|pod| (pod.created, pod.removed));
    of_lives(lives, SimTime::ZERO + outcome.about.duration, series)
}

/// Writes `outcome` as OpenMetrics.
///
/// # Errors
/// Whatever `output` returns.
pub fn write(outcome: &Outcome, settings: Settings, output: &mut dyn Write) -> io::Result<()> {
    let extent = Extent::of(outcome, settings);
    let cluster = format!("{}/{}", outcome.about.scenario, outcome.about.policy);
    let start = outcome.about.start.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_microsecond);
    let end = SimTime::ZERO + outcome.about.duration;
    let lives = Lives::of(outcome);
    let mut out = Exposition::new(output, &cluster, start, extent.step, end);
    out.job("kube-state-metrics");
    kube_workloads::write(&mut out, &lives)?;
    if extent.nodes {
        kube_nodes::write(&mut out, &lives)?;
    }
    if extent.pods {
        kube_pods::write(&mut out, &lives)?;
    }
    if outcome.objects.karpenter {
        out.job("karpenter");
        karpenter::write(&mut out, &lives)?;
        if extent.nodes {
            karpenter::write_nodes(&mut out, &lives)?;
        }
        if extent.pods {
            karpenter::write_pods(&mut out, &lives)?;
        }
    }
    if outcome.objects.cluster_autoscaler {
        out.job("cluster-autoscaler");
        cluster_autoscaler::write(&mut out, &lives)?;
    }
    out.job("nodecast");
    own::write(&mut out, &lives)?;
    out.finish()
}

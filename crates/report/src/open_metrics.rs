//! `metrics.om`: the run in the text format of OpenMetrics 1.0, under the names that the programs of a real cluster use,
//! with timestamps, so that a Prometheus can take it in and dashboards made for real clusters show it.
//! `docs/metrics.md` explains each metric.
//!
//! Families of the cluster and its workloads have a sample at every step. Those of single nodes and pods have one where
//! their value changes and one each minute; where there would be too many of them, every four minutes, and where that were too
//! many they are left out. Families are written one after the other: what is kept are spans of lives, no samples.

mod claims;
mod cluster_autoscaler;
mod containers;
mod distributions;
mod exposition;
mod karpenter;
mod kube_budgets;
mod kube_jobs;
mod kube_nodes;
mod kube_pods;
mod kube_workloads;
mod lives;
mod mesh;
mod metered;
mod own;
mod owners;

use std::io::{self, Write};

use self::exposition::{Exposition, Family, MINUTE, STEP_MAX};
use self::lives::{FINISHED_STAYS, Lives};
use self::metered::Metered;
use self::owners::Owners;
use super::format::count;
use crate::domain::{SimDuration, SimTime};
use nodecast_world::Outcome;

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
    /// Samples of nodes, and of pods, unless given: some gigabyte each.
    pub const SAMPLES_MAX: u64 = 5_000_000;

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
    /// The series of single nodes.
    pub nodes: Part,
    /// The series of single pods, their Jobs and containers.
    pub pods: Part,
}

/// The series of single nodes or pods.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Samples that there are, or would be: an estimate.
    pub samples: u64,
    /// So often a series has a sample where nothing changes; `None` where none is written.
    pub heartbeat: Option<SimDuration>,
}

impl Part {
    /// What has room, given how many samples there are with a heartbeat.
    fn within(samples_max: u64, samples: impl Fn(SimDuration) -> u64) -> Self {
        let fits = [MINUTE, STEP_MAX].into_iter().find(|heartbeat| samples(*heartbeat) <= samples_max);
        Self { samples: samples(fits.unwrap_or(STEP_MAX)), heartbeat: fits }
    }

    /// What is less than was asked for, for people.
    fn note(&self, whose: &str) -> Option<String> {
        match self.heartbeat {
            Some(MINUTE) => None,
            Some(_) => Some(format!(
                "{FILE}: series of single {whose} have a sample every four minutes only, to be fewer (--open-metrics-samples)"
            )),
            None => {
                let samples = count(self.samples);
                Some(format!(
                    "{FILE}: series of single {whose} are left out, about {samples} samples (--open-metrics-samples)"
                ))
            }
        }
    }
}

impl Extent {
    /// What of `outcome` is written with these settings.
    pub fn new(outcome: &Outcome, settings: Settings) -> Self {
        let mut step = settings.step.max(SimDuration::from_micros(1)).min(STEP_MAX);
        while of_workloads(outcome, step) > settings.samples_max && step < STEP_MAX {
            step = SimDuration::from_micros(step.as_micros() * 2).min(STEP_MAX);
        }
        Self {
            step,
            longer: step > settings.step,
            nodes: Part::within(settings.samples_max, |heartbeat| of_nodes(outcome, heartbeat.max(step))),
            pods: Part::within(settings.samples_max, |heartbeat| of_pods(outcome, (step, heartbeat))),
        }
    }

    /// What is less than was asked for, for people.
    pub fn notes(&self) -> Vec<String> {
        let longer = self
            .longer
            .then(|| format!("{FILE}: samples are {} apart, to be fewer (--open-metrics-samples)", self.step));
        longer.into_iter().chain(self.nodes.note("nodes")).chain(self.pods.note("pods")).collect()
    }
}

/// Samples of the cluster, its workloads and pools.
fn of_workloads(outcome: &Outcome, step: SimDuration) -> u64 {
    let workloads = (outcome.record.workloads.len() + outcome.objects.replica_autoscalers.len()) as u64;
    let (pools, groups) = (outcome.objects.node_pools.len() as u64, outcome.objects.node_groups.len() as u64);
    let budgets = outcome.record.samples.last().map_or(0, |sample| sample.budgets.len()) as u64;
    let series = workloads * (kube_workloads::SERIES + own::SERIES + mesh::SERIES)
        + budgets * kube_budgets::SERIES
        + pools * karpenter::POOL_SERIES
        + groups * cluster_autoscaler::GROUP_SERIES
        + distributions::HISTOGRAM_LINES;
    let instants = outcome.about.duration.as_micros() / step.as_micros().max(1) + 1;
    series * instants.unsigned_abs()
}

/// Samples of a life in `series` series: some for each change, and one each heartbeat.
fn of_life((from, until): (SimTime, SimTime), heartbeat: SimDuration, series: u64) -> u64 {
    let lived = until.saturating_since(from.max(SimTime::ZERO)).as_micros().unsigned_abs();
    (3 + lived / heartbeat.as_micros().unsigned_abs().max(1)) * series
}

fn of_nodes(outcome: &Outcome, heartbeat: SimDuration) -> u64 {
    let series = kube_nodes::SERIES + if outcome.objects.karpenter { karpenter::NODE_SERIES } else { 0 };
    let end = SimTime::ZERO + outcome.about.duration;
    let lives = outcome.record.nodes.iter().filter_map(|node| Some((node.registered?, node.terminated.unwrap_or(end))));
    lives.map(|life| of_life(life, heartbeat, series)).sum()
}

/// Samples of pods and their containers, which have one at each step where others have one each minute, and of Jobs.
fn of_pods(outcome: &Outcome, (step, heartbeat): (SimDuration, SimDuration)) -> u64 {
    let series = kube_pods::SERIES + if outcome.objects.karpenter { karpenter::POD_SERIES } else { 0 };
    let end = SimTime::ZERO + outcome.about.duration;
    let used_every = if heartbeat > MINUTE { heartbeat } else { step };
    let pods = outcome.record.pods.iter().map(|pod| {
        let until = pod.removed.unwrap_or(end);
        let stays = if pod.job.is_some() { (until + FINISHED_STAYS).min(end) } else { until };
        let used = pod.started.filter(|_| !pod.serving.is_empty());
        of_life((pod.created, stays), heartbeat.max(step), series)
            + used.map_or(0, |from| of_life((from, until), used_every, containers::SERIES))
    });
    let jobs = outcome.record.jobs.iter().map(|job| {
        let (from, until) = kube_jobs::life_of(job);
        of_life((from, until.unwrap_or(end).min(end)), heartbeat.max(step), kube_jobs::SERIES)
    });
    pods.chain(jobs).sum()
}

/// Writes `outcome` as OpenMetrics.
///
/// # Errors
/// Whatever `output` returns.
pub fn write(outcome: &Outcome, settings: Settings, output: &mut dyn Write) -> io::Result<()> {
    let extent = Extent::new(outcome, settings);
    let cluster = format!("{}/{}", outcome.about.scenario, outcome.about.policy);
    let start = outcome.about.start.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_microsecond);
    let end = SimTime::ZERO + outcome.about.duration;
    let lives = Lives::from_outcome(outcome);
    let (owners, metered) = (Owners::of_run(&lives), Metered::from_lives(&lives));
    let mut out = Exposition::new(output, &cluster, start, extent.step, end);
    write_kube(&mut out, &lives, &owners, extent)?;
    if let Some(heartbeat) = extent.pods.heartbeat {
        out.job_at("kubelet", "/metrics/cadvisor");
        out.beat(heartbeat);
        containers::write(&mut out, &lives, &metered)?;
    }
    out.job(MESH);
    mesh::write(&mut out, &lives, &metered)?;
    if outcome.objects.karpenter {
        out.job("karpenter");
        karpenter::write(&mut out, &lives)?;
        if let Some(heartbeat) = extent.nodes.heartbeat {
            out.beat(heartbeat);
            karpenter::write_nodes(&mut out, &lives)?;
        }
        if let Some(heartbeat) = extent.pods.heartbeat {
            out.beat(heartbeat);
            karpenter::write_pods(&mut out, &lives, &owners)?;
        }
    }
    if outcome.objects.cluster_autoscaler {
        out.job("cluster-autoscaler");
        cluster_autoscaler::write(&mut out, &lives)?;
    }
    out.job("nodecast");
    own::write(&mut out, &lives)?;
    up(&mut out, outcome)?;
    out.finish()
}

/// The job under which the proxies of a mesh are scraped.
const MESH: &str = "envoy-stats";

/// What kube-state-metrics tells.
fn write_kube(out: &mut Exposition<'_>, lives: &Lives<'_>, owners: &Owners, extent: Extent) -> io::Result<()> {
    out.job("kube-state-metrics");
    kube_workloads::write(out, lives)?;
    kube_budgets::write(out, lives)?;
    owners.write(out, lives)?;
    if let Some(heartbeat) = extent.nodes.heartbeat {
        out.beat(heartbeat);
        kube_nodes::write(out, lives)?;
    }
    if let Some(heartbeat) = extent.pods.heartbeat {
        out.beat(heartbeat);
        kube_pods::write(out, lives, owners)?;
        kube_jobs::write(out, lives)?;
    }
    Ok(())
}

/// A scrape of each job succeeds at every step.
fn up(out: &mut Exposition<'_>, outcome: &Outcome) -> io::Result<()> {
    out.family(Family::gauge("up", "1 where the job answers."));
    let autoscalers =
        [("karpenter", outcome.objects.karpenter), ("cluster-autoscaler", outcome.objects.cluster_autoscaler)];
    let autoscalers = autoscalers.into_iter().filter(|(_, is_there)| *is_there).map(|(job, _)| job);
    for job in ["kube-state-metrics", "kubelet", MESH, "nodecast"].into_iter().chain(autoscalers) {
        out.job(job);
        out.series(&Vec::new(), SimTime::ZERO, |_| Some(1.0))?;
    }
    Ok(())
}

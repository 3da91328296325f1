//! What the autoscaler decided, and why, for the record: in the words of its own events.
//!
//! Source: Cluster Autoscaler 1.36 `processors/status/eventing_scale_up_processor.go`, `core/scaleup/orchestrator`.

use std::collections::BTreeMap;

use super::client::{Subject, notify};
use super::observation::IterationInput;
use crate::actors::cluster_autoscaler::AutoscalerLoop;
use crate::actors::sim::Sim;
use crate::domain::taints::first_untolerated;
use crate::domain::words::counted;
use crate::domain::{NodeId, PodId, SimTime};
use crate::world::record::{CapacityLimit, EventKind, ScaleUpFacts};
use nodecast_cluster_autoscaler::cluster_state::{FailureReason, ScaleUpFailure};
use nodecast_cluster_autoscaler::scale_down::{NodeFinding, UnremovableReason};
use nodecast_cluster_autoscaler::scale_up::SkipReason;
use nodecast_cluster_autoscaler::templates::is_ready;
use nodecast_cluster_autoscaler::view::InstanceError;
use nodecast_cluster_autoscaler::{ClusterAutoscaler, EarlyEnd, Iteration, ScaleUpReport, ScaleUpResult};

/// Why nothing grows in a cluster of so many nodes.
const CLUSTER_IS_FULL: &str = "the cluster has as many nodes as max-nodes-total allows";

/// What was noted last, so that it is not noted with every iteration again.
#[derive(Debug, Default)]
pub(super) struct LastReasons {
    /// For each pod that waits, why no group grew for it.
    pods: BTreeMap<PodId, Box<str>>,
    /// For each node that little is requested of, why it stays nevertheless.
    nodes: BTreeMap<NodeId, Box<str>>,
    /// Why the whole iteration did nothing.
    held_back: Option<&'static str>,
}

impl LastReasons {
    /// Why a node was last found not to be removable, while that holds.
    pub(super) fn of_node(&self, node: NodeId) -> Option<&str> {
        self.nodes.get(&node).map(|why| &**why)
    }

    /// Forgets a node that is gone.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.nodes.remove(&node);
    }
}

/// Notes what an iteration found and did.
pub(super) fn record(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    program: &ClusterAutoscaler,
    seen: &IterationInput,
    iteration: &Iteration,
    now: SimTime,
) {
    held_back(sim, autoscaler, iteration, now);
    for failure in &iteration.failures {
        let nodes = u32::try_from(failure.increase).unwrap_or(0);
        sim.world.note_scale_up(ScaleUpFacts { at: now, nodes, failure: Some(metric_reason(failure.reason)) });
        sim.world.note(now, EventKind::FailedToScaleUpGroup, None, failure_text(failure));
    }
    for growth in iteration.raised.grown.iter().chain(&iteration.scale_up.grown) {
        let nodes = u32::try_from(growth.to - growth.from).unwrap_or(0);
        sim.world.note_scale_up(ScaleUpFacts { at: now, nodes, failure: None });
    }
    for (group, instances) in &iteration.given_up {
        let message = format!("{}: {}", seen.group(*group).id, instances.join(", "));
        sim.world.note(now, EventKind::DeleteUnregistered, None, message);
    }
    if !iteration.raised.grown.is_empty() {
        let message = format!("{}, up to their least sizes", growth_text(seen, &iteration.raised));
        sim.world.note(now, EventKind::ScaledUpGroup, None, message);
    }
    if !iteration.scale_up.grown.is_empty() {
        scaled_up(sim, autoscaler, program, seen, &iteration.scale_up, now);
    }
    not_scaled_up(sim, autoscaler, seen, &iteration.scale_up, now);
    for (at, found) in iteration.scale_down.nodes.iter().enumerate() {
        stays(sim, autoscaler, seen, at, found, now);
    }
}

/// Posts the events of an iteration about groups and pods: two about each group that grows, one about each pod that waits.
pub(super) fn announce(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    seen: &IterationInput,
    iteration: &Iteration,
    now: SimTime,
) {
    let status = |count: usize| std::iter::repeat_n(Subject::Status, count);
    let scale_up = &iteration.scale_up;
    let pods = |pods: &[usize], subject: fn(PodId) -> Subject| -> Vec<Subject> {
        pods.iter().map(|&pod| subject(seen.pod(pod))).collect()
    };
    let asked = |report: &ScaleUpReport| 2 * (report.grown.len() + report.failed.len());
    notify(sim, autoscaler, now, status(iteration.failures.len() + iteration.given_up.len() + asked(scale_up)));
    if !matches!(scale_up.result, ScaleUpResult::Successful | ScaleUpResult::Error) {
        notify(sim, autoscaler, now, pods(&scale_up.unschedulable, Subject::NotHelped));
    }
    if !scale_up.grown.is_empty() {
        notify(sim, autoscaler, now, pods(&scale_up.triggered, Subject::Helped));
    }
    notify(sim, autoscaler, now, status(asked(&iteration.raised)));
}

/// A node of which little is requested, and which stays because of its pods: each time that the reason changes.
fn stays(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    seen: &IterationInput,
    at: usize,
    found: &NodeFinding,
    now: SimTime,
) {
    let node = seen.node(at);
    let message: Box<str> = match (found.reason, found.blocking) {
        (Some(UnremovableReason::BlockedByPod), Some((pod, why))) => format!(
            "{}: {} ({})",
            UnremovableReason::BlockedByPod.as_str(),
            sim.world.pod_name(seen.pod(pod)),
            why.as_str()
        )
        .into(),
        (Some(reason @ UnremovableReason::NoPlaceToMovePods), _) => reason.as_str().into(),
        // The finding of a while ago holds on.
        (Some(UnremovableReason::RecentlyUnremovable), _) => return,
        _ => {
            autoscaler.noted.forget(node);
            return;
        }
    };
    let noted = autoscaler.noted.nodes.insert(node, message.clone());
    if noted.as_deref() != Some(&*message) {
        sim.world.note_node(node, now, EventKind::NodeNotRemovable, &message);
    }
}

fn held_back(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, iteration: &Iteration, now: SimTime) {
    let reason = match (iteration.early_end, iteration.scale_up.result) {
        (Some(EarlyEnd::UnhealthyCluster), _) => Some("too many nodes are not ready"),
        (Some(EarlyEnd::EmptyCluster), _) => Some("the cluster has no node"),
        (_, ScaleUpResult::LimitedByMaxNodesTotal) => Some(CLUSTER_IS_FULL),
        _ => None,
    };
    let noted = std::mem::replace(&mut autoscaler.noted.held_back, reason);
    if let Some(reason) = reason
        && noted != Some(reason)
    {
        sim.world.note(now, EventKind::AutoscalingHeldBack, None, reason);
    }
}

/// The reason as the program's metrics write it.
///
/// Source: Cluster Autoscaler 1.36 `metrics/metrics.go`, `clusterstate/clusterstate.go`, and the error code of the AWS
/// provider's placeholders in `cloudprovider/aws/aws_cloud_provider.go`.
const fn metric_reason(reason: FailureReason) -> &'static str {
    match reason {
        FailureReason::Api => "cloudProviderError",
        FailureReason::Timeout => "timeout",
        FailureReason::Creation(_) => "placeholder-cannot-be-fulfilled",
    }
}

fn failure_text(failure: &ScaleUpFailure) -> String {
    let (group, increase) = (failure.group, failure.increase);
    let why = match failure.reason {
        FailureReason::Api => "the call was refused",
        FailureReason::Timeout => "its nodes did not come within max-node-provision-time",
        FailureReason::Creation(InstanceError::OutOfResources) => "EC2 had no capacity for its instances",
        FailureReason::Creation(InstanceError::QuotaExceeded) => "a quota is exceeded",
        FailureReason::Creation(InstanceError::Other) => "its instances could not be created",
    };
    format!("{group}: {why} ({increase} asked for); it is left alone for a while")
}

/// Which groups grew, as the program writes it: `[{workers 2->4 (max: 10)}]`.
fn growth_text(seen: &IterationInput, report: &ScaleUpReport) -> String {
    let grown = report.grown.iter().map(|growth| {
        let group = seen.group(growth.group).id;
        format!("{{{group} {}->{} (max: {})}}", growth.from, growth.to, growth.max)
    });
    format!("[{}]", grown.collect::<Vec<_>>().join(" "))
}

fn scaled_up(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    program: &ClusterAutoscaler,
    seen: &IterationInput,
    report: &ScaleUpReport,
    now: SimTime,
) {
    let text = growth_text(seen, report);
    let options: Vec<String> = report
        .options
        .iter()
        .map(|option| format!("{} x{} for {}", seen.group(option.group).id, option.nodes, option.pods.len()))
        .collect();
    let expanders: Vec<String> = program.flags().expander.filters().iter().map(ToString::to_string).collect();
    let drawn = if report.choices.len() > 1 { ", by lot among equals" } else { "" };
    let message = format!(
        "{text} for {}: {} of {} ({}){drawn}",
        counted(report.triggered.len() as u64, "pod", "pods"),
        expanders.join(","),
        counted(options.len() as u64, "option", "options"),
        options.join("; "),
    );
    sim.world.note(now, EventKind::ScaledUpGroup, None, message);
    let message = format!("pod triggered scale-up: {text}");
    for &pod in &report.triggered {
        autoscaler.noted.pods.remove(&seen.pod(pod));
        sim.world.note_pod(seen.pod(pod), now, EventKind::TriggeredScaleUp, &message);
    }
}

/// Pods that no group helps, each time that the reason changes.
fn not_scaled_up(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    seen: &IterationInput,
    report: &ScaleUpReport,
    now: SimTime,
) {
    let known = &mut autoscaler.noted.pods;
    let waiting: Vec<PodId> = report.considered.iter().map(|&pod| seen.pod(pod)).collect();
    known.retain(|pod, _| waiting.contains(pod));
    if report.unschedulable.is_empty() || report.result == ScaleUpResult::NotNeeded {
        return;
    }
    note_limits(sim, seen, report, now);
    let message: Box<str> = format!("pod didn't trigger scale-up: {}", reasons(seen, report)).into();
    for &pod in &report.unschedulable {
        let pod = seen.pod(pod);
        let known = &mut autoscaler.noted.pods;
        if known.insert(pod, message.clone()).as_deref() != Some(&*message) {
            sim.world.note_pod(pod, now, EventKind::NotTriggerScaleUp, &message);
        }
    }
}

/// Says which pods wait because a group that would take them is at its maximum size, or the cluster is at its own.
fn note_limits(sim: &mut Sim<'_>, seen: &IterationInput, report: &ScaleUpReport, now: SimTime) {
    let waiting = || report.unschedulable.iter().map(|&pod| seen.pod(pod));
    if report.result == ScaleUpResult::LimitedByMaxNodesTotal {
        sim.world.note_limit(CapacityLimit::AllNodes, waiting(), now);
    }
    for (group, _) in report.skipped.iter().filter(|(_, reason)| *reason == SkipReason::MaxSizeReached) {
        let group = seen.group(*group);
        let Some(template) = &group.template else { continue };
        let takes = |pod: &PodId| {
            let spec = &sim.world.pod(*pod).spec;
            spec.selects_node(&template.labels, "")
                && first_untolerated(&template.taints, &spec.tolerations).is_none()
                && spec.requests().fits(&template.allocatable)
        };
        let pods: Vec<PodId> = waiting().filter(takes).collect();
        if !pods.is_empty() {
            let limit = CapacityLimit::NodeGroup(group.id, u64::try_from(group.max).unwrap_or(0));
            sim.world.note_limit(limit, pods, now);
        }
    }
}

/// Why no group helps a pod.
fn reasons(seen: &IterationInput, report: &ScaleUpReport) -> String {
    // No group was looked at.
    if report.result == ScaleUpResult::LimitedByMaxNodesTotal {
        return CLUSTER_IS_FULL.to_owned();
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, reason) in &report.skipped {
        *counts.entry(reason.text()).or_insert(0) += 1;
    }
    let fitless = seen.group_count() - report.skipped.len();
    if fitless > 0 {
        counts.insert("whose nodes do not take it".to_owned(), fitless);
    }
    let reasons: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    reasons.join(", ")
}

/// Why a node goes.
pub(super) fn removal_reason(
    program: &ClusterAutoscaler,
    seen: &IterationInput,
    at: usize,
    found: &NodeFinding,
    now: SimTime,
) -> String {
    let node: NodeId = seen.node(at);
    let since = program.planner().unneeded_since(node).map_or(String::new(), |since| format!(" for {}", now - since));
    let share = found
        .utilization
        .map_or(String::new(), |used| format!(", {:.0} % of its {} requested", 100.0 * used.share, used.resource));
    let ready = if is_ready(seen.view(at)) { "" } else { "not ready and " };
    format!("{ready}unneeded{since}{share}")
}

//! The pod that represents each DaemonSet on nodes to come: its newest pod once Karpenter has seen one, its template before that.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/state/informer/daemonset.go`, `pkg/controllers/state/cluster.go` (`UpdateDaemonSet`),
//! `pkg/controllers/provisioning/provisioner.go` (`getDaemonSetPods`); the same since core v0.25.0 (#169). Core v0.22 to v0.24 read the
//! template alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::step::Step;
use nodecast_model::domain::{PodId, PodSpec, SimDuration, SimTime, WorkloadId};

/// Between two looks for the pods of a DaemonSet.
const POLL: SimDuration = SimDuration::from_secs(60);

/// DaemonSets of which Karpenter has seen a pod. It remembers the pod when it is gone.
#[derive(Debug, Default)]
pub(super) struct KnownDaemons(BTreeSet<WorkloadId>);

/// Pods made so soon after Karpenter's start count as made before it: those of nodes that are there from the start.
const AT_START: SimDuration = SimDuration::from_secs(1);

/// Looks for pods of the DaemonSets whose templates say less than their pods, as of the last poll.
///
/// Deviation: all DaemonSets are polled at once, from Karpenter's start. Upstream polls each from its creation or
/// from the program's start, whichever is later. A template that changes later applies from the next pass.
pub(super) fn learn(step: &mut Step<'_>, now: SimTime) {
    if !step.karpenter.behaviour.reads_daemon_pods {
        return;
    }
    let begins = step.karpenter.settings.begins;
    let polls = (now - begins).as_micros().div_euclid(POLL.as_micros());
    let polled = (begins + POLL * polls).max(begins + AT_START);
    let seen = |pod: &PodId| step.cluster.pod(*pod).created <= polled;
    let found = step.cluster.daemon_sets().filter(|(id, workload)| {
        workload.template.as_written.is_some()
            && !step.karpenter.daemons.0.contains(id)
            && workload.pods.iter().any(seen)
    });
    let found: Vec<WorkloadId> = found.map(|(id, _)| id).collect();
    step.karpenter.daemons.0.extend(found);
}

/// What Karpenter counts for each DaemonSet.
pub(super) fn representatives(step: &Step<'_>) -> Vec<Arc<PodSpec>> {
    let representative = |(id, template): (WorkloadId, &Arc<PodSpec>)| {
        let written = template.as_written.as_ref().filter(|_| !step.karpenter.daemons.0.contains(&id));
        Arc::clone(written.unwrap_or(template))
    };
    step.cluster.daemon_sets().map(|(id, workload)| representative((id, &workload.template))).collect()
}

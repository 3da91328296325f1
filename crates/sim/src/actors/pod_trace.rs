//! A recorded cluster's pods: made, and ended, when the trace says so.
//!
//! Only the next row is on the queue, and only pods that are there are remembered, so a long trace costs as it goes.

use std::collections::BTreeMap;

use super::event::{WorkloadEvent, class};
use super::kubelet;
use super::sim::Sim;
use super::workload_controllers::bare_pods;
use crate::cluster::NewWorkload;
use crate::domain::workload::ObjectName;
use crate::domain::{LabelSelector, PodId, SimDuration, SimTime, Symbol, WorkloadId};
use crate::world::record::{EventKind, WorkloadKind};
use nodecast_settings::{PodTrace, TraceEnd};

/// From the loss of a pod to its replacement.
const REACTION: SimDuration = SimDuration::from_millis(100);

/// How far the trace has come.
#[derive(Debug, Default)]
pub(super) struct TraceLoop {
    workload: Option<WorkloadId>,
    /// The next row.
    next: usize,
    /// The row of every pod that is there.
    rows: BTreeMap<PodId, u32>,
    /// Rows of pods that were lost, with their names.
    lost: Vec<(u32, String)>,
}

impl TraceLoop {
    /// The first row is put on the queue.
    pub(super) fn begin(&mut self, sim: &mut Sim<'_>) {
        let setup = sim.setup;
        let Some(trace) = setup.scenario.pods.as_deref() else { return };
        let [first, others @ ..] = trace.templates.as_slice() else { return };
        let workload = sim.world.add_workload(
            NewWorkload {
                name: ObjectName { namespace: trace.namespace, name: Symbol::new("(trace)") },
                kind: WorkloadKind::Pods,
                // It selects nothing: the owners of its pods are not known.
                selector: LabelSelector::default(),
                template: first.clone(),
                replicas: 0,
            },
            false,
        );
        for template in others {
            sim.world.add_revision(workload, template.clone());
        }
        let pods: u64 = trace.rows.iter().map(|row| u64::from(row.count)).sum();
        sim.world.note(SimTime::ZERO, EventKind::ManifestApplied, Some(workload), format!("a trace of {pods} pods"));
        self.workload = Some(workload);
        self.plan(sim, trace);
    }

    fn plan(&mut self, sim: &mut Sim<'_>, trace: &PodTrace) {
        if let Some(row) = trace.rows.get(self.next) {
            sim.queue.schedule(row.at, class::PEOPLE, WorkloadEvent::TraceStep);
        }
    }

    fn row_of(&self, pod: PodId) -> Option<u32> {
        self.rows.get(&pod).copied()
    }

    /// A pod's containers run: one whose run time is recorded ends when it has run so long.
    pub(super) fn pod_started(&mut self, sim: &mut Sim<'_>, pod: PodId) {
        let setup = sim.setup;
        let row = self.row_of(pod).and_then(|row| setup.scenario.pods.as_deref()?.rows.get(row as usize));
        if let Some(TraceEnd::After(time)) = row.map(|row| row.end) {
            sim.queue.schedule_in(time, class::MACHINES, WorkloadEvent::JobPodDone(pod));
        }
    }

    /// A pod leaves before its recorded end: evicted, preempted, or gone with its node.
    pub(super) fn pod_leaves(&mut self, sim: &mut Sim<'_>, pod: PodId) {
        let Some(row) = self.rows.remove(&pod) else { return };
        if sim.setup.scenario.pods.as_deref().is_some_and(|trace| trace.again) {
            let name = format!("{}-again", sim.world.pod_name(pod).trim_end_matches("-again"));
            self.lost.push((row, name));
            sim.queue.schedule_in(REACTION, class::CONTROLLERS, WorkloadEvent::TraceAgain);
        }
    }
}

/// All rows of this instant.
pub(super) fn step(sim: &mut Sim<'_>, pod_trace: &mut TraceLoop, now: SimTime) {
    let setup = sim.setup;
    let Some(trace) = setup.scenario.pods.as_deref() else { return };
    while let Some(row) = trace.rows.get(pod_trace.next).filter(|row| row.at <= now) {
        let number = pod_trace.next as u32;
        pod_trace.next += 1;
        let name = match &row.name {
            Some(name) => name.to_string(),
            None => format!("trace-{:06}", number + 1),
        };
        for copy in 0..row.count {
            let name = if row.count == 1 { name.clone() } else { format!("{name}-{copy}") };
            create(sim, pod_trace, now, trace, number, name);
        }
    }
    pod_trace.plan(sim, trace);
}

fn create(sim: &mut Sim<'_>, pod_trace: &mut TraceLoop, now: SimTime, trace: &PodTrace, number: u32, name: String) {
    let (Some(workload), Some(row)) = (pod_trace.workload, trace.rows.get(number as usize)) else { return };
    let pod = bare_pods::create(sim, now, workload, row.template, name);
    pod_trace.rows.insert(pod, number);
    if let TraceEnd::At(end) = row.end {
        sim.queue.schedule(end.max(now), class::PEOPLE, WorkloadEvent::TracePodEnds(pod));
    }
}

/// The recorded end of a pod: it is deleted, however far it has come.
pub(super) fn pod_ends(sim: &mut Sim<'_>, pod_trace: &mut TraceLoop, now: SimTime, pod: PodId) {
    if pod_trace.rows.remove(&pod).is_some() {
        kubelet::delete(sim, now, pod, false, "the trace ends it");
    }
}

/// A pod has run as long as it was to.
pub(super) fn pod_done(sim: &mut Sim<'_>, pod_trace: &mut TraceLoop, now: SimTime, pod: PodId) {
    if sim.world.pod(pod).is_active() && pod_trace.rows.remove(&pod).is_some() {
        kubelet::succeeded(sim, now, pod);
    }
}

/// Pods that were lost are made again, unless their recorded end has come.
pub(super) fn make_again(sim: &mut Sim<'_>, pod_trace: &mut TraceLoop, now: SimTime) {
    let setup = sim.setup;
    let Some(trace) = setup.scenario.pods.as_deref() else { return };
    for (row, name) in std::mem::take(&mut pod_trace.lost) {
        let over = trace.rows.get(row as usize).is_none_or(|row| matches!(row.end, TraceEnd::At(end) if end <= now));
        if !over {
            create(sim, pod_trace, now, trace, row, name);
        }
    }
}

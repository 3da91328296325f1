//! Which object made what: the ReplicaSet, Job or other controller of a pod, and who made that.
//!
//! Source: kube-state-metrics 2.15 `docs/metrics/workload`.

use std::collections::BTreeMap;
use std::io;

use super::exposition::{Exposition, Family, Labels, Spans};
use super::lives::{Lives, value};
use crate::domain::{SimTime, WorkloadId};
use nodecast_world::record::{PodFacts, WorkloadFacts, WorkloadKind};

/// The letters of generated names.
///
/// Source: Kubernetes 1.36 `staging/src/k8s.io/apimachinery/pkg/util/rand/rand.go`, `alphanums`.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The ReplicaSets of Deployments, one for each template that had a pod.
pub(super) struct Owners {
    /// By workload and revision: its name, and when its first pod was created.
    replica_sets: BTreeMap<(WorkloadId, u32), (String, SimTime)>,
}

impl Owners {
    pub(super) fn of_run(lives: &Lives<'_>) -> Self {
        let mut replica_sets: BTreeMap<(WorkloadId, u32), (String, SimTime)> = BTreeMap::new();
        for (_, ref pod) in lives.pods() {
            let Some(workload) = lives.workload_of(pod).filter(|workload| workload.kind == WorkloadKind::Deployment)
            else {
                continue;
            };
            let name =
                || (found_name(workload, pod).unwrap_or_else(|| drawn_name(workload, pod.revision)), pod.created);
            replica_sets.entry((pod.workload, pod.revision)).or_insert_with(name);
        }
        Self { replica_sets }
    }

    /// Kind and name of what made a pod; both empty where nothing did.
    pub(super) fn owner(&self, lives: &Lives<'_>, pod: &PodFacts) -> (String, String) {
        let Some(workload) = lives.workload_of(pod) else { return Default::default() };
        let job = pod.job.and_then(|job| lives.outcome.record.jobs.get(job as usize));
        let name = match workload.kind {
            WorkloadKind::Pods => return Default::default(),
            WorkloadKind::Deployment => {
                self.replica_sets.get(&(pod.workload, pod.revision)).map_or_else(String::new, |(name, _)| name.clone())
            }
            _ => job.map_or_else(|| workload.name.name.to_string(), |job| job.name.to_string()),
        };
        (maker(workload.kind).to_owned(), name)
    }

    /// The series of the ReplicaSets.
    pub(super) fn write(&self, out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
        out.family(Family::gauge("kube_replicaset_owner", "1 for each ReplicaSet, with the object that made it."));
        let mut spans = Spans::default();
        for ((workload, _), (name, from)) in &self.replica_sets {
            let Some(this_workload) = lives.outcome.record.workloads.get(workload.index()) else { continue };
            let mut labels =
                vec![("namespace", this_workload.name.namespace.to_string()), ("replicaset", name.clone())];
            labels.extend(owner_labels(("Deployment".to_owned(), this_workload.name.name.to_string())));
            spans.add(labels, (*from, lives.deleted(*workload)), 1.0);
        }
        out.spans(spans, true)
    }
}

/// The labels that name an owner, as those of pods, ReplicaSets and Jobs are called; without one they are empty.
pub(super) fn owner_labels((kind, name): (String, String)) -> [(&'static str, String); 3] {
    let controls = if kind.is_empty() { "" } else { "true" };
    [("owner_kind", kind), ("owner_name", name), ("owner_is_controller", controls.to_owned())]
}

/// The kind of object that makes the pods of a workload.
pub(super) const fn maker(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::Deployment => "ReplicaSet",
        WorkloadKind::DaemonSet => "DaemonSet",
        WorkloadKind::StatefulSet => "StatefulSet",
        WorkloadKind::ScaledJob | WorkloadKind::Job | WorkloadKind::CronJob => "Job",
        WorkloadKind::Pods => "",
    }
}

/// The ReplicaSet of a pod that was there when the run began: its name says it.
fn found_name(workload_facts: &WorkloadFacts, pod: &PodFacts) -> Option<String> {
    let (set, _) = pod.name.rsplit_once('-').filter(|_| pod.found)?;
    let hash = set.strip_prefix(workload_facts.name.name.as_str())?.strip_prefix('-')?;
    (!hash.is_empty()).then(|| set.to_owned())
}

/// A name of the kind that a Deployment gives to the ReplicaSet of one of its templates. The hash is not that of the template but
/// of its number: what the real one is made from is not all known here.
///
/// Source: Kubernetes 1.36 `pkg/controller/controller_utils.go`, `ComputeHash`; `rand.go`, `SafeEncodeString`.
fn drawn_name(workload_facts: &WorkloadFacts, revision: u32) -> String {
    let text = format!("{}/{revision}", workload_facts.name);
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let letter = |digit: u8| LETTERS.get(usize::from(digit) % LETTERS.len()).copied().map_or('b', char::from);
    let encoded: String = hash.to_string().bytes().map(letter).collect();
    format!("{}-{encoded}", value(Some(workload_facts.name.name)))
}

/// The labels that name a Job.
pub(super) fn job_labels(lives: &Lives<'_>, workload: WorkloadId, name: &str) -> Labels {
    let workload = lives.outcome.record.workloads.get(workload.index());
    vec![("namespace", value(workload.map(|item| item.name.namespace))), ("job_name", name.to_owned())]
}

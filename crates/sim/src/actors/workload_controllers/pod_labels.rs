//! Labels that controllers put on the pods that they make, beside those of the template.
//!
//! Pods that are alike share one specification, and much of what a run keeps is kept by specification. A hash of the template is the
//! same for all pods of a template, so every pod has it. What tells pods or Jobs of one template apart (a pod's name, its ordinal, the
//! name of its Job) is put on pods only where something selects by that key ([`Setup::selecting_labels`]): elsewhere nobody could tell
//! the difference, and every pod would have a specification of its own.
//!
//! Deviation: if no selector uses them, pods of a StatefulSet or a Job have no labels with their name, ordinal, or
//! Job. The Cluster Autoscaler then treats pods of a StatefulSet as equal. Pods of Indexed Jobs never have the label
//! with their index.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/deployment/sync.go` (`getNewReplicaSet`), `pkg/controller/history/controller_history.go`
//! (`HashControllerRevision`), `pkg/controller/statefulset/stateful_set_utils.go` (`initIdentity`, `updateIdentity`),
//! `pkg/registry/batch/job/strategy.go` (`generateSelector`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::sync::Arc;

use super::super::setup::{InitialPlan, Setup};
use super::super::sim::Sim;
use crate::domain::pod::OwnerKind;
use crate::domain::workload::{ObjectName, TEMPLATE_HASH};
use crate::domain::{KubernetesBehaviour, KubernetesVersion, PodId, PodSpec, SimTime, Symbol};
use crate::single_pass::NamedPod;

/// What the revisions of StatefulSets and DaemonSets are told apart by.
const REVISION_HASH: &str = "controller-revision-hash";
/// The name of a StatefulSet's pod.
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// Its ordinal.
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
/// The name of a Job and what stands for its UID; by the older and the newer key.
const JOB: [(&str, &str); 2] =
    [("job-name", "batch.kubernetes.io/job-name"), ("controller-uid", "batch.kubernetes.io/controller-uid")];

/// Takes off what the controller of such pods tells their templates apart by; the key, if it does.
pub(super) fn remove_hash(template: &mut PodSpec) -> Option<Symbol> {
    let key = match template.owner {
        OwnerKind::ReplicaSet => TEMPLATE_HASH,
        OwnerKind::StatefulSet | OwnerKind::DaemonSet => REVISION_HASH,
        _ => return None,
    };
    let key = Symbol::new(key);
    template.labels.remove(key);
    Some(key)
}

/// Puts on what the controller of such pods tells their templates apart by: `known`, or a hash of what they look like, so that templates
/// that are equal have the same one.
pub(super) fn set_hash(template: &mut PodSpec, known: Option<Symbol>) {
    if let Some(key) = remove_hash(template) {
        let hash = known.unwrap_or_else(|| hash_of(template));
        template.labels.set(key, hash);
    }
}

/// FNV-1a over all that the template says: the same in every run.
fn hash_of(template: &PodSpec) -> Symbol {
    struct Fnv(u64);
    impl Write for Fnv {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for byte in text.bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            Ok(())
        }
    }
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    // Writing into it cannot fail.
    let _ = write!(hash, "{template:?}");
    Symbol::new(&format!("{:016x}", hash.0))
}

/// The hashes that Deployments' pods of a dump carry: those of the newest pod of each.
pub(super) fn hashes_of_dump(setup: &Setup<'_>) -> BTreeMap<ObjectName, Symbol> {
    let mut newest: BTreeMap<ObjectName, (SimTime, Symbol)> = BTreeMap::new();
    let key = Symbol::new(TEMPLATE_HASH);
    let mut take = |pod: &NamedPod| {
        let name = pod.workload.rsplit('/').next().unwrap_or_default();
        let owner = ObjectName { namespace: pod.namespace, name: Symbol::new(name) };
        let Some(hash) = pod.spec.labels.get(key).filter(|_| pod.spec.owner == OwnerKind::ReplicaSet) else { return };
        let known = newest.entry(owner).or_insert((pod.created, hash));
        if known.0 < pod.created {
            *known = (pod.created, hash);
        }
    };
    for initial in setup.initial.iter().filter(|initial| InitialPlan::is_dump(initial)) {
        initial.nodes.iter().flat_map(|node| &node.found.pods).for_each(&mut take);
        initial.waiting.iter().for_each(|pod| take(pod));
    }
    newest.into_iter().map(|(name, (_, hash))| (name, hash)).collect()
}

/// Labels a pod of a StatefulSet by its name and ordinal.
pub(super) fn label_ordinal(sim: &mut Sim<'_>, pod: PodId, ordinal: u32) {
    let wanted = &sim.setup.selecting_labels;
    let labels = ordinal_labels(wanted, sim.control_plane, sim.world.pod_name(pod), ordinal);
    label(sim, pod, labels);
}

fn ordinal_labels(
    wanted: &BTreeSet<Symbol>,
    version: KubernetesVersion,
    name: &str,
    ordinal: u32,
) -> Vec<(Symbol, Symbol)> {
    let known = [
        (POD_NAME, None, name.to_owned()),
        (POD_INDEX, Some(KubernetesBehaviour::StatefulSetIndexLabel), ordinal.to_string()),
    ];
    of_wanted(wanted, version, known)
}

/// Labels a pod of the Job at this position of the record by that Job.
pub(in crate::actors) fn label_job(sim: &mut Sim<'_>, pod: PodId, job: usize) {
    let Some(facts) = sim.world.record().jobs.get(job) else { return };
    let labels = job_labels(&sim.setup.selecting_labels, sim.control_plane, &facts.name, job);
    label(sim, pod, labels);
}

fn job_labels(wanted: &BTreeSet<Symbol>, version: KubernetesVersion, name: &str, job: usize) -> Vec<(Symbol, Symbol)> {
    let [name_keys, uid_keys] = JOB;
    let uid = job.to_string();
    let grouped = Some(KubernetesBehaviour::BatchJobLabels);
    let known = [
        (name_keys.0, None, name.to_owned()),
        (name_keys.1, grouped, name.to_owned()),
        (uid_keys.0, None, uid.clone()),
        (uid_keys.1, grouped, uid),
    ];
    of_wanted(wanted, version, known)
}

/// The labels that something selects by and that the release sets.
fn of_wanted(
    wanted: &BTreeSet<Symbol>,
    version: KubernetesVersion,
    known: impl IntoIterator<Item = (&'static str, Option<KubernetesBehaviour>, String)>,
) -> Vec<(Symbol, Symbol)> {
    let known = known.into_iter().filter(|(_, since, _)| since.is_none_or(|since| version.has(since)));
    let known = known.map(|(key, _, value)| (Symbol::new(key), value));
    known.filter(|(key, _)| wanted.contains(key)).map(|(key, value)| (key, Symbol::new(&value))).collect()
}

/// What the template says already stays: a dump has the labels of a Job in the Job's template.
fn label(sim: &mut Sim<'_>, pod: PodId, labels: Vec<(Symbol, Symbol)>) {
    let this_spec = &sim.world.pod(pod).spec;
    let missing = |(key, _): &(Symbol, Symbol)| this_spec.labels.get(*key).is_none();
    let labels: Vec<(Symbol, Symbol)> = labels.into_iter().filter(missing).collect();
    if labels.is_empty() {
        return;
    }
    let mut spec = (**this_spec).clone();
    labels.into_iter().for_each(|(key, value)| spec.labels.set(key, value));
    sim.world.respecify_pod(pod, Arc::new(spec));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{JOB, POD_INDEX, POD_NAME, REVISION_HASH, TEMPLATE_HASH, job_labels, ordinal_labels, set_hash};
    use crate::domain::pod::OwnerKind;
    use crate::domain::{KubernetesVersion, Labels, PodSpec, Symbol};

    fn template(owner: OwnerKind, app: &str) -> PodSpec {
        PodSpec { owner, labels: Labels::new().with("app", app), ..PodSpec::default() }
    }

    #[test]
    fn equal_templates_have_equal_hashes() {
        let hashed = |owner, app| {
            let mut template = template(owner, app);
            set_hash(&mut template, None);
            template
        };
        let hash = |owner, app, key| hashed(owner, app).labels.get(Symbol::new(key)).unwrap();
        let set = OwnerKind::ReplicaSet;
        assert_eq!(hash(set, "a", TEMPLATE_HASH), hash(set, "a", TEMPLATE_HASH));
        assert_ne!(hash(set, "a", TEMPLATE_HASH), hash(set, "b", TEMPLATE_HASH));
        assert_eq!(hash(OwnerKind::DaemonSet, "a", REVISION_HASH).as_str().len(), 16);
        assert_eq!(hashed(OwnerKind::Job, "a"), template(OwnerKind::Job, "a"));
        let mut again = hashed(set, "a");
        set_hash(&mut again, None);
        assert_eq!(again, hashed(set, "a"), "the hash is none of what is hashed");
        set_hash(&mut again, Some(Symbol::new("5f4d7")));
        assert_eq!(again.labels.get(Symbol::new(TEMPLATE_HASH)), Some(Symbol::new("5f4d7")));
    }

    #[test]
    fn pod_identity_labels_are_set_only_if_selected() {
        let keys = |keys: &[&str]| keys.iter().map(|key| Symbol::new(key)).collect::<BTreeSet<Symbol>>();
        let (old, new) = (KubernetesVersion::from_minor(26).unwrap(), KubernetesVersion::default());
        let text = |labels: Vec<(Symbol, Symbol)>| {
            labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
        };
        let both = keys(&[POD_NAME, POD_INDEX]);
        assert_eq!(text(ordinal_labels(&both, new, "a-3", 3)), format!("{POD_NAME}=a-3 {POD_INDEX}=3"));
        assert_eq!(text(ordinal_labels(&both, old, "a-3", 3)), format!("{POD_NAME}=a-3"));
        assert_eq!(text(ordinal_labels(&keys(&["app"]), new, "a-3", 3)), "");
        let names = keys(&[JOB[0].0, JOB[0].1]);
        assert_eq!(text(job_labels(&names, new, "j-1", 7)), format!("{}=j-1 {}=j-1", JOB[0].0, JOB[0].1));
        assert_eq!(text(job_labels(&names, old, "j-1", 7)), "job-name=j-1");
        assert_eq!(text(job_labels(&keys(&[JOB[1].1]), new, "j-1", 7)), format!("{}=7", JOB[1].1));
    }
}

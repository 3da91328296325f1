//! Objects as their authors wrote them: without what the cluster keeps in them, and without what may be secret.

use super::objects::{find_mut, remove};
use crate::scenario::tree::{Entry, Node, NodeKind};

/// Keys of an object's metadata that the API server and controllers keep.
const METADATA: [&str; 9] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "finalizers",
    "ownerReferences",
    GENERATE_NAME,
];
const GENERATE_NAME: &str = "generateName";
/// Annotations that controllers and tools keep.
const ANNOTATIONS: [&str; 10] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "control-plane.alpha.kubernetes.io/leader",
    "karpenter.sh/nodepool-hash",
    "karpenter.sh/nodepool-hash-version",
    "karpenter.k8s.aws/ec2nodeclass-hash",
    "karpenter.k8s.aws/ec2nodeclass-hash-version",
    // The status of a HorizontalPodAutoscaler of `autoscaling/v1`; what it is to do stands in annotations of the same group.
    "autoscaling.alpha.kubernetes.io/current-metrics",
    "autoscaling.alpha.kubernetes.io/conditions",
];
/// Keys of a container that the API server fills in, and those that may hold secrets. None changes capacity, cost or latency.
const CONTAINER: [&str; 4] = ["terminationMessagePath", "terminationMessagePolicy", "env", "envFrom"];
/// Where the containers of pods and templates are.
pub(super) const POD_SPECS: [&[&str]; 5] = [
    &["spec"],
    &["spec", "template", "spec"],
    &["spec", "jobTemplate", "spec", "template", "spec"],
    &["spec", "jobTargetRef", "template", "spec"],
    &["template", "spec"],
];
const TEMPLATE_METADATA: [&[&str]; 3] = [
    &["spec", "template", "metadata"],
    &["spec", "jobTemplate", "metadata"],
    &["spec", "jobTemplate", "spec", "template", "metadata"],
];

/// Takes out of an object what its author did not write, and the environment of its containers.
pub(super) fn clean(object: &mut Node<'_>) {
    let kept = kept_of_status(object);
    remove(object, &["status"]);
    if let (Some(kept), NodeKind::Map(entries)) = (kept, &mut object.kind) {
        let status = Node { at: kept.key_at, kind: NodeKind::Map(vec![kept]) };
        entries.push(Entry::new("status".into(), status.at, status));
    }
    if let Some(metadata) = find_mut(object, &["metadata"]) {
        clean_metadata(metadata);
    }
    for path in TEMPLATE_METADATA {
        if let Some(metadata) = find_mut(object, path) {
            clean_metadata(metadata);
        }
    }
    for path in POD_SPECS {
        if let Some(spec) = find_mut(object, path) {
            clean_pod(spec);
        }
    }
}

/// What a run goes on from: when KEDA last saw its object active, and since when a Job has run, from which its deadline counts.
fn kept_of_status<'s>(object: &Node<'s>) -> Option<Entry<'s>> {
    let key = match object.get("kind").and_then(Node::as_text) {
        Some("Job") => "startTime",
        _ => "lastActiveTime",
    };
    let kept = object.get("status")?.get(key)?.clone();
    Some(Entry::new(key.into(), kept.at, kept))
}

fn clean_metadata(metadata: &mut Node<'_>) {
    let exists = metadata.get("uid").is_some();
    // The prefix of a name says nothing beside the name.
    let named = metadata.get("name").is_some();
    let keys = METADATA.iter().filter(|key| named || **key != GENERATE_NAME).copied();
    remove(metadata, &keys.collect::<Vec<_>>());
    let Some(annotations) = find_mut(metadata, &["annotations"]) else { return };
    remove(annotations, &ANNOTATIONS);
    // Whatever Helm runs it for, it is there.
    if exists {
        remove(annotations, &["helm.sh/hook"]);
    }
    let NodeKind::Map(entries) = &annotations.kind else { return };
    if entries.is_empty() {
        remove(metadata, &["annotations"]);
    }
}

/// Cleans the containers of a pod's specification.
fn clean_pod(spec: &mut Node<'_>) {
    for key in ["containers", "initContainers"] {
        let Some(Node { kind: NodeKind::Seq(containers), .. }) = find_mut(spec, &[key]) else { continue };
        for container in containers {
            remove(container, &CONTAINER);
        }
    }
    remove(spec, &["ephemeralContainers"]);
}

#[cfg(test)]
mod tests {
    use super::clean;
    use crate::scenario::tree::{self, Node, Variables};
    use crate::scenario::{Limits, Source};

    #[test]
    fn of_the_status_of_a_job_its_start_is_kept() {
        let text = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nstatus: {active: 1, startTime: \"2026-10-31T07:50:00Z\"}\n\
            ---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nstatus: {startTime: \"2026-10-31T07:50:00Z\"}\n";
        let source = Source::new("dump.yaml", text);
        let mut documents = tree::parse(&source, &Variables::new(), &Limits::default()).unwrap();
        documents.iter_mut().for_each(clean);
        let status = documents[0].get("status").unwrap();
        assert_eq!(status.entries().len(), 1);
        assert_eq!(status.get("startTime").and_then(Node::as_text), Some("2026-10-31T07:50:00Z"));
        assert!(documents[1].get("status").is_none());
    }
}

//! Objects as their authors wrote them: without what the cluster keeps in them, and without what may be secret.

use super::objects::{find, find_mut, remove, set};
use crate::domain::Symbol;
use crate::domain::labels::{is_restricted_in_pools, is_restricted_in_provisioners};
use crate::tree::{Entry, Node, NodeKind};

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
/// What the Job controller goes on from, of what it has written down of a Job.
const OF_JOB: [&str; 6] =
    ["startTime", "succeeded", "failed", "completedIndexes", "failedIndexes", "uncountedTerminatedPods"];
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
    let maker = maker_of_job(object);
    remove(object, &["status"]);
    if let Some(metadata) = find_mut(object, &["metadata"]) {
        clean_metadata(metadata);
        if let Some(maker) = maker {
            set(metadata, "ownerReferences", Node { at: maker.at, kind: NodeKind::Seq(vec![maker]) });
        }
    }
    clean_pool(object);
    if let (Some(first), NodeKind::Map(entries)) = (kept.first(), &mut object.kind) {
        let status = Node { at: first.key_at, kind: NodeKind::Map(kept.into_iter().collect()) };
        entries.push(Entry::new("status".into(), status.at, status));
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

/// Takes from a NodePool the labels that it may not state in any release that is simulated: the dump's warnings say so, and no API server takes
/// it with them.
fn clean_pool(object: &mut Node<'_>) {
    type Refused = fn(Symbol) -> bool;
    let (requirements, labels, refused): (&[&str], &[&str], Refused) = match object.get("kind").and_then(Node::as_text)
    {
        Some("NodePool") => (
            &["spec", "template", "spec", "requirements"],
            &["spec", "template", "metadata", "labels"],
            is_restricted_in_pools,
        ),
        Some("Provisioner") => (&["spec", "requirements"], &["spec", "labels"], is_restricted_in_provisioners),
        _ => return,
    };
    let may_state = |key: &str| !refused(Symbol::new(key));
    if let Some(NodeKind::Seq(items)) = find_mut(object, requirements).map(|node| &mut node.kind) {
        items.retain(|item| item.get("key").and_then(Node::as_text).is_none_or(may_state));
    }
    if let Some(NodeKind::Map(entries)) = find_mut(object, labels).map(|node| &mut node.kind) {
        entries.retain(|entry| may_state(&entry.key));
    }
}

/// What a run goes on from: when KEDA last saw its object active, when a CronJob last started a Job, what a Vertical Pod Autoscaler
/// recommends, and how far a Job is, with since when it has run.
fn kept_of_status<'s>(object: &Node<'s>) -> Vec<Entry<'s>> {
    let keys: &[&str] = match object.get("kind").and_then(Node::as_text) {
        Some("Job") => &OF_JOB,
        Some("CronJob") => &["lastScheduleTime"],
        Some("VerticalPodAutoscaler") => &["recommendation"],
        _ => &["lastActiveTime"],
    };
    let Some(NodeKind::Map(entries)) = object.get("status").map(|status| &status.kind) else { return Vec::new() };
    let kept = entries.iter().filter(|entry| keys.contains(&&*entry.key));
    kept.map(|entry| Entry::new(entry.key.clone(), entry.value.at, entry.value.clone())).collect()
}

/// The reference of a Job to what made it.
fn maker_of_job<'s>(object: &Node<'s>) -> Option<Node<'s>> {
    const KEYS: [&str; 4] = ["apiVersion", "kind", "name", "controller"];
    let text = |node: &Node<'s>, key| node.get(key).and_then(Node::as_text).map(str::to_owned);
    if text(object, "kind").as_deref() != Some("Job") {
        return None;
    }
    let owners = find(object, &["metadata", "ownerReferences"]).map_or(&[][..], Node::items);
    let controls = |owner: &&Node<'s>| text(owner, "controller").as_deref() == Some("true");
    let owner = owners.iter().find(controls)?;
    let NodeKind::Map(entries) = &owner.kind else { return None };
    let kept = entries.iter().filter(|entry| KEYS.contains(&&*entry.key)).cloned();
    Some(Node { at: owner.at, kind: NodeKind::Map(kept.collect()) })
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

/// What a run reads of the environment of the Amazon VPC network plugin.
///
/// Source: amazon-vpc-cni-k8s v1.20 `README.md`.
const OF_NETWORK_PLUGIN: [&str; 4] =
    ["ENABLE_POD_ENI", "ENABLE_PREFIX_DELEGATION", "ENABLE_IPv6", "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"];

/// Those variables of a container that tell how the network plugin gives pods addresses, if it is the plugin's.
pub(super) fn network_plugin_settings<'s>(container: &Node<'s>) -> Option<Node<'s>> {
    let image = container.get("image").and_then(Node::as_text)?;
    let environment = container.get("env").filter(|_| image.contains("amazon-k8s-cni"))?;
    let is_read = |node: &&Node<'s>| {
        let name = node.get("name").and_then(Node::as_text).unwrap_or_default();
        OF_NETWORK_PLUGIN.contains(&name) && node.get("value").is_some()
    };
    let kept: Vec<Node<'s>> = environment.items().iter().filter(is_read).cloned().collect();
    (!kept.is_empty()).then_some(Node { kind: NodeKind::Seq(kept), at: environment.at })
}

/// Cleans the containers of a pod's specification.
fn clean_pod(spec: &mut Node<'_>) {
    for key in ["containers", "initContainers"] {
        let Some(Node { kind: NodeKind::Seq(containers), .. }) = find_mut(spec, &[key]) else { continue };
        for container in containers {
            let kept = network_plugin_settings(container);
            remove(container, &CONTAINER);
            if let Some(kept) = kept {
                set(container, "env", kept);
            }
        }
    }
    remove(spec, &["ephemeralContainers"]);
}

#[cfg(test)]
mod tests {
    use super::clean;
    use crate::tree::{self, Node, Variables};
    use crate::{Limits, Source};

    /// The cleaned documents of a dump.
    fn cleaned(source: &Source) -> Vec<Node<'_>> {
        // The texts of these tests are YAML; if one were none, there would be nothing to look at.
        let mut documents = tree::parse(source, &Variables::new(), &Limits::default()).unwrap();
        documents.iter_mut().for_each(clean);
        documents
    }

    /// What stands in a document under these keys.
    fn at<'n, 's>(document: &'n Node<'s>, keys: &[&str]) -> &'n Node<'s> {
        // The texts of these tests state them, and to have kept them is part of what is tested.
        keys.iter().fold(document, |node, key| node.get(key).unwrap())
    }

    #[test]
    fn cleaning_drops_unsupported_pool_fields() {
        let text = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec:\n  template:\n    \
            metadata: {labels: {team: web, karpenter.sh/own: x}}\n    spec:\n      requirements:\n      \
            - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}\n      \
            - {key: karpenter.k8s.aws/instance-nitro-enclaves-supported, operator: Exists}\n";
        let source = Source::new("dump.yaml", text);
        let documents = cleaned(&source);
        let template = at(&documents[0], &["spec", "template"]);
        let labels = at(template, &["metadata", "labels"]);
        assert_eq!(labels.entries().iter().map(|label| label.key.to_string()).collect::<Vec<_>>(), ["team"]);
        let requirements = at(template, &["spec", "requirements"]).items();
        let keys: Vec<_> = requirements.iter().filter_map(|requirement| requirement.get("key")?.as_text()).collect();
        assert_eq!(keys, ["karpenter.sh/capacity-type"]);
    }

    #[test]
    fn cleaned_job_keeps_progress_and_owner() {
        let text = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, uid: b, ownerReferences: [{apiVersion: batch/v1, kind: CronJob, \
            name: c, uid: d, controller: true}]}\nstatus: {active: 1, startTime: \"2026-10-31T07:50:00Z\", succeeded: 2, ready: 1}\n\
            ---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, ownerReferences: [{kind: Job, name: a, controller: true}]}\n\
            status: {startTime: \"2026-10-31T07:50:00Z\"}\n";
        let source = Source::new("dump.yaml", text);
        let documents = cleaned(&source);
        let status = at(&documents[0], &["status"]);
        let keys = |node: &Node<'_>| node.entries().iter().map(|entry| entry.key.to_string()).collect::<Vec<_>>();
        assert_eq!(keys(status), ["startTime", "succeeded"]);
        assert_eq!(status.get("startTime").and_then(Node::as_text), Some("2026-10-31T07:50:00Z"));
        let metadata = at(&documents[0], &["metadata"]);
        assert_eq!(keys(metadata), ["name", "ownerReferences"]);
        assert_eq!(keys(&at(metadata, &["ownerReferences"]).items()[0]), ["apiVersion", "kind", "name", "controller"]);
        assert!(documents[1].get("status").is_none() && at(&documents[1], &["metadata"]).entries().len() == 1);
    }
}

//! Objects that a dump lacks and that what it holds implies: workloads of pods, priority classes, node classes.

use std::collections::{BTreeMap, BTreeSet};

use super::objects::{Object, find, find_mut, map, remove, scalar, set};
use super::{CARRIED, Dump, Notes, clean, groups, stand_ins};
use crate::domain::Symbol;
use crate::domain::words::{counted, some_of};
use crate::domain::workload::{ROLLOUT_HASH, TEMPLATE_HASH, deployment_of_set};
use crate::manifests::{Manifests, SYSTEM_CLASSES};
use crate::tree::{Location, Node, NodeKind};

/// Labels that controllers give the pods they make.
const POD_LABELS: [&str; 6] = [
    TEMPLATE_HASH,
    ROLLOUT_HASH,
    "controller-revision-hash",
    "pod-template-generation",
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
];
/// Keys of a pod's specification that its own creation added.
const POD_SPEC: [&str; 6] = ["nodeName", "priority", "preemptionPolicy", "hostname", "subdomain", "serviceAccount"];

/// Whether the dump carries a Job, or the CronJob or ScaledJob that made it: its name is that of the Job without the last part.
fn makes_job(dump: &Dump<'_>, namespace: &str, job: &str) -> bool {
    let of_maker = job.rsplit_once('-').map(|(name, _)| name);
    dump.carried.iter().filter(|object| object.namespace == namespace).any(|object| match &*object.kind {
        "Job" => object.name == job,
        "CronJob" | "ScaledJob" => Some(&*object.name) == of_maker,
        _ => false,
    })
}

/// Makes a workload of the pods whose controller is not in the dump.
pub(super) fn workloads(dump: &mut Dump<'_>, notes: &mut Notes) {
    of_sets(dump, notes);
    let mut orphans: BTreeMap<(&'static str, String, String), Vec<usize>> = BTreeMap::new();
    let mut of_jobs = 0_usize;
    let mut others: BTreeMap<String, usize> = BTreeMap::new();
    for (position, pod) in dump.pods.iter().enumerate() {
        let (kind, name) = match (workload_of(pod), pod.controller()) {
            (Some(workload), _) => workload,
            (None, None | Some(("Node", _))) => continue,
            (None, Some(("Job", name))) => {
                of_jobs += usize::from(!makes_job(dump, &pod.namespace, name));
                continue;
            }
            (None, Some((foreign, _))) => {
                let Some(name) = dump.stand_ins.name_of(pod) else { continue };
                *others.entry(foreign.to_owned()).or_default() += 1;
                ("Deployment", name)
            }
        };
        orphans.entry((kind, pod.namespace.clone(), name.to_owned())).or_default().push(position);
    }
    for object in &dump.carried {
        let Some(kind) = simulated_as(&object.kind) else { continue };
        orphans.remove(&(kind, object.namespace.clone(), object.name.clone()));
    }
    for (kind, count) in others {
        let pods = if count == 1 {
            format!("pod of {kind} stays as a Deployment")
        } else {
            format!("{count} pods of {kind} stay as Deployments")
        };
        notes.warn(format!("{kind} is not simulated: the {pods} of a fixed size"));
    }
    if of_jobs > 0 {
        notes.warn(format!(
            "{} left out: add `jobs,cronjobs` to the dump to carry what makes them",
            counted(of_jobs as u64, "pod of a Job is", "pods of Jobs are")
        ));
    }
    let is_taken = |name: &str| {
        dump.carried.iter().any(|object| simulated_as(&object.kind).is_some() && object.full_name() == name)
    };
    let made_of = orphans.iter().filter_map(|((_, _, name), pods)| Some((name.as_str(), &dump.pods[*pods.first()?])));
    dump.parts = stand_ins::parts(made_of, is_taken, notes);
    let mut made: BTreeMap<&'static str, usize> = BTreeMap::new();
    for ((kind, _, name), pods) in orphans {
        let created = |position: &&usize| dump.pods[**position].text(&["metadata", "creationTimestamp"]);
        let Some(newest) = pods.iter().max_by_key(created) else { continue };
        let object = of_pod(&dump.pods[*newest], kind, &name, pods.len());
        *made.entry(kind).or_default() += 1;
        dump.carried.push(object);
    }
    for (kind, count) in made {
        let made = counted(count as u64, kind, &format!("{kind}s"));
        let of = if count == 1 { "is made of its newest pod" } else { "are made of their newest pods" };
        notes.assume(format!("{made} that the dump does not hold {of}."));
    }
    let rank = |object: &Object<'_>| CARRIED.iter().position(|(kind, _)| *kind == object.kind);
    dump.carried.sort_by_key(rank);
}

/// What a kind is simulated as, of those whose pods stay.
pub(super) fn simulated_as(kind: &str) -> Option<&'static str> {
    match kind {
        "Deployment" | "ReplicaSet" | "ReplicationController" | "Rollout" => Some("Deployment"),
        "StatefulSet" => Some("StatefulSet"),
        "DaemonSet" => Some("DaemonSet"),
        _ => None,
    }
}

/// The workload that made a pod, of those that are simulated.
pub(super) fn workload_of<'o>(pod: &'o Object<'_>) -> Option<(&'static str, &'o str)> {
    let (kind, name) = pod.controller()?;
    match kind {
        "ReplicaSet" => {
            let hash = pod.label(TEMPLATE_HASH).or_else(|| pod.label(ROLLOUT_HASH));
            Some(("Deployment", deployment_of_set(name, hash).unwrap_or(name)))
        }
        "ReplicationController" => Some(("Deployment", name)),
        _ => simulated_as(kind).filter(|kind| *kind != "Deployment").map(|kind| (kind, name)),
    }
}

/// The Deployment or Rollout that made a ReplicaSet; `None` for one of its own.
pub(super) fn maker_of_set<'o>(set: &'o Object<'_>) -> Option<&'o str> {
    let label = |key| set.text(&["spec", "template", "metadata", "labels", key]);
    let hash = label(TEMPLATE_HASH).or_else(|| label(ROLLOUT_HASH));
    let maker = set.controller().filter(|(kind, _)| ["Deployment", "Rollout"].contains(kind)).map(|(_, name)| name);
    deployment_of_set(&set.name, hash).or(maker)
}

/// Whether a Rollout takes its template from an object that is not there.
pub(super) fn lacks_template(rollout: &Object<'_>, templates: &BTreeSet<(String, String)>) -> bool {
    let text = |key| rollout.text(&["spec", "workloadRef", key]).unwrap_or_default();
    let full_name = format!("{}/{}", rollout.own_namespace(), text("name"));
    rollout.at(&["spec", "workloadRef"]).is_some() && !templates.contains(&(text("kind").to_owned(), full_name))
}

/// Makes a Deployment of the ReplicaSets whose Deployment or Rollout is not in the dump: with the template of the one that has most
/// replicas, and the replicas of all.
fn of_sets(dump: &mut Dump<'_>, notes: &mut Notes) {
    let mut missing: BTreeMap<(String, String), Vec<Object<'_>>> = BTreeMap::new();
    for set in std::mem::take(&mut dump.sets).into_iter().filter(|set| replicas_of(set) > 0) {
        let Some(maker) = maker_of_set(&set) else { continue };
        let is_it = |object: &Object<'_>| {
            simulated_as(&object.kind) == Some("Deployment")
                && object.name == maker
                && object.namespace == set.namespace
        };
        if !dump.carried.iter().any(is_it) {
            missing.entry((set.namespace.clone(), maker.to_owned())).or_default().push(set);
        }
    }
    let mut told = Vec::new();
    for ((namespace, name), sets) in missing {
        let replicas: u64 = sets.iter().map(replicas_of).sum();
        let Some(largest) = sets.iter().max_by_key(|set| replicas_of(set)) else { continue };
        told.push(format!("{namespace}/{name} ({})", counted(replicas, "replica", "replicas")));
        dump.carried.push(of_set(largest, &name, replicas));
    }
    if !told.is_empty() {
        let made = counted(told.len() as u64, "Deployment", "Deployments");
        let of = if told.len() == 1 { "is made of its ReplicaSets" } else { "are made of their ReplicaSets" };
        notes.assume(format!("{made} that the dump does not hold {of}: {}.", some_of(&told)));
    }
}

/// How many replicas a ReplicaSet has; one that does not say has one.
fn replicas_of(set: &Object<'_>) -> u64 {
    set.text(&["spec", "replicas"]).map_or(1, |text| text.parse().unwrap_or(0))
}

/// The Deployment of this name that a ReplicaSet is of.
fn of_set<'s>(object: &Object<'s>, name: &str, replicas: u64) -> Object<'s> {
    let mut node = Node::clone(&object.node);
    clean::clean(&mut node);
    for labels in [&["spec", "selector", "matchLabels"][..], &["spec", "template", "metadata", "labels"]] {
        if let Some(labels) = find_mut(&mut node, labels) {
            remove(labels, &[TEMPLATE_HASH, ROLLOUT_HASH]);
        }
    }
    let mut metadata = map([("name", text(name))]);
    if !object.namespace.is_empty() {
        set(&mut metadata, "namespace", text(&object.namespace));
    }
    set(&mut node, "metadata", metadata);
    set(&mut node, "apiVersion", scalar("apps/v1"));
    set(&mut node, "kind", scalar("Deployment"));
    if let Some(spec) = find_mut(&mut node, &["spec"]) {
        set(spec, "replicas", scalar(replicas.to_string()));
    }
    Object::new(object.source, node, "Deployment".to_owned())
}

/// A workload whose template is what a pod looks like.
fn of_pod<'s>(pod: &Object<'s>, kind: &'static str, name: &str, count: usize) -> Object<'s> {
    let mut this_node = Node::clone(&pod.node);
    clean::clean(&mut this_node);
    let mut labels = find(&this_node, &["metadata", "labels"]).cloned().unwrap_or_else(|| map([]));
    remove(&mut labels, &POD_LABELS);
    if !matches!(&labels.kind, NodeKind::Map(entries) if !entries.is_empty()) {
        labels = map([("app", scalar(name.to_owned()))]);
    }
    let mut template = map([("labels", labels.clone())]);
    if let Some(annotations) = find(&this_node, &["metadata", "annotations"]) {
        set(&mut template, "annotations", annotations.clone());
    }
    let mut spec = find(&this_node, &["spec"]).cloned().unwrap_or_else(|| map([]));
    remove(&mut spec, &POD_SPEC);
    if kind == "DaemonSet" {
        unpin(&mut spec);
    }
    let mut of_workload = map([
        ("selector", map([("matchLabels", labels)])),
        ("template", map([("metadata", template), ("spec", spec)])),
    ]);
    if kind != "DaemonSet" {
        set(&mut of_workload, "replicas", scalar(count.to_string()));
    }
    let mut metadata = map([("name", text(name))]);
    if !pod.namespace.is_empty() {
        set(&mut metadata, "namespace", text(&pod.namespace));
    }
    let mut node =
        map([("apiVersion", scalar("apps/v1")), ("kind", scalar(kind)), ("metadata", metadata), ("spec", of_workload)]);
    node.at = pod.node.at;
    Object::new(pod.source, node, kind.to_owned())
}

/// A text that may not be taken for anything else.
fn text<'s>(text: &str) -> Node<'s> {
    Node { kind: NodeKind::Scalar { text: text.to_owned().into(), plain: false }, at: Location::NONE }
}

/// Takes out the term by which the DaemonSet controller pins each pod to its node.
fn unpin(spec: &mut Node<'_>) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = find_mut(spec, &["affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"]);
    let Some(Node { kind: NodeKind::Seq(terms), .. }) = terms else { return };
    terms.iter_mut().for_each(|term| remove(term, &["matchFields"]));
    // A term that pinned and nothing else leaves every node open.
    let is_open = terms.iter().any(|term| matches!(&term.kind, NodeKind::Map(entries) if entries.is_empty()));
    if is_open && let Some(affinity) = find_mut(spec, &["affinity", "nodeAffinity"]) {
        remove(affinity, &[REQUIRED]);
    }
}

/// Where the name of a priority class stands, by kind of object.
const PRIORITIES: [&[&str]; 4] = [
    &["spec", "priorityClassName"],
    &["spec", "template", "spec", "priorityClassName"],
    &["spec", "jobTemplate", "spec", "template", "spec", "priorityClassName"],
    &["spec", "jobTargetRef", "template", "spec", "priorityClassName"],
];

/// Adds the priority classes that templates name and the dump does not hold; pods say what they stand for.
pub(super) fn priority_classes(dump: &mut Dump<'_>, notes: &mut Notes) {
    let exists = |dump: &Dump<'_>, name: &str| {
        SYSTEM_CLASSES.iter().any(|(key, _)| *key == name)
            || dump.carried.iter().any(|object| object.kind == "PriorityClass" && object.name == name)
    };
    let named = |object: &Object<'_>| PRIORITIES.iter().find_map(|path| object.text(path)).map(str::to_owned);
    let mut missing: Vec<(String, usize)> = Vec::new();
    for (position, object) in dump.carried.iter().enumerate() {
        if let Some(name) = named(object).filter(|name| !name.is_empty() && !exists(dump, name))
            && !missing.iter().any(|(known, _)| *known == name)
        {
            missing.push((name, position));
        }
    }
    for (name, position) in missing {
        let matches = |pod: &&Object<'_>| pod.text(PRIORITIES[0]) == Some(&*name);
        let stated =
            dump.pods.iter().find(matches).and_then(|pod| pod.text(&["spec", "priority"])?.parse::<i32>().ok());
        match stated {
            Some(value) => {
                notes.assume(format!(
                    "The priority class {name}, which the dump does not hold, has the value {value}, as its pods say."
                ));
            }
            None => notes.warn(format!("the priority class {name} is not in the dump: its value is taken to be 0")),
        }
        let node = map([
            ("apiVersion", scalar("scheduling.k8s.io/v1")),
            ("kind", scalar("PriorityClass")),
            ("metadata", map([("name", text(&name))])),
            ("value", scalar(stated.unwrap_or(0).to_string())),
        ]);
        let source = dump.carried[position].source;
        dump.carried.insert(0, Object::new(source, node, "PriorityClass".to_owned()));
    }
}

/// Adds the node classes that NodePools name and the dump does not hold.
pub(super) fn node_classes(dump: &mut Dump<'_>, manifests: &Manifests, notes: &mut Notes) {
    let mut names: Vec<Symbol> = Vec::new();
    for pool in manifests.node_pools.iter().filter(|pool| !pool.legacy) {
        if !manifests.node_classes.iter().any(|class| class.name == pool.node_class)
            && !names.contains(&pool.node_class)
        {
            names.push(pool.node_class);
        }
    }
    let Some(source) = dump.carried.first().map(|object| object.source) else { return };
    for name in names {
        let bottlerocket = dump.nodes.iter().filter(|node| groups::is_karpenters(node)).map(groups::family);
        let alias = if bottlerocket.into_iter().any(|family| family == "Bottlerocket") {
            "bottlerocket@latest"
        } else {
            "al2023@latest"
        };
        notes.assume(format!(
            "The EC2NodeClass {name}, which the dump does not hold, has the machine image {alias} and the defaults."
        ));
        let terms = Node { kind: NodeKind::Seq(vec![map([("alias", text(alias))])]), at: Location::NONE };
        let node = map([
            ("apiVersion", scalar("karpenter.k8s.aws/v1")),
            ("kind", scalar("EC2NodeClass")),
            ("metadata", map([("name", text(name.as_str()))])),
            ("spec", map([("amiSelectorTerms", terms)])),
        ]);
        dump.carried.push(Object::new(source, node, "EC2NodeClass".to_owned()));
    }
}

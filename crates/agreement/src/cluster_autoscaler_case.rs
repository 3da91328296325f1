//! Reading a Cluster Autoscaler case.

use std::collections::BTreeMap;
use std::sync::Arc;

use nodecast_cluster_autoscaler::expander::PodPrice;
use nodecast_cluster_autoscaler::templates::kube_proxy;
use nodecast_cluster_autoscaler::view::{
    BudgetView, Controller, ControllerKind, DaemonSetView, GroupView, InstanceError, InstanceView, NodeTemplate,
    NodeView, PodPlace, PodTraits, PodView, RestartPolicy,
};
use nodecast_cluster_autoscaler::{ExpanderInputs, Flags, aws};
use nodecast_manifests::{daemon_set_from_json, node_from_json, pod_disruption_budget_from_json, pod_from_json};
use nodecast_model::domain::GroupRanks;
use nodecast_model::domain::labels::deprecated_node_labels;
use nodecast_model::domain::pod::PodPhase;
use nodecast_model::domain::{KubernetesVersion, Labels, NodeId, PodId, SimDuration, Symbol, Taint, TaintEffect};
use serde_json::{Value, json};

use crate::fields::{NOW, count, integer, list, number_or, text};

/// A scale-up that the autoscaler asked for before the case begins.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Nodes.
    pub delta: i64,
    /// How long ago.
    pub seconds_ago: i64,
}

/// The cluster of one case.
#[derive(Debug)]
pub struct Cluster {
    /// Flags.
    pub flags: Flags,
    /// What expanders go by.
    pub inputs: ExpanderInputs,
    /// Groups.
    pub groups: Vec<GroupView>,
    /// Which groups refuse to grow.
    pub refuses: Vec<bool>,
    /// Open requests, by group.
    pub requests: Vec<(usize, Request)>,
    /// Nodes.
    pub nodes: Vec<NodeView>,
    /// Pods.
    pub pods: Vec<PodView>,
    /// The name of each pod's entry.
    pub pod_names: Vec<String>,
    /// DaemonSets.
    pub daemon_sets: Vec<DaemonSetView>,
    /// Budgets.
    pub budgets: Vec<BudgetView>,
}

impl Cluster {
    /// Reads a case.
    pub fn read(case: &Value) -> Result<Self, String> {
        let mut cluster = Self {
            flags: read_flags(case)?,
            inputs: ExpanderInputs { ranks: None, pod_price: read_pod_price(case)? },
            groups: Vec::new(),
            refuses: Vec::new(),
            requests: Vec::new(),
            nodes: Vec::new(),
            pods: Vec::new(),
            pod_names: Vec::new(),
            daemon_sets: Vec::new(),
            budgets: Vec::new(),
        };
        for object in list(case, "objects")? {
            cluster.read_object(object)?;
        }
        for group in list(case, "nodeGroups")? {
            cluster.read_group(group)?;
        }
        for node in list(case, "nodes")? {
            cluster.read_node(node)?;
        }
        for entry in list(case, "pods")? {
            cluster.read_pods(entry, PodPlace::Unschedulable)?;
        }
        cluster.count_replicas();
        Ok(cluster)
    }

    /// Pods by entry.
    pub fn counted(&self, pods: &[usize]) -> Value {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for &pod in pods {
            *counts.entry(&self.pod_names[pod]).or_insert(0) += 1;
        }
        json!(counts)
    }

    fn read_object(&mut self, object: &Value) -> Result<(), String> {
        match text(object, "kind")?.unwrap_or_default() {
            "DaemonSet" => {
                let read = daemon_set_from_json(object).map_err(|error| error.to_string())?;
                let spec = &object["spec"]["template"]["spec"];
                let traits = read_traits(read.name.namespace, Arc::clone(&read.template), None, spec)?;
                self.daemon_sets.push(DaemonSetView { name: read.name.name, pods: Arc::new(traits) });
            }
            "PodDisruptionBudget" => {
                let read = pod_disruption_budget_from_json(object).map_err(|error| error.to_string())?;
                let disruptions_allowed = integer(&object["status"], "disruptionsAllowed")?.unwrap_or(0);
                self.budgets.push(BudgetView {
                    namespace: read.namespace,
                    selector: read.selector,
                    disruptions_allowed,
                });
            }
            "ConfigMap" => {
                let priorities = text(&object["data"], "priorities")?.unwrap_or_default();
                // A map that cannot be read is as if it were not there.
                self.inputs.ranks = read_ranks(priorities).ok();
            }
            other => return Err(format!("unknown object {other}")),
        }
        Ok(())
    }

    fn read_group(&mut self, group: &Value) -> Result<(), String> {
        let template = &group["template"];
        let id = text(group, "id")?.unwrap_or_default();
        let read = read_shell(id, template, template)?;
        let mut pods = Vec::new();
        if template["addKubeProxy"].as_bool().unwrap_or(false) {
            pods.push(kube_proxy());
        }
        let at = self.groups.len();
        if !group["scaleUpRequest"].is_null() {
            let request = &group["scaleUpRequest"];
            let (delta, seconds_ago) = (count(request, "delta")?, count(request, "secondsAgo")?);
            self.requests.push((at, Request { delta: delta.into(), seconds_ago: seconds_ago.into() }));
        }
        self.refuses.push(group["increaseSizeError"].as_bool().unwrap_or(false));
        let options = group["options"].as_object().into_iter().flatten();
        let tags: Vec<(String, String)> = options
            .map(|(key, value)| {
                let key = format!("k8s.io/cluster-autoscaler/node-template/autoscaling-options/{key}");
                (key, value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            })
            .collect();
        self.groups.push(GroupView {
            id: Symbol::new(id),
            auto_scaling_group: Symbol::new(id),
            min: count(group, "min")?.into(),
            max: count(group, "max")?.into(),
            target: count(group, "current")?.into(),
            template: Some(Arc::new(NodeTemplate {
                labels: read.labels,
                taints: read.taints,
                unschedulable: false,
                allocatable: read.allocatable,
                capacity: read.capacity,
                pods,
            })),
            instances: list(group, "instances")?.iter().map(read_instance).collect(),
            options: aws::options(&tags),
            price_per_hour: group["pricePerHour"].as_f64(),
            exists: true,
        });
        Ok(())
    }

    fn read_node(&mut self, node: &Value) -> Result<(), String> {
        let name = text(node, "name")?.unwrap_or_default();
        let group = text(node, "group")?.filter(|group| !group.is_empty());
        let group = group.map(|id| self.groups.iter().position(|group| group.id.as_str() == id).ok_or("unknown group"));
        let group = group.transpose()?;
        let template = group.and_then(|group| self.groups[group].template.clone());
        let shell = read_shell(name, node, node)?;
        let (mut labels, mut taints) = (Labels::new(), Vec::new());
        let (mut allocatable, mut capacity) = (shell.allocatable, shell.capacity);
        if let Some(template) = &template {
            labels = template.labels.clone();
            taints.clone_from(&template.taints);
            allocatable = template.allocatable.clone();
            capacity = template.capacity.clone();
        }
        labels.extend(&shell.labels);
        labels.extend(&deprecated_node_labels(&labels));
        labels.set(Symbol::new("kubernetes.io/hostname"), Symbol::new(name));
        taints.extend(shell.taints);
        let ready = node["ready"].as_bool().unwrap_or(true);
        let unschedulable = node["unschedulable"].as_bool().unwrap_or(false);
        let added = [(!ready, "node.kubernetes.io/not-ready"), (unschedulable, "node.kubernetes.io/unschedulable")];
        for (_, key) in added.into_iter().filter(|(wanted, _)| *wanted) {
            taints.push(Taint::new(Symbol::new(key), TaintEffect::NoSchedule));
        }
        let age = integer(node, "ageSeconds")?;
        let ready_age = integer(node, "readySecondsAgo")?.or(age).unwrap_or(7_100);
        let id = NodeId::from_index(self.nodes.len());
        self.nodes.push(NodeView {
            id,
            name: Arc::from(name),
            group,
            labels,
            annotations: shell.annotations,
            taints,
            unschedulable,
            allocatable,
            capacity,
            created: NOW - SimDuration::from_secs(age.unwrap_or(7_200)),
            ready,
            ready_since: NOW - SimDuration::from_secs(ready_age),
            volume_limits: Vec::new(),
            suspended: false,
            instance_gone: false,
        });
        for entry in list(node, "pods")? {
            self.read_pods(entry, PodPlace::Bound(id))?;
        }
        Ok(())
    }

    fn read_pods(&mut self, entry: &Value, place: PodPlace) -> Result<(), String> {
        let mut object = entry["pod"].clone();
        // Every owner reference of a case is the controller.
        if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
            owners.iter_mut().for_each(|owner| owner["controller"] = json!(true));
        }
        let read = pod_from_json(&object).map_err(|error| error.to_string())?;
        let controller = object["metadata"]["ownerReferences"].get(0).map(read_controller);
        let spec = Arc::new(read.spec);
        let traits = Arc::new(read_traits(read.name.namespace, spec, controller, &object["spec"])?);
        let phase = match (read.phase, place) {
            (PodPhase::Pending, PodPlace::Bound(_)) => PodPhase::Running,
            (phase, _) => phase,
        };
        let age = SimDuration::from_secs(integer(entry, "ageSeconds")?.unwrap_or(600));
        let name = read.name.name.as_str().to_owned();
        for _ in 0..entry["replicas"].as_u64().unwrap_or(1) {
            let id = PodId::from_index(self.pods.len());
            let traits = Arc::clone(&traits);
            self.pods.push(PodView { id, traits, created: NOW - age, phase, deleted_at: None, place });
            self.pod_names.push(name.clone());
        }
        Ok(())
    }

    /// A controller wants as many replicas as there are pods.
    fn count_replicas(&mut self) {
        let key = |pod: &PodView| {
            pod.traits.controller.map(|controller| (pod.traits.namespace, controller.kind, controller.name))
        };
        let mut counts: BTreeMap<_, i64> = BTreeMap::new();
        for pod in &self.pods {
            *counts.entry(key(pod)).or_insert(0) += 1;
        }
        let mut known: BTreeMap<*const PodTraits, Arc<PodTraits>> = BTreeMap::new();
        for pod in &mut self.pods {
            let replicas = counts[&key(pod)];
            let traits = known.entry(Arc::as_ptr(&pod.traits)).or_insert_with(|| {
                let controller = pod.traits.controller;
                let controller =
                    controller.map(|controller| Controller { replicas, current_replicas: replicas, ..controller });
                Arc::new(PodTraits { controller, ..(*pod.traits).clone() })
            });
            pod.traits = Arc::clone(traits);
        }
    }
}

fn read_flags(case: &Value) -> Result<Flags, String> {
    let given = case["flags"].as_object().into_iter().flatten();
    let mut given: Vec<(String, String)> = given
        .map(|(name, value)| (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    if case["kind"] == "scale-up" {
        given.push(("scale-down-enabled".to_owned(), "false".to_owned()));
    }
    let pairs = given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Flags::parse(KubernetesVersion::default(), pairs).map_err(|error| error.to_string())
}

fn read_pod_price(case: &Value) -> Result<Option<PodPrice>, String> {
    let price = &case["podPrice"];
    if price.is_null() {
        return Ok(None);
    }
    Ok(Some(PodPrice {
        per_cpu: number_or(price, "perCpuHour", 0.0)?,
        per_gib: number_or(price, "perGiBHour", 0.0)?,
        per_gpu: number_or(price, "perGpuHour", 0.0)?,
    }))
}

/// Ranks as the ConfigMap states them: a number, then a list of expressions.
fn read_ranks(text: &str) -> Result<GroupRanks, String> {
    let map: BTreeMap<i64, Vec<String>> = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    GroupRanks::new(map.iter().flat_map(|(rank, all)| all.iter().map(|expression| (*rank, expression.as_str()))))
}

/// What a node has of its own, read as a Node object.
fn read_shell(name: &str, labelled: &Value, offered: &Value) -> Result<nodecast_model::domain::NodeObject, String> {
    let or_empty = |value: &Value| if value.is_null() { json!({}) } else { value.clone() };
    let allocatable = or_empty(&offered["allocatable"]);
    let capacity = if offered["capacity"].is_null() { allocatable.clone() } else { offered["capacity"].clone() };
    let object = json!({
        "metadata": {
            "name": name,
            "labels": or_empty(&labelled["labels"]),
            "annotations": or_empty(&labelled["annotations"]),
        },
        "spec": {"taints": list(labelled, "taints")?},
        "status": {"allocatable": allocatable, "capacity": capacity},
    });
    node_from_json(&object).map_err(|error| error.to_string())
}

fn read_instance(instance: &Value) -> InstanceView {
    let error = match instance["error"].as_str() {
        None => None,
        Some("OutOfResources") => Some(InstanceError::OutOfResources),
        Some("QuotaExceeded") => Some(InstanceError::QuotaExceeded),
        Some(_) => Some(InstanceError::Other),
    };
    let id = Arc::from(instance["id"].as_str().unwrap_or_default());
    InstanceView { id, node: None, deleting: false, error }
}

fn read_controller(owner: &Value) -> Controller {
    let kind = match owner["kind"].as_str().unwrap_or_default() {
        "ReplicaSet" => ControllerKind::ReplicaSet,
        "ReplicationController" => ControllerKind::ReplicationController,
        "StatefulSet" => ControllerKind::StatefulSet,
        "Job" => ControllerKind::Job,
        "DaemonSet" => ControllerKind::DaemonSet,
        _ => ControllerKind::Other,
    };
    let name = owner["name"].as_str().unwrap_or_default();
    let exists = !name.starts_with("missing-");
    Controller { kind, name: Symbol::new(name), exists, replicas: 0, current_replicas: 0 }
}

fn read_traits(
    namespace: Symbol,
    spec: Arc<nodecast_model::domain::PodSpec>,
    controller: Option<Controller>,
    raw: &Value,
) -> Result<PodTraits, String> {
    let mut traits = PodTraits::new(namespace, spec, controller);
    traits.restart_policy = match text(raw, "restartPolicy")? {
        Some("OnFailure") => RestartPolicy::OnFailure,
        Some("Never") => RestartPolicy::Never,
        _ => RestartPolicy::Always,
    };
    for volume in list(raw, "volumes")? {
        let on_disk = volume["emptyDir"].is_object() && volume["emptyDir"]["medium"] != "Memory";
        if on_disk || volume["hostPath"].is_object() {
            traits.local_volumes.push(Symbol::new(volume["name"].as_str().unwrap_or_default()));
        }
    }
    if let Some(scheduler) = text(raw, "schedulerName")? {
        traits.scheduler = Symbol::new(scheduler);
    }
    Ok(traits)
}

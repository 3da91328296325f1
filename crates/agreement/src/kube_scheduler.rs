//! The kube-scheduler suite: what the filters and scores of the default profile say of each node for one pod.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nodecast_manifests::{deployment_from_json, node_from_json, pod_from_json};
use nodecast_model::domain::{LabelSelector, Labels, NodeId, PodId, ResourceName, SimTime, Symbol};
use nodecast_scheduler::{
    ClusterView, NodeEvaluation, NodeImage, PendingPod, Placement, Plugin, Reason, Scheduler, SchedulerConfig,
    SchedulerNode, Service, ShapeId, TieBreak, evaluate,
};
use serde_json::{Value, json};

use crate::fields::{list, same, text};
use crate::tally::{Tally, run_cases};

/// Runs every case below `paths`: files with one case, or with a list `cases`; gzip or not.
pub fn run(paths: &[PathBuf], _catalogs: Option<&Path>) -> Result<Tally, String> {
    run_cases(paths, check)
}

fn check(file: &Value) -> Result<(), String> {
    let (case, expected) = (&file["case"], &file["expected"]);
    let mut cluster = Cluster::read(case)?;
    let shape = cluster.shape(&case["pod"])?;
    let pod = PendingPod { id: PodId(u32::MAX), shape, pinned_to: None };
    let config = SchedulerConfig::default();
    let evaluation = evaluate(&config, &cluster.view, &pod);
    let found: BTreeMap<&str, &NodeEvaluation> =
        evaluation.nodes.iter().map(|node| (cluster.names[node.node.index()].as_str(), node)).collect();
    for wanted in list(expected, "nodes")? {
        let name = text(wanted, "name")?.unwrap_or_default();
        let node = found.get(name).ok_or_else(|| format!("node {name} was not evaluated"))?;
        compare_node(node, wanted).map_err(|difference| format!("node {name}: {difference}"))?;
    }
    let best = |nodes: &[NodeId]| {
        let mut names: Vec<String> = nodes.iter().map(|node| cluster.names[node.index()].clone()).collect();
        names.sort();
        names
    };
    let mut wanted: Vec<String> =
        list(expected, "best")?.iter().map(|name| name.as_str().unwrap_or_default().to_owned()).collect();
    wanted.sort();
    same("best", best(&evaluation.best), wanted.clone())?;
    match Scheduler::new(config).schedule(&cluster.view, &pod, TieBreak::Heap) {
        Placement::Node(chosen) => {
            let name = cluster.names[chosen.node.index()].clone();
            if wanted.contains(&name) { Ok(()) } else { Err(format!("goes to {name}, best are {wanted:?}")) }
        }
        Placement::Unschedulable(_) => same("best", Vec::new(), wanted),
    }
}

fn compare_node(node: &NodeEvaluation, wanted: &Value) -> Result<(), String> {
    same("feasible", node.rejection.is_none(), wanted["feasible"].as_bool().unwrap_or(false))?;
    if let Some(rejection) = &node.rejection {
        let left_out = rejection.reasons.contains(&Reason::NotNamedByNodeAffinity);
        let by = if left_out { "PreFilter" } else { rejection.plugin().as_str() };
        same("rejectedBy", by, text(wanted, "rejectedBy")?.unwrap_or_default())?;
        let version = SchedulerConfig::default().version;
        let mut reasons: Vec<String> = rejection.reasons.iter().map(|reason| reason.text(version)).collect();
        reasons.sort();
        let texts = list(wanted, "reasons")?.iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect();
        return same("reasons", if left_out { Vec::new() } else { reasons }, texts);
    }
    let scores: BTreeMap<&str, i64> = node.scores.iter().map(|(plugin, score)| (plugin.as_str(), *score)).collect();
    let wanted_scores: BTreeMap<&str, i64> = Plugin::SCORING
        .iter()
        .filter_map(|plugin| Some((plugin.as_str(), wanted["scores"][plugin.as_str()].as_i64()?)))
        .collect();
    same("scores", scores, wanted_scores)?;
    same("total", node.total, wanted["total"].as_i64())
}

/// The cluster of one case.
struct Cluster {
    view: ClusterView,
    names: Vec<String>,
    /// Selectors of ReplicaSets and StatefulSets by kind and name.
    owners: BTreeMap<(String, String), LabelSelector>,
}

impl Cluster {
    fn read(case: &Value) -> Result<Self, String> {
        let (mut services, mut namespaces, mut owners) = (Vec::new(), Vec::new(), BTreeMap::new());
        for object in list(case, "objects")? {
            let name = text(&object["metadata"], "name")?.unwrap_or_default();
            let namespace = Symbol::new(text(&object["metadata"], "namespace")?.unwrap_or("default"));
            match text(object, "kind")?.unwrap_or_default() {
                "Service" => services.push(Service { namespace, selector: labels(&object["spec"]["selector"]) }),
                "Namespace" => namespaces.push((Symbol::new(name), labels(&object["metadata"]["labels"]))),
                kind @ ("ReplicaSet" | "StatefulSet") => {
                    // Both have their selector where a Deployment has it; only the selector matters here.
                    let template = json!({
                        "metadata": object["spec"]["template"]["metadata"],
                        "spec": {"containers": [{"name": "any"}]},
                    });
                    let same_selector = json!({
                        "metadata": object["metadata"],
                        "spec": {"selector": object["spec"]["selector"], "template": template},
                    });
                    let read = deployment_from_json(&same_selector).map_err(|error| error.to_string())?;
                    owners.insert((kind.to_owned(), name.to_owned()), read.selector);
                }
                other => return Err(format!("unknown object {other}")),
            }
        }
        let mut cluster = Self { view: ClusterView::new(services, namespaces), names: Vec::new(), owners };
        let mut pods = 0;
        for node in list(case, "nodes")? {
            let id = NodeId::from_index(cluster.names.len());
            cluster.view.add_node(id, read_node(node)?);
            cluster.names.push(text(node, "name")?.unwrap_or_default().to_owned());
            for running in list(node, "pods")? {
                let shape = cluster.shape(&running["pod"])?;
                for _ in 0..running["replicas"].as_u64().unwrap_or(1) {
                    cluster.view.assume_pod(id, PodId(pods), shape, SimTime::ZERO);
                    pods += 1;
                }
            }
        }
        Ok(cluster)
    }

    fn shape(&mut self, pod: &Value) -> Result<ShapeId, String> {
        let read = pod_from_json(pod).map_err(|error| error.to_string())?;
        let owner = &pod["metadata"]["ownerReferences"][0];
        let owner = |key: &str| owner[key].as_str().unwrap_or_default().to_owned();
        let selector = self.owners.get(&(owner("kind"), owner("name")));
        Ok(self.view.shape(read.name.namespace, &Arc::new(read.spec), selector))
    }
}

fn read_node(node: &Value) -> Result<SchedulerNode, String> {
    let name = text(node, "name")?.unwrap_or_default();
    let mut labels = node["labels"].as_object().cloned().unwrap_or_default();
    labels.insert("kubernetes.io/hostname".to_owned(), json!(name));
    let object = json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": list(node, "taints")?, "unschedulable": node["unschedulable"].as_bool().unwrap_or(false)},
        "status": {"allocatable": node["allocatable"], "capacity": node["allocatable"]},
    });
    let read = node_from_json(&object).map_err(|error| error.to_string())?;
    let mut images = Vec::new();
    for image in list(node, "images")? {
        let size_bytes = image["sizeBytes"].as_i64().unwrap_or(0);
        for name in list(image, "names")? {
            images.push(NodeImage { name: Symbol::new(name.as_str().unwrap_or_default()), size_bytes });
        }
    }
    if read.allocatable.find(ResourceName::PODS).is_none() {
        return Err(format!("node {name} states no pods"));
    }
    Ok(SchedulerNode {
        name: read.name.into(),
        labels: read.labels,
        taints: read.taints,
        unschedulable: read.unschedulable,
        allocatable: read.allocatable,
        images,
        volume_limits: Vec::new(),
        missing_drivers: Vec::new(),
    })
}

fn labels(value: &Value) -> Labels {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(key, value)| (Symbol::new(key), Symbol::new(value.as_str().unwrap_or_default()))).collect()
}

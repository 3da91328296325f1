//! ReplicaSets and ReplicationControllers, read as Deployments that never roll out.
//!
//! Source: Kubernetes 1.36 `pkg/apis/apps/v1/types.go` (`ReplicaSetSpec`), `pkg/apis/core/types.go` (`ReplicationControllerSpec`).

use std::sync::Arc;

use super::bounds::replicas;
use super::common::{labels, metadata};
use super::pod::{OBJECT, controlling};
use super::workloads::{PROGRESS_DEADLINE, selected_pods, template};
use nodecast_model::domain::pod::{IntOrPercent, OwnerKind};
use nodecast_model::domain::workload::{Deployment, ObjectName, ROLLOUT_HASH, TEMPLATE_HASH, deployment_of_set};
use nodecast_model::domain::{LabelSelector, PodSpec, SimDuration, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

static REPLICA_SET: Shape = Shape {
    name: "a ReplicaSet's spec",
    keys: &["replicas", "selector", "template", "minReadySeconds"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// Kinds whose ReplicaSets are simulated through them.
const MANAGERS: [&str; 2] = ["Deployment", "Rollout"];

/// A ReplicaSet, as the Deployment that it runs as.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplicaSet {
    /// Its own name.
    pub name: ObjectName,
    /// Whether a Deployment or Rollout manages it: it then runs only where that one is missing.
    pub is_managed: bool,
    /// What it runs as, under the name of what manages it.
    pub deployment: Deployment,
}

/// A ReplicaSet or ReplicationController object.
pub(super) fn replica_set<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<ReplicaSet, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let metadata = metadata(reader, fields.get("metadata"))?;
    let name = metadata.name;
    let text = |owner: &Node<'s>, key| owner.get(key).and_then(Node::as_text).map(str::to_owned);
    let owner = controlling(metadata.owners).map(|owner| (text(owner, "kind"), text(owner, "name")));
    let manager = owner.and_then(|(kind, name)| name.filter(|_| kind.is_some_and(|kind| MANAGERS.contains(&&*kind))));
    let spec = reader.fields(fields.required(reader, "spec")?, &REPLICA_SET)?;
    let (mut selector, mut template) = pods(reader, spec, object)?;
    let hash = [TEMPLATE_HASH, ROLLOUT_HASH].iter().find_map(|key| template.labels.get(Symbol::new(key)));
    let deployment = manager.as_deref().or_else(|| deployment_of_set(name.name.as_str(), hash.map(Symbol::as_str)));
    let called = ObjectName { name: deployment.map_or(name.name, Symbol::new), ..name };
    // The controller of the Deployment that it runs as sets the label itself.
    for key in [TEMPLATE_HASH, ROLLOUT_HASH].map(Symbol::new) {
        selector.match_labels.remove(key);
        template.labels.remove(key);
    }
    Ok(ReplicaSet {
        name,
        is_managed: manager.is_some(),
        deployment: Deployment {
            name: called,
            replicas: replicas(reader, spec, "replicas")?,
            selector,
            template: Arc::new(template),
            rolls_out: false,
            max_surge: Some(IntOrPercent::Percent(25)),
            max_unavailable: Some(IntOrPercent::Percent(25)),
            min_ready: spec
                .optional("minReadySeconds", |n, what| reader.seconds(n, what))?
                .unwrap_or(SimDuration::ZERO),
            progress_deadline: PROGRESS_DEADLINE,
        },
    })
}

/// The pods of a ReplicaSet; the selector of a ReplicationController is a plain map of labels.
fn pods<'s>(
    reader: &mut Reader<'s>,
    spec: Fields<'_, 's>,
    object: &Node<'s>,
) -> Result<(LabelSelector, PodSpec), InputError> {
    if object.get("kind").and_then(Node::as_text) == Some("ReplicaSet") {
        return selected_pods(reader, spec, OwnerKind::ReplicaSet);
    }
    let template = template(reader, spec.required(reader, "template")?, OwnerKind::ReplicaSet)?;
    let stated = labels(reader, spec, "selector")?;
    let match_labels = if stated.is_empty() { template.labels.clone() } else { stated };
    Ok((LabelSelector { match_labels, expressions: Vec::new() }, template))
}

//! Kubernetes manifests, read into the domain's vocabulary.

mod affinity;
mod common;
mod node;
mod node_class;
mod node_pool;
mod pod;
mod workloads;

pub use pod::PodObject;
pub use workloads::PriorityClass;

use serde_json::Value;

use super::reader::Reader;
use super::tree::Node;
use super::{Limits, ScenarioError};
use crate::domain::pod::PodDisruptionBudget;
use crate::domain::workload::{DaemonSet, Deployment};
use crate::domain::{NodeClass, NodeObject, NodePool};

/// Reads a `v1` Pod from JSON, as `kubectl get pod -o json` prints it.
///
/// # Errors
/// If a value cannot be what its key says. Unknown and unsupported keys are passed over.
pub fn pod_from_json(value: &Value) -> Result<PodObject, ScenarioError> {
    from_json(value, pod::pod)
}

/// Reads a `v1` Node from JSON.
///
/// # Errors
/// As [`pod_from_json`].
pub fn node_from_json(value: &Value) -> Result<NodeObject, ScenarioError> {
    from_json(value, node::node)
}

/// Reads a `karpenter.sh` `v1` or `v1beta1` NodePool from JSON.
///
/// # Errors
/// As [`pod_from_json`].
pub fn node_pool_from_json(value: &Value) -> Result<NodePool, ScenarioError> {
    from_json(value, node_pool::node_pool)
}

/// Reads a `karpenter.k8s.aws` `v1` or `v1beta1` EC2NodeClass from JSON.
///
/// # Errors
/// As [`pod_from_json`].
pub fn node_class_from_json(value: &Value) -> Result<NodeClass, ScenarioError> {
    from_json(value, node_class::node_class)
}

/// Reads an `apps/v1` Deployment from JSON.
///
/// # Errors
/// As [`pod_from_json`].
pub fn deployment_from_json(value: &Value) -> Result<Deployment, ScenarioError> {
    from_json(value, workloads::deployment)
}

/// Reads an `apps/v1` DaemonSet from JSON.
///
/// # Errors
/// As [`pod_from_json`].
pub fn daemon_set_from_json(value: &Value) -> Result<DaemonSet, ScenarioError> {
    from_json(value, workloads::daemon_set)
}

/// Reads a `policy/v1` PodDisruptionBudget from JSON.
///
/// # Errors
/// As [`pod_from_json`].
pub fn pod_disruption_budget_from_json(value: &Value) -> Result<PodDisruptionBudget, ScenarioError> {
    from_json(value, workloads::pod_disruption_budget)
}

/// Reads a `scheduling.k8s.io/v1` PriorityClass from JSON.
///
/// # Errors
/// As [`pod_from_json`].
pub fn priority_class_from_json(value: &Value) -> Result<PriorityClass, ScenarioError> {
    from_json(value, workloads::priority_class)
}

fn from_json<'v, T>(
    value: &'v Value,
    read: fn(&mut Reader<'v>, &Node<'v>) -> Result<T, ScenarioError>,
) -> Result<T, ScenarioError> {
    let tree = Node::from_json(value, &Limits::default())?;
    let mut reader = Reader::new(None);
    reader.set_subject(subject(&tree));
    read(&mut reader, &tree)
}

/// What a message calls an object: its kind and name.
fn subject(object: &Node<'_>) -> String {
    let text = |node: Option<&Node<'_>>| node.and_then(Node::as_text).map(str::to_owned);
    let metadata = object.get("metadata");
    let kind = text(object.get("kind")).unwrap_or_else(|| "object".to_owned());
    let name = text(metadata.and_then(|m| m.get("name"))).unwrap_or_default();
    match text(metadata.and_then(|m| m.get("namespace"))) {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{node_from_json, node_pool_from_json, pod_from_json};
    use crate::domain::pod::OwnerKind;

    #[test]
    fn a_pod_reads_with_its_limits_standing_in_for_requests() {
        let pod = pod_from_json(&json!({
            "metadata": {"name": "p", "namespace": "web", "labels": {"app": "p"},
                "ownerReferences": [{"kind": "ReplicaSet", "controller": true}]},
            "spec": {
                "containers": [{"name": "c", "resources": {"limits": {"cpu": 1, "memory": "2G"}}}],
                "initContainers": [{"name": "s", "restartPolicy": "Always",
                    "resources": {"requests": {"cpu": "100m"}}}],
                "tolerations": [{"operator": "Exists"}],
            }
        }))
        .unwrap();
        assert_eq!(pod.name.to_string(), "web/p");
        assert_eq!(pod.spec.owner, OwnerKind::ReplicaSet);
        assert_eq!(pod.spec.requests().to_string(), "cpu 1100m, memory 1953125Ki, pods 1");
    }

    #[test]
    fn an_error_without_a_position_names_the_object() {
        let error = pod_from_json(&json!({
            "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"resources": {"requests": {"cpu": "4GB"}}}]}
        }))
        .unwrap_err();
        assert_eq!(error.to_string(), "Pod p: `cpu` is `4GB`, which has the unknown suffix `GB`");
    }

    #[test]
    fn on_the_hosts_network_container_ports_are_host_ports() {
        let pod = pod_from_json(&json!({"spec": {
            "hostNetwork": true, "containers": [{"ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]}]
        }}))
        .unwrap();
        let ports: Vec<_> = pod.spec.host_ports().map(|port| (port.port, port.protocol.as_str())).collect();
        assert_eq!(ports, [(80, "TCP"), (53, "UDP")]);
    }

    #[test]
    fn a_node_pool_reads_with_the_defaults_of_its_api() {
        let pool = node_pool_from_json(&json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
            "spec": {"template": {"spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "main"},
                "requirements": [{"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["3"]}],
            }}, "limits": {"cpu": "1000"}}
        }))
        .unwrap();
        assert_eq!(pool.node_class.as_str(), "main");
        assert_eq!(pool.limits.cpu_milli(), 1_000_000);
        assert_eq!(pool.requirements[0].gte, Some(4));
        assert_eq!(pool.expire_after.map(|d| d.to_string()).as_deref(), Some("30d"));
        assert_eq!(pool.disruption.budgets.len(), 1);
    }

    #[test]
    fn a_node_without_allocatable_offers_its_capacity() {
        let node = node_from_json(&json!({
            "metadata": {"name": "n"}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
            "status": {"capacity": {"cpu": "4", "pods": "58"},
                "conditions": [{"type": "Ready", "status": "False"}]}
        }))
        .unwrap();
        assert_eq!(node.allocatable.to_string(), "cpu 4, pods 58");
        assert_eq!(node.taints[0].to_string(), "a:NoSchedule");
        assert!(!node.ready);
    }
}

//! What a pod asks of its node beyond CPU and memory.
//!
//! Source: kube-state-metrics 2.20 `docs/metrics/workload/pod-metrics.md` (`kube_pod_tolerations` is exported by default, `kube_pod_nodeselectors` where it is
//! opted in), `internal/store/pod.go`, `internal/store/utils.go` (how labels and resources are written).

use super::{Asking, HOUR, POD};

/// The role of the question for GPUs.
pub const GPUS_ROLE: &str = "pod_gpus";
/// The role of the question for tolerations.
pub const TOLERATIONS_ROLE: &str = "pod_tolerations";
/// The role of the question for node selectors.
pub const SELECTORS_ROLE: &str = "pod_node_selectors";

/// Labels of nodes that selectors name, and what kube-state-metrics makes of each. A label of somebody's own cannot be told from what was made of it.
pub const NODE_SELECTORS: [(&str, &str); 11] = [
    ("kubernetes.io/arch", "nodeselector_kubernetes_io_arch"),
    ("kubernetes.io/os", "nodeselector_kubernetes_io_os"),
    ("topology.kubernetes.io/zone", "nodeselector_topology_kubernetes_io_zone"),
    ("node.kubernetes.io/instance-type", "nodeselector_node_kubernetes_io_instance_type"),
    ("karpenter.sh/nodepool", "nodeselector_karpenter_sh_nodepool"),
    ("karpenter.sh/capacity-type", "nodeselector_karpenter_sh_capacity_type"),
    ("karpenter.k8s.aws/instance-category", "nodeselector_karpenter_k8s_aws_instance_category"),
    ("karpenter.k8s.aws/instance-family", "nodeselector_karpenter_k8s_aws_instance_family"),
    ("karpenter.k8s.aws/instance-gpu-name", "nodeselector_karpenter_k8s_aws_instance_gpu_name"),
    ("eks.amazonaws.com/nodegroup", "nodeselector_eks_amazonaws_com_nodegroup"),
    ("eks.amazonaws.com/capacityType", "nodeselector_eks_amazonaws_com_capacity_type"),
];

pub(super) fn queries(list: &mut Asking<'_>) {
    let gpus = list.namespaced("kube_pod_container_resource_requests", "namespace", &["resource=\"nvidia_com_gpu\""]);
    let gpus = list.once(format!("last_over_time({gpus}[1h])"));
    list.looking_back(GPUS_ROLE, format!("sum by ({POD}) ({gpus})"), HOUR);
    // Every pod tolerates for a while what its node may come to, and those of DaemonSets tolerate it for good.
    let item = ["key!~\"node.kubernetes.io/.*\""];
    let tolerations = list.namespaced("kube_pod_tolerations", "namespace", &item);
    let by = format!("{POD}, key, operator, value, effect");
    list.looking_back(TOLERATIONS_ROLE, format!("group by ({by}) (present_over_time({tolerations}[1h]))"), HOUR);
    let selectors = list.namespaced("kube_pod_nodeselectors", "namespace", &[]);
    let by = NODE_SELECTORS.iter().fold(POD.to_owned(), |by, (_, label)| by + ", " + label);
    list.looking_back(SELECTORS_ROLE, format!("group by ({by}) (present_over_time({selectors}[1h]))"), HOUR);
}

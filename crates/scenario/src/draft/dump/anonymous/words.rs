//! What names nobody: words, labels, keys and forms of values that a dump may keep when it is shown to others.
//!
//! What must not live here: how the rest is renamed.

use crate::domain::Quantity;
use crate::domain::keda::Scaler;
use crate::manifests::knows_group;

/// Words that stay, in order, each with what the new names of the texts between it and the next begin with. New names begin with `a`
/// before the first.
const ANCHORS: [(&str, &str); 5] = [
    ("default", "e"),
    ("karpenter", "kb"),
    ("kube-node-lease", "kube-o"),
    ("kube-public", "kube-q"),
    ("kube-system", "n"),
];
/// Words that stay and that nothing is sorted by.
const STAYING: [&str; 11] = [
    "istio-proxy",
    "linkerd-proxy",
    "cpu",
    "memory",
    "ephemeral-storage",
    "pods",
    "default-scheduler",
    "system-cluster-critical",
    "system-node-critical",
    "cluster-autoscaler",
    "by-tags",
];
/// Labels whose values name nobody: what a node is, and what controllers number their pods by.
const KNOWN_VALUES: [&str; 29] = [
    "istio-injection",
    "kubernetes_executor",
    "linkerd.io/inject",
    "ray.io/originated-from-crd",
    "rollouts-pod-template-hash",
    "sidecar.istio.io/inject",
    "spark-role",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "node.kubernetes.io/windows-build",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.ebs.csi.aws.com/zone",
    "topology.k8s.aws/zone-id",
    "eks.amazonaws.com/capacityType",
    "eks.amazonaws.com/compute-type",
    "karpenter.sh/capacity-type",
    "karpenter.k8s.aws/capacity-reservation-type",
    "karpenter.sh/initialized",
    "karpenter.sh/registered",
    "pod-template-hash",
    "controller-revision-hash",
    "pod-template-generation",
];
/// Labels that are known and whose values are names.
const KNOWN_KEYS: [&str; 20] = [
    "istio.io/rev",
    "jenkins/label",
    "job.runner.gitlab.com/pod",
    "kubernetes.io/hostname",
    "kubernetes.io/metadata.name",
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "alpha.eksctl.io/cluster-name",
    "karpenter.sh/nodepool",
    "karpenter.sh/provisioner-name",
    "karpenter.k8s.aws/ec2nodeclass",
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/component",
    "app.kubernetes.io/part-of",
    "app.kubernetes.io/version",
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
    "scaledobject.keda.sh/name",
    "CriticalAddonsOnly",
];
/// Labels by which people say how a node was bought.
const LIFECYCLES: [&str; 3] = ["node.kubernetes.io/lifecycle", "node-lifecycle", "lifecycle"];
/// Taints and labels of a node's condition: what else begins so may be anybody's.
const CONDITION_KEYS: [&str; 11] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/out-of-service",
    "node.kubernetes.io/exclude-from-external-load-balancers",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown",
];
/// Prefixes of taints and labels that are known.
const KNOWN_PREFIXES: [&str; 7] = [
    "karpenter.sh/",
    "karpenter.k8s.aws/",
    "node-role.kubernetes.io/control-plane",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "nvidia.com/gpu",
    "aws.amazon.com/neuron",
];
/// Beginnings of annotations that a run reads.
const ANNOTATIONS: [&str; 17] = [
    "config.linkerd.io/proxy-",
    "linkerd.io/inject",
    "sidecar.istio.io/",
    "karpenter.sh/do-not-",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
    "cluster-autoscaler.kubernetes.io/enable-ds-eviction",
    "cluster-autoscaler.kubernetes.io/pod-scale-up-delay",
    "cluster-autoscaler.kubernetes.io/daemonset-pod",
    "controller.kubernetes.io/pod-deletion-cost",
    "kubernetes.io/config.mirror",
    "kubernetes.io/config.source",
    "autoscaling.keda.sh/paused",
    "autoscaling.alpha.kubernetes.io/behavior",
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
    "pv.kubernetes.io/bind-completed",
];
/// Keys that go with all they hold: what may be secret, what describes machines of the network, and what no run reads.
const DROPPED: [&str; 48] = [
    "env",
    "envFrom",
    "command",
    "args",
    "lifecycle",
    "livenessProbe",
    "startupProbe",
    "managedFields",
    "uid",
    "resourceVersion",
    "generation",
    "selfLink",
    "finalizers",
    "generateName",
    "message",
    "securityContext",
    "volumeMounts",
    "volumeDevices",
    "serviceAccount",
    "serviceAccountName",
    "imagePullSecrets",
    "userData",
    "tags",
    "data",
    "binaryData",
    "stringData",
    "addresses",
    "hostAliases",
    "dnsConfig",
    "volumesAttached",
    "volumesInUse",
    "hostIP",
    "hostIPs",
    "podIP",
    "podIPs",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
    "ephemeralContainers",
    "loadBalancer",
    "clusterIP",
    "clusterIPs",
    "externalName",
    "volumeAttributes",
    "blockOwnerDeletion",
    "runtimeHandlers",
    "features",
    "config",
    "workingDir",
];
/// Keys whose values are words of an API, or are written in a form of their own.
const ENUMERATIONS: [&str; 65] = [
    "provisioningStrategy",
    "price",
    "priceAdjustment",
    "scopeName",
    "scopes",
    "type",
    "status",
    "phase",
    "reason",
    "reasons",
    "effect",
    "operator",
    "whenUnsatisfiable",
    "restartPolicy",
    "volumeBindingMode",
    "reclaimPolicy",
    "persistentVolumeReclaimPolicy",
    "accessModes",
    "consolidationPolicy",
    "consolidateAfter",
    "expireAfter",
    "terminationGracePeriod",
    "schedule",
    "timeZone",
    "timezone",
    "start",
    "end",
    "kubeletVersion",
    "architecture",
    "operatingSystem",
    "alias",
    "amiFamily",
    "volumeType",
    "deviceName",
    "volumeMode",
    "metricType",
    "concurrencyPolicy",
    "completionMode",
    "completedIndexes",
    "podManagementPolicy",
    "podReplacementPolicy",
    "whenScaled",
    "whenDeleted",
    "policy",
    "selectPolicy",
    "preemptionPolicy",
    "protocol",
    "scheme",
    "imagePullPolicy",
    "dnsPolicy",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
    "unhealthyPodEvictionPolicy",
    "zone",
    "instanceStorePolicy",
    "instanceTypes",
    "capacityType",
    "qosClass",
    "creationTimestamp",
    "deletionTimestamp",
    "strategy",
    "multipleScalersCalculation",
    "httpTokens",
    "httpEndpoint",
    "duration",
];
/// Conditions that Kubernetes, Karpenter and KEDA report.
const CONDITIONS: [&str; 34] = [
    "Ready",
    "PodScheduled",
    "Initialized",
    "ContainersReady",
    "PodReadyToStartContainers",
    "DisruptionTarget",
    "MemoryPressure",
    "DiskPressure",
    "PIDPressure",
    "NetworkUnavailable",
    "Launched",
    "Registered",
    "Drifted",
    "Consolidatable",
    "Empty",
    "Expired",
    "Complete",
    "Failed",
    "SuccessCriteriaMet",
    "FailureTarget",
    "Suspended",
    "AbleToScale",
    "ScalingActive",
    "ScalingLimited",
    "Available",
    "Progressing",
    "Active",
    "Fallback",
    "Paused",
    "DisruptionAllowed",
    "ReplicaFailure",
    "NodeClassReady",
    "ValidationSucceeded",
    "InstanceTerminating",
];
/// What the names of machine images' systems begin with.
const SYSTEMS: [&str; 6] = ["Amazon Linux", "Bottlerocket", "Ubuntu", "Windows Server", "Flatcar", "Red Hat"];
/// The words of which such names are made, but for releases.
const OF_SYSTEMS: [&str; 18] = [
    "Amazon",
    "Linux",
    "Bottlerocket",
    "OS",
    "Ubuntu",
    "LTS",
    "Windows",
    "Server",
    "Datacenter",
    "Core",
    "Flatcar",
    "Container",
    "by",
    "Kinvolk",
    "Red",
    "Hat",
    "Enterprise",
    "CoreOS",
];
/// Kinds of objects that others refer to.
const KINDS: [&str; 35] = [
    "SecurityGroupPolicy",
    "LimitRange",
    "ResourceQuota",
    "Rollout",
    "Namespace",
    "PriorityClass",
    "DaemonSet",
    "Service",
    "ServiceMonitor",
    "PodMonitor",
    "StorageClass",
    "VolumeAttributesClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "NodePool",
    "EC2NodeClass",
    "Provisioner",
    "AWSNodeTemplate",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "Job",
    "Pod",
    "HorizontalPodAutoscaler",
    "ScaledObject",
    "ScaledJob",
    "PodDisruptionBudget",
    "Node",
    "NodeClaim",
    "Machine",
    "ReplicaSet",
    "ReplicationController",
    "TriggerAuthentication",
    "ClusterTriggerAuthentication",
    "Ingress",
];
/// Groups of APIs.
const GROUPS: [&str; 15] = [
    "apps",
    "batch",
    "autoscaling",
    "autoscaling.x-k8s.io",
    "policy",
    "storage.k8s.io",
    "scheduling.k8s.io",
    "networking.k8s.io",
    "karpenter.sh",
    "karpenter.k8s.aws",
    "keda.sh",
    "monitoring.coreos.com",
    "metrics.k8s.io",
    "eks.amazonaws.com",
    "v1",
];
/// Keys of maps of labels.
const OF_LABELS: [&str; 4] = ["labels", "matchLabels", "nodeSelector", "selector"];
/// Keys of maps of resources.
const OF_RESOURCES: [&str; 7] = ["requests", "limits", "capacity", "allocatable", "overhead", "hard", "kubeReserved"];
/// Parameters of a StorageClass.
const PARAMETERS: [&str; 6] = ["type", "iops", "throughput", "fsType", "csi.storage.k8s.io/fstype", "encrypted"];
/// Tags of Auto Scaling groups whose value is a name.
pub(super) const NAMING_TAGS: [&str; 4] =
    ["eks:nodegroup-name", "alpha.eksctl.io/nodegroup-name", "eks:cluster-name", "alpha.eksctl.io/cluster-name"];
/// Prefixes of tags that say a label or a taint.
pub(super) const TEMPLATE_TAGS: [&str; 2] =
    ["k8s.io/cluster-autoscaler/node-template/label/", "k8s.io/cluster-autoscaler/node-template/taint/"];
/// Prefixes of tags whose key ends with a cluster's name.
pub(super) const CLUSTER_TAGS: [&str; 2] = ["kubernetes.io/cluster/", "k8s.io/cluster-autoscaler/"];

/// What the new name of a text begins with.
pub(super) fn prefix(text: &str) -> &'static str {
    ANCHORS.iter().rev().find(|(anchor, _)| *anchor < text).map_or("a", |(_, prefix)| prefix)
}

/// Whether a name is that of something that every cluster has.
pub(super) fn stays(text: &str) -> bool {
    STAYING.contains(&text) || ANCHORS.iter().any(|(anchor, _)| *anchor == text)
}

/// Whether a label's key names nobody.
pub(super) fn is_known_label(key: &str) -> bool {
    KNOWN_KEYS.contains(&key)
        || has_known_values(key)
        || CONDITION_KEYS.contains(&key)
        || LIFECYCLES.contains(&key)
        || KNOWN_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// Whether a label's values name nobody.
pub(super) fn has_known_values(key: &str) -> bool {
    KNOWN_VALUES.contains(&key)
        || key == "autoscaling.alpha.kubernetes.io/behavior"
        || key == "apps.kubernetes.io/pod-index"
        || key.starts_with("karpenter.k8s.aws/instance-")
}

/// Whether the value of a label by which people say how a node was bought does so, and nothing else.
pub(super) fn says_how_bought(key: &str, value: &str) -> bool {
    const WORDS: [&str; 5] = ["spot", "Ec2Spot", "on-demand", "OnDemand", "normal"];
    LIFECYCLES.contains(&key) && WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Whether KEDA has triggers of a type, or documents it.
pub(super) fn is_known_trigger(kind: &str) -> bool {
    Scaler::find(kind).is_some()
}

/// Whether a run reads an annotation.
pub(super) fn is_known_annotation(key: &str) -> bool {
    ANNOTATIONS.iter().any(|known| key.starts_with(known))
}

/// Whether a key goes with all it holds.
pub(in crate::draft::dump) fn is_dropped(key: &str) -> bool {
    DROPPED.contains(&key)
}

/// Whether the values of a key are words of an API.
pub(super) fn is_of_enumeration(key: &str) -> bool {
    ENUMERATIONS.contains(&key)
}

/// Whether a condition is one that everybody's objects have.
pub(super) fn is_known_condition(text: &str) -> bool {
    CONDITIONS.contains(&text)
}

/// The name and release of a node's system, if it is one that everybody may have, without what else somebody calls the image.
pub(super) fn system(text: &str) -> Option<String> {
    let is_release = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let words = text.split(' ').take_while(|word| OF_SYSTEMS.contains(word) || is_release(word));
    SYSTEMS.iter().any(|system| text.starts_with(system)).then(|| words.collect::<Vec<_>>().join(" "))
}

/// Whether a volume's driver is of AWS or of Kubernetes.
pub(super) fn is_known_driver(text: &str) -> bool {
    text.ends_with(".aws.com") || text.starts_with("kubernetes.io/")
}

/// Whether a kind is one of those that everybody has.
pub(super) fn is_known_kind(text: &str) -> bool {
    KINDS.contains(&text)
}

/// Whether an `apiVersion` is of an API that everybody has.
pub(super) fn is_known_group(text: &str) -> bool {
    let group = text.split('/').next().unwrap_or_default();
    GROUPS.contains(&group) || knows_group(group)
}

/// Whether the map under a key holds labels.
pub(super) fn holds_labels(key: &str) -> bool {
    OF_LABELS.contains(&key)
}

/// Whether the map under a key holds resources.
pub(super) fn holds_resources(key: &str) -> bool {
    OF_RESOURCES.contains(&key)
}

/// Whether a resource is one that everybody may have.
pub(super) fn is_known_resource(name: &str) -> bool {
    const PREFIXES: [&str; 7] = [
        "nvidia.com/",
        "amd.com/",
        "habana.ai/",
        "aws.amazon.com/",
        "vpc.amazonaws.com/",
        "hugepages-",
        "attachable-volumes-",
    ];
    let name = name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
    ["cpu", "memory", "ephemeral-storage", "pods", "storage", "count/pods"].contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a parameter of a StorageClass changes what its volumes cost or can do.
pub(super) fn is_known_parameter(key: &str) -> bool {
    PARAMETERS.contains(&key)
}

/// Whether a text is a truth value, a number, a quantity, a share, a span or a point of time.
pub(super) fn names_nobody(text: &str) -> bool {
    ["true", "false", "True", "False", ""].contains(&text)
        || text.parse::<Quantity>().is_ok()
        || text.strip_suffix('%').is_some_and(|number| number.parse::<f64>().is_ok())
        || text.parse::<crate::domain::SimDuration>().is_ok()
        || text.parse::<jiff::Timestamp>().is_ok()
}

/// A key that begins with one of some prefixes, cut behind it.
pub(super) fn split<'k>(key: &'k str, prefixes: &[&'static str]) -> Option<(&'static str, &'k str)> {
    prefixes.iter().find_map(|prefix| Some((*prefix, key.strip_prefix(prefix)?)))
}

#[cfg(test)]
mod tests {
    use super::{ANCHORS, is_known_label, prefix, system};

    #[test]
    fn custom_suffixes_of_common_names_are_anonymised() {
        for (text, kept) in [
            ("Amazon Linux 2", Some("Amazon Linux 2")),
            ("Amazon Linux 2023.6.20250101", Some("Amazon Linux 2023.6.20250101")),
            ("Bottlerocket OS 1.20.3 (aws-k8s-1.29)", Some("Bottlerocket OS 1.20.3")),
            ("Windows Server 2022 Datacenter", Some("Windows Server 2022 Datacenter")),
            ("Amazon Linux acme", Some("Amazon Linux")),
            ("Acme Linux 1", None),
        ] {
            assert_eq!(system(text).as_deref(), kept, "{text}");
        }
        assert!(is_known_label("node.kubernetes.io/not-ready") && !is_known_label("node.kubernetes.io/acme"));
    }

    #[test]
    fn new_names_sort_between_the_words_that_stay() {
        let mut sorted: Vec<String> = vec!["a-0".to_owned()];
        for (anchor, begins) in ANCHORS {
            sorted.extend([anchor.to_owned(), format!("{begins}-0")]);
        }
        assert!(sorted.is_sorted(), "{sorted:?}");
        assert_eq!(["analytics", "database", "shop", "default-x", "kube-z"].map(prefix), ["a", "a", "n", "e", "n"]);
    }
}

//! EKS Auto Mode where it is not Karpenter as users run it: built-in NodePools, allowed instance types, the longest life of a node, and
//! which DaemonSets are part of its nodes.
//!
//! Source: EKS user guide, `automode/` (2026): `set-builtin-node-pools`, `create-node-pool`, `create-node-class`,
//! `automode-learn-instances`; the whole objects of the built-in pools as clusters show them (2025-12).
//!
//! What must not live here: what it costs beside its instances (`ec2`), which release of Karpenter it is like (`release`).

mod allowed;

use std::fmt;
use std::sync::Arc;

pub use allowed::{Refusal, refusal};

use crate::domain::labels::{auto_mode_label, is_of_karpenters_types};
use crate::domain::node_pool::{AmiFamily, BlockDevice, Budget, ConsolidationPolicy, Disruption};
use crate::domain::pod::{IntOrPercent, NodeSelectorExpression, NodeSelectorTerm};
use crate::domain::requirements::Operator;
use crate::domain::symbol::well_known;
use crate::domain::taints::{Taint, TaintEffect};
use crate::domain::volumes::DiskClass;
use crate::domain::workload::DaemonSet;
use crate::domain::{NodeClass, NodePool, PodSpec, Requirement, SimDuration, Symbol};

const GIB: i64 = 1 << 30;
/// Age at which nodes are replaced unless a pool says otherwise.
pub const EXPIRE_AFTER: SimDuration = SimDuration::from_secs(336 * 3_600);
/// How long a drain may take unless a pool says otherwise.
pub const GRACE_PERIOD: SimDuration = SimDuration::from_secs(24 * 3_600);
/// How long a node may live at most, its drain included.
pub const LONGEST_LIFE: SimDuration = SimDuration::from_secs(504 * 3_600);
/// The root volume of a node, whose size is assumed: AWS does not publish it.
const ROOT_GIB: i64 = 4;
/// The volume for pods, unless `ephemeralStorage` says otherwise.
pub const STORAGE_GIB: i64 = 80;

/// A NodePool that comes with EKS Auto Mode and can only be switched on and off.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BuiltIn {
    /// `general-purpose`: any pod, amd64.
    GeneralPurpose,
    /// `system`: pods that tolerate `CriticalAddonsOnly`, amd64 and arm64.
    System,
}

impl BuiltIn {
    /// Both.
    pub const ALL: [Self; 2] = [Self::GeneralPurpose, Self::System];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GeneralPurpose => "general-purpose",
            Self::System => "system",
        }
    }

    /// The object as clusters show it.
    pub fn pool(self) -> NodePool {
        let one_of =
            |key, values: &[&str]| Requirement::new(key, Operator::In, values.iter().map(|value| Symbol::new(value)));
        let (architectures, taints): (&[&str], _) = match self {
            Self::GeneralPurpose => (&["amd64"], Vec::new()),
            Self::System => (&["amd64", "arm64"], vec![critical_addons_only()]),
        };
        NodePool {
            requirements: vec![
                one_of(well_known::CAPACITY_TYPE, &["on-demand"]),
                one_of(well_known::EKS_INSTANCE_CATEGORY, &["c", "m", "r"]),
                Requirement::new(well_known::EKS_INSTANCE_GENERATION, Operator::Gt, [Symbol::new("4")]),
                one_of(well_known::ARCH, architectures),
                one_of(well_known::OS, &["linux"]),
            ],
            taints,
            disruption: Disruption {
                policy: ConsolidationPolicy::WhenEmptyOrUnderutilized,
                consolidate_after: Some(SimDuration::from_secs(30)),
                budgets: vec![Budget {
                    nodes: IntOrPercent::Percent(10),
                    reasons: None,
                    schedule: None,
                    duration: None,
                }],
            },
            ..own_pool(self.as_str())
        }
    }
}

fn critical_addons_only() -> Taint {
    Taint { key: Symbol::new("CriticalAddonsOnly"), value: well_known::EMPTY, effect: TaintEffect::NoSchedule }
}

/// A NodePool of the user's own with the defaults of Auto Mode: nodes live for two weeks and drain within a day.
pub fn own_pool(name: impl Into<Symbol>) -> NodePool {
    NodePool {
        expire_after: Some(EXPIRE_AFTER),
        termination_grace_period: Some(GRACE_PERIOD),
        auto_mode: true,
        ..NodePool::named(name)
    }
}

/// A NodeClass (`eks.amazonaws.com/v1`) with every default: Bottlerocket with a root volume and 80 GiB for pods.
///
/// Deviation: AWS does not publish the root volume size and the kubelet's reservations of EKS Auto Mode. 4 GiB and
/// Karpenter's formula for Bottlerocket are assumed.
pub fn node_class(name: impl Into<Symbol>) -> NodeClass {
    NodeClass {
        ami_family: AmiFamily::Bottlerocket,
        block_devices: volumes(STORAGE_GIB * GIB, DiskClass::of_type("gp3")),
        newest_images: true,
        auto_mode: true,
        ..NodeClass::named(name)
    }
}

/// The volumes of a node whose `ephemeralStorage` has so many bytes and is ordered as `disk`.
pub fn volumes(storage: i64, disk: DiskClass) -> Vec<BlockDevice> {
    let volume =
        |device: &str, size_bytes, disk| BlockDevice { device: device.to_owned(), size_bytes, root: false, disk };
    vec![volume("/dev/xvda", ROOT_GIB * GIB, DiskClass::of_type("gp3")), volume("/dev/xvdb", storage, disk)]
}

/// Marks the nodes of a pool as nodes of Auto Mode, by the label that they all have.
pub fn complete_pool(pool: &mut NodePool) {
    pool.labels.set(well_known::EKS_COMPUTE_TYPE, well_known::AUTO);
}

/// Why the API of Auto Mode refuses a NodePool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Blocker {
    /// Its nodes could live for longer than 21 days; `None` for ever.
    LivesTooLong {
        /// `expireAfter`.
        expire_after: Option<SimDuration>,
        /// `terminationGracePeriod`.
        grace: SimDuration,
    },
    /// It, or a pod, asks for a label that nodes of Auto Mode do not have.
    ForeignLabel {
        /// The label.
        label: Symbol,
        /// What Auto Mode calls it; `None` if it has nothing of the kind.
        instead: Option<Symbol>,
    },
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LivesTooLong { expire_after: None, .. } => {
                f.write_str("`expireAfter: Never`, and a node of EKS Auto Mode lives for 21 days (504h) at most")
            }
            Self::LivesTooLong { expire_after: Some(age), grace } => {
                write!(
                    f,
                    "`expireAfter` and `terminationGracePeriod` total {age} + {grace} = {}, and a node of EKS Auto Mode lives for \
                     21 days (504h) at most",
                    *age + *grace
                )
            }
            Self::ForeignLabel { label, .. } => {
                write!(f, "the label `{label}`, which no node of EKS Auto Mode has")
            }
        }
    }
}

impl Blocker {
    /// A way out.
    pub fn help(&self) -> String {
        match self {
            Self::LivesTooLong { .. } => {
                "write an `expireAfter` of at most 504h less the `terminationGracePeriod`, which is 24h unless it is stated"
                    .to_owned()
            }
            Self::ForeignLabel { instead: Some(item), .. } => format!("write `{item}`"),
            Self::ForeignLabel { instead: None, .. } => "EKS Auto Mode has no label of the kind: take it out".to_owned(),
        }
    }
}

/// What stands against a NodePool in a cluster with Auto Mode.
///
/// # Errors
/// The first thing that does.
pub fn check_pool(pool: &NodePool) -> Result<(), Blocker> {
    let keys =
        pool.requirements.iter().map(|requirement| requirement.key).chain(pool.labels.iter().map(|(key, _)| key));
    no_foreign_label(keys)?;
    let grace = pool.termination_grace_period.unwrap_or(SimDuration::ZERO);
    match pool.expire_after {
        Some(age) if age + grace <= LONGEST_LIFE => Ok(()),
        expire_after => Err(Blocker::LivesTooLong { expire_after, grace }),
    }
}

/// What stands against a pod in a cluster whose nodes are all of Auto Mode.
///
/// # Errors
/// A label that it requires and no node has.
pub fn check_pod(spec: &PodSpec) -> Result<(), Blocker> {
    let required = spec.node_affinity.required.iter().flat_map(|term| term.expressions.iter());
    let wanted =
        required.filter(|required| required.operator != Operator::NotIn && required.operator != Operator::DoesNotExist);
    no_foreign_label(spec.node_selector.iter().map(|(key, _)| key).chain(wanted.map(|item| item.key)))
}

fn no_foreign_label(mut keys: impl Iterator<Item = Symbol>) -> Result<(), Blocker> {
    match keys.find(|&key| is_of_karpenters_types(key)) {
        Some(label) => Err(Blocker::ForeignLabel { label, instead: auto_mode_label(label) }),
        None => Ok(()),
    }
}

/// Agents that are part of the operating system of nodes of Auto Mode, by the names of their DaemonSets and of their images: the network
/// plugin, kube-proxy, the EBS driver, pod identity, the node monitoring agent, DNS, and the plugins of GPUs and Neuron devices.
///
/// Source: EKS user guide, `automode/automode` (2026), what Auto Mode includes.
const AGENTS: [(&str, &str); 10] = [
    ("aws-node", "amazon-k8s-cni"),
    ("kube-proxy", "kube-proxy"),
    ("ebs-csi-node", "aws-ebs-csi-driver"),
    ("eks-pod-identity-agent", "eks-pod-identity-agent"),
    ("eks-node-monitoring-agent", "eks-node-monitoring-agent"),
    ("dcgm-server", "dcgm-exporter"),
    ("node-local-dns", "k8s-dns-node-cache"),
    ("nvidia-device-plugin-daemonset", "k8s-device-plugin"),
    ("neuron-device-plugin-daemonset", "neuron-device-plugin"),
    ("efa-device-plugin-daemonset", "efa-k8s-device-plugin"),
];

/// Whether what a DaemonSet runs is part of the nodes of Auto Mode, so that it has no pods there.
pub fn is_part_of_nodes(set: &DaemonSet) -> bool {
    let name = set.name.name.as_str();
    let images = || set.template.containers.iter().map(|container| container.image.as_str());
    let is_image = |image: &str, of: &str| {
        let last = image.rsplit('/').next().unwrap_or(image);
        last.split([':', '@']).next() == Some(of)
    };
    AGENTS.iter().any(|(key, image)| name == *key || images().any(|used| is_image(used, image)))
}

/// Keeps the pods of a DaemonSet off nodes of Auto Mode, as the node affinity of EKS's own add-ons does.
pub fn keep_off(set: &mut DaemonSet) {
    let expression = NodeSelectorExpression {
        key: well_known::EKS_COMPUTE_TYPE,
        operator: Operator::NotIn,
        values: vec![well_known::AUTO],
    };
    let mut spec = PodSpec::clone(&set.template);
    spec.as_written = spec.as_written.map(|written| Arc::new(kept_off(PodSpec::clone(&written), &expression)));
    set.template = Arc::new(kept_off(spec, &expression));
}

/// A specification with this expression in every term of its required node affinity.
fn kept_off(mut spec: PodSpec, expression: &NodeSelectorExpression) -> PodSpec {
    if spec.node_affinity.required.is_empty() {
        spec.node_affinity.required.push(NodeSelectorTerm { expressions: Vec::new(), fields: Vec::new() });
    }
    for term in &mut spec.node_affinity.required {
        term.expressions.push(expression.clone());
    }
    spec
}

#[cfg(test)]
mod tests;

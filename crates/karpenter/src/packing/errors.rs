//! Why a pod was not placed. Kinds follow Karpenter's; texts are close to its own.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/nodeclaim.go` (`InstanceTypeFilterError`),
//! `scheduler.go`, `topology.go`, `pkg/scheduling/hostportusage.go`.

use std::fmt;

use nodecast_model::domain::pod::HostPort;
use nodecast_model::domain::requirements::Incompatibility;
use nodecast_model::domain::{Requirements, ResourceName, Resources, Symbol, Taint};

/// Why a pod has no place after a pass.
#[derive(Clone, PartialEq, Debug)]
pub enum Unschedulable {
    /// There is no pool that could launch nodes for pods.
    NoDynamicPools,
    /// Every pool was left out because its own requirements leave no instance type.
    PoolsFilteredEverything,
    /// The pod asks for devices through dynamic resource allocation, which is switched off.
    ResourceClaims,
    /// A volume of the pod cannot be used; the pod was left out of the pass.
    Volume(VolumeRefusal),
    /// Each pool refused a new node.
    Refused(Vec<PoolRefusal>),
    /// Its claim was given up because keeping only the cheapest instance types would break `minValues`.
    CutBrokeMinValues {
        /// The claim's pool.
        node_pool: Symbol,
    },
}

/// A pool's refusal.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolRefusal {
    /// The pool's name.
    pub node_pool: Symbol,
    /// Why it cannot open a node for the pod.
    pub reason: Refusal,
}

/// Why a node, existing or new, cannot take a pod.
#[derive(Clone, PartialEq, Debug)]
pub enum Refusal {
    /// The pool's limit on `nodes` is used up.
    NodesLimit,
    /// Every instance type is larger than what the pool's limits leave.
    Limits,
    /// The pod does not tolerate a taint.
    Taint(Taint),
    /// A port on the node is taken.
    HostPort(HostPortConflict),
    /// The pod's requirements and the node's contradict each other.
    Incompatible(Incompatibility),
    /// The pod asks for another host, or for none.
    Hostname,
    /// No topology domain is left.
    Topology(Box<TopologyRefusal>),
    /// A volume's place contradicts the node's.
    VolumeTopology(Incompatibility),
    /// No instance type meets everything.
    InstanceTypes(Box<TypesRefusal>),
    /// A capacity reservation stands in the way.
    Reserved(ReservedRefusal),
    /// The node has too little of a resource.
    Resources {
        /// The resource.
        resource: ResourceName,
        /// What the pod requests, in the resource's own unit.
        requested: i64,
        /// What is left after the pods on the node and the daemons still to come.
        left: i64,
    },
    /// Too many volumes of a driver would be attached.
    VolumeLimit(Symbol),
}

/// Two pods want one port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostPortConflict {
    /// The port in use.
    pub existing: HostPort,
    /// The port wanted.
    pub incoming: HostPort,
}

/// The kind of a topology group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TopologyKind {
    /// A spread constraint.
    Spread,
    /// Pod affinity.
    Affinity,
    /// Pod anti-affinity, the pod's own or another pod's against it.
    AntiAffinity,
}

/// A topology constraint that no domain satisfies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopologyRefusal {
    /// What kind of constraint.
    pub kind: TopologyKind,
    /// Its key.
    pub key: Symbol,
    /// Pods counted in each domain, by name; for hostname only the number of hosts with pods is known, as an empty list.
    pub counts: Vec<(Symbol, i64)>,
}

/// Which criteria instance types missed, as Karpenter distinguishes them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CriteriaMissed {
    /// Survivors have too few different values for a `minValues`.
    MinValues,
    /// Requirements, resources and offering are each met by no type.
    All,
    /// Requirements and resources are each met by no type.
    RequirementsAndResources,
    /// Requirements and offering are each met by no type.
    RequirementsAndOffering,
    /// Resources and offering are each met by no type.
    ResourcesAndOffering,
    /// Requirements are met by no type.
    Requirements,
    /// Resources are met by no type.
    Resources,
    /// The offering is met by no type.
    Offering,
    /// Some type meets requirements and resources, none of those has the offering.
    OfferingOfFitting,
    /// Some type meets resources and offering, none of those meets the requirements.
    RequirementsOfFitting,
    /// Some type meets requirements and offering, none of those has the resources.
    ResourcesOfCompatible,
    /// Each criterion is met by some type, but no type meets two.
    NoPair,
}

/// No instance type is left for a node.
#[derive(Clone, PartialEq, Debug)]
pub struct TypesRefusal {
    /// What was missed.
    pub missed: CriteriaMissed,
    /// The label requirements of the node with the pod.
    pub requirements: Requirements,
    /// Everything requested on the node, pod and daemons included.
    pub requests: Resources,
    /// The daemons' share.
    pub daemon_requests: Resources,
    /// With [`CriteriaMissed::MinValues`]: the keys with too few values.
    pub min_values_keys: Vec<Symbol>,
}

/// Why reserved capacity refuses a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReservedRefusal {
    /// Compatible reservations exist, all are used up.
    UsedUp,
    /// The pod would take the claim's reservations away.
    WouldLoseReservations,
}

/// Why a volume of a pod cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VolumeRefusal {
    /// The claim does not exist.
    ClaimMissing(Symbol),
    /// The claim is being deleted.
    ClaimDeleting(Symbol),
    /// The claim has lost its volume.
    ClaimLost(Symbol),
    /// The claim names a volume but binding has not finished.
    BindingUnfinished(Symbol),
    /// The claim's volume does not exist.
    VolumeMissing(Symbol),
    /// The claim's volume is being deleted.
    VolumeDeleting(Symbol),
    /// The unbound claim has no storage class.
    NoStorageClass(Symbol),
    /// The unbound claim's storage class does not exist.
    StorageClassMissing(Symbol),
    /// The unbound claim's storage class binds at once, so something else must bind it.
    ImmediateBinding(Symbol),
}

impl Unschedulable {
    /// The pools whose limits leave no room for a node for the pod, each with whether that is its limit on nodes.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (Symbol, bool)> + '_ {
        let refusals = if let Self::Refused(refusals) = self { refusals.as_slice() } else { &[] };
        refusals.iter().filter_map(|refusal| match refusal.reason {
            Refusal::NodesLimit => Some((refusal.node_pool, true)),
            Refusal::Limits => Some((refusal.node_pool, false)),
            _ => None,
        })
    }
}

impl fmt::Display for Unschedulable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDynamicPools => f.write_str("no dynamic nodepools"),
            Self::PoolsFilteredEverything => {
                f.write_str("nodepool requirements filtered out all available instance types")
            }
            Self::ResourceClaims => f.write_str("pod asks for resource claims, which are ignored"),
            Self::Volume(refusal) => fmt::Display::fmt(refusal, f),
            Self::Refused(refusals) => {
                for (position, refusal) in refusals.iter().enumerate() {
                    write!(f, "{}{}: {}", if position == 0 { "" } else { "; " }, refusal.node_pool, refusal.reason)?;
                }
                Ok(())
            }
            Self::CutBrokeMinValues { node_pool } => {
                write!(f, "{node_pool}: keeping only the cheapest instance types would break minValues")
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodesLimit => f.write_str("the limit on nodes is reached"),
            Self::Limits => f.write_str("all available instance types exceed limits for nodepool"),
            Self::Taint(taint) => write!(f, "did not tolerate taint {taint}"),
            Self::HostPort(conflict) => write!(
                f,
                "host port {}/{} conflicts with {}/{} in use",
                conflict.incoming.port, conflict.incoming.protocol, conflict.existing.port, conflict.existing.protocol
            ),
            Self::Incompatible(reason) => write!(f, "incompatible requirements, {reason}"),
            Self::Hostname => f.write_str("incompatible requirements, key kubernetes.io/hostname"),
            Self::Topology(refusal) => fmt::Display::fmt(refusal, f),
            Self::VolumeTopology(reason) => write!(f, "incompatible volume requirements, {reason}"),
            Self::InstanceTypes(refusal) => fmt::Display::fmt(refusal, f),
            Self::Reserved(refusal) => fmt::Display::fmt(refusal, f),
            Self::Resources { resource, requested, left } => {
                let (requested, left) = (resource.format(*requested), resource.format(*left));
                write!(f, "not enough {resource}: {requested} requested, {left} left")
            }
            Self::VolumeLimit(driver) => write!(f, "would exceed the volume limit of {driver}"),
        }
    }
}

impl fmt::Display for TopologyRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            TopologyKind::Spread => "topology spread",
            TopologyKind::Affinity => "pod affinity",
            TopologyKind::AntiAffinity => "pod anti-affinity",
        };
        write!(f, "unsatisfiable topology constraint for {kind}, key={}", self.key)?;
        for (position, (domain, count)) in self.counts.iter().enumerate() {
            write!(f, "{}{domain}: {count}", if position == 0 { ", counts: " } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Display for CriteriaMissed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MinValues => "minValues requirement is not met",
            Self::All => {
                "no instance type met the scheduling requirements or had enough resources or had a required offering"
            }
            Self::RequirementsAndResources => {
                "no instance type met the scheduling requirements or had enough resources"
            }
            Self::RequirementsAndOffering => {
                "no instance type met the scheduling requirements or had a required offering"
            }
            Self::ResourcesAndOffering => "no instance type had enough resources or had a required offering",
            Self::Requirements => "no instance type met all requirements",
            Self::Resources => "no instance type has enough resources",
            Self::Offering => "no instance type has the required offering",
            Self::OfferingOfFitting => {
                "no instance type which met the scheduling requirements and had enough resources had a required offering"
            }
            Self::RequirementsOfFitting => {
                "no instance type which had enough resources and the required offering met the scheduling requirements"
            }
            Self::ResourcesOfCompatible => {
                "no instance type which met the scheduling requirements and the required offering had enough resources"
            }
            Self::NoPair => "no instance type met the requirements/resources/offering tuple",
        })
    }
}

impl fmt::Display for TypesRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.missed)?;
        for (position, key) in self.min_values_keys.iter().enumerate() {
            write!(f, "{}{key}", if position == 0 { " for " } else { ", " })?;
        }
        if !self.requirements.is_empty() {
            write!(f, ", requirements={}", self.requirements)?;
        }
        write!(f, ", resources={}", self.requests)?;
        // A million cores is a sign of a forgotten `m`.
        if self.missed == CriteriaMissed::Resources && self.requests.cpu_milli() >= 1_000_000_000 {
            f.write_str(" (CPU request >= 1 million: did you write M where m was meant?)")?;
        }
        Ok(())
    }
}

impl fmt::Display for ReservedRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UsedUp => "compatible capacity reservations exist but all of their capacity is taken",
            Self::WouldLoseReservations => "the pod would leave none of the claim's capacity reservations",
        })
    }
}

impl fmt::Display for VolumeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClaimMissing(name) => write!(f, "persistent volume claim {name} does not exist"),
            Self::ClaimDeleting(name) => write!(f, "persistent volume claim {name} is being deleted"),
            Self::ClaimLost(name) => write!(f, "persistent volume claim {name} has lost its volume"),
            Self::BindingUnfinished(name) => write!(f, "persistent volume claim {name} is not fully bound"),
            Self::VolumeMissing(name) => write!(f, "persistent volume {name} does not exist"),
            Self::VolumeDeleting(name) => write!(f, "persistent volume {name} is being deleted"),
            Self::NoStorageClass(name) => write!(f, "unbound persistent volume claim {name} has no storage class"),
            Self::StorageClassMissing(name) => write!(f, "storage class {name} does not exist"),
            Self::ImmediateBinding(name) => {
                write!(f, "unbound persistent volume claim {name} is of a class that binds at once")
            }
        }
    }
}

//! A node as the Kubernetes API states it.

use super::labels::Labels;
use super::resources::Resources;
use super::symbol::Symbol;
use super::taints::Taint;
use super::time::SimTime;

/// Whether `short` is the host name of the node `name`: `ip-10-0-1-2` of `ip-10-0-1-2.ec2.internal`.
pub fn is_short_name(short: &str, name: &str) -> bool {
    !short.is_empty() && name.strip_prefix(short).is_some_and(|domain| domain.starts_with('.'))
}

/// A Node object: a machine that already runs when a scenario, a packing question or a scheduling question begins.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeObject {
    /// Name.
    pub name: String,
    /// Labels.
    pub labels: Labels,
    /// Annotations.
    pub annotations: Labels,
    /// Taints.
    pub taints: Vec<Taint>,
    /// When each of the `NoExecute` taints that say so was added (`timeAdded`), since 1970, by key.
    pub tainted: Vec<(Symbol, SimTime)>,
    /// `unschedulable`: cordoned.
    pub unschedulable: bool,
    /// What the machine has.
    pub capacity: Resources,
    /// What it offers to pods; equal to `capacity` where the object states none.
    pub allocatable: Resources,
    /// `providerID`, for example `aws:///us-east-1a/i-0abc`.
    pub provider_id: Option<String>,
    /// Whether its `Ready` condition is true; an object without conditions counts as Ready.
    pub ready: bool,
    /// Whether it is being deleted (`deletionTimestamp`).
    pub deleting: bool,
    /// When it was created, since 1970.
    pub created: Option<SimTime>,
    /// When its kubelet was last heard of (the latest heartbeat of its conditions), since 1970.
    pub heard_of: Option<SimTime>,
}

/// A NodeClaim object: what Karpenter has written down of a node that it launched. Instants are since 1970.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeClaimObject {
    /// Name.
    pub name: String,
    /// The node that registered for it.
    pub node: Option<String>,
    /// When it was created.
    pub created: Option<SimTime>,
    /// When its node became initialized.
    pub initialized: Option<SimTime>,
    /// The last time that a pod came to its node or left it (`lastPodEventTime`).
    pub last_pod_event: Option<SimTime>,
    /// Since when it is drifted.
    pub drifted: Option<SimTime>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

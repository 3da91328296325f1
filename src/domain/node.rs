//! A node as the Kubernetes API states it.

use super::labels::Labels;
use super::resources::Resources;
use super::taints::Taint;

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
}

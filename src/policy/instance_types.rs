//! What a node of each EC2 instance type offers to pods, as Karpenter's AWS provider computes it: capacity, overhead,
//! allocatable, labels and offerings, by release.
//!
//! What must not live here: which type is chosen (`packing` narrows, `selection` chooses), how prices move (`cloud`).

use crate::domain::{HourlyRate, Requirements, Resources, Symbol};

/// An instance type as Karpenter's scheduler sees it: what its nodes are labelled with, what they hold, and where it can
/// be had at what price.
///
/// Source: Karpenter core v1.13 `pkg/cloudprovider/types.go`, `InstanceType`.
#[derive(Clone, PartialEq, Debug)]
pub struct InstanceType {
    /// Name, for example `m5.large`.
    pub name: Symbol,
    /// The values that each label of its nodes can take; an absent attribute is a `DoesNotExist` requirement.
    pub requirements: Requirements,
    /// What a node has, `pods` included.
    pub capacity: Resources,
    /// What a node offers to pods: capacity less what the kubelet, the system and the eviction threshold keep.
    pub allocatable: Resources,
    /// Where it can be had.
    pub offerings: Vec<Offering>,
}

/// One way to buy an instance type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offering {
    /// Zone name.
    pub zone: Symbol,
    /// `spot`, `on-demand` or `reserved`.
    pub capacity_type: Symbol,
    /// Price that Karpenter compares with; a reserved offering's is a ten-millionth of On-Demand.
    pub price: HourlyRate,
    /// Whether it can be launched as far as Karpenter knows.
    pub available: bool,
    /// The capacity reservation behind a reserved offering.
    pub reservation: Option<Reservation>,
}

/// The capacity reservation behind an offering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// Its id.
    pub id: Symbol,
    /// How many instances it still holds.
    pub free: u32,
}

//! Hand-made instance types and claims for the tests of this room.

use std::sync::Arc;

use super::{Choice, LaunchRequest, LaunchView, SelectionError, select};
use crate::instance_types::{InstanceType, Offering, Reservation};
use crate::packing::MinValuesPolicy;
use nodecast_model::domain::requirements::Operator;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{
    HourlyRate, KarpenterVersion, PriceOverlay, Requirement, Requirements, ResourceName, Resources, SimTime, Symbol,
};

/// An instance type in the making. Prices are thousandths.
#[derive(Clone)]
pub(super) struct Shape(InstanceType);

/// A type with `vcpus` CPUs, four times as many GiB and no offering.
pub(super) fn shape(name: &str, vcpus: i64) -> Shape {
    let capacity = Resources::cpu_memory(vcpus * 1_000, vcpus << 32);
    let name = Symbol::new(name);
    Shape(InstanceType {
        name,
        requirements: Arc::new([Requirement::equals(well_known::INSTANCE_TYPE, name)].into_iter().collect()),
        allocatable: capacity.clone(),
        capacity,
        offerings: Vec::new(),
    })
}

impl Shape {
    fn offer(mut self, zone: &str, capacity_type: Symbol, milli: i64, reservation: Option<Reservation>) -> Self {
        let price = HourlyRate::from_nanos(milli * 1_000_000);
        let zone = Symbol::new(zone);
        let overlay = None;
        let offering = Offering { zone, zone_id: None, capacity_type, price, available: true, reservation, overlay };
        self.0.offerings.push(offering);
        self
    }

    pub(super) fn on_demand(self, zone: &str, milli: i64) -> Self {
        self.offer(zone, well_known::ON_DEMAND, milli, None)
    }

    pub(super) fn spot(self, zone: &str, milli: i64) -> Self {
        self.offer(zone, well_known::SPOT, milli, None)
    }

    pub(super) fn reserved(self, zone: &str, id: &str, free: u32) -> Self {
        self.offer(zone, well_known::RESERVED, 0, Some(Reservation { id: Symbol::new(id), free, block_ends: None }))
    }

    pub(super) fn block(self, zone: &str, id: &str, free: u32) -> Self {
        let block_ends = Some(SimTime::FAR_FUTURE);
        self.offer(zone, well_known::RESERVED, 0, Some(Reservation { id: Symbol::new(id), free, block_ends }))
    }

    /// Makes the offering added last unavailable.
    pub(super) fn unavailable(mut self) -> Self {
        if let Some(last) = self.0.offerings.last_mut() {
            last.available = false;
        }
        self
    }

    /// Lays an overlay over the price of the offering added last.
    pub(super) fn overlaid(mut self, milli: i64) -> Self {
        if let Some(last) = self.0.offerings.last_mut() {
            let price = HourlyRate::from_nanos(milli * 1_000_000);
            (last.price, last.overlay) = (price, Some(PriceOverlay::To(price)));
        }
        self
    }

    pub(super) fn gpus(mut self, count: i64) -> Self {
        self.0.capacity.set(ResourceName::NVIDIA_GPU, count);
        self
    }

    pub(super) fn build(self) -> InstanceType {
        self.0
    }
}

/// Reads `zone=a,b capacity=spot`.
pub(super) fn requirements(text: &str) -> Requirements {
    text.split_whitespace()
        .filter_map(|term| term.split_once('='))
        .map(|(key, values)| {
            let key = match key {
                "zone" => well_known::ZONE,
                "capacity" => well_known::CAPACITY_TYPE,
                "tenancy" => well_known::INSTANCE_TENANCY,
                "reservation" => well_known::CAPACITY_RESERVATION_ID,
                "capacity-v0.4" => Symbol::new("node.k8s.aws/capacity-type"),
                other => Symbol::new(other),
            };
            Requirement::new(key, Operator::In, values.split(',').map(Symbol::new))
        })
        .collect()
}

/// What is asked for to launch a node with `cpu_milli` of requests.
pub(super) fn launch(
    karpenter: KarpenterVersion,
    text: &str,
    cpu_milli: i64,
    types: &[Shape],
) -> Result<LaunchRequest, SelectionError> {
    launch_with(karpenter, &requirements(text), &Resources::cpu_memory(cpu_milli, 0), types)
}

pub(super) fn launch_with(
    karpenter: KarpenterVersion,
    requirements: &Requirements,
    requests: &Resources,
    types: &[Shape],
) -> Result<LaunchRequest, SelectionError> {
    let types: Vec<Choice<'_>> = types.iter().map(|shape| Choice::new(&shape.0, requirements)).collect();
    select(&LaunchView { karpenter, requirements, requests, types: &types, min_values: MinValuesPolicy::Strict })
}

/// The request's overrides as `type zone`.
pub(super) fn names(request: &LaunchRequest) -> Vec<String> {
    request.overrides.iter().map(|pool| format!("{} {}", pool.instance_type, pool.zone)).collect()
}

//! Instance types of a made-up provider in three zones.

use std::sync::Arc;

use nodecast_karpenter::instance_types::{InstanceType, Offering};
use nodecast_model::domain::requirements::{Operator, Requirement};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{HourlyRate, ResourceName, Resources, Symbol};

pub const ZONES: [&str; 3] = ["zone-1", "zone-2", "zone-3"];
pub const GI: i64 = 1 << 30;

/// A type with room for `cpu` cores less 100m, four GiB for each, at a price that rises with its size, in every zone, on
/// Spot at half the price.
pub fn instance_type(name: &str, cpu: i64, gib: i64, arch: &str) -> InstanceType {
    let capacity = Resources::cpu_memory(cpu * 1_000, gib * GI).with(ResourceName::PODS, 110);
    let mut allocatable = capacity.clone();
    allocatable.subtract(&Resources::cpu_memory(100, 0));
    let price = cpu * 50_000_000 + gib * 1_000_000;
    let mut offerings = Vec::new();
    for zone in ZONES {
        for (capacity_type, price) in [("on-demand", price), ("spot", price / 2)] {
            offerings.push(Offering {
                zone: Symbol::new(zone),
                zone_id: None,
                capacity_type: Symbol::new(capacity_type),
                price: HourlyRate::from_nanos(price),
                available: true,
                reservation: None,
                overlay: None,
            });
        }
    }
    let is = |key: Symbol, value: &str| Requirement::equals(key, Symbol::new(value));
    let one_of = |key: Symbol, values: &[&str]| {
        Requirement::new(key, Operator::In, values.iter().map(|value| Symbol::new(value)))
    };
    let requirements = [
        is(well_known::INSTANCE_TYPE, name),
        is(well_known::ARCH, arch),
        is(well_known::OS, "linux"),
        is(well_known::INSTANCE_CPU, &cpu.to_string()),
        one_of(well_known::ZONE, &ZONES),
        one_of(well_known::CAPACITY_TYPE, &["spot", "on-demand"]),
        Requirement::new(well_known::CAPACITY_RESERVATION_ID, Operator::DoesNotExist, []),
        Requirement::new(well_known::INSTANCE_GPU_NAME, Operator::DoesNotExist, []),
    ];
    InstanceType {
        name: Symbol::new(name),
        requirements: Arc::new(requirements.into_iter().collect()),
        capacity,
        allocatable,
        offerings,
    }
}

//! Whether a node could still be launched as it is.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/nodeclaim/disruption/drift.go`, `instanceTypeNotFound`.

use crate::instance_types::{InstanceType, Offering};
use crate::selection::price::Terms;
use nodecast_model::domain::{Labels, well_known};

/// Labels that say which reservation a node came from, and that it came from one.
const RESERVED_LABELS: [nodecast_model::domain::Symbol; 4] = [
    well_known::CAPACITY_TYPE,
    well_known::CAPACITY_RESERVATION_ID,
    well_known::CAPACITY_RESERVATION_TYPE,
    well_known::CAPACITY_RESERVATION_INTERRUPTIBLE,
];

/// Whether the types of a pool no longer hold the one of a node with these labels, or none of its offerings, available or not,
/// is as the labels say. What came from a reservation may also be On-Demand, and of any reservation.
pub fn has_lost_its_type(types: &[InstanceType], labels: &Labels) -> bool {
    let name = labels.get(well_known::INSTANCE_TYPE);
    let Some(instance_type) = types.iter().find(|instance_type| Some(instance_type.name) == name) else { return true };
    let reserved = labels.get(well_known::CAPACITY_TYPE) == Some(well_known::RESERVED);
    let mut stated = labels.clone();
    if reserved {
        RESERVED_LABELS.into_iter().for_each(|key| stated.remove(key));
    }
    let Some(terms) = Terms::of_labels(&stated) else { return true };
    let of_kind = |offering: &&Offering| !reserved || offering.capacity_type != well_known::SPOT;
    !instance_type.offerings.iter().filter(of_kind).any(|offering| terms.allow(offering))
}

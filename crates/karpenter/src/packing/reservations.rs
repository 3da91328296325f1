//! Capacity reservations: which claim holds a unit of which reservation.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/reservationmanager.go`.

use rustc_hash::{FxHashMap, FxHashSet};

use super::input::PackingSetup;
use nodecast_model::domain::Symbol;

/// What is left of each reservation.
#[derive(Default)]
pub(super) struct Reservations {
    free: FxHashMap<Symbol, u32>,
    held: FxHashSet<(usize, Symbol)>,
}

impl Reservations {
    /// The capacity of each reservation: the smallest that any pool's list states.
    pub(super) fn new(setup: &PackingSetup<'_>) -> Self {
        let mut free: FxHashMap<Symbol, u32> = FxHashMap::default();
        for view in setup.pools {
            for offering in view.instance_types.iter().flat_map(|instance_type| &instance_type.offerings) {
                if let Some(reservation) = offering.reservation {
                    let known = free.entry(reservation.id).or_insert(reservation.free);
                    *known = (*known).min(reservation.free);
                }
            }
        }
        Self { free, held: FxHashSet::default() }
    }

    /// Whether the claim could hold a unit: it does already, or one is free.
    pub(super) fn can_hold(&self, claim: usize, id: Symbol) -> bool {
        self.held.contains(&(claim, id)) || self.free.get(&id).is_some_and(|&free| free > 0)
    }

    /// Gives the claim a unit, unless it holds one.
    pub(super) fn hold(&mut self, claim: usize, id: Symbol) {
        if self.held.insert((claim, id))
            && let Some(free) = self.free.get_mut(&id)
        {
            *free = free.saturating_sub(1);
        }
    }

    /// Takes the claim's unit back, if it holds one.
    pub(super) fn release(&mut self, claim: usize, id: Symbol) {
        if self.held.remove(&(claim, id))
            && let Some(free) = self.free.get_mut(&id)
        {
            *free += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reservations;
    use nodecast_model::domain::Symbol;
    use rustc_hash::{FxHashMap, FxHashSet};

    #[test]
    fn claim_holds_one_reservation_unit_until_release() {
        let id = Symbol::new("cr-1");
        let mut reservations = Reservations { free: FxHashMap::from_iter([(id, 1)]), held: FxHashSet::default() };
        reservations.hold(0, id);
        reservations.hold(0, id);
        assert!(reservations.can_hold(0, id) && !reservations.can_hold(1, id));
        reservations.release(1, id);
        assert!(!reservations.can_hold(1, id));
        reservations.release(0, id);
        reservations.release(0, id);
        reservations.hold(1, id);
        assert!(!reservations.can_hold(0, id));
    }
}

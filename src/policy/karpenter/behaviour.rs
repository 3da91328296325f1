//! How releases of Karpenter differ in what their controllers do: switches, set once from the release, so that no controller
//! compares versions.
//!
//! What must not live here: how their decisions differ (packing, instance types, methods of disruption, selection), which each
//! selects where it decides.

use crate::domain::{KarpenterVersion, SimDuration};

/// What a release's controllers do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Behaviour {
    /// Nodes are removed by the disruption loop of v1, and not by a timer on each.
    pub(super) disruption_loop: bool,
    /// Consolidation in releases without that loop.
    pub(super) consolidation: Consolidation,
    /// The Node object is made with the launch, and pods are bound to it at once.
    pub(super) binds_pods: bool,
    /// How long a node that is to receive pods is left alone, in halves of the longest batching window; none at all for zero.
    pub(super) nomination_half_windows: i64,
    /// A new claim is nominated for the pods that it was made for, and not only when a later pass puts pods on it.
    pub(super) nominates_claims: bool,
    /// Limits of NodePools are asked for again before a claim is made.
    pub(super) asks_limits_again: bool,
    /// Pods of nodes that leave get no new place while their budgets never let them go.
    pub(super) leaves_blocked_pods: bool,
    /// A claim whose node does not register in time is given up.
    pub(super) awaits_registration: bool,
    /// Launches whose calls are refused are tried again, for as long as a claim may wait.
    pub(super) retries_launches: bool,
    /// What lacked capacity is remembered for so long.
    pub(super) avoids_for: Option<SimDuration>,
    /// Offerings are chosen as v1 does: all types of a launch are weighed together.
    pub(super) weighs_open_types: bool,
    /// Capacity reservations are known (feature gate ReservedCapacity, on by default).
    pub(super) knows_reservations: bool,
    /// How much memory nodes of a type really have is learnt from those that register.
    pub(super) learns_memory: bool,
    /// Messages of the interruption queue are read.
    pub(super) reads_notices: bool,
    /// The status checks of instances are asked for.
    pub(super) asks_status: bool,
    /// Multi-node consolidation takes nodes in an order that the passing of time changes.
    pub(super) ages_order: bool,
}

/// Consolidation in releases without the disruption loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Consolidation {
    /// There is none, or the disruption loop does it.
    None,
    /// It waits until the cluster has been left alone, and takes one node at a time.
    WhenQuiet,
    /// It tries several nodes at once first, and looks again at what it has found after a while.
    Validated,
}

impl Behaviour {
    /// That of a release.
    pub(super) fn of(release: KarpenterVersion) -> Self {
        use KarpenterVersion as V;
        let v1 = release >= V::V1_13;
        Self {
            disruption_loop: v1,
            consolidation: match release {
                V::V0_4 | V::V0_6 | V::V1_13 | V::V1_14 => Consolidation::None,
                V::V0_16 | V::V0_18 => Consolidation::WhenQuiet,
                V::V0_22 => Consolidation::Validated,
            },
            binds_pods: release <= V::V0_6,
            nomination_half_windows: match release {
                V::V0_4 | V::V0_6 => 0,
                V::V0_16 | V::V0_18 => 3,
                V::V0_22 | V::V1_13 | V::V1_14 => 4,
            },
            nominates_claims: !v1,
            asks_limits_again: v1,
            leaves_blocked_pods: v1,
            awaits_registration: v1,
            retries_launches: release >= V::V0_22,
            avoids_for: match release {
                V::V0_4 => None,
                V::V0_6 => Some(SimDuration::from_secs(45)),
                _ => Some(SimDuration::from_secs(180)),
            },
            weighs_open_types: v1,
            knows_reservations: v1,
            learns_memory: v1,
            reads_notices: release.reads_notices(),
            asks_status: v1,
            ages_order: release < V::V1_14,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Behaviour, Consolidation};
    use crate::domain::KarpenterVersion as V;

    #[test]
    fn each_release_differs_from_the_one_before_in_what_its_notes_say() {
        let of = Behaviour::of;
        assert_eq!(of(V::V0_6), Behaviour { avoids_for: of(V::V0_6).avoids_for, ..of(V::V0_4) });
        assert!(of(V::V0_6).binds_pods && !of(V::V0_16).binds_pods);
        assert_eq!((of(V::V0_18), of(V::V0_18).consolidation), (of(V::V0_16), Consolidation::WhenQuiet));
        assert!(of(V::V0_22).reads_notices && !of(V::V0_18).reads_notices);
        assert!(of(V::V1_13).disruption_loop && !of(V::V0_22).disruption_loop);
        assert_eq!(of(V::V1_14), Behaviour { ages_order: false, ..of(V::V1_13) });
    }
}

//! The rows: what each release does, by the release in which each rule begins.

use super::{
    Behaviour, CommandQueue, Consolidation, EmptyDrifted, FailedValidation, FullSubnets, HostPorts, LabelSet,
    LaunchRank, LeavingMark, ListedTypes, NodeLimit, PoolDefaults, SpotFilter, StatusChecks, TypeDrift,
};
use crate::disruption::Method;
use nodecast_model::domain::{KarpenterVersion as Version, SimDuration};

/// Patch levels that differ from their minor release. Other back-ports are not known.
const PATCHES: [Version; 7] = [
    Version::exact(0, 27, 0),
    Version::exact(0, 32, 10),
    Version::exact(0, 33, 5),
    // Core v1.11.0, of which AWS v1.11.2 is made too.
    Version::exact(1, 11, 0),
    Version::exact(0, 34, 0),
    Version::exact(1, 8, 4),
    Version::exact(1, 14, 0),
];

const MINORS: usize = Version::ALL.len();

static ROWS: [Behaviour; MINORS + PATCHES.len()] = {
    let mut rows = [behaviour(Version::NEWEST); MINORS + PATCHES.len()];
    let mut at = 0;
    while at < rows.len() {
        rows[at] = behaviour(if at < MINORS { Version::ALL[at] } else { PATCHES[at - MINORS] });
        at += 1;
    }
    rows
};

/// EKS Auto Mode: the newest release with what is known to be different.
///
/// Source: EKS user guide, `automode/automode-learn-instances` and `automode/create-node-pool` (2026).
static AUTO_MODE: Behaviour =
    Behaviour { types: ListedTypes::AutoMode, labels: LabelSet::AutoMode, ..behaviour(Version::AUTO_MODE) };

/// The branch `main` after v1.14.1.
///
/// Source: Karpenter core 226646810 (2026-08-20).
static MAIN: Behaviour = behaviour(Version::MAIN);

/// The row of a release.
pub(super) fn row(release: Version) -> &'static Behaviour {
    if release.is_auto_mode() {
        return &AUTO_MODE;
    }
    if release.is_main() {
        return &MAIN;
    }
    // Asked for each node and each pod of a look: no search.
    let place = match (release.release(), release.patch()) {
        ((major @ 0..=1, minor @ 0..TABLED), None) => PLACES[major as usize][minor as usize],
        _ => place(release.reproduced()),
    };
    &ROWS[place]
}

/// Minor releases whose rows stand in [`PLACES`].
const TABLED: u8 = 64;

/// Where the rows of releases without a patch level are, by major and minor number.
static PLACES: [[usize; TABLED as usize]; 2] = {
    let mut places = [[0; TABLED as usize]; 2];
    let mut at = 0;
    while at < 2 * TABLED {
        let (major, minor) = (at / TABLED, at % TABLED);
        places[major as usize][minor as usize] = Version::minor_release(major, minor).reproduced().position();
        at += 1;
    }
    places
};

fn place(own: Version) -> usize {
    let patch = own.patch().filter(|_| own.is_since(0, 23));
    let special = match (own.release(), patch) {
        ((0, 27), Some(0)) => Some(0),
        ((0, 32), Some(10..)) => Some(1),
        ((0, 33), Some(5..)) => Some(2),
        ((1, 11), Some(0 | 2)) => Some(3),
        ((0, 34), Some(0)) => Some(4),
        ((1, 8), Some(4)) => Some(5),
        ((1, 14), Some(0)) => Some(6),
        _ => None,
    };
    special.map_or_else(|| own.position(), |special| MINORS + special)
}

/// Up to v0.37: what expires is replaced first, and emptiness is two methods.
const BETA_METHODS: &[Method] = &[
    Method::Expiration,
    Method::Drift,
    Method::Emptiness,
    Method::EmptyConsolidation,
    Method::MultiNode,
    Method::SingleNode,
];
const DRIFT_FIRST: &[Method] = &[Method::Drift, Method::Emptiness, Method::MultiNode, Method::SingleNode];
const EMPTINESS_FIRST: &[Method] = &[Method::Emptiness, Method::Drift, Method::MultiNode, Method::SingleNode];
const STATIC_DRIFT: &[Method] =
    &[Method::Emptiness, Method::StaticDrift, Method::Drift, Method::MultiNode, Method::SingleNode];

const fn methods(own: Version) -> &'static [Method] {
    match own.release() {
        (0, _) => BETA_METHODS,
        (_, ..=4) => DRIFT_FIRST,
        (_, ..=7) => EMPTINESS_FIRST,
        _ => STATIC_DRIFT,
    }
}

/// How many types a claim lists: all, then 100, 60 and 600.
const fn claim_types(own: Version) -> usize {
    match own.release() {
        (0, ..=24) => 600,
        (0, ..=35) => 100,
        (0, _) | (1, ..=6) => 60,
        _ => 600,
    }
}

/// How many types CreateFleet is given: v0.35 and v0.36 do not cut what the claim lists.
const fn launch_types(own: Version) -> usize {
    match own.release() {
        (0, ..=18) => 20,
        (0, 35 | 36) => 600,
        _ => 60,
    }
}

#[allow(clippy::too_many_lines, reason = "a table: one line for each switch")]
const fn behaviour(own: Version) -> Behaviour {
    // The tutorials' releases keep what they were compared with, also where a rule of theirs was found later.
    let old = !own.is_since(0, 23);
    Behaviour {
        packs_by_group: !own.is_since(0, 16),
        asks_named_pool_only: !own.is_since(0, 6),
        orders_by_on_demand: !own.is_since(0, 18),
        labels_node_class: own.is_since(0, 32),
        knows_min_domains: own.is_since(0, 28),
        reads_unmanaged_nodes: own.is_since(0, 30),
        refuses_undefined_labels: own.is_since(0, 30) || old,
        orders_pools_by_name: match own.release() {
            (0, 23..=31) => false,
            (0, 32) => matches!(own.patch(), Some(10..)),
            (0, 33) => matches!(own.patch(), Some(5..)),
            _ => true,
        },
        claim_types: claim_types(own),
        counts_triggers_once: own.is_since(1, 2) || old,
        matches_daemons_strictly: own.is_since(1, 2) || old,
        knows_spread_policies: own.is_since(1, 3) || old,
        relaxes_at_once: own.is_since(1, 4) || old,
        checks_required_terms_only: own.is_since(1, 5) || old,
        knows_preference_policy: own.is_since(1, 4),
        knows_min_values_policy: own.is_since(1, 6),
        limits_passes: own.is_since(1, 4) || old,
        host_ports: if own.is_since(1, 13) || old {
            HostPorts::OfClaim
        } else if own.is_since(1, 4) {
            HostPorts::OfTemplate
        } else {
            HostPorts::WithoutDaemons
        },
        refuses_device_claims: own.is_since(1, 7) || old,
        readiness_taints_go: own.is_since(1, 13) || old,
        keeps_volumes_from_spread: own.is_since(1, 9) || old,
        tries_all_volume_places: own.is_since(1, 13) || old,
        daemons_by_type: own.is_since(1, 14),
        reads_daemon_pods: own.is_since(0, 25),
        filters_domains_by_pool: matches!((own.release(), own.patch()), ((1, 11), Some(0 | 2))),
        filters_domains_by_node: matches!((own.release(), own.patch()), ((1, 8), Some(4))),
        knows_default_spread: own.is_main(),

        types: match own.release() {
            (0, ..=4) => ListedTypes::Few,
            (0, ..=6) => ListedTypes::FewAndI3,
            (0, ..=31) => ListedTypes::WithoutFpga,
            _ => ListedTypes::All,
        },
        leaves_out_old_types: matches!(own.release(), (0, 16 | 18)),
        pardons_third_generation: own.is_since(0, 18),
        lists_by_price: matches!(own.release(), (0, 16)),
        labels: match own.release() {
            (0, ..=6) => LabelSet::Basic,
            (0, ..=18) => LabelSet::V0_16,
            (0, ..=31) => LabelSet::V0_22,
            _ => LabelSet::V1,
        },
        labels_tenancy: own.is_since(1, 9),
        labels_zone_ids: own.is_since(1, 0),
        old_capacity_type_label: !own.is_since(0, 6),
        lists_all_zones: own.is_since(0, 32),
        reads_yuan: own.is_since(1, 0),
        defaults: match own.release() {
            (0, ..=4) => PoolDefaults::OnDemand,
            (0, 6 | 18) => PoolDefaults::OnDemandAmd64,
            (0, 22..=32) => PoolDefaults::CommonFamilies,
            _ => PoolDefaults::Nothing,
        },
        defaults_for_node_pools: !own.is_since(0, 32),
        reads_provisioners: !own.is_since(0, 33),
        hypervisor_is_overhead: matches!(own.release(), (0, 16 | 18)),
        modern_overhead: own.is_since(0, 28) || matches!((own.release(), own.patch()), ((0, 27), None | Some(1..))),
        reads_eviction: own.is_since(0, 22),
        ignores_soft_eviction: own.is_since(1, 9),
        arm_loses_memory: own.is_since(0, 28),
        knows_reserved_enis: own.is_since(0, 28),
        reserves_for_all_enis: own.is_since(1, 6) || old,
        joins_local_disks: own.is_since(0, 34) || old,
        knows_gaudi: own.is_since(0, 22),
        knows_modern_devices: own.is_since(0, 32),
        learns_memory: own.is_since(1, 1),
        weighs_open_types: own.is_since(0, 24),
        prefers_generic: own.is_since(0, 16),
        prefers_on_demand: !own.is_since(0, 6),
        launch_rank: match own.release() {
            (0, ..=6) => LaunchRank::Size,
            (0, ..=16) => LaunchRank::OnDemand,
            _ => LaunchRank::Cheapest,
        },
        spot_by_price: own.is_since(0, 22),
        spot_filter: match own.release() {
            (0, ..=23) => SpotFilter::Nothing,
            (0, _) | (1, ..=5) => SpotFilter::ByCheapestOffering,
            (1, ..=8) => SpotFilter::ByCheapestSpot,
            _ => SpotFilter::ByOffering,
        },
        filters_all_for_min_values: !own.is_since(0, 35),
        launch_types: launch_types(own),
        reserved_capacity_gate: if own.is_since(1, 3) { Some(own.is_since(1, 6)) } else { None },
        leaves_out_ending_blocks: own.is_since(1, 7),

        disruption_loop: !old,
        consolidation: match own.release() {
            (0, 16 | 18) => Consolidation::WhenQuiet,
            (0, 22) => Consolidation::Validated,
            _ => Consolidation::None,
        },
        binds_pods: !own.is_since(0, 16),
        nomination_half_windows: match own.release() {
            (0, ..=6) => 0,
            (0, ..=18) => 3,
            _ => 4,
        },
        nominates_claims: !own.is_since(0, 28),
        asks_limits_again: own.is_since(0, 28),
        makes_claims: own.is_since(0, 28),
        awaits_registration: own.is_since(0, 28),
        launch_timeout: SimDuration::from_secs(if own.is_since(1, 7) || !own.is_since(0, 28) { 300 } else { 900 }),
        retries_launches: own.is_since(0, 22),
        avoids_for: match own.release() {
            (0, ..=4) => None,
            (0, ..=6) => Some(SimDuration::from_secs(45)),
            _ => Some(SimDuration::from_secs(180)),
        },
        full_subnets: match own.release() {
            (0, 23..=30) => FullSubnets::Forgotten,
            (0, _) | (1, ..=5) => FullSubnets::OfOffering,
            _ => FullSubnets::OfZone,
        },
        reads_notices: own.is_since(0, 22),
        status_checks: match own.release() {
            (1, 12) => StatusChecks::Drain,
            (1, 13..) => StatusChecks::Force,
            _ => StatusChecks::NotAsked,
        },
        leaving_mark: if own.is_since(1, 0) {
            LeavingMark::Disrupted
        } else if own.is_since(0, 32) {
            LeavingMark::Disruption
        } else {
            LeavingMark::Cordon
        },
        leaving_nodes_trigger: own.is_since(0, 34),
        draining_nodes_trigger: own.is_since(0, 34) || old,
        drains_by_taint: own.is_since(0, 32),
        queue_forces_deletion: own.is_main(),
        shortest_drain: SimDuration::from_secs(if own.is_since(1, 10) { 5 } else { 0 }),
        awaits_instance: own.is_since(1, 0),
        looks_up_instances: own.is_since(1, 0),
        replaces_drifted: own.is_since(0, 33),
        type_drift: if own.is_since(1, 6) {
            Some(TypeDrift::Slowly)
        } else if own.is_since(1, 1) {
            Some(TypeDrift::AtOnce)
        } else {
            None
        },

        failed_validation: match own.release() {
            (0, ..=27) => FailedValidation::NextCandidate,
            (0, ..=29) => FailedValidation::NextMethodOrError,
            _ => FailedValidation::NextMethod,
        },
        remembers_by_method: own.is_since(0, 30),
        skips_unplaceable: own.is_since(0, 30),
        unknown_price_is_zero: own.is_since(1, 9) || old,
        forgets_lost_empty: matches!(own.release(), (0, 34..=36)),
        sorts_spot_to_spot: !matches!((own.release(), own.patch()), ((0, 34), Some(0))),
        methods: methods(own),
        multi_node_most: if own.is_since(0, 30) || old { 100 } else { usize::MAX },
        limits_searches: own.is_since(0, 30) || old,
        pending_pods_block: !old && !own.is_since(0, 30),
        wants_ready_targets: own.is_since(0, 30) && !own.is_since(0, 34),
        knows_unhealthy_policy: own.is_since(0, 30) || old,
        queue: match own.release() {
            (0, 23..=32) => CommandQueue::UntilGone,
            (0, 33) => CommandQueue::One,
            _ => CommandQueue::Any,
        },
        ends_leave_budgets: own.is_since(1, 1),
        knows_spot_to_spot: own.is_since(0, 34),
        counts_all_pods: own.is_since(0, 34) || old,
        node_annotation_is_true: own.is_since(1, 0) || !own.is_since(0, 32),
        v1_disruption: own.is_since(1, 0),
        takes_unknown_types: own.is_since(1, 1) || old,
        leaves_blocked_pods: own.is_since(1, 4),
        leaves_protected_pods: own.is_since(1, 4) || old,
        takes_pools_in_turn: own.is_since(1, 4) || old,
        drops_some_empty: own.is_since(1, 5) || old,
        empty_drifted: if own.is_since(1, 7) {
            EmptyDrifted::First
        } else if own.is_since(1, 5) {
            EmptyDrifted::Never
        } else {
            EmptyDrifted::AllAtOnce
        },
        scales_command_timeout: own.is_since(1, 7) || old,
        knows_timed_protection: own.is_since(1, 12) || old,
        weighs_savings: own.is_since(1, 14),
        prices_every_offering: matches!((own.release(), own.patch()), ((1, 14), Some(0))),
        replaces_by_cheapest: own.is_since(0, 18),
        knows_node_repair: own.is_since(1, 1),
        knows_static_pools: own.is_since(1, 8),
        knows_node_overlays: own.is_since(1, 7),
        last_overlay_states_capacity: !own.is_since(1, 9),
        knows_capacity_buffers: own.is_since(1, 14),

        node_limit: match own.release() {
            (0, _) => NodeLimit::NoEffect,
            (1, ..=10) => NodeLimit::AtCreation,
            _ => NodeLimit::InPasses,
        },
        knows_min_values: own.is_since(0, 35) || old,
        knows_budgets: own.is_since(0, 34) || old,
        v1_api: own.is_since(1, 0) || old,
        defaults_consolidate_after: own.is_main(),
        node_pool_metrics: own.is_since(0, 32),
        v1_metrics: own.is_since(1, 0),
        node_metrics: own.is_since(0, 22),
        provisioner_metrics: own.is_since(0, 16),
    }
}

#[cfg(test)]
mod tests {
    use super::{ROWS, Version, place, row};

    #[test]
    fn a_release_has_the_row_of_what_is_reproduced_however_it_is_found() {
        for (major, minor) in (0..=3).flat_map(|major| (0..=80).map(move |minor| (major, minor))) {
            for own in [Version::minor_release(major, minor), Version::exact(major, minor, 4)] {
                assert!(std::ptr::eq(row(own), &raw const ROWS[place(own.reproduced())]), "{own:?}");
            }
        }
    }
}

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

fn place(version: Version) -> usize {
    let patch = version.patch().filter(|_| version.is_since(0, 23));
    let special = match (version.release(), patch) {
        ((0, 27), Some(0)) => Some(0),
        ((0, 32), Some(10..)) => Some(1),
        ((0, 33), Some(5..)) => Some(2),
        ((1, 11), Some(0 | 2)) => Some(3),
        ((0, 34), Some(0)) => Some(4),
        ((1, 8), Some(4)) => Some(5),
        ((1, 14), Some(0)) => Some(6),
        _ => None,
    };
    special.map_or_else(|| version.position(), |special| MINORS + special)
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

const fn methods(version: Version) -> &'static [Method] {
    match version.release() {
        (0, _) => BETA_METHODS,
        (_, ..=4) => DRIFT_FIRST,
        (_, ..=7) => EMPTINESS_FIRST,
        _ => STATIC_DRIFT,
    }
}

/// How many types a claim lists: all, then 100, 60 and 600.
const fn claim_types(version: Version) -> usize {
    match version.release() {
        (0, ..=24) => 600,
        (0, ..=35) => 100,
        (0, _) | (1, ..=6) => 60,
        _ => 600,
    }
}

/// How many types CreateFleet is given: v0.35 and v0.36 do not cut what the claim lists.
const fn launch_types(version: Version) -> usize {
    match version.release() {
        (0, ..=18) => 20,
        (0, 35 | 36) => 600,
        _ => 60,
    }
}

#[allow(clippy::too_many_lines, reason = "a table: one line for each switch")]
const fn behaviour(version: Version) -> Behaviour {
    // The tutorials' releases keep what they were compared with, also where a rule of theirs was found later.
    let old = !version.is_since(0, 23);
    Behaviour {
        packs_by_group: !version.is_since(0, 16),
        asks_named_pool_only: !version.is_since(0, 6),
        orders_by_on_demand: !version.is_since(0, 18),
        labels_node_class: version.is_since(0, 32),
        knows_min_domains: version.is_since(0, 28),
        reads_unmanaged_nodes: version.is_since(0, 30),
        refuses_undefined_labels: version.is_since(0, 30) || old,
        orders_pools_by_name: match version.release() {
            (0, 23..=31) => false,
            (0, 32) => matches!(version.patch(), Some(10..)),
            (0, 33) => matches!(version.patch(), Some(5..)),
            _ => true,
        },
        claim_types: claim_types(version),
        counts_triggers_once: version.is_since(1, 2) || old,
        matches_daemons_strictly: version.is_since(1, 2) || old,
        knows_spread_policies: version.is_since(1, 3) || old,
        relaxes_at_once: version.is_since(1, 4) || old,
        checks_required_terms_only: version.is_since(1, 5) || old,
        knows_preference_policy: version.is_since(1, 4),
        knows_min_values_policy: version.is_since(1, 6),
        limits_passes: version.is_since(1, 4) || old,
        host_ports: if version.is_since(1, 13) || old {
            HostPorts::OfClaim
        } else if version.is_since(1, 4) {
            HostPorts::OfTemplate
        } else {
            HostPorts::WithoutDaemons
        },
        refuses_device_claims: version.is_since(1, 7) || old,
        readiness_taints_go: version.is_since(1, 13) || old,
        keeps_volumes_from_spread: version.is_since(1, 9) || old,
        tries_all_volume_places: version.is_since(1, 13) || old,
        daemons_by_type: version.is_since(1, 14),
        reads_daemon_pods: version.is_since(0, 25),
        filters_domains_by_pool: matches!((version.release(), version.patch()), ((1, 11), Some(0 | 2))),
        filters_domains_by_node: matches!((version.release(), version.patch()), ((1, 8), Some(4))),
        knows_default_spread: version.is_main(),

        types: match version.release() {
            (0, ..=4) => ListedTypes::Few,
            (0, ..=6) => ListedTypes::FewAndI3,
            (0, ..=31) => ListedTypes::WithoutFpga,
            _ => ListedTypes::All,
        },
        leaves_out_old_types: matches!(version.release(), (0, 16 | 18)),
        pardons_third_generation: version.is_since(0, 18),
        lists_by_price: matches!(version.release(), (0, 16)),
        labels: match version.release() {
            (0, ..=6) => LabelSet::Basic,
            (0, ..=18) => LabelSet::V0_16,
            (0, ..=31) => LabelSet::V0_22,
            _ => LabelSet::V1,
        },
        labels_tenancy: version.is_since(1, 9),
        labels_zone_ids: version.is_since(1, 0),
        old_capacity_type_label: !version.is_since(0, 6),
        lists_all_zones: version.is_since(0, 32),
        reads_yuan: version.is_since(1, 0),
        defaults: match version.release() {
            (0, ..=4) => PoolDefaults::OnDemand,
            (0, 6 | 18) => PoolDefaults::OnDemandAmd64,
            (0, 22..=32) => PoolDefaults::CommonFamilies,
            _ => PoolDefaults::Nothing,
        },
        defaults_for_node_pools: !version.is_since(0, 32),
        reads_provisioners: !version.is_since(0, 33),
        hypervisor_is_overhead: matches!(version.release(), (0, 16 | 18)),
        modern_overhead: version.is_since(0, 28)
            || matches!((version.release(), version.patch()), ((0, 27), None | Some(1..))),
        reads_eviction: version.is_since(0, 22),
        ignores_soft_eviction: version.is_since(1, 9),
        arm_loses_memory: version.is_since(0, 28),
        knows_reserved_enis: version.is_since(0, 28),
        reserves_for_all_enis: version.is_since(1, 6) || old,
        joins_local_disks: version.is_since(0, 34) || old,
        knows_gaudi: version.is_since(0, 22),
        knows_modern_devices: version.is_since(0, 32),
        learns_memory: version.is_since(1, 1),
        weighs_open_types: version.is_since(0, 24),
        prefers_generic: version.is_since(0, 16),
        prefers_on_demand: !version.is_since(0, 6),
        launch_rank: match version.release() {
            (0, ..=6) => LaunchRank::Size,
            (0, ..=16) => LaunchRank::OnDemand,
            _ => LaunchRank::Cheapest,
        },
        spot_by_price: version.is_since(0, 22),
        spot_filter: match version.release() {
            (0, ..=23) => SpotFilter::Nothing,
            (0, _) | (1, ..=5) => SpotFilter::ByCheapestOffering,
            (1, ..=8) => SpotFilter::ByCheapestSpot,
            _ => SpotFilter::ByOffering,
        },
        filters_all_for_min_values: !version.is_since(0, 35),
        launch_types: launch_types(version),
        reserved_capacity_gate: if version.is_since(1, 3) { Some(version.is_since(1, 6)) } else { None },
        leaves_out_ending_blocks: version.is_since(1, 7),

        disruption_loop: !old,
        consolidation: match version.release() {
            (0, 16 | 18) => Consolidation::WhenQuiet,
            (0, 22) => Consolidation::Validated,
            _ => Consolidation::None,
        },
        binds_pods: !version.is_since(0, 16),
        nomination_half_windows: match version.release() {
            (0, ..=6) => 0,
            (0, ..=18) => 3,
            _ => 4,
        },
        nominates_claims: !version.is_since(0, 28),
        asks_limits_again: version.is_since(0, 28),
        makes_claims: version.is_since(0, 28),
        awaits_registration: version.is_since(0, 28),
        launch_timeout: SimDuration::from_secs(if version.is_since(1, 7) || !version.is_since(0, 28) {
            300
        } else {
            900
        }),
        retries_launches: version.is_since(0, 22),
        avoids_for: match version.release() {
            (0, ..=4) => None,
            (0, ..=6) => Some(SimDuration::from_secs(45)),
            _ => Some(SimDuration::from_secs(180)),
        },
        full_subnets: match version.release() {
            (0, 23..=30) => FullSubnets::Forgotten,
            (0, _) | (1, ..=5) => FullSubnets::OfOffering,
            _ => FullSubnets::OfZone,
        },
        reads_notices: version.is_since(0, 22),
        status_checks: match version.release() {
            (1, 12) => StatusChecks::Drain,
            (1, 13..) => StatusChecks::Force,
            _ => StatusChecks::NotAsked,
        },
        leaving_mark: if version.is_since(1, 0) {
            LeavingMark::Disrupted
        } else if version.is_since(0, 32) {
            LeavingMark::Disruption
        } else {
            LeavingMark::Cordon
        },
        leaving_nodes_trigger: version.is_since(0, 34),
        draining_nodes_trigger: version.is_since(0, 34) || old,
        drains_by_taint: version.is_since(0, 32),
        queue_forces_deletion: version.is_main(),
        shortest_drain: SimDuration::from_secs(if version.is_since(1, 10) { 5 } else { 0 }),
        awaits_instance: version.is_since(1, 0),
        looks_up_instances: version.is_since(1, 0),
        replaces_drifted: version.is_since(0, 33),
        type_drift: if version.is_since(1, 6) {
            Some(TypeDrift::Slowly)
        } else if version.is_since(1, 1) {
            Some(TypeDrift::AtOnce)
        } else {
            None
        },

        failed_validation: match version.release() {
            (0, ..=27) => FailedValidation::NextCandidate,
            (0, ..=29) => FailedValidation::NextMethodOrError,
            _ => FailedValidation::NextMethod,
        },
        remembers_by_method: version.is_since(0, 30),
        skips_unplaceable: version.is_since(0, 30),
        unknown_price_is_zero: version.is_since(1, 9) || old,
        forgets_lost_empty: matches!(version.release(), (0, 34..=36)),
        sorts_spot_to_spot: !matches!((version.release(), version.patch()), ((0, 34), Some(0))),
        methods: methods(version),
        multi_node_most: if version.is_since(0, 30) || old { 100 } else { usize::MAX },
        limits_searches: version.is_since(0, 30) || old,
        pending_pods_block: !old && !version.is_since(0, 30),
        wants_ready_targets: version.is_since(0, 30) && !version.is_since(0, 34),
        knows_unhealthy_policy: version.is_since(0, 30) || old,
        queue: match version.release() {
            (0, 23..=32) => CommandQueue::UntilGone,
            (0, 33) => CommandQueue::One,
            _ => CommandQueue::Any,
        },
        ends_leave_budgets: version.is_since(1, 1),
        knows_spot_to_spot: version.is_since(0, 34),
        counts_all_pods: version.is_since(0, 34) || old,
        node_annotation_is_true: version.is_since(1, 0) || !version.is_since(0, 32),
        v1_disruption: version.is_since(1, 0),
        takes_unknown_types: version.is_since(1, 1) || old,
        leaves_blocked_pods: version.is_since(1, 4),
        leaves_protected_pods: version.is_since(1, 4) || old,
        takes_pools_in_turn: version.is_since(1, 4) || old,
        drops_some_empty: version.is_since(1, 5) || old,
        empty_drifted: if version.is_since(1, 7) {
            EmptyDrifted::First
        } else if version.is_since(1, 5) {
            EmptyDrifted::Never
        } else {
            EmptyDrifted::AllAtOnce
        },
        scales_command_timeout: version.is_since(1, 7) || old,
        knows_timed_protection: version.is_since(1, 12) || old,
        weighs_savings: version.is_since(1, 14),
        prices_every_offering: matches!((version.release(), version.patch()), ((1, 14), Some(0))),
        replaces_by_cheapest: version.is_since(0, 18),
        knows_node_repair: version.is_since(1, 1),
        knows_static_pools: version.is_since(1, 8),
        knows_node_overlays: version.is_since(1, 7),
        last_overlay_states_capacity: !version.is_since(1, 9),
        knows_capacity_buffers: version.is_since(1, 14),

        node_limit: match version.release() {
            (0, _) => NodeLimit::NoEffect,
            (1, ..=10) => NodeLimit::AtCreation,
            _ => NodeLimit::InPasses,
        },
        knows_min_values: version.is_since(0, 35) || old,
        knows_budgets: version.is_since(0, 34) || old,
        v1_api: version.is_since(1, 0) || old,
        defaults_consolidate_after: version.is_main(),
        node_pool_metrics: version.is_since(0, 32),
        v1_metrics: version.is_since(1, 0),
        node_metrics: version.is_since(0, 22),
        provisioner_metrics: version.is_since(0, 16),
    }
}

#[cfg(test)]
mod tests {
    use super::{ROWS, Version, place, row};

    #[test]
    fn each_release_maps_to_its_reproduced_version() {
        for (major, minor) in (0..=3).flat_map(|major| (0..=80).map(move |minor| (major, minor))) {
            for version in [Version::minor_release(major, minor), Version::exact(major, minor, 4)] {
                assert!(std::ptr::eq(row(version), &raw const ROWS[place(version.reproduced())]), "{version:?}");
            }
        }
    }
}

//! The simulated account: fleets, what pools hold, faults, quotas and throttling.

use std::sync::Arc;

use super::{Ec2, Pool};
use crate::api::ApiAction;
use crate::faults::{Fault, FaultKind, PoolSelector};
use crate::fleet::{FleetErrorCode, FleetOverride, FleetReply, FleetRequest};
use crate::quotas::QuotaClass;
use crate::reservations::{CapacityReservation, ReservationUse};
use crate::settings::{ApiLimits, BucketSize, CloudSettings, Failures, Interruptions, Quotas};
use nodecast_engine::Streams;
use nodecast_model::domain::AllocationStrategy;
use nodecast_model::domain::volumes::NodeVolumes;
use nodecast_model::domain::{Labels, NodeId, SimDuration, SimTime, Symbol, well_known};
use nodecast_prices::Catalog;

/// An account without interruptions, so that a pool's capacity is what it was at the start.
fn account() -> Ec2 {
    account_with(CloudSettings {
        interruptions: Interruptions { exposure_hours: None, ..Interruptions::default() },
        api: ApiLimits { launched_instances: BucketSize { size: 10_000, per_second: 1 }, ..ApiLimits::default() },
        failures: Failures::NONE,
        ..CloudSettings::default()
    })
}

fn account_with(settings: CloudSettings) -> Ec2 {
    // The tests of the catalog read every region of the embedded data.
    let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
    let end = SimTime::ZERO + SimDuration::from_secs(3_600);
    Ec2::new(region, Streams::new(7), Arc::new(settings), end)
}

fn request(types: &[&str], target: u32) -> FleetRequest {
    FleetRequest {
        capacity_type: well_known::SPOT,
        strategy: AllocationStrategy::LowestPrice,
        pools_to_use: 1,
        target,
        overrides: types
            .iter()
            .map(|name| FleetOverride {
                instance_type: Symbol::new(name),
                zone: Symbol::new("us-east-1a"),
                priority: 0,
                weight: 1,
            })
            .collect(),
    }
}

/// What EC2 answers to a call that it takes.
fn launch(ec2: &mut Ec2, request: &FleetRequest, nodes: &[NodeId], at: SimTime) -> FleetReply {
    // No test makes more calls through here than the bucket of the account holds, and no fault refuses them.
    ec2.create_fleet(request, nodes, &NodeVolumes::gp3(20), at).unwrap()
}

#[test]
fn competing_fleets_share_pool_capacity() {
    let mut ec2 = account();
    let nodes: Vec<NodeId> = (0..5_000).map(NodeId).collect();
    let first = launch(&mut ec2, &request(&["m5.large"], 1), &nodes, SimTime::ZERO);
    let second = launch(&mut ec2, &request(&["m5.large"], 5_000), &nodes, SimTime::ZERO);
    assert_eq!(first.instances.len(), 1);
    assert!(first.errors.is_empty());
    assert!(!second.instances.is_empty() && second.instances.len() < 5_000);
    assert_eq!(second.errors[0].code, FleetErrorCode::InsufficientInstanceCapacity);
    let third = launch(&mut ec2, &request(&["m5.large"], 1), &nodes, SimTime::ZERO);
    assert!(third.instances.is_empty(), "the pool is empty");
    ec2.terminate(first.instances[0], SimTime::ZERO);
    ec2.mark_terminated(first.instances[0], SimTime::ZERO);
    assert_eq!(launch(&mut ec2, &request(&["m5.large"], 1), &nodes, SimTime::ZERO).instances.len(), 1);
}

#[test]
fn type_not_offered_in_zone_is_unsupported() {
    let reply = launch(&mut account(), &request(&["no-such.type"], 1), &[NodeId(0)], SimTime::ZERO);
    assert_eq!(reply.errors[0].code, FleetErrorCode::Unsupported);
}

#[test]
fn pool_capacity_ignores_lookup_order() {
    let pool = |name: &str| Pool {
        instance_type: Symbol::new(name),
        zone: Symbol::new("us-east-1a"),
        capacity_type: well_known::SPOT,
    };
    let (one, other) = (account(), account());
    let _ = other.initial_free(pool("c5.large"));
    assert_eq!(one.initial_free(pool("m5.large")), other.initial_free(pool("m5.large")));
}

#[test]
fn capacity_fault_withholds_pools_until_it_ends() {
    let until = SimTime::ZERO + SimDuration::from_secs(60);
    let pools = PoolSelector { family: Some(Symbol::new("m5")), ..PoolSelector::default() };
    let fault = Fault { at: SimTime::ZERO, until, kind: FaultKind::InsufficientCapacity { pools, probability: 1.0 } };
    let mut ec2 = account_with(CloudSettings { faults: vec![fault], ..CloudSettings::default() });
    let reply = launch(&mut ec2, &request(&["m5.large", "c5.large"], 1), &[NodeId(0)], SimTime::ZERO);
    assert_eq!(reply.errors[0].code, FleetErrorCode::InsufficientInstanceCapacity);
    assert_eq!(ec2.instance(reply.instances[0]).pool.instance_type, Symbol::new("c5.large"));
    assert_eq!(launch(&mut ec2, &request(&["m5.large"], 1), &[NodeId(1)], until).instances.len(), 1);
}

/// An open reservation of m5.large from so many seconds on.
fn open_reservation(count: u32, from: i64) -> CapacityReservation {
    CapacityReservation {
        id: Symbol::new("cr-1"),
        instance_type: Symbol::new("m5.large"),
        zone: Symbol::new("us-east-1a"),
        count,
        open: true,
        tags: Labels::new(),
        from: SimTime::ZERO + SimDuration::from_secs(from),
        until: None,
        block: false,
        per_hour: None,
    }
}

fn on_demand(name: &str, target: u32) -> FleetRequest {
    FleetRequest { capacity_type: well_known::ON_DEMAND, ..request(&[name], target) }
}

#[test]
fn open_reservation_serves_during_capacity_shortage() {
    let until = SimTime::ZERO + SimDuration::from_secs(600);
    let kind = FaultKind::InsufficientCapacity { pools: PoolSelector::default(), probability: 1.0 };
    let outage = FaultKind::ZoneOutage { zone: Symbol::new("us-east-1a"), power: false };
    let with = |kind, how| {
        let fault = Fault { at: SimTime::ZERO, until, kind };
        let reservations = vec![open_reservation(2, 0)];
        let mut ec2 = account_with(CloudSettings { faults: vec![fault], reservations, ..CloudSettings::default() });
        let nodes: Vec<NodeId> = (0..3).map(NodeId).collect();
        let reply =
            ec2.create_fleet_using(&on_demand("m5.large", 3), how, &nodes, &NodeVolumes::gp3(20), SimTime::ZERO);
        let reply = reply.unwrap();
        assert!(reply.errors.iter().all(|error| error.code == FleetErrorCode::InsufficientInstanceCapacity));
        (reply.instances.len(), reply.errors.len())
    };
    assert_eq!(with(kind, ReservationUse::Open), (2, 1));
    assert_eq!(with(kind, ReservationUse::None), (0, 1), "a launch that wants no reservation meets the shortage");
    assert_eq!(with(outage, ReservationUse::Open), (0, 1), "what is reserved is lost with its zone");
}

#[test]
fn reserved_capacity_counts_once_against_quota() {
    let quotas = Quotas::default().with(QuotaClass::Standard, 16);
    let settings = |from| CloudSettings {
        quotas,
        reservations: vec![open_reservation(6, from)],
        api: ApiLimits::UNLIMITED,
        ..CloudSettings::default()
    };
    let nodes: Vec<NodeId> = (0..20).map(NodeId).collect();
    let mut ec2 = account_with(settings(0));
    let beside = launch(&mut ec2, &on_demand("m5.xlarge", 4), &nodes, SimTime::ZERO);
    assert_eq!(beside.instances.len(), 1, "12 of 16 vCPUs are reserved");
    let reserved = launch(&mut ec2, &on_demand("m5.large", 8), &nodes, SimTime::ZERO);
    assert_eq!(reserved.instances.len(), 6, "what is reserved needs no more of the quota");
    let refused = launch(&mut ec2, &on_demand("m5.large", 1), &nodes, SimTime::ZERO);
    assert_eq!(refused.errors[0].code, FleetErrorCode::VcpuLimitExceeded);

    let mut ec2 = account_with(settings(60));
    assert_eq!(launch(&mut ec2, &on_demand("m5.large", 6), &nodes, SimTime::ZERO).instances.len(), 6);
    let later = SimTime::ZERO + SimDuration::from_secs(60);
    let beside = launch(&mut ec2, &on_demand("m5.large", 4), &nodes, later);
    assert_eq!(beside.instances.len(), 2, "those that run already run in the new reservation");
}

#[test]
fn quota_counts_vcpus_until_instance_ends() {
    let quotas = Quotas::default().with(QuotaClass::Standard, 3);
    let mut ec2 = account_with(CloudSettings { quotas, ..CloudSettings::default() });
    let first = launch(&mut ec2, &request(&["m5.large"], 1), &[NodeId(0)], SimTime::ZERO);
    let second = launch(&mut ec2, &request(&["m5.large"], 1), &[NodeId(1)], SimTime::ZERO);
    assert_eq!(second.errors[0].code, FleetErrorCode::MaxSpotInstanceCountExceeded);
    ec2.terminate(first.instances[0], SimTime::ZERO);
    ec2.mark_terminated(first.instances[0], SimTime::ZERO);
    assert_eq!(launch(&mut ec2, &request(&["m5.large"], 1), &[NodeId(2)], SimTime::ZERO).instances.len(), 1);
}

#[test]
fn pools_of_one_request_share_quota() {
    let quotas = Quotas::default().with(QuotaClass::Standard, 7);
    let mut ec2 = account_with(CloudSettings { quotas, ..CloudSettings::default() });
    let both = FleetRequest { pools_to_use: 2, ..request(&["m5.large", "c5.large"], 8) };
    let both = FleetRequest { strategy: AllocationStrategy::Diversified, ..both };
    let nodes: Vec<NodeId> = (0..8).map(NodeId).collect();
    let reply = launch(&mut ec2, &both, &nodes, SimTime::ZERO);
    assert_eq!(reply.instances.len(), 3, "six of seven vCPUs");
    assert!(reply.errors.iter().any(|error| error.code == FleetErrorCode::MaxSpotInstanceCountExceeded));
}

#[test]
fn throttle_on_one_action_spares_others() {
    let limited = |action| {
        let bucket = BucketSize { size: 1, per_second: 0 };
        let kind = FaultKind::ApiThrottle { bucket, action: Some(action) };
        let fault = Fault { at: SimTime::ZERO, until: SimTime::ZERO + SimDuration::from_secs(60), kind };
        let mut ec2 = account_with(CloudSettings { faults: vec![fault], ..CloudSettings::default() });
        let launched = (0..2).map(|node| {
            ec2.create_fleet(&request(&["m5.large"], 1), &[NodeId(node)], &NodeVolumes::gp3(20), SimTime::ZERO)
        });
        let launched: Vec<_> = launched.filter_map(Result::ok).flat_map(|reply| reply.instances).collect();
        let ended = launched.iter().filter(|id| ec2.terminate_instances(&[**id], SimTime::ZERO).is_ok()).count();
        (launched.len(), ended)
    };
    assert_eq!(limited(ApiAction::CreateFleet), (1, 1));
    assert_eq!(limited(ApiAction::TerminateInstances), (2, 1));
    assert_eq!(limited(ApiAction::RunInstances), (2, 2));
}

#[test]
fn too_many_calls_launch_nothing() {
    let mutating = BucketSize { size: 1, per_second: 1 };
    let api = ApiLimits { mutating, ..ApiLimits::default() };
    let mut ec2 = account_with(CloudSettings { api, ..CloudSettings::default() });
    let one = request(&["m5.large"], 1);
    assert!(ec2.create_fleet(&one, &[NodeId(0)], &NodeVolumes::gp3(20), SimTime::ZERO).is_ok());
    assert!(ec2.create_fleet(&one, &[NodeId(1)], &NodeVolumes::gp3(20), SimTime::ZERO).is_err());
    assert_eq!(ec2.instances().len(), 1);
    assert!(
        ec2.create_fleet(&one, &[NodeId(1)], &NodeVolumes::gp3(20), SimTime::ZERO + SimDuration::from_secs(1)).is_ok()
    );
}

#[test]
fn zones_of_equal_price_are_chosen_evenly() {
    let settings = CloudSettings { api: ApiLimits::UNLIMITED, failures: Failures::NONE, ..CloudSettings::default() };
    let zones = ["us-east-1a", "us-east-1b", "us-east-1c"];
    let zones_of = |capacity_type, calls: u32| {
        let mut ec2 = account_with(settings.clone());
        let overrides = zones.map(|zone| FleetOverride {
            instance_type: Symbol::new("c5.large"),
            zone: Symbol::new(zone),
            priority: 0,
            weight: 1,
        });
        let asked = FleetRequest { capacity_type, overrides: overrides.to_vec(), ..request(&[], 1) };
        let zone_of = |call| {
            let reply = launch(&mut ec2, &asked, &[NodeId(call)], SimTime::ZERO);
            ec2.instance(reply.instances[0]).pool.zone.as_str()
        };
        (0..calls).map(zone_of).collect::<Vec<&str>>()
    };
    let on_demand = zones_of(well_known::ON_DEMAND, 900);
    let counts = zones.map(|zone| on_demand.iter().filter(|other| **other == zone).count());
    assert!(counts.iter().all(|count| (240..360).contains(count)), "{counts:?}");
    assert_eq!(zones_of(well_known::ON_DEMAND, 900), on_demand, "the draw is a function of the seed");
    // Spot prices differ by zone, and the cheapest is no draw.
    let spot = zones_of(well_known::SPOT, 5);
    assert!(spot.iter().all(|zone| *zone == spot[0]), "{spot:?}");
}

//! Groups against a simulated account with hand-made shortages.

use std::sync::Arc;

use super::{Acted, ActivityStatus, AutoScaling, EndReason, GroupSpec, LifecycleState};
use crate::faults::{Fault, FaultKind, PoolSelector};
use crate::settings::{ApiLimits, BucketSize, CapacityModel, CloudSettings, Failures, Interruptions, Times};
use crate::{ApiError, Ec2, InstanceId, SimulatedAccount};
use nodecast_engine::Streams;
use nodecast_model::domain::node_group::{InstancesDistribution, SpotStrategy};
use nodecast_model::domain::volumes::NodeVolumes;
use nodecast_model::domain::{Labels, NodeId, SimDuration, SimTime, Symbol, well_known};
use nodecast_prices::Catalog;

const NAME: &str = "workers";

struct Account {
    ec2: Ec2,
    groups: AutoScaling,
    nodes: u32,
}

fn at(seconds: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(seconds)
}

fn spec(distribution: InstancesDistribution) -> GroupSpec {
    GroupSpec {
        name: Symbol::new(NAME),
        zones: ["us-east-1a", "us-east-1b"].map(Symbol::new).to_vec(),
        min: 0,
        max: 10,
        instance_types: ["m5.large", "m5a.large"].map(Symbol::new).to_vec(),
        weights: Vec::new(),
        distribution,
        capacity_rebalance: true,
        zone_rebalance: true,
        warm_pool: None,
        volumes: NodeVolumes::gp3(20),
        tags: Labels::new(),
    }
}

impl Account {
    fn new(spec: GroupSpec, desired: u32, settings: CloudSettings) -> Self {
        let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
        let interruptions = Interruptions { exposure_hours: None, ..Interruptions::default() };
        let settings =
            CloudSettings { interruptions, capacity: CapacityModel::Infinite, failures: Failures::NONE, ..settings };
        let streams = Streams::new(7);
        let ec2 = Ec2::new(region, streams, Arc::new(settings), at(86_400));
        Self { ec2, groups: AutoScaling::new([(spec, desired)], Times::default(), streams), nodes: 0 }
    }

    fn with_faults(spec: GroupSpec, desired: u32, faults: Vec<Fault>) -> Self {
        Self::new(spec, desired, CloudSettings { faults, ..CloudSettings::default() })
    }

    fn act(&mut self, now: SimTime) -> Acted {
        let acted = self.groups.act(0, &mut self.ec2, NodeId(self.nodes), now);
        self.nodes += acted.launched.len() as u32;
        acted
    }

    /// Lets the group act, and what it launches serve at once.
    fn act_and_serve(&mut self, now: SimTime) -> Acted {
        let acted = self.act(now);
        for &instance in &acted.launched {
            self.ec2.mark_running(instance, now);
            self.groups.enter_service(instance, now);
            self.groups.serves(instance);
        }
        acted
    }

    fn zones(&self, instances: &[InstanceId]) -> Vec<&'static str> {
        instances.iter().map(|&id| self.ec2.instance(id).pool.zone.as_str()).collect()
    }

    fn messages(&self, status: ActivityStatus) -> Vec<String> {
        let all = self.groups.activities(Symbol::new(NAME)).unwrap();
        all.filter(|activity| activity.status == status).map(|activity| activity.message.clone()).collect()
    }
}

/// A group of three sizes in units of a vCPU, where these types are short for a day.
fn weighted(desired: u32, short_types: &[&str]) -> Account {
    let of_type =
        |name: &&str| short(PoolSelector { instance_type: Some(Symbol::new(name)), ..PoolSelector::default() }, 86_400);
    let spec = GroupSpec {
        max: 48,
        instance_types: ["c5.xlarge", "c5.2xlarge", "c5.4xlarge"].map(Symbol::new).to_vec(),
        weights: vec![4, 8, 16],
        ..spec(InstancesDistribution::ON_DEMAND)
    };
    Account::with_faults(spec, desired, short_types.iter().map(of_type).collect())
}

fn short(pools: PoolSelector, until: i64) -> Fault {
    Fault { at: at(0), until: at(until), kind: FaultKind::InsufficientCapacity { pools, probability: 1.0 } }
}

fn zone(name: &str) -> PoolSelector {
    PoolSelector { zone: Some(Symbol::new(name)), ..PoolSelector::default() }
}

#[test]
fn group_launches_missing_instances_across_zones() {
    let mut account = Account::with_faults(spec(InstancesDistribution::ON_DEMAND), 3, Vec::new());
    let acted = account.act_and_serve(at(0));
    assert_eq!(account.zones(&acted.launched), ["us-east-1a", "us-east-1a", "us-east-1b"]);
    assert_eq!((acted.terminate.len(), acted.again), (0, None));
    let nodes: Vec<NodeId> = acted.launched.iter().map(|&id| account.ec2.instance(id).node).collect();
    assert_eq!(nodes, [NodeId(0), NodeId(1), NodeId(2)], "nodes are those named, in order");
    assert_eq!(account.messages(ActivityStatus::Successful).len(), 3);
    assert_eq!(account.act(at(10)), Acted::default(), "nothing is missing");
}

#[test]
fn mixed_policy_buys_on_demand_base_and_share() {
    let mixed = InstancesDistribution { on_demand_base: 1, on_demand_percent: 50, ..InstancesDistribution::SPOT };
    let mut account = Account::with_faults(spec(mixed), 6, Vec::new());
    let acted = account.act_and_serve(at(0));
    let on_demand = |&&id: &&InstanceId| account.ec2.instance(id).pool.capacity_type == well_known::ON_DEMAND;
    assert_eq!((acted.launched.len(), acted.launched.iter().filter(on_demand).count()), (6, 4));
    let first = acted.launched.iter().find(on_demand).copied().unwrap();
    assert_eq!(account.ec2.instance(first).pool.instance_type.as_str(), "m5.large", "the preferred type");
}

#[test]
fn lowest_price_spot_uses_two_pools_evenly() {
    let spot_strategy = SpotStrategy::LowestPrice { pools: 2 };
    let mut one_zone = spec(InstancesDistribution { spot_strategy, ..InstancesDistribution::SPOT });
    one_zone.zones.truncate(1);
    one_zone.instance_types = ["m5.large", "m5a.large", "m5.4xlarge"].map(Symbol::new).to_vec();
    let mut account = Account::with_faults(one_zone, 4, Vec::new());
    let acted = account.act(at(0));
    let of = |name: &str| {
        let is = |&&id: &&InstanceId| account.ec2.instance(id).pool.instance_type.as_str() == name;
        acted.launched.iter().filter(is).count()
    };
    assert_eq!((of("m5.large"), of("m5a.large"), of("m5.4xlarge")), (2, 2, 0));
}

#[test]
fn weighted_group_exceeds_size_by_less_than_largest() {
    let mut account = weighted(20, &["c5.xlarge", "c5.2xlarge"]);
    let acted = account.act_and_serve(at(0));
    assert_eq!((acted.launched.len(), account.groups.size(0), acted.again), (2, 32, None), "at most 36");
    assert_eq!(account.zones(&acted.launched), ["us-east-1a", "us-east-1b"]);
    assert_eq!(account.act(at(10)), Acted::default(), "none of 16 fits into the 12 units above the size");
    // The preferred type is the smallest: ten units are three instances.
    let mut account = weighted(10, &[]);
    let acted = account.act_and_serve(at(0));
    assert_eq!((acted.launched.len(), account.groups.size(0)), (3, 12));
    account.groups.set_desired(Symbol::new(NAME), 5).unwrap();
    assert_eq!(account.act(at(60)).terminate.len(), 1, "12 to 8 units, and 4 would be too few");
}

#[test]
fn instance_end_lowers_size_by_its_weight() {
    let mut account = weighted(32, &["c5.xlarge", "c5.2xlarge"]);
    let launched = account.act_and_serve(at(0)).launched;
    account.groups.end_instance(launched[0], true, at(30)).unwrap();
    assert_eq!((account.groups.desired(0), account.groups.size(0)), (16, 16));
    assert_eq!(account.act(at(40)), Acted::default());
}

#[test]
fn refusing_zone_is_reported_and_another_tried() {
    let faults = vec![short(zone("us-east-1a"), 3_600)];
    let mut account = Account::with_faults(spec(InstancesDistribution::SPOT), 2, faults);
    let acted = account.act_and_serve(at(0));
    assert_eq!(account.zones(&acted.launched), ["us-east-1b"]);
    let expected = "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request configuration. Please adjust your request and try again. Launching EC2 instance failed.";
    assert_eq!(acted.failures, [expected]);
    let again = acted.again.unwrap();
    assert!(again < at(60), "the other zone is tried soon, {again}");
    let acted = account.act_and_serve(again);
    assert_eq!(account.zones(&acted.launched), ["us-east-1b"]);
    assert_eq!(account.messages(ActivityStatus::Failed), [expected]);
}

#[test]
fn refused_launches_back_off_to_ten_minutes() {
    let faults = vec![short(PoolSelector::default(), 86_400)];
    let mut account = Account::with_faults(spec(InstancesDistribution::ON_DEMAND), 1, faults);
    let mut now = at(0);
    let mut failed = Vec::new();
    while now < at(3_600) {
        let acted = account.act(now);
        if !acted.failures.is_empty() {
            failed.push(now.saturating_since(at(0)).as_secs());
        }
        now = acted.again.unwrap();
    }
    // Two zones, each with its own pauses.
    let first_zone: Vec<i64> = failed.iter().copied().step_by(2).collect();
    assert_eq!(&first_zone[..5], [0, 60, 180, 420, 900]);
    assert!(first_zone.windows(2).all(|pair| pair[1] - pair[0] <= 600), "{first_zone:?}");
    assert!(failed.len() < 30, "pauses hold attempts back: {failed:?}");
}

#[test]
fn single_type_group_reports_run_instances_error() {
    let mut single = spec(InstancesDistribution::ON_DEMAND);
    single.instance_types.truncate(1);
    let mut account = Account::with_faults(single, 1, vec![short(zone("us-east-1a"), 60)]);
    let failure = &account.act(at(0)).failures[0];
    assert!(
        failure.starts_with(
            "We currently do not have sufficient m5.large capacity in the Availability Zone you requested (us-east-1a)."
        ),
        "{failure}"
    );
    assert!(failure.contains("or choosing us-east-1b, "), "{failure}");
}

#[test]
fn calls_rejected_by_ec2_are_failed_activities() {
    let none = BucketSize { size: 1, per_second: 0 };
    let api = ApiLimits { mutating: none, ..ApiLimits::default() };
    let settings = CloudSettings { api, ..CloudSettings::default() };
    let mut account = Account::new(spec(InstancesDistribution::SPOT), 2, settings);
    let acted = account.act(at(0));
    assert_eq!(acted.launched.len(), 1, "one call for each zone; the second is refused");
    assert_eq!(acted.failures, ["Request limit exceeded. Launching EC2 instance failed."]);
}

#[test]
fn scale_in_uses_fullest_zone_and_spares_protected() {
    let mut account = Account::with_faults(spec(InstancesDistribution::ON_DEMAND), 5, Vec::new());
    let launched = account.act_and_serve(at(0)).launched;
    account.groups.protect(launched[0], true);
    account.groups.set_desired(Symbol::new(NAME), 3).unwrap();
    let acted = account.act(at(100));
    let ended: Vec<InstanceId> = acted.terminate.iter().map(|(id, _)| *id).collect();
    assert_eq!(account.zones(&ended), ["us-east-1a", "us-east-1a"], "three to two, then first by name");
    assert!(!ended.contains(&launched[0]));
    assert!(acted.terminate.iter().all(|(_, reason)| *reason == EndReason::ScaleIn));
    assert_eq!(account.groups.size(0), 3);
}

#[test]
fn at_risk_instance_ends_after_replacement_serves() {
    let full = GroupSpec { max: 2, ..spec(InstancesDistribution::SPOT) };
    let mut account = Account::with_faults(full, 2, Vec::new());
    let old = account.act_and_serve(at(0)).launched[0];
    assert!(account.groups.recommend_rebalance(old));
    let acted = account.act(at(60));
    assert_eq!((acted.launched.len(), acted.terminate.len()), (1, 0), "one more than the largest size");
    assert_eq!(account.act(at(70)), Acted::default(), "the replacement does not serve yet");
    account.groups.enter_service(acted.launched[0], at(90));
    account.groups.serves(acted.launched[0]);
    assert_eq!(account.act(at(100)).terminate, [(old, EndReason::CapacityRebalance)]);
}

#[test]
fn without_capacity_rebalancing_a_recommendation_changes_nothing() {
    let plain = GroupSpec { capacity_rebalance: false, ..spec(InstancesDistribution::SPOT) };
    let mut account = Account::with_faults(plain, 2, Vec::new());
    let old = account.act_and_serve(at(0)).launched[0];
    assert!(!account.groups.recommend_rebalance(old));
    assert_eq!(account.act(at(60)), Acted::default());
}

#[test]
fn lost_instance_is_replaced_at_same_size() {
    let mut account = Account::with_faults(spec(InstancesDistribution::SPOT), 2, Vec::new());
    let lost = account.act_and_serve(at(0)).launched[0];
    account.groups.lose(lost, at(50));
    assert_eq!(account.groups.desired(0), 2);
    let acted = account.act(at(60));
    assert_eq!(account.zones(&acted.launched), ["us-east-1a"], "where it is missing");
}

#[test]
fn recovered_zone_fills_before_crowded_zone_empties() {
    let faults = vec![short(zone("us-east-1a"), 300)];
    let mut account = Account::with_faults(spec(InstancesDistribution::ON_DEMAND), 4, faults);
    let mut now = at(0);
    while account.groups.size(0) < 4 {
        now = account.act_and_serve(now).again.unwrap_or(now);
    }
    let acted = account.act_and_serve(at(1_000));
    assert_eq!((account.zones(&acted.launched), acted.terminate.len()), (vec!["us-east-1a"], 0));
    let acted = account.act_and_serve(at(1_010));
    let [(moved, EndReason::ZoneRebalance)] = acted.terminate[..] else { panic!("{acted:?}") };
    assert_eq!(account.zones(&[moved]), ["us-east-1b"]);
    account.groups.forget(moved, at(1_020));
    account.act_and_serve(at(1_030));
    let acted = account.act_and_serve(at(1_040));
    account.groups.forget(acted.terminate[0].0, at(1_050));
    assert_eq!(account.act(at(1_060)), Acted::default(), "two and two");
}

#[test]
fn short_zone_is_retried_without_ending_instances() {
    let faults = vec![short(zone("us-east-1a"), 86_400)];
    let mut account = Account::with_faults(spec(InstancesDistribution::ON_DEMAND), 2, faults);
    let mut now = at(0);
    let mut failures = 0;
    for _ in 0..10 {
        let acted = account.act_and_serve(now);
        failures += acted.failures.len();
        assert_eq!(acted.terminate, [], "at {now}");
        now = acted.again.unwrap_or(now + SimDuration::from_secs(10));
    }
    assert_eq!(account.groups.size(0), 2);
    assert!(failures >= 4, "{failures} attempts");
}

#[test]
fn instance_can_end_with_or_without_replacement() {
    let bounded = GroupSpec { min: 1, ..spec(InstancesDistribution::ON_DEMAND) };
    let mut account = Account::with_faults(bounded, 2, Vec::new());
    let launched = account.act_and_serve(at(0)).launched;
    account.groups.end_instance(launched[0], true, at(10)).unwrap();
    assert_eq!((account.groups.desired(0), account.groups.size(0)), (1, 1));
    assert_eq!(account.act(at(20)), Acted::default(), "one less is wanted");
    let refused = account.groups.end_instance(launched[1], true, at(30)).unwrap_err().to_string();
    assert!(refused.contains("desiredSize equals minSize (1)"), "{refused}");
    account.groups.end_instance(launched[1], false, at(40)).unwrap();
    assert_eq!(account.act(at(50)).launched.len(), 1, "it is replaced");
    let states: Vec<LifecycleState> =
        account.groups.describe(&account.ec2)[0].instances.iter().map(|instance| instance.state).collect();
    assert_eq!(states, [LifecycleState::Terminating, LifecycleState::Terminating, LifecycleState::Pending]);
}

#[test]
fn sizes_outside_the_limits_are_refused() {
    let mut account = Account::with_faults(GroupSpec { min: 1, ..spec(InstancesDistribution::SPOT) }, 2, Vec::new());
    let name = Symbol::new(NAME);
    assert!(account.groups.set_desired(name, 11).unwrap_err().to_string().contains("above max value 10"));
    assert!(account.groups.set_desired(name, 0).unwrap_err().to_string().contains("below min value 1"));
    let unknown = Symbol::new("other");
    assert_eq!(account.groups.set_desired(unknown, 1), Err(ApiError::GroupNotFound(unknown)));
    assert_eq!(account.groups.desired(0), 2);
}

#[test]
fn group_calls_have_limits_and_report_failures() {
    let mut account =
        Account::with_faults(spec(InstancesDistribution::SPOT), 2, vec![short(zone("us-east-1b"), 3_600)]);
    account.act(at(5));
    let name = Symbol::new(NAME);
    let mut cloud = SimulatedAccount { ec2: &mut account.ec2, groups: &mut account.groups };
    let group = cloud.describe_auto_scaling_groups(at(6)).unwrap().remove(0);
    assert_eq!((group.desired, group.instances.len()), (2, 1), "one is missing");
    let activities = cloud.describe_scaling_activities(name, at(0), at(6)).unwrap();
    let statuses: Vec<ActivityStatus> = activities.iter().map(|activity| activity.status).collect();
    assert_eq!(statuses, [ActivityStatus::Failed, ActivityStatus::InProgress], "the newest first");
    assert!(activities[0].cause.contains("increasing the capacity from 0 to 2"), "{}", activities[0].cause);
    assert_eq!(cloud.describe_scaling_activities(name, at(6), at(6)).unwrap(), []);
    assert!((0..20).all(|_| cloud.set_desired_capacity(name, 3, at(7)).is_ok()));
    assert!(matches!(cloud.set_desired_capacity(name, 4, at(7)), Err(ApiError::Throttled(_))));
    assert_eq!(cloud.groups.desired(0), 3, "a call that is refused has no effect");
    assert!(cloud.set_desired_capacity(name, 4, at(8)).is_ok());
}

#[test]
fn launch_lost_before_serving_is_cancelled_and_replaced() {
    let mut account = Account::with_faults(spec(InstancesDistribution::ON_DEMAND), 1, Vec::new());
    let lost = account.act(at(0)).launched[0];
    account.groups.lose(lost, at(20));
    let [message] = &account.messages(ActivityStatus::Cancelled)[..] else { panic!("one is cancelled") };
    assert!(message.starts_with("Instance became unhealthy while waiting"), "{message}");
    assert_eq!(account.act(at(30)).launched.len(), 1);
}

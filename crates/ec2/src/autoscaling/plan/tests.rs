use super::{LaunchBatch, Member, Plan, plan};
use crate::InstanceId;
use crate::autoscaling::GroupSpec;
use nodecast_model::domain::node_group::InstancesDistribution;
use nodecast_model::domain::volumes::NodeVolumes;
use nodecast_model::domain::{Labels, SimDuration, Symbol};

fn spec(distribution: InstancesDistribution) -> GroupSpec {
    GroupSpec {
        name: Symbol::new("g"),
        zones: ["a", "b", "c"].map(Symbol::new).to_vec(),
        min: 0,
        max: 100,
        instance_types: vec![Symbol::new("m5.large")],
        weights: Vec::new(),
        distribution,
        capacity_rebalance: false,
        zone_rebalance: true,
        warm_pool: None,
        volumes: NodeVolumes::gp3(20),
        tags: Labels::new(),
    }
}

/// Members that serve, On-Demand, numbered in order, one for each letter's zone.
fn members(zones: &str) -> Vec<Member> {
    let member = |(number, zone): (usize, char)| Member {
        id: InstanceId(number as u32),
        zone: Symbol::new(&zone.to_string()),
        spot: false,
        serves: true,
        protected: false,
        outgoing: false,
        outdated: false,
        weight: 1,
        misfit: 0,
        into_hour: SimDuration::ZERO,
    };
    zones.chars().enumerate().map(member).collect()
}

fn launches(plan: &Plan) -> Vec<(&'static str, bool, u32)> {
    plan.launches.iter().map(|&LaunchBatch { zone, spot, count }| (zone.as_str(), spot, count)).collect()
}

fn never(_: Symbol, _: bool) -> bool {
    false
}

#[test]
fn instances_go_to_emptiest_zone_then_name() {
    let plan = plan(&spec(InstancesDistribution::ON_DEMAND), 7, &members("aab"), &never);
    assert_eq!(launches(&plan), [("c", false, 2), ("b", false, 1), ("a", false, 1)]);
}

#[test]
fn refusing_zone_is_skipped_for_that_kind() {
    let refuses = |zone: Symbol, spot: bool| spot && zone.as_str() != "b";
    let plan = plan(&spec(InstancesDistribution::SPOT), 2, &[], &refuses);
    assert_eq!((launches(&plan), plan.blocked), (vec![("b", true, 2)], false));
}

#[test]
fn what_every_zone_refuses_blocks_only_its_kind() {
    let mixed = InstancesDistribution { on_demand_base: 1, ..InstancesDistribution::SPOT };
    let plan = plan(&spec(mixed), 3, &[], &|_, spot| spot);
    assert_eq!((launches(&plan), plan.blocked), (vec![("a", false, 1)], true));
}

#[test]
fn scale_in_removes_surplus_purchase_option() {
    let mixed = InstancesDistribution { on_demand_base: 1, ..InstancesDistribution::SPOT };
    let mut members = members("aabb");
    members[1].spot = true;
    members[2].spot = true;
    // Two On-Demand where one is wanted: of zone a, first by name, the On-Demand one.
    assert_eq!(plan(&spec(mixed), 3, &members, &never).surplus, [InstanceId(0)]);
    members[3].spot = true;
    assert_eq!(
        plan(&spec(mixed), 3, &members, &never).surplus,
        [InstanceId(1)],
        "now Spot is what there is too much of"
    );
}

#[test]
fn scale_in_prefers_misfits_then_closest_billing_hour() {
    let on_demand = spec(InstancesDistribution::ON_DEMAND);
    let mut members = members("aaa");
    assert_eq!(plan(&on_demand, 2, &members, &never).surplus, [InstanceId(0)]);
    members[1].into_hour = SimDuration::from_secs(3_000);
    assert_eq!(plan(&on_demand, 2, &members, &never).surplus, [InstanceId(1)]);
    members[2].misfit = 1;
    assert_eq!(plan(&on_demand, 1, &members, &never).surplus, [InstanceId(2), InstanceId(1)]);
}

#[test]
fn zone_of_protected_instances_is_skipped() {
    let mut members = members("aaabb");
    members[..3].iter_mut().for_each(|member| member.protected = true);
    let plan = plan(&spec(InstancesDistribution::ON_DEMAND), 1, &members, &never);
    assert_eq!(plan.surplus, [InstanceId(3), InstanceId(4)], "nobody ends protected instances");
}

#[test]
fn zone_imbalance_of_two_is_rebalanced() {
    let on_demand = spec(InstancesDistribution::ON_DEMAND);
    assert_eq!(plan(&on_demand, 4, &members("aabc"), &never), Plan::default());
    assert_eq!(plan(&on_demand, 4, &members("aabb"), &never).misplaced, Some(InstanceId(0)));
    let suspended = GroupSpec { zone_rebalance: false, ..spec(InstancesDistribution::ON_DEMAND) };
    assert_eq!(plan(&suspended, 4, &members("aabb"), &never), Plan::default(), "`AZRebalance` is suspended");
    let refused = plan(&on_demand, 4, &members("aabb"), &|zone, _| zone.as_str() == "c");
    assert_eq!((refused.misplaced, refused.blocked), (None, true));
    let mut starting = members("aabb");
    starting[3].serves = false;
    assert_eq!(plan(&on_demand, 4, &starting, &never), Plan::default(), "not while instances start");
}

#[test]
fn outgoing_instance_ends_per_serving_replacement() {
    let mut members = members("abca");
    members[0].outgoing = true;
    members[1].outgoing = true;
    let on_demand = spec(InstancesDistribution::ON_DEMAND);
    let plan_now = plan(&on_demand, 3, &members, &never);
    assert_eq!(plan_now.replaced, [InstanceId(0)], "two of three serve beside the outgoing");
    assert_eq!(launches(&plan_now), [("b", false, 1)]);
    let tight = GroupSpec { max: 3, ..on_demand };
    assert_eq!(launches(&plan(&tight, 3, &members, &never)), [], "a tenth, at least one, above the largest size");
}

#[test]
fn rebalance_takes_two_moves_within_the_margin() {
    let spec = GroupSpec { max: 6, ..spec(InstancesDistribution::ON_DEMAND) };
    let (mut zones, mut moves) = ("aaaabb".to_owned(), 0);
    while let Some(moved) = plan(&spec, 6, &members(&zones), &never).misplaced {
        let mut all = members(&zones);
        all[moved.0 as usize].outgoing = true;
        let next = plan(&spec, 6, &all, &never);
        assert_eq!((launches(&next), next.replaced.len()), (vec![("c", false, 1)], 0), "7 at most, none ended yet");
        zones.remove(moved.0 as usize);
        zones.push('c');
        moves += 1;
    }
    let count = |zone: char| zones.chars().filter(|character| *character == zone).count();
    assert_eq!((moves, ['a', 'b', 'c'].map(count)), (2, [2, 2, 2]));
}

#[test]
fn suspended_rebalance_leaves_instances_but_directs_launches() {
    let spec = GroupSpec { zone_rebalance: false, ..spec(InstancesDistribution::ON_DEMAND) };
    assert_eq!(plan(&spec, 6, &members("aaaabb"), &never), Plan::default());
    assert_eq!(launches(&plan(&spec, 7, &members("aaaabb"), &never)), [("c", false, 1)]);
}

#[test]
fn scale_in_takes_instances_of_an_older_template_first() {
    let mut all = members("aaa");
    all[1].outdated = true;
    assert_eq!(plan(&spec(InstancesDistribution::ON_DEMAND), 2, &all, &never).surplus, [InstanceId(1)]);
}

#[test]
fn mixed_group_rounds_on_demand_up() {
    let mixed = InstancesDistribution { on_demand_base: 2, on_demand_percent: 50, ..InstancesDistribution::SPOT };
    let wanted = launches(&plan(&spec(mixed), 9, &[], &never));
    let of_kind = |spot: bool| wanted.iter().filter(|pair| pair.1 == spot).map(|pair| pair.2).sum::<u32>();
    assert_eq!((of_kind(false), of_kind(true)), (6, 3));
}

#[test]
fn weighted_members_count_and_leave_by_units() {
    let spec = GroupSpec {
        instance_types: ["m5.large", "m5.xlarge"].map(Symbol::new).to_vec(),
        weights: vec![3, 7],
        ..spec(InstancesDistribution { on_demand_base: 7, ..InstancesDistribution::SPOT })
    };
    let mut all = members("aab");
    for (member, weight) in all.iter_mut().zip([7, 3, 3]) {
        (member.weight, member.spot) = (weight, weight == 3);
    }
    // Zone c has none; as much as the largest instance is asked for at once.
    assert_eq!(launches(&plan(&spec, 23, &all, &never)), [("c", true, 7)]);
    assert_eq!(launches(&plan(&spec, 15, &all, &never)), [("c", true, 2)]);
    // 13 units: the one of 7 is On-Demand, and 3 are spare at most.
    assert_eq!(plan(&spec, 9, &all, &never).surplus, [InstanceId(1)]);
    assert_eq!(plan(&spec, 12, &all, &never).surplus, []);
    all[1].outgoing = true;
    let replaced = plan(&spec, 10, &all, &never).replaced;
    assert_eq!(replaced, [InstanceId(1)], "10 of 10 units serve without it");
    assert_eq!(plan(&spec, 11, &all, &never).replaced, []);
    // Zone a has 10 units and zone c none: a move of 3 helps, one of 10 would not.
    let mut crowded = members("aa");
    (crowded[0].weight, crowded[1].weight) = (7, 3);
    crowded[1].misfit = 1;
    assert_eq!(plan(&spec, 10, &crowded, &never).misplaced, Some(InstanceId(1)));
    let mut single = members("a");
    single[0].weight = 7;
    assert_eq!(plan(&spec, 7, &single, &never), Plan::default());
}

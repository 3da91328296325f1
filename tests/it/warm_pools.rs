//! Warm pools of node groups: times to Ready, refills, reuse on scale-in, and the bill.

use nodecast::cloud::BillItem;
use nodecast::simulation::Outcome;
use nodecast::world::record::NodeFacts;

use crate::node_groups::{minutes, ready, run, shown_error, web};

/// An hour of a group of these keys with exact times of machines: a cold one is Ready after 60 s.
fn scenario(group: &str, steps: &str) -> String {
    let stages = "vm_init: 15s, os_boot: 10s, bootstrap: 20s, register: 5s, cni_ready: 5s, status: 5s, running: 20s, by_type: false, spread: false";
    format!(
        "name: warm\nregion: us-east-1\nduration: 1h\ncluster: {{ zones: [us-east-1a, us-east-1b] }}\nmanifests: [manifests.yaml]\nec2: {{ \
         capacity: infinite, failures: none, launch_latency: {{ {stages} }}, times: {{ group_reaction: 0s }} }}\nnodeGroups:\n  - {{ name: \
         fast, {group} }}\ntimeline: [{steps}]\n"
    )
}

fn resize(at: &str, desired: u32) -> String {
    format!("{{ at: {at}, scale_group: {{ group: fast, desired: {desired} }} }}")
}

/// Seconds from launch to Ready of the nodes launched during the run.
fn boots(outcome: &Outcome) -> Vec<f64> {
    let boot = |node: &NodeFacts| Some((node.ready? - node.launched?).as_secs_f64());
    let launched = outcome.record.nodes.iter().filter(|node| node.launched.is_some_and(|at| at >= minutes(1)));
    launched.filter_map(boot).collect()
}

fn cost(outcome: &Outcome, item: BillItem) -> f64 {
    let lines = outcome.bill.lines.iter().filter(|line| line.item == item);
    lines.map(|line| line.amount.as_nanos() as f64 / 1e9).sum()
}

/// Seconds billed for instances that ran in the pool, one figure for each run.
fn prepared(outcome: &Outcome) -> Vec<f64> {
    let lines = outcome.bill.lines.iter().filter(|line| line.item == BillItem::WarmPool);
    lines.map(|line| line.billed.as_secs_f64()).collect()
}

#[test]
fn stopped_pool_starts_fast_and_costs_volumes() {
    let steps = resize("20m", 4);
    let group = "instanceType: m6i.large, desired: 2, min: 0, max: 6";
    let cold = run(&scenario(group, &steps), &web(1));
    assert_eq!((boots(&cold), cost(&cold, BillItem::WarmPoolVolume)), (vec![60.0; 2], 0.0));
    let warm = run(&scenario(&format!("{group}, warmPoolConfig: {{ enabled: true }}"), &steps), &web(1));
    assert_eq!(boots(&warm), vec![27.5; 2], "12.5 s to start, then 15 s from the kubelet on");
    assert_eq!(prepared(&warm), Vec::<f64>::new(), "nothing in the pool runs");
    // Four instances wait for 20 minutes and two for 40; two nodes have volumes for an hour and two for 40 minutes.
    let ratio = cost(&warm, BillItem::WarmPoolVolume) / cost(&warm, BillItem::RootVolume);
    assert!((ratio - 0.8).abs() < 0.01, "{ratio}");
}

#[test]
fn running_pool_is_billed_like_nodes() {
    let group = "instanceType: m6i.large, desired: 2, min: 0, max: 6, warmPoolConfig: { poolState: Running }";
    let outcome = run(&scenario(group, &resize("20m", 4)), &web(1));
    assert_eq!(boots(&outcome), vec![15.0; 2]);
    let ratio = cost(&outcome, BillItem::WarmPool) / cost(&outcome, BillItem::Instance);
    assert!((ratio - 0.8).abs() < 0.01, "{ratio}");
}

#[test]
fn depleted_pool_launches_cold_and_refills() {
    let group = "instanceType: m6i.large, desired: 2, min: 0, max: 9, warmPoolConfig: { maxGroupPreparedCapacity: 3, minSize: 1 }";
    let outcome = run(&scenario(group, &resize("20m", 5)), &web(1));
    let mut boots = boots(&outcome);
    boots.sort_by(f64::total_cmp);
    assert_eq!(boots, [27.5, 60.0, 60.0], "one instance was prepared");
    let prepared = prepared(&outcome);
    assert!(prepared.len() == 1 && (60.0..=121.0).contains(&prepared[0]), "{prepared:?}");
}

#[test]
fn instances_return_to_the_pool_on_scale_in() {
    let steps = [resize("10m", 2), resize("40m", 4)].join(", ");
    let outcome = |reuse: bool| {
        let pool = format!("warmPoolConfig: {{ reuseOnScaleIn: {reuse} }}");
        run(&scenario(&format!("instanceType: m6i.large, desired: 4, min: 0, max: 4, {pool}"), &steps), &web(1))
    };
    let (reused, replaced) = (outcome(true), outcome(false));
    for outcome in [&reused, &replaced] {
        assert_eq!(boots(outcome), vec![27.5; 2]);
        assert_eq!([9, 30, 55].map(|at| ready(outcome, minutes(at))), [4, 2, 4]);
    }
    assert_eq!((prepared(&reused).len(), prepared(&replaced).len()), (0, 2), "new instances are prepared first");
}

#[test]
fn cluster_autoscaler_draws_on_the_pool() {
    let group = "instanceType: m6i.large, desired: 1, min: 1, max: 6, warmPoolConfig: { minSize: 2 }";
    let text = scenario(group, "") + "policies: [{ name: cas, autoscaler: cluster-autoscaler }]\n";
    let outcome = run(&text, &web(5));
    let boots = boots_of_all(&outcome);
    assert!(boots.len() == 2 && boots.iter().all(|boot| (boot - 27.5).abs() < 1e-9), "{boots:?}");
}

/// Seconds from launch to Ready of all nodes that were not there from the start.
fn boots_of_all(outcome: &Outcome) -> Vec<f64> {
    let boot = |node: &NodeFacts| Some((node.ready? - node.launched?).as_secs_f64());
    outcome.record.nodes.iter().filter_map(boot).filter(|boot| *boot > 0.0).collect()
}

#[test]
fn savings_plan_covers_a_running_warm_pool() {
    // Two nodes and four instances of the pool, for an hour at 0.096 USD each.
    let group = "instanceType: m6i.large, desired: 2, min: 0, max: 6, warmPoolConfig: { poolState: Running }";
    let plan = "ec2: { billing: { savings_plans: [{ commitment: 1, discount: 25% }] }, ";
    let outcome = run(&scenario(group, "").replace("ec2: { ", plan), &web(1));
    let near = |item, expected: f64| {
        let found = cost(&outcome, item);
        assert!((found - expected).abs() < 2e-3, "{item:?}: {found}");
    };
    near(BillItem::WarmPool, 0.384);
    near(BillItem::SavingsPlans, 0.75 * 0.576);
    near(BillItem::Covered, -0.576);
    let net: Vec<_> = outcome.bill.net().iter().filter(|line| line.item == BillItem::WarmPool).collect();
    assert!(net.iter().all(|line| line.amount.as_nanos() < 1_000_000), "nothing of the pool is left to pay");
    let sum: i128 = outcome.bill.net().iter().map(|line| line.amount.as_nanos()).sum();
    assert_eq!(sum, outcome.bill.total().as_nanos());
}

#[test]
fn unused_reservation_of_running_pool_is_warned_of() {
    let warned = |state: &str, reserved: &str| {
        let group =
            format!("instanceType: m6i.large, desired: 1, min: 0, max: 3, warmPoolConfig: {{ poolState: {state} }}");
        let reservation =
            format!("ec2: {{ capacity_reservations: [{{ id: cr-5, type: {reserved}, zone: us-east-1a, count: 2 }}], ");
        let outcome = run(&scenario(&group, "").replace("ec2: { ", &reservation), &web(1));
        outcome
            .warnings
            .texts()
            .iter()
            .any(|text| text.contains("m6i.large in its warm pool does not use capacity reservation cr-5"))
    };
    assert!(warned("Running", "m6i.large"));
    assert!(!warned("Stopped", "m6i.large"));
    assert!(!warned("Running", "m6i.xlarge"));
}

#[test]
fn warm_pool_takes_addresses_of_subnets() {
    let group = "instanceType: m6i.large, desired: 2, min: 0, max: 20, warmPoolConfig: { enabled: true }";
    let pooled = |in_use: u32| {
        // A subnet of 32 addresses has 27 for the cluster, less those in use.
        let subnets =
            ["a", "b"].map(|zone| format!("{{ zone: us-east-1{zone}, cidr: 10.0.1.0/27, in_use: {in_use} }}"));
        let network =
            format!("ec2: {{ network: {{ subnets: [{}] }}, ", subnets.join(", ").replacen("10.0.1.0", "10.0.2.0", 1));
        let outcome = run(&scenario(group, "").replace("ec2: { ", &network), &web(1));
        outcome.bill.lines.iter().filter(|line| line.item == BillItem::WarmPoolVolume).count()
    };
    assert_eq!(pooled(0), 18, "addresses suffice for 20 instances less two nodes");
    assert_eq!(pooled(22), 8, "of five addresses in each zone a node takes one");
}

#[test]
fn eksctl_group_has_a_warm_pool() {
    let text = scenario("instanceType: m6i.large, desired: 1", &resize("20m", 3).replace("fast", "kiosk"));
    let cluster = |more: &str| {
        format!(
            "{}---\napiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: fair, region: us-east-1}}\nmanagedNodeGroups:\n- \
             {{name: kiosk, instanceType: m6i.large, minSize: 0, desiredCapacity: 1, maxSize: 5, {more}}}\n",
            web(1)
        )
    };
    let outcome = run(&text, &cluster("warmPoolConfig: {enabled: true, maxGroupPreparedCapacity: 2}"));
    let mut boots = boots(&outcome);
    boots.sort_by(f64::total_cmp);
    assert_eq!(boots, [27.5, 60.0]);
    let off = run(&text, &cluster("warmPoolConfig: {enabled: false, maxGroupPreparedCapacity: 2}"));
    assert!(cost(&off, BillItem::WarmPoolVolume).abs() < 1e-9);
    let error = shown_error(&text, &cluster("ami: ami-1, warmPoolConfig: {enabled: true}"));
    assert!(
        error.contains("a warm pool of a group with a custom image") && error.contains("manifests.yaml:"),
        "{error}"
    );
}

#[test]
fn impossible_warm_pools_are_errors() {
    for (group, words) in [
        ("instanceType: m6i.large, spot: true, warmPoolConfig: { minSize: 1 }", "no warm pool for Spot"),
        (
            "instanceType: m6i.large, amiFamily: Bottlerocket, warmPoolConfig: { poolState: Hibernated }",
            "does not hibernate",
        ),
        (
            "instanceType: m6i.large, amiFamily: Bottlerocket, warmPoolConfig: { reuseOnScaleIn: true }",
            "are not reused",
        ),
        (
            "managed: false, instanceType: m6i.large, weights: { m6i.large: 2 }, warmPoolConfig: { minSize: 1 }",
            "mixed instances policy",
        ),
        ("instanceType: m6i.large, warmPoolConfig: { poolState: Cold }", "Hibernated"),
    ] {
        let error = shown_error(&scenario(group, ""), "");
        assert!(error.contains("scenario.yaml:8:") && error.contains(words), "{group}: {error}");
    }
}

//! How many nodes may be away at once (D).

use nodecast::domain::node_pool::{Budget, DisruptionReason};
use nodecast::domain::pod::IntOrPercent::{Count, Percent};
use nodecast::domain::{SimDuration, well_known};
use nodecast::scenario::manifests::node_pool_from_json;
use nodecast_karpenter::disruption::{Method, MethodResult, allowed_nodes, is_active};
use serde_json::{Value, json};

use super::lab::{CONSOLIDATION, Lab, Node, free_pool, nodes_budget, plain};

pub const ROWS: &[(&str, &str)] = &[
    ("D1", "emptiness_respects_budget_of_each_pool"),
    ("D2", "emptiness_respects_budget_of_each_pool"),
    ("D3", "emptiness_respects_budget_of_each_pool"),
    ("D4", "several_nodes_together_count_one_by_one"),
    ("D5", "unavailable_nodes_do_not_count_for_budget"),
    ("D6", "unavailable_nodes_do_not_count_for_budget"),
    ("D7", "unavailable_nodes_do_not_count_for_budget"),
    ("D8", "absent_or_leaving_nodes_use_up_budget"),
    ("D9", "absent_or_leaving_nodes_use_up_budget"),
    ("D10", "absent_or_leaving_nodes_use_up_budget"),
    ("D13", "budgets_outside_their_window_do_not_count"),
    ("D14", "non_percentage_budget_is_rejected"),
    ("D15", "schedules_are_in_utc"),
    ("D20", "exhausted_budget_result_is_not_cached"),
    ("D21", "empty_budgets_are_unlimited_and_absent_ten_percent"),
];

/// 2024-01-07, a Sunday, at midnight UTC.
const SUNDAY: i64 = 1_704_585_600;

/// So many empty nodes in each pool.
fn empty_nodes(pools: &[&str], each: usize) -> Lab {
    let mut lab = Lab::new();
    lab.pools = pools.iter().map(|name| (free_pool(name), Some(Lab::new().types))).collect();
    for pool in pools {
        for number in 0..each {
            lab.node_of(pool, &format!("{pool}-{number}"), "m-4", "on-demand", Vec::new());
        }
    }
    lab
}

fn taken(lab: &Lab, method: Method) -> usize {
    match lab.found(method) {
        MethodResult::Command(command) => command.nodes.len(),
        MethodResult::Nothing | MethodResult::NotNow => 0,
    }
}

#[test]
fn emptiness_respects_budget_of_each_pool() {
    for (budget, expected) in [(Count(3), 3), (Percent(100), 10), (Percent(0), 0)] {
        let mut lab = empty_nodes(&["default"], 10);
        lab.pool().disruption.budgets = vec![nodes_budget(budget)];
        assert_eq!(taken(&lab, Method::Emptiness), expected, "{budget:?}");
    }
    let names: Vec<String> = (0..10).map(|number| format!("pool-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut lab = empty_nodes(&names, 3);
    for (pool, _) in &mut lab.pools {
        pool.disruption.budgets = vec![nodes_budget(Count(2))];
    }
    let command = lab.command(Method::Emptiness);
    assert_eq!(command.nodes.len(), 20);
    for name in names {
        let matches = |node: &&usize| lab.nodes[**node].labels.get(well_known::NODEPOOL) == Some(name.into());
        assert_eq!(command.nodes.iter().filter(matches).count(), 2, "{name}");
    }
}

#[test]
fn several_nodes_together_count_one_by_one() {
    let mut lab = Lab::new();
    lab.unmanaged("room", "m-16");
    for number in 0..10 {
        lab.node(&format!("node-{number}"), "m-4", vec![plain("web", "100m")]);
    }
    assert_eq!(taken(&lab, Method::MultiNode), 10);
    lab.allow(3);
    assert_eq!(taken(&lab, Method::MultiNode), 3);
}

#[test]
fn unavailable_nodes_do_not_count_for_budget() {
    let allowance = |change: fn(&mut Node)| {
        let mut lab = empty_nodes(&["default"], 11);
        change(&mut lab.nodes[10]);
        lab.allowance(DisruptionReason::Empty)
    };
    assert_eq!(allowance(|_| {}), 11);
    assert_eq!(allowance(|node| node.managed = false), 10);
    assert_eq!(allowance(|node| node.initialized = false), 10);
    // Neither among the nodes nor among those that are leaving.
    assert_eq!(allowance(|node| (node.instance_terminating, node.marked, node.ready) = (true, true, false)), 10);
}

#[test]
fn absent_or_leaving_nodes_use_up_budget() {
    let allowance = |percent, change: fn(usize, &mut Node)| {
        let mut lab = empty_nodes(&["default"], 10);
        lab.pool().disruption.budgets = vec![nodes_budget(Percent(percent))];
        lab.nodes.iter_mut().enumerate().for_each(|(number, node)| change(number, node));
        lab.allowance(DisruptionReason::Underutilized)
    };
    assert_eq!(allowance(10, |_, node| node.marked = true), 0);
    assert_eq!(allowance(100, |number, node| node.marked = number < 2), 8);
    assert_eq!(allowance(100, |number, node| node.ready = number >= 2), 8);
    // A node that is both counts once.
    assert_eq!(allowance(100, |number, node| (node.marked, node.ready) = (number < 2, number >= 2)), 8);
}

fn scheduled(schedule: &str, seconds: i64, nodes: i64, reasons: &[DisruptionReason]) -> Budget {
    Budget {
        nodes: Count(nodes),
        reasons: (!reasons.is_empty()).then(|| reasons.to_vec()),
        schedule: Some(schedule.to_owned()),
        duration: Some(SimDuration::from_secs(seconds)),
    }
}

#[test]
fn budgets_outside_their_window_do_not_count() {
    use DisruptionReason::{Drifted, Empty, Underutilized};
    let mut pool = free_pool("default");
    let narrow = [Empty, Drifted, Underutilized].map(|reason| scheduled("@yearly", 3_600, 1, &[reason]));
    pool.disruption.budgets = std::iter::once(nodes_budget(Count(10))).chain(narrow).collect();
    for reason in [Empty, Drifted, Underutilized] {
        assert_eq!(allowed_nodes(&pool, reason, 100, SUNDAY), 10, "{reason:?}");
        // Half past midnight on New Year's Day.
        assert_eq!(allowed_nodes(&pool, reason, 100, 1_704_067_200 + 1_800), 1, "{reason:?}");
    }
    pool.disruption.budgets.remove(0);
    assert_eq!(allowed_nodes(&pool, Empty, 100, SUNDAY), 2_147_483_647);
}

fn read(disruption: Value) -> Result<Vec<Budget>, String> {
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
    let template = json!({"spec": {"nodeClassRef": class, "requirements": []}});
    let mut spec = json!({"template": template});
    if !disruption.is_null() {
        spec["disruption"] = disruption;
    }
    let read = node_pool_from_json(&json!({"metadata": {"name": "default"}, "spec": spec}));
    read.map(|pool| pool.disruption.budgets).map_err(|error| error.to_string())
}

#[test]
fn non_percentage_budget_is_rejected() {
    let error = read(json!({"consolidateAfter": "0s", "budgets": [{"nodes": "1000a%"}]})).unwrap_err();
    assert!(error.contains("`nodes` is not a percentage"), "{error}");
    let mut pool = free_pool("default");
    pool.disruption.budgets = vec![nodes_budget(Count(5)), scheduled("@wrongly", 3_600, 9, &[])];
    for reason in [DisruptionReason::Empty, DisruptionReason::Drifted, DisruptionReason::Underutilized] {
        assert_eq!(allowed_nodes(&pool, reason, 100, SUNDAY), 0);
    }
}

#[test]
fn schedules_are_in_utc() {
    let half_an_hour = scheduled("@daily", 1_800, 1, &[]);
    // Midnight in a zone one hour ahead is 23:00 UTC.
    assert_eq!(is_active(&half_an_hour, SUNDAY - 3_600), Some(false));
    assert_eq!(is_active(&half_an_hour, SUNDAY), Some(true));
}

#[test]
fn exhausted_budget_result_is_not_cached() {
    let mut lab = empty_nodes(&["one", "two"], 2);
    for (pool, _) in &mut lab.pools {
        pool.disruption.budgets = vec![nodes_budget(Count(0))];
    }
    assert_eq!(lab.told(Method::Emptiness), "not now");
    for node in &mut lab.nodes {
        node.pods = vec![plain("web", "100m")];
    }
    for method in CONSOLIDATION {
        assert_eq!(lab.told(method), "not now", "{method:?}");
    }
    let mut alone = Lab::new();
    alone.node("node", "m-2", vec![plain("web", "1500m")]);
    alone.pools[0].0.requirements = super::lab::on_demand();
    assert_eq!(CONSOLIDATION.map(|method| alone.told(method)), ["nothing", "nothing"]);
    alone.allow(0);
    assert_eq!(CONSOLIDATION.map(|method| alone.told(method)), ["not now", "not now"]);
}

#[test]
fn empty_budgets_are_unlimited_and_absent_ten_percent() {
    let mut pool = free_pool("default");
    let mut most = |disruption| {
        pool.disruption.budgets = read(disruption).unwrap();
        allowed_nodes(&pool, DisruptionReason::Drifted, 100, SUNDAY)
    };
    assert_eq!(most(json!({"consolidateAfter": "0s", "budgets": []})), 2_147_483_647);
    assert_eq!(most(json!({"consolidateAfter": "0s"})), 10);
    assert_eq!(most(Value::Null), 10);
}

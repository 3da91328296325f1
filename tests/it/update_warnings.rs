//! Warnings about updates of managed node groups before a run: budgets, quotas, subnets, and Cluster Autoscaler.

use nodecast::catalog::Catalog;
use nodecast::simulation;

use crate::node_groups::{run, try_load};
use crate::node_upgrades::{app, scenario};

const GROUP: &str = "desired: 4, max: 6";
const STEP: &str = "update_group: { group: workers, ami: ami-new }";

/// Warnings of a run about updates, without those about anything else.
fn warnings(text: &str, manifests: &str) -> Vec<String> {
    let scenario = try_load(text, manifests).unwrap();
    let policy = scenario.for_policy(None).unwrap();
    let resolved = simulation::resolve(&scenario, policy, Catalog::embedded().unwrap(), 1).unwrap();
    let all = resolved.warnings.texts();
    all.iter().map(ToString::to_string).filter(|text| text.contains("update of node group workers")).collect()
}

fn budget(rule: &str) -> String {
    app(6, 1).replace("maxUnavailable: 1", rule)
}

#[test]
fn blocking_budget_of_an_update_is_announced() {
    let said = |step: &str, manifests: &str| warnings(&scenario(2, GROUP, step, ""), manifests);
    for rule in ["maxUnavailable: 0", "minAvailable: 6", "minAvailable: 100%"] {
        let all = said(STEP, &budget(rule));
        assert!(all.len() == 1 && all[0].contains("default/cart") && all[0].contains("fails"), "{rule}: {all:?}");
    }
    // An update without additional nodes leaves none.
    for (strategy, leaves) in [("DEFAULT", true), ("MINIMAL", false)] {
        let group = format!("{GROUP}, updateConfig: {{ updateStrategy: {strategy} }}");
        let all = warnings(&scenario(2, &group, STEP, ""), &budget("maxUnavailable: 0"));
        assert_eq!(all[0].contains("additional nodes stay"), leaves, "{strategy}: {all:?}");
    }
    for rule in ["maxUnavailable: 1", "minAvailable: 5", "minAvailable: 80%"] {
        assert_eq!(said(STEP, &budget(rule)), [""; 0], "{rule}");
    }
    let forced = "update_group: { group: workers, ami: ami-new, force: true }";
    assert_eq!(said(forced, &budget("maxUnavailable: 0")), [""; 0]);
}

#[test]
fn second_budget_blocks_an_update() {
    let second = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: more}\nspec: {maxUnavailable: 5, selector: \
                  {matchLabels: {app: cart}}}\n";
    let all = warnings(&scenario(2, GROUP, STEP, ""), &format!("{}{second}", app(6, 1)));
    assert!(all.len() == 1 && all[0].contains("default/cart"), "{all:?}");
}

#[test]
fn budget_of_pods_elsewhere_is_no_warning() {
    let tainted = format!("{GROUP}, taints: [{{ key: team, value: ml, effect: NoSchedule }}]");
    let labelled = budget("maxUnavailable: 0").replace("containers:", "nodeSelector: {pool: other}\n      containers:");
    assert_eq!(warnings(&scenario(2, &tainted, STEP, ""), &budget("maxUnavailable: 0")), [""; 0]);
    assert_eq!(warnings(&scenario(2, GROUP, STEP, ""), &labelled), [""; 0]);
    let same = format!("{GROUP}, labels: {{ pool: other }}");
    assert_eq!(warnings(&scenario(2, &same, STEP, ""), &labelled).len(), 1);
}

#[test]
fn autoscaled_workload_may_outgrow_its_budget() {
    let autoscaler = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: cart}\nspec: {minReplicas: 6, \
                      maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: cart}}\n";
    let text = scenario(2, GROUP, STEP, "");
    assert_eq!(warnings(&text, &format!("{}{autoscaler}", budget("minAvailable: 6"))), [""; 0]);
    assert_eq!(warnings(&text, &format!("{}{autoscaler}", budget("maxUnavailable: 0"))).len(), 1);
}

#[test]
fn quota_below_update_surge_is_announced() {
    // Four nodes of two vCPUs in two zones, and four more during the update: 16 vCPUs.
    let said = |vcpus: u32, config: &str| {
        let group = format!("{GROUP}{config}");
        let text =
            scenario(2, &group, STEP, "").replace("infinite", &format!("infinite, quotas: {{ standard: {vcpus} }}"));
        warnings(&text, &app(6, 1))
    };
    let all = said(15, "");
    assert!(
        all.len() == 1 && all[0].contains("need 16 vCPUs of the On-Demand standard quota, which has 15"),
        "{all:?}"
    );
    assert_eq!(said(16, ""), [""; 0]);
    assert_eq!(said(9, ", updateConfig: { updateStrategy: MINIMAL }"), [""; 0]);
    assert_eq!(said(19, ", updateConfig: { maxUnavailable: 6 }").len(), 1, "six more nodes need 20 vCPUs");
}

#[test]
fn subnets_below_update_surge_are_announced() {
    // In each zone two nodes with 20 addresses each, and two new ones with ten each.
    let said = |addresses: u32| {
        let subnets = format!(
            "infinite, network: {{ subnets: [{{ zone: us-east-1a, cidr: 10.0.0.0/24 }}, {{ zone: us-east-1b, cidr: 10.0.1.0/24, in_use: {} }}] }}",
            251 - addresses
        );
        warnings(&scenario(2, GROUP, STEP, "").replace("infinite", &subnets), &app(6, 1))
    };
    let all = said(59);
    assert!(all.len() == 1 && all[0].contains("the subnets in us-east-1b have too few addresses"), "{all:?}");
    assert_eq!(said(60), [""; 0]);
}

#[test]
fn cluster_autoscaler_with_an_update_is_announced() {
    let said = |autoscaler: &str, config: &str| {
        let more = format!("policies: [{{ name: only, autoscaler: {autoscaler} }}]");
        warnings(&scenario(2, &format!("{GROUP}{config}"), STEP, &more), &app(6, 1))
    };
    let all = said("cluster-autoscaler", "");
    assert!(all.len() == 1 && all[0].contains("keeps up to 4 additional nodes"), "{all:?}");
    assert_eq!(said("cluster-autoscaler", ", updateConfig: { updateStrategy: MINIMAL }"), [""; 0]);
    assert_eq!(said("static", ""), [""; 0]);
}

#[test]
fn update_reports_hours_and_cost_of_additional_nodes() {
    let outcome = run(&scenario(3, "desired: 3, max: 3", STEP, ""), &app(6, 1));
    let summary = nodecast::report::Summary::from_outcome(&outcome);
    let [upgrade] = summary.node_upgrades.as_slice() else { panic!("one update") };
    // Six or seven more nodes of m6i.large at 0.096 USD an hour for a part of the 20 to 35 minutes.
    assert!((1.0..4.0).contains(&upgrade.extra_node_hours), "{} h", upgrade.extra_node_hours);
    assert!((upgrade.extra_cost - 0.096 * upgrade.extra_node_hours).abs() < 1e-3, "{} USD", upgrade.extra_cost);
}

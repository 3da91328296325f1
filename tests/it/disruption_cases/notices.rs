//! What AWS says of an instance, and what Karpenter makes of it (L).

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime};
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::{EventKind, NodeEnd, NodeFacts};
use serde_json::{Value, json};

use super::story::{Story, StoryOutcome, between, maybe, of_types, plain, pod, protected};

pub const ROWS: &[(&str, &str)] = &[
    ("L1", "spot_notice_removes_node_and_avoids_offering"),
    ("L2", "a_rebalance_recommendation_is_only_noted"),
    ("L3", "terminating_instance_state_removes_node"),
    ("L4", "only_scheduled_ec2_change_removes_node"),
    ("L7", "notice_for_leaving_node_only_avoids_offering"),
    ("L8", "failing_status_check_forces_node_removal"),
    ("L9", "a_scheduled_event_removes_the_node_without_force"),
    ("L10", "who_is_forced_out_stays_forced_out"),
    ("L11", "a_check_that_recovers_is_counted_anew"),
    ("L12", "interrupted_instance_ends_after_drain_or_two_minutes"),
];

/// A node with a pod that a drain waits for, and what it is told at 60.25.
fn told(value: Value, more: Value) -> StoryOutcome {
    let mut action = json!({"op": "notice", "onNodeOf": "web-00000"});
    action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Story::calm().run(0.25, "web", 1, value).at(60.25, action).until(400.0)
}

fn removed(more: Value) -> bool {
    let told = told(plain("1"), more);
    let removed = told.node(1).end == Some(NodeEnd::Interrupted);
    assert_eq!(maybe(told.node(1).deletion_requested), if removed { "60.25" } else { "never" });
    removed
}

#[test]
fn spot_notice_removes_node_and_avoids_offering() {
    let spot = json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["s-2"]},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", "b"]}]);
    let story = |zones: Value, late: f64| {
        let mut requirements = spot.clone();
        requirements[2]["values"] = zones;
        let notice = json!({"op": "notice", "onNodeOf": "web-00000", "kind": "spotInterruption"});
        Story::calm()
            .pool(json!({"template": {"spec": {"requirements": requirements}}}))
            .run(0.25, "web", 1, plain("1500m"))
            .at(60.25, notice)
            .run(late, "late", 1, plain("1500m"))
            .until(400.0)
    };
    let bought = |node: &NodeFacts| format!("{} {}", node.zone.unwrap(), node.capacity_type.unwrap());
    let told = story(json!(["a", "b"]), 100.25);
    let all: Vec<String> = told.record.nodes.iter().map(bought).collect();
    assert_eq!(all, ["a spot", "b spot", "b spot"]);
    assert_eq!(maybe(told.node(1).deletion_requested), "60.25");
    // With one zone the same type is bought On-Demand, until three minutes are over.
    let told = story(json!(["a"]), 242.25);
    let all: Vec<String> = told.record.nodes.iter().map(bought).collect();
    assert_eq!(all, ["a spot", "a on-demand", "a spot"]);
}

#[test]
fn a_rebalance_recommendation_is_only_noted() {
    assert!(!removed(json!({"kind": "rebalanceRecommendation"})));
    let outcome = spot_cluster("10m", "");
    let node = interrupted(&outcome);
    let noted = |kind| outcome.record.events.iter().find(|event| event.kind == kind).map(|event| event.at);
    let (recommended, noticed) = (noted(EventKind::RebalanceRecommended), noted(EventKind::InterruptionNotice));
    assert!((between(recommended, noticed) - 480.0).abs() < 1.0);
    assert!(node.deletion_requested > noticed);
}

#[test]
fn terminating_instance_state_removes_node() {
    for (state, goes) in [
        ("pending", false),
        ("running", false),
        ("stopping", true),
        ("stopped", true),
        ("shutting-down", true),
        ("terminated", true),
    ] {
        assert_eq!(removed(json!({"kind": "stateChange", "state": state})), goes, "{state}");
    }
}

#[test]
fn only_scheduled_ec2_change_removes_node() {
    for (service, category, goes) in
        [("EC2", "scheduledChange", true), ("EC2", "issue", false), ("RDS", "scheduledChange", false)]
    {
        let event = json!({"kind": "healthEvent", "service": service, "category": category});
        assert_eq!(removed(event), goes, "{service} {category}");
    }
}

#[test]
fn notice_for_leaving_node_only_avoids_offering() {
    let notice = json!({"op": "notice", "onNodeOf": "web-00000", "kind": "spotInterruption"});
    let told = Story::calm()
        .pool(json!({"template": {"spec": {"requirements": of_types(&["s-2", "s-4"])}}}))
        .run(0.25, "web", 1, protected("1"))
        .delete_node_of(60.25, "web-00000")
        .at(90.25, notice)
        .run(100.25, "late", 1, plain("1500m"))
        .until(300.0);
    assert_eq!((maybe(told.node(1).deletion_requested), told.node(1).end), ("60.25".into(), Some(NodeEnd::Deleted)));
    assert_eq!(told.times(EventKind::NodeDisrupted, 1).len(), 1);
    // The cheaper type is avoided.
    assert_eq!(told.record.nodes.last().unwrap().instance_type.map(|name| name.as_str()), Some("s-4"));
}

/// A node with a protected pod and a long grace period whose instance fails its status checks at times.
fn checked(checks: &[(f64, bool)]) -> Story {
    let story = Story::calm().pool(json!({"template": {"spec": {"terminationGracePeriod": "24h"}}}));
    let check = |failed: bool| json!({"op": "statusCheck", "onNodeOf": "web-00000", "failed": failed});
    checks.iter().fold(story.run(0.25, "web", 1, protected("1")), |story, (at, failed)| story.at(*at, check(*failed)))
}

#[test]
fn failing_status_check_forces_node_removal() {
    // Karpenter looks at 50.37 and every minute from then on.
    for (fails, goes) in [(50.25, "170.37"), (50.45, "230.37")] {
        let told = checked(&[(fails, true)]).until(400.0);
        assert_eq!((maybe(told.node(1).deletion_requested), told.node(1).end), (goes.into(), Some(NodeEnd::Unhealthy)));
        // The pod has a second.
        let pod = told.pod("web-00000");
        assert_eq!((maybe(pod.deletion_requested), pod.grace.map(|grace| grace.as_secs())), (goes.to_owned(), Some(1)));
    }
    assert_eq!(checked(&[(50.25, true), (160.25, false)]).until(400.0).node(1).end, None);
}

#[test]
fn a_scheduled_event_removes_the_node_without_force() {
    let told = told(protected("1"), json!({"kind": "scheduledEvent"}));
    assert_eq!(
        (maybe(told.node(1).deletion_requested), told.node(1).end),
        ("60.25".into(), Some(NodeEnd::Interrupted))
    );
    assert_eq!((told.pod("web-00000").deletion_requested, told.node(1).terminating), (None, None));
}

#[test]
fn who_is_forced_out_stays_forced_out() {
    let event = json!({"op": "notice", "onNodeOf": "web-00000", "kind": "scheduledEvent"});
    let slow = json!({"annotations": {"karpenter.sh/do-not-disrupt": "true", "sim/shutdown-seconds": "60"}});
    let both = checked(&[(50.25, true)]).run(0.25, "slow", 1, pod("100m", slow)).at(170.45, event).until(400.0);
    let node = both.node(1);
    assert_eq!((maybe(node.deletion_requested), node.end), ("170.37".into(), Some(NodeEnd::Unhealthy)));
    assert!(between(node.deletion_requested, node.terminating) < 10.0, "the end of its drain was not moved");
}

#[test]
fn a_check_that_recovers_is_counted_anew() {
    let told = checked(&[(50.25, true), (120.25, false), (140.25, true)]).until(400.0);
    assert_eq!(maybe(told.node(1).deletion_requested), "290.37");
}

/// A Spot cluster of which EC2 takes an instance at 30 minutes, announced so long before. `more` is another manifest.
fn spot_cluster(before: &str, more: &str) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let scenario = format!(
        "name: test\nregion: us-east-1\nstart: 2026-01-01T00:00:00Z\nduration: 50m\nseed: 3\nmanifests: [manifests.yaml]\n\
         cluster: {{zones: [us-east-1a, us-east-1b]}}\n\
         ec2: {{ spot: {{ prices: constant, interruptions: none }}, failures: none }}\n\
         faults: [{{ at: 20m, spot_interruption: {{ count: 1, before: {before} }} }}]\n\
         policies: [{{name: only, autoscaler: karpenter}}]\n"
    );
    let manifests = format!(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: default}}\nspec:\n  \
         disruption: {{consolidationPolicy: WhenEmpty, consolidateAfter: Never}}\n  template:\n    spec:\n      \
         expireAfter: Never\n      \
         nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}\n      requirements:\n      \
         - {{key: karpenter.sh/capacity-type, operator: In, values: [spot]}}\n      \
         - {{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}}\n\
         ---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default}}\nspec: \
         {{amiSelectorTerms: [{{alias: al2023@latest}}]}}\n\
         ---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: 1\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      \
         containers: [{{name: app, image: app, resources: {{requests: {{cpu: 1500m}}}}}}]\n{more}"
    );
    std::fs::write(directory.path().join("scenario.yaml"), scenario).unwrap();
    std::fs::write(directory.path().join("manifests.yaml"), manifests).unwrap();
    let scenario = nodecast::scenario::load(&directory.path().join("scenario.yaml")).unwrap().0;
    let policy = scenario.for_policy(None).unwrap();
    simulation::run(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &mut |_| {}).unwrap()
}

/// The first node, which EC2 takes.
fn interrupted(outcome: &Outcome) -> &NodeFacts {
    let node = &outcome.record.nodes[0];
    assert_eq!(node.end, Some(NodeEnd::Interrupted));
    node
}

#[test]
fn interrupted_instance_ends_after_drain_or_two_minutes() {
    let notice = SimTime::ZERO + SimDuration::from_secs(1_200);
    let quick = spot_cluster("2m", "");
    let ended = interrupted(&quick).terminating.unwrap() - notice;
    assert!(ended < SimDuration::from_secs(30), "drained after {ended}");
    assert!(!quick.record.events.iter().any(|event| event.kind == EventKind::InstanceReclaimed));
    let budget = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {maxUnavailable: 0, \
                  selector: {matchLabels: {app: web}}}\n";
    let stuck = spot_cluster("2m", budget);
    let node = interrupted(&stuck);
    assert_eq!(node.terminating.unwrap() - notice, SimDuration::from_secs(120));
    assert!(stuck.record.events.iter().any(|event| event.kind == EventKind::InstanceReclaimed));
    let pod = stuck.record.pods.facts(nodecast::domain::PodId(0));
    assert!(pod.removed >= node.terminating, "the pod is lost with its node");
}

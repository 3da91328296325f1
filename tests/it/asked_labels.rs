//! Labels that pods and NodePools ask for and that a launch chooses: the node has them, so that one launch is enough. And pods that ask nobody.

use nodecast::catalog::Catalog;
use nodecast::scenario::Scenario;
use nodecast::simulation::{Outcome, resolve, run};
use nodecast::world::record::EventKind;

use crate::cli::Place;

/// A cluster of two zones with a pod that has `spec`, and a NodePool with `requirement` beside its type.
fn scenario(release: &str, spec: &str, requirement: &str) -> Scenario {
    let place = Place::new();
    let cluster = format!(
        "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {{name: default}}
spec: {{amiSelectorTerms: [{{alias: al2023@latest}}], role: nodes}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: default}}
spec:
  disruption: {{consolidateAfter: 30s}}
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      requirements:
      - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
      - {{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}}
      {requirement}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      {spec}
      containers: [{{name: app, image: app, resources: {{requests: {{cpu: 500m, memory: 500Mi}}}}}}]
"
    );
    place.put("cluster.yaml", &cluster);
    let head = "name: labels\nregion: us-east-1\nduration: 20m\nmanifests: [cluster.yaml]\n";
    let rest = "cluster: {zones: [us-east-1a, us-east-1b]}
policies:
  - {name: karpenter, autoscaler: karpenter}
  - name: groups
    autoscaler: cluster-autoscaler
    nodeGroups: [{name: group, instanceType: m5.large, min: 0, max: 3, desired: 0}]
";
    place.put("scenario.yaml", &format!("{head}versions: {{karpenter: {release}}}\n{rest}"));
    nodecast::scenario::load(&place.path("scenario.yaml")).unwrap().0
}

fn simulate(scenario: &Scenario) -> Outcome {
    simulate_policy(scenario, 0)
}

fn simulate_policy(scenario: &Scenario, policy: usize) -> Outcome {
    run(scenario, &scenario.policies[policy], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
}

fn warnings(scenario: &Scenario) -> String {
    resolve(scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1).unwrap().warnings.texts().join("\n")
}

fn count(outcome: &Outcome, kind: EventKind) -> usize {
    outcome.record.events.iter().filter(|event| event.kind == kind).count()
}

const TENANCY: &str = "karpenter.k8s.aws/instance-tenancy";

#[test]
fn pod_selecting_launch_choices_gets_one_node() {
    let dedicated = format!("{TENANCY}: dedicated");
    let asked = ["topology.k8s.aws/zone-id: use1-az2", "karpenter.k8s.aws/instance-tenancy: default", &dedicated];
    for selector in asked {
        let outcome = simulate(&scenario("v1.13", &format!("nodeSelector: {{{selector}}}"), ""));
        assert_eq!(count(&outcome, EventKind::InstanceLaunched), 1, "{selector}");
        assert!(outcome.record.pods.iter().all(|pod| pod.ready.is_some()), "{selector}");
    }
}

#[test]
fn node_with_pool_tenancy_does_not_drift() {
    for (tenancy, billed_as_shared) in [("default", false), ("dedicated", true)] {
        let requirement = format!("- {{key: {TENANCY}, operator: In, values: [{tenancy}]}}");
        let scenario = scenario("v1.9", "", &requirement);
        let outcome = simulate(&scenario);
        assert_eq!(count(&outcome, EventKind::InstanceLaunched), 1, "{tenancy}");
        assert_eq!(count(&outcome, EventKind::NodeDrifted), 0, "{tenancy}");
        let said = warnings(&scenario)
            .contains("NodePool default asks for dedicated tenancy, which is billed at shared-tenancy prices");
        assert_eq!(said, billed_as_shared, "{tenancy}");
    }
}

#[test]
fn tenancy_is_not_supported_before_v1_9() {
    let outcome = simulate(&scenario("v1.8", &format!("nodeSelector: {{{TENANCY}: default}}"), ""));
    assert_eq!(count(&outcome, EventKind::InstanceLaunched), 0);
    let said = outcome.record.events.iter().find(|event| event.kind == EventKind::PodNotPlaced).unwrap();
    assert!(said.message.contains("label karpenter.k8s.aws/instance-tenancy is restricted"), "{}", said.message);

    let scenario = scenario("v1.8", "", &format!("- {{key: {TENANCY}, operator: In, values: [dedicated]}}"));
    let outcome = simulate(&scenario);
    assert_eq!((count(&outcome, EventKind::InstanceLaunched), count(&outcome, EventKind::NodeDrifted)), (1, 0));
    let warnings = warnings(&scenario);
    assert!(warnings.contains("which came with v1.9: it is left out"), "{warnings}");
    assert!(!warnings.contains("shared-tenancy"), "{warnings}");
}

#[test]
fn pod_naming_missing_node_triggers_no_launch() {
    let scenario = scenario("v1.13", "nodeName: ip-10-0-0-1.ec2.internal", "");
    for policy in 0..2 {
        let outcome = simulate_policy(&scenario, policy);
        assert_eq!(
            (outcome.record.nodes.len(), count(&outcome, EventKind::PodUnschedulable)),
            (0, 0),
            "policy {policy}"
        );
        assert_eq!(outcome.record.pods.iter().filter(|pod| pod.node.is_none()).count(), 1, "policy {policy}");
    }
    let warnings = warnings(&scenario);
    assert!(warnings.contains("1 pod template names a missing node"), "{warnings}");
    assert!(warnings.contains("`nodeName: ip-10-0-0-1.ec2.internal`"), "{warnings}");
}

//! NodePools with a fixed number of nodes (`replicas`) in a running simulation.

use nodecast::catalog::Catalog;
use nodecast::report::Summary;
use nodecast::simulation::{Outcome, run};
use nodecast::world::record::EventKind;

use crate::cli::Place;

const GATE: &str = "karpenter: { feature_gates: { static_capacity: true } }\n";

/// A static NodePool of these types.
fn static_pool(types: &str, replicas: u32) -> String {
    format!(
        "---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: fixed}}
spec:
  replicas: {replicas}
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      expireAfter: Never
      requirements:
        - {{key: node.kubernetes.io/instance-type, operator: In, values: [{types}]}}
        - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
"
    )
}

/// A DaemonSet of which each pod requests so much CPU.
fn daemon_set(cpu: &str) -> String {
    format!(
        "---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent, namespace: kube-system}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
  template:
    metadata: {{labels: {{app: agent}}}}
    spec:
      tolerations: [{{operator: Exists}}]
      containers: [{{name: own, image: own, resources: {{requests: {{cpu: {cpu}}}}}}}]
"
    )
}

fn simulate(manifests: &str, settings: &str) -> Outcome {
    let place = Place::new();
    let class = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
";
    place.put("cluster.yaml", &(class.to_owned() + manifests));
    let head = "name: fixed\nregion: us-east-1\nduration: 15m\nmanifests: [cluster.yaml]\n";
    place.put("scenario.yaml", &format!("{head}{GATE}{settings}"));
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
}

#[test]
fn static_claim_ignores_daemons_and_takes_cheapest_type() {
    let outcome = simulate(&(static_pool("c6i.xlarge, c6i.2xlarge", 2) + &daemon_set("5")), "");
    let kinds: Vec<&str> = outcome.record.nodes.iter().filter_map(|node| Some(node.instance_type?.as_str())).collect();
    assert_eq!(kinds, ["c6i.xlarge", "c6i.xlarge"]);
    let unscheduled = outcome.record.pods.iter().filter(|pod| pod.scheduled.is_none()).count();
    assert_eq!((outcome.record.pods.iter().count(), unscheduled), (2, 2), "the daemons do not fit, and wait");
    // Daemons that fit run.
    let outcome = simulate(&(static_pool("c6i.xlarge, c6i.2xlarge", 1) + &daemon_set("500m")), "");
    assert!(outcome.record.pods.iter().all(|pod| pod.scheduled.is_some()));
}

/// The type has no capacity for the first ten minutes.
fn without_capacity(settings: &str, replicas: u32) -> Outcome {
    let fault = "faults: [{ at: 0s, for: 10m, insufficient_capacity: { type: c6i.xlarge } }]\n";
    simulate(&static_pool("c6i.xlarge", replicas), &(fault.to_owned() + settings))
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn refused_static_claim_is_followed_by_next_claim() {
    for (settings, replicas) in [("", 1), ("", 3), ("controller_time: none\n", 2)] {
        let outcome = without_capacity(settings, replicas);
        let calls = outcome.record.events.iter().filter(|event| event.kind == EventKind::LaunchRequested);
        let failed_calls = calls.filter(|event| event.at.as_secs_f64() < 600.0).count() as u32;
        let summary = Summary::from_outcome(&outcome);
        let refused = summary.nodes.failed_without_call as u32;
        // EC2 is asked again when the three minutes of the last refusal are over, at most once for each missing node.
        assert!((2..=5 * replicas).contains(&failed_calls), "{failed_calls} calls");
        assert_eq!(summary.nodes.failed_launches as u32, refused + failed_calls);
        // A claim takes its launch and the second after its failure, and the next one follows at once.
        let each = f64::from(refused) / f64::from(replicas);
        assert!((480.0..=800.0).contains(&each), "{each} claims for each node");
        assert_eq!(summary.nodes.launches as u32, replicas);
        assert!(outcome.warnings.texts().iter().any(|text| text.contains("refused without a call to EC2")));
    }
}

//! DaemonSets whose pods request more than their templates say, since admission adds to them.

use nodecast::catalog::Catalog;
use nodecast::simulation::{Outcome, run};

use crate::cli::Place;

const CLASS: &str = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      expireAfter: Never
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [c6i.xlarge, c6i.2xlarge]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: Never}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: own, image: own, resources: {requests: {cpu: 2500m}}}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: shipper, namespace: logs}
spec:
  selector: {matchLabels: {app: shipper}}
  template:
    metadata: {labels: {app: shipper}, annotations: {sidecar.istio.io/proxyCPU: 2000m}}
    spec: {tolerations: [{operator: Exists}], containers: [{name: own, image: own, RESOURCES}]}
---
";
const RANGE: &str = "apiVersion: v1
kind: LimitRange
metadata: {name: defaults, namespace: logs}
spec: {limits: [{type: Container, defaultRequest: {cpu: 2000m}}]}
";
const MESH: &str = "apiVersion: v1
kind: Namespace
metadata: {name: logs, labels: {istio-injection: enabled}}
";

/// The run of a release where the DaemonSet states these resources and `more` exists.
fn simulate(release: &str, resources: &str, more: &str) -> Outcome {
    simulate_boots(release, resources, more, "al2023")
}

/// The same where nodes boot in this time.
fn simulate_boots(release: &str, resources: &str, more: &str, boot: &str) -> Outcome {
    let place = Place::new();
    place.put("cluster.yaml", &(CLASS.replace("RESOURCES", &format!("resources: {resources}")) + more));
    let head = "name: admission\nregion: us-east-1\nduration: 10m\nmanifests: [cluster.yaml]\n";
    let versions = format!("versions: {{karpenter: {release}, kubernetes: v1.30}}\n");
    place.put("scenario.yaml", &format!("{head}{versions}ec2: {{launch_latency: {boot}}}\n"));
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
}

/// Types of the nodes in the order of their claims, and whether the Deployment's pod runs at the end.
fn kinds(outcome: &Outcome) -> (Vec<&str>, bool) {
    let kinds = outcome.record.nodes.iter().filter_map(|node| Some(node.instance_type?.as_str())).collect();
    let runs = outcome.record.pods.iter().any(|pod| pod.name.starts_with("web") && pod.ready.is_some());
    (kinds, runs)
}

#[test]
fn first_claim_counts_template_without_admission() {
    for (more, what) in [(RANGE, "a LimitRange"), (MESH, "a mesh")] {
        let outcome = simulate("v1.12", "{}", more);
        let (kinds, runs) = kinds(&outcome);
        assert_eq!(kinds.first(), Some(&"c6i.xlarge"), "{what}");
        assert_eq!((kinds.last(), runs), (Some(&"c6i.2xlarge"), true), "{what}: {kinds:?}");
        assert!(kinds.len() <= 4, "{what}: the poll of each minute has found the pod: {kinds:?}");
    }
}

#[test]
fn second_claim_counts_pod_seen_by_poll() {
    // The pod of the first node comes 28 s and the time to register after the launch. The pass after it comes within ten seconds. Only a poll
    // of a full minute between the two has it counted at once; otherwise one more node is too small.
    for (register, expected) in [("3s", 3), ("24s", 2), ("45s", 3)] {
        let boot = format!("{{spread: false, register: {register}}}");
        let outcome = simulate_boots("v1.11", "{}", RANGE, &boot);
        let (kinds, runs) = kinds(&outcome);
        assert_eq!((kinds.len(), kinds.last(), runs), (expected, Some(&"c6i.2xlarge"), true), "{register}: {kinds:?}");
    }
}

#[test]
fn releases_that_read_templates_never_learn() {
    let outcome = simulate("v0.24", "{}", RANGE);
    let (kinds, runs) = kinds(&outcome);
    assert!(kinds.len() > 4 && kinds.iter().all(|kind| *kind == "c6i.xlarge") && !runs, "{kinds:?}");
}

#[test]
fn stated_requests_and_limits_count_from_first_claim() {
    for resources in ["{requests: {cpu: 2000m}}", "{limits: {cpu: 2000m}}"] {
        for release in ["v0.24", "v1.7", "v1.13"] {
            let outcome = simulate(release, resources, "");
            assert_eq!(kinds(&outcome), (vec!["c6i.2xlarge"], true), "{release} {resources}");
        }
    }
}

//! A dense Deployment that waits for its NodePool, as upstream's scale suite has it.
//!
//! Source: AWS provider `test/suites/scale/provisioning_test.go`, pod-dense.

use nodecast::catalog::Catalog;
use nodecast::simulation::run;

use crate::cli::Place;

const POOL: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: dense}
spec:
  disruption: {consolidateAfter: Never}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: dense}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m7i.large]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: dense}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes, kubelet: {maxPods: 91}}
";

const PODS: &str = "apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: agent, image: agent, resources: {requests: {cpu: 30m}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: dense}
spec:
  replicas: 810
  selector: {matchLabels: {app: dense}}
  template:
    metadata: {labels: {app: dense}}
    spec:
      containers: [{name: dense, image: dense, resources: {requests: {cpu: 10m, memory: 40Mi}}}]
";

#[test]
fn waiting_pods_fill_exactly_their_nodes() {
    let place = Place::new();
    place.put("pool.yaml", POOL);
    place.put("pods.yaml", PODS);
    let ec2 = "ec2: {failures: none, capacity: infinite, quotas: {standard: 1000}}\nmanifests: [pods.yaml]\n";
    let pool = "timeline: [{at: 4m, manifests: [pool.yaml]}]\n";
    place.put("scenario.yaml", &format!("name: dense\nregion: us-west-2\nduration: 8m\n{ec2}{pool}"));
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    let outcome = run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap();
    // 91 pods fit a node, one of which is the DaemonSet's: 810 = 9 x 90. The scheduler may fill a node before the pod of the DaemonSet comes.
    assert!(outcome.record.pods.iter().filter(|pod| pod.scheduled.is_some()).count() >= 810);
    assert_eq!(outcome.record.nodes.len(), 9);
}

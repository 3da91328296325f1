//! Commands of drift that count on the same free node.

use nodecast::catalog::Catalog;
use nodecast::simulation::{Outcome, run};

use crate::cli::Place;

/// A NodePool whose nodes have this label, and six replicas that each want a node of their own.
fn objects(label: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: default}}
spec:
  template:
    metadata: {{labels: {{generation: {label}}}}}
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      expireAfter: Never
      requirements:
        - {{key: node.kubernetes.io/instance-type, operator: In, values: [c6i.large]}}
        - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
  disruption: {{consolidationPolicy: WhenEmpty, consolidateAfter: 10m, budgets: [{{nodes: \"100%\"}}]}}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {{name: default}}
spec: {{amiSelectorTerms: [{{alias: al2023@latest}}], role: nodes}}
"
    )
}

const WEB: &str = "---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: own, image: own, resources: {requests: {cpu: 700m}}}]
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - {labelSelector: {matchLabels: {app: web}}, topologyKey: kubernetes.io/hostname}
";

fn simulate(seed: u64, settings: &str) -> Outcome {
    let place = Place::new();
    place.put("cluster.yaml", &(objects("one") + WEB));
    place.put("later.yaml", &objects("two"));
    let head = "name: booked\nregion: us-east-1\nduration: 25m\nmanifests: [cluster.yaml]\n";
    let change = "timeline:\n  - { at: 5m, manifests: [later.yaml] }\n";
    place.put("scenario.yaml", &format!("{head}{settings}{change}"));
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), seed, &mut |_| {}).unwrap()
}

/// The most nodes whose deletion was asked for within a second of each other.
fn most_at_once(outcome: &Outcome) -> usize {
    let mut ends: Vec<f64> =
        outcome.record.nodes.iter().filter_map(|node| Some(node.deletion_requested?.as_secs_f64())).collect();
    ends.sort_by(f64::total_cmp);
    let within = |from: f64| ends.iter().filter(|end| (from..from + 1.0).contains(*end)).count();
    ends.iter().map(|&from| within(from)).max().unwrap_or(0)
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn drift_commands_rarely_book_one_node_twice() {
    let most: Vec<usize> = (1..=12).map(|seed| most_at_once(&simulate(seed, ""))).collect();
    assert!(most.iter().all(|&nodes| nodes <= 3), "{most:?}");
    // All of the nodes have drifted, and are replaced.
    let outcome = simulate(1, "");
    assert!(outcome.record.nodes.iter().filter(|node| node.deletion_requested.is_some()).count() >= 6);
}

#[test]
fn eviction_follows_deletion_of_claim_by_a_moment() {
    for (settings, least, most) in [("", 0.099, 0.2), ("controller_time: none\n", 0.0, 0.001)] {
        let outcome = simulate(3, settings);
        let evicted = outcome.record.pods.iter().filter(|pod| pod.evicted);
        let gaps: Vec<f64> = evicted
            .filter_map(|pod| {
                let node = &outcome.record.nodes[pod.node?.index()];
                Some((pod.deletion_requested? - node.deletion_requested?).as_secs_f64())
            })
            .collect();
        assert!(gaps.len() >= 6 && gaps.iter().all(|gap| (least..=most).contains(gap)), "{settings}: {gaps:?}");
    }
}

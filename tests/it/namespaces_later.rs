//! Labels of namespaces that a timeline changes: terms of pod affinity select by them as they are then.

use nodecast::catalog::Catalog;
use nodecast::scenario::error::Render;
use nodecast::simulation::{Outcome, run};

use crate::cli::Place;
use crate::pool_changes::pool;

fn namespace(team: &str) -> String {
    format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, labels: {{team: {team}}}}}\n")
}

/// Pods that are on no node with another of a namespace of team a.
const WEB: &str = "---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {pool: general}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: kubernetes.io/hostname
            labelSelector: {matchLabels: {app: web}}
            namespaceSelector: {matchLabels: {team: a}}
      containers: [{name: own, image: own, resources: {requests: {cpu: 100m, memory: 64Mi}}}]
";

const CLASS: &str = "---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
";

/// Two pods come after five minutes and three after twenty; at ten minutes the namespace is applied again with the label of team `later`.
fn simulate(first: &str, later: &str, more: &str) -> Outcome {
    let place = Place::new();
    place.put("cluster.yaml", &format!("{CLASS}{}{}{WEB}", pool("general", "m5", "0"), namespace(first)));
    place.put("later.yaml", &namespace(later));
    let text = "name: labels\nregion: us-east-1\nduration: 1h\ncluster: { zones: [us-east-1a] }\n\
                manifests: [cluster.yaml]\nec2: { capacity: infinite }\ntimeline:\n\
                - { at: 5m, scale: { workload: shop/web, replicas: 2 } }\n\
                - { at: 10m, manifests: [later.yaml] }\n\
                - { at: 20m, scale: { workload: shop/web, replicas: 5 } }\n";
    place.put("scenario.yaml", &format!("{text}{more}\n"));
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).map_err(|error| error.render()).unwrap();
    run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
}

/// How many pods each node has at the end, the fullest first, and how many wait.
fn places(outcome: &Outcome) -> (Vec<u32>, usize) {
    let mut counts = vec![0; outcome.record.nodes.len()];
    let placed = outcome.record.pods.iter().filter_map(|pod| pod.node);
    placed.for_each(|node| counts[node.index()] += 1);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    (counts, outcome.record.pods.iter().filter(|pod| pod.node.is_none()).count())
}

fn group(min: u32, max: u32) -> String {
    format!(
        "nodeGroups: [{{ name: own, instanceType: m5.xlarge, min: {min}, desired: {min}, max: {max}, labels: {{ pool: general }} }}]\n"
    )
}

#[test]
fn scheduler_uses_current_namespace_labels() {
    let more = group(3, 3) + "policies: [{ name: fixed, autoscaler: none }]";
    let becomes_own = simulate("b", "a", &more);
    let (counts, waiting) = places(&becomes_own);
    // Two spread by default, and each of the others keeps away from all.
    assert_eq!((counts, waiting), (vec![1, 1, 1], 2));
    assert!(becomes_own.record.events.iter().any(|event| event.message == "Namespace shop"));
    let stays = simulate("b", "b", &more);
    assert_eq!(places(&stays).1, 0);
    assert!(stays.record.events.iter().all(|event| event.message != "Namespace shop"), "nothing has changed");
    assert_eq!(places(&simulate("a", "b", &more)).1, 0, "nobody keeps away any longer");
}

#[test]
fn autoscalers_use_current_namespace_labels() {
    let grows = group(1, 9) + "policies: [{ name: ca, autoscaler: cluster-autoscaler }]";
    let karpenter = "policies: [{ name: karpenter, autoscaler: karpenter }]";
    for more in [grows.as_str(), karpenter] {
        let (counts, waiting) = places(&simulate("b", "b", more));
        assert_eq!((counts.as_slice(), waiting), (&[5][..], 0), "{more}");
        let (counts, waiting) = places(&simulate("a", "a", more));
        assert_eq!((counts.len(), waiting), (5, 0), "{more}");
        // Two are together, and none comes to them.
        let (counts, waiting) = places(&simulate("b", "a", more));
        assert_eq!((counts.as_slice(), waiting), (&[2, 1, 1, 1][..], 0), "{more}");
    }
}

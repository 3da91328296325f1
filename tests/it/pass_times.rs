//! Where the search of consolidation ends when its time is up, in a whole run.

use nodecast_karpenter::disruption::Obstacle;

use crate::reserved_capacity::run_file;

/// Ninety full nodes, and three thousand pods that no instance type is large enough for: each question about one node packs all of them, which
/// takes the real program several seconds.
#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn single_node_search_ends_after_three_minutes() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    let pool = |name: &str, requirements: &str| {
        format!(
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: {name}}}\nspec:\n  template:\n    spec:\n      \
             nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}\n      requirements: [{requirements}]\n  \
             disruption: {{consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s}}\n---\n"
        )
    };
    let workload = |name: &str, pool: &str, replicas: u32, cpu: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: {replicas}\n  selector: {{matchLabels: \
             {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      nodeSelector: \
             {{karpenter.sh/nodepool: {pool}}}\n      containers: [{{name: app, image: app, resources: {{requests: {{cpu: {cpu}}}}}}}]\n"
        )
    };
    let small = "{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}, \
                 {key: node.kubernetes.io/instance-type, operator: In, values: [c6i.large]}";
    let class = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec:\n  \
                 amiSelectorTerms: [{alias: al2023@latest}]\n  role: node\n---\n";
    write("full.yaml", &(pool("small", small) + &pool("any", "") + class + &workload("full", "small", 90, "1500m")));
    write("large.yaml", &workload("large", "any", 3_000, "900"));
    write(
        "scenario.yaml",
        "name: search\nregion: us-east-1\nduration: 140s\ncontroller_time: none\nversions: {karpenter: v1.13}\n\
         cluster: {zones: [us-east-1a]}\nmanifests: [full.yaml]\ntimeline: [{at: 60s, manifests: [large.yaml]}]\nec2: {failures: none}\n",
    );
    let outcome = run_file(&directory.path().join("scenario.yaml"));
    assert_eq!(outcome.record.nodes.len(), 90);
    let dear = outcome.record.obstacles.met().find(|(obstacle, ..)| *obstacle == Obstacle::NotCheaper);
    let looked_at = dear.map_or(0, |(_, _, nodes)| nodes);
    assert!((5..45).contains(&looked_at), "{looked_at} of 90 nodes");
}

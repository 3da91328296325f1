//! What the disruption loop keeps of its looks holds for as long as it is used. Builds with debug assertions, as tests are, look
//! again and compare.

use crate::keda::deployment;
use crate::reserved_capacity::run_file;

/// Three nodes that nothing can take the place of, of which the budget lets one go at a time. The first holds two pods, so that
/// it costs most to disturb at first and least from the thirty-third minute on, when less of its life is left than of the others'.
#[test]
fn single_node_cache_ignores_candidate_order() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write(
        "pool.yaml",
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\nspec:\n  template:\n    spec:\n      \
         expireAfter: 1h\n      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n      requirements:\n      \
         - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}\n      \
         - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}\n  \
         disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s, budgets: [{nodes: \"1\"}]}\n---\n\
         apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec:\n  \
         amiSelectorTerms: [{alias: al2023@latest}]\n  role: node\n",
    );
    let of_cpu = |name: &str, replicas: u32, cpu: &str| deployment(name, replicas).replace("cpu: 100m", cpu);
    write("two.yaml", &of_cpu("two", 2, "cpu: 900m").replacen("---\n", "", 1));
    write("one.yaml", &of_cpu("one", 1, "cpu: 1500m").replacen("---\n", "", 1));
    write("other.yaml", &of_cpu("other", 1, "cpu: 1600m").replacen("---\n", "", 1));
    write(
        "scenario.yaml",
        "name: kept\nregion: us-east-1\nduration: 50m\nversions: {karpenter: v1.13}\ncluster: {zones: [us-east-1a]}\n\
         manifests: [pool.yaml, two.yaml]\ntimeline:\n- {at: 20m, manifests: [one.yaml]}\n- {at: 22m, manifests: [other.yaml]}\n\
         ec2: {failures: none}\n",
    );
    let outcome = run_file(&directory.path().join("scenario.yaml"));
    assert_eq!(outcome.record.nodes.len(), 3);
    let looks: u64 = outcome.record.obstacles.met().map(|(_, looks, _)| looks).sum();
    assert!(looks > 20, "the loop looked all the while: {looks}");
}

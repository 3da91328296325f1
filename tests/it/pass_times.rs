//! How long upstream takes for a scheduling pass, by the model and as it was measured: the rows that are quickly packed here.
//! `docs/reliability.md` has them all.

use agreement::passes;
use nodecast::domain::SimDuration;
use nodecast_karpenter::controller_time;
use nodecast_karpenter::disruption::Obstacle;

use crate::reserved_capacity::run_file;

#[test]
fn passes_of_up_to_five_thousand_pods_take_what_was_measured() {
    let quick = ["plain-1k", "plain-5k", "mixed-1k", "mixed-5k", "mix-1", "mix-50", "mix-1000", "ignored"];
    for row in passes::ROWS.iter().filter(|row| quick.contains(&row.name)) {
        let work = row.work().unwrap();
        let ratio = controller_time::solve(&work).as_secs_f64() / row.measured;
        assert!((1.0 / row.within..=row.within).contains(&ratio), "{}: {ratio}", row.name);
    }
}

#[test]
fn a_pass_whose_time_is_up_keeps_what_it_has_and_says_nothing_of_the_rest() {
    let row = passes::ROWS.iter().find(|row| row.name == "plain-5k").unwrap();
    let second = SimDuration::from_secs(1);
    let cut = row.plan(Some(second)).unwrap();
    let placed: usize = cut.claims.iter().map(|claim| claim.pods.len()).sum();
    assert_eq!((placed + cut.unreached.len(), cut.unschedulable.len()), (5_000, 0));
    assert!(placed > 200 && placed < 4_000, "{placed} pods are placed in a second");
    let took = controller_time::solve(&cut.work);
    assert!(took >= second && took < second + SimDuration::from_millis(100), "{took:?}");
    let whole = row.plan(Some(SimDuration::from_secs(60))).unwrap();
    assert!(whole.unreached.is_empty(), "a minute is enough for five thousand pods");
}

/// Ninety full nodes, and three thousand pods that no instance type is large enough for: each question about one node packs all of them, which
/// takes the real program several seconds.
#[test]
fn search_ends_after_three_minutes_where_controllers_take_no_time() {
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

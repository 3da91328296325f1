//! NodePools that change during a run, as `kubectl apply` has it.

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime};
use nodecast::scenario::Scenario;
use nodecast::simulation::{Outcome, run};
use nodecast::world::record::EventKind;

use crate::cli::Place;

/// A NodePool of these families, of which so many nodes may be disrupted at once; pods ask for it by the label.
pub(crate) fn pool(name: &str, families: &str, budget: &str) -> String {
    format!(
        "---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: {name}}}
spec:
  template:
    metadata: {{labels: {{pool: {name}}}}}
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      expireAfter: Never
      requirements:
        - {{key: karpenter.k8s.aws/instance-family, operator: In, values: [{families}]}}
        - {{key: karpenter.k8s.aws/instance-size, operator: In, values: [xlarge]}}
        - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 1m
    budgets: [{{nodes: \"{budget}\"}}]
"
    )
}

pub(crate) fn deployment(name: &str, replicas: u32, pool: &str) -> String {
    format!(
        "---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: shop}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      nodeSelector: {{pool: {pool}}}
      containers: [{{name: own, image: own, resources: {{requests: {{cpu: 900m, memory: 1Gi}}}}}}]
"
    )
}

fn simulate(manifests: &str, later: &str, at: &str, duration: &str) -> Outcome {
    let place = Place::new();
    let class = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
";
    place.put("cluster.yaml", &(class.to_owned() + manifests));
    place.put("later.yaml", later);
    place.put(
        "scenario.yaml",
        &format!(
            "name: change\nregion: us-east-1\nduration: {duration}\nmanifests: [cluster.yaml]\ntimeline:\n  - {{ at: {at}, manifests: [later.yaml] }}\n"
        ),
    );
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
}

/// The families of the nodes that are there at the end.
fn families(outcome: &Outcome) -> Vec<&str> {
    let there = outcome.record.nodes.iter().filter(|node| node.terminating.is_none());
    let mut families: Vec<&str> = there.filter_map(|node| node.instance_type?.as_str().split('.').next()).collect();
    families.dedup();
    families
}

fn count(outcome: &Outcome, kind: EventKind) -> usize {
    outcome.record.events.iter().filter(|event| event.kind == kind).count()
}

/// The most nodes that were on their way out at one instant, from the taint of their command on.
fn most_leaving(outcome: &Outcome) -> usize {
    let tainted = outcome.record.events.iter().filter(|event| event.kind == EventKind::NodeTainted);
    // A claim may be gone while its instance shuts down.
    let span = |at: SimTime, node: usize| Some((at, outcome.record.nodes[node].terminating?));
    let spans: Vec<_> = tainted.filter_map(|event| span(event.at, event.node?.index())).collect();
    let together = |from: SimTime| spans.iter().filter(|&&(begin, end)| begin <= from && from < end).count();
    spans.iter().map(|&(from, _)| together(from)).max().unwrap_or(0)
}

#[test]
fn narrowed_pool_drifts_within_its_budget() {
    let manifests = pool("general", "m5", "2") + &deployment("web", 40, "general");
    let outcome = simulate(&manifests, &pool("general", "m6i", "2"), "2h", "6h");
    let two_hours = SimTime::ZERO + SimDuration::from_secs(7_200);
    let nodes = &outcome.record.nodes;
    let of = |family: &str| {
        nodes.iter().filter(|node| node.instance_type.is_some_and(|kind| kind.as_str().starts_with(family))).count()
    };
    assert_eq!((of("m5."), of("m6i.")), (10, 10), "each is replaced once");
    assert!(nodes.iter().filter_map(|node| node.deletion_requested).all(|at| at >= two_hours));
    assert_eq!(count(&outcome, EventKind::NodeDrifted), 10);
    assert_eq!(most_leaving(&outcome), 2, "as many at once as the budget lets go");
    assert_eq!(families(&outcome), ["m6i"]);
    let last = nodes.iter().filter_map(|node| node.terminated).max().unwrap();
    assert!(last < SimTime::ZERO + SimDuration::from_secs(4 * 3_600), "settled at {last}");
    assert!(outcome.record.pods.iter().all(|pod| pod.scheduled.is_some()));
}

#[test]
fn later_pool_takes_waiting_pods() {
    let manifests = pool("general", "m5", "1") + &deployment("web", 4, "general") + &deployment("batch", 4, "batch");
    let outcome = simulate(&manifests, &pool("batch", "c6i", "1"), "30m", "1h");
    let half_an_hour = SimTime::ZERO + SimDuration::from_secs(1_800);
    let of_batch = |name: &str| name.starts_with("batch-");
    let bound: Vec<SimTime> =
        outcome.record.pods.iter().filter(|pod| of_batch(&pod.name)).filter_map(|pod| pod.scheduled).collect();
    assert_eq!(bound.len(), 4);
    assert!(bound.iter().all(|&at| at > half_an_hour && at < half_an_hour + SimDuration::from_secs(180)), "{bound:?}");
    assert!(outcome.warnings.iter().all(|warning| !warning.contains("NodePool")), "{:?}", outcome.warnings);
}

#[test]
fn changed_limit_and_weight_apply_to_later_launches() {
    let weighted = |weight: u32, cpu: u32, name: &str, family: &str| {
        pool(name, family, "0")
            .replace("spec:\n  template:", &format!("spec:\n  weight: {weight}\n  limits: {{cpu: {cpu}}}\n  template:"))
            .replace("pool: first", "pool: any")
            .replace("pool: second", "pool: any")
    };
    let manifests = weighted(10, 100, "first", "m5") + &weighted(1, 100, "second", "c5") + &deployment("web", 4, "any");
    let later = weighted(10, 4, "first", "m5") + &deployment("web", 8, "any");
    let outcome = simulate(&manifests, &later, "30m", "1h");
    assert_eq!(families(&outcome), ["m5", "c5"], "{:?}", outcome.warnings);
}

#[test]
fn switching_static_pool_mode_is_rejected() {
    let plain = pool("web", "m5", "1");
    let fixed = plain.replace("spec:\n  template:", "spec:\n  replicas: 2\n  template:");
    let load = |before: &str, later: &str, steps: &str| {
        let place = Place::new();
        place.put("cluster.yaml", before);
        place.put("later.yaml", later);
        let text = format!(
            "name: change\nregion: us-east-1\nduration: 2h\ncluster: {{ zones: [us-east-1a] }}\nmanifests: [cluster.yaml]\n\
             timeline:\n{steps}  - {{ at: 30m, manifests: [later.yaml] }}\n"
        );
        place.put("scenario.yaml", &text);
        nodecast::scenario::load(&place.path("scenario.yaml")).err().map(|error| error.to_string())
    };
    assert!(load(&plain, &fixed, "").unwrap().contains("is given `replicas`"));
    assert!(load(&fixed, &plain, "").unwrap().contains("loses its `replicas`"));
    assert_eq!(load(&fixed, &fixed.replace("replicas: 2", "replicas: 3"), ""), None);
    let deleted = "  - { at: 20m, delete: { kind: NodePool, name: web } }\n";
    assert_eq!(load(&plain, &fixed, deleted), None);
}

/// A scenario whose only NodePool comes after ten minutes; what is wrong with it, if anything.
fn with_late_pool(policies: &str, pool: &str) -> Result<Scenario, String> {
    let place = Place::new();
    place.put("cluster.yaml", &deployment("web", 5, "late"));
    place.put("late.yaml", pool);
    let steps = if pool.is_empty() { "" } else { "timeline: [{ at: 10m, manifests: [late.yaml] }]\n" };
    place.put(
        "scenario.yaml",
        &format!("name: late\nregion: us-east-1\nduration: 30m\nmanifests: [cluster.yaml]\n{steps}{policies}"),
    );
    nodecast::scenario::load(&place.path("scenario.yaml"))
        .map(|(scenario, _)| scenario)
        .map_err(|error| error.to_string())
}

#[test]
fn first_node_pool_may_come_by_the_timeline() {
    // With a policy that says so, and with none, where the objects imply it.
    for policies in ["policies: [{ name: own, autoscaler: karpenter }]\n", ""] {
        let scenario = with_late_pool(policies, &pool("late", "m5", "100%")).unwrap();
        let outcome = run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap();
        let nodes = &outcome.record.nodes;
        let ten = SimTime::ZERO + SimDuration::from_secs(600);
        assert!(!nodes.is_empty() && nodes.iter().all(|node| node.requested >= ten), "{}", nodes.len());
        let pods = outcome.record.pods.iter();
        assert!(pods.map(|pod| pod.scheduled).all(|at| at.is_some_and(|at| at < ten + SimDuration::from_secs(120))));
    }
}

#[test]
fn karpenter_without_any_node_pool_is_refused() {
    let karpenter = "policies: [{ name: own, autoscaler: karpenter }]\n";
    assert!(with_late_pool(karpenter, "").unwrap_err().contains("has no NodePool and no Provisioner"));
    let budget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web, namespace: shop}\n\
                  spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}\n";
    assert!(with_late_pool(karpenter, budget).unwrap_err().contains("has no NodePool and no Provisioner"));
    // Nobody looks at a NodePool of the timeline under a policy that launches nothing.
    let fixed = with_late_pool("policies: [{ name: own, autoscaler: static }]\n", &pool("late", "m5", "100%")).unwrap();
    let outcome = run(&fixed, &fixed.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap();
    assert!(outcome.warnings.iter().any(|warning| warning.contains("NodePools are ignored")));
}

//! What `nodecast explain` says of a pod: which NodePools refused it and why, and what was launched for it.

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime};
use nodecast::explain::presentation::{text, text_within};
use nodecast::explain::{Explanation, PodExplanation, Subject, explain};
use nodecast::scenario::error::Render;

use crate::cli::assert_fits;

const SCENARIO: &str = "name: test\nregion: us-east-1\nduration: 10m\nseed: 3\nmanifests: [manifests.yaml]\n\
                        cluster: {zones: [us-east-1a]}\npolicies: [{name: only, autoscaler: karpenter}]\n";

fn pool(name: &str, weight: u32, requirements: &str, rest: &str) -> String {
    format!(
        "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: {name}}}\nspec:\n  weight: {weight}\n  template:\n    \
         spec:\n      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}\n      {rest}\n      \
         requirements: [{{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}, {requirements}]\n"
    )
}

fn bare_pod(name: &str, cpu: &str, rest: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  {rest}\n  \
         containers: [{{name: app, image: app, resources: {{requests: {{cpu: {cpu}}}}}}}]\n"
    )
}

fn explained(pod: &str, at: Option<i64>) -> (Explanation, PodExplanation) {
    let directory = tempfile::tempdir().unwrap();
    let types = |names: &str| format!("{{key: node.kubernetes.io/instance-type, operator: In, values: [{names}]}}");
    let manifests = [
        pool("first", 9, &types("m5.large, m5.xlarge, m6g.large"), ""),
        pool("tainted", 5, &types("m5.4xlarge"), "taints: [{key: team, value: a, effect: NoSchedule}]"),
        bare_pod("small", "1500m", "nodeSelector: {kubernetes.io/arch: amd64}"),
        bare_pod("large", "8", ""),
    ]
    .concat();
    std::fs::write(directory.path().join("scenario.yaml"), SCENARIO).unwrap();
    std::fs::write(directory.path().join("manifests.yaml"), manifests).unwrap();
    let loaded = nodecast::scenario::load(&directory.path().join("scenario.yaml"));
    let scenario = loaded.unwrap_or_else(|error| panic!("{}", error.render())).0;
    let policy = scenario.for_policy(None).unwrap();
    let at = at.map(|seconds| SimTime::ZERO + SimDuration::from_secs(seconds));
    let subject = Subject::Pod { name: pod.to_owned(), at };
    let answer = explain(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &subject).unwrap();
    let pod = answer.pod.clone().unwrap();
    (answer, pod)
}

#[test]
fn explain_shows_pool_blockers_of_pending_pod() {
    for at in [Some(60), None] {
        let (answer, pod) = explained("large", at);
        assert_eq!((pod.node, pod.claimed_at_seconds), (None, None));
        let pools: Vec<(&str, bool)> = pod.node_pools.iter().map(|pool| (pool.node_pool, pool.usable)).collect();
        assert_eq!(pools, [("first", false), ("tainted", false)]);
        // The types that the pool leaves out are the others.
        let [others, short] = pod.node_pools[0].types_refused.as_slice() else { panic!("{:?}", pod.node_pools[0]) };
        assert!(others.reason.contains("node.kubernetes.io/instance-type"), "{}", others.reason);
        assert_eq!((short.types, &*short.reason, short.nearest), (3, "not enough cpu", "m5.xlarge"));
        assert!(pod.node_pools[1].reason.as_ref().is_some_and(|why| why.contains("team")), "{:?}", pod.node_pools[1]);
        let shown = text(&answer);
        for part in ["first: not usable", "3 types: not enough cpu; closest is m5.xlarge, with", "tainted: not usable"]
        {
            assert!(shown.contains(part), "`{part}` is missing in\n{shown}");
        }
        assert_fits(&shown, &text_within(&answer, Some(60)), 60);
    }
}

#[test]
fn explain_pod_works_without_nodes() {
    // Seconds after the start nothing is launched yet, and kube-scheduler has no node to say anything of.
    let (answer, pod) = explained("small", Some(1));
    assert!(pod.waits && pod.node.is_none() && pod.kube_scheduler.is_empty(), "{pod:?}");
    let shown = text(&answer);
    assert!(shown.contains(" is pending at 1 s"), "{shown}");
    let (answer, pod) = explained("small", None);
    assert!(!pod.waits && text(&answer).contains(" was scheduled to "), "{pod:?}");
}

#[test]
fn explain_shows_types_excluded_from_claim() {
    let (answer, pod) = explained("small", None);
    assert!(pod.node.is_some());
    let bound = answer.at_seconds;
    assert!(pod.claimed_at_seconds.is_some_and(|at| at < 20.0 && at < bound), "{:?}", pod.claimed_at_seconds);
    let [first] = pod.node_pools.as_slice() else { panic!("the second is not asked: {:?}", pod.node_pools) };
    assert_eq!((first.usable, first.types_usable, first.cheapest), (true, 2, Some("m5.large")));
    let by_architecture =
        first.types_refused.iter().find(|group| group.reason == "does not meet kubernetes.io/arch In [amd64]");
    assert!(by_architecture.is_some_and(|group| group.types > 100), "{:?}", first.types_refused);
    let shown = text(&answer);
    assert!(shown.contains("a new node from NodePool first would be launched for it: m5.large"), "{shown}");
}

#[test]
fn reused_pod_name_means_pod_at_that_time() {
    let directory = tempfile::tempdir().unwrap();
    let set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  replicas: 1\n  serviceName: db\n  \
               selector: {matchLabels: {app: db}}\n  template:\n    metadata: {labels: {app: db}}\n    spec:\n      \
               containers: [{name: app, image: app, resources: {requests: {cpu: 100m}}}]\n";
    let steps = "timeline: [{at: 2m, scale: {workload: default/db, replicas: 0}}, {at: 5m, scale: {workload: default/db, replicas: 1}}]\n";
    let types = pool("first", 9, "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}", "");
    std::fs::write(directory.path().join("scenario.yaml"), format!("{SCENARIO}{steps}")).unwrap();
    std::fs::write(directory.path().join("manifests.yaml"), format!("{set}{types}")).unwrap();
    let loaded = nodecast::scenario::load(&directory.path().join("scenario.yaml"));
    let scenario = loaded.unwrap_or_else(|error| panic!("{}", error.render())).0;
    let policy = scenario.for_policy(None).unwrap();
    let ask = |seconds: Option<i64>| {
        let at = seconds.map(|seconds| SimTime::ZERO + SimDuration::from_secs(seconds));
        let subject = Subject::Pod { name: "default/db-0".to_owned(), at };
        let answer = explain(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &subject).unwrap();
        answer.pod.unwrap().events.first().map(|event| event.at_seconds).unwrap()
    };
    // Of the moments between the two the last one before is meant.
    assert!(ask(Some(100)) < 10.0 && ask(Some(240)) < 10.0);
    for later in [Some(400), None] {
        assert!((300.0..310.0).contains(&ask(later)));
    }
}

#[test]
fn ambiguous_pod_name_needs_namespace() {
    let directory = tempfile::tempdir().unwrap();
    let types = "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}";
    let of = |namespace: &str| {
        bare_pod("small", "100m", "").replace("name: small", &format!("name: small, namespace: {namespace}"))
    };
    let manifests = [pool("first", 9, types, ""), of("blue"), of("red")].concat();
    std::fs::write(directory.path().join("scenario.yaml"), SCENARIO).unwrap();
    std::fs::write(directory.path().join("manifests.yaml"), manifests).unwrap();
    let loaded = nodecast::scenario::load(&directory.path().join("scenario.yaml"));
    let scenario = loaded.unwrap_or_else(|error| panic!("{}", error.render())).0;
    let policy = scenario.for_policy(None).unwrap();
    let asked = |name: &str| {
        let subject = Subject::Pod { name: name.to_owned(), at: None };
        explain(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &subject)
    };
    let refused = asked("small").unwrap_err();
    assert_eq!(refused.to_string(), "the run has a pod `small` in several namespaces");
    let help = miette::Diagnostic::help(&refused).unwrap().to_string();
    assert_eq!(help, "add the namespace; candidates: `blue/small`, `red/small`");
    assert!(asked("red/small").is_ok());
}

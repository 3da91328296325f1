//! `nodecast explain` of what a run begins with: every pod and node of a dump can be asked about at every time.

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime};
use nodecast::explain::presentation::text;
use nodecast::explain::{ExplainError, Explanation, Subject, explain};

use super::{DAEMONS, NODE_GROUP, OF_GROUP, OF_POOL, POOL, cluster, deployment, node, pod};
use crate::cli::Place;

const JOB: &str = "---
apiVersion: batch/v1
kind: Job
metadata: {name: import, namespace: shop}
spec: {parallelism: 2, completions: 2, template: {spec: {restartPolicy: Never, containers: [{name: own, image: own, resources: {requests: {cpu: 100m}}}]}}}
";
const ON_FARGATE: &str = "eks.amazonaws.com/compute-type: fargate";
const PROFILE: &str =
    "fargate: { profiles: [{ name: serverless, selectors: [{ namespace: shop, labels: { app: small } }] }] }\n";

/// Two half-empty nodes of a NodePool, a node of a group, a machine of Fargate, and pods of all kinds on them.
fn mixed() -> Place {
    let dump = [
        node("n1", OF_POOL, 3),
        node("n2", OF_POOL, 3),
        node("s1", OF_GROUP, 20),
        node("fargate-1", ON_FARGATE, 2),
        pod("web-5c4-b", "n1", Some(("ReplicaSet", "web-5c4")), 250),
        pod("web-5c4-c", "n2", Some(("ReplicaSet", "web-5c4")), 1_250),
        pod("import-x", "s1", Some(("Job", "import")), 100),
        pod("agent-n1", "n1", Some(("DaemonSet", "agent")), 100).replace("namespace: shop", "namespace: kube-system"),
        pod("by-hand", "s1", None, 100),
        pod("small-1", "fargate-1", Some(("ReplicaSet", "small-7d9")), 100).replace(
            "  namespace: shop\n",
            "  namespace: shop\n  labels: {app: small, eks.amazonaws.com/fargate-profile: serverless}\n",
        ),
    ]
    .concat();
    let manifests = POOL.to_owned() + DAEMONS + JOB + &deployment("web", 3) + &deployment("small", 1);
    let more = format!(
        "{NODE_GROUP}{PROFILE}workloads: [{{ name: shop/import, run_time: 5m }}]\n\
         timeline: [{{ at: 12m, scale: {{ workload: shop/web, replicas: 1 }} }}, {{ at: 14m, scale: {{ workload: shop/web, replicas: 9 }} }}]\n\
         policies: [{{ name: karpenter, autoscaler: karpenter }}, {{ name: groups, autoscaler: cluster-autoscaler }}]\n"
    );
    let place = cluster(&manifests, &dump, &more);
    let text = std::fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put("scenario.yaml", &text.replace("duration: 1h", "duration: 25m"));
    place
}

fn ask(place: &Place, policy: &str, subject: &Subject) -> Result<Explanation, ExplainError> {
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    let policy = scenario.for_policy(Some(policy)).unwrap();
    explain(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed, subject)
}

fn told(place: &Place, policy: &str, name: &str, minutes: Option<i64>) -> Explanation {
    let at = minutes.map(|minutes| SimTime::ZERO + SimDuration::from_secs(60 * minutes));
    ask(place, policy, &Subject::Pod { name: name.to_owned(), at }).unwrap()
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn pods_of_a_dump_are_explained() {
    let place = mixed();
    for policy in ["karpenter", "groups"] {
        for (name, on) in [
            ("web-5c4-b", "n1"),
            ("import-x", "s1"),
            ("kube-system/agent-n1", "n1"),
            ("by-hand", "s1"),
            ("small-1", "fargate-1"),
        ] {
            // Under the other policy there are no NodePools, and what ran on their nodes is made again.
            if policy == "groups" && on.starts_with('n') {
                continue;
            }
            for minutes in [Some(0), None] {
                let answer = told(&place, policy, name, minutes);
                let pod = answer.pod.as_ref().unwrap();
                assert!(pod.found && !pod.waits, "{name}");
                assert_eq!((pod.node.as_deref(), answer.at_seconds), (Some(on), 0.0), "{name}");
                assert_eq!(pod.events[0].kind, "PodFound", "{name}");
                let shown = text(&answer);
                assert!(shown.contains(&format!("was on {on} at the start")), "{shown}");
            }
        }
    }
}

#[test]
fn evicted_pod_of_a_dump_names_its_successor() {
    let place = mixed();
    let answer = told(&place, "karpenter", "web-5c4-b", None);
    let pod = answer.pod.as_ref().unwrap();
    let decision = pod.evicted_by.clone().expect("a half-empty node is consolidated");
    let shown = text(&answer);
    let (Some(successor), Some(node)) = (pod.replaced_by.clone(), pod.replaced_on.clone()) else { panic!("{shown}") };
    assert!(shown.contains(&format!("evicted because decision {decision}")), "{shown}");
    assert!(shown.contains(&format!("replaced by {successor}, on {node}")), "{shown}");
    // The successor is a pod of the run, whose place the run explains.
    let next = told(&place, "karpenter", &successor, None).pod.unwrap();
    assert!(!next.found && next.node == Some(node), "{next:?}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn every_pod_node_and_decision_can_be_explained() {
    let place = mixed();
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    for policy in ["karpenter", "groups"] {
        let this_policy = scenario.for_policy(Some(policy)).unwrap();
        let outcome =
            nodecast::simulation::run(&scenario, this_policy, Catalog::embedded().unwrap(), scenario.seed, &mut |_| {})
                .unwrap();
        let mut subjects = Vec::new();
        for at in [0, 15].map(|minutes| SimTime::ZERO + SimDuration::from_secs(60 * minutes)) {
            let pods = outcome.record.pods.iter();
            subjects.extend(pods.map(|pod| Subject::Pod { name: pod.name, at: Some(at) }));
            let nodes = outcome.record.nodes.iter();
            subjects.extend(nodes.map(|node| Subject::Node { name: node.name.clone(), at }));
        }
        subjects.extend(["d1", "d2", "up1", "down1"].map(|id| Subject::Decision { id: id.to_owned() }));
        let answers: Vec<_> = subjects.iter().map(|subject| ask(&place, policy, subject)).collect();
        assert!(answers.iter().filter(|answer| answer.is_ok()).count() > 20);
        let unexpected = |error: &&ExplainError| {
            !matches!(error, ExplainError::NotThere { .. } | ExplainError::Unknown { kind: "decision", .. })
        };
        assert!(!answers.iter().filter_map(|answer| answer.as_ref().err()).any(|error| unexpected(&error)));
    }
}

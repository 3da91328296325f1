//! `controller_time`: how fast the control plane's controllers make and bind pods.

use nodecast::catalog::Catalog;
use nodecast::domain::SimTime;
use nodecast::simulation::{self, Outcome};

/// Deployments, StatefulSets and the like of pods with room for all on one node group, simulated for three minutes.
fn run(kind: &str, names: &[&str], replicas: u32, more: &str) -> Outcome {
    run_on(2, kind, names, replicas, more)
}

/// The same on so many nodes for a thousand pods each.
fn run_on(nodes: u32, kind: &str, names: &[&str], replicas: u32, more: &str) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let mut manifests = String::new();
    for name in names {
        let of_kind = match kind {
            "Job" => format!("parallelism: {replicas}\n  completions: {replicas}"),
            "StatefulSet" => format!("replicas: {replicas}\n  podManagementPolicy: Parallel\n  serviceName: s"),
            _ => format!("replicas: {replicas}"),
        };
        let group = if kind == "Job" { "batch/v1" } else { "apps/v1" };
        let selector =
            if kind == "Job" { "" } else { "  selector: {matchLabels: {app: NAME}}\n" }.replace("NAME", name);
        manifests.push_str(&format!(
            "---\napiVersion: {group}\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n  {of_kind}\n{selector}  template:\n    \
             metadata: {{labels: {{app: {name}}}}}\n    spec:\n      restartPolicy: {}\n      \
             containers: [{{name: app, image: app, resources: {{requests: {{cpu: 1m}}}}}}]\n",
            if kind == "Job" { "Never" } else { "Always" }
        ));
    }
    let scenario = format!(
        "name: test\nregion: us-east-1\nduration: 3m\nmanifests: [objects.yaml]\n{more}\
         nodeGroups: [{{name: g, instanceTypes: [m5.24xlarge], min: {nodes}, desired: {nodes}, max: {nodes}, maxPods: 1000}}]\n\
         policies: [{{name: fixed, autoscaler: static}}]\n"
    );
    std::fs::write(directory.path().join("scenario.yaml"), scenario).unwrap();
    std::fs::write(directory.path().join("objects.yaml"), manifests).unwrap();
    let scenario = nodecast::scenario::load(&directory.path().join("scenario.yaml")).unwrap().0;
    let policy = scenario.for_policy(None).unwrap();
    simulation::run(&scenario, policy, Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
}

/// Seconds at which pods were created, in order.
fn created(outcome: &Outcome) -> Vec<f64> {
    outcome.record.pods.iter().map(|pod| (pod.created - SimTime::ZERO).as_secs_f64()).collect()
}

/// How many pods were bound in each second from the first binding on.
fn bound(outcome: &Outcome) -> Vec<usize> {
    let mut at: Vec<i64> = outcome.record.pods.iter().filter_map(|pod| pod.scheduled).map(SimTime::as_micros).collect();
    at.sort_unstable();
    let second = |number: i64| usize::try_from((number - at[0]) / 1_000_000).unwrap();
    let mut counts = vec![0; second(at[at.len() - 1]) + 1];
    at.iter().for_each(|&item| counts[second(item)] += 1);
    counts
}

#[test]
fn controller_call_limits_delay_pod_creation() {
    let names: Vec<String> = (0..20).map(|n| format!("d{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let three_hundred = created(&run("Deployment", &names, 15, ""));
    assert_eq!(three_hundred.len(), 300);
    let last = three_hundred[299] - three_hundred[0];
    assert!((14.5..=16.0).contains(&last), "{last}");
    // Writing statuses and events takes tokens too: without them it would be 230. A real run made 205.
    let early = three_hundred.iter().filter(|&&at| at - three_hundred[0] <= 10.0).count();
    assert!((200..=212).contains(&early), "{early}");
    let thousand = created(&run("Deployment", &["one", "two"], 500, ""));
    let last = thousand[999] - thousand[0];
    assert!((48.0..=50.5).contains(&last), "{last}");
}

#[test]
fn sixth_replica_set_waits_for_a_worker() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let outcome = run("Deployment", &names, 60, "");
    let first = |name: &str| {
        let this_pod = outcome.record.pods.iter().filter(|pod| pod.name.starts_with(&format!("{name}-")));
        this_pod.map(|pod| pod.created).min().unwrap()
    };
    let last = |name: &str| {
        let this_pod = outcome.record.pods.iter().filter(|pod| pod.name.starts_with(&format!("{name}-")));
        this_pod.map(|pod| pod.created).max().unwrap()
    };
    let five = names[..5].iter().map(|name| first(name)).max().unwrap();
    assert!(names[..5].iter().all(|name| last(name) > five), "they take turns");
    assert!(names[..5].iter().any(|name| last(name) < first("f")), "the sixth begins when one of them is done");
    assert!(first("f") > five);
}

#[test]
fn other_controllers_have_a_limit_of_their_own() {
    let long = "workloads: [{name: default/w, run_time: 10m}]\n";
    for (kind, more) in [("StatefulSet", ""), ("Job", long)] {
        let at = created(&run(kind, &["w"], 130, more));
        assert_eq!(at.len(), 130, "{kind}");
        assert!((4.5..=6.0).contains(&(at[129] - at[0])), "{kind}: {}", at[129] - at[0]);
        assert!(at[29] - at[0] < 0.5, "{kind}: a burst is free");
    }
}

#[test]
fn scheduler_binds_fifty_pods_per_second_after_burst() {
    let fast = "controller_time: {kube_controller_manager: none}\n";
    let counts = bound(&run("Deployment", &["one"], 400, fast));
    assert_eq!(counts.iter().sum::<usize>(), 400);
    assert!(counts[0] <= 150 && counts[1..5].iter().all(|&count| (40..=60).contains(&count)), "{counts:?}");
    let raised = "controller_time: {kube_controller_manager: none, kube_scheduler: {qps: 500, burst: 1000}}\n";
    assert!(bound(&run("Deployment", &["one"], 400, raised)).len() <= 3);
}

#[test]
fn first_25_replica_set_events_take_tokens() {
    let outcome = run("Deployment", &["one"], 200, "");
    let limits = &outcome.record.controllers.limits;
    let limit = limits.iter().find(|limit| limit.client == "replicaset-controller").unwrap();
    // Two hundred pods, twenty-five events, and statuses.
    assert!((226..=250).contains(&limit.calls), "{}", limit.calls);
}

#[test]
fn zero_controller_time_creates_pods_at_once() {
    let at = created(&run("Deployment", &["one", "two"], 400, "controller_time: none\n"));
    assert!(at.iter().all(|&at| at < 0.2), "{at:?}");
}

#[test]
fn pods_without_nodes_are_all_made() {
    // A sync makes at most 500 pods, and the next one follows without a node for any of them.
    for (kind, more) in
        [("Deployment", ""), ("StatefulSet", ""), ("Job", "workloads: [{name: default/w, run_time: 10m}]\n")]
    {
        let outcome = run_on(0, kind, &["w"], 1_150, more);
        let at = created(&outcome);
        assert!(outcome.record.pods.iter().all(|pod| pod.scheduled.is_none()));
        assert_eq!(at.len(), 1_150, "{kind}");
        assert!((55.0..=62.0).contains(&(at[1_149] - at[0])), "{kind}: {}", at[1_149] - at[0]);
    }
    let at = created(&run_on(0, "Deployment", &["w"], 1_150, "controller_time: none\n"));
    assert_eq!(at.len(), 1_150);
}

#[test]
fn surplus_pods_without_nodes_are_all_deleted() {
    for (kind, time) in [("Deployment", 120), ("StatefulSet", 120), ("Deployment", 1)] {
        let more = "timeline: [{at: 80s, scale: {workload: default/w, replicas: 20}}]\n".to_owned()
            + if time == 1 { "controller_time: none\n" } else { "" };
        let outcome = run_on(0, kind, &["w"], 1_150, &more);
        let left = outcome.record.pods.iter().filter(|pod| pod.removed.is_none()).count();
        assert_eq!((outcome.record.pods.len(), left), (1_150, 20), "{kind} {time}");
    }
}

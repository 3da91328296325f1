//! The Vertical Pod Autoscaler in a running simulation.

use nodecast::catalog::Catalog;
use nodecast::domain::{ResourceName, SimDuration, SimTime, Symbol};
use nodecast::explain::presentation::text;
use nodecast::explain::{Explanation, Subject, VerticalFigures, explain};
use nodecast::report::summary::Summary;
use nodecast::simulation::Outcome;
use nodecast::world::record::{EventKind, VerticalFacts};

use crate::keda::{cluster, deployment, load, run};

fn vpa(name: &str, mode: &str) -> String {
    format!(
        "---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {{name: {name}}}\nspec:\n  \
         targetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}\n  updatePolicy: {{updateMode: {mode}}}\n"
    )
}

/// A Deployment whose container requests a core and a GiB.
fn large(name: &str, replicas: u32) -> String {
    deployment(name, replicas).replace("cpu: 100m, memory: 64Mi", "cpu: \"1\", memory: 1Gi")
}

const USAGE: &str = "usage: [{workload: web, cpu: {constant: 0.3}, memory: {constant: 400}}]";

fn simulated(mode: &str, duration: &str) -> Outcome {
    run(duration, USAGE, &format!("{}{}{}", cluster(0), large("web", 4), vpa("web", mode)), &[])
}

fn facts(outcome: &Outcome) -> &VerticalFacts {
    &outcome.record.verticals[0]
}

/// What the container was last recommended, in thousandths of a CPU and in bytes.
fn target(outcome: &Outcome) -> (i64, i64) {
    let last = facts(outcome).samples.last().unwrap();
    (last.target.cpu_milli(), last.target.memory_bytes())
}

/// What its pods request at the end.
fn requests(outcome: &Outcome) -> Vec<(i64, i64)> {
    let live = outcome.record.pods.iter().filter(|pod| pod.removed.is_none() && pod.deletion_requested.is_none());
    live.map(|pod| (pod.requests.cpu_milli(), pod.requests.memory_bytes())).collect()
}

fn count(outcome: &Outcome, kind: EventKind) -> usize {
    outcome.record.events.iter().filter(|event| event.kind == kind).count()
}

#[test]
fn constant_usage_recommendation_is_bucket_edge_plus_margin() {
    let outcome = simulated("\"Off\"", "6h");
    // 300 m come to 350 m: the upper edge of the bucket and 15 %.
    assert_eq!(target(&outcome).0, 350);
    let memory = target(&outcome).1 as f64 / (400.0 * 1024.0 * 1024.0);
    assert!((1.15..1.25).contains(&memory), "{memory}");
    assert_eq!(requests(&outcome), [(1_000, 1 << 30); 4], "nothing changes in this mode");
    assert_eq!(count(&outcome, EventKind::PodEvicted) + count(&outcome, EventKind::PodResized), 0);
    assert_eq!(outcome.warnings.texts(), [] as [&str; 0]);
    let seen = &facts(&outcome).used[0];
    assert_eq!(seen.cpu.keys().copied().max(), Some(300));
    assert_eq!(seen.memory.keys().copied().collect::<Vec<_>>(), [400]);
}

#[test]
fn recommended_requests_apply_by_eviction_or_in_place() {
    let [recreated, in_place] = ["Recreate", "InPlaceOrRecreate"].map(|mode| simulated(mode, "2d"));
    for outcome in [&recreated, &in_place] {
        assert_eq!(requests(outcome), [target(outcome); 4]);
        assert_eq!(target(outcome).0, 350);
    }
    assert!(facts(&recreated).means.evicted >= 4 && facts(&recreated).means.resized == 0);
    assert!(facts(&in_place).means.resized >= 4 && facts(&in_place).means.evicted == 0, "{:?}", facts(&in_place).means);
    let evicted = recreated.record.events.iter().find(|event| event.kind == EventKind::PodEvicted).unwrap();
    assert!(evicted.message.contains("% of its requests; app: cpu 1 to 350m"), "{}", evicted.message);
    assert_eq!(count(&in_place, EventKind::PodEvicted), 0);
    assert_eq!(count(&in_place, EventKind::PodResized), facts(&in_place).means.resized as usize);
}

#[test]
fn quota_rejects_pods_with_raised_requests() {
    let quota = "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {requests.cpu: 900m}}\n";
    for mode in ["Recreate", "InPlaceOrRecreate"] {
        let manifests = format!("{}{}{}{quota}", cluster(0), deployment("web", 3), vpa("web", mode));
        let outcome = run("6h", USAGE, &manifests, &[]);
        // Two that request 350m leave no room for a third.
        let cpu: Vec<i64> = requests(&outcome).iter().map(|request| request.0).collect();
        assert_eq!(cpu, [350, 350], "{mode}");
        let refused = outcome.record.events.iter().find(|event| event.kind == EventKind::FailedCreate).unwrap();
        assert_eq!(refused.message, "exceeded quota: q, limited: requests.cpu");
    }
}

#[test]
fn initial_mode_changes_only_new_pods() {
    let rest = format!("{USAGE}\ntimeline: [{{at: 20h, scale: {{workload: web, replicas: 5}}}}]");
    let outcome = run("1d", &rest, &format!("{}{}{}", cluster(0), large("web", 4), vpa("web", "Initial")), &[]);
    let mut all = requests(&outcome);
    assert_eq!(all.pop(), Some((350, target(&outcome).1)));
    assert_eq!(all, [(1_000, 1 << 30); 4]);
    assert_eq!(facts(&outcome).means.admitted, 1);
}

#[test]
fn oom_kill_raises_recommendation_and_limit() {
    let limited = deployment("web", 2).replace("memory: 64Mi}", "memory: 300Mi}, limits: {memory: 300Mi}");
    let usage =
        "usage: [{workload: web, cpu: {constant: 0.05}, memory: {steps: [{at: 0s, rate: 200}, {at: 2h, rate: 350}]}}]";
    let outcome = run("4h", usage, &format!("{}{limited}{}", cluster(0), vpa("web", "Recreate")), &[]);
    let means = facts(&outcome).means;
    assert!(means.out_of_memory >= 2, "{means:?}");
    assert!(target(&outcome).1 >= 350 << 20);
    let last_kill = outcome.record.events.rfind(|event| event.kind == EventKind::PodKilled);
    assert!(last_kill.is_some_and(|kill| kill.at.as_secs() < 2 * 3_600 + 1_200), "then limits are high enough");
}

#[test]
fn what_a_budget_refuses_stays() {
    let budget = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}\n";
    let manifests = format!("{}{}{}{budget}", cluster(0), large("web", 4), vpa("web", "Recreate"));
    let outcome = run("1d", USAGE, &manifests, &[]);
    assert!(facts(&outcome).means.refused > 0);
    assert_eq!((count(&outcome, EventKind::PodEvicted), requests(&outcome)), (0, vec![(1_000, 1 << 30); 4]));
}

#[test]
fn missing_usage_gives_no_recommendation_with_warning() {
    let manifests = format!("{}{}{}", cluster(0), large("web", 2), vpa("web", "Recreate"));
    let outcome = run("2h", "", &manifests, &[]);
    assert!(facts(&outcome).samples.is_empty());
    assert_eq!(requests(&outcome), [(1_000, 1 << 30); 2]);
    assert!(
        outcome.warnings.iter().any(|warning| warning.contains("makes no recommendation")),
        "{:?}",
        outcome.warnings
    );
    // Of one resource alone the other is left as it is.
    let outcome = run("1d", "usage: [{workload: web, cpu: {constant: 0.3}}]", &manifests, &[]);
    assert_eq!(requests(&outcome), [(350, 1 << 30); 2]);
    assert!(outcome.warnings.iter().any(|warning| warning.contains("recommends no memory")), "{:?}", outcome.warnings);
}

#[test]
fn vpa_with_hpa_is_warned_about() {
    let hpa = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n  minReplicas: 2\n  maxReplicas: 10\n  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]\n";
    let manifests = format!("{}{}{}{hpa}", cluster(0), large("web", 4), vpa("web", "Recreate"));
    let usage = "usage: [{workload: web, per: workload, cpu: {constant: 1.2}, memory: {constant: 1600}}]";
    let outcome = run("5d", usage, &manifests, &[]);
    insta::assert_snapshot!(
        outcome.warnings.texts().join("\n"),
        @"HorizontalPodAutoscaler default/web and VerticalPodAutoscaler default/web both go by the cpu of default/web: requests follow use, so that in even load 83 to 87% of them are used, which is above the target of 60%, so that replicas drift to the maximum"
    );
    // It does follow: fewer requests, more replicas.
    let wanted = outcome.record.samples.last().unwrap().workloads[1].replicas_desired;
    assert!(wanted > 4, "{wanted}");
}

#[test]
fn named_container_usage_is_separate_from_rest() {
    let two = large("web", 2).replace(
        "containers: [{",
        "containers: [{name: proxy, image: proxy, resources: {requests: {cpu: 100m, memory: 128Mi}}}, {",
    );
    let usage = "usage: [{workload: web, container: proxy, cpu: {constant: 0.2}, memory: {constant: 90}}, {workload: web, container: app, cpu: {constant: 0.6}, memory: {constant: 500}}]";
    let outcome = run("6h", usage, &format!("{}{two}{}", cluster(0), vpa("web", "\"Off\"")), &[]);
    let last = |name: &str| {
        let sample = facts(&outcome).samples.iter().rfind(|sample| sample.container == Symbol::new(name)).unwrap();
        (sample.used.get(ResourceName::CPU), sample.used.memory_bytes() >> 20)
    };
    assert_eq!((last("proxy"), last("app")), ((200, 90), (600, 500)));
}

/// A Deployment with a sidecar among its init containers.
fn meshed(replicas: u32) -> String {
    large("web", replicas).replace(
        "      containers: [{",
        "      initContainers: [{name: mesh, image: mesh, restartPolicy: Always, resources: {requests: {cpu: 200m, memory: 256Mi}, limits: \
         {memory: 300Mi}}}]\n      containers: [{",
    )
}

#[test]
fn sidecar_usage_does_not_count_for_containers() {
    let usage = "usage: [{workload: web, container: mesh, cpu: {constant: 0.2}, memory: {constant: 90}}, {workload: web, container: app, cpu: {constant: 0.6}, memory: {constant: 500}}]";
    let outcome = run("6h", usage, &format!("{}{}{}", cluster(0), meshed(2), vpa("web", "\"Off\"")), &[]);
    let last = facts(&outcome).samples.last().unwrap();
    assert_eq!(last.container, Symbol::new("app"));
    assert_eq!((last.used.get(ResourceName::CPU), last.used.memory_bytes() >> 20), (600, 500));
    assert!(
        facts(&outcome).samples.iter().all(|sample| sample.container != Symbol::new("mesh")),
        "as the recommender has it"
    );
    assert!(!outcome.warnings.iter().any(|warning| warning.contains("have no container")), "{:?}", outcome.warnings);
    // Where nothing else is known, nothing is recommended.
    let alone = "usage: [{workload: web, container: mesh, cpu: {constant: 0.2}, memory: {constant: 90}}]";
    let outcome = run("6h", alone, &format!("{}{}{}", cluster(0), meshed(2), vpa("web", "Recreate")), &[]);
    assert_eq!(count(&outcome, EventKind::PodEvicted), 0);
    assert!(
        outcome.warnings.iter().any(|warning| warning.contains("recommends nothing for the container")),
        "{:?}",
        outcome.warnings
    );
}

#[test]
fn a_sidecar_above_its_limit_is_killed() {
    let killed = |memory: u32| {
        let usage = format!("usage: [{{workload: web, container: mesh, memory: {{constant: {memory}}}}}]");
        count(&run("1h", &usage, &format!("{}{}", cluster(0), meshed(1)), &[]), EventKind::PodKilled)
    };
    assert_eq!(killed(290), 0);
    assert!(killed(350) > 0);
}

#[test]
fn container_hpa_ignores_named_usage_of_others() {
    let hpa = |metric: &str| {
        format!(
            "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: web}}\nspec:\n  scaleTargetRef: {{apiVersion: apps/v1, kind: \
             Deployment, name: web}}\n  maxReplicas: 6\n  metrics: [{metric}]\n"
        )
    };
    let target = "target: {type: Utilization, averageUtilization: 50}";
    let usage = "usage: [{workload: web, container: mesh, cpu: {constant: 0.9}}, {workload: web, container: app, cpu: {constant: 0.1}}]";
    let wanted = |metric: String| {
        let outcome = run("30m", usage, &format!("{}{}{}", cluster(0), meshed(2), hpa(&metric)), &[]);
        outcome.record.samples.last().unwrap().workloads[1].replicas_desired
    };
    let of = |container: &str| {
        format!("{{type: ContainerResource, containerResource: {{name: cpu, container: {container}, {target}}}}}")
    };
    assert_eq!(wanted(of("app")), 1, "a tenth of what it requests");
    assert_eq!(wanted(of("mesh")), 6, "more than four times what it requests");
    // A core of 1.2 that both request.
    assert_eq!(wanted(format!("{{type: Resource, resource: {{name: cpu, {target}}}}}")), 6);
}

#[test]
fn sidecar_hpa_ignores_request_load() {
    let wanted = |container: &str, usage: &str| {
        let hpa = format!(
            "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: web}}\nspec:\n  scaleTargetRef: {{apiVersion: apps/v1, kind: \
             Deployment, name: web}}\n  minReplicas: 2\n  maxReplicas: 6\n  metrics: [{{type: ContainerResource, containerResource: {{name: cpu, \
             container: {container}, target: {{type: Utilization, averageUtilization: 50}}}}}}]\n"
        );
        let load =
            "load: [{workload: web, requests: {constant: 400}, service: {cpu_per_request: 10ms, concurrency: 8}}]";
        let outcome = run("30m", &format!("{load}\n{usage}"), &format!("{}{}{hpa}", cluster(0), meshed(2)), &[]);
        outcome.record.samples.last().unwrap().workloads[1].replicas_desired
    };
    assert_eq!(wanted("app", ""), 6, "it does the work");
    assert_eq!(wanted("mesh", ""), 2, "it uses nothing");
    let stated = |cpu: &str| format!("usage: [{{workload: web, container: mesh, cpu: {{constant: {cpu}}}}}]");
    assert_eq!(wanted("mesh", &stated("0.9")), 6, "what is stated of it");
}

/// What `explain` says at an hour of the first pod that had been made by then and was not to go yet.
fn explained(mode: &str, replicas: u32, rest: &str, hour: i64) -> (Explanation, VerticalFigures) {
    let manifests = format!("{}{}{}{rest}", cluster(0), large("web", replicas), vpa("web", mode));
    let scenario = load("1d", USAGE, &manifests, &[]);
    let at = SimTime::ZERO + SimDuration::from_secs(hour * 3_600);
    let outcome = crate::keda::simulate(&scenario, scenario.seed);
    let there = |pod: &nodecast::world::record::PodFacts| {
        pod.created <= at && pod.deletion_requested.is_none_or(|asked| asked > at) && pod.name.starts_with("web")
    };
    let name = outcome.record.pods.iter().find(there).unwrap().name;
    let policy = scenario.for_policy(None).unwrap();
    let subject = Subject::Pod { name, at: Some(at) };
    let answer = explain(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &subject).unwrap();
    let vertical = answer.pod.as_ref().unwrap().vertical.clone().unwrap();
    (answer, vertical)
}

#[test]
fn explain_shows_reason_for_pod_requests() {
    let (answer, off) = explained("\"Off\"", 4, "", 6);
    assert!(!off.changes && off.because.contains("in this mode nobody"), "{}", off.because);
    let cpu = off.resources.iter().find(|resource| resource.resource == "cpu").unwrap();
    assert_eq!((cpu.request, cpu.target, cpu.lower_bound.unwrap() < 350), (Some(1_000), 350, true));
    let told = text(&answer);
    assert!(told.contains("VerticalPodAutoscaler default/web (mode Off) after 6h"), "{told}");
    assert!(told.contains("app cpu: requests 1, recommended 350m"), "{told}");
    let (_, alone) = explained("Recreate", 1, "", 20);
    assert!(alone.because.contains("fewer pods than the updater touches: 1 of at least 2"), "{}", alone.because);
    let (_, done) = explained("InPlaceOrRecreate", 4, "", 20);
    assert!(!done.changes && done.because.contains("within the bounds"), "{}", done.because);
    let budget = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}\n";
    let (_, refused) = explained("Recreate", 4, budget, 20);
    assert!(refused.because.contains("a PodDisruptionBudget refuses"), "{}", refused.because);
}

#[test]
fn releases_and_flags_of_its_programs_are_stated() {
    let manifests = format!("{}{}{}", cluster(0), large("web", 4), vpa("web", "Recreate"));
    let with = |rest: &str| run("6h", &format!("{USAGE}\n{rest}"), &manifests, &[]);
    let flags =
        "vertical_pod_autoscaler: {recommender: {recommendation-margin-fraction: 0.5}, updater: {min-replicas: 5}}";
    let outcome = with(flags);
    assert_eq!(target(&outcome).0, 457, "one and a half times the edge of the bucket");
    assert_eq!(requests(&outcome), [(1_000, 1 << 30); 4], "four are too few");
    // Up to 1.3 a sample weighs what is requested; of equal samples that changes nothing.
    assert_eq!(target(&with("versions: {vertical-pod-autoscaler: \"1.3\"}")).0, 350);
}

#[test]
fn idle_capacity_follows_in_place_resizes() {
    let outcome = simulated("InPlaceOrRecreate", "2d");
    let resized = outcome.record.pods.iter().find(|pod| !pod.requested_before.is_empty()).unwrap();
    let (at, before) = &resized.requested_before[0];
    let just_before = *at - SimDuration::from_micros(1);
    assert_eq!(resized.requests_at(just_before), &**before);
    assert_ne!(resized.requests_at(*at), resized.requests_at(just_before));
    let spans: Vec<_> =
        resized.requests_between(SimTime::ZERO, SimTime::ZERO + SimDuration::from_secs(172_800)).collect();
    assert!(spans.windows(2).all(|pair| pair[0].1 == pair[1].0) && spans.len() == resized.requested_before.len() + 1);
    let summary = Summary::from_outcome(&outcome);
    assert!(summary.cost.total > 0.0);
}

/// Pods of two containers.
fn two_containers() -> String {
    large("web", 2).replace(
        "containers: [{",
        "containers: [{name: proxy, image: proxy, resources: {requests: {cpu: 200m, memory: 2Gi}}}, {",
    )
}

#[test]
fn container_without_usage_keeps_requests_with_warning() {
    let manifests = format!("{}{}{}", cluster(0), two_containers(), vpa("web", "Recreate"));
    let with = |usage: &str| run("1d", &format!("usage: [{usage}]"), &manifests, &[]);
    let last = |outcome: &Outcome, name: &str| {
        facts(outcome)
            .samples
            .iter()
            .rfind(|sample| sample.container == Symbol::new(name))
            .map(|sample| sample.target.clone())
    };
    let outcome = with("{workload: web, container: app, cpu: {constant: 0.3}, memory: {constant: 400}}");
    assert_eq!(last(&outcome, "proxy"), None);
    let app = last(&outcome, "app").unwrap();
    assert_eq!(app.cpu_milli(), 350);
    assert_eq!(requests(&outcome), [(200 + 350, (2 << 30) + app.memory_bytes()); 2]);
    let told = "VerticalPodAutoscaler default/web recommends nothing for the container `proxy` of default/web, which keeps what it requests: neither `load` nor `usage` says what it uses; add it under `usage`";
    assert_eq!(outcome.warnings.texts(), [told]);
    // The same of one resource alone.
    let outcome = with(
        "{workload: web, container: app, cpu: {constant: 0.3}, memory: {constant: 400}}, {workload: web, container: proxy, cpu: {constant: 0.05}}",
    );
    let proxy = last(&outcome, "proxy").unwrap();
    assert!(proxy.cpu_milli() > 0 && proxy.find(ResourceName::MEMORY).is_none(), "{proxy:?}");
    assert!(outcome.warnings.iter().any(|warning| warning.contains("recommends no memory for the container `proxy`")));
    // What is stated of the pods is of all their containers, and so is what is stated of a container that none has.
    for usage in [
        "{workload: web, cpu: {constant: 0.3}, memory: {constant: 400}}",
        "{workload: web, container: no, cpu: {constant: 0.3}, memory: {constant: 400}}",
    ] {
        let outcome = with(usage);
        assert!(last(&outcome, "proxy").is_some() && last(&outcome, "app").is_some());
        assert!(!outcome.warnings.iter().any(|warning| warning.contains("recommends")), "{:?}", outcome.warnings);
    }
}

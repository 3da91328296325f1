//! Pods under load in a running simulation: the CPU of their nodes, their limits, and rollouts that change these.

use nodecast::simulation::Outcome;
use nodecast::world::record::EventKind;

use crate::keda::{cluster, deployment, run};
use crate::workloads::{at, workload};

/// A Deployment of two pods that request `cpu` and serve ten requests at a time, 100 ms of CPU each.
fn serving(name: &str, cpu: &str, limits: &str) -> String {
    deployment(name, 2).replace("cpu: 100m, memory: 64Mi}", &format!("cpu: {cpu}, memory: 64Mi}}{limits}"))
}

fn load(name: &str, rate: u32, memory: &str) -> String {
    format!(
        "{{workload: {name}, at: 5m, requests: {{constant: {rate}}}, detail: fluid, \
         service: {{cpu_per_request: 100ms, concurrency: 100{memory}}}}}"
    )
}

fn used(outcome: &Outcome, name: &str, seconds: i64) -> f64 {
    let workload = workload(outcome, name);
    let sample = outcome.record.samples.iter().find(|sample| sample.at == at(seconds)).unwrap();
    sample.workloads.iter().find(|sample| sample.workload == workload).unwrap().cpu_used_milli
}

#[test]
fn scarce_cpu_is_shared_in_proportion_to_requests() {
    // An m5.4xlarge offers 15,890m. The first wants 12 CPUs and the second 18.
    let manifests = format!("{}{}{}", cluster(0), serving("small", "1", ""), serving("large", "3", ""));
    let loads = format!("load: [{}, {}]", load("small", 120, ""), load("large", 180, ""));
    let outcome = run("30m", &loads, &manifests, &[]);
    let (small, large) = (used(&outcome, "small", 900), used(&outcome, "large", 900));
    assert!((small + large - 15_890.0).abs() < 10.0, "{small} {large}");
    assert!((large / small - 3.0).abs() < 0.01, "{small} {large}");
    let slow = |name: &str| {
        let workload = workload(&outcome, name);
        outcome.requests.iter().find(|figures| figures.workload == workload).unwrap().response.unwrap().p99
    };
    assert!(slow("small") > 60.0 && slow("large") > 60.0, "both fall behind");
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
    // Alone, the second has all it wants once the first has asked for less.
    let loads = format!("load: [{}, {}]", load("small", 20, ""), load("large", 100, ""));
    let outcome = run("30m", &loads, &manifests, &[]);
    assert!(
        (used(&outcome, "small", 900) - 2_000.0).abs() < 2.0 && (used(&outcome, "large", 900) - 10_000.0).abs() < 2.0
    );
}

#[test]
fn unused_cpu_share_goes_to_other_pods() {
    let manifests = format!("{}{}{}", cluster(0), serving("small", "1", ""), serving("large", "3", ""));
    let loads = format!(
        "load: [{}, {}]",
        load("small", 120, "").replace("requests", "for: 10m, requests"),
        load("large", 180, "")
    );
    let rest = format!("{loads}\ntimeline: [{{at: 20m, scale: {{workload: small, replicas: 0}}}}]");
    let outcome = run("30m", &rest, &manifests, &[]);
    assert!(used(&outcome, "large", 900) < 12_000.0);
    assert!((used(&outcome, "large", 1_500) - 15_890.0).abs() < 10.0, "{}", used(&outcome, "large", 1_500));
}

#[test]
fn oom_killed_container_restarts_with_backoff() {
    let manifests = format!("{}{}", cluster(0), serving("web", "1", ", limits: {memory: 128Mi}"));
    // 20 requests a second for each pod keep 1 MiB a second: from 28 MiB to the limit in 100 s.
    let memory = ", memory: {idle: 28Mi, kept_per_million: 52428800000}";
    let outcome = run("30m", &format!("load: [{}]", load("web", 40, memory)), &manifests, &[]);
    let position = &outcome.record.pods.iter().position(|pod| pod.name == "web-00000").unwrap();
    let of_first = |kind: EventKind| -> Vec<i64> {
        let events = outcome.record.events.iter();
        events
            .filter(|event| event.kind == kind && event.pod.is_some_and(|pod| pod.index() == *position))
            .map(|event| event.at.as_secs())
            .collect()
    };
    let (kills, starts) = (of_first(EventKind::PodKilled), of_first(EventKind::PodStarted));
    assert!((395..=415).contains(&kills[0]), "{kills:?}");
    let waits: Vec<i64> = kills.iter().zip(&starts[1..]).map(|(killed, started)| started - killed).collect();
    assert_eq!(waits[..4], [1, 11, 21, 41], "{kills:?} {starts:?}");
    let first = outcome.record.events.iter().find(|event| event.kind == EventKind::PodKilled).unwrap();
    assert!(
        first.message.starts_with("OOMKilled: it needs 1") && first.message.contains("its limit is 128 MiB"),
        "{}",
        first.message
    );
}

/// The same with limits of the whole pod in place of its container's.
fn limited_as_a_whole(name: &str, limits: &str) -> String {
    serving(name, "100m", "").replace("containers:", &format!("resources: {{limits: {limits}}}\n      containers:"))
}

#[test]
fn pod_level_limits_throttle_and_oom_kill() {
    let manifests = format!("{}{}", cluster(0), limited_as_a_whole("web", "{cpu: 500m, memory: 128Mi}"));
    let outcome = run("30m", &format!("load: [{}]", load("web", 60, "")), &manifests, &[]);
    assert!((used(&outcome, "web", 900) - 1_000.0).abs() < 1.0, "{}", used(&outcome, "web", 900));
    let kills = |outcome: &Outcome| {
        let this_event = outcome.record.events.iter().filter(|event| event.kind == EventKind::PodKilled);
        this_event.map(|event| event.message.to_string()).collect::<Vec<_>>()
    };
    assert!(kills(&outcome).is_empty());
    let needing = format!("load: [{}]", load("web", 2, ", memory: {idle: 200Mi}"));
    let stated = "usage: [{workload: web, memory: {constant: 200}}]".to_owned();
    for rest in [needing, stated] {
        let kills = kills(&run("30m", &rest, &manifests, &[]));
        assert!(kills.first().is_some_and(|why| why.contains("its limit is 128 MiB")), "{rest}: {kills:?}");
    }
}

#[test]
fn limit_of_working_container_throttles_pod() {
    let beside = |other: &str| {
        let serving = serving("web", "100m", ", limits: {cpu: 500m}");
        format!("{}{}", cluster(0), serving.replace("}]\n", &format!("}}, {other}]\n")))
    };
    for (other, warns) in [
        ("{name: istio-proxy, image: p, resources: {limits: {cpu: 2}}}", false),
        ("{name: log, image: log}", true),
        ("{name: log, image: log, resources: {limits: {cpu: 500m}}}", false),
    ] {
        let outcome = run("30m", &format!("load: [{}]", load("web", 60, "")), &beside(other), &[]);
        assert!((used(&outcome, "web", 900) - 1_000.0).abs() < 1.0, "{other}: {}", used(&outcome, "web", 900));
        let warned = outcome.warnings.iter().any(|warning| format!("{warning:?}").contains("CPU limits that differ"));
        assert_eq!(warned, warns, "{other}: {:?}", outcome.warnings);
    }
}

/// A Deployment or StatefulSet of two pods with this CPU limit, which replaces them one by one every two minutes.
fn limited(kind: &str, cpu: &str) -> String {
    let strategy = match kind {
        "Deployment" => "  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n",
        _ => "  serviceName: web\n",
    };
    serving("web", "100m", &format!(", limits: {{cpu: {cpu}}}"))
        .replace("kind: Deployment", &format!("kind: {kind}"))
        .replace("  replicas: 2\n", &format!("  replicas: 2\n  minReadySeconds: 120\n{strategy}"))
}

#[test]
fn cpu_limit_rollout_changes_throughput() {
    // 60 requests a second want six CPUs.
    let rest = format!("load: [{}]\ntimeline: [{{at: 10m, manifests: [later.yaml]}}]", load("web", 60, ""));
    for (kind, expected) in [
        // Two old ones; with a new one; an old one with both new ones; these alone.
        ("Deployment", [(570, 1_000), (660, 2_500), (780, 3_500), (1_200, 3_000)]),
        // Of two, one after the other.
        ("StatefulSet", [(570, 1_000), (660, 2_000), (690, 2_000), (1_200, 3_000)]),
    ] {
        let manifests = format!("{}{}", cluster(0), limited(kind, "500m"));
        let outcome = run("30m", &rest, &manifests, &[("later.yaml", &limited(kind, "1500m"))]);
        for (seconds, milli) in expected {
            let found = used(&outcome, "web", seconds);
            assert!((found - f64::from(milli)).abs() < 1.0, "{kind} at {seconds} s: {found} and not {milli}");
        }
    }
}

#[test]
fn cpu_request_rollout_changes_node_share() {
    // An m5.4xlarge offers 15,890m: alike first, then three to one.
    let manifests = format!("{}{}{}", cluster(0), serving("small", "1", ""), serving("large", "1", ""));
    let loads = format!("load: [{}, {}]", load("small", 180, ""), load("large", 180, ""));
    let rest = format!("{loads}\ntimeline: [{{at: 10m, manifests: [later.yaml]}}]");
    let outcome = run("30m", &rest, &manifests, &[("later.yaml", &serving("large", "3", ""))]);
    let ratio = |seconds| used(&outcome, "large", seconds) / used(&outcome, "small", seconds);
    assert!((ratio(570) - 1.0).abs() < 0.01 && (ratio(1_200) - 3.0).abs() < 0.01, "{} {}", ratio(570), ratio(1_200));
}

#[test]
fn raised_memory_limit_ends_oom_kills() {
    let limits = |memory: &str| serving("web", "1", &format!(", limits: {{memory: {memory}}}"));
    let rest = format!(
        "load: [{}]\ntimeline: [{{at: 10m, manifests: [later.yaml]}}]",
        load("web", 40, ", memory: {idle: 200Mi}")
    );
    let manifests = format!("{}{}", cluster(0), limits("128Mi"));
    let outcome = run("30m", &rest, &manifests, &[("later.yaml", &limits("256Mi"))]);
    let kills = outcome.record.events.iter().filter(|event| event.kind == EventKind::PodKilled);
    let kills: Vec<i64> = kills.map(|event| event.at.as_secs()).collect();
    assert!(kills.len() > 4 && kills.iter().all(|&kill| kill < 660), "{kills:?}");
}

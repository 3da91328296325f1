//! Nodes that run out of memory, and what pods use as they start.

use nodecast::domain::PodId;
use nodecast::simulation::Outcome;
use nodecast::world::record::EventKind;

use crate::keda::{cluster, deployment, run};

/// A Deployment whose pods request so much memory, of a priority class if one is named.
fn requesting(name: &str, replicas: u32, memory: &str, class: &str) -> String {
    let deployment = deployment(name, replicas).replace("memory: 64Mi", &format!("memory: {memory}"));
    deployment.replace("    spec:\n", &format!("    spec:\n      priorityClassName: {class}\n"))
}

const CLASSES: &str = "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n\
    ---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: low}\nvalue: -10\n";

/// Evictions: when, of which pod, and why.
fn evicted(outcome: &Outcome) -> Vec<(i64, String, String)> {
    let events = outcome.record.events.iter().filter(|event| event.kind == EventKind::PodEvicted);
    let name = |pod: Option<PodId>| pod.and_then(|pod| outcome.record.pods.name(pod)).unwrap_or_default().to_owned();
    events.map(|event| (event.at.as_secs(), name(event.pod), event.message.to_owned())).collect()
}

#[test]
fn memory_pressure_evicts_lowest_priority_despite_pdb() {
    let budget = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: batch}\nspec: {maxUnavailable: 0, selector: {matchLabels: {app: batch}}}\n";
    // 62 GiB or so: 24,000 MiB and 3 times 8,000 fit, 3 times 16,000 do not.
    let manifests = format!(
        "{}{}{}{}{CLASSES}{budget}",
        cluster(0),
        requesting("steady", 4, "2Gi", "high"),
        requesting("batch", 3, "8Gi", "low"),
        requesting("small", 2, "1Gi", "low"),
    );
    let usage = "usage:\n  - {workload: steady, memory: {constant: 6000}}\n  - {workload: small, memory: {constant: 900}}\n  \
        - {workload: batch, memory: {steps: [{at: 0s, rate: 8000}, {at: 1h, rate: 16000}]}}";
    let outcome = run("62m", usage, &manifests, &[]);
    let evicted = evicted(&outcome);
    assert!(!evicted.is_empty());
    for (at, name, why) in &evicted {
        assert!(name.starts_with("batch-"), "{name}: {why}");
        assert!((3_600..=3_720).contains(at), "{at}");
    }
    insta::assert_snapshot!(
        evicted[0].2,
        @"the node was low on memory: its pods use 73800 MiB of 60306 MiB; this one used 16000 MiB and requests 8192 MiB"
    );
    // One at a time.
    assert!(evicted.windows(2).all(|two| two[1].0 - two[0].0 >= 10), "{evicted:?}");
    let calm = run("62m", &usage.replace("rate: 16000", "rate: 8100"), &manifests, &[]);
    assert_eq!(self::evicted(&calm), []);
}

#[test]
fn memory_limits_within_capacity_prevent_pressure() {
    let limited = deployment("web", 4).replace("memory: 64Mi}", "memory: 64Mi}, limits: {memory: 8Gi}");
    let usage = "usage: [{workload: web, memory: {constant: 8000}}]";
    let outcome = run("30m", usage, &format!("{}{limited}", cluster(0)), &[]);
    assert_eq!(evicted(&outcome).len(), 0);
    assert_eq!(outcome.record.events.iter().filter(|event| event.kind == EventKind::PodKilled).count(), 0);
}

/// The most that the container was seen to use of CPU, in thousandths.
fn most(start_up: &str, resources: &str) -> Option<i64> {
    let vpa = "---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: web}\nspec:\n  \
        targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n  updatePolicy: {updateMode: \"Off\"}\n";
    let web = deployment("web", 2).replace("memory: 64Mi}", &format!("memory: 64Mi}}{resources}"));
    let usage = format!("usage: [{{workload: web, cpu: {{constant: 0.1}}{start_up}}}]");
    let outcome = run("2h", &usage, &format!("{}{web}{vpa}", cluster(0)), &[]);
    outcome.record.verticals.first()?.used.first()?.cpu.keys().copied().max()
}

#[test]
fn start_up_usage_is_capped_at_limit() {
    assert_eq!(most("", ""), Some(100));
    let seen = most(", start_up: {cpu: 0.9, for: 3m}", "");
    assert_eq!(seen, Some(1_000), "a whole minute of it is looked at");
    assert_eq!(most(", start_up: {cpu: 0.9, for: 3m}", ", limits: {cpu: 500m}"), Some(500));
    // Half a minute is averaged with what comes after it.
    let short = most(", start_up: {cpu: 0.9, for: 20s}", "");
    assert!(short.is_some_and(|milli| (150..900).contains(&milli)), "{short:?}");
}

//! Probes that give up on an application before it has started, and the containers that they kill.

use nodecast::domain::PodId;
use nodecast::report::Summary;
use nodecast::simulation::Outcome;
use nodecast::world::record::EventKind;

use crate::keda::{cluster, run};

const SLOW: &str = "workloads: [{name: web, start_time: 60s}]";

/// A run of one pod with these probes and of what else is said of the scenario.
fn of_one_pod(probes: &str, kind: &str, rest: &str) -> Outcome {
    let manifests = format!(
        "{}---\napiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: web}}\nspec:\n  selector: {{matchLabels: {{app: web}}}}\n  \
         template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: app, image: one, {probes}}}]}}\n",
        cluster(0)
    );
    run("2h", rest, &manifests, &[])
}

/// When something befell the only pod, in seconds after its containers first ran.
fn times(outcome: &Outcome, kind: EventKind) -> Vec<i64> {
    let pod = outcome.record.pods.iter().position(|pod| pod.name.starts_with("web")).map(PodId::from_index);
    let first = outcome.record.pods.facts(pod.unwrap()).started.unwrap();
    let events = outcome.record.events.iter().filter(|event| event.kind == kind && event.pod == pod);
    events.map(|event| (event.at - first).as_micros().div_euclid(1_000_000)).collect()
}

#[test]
fn short_startup_probe_kills_container_repeatedly() {
    for kind in ["Deployment", "StatefulSet"] {
        let outcome = of_one_pod("startupProbe: {periodSeconds: 5, failureThreshold: 3}", kind, SLOW);
        let (kills, starts) = (times(&outcome, EventKind::PodKilled), times(&outcome, EventKind::PodStarted));
        // The third probe comes ten seconds after the first; the container stops within a second and starts within one.
        let lives: Vec<i64> = kills.iter().zip(&starts).map(|(kill, start)| kill - start).collect();
        assert!(lives.iter().all(|&life| life == 10), "{kind}: {lives:?}");
        let waits: Vec<i64> = kills.iter().zip(&starts[1..]).map(|(kill, start)| start - kill - 2).collect();
        assert_eq!(waits[..8], [0, 10, 20, 40, 80, 160, 300, 300], "{kind}");
        assert!(times(&outcome, EventKind::PodReady).is_empty(), "{kind}: it is never Ready");
        assert_eq!(Summary::from_outcome(&outcome).pods.restarts, kills.len() as u64);
        let last = outcome.record.events.rfind(|event| event.kind == EventKind::PodKilled).unwrap();
        assert_eq!(
            last.message,
            "the startup probe of container app failed 3 times in a row, until 10s after its start, and the application \
             answers after 1m; CrashLoopBackOff, it starts again in 5m1s"
        );
    }
}

#[test]
fn liveness_probe_kills_slow_starting_container() {
    let liveness = "livenessProbe: {initialDelaySeconds: 15, periodSeconds: 10, failureThreshold: 3}";
    let outcome = of_one_pod(&format!("readinessProbe: {{periodSeconds: 1}}, {liveness}"), "Deployment", SLOW);
    let (kills, starts) = (times(&outcome, EventKind::PodKilled), times(&outcome, EventKind::PodStarted));
    assert_eq!(kills[..3], [35, starts[1] + 35, starts[2] + 35]);
    assert!(times(&outcome, EventKind::PodReady).is_empty());
    // Without a readiness probe the pod is Ready at once, and until it is killed.
    let outcome = of_one_pod(liveness, "Deployment", SLOW);
    assert_eq!(times(&outcome, EventKind::PodReady)[..3], starts[..3]);
}

#[test]
fn a_probe_that_waits_long_enough_kills_nothing() {
    let startup = |threshold: u32| format!("startupProbe: {{periodSeconds: 10, failureThreshold: {threshold}}}");
    for (probes, kills) in [
        // The seventh probe comes just when the application answers, the sixth before.
        (startup(7), false),
        (startup(6), true),
        ("livenessProbe: {initialDelaySeconds: 40}".to_owned(), false),
        ("livenessProbe: {initialDelaySeconds: 39}".to_owned(), true),
        // While the start-up probe has not succeeded, the liveness probe waits.
        (format!("{}, livenessProbe: {{periodSeconds: 1}}", startup(7)), false),
    ] {
        let outcome = of_one_pod(&probes, "Deployment", SLOW);
        assert_eq!(!times(&outcome, EventKind::PodKilled).is_empty(), kills, "{probes}");
    }
    let outcome = of_one_pod("startupProbe: {failureThreshold: 1}", "Deployment", "");
    assert!(times(&outcome, EventKind::PodKilled).is_empty(), "an application that answers at once");
}

#[test]
fn restart_after_ten_minutes_has_no_backoff() {
    let slow = "workloads: [{name: web, start_time: 1h}]";
    let probe = "startupProbe: {periodSeconds: 60, failureThreshold: 13, terminationGracePeriodSeconds: 0}";
    let outcome = of_one_pod(probe, "Deployment", slow);
    let (kills, starts) = (times(&outcome, EventKind::PodKilled), times(&outcome, EventKind::PodStarted));
    assert!(kills.len() > 5);
    assert!(kills.iter().zip(&starts[1..]).all(|(kill, start)| start - kill == 1), "{kills:?} {starts:?}");
}

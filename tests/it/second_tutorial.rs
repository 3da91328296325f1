//! What the second tutorial observed on a real cluster, on the shipped scenario: facts S1-a to S1-d.

use std::sync::OnceLock;

use nodecast::domain::{SimDuration, SimTime};
use nodecast::report::{Summary, page, plots::Plots, tables, terminal};
use nodecast::simulation::Outcome;
use nodecast::world::record::{Event, EventKind, NodeOrigin};

use crate::shipped;

fn run(policy: &str) -> Outcome {
    shipped::run("keda-istio", policy)
}

fn outcome() -> &'static Outcome {
    static OUTCOME: OnceLock<Outcome> = OnceLock::new();
    OUTCOME.get_or_init(|| run("kubernetes-1.33"))
}

fn minutes(minutes: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(minutes * 60)
}

fn rescales(outcome: &Outcome) -> Vec<Event<'_>> {
    outcome.record.events.iter().filter(|event| event.kind == EventKind::Rescaled).collect()
}

/// Replicas wanted, and the metric as the autoscaler's status shows it, at the last sample before an instant.
fn shown(outcome: &Outcome, before: SimTime) -> (u32, f64) {
    let sample = outcome.record.samples.iter().rfind(|sample| sample.at < before).unwrap();
    let nginx = outcome.record.metrics[0].workload;
    let workload = sample.workloads.iter().find(|workload| workload.workload == nginx).unwrap();
    (workload.replicas_desired, sample.metrics[0].value.unwrap())
}

#[test]
fn s1_a_26_over_10_gives_3_replicas() {
    assert_eq!(shown(outcome(), minutes(20)), (3, 8.667));
    // The tutorial's first look: 8 requests, one replica.
    assert_eq!(shown(outcome(), minutes(10)), (1, 8.0));
    let first = rescales(outcome())[0];
    assert!((600..660).contains(&first.at.as_secs()), "{}", first.at);
    assert!(first.message.starts_with("1 to 3 replicas: external metric s0-prometheus("), "{}", first.message);
    assert!(first.message.ends_with("above target (s0-prometheus 26/10 (avg), asks for 3)"), "{}", first.message);
}

#[test]
fn s1_b_ten_replicas_stay_during_silence() {
    let after: Vec<_> = outcome().record.samples.iter().filter(|sample| sample.at > minutes(65)).collect();
    assert!(after.last().unwrap().at - after[0].at >= SimDuration::from_secs(3_600));
    let nginx = outcome().record.metrics[0].workload;
    for sample in after {
        let workload = sample.workloads.iter().find(|workload| workload.workload == nginx).unwrap();
        assert_eq!((workload.replicas_desired, workload.replicas_ready), (10, 10), "{}", sample.at);
        assert_eq!(sample.metrics[0].value, Some(12.0), "120 over 10 at {}", sample.at);
    }
    assert!(
        outcome()
            .warnings
            .iter()
            .any(|warning| warning.contains("reads counter `istio_requests_total` without rate()"))
    );
    assert!((outcome().requests[0].completed - 120.0).abs() < 1e-6);
}

#[test]
fn s1_c_requestless_pods_wait_for_pod_slots() {
    let record = &outcome().record;
    let group = record.nodes.iter().position(|node| matches!(node.origin, NodeOrigin::NodeGroup(_))).unwrap();
    let refused = record.events.iter().find(|event| event.kind == EventKind::PodUnschedulable).unwrap();
    assert_eq!(refused.message, "0/1 nodes are available: 1 Too many pods.", "{}", refused.at);
    let waiting = record.pods.facts(refused.pod.unwrap());
    assert_eq!((waiting.requests.cpu_milli(), waiting.requests.memory_bytes()), (0, 0));
    // Seventeen pods are on the worker group's node, and never more.
    let there = |pod: &nodecast::world::record::PodFacts| pod.node.is_some_and(|node| node.index() == group);
    assert_eq!(record.pods.iter().filter(|pod| there(pod)).count(), 17);
    let launched = record.nodes.iter().find(|node| matches!(node.origin, NodeOrigin::NodePool(_))).unwrap();
    assert!(launched.requested > refused.at && launched.requested - refused.at < SimDuration::from_secs(15));
    let placed = record.pods.facts(refused.pod.unwrap());
    assert_eq!(placed.node.map(|node| record.nodes[node.index()].name.clone()), Some(launched.name.clone()));
    assert!(record.pods.iter().all(|pod| pod.ready.is_some()));
}

#[test]
fn s1_d_hundredth_request_adds_tenth_replica() {
    let steps: Vec<(i64, String)> = rescales(outcome())
        .iter()
        .map(|event| (event.at.as_secs() / 60, event.message.split(" replicas").next().unwrap().to_owned()))
        .collect();
    // From 3 to 9 in two passes: without a behavior block a pass may at most double.
    let expected = [(10, "1 to 3"), (20, "3 to 6"), (20, "6 to 9"), (50, "9 to 10")];
    assert_eq!(steps, expected.map(|(minute, step)| (minute, step.to_owned())));
    assert_eq!(shown(outcome(), minutes(40)), (9, 10.112));
    assert_eq!(shown(outcome(), minutes(50)), (9, 11.0));
}

#[test]
fn kubernetes_1_21_scales_at_ratio_1_1() {
    let outcome = run("kubernetes-1.21");
    assert_eq!(shown(&outcome, minutes(40)), (9, 10.112));
    let last = rescales(&outcome).last().map(|event| (event.at.as_secs() / 60, event.message.to_string())).unwrap();
    assert!(last.0 == 40 && last.1.starts_with("9 to 10"), "{last:?}");
}

#[test]
fn metric_changes_only_at_scrapes() {
    let mut moves: Vec<SimTime> = Vec::new();
    let samples = &outcome().record.samples;
    for pair in samples.windows(2) {
        let value = |sample: &nodecast::world::record::Sample| {
            let metric = sample.metrics.first()?;
            Some(
                metric.value?
                    * f64::from(
                        sample
                            .workloads
                            .iter()
                            .find(|w| w.workload == outcome().record.metrics[0].workload)?
                            .replicas_desired,
                    ),
            )
        };
        if let (Some(before), Some(after)) = (value(&pair[0]), value(&pair[1]))
            && (after - before).abs() > 0.5
        {
            moves.push(pair[1].at);
        }
    }
    assert!(!moves.is_empty() && moves.len() <= 12, "{moves:?}");
}

#[test]
fn report_shows_metric_target_and_scaling_reasons() {
    let outcome = outcome();
    let summary = Summary::from_outcome(outcome);
    let table = terminal::table(&summary);
    let why = "s0-prometheus 26/10 (avg), asks for 3";
    let line = table.lines().find(|line| line.ends_with(why)).unwrap_or_else(|| panic!("{table}"));
    assert_eq!(line.split_whitespace().take(4).collect::<Vec<_>>()[0], "web/nginx", "{line}");
    let figures = table.lines().take_while(|line| !line.ends_with("warning:"));
    assert!(figures.into_iter().all(|line| line.chars().count() <= 100), "{table}");
    let plots = Plots::from_outcome(outcome).unwrap();
    let plot = plots.drawn.iter().find(|plot| plot.file == "metrics.svg").unwrap();
    assert!(plot.svg.contains("s0-prometheus") && plot.svg.contains("target of web/keda-hpa-nginx"));
    assert!(page::render(outcome, &summary, &plots, "nodecast run").contains(why));
    let events = String::from_utf8(tables::bytes(tables::events, outcome).unwrap()).unwrap();
    assert!(events.lines().any(|line| line.contains("\"kind\":\"Rescaled\"") && line.contains(why)));
    let metrics = String::from_utf8(tables::bytes(tables::metrics, outcome).unwrap()).unwrap();
    assert!(
        metrics.contains(",web/keda-hpa-nginx,web/nginx,s0-prometheus,per pod,8.667,10,3,3,3\n"),
        "{}",
        &metrics[..500]
    );
}

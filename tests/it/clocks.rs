//! When loops of controllers come round: phases, the milliseconds that they slip, whole seconds of the API, metrics-server's
//! beat, and stated use in place of a model's.

use std::collections::BTreeSet;

use nodecast::domain::{SimDuration, SimTime};
use nodecast::scenario::Scenario;
use nodecast::scenario::error::Render;
use nodecast::simulation::Outcome;
use nodecast::world::record::EventKind;

use crate::keda::{changes, cluster, deployment, load, run, scaled_object, simulate};

/// An autoscaler of `target` on an External metric of that name, with an average of 10 for each replica.
fn on_depth(name: &str, target: &str) -> String {
    format!(
        "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {name}}}\nspec:\n  scaleTargetRef: \
         {{kind: Deployment, name: {target}}}\n  maxReplicas: 20\n  metrics:\n  - {{type: External, external: {{metric: {{name: \
         depth}}, target: {{type: AverageValue, averageValue: \"10\"}}}}}}\n"
    )
}

/// An autoscaler of the worker on a share of what it requests.
fn on_resource(resource: &str, percent: u32) -> String {
    format!(
        "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: h}}\nspec:\n  scaleTargetRef: {{kind: \
         Deployment, name: worker}}\n  maxReplicas: 20\n  metrics:\n  - {{type: Resource, resource: {{name: {resource}, target: \
         {{type: Utilization, averageUtilization: {percent}}}}}}}\n"
    )
}

/// Seconds at which counts were changed.
fn times(outcome: &Outcome, kind: EventKind) -> Vec<f64> {
    let events = outcome.record.events.iter().filter(|event| event.kind == kind);
    events.map(|event| (event.at - SimTime::ZERO).as_secs_f64()).collect()
}

const SEEDS: std::ops::RangeInclusive<u64> = 1..=20;

#[test]
fn scaled_object_sleeps_exactly_after_cooldown() {
    let rest = "external_metrics: [{scaler: \"queue:9090\", values: [{at: 0s, value: 4}, {at: 15m, value: 0}]}]";
    let object = scaled_object(
        "  triggers:\n  - {type: external, metadata: {scalerAddress: \"queue:9090\", targetValue: \"5\"}}\n",
    );
    let scenario = load("25m", rest, &format!("{}{object}", cluster(0)), &[]);
    let mut waits = BTreeSet::new();
    for seed in SEEDS {
        let outcome = simulate(&scenario, seed);
        let first = times(&outcome, EventKind::ScaleTargetActivated)[0];
        let slept = times(&outcome, EventKind::ScaleTargetDeactivated)[0];
        // Polls come every 30 s and a little more; the last active one is the last of the first 15 minutes.
        let last_active = first + ((900.0 - first) / 30.0).floor() * 30.0;
        assert!((300.0..=301.0).contains(&(slept - last_active)), "seed {seed}: {last_active} {slept}");
        waits.insert(((slept - last_active) * 1e6) as i64);
    }
    assert!(waits.len() > 15, "each object slips in its own way: {waits:?}");
}

#[test]
fn hpa_scales_in_exactly_after_window() {
    let at_once =
        "phases: {replica_autoscalers: 7s}\nexternal_metrics: [{metric: depth, values: [{at: 0s, value: 10}]}]";
    let later = "phases: {replica_autoscalers: 7s}\nexternal_metrics: [{metric: depth, values: [{at: 0s, value: 100}, {at: 10m, value: 10}]}]";
    let manifests = format!("{}{}", cluster(10), on_depth("h", "worker"));
    let (at_once, later) = (load("20m", at_once, &manifests, &[]), load("20m", later, &manifests, &[]));
    for seed in SEEDS {
        // The first pass notes the ten that there are beside the one that would do.
        let scaled = times(&simulate(&at_once, seed), EventKind::Rescaled);
        assert_eq!(scaled.len(), 1, "seed {seed}");
        assert!((300.0..=302.0).contains(&(scaled[0] - 7.0)), "seed {seed}: {scaled:?}");
        // The last pass that asks for ten is that of second 592 and a little.
        let scaled = times(&simulate(&later, seed), EventKind::Rescaled);
        assert!((300.0..=302.0).contains(&(scaled[0] - 592.0)), "seed {seed}: {scaled:?}");
    }
}

#[test]
fn initial_hpas_share_phase_unlike_later_ones() {
    let rest = "timeline: [{at: 5m, manifests: [late.yaml]}]\nexternal_metrics: [{metric: depth, values: [{at: 0s, value: 40}]}]";
    let manifests = format!(
        "{}{}{}{}{}",
        cluster(4),
        deployment("other", 2),
        deployment("third", 1),
        on_depth("h", "worker").replace("averageValue: \"10\"", "averageValue: \"5\""),
        on_depth("o", "other")
    );
    let late = on_depth("late", "third");
    let scenario = load("10m", rest, &manifests, &[("late.yaml", &late)]);
    let mut phases = BTreeSet::new();
    for seed in SEEDS {
        let scaled = times(&simulate(&scenario, seed), EventKind::Rescaled);
        assert_eq!(scaled.len(), 3, "seed {seed}: {scaled:?}");
        assert!(scaled[0] < 15.0 && scaled[0].to_bits() == scaled[1].to_bits(), "seed {seed}: {scaled:?}");
        assert_eq!(scaled[2].to_bits(), 315.0_f64.to_bits(), "seed {seed}");
        phases.insert((scaled[0] * 1e6) as i64);
    }
    assert_eq!(phases.len(), 20, "drawn from the seed: {phases:?}");
}

#[test]
fn stated_phases_are_kept() {
    let object = scaled_object(
        "  triggers:\n  - {type: external, metadata: {scalerAddress: \"queue:9090\", targetValue: \"5\"}}\n",
    );
    let rest = "phases: {replica_autoscalers: 11s, keda: 17s}\nexternal_metrics: [{scaler: \"queue:9090\", values: [{at: 0s, value: 40}]}]";
    let scenario = load("2m", rest, &format!("{}{object}", cluster(0)), &[]);
    for seed in SEEDS {
        let steps: Vec<(i64, u32)> = changes(&simulate(&scenario, seed)).iter().map(|step| (step.0, step.3)).collect();
        assert_eq!(steps, [(17, 1), (26, 4), (41, 8)], "seed {seed}");
    }
}

/// Seconds from a step of the load to the first change of the count, and the mean over the seeds.
fn mean_delay(scenario: &Scenario) -> f64 {
    let delays = SEEDS.map(|seed| times(&simulate(scenario, seed), EventKind::Rescaled)[0] - 300.0);
    delays.sum::<f64>() / 20.0
}

#[test]
fn longer_metrics_resolution_delays_autoscalers() {
    let load_of = |more: &str| {
        let step = "load: [{workload: worker, at: 5m, requests: {constant: 16}, service: {cpu_per_request: 10ms, concurrency: 50}}]";
        load("12m", &format!("{step}\n{more}"), &format!("{}{}", cluster(1), on_resource("cpu", 50)), &[])
    };
    let (published, minikube) = (mean_delay(&load_of("")), mean_delay(&load_of("metrics_server: {resolution: 60s}")));
    // The reading's age, its window and the two phases: about a resolution and a half.
    assert!((12.0..35.0).contains(&published), "{published}");
    assert!((30.0..95.0).contains(&(minikube - published)), "{published} {minikube}");
}

#[test]
fn explicit_usage_drives_autoscaler_as_recorded() {
    let rest = "phases: {replica_autoscalers: 9s}\nexternal_metrics: [{workload: worker, csv: use.csv}]";
    let recorded = "t_seconds,value\n0,50\n300,100\n330,50\n600,20\n";
    let outcome = run("17m", rest, &format!("{}{}", cluster(2), on_resource("cpu", 50)), &[("use.csv", recorded)]);
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
    let steps: Vec<(i64, u32, u32)> = changes(&outcome).iter().map(|step| (step.0, step.2, step.3)).collect();
    // Twice the target at the pass of second 309 and a little; at a fifth of what is requested two do, 300 s later.
    assert_eq!(steps, [(309, 2, 4), (894, 4, 2)], "{steps:?}");
    let value_at = |seconds: i64| {
        let at = SimTime::ZERO + SimDuration::from_secs(seconds);
        outcome.record.samples.iter().rfind(|sample| sample.at <= at).unwrap().metrics[0].value
    };
    assert_eq!([value_at(290), value_at(318), value_at(590), value_at(700)], [50.0, 100.0, 50.0, 20.0].map(Some));
}

#[test]
fn explicit_memory_usage_is_read_without_load() {
    let rest = "phases: {replica_autoscalers: 9s}\nexternal_metrics: [{workload: worker, resource: memory, values: [{at: 0s, fails: \
        true}, {at: 2m, value: 90}]}]";
    let outcome = run("3m", rest, &format!("{}{}", cluster(2), on_resource("memory", 60)), &[]);
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
    let steps: Vec<(u32, u32)> = changes(&outcome).iter().map(|step| (step.2, step.3)).collect();
    // 90 % against 60 % of as many as there are, again and again.
    assert_eq!(steps[..2], [(2, 3), (3, 5)], "{steps:?}");
    let failure = outcome.record.events.iter().find(|event| event.kind == EventKind::RescaleFailed).unwrap();
    assert!(failure.message.contains("the scenario says that reading it fails"), "{}", failure.message);
}

#[test]
fn phase_and_usage_errors_show_place_and_help() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("scenario.yaml");
    std::fs::write(directory.path().join("manifests.yaml"), cluster(1)).unwrap();
    let mut report = String::new();
    for mistake in [
        "phases: {replica_autoscalers: 15s}",
        "phases: {metrics_server: 20s}",
        "metrics_server: {resolution: 5s}",
        "metrics_server: {resolution: 1h}",
        "external_metrics: [{workload: wroker, values: [{at: 0s, value: 4}]}]",
        "external_metrics: [{workload: worker, metric: depth, values: [{at: 0s, value: 4}]}]",
        "external_metrics: [{workload: worker, values: [{at: 0s, value: 4}], csv: use.csv}]",
        "external_metrics: [{workload: worker, resource: disk, values: [{at: 0s, value: 4}]}]",
    ] {
        let text = format!("name: test\nregion: us-east-1\nduration: 1h\nmanifests: [manifests.yaml]\n{mistake}\n");
        std::fs::write(&path, text).unwrap();
        let error = nodecast::scenario::load(&path).unwrap_err().render();
        let error = error.replace(&format!("{}/", directory.path().display()), "");
        assert!(error.contains("help:") && error.contains("scenario.yaml:5:"), "{mistake}: {error}");
        report.push_str(&error);
        report.push('\n');
    }
    insta::assert_snapshot!("mistakes_in_phases_and_stated_use", report);
}

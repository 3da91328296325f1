//! What saved answers of a Prometheus come to. The figures are those that were put into the day: tests/data/shop-prod/README.md.

#![allow(clippy::unwrap_used)] // a test that cannot set itself up has failed wherever that happens

use std::path::{Path, PathBuf};

use nodecast_observed::observation::{Grade, Observation};
use nodecast_observed::prometheus::{Answers, import};

fn shop_prod() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/shop-prod")
}

fn imported() -> Observation {
    import(&Answers::read(&shop_prod()).unwrap()).unwrap()
}

#[track_caller]
fn near(value: Option<f64>, expected: f64, within: f64) {
    let value = value.unwrap();
    assert!((value - expected).abs() <= within, "{value} is not {expected} within {within}");
}

#[test]
fn demand_is_what_was_put_in() {
    let figures = imported().about.figures;
    let of = |name: &str| figures.workloads.iter().find(|workload| workload.workload == name).unwrap().clone();
    let (web, api) = (of("shop/web"), of("shop/api"));
    near(web.requests_per_second, 158.1, 0.1);
    near(api.requests_per_second, 71.9, 0.1);
    // 26 and 15 ms were put in: a rate loses what a new pod does before its second scrape.
    near(web.cpu_per_request_seconds, 0.025_84, 5e-6);
    near(api.cpu_per_request_seconds, 0.014_90, 5e-6);
    assert_eq!(web.cpu_per_request_by.as_deref(), Some("rate"));
    assert_eq!(web.requests_from.as_deref(), Some("web"));
}

#[test]
fn nodes_and_launches_are_what_was_put_in() {
    let observation = imported();
    let figures = &observation.about.figures;
    // 43.1 from registered to gone; a series lives on for the look-back of 65 s, a sample for each of 22 nodes.
    near(figures.spot_node_hours, 43.1 + 22.0 / 60.0, 0.05);
    near(figures.node_hours, 48.0 + 43.1 + 22.0 / 60.0, 0.05);
    near(figures.launches, 22.0, 0.0);
    let ends: Vec<(&str, i64)> =
        figures.disruptions.iter().map(|disruption| (disruption.reason.as_str(), disruption.nodes as i64)).collect();
    assert_eq!(ends, [("empty", 1), ("spot_interrupted", 1), ("underutilized", 20)]);
    let prices: Vec<&str> =
        observation.spot_prices.iter().flatten().map(|spot_price| spot_price.instance_type.as_str()).collect();
    assert_eq!(prices.len(), 96);
}

#[test]
fn launch_stage_times_use_sums_before_buckets() {
    let stages = imported().about.figures.stages;
    let means: Vec<(&str, String)> =
        stages.iter().map(|stage| (stage.stage.as_str(), format!("{:.2}", stage.mean_seconds.unwrap()))).collect();
    let expected = [("Launched", "1.32"), ("Registered", "47.09"), ("Initialized", "60.86")];
    assert_eq!(means, expected.map(|(stage, mean)| (stage, mean.to_owned())));
    near(stages[2].median_seconds, 59.1, 0.05);
    assert!(stages.iter().all(|stage| (stage.launches - 22.0).abs() < 1e-9));
}

#[test]
fn waits_exclude_daemons_and_earlier_pods() {
    let waits = imported().about.figures.waits.unwrap();
    assert_eq!((waits.pods, waits.p50_seconds as i64, waits.p99_seconds as i64), (283, 0, 80));
}

#[test]
fn pods_are_joined_to_their_top_owner() {
    let observation = imported();
    let of = |prefix: &str| observation.pods.iter().flatten().find(|pod| pod.pod.starts_with(prefix)).unwrap();
    assert_eq!(of("report-").workload.as_deref(), Some("shop/report"));
    assert_eq!(of("web-").workload.as_deref(), Some("shop/web"));
    assert_eq!((of("aws-node-").daemon, of("web-").daemon), (Some(true), Some(false)));
}

#[test]
fn what_is_missing_is_named_with_its_remedy() {
    let about = imported().about;
    let missing: Vec<&str> = about.missing.iter().map(|item| item.quantity.as_str()).collect();
    assert_eq!(missing, ["nodes"]);
    assert!(about.quantities.iter().all(|quantity| quantity.grade == Grade::Recorded && quantity.coverage > 0.0));
    let pending = about.quantities.iter().find(|quantity| quantity.quantity == "pending").unwrap();
    assert_eq!((pending.coverage.to_bits(), pending.resolution_seconds), (1.0_f64.to_bits(), 60));
}

#[test]
fn an_observation_is_read_back_to_the_byte() {
    let (folder, again) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let observation = imported();
    observation.write(folder.path()).unwrap();
    let read = Observation::read(folder.path()).unwrap();
    assert_eq!(read, observation);
    read.write(again.path()).unwrap();
    for (name, bytes) in observation.files() {
        assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), bytes, "{name}");
        assert_eq!(std::fs::read(again.path().join(name)).unwrap(), bytes, "{name}");
    }
}

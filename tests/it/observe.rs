//! `nodecast observe`, and scenarios of what was observed: from saved answers to a run with the demand that was put in.

use std::fs;
use std::path::Path;

use nodecast::catalog::Catalog;
use nodecast::simulation::{self, Outcome};
use nodecast_observed::observation::Observation;
use serde_json::Value;

use crate::cli::{Place, assert_fits};

/// The answers of a Prometheus of one day, carried with the crate that reads them.
fn answers() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/observed/tests/data/shop-prod").display().to_string()
}

/// The manifests of that cluster, without nodes.
const DUMP: &str = include_str!("../data/observed/cluster.yaml");

fn observed(place: &Place) -> String {
    place.put("cluster.yaml", DUMP);
    let (out, err, code) =
        place.nodecast(&["observe", "--from", "cluster.yaml", "--answers", &answers(), "--out", "own"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    out
}

#[test]
fn observe_reports_findings_and_missing_data() {
    let place = Place::new();
    let out = observed(&place);
    for line in [
        "observed: 2026-10-13T00:00:00Z to 2026-10-14T00:00:00Z",
        "shop/web                      158    25.84 ms   4.09      14.5",
        "launches: 22; removed: 1 empty, 1 spot_interrupted, 20 underutilized",
        "missing: nodes (needed for when each node came and went)",
        // The dump has no node, and so no region.
        "  nodecast init my-cluster --from cluster.yaml --from own --region REGION\nor of the cluster as it is now:\n  kubectl nodecast init my-cluster --from own",
    ] {
        assert!(out.contains(line), "{line} is not in\n{out}");
    }
    let about: Value = serde_json::from_str(&fs::read_to_string(place.path("own/observation.json")).unwrap()).unwrap();
    assert_eq!(about["figures"]["launches"], 22.0);
    let recorded = Observation::read(&place.path("own")).unwrap();
    for width in [79, 60, 40] {
        let told = |width| nodecast::report::observed::text(&recorded.about, width);
        assert_fits(&told(None), &told(Some(width)), width);
    }
    // No path of a machine, no address: what is written can be handed on.
    assert!(!about.to_string().contains(env!("CARGO_MANIFEST_DIR")));
}

#[test]
fn a_scenario_of_an_observation_replays_its_demand() {
    let place = Place::new();
    observed(&place);
    let (_, err, code) = place.nodecast(&[
        "init",
        "shop",
        "--from",
        "cluster.yaml",
        "--from",
        "own",
        "--region",
        "us-east-1",
        "--karpenter",
        "v1.13",
    ]);
    assert_eq!(code, Some(0), "{err}");
    let scenario = fs::read_to_string(place.path("shop/scenario.yaml")).unwrap();
    for line in [
        "start: 2026-10-13T00:00:00Z",
        "duration: 1d\n",
        "requests: { csv: requests.shop.web.csv }",
        "cpu_per_request: 25.839ms",
    ] {
        assert!(scenario.contains(line), "{line} is not in\n{scenario}");
    }
    let curve = fs::read_to_string(place.path("shop/requests.shop.web.csv")).unwrap();
    assert!(curve.starts_with("t_seconds,requests_per_second\n0,33.648141"), "{}", &curve[..80]);
    // Three hours of the night: what replicas use is what was recorded.
    let arguments = ["run", "shop/scenario.yaml", "--duration", "3h", "--out", "run", "--quiet"];
    let (_, err, code) = place.nodecast(&arguments);
    assert_eq!(code, Some(0), "{err}");
    let run = Observation::read(&place.path("run")).unwrap();
    let mean = |observation: &Observation, until: i64| {
        let states =
            observation.workloads.iter().flatten().filter(|workload| {
                &*workload.workload == "shop/web" && (1_800..until).contains(&workload.at.as_secs())
            });
        let used: Vec<f64> = states.filter_map(|state| state.cpu_used_milli).collect();
        used.iter().sum::<f64>() / used.len() as f64
    };
    let recorded = Observation::read(&place.path("own")).unwrap();
    let (run, recorded) = (mean(&run, 10_800), mean(&recorded, 10_800));
    assert!((run / recorded - 1.0).abs() < 0.05, "{run} against {recorded} thousandths of a CPU");
}

/// A Job of one pod that needs a node of its own and had begun when the dump was made.
const JOB: &str = "---\napiVersion: batch/v1\nkind: Job\nmetadata: {namespace: shop, name: train}\nspec:\n  template:\n    spec:\n      \
    restartPolicy: Never\n      nodeSelector: {tier: batch}\n      tolerations: [{key: batch, operator: Exists}]\n      \
    containers: [{name: train, image: train, resources: {requests: {cpu: '3', memory: 6Gi}}}]\n";

#[test]
fn pods_missing_from_dump_are_replayed() {
    let place = Place::new();
    observed(&place);
    place.put("cluster.yaml", &format!("{DUMP}{JOB}"));
    let recorded = "pod,workload,daemon,cpu_request_milli,memory_request_bytes,created_seconds,started_seconds,deletion_requested_seconds,removed_seconds\n\
        etl-1-a,etl/etl-1,false,500,1073741824,-60,-30,,90\n\
        etl-2-a,etl/etl-2,false,500,1073741825,60,70,,130\n\
        etl-0-a,etl/etl-0,false,500,1073741824,-600,-590,,-10\n\
        train-x,shop/train,false,,,3600,3700,,7300\n\
        spark-1,etl/spark,false,1000,2147483648,30,40,50,55\n\
        idle-1,etl/idle,false,1000,2147483648,20,,,\n\
        agent-1,logs/agent,true,100,100,10,20,,\n\
        bare-1,etl/bare,false,,,10,20,,\n\
        report-28847520-a,shop/report-28847520,false,100,100,10,20,,30\n\
        web-1,shop/web,false,500,100,10,20,,\n";
    place.put("own/pods.csv", recorded);
    let placements = "pod,namespace,gpus,node_selector,tolerations\n\
        etl-1-a,etl,1,kubernetes.io/arch=amd64,gpu:NoSchedule;team=ml\n\
        idle-1,etl,,,\"odd,ly\"\n\
        etl-2-a,other,4,,*\n\
        train-x,shop,8,,*\n";
    place.put("own/placements.csv", placements);
    let arguments =
        ["init", "shop", "--from", "cluster.yaml", "--from", "own", "--region", "us-east-1", "--karpenter", "v1.13"];
    let (_, err, code) = place.nodecast(&arguments);
    assert_eq!(code, Some(0), "{err}");
    assert!(
        err.contains("2 workloads were observed of which the dump has nothing, so nobody runs them: etl/bare (1 pod), logs/agent (1 pod)"),
        "{err}"
    );
    let trace = fs::read_to_string(place.path("shop/recorded.csv")).unwrap();
    let rows: Vec<&str> = trace.lines().skip(1).collect();
    assert_eq!(
        rows,
        [
            "0,90,,etl-1-a,500,1024,1,kubernetes.io/arch=amd64,gpu:NoSchedule;team=ml,",
            "20,,,idle-1,1000,2048,,,\"odd,ly\",",
            "30,,50,spark-1,1000,2048,,,,",
            "60,60,,etl-2-a,500,1025,,,,",
            "3600,3600,,train-x,3000,6144,0,tier=batch,batch,0",
        ]
    );
    let scenario = fs::read_to_string(place.path("shop/scenario.yaml")).unwrap();
    assert!(scenario.contains("  csv: recorded.csv\n  namespace: etl\n"), "{scenario}");
    // How long pods of a CronJob ran, and nothing of a moment that is not replayed.
    assert!(scenario.contains("  - { name: shop/report, run_time: 10s }     # of 1\n"), "{scenario}");
    for part in ["nothing was measured", "lastHeartbeatTime", "To hold the first run against"] {
        assert!(!scenario.contains(part), "{part} is in\n{scenario}");
    }
    assert!(scenario.contains("5 pods of 5 workloads that the dump does not have are replayed"), "{scenario}");
    let asked = "2 of them ask of their node what was recorded (placements.csv), which holds no affinity. Which nodes 2 of them required or tolerated is not recorded";
    assert!(scenario.replace("\n# ", " ").replace("\n#   ", " ").contains(asked), "{scenario}");
    assert!(!fs::read_to_string(place.path("shop/workloads.yaml")).unwrap().contains("name: train"));
    let (_, err, code) = place.nodecast(&["run", "shop/scenario.yaml", "--duration", "10m", "--out", "run", "--quiet"]);
    assert_eq!(code, Some(0), "{err}");
    let pods = fs::read_to_string(place.path("run/pods.csv")).unwrap();
    assert!(pods.lines().any(|line| line.starts_with("etl-2-a,")), "{pods}");
}

#[test]
fn init_warns_of_tables_that_observation_lacks() {
    let place = Place::new();
    observed(&place);
    let arguments =
        ["init", "shop", "--from", "cluster.yaml", "--from", "own", "--region", "us-east-1", "--karpenter", "v1.13"];
    let (_, err, code) = place.nodecast(&arguments);
    assert!(code == Some(0) && !err.contains("the observation has no"), "{err}");
    for name in ["pods.csv", "nodes.csv", "node_counts.csv"] {
        let _ = fs::remove_file(place.path("own").join(name));
    }
    fs::remove_dir_all(place.path("shop")).unwrap();
    let (_, err, code) = place.nodecast(&arguments);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("no nodes (`nodes.csv`, `node_counts.csv`)") && err.contains("no pods (`pods.csv`)"), "{err}");
}

#[test]
fn init_rejects_observation_without_dump() {
    let place = Place::new();
    observed(&place);
    let (_, err, code) = place.nodecast(&["init", "shop", "--from", "own"]);
    assert!(code == Some(2) && err.contains("an observation has no manifests"), "{err}");
    let (_, err, code) = place.nodecast(&["init", "shop", "--from", "cluster.yaml", "--from", "own", "--from", "own"]);
    assert!(code == Some(2) && err.contains("only one observation can be used"), "{err}");
    assert!(!place.path("shop").exists());
}

#[test]
fn queries_print_as_script_and_list() {
    let place = Place::new();
    let window = ["--from", "2026-10-13T00:00:00Z", "--to", "2026-10-14T00:00:00Z", "--match", "cluster=\"x\""];
    let (script, err, code) = place.nodecast(&[&["observe", "queries"], &window[..]].concat());
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert!(
        script.starts_with("#!/bin/sh\n") && script.contains("ask owners.json 1791853200 1791936000 3600 '"),
        "{script}"
    );
    let (list, _, _) = place.nodecast(&[&["observe", "queries", "--format", "json"], &window[..]].concat());
    let list: Value = serde_json::from_str(&list).unwrap();
    let all = list.as_array().unwrap();
    assert!(all.len() > 60 && all.iter().all(|item| item["query"].as_str().unwrap().contains("cluster=\"x\"")));
    let (_, err, code) = place.nodecast(&["observe", "queries", "--match", "cluster"]);
    assert!(code == Some(2) && err.contains("`cluster` is not a matcher"), "{err}");
}

#[test]
fn nothing_is_asked_unless_somebody_is_named() {
    let place = Place::new();
    let (_, err, code) = place.nodecast(&["observe", "--out", "own"]);
    assert!(code == Some(2) && err.contains("pass --prometheus or --answers"), "{err}");
    let (_, err, code) = place.nodecast(&["observe", "--answers", "nowhere", "--out", "own"]);
    assert!(code == Some(2) && err.contains("cannot read nowhere/queries.json"), "{err}");
    assert!(!place.path("own").exists());
}

const CORES: &str = "name: cores\nregion: us-east-1\nstart: 2026-07-10T00:00:00Z\nduration: 40m\nmanifests: [m.yaml]\n\
    nodeGroups: [{ name: a, instanceTypes: [m6i.4xlarge], min: 2, desired: 2, max: 2 }]\n\
    load: [{ workload: web, at: 5m, cpu: { csv: cores.csv } }]\npolicies: [{ name: p, autoscaler: static }]\n";
const WEB: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 1\n  \
    selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      \
    containers: [{name: app, image: app, resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: '1'}}}]\n---\n\
    apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  \
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n  minReplicas: 1\n  maxReplicas: 20\n  \
    metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]\n";

/// The states of the only workload under a load in cores, with this change.
fn under_cores(set: &[&str]) -> (Outcome, Vec<(i64, u32, f64)>) {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("scenario.yaml", CORES);
    write("m.yaml", WEB);
    write("cores.csv", "t_seconds,cores\n0,1\n600,2\n1200,2\n");
    let edits: Vec<_> = set.iter().map(|text| nodecast::scenario::Edit::parse(text).unwrap()).collect();
    let catalog = Catalog::embedded().unwrap();
    let limits = nodecast::scenario::Limits::default();
    let path = folder.path().join("scenario.yaml");
    let (scenario, warnings) = nodecast::scenario::load_edited(&path, catalog, &limits, &edits).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let policy = scenario.for_policy(None).unwrap();
    let outcome = simulation::run(&scenario, policy, catalog, 1, &mut |_| {}).unwrap();
    let states = outcome.record.samples.iter().map(|sample| {
        let workload = &sample.workloads[0];
        (sample.at.as_secs(), workload.replicas_ready, workload.cpu_used_milli)
    });
    let states = states.collect();
    (outcome, states)
}

#[test]
fn core_demand_is_shared_by_hpa_replicas() {
    let (outcome, states) = under_cores(&[]);
    let at = |second: i64| states.iter().rev().find(|state| state.0 <= second).copied().unwrap();
    // One core at half of 500m each is four pods, two cores are eight.
    assert_eq!((at(840).1, at(840).2.round() as i64), (4, 1_000));
    assert_eq!((at(1_680).1, at(1_680).2.round() as i64), (8, 2_000));
    assert!(outcome.requests.is_empty(), "nobody asks for anything");
    // Before the autoscaler has acted, one pod uses what its limit leaves it.
    assert!(states.iter().all(|state| state.2 <= f64::from(state.1) * 1_000.0 + 0.5), "{states:?}");
}

#[test]
fn a_star_scales_all_loads_at_once() {
    let (outcome, states) = under_cores(&["load[*].cpu.scale=2"]);
    // While the autoscaler catches up, pods are at their limits.
    assert!(outcome.warnings.iter().any(|text| text.contains("replicas were short of CPU")), "{:?}", outcome.warnings);
    let at = |second: i64| states.iter().rev().find(|state| state.0 <= second).copied().unwrap();
    assert_eq!((at(840).1, at(840).2.round() as i64), (8, 2_000));
}

#[test]
fn smooth_core_demand_warns_unlike_bursts() {
    let smooth = "load[0].cpu={diurnal: {night: 1, peak: 2}}";
    let warned = |set: &[&str]| under_cores(set).0.warnings.iter().any(|text| text.contains("smooth curve"));
    assert!(warned(&[smooth]));
    assert!(!warned(&[]), "the recorded curve doubles at once");
    assert!(!warned(&[smooth, "load[*].requests.uncertainty={noise: 10%}"]), "noise is stated");
}

//! What is moved on purpose is found again; what is fitted takes the place of defaults and of nothing else.

use std::fs;

use nodecast::domain::SimDuration;
use nodecast::domain::Symbol;
use nodecast::domain::workload::ObjectName;
use nodecast::evidence::calibration::{Difference, Effect};
use nodecast::evidence::presentation::calibration;
use nodecast::program::calibrate::{Calibrate, Request};
use nodecast::report::Summary;
use nodecast::scenario::error::Render;
use nodecast::scenario::{Limits, Scenario};
use serde_json::Value as Json;

use crate::cli::{Place, assert_fits};

/// Thirty pods that fill a node each, ten at once and twenty one by one, so that there are thirty boots; images of several sizes.
const WORK: &str = "\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: kube-system}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: agent, image: agent, resources: {requests: {cpu: 50m}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: web
          resources: {requests: {cpu: 1500m, memory: 256Mi}}
          readinessProbe: {httpGet: {path: /, port: 80}, periodSeconds: 1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: shop}
spec:
  replicas: 10
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers: [{name: api, image: api, resources: {requests: {cpu: 1500m, memory: 256Mi}}}]
";

const SCENARIO: &str = "\
name: moved
region: us-east-1
duration: 20m
seed: 3
manifests: [cluster.yaml]
images: { sizes: { agent: 230M, web: 610M, api: 170M } }
";

/// Boots 1.4 times as long, images that come more slowly, an application that takes its time, and slow calls.
const MOVED: [&str; 8] = [
    "--set",
    "ec2.launch_latency={vm_init: 15.4s, os_boot: 8.4s, bootstrap: 15.4s, register: 2.8s}",
    "--set",
    "images.pull_rate=50M",
    "--set",
    "workloads=[{name: shop/web, start_time: 17s}]",
    "--set",
    "ec2.times.fleet_call_median=2s",
];

fn place() -> Place {
    let place = Place::new();
    place.put("cluster.yaml", WORK);
    place.put("scenario.yaml", &scenario(""));
    place
}

/// The scenario, with further keys.
fn scenario(more: &str) -> String {
    let mut text = format!("{SCENARIO}{more}timeline:\n");
    for step in 1..=20 {
        text += &format!("  - {{ at: {}s, scale: {{ workload: shop/web, replicas: {step} }} }}\n", step * 45);
    }
    text
}

fn run(place: &Place, edits: &[&str], out: &str) {
    let (_, err, code) = place.nodecast(&[&["run", "scenario.yaml", "--quiet", "--out", out], edits].concat());
    assert_eq!(code, Some(0), "{err}");
}

fn parameters(place: &Place, from: &str) -> Vec<Json> {
    let arguments = ["calibrate", "scenario.yaml", "--from", from, "--no-effects", "--quiet", "--format", "json"];
    let (out, err, code) = place.nodecast(&arguments);
    assert_eq!(code, Some(0), "{err}");
    let answer: Json = serde_json::from_str(&out).unwrap();
    answer["parameters"].as_array().unwrap().clone()
}

/// What is assumed of a parameter, its interval, and whether it is taken.
fn parameter(parameters: &[Json], name: &str) -> (f64, (f64, f64), String) {
    let one = parameters.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {parameters:#?}"));
    let number = |value: &Json| value.as_f64().unwrap();
    let interval = (number(&one["measured"]["low"]), number(&one["measured"]["high"]));
    (number(&one["assumed"]), interval, one["taken"].as_str().unwrap().to_owned())
}

fn holds(interval: (f64, f64), value: f64) -> bool {
    (interval.0..=interval.1).contains(&value)
}

/// What `calibrate` prints of an observation of half an hour with these pods, whose CPU grows with requests.
fn calibrated(pods: Option<&str>) -> (String, Json) {
    let place = place();
    let about = r#"{"window": {"start": "2026-10-20T00:00:00Z", "seconds": 1800}}"#;
    fs::create_dir(place.path("own")).unwrap();
    place.put("own/observation.json", about);
    let mut loads = "at_seconds,workload,replicas_ready,requests_per_second,cpu_used_milli\n".to_owned();
    for minute in 0..30 {
        loads += &format!("{},shop/api,2,{},{}\n", minute * 60, 20 + minute, (20 + minute) * 15);
    }
    place.put("own/workloads.csv", &loads);
    if let Some(rows) = pods {
        place.put("own/pods.csv", &format!("pod,workload,created_seconds,started_seconds\n{rows}"));
    }
    let arguments = ["calibrate", "scenario.yaml", "--from", "own", "--no-effects", "--format"];
    let asked = |format: &str| {
        let (out, err, code) = place.nodecast(&[&arguments[..], &[format]].concat());
        assert_eq!(code, Some(0), "{err}");
        out
    };
    (asked("table"), serde_json::from_str(&asked("json")).unwrap())
}

#[test]
fn unrecorded_pods_leave_cpu_share_open() {
    let unknown = "starts of pods are not recorded, so its share is unknown";
    let (text, json) = calibrated(None);
    assert!(
        text.contains(unknown) && text.contains("not recorded, so not fitted: nodes, pods, capacity errors"),
        "{text}"
    );
    assert_eq!(json["not_recorded"], serde_json::json!(["nodes", "pods", "capacity errors"]));
    // No pod started in the window.
    let (text, json) = calibrated(Some(""));
    assert!(!text.contains(unknown) && !text.contains("second sample"), "{text}");
    assert_eq!(json["not_recorded"], serde_json::json!(["nodes", "capacity errors"]));
    let (text, _) = calibrated(Some("api-1,shop/api,600,610\n"));
    assert!(text.contains("1.7% more, which pods use before their second sample"), "{text}");
}

#[test]
fn calibration_finds_only_changed_parameters() {
    let place = place();
    run(&place, &MOVED, "run");
    let found = parameters(&place, "run");
    let (assumed, boots, taken) = parameter(&found, "launched to registered");
    assert!(holds(boots, assumed * 1.4) && !holds(boots, assumed), "{boots:?}, {assumed} assumed");
    assert_eq!(taken, "measured");
    let (assumed, network, _) = parameter(&found, "registered to network ready");
    assert!(holds(network, assumed), "{network:?}, {assumed} assumed");
    let (assumed, pulls, taken) = parameter(&found, "images pulled per second");
    assert!(holds(pulls, 50e6) && !holds(pulls, assumed), "{pulls:?}, {assumed} assumed");
    assert_eq!(taken, "measured");
    let (_, start, _) = parameter(&found, "start of shop/web");
    assert!(holds(start, 17.0), "{start:?}");
    let (assumed, call, _) = parameter(&found, "CreateFleet call");
    assert!(holds(call, 2.0) && !holds(call, assumed), "{call:?}, {assumed} assumed");
}

/// What is fitted to a record, and what it changes, in lines of as many characters as a terminal has.
fn no_line_is_wider_than_the_terminal(place: &Place, record: &str) {
    let fitted = Calibrate::load(&Request {
        scenario: place.path("scenario.yaml"),
        from: vec![place.path(record)],
        since: None,
        until: None,
        pricing_data: None,
    });
    let fitted = fitted.unwrap_or_else(|failure| panic!("{failure:?}"));
    let table = |width| calibration::table(&fitted.calibration, &fitted.history, width);
    let difference = Difference { before: 10.0, change: 1.5, interval: None };
    let figures = [("cost", difference), ("pending_p99", difference)].into_iter().collect();
    let effects = [Effect { parameter: "launched to registered".to_owned(), figures }];
    let effects = |width| calibration::effects(&effects, "on-demand", "USD", 3, width);
    for width in [70, 60, 40] {
        assert_fits(&table(None), &table(Some(width)), width);
        assert_fits(&effects(None), &effects(Some(width)), width);
    }
}

#[test]
fn calibration_reads_boot_times_from_sums() {
    let place = place();
    let launched = "stage,up_to_seconds,launches,seconds\nLaunched,,40,60\nLaunched,2,38,\n";
    place.put("record/observation.json", r#"{ "window": { "start": "2026-06-01T00:00:00Z", "seconds": 86400 } }"#);
    place.put("record/nodes.csv", "node,instance_type,registered_seconds\na,m5.large,120\n");
    // Until registered the model has 31 s in the mean of such nodes: 40 nodes that took 44 s after a call of 1.5 s.
    place
        .put("record/stages.csv", &format!("{launched}Registered,,40,1820\nRegistered,64,40,\nInitialized,,40,2300\n"));
    let found = parameters(&place, "record");
    let (assumed, boots, taken) = parameter(&found, "launched to registered");
    assert!(holds(boots, assumed * 1.42) && !holds(boots, assumed), "{boots:?}, {assumed} assumed");
    assert!(boots.1 / boots.0 < 1.3 && taken == "measured", "{boots:?}, {taken}");
    let named: Vec<&str> = found.iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(named.contains(&"registered to initialized"), "{named:?}");
    no_line_is_wider_than_the_terminal(&place, "record");
    // Launches that came nowhere tell nothing.
    place.put("record/stages.csv", launched);
    let named = parameters(&place, "record");
    assert!(named.iter().all(|one| one["name"] != "launched to registered"), "{named:?}");
}

#[test]
fn observed_pods_ran_until_containers_ended() {
    let place = place();
    let job = "---\napiVersion: batch/v1\nkind: Job\nmetadata: {namespace: shop, name: etl}\nspec:\n  template:\n    spec:\n      \
        restartPolicy: Never\n      containers: [{name: etl, image: etl, resources: {requests: {cpu: '1'}}}]\n";
    place.put("cluster.yaml", &format!("{WORK}{job}"));
    place.put("record/observation.json", r#"{ "window": { "start": "2026-06-01T00:00:00Z", "seconds": 86400 } }"#);
    let mut pods =
        String::from("pod,workload,created_seconds,started_seconds,deletion_requested_seconds,removed_seconds\n");
    (0..30).for_each(|number| pods += &format!("etl-{number},shop/etl,0,10,,{}\n", 550 + number % 3));
    // One that was asked to go had not ended.
    pods += "etl-x,shop/etl,0,10,20,30\n";
    place.put("record/pods.csv", &pods);
    let found = parameters(&place, "record");
    let (assumed, run, taken) = parameter(&found, "run of shop/etl");
    assert!(
        holds((59.9, 60.1), assumed) && holds(run, 541.0) && run.1 - run.0 <= 2.0 && taken == "measured",
        "{assumed} {run:?}"
    );
    // Whether they failed is not told.
    assert!(found.iter().all(|one| one["name"] != "failures of shop/etl"), "{found:#?}");
    let calibrate =
        |more: &[&str]| place.nodecast(&[&["calibrate", "scenario.yaml", "--from", "record"], more].concat());
    let (_, err, code) = calibrate(&["--since", "2026-06-01T00:00:00Z", "--until", "2026-06-01T12:00:00Z"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("cannot be taken apart") && err.contains("--window 2d"), "{err}");
    let whole = ["--since", "2026-06-01T00:00:00Z", "--until", "2026-06-02T00:00:00Z", "--no-effects", "--quiet"];
    let (_, err, code) = calibrate(&whole);
    assert_eq!(code, Some(0), "{err}");
}

#[test]
fn calibration_uses_reclaims_counted_by_karpenter() {
    let place = place();
    place.put("record/observation.json", r#"{ "window": { "start": "2026-06-01T00:00:00Z", "seconds": 86400 } }"#);
    let mut nodes =
        String::from("node,instance_type,zone,capacity_type,origin_kind,registered_seconds,terminated_seconds\n");
    (0..100).for_each(|number| nodes += &format!("n{number},m5.large,us-east-1a,spot,NodePool,3600,82800\n"));
    nodes += "managed,m5.large,us-east-1a,spot,NodeGroup,3600,82800\n";
    place.put("record/nodes.csv", &nodes);
    // Without counters nobody knows why a node ended: not even that none was taken.
    let is_told = |found: &[Json]| found.iter().any(|one| one["name"] == "reclaims of a running Spot instance");
    assert!(!is_told(&parameters(&place, "record")));
    let counts = "at_seconds,what,node_pool,capacity_type,reason,count\n3600,launched,default,spot,provisioned,100\n";
    place.put("record/counts.csv", counts);
    let found = parameters(&place, "record");
    let (_, none, _) = parameter(&found, "reclaims of a running Spot instance");
    // No event in 2,200 hours: the rate that would show none once in twenty times, -ln 0.05 in that time.
    assert!(none.0.abs() < 1e-9 && (none.1 - 2.995_732 / 2_200.0).abs() < 1e-8, "{none:?}");
    let reclaims = "7200,disrupted,default,spot,spot_interrupted,20\n14400,disrupted,default,spot,spot_interrupted,2\n\
        14400,disrupted,default,spot,underutilized,70\n7200,interruption messages,,,spot_interrupted,25\n";
    place.put("record/counts.csv", &format!("{counts}{reclaims}"));
    let found = parameters(&place, "record");
    let one = found.iter().find(|one| one["name"] == "reclaims of a running Spot instance").unwrap();
    assert_eq!((one["measured"]["value"].as_f64(), &one["from"]), (Some(0.01), &"22 reclaims in 2200.0 h".into()));
    // Twenty of them came at once: the interval is as wide as that of one or two.
    let (_, interval, _) = parameter(&found, "reclaims of a running Spot instance");
    assert!(interval.1 / interval.0 > 10.0, "{interval:?}");
}

/// A Spot claim as a list or a watch shows it, launched the day before.
fn spot_claim(name: &str, deleted: Option<&str>) -> String {
    let deleted = deleted.map_or_else(String::new, |at| format!(r#","deletionTimestamp":"{at}""#));
    format!(
        r#"{{"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","metadata":{{"name":"{name}","creationTimestamp":"2026-10-12T00:00:00Z"{deleted},"labels":{{"karpenter.sh/capacity-type":"spot","node.kubernetes.io/instance-type":"m5.large","topology.kubernetes.io/zone":"us-east-1a"}}}},"status":{{"conditions":[{{"type":"Launched","status":"True","lastTransitionTime":"2026-10-12T00:00:02Z"}}]}}}}"#
    )
}

/// A list of events, each of a kind of object with its name, a reason and an instant of one morning.
fn event_list(events: &[(&str, &str, &str, &str)]) -> String {
    let one = |(kind, name, reason, at): &(&str, &str, &str, &str)| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Event","metadata":{{"name":"e","namespace":"shop"}},"involvedObject":{{"kind":"{kind}","name":"{name}","namespace":"shop"}},"reason":"{reason}","message":"","firstTimestamp":"2026-10-13T{at}Z","lastTimestamp":"2026-10-13T{at}Z"}}"#
        )
    };
    let items: Vec<String> = events.iter().map(one).collect();
    format!(r#"{{"apiVersion":"v1","kind":"List","items":[{}]}}"#, items.join(","))
}

/// The reclaims that are found in half a day, by what they are of, and what is warned of.
fn reclaims_of(place: &Place, from: &str) -> (Option<String>, String) {
    let window = ["--since", "2026-10-13T00:00:00Z", "--until", "2026-10-13T12:00:00Z"];
    let arguments = ["calibrate", "scenario.yaml", "--from", from, "--no-effects", "--quiet", "--format", "json"];
    let (out, err, code) = place.nodecast(&[&arguments[..], &window].concat());
    assert_eq!(code, Some(0), "{err}");
    let answer: Json = serde_json::from_str(&out).unwrap();
    let parameters = answer["parameters"].as_array().unwrap();
    let one = parameters.iter().find(|one| one["name"] == "reclaims of a running Spot instance");
    (one.map(|one| one["from"].as_str().unwrap().to_owned()), format!("{}{err}", answer["warnings"]))
}

#[test]
fn reclaim_exposure_needs_node_end_reasons() {
    let place = place();
    let mut watch = String::new();
    for number in 0..10 {
        let name = format!("c{number}");
        watch += &format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", spot_claim(&name, None));
    }
    // Six were taken one after the other; the events of the first five are gone.
    for number in 0..6 {
        let at = format!("2026-10-13T{:02}:30:00Z", number * 2);
        let object = spot_claim(&format!("c{number}"), Some(&at));
        watch += &format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n");
    }
    place.put("records/claims.jsonl", &watch);
    let hour = |taken: &str| {
        event_list(&[
            ("Node", "n1", "Starting", "10:04:00"),
            ("NodeClaim", taken, "SpotInterrupted", "10:30:00"),
            ("NodeClaim", taken, "TerminatingOnInterruption", "10:30:00"),
            ("Node", "n2", "NodeReady", "10:56:00"),
        ])
    };
    place.put("records/events.json", &hour("c5"));
    let (found, said) = reclaims_of(&place, "records");
    // Four for 52 minutes, and one for half of them.
    assert_eq!(found.as_deref(), Some("1 reclaim in 3.9 h"), "{said}");
    assert!(said.contains("for 3.9 h of the 81.0 h of Spot instances"), "{said}");
    // A list has no claim that was taken: its event alone tells of it.
    let left: Vec<String> = (6..10).map(|number| spot_claim(&format!("c{number}"), None)).collect();
    place.put("list/claims.json", &format!(r#"{{"apiVersion":"v1","kind":"List","items":[{}]}}"#, left.join(",")));
    place.put("list/events.json", &hour("c5"));
    assert_eq!(reclaims_of(&place, "list").0.as_deref(), Some("1 reclaim in 3.9 h"));
    // Events of pods say nothing of nodes.
    let pods = [("Pod", "web-1", "Started", "00:10:00"), ("Pod", "web-1", "Killing", "11:50:00")];
    place.put("list/events.json", &event_list(&pods));
    let (found, said) = reclaims_of(&place, "list");
    assert_eq!(found, None);
    assert!(said.contains("no source says why nodes ended"), "{said}");
}

#[test]
fn pod_list_gives_no_pull_rate() {
    let place = place();
    let pod = |number: usize, ready: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"web-{number}","namespace":"shop","creationTimestamp":"2026-10-01T00:00:00Z","labels":{{"pod-template-hash":"x"}},"ownerReferences":[{{"kind":"ReplicaSet","name":"web-x"}}]}},"spec":{{"nodeName":"n{number}"}},"status":{{"phase":"Running","conditions":[{{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-10-01T00:00:01Z"}},{{"type":"Ready","status":"True","lastTransitionTime":"{ready}"}}],"containerStatuses":[{{"restartCount":0,"state":{{"running":{{"startedAt":"2026-10-01T00:00:20Z"}}}}}}]}}}}"#
        )
    };
    let list = |ready: &str| {
        let pods: Vec<String> = (0..12).map(|number| pod(number, ready)).collect();
        format!(r#"{{"apiVersion":"v1","kind":"List","items":[{}]}}"#, pods.join(","))
    };
    place.put("pods.json", &list("2026-10-01T00:00:32Z"));
    let found = parameters(&place, "pods.json");
    let (_, start, taken) = parameter(&found, "start of shop/web");
    assert!(holds(start, 12.0) && taken == "measured", "{start:?}");
    assert!(found.iter().all(|one| one["name"] != "images pulled per second"), "{found:#?}");
    place.put("pods.json", &list("2026-10-12T08:30:00Z"));
    let found = parameters(&place, "pods.json");
    assert!(found.iter().all(|one| one["name"] != "start of shop/web"), "{found:#?}");
    let (out, err, _) = place.nodecast(&["calibrate", "scenario.yaml", "--from", "pods.json", "--no-effects"]);
    assert!(format!("{out}{err}").contains("12 pods came to Ready again"), "{out}{err}");
}

#[test]
fn unchanged_parameters_keep_assumed_values() {
    let place = place();
    run(&place, &[], "run");
    let found = parameters(&place, "run");
    for name in
        ["launched to registered", "registered to network ready", "images pulled per second", "CreateFleet call"]
    {
        let (assumed, interval, _) = parameter(&found, name);
        assert!(holds(interval, assumed), "{name}: {interval:?}, {assumed} assumed");
    }
}

fn load(place: &Place) -> Scenario {
    let catalog = nodecast::catalog::Catalog::embedded().unwrap();
    let loaded = nodecast::scenario::load_with(&place.path("scenario.yaml"), catalog, &Limits::default());
    loaded.unwrap_or_else(|error| panic!("{}", error.render())).0
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn calibration_replaces_defaults_but_not_explicit_settings() {
    let place = place();
    run(&place, &MOVED, "run");
    let arguments = ["calibrate", "scenario.yaml", "--from", "run", "--replications", "2", "--threads", "1"];
    let (table, err, code) = place.nodecast(&arguments);
    assert_eq!(code, Some(0), "{err}");
    assert!(table.contains("\nparameter ") && table.contains("launched to registered"), "{table}");
    assert!(table.contains("effect of each value alone, compared with"), "{table}");
    assert!(err.contains("add `calibration: calibration.yaml` to the scenario"), "{err}");
    let fragment = fs::read_to_string(place.path("calibration.yaml")).unwrap();
    assert!(fragment.contains("# in place of 11s") && !fragment.contains("requests"), "{fragment}");

    let stated = "ec2: { launch_latency: { os_boot: 5s } }\n";
    place.put("scenario.yaml", &scenario(&format!("{stated}calibration: calibration.yaml\n")));
    let scenario = load(&place);
    let stages = scenario.ec2.launch_latency.unwrap();
    assert!((stages.os_boot - 5.0).abs() < 1e-9 && (13.0..18.0).contains(&stages.vm_init), "{stages:?}");
    assert!((45_000_000..55_000_000).contains(&scenario.images.pull_rate));
    assert_eq!(scenario.images.size_of(Symbol::new("web")), 610_000_000);
    let web = ObjectName { namespace: Symbol::new("shop"), name: Symbol::new("web") };
    assert_eq!(scenario.times[&web].start_time, SimDuration::from_secs(17));
    assert_eq!(scenario.inputs[1].path, "calibration.yaml");
    let calibrated = scenario.calibrated.unwrap();
    assert!(calibrated.measured.contains(&"images.pull_rate".to_owned()), "{calibrated:?}");
    assert!(calibrated.stated.contains(&"images.sizes".to_owned()), "{calibrated:?}");
    assert!(calibrated.assumed.contains(&"ec2.spot.interruptions".to_owned()), "{calibrated:?}");

    // Reports say so.
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml", "--format", "json", "--out", "with", "--quiet"]);
    assert_eq!(code, Some(0), "{err}");
    let summary: Summary = serde_json::from_str(&out).unwrap();
    assert!(
        summary.about.assumptions.iter().any(|line| line.starts_with("Measured on a cluster, by calibration.yaml"))
    );
    assert_eq!(summary.about.calibration, Some(calibrated));
    let keys: Json = serde_json::from_str(&out).unwrap();
    assert!(keys["about"]["calibration"]["shrunk"].is_array());
    let page = fs::read_to_string(place.path("with/report.html")).unwrap();
    assert!(page.contains("values measured"), "the page does not say what was measured");
    let (table, _, _) = place.nodecast(&["run", "scenario.yaml", "--out", "with", "--quiet"]);
    assert!(table.contains("\nCalibration: ") && table.contains("values measured"), "{table}");

    // Calibrating again looks at what the scenario assumes without it, and replaces the file; edits choose another or none.
    let (assumed, _, _) = parameter(&parameters(&place, "run"), "images pulled per second");
    assert!((assumed - 80e6).abs() < 1.0, "{assumed}");
    let (_, err, code) = place.nodecast(&["run", "scenario.yaml", "--set", "calibration=none.yaml"]);
    assert!(code == Some(2) && err.contains("none.yaml"), "{err}");
}

#[test]
fn equal_records_make_equal_fragments() {
    let place = place();
    run(&place, &[], "run");
    let once = |out: &str| {
        let arguments = ["calibrate", "scenario.yaml", "--from", "run", "--no-effects", "--quiet", "--out", out];
        let (table, err, code) = place.nodecast(&arguments);
        assert_eq!(code, Some(0), "{err}");
        (table, fs::read(place.path(out)).unwrap())
    };
    assert_eq!(once("one.yaml"), once("two.yaml"));
}

#[test]
fn unusable_calibration_input_writes_nothing() {
    let place = place();
    place.put("mine.yaml", "kept: true\n");
    place.put("foreign.json", "{\"status\": \"success\", \"data\": {}}\n");
    place.put("cut.json", "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{\"kind\": \"Nod");
    place.put("empty.json", "");
    let mut told = String::new();
    for (from, out) in [
        ("foreign.json", "new.yaml"),
        ("cut.json", "new.yaml"),
        ("empty.json", "new.yaml"),
        ("no-such", "new.yaml"),
        ("foreign.json", "mine.yaml"),
    ] {
        let (answer, err, code) = place.nodecast(&["calibrate", "scenario.yaml", "--from", from, "--out", out]);
        assert_eq!((answer.as_str(), code), ("", Some(2)), "{err}");
        told += &err;
    }
    assert!(!place.path("new.yaml").exists());
    assert_eq!(fs::read_to_string(place.path("mine.yaml")).unwrap(), "kept: true\n");
    place.put("scenario.yaml", &scenario("calibration: bad.yaml\n"));
    for bad in [
        "policies: [{ name: other }]\n",
        "ec2: { failures: { abort: often } }\n",
        "grades: { ec2: guessed }\nec2: {}\n",
        "- a list\n",
    ] {
        place.put("bad.yaml", bad);
        let (_, err, code) = place.nodecast(&["run", "scenario.yaml"]);
        assert_eq!(code, Some(2), "{err}");
        told += &err;
    }
    insta::assert_snapshot!(told);
}

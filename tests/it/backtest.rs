//! A forecast held against what was recorded: the record is a run of the program itself, so that the truth is known.

use std::path::{Path, PathBuf};

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime};
use nodecast::evidence::backtest::figures::Window;
use nodecast::evidence::backtest::{History, Verdict, replay, tables};
use nodecast::report;
use nodecast::scenario::Limits;
use nodecast::scenario::definition::Requests;
use nodecast::simulation;
use serde_json::Value;

fn scenario() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/backtest/scenario.yaml")
}

/// Runs the program; what it prints, what it tells, and its exit code.
fn nodecast(words: &[&str]) -> (String, String, Option<i32>) {
    let output = assert_cmd::Command::cargo_bin("nodecast").unwrap().args(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// The truth: the scenario with its own seed, as a run writes it.
fn record(directory: &Path) -> PathBuf {
    let out = directory.join("record");
    let (_, told, code) = nodecast(&["run", scenario().to_str().unwrap(), "--quiet", "--out", out.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{told}");
    out
}

/// A back-test of the second day by six other seeds, with further words.
fn judged(directory: &Path, record: &Path, more: &[&str]) -> (Value, Option<i32>) {
    judged_by(directory, record, "6", more)
}

/// The same by so many.
fn judged_by(directory: &Path, record: &Path, seeds: &str, more: &[&str]) -> (Value, Option<i32>) {
    let (scenario, out) = (scenario(), directory.join("judged"));
    let words = [
        "backtest",
        scenario.to_str().unwrap(),
        "--from",
        record.to_str().unwrap(),
        "--split",
        "26h",
        "--seed",
        "101",
        "--replications",
        seeds,
        "--format",
        "json",
        "--quiet",
        "--out",
        out.to_str().unwrap(),
    ];
    let (answer, told, code) = nodecast(&[&words[..], more].concat());
    assert!(code.is_some_and(|code| code < 2), "{told}");
    (serde_json::from_str(&answer).unwrap(), code)
}

fn figure<'v>(answer: &'v Value, name: &str) -> &'v Value {
    let figures = answer["figures"].as_array().unwrap();
    figures.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("{name}"))
}

fn workload<'v>(answer: &'v Value, name: &str) -> &'v Value {
    answer["workloads"].as_array().unwrap().iter().find(|array| array["workload"] == name).unwrap()
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn backtest_agrees_with_true_parameters() {
    let place = tempfile::tempdir().unwrap();
    let (answer, _) = judged(place.path(), &record(place.path()), &[]);
    for name in ["cost_per_day", "node_hours_per_day", "launches_per_day", "launch_to_ready", "wait_p99"] {
        assert_ne!(figure(&answer, name)["verdict"], "differs", "{name}: {:#}", figure(&answer, name));
    }
    assert!(answer["tally"]["differs"].as_u64().unwrap() <= 2, "{:#}", answer["figures"]);
    assert_eq!(answer["in_sample"], false);
    // Of some thirty figures one or two lie two deviations off by chance; with six seeds deviations are known to a third.
    assert!(answer["tally"]["beyond_chance"].as_u64().unwrap() <= 4, "{:#}", answer["figures"]);
    for name in ["shop/web", "shop/api"] {
        let workload = workload(&answer, name);
        assert!(workload["replicas_weighted_error"].as_f64().unwrap() < 0.05, "{workload:#}");
        assert_eq!(workload["replicas"]["verdict"], "agrees", "{workload:#}");
    }
    // The second day has the demand of the first: the naive forecast is hard to beat on cost, but exists.
    assert_eq!(answer["naive_days"], 1);
    assert!(answer["tally"]["figures"].as_u64().unwrap() > 20);
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn backtest_detects_each_wrong_parameter() {
    let place = tempfile::tempdir().unwrap();
    let record = record(place.path());
    let (more_traffic, code) =
        judged(place.path(), &record, &["--set", "load[0].requests.scale=1.6", "--fail-on", "differs"]);
    assert_eq!(code, Some(1), "{:#}", more_traffic["figures"]);
    assert_eq!(figure(&more_traffic, "node_hours_by_capacity_type.spot_per_day")["verdict"], "differs");
    assert_eq!(workload(&more_traffic, "shop/web")["replicas"]["verdict"], "differs");
    assert_eq!(workload(&more_traffic, "shop/api")["replicas"]["verdict"], "agrees");
    let slow =
        ["--set", "ec2.launch_latency={ vm_init: 20s, os_boot: 13s, bootstrap: 28s, register: 3s, cni_ready: 11s }"];
    let (slow, _) = judged(place.path(), &record, &slow);
    let boots = figure(&slow, "launch_to_ready");
    assert_eq!(boots["verdict"], "differs", "{boots:#}");
    assert!((0.2..0.6).contains(&boots["error"].as_f64().unwrap()), "{boots:#}");
    assert_eq!(workload(&slow, "shop/web")["replicas"]["verdict"], "agrees");
    let (dear, _) = judged(place.path(), &record, &["--set", "load[0].service.cpu_per_request=20ms"]);
    let cpu = &workload(&dear, "shop/web")["cpu_milli"];
    assert_eq!(cpu["verdict"], "differs", "{cpu:#}");
    assert!((cpu["error"].as_f64().unwrap() + 6.0 / 26.0).abs() < 0.02, "{cpu:#}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn recorded_prices_and_reclaims_replace_market() {
    let place = tempfile::tempdir().unwrap();
    let (answer, _) = judged(place.path(), &record(place.path()), &["--ablation"]);
    assert_eq!(answer["swapped_in"], serde_json::json!(["spot_prices", "reclaims"]));
    let variants = answer["ablation"].as_array().unwrap();
    let parts: Vec<&Value> = variants.iter().map(|variant| &variant["swapped_in"]).collect();
    let wanted = [
        serde_json::json!([]),
        serde_json::json!(["spot_prices"]),
        serde_json::json!(["reclaims"]),
        serde_json::json!(["spot_prices", "reclaims", "start_up"]),
    ];
    assert_eq!(parts, wanted.iter().collect::<Vec<_>>());
    assert!(variants.iter().all(|variant| variant.get("without_calibration").is_none()));
    // The one reclaim of the record, and no other: an instance runs in its pool in every seed or in none.
    let happened = figure(&answer, "reclaims_per_day");
    assert!(happened["observed"].as_f64().unwrap() >= 1.0);
    assert!(happened["simulated"].as_f64().unwrap() <= happened["observed"].as_f64().unwrap());
    // With the market's own draws the cost of seeds spreads further.
    let width = |figure: &Value| figure["high"].as_f64().unwrap() - figure["low"].as_f64().unwrap();
    let cost = |findings: &Value| width(figure(findings, "cost_per_day"));
    assert!(cost(&answer) < cost(&variants[0]["findings"]), "{} {}", cost(&answer), cost(&variants[0]["findings"]));
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn ablation_shows_value_of_calibration() {
    let place = tempfile::tempdir().unwrap();
    let record = record(place.path());
    let (plain, _) = judged_by(place.path(), &record, "2", &[]);
    // Wrong on purpose: calls that take forty seconds each. Without it, and with the record's own start-up times, waits are as they were.
    let calibration = place.path().join("calibration.yaml");
    std::fs::write(&calibration, "ec2: { times: { fleet_call_median: 40s } }\n").unwrap();
    let set = format!("calibration={}", calibration.display());
    let (answer, _) = judged_by(place.path(), &record, "2", &["--ablation", "--set", &set]);
    let variants = answer["ablation"].as_array().unwrap();
    let without = variants.last().unwrap();
    assert_eq!(without["without_calibration"], true);
    assert_eq!(without["findings"]["figures"], plain["figures"]);
    let wait = |findings: &Value| figure(findings, "wait_p99")["error"].as_f64().unwrap().abs();
    let start_up =
        variants.iter().find(|variant| variant["swapped_in"].as_array().unwrap().contains(&"start_up".into())).unwrap();
    assert!(wait(&answer) > 0.3, "{}", wait(&answer));
    assert!(wait(&start_up["findings"]) < wait(&answer) / 2.0, "{}", wait(&start_up["findings"]));
    let page = std::fs::read_to_string(place.path().join("judged/backtest.html")).unwrap();
    assert!(page.contains("; without calibration "), "{page}");
    let (forecast, _) = judged_by(place.path(), &record, "2", &["--ablation", "--mode", "forecast"]);
    let demand = forecast["ablation"]
        .as_array()
        .unwrap()
        .iter()
        .find(|array| array["swapped_in"] == serde_json::json!(["demand"]));
    let cpu = |findings: &Value| workload(findings, "shop/web")["cpu_milli"]["error"].as_f64().unwrap().abs();
    assert!(cpu(&demand.unwrap()["findings"]) < cpu(&forecast) + 0.01, "{forecast:#}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn forecast_uses_only_data_before_split() {
    let place = tempfile::tempdir().unwrap();
    let record = record(place.path());
    // The second day's traffic is twice the first's: a replay knows that, a forecast cannot.
    let doubled =
        "load[0].requests={ sum: [{ constant: 100 }, { steps: [{ at: 0s, rate: 0 }, { at: 26h, rate: 100 }] }] }";
    let (replay, _) = judged(place.path(), &record, &["--set", doubled]);
    let (forecast, _) = judged(place.path(), &record, &["--set", doubled, "--mode", "forecast"]);
    let cpu = |answer: &Value| workload(answer, "shop/web")["cpu_milli"]["simulated"].as_f64().unwrap();
    assert!((cpu(&replay) / 5_200.0 - 1.0).abs() < 0.03, "{}", cpu(&replay));
    assert!((cpu(&forecast) / 2_600.0 - 1.0).abs() < 0.03, "{}", cpu(&forecast));
    assert_eq!(forecast["swapped_in"], serde_json::json!([]));
    // Nor where the demand is CPU in use.
    let cores = "load[0]={ workload: shop/web, cpu: { steps: [{ at: 0s, rate: 2 }, { at: 26h, rate: 6 }] } }";
    let (forecast, _) = judged(place.path(), &record, &["--set", cores, "--mode", "forecast"]);
    assert!((cpu(&forecast) / 2_000.0 - 1.0).abs() < 0.03, "{}", cpu(&forecast));
    let (late, _) = judged_by(place.path(), &record, "2", &["--set", "load[0].at=20h", "--mode", "forecast"]);
    let told = |answer: &Value| answer["warnings"].to_string().contains("have nothing that comes again");
    assert!(told(&late) && !told(&forecast), "{:#}", late["warnings"]);
}

#[test]
fn forecast_repeats_demand_and_reports_limits() {
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace.csv");
    std::fs::write(&trace, "create_s,cpu_milli,memory_mib\n0,100,64\n100000,100,64\n").unwrap();
    let trebled = "{ steps: [{ at: 0s, rate: 1 }, { at: 26h, rate: 3 }] }";
    let edits = [
        "load[0].at=20h".to_owned(),
        format!("load[1]={{ workload: shop/api, cpu: {trebled} }}"),
        format!("usage=[{{ workload: shop/api, cpu: {trebled}, memory: {trebled} }}]"),
        format!("queues=[{{ name: q, kind: sqs, workload: shop/web, time_per_message: 1s, messages: {trebled} }}]"),
        format!("pods={{ csv: {} }}", trace.display()),
    ];
    let edits = edits.map(|edit| nodecast::scenario::Edit::parse(&edit).unwrap());
    let catalog = Catalog::embedded().unwrap();
    let (scenario, _) = nodecast::scenario::load_edited(&scenario(), catalog, &Limits::default(), &edits).unwrap();
    let hour = |hours: i64| SimTime::ZERO + SimDuration::from_secs(hours * 3_600);
    let training = Window { from: hour(2), until: hour(26) };
    let known = replay::forecast(&scenario, training).unwrap();
    let in_cores = |requests: &Requests| matches!(requests, Requests::Cpu(_));
    let found = known.load.iter().find(|load| in_cores(&load.requests));
    let Some(Requests::Cpu(cores)) = found.map(|load| &load.requests) else { panic!("a load in cores") };
    let usage = &known.usage[0];
    for open in [Some(cores), usage.cpu.as_ref(), usage.memory.as_ref(), known.queues[0].messages.as_ref()] {
        let open = open.unwrap();
        assert!(open.curve.steps().iter().all(|step| step.rate < 2.0), "{:?}", open.curve);
    }
    let told = replay::not_repeated(&scenario, training);
    assert!(told.len() == 2 && told[0].contains("pods of the trace") && told[1].contains("(shop/web)"), "{told:?}");
}

#[test]
fn run_tables_are_complete_observations() {
    let place = tempfile::tempdir().unwrap();
    let catalog = Catalog::embedded().unwrap();
    let edits = [nodecast::scenario::Edit::parse("duration=6h").unwrap()];
    let (scenario, _) = nodecast::scenario::load_edited(&scenario(), catalog, &Limits::default(), &edits).unwrap();
    let policy = scenario.for_policy(None).unwrap();
    let outcome = simulation::run(&scenario, policy, catalog, 7, &mut |_| {}).unwrap();
    let out = place.path().join("out");
    let directory = report::OutputDirectory::begin(&out).unwrap();
    report::write_into(&directory, "", &outcome, &report::Summary::from_outcome(&outcome), "nodecast", None).unwrap();
    directory.commit().unwrap();
    let (known, mut read) = (History::from_outcome(&outcome), tables::read(&out).unwrap());
    // Files hold what people look at: digits that a float has beyond them are cut.
    for (name, states) in read.workloads.iter_mut().flatten() {
        for (state, exact) in states.iter_mut().zip(&known.workloads.as_ref().unwrap()[name]) {
            for (read, known) in [(&mut state.cpu_milli, exact.cpu_milli), (&mut state.latency_p99, exact.latency_p99)]
            {
                assert_eq!(read.is_some(), known.is_some());
                assert!((read.unwrap_or(0.0) - known.unwrap_or(0.0)).abs() < 1e-3);
                *read = known;
            }
        }
    }
    // Who has each node and pod needs no counts.
    read.counted = known.counted.clone();
    let first = |history: &History| history.nodes.as_ref().unwrap()[..2].to_vec();
    assert!(known == read, "{:#?} {:#?}", first(&known), first(&read));
    assert!(known.nodes.unwrap().len() > 2 && known.pods.unwrap().len() > 10);
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn daily_bill_is_compared_with_simulated_bill() {
    let place = tempfile::tempdir().unwrap();
    let record = record(place.path());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/observed/tests/data/bill/cur2-2026-10-13.csv.gz");
    let words = ["--bill", file.to_str().unwrap(), "--cluster", "shop-prod"];
    let (answer, _) = judged_by(place.path(), &record, "2", &words);
    let bill = &answer["bill"];
    let amount = |key: &str| bill[key].as_f64().unwrap();
    // The figures of the made-up day: see crates/observed/tests/data/bill.
    assert!((amount("amortised") - 13.27).abs() < 0.005, "{bill:#}");
    assert!((amount("unblended") - 13.89).abs() < 0.005, "{bill:#}");
    assert!(amount("others") > 0.0);
    let links = bill["links"].as_array().unwrap();
    let sum: f64 = links.iter().map(|link| link["amount"].as_f64().unwrap()).sum();
    assert!((amount("amortised") - sum - amount("simulated")).abs() < 1e-6, "{bill:#}");
    let control_plane = links.iter().find(|link| link["what"] == "control plane");
    assert!(control_plane.is_none(), "2.40 on both sides: {bill:#}");
    // A record without charges of its own takes them from the bill.
    std::fs::remove_file(record.join("bill.csv")).unwrap();
    let (answer, _) = judged_by(place.path(), &record, "2", &words);
    let cost = figure(&answer, "cost_per_day")["observed"].as_f64().unwrap();
    assert!((12.0..13.5).contains(&cost), "{cost}");
    let (without, _) = judged_by(place.path(), &record, "2", &[]);
    assert!(without["bill"].is_null());
    assert!(without["warnings"][0].as_str().unwrap().contains("no bill was recorded"), "{:#}", without["warnings"]);
    // An observation says whose series it chose.
    let about = r#"{ "cluster": ["region=~\"us.*\"", "cluster=\"shop-prod\""], "window": { "start": "2026-10-11T22:00:00Z", "seconds": 180000 } }"#;
    std::fs::write(record.join("observation.json"), about).unwrap();
    let (answer, _) = judged_by(place.path(), &record, "2", &["--bill", file.to_str().unwrap()]);
    assert_eq!(answer["bill"]["amortised"], bill["amortised"]);
    std::fs::remove_file(record.join("observation.json")).unwrap();
    let words = ["--bill", file.to_str().unwrap(), "--cluster", "shop-other"];
    let (_, told, code) = nodecast(
        &[
            &["backtest", scenario().to_str().unwrap(), "--from", record.to_str().unwrap(), "--split", "26h"][..],
            &words,
        ]
        .concat(),
    );
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("shop-prod"), "the clusters that tags name are listed: {told}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn incomparable_bills_are_rejected_and_gaps_reported() {
    let place = tempfile::tempdir().unwrap();
    let record = record(place.path());
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/observed/tests/data/bill");
    let text = |name: &str| {
        let mut text = String::new();
        let bytes = std::fs::read(data.join(name)).unwrap();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(bytes.as_slice()), &mut text).unwrap();
        text
    };
    let (cur, focus) = (text("cur2-2026-10-13.csv.gz"), text("focus12-2026-10-13.csv.gz"));
    let put = |name: &str, text: &str| {
        std::fs::write(place.path().join(name), text).unwrap();
        place.path().join(name).display().to_string()
    };
    let scenario = scenario();
    let told = |files: &[&str]| {
        let mut words =
            vec!["backtest", scenario.to_str().unwrap(), "--from", record.to_str().unwrap(), "--split", "26h"];
        words.extend(["--cluster", "shop-prod", "--replications", "2", "--quiet"]);
        words.extend(files.iter().flat_map(|file| ["--bill", *file]));
        let out = place.path().join("out").display().to_string();
        words.extend(["--out", out.as_str()]);
        let (shown, errors, code) = nodecast(&words);
        let text = format!("{shown}{errors}");
        // A terminal breaks lines.
        (text.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" "), code)
    };
    let (whole, also) = (put("cur.csv", &cur), put("focus.csv", &focus));
    let (text, code) = told(&[&whole, &also]);
    assert!(code == Some(2) && text.contains("of the same time in two formats"), "{text}");
    let euro = put("euro.csv", &cur.replace("USD", "EUR"));
    let (text, code) = told(&[&euro]);
    assert!(code == Some(2) && text.contains("the bill is in `EUR` and the simulation in USD"), "{text}");
    let other = put("other.csv", &cur.replace("2026-10-13T", "2026-10-03T").replace("2026-10-14T", "2026-10-04T"));
    let (text, code) = told(&[&other]);
    assert!(code == Some(2) && text.contains("no charge of the bill begins in the judged time"), "{text}");
    let (text, code) = told(&[&whole, &whole]);
    assert!(code == Some(0) && text.contains("lines of the bill stand there twice, and count once"), "{text}");
    let morning: Vec<&str> =
        cur.lines().filter(|line| !line.contains("2026-10-13T1") && !line.contains("2026-10-13T2")).collect();
    let morning = put("morning.csv", &(morning.join("\n") + "\n"));
    let (text, code) = told(&[&morning]);
    assert!(
        code == Some(0) && text.contains("no line of the bill is of 2026-10-13T09:00:00Z to 2026-10-14T00:00:00Z"),
        "{text}"
    );
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn observation_file_sets_period_and_spot_prices() {
    let place = tempfile::tempdir().unwrap();
    let record = record(place.path());
    std::fs::remove_file(record.join("summary.json")).unwrap();
    std::fs::remove_file(record.join("bill.csv")).unwrap();
    let about = r#"{ "schema_version": 1, "window": { "start": "2026-10-11T22:00:00Z", "end": "2026-10-14T00:00:00Z", "seconds": 180000 } }"#;
    std::fs::write(record.join("observation.json"), about).unwrap();
    let prices =
        "at_seconds,instance_type,zone,per_hour\n0,m5.large,us-east-1a,0.031\n3600,m5.large,us-east-1a,0.032\n";
    std::fs::write(record.join("spot_prices.csv"), prices).unwrap();
    let (answer, _) = judged_by(place.path(), &record, "2", &[]);
    assert_eq!(answer["swapped_in"], serde_json::json!(["spot_prices", "reclaims"]));
    let names: Vec<&str> =
        answer["figures"].as_array().unwrap().iter().filter_map(|figure| figure["name"].as_str()).collect();
    assert!(!names.contains(&"cost_per_day") && names.contains(&"cost_at_held_prices_per_day"), "{names:?}");
    std::fs::write(record.join("spot_prices.csv"), prices.replace("0.031", "cheap")).unwrap();
    let scenario = scenario();
    let words = ["backtest", scenario.to_str().unwrap(), "--from", record.to_str().unwrap()];
    let (_, told, code) = nodecast(&words);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("`cheap` is no number"), "{told}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn counted_nodes_are_evaluated_by_number() {
    let place = tempfile::tempdir().unwrap();
    let record = record(place.path());
    for name in ["summary.json", "bill.csv", "nodes.csv", "pods.csv"] {
        std::fs::remove_file(record.join(name)).unwrap();
    }
    let about = r#"{ "schema_version": 1, "window": { "start": "2026-10-11T22:00:00Z", "end": "2026-10-14T00:00:00Z", "seconds": 180000 } }"#;
    std::fs::write(record.join("observation.json"), about).unwrap();
    // Of the judged day from 26 h on two nodes for twelve hours, then three.
    let mut counts = String::from("at_seconds,instance_type,zone,capacity_type,origin_kind,origin,nodes\n");
    for at in (0..=180_000).step_by(600) {
        let nodes = if at < 136_800 { 2 } else { 3 };
        counts += &format!("{at},m5.large,us-east-1a,on-demand,NodePool,default,{nodes}\n");
    }
    std::fs::write(record.join("node_counts.csv"), counts).unwrap();
    let (answer, _) = judged_by(place.path(), &record, "2", &[]);
    let observed = |name: &str| figure(&answer, name)["observed"].as_f64().unwrap();
    assert!((observed("node_hours_per_day") - 60.0).abs() < 1e-6, "{}", observed("node_hours_per_day"));
    assert!((observed("launches_per_day") - 1.0).abs() < 1e-6, "{}", observed("launches_per_day"));
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("nodes were recorded by how many there were of a kind"), "{warnings}");
}

/// A record of the scenario's time that has nodes and nothing else: each of so many types, zones and capacity types from the beginning on.
fn record_of_nodes(directory: &Path, nodes: &[[&str; 3]]) -> PathBuf {
    let record = directory.join("nodes");
    std::fs::create_dir_all(&record).unwrap();
    let about = r#"{ "schema_version": 1, "window": { "start": "2026-10-11T22:00:00Z", "end": "2026-10-14T00:00:00Z", "seconds": 180000 } }"#;
    std::fs::write(record.join("observation.json"), about).unwrap();
    let header = "origin,instance_type,zone,capacity_type,launched_seconds,running_seconds,registered_seconds,ready_seconds,\
                  deletion_requested_seconds,terminating_seconds,terminated_seconds,end\n";
    let rows = nodes.iter().map(|[kind, zone, capacity]| format!("default,{kind},{zone},{capacity},0,10,30,40,,,,\n"));
    std::fs::write(record.join("nodes.csv"), header.to_owned() + &rows.collect::<String>()).unwrap();
    record
}

#[test]
fn nodes_that_no_seed_launched_cost_catalogue_prices() {
    let place = tempfile::tempdir().unwrap();
    let region = nodecast::catalog::Catalog::embedded().unwrap().region("us-east-1").unwrap();
    let kind = |name: &str| region.instance_type(nodecast::domain::Symbol::new(name)).unwrap();
    let zone = region.zone_index(nodecast::domain::Symbol::new("us-east-1c")).unwrap();
    let on_demand = kind("r5.xlarge").on_demand.unwrap().rate.as_f64();
    let spot = kind("c5.2xlarge").spot(zone).unwrap().rate.as_f64();
    let zones: Vec<f64> = kind("m5.4xlarge")
        .zones_offered()
        .filter_map(|zone| Some(kind("m5.4xlarge").spot(zone)?.rate.as_f64()))
        .collect();
    let mean = zones.iter().sum::<f64>() / zones.len() as f64;
    let nodes = [
        ["r5.xlarge", "us-east-1b", "on-demand"],
        ["r5.xlarge", "us-east-1d", ""],
        ["c5.2xlarge", "us-east-1c", "spot"],
        ["m5.4xlarge", "", "spot"],
    ];
    let (answer, _) = judged_by(place.path(), &record_of_nodes(place.path(), &nodes), "2", &[]);
    let observed = figure(&answer, "cost_at_held_prices_per_day")["observed"].as_f64().unwrap();
    let expected = 24.0 * (2.0 * on_demand + spot + mean);
    assert!((observed / expected - 1.0).abs() < 1e-6, "{observed} {expected}");
    assert_eq!(answer["unpriced"], serde_json::json!([]));
    // Nobody recorded pods, which does not mean that none waited.
    let names = answer["figures"].to_string();
    assert!(!names.contains("pods_waited_per_day") && !names.contains("evictions_per_day"), "{names}");
    assert!(answer["warnings"].to_string().contains("pods: none were recorded"), "{}", answer["warnings"]);
}

#[test]
fn nodes_without_any_price_leave_cost_unjudged() {
    let place = tempfile::tempdir().unwrap();
    let nodes = [["m5.large", "us-east-1a", "on-demand"], ["x99.huge", "us-east-1a", "on-demand"]];
    let (answer, _) = judged_by(place.path(), &record_of_nodes(place.path(), &nodes), "2", &[]);
    let names = answer["figures"].to_string();
    assert!(!names.contains("cost_at_held_prices") && names.contains("node_hours_per_day"), "{names}");
    assert_eq!((&answer["cost_error"], &answer["unpriced"]), (&Value::Null, &serde_json::json!(["x99.huge"])));
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("no price in us-east-1 for nodes of x99.huge"), "{warnings}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn record_without_nodes_is_not_zero_nodes() {
    let place = tempfile::tempdir().unwrap();
    let record = record(place.path());
    for name in ["summary.json", "bill.csv", "nodes.csv"] {
        std::fs::remove_file(record.join(name)).unwrap();
    }
    let about = r#"{ "schema_version": 1, "window": { "start": "2026-10-11T22:00:00Z", "end": "2026-10-14T00:00:00Z", "seconds": 180000 } }"#;
    std::fs::write(record.join("observation.json"), about).unwrap();
    let (answer, _) = judged_by(place.path(), &record, "2", &[]);
    let names = answer["figures"].to_string();
    let absent = ["node_hours", "launches_per_day", "reclaims_per_day", "removed.", "cost_at_held_prices"];
    assert!(absent.iter().all(|name| !names.contains(name)) && names.contains("pods_waited_per_day"), "{names}");
}

/// Empties the cells of some columns of a table.
fn blanked(table: &Path, columns: &[&str]) {
    let mut reader = csv::Reader::from_path(table).unwrap();
    let header = reader.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let mut writer = csv::Writer::from_path(table).unwrap();
    writer.write_record(&header).unwrap();
    for row in rows {
        let cells = header.iter().zip(&row).map(|(name, cell)| if columns.contains(&name) { "" } else { cell });
        writer.write_record(cells).unwrap();
    }
    writer.flush().unwrap();
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn what_nobody_recorded_is_not_judged() {
    let place = tempfile::tempdir().unwrap();
    let record = record(place.path());
    let (whole, _) = judged_by(place.path(), &record, "2", &[]);
    blanked(&record.join("nodes.csv"), &["end"]);
    blanked(&record.join("pods.csv"), &["evicted"]);
    let (answer, _) = judged_by(place.path(), &record, "2", &[]);
    let names = |answer: &Value| -> Vec<String> {
        answer["figures"].as_array().unwrap().iter().map(|array| array["name"].as_str().unwrap().to_owned()).collect()
    };
    let unknown =
        |name: &String| name.starts_with("removed.") || name == "reclaims_per_day" || name == "evictions_per_day";
    assert!(names(&whole).iter().filter(|name| unknown(name)).count() >= 3, "{:?}", names(&whole));
    assert!(!names(&answer).iter().any(unknown), "{:?}", names(&answer));
    // Nor does it say that none was reclaimed.
    assert_eq!(answer["swapped_in"], serde_json::json!(["spot_prices"]));
    let warnings = answer["warnings"].to_string();
    assert!(
        warnings.contains("node removal reasons were not recorded")
            && warnings.contains("pod evictions were not recorded"),
        "{warnings}"
    );
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn backtest_is_identical_on_eight_threads() {
    let place = tempfile::tempdir().unwrap();
    let record = record(place.path());
    let files = |threads: &str| {
        judged(place.path(), &record, &["--threads", threads, "--duration", "28h", "--ablation"]);
        ["backtest.json", "backtest.html"]
            .map(|name| std::fs::read_to_string(place.path().join("judged").join(name)).unwrap())
    };
    let [json, page] = files("1");
    assert_eq!([json, page.clone()], files("8"));
    assert!(!page.contains("http://") && !page.contains("https://"), "nothing is loaded");
    for part in ["<svg", "Sources of error", "Replicas of each workload", "nodecast backtest"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn unusable_backtest_input_gets_helpful_error() {
    let place = tempfile::tempdir().unwrap();
    let record = record(place.path());
    let scenario = scenario();
    let (scenario, from) = (scenario.to_str().unwrap(), record.to_str().unwrap());
    let out = place.path().join("out");
    let refused = |words: &[&str], parts: &[&str]| {
        let common = ["--replications", "2", "--out", out.to_str().unwrap()];
        let (_, told, code) = nodecast(&[&["backtest", scenario], words, &common[..]].concat());
        assert_eq!(code, Some(2), "{told}");
        // Long lines are wrapped, behind a bar.
        let told = told.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" ");
        parts.iter().for_each(|part| assert!(told.contains(part), "{part}\n{told}"));
        assert!(!out.exists(), "nothing is written");
    };
    let nowhere = place.path().to_str().unwrap();
    refused(&["--from", nowhere], &["holds neither summary.json nor observation.json", "nodecast observe"]);
    refused(&["--from", from, "--split", "60h"], &["leaves nothing to judge", "split earlier"]);
    refused(
        &["--from", from, "--set", "start=2027-01-01T00:00:00Z"],
        &["they share nothing", "`start`, `duration` and loads"],
    );
    refused(&["--from", from, "--split", "3h", "--mode", "forecast"], &["full days before the split", "--mode replay"]);
    let nodes = record.join("nodes.csv");
    let text = std::fs::read_to_string(&nodes).unwrap();
    std::fs::write(&nodes, text.replacen("NodePool,default", "NodePool,default,extra", 1)).unwrap();
    refused(&["--from", from], &["nodes.csv", "found record with"]);
    // The first node that Karpenter made: its instants are fractions, and no others are the same.
    let third = text.lines().nth(3).unwrap();
    let launched = third.split(',').nth(12).unwrap();
    std::fs::write(&nodes, text.replacen(&format!(",{launched},"), ",soon,", 1)).unwrap();
    refused(&["--from", from], &["nodes.csv, line 4, column", "`soon` is no number of seconds"]);
    std::fs::write(&nodes, text.replacen("capacity_type", "capacity", 1)).unwrap();
    refused(&["--from", from], &["has no column `capacity_type`"]);
}

#[test]
fn a_verdict_has_a_name_for_people() {
    let all = [Verdict::Agrees, Verdict::SmallButReal, Verdict::CannotTell, Verdict::Differs];
    assert_eq!(all.map(Verdict::as_str), ["agrees", "small but real", "cannot tell", "differs"]);
}

//! Many simulations: comparisons, sweeps, parts and guards give the same bytes however they were run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use nodecast::catalog::Catalog;
use nodecast::experiment::axes::{self, Axis};
use nodecast::scenario::{Edit, Limits};

use crate::cli::Place;

/// The scenario of [`Place`] with a rival that launches two larger machines, and Spot that is reclaimed now and then.
fn place() -> Place {
    let place = Place::new();
    place.put(
        "scenario.yaml",
        "\
name: two-pods
region: us-east-1
start: 2026-11-27T00:00:00Z
duration: 30m
seed: 7
replications: 6
manifests: [cluster.yaml]
faults: [{at: 10m, spot_interruption: {fraction: 50%}}]
policies:
  - {name: small, autoscaler: karpenter}
  - {name: spot, autoscaler: karpenter, manifests: [spot.yaml]}
  - {name: same, autoscaler: karpenter}
objectives: {pending_p99: 10m, cost: 1}
",
    );
    place.put(
        "spot.yaml",
        "\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m5.xlarge, c5.large]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
",
    );
    place
}

/// Every file below `directory`, folders included.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                found.insert(path.strip_prefix(directory).unwrap().to_owned(), bytes);
            }
        }
    }
    found
}

fn json(place: &Place, name: &str) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(place.path(name)).unwrap()).unwrap()
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn comparison_is_identical_on_eight_threads() {
    let place = place();
    for threads in ["1", "8"] {
        let (out, err, code) =
            place.nodecast(&["compare", "scenario.yaml", "--threads", threads, "--out", threads, "--quiet"]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    }
    let (one, eight) = (files(&place.path("1")), files(&place.path("8")));
    assert!(one.contains_key(Path::new("spot/report.html")) && one.contains_key(Path::new("comparison.html")));
    assert!(one == eight, "some file differs");
}

#[test]
fn policy_compared_with_itself_differs_by_zero() {
    let place = place();
    let (out, err, code) = place.nodecast(&["compare", "scenario.yaml", "--out", "here"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.ends_with("report: here/comparison.html\n"), "{err}");
    let comparison = json(&place, "here/comparison.json");
    assert_eq!(comparison["about"]["replications"], 6);
    let policies = comparison["policies"].as_array().unwrap();
    assert_eq!(policies[2]["name"], "same");
    for figure in policies[2]["figures"].as_array().unwrap() {
        let difference = &figure["against_first"]["difference"];
        if !difference.is_null() {
            assert_eq!((&difference["low"], &difference["high"]), (&0.0.into(), &0.0.into()), "{figure}");
        }
    }
    let cost = &policies[1]["figures"][0];
    assert_eq!(cost["name"], "cost");
    assert!(cost["against_first"]["difference"]["high"].as_f64().unwrap() < 0.0, "{cost}");
    assert!(
        out.lines().next().is_some_and(|line| line.contains(": spot is ")) && out.contains(" cheaper than small"),
        "{out}"
    );
    assert!(out.contains("same is not clearly cheaper or more expensive"), "{out}");
}

#[test]
fn printed_commands_repeat_rows_of_comparison() {
    let place = place();
    let words = ["compare", "scenario.yaml", "--replications", "3", "--seed", "40", "--set", "duration=7m"];
    let (_, told, code) = place.nodecast(&[&words[..], &["--out", "here"]].concat());
    assert_eq!(code, Some(0), "{told}");
    let points = json(&place, "here/comparison.json")["points"].clone();
    let lines: Vec<&str> = told.lines().filter(|line| line.starts_with("repeat ")).collect();
    let rows: Vec<&serde_json::Value> = points.as_array().into_iter().flatten().collect();
    assert_eq!(lines.len(), 2, "{told}");
    for (line, row) in lines.iter().zip([rows[0], rows[rows.len() - 1]]) {
        let (_, command) = line.split_once(": nodecast ").unwrap();
        let words: Vec<&str> = command.split(' ').collect();
        assert!(command.contains("--set ec2.spot.price_errors=drawn"), "{command}");
        let (_, told, code) = place.nodecast(&[&words[..], &["--quiet", "--out", "again"]].concat());
        assert_eq!(code, Some(0), "{told}");
        let run = json(&place, "again/summary.json");
        assert_eq!((&run["event_hash"], &run["about"]["seed"]), (&row["event_hash"], &row["seed"]), "{command}");
        // `explain` takes the options of that run.
        let explain: Vec<&str> = ["explain"].into_iter().chain(words[1..].iter().copied()).collect();
        let (out, told, code) = place.nodecast(&[&explain[..], &["pod", "none"]].concat());
        assert!(code == Some(2) && told.contains("none"), "{out}{told}");
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn three_shards_merged_are_the_whole() {
    let place = place();
    for shard in ["1/3", "2/3", "3/3"] {
        let (_, err, code) = place.nodecast(&["compare", "scenario.yaml", "--shard", shard, "--out", "parts"]);
        assert_eq!(code, Some(0), "{err}");
    }
    let parts = ["parts/part-3-of-3.json", "parts/part-1-of-3.json", "parts/part-2-of-3.json"];
    let (_, err, code) = place.nodecast(&["merge", parts[0], parts[1], "--out", "none"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("see shard 2/3") && !place.path("none").exists(), "{err}");
    let (_, err, code) = place.nodecast(&["merge", parts[0], parts[1], parts[2], "--out", "merged"]);
    assert_eq!(code, Some(0), "{err}");
    let (_, err, code) = place.nodecast(&["compare", "scenario.yaml", "--out", "whole"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(files(&place.path("merged")) == files(&place.path("whole")), "some file differs");
    // A scenario that has changed in between would make the parts lie.
    let changed = fs::read_to_string(place.path("spot.yaml")).unwrap().replace("c5.large", "c5.xlarge");
    place.put("spot.yaml", &changed);
    let (_, err, code) = place.nodecast(&["merge", parts[0], parts[1], parts[2]]);
    assert!(code == Some(2) && err.contains("`spot.yaml` differs"), "{err}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn a_precision_is_reached_by_more_replications() {
    let place = place();
    let run = |precision: &str, most: &str| {
        let words = ["compare", "scenario.yaml", "--policies", "small,spot", "--replications", "2", "--out", "here"];
        let more = ["--precision", precision, "--replications-max", most];
        let (_, err, code) = place.nodecast(&[&words[..], &more[..]].concat());
        assert_eq!(code, Some(0), "{err}");
        json(&place, "here/comparison.json")["about"]["replications"].as_u64().unwrap()
    };
    assert_eq!(run("100%", "50"), 2);
    assert_eq!(run("0.0001%", "7"), 7);
    // The scenario's six are too many as well, and what was asked for is what is spoken of.
    let words = ["compare", "scenario.yaml", "--policies", "small,spot", "--out", "here"];
    let more = ["--precision", "0.001%", "--replications-max", "3"];
    let (out, err, code) = place.nodecast(&[&words[..], &more[..]].concat());
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(json(&place, "here/comparison.json")["about"]["replications"], 3);
    assert!(out.contains("would narrow this to \u{b1}0.001%"), "{out}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn drawn_spot_price_errors_are_disclosed() {
    let place = place();
    let said = |policies: &str, more: &[&str]| {
        let words = ["compare", "scenario.yaml", "--replications", "2", "--out", "here", "--policies", policies];
        let (out, err, code) = place.nodecast(&[&words[..], more].concat());
        assert_eq!(code, Some(0), "{err}");
        let assumed = json(&place, "here/comparison.json")["about"]["assumptions"].to_string();
        let page = fs::read_to_string(place.path("here/comparison.html")).unwrap();
        [out, assumed, page].map(|text| text.contains("Comparisons and sweeps draw a Spot price error per seed"))
    };
    assert_eq!(said("small,spot", &[]), [true; 3]);
    assert_eq!(said("small,spot", &["--set", "ec2.spot.price_errors=none"]), [false; 3]);
    assert_eq!(said("small,same", &[]), [false; 3]);
}

#[test]
fn unusable_policy_or_group_names_are_rejected() {
    for (policy, group, words) in [
        ("replications.csv", "workers", "no policy can be called `replications.csv`"),
        ("Comparison.HTML", "workers", "no policy can be called"),
        ("own", "\"g,=cmd|' /C calc'!A0\"", "the name of a node group is made of letters"),
        ("own", "Workers_2.a", ""),
    ] {
        let place = place();
        let text = format!(
            "name: mine\nregion: us-east-1\nduration: 30m\nmanifests: [cluster.yaml]\n\
             nodeGroups: [{{ name: {group}, instanceTypes: [m5.large], min: 1, desired: 1, max: 1 }}]\n\
             policies: [{{ name: {policy}, autoscaler: static }}]\n"
        );
        place.put("scenario.yaml", &text);
        let (_, err, code) = place.nodecast(&["validate", "scenario.yaml"]);
        assert_eq!(code, Some(if words.is_empty() { 0 } else { 2 }), "{policy} {group}: {err}");
        assert!(err.contains(words), "{err}");
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn a_comparison_ends_when_its_differences_are_sure() {
    let place = place();
    let run = |out: &str, policies: &str, more: &[&str]| {
        let words = ["compare", "scenario.yaml", "--policies", policies, "--out", out];
        let (out_text, err, code) = place.nodecast(&[&words[..], more].concat());
        assert_eq!(code, Some(0), "{err}");
        (json(&place, &format!("{out}/comparison.json")), out_text)
    };
    let (known, text) = run("one", "small,spot", &["--replications", "40", "--until-sure", "--threads", "1"]);
    let count = known["about"]["replications"].as_u64().unwrap();
    assert!([5, 10, 20].contains(&count) && known["sequential"]["sure"] == true, "{known}");
    let sentence = format!("After {count} replications of at most 40 each cost difference is either certain in sign");
    assert!(text.contains(&sentence), "{text}");
    run("eight", "small,spot", &["--replications", "40", "--until-sure", "--threads", "8"]);
    assert_eq!(files(&place.path("one")), files(&place.path("eight")));
    // As many replications at once have the same figures.
    let (at_once, _) = run("once", "small,spot", &["--replications", &count.to_string()]);
    assert!(at_once["policies"] == known["policies"] && at_once["sequential"].is_null());
    // A difference of exactly nothing has no sign, and is below any share.
    let (same, _) = run("same", "small,same", &["--replications", "40", "--until-sure=0.1%"]);
    assert!(same["about"]["replications"] == 5 && same["sequential"]["sure"] == true, "{same}");
    let (few, text) = run("few", "small,spot", &["--replications", "1", "--until-sure"]);
    assert!(few["sequential"]["sure"] == false && text.contains("not every cost difference"), "{text}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn sweep_stops_seeds_for_clearly_worse_settings() {
    let place = place();
    let sweep = |out: &str, more: &[&str]| {
        let words = [&SWEEP[..6], &["--replications", "12", "--out", out], more].concat();
        let (text, err, code) = place.nodecast(&words);
        assert_eq!(code, Some(0), "{err}");
        (json(&place, &format!("{out}/sweep.json")), text)
    };
    let (whole, _) = sweep("whole", &[]);
    let (knocked, text) = sweep("one", &["--knockout", "--threads", "1"]);
    sweep("eight", &["--knockout", "--threads", "8"]);
    assert_eq!(files(&place.path("one")), files(&place.path("eight")));
    assert_eq!(knocked["cheapest"], whole["cheapest"]);
    let results = knocked["results"].as_array().unwrap();
    let after: Vec<u64> = results.iter().filter_map(|item| item["knocked_out_after"].as_u64()).collect();
    assert!(!after.is_empty() && after.iter().all(|count| [5, 10].contains(count)), "{knocked}");
    let run: u64 = results.iter().map(|item| item["knocked_out_after"].as_u64().unwrap_or(12)).sum();
    assert!(text.contains(&format!("{run} of 72 simulations were run")) && text.contains("seeds"), "{text}");
    // What is left has the figures that it has when nothing is taken out, and what is out is on no front.
    for (number, (index, of_whole)) in results.iter().zip(whole["results"].as_array().unwrap()).enumerate() {
        let out = !index["knocked_out_after"].is_null();
        assert!(out || index["figures"] == of_whole["figures"], "{number}");
        assert!(!out || !knocked["front"].as_array().unwrap().contains(&number.into()), "{number}");
    }
    let csv = fs::read_to_string(place.path("one/sweep.csv")).unwrap();
    assert!(csv.lines().next().unwrap_or_default().ends_with(",seeds"), "{csv}");
    let page = fs::read_to_string(place.path("one/sweep.html")).unwrap();
    assert!(page.contains("--knockout") && page.contains("at most 12 replications"), "{page}");
}

const SWEEP: [&str; 8] = [
    "sweep",
    "scenario.yaml",
    "--set",
    "NodePool[default].spec.template.spec.requirements[karpenter.sh/capacity-type].values=[spot],[on-demand]",
    "--set",
    "Deployment[shop/web].spec.replicas=1..3",
    "--replications",
    "3",
];

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn killed_sweep_resumes_with_identical_result() {
    let place = place();
    let sweep = |more: &[&str]| {
        let (out, err, code) = place.nodecast(&[&SWEEP[..], more].concat());
        assert_eq!(code, Some(0), "{err}");
        (out, err)
    };
    let (out, _) = sweep(&["--out", "whole"]);
    assert!(
        out.contains("No setting is clearly the cheapest that meets all objectives. Lowest mean: policy small"),
        "{out}"
    );
    let swept = json(&place, "whole/sweep.json");
    assert_eq!(swept["results"].as_array().unwrap().len(), 6);
    assert!(!swept["front"].as_array().unwrap().is_empty());
    // What a kill leaves behind: some whole lines and one that is cut off.
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("nodecast"))
        .args(SWEEP)
        .args(["--out", "killed", "--threads", "1"])
        .current_dir(place.path(""))
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let kept = place.path("killed.unfinished.jsonl");
    while fs::read_to_string(&kept).map_or(0, |text| text.lines().count()) < 5 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    if kept.exists() {
        let text = fs::read_to_string(&kept).unwrap();
        fs::write(&kept, &text[..text.len() - 20]).unwrap();
        let (_, err) = sweep(&["--out", "killed"]);
        assert!(err.contains("simulations already done"), "{err}");
    }
    assert!(!kept.exists());
    assert!(files(&place.path("killed")) == files(&place.path("whole")), "some file differs");
}

#[test]
fn sweep_rejects_foreign_files_and_bad_values() {
    let place = place();
    place.put("swept.unfinished.jsonl", "{\"program\":\"nodecast\",\"question\":{}}\n");
    let (_, err, code) = place.nodecast(&[&SWEEP[..], &["--out", "swept"]].concat());
    assert!(code == Some(2) && err.contains("holds results of a different sweep"), "{err}");
    for (set, words) in [
        ("durations=1h", "unknown key `durations`"),
        ("NodePool[other].spec.weight=1", "no NodePool named `other` in the manifests"),
        ("policies[cheap].autoscaler=none", "the list has no item `cheap`"),
        ("duration=1h,2 h,-3h", "with `duration=2 h` set"),
        ("duration", "is not PATH=VALUES"),
    ] {
        let (out, err, code) = place.nodecast(&["sweep", "scenario.yaml", "--set", set]);
        assert_eq!((out.as_str(), code), ("", Some(2)), "{set}: {err}");
        // A long message is broken into lines.
        let unbroken = err.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" ");
        assert!(unbroken.contains(words), "{set}: {err}");
        assert!(!place.path("reports").exists());
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn shards_of_a_sweep_merge_too() {
    let place = place();
    for shard in ["1/2", "2/2"] {
        let (_, err, code) = place.nodecast(&[&SWEEP[..], &["--shard", shard, "--out", "parts"]].concat());
        assert_eq!(code, Some(0), "{err}");
    }
    let (_, err, code) =
        place.nodecast(&["merge", "parts/part-1-of-2.json", "parts/part-2-of-2.json", "--out", "merged"]);
    assert_eq!(code, Some(0), "{err}");
    let (_, err, code) = place.nodecast(&[&SWEEP[..], &["--out", "whole"]].concat());
    assert_eq!(code, Some(0), "{err}");
    assert!(files(&place.path("merged")) == files(&place.path("whole")), "some file differs");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn a_difference_is_that_of_the_edit() {
    let place = place();
    let edit =
        "NodePool[default].spec.template.spec.requirements[node.kubernetes.io/instance-type].values=[m5.4xlarge]";
    let (out, err, code) = place.nodecast(&["diff", "scenario.yaml", "--set", edit, "--format", "json", "--quiet"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let comparison: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(comparison["about"]["set"], serde_json::json!([edit]));
    let cost = &comparison["policies"][1]["figures"][0]["against_first"];
    assert!(cost["relative"]["low"].as_f64().unwrap() > 0.0, "{cost}");
    place.put("other.yaml", &fs::read_to_string(place.path("scenario.yaml")).unwrap().replace("30m", "1h"));
    let (out, err, code) = place.nodecast(&["diff", "scenario.yaml", "other.yaml", "--html", "diff.html"]);
    assert_eq!(code, Some(0), "{err}");
    // An hour costs more than half of one, whatever the policies do: a month is what can be compared.
    assert!(out.contains("The cluster with the change is ") && out.contains(" than now per month"), "{out}");
    assert!(out.contains("`duration` is 30m now and 1h with the change"), "{out}");
    assert!(out.lines().filter(|line| line.trim_start().starts_with("cost  ")).count() == 1, "{out}");
    assert!(fs::read_to_string(place.path("diff.html")).unwrap().contains("Every replication"));
    let (_, _, code) = place.nodecast(&["diff", "scenario.yaml"]);
    assert_eq!(code, Some(2));
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn check_passes_equal_and_fails_worse_results() {
    let place = place();
    let check = |more: &[&str]| place.nodecast(&[&["check", "--baseline", "baseline.json"], more].concat());
    let (_, err, code) = check(&[]);
    assert!(code == Some(2) && err.contains("cannot read the baseline"), "{err}");
    let (_, err, code) = check(&["--update", "scenario.yaml", "--replications", "2"]);
    assert_eq!(code, Some(0), "{err}");
    let (out, err, code) = check(&[]);
    assert_eq!((code, err.as_str()), (Some(0), "running 6 simulations of 30m each\n"));
    assert!(out.contains("none worse"), "{out}");
    let worse =
        "NodePool[default].spec.template.spec.requirements[node.kubernetes.io/instance-type].values=[m5.4xlarge]";
    let (out, _, code) = check(&["--set", worse, "--markdown", "moved.md", "--junit", "moved.xml"]);
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("WORSE") && out.contains("cost"), "{out}");
    assert!(fs::read_to_string(place.path("moved.md")).unwrap().contains("| WORSE |"));
    assert!(fs::read_to_string(place.path("moved.xml")).unwrap().contains("<failure message=\"cost was"));
    // A guard that is looser than the change lets it pass.
    let little = "Deployment[shop/web].spec.template.metadata.labels.team=red";
    let (out, _, code) = check(&["--set", little, "--tolerance", "1%", "--format", "json"]);
    assert_eq!(code, Some(0), "{out}");
    let movements: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(movements.as_array().unwrap().iter().all(|movement| movement["standing"] == "same"), "{out}");
}

#[test]
fn check_rejects_incomparable_baseline() {
    let place = place();
    let check = |more: &[&str]| place.nodecast(&[&["check", "--baseline", "baseline.json"], more].concat());
    let (_, err, code) = check(&["--update", "scenario.yaml", "--replications", "1"]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(json(&place, "baseline.json")["scenarios"][0]["simulated"], "30m");
    let (_, err, code) = check(&["--set", "duration=1h"]);
    assert!(code == Some(2) && err.contains("recorded `scenario.yaml` over 30m"), "{err}");
    let scenario = fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put("scenario.yaml", &scenario.replace("duration: 30m", "duration: 1h"));
    let (_, err, code) = check(&[]);
    assert!(code == Some(2) && err.contains("recorded `scenario.yaml` over 30m"), "{err}");
    place.put("scenario.yaml", &scenario.replace("  - {name: same, autoscaler: karpenter}\n", ""));
    let (_, err, code) = check(&[]);
    assert!(code == Some(2) && err.contains("has results for same in `scenario.yaml`"), "{err}");
    let (_, err, code) = check(&["--update", "scenario.yaml", "--replications", "1"]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(check(&[]).2, Some(0));
}

#[test]
fn switching_off_small_service_is_not_better() {
    let place = place();
    let web = fs::read_to_string(place.path("cluster.yaml")).unwrap();
    let (_, web) = web.rsplit_once("---\n").unwrap();
    place.put("tiny.yaml", &web.replace("web", "tiny").replace("replicas: 2", "replicas: 1"));
    let load = |name: &str, rate: &str| {
        format!(
            "  - workload: shop/{name}\n    requests: {{constant: {rate}}}\n    service: {{cpu_per_request: 2ms, concurrency: 4, timeout: 2s}}\n"
        )
    };
    let scenario = fs::read_to_string(place.path("scenario.yaml")).unwrap();
    let scenario = scenario.replace("[cluster.yaml]", "[cluster.yaml, tiny.yaml]");
    place.put("scenario.yaml", &format!("{scenario}load:\n{}{}", load("web", "50"), load("tiny", "0.1")));
    let check = |more: &[&str]| place.nodecast(&[&["check", "--baseline", "baseline.json"], more].concat());
    let (_, err, code) = check(&["--update", "scenario.yaml", "--replications", "1"]);
    assert_eq!(code, Some(0), "{err}");
    let off = "Deployment[shop/tiny].spec.replicas=0";
    let (out, _, code) = check(&["--set", off, "--format", "json"]);
    assert_eq!(code, Some(1), "{out}");
    let movements: serde_json::Value = serde_json::from_str(&out).unwrap();
    let silent = movements.as_array().unwrap().iter().find(|array| array["figure"] == "workloads_silent").unwrap();
    assert_eq!((&silent["was"], &silent["is"], &silent["standing"]), (&0.0.into(), &1.0.into(), &"worse".into()));
    let (out, err, code) = place.nodecast(&["diff", "scenario.yaml", "--set", off, "--replications", "1"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("shop/tiny answers none of its requests with the change, unlike now"), "{out}");
}

#[test]
fn diff_sides_have_separate_objectives() {
    let place = place();
    let edit = "objectives.cost=100";
    let (out, err, code) = place.nodecast(&["diff", "scenario.yaml", "--set", edit, "--replications", "1"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("Objective cost \u{2264} $1.0000: met now in 1 of 1 runs."), "{out}");
    assert!(out.contains("Objective cost \u{2264} $100.00: met with the change in 1 of 1 runs."), "{out}");
    assert!(
        out.contains("no objective") && out.contains("met now in 1 of 1 runs, with the change in 1 of 1 runs."),
        "{out}"
    );
}

#[test]
fn settings_of_two_currencies_are_refused() {
    let place = place();
    let (_, err, code) = place.nodecast(&["sweep", "scenario.yaml", "--set", "region=us-east-1,cn-north-1"]);
    assert!(code == Some(2) && err.contains("the settings are billed in USD and CNY"), "{err}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn parts_at_other_prices_do_not_merge() {
    let place = place();
    let ebs = include_str!("../../pricing-data/ebs.csv");
    for (shard, text) in [("1/2", ebs.to_owned()), ("2/2", format!("{ebs}\n"))] {
        place.put("prices/ebs.csv", &text);
        let arguments = ["compare", "scenario.yaml", "--pricing-data", "prices", "--shard", shard, "--out", "parts"];
        let (_, err, code) = place.nodecast(&arguments);
        assert_eq!(code, Some(0), "{err}");
    }
    let (_, err, code) = place.nodecast(&["merge", "parts/part-1-of-2.json", "parts/part-2-of-2.json"]);
    assert!(code == Some(2) && err.contains("answers another question"), "{err}");
    let arguments = ["run", "scenario.yaml", "--pricing-data", "prices", "--out", "run"];
    let (_, err, code) = place.nodecast(&arguments);
    assert_eq!(code, Some(0), "{err}");
    let inputs = json(&place, "run/summary.json")["about"]["inputs"].clone();
    assert!(inputs.as_array().unwrap().iter().any(|input| input["path"] == "prices/ebs.csv"), "{inputs}");
}

#[test]
fn documented_sweeps_can_be_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut shown = 0;
    for file in ["docs/scale.md", "scenarios/consolidation-tuning/README.md"] {
        let text = fs::read_to_string(root.join(file)).unwrap().replace("\\\n", " ");
        for command in text.lines().filter(|line| line.starts_with("nodecast sweep scenarios/")) {
            let scenario = root.join(command.split_whitespace().nth(2).unwrap());
            let axes =
                command.split("--set '").skip(1).map(|rest| Axis::parse(rest.split('\'').next().unwrap()).unwrap());
            let settings = axes::grid(&axes.collect::<Vec<_>>()).unwrap();
            let edits: Vec<Edit> = settings[0].iter().map(|(path, value)| Edit::new(path, value).unwrap()).collect();
            let loaded =
                nodecast::scenario::load_edited(&scenario, Catalog::embedded().unwrap(), &Limits::default(), &edits);
            assert!(loaded.is_ok(), "{file}: {command}: {}", loaded.unwrap_err());
            shown += 1;
        }
    }
    assert_eq!(shown, 2);
}

#[test]
fn outdated_baseline_lists_model_changes() {
    let place = place();
    let check = |more: &[&str]| place.nodecast(&[&["check", "--baseline", "baseline.json"], more].concat());
    let (_, err, code) = check(&["--update", "scenario.yaml", "--replications", "1"]);
    assert_eq!(code, Some(0), "{err}");
    let written = fs::read_to_string(place.path("baseline.json")).unwrap();
    let number = format!("  \"model\": {},\n", nodecast::experiment::model::MODEL);
    assert!(written.contains(&number), "{written}");
    place.put("baseline.json", &written.replace(&number, ""));
    let (out, err, code) = check(&["--markdown", "moved.md", "--junit", "moved.xml"]);
    assert_eq!((out.as_str(), code), ("", Some(4)), "{err}");
    let line = err.lines().next().unwrap().to_owned() + err.lines().nth(1).unwrap();
    assert!(line.contains("`baseline.json` was written by model version 1"), "{err}");
    for change in nodecast::experiment::model::changes_since(1) {
        assert!(err.contains(&change[..30]), "{change}: {err}");
    }
    assert!(err.contains("nodecast check --baseline baseline.json --update"), "{err}");
    let markdown = fs::read_to_string(place.path("moved.md")).unwrap();
    assert!(markdown.contains("was written by model version 1") && markdown.contains("--update"), "{markdown}");
    assert!(fs::read_to_string(place.path("moved.xml")).unwrap().contains("errors=\"1\""));
    let (out, _, code) = check(&["--format", "json"]);
    assert!(code == Some(4) && out.contains("was written by model version 1"), "{out}");
    // A part of it is not brought up to date beside figures of the former model.
    let two =
        written.replace(&number, "").replacen("\"scenario\": \"scenario.yaml\"", "\"scenario\": \"other.yaml\"", 1);
    place.put("baseline.json", &two);
    let (_, err, code) = check(&["--update", "scenario.yaml"]);
    assert!(code == Some(2) && err.contains("other.yaml"), "{err}");
    place.put("baseline.json", &written.replace(&number, "  \"model\": 99,\n"));
    let (_, err, code) = check(&[]);
    assert!(code == Some(4) && err.contains("a later nodecast wrote it"), "{err}");
}

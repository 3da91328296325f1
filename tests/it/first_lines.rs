//! The first line of each command's output has the answer.

use crate::cli::Place;

const POLICIES: &str = "policies: [{name: one, autoscaler: karpenter}, {name: two, autoscaler: karpenter}]\n";

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn first_line_of_each_command_answers() {
    let place = Place::new();
    let scenario = std::fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put("both.yaml", &(scenario.clone() + POLICIES));
    place.put("limits.yaml", &(scenario + "objectives: {pending_p99: 1s}\n"));
    place.nodecast(&["run", "scenario.yaml", "--out", "recording"]);
    place.nodecast(&["check", "scenario.yaml", "--baseline", "baseline.json", "--update"]);
    let after = ["explain", "scenario.yaml", "node", "default-00001", "--at", "9m"];
    let cases: [(&[&str], &[&str]); 11] = [
        (&["run", "limits.yaml"], &["two-pods: $", " per month", "p99 pod wait", "1 of 1 objective missed"]),
        (&["compare", "both.yaml", "--replications", "2"], &["two-pods: two ", "than one."]),
        (
            &["diff", "scenario.yaml", "--set", "seed=9", "--replications", "2"],
            &["two-pods: The cluster with the change ", "than now"],
        ),
        (&["sweep", "scenario.yaml", "--set", "seed=1,2", "--replications", "1"], &["two-pods: ", "heapest"]),
        (&["check", "--baseline", "baseline.json"], &["check passed: "]),
        (&["pack", "cluster.yaml", "--region", "us-east-1"], &["Karpenter launches 1 node: $"]),
        (&after, &["node default-00001 (On-Demand m5.large, us-east-1", " at 9m: "]),
        (&["rightsize", "scenario.yaml", "--replications", "1"], &["two-pods: "]),
        (&["recommend", "scenario.yaml", "--simulations", "40"], &["two-pods: "]),
        (&["backtest", "scenario.yaml", "--from", "recording", "--replications", "3"], &["two-pods: From "]),
        (&["validate", "scenario.yaml"], &["scenario.yaml: valid"]),
    ];
    for (words, parts) in cases {
        let (out, err, _) = place.nodecast(words);
        let first = out.lines().next().unwrap_or_default();
        assert!(parts.iter().all(|part| first.contains(part)), "{words:?}: {out}{err}");
    }
}

/// Lines of `words`' output, after they succeeded.
fn answered(place: &Place, words: &[&str]) -> String {
    let (out, err, code) = place.nodecast(words);
    assert_eq!(code, Some(0), "{words:?}: {out}{err}");
    out.lines().next().unwrap_or_default().to_owned()
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn first_line_of_dump_and_price_commands_answers() {
    let place = Place::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let saved = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/observed/tests/data/shop-prod");
    place.put("dump.yaml", &std::fs::read_to_string(format!("{data}/dump/cluster.yaml")).unwrap());
    let dump = std::fs::read_to_string(place.path("dump.yaml")).unwrap();
    let node = dump.lines().find_map(|line| line.trim().strip_prefix("nodeName: ")).unwrap().to_owned();
    let cases: [(&[&str], &[&str]); 9] = [
        (&["drain", "dump.yaml", &node], &["drain ", ": "]),
        (&["explain", "dump.yaml", "node", &node], &["node ", ": cannot be disrupted"]),
        (&["pack", "dump.yaml", "--repack"], &["$"]),
        (&["init", "own", "--from", "dump.yaml"], &["wrote own/scenario.yaml"]),
        (&["init", "--fleet", "--from", "dump.yaml", "both"], &["wrote both/fleet.yaml: a fleet of 1 cluster"]),
        (&["observe", "--answers", saved, "--out", "seen"], &["observed: 2026-10-13", " metrics, ", " missing"]),
        (
            &["pricing", "show", "c6g.large", "--region", "eu-west-1"],
            &["c6g.large in eu-west-1: On-Demand $", "Spot from "],
        ),
        (
            &["pricing", "list", "--region", "eu-west-1", "--family", "c6g"],
            &["eu-west-1: ", " instance types; lowest On-Demand price $"],
        ),
        (&["pricing", "import", "--out", "mine", "own.csv"], &["imported 1 record from 1 file, 0 left out"]),
    ];
    place.put("own.csv", "region,instance_type,price,as_of\neu-west-1,c6g.large,0.05,2026-11-02\n");
    for (words, parts) in cases {
        let first = answered(&place, words);
        assert!(parts.iter().all(|part| first.contains(part)), "{words:?}: {first}");
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn first_line_of_fleets_and_merges_answers() {
    let place = Place::new();
    let scenario = std::fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put("both.yaml", &(scenario + POLICIES));
    place.put(
        "fleet.yaml",
        "fleet: twins\nclusters: [{ name: left, scenario: both.yaml }, { name: right, scenario: both.yaml }]\n",
    );
    let churn = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/churn/four-minutes/scenario.yaml");
    answered(&place, &["run", "both.yaml", "--out", "recording"]);
    for part in ["1/2", "2/2"] {
        place.nodecast(&["compare", "both.yaml", "--replications", "2", "--shard", part, "--out", "parts"]);
    }
    let cases: [(&[&str], &[&str]); 6] = [
        (
            &["merge", "parts/part-1-of-2.json", "parts/part-2-of-2.json", "--out", "merged"],
            &["two-pods: two ", "than one."],
        ),
        (&["run", "fleet.yaml", "--out", "out"], &["twins: $", " per month for 2 clusters"]),
        (&["compare", "fleet.yaml", "--policies", "one,two", "--replications", "2"], &["twins: two ", "than one"]),
        (&["calibrate", "both.yaml", "--from", "recording", "--no-effects"], &[" of ", " parameters fitted: "]),
        (&["explain", churn, "decision", "d1", "--duration", "15m"], &["decision d1", ": "]),
        (&["explain", "both.yaml", "pod", "web-00000"], &["pod web-00000 of shop/web was scheduled to "]),
    ];
    for (words, parts) in cases {
        let first = answered(&place, words);
        assert!(parts.iter().all(|part| first.contains(part)), "{words:?}: {first}");
    }
}

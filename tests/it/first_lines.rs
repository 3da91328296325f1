//! The first line of each command's output has the answer.

use crate::cli::Place;

const POLICIES: &str = "policies: [{name: one, autoscaler: karpenter}, {name: two, autoscaler: karpenter}]\n";

#[test]
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
        (&["diff", "scenario.yaml", "--set", "seed=9", "--replications", "2"], &["two-pods: the cluster with the change ", "than now"]),
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

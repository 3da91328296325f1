//! What comparisons, sweeps and guards say of their figures, in words.

use std::fs;

use crate::cli::Place;
use crate::keda::{cluster, deployment};

const POLICIES: &str = "  - {name: small, autoscaler: karpenter}
  - {name: spot, autoscaler: karpenter, manifests: [spot.yaml]}
  - {name: capped, autoscaler: karpenter, manifests: [capped.yaml]}
";

/// Two pods on On-Demand nodes, on Spot nodes, and in a NodePool that may not grow.
fn place(policies: &str) -> Place {
    let place = Place::new();
    place.put(
        "scenario.yaml",
        &format!(
            "name: two-pods\nregion: us-east-1\nstart: 2026-11-27T00:00:00Z\nduration: 30m\nseed: 7\nreplications: 6\n\
             manifests: [cluster.yaml]\npolicies:\n{policies}objectives: {{cost: 1}}\n"
        ),
    );
    let cluster = fs::read_to_string(place.path("cluster.yaml")).unwrap();
    let pool = cluster.split("---\n").nth(1).unwrap();
    place.put("capped.yaml", &pool.replace("\nspec:\n", "\nspec:\n  limits: {cpu: 1}\n"));
    place.put("spot.yaml", &pool.replace("[on-demand]", "[spot]").replace("m5.large", "m6i.large"));
    place
}

fn compared(place: &Place, more: &[&str]) -> (String, String) {
    let (out, err, code) = place.nodecast(&[&["compare", "scenario.yaml", "--out", "here"], more].concat());
    assert_eq!(code, Some(0), "{err}");
    (out, fs::read_to_string(place.path("here/comparison.html")).unwrap())
}

/// The cells of the row of a table that begins with `label`.
fn row<'t>(table: &'t str, label: &str) -> Vec<&'t str> {
    let line = table.lines().find(|line| line.starts_with(label)).unwrap_or_else(|| panic!("{label}: {table}"));
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn policy_with_unscheduled_pods_is_not_cheaper() {
    let (out, page) = compared(&place(POLICIES), &[]);
    let sentence = "capped leaves 2 pods unscheduled (small: 0), so its cost is not comparable.";
    let verdict: Vec<&str> = out.lines().skip_while(|line| !line.ends_with(sentence)).collect();
    assert!(verdict.len() > 1 && verdict[1].starts_with("spot is "), "{out}");
    assert!(!out.contains("capped is ") && page.contains(sentence) && !page.contains("capped is "), "{out}");
    assert_eq!(row(&out, "unscheduled pods at the end"), ["unscheduled pods at the end", "0", "0", "2"]);
    // How well a cost is known that says nothing is not worth a word.
    assert!(
        out.contains("\nThe cost difference is known to within ") && !out.contains("Cost differences are"),
        "{out}"
    );
    // Whichever is first: the one that does the work is not called dearer.
    let (out, _) = compared(&place(POLICIES), &["--policies", "capped,small", "--replications", "1"]);
    assert!(out.contains("capped leaves 2 pods unscheduled (small: 0), so its cost is not comparable.\n"), "{out}");
    assert!(!out.contains("small is ") && !out.contains("One replication"), "{out}");
}

#[test]
fn policy_with_waiting_messages_is_not_cheaper() {
    let place = Place::new();
    place.put("cluster.yaml", &cluster(40));
    place.put("few.yaml", &deployment("worker", 2));
    place.put(
        "scenario.yaml",
        "name: orders\nregion: us-east-1\nstart: 2026-11-27T00:00:00Z\nduration: 30m\nseed: 7\nreplications: 2\n\
         manifests: [cluster.yaml]\nqueues:\n- {name: orders, kind: sqs, workload: worker, time_per_message: 2s, concurrency: 1, \
         messages: {constant: 8}}\npolicies:\n- {name: many, autoscaler: static}\n\
         - {name: few, autoscaler: static, manifests: [few.yaml]}\n",
    );
    let (out, _) = compared(&place, &[]);
    // Two workers take one of eight messages.
    assert!(out.starts_with("orders: few leaves 8") && out.contains("% of its messages unprocessed (many: 0"), "{out}");
    assert!(
        out.contains(", so its cost is not comparable.") && !out.contains("few is ") && !out.contains("few costs"),
        "{out}"
    );
    assert!(row(&out, "messages left at the end").len() == 4, "{out}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn comparison_discloses_estimated_prices_and_missing_interruptions() {
    let (out, page) = compared(&place(POLICIES), &["--policies", "small,spot"]);
    assert!(
        out.starts_with("two-pods: spot is ") && out.contains("\nsmall and spot, 6 replications, seeds 7 to 12; "),
        "{out}"
    );
    let estimated = row(&out, "share at estimated prices");
    assert!(estimated.len() == 4 && estimated[1] != estimated[2] && estimated[2].ends_with('%'), "{out}");
    assert!(out.contains("\nMuch of the cost uses estimated prices ("), "{out}");
    assert!(out.contains("%); ignore differences of a few percent.\n"), "{out}");
    assert!(
        page.contains("ignore differences of a few percent.")
            && page.to_lowercase().contains("share at estimated prices")
    );
    // None can be without Spot nodes; with them none was seen.
    assert_eq!(row(&out, "Spot interruptions"), ["Spot interruptions", "0", "0.0 (0.0 to 0.8)", "\u{2212}0.8 to +0.8"]);
    let (out, _) = compared(&place("  - {name: small, autoscaler: karpenter}\n"), &[]);
    assert!(!out.contains("Spot interruptions") && !out.contains("few percent"), "{out}");
}

#[test]
fn one_seed_has_no_interval() {
    let place = place("  - {name: small, autoscaler: karpenter}\n");
    let edit = "Deployment[shop/web].spec.replicas=3";
    let page = |out: &str| fs::read_to_string(place.path(out)).unwrap();
    let (out, err, code) =
        place.nodecast(&["diff", "scenario.yaml", "--set", edit, "--replications", "1", "--html", "one.html"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("\nnow and with the change, 1 replication, seed 7\n"), "{out}");
    assert!(out.contains("   change\n") && !out.contains("intervals have"), "{out}");
    let html = page("one.html");
    assert!(
        html.contains("<h1>two-pods: now and with the change compared</h1>") && html.contains(", seed 7 on both sides")
    );
    let requested = html.lines().find(|line| line.contains("<td>CPU capacity requested</td>") && line.contains('+'));
    assert!(requested.is_some_and(|line| line.contains(" points<")), "{requested:?}");
}

#[test]
fn check_lists_unevaluated_metrics_and_name_sources() {
    let place = place("  - {name: small, autoscaler: karpenter}\n");
    let check = |more: &[&str]| place.nodecast(&[&["check", "--baseline", "baseline.json"], more].concat());
    let (_, err, code) = check(&["--update", "scenario.yaml", "--replications", "1"]);
    assert_eq!(code, Some(0), "{err}");
    let edit = "Deployment[shop/web].spec.replicas=9";
    let (out, _, code) = check(&["--set", edit, "--junit", "moved.xml", "--markdown", "moved.md"]);
    assert_eq!(code, Some(1), "{out}");
    let launches = out.lines().find(|line| line.contains("  launches  ")).unwrap();
    assert!(launches.ends_with("\u{2013}   not evaluated"), "{out}");
    assert!(fs::read_to_string(place.path("moved.xml")).unwrap().contains("<skipped message=\"not evaluated\"/>"));
    assert!(fs::read_to_string(place.path("moved.md")).unwrap().contains("| \u{2013} | not evaluated |"));
    fs::rename(place.path("scenario.yaml"), place.path("renamed.yaml")).unwrap();
    let (_, err, code) = check(&[]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("the baseline `baseline.json` names `scenario.yaml`, and there is no such file"), "{err}");
    assert!(err.contains("relative to the directory that nodecast runs in"), "{err}");
}

#[test]
fn idle_autoscaler_is_named_in_verdict() {
    let (out, page) = compared(&place(POLICIES), &["--policies", "small,capped", "--replications", "1"]);
    let sentence = "capped launched no nodes with Karpenter, but small did";
    assert!(out.contains(&format!("\nThis determines the result: {sentence}")), "{out}");
    assert!(out.contains(&format!("\n  {sentence}")) && page.contains(sentence), "{out}");
    let (out, _) = compared(&place(POLICIES), &["--policies", "small,spot", "--replications", "1"]);
    assert!(!out.contains("launched no nodes") && !out.contains("determines the result"), "{out}");
}

#[test]
fn node_group_size_difference_is_named_as_decisive() {
    let place = place("  - {name: pools, autoscaler: karpenter}\n  - {name: groups, autoscaler: cluster-autoscaler}\n");
    let scenario = fs::read_to_string(place.path("scenario.yaml")).unwrap();
    let with_groups = |groups: &str| place.put("scenario.yaml", &format!("{scenario}nodeGroups:\n{groups}"));
    with_groups("- {name: full, instanceTypes: [m5.large], min: 1, desired: 6, max: 8}\n");
    let (out, page) = compared(&place, &["--replications", "2"]);
    let sentence =
        "the policies have different node groups: full stays at 6 nodes under pools and may go down to 1 under groups";
    assert!(out.contains(&format!("\nThis determines the result: {sentence}.")), "{out}");
    assert!(out.contains(&format!("\n  {sentence}")) && page.contains(sentence), "{out}");
    // A group that both keep at one size makes no difference.
    with_groups("- {name: full, instanceTypes: [m5.large], min: 2, desired: 2, max: 8}\n");
    let (out, _) = compared(&place, &["--replications", "2"]);
    assert!(!out.contains("have different node groups"), "{out}");
}

/// The command that the report in a folder says repeats it, without the program.
fn command(place: &Place, report: &str) -> Vec<String> {
    let page = fs::read_to_string(place.path(report)).unwrap();
    let at = page.find("<dd>nodecast run ").unwrap();
    let line = page[at..].trim_start_matches("<dd>nodecast ").split('<').next().unwrap();
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn comparison_report_matches_its_run_command() {
    let place = place(POLICIES);
    // Fields that are not known warn, in a comparison as in a run.
    let web = fs::read_to_string(place.path("cluster.yaml")).unwrap();
    place.put("cluster.yaml", &web.replace("spec:\n  replicas: 2\n", "spec:\n  replicas: 2\n  unheardOf: 1\n"));
    compared(&place, &["--policies", "small,spot", "--replications", "1"]);
    for policy in ["small", "spot"] {
        let words = command(&place, &format!("here/{policy}/report.html"));
        assert!(words.ends_with(&["--set".to_owned(), "ec2.spot.price_errors=drawn".to_owned()]), "{words:?}");
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.extend(["--out", "again"]);
        let (_, err, code) = place.nodecast(&words);
        assert_eq!(code, Some(0), "{err}");
        for file in ["summary.json", "report.html", "bill.csv", "nodes.csv", "events.jsonl"] {
            let read = |folder: &str| fs::read_to_string(place.path(folder).join(file)).unwrap();
            assert!(read(&format!("here/{policy}")) == read("again"), "{policy}/{file}");
        }
    }
    // Who says it is not told it again.
    compared(&place, &["--policies", "spot", "--replications", "1", "--set", "ec2.spot.price_errors=none"]);
    let words = command(&place, "here/spot/report.html");
    assert!(words.ends_with(&["--set".to_owned(), "ec2.spot.price_errors=none".to_owned()]), "{words:?}");
}

//! What a run emits is right, complete, equal for equal runs, and never replaces what is not ours.

use std::fs;
use std::path::Path;

use nodecast::domain::{PodId, ResourceName, SimDuration};
use nodecast::report::{self, OutputDirectory, Summary, page, plots::Plots, tables, terminal};
use nodecast::simulation::Outcome;
use nodecast::simulation::outcome::Objectives;

use crate::cli::assert_fits;
use crate::synthetic;

const COMMAND: &str = "nodecast run 'flash <sale>.yaml' --seed 7";

fn text(table: tables::Table, outcome: &Outcome) -> String {
    String::from_utf8(tables::bytes(table, outcome).expect("memory takes all")).expect("text")
}

fn html(outcome: &Outcome) -> String {
    let plots = Plots::from_outcome(outcome).expect("plots");
    page::render(outcome, &Summary::from_outcome(outcome), &plots, COMMAND)
}

fn near(actual: f64, wanted: f64) {
    assert!((actual - wanted).abs() < 4e-9, "{actual} is not {wanted}");
}

#[test]
fn terminal_summary_answers_in_twenty_five_lines() {
    let summary = Summary::from_outcome(&synthetic::outcome());
    let brief = terminal::brief(&summary, None);
    let before_warnings = brief.split("\n\n1 warning").next().unwrap();
    assert!(before_warnings.lines().count() <= 25, "{brief}");
    for width in [80, 60, 40] {
        let narrow = terminal::brief(&summary, Some(width));
        assert!(narrow.lines().all(|line| line.chars().count() <= width), "{narrow}");
    }
    insta::assert_snapshot!("terminal_brief", brief);
    insta::assert_snapshot!("terminal_table", terminal::table(&summary));
}

#[test]
fn terminal_columns_stay_separate_for_large_counts() {
    let mut summary = Summary::from_outcome(&synthetic::outcome());
    summary.requests[0].completed = 1_234_567_890.0;
    summary.requests[0].unanswered = 12_345_678_901.0;
    let table = terminal::table(&summary);
    assert!(table.contains("    42 ms 1,234,567,890 12,345,678,901\n"), "{table}");
}

#[test]
fn terminal_table_fits_terminal_width() {
    let outcome = synthetic::outcome();
    let summary = Summary::from_outcome(&outcome);
    let whole = terminal::table_over_time(&summary, &outcome);
    for width in [79, 60, 40] {
        assert_fits(&whole, &terminal::table_over_time_within(&summary, &outcome, Some(width)), width);
    }
    assert_eq!(terminal::table_over_time_within(&summary, &outcome, Some(400)), whole);
}

/// The answer to `question`: its value and what is said of it, as words.
fn answer(summary: &Summary, question: &str) -> (String, Vec<String>) {
    let answers = report::answers::answers(summary);
    let answer = answers.iter().find(|answer| answer.question == question).expect("asked");
    let words = |pieces: &Vec<report::answers::Piece>| pieces.iter().map(report::answers::Piece::words).collect();
    (answer.value.words().to_owned(), answer.clauses.iter().map(words).collect())
}

#[test]
fn met_objective_excuses_only_its_metric() {
    let mut summary = Summary::from_outcome(&synthetic::outcome());
    let kept = |name: &str, unit: &str| report::summary::ObjectiveResult {
        name: name.to_owned(),
        unit: unit.to_owned(),
        limit: 1e9,
        actual: Some(1.0),
        met: Some(true),
        because: None,
    };
    summary.objectives = vec![kept("cost", "USD")];
    summary.pods.pending_at_end = 5;
    summary.requests[0].timed_out = 1_423_256.4;
    summary.requests[0].dropped = 0.0;
    summary.requests.truncate(1);
    summary.availability.unavailable_pod_minutes = 13.0;
    let headline = |summary: &Summary| answer(summary, "Problems").0;
    assert_eq!(headline(&summary), "5 pods pending");
    summary.objectives.push(kept("pending_p99", "seconds"));
    assert_eq!(headline(&summary), "1,423,256 requests failed");
    summary.objectives.push(kept("request_p99", "seconds"));
    assert_eq!(headline(&summary), "13.0 pod-minutes missing");
    summary.objectives.push(kept("unavailable_pod_minutes", "pod-minutes"));
    assert_eq!(headline(&summary), "None");
    // Without any objective the worst is said as well.
    summary.objectives.clear();
    summary.pods.pending_at_end = 0;
    assert_eq!(headline(&summary), "1,423,256 requests failed");
}

#[test]
fn no_missed_objective_is_left_out() {
    let mut summary = Summary::from_outcome(&synthetic::outcome());
    let missed = |name: &str| report::summary::ObjectiveResult {
        name: name.to_owned(),
        unit: "seconds".to_owned(),
        limit: 1.0,
        actual: Some(2.0),
        met: Some(false),
        because: None,
    };
    summary.objectives = ["at_zero", "at_max", "pending_p95", "pending_p99", "request_p99"].map(missed).to_vec();
    let (value, clauses) = answer(&summary, "Problems");
    assert_eq!(value, "5 of 5 objectives missed");
    assert_eq!(clauses[3], "+ 2 more: pod wait p99, response time p99", "{clauses:?}");
}

#[test]
fn wait_summary_distinguishes_pods_created_before_warm_up() {
    let mut summary = Summary::from_outcome(&synthetic::outcome());
    summary.pods.wait_for_node = None;
    (summary.pods.created, summary.about.warm_up_seconds) = (38, Some(1_800.0));
    let (value, clauses) = answer(&summary, "Wait time");
    assert_eq!((value.as_str(), clauses[0].as_str()), ("None", "no pods were created after the warm-up"));
    summary.pods.created = 0;
    assert_eq!(answer(&summary, "Wait time").1[0], "no pods were created");
}

#[test]
fn lost_node_is_unready_until_it_returns() {
    let mut outcome = synthetic::outcome();
    let before = Summary::from_outcome(&outcome);
    let ready = outcome.record.nodes[0].ready.expect("Ready");
    let at = |seconds| ready + SimDuration::from_secs(seconds);
    outcome.record.nodes[0].not_ready = vec![(at(60), Some(at(420))), (at(3_000), None)];
    let after = Summary::from_outcome(&outcome);
    // Ready from the start of the hour on; 360 s and the last 600 s are missing.
    let lost = before.nodes.mean_ready.unwrap() - after.nodes.mean_ready.unwrap();
    assert!((lost - 960.0 / 3_600.0).abs() < 1e-5, "{lost}");
    assert_eq!((before.nodes.at_end, after.nodes.at_end), (2, 1));
    assert!(after.utilisation.cpu_requested > before.utilisation.cpu_requested);
}

#[test]
fn peak_includes_changes_between_samples() {
    let mut outcome = synthetic::outcome();
    let change = nodecast::world::record::ReplicaChange {
        at: nodecast::domain::SimTime::from_micros(61_000_000),
        workload: nodecast::domain::WorkloadId(0),
        kind: nodecast::world::record::EventKind::Rescaled,
        from: 3,
        to: 77,
        because: "cpu".into(),
    };
    outcome.record.replica_changes.push(change);
    assert_eq!(Summary::from_outcome(&outcome).scaling.workloads[0].max_replicas_desired, 77);
}

#[test]
fn a_table_without_rows_has_no_headings() {
    let table = terminal::table(&Summary::from_outcome(&synthetic::empty()));
    assert!(!table.contains("p50"), "{table}");
    assert!(!table.contains("\n\n\n"), "{table}");
}

#[test]
fn the_summary_has_stable_keys_and_reads_back() {
    let summary = Summary::from_outcome(&synthetic::outcome());
    let json = summary.to_json().expect("json");
    assert_eq!(serde_json::from_str::<Summary>(&json).expect("reads back"), summary);
    insta::assert_snapshot!("summary_json", json);
}

#[test]
fn the_tables_keep_their_columns() {
    let outcome = synthetic::outcome();
    insta::assert_snapshot!("pods_csv", text(tables::pods, &outcome));
    insta::assert_snapshot!("nodes_csv", text(tables::nodes, &outcome));
    insta::assert_snapshot!("bill_csv", text(tables::bill, &outcome));
    insta::assert_snapshot!("events_jsonl", text(tables::events, &outcome));
    let start = |table: String| table.lines().take(3).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!("timeline_csv", start(text(tables::timeline, &outcome)));
    insta::assert_snapshot!("workloads_csv", start(text(tables::workloads, &outcome)));
}

#[test]
fn each_breakdown_sums_to_what_it_breaks_down() {
    let cost = Summary::from_outcome(&synthetic::outcome()).cost;
    let sum = |parts: &[report::summary::Part]| parts.iter().map(|part| part.amount).sum::<f64>();
    for whole in [&cost.by_item, &cost.by_workload, &cost.by_price_quality] {
        near(sum(whole), cost.total);
    }
    for nodes in [&cost.by_capacity_type, &cost.by_family, &cost.by_zone, &cost.by_node_origin] {
        near(sum(nodes), cost.nodes);
    }
    let instances = cost.by_item.iter().find(|part| part.name == "instance").map_or(0.0, |part| part.amount);
    near(cost.phases.starting + cost.phases.useful + cost.phases.draining, instances);
}

#[test]
fn node_with_full_gpus_is_not_idle() {
    let mut outcome = synthetic::outcome();
    let before = Summary::from_outcome(&outcome).cost.idle.amount;
    // Both GPUs of the first node for the whole hour; of its memory half was requested, of its CPU a quarter.
    let gpus = ResourceName::NVIDIA_GPU;
    let node = &mut outcome.record.nodes[0];
    node.allocatable = (*node.allocatable).clone().with(gpus, 2).into();
    node.requested_accelerators = vec![(gpus, 2 * 3_600 * 1_000_000)];
    let pod = outcome.record.pods.change(PodId(0));
    pod.requests = (*pod.requests).clone().with(gpus, 2).into();
    let cost = Summary::from_outcome(&outcome).cost;
    near(before - cost.idle.amount, (0.096 + 0.002_191_781) * 0.5);
    near(cost.by_workload.iter().map(|part| part.amount).sum(), cost.total);
}

#[test]
fn phase_and_idle_costs_follow_node_lives() {
    let cost = Summary::from_outcome(&synthetic::outcome()).cost;
    // The Spot node: 30 s to Ready, 10 s from the decision to the end; the last one: 40 s to Ready.
    near(cost.phases.starting, 0.04 * 30.0 / 3_600.0 + 0.0816 * 40.0 / 3_600.0);
    near(cost.phases.draining, 0.04 * 10.0 / 3_600.0);
    // The first node half full by memory; the others by CPU: 1100 of 2000 for 1500 of 1600 s, half for 2650 of 2690 s.
    let volume = 0.002_191_781 / 3_600.0;
    let first = (0.096 + volume * 3_600.0) * 0.5;
    let spot = (0.04 / 3_600.0 * 1_600.0 + volume * 1_638.0) * (1.0 - 0.55 * 1_500.0 / 1_600.0);
    let last = (0.0816 / 3_600.0 * 2_690.0 + volume * 2_696.0) * (1.0 - 0.5 * 2_650.0 / 2_690.0);
    near(cost.idle.amount, first + spot + last);
    near(cost.unconfirmed.amount, 0.04 / 3_600.0 * 1_600.0);
}

#[test]
fn unscheduled_pod_counts_with_its_wait() {
    let pods = Summary::from_outcome(&synthetic::outcome()).pods;
    let waits = pods.wait_for_node.expect("pods waited");
    // Waits are 0, 40 and 50 s, and 100 s from creation to the end; daemons are left out.
    assert_eq!((pods.created, pods.daemon_pods_created, pods.pending_at_end, waits.count), (4, 2, 1, 4));
    near(waits.p50_seconds, 40.0);
    near(waits.p99_seconds, 100.0);
    near(waits.mean_seconds, 47.5);
}

#[test]
fn ready_nodes_and_utilisation_are_weighted_by_time() {
    let summary = Summary::from_outcome(&synthetic::outcome());
    near(summary.nodes.mean_ready.expect("a mean"), 2.172_222);
    assert_eq!((summary.nodes.max_ready, summary.nodes.at_start, summary.nodes.at_end), (3, 1, 2));
    assert_eq!((summary.nodes.launches, summary.nodes.failed_launches), (2, 1));
    // 500, 1100 and 1000 of 2000 milli-CPU over 3600, 1500 and 2650 s, of 7820 s Ready together.
    near(summary.utilisation.cpu_requested.expect("a share"), 0.390_026);
}

#[test]
fn objectives_are_held_against_what_happened() {
    let summary = Summary::from_outcome(&synthetic::outcome());
    let verdicts: Vec<_> = summary.objectives.iter().map(|o| (o.name.as_str(), o.met)).collect();
    assert_eq!(verdicts, [("pending_p99", Some(false)), ("request_p99", Some(false)), ("cost", Some(true))]);
    let mut outcome = synthetic::outcome();
    outcome.about.objectives = Objectives {
        unavailable_pod_minutes: Some(30.0),
        at_zero: Some(SimDuration::from_secs(299)),
        at_max: Some(SimDuration::from_secs(900)),
        pending_p95: Some(SimDuration::from_secs(10)),
        ..Objectives::default()
    };
    let summary = Summary::from_outcome(&outcome);
    let verdicts: Vec<_> = summary.objectives.iter().map(|o| (o.name.as_str(), o.met, o.actual)).collect();
    assert_eq!(
        verdicts,
        [
            ("unavailable_pod_minutes", Some(true), Some(30.0)),
            ("at_zero", Some(false), Some(300.0)),
            ("at_max", Some(true), Some(900.0)),
            ("pending_p95", Some(false), Some(100.0)),
        ]
    );
    let table = terminal::table(&summary);
    assert!(table.contains("met      missing replicas     30.0 of 30.0 pod-minutes"), "{table}");
    let nothing = Summary::from_outcome(&synthetic::empty());
    assert_eq!(nothing.objectives.iter().map(|o| o.met).collect::<Vec<_>>(), [None, None, Some(true)]);
}

#[test]
fn a_run_without_anything_still_makes_a_report() {
    let outcome = synthetic::empty();
    assert!(Plots::from_outcome(&outcome).expect("plots").drawn.is_empty());
    assert!(html(&outcome).contains("There are no plots"));
    let summary = Summary::from_outcome(&outcome);
    assert_eq!((summary.cost.per_hour, summary.nodes.mean_ready), (None, None));
    assert!(terminal::table(&summary).contains("$0.0000"));
}

#[test]
fn empty_plot_is_omitted_with_note() {
    let mut outcome = synthetic::outcome();
    for id in (0..outcome.record.pods.len()).map(PodId::from_index) {
        let pod = outcome.record.pods.change(id);
        (pod.scheduled, pod.ready) = (Some(pod.created), Some(pod.created));
    }
    let plots = Plots::from_outcome(&outcome).expect("plots");
    let files: Vec<_> = plots.drawn.iter().map(|plot| plot.file).collect();
    assert_eq!(files, ["replicas.svg", "metrics.svg", "queues.svg", "nodes.svg", "latency.svg"]);
    assert!(html(&outcome).contains("\u{201c}Pods on their way\u{201d} is left out"));
}

/// Tags in order: an element's name, or `/name` for its end. Elements that close themselves are left out.
fn tags(html: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        let close = rest[open..].find('>').expect("a tag ends") + open;
        let tag = &rest[open + 1..close];
        assert!(!tag.contains('<'), "`<` within {tag}");
        if !tag.starts_with('!') && !tag.ends_with('/') {
            tags.push(tag.split_whitespace().next().unwrap_or_default().to_owned());
        }
        rest = &rest[close + 1..];
    }
    tags
}

/// The page without what stands within its scripts, which is no markup.
fn without_scripts(page: &str) -> String {
    let mut markup = String::new();
    for part in page.split("<script") {
        let end = part.find("</script>").filter(|_| !markup.is_empty()).map_or(0, |end| end + "</script>".len());
        markup.push_str(&part[end..]);
    }
    markup
}

#[test]
fn every_element_of_the_page_is_closed() {
    for outcome in [synthetic::outcome(), synthetic::empty()] {
        let mut open = Vec::new();
        for tag in tags(&without_scripts(&html(&outcome))) {
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop().as_deref(), Some(name)),
                None => open.push(tag),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let page = html(&synthetic::outcome());
    let without_namespace = page.replace("http://www.w3.org/2000/svg", "").replace("href=\"#", "").replace("url(#", "");
    let of_markup = ["http:", "https:", "src=", "href=", "url(", "@import", "<link", "<iframe"];
    let of_script = ["fetch(", "XMLHttpRequest", "import(", "WebSocket", "sendBeacon", "eval(", "innerHTML"];
    for outside in of_markup.into_iter().chain(of_script) {
        assert!(!without_namespace.contains(outside), "{outside}");
    }
}

#[test]
fn page_shows_summary_and_escapes_text() {
    let outcome = synthetic::outcome();
    let page = html(&outcome);
    assert!(page.contains("12\u{a0}ms of CPU"), "a number stays with its unit");
    let page = page.replace('\u{a0}', " ");
    let summary = Summary::from_outcome(&outcome);
    let money = |amount| report::format::money("USD", amount);
    for figure in [
        money(summary.cost.total),
        money(summary.cost.per_month.expect("a month")),
        money(summary.cost.idle.amount),
        report::format::span_or_dash(summary.requests[0].p99_seconds),
        "1,234,567".to_owned(),
        summary.event_hash.clone(),
        summary.about.inputs[0].sha256.clone(),
        summary.about.price_date.clone(),
        "nodecast run &#39;flash &lt;sale&gt;.yaml&#39; --seed 7".to_owned(),
        "&lt;preStop&gt; hooks".to_owned(),
        "12 ms of CPU &amp; nothing else".to_owned(),
    ] {
        assert!(page.contains(&figure), "{figure}");
    }
    assert!(!page.contains("<preStop>"));
}

fn write(outcome: &Outcome, out: &Path) -> Result<std::path::PathBuf, report::ReportError> {
    report::write(outcome, &Summary::from_outcome(outcome), COMMAND, None, out)
}

fn contents(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a name");
            (name, fs::read(entry.path()).unwrap_or_default())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn equal_runs_write_identical_reports_replacing_old() {
    let place = tempfile::tempdir().expect("a directory");
    let (one, two) = (place.path().join("deep/one"), place.path().join("two"));
    write(&synthetic::outcome(), &one).expect("written");
    write(&synthetic::empty(), &two).expect("written");
    assert_ne!(contents(&one), contents(&two));
    write(&synthetic::outcome(), &two).expect("replaced");
    assert_eq!(contents(&one), contents(&two));
    let names: Vec<String> = contents(&one).into_iter().map(|file| file.0).collect();
    insta::assert_snapshot!("files", names.join("\n"));
    let beside: Vec<String> = contents(place.path()).into_iter().map(|entry| entry.0).collect();
    assert_eq!(beside, ["deep", "two"], "nothing stays beside the report");
}

#[test]
fn foreign_output_directory_is_rejected_unchanged() {
    let place = tempfile::tempdir().expect("a directory");
    let notes = place.path().join("notes");
    fs::create_dir(&notes).expect("made");
    fs::write(notes.join("diary.txt"), "dear diary").expect("written");
    let refused = |path: &Path| {
        let before = (path.is_dir()).then(|| contents(path));
        assert!(OutputDirectory::check(path).is_err());
        let error = write(&synthetic::outcome(), path).expect_err("refused").to_string();
        assert_eq!((path.is_dir()).then(|| contents(path)), before);
        error
    };
    assert!(refused(&notes).ends_with("it is not empty and holds no summary.json of nodecast"));
    fs::write(notes.join("summary.json"), "{\"program\": \"another\"}").expect("written");
    assert!(refused(&notes).ends_with("it is not empty and holds no summary.json of nodecast"));
    assert!(refused(&notes.join("diary.txt")).ends_with("it is a file"));

    let report = place.path().join("report");
    write(&synthetic::outcome(), &report).expect("written");
    fs::write(report.join("remarks.md"), "mine").expect("written");
    assert!(refused(&report).ends_with("`remarks.md` in it was not written by nodecast"));
    assert!(refused(Path::new(".")).ends_with("it is or contains the current directory"));
}

#[test]
fn modified_report_is_not_replaced() {
    let place = tempfile::tempdir().expect("a directory");
    let report = place.path().join("report");
    write(&synthetic::outcome(), &report).expect("written");
    let refused = |name: &str, content: &str, why: &str| {
        let before = fs::read(report.join(name)).ok();
        fs::write(report.join(name), content).expect("written");
        let error = write(&synthetic::empty(), &report).expect_err("refused").to_string();
        assert!(error.ends_with(why), "{error}");
        assert_eq!(fs::read_to_string(report.join(name)).expect("still there"), content);
        match before {
            Some(before) => fs::write(report.join(name), before).expect("written"),
            None => fs::remove_file(report.join(name)).expect("removed"),
        }
    };
    refused("sketch.svg", "<svg/>", "`sketch.svg` in it was not written by nodecast");
    refused("nodes.csv", "one,two\n", "`nodes.csv` in it has been changed since nodecast wrote it");
    write(&synthetic::empty(), &report).expect("as it was, it may go");
}

#[test]
fn file_changed_during_run_keeps_earlier_report() {
    let place = tempfile::tempdir().expect("a directory");
    let report = place.path().join("report");
    let begun_then = |change: &dyn Fn()| {
        let directory = OutputDirectory::begin(&report).expect("begun");
        directory.file("summary.json", |output| output.write_all(b"{\"program\": \"nodecast\"}")).expect("written");
        change();
        directory.commit().map_err(|error| error.to_string())
    };
    write(&synthetic::outcome(), &report).expect("written");
    let bill = report.join("bill.csv");
    let (before, size) = (fs::read(&bill).expect("read"), fs::metadata(&bill).expect("there").len() as usize);
    let error = begun_then(&|| fs::write(&bill, "x".repeat(size)).expect("written")).expect_err("refused");
    assert!(error.ends_with("`bill.csv` in it has been changed since nodecast wrote it"), "{error}");
    assert_eq!(fs::read(&bill).expect("still there"), b"x".repeat(size));
    fs::write(&bill, &before).expect("written");
    let error = begun_then(&|| fs::write(report.join("notes.txt"), "mine").expect("written")).expect_err("refused");
    assert!(error.ends_with("`notes.txt` in it was not written by nodecast"), "{error}");
    fs::remove_file(report.join("notes.txt")).expect("removed");
    // Another time alone is no change.
    begun_then(&|| fs::write(&bill, &before).expect("written")).expect("the same bytes");
    assert_eq!(contents(&report).len(), 2);
}

#[test]
fn concurrent_runs_cannot_share_output_directory() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("report");
    let first = OutputDirectory::begin(&path).expect("begun");
    let error = write(&synthetic::outcome(), &path).expect_err("refused").to_string();
    assert!(error.starts_with("another run writes into"), "{error}");
    first.file("summary.json", |output| output.write_all(b"{\"program\": \"nodecast\"}")).expect("written");
    first.commit().expect("in place");
    assert_eq!(contents(&path).len(), 2);
    write(&synthetic::outcome(), &path).expect("nobody is at work any more");
    assert_eq!(contents(place.path()).len(), 1, "nothing stays beside it");
}

/// A run that is killed leaves its hidden directory, whose lock the system takes back.
#[test]
fn leftovers_of_killed_run_are_cleaned_up() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("report");
    let hidden = place.path().join(".report.partial");
    fs::create_dir_all(hidden.join("karpenter")).expect("made");
    fs::write(hidden.join("karpenter/pods.csv"), "half a li").expect("written");
    write(&synthetic::outcome(), &path).expect("written");
    assert_eq!(contents(place.path()).len(), 1);

    // Killed after it had taken the place of an earlier report, into which somebody had put something meanwhile.
    fs::rename(&path, &hidden).expect("moved");
    fs::write(hidden.join("mine.txt"), "mine").expect("written");
    write(&synthetic::outcome(), &path).expect("written");
    let kept = place.path().join("report.kept-1");
    assert_eq!(fs::read_to_string(kept.join("mine.txt")).expect("kept"), "mine");
}

#[test]
fn a_report_given_up_half_way_leaves_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = OutputDirectory::begin(&place.path().join("report")).expect("begun");
    directory.file("summary.json", |output| output.write_all(b"{}")).expect("written");
    let failure = directory.file("pods.csv", |_| Err(std::io::Error::other("the disk is full")));
    assert!(failure.expect_err("fails").to_string().contains("the disk is full"));
    drop(directory);
    assert!(contents(place.path()).is_empty());
}

#[test]
fn a_workload_without_answers_has_no_response_time() {
    let mut outcome = synthetic::outcome();
    outcome.requests[0].completed = 0.0;
    outcome.requests[0].response = None;
    let summary = Summary::from_outcome(&outcome);
    let table = report::terminal::table(&summary);
    let line = table.lines().find(|line| line.contains("web/frontend") && line.contains('–')).unwrap();
    assert_eq!(line.matches('–').count(), 4, "{line}");
    assert!(!line.contains("0 s"), "{line}");
    assert_eq!(serde_json::to_value(&summary).unwrap()["requests"][0]["p99_seconds"], serde_json::Value::Null);
}

#[test]
fn fast_workload_does_not_excuse_unanswered_one() {
    let mut outcome = synthetic::outcome();
    outcome.about.objectives.request_p99 = Some(nodecast::domain::SimDuration::from_secs(1));
    let judged = |outcome: &Outcome| {
        let summary = Summary::from_outcome(outcome);
        let objective = summary.objectives.iter().find(|objective| objective.name == "request_p99").unwrap().clone();
        (objective, report::terminal::table(&summary))
    };
    let (few, _) = judged(&outcome);
    assert_eq!((few.met, few.because), (Some(true), None), "104 of 1.2 million got no answer");
    outcome.requests[0].dropped = outcome.requests[0].completed;
    let (many, table) = judged(&outcome);
    assert_eq!((many.met, many.actual), (Some(false), few.actual));
    let because = "50.0% of requests to web/frontend were unanswered";
    assert_eq!(many.because.as_deref(), Some(because));
    let line = table.lines().find(|line| line.contains("response time p99")).unwrap();
    assert!(line.contains("MISSED") && line.ends_with(because), "{line}");
}

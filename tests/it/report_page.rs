//! The page of a run holds the run's curves, lives and decisions, is small, and takes no orders from a name or a cause.

use nodecast::domain::workload::ObjectName;
use nodecast::domain::{NodeId, PodId, SimDuration, SimTime, Symbol, WorkloadId};
use nodecast::report::{Summary, page, plots::Plots};
use nodecast::scenario::{Caveats, lints};
use nodecast::simulation::Outcome;
use nodecast::world::record::{Event, EventKind, MetricSample, NodeFacts, PodFacts, Sample, WorkloadSample};
use serde_json::Value;

use crate::synthetic;

/// What a report may weigh.
const BYTES_MAX: usize = 1_000_000;
const DAY: i64 = 86_400;

fn html(outcome: &Outcome) -> String {
    let plots = Plots::from_outcome(outcome).unwrap();
    page::render(outcome, &Summary::from_outcome(outcome), &plots, "nodecast run scenario.yaml")
}

/// The data that the page's script reads.
fn data(page: &str) -> Value {
    let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + page[start..].find("</script>").unwrap();
    serde_json::from_str(&page[start..end]).unwrap()
}

/// `[[5,3],7]` as 5, 5, 5, 7.
fn runs(encoded: &Value) -> Vec<Value> {
    let entry = |entry: &Value| match entry.as_array() {
        Some(run) => vec![run[0].clone(); usize::try_from(run[1].as_u64().unwrap()).unwrap()],
        None => vec![entry.clone()],
    };
    encoded.as_array().unwrap().iter().flat_map(entry).collect()
}

fn at(seconds: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(seconds)
}

#[test]
fn page_contains_curves_lives_and_decisions() {
    let outcome = synthetic::outcome();
    let data = data(&html(&outcome));
    let charts: Vec<&str> =
        data["charts"].as_array().unwrap().iter().map(|chart| chart["id"].as_str().unwrap()).collect();
    let all =
        ["replicas", "load", "pending", "nodes", "cost", "latency", "metrics", "queues", "rates", "cpu", "memory"];
    assert_eq!(charts, all);
    let load = &data["charts"][1]["series"][0];
    assert_eq!((runs(&load["values"]).len(), &load["every"]), (61, &Value::from(600)));
    assert_eq!(runs(&load["values"])[10], Value::from(460));

    let pods: i64 = runs(&data["replay"]["pods"]["count"]).iter().map(|count| count.as_i64().unwrap()).sum();
    assert_eq!(pods as usize, outcome.record.pods.len());
    assert_eq!(data["replay"]["nodes"].as_array().unwrap().len(), outcome.record.nodes.len());
    // The Spot node: asked for after 600 s, Ready 40 s later, told to go after 2,200 s.
    let spot = &data["replay"]["nodes"][1][1];
    assert_eq!((&spot[8], &spot[10], &spot[11]), (&Value::from(6_000), &Value::from(400), &Value::from(16_000)));

    let decisions = data["decisions"]["rows"].as_array().unwrap();
    assert_eq!((decisions.len(), &data["decisions"]["in_all"]), (3, &Value::from(3)), "not that a pod found no node");
}

/// The colours of the curves of a chart, by the workload that they name; pods are `None`.
fn colors_by_workload(data: &Value) -> Vec<(String, u64)> {
    let charts = data["charts"].as_array().unwrap().iter();
    let of_workloads =
        charts.filter(|chart| ["replicas", "load", "latency", "metrics"].contains(&chart["id"].as_str().unwrap()));
    let series = of_workloads.flat_map(|chart| chart["series"].as_array().unwrap());
    let name = |value: &Value| value["name"].as_str().unwrap().split([' ', ',']).next().unwrap().to_owned();
    series.map(|series| (name(series), series["color"].as_u64().unwrap())).collect()
}

#[test]
fn workload_has_one_colour_across_charts() {
    let mut outcome = large();
    // Autoscalers in another order than that of replica counts.
    outcome.record.metrics.reverse();
    let data = data(&html(&outcome));
    let replay = data["workloads"].as_array().unwrap();
    let found = colors_by_workload(&data);
    assert!(found.len() > 200, "{} curves", found.len());
    for (name, color) in found {
        let replay = replay.iter().find(|workload| workload["name"] == name.as_str()).unwrap();
        assert_eq!(replay["color"], color, "{name}");
    }
    let mut colors: Vec<u64> = replay.iter().map(|item| item["color"].as_u64().unwrap()).collect();
    colors.sort_unstable();
    colors.dedup();
    assert_eq!(colors.len(), 50, "no two share one");
}

#[test]
fn a_chart_says_its_unit_and_never_twice() {
    let data = data(&html(&synthetic::outcome()));
    for chart in data["charts"].as_array().unwrap() {
        let (title, unit) = (chart["title"].as_str().unwrap().to_lowercase(), chart["unit"].as_str().unwrap());
        assert!(!unit.is_empty());
        assert!(unit.split(' ').all(|word| title.split(' ').all(|part| part != word)), "{title}, {unit}");
        let drawn = chart["series"].as_array().unwrap().iter().filter(|series| series["hidden"] != true).count();
        assert!(drawn > 0, "{title} is not empty");
    }
}

#[test]
fn charts_do_not_drop_to_zero_at_end() {
    let data = data(&html(&synthetic::outcome()));
    for id in ["nodes", "cost"] {
        let chart = data["charts"].as_array().unwrap().iter().find(|chart| chart["id"] == id).unwrap();
        let last = |series: &Value| runs(&series["values"]).last().unwrap().as_f64().unwrap();
        let sum: f64 = chart["series"].as_array().unwrap().iter().map(last).sum();
        assert!(sum > 0.0, "{id}");
    }
}

#[test]
fn cost_rate_integrates_to_bill() {
    let outcome = synthetic::outcome();
    let data = data(&html(&outcome));
    let chart = data["charts"].as_array().unwrap().iter().find(|chart| chart["id"] == "cost").unwrap();
    let mut total = 0.0;
    for curve in 0..chart["series"].as_array().unwrap().len() {
        let (mut before, mut rate) = (0.0, 0.0);
        for (instant, value) in points(&data, "cost", curve) {
            let instant = instant as f64;
            total += rate * (instant - before) / 36_000.0;
            (before, rate) = (instant, value.unwrap());
        }
        total += rate * (36_000.0 - before) / 36_000.0;
    }
    let bill = outcome.bill.total().as_f64();
    assert!((total - bill).abs() < bill * 1e-4, "{total} is not {bill}");
}

#[test]
fn names_and_causes_cannot_inject_markup() {
    let hostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>";
    let mut outcome = synthetic::outcome();
    outcome.about.scenario = hostile.to_owned();
    outcome.about.start = hostile.to_owned();
    outcome.about.assumptions = vec![hostile.to_owned()];
    outcome.warnings = Caveats::new();
    outcome.warnings.add(&lints::setup::PODS_IGNORED, hostile);
    let events = outcome.record.events.clone();
    outcome.record.events = events.iter().map(|event| Event { message: hostile, ..event }).collect();
    for node in &mut outcome.record.nodes {
        node.name = hostile.to_owned();
    }
    for workload in &mut outcome.record.workloads {
        workload.name = ObjectName { namespace: Symbol::new("a"), name: Symbol::new(hostile) };
    }
    let page = html(&outcome);
    assert_eq!((page.matches("<script").count(), page.matches("</script>").count()), (2, 2));
    assert!(!page.contains("<img"));
    assert_eq!(data(&page)["start"], hostile);
}

/// A day of fifty services with a load of their own, each rescaled every ten minutes, on nodes of which one comes every
/// three minutes.
fn large() -> Outcome {
    let mut outcome = synthetic::outcome();
    outcome.about.duration = SimDuration::from_secs(DAY);
    let record = &mut outcome.record;
    let service = |n: u32| ObjectName { namespace: Symbol::new("shop"), name: Symbol::new(&format!("service-{n:02}")) };
    let facts = record.workloads[0].clone();
    record.workloads = (0..50)
        .map(|n| {
            let mut facts = facts.clone();
            facts.name = service(n);
            facts
        })
        .collect();
    let metric = record.metrics[0].clone();
    record.metrics = (0..50)
        .map(|n| {
            let mut metric = metric.clone();
            (metric.autoscaler, metric.workload) = (service(n), WorkloadId(n));
            metric
        })
        .collect();
    record.samples = (0..1_964).map(|n| large_sample(&record.samples[20], n)).collect();
    let node = record.nodes[1].clone();
    record.nodes = (0..480)
        .map(|n| {
            let mut node = node.clone();
            let shift = SimDuration::from_secs(n * 180 - 600);
            node.name = format!("default-{n:05}");
            node.requested += shift;
            for instant in [
                &mut node.launched,
                &mut node.running,
                &mut node.ready,
                &mut node.deletion_requested,
                &mut node.terminating,
                &mut node.terminated,
            ] {
                *instant = instant.map(|instant| instant + shift);
            }
            node
        })
        .collect();
    let pod = record.pods.facts(PodId(0));
    record.pods = (0..14_000_u32)
        .map(|n| {
            let mut pod = pod.clone();
            let created = i64::from(n) * 6;
            pod.workload = WorkloadId(n % 50);
            pod.created = SimTime::from_micros(created * 1_000_000 + i64::from(n) * 7_919 % 1_000_000);
            (pod.scheduled, pod.ready) = (Some(pod.created), Some(at(created + 9 + i64::from(n % 13))));
            pod.removed = Some(at(created + 700 + i64::from(n) * 7_919 % 3_000));
            pod.node = Some(NodeId(n / 30));
            pod
        })
        .collect();
    large_events(&mut outcome);
    outcome
}

fn large_sample(like: &Sample, n: i64) -> Sample {
    let wave = |k: i64| ((n * 37 + k * 101) % 997) as f64;
    let workload = |k: i64| WorkloadSample {
        workload: WorkloadId(k as u32),
        replicas_desired: (5 + (n / 14 + k) % 40) as u32,
        replicas_ready: (5 + (n / 14 + k) % 40) as u32,
        requests_per_second: 1_000.0 + wave(k) * 1.7,
        latency_mean_seconds: Some(0.02 + wave(k) / 1e4),
        latency_p99_seconds: Some(0.05 + wave(k) / 1e3),
        ..like.workloads[0]
    };
    let metric = |k: i64| MetricSample { metric: k as u32, value: Some(20.0 + wave(k) / 10.0), asks_for: Some(3) };
    Sample {
        at: at(n * 44),
        workloads: (0..50).map(workload).collect(),
        metrics: (0..50).map(metric).collect(),
        ..like.clone()
    }
}

fn large_events(outcome: &mut Outcome) {
    let events = outcome.record.events.clone();
    let Some(like) = events.get(0) else { panic!("nothing happens") };
    let rescaled = |n: i64| {
        format!(
            "{} to {} replicas: cpu resource utilization (percentage of request) above target (cpu {}%/60%, asks for {})",
            5 + n % 40,
            6 + n % 40,
            61 + n % 37,
            6 + n % 40
        )
    };
    let messages: Vec<String> = (0..7_200).map(rescaled).collect();
    let mut events = Vec::new();
    for (n, message) in (0_i64..).zip(&messages) {
        events.push(Event { at: at(n * 12), workload: Some(WorkloadId((n % 50) as u32)), message, ..like });
    }
    for n in 0..480_u32 {
        for (kind, message) in [
            (
                EventKind::ClaimCreated,
                "4 pods requesting {cpu 3825m, memory 6166575Ki, pods 7} from types m5.large, c5.large and 547 others",
            ),
            (EventKind::InstanceLaunched, "spot c5.large in us-east-1b at $0.0400 per hour"),
            (EventKind::NodeDisrupted, "Underutilized"),
        ] {
            let (node, pod) = (Some(NodeId(n)), Some(PodId(n)));
            events.push(Event { at: at(i64::from(n) * 180), kind, node, pod, message, ..like });
        }
    }
    events.sort_by_key(|event| event.at);
    outcome.record.events = events.into_iter().collect();
}

/// A chart of the page and what is in one of its curves: instants in tenths of a second and values.
fn points(data: &Value, chart: &str, curve: usize) -> Vec<(i64, Option<f64>)> {
    let chart = data["charts"].as_array().unwrap().iter().find(|array| array["id"] == chart).unwrap();
    let series = &chart["series"][curve];
    // Curves that add up to a whole share their instants.
    let steps = if series["at"].is_null() { &chart["at"] } else { &series["at"] };
    let values: Vec<Option<f64>> = runs(&series["values"]).iter().map(Value::as_f64).collect();
    let times: Vec<i64> = match series["every"].as_i64() {
        Some(every) => (0..).map(|n| n * every).take(values.len()).collect(),
        None => runs(steps)
            .iter()
            .scan(0, |sum, step| {
                *sum += step.as_i64()?;
                Some(*sum)
            })
            .collect(),
    };
    times.into_iter().zip(values).collect()
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn thinned_curves_show_nothing_before_it_happens() {
    let mut outcome = large();
    let begins = |k: usize| 900 + 7 * k;
    for (n, sample) in outcome.record.samples.iter_mut().enumerate() {
        for (k, workload) in sample.workloads.iter_mut().enumerate() {
            workload.requests_per_second = if n < begins(k) { 0.0 } else { 5.0 };
            // Changes at every sample, more often than a curve has points.
            workload.replicas_desired = 5 + (n * 13 + k) as u32 % 40;
        }
    }
    let data = data(&html(&outcome));
    for k in 0..50 {
        let load = points(&data, "load", k);
        assert!(load.len() < outcome.record.samples.len() / 2, "thinned: {} points", load.len());
        let shown = load.iter().find(|point| point.1 > Some(0.0)).unwrap().0;
        let (happened, spacing) = (begins(k) as i64 * 440, load[1].0);
        assert!((happened..happened + spacing).contains(&shown), "service {k} at {shown}, not at {happened}");
        let wanted = points(&data, "replicas", 2 * k);
        assert!(wanted.len() < outcome.record.samples.len() && wanted[0].0 == 0, "{} points", wanted.len());
        for (at, value) in wanted {
            let sample = &outcome.record.samples[usize::try_from(at / 440).unwrap()];
            assert_eq!(value, Some(f64::from(sample.workloads[k].replicas_desired)), "service {k} at {at}");
        }
    }
}

#[test]
fn simultaneous_manifests_form_one_decision_row() {
    let mut outcome = synthetic::outcome();
    let rows = |outcome: &Outcome| data(&html(outcome))["decisions"]["rows"].as_array().unwrap().len();
    let before = rows(&outcome);
    let told = outcome.record.events.clone();
    let one = told.get(0).unwrap();
    let applied = |at, message| Event { at, kind: EventKind::ManifestApplied, message, ..one };
    let mut events = vec![applied(SimTime::ZERO, "Deployment"); 40];
    events.extend(&told);
    let last = events.last().unwrap().at;
    events.push(applied(last, "DaemonSet"));
    outcome.record.events = events.into_iter().collect();
    let page = data(&html(&outcome));
    assert_eq!(rows(&outcome), before + 2, "{}", page["decisions"]);
    assert_eq!(page["decisions"]["in_all"], before + 2, "nothing is missing");
    let patterns = page["decisions"]["patterns"].as_array().unwrap();
    assert!(patterns.contains(&Value::from("\u{1} manifests applied")), "{patterns:?}");
    assert!(patterns.contains(&Value::from("DaemonSet")), "one alone stays as it is: {patterns:?}");
    assert_eq!(page["decisions"]["rows"][0].as_array().unwrap().last(), Some(&Value::from(40)));
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn page_of_fifty_services_fits_one_megabyte() {
    let outcome = large();
    let page = html(&outcome);
    assert!(page.len() < BYTES_MAX, "{} bytes", page.len());
    assert_eq!(page, html(&outcome), "equal runs give equal bytes");
    let data = data(&page);
    assert_eq!(data["decisions"]["rows"].as_array().unwrap().len(), outcome.record.events.len(), "every decision");
    assert_eq!(data["replay"]["nodes"].as_array().unwrap().len(), outcome.record.nodes.len(), "every node");
    let series = data["charts"][0]["series"].as_array().unwrap();
    assert_eq!(series.len(), 100, "wanted and Ready of every service");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn page_of_any_run_fits_one_megabyte() {
    let mut outcome = large();
    let record = &mut outcome.record;
    for copy in 1..6_u32 {
        let pods: Vec<PodFacts> = record.pods.iter().take(14_000).collect();
        record.pods.extend(pods.into_iter().enumerate().map(|(n, mut pod)| {
            pod.ready = pod.ready.map(|ready| ready + SimDuration::from_millis(i64::from(copy) * 137 + n as i64 % 900));
            pod
        }));
    }
    let told = record.events.clone();
    let mut events: Vec<Event<'_>> = told.iter().chain((1..6).flat_map(|_| told.iter().take(8_000))).collect();
    events.sort_by_key(|event| event.at);
    record.events = events.into_iter().collect();
    let in_all = record.events.len();
    let page = html(&outcome);
    assert!(page.len() < BYTES_MAX, "{} bytes", page.len());
    let decisions = &data(&page)["decisions"];
    let replay = &data(&page)["replay"];
    assert!(replay["tick"].as_i64() > Some(1), "instants of pods are rounded");
    let created = runs(&replay["pods"]["created"]).iter().fold(0, |sum, step| sum + step.as_i64().unwrap());
    let drawn: Vec<&str> = replay["nodes"].as_array().unwrap().iter().map(|node| node[0].as_str().unwrap()).collect();
    let is_drawn = |pod: &PodFacts| drawn.contains(&outcome.record.nodes[pod.node.unwrap().index()].name.as_str());
    let latest = outcome.record.pods.iter().filter(is_drawn).map(|pod| pod.created).max().unwrap();
    assert!(created * 100_000 >= latest.as_micros(), "no pod is shown before it is there");
    let rows = decisions["rows"].as_array().unwrap().len();
    assert!(rows > 1_000 && rows < in_all && decisions["in_all"] == in_all, "{rows} of {in_all}: the page says so");
}

/// How many nodes of the record are Ready at an instant.
fn ready_at(outcome: &Outcome, at: SimTime) -> i64 {
    let is_ready = |node_facts: &&NodeFacts| {
        let over = node_facts.terminating.or(node_facts.terminated);
        node_facts.ready.is_some_and(|ready| ready <= at) && over.is_none_or(|over| over > at)
    };
    outcome.record.nodes.iter().filter(is_ready).count() as i64
}

/// A count of the replay at its instants, in tenths of a second.
fn counts(list: &Value, count: &Value) -> Vec<(i64, i64)> {
    let sums = |encoded: &Value| -> Vec<i64> {
        let step = |sum: &mut i64, step: Value| {
            *sum += step.as_i64()?;
            Some(*sum)
        };
        runs(encoded).into_iter().scan(0, step).collect()
    };
    sums(&list["instants"]["at"]).into_iter().zip(sums(count)).collect()
}

/// A day of many more nodes and pods than the page draws: the first nodes are gone when the rest come.
fn more_nodes_than_drawn() -> Outcome {
    let mut outcome = large();
    let record = &mut outcome.record;
    let node = record.nodes[0].clone();
    record.nodes = (0..3_400_i64)
        .map(|n| {
            let mut node = node.clone();
            let (from, lasts) = (n * 25, 300 + n * 7_919 % 5_000);
            node.name = format!("default-{n:05}");
            node.requested = at(from);
            (node.launched, node.running, node.ready) = (Some(at(from + 1)), Some(at(from + 5)), Some(at(from + 40)));
            node.deletion_requested = Some(at(from + lasts)).filter(|at| at.as_secs() < DAY);
            node.terminating = node.deletion_requested.map(|told| told + SimDuration::from_secs(30));
            node.terminated = node.terminating;
            node
        })
        .collect();
    record.pods = (0..40_000_u32)
        .map(|n| {
            let mut facts = record.pods.facts(PodId(n % 14_000));
            let from = i64::from(n % 3_400) * 25 + 40;
            facts.created = at(from) + SimDuration::from_millis(i64::from(n) * 31 % 60_000);
            (facts.scheduled, facts.ready) = (Some(facts.created), Some(facts.created + SimDuration::from_secs(2)));
            facts.removed = Some(facts.created + SimDuration::from_millis(90_000 + i64::from(n) * 977 % 200_000));
            facts.node = Some(NodeId(n % 3_400));
            facts
        })
        .collect();
    outcome
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn page_counts_include_undrawn_nodes() {
    let outcome = more_nodes_than_drawn();
    let page = html(&outcome);
    assert!(page.len() < BYTES_MAX, "{} bytes", page.len());
    let data = data(&page);
    let (replay, all) = (&data["replay"], outcome.record.nodes.len());
    let drawn = replay["nodes"].as_array().unwrap();
    assert!(drawn.len() < all && replay["nodes_in_all"] == all, "{} of {all}", drawn.len());

    // All nodes here are bought in one way.
    let ready = counts(&data["counts"]["nodes"], &data["counts"]["nodes"]["ready"][0]["count"]);
    for sample in &outcome.record.samples {
        let ready = ready[..ready.partition_point(|ready| ready.0 * 100_000 <= sample.at.as_micros())].last().unwrap();
        assert_eq!(ready.1, ready_at(&outcome, sample.at), "at {}", sample.at);
    }
    let pods = counts(&data["counts"]["pods"], &data["counts"]["pods"]["on_nodes"]);
    assert_eq!(pods.len(), outcome.record.samples.len());
    for (key, sample) in pods.iter().zip(&outcome.record.samples).step_by(400) {
        let there = |pod: &PodFacts| pod.scheduled <= Some(sample.at) && pod.removed > Some(sample.at);
        assert_eq!(key.1, outcome.record.pods.iter().filter(there).count() as i64, "at {}", sample.at);
    }

    // The chart adds up to the record at each of its instants.
    let kinds =
        data["charts"].as_array().unwrap().iter().find(|array| array["id"] == "nodes").unwrap()["series"].as_array();
    let layers: Vec<_> = (0..kinds.unwrap().len()).map(|curve| points(&data, "nodes", curve)).collect();
    for (position, (instant, _)) in layers[0].iter().enumerate() {
        let sum: f64 = layers.iter().filter_map(|layer| layer[position].1).sum();
        assert_eq!(sum as i64, ready_at(&outcome, SimTime::from_micros(instant * 100_000)), "at {instant}");
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn initial_and_long_lived_nodes_are_drawn() {
    let outcome = more_nodes_than_drawn();
    let data = data(&html(&outcome));
    let opens = SimTime::from_micros(data["counts"]["opens"].as_i64().unwrap() * 100_000);
    let drawn = data["replay"]["nodes"].as_array().unwrap();
    let names: Vec<&str> = drawn.iter().map(|node| node[0].as_str().unwrap()).collect();
    let life = |node_facts: &NodeFacts| (node_facts.requested, node_facts.terminated.unwrap_or(at(DAY)));
    let mut left_out = Vec::new();
    for node in &outcome.record.nodes {
        let (from, until) = life(node);
        let is_there = from <= opens && opens < until;
        let is_drawn = names.contains(&node.name.as_str());
        assert!(is_drawn || !is_there, "{} is there when the page opens", node.name);
        if !is_drawn {
            left_out.push(until - from);
        }
    }
    let longest = left_out.iter().max().unwrap();
    let shorter = |node_facts: &&NodeFacts| {
        let (from, until) = life(node_facts);
        names.contains(&node_facts.name.as_str()) && !(from <= opens && opens < until) && until - from < *longest
    };
    assert_eq!(outcome.record.nodes.iter().filter(shorter).count(), 0, "no longer life is left out");
}

#[test]
fn charges_without_hours_show_a_dash() {
    let mut outcome = synthetic::outcome();
    let bill = |outcome: &Outcome| {
        let page = html(outcome);
        let start = page.find("id=\"bill\"").unwrap();
        page[start..start + page[start..].find("</table>").unwrap()].to_owned()
    };
    let dashes = "<td class=\"figure\">\u{2013}</td><td class=\"figure\">\u{2013}</td>";
    let hours = bill(&outcome);
    assert!(hours.contains("<td>instance</td>") && !hours.contains(dashes), "{hours}");
    outcome.bill.lines.iter_mut().for_each(|line| line.billed = SimDuration::ZERO);
    let none = bill(&outcome);
    assert_eq!(none.matches(dashes).count(), none.matches("<tr>").count() - 1, "every row but the headings: {none}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn shop_day_has_three_opportunities_with_dollars() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("report");
    let arguments = ["run", "scenarios/shop-day/scenario.yaml", "--quiet", "--out", out.to_str().unwrap()];
    let (told, err, code) = crate::cli::nodecast(&arguments);
    assert_eq!(code, Some(0), "{err}");
    let headline = told.lines().next().unwrap();
    assert!(headline.starts_with("shop-day: $") && headline.contains(" per month, p99 pod wait "), "{headline}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    let list = page.split("<ol class=\"opportunities\">").nth(1).and_then(|rest| rest.split("</ol>").next()).unwrap();
    assert_eq!(list.matches(" per month</strong>").count(), 3, "{list}");
    assert!(
        list.contains(
            "<code class=\"try\">nodecast recommend scenarios/shop-day/scenario.yaml <span class=\"whole\">--policy</span> spot</code>"
        )
    );
}

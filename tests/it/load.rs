//! Load in a scenario: every kind of it asks for what it says, and the curves that are carried along can be read.

use std::path::Path;

use nodecast::actors::LoadPlan;
use nodecast::catalog::Catalog;
use nodecast::load::Source;
use nodecast::simulation::{self, resolve};

const MANIFESTS: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 1\n  \
    selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      \
    containers: [{name: app, image: app, resources: {requests: {cpu: 1, memory: 1Gi}}}]\n";

/// The plan of a load of `requests` on the only workload of a run that begins on a Friday.
fn plan(requests: &str, duration: &str, seed: u64) -> LoadPlan {
    warned_plan(requests, "", duration, seed).0
}

/// The same with more keys of the service, and what the run warns of.
fn warned_plan(requests: &str, service: &str, duration: &str, seed: u64) -> (LoadPlan, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("manifests.yaml", MANIFESTS);
    write("rate.csv", "t_seconds,requests_per_second\n0,10\n60,30\n");
    write("arrivals.csv", "t_seconds,count\n0.25,1\n61,3\n");
    write(
        "answer.json",
        r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[0,"10"],[60,"30"]]}]}}"#,
    );
    write(
        "requests.json",
        r#"{"MetricDataResults":[{"Id":"m","Label":"RequestCount","Timestamps":["2026-07-01T00:01:00Z","2026-07-01T00:00:00Z"],
            "Values":[1800,600],"StatusCode":"Complete"}]}"#,
    );
    write("hits.json", r#"{"series":[{"pointlist":[[1760313600000,10],[1760313660000,30]]}]}"#);
    write("grafana.csv", "Time,a,requests\n2026-07-01 00:00:00,1,600\n2026-07-01 00:01:00,2,1800\n");
    let text = format!(
        "name: test\nregion: us-east-1\nstart: 2026-07-10T00:00:00Z\nduration: {duration}\nmanifests: [manifests.yaml]\n\
         load:\n  - workload: web\n    at: 1m\n    requests: {requests}\n    \
         service: {{cpu_per_request: 10ms, concurrency: 4{service}}}\n"
    );
    write("scenario.yaml", &text);
    let (scenario, warnings) = nodecast::scenario::load(&directory.path().join("scenario.yaml")).unwrap();
    // Records of other days are moved to the load's start, which is said.
    let others = warnings.iter().filter(|warning| !warning.message().contains("is moved to the start of the load"));
    assert_eq!(others.count(), 0, "{warnings:?}");
    let policy = scenario.for_policy(None).unwrap();
    let mut resolved = resolve(&scenario, policy, Catalog::embedded().unwrap(), seed).unwrap();
    (resolved.setup.loads.remove(0), resolved.warnings.texts())
}

fn rate(source: Source) -> f64 {
    match source {
        Source::Open { rate } => rate,
        Source::Idle | Source::Cpu { .. } | Source::Closed { .. } => 0.0,
    }
}

/// Requests that arrive up to `seconds` after the start of the run.
fn arrivals(plan: &LoadPlan, seconds: f64) -> f64 {
    let ends = plan.steps.iter().skip(1).map(|step| step.at.as_secs_f64()).chain([f64::INFINITY]);
    let stretch = |(step, end): (nodecast::actors::LoadStep, f64)| {
        rate(step.source) * (end.min(seconds) - step.at.as_secs_f64()).max(0.0)
    };
    plan.steps.iter().zip(ends).map(stretch).sum()
}

#[test]
fn small_fallible_closed_loop_is_simulated_exactly() {
    let of = |requests: &str, service: &str| {
        let (plan, warnings) = warned_plan(requests, service, "1h", 1);
        (plan.exact, warnings.iter().any(|text| text.contains("neither time out (`timeout`) nor are rejected")))
    };
    let (few, many) = ("{closed_loop: {clients: 9, requests: 5000}}", "{closed_loop: {clients: 9, requests: 2000000}}");
    assert_eq!(of(few, ""), (false, false), "nothing can fail");
    assert_eq!(of(few, ", timeout: 2s"), (true, false));
    assert_eq!(of(few, ", queue_per_replica: 10"), (true, false));
    assert_eq!(of(many, ", timeout: 2s"), (false, true));
    assert_eq!(of(&format!("{many}\n    detail: exact"), ", timeout: 2s"), (true, false));
}

#[test]
fn each_load_kind_requests_its_configured_amount() {
    let cases = [
        ("{constant: 5}", 59.0 * 60.0 * 5.0),
        ("{constant: 5, scale: 2}", 59.0 * 60.0 * 10.0),
        ("{steps: [{at: 0s, rate: 1}, {at: 9m, rate: 2}]}", 540.0 + 50.0 * 60.0 * 2.0),
        ("{ramp: {from: 10, to: 30, over: 59m}}", 59.0 * 60.0 * 20.0),
        ("{sine: {mean: 10, amplitude: 5, period: 59m}}", 59.0 * 60.0 * 10.0),
        ("{burst: {base: 1, peak: 11, every: 10m, for: 1m}}", 59.0 * 60.0 + 6.0 * 600.0),
        ("{csv: rate.csv}", 2_400.0),
        ("{csv: rate.csv, repeat: 2m}", 29.0 * 2_400.0 + 600.0),
        ("{csv: rate.csv, speed_up: 2}", 1_200.0),
        ("{csv: rate.csv, shift: 30m}", 2_400.0),
        ("{csv: rate.csv, shift: -1m}", 1_800.0),
        ("{trace: arrivals.csv}", 4.0),
        ("{prometheus: answer.json}", 2_400.0),
        ("{cloudwatch: requests.json}", 2_400.0),
        ("{cloudwatch: requests.json, values: rates, scale: 0.01}", 1_440.0),
        ("{datadog: hits.json}", 2_400.0),
        ("{datadog: hits.json, values: totals}", 40.0),
        ("{csv: grafana.csv, column: requests, values: totals}", 2_400.0),
        ("{csv: grafana.csv, column: requests, scale: 0.001}", 144.0),
        ("{sum: [{constant: 5}, {csv: rate.csv, scale: 2}]}", 59.0 * 300.0 + 4_800.0),
    ];
    for (requests, expected) in cases {
        let found = arrivals(&plan(requests, "1h", 1), 3_600.0);
        assert!((found / expected - 1.0).abs() < 1e-4, "{requests}: {found}, not {expected}");
    }
}

#[test]
fn times_within_a_load_count_from_its_start() {
    let plan = plan("{steps: [{at: 0s, rate: 1}, {at: 9m, rate: 2}]}", "1h", 1);
    assert_eq!(plan.steps.iter().map(|step| step.at.as_secs()).collect::<Vec<_>>(), [60, 600]);
}

#[test]
fn growth_over_a_year_compounds() {
    let plan = plan("{constant: 100, growth_per_month: 10%}", "366d", 1);
    let last = rate(plan.steps.iter().last().unwrap().source);
    assert!((last / (100.0 * libm::pow(1.1, 12.0)) - 1.0).abs() < 0.01, "{last}");
}

#[test]
fn uncertain_demand_varies_only_by_seed() {
    let requests = "{constant: 100, uncertainty: {factor: 20%, noise: 10%}}";
    let total = |seed| arrivals(&plan(requests, "1h", seed), 3_600.0);
    assert!((total(1) - total(1)).abs() < f64::EPSILON);
    let totals: Vec<f64> = (1..=40).map(total).collect();
    assert!(totals.windows(2).all(|pair| (pair[0] - pair[1]).abs() > 1.0));
    let mean = totals.iter().sum::<f64>() / 40.0 / (59.0 * 60.0 * 100.0);
    assert!((mean - 1.0).abs() < 0.13, "four standard errors of 20 % over 40 seeds: {mean}");
}

#[test]
fn a_weekend_is_quieter() {
    let plan = plan("{diurnal: {night: 10, peak: 50, weekend: 50%}}", "3d", 1);
    let day = |number: f64| arrivals(&plan, number * 86_400.0) - arrivals(&plan, (number - 1.0) * 86_400.0);
    // Friday lacks its first minute.
    assert!((day(2.0) / (day(1.0) + 600.0) - 0.5).abs() < 1e-3, "{} {}", day(1.0), day(2.0));
}

#[test]
fn the_recorded_curves_can_be_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/load");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".csv"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 8);
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    for name in names {
        assert!(readme.contains(&name), "the README says where {name} is from");
        let kind = if name.contains("requests") { "trace" } else { "csv" };
        let path = folder.join(&name);
        // As long as the record, so that no warning says that it ends early.
        let lengths = [("14d", "14d"), ("week", "7d"), ("day", "1d"), ("", "1h")];
        let length = lengths.iter().find(|(part, _)| name.contains(part)).unwrap().1;
        let plan = plan(&format!("{{{kind}: {}}}", path.display()), length, 1);
        assert!(plan.steps.iter().count() > 500 && arrivals(&plan, 14.0 * 86_400.0) > 5_000.0, "{name}");
    }
}

#[test]
fn memory_hpa_follows_requests_in_flight() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    let autoscaler = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  \
        scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n  minReplicas: 1\n  maxReplicas: 10\n  \
        metrics: [{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 100Mi}}}]\n";
    let cluster = "---\napiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c, region: us-east-1}\n\
        managedNodeGroups: [{name: ng, instanceType: m5.4xlarge, desiredCapacity: 1, minSize: 1, maxSize: 1}]\n";
    write("manifests.yaml", &format!("{MANIFESTS}{autoscaler}{cluster}"));
    // Two hundred requests in flight at 2 MiB each: four pods of 100 MiB.
    let text = "name: test\nregion: us-east-1\nduration: 30m\nmanifests: [manifests.yaml]\nload:\n  - workload: web\n    \
        requests: {constant: 100}\n    service: {cpu_per_request: 1ms, concurrency: 1000, base_latency: 1999ms, \
        memory: {idle: 0, per_request: 2Mi}}\n";
    write("scenario.yaml", text);
    let (scenario, _) = nodecast::scenario::load(&directory.path().join("scenario.yaml")).unwrap();
    let policy = scenario.for_policy(None).unwrap();
    let outcome = simulation::run(&scenario, policy, Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap();
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
    assert_eq!(outcome.record.samples.last().unwrap().workloads[0].replicas_desired, 4);
}

/// What is warned of a load of these requests over so long, from files of these names.
fn warnings_of(requests: &str, more: &str, duration: &str, files: &[(&str, &str)]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("manifests.yaml", MANIFESTS);
    files.iter().for_each(|(name, text)| write(name, text));
    let text = format!(
        "name: test\nregion: us-east-1\nstart: 2026-07-10T00:00:00Z\nduration: {duration}\nmanifests: [manifests.yaml]\n\
         load:\n  - workload: web\n    requests: {requests}\n{more}    service: {{cpu_per_request: 10ms, concurrency: 4}}\n"
    );
    write("scenario.yaml", &text);
    let (_, warnings) = nodecast::scenario::load(&directory.path().join("scenario.yaml")).unwrap();
    warnings.iter().map(|warning| warning.message().to_owned()).collect()
}

#[test]
fn load_record_without_requests_is_warned_about() {
    let rows = |first: i64, count: i64| -> String {
        (0..count).map(|row| format!("{},100\n", first + row * 3_600)).collect::<String>()
    };
    let day = format!("t_seconds,requests_per_second\n{}", rows(0, 24));
    let epoch = format!("t_seconds,requests_per_second\n{}", rows(1_783_641_600, 24));
    let table = format!("time,r\n{}{}", rows(1_783_641_600, 12), rows(1_783_720_800, 2));
    let files = [
        ("day.csv", day.as_str()),
        ("epoch.csv", epoch.as_str()),
        ("table.csv", table.as_str()),
        ("trace.csv", "t_seconds,count\n0,1\n0.5,3\n"),
    ];
    let of = |requests: &str, more: &str, duration: &str| warnings_of(requests, more, duration, &files);
    assert_eq!(of("{csv: day.csv}", "", "1d"), Vec::<String>::new());
    assert_eq!(of("{csv: day.csv}", "", "7d"), ["this `csv` ends after 1d; the load is zero for the remaining 6d"]);
    assert_eq!(of("{csv: day.csv, repeat: 1d}", "", "7d"), Vec::<String>::new());
    assert_eq!(of("{csv: day.csv}", "    for: 1d\n", "7d"), Vec::<String>::new());
    let none = "no data from this `csv` falls within the run: it begins 20644d after the load does, which has 1d left";
    assert_eq!(of("{csv: epoch.csv}", "", "1d"), [none]);
    let none = "no data from this `csv` falls within the run: `repeat` is shorter than the time before its first rate";
    assert_eq!(of("{csv: epoch.csv, repeat: 1d}", "", "1d"), [none]);
    let none = "no data from this `trace` falls within the run: it is over before the load begins";
    assert_eq!(of("{trace: trace.csv, shift: -1h}", "", "1d"), [none]);
    let gap = "table.csv: rows are missing in 1 place, the longest 10h. The load is zero there; each row covers 1h, the usual interval";
    let told = of("{csv: table.csv, column: r}", "", "1d");
    assert!(told.len() == 1 && told[0].ends_with(gap), "{told:?}");
}

//! The readers: what each begins with, and whether it took an input.

use std::path::{Path, PathBuf};

use nodecast_manifests::read_manifests;
use nodecast_observed::bill::{ReadOptions, read_bytes};
use nodecast_observed::claims::{Sources, read};
use nodecast_observed::prometheus::{Answer, QueryList};
use nodecast_prices::Catalog;
use nodecast_prices::import::Import;
use nodecast_replicas::keda::Formula;
use nodecast_replicas::promql::Query;
use nodecast_scenario::source::InMemoryFiles;
use nodecast_scenario::{Draft, Edit, Limits, Source};
use nodecast_study::baseline::Baseline;
use nodecast_study::points;
use nodecast_study::question::{Kind, Part, Question, Shard, merge};

use crate::corpus::{self, Seed};

/// A reader and what it begins with.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Valid inputs.
    pub seeds: fn(&Path) -> Vec<Seed>,
    /// Whether the reader takes a text in the place of the seed's; a folder is there for readers of files.
    pub takes: fn(&Seed, &str, &Path) -> bool,
}

/// Every reader of what users write, keep or export.
pub const ALL: [Target; 14] = [
    Target { name: "scenario", seeds: corpus::scenarios, takes: scenario },
    Target { name: "manifests", seeds: manifest_files, takes: manifests },
    Target { name: "dump", seeds: dumps, takes: dump },
    Target { name: "promql", seeds: |_| lines("query", &QUERIES), takes: |_, text, _| Query::parse(text).is_ok() },
    Target {
        name: "formula",
        seeds: |_| lines("formula", &FORMULAS),
        takes: |_, text, _| Formula::parse(text).is_ok(),
    },
    Target { name: "loads", seeds: corpus::loads, takes: load },
    Target { name: "prices", seeds: price_tables, takes: prices },
    Target { name: "price-import", seeds: price_records, takes: price_import },
    Target { name: "edits", seeds: |_| lines("edit", &EDITS), takes: edit },
    Target { name: "baseline", seeds: baselines, takes: baseline },
    Target { name: "parts", seeds: parts, takes: part },
    Target { name: "claims", seeds: claim_files, takes: claims },
    Target { name: "prometheus", seeds: answers, takes: answer },
    Target { name: "bills", seeds: bills, takes: bill },
];

/// One seed for each text.
fn lines(name: &str, texts: &[&str]) -> Vec<Seed> {
    texts.iter().map(|text| Seed::alone(name, *text)).collect()
}

fn catalog() -> Option<&'static Catalog> {
    Catalog::embedded().ok()
}

fn scenario(seed: &Seed, text: &str, _: &Path) -> bool {
    let beside = seed.beside.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let held = InMemoryFiles::from_texts(beside.chain([(seed.name.as_str(), text)]));
    catalog().is_some_and(|catalog| nodecast_scenario::of_texts(&seed.name, &held, catalog).is_ok())
}

/// What stands first beside a load is the scenario that reads it.
fn load(seed: &Seed, text: &str, _: &Path) -> bool {
    let Some((main, _)) = seed.beside.first() else { return false };
    let beside = seed.beside.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let held = InMemoryFiles::from_texts(beside.chain([(seed.name.as_str(), text)]));
    catalog().is_some_and(|catalog| nodecast_scenario::of_texts(main, &held, catalog).is_ok())
}

fn manifest_files(root: &Path) -> Vec<Seed> {
    let mut found = corpus::files(root, "scenarios", &[".yaml"]);
    found.extend(corpus::files(root, "tests/data", &[".yaml"]));
    found.retain(|seed| manifests(seed, &seed.text, root));
    found
}

fn manifests(seed: &Seed, text: &str, _: &Path) -> bool {
    read_manifests(&Source::new(seed.name.as_str(), text)).is_ok()
}

fn dumps(root: &Path) -> Vec<Seed> {
    let mut found = corpus::files(root, "tests/data/dump", &[".yaml", ".json"]);
    found.extend(corpus::files(root, "tests/data/clusters", &[".yaml"]));
    found.retain(|seed| dump(seed, &seed.text, root));
    found
}

fn dump(seed: &Seed, text: &str, _: &Path) -> bool {
    let source = Source::new(seed.name.as_str(), text);
    let wishes = nodecast_scenario::draft::Wishes {
        name: "dump".to_owned(),
        // Dumps without nodes name none.
        region: seed.name.contains("clusters").then(|| "us-east-1".to_owned()),
        karpenter: None,
        anonymise: text.len().is_multiple_of(2),
        observed: None,
    };
    catalog().is_some_and(|catalog| Draft::of_dump(&[source], &wishes, catalog).is_ok())
}

fn price_tables(root: &Path) -> Vec<Seed> {
    let mut found = corpus::files(root, "pricing-data", &["dates.csv", "ebs.csv", "regions.csv", "commitments.csv"]);
    found.extend(corpus::files(root, "pricing-data/regions", &["af-south-1.csv", "mx-central-1.csv"]));
    for seed in &mut found {
        seed.name = seed.name.trim_start_matches("pricing-data/").to_owned();
    }
    found
}

fn prices(seed: &Seed, text: &str, folder: &Path) -> bool {
    let file = folder.join("prices").join(&seed.name);
    let written = file.parent().is_some_and(|parent| std::fs::create_dir_all(parent).is_ok());
    let taken = written && std::fs::write(&file, text).is_ok() && Catalog::from_dir(&folder.join("prices")).is_ok();
    // The next one is of another table.
    let _ = std::fs::remove_file(&file);
    taken
}

fn price_records(root: &Path) -> Vec<Seed> {
    let mut found = corpus::files(root, "tests/data/aws", &[".json"]);
    found.extend(corpus::files(root, "tests/data/prices", &[".csv"]));
    corpus::shortened(found)
}

fn price_import(seed: &Seed, text: &str, _: &Path) -> bool {
    let Ok(mut import) = Import::onto_built_in() else { return false };
    import.add(&seed.name, text).is_ok() && import.finish().is_ok()
}

/// A scenario of one Deployment with a load, as a file in a folder.
fn small_scenario(folder: &Path) -> Option<PathBuf> {
    let path = folder.join("scenario.yaml");
    if !path.exists() {
        std::fs::write(folder.join("objects.yaml"), corpus::OBJECTS).ok()?;
        std::fs::write(&path, corpus::LOADED.replace("FORM", "{ constant: 10 }").replace("1h", "5m")).ok()?;
    }
    Some(path)
}

/// An edit is made of a scenario, in which it has to find its place.
fn edit(_: &Seed, text: &str, folder: &Path) -> bool {
    let Ok(edit) = Edit::parse(text) else { return false };
    let Some(path) = small_scenario(folder) else { return false };
    catalog().is_some_and(|catalog| nodecast_scenario::load_edited(&path, catalog, &Limits::default(), &[edit]).is_ok())
}

fn baselines(root: &Path) -> Vec<Seed> {
    let mut found = corpus::files(root, "scenarios", &["baseline.json"]);
    let small = Baseline::new([("cost".to_owned(), 0.1)].into(), Vec::new()).to_json().unwrap_or_default();
    found.push(Seed::alone("small.json", small));
    corpus::shortened(found)
}

fn baseline(_: &Seed, text: &str, _: &Path) -> bool {
    serde_json::from_str::<Baseline>(text).is_ok_and(|baseline| {
        let flawless = baseline.flaw().is_none();
        let names = baseline.scenarios.iter().map(|scenario| scenario.scenario.clone()).collect::<Vec<_>>();
        names.iter().for_each(|name| {
            assert!(baseline.duration(name).is_none_or(|duration| duration.as_micros() >= 0), "{name}")
        });
        flawless
    })
}

fn parts(_: &Path) -> Vec<Seed> {
    part_of_comparison().map(|text| Seed::alone("part-1-of-1.json", text)).into_iter().collect()
}

/// A part of a comparison as `compare --shard 1/1` writes it.
fn part_of_comparison() -> Option<String> {
    let folder = tempfile::tempdir().ok()?;
    let scenario = small_scenario(folder.path())?;
    let (loaded, _) = nodecast_scenario::load(&scenario).ok()?;
    let question = Question {
        kind: Kind::Compare,
        scenario: scenario.display().to_string(),
        inputs: Vec::new(),
        pricing_data: None,
        policies: loaded.policies.iter().map(|policy| policy.name.clone()).collect(),
        first_seed: loaded.seed,
        replications: 2,
        settings: vec![Vec::new()],
        axes: Vec::new(),
        latency: None,
        duration: None,
    };
    let plan = question.plan();
    let shard = Shard { number: 1, count: 1 };
    let simulate = |cell| points::simulate(&loaded, catalog()?, cell).ok();
    let points = shard.cells(&plan).into_iter().filter_map(|cell| Some((cell.index, simulate(cell)?)));
    let part = Part::new(question, shard, points.collect());
    serde_json::to_string_pretty(&part).ok()
}

/// A changed part is signed again, so that more is looked at than its signature.
fn part(seed: &Seed, text: &str, _: &Path) -> bool {
    let Ok(part) = serde_json::from_str::<Part>(text) else { return false };
    let unsigned = merge(vec![(seed.name.clone(), part.clone())]).is_ok();
    let signed = Part::new(part.question, part.shard, part.points);
    merge(vec![(seed.name.clone(), signed)]).is_ok() || unsigned
}

fn claim_files(root: &Path) -> Vec<Seed> {
    let mut found = corpus::files(root, "crates/observed/tests/data/karpenter", &[".jsonl", ".yaml", ".json"]);
    found.extend(corpus::files(root, "crates/observed/tests/data/events", &[".jsonl", ".yaml", ".json"]));
    corpus::shortened(found)
}

fn claims(seed: &Seed, text: &str, folder: &Path) -> bool {
    let ending = Path::new(&seed.name).extension().and_then(|extension| extension.to_str()).unwrap_or("json");
    let file = folder.join(format!("claims.{ending}"));
    std::fs::write(&file, text).is_ok() && read(&Sources { paths: vec![file], window: None }).is_ok()
}

fn answers(root: &Path) -> Vec<Seed> {
    corpus::shortened(corpus::files(root, "crates/observed/tests/data/shop-prod", &[".json"]))
}

fn answer(seed: &Seed, text: &str, _: &Path) -> bool {
    if seed.name.ends_with("queries.json") {
        return QueryList::read(text, &seed.name).is_ok();
    }
    Answer::read(text, &seed.name).is_ok()
}

fn bills(root: &Path) -> Vec<Seed> {
    corpus::shortened(corpus::files(root, "crates/observed/tests/data/bill", &[".csv", ".json"]))
}

fn bill(seed: &Seed, text: &str, _: &Path) -> bool {
    read_bytes(&seed.name, text.as_bytes(), &ReadOptions::default(), &mut |_| Ok(())).is_ok()
}

const QUERIES: [&str; 14] = [
    "sum(rate(nginx_ingress_controller_requests[1m]))",
    "sum(rate(istio_requests_total{destination_workload=\"web\",response_code!~\"5..\"}[2m])) by (destination_workload)",
    "avg_over_time(queue_depth{queue=\"orders\"}[5m])",
    "max(http_requests_in_flight) / 4 + 1",
    "histogram_quantile(0.99, sum(rate(request_duration_seconds_bucket[5m])) by (le))",
    "sum by (pod) (increase(jobs_total[10m])) > bool 3",
    "clamp_max(sum(rate(a[1m])), 100)",
    "vector(5)",
    "scalar(sum(up)) * 2 ^ 3 % 7",
    "-sum(a) unless sum(b) or vector(0)",
    "ceil(sum(rate(requests_total{path=~\"/api/.*\"}[30s] offset 1m)))",
    "sum(a{x='y'}) without (z) / on (q) group_left sum(b)",
    "topk(3, rate(a[1m]))",
    "absent(up{job=\"web\"})",
];

const FORMULAS: [&str; 12] = [
    "one + two",
    "(one + two) / 2",
    "max(one, two, 3)",
    "one > 100 ? one : two",
    "float(one) * 1.5 - int(two)",
    "count([one, two, three], {# > 1}) > 1 ? 5 : 0",
    "sum([one, two])",
    "one ?? 0",
    "let a = one * 2; a + 1",
    "one != nil && two > 0 ? avg([one, two]) : 1e3",
    "min(one, 10) ** 2 % 7",
    "not (one < 2) or two in [1, 2, 3] ? 1 : -2",
];

const EDITS: [&str; 14] = [
    "duration=2h",
    "seed=4",
    "load[shop/web].requests.constant=20",
    "load[shop/web].service.concurrency=4",
    "NodePool[default].spec.disruption.consolidateAfter=5m",
    "NodePool.spec.disruption.consolidationPolicy=WhenEmpty",
    "Deployment[web].spec.replicas=7",
    "Deployment[shop/web].spec.template.spec.containers[web].resources.requests.cpu=250m",
    "NodePool[default].spec.template.spec.requirements[karpenter.sh/capacity-type].values=[spot, on-demand]",
    "policies[only].autoscaler=karpenter",
    "cluster.zones=[us-east-1a]",
    "ec2.spot.interruptions=none",
    "timeline[0].at=5m",
    "load[0].requests={ constant: 3 }",
];

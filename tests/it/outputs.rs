//! The reference of outputs names every file, column and key that there is.

use std::collections::BTreeSet;

use nodecast::catalog::PriceQuality;
use nodecast::cloud::BillItem;
use nodecast::domain::vertical::UpdateMode;
use nodecast::domain::workload::ObjectName;
use nodecast::domain::{Money, PodId, ResourceName, Resources, SimTime, Symbol, WorkloadId};
use nodecast::report::directory::TABLE_FILES;
use nodecast::report::format::ExactSeconds;
use nodecast::report::tables::{Cell, Column, Kind, Output, Sink};
use nodecast::report::{Summary, tables};
use nodecast::simulation::Outcome;
use nodecast::world::record::{CapacityLimit, ReachedLimit, RecommendationSample, VerticalFacts, VerticalMeans};

use crate::synthetic;

const REFERENCE: &str = include_str!("../../docs/outputs.md");

/// Names in backticks in the part of the reference between `## heading` and the next heading, dots taken apart.
fn documented(heading: &str) -> BTreeSet<String> {
    let start = REFERENCE.find(&format!("## {heading}\n")).expect("a section");
    let section = &REFERENCE[start + 3..];
    let section = &section[..section.find("\n## ").unwrap_or(section.len())];
    let code = section.split('`').skip(1).step_by(2);
    code.flat_map(|code| code.split(['.', '[', ']'])).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn keys(value: &serde_json::Value, found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(object) => {
            for (key, value) in object {
                found.insert(key.clone());
                keys(value, found);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

/// Fails if a key of the summary is not in the reference.
pub fn all_documented(summary: &Summary) {
    let value = serde_json::to_value(summary).expect("json");
    let mut found = BTreeSet::new();
    keys(&value, &mut found);
    let missing: Vec<_> = found.difference(&documented("summary.json")).cloned().collect();
    assert!(found.len() > 80 && missing.is_empty(), "{} keys, {missing:?} not documented", found.len());
}

#[test]
fn every_key_of_the_summary_is_documented() {
    all_documented(&Summary::from_outcome(&with_recommendations()));
}

#[test]
fn compute_definition_matches_its_columns() {
    let start = REFERENCE.find("*Compute* is").expect("what compute is");
    let told = REFERENCE[start..].split("Net of the discount").next().expect("a sentence");
    let told: BTreeSet<&str> = told.split('`').skip(1).step_by(2).collect();
    let items = [
        BillItem::Instance,
        BillItem::FreeFirstHour,
        BillItem::WarmPool,
        BillItem::WarmPoolVolume,
        BillItem::RootVolume,
        BillItem::PersistentVolume,
        BillItem::PublicIpv4,
        BillItem::ControlPlane,
        BillItem::ExtendedSupport,
        BillItem::ControlPlaneTier,
        BillItem::Capability(nodecast::domain::Capability::ArgoCd),
        BillItem::HybridNodes,
        BillItem::ReservedInstances,
        BillItem::CapacityReservation,
        BillItem::UnusedCapacityReservation,
        BillItem::SavingsPlans,
        BillItem::UnusedCommitment,
        BillItem::LoadBalancer,
        BillItem::LoadBalancerCapacity,
        BillItem::NatGateway,
        BillItem::NatTransfer,
        BillItem::CrossZoneTransfer,
        BillItem::Covered,
        BillItem::Discount,
        BillItem::CpuCredits,
        BillItem::NodeFee,
        BillItem::AutoModeFee,
        BillItem::FargateCpu,
        BillItem::FargateMemory,
        BillItem::FargateStorage,
    ];
    let compute: BTreeSet<&str> = items.iter().filter(|item| item.is_compute()).map(|item| item.as_str()).collect();
    assert_eq!(told, compute);
}

/// The outcome that tests of reports have, with a VerticalPodAutoscaler.
fn with_recommendations() -> Outcome {
    let mut outcome = synthetic::outcome();
    let amounts = |part: i64| Resources::cpu_memory(100 * part, part << 20);
    let sample = |minutes: i64| RecommendationSample {
        at: SimTime::from_micros(minutes * 60_000_000),
        container: Symbol::new("app"),
        pods: 2,
        request: amounts(5),
        used: amounts(2),
        target: amounts(3),
        lower_bound: amounts(1),
        upper_bound: amounts(9),
        uncapped_target: amounts(4),
    };
    let name = ObjectName { namespace: Symbol::new("web"), name: Symbol::new("api") };
    outcome.record.verticals.push(VerticalFacts {
        name,
        workload: WorkloadId(0),
        mode: UpdateMode::Recreate,
        means: VerticalMeans::default(),
        used: Vec::new(),
        samples: vec![sample(10), sample(20)],
    });
    let limits = Resources::new().with(ResourceName::CPU, 4_000);
    outcome.record.limits.push(ReachedLimit {
        limit: CapacityLimit::NodePool(Symbol::new("default"), limits),
        pods: [(PodId(0), SimTime::ZERO)].into_iter().collect(),
    });
    outcome
}

/// The tables that are files of comma-separated values.
const FILES: [(&str, tables::Table); 8] = [
    ("timeline.csv", tables::timeline),
    ("workloads.csv", tables::workloads),
    ("metrics.csv", tables::metrics),
    ("queues.csv", tables::queues),
    ("recommendations.csv", tables::recommendations),
    ("pods.csv", tables::pods),
    ("nodes.csv", tables::nodes),
    ("bill.csv", tables::bill),
];

/// Keeps the cells of a table as text, and what kinds its columns are of.
#[derive(Default)]
struct Cells {
    kinds: Vec<Kind>,
    rows: Vec<Vec<String>>,
}

impl Sink for Cells {
    fn columns(&mut self, columns: &[Column]) {
        self.rows.push(columns.iter().map(|(name, _)| (*name).to_owned()).collect());
        self.kinds.extend(columns.iter().map(|(_, kind)| *kind));
    }

    fn cell(&mut self, cell: Cell<'_>) {
        if self.rows.len() == 1 || self.rows.last().is_some_and(|row| row.len() == self.kinds.len()) {
            self.rows.push(Vec::new());
        }
        let row = self.rows.last_mut().unwrap();
        let (kind, text) = match cell {
            Cell::Nothing => (self.kinds[row.len()], String::new()),
            Cell::Text(text) => (Kind::Text, text.to_owned()),
            Cell::Whole(value) => (Kind::Whole, value.to_string()),
            Cell::Number(value) => (Kind::Number, value.to_string()),
            Cell::Flag(value) => (Kind::Flag, value.to_string()),
            Cell::Micros(micros) => (Kind::Seconds, ExactSeconds(micros).to_string()),
            Cell::Time(time) => (Kind::Time, time.to_string()),
            Cell::Nanos(nanos) => (Kind::Money, Money::from_nanos(nanos).to_string()),
        };
        assert_eq!(kind, self.kinds[row.len()], "{cell:?} in {}", self.rows[0][self.rows.last().unwrap().len()]);
        self.rows.last_mut().unwrap().push(text);
    }
}

#[test]
fn a_sink_is_handed_what_the_file_holds() {
    let outcome = with_recommendations();
    for (file, table) in FILES {
        let mut cells = Cells::default();
        table(&outcome, &mut Output::Sink(&mut cells)).unwrap();
        let bytes = tables::bytes(table, &outcome).unwrap();
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(bytes.as_slice());
        let rows: Vec<Vec<String>> =
            reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
        assert!(rows.len() > 1, "{file} holds nothing");
        assert_eq!(cells.rows, rows, "{file}");
    }
}

#[test]
fn every_column_is_documented() {
    let outcome = with_recommendations();
    for (file, table) in FILES {
        let text = String::from_utf8(tables::bytes(table, &outcome).expect("memory takes all")).expect("text");
        let columns: BTreeSet<String> = text.lines().next().expect("a header").split(',').map(str::to_owned).collect();
        let missing: Vec<_> = columns.difference(&documented(file)).cloned().collect();
        assert!(missing.is_empty(), "{file}: {missing:?}");
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn compressed_tables_hold_the_same_bytes() {
    let place = crate::cli::Place::new();
    let run = |out: &str, more: &[&str]| {
        let (_, err, code) =
            place.nodecast(&[&["run", "scenario.yaml", "--quiet", "--open-metrics", "--out", out], more].concat());
        assert_eq!(code, Some(0), "{err}");
    };
    run("plain", &[]);
    run("packed", &["--compress"]);
    let names = |folder: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(place.path(folder)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let is_table = |name: &str| [".csv", ".jsonl", ".om"].iter().any(|ending| name.ends_with(ending));
    for name in names("plain").iter().filter(|name| is_table(name)) {
        let plain = std::fs::read(place.path("plain").join(name)).unwrap();
        let mut packed = Vec::new();
        let file = std::fs::File::open(place.path("packed").join(format!("{name}.gz"))).unwrap();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file), &mut packed).unwrap();
        assert!(plain == packed, "{name}");
    }
    assert!(names("packed").iter().all(|name| !is_table(name)), "no table is written twice");
    // The next run replaces either form, and what reads a run reads both.
    run("packed", &[]);
    assert_eq!(names("packed"), names("plain"));
    run("packed", &["--compress"]);
    let calibrated = |from: &str| {
        let (out, err, code) = place.nodecast(&["calibrate", "scenario.yaml", "--from", from]);
        assert_eq!(code, Some(0), "{err}");
        out.replace(from, "run")
    };
    assert_eq!(calibrated("plain"), calibrated("packed"));
}

#[test]
fn every_file_is_documented() {
    for file in TABLE_FILES.into_iter().chain([
        "replicas.svg",
        "metrics.svg",
        "queues.svg",
        "nodes.svg",
        "pending.svg",
        "latency.svg",
    ]) {
        assert!(REFERENCE.contains(&format!("`{file}`")), "{file}");
    }
}

#[test]
fn price_qualities_have_consistent_descriptions() {
    for quality in PriceQuality::ALL {
        let json = serde_json::to_value(quality).unwrap();
        let row = format!("| {} | `{}` | {} |\n", quality.as_str(), json.as_str().unwrap(), quality.meaning());
        assert!(REFERENCE.contains(&row), "{row}");
    }
    assert!(PriceQuality::legend(|quality| quality == PriceQuality::Published).is_empty());
}

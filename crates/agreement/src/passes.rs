//! Karpenter's scheduling passes that were measured.

use std::path::Path;

use nodecast_karpenter::packing::{Packer, PackingPlan, PassWork};
use nodecast_model::domain::SimDuration;
use serde_json::{Value, json};

use crate::karpenter_case::{Case, Catalogs};
use crate::tally::read_json;

/// A pass that was measured.
pub struct Row {
    /// What it is called.
    pub name: &'static str,
    /// CPU seconds.
    pub measured: f64,
    /// By which factor the model may be off.
    pub within: f64,
    input: Input,
}

enum Input {
    /// A file of `tests/cases/karpenter-large`, of which `pods` is left.
    File(&'static str),
    /// So many pods of the benchmark that upstream carries: a fifth each of plain pods, zone spread, host spread, zone affinity and
    /// host anti-affinity.
    Mix(usize),
    /// So many pods that prefer a zone and no neighbour of their kind, in vain for zones; respected or ignored.
    Preferences(usize, &'static str),
}

const fn file(name: &'static str, measured: f64) -> Row {
    Row { name, measured, within: 1.5, input: Input::File(name) }
}

const fn mix(name: &'static str, pods: usize, measured: f64) -> Row {
    Row { name, measured, within: 2.0, input: Input::Mix(pods) }
}

/// Karpenter core v1.13 on a shared virtual processor of 2024; 400 instance types each.
pub const ROWS: [Row; 19] = [
    file("plain-1k", 0.38),
    file("plain-5k", 6.4),
    file("plain-20k", 58.6),
    file("plain-50k", 487.0),
    file("mixed-1k", 1.0),
    file("mixed-5k", 3.1),
    file("mixed-20k", 44.5),
    file("mixed-50k", 526.0),
    mix("mix-1", 1, 0.000_76),
    mix("mix-50", 50, 0.060),
    mix("mix-100", 100, 0.161),
    mix("mix-500", 500, 0.955),
    mix("mix-1000", 1_000, 1.93),
    mix("mix-2000", 2_000, 3.93),
    mix("mix-5000", 5_000, 10.9),
    mix("mix-10000", 10_000, 24.1),
    mix("mix-20000", 20_000, 62.8),
    Row { name: "respected", measured: 42.3, within: 2.0, input: Input::Preferences(4_000, "Respect") },
    Row { name: "ignored", measured: 0.90, within: 2.0, input: Input::Preferences(4_000, "Ignore") },
];

impl Row {
    /// The work of the pass.
    ///
    /// # Errors
    /// If the case cannot be read.
    pub fn work(&self) -> Result<PassWork, String> {
        Ok(self.plan(None)?.work)
    }

    /// The plan of the pass within a time.
    ///
    /// # Errors
    /// If the case cannot be read.
    pub fn plan(&self, time: Option<SimDuration>) -> Result<PackingPlan, String> {
        let (case, catalog) = match self.input {
            Input::File(name) => {
                let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/karpenter-large"));
                let path = folder.join(format!("{name}-l.json.gz"));
                let case = read_json(&path)?;
                let mut catalogs = Catalogs::new(None);
                let catalog = catalogs.find(&path, case["catalog"].as_str().unwrap_or_default())?.clone();
                (case, catalog)
            }
            Input::Mix(pods) => (case_of(mixed_pods(pods), "Respect"), fake_types(400)),
            Input::Preferences(pods, policy) => (case_of(preferring_pods(pods), policy), fake_types(400)),
        };
        Ok(Case::read(&case, &catalog)?.with(|setup, situation| Packer::new(setup).pack_within(situation, time)))
    }
}

/// Draws that are the same everywhere.
struct Draws(u64);

impl Draws {
    fn one_of(&mut self, all: &[&'static str]) -> &'static str {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all[(self.0 >> 33) as usize % all.len()]
    }

    fn label(&mut self) -> &'static str {
        self.one_of(&["a", "b", "c", "d", "e", "f", "g"])
    }

    fn requests(&mut self) -> Value {
        let cpu = self.one_of(&["100m", "250m", "500m", "1000m", "1500m"]);
        let memory = self.one_of(&["100Mi", "256Mi", "512Mi", "1024Mi", "2048Mi", "4096Mi"]);
        json!([{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}])
    }
}

fn case_of(pods: Vec<Value>, preferences: &str) -> Value {
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
        "spec": {"template": {"spec": {
            "requirements": [],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        }}},
    });
    json!({
        "name": "benchmark", "nodePools": [pool], "daemonSets": [], "nodes": [], "namespaces": [],
        "options": {"preferencePolicy": preferences},
        "pods": pods,
    })
}

fn pod(number: usize, labels: &Value, spec: Value) -> Value {
    let metadata = json!({"name": format!("pod-{number:05}"), "namespace": "default", "labels": labels});
    json!({"pod": {"metadata": metadata, "spec": spec}})
}

fn mixed_pods(count: usize) -> Vec<Value> {
    let mut draws = Draws(42);
    let fifth = count / 5;
    let mut one = |number: usize| {
        let containers = draws.requests();
        let labels = json!({"my-label": draws.label()});
        let spread = |draws: &mut Draws, key: &str| {
            let selector = json!({"matchLabels": {"my-label": draws.label()}});
            json!([{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}])
        };
        let near = |labels: &Value, key: &str| json!([{"labelSelector": {"matchLabels": labels}, "topologyKey": key}]);
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let (zone, host) = ("topology.kubernetes.io/zone", "kubernetes.io/hostname");
        match number.checked_div(fifth) {
            Some(1) => {
                let spread = spread(&mut draws, zone);
                pod(number, &labels, json!({"containers": containers, "topologySpreadConstraints": spread}))
            }
            Some(2) => {
                let spread = spread(&mut draws, host);
                pod(number, &labels, json!({"containers": containers, "topologySpreadConstraints": spread}))
            }
            Some(3) => {
                let labels = json!({"my-affinity": draws.label()});
                let affinity = json!({"podAffinity": {required: near(&labels, zone)}});
                pod(number, &labels, json!({"containers": containers, "affinity": affinity}))
            }
            Some(4) => {
                let labels = json!({"app": "nginx"});
                let affinity = json!({"podAntiAffinity": {required: near(&labels, host)}});
                pod(number, &labels, json!({"containers": containers, "affinity": affinity}))
            }
            _ => pod(number, &labels, json!({"containers": containers})),
        }
    };
    (0..count).map(&mut one).collect()
}

fn preferring_pods(count: usize) -> Vec<Value> {
    let mut draws = Draws(42);
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let labels = json!({"app": "nginx"});
    let apart = |weight: i32, key: &str| json!({"weight": weight, "podAffinityTerm": {"labelSelector": {"matchLabels": labels}, "topologyKey": key}});
    let zone = json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["test-zone-1"]});
    let affinity = json!({
        "nodeAffinity": {preferred: [{"weight": 1, "preference": {"matchExpressions": [zone]}}]},
        "podAntiAffinity": {preferred: [apart(10, "topology.kubernetes.io/zone"), apart(1, "kubernetes.io/hostname")]},
    });
    (0..count)
        .map(|number| pod(number, &labels, json!({"containers": draws.requests(), "affinity": affinity})))
        .collect()
}

/// The types of upstream's tests: the n-th has n processors, twice as many GiB and room for ten times as many pods.
fn fake_types(count: usize) -> Value {
    let offering = |capacity: &str, zone: usize, price: f64| json!({"zone": format!("test-zone-{zone}"), "capacityType": capacity, "price": price});
    let one = |number: usize| {
        let size = number + 1;
        let price = size as f64 * 0.1 + size as f64 * 2.0 * 0.1;
        let offerings = [
            offering("spot", 1, price),
            offering("spot", 2, price),
            offering("on-demand", 1, price),
            offering("on-demand", 2, price),
            offering("on-demand", 3, price),
        ];
        json!({
            "name": format!("fake-it-{number}"),
            "labels": {"kubernetes.io/arch": "amd64"},
            "resources": {"cpu": format!("{size}"), "memory": format!("{}Gi", 2 * size), "pods": format!("{}", 10 * size)},
            "overhead": {"cpu": "100m", "memory": "10Mi"},
            "offerings": offerings,
        })
    };
    json!({"instanceTypes": (0..count).map(one).collect::<Vec<_>>(), "optionalLabels": []})
}

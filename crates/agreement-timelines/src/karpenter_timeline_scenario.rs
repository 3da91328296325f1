//! Recorded timelines as scenarios: what a user would write, simulated with all that a simulation has of its own (kube-scheduler,
//! kubelets, workload controllers, EC2) in place of the models with which they were recorded.
//!
//! What must not live here: how a timeline is replayed by the machine alone (`karpenter_timeline`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nodecast_prices::{Catalog, CatalogError};
use nodecast_sim::simulation;
use serde_json::{Value, json};

use crate::karpenter_timeline::merge;
use crate::karpenter_timeline_events::{Likeness, compare_likeness};
use agreement::fields::{list, number_or};
use agreement::karpenter_case::Catalogs;
use agreement::tally::each_case;

/// Seconds of the simulation at the instant that a case calls zero: whole periods of the disruption loop and of the search for vanished
/// instances before it, so that it is the start of the controllers that decides where in them a case begins.
const ZERO: f64 = 120.0;
/// When the controllers of a case start, in its time.
const BEGIN: f64 = -9.63;
/// How far the times of the simulation may be from those of the real controllers, in seconds: its scheduler, its calls to EC2 and its
/// polls take their own time, where the models of the cases take none or another.
const CLOSE: f64 = 1.0;
/// How the pods of a workload that the scenario states are labelled.
const LABEL: &str = "timeline/workload";

/// How a timeline fared.
#[derive(Debug)]
pub enum Simulated {
    /// The simulation does what the real controllers did.
    Agrees,
    /// It does not: the first difference.
    Differs(String),
    /// A scenario cannot state it, or there is no timeline to hold it against: why.
    NotStated(String),
}

/// Simulates every timeline below `paths` that a scenario can state. The scenarios are written below `folder`.
///
/// # Errors
/// If a file cannot be read or written, or a scenario that should state a timeline is refused.
pub fn run(paths: &[PathBuf], catalogs: Option<&Path>, folder: &Path) -> Result<Vec<(String, Simulated)>, String> {
    let mut fared = Vec::new();
    let mut catalogs = Catalogs::new(catalogs);
    let mut failed = None;
    each_case(paths, |path, case| {
        let name = case["name"].as_str().unwrap_or("?").to_owned();
        let simulated = catalogs
            .find(path, case["catalog"].as_str().unwrap_or_default())
            .and_then(|types| simulate(case, types, &folder.join(&name)))
            .map(|simulate| fared.push((name.clone(), simulate)));
        if let Err(problem) = simulated {
            failed.get_or_insert(format!("{name}: {problem}"));
        }
    })?;
    failed.map_or(Ok(fared), Err)
}

fn simulate(case: &Value, types: &Value, folder: &Path) -> Result<Simulated, String> {
    if case["expected"]["stable"] == "aggregate" {
        return Ok(Simulated::NotStated("the real program's runs differ by chance".to_owned()));
    }
    let stated = match ScenarioFiles::new(case, types) {
        Ok(stated) => stated,
        Err(why) => return Ok(Simulated::NotStated(why)),
    };
    stated.write(folder).map_err(|error| error.to_string())?;
    let (scenario, _) = nodecast_scenario::load(&folder.join("scenario.yaml")).map_err(|error| error.to_string())?;
    let told = |error: CatalogError| error.to_string();
    let catalog = Catalog::embedded().map_err(told)?;
    let policy = scenario.for_policy(None).map_err(|error| error.to_string())?;
    let outcome = simulation::run(&scenario, policy, catalog, scenario.seed, &mut |_| {}).map_err(told)?;
    Ok(match compare_likeness(&outcome.record, case, Likeness { zero: ZERO, close: CLOSE }) {
        Ok(()) => Simulated::Agrees,
        Err(difference) => Simulated::Differs(difference),
    })
}

/// A scenario and the files that it names, in JSON, which is YAML.
#[derive(Default)]
struct ScenarioFiles {
    scenario: Value,
    files: Vec<(String, Vec<Value>)>,
    /// What exists from the start.
    objects: Vec<Value>,
    timeline: Vec<(f64, Value)>,
    faults: Vec<Value>,
    /// Replicas of workloads, as they were last set.
    replicas: BTreeMap<String, u64>,
    /// NodePools and budgets, as they were last applied.
    applied: BTreeMap<(&'static str, String), Value>,
}

impl ScenarioFiles {
    fn new(case: &Value, types: &Value) -> Result<Self, String> {
        let mut scenario_files = Self::default();
        scenario_files.pools(case, types)?;
        for action in list(case, "actions")? {
            scenario_files.action(case, action)?;
        }
        for fault in list(case, "launchFaults")? {
            scenario_files.fault(fault)?;
        }
        scenario_files.timeline.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        scenario_files.scenario = scenario_files.whole(case)?;
        Ok(scenario_files)
    }

    fn write(&self, folder: &Path) -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("scenario.yaml"), self.scenario.to_string())?;
        let objects = [("objects.yaml".to_owned(), self.objects.clone())];
        for (name, documents) in objects.iter().chain(&self.files) {
            let text: Vec<String> = documents.iter().map(Value::to_string).collect();
            std::fs::write(folder.join(name), text.join("\n---\n"))?;
        }
        Ok(())
    }

    /// The NodePools, of no other types than the case has.
    fn pools(&mut self, case: &Value, types: &Value) -> Result<(), String> {
        let known: Vec<&Value> = list(types, "instanceTypes")?.iter().map(|item| &item["name"]).collect();
        for pool in list(case, "nodePools")? {
            let mut pool = pool.clone();
            let spec = &mut pool["spec"]["template"]["spec"];
            spec["nodeClassRef"] = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
            let of_types = json!({"key": "node.kubernetes.io/instance-type", "operator": "In", "values": known});
            match spec["requirements"].as_array_mut() {
                Some(array_mut) => array_mut.push(of_types),
                None => spec["requirements"] = json!([of_types]),
            }
            self.applied.insert(("NodePool", name_of(&pool)), pool.clone());
            self.objects.push(pool);
        }
        self.objects.push(json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
            "spec": {"role": "node", "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "subnetSelectorTerms": [{"tags": {"cluster": "timeline"}}],
                "securityGroupSelectorTerms": [{"tags": {"cluster": "timeline"}}]},
        }));
        Ok(())
    }

    fn action(&mut self, case: &Value, action: &Value) -> Result<(), String> {
        let at = number_or(action, "t", 0.0)?;
        let name = action["name"].as_str().unwrap_or_default().to_owned();
        match action["op"].as_str().unwrap_or_default() {
            "setReplicas" => {
                self.workload(&name, &action["pod"])?;
                self.scale(at, &name, action["replicas"].as_u64().unwrap_or(0));
            }
            "stream" => {
                self.workload(&name, &action["pod"])?;
                let every = number_or(action, "every", 0.0)?;
                for number in 0..action["count"].as_u64().unwrap_or(0) {
                    let replicas = self.replicas.get(&name).copied().unwrap_or(0) + 1;
                    self.scale(at + every * number as f64, &name, replicas);
                }
            }
            "createBarePods" => {
                let count = action["count"].as_u64().unwrap_or(0);
                let names = (0..count).map(|number| format!("{name}-{number:05}"));
                let pods = names.map(|name| Ok(named(pod(&action["pod"])?, "v1", "Pod", name)));
                let pods = pods.collect::<Result<Vec<_>, String>>()?;
                self.apply(at, pods);
            }
            "createPDB" => {
                let budget = action["podDisruptionBudget"].clone();
                let name = name_of(&budget);
                let budget = named(budget, "policy/v1", "PodDisruptionBudget", name.clone());
                self.applied.insert(("PodDisruptionBudget", name), budget.clone());
                self.apply(at, vec![budget]);
            }
            "patchPDB" => self.patch(at, ("PodDisruptionBudget", name), &action["patch"])?,
            "patchNodePool" => self.patch(at, ("NodePool", name), &action["patch"])?,
            "daemonSet" => {
                let template = labelled(pod(&action["daemonSet"])?, &name);
                let spec = json!({"selector": {"matchLabels": {LABEL: name}}, "template": template});
                let daemon_set = named(json!({"spec": spec}), "apps/v1", "DaemonSet", name);
                self.apply(at, vec![daemon_set]);
            }
            "deleteNodeClaim" => {
                let node = node_of(case, at, &action["onNodeOf"])?;
                self.timeline.push((at, json!({"delete": {"kind": "NodeClaim", "name": node}})));
            }
            "killInstance" => {
                let node = node_of(case, at, &action["onNodeOf"])?;
                self.faults.push(json!({"at": after(at), "node_failure": {"node": node, "mode": "terminated"}}));
            }
            other => return Err(format!("no scenario does what {other} does")),
        }
        Ok(())
    }

    /// A Deployment without replicas that exists from the start, where the case has a ReplicaSet from its first action on.
    fn workload(&mut self, name: &str, template: &Value) -> Result<(), String> {
        if self.replicas.contains_key(name) {
            return Ok(());
        }
        self.replicas.insert(name.to_owned(), 0);
        let template = labelled(pod(template)?, name);
        let spec = json!({"replicas": 0, "selector": {"matchLabels": {LABEL: name}}, "template": template});
        self.objects.push(named(json!({"spec": spec}), "apps/v1", "Deployment", name.to_owned()));
        Ok(())
    }

    fn scale(&mut self, at: f64, name: &str, replicas: u64) {
        self.replicas.insert(name.to_owned(), replicas);
        let step = json!({"scale": {"workload": format!("default/{name}"), "replicas": replicas}});
        self.timeline.push((at, step));
    }

    fn apply(&mut self, at: f64, objects: Vec<Value>) {
        let file = format!("applied-{}.yaml", self.files.len());
        self.timeline.push((at, json!({"manifests": [file]})));
        self.files.push((file, objects));
    }

    fn patch(&mut self, at: f64, which: (&'static str, String), patch: &Value) -> Result<(), String> {
        let known = self.applied.get_mut(&which);
        let object = known.ok_or_else(|| format!("{} {} is patched, and was never made", which.0, which.1))?;
        merge(object, patch);
        let object = object.clone();
        self.apply(at, vec![object]);
        Ok(())
    }

    fn fault(&mut self, fault: &Value) -> Result<(), String> {
        let from = number_or(fault, "from", 0.0)?.max(-ZERO);
        let span = duration(number_or(fault, "to", 0.0)? - from);
        let names: Vec<Option<&Value>> = match fault["types"].as_array() {
            Some(types) => types.iter().map(Some).collect(),
            None => vec![None],
        };
        for kind in names {
            let mut limits = serde_json::Map::new();
            let stated = [("type", kind), ("zone", fault.get("zone")), ("capacity_type", fault.get("capacityType"))];
            limits.extend(stated.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.clone()))));
            let mut written = json!({"at": after(from), "for": span});
            match fault["kind"].as_str().unwrap_or_default() {
                "noCapacity" => written["insufficient_capacity"] = Value::Object(limits),
                "neverRegister" if limits.is_empty() => written["boot_failure"] = json!({"probability": "100%"}),
                other => return Err(format!("no fault of a scenario is like {other}")),
            }
            self.faults.push(written);
        }
        Ok(())
    }

    fn whole(&self, case: &Value) -> Result<Value, String> {
        let model = &case["model"];
        let seconds = |key: &str| number_or(model, key, 0.0);
        let register = seconds("registerSeconds")?;
        // The network plugin is ready at once, and the kubelet posts that as it happens.
        let launch_latency = json!({"vm_init": duration(register - 3.0), "os_boot": "1s", "bootstrap": "1s", "register": "1s",
            "cni_ready": duration(seconds("readySeconds")? - register), "status": "0s", "by_type": false, "spread": false});
        let times = json!({"fleet_call": duration(seconds("launchSeconds")?),
            "shutdown": duration(seconds("instanceTerminationSeconds")?)});
        let shutdown = duration(seconds("podShutdownSeconds")?);
        let names = self.replicas.keys().map(|name| format!("default/{name}"));
        let workloads: Vec<Value> = names.map(|name| json!({"name": name, "shutdown_time": shutdown})).collect();
        let start: jiff::Timestamp =
            case["start"].as_str().unwrap_or_default().parse().map_err(|error| format!("start: {error}"))?;
        let start = start - jiff::SignedDuration::from_secs_f64(ZERO);
        let timeline: Vec<Value> = self.timeline.iter().map(|(at, step)| dated(*at, step)).collect();
        let begin = (ZERO + BEGIN).rem_euclid(10.0);
        Ok(json!({
            "name": case["name"], "region": "us-east-1", "start": start.to_string(), "seed": 1,
            "duration": duration(ZERO + number_or(case, "durationSeconds", 0.0)?),
            "versions": {"karpenter": "v1.13", "kubernetes": "1.36"},
            "controller_time": "none",
            "phases": {"disruption": duration(begin), "garbage_collection": duration((ZERO + BEGIN).rem_euclid(120.0))},
            "cluster": {"zones": ["us-east-1a", "us-east-1b", "us-east-1c"]},
            "manifests": ["objects.yaml"],
            "images": {"size": 1},
            "workloads": workloads,
            "karpenter": karpenter(&case["options"]),
            "ec2": {"launch_latency": launch_latency, "times": times, "capacity": "infinite", "api": "unlimited",
                "failures": "none", "spot": {"prices": "constant", "interruptions": "none"}},
            "timeline": timeline, "faults": self.faults,
            "policies": [{"name": "karpenter", "autoscaler": "karpenter"}],
        }))
    }
}

/// The options of a case as those of a scenario.
fn karpenter(options: &Value) -> Value {
    // Nobody tells the real program of instances that are gone.
    let mut json = json!({"interruption_queue": false, "feature_gates": {
        "spot_to_spot_consolidation": options["spotToSpot"] == true,
        "node_repair": options["nodeRepair"] == true,
        "static_capacity": options["staticCapacity"] == true,
    }});
    let waits = [("batchIdleSeconds", "batch_idle_duration"), ("batchMaxSeconds", "batch_max_duration")];
    for (theirs, ours) in waits {
        if let Some(seconds) = options[theirs].as_f64() {
            json[ours] = duration(seconds);
        }
    }
    json
}

/// A step of the timeline with its time.
fn dated(at: f64, step: &Value) -> Value {
    let mut step = step.clone();
    step["at"] = after(at);
    step
}

/// An instant of a case as a scenario writes it.
fn after(at: f64) -> Value {
    duration(ZERO + at)
}

fn duration(seconds: f64) -> Value {
    format!("{}ms", (seconds * 1_000.0).round() as i64).into()
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn named(mut object: Value, version: &str, kind: &str, name: String) -> Value {
    object["apiVersion"] = version.into();
    object["kind"] = kind.into();
    object["metadata"]["name"] = name.into();
    object
}

fn labelled(mut template: Value, name: &str) -> Value {
    template["metadata"]["labels"][LABEL] = name.into();
    template
}

/// A pod as the API server takes it: containers have names, and ending takes at most thirty seconds.
fn pod(template: &Value) -> Result<Value, String> {
    let mut template = template.clone();
    if template["metadata"]["annotations"].get("sim/shutdown-seconds").is_some() {
        return Err("its pods take different times to end".to_owned());
    }
    for container in template["spec"]["containers"].as_array_mut().into_iter().flatten() {
        container["name"] = "main".into();
    }
    Ok(template)
}

/// The node on which the real program's pod was at that time; the simulation gives its nodes the same numbers.
fn node_of(case: &Value, at: f64, pod: &Value) -> Result<Value, String> {
    let events = list(&case["expected"], "timeline")?;
    let bound = |event: &&Value| event[1] == "pod-bound" && &event[2]["pod"] == pod && event[0].as_f64() <= Some(at);
    let event = events.iter().rfind(bound).ok_or_else(|| format!("pod {pod} is on no node"))?;
    Ok(event[2]["node"].clone())
}

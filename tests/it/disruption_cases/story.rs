//! Short stories: Karpenter's own controllers with the small models of a replay around them, told what happens when, and
//! asked afterwards what became of it.

use nodecast::domain::{NodeId, SimTime};
use nodecast::world::Record;
use nodecast::world::record::{CommandFacts, EventKind, NodeFacts, PodFacts};
use serde_json::{Value, json};

use agreement_timelines::karpenter_timeline::{ZERO, merge, read};
use agreement_timelines::replay::Run;

/// A case of the karpenter-timeline suite in the making, without expectations. Times are seconds; the disruption loop passes
/// at 0.37 and every ten seconds from then on, as long as nothing holds it up.
pub struct Story {
    case: Value,
    types: Value,
}

/// A type of `cpu` cores, 100m of which are the system's, in two zones; On-Demand at 0.05 an hour for each core, Spot at half
/// of that.
fn instance_type(name: &str, cpu: u32) -> Value {
    let price = f64::from(cpu) * 0.05;
    let offering = |zone: &str, kind: &str, price: f64| json!({"zone": zone, "capacityType": kind, "price": price});
    let offerings: Vec<Value> = ["a", "b"]
        .into_iter()
        .flat_map(|zone| [offering(zone, "on-demand", price), offering(zone, "spot", price / 2.0)])
        .collect();
    json!({
        "name": name,
        "labels": {"kubernetes.io/arch": "amd64"},
        "resources": {"cpu": cpu.to_string(), "memory": format!("{}Gi", cpu * 4), "pods": "50"},
        "overhead": {"cpu": "100m"},
        "offerings": offerings,
    })
}

/// Where a claim is On-Demand, in zone a, and of one of these types.
pub fn of_types(types: &[&str]) -> Value {
    json!([
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types},
    ])
}

impl Story {
    /// On-Demand nodes of the types `s-2`, `s-4` and `s-8` in one zone; a node may go when it has been left alone for 30 s.
    pub fn new() -> Self {
        let disruption = json!({"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s",
            "budgets": [{"nodes": "100%"}]});
        let template = json!({"metadata": {"labels": {}},
            "spec": {"requirements": of_types(&["s-2", "s-4", "s-8"]), "expireAfter": "Never"}});
        let pool = json!({"metadata": {"name": "default"}, "spec": {"template": template, "disruption": disruption}});
        let model = json!({"launchSeconds": 2.2, "registerSeconds": 5.4, "readySeconds": 10.4, "podShutdownSeconds": 0.6,
            "instanceTerminationSeconds": 21.3});
        Self {
            case: json!({"start": "2026-01-05T00:00:00Z", "nodePools": [pool], "model": model, "actions": [],
                "launchFaults": [], "options": {}}),
            types: json!({"instanceTypes": [instance_type("s-2", 2), instance_type("s-4", 4), instance_type("s-8", 8)]}),
        }
    }

    /// The same with `consolidateAfter: Never`: nothing but drift and what comes from outside ends a node.
    pub fn calm() -> Self {
        Self::new().pool(json!({"disruption": {"consolidateAfter": "Never"}}))
    }

    /// The same with types of four cores named `t-01`, `t-02`, ..., each a little dearer than the one before.
    pub fn ladder(count: u32) -> Self {
        let rung = |number: u32| {
            let mut instance_type = instance_type(&format!("t-{number:02}"), 4);
            for offering in instance_type["offerings"].as_array_mut().into_iter().flatten() {
                offering["price"] = json!(0.01 * f64::from(number));
            }
            instance_type
        };
        let types: Vec<Value> = (1..=count).map(rung).collect();
        Self { types: json!({"instanceTypes": types}), ..Self::new() }
    }

    /// The same under another release of Karpenter.
    pub fn release(self, karpenter: &str) -> Self {
        self.option("karpenter", karpenter.into())
    }

    /// Changes the specification of the pool `default`.
    pub fn pool(mut self, patch: Value) -> Self {
        merge(&mut self.case["nodePools"][0]["spec"], &patch);
        self
    }

    /// Adds a pool like `default` with a change.
    pub fn another_pool(mut self, name: &str, patch: Value) -> Self {
        let mut pool = self.case["nodePools"][0].clone();
        pool["metadata"]["name"] = name.into();
        merge(&mut pool["spec"], &patch);
        if let Some(pools) = self.case["nodePools"].as_array_mut() {
            pools.push(pool);
        }
        self
    }

    /// Sets an option, a feature gate for instance.
    pub fn option(mut self, key: &str, value: Value) -> Self {
        self.case["options"][key] = value;
        self
    }

    /// Sets a latency of the models.
    pub fn latency(mut self, key: &str, seconds: f64) -> Self {
        self.case["model"][key] = seconds.into();
        self
    }

    /// Something that goes wrong with launches from one second to another.
    pub fn fault(mut self, kind: &str, from: f64, to: f64, types: &[&str]) -> Self {
        let mut fault = json!({"kind": kind, "from": from, "to": to});
        if !types.is_empty() {
            fault["types"] = json!(types);
        }
        self.push("launchFaults", fault);
        self
    }

    fn push(&mut self, key: &str, value: Value) {
        if let Some(list) = self.case[key].as_array_mut() {
            list.push(value);
        }
    }

    /// Something that happens from outside.
    pub fn at(mut self, seconds: f64, mut action: Value) -> Self {
        action["t"] = seconds.into();
        self.push("actions", action);
        self
    }

    /// A ReplicaSet gets its first replicas.
    pub fn run(self, seconds: f64, name: &str, replicas: u32, pod: Value) -> Self {
        self.at(seconds, json!({"op": "setReplicas", "name": name, "replicas": replicas, "pod": pod}))
    }

    /// A ReplicaSet gets another number of replicas.
    pub fn scale(self, seconds: f64, name: &str, replicas: u32) -> Self {
        self.at(seconds, json!({"op": "setReplicas", "name": name, "replicas": replicas}))
    }

    /// The claim of a pod's node is deleted.
    pub fn delete_node_of(self, seconds: f64, pod: &str) -> Self {
        self.at(seconds, json!({"op": "deleteNodeClaim", "onNodeOf": pod}))
    }

    /// The pool `default` is changed.
    pub fn change_pool(self, seconds: f64, spec: Value) -> Self {
        self.at(seconds, json!({"op": "patchNodePool", "name": "default", "patch": {"spec": spec}}))
    }

    /// The pool `default` gets another label for its nodes, so that all of them drift.
    pub fn drift_all(self, seconds: f64) -> Self {
        self.change_pool(seconds, json!({"template": {"metadata": {"labels": {"generation": "2"}}}}))
    }

    /// A budget over the pods with the label `app`.
    pub fn budget(self, seconds: f64, name: &str, app: &str, spec: Value) -> Self {
        let mut spec = spec;
        spec["selector"] = json!({"matchLabels": {"app": app}});
        let budget = json!({"metadata": {"name": name}, "spec": spec});
        self.at(seconds, json!({"op": "createPDB", "podDisruptionBudget": budget}))
    }

    /// Lets everything happen until so many seconds have passed.
    pub fn until(mut self, seconds: f64) -> StoryOutcome {
        self.case["durationSeconds"] = seconds.into();
        let mut run = Run::new(read(&self.case, &self.types).unwrap());
        while run.step() {}
        StoryOutcome { record: run.world().record().clone() }
    }
}

/// A pod that asks for CPU; `more` may hold `labels`, `annotations` and anything of a pod's `spec`.
pub fn pod(cpu: &str, mut more: Value) -> Value {
    let mut take = |key: &str| more.as_object_mut().and_then(|fields| fields.remove(key)).unwrap_or_else(|| json!({}));
    let metadata = json!({"labels": take("labels"), "annotations": take("annotations")});
    let mut spec = json!({"containers": [{"image": "x", "resources": {"requests": {"cpu": cpu}}}]});
    merge(&mut spec, &more);
    json!({"metadata": metadata, "spec": spec})
}

/// A pod that asks for CPU and nothing else.
pub fn plain(cpu: &str) -> Value {
    pod(cpu, json!({}))
}

/// A pod with `karpenter.sh/do-not-disrupt`.
pub fn protected(cpu: &str) -> Value {
    pod(cpu, json!({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}))
}

/// What became of a story.
pub struct StoryOutcome {
    pub record: Record,
}

/// An instant in seconds of the story, to the hundredth.
pub fn time(at: SimTime) -> String {
    format!("{:.2}", at.as_secs_f64() - ZERO)
}

/// The same for an instant that may not have come.
pub fn maybe(at: Option<SimTime>) -> String {
    at.map_or_else(|| "never".to_owned(), time)
}

/// Seconds between two instants that have to have come.
pub fn between(from: Option<SimTime>, to: Option<SimTime>) -> f64 {
    (to.unwrap() - from.unwrap()).as_secs_f64()
}

impl StoryOutcome {
    /// A node by its number.
    pub fn node(&self, number: usize) -> &NodeFacts {
        let name = format!("default-{number:05}");
        self.record.nodes.iter().find(|node| node.name == name).unwrap_or_else(|| panic!("no node {name}"))
    }

    /// A pod by its name.
    pub fn pod(&self, name: &str) -> PodFacts {
        self.record.pods.iter().find(|pod| pod.name == name).unwrap_or_else(|| panic!("no pod {name}"))
    }

    /// How many claims there ever were.
    pub fn claims(&self) -> usize {
        self.record.nodes.len()
    }

    fn name(&self, node: NodeId) -> &str {
        let name = self.record.nodes[node.index()].name.as_str();
        name.strip_prefix("default-0000").unwrap_or(name)
    }

    fn names(&self, nodes: &[NodeId]) -> String {
        nodes.iter().map(|&node| self.name(node)).collect::<Vec<_>>().join(" ")
    }

    /// Commands that were started, as `TIME REASON NODES`, with `+N` for N replacements.
    pub fn started(&self) -> Vec<String> {
        let told = |command_facts: &CommandFacts| {
            let new = command_facts.replacements.len();
            let new = if new == 0 { String::new() } else { format!(" +{new}") };
            Some(format!(
                "{} {} {}{new}",
                time(command_facts.started?),
                command_facts.reason.as_str(),
                self.names(&command_facts.nodes)
            ))
        };
        self.record.commands.iter().filter_map(told).collect()
    }

    /// Commands that were proposed, as `TIME METHOD NODES`.
    pub fn proposed(&self) -> Vec<String> {
        let told = |command_facts: &CommandFacts| {
            Some(format!(
                "{} {} {}",
                time(command_facts.proposed?),
                command_facts.method?,
                self.names(&command_facts.candidates)
            ))
        };
        self.record.commands.iter().filter_map(told).collect()
    }

    /// Proposals that were rejected, as `TIME METHOD WHY`.
    pub fn rejected(&self) -> Vec<String> {
        let told = |command_facts: &CommandFacts| {
            let (at, why) = command_facts.rejected.as_ref()?;
            Some(format!("{} {} {why}", time(*at), command_facts.method?))
        };
        self.record.commands.iter().filter_map(told).collect()
    }

    /// When something of this kind happened to a node.
    pub fn times(&self, kind: EventKind, node: usize) -> Vec<String> {
        let name = self.node(node).name.clone();
        let of_it = |id: NodeId| self.record.nodes[id.index()].name == name;
        let events = self.record.events.iter().filter(|event| event.kind == kind && event.node.is_some_and(of_it));
        events.map(|event| time(event.at)).collect()
    }

    /// What was said of the first event of a kind.
    pub fn said(&self, kind: EventKind) -> Option<&str> {
        self.record.events.iter().find(|event| event.kind == kind).map(|event| event.message)
    }
}

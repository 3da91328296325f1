//! The packer answers like the plain pass of `reference`, on many small random clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodecast_karpenter::packing::{GivenUp, MinValuesPolicy, PackingPlan, PreferencePolicy};
use nodecast_model::domain::{HourlyRate, PodSpec, Resources};
use serde_json::{Value, json};

use super::reference::{self, Answer, Claim};
use super::world::{World, ZONES, instance_type};

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";
const CAPACITY: &str = "karpenter.sh/capacity-type";
const ARCH: &str = "kubernetes.io/arch";

/// A reproducible stream of small numbers (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.roll(chances) == 0
    }

    fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.roll(texts.len())]
    }

    /// A zone, or two.
    fn zones(&mut self) -> Vec<&'static str> {
        let first = self.roll(3);
        if self.one_in(2) { vec![ZONES[first]] } else { vec![ZONES[first], ZONES[(first + 1) % 3]] }
    }
}

/// A random cluster, and what it exercises.
struct Input {
    dice: Dice,
    world: World,
    exercises: BTreeSet<&'static str>,
}

impl Input {
    fn new(seed: u64) -> Self {
        let mut input = Self { dice: Dice(seed), world: World::without_pools(), exercises: BTreeSet::new() };
        input.options();
        input.types();
        for pool in 0..1 + input.dice.roll(3) {
            input.pool(pool);
        }
        for _ in 0..input.dice.roll(3) {
            input.daemon();
        }
        let templates: Vec<Value> = (0..1 + input.dice.roll(4)).map(|app| input.template(app)).collect();
        for node in 0..input.dice.roll(5) {
            input.node(node, &templates);
        }
        for (app, template) in templates.iter().enumerate() {
            let count = 1 + input.dice.roll(3);
            input.world.pods(&format!("pod-{app}"), count, template.clone());
        }
        input
    }

    fn options(&mut self) {
        if self.dice.one_in(6) {
            self.exercises.insert("preferences ignored");
            self.world.options.preferences = PreferencePolicy::Ignore;
        }
        if self.dice.one_in(3) {
            self.world.options.min_values = MinValuesPolicy::BestEffort;
        }
    }

    fn types(&mut self) {
        let sizes = [1, 2, 4, 8, 16];
        self.world.types.clear();
        for _ in 0..2 + self.dice.roll(4) {
            let (cpu, arch) = (sizes[self.dice.roll(5)], self.dice.pick(&["amd64", "amd64", "arm64"]));
            let gib = cpu * [2, 4, 8][self.dice.roll(3)];
            let name = format!("{arch}-{cpu}-{gib}");
            if self.world.types.iter().any(|instance_type| instance_type.name.as_str() == name) {
                continue;
            }
            let mut instance_type = instance_type(&name, cpu, gib, arch);
            for offering in &mut instance_type.offerings {
                if self.dice.one_in(7) {
                    offering.available = false;
                    self.exercises.insert("unavailable offerings");
                }
            }
            self.world.types.push(instance_type);
        }
    }

    fn pool(&mut self, number: usize) {
        let (mut requirements, mut spec) = (Vec::new(), json!({"weight": 1 + self.dice.roll(3)}));
        if self.dice.one_in(4) {
            requirements.push(json!({"key": ZONE, "operator": "In", "values": self.dice.zones()}));
        }
        if self.dice.one_in(4) {
            let kind = self.dice.pick(&["spot", "on-demand"]);
            requirements.push(json!({"key": CAPACITY, "operator": "In", "values": [kind]}));
        }
        if self.dice.one_in(5) {
            requirements.push(json!({"key": "team", "operator": "In", "values": ["red", "blue"]}));
        }
        if self.dice.one_in(5) {
            self.exercises.insert("minValues");
            let least = 2 + self.dice.roll(2);
            let key = "node.kubernetes.io/instance-type";
            requirements.push(json!({"key": key, "operator": "Exists", "minValues": least}));
        }
        if self.dice.one_in(4) {
            self.exercises.insert("pool taints");
            let effect = self.dice.pick(&["NoSchedule", "NoExecute", "PreferNoSchedule"]);
            spec["taints"] = json!([{"key": "dedicated", "value": "yes", "effect": effect}]);
        }
        if self.dice.one_in(3) {
            self.exercises.insert("limits");
            spec["limits"] = match self.dice.roll(3) {
                0 => json!({"cpu": (4 * self.dice.roll(8)).to_string()}),
                1 => json!({"memory": format!("{}Gi", 16 * (1 + self.dice.roll(6)))}),
                _ => json!({"nodes": self.dice.roll(3), "cpu": "40"}),
            };
        }
        spec["requirements"] = Value::from(requirements);
        self.world.pool(&format!("pool-{number}"), spec);
    }

    fn daemon(&mut self) {
        self.exercises.insert("daemonsets");
        let mut spec = json!({"cpu": "100m", "memory": "64Mi", "daemon": true});
        if self.dice.one_in(2) {
            spec["tolerations"] = json!([{"operator": "Exists"}]);
        }
        match self.dice.roll(4) {
            0 => spec["nodeSelector"] = json!({ARCH: "amd64"}),
            1 => {
                let terms =
                    [json!([{"key": "team", "operator": "Exists"}]), json!([{"key": ZONE, "operator": "Exists"}])];
                spec["affinity"] = required_terms(&terms);
            }
            _ => {}
        }
        self.world.daemon(spec);
    }

    fn node(&mut self, number: usize, templates: &[Value]) {
        self.exercises.insert("existing nodes");
        let bound: Vec<(String, Value)> = (0..self.dice.roll(4))
            .map(|pod| (format!("bound-{number}-{pod}"), templates[self.dice.roll(templates.len())].clone()))
            .collect();
        let bound: Vec<(&str, Value)> = bound.iter().map(|(name, spec)| (name.as_str(), spec.clone())).collect();
        let (zone, initialized, offered) = (self.dice.roll(3), !self.dice.one_in(4), !self.dice.one_in(8));
        let (tainted, pool) = (self.dice.one_in(6), self.dice.roll(2));
        // Names do not follow the order in which nodes are listed.
        let node = self.world.node(&format!("node-{}{number}", (b'z' - number as u8) as char), ZONES[zone], &bound);
        node.labels.set("karpenter.sh/nodepool".into(), format!("pool-{pool}").as_str().into());
        (node.initialized, node.offered) = (initialized, offered);
        if tainted {
            let effect = nodecast_model::domain::TaintEffect::NoSchedule;
            node.taints.push(nodecast_model::domain::Taint {
                value: "yes".into(),
                ..nodecast_model::domain::Taint::new("dedicated".into(), effect)
            });
        }
    }

    fn template(&mut self, app: usize) -> Value {
        let cpu = [100, 500, 900, 1_500, 3_000, 7_000, 20_000][self.dice.roll(7)];
        let memory = [128, 1_024, 3_000, 9_000][self.dice.roll(4)];
        let labels = json!({"app": format!("app-{app}"), "tier": self.dice.pick(&["front", "back"])});
        let mut spec = json!({"labels": labels, "cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")});
        if self.dice.one_in(3) {
            self.selector(&mut spec);
        }
        if self.dice.one_in(4) {
            self.exercises.insert("tolerations");
            spec["tolerations"] = match self.dice.roll(2) {
                0 => json!([{"key": "dedicated", "operator": "Exists"}]),
                _ => json!([{"key": "dedicated", "value": "yes", "effect": "NoSchedule"}]),
            };
        }
        let mut spreads = Vec::new();
        while spreads.len() < 2 && self.dice.one_in(3) {
            spreads.push(self.spread(app));
        }
        spec["topologySpreadConstraints"] = Value::from(spreads);
        let mut affinity = json!({});
        if self.dice.one_in(4) {
            affinity["nodeAffinity"] = self.node_affinity();
        }
        for (kind, name) in [("podAffinity", "pod affinity"), ("podAntiAffinity", "pod anti-affinity")] {
            if self.dice.one_in(5) {
                self.exercises.insert(name);
                affinity[kind] = self.pod_affinity(app);
            }
        }
        spec["affinity"] = affinity;
        spec
    }

    fn selector(&mut self, spec: &mut Value) {
        self.exercises.insert("node selectors");
        let (key, value) = match self.dice.roll(4) {
            0 => (ZONE, self.dice.pick(&ZONES)),
            1 => (ARCH, self.dice.pick(&["amd64", "arm64"])),
            2 => (CAPACITY, self.dice.pick(&["spot", "on-demand"])),
            _ => ("team", self.dice.pick(&["red", "blue", "green"])),
        };
        spec["nodeSelector"] = json!({key: value});
    }

    /// The pods of one app, of a tier, or of nobody's.
    fn pods_meant(&mut self, app: usize) -> Value {
        match self.dice.roll(5) {
            0 => json!({"matchLabels": {"tier": self.dice.pick(&["front", "back"])}}),
            1 => json!({"matchLabels": {"app": format!("app-{}", self.dice.roll(4))}}),
            2 => json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
            _ => json!({"matchLabels": {"app": format!("app-{app}")}}),
        }
    }

    fn spread(&mut self, app: usize) -> Value {
        self.exercises.insert("topology spread");
        let when = self.dice.pick(&["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]);
        let key = self.dice.pick(&[ZONE, ZONE, HOST, CAPACITY, "team"]);
        let mut spread = json!({"topologyKey": key, "maxSkew": 1 + self.dice.roll(2), "whenUnsatisfiable": when});
        spread["labelSelector"] = self.pods_meant(app);
        if when == "DoNotSchedule" && self.dice.one_in(4) {
            self.exercises.insert("minDomains");
            spread["minDomains"] = json!(2 + self.dice.roll(3));
        }
        if self.dice.one_in(4) {
            self.exercises.insert("node policies");
            spread["nodeAffinityPolicy"] = json!(self.dice.pick(&["Honor", "Ignore"]));
            spread["nodeTaintsPolicy"] = json!(self.dice.pick(&["Honor", "Ignore"]));
        }
        if self.dice.one_in(6) {
            spread["matchLabelKeys"] = json!(["tier"]);
        }
        if when == "ScheduleAnyway" {
            self.exercises.insert("preferences");
        }
        spread
    }

    fn node_affinity(&mut self) -> Value {
        let expression = |dice: &mut Dice| match dice.roll(4) {
            0 => json!([{"key": ZONE, "operator": dice.pick(&["In", "NotIn"]), "values": dice.zones()}]),
            1 => json!([{"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["3"]}]),
            2 => json!([{"key": "team", "operator": dice.pick(&["Exists", "DoesNotExist"])}]),
            _ => json!([{"key": CAPACITY, "operator": "In", "values": ["spot"]}]),
        };
        let mut affinity = json!({});
        if self.dice.one_in(2) {
            self.exercises.insert("required node affinity");
            let terms: Vec<Value> = (0..1 + self.dice.roll(2)).map(|_| expression(&mut self.dice)).collect();
            affinity = required_terms(&terms)["nodeAffinity"].clone();
        }
        if self.dice.one_in(2) {
            self.exercises.insert("preferences");
            let terms = (0..1 + self.dice.roll(2)).map(|_| {
                let expressions = expression(&mut self.dice);
                json!({"weight": 1 + self.dice.roll(3), "preference": {"matchExpressions": expressions}})
            });
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = terms.collect();
        }
        affinity
    }

    fn pod_affinity(&mut self, app: usize) -> Value {
        let term = json!({"topologyKey": self.dice.pick(&[ZONE, HOST, HOST, CAPACITY]), "labelSelector": self.pods_meant(app)});
        if self.dice.one_in(3) {
            self.exercises.insert("preferences");
            let weighted = json!([{"weight": 1 + self.dice.roll(3), "podAffinityTerm": term}]);
            json!({"preferredDuringSchedulingIgnoredDuringExecution": weighted})
        } else {
            json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]})
        }
    }
}

fn required_terms(terms: &[Value]) -> Value {
    let terms: Vec<Value> = terms.iter().map(|term| json!({"matchExpressions": term})).collect();
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}})
}

/// A plan in the words of the plain pass.
fn in_plain_words(plan: &PackingPlan) -> Answer {
    let claims = plan.claims.iter().map(|claim| Claim {
        pool: claim.pool,
        pods: claim.pods.clone(),
        requirements: (*claim.requirements).clone(),
        types: claim.instance_types.iter().map(|instance_type| (instance_type.name, instance_type.price)).collect(),
        min_values_relaxed: claim.min_values_relaxed,
    });
    Answer {
        existing: plan.existing.iter().map(|plan| (plan.node, plan.pods.clone())).collect(),
        claims: claims.collect(),
        unplaced: plan.unschedulable.iter().map(|plan| plan.pod).collect(),
    }
}

/// How many clusters are tried.
const INPUTS: u64 = 10_000;

#[test]
#[ignore = "slow: .ci/run slow-tests"]
#[allow(clippy::print_stdout)]
fn packer_matches_plain_pass_on_random_clusters() {
    let mut exercised: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..INPUTS {
        let input = Input::new(seed);
        let (found, wanted) = (in_plain_words(&input.world.plan()), reference::answer(&input.world));
        assert!(wanted.claims.len() <= 12, "cluster {seed} opens more claims than the plain pass keeps in order");
        assert_eq!(found, wanted, "cluster {seed}: {:#?}", input.world.pods);
        let outcomes = [
            ("pods left without a place", !wanted.unplaced.is_empty()),
            ("pods on existing nodes", !wanted.existing.is_empty()),
            ("several new nodes", wanted.claims.len() > 1),
            ("minValues lowered", wanted.claims.iter().any(|claim| claim.min_values_relaxed)),
        ];
        let outcomes = outcomes.into_iter().filter(|(_, seen)| *seen).map(|(name, _)| name);
        for name in input.exercises.into_iter().chain(outcomes) {
            *exercised.entry(name).or_default() += 1;
        }
    }
    println!("{INPUTS} clusters: {exercised:?}");
    for (name, clusters) in exercised {
        assert!(clusters >= 200, "only {clusters} clusters have {name}");
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn what_is_foreseen_is_what_a_pass_finds() {
    let (mut waits, mut dearer, mut neither) = (0, 0, 0);
    for seed in 0..2_000 {
        let Input { mut dice, mut world, .. } = Input::new(seed);
        if !dice.one_in(4) {
            let room_only = |spec: &PodSpec| {
                let (containers, tolerations) = (spec.containers.clone(), spec.tolerations.clone());
                Arc::new(PodSpec { containers, tolerations, ..PodSpec::default() })
            };
            world.pods.iter_mut().for_each(|pod| pod.2 = room_only(&pod.2));
            world.nodes.iter_mut().flat_map(|node| &mut node.pods).for_each(|pod| pod.1 = room_only(&pod.1));
            // Larger ones may find no type that is large enough.
            world.pods.retain(|pod| pod.2.requests().cpu_milli() <= 3_000);
            world.nodes.iter_mut().for_each(|node| node.initialized &= dice.one_in(2));
            world.pools.truncate(1);
            world.pools[0].limits = Resources::new();
        }
        let without: Vec<usize> = (0..world.nodes.len().min(1)).collect();
        let unready: Vec<usize> = (0..world.nodes.len()).filter(|&node| !world.nodes[node].initialized).collect();
        let ceiling = HourlyRate::from_nanos(dice.roll(200_000_000) as i64);
        let (foreseen, plan) = world.foreseen(&without, &unready, ceiling);
        let waiting = plan.existing.iter().any(|plan| unready.contains(&plan.node));
        let too_dear = plan.claims.len() == 1
            && plan.claims[0]
                .instance_types
                .first()
                .and_then(|instance_type| instance_type.price)
                .is_none_or(|least| least >= ceiling);
        let (count, right) = match foreseen {
            Some(GivenUp::Waits) => (&mut waits, waiting && plan.unschedulable.is_empty()),
            Some(GivenUp::Dearer) => (&mut dearer, too_dear && !waiting && plan.unschedulable.is_empty()),
            None => (&mut neither, true),
        };
        *count += 1;
        assert!(right, "cluster {seed}: {foreseen:?} with {ceiling:?}, but {plan:#?}");
    }
    assert!(waits >= 100 && dearer >= 100 && neither >= 100, "{waits} wait, {dearer} dearer, {neither} neither");
}

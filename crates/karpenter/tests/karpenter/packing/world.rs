//! A small cluster to ask the packer about: instance types of a made-up provider in three zones, pools, nodes and pods
//! written as manifests.

use std::collections::BTreeMap;
use std::sync::Arc;

use nodecast_karpenter::bin_packing::Effort;
use nodecast_karpenter::instance_types::{InstanceType, Offering};
use nodecast_karpenter::packing::{
    BoundPod, DefaultSpread, GivenUp, LowerBound, NamespaceView, NodeView, OffersChanged, Outline, Packer,
    PackingOptions, PackingPlan, PackingSetup, PendingPod, PoolView, QueuedPods, ReservedMode, Situation, TieBreak,
    TypesChanged, Volumes, WhatIf, lower_bound,
};
use nodecast_karpenter::release::Behaviour;
use nodecast_manifests::{node_pool_from_json, pod_from_json};
use nodecast_model::domain::requirements::{Operator, Requirement};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::volumes::{PersistentVolume, PersistentVolumeClaim, Storage, StorageClass};
use nodecast_model::domain::{
    HourlyRate, KarpenterVersion, Labels, NodePool, PodSpec, Resources, SimTime, Symbol, Taint,
};
use serde_json::{Value, json};

pub use super::types::{GI, ZONES, instance_type};

/// The pods that a plan places, by position.
pub fn placed(plan: &PackingPlan) -> Vec<usize> {
    let claims = plan.claims.iter().flat_map(|claim| &claim.pods);
    claims.chain(plan.existing.iter().flat_map(|placement| &placement.pods)).copied().collect()
}

/// A node of the cluster.
#[derive(Clone)]
pub struct TestNode {
    pub name: String,
    pub labels: Labels,
    pub taints: Vec<Taint>,
    pub startup_taints: Vec<Taint>,
    pub capacity: Resources,
    pub allocatable: Resources,
    pub managed: bool,
    pub initialized: bool,
    pub offered: bool,
    pub pods: Vec<(String, Arc<PodSpec>)>,
    pub volume_limits: Vec<(Symbol, u32)>,
}

/// Everything that a question needs.
#[derive(Clone)]
pub struct World {
    pub karpenter: KarpenterVersion,
    pub options: PackingOptions,
    pub reserved: ReservedMode,
    pub ties: TieBreak,
    pub types: Vec<InstanceType>,
    pub pools: Vec<NodePool>,
    pub daemons: Vec<Arc<PodSpec>>,
    pub namespaces: Vec<(Symbol, Labels)>,
    pub claims: Vec<PersistentVolumeClaim>,
    pub volumes: Vec<PersistentVolume>,
    pub classes: Vec<StorageClass>,
    pub nodes: Vec<TestNode>,
    pub pods: Vec<(String, Symbol, Arc<PodSpec>)>,
    pub default_spread: Option<DefaultSpread>,
}

impl World {
    /// One pool without requirements over types of 2, 4, 8 and 16 cores for both architectures.
    pub fn new() -> Self {
        let mut world = Self::without_pools();
        world.pool("default", json!({}));
        world
    }

    pub fn without_pools() -> Self {
        let sizes = [2, 4, 8, 16].into_iter();
        Self {
            karpenter: KarpenterVersion::V1_13,
            options: PackingOptions::default(),
            reserved: ReservedMode::Strict,
            ties: TieBreak::SmallestName,
            types: sizes
                .flat_map(|cpu| {
                    ["amd64", "arm64"].map(|arch| instance_type(&format!("{arch}-{cpu}"), cpu, cpu * 4, arch))
                })
                .collect(),
            pools: Vec::new(),
            daemons: Vec::new(),
            namespaces: Vec::new(),
            claims: Vec::new(),
            volumes: Vec::new(),
            classes: Vec::new(),
            nodes: Vec::new(),
            pods: Vec::new(),
            default_spread: None,
        }
    }

    /// Adds a pool; `spec` may hold `weight`, `limits`, `replicas`, and directly `requirements`, `taints`,
    /// `startupTaints`, `labels`.
    pub fn pool(&mut self, name: &str, spec: Value) -> &mut Self {
        let mut template =
            json!({"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}});
        for key in ["requirements", "taints", "startupTaints"] {
            template[key] = spec.get(key).cloned().unwrap_or_else(|| json!([]));
        }
        let labels = spec.get("labels").cloned().unwrap_or_else(|| json!({}));
        let mut whole = json!({"template": {"metadata": {"labels": labels}, "spec": template}});
        for key in ["weight", "limits", "replicas"] {
            if let Some(value) = spec.get(key) {
                whole[key] = value.clone();
            }
        }
        let manifest = json!({"metadata": {"name": name}, "spec": whole});
        self.pools.push(node_pool_from_json(&manifest).unwrap_or_else(|error| panic!("{error}")));
        self
    }

    /// Adds a pod of the namespace `default`.
    pub fn pod(&mut self, name: &str, spec: Value) -> &mut Self {
        self.pods(name, 1, spec)
    }

    /// Adds `count` pods `name-0`, `name-1`, ... (or just `name`).
    pub fn pods(&mut self, name: &str, count: usize, spec: Value) -> &mut Self {
        let spec = pod_spec(spec);
        for index in 0..count {
            let name = if count == 1 { name.to_owned() } else { format!("{name}-{index}") };
            self.pods.push((name, Symbol::new("default"), Arc::clone(&spec)));
        }
        self
    }

    pub fn daemon(&mut self, spec: Value) -> &mut Self {
        self.daemons.push(pod_spec(spec));
        self
    }

    /// Adds an initialized, managed node of a type of four cores in `zone`.
    pub fn node(&mut self, name: &str, zone: &str, pods: &[(&str, Value)]) -> &mut TestNode {
        let instance_type = instance_type("amd64-4", 4, 16, "amd64");
        let labels = Labels::new()
            .with("kubernetes.io/hostname", name)
            .with("topology.kubernetes.io/zone", zone)
            .with("karpenter.sh/capacity-type", "on-demand")
            .with("karpenter.sh/nodepool", "default")
            .with("kubernetes.io/arch", "amd64")
            .with("kubernetes.io/os", "linux")
            .with("node.kubernetes.io/instance-type", instance_type.name);
        self.nodes.push(TestNode {
            name: name.to_owned(),
            labels,
            taints: Vec::new(),
            startup_taints: Vec::new(),
            capacity: instance_type.capacity,
            allocatable: instance_type.allocatable,
            managed: true,
            initialized: true,
            offered: true,
            pods: pods.iter().map(|(name, spec)| ((*name).to_owned(), pod_spec(spec.clone()))).collect(),
            volume_limits: Vec::new(),
        });
        let last = self.nodes.len() - 1;
        &mut self.nodes[last]
    }

    pub fn plan(&self) -> PackingPlan {
        self.with_packer(|packer| self.pass(packer))
    }

    /// What one packer, put away after each answer, answers for this world, then for `other`, then for this one again. Their
    /// types may differ in prices, availability and amounts.
    pub fn plans_by_one_packer(&self, other: &Self) -> [PackingPlan; 3] {
        let mut memory = None;
        // Every pool has the same list. Of types that differ in number or name nothing is known to be as before.
        let names = |world: &Self| world.types.iter().map(|instance_type| instance_type.name).collect::<Vec<_>>();
        let offers = if names(self) == names(other) {
            let differ = (0..self.types.len()).filter(|&at| self.types[at].offerings != other.types[at].offerings);
            OffersChanged::Of(differ.flat_map(|at| (0..self.pools.len()).map(move |pool| (pool, at))).collect())
        } else {
            OffersChanged::All
        };
        let changed = TypesChanged { offers, amounts: self.types != other.types };
        [self, other, self].map(|world| {
            world.with_setup(|setup| {
                let mut packer = Packer::resume(setup, memory.take().map(|memory| (memory, changed.clone())));
                let plan = world.pass(&mut packer);
                memory = packer.into_memory();
                assert!(memory.is_some());
                plan
            })
        })
    }

    /// What the cost-aware packer answers.
    pub fn cheap_plan(&self) -> PackingPlan {
        self.with_packer(|packer| {
            let bound: Vec<Vec<BoundPod<'_>>> = self.nodes.iter().map(bound_pods).collect();
            let nodes: Vec<NodeView<'_>> =
                self.nodes.iter().zip(&bound).map(|(node, pods)| node_view(node, pods)).collect();
            let pods: Vec<_> = self.pods.iter().enumerate().map(pending_pod).collect();
            let situation = Situation { nodes: &nodes, pods: &pods, reserved: self.reserved, ties: self.ties };
            packer.pack_cost_aware(&situation, &mut Effort { steps: 2_000_000, go_on: &mut || true })
        })
    }

    /// What a pass without some nodes would come to, as the packer foresees it, and the pass. All pods count as running.
    pub fn foreseen(
        &self,
        without: &[usize],
        unready: &[usize],
        ceiling: HourlyRate,
    ) -> (Option<GivenUp>, PackingPlan) {
        self.with_packer(|packer| {
            let bound: Vec<Vec<BoundPod<'_>>> = self.nodes.iter().map(bound_pods).collect();
            let nodes: Vec<NodeView<'_>> =
                self.nodes.iter().zip(&bound).map(|(node, pods)| node_view(node, pods)).collect();
            let pods: Vec<_> = self.pods.iter().enumerate().map(pending_pod).collect();
            let mut cluster = packer.cluster(&nodes);
            // In two lists, as the pods of two nodes would be.
            let (some, others) = pods.split_at(pods.len() / 2);
            let queued = |pending_pods: &[PendingPod<'_>]| {
                QueuedPods::from_pods(pending_pods.iter().map(|pod| (*pod, || pod.spec.requests())))
            };
            let lists = [some, others].map(|some| Arc::new(queued(some)));
            let pods_of = [(&lists[0], true), (&lists[1], true)];
            let outline = Outline { without, unsettled: &[], unready, ceiling: Some(ceiling), pods: &pods_of };
            let foreseen = packer.foresee(&cluster, &outline);
            let question = WhatIf::placing(&pods, ReservedMode::Fallback, self.ties).without(without);
            (foreseen, packer.simulate(&mut cluster, &question))
        })
    }

    pub fn with_packer<R>(&self, ask: impl FnOnce(&mut Packer<'_>) -> R) -> R {
        self.with_setup(|setup| ask(&mut Packer::new(setup)))
    }

    pub fn with_setup<R>(&self, ask: impl FnOnce(PackingSetup<'_>) -> R) -> R {
        let pools: Vec<_> = self.pools.iter().map(|pool| PoolView { pool, instance_types: &self.types }).collect();
        let namespaces: Vec<_> =
            self.namespaces.iter().map(|(name, labels)| NamespaceView { name: *name, labels }).collect();
        let storage = Storage::new(self.claims.iter().copied(), self.volumes.iter().cloned(), self.classes.clone());
        ask(PackingSetup {
            karpenter: self.karpenter,
            options: self.options,
            pools: &pools,
            daemons: &self.daemons,
            namespaces: &namespaces,
            volumes: Volumes::from_storage(&storage),
            default_spread: self
                .default_spread
                .as_ref()
                .filter(|_| Behaviour::for_release(self.karpenter).knows_default_spread),
        })
    }

    fn pass(&self, packer: &mut Packer<'_>) -> PackingPlan {
        let bound: Vec<Vec<BoundPod<'_>>> = self.nodes.iter().map(bound_pods).collect();
        let nodes: Vec<NodeView<'_>> =
            self.nodes.iter().zip(&bound).map(|(node, pods)| node_view(node, pods)).collect();
        let pods: Vec<_> = self.pods.iter().enumerate().map(pending_pod).collect();
        packer.pack(&Situation { nodes: &nodes, pods: &pods, reserved: self.reserved, ties: self.ties })
    }

    /// A node of this world with `pods` bound to it, as the packer wants it.
    pub fn view<'v>(&self, node: &'v TestNode, pods: &'v [BoundPod<'v>]) -> NodeView<'v> {
        node_view(node, pods)
    }

    /// The lower bound on the cost of the pods that `plan` places.
    pub fn bound(&self, plan: &PackingPlan) -> LowerBound {
        let pools: Vec<_> = self.pools.iter().map(|pool| PoolView { pool, instance_types: &self.types }).collect();
        let namespaces: Vec<_> =
            self.namespaces.iter().map(|(name, labels)| NamespaceView { name: *name, labels }).collect();
        let setup = PackingSetup {
            karpenter: self.karpenter,
            options: self.options,
            pools: &pools,
            daemons: &self.daemons,
            namespaces: &namespaces,
            volumes: Volumes::default(),
            default_spread: None,
        };
        let bound: Vec<Vec<BoundPod<'_>>> = self.nodes.iter().map(bound_pods).collect();
        let nodes: Vec<NodeView<'_>> =
            self.nodes.iter().zip(&bound).map(|(node, pods)| node_view(node, pods)).collect();
        let pods: Vec<_> = self.pods.iter().enumerate().map(pending_pod).collect();
        let mut effort = Effort { steps: Effort::THOROUGH, go_on: &mut || true };
        lower_bound(&setup, &nodes, &pods, &placed(plan), &mut effort)
    }

    pub fn ask(&self) -> Answer<'_> {
        Answer { world: self, plan: self.plan() }
    }

    /// Runs a pass and turns its new claims into nodes of their cheapest type with their pods on them; nothing is pending
    /// afterwards but what found no place.
    pub fn settle(&mut self) -> &mut Self {
        let plan = self.plan();
        let pods = self.pods.clone();
        for placement in &plan.existing {
            let bound = placement.pods.iter().map(|&pod| (pods[pod].0.clone(), Arc::clone(&pods[pod].2)));
            self.nodes[placement.node].pods.extend(bound);
        }
        for claim in &plan.claims {
            let (instance_type, offering) = cheapest(&self.types, claim);
            let name = format!("node-{}", self.nodes.len());
            let mut labels = claim.labels.clone();
            for requirement in instance_type.requirements.iter() {
                if requirement.operator() == Operator::In && requirement.values.len() == 1 {
                    labels.extend(&requirement.values.iter().map(|&value| (requirement.key, value)).collect());
                }
            }
            labels.set(well_known::HOSTNAME, Symbol::new(&name));
            labels.set(well_known::ZONE, offering.zone);
            labels.set(well_known::CAPACITY_TYPE, offering.capacity_type);
            self.nodes.push(TestNode {
                name,
                labels,
                taints: claim.taints.clone(),
                startup_taints: Vec::new(),
                capacity: instance_type.capacity.clone(),
                allocatable: instance_type.allocatable.clone(),
                managed: true,
                initialized: true,
                offered: true,
                pods: claim.pods.iter().map(|&pod| (pods[pod].0.clone(), Arc::clone(&pods[pod].2))).collect(),
                volume_limits: Vec::new(),
            });
        }
        let left: Vec<usize> = plan.unschedulable.iter().map(|plan| plan.pod).collect();
        self.pods = left.into_iter().map(|pod| pods[pod].clone()).collect();
        self
    }

    /// Pods bound in each value of a node label, in order of value, as `value=count` joined by spaces.
    pub fn bound_by(&self, key: &str) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for node in &self.nodes {
            if let Some(value) = node.labels.get(Symbol::new(key)) {
                *counts.entry(value.as_str()).or_default() += node.pods.len();
            }
        }
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        counts.map(|(value, count)| format!("{value}={count}")).collect::<Vec<_>>().join(" ")
    }
}

/// The cheapest type and offering of a claim.
pub fn cheapest<'t>(
    types: &'t [InstanceType],
    claim: &nodecast_karpenter::packing::PlannedClaim,
) -> (&'t InstanceType, &'t Offering) {
    let allowed = |offering: &&Offering| {
        let item = [
            Requirement::equals(well_known::ZONE, offering.zone),
            Requirement::equals(well_known::CAPACITY_TYPE, offering.capacity_type),
        ];
        offering.available && claim.requirements.intersects(&item.into_iter().collect()).is_ok()
    };
    let instance_type = &types[claim.instance_types[0].index as usize];
    let offering =
        instance_type.offerings.iter().filter(allowed).min_by_key(|offering| (offering.price, offering.zone));
    (instance_type, offering.unwrap_or_else(|| panic!("{} has no offering", instance_type.name)))
}

fn bound_pods(node: &TestNode) -> Vec<BoundPod<'_>> {
    let bound = node.pods.iter();
    bound
        .map(|(name, spec)| BoundPod { namespace: Symbol::new("default"), name, spec, counts_in_topology: true })
        .collect()
}

fn node_view<'v>(node: &'v TestNode, pods: &'v [BoundPod<'v>]) -> NodeView<'v> {
    NodeView {
        name: &node.name,
        labels: &node.labels,
        taints: &node.taints,
        startup_taints: &node.startup_taints,
        capacity: &node.capacity,
        allocatable: &node.allocatable,
        managed: node.managed,
        initialized: node.initialized,
        registered: true,
        offered: node.offered,
        pods,
        summed: None,
        volume_limits: &node.volume_limits,
    }
}

fn pending_pod<'v>((rank, (name, namespace, spec)): (usize, &'v (String, Symbol, Arc<PodSpec>))) -> PendingPod<'v> {
    PendingPod { namespace: *namespace, name, spec, created: SimTime::ZERO, uid_rank: rank as u64 }
}

/// A pod's specification from JSON: that of the manifest's `spec`, with `labels`, `cpu`, `memory`, `ports` and `requests`
/// as shorthands for one container.
pub fn pod_spec(mut spec: Value) -> Arc<PodSpec> {
    let mut take = |key: &str| spec.as_object_mut().and_then(|fields| fields.remove(key));
    let labels = take("labels").unwrap_or_else(|| json!({}));
    let mut requests = take("requests").unwrap_or_else(|| json!({}));
    for key in ["cpu", "memory"] {
        if let Some(amount) = take(key) {
            requests[key] = amount;
        }
    }
    let kind = take("daemon").map(|_| json!("DaemonSet")).or_else(|| take("owner"));
    let owner = kind.map(|kind| json!([{"kind": kind, "controller": true}]));
    let ports = take("ports").unwrap_or_else(|| json!([]));
    if spec.get("containers").is_none() {
        spec["containers"] = json!([{"name": "c", "resources": {"requests": requests}, "ports": ports}]);
    }
    let manifest = json!({
        "metadata": {"name": "pod", "labels": labels, "ownerReferences": owner.unwrap_or_else(|| json!([]))},
        "spec": spec,
    });
    Arc::new(pod_from_json(&manifest).unwrap_or_else(|error| panic!("{error}")).spec)
}

/// A plan with the names that it stands for.
pub struct Answer<'w> {
    pub world: &'w World,
    pub plan: PackingPlan,
}

impl Answer<'_> {
    /// Where each pod went: the name of a node, `new-N`, or `-`.
    pub fn places(&self) -> BTreeMap<&str, String> {
        let mut places: BTreeMap<&str, String> =
            self.world.pods.iter().map(|(name, ..)| (name.as_str(), "-".to_owned())).collect();
        for placement in &self.plan.existing {
            for &pod in &placement.pods {
                places.insert(&self.world.pods[pod].0, self.world.nodes[placement.node].name.clone());
            }
        }
        for (number, claim) in self.plan.claims.iter().enumerate() {
            for &pod in &claim.pods {
                places.insert(&self.world.pods[pod].0, format!("new-{number}"));
            }
        }
        places
    }

    pub fn place(&self, pod: &str) -> String {
        self.places()[pod].clone()
    }

    /// Number of pods on each new node, in order of opening.
    pub fn sizes(&self) -> Vec<usize> {
        self.plan.claims.iter().map(|claim| claim.pods.len()).collect()
    }

    /// Number of pods without a place.
    pub fn unplaced(&self) -> usize {
        self.plan.unschedulable.len()
    }

    /// The cheapest type of each new node.
    pub fn types(&self) -> Vec<&'static str> {
        self.plan.claims.iter().map(|claim| claim.instance_types[0].name.as_str()).collect()
    }

    /// Why the first pod without a place has none.
    pub fn reason(&self) -> String {
        self.plan.unschedulable.first().map(|plan| plan.reason.to_string()).unwrap_or_default()
    }

    /// What new node `number` requires of `key`.
    pub fn requires(&self, number: usize, key: &str) -> String {
        let requirement = self.plan.claims[number].requirements.get(Symbol::new(key));
        requirement.map(ToString::to_string).unwrap_or_default()
    }
}

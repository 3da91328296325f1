//! One scheduling pass in its plainest form, to hold the packer against: lists instead of indices, everything worked out
//! anew at every attempt, sets of requirements as the domain knows them. Ties between domains go to the smallest name.
//!
//! Written from the description of Karpenter core v1.13's scheduler, not from the packer; only the vocabulary of `domain`
//! is shared. Left out, because other tests cover them: reservations, volumes, host ports, more than twelve open claims
//! (above which the order of equal claims follows Go's sort).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use nodecast_karpenter::instance_types::{InstanceType, Offering};
use nodecast_karpenter::packing::{MinValuesPolicy, PreferencePolicy};
use nodecast_model::domain::labels::{is_well_known, normalized_key};
use nodecast_model::domain::requirements::{Operator, Requirement};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::taints::{Toleration, first_untolerated};
use nodecast_model::domain::topology::WhenUnsatisfiable;
use nodecast_model::domain::{
    HourlyRate, Labels, PodSpec, Requirements, ResourceName, Resources, Symbol, Taint, TaintEffect,
};

use super::reference_topology::{Groups, Host};
use super::world::World;

/// A node that the pass opens.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    pub pool: usize,
    pub pods: Vec<usize>,
    pub requirements: Requirements,
    pub types: Vec<(Symbol, Option<HourlyRate>)>,
    pub min_values_relaxed: bool,
}

/// What a pass answers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answer {
    /// Node, and the pods put on it; in the order in which nodes are tried.
    pub existing: Vec<(usize, Vec<usize>)>,
    pub claims: Vec<Claim>,
    pub unplaced: BTreeSet<usize>,
}

struct Pool {
    position: usize,
    requirements: Requirements,
    taints: Vec<Taint>,
    types: Vec<usize>,
    daemons: Resources,
    left: Resources,
}

struct ExistingNode {
    position: usize,
    host: Host,
    available: Resources,
    pods: Vec<usize>,
}

struct OpenClaim {
    pool: usize,
    host: Host,
    requests: Resources,
    types: Vec<usize>,
    pods: Vec<usize>,
    relaxed: bool,
}

/// A pass in progress.
pub struct Reference<'w> {
    world: &'w World,
    pools: Vec<Pool>,
    nodes: Vec<ExistingNode>,
    claims: Vec<OpenClaim>,
    /// The one list of open claims, in the order that the last sort left.
    order: Vec<usize>,
    groups: Groups<'w>,
    prefer_no_schedule: bool,
}

/// The answer of the plain pass.
pub fn answer(world: &World) -> Answer {
    let mut pass = Reference::new(world);
    pass.solve()
}

impl<'w> Reference<'w> {
    fn new(world: &'w World) -> Self {
        let mut order: Vec<usize> = (0..world.pools.len()).filter(|&p| world.pools[p].replicas.is_none()).collect();
        order.sort_by_key(|&p| (std::cmp::Reverse(world.pools[p].weight), std::cmp::Reverse(world.pools[p].name)));
        let prefer = |p: &usize| world.pools[*p].taints.iter().any(|t| t.effect == TaintEffect::PreferNoSchedule);
        let prefer_no_schedule = order.iter().any(prefer);
        let mut daemons: Vec<PodSpec> = world.daemons.iter().map(|daemon| (**daemon).clone()).collect();
        let mut pools = Vec::new();
        for position in order {
            pools.extend(open_pool(world, position));
        }
        for pool in &mut pools {
            for daemon in &mut daemons {
                if daemon_runs(pool, daemon) {
                    pool.daemons.add(&daemon.requests());
                }
            }
        }
        let mut nodes: Vec<ExistingNode> =
            (0..world.nodes.len()).filter_map(|node| existing_node(world, node, &daemons)).collect();
        nodes.sort_by_key(|node| {
            let node = &world.nodes[node.position];
            (!node.initialized, node.name.clone())
        });
        let groups = Groups::new(world);
        Self { world, pools, nodes, claims: Vec::new(), order: Vec::new(), groups, prefer_no_schedule }
    }

    fn solve(&mut self) -> Answer {
        let world = self.world;
        for (pod, (_, _, spec)) in world.pods.iter().enumerate() {
            self.groups.update(pod, spec);
        }
        let mut queue: Vec<usize> = (0..world.pods.len()).collect();
        queue.sort_by_key(|&pod| {
            let requests = world.pods[pod].2.requests();
            (-requests.cpu_milli(), -requests.memory_bytes(), pod)
        });
        let mut queue = VecDeque::from(queue);
        let mut length_after: BTreeMap<usize, usize> = BTreeMap::new();
        let mut unplaced = BTreeSet::new();
        while let Some(&pod) = queue.front() {
            if length_after.get(&pod) == Some(&queue.len()) {
                break;
            }
            queue.pop_front();
            if self.place(pod) {
                unplaced.remove(&pod);
            } else {
                unplaced.insert(pod);
                self.groups.update(pod, &world.pods[pod].2);
                queue.push_back(pod);
                length_after.insert(pod, queue.len());
            }
        }
        self.finish(unplaced)
    }

    fn place(&mut self, pod: usize) -> bool {
        let mut spec: PodSpec = (*self.world.pods[pod].2).clone();
        loop {
            if self.on_existing(pod, &spec) || self.on_open(pod, &spec) || self.on_new(pod, &spec) {
                return true;
            }
            if !relax(&mut spec, self.prefer_no_schedule) {
                return false;
            }
            self.groups.update(pod, &spec);
        }
    }

    fn requirements(&self, spec: &PodSpec) -> Requirements {
        let mut wanted = strict(spec);
        if self.world.options.preferences == PreferencePolicy::Respect {
            let mut heaviest: Option<&nodecast_model::domain::pod::PreferredNodeTerm> = None;
            for term in &spec.node_affinity.preferred {
                if heaviest.is_none_or(|heaviest| term.weight > heaviest.weight) {
                    heaviest = Some(term);
                }
            }
            if let Some(term) = heaviest {
                wanted.extend(&term.term.requirements());
            }
        }
        wanted
    }

    fn on_existing(&mut self, pod: usize, spec: &PodSpec) -> bool {
        let wanted = self.requirements(spec);
        let requests = spec.requests();
        for position in 0..self.nodes.len() {
            let node = &self.nodes[position];
            if first_untolerated(&node.host.taints, &spec.tolerations).is_some()
                || node.available.iter().any(|(_, left)| left < 0)
                || !requests.fits(&node.available)
                || node.host.requirements.compatible(&wanted, |_| false).is_err()
            {
                continue;
            }
            let mut narrowed = node.host.requirements.clone();
            narrowed.extend(&wanted);
            let Some(narrowed) = self.groups.narrow(pod, spec, &strict(spec), narrowed, |_| false) else { continue };
            let node = &mut self.nodes[position];
            node.host.requirements = narrowed;
            node.available.subtract(&requests);
            node.pods.push(pod);
            self.groups.record(pod, spec, &node.host, |_| false);
            return true;
        }
        false
    }

    fn on_open(&mut self, pod: usize, spec: &PodSpec) -> bool {
        let claims = &self.claims;
        self.order.sort_by_key(|&claim| claims[claim].pods.len());
        for place in 0..self.order.len() {
            let claim = self.order[place];
            let this_claim = &self.claims[claim];
            if let Some((requirements, types, _)) = self.can_add(this_claim, pod, spec, false) {
                self.commit(claim, pod, spec, requirements, types);
                return true;
            }
        }
        false
    }

    fn on_new(&mut self, pod: usize, spec: &PodSpec) -> bool {
        let lower = self.world.options.min_values == MinValuesPolicy::BestEffort;
        for position in 0..self.pools.len() {
            let pool = &self.pools[position];
            if pool.left.find(ResourceName::NODES) == Some(0) {
                continue;
            }
            let small = |instance_type: &InstanceType| {
                pool.left.iter().all(|(name, left)| instance_type.capacity.get(name) <= left)
            };
            let types: Vec<usize> = pool.types.iter().copied().filter(|&t| small(&self.world.types[t])).collect();
            let name = Symbol::new(&format!("placeholder-{}", self.claims.len()));
            let mut requirements = pool.requirements.clone();
            requirements.add(Requirement::equals(well_known::HOSTNAME, name));
            let host = Host { name, requirements, taints: pool.taints.clone() };
            let fresh = OpenClaim {
                pool: position,
                host,
                requests: pool.daemons.clone(),
                types,
                pods: Vec::new(),
                relaxed: false,
            };
            let Some((requirements, types, relaxed)) = self.can_add(&fresh, pod, spec, lower) else { continue };
            self.claims.push(OpenClaim { relaxed, ..fresh });
            self.order.push(self.claims.len() - 1);
            self.commit(self.claims.len() - 1, pod, spec, requirements, types);
            self.charge(position);
            return true;
        }
        false
    }

    /// The largest type that the newest claim may become comes off the limits.
    fn charge(&mut self, pool: usize) {
        let Some(claim) = self.claims.last() else { return };
        let names: Vec<ResourceName> = self.pools[pool].left.iter().map(|(name, _)| name).collect();
        for name in names {
            let most = claim.types.iter().map(|&t| self.world.types[t].capacity.get(name)).max().unwrap_or(0);
            let left = self.pools[pool].left.get(name) - most;
            self.pools[pool].left.set(name, left);
        }
    }

    fn commit(&mut self, claim: usize, pod: usize, spec: &PodSpec, requirements: Requirements, types: Vec<usize>) {
        let claim = &mut self.claims[claim];
        claim.host.requirements = requirements;
        claim.types = types;
        claim.requests.add(&spec.requests());
        claim.pods.push(pod);
        self.groups.record(pod, spec, &claim.host, is_well_known);
    }

    fn can_add(
        &self,
        claim: &OpenClaim,
        pod: usize,
        spec: &PodSpec,
        lower: bool,
    ) -> Option<(Requirements, Vec<usize>, bool)> {
        if first_untolerated(&claim.host.taints, &spec.tolerations).is_some() {
            return None;
        }
        let wanted = self.requirements(spec);
        claim.host.requirements.compatible(&wanted, is_well_known).ok()?;
        let mut narrowed = claim.host.requirements.clone();
        narrowed.extend(&wanted);
        let mut narrowed = self.groups.narrow(pod, spec, &strict(spec), narrowed, is_well_known)?;
        let mut total = claim.requests.clone();
        total.add(&spec.requests());
        let suits = |instance_type: &InstanceType| {
            instance_type.requirements.intersects(&without_host(&narrowed)).is_ok()
                && total.fits(&instance_type.allocatable)
                && instance_type.allocatable.iter().all(|(_, amount)| amount >= 0)
                && instance_type.offerings.iter().any(|offering| offering.available && allows(&narrowed, offering))
        };
        let left: Vec<usize> = claim.types.iter().copied().filter(|&t| suits(&self.world.types[t])).collect();
        if left.is_empty() {
            return None;
        }
        let mut relaxed = false;
        for (key, found) in shortfalls(&narrowed, &left, &self.world.types) {
            if !lower {
                return None;
            }
            relaxed = true;
            let lowered = narrowed.get(key)?.clone().with_min_values(Some(found));
            narrowed.remove(key);
            narrowed.add(lowered);
        }
        Some((narrowed, left, relaxed))
    }

    fn finish(&mut self, unplaced: BTreeSet<usize>) -> Answer {
        let used = self.nodes.iter().filter(|node| !node.pods.is_empty());
        let existing = used.map(|node| (node.position, node.pods.clone())).collect();
        let mut claims = Vec::new();
        for claim in &self.claims {
            let requirements = without_host(&claim.host.requirements);
            let mut types: Vec<(Symbol, Option<HourlyRate>)> = Vec::new();
            for &index in &claim.types {
                let instance_type = &self.world.types[index];
                let allowed = instance_type.offerings.iter().filter(|o| o.available && allows(&requirements, o));
                types.push((instance_type.name, allowed.map(|offering| offering.price).min()));
            }
            types.sort_by_key(|&(name, price)| (price, name));
            let (pods, min_values_relaxed) = (claim.pods.clone(), claim.relaxed);
            claims.push(Claim { pool: self.pools[claim.pool].position, pods, requirements, types, min_values_relaxed });
        }
        Answer { existing, claims, unplaced }
    }
}

fn open_pool(world: &World, position: usize) -> Option<Pool> {
    let pool = &world.pools[position];
    let mut labels: Labels = pool.labels.clone();
    labels.set(well_known::NODEPOOL, pool.name);
    labels.set(well_known::EC2_NODE_CLASS, pool.node_class);
    let mut requirements: Requirements = pool.requirements.iter().cloned().collect();
    for (key, value) in labels.iter() {
        requirements.add(Requirement::equals(normalized_key(key), value));
    }
    let suits = |instance_type: &InstanceType| {
        instance_type.requirements.intersects(&requirements).is_ok()
            && instance_type.allocatable.iter().all(|(_, amount)| amount >= 0)
            && instance_type.offerings.iter().any(|offering| offering.available && allows(&requirements, offering))
    };
    let types: Vec<usize> = (0..world.types.len()).filter(|&t| suits(&world.types[t])).collect();
    let strict = world.options.min_values == MinValuesPolicy::Strict;
    if types.is_empty() || (strict && !shortfalls(&requirements, &types, &world.types).is_empty()) {
        return None;
    }
    let mut left = pool.limits.clone();
    for node in
        world.nodes.iter().filter(|node| node.offered && node.labels.get(well_known::NODEPOOL) == Some(pool.name))
    {
        for (name, _) in pool.limits.iter() {
            let number = if name == ResourceName::NODES { 1 } else { node.capacity.get(name) };
            left.set(name, left.get(name) - number);
        }
    }
    Some(Pool { position, requirements, taints: pool.taints.clone(), types, daemons: Resources::new(), left })
}

/// Whether a pool's nodes run a daemon. A required term that does not match is gone for the pools that come later too.
fn daemon_runs(pool: &Pool, daemon: &mut PodSpec) -> bool {
    tolerate_preferences(daemon);
    if first_untolerated(&pool.taints, &daemon.tolerations).is_some() {
        return false;
    }
    loop {
        if pool.requirements.compatible(&strict(daemon), is_well_known).is_ok() {
            return true;
        }
        if daemon.node_affinity.required.len() < 2 {
            return false;
        }
        daemon.node_affinity.required.remove(0);
    }
}

fn existing_node(world: &World, position: usize, daemons: &[PodSpec]) -> Option<ExistingNode> {
    let node = &world.nodes[position];
    if !node.offered {
        return None;
    }
    let mut taints = node.taints.clone();
    if node.managed && !node.initialized {
        taints.retain(|taint| {
            !node
                .startup_taints
                .iter()
                .any(|startup_taint| startup_taint.key == taint.key && startup_taint.effect == taint.effect)
        });
    }
    let requirements = Requirements::from_labels(&node.labels);
    let mut available = node.allocatable.clone();
    let mut to_come = Resources::new();
    for daemon in daemons {
        let tolerated = first_untolerated(&taints, &daemon.tolerations).is_none();
        if tolerated && requirements.compatible(&strict(daemon), |_| false).is_ok() {
            to_come.add(&daemon.requests());
        }
    }
    for (_, spec) in &node.pods {
        available.subtract(&spec.requests());
        if spec.owner == nodecast_model::domain::pod::OwnerKind::DaemonSet {
            to_come.subtract(&spec.requests());
        }
    }
    for (name, amount) in to_come.iter().filter(|(_, amount)| *amount > 0) {
        if node.allocatable.find(name).is_some() {
            available.set(name, available.get(name) - amount);
        }
    }
    let host = Host { name: Symbol::new(&node.name), requirements, taints };
    Some(ExistingNode { position, host, available, pods: Vec::new() })
}

/// What a pod requires without its preferences.
pub fn strict(spec: &PodSpec) -> Requirements {
    let mut wanted = Requirements::from_labels(&spec.node_selector);
    if let Some(first) = spec.node_affinity.required.first() {
        wanted.extend(&first.requirements());
    }
    wanted
}

fn without_host(requirements: &Requirements) -> Requirements {
    let mut rest = requirements.clone();
    rest.remove(well_known::HOSTNAME);
    rest
}

fn allows(requirements: &Requirements, offering: &Offering) -> bool {
    let zone = Requirement::equals(well_known::ZONE, offering.zone);
    let kind = Requirement::equals(well_known::CAPACITY_TYPE, offering.capacity_type);
    let unreserved = Requirement::new(well_known::CAPACITY_RESERVATION_ID, Operator::DoesNotExist, []);
    requirements.compatible(&[zone, kind, unreserved].into_iter().collect(), is_well_known).is_ok()
}

fn shortfalls(requirements: &Requirements, left: &[usize], types: &[InstanceType]) -> Vec<(Symbol, u32)> {
    let mut short = Vec::new();
    for requirement in requirements {
        let Some(least) = requirement.min_values else { continue };
        let mut values: BTreeSet<Symbol> = BTreeSet::new();
        for &index in left {
            values.extend(
                types[index]
                    .requirements
                    .get(requirement.key)
                    .into_iter()
                    .flat_map(|requirement| requirement.values.clone()),
            );
        }
        if values.len() < least as usize {
            short.push((requirement.key, values.len() as u32));
        }
    }
    short
}

/// One step of giving up what may be given up.
fn relax(spec: &mut PodSpec, prefer_no_schedule: bool) -> bool {
    fn drop_heaviest<T>(terms: &mut Vec<T>, weight: impl Fn(&T) -> i64) -> bool {
        let Some(most) = terms.iter().map(&weight).max() else { return false };
        let first = terms.iter().position(|term| weight(term) == most);
        first.map(|position| terms.remove(position)).is_some()
    }
    if spec.node_affinity.required.len() > 1 {
        spec.node_affinity.required.remove(0);
        return true;
    }
    if drop_heaviest(&mut spec.pod_affinity.preferred, |term| term.weight)
        || drop_heaviest(&mut spec.pod_anti_affinity.preferred, |term| term.weight)
        || drop_heaviest(&mut spec.node_affinity.preferred, |term| term.weight)
    {
        return true;
    }
    let anyway = |when| when == WhenUnsatisfiable::ScheduleAnyway;
    if let Some(first) =
        spec.topology_spread.iter().position(|topology_spread| anyway(topology_spread.when_unsatisfiable))
    {
        let last = spec.topology_spread.len() - 1;
        spec.topology_spread.swap(first, last);
        spec.topology_spread.pop();
        return true;
    }
    prefer_no_schedule && tolerate_preferences(spec)
}

fn tolerate_preferences(spec: &mut PodSpec) -> bool {
    let everything = Toleration { effect: Some(TaintEffect::PreferNoSchedule), ..Toleration::EVERYTHING };
    let known = spec.tolerations.contains(&everything);
    if !known {
        spec.tolerations.push(everything);
    }
    !known
}

//! What the scheduler remembers must not change an answer: every decision equals that of the plain form, in which
//! everything is counted anew. And what a placement must never break.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::evaluation::{Cycle, named_nothing, named_slots};
use super::node::NodeEntry;
use super::{
    BudgetState, Chosen, ClusterView, NoPreemption, NodeImage, PendingPod, Placement, Plugin, PodShape, Scheduler,
    SchedulerConfig, SchedulerNode, Service, ShapeId, TieBreak, evaluate, scores,
};
use nodecast_model::domain::labels::{SelectorExpression, SelectorOperator};
use nodecast_model::domain::pod::{HostPort, PreemptionPolicy, PreferredNodeTerm};
use nodecast_model::domain::requirements::Operator;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::taints::first_untolerated;
use nodecast_model::domain::topology::{
    NodeInclusionPolicy, PodAffinity, PodAffinityTerm, TopologySpread, WeightedPodAffinityTerm, WhenUnsatisfiable,
};
use nodecast_model::domain::{
    Container, KubernetesVersion, LabelSelector, Labels, NodeAffinity, NodeId, PodId, PodSpec, ResourceName, Resources,
    SimDuration, SimTime, Symbol, Taint, TaintEffect, Toleration, pod,
};

/// A number of which parts decide this and that.
#[derive(Clone, Copy, Debug)]
struct Dice(u64);

impl Dice {
    /// A number below `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }
}

fn zone(index: u64) -> Symbol {
    Symbol::new(["zone-a", "zone-b", "zone-c"][index as usize % 3])
}

fn app(index: u64) -> Symbol {
    Symbol::new(["web", "cache", "batch"][index as usize % 3])
}

fn random_node(mut dice: Dice, name: usize) -> SchedulerNode {
    let mut labels = Labels::new();
    if !dice.one_in(8) {
        labels.set(well_known::ZONE, zone(dice.roll(3)));
    }
    if dice.one_in(2) {
        labels.set(Symbol::new("disk"), Symbol::new(["ssd", "hdd"][dice.roll(2) as usize]));
    }
    let mut taints = Vec::new();
    if dice.one_in(6) {
        taints.push(Taint::new(well_known::TAINT_NOT_READY, TaintEffect::NoSchedule));
    }
    if dice.one_in(4) {
        taints.push(Taint::new(Symbol::new("soft"), TaintEffect::PreferNoSchedule));
    }
    let gpus = if dice.one_in(4) { 2 } else { 0 };
    let allocatable = Resources::cpu_memory(1_000 * (1 + dice.roll(4) as i64), (2 << 30) * (1 + dice.roll(4) as i64))
        .with(ResourceName::PODS, 2 + dice.roll(8) as i64)
        .with(ResourceName::NVIDIA_GPU, gpus);
    let images = (0..dice.roll(3)).map(|_| NodeImage {
        name: Symbol::new(["web:latest", "cache:v1"][dice.roll(2) as usize]),
        size_bytes: 400 << 20,
    });
    let images = images.take(1).collect();
    SchedulerNode {
        name: format!("node-{name}").into(),
        labels,
        taints,
        unschedulable: dice.one_in(10),
        allocatable,
        images,
        volume_limits: Vec::new(),
        missing_drivers: Vec::new(),
    }
}

fn selector(dice: &mut Dice) -> LabelSelector {
    if dice.one_in(5) {
        let expression = SelectorExpression {
            key: Symbol::new("app"),
            operator: SelectorOperator::NotIn,
            values: vec![app(dice.roll(3))],
        };
        return LabelSelector { expressions: vec![expression], ..LabelSelector::default() };
    }
    LabelSelector { match_labels: Labels::new().with("app", app(dice.roll(3))), ..LabelSelector::default() }
}

fn topology_key(dice: &mut Dice) -> Symbol {
    [well_known::ZONE, well_known::HOSTNAME, Symbol::new("disk")][dice.roll(3) as usize]
}

fn affinity_term(dice: &mut Dice) -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: topology_key(dice),
        selector: Some(selector(dice)),
        namespaces: Vec::new(),
        namespace_selector: dice.one_in(4).then(LabelSelector::default),
        match_label_keys: Vec::new(),
        mismatch_label_keys: Vec::new(),
    }
}

fn affinity(dice: &mut Dice) -> PodAffinity {
    let weighted =
        |dice: &mut Dice| WeightedPodAffinityTerm { weight: 1 + dice.roll(100) as i64, term: affinity_term(dice) };
    PodAffinity {
        required: if dice.one_in(2) { vec![affinity_term(dice)] } else { Vec::new() },
        preferred: if dice.one_in(2) { vec![weighted(dice)] } else { Vec::new() },
    }
}

fn spread(dice: &mut Dice) -> TopologySpread {
    let policy = |honor: bool| if honor { NodeInclusionPolicy::Honor } else { NodeInclusionPolicy::Ignore };
    TopologySpread {
        topology_key: topology_key(dice),
        max_skew: 1 + dice.roll(2) as i64,
        when_unsatisfiable: if dice.one_in(2) {
            WhenUnsatisfiable::DoNotSchedule
        } else {
            WhenUnsatisfiable::ScheduleAnyway
        },
        selector: Some(selector(dice)),
        min_domains: dice.one_in(4).then_some(3),
        node_affinity_policy: policy(!dice.one_in(3)),
        node_taints_policy: policy(dice.one_in(2)),
        match_label_keys: Vec::new(),
    }
}

fn random_pod(mut dice: Dice) -> PodSpec {
    let dice = &mut dice;
    let own_app = app(dice.roll(3));
    let mut requests = match dice.roll(5) {
        0 => Resources::new(),
        _ => Resources::cpu_memory(100 * dice.roll(12) as i64, (256 << 20) * dice.roll(9) as i64),
    };
    if dice.one_in(6) {
        requests.set(ResourceName::NVIDIA_GPU, 1);
    }
    let port = HostPort { port: 80, protocol: Symbol::new("TCP"), ip: well_known::EMPTY };
    let container = Container {
        image: own_app.as_str().to_owned(),
        requests,
        host_ports: if dice.one_in(8) { vec![port] } else { Vec::new() },
        ..Container::default()
    };
    let ssd = pod::NodeSelectorTerm {
        expressions: vec![pod::NodeSelectorExpression {
            key: Symbol::new("disk"),
            operator: Operator::In,
            values: vec![Symbol::new("ssd")],
        }],
        fields: Vec::new(),
    };
    let mut tolerations = Vec::new();
    if dice.one_in(4) {
        tolerations.push(Toleration::exists(well_known::TAINT_NOT_READY, None));
    }
    if dice.one_in(4) {
        tolerations.push(Toleration::exists(Symbol::new("soft"), None));
    }
    PodSpec {
        labels: Labels::new().with("app", own_app),
        containers: vec![container],
        node_selector: if dice.one_in(6) {
            Labels::new().with(well_known::ZONE, zone(dice.roll(3)))
        } else {
            Labels::new()
        },
        node_affinity: NodeAffinity {
            required: if dice.one_in(8) { vec![ssd.clone()] } else { Vec::new() },
            preferred: if dice.one_in(4) { vec![PreferredNodeTerm { weight: 7, term: ssd }] } else { Vec::new() },
        },
        pod_affinity: if dice.one_in(4) { affinity(dice) } else { PodAffinity::default() },
        pod_anti_affinity: if dice.one_in(4) { affinity(dice) } else { PodAffinity::default() },
        tolerations,
        topology_spread: (0..if dice.one_in(2) { 0 } else { dice.roll(3) }).map(|_| spread(dice)).collect(),
        priority: [0, 0, 10, 100][dice.roll(4) as usize],
        preemption_policy: if dice.one_in(8) { PreemptionPolicy::Never } else { PreemptionPolicy::default() },
        ..PodSpec::default()
    }
}

/// The decision in its plain form, from the same start.
fn plainly(config: &SchedulerConfig, view: &ClusterView, pod: &PendingPod, start: usize, tie: TieBreak) -> Placement {
    let order = view.order();
    let mut cycle = Cycle::new(view, pod);
    if let Some(conflict) = named_nothing(view, &cycle.shape) {
        return Placement::Unschedulable(conflict);
    }
    let node = |slot| view.entry(slot).unwrap().id;
    if let Some(slot) = view.nominated_node(pod.id).and_then(|node| view.slot(node))
        && cycle.check(slot).is_ok()
    {
        return Placement::Node(Chosen { node: node(slot), total: None, feasible: 1, examined: 1 });
    }
    let named = named_slots(view, pod, &cycle.shape, &order);
    let search = cycle.search(named.as_ref().unwrap_or(&order), start, config.percentage_of_nodes_to_score);
    let (feasible, examined) = (search.feasible.clone(), search.examined);
    let chosen = |index: usize, total| {
        Placement::Node(Chosen { node: node(feasible[index]), total, feasible: feasible.len(), examined })
    };
    match feasible.len() {
        0 => Placement::Unschedulable(cycle.unschedulable(search, order.len())),
        1 => chosen(0, None),
        _ => {
            let mut totals = vec![0; feasible.len()];
            let candidates = cycle.candidates(&feasible);
            for (plugin, values) in scores::normalised(config, view, &cycle.shape, &cycle.state, &candidates) {
                totals.iter_mut().zip(values).for_each(|(total, score)| *total += plugin.weight() * score);
            }
            let index = tie.pick(&totals).unwrap();
            chosen(index, Some(totals[index]))
        }
    }
}

/// Checks a placement, before it is made, against what the specification says, without the scheduler's own counts.
fn assert_nothing_broken(view: &ClusterView, pod: &PendingPod, node: NodeId) {
    let shape = view.shape_of(pod.shape);
    let entries: Vec<_> = view.order().into_iter().filter_map(|slot| view.entry(slot)).collect();
    let target = entries.iter().find(|entry| entry.id == node).unwrap();
    let mut sum = shape.spec.requests();
    target.pods.iter().for_each(|placed| sum.add(&view.shape_of(placed.shape).spec.requests()));
    let over = |name, amount| shape.spec.requests().get(name) > 0 && amount > target.node.allocatable.get(name);
    assert!(!sum.iter().any(|(name, amount)| over(name, amount)), "{sum} on {}", target.node.allocatable);
    let hard = |taint: &&Taint| taint.effect != TaintEffect::PreferNoSchedule;
    let untolerated = first_untolerated(target.node.taints.iter().filter(hard), &shape.spec.tolerations);
    assert_eq!(untolerated, None);
    assert!(shape.spec.selects_node(&target.node.labels, &target.node.name));
    let value = |entry: &NodeEntry, key: Symbol| match key == well_known::HOSTNAME {
        true => Some(Symbol::new(&entry.node.name)),
        false => entry.node.labels.get(key),
    };
    let means = |owner: &PodShape, term: &PodAffinityTerm, other: &PodShape| {
        (term.namespace_selector.is_some() || owner.namespace == other.namespace)
            && term.selector.as_ref().unwrap().matches(&other.spec.labels)
    };
    for entry in &entries {
        for other in entry.pods.iter().map(|placed| view.shape_of(placed.shape)) {
            for (owner, meant) in [(shape, other), (other, shape)] {
                for term in &owner.spec.pod_anti_affinity.required {
                    let here = value(target, term.topology_key);
                    let together = here.is_some() && here == value(entry, term.topology_key);
                    assert!(!(together && means(owner, term, meant)), "anti-affinity is broken");
                }
            }
        }
    }
    let constraints: Vec<&TopologySpread> = shape
        .spec
        .topology_spread
        .iter()
        .filter(|c| c.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule)
        .collect();
    for constraint in &constraints {
        let mut counts: BTreeMap<Symbol, i64> = BTreeMap::new();
        for entry in &entries {
            let has_all = constraints.iter().all(|other| value(entry, other.topology_key).is_some());
            let selected = constraint.node_affinity_policy == NodeInclusionPolicy::Ignore
                || shape.spec.selects_node(&entry.node.labels, &entry.node.name);
            let tolerated = constraint.node_taints_policy == NodeInclusionPolicy::Ignore
                || first_untolerated(entry.node.taints.iter().filter(hard), &shape.spec.tolerations).is_none();
            let Some(domain) = value(entry, constraint.topology_key).filter(|_| has_all && selected && tolerated)
            else {
                continue;
            };
            let selector = constraint.selector.as_ref().unwrap();
            let counted = entry.pods.iter().filter(|placed| {
                let other = view.shape_of(placed.shape);
                !placed.terminating && other.namespace == shape.namespace && selector.matches(&other.spec.labels)
            });
            *counts.entry(domain).or_insert(0) += counted.count() as i64;
        }
        let few = (counts.len() as i64) < constraint.min_domains.unwrap_or(1);
        let smallest = if few { 0 } else { counts.values().copied().min().unwrap_or(0) };
        let here = value(target, constraint.topology_key).and_then(|domain| counts.get(&domain)).copied();
        let with_pod = here.unwrap_or(0) + i64::from(constraint.selector.as_ref().unwrap().matches(&shape.spec.labels));
        assert!(with_pod - smallest <= constraint.max_skew, "the spread is broken");
    }
}

/// A small cluster with its scheduler, moved by random steps.
struct Story {
    view: ClusterView,
    scheduler: Scheduler,
    shapes: Vec<ShapeId>,
    placed: Vec<PodId>,
    waiting: Vec<PendingPod>,
    nodes: u32,
    pods: u32,
}

impl Story {
    fn new(config: SchedulerConfig, palette: &[u64]) -> Self {
        let services = vec![Service { namespace: well_known::DEFAULT, selector: Labels::new().with("app", "web") }];
        let mut view = ClusterView::new(services, []);
        let other = Symbol::new("other");
        let shapes = palette
            .iter()
            .map(|&seed| {
                let namespace = if seed.is_multiple_of(5) { other } else { well_known::DEFAULT };
                view.shape(namespace, &Arc::new(random_pod(Dice(seed))), None)
            })
            .collect();
        let scheduler = Scheduler::new(config);
        Self { view, scheduler, shapes, placed: Vec::new(), waiting: Vec::new(), nodes: 0, pods: 0 }
    }

    fn step(&mut self, action: u8, which: u64) {
        let node = NodeId(which as u32 % self.nodes.max(1));
        let placed = self.placed.get(which as usize % self.placed.len().max(1)).copied();
        match action {
            0 | 1 => {
                self.view.add_node(NodeId(self.nodes), random_node(Dice(which), self.nodes as usize));
                self.nodes += 1;
            }
            2 if self.view.slot(node).is_some() => self.view.update_node(node, random_node(Dice(which), node.index())),
            3 if which.is_multiple_of(3) => drop(self.view.remove_node(node)),
            4 => placed.into_iter().for_each(|pod| {
                self.placed.retain(|other| *other != pod);
                self.view.forget_pod(pod);
            }),
            5 => placed.into_iter().for_each(|pod| self.view.mark_terminating(pod)),
            6 if !self.waiting.is_empty() => {
                let pod = self.waiting.remove(which as usize % self.waiting.len());
                self.schedule(pod, which);
            }
            _ if !self.shapes.is_empty() => {
                let shape = self.shapes[which as usize % self.shapes.len()];
                let pinned_to = which.is_multiple_of(11).then_some(node);
                self.pods += 1;
                self.schedule(PendingPod { id: PodId(self.pods), shape, pinned_to }, which);
            }
            _ => {}
        }
    }

    fn schedule(&mut self, pod: PendingPod, seed: u64) {
        let tie = [TieBreak::Heap, TieBreak::First, TieBreak::Random { seed }][seed as usize % 3];
        let start = self.scheduler.next_start;
        let expected = plainly(&self.scheduler.config.clone(), &self.view, &pod, start, tie);
        let found = self.scheduler.schedule(&self.view, &pod, tie);
        assert_eq!(found, expected);
        match found {
            Placement::Node(chosen) => {
                let verdict = evaluate(&self.scheduler.config, &self.view, &pod);
                let node = verdict.nodes.iter().find(|node| node.node == chosen.node).unwrap();
                assert_eq!(node.rejection, None, "a pod went where no filter lets it");
                assert_nothing_broken(&self.view, &pod, chosen.node);
                let started = SimTime::ZERO + SimDuration::from_secs(i64::from(pod.id.0) % 7);
                self.view.assume_pod(chosen.node, pod.id, pod.shape, started);
                self.placed.push(pod.id);
            }
            Placement::Unschedulable(_) => {
                self.preempt(&pod, seed);
                self.waiting.push(pod);
            }
        }
    }

    fn preempt(&mut self, pod: &PendingPod, offset: u64) {
        let budget = BudgetState {
            namespace: well_known::DEFAULT,
            selector: Some(LabelSelector {
                match_labels: Labels::new().with("app", "web"),
                ..LabelSelector::default()
            }),
            disruptions_allowed: offset as i64 % 3,
        };
        let Ok(preemption) = self.scheduler.preempt(&self.view, pod, &[budget], offset) else { return };
        let own_priority = self.view.shape_of(pod.shape).spec.priority;
        assert!(!preemption.victims.is_empty());
        let mut after = self.view.clone();
        for &victim in &preemption.victims {
            assert_eq!(after.node_of(victim), Some(preemption.node));
            let shape = after.shape_of_pod(victim).unwrap();
            assert!(after.shape_of(shape).spec.priority < own_priority);
            after.forget_pod(victim);
        }
        let slot = after.slot(preemption.node).unwrap();
        assert_eq!(Cycle::new(&after, pod).check(slot), Ok(()), "the victims' going makes room");
        for &victim in &preemption.victims {
            self.view.mark_terminating(victim);
        }
        for &demoted in &preemption.demoted {
            self.view.clear_nomination(demoted);
        }
        self.view.nominate(pod.id, pod.shape, preemption.node);
        // A nominated pod whose victims are ending does not evict more.
        let again = self.scheduler.preempt(&self.view, pod, &[], offset);
        assert_eq!(again, Err(NoPreemption::VictimsTerminating));
        if offset.is_multiple_of(2) {
            for victim in preemption.victims {
                self.placed.retain(|other| *other != victim);
                self.view.forget_pod(victim);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 3 / 4, ..ProptestConfig::default() })]

    #[test]
    fn remembering_nodes_changes_no_decision(
        palette in proptest::collection::vec(any::<u64>(), 1..10),
        steps in proptest::collection::vec((0_u8..14, any::<u64>()), 1..160),
        minor in prop_oneof![Just(36_u8), Just(35), Just(32)],
    ) {
        let version = KubernetesVersion::from_minor(minor).unwrap_or_default();
        let mut story = Story::new(SchedulerConfig { version, ..SchedulerConfig::default() }, &palette);
        for (action, which) in steps {
            story.step(action, which);
        }
    }
}

#[test]
fn node_cache_does_not_change_decisions() {
    let palette: Vec<u64> = (1..30).map(|seed| seed * 7_919).collect();
    let mut story = Story::new(SchedulerConfig::default(), &palette);
    let mut dice = Dice(1);
    for _ in 0..400 {
        story.step(0, dice.roll(u64::from(u32::MAX)));
    }
    for _ in 0..600 {
        let action = 2 + dice.roll(20) as u8;
        story.step(action, dice.roll(u64::from(u32::MAX)));
    }
    assert!(story.placed.len() > 100, "only {} pods found a place", story.placed.len());
}

#[test]
fn evicted_shapes_are_recomputed() {
    let mut view = ClusterView::default();
    for index in 0..3 {
        view.add_node(NodeId(index), random_node(Dice(u64::from(index) * 31 + 5), index as usize));
    }
    let mut scheduler = Scheduler::default();
    for round in 0..2 {
        for seed in 0..1_500 {
            let shape = view.shape(well_known::DEFAULT, &Arc::new(random_pod(Dice(seed))), None);
            let pod = PendingPod { id: PodId(seed as u32 + round), shape, pinned_to: None };
            let expected = plainly(&SchedulerConfig::default(), &view, &pod, scheduler.next_start, TieBreak::Heap);
            assert_eq!(scheduler.schedule(&view, &pod, TieBreak::Heap), expected);
        }
    }
}

#[test]
fn a_cluster_without_nodes_says_so() {
    let mut view = ClusterView::default();
    let shape = view.shape(well_known::DEFAULT, &Arc::new(PodSpec::default()), None);
    let pod = PendingPod { id: PodId(0), shape, pinned_to: None };
    let Placement::Unschedulable(none) = Scheduler::default().schedule(&view, &pod, TieBreak::Heap) else {
        panic!("there is no node")
    };
    assert_eq!(none.message(KubernetesVersion::default()), "no nodes available to schedule pods");
    assert!(none.rejected_by.is_empty());
}

#[test]
fn a_pinned_pod_looks_at_its_node_only() {
    let mut view = ClusterView::default();
    let allocatable = Resources::cpu_memory(1_000, 1 << 30).with(ResourceName::PODS, 10);
    for index in 0..3 {
        view.add_node(NodeId(index), SchedulerNode { allocatable: allocatable.clone(), ..SchedulerNode::default() });
    }
    let requests = Resources::cpu_memory(2_000, 0);
    let container = Container { requests, ..Container::default() };
    let spec = PodSpec { containers: vec![container], ..PodSpec::default() };
    let shape = view.shape(well_known::DEFAULT, &Arc::new(spec), None);
    let pod = PendingPod { id: PodId(0), shape, pinned_to: Some(NodeId(1)) };
    let Placement::Unschedulable(why) = Scheduler::default().schedule(&view, &pod, TieBreak::Heap) else {
        panic!("the node is too small")
    };
    assert_eq!(
        why.message(KubernetesVersion::default()),
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    );
    assert!(why.rejected_by.contains(Plugin::NodeResourcesFit) && why.rejected_by.contains(Plugin::NodeAffinity));
    let small = view.shape(well_known::DEFAULT, &Arc::new(PodSpec::default()), None);
    let pod = PendingPod { id: PodId(1), shape: small, pinned_to: Some(NodeId(2)) };
    let placement = Scheduler::default().schedule(&view, &pod, TieBreak::Heap);
    assert!(matches!(placement, Placement::Node(chosen) if chosen.node == NodeId(2)));
}

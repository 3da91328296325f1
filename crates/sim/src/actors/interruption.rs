//! What EC2 does to instances that run: warnings, notices, reclaims; and injected faults.
//!
//! When a pool is struck is a matter of the market alone; which instances of ours it strikes is drawn by their numbers in
//! the pool. From the notice two minutes pass until EC2 takes the instance, unless we have ended it before.
//!
//! Source: AWS documentation of Spot interruption notices and rebalance recommendations; AWS FIS, action
//! `send-spot-instance-interruptions`.

use rustc_hash::FxHashMap;

use super::actor_events::ActorEvent;
use super::event::{CloudEvent, class};
use super::kubectl::nodes_called;
use super::node_groups::NodeGroups;
use super::sim::Sim;
use super::zone_outage::Darkness;
use super::{kubelet, node_groups, node_life, termination_handler, zone_outage};
use crate::cloud::Pool;
use crate::cloud::faults::{FailureMode, FaultKind, NOTICE, PoolSelector, Struck, Victims};
use crate::cluster::NodePhase;
use crate::domain::taints::TaintEffect;
use crate::domain::{NodeId, SimDuration, SimTime, Symbol, Taint, well_known};
use crate::world::record::{EventKind, NodeEnd};

/// Pools that have been launched from, so that their events are on the queue.
#[derive(Debug, Default)]
pub(super) struct Interruption {
    pools: Vec<Pool>,
    numbers: FxHashMap<Pool, u32>,
}

/// Puts the faults on the queue, and the ends of Capacity Blocks.
pub(super) fn begin(sim: &mut Sim<'_>) {
    await_blocks(sim);
    let setup = sim.setup;
    for (number, fault) in setup.scenario.ec2.cloud.faults.iter().enumerate() {
        sim.queue.schedule(fault.at, class::CLOUD, CloudEvent::FaultBegins(number as u32));
        if fault.until > fault.at {
            sim.queue.schedule(fault.until, class::CLOUD, CloudEvent::FaultEnds(number as u32));
        }
    }
}

/// Puts the ends of Capacity Blocks on the queue.
fn await_blocks(sim: &mut Sim<'_>) {
    let setup = sim.setup;
    for (number, block) in setup.scenario.ec2.cloud.reservations.iter().enumerate() {
        if let Some(at) = block.taken_back() {
            sim.queue.schedule(at.max(SimTime::ZERO), class::CLOUD, CloudEvent::BlockCloses(number as u32));
        }
    }
}

/// EC2 takes back what still runs in a Capacity Block.
pub(super) fn block_closes(sim: &mut Sim<'_>, now: SimTime, number: u32) {
    let in_block = |node: &NodeId| {
        sim.machine(*node).is_some_and(|machine| sim.ec2.instance(machine.instance).reservation == Some(number))
    };
    let nodes: Vec<NodeId> = sim.world.live_nodes().iter().copied().filter(in_block).collect();
    for node in nodes {
        let why = "EC2 took it back: its Capacity Block ends in 30 minutes";
        lose(sim, now, node, (EventKind::InstanceTerminating, NodeEnd::InstanceLost, why));
    }
}

impl Interruption {
    /// An instance has been launched: from the first launch from a Spot pool on, its events matter.
    pub(super) fn launched(&mut self, sim: &mut Sim<'_>, now: SimTime, pool: Pool) {
        if pool.capacity_type != well_known::SPOT || self.numbers.contains_key(&pool) {
            return;
        }
        let number = self.pools.len() as u32;
        self.pools.push(pool);
        self.numbers.insert(pool, number);
        debug_assert_eq!(self.pools.len(), self.numbers.len(), "each pool has one number");
        let first = sim.ec2.market().first_event_after(pool, now);
        self.plan(sim, number, first as u32);
        self.plan_warning(sim, now, number, None);
    }

    /// Puts an event of a pool on the queue.
    fn plan(&mut self, sim: &mut Sim<'_>, pool: u32, number: u32) {
        let Some(&name) = self.pools.get(pool as usize) else { return };
        let Some(event) = sim.ec2.market().event(name, number as usize) else { return };
        sim.queue.schedule(event.at, class::CLOUD, CloudEvent::PoolReclaims(pool, number));
    }

    /// Puts a pool's next warning on the queue: that after the warning of the event `last`. Warnings have a chain of their own, since
    /// events overlap.
    fn plan_warning(&mut self, sim: &mut Sim<'_>, now: SimTime, pool: u32, last: Option<u32>) {
        let Some(&name) = self.pools.get(pool as usize) else { return };
        let market = sim.ec2.market();
        let Some(number) = market.next_warned(name, last.map(|last| last as usize), now) else { return };
        let Some(event) = market.event(name, number) else { return };
        sim.queue.schedule(event.warning, class::CLOUD, CloudEvent::PoolWarned(pool, number as u32));
    }

    /// EC2 reclaims: each instance that is struck gets its notice within minutes.
    pub(super) fn pool_reclaims(&mut self, sim: &mut Sim<'_>, now: SimTime, pool: u32, number: u32) {
        for (node, after) in self.struck(sim, pool, number) {
            sim.queue.schedule(now + after, class::CLOUD, CloudEvent::InterruptionNotice(node));
        }
        self.plan(sim, pool, number + 1);
    }

    /// Our nodes that an event strikes, and when after its beginning they get their notice.
    fn struck(&mut self, sim: &mut Sim<'_>, pool: u32, number: u32) -> Vec<(NodeId, SimDuration)> {
        let Some(&name) = self.pools.get(pool as usize) else { return Vec::new() };
        let Some(event) = sim.ec2.market().event(name, number as usize) else { return Vec::new() };
        running_spot(sim)
            .into_iter()
            .filter_map(|(node, pool, ordinal)| {
                (pool == name).then(|| sim.ec2.market().hit(&event, pool, ordinal)).flatten().map(|after| (node, after))
            })
            .collect()
    }
}

/// Instances that the event will strike get a rebalance recommendation. Karpenter only logs it; a node group may replace
/// the instance, the termination handler drain its node.
pub(super) fn pool_warned(
    sim: &mut Sim<'_>,
    interruption: &mut Interruption,
    node_groups: &mut NodeGroups,
    now: SimTime,
    pool: u32,
    number: u32,
) {
    for (node, _) in interruption.struck(sim, pool, number) {
        recommend_rebalance(sim, node_groups, now, node, "");
    }
    interruption.plan_warning(sim, now, pool, Some(number));
}

/// EC2 recommends to replace the instance of a node.
fn recommend_rebalance(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, node: NodeId, note: &str) {
    sim.world.note_node(node, now, EventKind::RebalanceRecommended, note);
    node_groups.rebalance_recommended(sim, now, node);
    termination_handler::rebalance_recommended(sim, now, node);
}

/// Instances that run, with their pools and their numbers in them.
fn running(sim: &Sim<'_>) -> impl Iterator<Item = (NodeId, Pool, u64)> {
    sim.world.live_nodes().iter().filter_map(|&node| {
        let instance = sim.ec2.instance(sim.machine(node)?.instance);
        let runs = instance.running.is_some() && instance.terminating.is_none();
        runs.then_some((node, instance.pool, instance.ordinal))
    })
}

/// The Spot instances among them.
fn running_spot(sim: &Sim<'_>) -> Vec<(NodeId, Pool, u64)> {
    running(sim).filter(|(_, pool, _)| pool.capacity_type == well_known::SPOT).collect()
}

/// A node's instance gets its notice, unless it is on its way out.
pub(super) fn notice(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, node: NodeId) {
    if sim.world.node(node).phase >= NodePhase::Terminating {
        return;
    }
    sim.world.note_node(node, now, EventKind::InterruptionNotice, "EC2 takes the instance in 2 minutes");
    sim.queue.schedule_in(NOTICE, class::CLOUD, CloudEvent::InterruptionDue(node));
    sim.publish(ActorEvent::InterruptionNotice(node));
    node_groups::interruption_noticed(sim, node_groups, now, node);
    termination_handler::noticed(sim, now, node);
}

/// The two minutes are over: an instance that is still there is gone without further ado.
pub(super) fn due(sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
    lose(sim, now, node, (EventKind::InstanceReclaimed, NodeEnd::Interrupted, "EC2 reclaimed the Spot instance"));
}

/// EC2 ends an instance, whatever runs on it.
fn lose(sim: &mut Sim<'_>, now: SimTime, node: NodeId, (kind, end, why): (EventKind, NodeEnd, &str)) {
    let Some(machine) = sim.machine(node) else { return };
    if sim.world.node(node).phase >= NodePhase::Terminating {
        return;
    }
    sim.world.taint_node(node, Taint::new(well_known::TAINT_NOT_READY, TaintEffect::NoSchedule));
    sim.publish(ActorEvent::NodeTainted(node));
    // Only what EC2 takes back is free of charge in its first hour.
    let gone_in = match end {
        NodeEnd::Interrupted => sim.ec2.reclaim(machine.instance, now),
        _ => sim.ec2.terminate(machine.instance, now),
    };
    sim.world.reclaim_instance(node, now, kind, end, why);
    for pod in sim.world.node(node).pods.clone() {
        kubelet::cut_off(sim, now, pod);
    }
    node_life::goes(sim, now, node, gone_in);
}

/// A fault begins.
pub(super) fn fault_begins(
    sim: &mut Sim<'_>,
    darkness: &mut Darkness,
    node_groups: &mut NodeGroups,
    now: SimTime,
    number: u32,
) {
    let setup = sim.setup;
    let Some(fault) = setup.scenario.ec2.cloud.faults.get(number as usize) else { return };
    sim.world.note(now, EventKind::FaultBegan, None, fault.kind.describe());
    match fault.kind {
        FaultKind::SpotInterruption { pools, victims, before } => {
            let nodes = drawn(sim, number, &pools, victims);
            note_if_none(sim, now, (fault.kind, victims), &nodes);
            for node in nodes {
                recommend_rebalance(sim, node_groups, now, node, "injected");
                if before <= NOTICE {
                    notice(sim, node_groups, now, node);
                } else {
                    sim.queue.schedule_in(before - NOTICE, class::CLOUD, CloudEvent::InterruptionNotice(node));
                }
            }
        }
        FaultKind::NodeFailure { struck, mode } => {
            let nodes = struck_nodes(sim, number, &struck);
            note_if_none(sim, now, (fault.kind, struck.victims), &nodes);
            for node in nodes {
                match mode {
                    FailureMode::Terminated => {
                        let why = "its hardware failed, and EC2 ended it";
                        lose(sim, now, node, (EventKind::InstanceTerminating, NodeEnd::InstanceLost, why));
                    }
                    FailureMode::Impaired => zone_outage::hardware_fails(sim, darkness, now, node),
                    FailureMode::KubeletStops => zone_outage::kubelet_stops(sim, darkness, now, node),
                }
            }
        }
        FaultKind::ZoneOutage { zone, power: true } => zone_outage::begins(sim, darkness, now, zone),
        _ => {}
    }
}

/// A fault ends.
pub(super) fn fault_ends(sim: &mut Sim<'_>, darkness: &mut Darkness, now: SimTime, number: u32) {
    let setup = sim.setup;
    if let Some(fault) = setup.scenario.ec2.cloud.faults.get(number as usize) {
        sim.world.note(now, EventKind::FaultEnded, None, fault.kind.describe());
        if let FaultKind::ZoneOutage { zone, power: true } = fault.kind {
            zone_outage::ends(sim, darkness, now, zone);
        }
    }
}

/// Those of the running Spot instances of `pools` with the unluckiest draws.
fn drawn(sim: &Sim<'_>, fault: u32, pools: &PoolSelector, victims: Victims) -> Vec<NodeId> {
    let candidates = running_spot(sim).into_iter().filter(|(_, pool, _)| pools.matches(*pool));
    let candidates = candidates.filter(|(node, _, _)| is_meant(sim, *node, victims));
    let with_entity = |(node, pool, ordinal): (NodeId, Pool, u64)| {
        (node, format!("{fault}/{}/{}", pool.instance_type, pool.zone), ordinal)
    };
    unluckiest(sim, candidates.map(with_entity), victims)
}

/// Those of the running instances that a failure may strike with the unluckiest draws.
fn struck_nodes(sim: &Sim<'_>, fault: u32, struck: &Struck) -> Vec<NodeId> {
    let belongs = |node: NodeId, wanted: Symbol| sim.world.node(node).origin.name() == wanted;
    let candidates = running(sim)
        .filter(|(_, pool, _)| struck.pools.matches(*pool))
        .filter(|(node, _, _)| struck.node_pool.is_none_or(|wanted| belongs(*node, wanted)))
        .filter(|(node, _, _)| is_meant(sim, *node, struck.victims));
    let with_entity =
        |(node, pool, ordinal): (NodeId, Pool, u64)| (node, format!("{fault}/{}", pool.stream_name()), ordinal);
    unluckiest(sim, candidates.map(with_entity), struck.victims)
}

/// Whether the fault may strike the node, if it names one.
fn is_meant(sim: &Sim<'_>, node: NodeId, victims: Victims) -> bool {
    match victims {
        Victims::Named(name) => nodes_called(sim, name.as_str()).is_ok_and(|nodes| nodes.contains(&node)),
        Victims::Permille(_) | Victims::Count(_) => true,
    }
}

/// Says so if a fault finds nothing to strike: the node that it names is not there, or no instance of those that it may strike.
fn note_if_none(sim: &mut Sim<'_>, now: SimTime, (kind, victims): (FaultKind, Victims), nodes: &[NodeId]) {
    let text = match victims {
        Victims::Permille(0) | Victims::Count(0) => return,
        _ if !nodes.is_empty() => return,
        Victims::Named(name) => match nodes_called(sim, name.as_str()) {
            Ok(_) => format!("there is no running instance of the node {name} that the fault could strike"),
            Err(names) => format!("{name} is the host name of several nodes that the fault could strike: {names}"),
        },
        Victims::Permille(_) | Victims::Count(_) => format!(
            "the fault \"{}\" struck nothing, because no such instance was running. It changed nothing; set another time or \
             other instances",
            kind.describe()
        ),
    };
    sim.world.note_unmet(now, text);
}

/// As many of `candidates` as are to be struck, by a draw of each: its stream and its number in it. In order of id.
fn unluckiest(sim: &Sim<'_>, candidates: impl Iterator<Item = (NodeId, String, u64)>, victims: Victims) -> Vec<NodeId> {
    let draw = |(node, entity, ordinal): (NodeId, String, u64)| {
        (sim.streams.nth("fault-hit", &entity, ordinal).uniform().to_bits(), node)
    };
    let mut candidates: Vec<(u64, NodeId)> = candidates.map(draw).collect();
    // Draws are positive, and the bits of positive numbers are in their order.
    candidates.sort_unstable();
    let wanted = victims.count(candidates.len());
    let mut nodes: Vec<NodeId> = candidates.into_iter().take(wanted).map(|(_, node)| node).collect();
    nodes.sort_unstable();
    nodes
}

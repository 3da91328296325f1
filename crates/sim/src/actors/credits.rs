//! CPU credits of burstable nodes: what the pods under load on a node use is charged to its account; a node of standard mode whose credits
//! are spent has its baseline left.
//!
//! Deviation: CPU falls to the baseline at once when the credits are spent. EC2 lowers it over some minutes. As
//! everywhere, pods that serve no requests use no CPU, and neither do kubelet and system.

use super::class;
use super::cpu_shares;
use super::cpu_shares::CpuShares;
use super::event::NodeEvent;
use super::load_loop::Loads;
use super::sim::Sim;
use crate::cloud::credits::{CreditMode, Credits, earned_per_hour};
use crate::cluster::{NodeOrigin, NodePhase};
use crate::domain::{NodeId, SimTime, Symbol};
use crate::engine::TimerId;

/// The accounts of burstable nodes; empty as long as there are none.
#[derive(Debug, Default)]
pub(super) struct Accounts(Vec<Slot>);

#[derive(Debug, Default)]
enum Slot {
    /// The node's CPU does not work on credits.
    #[default]
    None,
    /// It does, and nothing has been used yet.
    Unopened,
    Open(Box<Account>),
}

#[derive(Debug)]
struct Account {
    credits: Credits,
    /// Whether its credits are spent: it has no more than its baseline.
    limited: bool,
    /// When they will be, if use stays as it is.
    timer: Option<TimerId>,
}

impl Accounts {
    /// A node has a machine of this type.
    pub(super) fn note(&mut self, node: NodeId, instance_type: Symbol) {
        if earned_per_hour(instance_type.as_str()).is_none() {
            return;
        }
        if self.0.len() <= node.index() {
            self.0.resize_with(node.index() + 1, Slot::default);
        }
        self.0[node.index()] = Slot::Unopened;
    }

    /// Whether no node's CPU works on credits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn account(&mut self, node: NodeId) -> Option<&mut Account> {
        match self.0.get_mut(node.index())? {
            Slot::Open(account) => Some(account),
            Slot::None | Slot::Unopened => None,
        }
    }

    /// CPU that the node has left, in thousandths; `None` for all of it.
    pub(super) fn limit(&self, node: NodeId) -> Option<i64> {
        match self.0.get(node.index())? {
            Slot::Open(account) => account.limited.then(|| account.credits.baseline()),
            Slot::None | Slot::Unopened => None,
        }
    }

    /// What each node has used beyond its credits up to its end, in millionths of a vCPU-hour, in order of node. `ends` says when an instance
    /// stopped running.
    pub(super) fn surplus(&mut self, ends: impl Fn(NodeId) -> SimTime) -> Vec<(NodeId, i64)> {
        let mut surplus = Vec::new();
        for (index, slot) in self.0.iter_mut().enumerate() {
            let Slot::Open(account) = slot else { continue };
            let node = NodeId(index as u32);
            account.credits.advance(ends(node));
            surplus.push((node, account.credits.surplus_micro_hours()));
        }
        surplus.retain(|(_, spent)| *spent > 0);
        surplus
    }
}

impl CpuShares {
    /// What pods on these nodes want has changed.
    pub(super) fn use_changed(&mut self, sim: &mut Sim<'_>, loads: &mut Loads, now: SimTime, nodes: &[NodeId]) {
        for &node in nodes {
            self.open(sim, node);
            let wanted = self.wanted_on(node);
            let Some(account) = self.credits.account(node) else { continue };
            if account.limited && wanted <= account.credits.baseline() {
                self.set_limited(sim, loads, now, node, false);
            }
            self.charge(sim, now, node, wanted);
        }
    }

    /// The credits of a node are spent.
    pub(super) fn spent(&mut self, sim: &mut Sim<'_>, loads: &mut Loads, now: SimTime, node: NodeId) {
        let Some(account) = self.credits.account(node) else { return };
        account.timer = None;
        if sim.world.node(node).phase >= NodePhase::Terminating {
            return;
        }
        sim.world.spend_credits(node, now);
        self.set_limited(sim, loads, now, node, true);
        let wanted = self.wanted_on(node);
        self.charge(sim, now, node, wanted);
    }

    /// Opens the account of a burstable node that has none yet.
    fn open(&mut self, sim: &Sim<'_>, node: NodeId) {
        if matches!(self.credits.0.get(node.index()), Some(Slot::Unopened))
            && let Some(account) = opened(sim, node)
        {
            self.credits.0[node.index()] = Slot::Open(Box::new(account));
        }
    }

    fn set_limited(&mut self, sim: &mut Sim<'_>, loads: &mut Loads, now: SimTime, node: NodeId, limited: bool) {
        if let Some(account) = self.credits.account(node) {
            account.limited = limited;
        }
        self.capacity_changed(sim, loads, now, node);
    }

    /// So much is wanted on the node from now on: what it gets of that is charged.
    fn charge(&mut self, sim: &mut Sim<'_>, now: SimTime, node: NodeId, wanted: i64) {
        let used = wanted.min(cpu_shares::capacity(&sim.world, &self.credits, node));
        let Some(account) = self.credits.account(node) else { return };
        debug_assert!(used >= 0, "pods on {node:?} use {used}");
        account.credits.set_used(used, now);
        let (at, before) = (account.credits.spent_at().filter(|_| !account.limited), account.timer.take());
        if let Some(timer) = before {
            sim.queue.cancel(timer);
        }
        let timer = at.map(|at| sim.queue.schedule(at, class::MACHINES, NodeEvent::CreditsSpent(node)));
        if let Some(account) = self.credits.account(node) {
            account.timer = timer;
        }
    }
}

fn opened(sim: &Sim<'_>, node: NodeId) -> Option<Account> {
    let instance = sim.ec2.instance(sim.machine(node)?.instance);
    let kind = sim.setup.region.instance_type(instance.pool.instance_type)?;
    let group = match sim.world.node(node).origin {
        NodeOrigin::NodeGroup(name) => sim.setup.policy.manifests.node_groups.iter().find(|group| group.name == name),
        NodeOrigin::NodePool(_) | NodeOrigin::Fargate(_) => None,
    };
    let mode = group
        .and_then(|group| group.cpu_credits)
        .or(sim.setup.scenario.ec2.cloud.cpu_credits)
        .unwrap_or_else(|| CreditMode::default_of(kind.facts.family.as_str()));
    let name = instance.pool.instance_type;
    let credits = Credits::new(name.as_str(), kind.facts.vcpus, mode, instance.running?)?;
    Some(Account { credits, limited: false, timer: None })
}

//! Commands of Karpenter's disruption: what was proposed, what became of it.

use super::World;
use super::record::{Event, EventKind};
use crate::domain::node_pool::DisruptionReason;
use crate::domain::words::counted;
use crate::domain::{CommandId, Currency, HourlyRate, NodeId, SimTime, Symbol};
use nodecast_karpenter::machine::ProposedCommand;

/// A command; an instant that never came is `None`.
#[derive(Clone, Debug)]
pub struct CommandFacts {
    /// Why.
    pub reason: DisruptionReason,
    /// Which search found it: `empty`, `multi`, `single`; `None` for drift.
    pub method: Option<&'static str>,
    /// The nodes proposed, in the order of the method.
    pub candidates: Vec<NodeId>,
    /// What is to take their place.
    pub replacements: Vec<ReplacementFacts>,
    /// When it was proposed; drift needs no proposal.
    pub proposed: Option<SimTime>,
    /// When and why the second look rejected it.
    pub rejected: Option<(SimTime, Box<str>)>,
    /// When it was started.
    pub started: Option<SimTime>,
    /// The nodes for which it was started.
    pub nodes: Vec<NodeId>,
    /// The claims that were made to take their place.
    pub made: Vec<NodeId>,
    /// When its nodes were deleted.
    pub succeeded: Option<SimTime>,
    /// When and why it was given up.
    pub failed: Option<(SimTime, Box<str>)>,
}

impl CommandFacts {
    /// A command that Karpenter proposes now.
    pub fn proposed(command: ProposedCommand, at: SimTime, currency: Currency) -> Self {
        let replacements = command.replacements.into_iter().map(|node| ReplacementFacts {
            node_pool: node.node_pool,
            types: node.types,
            capacity_types: node.capacity_types,
            cheapest: node.cheapest,
            currency,
        });
        Self {
            reason: command.reason,
            method: command.method,
            proposed: command.waits.then_some(at),
            candidates: command.nodes,
            replacements: replacements.collect(),
            started: None,
            nodes: Vec::new(),
            made: Vec::new(),
            rejected: None,
            succeeded: None,
            failed: None,
        }
    }

    /// The nodes for which it was started, or else those proposed.
    pub fn concerned(&self) -> &[NodeId] {
        if self.nodes.is_empty() { &self.candidates } else { &self.nodes }
    }
}

/// A node that is to take the place of others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplacementFacts {
    /// Its NodePool.
    pub node_pool: Symbol,
    /// How many instance types it may have.
    pub types: usize,
    /// The capacity types that it may have, in order of name.
    pub capacity_types: Vec<Symbol>,
    /// The cheapest of the types and its price.
    pub cheapest: Option<(Symbol, HourlyRate)>,
    /// What the price is in.
    pub currency: Currency,
}

impl World {
    /// A method has found something to do.
    pub fn propose_command(&mut self, facts: CommandFacts, at: SimTime) -> CommandId {
        let id = CommandId(u32::try_from(self.record.commands.len()).unwrap_or(u32::MAX));
        let waits = facts.proposed.is_some();
        self.record.commands.push(facts);
        if waits {
            self.command_event(at, EventKind::CommandProposed, id, "");
        }
        id
    }

    /// The second look has found that it no longer holds.
    pub fn reject_command(&mut self, id: CommandId, at: SimTime, reason: &str) {
        let facts = &mut self.record.commands[id.0 as usize];
        // Reports count commands by their end: each has one.
        debug_assert!(facts.started.is_none(), "a command that has started is rejected");
        facts.rejected = Some((at, reason.into()));
        self.command_event(at, EventKind::CommandRejected, id, reason);
    }

    /// Its nodes are tainted and its replacements are being made.
    pub fn start_command(&mut self, id: CommandId, nodes: &[NodeId], at: SimTime) {
        let facts = &mut self.record.commands[id.0 as usize];
        debug_assert!(facts.rejected.is_none() && facts.started.is_none(), "a command starts twice, or after its end");
        facts.started = Some(at);
        facts.nodes = nodes.to_vec();
        self.command_event(at, EventKind::CommandStarted, id, "");
    }

    /// Claims have been made to take the place of its nodes.
    pub fn note_replacements(&mut self, id: CommandId, made: &[NodeId]) {
        self.record.commands[id.0 as usize].made = made.to_vec();
    }

    /// Its nodes are being deleted.
    pub fn finish_command(&mut self, id: CommandId, at: SimTime) {
        let facts = &mut self.record.commands[id.0 as usize];
        debug_assert!(facts.failed.is_none() && facts.succeeded.is_none(), "a command ends twice");
        facts.succeeded = Some(at);
        self.command_event(at, EventKind::CommandSucceeded, id, "");
    }

    /// It was given up.
    pub fn fail_command(&mut self, id: CommandId, at: SimTime, reason: &str) {
        let facts = &mut self.record.commands[id.0 as usize];
        debug_assert!(facts.failed.is_none() && facts.succeeded.is_none(), "a command ends twice");
        facts.failed = Some((at, reason.into()));
        self.command_event(at, EventKind::CommandFailed, id, reason);
    }

    fn command_event(&mut self, at: SimTime, kind: EventKind, id: CommandId, why: &str) {
        let facts = &self.record.commands[id.0 as usize];
        let nodes = facts.concerned();
        let names: Vec<&str> = nodes.iter().map(|node| self.record.nodes[node.index()].name.as_str()).collect();
        let (reason, names) = (facts.reason.as_str(), names.join(", "));
        let instead: Vec<String> = facts.replacements.iter().map(ToString::to_string).collect();
        let instead =
            if instead.is_empty() { String::new() } else { format!(", replaced by {}", instead.join(" and ")) };
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        let message = format!("{reason}: {names}{instead}{why}");
        let node = nodes.first().copied();
        let (command, message) = (Some(id), message.as_str());
        self.record.events.push(Event { at, kind, pod: None, node, workload: None, command, message });
    }
}

impl std::fmt::Display for ReplacementFacts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let types = counted(self.types as u64, "type", "types");
        match self.cheapest {
            Some((name, price)) => {
                let sign = self.currency.sign();
                write!(f, "one of {types}, the cheapest {name} at {sign}{price:.4} per hour")
            }
            None => write!(f, "one of {types}"),
        }
    }
}

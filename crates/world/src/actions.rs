//! Actions of Karpenter that concern nothing but the cluster and its record: every driver carries them out alike.

use super::World;
use super::record::{CapacityLimit, CommandFacts, ControllerLoop};
use crate::domain::{Currency, SimTime};
use nodecast_karpenter::machine::{Action, Busy};

impl World {
    /// Carries out an action that concerns nothing but the cluster and its record; any other comes back.
    ///
    /// # Panics
    /// If a command is proposed out of turn.
    pub fn carry_out(&mut self, action: Action, at: SimTime, currency: Currency) -> Option<Action> {
        match action {
            Action::FailLaunch(node, reason) => self.fail_launch(node, at, &reason),
            Action::DropClaim(node) => self.drop_claim(node, at),
            Action::Delete(node, end, reason) => self.disrupt_node(node, end, at, &reason),
            Action::Drained(node) => self.drain_node(node, at),
            Action::Propose(id, command) => {
                let recorded = self.propose_command(CommandFacts::proposed(*command, at, currency), at);
                assert_eq!(recorded, id, "nobody else proposes commands");
            }
            Action::Start(id, nodes) => self.start_command(id, &nodes, at),
            Action::Replaced(id, claims) => self.note_replacements(id, &claims),
            Action::Reject(id, why) => self.reject_command(id, at, &why),
            Action::Fail(id, why) => self.fail_command(id, at, &why),
            Action::Finish(id) => self.finish_command(id, at),
            Action::Note(subject, fact, text) => self.note_of(subject, at, fact, &text),
            Action::LimitReached { node_pool, limits, pods } => {
                self.note_limit(CapacityLimit::NodePool(node_pool, limits), pods, at);
            }
            Action::Met(obstacles) => self.note_obstacles(obstacles),
            Action::Takes { what: Busy::Pass, took, cut } => self.note_loop(ControllerLoop::KarpenterPass, took, cut),
            Action::Takes { what: Busy::Look, took, cut } => self.note_loop(ControllerLoop::KarpenterLook, took, cut),
            other => return Some(other),
        }
        None
    }
}

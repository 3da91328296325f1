//! Updates and instance refreshes of node groups.
//!
//! Must not: decide how they proceed.

use super::World;
use super::record::EventKind;
use crate::domain::{SimTime, Symbol};

/// How the nodes of a group are replaced.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UpgradeWay {
    /// An update of a managed group with the strategy `DEFAULT`.
    Default,
    /// An update of a managed group with the strategy `MINIMAL`.
    Minimal,
    /// An instance refresh of an Auto Scaling group.
    Refresh,
}

impl UpgradeWay {
    /// The way as reports write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "DEFAULT",
            Self::Minimal => "MINIMAL",
            Self::Refresh => "instance refresh",
        }
    }
}

/// An update or an instance refresh of a node group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpgradeFacts {
    /// The group.
    pub group: Symbol,
    /// How its nodes are replaced.
    pub way: UpgradeWay,
    /// When it began.
    pub began: SimTime,
    /// When it ended; `None` if it goes on at the end of the run.
    pub ended: Option<SimTime>,
    /// Why it failed, by EKS's error code.
    pub failure: Option<&'static str>,
}

impl World {
    /// Records that an update or a refresh of a group begins; returns its position in the record.
    pub fn begin_upgrade(&mut self, group: Symbol, way: UpgradeWay, at: SimTime, to: &str) -> usize {
        let message = format!("{group}: {}{to}", way.as_str());
        self.note(at, EventKind::GroupUpdateStarted, None, message);
        self.record.upgrades.push(UpgradeFacts { group, way, began: at, ended: None, failure: None });
        self.record.upgrades.len() - 1
    }

    /// Records that it ends, for this reason if it fails.
    pub fn end_upgrade(&mut self, position: usize, at: SimTime, failure: Option<(&'static str, String)>) {
        let Some(facts) = self.record.upgrades.get_mut(position) else { return };
        facts.ended = Some(at);
        facts.failure = failure.as_ref().map(|(code, _)| *code);
        let group = facts.group;
        match failure {
            None => self.note(at, EventKind::GroupUpdateSucceeded, None, group.as_str()),
            Some((code, why)) => self.note(at, EventKind::GroupUpdateFailed, None, format!("{group}: {code}: {why}")),
        }
    }
}

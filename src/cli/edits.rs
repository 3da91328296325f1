//! `--set` and `--duration`: what a command line changes of a scenario before anything runs.

use crate::domain::SimDuration;
use crate::program::{Failure, edits};
use crate::scenario::Edit;

/// Options of commands that run a scenario with changes.
#[derive(clap::Args, Debug)]
pub(super) struct Edits {
    /// Override a value in the scenario or a manifest, for example `NodePool[default].spec.disruption.consolidateAfter=5m`. Repeatable
    #[arg(long = "set", value_name = "PATH=VALUE", global = true)]
    set: Vec<String>,
    #[command(flatten)]
    length: Length,
}

/// `--duration`, of every command that simulates.
#[derive(clap::Args, Debug)]
pub(super) struct Length {
    /// Simulated time, for example 2h [default: the scenario's `duration`]
    #[arg(long, value_name = "TIME", value_parser = edits::time, global = true)]
    pub duration: Option<SimDuration>,
}

impl Edits {
    /// Whether any value is overridden by `--set`.
    pub(super) fn has_set(&self) -> bool {
        !self.set.is_empty()
    }

    /// The simulated time, where the command line sets it.
    pub(super) fn duration(&self) -> Option<SimDuration> {
        self.length.duration
    }

    /// The changes in the order in which they are made.
    pub(super) fn parse(&self) -> Result<Vec<Edit>, Failure> {
        edits::parse(&self.set, self.length.duration)
    }
}

//! `--set` and `--duration`: what a command line changes of a scenario before anything runs.

use crate::domain::SimDuration;
use crate::program::{Failure, edits};
use crate::scenario::Edit;

/// Options of commands that run a scenario with changes.
#[derive(clap::Args, Debug)]
pub(super) struct Edits {
    /// A value of the scenario or a manifest to change first, for example
    /// `NodePool[default].spec.disruption.consolidateAfter=5m`; may be given several times
    #[arg(long = "set", value_name = "PATH=VALUE", global = true)]
    set: Vec<String>,
    #[command(flatten)]
    length: Length,
}

/// `--duration`, of every command that simulates.
#[derive(clap::Args, Debug)]
pub(super) struct Length {
    /// How long to simulate, for example 2h [default: the scenario's `duration`]
    #[arg(long, value_name = "TIME", value_parser = edits::time, global = true)]
    pub duration: Option<SimDuration>,
}

impl Edits {
    /// The changes in the order in which they are made.
    pub(super) fn parse(&self) -> Result<Vec<Edit>, Failure> {
        edits::parse(&self.set, self.length.duration)
    }
}

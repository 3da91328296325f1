//! `nodecast observe queries`: what would be asked, for whoever asks in another way.

use super::super::{Console, Format};
use super::{Question, now, second};
use crate::domain::SimDuration;
use crate::program::Failure;
use crate::program::observe::plan_of_window;

/// Print what a Prometheus would be asked, as a script of curl calls, or as JSON
///
/// The script makes a folder `answers` that `nodecast observe --answers answers --out DIR` reads. Run again, it asks what is missing.
#[derive(clap::Args, Debug)]
pub(super) struct QueriesArguments {
    /// The begin of the window
    #[arg(long, value_name = "TIME", value_parser = second, requires = "to")]
    from: Option<i64>,
    /// The end of the window [default: the last whole hour]
    #[arg(long, value_name = "TIME", value_parser = second)]
    to: Option<i64>,
    /// How long the window is, in place of its begin
    #[arg(long, value_name = "DURATION", default_value = "7d", conflicts_with = "from")]
    window: SimDuration,
    #[command(flatten)]
    question: Question,
    /// What to print: a script for a POSIX shell, or the list as JSON
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(super) fn execute(arguments: &QueriesArguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let window = match (arguments.from, arguments.to) {
        (Some(from), Some(to)) => SimDuration::from_secs(to - from),
        _ => arguments.window,
    };
    let plan = arguments.question.lay_over(plan_of_window(window, arguments.to, now())?)?;
    let list = plan.queries();
    match arguments.format {
        Format::Table => console.data(&list.shell_script()),
        Format::Json => console.document(&list.to_json()),
    }
}

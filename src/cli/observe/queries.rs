//! `nodecast observe queries`: what would be asked, for whoever asks in another way.

use super::super::{Console, Format};
use super::{Question, now, second};
use crate::domain::SimDuration;
use crate::program::Failure;
use crate::program::observe::plan_of_window;

/// Print the Prometheus queries as a curl script or as JSON
///
/// The script saves responses in `answers/` for `nodecast observe --answers answers --out DIR`. Run it again to fetch what is missing.
#[derive(clap::Args, Debug)]
pub(super) struct QueriesArguments {
    /// Start of the window
    #[arg(long, value_name = "TIME", value_parser = second, requires = "to")]
    from: Option<i64>,
    /// End of the window [default: the last full hour]
    #[arg(long, value_name = "TIME", value_parser = second)]
    to: Option<i64>,
    /// Length of the window, instead of its start
    #[arg(long, value_name = "DURATION", default_value = "7d", conflicts_with = "from")]
    window: SimDuration,
    #[command(flatten)]
    question: Question,
    /// Output format: a POSIX shell script, or the query list as JSON
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

//! The command line: one file for each subcommand. Data goes to stdout, talk to stderr.
//!
//! What must not live here: any figure. A subcommand reads its arguments, calls the rooms above and hands what they
//! answer to `report`.
//!
//! Exit codes: 0 the answer was given; 1 a guard found something worse, or a checked run something wrong; 2 the input cannot be used (arguments, scenario,
//! prices, a directory that is not a report); 3 the system refused (a full disk, missing permission); 130 Ctrl-C. With
//! `--format json` an error is also the answer on stdout.

mod backtest;
mod calibrate;
mod candidates;
mod check;
mod cluster;
mod compare;
mod completions;
mod console;
mod diff;
mod drain;
mod edits;
mod experiment;
mod explain;
mod fleet;
mod help;
mod init;
mod man;
mod merge;
mod observe;
mod outputs;
mod pack;
mod pricing;
mod recommend;
mod rightsize;
mod run;
mod schema;
#[cfg(feature = "studio")]
mod studio;
mod sweep;
mod validate;
mod watch;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand, ValueEnum};

pub use console::Console;

/// Forecast the cost of an EKS cluster, and how long its pods and requests wait, under an autoscaling policy.
#[derive(Parser, Debug)]
#[command(name = "nodecast", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Init(init::Arguments),
    Run(run::Arguments),
    Compare(compare::Arguments),
    Sweep(sweep::Arguments),
    Merge(merge::Arguments),
    Diff(diff::Arguments),
    Check(check::Arguments),
    Recommend(recommend::Arguments),
    Rightsize(rightsize::Arguments),
    #[cfg(feature = "studio")]
    Studio(studio::Arguments),
    Backtest(backtest::Arguments),
    Calibrate(calibrate::Arguments),
    Explain(explain::Arguments),
    Observe(observe::Arguments),
    Pack(pack::Arguments),
    Drain(drain::Arguments),
    Pricing(pricing::Arguments),
    Validate(validate::Arguments),
    Schema(schema::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// How an answer is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// A table for people.
    Table,
    /// JSON with stable keys.
    Json,
}

/// Runs the program on the process's arguments and streams.
pub fn main() -> ExitCode {
    // Without a handler the signal of a file size limit ends the process; with one, writing returns an error, as on a full disk.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
    ExitCode::from(run_on(std::env::args_os()))
}

/// Runs the program on `words`, the first of which is its own name, and the process's streams. Returns the exit code.
pub fn run_on(words: impl IntoIterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = words.into_iter().collect();
    let (mut out, mut err) = console::streams();
    let mut console = Console::of_process(&mut out, &mut err);
    if asks_for_json(&words) {
        console.tell_errors_as_json();
    }
    if let Some(code) = candidates::answer(&words, &mut console) {
        return code;
    }
    let cli = match parse(&words) {
        Ok(cli) => cli,
        Err(mistake) => {
            return console.misused((&words, mistake), |words| parse(&words).err());
        }
    };
    let result = match cli.command {
        Command::Init(arguments) => init::execute(&arguments, &mut console),
        Command::Run(arguments) => run::execute(&arguments, &mut console),
        Command::Compare(arguments) => compare::execute(&arguments, &mut console),
        Command::Sweep(arguments) => sweep::execute(&arguments, &mut console),
        Command::Merge(arguments) => merge::execute(&arguments, &mut console),
        Command::Diff(arguments) => diff::execute(&arguments, &mut console),
        Command::Check(arguments) => check::execute(&arguments, &mut console),
        Command::Recommend(arguments) => recommend::execute(&arguments, &mut console),
        Command::Rightsize(arguments) => rightsize::execute(&arguments, &mut console),
        #[cfg(feature = "studio")]
        Command::Studio(arguments) => studio::execute(&arguments, &mut console),
        Command::Backtest(arguments) => backtest::execute(&arguments, &mut console),
        Command::Calibrate(arguments) => calibrate::execute(&arguments, &mut console),
        Command::Explain(arguments) => explain::execute(&arguments, &mut console),
        Command::Observe(arguments) => observe::execute(&arguments, &mut console),
        Command::Pack(arguments) => pack::execute(&arguments, &mut console),
        Command::Drain(arguments) => drain::execute(&arguments, &mut console),
        Command::Pricing(arguments) => pricing::execute(&arguments, &mut console),
        Command::Validate(arguments) => validate::execute(&arguments, &mut console),
        Command::Schema(arguments) => schema::execute(&arguments, &mut console),
        Command::Completions(arguments) => completions::execute(&arguments, help::command(), &mut console),
        Command::Man(arguments) => man::execute(&arguments, help::command(), &mut console),
    };
    console.conclude(result)
}

/// Reads a command line.
fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let matches = help::command().try_get_matches_from(words)?;
    Cli::from_arg_matches(&matches).map_err(|mistake| mistake.format(&mut help::command()))
}

/// Whether the words of a command line ask for JSON.
fn asks_for_json(words: &[OsString]) -> bool {
    let mut before = OsStr::new("");
    for word in words {
        if word == "--format=json" || (before == "--format" && word == "json") {
            return true;
        }
        before = word;
    }
    false
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{asks_for_json, help};

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        help::command().debug_assert();
    }

    #[test]
    fn json_format_option_has_two_spellings() {
        let asks = |line: &str| asks_for_json(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(asks("run s.yaml --format json --quiet") && asks("run --format=json s.yaml"));
        assert!(!asks("run json --format table") && !asks("run s.yaml"));
    }
}

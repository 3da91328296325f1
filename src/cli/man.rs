//! `nodecast man`: manual pages, from the definition of the command line itself.

use super::Console;
use crate::program::Failure;

/// Where manual pages go.
const WHERE: &str = "\
Where the output goes:
  nodecast man | man -l -                 to read it at once
  nodecast man > ~/.local/share/man/man1/nodecast.1
  nodecast man run > ~/.local/share/man/man1/nodecast-run.1
Make the folder first if it is not there; then `man nodecast` and `man nodecast-run` show them.";

/// Print the man page for nodecast or one of its commands
#[derive(clap::Args, Debug)]
#[command(after_help = WHERE)]
pub(super) struct Arguments {
    /// The command, for example `run` or `pricing show` [default: the program]
    command: Vec<String>,
}

/// A command that there is none of.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("there is no command `{given}`")]
#[diagnostic(help("{way_out}"))]
struct UnknownCommand {
    given: String,
    way_out: String,
}

pub(super) fn execute(
    arguments: &Arguments,
    mut program: clap::Command,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    // Building fills in the full names of subcommands (`nodecast run`).
    program.build();
    let mut command = &program;
    for given in &arguments.command {
        let Some(inner) = command.find_subcommand(given) else {
            let known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            let way_out = match known.as_slice() {
                [] => format!("`{}` has no commands of its own", command.get_name()),
                known => format!("the commands are {}", known.join(", ")),
            };
            return Err(Failure::bad_input(UnknownCommand { given: given.clone(), way_out }));
        };
        command = inner;
    }
    let page = clap_mangen::Man::new(command.clone());
    let page = page.source(concat!("nodecast ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    page.render(&mut text).map_err(|error| Failure::of_stdout(&error))?;
    console.data(&String::from_utf8_lossy(&text))
}

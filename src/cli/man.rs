//! `nodecast man`: manual pages, from the definition of the command line itself.

use super::{Console, Failure};

/// Print the manual page of the program or of one of its commands
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The command [default: the program]
    command: Option<String>,
}

/// A command that there is none of.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("there is no command `{given}`")]
#[diagnostic(help("the commands are {known}"))]
struct UnknownCommand {
    given: String,
    known: String,
}

pub(super) fn execute(
    arguments: &Arguments,
    mut program: clap::Command,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    // Building fills in the full names of subcommands (`nodecast run`).
    program.build();
    let page = match &arguments.command {
        None => clap_mangen::Man::new(program),
        Some(given) => {
            let Some(command) = program.find_subcommand(given).cloned() else {
                let known: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
                return Err(Failure::bad_input(UnknownCommand { given: given.clone(), known: known.join(", ") }));
            };
            clap_mangen::Man::new(command)
        }
    };
    let page = page.source(concat!("nodecast ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    page.render(&mut text).map_err(|error| Failure::of_stdout(&error))?;
    console.data(&String::from_utf8_lossy(&text))
}

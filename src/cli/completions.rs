//! `nodecast completions`: completions for a shell, from the definition of the command line itself.

use clap_complete::Shell;

use super::{Console, Failure};

/// Print completions for a shell
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The shell
    shell: Shell,
}

pub(super) fn execute(
    arguments: &Arguments,
    mut command: clap::Command,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut text);
    console.data(&String::from_utf8_lossy(&text))
}

//! `nodecast completions`: completions for a shell, from the definition of the command line itself.

use clap_complete::Shell;

use super::Console;
use crate::program::Failure;

/// Where each shell looks for completions.
const WHERE: &str = "\
Where the output goes:
  bash        nodecast completions bash > ~/.local/share/bash-completion/completions/nodecast
  zsh         nodecast completions zsh > ~/.zfunc/_nodecast
              with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc
  fish        nodecast completions fish > ~/.config/fish/completions/nodecast.fish
  powershell  nodecast completions powershell >> $PROFILE
  elvish      nodecast completions elvish >> ~/.config/elvish/rc.elv
Create the directory first if needed. Completions work in new shells.";

/// Print shell completions
#[derive(clap::Args, Debug)]
#[command(after_help = WHERE)]
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

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
    console.data(&with_candidates(arguments.shell, &String::from_utf8_lossy(&text)))
}

/// Options whose values depend on the scenario, and the kind of candidates that `nodecast __complete` has for them.
const OPTIONS: [(&str, &str); 3] = [("policy", "policy"), ("policies", "policy"), ("set", "path")];

/// Functions that ask the program for candidates. Descriptions of options contain code: nothing here may evaluate a candidate.
const BASH: &str = r#"_nodecast_values() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("${line}")
    done < <(nodecast __complete "$1" "${cur}" "${COMP_WORDS[@]}" 2>/dev/null)
    compopt -o nospace 2>/dev/null
}

"#;
const ZSH: &str = r#"_nodecast_values() {
    local -a found
    found=("${(@f)$(nodecast __complete $1 "${PREFIX}" "${(@)words}" 2>/dev/null)}")
    compadd -S '' -- "${(@)found:#}"
}

_nodecast_policy() {
    _nodecast_values policy
}

_nodecast_path() {
    _nodecast_values path
}

"#;
const FISH: &str = r#"function __nodecast_values
    nodecast __complete $argv[1] (commandline -ct) (commandline -opc) 2>/dev/null
end

"#;

/// The script of a shell, in which options whose values depend on the scenario ask the program. Other shells complete files there.
fn with_candidates(shell: Shell, script: &str) -> String {
    let mut kind = None;
    let mut line = |line: &str| {
        let words = line.trim_start();
        match shell {
            // The line after the option's pattern has its files.
            Shell::Bash => {
                let files = kind.take().filter(|_| words.starts_with("COMPREPLY="));
                let option = |(option, _): &&(&str, &str)| words.strip_prefix("--") == Some(&format!("{option})"));
                kind = OPTIONS.iter().find(option).map(|(_, kind)| *kind);
                files.map(|kind| format!("{}_nodecast_values {kind}", &line[..line.len() - words.len()]))
            }
            Shell::Zsh => {
                let option = words.trim_start_matches(['\'', '*']).strip_prefix("--").unwrap_or_default();
                let known = OPTIONS
                    .iter()
                    .find(|(name, _)| option.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')));
                known
                    .and_then(|(_, kind)| Some(format!("{}:_nodecast_{kind}' \\", line.strip_suffix(":_default' \\")?)))
            }
            Shell::Fish => {
                let known = OPTIONS.iter().find(|(name, _)| line.contains(&format!(" -l {name} ")));
                known
                    .filter(|_| line.ends_with(" -r"))
                    .map(|(_, kind)| format!("{line} -f -a '(__nodecast_values {kind})'"))
            }
            _ => None,
        }
        .unwrap_or_else(|| line.to_owned())
            + "\n"
    };
    let script: String = script.lines().map(&mut line).collect();
    match shell {
        Shell::Bash => BASH.to_owned() + &script,
        // The first line of a script for zsh names the command.
        Shell::Zsh => script.replacen("\n\n", &format!("\n\n{ZSH}"), 1),
        Shell::Fish => FISH.to_owned() + &script,
        _ => script,
    }
}

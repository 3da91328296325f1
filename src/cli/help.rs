//! The help of the program: groups of commands, examples, and exit codes.
//!
//! Must not: define an option.

use std::fmt::Write as _;

use clap::{Command, CommandFactory};

use super::Cli;

/// Groups of commands, in the order in which a user needs them.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["init", "validate"]),
    ("Simulate", &["run", "compare", "sweep", "merge", "diff", "studio"]),
    ("Decide", &["recommend", "rightsize"]),
    ("Prove", &["check", "backtest", "calibrate"]),
    ("Live cluster", &["pack", "drain", "explain", "observe"]),
    ("Tools", &["pricing", "schema", "completions", "man", "help"]),
];

/// Examples of each command.
const EXAMPLES: [(&str, &[&str]); 21] = [
    ("init", &["nodecast init shop", "nodecast init my-cluster --from cluster.yaml"]),
    ("validate", &["nodecast validate shop/scenario.yaml", "nodecast validate shop/scenario.yaml --strict"]),
    ("run", &["nodecast run shop/scenario.yaml", "nodecast run shop/scenario.yaml --seed 7 --out reports/seven"]),
    ("compare", &["nodecast compare shop/scenario.yaml", "nodecast compare shop/scenario.yaml --until-sure=2%"]),
    (
        "sweep",
        &["nodecast sweep shop/scenario.yaml --set 'NodePool[default].spec.disruption.consolidateAfter=30s,1m,5m'"],
    ),
    ("merge", &["nodecast merge reports/shop-parts/part-1.json reports/shop-parts/part-2.json"]),
    (
        "diff",
        &[
            "nodecast diff shop/scenario.yaml --set 'NodePool[default].spec.limits.cpu=64'",
            "nodecast diff before/scenario.yaml after/scenario.yaml",
        ],
    ),
    ("studio", &["nodecast studio shop/scenario.yaml"]),
    ("recommend", &["nodecast recommend shop/scenario.yaml"]),
    ("rightsize", &["nodecast rightsize shop/scenario.yaml"]),
    (
        "check",
        &[
            "nodecast check --baseline baseline.json --update shop/scenario.yaml",
            "nodecast check --baseline baseline.json",
        ],
    ),
    ("backtest", &["nodecast backtest replayed/scenario.yaml --from observed"]),
    ("calibrate", &["nodecast calibrate replayed/scenario.yaml --from observed"]),
    ("pack", &["nodecast pack cluster.yaml", "nodecast pack cluster.yaml --repack"]),
    ("drain", &["nodecast drain cluster.yaml ip-10-0-1-7.ec2.internal"]),
    (
        "explain",
        &[
            "nodecast explain cluster.yaml node ip-10-0-1-7.ec2.internal",
            "nodecast explain shop/scenario.yaml decision d1",
        ],
    ),
    (
        "observe",
        &["nodecast observe --from cluster.yaml --prometheus http://localhost:9090 --window 7d --out observed"],
    ),
    ("pricing", &["nodecast pricing show m7g.xlarge --region us-east-1", "nodecast pricing list --region eu-west-1"]),
    ("schema", &["nodecast schema", "nodecast schema --outputs summary", "nodecast schema --format markdown"]),
    ("completions", &["nodecast completions zsh"]),
    ("man", &["nodecast man run"]),
];

/// The exit codes of every command.
const EXIT_CODES: &str = "\
Exit codes:
  0    The command succeeded
  1    check: a metric got worse; validate --strict: there are warnings
  2    Invalid input: arguments, scenario, prices, or output directory
  3    The system refused: full disk, missing permission
  4    check: the baseline comes from another model version
  130  Ctrl-C";

/// The command line with its help.
pub(super) fn command() -> Command {
    let mut program = Cli::command();
    for (name, examples) in EXAMPLES {
        if program.find_subcommand(name).is_none() {
            continue;
        }
        program = program.mut_subcommand(name, |command| {
            let mut text = format!("Examples:\n  {}", examples.join("\n  "));
            if let Some(further) = command.get_after_help() {
                let _ = write!(text, "\n\n{further}");
            }
            command.after_help(text)
        });
    }
    let list = grouped(&program);
    program.help_template(format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\nCommands:\n{list}\nOptions:\n{{options}}{{after-help}}")).after_help(EXIT_CODES)
}

/// The commands in their groups, each with its task.
fn grouped(program: &Command) -> String {
    let mut text = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(text, " {group}");
        for name in names {
            let task = match program.find_subcommand(name) {
                Some(command) => command.get_about().map(ToString::to_string).unwrap_or_default(),
                None if *name == "help" => "Print this help, or the help of a command".to_owned(),
                None => continue,
            };
            let _ = writeln!(text, "  {name:<12} {task}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{EXAMPLES, GROUPS, command};

    #[test]
    fn every_command_has_group_and_examples() {
        let program = command();
        for subcommand in program.get_subcommands() {
            let name = subcommand.get_name();
            assert_eq!(GROUPS.iter().filter(|(_, names)| names.contains(&name)).count(), 1, "{name}");
            assert!(
                subcommand.get_after_help().is_some_and(|text| text.to_string().starts_with("Examples:\n")),
                "{name}"
            );
        }
    }

    #[test]
    fn examples_are_valid_command_lines() {
        for (name, examples) in EXAMPLES {
            for example in examples {
                let words = example.split(' ').map(|word| word.trim_matches('\''));
                let parsed = command().try_get_matches_from(words);
                assert!(parsed.is_ok_and(|found| found.subcommand_name() == Some(name)), "{example}");
            }
        }
    }
}

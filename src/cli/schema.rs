//! `nodecast schema`: the form of a scenario file, for editors and for people, and of the program's JSON, for other programs.

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;

use super::{Console, outputs};
use crate::program::Failure;
use crate::scenario::lints;
use crate::scenario::schema::{json_schema, reference};

/// Print the format of scenario files or of outputs: a JSON Schema, or the Markdown reference
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// What to print
    #[arg(long, value_enum, default_value = "json-schema")]
    format: Form,
    /// Print the JSON Schema of an output instead, for example `summary`; without NAME, the names of all outputs
    #[arg(long, value_name = "NAME", num_args = 0..=1, conflicts_with = "format")]
    #[arg(value_parser = PossibleValuesParser::new(outputs::names()))]
    outputs: Option<Option<String>>,
}

/// A form of the description.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Form {
    /// A JSON Schema (draft 7), as yaml-language-server reads it.
    JsonSchema,
    /// The reference in Markdown, which is docs/scenario.md.
    Markdown,
    /// Every kind of warning with its id, in Markdown: docs/warnings.md.
    Warnings,
}

pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    if let Some(name) = &arguments.outputs {
        let list = || outputs::names().map(|name| format!("{name}\n")).collect();
        return console.data(&name.as_deref().and_then(outputs::text).unwrap_or_else(list));
    }
    console.data(&match arguments.format {
        Form::JsonSchema => json_schema::text(),
        Form::Markdown => reference::text(),
        Form::Warnings => lints::reference(),
    })
}

//! `nodecast schema`: the form of a scenario file, for editors and for people.

use clap::ValueEnum;

use super::Console;
use crate::program::Failure;
use crate::scenario::lints;
use crate::scenario::schema::{json_schema, reference};

/// Print the scenario file format: a JSON Schema for editors, or the Markdown reference
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// What to print
    #[arg(long, value_enum, default_value = "json-schema")]
    format: Form,
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
    console.data(&match arguments.format {
        Form::JsonSchema => json_schema::text(),
        Form::Markdown => reference::text(),
        Form::Warnings => lints::reference(),
    })
}

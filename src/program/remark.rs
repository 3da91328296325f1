//! Errors and warnings for programs: what `--format json` says of them.

use miette::{Diagnostic, SourceSpan};
use serde::Serialize;

use crate::scenario::error::Shown;
use crate::scenario::{Caveat, Warning};

/// An error or a warning.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
pub struct Remark {
    /// What is wrong, in one sentence.
    pub message: String,
    /// The file, as it was named; `null` where no file is at fault.
    pub file: Option<String>,
    /// Line, counted from 1.
    pub line: Option<usize>,
    /// Column in characters, counted from 1.
    pub column: Option<usize>,
    /// A way out.
    pub help: Option<String>,
    /// Of a warning: the id of its lint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// The error of a command, as it stands on stdout.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Failed {
    error: Remark,
}

impl Remark {
    /// What a diagnostic says, with the place that it marks.
    pub fn from_diagnostic(diagnostic: &dyn Diagnostic) -> Self {
        let mut remark = Self::plain(diagnostic.to_string());
        remark.help = diagnostic.help().map(|help| help.to_string());
        let span = diagnostic.labels().and_then(|mut labels| labels.next());
        let span: Option<SourceSpan> = span.map(|label| *label.inner());
        // Asked for no lines around it, a source gives the position of the span itself.
        let place = diagnostic.source_code().zip(span).and_then(|(source, span)| source.read_span(&span, 0, 0).ok());
        if let Some(place) = place {
            remark.file = place.name().map(str::to_owned);
            (remark.line, remark.column) = (Some(place.line() + 1), Some(place.column() + 1));
        }
        remark
    }

    /// A message alone.
    pub fn plain(message: String) -> Self {
        Self { message, file: None, line: None, column: None, help: None, id: None }
    }

    /// A warning about a scenario.
    pub fn warning(warning: &Warning) -> Self {
        Self { id: warning.lint().map(|lint| lint.id().to_string()), ..Self::from_diagnostic(&Shown::from(warning)) }
    }

    /// A warning of a run.
    pub fn caveat(caveat: &Caveat) -> Self {
        Self { id: caveat.id().map(|id| id.to_string()), ..Self::plain((**caveat).to_owned()) }
    }

    /// `file:line:column: `, or nothing.
    pub fn place(&self) -> String {
        match (&self.file, self.line, self.column) {
            (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
            _ => String::new(),
        }
    }

    /// The answer of a command that has none but this error.
    pub fn into_json(self) -> Option<String> {
        serde_json::to_string_pretty(&Failed { error: self }).ok().map(|json| json + "\n")
    }
}

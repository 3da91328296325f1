//! Why there is no answer, or none that one wants.

use std::io;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};

use super::Remark;
use crate::domain::words::refusal;
use crate::report::{OutputError, ReportError};
use crate::scenario::ScenarioError;
use crate::scenario::error::Shown;

/// Width of an error's text.
const WIDTH: usize = 100;
/// Characters that a line of an error has at least, whatever the terminal: fewer hold no sentence beside the frame.
const WIDTH_MIN: usize = 40;

/// Why something gave no answer, with the exit code of a program that ends with it.
#[derive(Debug)]
pub struct Failure {
    exit_code: u8,
    diagnostic: Option<Box<dyn Diagnostic + Send + Sync>>,
}

impl Failure {
    /// The exit code for input that cannot be used.
    pub const BAD_INPUT: u8 = 2;
    /// The exit code for a system that refused.
    const SYSTEM: u8 = 3;
    /// The exit code for an answer that is "worse": a guard that was broken.
    pub const WORSE: u8 = 1;
    /// The exit code for a baseline that another model wrote: there is nothing to hold figures against.
    const OTHER_MODEL: u8 = 4;
    /// The exit code after Ctrl-C, as shells have it.
    pub const INTERRUPTED: u8 = 130;

    /// An end without a word: what there was to say has been said.
    pub fn silent(exit_code: u8) -> Self {
        Self { exit_code, diagnostic: None }
    }

    /// An answer that is worse than a baseline allows.
    pub fn worse(diagnostic: impl Diagnostic + Send + Sync + 'static) -> Self {
        Self { exit_code: Self::WORSE, diagnostic: Some(Box::new(diagnostic)) }
    }

    /// Input that cannot be used.
    pub fn bad_input(diagnostic: impl Diagnostic + Send + Sync + 'static) -> Self {
        Self { exit_code: Self::BAD_INPUT, diagnostic: Some(Box::new(diagnostic)) }
    }

    /// A baseline that another model wrote.
    pub fn other_model(diagnostic: impl Diagnostic + Send + Sync + 'static) -> Self {
        Self { exit_code: Self::OTHER_MODEL, diagnostic: Some(Box::new(diagnostic)) }
    }

    /// A system that refused.
    pub fn system(diagnostic: impl Diagnostic + Send + Sync + 'static) -> Self {
        Self { exit_code: Self::SYSTEM, diagnostic: Some(Box::new(diagnostic)) }
    }

    /// A report that could not be made or written.
    pub fn of_report(error: impl Into<ReportError>) -> Self {
        match error.into() {
            ReportError::Output(refused @ (OutputError::NotOurs { .. } | OutputError::Unusable { .. })) => {
                Self::bad_input(refused)
            }
            other => Self::system(other),
        }
    }

    /// Data that could not be written to stdout. A reader that closed its end has read what it wanted: no failure.
    pub fn of_stdout(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::silent(0);
        }
        Self::system(Refused(format!("cannot write to the standard output: {}", refusal(error))))
    }

    /// The exit code of a program that ends with it.
    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// What is wrong, where and the way out; `None` where all has been said.
    pub fn remark(&self) -> Option<Remark> {
        self.diagnostic.as_ref().map(|diagnostic| Remark::of(diagnostic.as_ref()))
    }

    /// The same for people: the message, the line that it is about and the way out, without a line feed at the end.
    pub fn text(&self, theme: GraphicalTheme) -> Option<String> {
        self.text_within(theme, None)
    }

    /// The same, with sentences in lines of no more than `width` characters, if that is known; the line that it is about stays
    /// whole.
    pub fn text_within(&self, mut theme: GraphicalTheme, width: Option<usize>) -> Option<String> {
        let diagnostic = self.diagnostic.as_ref()?;
        theme.characters.error = "error:".to_owned();
        // A name, a date or a command that is broken at a hyphen cannot be copied.
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(width.map_or(WIDTH, |width| width.clamp(WIDTH_MIN, WIDTH)))
            .with_word_splitter(textwrap::WordSplitter::NoHyphenation)
            .with_links(false)
            .with_cause_chain();
        let mut text = String::new();
        Some(match handler.render_report(&mut text, diagnostic.as_ref()) {
            Ok(()) => text.trim_end().to_owned(),
            Err(_) => format!("error: {diagnostic}"),
        })
    }
}

/// Input that cannot be used.
impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Self::bad_input(Shown::from(&error))
    }
}

/// What the system refused.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{0}")]
struct Refused(String);

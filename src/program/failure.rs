//! Why there is no answer, or none that one wants.

use std::path::Path;
use std::{fmt, io};

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, Severity, SourceCode};

use super::Remark;
use crate::domain::words::{printable, refusal};
use crate::report::{OutputError, ReportError};
use crate::scenario::ScenarioError;
use crate::scenario::error::Shown;

/// Width of an error's text.
const WIDTH: usize = 100;
/// Characters that a line of an error has at least, whatever the terminal: fewer hold no sentence beside the frame.
const WIDTH_MIN: usize = 40;

/// A path that nodecast would record in a text and read back, and that is no text.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("the path `{0}` is not UTF-8 text, so no file can record it")]
#[diagnostic(help("rename it, or use a symbolic link to it with another name"))]
struct NotText(String);

/// A path as the text that baselines, parts of experiments, and comparisons record.
///
/// # Errors
/// If it is not UTF-8.
pub fn recorded_path(path: &Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| Failure::bad_input(NotText(path.display().to_string())))
}

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
        Self::system(Refused(format!("cannot write to stdout: {}", refusal(error))))
    }

    /// The exit code of a program that ends with it.
    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// What is wrong, where and the way out; `None` where all has been said.
    pub fn remark(&self) -> Option<Remark> {
        self.diagnostic.as_ref().map(|diagnostic| Remark::from_diagnostic(diagnostic.as_ref()))
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
        let printable = Printable::new(diagnostic.as_ref());
        Some(match handler.render_report(&mut text, &printable) {
            Ok(()) => text.trim_end().to_owned(),
            Err(_) => format!("error: {printable}"),
        })
    }
}

/// A diagnostic without characters that a terminal obeys: its words are cleaned before they are coloured.
#[derive(Debug)]
struct Printable<'d> {
    inner: &'d (dyn Diagnostic + Send + Sync),
    text: Cause,
}

/// The words of an error and of its cause.
#[derive(Debug)]
struct Cause {
    message: String,
    cause: Option<Box<Cause>>,
}

impl<'d> Printable<'d> {
    fn new(inner: &'d (dyn Diagnostic + Send + Sync)) -> Self {
        Self { inner, text: Cause::new(inner) }
    }
}

impl Cause {
    fn new(error: &dyn std::error::Error) -> Self {
        let cause = error.source().map(|cause| Box::new(Self::new(cause)));
        Self { message: printable(&error.to_string()).into_owned(), cause }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Cause {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause.as_ref() as &(dyn std::error::Error + 'static))
    }
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl std::error::Error for Printable<'_> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.text.source()
    }
}

impl Diagnostic for Printable<'_> {
    fn severity(&self) -> Option<Severity> {
        self.inner.severity()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let help = self.inner.help()?.to_string();
        Some(Box::new(printable(&help).into_owned()))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.inner.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let printable = |label: LabeledSpan| {
            let words = label.label().map(|words| printable(words).into_owned());
            LabeledSpan::new(words, label.offset(), label.len())
        };
        Some(Box::new(self.inner.labels()?.map(printable)))
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

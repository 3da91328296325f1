//! How a problem of the input is shown: its line with the place marked, the reason beside it, the way out below.

use std::fmt;

use miette::{
    Diagnostic, LabeledSpan, MietteError, MietteSpanContents, Severity, SourceCode, SourceSpan, SpanContents,
};
use nodecast_model::domain::words::printable;
pub use nodecast_model::text::error::{Effect, InputError as ScenarioError, Place, Warning, listed, nearest};

/// A problem that miette can draw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    message: String,
    reason: Option<String>,
    way_out: Option<String>,
    line: Option<Line>,
    severity: Severity,
}

/// The place of a problem with its line.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Line(Place);

impl From<&ScenarioError> for Shown {
    fn from(error: &ScenarioError) -> Self {
        let place = error.place().cloned();
        Self::new(error.message(), error.reason(), error.way_out(), place, Severity::Error)
    }
}

impl From<&Warning> for Shown {
    fn from(warning: &Warning) -> Self {
        let place = warning.place().cloned();
        Self::new(warning.message(), warning.reason(), warning.way_out(), place, Severity::Warning)
    }
}

impl Shown {
    fn new(
        message: &str,
        reason: Option<&str>,
        way_out: Option<&str>,
        place: Option<Place>,
        severity: Severity,
    ) -> Self {
        Self {
            message: message.to_owned(),
            reason: reason.map(str::to_owned),
            way_out: way_out.map(str::to_owned),
            line: place.map(Line),
            severity,
        }
    }
}

/// What can be shown as text with the place of its line.
pub trait Render {
    /// The problem as plain text without colour: message, place with its line, way out.
    fn render(&self) -> String;
}

impl<T> Render for T
where
    for<'a> Shown: From<&'a T>,
{
    fn render(&self) -> String {
        let shown = Shown::from(self);
        let mut text = String::new();
        let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor())
            .with_width(110)
            .with_links(false);
        match handler.render_report(&mut text, &shown) {
            Ok(()) => text,
            Err(fmt::Error) => shown.to_string(),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Shown {}

impl Diagnostic for Shown {
    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.way_out.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.line.as_ref().map(|line| line as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (start, length) = self.line.as_ref()?.0.marked;
        Some(Box::new(std::iter::once(LabeledSpan::new(self.reason.clone(), start, length))))
    }
}

/// Lets miette show the line with the number that it has in the file.
impl SourceCode for Line {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        _lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let Self(place) = self;
        if span.offset() + span.len() > place.text.len() {
            return Err(MietteError::OutOfBounds);
        }
        // Asked for no context, miette wants the position of the span itself, which it prints.
        let column = if lines_before == 0 { place.column - 1 } else { 0 };
        let whole = SourceSpan::new(0.into(), place.text.len());
        let contents = place.text.as_bytes();
        let file = printable(&place.file).into_owned();
        Ok(Box::new(MietteSpanContents::new_named(file, contents, whole, place.line - 1, column, 1)))
    }
}

/// What is wrong with the header of a table that has no column called `wanted`: what it has instead, and which of these
/// was probably meant.
pub(super) fn lacks(header: &csv::StringRecord, wanted: &str) -> String {
    if header.is_empty() {
        return format!("there is no header with the column `{wanted}`");
    }
    let near = nearest(wanted, header).map(|near| format!("; is `{near}` meant?")).unwrap_or_default();
    let shown: Vec<String> = header.iter().take(12).map(|title| title.chars().take(40).collect()).collect();
    format!("the header has no column `{wanted}`, but {}{near}", listed(shown.iter().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use super::{Place, Render, ScenarioError};

    #[test]
    fn error_far_into_line_shows_column() {
        let text = format!("{}WRONG{}", "a".repeat(5_000), "b".repeat(5_000));
        let place = Place::new("a.yaml", &text, 5_000, 5);
        let rendered = ScenarioError::new("wrong").at(Some(place)).because("here").render();
        assert!(rendered.contains("a.yaml:1:5001"), "{rendered}");
    }
}

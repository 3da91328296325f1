//! Where in a table a mistake stands: row and column, with the row shown.

use nodecast_model::text::{InputError, Place};

/// What is wrong with a row, before it is said where.
#[derive(Debug)]
pub(super) struct Mistake {
    /// The cell's number in its row; `None` for the row as a whole.
    pub position: Option<usize>,
    pub message: String,
    pub reason: String,
    pub help: String,
}

/// A row and where it stands.
pub(super) struct Spot<'r> {
    pub file: &'r str,
    /// The line on which the row begins, counted from 1; in a columnar file the row's number.
    pub line: u64,
    pub cells: &'r csv::StringRecord,
    /// Column names where the file has no lines of text; then `name = value` is shown.
    pub names: Option<&'r csv::StringRecord>,
}

impl Spot<'_> {
    /// The error about `mistake` in this row.
    pub(super) fn error(&self, mistake: Mistake) -> InputError {
        let (text, offset, length) = match (self.names, mistake.position) {
            (Some(names), Some(position)) => {
                let name = names.get(position).unwrap_or_default();
                let value = self.cells.get(position).unwrap_or_default();
                (format!("{name} = {value}"), name.len() + 3, value.len())
            }
            (Some(_), None) => (String::new(), 0, 0),
            (None, position) => as_written(self.cells, position.unwrap_or(0)),
        };
        let mut place = Place::new(self.file, &text.replace(['\n', '\r'], " "), offset, length.max(1));
        place.line = usize::try_from(self.line).unwrap_or(usize::MAX);
        InputError::new(mistake.message).at(Some(place)).because(mistake.reason).help(mistake.help)
    }
}

/// A row as the exporters write it, and where in it a cell begins and how long it is: quotes stand only where they are needed.
fn as_written(cells: &csv::StringRecord, marked: usize) -> (String, usize, usize) {
    let (mut text, mut range) = (String::new(), (0, 0));
    for (position, cell) in cells.iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        let start = text.len();
        if cell.contains(['"', ',', '\n', '\r']) {
            text.push('"');
            text.push_str(&cell.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(cell);
        }
        if position == marked {
            range = (start, text.len() - start);
        }
    }
    (text, range.0, range.1)
}

/// An error about a whole file.
pub(super) fn of_file(file: &str, what: &str) -> InputError {
    InputError::new(format!("{file}: {what}"))
}

/// An error at a line of a file of which no row can be shown.
pub(super) fn at_line(file: &str, line: u64, what: &str) -> InputError {
    InputError::new(format!("{file}:{line}: {what}"))
}

//! A table as a terminal shows it.

use std::iter::once;

use super::{Align, Column, Priority, Table};
use crate::columns::Columns;
use crate::short_names::{apart, without_namespace};

impl Table {
    /// The table as lines, the first with the headings; none without rows. Where lines have no more than `width` characters, columns without room
    /// are below the others, with the labels again.
    pub fn lines(&self, width: Option<usize>) -> Vec<String> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let shown: Vec<usize> =
            (0..self.columns.len()).filter(|&at| self.columns[at].priority < Priority::Detail).collect();
        let align: Vec<Align> = shown.iter().map(|&at| self.columns[at].align).collect();
        let labels = shown.iter().take_while(|&&at| self.columns[at].priority == Priority::Label).count();
        let columns: Vec<Vec<String>> = shown.iter().map(|&at| self.cells_of(at)).collect();
        let rows = |heading: &dyn Fn(&Column) -> String| -> Vec<Vec<String>> {
            let heading = shown.iter().map(|&at| heading(&self.columns[at])).collect();
            let row = |at: usize| columns.iter().map(|cells| cells[at].clone()).collect();
            once(heading).chain((0..self.rows.len()).map(row)).collect()
        };
        let layout = Columns { align: &align, gap: self.gap, labels };
        let lines = layout.lines(&rows(&Column::padded), None);
        // On a narrow terminal no space is left to keep columns of several tables in line.
        if width.is_none_or(|width| lines.iter().all(|line| line.chars().count() <= width)) {
            return lines;
        }
        layout.lines(&rows(&Column::heading), width)
    }

    /// The cells of a column, each in one line.
    fn cells_of(&self, column: usize) -> Vec<String> {
        let cells: Vec<String> = self.rows.iter().map(|row| self.words(&row[column]).replace('\n', " ")).collect();
        match self.columns[column].shortened {
            None => cells,
            Some(width) => apart(&cells.iter().map(String::as_str).collect::<Vec<_>>(), width, without_namespace),
        }
    }
}

impl Column {
    /// The heading in the least width of the column.
    fn padded(&self) -> String {
        let (heading, width) = (self.heading(), self.width);
        if self.align == Align::Right { format!("{heading:>width$}") } else { format!("{heading:<width$}") }
    }
}

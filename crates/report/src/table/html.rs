//! A table as HTML.

use super::{Align, Cell, Column, Table};
use crate::page::{Html, prose, sentence, text};

/// Rows that a table of a page holds.
const ROWS_MAX: usize = 200;

impl Table {
    /// Adds the table to a page; it scrolls sideways where the screen is narrow. Without rows nothing is added. Of many rows the page has
    /// the first, and the note points to `whole`, the file that has all.
    pub(crate) fn html(&self, page: &mut Html, whole: &str) {
        if self.rows.is_empty() {
            return;
        }
        page.raw("<div class=\"scroll\"><table>\n<thead><tr>");
        for column in &self.columns {
            let heading = text(&sentence(&column.heading()));
            let class = column.class("");
            page.raw(&match heading.is_empty() {
                true => format!("<td{class}></td>"),
                false => format!("<th scope=\"col\"{class}>{heading}</th>"),
            });
        }
        page.raw("</tr></thead>\n<tbody>\n");
        for row in self.rows.iter().take(ROWS_MAX) {
            page.raw("<tr>");
            for (column, cell) in self.columns.iter().zip(row) {
                let (class, content) = match cell {
                    Cell::Verdict(verdict) => (verdict.class(), prose(&verdict.words)),
                    Cell::Figure(figure) => ("", figure.html()),
                    Cell::Text(_) | Cell::Missing => ("", prose(&self.words(cell))),
                };
                page.raw(&format!("<td{}>{content}</td>", column.class(class)));
            }
            page.raw("</tr>\n");
        }
        page.raw("</tbody>\n</table></div>\n");
        let rows = self.rows.len();
        if rows > ROWS_MAX {
            page.element(
                "p class=\"note\"",
                &format!("Showing the first {ROWS_MAX} of {rows}. See {whole} for the rest."),
            );
        }
    }
}

impl Column {
    /// The attribute of the classes of a cell.
    fn class(&self, verdict: &str) -> String {
        match (self.align == Align::Right, verdict) {
            (false, "") => String::new(),
            (true, "") => " class=\"figure\"".to_owned(),
            (false, verdict) => format!(" class=\"{verdict}\""),
            (true, verdict) => format!(" class=\"figure {verdict}\""),
        }
    }
}

impl super::Verdict {
    fn class(&self) -> &'static str {
        match self.is_good {
            Some(true) => "met",
            Some(false) => "missed",
            None => "",
        }
    }
}

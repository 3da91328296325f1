//! The first screen: the answers, a line each.

use super::html::{Html, prose, text, unbroken};
use crate::answers::{Answer, Piece, answers as answers_of};
use crate::summary::Summary;

pub(super) fn answers(page: &mut Html, summary: &Summary) {
    page.raw("<div class=\"answers\">\n");
    answers_of(summary).iter().for_each(|answer| write(page, answer));
    page.raw("</div>\n");
}

fn write(page: &mut Html, answer: &Answer) {
    page.raw("<div class=\"answer\">");
    page.element("p class=\"question\"", answer.question);
    page.raw(&format!("<p class=\"value\">{}</p>\n", unbroken(&markup(&answer.value))));
    let clauses: Vec<String> = answer.clauses.iter().map(|pieces| pieces.iter().map(markup).collect()).collect();
    page.raw(&format!("<p class=\"more\">{}</p></div>\n", unbroken(&clauses.join("; "))));
}

fn markup(piece: &Piece) -> String {
    let words = text(piece.words());
    match piece {
        Piece::Plain(words) => prose(words),
        Piece::Figure(key, value, _) => figure(key, *value, piece.words()),
        Piece::Link(id, _) => format!("<a href=\"#{id}\">{words}</a>"),
        Piece::Verdict(kept, _) => {
            let class = match kept {
                Some(true) => "met",
                Some(false) => "missed",
                None => "faint",
            };
            format!("<span class=\"{class}\">{words}</span>")
        }
    }
}

/// A figure within a line, with attributes by which programs find it in the page.
pub(super) fn figure(key: &str, value: f64, shown: &str) -> String {
    format!("<span data-figure=\"{key}\" data-value=\"{value}\">{}</span>", text(shown))
}

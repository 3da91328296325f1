//! The answers as Markdown, for a comment on a pull request.

use std::fmt::Write as _;

use super::answers::{Piece, answers};
use super::format;
use super::summary::Summary;

/// A table of the answers. `command` is the command line that repeats the run.
pub fn render(summary: &Summary, command: &str) -> String {
    let about = &summary.about;
    let mut text = format!(
        "**{}**, policy {}: {} in {}, {} simulated, seed {}\n\n| | | |\n|---|---|---|\n",
        cell(&about.scenario),
        cell(&about.policy),
        cell(&about.autoscaler),
        cell(&about.region),
        format::span(about.duration_seconds),
        about.seed
    );
    for answer in answers(summary) {
        let clauses: Vec<String> =
            answer.clauses.iter().map(|pieces| pieces.iter().map(Piece::words).collect::<String>()).collect();
        let _ = writeln!(
            text,
            "| {} | **{}** | {} |",
            answer.question,
            cell(answer.value.words()),
            cell(&clauses.join("; "))
        );
    }
    let _ = writeln!(text, "\n{}", code(command));
    text
}

/// A text as code on one line.
pub fn code(text: &str) -> String {
    let plain = |c: char| {
        if c.is_control() {
            ' '
        } else if c == '`' {
            '\''
        } else {
            c
        }
    };
    format!("`{}`", text.chars().map(plain).collect::<String>())
}

/// A text in which nothing is markup, a mention of a person or team, or a reference to an issue: a comment would notify them.
pub fn cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' | '*' | '_' | '`' | '\\' | '[' | ']' | '~' => cell.extend(['\\', character]),
            '<' => cell.push_str("&lt;"),
            '&' => cell.push_str("&amp;"),
            // A zero-width space.
            '@' | '#' => cell.extend([character, '\u{200b}']),
            control if control.is_control() => cell.push(' '),
            other => cell.push(other),
        }
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::{cell, code};

    #[test]
    fn no_name_becomes_markup() {
        assert_eq!(cell("a|b*c_`<img>\n&"), "a\\|b\\*c\\_\\`&lt;img> &amp;");
    }

    #[test]
    fn no_name_notifies_anybody() {
        assert_eq!(cell("@org/team, o/r#17"), "@\u{200b}org/team, o/r#\u{200b}17");
        assert_eq!(code("run `x`\n\n@all"), "`run 'x'  @all`");
    }
}

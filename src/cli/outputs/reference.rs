//! Tables of the reference that describe the keys of JSON documents.
//!
//! Must not: read a schema.

/// Pages with tables of keys.
const PAGES: [&str; 2] = [include_str!("../../../docs/outputs.md"), include_str!("../../../docs/observe.md")];

/// Heading of the keys that have one meaning in all documents.
pub(super) const COMMON: &str = "Keys of several documents";

/// A row of a table: keys, and their meaning in Markdown.
pub(super) struct Row {
    /// The keys by their paths. A path that starts with three empty parts (`...pods[]`) ends in any place with this name.
    pub(super) paths: Vec<Vec<String>>,
    pub(super) meaning: &'static str,
}

/// The rows below a heading; none if no page has the heading.
pub(super) fn rows(section: &str) -> Vec<Row> {
    let heading = format!("\n## {section}\n");
    let Some((_, text)) = PAGES.iter().find_map(|page| page.split_once(&heading)) else { return Vec::new() };
    let text = text.split_once("\n## ").map_or(text, |(text, _)| text);
    let cells = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    cells.map(|(names, meaning)| Row { paths: paths(names), meaning }).collect()
}

/// The paths in the first cell of a row: a name that begins with a dot continues the path before it.
pub(super) fn paths(cell: &str) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for name in names(cell) {
        let parts = |name: &str| name.split('.').map(str::to_owned).collect::<Vec<_>>();
        let path = match (name.strip_prefix('.'), all.last()) {
            (Some(rest), Some(before)) if !rest.starts_with('.') => {
                let start = &before[..before.len().saturating_sub(1)];
                [start, &parts(rest)].concat()
            }
            _ => parts(name),
        };
        all.push(path);
    }
    all
}

/// The texts that a cell marks as code.
pub(super) fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// A text with links replaced by their labels, and without marks of code.
pub(super) fn unlinked(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let (text, label) = before.rsplit_once('[').unwrap_or((before, ""));
        plain += text;
        plain += label;
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    (plain + rest).replace('`', "")
}

/// Parts of a meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Between commas and colons.
    Phrase,
    /// Between semicolons and full stops.
    Clause,
}

/// The part of a meaning that names `key`, as plain text. A phrase of less than two words in addition to the key explains nothing.
pub(super) fn part_with(meaning: &str, key: &str, part: Part) -> Option<String> {
    let marks = [format!("`{key}`"), format!("`{key}[]`")];
    let mark = marks.iter().find(|mark| meaning.contains(mark.as_str()))?;
    let with_mark = |text, separators| split(text, separators).into_iter().find(|part| part.contains(mark.as_str()));
    let clause = with_mark(meaning, ["; ", ". "]).unwrap_or(meaning);
    if part == Part::Clause {
        return Some(unlinked(clause.trim()));
    }
    let phrase = with_mark(clause, [", ", ": "]).unwrap_or(clause).trim();
    let phrase = ["and ", "or "].iter().find_map(|word| phrase.strip_prefix(word)).unwrap_or(phrase);
    let other_words = phrase.replace(mark.as_str(), "").split_whitespace().count();
    (other_words >= 2).then(|| unlinked(phrase))
}

/// Splits a text at separators outside of brackets.
fn split<'t>(text: &'t str, separators: [&str; 2]) -> Vec<&'t str> {
    let (mut parts, mut rest, mut depth, mut at) = (Vec::new(), text, 0_u32, 0);
    while let Some(letter) = rest.get(at..).and_then(|text| text.chars().next()) {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let (before, after) = rest.split_at(at);
        match separators.iter().find_map(|separator| after.strip_prefix(separator)) {
            Some(after) if depth == 0 => {
                parts.push(before);
                (rest, at) = (after, 0);
            }
            _ => at += letter.len_utf8(),
        }
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::{Part, part_with, paths, unlinked};

    #[test]
    fn continued_names_share_their_path() {
        let found = paths("`a.b.c`, `.d`, `e[].f`, `.g[]`");
        let joined: Vec<String> = found.iter().map(|path| path.join(".")).collect();
        assert_eq!(joined, ["a.b.c", "a.b.d", "e[].f", "e[].g[]"]);
        assert_eq!(unlinked("of `x[]` by [the error](../a.md#b), and [c](d)"), "of x[] by the error, and c");
    }

    #[test]
    fn key_gets_the_part_that_names_it() {
        let meaning =
            "by `reason`: nodes (`count`, ended; all), and `list[]` of [the names](a.md); `kind` and. `other`";
        let find = |key, part| part_with(meaning, key, part);
        assert_eq!(find("count", Part::Phrase).unwrap(), "nodes (count, ended; all)");
        assert_eq!(find("list", Part::Phrase).unwrap(), "list[] of the names");
        assert_eq!(find("reason", Part::Phrase), None);
        assert_eq!(find("kind", Part::Clause).unwrap(), "kind and");
        assert_eq!(find("other", Part::Clause).unwrap(), "other");
        assert_eq!(find("unknown", Part::Clause), None);
    }
}

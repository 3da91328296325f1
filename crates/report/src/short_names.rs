//! Names that are too long for their place, shortened so that those beside each other stay apart.

use std::collections::{BTreeMap, BTreeSet};

/// Stands for what is left out.
const ELLIPSIS: char = '\u{2026}';

/// `label` without its namespace if it is too long for its column, then with its middle left out.
pub(crate) fn without_namespace(label: &str, width: usize) -> String {
    if label.chars().count() <= width {
        return label.to_owned();
    }
    without_middle(label.rsplit_once('/').map_or(label, |(_, name)| name), width)
}

/// `label` with its middle left out if it is longer than `width` characters.
pub fn without_middle(label: &str, width: usize) -> String {
    let length = label.chars().count();
    if length <= width {
        return label.to_owned();
    }
    let head: String = label.chars().take(width / 2).collect();
    let tail: String = label.chars().skip(length - (width - width / 2).saturating_sub(1)).collect();
    format!("{head}{ELLIPSIS}{tail}")
}

/// Each of `labels` in at most `width` characters as `cut` shortens it, unless another one would read the same: then what
/// they have in common is left out instead. Equal labels stay equal.
pub fn apart(labels: &[&str], width: usize, cut: impl Fn(&str, usize) -> String) -> Vec<String> {
    let mut by_cut: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for label in labels {
        by_cut.entry(cut(label, width)).or_default().insert(label);
    }
    let mut shown: BTreeMap<&str, String> = BTreeMap::new();
    for (short, alike) in by_cut {
        if alike.len() == 1 {
            shown.extend(alike.into_iter().map(|label| (label, short.clone())));
        } else {
            shown.extend(told_apart(&alike.into_iter().collect::<Vec<_>>(), width));
        }
    }
    labels.iter().map(|label| shown.get(label).cloned().unwrap_or_default()).collect()
}

/// Different labels in at most `width` characters each: what differs with as much of both ends as has room, and with a
/// number where even that is too long.
fn told_apart<'l>(labels: &[&'l str], width: usize) -> Vec<(&'l str, String)> {
    let texts: Vec<Vec<char>> = labels.iter().map(|label| label.chars().collect()).collect();
    let shortest = texts.iter().map(Vec::len).min().unwrap_or(0);
    let same = |at: &dyn Fn(&[char]) -> Option<char>| {
        let mut all = texts.iter().map(|text| at(text));
        let first = all.next();
        all.all(|other| Some(other) == first)
    };
    let before = (0..shortest).take_while(|&at| same(&|text| text.get(at).copied())).count();
    let after = (0..shortest - before).take_while(|&at| same(&|text| text.iter().rev().nth(at).copied())).count();
    let short: Vec<String> = texts.iter().map(|text| around(text, before, text.len() - after, width)).collect();
    let is_taken = |text: &String| short.iter().filter(|other| *other == text).count() > 1;
    let numbered = |(position, text): (usize, &String)| {
        let number = format!("{ELLIPSIS}{}", position + 1);
        let head = text.chars().take(width.saturating_sub(number.chars().count()));
        if is_taken(text) { head.collect::<String>() + &number } else { text.clone() }
    };
    labels.iter().copied().zip(short.iter().enumerate().map(numbered)).collect()
}

/// What stands from `from` to `to` in `text`, its beginning where that is too long, between as much of both ends as has room.
fn around(text: &[char], from: usize, to: usize, width: usize) -> String {
    let to = to.min(from + width.saturating_sub(2));
    let gaps = usize::from(from > 0) + usize::from(to < text.len());
    let room = width.saturating_sub(to - from + gaps);
    // An end that needs less leaves the rest to the other one.
    let tail = (text.len() - to).min(room.div_ceil(2).max(room.saturating_sub(from)));
    let head = from.min(room - tail);
    let part = |part: &[char]| part.iter().collect::<String>();
    let gap = |is_there: bool| if is_there { ELLIPSIS.to_string() } else { String::new() };
    [
        part(&text[..head]),
        gap(head < from),
        part(&text[from..to]),
        gap(to + tail < text.len()),
        part(&text[text.len() - tail..]),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::{apart, without_middle, without_namespace};

    #[test]
    fn a_long_name_loses_its_namespace_first() {
        assert_eq!(without_namespace("web/frontend", 12), "web/frontend");
        assert_eq!(without_namespace("web/frontend", 11), "frontend");
        assert_eq!(without_namespace("web/frontend", 7), "fro\u{2026}end");
        assert_eq!(without_middle("web/frontend", 11), "web/f\u{2026}ntend");
    }

    #[test]
    fn distinct_short_names_are_cut_in_the_middle() {
        let names = ["web/frontend", "web/checkout", "web/frontend"];
        assert_eq!(apart(&names, 7, without_namespace), ["fro\u{2026}end", "che\u{2026}out", "fro\u{2026}end"]);
        assert_eq!(apart(&names, 12, without_namespace), names);
    }

    #[test]
    fn names_equal_after_cutting_keep_differences() {
        let names = ["shop/workload-1-with-a-long-name", "shop/workload-2-with-a-long-name"];
        let short = apart(&names, 16, without_namespace);
        assert_eq!(short, ["shop/w\u{2026}1\u{2026}ng-name", "shop/w\u{2026}2\u{2026}ng-name"]);
        assert!(short.iter().all(|short| short.chars().count() == 16));
        // The same name in two namespaces.
        let names = ["one-namespace/frontend", "two-namespace/frontend"];
        assert_eq!(apart(&names, 12, without_namespace), ["one\u{2026}frontend", "two\u{2026}frontend"]);
    }

    #[test]
    fn names_that_differ_in_too_much_are_numbered() {
        let names = ["aXbbbbbbbbbbbbbbbbbbbbYa", "aZbbbbbbbbbbbbbbbbbbbbYa", "aXbbbbbbbbbbbbbbbbbbbbZa"];
        let short = apart(&names, 8, |_, _| String::new());
        let different: std::collections::BTreeSet<&String> = short.iter().collect();
        assert_eq!(different.len(), 3, "{short:?}");
        assert!(short.iter().all(|short| short.chars().count() <= 8), "{short:?}");
    }
}

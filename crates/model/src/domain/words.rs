//! What every room says in the same words: counts of things, and why the system refused something.

use std::borrow::Cow;
use std::io;

/// Whether a terminal obeys a character instead of showing it: control characters but line feed and tab, and those that override the
/// direction of text.
pub fn is_unprintable(character: char) -> bool {
    let is_control = character.is_control() && !matches!(character, '\n' | '\t');
    is_control || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` with a question mark for each character that a terminal would obey.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(is_unprintable) { text.replace(is_unprintable, "?").into() } else { text.into() }
}

/// A count of things: `1 node`, `2 nodes`, `1,200 nodes`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(&number.to_string()), if number == 1 { one } else { many })
}

/// The first three of some names, and how many more there are.
pub fn some_of<N: AsRef<str>>(names: &[N]) -> String {
    const SHOWN: usize = 3;
    let shown = names.iter().take(SHOWN).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A decimal with commas between its thousands.
pub fn grouped(decimal: &str) -> String {
    let (whole, fraction) = decimal.find('.').map_or((decimal, ""), |dot| decimal.split_at(dot));
    let mut text = String::with_capacity(decimal.len() + whole.len() / 3);
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

/// A number for a sentence, to three digits or as many as a whole number has: `0.005`, `2.5`, `33.3`, `1,234`.
pub fn rounded(number: f64) -> String {
    let decimals = match number.abs() {
        n if n >= 100.0 => 0,
        n if n >= 10.0 => 1,
        n if n >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{number:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    grouped(text)
}

/// Why the system refused, in plain words and without its error number: `there is no such file`, `permission denied`.
pub fn refusal(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => return "there is no such file or directory".to_owned(),
        io::ErrorKind::IsADirectory => return "it is a directory".to_owned(),
        io::ErrorKind::NotADirectory => return "a part of its path is a file, not a directory".to_owned(),
        io::ErrorKind::PermissionDenied => return "permission denied".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => return "the file system is read-only".to_owned(),
        io::ErrorKind::StorageFull => return "the disk is full".to_owned(),
        io::ErrorKind::QuotaExceeded => return "the disk quota is used up".to_owned(),
        io::ErrorKind::FileTooLarge => {
            return "the file is larger than `ulimit -f` or the file system allows".to_owned();
        }
        io::ErrorKind::InvalidData => return "it is not UTF-8 text".to_owned(),
        _ => {}
    }
    let text = error.to_string();
    text.find(" (os error ").map_or(text.as_str(), |end| &text[..end]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{counted, refusal, rounded};

    #[test]
    fn numbers_keep_only_significant_digits() {
        let told = [0.0, 0.0049, 0.5, 2.504, 33.333_333, 100.4, 1_234.567].map(rounded);
        assert_eq!(told, ["0", "0.005", "0.5", "2.5", "33.3", "100", "1,235"]);
    }

    #[test]
    fn a_refusal_is_told_without_a_number() {
        let told = |number| refusal(&std::io::Error::from_raw_os_error(number));
        assert_eq!(told(2), "there is no such file or directory");
        assert_eq!(told(28), "the disk is full");
        assert!(told(27).contains("ulimit -f") && told(122).contains("quota"));
        assert!(!told(5).contains("os error"), "{}", told(5));
        assert_eq!(refusal(&std::io::Error::other("odd")), "odd");
    }

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!([0, 1, 2, 1_200].map(|n| counted(n, "pod", "pods")), ["0 pods", "1 pod", "2 pods", "1,200 pods"]);
    }
}

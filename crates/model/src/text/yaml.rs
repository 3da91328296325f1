//! Words of YAML: texts that are written as keys and scalars.
//!
//! Must not: lay out maps and lists (each writer has a form of its own).

/// Words that YAML reads as something other than text.
const RESERVED: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

/// Whether a text without quotes stays text: no number, no truth value of any YAML version.
pub fn is_word(text: &str) -> bool {
    let is_reserved = || RESERVED.iter().any(|word| text.eq_ignore_ascii_case(word));
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && !is_reserved()
}

/// A text as a key or a value, in quotes unless every reader takes it for text.
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._/".contains(c);
    if is_word(text) && text.chars().all(is_plain) { text.to_owned() } else { quoted(text) }
}

/// A text in double quotes, which JSON reads as well.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            // Controls, line separators, and the byte order mark, which a text must not contain as they are.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') => {
                quoted.push_str(&format!("\\u{:04X}", c as u32));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn words_with_another_meaning_are_quoted() {
        assert_eq!(["spot", "c6i.large", "web/api"].map(word), ["spot", "c6i.large", "web/api"]);
        assert_eq!(["No", "1.20", "a: b", "tab\there"].map(word), ["\"No\"", "\"1.20\"", "\"a: b\"", "\"tab\\there\""]);
    }
}

//! JSON objects one after the other, as `kubectl get -o json >> file`, `jq -c '.items[]'` and watches write them.

use std::ops::Range;

/// Objects of a text that holds nothing else.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Stream {
    /// Ranges of bytes, at least two.
    Objects(Vec<Range<usize>>),
    /// At least one whole object, and the start of one without an end.
    Cut(usize),
    /// Something else.
    Other,
}

/// Finds the objects of `text` by their braces. YAML of one flow map is [`Stream::Other`].
pub(super) fn objects(text: &str) -> Stream {
    let bytes = text.as_bytes();
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    loop {
        at += bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        match bytes.get(at) {
            None if found.len() > 1 => return Stream::Objects(found),
            Some(b'{') => {}
            _ => return Stream::Other,
        }
        match end_of_object(&bytes[at..]) {
            Some(length) => found.push(at..at + length),
            None if found.is_empty() => return Stream::Other,
            None => return Stream::Cut(at),
        }
        at = found.last().map_or(at, |last| last.end);
    }
}

/// The length of the object at the start of `bytes`; `None` if it has no end.
fn end_of_object(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Stream, objects};

    #[test]
    fn braces_inside_texts_end_no_object() {
        assert_eq!(objects("{\"a\": \"}{\\\"\"}\n {}\n"), Stream::Objects(vec![0..13, 15..17]));
    }

    #[test]
    fn text_beside_objects_makes_no_stream() {
        for text in ["", "{}", "{a: 1}\n---\n{b: 2}", "{}\nkind: Pod", "[{}] {}", "{\"a\": 1"] {
            assert_eq!(objects(text), Stream::Other, "{text}");
        }
        assert_eq!(objects("{}\n{\"a\": ["), Stream::Cut(3));
    }
}

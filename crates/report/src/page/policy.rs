//! What a page lets the browser do: apply its own style, run its own script, and nothing else.

use sha2::{Digest, Sha256};

/// The policy of a page that has this text in its one `style` and, if it has a script, this one in its `script`. It holds wherever the page
/// is opened from; names and texts of a scenario could not load, run or send anything even if they were taken for markup.
///
/// A page that is `served` by this program may also ask the server that it came from, and frame pages of it.
///
/// Source: W3C Content Security Policy Level 3, 2.3.1 and 6.7.3 (hashes of what stands inline).
pub(super) fn content_security_policy(style: &str, script: Option<&str>, served: bool) -> String {
    let script = script.map_or_else(|| "'none'".to_owned(), hash);
    let style = hash(style);
    let text = if served { "connect-src 'self'; frame-src 'self'; " } else { "" };
    format!("default-src 'none'; script-src {script}; style-src {style}; {text}base-uri 'none'; form-action 'none'")
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", base64(&Sha256::digest(text)))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let padded = [group[0], group.get(1).copied().unwrap_or(0), group.get(2).copied().unwrap_or(0)];
        let bits = padded.into_iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(byte));
        for place in 0..4 {
            let letter = char::from(LETTERS[bits >> (18 - 6 * place) & 63]);
            text.push(if place <= group.len() { letter } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{base64, content_security_policy};

    #[test]
    fn letters_are_those_of_base64() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn a_page_without_a_script_runs_none() {
        let policy = content_security_policy("", None, false);
        assert!(policy.contains("script-src 'none'"));
        // The digest of nothing.
        assert!(policy.contains("style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"), "{policy}");
    }
}

//! Texts in pieces: words, numbers, quoted texts, space. What is put in a piece's place is mostly of its kind, so that most of what comes out is
//! still what its reader expects.

/// What a piece is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Letters, digits, and what stands between them in names and paths.
    Word,
    /// What begins with a digit: numbers, amounts, times, dates.
    Number,
    /// A text in quotes.
    Quoted,
    /// Spaces and ends of lines.
    Space,
    /// One of the others.
    Sign,
}

/// The pieces of a text, which they make up.
pub fn pieces(text: &str) -> Vec<(Kind, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = kind_of(rest, first);
        let length = match kind {
            Kind::Quoted => quoted(rest, first).unwrap_or(1),
            Kind::Sign => first.len_utf8(),
            Kind::Space => rest.find(|next: char| !next.is_whitespace()).unwrap_or(rest.len()),
            Kind::Word | Kind::Number => rest.find(|next| !is_of_word(next)).unwrap_or(rest.len()),
        };
        let (piece, after) = rest.split_at(length.max(first.len_utf8()));
        found.push((kind, piece));
        rest = after;
    }
    found
}

/// The key that each piece is a value under, as far as there is one: the name before the last colon. Keys themselves have none.
pub fn keys<'t>(pieces: &[(Kind, &'t str)]) -> Vec<Option<&'t str>> {
    let is_colon = |place: usize| pieces.get(place).is_some_and(|piece| *piece == (Kind::Sign, ":"));
    let mut last = None;
    let topology_state = pieces.iter().enumerate().map(|(place, &(kind, piece))| {
        if matches!(kind, Kind::Sign | Kind::Space) {
            return None;
        }
        if is_colon(place + 1) {
            last = Some(piece.trim_matches(['"', '\'']));
            return None;
        }
        last
    });
    topology_state.collect()
}

fn kind_of(rest: &str, first: char) -> Kind {
    match first {
        '0'..='9' => Kind::Number,
        '"' | '\'' if quoted(rest, first).is_some() => Kind::Quoted,
        _ if first.is_whitespace() => Kind::Space,
        // A dash begins an item of a list.
        _ if is_of_word(first) && first != '-' => Kind::Word,
        _ => Kind::Sign,
    }
}

fn is_of_word(next: char) -> bool {
    next.is_alphanumeric() || matches!(next, '_' | '-' | '.' | '/')
}

/// How long a text in quotes is; `None` where no quote ends it on its line.
fn quoted(rest: &str, quote: char) -> Option<usize> {
    let item = &rest[1..];
    let line = &item[..item.find('\n').unwrap_or(item.len())];
    line.find(quote).map(|end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::{Kind, keys, pieces};

    #[test]
    fn values_are_known_by_the_key_before_them() {
        let found = pieces("a: 1\nb:\n  - {c: \"x\", 'd': [y, z]}\n");
        let item: Vec<_> = found.iter().zip(keys(&found)).filter_map(|(pair, key)| Some((key?, pair.1))).collect();
        assert_eq!(item, [("a", "1"), ("c", "\"x\""), ("d", "y"), ("d", "z")]);
    }

    #[test]
    fn the_pieces_make_up_the_text() {
        let text = "replicas: 10 # caf\u{e9}\n  cpu: \"100m\" it's {a: 'b'}\n";
        let found = pieces(text);
        assert_eq!(found.iter().map(|(_, piece)| *piece).collect::<String>(), text);
        assert!(found.contains(&(Kind::Number, "10")) && found.contains(&(Kind::Quoted, "\"100m\"")));
        assert!(found.contains(&(Kind::Word, "replicas")) && found.contains(&(Kind::Sign, "'")));
    }
}

//! How a text is changed a little: values for others of their key, blocks for others of theirs, pieces for others of their kind, lines with what
//! belongs to them, bytes.

use std::collections::BTreeMap;

use crate::blocks::Blocks;
use crate::pieces::{Kind, keys, pieces};
use crate::random::Random;

/// Numbers, amounts and times at which readers tend to err.
const NUMBERS: [&str; 34] = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "10",
    "60",
    "100",
    "1000",
    "0.5",
    "1e3",
    "1e308",
    "1e-9",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "99999999999999999999999999",
    "0s",
    "1s",
    "30s",
    "5m",
    "2h",
    "7d",
    "100m",
    "250m",
    "1Gi",
    "512Mi",
    "9Ei",
    "50%",
    "101%",
    "2026-02-29T00:00:00Z",
    "00",
];
/// Words that mean something to many readers.
const WORDS: [&str; 16] = [
    "true",
    "false",
    "null",
    "~",
    "yes",
    "NaN",
    "Infinity",
    "-1",
    "-0",
    "default",
    "a",
    "x.y/z",
    "-",
    "..",
    "\u{e9}",
    "\u{1f980}",
];
/// Signs that open, close or part something in YAML, JSON, CSV or a query.
const SIGNS: [&str; 24] = [
    ":", ",", "[", "]", "{", "}", "(", ")", "#", "&", "*", "!", "|", ">", "%", "@", "`", "\"", "'", "\\", "+", "=",
    "~", "?",
];

/// The pieces of all texts of a kind of input, by what they are, each once.
#[derive(Default)]
pub struct Stock {
    pieces: BTreeMap<Kind, Vec<String>>,
    /// Values by the key that they were written under.
    values: BTreeMap<String, Vec<String>>,
    blocks: Blocks,
}

impl Stock {
    /// The stock of these texts.
    pub fn from_texts<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut stock = Self::default();
        for text in texts {
            let found = pieces(text);
            for ((kind, piece), key) in found.iter().zip(keys(&found)) {
                stock.pieces.entry(*kind).or_default().push((*piece).to_owned());
                if let Some(key) = key {
                    stock.values.entry(key.to_owned()).or_default().push((*piece).to_owned());
                }
            }
            stock.blocks.add(text);
        }
        for known in stock.pieces.values_mut().chain(stock.values.values_mut()) {
            known.sort_unstable();
            known.dedup();
        }
        stock.blocks.settle();
        stock
    }

    /// A piece of this kind.
    fn draw(&self, kind: Kind, random: &mut Random) -> String {
        let fixed: &[&str] = match kind {
            Kind::Number => &NUMBERS,
            Kind::Word => &WORDS,
            Kind::Sign => &SIGNS,
            Kind::Quoted => &["\"\"", "''", "\"0\"", "\"a b\"", "\"\\u0000\""],
            Kind::Space => &[" ", "\n", "  ", "\n  ", "\t", "\r\n"],
        };
        let known = self.pieces.get(&kind).map_or(&[][..], Vec::as_slice);
        if known.is_empty() || random.happens(30) {
            return random.pick(fixed).unwrap_or_default().to_owned();
        }
        known[random.below(known.len())].clone()
    }
}

/// The text with a few changes, one in most cases.
pub fn changed(text: &str, stock: &Stock, random: &mut Random) -> String {
    let mut text = text.to_owned();
    let mut more = 1;
    while more > 0 {
        more -= 1;
        text = once(&text, stock, random);
        if random.happens(25) {
            more += 1;
        }
    }
    text
}

fn once(text: &str, stock: &Stock, random: &mut Random) -> String {
    let known = match random.below(100) {
        0..=24 => other_value(text, stock, random),
        25..=34 => stock.blocks.other(text, random),
        35..=44 => stock.blocks.more(text, random),
        _ => None,
    };
    // What no key tells anything of, and more than half of the others, is changed blindly.
    known.unwrap_or_else(|| match random.below(100) {
        0..=54 => other_piece(text, stock, random),
        55..=62 => dropped_piece(text, random),
        63..=77 => moved_block(text, random),
        78..=91 => number_beside(text, random),
        92..=95 => cut(text, random),
        _ => other_bytes(text, random),
    })
}

/// Another value that was written under the same key somewhere.
fn other_value(text: &str, stock: &Stock, random: &mut Random) -> Option<String> {
    let pieces = pieces(text);
    let keys = keys(&pieces);
    let known = |place: usize| stock.values.get(keys[place]?).filter(|values| values.len() > 1);
    let places: Vec<(usize, &Vec<String>)> =
        (0..pieces.len()).filter_map(|place| Some((place, known(place)?))).collect();
    let &(place, values) = places.get(random.below(places.len()))?;
    Some(with(&pieces, place, &values[random.below(values.len())]))
}

/// Another piece of its kind in the place of one; seldom of another kind.
fn other_piece(text: &str, stock: &Stock, random: &mut Random) -> String {
    let pieces = pieces(text);
    let worth: Vec<usize> = (0..pieces.len()).filter(|index| is_worth(pieces[*index].0, random)).collect();
    let Some(&place) = worth.get(random.below(worth.len())) else { return stock.draw(Kind::Word, random) };
    let kind = if random.happens(90) {
        pieces[place].0
    } else {
        [Kind::Word, Kind::Number, Kind::Quoted, Kind::Sign][random.below(4)]
    };
    with(&pieces, place, &stock.draw(kind, random))
}

/// Values are changed more often than what separates them.
fn is_worth(kind: Kind, random: &mut Random) -> bool {
    match kind {
        Kind::Number | Kind::Quoted => true,
        Kind::Word => random.happens(40),
        Kind::Sign => random.happens(6),
        Kind::Space => random.happens(3),
    }
}

fn dropped_piece(text: &str, random: &mut Random) -> String {
    let pieces = pieces(text);
    let place = random.below(pieces.len());
    with(&pieces, place, "")
}

fn with(pieces: &[(Kind, &str)], place: usize, this_text: &str) -> String {
    let text = pieces.iter().enumerate();
    text.map(|(index, (_, piece))| if index == place { this_text } else { piece }).collect()
}

/// A number that is near the one there, or far from it, or its negative.
fn number_beside(text: &str, random: &mut Random) -> String {
    let pieces = pieces(text);
    let numbers: Vec<usize> = (0..pieces.len()).filter(|index| pieces[*index].0 == Kind::Number).collect();
    let Some(&place) = numbers.get(random.below(numbers.len())) else { return text.to_owned() };
    let piece = pieces[place].1;
    let digits = piece.find(|next: char| !next.is_ascii_digit()).unwrap_or(piece.len());
    let (number, unit) = piece.split_at(digits);
    let Ok(number) = number.parse::<u64>() else { return text.to_owned() };
    let other = match random.below(6) {
        0 => number.saturating_add(1).to_string(),
        1 => number.saturating_sub(1).to_string(),
        2 => number.saturating_mul(10).to_string(),
        3 => number.saturating_mul(1_000_000).to_string(),
        4 => (number / 2).to_string(),
        _ => format!("-{number}"),
    };
    with(&pieces, place, &format!("{other}{unit}"))
}

/// A line and those that are further in behind it, which belong to it: dropped, doubled, or put elsewhere.
fn moved_block(text: &str, random: &mut Random) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let from = random.below(lines.len());
    let Some(first) = lines.get(from) else { return text.to_owned() };
    let inside = lines[from + 1..].iter().take_while(|line| !line.trim().is_empty() && indent(line) > indent(first));
    let to = from + 1 + inside.count();
    let (before, block, after) = (&lines[..from], &lines[from..to], &lines[to..]);
    let rest: Vec<&str> = before.iter().chain(after).copied().collect();
    // At places where a line of the same depth stands, a block is where it could have been written.
    let same: Vec<usize> = (0..rest.len()).filter(|index| indent(rest[*index]) == indent(first)).collect();
    let elsewhere = same.get(random.below(same.len())).copied().unwrap_or(rest.len());
    match random.below(3) {
        0 => rest.concat(),
        1 => [&rest[..elsewhere], block, &rest[elsewhere..]].concat().concat(),
        _ => [before, block, block, after].concat().concat(),
    }
}

/// Only the beginning, or only the end.
fn cut(text: &str, random: &mut Random) -> String {
    let mut place = random.below(text.len() + 1);
    while !text.is_char_boundary(place) {
        place -= 1;
    }
    let (beginning, end) = text.split_at(place);
    if random.happens(80) { beginning.to_owned() } else { end.to_owned() }
}

/// Some characters for others, anywhere.
fn other_bytes(text: &str, random: &mut Random) -> String {
    let mut all: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(4) {
        let place = random.below(all.len());
        let other = match random.below(4) {
            0 => '\u{0}',
            1 => char::from(random.below(128) as u8),
            2 => '\u{feff}',
            _ => char::from_u32(random.below(0x1_0000) as u32).unwrap_or('\u{fffd}'),
        };
        match all.get_mut(place) {
            Some(item) if random.happens(70) => *item = other,
            _ => all.insert(place, other),
        }
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::{Stock, changed};
    use crate::random::Random;

    #[test]
    fn same_seed_repeats_change_and_others_differ() {
        let text = "a:\n  b: 10\n  c: [x, y]\nd: \"e\"\n";
        let stock = Stock::from_texts([text].into_iter());
        let all: Vec<String> = (0..200).map(|index| changed(text, &stock, &mut Random::new(1, index))).collect();
        let again: Vec<String> = (0..200).map(|index| changed(text, &stock, &mut Random::new(1, index))).collect();
        assert_eq!(all, again);
        let mut distinct = all;
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() > 100, "{} of 200", distinct.len());
    }

    #[test]
    fn nothing_is_changed_without_end() {
        let stock = Stock::default();
        for index in 0..100 {
            changed("", &stock, &mut Random::new(3, index));
        }
    }
}

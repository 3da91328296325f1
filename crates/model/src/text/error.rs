//! One error and one warning type: what is wrong, where (with the line shown), why, and a way out.
//!
//! Both own a copy of the one line they point at, clipped, so that they outlive the file's text and stay small however
//! large the file is.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::lint::Lint;
use crate::domain::words::is_unprintable;

/// A problem and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Problem {
    message: String,
    label: Option<String>,
    help: Option<String>,
    place: Option<Place>,
    /// Of a warning: its kind.
    lint: Option<&'static Lint>,
}

/// What a thing that is left out or assumed can do to the answer, the most first.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The answer is another than the real cluster's: pods that do not run, money that is not counted, a part that does nothing.
    ChangesAnswer,
    /// It may be another: a part is not simulated, or a value is assumed.
    MayChangeAnswer,
    /// The input is odd: what it says may not be what was meant.
    #[default]
    AboutInput,
    /// It changes nothing that is asked for.
    Harmless,
}

/// A place in a file with the text of its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The file, as the user named it.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// The line, or the part of a very long line around the place.
    pub text: String,
    /// Where the marked part begins and how long it is, in bytes of `text`.
    pub marked: (usize, usize),
}

/// Longest part of a line that is shown, in characters.
const SHOWN: usize = 160;

impl Place {
    /// The place of `length` bytes at `offset` in `text`, which is the content of `file`. Offsets inside a character
    /// count as its start.
    pub fn new(file: &str, text: &str, offset: usize, length: usize) -> Self {
        let offset = floor_boundary(text, offset);
        let line_start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[offset..].find('\n').map_or(text.len(), |newline| offset + newline);
        let line = text.as_bytes()[..line_start].iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = text[line_start..offset].chars().count() + 1;
        let mut start = line_start;
        if column > SHOWN / 2 {
            let clipped = column - SHOWN / 2;
            start = text[line_start..].char_indices().nth(clipped).map_or(start, |(at, _)| line_start + at);
        }
        let shown: String = text[start..line_end].trim_end_matches('\r').chars().take(SHOWN).collect();
        let marked_start = (offset - start).min(shown.len());
        let marked_length = length.min(shown.len() - marked_start);
        let text = printable_bytes(&shown);
        Self { file: file.to_owned(), line, column, text, marked: (marked_start, marked_length) }
    }
}

/// `text` with question marks for what a terminal would obey, as many as it has bytes: positions stay.
fn printable_bytes(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unprintable(character) {
            printable.extend(std::iter::repeat_n('?', character.len_utf8()));
        } else {
            printable.push(character);
        }
    }
    printable
}

fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

macro_rules! problem {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct $name(Box<Problem>);

        impl $name {
            /// A problem without a place.
            pub fn new(message: impl Into<String>) -> Self {
                Self(Box::new(Problem { message: message.into(), label: None, help: None, place: None, lint: None }))
            }

            /// The same with the place at which it arose.
            #[must_use]
            pub fn at(mut self, place: Option<Place>) -> Self {
                self.0.place = place;
                self
            }

            /// The same with the reason, which is written beside the marked text.
            #[must_use]
            pub fn because(mut self, label: impl Into<String>) -> Self {
                self.0.label = Some(label.into());
                self
            }

            /// The same with a way out.
            #[must_use]
            pub fn help(mut self, help: impl Into<String>) -> Self {
                self.0.help = Some(help.into());
                self
            }

            /// The same with something more to look at beside the way out.
            #[must_use]
            pub fn also(mut self, hint: &str) -> Self {
                let help = self.0.help.take().map_or_else(String::new, |help| format!("{help}; "));
                self.0.help = Some(help + hint);
                self
            }

            /// The same with the circumstances before the message.
            #[must_use]
            pub fn within(mut self, circumstances: &str) -> Self {
                self.0.message = format!("{circumstances}: {}", self.0.message);
                self
            }

            /// What is wrong, in one line.
            pub fn message(&self) -> &str {
                &self.0.message
            }

            /// Where, if a file is at fault.
            pub fn place(&self) -> Option<&Place> {
                self.0.place.as_ref()
            }

            /// The reason, which belongs beside the marked text.
            pub fn reason(&self) -> Option<&str> {
                self.0.label.as_deref()
            }

            /// The way out.
            pub fn way_out(&self) -> Option<&str> {
                self.0.help.as_deref()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0.message)
            }
        }

        impl std::error::Error for $name {}
    };
}

problem!(
    /// Why a scenario or a manifest cannot be used. There is one for each run: reading stops at the first.
    InputError
);
problem!(
    /// Something in a scenario or a manifest that is understood but left out, although it could change a result.
    Warning
);

impl Warning {
    /// A warning of a kind that is registered.
    pub fn from_lint(lint: &'static Lint, message: impl Into<String>) -> Self {
        let mut warning = Self::new(message);
        warning.0.lint = Some(lint);
        warning
    }

    /// Its kind; `None` for a note that no scenario can allow.
    pub fn lint(&self) -> Option<&'static Lint> {
        self.0.lint
    }

    /// What it can do to the answer. A note without a kind is about the input.
    pub fn effect(&self) -> Effect {
        self.0.lint.map_or(Effect::AboutInput, Lint::level)
    }
}

impl InputError {
    /// What is written beside a name that means nothing of what there is.
    pub const NOTHING: &str = "refers to nothing";

    /// Whether it is about such a name.
    pub fn refers_to_nothing(&self) -> bool {
        self.0.label.as_deref() == Some(Self::NOTHING)
    }
}

/// The candidate that `given` was probably meant to be: the nearest one within a third of its length.
pub fn nearest<'c>(given: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // Nobody misspells by hundreds of characters, and the distance costs the product of both lengths.
    if given.len() > 64 {
        return None;
    }
    let lower = given.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|&(distance, candidate)| distance <= slips(given.len().max(candidate.len())))
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many slips a name of so many characters may have and still be meant. Of four letters two others are half of it: `rate` is no `ramp`.
const fn slips(length: usize) -> usize {
    if length <= 4 { 1 } else { length.div_ceil(3) }
}

/// `names` as a list for a sentence: `a, b and c`.
pub fn listed<'c>(names: impl IntoIterator<Item = &'c str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, listed, nearest};

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        let place = Place::new("a.yaml", "first\nsécond: x\n", 15, 1);
        assert_eq!((place.line, place.column), (2, 9));
        assert_eq!(place.text, "sécond: x");
    }

    #[test]
    fn long_error_line_is_clipped_around_error() {
        let text = format!("{}WRONG{}", "a".repeat(5_000), "b".repeat(5_000));
        let place = Place::new("a.yaml", &text, 5_000, 5);
        assert_eq!(place.column, 5_001);
        assert_eq!(&place.text[place.marked.0..place.marked.0 + place.marked.1], "WRONG");
        assert!(place.text.len() <= 160);
    }

    #[test]
    fn the_nearest_name_is_near() {
        assert_eq!(nearest("polices", ["manifests", "policies"]), Some("policies"));
        assert_eq!(nearest("xyz", ["manifests", "policies"]), None);
        assert_eq!(nearest("rate", ["ramp", "constant"]), None, "half of it is another");
        assert_eq!(nearest("lists", ["list"]), Some("list"));
        assert_eq!(listed(["a", "b", "c"]), "`a`, `b` and `c`");
    }
}

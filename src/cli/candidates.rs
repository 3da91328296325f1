//! Values that a shell offers on a command line: policies of the scenario, and paths for `--set`.
//!
//! The scripts of `nodecast completions` call `nodecast __complete KIND CURRENT WORDS...`. Must not: print an error, which would stand in the
//! middle of a command line.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use super::Console;
use crate::program::Prices;
use crate::scenario::document::{Content, Document};
use crate::scenario::{Limits, documents, settable};

/// The word that asks for candidates.
const COMMAND: &str = "__complete";

/// Prints the candidates that `words` ask for, one per line. Returns the exit code; `None` if they ask for something else.
pub(super) fn answer(words: &[OsString], console: &mut Console<'_>) -> Option<u8> {
    if words.get(1)? != COMMAND {
        return None;
    }
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let kind = words.get(2).map(text).unwrap_or_default();
    let current = words.get(3).map(text).unwrap_or_default();
    let rest: Vec<String> = words.iter().skip(4).map(text).collect();
    let lines: String = candidates(&kind, &current, &rest).into_iter().map(|line| line + "\n").collect();
    // A shell that has stopped reading needs no answer.
    let _ = console.data(&lines);
    Some(0)
}

/// The candidates for the word `current`; none if no word of the command line is a scenario that can be read.
fn candidates(kind: &str, current: &str, words: &[String]) -> BTreeSet<String> {
    let Some(documents) = words.iter().rev().find_map(|word| read(word)) else { return BTreeSet::new() };
    // Shells pass `--option=value` whole, or only the value.
    let (option, value) = match current.split_once('=') {
        Some((option, value)) if option.starts_with("--") => (format!("{option}="), value),
        _ => (String::new(), current),
    };
    let found = match kind {
        "policy" => policies(&documents, value),
        "path" => settable::continued(&settable::paths(&documents), value),
        _ => BTreeSet::new(),
    };
    found.into_iter().map(|candidate| format!("{option}{candidate}")).collect()
}

/// The documents of the scenario in the file called `word`.
fn read(word: &str) -> Option<Vec<Document>> {
    let path = Path::new(word);
    let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    if !is_yaml || !path.is_file() {
        return None;
    }
    let prices = Prices::open(None).ok()?;
    documents(path, prices.catalog(), &Limits::default(), &[]).ok()
}

/// Names of policies that continue the last item of a list with commas, without those that are in it.
fn policies(documents: &[Document], value: &str) -> BTreeSet<String> {
    let (before, start) = value.rsplit_once(',').map_or(("", value), |(before, start)| (before, start));
    let list = documents.first().and_then(|scenario| scenario.content.get("policies"));
    let names = list.map(Content::items).unwrap_or_default().iter().filter_map(|policy| policy.get("name")?.as_text());
    let new = names.filter(|name| name.starts_with(start) && !before.split(',').any(|known| known == name));
    new.map(|name| if before.is_empty() { name } else { format!("{before},{name}") }).collect()
}

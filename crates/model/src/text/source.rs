//! A text under the name by which its author knows it, and limits on what is read.

use super::error::Place;
use super::tree::Location;

/// Limits on what is read, so that no input can exhaust the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest file in bytes.
    pub file_bytes_max: usize,
    /// Most values in one file, those that aliases repeat included.
    pub nodes_max: usize,
    /// Most values that aliases of one file may repeat.
    pub alias_nodes_max: usize,
    /// Deepest nesting.
    pub depth_max: usize,
}

impl Default for Limits {
    /// 256 MiB, 4 million values, 100,000 repeated by aliases, 100 levels.
    fn default() -> Self {
        Self { file_bytes_max: 256 << 20, nodes_max: 4_000_000, alias_nodes_max: 100_000, depth_max: 100 }
    }
}

/// The text of an input file under the name by which the user knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// The file's name as the user gave it.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Edits of its values, as the command line states them. Their places come after those of the text.
    edits: Vec<String>,
    /// Another text by its name, parts of which stand in for what this one leaves open. Its places come after those of the edits.
    appended: Option<(String, String)>,
}

impl Source {
    /// A source of this text, read from nowhere.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), edits: Vec::new(), appended: None }
    }

    /// The same with edits, so that an error about a value that one of them sets can show it.
    #[must_use]
    pub fn with_edits(mut self, edits: impl IntoIterator<Item = String>) -> Self {
        self.edits = edits.into_iter().collect();
        self
    }

    /// The same with another text, so that an error about a value that comes from there can show it.
    #[must_use]
    pub fn with_appended(mut self, other: &Self) -> Self {
        self.appended = Some((other.name.clone(), other.text.clone()));
        self
    }

    /// The offset at which the appended text counts as standing.
    pub fn appended_offset(&self) -> usize {
        self.edits().last().map_or(self.text.len() + 1, |(offset, edit)| offset + edit.len() + 1)
    }

    /// The edits with the offsets at which they count as standing.
    fn edits(&self) -> impl Iterator<Item = (usize, &str)> {
        self.edits.iter().scan(self.text.len() + 1, |next, edit| {
            let offset = *next;
            *next += edit.len() + 1;
            Some((offset, edit.as_str()))
        })
    }

    /// The offset at which the edit of this number counts as standing.
    pub fn edit_offset(&self, number: usize) -> usize {
        self.edits().nth(number).map_or(self.text.len(), |(offset, _)| offset)
    }

    /// The place of `location`; `None` for one that has no position.
    pub fn place(&self, location: Location) -> Option<Place> {
        let (offset, length) = location.range()?;
        let appended = self.appended_offset();
        if let Some((name, text)) = self.appended.as_ref().filter(|_| offset >= appended) {
            return Some(Place::new(name, text, offset - appended, length));
        }
        let edit = self.edits().find(|(start, edit)| (*start..=start + edit.len()).contains(&offset));
        Some(match edit {
            Some((start, edit)) => Place::new("--set", edit, offset - start, length),
            None => Place::new(&self.name, &self.text, offset, length),
        })
    }
}

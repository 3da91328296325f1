//! Input files: their names, their text, their hashes.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::error::{Place, ScenarioError};
use super::tree::Location;
use crate::domain::words::refusal;

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
}

impl Source {
    /// A source of this text, read from nowhere.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), edits: Vec::new() }
    }

    /// The same with edits, so that an error about a value that one of them sets can show it.
    #[must_use]
    pub(super) fn with_edits(mut self, edits: impl IntoIterator<Item = String>) -> Self {
        self.edits = edits.into_iter().collect();
        self
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
    pub(super) fn edit_offset(&self, number: usize) -> usize {
        self.edits().nth(number).map_or(self.text.len(), |(offset, _)| offset)
    }

    /// Reads the file at `path`; errors call it `name`.
    ///
    /// # Errors
    /// If it is missing, a directory, unreadable, too large or not UTF-8.
    pub fn load(path: &Path, name: impl Into<String>, limits: &Limits) -> Result<Self, ScenarioError> {
        let name = name.into();
        let bytes = read_bounded(path, &name, limits.file_bytes_max)?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(name, text)),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let readable = String::from_utf8_lossy(&error.as_bytes()[..at]);
                Err(ScenarioError::new(format!("`{name}` is not text"))
                    .at(Some(Place::new(&name, &readable, at, 1)))
                    .because("what follows is not UTF-8")
                    .help("save the file as UTF-8; a compressed or binary file cannot be read"))
            }
        }
    }

    /// Reads what the command line names: a file, or `-` for the standard input.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_argument(path: &Path, limits: &Limits) -> Result<Self, ScenarioError> {
        if path == Path::new("-") {
            return Self::load(Path::new("/dev/stdin"), "standard input", limits);
        }
        Self::load(path, path.display().to_string(), limits)
    }

    /// SHA-256 of the text, in hexadecimal.
    pub fn sha256(&self) -> String {
        sha256_hex(self.text.as_bytes())
    }

    /// The place of `location`; `None` for one that has no position.
    pub(super) fn place(&self, location: Location) -> Option<Place> {
        let (offset, length) = location.range()?;
        let edit = self.edits().find(|(start, edit)| (*start..=start + edit.len()).contains(&offset));
        Some(match edit {
            Some((start, edit)) => Place::new("--set", edit, offset - start, length),
            None => Place::new(&self.name, &self.text, offset, length),
        })
    }
}

/// SHA-256 of `bytes`, in hexadecimal.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of the file at `path`, at most `bytes_max` of them.
///
/// # Errors
/// If it is missing, a directory, unreadable or larger.
pub(super) fn read_bounded(path: &Path, name: &str, bytes_max: usize) -> Result<Vec<u8>, ScenarioError> {
    use std::io::Read;
    let unreadable = |error: &std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => ScenarioError::new(format!("no such file: `{name}`"))
            .help("paths in a scenario are relative to the scenario file; paths on the command line to where you are"),
        std::io::ErrorKind::IsADirectory => ScenarioError::new(format!("`{name}` is a directory"))
            .help(format!("name a file inside it, for example `{}/scenario.yaml`", name.trim_end_matches('/'))),
        _ => ScenarioError::new(format!("cannot read `{name}`: {}", refusal(error)))
            .help("check that the path is right and that you may read the file"),
    };
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    if metadata.is_dir() {
        return Err(unreadable(&std::io::ErrorKind::IsADirectory.into()));
    }
    let file = std::fs::File::open(path).map_err(|error| unreadable(&error))?;
    let mut bytes = Vec::new();
    // Pipes and devices state no length, so the limit is enforced while reading.
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() > bytes_max {
        return Err(ScenarioError::new(format!("`{name}` is larger than {} MiB", bytes_max >> 20))
            .help("split it into several files"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Limits, Source};

    #[test]
    fn the_hash_is_that_of_the_text() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Source::new("a", "").sha256(), empty);
    }

    #[test]
    fn an_oversized_file_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "x".repeat(100)).unwrap();
        let limits = Limits { file_bytes_max: 99, ..Limits::default() };
        assert!(Source::load(file.path(), "a.yaml", &limits).is_err());
        assert!(Source::load(file.path(), "a.yaml", &Limits { file_bytes_max: 100, ..limits }).is_ok());
    }
}

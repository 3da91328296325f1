//! Input files: how they are read, and their hashes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use nodecast_model::text::source::{Limits, Source};
use nodecast_settings::InputFile;
use sha2::{Digest, Sha256};

use super::error::{Place, ScenarioError, nearest};
use crate::domain::words::refusal;

/// Reads the file at `path`; errors call it `name`.
///
/// # Errors
/// If it is missing, a directory, unreadable, too large or not UTF-8.
pub fn load(path: &Path, name: impl Into<String>, limits: &Limits) -> Result<Source, ScenarioError> {
    let name = name.into();
    let bytes = read_bounded(path, &name, limits.file_bytes_max)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(name, text)),
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

/// Texts that stand in for files, by path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct InMemoryFiles(BTreeMap<PathBuf, String>);

impl InMemoryFiles {
    /// Texts by name.
    pub fn from_texts<'t>(texts: impl IntoIterator<Item = (&'t str, &'t str)>) -> Self {
        Self(texts.into_iter().map(|(name, text)| (PathBuf::from(name), text.to_owned())).collect())
    }

    /// The text under this path.
    ///
    /// # Errors
    /// If there is none.
    pub fn source(&self, path: &Path) -> Result<Source, ScenarioError> {
        let name = path.display().to_string();
        match self.0.get(path) {
            Some(text) => Ok(Source::new(name, text.as_str())),
            None => Err(ScenarioError::new(format!("no text is held under `{name}`"))),
        }
    }
}

/// Reads what the command line names: a file, or `-` for the standard input.
///
/// # Errors
/// As [`load`].
pub fn load_argument(path: &Path, limits: &Limits) -> Result<Source, ScenarioError> {
    if path == Path::new("-") {
        return load(Path::new("/dev/stdin"), "standard input", limits);
    }
    load(path, path.display().to_string(), limits)
}

/// A file with its hash.
pub fn input_file(source: &Source) -> InputFile {
    InputFile { path: source.name.clone(), sha256: sha256_hex(source.text.as_bytes()) }
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
        std::io::ErrorKind::NotFound => ScenarioError::new(format!("no such file: `{name}`")).help(meant(path, name)),
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
    // As long as the file says it is: a list that grows has room for up to twice as much.
    let mut bytes = Vec::with_capacity(metadata.len().min(bytes_max as u64) as usize + 1);
    // Pipes and devices state no length, so the limit is enforced while reading.
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() > bytes_max {
        return Err(ScenarioError::new(format!("`{name}` is larger than {} MiB", bytes_max >> 20))
            .help("split it into several files"));
    }
    Ok(bytes)
}

/// The way out of a missing file: the file of its directory whose name is most alike.
fn meant(path: &Path, name: &str) -> String {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    files.sort_unstable();
    let given = path.file_name().and_then(|given| given.to_str()).unwrap_or_default();
    match nearest(given, files.iter().map(String::as_str)) {
        Some(file) => {
            let before = name.strip_suffix(given).unwrap_or_default();
            format!("did you mean `{before}{file}`?")
        }
        None => "paths in a scenario are relative to the scenario file; paths on the command line to where you are"
            .to_owned(),
    }
}

/// What is said of a folder where manifests are named one by one.
pub(super) fn not_a_folder(path: &Path) -> ScenarioError {
    let name = path.display().to_string();
    let name = name.trim_end_matches('/');
    let is_manifest = |path: &Path| {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        ["yaml", "yml", "json", "csv"].contains(&ending) && path.file_name() != Some("scenario.yaml".as_ref())
    };
    let files = std::fs::read_dir(path).into_iter().flatten().flatten().map(|dir| dir.path());
    let help = match files.filter(|file| is_manifest(file)).min() {
        Some(first) => {
            format!(
                "name the manifests inside it, for example `{}`, or all of them with `{name}/*.yaml`",
                first.display()
            )
        }
        None => "name files with manifests, dumps of a cluster or tables of pods; there is none in it".to_owned(),
    };
    ScenarioError::new(format!("`{name}` is a directory")).help(help)
}

#[cfg(test)]
mod tests {
    use super::{Limits, load, sha256_hex};

    #[test]
    fn the_hash_is_that_of_the_text() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256_hex(b""), empty);
    }

    #[test]
    fn an_oversized_file_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "x".repeat(100)).unwrap();
        let limits = Limits { file_bytes_max: 99, ..Limits::default() };
        assert!(load(file.path(), "a.yaml", &limits).is_err());
        assert!(load(file.path(), "a.yaml", &Limits { file_bytes_max: 100, ..limits }).is_ok());
    }
}

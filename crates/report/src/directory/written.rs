//! What this program wrote into a directory: a list of files with their digests, by which an earlier report is known from what others
//! have put beside it or changed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::OutputError;
use crate::summary::PROGRAM;

/// The file that lists all others.
pub const MANIFEST_FILE: &str = "written.json";

/// Version of its form.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Manifest {
    schema_version: u32,
    program: String,
    program_version: String,
    /// SHA-256 in hexadecimal, by the file's path.
    files: BTreeMap<String, String>,
}

/// The text of the list.
pub(super) fn manifest(files: &BTreeMap<String, String>) -> String {
    let manifest = Manifest {
        schema_version: SCHEMA_VERSION,
        program: PROGRAM.to_owned(),
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        files: files.clone(),
    };
    // Texts and a number; there is nothing in it that JSON has no form for.
    serde_json::to_string_pretty(&manifest).unwrap_or_default() + "\n"
}

/// A file whose digest is taken as it is written.
pub(super) struct Hashing {
    file: fs::File,
    digest: Sha256,
}

impl Hashing {
    pub(super) fn new(file: fs::File) -> Self {
        Self { file, digest: Sha256::new() }
    }

    /// The digest of what was written, in hexadecimal.
    pub(super) fn digest(self) -> String {
        hexadecimal(&self.digest.finalize())
    }
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The SHA-256 of these bytes, in hexadecimal.
pub(crate) fn hexadecimal_digest(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether `target` may go: it does not exist, is empty, or holds `marker`, a JSON file that names this program, and nothing else but
/// what its list of written files has, unchanged. In a directory of a release that wrote no list it is what is `known`.
///
/// # Errors
/// If it may not, or cannot be looked into.
pub fn check_written(target: &Path, marker: &str, known: &dyn Fn(&Path, &str) -> bool) -> Result<(), OutputError> {
    let not_ours = |why: String| OutputError::NotOurs { path: target.to_owned(), why };
    if !target.exists() {
        return Ok(());
    }
    if !target.is_dir() {
        return Err(not_ours("it is a file".to_owned()));
    }
    let entries = names(target)?;
    if entries.is_empty() {
        return Ok(());
    }
    if !names_us(&target.join(marker)) {
        return Err(not_ours(format!("it is not empty and holds no {marker} of nodecast")));
    }
    if let Some(manifest) = manifest_of(target) {
        return stranger(target, &manifest)?.map_or(Ok(()), |why| Err(not_ours(why)));
    }
    match entries.iter().find(|name| *name != marker && !known(&target.join(name), name)) {
        None => Ok(()),
        Some(first) => Err(not_ours(format!("`{first}` in it was not written by nodecast"))),
    }
}

/// Whether a directory that this program has put aside holds nothing that anybody would miss: what its list has, as it was written, or
/// what was never finished, and so has no list.
pub(super) fn may_be_removed(directory: &Path) -> bool {
    manifest_of(directory).is_none_or(|manifest| stranger(directory, &manifest).is_ok_and(|found| found.is_none()))
}

/// Each file below a directory with its size and times. A renamed directory keeps them; a changed file does not.
pub(super) type Stamps = Vec<(String, Stamp)>;

/// Inode, size, and time of the last change of content or attributes, in seconds and nanoseconds.
#[cfg(unix)]
type Stamp = (u64, u64, i64, i64);

/// The stamp of a file; `None` if the system refuses.
#[cfg(unix)]
fn stamp(path: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let file = fs::symlink_metadata(path).ok()?;
    Some((file.ino(), file.len(), file.ctime(), file.ctime_nsec()))
}

/// Times of files show too little here.
#[cfg(not(unix))]
type Stamp = ();

#[cfg(not(unix))]
fn stamp(_: &Path) -> Option<Stamp> {
    None
}

/// The stamps of all files below a directory; `None` if there is none, or the system refuses.
pub(super) fn stamps(directory: &Path) -> Option<Stamps> {
    let mut files = Vec::new();
    list_files(directory, "", &mut files).ok()?;
    files.into_iter().map(|file| Some((file.clone(), stamp(&directory.join(&file))?))).collect()
}

/// Names in a directory, in order.
fn names(directory: &Path) -> Result<Vec<String>, OutputError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(OutputError::io("read", directory))? {
        let entry = entry.map_err(OutputError::io("read", directory))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

/// The list in a directory, if this program wrote one.
fn manifest_of(directory: &Path) -> Option<Manifest> {
    let text = fs::read_to_string(directory.join(MANIFEST_FILE)).ok()?;
    let manifest: Manifest = serde_json::from_str(&text).ok()?;
    (manifest.program == PROGRAM && manifest.schema_version == SCHEMA_VERSION).then_some(manifest)
}

/// What the first file in a directory is that is not on its list, or not as it was written.
fn stranger(directory: &Path, manifest: &Manifest) -> Result<Option<String>, OutputError> {
    let mut files = Vec::new();
    list_files(directory, "", &mut files)?;
    files.sort_unstable();
    for file in files.iter().filter(|file| *file != MANIFEST_FILE) {
        let Some(expected) = manifest.files.get(file) else {
            return Ok(Some(format!("`{file}` in it was not written by nodecast")));
        };
        if digest_of(&directory.join(file))? != *expected {
            return Ok(Some(format!("`{file}` in it has been changed since nodecast wrote it")));
        }
    }
    Ok(None)
}

fn digest_of(path: &Path) -> Result<String, OutputError> {
    // A link that stands in a file's place is not what was written, whatever it leads to.
    if fs::symlink_metadata(path).map_err(OutputError::io("read", path))?.is_symlink() {
        return Ok(String::new());
    }
    let mut digest = Sha256::new();
    let mut file = fs::File::open(path).map_err(OutputError::io("read", path))?;
    io::copy(&mut file, &mut digest).map_err(OutputError::io("read", path))?;
    Ok(hexadecimal(&digest.finalize()))
}

/// Every file below `directory` by its path, which begins with `prefix`. An empty folder counts as a file, so that it is not lost.
fn list_files(directory: &Path, prefix: &str, files: &mut Vec<String>) -> Result<(), OutputError> {
    for name in names(directory)? {
        let (path, shown) = (directory.join(&name), format!("{prefix}{name}"));
        let is_folder = fs::symlink_metadata(&path).is_ok_and(|item| item.is_dir());
        if is_folder && !names(&path)?.is_empty() {
            list_files(&path, &format!("{shown}/"), files)?;
        } else {
            files.push(shown);
        }
    }
    Ok(())
}

/// Whether the JSON file at `path` says that this program wrote it.
fn names_us(path: &Path) -> bool {
    let Ok(text) = fs::read_to_string(path) else { return false };
    let Ok(summary) = serde_json::from_str::<serde_json::Value>(&text) else { return false };
    summary.get("program").and_then(serde_json::Value::as_str) == Some(PROGRAM)
}

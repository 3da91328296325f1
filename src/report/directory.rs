//! An output directory that appears whole or not at all.
//!
//! Files are written into a hidden sibling of the target; when all are there, the sibling takes the target's place by
//! renaming. What stood there before goes only then, and only if this program wrote it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::summary::PROGRAM;
use crate::domain::words::refusal;

/// Names of the files that a report may hold beside its plots.
pub const TABLE_FILES: [&str; 12] = [
    "summary.json",
    "report.html",
    "timeline.csv",
    "workloads.csv",
    "metrics.csv",
    "queues.csv",
    "recommendations.csv",
    "pods.csv",
    "nodes.csv",
    "bill.csv",
    "events.jsonl",
    "metrics.om",
];

/// Bytes that are handed to the system together: tables have many megabytes.
const WRITTEN_AT_ONCE: usize = 1 << 18;

/// Why a report could not be written.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum OutputError {
    /// The target holds something that is not a report.
    #[error("`{}` is not replaced: {why}", path.display())]
    #[diagnostic(help("choose another directory with --out, or remove this one yourself"))]
    NotOurs {
        /// The target.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// The target cannot be replaced as a whole.
    #[error("`{}` cannot be an output directory: {why}", path.display())]
    #[diagnostic(help("name a directory of its own with --out"))]
    Unusable {
        /// The target.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// The system refused.
    #[diagnostic(help("name another place, or make this one writable"))]
    #[error("cannot {action} `{}`: {}", path.display(), refusal(reason))]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
}

impl OutputError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |reason| Self::Io { action, path: path.to_owned(), reason }
    }
}

/// A directory under construction. Dropped without [`commit`](Self::commit), it leaves nothing behind.
#[derive(Debug)]
pub struct OutputDirectory {
    target: PathBuf,
    parent: PathBuf,
    building: Option<PathBuf>,
    check: fn(&Path) -> Result<(), OutputError>,
}

impl OutputDirectory {
    /// Begins a directory that will stand at `target`. Nothing is written at `target` itself before `commit`.
    ///
    /// # Errors
    /// If `target` is a file, holds anything but a report of this program, is or contains the current directory, or its
    /// parent cannot be written to.
    pub fn begin(target: &Path) -> Result<Self, OutputError> {
        Self::begin_if(target, check_replaceable)
    }

    /// Begins a directory of another kind, which may take the place of whatever `check` lets go.
    ///
    /// # Errors
    /// As [`begin`](Self::begin), with `check` in place of its rule on what may be replaced.
    pub fn begin_if(target: &Path, check: fn(&Path) -> Result<(), OutputError>) -> Result<Self, OutputError> {
        let (target, parent) = resolve(target)?;
        check(&target)?;
        let building = create_sibling(&parent, &target, "partial")?;
        Ok(Self { target, parent, building: Some(building), check })
    }

    /// Whether `begin` would refuse `target`; creates nothing, so that it can be asked before long work.
    ///
    /// # Errors
    /// As [`begin`](Self::begin), but for what only writing can tell.
    pub fn check(target: &Path) -> Result<(), OutputError> {
        Self::check_if(target, check_replaceable)
    }

    /// As [`check`](Self::check), for a directory of another kind.
    ///
    /// # Errors
    /// As [`begin_if`](Self::begin_if), but for what only writing can tell.
    pub fn check_if(target: &Path, check: fn(&Path) -> Result<(), OutputError>) -> Result<(), OutputError> {
        check_name(target)?;
        check(target)
    }

    /// Writes one file; a folder in its name is made.
    ///
    /// # Errors
    /// Whatever the system or `content` returns.
    pub fn file(&self, name: &str, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), OutputError> {
        let Some(building) = &self.building else { return Ok(()) };
        let path = building.join(name);
        let failed = |reason| OutputError::Io { action: "write", path: self.target.join(name), reason };
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
        let mut output = BufWriter::with_capacity(WRITTEN_AT_ONCE, fs::File::create(&path).map_err(failed)?);
        content(&mut output).and_then(|()| output.flush()).map_err(failed)
    }

    /// Puts the directory in place and removes the one that stood there.
    ///
    /// # Errors
    /// Whatever the system returns; what stood there before then still stands.
    pub fn commit(mut self) -> Result<PathBuf, OutputError> {
        let Some(building) = self.building.take() else { return Ok(self.target.clone()) };
        let replaced = self.set_aside().and_then(|aside| {
            let renamed = fs::rename(&building, &self.target).map_err(OutputError::io("create", &self.target));
            if let (Err(_), Some(aside)) = (&renamed, &aside) {
                // The first error is the one to tell; should this fail too, the old report is still beside the target.
                let _ = fs::rename(aside, &self.target);
            }
            renamed.map(|()| aside)
        });
        match replaced {
            Ok(aside) => {
                if let Some(aside) = aside {
                    fs::remove_dir_all(&aside).map_err(OutputError::io("remove", &aside))?;
                }
                Ok(self.target.clone())
            }
            Err(error) => {
                // Drop then removes what was built.
                self.building = Some(building);
                Err(error)
            }
        }
    }

    /// Renames what stands at the target, if anything does.
    fn set_aside(&self) -> Result<Option<PathBuf>, OutputError> {
        if !self.target.exists() {
            return Ok(None);
        }
        (self.check)(&self.target)?;
        let aside = create_sibling(&self.parent, &self.target, "replaced")?;
        // A directory may be renamed onto an empty one.
        fs::rename(&self.target, &aside).map_err(OutputError::io("replace", &self.target))?;
        Ok(Some(aside))
    }
}

impl Drop for OutputDirectory {
    fn drop(&mut self) {
        if let Some(building) = self.building.take() {
            // Nobody is left to tell; a hidden directory staying behind does no harm.
            let _ = fs::remove_dir_all(building);
        }
    }
}

/// Whether a directory can stand at `target` and be renamed.
fn check_name(target: &Path) -> Result<(), OutputError> {
    let unusable = |why| Err(OutputError::Unusable { path: target.to_owned(), why });
    if target.exists() {
        let resolved = fs::canonicalize(target).map_err(OutputError::io("read", target))?;
        if std::env::current_dir().is_ok_and(|current| current.starts_with(&resolved)) {
            return unusable("it is or contains the current directory");
        }
    } else if target.file_name().is_none() {
        return unusable("it has no name");
    }
    Ok(())
}

/// The target without links and its parent, which is made if it is missing.
fn resolve(target: &Path) -> Result<(PathBuf, PathBuf), OutputError> {
    check_name(target)?;
    let unusable = || OutputError::Unusable { path: target.to_owned(), why: "it has no name" };
    if target.exists() {
        let resolved = fs::canonicalize(target).map_err(OutputError::io("read", target))?;
        let parent = resolved.parent().map(Path::to_owned).ok_or_else(unusable)?;
        return Ok((resolved, parent));
    }
    let name = target.file_name().ok_or_else(unusable)?;
    let parent = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).map_err(OutputError::io("create", parent))?;
    let parent = fs::canonicalize(parent).map_err(OutputError::io("read", parent))?;
    Ok((parent.join(name), parent))
}

fn create_sibling(parent: &Path, target: &Path, purpose: &str) -> Result<PathBuf, OutputError> {
    for attempt in 0_u32.. {
        let mut name = OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{purpose}-{}-{attempt}", std::process::id()));
        let path = parent.join(name);
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1_000 => {}
            Err(error) => return Err(OutputError::io("create a directory in", parent)(error)),
        }
    }
    Err(OutputError::Unusable { path: target.to_owned(), why: "too many unfinished directories stand beside it" })
}

/// Whether `target` may go: it does not exist, is empty, or is a report that this program wrote, with nothing added.
fn check_replaceable(target: &Path) -> Result<(), OutputError> {
    check_written(target, "summary.json", &|entry, name| {
        (TABLE_FILES.contains(&name) || name.ends_with(".svg")) && !entry.is_dir()
    })
}

/// Whether `target` may go: it does not exist, is empty, or holds `marker`, a JSON file that names this program, and
/// nothing else but what is `known`.
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
    let mut strangers = Vec::new();
    let mut entries = 0_usize;
    for entry in fs::read_dir(target).map_err(OutputError::io("read", target))? {
        let entry = entry.map_err(OutputError::io("read", target))?;
        entries += 1;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != marker && !known(&entry.path(), &name) {
            strangers.push(name);
        }
    }
    if entries == 0 {
        return Ok(());
    }
    if !names_us(&target.join(marker)) {
        return Err(not_ours(format!("it is not empty and holds no {marker} of nodecast")));
    }
    strangers.sort_unstable();
    match strangers.first() {
        None => Ok(()),
        Some(first) => Err(not_ours(format!("`{first}` in it was not written by nodecast"))),
    }
}

/// Whether `folder` is a report that this program wrote, with nothing added.
pub fn is_report(folder: &Path) -> bool {
    folder.is_dir() && check_replaceable(folder).is_ok()
}

/// Whether the JSON file at `path` says that this program wrote it.
fn names_us(path: &Path) -> bool {
    let Ok(text) = fs::read_to_string(path) else { return false };
    let Ok(summary) = serde_json::from_str::<serde_json::Value>(&text) else { return false };
    summary.get("program").and_then(serde_json::Value::as_str) == Some(PROGRAM)
}

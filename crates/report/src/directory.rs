//! An output directory that appears whole or not at all.
//!
//! Files are written into a hidden sibling of the target; when all are there, the two change places. What stood there before goes only
//! then, and only if this program wrote it and nobody has changed it since: `written.json` in a directory says what was written.
//!
//! A run holds the sibling from its beginning to its end, so that a second one into the same directory is told at once. What a killed
//! run has left the next one into the same directory clears away.

mod building;
mod whole_file;
mod written;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use flate2::Compression;
use flate2::write::GzEncoder;

use building::Building;
pub use building::hold_scratch;
pub use whole_file::write_whole;
pub(crate) use written::hexadecimal_digest;
use written::{Hashing, Stamps, manifest, stamps};
pub use written::{MANIFEST_FILE, check_written};

use crate::domain::words::refusal;

/// Names of the plots that a report may hold.
const PLOT_FILES: [&str; 6] = ["replicas.svg", "metrics.svg", "queues.svg", "nodes.svg", "pending.svg", "latency.svg"];

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

/// Whether a file is a table, which `--compress` compresses.
fn is_table(name: &str) -> bool {
    [".csv", ".jsonl", ".om"].iter().any(|ending| name.ends_with(ending))
}

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
    /// Another run is at work there, or was and could not clean up.
    #[error("another run writes into `{}`", path.display())]
    #[diagnostic(help(
        "wait for it, or choose another directory with --out; if there is none, remove `{}`", building.display()
    ))]
    Busy {
        /// The target.
        path: PathBuf,
        /// Where the other run writes until it is done.
        building: PathBuf,
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
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |reason| Self::Io { action, path: path.to_owned(), reason }
    }
}

/// A directory under construction. Dropped without [`commit`](Self::commit), it leaves nothing behind.
#[derive(Debug)]
pub struct OutputDirectory {
    target: PathBuf,
    building: Building,
    /// Digests of the files written so far.
    files: Mutex<BTreeMap<String, String>>,
    check: fn(&Path) -> Result<(), OutputError>,
    /// The files at the target when they were checked.
    checked: Option<Stamps>,
    compresses: bool,
}

impl OutputDirectory {
    /// Begins a directory that will stand at `target`. Nothing is written at `target` itself before `commit`.
    ///
    /// # Errors
    /// If `target` is a file, holds anything but a report of this program, is or contains the current directory, another run
    /// writes there, or its parent cannot be written to.
    pub fn begin(target: &Path) -> Result<Self, OutputError> {
        Self::begin_if(target, check_replaceable)
    }

    /// Begins a directory of another kind, which may take the place of whatever `check` lets go.
    ///
    /// # Errors
    /// As [`begin`](Self::begin), with `check` in place of its rule on what may be replaced.
    pub fn begin_if(target: &Path, check: fn(&Path) -> Result<(), OutputError>) -> Result<Self, OutputError> {
        // Before anything is made: what cannot be an output directory leaves no trace.
        check_name(target)?;
        let mut checked = stamps(target);
        check(target)?;
        let target = resolve(target)?;
        let (building, has_restored) = Building::claim(&target)?;
        // A killed run had left what stood here aside, and it is back now.
        if has_restored {
            checked = stamps(&target);
            check(&target)?;
        }
        Ok(Self { target, building, files: Mutex::default(), check, checked, compresses: false })
    }

    /// Whether `begin` would refuse `target`; creates nothing.
    ///
    /// # Errors
    /// As [`begin`](Self::begin), but for what only writing can tell.
    pub fn check(target: &Path) -> Result<(), OutputError> {
        check_name(target)?;
        check_replaceable(target)
    }

    /// Compresses tables with gzip if `compresses`: `pods.csv` becomes `pods.csv.gz`.
    #[must_use]
    pub fn compressing_tables(self, compresses: bool) -> Self {
        Self { compresses, ..self }
    }

    /// Writes one file; a folder in its name is made.
    ///
    /// # Errors
    /// Whatever the system or `content` returns.
    pub fn file(&self, name: &str, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), OutputError> {
        if self.compresses && is_table(name) {
            return self.store(&format!("{name}.gz"), |output| {
                // Lines come one by one, and the encoder takes long for each.
                let encoder = GzEncoder::new(output, Compression::default());
                let mut lines = BufWriter::with_capacity(WRITTEN_AT_ONCE, encoder);
                content(&mut lines)?;
                lines.into_inner().map_err(io::IntoInnerError::into_error)?.finish().map(|_| ())
            });
        }
        self.store(name, content)
    }

    /// Writes one file and keeps its digest.
    fn store(&self, name: &str, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), OutputError> {
        let digest = self.put(name, content)?;
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), digest);
        Ok(())
    }

    /// Writes one file; its digest.
    fn put(&self, name: &str, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<String, OutputError> {
        let path = self.building.path().join(name);
        let failed = |reason| OutputError::Io { action: "write", path: self.target.join(name), reason };
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
        let file = Hashing::new(fs::File::create(&path).map_err(failed)?);
        let mut output = BufWriter::with_capacity(WRITTEN_AT_ONCE, file);
        content(&mut output).map_err(failed)?;
        output.into_inner().map(Hashing::digest).map_err(|error| failed(error.into_error()))
    }

    /// Puts the directory in place and removes the one that stood there.
    ///
    /// # Errors
    /// Whatever the system returns, and if what stands there may not go any more; it still stands then.
    pub fn commit(self) -> Result<PathBuf, OutputError> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.put(MANIFEST_FILE, |output| output.write_all(manifest(&files).as_bytes()))?;
        let Self { target, building, check, checked, .. } = self;
        // Hashing all files again takes long, and their stamps show any change.
        let is_unchanged = |aside: &Path| checked.is_some() && stamps(aside) == checked;
        building.put_in_place(&target, |aside| if is_unchanged(aside) { Ok(()) } else { check(aside) })?;
        Ok(target)
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

/// The target without links.
fn resolve(target: &Path) -> Result<PathBuf, OutputError> {
    if target.exists() {
        return fs::canonicalize(target).map_err(OutputError::io("read", target));
    }
    // Its parent may be missing; then it lies below what there is.
    std::path::absolute(target).map_err(OutputError::io("read", target))
}

/// Whether `target` may go: it does not exist, is empty, or is a report that this program wrote, with nothing added.
fn check_replaceable(target: &Path) -> Result<(), OutputError> {
    check_written(target, "summary.json", &|entry, name| {
        (TABLE_FILES.contains(&name) || PLOT_FILES.contains(&name)) && !entry.is_dir()
    })
}

/// Whether `folder` is a report that this program wrote, with nothing added.
pub fn is_report(folder: &Path) -> bool {
    folder.is_dir() && check_replaceable(folder).is_ok()
}

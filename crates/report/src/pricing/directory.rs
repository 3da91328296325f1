//! A pricing-data directory made by an import: its tables, and `import.json`, which says where they came from and by which
//! a later import knows the directory as ours.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::SCHEMA_VERSION;
use crate::catalog::import::{FileAccount, Imported, RegionAccount};
use crate::directory::{MANIFEST_FILE, OutputDirectory, OutputError};
use crate::format::counted;
use crate::summary::PROGRAM;

/// The file by which an imported directory is known.
const RECORD_FILE: &str = "import.json";

/// Content of `import.json`.
#[derive(Serialize, schemars::JsonSchema)]
pub struct ImportRecord<'a> {
    schema_version: u32,
    program: &'static str,
    program_version: &'static str,
    files: &'a [FileAccount],
    regions: &'a BTreeMap<String, RegionAccount>,
    new_types: &'a [String],
    /// SHA-256 of each table, by path.
    tables: BTreeMap<&'a str, String>,
}

/// The part of `import.json` that tells ours from others.
#[derive(Deserialize)]
struct OwnRecord {
    program: String,
    tables: BTreeMap<String, String>,
}

/// Writes what was imported as the directory `out`, replacing an earlier import there as a whole. Returns the
/// directory's resolved path.
///
/// # Errors
/// If `out` cannot be written or holds anything but an import that nobody has changed since; it is then as it was.
pub fn write_import(imported: &Imported, out: &Path) -> Result<PathBuf, OutputError> {
    let record = ImportRecord {
        schema_version: SCHEMA_VERSION,
        program: PROGRAM,
        program_version: env!("CARGO_PKG_VERSION"),
        files: &imported.files,
        regions: &imported.regions,
        new_types: &imported.new_types,
        tables: imported.tables.iter().map(|(path, text)| (path.as_str(), digest(text.as_bytes()))).collect(),
    };
    let directory = OutputDirectory::begin_if(out, check_import)?;
    for (path, text) in &imported.tables {
        directory.file(path, |output| output.write_all(text.as_bytes()))?;
    }
    directory.file(RECORD_FILE, |output| {
        serde_json::to_writer_pretty(&mut *output, &record)?;
        output.write_all(b"\n")
    })?;
    directory.commit()
}

/// Whether `target` may be replaced by an import: it does not exist, is empty, or is an import that nobody has changed.
///
/// # Errors
/// What stands there instead.
pub fn check_import(target: &Path) -> Result<(), OutputError> {
    let not_ours = |why: String| Err(OutputError::NotOurs { path: target.to_owned(), why });
    if !target.exists() {
        return Ok(());
    }
    if !target.is_dir() {
        return not_ours("it is a file".to_owned());
    }
    let mut files = Vec::new();
    list_files(target, target, &mut files)?;
    if files.is_empty() {
        return Ok(());
    }
    let record = fs::read_to_string(target.join(RECORD_FILE)).ok();
    let record: Option<OwnRecord> = record.and_then(|text| serde_json::from_str(&text).ok());
    let Some(record) = record.filter(|record| record.program == PROGRAM) else {
        return not_ours(format!("it is not empty and holds no {RECORD_FILE} of nodecast"));
    };
    files.sort_unstable();
    for file in files.iter().filter(|file| *file != RECORD_FILE && *file != MANIFEST_FILE) {
        let Some(expected) = record.tables.get(file) else {
            return not_ours(format!("`{file}` in it was not written by nodecast"));
        };
        let path = target.join(file);
        let bytes = fs::read(&path).map_err(OutputError::io("read", &path))?;
        if digest(&bytes) != *expected {
            return not_ours(format!("`{file}` in it was changed after the import"));
        }
    }
    Ok(())
}

/// Every file below `directory` by its path from `root`. An empty folder counts as a file, so that it is not lost.
fn list_files(root: &Path, directory: &Path, files: &mut Vec<String>) -> Result<(), OutputError> {
    let mut entries = 0_usize;
    for entry in fs::read_dir(directory).map_err(OutputError::io("read", directory))? {
        let entry = entry.map_err(OutputError::io("read", directory))?;
        let path = entry.path();
        entries += 1;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            list_files(root, &path, files)?;
        } else {
            files.push(name_below(root, &path));
        }
    }
    if entries == 0 && directory != root {
        files.push(name_below(root, directory));
    }
    Ok(())
}

fn name_below(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What was taken from each file and what was not, for people.
pub fn import_account(imported: &Imported) -> String {
    let accounts = || imported.files.iter().flat_map(|file| file.kinds.values());
    let taken: u64 = accounts().map(|account| account.taken).sum();
    let skipped: u64 = accounts().flat_map(|account| account.skipped.values()).map(|skipped| skipped.count).sum();
    let mut lines = vec![format!(
        "imported {} from {}, {skipped} left out",
        counted(taken, "record", "records"),
        counted(imported.files.len() as u64, "file", "files")
    )];
    for file in &imported.files {
        lines.push(file.file.clone());
        for (kind, account) in &file.kinds {
            let (one, many) = kind.names();
            let skipped: u64 = account.skipped.values().map(|skipped| skipped.count).sum();
            let rest = if skipped > 0 {
                format!(", {} left out", counted(skipped, "record", "records"))
            } else {
                String::new()
            };
            lines.push(format!("  {} taken{rest}", counted(account.taken, one, many)));
            for (reason, skipped) in &account.skipped {
                let example =
                    if skipped.example.is_empty() { String::new() } else { format!(" (first: {})", skipped.example) };
                lines.push(format!("    {}: {reason}{example}", counted(skipped.count, "record", "records")));
            }
        }
    }
    for (region, account) in &imported.regions {
        let mut parts = Vec::new();
        for (count, one, many) in [
            (account.on_demand, "On-Demand price", "On-Demand prices"),
            (account.own, "price by contract", "prices by contract"),
            (account.spot, "Spot price", "Spot prices"),
            (account.offerings, "new offer by a zone", "new offers by a zone"),
        ] {
            if count > 0 {
                parts.push(counted(count, one, many));
            }
        }
        if parts.is_empty() {
            parts.push("nothing new".to_owned());
        }
        let dates = match (&account.oldest, &account.newest) {
            (Some(oldest), Some(newest)) if oldest == newest => format!(", of {newest}"),
            (Some(oldest), Some(newest)) => format!(", of {oldest} to {newest}"),
            _ => String::new(),
        };
        lines.push(format!("{region}: {}{dates}", parts.join(", ")));
    }
    if !imported.new_types.is_empty() {
        lines.push(format!("new instance types: {}", imported.new_types.join(", ")));
    }
    lines.join("\n") + "\n"
}

//! Counting agreement: one line for each disagreement, a total at the end.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fields::{self, list};

/// What a suite found.
#[derive(Default, Debug)]
pub struct Tally {
    /// Cases that agree.
    pub agreed: usize,
    /// Cases compared.
    pub compared: usize,
    /// One line for each disagreement: the case, then the first difference.
    pub disagreements: Vec<String>,
    /// Lines for cases without an expectation, which are only run.
    pub measured: Vec<String>,
}

impl Tally {
    /// Counts one case; `Err` holds the first difference.
    pub fn count(&mut self, case: &str, outcome: Result<(), String>) {
        self.compared += 1;
        match outcome {
            Ok(()) => self.agreed += 1,
            Err(difference) => self.disagreements.push(format!("{case}: {difference}")),
        }
    }
}

/// What a case comes to; one that cannot be read or that panics is a difference like any other, so that those after it are
/// compared all the same.
pub fn guarded<T>(case: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(case)).unwrap_or_else(|_| Err("it panicked".to_owned()))
}

/// Every file below `paths` (files stand for themselves, folders for the files in them) whose name ends in one of
/// `endings`, in order of name.
pub fn files(paths: &[PathBuf], endings: &[&str]) -> std::io::Result<Vec<PathBuf>> {
    let wanted = |path: &Path| endings.iter().any(|ending| path.to_string_lossy().ends_with(ending));
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            for entry in std::fs::read_dir(path)? {
                let path = entry?.path();
                if path.is_file() && wanted(&path) {
                    found.push(path);
                }
            }
        } else {
            found.push(path.clone());
        }
    }
    found.sort();
    Ok(found)
}

/// The JSON value in a file, which may be compressed with gzip; a problem is told with the file's name.
pub fn read_json(path: &Path) -> Result<Value, String> {
    let told = |problem: String| format!("{}: {problem}", path.display());
    let mut bytes = std::fs::read(path).map_err(|error| told(error.to_string()))?;
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain).map_err(|error| told(error.to_string()))?;
        bytes = plain;
    }
    serde_json::from_slice(&bytes).map_err(|error| told(error.to_string()))
}

/// Hands every case below `paths` to `ask`, with its file: files with one case, or with a list `cases`; gzip or not.
pub fn each_case(paths: &[PathBuf], mut ask: impl FnMut(&Path, &Value)) -> Result<(), String> {
    for path in files(paths, &[".json", ".json.gz"]).map_err(|error| error.to_string())? {
        let file = read_json(&path)?;
        let cases = if file["cases"].is_null() { std::slice::from_ref(&file) } else { list(&file, "cases")? };
        cases.iter().for_each(|case| ask(&path, case));
    }
    Ok(())
}

/// Counts for every case below `paths` whether `check` finds that the decisions agree.
pub fn run_cases(paths: &[PathBuf], check: fn(&Value) -> Result<(), String>) -> Result<Tally, String> {
    let mut tally = Tally::default();
    each_case(paths, |_, case| {
        let name = ["id", "name"].iter().filter_map(|key| case[*key].as_str()).collect::<Vec<_>>().join(" ");
        tally.count(&name, guarded(|| check(case)));
    })?;
    Ok(tally)
}

/// A suite: compares the cases of files, with catalogs of instance types from a folder if one is given.
pub type Suite = fn(&[PathBuf], Option<&Path>) -> Result<Tally, String>;

/// Runs a suite on files of `tests/cases`. Panics with every disagreement, or if a case is not compared at all.
pub fn assert_all_agree(suite: Suite, files: &[&str], cases: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
    let tally = suite(&paths, None).unwrap_or_else(|problem| panic!("{problem}"));
    assert!(tally.disagreements.is_empty(), "{}", tally.disagreements.join("\n"));
    assert_eq!((tally.agreed, tally.compared), (cases, cases));
    assert_eq!(fields::unread(), Vec::<String>::new(), "fields of the cases that nothing reads");
}

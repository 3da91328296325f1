//! What was kept, as policies of a scenario in a folder: what `recommend --write` writes.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::session::{Session, told};
use crate::program::Failure;
use crate::program::edits;
use crate::program::recommend::{Change, Origin};
use crate::recommend::controls::State;
use crate::report::directory::check_written;
use crate::report::summary::PROGRAM;
use crate::report::{OutputDirectory, OutputError};
use crate::scenario::Limits;

/// The file that says whose the folder is.
const MARKER: &str = "studio.json";
/// States that are written at once.
const ENTRIES_MAX: usize = 20;
/// Letters of a policy's name.
const NAME_MAX: usize = 40;

/// A state under a name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    name: String,
    values: State,
}

/// The folder holds something else.
fn check(folder: &std::path::Path) -> Result<(), OutputError> {
    check_written(folder, MARKER, &|_, _| false)
}

impl Session {
    /// The folder that is written into.
    pub(super) fn folder(&self) -> PathBuf {
        let make = || PathBuf::from(format!("{}-studio", self.scenario.name));
        self.request.folder.clone().unwrap_or_else(make)
    }

    /// Writes states as policies; what was written and the commands that confirm it.
    ///
    /// # Errors
    /// Why it cannot be done, for people.
    pub(super) fn write(&self, entries: &[Entry]) -> Result<Value, String> {
        if entries.is_empty() || entries.len() > ENTRIES_MAX {
            return Err(format!("you can save 1 to {ENTRIES_MAX} states at once"));
        }
        let mut taken: Vec<String> = self.scenario.policies.iter().map(|policy| policy.name.clone()).collect();
        taken.push("scenario".to_owned());
        let mut changes = Vec::new();
        let mut kept = Vec::new();
        for entry in entries {
            let (setting, _) = self.setting(&entry.values)?;
            if setting.is_empty() {
                return Err(format!("`{}` is identical to today; nothing to save", shown(&entry.name)));
            }
            let policy = free_name(&entry.name, &taken);
            taken.push(policy.clone());
            kept.push(json!({
                "policy": policy, "name": shown(&entry.name), "changes": self.ready()?.controls.words(&entry.values), "set": edits::texts(&setting),
            }));
            let (objects, after) = (format!("{policy}.yaml"), format!("after-{policy}.yaml"));
            changes.push(Change { policy, setting, objects, after, patch: None });
        }
        self.write_changes(&changes, &kept).map_err(|failure| told(&failure))
    }

    fn write_changes(&self, changes: &[Change], kept: &[Value]) -> Result<Value, Failure> {
        let folder = self.folder();
        let directory = OutputDirectory::begin_if(&folder, check).map_err(Failure::of_report)?;
        let origin = Origin {
            file: &self.request.scenario,
            edits: &self.request.edits,
            catalog: self.prices.catalog(),
            scenario: &self.scenario,
            policy: &self.policy,
            pricing_data: self.request.pricing_data.as_deref(),
        };
        let marker = json!({
            "schema_version": 1, "program": PROGRAM, "program_version": env!("CARGO_PKG_VERSION"),
            "scenario": self.request.scenario.display().to_string(), "policy": self.policy, "kept": kept,
        });
        let marker = serde_json::to_string_pretty(&marker).map_err(Failure::of_report)? + "\n";
        let written = origin.write((directory, &folder), (MARKER, &marker), changes)?;
        // What is there now is read as anybody would read it.
        crate::scenario::load_with(&folder.join("scenario.yaml"), self.prices.catalog(), &Limits::default())?;
        Ok(json!({
            "folder": folder.display().to_string(), "objects": written.objects, "commands": written.confirm,
            "policies": changes.iter().map(|change| change.policy.as_str()).collect::<Vec<_>>(),
        }))
    }
}

fn shown(name: &str) -> String {
    name.chars().filter(|character| !character.is_control()).take(NAME_MAX).collect()
}

/// A name as policies and files have it, with a number behind it if it is taken.
fn free_name(name: &str, taken: &[String]) -> String {
    let plain = |character: char| if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '-' };
    let letters: String = name.chars().take(NAME_MAX).map(plain).collect();
    let parts: Vec<&str> = letters.split('-').filter(|part| !part.is_empty()).collect();
    let base = if parts.is_empty() { "changed".to_owned() } else { parts.join("-") };
    let mut this_base = base.clone();
    let mut number = 2;
    while taken.contains(&this_base) {
        this_base = format!("{base}-{number}");
        number += 1;
    }
    this_base
}

#[cfg(test)]
mod tests {
    use super::free_name;

    #[test]
    fn any_text_becomes_valid_policy_name() {
        let taken = ["calm".to_owned()];
        assert_eq!(free_name("Calm", &taken), "calm-2");
        assert_eq!(free_name("../../etc/passwd", &taken), "etc-passwd");
        assert_eq!(free_name("\u{0}\n<b>", &taken), "b");
        assert_eq!(free_name("", &taken), "changed");
    }
}

//! An observation as files in a folder.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use nodecast_model::domain::words::refusal;
use nodecast_model::text::InputError;

use crate::gzip;

use super::about::{About, SCHEMA_VERSION};
use super::tables::{self, Event, Row};
use super::{Observation, of_run};

/// The file that makes a folder an observation.
pub const ABOUT_FILE: &str = "observation.json";
const EVENTS_FILE: &str = "events.jsonl";

impl Observation {
    /// Its files, in order of writing: names, and what writes each. A table that nothing recorded has no file.
    fn written<'o>(&'o self) -> Vec<(&'static str, Written<'o>)> {
        let mut files: Vec<(&'static str, Written<'o>)> = Vec::new();
        let mut put = |name, written: Option<Written<'o>>| files.extend(written.map(|written| (name, written)));
        put("workloads.csv", table(self.workloads.as_deref()));
        put("memory.csv", table(self.memory.as_deref()));
        put("nodes.csv", table(self.nodes.as_deref()));
        put("node_counts.csv", table(self.node_counts.as_deref()));
        put("pods.csv", table(self.pods.as_deref()));
        put("placements.csv", table(self.placements.as_deref()));
        put("pending.csv", table(self.pending.as_deref()));
        put("autoscalers.csv", table(self.autoscalers.as_deref()));
        put("counts.csv", table(self.counts.as_deref()));
        put("stages.csv", table(self.stages.as_deref()));
        put("spot_prices.csv", table(self.spot_prices.as_deref()));
        let events = self.events.as_deref().map(|events| -> Written<'_> {
            Box::new(move |to| {
                events.iter().try_for_each(|event| {
                    serde_json::to_writer(&mut *to, event)?;
                    to.write_all(b"\n")
                })
            })
        });
        put(EVENTS_FILE, events);
        let about: Written<'_> = Box::new(|to| {
            serde_json::to_writer_pretty(&mut *to, &self.about)?;
            to.write_all(b"\n")
        });
        // Last, so that a folder is an observation once it is whole.
        put(ABOUT_FILE, Some(about));
        files
    }

    /// Its files: names and contents, in order of writing. A table that nothing recorded has no file.
    pub fn files(&self) -> Vec<(&'static str, Vec<u8>)> {
        let contents = |written: &Written<'_>| {
            let mut bytes = Vec::new();
            written(&mut bytes).expect("a vector takes all bytes, and texts and numbers are JSON");
            bytes
        };
        self.written().iter().map(|(name, written)| (*name, contents(written))).collect()
    }

    /// Writes its files into `folder`, which is made if it is missing. What an earlier observation left there goes.
    ///
    /// # Errors
    /// If a file of one of its names is no observation's, or the system refuses.
    pub fn write(&self, folder: &Path) -> Result<(), InputError> {
        let unwritable = |path: &Path, error: &std::io::Error| {
            InputError::new(format!("cannot write {}: {}", path.display(), refusal(error)))
        };
        refuse_others(folder)?;
        std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        let files = self.written();
        // Everything is there before anything takes its place.
        for (name, written) in &files {
            let part = folder.join(format!(".{name}.part"));
            let put = || {
                let mut to = BufWriter::new(File::create(&part)?);
                written(&mut to)?;
                to.flush()
            };
            put().map_err(|error| unwritable(&part, &error))?;
        }
        for name in NAMES.iter().filter(|name| !files.iter().any(|(key, _)| key == *name)) {
            let path = folder.join(name);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(unwritable(&path, &error)),
                _ => {}
            }
        }
        for (name, _) in &files {
            let path = folder.join(name);
            std::fs::rename(folder.join(format!(".{name}.part")), &path).map_err(|error| unwritable(&path, &error))?;
        }
        Ok(())
    }

    /// Reads the observation in `folder`, which may be the output of a run as well.
    ///
    /// # Errors
    /// If it holds neither, or a file cannot be read.
    pub fn read(folder: &Path) -> Result<Self, InputError> {
        let Some(text) = text_of(folder, ABOUT_FILE)? else { return of_run::read(folder) };
        let about: About = serde_json::from_str(&text).map_err(|error| {
            let place = format!("{}:{}:{}", folder.join(ABOUT_FILE).display(), error.line(), error.column());
            InputError::new(format!("{place}: is not the account of an observation: {error}"))
        })?;
        if about.schema_version > SCHEMA_VERSION {
            return Err(InputError::new(format!(
                "{} has layout {}, and this release reads up to {SCHEMA_VERSION}",
                folder.join(ABOUT_FILE).display(),
                about.schema_version
            )));
        }
        Ok(Self {
            about,
            workloads: rows(folder, "workloads.csv")?,
            memory: rows(folder, "memory.csv")?,
            nodes: rows(folder, "nodes.csv")?,
            node_counts: rows(folder, "node_counts.csv")?,
            pods: rows(folder, "pods.csv")?,
            placements: rows(folder, "placements.csv")?,
            pending: rows(folder, "pending.csv")?,
            autoscalers: rows(folder, "autoscalers.csv")?,
            counts: rows(folder, "counts.csv")?,
            stages: rows(folder, "stages.csv")?,
            spot_prices: rows(folder, "spot_prices.csv")?,
            events: events(folder)?,
        })
    }
}

/// A folder that is no observation's may hold files of the same names, which are somebody else's.
fn refuse_others(folder: &Path) -> Result<(), InputError> {
    let about = std::fs::read_to_string(folder.join(ABOUT_FILE)).ok();
    if about.is_some_and(|text| serde_json::from_str::<serde_json::Value>(&text).is_ok()) {
        return Ok(());
    }
    match NAMES.iter().find(|name| std::fs::symlink_metadata(folder.join(name)).is_ok()) {
        None => Ok(()),
        Some(name) => {
            Err(InputError::new(format!("`{name}` in {} was not written by nodecast observe", folder.display()))
                .help("name another folder with --out, or remove the file yourself"))
        }
    }
}

/// Every file that an observation may have.
const NAMES: [&str; 13] = [
    "workloads.csv",
    "memory.csv",
    "nodes.csv",
    "node_counts.csv",
    "pods.csv",
    "placements.csv",
    "pending.csv",
    "autoscalers.csv",
    "counts.csv",
    "stages.csv",
    "spot_prices.csv",
    EVENTS_FILE,
    ABOUT_FILE,
];

/// What writes a file.
type Written<'o> = Box<dyn Fn(&mut dyn Write) -> std::io::Result<()> + 'o>;

fn table<R: Row>(rows: Option<&[R]>) -> Option<Written<'_>> {
    rows.map(|rows| -> Written<'_> { Box::new(move |to| tables::write(rows, to)) })
}

/// The text of a file of the folder; `None` if it is not there.
pub(super) fn text_of(folder: &Path, name: &str) -> Result<Option<String>, InputError> {
    let plain = folder.join(name);
    let path = gzip::present(&plain).unwrap_or(plain);
    let text = gzip::read(&path, u64::MAX).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
    });
    match text {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && folder.is_dir() => Ok(None),
        Err(error) => Err(InputError::new(format!("cannot read {}: {}", path.display(), refusal(&error)))),
    }
}

/// The rows of a table of the folder; `None` if it is not there.
pub(super) fn rows<R: Row>(folder: &Path, name: &str) -> Result<Option<Vec<R>>, InputError> {
    let text = text_of(folder, name)?;
    text.map(|text| tables::read(text.as_bytes(), &folder.join(name).display().to_string())).transpose()
}

/// The events of the folder; `None` if there is no such file.
pub(super) fn events(folder: &Path) -> Result<Option<Vec<Event>>, InputError> {
    let Some(text) = text_of(folder, EVENTS_FILE)? else { return Ok(None) };
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty());
    lines
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|error| {
                let place = format!("{}:{}:{}", folder.join(EVENTS_FILE).display(), number + 1, error.column());
                InputError::new(format!("{place}: is not an event: {error}"))
            })
        })
        .collect::<Result<Vec<_>, _>>()
        .map(Some)
}

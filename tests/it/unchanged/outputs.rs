//! A run of a scenario, and the bytes that it leaves.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use nodecast::catalog::Catalog;
use nodecast::report::tables;
use nodecast::scenario::{Edit, Limits};
use nodecast::simulation::{self, Outcome};

/// The files that are held to the byte.
pub const FILES: [&str; 4] = ["events.jsonl", "pods.csv", "nodes.csv", "bill.csv"];
/// The program that simulates in place of the one that is tested.
const PROGRAM: &str = "NODECAST_PROGRAM";

/// File to bytes.
pub type Written = BTreeMap<&'static str, Vec<u8>>;

/// One policy of a scenario with the scenario's seed.
pub struct Run {
    pub name: String,
    pub about: String,
    pub scenario: PathBuf,
    pub policy: String,
    /// In place of the scenario's.
    pub duration: Option<String>,
}

impl Run {
    pub fn simulate(&self) -> Outcome {
        let catalog = Catalog::embedded().unwrap();
        let edits: Vec<Edit> = self.duration.iter().map(|duration| Edit::new("duration", duration).unwrap()).collect();
        let (scenario, _) = nodecast::scenario::load_edited(&self.scenario, catalog, &Limits::default(), &edits)
            .unwrap_or_else(|error| panic!("{}: {error:?}", self.name));
        let policy = scenario.for_policy(Some(&self.policy)).unwrap();
        simulation::run(&scenario, policy, catalog, scenario.seed, &mut |_| {}).unwrap()
    }

    /// What the run writes: simulated here, or by the program that [`PROGRAM`] names.
    pub fn written(&self) -> Written {
        if let Some(program) = std::env::var_os(PROGRAM) {
            return self.written_by(&program);
        }
        let outcome = self.simulate();
        let bytes = |table: tables::Table| tables::bytes(table, &outcome).unwrap();
        FILES
            .into_iter()
            .zip([tables::events as tables::Table, tables::pods, tables::nodes, tables::bill].map(bytes))
            .collect()
    }

    /// What `program` writes of it.
    pub fn written_by(&self, program: &OsStr) -> Written {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("report");
        let mut command = Command::new(program);
        command.arg("run").arg(&self.scenario).args(["--policy", &self.policy, "--quiet", "--out"]).arg(&out);
        if let Some(duration) = &self.duration {
            command.args(["--duration", duration]);
        }
        let output = command.output().unwrap_or_else(|error| panic!("{}: {error}", Path::new(program).display()));
        assert!(output.status.success(), "{}: {}", self.name, String::from_utf8_lossy(&output.stderr));
        FILES.into_iter().map(|file| (file, std::fs::read(out.join(file)).unwrap())).collect()
    }
}

//! The action for GitHub does what it says: its step that checks is run here as a runner does.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The action as data.
fn action() -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    serde_saphyr::from_str(&std::fs::read_to_string(root.join("action.yml")).unwrap()).unwrap()
}

/// A directory with a baseline of a short scenario, and what the step leaves there.
struct Runner {
    place: tempfile::TempDir,
}

impl Runner {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let program = program();
        let made = Command::new(&program).args(["init", "."]).current_dir(place.path()).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let update = ["check", "--baseline", "b.json", "--update", "--replications", "1", "--quiet", "scenario.yaml"];
        let set = ["--set", "duration=1h"];
        let made = Command::new(&program).args(update).args(set).current_dir(place.path()).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        Self { place }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Runs the step that checks with these arguments.
    fn check(&self, args: &str) -> Output {
        let action = action();
        let step = action["runs"]["steps"].as_array().unwrap().iter().find(|step| step["id"] == "check").unwrap();
        let folder = program();
        let path = format!("{}:{}", folder.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let bash = ["--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"].as_str().unwrap()];
        let environment = [("BASELINE", "b.json"), ("ARGS", args)];
        let files = [("GITHUB_OUTPUT", "outputs"), ("GITHUB_STEP_SUMMARY", "summary.md")];
        Command::new("bash")
            .args(bash)
            .current_dir(self.place.path())
            .env("PATH", path)
            .env("TEMP", self.place.path())
            .envs(environment)
            .envs(files.map(|(name, file)| (name, self.file(file))))
            .output()
            .unwrap()
    }
}

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_nodecast"))
}

#[test]
fn the_action_checks_and_says_what_moved() {
    let runner = Runner::new();
    let same = runner.check("--set duration=1h --quiet");
    assert!(same.status.success(), "{same:?}");
    let outputs = std::fs::read_to_string(runner.file("outputs")).unwrap();
    for file in ["nodecast.md", "nodecast.xml"] {
        assert!(outputs.contains(file) && runner.file(file).is_file(), "{outputs}");
    }
    let dearer = runner.check("--set duration=1h --set 'load[0].requests.scale=4' --tolerance 1%");
    assert_eq!(dearer.status.code(), Some(1), "{dearer:?}");
    let summary = std::fs::read_to_string(runner.file("summary.md")).unwrap();
    assert!(summary.contains("cost") && summary.contains("worse"), "{summary}");
    assert_eq!(runner.check("--no-such-option").status.code(), Some(2));
}

#[test]
fn action_steps_read_existing_inputs() {
    let text = action().to_string();
    let inputs = action()["inputs"].as_object().unwrap().clone();
    for name in inputs.keys() {
        assert!(text.contains(&format!("inputs.{name}")), "nothing reads the input {name}");
    }
    for used in text.split("inputs.").skip(1) {
        let name: String = used.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        assert!(inputs.contains_key(&name), "there is no input {name}");
    }
}

//! Commands in code blocks of the documentation: each runs in a test, or has a reason why it cannot.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::Place;

/// Programs that the tests do not start, and where their commands are tested.
const OTHER_PROGRAMS: &[(&str, &str)] = &[
    ("kubectl", "needs a cluster; kubectl_plugin.rs runs the plug-in"),
    ("known=$(kubectl", "needs a cluster; guide.rs compares the kinds"),
    ("kinds=", "needs a cluster; guide.rs compares the kinds"),
    ("aws", "needs an account"),
    ("curl", "needs a Prometheus; .ci/testbed asks one"),
    ("promtool", "needs a Prometheus; .ci/testbed starts one"),
    ("prometheus", "needs a Prometheus; .ci/testbed starts one"),
    ("PROMETHEUS=", "needs a Prometheus; observe.rs reads saved answers"),
    ("cargo", "builds the project: .ci/run and .ci/long"),
    ("PROPTEST_CASES=", "builds the project: .ci/long"),
    ("NODECAST_", "builds the project: .ci/long"),
    (".ci/", "a step of the gate itself"),
    ("pip", "installs packages: step `python` of .ci/run"),
    ("python", "needs packages: steps `ray` and `studio-in-browser` of .ci/run"),
    ("check-jsonschema", "needs a package; schema.rs validates scenarios"),
    ("docker", "needs a builder: step `image` of .ci/run"),
    ("tar", "needs a release: release/test"),
    ("cd", "needs a release: release/test"),
    ("./nodecast", "needs a release: release/test"),
    ("sha256sum", "needs a release: release/test"),
    ("gh", "needs a published release"),
    ("for", "needs valgrind"),
    ("valgrind", "needs valgrind"),
    ("done", "needs valgrind"),
];

/// Commands of nodecast, by their begin, that need what a test here does not have, and the file that tests them.
const EXCUSED: &[(&str, &str)] = &[
    ("nodecast studio", "studio.rs: it serves until Ctrl-C"),
    ("nodecast observe --from", "observe.rs: it needs a Prometheus or its answers"),
    ("nodecast calibrate", "calibrate.rs: it needs records of a cluster"),
    ("nodecast backtest my-cluster", "backtest.rs: it needs a record of two weeks"),
    ("nodecast backtest replayed", "backtest.rs: it needs a record and a bill"),
    ("nodecast init replayed", "observe.rs: it needs an observation"),
    ("nodecast init my-cluster --from cluster.yaml --from observed", "observe.rs: it needs an observation"),
    ("nodecast diff --base", "action.rs: it needs two commits"),
    ("nodecast compare scenarios/spot-storm/scenario.yaml --replications 200", "experiments.rs: it takes minutes"),
    ("nodecast compare scenarios/spot-storm/scenario.yaml --precision", "experiments.rs: it takes minutes"),
    ("nodecast run plain-month", "whole_clusters.rs: a month of a large cluster"),
];

/// A page, and the directory that its commands run in.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    paths.extend(["README.md", "CONTRIBUTING.md", "python/README.md"].map(|name| root.join(name)));
    paths.sort();
    let name = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// The commands of a page's shell blocks: lines, joined where one continues; after `$` if the block shows output too.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let blocks = ["```sh\n", "```console\n"].into_iter().flat_map(|fence| text.split(fence).skip(1));
    for block in blocks.map(|rest| rest.split("```").next().unwrap()) {
        let has_output = block.lines().any(|line| line.starts_with("$ "));
        let mut command = String::new();
        for line in block.lines() {
            let line = if has_output { line.strip_prefix("$ ").unwrap_or_default() } else { line };
            command += line;
            if command.ends_with('\\') || command.matches('\'').count() % 2 == 1 {
                command.push('\n');
            } else if !command.trim().is_empty() {
                found.push(std::mem::take(&mut command).trim().to_owned());
            }
        }
    }
    found
}

/// Why a command does not run here; `None` if it does.
fn excuse(command: &str) -> Option<&'static str> {
    let is_own = command.starts_with("nodecast ");
    let table = if is_own { EXCUSED } else { OTHER_PROGRAMS };
    table.iter().find(|(begin, _)| command.starts_with(begin)).map(|(_, reason)| *reason)
}

#[test]
fn every_documented_command_runs_or_is_excused() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut used = BTreeSet::new();
    let mut run = 0;
    for (page, text) in pages() {
        for command in commands(&text) {
            let reason = excuse(&command);
            assert!(
                reason.is_some() || command.starts_with("nodecast "),
                "{page}: `{command}` neither runs nor has a reason"
            );
            run += usize::from(reason.is_none());
            used.extend(reason);
            // Files of the repository that a command names exist.
            let named = command.split_whitespace().filter(|word| !word.contains(['*', '=', '<']));
            for word in named.filter(|word| {
                [".ci/", "deploy/", "tests/", "python/", "scenarios/"].iter().any(|start| word.starts_with(start))
            }) {
                let is_example = ["scenarios/web.yaml", "scenarios/batch.yaml"].contains(&word);
                assert!(is_example || root.join(word).exists(), "{page}: {word} in `{command}`");
            }
        }
    }
    assert!(run > 40, "{run} commands run");
    let idle: Vec<_> = OTHER_PROGRAMS.iter().chain(EXCUSED).filter(|(_, reason)| !used.contains(reason)).collect();
    assert!(idle.is_empty(), "reasons that no command needs: {idle:?}");
    for (_, reason) in EXCUSED {
        let file = reason.split(':').next().unwrap();
        assert!(root.join("tests/it").join(file).is_file(), "{file}");
    }
}

/// Runs the program with shorter simulations than the documentation's: unoptimised builds are slow.
const SHORTENED: &str = r#"#!/bin/sh
case "$1 $*" in
explain*|init*|*--baseline*) ;;
run\ *) set -- "$@" --duration LENGTH ;;
compare\ *--replications*|sweep\ *--replications*|diff\ *--replications*) set -- "$@" --duration LENGTH ;;
compare\ *|sweep\ *|diff\ *) set -- "$@" --duration LENGTH --replications 2 ;;
recommend\ *) set -- "$@" --duration LENGTH --simulations 40 ;;
rightsize\ *) set -- "$@" --duration LENGTH --replications 1 ;;
esac
exec PROGRAM "$@"
"#;

/// A directory with the files that the documentation's commands name.
fn prepared(page: &str) -> Place {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = Place::new();
    let scenario = fs::read_to_string(place.path("scenario.yaml")).unwrap();
    fs::copy(place.path("cluster.yaml"), place.path("objects.yaml")).unwrap();
    fs::copy(root.join("tests/data/dump/cluster.yaml"), place.path("cluster.yaml")).unwrap();
    let scenario = scenario.replace("cluster.yaml", "objects.yaml");
    for name in ["scenario.yaml", "before.yaml", "after.yaml"] {
        place.put(name, &scenario);
    }
    for name in ["prod.yaml", "staging.yaml"] {
        fs::copy(root.join("tests/data/dump/small.yaml"), place.path(name)).unwrap();
    }
    place.put("shop.yaml", &scenario);
    place.put("changed.yaml", &scenario);
    place.put("fleet.yaml", "fleet: own\nclusters: [{name: shop, scenario: shop.yaml}]\n");
    fs::create_dir_all(place.path("scenarios")).unwrap();
    for entry in fs::read_dir(root.join("scenarios")).unwrap().map(|entry| entry.unwrap()) {
        symlink(entry.path(), place.path("scenarios").join(entry.file_name())).unwrap();
    }
    // A page of its own has scenarios of this name.
    if page == "docs/ci.md" {
        fs::remove_file(place.path("scenarios/eks-addons.yaml")).unwrap();
        for name in ["scenarios/web.yaml", "scenarios/batch.yaml"] {
            place.put(name, &scenario.replace("objects.yaml", "../objects.yaml").replace("two-pods", &name[10..13]));
        }
    }
    let length = if page == "docs/recommend.md" { "40m" } else { "5m" };
    let program = env!("CARGO_BIN_EXE_nodecast");
    place.put("bin/nodecast", &SHORTENED.replace("LENGTH", length).replace("PROGRAM", program));
    fs::set_permissions(place.path("bin/nodecast"), fs::Permissions::from_mode(0o755)).unwrap();
    place
}

/// Runs a command of a page with the shell; its output and exit code.
fn shell(place: &Place, command: &str) -> (String, Option<i32>) {
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
    let home = place.path("home");
    for directory in [".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"] {
        fs::create_dir_all(home.join(directory)).unwrap();
    }
    let output = Command::new("sh")
        .args(["-c", command])
        .env("PATH", path)
        .env("HOME", &home)
        .current_dir(place.path("."))
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.code())
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn documented_commands_succeed_in_order() {
    let mut run: BTreeMap<String, usize> = BTreeMap::new();
    let mut failed = Vec::new();
    // guide.rs runs the guide, with the edits that it describes between its commands.
    for (page, text) in pages().into_iter().filter(|(page, _)| page != "docs/guide.md") {
        let commands: Vec<String> = commands(&text).into_iter().filter(|command| excuse(command).is_none()).collect();
        if commands.is_empty() {
            continue;
        }
        let place = prepared(&page);
        if !commands.iter().any(|command| command.starts_with("nodecast init my-cluster")) {
            let (text, code) = shell(&place, "nodecast init my-cluster --from cluster.yaml");
            assert_eq!(code, Some(0), "{text}");
        }
        for command in commands {
            let (text, code) = shell(&place, &command);
            if code != Some(0) {
                failed.push(format!("{page}: {command}\n{text}"));
            }
            *run.entry(page.clone()).or_default() += 1;
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // Every page that has commands of its own.
    assert!(run.len() > 8, "{run:?}");
}

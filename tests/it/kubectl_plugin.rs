//! `kubectl nodecast`: the plugin asks for what `init` reads, with a kubectl that writes down what it was asked.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use nodecast::scenario::draft::{RANKS, RESOURCES};

use crate::cli::Place;

const PLUGIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/kubectl/kubectl-nodecast");
/// A dump with everything in it, which the fake kubectl prints whatever it is asked.
const DUMP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/dump/cluster.yaml");

/// Runs the plugin; answers with its output, errors and code, and what kubectl was asked.
fn plugin(place: &Place, arguments: &[&str]) -> (String, String, Option<i32>, Vec<String>) {
    let program = env!("CARGO_BIN_EXE_nodecast");
    fs::create_dir_all(place.path("bin")).unwrap();
    let kinds: Vec<&str> = RESOURCES.iter().copied().filter(|name| !name.contains("keda")).collect();
    let kubectl = format!(
        "#!/bin/sh\necho \"$*\" >> '{}'\ncase \"$*\" in\n*api-resources*) printf '%s\\n' {} secrets ;;\n*configmaps*) ;;\n*) cat '{DUMP}' ;;\nesac\n",
        place.path("asked").display(),
        kinds.join(" "),
    );
    place.put("bin/kubectl", &kubectl);
    fs::set_permissions(place.path("bin/kubectl"), fs::Permissions::from_mode(0o755)).unwrap();
    let _ = symlink(program, place.path("bin/nodecast"));
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .arg(PLUGIN)
        .args(arguments)
        .env("PATH", path)
        .env("TMPDIR", place.path("."))
        .current_dir(place.path("."))
        .output()
        .unwrap();
    let asked = fs::read_to_string(place.path("asked")).unwrap_or_default();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code(), asked.lines().map(str::to_owned).collect())
}

#[test]
fn plugin_requests_exactly_the_init_kinds() {
    let script = fs::read_to_string(PLUGIN).unwrap();
    let list = |name: &str| -> Vec<String> {
        let (_, rest) = script.split_once(&format!("\n{name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.split_whitespace().map(str::to_owned).collect()
    };
    let asked: BTreeSet<String> = list("NAMESPACED").into_iter().chain(list("WHOLE")).collect();
    assert_eq!(asked, RESOURCES.iter().map(|&name| name.to_owned()).collect());
    assert!(RANKS.ends_with(&format!("/{}", script.split_once("\nRANKS=").unwrap().1.lines().next().unwrap())));
    // It only reads.
    for verb in ["apply", "create", "delete", "edit", "patch", "replace", "annotate", "label", "secret"] {
        assert!(!script.contains(&format!("kube {verb}")) && !script.contains("secrets"), "{verb}");
    }
    assert!(fs::metadata(PLUGIN).unwrap().permissions().mode() & 0o111 != 0, "it can be run");
}

#[test]
fn plugin_creates_scenario_from_current_cluster() {
    let place = Place::new();
    let words = ["init", "own", "--exclude-namespace", "a", "--exclude-namespace=b", "--context", "prod", "--region"];
    let (out, err, code, asked) = plugin(&place, &[&words[..], &["eu-west-1"]].concat());
    assert_eq!((err.as_str(), code), ("", Some(0)), "{out}");
    assert!(out.contains("wrote own/scenario.yaml") && place.path("own/workloads.yaml").exists(), "{out}");
    assert_eq!(asked.len(), 4, "{asked:?}");
    assert!(asked.iter().all(|item| item.starts_with("--context=prod ")), "{asked:?}");
    let fields = "--field-selector=metadata.namespace!=a,metadata.namespace!=b -o yaml";
    assert!(asked[1].contains("get deployments.apps,") && asked[1].ends_with(fields), "{asked:?}");
    // Kinds that the cluster does not know would make kubectl fail.
    assert!(!asked.iter().any(|item| item.contains("keda") || item.contains("secret")), "{asked:?}");
    assert!(asked[2].contains("get nodes,") && !asked[2].contains("field-selector"), "nodes know no such field");
    // Nothing of the dump stays behind.
    let left = fs::read_dir(place.path(".")).unwrap().map(|dir| dir.unwrap().file_name().into_string().unwrap());
    let left: BTreeSet<String> = left.filter(|name| name.starts_with("tmp.")).collect();
    assert_eq!(left, BTreeSet::new());
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn plugin_forwards_questions_about_current_cluster() {
    let place = Place::new();
    let (out, err, code, _) = plugin(&place, &["pack", "--format", "json"]);
    assert_eq!(code, Some(0), "{out}{err}");
    let (shown, err, code, _) = plugin(&place, &["pack", "--format", "json", "--anonymise"]);
    assert_eq!(code, Some(0), "{shown}{err}");
    assert!(!out.is_empty() && !shown.contains("storefront"), "{shown}");
    let node = fs::read_to_string(Path::new(DUMP)).unwrap();
    let node = node
        .split("kind: Node\n")
        .nth(1)
        .unwrap()
        .split("\n    name: ")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap()
        .to_owned();
    let (out, err, code, _) = plugin(&place, &["drain", &node]);
    assert!(code == Some(0) && out.contains(&node), "{out}{err}");
    for (words, said) in [
        (&["upgrade"][..], "there is no `upgrade`: it is init, pack, explain or drain"),
        (&["drain", "--anonymise", "x"], "`drain` asks about nodes by their names"),
        (&["init", "--exclude-namespace"], "`--exclude-namespace` needs a value"),
    ] {
        let (_, err, code, _) = plugin(&place, words);
        assert!(code == Some(2) && err.contains(said), "{err}");
    }
    let (out, _, code, _) = plugin(&place, &[]);
    assert!(code == Some(0) && out.contains("kubectl nodecast init DIR"), "{out}");
}

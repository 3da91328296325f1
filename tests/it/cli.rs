//! The program itself: what it prints where, and how it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;

pub(crate) fn nodecast(arguments: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::new(cargo_bin!("nodecast")).args(arguments).output().expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// A directory with a small scenario in it, removed when dropped.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a directory"));
        place.put("scenario.yaml", SCENARIO);
        place.put("cluster.yaml", CLUSTER);
        place
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).expect("a folder");
        }
        fs::write(path, text).expect("written");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs the program in the directory.
    pub(crate) fn nodecast(&self, arguments: &[&str]) -> (String, String, Option<i32>) {
        let mut command = Command::new(cargo_bin!("nodecast"));
        let output = command.current_dir(&self.0).args(arguments).output().expect("runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (text(output.stdout), text(output.stderr), output.status.code())
    }
}

/// Refuses what is printed for lines of no more than `width` characters, if a line is wider that could be broken, or a word is
/// lost of what is printed `whole`.
pub(crate) fn assert_fits(whole: &str, narrow: &str, width: usize) {
    assert!(whole.lines().any(|line| line.chars().count() > width), "no line is wider than {width} in\n{whole}");
    for line in narrow.lines() {
        let is_one_word = line.split_whitespace().count() == 1;
        assert!(is_one_word || line.chars().count() <= width, "`{line}` is wider than {width} in\n{narrow}");
    }
    for word in whole.split_whitespace() {
        assert!(narrow.contains(word), "`{word}` is not in\n{narrow}");
    }
}

const SCENARIO: &str = "\
name: two-pods
region: us-east-1
start: 2026-11-27T00:00:00Z
duration: 10m
seed: 7
manifests: [cluster.yaml]
";

const CLUSTER: &str = "\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: web, resources: {requests: {cpu: 500m, memory: 256Mi}}}
";

/// Every file below `directory` with its bytes.
fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = entries.map(|path| (path.clone(), fs::read(path).expect("a file"))).collect();
    files.sort();
    files.into_iter().map(|(path, bytes)| (path.strip_prefix(directory).expect("below").to_owned(), bytes)).collect()
}

#[test]
fn run_prints_summary_and_report_path() {
    let place = Place::new();
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("two-pods: $") && out.contains("\nPolicy ") && out.contains("pod wait for node"), "{out}");
    assert!(err.ends_with("report: reports/two-pods/report.html\n"), "{err}");
    assert!(place.path("reports/two-pods/report.html").is_file());
}

#[test]
fn json_on_stdout_is_exactly_the_summary() {
    let place = Place::new();
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml", "--format", "json", "--out", "here", "--quiet"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert_eq!(out, fs::read_to_string(place.path("here/summary.json")).expect("a summary"));
    let summary: nodecast::report::Summary = serde_json::from_str(&out).expect("a summary");
    assert_eq!((summary.pods.created, summary.pods.pending_at_end, summary.nodes.launches), (2, 0, 1));
}

#[test]
fn same_seed_gives_identical_output() {
    let place = Place::new();
    for (out, seed) in [("one", "7"), ("two", "7"), ("three", "8")] {
        let (_, err, code) = place.nodecast(&["run", "scenario.yaml", "--seed", seed, "--out", out]);
        assert_eq!(code, Some(0), "{err}");
    }
    assert_eq!(contents(&place.path("one")), contents(&place.path("two")));
    assert_ne!(contents(&place.path("one")), contents(&place.path("three")));
}

#[test]
fn bad_input_ends_with_two_and_writes_nothing() {
    let place = Place::new();
    place.put("broken.yaml", &SCENARIO.replace("duration:", "durations:"));
    fs::create_dir(place.path("taken")).expect("made");
    fs::write(place.path("taken/diary.txt"), "mine").expect("written");
    for (arguments, words) in [
        (&["run", "missing.yaml"][..], "missing.yaml"),
        (&["run", "broken.yaml"], "broken.yaml:4:1"),
        (&["run", "scenario.yaml", "--policy", "thrift"], "no policy `thrift`"),
        (&["run", "scenario.yaml", "--seed", "many"], "invalid value 'many'"),
        (&["run", "scenario.yaml", "--pricing-data", "nowhere"], "cannot read nowhere"),
        (&["run", "scenario.yaml", "--out", "taken"], "`taken` is not replaced"),
    ] {
        let (out, err, code) = place.nodecast(arguments);
        assert_eq!((out.as_str(), code), ("", Some(2)), "{arguments:?}: {err}");
        assert!(err.contains(words) && !err.contains('\u{1b}'), "{arguments:?}: {err}");
        assert!(!place.path("reports").exists() && place.path("taken/diary.txt").is_file());
    }
}

#[test]
fn help_goes_to_stdout_and_misuse_to_stderr() {
    let (out, err, code) = nodecast(&["--help"]);
    insta::assert_snapshot!("help", out);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let (out, ..) = nodecast(&["run", "--help"]);
    insta::assert_snapshot!("help_run", out);
    let (out, err, code) = nodecast(&["frobnicate"]);
    assert_eq!((out.as_str(), code), ("", Some(2)));
    assert!(err.contains("unrecognized subcommand 'frobnicate'"), "{err}");
}

#[test]
fn piped_errors_explain_without_colour() {
    let (out, err, code) = nodecast(&["man", "frobnicate"]);
    assert_eq!((out.as_str(), code), ("", Some(2)));
    assert!(err.contains("error: there is no command `frobnicate`") && err.contains("help: the commands are"), "{err}");
    assert!(!err.contains('\u{1b}'), "{err:?}");
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let (help, ..) = nodecast(&["--help"]);
    let listed = help.split("Commands:").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("a list");
    // Names of groups stand further out.
    let commands = listed.lines().filter(|line| line.starts_with("  "));
    let commands: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() >= 3);
    let (manual, _, code) = nodecast(&["man"]);
    assert_eq!(code, Some(0));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (completions, err, code) = nodecast(&["completions", shell]);
        assert_eq!((err.as_str(), code), ("", Some(0)));
        for command in &commands {
            assert!(completions.contains(command), "{command} in {shell}");
        }
    }
    let (help, _, code) = nodecast(&["completions", "--help"]);
    assert_eq!(code, Some(0));
    let readme = fs::read_to_string("README.md").expect("README.md");
    for line in [
        "nodecast completions bash > ~/.local/share/bash-completion/completions/nodecast",
        "nodecast completions zsh > ~/.zfunc/_nodecast",
        "nodecast completions fish > ~/.config/fish/completions/nodecast.fish",
    ] {
        assert!(help.contains(line) && readme.contains(line), "{line}: {help}");
    }
    let (help, ..) = nodecast(&["man", "--help"]);
    assert!(help.contains("nodecast man > ~/.local/share/man/man1/nodecast.1"), "{help}");
    for command in commands {
        assert!(manual.contains(command), "{command}");
        let (page, _, code) = nodecast(&["man", command]);
        assert_eq!(code, Some(0));
        assert!(page.contains(".SH NAME"), "{command}");
    }
    let (page, _, code) = nodecast(&["man", "pricing", "import"]);
    assert_eq!(code, Some(0));
    assert!(page.contains("max\\-file\\-size"), "{page}");
}

/// The candidates for the word that stands after `words`.
fn candidates(place: &Place, kind: &str, current: &str) -> Vec<String> {
    let (out, err, code) =
        place.nodecast(&["__complete", kind, current, "nodecast", "run", "wide.yaml", "--seed", "4"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    out.lines().map(str::to_owned).collect()
}

#[test]
fn scenario_values_complete_on_command_line() {
    let place = Place::new();
    let policies = "policies: [{name: thrift, autoscaler: karpenter}, {name: thorough, autoscaler: karpenter}]\n";
    place.put("wide.yaml", &(SCENARIO.to_owned() + policies));
    assert_eq!(candidates(&place, "policy", "th"), ["thorough", "thrift"]);
    assert_eq!(candidates(&place, "policy", "thrift,"), ["thrift,thorough"]);
    assert_eq!(candidates(&place, "policy", "--policy=thr"), ["--policy=thrift"]);
    assert_eq!(candidates(&place, "path", "Deployment[shop/web].spec.r"), ["Deployment[shop/web].spec.replicas="]);
    assert_eq!(candidates(&place, "path", "Node"), ["NodePool["]);
    assert_eq!(candidates(&place, "path", "du"), ["duration="]);
    // Each completed path can be set.
    let (_, err, code) =
        place.nodecast(&["run", "wide.yaml", "--set", "Deployment[shop/web].spec.replicas=3", "--quiet"]);
    assert_eq!(code, Some(0), "{err}");
    place.put("wide.yaml", "broken");
    assert_eq!(candidates(&place, "policy", ""), Vec::<String>::new());
}

#[test]
fn every_scenario_option_asks_for_candidates() {
    let scripts = ["bash", "zsh", "fish"].map(|shell| nodecast(&["completions", shell]).0);
    let [bash, zsh, fish] = &scripts;
    let options = |line: &str| ["--policy)", "--policies)", "--set)"].contains(&line.trim());
    let lines: Vec<&str> = bash.lines().collect();
    let asked = lines.windows(2).filter(|pair| options(pair[0]) && pair[1].contains("_nodecast_values p")).count();
    assert!(asked > 10 && asked == lines.iter().filter(|line| options(line)).count(), "{asked}");
    let of_zsh: Vec<&str> = zsh
        .lines()
        .filter(|line| ["--policy=", "--policies=", "--set="].iter().any(|name| line.contains(name)))
        .collect();
    assert!(of_zsh.len() > 10 && of_zsh.iter().all(|line| line.contains(":_nodecast_p")), "{of_zsh:?}");
    let of_fish: Vec<&str> =
        fish.lines().filter(|line| line.contains(" -l policy ") || line.contains(" -l set ")).collect();
    assert!(of_fish.len() > 10 && of_fish.iter().all(|line| line.contains("(__nodecast_values p")), "{of_fish:?}");
}

#[test]
#[cfg(unix)]
fn bash_completes_policies_without_evaluating_them() {
    let place = Place::new();
    let policies = "policies: [{name: night, autoscaler: karpenter}, {name: noon, autoscaler: karpenter}]\n";
    place.put("wide.yaml", &(SCENARIO.to_owned() + policies));
    place.put("script", &nodecast(&["completions", "bash"]).0);
    let program = cargo_bin!("nodecast").parent().expect("a folder").display().to_string();
    let ask = "COMP_WORDS=(nodecast run wide.yaml --policy n); COMP_CWORD=4; _nodecast nodecast n --policy; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .current_dir(place.path(""))
        .env("PATH", format!("{program}:{}", std::env::var("PATH").expect("a path")))
        .args(["-c", &format!(". ./script; {ask}")])
        .output()
        .expect("bash");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "night\nnoon\n", "{output:?}");
    let script = fs::read_to_string(place.path("script")).expect("written");
    let function = script.split("\n}\n").next().expect("a function");
    assert!(!function.contains("compgen -W") && !function.contains("eval"), "{function}");
}

#[test]
fn a_reader_that_stops_listening_is_no_error() {
    let mut child = Command::new(cargo_bin!("nodecast"))
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn watch_shows_clock_nodes_and_waiting_pods() {
    let place = Place::new();
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml", "--watch", "--verbose"]);
    assert_eq!(code, Some(0), "{err}");
    let seen: Vec<&str> = err.lines().filter(|line| line.contains(" pending")).collect();
    assert!(seen.len() >= 2 && seen.len() <= 21, "{err}");
    assert_eq!(seen[0], "2026-11-27T00:00:00Z  0 nodes Ready, 0 starting, 0 pods pending");
    assert!(seen.last().unwrap().ends_with("  1 node Ready, 0 starting, 0 pods pending"), "{err}");
    let line = out.lines().find(|line| line.starts_with("Ready nodes  ") && line.contains('█')).unwrap();
    assert!(line.ends_with("peak 1"), "{line}");
}

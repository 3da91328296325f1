//! Bad input gets one clear error, quickly, and never a panic.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nodecast::scenario::error::Render;
use nodecast::scenario::manifests::{pod_from_json, read_manifests, read_manifests_with};
use nodecast::scenario::{Limits, ScenarioError, Source};
use proptest::prelude::*;

/// Relative to the package, which is where tests run, so that the texts are the same on every machine.
const FOLDER: &str = "tests/data/bad-input";

fn refused(path: &Path) -> ScenarioError {
    match nodecast::scenario::load(path) {
        Ok(_) => panic!("{} is accepted", path.display()),
        Err(error) => error,
    }
}

#[test]
fn every_input_error_has_line_and_help() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    assert!(files.len() >= 35, "the mistakes are in {FOLDER}");
    let mut report = String::new();
    for file in files.iter().map(PathBuf::as_path).chain([Path::new("tests/data/none.yaml"), Path::new(FOLDER)]) {
        let text = refused(file).render();
        assert!(text.contains("help:"), "{} shows no way out:\n{text}", file.display());
        write!(report, "# {}\n\n{text}\n", file.file_name().unwrap().display()).unwrap();
    }
    insta::assert_snapshot!(report);
}

#[test]
fn unknown_policy_error_lists_policies() {
    let (scenario, _) = nodecast::scenario::load(Path::new("scenarios/eks-101/scenario.yaml")).unwrap();
    assert_eq!(scenario.for_policy(None).map(|policy| policy.name.as_str()), Ok("karpenter-v0.16"));
    assert_eq!(scenario.for_policy(Some("karpenter-v1.13")).map(|p| p.name.as_str()), Ok("karpenter-v1.13"));
    let error = scenario.for_policy(Some("karpenter-v1.14")).unwrap_err();
    assert_eq!(error.message(), "no policy `karpenter-v1.14` in this scenario");
    assert!(error.render().contains("did you mean `karpenter-v1.13`?"), "{}", error.render());
}

/// Ten times the input may take ten times as long; a hundred times as long it would take at a cost that grows with the
/// square. What is measured is the growth, because no limit in seconds suits every build and every machine.
const GROWTH_MAX: u32 = 40;

/// Does `work` on a tenth of `bytes` and on all of them; returns what comes of all, which must not take much more than ten
/// times as long. Other work on the machine may disturb a measurement, so only the third one that fails counts.
fn in_time_of_its_size<T>(bytes: &[u8], work: impl Fn(&[u8]) -> T) -> T {
    let timed = |bytes: &[u8]| {
        let begun = Instant::now();
        (work(bytes), begun.elapsed())
    };
    let mut measured = Vec::new();
    for _ in 0..3 {
        let tenth = timed(&bytes[..bytes.len() / 10]).1.max(Duration::from_millis(50));
        let (answer, whole) = timed(bytes);
        if whole <= tenth * GROWTH_MAX {
            return answer;
        }
        measured.push((tenth, whole));
    }
    panic!("a tenth and all took {measured:?}");
}

/// Writes `bytes` to a file and returns the error that a scenario of it gets, which has to come in the time of its size.
fn refused_soon(bytes: &[u8]) -> ScenarioError {
    let error = in_time_of_its_size(bytes, |bytes| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        refused(file.path())
    });
    assert!(error.render().len() < 4_000, "the error shows the garbage itself");
    error
}

#[test]
#[should_panic(expected = "a tenth and all took")]
#[ignore = "slow: .ci/run slow-tests"]
fn quadratic_cost_is_detected() {
    in_time_of_its_size(&[0; 100], |bytes| {
        std::thread::sleep(Duration::from_micros(600 * (bytes.len() * bytes.len()) as u64 / 2));
    });
}

const FIFTY_MB: usize = 50_000_000;

#[test]
fn large_binary_input_is_rejected_as_non_text() {
    let mut state = 1_u64;
    let garbage: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(FIFTY_MB)
    .collect();
    assert!(refused_soon(&garbage).message().contains("is not text"));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("garbage.yaml");
    std::fs::write(&path, &garbage).unwrap();
    let place = format!("{}{}", directory.path().display(), std::path::MAIN_SEPARATOR);
    insta::assert_snapshot!("fifty_megabytes_of_garbage", refused(&path).render().replace(&place, ""));
}

#[test]
fn large_single_word_is_rejected_as_no_map() {
    assert_eq!(refused_soon(&vec![b'a'; FIFTY_MB]).message(), "a scenario is a map, not text");
}

#[test]
fn large_list_is_rejected_at_first_item() {
    let error = refused_soon(&b"- a\n".repeat(FIFTY_MB / 4));
    assert_eq!(error.message(), "a document is a map of keys and values, not a list");
}

#[test]
fn too_many_values_are_rejected_at_limit() {
    let source = Source::new("a.yaml", format!("a:\n{}", "- a\n".repeat(101)));
    let limits = Limits { nodes_max: 100, ..Limits::default() };
    let error = read_manifests_with(&source, &BTreeMap::new(), &limits, None).unwrap_err();
    assert_eq!(error.message(), "the file holds more than 100 values");
}

#[test]
fn large_punctuation_input_is_rejected_as_invalid_yaml() {
    for garbage in ["[{", "{a: ", "? - ", "\t", "a: b: ", "&a ", "*a ", "!a ", "|\n", "%", "\"\\x", "'", "#"] {
        refused_soon(&garbage.as_bytes().repeat(FIFTY_MB / 10 / garbage.len()));
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn large_manifest_reads_in_linear_time() {
    let pod = r#"{"metadata":{"name":"p","labels":{"app":"p"}},"spec":{"containers":[{"name":"c","image":"i",
        "resources":{"requests":{"cpu":"100m","memory":"128Mi"}}}]}}"#;
    in_time_of_its_size(&vec![b' '; 40_000_000], |bytes| {
        let count = bytes.len() / pod.len();
        let items = vec![pod; count].join(",");
        let text = format!("{{\"apiVersion\":\"v1\",\"kind\":\"PodList\",\"items\":[{items}]}}");
        assert_eq!(read_manifests(&Source::new("pods.json", text)).unwrap().pods.len(), count);
    });
}

/// The files of a shipped scenario, to be damaged.
fn shipped(name: &str) -> Vec<(String, String)> {
    let folder = Path::new("scenarios").join(name);
    let mut files: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| (path.file_name().unwrap().display().to_string(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    files.sort();
    files
}

/// One kind of damage to a text at a place from 0 to 1.
pub(crate) fn damaged(text: &str, kind: u8, place: f64, with: &str) -> String {
    if text.lines().next().is_none() {
        return with.to_owned();
    }
    let mut lines: Vec<&str> = text.lines().collect();
    let line = ((lines.len() as f64 * place) as usize).min(lines.len() - 1);
    let mut at = ((text.len() as f64 * place) as usize).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    match kind {
        0 => format!("{}{with}{}", &text[..at], &text[at..]),
        1 => text[..at].to_owned(),
        2 => {
            lines.remove(line);
            lines.join("\n")
        }
        3 => {
            lines.insert(line, lines[line]);
            lines.join("\n")
        }
        4 => {
            let value = lines[line].split_once(':').map_or(with.to_owned(), |(key, _)| format!("{key}: {with}"));
            lines[line] = &value;
            lines.join("\n")
        }
        5 => {
            let indented = format!("  {}", lines[line]);
            lines[line] = &indented;
            lines.join("\n")
        }
        _ => {
            let other = (lines.len() - 1).saturating_sub(line);
            lines.swap(line, other);
            lines.join("\n")
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 8 / 5, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        if let Err(error) = nodecast::scenario::load(file.path()) {
            prop_assert!(!error.render().is_empty());
        }
    }

    #[test]
    fn random_yaml_never_panics(text in "([a-z]{1,3}|[:\\-\\[\\]{}&*!|>'\"%#?,\t~\u{e9}]|\n|  ){0,200}") {
        if let Err(error) = read_manifests(&Source::new("a.yaml", text)) {
            prop_assert!(!error.render().is_empty());
        }
    }

    #[test]
    fn damaged_files_never_panic(
        scenario in prop::sample::select(vec!["eks-101", "keda-istio"]),
        file in 0_usize..100,
        damage in prop::collection::vec((0_u8..7, 0.0_f64..1.0, "[-0-9a-z:\\[\\]{}\"'%&*. \n]{0,8}"), 1..4),
    ) {
        let mut files = shipped(scenario);
        let file = file % files.len();
        for (kind, place, with) in &damage {
            files[file].1 = damaged(&files[file].1, *kind, *place, with);
        }
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in &files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        if let Err(error) = nodecast::scenario::load(&folder.path().join("scenario.yaml")) {
            prop_assert!(!error.render().is_empty());
        }
    }
}

#[test]
fn json_nested_too_deeply_is_refused() {
    let mut value = serde_json::Value::Null;
    for _ in 0..500 {
        value = serde_json::Value::Array(vec![value]);
    }
    let pod = serde_json::json!({"metadata": {"name": "p"}, "spec": {"containers": value}});
    assert_eq!(pod_from_json(&pod).unwrap_err().message(), "the value is nested too deeply");
}

//! `nodecast recommend` on shipped scenarios that were made dearer on purpose: what was planted has to be found again.

use std::path::Path;
use std::process::Command;

use nodecast::experiment::recommendation::Recommendation;

/// What the program prints, and its exit code.
fn nodecast(arguments: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_nodecast"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// What is recommended for a scenario with `set`.
fn recommended(scenario: &str, set: &[&str], more: &[&str]) -> Recommendation {
    let path = format!("scenarios/{scenario}/scenario.yaml");
    let mut arguments = vec!["recommend", &path, "--format", "json", "--quiet"];
    set.iter().for_each(|own| arguments.extend(["--set", own]));
    arguments.extend(more);
    let (out, err, code) = nodecast(&arguments);
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str(&out).unwrap()
}

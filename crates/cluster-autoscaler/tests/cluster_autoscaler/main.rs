//! The Cluster Autoscaler's own test cases, pinned. `docs/cluster-autoscaler-cases.md` counts them.

#![allow(clippy::unwrap_used)] // a test that cannot set itself up has failed wherever that happens

mod agreement;
mod discovery;
mod estimation;
mod expanders;
mod groups;
mod iterations;
mod keeping;
mod lab;
mod limits_of_time;
mod orchestration;
mod provider;
mod removal;
mod rules;
mod state;

use std::path::Path;

const DOCUMENT: &str = include_str!("../../../../docs/cluster-autoscaler-cases.md");
/// Cases that tests of whole runs pin, with their file; K7 and K9, which no scenario can bring about, have their tests in
/// `crates/sim/src/actors/cluster_autoscaler/tests.rs`.
const ELSEWHERE: (&str, &[&str]) = ("tests/it/cluster_autoscaler_runs.rs", &["K6", "K7", "K8", "K9"]);
/// The cases of each part.
const PARTS: [(char, u16); 12] = [
    ('A', 11),
    ('B', 6),
    ('C', 20),
    ('D', 14),
    ('E', 5),
    ('F', 6),
    ('G', 7),
    ('H', 7),
    ('I', 15),
    ('J', 14),
    ('K', 10),
    ('L', 13),
];

fn documented_as_missing() -> Vec<String> {
    let rows = DOCUMENT.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let is_case = |cell: &&str| cell.len() >= 2 && cell[1..].parse::<u16>().is_ok();
    rows.filter(is_case).map(str::to_owned).collect()
}

#[test]
#[allow(clippy::print_stdout)]
fn pinned_cases_are_counted_and_others_listed() {
    let pinned: Vec<&str> = [
        estimation::ROWS,
        expanders::ROWS,
        groups::ROWS,
        iterations::ROWS,
        limits_of_time::ROWS,
        orchestration::ROWS,
        provider::ROWS,
        removal::ROWS,
        rules::ROWS,
        state::ROWS,
        ELSEWHERE.1,
    ]
    .concat();
    let elsewhere = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(ELSEWHERE.0);
    assert!(elsewhere.is_file(), "{} is not there", ELSEWHERE.0);
    let all: Vec<String> =
        PARTS.iter().flat_map(|(part, cases)| (1..=*cases).map(move |case| format!("{part}{case}"))).collect();
    let missing: Vec<String> = all.iter().filter(|case| !pinned.contains(&case.as_str())).cloned().collect();
    assert_eq!(pinned.len() + missing.len(), all.len(), "a case is counted twice, or does not exist");
    println!("{} of {} cases of the Cluster Autoscaler are pinned", pinned.len(), all.len());
    let count = format!("{} of the {} cases are pinned by tests", pinned.len(), all.len());
    assert!(DOCUMENT.contains(&count), "the document should say: {count}");
    assert_eq!(documented_as_missing(), missing, "the document names other cases as missing");
}

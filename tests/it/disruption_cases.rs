//! Karpenter's disruption case by case: which nodes go, when, and what becomes of them.
//!
//! The cases are a list of 209, in parts from A to M and S. `ROWS` in each file names, for each case that the file pins,
//! the test that pins it; `ELSEWHERE` does so for tests that live beside the code or in other files, `TIMELINES` for cases
//! that a recorded timeline of the real controllers shows from beginning to end. `docs/disruption-cases.md` says what is
//! not pinned, and why.

mod budgets;
mod candidates;
mod commands;
mod conditions;
mod costs;
mod decisions;
mod drifting;
mod emptiness;
pub mod lab;
mod leaving;
mod notices;
pub mod story;
mod together;
mod validation;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use agreement::tally::read_json;

/// The document that says which cases are not pinned, and why.
const DOCUMENT: &str = include_str!("../../docs/disruption-cases.md");
const FIDELITY: &str = include_str!("../../docs/fidelity.md");

/// The parts of the list and their number of cases.
const PARTS: [(char, u16, &str); 14] = [
    ('A', 25, "candidates"),
    ('B', 6, "pods that protect their nodes for a while"),
    ('C', 11, "costs and order"),
    ('D', 22, "budgets"),
    ('E', 12, "emptiness"),
    ('F', 29, "decisions of consolidation"),
    ('S', 7, "Spot to Spot"),
    ('M', 8, "several nodes at once"),
    ('G', 9, "validation"),
    ('H', 12, "the queue of commands"),
    ('I', 17, "drift"),
    ('J', 12, "conditions, expiry, repair"),
    ('K', 23, "termination"),
    ('L', 16, "interruption and garbage collection"),
];

/// Cases pinned by a test beside the code or in another file of this binary.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("C1", COST, "priority_and_deletion_cost_have_bounded_effect"),
    ("C2", COST, "priority_and_deletion_cost_have_bounded_effect"),
    ("C3", COST, "priority_and_deletion_cost_have_bounded_effect"),
    ("C4", COST, "priority_and_deletion_cost_have_bounded_effect"),
    ("D11", BUDGETS, "percentages_round_up_and_what_is_away_counts"),
    ("D12", BUDGETS, "the_least_budget_that_names_the_reason_binds"),
    ("D16", BUDGETS, "budget_window_lasts_for_its_duration"),
    ("D17", BUDGETS, "budget_window_lasts_for_its_duration"),
    ("D18", BUDGETS, "budget_window_lasts_for_its_duration"),
    ("D19", BUDGETS, "invalid_budget_schedule_blocks_disruption"),
    ("H6", "crates/karpenter/src/machine/queue.rs", "command_timeout_grows_with_queued_nodes"),
    ("K14", "tests/it/volumes.rs", "instance_terminates_after_volume_detach_or_timeout"),
    ("L13", RESERVED, "capacity_block_is_drained_before_its_end"),
    ("J12", RUNS, "unregistered_node_is_replaced_after_fifteen_minutes"),
];
const RESERVED: &str = "tests/it/reserved_capacity.rs";
const RUNS: &str = "tests/it/karpenter_runs.rs";
const COST: &str = "crates/karpenter/src/disruption/cost.rs";
const BUDGETS: &str = "crates/karpenter/src/disruption/budgets.rs";

/// Cases that a recorded timeline shows, which the simulator's controllers have to follow to a tenth of a second.
const TIMELINES: &[(&str, &str)] = &[
    ("E8", "empty-pod-arrives-in-validation"),
    ("E11", "empty-basic"),
    ("M5", "replace-pod-arrives-in-validation"),
    ("G1", "replace-single"),
    ("G3", "empty-pod-arrives-in-validation"),
    ("I1", "drift-one"),
    ("I3", "drift-three-budget-1"),
    ("I4", "drift-empty-first"),
    ("J1", "empty-basic"),
    ("J4", "empty-pod-event-dedupe"),
    ("L15", "instance-lost"),
];

/// The rows of the files of this folder, with each file's name.
const HERE: &[(&str, &[(&str, &str)])] = &[
    ("budgets", budgets::ROWS),
    ("candidates", candidates::ROWS),
    ("commands", commands::ROWS),
    ("conditions", conditions::ROWS),
    ("costs", costs::ROWS),
    ("decisions", decisions::ROWS),
    ("drifting", drifting::ROWS),
    ("emptiness", emptiness::ROWS),
    ("leaving", leaving::ROWS),
    ("notices", notices::ROWS),
    ("together", together::ROWS),
    ("validation", validation::ROWS),
];

/// Every case that is pinned, with the file and the test that pin it.
fn pinned() -> Vec<(&'static str, String, &'static str)> {
    let here = HERE.iter().flat_map(|(file, rows)| {
        rows.iter().map(move |(row, test)| (*row, format!("tests/it/disruption_cases/{file}.rs"), *test))
    });
    let elsewhere = ELSEWHERE.iter().map(|(row, file, test)| (*row, (*file).to_owned(), *test));
    here.chain(elsewhere).collect()
}

fn documented_as_missing() -> Vec<String> {
    let rows = DOCUMENT.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let is_case = |cell: &&str| cell.len() >= 2 && cell.is_char_boundary(1) && cell[1..].parse::<u16>().is_ok();
    rows.filter(is_case).map(str::to_owned).collect()
}

/// Tests that the tables name but that are not there.
fn unknown_tests() -> Vec<String> {
    let mut sources: BTreeMap<String, String> = BTreeMap::new();
    let mut unknown = Vec::new();
    for (row, file, test) in pinned() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&file);
        let source = sources.entry(file).or_insert_with(|| std::fs::read_to_string(path).unwrap());
        let tests: Vec<&str> = source.split("#[test]\n").skip(1).collect();
        if !tests.iter().any(|this_test| this_test.trim_start().starts_with(&format!("fn {test}()"))) {
            unknown.push(format!("{row}: {test}"));
        }
    }
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/karpenter-timeline/cases.json.gz");
    let recorded = read_json(&recorded).unwrap();
    let names: BTreeSet<&str> =
        recorded["cases"].as_array().into_iter().flatten().filter_map(|case| case["name"].as_str()).collect();
    let missing = TIMELINES.iter().filter(|(_, case)| !names.contains(case));
    unknown.extend(missing.map(|(row, case)| format!("{row}: {case}")));
    unknown
}

#[test]
#[allow(clippy::print_stdout)]
fn pinned_cases_are_counted_and_others_listed() {
    let tests: Vec<&str> = pinned().iter().map(|(row, ..)| *row).collect();
    let timelines: Vec<&str> = TIMELINES.iter().map(|(row, _)| *row).collect();
    let (mut all, mut missing) = (0, Vec::new());
    println!("part cases pinned");
    for (part, cases, subject) in PARTS {
        let names: Vec<String> = (1..=cases).map(|case| format!("{part}{case}")).collect();
        let is_pinned = |name: &&String| tests.contains(&name.as_str()) || timelines.contains(&name.as_str());
        let count = names.iter().filter(is_pinned).count();
        println!("{part:4} {cases:5} {count:6}  {subject}");
        all += names.len();
        missing.extend(names.into_iter().filter(|name| !is_pinned(&name)));
    }
    let counted = tests.len() + timelines.len();
    println!("{counted} of {all} cases of disruption are pinned, {} of them by recorded timelines", timelines.len());
    assert_eq!(counted + missing.len(), all, "a case is counted twice, or does not exist");
    assert_eq!(unknown_tests(), Vec::<String>::new(), "the tables name tests that are not there");
    let count = format!("{counted} of the {all} cases are pinned by tests");
    assert!(DOCUMENT.contains(&count), "the document should say: {count}");
    let count = format!("Of {all} of its disruption, {counted} are");
    assert!(FIDELITY.contains(&count), "docs/fidelity.md should say: {count}");
    assert_eq!(documented_as_missing(), missing, "the document names other cases as missing");
}

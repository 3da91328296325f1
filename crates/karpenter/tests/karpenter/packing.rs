//! Karpenter's scheduler case by case: the behaviours that its own test suites pin, each as a small cluster.
//!
//! `ROWS` in each file are the numbers, in the list of 160 cases drawn from those suites, of the cases that the file pins;
//! `ELSEWHERE` those of files that pin what belongs to other rooms. `docs/karpenter-cases.md` says what is not pinned, and why.

mod affinity;
mod algebra;
mod capacity;
mod cost;
mod enumeration;
mod equivalence;
mod labels;
mod nodes;
mod pools;
mod properties;
mod reference;
mod reference_topology;
mod spread;
mod tutorials;
mod types;
pub mod volumes;
mod what_if;
pub mod world;

use std::path::Path;

/// The document that says which cases are not pinned, and why.
const DOCUMENT: &str = include_str!("../../../../docs/karpenter-cases.md");

/// Cases that tests of whole runs and of the command line pin, by their files.
const ELSEWHERE: &[(&str, &[u16])] = &[
    ("tests/it/karpenter_runs.rs", &[1, 3, 8, 9, 11, 139, 140, 141, 142, 143, 147, 153, 155, 156]),
    ("tests/it/pack_dumps.rs", &[4, 6, 10, 117]),
];

/// The numbers in the first column of the document's table.
fn documented_as_missing() -> Vec<u16> {
    let rows = DOCUMENT.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |")?.0.parse().ok());
    rows.collect()
}

#[test]
#[allow(clippy::print_stdout)]
fn pinned_cases_are_counted_and_others_listed() {
    let here = [
        affinity::ROWS,
        algebra::ROWS,
        capacity::ROWS,
        labels::ROWS,
        nodes::ROWS,
        pools::ROWS,
        spread::ROWS,
        volumes::ROWS,
        crate::selection::ROWS,
        crate::instance_types::ROWS,
    ];
    let mut rows: Vec<u16> = here.concat();
    for (file, cases) in ELSEWHERE {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        assert!(path.is_file(), "{file} is not there");
        rows.extend(*cases);
    }
    rows.sort_unstable();
    assert!(rows.is_sorted_by(|a, b| a < b), "a case is counted twice");
    println!("{} of 160 suite cases are pinned", rows.len());
    let count = format!("{} of the 160 cases are pinned by tests", rows.len());
    assert!(DOCUMENT.contains(&count), "the document should say: {count}");
    let missing: Vec<u16> = (1..=160).filter(|row| !rows.contains(row)).collect();
    assert_eq!(documented_as_missing(), missing, "the document names other cases as missing");
    assert_eq!(rows.len() + missing.len(), 160);
}

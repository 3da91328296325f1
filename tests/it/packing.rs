//! Karpenter's scheduler case by case: the behaviours that its own test suites pin, each as a small cluster.
//!
//! `ROWS` in each file are the numbers, in the list of 160 cases drawn from those suites, of the cases that the file pins.

mod affinity;
mod capacity;
mod labels;
mod nodes;
mod pools;
mod properties;
mod spread;
mod tutorials;
mod volumes;
mod world;

#[test]
#[allow(clippy::print_stdout)]
fn the_cases_that_are_pinned_are_counted() {
    let files = [affinity::ROWS, capacity::ROWS, labels::ROWS, nodes::ROWS, pools::ROWS, spread::ROWS, volumes::ROWS];
    let mut rows: Vec<u16> = files.concat();
    rows.sort_unstable();
    assert!(rows.is_sorted_by(|a, b| a < b), "a case is counted twice");
    println!("packing: {} of 160 suite cases pinned here", rows.len());
    assert!(rows.iter().all(|row| (1..=160).contains(row)));
}

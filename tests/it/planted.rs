//! Savings that were planted in scenarios: `recommend` has to find them, and nothing that does not save.

mod six;

use std::path::Path;

use nodecast::experiment::statistics::Estimate;
use nodecast::recommend::presentation::recommendation::text;
use nodecast::recommend::recommendation::Advice;

use six::{COMMITMENT, CONSOLIDATION, FAMILIES, PIN, Planted, REQUESTS, Result, TARGET};

/// How many fresh seeds the truth is told by.
const SEEDS: u64 = 8;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_nodecast"))
}

/// Nine tenths of what was planted are found, and each change saves.
fn is_found(this_planted: &Planted) -> Result<()> {
    let asked = this_planted.asked(program(), None)?;
    let answer = &asked.answer;
    let shown = text(answer);
    assert!(answer.advice == Advice::Change && answer.limits.iter().all(|limit| limit.kept), "{shown}");
    assert!(answer.changes.iter().any(|change| change.lever == this_planted.lever), "{shown}");
    let supported = |saves: &Estimate| saves.low.is_some_and(|low| low > 0.0);
    assert!(answer.changes.iter().all(|change| supported(&change.saves_per_month)), "{shown}");
    let [before, planted, recommended] = this_planted.costs(&asked, SEEDS)?;
    let (truth, found) = (planted - before, planted - recommended);
    assert!(truth > 0.03 * planted, "what was planted costs {truth} of {planted}");
    assert!(found >= 0.9 * truth, "{found} of {truth} were found:\n{shown}");
    Ok(())
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn nodes_that_are_never_consolidated_are_found() -> Result<()> {
    is_found(&CONSOLIDATION)
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn families_that_exclude_the_cheap_ones_are_found() -> Result<()> {
    // A third less of the day, so that it is quick without optimisation.
    is_found(&Planted { before: &["duration=8h", "objectives={pending_p99: 6m}"], ..FAMILIES })
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn requests_of_three_times_the_use_are_found() -> Result<()> {
    is_found(&REQUESTS)
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn a_needless_pin_to_on_demand_is_found() -> Result<()> {
    is_found(&PIN)
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn an_absent_commitment_is_found() -> Result<()> {
    is_found(&COMMITMENT)
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn too_low_hpa_target_is_detected() -> Result<()> {
    is_found(&Planted { before: &["duration=4h"], ..TARGET })
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn what_is_recommended_leaves_no_commitment_to_recommend() -> Result<()> {
    assert_eq!(COMMITMENT.again(program(), None, 2)?, []);
    Ok(())
}

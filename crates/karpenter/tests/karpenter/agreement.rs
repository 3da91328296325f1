//! Agreement with the real program: recorded answers in tests/cases, counted by the same code as the example `agreement`.

use std::path::Path;

use agreement::tally::assert_all_agree;
use agreement::{karpenter, karpenter_consolidation};

#[test]
fn random_tie_plans_stay_within_karpenter_range() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/karpenter");
    let tally = karpenter::run_with_drawn_ties(&[folder], 0..3, 0.05).unwrap_or_else(|problem| panic!("{problem}"));
    assert!(tally.disagreements.is_empty(), "{}", tally.disagreements.join("\n"));
    assert_eq!(tally.compared, 243);
}

#[test]
fn whole_scheduling_passes_agree_with_karpenter() {
    assert_all_agree(karpenter::run, &["karpenter"], 81);
}

#[test]
fn consolidation_decisions_agree_with_karpenter() {
    assert_all_agree(karpenter_consolidation::run, &["karpenter-consolidation"], 29);
}

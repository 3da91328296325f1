//! Agreement with the real programs: the cases in tests/cases, counted by the same code as `examples/agreement.rs`.

use std::path::{Path, PathBuf};

use agreement::{
    cluster_autoscaler, fields, hpa, karpenter, karpenter_consolidation, keda, kube_scheduler, tally, vpa,
};
use agreement_timelines::karpenter_timeline;

/// Fails with every disagreement, or if a case is not compared at all.
fn all_agree(suite: fn(&[PathBuf], Option<&Path>) -> Result<tally::Tally, String>, files: &[&str], cases: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
    let tally = suite(&paths, None).unwrap_or_else(|problem| panic!("{problem}"));
    assert!(tally.disagreements.is_empty(), "{}", tally.disagreements.join("\n"));
    assert_eq!((tally.agreed, tally.compared), (cases, cases));
    assert_eq!(fields::unread(), Vec::<String>::new(), "fields of the cases that nothing reads");
}

#[test]
fn fields_that_nothing_reads_are_found_and_refused_in_an_answer() {
    let value = serde_json::json!({"known": 1, "new": 2});
    assert_eq!(fields::beyond(&value, &["known", "other"]).collect::<Vec<_>>(), ["new"]);
    assert!(fields::check_read("expected", &value, &["known"]).is_err_and(|why| why.contains("new")));
    assert_eq!(fields::check_read("expected", &value, &["known", "new"]), Ok(()));
}

#[test]
fn replica_counts_agree_with_the_horizontal_pod_autoscaler() {
    all_agree(hpa::run, &["hpa-golden.json"], 141);
}

#[test]
fn iterations_agree_with_the_cluster_autoscaler() {
    all_agree(cluster_autoscaler::run, &["cluster-autoscaler"], 151);
}

#[test]
fn filters_scores_and_the_best_nodes_agree_with_kube_scheduler() {
    all_agree(kube_scheduler::run, &["kube-scheduler"], 64);
}

#[test]
fn event_driven_scaling_agrees_with_keda() {
    all_agree(keda::run, &["keda-golden.json"], 74);
}

#[test]
fn with_ties_drawn_at_random_plans_stay_within_what_karpenters_own_runs_ranged_over() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/karpenter");
    let tally = karpenter::run_with_drawn_ties(&[folder], 0..3, 0.05).unwrap_or_else(|problem| panic!("{problem}"));
    assert!(tally.disagreements.is_empty(), "{}", tally.disagreements.join("\n"));
    assert_eq!(tally.compared, 243);
}

#[test]
fn whole_scheduling_passes_agree_with_karpenter() {
    all_agree(karpenter::run, &["karpenter"], 81);
}

#[test]
fn consolidation_decisions_agree_with_karpenter() {
    all_agree(karpenter_consolidation::run, &["karpenter-consolidation"], 29);
}

#[test]
fn whole_timelines_agree_with_karpenters_controllers() {
    all_agree(karpenter_timeline::run, &["karpenter-timeline"], 72);
}

#[test]
fn recommendations_evictions_and_admission_agree_with_the_vertical_pod_autoscaler() {
    all_agree(vpa::run, &["vpa"], 151);
}

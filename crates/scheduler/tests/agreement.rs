//! Agreement with the real program: recorded answers in tests/cases, counted by the same code as the example `agreement`.

use agreement::kube_scheduler;
use agreement::tally::assert_all_agree;

#[test]
fn filters_and_scores_match_kube_scheduler() {
    assert_all_agree(kube_scheduler::run, &["kube-scheduler"], 64);
}

//! Agreement with the real program: recorded answers in tests/cases, counted by the same code as the example `agreement`.

use agreement::tally::assert_all_agree;
use agreement::{hpa, keda};

#[test]
fn replica_counts_agree_with_the_horizontal_pod_autoscaler() {
    assert_all_agree(hpa::run, &["hpa-golden.json"], 141);
}

#[test]
fn event_driven_scaling_agrees_with_keda() {
    assert_all_agree(keda::run, &["keda-golden.json"], 74);
}

//! Agreement with the real program: recorded answers in tests/cases, counted by the same code as `examples/agreement.rs`.

use agreement::tally::assert_all_agree;
use agreement::vpa;

#[test]
fn recommendations_evictions_and_admission_agree_with_the_vertical_pod_autoscaler() {
    assert_all_agree(vpa::run, &["vpa"], 151);
}

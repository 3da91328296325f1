//! Agreement with the real program: recorded answers in tests/cases, counted by the same code as the example `agreement`.

use agreement::cluster_autoscaler;
use agreement::tally::assert_all_agree;

#[test]
fn iterations_agree_with_the_cluster_autoscaler() {
    assert_all_agree(cluster_autoscaler::run, &["cluster-autoscaler"], 151);
}

//! Agreement with the real program: recorded answers in tests/cases, counted by the same code as the example `agreement`.

use agreement::tally::assert_all_agree;
use agreement::vpa;

#[test]
fn vpa_decisions_match_upstream() {
    assert_all_agree(vpa::run, &["vpa"], 151);
}

//! Agreement with Karpenter's real controllers over time: the cases in tests/cases, counted by the same code as
//! the example `agreement`. Suites of single decisions are tests of the crates that decide.

use agreement::fields;
use agreement::tally::assert_all_agree;
use agreement_timelines::karpenter_timeline;

#[test]
fn unread_answer_fields_are_rejected() {
    let value = serde_json::json!({"known": 1, "new": 2});
    assert_eq!(fields::beyond(&value, &["known", "other"]).collect::<Vec<_>>(), ["new"]);
    assert!(fields::check_read("expected", &value, &["known"]).is_err_and(|why| why.contains("new")));
    assert_eq!(fields::check_read("expected", &value, &["known", "new"]), Ok(()));
}

#[test]
fn whole_timelines_agree_with_karpenters_controllers() {
    assert_all_agree(karpenter_timeline::run, &["karpenter-timeline"], 72);
}

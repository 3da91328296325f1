//! How long upstream takes for a scheduling pass, by the model and as it was measured: the rows that are quickly packed here.
//! `docs/reliability.md` has them all.

use agreement::passes;
use nodecast_karpenter::controller_time;
use nodecast_model::domain::SimDuration;

#[test]
fn pass_times_match_measurements_to_5000_pods() {
    let quick = ["plain-1k", "plain-5k", "mixed-1k", "mixed-5k", "mix-1", "mix-50", "mix-1000", "ignored"];
    for row in passes::ROWS.iter().filter(|row| quick.contains(&row.name)) {
        let work = row.work().unwrap();
        let ratio = controller_time::solve(&work).as_secs_f64() / row.measured;
        assert!((1.0 / row.within..=row.within).contains(&ratio), "{}: {ratio}", row.name);
    }
}

#[test]
fn timed_out_pass_keeps_partial_result() {
    let row = passes::ROWS.iter().find(|row| row.name == "plain-5k").unwrap();
    let second = SimDuration::from_secs(1);
    let cut = row.plan(Some(second)).unwrap();
    let placed: usize = cut.claims.iter().map(|claim| claim.pods.len()).sum();
    assert_eq!((placed + cut.unreached.len(), cut.unschedulable.len()), (5_000, 0));
    assert!(placed > 200 && placed < 4_000, "{placed} pods are placed in a second");
    let took = controller_time::solve(&cut.work);
    assert!(took >= second && took < second + SimDuration::from_millis(100), "{took:?}");
    let whole = row.plan(Some(SimDuration::from_secs(60))).unwrap();
    assert!(whole.unreached.is_empty(), "a minute is enough for five thousand pods");
}

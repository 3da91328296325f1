//! `scenarios/right-sizing`: what its README says of evictions and resizes in place.

use nodecast::world::record::EventKind;

use super::{Run, has_rows, runs};
use crate::outputs::all_documented;

/// Evictions and resizes by the Vertical Pod Autoscaler.
fn deeds(run: &Run) -> (u64, u64) {
    let vertical = &run.summary.vertical;
    (vertical.iter().map(|vertical| vertical.evicted).sum(), vertical.iter().map(|vertical| vertical.resized).sum())
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn in_place_evicts_less_with_same_requests() {
    let all: [Run; 3] = runs("right-sizing");
    has_rows("right-sizing", &all, |run| {
        let (evicted, resized) = deeds(run);
        [run.cost(), evicted.to_string(), resized.to_string(), run.events(EventKind::PodEvicted).to_string()]
    });
    all.iter().for_each(|run| all_documented(&run.summary));
    let [today, recreate, in_place] = &all;
    assert!(today.summary.vertical.is_empty());
    assert!(deeds(in_place).0 * 3 < deeds(recreate).0, "{:?} {:?}", deeds(in_place), deeds(recreate));
    assert!(deeds(in_place).1 > 0 && deeds(recreate).1 == 0);
    assert!(in_place.events(EventKind::PodEvicted) < recreate.events(EventKind::PodEvicted));
    for (one, other) in recreate.summary.vertical.iter().zip(&in_place.summary.vertical) {
        for (one, other) in one.containers.iter().zip(&other.containers) {
            for (one, other) in [(one.cpu, other.cpu), (one.memory, other.memory)] {
                let (one, other) = (one.unwrap(), other.unwrap());
                let near = |one: f64, other: f64| (one - other).abs() <= 0.25 * one.max(other);
                assert!(near(one.target, other.target), "{one:?} {other:?}");
                assert!(near(one.request_last.unwrap(), other.request_last.unwrap()), "{one:?} {other:?}");
            }
        }
    }
}

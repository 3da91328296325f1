//! `scenarios/headroom`: what its README says.

use nodecast::report::format;
use nodecast::world::record::EventKind;

use super::{Run, has_rows, runs};

const SERVICES: [&str; 3] = ["shop/checkout", "shop/search", "shop/login"];

#[test]
fn room_held_free_takes_the_wait_for_nodes_and_leaves_that_for_the_autoscaler() {
    let all @ [none, pause, larger] = &runs::<3>("headroom");
    has_rows("headroom", all, |run: &Run| {
        let wait = run.longest_wait(&SERVICES, 10);
        [run.cost(), format::whole(run.lost()), format::span(run.slowest()), format::span(wait)]
    });
    // Without room a replica waits for an instance; with it for the scheduler.
    assert!(none.longest_wait(&SERVICES, 10) > 40.0 && pause.longest_wait(&SERVICES, 10) < 1.0);
    let events = &pause.outcome.record.events;
    let preempted: Vec<_> = events.iter().filter(|event| event.message.starts_with("preempted by")).collect();
    assert!(preempted.len() > 100, "{}", preempted.len());
    for event in preempted {
        let victim = &pause.outcome.record.pods[event.pod.unwrap().index()];
        assert!(victim.name.starts_with("pause-"), "{} gives way", victim.name);
    }
    // What is left is the autoscaler's: its readings and its steps.
    assert!(pause.lost() > 0.4 * none.lost() && pause.lost() < 0.7 * none.lost());
    assert!(larger.lost() < 1.0 && larger.events(EventKind::Rescaled) == 3);
    // Room for one burst serves three services.
    let cost = |run: &Run| run.summary.cost.total;
    assert!(cost(pause) < 1.5 * cost(none) && cost(larger) > 1.35 * cost(pause));
    // The pods that gave way are pending, and nodes are launched for them.
    let launched = pause.pods("headroom/pause", 10);
    assert!(launched.iter().filter(|pod| pod.unschedulable.is_some()).count() > 50);
}

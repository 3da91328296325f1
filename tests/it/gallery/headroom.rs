//! `scenarios/headroom`: what its README says.

use nodecast::report::format;
use nodecast::world::record::EventKind;

use super::{Run, has_rows, runs};

const SERVICES: [&str; 3] = ["shop/checkout", "shop/search", "shop/login"];

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn headroom_removes_pod_wait_for_nodes() {
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
        let victim = pause.outcome.record.pods.facts(event.pod.unwrap());
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

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn more_headroom_shortens_pod_waits() {
    let place = crate::cli::Place::new();
    let scenario = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/headroom/scenario.yaml");
    let axis = "Deployment[headroom/pause].spec.replicas=0,4,8,14,20";
    let scenario = scenario.display().to_string();
    let arguments =
        ["sweep", &scenario, "--policies", "pause-pods", "--set", axis, "--replications", "1", "--out", "swept"];
    let (out, err, code) = place.nodecast(&arguments);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("pod wait for a node, mean") && out.contains("pods that waited over 1 s"), "{out}");
    let mut reader = csv::Reader::from_path(place.path("swept/sweep.csv")).unwrap();
    let header = reader.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|item| item == name).unwrap();
    let (mean, waited) = (column("pending_mean"), column("pods_waited"));
    let rows: Vec<(f64, f64)> = reader
        .records()
        .map(|row| row.unwrap())
        .map(|row| (row[mean].parse().unwrap(), row[waited].parse().unwrap()))
        .collect();
    assert_eq!(rows.len(), 5);
    // From none to what one burst needs; beyond that nobody is left who waits for want of room.
    for pair in rows[..4].windows(2) {
        assert!(pair[1].0 < pair[0].0 && pair[1].1 < pair[0].1, "{rows:?}");
    }
    assert!(rows[0].0 > 4.0 * rows[3].0 && rows[0].1 > 4.0 * rows[3].1, "{rows:?}");
}

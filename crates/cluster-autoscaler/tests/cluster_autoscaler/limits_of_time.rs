//! Limits of time of an iteration, by the time that upstream would take.

use nodecast_cluster_autoscaler::estimator::{NodeLimit, PackingGroup, estimate_within};
use nodecast_cluster_autoscaler::snapshot::{PodAt, Snapshot};
use nodecast_model::domain::SimDuration;

use super::lab::{Lab, program, seconds, spec, template, traits};

pub const ROWS: &[&str] = &["C10", "J8"];

#[test]
fn estimate_timeout_skips_all_but_first_group() {
    let options = |given: &[(&str, &str)]| {
        let mut lab = Lab::default();
        for id in ["ng1", "ng2", "ng3"] {
            lab.group(id, (0, 10, 0), 1_000, 1_000);
        }
        lab.pending("new", 5, 500, 0);
        let found = lab.run(&mut program(given).taking_time(100)).scale_up;
        (found.options.len(), found.cut)
    };
    assert_eq!(options(&[]), (3, false));
    assert_eq!(options(&[("max-binpacking-time", "1us")]), (1, true));
}

#[test]
fn timed_out_estimate_keeps_its_nodes() {
    let mut snapshot = Snapshot::new(0);
    let pod = traits("a", spec("a", 500, 100));
    let pods: Vec<PodAt> = (0..2_000).map(|_| snapshot.add_pod(None, &pod)).collect();
    let groups = [PackingGroup { pods: &pods }];
    let node = template(1_000, 5_000);
    let mut within = |time| estimate_within(&mut snapshot, &groups, &node, NodeLimit::Unlimited, false, time);
    let all = within(None);
    assert_eq!((all.nodes, all.placed[0], all.cut), (1_000, 2_000, false));
    assert_eq!(within(Some(seconds(10))), all, "ten seconds are enough for two thousand pods");
    let cut = within(Some(SimDuration::from_millis(50)));
    assert!(cut.cut && cut.nodes > 100 && cut.nodes < 500, "{} nodes", cut.nodes);
    assert_eq!(cut.placed[0], 2 * cut.nodes);
}

#[test]
fn removal_simulation_timeout_skips_remaining_nodes() {
    let unneeded = |given: &[(&str, &str)]| {
        let mut lab = Lab::default();
        let group = lab.group("ng1", (0, 10, 3), 1_000, 1_000);
        for name in ["p1", "p2", "p3"] {
            let node = lab.node(group);
            lab.running(name, node, 100, 0);
        }
        let found = lab.run(&mut program(given).taking_time(1)).scale_down;
        (found.nodes.iter().filter(|node| node.unneeded).count(), found.cut)
    };
    assert_eq!(unneeded(&[]), (2, false));
    assert_eq!(unneeded(&[("scale-down-simulation-timeout", "1ms")]), (1, true));
}

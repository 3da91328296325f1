//! Auto Scaling groups replace unhealthy instances a few at a time.

use nodecast::simulation::Outcome;
use nodecast::world::record::NodeEnd;

use crate::node_groups::{minutes, run, web};

/// Two hours of a group of this size in two zones, of which one has no power from 10 minutes on, with exact times of machines.
fn outage(desired: u32, managed: bool, steps: &str) -> Outcome {
    let stages = "vm_init: 15s, os_boot: 10s, bootstrap: 20s, register: 5s, cni_ready: 5s, status: 5s, running: 20s, by_type: false, spread: false";
    let text = format!(
        "name: unhealthy\nregion: us-east-1\nduration: 2h\ncluster: {{ zones: [us-east-1a, us-east-1b] }}\nmanifests: [manifests.yaml]\nec2: {{ \
         capacity: infinite, failures: none, launch_latency: {{ {stages} }}, times: {{ group_reaction: 0s, group_in_service: 40s, \
         group_health_check: 30s }} }}\nnodeGroups:\n  - {{ name: workers, instanceType: m6i.large, desired: {desired}, max: 60, managed: {managed} }}\ntimeline: [{steps}]\n\
         faults: [{{ at: 10m, for: 2h, zone_outage: {{ zone: us-east-1b, mode: power }} }}]\n"
    );
    run(&text, &web(1))
}

/// When each unhealthy instance ended, in seconds after the outage.
fn ends(outcome: &Outcome) -> Vec<i64> {
    let unhealthy = outcome.record.nodes.iter().filter(|node| node.end == Some(NodeEnd::Unhealthy));
    let mut ends: Vec<i64> = unhealthy.map(|node| (node.deletion_requested.unwrap() - minutes(10)).as_secs()).collect();
    ends.sort_unstable();
    ends
}

#[test]
fn unhealthy_instances_are_replaced_a_tenth_at_once() {
    // A replacement is in service 60 s after its launch; every 10 s the group checks those that wait.
    let ends = ends(&outage(40, false, ""));
    assert_eq!(ends.len(), 20);
    assert_eq!(ends[..4], [150; 4], "two status checks, and a health check 30 s later");
    for (later, earlier) in ends[4..].iter().zip(&ends) {
        assert!((60..=70).contains(&(later - earlier)), "{ends:?}");
    }
}

#[test]
fn small_group_replaces_one_unhealthy_instance_at_once() {
    for managed in [false, true] {
        let ends = ends(&outage(7, managed, ""));
        assert_eq!(ends.len(), 3, "managed: {managed}");
        assert!(ends.windows(2).all(|pair| (60..=90).contains(&(pair[1] - pair[0]))), "managed: {managed}: {ends:?}");
    }
}

#[test]
fn unhealthy_instances_wait_for_a_scale_out() {
    // From 12 minutes on, ten instances are missing for 60 s; the health check at 12 minutes 30 s finds them.
    let step = "{ at: 12m, scale_group: { group: workers, desired: 30 } }";
    let first = ends(&outage(20, false, step))[0];
    assert!((180..=190).contains(&first), "{first} s");
}

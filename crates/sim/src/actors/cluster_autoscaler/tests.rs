//! What no scenario can bring about: nodes that vanish in the very instant, annotations that others set.

use std::sync::Arc;

use super::removal::{self, Chosen};
use crate::actors::components::Components;
use crate::actors::dispatch::settle;
use crate::actors::setup::{Autoscaler, ClusterAutoscalerSettings, Setup};
use crate::catalog::Catalog;
use crate::cluster::NodePhase;
use crate::domain::volumes::Storage;
use crate::domain::{Check, NodeId, SimDuration, SimTime, Symbol};
use nodecast_cluster_autoscaler::TO_BE_DELETED;
use nodecast_cluster_autoscaler::discovery::ENABLED_TAG;
use nodecast_scheduler::SchedulerConfig;
use nodecast_settings::Scenario;

/// A cluster of three empty nodes where controllers take no time; `flags` are over the defaults.
fn scenario(flags: &str) -> Scenario {
    scenario_with("controller_time: none\n", flags)
}

/// The same with other keys.
fn scenario_with(keys: &str, flags: &str) -> Scenario {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("scenario.yaml");
    let text = format!(
        "name: test\nregion: us-east-1\nduration: 1h\n{keys}cluster: {{ zones: [us-east-1a] }}\n\
         nodeGroups:\n  - {{ name: workers, managed: false, instanceType: m5.large, min: 0, desired: 3, max: 9, tags: {{ {ENABLED_TAG}: \"true\" }} }}\n\
         policies:\n  - {{ name: own, autoscaler: cluster-autoscaler, flags: {{ {flags} }} }}\n"
    );
    std::fs::write(&path, text).unwrap();
    nodecast_scenario::load(&path).unwrap().0
}

fn setup(scenario: &Scenario) -> Setup<'_> {
    let policy = scenario.for_policy(None).unwrap();
    let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
    Setup {
        scenario,
        policy,
        price_list: Arc::clone(&region),
        region,
        check: Check::AsBuilt,
        keeps_meters: true,
        seed: 1,
        market_seed: 1,
        autoscaler: Autoscaler::ClusterAutoscaler(Box::new(ClusterAutoscalerSettings {
            flags: Arc::clone(policy.flags.as_ref().unwrap()),
            ranks: None,
        })),
        scheduler: SchedulerConfig { version: policy.versions.kubernetes, ..SchedulerConfig::default() },
        node_pools: Vec::new(),
        node_classes: Vec::new(),
        node_overlays: Vec::new(),
        buffers: Vec::new(),
        storage: Storage::default(),
        prometheus: None,
        queues: Vec::new(),
        loads: Vec::new(),
        usages: Vec::new(),
        initial: None,
        timeline: Vec::new(),
        selecting_labels: std::collections::BTreeSet::new(),
        sample_interval: SimDuration::from_secs(60),
    }
}

fn seconds(seconds: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(seconds)
}

fn run_until(components: &mut Components<'_>, until: SimTime) {
    while components.sim.queue.next_time().is_some_and(|at| at <= until) {
        let Some((now, event)) = components.sim.queue.pop() else { return };
        crate::actors::handle(components, now, event);
    }
}

fn begin(components: &mut Components<'_>, at: SimTime, chosen: &[Chosen]) -> bool {
    let (sim, autoscaler, _) = components.cluster_autoscaler();
    let began = removal::begin(sim, autoscaler, at, chosen);
    settle(components, at);
    began
}

fn is_tainted(components: &Components<'_>, node: u32) -> bool {
    components.sim.world.node(NodeId(node)).taints.iter().any(|taint| taint.key.as_str() == TO_BE_DELETED)
}

fn chosen(nodes: &[u32]) -> Vec<Chosen> {
    nodes.iter().map(|&node| Chosen { node: NodeId(node), empty: true, reason: "empty".to_owned() }).collect()
}

/// K7.
#[test]
fn failed_taint_keeps_all_nodes_of_batch() {
    let scenario = scenario("scale-down-unneeded-time: 30m");
    let setup = setup(&scenario);
    let mut components = Components::new(&setup);
    crate::actors::begin(&mut components);
    run_until(&mut components, seconds(60));
    components.sim.world.terminate_instance(NodeId(1), seconds(60));
    assert!(!begin(&mut components, seconds(60), &chosen(&[0, 1, 2])));
    assert!(!is_tainted(&components, 0) && !is_tainted(&components, 2));
    run_until(&mut components, seconds(120));
    assert_eq!(components.sim.world.node(NodeId(0)).phase, NodePhase::Registered);
    assert!(components.cluster_autoscaler.removals.is_empty());
    assert!(begin(&mut components, seconds(120), &chosen(&[0, 2])), "without it all goes well");
    assert!(is_tainted(&components, 0) && is_tainted(&components, 2));
}

/// K9.
#[test]
fn annotation_delays_node_deletion_for_two_minutes() {
    let delay = Symbol::new("delay-deletion.cluster-autoscaler.kubernetes.io/backup");
    let ended = |flags: &str, removed: Option<i64>| {
        let scenario = scenario(flags);
        let setup = setup(&scenario);
        let mut components = Components::new(&setup);
        crate::actors::begin(&mut components);
        run_until(&mut components, seconds(60));
        components.sim.world.annotate_node(NodeId(0), delay, Some(Symbol::new("soon")));
        assert!(begin(&mut components, seconds(60), &chosen(&[0])));
        if let Some(removed) = removed {
            run_until(&mut components, seconds(removed));
            components.sim.world.annotate_node(NodeId(0), delay, None);
        }
        run_until(&mut components, seconds(400));
        components.sim.world.record().nodes[0].terminating.map(SimTime::as_secs)
    };
    // The taint is watched for five seconds first.
    assert_eq!(ended("", None), Some(60 + 5 + 120));
    assert_eq!(ended("", Some(90)), Some(95));
    assert_eq!(ended("node-deletion-delay-timeout: 0s", None), Some(65));
}

#[test]
fn iteration_ends_with_two_calls_about_status() {
    let calls = |flags: &str| {
        let scenario = scenario_with("", &format!("scale-down-enabled: false, scan-interval: 7s{flags}"));
        let setup = setup(&scenario);
        let mut components = Components::new(&setup);
        crate::actors::begin(&mut components);
        run_until(&mut components, seconds(95));
        let cluster_autoscaler = &components.cluster_autoscaler;
        let [before, last] = cluster_autoscaler.starts;
        (cluster_autoscaler.call_limit().map(|limit| limit.used().calls), cluster_autoscaler.iterations, last - before)
    };
    let (status, none) = (calls(""), calls(", write-status-configmap: false"));
    assert_eq!(status.0, Some(2 * status.1), "no iteration is under way");
    assert_eq!(none.0, Some(0));
    // The interval counts from the end: 4 ms, 0.8 ms for the group, 0.1 ms for each node, and two calls of 4 ms.
    assert_eq!(status.2, SimDuration::from_micros(7_000_000 + 4_000 + 800 + 300 + 8_000));
    assert_eq!(none.2, SimDuration::from_micros(7_000_000 + 4_000 + 800 + 300));
}

#[test]
fn node_has_group_once_its_instance_was_listed() {
    let scenario = scenario_with("", "scale-down-enabled: false");
    let setup = setup(&scenario);
    let mut unknown = 0;
    for grows_at in [20, 35, 50, 65] {
        let mut components = Components::new(&setup);
        crate::actors::begin(&mut components);
        run_until(&mut components, seconds(grows_at));
        assert_eq!(components.cluster_autoscaler.groups.group_of(NodeId(2)), Some(0), "it is there from the start");
        components.sim.set_desired_capacity(seconds(grows_at), Symbol::new("workers"), 4, "test").unwrap();
        settle(&mut components, seconds(grows_at));
        let mut registered = None;
        for second in grows_at..grows_at + 240 {
            run_until(&mut components, seconds(second));
            let is_there = components.sim.world.live_nodes().contains(&NodeId(3))
                && components.sim.world.node(NodeId(3)).phase == NodePhase::Registered;
            registered = registered.or(is_there.then_some(second));
            let group = components.cluster_autoscaler.groups.group_of(NodeId(3));
            unknown += usize::from(is_there && group.is_none());
            assert!(registered.is_none_or(|since| second < since + 72) || group == Some(0));
        }
    }
    assert!(unknown > 0);
}

#[test]
fn whole_seconds_begin_at_drawn_fraction() {
    let scenario = scenario("");
    let fraction = |seed| {
        let setup = Setup { seed, ..setup(&scenario) };
        let components = Components::new(&setup);
        let at = SimTime::ZERO + SimDuration::from_micros(61_234_567);
        let whole = components.sim.whole_seconds(at);
        assert!(whole <= at && at - whole < SimDuration::from_secs(1));
        assert_eq!(components.sim.whole_seconds(whole), whole);
        assert_eq!(components.sim.whole_seconds(whole + SimDuration::from_micros(999_999)), whole);
        whole.as_micros().rem_euclid(1_000_000)
    };
    assert_ne!(fraction(1), fraction(2));
}

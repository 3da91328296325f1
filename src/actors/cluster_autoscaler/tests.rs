//! What no scenario can bring about: nodes that vanish in the very instant, annotations that others set.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::removal::{self, Chosen};
use crate::actors::context::Context;
use crate::actors::setup::{Autoscaler, ClusterAutoscalerSettings, Setup};
use crate::catalog::Catalog;
use crate::cluster::NodePhase;
use crate::domain::node_group::{InstancesDistribution, NodeGroup};
use crate::domain::node_pool::AmiFamily;
use crate::domain::volumes::Storage;
use crate::domain::{Check, ControllerTime, Labels, NodeId, SimDuration, SimTime, Symbol, Versions};
use crate::policy::cluster_autoscaler::discovery::ENABLED_TAG;
use crate::policy::cluster_autoscaler::{Flags, TO_BE_DELETED};
use crate::policy::kube_scheduler::SchedulerConfig;
use crate::scenario::definition::{ImageSettings, Phases};

fn workers(size: u32) -> NodeGroup {
    NodeGroup {
        name: Symbol::new("workers"),
        managed: false,
        instance_types: vec![Symbol::new("m5.large")],
        distribution: InstancesDistribution::ON_DEMAND,
        capacity_rebalance: false,
        min_size: 0,
        desired_size: size,
        max_size: 9,
        labels: Labels::new(),
        taints: Vec::new(),
        zones: Vec::new(),
        ami_family: AmiFamily::AL2023,
        volume_bytes: 20 << 30,
        volume_type: Symbol::new("gp3"),
        max_pods: None,
        tags: Labels::new().with(ENABLED_TAG, "true"),
    }
}

/// A cluster of three empty nodes; `flags` are over the defaults.
fn setup(flags: &[(&str, &str)]) -> Setup {
    let versions = Versions::default();
    let flags = Flags::parse(versions.cluster_autoscaler.kubernetes(), flags.iter().copied()).unwrap();
    let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
    Setup {
        storage: Storage::default(),
        versions,
        price_list: Arc::clone(&region),
        region,
        zones: vec![Symbol::new("us-east-1a")],
        duration: SimDuration::from_secs(3_600),
        check: Check::AsBuilt,
        seed: 1,
        autoscaler: Autoscaler::ClusterAutoscaler(Box::new(ClusterAutoscalerSettings {
            flags: Arc::new(flags),
            ranks: None,
        })),
        controller_time: ControllerTime::NONE,
        scheduler: SchedulerConfig { version: versions.kubernetes, ..SchedulerConfig::default() },
        termination_handler: None,
        pod_trace: None,
        times: BTreeMap::new(),
        images: ImageSettings::default(),
        node_groups: vec![workers(3)],
        node_pools: Vec::new(),
        node_classes: Vec::new(),
        namespaces: Vec::new(),
        services: Vec::new(),
        disruption_budgets: Vec::new(),
        start: jiff::Timestamp::UNIX_EPOCH,
        prometheus: None,
        queues: Vec::new(),
        external_metrics: Vec::new(),
        metrics_resolution: SimDuration::from_secs(15),
        phases: Phases::default(),
        loads: Vec::new(),
        timeline: Vec::new(),
        boot: None,
        cloud: Arc::default(),
        sample_interval: SimDuration::from_secs(60),
    }
}

fn seconds(seconds: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(seconds)
}

fn run_until(context: &mut Context<'_>, until: SimTime) {
    while context.queue.next_time().is_some_and(|at| at <= until) {
        let Some((now, event)) = context.queue.pop() else { return };
        crate::actors::handle(context, now, event);
    }
}

fn is_tainted(context: &Context<'_>, node: u32) -> bool {
    context.world.node(NodeId(node)).taints.iter().any(|taint| taint.key.as_str() == TO_BE_DELETED)
}

fn chosen(nodes: &[u32]) -> Vec<Chosen> {
    nodes.iter().map(|&node| Chosen { node: NodeId(node), empty: true, reason: "empty".to_owned() }).collect()
}

/// K7.
#[test]
fn if_one_node_cannot_be_tainted_its_like_stay_and_nothing_is_deleted() {
    let setup = setup(&[("scale-down-unneeded-time", "30m")]);
    let mut context = Context::new(&setup);
    crate::actors::begin(&mut context);
    run_until(&mut context, seconds(60));
    context.world.terminate_instance(NodeId(1), seconds(60));
    assert!(!removal::begin(&mut context, seconds(60), &chosen(&[0, 1, 2])));
    assert!(!is_tainted(&context, 0) && !is_tainted(&context, 2));
    run_until(&mut context, seconds(120));
    assert_eq!(context.world.node(NodeId(0)).phase, NodePhase::Registered);
    assert!(context.cluster_autoscaler.removals.is_empty());
    assert!(removal::begin(&mut context, seconds(120), &chosen(&[0, 2])), "without it all goes well");
    assert!(is_tainted(&context, 0) && is_tainted(&context, 2));
}

/// K9.
#[test]
fn an_annotation_delays_a_deletion_until_it_is_removed_or_for_two_minutes() {
    let delay = Symbol::new("delay-deletion.cluster-autoscaler.kubernetes.io/backup");
    let ended = |flags: &[(&str, &str)], removed: Option<i64>| {
        let setup = setup(flags);
        let mut context = Context::new(&setup);
        crate::actors::begin(&mut context);
        run_until(&mut context, seconds(60));
        context.world.annotate_node(NodeId(0), delay, Some(Symbol::new("soon")));
        assert!(removal::begin(&mut context, seconds(60), &chosen(&[0])));
        if let Some(removed) = removed {
            run_until(&mut context, seconds(removed));
            context.world.annotate_node(NodeId(0), delay, None);
        }
        run_until(&mut context, seconds(400));
        context.world.record().nodes[0].terminating.map(SimTime::as_secs)
    };
    // The taint is watched for five seconds first.
    assert_eq!(ended(&[], None), Some(60 + 5 + 120));
    assert_eq!(ended(&[], Some(90)), Some(95));
    assert_eq!(ended(&[("node-deletion-delay-timeout", "0s")], None), Some(65));
}

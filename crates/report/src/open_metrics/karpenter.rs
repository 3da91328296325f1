//! Karpenter's own metrics, under the names of the release: those of v1, and the few that releases before had.
//!
//! Source: Karpenter core v1.13 `pkg/metrics/metrics.go`, `pkg/controllers/metrics`, `pkg/controllers/disruption/metrics.go`,
//! `pkg/controllers/node/termination/metrics.go`; AWS provider v1.13 `pkg/controllers/interruption/metrics.go`; the reference of
//! metrics of v0.16 to v0.22.

use std::collections::BTreeMap;
use std::io;

use super::claims;
use super::distributions::{KARPENTER_BUCKETS, histogram, summary};
use super::exposition::{Changes, Exposition, Family, Kind, Labels, Level, Spans};
use super::kube_pods::phases_of;
use super::lives::{Lives, amounts, earliest, pool_of, scale, value};
use super::owners::Owners;
use crate::domain::node_pool::DisruptionReason;
use crate::domain::{NodeId, NodePool, ResourceName, SimTime, well_known};
use nodecast_karpenter::disruption::{NodeCount, allowed};
use nodecast_karpenter::release::Behaviour;
use nodecast_world::record::{EventKind, NodeFacts, NodeOrigin, ReplacementFacts};

/// Series of each node, for the size of the text.
pub(super) const NODE_SERIES: u64 = 6;
/// Series of each pod at one time.
pub(super) const POD_SERIES: u64 = 1;
/// Series of each NodePool.
pub(super) const POOL_SERIES: u64 = 30 + claims::POOL_LINES;

/// In the order of [`Sample::nodes_eligible`](nodecast_world::record::Sample::nodes_eligible).
const REASONS: [DisruptionReason; 3] = DisruptionReason::ALL;

/// Families that are not about single nodes or pods.
pub(super) fn write(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let release = lives.outcome.about.versions.karpenter;
    out.family(Family::gauge("karpenter_build_info", "1, with the release reproduced."));
    out.series(&vec![("version", release.to_string())], SimTime::ZERO, |_| Some(1.0))?;
    let behaviour = Behaviour::for_release(release);
    claims::write(out, lives)?;
    if !behaviour.v1_metrics {
        return before_v1(out, lives, behaviour);
    }
    nodes(out, lives, ["karpenter_nodes_created", "karpenter_nodes_terminated"], Kind::Counter, "nodepool")?;
    durations(out, lives)?;
    pools(out, lives, ["karpenter_nodepools_usage", "karpenter_nodepools_limit"], "nodepool")?;
    allowed_disruptions(out, lives)?;
    decisions(out, lives)?;
    evictions(out, lives)?;
    messages(out, lives, Kind::Counter)?;
    cluster_state(out, lives)?;
    prices(out, lives)
}

/// What releases before v1 told under other names, as far as these are known.
fn before_v1(out: &mut Exposition<'_>, lives: &Lives<'_>, behaviour: &Behaviour) -> io::Result<()> {
    let release = lives.outcome.about.versions.karpenter;
    if behaviour.node_metrics {
        let names = ["karpenter_nodes_created", "karpenter_nodes_terminated"];
        nodes(out, lives, names, Kind::Unknown, pool_key(lives))?;
    }
    if release.is_since(0, 33) {
        pools(out, lives, ["karpenter_nodepool_usage", "karpenter_nodepool_limit"], "nodepool")?;
    } else if behaviour.node_pool_metrics {
        pools(out, lives, ["karpenter_nodepools_usage", "karpenter_nodepools_limit"], "nodepool")?;
    } else if behaviour.provisioner_metrics {
        pools(out, lives, ["karpenter_provisioner_usage", "karpenter_provisioner_limit"], "provisioner")?;
    }
    if behaviour.node_metrics {
        messages(out, lives, Kind::Unknown)?;
    }
    if release.is_since(0, 29) {
        prices(out, lives)?;
    }
    startup(out, lives, "karpenter_pods_startup_time_seconds")
}

/// The label that tells the pool.
fn pool_key(lives: &Lives<'_>) -> &'static str {
    if Behaviour::for_release(lives.outcome.about.versions.karpenter).node_pool_metrics {
        "nodepool"
    } else {
        "provisioner"
    }
}

/// Nodes and claims that Karpenter made during the run, with the names of their pools.
pub(super) fn made<'l>(lives: &'l Lives<'_>) -> impl Iterator<Item = (NodeId, &'l NodeFacts, String)> + use<'l> {
    lives.nodes().filter_map(|(id, node)| Some((id, node, pool_of(node)?)))
}

pub(super) fn was_there(node: &NodeFacts) -> bool {
    node.ready.is_some_and(|ready| ready <= SimTime::ZERO)
}

/// A reason as the release writes it.
pub(super) fn reason_name(lives: &Lives<'_>, reason: DisruptionReason) -> String {
    if lives.outcome.about.versions.karpenter.is_since(1, 2) { lower(reason) } else { reason.as_str().to_owned() }
}

fn lower(reason: DisruptionReason) -> String {
    reason.as_str().to_lowercase()
}

fn nodes(
    out: &mut Exposition<'_>,
    lives: &Lives<'_>,
    [created, terminated]: [&'static str; 2],
    kind: Kind,
    key: &'static str,
) -> io::Result<()> {
    let (mut came, mut went) = (Changes::default(), Changes::default());
    for (_, node, pool) in made(lives) {
        let zone = if kind == Kind::Counter { value(node.zone) } else { String::new() };
        let labels = || vec![(key, pool.clone()), ("zone", zone.clone())];
        if let Some(at) = node.registered {
            if !was_there(node) {
                came.add(labels(), at, 1);
            }
            if let Some(at) = node.terminated {
                went.add(labels(), at, 1);
            }
        }
    }
    out.family(Family { name: created, kind, help: "Nodes of Karpenter that registered." });
    out.changes(came, 1.0)?;
    out.family(Family { name: terminated, kind, help: "Nodes of Karpenter that are gone." });
    out.changes(went, 1.0)
}

fn durations(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    startup(out, lives, "karpenter_pods_startup_duration_seconds")?;
    if lives.outcome.about.versions.karpenter.is_since(1, 1) {
        let bound = lives.pods().filter_map(|(_, pod)| Some((pod.scheduled?, pod.scheduled? - pod.created)));
        let (name, help) =
            ("karpenter_pods_bound_duration_seconds", "From the creation of pods until they were bound.");
        out.family(Family { name, kind: Kind::Histogram, help });
        histogram(out, &Vec::new(), &KARPENTER_BUCKETS, bound)?;
    }
    let help = "From the decision to remove nodes until they were gone.";
    out.family(Family { name: "karpenter_nodes_termination_duration_seconds", kind: Kind::Summary, help });
    for pool in &lives.outcome.objects.node_pools {
        let nodes = lives.nodes().filter(|(_, node)| node.origin == NodeOrigin::NodePool(pool.name));
        let ended = nodes.filter_map(|(_, node)| {
            let from = node.registered.and(node.deletion_requested)?;
            Some((node.terminated?, node.terminated? - from))
        });
        summary(out, &vec![("nodepool", pool.name.to_string())], ended)?;
    }
    Ok(())
}

fn startup(out: &mut Exposition<'_>, lives: &Lives<'_>, name: &'static str) -> io::Result<()> {
    let help = "From the creation of pods until they were Ready.";
    out.family(Family { name, kind: Kind::Summary, help });
    summary(out, &Vec::new(), lives.pods().filter_map(|(_, pod)| Some((pod.ready?, pod.ready? - pod.created))))
}

/// What is provisioned of each resource, and how much may be.
fn pools(
    out: &mut Exposition<'_>,
    lives: &Lives<'_>,
    [usage, limit]: [&'static str; 2],
    key: &'static str,
) -> io::Result<()> {
    let labels = |pool: &str, resource: ResourceName| -> Labels {
        vec![(key, pool.to_owned()), ("resource_type", resource.to_string().to_lowercase().replace('-', "_"))]
    };
    let mut used: BTreeMap<ResourceName, Changes> = BTreeMap::new();
    for pool in &lives.outcome.objects.node_pools {
        for resource in [ResourceName::CPU, ResourceName::MEMORY, ResourceName::PODS, ResourceName::NODES] {
            used.entry(resource).or_default().there_is(labels(pool.name.as_str(), resource));
        }
    }
    for (_, node, pool) in made(lives) {
        let Some(from) = node.launched else { continue };
        let nodes = std::iter::once((ResourceName::NODES, 1));
        for (resource, amount) in amounts(&node.capacity, node.capacity.pods()).into_iter().chain(nodes) {
            used.entry(resource).or_default().between(labels(&pool, resource), from, node.terminated, amount);
        }
    }
    out.family(Family::gauge(usage, "What the instances of the pool hold together."));
    for (resource, changes) in used {
        out.changes(changes, scale(resource))?;
    }
    out.family(Family::gauge(limit, "What the instances of the pool may hold together."));
    for pool in &lives.outcome.objects.node_pools {
        for (resource, amount) in pool.limits.iter() {
            let amount = amount as f64 / scale(resource);
            out.series(&labels(pool.name.as_str(), resource), SimTime::ZERO, |_| Some(amount))?;
        }
    }
    Ok(())
}

/// What the budgets of each pool allow at each instant.
fn allowed_disruptions(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    out.family(Family::gauge("karpenter_nodepools_allowed_disruptions", "Nodes that may be disrupted now, by reason."));
    for pool in &lives.outcome.objects.node_pools {
        let (total, disrupting) = counted(lives, pool);
        for reason in REASONS {
            let labels = vec![("nodepool", pool.name.to_string()), ("reason", lower(reason))];
            let start = out.unix_seconds(SimTime::ZERO);
            out.series(&labels, SimTime::ZERO, |at| {
                let nodes = NodeCount { total: total.at(at), disrupting: disrupting.at(at) };
                Some(allowed(pool, reason, nodes, start + at.as_secs()).0 as f64)
            })?;
        }
    }
    Ok(())
}

/// Nodes of a pool that count for its budgets, and those of them that are on their way out or not Ready.
fn counted(lives: &Lives<'_>, pool: &NodePool) -> (Level, Level) {
    let (mut total, mut away) = (Vec::new(), Vec::new());
    for (id, node) in lives.nodes().filter(|(_, node)| node.origin == NodeOrigin::NodePool(pool.name)) {
        let Some(from) = node.initialized else { continue };
        let until = node.terminating.or(node.terminated);
        total.push((from, 1));
        total.extend(until.map(|until| (until, -1)));
        let leaves = node.deletion_requested;
        for (began, over, state) in lives.readiness(id, node).pieces((from, until)) {
            let began = if state == 1 { leaves.map(|leaves| leaves.max(began)) } else { Some(began) };
            if let Some(began) = began.filter(|began| over.is_none_or(|over| *began < over)) {
                away.push((began, 1));
                away.extend(over.map(|over| (over, -1)));
            }
        }
    }
    (Level::from_changes(total), Level::from_changes(away))
}

fn decision(replacements: &[ReplacementFacts]) -> String {
    if replacements.is_empty() { "delete" } else { "replace" }.to_owned()
}

fn decisions(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let (mut started, mut failed, mut rejected) = (Changes::default(), Changes::default(), Changes::default());
    for command in &lives.outcome.record.commands {
        let kind = ("consolidation_type", command.method.unwrap_or_default().to_owned());
        let labels = || {
            vec![
                kind.clone(),
                ("decision", decision(&command.replacements)),
                ("reason", reason_name(lives, command.reason)),
            ]
        };
        if let Some(at) = command.started {
            started.add(labels(), at, 1);
        }
        if let Some((at, _)) = &command.failed {
            failed.add(labels(), *at, 1);
        }
        if let Some((at, _)) = &command.rejected {
            rejected.add(vec![kind.clone()], *at, command.candidates.len() as i64);
        }
    }
    out.family(Family::gauge(
        "karpenter_voluntary_disruption_eligible_nodes",
        "Nodes that a method may take, by reason.",
    ));
    for (place, reason) in REASONS.into_iter().enumerate() {
        let labels = vec![("reason", lower(reason))];
        out.series(&labels, SimTime::ZERO, |at| lives.sample(at)?.nodes_eligible.get(place).copied().map(f64::from))?;
    }
    out.family(Family::counter("karpenter_voluntary_disruption_decisions", "Decisions carried out, by kind."));
    out.changes(started, 1.0)?;
    out.family(Family::counter("karpenter_voluntary_disruption_queue_failures", "Decisions that were given up."));
    out.changes(failed, 1.0)?;
    if !lives.outcome.about.versions.karpenter.is_since(1, 5) {
        return Ok(());
    }
    let help = "Candidates that the second look rejected.";
    out.family(Family::counter("karpenter_voluntary_disruption_failed_validations", help));
    out.changes(rejected, 1.0)
}

/// Evictions from nodes that Karpenter removes; those that a budget refused are not in the record.
fn evictions(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let name = match lives.outcome.about.versions.karpenter {
        release if release.is_since(1, 9) => "karpenter_pods_eviction_requests",
        release if release.is_since(1, 1) => "karpenter_nodes_eviction_requests",
        _ => return Ok(()),
    };
    let mut evicted = Changes::default();
    evicted.there_is(vec![("code", "200".to_owned())]);
    for (_, ref pod) in lives.pods().filter(|(_, pod)| pod.evicted) {
        let Some(node) = lives.node_of(pod).filter(|node| pool_of(node).is_some()) else { continue };
        if let (Some(at), Some(removal)) = (pod.deletion_requested, node.deletion_requested)
            && removal <= at
        {
            evicted.add(vec![("code", "200".to_owned())], at, 1);
        }
    }
    out.family(Family::counter(name, "Evictions asked for and granted."));
    out.changes(evicted, 1.0)
}

fn messages(out: &mut Exposition<'_>, lives: &Lives<'_>, kind_of_number: Kind) -> io::Result<()> {
    if !lives.outcome.objects.interruption_queue {
        return Ok(());
    }
    let kind = |kind: EventKind| match kind {
        EventKind::InterruptionNotice => Some("spot_interrupted"),
        EventKind::RebalanceRecommended => Some("rebalance_recommendation"),
        _ => None,
    };
    let mut received = Changes::default();
    for name in ["spot_interrupted", "rebalance_recommendation"] {
        received.there_is(vec![("message_type", name.to_owned())]);
    }
    for event in &lives.outcome.record.events {
        if let Some(name) = kind(event.kind) {
            received.add(vec![("message_type", name.to_owned())], event.at, 1);
        }
    }
    let (name, help) = ("karpenter_interruption_received_messages", "Notices of EC2, by kind.");
    out.family(Family { name, kind: kind_of_number, help });
    out.changes(received, 1.0)
}

fn cluster_state(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let mut there = Changes::default();
    for (_, node) in lives.nodes() {
        there.between(Vec::new(), node.requested.max(SimTime::ZERO), node.terminated, 1);
    }
    out.family(Family::gauge("karpenter_cluster_state_node_count", "Nodes and claims that Karpenter knows."));
    out.changes(there, 1.0)
}

/// Prices of the offerings that the run used, from their first use on.
fn prices(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let mut prices: BTreeMap<Labels, Vec<(SimTime, i64)>> = BTreeMap::new();
    let instances = lives.outcome.bill.lines.iter().filter(|line| line.item == crate::cloud::BillItem::Instance);
    let by_offering = lives.outcome.about.versions.karpenter.is_since(0, 36);
    let (name, region) = if by_offering {
        ("karpenter_cloudprovider_instance_type_offering_price_estimate", String::new())
    } else {
        ("karpenter_cloudprovider_instance_type_price_estimate", lives.outcome.about.region.clone())
    };
    for line in instances.filter(|line| line.capacity_type != Some(well_known::RESERVED)) {
        let labels = vec![
            ("region", region.clone()),
            ("capacity_type", value(line.capacity_type)),
            ("instance_type", value(line.instance_type)),
            ("zone", value(line.zone)),
        ];
        prices.entry(labels).or_default().push((line.from, line.rate.as_nanos()));
    }
    let help = "Price by the hour of an offering that the run used.";
    out.family(Family::gauge(name, help));
    for (labels, mut known) in prices {
        known.sort_unstable();
        let from = known.first().map_or(SimTime::ZERO, |(at, _)| *at);
        out.series(&labels, from, |at| {
            let passed = known.partition_point(|(from, _)| *from <= at);
            Some(known.get(passed.checked_sub(1)?)?.1 as f64 / 1e9)
        })?;
    }
    Ok(())
}

/// Families with series for each node.
pub(super) fn write_nodes(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let mut spans = Spans::default();
    for (_, node) in lives.nodes() {
        let Some(from) = node.registered else { continue };
        for (resource, amount) in amounts(&node.allocatable, node.allocatable.pods()) {
            spans.add(of_node(lives, node, resource), (from, node.terminated), amount as f64 / scale(resource));
        }
    }
    out.family(Family::gauge("karpenter_nodes_allocatable", "What the node offers to pods."));
    out.spans(spans, true)?;
    // Before v1 daemons were counted apart.
    let all = lives.requested();
    let mut spans = Spans::default();
    for (id, node) in lives.nodes() {
        let Some(from) = node.registered else { continue };
        for (resource, level) in all.get(&id).into_iter().flatten() {
            let labels = of_node(lives, node, *resource);
            spans.follow(&labels, (from, node.terminated), level, |amount| amount as f64 / scale(*resource));
        }
    }
    out.family(Family::gauge("karpenter_nodes_total_pod_requests", "What pods on the node request."));
    out.spans(spans, true)
}

fn of_node(lives: &Lives<'_>, node: &NodeFacts, resource: ResourceName) -> Labels {
    let v1 = Behaviour::for_release(lives.outcome.about.versions.karpenter).v1_metrics;
    let managed = if v1 { pool_of(node).is_some().to_string() } else { String::new() };
    vec![
        ("node_name", node.name.clone()),
        (pool_key(lives), pool_of(node).unwrap_or_default()),
        ("instance_type", value(node.instance_type)),
        ("zone", value(node.zone)),
        ("capacity_type", value(node.capacity_type)),
        ("arch", value(node.arch)),
        ("managed", managed),
        ("resource_type", resource.to_string()),
    ]
}

/// Families with series for each pod.
pub(super) fn write_pods(out: &mut Exposition<'_>, lives: &Lives<'_>, owners: &Owners) -> io::Result<()> {
    let mut spans = Spans::default();
    for (id, ref pod) in lives.pods() {
        let Some(workload) = lives.workload_of(pod) else { continue };
        let namespace = workload.name.namespace;
        let (kind, name) = owners.owner(lives, pod);
        let owner = match kind.as_str() {
            "" => String::new(),
            kind => format!("/apis/{}/namespaces/{namespace}/{}s/{name}", group(kind), kind.to_lowercase()),
        };
        for (phase, (from, until)) in phases_of(lives, id, pod) {
            let mut labels = vec![("name", pod.name.clone()), ("namespace", namespace.to_string())];
            labels.extend([("owner", owner.clone()), ("phase", phase.to_owned())]);
            spans.add(labels.clone(), (from, earliest([until, pod.scheduled])), 1.0);
            let (Some(bound), Some(node)) = (pod.scheduled, lives.node_of(pod)) else { continue };
            labels.extend([
                ("node", node.name.clone()),
                (pool_key(lives), pool_of(node).unwrap_or_default()),
                ("zone", value(node.zone)),
                ("arch", value(node.arch)),
                ("capacity_type", value(node.capacity_type)),
                ("instance_type", value(node.instance_type)),
            ]);
            spans.add(labels, (from.max(bound), until), 1.0);
        }
    }
    out.family(Family::gauge("karpenter_pods_state", "1 for each pod in its phase, with where it runs."));
    out.spans(spans, true)
}

/// The API group of the kind that makes pods.
fn group(kind: &str) -> &'static str {
    if kind == "Job" { "batch/v1" } else { "apps/v1" }
}

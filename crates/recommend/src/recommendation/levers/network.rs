//! Levers of network costs: zones of NodePools, calls that stay in their zone, and a gateway endpoint of S3.

use std::collections::BTreeSet;

use super::pools::term;
use super::{BaselineFacts, Kind, Level, Lever, groups};
use crate::domain::pod::PodSpec;
use crate::domain::topology::WhenUnsatisfiable;
use crate::domain::versions::KubernetesVersion;
use crate::domain::words::counted;
use crate::domain::{Symbol, well_known};
use crate::scenario::definition::Requests;

/// Levers of what a run bills of the network.
pub(super) fn levers(known: &BaselineFacts<'_>, all: &mut Vec<Lever>) {
    all.extend(zones(known));
    all.extend(near(known));
    all.extend(endpoint(known));
}

/// All nodes in fewer zones: two, or one if no workload requires a spread over zones.
fn zones(known: &BaselineFacts<'_>) -> Option<Lever> {
    let manifests = &known.policy.manifests;
    let pools: Vec<_> = manifests.node_pools.iter().filter(|_| known.policy.autoscaler.is_karpenter()).collect();
    let today = &known.scenario.zones;
    let bound = bound_zones(known);
    let (first, rest): (Vec<Symbol>, Vec<Symbol>) = today.iter().copied().partition(|zone| bound.contains(zone));
    let order: Vec<Symbol> = first.into_iter().chain(rest).collect();
    let least = if requires_zones(known) { 2 } else { 1 }.max(bound.len());
    let level = |count: usize| {
        let kept: Vec<&str> = order.iter().take(count).map(|zone| zone.as_str()).collect();
        let requirements = pools.iter().map(|pool| term(pool, well_known::ZONE, &[("In", &kept)])).collect();
        let groups = manifests.node_groups.iter().filter_map(|group| groups::place(known, group));
        let sets = groups.map(|place| (place.zones(), format!("[{}]", kept.join(", "))));
        let risk = if count == 1 { "its outage stops all pods" } else { "an outage stops more pods" };
        Level { label: format!("in {} only: {risk}", kept.join(" and ")), sets: sets.collect(), requirements }
    };
    let counts: BTreeSet<usize> = [1, 2].into_iter().filter(|count| *count >= least && *count < today.len()).collect();
    let levels: Vec<Level> = counts.into_iter().map(level).collect();
    let is_any = !levels.is_empty() && (!pools.is_empty() || !manifests.node_groups.is_empty());
    let today = today.iter().map(|zone| zone.as_str()).collect::<Vec<_>>().join(", ");
    let subject = match pools.as_slice() {
        [pool] if manifests.node_groups.is_empty() => format!("NodePool {}", pool.name),
        _ => "all nodes".to_owned(),
    };
    is_any.then_some(Lever { kind: Kind::Zones, subject, today, levels })
}

/// Zones of volumes and of nodes that are there when the run begins.
fn bound_zones(known: &BaselineFacts<'_>) -> BTreeSet<Symbol> {
    let volumes = known.policy.manifests.volumes.iter().flat_map(|volume| &volume.node_affinity);
    let expressions =
        volumes.flat_map(|term| &term.expressions).filter(|expression| expression.key == well_known::ZONE);
    expressions
        .flat_map(|expression| expression.values.iter().copied())
        .filter(|zone| known.scenario.zones.contains(zone))
        .collect()
}

/// Whether the pods of a workload must be spread over zones. Karpenter and kube-scheduler give up a spread that is only preferred.
fn requires_zones(known: &BaselineFacts<'_>) -> bool {
    let manifests = &known.policy.manifests;
    let deployments = manifests.deployments.iter().map(|deployment| &*deployment.template);
    let mut templates = deployments.chain(manifests.stateful_sets.iter().map(|set| &*set.template));
    let spreads = |pod: &PodSpec| {
        pod.topology_spread.iter().any(|topology_spread| {
            topology_spread.topology_key == well_known::ZONE
                && topology_spread.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule
        })
    };
    templates.any(spreads)
}

/// Calls to Services of workloads with load stay in their zone.
///
/// Source: Kubernetes, `trafficDistribution` (KEP-4444: beta and on in 1.31), topology-aware routing (`service.kubernetes.io/topology-mode`
/// since 1.27, `topology-aware-hints` before).
fn near(known: &BaselineFacts<'_>) -> Option<Lever> {
    let cross = known.scenario.ec2.cloud.billing.network.cross_zone?;
    cross.bytes_per_request.filter(|bytes| *bytes > 0)?;
    let manifests = &known.policy.manifests;
    let is_loaded = |namespace: Symbol, selector: &crate::domain::Labels| {
        let selects = |pod: &PodSpec| {
            !selector.is_empty() && selector.iter().all(|(key, value)| pod.labels.get(key) == Some(value))
        };
        let deployments = manifests.deployments.iter().map(|deployment| (deployment.name, &*deployment.template));
        let mut all = deployments.chain(manifests.stateful_sets.iter().map(|set| (set.name, &*set.template)));
        all.any(|(name, template)| {
            name.namespace == namespace
                && selects(template)
                && known
                    .scenario
                    .load
                    .iter()
                    .any(|load| load.workload == name && !matches!(load.requests, Requests::Cpu(_)))
        })
    };
    let services: Vec<_> = manifests
        .services
        .iter()
        .filter(|service| {
            !service.is_headless && !service.keeps_zone && is_loaded(service.name.namespace, &service.selector)
        })
        .collect();
    let from = |minor| {
        KubernetesVersion::from_minor(minor)
            .is_some_and(|kubernetes_version| known.policy.versions.kubernetes >= kubernetes_version)
    };
    let (path, value) = if from(31) {
        ("spec.trafficDistribution", "PreferClose")
    } else if from(27) {
        ("metadata.annotations[service.kubernetes.io/topology-mode]", "Auto")
    } else {
        ("metadata.annotations[service.kubernetes.io/topology-aware-hints]", "auto")
    };
    let sets = services.iter().map(|service| (format!("Service[{}].{path}", service.name), value));
    let label = format!("{value}: calls stay in their zone, which needs enough replicas in each zone");
    let subject = match services.as_slice() {
        [] => return None,
        [service] => format!("Service {}", service.name),
        many => counted(many.len() as u64, "Service", "Services"),
    };
    let levels = vec![Level::new(label, sets)];
    Some(Lever { kind: Kind::TopologyRouting, subject, today: "any zone".to_owned(), levels })
}

/// A gateway endpoint of S3 next to NAT gateways.
fn endpoint(known: &BaselineFacts<'_>) -> Option<Lever> {
    let gateways = known.scenario.ec2.cloud.billing.network.nat_gateways?;
    let path = "ec2.billing.nat_gateways.s3_endpoint".to_owned();
    let label = "gateway endpoint of S3: layers of images of ECR bypass the gateways at no charge";
    (gateways.count > 0 && !gateways.s3_endpoint).then(|| Lever {
        kind: Kind::Endpoints,
        subject: "VPC endpoints".to_owned(),
        today: "none".to_owned(),
        levels: vec![Level::new(label, [(path, "true")])],
    })
}

//! What the bill asks of a run beside its instances: what moved over the network and through load balancers, and for how long the control
//! plane was under EKS's extended support.

use super::balancers::{self, Balancer};
use crate::actors::{Action, Sim};
use crate::cloud::billing::balancers::BalancerUse;
use crate::cloud::billing::eks_fees::{self, EksOrders};
use crate::cloud::billing::network::Traffic;
use crate::cloud::billing::support;
use crate::cloud::{Bill, BillItem};
use crate::domain::node_pool::ClusterInfo;
use crate::domain::versions::KubernetesVersion;
use crate::domain::{Currency, HourlyRate, SimDuration, SimTime, WorkloadId};
use crate::manifests::Service;

/// What moved over the network in a run that ends at `end`; `answered` has the requests that each workload answered in the run. The bytes that
/// nodes pulled, and those of them that came from ECR, are not set.
///
/// Deviation: requests through a load balancer that did not exist all the time, or had other Services behind it, are
/// spread evenly over the run.
pub(super) fn traffic(sim: &Sim<'_>, answered: &[(WorkloadId, f64)], end: SimTime) -> Traffic {
    let manifests = &sim.setup.policy.manifests;
    let balancers = balancers::of_run(sim.setup.scenario, sim.setup.policy, end);
    let whole = |requests: f64| libm::round(requests.max(0.0)) as u64;
    let behind = |services: &[Service]| -> f64 {
        let is_behind = |id: WorkloadId| services.iter().any(|service| serves(sim, service, id));
        answered.iter().filter(|pair| is_behind(pair.0)).map(|pair| pair.1).sum()
    };
    let share = |from: SimTime, to: SimTime| (to - from).as_secs_f64() / (end - SimTime::ZERO).as_secs_f64();
    let used = |balancer: &Balancer| {
        let requests = balancer.phases(end).map(|(from, to, services)| behind(services) * share(from, to)).sum();
        BalancerUse {
            kind: balancer.kind,
            requests: whole(requests),
            from: balancer.from,
            to: balancer.to.unwrap_or(end),
        }
    };
    let cluster = manifests.cluster.as_ref();
    let near: Vec<Service> = manifests.services.iter().filter(|service| service.keeps_zone).cloned().collect();
    Traffic {
        zones: sim.setup.scenario.zones.clone(),
        spread: zones_of_load(sim, answered),
        requests: whole(answered.iter().map(|pair| pair.1).sum()),
        near: whole(behind(&near)),
        balancers: balancers.iter().map(used).collect(),
        ordered_gateways: cluster.map_or(0, |cluster| ordered_gateways(sim, cluster)),
        pulls_through_ordered: cluster.is_some_and(|cluster| cluster.private_nodes),
        ..Traffic::default()
    }
}

/// The number of zones in which pods of workloads with answered requests ran.
fn zones_of_load(sim: &Sim<'_>, answered: &[(WorkloadId, f64)]) -> usize {
    let record = sim.world.record();
    let serves = |id: WorkloadId| answered.iter().any(|pair| pair.0 == id && pair.1 > 0.0);
    let pods = record.pods.unnamed().filter(|pod| serves(pod.workload));
    let zones = pods.filter_map(|pod| record.nodes.get(pod.node?.index())?.zone);
    zones.collect::<std::collections::BTreeSet<_>>().len()
}

/// NAT gateways that eksctl creates for a ClusterConfig: of a highly available set one for each of its zones, or of those that eksctl
/// chooses where it names none.
///
/// Source: eksctl 0.229 `pkg/az/az.go`: three zones of the region, two in us-east-1.
fn ordered_gateways(sim: &Sim<'_>, cluster: &ClusterInfo) -> u32 {
    const CHOSEN: usize = 3;
    const CHOSEN_IN_US_EAST_1: usize = 2;
    let chosen = if sim.setup.region.name.as_str() == "us-east-1" { CHOSEN_IN_US_EAST_1 } else { CHOSEN };
    let zones = match cluster.zones.len() {
        0 => sim.setup.region.zones.len().min(chosen),
        named => named,
    };
    cluster.nat_gateways.map_or(0, |nat| nat.count(u32::try_from(zones).unwrap_or(u32::MAX)))
}

/// Whether a Service selects the pods of a workload.
fn serves(sim: &Sim<'_>, service: &Service, id: WorkloadId) -> bool {
    let workload = sim.world.workload(id);
    let selects = |labels: &crate::domain::Labels| {
        !labels.is_empty() && labels.iter().all(|(key, value)| workload.template.labels.get(key) == Some(value))
    };
    service.name.namespace == workload.name.namespace && selects(&service.selector)
}

/// The releases of the control plane in order, each from when on.
fn releases(sim: &Sim<'_>) -> Vec<(SimTime, KubernetesVersion)> {
    let mut releases = vec![(SimTime::ZERO, sim.setup.policy.versions.kubernetes)];
    releases.extend(sim.setup.timeline.iter().filter_map(|step| match step.action {
        Action::UpgradeControlPlane(version) => Some((step.at, version)),
        _ => None,
    }));
    releases
}

/// For which times the release of the control plane was under extended support.
pub(super) fn extended_support(sim: &Sim<'_>, end: SimTime) -> Vec<(SimTime, SimTime)> {
    let releases = releases(sim);
    let ends = releases.iter().skip(1).map(|release| release.0).chain([end]);
    let spans = releases.iter().zip(ends).filter_map(|(&(from, version), to)| {
        let seconds = support::extended_from(version)? - sim.setup.scenario.start.as_second();
        Some((from.max(SimTime::ZERO + SimDuration::from_secs(seconds.max(0))), to))
    });
    spans.filter(|(from, to)| from < to).collect()
}

/// What is to be said of the releases: that EKS would have upgraded the cluster by itself before the run began.
pub(super) fn unsupported(sim: &Sim<'_>) -> Option<String> {
    let version = sim.setup.policy.versions.kubernetes;
    let is_over = support::unsupported_from(version)? <= sim.setup.scenario.start.as_second();
    is_over.then(|| {
        format!(
            "EKS no longer supports Kubernetes {version} at the start of this run and would have upgraded the control plane. The bill uses extended-support pricing."
        )
    })
}

/// A warning where a stated price of the control plane, too low to have it in it, leaves the surcharge of extended support off the bill.
pub(super) fn without_surcharge(sim: &Sim<'_>, extended: &[(SimTime, SimTime)]) -> Option<String> {
    let stated = sim.setup.scenario.ec2.cloud.billing.control_plane?;
    let has_none = HourlyRate::ZERO < stated && stated < support::EXTENDED;
    let &(from, _) = extended.first().filter(|_| has_none && sim.setup.region.currency == Currency::Usd)?;
    let (_, release) = releases(sim).into_iter().rev().find(|(at, _)| *at <= from)?;
    Some(format!(
        "`ec2.billing.control_plane` is set to {}/h, so the bill omits EKS extended support for Kubernetes {release} (from {from}, {}/h more). \
         Set the key to the sum, or remove it",
        stated.as_f64(),
        support::EXTENDED.as_f64()
    ))
}

/// Warnings about the dates of EKS's support: standard support ends during the run, or nobody knows when it ends.
pub(super) fn support_dates(sim: &Sim<'_>, extended: &[(SimTime, SimTime)]) -> Vec<String> {
    if sim.setup.scenario.ec2.cloud.billing.control_plane.is_some() {
        return Vec::new();
    }
    let releases = releases(sim);
    let newest = releases.iter().map(|release| release.1).find(|version| support::is_newer_than_calendar(*version));
    let unknown = newest.map(|version| {
        format!(
            "the end of EKS's standard support for Kubernetes {version} is unknown, so the control plane costs {}/h throughout",
            support::STANDARD.as_f64()
        )
    });
    let starts_later = extended.iter().filter(|(from, _)| *from > SimTime::ZERO);
    let ends = starts_later.filter_map(|&(from, _)| {
        let (at, release) = releases.iter().rev().find(|(at, _)| *at <= from)?;
        (*at < from).then(|| {
            format!(
                "EKS's standard support for Kubernetes {release} ends at {from}: the control plane costs {}/h more from then on",
                support::EXTENDED.as_f64()
            )
        })
    });
    unknown.into_iter().chain(ends).collect()
}

/// What the cluster orders of EKS.
pub(super) fn eks_orders(sim: &Sim<'_>) -> EksOrders {
    let policy = sim.setup.policy;
    let capabilities = policy.manifests.cluster.as_ref().map(|cluster| cluster.capabilities.clone());
    let changes = sim.setup.timeline.iter().filter_map(|step| match step.action {
        Action::ChangeControlPlaneTier(tier) => Some((step.at, tier)),
        _ => None,
    });
    let tiers = std::iter::once((SimTime::ZERO, policy.control_plane_tier)).chain(changes).collect();
    EksOrders { tiers, capabilities: capabilities.unwrap_or_default() }
}

/// A warning about capabilities of a ClusterConfig, whose items are unknown.
pub(super) fn capabilities_without_items(sim: &Sim<'_>, orders: &EksOrders) -> Option<String> {
    let stated = sim.setup.scenario.ec2.cloud.billing.eks.capabilities.is_some();
    let names: Vec<String> =
        orders.capabilities.iter().map(|kind| format!("{kind} without {}", kind.items())).collect();
    (!stated && !names.is_empty()).then(|| {
        format!(
            "the ClusterConfig orders EKS Capabilities, which are billed as {}. List them with `items` under `ec2.billing.capabilities`",
            names.join(", ")
        )
    })
}

/// A warning about capabilities with prices of another region.
pub(super) fn capability_prices(sim: &Sim<'_>, orders: &EksOrders) -> Option<String> {
    let region = sim.setup.region.name.as_str();
    let billed = sim.setup.scenario.ec2.cloud.billing.eks.ordered(orders);
    let is_guessed = |capability_fee: &&eks_fees::CapabilityFee| {
        let by_list =
            capability_fee.per_hour.is_none() || (capability_fee.items > 0 && capability_fee.per_item_hour.is_none());
        by_list && !eks_fees::has_prices(capability_fee.kind, region)
    };
    let names: Vec<&str> = billed.iter().filter(is_guessed).map(|item| item.kind.as_str()).collect();
    (sim.setup.region.currency == Currency::Usd && !names.is_empty()).then(|| {
        format!(
            "no price in {region} for EKS Capabilities ({}); using us-east-2's, which other regions exceed by up to 10%. Set `per_hour` and \
             `per_item_hour` under `ec2.billing.capabilities`",
            names.join(", ")
        )
    })
}

/// What is assumed of requests that come through load balancers, if they are billed by them.
pub(super) fn through_balancers(sim: &Sim<'_>) -> Option<String> {
    let end = SimTime::ZERO + sim.setup.scenario.duration;
    let stated = sim.setup.scenario.ec2.cloud.billing.network.load_balancers?;
    let by_load = stated.count.is_none() && stated.milli_units.is_none();
    let is_any = || !balancers::of_run(sim.setup.scenario, sim.setup.policy, end).is_empty();
    (by_load && is_any()).then(|| {
        format!(
            "A request through a load balancer moves {} bytes and opens {} connections (`ec2.billing.load_balancers`).",
            stated.bytes_per_request,
            f64::from(stated.connections_permille) / 1_000.0
        )
    })
}

/// A warning that names what is not billed, as nobody states its price and AWS's is not known in the region's currency.
pub(super) fn not_billed(sim: &Sim<'_>, bill: &Bill) -> Option<String> {
    let stated_by = |item: &BillItem| {
        let name = item.as_str();
        match item.price_key() {
            Some(key) => format!("{name} (`{key}`)"),
            None => name.to_owned(),
        }
    };
    let names: Vec<String> = bill.unpriced.iter().map(stated_by).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{}: no AWS prices known in {} except for instances, so the bill omits or understates: {}. Set what you pay with these keys",
            sim.setup.region.name,
            bill.currency.code(),
            names.join(", ")
        )
    })
}

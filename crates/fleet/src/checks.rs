//! Checks of a fleet against the scenarios of its clusters.

use std::collections::BTreeMap;
use std::sync::Arc;

use nodecast_ec2::quotas::QuotaKey;
use nodecast_model::catalog::Region;
use nodecast_model::domain::Symbol;
use nodecast_model::domain::node_group::is_spot_node;
use nodecast_model::text::error::{InputError, Place, Warning};
use nodecast_prices::Catalog;
use nodecast_scenario::{Limits, stated};
use nodecast_settings::lints::fleet as lints;

use crate::load::LoadedCluster;
use crate::places::{Read, families, meant};
use crate::{ClusterEntry, Fleet};

/// That a scenario does not set what the fleet sets.
pub(crate) fn stated_twice(fleet: &Fleet, entry: &ClusterEntry, region: &str) -> Read<()> {
    let is_here = |account: usize, of: &Symbol| account == entry.account && of.as_str() == region;
    let shared = [
        ("ec2.billing.savings_plans", "commitments", fleet.has_commitments()),
        ("ec2.billing.reserved_instances", "commitments", fleet.has_commitments()),
        ("ec2.billing.discount", "discount", fleet.discount.is_some()),
        ("ec2.quotas", "shared.quotas", fleet.quotas.iter().any(|quota| is_here(quota.account, &quota.region))),
        ("ec2.api", "shared.api", fleet.api.iter().any(|api| is_here(api.account, &api.region))),
    ];
    let here = fleet.conditions.iter().filter(|conditions| conditions.region.as_str() == region);
    let paths = here.flat_map(|conditions| conditions.values.keys());
    let shared: Vec<(&str, &str, bool)> =
        shared.into_iter().chain(paths.map(|path| (path.as_str(), "shared.conditions", true))).collect();
    if shared.iter().all(|(_, _, is_shared)| !is_shared) {
        return Ok(());
    }
    let own = stated(&entry.scenario, &Limits::default())?;
    let of_set = entry.set.iter().map(|(path, _)| path);
    for (path, key, _) in shared.iter().filter(|(_, _, is_shared)| *is_shared) {
        let sets =
            |stated: &str| stated.strip_prefix(path).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
        if own.iter().chain(of_set.clone()).any(|stated| sets(stated)) {
            let message = format!("the scenario of cluster `{}` sets `{path}`, and the fleet sets `{key}`", entry.name);
            return Err(InputError::new(message)
                .at(entry.places.scenario.clone())
                .because("set twice")
                .help(format!("remove `{path}` from `{}`, or `{key}` from the fleet", entry.scenario.display())));
        }
    }
    Ok(())
}

/// That all clusters have one partition, currency, start, and duration.
pub(crate) fn alike(fleet: &Fleet, clusters: &[LoadedCluster], catalog: &Catalog) -> Read<()> {
    let first = &clusters[0];
    for cluster in &clusters[1..] {
        let differs = |what: &str, one: String, other: String, help: &str| {
            let message = format!("`{}` has the {what} {one}, and `{}` has {other}", first.name, cluster.name);
            Err(InputError::new(message)
                .at(place_of(fleet, cluster))
                .because(format!("another {what}"))
                .help(help.to_owned()))
        };
        let regions = [first, cluster].map(|cluster| cluster.scenario.region.as_str());
        let partitions = regions.map(partition);
        if partitions[0] != partitions[1] {
            let [one, other] = partitions.map(str::to_owned);
            return differs("partition", one, other, "put clusters of other partitions into a fleet of their own");
        }
        let currencies = regions.map(|region| catalog.region(region).map(|region| region.currency.code().to_owned()));
        if let [Ok(one), Ok(other)] = currencies
            && one != other
        {
            return differs("currency", one, other, "put clusters with other currencies into a fleet of their own");
        }
        let starts = [first, cluster].map(|cluster| cluster.scenario.start.to_string());
        if starts[0] != starts[1] {
            let [one, other] = starts;
            return differs("start", one, other, "add `start` to the fleet, which overrides the scenarios'");
        }
        let durations = [first, cluster].map(|cluster| cluster.scenario.duration.to_string());
        if durations[0] != durations[1] {
            let [one, other] = durations;
            return differs("duration", one, other, "add `duration` to the fleet, which overrides the scenarios'");
        }
    }
    let start = first.scenario.start;
    if fleet.has_commitments() && (start.as_second().rem_euclid(3_600) != 0 || start.subsec_nanosecond() != 0) {
        return Err(InputError::new(format!("`{}` starts at {start}, not on a full hour", first.name))
            .at(place_of(fleet, first))
            .because("AWS applies commitments by the clock hour")
            .help("add `start` to the fleet, for example `2026-06-01T00:00:00Z`"));
    }
    Ok(())
}

fn place_of(fleet: &Fleet, cluster: &LoadedCluster) -> Option<Place> {
    fleet.clusters[cluster.entry].places.scenario.clone()
}

/// The partition of AWS that a region belongs to.
fn partition(region: &str) -> &'static str {
    match region {
        region if region.starts_with("cn-") => "aws-cn",
        region if region.starts_with("us-gov-") => "aws-us-gov",
        _ => "aws",
    }
}

/// That what clusters hold at their start fits into the quotas that they share.
pub(crate) fn quotas(fleet: &Fleet, clusters: &[LoadedCluster], catalog: &Catalog) -> Read<()> {
    for quota in &fleet.quotas {
        let mut held: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        let is_here = |cluster: &&LoadedCluster| {
            cluster.account == quota.account && cluster.scenario.region.as_str() == quota.region.as_str()
        };
        let region = catalog.region(quota.region.as_str()).map_err(|error| InputError::new(error.to_string()))?;
        for cluster in clusters.iter().filter(is_here) {
            held_at_start(cluster, &region, &mut held);
        }
        for ((market, class), vcpus) in held {
            let limits = if market == "spot" { &quota.spot } else { &quota.on_demand };
            let Some((_, limit)) = limits.iter().find(|(name, _)| **name == class) else { continue };
            if vcpus > u64::from(*limit) {
                let account = &fleet.accounts[quota.account].name;
                let message = format!(
                    "the clusters of `{account}` in {} start with {vcpus} {market} vCPUs of class {class}",
                    quota.region
                );
                return Err(InputError::new(message)
                    .at(quota.place.clone())
                    .because(format!("the quota is {limit}"))
                    .help(format!("set at least {vcpus}")));
            }
        }
    }
    Ok(())
}

/// Warns of plan prices above On-Demand, and of families that no cluster's region has.
pub(crate) fn plans(fleet: &Fleet, clusters: &[LoadedCluster], catalog: &Catalog) -> Vec<Warning> {
    let mut regions: Vec<Arc<Region>> = Vec::new();
    for cluster in clusters {
        let name = cluster.scenario.region.as_str();
        if !regions.iter().any(|region| region.name.as_str() == name) {
            regions.extend(catalog.region(name));
        }
    }
    let known = families(&regions);
    let mut warnings = Vec::new();
    for plan in &fleet.plans {
        for family in plan.family_discounts.keys().filter(|family| known.binary_search(&family.as_str()).is_err()) {
            let message = format!("`{}`: no cluster's region has the family `{family}`", plan.id);
            let warning = Warning::from_lint(&lints::UNKNOWN_FAMILY, message);
            warnings.push(warning.help(meant(family.as_str(), known.iter().copied())));
        }
        for (name, rate) in plan.prices.iter().filter(|_| plan.family.is_none()) {
            let listed =
                regions.iter().filter_map(|region| region.instance_type(*name)?.on_demand).map(|price| price.rate);
            if let Some(listed) = listed.max().filter(|listed| rate > listed) {
                let message =
                    format!("`{}`: the plan price of {name} is above its On-Demand price of {listed}", plan.id);
                warnings.push(Warning::from_lint(&lints::PLAN_PRICE, message).help("correct the price"));
            }
        }
    }
    warnings
}

/// Adds the vCPUs that a cluster holds at its start, by market and class.
fn held_at_start(cluster: &LoadedCluster, region: &Region, held: &mut BTreeMap<(&'static str, &'static str), u64>) {
    let nodes = cluster.scenario.initial.iter().flat_map(|inventory| &inventory.nodes);
    for node in nodes {
        let label = |key: &str| node.node.labels.get(Symbol::new(key));
        let kind = label("node.kubernetes.io/instance-type").and_then(|name| region.instance_type(name));
        let Some(kind) = kind else { continue };
        let is_spot = is_spot_node(|key| label(key).map(|value| value.as_str()));
        let class = QuotaKey::from_facts(&kind.facts, is_spot).class.as_str();
        *held.entry((if is_spot { "spot" } else { "On-Demand" }, class)).or_default() += u64::from(kind.facts.vcpus);
    }
}

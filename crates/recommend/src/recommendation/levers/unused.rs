//! Levers of commitments that cover nothing: load moves to the families of Savings Plans and Reserved Instances of the scenario.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::pools::{label, level, template, term};
use super::{BaselineFacts, Kind, Level, Lever, OBJECTS_MAX, Terms, additions, dearest, groups};
use crate::cloud::commitments::WHOLE;
use crate::domain::node_group::NodeGroup;
use crate::domain::node_pool::NodePool;
use crate::domain::{Symbol, well_known};
use crate::scenario::document::Content;

/// A family with a commitment, and the vCPUs that the commitment covers.
struct Committed {
    family: Symbol,
    vcpus: f64,
}

/// Levers of the NodePools and node groups that cost most, if the scenario has commitments.
pub(super) fn levers(known: &BaselineFacts<'_>, all: &mut Vec<Lever>) {
    let committed = committed(known);
    let has_compute_plan = known.scenario.ec2.cloud.billing.commitments.plans.iter().any(|plan| plan.family.is_none());
    if committed.is_empty() && !has_compute_plan {
        return;
    }
    let manifests = &known.policy.manifests;
    let pools = || manifests.node_pools.iter().filter(|pool| pool.replicas.is_none());
    let chosen = dearest(pools().map(|pool| pool.name.as_str()), known.by_origin, OBJECTS_MAX);
    let is_karpenter = known.policy.autoscaler.is_karpenter();
    for pool in pools().filter(|pool| is_karpenter && chosen.contains(&pool.name.as_str())) {
        let mut levels = vec![level("On-Demand, which a Compute Savings Plan covers", vec![on_demand(pool)])];
        levels.retain(|_| has_compute_plan);
        if !committed.is_empty() {
            levels.extend(of_pool(known, pool, &committed));
        }
        let subject = format!("NodePool {}", pool.name);
        all.push(Lever {
            kind: Kind::UnusedCommitments,
            subject,
            today: "without regard to commitments".to_owned(),
            levels,
        });
    }
    let chosen = dearest(manifests.node_groups.iter().map(|group| group.name.as_str()), known.by_origin, OBJECTS_MAX);
    for group in manifests.node_groups.iter().filter(|group| chosen.contains(&group.name.as_str())) {
        let Some(lever) = of_group(known, group, &committed) else { continue };
        // The same type as a value of two levers would split its saving.
        let is_new = |level: &Level| lever.levels.iter().all(|known| known.sets != level.sets);
        all.iter_mut().filter(|other| other.kind == Kind::GroupTypes).for_each(|other| other.levels.retain(is_new));
        all.push(lever);
    }
}

/// The families of commitments.
fn committed(known: &BaselineFacts<'_>) -> Vec<Committed> {
    let bought = &known.scenario.ec2.cloud.billing.commitments;
    let mut families: BTreeSet<Symbol> = bought.plans.iter().filter_map(|plan| plan.family).collect();
    families.extend(bought.reserved.iter().map(|item| family(item.instance_type)));
    let vcpus = |name: Symbol| {
        let reserved = bought.reserved.iter().filter(|item| family(item.instance_type) == name);
        let reserved = reserved.filter_map(|reserved| {
            let facts = &known.region.instance_type(reserved.instance_type)?.facts;
            Some(f64::from(facts.vcpus) * f64::from(reserved.count))
        });
        let price = vcpu_price(known, name);
        let plans = bought.plans.iter().filter(|plan| plan.family == Some(name)).filter_map(|plan| {
            let charged = 1.0 - f64::from(plan.discount.min(WHOLE - 1)) / f64::from(WHOLE);
            Some(plan.commitment.as_f64() / (price? * charged))
        });
        reserved.chain(plans).sum()
    };
    families.into_iter().map(|family| Committed { family, vcpus: vcpus(family) }).collect()
}

/// What an On-Demand vCPU of a family costs per hour.
fn vcpu_price(known: &BaselineFacts<'_>, name: Symbol) -> Option<f64> {
    let types = known.region.types.iter().filter(|kind| kind.facts.family == name);
    let prices = types.filter_map(|kind| Some(kind.on_demand?.rate.as_f64() / f64::from(kind.facts.vcpus.max(1))));
    prices.min_by(f64::total_cmp)
}

/// The family of an instance type.
fn family(kind: Symbol) -> Symbol {
    Symbol::new(kind.as_str().split('.').next().unwrap_or_default())
}

fn on_demand(pool: &NodePool) -> Terms {
    term(pool, well_known::CAPACITY_TYPE, &[("In", &["on-demand"])])
}

/// All nodes of the pool in the families of commitments, or as many of them as the commitments cover, in a pool that is tried first.
fn of_pool(known: &BaselineFacts<'_>, pool: &NodePool, committed: &[Committed]) -> Vec<Level> {
    let names: Vec<&str> = committed.iter().map(|committed| committed.family.as_str()).collect();
    let shown = names.join(", ");
    let terms = vec![
        term(pool, well_known::INSTANCE_TYPE, &[]),
        term(pool, well_known::INSTANCE_CATEGORY, &[]),
        term(pool, well_known::INSTANCE_GENERATION, &[]),
        term(pool, well_known::INSTANCE_FAMILY, &[("In", &names)]),
        on_demand(pool),
    ];
    let mut levels = vec![level(&format!("all nodes in {shown}, On-Demand, as the commitments"), terms)];
    levels.extend(tried_first(known, pool, (&names, &shown), committed));
    levels
}

/// A copy of the pool for the families of commitments, tried first and limited to what they cover.
fn tried_first(
    known: &BaselineFacts<'_>,
    pool: &NodePool,
    (names, shown): (&[&str], &str),
    committed: &[Committed],
) -> Option<Level> {
    let name = format!("{}-committed", pool.name);
    let vcpus = libm::floor(committed.iter().map(|committed| committed.vcpus).sum::<f64>());
    let stated = known.objects.iter().find(|object| object.object_name() == Some(format!("NodePool {}", pool.name)))?;
    let is_taken = known.policy.manifests.node_pools.iter().any(|node_pool| node_pool.name.as_str() == name);
    if pool.legacy || is_taken || vcpus < 1.0 {
        return None;
    }
    let replaced = [
        well_known::INSTANCE_TYPE,
        well_known::INSTANCE_CATEGORY,
        well_known::INSTANCE_GENERATION,
        well_known::INSTANCE_FAMILY,
        well_known::CAPACITY_TYPE,
    ]
    .map(|instance_type| label(pool, instance_type));
    let mut terms: Vec<Value> = known_terms(known, pool, &replaced);
    terms.push(json!({"key": replaced[3].as_str(), "operator": "In", "values": names}));
    terms.push(json!({"key": replaced[4].as_str(), "operator": "In", "values": ["on-demand"]}));
    let mut copy = Content::Map(vec![
        ("apiVersion".to_owned(), stated.get("apiVersion").cloned()?),
        ("kind".to_owned(), Content::text("NodePool")),
        ("metadata".to_owned(), Content::Map(vec![("name".to_owned(), Content::text(&name))])),
        ("spec".to_owned(), stated.get("spec").cloned()?),
    ]);
    additions::put(&mut copy, &additions::REQUIREMENTS, content(&Value::Array(terms)));
    additions::put(&mut copy, &["spec", "weight"], content(&json!(100)));
    additions::put(&mut copy, &["spec", "limits"], content(&json!({ "cpu": vcpus as u64 })));
    let sets = vec![(format!("NodePool[{name}]"), copy.on_a_line())];
    let label = format!("{shown} first, On-Demand, up to the {vcpus} vCPUs that the commitments cover");
    Some(Level { label, sets, requirements: Vec::new() })
}

/// A value of JSON as a part of an object.
fn content(value: &Value) -> Content {
    match value {
        Value::Array(items) => Content::List(items.iter().map(content).collect()),
        Value::Object(entries) => {
            Content::Map(entries.iter().map(|(key, value)| (key.clone(), content(value))).collect())
        }
        Value::String(text) => Content::text(text),
        other => Content::Scalar(other.to_string()),
    }
}

/// The terms of the pool on other labels.
fn known_terms(known: &BaselineFacts<'_>, pool: &NodePool, replaced: &[Symbol]) -> Vec<Value> {
    let requirements = super::requirements(known.policy);
    let requirement = requirements.get(&format!("{}.requirements", template(pool))).cloned().unwrap_or_default();
    requirement.into_iter().filter(|(key, _)| !replaced.contains(key)).flat_map(|(_, terms)| terms).collect()
}

/// Types of the families of commitments with as many vCPUs as the group's nodes.
fn of_group(known: &BaselineFacts<'_>, group: &NodeGroup, committed: &[Committed]) -> Option<Lever> {
    let place = groups::place(known, group)?;
    let today = &known.region.instance_type(*group.instance_types.first()?)?.facts;
    let fits = |kind: &&crate::catalog::RegionType| {
        let facts = &kind.facts;
        committed.iter().any(|committed| committed.family == facts.family)
            && !group.instance_types.contains(&facts.name)
            && (facts.arch, facts.vcpus) == (today.arch, today.vcpus)
    };
    let levels: Vec<Level> = known
        .region
        .types
        .iter()
        .filter(fits)
        .map(|kind| Level {
            label: kind.facts.name.to_string(),
            sets: place.types(kind.facts.name),
            requirements: Vec::new(),
        })
        .collect();
    let subject = format!("node group {}", group.name);
    let today = today.name.to_string();
    (!levels.is_empty()).then_some(Lever { kind: Kind::UnusedCommitments, subject, today, levels })
}

//! Levers of Karpenter's NodePools.

use serde_json::{Value, json};

use super::{BaselineFacts, Kind, Level, Lever, OBJECTS_MAX, Terms, additions, dearest};
use crate::domain::labels::auto_mode_label;
use crate::domain::node_pool::{Budget, ConsolidationPolicy, NodePool};
use crate::domain::pod::IntOrPercent;
use crate::domain::{Symbol, well_known};

/// Levers of the NodePools that cost most.
pub(super) fn levers(known: &BaselineFacts<'_>, all: &mut Vec<Lever>) {
    let pools = known.policy.manifests.node_pools.iter().filter(|pool| pool.replicas.is_none());
    let pools: Vec<&NodePool> = pools.collect();
    let names = pools.iter().map(|pool| pool.name.as_str());
    let chosen = dearest(names, known.by_origin, OBJECTS_MAX);
    for pool in pools.iter().filter(|pool| chosen.contains(&pool.name.as_str())) {
        all.extend([consolidation(pool), consolidate_after(pool), budgets(pool)]);
        all.extend([families(pool), sizes(pool), architectures(pool), spot(pool, known)]);
        if pools.len() > 1 {
            all.push(weight(pool));
        }
        all.push(limits(pool));
        if !pool.legacy {
            all.extend(additions::split(pool, known));
        }
    }
}

/// The path of a NodePool or Provisioner.
fn object(pool: &NodePool) -> String {
    format!("{}[{}]", if pool.legacy { "Provisioner" } else { "NodePool" }, pool.name)
}

/// The path of what its nodes are to be like.
pub(in crate::recommendation) fn template(pool: &NodePool) -> String {
    if pool.legacy { format!("{}.spec", object(pool)) } else { format!("{}.spec.template.spec", object(pool)) }
}

fn lever(kind: Kind, pool: &NodePool, today: impl Into<String>, levels: Vec<Level>) -> Lever {
    let subject = format!("{} {}", if pool.legacy { "Provisioner" } else { "NodePool" }, pool.name);
    Lever { kind, subject, today: today.into(), levels }
}

fn consolidation(pool: &NodePool) -> Lever {
    let object = object(pool);
    let today = match pool.disruption.policy {
        ConsolidationPolicy::WhenEmpty => "WhenEmpty",
        ConsolidationPolicy::WhenEmptyOrUnderutilized => "WhenEmptyOrUnderutilized",
        ConsolidationPolicy::Balanced => "Balanced",
    };
    let levels = if pool.legacy {
        let off = (format!("{object}.spec.ttlSecondsAfterEmpty"), "null");
        vec![Level::new("consolidation on", [(format!("{object}.spec.consolidation.enabled"), "true"), off])]
    } else {
        // The last is the second as v1beta1 calls it; a release that does not know a word drops it.
        let words = ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced", "WhenUnderutilized"];
        let path = || format!("{object}.spec.disruption.consolidationPolicy");
        words.into_iter().filter(|word| *word != today).map(|word| Level::new(word, [(path(), word)])).collect()
    };
    lever(Kind::Consolidation, pool, today, levels)
}

fn consolidate_after(pool: &NodePool) -> Lever {
    let after = pool.disruption.consolidate_after;
    let today = after.map_or_else(|| "Never".to_owned(), |after| after.to_string());
    let tried = ["0s", "30s", "2m", "10m", "30m"].into_iter().filter(|value| *value != today && !pool.legacy);
    let path = || format!("{}.spec.disruption.consolidateAfter", object(pool));
    let levels = tried.map(|value| Level::new(value, [(path(), value)])).collect();
    lever(Kind::ConsolidateAfter, pool, today, levels)
}

fn budgets(pool: &NodePool) -> Lever {
    let shown = |budget: &Budget| {
        let schedule = budget.schedule.as_ref().map_or_else(String::new, |schedule| format!(" at {schedule}"));
        let nodes = match budget.nodes {
            IntOrPercent::Count(count) => count.to_string(),
            IntOrPercent::Percent(share) => format!("{share}%"),
        };
        format!("{nodes}{schedule}")
    };
    let today = pool.disruption.budgets.iter().map(shown).collect::<Vec<_>>().join(", ");
    let path = || format!("{}.spec.disruption.budgets", object(pool));
    let tried = ["10%", "30%", "100%"].into_iter().filter(|share| *share != today && !pool.legacy);
    let levels = tried.map(|share| {
        let value = json!([{ "nodes": share }]).to_string();
        Level { label: share.to_owned(), sets: vec![(path(), value)], requirements: Vec::new() }
    });
    let levels = levels.collect();
    lever(Kind::Budgets, pool, today, levels)
}

/// What a label is called on nodes of the pool.
pub(super) fn label(pool: &NodePool, symbol: Symbol) -> Symbol {
    if pool.auto_mode { auto_mode_label(symbol).unwrap_or(symbol) } else { symbol }
}

/// Terms on a label of the pool's nodes.
pub(super) fn term(pool: &NodePool, symbol: Symbol, terms: &[(&str, &[&str])]) -> Terms {
    let key = label(pool, symbol);
    let stated =
        |(operator, values): &(&str, &[&str])| json!({"key": key.as_str(), "operator": operator, "values": values});
    let terms: Vec<Value> = terms.iter().map(stated).collect();
    Terms { path: format!("{}.requirements", template(pool)), key, terms }
}

/// A level that changes requirements.
pub(super) fn level(label: &str, requirements: Vec<Terms>) -> Level {
    Level { label: label.to_owned(), sets: Vec::new(), requirements }
}

/// How a pool's requirement on a label reads.
fn required(pool: &NodePool, symbol: Symbol) -> Option<String> {
    let key = label(pool, symbol);
    let stated = pool.requirements.iter().filter(|requirement| requirement.key == key);
    let all: Vec<String> = stated.map(ToString::to_string).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Requirements on these labels, for people.
fn shown(pool: &NodePool, labels: &[Symbol], without: &str) -> String {
    let all: Vec<String> = labels.iter().filter_map(|label| required(pool, *label)).collect();
    if all.is_empty() { without.to_owned() } else { all.join(", ") }
}

/// The labels by which a pool names the types that it may have.
const NAMED: [Symbol; 4] = [
    well_known::INSTANCE_TYPE,
    well_known::INSTANCE_FAMILY,
    well_known::INSTANCE_CATEGORY,
    well_known::INSTANCE_GENERATION,
];

fn families(pool: &NodePool) -> Lever {
    let free = |categories: &[&str], newer_than: &str| {
        vec![
            term(pool, well_known::INSTANCE_TYPE, &[]),
            term(pool, well_known::INSTANCE_FAMILY, &[]),
            term(pool, well_known::INSTANCE_CATEGORY, &[("In", categories)]),
            term(pool, well_known::INSTANCE_GENERATION, &[("Gt", &[newer_than])]),
        ]
    };
    let levels = vec![
        level("c, m and r of generation 3 and later", free(&["c", "m", "r"], "2")),
        level("c, m and r of generation 6 and later", free(&["c", "m", "r"], "5")),
        level("c, m, r and t of generation 3 and later", free(&["c", "m", "r", "t"], "2")),
    ];
    lever(Kind::Families, pool, shown(pool, &NAMED, "any family"), levels)
}

fn sizes(pool: &NodePool) -> Lever {
    let of = |terms: &[(&str, &[&str])]| {
        vec![term(pool, well_known::INSTANCE_SIZE, &[]), term(pool, well_known::INSTANCE_CPU, terms)]
    };
    let levels = vec![
        level("any size", of(&[])),
        level("at most 8 vCPUs", of(&[("Lt", &["9"])])),
        level("at most 16 vCPUs", of(&[("Lt", &["17"])])),
        level("at least 4 vCPUs", of(&[("Gt", &["3"])])),
    ];
    lever(Kind::Sizes, pool, shown(pool, &[well_known::INSTANCE_SIZE, well_known::INSTANCE_CPU], "any size"), levels)
}

fn architectures(pool: &NodePool) -> Lever {
    let of = |values: &[&str]| vec![term(pool, well_known::ARCH, &[("In", values)])];
    let levels = vec![level("amd64 and arm64", of(&["amd64", "arm64"])), level("arm64", of(&["arm64"]))];
    lever(Kind::Architectures, pool, shown(pool, &[well_known::ARCH], "amd64"), levels)
}

fn spot(pool: &NodePool, known: &BaselineFacts<'_>) -> Lever {
    let of = |values: &[&str]| vec![term(pool, well_known::CAPACITY_TYPE, &[("In", values)])];
    let both = of(&["spot", "on-demand"]);
    let mut levels = vec![level("Spot and On-Demand", both.clone()), level("On-Demand", of(&["on-demand"]))];
    let sets = &known.policy.manifests.stateful_sets;
    if !sets.is_empty() {
        let pin = |name: String| {
            let path = format!("StatefulSet[{name}].spec.template.spec.nodeSelector[{}]", well_known::CAPACITY_TYPE);
            (path, "on-demand".to_owned())
        };
        let sets = sets.iter().map(|set| pin(set.name.to_string())).collect();
        let label = "Spot and On-Demand, StatefulSets On-Demand".to_owned();
        levels.push(Level { label, sets, requirements: both });
    }
    lever(Kind::Spot, pool, shown(pool, &[well_known::CAPACITY_TYPE], "On-Demand"), levels)
}

fn weight(pool: &NodePool) -> Lever {
    let path = format!("{}.spec.weight", object(pool));
    let levels = vec![Level::new("tried first (weight 100)", [(path, "100")])];
    lever(Kind::Weights, pool, format!("weight {}", pool.weight), levels)
}

fn limits(pool: &NodePool) -> Lever {
    let amounts: Vec<String> =
        pool.limits.iter().map(|(name, amount)| format!("{name} {}", name.format(amount))).collect();
    let path = format!("{}.spec.limits", object(pool));
    let levels = if amounts.is_empty() { Vec::new() } else { vec![Level::new("none", [(path, "{}")])] };
    lever(Kind::Limits, pool, amounts.join(", "), levels)
}

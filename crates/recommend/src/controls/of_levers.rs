//! The levers of a recommendation as controls: what is tried there at a few levels can be moved here along all values that make sense.

use std::collections::{BTreeMap, BTreeSet};

use super::{Basis, Control, Effect, Form, Stop, chip};
use crate::catalog::InstanceFacts;
use crate::domain::labels::karpenter_label;
use crate::domain::node_pool::NodePool;
use crate::domain::{SimDuration, Symbol, well_known};
use crate::recommendation::{Kind, Level, Lever, Terms};
use crate::report::format::bought_as;

const TIMES: [&str; 13] = ["0s", "10s", "30s", "1m", "2m", "5m", "10m", "15m", "20m", "30m", "45m", "1h", "2h"];
/// Stands for no consolidation at all.
const NEVER: &str = "Never";
/// Families of earlier generations are chips only where they are there today.
const GENERATION_LEAST: u32 = 5;
/// Chips of one control at most; the others are one chip together.
const CHIPS_MAX: usize = 40;

/// What a lever is as controls: one, or of a HorizontalPodAutoscaler's behaviour the least replicas too, which may be raised.
pub(super) fn controls(lever: &Lever, basis: &Basis<'_>) -> Vec<Control> {
    let one = match lever.kind {
        Kind::ConsolidateAfter => times(lever, &lever.today, Some(NEVER)),
        Kind::Budgets => budgets(lever),
        Kind::Families => families(lever, basis),
        Kind::Sizes => sizes(lever, basis),
        Kind::Weights => weight(lever),
        Kind::HpaTargets => targets(lever),
        Kind::HpaBehavior => return [window(lever), minimum(lever, basis)].into_iter().flatten().collect(),
        // The least replicas of a HorizontalPodAutoscaler come with its behaviour.
        Kind::HpaMinimum if lever.subject.starts_with("Horizontal") => return Vec::new(),
        Kind::Headroom if lever.today == "none" => None,
        Kind::HpaMinimum | Kind::Headroom => counts(lever, lever.today.parse().ok(), u32::MAX),
        Kind::GroupSizes => group_size(lever, basis),
        Kind::Flags => flag(lever),
        _ => None,
    };
    one.or_else(|| choice(lever)).into_iter().collect()
}

fn label(lever: &Lever) -> String {
    let words = match lever.kind {
        Kind::Consolidation => "consolidation policy",
        Kind::ConsolidateAfter => "consolidate after",
        Kind::Budgets => "nodes disrupted at once",
        Kind::Blockers => "blockers",
        Kind::Families => "instance families",
        Kind::Sizes => "instance sizes",
        Kind::Architectures => "architectures",
        Kind::Spot => "capacity type",
        Kind::Weights => "weight",
        Kind::Limits => "limits",
        Kind::Split => "nodes of their own",
        Kind::HpaTargets => "utilization target",
        Kind::HpaMinimum => "minimum replicas",
        Kind::HpaBehavior => "scale-down window",
        Kind::Requests => "requests",
        Kind::DaemonSets => "requests of DaemonSets",
        Kind::Schedules => "schedule",
        Kind::Headroom => "placeholder replicas",
        Kind::GroupTypes => "instance type",
        Kind::GroupSizes => "minimum size",
        Kind::Flags => lever.subject.trim_start_matches('-'),
        Kind::Volumes => "EBS volume",
        Kind::UnusedCommitments => "use of commitments",
        Kind::Support => "control plane",
        Kind::Zones => "zones",
        Kind::TopologyRouting => "calls between zones",
        Kind::Endpoints => "VPC endpoints",
        Kind::Commitments => "commitment",
    };
    words.to_owned()
}

fn control(lever: &Lever, form: Form, today: &str, stops: Vec<Stop>) -> Control {
    let group = if lever.kind == Kind::Flags { "Cluster Autoscaler" } else { lever.subject.as_str() };
    Control {
        id: format!("{}.{}", lever.kind.as_str(), lever.subject.trim_start_matches('-').replace(' ', "-")),
        group: group.to_owned(),
        label: label(lever),
        form,
        circumstance: false,
        today: today.to_owned(),
        stops,
        note: (lever.kind == Kind::Architectures).then(|| "images have to be built for them".to_owned()),
        chips: None,
    }
}

/// Today and the lever's levels.
fn choice(lever: &Lever) -> Option<Control> {
    let mut stops = vec![Stop { value: "today".to_owned(), label: today_of(lever), effect: Effect::default() }];
    stops.extend(lever.levels.iter().map(|level| Stop {
        value: level.label.clone(),
        label: level.label.clone(),
        effect: Effect::of_level(level.clone()),
    }));
    (stops.len() > 1).then(|| control(lever, Form::Choice, "today", stops))
}

/// Today's value in the words of the other values, where it reads `label In [value, value]`.
fn today_of(lever: &Lever) -> String {
    let listed = lever.today.split_once(" In [").and_then(|(_, values)| values.strip_suffix(']'));
    let named = |value: &str| if lever.kind == Kind::Spot { bought_as(value).to_owned() } else { value.to_owned() };
    let mut values: Vec<String> = listed.map_or_else(Vec::new, |request| request.split(' ').map(named).collect());
    // As the other values have it: Spot first.
    if lever.kind == Kind::Spot {
        values.reverse();
    }
    if values.is_empty() { lever.today.clone() } else { values.join(" and ") }
}

/// The path that the levels of a lever set.
fn path(lever: &Lever) -> Option<&str> {
    lever.levels.first()?.sets.first().map(|(path, _)| path.as_str())
}

/// A slider along values of one path. `today` is among them, or is put before the first that is larger by `rank`.
fn slider(
    lever: &Lever,
    today: &str,
    values: Vec<(String, String)>,
    rank: impl Fn(&str) -> Option<f64>,
) -> Option<Control> {
    let path = path(lever)?;
    let mut values = values;
    if values.iter().all(|(value, _)| value != today) {
        let this_rank = rank(today)?;
        let place = values.iter().position(|(value, _)| rank(value).is_some_and(|other| other > this_rank));
        let shown = if lever.kind == Kind::HpaTargets { format!("{today}%") } else { today.to_owned() };
        values.insert(place.unwrap_or(values.len()), (today.to_owned(), shown));
    }
    let stop = |(value, label): (String, String)| Stop { effect: Effect::of_path(path, &value), value, label };
    Some(control(lever, Form::Slider, today, values.into_iter().map(stop).collect()))
}

fn seconds(text: &str) -> Option<f64> {
    text.parse::<SimDuration>().ok().map(SimDuration::as_secs_f64)
}

/// A slider along spans of time, and what stands for no end of them.
fn times(lever: &Lever, today: &str, endless: Option<&str>) -> Option<Control> {
    let values = TIMES.iter().copied().chain(endless).map(|time| (time.to_owned(), time.to_owned())).collect();
    slider(lever, today, values, |text| if Some(text) == endless { Some(f64::INFINITY) } else { seconds(text) })
}

/// A slider of shares, if today's is one share at any time.
fn budgets(lever: &Lever) -> Option<Control> {
    let share = |text: &str| text.strip_suffix('%').and_then(|rest| rest.parse::<f64>().ok());
    share(&lever.today)?;
    let values = (1..=20).map(|step| format!("{}%", step * 5)).map(|text| (text.clone(), text));
    let mut slider = slider(lever, &lever.today, values.collect(), share)?;
    let path = path(lever)?;
    for stop in &mut slider.stops {
        stop.effect = Effect::of_path(path, &serde_json::json!([{ "nodes": stop.value }]).to_string());
    }
    Some(slider)
}

fn weight(lever: &Lever) -> Option<Control> {
    let today = lever.today.strip_prefix("weight ")?;
    let values = std::iter::once(1).chain((1..=10).map(|step| step * 10)).map(|number: u32| number.to_string());
    slider(lever, today, values.map(|value| (value.clone(), value)).collect(), number)
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

fn targets(lever: &Lever) -> Option<Control> {
    let today = lever.today.strip_prefix("aims at ")?.strip_suffix('%')?;
    let values = (30..=95).map(|number: u32| (number.to_string(), format!("{number}%"))).collect();
    slider(lever, today, values, number)
}

fn window(lever: &Lever) -> Option<Control> {
    let today = lever.today.strip_prefix("scales down after ")?;
    let whole = |text: &str| seconds(text).map(|second| format!("{second:.0}"));
    let values = ["0s", "30s", "1m", "2m", "3m", "5m", "10m", "15m", "30m", "1h"];
    let values = values.iter().filter_map(|value| Some((whole(value)?, (*value).to_owned()))).collect();
    let mut slider = slider(lever, &whole(today)?, values, number)?;
    slider.stops.iter_mut().filter(|stop| stop.label == stop.value).for_each(|stop| stop.label = today.to_owned());
    Some(slider)
}

/// The least replicas of a HorizontalPodAutoscaler whose behaviour a lever changes.
fn minimum(lever: &Lever, basis: &Basis<'_>) -> Option<Control> {
    let (object, _) = path(lever)?.split_once(".spec.behavior")?;
    let named = |pod_autoscaler: &&crate::domain::hpa::HorizontalPodAutoscaler| {
        lever.subject == format!("HorizontalPodAutoscaler {}/{}", pod_autoscaler.namespace, pod_autoscaler.name)
    };
    let hpa = basis.policy.manifests.autoscalers.iter().find(named)?;
    let today = hpa.min_replicas.unwrap_or(1);
    let level = Level { sets: vec![(format!("{object}.spec.minReplicas"), String::new())], ..Level::default() };
    let lever = Lever { kind: Kind::HpaMinimum, today: today.to_string(), levels: vec![level], ..lever.clone() };
    counts(&lever, u32::try_from(today).ok(), u32::try_from(hpa.max_replicas).unwrap_or(1))
}

/// A slider along numbers, from none (of replicas that scale: one) to twice today's and more, no further than `most`.
fn counts(lever: &Lever, today: Option<u32>, most: u32) -> Option<Control> {
    let today = today?;
    let least = u32::from(lever.kind == Kind::HpaMinimum && today > 0);
    let last = today.saturating_mul(2).saturating_add(8).min(200.max(today)).min(most.max(today));
    // A hundred stops are more than a slider can be set to.
    let step = ((last - least) / 100).max(1);
    let numbers: BTreeSet<u32> = (least..=last).step_by(step as usize).chain([today, last]).collect();
    let values = numbers.into_iter().map(|number| (number.to_string(), number.to_string())).collect();
    slider(lever, &today.to_string(), values, number)
}

fn group_size(lever: &Lever, basis: &Basis<'_>) -> Option<Control> {
    let groups = &basis.policy.manifests.node_groups;
    let group = groups.iter().find(|group| lever.subject == format!("node group {}", group.name))?;
    counts(lever, Some(group.min_size), group.max_size)
}

fn flag(lever: &Lever) -> Option<Control> {
    if lever.subject.ends_with("threshold") {
        let values =
            (2..=19).map(|step| f64::from(step) / 20.0).map(|item| (item.to_string(), format!("{:.0}%", item * 100.0)));
        return slider(lever, &lever.today, values.collect(), number);
    }
    seconds(&lever.today)?;
    times(lever, &lever.today, None)
}

/// The NodePool that a lever is of.
fn pool<'b>(lever: &Lever, basis: &'b Basis<'_>) -> Option<&'b NodePool> {
    let named =
        |node_pool: &&NodePool| lever.subject.split_once(' ').is_some_and(|(_, name)| name == node_pool.name.as_str());
    basis.policy.manifests.node_pools.iter().find(named)
}

/// Whether a pool's requirements on types let it have a type, those on `free` left out.
fn allows(pool: &NodePool, facts: &InstanceFacts, free: &[Symbol]) -> bool {
    pool.requirements.iter().all(|requirement| {
        let key = karpenter_label(requirement.key).unwrap_or(requirement.key);
        let value = match key {
            _ if free.contains(&key) => return true,
            well_known::INSTANCE_TYPE => Some(facts.name),
            well_known::INSTANCE_FAMILY => Some(facts.family),
            well_known::INSTANCE_SIZE => Some(facts.size),
            well_known::INSTANCE_CATEGORY => facts.category,
            well_known::INSTANCE_GENERATION => facts.generation.map(|generation| Symbol::new(&generation.to_string())),
            well_known::INSTANCE_CPU => Some(Symbol::new(&facts.vcpus.to_string())),
            well_known::INSTANCE_MEMORY => Some(Symbol::new(&facts.memory_mib.to_string())),
            well_known::ARCH => Some(facts.arch),
            _ => return true,
        };
        value.is_some_and(|value| requirement.has(value))
    })
}

/// Requirements with the one on `key`, as the pool has it, first.
fn listing(lever: &Lever, key: Symbol) -> Option<Level> {
    let is_key = |terms: &Terms| karpenter_label(terms.key).unwrap_or(terms.key) == key;
    let mut requirements = lever.levels.first()?.requirements.clone();
    let place = requirements.iter().position(is_key)?;
    requirements.swap(0, place);
    Some(Level { requirements, ..Level::default() })
}

/// The values that a requirement lists.
fn listed(term: &serde_json::Value) -> impl Iterator<Item = &str> {
    let values = term.get("values").and_then(serde_json::Value::as_array);
    values.into_iter().flatten().filter_map(serde_json::Value::as_str)
}

const BY_NAME: [Symbol; 4] = [
    well_known::INSTANCE_TYPE,
    well_known::INSTANCE_FAMILY,
    well_known::INSTANCE_CATEGORY,
    well_known::INSTANCE_GENERATION,
];

/// Chips of families: those that the pool may have today, and current ones for general use.
fn families(lever: &Lever, basis: &Basis<'_>) -> Option<Control> {
    let pool = pool(lever, basis)?;
    let chips = listing(lever, well_known::INSTANCE_FAMILY)?;
    let mut found: BTreeMap<&str, Name> = BTreeMap::new();
    let pinned =
        chips.requirements.iter().filter(|terms| karpenter_label(terms.key).unwrap_or(terms.key) == well_known::ARCH);
    let pinned: Vec<&str> = pinned.flat_map(|terms| &terms.terms).flat_map(listed).collect();
    for kind in basis.region.types.iter().filter(|instance_type| instance_type.on_demand.is_some()) {
        let facts = &kind.facts;
        if !pinned.is_empty() && !pinned.contains(&facts.arch.as_str()) {
            continue;
        }
        let free: Vec<Symbol> =
            BY_NAME.into_iter().chain([well_known::INSTANCE_SIZE, well_known::INSTANCE_CPU]).collect();
        if !allows(pool, facts, &free) {
            continue;
        }
        let usual = facts.category.is_some_and(|category| matches!(category.as_str(), "c" | "m" | "r" | "t"))
            && facts.generation.is_some_and(|generation| generation >= GENERATION_LEAST)
            && facts.gpu.is_none()
            && !facts.family.as_str().contains('-')
            && facts.family.as_str().chars().skip(2).all(|letter| "aigd".contains(letter));
        let pair = found.entry(facts.family.as_str()).or_insert((facts.family, false, false));
        pair.1 |= allows(pool, facts, &[]);
        pair.2 |= usual;
    }
    chips_of(lever, chips, found.into_values().collect())
}

/// Chips of sizes of the families that the pool may have.
fn sizes(lever: &Lever, basis: &Basis<'_>) -> Option<Control> {
    let pool = pool(lever, basis)?;
    let chips = listing(lever, well_known::INSTANCE_SIZE)?;
    let mut found: BTreeMap<(u32, &str), Name> = BTreeMap::new();
    let mut rank: BTreeMap<&str, u32> = BTreeMap::new();
    let free = [well_known::INSTANCE_SIZE, well_known::INSTANCE_CPU];
    let types = || basis.region.types.iter().filter(|instance_type| instance_type.on_demand.is_some());
    for kind in types().filter(|instance_type| allows(pool, &instance_type.facts, &free)) {
        let rank = rank.entry(kind.facts.size.as_str()).or_insert(kind.facts.vcpus);
        *rank = (*rank).max(kind.facts.vcpus);
    }
    for kind in types().filter(|instance_type| allows(pool, &instance_type.facts, &free)) {
        let size = kind.facts.size;
        let place = (rank.get(size.as_str()).copied().unwrap_or(0), size.as_str());
        let pair = found.entry(place).or_insert((size, false, !kind.facts.bare_metal));
        pair.1 |= allows(pool, &kind.facts, &[]);
    }
    chips_of(lever, chips, found.into_values().collect())
}

/// A name with whether it is there today and whether it is worth a chip otherwise.
type Name = (Symbol, bool, bool);

/// Chips of these names.
fn chips_of(lever: &Lever, chips: Level, names: Vec<Name>) -> Option<Control> {
    let worth: Vec<_> = names.iter().filter(|name| name.1 || name.2).collect();
    // Where a pool may have nearly everything, the usual ones are chips, and what else it may have is one chip.
    let crowded = worth.len() > CHIPS_MAX;
    let (shown, others): (Vec<&Name>, Vec<&Name>) = worth.into_iter().partition(|pair| !crowded || pair.2);
    let mut stops: Vec<Stop> = shown.iter().map(|pair| chip(pair.0.as_str(), pair.0.as_str(), &[pair.0])).collect();
    let mut today: Vec<&str> = shown.iter().filter(|pair| pair.1).map(|pair| pair.0.as_str()).collect();
    let rest: Vec<Symbol> = others.iter().filter(|other| other.1).map(|other| other.0).collect();
    if !rest.is_empty() {
        stops.push(chip("others", &format!("{} others", rest.len()), &rest));
        today.push("others");
    }
    if today.is_empty() {
        return None;
    }
    let mut control = control(lever, Form::Chips, &today.join(","), stops);
    control.chips = Some(chips);
    Some(control)
}

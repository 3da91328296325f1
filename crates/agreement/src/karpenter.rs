//! The karpenter suite: whole scheduling passes, compared pod by pod and type by type.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nodecast_karpenter::instance_types::{InstanceType, Offering};
use nodecast_karpenter::packing::{PackingPlan, PlannedClaim, TieBreak, pack};
use nodecast_model::domain::labels::is_well_known;
use nodecast_model::domain::requirements::{Operator, Requirement, Requirements};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{HourlyRate, Symbol};
use serde_json::{Value, json};

use crate::fields::{list, same};
use crate::karpenter_case::{Case, Catalogs, rate, resources};
use crate::tally::{Tally, each_case, files, guarded, read_json};

/// Runs every case below `paths`: files with one case, or with a list `cases`; gzip or not. A case without `expected` is
/// run once and measured.
pub fn run(paths: &[PathBuf], catalogs: Option<&Path>) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let mut catalogs = Catalogs::new(catalogs);
    each_case(paths, |path, value| {
        let told = |problem: String| format!("{}: {problem}", path.display());
        let packed = guarded(|| {
            let catalog = catalogs.find(path, value["catalog"].as_str().unwrap_or_default())?;
            let case = Case::read(value, catalog)?;
            let started = Instant::now();
            let plan = case.with(pack);
            Ok((case, plan, started.elapsed()))
        });
        let (case, plan, elapsed) = match packed {
            Ok(packed) => packed,
            Err(problem) => {
                tally.count(value["name"].as_str().unwrap_or("?"), Err(told(problem)));
                return;
            }
        };
        if value["expected"].is_null() {
            let stem = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            tally.measured.push(format!(
                "{} nodes={} cost={:.4} unschedulable={} ms={:.1}",
                stem.split('.').next().unwrap_or_default(),
                plan.claims.len(),
                cost(&case, &plan),
                plan.unschedulable.len(),
                elapsed.as_secs_f64() * 1e3
            ));
        } else {
            tally.count(&case.name, guarded(|| compare(&case, &plan, &value["expected"])));
        }
    })?;
    Ok(tally)
}

/// Packs every case below `paths` with ties drawn from `seeds` and compares nodes, cost and unplaced pods with what the
/// real program's runs, which draw theirs too, ranged over. Their 12 to 60 runs do not see every outcome, so the range is
/// widened by `slack` (0.05: a twentieth on either side, and one node).
pub fn run_with_drawn_ties(paths: &[PathBuf], seeds: std::ops::Range<u64>, slack: f64) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let mut catalogs = Catalogs::new(None);
    for path in files(paths, &[".json", ".json.gz"]).map_err(|error| error.to_string())? {
        let file = read_json(&path)?;
        for value in list(&file, "cases")? {
            let catalog = catalogs.find(&path, value["catalog"].as_str().unwrap_or_default())?;
            let case = Case::read(value, catalog)?;
            for seed in seeds.clone() {
                let plan = case.with_ties(TieBreak::Seeded { seed, pass: 1 }, pack);
                tally.count(&case.name, within_range(&case, &plan, &value["expected"]["real"], slack));
            }
        }
    }
    Ok(tally)
}

fn within_range(case: &Case, plan: &PackingPlan, real: &Value, slack: f64) -> Result<(), String> {
    let within = |what: &str, found: f64, one: f64| {
        let bound = |end: usize| real[what][end].as_f64().unwrap_or(f64::NAN);
        let (least, most) = (bound(0) * (1.0 - slack) - one, bound(1) * (1.0 + slack) + one);
        if (least..=most).contains(&found) {
            Ok(())
        } else {
            Err(format!("{what} is {found}, seen were {} to {}", bound(0), bound(1)))
        }
    };
    within("newNodes", plan.claims.len() as f64, 1.0)?;
    within("cheapestHourlyCost", cost(case, plan).as_f64(), 1e-9)?;
    within("unschedulable", plan.unschedulable.len() as f64, 1.0)
}

/// What all new nodes cost an hour, each as its cheapest offering.
fn cost(case: &Case, plan: &PackingPlan) -> HourlyRate {
    plan.claims.iter().filter_map(|claim| cheapest(&case.types, claim)).map(|(_, offering)| offering.price).sum()
}

/// The cheapest offering of a claim; ties by type, zone and capacity type.
fn cheapest<'t>(types: &'t [InstanceType], claim: &PlannedClaim) -> Option<(Symbol, &'t Offering)> {
    let left = claim.instance_types.iter().map(|instance_type| &types[instance_type.index as usize]);
    let offerings = left
        .flat_map(|instance_type| instance_type.offerings.iter().map(move |offering| (instance_type.name, offering)));
    offerings
        .filter(|(_, offering)| offering.available && allowed(&claim.requirements, offering))
        .min_by_key(|(name, offering)| (offering.price, *name, offering.zone, offering.capacity_type))
}

fn allowed(requirements: &Requirements, offering: &Offering) -> bool {
    let reservation = match offering.reservation {
        Some(reservation) => Requirement::equals(well_known::CAPACITY_RESERVATION_ID, reservation.id),
        None => Requirement::new(well_known::CAPACITY_RESERVATION_ID, Operator::DoesNotExist, []),
    };
    let item = [
        Requirement::equals(well_known::ZONE, offering.zone),
        Requirement::equals(well_known::CAPACITY_TYPE, offering.capacity_type),
        reservation,
    ];
    requirements.compatible(&item.into_iter().collect(), is_well_known).is_ok()
}

fn compare(case: &Case, plan: &PackingPlan, expected: &Value) -> Result<(), String> {
    let reference = &expected["reference"];
    let names = |pods: &[usize]| pods.iter().map(|&pod| case.pods[pod].name.clone()).collect::<Vec<_>>();
    let unplaced: Vec<usize> = plan.unschedulable.iter().map(|plan| plan.pod).collect();
    let mut unplaced = names(&unplaced);
    unplaced.sort();
    let wanted = reference["unschedulable"].as_object().into_iter().flatten();
    let mut wanted: Vec<String> = wanted.map(|(pod, _)| pod.rsplit('/').next().unwrap_or(pod).to_owned()).collect();
    wanted.sort();
    same("the set of unschedulable pods", unplaced, wanted)?;
    let existing: BTreeMap<String, Vec<String>> = plan
        .existing
        .iter()
        .map(|placement| (case.nodes[placement.node].node.name.clone(), names(&placement.pods)))
        .collect();
    let wanted: BTreeMap<String, Vec<String>> = reference["existingNodes"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(node, pods)| (node.clone(), texts(pods)))
        .filter(|(_, pods)| !pods.is_empty())
        .collect();
    same("pods on existing nodes", existing, wanted)?;
    let mut claims: Vec<(Symbol, Vec<String>, &PlannedClaim)> =
        plan.claims.iter().map(|claim| (claim.node_pool, names(&claim.pods), claim)).collect();
    claims.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    let wanted = list(reference, "newNodes")?;
    let mut wanted: Vec<&Value> = wanted.iter().collect();
    wanted.sort_by_key(|node| (Symbol::new(node["nodePool"].as_str().unwrap_or_default()), texts(&node["pods"])));
    let placed: Vec<_> = claims.iter().map(|(pool, pods, _)| (pool.as_str(), pods.clone())).collect();
    let wanted_pods: Vec<_> =
        wanted.iter().map(|node| (node["nodePool"].as_str().unwrap_or_default(), texts(&node["pods"]))).collect();
    if placed != wanted_pods {
        let at =
            placed.iter().zip(&wanted_pods).position(|(a, b)| a != b).unwrap_or(placed.len().min(wanted_pods.len()));
        let (found, expected) = (placed.get(at), wanted_pods.get(at));
        let (nodes, expected_nodes) = (placed.len(), wanted_pods.len());
        return Err(format!(
            "{nodes} new nodes, expected {expected_nodes}; node {at} has {found:?}, expected {expected:?}"
        ));
    }
    for ((_, pods, claim), node) in claims.iter().zip(wanted) {
        let of = |difference: String| format!("node of {}: {difference}", pods[0]);
        compare_claim(case, claim, node, &expected["typeSets"]).map_err(of)?;
    }
    same("cost", cost(case, plan), rate(&expected["referenceAggregate"]["cheapestHourlyCost"])?)
}

fn compare_claim(case: &Case, claim: &PlannedClaim, node: &Value, type_sets: &Value) -> Result<(), String> {
    let mut written = Vec::new();
    for requirement in claim.requirements.iter() {
        write_requirement(requirement, &mut written);
    }
    let mut wanted = list(node, "requirements")?.to_vec();
    for requirement in written.iter_mut().chain(&mut wanted) {
        if let Some(values) = requirement["values"].as_array_mut() {
            values.sort_by_key(Value::to_string);
        }
    }
    same("requirements", Value::from(written), Value::from(wanted))?;
    same("requests", claim.requests.clone(), resources(&node["requests"])?)?;
    let set = node["instanceTypeSet"].as_u64().and_then(|set| usize::try_from(set).ok()).unwrap_or(usize::MAX);
    let mut types = Vec::new();
    for entry in type_sets[set].as_array().into_iter().flatten() {
        types.push((entry[0].as_str().unwrap_or_default(), Some(rate(&entry[1])?)));
    }
    let found: Vec<_> =
        claim.instance_types.iter().map(|instance_type| (instance_type.name.as_str(), instance_type.price)).collect();
    if found != types {
        let at = found.iter().zip(&types).position(|(a, b)| a != b).unwrap_or(found.len().min(types.len()));
        let (nth, expected) = (found.get(at), types.get(at));
        let (count, wanted) = (found.len(), types.len());
        return Err(format!("{count} instance types, expected {wanted}; type {at} is {nth:?}, expected {expected:?}"));
    }
    let launch = &node["cheapestLaunch"];
    let wanted = |key: &str| launch[key].as_str().unwrap_or_default();
    let found = cheapest(&case.types, claim).map(|(name, offering)| (name, offering.zone, offering.capacity_type));
    let launched = found.map(|(name, zone, kind)| (name.as_str(), zone.as_str(), kind.as_str()));
    same("cheapest launch", launched, Some((wanted("instanceType"), wanted("zone"), wanted("capacityType"))))?;
    same("minValuesRelaxed", claim.min_values_relaxed, node["minValuesRelaxed"].as_bool().unwrap_or(false))
}

/// A requirement as the API states it: bounds are entries of their own, and take the place of excluded values.
pub fn write_requirement(requirement: &Requirement, into: &mut Vec<Value>) {
    let mut entry = |operator: &str, values: Vec<String>| {
        let mut entry = json!({"key": requirement.key.as_str(), "operator": operator});
        if !values.is_empty() {
            entry["values"] = values.into();
        }
        if let Some(least) = requirement.min_values {
            entry["minValues"] = least.into();
        }
        into.push(entry);
    };
    for (operator, bound) in [("Gte", requirement.gte), ("Lte", requirement.lte)] {
        if let Some(bound) = bound {
            entry(operator, vec![bound.to_string()]);
        }
    }
    if requirement.gte.is_none() && requirement.lte.is_none() {
        let values = requirement.values.iter().map(|value| value.as_str().to_owned()).collect();
        entry(&requirement.operator().to_string(), values);
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

//! The karpenter-consolidation suite: candidates in order, the decision on each alone, the decision of the prefix search.

use std::path::{Path, PathBuf};
use std::time::Instant;

use nodecast_karpenter::disruption::{
    Candidate, ClusterView, Command, Decision, EvictionCost, Method, MethodResult, NodeFacts, PodBudget, PodPlace,
    PodView, WhatIf, candidates, emptiness, evaluate, multi_node,
};
use nodecast_karpenter::packing::{NodeView, Packer, PackingSetup, PendingPod, PlannedClaim, PoolView, Situation};
use nodecast_manifests::pod_disruption_budget_from_json;
use nodecast_model::control_plane::eviction::Protections;
use nodecast_model::domain::node_pool::DisruptionReason;
use nodecast_model::domain::pod::PodPhase;
use nodecast_model::domain::{HourlyRate, KarpenterVersion, NodeObject, PodSpec, SimTime, well_known};
use serde_json::{Value, json};

use crate::fields::{list, note_unread, same};
use crate::karpenter::write_requirement;
use crate::karpenter_case::{Case, CasePod, Catalogs};
use crate::tally::{Tally, each_case, guarded};

/// What a case may have.
const FIELDS: [&str; 16] = [
    "name",
    "category",
    "description",
    "note",
    "catalog",
    "offeringOverrides",
    "addOfferings",
    "options",
    "namespaces",
    "nodePools",
    "daemonSets",
    "nodes",
    "pods",
    "spotToSpot",
    "podDisruptionBudgets",
    "expected",
];

/// Runs every case below `paths`: files with one case, or with a list `cases`; gzip or not. A case without `expected` is
/// run once and measured.
pub fn run(paths: &[PathBuf], catalogs: Option<&Path>) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let mut catalogs = Catalogs::new(catalogs);
    each_case(paths, |path, value| {
        let told = |problem: String| format!("{}: {problem}", path.display());
        let name = value["name"].as_str().unwrap_or("?");
        let outcome = guarded(|| {
            note_unread("case", value, &FIELDS);
            let catalog = catalogs.find(path, value["catalog"].as_str().unwrap_or_default())?;
            let case = Case::read(value, catalog)?;
            with_cluster(&case, value, |packer, view| {
                if value["expected"].is_null() {
                    return Err(measure(packer, view));
                }
                Ok(compare(packer, view, &value["expected"]))
            })
        });
        match outcome {
            Ok(Ok(outcome)) => tally.count(name, outcome),
            Ok(Err(line)) => tally.measured.push(format!("{name} {line}")),
            Err(problem) => tally.count(name, Err(told(problem))),
        }
    })?;
    Ok(tally)
}

/// Hands the case over as the methods want it.
pub fn with_cluster<R>(
    case: &Case,
    value: &Value,
    ask: impl FnOnce(&mut Packer<'_>, &ClusterView<'_>) -> R,
) -> Result<R, String> {
    let named = |error: nodecast_model::text::InputError| error.to_string();
    let mut budgets = Vec::new();
    for budget in list(value, "podDisruptionBudgets")? {
        let allowed = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0);
        budgets.push((pod_disruption_budget_from_json(budget).map_err(named)?, allowed));
    }
    let pod_budgets: Vec<PodBudget<'_>> = budgets
        .iter()
        .map(|(budget, allowed)| PodBudget {
            namespace: budget.namespace,
            selector: budget.selector.as_ref(),
            allowed: *allowed,
            always_allow_unhealthy: budget.always_allow_unhealthy,
            allows_nothing: budget.rule.allows_nothing(),
        })
        .collect();
    let ranks = uid_ranks(case);
    let mut numbered = ranks.iter().copied();
    let pods: Vec<Vec<PodView<'_>>> = case
        .nodes
        .iter()
        .map(|node| node.pods.iter().map(|pod| pod_view(pod, numbered.next().unwrap_or(0))).collect())
        .collect();
    let answer = case.with(|setup: PackingSetup<'_>, situation: &Situation<'_>| {
        let pending: Vec<PendingPod<'_>> =
            situation.pods.iter().zip(numbered).map(|(pod, uid_rank)| PendingPod { uid_rank, ..*pod }).collect();
        let digests: Vec<EvictionCost> = pods.iter().map(|pods| EvictionCost::from_pods(pods)).collect();
        let facts = situation.nodes.iter().zip(pods.iter().zip(&digests)).zip(&case.nodes);
        let nodes: Vec<NodeFacts<'_>> = facts.map(|((view, pods), fact)| node_facts(*view, pods, &fact.node)).collect();
        let pools: &[PoolView<'_>] = setup.pools;
        let view = ClusterView {
            now: SimTime::ZERO,
            karpenter: KarpenterVersion::V1_13,
            spot_to_spot: value["spotToSpot"] == true,
            pools,
            nodes: &nodes,
            pending: &pending,
            pod_budgets: &pod_budgets,
            protections: &Protections::default(),
            ties: situation.ties,
        };
        ask(&mut Packer::new(setup), &view)
    });
    Ok(answer)
}

/// The place of each pod in the order of UIDs, which are `namespace/name`: pods of the nodes first, then pending ones.
fn uid_ranks(case: &Case) -> Vec<u64> {
    let all: Vec<&CasePod> = case.nodes.iter().flat_map(|node| &node.pods).chain(&case.pods).collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_cached_key(|&pod| format!("{}/{}", all[pod].namespace, all[pod].name));
    let mut ranks = vec![0; all.len()];
    for (rank, &pod) in order.iter().enumerate() {
        ranks[pod] = rank as u64;
    }
    ranks
}

fn pod_view(pod: &CasePod, uid_rank: u64) -> PodView<'_> {
    let spec: &std::sync::Arc<PodSpec> = &pod.spec;
    PodView {
        namespace: pod.namespace,
        name: &pod.name,
        spec,
        phase: PodPhase::Running,
        deletion: None,
        ready: true,
        created: SimTime::ZERO,
        started: Some(SimTime::ZERO),
        uid_rank,
    }
}

fn node_facts<'a>(
    view: NodeView<'a>,
    (pods, digest): (&'a Vec<PodView<'a>>, &'a EvictionCost),
    node: &'a NodeObject,
) -> NodeFacts<'a> {
    NodeFacts {
        view,
        pods,
        digest,
        created: SimTime::ZERO,
        expire_after: None,
        grace_limited: false,
        node_pool: view.labels.get(well_known::NODEPOOL),
        annotations: &node.annotations,
        queued: false,
        instance_terminating: false,
        ready: node.ready,
        nominated: false,
        buffered: false,
        consolidatable: true,
        drifted: None,
    }
}

/// The prefix search, the cluster's compilation included, and one question about a single node without it, timed.
fn measure(packer: &mut Packer<'_>, view: &ClusterView<'_>) -> String {
    let started = Instant::now();
    let found = candidates(view, Method::MultiNode);
    let command = multi(packer, view, &found);
    let elapsed = started.elapsed().as_secs_f64() * 1e3;
    let mut what_if = WhatIf::new(packer, view);
    let first = Instant::now();
    for candidate in found.iter().take(20) {
        evaluate(&mut what_if, &[candidate]);
    }
    let single = first.elapsed().as_secs_f64() * 1e3 / found.len().clamp(1, 20) as f64;
    let (nodes, new) = command.map_or((0, 0), |command| (command.nodes.len(), command.replacements.len()));
    format!("candidates={} nodes={nodes} replacements={new} multi_ms={elapsed:.1} single_ms={single:.2}", found.len())
}

/// The decision of the prefix search over `found`.
pub fn multi(packer: &mut Packer<'_>, view: &ClusterView<'_>, found: &[Candidate]) -> Option<Command> {
    let mut allowances = view.allowances(DisruptionReason::Underutilized, 0);
    match multi_node(&mut WhatIf::new(packer, view), found, &mut allowances, None) {
        MethodResult::Command(command) => Some(command),
        MethodResult::Nothing | MethodResult::NotNow => None,
    }
}

fn compare(packer: &mut Packer<'_>, view: &ClusterView<'_>, expected: &Value) -> Result<(), String> {
    let name = |node: usize| view.nodes[node].view.name.to_owned();
    let found = candidates(view, Method::SingleNode);
    // Consolidation's candidates without pods: emptiness takes them, and more where consolidation wants none.
    let (others, empty): (Vec<&Candidate>, Vec<&Candidate>) =
        found.iter().partition(|item| !item.reschedulable.is_empty());
    let mut empty: Vec<String> = empty.iter().map(|case_node| name(case_node.node)).collect();
    let mut allowances = view.allowances(DisruptionReason::Empty, 0);
    let taken: Vec<String> = match emptiness(&candidates(view, Method::Emptiness), &mut allowances) {
        MethodResult::Command(command) => command.nodes.iter().map(|&node| name(node)).collect(),
        MethodResult::Nothing | MethodResult::NotNow => Vec::new(),
    };
    if let Some(left) = empty.iter().find(|item| !taken.contains(item)) {
        return Err(format!("emptiness leaves {left}"));
    }
    empty.sort();
    let mut wanted = texts(&expected["emptyCandidates"]);
    wanted.sort();
    same("empty candidates", empty, wanted)?;
    let listed: Vec<(String, usize)> =
        others.iter().map(|other| (name(other.node), other.reschedulable.len())).collect();
    let wanted = list(expected, "candidates")?;
    let wanted_listed: Vec<(String, usize)> = wanted
        .iter()
        .map(|item| {
            let pods = item["reschedulablePods"].as_u64().unwrap_or(0);
            (item["node"].as_str().unwrap_or_default().to_owned(), usize::try_from(pods).unwrap_or(0))
        })
        .collect();
    same("candidates", listed, wanted_listed)?;
    for (other, wanted) in others.iter().zip(wanted) {
        let cost = wanted["disruptionCost"].as_f64().unwrap_or(f64::NAN);
        if (other.cost - cost).abs() > 1e-9 {
            return Err(format!("disruption cost of {} is {}, expected {cost}", name(other.node), other.cost));
        }
    }
    // Where the real program's own runs differ by chance, only sizes and savings are a matter of agreement.
    let exact = expected["real"]["distinctResults"] == 1;
    for other in &others {
        let evaluation = evaluate(&mut WhatIf::new(packer, view), &[other]);
        // The disruption loop asks in brief, and is told no more than it uses.
        let brief = evaluate(&mut WhatIf::new(packer, view).brief(), &[other]).decision;
        if brief != evaluation.decision {
            return Err(format!("{}: in brief {brief:?}, in whole {:?}", name(other.node), evaluation.decision));
        }
        let replacement = match &evaluation.decision {
            Decision::NoOp(_) => None,
            Decision::Delete => Some(None),
            Decision::Replace(claim) => Some(Some((**claim).clone())),
        };
        let pods = &evaluation.simulation;
        let moves: Vec<(usize, Vec<PodPlace>)> = pods
            .plan
            .existing
            .iter()
            .map(|plan| (plan.node, plan.pods.iter().map(|&pod| pods.pods[pod]).collect()))
            .collect();
        let told = |problem: String| format!("alone, {}: {problem}", name(other.node));
        let written = replacement.map(|claim| {
            let placed = claim.as_ref().map(|claim| claim.pods.iter().map(|&pod| pods.pods[pod]).collect());
            write(view, &[other.node], evaluation.price, claim.as_ref().zip(placed), &moves)
        });
        compare_decision(written, &expected["single"][name(other.node)], exact).map_err(told)?;
    }
    let command = multi(packer, view, &found);
    let written = command.map(|command| {
        let claim = command.replacements.first();
        let placed = claim.map(|_| command.replaced.clone());
        write(view, &command.nodes, command.price, claim.zip(placed), &command.moves)
    });
    if !exact && within_what_was_seen(written.as_ref(), &expected["real"]["multiDecisions"]) {
        return Ok(());
    }
    compare_decision(written, &expected["multi"], exact).map_err(|problem| format!("together: {problem}"))
}

/// Whether the kind of decision and the number of nodes is one that the real program came to in one of its runs.
fn within_what_was_seen(written: Option<&Value>, seen: &Value) -> bool {
    let kind = written.map_or("no-op", |item| item["decision"].as_str().unwrap_or_default());
    let nodes = written.map_or(0, |item| item["candidates"].as_array().map_or(0, Vec::len));
    !seen[format!("{kind}{nodes}")].is_null()
}

fn compare_decision(written: Option<Value>, expected: &Value, exact: bool) -> Result<(), String> {
    let written = written.unwrap_or_else(|| json!({"decision": "no-op"}));
    for key in ["decision", "candidatesHourlyPrice"] {
        let (item, wanted) = (&written[key], &expected[key]);
        let near = matches!((item.as_f64(), wanted.as_f64()), (Some(a), Some(b)) if (a - b).abs() < 1e-6);
        if item != wanted && !near {
            return Err(format!("{key} is {item}, expected {wanted}"));
        }
    }
    if !exact {
        let cheapest = |value: &Value| value["replacement"]["instanceTypes"][0][1].as_f64();
        let size = |value: &Value| value["candidates"].as_array().map(Vec::len);
        same("number of nodes", size(&written), size(expected))?;
        return same("cheapest replacement", cheapest(&written), cheapest(expected));
    }
    for key in ["candidates", "moves"] {
        let wanted = &expected[key];
        let empty = wanted.is_null() && written[key].as_object().is_none_or(serde_json::Map::is_empty);
        if written[key] != *wanted && !empty {
            return Err(format!("{key} is {}, expected {wanted}", written[key]));
        }
    }
    for key in ["nodePool", "requirements", "instanceTypes", "pods"] {
        let (item, wanted) = (&written["replacement"][key], &expected["replacement"][key]);
        if item != wanted {
            return Err(format!("replacement's {key} is {item}, expected {wanted}"));
        }
    }
    Ok(())
}

fn write(
    view: &ClusterView<'_>,
    nodes: &[usize],
    price: HourlyRate,
    replacement: Option<(&PlannedClaim, Vec<PodPlace>)>,
    moves: &[(usize, Vec<PodPlace>)],
) -> Value {
    let name = |node: usize| view.nodes[node].view.name;
    let pod_name = |place: PodPlace| match place {
        PodPlace::Pending(pod) => view.pending[pod].name,
        PodPlace::Taken { node, pod } | PodPlace::Leaving { node, pod } => view.nodes[node].pods()[pod].name,
    };
    let names = |pods: &[PodPlace]| pods.iter().map(|&pod| pod_name(pod)).collect::<Vec<_>>();
    let candidates: Vec<&str> = nodes.iter().map(|&node| name(node)).collect();
    let mut written = json!({"candidates": candidates, "candidatesHourlyPrice": price.as_f64()});
    written["decision"] = if replacement.is_some() { "replace" } else { "delete" }.into();
    let moves = moves.iter().map(|(node, pods)| (name(*node).to_owned(), json!(names(pods)))).collect();
    written["moves"] = Value::Object(moves);
    if let Some((claim, pods)) = replacement {
        let mut requirements = Vec::new();
        for requirement in claim.requirements.iter() {
            write_requirement(requirement, &mut requirements);
        }
        let types: Vec<Value> = claim
            .instance_types
            .iter()
            .map(|instance_type| json!([instance_type.name.as_str(), instance_type.price.map(HourlyRate::as_f64)]))
            .collect();
        written["replacement"] = json!({
            "nodePool": claim.node_pool.as_str(),
            "requirements": requirements,
            "instanceTypes": types,
            "pods": names(&pods),
        });
    }
    written
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

//! The Cluster Autoscaler suite: one or more iterations of its main loop on a small cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nodecast_cluster_autoscaler::view::{NodeView, PodPlace};
use nodecast_cluster_autoscaler::{
    ClusterAutoscaler, GroupActions, Iteration, Observation, ResizeError, ScaleUpReport, ScaleUpResult,
};
use nodecast_model::domain::{SimDuration, SimTime};
use serde_json::{Value, json};

use crate::cluster_autoscaler_case::Cluster;
use crate::fields::{NOW, list, same};
use crate::tally::{Tally, run_cases};

/// Runs every case below `paths`: files with one case, or with a list `cases`; gzip or not.
pub fn run(paths: &[PathBuf], _catalogs: Option<&Path>) -> Result<Tally, String> {
    run_cases(paths, check)
}

fn check(file: &Value) -> Result<(), String> {
    let case = &file["case"];
    let tie = file["tie"].as_bool().unwrap_or(false);
    let mut cluster = Cluster::read(case)?;
    let mut program = ClusterAutoscaler::new(cluster.flags.clone(), cluster.inputs.clone(), NOW);
    for (group, request) in &cluster.requests {
        let ago = SimDuration::from_secs(request.seconds_ago);
        program.state_mut().register_scale_up(cluster.groups[*group].id, request.delta, NOW - ago);
    }
    for (turn, expected) in list(&file["expected"], "loops")?.iter().enumerate() {
        let seconds = case["loopSeconds"][turn].as_i64().unwrap_or(0);
        let now = NOW + SimDuration::from_secs(seconds);
        let (iteration, targets) = one_loop(&mut program, &mut cluster, now);
        let told = |difference: String| format!("at {seconds} s: {difference}");
        compare(&cluster, &iteration, &targets, expected, tie).map_err(told)?;
    }
    Ok(())
}

/// The provider of one iteration.
struct Provider {
    /// Desired capacities as the autoscaler sees them: deletions count at once.
    known: Vec<i64>,
    /// Desired capacities without deletions, as the cases report them.
    reported: Vec<i64>,
    refuses: Vec<bool>,
}

impl GroupActions for Provider {
    fn increase_size(&mut self, group: usize, by: i64) -> Result<(), ResizeError> {
        if self.refuses[group] {
            return Err(ResizeError("refused".to_owned()));
        }
        self.known[group] += by;
        self.reported[group] += by;
        Ok(())
    }

    fn decrease_target_size(&mut self, group: usize, by: i64) -> Result<(), ResizeError> {
        self.known[group] -= by;
        self.reported[group] -= by;
        Ok(())
    }

    fn delete_instances(&mut self, group: usize, instances: &[std::sync::Arc<str>]) -> Result<(), ResizeError> {
        self.known[group] -= instances.len() as i64;
        Ok(())
    }

    fn target_size(&self, group: usize) -> i64 {
        self.known[group]
    }
}

fn one_loop(program: &mut ClusterAutoscaler, cluster: &mut Cluster, now: SimTime) -> (Iteration, Vec<i64>) {
    let known: Vec<i64> = cluster.groups.iter().map(|group| group.target).collect();
    let mut provider = Provider { reported: known.clone(), known, refuses: cluster.refuses.clone() };
    let deletions = Default::default();
    let seen = Observation {
        now,
        nodes: &cluster.nodes,
        pods: &cluster.pods,
        groups: &cluster.groups,
        daemon_sets: &cluster.daemon_sets,
        budgets: &cluster.budgets,
        namespaces: &[],
        deletions: &deletions,
        recent_evictions: &[],
        listing: None,
    };
    let iteration = program.run_once(&seen, &mut provider, &mut |_| 0);
    for (group, target) in cluster.groups.iter_mut().zip(&provider.known) {
        group.target = *target;
    }
    (iteration, provider.reported)
}

fn compare(
    cluster: &Cluster,
    iteration: &Iteration,
    targets: &[i64],
    expected: &Value,
    tie: bool,
) -> Result<(), String> {
    if !expected["scaleUp"].is_null() {
        compare_scale_up(cluster, iteration, &expected["scaleUp"], tie)?;
    }
    if !expected["scaleDown"].is_null() {
        compare_scale_down(cluster, iteration, &expected["scaleDown"])?;
    }
    if expected["targetSizes"].is_null() {
        return Ok(());
    }
    let names = cluster.groups.iter().map(|group| group.id.as_str());
    let found: BTreeMap<&str, i64> = names.zip(targets.iter().copied()).collect();
    same("targetSizes", json!(found), sorted_object(&expected["targetSizes"]))
}

fn compare_scale_up(cluster: &Cluster, iteration: &Iteration, expected: &Value, tie: bool) -> Result<(), String> {
    let report = &iteration.scale_up;
    let shown = shown_result(report, &iteration.raised);
    same("scaleUp.result", shown.as_str(), expected["result"].as_str().unwrap_or_default())?;
    let waiting: Vec<usize> =
        (0..cluster.pods.len()).filter(|&at| cluster.pods[at].place == PodPlace::Unschedulable).collect();
    let left_out: Vec<usize> =
        waiting.into_iter().filter(|at| !report.considered.contains(at) && !report.young.contains(at)).collect();
    let counted = |pods: &[usize]| cluster.counted(pods);
    same("podsNotConsidered", counted(&left_out), sorted_object(&expected["podsNotConsidered"]))?;
    let waiting: Vec<usize> = report.considered.iter().chain(&report.young).copied().collect();
    same("podsConsidered", counted(&waiting), sorted_object(&expected["podsConsidered"]))?;
    let name = |group: usize| cluster.groups[group].id.as_str();
    let skipped: BTreeMap<&str, Vec<String>> =
        report.skipped.iter().map(|(group, reason)| (name(*group), vec![reason.text()])).collect();
    same("skippedGroups", json!(skipped), sorted_object(&expected["skippedGroups"]))?;
    let mut options: Vec<Value> = report
        .options
        .iter()
        .map(|option| {
            let mut similar: Vec<&str> = option.similar.iter().map(|&group| name(group)).collect();
            similar.sort_unstable();
            let mut value = json!({
                "group": name(option.group), "nodes": option.nodes, "pods": counted(&option.pods),
            });
            if !similar.is_empty() {
                value["similar"] = json!(similar);
            }
            sorted_object(&value)
        })
        .collect();
    let mut wanted: Vec<Value> = list(expected, "options")?.iter().map(sorted_object).collect();
    options.sort_by_key(Value::to_string);
    wanted.sort_by_key(Value::to_string);
    same("options", json!(options), json!(wanted))?;
    let choices: BTreeSet<&str> = report.choices.iter().map(|&group| name(group)).collect();
    let wanted: BTreeSet<&str> = list(expected, "expanderChoices")?.iter().filter_map(Value::as_str).collect();
    same("expanderChoices", choices, wanted)?;
    if tie {
        return Ok(());
    }
    let mut grown: Vec<Value> = report
        .grown
        .iter()
        .chain(&iteration.raised.grown)
        .map(|growth| sorted_object(&json!({"group": name(growth.group), "from": growth.from, "to": growth.to})))
        .collect();
    let mut wanted: Vec<Value> = list(expected, "scaleUps")?.iter().map(sorted_object).collect();
    grown.sort_by_key(Value::to_string);
    wanted.sort_by_key(Value::to_string);
    same("scaleUps", json!(grown), json!(wanted))?;
    same("podsTriggeredScaleUp", counted(&report.triggered), sorted_object(&expected["podsTriggeredScaleUp"]))?;
    let unschedulable = counted(&report.unschedulable);
    same("podsRemainUnschedulable", unschedulable, sorted_object(&expected["podsRemainUnschedulable"]))?;
    same("podsAwaitEvaluation", counted(&report.awaiting), sorted_object(&expected["podsAwaitEvaluation"]))
}

/// Raising groups to their minimum comes last, and its result is the one that stays.
fn shown_result(report: &ScaleUpReport, raised: &ScaleUpReport) -> ScaleUpResult {
    match raised.result {
        ScaleUpResult::NotTried | ScaleUpResult::NotNeeded => report.result,
        result => result,
    }
}

fn compare_scale_down(cluster: &Cluster, iteration: &Iteration, expected: &Value) -> Result<(), String> {
    let report = &iteration.scale_down;
    same("scaleDown.result", report.result.as_str(), expected["result"].as_str().unwrap_or_default())?;
    for wanted in list(expected, "nodes")? {
        let name = wanted["name"].as_str().unwrap_or_default();
        let at = cluster.nodes.iter().position(|node: &NodeView| &*node.name == name);
        let at = at.ok_or_else(|| format!("there is no node {name}"))?;
        let found = shown_node(cluster, iteration, at);
        same(&format!("node {name}"), found, sorted_object(wanted))?;
    }
    Ok(())
}

fn shown_node(cluster: &Cluster, iteration: &Iteration, at: usize) -> Value {
    let report = &iteration.scale_down;
    // An iteration that ended early found nothing.
    let finding = report.nodes.get(at).cloned().unwrap_or_default();
    let mut shown = json!({"name": &*cluster.nodes[at].name, "unneeded": finding.unneeded});
    if let Some(found) = finding.utilization {
        shown["utilization"] = rounded(found.share);
        shown["resource"] = json!(found.resource.to_string());
        match (found.cpu, found.memory) {
            (Some(cpu), Some(memory)) => (shown["cpu"], shown["memory"]) = (rounded(cpu), rounded(memory)),
            _ => shown["gpu"] = rounded(found.share),
        }
    }
    if let Some(reason) = finding.reason {
        shown["unremovableReason"] = json!(reason.as_str());
    }
    if let Some((pod, reason)) = finding.blocking {
        shown["blockingPod"] = json!(cluster.pod_names[pod]);
        shown["blockingReason"] = json!(reason.as_str());
    }
    if let Some(deletion) = report.deletions.iter().find(|deletion| deletion.node == at) {
        shown["deletion"] = json!(if deletion.empty { "empty" } else { "drain" });
        if !deletion.empty {
            shown["evictedPods"] = cluster.counted(&deletion.evict);
        }
    }
    sorted_object(&shown)
}

/// Six decimals, whole numbers without any.
fn rounded(number: f64) -> Value {
    let text = format!("{number:.6}");
    let number: f64 = text.parse().unwrap_or(number);
    if number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
}

/// The value with the keys of every object in order.
pub fn sorted_object(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let sorted: BTreeMap<&String, Value> =
                entries.iter().map(|(key, value)| (key, sorted_object(value))).collect();
            json!(sorted)
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted_object).collect()),
        Value::Null => json!({}),
        other => other.clone(),
    }
}

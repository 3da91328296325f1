//! Levers of blockers: budgets, PodDisruptionBudgets, and annotations that block every disruption of a node.
//!
//! A level loosens each blocker of a class as little as possible. It does not change Jobs: an eviction loses their work.

use serde_json::{Value, json};

use super::{BaselineFacts, Kind, Level, Lever};
use crate::axes::Setting;
use crate::domain::labels::Labels;
use crate::domain::node_pool::{Budget, DisruptionReason, NodePool};
use crate::domain::pod::{DisruptionRule, IntOrPercent, PodDisruptionBudget, PodSpec};
use crate::domain::words::counted;
use crate::domain::workload::ObjectName;
use crate::domain::{Symbol, well_known};
use crate::scenario::document::Content;

/// Annotations of pods and nodes that keep an autoscaler from removing the node, with the values that do.
const ANNOTATIONS: [&str; 4] = [
    "karpenter.sh/do-not-disrupt",
    "karpenter.sh/do-not-evict",
    "karpenter.sh/do-not-consolidate",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
];

/// A workload with pods that a blocker may protect.
struct Workload<'m> {
    kind: &'static str,
    name: ObjectName,
    template: &'m PodSpec,
    /// The least number of replicas that it has.
    replicas: i64,
}

/// A class of blockers that one level loosens.
struct Class {
    /// Its name for people.
    label: String,
    sets: Setting,
    /// Whether each workload that it exposes keeps a Ready replica while one is evicted.
    is_safe: bool,
}

/// Every class of blockers alone, the safe classes together, and all of them together; `None` without a blocker.
pub(super) fn lever(known: &BaselineFacts<'_>) -> Option<Lever> {
    let workloads = workloads(known);
    let (several, single) = disruption_budgets(known, &workloads);
    let mut classes: Vec<Class> = Vec::new();
    if known.policy.autoscaler.is_karpenter() {
        classes.extend(node_budgets(known));
    }
    classes.extend([several, single].into_iter().flatten());
    classes.extend(annotations(known, &workloads));
    let together = |all: Vec<&Class>| (all.len() > 1).then(|| level(&all));
    let safe = together(classes.iter().filter(|class| class.is_safe).collect());
    let all = together(classes.iter().collect());
    let alone = classes.iter().map(|class| level(&[class]));
    let levels: Vec<Level> = alone.chain(safe).chain(all).collect();
    (!levels.is_empty()).then(|| Lever {
        kind: Kind::Blockers,
        subject: "disruption of nodes".to_owned(),
        today: "all in force".to_owned(),
        levels,
    })
}

fn level(classes: &[&Class]) -> Level {
    let labels: Vec<&str> = classes.iter().map(|class| class.label.as_str()).collect();
    let sets = classes.iter().flat_map(|class| class.sets.iter().cloned()).collect();
    Level { label: format!("blockers loosened: {}", labels.join(", ")), sets, requirements: Vec::new() }
}

/// Deployments and StatefulSets with the least replicas that they have.
fn workloads<'k>(known: &BaselineFacts<'k>) -> Vec<Workload<'k>> {
    let manifests = &known.policy.manifests;
    let least = |kind: &str, name: ObjectName, stated: Option<u32>| {
        let is_target = |namespace: Symbol, target: &crate::domain::hpa::ScaleTargetRef| {
            namespace == name.namespace && target.name == name.name && target.kind.as_str() == kind
        };
        let hpas = manifests.autoscalers.iter().filter(|hpa| is_target(hpa.namespace, &hpa.target));
        let objects = manifests.scaled_objects.iter().filter(|object| is_target(object.namespace, &object.target));
        let of_hpas = hpas.map(|hpa| hpa.min_replicas.unwrap_or(1));
        let scaled = of_hpas.chain(objects.map(|object| object.min_replica_count.unwrap_or(0).max(1))).next();
        scaled.map_or_else(|| i64::from(stated.unwrap_or(1)), i64::from)
    };
    let deployments = manifests
        .deployments
        .iter()
        .map(|deployment| ("Deployment", deployment.name, &*deployment.template, deployment.replicas));
    let sets = manifests
        .stateful_sets
        .iter()
        .map(|stateful_set| ("StatefulSet", stateful_set.name, &*stateful_set.template, stateful_set.replicas));
    let workload = |(kind, name, template, stated): (&'static str, ObjectName, &'k PodSpec, Option<u32>)| Workload {
        kind,
        name,
        template,
        replicas: least(kind, name, stated),
    };
    deployments.chain(sets).map(workload).collect()
}

/// Budgets of NodePools that let no node go, for some of the time or all of it.
fn node_budgets(known: &BaselineFacts<'_>) -> Option<Class> {
    let is_zero = |budget: &Budget| matches!(budget.nodes, IntOrPercent::Count(0) | IntOrPercent::Percent(0));
    let consolidates = |budget: &Budget| {
        let ways = [DisruptionReason::Underutilized, DisruptionReason::Empty];
        budget.reasons.as_ref().is_none_or(|reasons| reasons.iter().any(|reason| ways.contains(reason)))
    };
    let of_pool = |pool: &NodePool| -> Vec<(String, String)> {
        let budgets = pool.disruption.budgets.iter().enumerate();
        let blocking = budgets.filter(|(_, budget)| is_zero(budget) && consolidates(budget));
        blocking
            .map(|(place, _)| {
                let path = format!("NodePool[{}].spec.disruption.budgets[{place}].nodes", pool.name);
                (path, json!("1").to_string())
            })
            .collect()
    };
    let pools = known.policy.manifests.node_pools.iter().filter(|pool| !pool.legacy && pool.replicas.is_none());
    let sets: Setting = pools.flat_map(of_pool).collect();
    let label = counted(sets.len() as u64, "budget of 0 nodes to 1", "budgets of 0 nodes to 1");
    (!sets.is_empty()).then_some(Class { label, sets, is_safe: true })
}

/// PodDisruptionBudgets that allow no disruption: of workloads that have several replicas, and of workloads with one.
fn disruption_budgets(known: &BaselineFacts<'_>, workloads: &[Workload<'_>]) -> (Option<Class>, Option<Class>) {
    let blocking = |budget: &&PodDisruptionBudget| {
        let protected = workloads.iter().filter(|workload| protects(budget, workload));
        let replicas: Vec<i64> = protected.map(|protected| protected.replicas).collect();
        let all: i64 = replicas.iter().sum();
        let blocks = match budget.rule {
            DisruptionRule::MinAvailable(least) => least.of_rounded_up(all) >= all,
            DisruptionRule::MaxUnavailable(_) => budget.rule.allows_nothing(),
        };
        (!replicas.is_empty() && blocks).then_some(all > 1)
    };
    let class = |several: bool| {
        let all = known.policy.manifests.disruption_budgets.iter();
        let pod_disruption_budgets: Vec<&PodDisruptionBudget> =
            all.filter(|budget| blocking(budget) == Some(several)).collect();
        let set = |budget: &&PodDisruptionBudget| {
            let spec = format!("PodDisruptionBudget[{}/{}].spec", budget.namespace, budget.name);
            let one = (format!("{spec}.maxUnavailable"), "1".to_owned());
            let none = (format!("{spec}.minAvailable"), Value::Null.to_string());
            if matches!(budget.rule, DisruptionRule::MinAvailable(_)) { vec![none, one] } else { vec![one] }
        };
        let of = if several { "several replicas" } else { "a single replica" };
        let count = counted(pod_disruption_budgets.len() as u64, "PodDisruptionBudget", "PodDisruptionBudgets");
        let sets: Setting = pod_disruption_budgets.iter().flat_map(set).collect();
        (!sets.is_empty()).then(|| Class { label: format!("{count} of {of} to 1 pod"), sets, is_safe: several })
    };
    (class(true), class(false))
}

fn protects(budget: &PodDisruptionBudget, workload: &Workload<'_>) -> bool {
    budget.namespace == workload.name.namespace
        && budget.selector.as_ref().is_some_and(|selector| selector.matches(&workload.template.labels))
}

/// Annotations that block disruption, by the kind of object that has them.
fn annotations(known: &BaselineFacts<'_>, workloads: &[Workload<'_>]) -> Vec<Class> {
    let of_workloads = |kind: &'static str| {
        let workload =
            workloads.iter().filter(|workload| workload.kind == kind && blocks(&workload.template.annotations));
        let workloads: Vec<&Workload<'_>> = workload.collect();
        let is_safe = kind == "Deployment" && workloads.iter().all(|workload| workload.replicas > 1);
        let count = counted(workloads.len() as u64, kind, &format!("{kind}s"));
        let object = |workload: &&Workload<'_>| without(known, kind, &workload.name.to_string());
        (workloads.iter().flat_map(object).collect::<Setting>(), count, is_safe)
    };
    let pools = known.policy.manifests.node_pools.iter().filter(|pool| blocks(&pool.annotations));
    let pools: Vec<Setting> =
        pools.map(|pool| without(known, "NodePool", &pool.name.to_string())).filter(|sets| !sets.is_empty()).collect();
    let count = counted(pools.len() as u64, "NodePool", "NodePools");
    let of_pools = (pools.concat(), count, true);
    let all = [of_workloads("Deployment"), of_workloads("StatefulSet"), of_pools].into_iter();
    let class = |(sets, count, is_safe): (Setting, String, bool)| Class {
        label: format!("{count} without the annotation that blocks disruption"),
        sets,
        is_safe,
    };
    all.filter(|(sets, ..)| !sets.is_empty()).map(class).collect()
}

/// Whether annotations keep an autoscaler from evicting a pod or removing a node.
fn blocks(annotations: &Labels) -> bool {
    let value = |name: &str| Symbol::existing(name).and_then(|key| annotations.get(key));
    annotations.get(well_known::DO_NOT_DISRUPT).is_some_and(|value| value.as_str() != "false")
        || value(ANNOTATIONS[3]).is_some_and(|value| value.as_str() == "false")
}

/// Removes the annotations that block disruption from the template of an object.
fn without(known: &BaselineFacts<'_>, kind: &str, name: &str) -> Setting {
    let shown = format!("{kind} {}", name.strip_prefix("default/").unwrap_or(name));
    let Some(object) = known.objects.iter().find(|object| object.object_name().as_ref() == Some(&shown)) else {
        return Setting::new();
    };
    let path = ["spec", "template", "metadata", "annotations"];
    let stated = path.iter().try_fold(object, |item, key| item.get(key));
    let value = |key: &str| stated.and_then(|item| item.get(key)).and_then(Content::as_text);
    let is_stated = |key: &&&str| value(key).is_some_and(|value| (value == "false") == (**key == ANNOTATIONS[3]));
    let remove = |key: &&str| {
        let path = format!("{kind}[{name}].spec.template.metadata.annotations[{key}]");
        (path, Value::Null.to_string())
    };
    ANNOTATIONS.iter().filter(is_stated).map(remove).collect()
}

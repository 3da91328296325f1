//! Levers that add objects: a NodePool of their own for some workloads, and placeholder pods where there are none.

use serde_json::{Value, json};

use super::{BaselineFacts, Kind, Level, Lever, dearest};
use crate::domain::labels::Labels;
use crate::domain::node_pool::NodePool;
use crate::domain::pod::PodSpec;
use crate::domain::taints::{Taint, TaintEffect, Toleration, TolerationOperator, first_untolerated};
use crate::domain::workload::{Deployment, ObjectName};
use crate::domain::{Symbol, well_known};
use crate::scenario::document::Content;
use crate::scenario::manifests::Manifests;

/// The taint that keeps others off nodes that are some workloads' own.
const OWN: &str = "dedicated";
/// What the objects of placeholder pods are called.
const PLACEHOLDERS: &str = "headroom";
/// Their priority: below that of all others, and not so low that the Cluster Autoscaler thinks nothing of them.
const PRIORITY: i32 = -10;

/// A workload with where its pods' specification stands.
struct Member<'m> {
    path: String,
    template: &'m PodSpec,
}

/// Workloads that may have nodes of their own.
struct Class<'m> {
    /// What their NodePool's name ends with, and the value of its taint.
    name: &'static str,
    /// What they are, for people.
    shown: &'static str,
    members: Vec<Member<'m>>,
}

/// Workloads that Karpenter may launch nodes of this pool for, apart from the others; nothing where all are alike.
pub(super) fn split(pool: &NodePool, known: &BaselineFacts<'_>) -> Option<Lever> {
    let manifests = &known.policy.manifests;
    let stated = known.objects.iter().find(|object| object.object_name() == Some(format!("NodePool {}", pool.name)))?;
    let classes = classes(manifests).into_iter().filter_map(|class| {
        let name = format!("{}-{}", pool.name, class.name);
        let is_taken = manifests.node_pools.iter().any(|node_pool| node_pool.name.as_str() == name);
        let members: Vec<Member<'_>> =
            class.members.into_iter().filter(|member| takes(pool, member.template)).collect();
        (!is_taken && !members.is_empty()).then_some((name, Class { members, ..class }))
    });
    let spot = pool.requirements.iter().find(|requirement| requirement.key == well_known::CAPACITY_TYPE);
    let has_spot = spot.is_some_and(|spot| spot.has(Symbol::new("spot")));
    let mut levels = Vec::new();
    for (name, class) in classes {
        let label = format!("{} on nodes of their own", class.shown);
        levels.push(apart(stated, &name, &class, (label.clone(), false)));
        if !has_spot {
            levels.push(apart(stated, &name, &class, (format!("{label}, Spot and On-Demand"), true)));
        }
    }
    let subject = format!("NodePool {}", pool.name);
    Some(Lever { kind: Kind::Split, subject, today: "one for all".to_owned(), levels })
}

/// Workloads of which some may do better apart from the rest: what is not to be disturbed keeps the nodes of others, and what stands
/// interruptions need not pay for what does not. None if there is no rest.
fn classes(manifests: &Manifests) -> Vec<Class<'_>> {
    let stays = |pod_spec: &PodSpec| {
        pod_spec.annotations.get(well_known::DO_NOT_DISRUPT).is_some_and(|annotation| annotation.as_str() == "true")
    };
    // What others have made they make anew by their own templates.
    let jobs = manifests.jobs.iter().filter(|job| manifests.maker_of(job).is_none());
    let jobs = jobs.map(|job| member("Job", job.name, "", &job.spec.template));
    let timed = manifests
        .cron_jobs
        .iter()
        .map(|cron_job| member("CronJob", cron_job.name, ".jobTemplate.spec", &cron_job.job.template));
    let deployments = manifests.deployments.iter().filter(|deployment| deployment.template.priority >= 0);
    let (staying, free): (Vec<&Deployment>, Vec<&Deployment>) =
        deployments.partition(|deployment| stays(&deployment.template));
    let staying = staying.into_iter().map(|workload| member("Deployment", workload.name, "", &workload.template));
    let sets = || {
        manifests
            .stateful_sets
            .iter()
            .map(|stateful_set| member("StatefulSet", stateful_set.name, "", &stateful_set.template))
    };
    let ends = Class {
        name: "jobs",
        shown: "Jobs and what must not be disrupted",
        members: jobs.chain(timed).chain(staying).collect(),
    };
    let keeps = Class { name: "stateful", shown: "StatefulSets", members: sets().collect() };
    let has_rest = |class: &Class<'_>| !free.is_empty() || (class.name == "jobs" && sets().next().is_some());
    [ends, keeps].into_iter().filter(|ends| !ends.members.is_empty() && has_rest(ends)).collect()
}

fn member<'m>(kind: &str, name: ObjectName, inner: &str, template: &'m PodSpec) -> Member<'m> {
    Member { path: format!("{kind}[{name}].spec{inner}.template.spec"), template }
}

/// Whether pods may come onto the pool's nodes and ask for no other pool's.
fn takes(pool: &NodePool, template: &PodSpec) -> bool {
    let names_another =
        template.node_selector.get(well_known::NODEPOOL).is_some_and(|node_selector| node_selector != pool.name);
    let is_unknown = |key: Symbol| !key.as_str().contains("kubernetes.io/") && !key.as_str().starts_with("karpenter.");
    let misses = |(key, value): (Symbol, Symbol)| is_unknown(key) && pool.labels.get(key) != Some(value);
    !names_another
        && !template.node_selector.iter().any(misses)
        && first_untolerated(&pool.taints, &template.tolerations).is_none()
}

/// A copy of the pool with a taint, and its workloads there.
fn apart(stated: &Content, name: &str, class: &Class<'_>, (label, with_spot): (String, bool)) -> Level {
    let word = |text: &str| Content::text(text);
    let map = |entries: &[(&str, Content)]| {
        Content::Map(entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
    };
    let at = |path: &[&str]| path.iter().try_fold(stated, |item, key| item.get(key)).map_or(&[][..], Content::items);
    let mut pool = map(&[
        ("apiVersion", stated.get("apiVersion").cloned().unwrap_or_else(|| word("karpenter.sh/v1"))),
        ("kind", word("NodePool")),
        ("metadata", map(&[("name", word(name))])),
        ("spec", stated.get("spec").cloned().unwrap_or_else(|| map(&[]))),
    ]);
    let mut taints = at(&TAINTS).to_vec();
    taints.push(map(&[("key", word(OWN)), ("value", word(class.name)), ("effect", word("NoSchedule"))]));
    put(&mut pool, &TAINTS, Content::List(taints));
    if with_spot {
        let is_other = |content: &&Content| {
            content.get("key").and_then(Content::as_text).as_deref() != Some(well_known::CAPACITY_TYPE.as_str())
        };
        let mut terms: Vec<Content> = at(&REQUIREMENTS).iter().filter(is_other).cloned().collect();
        let values = Content::List(vec![word("spot"), word("on-demand")]);
        let key = word(well_known::CAPACITY_TYPE.as_str());
        terms.push(map(&[("key", key), ("operator", word("In")), ("values", values)]));
        put(&mut pool, &REQUIREMENTS, Content::List(terms));
    }
    let taint = Taint { value: Symbol::new(class.name), ..Taint::new(Symbol::new(OWN), TaintEffect::NoSchedule) };
    let mut sets = vec![(format!("NodePool[{name}]"), pool.on_a_line())];
    for member in &class.members {
        sets.push((format!("{}.nodeSelector[{}]", member.path, well_known::NODEPOOL), name.to_owned()));
        if first_untolerated([&taint], &member.template.tolerations).is_some() {
            let mut all: Vec<Value> = member.template.tolerations.iter().map(toleration).collect();
            all.push(json!({"key": OWN, "operator": "Equal", "value": class.name, "effect": "NoSchedule"}));
            sets.push((format!("{}.tolerations", member.path), Value::Array(all).to_string()));
        }
    }
    Level { label, sets, requirements: Vec::new() }
}

const TAINTS: [&str; 4] = ["spec", "template", "spec", "taints"];
/// The path of a NodePool's requirements.
pub(super) const REQUIREMENTS: [&str; 4] = ["spec", "template", "spec", "requirements"];

/// Puts a value at the end of a path of maps.
pub(super) fn put(content: &mut Content, path: &[&str], value: Content) {
    match path {
        [] => *content = value,
        [key, rest @ ..] => {
            let mut inner = content.get(key).cloned().unwrap_or_else(|| Content::Map(Vec::new()));
            put(&mut inner, rest, value);
            content.set(key, inner);
        }
    }
}

/// A toleration as a manifest states it.
fn toleration(toleration: &Toleration) -> Value {
    let mut stated = serde_json::Map::new();
    let mut put = |key: &str, value: Value| stated.insert(key.to_owned(), value);
    if toleration.key != well_known::EMPTY {
        put("key", json!(toleration.key.as_str()));
    }
    let is_equal = toleration.operator == TolerationOperator::Equal;
    put("operator", json!(if is_equal { "Equal" } else { "Exists" }));
    if is_equal {
        put("value", json!(toleration.value.as_str()));
    }
    if let Some(effect) = toleration.effect {
        put("effect", json!(effect.as_str()));
    }
    if let Some(seconds) = toleration.toleration_seconds {
        put("tolerationSeconds", json!(seconds.as_secs_f64() as i64));
    }
    Value::Object(stated)
}

/// Placeholder pods of the size of the dearest autoscaled Deployment's, where there are none: they keep room for what comes next.
pub(super) fn placeholders(known: &BaselineFacts<'_>) -> Option<Lever> {
    let manifests = &known.policy.manifests;
    let is_own =
        |deployment: &Deployment| deployment.template.priority < 0 || deployment.name.name.as_str() == PLACEHOLDERS;
    let is_named = manifests.priority_classes.iter().any(|priority_class| priority_class.name.as_str() == PLACEHOLDERS);
    if is_named || manifests.deployments.iter().any(is_own) {
        return None;
    }
    let of_hpas = manifests
        .autoscalers
        .iter()
        .map(|autoscaler| (autoscaler.namespace, autoscaler.target.name, autoscaler.min_replicas.unwrap_or(1)));
    let objects = manifests.scaled_objects.iter();
    let of_objects =
        objects.map(|object| (object.namespace, object.target.name, object.min_replica_count.unwrap_or(0)));
    let scaled: Vec<(String, i32)> =
        of_hpas.chain(of_objects).map(|(namespace, name, least)| (format!("{namespace}/{name}"), least)).collect();
    let chosen = dearest(scaled.iter().map(|pair| pair.0.as_str()), known.by_workload, 1);
    let deployment =
        manifests.deployments.iter().find(|deployment| chosen.contains(&deployment.name.to_string().as_str()))?;
    let least = scaled.iter().find(|other| chosen.contains(&other.0.as_str())).map_or(1, |pair| pair.1).max(1);
    // One step: each more would cost the search as much as any other change, and once some are there others are tried.
    let count = (least + 1) / 2;
    let label = format!("{count} of the size of those of {}", deployment.name);
    let levels = vec![Level { label, sets: held(deployment, count), requirements: Vec::new() }];
    let subject = "placeholder pods".to_owned();
    Some(Lever { kind: Kind::Headroom, subject, today: "none".to_owned(), levels })
}

/// The objects of placeholder pods that take the room of a workload's, and give way to all others.
fn held(this_deployment: &Deployment, count: i32) -> Vec<(String, String)> {
    let template = &this_deployment.template;
    let named = [crate::domain::resources::ResourceName::CPU, crate::domain::resources::ResourceName::MEMORY];
    let requested = template.requests();
    let requests: serde_json::Map<String, Value> =
        named.into_iter().map(|name| (name.to_string(), json!(name.format(requested.get(name))))).collect();
    let mut spec = json!({
        "priorityClassName": PLACEHOLDERS,
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "pause", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}],
    });
    if !template.node_selector.is_empty() {
        spec["nodeSelector"] = selector(&template.node_selector);
    }
    if !template.tolerations.is_empty() {
        spec["tolerations"] = template.tolerations.iter().map(toleration).collect();
    }
    let labels = json!({"app": PLACEHOLDERS});
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": PLACEHOLDERS, "namespace": this_deployment.name.namespace.as_str()},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    });
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": PLACEHOLDERS},
        "value": PRIORITY,
    });
    vec![
        (format!("PriorityClass[{PLACEHOLDERS}]"), class.to_string()),
        (format!("Deployment[{}/{PLACEHOLDERS}]", this_deployment.name.namespace), deployment.to_string()),
    ]
}

fn selector(labels: &Labels) -> Value {
    Value::Object(labels.iter().map(|(key, value)| (key.as_str().to_owned(), json!(value.as_str()))).collect())
}

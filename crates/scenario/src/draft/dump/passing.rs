//! Pods that come and go by themselves: runners of CI, steps of workflows, drivers and executors of Spark. Their like is made anew
//! all the time, so they become a trace of pods and no workload that stays.
//!
//! What must not live here: pods of Jobs and CronJobs, which are simulated as such.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use super::objects::{Object, find_mut, remove, scalar, set};
use super::recorded::cell;
use super::{DraftFile, Dump, Notes};
use crate::domain::pod::NodeSelectorExpression;
use crate::domain::requirements::Operator;
use crate::domain::words::counted;
use crate::domain::{PodSpec, ResourceName, SimDuration};
use crate::file::pod_trace::toleration_text;

/// The file of the trace.
const FILE: &str = "passing.csv";
/// Kinds whose pods end by themselves, by API group.
const OWNERS: &[(&str, &[&str])] = &[
    ("", &["Pod"]),
    ("actions.github.com", &["EphemeralRunner"]),
    ("actions.summerwind.dev", &["Runner"]),
    ("apps.kruise.io", &["BroadcastJob"]),
    ("argoproj.io", &["Workflow"]),
    ("batch.volcano.sh", &["Job"]),
    ("kubeflow.org", &["JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"]),
    ("sparkoperator.k8s.io", &["SparkApplication"]),
    ("tekton.dev", &["PipelineRun", "TaskRun"]),
];
/// Labels of such pods that nothing controls, or not that what made them: a key, the value if it has to be that one, what they are.
const LABELS: &[(&str, Option<&str>, &str)] = &[
    ("spark-role", Some("driver"), "driver of Spark"),
    ("spark-role", Some("executor"), "executor of Spark"),
    ("ray.io/originated-from-crd", Some("RayJob"), "RayJob"),
    ("job.runner.gitlab.com/pod", None, "runner of GitLab"),
    ("jenkins/label", None, "agent of Jenkins"),
    ("kubernetes_executor", Some("True"), "task of Airflow"),
];
/// How long the trace is: as long as the run of the scenario that is written.
const LENGTH: SimDuration = SimDuration::from_secs(24 * 3_600);
/// Seconds that a pod runs, or runs on, at least.
const LEAST: f64 = 60.0;
/// Seconds between two rows at least; what comes faster comes together.
const STEP: f64 = 5.0;
const MIB: i64 = 1 << 20;

/// Pods of one kind.
struct Group<'s> {
    running: Vec<Object<'s>>,
    /// Seconds that those ran that have ended.
    ended: Vec<f64>,
}

/// Pods that come and go, by what they are.
#[derive(Default)]
pub(super) struct Passing<'s> {
    groups: BTreeMap<String, Group<'s>>,
    /// The namespace of the trace: that of most of them.
    pub(super) namespace: String,
}

/// What a pod is if it comes and goes.
pub(super) fn is_passing(pod: &Object<'_>) -> Option<String> {
    let label = |(key, value, what): &&(&str, Option<&str>, &'static str)| {
        pod.label(key).filter(|label| value.is_none_or(|value| value == *label)).map(|_| *what)
    };
    if let Some(what) = LABELS.iter().find_map(|this_label| label(&this_label)) {
        return Some(what.to_owned());
    }
    let owner = pod.owner()?;
    let (_, kinds) = OWNERS.iter().find(|(group, _)| *group == owner.group)?;
    kinds.contains(&owner.kind).then(|| format!("pod of {}", owner.kind))
}

/// Namespace and name of the Job that controls a pod.
fn job_of(pod: &Object<'_>) -> Option<(String, String)> {
    pod.controller().filter(|(kind, _)| *kind == "Job").map(|(_, name)| (pod.namespace.clone(), name.to_owned()))
}

/// Seconds from the start of a pod to the end of its last container.
fn run_time(pod: &Object<'_>) -> Option<f64> {
    let instant = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let began = instant(pod.text(&["status", "startTime"])?)?;
    let containers = pod.at(&["status", "containerStatuses"])?.items().iter();
    let ends = containers
        .filter_map(|container| instant(container.get("state")?.get("terminated")?.get("finishedAt")?.as_text()?));
    Some(ends.max()?.duration_since(began).as_secs_f64()).filter(|time| *time > 0.0)
}

impl Group<'_> {
    const fn new() -> Self {
        Self { running: Vec::new(), ended: Vec::new() }
    }

    /// Seconds that each of those that run has been there, and that each is taken to run in all: the mean of those that have
    /// ended, or twice the mean age, for pods that are looked at at any time are half through on the average.
    fn times(&self, seen: jiff::Timestamp) -> (Vec<f64>, f64) {
        let age = |pod: &Object<'_>| {
            let since = pod.text(&["status", "startTime"]).or_else(|| pod.text(&["metadata", "creationTimestamp"]))?;
            Some(seen.duration_since(since.parse().ok()?).as_secs_f64().max(0.0))
        };
        let ages: Vec<f64> = self.running.iter().map(|pod| age(pod).unwrap_or(0.0)).collect();
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len().max(1) as f64;
        let whole = if self.ended.is_empty() { 2.0 * mean(&ages) } else { mean(&self.ended) };
        (ages, whole.max(LEAST))
    }
}

/// A row of the trace.
struct Row {
    at: f64,
    run: f64,
    count: usize,
    name: Option<String>,
    rest: String,
}

impl<'s> Passing<'s> {
    /// Takes such pods out of a dump, but for where they run.
    pub(super) fn take(dump: &mut Dump<'s>) -> Self {
        let mut passing = Self::default();
        let (item, pods): (Vec<Object<'s>>, Vec<Object<'s>>) =
            std::mem::take(&mut dump.pods).into_iter().partition(|pod| is_passing(pod).is_some());
        dump.pods = pods;
        // The trace makes their like, and the Job that a CronJob made of them ends with them.
        let jobs: BTreeSet<(String, String)> = item.iter().filter_map(job_of).collect();
        dump.carried.retain(|object| {
            let is_theirs = || jobs.contains(&(object.namespace.clone(), object.name.clone()));
            object.kind != "Job" || object.controller().is_none() || !is_theirs()
        });
        let by_hand = |object: &Object<'_>| object.kind == "Pod" && is_passing(object).is_some();
        let (bare, carried) = std::mem::take(&mut dump.carried).into_iter().partition(by_hand);
        dump.carried = carried;
        let bare: Vec<Object<'s>> = bare;
        let mut namespaces: BTreeMap<String, usize> = BTreeMap::new();
        for pod in item.into_iter().chain(bare) {
            let Some(what) = is_passing(&pod) else { continue };
            *namespaces.entry(pod.namespace.clone()).or_default() += 1;
            passing.groups.entry(what).or_insert_with(Group::new).running.push(pod);
        }
        for pod in &dump.ended {
            if let (Some(what), Some(time)) = (is_passing(pod), run_time(pod))
                && let Some(group) = passing.groups.get_mut(&what)
            {
                group.ended.push(time);
            }
        }
        let most = namespaces.into_iter().max_by(|one, other| one.1.cmp(&other.1).then(other.0.cmp(&one.0)));
        passing.namespace = most.map(|(name, _)| name).unwrap_or_default();
        for pod in dump.running.iter_mut().filter(|pod| is_passing(pod).is_some() && !pod.is_deleted()) {
            // The trace makes it, under this name, and nothing else does.
            if let Some(metadata) = find_mut(Rc::make_mut(&mut pod.node), &["metadata"]) {
                remove(metadata, &["ownerReferences"]);
                set(metadata, "namespace", scalar(passing.namespace.clone()));
            }
            pod.namespace.clone_from(&passing.namespace);
        }
        passing
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The pods as objects, to be read in this order.
    pub(super) fn pods(&self) -> Vec<Object<'s>> {
        self.groups.values().flat_map(|group| &group.running).cloned().collect()
    }

    /// The trace: those that run for what is left to them, and then as many as end. `specs` are what [`Self::pods`] ask for.
    pub(super) fn file(&self, specs: &[PodSpec], seen: jiff::Timestamp, notes: &mut Notes) -> DraftFile {
        let mut rows: Vec<Row> = Vec::new();
        let mut specs = specs.iter();
        for (what, group) in &self.groups {
            let texts: Vec<String> = specs.by_ref().take(group.running.len()).map(columns).collect();
            let (ages, whole) = group.times(seen);
            for ((pod, age), rest) in group.running.iter().zip(&ages).zip(&texts) {
                let (run, name) = ((whole - age).max(LEAST), Some(pod.name.clone()));
                rows.push(Row { at: 0.0, run, count: 1, name, rest: rest.clone() });
            }
            let between = whole / texts.len() as f64;
            let count = (STEP / between).max(1.0) as usize;
            let mut at = between * count as f64;
            for rest in texts.iter().cycle() {
                if at > LENGTH.as_secs_f64() || texts.is_empty() {
                    break;
                }
                rows.push(Row { at, run: whole, count, name: None, rest: rest.clone() });
                at += between * count as f64;
            }
            notes.assume(assumption(what, group, whole));
        }
        rows.sort_by(|one, other| one.at.total_cmp(&other.at));
        let mut text =
            String::from("create_s,run_s,count,name,cpu_milli,memory_mib,gpu,node_selector,tolerations,priority\n");
        for row in rows {
            let name = row.name.unwrap_or_default();
            let name = cell(&name);
            let _ = writeln!(text, "{:.0},{:.0},{},{name},{}", row.at, row.run, row.count, row.rest);
        }
        DraftFile { name: FILE.into(), text }
    }
}

fn assumption(what: &str, group: &Group<'_>, whole: f64) -> String {
    let pods = counted(group.running.len() as u64, what, &plural(what));
    let basis = if group.ended.is_empty() {
        "twice as long as those have run that are there"
    } else {
        "as long as those that have ended"
    };
    let each = SimDuration::from_secs(whole as i64);
    format!("{pods} are a trace ({FILE}): one comes as one goes, all day, and each runs {each}, {basis}.")
}

/// `pods of X` for `pod of X`.
fn plural(what: &str) -> String {
    what.split_once(' ').map_or_else(|| format!("pods of {what}s"), |(first, rest)| format!("{first}s {rest}"))
}

/// Whole MiB that hold so many bytes.
pub(super) const fn mebibytes(bytes: i64) -> i64 {
    bytes.div_euclid(MIB) + (bytes % MIB > 0) as i64
}

/// What a pod asks for, as columns of the trace.
pub(super) fn columns(spec: &PodSpec) -> String {
    let requests = spec.requests();
    let selector = selector(spec);
    let tolerations = spec.tolerations.iter().filter(|toleration| toleration.toleration_seconds.is_none());
    let tolerations: Vec<String> = tolerations.map(toleration_text).collect();
    format!(
        "{},{},{},{},{},{}",
        requests.cpu_milli(),
        mebibytes(requests.memory_bytes()),
        requests.get(ResourceName::NVIDIA_GPU),
        cell(&selector),
        cell(&tolerations.join(";")),
        spec.priority
    )
}

/// The labels that the pod requires of a node: its selector, and of its affinity what names values.
fn selector(spec: &PodSpec) -> String {
    let labels = spec.node_selector.iter().map(|(key, value)| format!("{key}={value}"));
    let one_term = match spec.node_affinity.required.as_slice() {
        [term] => term.expressions.as_slice(),
        _ => &[],
    };
    let named = one_term.iter().filter(|item| item.operator == Operator::In && !item.values.is_empty());
    let values = |selector_expression: &NodeSelectorExpression| {
        selector_expression.values.iter().map(|value| value.as_str()).collect::<Vec<_>>().join("|")
    };
    labels.chain(named.map(|section| format!("{}={}", section.key, values(section)))).collect::<Vec<_>>().join(";")
}

//! The load that holds the replicas of a dump: the CPU that HorizontalPodAutoscalers measured, in cores.

use std::collections::BTreeSet;

use super::assumptions::Part;
use super::objects::{Object, find};
use super::{Dump, Notes, SCALED_OBJECT, is_kedas, read};
use crate::ScenarioError;
use crate::catalog::Region;
use crate::domain::hpa::{MetricSource, MetricSpec, MetricTarget};
use crate::domain::keda::{Origin, Scaler};
use crate::domain::labels::{SelectorExpression, SelectorOperator};
use crate::domain::words::counted;
use crate::domain::workload::ObjectName;
use crate::domain::{HorizontalPodAutoscaler, LabelSelector, PodSpec, Quantity, ResourceName, Symbol};
use crate::draft::Observed;
use crate::manifests::Manifests;
use crate::source::Source;
use crate::tree::Node;

/// CPU time of one observed request in thousandths of a second where nobody measured it (assumed).
pub(in crate::draft) const MILLISECONDS_PER_REQUEST: i64 = 10;

/// What asks for service, and what autoscalers read from outside.
#[derive(Debug, Default)]
pub(super) struct Demand {
    /// Workloads whose load was observed: nothing is guessed of them.
    known: BTreeSet<String>,
    /// Load by workload.
    pub loads: Vec<Load>,
    /// Workloads whose memory is known and that have no load here.
    pub memory: Vec<MemoryUser>,
    /// Metrics from outside with their present values.
    pub metrics: Vec<Outside>,
    /// What triggers read, in order of their objects.
    pub triggers: Vec<Read>,
}

/// What a trigger of a ScaledObject read.
#[derive(Debug)]
pub(super) struct Read {
    /// The object.
    pub object: ObjectName,
    /// Its place, as KEDA's metrics name it.
    pub trigger: String,
    /// Its type.
    pub kind: String,
    /// The value.
    pub value: f64,
}

/// A workload without a load in the dump, of which an autoscaler reads memory.
#[derive(Debug)]
pub(super) struct MemoryUser {
    /// The workload.
    pub workload: ObjectName,
    /// Bytes that a replica uses.
    pub memory: i64,
    /// Its replicas.
    pub replicas: u32,
    /// Whether it uses no CPU; otherwise its load was observed.
    pub is_idle: bool,
}

/// What autoscalers read from outside their pods.
#[derive(Debug)]
pub(super) struct Outside {
    /// The metric.
    pub metric: Symbol,
    /// The selector by which it is asked for.
    pub selector: LabelSelector,
    /// The object that it tells of.
    pub object: Option<ObjectName>,
    /// The value.
    pub value: f64,
}

impl Outside {
    fn is_same(&self, other: &Self) -> bool {
        self.metric == other.metric && self.object == other.object && self.selector.says_the_same(&other.selector)
    }
}

/// Load on one workload.
#[derive(Debug)]
pub(super) struct Load {
    /// The workload.
    pub workload: ObjectName,
    /// CPU in use, of all replicas together.
    pub cores: f64,
    /// Its replicas.
    pub replicas: u32,
    /// Bytes that a replica uses, where an autoscaler reads memory.
    pub memory: Option<i64>,
    /// Where the cores are from, for a comment.
    pub basis: String,
}

/// A workload that can serve requests.
struct Served<'m> {
    name: ObjectName,
    replicas: u32,
    template: &'m PodSpec,
}

/// Derives the demand from every autoscaler's status.
///
/// # Errors
/// If an autoscaler cannot be read.
pub(super) fn demand(
    dump: &Dump<'_>,
    manifests: &Manifests,
    (region, observed): (&Region, Option<&Observed>),
    notes: &mut Notes,
) -> Result<Demand, ScenarioError> {
    let known = observed.iter().flat_map(|demand| &demand.loads).map(|load| load.workload.clone()).collect();
    let mut demand = Demand { known, ..Demand::default() };
    for object in &dump.autoscalers {
        let source: &Source = object.source;
        let this_dump = read(std::slice::from_ref(source), std::slice::from_ref(object), region)?;
        let keda = is_kedas(object, dump);
        if let Some(owner) = object.owner().filter(|owner| owner.kind == SCALED_OBJECT && !keda) {
            notes.warn(format!(
                "HorizontalPodAutoscaler {} is KEDA's, and its ScaledObject {} is not in the dump: it scales by itself here, never to zero; add `scaledobjects` to the dump",
                object.full_name(),
                owner.name
            ));
        }
        for hpa in &this_dump.autoscalers {
            of_autoscaler(hpa, (object, keda), manifests, &mut demand, notes);
        }
    }
    for object in &dump.carried {
        if ["ScaledObject", "ScaledJob"].contains(&&*object.kind) {
            triggers(object, dump, &mut demand, notes);
        }
    }
    demand.loads.sort_by_key(|load| load.workload);
    Ok(demand)
}

fn of_autoscaler(
    hpa: &HorizontalPodAutoscaler,
    (object, keda): (&Object<'_>, bool),
    manifests: &Manifests,
    demand: &mut Demand,
    notes: &mut Notes,
) {
    let name = object.full_name();
    let Some(served) = served(hpa, manifests) else {
        let (kind, target) = (hpa.target.kind, hpa.target.name);
        return notes.warn(format!(
            "HorizontalPodAutoscaler {name}: target {kind} {target} is not in the dump, so it has no effect"
        ));
    };
    let replicas = object.text(&["status", "currentReplicas"]).and_then(|text| text.parse::<u32>().ok());
    let served = Served { replicas: replicas.unwrap_or(served.replicas), ..served };
    let mut cpu = None;
    let mut memory = None;
    for metric in &hpa.metrics {
        match &metric.source {
            MetricSource::Resource { name: resource } | MetricSource::ContainerResource { name: resource, .. } => {
                if *resource == ResourceName::CPU {
                    cpu = cpu.or_else(|| per_pod(metric, object, "cpu", served.template.requests().cpu_milli()));
                } else if *resource == ResourceName::MEMORY {
                    let requests = served.template.requests().memory_bytes();
                    memory = memory.or_else(|| per_pod(metric, object, "memory", requests));
                }
            }
            MetricSource::External { metric: this_metric, selector } if !keda => {
                let asked = (*this_metric, selector.clone().unwrap_or_default(), None);
                outside(asked, metric.target, object, &served, demand, notes);
            }
            MetricSource::Object { metric: this_metric, selector, object: described } if !keda => {
                let described = ObjectName { namespace: hpa.namespace, name: described.name };
                let asked = (*this_metric, selector.clone().unwrap_or_default(), Some(described));
                outside(asked, metric.target, object, &served, demand, notes);
            }
            MetricSource::Pods { metric, .. } => notes.warn(format!(
                "HorizontalPodAutoscaler {name} reads {metric} of its pods, and a dump holds no series: `prometheus` in the scenario states it; until then its replicas stay"
            )),
            MetricSource::External { .. } | MetricSource::Object { .. } => {}
        }
    }
    push(served, cpu, memory, &name, demand, notes);
}

/// Adds the load that uses so much of a pod.
fn push(
    served: Served<'_>,
    cpu: Option<Use>,
    memory: Option<Use>,
    autoscaler: &str,
    demand: &mut Demand,
    notes: &mut Notes,
) {
    if cpu.is_none() && memory.is_none() {
        return;
    }
    let (replicas, workload) = (served.replicas, served.name);
    let measured = memory.filter(|memory| memory.measured).map(|memory| memory.amount);
    let memory_user = |is_idle| measured.map(|memory| MemoryUser { workload, memory, replicas, is_idle });
    if demand.known.contains(&workload.to_string()) {
        // An observation has no memory: what the autoscaler measured holds.
        if demand.memory.iter().all(|item| item.workload != workload) {
            demand.memory.extend(memory_user(false));
        }
        return;
    }
    if demand.loads.iter().any(|load| load.workload == workload) {
        return;
    }
    if replicas == 0 {
        return notes.warn(format!("{} has no load: it had zero replicas", served.name));
    }
    let requests = served.template.requests().cpu_milli();
    let (amount, basis) = match cpu {
        Some(Use { amount: 0, .. }) => {
            notes.warn(format!("{} has no load: its autoscaler measured that it used no CPU", served.name));
            demand.memory.extend(memory_user(true));
            return;
        }
        Some(Use { amount, measured: true }) => (amount, format!("{amount}m of CPU for each, as measured")),
        Some(Use { amount, .. }) => {
            let text = format!("{} uses as much CPU as its autoscaler aims at: nothing was measured.", served.name);
            notes.assume_of(Part::workload(&served.name), text);
            (amount, format!("{amount}m of CPU for each, the autoscaler's target"))
        }
        None => {
            let amount = (requests / 10).max(1);
            let name = &served.name;
            let text = format!("{name} uses a tenth of the CPU that it requests: {autoscaler} reads its memory alone.");
            notes.assume_of(Part::workload(name), text);
            (amount, format!("{amount}m of CPU for each, a tenth of its request"))
        }
    };
    let cores = f64::from(replicas) * amount as f64 / 1_000.0;
    demand.loads.push(Load {
        workload: served.name,
        cores,
        replicas,
        memory: memory.map(|memory| memory.amount),
        basis: format!("{}, {basis}", counted(u64::from(replicas), "replica", "replicas")),
    });
}

/// The workload that an autoscaler scales.
fn served<'m>(hpa: &HorizontalPodAutoscaler, manifests: &'m Manifests) -> Option<Served<'m>> {
    let name = ObjectName { namespace: hpa.namespace, name: hpa.target.name };
    match hpa.target.kind.as_str() {
        "Deployment" => {
            let deployment = manifests.deployments.iter().find(|deployment| deployment.name == name)?;
            Some(Served { name, replicas: deployment.replicas.unwrap_or(1), template: &deployment.template })
        }
        "StatefulSet" => {
            let stateful_set = manifests.stateful_sets.iter().find(|stateful_set| stateful_set.name == name)?;
            Some(Served { name, replicas: stateful_set.replicas.unwrap_or(1), template: &stateful_set.template })
        }
        _ => None,
    }
}

/// What a pod uses of a resource, in its unit.
#[derive(Clone, Copy)]
struct Use {
    amount: i64,
    /// Whether the autoscaler measured it; otherwise it is what it aims at.
    measured: bool,
}

/// What a pod uses of a resource of which it requests so much.
fn per_pod(metric: &MetricSpec, object: &Object<'_>, resource: &str, requests: i64) -> Option<Use> {
    let measured = current(object, resource).and_then(|current| amount(current, resource, requests));
    let of_v1 = || {
        let percent = object.text(&["status", "currentCPUUtilizationPercentage"]).filter(|_| resource == "cpu")?;
        share(percent.parse().ok()?, requests)
    };
    // Memory that nothing uses is memory that nobody measured.
    let measured = measured.or_else(of_v1).filter(|amount| *amount > 0 || resource == "cpu");
    if let Some(amount) = measured {
        return Some(Use { amount, measured: true });
    }
    let aimed = match metric.target {
        MetricTarget::Utilization(percent) => share(i64::from(percent), requests),
        MetricTarget::AverageValue(quantity) => in_unit(quantity, resource),
        MetricTarget::Value(_) => None,
    };
    aimed.filter(|amount| *amount > 0).map(|amount| Use { amount, measured: false })
}

/// What the status says of a resource.
fn current<'o, 's>(object: &'o Object<'s>, resource: &str) -> Option<&'o Node<'s>> {
    let metrics = object.at(&["status", "currentMetrics"])?.items();
    let sources = metrics.iter().flat_map(|metric| [metric.get("resource"), metric.get("containerResource")]).flatten();
    let mut sources = sources.filter(|source| source.get("name").and_then(Node::as_text) == Some(resource));
    sources.find_map(|source| source.get("current"))
}

fn amount(current: &Node<'_>, resource: &str, requests: i64) -> Option<i64> {
    let value = current.get("averageValue").and_then(Node::as_text).and_then(|text| text.parse::<Quantity>().ok());
    let percent = || current.get("averageUtilization")?.as_text()?.parse::<i64>().ok();
    value.and_then(|value| in_unit(value, resource)).or_else(|| share(percent()?, requests))
}

/// A share in percent of a request; none where nothing is requested.
fn share(percent: i64, requests: i64) -> Option<i64> {
    let amount = i128::from(percent) * i128::from(requests) / 100;
    i64::try_from(amount).ok().filter(|amount| *amount >= 0 && requests > 0)
}

fn in_unit(quantity: Quantity, resource: &str) -> Option<i64> {
    let amount = if resource == "cpu" { quantity.milli_value() } else { quantity.value() };
    Some(amount).filter(|amount| *amount >= 0)
}

/// The present value of a metric from outside the pods. Two of one name are two if they are asked for by other selectors or tell of other
/// objects.
fn outside(
    (metric, selector, described): (Symbol, LabelSelector, Option<ObjectName>),
    target: MetricTarget,
    object: &Object<'_>,
    served: &Served<'_>,
    demand: &mut Demand,
    notes: &mut Notes,
) {
    let name = object.full_name();
    let metrics = object.at(&["status", "currentMetrics"]).map_or(&[][..], Node::items);
    let is_its = |source: &&Node<'_>| {
        find(source, &["metric", "name"]).and_then(Node::as_text) == Some(metric.as_str())
            && described
                .is_none_or(|described| described_object(source).is_none_or(|name| name == described.name.as_str()))
    };
    let sources =
        metrics.iter().flat_map(|metric| [metric.get("external"), metric.get("object")]).flatten().filter(is_its);
    let sources: Vec<&Node<'_>> = sources.collect();
    let selects = |source: &&&Node<'_>| selector_of(find(source, &["metric", "selector"])).says_the_same(&selector);
    let exact = sources.iter().find(selects).copied();
    let source = exact.or_else(|| sources.first().copied().filter(|_| sources.len() == 1));
    let aims_at_average = matches!(target, MetricTarget::AverageValue(_));
    let value = source.and_then(|source| whole_value(source.get("current")?, served.replicas, aims_at_average));
    let outside = Outside { metric, selector, object: described, value: value.unwrap_or_default() };
    let other = demand.metrics.iter().find(|other| other.is_same(&outside)).map(|other| other.value);
    let Some(value) = value else {
        if other.is_some() {
            return;
        }
        return notes.warn(format!(
            "HorizontalPodAutoscaler {name} reads {metric}, whose value is not in the dump: `external_metrics` in the scenario states it; until then its replicas stay"
        ));
    };
    match other {
        // A share for each replica is rounded.
        Some(other) if (other - value).abs() > 0.01 * other.max(value) => notes.warn(format!(
            "HorizontalPodAutoscaler {name} read {metric} as {value}, and another one that asks for the same read {other}: both read that here"
        )),
        Some(_) => {}
        None => {
            let text = format!("{metric}, which {name} reads, keeps the value that it had.");
            notes.assume_of(Part::workload(&served.name), text);
            demand.metrics.push(outside);
        }
    }
}

/// The name of the object that a metric of a status tells of.
fn described_object<'n>(source: &'n Node<'_>) -> Option<&'n str> {
    find(source, &["describedObject", "name"]).and_then(Node::as_text)
}

/// The selector of a metric of a status.
fn selector_of(node: Option<&Node<'_>>) -> LabelSelector {
    let text = |node: &Node<'_>| Symbol::new(node.as_text().unwrap_or_default());
    let pairs = node.and_then(|node| node.get("matchLabels")).map(Node::entries).unwrap_or_default();
    let match_labels = pairs.iter().map(|pair| (Symbol::new(&pair.key), text(&pair.value))).collect();
    let expression = |node: &Node<'_>| {
        let operator = match node.get("operator")?.as_text()? {
            "In" => SelectorOperator::In,
            "NotIn" => SelectorOperator::NotIn,
            "Exists" => SelectorOperator::Exists,
            "DoesNotExist" => SelectorOperator::DoesNotExist,
            _ => return None,
        };
        let values = node.get("values").map_or(&[][..], Node::items).iter().map(text).collect();
        Some(SelectorExpression { key: text(node.get("key")?), operator, values })
    };
    let expressions = node.and_then(|node| node.get("matchExpressions")).map_or(&[][..], Node::items);
    LabelSelector { match_labels, expressions: expressions.iter().filter_map(expression).collect() }
}

/// What the triggers of an object read that the simulation does not make: the values that its autoscaler had, or a warning.
fn triggers(object: &Object<'_>, dump: &Dump<'_>, demand: &mut Demand, notes: &mut Notes) {
    let (this_kind, name) = (&object.kind, object.full_name());
    let is_its = |hpa: &&Object<'_>| {
        hpa.own_namespace() == object.own_namespace() && hpa.controller() == Some((this_kind, &object.name))
    };
    let autoscaler = dump.autoscalers.iter().find(is_its);
    let mut kept = 0_u64;
    for (place, trigger) in object.at(&["spec", "triggers"]).map_or(&[][..], Node::items).iter().enumerate() {
        let kind = trigger.get("type").and_then(Node::as_text).unwrap_or_default();
        if Scaler::find(kind).is_some_and(|scaler| scaler.value == Origin::Cluster) {
            continue;
        }
        if let Some(value) = autoscaler.and_then(|hpa| read_by(hpa, place)) {
            kept += 1;
            let (namespace, name) = (Symbol::new(object.own_namespace()), Symbol::new(&object.name));
            let (object, trigger) = (ObjectName { namespace, name }, format!("s{place}"));
            demand.triggers.push(Read { object, trigger, kind: kind.to_owned(), value });
            continue;
        }
        notes.warn(format!(
            "{this_kind} {name}: a dump has no data for its trigger `{kind}`. Add it under `queues`, `prometheus`, or `external_metrics` (docs/scaling.md); until then it never scales"
        ));
    }
    if kept > 0 {
        let values = counted(kept, "value", "values");
        notes.assume(format!(
            "{this_kind} {name} uses the last {values} its autoscaler read, until you add a queue or Prometheus data."
        ));
    }
}

/// The whole value that an autoscaler of KEDA read of the trigger at `place`.
fn read_by(hpa: &Object<'_>, place: usize) -> Option<f64> {
    let prefix = format!("s{place}-");
    let metrics = hpa.at(&["status", "currentMetrics"])?.items().iter().filter_map(|item| item.get("external"));
    let mut metrics = metrics.filter(|metric| {
        find(metric, &["metric", "name"]).and_then(Node::as_text).is_some_and(|name| name.starts_with(&prefix))
    });
    let replicas = hpa.text(&["status", "currentReplicas"])?.parse::<u32>().ok()?;
    let metric = metrics.next()?;
    let name = find(metric, &["metric", "name"]).and_then(Node::as_text)?;
    whole_value(metric.get("current")?, replicas, aims_at_average(hpa, name))
}

/// Whether an autoscaler aims at so much of an external metric for each replica.
fn aims_at_average(hpa: &Object<'_>, name: &str) -> bool {
    let metrics = hpa.at(&["spec", "metrics"]).map_or(&[][..], Node::items).iter();
    let mut workloads = metrics.filter_map(|metric| metric.get("external"));
    let is_its = |node: &&Node<'_>| find(node, &["metric", "name"]).and_then(Node::as_text) == Some(name);
    let target = workloads.find(is_its).and_then(|workload| workload.get("target"));
    target.and_then(|target| target.get("type")).and_then(Node::as_text) == Some("AverageValue")
}

/// The value for all: where the target is one for each replica, what was measured for each times the replicas. A status that an API server
/// converted has both, and a `value` of 0 that nobody measured.
fn whole_value(current: &Node<'_>, replicas: u32, aims_at_average: bool) -> Option<f64> {
    let number = |key| {
        let quantity = current.get(key)?.as_text()?.parse::<Quantity>().ok()?;
        Some(quantity.as_f64()).filter(|value| *value >= 0.0)
    };
    let of_each = || number("averageValue").map(|each| each * f64::from(replicas));
    if aims_at_average { of_each().or_else(|| number("value")) } else { number("value").or_else(of_each) }
}

//! Nodes: how many of each kind, and each from its registration to its end.

use std::collections::BTreeMap;

use nodecast_model::domain::SimTime;
use nodecast_model::text::InputError;

use super::super::answer::Series;
use super::answer_reader::AnswerReader;
use super::{Frame, text};
use crate::observation::{NodeCount, NodeLife, SpotPrice};

/// What a node is, as its labels say.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Kind {
    instance_type: Option<String>,
    zone: Option<String>,
    capacity_type: Option<String>,
    origin_kind: Option<String>,
    origin: Option<String>,
    arch: Option<String>,
}

impl Kind {
    /// By the labels of the node that kube-state-metrics was told to export.
    fn of_labels(series: &Series) -> Self {
        let pool = text(series, "label_karpenter_sh_nodepool");
        let group = text(series, "label_eks_amazonaws_com_nodegroup");
        // EKS writes `ON_DEMAND` and `SPOT`, Karpenter `on-demand` and `spot`.
        let of_group = ["label_eks_amazonaws_com_capacity_type", "label_eks_amazonaws_com_capacityType"]
            .into_iter()
            .find_map(|label| text(series, label));
        let of_group = of_group.map(|word| word.to_ascii_lowercase().replace('_', "-"));
        Self {
            instance_type: text(series, "label_node_kubernetes_io_instance_type"),
            zone: text(series, "label_topology_kubernetes_io_zone"),
            capacity_type: text(series, "label_karpenter_sh_capacity_type").or(of_group),
            origin_kind: pool.as_ref().map(|_| "NodePool").or(group.as_ref().map(|_| "NodeGroup")).map(str::to_owned),
            origin: pool.or(group),
            arch: text(series, "label_kubernetes_io_arch"),
        }
    }

    /// By what Karpenter says of its nodes.
    fn of_karpenter(series: &Series) -> Self {
        let origin = text(series, "nodepool");
        Self {
            instance_type: text(series, "instance_type"),
            zone: text(series, "zone"),
            capacity_type: text(series, "capacity_type"),
            origin_kind: origin.as_ref().map(|_| "NodePool".to_owned()),
            origin,
            arch: text(series, "arch"),
        }
    }
}

/// The answers that count nodes: by the labels of nodes, and those that Karpenter knows.
pub(super) struct NodeCounts {
    labelled: Vec<Series>,
    of_karpenter: Vec<Series>,
}

impl NodeCounts {
    /// Reads both.
    ///
    /// # Errors
    /// If an answer cannot be read.
    pub(super) fn from_answer_reader(told: &mut AnswerReader<'_>) -> Result<Self, InputError> {
        Ok(Self { labelled: told.series("nodes")?, of_karpenter: told.series("karpenter_nodes")? })
    }

    /// Each by its role.
    pub(super) fn answers(&self) -> [(&'static str, &[Series]); 2] {
        [("nodes", &self.labelled), ("karpenter_nodes", &self.of_karpenter)]
    }
}

/// Seconds by which kube-state-metrics and Karpenter may see one node come or go apart. An assumption: a scrape of each, and Karpenter's state of
/// nodes behind it.
const APART: i64 = 300;

/// By what nodes are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Basis {
    /// By their labels, which say the type, or nobody counted any.
    Labels,
    /// Their labels say no type: those that Karpenter knows have theirs from it, and the others have none.
    Untyped,
    /// Labels of nodes were not exported: the others are counted by their names, without a type.
    Unlabelled,
    /// Nothing tells of nodes but Karpenter, which knows its own.
    KarpenterAlone,
}

/// How many nodes there were of each kind: by the labels of nodes, else those that Karpenter knows and, of no kind, those that others count
/// beside them.
///
/// # Errors
/// If an answer cannot be read.
pub(super) fn counts(
    counted: NodeCounts,
    told: &mut AnswerReader<'_>,
    frame: Frame,
) -> Result<(Vec<NodeCount>, Basis), InputError> {
    let NodeCounts { labelled, of_karpenter } = counted;
    let has_types = labelled.iter().any(|series| !series.label("label_node_kubernetes_io_instance_type").is_empty());
    let mut counts = Counts::new();
    if has_types && told.is_answered("nodes") {
        add(&mut counts, &labelled, Kind::of_labels, frame);
        return Ok((rows(counts), Basis::Labels));
    }
    add(&mut counts, &of_karpenter, Kind::of_karpenter, frame);
    let (all, basis) = if told.is_answered("nodes") {
        (totals(&labelled, frame), Basis::Untyped)
    } else {
        let named = totals(&told.series("node_present")?, frame);
        let alone = if counts.is_empty() { Basis::Labels } else { Basis::KarpenterAlone };
        let basis = if named.is_empty() { alone } else { Basis::Unlabelled };
        (named, basis)
    };
    let known = |at: SimTime| -> f64 {
        counts.range((at, Kind::default())..).take_while(|((key, _), _)| *key == at).map(|count| count.1).sum()
    };
    let others: Vec<(SimTime, f64)> = all.into_iter().map(|(at, nodes)| (at, (nodes - known(at)).max(0.0))).collect();
    for (at, nodes) in steady(&others).into_iter().filter(|(_, nodes)| *nodes > 0.0) {
        *counts.entry((at, Kind::default())).or_default() += nodes;
    }
    Ok((rows(counts), basis))
}

/// Without rises and falls that last no longer than what two who count the same nodes see them apart: a rise would be a node that came and went.
fn steady(points: &[(SimTime, f64)]) -> Vec<(SimTime, f64)> {
    let risen = beside(&beside(points, true, f64::min), false, f64::max);
    beside(&beside(&risen, true, f64::max), false, f64::min)
}

/// The least or the most that there is at each instant and shortly after it, or before it.
fn beside(points: &[(SimTime, f64)], after: bool, pick: fn(f64, f64) -> f64) -> Vec<(SimTime, f64)> {
    let matches = |place: usize| -> f64 {
        let (at, value) = points[place];
        let is_near = |other: &&(SimTime, f64)| (other.0.as_micros() - at.as_micros()).abs() <= APART * 1_000_000;
        let (before, behind) = points.split_at(place);
        if after {
            behind.iter().take_while(is_near).fold(value, |all, one| pick(all, one.1))
        } else {
            before.iter().rev().take_while(is_near).fold(value, |all, one| pick(all, one.1))
        }
    };
    (0..points.len()).map(|place| (points[place].0, matches(place))).collect()
}

/// Nodes by instant and kind.
type Counts = BTreeMap<(SimTime, Kind), f64>;

fn add(counts: &mut Counts, all: &[Series], kind: fn(&Series) -> Kind, frame: Frame) {
    for series in all {
        let kind = Kind { arch: None, ..kind(series) };
        for sample in series.samples.iter().filter(|sample| sample.value.is_finite()) {
            *counts.entry((frame.at(sample), kind.clone())).or_default() += sample.value;
        }
    }
}

/// The sum of all series at each instant.
fn totals(all: &[Series], frame: Frame) -> BTreeMap<SimTime, f64> {
    let mut totals: BTreeMap<SimTime, f64> = BTreeMap::new();
    for sample in all.iter().flat_map(|series| &series.samples).filter(|sample| sample.value.is_finite()) {
        *totals.entry(frame.at(sample)).or_default() += sample.value;
    }
    totals
}

fn rows(counts: Counts) -> Vec<NodeCount> {
    let row = |((at, kind), nodes): ((SimTime, Kind), f64)| {
        let Kind { instance_type, zone, capacity_type, origin_kind, origin, .. } = kind;
        NodeCount { at, instance_type, zone, capacity_type, origin_kind, origin, nodes: libm::round(nodes) as i64 }
    };
    counts.into_iter().map(row).collect()
}

/// Each node that was seen, in order of registration.
///
/// # Errors
/// If an answer cannot be read.
pub(super) fn lives(told: &mut AnswerReader<'_>, frame: Frame) -> Result<Vec<NodeLife>, InputError> {
    let mut all: BTreeMap<String, NodeLife> = BTreeMap::new();
    let entry = |all: &mut BTreeMap<String, NodeLife>, name: &str, set: &dyn Fn(&mut NodeLife)| {
        let new = || NodeLife { node: name.to_owned(), ..NodeLife::default() };
        if !name.is_empty() {
            set(all.entry(name.to_owned()).or_insert_with(new));
        }
    };
    for series in told.series("node_info")? {
        entry(&mut all, series.label("node"), &|node| {
            node.kubelet_version = text(&series, "kubelet_version");
            node.zone = node.zone.take().or_else(|| zone_of(series.label("provider_id")));
        });
    }
    for (role, label, kind) in [
        ("karpenter_node_labels", "node_name", Kind::of_karpenter as fn(&Series) -> Kind),
        ("node_labels", "node", Kind::of_labels),
    ] {
        for series in told.series(role)? {
            let kind = kind(&series);
            entry(&mut all, series.label(label), &|node| lay_over(node, &kind));
        }
    }
    for series in told.series("node_created")? {
        let created = series.samples.iter().filter_map(|sample| frame.of_value(sample.value)).min();
        entry(&mut all, series.label("node"), &|node| node.registered = created);
    }
    for series in told.series("node_allocatable")? {
        // Exporters that end a series with a 0 say that the node is gone, not that it offered nothing.
        let mut offered = series.samples.iter().rev().map(|sample| sample.value);
        let Some(value) = offered.find(|value| value.is_finite() && *value > 0.0) else { continue };
        entry(&mut all, series.label("node"), &|node| match series.label("resource") {
            "cpu" => node.cpu_allocatable_milli = Some(libm::round(value * 1e3) as i64),
            _ => node.memory_allocatable_bytes = Some(libm::round(value) as i64),
        });
    }
    ends(told, frame, &mut all)?;
    let mut all: Vec<NodeLife> = all.into_values().collect();
    all.sort_by(|one, other| (one.registered, &one.node).cmp(&(other.registered, &other.node)));
    Ok(all)
}

/// A node that is not seen up to the end of the window is gone from the step after the last on which it was.
fn ends(told: &mut AnswerReader<'_>, frame: Frame, all: &mut BTreeMap<String, NodeLife>) -> Result<(), InputError> {
    let present = told.series("node_present")?;
    let step = told.asked("node_present").map_or(0, |asked| asked.step);
    let last = present.iter().filter_map(|series| series.samples.last()).map(|sample| sample.at).max();
    for series in &present {
        let (Some(node), Some(sample)) = (all.get_mut(series.label("node")), series.samples.last()) else { continue };
        if last.is_some_and(|last| sample.at < last) {
            node.terminated = Some(SimTime::from_micros(frame.at(sample).as_micros() + step * 1_000_000));
        }
    }
    Ok(())
}

fn lay_over(node: &mut NodeLife, kind: &Kind) {
    let Kind { instance_type, zone, capacity_type, origin_kind, origin, arch } = kind.clone();
    for (key, new) in [
        (&mut node.instance_type, instance_type),
        (&mut node.zone, zone),
        (&mut node.capacity_type, capacity_type),
        (&mut node.origin_kind, origin_kind),
        (&mut node.origin, origin),
        (&mut node.arch, arch),
    ] {
        if new.is_some() {
            *key = new;
        }
    }
}

/// The zone in `aws:///us-east-1a/i-0123`.
fn zone_of(provider_id: &str) -> Option<String> {
    let (zone, instance) = provider_id.strip_prefix("aws:///")?.split_once('/')?;
    (!zone.is_empty() && instance.starts_with("i-")).then(|| zone.to_owned())
}

/// Spot prices as Karpenter saw them.
///
/// # Errors
/// If an answer cannot be read.
pub(super) fn spot_prices(told: &mut AnswerReader<'_>, frame: Frame) -> Result<Vec<SpotPrice>, InputError> {
    let mut rows: Vec<SpotPrice> = told
        .first_series(&["spot_prices", "spot_prices_v0_29"])?
        .iter()
        .filter(|first_series| first_series.label("capacity_type") == "spot")
        .flat_map(|first_series| first_series.samples.iter().map(move |sample| (first_series, sample)))
        .filter(|(_, sample)| sample.value.is_finite() && sample.value > 0.0)
        .map(|(key, sample)| SpotPrice {
            at: frame.at(sample),
            instance_type: key.label("instance_type").to_owned(),
            zone: key.label("zone").to_owned(),
            per_hour: sample.value,
        })
        .collect();
    rows.sort_by(|one, other| {
        (one.at, &one.instance_type, &one.zone).cmp(&(other.at, &other.instance_type, &other.zone))
    });
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use nodecast_model::domain::SimTime;

    use super::steady;

    #[test]
    fn brief_node_count_mismatches_are_ignored() {
        let points = |counts: &[i64]| -> Vec<(SimTime, f64)> {
            let at = |minute: usize| SimTime::from_micros(minute as i64 * 60_000_000);
            counts.iter().enumerate().map(|(minute, count)| (at(minute), *count as f64)).collect()
        };
        let of = |counts: &[i64]| -> Vec<i64> { steady(&points(counts)).iter().map(|pair| pair.1 as i64).collect() };
        assert_eq!(of(&[2, 2, 3, 3, 2, 2, 2, 2, 2, 2]), [2; 10]);
        assert_eq!(of(&[2, 2, 1, 1, 2, 2, 2, 2, 2, 2]), [2; 10]);
        // What stays is counted from its first minute to its last.
        let stays = [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(of(&stays), stays);
    }
}

//! Raw scores of nodes and their normalisation to 0..100 over the nodes that passed the filters.

use super::SchedulerConfig;
use super::cluster_view::{ClusterView, Slot};
use super::node::NodeEntry;
use super::plugins::Plugin;
use super::resources::{self, MAX_NODE_SCORE};
use super::shape::PodShape;
use super::topology::NO_DOMAIN;
use super::topology_state::TopologyState;
use crate::domain::TaintEffect;

/// Scores that depend only on the pod, one node and which images the cluster's nodes hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct NodeScores {
    /// NodeResourcesFit, final.
    pub(super) fit: i64,
    /// NodeResourcesBalancedAllocation, final; zero if the plugin leaves the pod out.
    pub(super) balance: i64,
    /// ImageLocality, final.
    pub(super) images: i64,
    /// Soft taints that the pod does not tolerate.
    pub(super) soft_taints: i64,
    /// Weight of the preferred node affinity terms that match.
    pub(super) preferred_affinity: i64,
}

impl NodeScores {
    pub(super) fn new(config: &SchedulerConfig, view: &ClusterView, shape: &PodShape, entry: &NodeEntry) -> Self {
        Self {
            fit: resources::fit_score(&config.fit, shape, entry),
            balance: resources::balanced_score(config.version, shape, entry).unwrap_or(0),
            images: image_score(view, shape, entry),
            soft_taints: soft_taints(shape, entry),
            preferred_affinity: preferred_node_affinity(shape, entry),
        }
    }
}

/// Source: Kubernetes 1.36 `plugins/tainttoleration/taint_toleration.go`, `Score`.
fn soft_taints(shape: &PodShape, entry: &NodeEntry) -> i64 {
    let soft = entry.node.taints.iter().filter(|taint| taint.effect == TaintEffect::PreferNoSchedule);
    soft.filter(|taint| !shape.tolerates(taint)).count() as i64
}

/// Source: Kubernetes 1.36 `plugins/nodeaffinity/node_affinity.go`, `Score`.
fn preferred_node_affinity(shape: &PodShape, entry: &NodeEntry) -> i64 {
    let terms = &shape.spec.node_affinity.preferred;
    let matching = terms.iter().filter(|preferred| preferred.term.accepts(&entry.node.labels, &entry.node.name));
    matching.map(|preferred| preferred.weight).sum()
}

/// Larger images that more nodes hold count more; below 23 MiB nothing counts, above 1000 MiB per container all the same.
///
/// Source: Kubernetes 1.36 `plugins/imagelocality/image_locality.go`.
fn image_score(view: &ClusterView, shape: &PodShape, entry: &NodeEntry) -> i64 {
    if entry.node.images.is_empty() {
        return 0;
    }
    const MIB: i64 = 1 << 20;
    let nodes = view.node_count() as f64;
    let size = |image: &crate::domain::Symbol| {
        let held = entry.node.images.iter().find(|held| held.name == *image);
        held.map_or(0, |held| (held.size_bytes as f64 * (view.nodes_with_image(*image) as f64 / nodes)) as i64)
    };
    let sum: i64 = shape.images.iter().map(size).sum();
    let least = 23 * MIB;
    let most = (1_000 * MIB * shape.images.len() as i64).max(least + 1);
    MAX_NODE_SCORE * (sum.clamp(least, most) - least) / (most - least)
}

/// Raw scores become 0..100 in proportion to the largest; `reverse` gives the smallest the most.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/helper/normalize_score.go`.
pub(super) fn in_proportion(raw: i64, largest: i64, reverse: bool) -> i64 {
    match (largest, reverse) {
        (0, true) => MAX_NODE_SCORE,
        (0, false) => raw,
        (_, true) => MAX_NODE_SCORE - MAX_NODE_SCORE * raw / largest,
        (_, false) => MAX_NODE_SCORE * raw / largest,
    }
}

/// InterPodAffinity's normalisation; the quotient is taken in floating point and then cut, as upstream does.
///
/// Source: Kubernetes 1.36 `plugins/interpodaffinity/scoring.go`, `NormalizeScore`.
pub(super) fn between(raw: i64, smallest: i64, largest: i64) -> i64 {
    if largest <= smallest {
        return 0;
    }
    (MAX_NODE_SCORE as f64 * ((raw - smallest) as f64 / (largest - smallest) as f64)) as i64
}

/// A candidate node: where it is and what it looks like.
pub(super) type Candidate<'a> = (Slot, &'a NodeEntry);

/// Raw scores of PodTopologySpread, `None` for nodes that lack a key of an explicit constraint.
///
/// Source: Kubernetes 1.36 `plugins/podtopologyspread/scoring.go`, `initPreScoreState` and `Score`.
pub(super) fn spread_raw(
    view: &ClusterView,
    shape: &PodShape,
    state: &TopologyState,
    feasible: &[Slot],
    raw: &mut Vec<Option<i64>>,
) {
    raw.clear();
    let scored = |slot: Slot| {
        shape.soft_spread_is_default
            || shape.soft_spread.iter().all(|constraint| view.domain(constraint.key, slot) != NO_DOMAIN)
    };
    let mut weights = Vec::with_capacity(shape.soft_spread.len());
    let mut seen: Vec<bool> = Vec::new();
    for constraint in &shape.soft_spread {
        let mut size = 0_u32;
        seen.clear();
        for &slot in feasible.iter().filter(|slot| scored(**slot)) {
            if constraint.is_hostname {
                size += 1;
                continue;
            }
            // Lacking the label is a value of its own.
            let at = view.domain(constraint.key, slot).wrapping_add(1) as usize;
            if at >= seen.len() {
                seen.resize(at + 1, false);
            }
            size += u32::from(!seen[at]);
            seen[at] = true;
        }
        weights.push(libm::log(f64::from(size) + 2.0));
    }
    raw.extend(feasible.iter().map(|&slot| {
        scored(slot).then(|| {
            let mut score = 0.0;
            for (index, constraint) in shape.soft_spread.iter().enumerate() {
                let domain = view.domain(constraint.key, slot);
                if domain != NO_DOMAIN {
                    let count = state.soft_count(index, if constraint.is_hostname { slot } else { domain });
                    score += count as f64 * weights[index] + (constraint.max_skew - 1) as f64;
                }
            }
            libm::round(score) as i64
        })
    }));
}

/// Source: Kubernetes 1.36 `plugins/podtopologyspread/scoring.go`, `NormalizeScore`.
pub(super) fn spread_normalised(raw: Option<i64>, smallest: i64, largest: i64) -> i64 {
    match raw {
        None => 0,
        Some(_) if largest == 0 => MAX_NODE_SCORE,
        Some(raw) => MAX_NODE_SCORE * (largest + smallest - raw) / largest,
    }
}

/// The normalised scores of every candidate, by plugin; plugins that leave the pod out are absent.
pub(super) fn normalised(
    config: &SchedulerConfig,
    view: &ClusterView,
    shape: &PodShape,
    state: &TopologyState,
    candidates: &[Candidate<'_>],
) -> Vec<(Plugin, Vec<i64>)> {
    let raw: Vec<NodeScores> =
        candidates.iter().map(|(_, entry)| NodeScores::new(config, view, shape, entry)).collect();
    let proportional = |select: fn(&NodeScores) -> i64, reverse: bool| -> Vec<i64> {
        let largest = raw.iter().map(select).max().unwrap_or(0);
        raw.iter().map(|scores| in_proportion(select(scores), largest, reverse)).collect()
    };
    let mut all = vec![(Plugin::TaintToleration, proportional(|scores| scores.soft_taints, true))];
    if !shape.spec.node_affinity.preferred.is_empty() {
        all.push((Plugin::NodeAffinity, proportional(|scores| scores.preferred_affinity, false)));
    }
    all.push((Plugin::NodeResourcesFit, raw.iter().map(|scores| scores.fit).collect()));
    if !shape.soft_spread.is_empty() {
        let slots: Vec<Slot> = candidates.iter().map(|(slot, _)| *slot).collect();
        let mut raw = Vec::new();
        spread_raw(view, shape, state, &slots, &mut raw);
        let (smallest, largest) = range(raw.iter().flatten().copied());
        all.push((
            Plugin::PodTopologySpread,
            raw.iter().map(|&raw| spread_normalised(raw, smallest, largest)).collect(),
        ));
    }
    if state.scores_affinity() {
        let raw: Vec<i64> = candidates.iter().map(|(slot, _)| state.affinity_score(view, *slot)).collect();
        let (smallest, largest) = range(raw.iter().copied());
        all.push((Plugin::InterPodAffinity, raw.iter().map(|&raw| between(raw, smallest, largest)).collect()));
    }
    let first = candidates.first().map(|(_, entry)| *entry);
    if first.is_some_and(|entry| resources::balanced_score(config.version, shape, entry).is_some()) {
        all.push((Plugin::NodeResourcesBalancedAllocation, raw.iter().map(|scores| scores.balance).collect()));
    }
    all.push((Plugin::ImageLocality, raw.iter().map(|scores| scores.images).collect()));
    all
}

/// The smallest and largest of `values`, zero for none.
pub(super) fn range(values: impl Iterator<Item = i64> + Clone) -> (i64, i64) {
    (values.clone().min().unwrap_or(0), values.max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{between, in_proportion, spread_normalised};

    #[test]
    fn normalisation_agrees_with_values_computed_by_hand() {
        assert_eq!([0, 1, 2].map(|raw| in_proportion(raw, 2, true)), [100, 50, 0]);
        assert_eq!([0, 30, 80].map(|raw| in_proportion(raw, 80, false)), [0, 37, 100]);
        assert_eq!([-10, 0, 30].map(|raw| between(raw, -10, 30)), [0, 25, 100]);
        assert_eq!([5, 2, 0].map(|raw| spread_normalised(Some(raw), 0, 5)), [0, 60, 100]);
        assert_eq!(in_proportion(0, 0, true), 100);
        assert_eq!(spread_normalised(Some(0), 0, 0), 100);
        assert_eq!(spread_normalised(None, 0, 5), 0);
    }
}

//! Raw scores of nodes and their normalisation to 0..100 over the nodes that passed the filters.

use super::SchedulerConfig;
use super::cluster_view::{ClusterView, Slot};
use super::node::NodeEntry;
use super::plugins::Plugin;
use super::resources::{self, MAX_NODE_SCORE};
use super::shape::PodShape;
use super::topology::NO_DOMAIN;
use super::topology_state::TopologyState;
use nodecast_model::domain::TaintEffect;

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
    let size = |image: &nodecast_model::domain::Symbol| {
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

/// Stands for the raw spread score of a node that lacks a key of an explicit constraint.
pub(super) const NOT_SPREAD: i64 = i64::MIN;

/// One soft constraint, with what is needed to score many nodes.
struct SpreadTerm<'a> {
    /// The domain of each slot.
    domains: &'a [u32],
    /// Pods counted, by domain or (for the hostname) by slot.
    counts: &'a [i64],
    is_hostname: bool,
    weight: f64,
    /// What is added whatever the count.
    base: f64,
}

impl SpreadTerm<'_> {
    fn domain(&self, slot: Slot) -> u32 {
        self.domains.get(slot as usize).copied().unwrap_or(NO_DOMAIN)
    }
}

/// Raw scores of PodTopologySpread for the feasible nodes, [`NOT_SPREAD`] for those that lack a key of an explicit
/// constraint.
///
/// Source: Kubernetes 1.36 `plugins/podtopologyspread/scoring.go`, `initPreScoreState` and `Score`.
pub(super) fn spread_raw(
    view: &ClusterView,
    shape: &PodShape,
    state: &TopologyState,
    feasible: &[Slot],
    raw: &mut Vec<i64>,
) {
    let mut terms: Vec<SpreadTerm<'_>> = Vec::with_capacity(shape.soft_spread.len());
    for (index, constraint) in shape.soft_spread.iter().enumerate() {
        terms.push(SpreadTerm {
            domains: view.domains(constraint.key),
            counts: state.soft_counts(index),
            is_hostname: constraint.is_hostname,
            weight: 0.0,
            base: (constraint.max_skew - 1) as f64,
        });
    }
    let all_count = shape.soft_spread_is_default;
    let scored =
        |terms: &[SpreadTerm<'_>], slot: Slot| all_count || terms.iter().all(|term| term.domain(slot) != NO_DOMAIN);
    let hosts = feasible.iter().filter(|&&slot| scored(&terms, slot)).count();
    for at in 0..terms.len() {
        let size = if terms[at].is_hostname {
            hosts
        } else {
            different_domains(&terms[at], feasible.iter().copied().filter(|&slot| scored(&terms, slot)))
        };
        terms[at].weight = libm::log(size as f64 + 2.0);
    }
    raw.clear();
    raw.extend(feasible.iter().map(|&slot| {
        let mut score = 0.0;
        for term in &terms {
            let domain = term.domain(slot);
            if domain != NO_DOMAIN {
                let at = if term.is_hostname { slot } else { domain };
                let count = term.counts.get(at as usize).copied().unwrap_or(0);
                score += count as f64 * term.weight + term.base;
            } else if !all_count {
                return NOT_SPREAD;
            }
        }
        rounded(score)
    }));
}

/// How many different domains the nodes are in. Lacking the label is a value of its own.
fn different_domains(term: &SpreadTerm<'_>, slots: impl Iterator<Item = Slot>) -> usize {
    let mut seen: Vec<bool> = Vec::new();
    let mut different = 0;
    for slot in slots {
        let at = term.domain(slot).wrapping_add(1) as usize;
        if at >= seen.len() {
            seen.resize(at + 1, false);
        }
        different += usize::from(!std::mem::replace(&mut seen[at], true));
    }
    different
}

/// The nearest whole number, halves away from zero.
fn rounded(score: f64) -> i64 {
    if score < 0.0 {
        return libm::round(score) as i64;
    }
    let whole = score as i64;
    whole + i64::from(score - whole as f64 >= 0.5)
}

/// Source: Kubernetes 1.36 `plugins/podtopologyspread/scoring.go`, `NormalizeScore`.
pub(super) fn spread_normalised(raw: i64, smallest: i64, largest: i64) -> i64 {
    match raw {
        NOT_SPREAD => 0,
        _ if largest == 0 => MAX_NODE_SCORE,
        raw => MAX_NODE_SCORE * (largest + smallest - raw) / largest,
    }
}

/// The smallest and largest raw spread score of the nodes that have one.
pub(super) fn spread_range(raw: &[i64]) -> (i64, i64) {
    range(raw.iter().copied().filter(|&raw| raw != NOT_SPREAD))
}

/// Adds `weight` times the normalised scores to the totals. There are few different raw scores, so each is normalised
/// once: `known` is a table to use again.
pub(super) fn add_weighted(
    totals: &mut [i64],
    raw: &[i64],
    (smallest, largest): (i64, i64),
    known: &mut Vec<i64>,
    weight: i64,
    normalise: impl Fn(i64) -> i64,
) {
    const UNKNOWN: i64 = i64::MIN;
    known.clear();
    if let Some(width) = largest.checked_sub(smallest).and_then(|width| usize::try_from(width).ok())
        && width < raw.len()
    {
        known.resize(width + 1, UNKNOWN);
    }
    for (total, &raw) in totals.iter_mut().zip(raw) {
        // Raw scores outside the range (nodes that are not scored) fall outside the table.
        match known.get_mut(raw.wrapping_sub(smallest) as usize) {
            Some(entry) => {
                if *entry == UNKNOWN {
                    *entry = weight * normalise(raw);
                }
                *total += *entry;
            }
            None => *total += weight * normalise(raw),
        }
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
    let slots: Vec<Slot> = candidates.iter().map(|(slot, _)| *slot).collect();
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
        let mut raw = Vec::new();
        spread_raw(view, shape, state, &slots, &mut raw);
        let (smallest, largest) = spread_range(&raw);
        all.push((
            Plugin::PodTopologySpread,
            raw.iter().map(|&raw| spread_normalised(raw, smallest, largest)).collect(),
        ));
    }
    if state.scores_affinity() {
        let mut raw = Vec::new();
        state.affinity_scores(view, &slots, &mut raw);
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
    use super::{NOT_SPREAD, add_weighted, between, in_proportion, rounded, spread_normalised};

    #[test]
    fn normalisation_agrees_with_values_computed_by_hand() {
        assert_eq!([0, 1, 2].map(|raw| in_proportion(raw, 2, true)), [100, 50, 0]);
        assert_eq!([0, 30, 80].map(|raw| in_proportion(raw, 80, false)), [0, 37, 100]);
        assert_eq!([-10, 0, 30].map(|raw| between(raw, -10, 30)), [0, 25, 100]);
        assert_eq!([5, 2, 0].map(|raw| spread_normalised(raw, 0, 5)), [0, 60, 100]);
        assert_eq!(in_proportion(0, 0, true), 100);
        assert_eq!(spread_normalised(0, 0, 0), 100);
        assert_eq!(spread_normalised(NOT_SPREAD, 0, 5), 0);
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        assert_eq!([0.5, 1.4, 2.5, -2.5, 0.499_999_999_999_999_94].map(rounded), [1, 1, 3, -3, 0]);
    }

    #[test]
    fn table_scores_equal_individual_scores() {
        let raw = [3, 5, NOT_SPREAD, 3, 4, 900];
        for range in [(3, 5), (3, 900)] {
            let mut totals = [0; 6];
            let normalise = |raw: i64| if raw == NOT_SPREAD { 0 } else { raw * 7 };
            add_weighted(&mut totals, &raw, range, &mut Vec::new(), 2, normalise);
            assert_eq!(totals, [42, 70, 0, 42, 56, 12_600]);
        }
    }
}

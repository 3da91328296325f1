//! Which of several groups grows: filters in a row, and a draw among what they leave.
//!
//! Source: Cluster Autoscaler 1.36 `expander/`.
//!
//! Deviation: the expander `grpc` calls an external program and is not available.

use std::fmt;
use std::str::FromStr;

use super::view::NodeTemplate;
use nodecast_model::domain::{GroupRanks, ResourceName, Resources, Symbol};

/// What a group would do for the pods.
#[derive(Clone, PartialEq, Debug)]
pub struct ExpansionOption {
    /// The group.
    pub group: usize,
    /// Nodes that it would grow by.
    pub nodes: usize,
    /// Pods that would find room, as places in the list of pods considered.
    pub pods: Vec<usize>,
    /// Groups that would share the growth.
    pub similar: Vec<usize>,
    /// What these pods ask for together.
    pub requested: Resources,
}

/// One filter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Expander {
    /// No preference.
    Random,
    /// Most pods helped.
    MostPods,
    /// Fewest nodes.
    LeastNodes,
    /// Least CPU and memory left over.
    LeastWaste,
    /// Lowest price for what the pods are worth; needs prices, which the AWS provider has not.
    Price,
    /// By rank of the name of the Auto Scaling group.
    Priority,
}

impl Expander {
    const ALL: [(&'static str, Self); 6] = [
        ("random", Self::Random),
        ("most-pods", Self::MostPods),
        ("least-nodes", Self::LeastNodes),
        ("least-waste", Self::LeastWaste),
        ("price", Self::Price),
        ("priority", Self::Priority),
    ];
}

impl fmt::Display for Expander {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|entry| entry.1 == *self).map_or("random", |entry| entry.0);
        f.write_str(name)
    }
}

/// Filters in the order in which they are applied.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExpanderChain(Vec<Expander>);

impl Default for ExpanderChain {
    fn default() -> Self {
        Self(vec![Expander::LeastWaste])
    }
}

impl ExpanderChain {
    /// A chain of one filter.
    pub fn single(expander: Expander) -> Self {
        Self(vec![expander])
    }

    /// The filters.
    pub fn filters(&self) -> &[Expander] {
        &self.0
    }
}

impl FromStr for ExpanderChain {
    type Err = String;

    /// Reads `least-nodes,least-waste`. Each filter may stand once, `random` only at the end.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut chain = Vec::new();
        for name in text.split(',') {
            let Some(&(_, expander)) = Expander::ALL.iter().find(|entry| entry.0 == name) else {
                let known: Vec<&str> = Expander::ALL.iter().map(|entry| entry.0).collect();
                return Err(format!("there is no expander `{name}`; there are {}", known.join(", ")));
            };
            if chain.contains(&expander) {
                return Err(format!("the expander `{name}` is given twice"));
            }
            if chain.last() == Some(&Expander::Random) {
                return Err(format!("`random` leaves one group, so `{name}` after it would have no choice"));
            }
            chain.push(expander);
        }
        Ok(Self(chain))
    }
}

/// What pods are worth, for the expander `price`, per hour.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PodPrice {
    /// Of one CPU.
    pub per_cpu: f64,
    /// Of one GiB of memory.
    pub per_gib: f64,
    /// Of one GPU.
    pub per_gpu: f64,
}

impl PodPrice {
    /// The price of what `requests` name.
    pub fn price(&self, requests: &Resources) -> f64 {
        let gib = (1_i64 << 30) as f64;
        self.per_cpu * requests.cpu_milli() as f64 / 1_000.0
            + self.per_gib * requests.memory_bytes() as f64 / gib
            + self.per_gpu * requests.get(ResourceName::NVIDIA_GPU) as f64
    }
}

/// What the filters know of a group.
#[derive(Clone, Copy, Debug)]
pub struct GroupFacts<'a> {
    /// What its Auto Scaling group is called, which is what `priority` ranks.
    pub auto_scaling_group: Symbol,
    /// Its template.
    pub template: &'a NodeTemplate,
    /// A node's price per hour.
    pub price_per_hour: Option<f64>,
    /// Whether it exists.
    pub exists: bool,
    /// Whether its nodes have GPUs.
    pub has_gpu: bool,
}

/// What the filters know besides.
#[derive(Clone, Copy, Debug)]
pub struct ExpanderContext<'a> {
    /// Ranks for `priority`; `None` if the ConfigMap is missing or unreadable.
    pub ranks: Option<&'a GroupRanks>,
    /// Prices of pods for `price`.
    pub pod_price: Option<PodPrice>,
    /// Nodes of the cluster, by which `price` judges what size of node is right.
    pub cluster_nodes: usize,
}

/// What one filter of a chain made of the options that were left to it.
#[derive(Clone, PartialEq, Debug)]
pub struct Round {
    /// The filter.
    pub filter: Expander,
    /// The options that it was given, as places in the list, each with the figure that it goes by: pods, nodes, waste (0 is none, 2
    /// all of CPU and memory), a score of prices, a rank. `None` where it has none.
    pub figures: Vec<(usize, Option<f64>)>,
    /// Those that it left.
    pub left: Vec<usize>,
}

/// What each filter of the chain makes of the options, up to the one that leaves a single option. `facts` holds what is known of
/// each option's group, in the same order.
///
/// Source: Cluster Autoscaler 1.36 `expander/factory/chain.go`.
pub fn rounds(
    chain: &ExpanderChain,
    options: &[ExpansionOption],
    facts: &[GroupFacts<'_>],
    context: &ExpanderContext<'_>,
) -> Vec<Round> {
    let mut rounds: Vec<Round> = Vec::with_capacity(chain.0.len());
    for &filter in &chain.0 {
        let figure = |at: usize| match filter {
            Expander::Random => None,
            Expander::MostPods => Some(options[at].pods.len() as f64),
            Expander::LeastNodes => (options[at].nodes > 0).then_some(options[at].nodes as f64),
            Expander::LeastWaste => waste(&options[at], facts[at].template),
            Expander::Price => price_score(&options[at], &facts[at], context),
            Expander::Priority => context.ranks?.rank(facts[at].auto_scaling_group.as_str()).map(|rank| rank as f64),
        };
        let given = rounds.last().map_or_else(|| (0..options.len()).collect(), |round| round.left.clone());
        let figures: Vec<(usize, Option<f64>)> = given.iter().map(|&at| (at, figure(at))).collect();
        let left = match filter {
            Expander::Random => given,
            Expander::MostPods => best_by(&figures, |figure| -figure),
            Expander::LeastNodes | Expander::LeastWaste | Expander::Price => best_by(&figures, |figure| figure),
            // Without a rank for any of them all stay.
            Expander::Priority if figures.iter().all(|(_, rank)| rank.is_none()) => given,
            Expander::Priority => best_by(&figures, |figure| -figure),
        };
        let decided = left.len() == 1;
        rounds.push(Round { filter, figures, left });
        if decided {
            break;
        }
    }
    rounds
}

/// The options that the chain leaves, as places in `options`: one, or several that a draw decides among, or none.
pub fn remaining(
    chain: &ExpanderChain,
    options: &[ExpansionOption],
    facts: &[GroupFacts<'_>],
    context: &ExpanderContext<'_>,
) -> Vec<usize> {
    rounds(chain, options, facts, context).pop().map_or_else(|| (0..options.len()).collect(), |last| last.left)
}

/// Those whose figure comes to the smallest; without a figure an option is out.
fn best_by(figures: &[(usize, Option<f64>)], weight: impl Fn(f64) -> f64) -> Vec<usize> {
    let mut best = f64::INFINITY;
    let mut kept = Vec::new();
    for &(at, figure) in figures {
        let Some(figure) = figure.map(&weight) else { continue };
        match figure.total_cmp(&best) {
            std::cmp::Ordering::Less => (best, kept) = (figure, vec![at]),
            std::cmp::Ordering::Equal => kept.push(at),
            std::cmp::Ordering::Greater => {}
        }
    }
    kept
}

/// The share of CPU left over plus that of memory, of the nodes' capacity. DaemonSets do not count as used.
///
/// Source: Cluster Autoscaler 1.36 `expander/waste/waste.go`.
fn waste(option: &ExpansionOption, template: &NodeTemplate) -> Option<f64> {
    let left = |name: ResourceName| {
        let available = template.capacity.get(name) * option.nodes as i64;
        (available - option.requested.get(name)) as f64 / available as f64
    };
    let waste = left(ResourceName::CPU) + left(ResourceName::MEMORY);
    (!waste.is_nan()).then_some(waste)
}

/// What a small pod asks for that is added on both sides, so that a few tiny pods do not decide.
const STABILIZATION: (i64, i64) = (500, 500 << 20);
/// Nodes up to which the preferred node has so many CPUs.
const PREFERRED_CPU: [(usize, i64); 5] = [(2, 1), (6, 2), (20, 4), (60, 8), (200, 16)];

/// The CPUs that a node of a cluster of this size had best have.
///
/// Source: Cluster Autoscaler 1.36 `expander/price/preferred.go`.
pub fn preferred_cpu(cluster_nodes: usize) -> i64 {
    PREFERRED_CPU.iter().find(|(most, _)| cluster_nodes <= *most).map_or(32, |(_, cpu)| *cpu)
}

/// Lower is better; `None` without a price.
///
/// Source: Cluster Autoscaler 1.36 `expander/price/price.go`.
fn price_score(option: &ExpansionOption, facts: &GroupFacts<'_>, context: &ExpanderContext<'_>) -> Option<f64> {
    let pods = context.pod_price?;
    let nodes = facts.price_per_hour? * option.nodes as f64;
    let stabilization = pods.price(&Resources::cpu_memory(STABILIZATION.0, STABILIZATION.1));
    let worth = (nodes + stabilization) / (pods.price(&option.requested) + stabilization);
    let preferred = preferred_cpu(context.cluster_nodes) as f64 * 1_000.0;
    let cpu_milli = facts.template.capacity.cpu_milli() as f64;
    let unfitness = (preferred / cpu_milli).max(cpu_milli / preferred);
    let suppressed = if facts.has_gpu {
        1_000.0
    } else {
        (unfitness - 1.0) * (1.0 - libm::tanh((option.nodes as f64 - 1.0) / 15.0)) + 1.0
    };
    let score = suppressed * worth;
    Some(if facts.exists { score } else { score * 2.0 })
}

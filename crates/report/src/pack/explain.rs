//! Why one pod goes where it goes.

use std::fmt::Write as _;

use serde::Serialize;

use super::Amounts;
use crate::format::counted;
use crate::single_pass::{PodOutcome, SinglePass};
use nodecast_karpenter::packing::{PoolVerdict, Refusal, TypeGroup, Unschedulable};

/// What became of one pod, and what each NodePool says to it.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct PodExplanation {
    /// The pod, `namespace/name`.
    pub pod: String,
    /// What it requests.
    pub requests: Amounts,
    /// `new node`, `existing node` or `pending`.
    pub outcome: &'static str,
    /// The NodePool of the new node, the existing node, or why it stays pending.
    pub detail: String,
    /// The existing nodes that were asked, in that order; those after the first that takes the pod were not.
    pub existing_nodes: Vec<NodeExplanation>,
    /// The NodePools, in the order in which they are tried.
    pub node_pools: Vec<PoolExplanation>,
}

/// What an existing node says to a pod.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct NodeExplanation {
    /// The node.
    pub node: String,
    /// Whether it takes the pod.
    pub usable: bool,
    /// If not, why.
    pub reason: Option<String>,
    /// What it has too little of, where that is the reason.
    pub short: Option<ShortOf>,
}

/// What a NodePool says to a pod.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct PoolExplanation {
    /// The NodePool.
    pub node_pool: &'static str,
    /// Whether it could open a node for the pod.
    pub usable: bool,
    /// If not, why.
    pub reason: Option<String>,
    /// What pod and daemons would request together, where it came to that.
    pub requests: Option<Amounts>,
    /// Instance types that would do.
    pub types_usable: usize,
    /// The cheapest of them.
    pub cheapest: Option<&'static str>,
    /// Instance types that would not do, by reason.
    pub types_refused: Vec<RefusedTypes>,
}

/// Instance types with one thing against them.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct RefusedTypes {
    /// What.
    pub reason: String,
    /// How many types.
    pub types: usize,
    /// The one that comes nearest, or of equally near ones the cheapest.
    pub nearest: &'static str,
    /// What that one lacks, where a resource is short.
    pub short: Option<ShortOf>,
}

/// A resource that falls short.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct ShortOf {
    /// The resource.
    pub resource: &'static str,
    /// What is asked for, in the resource's own notation.
    pub requested: String,
    /// What the node offers; of an existing node, what is left.
    pub allocatable: String,
    /// What is missing.
    pub missing: String,
}

/// The reasons of an unschedulable pod, a NodePool each.
pub(super) fn lines(reason: &Unschedulable) -> Vec<String> {
    match reason {
        Unschedulable::Refused(refusals) if !refusals.is_empty() => {
            refusals.iter().map(|refusal| format!("{}: {}", refusal.node_pool, refusal.reason)).collect()
        }
        other => vec![other.to_string()],
    }
}

impl PodExplanation {
    /// Explains the pod at `pod` of the question.
    pub fn new(pass: &SinglePass<'_>, pod: usize) -> Self {
        let explained = pass.explain(pod);
        let pod = &pass.question.pods[pod];
        let (outcome, detail) = match &explained.outcome {
            PodOutcome::NewNode(claim) => ("new node", pass.plan.claims[*claim].node_pool.as_str().to_owned()),
            PodOutcome::ExistingNode(node) => ("existing node", pass.question.nodes[*node].node.name.clone()),
            PodOutcome::Pending(reason) => ("pending", reason.clone()),
        };
        Self {
            pod: pod.full_name(),
            requests: Amounts::from(&pod.spec.requests()),
            outcome,
            detail,
            existing_nodes: explained.nodes.iter().map(|(node, why)| existing(pass, *node, why.as_ref())).collect(),
            node_pools: explained.pools.iter().map(PoolExplanation::from_verdict).collect(),
        }
    }

    /// The explanation for people.
    pub(super) fn write(&self, text: &mut String) {
        let _ = match self.outcome {
            "pending" => writeln!(text, "{} stays pending", self.pod),
            "existing node" => writeln!(text, "{} goes on the existing node {}", self.pod, self.detail),
            _ => writeln!(text, "{} goes on a new node of {}", self.pod, self.detail),
        };
        self.write_nodes(text);
        for pool in &self.node_pools {
            pool.write(text);
        }
    }
}

impl PoolExplanation {
    /// The verdict in figures.
    pub fn from_verdict(verdict: &PoolVerdict) -> Self {
        Self {
            node_pool: verdict.node_pool.as_str(),
            usable: verdict.refusal.is_none(),
            reason: verdict.refusal.clone(),
            requests: verdict.requests.as_ref().map(Amounts::from),
            types_usable: verdict.usable.len(),
            cheapest: verdict.usable.first().map(|name| name.as_str()),
            types_refused: verdict.refused.iter().map(refused).collect(),
        }
    }

    /// The verdict for people.
    pub fn write(&self, text: &mut String) {
        let name = self.node_pool;
        let _ = match (&self.reason, self.cheapest) {
            (Some(reason), _) => writeln!(text, "  {name}: not usable: {reason}"),
            (None, cheapest) => {
                let types = counted(self.types_usable as u64, "type", "types");
                let cheapest = cheapest.map_or_else(String::new, |name| format!(", cheapest {name}"));
                writeln!(text, "  {name}: usable, {types} fit{cheapest}")
            }
        };
        for group in &self.types_refused {
            let types = counted(group.types as u64, "type", "types");
            let _ = write!(text, "    {types}: {}", group.reason);
            let _ = match &group.short {
                Some(short) => writeln!(
                    text,
                    "; closest is {}, with {} of {} ({} short)",
                    group.nearest, short.allocatable, short.requested, short.missing
                ),
                None => writeln!(text, " ({})", example(group)),
            };
        }
    }
}

impl PodExplanation {
    /// The existing nodes, those with one thing against them together.
    fn write_nodes(&self, text: &mut String) {
        if self.existing_nodes.is_empty() {
            return;
        }
        let nodes = |count: usize| counted(count as u64, "node", "nodes");
        let asked = nodes(self.existing_nodes.len());
        let _ = match self.existing_nodes.iter().find(|existing_node| existing_node.usable) {
            Some(taker) => writeln!(text, "  existing nodes: {asked} checked, {} fits it", taker.node),
            None => writeln!(text, "  existing nodes: {asked} checked, none fits"),
        };
        let mut groups: Vec<(String, Vec<&NodeExplanation>)> = Vec::new();
        for existing_node in self.existing_nodes.iter().filter(|existing_node| !existing_node.usable) {
            let reason = match &existing_node.short {
                Some(short) => format!("not enough {}", short.resource),
                None => existing_node.reason.clone().unwrap_or_default(),
            };
            match groups.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, members)) => members.push(existing_node),
                None => groups.push((reason, vec![existing_node])),
            }
        }
        for (reason, members) in groups {
            let first = members[0];
            let count = nodes(members.len());
            let _ = match &first.short {
                Some(short) => writeln!(
                    text,
                    "    {count}: {reason}; {} has {} left of {} requested",
                    first.node, short.allocatable, short.requested
                ),
                None if members.len() == 1 => writeln!(text, "    {count}: {reason} ({})", first.node),
                None => writeln!(text, "    {count}: {reason} (such as {})", first.node),
            };
        }
    }
}

fn existing(pass: &SinglePass<'_>, node: usize, refusal: Option<&Refusal>) -> NodeExplanation {
    let short = match refusal {
        Some(&Refusal::Resources { resource, requested, left }) => Some(ShortOf {
            resource: resource.0.as_str(),
            requested: resource.format(requested),
            allocatable: resource.format(left),
            missing: resource.format(requested - left),
        }),
        _ => None,
    };
    NodeExplanation {
        node: pass.question.nodes[node].node.name.clone(),
        usable: refusal.is_none(),
        reason: refusal.map(ToString::to_string),
        short,
    }
}

fn example(group: &RefusedTypes) -> String {
    if group.types == 1 { group.nearest.to_owned() } else { format!("such as {}", group.nearest) }
}

fn refused(group: &TypeGroup) -> RefusedTypes {
    RefusedTypes {
        reason: group.reason.clone(),
        types: group.types,
        nearest: group.nearest.as_str(),
        short: group.short.map(|(resource, requested, allocatable)| ShortOf {
            resource: resource.0.as_str(),
            requested: resource.format(requested),
            allocatable: resource.format(allocatable),
            missing: resource.format(requested - allocatable),
        }),
    }
}

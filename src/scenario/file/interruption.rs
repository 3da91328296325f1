//! `karpenter` and `node_termination_handler`: who acts on what EC2 says of an instance; Karpenter's feature gates.

use super::super::error::{listed, nearest};
use super::super::manifests::Manifests;
use super::super::reader::{Fields, Reader};
use super::super::tree::{Location, Node};
use super::ScenarioError;
use super::timeline::object_name;
use crate::domain::{FeatureGates, RebalanceReaction, TerminationHandler};
use crate::scenario::schema::policies::{GATES, HANDLER, KARPENTER};

const REBALANCE: &[(&str, RebalanceReaction)] = &[
    ("ignore", RebalanceReaction::Ignore),
    ("cordon", RebalanceReaction::Cordon),
    ("drain", RebalanceReaction::Drain),
];

/// Who acts on interruptions, as stated for all policies or for one.
#[derive(Clone, Copy)]
pub(super) struct Handling {
    /// Whether Karpenter has an interruption queue.
    pub(super) queue: bool,
    /// Karpenter's feature gates.
    pub(super) gates: FeatureGates,
    /// The termination handler, with the place that names its DaemonSet.
    handler: Option<(TerminationHandler, Location)>,
}

impl Default for Handling {
    fn default() -> Self {
        Self { queue: true, gates: FeatureGates::default(), handler: None }
    }
}

impl Handling {
    /// What is stated, over what holds otherwise.
    pub(super) fn read<'s>(
        reader: &mut Reader<'s>,
        fields: Fields<'_, 's>,
        otherwise: Self,
    ) -> Result<Self, ScenarioError> {
        let mut handling = otherwise;
        if let Some(node) = fields.get("karpenter") {
            let karpenter = reader.fields(node, &KARPENTER.shape)?;
            let queue = karpenter.optional("interruption_queue", |n, what| reader.truth(n, what))?;
            handling.queue = queue.unwrap_or(otherwise.queue);
            if let Some(node) = karpenter.get("feature_gates") {
                handling.gates = gates(reader, node, otherwise.gates)?;
            }
        }
        if let Some(node) = fields.get("node_termination_handler") {
            handling.handler = Some(handler(reader, node)?);
        }
        Ok(handling)
    }

    /// The termination handler of a policy with these manifests.
    ///
    /// # Errors
    /// If its DaemonSet is not among them.
    pub(super) fn handler_in(
        self,
        reader: &Reader<'_>,
        manifests: &Manifests,
    ) -> Result<Option<TerminationHandler>, ScenarioError> {
        let Some((handler, at)) = self.handler else { return Ok(None) };
        if manifests.daemon_sets.iter().any(|set| set.name == handler.daemon_set) {
            return Ok(Some(handler));
        }
        let name = handler.daemon_set.to_string();
        let names: Vec<String> = manifests.daemon_sets.iter().map(|set| set.name.to_string()).collect();
        let known = || names.iter().map(String::as_str);
        let help = match nearest(&name, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => {
                "add the handler's DaemonSet to the manifests: `helm template` prints it".to_owned()
            }
            None => format!("the manifests hold {}", listed(known().take(10))),
        };
        Err(reader.error(at, format!("no DaemonSet is called `{name}`")).because("would handle nothing").help(help))
    }
}

fn gates<'s>(reader: &mut Reader<'s>, node: &Node<'s>, otherwise: FeatureGates) -> Result<FeatureGates, ScenarioError> {
    let fields = reader.fields(node, &GATES.shape)?;
    let gate = |key, off| Ok(fields.optional(key, |n, what| reader.truth(n, what))?.unwrap_or(off));
    Ok(FeatureGates {
        spot_to_spot: gate("spot_to_spot_consolidation", otherwise.spot_to_spot)?,
        node_repair: gate("node_repair", otherwise.node_repair)?,
        static_capacity: gate("static_capacity", otherwise.static_capacity)?,
    })
}

fn handler<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<(TerminationHandler, Location), ScenarioError> {
    let fields = reader.fields(node, &HANDLER.shape)?;
    let name = fields.required(reader, "daemon_set")?;
    let rebalance = fields.optional("rebalance", |n, what| reader.choice(n, what, REBALANCE))?.unwrap_or_default();
    Ok((TerminationHandler { daemon_set: object_name(reader, name)?, rebalance }, name.at))
}

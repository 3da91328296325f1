//! Which pods a pass takes on at all.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/provisioner.go` (`Validate`).

use std::fmt;

use super::templates::strict_requirements;
use crate::instance_types::is_stated;
use crate::release::Behaviour;
use nodecast_model::domain::labels::{is_restricted, normalized_key};
use nodecast_model::domain::requirements::Operator;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{KarpenterVersion, PodSpec, Symbol};

/// Why a pod is left out of every pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeftOut {
    /// The pod says that it must not run on a node of Karpenter's. Nothing is reported.
    NotForKarpenter,
    /// A required term selects nodes by field.
    MatchFields,
    /// A label that pods may not ask for, or that came with a later release.
    RestrictedLabel(Symbol),
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotForKarpenter => f.write_str("the pod excludes nodes of every pool"),
            Self::MatchFields => f.write_str("node selector terms with matchFields are not supported"),
            Self::RestrictedLabel(key) => write!(f, "label {key} is restricted"),
        }
    }
}

/// Whether a pass of a current release takes the pod on.
///
/// # Errors
/// The first thing that stands against it.
pub fn takes_on(spec: &PodSpec) -> Result<(), LeftOut> {
    takes_on_in(spec, KarpenterVersion::NEWEST)
}

/// Whether a pass of a release takes the pod on: up to v1.4 preferred terms, too, are held against restricted labels.
///
/// # Errors
/// The first thing that stands against it.
pub fn takes_on_in(spec: &PodSpec, release: KarpenterVersion) -> Result<(), LeftOut> {
    if strict_requirements(spec)
        .get(well_known::NODEPOOL)
        .is_some_and(|strict_requirement| strict_requirement.operator() == Operator::DoesNotExist)
    {
        return Err(LeftOut::NotForKarpenter);
    }
    if spec.node_affinity.required.iter().any(|term| !term.fields.is_empty()) {
        return Err(LeftOut::MatchFields);
    }
    let selected = spec.node_selector.iter().map(|(key, _)| key);
    let required =
        spec.node_affinity.required.iter().flat_map(|term| term.expressions.iter().map(|expression| expression.key));
    let asks_preferred = !Behaviour::for_release(release).checks_required_terms_only;
    let terms = spec.node_affinity.preferred.iter().filter(|_| asks_preferred);
    let preferred = terms.flat_map(|term| term.term.expressions.iter().map(|expression| expression.key));
    let mut keys = selected.chain(required).chain(preferred).map(normalized_key);
    match keys.find(|&key| is_restricted(key) || !is_stated(key, release)) {
        Some(key) => Err(LeftOut::RestrictedLabel(key)),
        None => Ok(()),
    }
}

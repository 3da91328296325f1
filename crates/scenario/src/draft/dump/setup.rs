//! Karpenter as a dump states it, for questions about the dump itself: its release, flags and gates, read as for a scenario that is made
//! of the dump.
//!
//! Must not: read anything that `cluster` and `karpenter` do not read for a scenario.

use std::sync::Arc;

use super::cluster::{self, is_of_karpenter, karpenter_release};
use super::cluster_autoscaler::is_of_autoscaler;
use super::karpenter::{DeploymentEnvironment, Settings};
use super::objects::Object;
use super::{Notes, parsed, sorted, top};
use crate::catalog::Region;
use crate::domain::KarpenterVersion;
use crate::draft::{FeatureGateWords, Wishes};
use crate::error::{ScenarioError, Warning};
use crate::file::karpenter_settings;
use crate::single_pass::KarpenterSetup;
use crate::source::Source;

/// Karpenter's setup in the cluster of a dump, and warnings of settings that cannot be taken over. A release and gates that are given
/// override those of the dump.
///
/// # Errors
/// If `sources` are no dump.
pub(crate) fn setup(
    sources: &[Source],
    (release, gates): (Option<KarpenterVersion>, Option<&FeatureGateWords>),
    region: &Arc<Region>,
) -> Result<(KarpenterSetup, Vec<Warning>), ScenarioError> {
    let sources = top::read(sources)?;
    let (mut all, _) = parsed(&sources)?;
    let tells = |object: &Object<'_>| match object.kind.as_str() {
        "Node" | "ClusterConfig" => true,
        "Deployment" | "Pod" => is_of_karpenter(object),
        _ => false,
    };
    all.retain(tells);
    let dump = sorted(all, &mut Notes::default());
    let mut notes = Notes::default();
    // An assumed release of Kubernetes is no fact of the dump.
    let kubernetes = cluster::kubernetes(&dump, &mut notes);
    let deployments = dump.carried.iter().filter(|object| object.kind == "Deployment");
    let shown = deployments.chain(&dump.running).find(|object| karpenter_release(object).is_some());
    let (version, source) = match (release, shown) {
        (Some(release), _) => (release, "from --karpenter".to_owned()),
        (None, None) => (KarpenterVersion::default(), KarpenterSetup::ASSUMED.to_owned()),
        (None, Some(object)) => (
            cluster::karpenter(&dump, &Wishes::default(), &mut notes),
            format!("from the dump's {} {}", object.kind, object.full_name()),
        ),
    };
    let knows_gates = gates.is_some() || dump.karpenter.as_ref().is_some_and(DeploymentEnvironment::shows_gates);
    let mut stated = dump.karpenter.unwrap_or_default();
    if let Some(FeatureGateWords(gates)) = gates {
        stated.add_gates(gates);
    }
    let mut text = String::new();
    Settings::new(&stated, version, &mut notes).write(&mut text);
    let (flags, options) = karpenter_settings(&text, region)?;
    Ok((KarpenterSetup { provider: options.provider(version), source, flags, knows_gates, kubernetes }, notes.warnings))
}

/// The Deployment of the Cluster Autoscaler, `namespace/name`.
pub(in crate::draft) fn cluster_autoscaler(sources: &[Source]) -> Result<Option<String>, ScenarioError> {
    let sources = top::read(sources)?;
    let (all, _) = parsed(&sources)?;
    let mut deployments = all.iter().filter(|object| object.kind == "Deployment");
    let found = deployments.find(|object| cluster::images(object).any(is_of_autoscaler));
    Ok(found.map(Object::full_name))
}

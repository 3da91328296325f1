//! Whether a change of a scenario changes what is simulated, or how it is judged.

use std::fmt::{self, Debug, Write};
use std::hash::Hasher;
use std::sync::Arc;

use rustc_hash::FxHasher;

use crate::actors::Setup;
use crate::catalog::{Catalog, Region};
use crate::domain::FeatureGates;
use crate::scenario::definition::KarpenterOptions;
use crate::scenario::manifests::Manifests;
use crate::scenario::{PolicyVariant, Scenario};
use crate::simulation::resolve;

/// A digest of all that a run of the policy depends on, and of what its results are held against; `None` if it cannot run.
/// Objects that the policy's autoscaler does not know are no part of it.
pub fn digest(scenario: &Scenario, policy: &PolicyVariant, catalog: &Catalog) -> Option<u64> {
    let resolved = resolve(scenario, policy, catalog, scenario.seed).ok()?.setup;
    // What the setup has in another form, and what other policies have, is no part of it here.
    let bare = Scenario {
        inputs: Vec::new(),
        load: Vec::new(),
        policies: Vec::new(),
        prometheus: None,
        queues: Vec::new(),
        timeline: Vec::new(),
        ..scenario.clone()
    };
    let mut manifests = Manifests::default();
    manifests.namespaces.clone_from(&policy.manifests.namespaces);
    manifests.services.clone_from(&policy.manifests.services);
    manifests.ingresses.clone_from(&policy.manifests.ingresses);
    manifests.ingress_classes.clone_from(&policy.manifests.ingress_classes);
    manifests.node_groups.clone_from(&policy.manifests.node_groups);
    manifests.disruption_budgets.clone_from(&policy.manifests.disruption_budgets);
    let mut policy_variant =
        PolicyVariant { name: String::new(), flags: None, manifests: Arc::new(manifests), ..policy.clone() };
    let is_karpenter = policy.autoscaler.is_karpenter();
    if !is_karpenter {
        policy_variant.interruption_queue = false;
        policy_variant.karpenter_options = KarpenterOptions::default();
        policy_variant.feature_gates = FeatureGates::default();
    }
    // The catalog has one region of each name.
    let bare_region = |region: &Region| Arc::new(Region::new(region.name, region.currency, Vec::new(), Vec::new()));
    let (region, price_list) = (bare_region(&resolved.region), bare_region(&resolved.price_list));
    let mut setup = Setup { scenario: &bare, policy: &policy_variant, region, price_list, ..resolved };
    if !is_karpenter {
        setup.node_classes.clear();
    }
    let Scenario { name, warm_up, replications, objectives, output, assumptions, .. } = scenario;
    let judged = (name, warm_up, replications, objectives, output, assumptions);
    // No step holds what load balancers stand for: the bill reads it from the timeline.
    let applied = scenario.timeline.iter().filter_map(|item| Some((item.at, item.action.applied()?)));
    let in_front: Vec<_> =
        applied.map(|(at, applied)| (at, &applied.services, &applied.ingresses, &applied.ingress_classes)).collect();
    let mut digest = Digest(FxHasher::default());
    digest.add(&judged)?;
    digest.add(&in_front)?;
    digest.add(&setup)?;
    Some(digest.0.finish())
}

struct Digest(FxHasher);

impl Digest {
    fn add(&mut self, value: &dyn Debug) -> Option<()> {
        write!(self, "{value:?}").ok()
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

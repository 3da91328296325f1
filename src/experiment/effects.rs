//! Whether a change of a scenario changes what is simulated, or how it is judged.

use std::fmt::{self, Debug, Write};
use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::catalog::Catalog;
use crate::scenario::{Autoscaler, PolicyVariant, Scenario};
use crate::simulation::resolve;

/// A digest of all that a run of the policy depends on, and of what its results are held against; `None` if it cannot run.
/// Objects that the policy's autoscaler does not know are no part of it.
pub fn digest(scenario: &Scenario, policy: &PolicyVariant, catalog: &Catalog) -> Option<u64> {
    let mut setup = resolve(scenario, policy, catalog, scenario.seed).ok()?.setup;
    if policy.autoscaler != Autoscaler::Karpenter {
        setup.node_classes.clear();
    }
    let Scenario { name, warm_up, replications, objectives, output, assumptions, .. } = scenario;
    let judged = (name, warm_up, replications, objectives, output, assumptions);
    let mut digest = Digest(FxHasher::default());
    digest.add(&judged)?;
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

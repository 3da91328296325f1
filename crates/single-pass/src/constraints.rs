//! What pods ask for beside room, and the same question without it: what a constraint costs.

use std::sync::Arc;

use super::PackingQuestion;
use nodecast_model::domain::{Labels, PodSpec};

/// What pods may ask for beside room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Constraint {
    /// `topologySpreadConstraints`.
    TopologySpread,
    /// Pod affinity and anti-affinity, required and preferred.
    PodAffinity,
    /// `nodeSelector` and node affinity, required and preferred.
    NodeSelection,
}

impl Constraint {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::TopologySpread, Self::PodAffinity, Self::NodeSelection];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TopologySpread => "topology spread",
            Self::PodAffinity => "pod affinity and anti-affinity",
            Self::NodeSelection => "node selectors and node affinity",
        }
    }

    /// The specification without it, if it states it.
    fn lifted(self, spec: &PodSpec) -> Option<PodSpec> {
        let mut lifted = spec.clone();
        match self {
            Self::TopologySpread => lifted.topology_spread.clear(),
            Self::PodAffinity => {
                (lifted.pod_affinity, lifted.pod_anti_affinity) = Default::default();
            }
            Self::NodeSelection => {
                (lifted.node_selector, lifted.node_affinity) = (Labels::new(), Default::default());
            }
        }
        (lifted != *spec).then_some(lifted)
    }
}

impl PackingQuestion {
    /// The same where no pod that waits states a constraint, and how many of them did; those on nodes keep theirs.
    pub fn without(&self, constraint: Constraint) -> (Self, usize) {
        let (mut question, mut concerned) = (self.clone(), 0);
        for pod in &mut question.pods {
            if let Some(lifted) = constraint.lifted(&pod.spec) {
                pod.spec = Arc::new(lifted);
                concerned += 1;
            }
        }
        (question, concerned)
    }
}

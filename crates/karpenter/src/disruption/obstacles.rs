//! What keeps nodes from being consolidated, by kind: what is counted, without the names of pods.

use super::candidates::{Blocker, NotEligible};
use super::replacement::NoOp;
use super::what_if::Failure;

/// Declares the kinds with the words in which reports write them.
macro_rules! obstacles {
    ($($(#[$doc:meta])+ $name:ident = $text:literal,)+) => {
        /// Why consolidation, or replacement for drift, leaves a node alone.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Obstacle {
            $($(#[$doc])+ $name,)+
        }

        impl Obstacle {
            /// All kinds, in the order in which they are looked for.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The kind as reports write it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }
        }
    };
}

obstacles! {
    /// A command already concerns it.
    Queued = "a command for the node is being carried out",
    /// It has no claim of Karpenter's.
    Unmanaged = "not Karpenter's node",
    /// No Node object exists yet.
    NotRegistered = "not registered",
    /// It is not initialized.
    NotInitialized = "not initialized",
    /// It is on its way out.
    MarkedForDeletion = "being removed",
    /// Pods are on their way to it.
    Nominated = "nominated for pods",
    /// It carries `karpenter.sh/do-not-disrupt`.
    NodeDoNotDisrupt = "do-not-disrupt on the node",
    /// It names no NodePool, or one that does not exist or offers no instance types.
    NoNodePool = "no NodePool",
    /// A pod carries `karpenter.sh/do-not-disrupt`.
    PodDoNotDisrupt = "do-not-disrupt on a pod",
    /// A PodDisruptionBudget lets none of its pods go.
    PodBudget = "a PodDisruptionBudget",
    /// Several PodDisruptionBudgets select one pod.
    SeveralPodBudgets = "several PodDisruptionBudgets for one pod",
    /// Its pool keeps a fixed number of nodes.
    StaticPool = "a NodePool with a fixed number of nodes",
    /// It is not drifted, or its pool keeps no fixed number of nodes.
    NotDrifted = "not drifted",
    /// `consolidateAfter: Never`.
    Never = "consolidateAfter is Never",
    /// It has not been left alone for long enough.
    NotConsolidatable = "pods changed within consolidateAfter",
    /// `consolidationPolicy: WhenEmpty`.
    OnlyWhenEmpty = "consolidationPolicy is WhenEmpty",
    /// It holds pods.
    NotEmpty = "not empty",
    /// Room is kept on it for a CapacityBuffer (v1.14).
    Buffered = "reserved for a CapacityBuffer",
    /// Its type, capacity type or zone is not among those of its pool.
    UnknownOffering = "offering no longer allowed by the NodePool",
    /// It holds no pod: emptiness alone takes it.
    Empty = "empty (handled by emptiness)",
    /// The NodePool's budget lets no node go now.
    NodeBudget = "the NodePool's disruption budget",
    /// A pod of it has no other place.
    PodsStay = "a pod cannot be rescheduled",
    /// A pod of it would have to wait for a node that is not initialized.
    WaitsForNode = "a pod would wait for an uninitialized node",
    /// It would take several new nodes.
    SeveralNodes = "its pods would need several new nodes",
    /// What it costs is not known, as its offering is gone (up to v1.8).
    NoPrice = "its price is not known",
    /// No type that would do is cheaper.
    NotCheaper = "no cheaper instance type",
    /// Too few values would remain for `minValues`.
    MinValues = "minValues",
    /// Feature gate `SpotToSpotConsolidation` is off.
    SpotToSpotOff = "SpotToSpotConsolidation is off",
    /// Fewer than 15 cheaper Spot types.
    FewSpotTypes = "fewer than 15 cheaper Spot types",
    /// The replacement could be of the same type.
    SameType = "a replacement of the same type",
    /// The balance of savings and disruption speaks against it (v1.14).
    Unbalanced = "saving too small for the disruption",
    /// A static pool has more nodes than it wants, or replaces others: it replaces no drifted one.
    Overscaled = "static NodePool is over its replica count",
    /// The limit of nodes of a static pool lets it make no replacement.
    NodeLimit = "the NodePool's limit of nodes leaves no room for a replacement",
}

impl From<&Blocker> for Obstacle {
    fn from(blocker: &Blocker) -> Self {
        match blocker {
            Blocker::Queued => Self::Queued,
            Blocker::Unmanaged => Self::Unmanaged,
            Blocker::NotRegistered => Self::NotRegistered,
            Blocker::NotInitialized => Self::NotInitialized,
            Blocker::MarkedForDeletion => Self::MarkedForDeletion,
            Blocker::Nominated => Self::Nominated,
            Blocker::NodeDoNotDisrupt => Self::NodeDoNotDisrupt,
            Blocker::NoNodePool | Blocker::UnknownNodePool(_) => Self::NoNodePool,
            Blocker::PodDoNotDisrupt(_) => Self::PodDoNotDisrupt,
            Blocker::PodBudget(_) => Self::PodBudget,
            Blocker::SeveralPodBudgets(_) => Self::SeveralPodBudgets,
            Blocker::Method(why) => Self::from(*why),
        }
    }
}

impl From<NotEligible> for Obstacle {
    fn from(why: NotEligible) -> Self {
        match why {
            NotEligible::StaticPool => Self::StaticPool,
            NotEligible::DynamicPool | NotEligible::NotDrifted | NotEligible::NotExpired => Self::NotDrifted,
            NotEligible::Never => Self::Never,
            NotEligible::NotConsolidatable | NotEligible::NotOnlyWhenEmpty => Self::NotConsolidatable,
            NotEligible::OnlyWhenEmpty => Self::OnlyWhenEmpty,
            NotEligible::NotEmpty => Self::NotEmpty,
            NotEligible::Buffered => Self::Buffered,
            NotEligible::UnknownInstanceType | NotEligible::NoCapacityType | NotEligible::NoZone => {
                Self::UnknownOffering
            }
        }
    }
}

impl From<&NoOp> for Obstacle {
    fn from(why: &NoOp) -> Self {
        match why {
            NoOp::PodsStay(Failure::NoPlace { .. }) => Self::PodsStay,
            NoOp::PodsStay(Failure::WaitsForNode) => Self::WaitsForNode,
            NoOp::SeveralNodes(_) => Self::SeveralNodes,
            NoOp::NoPrice => Self::NoPrice,
            NoOp::NotCheaper => Self::NotCheaper,
            NoOp::MinValues(_) => Self::MinValues,
            NoOp::SpotToSpotOff => Self::SpotToSpotOff,
            NoOp::FewSpotTypes(_) => Self::FewSpotTypes,
            NoOp::SameType => Self::SameType,
        }
    }
}

//! Which objects somebody means who does something to them by hand.

use super::workload::ObjectName;
use super::{Labels, Symbol};

/// Some of the objects of a kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Which {
    /// What they have in common.
    pub by: By,
    /// How many of them at most, oldest first; all if no number is given.
    pub most: Option<u32>,
}

/// What the objects that somebody means have in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum By {
    /// The name. That of an object of no namespace is in the namespace `default`.
    Name(ObjectName),
    /// Labels, all of which an object has.
    Labels(Labels),
}

impl Which {
    /// Whether `labels` hold those that are asked for; false where a name is.
    pub fn has_labels(&self, labels: &Labels) -> bool {
        match &self.by {
            By::Name(_) => false,
            By::Labels(wanted) => wanted.iter().all(|(key, value)| labels.get(key) == Some(value)),
        }
    }

    /// The name that is asked for.
    pub const fn name(&self) -> Option<Symbol> {
        match &self.by {
            By::Name(name) => Some(name.name),
            By::Labels(_) => None,
        }
    }
}

impl std::fmt::Display for Which {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.by {
            By::Name(name) => write!(f, "{}", name.name),
            By::Labels(labels) => {
                for (position, (key, value)) in labels.iter().enumerate() {
                    let comma = if position > 0 { "," } else { "" };
                    write!(f, "{comma}{key}={value}")?;
                }
                Ok(())
            }
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident, $text:literal),* $(,)?) => {
        /// Kinds of objects that can be deleted during a run.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum ObjectKind {
            $($(#[$doc])* $kind,)*
        }

        impl ObjectKind {
            /// All of them with the names that the API has for them.
            pub const ALL: &[(&str, Self)] = &[$(($text, Self::$kind)),*];

            /// The name that the API has for it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $text,)*
                }
            }
        }
    };
}

kinds! {
    /// A Deployment: its pods go with it.
    Deployment, "Deployment",
    /// A StatefulSet: its pods go with it, its claims stay.
    StatefulSet, "StatefulSet",
    /// A DaemonSet: its pods go with it.
    DaemonSet, "DaemonSet",
    /// A Job: its pods go with it.
    Job, "Job",
    /// A CronJob: its Jobs and their pods go with it.
    CronJob, "CronJob",
    /// A pod.
    Pod, "Pod",
    /// A HorizontalPodAutoscaler: its target keeps its replicas.
    HorizontalPodAutoscaler, "HorizontalPodAutoscaler",
    /// A VerticalPodAutoscaler: pods keep what they have.
    VerticalPodAutoscaler, "VerticalPodAutoscaler",
    /// A ScaledObject, and the HorizontalPodAutoscaler that it owns.
    ScaledObject, "ScaledObject",
    /// A ScaledJob: its Jobs and their pods go with it.
    ScaledJob, "ScaledJob",
    /// A PodDisruptionBudget.
    PodDisruptionBudget, "PodDisruptionBudget",
    /// A claim on a volume: it goes when no pod uses it any more.
    PersistentVolumeClaim, "PersistentVolumeClaim",
    /// A Service: its load balancer goes with it.
    Service, "Service",
    /// An Ingress: its load balancer goes with it, or with the last of its group.
    Ingress, "Ingress",
    /// A NodePool: its NodeClaims go with it, and these drain.
    NodePool, "NodePool",
    /// A NodeClaim: its node drains.
    NodeClaim, "NodeClaim",
    /// A node: one of Karpenter's drains, of any other the instance stays.
    Node, "Node",
}

impl ObjectKind {
    /// Whether its objects are in namespaces.
    pub const fn has_namespace(self) -> bool {
        !matches!(self, Self::NodePool | Self::NodeClaim | Self::Node)
    }

    /// Whether objects of this kind come to be during a run, so that one names them by their labels.
    pub const fn is_generated(self) -> bool {
        matches!(self, Self::Pod | Self::NodeClaim | Self::Node)
    }
}

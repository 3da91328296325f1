//! The specification of a VerticalPodAutoscaler, `autoscaling.k8s.io/v1`, and what its status recommends.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/apis/autoscaling.k8s.io/v1/types.go`.

use super::hpa::ScaleTargetRef;
use super::labels::Labels;
use super::quantity::Quantity;
use super::resources::{ResourceName, Resources};
use super::symbol::Symbol;
use super::time::{SimDuration, SimTime};
use super::workload::ObjectName;

/// A VerticalPodAutoscaler.
#[derive(Clone, PartialEq, Debug)]
pub struct VerticalPodAutoscaler {
    /// Namespace and name.
    pub name: ObjectName,
    /// When it was made, since 1970: of several for the same pod the oldest counts.
    pub created: Option<SimTime>,
    /// Annotations, by which post-processors of the recommender are chosen.
    pub annotations: Labels,
    /// `targetRef`: whose pods it is for.
    pub target: ScaleTargetRef,
    /// `updatePolicy`.
    pub update: UpdatePolicy,
    /// `resourcePolicy.containerPolicies`, in the order given.
    pub containers: Vec<ContainerPolicy>,
    /// `recommenders`: by whom its recommendation is made; the default one for an empty list.
    pub recommenders: Vec<Symbol>,
    /// `status.recommendation`; `None` where there is none yet.
    pub recommendation: Option<Vec<ContainerRecommendation>>,
}

impl VerticalPodAutoscaler {
    /// One that states nothing but its target.
    pub fn new(name: ObjectName, target: ScaleTargetRef) -> Self {
        Self {
            name,
            created: None,
            annotations: Labels::new(),
            target,
            update: UpdatePolicy::default(),
            containers: Vec::new(),
            recommenders: Vec::new(),
            recommendation: None,
        }
    }

    /// The policy of a container: the one that names it, else the one for all others (`*`), each taken whole.
    pub fn policy_of(&self, container: Symbol) -> Option<&ContainerPolicy> {
        let named = |wanted: &str| self.containers.iter().find(|policy| policy.container.as_str() == wanted);
        named(container.as_str()).or_else(|| named(ContainerPolicy::ALL_OTHERS))
    }
}

/// How recommendations get to pods.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UpdatePolicy {
    /// `updateMode`; what none means depends on the release.
    pub mode: Option<UpdateMode>,
    /// `minReplicas`; the updater's flag where it is not stated.
    pub min_replicas: Option<i32>,
    /// `evictionRequirements`: all of them must hold.
    pub eviction_requirements: Vec<EvictionRequirement>,
    /// `evictAfterOOMSeconds` (alpha in 1.5): stands in for the updater's flag.
    pub evict_after_oom: Option<SimDuration>,
}

/// `updateMode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, schemars::JsonSchema, serde::Deserialize)]
pub enum UpdateMode {
    /// Recommendations are made and nothing else.
    Off,
    /// Pods get them when they are made.
    Initial,
    /// Pods are evicted, too.
    Recreate,
    /// The old name of `Recreate`.
    Auto,
    /// Pods are resized where they run, and evicted where that does not come off.
    InPlaceOrRecreate,
    /// Pods are resized where they run, and never evicted (alpha in 1.7).
    InPlace,
}

/// When a pod may be evicted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EvictionRequirement {
    /// Of which resources one must change so.
    pub resources: Vec<ResourceName>,
    /// How the target must lie to the request.
    pub change: ChangeRequirement,
}

/// `changeRequirement`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum ChangeRequirement {
    /// The target is above the request.
    TargetHigherThanRequests,
    /// The target is below it.
    TargetLowerThanRequests,
}

/// What the autoscaler may do with a container.
#[derive(Clone, PartialEq, Debug)]
pub struct ContainerPolicy {
    /// `containerName`, or [`ContainerPolicy::ALL_OTHERS`].
    pub container: Symbol,
    /// Whether `mode` is `Off`: it gets no recommendation.
    pub off: bool,
    /// `minAllowed`.
    pub min_allowed: Resources,
    /// `maxAllowed`.
    pub max_allowed: Resources,
    /// `controlledResources`; CPU and memory where it is not stated.
    pub controlled_resources: Option<Vec<ResourceName>>,
    /// Whether `controlledValues` is `RequestsOnly`: limits stay as they are.
    pub requests_only: bool,
    /// `oomBumpUpRatio` (alpha in 1.5): by what the memory grows that an OOM kill asks for.
    pub oom_bump_up_ratio: Option<Quantity>,
    /// `oomMinBumpUp` (alpha in 1.5): by how many bytes it grows at least.
    pub oom_min_bump_up: Option<Quantity>,
}

impl ContainerPolicy {
    /// The name that stands for all containers without a policy of their own.
    pub const ALL_OTHERS: &'static str = "*";

    /// A policy that restricts nothing.
    pub fn for_container(container: Symbol) -> Self {
        Self {
            container,
            off: false,
            min_allowed: Resources::new(),
            max_allowed: Resources::new(),
            controlled_resources: None,
            requests_only: false,
            oom_bump_up_ratio: None,
            oom_min_bump_up: None,
        }
    }

    /// Whether the autoscaler controls the resource.
    pub fn controls(&self, resource: ResourceName) -> bool {
        self.controlled_resources.as_ref().is_none_or(|controlled| controlled.contains(&resource))
    }
}

/// What is recommended for a container: CPU in thousandths, memory in bytes. A resource that is not named has no recommendation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerRecommendation {
    /// `containerName`.
    pub container: Symbol,
    /// `target`: what it should request.
    pub target: Resources,
    /// `lowerBound`: a request below it is too small.
    pub lower_bound: Resources,
    /// `upperBound`: a request above it is too large.
    pub upper_bound: Resources,
    /// `uncappedTarget`: the target before policies.
    pub uncapped_target: Resources,
}

impl ContainerRecommendation {
    /// One that recommends nothing.
    pub fn for_container(container: Symbol) -> Self {
        let none = Resources::new;
        Self { container, target: none(), lower_bound: none(), upper_bound: none(), uncapped_target: none() }
    }
}

//! The specification of a HorizontalPodAutoscaler, `autoscaling/v2`.

use super::labels::LabelSelector;
use super::quantity::Quantity;
use super::resources::ResourceName;
use super::symbol::Symbol;
use super::time::SimDuration;

/// A reference to the object that is scaled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ScaleTargetRef {
    /// The kind, for example `Deployment`.
    pub kind: Symbol,
    /// The name, in the autoscaler's own namespace.
    pub name: Symbol,
}

/// A HorizontalPodAutoscaler.
#[derive(Clone, PartialEq, Debug)]
pub struct HorizontalPodAutoscaler {
    /// Namespace.
    pub namespace: Symbol,
    /// Name.
    pub name: Symbol,
    /// What it scales.
    pub target: ScaleTargetRef,
    /// `minReplicas`; `None` means 1.
    pub min_replicas: Option<i32>,
    /// `maxReplicas`.
    pub max_replicas: i32,
    /// Metrics in the order given; the API fills an empty list with CPU utilization 80 %.
    pub metrics: Vec<MetricSpec>,
    /// The behavior block, if one was given. No block is not the same as a block of defaults.
    pub behavior: Option<Behavior>,
}

/// One metric and its target.
#[derive(Clone, PartialEq, Debug)]
pub struct MetricSpec {
    /// Where the number comes from.
    pub source: MetricSource,
    /// What it is compared with.
    pub target: MetricTarget,
}

/// Where a metric comes from.
#[derive(Clone, PartialEq, Debug)]
pub enum MetricSource {
    /// A resource of the pods, from metrics-server.
    Resource {
        /// The resource.
        name: ResourceName,
    },
    /// A resource of one container of each pod.
    ContainerResource {
        /// The resource.
        name: ResourceName,
        /// The container.
        container: Symbol,
    },
    /// A custom metric of each pod.
    Pods {
        /// The metric.
        metric: Symbol,
        /// Narrows the series.
        selector: Option<LabelSelector>,
    },
    /// A custom metric of one object.
    Object {
        /// The metric.
        metric: Symbol,
        /// Narrows the series.
        selector: Option<LabelSelector>,
        /// The object described.
        object: ScaleTargetRef,
    },
    /// A metric from outside the cluster.
    External {
        /// The metric.
        metric: Symbol,
        /// Narrows the series.
        selector: Option<LabelSelector>,
    },
}

/// The target of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricTarget {
    /// Mean use in percent of the request.
    Utilization(i32),
    /// Mean value for each pod.
    AverageValue(Quantity),
    /// The value as a whole.
    Value(Quantity),
}

/// The behavior block. Rules that were not given take the API's defaults field by field.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Behavior {
    /// Rules for growing.
    pub scale_up: ScalingRules,
    /// Rules for shrinking.
    pub scale_down: ScalingRules,
}

/// Rules for one direction; `None` means the API's default.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ScalingRules {
    /// `stabilizationWindowSeconds`.
    pub stabilization_window: Option<SimDuration>,
    /// `selectPolicy`.
    pub select_policy: Option<SelectPolicy>,
    /// `policies`; a given list replaces the default list whole.
    pub policies: Option<Vec<ScalingPolicy>>,
    /// `tolerance`, as a ratio.
    pub tolerance: Option<Quantity>,
}

/// Which of several policies counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum SelectPolicy {
    /// The one that allows the largest change.
    Max,
    /// The one that allows the smallest change.
    Min,
    /// No change in this direction.
    Disabled,
}

/// How much may change within a period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScalingPolicy {
    /// Pods or percent.
    pub kind: ScalingPolicyKind,
    /// How many.
    pub value: i32,
    /// Within which time.
    pub period: SimDuration,
}

/// The unit of a scaling policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum ScalingPolicyKind {
    /// A number of pods.
    Pods,
    /// A percentage of the replicas at the start of the period.
    Percent,
}

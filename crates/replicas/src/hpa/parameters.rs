//! The controller's flags and feature gates, by Kubernetes release.

use nodecast_model::domain::hpa::{HorizontalPodAutoscaler, ScalingRules};
use nodecast_model::domain::quantity::Quantity;
use nodecast_model::domain::{KubernetesBehaviour, KubernetesVersion, SimDuration};

/// The controller's flags and feature gates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HpaParameters {
    /// The release whose rules apply at the edge of the tolerance and at zero replicas.
    pub version: KubernetesVersion,
    /// `--horizontal-pod-autoscaler-tolerance` upwards, as a ratio.
    pub tolerance_up: f64,
    /// The same downwards.
    pub tolerance_down: f64,
    /// `--horizontal-pod-autoscaler-cpu-initialization-period`.
    pub cpu_initialization_period: SimDuration,
    /// `--horizontal-pod-autoscaler-initial-readiness-delay`.
    pub initial_readiness_delay: SimDuration,
    /// `--horizontal-pod-autoscaler-downscale-stabilization`.
    pub downscale_stabilization: SimDuration,
    /// By what factor one pass may grow the target when there is no behavior block.
    pub scale_up_limit_factor: f64,
    /// Gate `HPAConfigurableTolerance`: whether a behavior block may set its own tolerance.
    pub configurable_tolerance: bool,
    /// Gate `HPAScaleToZero`.
    pub scale_to_zero: bool,
}

impl HpaParameters {
    /// The flags' defaults and the gates' state in a release.
    ///
    /// Source: Kubernetes 1.37 `pkg/controller/podautoscaler/config/v1alpha1/defaults.go` and `pkg/features/kube_features.go`.
    pub fn for_version(version: KubernetesVersion) -> Self {
        Self {
            version,
            tolerance_up: 0.1,
            tolerance_down: 0.1,
            cpu_initialization_period: SimDuration::from_secs(300),
            initial_readiness_delay: SimDuration::from_secs(30),
            downscale_stabilization: SimDuration::from_secs(300),
            scale_up_limit_factor: 2.0,
            configurable_tolerance: version.has(KubernetesBehaviour::HpaTolerance),
            scale_to_zero: version.has(KubernetesBehaviour::HpaScaleToZero),
        }
    }

    /// Whether the controller keeps the condition `ScaledToZero`.
    pub fn remembers_scaling_to_zero(&self) -> bool {
        self.leaves_zero_by_condition() && self.scale_to_zero
    }

    /// Whether zero is left only when the condition `ScaledToZero` holds, whatever the minimum.
    pub fn leaves_zero_by_condition(&self) -> bool {
        self.version.has(KubernetesBehaviour::HpaZeroByCondition)
    }
}

impl Default for HpaParameters {
    fn default() -> Self {
        Self::for_version(KubernetesVersion::default())
    }
}

/// How far from 1 the ratio of a metric to its target may be without a change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    /// Above 1.
    pub up: f64,
    /// Below 1.
    pub down: f64,
    /// Whether the distance from 1 is compared, as releases up to 1.32 did, instead of the ratio with two bounds. The two
    /// differ on the edge: 1.1 is inside a tolerance of 0.1 by its bounds, but 1.1 - 1 is above 0.1.
    pub by_distance: bool,
}

impl Tolerance {
    /// Whether a ratio calls for no change. Not-a-number and infinity never do.
    ///
    /// Source: Kubernetes 1.37 `replica_calculator.go`, `Tolerances.isWithin`; 1.32 for the distance.
    pub fn contains(self, ratio: f64) -> bool {
        if self.by_distance {
            let allowed = if ratio > 1.0 { self.up } else { self.down };
            libm::fabs(1.0 - ratio) <= allowed
        } else {
            (1.0 - self.down..=1.0 + self.up).contains(&ratio)
        }
    }
}

/// The tolerance of an autoscaler: its own where it has one and may, else the controller's.
pub fn tolerance_of(hpa: &HorizontalPodAutoscaler, parameters: &HpaParameters) -> Tolerance {
    let make = |rules: fn(&nodecast_model::domain::hpa::Behavior) -> &ScalingRules| {
        let behavior = hpa.behavior.as_ref().filter(|_| parameters.configurable_tolerance)?;
        rules(behavior).tolerance.map(Quantity::as_f64)
    };
    Tolerance {
        up: make(|behavior| &behavior.scale_up).unwrap_or(parameters.tolerance_up),
        down: make(|behavior| &behavior.scale_down).unwrap_or(parameters.tolerance_down),
        by_distance: !parameters.version.has(KubernetesBehaviour::HpaToleranceByRatio),
    }
}

#[cfg(test)]
mod tests {
    use super::{HpaParameters, Tolerance};
    use nodecast_model::domain::KubernetesVersion;

    #[test]
    fn hpa_tolerance_edge_is_inside_since_1_33() {
        let bounds = Tolerance { up: 0.1, down: 0.1, by_distance: false };
        let distance = Tolerance { by_distance: true, ..bounds };
        assert!(bounds.contains(1.1) && !distance.contains(1.1));
        assert!(bounds.contains(0.9) && distance.contains(0.9));
        assert!(!bounds.contains(f64::NAN) && !distance.contains(f64::NAN));
        assert!(!bounds.contains(f64::INFINITY) && !distance.contains(f64::INFINITY));
    }

    #[test]
    fn gates_follow_the_release() {
        let gates = |minor| {
            KubernetesVersion::from_minor(minor)
                .map(HpaParameters::for_version)
                .map(|parameters| (parameters.configurable_tolerance, parameters.scale_to_zero))
        };
        assert_eq!(gates(34), Some((false, false)));
        assert_eq!(gates(36), Some((true, false)));
        assert_eq!(gates(37), Some((true, true)));
    }
}

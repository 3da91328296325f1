//! What the LimitRanges of a namespace say to the Vertical Pod Autoscaler.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/utils/limitrange/limit_range_calculator.go`.

use nodecast_model::domain::Resources;

/// What the LimitRanges of a namespace say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NamespaceLimits {
    /// Of each container, where one speaks of containers.
    pub container: Option<Bounds>,
    /// Of a pod's containers together, where one speaks of pods.
    pub pod: Option<Bounds>,
}

/// Bounds of limits. A resource that is not named, or is zero, has none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bounds {
    /// `min`.
    pub min: Resources,
    /// `max`.
    pub max: Resources,
    /// `default`: the limit of a container that states none.
    pub default: Resources,
}

impl NamespaceLimits {
    /// Adds what one more LimitRange says of containers.
    pub fn add_container(&mut self, bounds: &Bounds) {
        self.container.get_or_insert_default().add(bounds);
    }

    /// Adds what one more says of pods.
    pub fn add_pod(&mut self, bounds: &Bounds) {
        self.pod.get_or_insert_default().add(bounds);
    }

    /// The limit of a container that states none.
    pub(super) fn default_limit(&self) -> Option<&Resources> {
        self.container.as_ref().map(|bounds| &bounds.default)
    }
}

impl Bounds {
    /// Of several the lowest maximum, the highest minimum and the last default count.
    fn add(&mut self, other: &Self) {
        for (name, max) in other.max.iter() {
            let lowest = self.max.find(name).map_or(max, |this_max| this_max.min(max));
            self.max.set(name, lowest);
        }
        for (name, min) in other.min.iter() {
            let highest = self.min.get(name).max(min);
            self.min.set(name, highest);
        }
        for (name, default) in other.default.iter() {
            self.default.set(name, default);
        }
    }
}

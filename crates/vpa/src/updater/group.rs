//! How many pods of a controller may be disrupted in a pass.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/updater/restriction/pods_restriction_factory.go`.

use super::{ControllerKind, PodGroup, UpdaterSettings, Way};

/// A group in a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Group {
    wanted: i64,
    tolerance: i64,
    running: i64,
    /// It is smaller than the minimum: none of its pods is evicted, nor resized if that restarts a container.
    below_minimum: bool,
    /// Pods evicted and resized in this pass.
    disrupted: i64,
}

impl Group {
    /// The group as it is at the start of a pass; `None` where it is left alone.
    pub(super) fn new(group: &PodGroup, min_replicas: i32, way: Way, settings: &UpdaterSettings) -> Option<Self> {
        let alive = group.pods.len() as i64;
        let skips_budget = way == Way::ResizeOrEvict && settings.skips_budget();
        let below_minimum = alive < i64::from(min_replicas);
        let wanted = match group.controller {
            ControllerKind::Replicated(wanted) => wanted,
            ControllerKind::Job => alive,
            ControllerKind::Custom => 0,
        };
        let counts = wanted > 0 || group.controller == ControllerKind::Custom;
        if !counts || (below_minimum && !skips_budget) {
            return None;
        }
        let tolerance = (wanted as f64 * settings.eviction_tolerance) as i64;
        let running = group.pods.iter().filter(|pod| !pod.pending).count() as i64;
        Some(Self { wanted, tolerance, running, below_minimum, disrupted: 0 })
    }

    /// Whether one more running pod may be disrupted.
    pub(super) fn is_disruptable(&self) -> bool {
        let (left, needed) = (self.running - self.disrupted, self.wanted - self.tolerance);
        let first_of_all = self.wanted == self.running && self.tolerance == 0 && self.disrupted == 0;
        !self.below_minimum && (left > needed || first_of_all)
    }

    /// Counts a pod that was disrupted.
    pub(super) fn disrupt(&mut self) {
        self.disrupted += 1;
    }

    /// Whether a pending pod may be evicted, which nobody misses.
    pub(super) fn lets_pending_go(&self) -> bool {
        !self.below_minimum
    }
}

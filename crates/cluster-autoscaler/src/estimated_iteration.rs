//! Estimates of an iteration before it ends: the time that they take, and their result for its end.

use super::{ClusterAutoscaler, Iteration, PreparedIteration, controller_time};
use crate::view::{GroupActions, Observation};
use nodecast_model::domain::controller_time::work_within;
use nodecast_model::domain::{ResourceName, SimDuration};

/// An iteration up to the options of its scale-up, made on a copy of the program.
#[derive(Debug)]
pub struct EstimatedIteration {
    /// The copy.
    program: ClusterAutoscaler,
    iteration: Iteration,
    /// The options; `None` if the iteration ended before, or if its end needs more than options.
    prepared: Option<PreparedIteration>,
    /// Sizes of the groups that the options assume.
    targets: Vec<i64>,
    /// Time of all estimates.
    pub took: SimDuration,
    /// Whether a limit of time stops an estimate or the scale-down.
    pub cut: bool,
}

fn targets(seen: &Observation<'_>, actions: &dyn GroupActions) -> Vec<i64> {
    (0..seen.groups.len()).map(|group| actions.target_size(group)).collect()
}

impl ClusterAutoscaler {
    /// Makes the estimates of an iteration; `actions` must only count. Nothing else of the program changes.
    pub fn estimate(&mut self, seen: &Observation<'_>, actions: &mut dyn GroupActions) -> Box<EstimatedIteration> {
        let mut program = self.clone();
        std::mem::swap(&mut self.kept, &mut program.kept);
        // Scale-down comes after the estimates, and matters here only where its limit of time may bind.
        program.flags.scale_down_enabled &= self.may_cut_scale_down(seen);
        if self.flags.salvo_scale_up || program.flags.scale_down_enabled {
            program.flags.enforce_node_group_min_size = false;
            let iteration = program.run_once(seen, actions, &mut |_| 0);
            let (took, cut) = (iteration.scale_up.took, iteration.scale_up.cut || iteration.scale_down.cut);
            return Box::new(EstimatedIteration { program, iteration, prepared: None, targets: Vec::new(), took, cut });
        }
        program.flags.scale_down_enabled = self.flags.scale_down_enabled;
        let (mut iteration, targets_before) = (Iteration::default(), targets(seen, actions));
        let prepared = program.prepare(seen, actions, &mut iteration);
        let options = prepared.as_ref().and_then(|prepared| prepared.options.as_ref().ok());
        let (took, cut) = options.map_or_else(Default::default, |options| (options.report.took, options.report.cut));
        // Where the iteration called the provider, its end has to call again.
        let targets = targets(seen, actions);
        let prepared = prepared.filter(|_| targets == targets_before);
        Box::new(EstimatedIteration { program, iteration, prepared, targets, took, cut })
    }

    /// Ends an iteration with its estimates. They are made again if something that they depend on has changed.
    pub fn run_estimated(
        &mut self,
        estimated: EstimatedIteration,
        seen: &Observation<'_>,
        actions: &mut dyn GroupActions,
        ties: &mut dyn FnMut(usize) -> usize,
    ) -> Iteration {
        let EstimatedIteration { mut program, mut iteration, prepared, targets: assumed, .. } = estimated;
        match prepared {
            Some(prepared) if program.revision == self.revision && assumed == targets(seen, actions) => {
                *self = program;
                self.conclude(seen, prepared, actions, ties, &mut iteration);
                iteration
            }
            _ => {
                std::mem::swap(&mut self.kept, &mut program.kept);
                self.run_once(seen, actions, ties)
            }
        }
    }

    /// Whether the limit of time of scale-down may bind, if it looked for a new place of every pod that the nodes can hold.
    fn may_cut_scale_down(&self, seen: &Observation<'_>) -> bool {
        let Some(speed) = self.speed else { return false };
        let places: i64 = seen.nodes.iter().map(|node| node.allocatable.get(ResourceName::PODS).max(0)).sum();
        let pods = seen.pods.len() as u64 + places as u64;
        controller_time::moves(pods) > work_within(self.flags.scale_down_simulation_timeout, speed)
    }
}

//! Estimates of an iteration before it ends: the time that they take, and their result for its end.

use super::{ClusterAutoscaler, Iteration, PreparedIteration};
use crate::view::{GroupActions, Observation};
use nodecast_model::domain::SimDuration;

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
    /// Whether a limit of time stops an estimate.
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
        if self.flags.salvo_scale_up {
            // What comes after the estimates does not matter here.
            program.flags.scale_down_enabled = false;
            program.flags.enforce_node_group_min_size = false;
            let iteration = program.run_once(seen, actions, &mut |_| 0);
            let (took, cut) = (iteration.scale_up.took, iteration.scale_up.cut);
            return Box::new(EstimatedIteration { program, iteration, prepared: None, targets: Vec::new(), took, cut });
        }
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
}

//! Which of the things that the scenario states of workloads are of which one: loads, and what pods use beside them.
//!
//! What must not live here: what is stated.

use smallvec::SmallVec;

use crate::domain::WorkloadId;

/// The positions of each workload's, in order.
#[derive(Debug, Default)]
pub(super) struct OfWorkloads(Vec<SmallVec<[usize; 2]>>); // by workload

impl OfWorkloads {
    /// Those of a list, each of the workload that it has found, if it has.
    pub(super) fn new(found: impl Iterator<Item = Option<WorkloadId>>) -> Self {
        let mut workloads = Self::default();
        for (position, id) in found.enumerate().filter_map(|(position, id)| Some((position, id?))) {
            if workloads.0.len() <= id.index() {
                workloads.0.resize_with(id.index() + 1, SmallVec::new);
            }
            workloads.0[id.index()].push(position);
        }
        workloads
    }

    /// Those of `workload`.
    pub(super) fn indices(&self, workload: WorkloadId) -> &[usize] {
        self.0.get(workload.index()).map_or(&[], SmallVec::as_slice)
    }
}

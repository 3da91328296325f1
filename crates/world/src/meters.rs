//! What was used and answered: counters that only grow, read at each sample and where a pod begins and ends to serve.
//!
//! What must not live here: rates and means, which reports make from these.

use super::World;
use crate::domain::workload::ObjectName;
use crate::domain::{PodId, SimDuration, SimTime, WorkloadId};

/// What the requests and messages of a workload came to by the instant of a sample.
#[derive(Clone, PartialEq, Debug)]
pub struct Meter {
    /// Which workload.
    pub workload: WorkloadId,
    /// CPU that a replica would have used that was Ready all the time, in millionths of a CPU times microseconds.
    pub cpu_of_replica: i128,
    /// Requests answered since the start of the run.
    pub answered: f64,
    /// Requests refused since the start of the run.
    pub refused: f64,
    /// Requests since the start of the run whose client gave up before they were taken up.
    pub given_up: f64,
    /// Memory of a replica, if the scenario says what requests need.
    pub memory: Option<Box<ReplicaMemory>>,
}

/// Memory of a Ready replica at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplicaMemory {
    /// Bytes in use without what stays of earlier requests.
    pub present: i64,
    /// Bytes that stay of a million requests.
    pub kept_per_million: i64,
    /// CPU time of a request, by which the requests of a pod are known.
    pub cpu_per_request: SimDuration,
    /// Bytes at which a replica is killed.
    pub limit: Option<i64>,
}

/// A time in which a pod took its share of requests or messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServingSpell {
    /// When it began.
    pub from: SimTime,
    /// [`Meter::cpu_of_replica`] then.
    pub cpu_from: i128,
    /// When it ended, and what the meter read then.
    pub until: Option<(SimTime, i128)>,
}

/// A PodDisruptionBudget at the instant of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BudgetSample {
    /// Namespace and name.
    pub name: ObjectName,
    /// Pods that there should be.
    pub expected: i64,
    /// Healthy pods that there must be.
    pub desired_healthy: i64,
    /// Healthy pods.
    pub healthy: i64,
    /// Pods that may be evicted now.
    pub disruptions_allowed: i64,
}

impl World {
    /// The pod takes its share of the work from now on; its meter reads so much.
    pub fn begin_serving(&mut self, id: PodId, at: SimTime, cpu_of_replica: i128) {
        let spells = &mut self.record.pods.change(id).serving;
        spells.push(ServingSpell { from: at, cpu_from: cpu_of_replica, until: None });
    }

    /// The pod takes no share of the work any more; its meter reads so much.
    pub fn end_serving(&mut self, id: PodId, at: SimTime, cpu_of_replica: i128) {
        let last = self.record.pods.change(id).serving.last_mut();
        if let Some(spell) = last.filter(|spell| spell.until.is_none()) {
            spell.until = Some((at, cpu_of_replica));
        }
    }
}

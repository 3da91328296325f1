//! How long Karpenter takes: its scheduling pass, and the searches of its disruption loop.
//!
//! Fitted to core v1.13, measured on one thread of a shared virtual processor of 2024 with 400 instance types: passes over up
//! to 50,000 pods, and simulations of consolidation at up to 1,000 nodes. `cargo run --release --example controller_time`
//! prints each row beside what the model says; the measurements scatter by 30 percent.

use crate::packing::PassWork;
use nodecast_model::domain::SimDuration;
use nodecast_model::domain::controller_time::of_nanos;

/// A pass stops after this time and keeps what it has; pods that it did not come to wait for the next one, without an event.
///
/// Source: Karpenter core v1.13 `pkg/controllers/provisioning/provisioner.go`, `Schedule`.
pub const PASS_LIMIT: SimDuration = SimDuration::from_secs(60);
/// Multi-node consolidation stops after this time; the best that it found by then counts.
///
/// Source: Karpenter core v1.13 `pkg/controllers/disruption/multinodeconsolidation.go`.
pub const MULTI_NODE_LIMIT: SimDuration = SimDuration::from_secs(60);
/// Single-node consolidation stops after this time with nothing, and goes on with pools that it has not seen.
///
/// Source: Karpenter core v1.13 `pkg/controllers/disruption/singlenodeconsolidation.go`.
pub const SINGLE_NODE_LIMIT: SimDuration = SimDuration::from_secs(180);

/// For each attempt to place a pod, in nanoseconds as all that follow: its requirements, the sorting of open claims.
const ATTEMPT: u128 = 60_000;
/// For each existing node that a pod asks.
const NODE: u128 = 1_000;
/// For each open claim that a pod asks: taints, ports, requirements.
const CLAIM: u128 = 1_000;
/// For each group of topology constraints that such a question goes through.
const GROUP: u128 = 65;
/// For each instance type that a claim holds against a pod: requirements, resources, offerings.
const TYPE: u128 = 1_650;
/// For each instance type of a claim that is opened, in the long run: what a claim of its own leaves for the collector of
/// garbage and for the order of prices.
const NEW_TYPE: u128 = 18_750;
/// So many of them come at half that price: a short pass collects no garbage.
const CHEAP_TYPES: u128 = 6_000;
/// For each node of the cluster, which every pass and every simulation copies.
const CLUSTER_NODE: u128 = 70_000;
/// Around a pass: listing pods, pools and types.
const AROUND_PASS: u128 = 30_000_000;
/// Around a simulation, and around a look of the disruption loop.
const AROUND_SIMULATION: u128 = 10_000_000;

/// Simulations of the disruption loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SearchWork {
    /// How many there were.
    pub simulations: u64,
    /// Simulated time of all of them, in nanoseconds of the processor that was measured.
    nanos: u128,
}

impl SearchWork {
    /// One simulation more.
    pub fn add(&mut self, work: &PassWork) {
        self.simulations += 1;
        self.nanos += AROUND_SIMULATION + solve_nanos(work);
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self { simulations: self.simulations + other.simulations, nanos: self.nanos + other.nanos }
    }

    /// What has come since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            simulations: self.simulations.saturating_sub(before.simulations),
            nanos: self.nanos.saturating_sub(before.nanos),
        }
    }

    /// How long they take.
    pub fn time(self) -> SimDuration {
        of_nanos(self.nanos)
    }
}

/// How long `Solve` takes for so much work.
pub fn solve(work: &PassWork) -> SimDuration {
    of_nanos(solve_nanos(work))
}

/// How long a scheduling pass takes.
pub fn pass(work: &PassWork) -> SimDuration {
    of_nanos(AROUND_PASS + solve_nanos(work))
}

/// How long a look of the disruption loop takes beside its simulations: each method lists its candidates.
pub fn look(nodes: usize) -> SimDuration {
    of_nanos(AROUND_SIMULATION + nodes as u128 * CLUSTER_NODE)
}

fn solve_nanos(work: &PassWork) -> u128 {
    let new_types = u128::from(work.new_types);
    u128::from(work.attempts) * ATTEMPT
        + u128::from(work.nodes) * NODE
        + u128::from(work.claims) * CLAIM
        + u128::from(work.groups) * GROUP
        + u128::from(work.types) * TYPE
        + new_types * new_types * NEW_TYPE / (new_types + CHEAP_TYPES)
        + u128::from(work.cluster) * CLUSTER_NODE
}

#[cfg(test)]
mod tests {
    use super::{SearchWork, look, pass, solve};
    use crate::packing::PassWork;
    use nodecast_model::domain::SimDuration;

    /// Simulations at so many nodes, each of which moves ten pods and opens a claim.
    fn simulation(nodes: u64) -> f64 {
        let mut work = SearchWork::default();
        let pass = PassWork {
            cluster: nodes,
            attempts: 10,
            nodes: 10 * nodes,
            types: 800,
            new_types: 400,
            ..PassWork::default()
        };
        work.add(&pass);
        work.time().as_secs_f64()
    }

    #[test]
    fn disruption_simulation_time_is_near_measured() {
        // Middles of the ranges that were measured at clusters of that size.
        for (nodes, measured) in [(20, 0.0145), (100, 0.019), (300, 0.033), (1_000, 0.084)] {
            let ratio = simulation(nodes) / measured;
            assert!((0.5..=2.0).contains(&ratio), "{nodes} nodes: {ratio}");
        }
    }

    #[test]
    fn prefix_search_is_faster_than_single_node_search() {
        let prefixes = 7.0 * simulation(1_000);
        assert!((0.3..=1.8).contains(&prefixes), "{prefixes}");
        assert!((60.0..=120.0).contains(&(1_000.0 * simulation(1_000))));
    }

    #[test]
    fn small_scheduling_pass_takes_under_150_ms() {
        let work = PassWork { attempts: 50, claims: 100, types: 20_000, new_types: 800, ..PassWork::default() };
        let seconds = pass(&work).as_secs_f64();
        assert!((0.035..=0.15).contains(&seconds), "{seconds}");
        assert!(solve(&work) < pass(&work) && look(70) < SimDuration::from_millis(60));
    }
}

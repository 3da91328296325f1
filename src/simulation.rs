//! One runnable simulation, wired from a scenario, a policy and a seed.
//!
//! [`run`] is the whole of it; [`Simulation`] steps through one event at a time for those who want to look inside.
//!
//! What must not live here: what happens at an event (`actors`), more than one simulation (experiments).

mod conclusion;
pub mod outcome;
mod resolve;
pub mod single_pass;

pub use outcome::Outcome;
pub use resolve::{Resolved, resolve};

use crate::actors::{self, Context, Setup};
use crate::catalog::{Catalog, CatalogError};
use crate::cluster::NodePhase;
use crate::domain::{SimDuration, SimTime};
use crate::engine::EventHash;
use crate::scenario::{PolicyVariant, Scenario};
use crate::world::World;

/// A simulation that can be stepped through.
#[derive(Debug)]
pub struct Simulation<'s> {
    context: Context<'s>,
    hash: EventHash,
    end: SimTime,
}

impl<'s> Simulation<'s> {
    /// A simulation at its start.
    pub fn new(setup: &'s Setup) -> Self {
        let mut context = Context::new(setup);
        actors::begin(&mut context);
        Self { context, hash: EventHash::default(), end: SimTime::ZERO + setup.duration }
    }

    /// Lets the next event happen and returns its time; `None` when nothing more happens before the end.
    pub fn step(&mut self) -> Option<SimTime> {
        let (now, event) = self.context.queue.pop()?;
        if now > self.end {
            return None;
        }
        self.hash.record(now, &event);
        actors::handle(&mut self.context, now, event);
        Some(now)
    }

    /// Lets everything up to and including `until` happen.
    pub fn step_until(&mut self, until: SimTime) {
        while self.context.queue.next_time().is_some_and(|at| at <= until) {
            if self.step().is_none() {
                return;
            }
        }
    }

    /// The running simulation's context.
    pub fn context(&self) -> &Context<'s> {
        &self.context
    }

    /// The same for [inquiries](crate::actors::inquiry), which bring prices up to date before they answer.
    pub fn context_mut(&mut self) -> &mut Context<'s> {
        &mut self.context
    }
}

/// A running simulation as those see it who follow its progress.
pub struct Moment<'w> {
    /// The simulated time.
    pub now: SimTime,
    world: &'w World,
}

impl Moment<'_> {
    /// Pods that wait for a node, daemons left out.
    pub fn pods_pending(&self) -> u32 {
        self.world.counts().pending
    }

    /// Nodes that are Ready, and those that are on their way.
    pub fn nodes(&self) -> (u32, u32) {
        let nodes = || self.world.live_nodes().iter().map(|&id| self.world.node(id));
        let ready = nodes().filter(|node| node.ready).count();
        let starting = nodes().filter(|node| !node.ready && node.phase < NodePhase::Terminating).count();
        (u32::try_from(ready).unwrap_or(u32::MAX), u32::try_from(starting).unwrap_or(u32::MAX))
    }
}

/// Simulates one policy of a scenario with one seed. `progress` is shown the simulation now and then.
///
/// # Errors
/// If the catalog has no prices for the scenario's region.
pub fn run(
    scenario: &Scenario,
    policy: &PolicyVariant,
    catalog: &Catalog,
    seed: u64,
    progress: &mut dyn FnMut(&Moment<'_>),
) -> Result<Outcome, CatalogError> {
    let Resolved { setup, warnings } = resolve(scenario, policy, catalog, seed)?;
    let mut simulation = Simulation::new(&setup);
    let mut events: u64 = 0;
    let mut last = SimTime::ZERO;
    if scenario.warm_up > SimDuration::ZERO {
        let counts_from = SimTime::ZERO + scenario.warm_up;
        simulation.step_until(counts_from);
        simulation.context.count_requests_anew(counts_from);
        simulation.context.world.count_replicas_anew(counts_from);
    }
    while let Some(now) = simulation.step() {
        if events.is_multiple_of(PROGRESS_EVERY) {
            progress(&Moment { now, world: &simulation.context.world });
        }
        (events, last) = (events + 1, now);
    }
    progress(&Moment { now: last, world: &simulation.context.world });
    let Simulation { context, hash, .. } = simulation;
    Ok(conclusion::conclude(context, scenario, policy, warnings, hash.value()))
}

/// Events between two reports of progress.
const PROGRESS_EVERY: u64 = 256;

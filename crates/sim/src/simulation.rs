//! One runnable simulation, wired from a scenario, a policy and a seed.
//!
//! [`run`] is the whole of it; [`Simulation`] steps through one event at a time for those who want to look inside.
//!
//! What must not live here: what happens at an event (`actors`), more than one simulation (experiments).

mod ancillary_usage;
mod balancers;
mod checkers;
mod control_plane;
pub mod coupled;
mod demand;
mod draining;
mod forecast;
mod no_effect;
mod rehearsal;
mod resolve;
mod rollouts;
mod run_summary;
mod unknown_load;
mod usable_types;
mod zone_names;

pub use forecast::RunSizeEstimate;
pub use nodecast_world::outcome::{self, Outcome};
pub use resolve::{Resolved, resolve};
pub use usable_types::usable_types;

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use self::checkers::Checkers;
use crate::actors::{self, Components, Setup};
use crate::catalog::{Catalog, CatalogError};
use crate::cluster::NodePhase;
use crate::domain::{Check, Disagreement, SimDuration, SimTime};
use crate::engine::EventHash;
use crate::world::World;
use nodecast_settings::{Caveats, PolicyVariant, Scenario};

/// A simulation that can be stepped through.
#[derive(Debug)]
pub struct Simulation<'s> {
    components: Components<'s>,
    hash: EventHash,
    end: SimTime,
    /// The end of the warm-up, until it has passed.
    counts_from: Option<SimTime>,
    checkers: Option<Checkers>,
}

impl<'s> Simulation<'s> {
    /// A simulation at its start.
    pub fn new(setup: &'s Setup<'s>) -> Self {
        let mut simulation = Self::before_start(setup);
        simulation.begin();
        simulation
    }

    /// Starts a simulation in which nothing has happened yet.
    fn begin(&mut self) {
        actors::begin(&mut self.components);
        self.components.sim.ec2.note_reserved(SimTime::ZERO);
    }

    /// A simulation in which nothing has happened yet, not even its start.
    fn before_start(setup: &'s Setup<'s>) -> Self {
        let warm_up = setup.scenario.warm_up;
        Self {
            components: Components::new(setup),
            hash: EventHash::default(),
            end: SimTime::ZERO + setup.scenario.duration,
            counts_from: (warm_up > SimDuration::ZERO).then_some(SimTime::ZERO + warm_up),
            checkers: setup.check.compares().then(Checkers::default),
        }
    }

    /// Ends the warm-up if the next event is after it.
    fn end_warm_up_when_due(&mut self) {
        let Some(from) = self.counts_from else { return };
        if self.components.sim.queue.next_time().is_none_or(|at| at > from.min(self.end)) {
            self.components.count_requests_anew(from);
            self.components.sim.world.count_replicas_anew(from);
            self.counts_from = None;
        }
    }

    /// Lets the next event happen and returns its time; `None` when nothing more happens before the end.
    pub fn step(&mut self) -> Option<SimTime> {
        let (now, event) = self.components.sim.queue.pop()?;
        if now > self.end {
            return None;
        }
        self.hash.record(now, &event);
        actors::handle(&mut self.components, now, event);
        self.components.sim.ec2.note_reserved(now);
        if let Some(checkers) = &mut self.checkers {
            let world = &self.components.sim.world;
            checkers.look(world, &|pod| world.pod_name(pod).to_owned());
        }
        Some(now)
    }

    /// Lets everything up to and including `until` happen.
    pub fn step_until(&mut self, until: SimTime) {
        while self.components.sim.queue.next_time().is_some_and(|at| at <= until) {
            if self.step().is_none() {
                return;
            }
        }
    }

    /// Lets events happen while `goes_on` holds of their number and the time of the last; returns this time, or the end if nothing
    /// more happens.
    fn step_while(&mut self, goes_on: &dyn Fn(u64, SimTime) -> bool) -> SimTime {
        let (mut events, mut last) = (0, SimTime::ZERO);
        while goes_on(events, last) {
            self.end_warm_up_when_due();
            let Some(now) = self.step() else { return self.end };
            (events, last) = (events + 1, now);
        }
        last
    }

    /// The running simulation's components.
    pub fn components(&self) -> &Components<'s> {
        &self.components
    }

    /// The same for [inquiries](crate::actors::inquiry), which bring prices up to date before they answer.
    pub fn components_mut(&mut self) -> &mut Components<'s> {
        &mut self.components
    }
}

/// A running simulation as those see it who follow its progress.
pub struct Progress<'w> {
    /// The simulated time.
    pub now: SimTime,
    world: &'w World,
}

impl Progress<'_> {
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
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<Outcome, CatalogError> {
    let Resolved { setup, warnings } = resolve(scenario, policy, catalog, seed)?;
    let mut simulation = Simulation::new(&setup);
    // This one is never told to stop.
    let _ = drive(&mut simulation, &mut unstoppable(progress));
    Ok(concluded(simulation, scenario, policy, warnings))
}

/// The same as [`run`], as long as `progress` lets it go on; `None` if it did not. Who writes no `metrics.om` does not keep what
/// only that is made from (`keeps_meters`): up to a tenth of the memory.
///
/// # Errors
/// If the catalog has no prices for the scenario's region.
pub fn run_while(
    scenario: &Scenario,
    policy: &PolicyVariant,
    catalog: &Catalog,
    (seed, keeps_meters): (u64, bool),
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<Option<Outcome>, CatalogError> {
    let Resolved { mut setup, warnings } = resolve(scenario, policy, catalog, seed)?;
    setup.keeps_meters = keeps_meters;
    let mut simulation = Simulation::new(&setup);
    if drive(&mut simulation, progress).is_break() {
        return Ok(None);
    }
    Ok(Some(concluded(simulation, scenario, policy, warnings)))
}

/// The same as [`run`], unless somebody sets `unwanted`, which is looked at after every event; `None` then.
///
/// # Errors
/// If the catalog has no prices for the scenario's region.
pub fn run_unless(
    scenario: &Scenario,
    policy: &PolicyVariant,
    catalog: &Catalog,
    seed: u64,
    unwanted: &AtomicBool,
) -> Result<Option<Outcome>, CatalogError> {
    if unwanted.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let Resolved { setup, warnings } = resolve(scenario, policy, catalog, seed)?;
    if unwanted.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let mut simulation = Simulation::new(&setup);
    let mut look = |_: &Progress<'_>| match unwanted.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    if drive_told(&mut simulation, 1, &mut look).is_break() {
        return Ok(None);
    }
    Ok(Some(concluded(simulation, scenario, policy, warnings)))
}

/// What a simulation that is over leaves behind.
fn concluded(simulation: Simulation<'_>, scenario: &Scenario, policy: &PolicyVariant, warnings: Caveats) -> Outcome {
    let Simulation { components, hash, .. } = simulation;
    run_summary::conclude(components, scenario, policy, warnings, hash.value())
}

/// What follows a simulation and never ends it.
fn unstoppable<'p>(
    progress: &'p mut dyn FnMut(&Progress<'_>),
) -> impl FnMut(&Progress<'_>) -> ControlFlow<()> + use<'p> {
    |moment| {
        progress(moment);
        ControlFlow::Continue(())
    }
}

/// Lets everything happen, as long as `progress` lets it.
fn drive(
    simulation: &mut Simulation<'_>,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    drive_told(simulation, PROGRESS_EVERY, progress)
}

/// The same; `progress` is asked after every so many events.
fn drive_told(
    simulation: &mut Simulation<'_>,
    every: u64,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut events: u64 = 0;
    let mut last = SimTime::ZERO;
    loop {
        simulation.end_warm_up_when_due();
        let Some(now) = simulation.step() else { break };
        if events.is_multiple_of(every) {
            progress(&Progress { now, world: &simulation.components.sim.world })?;
        }
        (events, last) = (events + 1, now);
    }
    progress(&Progress { now: last, world: &simulation.components.sim.world })
}

/// Why a checked run has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum CheckedError {
    /// The catalog has no prices for the scenario's region.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// What is kept is not what comes out anew, or what must always hold does not.
    #[error("the check failed {} after the start: {what}", *.at - SimTime::ZERO)]
    Disagreement {
        /// When in simulated time.
        at: SimTime,
        /// What.
        what: Disagreement,
    },
}

/// The same as [`run`], but everything that is kept for speed is worked out anew at each use and compared, and after each event is
/// looked whether the cluster is as it must be. The outcome is the same to the byte.
///
/// # Errors
/// If the catalog has no prices for the scenario's region, and at the first comparison that comes out otherwise.
pub fn run_checked(
    scenario: &Scenario,
    policy: &PolicyVariant,
    catalog: &Catalog,
    seed: u64,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<Outcome, CheckedError> {
    let Resolved { mut setup, warnings } = resolve(scenario, policy, catalog, seed)?;
    setup.set_check(Check::Always);
    let mut running = None;
    // A simulation that unwound is looked at for its clock alone.
    let mut progress = unstoppable(progress);
    let driven = AssertUnwindSafe(|| drive(running.insert(Simulation::new(&setup)), &mut progress));
    if let Err(unwound) = catch_unwind(driven) {
        let at = running.map_or(SimTime::ZERO, |simulation| simulation.components.sim.queue.now());
        return Err(CheckedError::Disagreement { at, what: told_by(unwound) });
    }
    let simulation = running.take().unwrap_or_else(|| Simulation::new(&setup));
    Ok(concluded(simulation, scenario, policy, warnings))
}

/// What a simulation unwound with: a disagreement, or the message of an assertion.
fn told_by(unwound: Box<dyn Any + Send>) -> Disagreement {
    let message = unwound.downcast::<Disagreement>().or_else(|other| {
        let text = other.downcast_ref::<String>().cloned();
        let text = text.or_else(|| other.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        text.map(|text| Box::new(Disagreement(text))).ok_or(other)
    });
    message.map_or_else(|other| resume_unwind(other), |told| *told)
}

/// Events between two reports of progress.
const PROGRESS_EVERY: u64 = 256;

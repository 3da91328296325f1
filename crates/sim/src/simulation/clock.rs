//! Clusters of a fleet: one alone, or several on one clock.
//!
//! Must not: decide which clusters run together (`coupled`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use super::{Progress, Resolved, Simulation, concluded, drive, resolve};
use crate::actors::{self, Setup};
use crate::catalog::{Catalog, CatalogError};
use crate::coupled::{Demand, Member, MemberRun, ranked};
use crate::domain::SimTime;
use nodecast_settings::Caveats;

/// Events between two reports of progress.
const PROGRESS_EVERY: u64 = 4_096;

/// The setup of a member, and the warnings about it.
fn resolved<'s>(member: &Member<'s>, catalog: &Catalog) -> Result<(Setup<'s>, Caveats), CatalogError> {
    let Resolved { mut setup, warnings } = resolve(member.scenario, member.policy, catalog, member.seeds.cluster)?;
    setup.keeps_meters = member.keeps_meters;
    Ok((setup, warnings))
}

/// The result of a member whose simulation has ended.
fn member_run(simulation: Simulation<'_>, member: &Member<'_>, warnings: Caveats) -> MemberRun {
    let demand = Demand::new(simulation.context.ec2.settings().api);
    MemberRun { outcome: concluded(simulation, member.scenario, member.policy, warnings), demand }
}

/// See [`crate::coupled::alone`].
pub(crate) fn run_member(
    member: &Member<'_>,
    catalog: &Catalog,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<Option<MemberRun>, CatalogError> {
    let (setup, warnings) = resolved(member, catalog)?;
    let mut simulation = Simulation::new(&setup);
    if drive(&mut simulation, progress).is_break() {
        return Ok(None);
    }
    Ok(Some(member_run(simulation, member, warnings)))
}

/// See [`crate::coupled::together`].
pub(crate) fn run_together(
    members: &[Member<'_>],
    _shares_pools: bool,
    catalog: &Catalog,
    progress: &mut dyn FnMut(SimTime) -> ControlFlow<()>,
) -> Result<Option<Vec<MemberRun>>, CatalogError> {
    let order = ranked(members);
    let resolved: Result<Vec<_>, _> = order.iter().map(|&at| resolved(&members[at], catalog)).collect();
    let (setups, warnings): (Vec<Setup<'_>>, Vec<Caveats>) = resolved?.into_iter().unzip();
    let mut clock = Clock { simulations: setups.iter().map(Simulation::before_start).collect() };
    if clock.drive(progress).is_break() {
        return Ok(None);
    }
    let ended = clock.simulations.into_iter().zip(warnings).zip(order);
    let mut runs: Vec<(usize, MemberRun)> =
        ended.map(|((simulation, warnings), at)| (at, member_run(simulation, &members[at], warnings))).collect();
    runs.sort_by_key(|(at, _)| *at);
    Ok(Some(runs.into_iter().map(|(_, run)| run).collect()))
}

/// Simulations on one clock, in the order of ties.
struct Clock<'s> {
    simulations: Vec<Simulation<'s>>,
}

impl Clock<'_> {
    /// Runs all simulations to their ends.
    fn drive(&mut self, progress: &mut dyn FnMut(SimTime) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut waiting = BinaryHeap::new();
        for (rank, simulation) in self.simulations.iter_mut().enumerate() {
            actors::begin(&mut simulation.context);
            waiting.extend(simulation.context.queue.next_time().map(|at| Reverse((at, rank))));
        }
        let mut events: u64 = 0;
        while let Some(Reverse((_, rank))) = waiting.pop() {
            // One simulation goes on until the next event is another's.
            let first = waiting.peek().map(|Reverse(first)| *first);
            let simulation = &mut self.simulations[rank];
            loop {
                simulation.end_warm_up_when_due();
                let Some(now) = simulation.step() else { break };
                if events.is_multiple_of(PROGRESS_EVERY) {
                    progress(now)?;
                }
                events += 1;
                let Some(next) = simulation.context.queue.next_time() else { break };
                if first.is_some_and(|first| first < (next, rank)) {
                    waiting.push(Reverse((next, rank)));
                    break;
                }
            }
        }
        ControlFlow::Continue(())
    }
}

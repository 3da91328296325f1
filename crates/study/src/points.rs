//! Simulations reduced to their points, run side by side.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::catalog::{Catalog, CatalogError};
use crate::scenario::{Scenario, ScenarioError};
use crate::simulation::{self, Outcome};

pub use nodecast_points::point::{Cell, MET_IN, Objective, Plan, Point, point, seeds};

/// What watches a run of many simulations.
pub trait ProgressObserver: Sync {
    /// The simulation with this number is done. Called from any thread, in any order.
    fn done(&self, index: usize, point: &Point);
    /// Whether to begin no further simulation.
    fn stopped(&self) -> bool;
}

/// Simulates `policy` of `scenario` with `seed`.
///
/// # Errors
/// If the scenario has no policy of that name, or the catalog no prices for its region.
pub fn simulate(scenario: &Scenario, catalog: &Catalog, cell: Cell<'_>) -> Result<Point, PointError> {
    outcome(scenario, catalog, cell).map(|outcome| point(cell, &outcome))
}

/// [`simulate`] with all that happened.
///
/// # Errors
/// As [`simulate`].
pub fn outcome(scenario: &Scenario, catalog: &Catalog, cell: Cell<'_>) -> Result<Outcome, PointError> {
    let policy = scenario.for_policy(Some(cell.policy)).map_err(Box::new)?;
    Ok(simulation::run(scenario, policy, catalog, cell.seed, &mut |_| {})?)
}

/// Why a simulation gave no point.
#[derive(Debug, thiserror::Error)]
pub enum PointError {
    /// The scenario lacks the policy.
    #[error(transparent)]
    Scenario(#[from] Box<ScenarioError>),
    /// The prices cannot be used.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// Runs `cells` on all threads of the current pool, one simulation to a thread. The points come with the numbers of their
/// cells and in the order of `cells`, those that a stop kept from running left out.
///
/// # Errors
/// The first error of a simulation, in order of cells.
pub fn run(
    cells: &[Cell<'_>],
    simulate: &(dyn Fn(Cell<'_>) -> Result<Point, PointError> + Sync),
    watcher: &dyn ProgressObserver,
) -> Result<Vec<(usize, Point)>, PointError> {
    let failed = AtomicBool::new(false);
    let results: Vec<Option<Result<(usize, Point), PointError>>> = cells
        .par_iter()
        .with_max_len(1)
        .map(|cell| {
            if watcher.stopped() || failed.load(Ordering::Relaxed) {
                return None;
            }
            let point = simulate(*cell);
            match &point {
                Ok(point) => watcher.done(cell.index, point),
                Err(_) => failed.store(true, Ordering::Relaxed),
            }
            Some(point.map(|point| (cell.index, point)))
        })
        .collect();
    results.into_iter().flatten().collect()
}

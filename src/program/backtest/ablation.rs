//! What an ablation simulates beside the answer: other parts of the record in the place of the model, and no calibration.

use std::collections::BTreeSet;

use nodecast_observed::claims::{self, Sources};

use super::Backtest;
use crate::evidence::backtest::Recorded;
use crate::evidence::calibration::change::Change;
use crate::evidence::calibration::{FitOutcome, fit};
use crate::program::{Failure, edits, prices};
use crate::scenario::{Edit, Scenario};

/// A scenario to simulate, and what is swapped in it.
pub(super) struct Swap {
    pub(super) swapped_in: Vec<Recorded>,
    pub(super) without_calibration: bool,
    pub(super) scenario: Scenario,
}

/// What can be swapped beside the market.
pub(super) struct Ablation {
    /// The scenario as it would be without its calibration; `None` where it has none.
    pub(super) uncalibrated: Option<Scenario>,
    /// Start-up times as they are fitted to the record; empty where it tells none.
    pub(super) start_up: Vec<Change>,
}

impl Ablation {
    /// Reads the scenario again without its calibration, and fits start-up times to the record.
    ///
    /// # Errors
    /// If the record tells of lives in a form that cannot be read.
    pub(super) fn load(of: &Backtest) -> Result<Self, Failure> {
        Ok(Self { uncalibrated: uncalibrated(of)?, start_up: start_up(of)? })
    }
}

fn uncalibrated(of: &Backtest) -> Result<Option<Scenario>, Failure> {
    if of.scenario.calibrated.is_none() {
        return Ok(None);
    }
    let mut changes = of.request.edits.clone();
    changes.push(Edit::new("calibration", "null")?);
    let (scenario, _) = edits::load(&of.request.scenario, of.prices.catalog(), &changes)?;
    Ok(Some(scenario))
}

/// The record's own calls, boots and pulls. What the scenario states of them is swapped as well: the question is what it would come to
/// if nodes had taken as long as they did.
fn start_up(of: &Backtest) -> Result<Vec<Change>, Failure> {
    let history = claims::read(&Sources { paths: vec![of.request.recorded.clone()], window: None })?;
    let region = of.prices.catalog().region(of.scenario.region.as_str()).map_err(prices::unusable)?;
    let policy = of.scenario.for_policy(Some(&of.policy))?;
    let fitted = fit(&history, (&of.scenario, policy), &region, &BTreeSet::new());
    let taken =
        fitted.parameters.into_iter().filter(|one| matches!(one.taken, FitOutcome::Measured | FitOutcome::Shrunk));
    let of_start_up = |change: &Change| {
        matches!(
            change,
            Change::FleetCall(_) | Change::BootUntilRegistered(..) | Change::CniReady(..) | Change::PullRates(..)
        )
    };
    Ok(taken.filter_map(|one| one.change).filter(of_start_up).collect())
}

//! What the nodes cost with which the run of a new scenario begins: the number to compare with the `nodes` line of its first run.

use std::path::Path;

use crate::catalog::Catalog;
use crate::domain::{Currency, HourlyRate, SimTime};
use crate::scenario::{Edit, Limits};
use crate::simulation;

/// The shortest run that AWS bills by the second: its minimum is a minute.
const SHORTEST: [&str; 2] = ["duration=1m", "warm_up=0s"];

/// What an hour of the nodes costs that are there as the run begins, with all that the `nodes` line of a run has: machines, volumes,
/// addresses. `None` where there are none, or where the scenario cannot be run so.
pub fn per_hour(scenario: &Path, catalog: &Catalog) -> Option<(Currency, HourlyRate)> {
    let edits: Vec<Edit> = SHORTEST.into_iter().map(Edit::parse).collect::<Result<_, _>>().ok()?;
    let (scenario, _) = crate::scenario::load_edited(scenario, catalog, &Limits::default(), &edits).ok()?;
    let policy = scenario.for_policy(None).ok()?;
    let outcome = simulation::run(&scenario, policy, catalog, scenario.seed, &mut |_| {}).ok()?;
    // A price that changes makes another line, which begins later; so does a node that is launched.
    let is_first = |from: SimTime| from <= SimTime::ZERO;
    let lines = outcome.bill.net().iter().filter(|line| line.node.is_some() && is_first(line.from));
    let rate: HourlyRate = lines.map(|line| line.rate).sum();
    (rate > HourlyRate::ZERO).then_some((outcome.bill.currency, rate))
}

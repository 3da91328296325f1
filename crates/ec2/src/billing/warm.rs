//! Lines for instances in warm pools: the time that they run, and their volumes.

use super::disks::ListedVolumes;
use super::net::{self, Coverage};
use super::{Charge, HOURS_PER_MONTH, Listed, Stretch, billed_time, blank, charge, charges};
use crate::Ec2;
use crate::bill::{BillItem, BillLine};
use crate::commitments::{Platform, Usage, UsageKind};
use crate::ec2::{Pool, WarmLife};
use nodecast_model::domain::{Money, SimTime};

/// A stretch for which an instance of a warm pool runs.
#[derive(Clone, Debug)]
pub(super) struct WarmRun {
    pool: Pool,
    from: SimTime,
    to: SimTime,
    lines: Vec<BillLine>,
}

/// The runs of all instances in warm pools up to `end`, in order of entry.
pub(super) fn runs(ec2: &mut Ec2, end: SimTime) -> Vec<WarmRun> {
    let lives: Vec<WarmLife> = ec2.warm_lives().iter().filter(|life| life.entered < end).cloned().collect();
    let mut all = Vec::new();
    for life in &lives {
        for &(from, until) in &life.runs {
            let to = until.unwrap_or(end).min(end);
            if from >= to {
                continue;
            }
            let prices = ec2.market().intervals(life.pool, from, to);
            let line = |Charge { at, billed, amount }| {
                let line = of_life(BillItem::WarmPool, life, at.from, at.to);
                BillLine { billed, rate: at.rate, amount, quality: at.quality, ..line }
            };
            let lines = charges(&prices).into_iter().map(line).collect();
            all.push(WarmRun { pool: life.pool, from, to, lines });
        }
    }
    all
}

/// What runs cost without commitments.
pub(super) fn total(runs: &[WarmRun]) -> Money {
    lines(runs).map(|line| line.amount).sum()
}

/// The lines of runs.
pub(super) fn lines(runs: &[WarmRun]) -> impl Iterator<Item = &BillLine> {
    runs.iter().flat_map(|run| &run.lines)
}

/// What each run uses between two times that commitments can cover, with its position.
pub(super) fn usage(runs: &[WarmRun], (from, to): Stretch) -> impl Iterator<Item = (usize, Stretch, Usage)> {
    runs.iter().enumerate().filter_map(move |(number, run)| {
        let (began, ended) = (run.from.max(from), run.to.min(to));
        let rate = run.lines.first()?.rate;
        let usage = Usage {
            kind: UsageKind::Instance(run.pool.instance_type),
            platform: Platform::Linux,
            zone: run.pool.zone,
            rate,
            ran: ended.saturating_since(began),
            reserved: false,
        };
        (began < ended).then_some((number, (began, ended), usage))
    })
}

/// What is left to pay of each run, and what the commitments cost that cover the rest.
pub(super) fn net_lines(runs: &[WarmRun], coverage: &Coverage) -> Vec<BillLine> {
    let net_run = |(number, run): (usize, &WarmRun)| match (coverage.of_warm(number), run.lines.first()) {
        (Some(pieces), Some(first)) => net::of_life(first.rate, &run.lines, pieces, coverage.qualities()),
        _ => run.lines.clone(),
    };
    runs.iter().enumerate().flat_map(net_run).collect()
}

/// Lines for the volumes of instances in warm pools up to `end`.
pub(super) fn volumes(ec2: &Ec2, listed: &mut Listed, end: SimTime) -> Vec<BillLine> {
    let volumes = ListedVolumes::new(ec2.region().volumes, ec2.settings().billing.volume_per_month, listed.is_known());
    let mut lines = Vec::new();
    for life in ec2.warm_lives().iter().filter(|life| life.entered < end) {
        let to = life.left.unwrap_or(end).min(end);
        if let Some((per_month, quality)) = volumes.of_node(&life.volumes, listed).filter(|_| life.entered < to) {
            let (rate, billed) = (per_month.scaled(1, HOURS_PER_MONTH), billed_time(to - life.entered));
            let line = of_life(BillItem::WarmPoolVolume, life, life.entered, to);
            lines.push(BillLine { billed, rate, amount: charge(rate, billed), quality, ..line });
        }
    }
    lines
}

/// A line of an instance of a warm pool that charges nothing yet.
fn of_life(item: BillItem, life: &WarmLife, from: SimTime, to: SimTime) -> BillLine {
    let (instance_type, zone) = (Some(life.pool.instance_type), Some(life.pool.zone));
    BillLine { instance_type, zone, ..blank(item, None, from, to) }
}

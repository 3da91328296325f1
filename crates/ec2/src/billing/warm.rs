//! Lines for instances in warm pools: the time that they run, and their volumes.
//!
//! Deviation: commitments do not cover them.

use super::disks::ListedVolumes;
use super::{Charge, HOURS_PER_MONTH, Listed, billed_time, blank, charge, charges};
use crate::Ec2;
use crate::bill::{BillItem, BillLine};
use crate::ec2::WarmLife;
use nodecast_model::domain::SimTime;

/// Lines of everything that warm pools cost up to `end`.
pub(super) fn lines(ec2: &mut Ec2, listed: &mut Listed, end: SimTime) -> Vec<BillLine> {
    let lives: Vec<WarmLife> = ec2.warm_lives().iter().filter(|life| life.entered < end).cloned().collect();
    let volumes = ListedVolumes::new(ec2.region().volumes, ec2.settings().billing.volume_per_month, listed.is_known());
    let mut lines = Vec::new();
    for life in &lives {
        for &(from, until) in &life.runs {
            let to = until.unwrap_or(end).min(end);
            let prices = if from < to { ec2.market().intervals(life.pool, from, to) } else { Vec::new() };
            lines.extend(charges(&prices).into_iter().map(|Charge { at, billed, amount }| {
                let line = of_life(BillItem::WarmPool, life, at.from, at.to);
                BillLine { billed, rate: at.rate, amount, quality: at.quality, ..line }
            }));
        }
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

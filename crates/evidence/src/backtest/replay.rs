//! What was recorded, put in the place of what the scenario models: so a back-test judges the simulator and not the market.

use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::figures::Window;
use super::history::{History, is_reclaim};
use crate::cloud::faults::{Fault, FaultKind, PoolSelector, Victims};
use crate::cloud::settings::{ReplayedPrice, SpotPrices};
use crate::domain::well_known;
use crate::domain::{HourlyRate, SimDuration, SimTime, Symbol};
use crate::load::Curve;
use crate::scenario::Scenario;
use crate::scenario::definition::{LoadSpec, OpenRequests, Requests};

/// Something recorded that takes the place of a model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recorded {
    /// What Spot instances cost, hour by hour.
    SpotPrices,
    /// Which Spot instances EC2 took, and when.
    Reclaims,
    /// How long nodes and images took, as it is fitted to the record itself.
    StartUp,
    /// What workloads were asked for in the judged time, in a forecast that does not know it.
    Demand,
}

impl Recorded {
    /// Those of the market, which no scenario can foresee: a replay has them all.
    pub const MARKET: [Self; 2] = [Self::SpotPrices, Self::Reclaims];

    /// Its name for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SpotPrices => "recorded Spot prices",
            Self::Reclaims => "recorded reclaims",
            Self::StartUp => "recorded start-up times",
            Self::Demand => "recorded demand",
        }
    }
}

/// EC2's notice of an interruption comes so long before it.
const NOTICE: SimDuration = SimDuration::from_secs(120);

/// The scenario with what was recorded of `what` in the place of its model; `None` where nothing of it was recorded, or where it is no
/// part of the market.
///
/// Prices are those of the pools that were used, and of the others what Karpenter saw of them; without that they keep the level of the
/// price data. A reclaim strikes one of the Spot instances that run then: which types and zones these are is luck, how many were reclaimed
/// and when is not.
pub fn with_recorded(scenario: &Scenario, history: &History, what: Recorded) -> Option<Scenario> {
    let shift = shift(scenario.start, history.start);
    let mut scenario = scenario.clone();
    let cloud = Arc::make_mut(&mut scenario.ec2.cloud);
    match what {
        Recorded::SpotPrices => cloud.prices = SpotPrices::Replay(spot_prices(history, shift)?),
        Recorded::Reclaims if !history.knows_ends() => return None,
        Recorded::Reclaims => {
            cloud.interruptions.exposure_hours = None;
            // Those that the scenario plans are in the record.
            cloud.faults.retain(|fault| !matches!(fault.kind, FaultKind::SpotInterruption { .. }));
            let end = SimTime::ZERO + scenario.duration;
            cloud.faults.extend(reclaims(history, shift).filter(|fault| SimTime::ZERO <= fault.at && fault.at < end));
            cloud.faults.sort_by_key(|fault| fault.at);
        }
        Recorded::StartUp | Recorded::Demand => return None,
    }
    Some(scenario)
}

/// How much later an instant of the history is in the scenario, in microseconds; negative where it is earlier.
fn shift(scenario: Timestamp, history: Timestamp) -> i64 {
    i64::try_from((history.as_nanosecond() - scenario.as_nanosecond()) / 1_000).unwrap_or(0)
}

fn shifted(instant: SimTime, micros: i64) -> SimTime {
    SimTime::from_micros(instant.as_micros().saturating_add(micros))
}

/// What was paid in pools that were used, and what Karpenter saw of the others.
fn spot_prices(history: &History, shift: i64) -> Option<Vec<ReplayedPrice>> {
    let charges = history.charges.iter().flatten();
    let spot = charges.filter(|charge| charge.is_instance() && charge.capacity_type == Some(well_known::SPOT));
    let mut prices: Vec<ReplayedPrice> = spot
        .filter_map(|charge| {
            let micros = charge.machine_time.as_micros();
            let nanos = charge.amount.as_nanos().checked_mul(3_600_000_000)?.checked_div(micros.into())?;
            Some(ReplayedPrice {
                instance_type: charge.instance_type?,
                zone: charge.zone?,
                at: shifted(charge.from, shift),
                rate: HourlyRate::from_nanos(i64::try_from(nanos).ok().filter(|nanos| *nanos > 0)?),
            })
        })
        .collect();
    let paid: BTreeSet<(Symbol, Symbol)> = prices.iter().map(|price| (price.instance_type, price.zone)).collect();
    let seen = history.spot_prices.iter().flatten().filter(|price| !paid.contains(&(price.instance_type, price.zone)));
    prices.extend(seen.map(|price| ReplayedPrice {
        instance_type: price.instance_type,
        zone: price.zone,
        at: shifted(price.at, shift),
        rate: price.rate,
    }));
    prices.sort_unstable();
    prices.dedup_by_key(|price| (price.instance_type, price.zone, price.at));
    (!prices.is_empty()).then_some(prices)
}

fn reclaims(history: &History, shift: i64) -> impl Iterator<Item = Fault> {
    let pools = PoolSelector { family: None, instance_type: None, zone: None, capacity_type: Some(well_known::SPOT) };
    let taken = history.nodes.iter().flatten().filter(|node| node.end.is_some_and(is_reclaim));
    taken.filter_map(move |node| {
        // Karpenter asks for a node's deletion as it reads the notice.
        let at = shifted(node.deletion_requested.or(node.terminating)?, shift);
        Some(Fault {
            at,
            until: at,
            kind: FaultKind::SpotInterruption { pools, victims: Victims::Count(1), before: NOTICE },
        })
    })
}

/// How much of the time before a split comes again and again: a week where there is one, so that weekends come on weekends, else as many
/// whole days as there are.
fn period(training: Window) -> Option<SimDuration> {
    const DAY: i64 = 86_400;
    let days = training.length().as_secs() / DAY;
    let period = SimDuration::from_secs(if days >= 7 { 7 * DAY } else { days * DAY });
    (period > SimDuration::ZERO).then_some(period)
}

/// The scenario with the demand of its last whole days before `split`, again and again from there on: what would have been known
/// then. Requests, CPU and memory in use, and messages of queues are demand; [`not_repeated`] names what stays as it is.
pub fn forecast(scenario: &Scenario, training: Window) -> Option<Scenario> {
    let period = period(training)?;
    let mut scenario = scenario.clone();
    let end = SimTime::ZERO + scenario.duration;
    for load in &mut scenario.load {
        if let Requests::Open(open) | Requests::Cpu(open) = &mut load.requests {
            repeat_known(open, load.at, training.until, period, end);
        }
    }
    let used = scenario.usage.iter_mut().flat_map(|usage| usage.cpu.iter_mut().chain(usage.memory.iter_mut()));
    let queued = scenario.queues.iter_mut().flat_map(|queue| queue.messages.iter_mut());
    used.chain(queued).for_each(|open| repeat_known(open, SimTime::ZERO, training.until, period, end));
    Some(scenario)
}

/// What a forecast leaves as the scenario has it after the split, a sentence each.
pub fn not_repeated(scenario: &Scenario, training: Window) -> Vec<String> {
    let mut sentences = Vec::new();
    if scenario.pods.as_deref().is_some_and(|trace| trace.rows.iter().any(|row| row.at >= training.until)) {
        sentences.push(
            "pods of the trace come and go after the split as they were recorded, and not as was known at the split"
                .to_owned(),
        );
    }
    let Some(period) = period(training) else { return sentences };
    let goes_on = |load: &&LoadSpec| load.until.is_none_or(|until| until > training.until);
    let late = |load: &&LoadSpec| training.until.saturating_since(load.at) < period;
    let loads: BTreeSet<String> =
        scenario.load.iter().filter(goes_on).filter(late).map(|load| load.workload.to_string()).collect();
    if !loads.is_empty() {
        let names = loads.into_iter().collect::<Vec<_>>().join(", ");
        sentences.push(format!(
            "loads that begin less than {period} before the split have nothing that comes again: after it they are as the scenario has them ({names})"
        ));
    }
    sentences
}

/// Demand that began at `began`, with that of the last `period` before `split` in the place of what came after it.
fn repeat_known(open: &mut OpenRequests, began: SimTime, split: SimTime, period: SimDuration, end: SimTime) {
    // Curves count from the start of their load.
    let known_until = split.saturating_since(began);
    let Some(known_from) = known_until.as_micros().checked_sub(period.as_micros()).filter(|from| *from >= 0) else {
        return;
    };
    let back = SimDuration::from_micros(-known_from);
    let length = SimDuration::from_micros(end.saturating_since(began).as_micros() - known_from);
    let again = (*open.curve).clone().shifted(back).repeated(period, back, length);
    let again = again.shifted(SimDuration::from_micros(known_from));
    // What was known stays. At the seam the repeated curve takes up the rate that the known one ends with.
    let known = open.curve.steps().iter().filter(|step| step.from < known_until);
    let steps = known.chain(again.steps().iter().filter(|step| step.from >= known_until)).copied();
    open.curve = Arc::new(Curve::from_steps(steps.collect()));
    open.arrivals = None;
}

#[cfg(test)]
mod tests {

    use super::spot_prices;
    use crate::backtest::history::{Charge, History};
    use crate::cloud::BillItem;
    use crate::domain::{HourlyRate, Money, SimDuration, SimTime, Symbol, well_known};

    #[test]
    fn multi_instance_pool_replays_at_unit_price() {
        let (from, until) = (SimTime::ZERO, SimTime::ZERO + SimDuration::from_secs(3_600));
        let charge = Charge {
            item: Symbol::new(BillItem::Instance.as_str()),
            instance_type: Some(Symbol::new("m6i.xlarge")),
            zone: Some(Symbol::new("us-east-1a")),
            capacity_type: Some(well_known::SPOT),
            from,
            until,
            machine_time: SimDuration::from_secs(40 * 3_600),
            amount: Money::from_nanos(40 * 70_000_000),
        };
        let hour = SimDuration::from_secs(3_600);
        let history = History { charges: Some(vec![charge]), ..History::unknown(jiff::Timestamp::UNIX_EPOCH, hour) };
        let prices = spot_prices(&history, 0).unwrap();
        assert_eq!(prices.iter().map(|price| price.rate).collect::<Vec<_>>(), [HourlyRate::from_nanos(70_000_000)]);
    }
}

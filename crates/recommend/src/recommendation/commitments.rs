//! How much to commit to: a Savings Plan for each family against the On-Demand hours that were simulated.
//!
//! A plan for `c` an hour costs `c`, used or not, and takes as much On-Demand usage off the bill as `c` buys at the plan's rate. What is
//! cheapest follows from the hours' usage at that rate: the amount that all but the discount's share of the hours use.
//!
//! A Compute plan is for the usage of all families together, at a smaller discount. Three years are worked out for comparison.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::levers::{Kind, Level, Lever};
use crate::catalog::{PriceQuality, Region};
use crate::cloud::billing::charge;
use crate::cloud::commitments::{Commitments, Platform, Usage, UsageKind, WHOLE, cover};
use crate::domain::{HourlyRate, Money, SimDuration, SimTime, Symbol};
use crate::scenario::Scenario;
use crate::world::outcome::Outcome;

/// Families that a commitment is looked for, those with the largest On-Demand bill.
const FAMILIES_MAX: usize = 3;
/// The family of a curve for all families together.
pub const ALL_FAMILIES: &str = "all families";
/// Discount of a Compute Savings Plan of one year without upfront payment, whatever the family: assumed.
///
/// Source: no table of AWS was found; comparisons of 2025 and 2026 that buyers publish have about 27% for current families.
const COMPUTE_DISCOUNT: f64 = 0.27;
/// Points of a curve.
const POINTS: usize = 20;
/// A commitment below this is not worth a contract, per hour.
const LEAST: f64 = 0.01;

/// What a month costs with a commitment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CurvePoint {
    /// The commitment for an hour.
    pub per_hour: f64,
    /// The family's On-Demand usage and the commitment, for a month of 730 hours.
    pub cost_per_month: f64,
    /// The share of the commitment that covers nothing.
    pub unused: f64,
}

/// A family's commitment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FamilyCurve {
    /// The family.
    pub family: String,
    /// The discount of a year without upfront payment, 0 to 1.
    pub discount: f64,
    /// Quality of that discount, as bills write it.
    #[serde(default)]
    pub discount_quality: String,
    /// The commitment for an hour that costs least against the hours that were simulated.
    pub best_per_hour: f64,
    /// What a month costs with that commitment, as the curve has it of others.
    pub best_cost_per_month: f64,
    /// What other commitments cost, from none on.
    pub curve: Vec<CurvePoint>,
    /// The same for three years, paid all upfront; `null` where its price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub three_years: Option<LongerTerm>,
}

/// A commitment for three years, paid all upfront.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LongerTerm {
    /// The discount, 0 to 1.
    pub discount: f64,
    /// Quality of that discount, as bills write it.
    pub discount_quality: String,
    /// The commitment for an hour that costs least.
    pub best_per_hour: f64,
    /// What a month costs with that commitment.
    pub best_cost_per_month: f64,
}

/// On-Demand usage of one hour at On-Demand prices, by family.
pub type Hour = BTreeMap<Symbol, f64>;

/// The family of an instance type: what stands before the dot.
fn family_of(kind: Symbol) -> Symbol {
    Symbol::new(kind.as_str().split('.').next().unwrap_or_default())
}

/// The family that the nodes of a run which ended at `end` cost most of.
pub fn dearest_family(outcome: &Outcome, end: SimTime) -> Option<Symbol> {
    let mut sums: BTreeMap<Symbol, f64> = BTreeMap::new();
    for node in &outcome.record.nodes {
        let Some((kind, running)) = node.instance_type.zip(node.running) else { continue };
        let ran = node.terminating.unwrap_or(end).saturating_since(running).as_secs_f64();
        *sums.entry(family_of(kind)).or_insert(0.0) += node.rate.as_f64() * ran;
    }
    sums.into_iter().max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0))).map(|sum| sum.0)
}

/// The running time of an On-Demand instance.
#[derive(Clone, PartialEq, Debug)]
pub struct OnDemandTime {
    instance_type: Symbol,
    zone: Symbol,
    rate: HourlyRate,
    from: SimTime,
    to: SimTime,
}

/// The running times of all On-Demand instances of a run.
pub fn on_demand_times(outcome: &Outcome, scenario: &Scenario) -> Vec<OnDemandTime> {
    let end = SimTime::ZERO + scenario.duration;
    let nodes = outcome.record.nodes.iter();
    let on_demand = nodes.filter(|node| node.capacity_type.is_some_and(|name| name.as_str() == "on-demand"));
    let time = on_demand.filter_map(|node| {
        let (instance_type, zone, from) = (node.instance_type?, node.zone?, node.running?);
        let to = node.terminating.unwrap_or(end).min(end);
        Some(OnDemandTime { instance_type, zone, rate: node.rate, from, to })
    });
    time.filter(|time| time.from < time.to).collect()
}

/// The On-Demand usage of each hour of a run of this length.
pub fn hours(times: &[OnDemandTime], duration: SimDuration) -> Vec<Hour> {
    let whole = (duration.as_secs_f64() / 3_600.0).max(1e-9);
    let mut hours: Vec<Hour> = vec![Hour::new(); libm::ceil(whole) as usize];
    for time in times {
        let at = |time: SimTime| time.as_secs_f64() / 3_600.0;
        let (from, to) = (at(time.from), at(time.to).min(whole));
        for (number, hour) in hours.iter_mut().enumerate() {
            let share = to.min(number as f64 + 1.0) - from.max(number as f64);
            if share > 0.0 {
                *hour.entry(family_of(time.instance_type)).or_insert(0.0) += share * time.rate.as_f64();
            }
        }
    }
    hours
}

/// Cost that Savings Plans add to a run without commitments; negative if they save. No node depends on a plan, so no simulation is needed.
pub fn added_cost(times: &[OnDemandTime], bought: &Commitments, scenario: &Scenario) -> f64 {
    let hour = SimDuration::from_secs(3_600);
    let into_hour = SimDuration::from_secs(scenario.start.as_second().rem_euclid(3_600));
    let end = SimTime::ZERO + scenario.duration;
    let (mut from, mut to) = (SimTime::ZERO, SimTime::ZERO + (hour - into_hour));
    let mut added = 0.0;
    while from < end {
        to = to.min(end);
        let used = |time: &OnDemandTime| Usage {
            kind: UsageKind::Instance(time.instance_type),
            platform: Platform::Linux,
            zone: time.zone,
            rate: time.rate,
            ran: time.to.min(to).saturating_since(time.from.max(from)),
            reserved: false,
        };
        let usage: Vec<Usage> = times.iter().map(used).filter(|usage| usage.ran > SimDuration::ZERO).collect();
        let covered = cover(bought, &usage, to - from);
        let charged = usage.iter().zip(&covered.shares).map(|(usage, share)| charge(usage.rate, share.covered));
        added += covered.plan_fees.as_f64() - charged.sum::<Money>().as_f64();
        (from, to) = (to, to + hour);
    }
    added
}

/// The families that cost most On-Demand, with what to commit to each.
pub fn curves(hours: &[Hour], region: &Region) -> Vec<FamilyCurve> {
    let mut sums: BTreeMap<Symbol, f64> = BTreeMap::new();
    for (family, cost) in hours.iter().flatten() {
        *sums.entry(*family).or_insert(0.0) += cost;
    }
    let mut families: Vec<(Symbol, f64)> = sums.into_iter().collect();
    families.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    let count = families.len();
    families.truncate(FAMILIES_MAX);
    let share = |discount: u32| f64::from(discount) / f64::from(WHOLE);
    let curve = |(family, _): (Symbol, f64)| {
        let listed = region.commitment_discount(family)?;
        let (discount, quality) = listed.of_term(1, false)?;
        let curve = of_family(family, share(discount), hours);
        let longer = |(discount, quality): (u32, PriceQuality)| {
            let family = of_family(family, share(discount), hours);
            LongerTerm {
                discount: family.discount,
                discount_quality: quality.as_str().to_owned(),
                best_per_hour: family.best_per_hour,
                best_cost_per_month: family.best_cost_per_month,
            }
        };
        let three_years = listed.of_term(3, true).map(longer);
        Some(FamilyCurve { discount_quality: quality.as_str().to_owned(), three_years, ..curve })
    };
    let all = (count > 1).then(|| of_all_families(hours));
    families.into_iter().filter_map(curve).chain(all).collect()
}

/// A Compute plan for the usage of all families.
fn of_all_families(hours: &[Hour]) -> FamilyCurve {
    let all = Symbol::new(ALL_FAMILIES);
    let sums: Vec<Hour> = hours.iter().map(|hour| Hour::from([(all, hour.values().sum())])).collect();
    let quality = PriceQuality::Assumed.as_str().to_owned();
    FamilyCurve { discount_quality: quality, ..of_family(all, COMPUTE_DISCOUNT, &sums) }
}

fn of_family(family: Symbol, discount: f64, hours: &[Hour]) -> FamilyCurve {
    let used: Vec<f64> =
        hours.iter().map(|hour| hour.get(&family).copied().unwrap_or(0.0) * (1.0 - discount)).collect();
    let mut sorted = used.clone();
    sorted.sort_by(f64::total_cmp);
    // Of the hours, the discount's share uses less: each cent more would be paid for in vain too often.
    let rank = libm::floor(discount * sorted.len() as f64) as usize;
    let best = sorted.get(rank.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0);
    let most = sorted.last().copied().unwrap_or(0.0);
    let at = |per_hour: f64| {
        let over = |used: &f64| (used - per_hour).max(0.0) / (1.0 - discount);
        let unused = |used: &f64| (per_hour - used).max(0.0);
        let count = used.len().max(1) as f64;
        let mean = |of: &dyn Fn(&f64) -> f64| used.iter().map(of).sum::<f64>() / count;
        CurvePoint {
            per_hour,
            cost_per_month: (per_hour + mean(&over)) * crate::report::summary::HOURS_PER_MONTH,
            unused: if per_hour > 0.0 { mean(&unused) / per_hour } else { 0.0 },
        }
    };
    let curve = (0..=POINTS).map(|point| at(most * 1.2 * point as f64 / POINTS as f64)).collect();
    let best = at(floored(best));
    FamilyCurve {
        family: family.to_string(),
        discount,
        discount_quality: String::new(),
        best_per_hour: best.per_hour,
        best_cost_per_month: best.cost_per_month,
        curve,
        three_years: None,
    }
}

/// An amount as somebody would commit it: in thousandths, never more than what is best.
fn floored(amount: f64) -> f64 {
    libm::floor(amount * 1_000.0) / 1_000.0
}

/// The lever of commitments: the best for each family, smaller ones, and one for all families; if `three_years`, also for that term.
pub fn lever(curves: &[FamilyCurve], three_years: bool) -> Lever {
    let (all, of_one): (Vec<&FamilyCurve>, Vec<&FamilyCurve>) =
        curves.iter().partition(|curve| curve.family == ALL_FAMILIES);
    let one_year = |share: f64| {
        let amounts = of_one
            .iter()
            .map(|family_curve| (family_curve.family.as_str(), floored(family_curve.best_per_hour * share)));
        plans(amounts, ("1y", "no_upfront", "1 year, no upfront"))
    };
    let longer = || {
        let amounts = of_one.iter().filter_map(|family_curve| {
            Some((family_curve.family.as_str(), family_curve.three_years.as_ref()?.best_per_hour))
        });
        plans(amounts, ("3y", "all_upfront", "3 years, all upfront: needs a three-year commitment"))
    };
    let compute = all.iter().filter(|item| item.best_per_hour >= LEAST).map(|item| {
        let per_hour = floored(item.best_per_hour);
        let plan = serde_json::json!([{ "commitment": per_hour, "discount": format!("{}%", item.discount * 100.0) }]);
        let label = format!(
            "{per_hour} an hour of any family (Compute Savings Plan), 1 year, no upfront, {}% off assumed",
            item.discount * 100.0
        );
        Level { label, sets: vec![(PLANS.to_owned(), plan.to_string())], requirements: Vec::new() }
    });
    let longer = if three_years { longer() } else { None };
    let levels = one_year(1.0).into_iter().chain(one_year(0.75)).chain(compute).chain(longer).collect();
    Lever { kind: Kind::Commitments, subject: "Savings Plans".to_owned(), today: "none".to_owned(), levels }
}

/// The key of a scenario for Savings Plans.
const PLANS: &str = "ec2.billing.savings_plans";

/// EC2 Instance Savings Plans of these amounts per hour; `None` if none is worth a contract.
fn plans<'f>(
    amounts: impl Iterator<Item = (&'f str, f64)>,
    (term, payment, shown): (&str, &str, &str),
) -> Option<Level> {
    let worth: Vec<(&str, f64)> = amounts.filter(|amount| amount.1 >= LEAST).collect();
    let plan = |(family, commitment): &(&str, f64)| serde_json::json!({ "family": family, "commitment": commitment, "term": term, "payment": payment });
    let plans: Vec<serde_json::Value> = worth.iter().map(plan).collect();
    let names: Vec<String> = worth.iter().map(|(family, amount)| format!("{amount} an hour of {family}")).collect();
    (!worth.is_empty()).then(|| Level {
        label: format!("{}, {shown}", names.join(" and ")),
        sets: vec![(PLANS.to_owned(), serde_json::Value::Array(plans).to_string())],
        requirements: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::{ALL_FAMILIES, Hour, lever, of_all_families, of_family};
    use crate::domain::Symbol;

    #[test]
    fn commitment_covers_hours_up_to_break_even() {
        let family = Symbol::new("m5");
        // Ten hours that use 1 to 10 On-Demand; a quarter off.
        let hours: Vec<Hour> = (1..=10).map(|used| Hour::from([(family, f64::from(used))])).collect();
        let family = of_family(family, 0.25, &hours);
        // By hand: the third lowest hour, 3 x 0.75.
        assert!((family.best_per_hour - 2.25).abs() < 1e-9, "{}", family.best_per_hour);
        let cost = |per_hour: f64| {
            let over = (1..=10).map(|used| (f64::from(used) * 0.75 - per_hour).max(0.0) / 0.75).sum::<f64>() / 10.0;
            per_hour + over
        };
        assert!(family.curve.iter().all(|point| cost(2.25) <= point.cost_per_month / 730.0 + 1e-9));
        assert!((family.best_cost_per_month / 730.0 - cost(2.25)).abs() < 1e-9, "{}", family.best_cost_per_month);
        assert!((family.curve[0].cost_per_month - 5.5 * 730.0).abs() < 1e-6 && family.curve[0].unused.abs() < 1e-12);
    }
    #[test]
    fn commitment_cost_is_computed_exactly() {
        let family = Symbol::new("m5");
        let family = of_family(family, 0.25, &vec![Hour::from([(family, 2.0)]); 10]);
        // By hand: all of 2 x 0.75 is covered and nothing is left over. The points beside it commit 1.44 and 1.53.
        assert!((family.best_per_hour - 1.5).abs() < 1e-9, "{}", family.best_per_hour);
        assert!((family.best_cost_per_month - 1.5 * 730.0).abs() < 1e-6, "{}", family.best_cost_per_month);
        assert!(family.curve.iter().all(|point| point.cost_per_month > family.best_cost_per_month + 10.0));
    }

    #[test]
    fn compute_plan_covers_families_that_take_turns() {
        let (one, other) = (Symbol::new("m5"), Symbol::new("r5"));
        let hours: Vec<Hour> =
            (0..8).map(|hour| Hour::from([(if hour % 2 == 0 { one } else { other }, 3.0)])).collect();
        assert!(of_family(one, 0.37, &hours).best_per_hour < 1e-9, "it would be unused half of the time");
        let all = of_all_families(&hours);
        // By hand: all of 3 x 0.73 in each hour.
        assert!((all.best_per_hour - 2.19).abs() < 1e-9 && (all.best_cost_per_month - 2.19 * 730.0).abs() < 1e-6);
        let lever = lever(&[all], true);
        assert_eq!(lever.levels.len(), 1, "{lever:?}");
        assert!(lever.levels[0].sets[0].1.contains(r#""discount":"27%""#), "{lever:?} {ALL_FAMILIES}");
    }
}

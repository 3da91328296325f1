//! One clock hour: which commitment covers which usage, and for which part of its fee.
//!
//! Source: AWS EC2 user guide, "How Reserved Instance discounts are applied" (2023 and 2026), and Savings Plans user guide, "How Savings Plans
//! apply to your usage" (2026): zonal Reserved Instances of all owners, then regional ones from the smallest size up, then EC2 Instance plans,
//! then Compute plans; plans by pairs of plan and usage, the highest discount first, then the lowest price. Each of them tier by tier of accounts.
//!
//! Deviation: AWS does not say which usage of equal rank is covered first. Here clusters share pro rata, and nodes follow in order within a
//! cluster. A plan or Reserved Instance that starts or ends inside an hour has the share of its hour.

use std::cmp::Reverse;

use nodecast_model::domain::{Accrual, HourlyRate, Money, SimDuration, SimTime, Symbol};

use crate::accounts::Accounts;
use crate::commitment::{Commitment, Commitments, PlanKind, ReservedInstance, SavingsPlan};
use crate::share::largest_remainder;
use crate::sizes::quarter_units;
use crate::usage::UsageLine;

/// Tiers at most: owner, group, rest.
const TIERS: usize = 3;

/// A part of a usage line that a commitment covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoveredPart {
    /// Position of the usage line.
    pub line: usize,
    /// Position of the commitment in [`Commitments::iter`].
    pub commitment: usize,
    /// Time that is not charged at the On-Demand price.
    pub covered: SimDuration,
    /// Part of the commitment's fee that is for it.
    pub fee: Money,
}

/// Fee of a commitment in one hour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fee {
    /// All of it.
    pub paid: Money,
    /// The part that covers nothing.
    pub unused: Money,
}

impl Fee {
    /// The part that covers something.
    pub fn used(&self) -> Money {
        self.paid - self.unused
    }
}

/// Result of one clock hour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CoveredHour {
    /// Start; the hour may be cut at the edges of a run.
    pub from: SimTime,
    /// End.
    pub to: SimTime,
    /// Covered parts: commitment by commitment, for each by cluster and node.
    pub parts: Vec<CoveredPart>,
    /// Time of each usage line that stays at its On-Demand price.
    pub left: Vec<SimDuration>,
    /// Fees, in the order of [`Commitments::iter`].
    pub fees: Vec<Fee>,
}

/// Applies commitments to the usage of one clock hour, which lasts from `from` to `to`.
pub fn apply(
    accounts: &Accounts,
    commitments: &Commitments,
    lines: &[UsageLine],
    (from, to): (SimTime, SimTime),
) -> CoveredHour {
    let mut ledger = Ledger::new(accounts, commitments, lines, (from, to));
    let zonal = |zonal: bool| {
        let all = commitments.reserved.iter().enumerate();
        let mut found: Vec<(usize, &ReservedInstance)> = all.filter(|pair| pair.1.zone.is_some() == zonal).collect();
        found.sort_by_key(|pair| pair.1.id);
        found
    };
    for reserved in [zonal(true), zonal(false)] {
        for tier in 0..TIERS {
            for &(number, reserved) in &reserved {
                ledger.reserve(number, reserved, tier);
            }
        }
    }
    let first = commitments.reserved.len();
    for compute in [false, true] {
        let all = commitments.plans.iter().enumerate().map(|(number, plan)| (first + number, plan));
        let mut plans: Vec<(usize, &SavingsPlan)> =
            all.filter(|pair| (pair.1.kind == PlanKind::Compute) == compute).collect();
        plans.sort_by_key(|pair| pair.1.id);
        for tier in 0..TIERS {
            ledger.spend(&plans, tier);
        }
    }
    ledger.close(commitments)
}

/// Accounts that each commitment reaches.
pub(crate) struct Reach {
    /// Position of each line's account.
    account: Vec<usize>,
    /// Tier of each account for each commitment.
    tiers: Vec<Vec<Option<usize>>>,
}

impl Reach {
    /// The reach of commitments among the accounts of the lines.
    pub(crate) fn new(accounts: &Accounts, commitments: &Commitments, lines: &[UsageLine]) -> Self {
        let mut used: Vec<Symbol> = lines.iter().map(|line| line.account).collect();
        used.sort_unstable();
        used.dedup();
        let account = lines.iter().map(|line| used.binary_search(&line.account).unwrap_or(0)).collect();
        let tiers = |commitment: Commitment<'_>| {
            used.iter().map(|&account| accounts.tier(commitment.owner(), account)).collect()
        };
        Self { account, tiers: commitments.iter().map(tiers).collect() }
    }

    /// The tier in which a commitment serves a line's account.
    pub(crate) fn tier(&self, commitment: usize, line: usize) -> Option<usize> {
        self.tiers[commitment][self.account[line]]
    }
}

/// A usage that a commitment covers: weight in microseconds times units, or times nano-dollars.
struct Use {
    line: usize,
    covered: i128,
    weight: i128,
}

/// State of an hour while commitments are applied.
struct Ledger<'l> {
    lines: &'l [UsageLine],
    reach: Reach,
    hour: (SimTime, SimTime),
    /// Position of each line in the order by cluster and node.
    rank: Vec<usize>,
    /// Microseconds of each line that nothing covers.
    left: Vec<i128>,
    /// Each commitment in the hour, and what is free of it: microseconds times units, or times nano-dollars.
    total: Vec<i128>,
    free: Vec<i128>,
    used: Vec<Vec<Use>>,
}

impl<'l> Ledger<'l> {
    fn new(accounts: &Accounts, commitments: &Commitments, lines: &'l [UsageLine], hour: (SimTime, SimTime)) -> Self {
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.sort_by_key(|&line| (lines[line], line));
        let mut rank = vec![0; lines.len()];
        for (place, line) in order.into_iter().enumerate() {
            rank[line] = place;
        }
        let total: Vec<i128> = commitments.iter().map(|commitment| supply(&commitment, hour)).collect();
        let left = lines.iter().map(|line| i128::from(line.ran.as_micros())).collect();
        let used = commitments.iter().map(|_| Vec::new()).collect();
        let reach = Reach::new(accounts, commitments, lines);
        Self { lines, reach, hour, rank, left, free: total.clone(), total, used }
    }

    /// Covers a tier's usage with Reserved Instances, from the smallest size up.
    fn reserve(&mut self, number: usize, reserved: &ReservedInstance, tier: usize) {
        let commitment = Commitment::Reserved(reserved);
        let mut wanted: Vec<(i128, usize, usize)> = self
            .open(number, tier)
            .filter(|&line| commitment.covers(&self.lines[line]))
            .map(|line| (units(reserved, &self.lines[line]), self.rank[line], line))
            .collect();
        wanted.sort_unstable();
        for equals in wanted.chunk_by(|one, other| one.0 == other.0) {
            let lines: Vec<usize> = equals.iter().map(|entry| entry.2).collect();
            self.cover(number, equals[0].0, &lines);
        }
    }

    /// Covers a tier's usage with plans of one kind, pair by pair of plan and usage.
    fn spend(&mut self, plans: &[(usize, &SavingsPlan)], tier: usize) {
        let mut pairs: Vec<(Reverse<i64>, HourlyRate, usize, usize, usize)> = Vec::new();
        for (place, &(number, plan)) in plans.iter().enumerate() {
            let price = |line: usize| {
                let price = plan.rate(&self.lines[line])?;
                Some((Reverse(price.discount), price.rate, place, self.rank[line], line))
            };
            pairs.extend(self.open(number, tier).filter_map(price));
        }
        pairs.sort_unstable();
        for equals in pairs.chunk_by(|one, other| (one.0, one.1, one.2) == (other.0, other.1, other.2)) {
            let lines: Vec<usize> = equals.iter().map(|entry| entry.4).collect();
            let (_, rate, place, _, _) = equals[0];
            self.cover(plans[place].0, i128::from(rate.as_nanos()), &lines);
        }
    }

    /// Lines of a tier with time that nothing covers.
    fn open(&self, number: usize, tier: usize) -> impl Iterator<Item = usize> {
        let is_free = self.free[number] > 0;
        (0..self.lines.len())
            .filter(move |&line| is_free && self.left[line] > 0 && self.reach.tier(number, line) == Some(tier))
    }

    /// Covers lines of equal rank, in order of cluster and node. A microsecond of each takes `price` of the commitment.
    fn cover(&mut self, number: usize, price: i128, lines: &[usize]) {
        let supply = if price == 0 { i128::MAX } else { self.free[number] / price };
        let of_cluster = |line: usize| (self.lines[line].cluster, self.lines[line].account);
        let clusters: Vec<&[usize]> = lines.chunk_by(|&one, &other| of_cluster(one) == of_cluster(other)).collect();
        let wanted: Vec<i128> = clusters.iter().map(|lines| lines.iter().map(|&line| self.left[line]).sum()).collect();
        let shares = if wanted.iter().sum::<i128>() <= supply { wanted } else { largest_remainder(supply, &wanted) };
        for (lines, mut share) in clusters.into_iter().zip(shares) {
            for &line in lines {
                let covered = self.left[line].min(share);
                if covered > 0 {
                    share -= covered;
                    self.left[line] -= covered;
                    self.free[number] -= covered * price;
                    self.used[number].push(Use { line, covered, weight: covered * price });
                }
            }
        }
    }

    /// Shares the fees out to what they cover.
    fn close(mut self, commitments: &Commitments) -> CoveredHour {
        let (from, to) = self.hour;
        let (mut parts, mut fees) = (Vec::new(), Vec::new());
        for (number, commitment) in commitments.iter().enumerate() {
            let paid = Accrual::new(commitment.fee(), micros(commitment.term().within(from, to))).total();
            let unused = unused(paid, self.free[number], self.total[number]);
            let fee = Fee { paid, unused };
            fees.push(fee);
            let mut uses = std::mem::take(&mut self.used[number]);
            uses.sort_by_key(|used| self.rank[used.line]);
            let weights: Vec<i128> = uses.iter().map(|used| used.weight).collect();
            let shares = largest_remainder(fee.used().as_nanos(), &weights);
            parts.extend(uses.iter().zip(shares).map(|(used, share)| CoveredPart {
                line: used.line,
                commitment: number,
                covered: micros(used.covered),
                fee: Money::from_nanos(share),
            }));
        }
        CoveredHour { from, to, parts, left: self.left.into_iter().map(micros).collect(), fees }
    }
}

/// What a commitment can cover in an hour: microseconds times units of Reserved Instances, or times nano-dollars of a plan.
fn supply(commitment: &Commitment<'_>, (from, to): (SimTime, SimTime)) -> i128 {
    let per_micro = match commitment {
        Commitment::Reserved(reserved) => i128::from(reserved.count) * own_units(reserved),
        Commitment::Plan(plan) => i128::from(plan.commitment.as_nanos()),
    };
    per_micro * commitment.term().within(from, to)
}

/// Quarters of normalised units that one of the Reserved Instances has; 1 without size flexibility.
pub(crate) fn own_units(reserved: &ReservedInstance) -> i128 {
    if reserved.is_size_flexible() { i128::from(quarter_units(reserved.instance_type.as_str())).max(1) } else { 1 }
}

/// Quarters of normalised units that a usage takes of Reserved Instances; 1 without size flexibility.
pub(crate) fn units(reserved: &ReservedInstance, line: &UsageLine) -> i128 {
    match line.kind.instance_type() {
        Some(name) if reserved.is_size_flexible() => i128::from(quarter_units(name.as_str())).max(1),
        _ => 1,
    }
}

/// The part of a fee that covers nothing when `free` of `total` is left; all of it if nothing is covered.
fn unused(fee: Money, free: i128, total: i128) -> Money {
    if total <= 0 || free >= total { fee } else { fee.portion(free, total) }
}

fn micros(count: i128) -> SimDuration {
    SimDuration::from_micros(i64::try_from(count).unwrap_or(i64::MAX))
}

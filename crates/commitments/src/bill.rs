//! The bill of many hours: by hour, by cluster, by account, and by commitment.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use nodecast_model::domain::{HourlyRate, Money, SimDuration, SimTime, Symbol};

use crate::accounts::Accounts;
use crate::apply::{CoveredHour, Reach, apply};
use crate::commitment::{Commitment, Commitments};
use crate::share::{largest_remainder, rounded, rounded_shares};
use crate::usage::{OUTSIDE_CLUSTERS, UsageLine};

/// A cluster with its account. Usage of an account outside clusters has the cluster [`OUTSIDE_CLUSTERS`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bearer {
    /// The cluster.
    pub cluster: Symbol,
    /// Its account.
    pub account: Symbol,
}

impl Bearer {
    /// Whether this is usage outside clusters.
    pub fn is_outside(&self) -> bool {
        self.cluster.as_str() == OUTSIDE_CLUSTERS
    }
}

/// Amounts of usage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Amounts {
    /// Value at list prices: of what is covered, and of the rest.
    pub list: Money,
    /// Value at list prices of what is covered.
    pub covered_list: Money,
    /// Charge for the rest at On-Demand prices, without Fargate.
    pub on_demand: Money,
    /// Charge for vCPUs and memory of Fargate that nothing covers.
    pub fargate: Money,
    /// Fees of Reserved Instances for what they cover.
    pub reserved: Money,
    /// Fees of Savings Plans for what they cover.
    pub savings_plans: Money,
}

impl Amounts {
    /// Effective cost, without unused commitments.
    pub fn effective(&self) -> Money {
        self.on_demand + self.fargate + self.reserved + self.savings_plans
    }
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, other: Self) {
        self.list += other.list;
        self.covered_list += other.covered_list;
        self.on_demand += other.on_demand;
        self.fargate += other.fargate;
        self.reserved += other.reserved;
        self.savings_plans += other.savings_plans;
    }
}

/// One hour, or the whole run, of a commitment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CommitmentAmounts {
    /// Fee, used or not.
    pub fee: Money,
    /// Part of the fee that covers nothing.
    pub unused: Money,
    /// Value at list prices of what it covers.
    pub covered_list: Money,
}

impl CommitmentAmounts {
    /// Part of the fee that covers something.
    pub fn used(&self) -> Money {
        self.fee - self.unused
    }

    /// Used share of the fee, 0 to 1; `None` without a fee.
    pub fn utilisation(&self) -> Option<f64> {
        share(self.used(), self.fee)
    }

    /// Saving against list prices; negative if the commitment costs more than it saves.
    pub fn net_saving(&self) -> Money {
        self.covered_list - self.fee
    }
}

impl AddAssign for CommitmentAmounts {
    fn add_assign(&mut self, other: Self) {
        self.fee += other.fee;
        self.unused += other.unused;
        self.covered_list += other.covered_list;
    }
}

/// The part of a whole, 0 to 1; `None` of nothing.
pub(crate) fn share(part: Money, whole: Money) -> Option<f64> {
    (whole > Money::ZERO).then(|| part.as_f64() / whole.as_f64())
}

/// A commitment over the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommitmentBill {
    /// Its id.
    pub id: Symbol,
    /// The account that bought it.
    pub owner: Symbol,
    /// Whether it is a Savings Plan.
    pub is_plan: bool,
    /// Its sum.
    pub total: CommitmentAmounts,
    /// Each hour, in the order of [`Bill::hours`].
    pub hours: Vec<CommitmentAmounts>,
    /// Used part of the fee by cluster.
    pub used: BTreeMap<Bearer, Money>,
    /// Value at list prices of the usage that it could cover, by cluster, in nano-dollar-microseconds per hour: the weights of
    /// [`UnusedRule::Usage`](crate::UnusedRule::Usage).
    pub eligible: BTreeMap<Bearer, i128>,
}

/// One hour of the bill.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HourBill {
    /// Start; the hour may be cut at the edges of a run.
    pub from: SimTime,
    /// End.
    pub to: SimTime,
    /// Each cluster with usage.
    pub clusters: BTreeMap<Bearer, Amounts>,
    /// Fees of commitments that cover nothing.
    pub unused: Money,
}

impl HourBill {
    /// Cost of the hour.
    pub fn total(&self) -> Money {
        self.clusters.values().map(Amounts::effective).sum::<Money>() + self.unused
    }
}

/// The bill of On-Demand usage and commitments over a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bill {
    /// Hour by hour.
    pub hours: Vec<HourBill>,
    /// Each cluster with usage, over the run.
    pub clusters: BTreeMap<Bearer, Amounts>,
    /// Each commitment, in order of id.
    pub commitments: Vec<CommitmentBill>,
}

impl Bill {
    /// Prices hours, each with its start, end, and usage. They must be clock hours, cut to the run.
    pub fn price(
        accounts: &Accounts,
        commitments: &Commitments,
        hours: impl IntoIterator<Item = (SimTime, SimTime, Vec<UsageLine>)>,
    ) -> Self {
        let mut bill = Self::new(commitments);
        for (from, to, lines) in hours {
            let hour = apply(accounts, commitments, &lines, (from, to));
            bill.add(accounts, commitments, &lines, &hour);
        }
        bill
    }

    /// A bill without hours.
    pub fn new(commitments: &Commitments) -> Self {
        let blank = |commitment: Commitment<'_>| CommitmentBill {
            id: commitment.id(),
            owner: commitment.owner(),
            is_plan: matches!(commitment, Commitment::Plan(_)),
            total: CommitmentAmounts::default(),
            hours: Vec::new(),
            used: BTreeMap::new(),
            eligible: BTreeMap::new(),
        };
        let mut commitments: Vec<CommitmentBill> = commitments.iter().map(blank).collect();
        commitments.sort_by_key(|commitment| commitment.id);
        Self { commitments, ..Self::default() }
    }

    /// Adds the next hour, as [`apply`] has it.
    pub fn add(&mut self, accounts: &Accounts, commitments: &Commitments, lines: &[UsageLine], hour: &CoveredHour) {
        let mut clusters = hour_amounts(commitments, lines, hour);
        clusters.retain(|_, amounts| *amounts != Amounts::default());
        for (bearer, amounts) in &clusters {
            *self.clusters.entry(*bearer).or_default() += *amounts;
        }
        self.add_commitments(accounts, commitments, lines, hour);
        let unused = hour.fees.iter().map(|fee| fee.unused).sum();
        self.hours.push(HourBill { from: hour.from, to: hour.to, clusters, unused });
    }

    fn add_commitments(
        &mut self,
        accounts: &Accounts,
        commitments: &Commitments,
        lines: &[UsageLine],
        hour: &CoveredHour,
    ) {
        let reach = Reach::new(accounts, commitments, lines);
        let mut order: Vec<usize> = (0..commitments.len()).collect();
        let all: Vec<Commitment<'_>> = commitments.iter().collect();
        order.sort_by_key(|&number| all[number].id());
        for (number, bill) in order.into_iter().zip(&mut self.commitments) {
            let of_this = hour.parts.iter().filter(|part| part.commitment == number);
            let mut covered = 0;
            for part in of_this {
                covered += value(lines[part.line].list, part.covered);
                *bill.used.entry(bearer(&lines[part.line])).or_default() += part.fee;
            }
            let fee = hour.fees[number];
            let amounts = CommitmentAmounts { fee: fee.paid, unused: fee.unused, covered_list: rounded(covered) };
            bill.total += amounts;
            bill.hours.push(amounts);
            if all[number].term().within(hour.from, hour.to) == 0 {
                continue;
            }
            for (at, line) in lines.iter().enumerate() {
                if reach.tier(number, at).is_some() && all[number].covers(line) {
                    *bill.eligible.entry(bearer(line)).or_default() += value(line.list, line.ran);
                }
            }
        }
    }

    /// Cost of the run.
    pub fn total(&self) -> Money {
        self.hours.iter().map(HourBill::total).sum()
    }

    /// Fees of commitments that cover nothing, over the run.
    pub fn unused(&self) -> Money {
        self.hours.iter().map(|hour| hour.unused).sum()
    }

    /// Amounts of all clusters.
    pub fn usage(&self) -> Amounts {
        sum(self.clusters.values())
    }

    /// Amounts of each account with usage.
    pub fn accounts(&self) -> BTreeMap<Symbol, Amounts> {
        let mut accounts: BTreeMap<Symbol, Amounts> = BTreeMap::new();
        for (bearer, amounts) in &self.clusters {
            *accounts.entry(bearer.account).or_default() += *amounts;
        }
        accounts
    }

    /// Key figures of the run.
    pub fn figures(&self) -> Figures {
        let fees = self.commitments.iter().map(|commitment| commitment.total.fee).sum();
        Figures::new(&self.usage(), fees, self.unused())
    }
}

/// Key figures: shares, 0 to 1. `None` where the whole is zero.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figures {
    /// Covered share of the list value.
    pub coverage: Option<f64>,
    /// Used share of the fees.
    pub utilisation: Option<f64>,
    /// Effective savings rate: saving against list prices, as a share of the list value. Negative if commitments cost more than they save.
    pub savings_rate: Option<f64>,
}

impl Figures {
    /// The figures of usage and fees.
    pub fn new(usage: &Amounts, fees: Money, unused: Money) -> Self {
        let paid = usage.list - usage.covered_list + fees;
        Self {
            coverage: share(usage.covered_list, usage.list),
            utilisation: share(fees - unused, fees),
            savings_rate: share(usage.list - paid, usage.list),
        }
    }
}

/// The sum of amounts.
pub(crate) fn sum<'a>(all: impl Iterator<Item = &'a Amounts>) -> Amounts {
    all.fold(Amounts::default(), |mut sum, amounts| {
        sum += *amounts;
        sum
    })
}

fn bearer(line: &UsageLine) -> Bearer {
    Bearer { cluster: line.cluster, account: line.account }
}

/// The value of time at a rate, in nano-dollar-microseconds per hour.
fn value(rate: HourlyRate, span: SimDuration) -> i128 {
    i128::from(rate.as_nanos()) * i128::from(span.as_micros())
}

/// Amounts of each cluster in an hour. The sums are rounded once and shared out, so that the division of usage into lines changes no sum.
pub(crate) fn hour_amounts(
    commitments: &Commitments,
    lines: &[UsageLine],
    hour: &CoveredHour,
) -> BTreeMap<Bearer, Amounts> {
    let mut exact: BTreeMap<Bearer, [i128; 4]> = BTreeMap::new();
    for (line, &left) in lines.iter().zip(&hour.left) {
        let sums = exact.entry(bearer(line)).or_default();
        sums[0] += value(line.list, line.ran - left);
        sums[1] += value(line.list, left);
        sums[if line.kind.is_fargate() { 3 } else { 2 }] += value(line.rate, left);
    }
    let column = |number: &dyn Fn(&[i128; 4]) -> i128| {
        let column: Vec<i128> = exact.values().map(number).collect();
        rounded_shares(&column)
    };
    let (covered, left) = (column(&|sums| sums[0]), column(&|sums| sums[1]));
    let charged = column(&|sums| sums[2] + sums[3]);
    let mut clusters: BTreeMap<Bearer, Amounts> = BTreeMap::new();
    for (number, (bearer, sums)) in exact.into_iter().enumerate() {
        let covered_list = covered[number];
        let list = covered_list + left[number];
        let services = largest_remainder(charged[number].as_nanos(), &sums[2..]);
        let (on_demand, fargate) = (Money::from_nanos(services[0]), Money::from_nanos(services[1]));
        clusters.insert(bearer, Amounts { list, covered_list, on_demand, fargate, ..Amounts::default() });
    }
    for part in &hour.parts {
        let amounts = clusters.entry(bearer(&lines[part.line])).or_default();
        let is_plan = part.commitment >= commitments.reserved.len();
        *(if is_plan { &mut amounts.savings_plans } else { &mut amounts.reserved }) += part.fee;
    }
    clusters
}

//! Commitments: Reserved Instances and Savings Plans, with owner, term, and prices.

use nodecast_model::domain::{HourlyRate, SimTime, Symbol};

use crate::sizes::is_size_flexible;
use crate::usage::{Platform, Tenancy, UsageKind, UsageLine, family};

/// The whole, in the unit of discounts: millionths. AWS states prices of plans with five decimals of a dollar.
pub const WHOLE: u32 = 1_000_000;

/// All commitments of an organisation. Their order changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Commitments {
    /// Reserved Instances.
    pub reserved: Vec<ReservedInstance>,
    /// Savings Plans.
    pub plans: Vec<SavingsPlan>,
}

impl Commitments {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.reserved.is_empty() && self.plans.is_empty()
    }

    /// The number of commitments.
    pub fn len(&self) -> usize {
        self.reserved.len() + self.plans.len()
    }

    /// All commitments: Reserved Instances in their order, then plans in theirs. This is the numbering of [`CoveredPart`](crate::CoveredPart).
    pub fn iter(&self) -> impl Iterator<Item = Commitment<'_>> {
        let reserved = self.reserved.iter().map(Commitment::Reserved);
        reserved.chain(self.plans.iter().map(Commitment::Plan))
    }
}

/// A commitment of either kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Commitment<'c> {
    /// Reserved Instances.
    Reserved(&'c ReservedInstance),
    /// A Savings Plan.
    Plan(&'c SavingsPlan),
}

impl Commitment<'_> {
    /// Its id.
    pub const fn id(&self) -> Symbol {
        match self {
            Self::Reserved(reserved) => reserved.id,
            Self::Plan(plan) => plan.id,
        }
    }

    /// The account that bought it.
    pub const fn owner(&self) -> Symbol {
        match self {
            Self::Reserved(reserved) => reserved.owner,
            Self::Plan(plan) => plan.owner,
        }
    }

    /// The time for which it is paid.
    pub const fn term(&self) -> Term {
        match self {
            Self::Reserved(reserved) => reserved.term,
            Self::Plan(plan) => plan.term,
        }
    }

    /// Its fee of one hour, used or not, upfront payment included.
    pub fn fee(&self) -> HourlyRate {
        match self {
            Self::Reserved(reserved) => reserved.rate.scaled(i64::from(reserved.count), 1),
            Self::Plan(plan) => plan.commitment,
        }
    }

    /// Whether it may cover a usage of its region, type, platform, and tenancy. Accounts do not matter here.
    pub fn covers(&self, line: &UsageLine) -> bool {
        match self {
            Self::Reserved(reserved) => reserved.covers(line),
            Self::Plan(plan) => plan.rate(line).is_some(),
        }
    }
}

/// Start and end of a commitment, in time of the run. `None` is before the run, or after it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Term {
    /// Start.
    pub from: Option<SimTime>,
    /// End.
    pub to: Option<SimTime>,
}

impl Term {
    /// The microseconds of the term between two times.
    pub fn within(&self, from: SimTime, to: SimTime) -> i128 {
        let from = self.from.map_or(from, |start| start.max(from));
        let to = self.to.map_or(to, |end| end.min(to));
        i128::from(to.as_micros()).saturating_sub(i128::from(from.as_micros())).max(0)
    }
}

/// Reserved Instances of one purchase.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ReservedInstance {
    /// Its id, unique among all commitments.
    pub id: Symbol,
    /// The account that bought it.
    pub owner: Symbol,
    /// Region.
    pub region: Symbol,
    /// Zone id of a zonal one; `None` for a regional one.
    pub zone: Option<Symbol>,
    /// Instance type.
    pub instance_type: Symbol,
    /// Platform of the usage that it covers.
    pub platform: Platform,
    /// Tenancy of the usage that it covers.
    pub tenancy: Tenancy,
    /// Number of instances.
    pub count: u32,
    /// Fee of one instance per hour, used or not: upfront payment over the hours of the term, and the recurring part.
    pub rate: HourlyRate,
    /// Start and end.
    pub term: Term,
}

impl ReservedInstance {
    /// Whether it covers all sizes of its family: a regional one for Linux on shared hardware, but for some families.
    pub fn is_size_flexible(&self) -> bool {
        self.zone.is_none()
            && self.platform == Platform::Linux
            && self.tenancy == Tenancy::Shared
            && is_size_flexible(family(self.instance_type.as_str()))
    }

    /// Whether it may cover a usage.
    fn covers(&self, line: &UsageLine) -> bool {
        let UsageKind::Instance(name) = line.kind else { return false };
        if (line.region, line.platform, line.tenancy) != (self.region, self.platform, self.tenancy) {
            return false;
        }
        if self.is_size_flexible() {
            return name.as_str().contains('.') && family(name.as_str()) == family(self.instance_type.as_str());
        }
        name == self.instance_type && self.zone.is_none_or(|zone| zone == line.zone && !line.is_reservation)
    }
}

/// Kind of a Savings Plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PlanKind {
    /// EC2 Instance Savings Plan: one family in one region, any size, zone, platform, and tenancy.
    Instance {
        /// The family.
        family: Symbol,
        /// The region.
        region: Symbol,
    },
    /// Compute Savings Plan: EC2, Fargate, and Lambda in any region.
    Compute,
}

/// A Savings Plan.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SavingsPlan {
    /// Its id, unique among all commitments.
    pub id: Symbol,
    /// The account that bought it.
    pub owner: Symbol,
    /// Kind.
    pub kind: PlanKind,
    /// Fee per hour, used or not, in dollars at the plan's own rates.
    pub commitment: HourlyRate,
    /// The plan's rates.
    pub rates: PlanRates,
    /// Start and end.
    pub term: Term,
}

/// Rates of a Savings Plan: prices of single types, else discounts of families, else one discount. Discounts are on the list price, in millionths.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct PlanRates {
    /// Discount on families without one of their own; `None` if it does not cover them.
    pub discount: Option<u32>,
    /// Discounts of families.
    pub families: Vec<(Symbol, u32)>,
    /// Prices of instance types per hour, and of units of Fargate and Lambda.
    pub prices: Vec<(UsageKind, HourlyRate)>,
    /// Discount on vCPUs of Fargate; `None` if it does not cover them.
    pub fargate_cpu: Option<u32>,
    /// Discount on memory of Fargate; `None` if it does not cover it.
    pub fargate_memory: Option<u32>,
    /// Discount on Lambda; `None` if it does not cover it.
    pub lambda: Option<u32>,
}

impl PlanRates {
    /// One discount on all instances, in millionths.
    pub fn flat(discount: u32) -> Self {
        Self { discount: Some(discount), ..Self::default() }
    }
}

/// Price of a usage under a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PlanRate {
    /// Discount on the current On-Demand price, in billionths.
    pub discount: i64,
    /// Price per hour.
    pub rate: HourlyRate,
}

impl PlanRate {
    /// The price `rate` of usage that costs `on_demand`; `None` if it costs more.
    fn on(on_demand: HourlyRate, rate: HourlyRate) -> Option<Self> {
        const BILLION: i128 = 1_000_000_000;
        let on_demand = i128::from(on_demand.as_nanos());
        let saved = on_demand - i128::from(rate.as_nanos());
        let discount = i64::try_from(saved * BILLION / on_demand.max(1)).ok()?;
        (saved >= 0).then_some(Self { discount, rate })
    }
}

impl SavingsPlan {
    /// The plan's price of a usage; `None` where the plan does not cover it, or costs more than On-Demand.
    ///
    /// Source: AWS Savings Plans user guide, "How Savings Plans apply to your usage": the discount is on the current On-Demand price, so a
    /// private On-Demand price lowers it.
    pub(crate) fn rate(&self, line: &UsageLine) -> Option<PlanRate> {
        if let PlanKind::Instance { family, region } = self.kind
            && (region != line.region || line.kind.family() != Some(family.as_str()))
        {
            return None;
        }
        if let Some(rate) = self.rates.prices.iter().find(|price| price.0 == line.kind) {
            return PlanRate::on(line.rate, rate.1);
        }
        let discount = self.discount(line.kind)?.min(WHOLE);
        let rate = line.list.scaled(i64::from(WHOLE - discount), i64::from(WHOLE));
        if line.list == line.rate {
            return Some(PlanRate { discount: i64::from(discount) * 1_000, rate });
        }
        PlanRate::on(line.rate, rate)
    }

    /// The discount on the list price, in millionths.
    fn discount(&self, kind: UsageKind) -> Option<u32> {
        match kind {
            UsageKind::Instance(name) => {
                let family = family(name.as_str());
                let own = self.rates.families.iter().find(|(listed, _)| listed.as_str() == family);
                own.map(|pair| pair.1).or(self.rates.discount)
            }
            UsageKind::FargateCpu => self.rates.fargate_cpu,
            UsageKind::FargateMemory => self.rates.fargate_memory,
            UsageKind::Lambda => self.rates.lambda,
        }
    }
}

//! What has been bought in advance, and what it covers: Reserved Instances and Savings Plans.
//!
//! Evaluated by the clock hour, over On-Demand usage and capacity reservations, used or not; Spot takes no part.
//!
//! Source: AWS documentation of billing as of 2026: zonal reservations first, then regional ones from the smallest size
//! up, then all EC2 Instance Savings Plans together, then all Compute Savings Plans together, each kind by pairs of plan and usage from the
//! highest discount down (Savings Plans user guide, "How Savings Plans apply to your usage").
//! Reserved Instances cover usage of their platform; other platforms than Linux have no size flexibility. Plans cover any platform.
//!
//! Deviation: short-lived instances share a reservation's hour by their running seconds.

use std::cmp::Reverse;

use nodecast_model::catalog::PriceQuality;
use nodecast_model::domain::{Accrual, HourlyRate, Money, SimDuration, Symbol};

/// The whole, in the unit of discounts: millionths. AWS states prices of plans with five decimals of a dollar.
pub const WHOLE: u32 = 1_000_000;

/// What usage of Fargate, which has no instance type, is called.
pub const FARGATE: &str = "fargate";

/// What has been bought in advance.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Commitments {
    /// Reserved Instances.
    pub reserved: Vec<ReservedInstances>,
    /// Savings Plans.
    pub plans: Vec<SavingsPlan>,
}

impl Commitments {
    /// Whether nothing has been bought.
    pub fn is_empty(&self) -> bool {
        self.reserved.is_empty() && self.plans.is_empty()
    }

    /// The weakest quality of a price of Reserved Instances, and of a discount of Savings Plans.
    pub fn qualities(&self) -> [PriceQuality; 2] {
        let reserved = self.reserved.iter().map(|reserved| reserved.quality).max();
        let plans = self.plans.iter().map(|plan| plan.quality).max();
        [reserved, plans].map(|quality| quality.unwrap_or(PriceQuality::Published))
    }
}

/// Operating system that a price of EC2 is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Platform {
    /// Linux without a licence.
    #[default]
    Linux,
    /// Windows Server.
    Windows,
    /// Red Hat Enterprise Linux.
    Rhel,
    /// SUSE Linux Enterprise Server.
    Suse,
}

impl Platform {
    /// The platform as a scenario writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Windows => "windows",
            Self::Rhel => "rhel",
            Self::Suse => "suse",
        }
    }
}

/// Reserved Instances of one type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ReservedInstances {
    /// The type reserved.
    pub instance_type: Symbol,
    /// The platform of the usage that they cover.
    pub platform: Platform,
    /// The zone; `None` for regional ones, which cover every size of the family if they are for Linux.
    pub zone: Option<Symbol>,
    /// How many.
    pub count: u32,
    /// What one costs per hour, upfront payment included, used or not.
    pub rate: HourlyRate,
    /// Quality of that price.
    pub quality: PriceQuality,
}

/// A Savings Plan.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SavingsPlan {
    /// The family that an EC2 Instance plan is for; `None` for a Compute plan.
    pub family: Option<Symbol>,
    /// What is paid per hour, used or not, at the plan's own rates.
    pub commitment: HourlyRate,
    /// Discount on On-Demand, in millionths.
    pub discount: u32,
    /// Families with another discount, in millionths.
    pub family_discounts: Vec<(Symbol, u32)>,
    /// Discount of a Compute plan on vCPUs and memory of Fargate, in millionths; `None` where it is not used for them.
    pub fargate_discount: Option<u32>,
    /// Quality of the discount.
    pub quality: PriceQuality,
}

impl SavingsPlan {
    /// The discount on a type of `family`, or on Fargate, in millionths; `None` where the plan is not for it.
    fn discount_on(&self, family: &str) -> Option<u32> {
        if self.family.is_some_and(|this_family| this_family.as_str() != family) {
            return None;
        }
        if family == FARGATE {
            return self.fargate_discount;
        }
        let family_discount = self.family_discounts.iter().find(|(name, _)| name.as_str() == family);
        Some(family_discount.map_or(self.discount, |&(_, discount)| discount).min(WHOLE))
    }
}

/// On-Demand running time of one instance within one clock hour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Instance type; [`FARGATE`] for a pod there.
    pub instance_type: Symbol,
    /// Platform.
    pub platform: Platform,
    /// Zone.
    pub zone: Symbol,
    /// On-Demand price.
    pub rate: HourlyRate,
    /// Time that it ran in the hour; of a capacity reservation, time that it was held times what it holds.
    pub ran: SimDuration,
    /// Whether this is a capacity reservation, which zonal Reserved Instances do not discount.
    pub reserved: bool,
}

/// What one clock hour comes to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HourOfCommitments {
    /// What was covered of each usage, in their order.
    pub shares: Vec<CoveredShare>,
    /// What reservations cost, used or not.
    pub reserved_fees: Money,
    /// What plans cost, used or not.
    pub plan_fees: Money,
    /// The part of the reservations' cost that covered nothing.
    pub reserved_unused: Money,
    /// The part of the plans' cost that covered nothing.
    pub plan_unused: Money,
}

/// What commitments cover of one usage, and which part of their used cost is for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CoveredShare {
    /// Time that is not charged at the On-Demand price.
    pub covered: SimDuration,
    /// What reservations cost for it.
    pub by_reserved: Money,
    /// What plans cost for it.
    pub by_plans: Money,
}

/// Works out a clock hour. `hour` is its length: less than an hour at the edges of a run.
pub fn cover(commitments: &Commitments, usage: &[Usage], hour: SimDuration) -> HourOfCommitments {
    let mut left: Vec<i128> = usage.iter().map(|one| i128::from(one.ran.as_micros())).collect();
    let shares = vec![CoveredShare::default(); usage.len()];
    let mut result = HourOfCommitments { shares, ..HourOfCommitments::default() };
    // Sorted by what they are, so that their order in the scenario changes nothing.
    let mut reserved: Vec<&ReservedInstances> = commitments.reserved.iter().collect();
    reserved.sort_unstable_by_key(|reserved| (reserved.zone.is_none(), **reserved));
    for reserved in reserved {
        reserve(reserved, usage, hour, &mut left, &mut result);
    }
    let mut plans: Vec<&SavingsPlan> = commitments.plans.iter().collect();
    plans.sort_unstable_by_key(|plan| (plan.family.is_none(), *plan));
    let of_instances = plans.partition_point(|plan| plan.family.is_some());
    let (instance_plans, compute_plans) = plans.split_at(of_instances);
    for of_one_kind in [instance_plans, compute_plans] {
        apply_plans(of_one_kind, usage, hour, &mut left, &mut result);
    }
    for ((share, one), &left) in result.shares.iter_mut().zip(usage).zip(&left) {
        share.covered = one.ran - micros(left);
    }
    result
}

fn micros(count: i128) -> SimDuration {
    SimDuration::from_micros(i64::try_from(count).unwrap_or(i64::MAX))
}

fn of_micros(rate: HourlyRate, count: i128) -> Accrual {
    Accrual::new(rate, micros(count))
}

/// Covers what a reservation covers. Regional ones count in quarters of a normalised unit times time.
fn reserve(
    reserved: &ReservedInstances,
    usage: &[Usage],
    hour: SimDuration,
    left: &mut [i128],
    result: &mut HourOfCommitments,
) {
    let flexible = reserved.zone.is_none()
        && reserved.platform == Platform::Linux
        && is_size_flexible(family(reserved.instance_type));
    let units = |name: Symbol| if flexible { i128::from(quarter_units(name)) } else { 1 };
    let matches = |one: &Usage| match reserved.zone {
        Some(zone) => one.instance_type == reserved.instance_type && one.zone == zone && !one.reserved,
        None if flexible => family(one.instance_type) == family(reserved.instance_type),
        None => one.instance_type == reserved.instance_type,
    };
    let span = i128::from(hour.as_micros());
    let total = units(reserved.instance_type) * i128::from(reserved.count) * span;
    let mut free = total;
    let is_covered = |one: &Usage| one.platform == reserved.platform && matches(one);
    let mut order: Vec<usize> = (0..usage.len()).filter(|&at| is_covered(&usage[at])).collect();
    order.sort_by_key(|&at| (units(usage[at].instance_type), at));
    let mut weights = vec![0; order.len()];
    for (&at, weight) in order.iter().zip(&mut weights) {
        let unit = units(usage[at].instance_type).max(1);
        let covered = left[at].min(free / unit);
        left[at] -= covered;
        *weight = covered * unit;
        free -= *weight;
    }
    let fee = of_micros(reserved.rate, span * i128::from(reserved.count)).total();
    let unused = unused(fee, free, total);
    result.reserved_fees += fee;
    result.reserved_unused += unused;
    for (at, part) in order.into_iter().zip((fee - unused).shared_by(weights)) {
        result.shares[at].by_reserved += part;
    }
}

/// Covers what plans of one kind cover, pair by pair of plan and usage.
fn apply_plans(
    plans: &[&SavingsPlan],
    usage: &[Usage],
    hour: SimDuration,
    left: &mut [i128],
    result: &mut HourOfCommitments,
) {
    let total = |plan: &SavingsPlan| i128::from(plan.commitment.as_nanos()) * i128::from(hour.as_micros());
    let mut free: Vec<i128> = plans.iter().map(|plan| total(plan)).collect();
    let mut used: Vec<Vec<(usize, i128)>> = vec![Vec::new(); plans.len()];
    for (number, at, rate) in pairs(plans, usage) {
        let rate = i128::from(rate.as_nanos());
        let covered = if rate == 0 { left[at] } else { left[at].min(free[number] / rate) };
        left[at] -= covered;
        free[number] -= covered * rate;
        used[number].push((at, covered * rate));
    }
    for ((plan, free), used) in plans.iter().zip(free).zip(used) {
        let fee = Accrual::new(plan.commitment, hour).total();
        let unused = unused(fee, free, total(plan));
        result.plan_fees += fee;
        result.plan_unused += unused;
        let parts = (fee - unused).shared_by(used.iter().map(|&(_, weight)| weight));
        for (&(at, _), part) in used.iter().zip(parts) {
            result.shares[at].by_plans += part;
        }
    }
}

/// Positions of a plan and a usage that it is for, with the plan's rate, in the order in which AWS applies them: the highest
/// discount first, then the lowest rate. AWS does not say what is first of equals: here plans in their order, then usage in its order.
fn pairs(plans: &[&SavingsPlan], usage: &[Usage]) -> Vec<(usize, usize, HourlyRate)> {
    let mut pairs = Vec::new();
    for (number, plan) in plans.iter().enumerate() {
        for (at, one) in usage.iter().enumerate() {
            if let Some(discount) = plan.discount_on(family(one.instance_type)) {
                let rate = one.rate.scaled(i64::from(WHOLE - discount), i64::from(WHOLE));
                pairs.push((Reverse(discount), rate, number, at));
            }
        }
    }
    pairs.sort_unstable();
    pairs.into_iter().map(|(_, rate, number, at)| (number, at, rate)).collect()
}

/// The family of an instance type.
fn family(instance_type: Symbol) -> &'static str {
    instance_type.as_str().split('.').next().unwrap_or_default()
}

/// The part of `fee` that covered nothing, when `free` of `total` is left; all of it if nothing was covered.
fn unused(fee: Money, free: i128, total: i128) -> Money {
    if total <= 0 || free >= total {
        return fee;
    }
    fee.portion(free, total)
}

/// Families whose regional reservations cover their own size alone.
///
/// Source: EC2 user guide, "How Reserved Instance discounts are applied", limitations of instance size flexibility (2026).
const OF_ONE_SIZE: [&str; 15] = [
    "g4ad", "g4dn", "g5", "g5g", "g6", "g6e", "g6f", "gr6", "gr6f", "hpc7a", "inf1", "inf2", "p5", "u7i-6tb", "u7i-8tb",
];

/// Whether regional Linux reservations of the family cover its other sizes.
fn is_size_flexible(family: &str) -> bool {
    !OF_ONE_SIZE.contains(&family)
}

/// Normalised units of `metal` without a size; of all other families it has those of 24xlarge.
///
/// Source: EC2 user guide, "How Reserved Instance discounts are applied", normalization factor for bare metal instances (2026): that of the largest
/// virtual size of the family, so that i3.metal counts as i3.16xlarge although it has eight vCPUs more.
const METAL: [(u32, &[&str]); 6] = [
    (32, &["a1"]),
    (96, &["m5zn", "x2iezn", "z1d"]),
    (
        128,
        &[
            "c6g", "c6gd", "c7g", "c7gd", "c7gn", "g5g", "i3", "m6g", "m6gd", "m7g", "m7gd", "r6g", "r6gd", "r7g",
            "r7gd", "x2gd",
        ],
    ),
    (144, &["c5n"]),
    (
        256,
        &[
            "c6i", "c6id", "c6in", "i4i", "m6i", "m6id", "m6idn", "m6in", "r6i", "r6id", "r6idn", "r6in", "x2idn",
            "x2iedn",
        ],
    ),
    (384, &["c6a", "m6a", "r6a"]),
];

/// Quarters of a normalised unit of a size: nano 1, micro 2, small 4, medium 8, large 16, xlarge 32 and multiples of it.
fn quarter_units(name: Symbol) -> u32 {
    let (family, size) = name.as_str().split_once('.').unwrap_or_default();
    match size {
        "nano" => 1,
        "micro" => 2,
        "small" => 4,
        "medium" => 8,
        "large" => 16,
        "xlarge" => 32,
        _ => {
            let digits: String = size.trim_start_matches("metal-").chars().take_while(char::is_ascii_digit).collect();
            let metal =
                || METAL.iter().find(|(_, families)| families.contains(&family)).map_or(8 * 24, |metal| metal.0);
            digits.parse::<u32>().map_or_else(|_| 4 * metal(), |multiple| 32 * multiple.min(1_000))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Commitments, CoveredShare, HourOfCommitments, Platform, ReservedInstances, SavingsPlan, Usage, cover,
        quarter_units,
    };
    use nodecast_model::catalog::PriceQuality;
    use nodecast_model::domain::{Accrual, HourlyRate, SimDuration, Symbol};
    use nodecast_prices::Catalog;

    const HOUR: SimDuration = SimDuration::from_secs(3_600);

    fn usage(instance_type: &str, rate: &str) -> Usage {
        let rate = HourlyRate::parse(rate).unwrap();
        let (instance_type, zone) = (Symbol::new(instance_type), Symbol::new("a"));
        Usage { instance_type, platform: Platform::Linux, zone, rate, ran: HOUR, reserved: false }
    }

    fn reserved(instance_type: &str, zone: Option<&str>, count: u32, rate: &str) -> ReservedInstances {
        let rate = HourlyRate::parse(rate).unwrap();
        ReservedInstances {
            instance_type: Symbol::new(instance_type),
            platform: Platform::Linux,
            zone: zone.map(Symbol::new),
            count,
            rate,
            quality: PriceQuality::Published,
        }
    }

    fn plan(family: Option<&str>, commitment: &str, percent: u32) -> SavingsPlan {
        let commitment = HourlyRate::parse(commitment).unwrap();
        SavingsPlan {
            family: family.map(Symbol::new),
            commitment,
            discount: percent * 10_000,
            family_discounts: Vec::new(),
            fargate_discount: None,
            quality: PriceQuality::Published,
        }
    }

    /// What `usage` would have cost at On-Demand prices for the time that is covered.
    fn covered(hour: &HourOfCommitments, usage: &[Usage]) -> String {
        let all = usage.iter().zip(&hour.shares).map(|(one, share)| Accrual::new(one.rate, share.covered));
        all.sum::<Accrual>().total().to_string()
    }

    #[test]
    fn regional_reservation_covers_part_of_larger_sizes() {
        let bought = Commitments { reserved: vec![reserved("m5.large", None, 1, "0.06")], plans: Vec::new() };
        let two = [usage("m5.xlarge", "0.192"), usage("m5.xlarge", "0.192")];
        let hour = cover(&bought, &two, HOUR);
        // Four of sixteen units: 0.288 of 0.384 stay On-Demand.
        assert_eq!(covered(&hour, &two), "0.096000000");
        assert_eq!(hour.reserved_fees.to_string(), "0.060000000");
        assert_eq!((hour.reserved_unused + hour.plan_unused).to_string(), "0.000000000");
    }

    #[test]
    fn size_inflexible_reservation_covers_only_its_size() {
        let with = |name: &str, used: &str| {
            let bought = Commitments { reserved: vec![reserved(name, None, 1, "0.06")], plans: Vec::new() };
            let usage = [usage(used, "0.40")];
            covered(&cover(&bought, &usage, HOUR), &usage)
        };
        for name in ["g4dn", "g6", "g6e", "gr6", "p5", "inf1", "inf2", "hpc7a", "u7i-6tb"] {
            assert_eq!(with(&format!("{name}.4xlarge"), &format!("{name}.2xlarge")), "0.000000000", "{name}");
            assert_eq!(with(&format!("{name}.4xlarge"), &format!("{name}.4xlarge")), "0.400000000", "{name}");
        }
        for name in ["m5", "p4d", "u7i-12tb", "trn1"] {
            assert_eq!(with(&format!("{name}.4xlarge"), &format!("{name}.2xlarge")), "0.400000000", "{name}");
        }
    }

    #[test]
    fn bare_metal_counts_as_the_largest_virtual_size() {
        let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
        for kind in &region.types {
            let name = kind.facts.name;
            let is_metal = name.as_str().contains(".metal") && !name.as_str().starts_with("mac");
            let vcpus = if name.as_str() == "i3.metal" { 64 } else { kind.facts.vcpus };
            assert!(!is_metal || quarter_units(name) == 4 * 2 * vcpus, "{name}: {vcpus} vCPUs");
        }
        let bought = Commitments { reserved: vec![reserved("c6g.metal", None, 1, "1.40")], plans: Vec::new() };
        let usage = [usage("c6g.16xlarge", "2.176")];
        let hour = cover(&bought, &usage, HOUR);
        assert_eq!(covered(&hour, &usage), "2.176000000");
        assert_eq!(hour.reserved_unused.to_string(), "0.000000000");
    }

    #[test]
    fn zonal_reservation_covers_only_its_zone() {
        let bought = Commitments { reserved: vec![reserved("m5.large", Some("b"), 1, "0.06")], plans: Vec::new() };
        let other = [usage("m5.large", "0.096")];
        let hour = cover(&bought, &other, HOUR);
        assert_eq!(covered(&hour, &other), "0.000000000");
        assert_eq!(hour.reserved_unused.to_string(), "0.060000000");
    }

    #[test]
    fn usage_with_the_highest_discount_comes_first() {
        let compute = SavingsPlan { family_discounts: vec![(Symbol::new("m5"), 500_000)], ..plan(None, "0.10", 20) };
        let bought = Commitments { reserved: Vec::new(), plans: vec![compute] };
        let two = [usage("c5.xlarge", "0.20"), usage("m5.xlarge", "0.20")];
        let hour = cover(&bought, &two, HOUR);
        assert_eq!(covered(&hour, &two), "0.200000000");
        assert_eq!(hour.shares[0], CoveredShare::default());
        assert_eq!(hour.shares[1].by_plans, hour.plan_fees, "what is covered bears the plan");
        assert_eq!(hour.plan_fees.to_string(), "0.100000000");
        assert_eq!((hour.reserved_unused + hour.plan_unused).to_string(), "0.000000000");
    }

    #[test]
    fn fargate_needs_plan_with_fargate_discount() {
        let two = [usage("m5.xlarge", "0.20"), usage(super::FARGATE, "0.10")];
        let with = |plan| cover(&Commitments { reserved: Vec::new(), plans: vec![plan] }, &two, HOUR);
        let on_fargate = |plan| with(plan).shares[1].covered;
        assert_eq!(on_fargate(plan(None, "1", 30)), SimDuration::ZERO);
        assert_eq!(on_fargate(plan(Some("m5"), "1", 30)), SimDuration::ZERO);
        assert_eq!(on_fargate(SavingsPlan { fargate_discount: Some(200_000), ..plan(None, "1", 30) }), HOUR);
        // 0.14 goes to the instance, whose discount is higher, and 0.04 is half of what Fargate costs under the plan.
        let short = SavingsPlan { fargate_discount: Some(200_000), ..plan(None, "0.18", 30) };
        assert_eq!(on_fargate(short.clone()), SimDuration::from_secs(1_800));
        assert_eq!(with(short).shares[1].by_plans.to_string(), "0.040000000");
    }

    #[test]
    fn unused_commitment_is_paid_and_shown() {
        let bought = Commitments { reserved: Vec::new(), plans: vec![plan(None, "0.40", 50)] };
        let hour = cover(&bought, &[usage("m5.xlarge", "0.20")], HOUR);
        assert_eq!(hour.plan_fees.to_string(), "0.400000000");
        assert_eq!(hour.plan_unused.to_string(), "0.300000000");
    }

    #[test]
    fn zonal_reservations_do_not_discount_capacity_reservations() {
        let held = Usage { ran: HOUR * 20, reserved: true, ..usage("m4.large", "0.10") };
        let with = |reserved, plans| {
            let hour = cover(&Commitments { reserved, plans }, &[held], HOUR);
            covered(&hour, &[held])
        };
        assert_eq!(with(vec![reserved("m4.large", Some("a"), 5, "0.06")], Vec::new()), "0.000000000");
        assert_eq!(with(vec![reserved("m4.large", None, 5, "0.06")], Vec::new()), "0.500000000");
        // 0.50 at half price: ten of the twenty.
        assert_eq!(with(Vec::new(), vec![plan(None, "0.50", 50)]), "1.000000000");
    }

    #[test]
    fn short_lives_share_the_hour_of_one_reservation() {
        let bought = Commitments { reserved: vec![reserved("m5.large", None, 1, "0.06")], plans: Vec::new() };
        let third = Usage { ran: SimDuration::from_secs(1_200), ..usage("m5.large", "0.096") };
        for lives in [&[third; 3][..], &[third; 4]] {
            assert_eq!(covered(&cover(&bought, lives, HOUR), lives), "0.096000000");
        }
    }
}

//! Commitments of a cluster's account: Reserved Instances and Savings Plans, and the usage that they cover in a clock hour.
//!
//! `nodecast-commitments` has the rules. Here the scenario's commitments become those of one account and one cluster.
//! They cover On-Demand usage and capacity reservations, used or not; Spot takes no part.
//!
//! Deviation: short-lived instances share a reservation's hour by their running seconds.

use nodecast_commitments::{Accounts, PlanKind, PlanRates, ReservedInstance, Tenancy, Term, UsageLine};
pub use nodecast_commitments::{Platform, UsageKind, WHOLE};
use nodecast_model::catalog::PriceQuality;
use nodecast_model::domain::{HourlyRate, Money, SimDuration, SimTime, Symbol};

/// Capacity type of nodes of Fargate.
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

    /// The same as commitments of one account and one region, with ids in the order of what they are: their order in the scenario changes
    /// nothing.
    fn of_one_account(&self) -> nodecast_commitments::Commitments {
        let id = |number: usize| Symbol::new(&format!("{number:09}"));
        let mut reserved: Vec<&ReservedInstances> = self.reserved.iter().collect();
        reserved.sort_unstable();
        let mut plans: Vec<&SavingsPlan> = self.plans.iter().collect();
        plans.sort_unstable();
        nodecast_commitments::Commitments {
            reserved: reserved.into_iter().enumerate().map(|(number, reserved)| reserved.with_id(id(number))).collect(),
            plans: plans.into_iter().enumerate().map(|(number, plan)| plan.with_id(id(number))).collect(),
        }
    }

    /// The weakest quality of a price of Reserved Instances, and of a discount of Savings Plans.
    pub fn qualities(&self) -> [PriceQuality; 2] {
        let reserved = self.reserved.iter().map(|reserved| reserved.quality).max();
        let plans = self.plans.iter().map(|plan| plan.quality).max();
        [reserved, plans].map(|quality| quality.unwrap_or(PriceQuality::Published))
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

impl ReservedInstances {
    fn with_id(&self, id: Symbol) -> ReservedInstance {
        ReservedInstance {
            id,
            owner: here(),
            region: here(),
            zone: self.zone,
            instance_type: self.instance_type,
            platform: self.platform,
            tenancy: Tenancy::Shared,
            count: self.count,
            rate: self.rate,
            term: Term::default(),
        }
    }
}

/// The only account, region, and cluster.
fn here() -> Symbol {
    Symbol::new("")
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
    fn with_id(&self, id: Symbol) -> nodecast_commitments::SavingsPlan {
        let rates = PlanRates {
            discount: Some(self.discount),
            families: self.family_discounts.clone(),
            fargate_cpu: self.fargate_discount,
            fargate_memory: self.fargate_discount,
            ..PlanRates::default()
        };
        let kind = self.family.map_or(PlanKind::Compute, |family| PlanKind::Instance { family, region: here() });
        let (owner, term) = (here(), Term::default());
        nodecast_commitments::SavingsPlan { id, owner, kind, commitment: self.commitment, rates, term }
    }
}

/// On-Demand running time of one instance, or of vCPUs or memory of a pod on Fargate, within one clock hour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Instance type, or what of Fargate.
    pub kind: UsageKind,
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

impl Usage {
    fn line(&self, number: u32) -> UsageLine {
        UsageLine {
            cluster: here(),
            account: here(),
            node: number,
            region: here(),
            zone: self.zone,
            kind: self.kind,
            platform: self.platform,
            tenancy: Tenancy::Shared,
            list: self.rate,
            rate: self.rate,
            ran: self.ran,
            is_reservation: self.reserved,
        }
    }
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
    let bought = commitments.of_one_account();
    let lines: Vec<UsageLine> = usage.iter().zip(0..).map(|(usage, number)| usage.line(number)).collect();
    let covered =
        nodecast_commitments::apply(&Accounts::default(), &bought, &lines, (SimTime::ZERO, SimTime::ZERO + hour));
    let share =
        |(usage, &left): (&Usage, &SimDuration)| CoveredShare { covered: usage.ran - left, ..CoveredShare::default() };
    let shares = usage.iter().zip(&covered.left).map(share).collect();
    let mut result = HourOfCommitments { shares, ..HourOfCommitments::default() };
    for (number, fee) in covered.fees.iter().enumerate() {
        let (fees, unused) = if number < bought.reserved.len() {
            (&mut result.reserved_fees, &mut result.reserved_unused)
        } else {
            (&mut result.plan_fees, &mut result.plan_unused)
        };
        *fees += fee.paid;
        *unused += fee.unused;
    }
    for part in covered.parts {
        let share = &mut result.shares[part.line];
        *(if part.commitment < bought.reserved.len() { &mut share.by_reserved } else { &mut share.by_plans }) +=
            part.fee;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::{
        Commitments, CoveredShare, HourOfCommitments, Platform, ReservedInstances, SavingsPlan, Usage, UsageKind, cover,
    };
    use nodecast_model::catalog::PriceQuality;
    use nodecast_model::domain::{Accrual, HourlyRate, SimDuration, Symbol};

    const HOUR: SimDuration = SimDuration::from_secs(3_600);

    fn usage(instance_type: &str, rate: &str) -> Usage {
        let rate = HourlyRate::parse(rate).unwrap();
        let (kind, zone) = (UsageKind::Instance(Symbol::new(instance_type)), Symbol::new("a"));
        Usage { kind, platform: Platform::Linux, zone, rate, ran: HOUR, reserved: false }
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
        let two = [usage("m5.xlarge", "0.20"), Usage { kind: UsageKind::FargateCpu, ..usage("none", "0.10") }];
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

//! The largest lines of today's bill, each with the levers that concern it and their results.
//!
//! Must not: decide what is recommended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::levers::{Kind, RELEASE, TIER};
use crate::cloud::{BillItem, BillLine};
use crate::domain::{Money, well_known};
use crate::report::summary::HOURS_PER_MONTH;
use crate::world::outcome::Outcome;

/// Lines that an answer begins with.
const LINES_MAX: usize = 3;

/// A line of today's bill.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LargeLine {
    /// The kind of cost: `On-Demand nodes`, `NAT gateways`.
    pub name: String,
    /// Its cost for a month of 730 hours.
    pub per_month: f64,
    /// Its share of the bill, 0 to 1.
    pub share: f64,
    /// The levers that concern it, the largest saving first; empty if no lever changes this line.
    pub levers: Vec<LineLever>,
    /// The action that no lever takes.
    pub by_hand: String,
}

/// A lever that concerns a line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LineLever {
    /// The kind of lever, as the command line names it.
    pub lever: String,
    /// The result.
    pub result: LeverResult,
    /// The saving per month: of a recommended change next to all others, else of its best value alone.
    pub saves_per_month: Option<f64>,
}

/// The result of a lever.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeverResult {
    /// It is one of the recommended changes.
    Recommended,
    /// Its best value saves alone and is not recommended.
    NotRecommended,
    /// Its best value saves alone, but breaks a constraint.
    BeyondLimits,
    /// No value saves.
    SavesNothing,
    /// It was in the search, but not simulated.
    NotSimulated,
    /// An option excludes it.
    Excluded,
    /// The scenario has nothing that it can change.
    NothingToChange,
}

/// The levers that concern a line of the bill.
#[derive(Clone, Copy)]
pub struct Concern {
    /// Their kinds.
    pub kinds: &'static [Kind],
    item: BillItem,
}

impl Concern {
    /// Whether a lever of one of the kinds changes this line. Volumes of nodes and of claims are two lines, and so are support and tier.
    pub fn has_subject(&self, subject: &str) -> bool {
        let is_class = subject.starts_with("StorageClass ") || subject.starts_with("VolumeAttributesClass ");
        match self.item {
            BillItem::RootVolume => !is_class,
            BillItem::PersistentVolume => is_class,
            BillItem::ExtendedSupport => subject == RELEASE,
            BillItem::ControlPlaneTier => subject == TIER,
            _ => true,
        }
    }
}

/// The largest lines of a run's bill, net of what is taken back, with the levers that concern each line; results come later.
pub fn largest_lines(outcome: &Outcome) -> Vec<(LargeLine, Concern)> {
    let hours = outcome.about.duration.as_secs_f64() / 3_600.0;
    largest(outcome.bill.net(), outcome.bill.total(), hours)
}

fn largest(bill: &[BillLine], total: Money, hours: f64) -> Vec<(LargeLine, Concern)> {
    let mut sums: BTreeMap<&'static str, (Money, BillItem)> = BTreeMap::new();
    for line in bill {
        sums.entry(name(line)).or_insert((Money::ZERO, line.item)).0 += line.amount;
    }
    let total = total.as_f64();
    if total <= 0.0 || hours <= 0.0 {
        return Vec::new();
    }
    let mut lines: Vec<_> = sums.into_iter().filter(|(_, (amount, _))| *amount > Money::ZERO).collect();
    lines.sort_by(|(one, a), (other, b)| b.0.cmp(&a.0).then(one.cmp(other)));
    let line = |(name, (amount, item)): (&'static str, (Money, BillItem))| {
        let (kinds, by_hand) = concerns(name, item);
        let amount = amount.as_f64();
        let line = LargeLine {
            name: name.to_owned(),
            per_month: amount / hours * HOURS_PER_MONTH,
            share: amount / total,
            levers: Vec::new(),
            by_hand: by_hand.to_owned(),
        };
        (line, Concern { kinds, item })
    };
    lines.into_iter().take(LINES_MAX).map(line).collect()
}

const ON_DEMAND: &str = "On-Demand nodes";
const SPOT: &str = "Spot nodes";
const COVERED: &str = "nodes under commitments";

/// The kind of cost of a line.
fn name(line: &BillLine) -> &'static str {
    let is_spot = line.capacity_type == Some(well_known::SPOT);
    match line.item {
        BillItem::Instance | BillItem::FreeFirstHour if is_spot => SPOT,
        BillItem::Instance | BillItem::FreeFirstHour if line.capacity_type == Some(well_known::RESERVED) => {
            "nodes in capacity reservations"
        }
        BillItem::Instance | BillItem::FreeFirstHour => ON_DEMAND,
        BillItem::ReservedInstances | BillItem::SavingsPlans => COVERED,
        BillItem::UnusedCommitment => "unused commitments",
        BillItem::RootVolume => "EBS volumes of nodes",
        BillItem::PersistentVolume => "EBS volumes of claims",
        BillItem::FargateCpu | BillItem::FargateMemory | BillItem::FargateStorage => "Fargate",
        item => item.name(),
    }
}

/// Levers that change nodes; the last two concern On-Demand nodes alone.
const OF_NODES: [Kind; 22] = [
    Kind::Consolidation,
    Kind::ConsolidateAfter,
    Kind::Budgets,
    Kind::Blockers,
    Kind::Families,
    Kind::Sizes,
    Kind::Architectures,
    Kind::Weights,
    Kind::Limits,
    Kind::Split,
    Kind::HpaTargets,
    Kind::HpaMinimum,
    Kind::HpaBehavior,
    Kind::Requests,
    Kind::DaemonSets,
    Kind::Schedules,
    Kind::Headroom,
    Kind::GroupTypes,
    Kind::GroupSizes,
    Kind::Flags,
    Kind::Spot,
    Kind::Commitments,
];

/// The levers that concern a line, and the action that none of them takes.
fn concerns(name: &str, item: BillItem) -> (&'static [Kind], &'static str) {
    let (of_spot, _) = OF_NODES.split_at(OF_NODES.len() - 2);
    match name {
        ON_DEMAND => return (&OF_NODES, "lower the requests of the largest workloads, or let them run on Spot"),
        SPOT => return (of_spot, "lower the requests of the largest workloads"),
        COVERED => return (of_spot, "do not renew commitments that cover more than you need"),
        _ => {}
    }
    let kinds: &[Kind] = match item {
        BillItem::RootVolume | BillItem::PersistentVolume => &[Kind::Volumes],
        BillItem::UnusedCommitment => &[Kind::UnusedCommitments],
        BillItem::ExtendedSupport | BillItem::ControlPlaneTier => &[Kind::Support],
        BillItem::CrossZoneTransfer => &[Kind::Zones, Kind::TopologyRouting],
        BillItem::NatTransfer => &[Kind::Endpoints],
        _ => &[],
    };
    let by_hand = match item {
        BillItem::UnusedCommitment => {
            "sell Reserved Instances on the marketplace, share the commitment with other accounts, or do not renew it"
        }
        BillItem::RootVolume => {
            "use fewer, larger nodes, or measure disk use and set smaller volumes in `blockDeviceMappings` of the EC2NodeClass"
        }
        BillItem::PersistentVolume => {
            "measure the use of volumes: delete unused ones, move cold data to st1 or S3, and recreate volumes that are too large"
        }
        BillItem::WarmPool => {
            "let the instances of the warm pool wait stopped (`poolState: Stopped`), or make the pool smaller"
        }
        BillItem::WarmPoolVolume => "make the warm pool smaller (`maxGroupPreparedCapacity`)",
        BillItem::PublicIpv4 => "put nodes in private subnets",
        BillItem::ControlPlane => "share one cluster among several teams: each cluster has this price",
        BillItem::ExtendedSupport => "upgrade the control plane to a release under standard support",
        BillItem::ControlPlaneTier => "split the cluster, so that each part does with a lower tier",
        BillItem::Capability(_) => "delete the capability or its unused items, or run its controller in the cluster",
        BillItem::HybridNodes => "remove idle hybrid nodes",
        BillItem::CapacityReservation | BillItem::UnusedCapacityReservation | BillItem::Instance => {
            "cancel or shrink the capacity reservation, or let a NodePool use it (`capacityReservationSelectorTerms`)"
        }
        BillItem::LoadBalancer | BillItem::LoadBalancerCapacity => {
            "share one load balancer among Ingresses (`alb.ingress.kubernetes.io/group.name`)"
        }
        BillItem::NatGateway => "use one gateway for all zones, or VPC endpoints instead of gateways",
        BillItem::NatTransfer => "copy public images to ECR and add a gateway endpoint of S3, or use smaller images",
        BillItem::CrossZoneTransfer => {
            "put a Service in front of workloads that call each other and keep its calls in their zone, or compress traffic"
        }
        BillItem::CpuCredits => "use a family that is not burstable for steady load",
        BillItem::NodeFee | BillItem::AutoModeFee => "use fewer, larger nodes",
        BillItem::FargateCpu | BillItem::FargateMemory | BillItem::FargateStorage => {
            "move pods that run all the time from Fargate to nodes, and lower requests to the next smaller size"
        }
        _ => "the simulation does not change this line: check what it pays for",
    };
    (kinds, by_hand)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{LINES_MAX, concerns, largest, name};
    use crate::catalog::PriceQuality;
    use crate::cloud::{BillItem, BillLine};
    use crate::domain::{HourlyRate, Money, SimDuration, SimTime, Symbol, well_known};
    use crate::recommendation::Kind;

    #[test]
    fn commitments_and_spot_concern_on_demand_nodes_only() {
        let kinds = |name| concerns(name, BillItem::Instance).0;
        assert!(kinds("On-Demand nodes").contains(&Kind::Commitments));
        assert!(!kinds("Spot nodes").iter().any(|kind| matches!(kind, Kind::Commitments | Kind::Spot)));
        assert!(kinds("Spot nodes").contains(&Kind::Flags));
    }

    const ITEMS: [BillItem; 12] = [
        BillItem::Instance,
        BillItem::RootVolume,
        BillItem::PersistentVolume,
        BillItem::UnusedCommitment,
        BillItem::SavingsPlans,
        BillItem::ReservedInstances,
        BillItem::ExtendedSupport,
        BillItem::ControlPlaneTier,
        BillItem::CrossZoneTransfer,
        BillItem::NatTransfer,
        BillItem::FargateCpu,
        BillItem::CpuCredits,
    ];

    fn line((place, spot, amount): (usize, bool, i64)) -> BillLine {
        let item = ITEMS.get(place).copied().unwrap_or_else(|| BillItem::Other(Symbol::new("logs")));
        BillLine {
            item,
            node: None,
            capacity_type: Some(if spot { well_known::SPOT } else { well_known::ON_DEMAND }),
            instance_type: None,
            zone: None,
            from: SimTime::ZERO,
            to: SimTime::ZERO,
            billed: SimDuration::ZERO,
            rate: HourlyRate::default(),
            amount: Money::from_nanos(i128::from(amount)),
            quality: PriceQuality::Published,
        }
    }

    proptest! {
        #[test]
        fn line_above_half_of_the_bill_is_listed(
            drawn in prop::collection::vec((0..=ITEMS.len(), any::<bool>(), 0_i64..1_000_000_000), 1..60),
            (place, spot, more) in (0..=ITEMS.len(), any::<bool>(), 0_i64..60_000_000_000),
        ) {
            let bill: Vec<BillLine> = drawn.into_iter().chain([(place, spot, more)]).map(line).collect();
            let total: Money = bill.iter().map(|line| line.amount).sum();
            let mut sums: BTreeMap<&str, Money> = BTreeMap::new();
            bill.iter().for_each(|line| *sums.entry(name(line)).or_insert(Money::ZERO) += line.amount);
            let lines = largest(&bill, total, 730.0);
            prop_assert!(lines.len() <= LINES_MAX);
            for (name, sum) in sums.into_iter().filter(|(_, sum)| *sum + *sum > total) {
                let found = lines.iter().find(|(line, _)| line.name == name);
                prop_assert!(found.is_some_and(|(line, _)| line.share > 0.5), "{name} costs {sum}");
            }
        }
    }
}

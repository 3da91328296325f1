//! Usage of one cluster: what commitments may cover, hour by hour, and all other charges.

use nodecast_commitments::{OtherCosts, Platform, Tenancy, UsageKind, UsageLine};
use nodecast_ec2::bill::{BillItem, BillLine};
use nodecast_model::catalog::Region;
use nodecast_model::domain::{Money, SimDuration, SimTime, Symbol, well_known};
use nodecast_world::Outcome;

use crate::charges::Charges;
use crate::{Fleet, LoadedCluster};

/// A clock hour.
pub(crate) const HOUR: SimDuration = SimDuration::from_secs(3_600);

/// Usage of one cluster over a run.
#[derive(Clone, Debug, Default)]
pub struct ClusterUsage {
    /// What commitments may cover, each with its hour, in the order of hours.
    pub lines: Vec<(u32, UsageLine)>,
    /// Charge for these lines where nothing covers them.
    pub charged: Money,
    /// All other charges.
    pub other: OtherCosts,
    /// The same by hour.
    pub(crate) charges: Charges,
    /// Sum of the cluster's own bill.
    pub total: Money,
}

/// The hours of a time, each with its part of it.
pub(crate) fn hours_between(from: SimTime, to: SimTime) -> impl Iterator<Item = (u32, SimDuration)> {
    let mut began = from;
    std::iter::from_fn(move || {
        let hour = (began - SimTime::ZERO).as_micros() / HOUR.as_micros();
        let ended = (SimTime::ZERO + HOUR * (hour + 1)).min(to);
        let ran = ended - began;
        let is_over = began >= to;
        began = ended;
        (!is_over).then_some((u32::try_from(hour).unwrap_or(u32::MAX), ran))
    })
}

/// What turns lines of a cluster's bill into usage.
struct Reader<'r> {
    fleet: &'r Fleet,
    cluster: &'r LoadedCluster,
    region: &'r Region,
    outcome: &'r Outcome,
}

impl ClusterUsage {
    /// The usage of a cluster whose run has this outcome.
    pub fn from_outcome(fleet: &Fleet, cluster: &LoadedCluster, region: &Region, outcome: &Outcome) -> Self {
        let reader = Reader { fleet, cluster, region, outcome };
        let mut usage = Self { total: outcome.bill.total(), ..Self::default() };
        for line in &outcome.bill.lines {
            match reader.kind(line) {
                Some(kind) => {
                    usage.charged += line.amount;
                    reader.add_hours(line, kind, (line.from, line.to), 1, &mut usage.lines);
                }
                None if is_reservation(line) => usage.charged += line.amount,
                None => {
                    add(&mut usage.other, line);
                    usage.charges.add(line);
                }
            }
        }
        reader.add_reservations(&mut usage.lines);
        usage.lines.sort_by_key(|(hour, _)| *hour);
        usage
    }
}

impl Reader<'_> {
    /// What a line of On-Demand usage is of; `None` of all others.
    fn kind(&self, line: &BillLine) -> Option<UsageKind> {
        match line.item {
            BillItem::Instance if line.capacity_type == Some(well_known::ON_DEMAND) => {
                line.instance_type.map(UsageKind::Instance)
            }
            BillItem::WarmPool => line.instance_type.map(UsageKind::Instance),
            BillItem::FargateCpu => Some(UsageKind::FargateCpu),
            BillItem::FargateMemory => Some(UsageKind::FargateMemory),
            _ => None,
        }
    }

    /// Adds the hours of a line; it counts `count` times.
    fn add_hours(
        &self,
        line: &BillLine,
        kind: UsageKind,
        (from, to): (SimTime, SimTime),
        count: u32,
        lines: &mut Vec<(u32, UsageLine)>,
    ) {
        let is_windows = line.node.is_some_and(|node| self.outcome.bill.windows.contains(&node));
        let zone = line.zone.map_or("", |zone| zone.as_str());
        let usage = UsageLine {
            cluster: Symbol::new(&self.cluster.name),
            account: Symbol::new(&self.fleet.accounts[self.cluster.account].id),
            node: line.node.map_or(u32::MAX, |node| node.0),
            region: self.region.name,
            zone: Symbol::new(&self.fleet.zone_id(self.cluster.account, zone, self.region)),
            kind,
            platform: if is_windows { Platform::Windows } else { Platform::Linux },
            tenancy: Tenancy::Shared,
            list: line.rate,
            rate: line.rate,
            ran: SimDuration::ZERO,
            is_reservation: line.item == BillItem::CapacityReservation,
        };
        lines.extend(
            hours_between(from, to).map(|(hour, ran)| (hour, UsageLine { ran: ran * i64::from(count), ..usage })),
        );
    }

    /// Adds the capacity reservations of the cluster's scenario, used or not; no commitment covers Capacity Blocks.
    fn add_reservations(&self, lines: &mut Vec<(u32, UsageLine)>) {
        let end = SimTime::ZERO + self.outcome.about.duration;
        let reservations = &self.cluster.scenario.ec2.cloud.reservations;
        for reservation in reservations.iter().filter(|reservation| !reservation.block) {
            let is_of = |line: &&BillLine| {
                is_reservation(line)
                    && line.instance_type == Some(reservation.instance_type)
                    && line.zone == Some(reservation.zone)
            };
            let Some(line) = self.outcome.bill.lines.iter().find(is_of) else { continue };
            let line = BillLine { item: BillItem::CapacityReservation, node: None, ..line.clone() };
            let (from, to) = (reservation.from, reservation.until.map_or(end, |until| until.min(end)));
            let kind = UsageKind::Instance(reservation.instance_type);
            self.add_hours(&line, kind, (from, to), reservation.count, lines);
        }
    }
}

fn is_reservation(line: &BillLine) -> bool {
    matches!(line.item, BillItem::CapacityReservation | BillItem::UnusedCapacityReservation)
}

/// Adds a line that no commitment covers to its column.
fn add(other: &mut OtherCosts, line: &BillLine) {
    let column = match line.item {
        BillItem::Instance if line.capacity_type == Some(well_known::SPOT) => &mut other.spot,
        BillItem::FreeFirstHour => &mut other.spot,
        // Commitments and the discount of a scenario are the cluster's own. The fleet's discount is not on them.
        BillItem::NodeFee | BillItem::Other(_) | BillItem::Discount => &mut other.own_fees,
        BillItem::Instance
        | BillItem::WarmPool
        | BillItem::ReservedInstances
        | BillItem::SavingsPlans
        | BillItem::UnusedCommitment
        | BillItem::Covered => &mut other.on_demand,
        BillItem::RootVolume | BillItem::PersistentVolume | BillItem::WarmPoolVolume => &mut other.storage,
        BillItem::FargateStorage => &mut other.fargate,
        BillItem::ControlPlane
        | BillItem::ExtendedSupport
        | BillItem::ControlPlaneTier
        | BillItem::Capability(_)
        | BillItem::HybridNodes => &mut other.control_plane,
        item if item.is_network() => &mut other.network,
        _ => &mut other.fees,
    };
    *column += line.amount;
}

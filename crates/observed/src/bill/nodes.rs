//! What lines of instances say of nodes: hours and costs by instance type, capacity type and zone, and Spot prices by the hour.

use std::collections::BTreeMap;

use jiff::Timestamp;
use nodecast_model::domain::HourlyRate;

use super::amount::Amount;
use super::line::BillLine;
use super::usage_type::Group;

/// How a node's capacity is bought. What a commitment covers is On-Demand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CapacityType {
    /// On-Demand, under a commitment or not.
    OnDemand,
    /// Spot.
    Spot,
}

impl CapacityType {
    /// The value of the label `karpenter.sh/capacity-type`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Spot => "spot",
        }
    }
}

/// Nodes of one kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NodeKey {
    /// How they are bought.
    pub capacity: CapacityType,
    /// Their instance type.
    pub instance_type: String,
    /// Their zone; empty where the export does not say.
    pub zone: String,
}

/// Hours of nodes, and what they cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeHours {
    /// Hours.
    pub hours: Amount,
    /// Hours that a Savings Plan or a reservation covers, among them.
    pub covered_hours: Amount,
    /// Unblended cost.
    pub unblended: Amount,
    /// Amortised cost.
    pub amortised: Amount,
    /// Cost at public On-Demand prices of those hours whose lines state it.
    pub list: Amount,
    /// Hours whose lines state a public On-Demand price.
    pub listed_hours: Amount,
}

impl NodeHours {
    /// The mean amortised price of an hour; `None` without hours.
    pub fn mean_price(&self) -> Option<HourlyRate> {
        self.amortised.per_hour(self.hours)
    }

    /// The mean public On-Demand price of an hour, where the export states one.
    pub fn list_price(&self) -> Option<HourlyRate> {
        self.list.per_hour(self.listed_hours)
    }

    fn add(&mut self, line: &BillLine, part: impl Fn(Amount) -> Amount) {
        let hours = part(line.usage);
        self.hours += hours;
        if line.kind != super::line::ChargeKind::Usage {
            self.covered_hours += hours;
        }
        self.unblended += part(line.unblended);
        self.amortised += part(line.amortised);
        if let Some(list) = line.list {
            self.list += part(list);
            self.listed_hours += hours;
        }
    }
}

/// A Spot pool in one hour.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SpotKey {
    /// The instance type.
    pub instance_type: String,
    /// The zone.
    pub zone: String,
    /// The begin of the hour.
    pub hour: Timestamp,
}

/// What a Spot pool's instances took in one hour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpotHour {
    /// Hours of instances.
    pub hours: Amount,
    /// What they cost.
    pub cost: Amount,
}

impl SpotHour {
    /// The Spot price of that hour; `None` without hours.
    pub fn price(&self) -> Option<HourlyRate> {
        self.cost.per_hour(self.hours)
    }
}

/// Nodes' hours and Spot prices, as lines come.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct NodeTables {
    pub hours: BTreeMap<NodeKey, NodeHours>,
    pub spot: BTreeMap<SpotKey, SpotHour>,
}

impl NodeTables {
    /// Takes a line of this group, of which `part` is the cluster's.
    pub(super) fn take(&mut self, line: &BillLine, group: &Group, part: impl Fn(Amount) -> Amount) {
        if !group.is_nodes() || !line.kind.is_usage() || !line.counts_hours() {
            return;
        }
        let capacity = if *group == Group::NodesSpot { CapacityType::Spot } else { CapacityType::OnDemand };
        let (instance_type, zone) = (line.instance_type.clone(), line.zone.clone());
        let key = NodeKey { capacity, instance_type: instance_type.clone(), zone: zone.clone() };
        self.hours.entry(key).or_default().add(line, &part);
        // Lines of a day or a month hide the hours' prices.
        let within_an_hour = line.end.duration_since(line.start).as_secs() <= 3_600;
        if capacity == CapacityType::Spot && within_an_hour {
            let pool = self.spot.entry(SpotKey { instance_type, zone, hour: line.start }).or_default();
            pool.hours += part(line.usage);
            pool.cost += part(line.unblended);
        }
    }
}

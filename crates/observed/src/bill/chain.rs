//! From an observed bill to a simulated one, link by link.
//!
//! What must not live here: how either bill came about. Both sides are plain numbers, so that a finished simulation, a forecast or another
//! month can stand on either.

use std::collections::{BTreeMap, BTreeSet};

use nodecast_model::domain::{HourlyRate, Money};

use super::amount::Amount;
use super::nodes::CapacityType;
use super::totals::Totals;
use super::usage_type::Group;

/// Nodes of one capacity type and instance type, over all zones.
type TypeKey = (CapacityType, String);

/// One of the two bills that are compared.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ComparedBill {
    /// Costs by group, but for nodes that `nodes` has. A group that is not here is one that this side knows nothing of; one that came to
    /// nothing stands here with nothing.
    pub groups: BTreeMap<Group, Amount>,
    /// Nodes by capacity type and instance type.
    pub nodes: BTreeMap<TypeKey, NodeCost>,
}

/// Hours of nodes, and what they cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeCost {
    /// Hours.
    pub hours: Amount,
    /// Cost.
    pub cost: Amount,
}

impl NodeCost {
    /// Hours at a mean price.
    pub fn at_price(hours: Amount, price: HourlyRate) -> Self {
        Self { hours, cost: hours.at_rate(price) }
    }

    /// The mean price of an hour; `None` without hours.
    pub fn price(&self) -> Option<HourlyRate> {
        self.cost.per_hour(self.hours)
    }
}

impl ComparedBill {
    /// An observed bill, amortised: the cost that a simulation with the same commitments is to be held against.
    pub fn amortised(totals: &Totals) -> Self {
        let mut side = Self::default();
        for (key, hours) in &totals.nodes {
            let node = side.nodes.entry((key.capacity, key.instance_type.clone())).or_default();
            node.hours += hours.hours;
            node.cost += hours.amortised;
        }
        for (group, sums) in &totals.groups {
            // Lines of nodes without hours, such as those against what a plan covers, stay in their group.
            let in_nodes: Amount = if group.is_nodes() { side.nodes_of(group) } else { Amount::ZERO };
            if !group.is_nodes() || sums.amortised != in_nodes {
                side.groups.insert(group.clone(), sums.amortised - in_nodes);
            }
        }
        side
    }

    /// A simulated bill: money by group, but for nodes, and hours with their mean price by capacity type and instance type.
    pub fn simulated(
        groups: impl IntoIterator<Item = (Group, Money)>,
        nodes: impl IntoIterator<Item = (CapacityType, String, Amount, HourlyRate)>,
    ) -> Self {
        let mut side = Self::default();
        for (group, money) in groups {
            *side.groups.entry(group).or_default() += Amount::from_money(money);
        }
        for (capacity, instance_type, hours, price) in nodes {
            let (node, more) =
                (side.nodes.entry((capacity, instance_type)).or_default(), NodeCost::at_price(hours, price));
            node.hours += more.hours;
            node.cost += more.cost;
        }
        side
    }

    fn nodes_of(&self, group: &Group) -> Amount {
        let capacity = if *group == Group::NodesSpot { CapacityType::Spot } else { CapacityType::OnDemand };
        self.nodes.iter().filter(|((of, _), _)| *of == capacity).map(|(_, node)| node.cost).sum()
    }

    /// The whole bill.
    pub fn total(&self) -> Amount {
        let groups: Amount = self.groups.values().copied().sum();
        groups + self.nodes.values().map(|node| node.cost).sum()
    }
}

/// What a link of the chain is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LinkKind {
    /// Costs of a group that the simulation knows nothing of.
    NotSimulated(Group),
    /// Nodes of a capacity type cost more or less by the hour than simulated.
    Price(CapacityType),
    /// Nodes of a capacity type and a size (`2xlarge`) ran for more or fewer hours than simulated.
    Hours(CapacityType, String),
    /// A group that both sides have differs.
    Group(Group),
}

/// One link: what is taken from the observed bill on the way to the simulated one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// What it is about.
    pub kind: LinkKind,
    /// How much more was observed than simulated; negative where less was.
    pub amount: Amount,
}

/// The way from an observed bill to a simulated one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    /// The observed bill.
    pub observed: Amount,
    /// What is taken off, in order; links of nothing are left out.
    pub links: Vec<Link>,
    /// The simulated bill: exactly what is left.
    pub simulated: Amount,
}

/// Takes an observed bill apart until the simulated one is left.
///
/// A node type that both sides have differs by price for the hours that were observed, and by hours at the simulated price. One that only
/// one side has differs by all of its hours.
pub fn chain(observed: &ComparedBill, simulated: &ComparedBill) -> Chain {
    let mut links: BTreeMap<LinkKind, Amount> = BTreeMap::new();
    let mut add = |kind, amount| *links.entry(kind).or_default() += amount;
    let groups: BTreeSet<&Group> = observed.groups.keys().chain(simulated.groups.keys()).collect();
    for group in groups {
        let amount = observed.groups.get(group).copied().unwrap_or_default();
        match simulated.groups.get(group) {
            Some(other) => add(LinkKind::Group(group.clone()), amount - *other),
            None => add(LinkKind::NotSimulated(group.clone()), amount),
        }
    }
    let types: BTreeSet<&TypeKey> = observed.nodes.keys().chain(simulated.nodes.keys()).collect();
    for key in types {
        let (capacity, instance_type) = key;
        let of = |side: &ComparedBill| side.nodes.get(key).copied().unwrap_or_default();
        let (left, right) = (of(observed), of(simulated));
        let by_price = match right.price() {
            Some(price) if left.hours > Amount::ZERO => left.cost - left.hours.at_rate(price),
            _ => Amount::ZERO,
        };
        add(LinkKind::Price(*capacity), by_price);
        // The rest is of hours, so that nothing is lost by rounding.
        add(LinkKind::Hours(*capacity, size(instance_type).to_owned()), left.cost - right.cost - by_price);
    }
    let links = links.into_iter().filter(|(_, amount)| *amount != Amount::ZERO);
    let links = links.map(|(kind, amount)| Link { kind, amount }).collect();
    Chain { observed: observed.total(), links, simulated: simulated.total() }
}

/// The size of an instance type: what stands after the dot.
fn size(instance_type: &str) -> &str {
    instance_type.split_once('.').map_or(instance_type, |(_, size)| size)
}

/// Where the price came from at which hours are held.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RateSource {
    /// Stated by whoever compares: On-Demand list prices, Spot means.
    Stated,
    /// The observed mean of the type.
    Observed,
    /// The simulated mean of the type, which was not observed.
    Simulated,
    /// Nowhere: the type's hours are left out on both sides.
    Missing,
}

/// A price for one type's hours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldRate {
    /// The price of an hour.
    pub price: HourlyRate,
    /// Where it came from.
    pub source: RateSource,
}

/// One type's hours on both sides at one price.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeHeld {
    /// Observed hours.
    pub observed: Amount,
    /// Simulated hours.
    pub simulated: Amount,
    /// The price of both.
    pub rate: HeldRate,
}

/// Observed hours against simulated hours, both at one price list: it judges the simulator and not the forecast of prices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PriceHeld {
    /// The observed hours at the price list.
    pub observed: Amount,
    /// The simulated hours at the price list.
    pub simulated: Amount,
    /// Hours and prices by capacity type and instance type.
    pub types: BTreeMap<TypeKey, TypeHeld>,
}

/// Compares hours at one price list: `prices` where it names a type, else the mean that was observed, else the simulated one.
pub fn price_held(
    observed: &ComparedBill,
    simulated: &ComparedBill,
    prices: &BTreeMap<TypeKey, HourlyRate>,
) -> PriceHeld {
    let keys: BTreeSet<&TypeKey> = observed.nodes.keys().chain(simulated.nodes.keys()).collect();
    let mut held = PriceHeld { observed: Amount::ZERO, simulated: Amount::ZERO, types: BTreeMap::new() };
    for key in keys {
        let of = |side: &ComparedBill| side.nodes.get(key).copied().unwrap_or_default();
        let (left, right) = (of(observed), of(simulated));
        let stated = prices.get(key).map(|&price| HeldRate { price, source: RateSource::Stated });
        let rate = stated
            .or_else(|| left.price().map(|price| HeldRate { price, source: RateSource::Observed }))
            .or_else(|| right.price().map(|price| HeldRate { price, source: RateSource::Simulated }))
            .unwrap_or(HeldRate { price: HourlyRate::ZERO, source: RateSource::Missing });
        held.observed += left.hours.at_rate(rate.price);
        held.simulated += right.hours.at_rate(rate.price);
        held.types.insert(key.clone(), TypeHeld { observed: left.hours, simulated: right.hours, rate });
    }
    held
}

impl Totals {
    /// The price list at which hours are to be held: On-Demand list prices where the export states them, the observed mean of Spot.
    pub fn held_prices(&self) -> BTreeMap<TypeKey, HourlyRate> {
        let mut sums: BTreeMap<TypeKey, NodeCost> = BTreeMap::new();
        for (key, hours) in &self.nodes {
            let of_type = sums.entry((key.capacity, key.instance_type.clone())).or_default();
            let (cost, hours) = match key.capacity {
                CapacityType::OnDemand => (hours.list, hours.listed_hours),
                CapacityType::Spot => (hours.unblended, hours.hours),
            };
            of_type.cost += cost;
            of_type.hours += hours;
        }
        sums.into_iter().filter_map(|(key, cost)| Some((key, cost.price()?))).collect()
    }
}

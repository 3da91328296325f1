//! Chargeback: rows that share the bill out to clusters, accounts, and the organisation.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use nodecast_model::domain::{Money, Symbol};

use crate::accounts::Accounts;
use crate::bill::{Amounts, Bearer, Bill};
use crate::commitment::WHOLE;
use crate::share::largest_remainder;

/// Bearer of unused commitments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UnusedRule {
    /// The account that bought them, as on AWS's bill.
    #[default]
    Owner,
    /// The clusters whose usage the commitment could cover, by its value at list prices over the run; the owner if there are none.
    Usage,
    /// The organisation, in one row.
    Central,
}

impl UnusedRule {
    /// The rule as a fleet file writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Usage => "usage",
            Self::Central => "central",
        }
    }
}

/// Charges of a cluster that no commitment can cover.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OtherCosts {
    /// On-Demand charges beyond the usage lines: rounding up to a second, and the minimum of a minute.
    pub on_demand: Money,
    /// Spot instances and Capacity Blocks.
    pub spot: Money,
    /// Storage of Fargate.
    pub fargate: Money,
    /// Volumes.
    pub storage: Money,
    /// Load balancers, NAT gateways, addresses, and traffic.
    pub network: Money,
    /// The EKS control plane.
    pub control_plane: Money,
    /// Other charges of AWS, as EKS Auto Mode and CPU credits.
    pub fees: Money,
    /// Charges of others than AWS: the organisation's discount is not on them.
    pub own_fees: Money,
}

impl OtherCosts {
    /// Their sum.
    pub fn total(&self) -> Money {
        self.on_demand
            + self.spot
            + self.fargate
            + self.storage
            + self.network
            + self.control_plane
            + self.fees
            + self.own_fees
    }
}

/// Kind of a chargeback row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RowKind {
    /// A cluster.
    Cluster,
    /// Part of an account that no cluster bears.
    Account,
    /// Part of the organisation that no account bears.
    Organization,
    /// The sum of all rows.
    Total,
}

/// A row of the chargeback table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChargebackRow {
    /// Kind.
    pub kind: RowKind,
    /// The cluster, of a row of one.
    pub cluster: Option<Symbol>,
    /// The account, of a row of a cluster or account.
    pub account: Option<Symbol>,
    /// The account's group.
    pub group: Option<Symbol>,
    /// Usage at list prices and all other charges, before discounts.
    pub list: Money,
    /// Usage that nothing covers.
    pub on_demand: Money,
    /// Value at list prices of what commitments cover.
    pub covered_list: Money,
    /// Fees of Reserved Instances for what they cover.
    pub reserved: Money,
    /// Fees of Savings Plans for what they cover.
    pub savings_plans: Money,
    /// Share of unused commitments.
    pub unused_share: Money,
    /// Spot instances.
    pub spot: Money,
    /// Fargate that nothing covers.
    pub fargate: Money,
    /// Volumes.
    pub storage: Money,
    /// Network.
    pub network: Money,
    /// The control plane.
    pub control_plane: Money,
    /// Fees.
    pub fees: Money,
    /// Discount of the organisation: negative, or zero.
    pub discount: Money,
    /// Net cost.
    pub net: Money,
    /// Saving: `list` less `net`.
    pub saved: Money,
}

impl ChargebackRow {
    /// Titles of the columns.
    pub const COLUMNS: [&'static str; 18] = [
        "cluster",
        "account",
        "group",
        "list",
        "on_demand",
        "covered_list",
        "reserved",
        "savings_plans",
        "unused_share",
        "spot",
        "fargate",
        "storage",
        "network",
        "control_plane",
        "fees",
        "discount",
        "net",
        "saved",
    ];

    /// The amounts, in the order of [`COLUMNS`](Self::COLUMNS) after the group.
    pub fn amounts(&self) -> [Money; 15] {
        [
            self.list,
            self.on_demand,
            self.covered_list,
            self.reserved,
            self.savings_plans,
            self.unused_share,
            self.spot,
            self.fargate,
            self.storage,
            self.network,
            self.control_plane,
            self.fees,
            self.discount,
            self.net,
            self.saved,
        ]
    }
}

/// Charges of a row while it is built.
#[derive(Clone, Copy, Default)]
struct Charges {
    usage: Amounts,
    other: OtherCosts,
    unused: Money,
}

impl Charges {
    /// The part that AWS charges, which the organisation's discount is on.
    fn discounted(&self) -> Money {
        self.usage.effective() + self.other.total() - self.other.own_fees + self.unused
    }

    fn is_zero(&self) -> bool {
        self.usage == Amounts::default() && self.discounted() + self.other.own_fees == Money::ZERO
    }

    fn row(&self, key: Key, accounts: &Accounts, discount: Money) -> ChargebackRow {
        let (usage, other) = (&self.usage, &self.other);
        let list = usage.list + other.total();
        let net = self.discounted() + other.own_fees + discount;
        ChargebackRow {
            kind: key.kind,
            cluster: key.cluster,
            account: key.account,
            group: key.account.and_then(|id| accounts.get(id)).and_then(|account| account.group),
            list,
            on_demand: usage.on_demand + other.on_demand,
            covered_list: usage.covered_list,
            reserved: usage.reserved,
            savings_plans: usage.savings_plans,
            unused_share: self.unused,
            spot: other.spot,
            fargate: usage.fargate + other.fargate,
            storage: other.storage,
            network: other.network,
            control_plane: other.control_plane,
            fees: other.fees + other.own_fees,
            discount,
            net,
            saved: list - net,
        }
    }
}

impl AddAssign for OtherCosts {
    fn add_assign(&mut self, other: Self) {
        self.on_demand += other.on_demand;
        self.spot += other.spot;
        self.fargate += other.fargate;
        self.storage += other.storage;
        self.network += other.network;
        self.control_plane += other.control_plane;
        self.fees += other.fees;
        self.own_fees += other.own_fees;
    }
}

/// Kind and name of a row, in the order of rows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kind: RowKind,
    cluster: Option<Symbol>,
    account: Option<Symbol>,
}

impl Key {
    const ORGANIZATION: Self = Self { kind: RowKind::Organization, cluster: None, account: None };

    const fn account(account: Symbol) -> Self {
        Self { kind: RowKind::Account, cluster: None, account: Some(account) }
    }

    fn bearer(bearer: Bearer) -> Self {
        let Bearer { cluster, account } = bearer;
        if bearer.is_outside() {
            return Self::account(account);
        }
        Self { kind: RowKind::Cluster, cluster: Some(cluster), account: Some(account) }
    }
}

/// The rows of a bill: clusters by name, accounts and the organisation with what no cluster bears, and the total. The rows sum to the total
/// exactly. `discount` is the organisation's, in millionths, on all charges of AWS.
pub fn chargeback(
    accounts: &Accounts,
    bill: &Bill,
    others: &BTreeMap<Bearer, OtherCosts>,
    rule: UnusedRule,
    discount: u32,
) -> Vec<ChargebackRow> {
    let mut rows: BTreeMap<Key, Charges> = BTreeMap::new();
    let bearers: BTreeSet<Bearer> = bill.clusters.keys().chain(others.keys()).copied().collect();
    for bearer in bearers {
        let charges = rows.entry(Key::bearer(bearer)).or_default();
        charges.usage += bill.clusters.get(&bearer).copied().unwrap_or_default();
        charges.other += others.get(&bearer).copied().unwrap_or_default();
    }
    for (key, unused) in unused(bill, rule) {
        rows.entry(key).or_default().unused += unused;
    }
    rows.retain(|key, charges| key.kind == RowKind::Cluster || !charges.is_zero());
    let charged: Vec<i128> = rows.values().map(|charges| charges.discounted().as_nanos()).collect();
    let off = Money::from_nanos(charged.iter().sum()).portion(i128::from(discount), i128::from(WHOLE));
    let off = largest_remainder(off.as_nanos(), &charged);
    let mut total = Charges::default();
    let mut result = Vec::with_capacity(rows.len() + 1);
    for ((key, charges), &off) in rows.iter().zip(&off) {
        total.usage += charges.usage;
        total.other += charges.other;
        total.unused += charges.unused;
        result.push(charges.row(*key, accounts, Money::from_nanos(-off)));
    }
    let all = Key { kind: RowKind::Total, cluster: None, account: None };
    result.push(total.row(all, accounts, Money::from_nanos(-off.iter().sum::<i128>())));
    result
}

/// Unused commitments by the row that bears them.
fn unused(bill: &Bill, rule: UnusedRule) -> Vec<(Key, Money)> {
    let mut shares = Vec::new();
    for commitment in &bill.commitments {
        let unused = commitment.total.unused;
        let weights: Vec<i128> = commitment.eligible.values().copied().collect();
        match rule {
            UnusedRule::Central => shares.push((Key::ORGANIZATION, unused)),
            UnusedRule::Usage if weights.iter().any(|&weight| weight > 0) => {
                let parts = largest_remainder(unused.as_nanos(), &weights);
                let keys = commitment.eligible.keys().map(|&bearer| Key::bearer(bearer));
                shares.extend(keys.zip(parts.into_iter().map(Money::from_nanos)));
            }
            UnusedRule::Owner | UnusedRule::Usage => shares.push((Key::account(commitment.owner), unused)),
        }
    }
    shares
}

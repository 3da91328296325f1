//! Fleets: many clusters of several accounts, and the commitments, quotas, and faults that they share.
//!
//! [`load`] reads a fleet file, [`run`] runs its clusters, and [`price`] applies its commitments to their usage. A problem of the file is an
//! error with its place and a way out.
//!
//! Must not: decide which usage a commitment covers (`nodecast-commitments`), simulate (`nodecast-sim`), print to a terminal.

mod accounts;
mod charges;
mod checks;
mod clusters;
mod commitments;
mod faults;
mod flow;
pub mod focus;
mod load;
mod other_usage;
pub mod page;
mod places;
mod price;
mod quotas;
mod read;
pub mod recommend;
pub mod recommend_text;
mod run;
mod shared;
mod spot_share;
mod summary;
mod tables;
pub mod terminal;
#[cfg(test)]
mod tests;
mod usage;

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use nodecast_model::domain::{HourlyRate, SimDuration, Symbol};
use nodecast_model::text::error::Place;
use nodecast_settings::InputFile;

pub use nodecast_commitments::{FocusVersion, Sharing, UnusedRule};

pub use load::{LoadedCluster, LoadedFleet, Overrides, load};
pub use price::{FleetBill, price};
pub use quotas::{FaultUse, SharedUse};
pub use read::{is_fleet, read};
pub use run::{ClusterRun, CoupledGroup, FleetRun, Observer, RunError, cluster_seed, run};
pub use summary::FleetSummary;
pub use usage::ClusterUsage;

/// A fleet as its file sets it.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// Its name; reports go to `reports/<name>`.
    pub name: String,
    /// The file.
    pub file: PathBuf,
    /// Start of every cluster's run, as written and as a time; `None` for the scenarios' own.
    pub start: Option<(String, Timestamp)>,
    /// Duration of every cluster's run; `None` for the scenarios' own.
    pub duration: Option<SimDuration>,
    /// The seed; `None` for the first scenario's.
    pub seed: Option<u64>,
    /// Seeds of `compare` and `recommend`.
    pub replications: Option<u32>,
    /// The accounts.
    pub accounts: Vec<Account>,
    /// How commitments are shared among accounts.
    pub sharing: Sharing,
    /// The clusters, in the order of the file.
    pub clusters: Vec<ClusterEntry>,
    /// Reserved Instances.
    pub reserved: Vec<Reserved>,
    /// Savings Plans.
    pub plans: Vec<Plan>,
    /// Discount on everything that AWS charges, in millionths; `None` where the file sets none.
    pub discount: Option<u32>,
    /// Who bears unused commitments.
    pub unused: UnusedRule,
    /// Yearly cost of capital, in millionths.
    pub cost_of_capital: u32,
    /// vCPU quotas that the clusters of an account and region share.
    pub quotas: Vec<SharedQuota>,
    /// API limits that the clusters of an account and region share.
    pub api: Vec<SharedApi>,
    /// Spot and capacity conditions of regions.
    pub conditions: Vec<SharedConditions>,
    /// Whether the clusters of a region draw from one pool each where `capacity` is `static`.
    pub shares_capacity: bool,
    /// Faults that hit several clusters.
    pub faults: Vec<SharedFault>,
    /// Usage outside the clusters that competes for the same plans.
    pub other_usage: Option<PathBuf>,
    other_usage_place: Option<Place>,
    /// Hash of the file.
    input: InputFile,
}

/// An account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    /// Twelve digits.
    pub id: String,
    /// The name that the file uses.
    pub name: String,
    /// Its group of prioritized or restricted sharing.
    pub group: Option<String>,
    /// Whether it shares commitments.
    pub sharing: bool,
    /// Whether it is the payer.
    pub payer: bool,
    /// Ids of its zones by name; others are named as in the price data.
    pub zones: BTreeMap<String, String>,
}

/// A cluster, or several that are alike.
#[derive(Clone, Debug)]
pub struct ClusterEntry {
    /// Its name.
    pub name: String,
    /// The scenario file.
    pub scenario: PathBuf,
    /// The policy; `None` for the scenario's first.
    pub policy: Option<String>,
    /// Position of its account.
    pub account: usize,
    /// How many clusters of this kind.
    pub count: u32,
    /// Paths and values that the entry overrides.
    pub set: Vec<(String, String)>,
    places: ClusterPlaces,
}

/// Places of a cluster's keys, for errors that show after its scenario is read.
#[derive(Clone, Debug, Default)]
struct ClusterPlaces {
    name: Option<Place>,
    scenario: Option<Place>,
    policy: Option<Place>,
    /// Of each value of `set`.
    set: Vec<Option<Place>>,
}

impl ClusterEntry {
    /// Names of its copies: its own name for one, `name-1` and so on for several.
    pub fn copies(&self) -> impl Iterator<Item = (String, u32)> + '_ {
        let name = |copy| if self.count == 1 { self.name.clone() } else { format!("{}-{copy}", self.name) };
        (1..=self.count).map(move |copy| (name(copy), copy))
    }
}

/// Reserved Instances of one type.
#[derive(Clone, Debug)]
pub struct Reserved {
    /// Id.
    pub id: String,
    /// Position of the account that owns them.
    pub owner: usize,
    /// Region.
    pub region: Symbol,
    /// Zone id of zonal ones.
    pub zone_id: Option<Symbol>,
    /// Type.
    pub instance_type: Symbol,
    /// How many.
    pub count: u32,
    /// Platform: `linux`, `windows`, `rhel`, or `suse`.
    pub platform: &'static str,
    /// Whether they are for dedicated tenancy.
    pub dedicated: bool,
    /// Price of one, upfront payment included.
    pub per_hour: HourlyRate,
    /// When they begin and end.
    pub term: Term,
}

/// When a commitment begins and ends; `None` for before and after the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Term {
    /// Its start.
    pub start: Option<Timestamp>,
    /// Its end.
    pub end: Option<Timestamp>,
}

/// A Savings Plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Id.
    pub id: String,
    /// Position of the account that owns it.
    pub owner: usize,
    /// Family and region of an EC2 Instance plan; `None` for a Compute plan.
    pub family: Option<(Symbol, Symbol)>,
    /// Commitment per hour.
    pub commitment: HourlyRate,
    /// Discount on On-Demand, in millionths; `None` where only `prices` and `family_discounts` apply.
    pub discount: Option<u32>,
    /// Families with another discount, in millionths.
    pub family_discounts: BTreeMap<Symbol, u32>,
    /// Discount on Fargate, in millionths; `None` where the plan is not used for it.
    pub fargate_discount: Option<u32>,
    /// Discount on Lambda, in millionths; `None` where the plan is not used for it.
    pub lambda_discount: Option<u32>,
    /// Plan prices per type.
    pub prices: BTreeMap<Symbol, HourlyRate>,
    /// When it begins and ends.
    pub term: Term,
}

/// vCPU quotas of an account and region, by class.
#[derive(Clone, Debug)]
pub struct SharedQuota {
    /// Position of the account.
    pub account: usize,
    /// Region.
    pub region: Symbol,
    /// On-Demand vCPUs by class.
    pub on_demand: BTreeMap<&'static str, u32>,
    /// Spot vCPUs by class.
    pub spot: BTreeMap<&'static str, u32>,
    place: Option<Place>,
}

/// API limits of an account and region: the keys of `ec2.api` with their values as flow YAML.
#[derive(Clone, Debug)]
pub struct SharedApi {
    /// Position of the account.
    pub account: usize,
    /// Region.
    pub region: Symbol,
    /// Limits by key.
    pub limits: BTreeMap<String, String>,
}

/// Spot and capacity conditions of all clusters of a region.
#[derive(Clone, Debug)]
pub struct SharedConditions {
    /// Region.
    pub region: Symbol,
    /// Values as flow YAML by the path of a scenario.
    pub values: BTreeMap<String, String>,
}

/// A fault that hits several clusters.
#[derive(Clone, Debug)]
pub struct SharedFault {
    /// Names of clusters that it hits; empty for all.
    pub clusters: Vec<String>,
    /// Positions of accounts that it hits; empty for all.
    pub accounts: Vec<usize>,
    /// Regions that it hits; empty for all.
    pub regions: Vec<Symbol>,
    /// The id of its zone.
    pub zone_id: Option<Symbol>,
    /// When it begins, and how long it lasts; `None` for the rest of the run.
    pub time: (SimDuration, Option<SimDuration>),
    /// The fault as flow YAML, with `{zone}` for the zone's name.
    text: String,
    place: Option<Place>,
}

impl SharedFault {
    /// The fault in words: its keys as the file writes them, with the zone's id.
    pub fn words(&self) -> String {
        let zone = self.zone_id.map_or("", |id| id.as_str());
        let text = self.text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        text.unwrap_or(&self.text).replace(faults::ZONE, zone)
    }

    /// Whether it hits a cluster, by name, account, and region.
    fn hits(&self, (entry, name): (&ClusterEntry, &str), region: Symbol) -> bool {
        let is_named = |chosen: &String| chosen == name || *chosen == entry.name;
        (self.clusters.is_empty() || self.clusters.iter().any(is_named))
            && (self.accounts.is_empty() || self.accounts.contains(&entry.account))
            && (self.regions.is_empty() || self.regions.contains(&region))
    }
}

impl LoadedFleet {
    /// Whether a fault hits a cluster, both by position.
    pub(crate) fn is_hit(&self, fault: usize, cluster: usize) -> bool {
        let cluster = &self.clusters[cluster];
        let entry = &self.fleet.clusters[cluster.entry];
        self.fleet.faults[fault].hits((entry, &cluster.name), Symbol::new(cluster.scenario.region.as_str()))
    }
}

impl Fleet {
    /// The account of a cluster.
    pub fn account(&self, cluster: &ClusterEntry) -> &Account {
        &self.accounts[cluster.account]
    }

    /// Number of clusters, copies included.
    pub fn cluster_count(&self) -> u32 {
        self.clusters.iter().map(|cluster| cluster.count).sum()
    }

    /// Whether the file has commitments.
    pub fn has_commitments(&self) -> bool {
        !self.reserved.is_empty() || !self.plans.is_empty()
    }
}

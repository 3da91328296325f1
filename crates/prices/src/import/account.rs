//! What became of each record, so that nothing is left out in silence.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

/// A kind of record that can be brought in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// A product of `aws pricing get-products`.
    OnDemandPrice,
    /// An entry of `aws ec2 describe-spot-price-history`.
    SpotPrice,
    /// An entry of `aws ec2 describe-instance-type-offerings`.
    Offering,
    /// An entry of `aws ec2 describe-instance-types`.
    InstanceType,
    /// A line of a table of prices by contract.
    OwnPrice,
}

impl RecordKind {
    /// One record and several, in words.
    pub const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::OnDemandPrice => ("On-Demand price", "On-Demand prices"),
            Self::SpotPrice => ("Spot price", "Spot prices"),
            Self::Offering => ("offering", "offerings"),
            Self::InstanceType => ("instance type", "instance types"),
            Self::OwnPrice => ("price by contract", "prices by contract"),
        }
    }
}

/// What became of the records of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
pub struct FileAccount {
    /// The file.
    pub file: String,
    /// By kind of record.
    pub kinds: BTreeMap<RecordKind, KindAccount>,
}

impl FileAccount {
    pub(super) fn new(file: &str) -> Self {
        Self { file: file.to_owned(), kinds: BTreeMap::new() }
    }
}

/// What became of the records of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct KindAccount {
    /// How many were taken.
    pub taken: u64,
    /// Those that were not, by reason.
    pub skipped: BTreeMap<Cow<'static, str>, Skipped>,
}

impl KindAccount {
    pub(super) fn skip(&mut self, reason: impl Into<Cow<'static, str>>, example: &str) {
        let skipped = self.skipped.entry(reason.into()).or_default();
        if skipped.count == 0 {
            example.clone_into(&mut skipped.example);
        }
        skipped.count += 1;
    }
}

/// Records that were left out for one reason.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Skipped {
    /// How many.
    pub count: u64,
    /// The instance type of the first, or the start of what stood there.
    pub example: String,
}

/// What changed in a region.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct RegionAccount {
    /// On-Demand prices taken.
    pub on_demand: u64,
    /// Prices by contract taken.
    pub own: u64,
    /// Spot prices taken, each of a type in a zone.
    pub spot: u64,
    /// Offers of a type in a zone that were not known.
    pub offerings: u64,
    /// The oldest date of a price taken.
    pub oldest: Option<String>,
    /// The newest date of a price taken.
    pub newest: Option<String>,
}

impl RegionAccount {
    pub(super) fn dated(&mut self, date: &str) {
        if self.oldest.as_deref().is_none_or(|oldest| date < oldest) {
            self.oldest = Some(date.to_owned());
        }
        if self.newest.as_deref().is_none_or(|newest| date > newest) {
            self.newest = Some(date.to_owned());
        }
    }
}

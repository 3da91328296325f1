//! What a cluster's lines come to.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use nodecast_model::domain::HourlyRate;

use super::amount::Amount;
use super::line::{BillLine, ChargeKind};
use super::nodes::{NodeHours, NodeKey, SpotHour, SpotKey};
use super::selection::Rule;
use super::usage_type::Group;

/// Sums of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sums {
    /// How many lines.
    pub lines: u64,
    /// Unblended cost, as each line states it.
    pub unblended: Amount,
    /// Unblended cost without lines that a Savings Plan covers and those that take their price off again. A cluster's covered lines carry its
    /// tags, the lines against them carry none: this is the sum that means the same with and without them, and in FOCUS too.
    pub billed: Amount,
    /// Unblended cost after negotiated discounts; the unblended cost of lines that state none.
    pub net_unblended: Amount,
    /// Amortised cost.
    pub amortised: Amount,
    /// Amortised cost after negotiated discounts; the amortised cost of lines that state none.
    pub net_amortised: Amount,
    /// Cost at public On-Demand prices, of lines that state it.
    pub list: Amount,
}

impl Sums {
    /// Takes a line, of which `part` counts.
    pub(super) fn take(&mut self, line: &BillLine, part: impl Fn(Amount) -> Amount) {
        self.lines += 1;
        self.take_rest(line, part);
    }

    /// Takes a part of a line that counts as one elsewhere.
    pub(super) fn take_rest(&mut self, line: &BillLine, part: impl Fn(Amount) -> Amount) {
        self.unblended += part(line.unblended);
        if !matches!(line.kind, ChargeKind::Negation | ChargeKind::PlanCovered) {
            self.billed += part(line.unblended);
        }
        self.net_unblended += part(line.net_unblended.unwrap_or(line.unblended));
        self.amortised += part(line.amortised);
        self.net_amortised += part(line.net_amortised.unwrap_or(line.amortised));
        self.list += part(line.list.unwrap_or_default());
    }

    /// Adds other sums.
    pub fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.unblended += other.unblended;
        self.billed += other.billed;
        self.net_unblended += other.net_unblended;
        self.amortised += other.amortised;
        self.net_amortised += other.net_amortised;
        self.list += other.list;
    }

    /// The sum of several.
    pub fn from_sums<'s>(sums: impl IntoIterator<Item = &'s Self>) -> Self {
        sums.into_iter().fold(Self::default(), |mut all, one| {
            all.add(one);
            all
        })
    }
}

/// What belongs to nobody's cluster, or to another one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Others {
    /// Charges that tags give to another cluster, by its name (where only a tag's key names it, as exports spell keys). Names past the
    /// first hundred stand under an empty one.
    pub clusters: BTreeMap<String, Sums>,
    /// Everything else, by the kind of charge: the account's commitments, taxes and credits among it.
    pub account: BTreeMap<ChargeKind, Sums>,
}

impl Others {
    /// The sum of all.
    pub fn total(&self) -> Sums {
        Sums::from_sums(self.clusters.values().chain(self.account.values()))
    }
}

/// What the lines of a bill come to for one cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Totals {
    /// The cluster's name.
    pub cluster: String,
    /// ISO code of the currency; empty if the export states none.
    pub currency: String,
    /// How much each rule took. Their sum is that of groups and of what is left out.
    pub rules: BTreeMap<Rule, Sums>,
    /// The cluster's costs by group.
    pub groups: BTreeMap<Group, Sums>,
    /// Lines of the cluster that are left out of its costs: tax, credits, refunds, support, adjustments.
    pub left_out: BTreeMap<ChargeKind, Sums>,
    /// Shares of pods that split cost allocation states. They repeat a part of their instance's line, and are in no sum.
    pub pod_shares: u64,
    /// Lines that are alike in every column to an earlier one of the cluster, and are counted once.
    pub repeated: Sums,
    /// Lines of the cluster with the id and the begin of an earlier one, but other cells. They count, as AWS promises ids to be unique within
    /// one file only; but many of them say that two versions of an export were given.
    pub same_id: Sums,
    /// What is not the cluster's.
    pub others: Others,
    /// Hours and costs of nodes.
    pub nodes: BTreeMap<NodeKey, NodeHours>,
    /// What Spot pools took in each hour, from lines of at most an hour.
    pub spot: BTreeMap<SpotKey, SpotHour>,
    /// The cluster's costs by the day, in UTC, in which a charge begins.
    pub days: BTreeMap<Date, Sums>,
    /// From the first begin to the last end of the cluster's lines.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Begins of hours, counted from 1970, in which the cluster has a line of at most an hour.
    pub(super) hours: BTreeSet<i64>,
}

impl Totals {
    /// The cluster's costs.
    pub fn total(&self) -> Sums {
        Sums::from_sums(self.groups.values())
    }

    /// Everything in the file, the cluster's and others', but for repeated lines.
    pub fn everything(&self) -> Sums {
        Sums::from_sums([&Sums::from_sums(self.rules.values()), &self.others.total()])
    }

    /// The sum of a group; nothing if the cluster has no line of it.
    pub fn group(&self, group: &Group) -> Sums {
        self.groups.get(group).copied().unwrap_or_default()
    }

    /// Hours of nodes of one capacity type.
    pub fn node_hours(&self, capacity: super::CapacityType) -> Amount {
        self.nodes.iter().filter(|(key, _)| key.capacity == capacity).map(|(_, hours)| hours.hours).sum()
    }

    /// Observed Spot prices by type, zone and hour, where the export names the zone.
    pub fn spot_prices(&self) -> impl Iterator<Item = (&SpotKey, HourlyRate)> {
        let named = self.spot.iter().filter(|(key, _)| !key.zone.is_empty() && !key.instance_type.is_empty());
        named.filter_map(|(key, hour)| Some((key, hour.price()?)))
    }

    /// The observed Spot prices as a CSV file with the columns `instance_type`, `zone`, `time` and `price`: the form of a scenario's
    /// `ec2.spot.file`. A price below nothing, which a correction can leave in an hour, is left out.
    pub fn spot_price_file(&self) -> String {
        let mut text = "instance_type,zone,time,price\n".to_owned();
        for (key, price) in self.spot_prices().filter(|(_, price)| *price >= HourlyRate::ZERO) {
            let SpotKey { instance_type, zone, hour } = key;
            text += &[instance_type.as_str(), zone, &hour.to_string(), &price.to_string()].map(quoted).join(",");
            text.push('\n');
        }
        text
    }

    /// Whether any line of the cluster is of an hour or less.
    pub fn is_hourly(&self) -> bool {
        !self.hours.is_empty()
    }

    /// Spans of whole hours between the first and the last line of the cluster in which it has none: parts of the export may be missing.
    /// Only of exports by the hour.
    pub fn hours_without_lines(&self) -> Vec<(Timestamp, Timestamp)> {
        let pairs = self.hours.iter().zip(self.hours.iter().skip(1));
        let gaps = pairs.filter(|(hour, next)| *hour + 1 < **next);
        let instant = |hour: i64| Timestamp::from_second(hour * 3_600).ok();
        gaps.filter_map(|(hour, next)| Some((instant(hour + 1)?, instant(*next)?))).collect()
    }
}

/// A cell of a CSV file.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

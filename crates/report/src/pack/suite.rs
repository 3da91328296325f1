//! What `nodecast pack --suite` answers: how good the packing of each instance is, and whether it got worse.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::{PackAnswer, SCHEMA_VERSION};
use crate::columns::fitted;
use crate::figure::Figure;
use crate::format::{money_among, relative_change};
use crate::table::Rows;

/// How well every instance of a suite is packed.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct SuiteAnswer {
    /// Version of this layout.
    pub schema_version: u32,
    /// What wrote it.
    pub program: &'static str,
    /// The program's version.
    pub program_version: &'static str,
    /// Karpenter's release.
    pub karpenter: String,
    /// Who packs: `karpenter` or `cost-aware`.
    pub packer: &'static str,
    /// The instances, by name.
    pub instances: Vec<PackedInstance>,
    /// What differs from the baseline, if there was one.
    pub changes: Option<Vec<Change>>,
}

/// How well one instance is packed.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct PackedInstance {
    /// Its name.
    pub name: String,
    /// Pods that wait.
    pub pods: usize,
    /// Of them, without a place.
    pub pods_pending: usize,
    /// Nodes to launch.
    pub nodes: usize,
    /// The currency of the amounts.
    pub currency: &'static str,
    /// What they cost in an hour.
    pub per_hour: f64,
    /// What no packing could cost less than.
    pub lower_bound_per_hour: f64,
    /// How much more than that they cost, in percent of it.
    pub gap_percent: Option<f64>,
    /// How long packing took, in seconds, without reading the files and without the bound.
    pub seconds: f64,
}

impl PackedInstance {
    /// An instance with its answer.
    pub fn new(name: String, answer: &PackAnswer, seconds: f64) -> Self {
        let summary = &answer.summary;
        Self {
            name,
            pods: summary.pods_waiting,
            pods_pending: summary.pods_pending,
            nodes: summary.new_nodes,
            currency: answer.currency.code(),
            per_hour: summary.per_hour,
            lower_bound_per_hour: summary.lower_bound_per_hour.unwrap_or(0.0),
            gap_percent: summary.gap_percent,
            seconds,
        }
    }
}

/// What a suite's packing must not be worse than. Times are not part of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Version of this layout.
    pub schema_version: u32,
    /// Karpenter's release.
    pub karpenter: String,
    /// Who packed.
    pub packer: String,
    /// The instances, by name.
    pub instances: Vec<BaselineInstance>,
}

/// An instance of a baseline.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineInstance {
    /// Its name.
    pub name: String,
    /// Pods without a place.
    pub pods_pending: usize,
    /// Nodes to launch.
    pub nodes: usize,
    /// What they cost in an hour.
    pub per_hour: f64,
}

/// How an instance differs from the baseline.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct Change {
    /// The instance.
    pub instance: String,
    /// Whether that is worse.
    pub worse: bool,
    /// What changed, in words.
    pub what: String,
}

impl SuiteAnswer {
    /// The answer for some instances.
    pub fn new(karpenter: String, packer: &'static str, instances: Vec<PackedInstance>) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            program: "nodecast",
            program_version: env!("CARGO_PKG_VERSION"),
            karpenter,
            packer,
            instances,
            changes: None,
        }
    }

    /// The baseline that these instances make.
    pub fn baseline(&self) -> Baseline {
        let instance = |packed_instance: &PackedInstance| BaselineInstance {
            name: packed_instance.name.clone(),
            pods_pending: packed_instance.pods_pending,
            nodes: packed_instance.nodes,
            per_hour: packed_instance.per_hour,
        };
        Baseline {
            schema_version: SCHEMA_VERSION,
            karpenter: self.karpenter.clone(),
            packer: self.packer.to_owned(),
            instances: self.instances.iter().map(instance).collect(),
        }
    }

    /// Compares with a baseline. An instance is worse if it costs more than `tolerance_percent` above its baseline, leaves more
    /// pods without a place, or is gone.
    pub fn compare(&mut self, baseline: &Baseline, tolerance_percent: f64) {
        let mut changes = Vec::new();
        for instance in &self.instances {
            match baseline.instances.iter().find(|before| before.name == instance.name) {
                Some(before) => changes.extend(change(instance, before, tolerance_percent)),
                None => changes.push(Change {
                    instance: instance.name.clone(),
                    worse: false,
                    what: "is new: the baseline does not know it".to_owned(),
                }),
            }
        }
        for gone in baseline
            .instances
            .iter()
            .filter(|before| self.instances.iter().all(|instance| instance.name != before.name))
        {
            let what = "is in the baseline but not in the suite".to_owned();
            changes.push(Change { instance: gone.name.clone(), worse: true, what });
        }
        self.changes = Some(changes);
    }

    /// The instances that got worse.
    pub fn worse(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().flatten().filter(|change| change.worse)
    }

    /// The answer as JSON, with a line feed at the end.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The answer as a table, with columns below one another where lines have no more than `width` characters.
    pub fn table(&self, width: Option<usize>) -> String {
        let money = |instance: &PackedInstance, amount| Figure::money(instance.currency, amount, instance.per_hour);
        let table = Rows::new(&self.instances)
            .text("INSTANCE", |instance| &instance.name)
            .number("PODS", |instance| instance.pods)
            .number("PENDING", |instance| instance.pods_pending)
            .number("NODES", |instance| instance.nodes)
            .number("PER HOUR", |instance| money(instance, instance.per_hour))
            .number("BOUND", |instance| money(instance, instance.lower_bound_per_hour))
            .number("GAP", |instance| instance.gap_percent.map(|gap| Figure::share(gap / 100.0)))
            .number("TIME", |instance| Figure::seconds(instance.seconds));
        let mut text = format!("packer {}, Karpenter {}\n\n", self.packer, self.karpenter);
        for line in table.table().lines(width) {
            let _ = writeln!(text, "{line}");
        }
        if let Some(changes) = &self.changes {
            text.push('\n');
            for change in changes {
                let _ =
                    writeln!(text, "{}{} {}", if change.worse { "worse: " } else { "" }, change.instance, change.what);
            }
            if self.worse().next().is_none() {
                text.push_str("not worse than the baseline\n");
            }
        }
        fitted(text, width)
    }
}

fn change(packed_instance: &PackedInstance, before: &BaselineInstance, tolerance_percent: f64) -> Option<Change> {
    let instance = packed_instance.name.clone();
    if packed_instance.pods_pending != before.pods_pending {
        let what = format!("leaves {} pods pending, {} before", packed_instance.pods_pending, before.pods_pending);
        return Some(Change { instance, worse: packed_instance.pods_pending > before.pods_pending, what });
    }
    let share = relative_change(packed_instance.per_hour - before.per_hour, before.per_hour);
    // Costs are sums of prices with nine decimals.
    let equal = (packed_instance.per_hour - before.per_hour).abs() < 5e-10;
    let worse = !equal && packed_instance.per_hour > before.per_hour * (1.0 + tolerance_percent / 100.0);
    (!equal).then(|| {
        let money = |amount| money_among(packed_instance.currency, amount, packed_instance.per_hour);
        let percent = share.map_or(String::new(), |share| format!(" ({:+.2}%)", share * 100.0));
        let what = format!("costs {}/h, {}/h before{percent}", money(packed_instance.per_hour), money(before.per_hour));
        Change { instance, worse, what }
    })
}

//! Opportunities: parts of the bill that a change may save, the largest first, each with a command to try the change.
//!
//! Must not: claim a saving. Only a simulation shows it.

use crate::cloud::BillItem;
use crate::domain::KubernetesVersion;
use crate::format;
use crate::summary::{AutoscalerAtMax, Summary};

/// Opportunities of a page.
const SHOWN: usize = 3;
/// Shares of the bill below these are not worth a line.
const IDLE_LEAST: f64 = 0.05;
const VOLUMES_LEAST: f64 = 0.1;
const ON_DEMAND_LEAST: f64 = 0.2;
const TRANSFER_LEAST: f64 = 0.05;

/// A part of the bill, and a command to try.
#[derive(Clone, PartialEq, Debug)]
pub struct Opportunity {
    /// The part in words.
    pub words: String,
    /// Its cost in a month; `None` where only the command shows it.
    pub per_month: Option<f64>,
    /// The command; `None` where the change is in a manifest of its own kind.
    pub command: Option<String>,
}

/// At most three opportunities of a run that `command` repeats; none for a run without length.
pub fn opportunities(summary: &Summary, command: &str) -> Vec<Opportunity> {
    let cost = &summary.cost;
    let Some(month) = cost.per_month.filter(|_| cost.total > 0.0) else { return Vec::new() };
    let scenario = command.strip_prefix("nodecast run ").and_then(|rest| rest.split_once(" --policy "));
    let scenario = scenario.map_or("scenario.yaml", |(path, _)| path);
    let policy = &summary.about.policy;
    let with = |verb: &str, rest: &str| format!("nodecast {verb} {scenario} --policy {policy}{rest}");
    let per_month = |amount: f64| Some(amount / cost.total * month);
    let item = |names: &[&str]| -> f64 {
        cost.by_item.iter().filter(|part| names.contains(&part.name.as_str())).map(|part| part.amount).sum()
    };
    let mut all = Vec::new();
    let idle = cost.idle.amount - cost.unused.amount;
    if idle >= IDLE_LEAST * cost.total {
        let words =
            format!("Idle capacity: no pod requests {} of what the bill pays for", format::percent(idle / cost.total));
        all.push(Opportunity { words, per_month: per_month(idle), command: Some(with("recommend", "")) });
    }
    if cost.unused.amount > 0.0 {
        let words = "Unused reservations and commitments".to_owned();
        let command = Some(with("recommend", " --levers unused-commitments"));
        all.push(Opportunity { words, per_month: per_month(cost.unused.amount), command });
    }
    let support = item(&[BillItem::ExtendedSupport.name()]);
    if support > 0.0 {
        let version = KubernetesVersion::default();
        let words = format!("Extended support of Kubernetes {}", summary.about.versions.kubernetes);
        let command = Some(with("diff", &format!(" --set versions.kubernetes={version}")));
        all.push(Opportunity { words, per_month: per_month(support), command });
    }
    let volumes = item(&[BillItem::PersistentVolume.name(), BillItem::RootVolume.name()]);
    if volumes >= VOLUMES_LEAST * cost.total {
        let words = format!(
            "Volumes: {} of the bill. Smaller root volumes, or gp3 in place of gp2, cost less",
            format::percent(volumes / cost.total)
        );
        let command = Some(with("recommend", " --levers volumes"));
        all.push(Opportunity { words, per_month: per_month(volumes), command });
    }
    let on_demand: f64 =
        cost.by_capacity_type.iter().filter(|part| part.name == "on-demand").map(|part| part.amount).sum();
    if on_demand >= ON_DEMAND_LEAST * cost.total
        && item(&[BillItem::SavingsPlans.name(), BillItem::ReservedInstances.name()]) <= 0.0
    {
        let words =
            format!("On-Demand nodes without a commitment: {} of the bill", format::percent(on_demand / cost.total));
        let command = Some(with("recommend", " --levers commitments"));
        all.push(Opportunity { words, per_month: per_month(on_demand), command });
    }
    let zones = item(&[BillItem::CrossZoneTransfer.name()]);
    if zones >= TRANSFER_LEAST * cost.total {
        let words = format!(
            "Cross-zone transfer: {} of the bill. `trafficDistribution: PreferClose` on Services keeps requests in their zone",
            format::percent(zones / cost.total)
        );
        let command = Some(with("recommend", " --levers topology-routing,zones"));
        all.push(Opportunity { words, per_month: per_month(zones), command });
    }
    all.sort_by(|a, b| b.per_month.unwrap_or(0.0).total_cmp(&a.per_month.unwrap_or(0.0)));
    all.truncate(SHOWN);
    if let Some(full) = summary.availability.full().first().filter(|_| all.len() < SHOWN) {
        let words =
            format!("Autoscaler at its maximum: {}. More replicas cost more, and less work waits", full.words());
        let command = Some(with("diff", &format!(" --set '{}'", doubled(full))));
        all.push(Opportunity { words, per_month: None, command });
    }
    all
}

/// The setting that doubles the maximum of an autoscaler.
fn doubled(full: &AutoscalerAtMax) -> String {
    let name = full.autoscaler.rsplit('/').next().unwrap_or_default();
    let path = match name.strip_prefix("keda-hpa-") {
        Some(name) => format!("ScaledObject[{name}].spec.maxReplicaCount"),
        None => format!("HorizontalPodAutoscaler[{name}].spec.maxReplicas"),
    };
    format!("{path}={}", full.max_replicas * 2)
}

//! The figures by which simulations are compared: each a number from a run's summary.

use serde::Serialize;

use crate::report::Summary;
use crate::report::summary::UpgradeFigures;

/// What a figure is measured in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// The region's currency.
    Money,
    /// Seconds.
    Seconds,
    /// A number of things, perhaps an average.
    Count,
    /// A share, 0 to 1.
    Share,
}

impl Unit {
    /// The least and the largest value that a figure in this unit can have.
    pub fn range(self) -> (f64, f64) {
        match self {
            Self::Money | Self::Seconds | Self::Count => (0.0, f64::INFINITY),
            Self::Share => (0.0, 1.0),
        }
    }
}

/// The statistic over seeds that stands for a figure, with its interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// The mean: of money, shares and times with nothing rare in them.
    Mean,
    /// The median: of waits, whose mean hangs on the few runs in which a boot fails.
    Median,
    /// The mean of a count of random events.
    Count,
}

/// Figures whose level is a median.
const MEDIANS: [&str; 6] = ["pending_mean", "pending_p95", "pending_p99", "ready_p99", "request_p99", "message_wait"];

/// Figures that count events of a run. Pods that have no node at the end, and the like, are a state: what cannot be scheduled.
const COUNTS: [&str; 5] = ["launches", "launches_refused", "interruptions", "evictions", "restarts"];

/// A figure of a run.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its stable name in files.
    pub name: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// What it is measured in.
    pub unit: Unit,
    /// Whether less of it is better; `None` where neither is.
    pub less_is_better: Option<bool>,
    /// Its value in a summary; `None` where the run had nothing to measure.
    pub of: fn(&Summary) -> Option<f64>,
}

impl Figure {
    /// The statistic over seeds that stands for this figure.
    pub fn level(&self) -> Level {
        if MEDIANS.contains(&self.name) {
            Level::Median
        } else if COUNTS.contains(&self.name) {
            Level::Count
        } else {
            Level::Mean
        }
    }
}

/// Every figure, in the order in which files hold them; people read them in that of [`for_people`].
pub static FIGURES: &[Figure] = &[
    Figure { name: "cost", label: "cost", unit: Unit::Money, less_is_better: Some(true), of: |s| Some(s.cost.total) },
    Figure {
        name: "cost_per_month",
        label: "cost per month",
        unit: Unit::Money,
        less_is_better: Some(true),
        of: |s| s.cost.per_month,
    },
    Figure {
        name: "cost_idle",
        label: "idle capacity",
        unit: Unit::Money,
        less_is_better: Some(true),
        of: |s| Some(s.cost.idle.amount),
    },
    // Better known prices make no policy better, so neither direction is.
    Figure {
        name: "cost_estimated",
        label: "share at estimated prices",
        unit: Unit::Share,
        less_is_better: None,
        of: |s| Some(s.cost.unconfirmed.share),
    },
    Figure {
        name: "pending_mean",
        label: "pod wait for a node, mean",
        unit: Unit::Seconds,
        less_is_better: Some(true),
        of: |s| s.pods.wait_for_node.map(|spans| spans.mean_seconds),
    },
    Figure {
        name: "pending_p99",
        label: "pod wait for a node, p99",
        unit: Unit::Seconds,
        less_is_better: Some(true),
        of: |s| s.pods.wait_for_node.map(|spans| spans.p99_seconds),
    },
    Figure {
        name: "pods_pending",
        label: "unscheduled pods at the end",
        unit: Unit::Count,
        less_is_better: Some(true),
        of: |s| Some(s.pods.pending_at_end as f64),
    },
    Figure {
        name: "ready_p99",
        label: "pod create to Ready, p99",
        unit: Unit::Seconds,
        less_is_better: Some(true),
        of: |s| s.pods.created_to_ready.map(|spans| spans.p99_seconds),
    },
    Figure {
        name: "request_p99",
        label: "response time, p99",
        unit: Unit::Seconds,
        less_is_better: Some(true),
        of: slowest_response,
    },
    Figure {
        name: "requests_unanswered",
        label: "unanswered requests",
        unit: Unit::Count,
        less_is_better: Some(true),
        of: |s| (!s.requests.is_empty()).then(|| s.requests.iter().map(|figures| figures.unanswered).sum()),
    },
    Figure {
        name: "requests_lost",
        label: "unanswered requests (share)",
        unit: Unit::Share,
        less_is_better: Some(true),
        of: lost_requests,
    },
    Figure {
        name: "nodes_mean",
        label: "Ready nodes, mean",
        unit: Unit::Count,
        less_is_better: None,
        of: |s| s.nodes.mean_ready,
    },
    Figure {
        name: "launches",
        label: "launches",
        unit: Unit::Count,
        less_is_better: None,
        of: |s| Some(s.nodes.launches as f64),
    },
    Figure {
        name: "launches_refused",
        label: "launches refused by EC2",
        unit: Unit::Count,
        less_is_better: Some(true),
        of: |s| Some(s.nodes.failed_launches as f64),
    },
    Figure {
        name: "interruptions",
        label: "Spot interruptions",
        unit: Unit::Count,
        less_is_better: Some(true),
        of: |s| Some(s.nodes.interruptions as f64),
    },
    Figure {
        name: "evictions",
        label: "pods evicted",
        unit: Unit::Count,
        less_is_better: Some(true),
        of: |s| Some(s.pods.evicted as f64),
    },
    Figure {
        name: "cpu_requested",
        label: "CPU capacity requested",
        unit: Unit::Share,
        less_is_better: Some(false),
        of: |s| s.utilisation.cpu_requested,
    },
    // What came later stands last: files name figures by their place.
    Figure {
        name: "unavailable_pod_minutes",
        label: "missing replicas (pod-minutes)",
        unit: Unit::Count,
        less_is_better: Some(true),
        of: |s| s.availability.unavailable_share.map(|_| s.availability.unavailable_pod_minutes),
    },
    Figure {
        name: "workloads_at_zero",
        label: "workloads that reached zero Ready replicas",
        unit: Unit::Count,
        less_is_better: Some(true),
        of: |s| s.availability.unavailable_share.map(|_| s.availability.workloads_at_zero as f64),
    },
    Figure {
        name: "at_zero",
        label: "longest time at zero Ready replicas",
        unit: Unit::Seconds,
        less_is_better: Some(true),
        of: |s| s.availability.unavailable_share.map(|_| s.availability.at_zero_seconds),
    },
    Figure {
        name: "at_max",
        label: "longest time at max replicas",
        unit: Unit::Seconds,
        less_is_better: Some(true),
        of: |s| s.availability.at_max_seconds,
    },
    Figure {
        name: "pending_p95",
        label: "pod wait for a node, p95",
        unit: Unit::Seconds,
        less_is_better: Some(true),
        of: |s| s.pods.wait_for_node.map(|spans| spans.p95_seconds),
    },
    Figure {
        name: "pods_waited",
        label: "pods that waited over 1 s",
        unit: Unit::Count,
        less_is_better: Some(true),
        of: |s| Some(s.pods.waited as f64),
    },
    Figure {
        name: "restarts",
        label: "containers restarted",
        unit: Unit::Count,
        less_is_better: Some(true),
        of: |s| Some(s.pods.restarts as f64),
    },
    Figure {
        name: "messages_undone",
        label: "messages left at the end",
        unit: Unit::Share,
        less_is_better: Some(true),
        of: messages_undone,
    },
    Figure {
        name: "message_wait",
        label: "message wait, mean",
        unit: Unit::Seconds,
        less_is_better: Some(true),
        of: slowest_queue,
    },
    Figure {
        name: "jobs_undone",
        label: "Jobs due but not completed",
        unit: Unit::Share,
        less_is_better: Some(true),
        of: |s| s.jobs.filter(|jobs| jobs.due > 0).map(|jobs| jobs.undone as f64 / jobs.due as f64),
    },
    Figure {
        name: "upgrade_time",
        label: "longest node upgrade",
        unit: Unit::Seconds,
        less_is_better: Some(true),
        of: longest_upgrade,
    },
    Figure {
        name: "upgrade_extra_nodes",
        label: "peak additional nodes in an upgrade",
        unit: Unit::Count,
        less_is_better: Some(true),
        of: |s| s.node_upgrades.iter().map(|node_upgrade| node_upgrade.extra_nodes as f64).reduce(f64::max),
    },
    Figure {
        name: "upgrade_extra_cost",
        label: "cost of additional nodes in upgrades",
        unit: Unit::Money,
        less_is_better: Some(true),
        of: |s| {
            s.node_upgrades
                .iter()
                .map(|node_upgrade| node_upgrade.extra_cost)
                .reduce(|sum, extra_cost| sum + extra_cost)
        },
    },
    Figure {
        name: "upgrade_missing",
        label: "total pod time missing in upgrades",
        unit: Unit::Seconds,
        less_is_better: Some(true),
        of: |s| {
            s.node_upgrades
                .iter()
                .map(|node_upgrade| node_upgrade.missing_seconds)
                .reduce(|sum, missing_seconds| sum + missing_seconds)
        },
    },
    Figure {
        name: "upgrades_failed",
        label: "node upgrades failed",
        unit: Unit::Count,
        less_is_better: Some(true),
        of: |s| {
            let failed = s.node_upgrades.iter().filter(|upgrade| upgrade.is_failed()).count();
            (!s.node_upgrades.is_empty()).then_some(failed as f64)
        },
    },
];

/// The names of all figures in the order in which people read them: who was not served, what it cost, who waited, what moved.
const FOR_PEOPLE: [&str; 32] = [
    "unavailable_pod_minutes",
    "workloads_at_zero",
    "at_zero",
    "at_max",
    "cost",
    "cost_per_month",
    "cost_idle",
    "cost_estimated",
    "pending_mean",
    "pending_p95",
    "pending_p99",
    "pods_waited",
    "pods_pending",
    "ready_p99",
    "request_p99",
    "requests_unanswered",
    "requests_lost",
    "message_wait",
    "messages_undone",
    "jobs_undone",
    "nodes_mean",
    "launches",
    "launches_refused",
    "interruptions",
    "evictions",
    "upgrades_failed",
    "upgrade_time",
    "upgrade_extra_nodes",
    "upgrade_extra_cost",
    "upgrade_missing",
    "restarts",
    "cpu_requested",
];

/// Every figure of a run with its number, in the order in which people read them.
pub fn for_people() -> impl Iterator<Item = (usize, &'static Figure)> {
    FOR_PEOPLE.into_iter().filter_map(find)
}

/// Figures of a packed instance, which no run has.
pub static PACKING_FIGURES: &[Figure] = &[
    Figure {
        name: "packed_per_hour",
        label: "cost per hour of nodes to launch",
        unit: Unit::Money,
        less_is_better: Some(true),
        of: |_| None,
    },
    Figure { name: "packed_nodes", label: "nodes to launch", unit: Unit::Count, less_is_better: None, of: |_| None },
    Figure {
        name: "packed_pods_pending",
        label: "unschedulable pods",
        unit: Unit::Count,
        less_is_better: Some(true),
        of: |_| None,
    },
];

/// A figure of baselines alone: figures of response times are of the workloads that answer, and those of lost requests are of all
/// together, so that a small workload may fall silent unseen.
pub static SILENT: Figure = Figure {
    name: "workloads_silent",
    label: "workloads that answer no requests",
    unit: Unit::Count,
    less_is_better: Some(true),
    of: |_| None,
};

/// Every figure that a baseline may hold, in the order in which people read them.
pub fn all() -> impl Iterator<Item = &'static Figure> {
    for_people().map(|(_, figure)| figure).chain([&SILENT]).chain(PACKING_FIGURES)
}

/// The figure of a baseline called `name`.
pub fn named(name: &str) -> Option<&'static Figure> {
    all().find(|figure| figure.name == name)
}

/// The figure of a run called `name`.
pub fn find(name: &str) -> Option<(usize, &'static Figure)> {
    FIGURES.iter().enumerate().find(|(_, figure)| figure.name == name)
}

/// The longest upgrade; none if one failed or is still under way, for which no duration is known.
fn longest_upgrade(summary: &Summary) -> Option<f64> {
    let upgrades = &summary.node_upgrades;
    let is_known = upgrades.iter().all(UpgradeFigures::is_complete);
    is_known.then(|| upgrades.iter().map(|upgrade| upgrade.duration_seconds).reduce(f64::max)).flatten()
}

/// The slowest workload stands for all requests.
fn slowest_response(summary: &Summary) -> Option<f64> {
    summary.requests.iter().filter_map(|figures| figures.p99_seconds).max_by(f64::total_cmp)
}

/// The slowest queue stands for all messages.
fn slowest_queue(summary: &Summary) -> Option<f64> {
    summary.queues.iter().filter_map(|queue| queue.mean_wait_seconds).max_by(f64::total_cmp)
}

/// The share of its messages that still waited at the end, of the queue where it is largest: a large queue does not hide a small one that
/// nobody works on.
fn messages_undone(summary: &Summary) -> Option<f64> {
    let shares = summary.queues.iter().filter(|queue| queue.arrived > 0.0);
    shares.map(|queue| queue.waiting_at_end / queue.arrived).max_by(f64::total_cmp)
}

/// The share of all requests that still waited at the end, were given up or were refused.
fn lost_requests(summary: &Summary) -> Option<f64> {
    let lost: f64 =
        summary.requests.iter().map(|request| request.unanswered + request.timed_out + request.dropped).sum();
    let all = lost + summary.requests.iter().map(|request| request.completed).sum::<f64>();
    (all > 0.0).then(|| lost / all)
}

#[cfg(test)]
mod tests {
    use super::{COUNTS, FIGURES, MEDIANS, all, find, for_people};

    #[test]
    fn names_are_unique() {
        for (position, figure) in FIGURES.iter().enumerate() {
            assert_eq!(find(figure.name).map(|(found, _)| found), Some(position));
        }
        assert_eq!(for_people().count(), FIGURES.len(), "people read all figures");
        assert!(MEDIANS.into_iter().chain(COUNTS).all(|name| find(name).is_some()), "levels are of figures");
        assert!(all().all(|figure| all().filter(|other| other.name == figure.name).count() == 1));
    }
}

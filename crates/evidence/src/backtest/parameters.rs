//! Which parameter of the scenario a figure that differs asks to change. What follows from another figure that differs has that one's
//! parameter: replicas follow from demand, node-hours from replicas, costs from node-hours, waits from boots.

use serde::Serialize;

use super::workloads::Limit;
use super::{FigureResult, Judged, Verdict, WorkloadResult};

/// A parameter that is worth changing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
pub struct Change {
    /// The parameter, and what else it may be.
    pub parameter: String,
    /// The figures that differ by it.
    pub figures: Vec<String>,
}

const LAUNCH_LATENCY: &str = "`ec2.launch_latency` (`nodecast calibrate` fits it)";
const REQUESTS: &str = "requests of the pods, or instance types of the NodePools";
const CONSOLIDATION: &str = "`disruption` of the NodePools: `consolidateAfter`, `consolidationPolicy`, budgets";

/// The parameters, the first of them those from which most follows.
pub(super) fn changes(figures: &[FigureResult], workloads: &[WorkloadResult]) -> Vec<Change> {
    let found = BacktestFigures { figures, workloads };
    let mut changes: Vec<Change> = Vec::new();
    let mut add =
        |parameter: String, figure: String| match changes.iter_mut().find(|change| change.parameter == parameter) {
            Some(known) => known.figures.push(figure),
            None => changes.push(Change { parameter, figures: vec![figure] }),
        };
    for workload in workloads {
        for (what, parameter) in of_workload(workload, &found) {
            add(parameter, format!("{what} {}", workload.workload));
        }
    }
    // Boots come before the waits that follow from them, lives of nodes before the cost.
    let order = |figure: &&FigureResult| (figure.name != "launch_to_ready", figure.name.starts_with("cost"));
    let mut differing: Vec<&FigureResult> = figures.iter().filter(|figure| differs(&figure.judged)).collect();
    differing.sort_by_key(order);
    for figure in differing {
        add(found.parameter(&figure.name), figure.label.clone());
    }
    changes
}

fn differs(judged: &Judged) -> bool {
    judged.verdict == Verdict::Differs
}

/// What differs of a workload, with its parameter.
fn of_workload(workload: &WorkloadResult, found: &BacktestFigures<'_>) -> Vec<(&'static str, String)> {
    let name = &workload.workload;
    let cpu_differs = workload.cpu_milli.as_ref().is_some_and(differs);
    let demand = format!("`load` of {name}: its rate, or `service.cpu_per_request`");
    let mut parameters = Vec::new();
    if differs(&workload.replicas) {
        let parameter = match workload.limit {
            Some(Limit::Most) => format!("`maxReplicas` of the HorizontalPodAutoscaler of {name}"),
            Some(Limit::Fewest) => format!("`minReplicas` of the HorizontalPodAutoscaler of {name}"),
            None if cpu_differs => demand.clone(),
            None if found.of_kind("node_hours_by_pool") => {
                format!("target of the HorizontalPodAutoscaler of {name}, or requests of its pods")
            }
            None => format!("requests of the pods of {name}, or the target of its HorizontalPodAutoscaler"),
        };
        parameters.push(("replicas of", parameter));
    }
    if cpu_differs {
        parameters.push(("CPU of", demand));
    }
    if workload.latency_p99_seconds.as_ref().is_some_and(differs) {
        // Fewer replicas answer more slowly.
        let follows = parameters.first().map(|(_, parameter)| parameter.clone());
        let make = || format!("`load` of {name}: `service.base_latency`, `concurrency`");
        parameters.push(("p99 of", follows.unwrap_or_else(make)));
    }
    parameters
}

struct BacktestFigures<'f> {
    figures: &'f [FigureResult],
    workloads: &'f [WorkloadResult],
}

impl BacktestFigures<'_> {
    fn error(&self, name: &str) -> f64 {
        let figure = self.figures.iter().find(|figure| figure.name == name);
        figure.map_or(0.0, |figure| figure.judged.simulated - figure.judged.observed)
    }

    fn differs(&self, name: &str) -> bool {
        self.figures.iter().any(|figure| figure.name == name && differs(&figure.judged))
    }

    /// Whether a figure differs whose name begins so.
    fn of_kind(&self, prefix: &str) -> bool {
        self.figures.iter().any(|figure| figure.name.starts_with(prefix) && differs(&figure.judged))
    }

    /// The parameter of a figure of the cluster.
    fn parameter(&self, name: &str) -> String {
        let family = name.split('.').next().unwrap_or(name);
        match family {
            "launch_to_ready" => LAUNCH_LATENCY.to_owned(),
            "wait_p50" | "wait_p99" if self.differs("launch_to_ready") => LAUNCH_LATENCY.to_owned(),
            "wait_p50" | "wait_p99" => "`ec2.times`, `controller_time`: calls and passes before a launch".to_owned(),
            "reclaims_per_day" => "`ec2.spot.interruptions`".to_owned(),
            "removed" if name == "removed.expired_per_day" => "`expireAfter` of the NodePools".to_owned(),
            "removed" if name == "removed.drifted_per_day" => {
                "changes of NodePools and node classes in the `timeline`".to_owned()
            }
            "cost_per_day" | "cost_at_held_prices_per_day" => self.of_cost(),
            _ => self.of_nodes(family),
        }
    }

    /// What costs follow from: hours of nodes, or their prices.
    fn of_cost(&self) -> String {
        let hours = self.figures.iter().find(|figure| figure.name.starts_with("node_hours") && differs(&figure.judged));
        hours.map_or_else(
            || "prices (`--pricing-data`, `--bill`), or what `ec2.billing` adds".to_owned(),
            |figure| self.parameter(&figure.name),
        )
    }

    /// What lives of nodes and moves of pods follow from.
    fn of_nodes(&self, family: &str) -> String {
        let replicas = self.workloads.iter().find(|workload| differs(&workload.replicas));
        if let Some(workload) = replicas
            && let Some((_, parameter)) = of_workload(workload, self).into_iter().next()
        {
            return parameter;
        }
        let hours = self.differs("node_hours_per_day");
        match family {
            "node_hours_by_capacity_type" if !hours => {
                "`karpenter.sh/capacity-type` of the NodePools, or Spot capacity in `ec2`".to_owned()
            }
            "node_hours_by_pool" if !hours && !self.of_kind("node_hours_by_capacity_type") => {
                "weights, limits and requirements of the NodePools".to_owned()
            }
            "node_hours_by_size" if !hours && !self.moves_differ() => REQUESTS.to_owned(),
            _ if self.stays_longer() => CONSOLIDATION.to_owned(),
            _ => REQUESTS.to_owned(),
        }
    }

    /// How many more removals of unused nodes and evictions were simulated, of those that differ.
    fn removals(&self) -> f64 {
        let names = ["removed.underutilized_per_day", "removed.empty_per_day", "evictions_per_day"];
        names.into_iter().filter(|name| self.differs(name)).map(|name| self.error(name)).sum()
    }

    fn moves_differ(&self) -> bool {
        let moves = ["removed.underutilized_per_day", "removed.empty_per_day", "evictions_per_day", "launches_per_day"];
        moves.iter().any(|name| self.differs(name))
    }

    /// Whether nodes are removed at other times: fewer removals with more hours, or the other way round, or others while hours agree.
    fn stays_longer(&self) -> bool {
        if self.differs("node_hours_per_day") {
            self.error("node_hours_per_day") * self.removals() < 0.0
        } else {
            self.moves_differ()
        }
    }
}

//! A simulation reduced to its figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::figures::FIGURES;
use crate::report::Summary;
use nodecast_model::cluster::NodeEnd;
use nodecast_settings::Caveats;
use nodecast_world::outcome::Outcome;

/// The share of a setting's runs that have to meet an objective for the setting to count as meeting it.
pub const MET_IN: f64 = 0.95;

/// What one simulation answered: a pure function of (scenario, policy, seed).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Point {
    /// The number of the scenario's setting; 0 where settings do not vary.
    #[serde(default, skip_serializing_if = "is_first")]
    pub setting: usize,
    /// The policy's name.
    pub policy: String,
    /// The seed.
    pub seed: u64,
    /// One value for each of [`FIGURES`]; `null` where there was nothing to measure.
    pub figures: Vec<Option<f64>>,
    /// The scenario's objectives, in its order.
    pub objectives: Vec<Objective>,
    /// Hash over every event, in hexadecimal.
    pub event_hash: String,
    /// The share of the bill at prices that were worked out or assumed.
    pub unconfirmed: f64,
    /// What nodes cost, by NodePool or node group.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cost_by_origin: BTreeMap<String, f64>,
    /// Whether there was any Spot node.
    #[serde(default)]
    pub spot: bool,
    /// Nodes whose instance started and that never registered.
    #[serde(default, skip_serializing_if = "is_none")]
    pub never_registered: u64,
    /// Workloads that were sent requests and answered none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
    /// Time for which each workload wanted replicas and had none Ready, in seconds; without those that always had one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at_zero_seconds: BTreeMap<String, f64>,
    /// Date of the prices.
    pub price_date: String,
    /// What the model left out and could change the answer.
    #[serde(flatten)]
    pub warnings: Caveats,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_first(setting: &usize) -> bool {
    *setting == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// An objective in one simulation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Objective {
    /// Its name in the scenario.
    pub name: String,
    /// `seconds`, `pod-minutes` or a currency code.
    pub unit: String,
    /// The limit.
    pub limit: f64,
    /// What happened; `null` when there was nothing to measure.
    #[serde(default)]
    pub actual: Option<f64>,
    /// Whether it was met; `null` when there was nothing to measure.
    pub met: Option<bool>,
}

impl Point {
    /// The figures of a run.
    fn from_summary(summary: &Summary) -> Self {
        Self {
            setting: 0,
            policy: summary.about.policy.clone(),
            seed: summary.about.seed,
            figures: FIGURES.iter().map(|figure| (figure.of)(summary)).collect(),
            objectives: summary
                .objectives
                .iter()
                .map(|objective| Objective {
                    name: objective.name.clone(),
                    unit: objective.unit.clone(),
                    limit: objective.limit,
                    actual: objective.actual,
                    met: objective.met,
                })
                .collect(),
            event_hash: summary.event_hash.clone(),
            unconfirmed: summary.cost.unconfirmed.share,
            cost_by_origin: summary.cost.by_node_origin.iter().map(|part| (part.name.clone(), part.amount)).collect(),
            spot: summary.cost.by_capacity_type.iter().any(|part| part.name == "spot"),
            never_registered: never_registered(summary),
            silent: silent(summary),
            at_zero_seconds: at_zero(summary),
            price_date: summary.about.price_date.clone(),
            warnings: summary.warnings.clone(),
        }
    }
}

impl Point {
    /// The same run with another amount added to its cost.
    #[must_use]
    pub fn with_added_cost(mut self, added: f64) -> Self {
        let place = |name| super::figures::find(name).map(|(place, _)| place);
        let Some((total, per_month)) = place("cost").zip(place("cost_per_month")) else { return self };
        let Some(Some(cost)) = self.figures.get(total).copied() else { return self };
        if let Some(Some(month)) = self.figures.get_mut(per_month)
            && cost != 0.0
        {
            *month *= (cost + added) / cost;
        }
        self.figures[total] = Some(cost + added);
        self
    }
}

/// Nodes that never registered.
fn never_registered(summary: &Summary) -> u64 {
    let ends = summary.nodes.terminations.iter().filter(|end| end.name == NodeEnd::NotRegistered.as_str());
    ends.map(|end| end.count).sum()
}

/// Time without a Ready replica, by workload.
fn at_zero(summary: &Summary) -> BTreeMap<String, f64> {
    let counted = summary.availability.workloads.iter().filter(|workload| !workload.placeholder);
    let at_zero = counted.filter(|workload| workload.at_zero_seconds > 0.0);
    at_zero.map(|workload| (workload.workload.clone(), workload.at_zero_seconds)).collect()
}

/// The workloads that were sent requests and answered none of them.
fn silent(summary: &Summary) -> Vec<String> {
    let silent =
        summary.requests.iter().filter(|request| request.completed <= 0.0 && request.unanswered_share() == Some(1.0));
    silent.map(|silent| silent.workload.clone()).collect()
}

/// The simulations to run: every setting, seed and policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// How many settings of the scenario; 1 where nothing but policy and seed varies.
    pub settings: usize,
    /// Names of policies.
    pub policies: Vec<String>,
    /// Seeds.
    pub seeds: Vec<u64>,
}

/// One simulation of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell<'p> {
    /// Its number among the cells of its plan.
    pub index: usize,
    /// The setting's number.
    pub setting: usize,
    /// The policy's name.
    pub policy: &'p str,
    /// The seed.
    pub seed: u64,
}

impl Plan {
    /// Every simulation in order: settings outermost, then seeds, so that, stopped at any place, all policies have met
    /// almost the same seeds.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        let inner = self.seeds.len() * self.policies.len();
        (0..self.settings * inner).map(move |index| {
            let within = index % inner;
            Cell {
                index,
                setting: index / inner,
                policy: &self.policies[within % self.policies.len()],
                seed: self.seeds[within / self.policies.len()],
            }
        })
    }

    /// How many simulations it holds.
    pub fn len(&self) -> usize {
        self.settings * self.policies.len() * self.seeds.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Successive seeds from `first` on.
pub fn seeds(first: u64, count: u32) -> Vec<u64> {
    (0..u64::from(count)).map(|ordinal| first.wrapping_add(ordinal)).collect()
}

/// The point of a simulation.
pub fn point(cell: Cell<'_>, outcome: &Outcome) -> Point {
    Point { setting: cell.setting, ..Point::from_summary(&Summary::from_outcome(outcome)) }
}

#[cfg(test)]
mod tests {
    use super::Plan;

    #[test]
    fn cells_are_numbered_with_policies_innermost() {
        let plan = Plan { settings: 2, policies: vec!["a".into(), "b".into()], seeds: vec![7, 8] };
        let cells: Vec<_> = plan.cells().map(|cell| (cell.index, cell.setting, cell.policy, cell.seed)).collect();
        assert_eq!(cells.len(), plan.len());
        assert_eq!(cells[..4], [(0, 0, "a", 7), (1, 0, "b", 7), (2, 0, "a", 8), (3, 0, "b", 8)]);
        assert_eq!(cells[4], (4, 1, "a", 7));
    }
}

//! How much air is in a cluster: what its nodes cost against Karpenter packing what runs on them anew.

use std::fmt::Write as _;

use serde::Serialize;

use super::{HOURS_OF_MONTH, PackAnswer};
use crate::domain::{HourlyRate, well_known};
use crate::format::{counted, money, percent};
use crate::single_pass::{Constraint, PackingQuestion, SinglePass};
use crate::standing::rate_of_node;

/// What runs, and what its constraints cost.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct Repacked {
    /// Nodes that Karpenter runs now.
    pub nodes: usize,
    /// What they cost in an hour; `None` where the price of one is not known.
    pub per_hour: Option<f64>,
    /// How much of that would be saved if they were packed anew, as a share; below zero where they would cost more.
    pub air: Option<f64>,
    /// What would be saved in a month of 730 hours.
    pub saved_per_month: Option<f64>,
    /// What packing anew would cost without each constraint that pods state.
    pub constraints: Vec<ConstraintCost>,
}

/// What a constraint costs.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct ConstraintCost {
    /// The constraint.
    pub constraint: &'static str,
    /// Pods that state it.
    pub pods: usize,
    /// What packing costs in an hour without it.
    pub per_hour_without: f64,
    /// How many pods stay pending without it.
    pub pods_pending_without: usize,
}

impl Repacked {
    /// What runs in `before`, and what `question`, the same packed anew, costs without each of its constraints: `pack` packs as `packed` was,
    /// because plans of two packers differ whatever the constraints.
    pub fn new(
        before: &PackingQuestion,
        question: &PackingQuestion,
        packed: &PackAnswer,
        pack: &dyn for<'q> Fn(&'q PackingQuestion) -> SinglePass<'q>,
    ) -> Self {
        let nodes = before.nodes.iter().map(|node| &node.node.labels);
        let nodes: Vec<_> = nodes.filter(|labels| labels.get(well_known::NODEPOOL).is_some()).collect();
        let rates = nodes.iter().map(|labels| rate_of_node(&before.region, labels).map(HourlyRate::as_nanos));
        let per_hour = rates.sum::<Option<i64>>().map(|nanos| HourlyRate::from_nanos(nanos).as_f64());
        let saved = per_hour.map(|before| before - packed.summary.per_hour);
        let constraints = Constraint::ALL.into_iter().filter_map(|constraint| {
            let (without, pods) = question.without(constraint);
            let answer = (pods > 0).then(|| PackAnswer::new(&pack(&without), None))?;
            Some(ConstraintCost {
                constraint: constraint.as_str(),
                pods,
                per_hour_without: answer.summary.per_hour,
                pods_pending_without: answer.summary.pods_pending,
            })
        });
        Self {
            nodes: nodes.len(),
            per_hour,
            air: saved.zip(per_hour.filter(|&before| before > 0.0)).map(|(saved, before)| saved / before),
            saved_per_month: saved.map(|saved| libm::round(saved * HOURS_OF_MONTH * 1e4) / 1e4),
            constraints: constraints.collect(),
        }
    }

    /// The lines of the table that come first.
    pub(super) fn write(&self, packed: f64, currency: &str, text: &mut String) {
        let nodes = counted(self.nodes as u64, "node", "nodes");
        let _ = match (self.per_hour, self.air, self.saved_per_month) {
            (Some(per_hour), Some(air), Some(saved)) => writeln!(
                text,
                "Karpenter's {nodes} cost {}/h today. Repacking from scratch saves {}: {} per month",
                money(currency, per_hour),
                percent(air),
                money(currency, saved)
            ),
            _ => writeln!(text, "Karpenter runs {nodes} today; not all their prices are known"),
        };
        for cost in &self.constraints {
            let _ = writeln!(
                text,
                "without {} (on {}): {}/h{}",
                cost.constraint,
                counted(cost.pods as u64, "pod", "pods"),
                money(currency, cost.per_hour_without),
                match packed - cost.per_hour_without {
                    saved if saved.abs() < 5e-5 => " (no effect)".to_owned(),
                    saved => format!(" (this constraint costs {}/h)", money(currency, saved)),
                }
            );
        }
    }
}

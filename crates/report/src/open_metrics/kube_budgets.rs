//! PodDisruptionBudgets as kube-state-metrics shows them, at the instants of `timeline.csv`.
//!
//! Source: kube-state-metrics 2.15 `docs/metrics/policy/poddisruptionbudget-metrics.md`.

use std::collections::BTreeSet;
use std::io;

use super::exposition::{Exposition, Family};
use super::lives::Lives;
use crate::domain::SimTime;
use crate::domain::workload::ObjectName;
use nodecast_world::record::BudgetSample;

/// Series of each budget, for the size of the text.
pub(super) const SERIES: u64 = 4;

pub(super) fn write(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    type Of = fn(&BudgetSample) -> i64;
    let families: [(&'static str, &'static str, Of); 4] = [
        ("kube_poddisruptionbudget_status_current_healthy", "Healthy pods.", |item| item.healthy),
        ("kube_poddisruptionbudget_status_desired_healthy", "Healthy pods that there must be.", |item| {
            item.desired_healthy
        }),
        ("kube_poddisruptionbudget_status_pod_disruptions_allowed", "Pods that may be evicted now.", |item| {
            item.disruptions_allowed
        }),
        ("kube_poddisruptionbudget_status_expected_pods", "Pods that there should be.", |item| item.expected),
    ];
    let names = names(lives);
    for (name, help, of) in families {
        out.family(Family::gauge(name, help));
        for budget in &names {
            let labels =
                vec![("namespace", budget.namespace.to_string()), ("poddisruptionbudget", budget.name.to_string())];
            out.series(&labels, SimTime::ZERO, |at| {
                lives
                    .sample(at)?
                    .budgets
                    .iter()
                    .find(|this_budget| this_budget.name == *budget)
                    .map(|budget| of(budget) as f64)
            })?;
        }
    }
    Ok(())
}

/// The budgets that there ever were.
pub(super) fn names(lives: &Lives<'_>) -> BTreeSet<ObjectName> {
    lives.outcome.record.samples.iter().flat_map(|sample| sample.budgets.iter().map(|budget| budget.name)).collect()
}

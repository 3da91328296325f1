//! Pods that an update of a node group drains, and those that no budget lets it evict.

use super::UpdateStart;
use crate::actors::{Action, group_template};
use crate::control_plane::eviction::{ProtectedPods, budget_status};
use crate::domain::pod::PodDisruptionBudget;
use crate::domain::taints::first_untolerated;
use crate::domain::which::{By, ObjectKind, Which};
use crate::domain::workload::ObjectName;
use crate::domain::{NodeGroup, PodSpec, TaintEffect, well_known};
use nodecast_model::fargate;

/// Pods of a workload that has to leave a drained node.
pub(super) struct DrainedPods<'s> {
    name: ObjectName,
    spec: &'s PodSpec,
    /// Most replicas of its manifest, of steps that scale it, and of autoscalers; `None` for a controller without a scale.
    replicas: Option<u32>,
}

impl<'s> UpdateStart<'s> {
    /// What a step changes of pods and their budgets.
    pub(super) fn apply_to_pods(&mut self, action: &'s Action) {
        match action {
            Action::ApplyBudget(budget) => {
                self.budgets.retain(|known| (known.namespace, known.name) != (budget.namespace, budget.name));
                self.budgets.push(budget.clone());
            }
            Action::Delete { kind: ObjectKind::PodDisruptionBudget, which, .. } => {
                self.budgets.retain(|budget| !is_meant(which, budget));
            }
            Action::Deploy(spec) => self.add(spec.name, &spec.template, Some(spec.replicas.unwrap_or(1))),
            Action::DeployStateful(spec) => self.add(spec.name, &spec.template, Some(spec.replicas.unwrap_or(1))),
            Action::RunJob(job) => self.add(job.name, &job.spec.template, None),
            Action::RunCronJob(cron_job) => self.add(cron_job.name, &cron_job.job.template, None),
            Action::Scale { workload, replicas } => self.grow(*workload, *replicas),
            Action::Autoscale(autoscaler) => {
                let target = ObjectName { namespace: autoscaler.namespace, name: autoscaler.target.name };
                self.grow(target, autoscaler.max_replicas.max(0).unsigned_abs());
            }
            Action::ScaleObject(plan) => {
                if let Some(autoscaler) = &plan.autoscaler {
                    let target = ObjectName { namespace: autoscaler.namespace, name: autoscaler.target.name };
                    self.grow(target, autoscaler.max_replicas.max(0).unsigned_abs());
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, name: ObjectName, spec: &'s PodSpec, replicas: Option<u32>) {
        self.pods.retain(|pods| pods.name != name);
        self.pods.push(DrainedPods { name, spec, replicas });
    }

    fn grow(&mut self, name: ObjectName, replicas: u32) {
        for pods in self.pods.iter_mut().filter(|pods| pods.name == name) {
            pods.replicas = pods.replicas.map(|known| known.max(replicas));
        }
    }

    /// Workloads whose pods can run on nodes of the group and that budgets never let go, in order of name.
    pub(super) fn never_evicted(&self, group: &NodeGroup) -> Vec<String> {
        let is_stuck = |pods: &&DrainedPods<'_>| {
            let budgets: Vec<&PodDisruptionBudget> =
                self.budgets.iter().filter(|budget| protects(budget, pods)).collect();
            match budgets.as_slice() {
                [] => false,
                [budget] => self.allows_nothing(budget),
                // The API server evicts no pod that several budgets protect.
                _ => true,
            }
        };
        let stuck = self.pods.iter().filter(|pods| pods.replicas != Some(0)).filter(is_stuck);
        let mut names: Vec<String> =
            stuck.filter(|pods| self.runs_on(group, pods)).map(|pods| pods.name.to_string()).collect();
        names.sort_unstable();
        names
    }

    /// Whether the budget allows no eviction even when every pod that it protects is healthy.
    fn allows_nothing(&self, budget: &PodDisruptionBudget) -> bool {
        let mut all = ProtectedPods::default();
        for pods in self.pods.iter().filter(|pods| protects(budget, pods)) {
            let replicas = i64::from(pods.replicas.unwrap_or(1));
            all.wanted += replicas;
            all.unscaled += i64::from(pods.replicas.is_none());
        }
        (all.selected, all.healthy) = (all.wanted, all.wanted);
        budget_status(budget.rule, all).disruptions_allowed == 0
    }

    /// Whether pods can run on a node of the group, by its labels and taints.
    fn runs_on(&self, group: &NodeGroup, pods: &DrainedPods<'_>) -> bool {
        let on_fargate = self.setup.policy.fargate.as_ref().is_some_and(|settings| {
            fargate::chosen(&settings.profiles, pods.name.namespace.as_str(), &pods.spec.labels).is_some()
        });
        let Some(template) = group_template(self.setup, group).filter(|_| !on_fargate) else { return false };
        let repelling = template.taints.iter().chain(&group.registers.taints);
        let repelling = repelling.filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
        let mut labels = template.labels;
        labels.extend(&group.registers.labels);
        first_untolerated(repelling, &pods.spec.tolerations).is_none()
            && self.spec(group).zones.into_iter().any(|zone| {
                labels.set(well_known::ZONE, zone);
                pods.spec.selects_node(&labels, "")
            })
    }
}

fn protects(budget: &PodDisruptionBudget, pods: &DrainedPods<'_>) -> bool {
    budget.namespace == pods.name.namespace
        && budget.selector.as_ref().is_some_and(|selector| selector.matches(&pods.spec.labels))
}

fn is_meant(which: &Which, budget: &PodDisruptionBudget) -> bool {
    matches!(&which.by, By::Name(name) if (name.namespace, name.name) == (budget.namespace, budget.name))
}

//! Workloads that other objects complete: Rollouts that name theirs, and ReplicaSets whose manager is missing.
//!
//! Must not: read objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::rollout::RolloutOfWorkload;
use super::{Manifests, ReplicaSet, lints};
use nodecast_model::domain::workload::{Deployment, ObjectName};
use nodecast_model::domain::{LabelSelector, PodSpec};
use nodecast_model::text::Warning;

impl Manifests {
    /// Adds the Deployments that Rollouts and ReplicaSets run as, once all objects are there; others `exist` already. Says what it could
    /// not complete, and what it took in place of something that is missing.
    pub fn complete_workloads(&mut self, exist: &[&Self]) -> Vec<Warning> {
        let mut warnings = Vec::new();
        // A workload that is applied again brings its template to the Rollout that was there before.
        let has_new = |rollout: &&RolloutOfWorkload| {
            let is_own = self.rollouts.iter().any(|other| other.name == rollout.name);
            !is_own && self.deployments.iter().any(|deployment| deployment.name == rollout.workload.1)
        };
        let former = exist.iter().flat_map(|manifests| &manifests.rollouts).filter(has_new);
        let rollouts: Vec<RolloutOfWorkload> = self.rollouts.iter().chain(former).cloned().collect();
        for rollout in &rollouts {
            warnings.extend(self.complete_rollout(rollout, exist));
        }
        warnings.extend(self.complete_sets(exist));
        warnings
    }

    /// Adds the Deployment that a Rollout runs as, and takes the replicas from the workload that it scales down.
    ///
    /// Source: Argo Rollouts 1.8 `rollout/templateref.go` (`remarshalMap`, the template and the selector of the workload),
    /// `rollout/scale_down_workload.go`.
    fn complete_rollout(&mut self, rollout: &RolloutOfWorkload, exist: &[&Self]) -> Option<Warning> {
        let (kind, workload) = rollout.workload;
        let Some((selector, template)) =
            self.pods_of(rollout).or_else(|| exist.iter().find_map(|manifests| manifests.pods_of(rollout)))
        else {
            let name = rollout.name;
            let text = format!(
                "Rollout {name} takes its template from the {kind} {workload}, which is in no file: its pods are missing, so cost and waits are too low"
            );
            let warning = Warning::from_lint(&lints::ROLLOUT_TEMPLATE, text);
            return Some(warning.help(format!("add the {kind} to the manifests")));
        };
        let mut deployment = rollout.own.deployment(rollout.name, selector, template);
        let position = self.deployments.iter().position(|known| known.name == workload);
        if let Some(known) = position.map(|position| &mut self.deployments[position]) {
            if rollout.scales_down {
                known.replicas = Some(0);
            } else if workload == rollout.name {
                // Both run, and their pods are the same.
                let both = deployment.replicas.unwrap_or(1).saturating_add(known.replicas.unwrap_or(1));
                deployment.replicas = Some(both);
            }
        }
        self.deployments.retain(|known| known.name != rollout.name);
        self.deployments.push(deployment);
        None
    }

    /// Selector and template of what a Rollout names.
    fn pods_of(&self, rollout: &RolloutOfWorkload) -> Option<(LabelSelector, Arc<PodSpec>)> {
        let (kind, name) = rollout.workload;
        if kind.as_str() == "PodTemplate" {
            let pod_template = self.pod_templates.iter().find(|template| template.name == name)?;
            let match_labels = pod_template.spec.labels.clone();
            return Some((LabelSelector { match_labels, expressions: Vec::new() }, Arc::clone(&pod_template.spec)));
        }
        let deployment = self.deployments.iter().find(|deployment| deployment.name == name)?;
        Some((deployment.selector.clone(), Arc::clone(&deployment.template)))
    }

    /// Adds a Deployment for the ReplicaSets whose Deployment or Rollout is nowhere: of the template of the largest, with the replicas of
    /// all.
    fn complete_sets(&mut self, exist: &[&Self]) -> Vec<Warning> {
        let mut missing: BTreeMap<ObjectName, Vec<&ReplicaSet>> = BTreeMap::new();
        let is_there = |name: ObjectName| {
            let has = |manifests: &Self| {
                manifests.deployments.iter().any(|known| known.name == name)
                    || manifests.rollouts.iter().any(|known| known.name == name)
            };
            has(self) || exist.iter().any(|manifests| has(manifests))
        };
        for set in self.replica_sets.iter().filter(|set| replicas(&set.deployment) > 0) {
            if !is_there(set.deployment.name) {
                missing.entry(set.deployment.name).or_default().push(set);
            }
        }
        let (mut warnings, mut added) = (Vec::new(), Vec::new());
        for (name, sets) in missing {
            let Some(largest) = sets.iter().max_by_key(|set| replicas(&set.deployment)) else { continue };
            let all = sets.iter().fold(0_u32, |sum, set| sum.saturating_add(replicas(&set.deployment)));
            added.push(Deployment { replicas: Some(all), rolls_out: true, ..largest.deployment.clone() });
            warnings.push(Warning::from_lint(&lints::DEPLOYMENT_MISSING, format!(
                "the Deployment {name} is in no file: it runs with the template and the {all} replicas of its ReplicaSets"
            )));
        }
        self.deployments.extend(added);
        warnings
    }
}

fn replicas(deployment: &Deployment) -> u32 {
    deployment.replicas.unwrap_or(1)
}

//! Warnings about steps of the timeline on node groups: groups that only other policies have, and updates that budgets stop, that lack room for
//! the additional nodes, or that Cluster Autoscaler can end early.
//!
//! Must not: change an update. The run shows what these warnings announce (`actors::node_groups::update`).
//!
//! Source: EKS user guide, `nodegroups/managed-node-update-behavior.adoc` (0bfeeaf).

mod capacity;
mod pods;

use crate::actors::{Action, Autoscaler, Setup, Step};
use crate::cloud::autoscaling::GroupSpec;
use crate::domain::node_group::UpdateStrategy;
use crate::domain::pod::PodDisruptionBudget;
use crate::domain::words::some_of;
use crate::domain::{NodeGroup, SimTime, Symbol};
use nodecast_settings::Caveats;
use nodecast_settings::lints::setup;
use pods::DrainedPods;

/// The cluster at the start of an update, as far as manifests and timeline say it.
struct UpdateStart<'s> {
    setup: &'s Setup<'s>,
    groups: Vec<NodeGroup>,
    budgets: Vec<PodDisruptionBudget>,
    pods: Vec<DrainedPods<'s>>,
}

/// Warns of every step on a group that this policy lacks, and of every update of a managed group, of the timeline or of an edited ClusterConfig.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    for step in &setup.timeline {
        warn_of_absent_group(setup, step, warnings);
        let Action::UpdateVersion(update) = &step.action else { continue };
        let start = UpdateStart::new(setup, step.at);
        let Some(group) = start.groups.iter().find(|group| group.name == update.group) else { continue };
        let when = when(step.at, group.name);
        if !update.force {
            start.warn_of_budgets(&when, group, warnings);
        }
        start.warn_of_capacity(&when, group, warnings);
        start.warn_of_autoscaler(&when, group, warnings);
    }
}

/// Some policy has the group of a step: the reader of the scenario rejects the names of all others.
fn warn_of_absent_group(setup: &Setup<'_>, step: &Step, warnings: &mut Caveats) {
    let (key, name) = match &step.action {
        Action::ScaleGroup { group, .. } => ("scale_group", *group),
        Action::UpdateVersion(update) => ("update_group", update.group),
        Action::RefreshGroup(refresh) => ("refresh_group", refresh.group),
        _ => return,
    };
    if setup.policy.manifests.node_groups.iter().all(|group| group.name != name) {
        warnings.add(
            &setup::GROUP_OF_OTHER_POLICY,
            format!("timeline at {}: `{key}` has no effect: this policy has no node group {name}", step.at),
        );
    }
}

/// An update, for people.
fn when(at: SimTime, group: Symbol) -> String {
    if at == SimTime::ZERO {
        return format!("update of node group {group}");
    }
    format!("timeline at {at}: update of node group {group}")
}

impl<'s> UpdateStart<'s> {
    fn new(setup: &'s Setup<'s>, at: SimTime) -> Self {
        let manifests = &setup.policy.manifests;
        let (groups, budgets) = (manifests.node_groups.clone(), manifests.disruption_budgets.clone());
        let mut start = Self { setup, groups, budgets, pods: Vec::new() };
        for step in setup.timeline.iter().filter(|step| step.at <= at) {
            start.apply(&step.action);
        }
        start
    }

    /// What a step changes of it.
    fn apply(&mut self, action: &'s Action) {
        match action {
            Action::UpdateGroup(later) => {
                if let Some(group) = self.groups.iter_mut().find(|group| group.name == later.name) {
                    let desired = if later.states_desired { later.desired_size } else { group.desired_size };
                    *group = NodeGroup {
                        desired_size: desired.max(later.min_size).min(later.max_size),
                        ..NodeGroup::clone(later)
                    };
                }
            }
            Action::ScaleGroup { group, desired } => {
                let scaled = self.groups.iter_mut().find(|node_group| node_group.name == *group);
                scaled.into_iter().for_each(|node_group| node_group.desired_size = *desired);
            }
            _ => self.apply_to_pods(action),
        }
    }

    /// Nodes by which the update enlarges the group, at most.
    fn surge(&self, group: &NodeGroup) -> u32 {
        group.update_config.surge(group.desired_size, self.spec(group).zones.len())
    }

    fn spec(&self, group: &NodeGroup) -> GroupSpec {
        GroupSpec::new(group, &self.setup.scenario.zones, &self.setup.region)
    }

    fn warn_of_budgets(&self, when: &str, group: &NodeGroup, warnings: &mut Caveats) {
        let stuck = self.never_evicted(group);
        if stuck.is_empty() {
            return;
        }
        let rest = match group.update_config.strategy {
            UpdateStrategy::Default => ", and the additional nodes stay",
            UpdateStrategy::Minimal => "",
        };
        warnings.add(&setup::UPDATE_BLOCKED, format!(
            "{when}: disruption budgets allow no eviction of the pods of {}. If such a pod is on a node of the group, the update fails with \
             `PodEvictionFailure` after 15 minutes{rest}. Relax the budgets, or set `force: true`",
            some_of(&stuck)
        ));
    }

    fn warn_of_autoscaler(&self, when: &str, group: &NodeGroup, warnings: &mut Caveats) {
        let Autoscaler::ClusterAutoscaler(settings) = &self.setup.autoscaler else { return };
        let limits = (i64::from(group.min_size), i64::from(group.max_size));
        let is_scaled = settings.flags.discovery.limits(group, limits).is_some();
        if is_scaled && group.update_config.strategy == UpdateStrategy::Default {
            warnings.add(&setup::UPDATE_AND_AUTOSCALER, format!(
                "{when}: if Cluster Autoscaler raises the group while the update lowers it, the update ends at once, and the group keeps up to \
                 {} additional nodes until Cluster Autoscaler removes them",
                self.surge(group)
            ));
        }
    }
}

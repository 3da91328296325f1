//! Objects of a timeline's step that act on others: namespaces, budgets, quotas, volumes and claims, ranks of groups, and what a run reads once, at its start.
//!
//! What must not live here: workloads and their autoscalers (`resolve`), NodePools and classes (`pools`).

use super::{group_ranks, node_groups, storage};
use crate::actors::{Action, Step};
use crate::domain::SimTime;
use crate::domain::which::{ObjectKind, Which};
use crate::manifests::Manifests;
use nodecast_cluster_autoscaler::expander::Expander;
use nodecast_settings::lints::setup;
use nodecast_settings::{Autoscaler, Caveats, PolicyVariant, Scenario};

/// The steps by which they come to be or change at `at`.
pub(super) fn applied(
    at: SimTime,
    later: &Manifests,
    (scenario, policy): (&Scenario, &PolicyVariant),
    warnings: &mut Caveats,
) -> Vec<Step> {
    warn_about_what_is_read_once(at, later, policy, warnings);
    let budgets = later.disruption_budgets.iter().cloned().map(Action::ApplyBudget);
    let quotas = later.resource_quotas.iter().cloned().map(Action::ApplyQuota);
    let of_autoscaler = policy.autoscaler == Autoscaler::ClusterAutoscaler;
    if let Some(namespace) = later.unread_ranks.filter(|_| of_autoscaler && later.group_ranks.is_none()) {
        warnings.add(&setup::APPLIED_TOO_LATE, format!(
            "timeline at {at}: Cluster Autoscaler does not read the ConfigMap cluster-autoscaler-priority-expander in the namespace \
             `{namespace}`: state `namespace: kube-system`"
        ));
    }
    if let (Some(stated), Some(flags)) = (&later.group_ranks, &policy.flags)
        && flags.expander.filters().contains(&Expander::Priority)
    {
        let when = format!("timeline at {at}: ");
        node_groups::warn_of_ranks(&when, stated, &policy.manifests.node_groups, flags, warnings);
    }
    let ranks = group_ranks(later).filter(|_| of_autoscaler).map(|ranks| Action::ReplaceRanks(Box::new(ranks)));
    let namespaces =
        later.namespaces.iter().map(|namespace| Action::LabelNamespace(namespace.name, namespace.labels.clone()));
    let storage = storage::applied(later, scenario, policy);
    namespaces.chain(budgets).chain(quotas).chain(ranks).chain(storage).map(|action| Step { at, action }).collect()
}

fn warn_about_what_is_read_once(at: SimTime, later: &Manifests, policy: &PolicyVariant, warnings: &mut Caveats) {
    if later.services.iter().any(|service| policy.manifests.services.iter().all(|known| known.name != service.name)) {
        warnings.add(&setup::APPLIED_TOO_LATE, format!(
            "timeline at {at}: default spreading for this Service applies from the start of the run, not from when it is applied"
        ));
    }
    if later.scheduler.as_ref().is_some_and(|scheduler| policy.manifests.scheduler.as_ref() != Some(scheduler)) {
        warnings.add(&setup::SCHEDULER_CONFIG_LATE, format!(
            "timeline at {at}: this KubeSchedulerConfiguration has no effect; kube-scheduler reads it only at startup"
        ));
    }
    if later.fargate_profiles.iter().any(|fargate_profile| !policy.manifests.fargate_profiles.contains(fargate_profile))
    {
        warnings.add(&setup::FARGATE_PROFILE_LATE, format!(
            "timeline at {at}: Fargate profiles are there from the start of a run on: those of a ClusterConfig that is applied later take no pod; \
             state them from the start"
        ));
    }
    if !later.monitors.is_empty() {
        warnings.add(&setup::APPLIED_TOO_LATE, format!(
            "timeline at {at}: ServiceMonitors and PodMonitors applied later have no effect; only those present at the start set scrape intervals"
        ));
    }
}

/// Says what goes on as if an object were there that somebody deletes.
pub(super) fn warn_of_deleted(at: SimTime, kind: ObjectKind, which: &Which, warnings: &mut Caveats) {
    if kind == ObjectKind::Service {
        warnings.add(&setup::APPLIED_TOO_LATE, format!(
            "timeline at {at}: kube-scheduler spreads the pods of the Service {which} by default to the end of a run, also after it is deleted"
        ));
    }
}

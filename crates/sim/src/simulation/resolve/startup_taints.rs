//! Warnings about startup taints: times that are assumed, taints that stay, and autoscalers to which one is not declared.

use std::collections::BTreeMap;

use super::storage;
use crate::actors::Setup;
use crate::actors::startup_taints::{TaintRemoval, is_declared, is_known_key, removal};
use crate::domain::daemon_tolerations::daemon_tolerations;
use crate::domain::taints::first_untolerated;
use crate::domain::words::some_of;
use crate::domain::workload::ObjectName;
use crate::domain::{PodSpec, Symbol, Taint, TaintEffect};
use crate::manifests::Manifests;
use nodecast_cluster_autoscaler::templates::is_left_out;
use nodecast_settings::Caveats;
use nodecast_settings::lints::setup;

/// Warns of them.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    let mut owners: BTreeMap<Symbol, (TaintRemoval, Vec<String>)> = BTreeMap::new();
    for (owner, taint, is_startup) in taints(setup) {
        let Some(removal) = removal(setup, taint.key, is_startup) else { continue };
        owners.entry(taint.key).or_insert((removal, Vec::new())).1.push(owner);
    }
    for (key, (removal, owners)) in owners {
        let names: Vec<&str> = owners.iter().map(String::as_str).collect();
        let names = some_of(&names);
        match removal.daemon_set {
            None if removal.assumed => warnings.add(&setup::STARTUP_TAINT_ASSUMED, format!(
                "{names}: assuming the startup taint {key} is removed {} after a node is Ready; the DaemonSet that removes it is in no \
                 manifest. Waits may be too short or too long. Add the DaemonSet, or set `after` under `cluster.startup_taints`",
                removal.after
            )),
            Some(name) if !is_tolerated_by(setup, name, key) => warnings.add(&setup::STARTUP_TAINT_STAYS, format!(
                "{names}: the startup taint {key} stays on new nodes; the DaemonSet {name} that removes it is not in the manifests of this \
                 policy, or its pods do not tolerate the taint. Pods that do not tolerate the taint wait"
            )),
            _ => {}
        }
    }
    warn_of_undeclared(setup, warnings);
}

/// Every taint of a NodePool or node group and of all new nodes, with its owner for people and whether it is a startup taint because
/// something declares it one.
fn taints<'s>(setup: &'s Setup<'_>) -> impl Iterator<Item = (String, Taint, bool)> + 's {
    let pools = setup.node_pools.iter().flat_map(|pool| {
        let lasting = pool.taints.iter().map(|taint| (*taint, false));
        let startup = pool.startup_taints.iter().map(|taint| (*taint, true));
        lasting.chain(startup).map(|(taint, is_startup)| (format!("NodePool {}", pool.name), taint, is_startup))
    });
    let groups = setup.policy.manifests.node_groups.iter().flat_map(move |group| {
        let all = group.taints.iter().chain(&group.registers.taints);
        all.map(move |taint| (format!("node group {}", group.name), *taint, is_declared(setup, taint)))
    });
    let everywhere =
        setup.scenario.startup_taints.iter().filter_map(|stated| {
            Some(("all new nodes".to_owned(), Taint::new(stated.key, stated.on_every_node?), false))
        });
    pools.chain(groups).chain(everywhere)
}

fn parts<'s>(setup: &'s Setup<'_>) -> impl Iterator<Item = &'s Manifests> {
    storage::parts(setup.scenario, &setup.policy.manifests)
}

/// Whether the policy has the DaemonSet at some time, and its pods tolerate the taint.
fn is_tolerated_by(setup: &Setup<'_>, name: ObjectName, key: Symbol) -> bool {
    parts(setup).flat_map(|manifests| &manifests.daemon_sets).filter(|set| set.name == name).any(|set| {
        let mut tolerations = set.template.tolerations.clone();
        tolerations.extend(daemon_tolerations());
        let this_taint = taints(setup).filter(|(_, taint, _)| taint.key == key).map(|(_, taint, _)| taint);
        let taints: Vec<Taint> = this_taint.filter(|taint| taint.effect != TaintEffect::PreferNoSchedule).collect();
        first_untolerated(taints.iter(), &tolerations).is_none()
    })
}

/// Warns of startup taints that the autoscaler counts as lasting, where a pod does not tolerate them.
fn warn_of_undeclared(setup: &Setup<'_>, warnings: &mut Caveats) {
    let is_refused = |taint: &Taint| {
        taint.effect != TaintEffect::PreferNoSchedule
            && parts(setup).flat_map(templates).any(|spec| first_untolerated([taint], &spec.tolerations).is_some())
    };
    if let Some(flags) = &setup.policy.flags {
        for group in &setup.policy.manifests.node_groups {
            let all = group.taints.iter().chain(&group.registers.taints);
            for taint in all.filter(|taint| is_known_key(setup, taint.key) && !is_left_out(flags, taint)) {
                if is_refused(taint) {
                    warnings.add(&setup::STARTUP_TAINT_UNDECLARED, format!(
                        "node group {}: the startup taint {key} is not declared to Cluster Autoscaler. New nodes count as ready while they \
                         have the taint, so it may launch too many, and a group without nodes launches none for pods that do not tolerate \
                         the taint. Set the flag `startup-taint: [{key}]`",
                        group.name,
                        key = taint.key
                    ));
                }
            }
        }
    }
    for pool in &setup.node_pools {
        for taint in pool.taints.iter().filter(|taint| is_known_key(setup, taint.key)) {
            if is_refused(taint) {
                warnings.add(&setup::STARTUP_TAINT_UNDECLARED, format!(
                    "NodePool {}: the startup taint {} is among its `taints`. Karpenter counts it as lasting and launches no node for pods \
                     that do not tolerate it. Move it to `startupTaints`",
                    pool.name, taint.key
                ));
            }
        }
    }
}

/// Pods that no DaemonSet makes.
fn templates(manifests: &Manifests) -> impl Iterator<Item = &PodSpec> {
    let deployments = manifests.deployments.iter().map(|deployment| &*deployment.template);
    let sets = manifests.stateful_sets.iter().map(|set| &*set.template);
    let jobs = manifests.jobs.iter().map(|job| &*job.spec.template);
    let cron_jobs = manifests.cron_jobs.iter().map(|job| &*job.job.template);
    deployments.chain(sets).chain(jobs).chain(cron_jobs)
}

//! What is to be said of pods that ask for devices which no node has.

use std::collections::BTreeMap;

use super::sizes::{offers, workloads};
use crate::actors::Setup;
use crate::domain::ResourceName;
use crate::domain::words::some_of;
use crate::domain::workload::ObjectName;
use nodecast_cluster_autoscaler::aws::promised_devices;
use nodecast_settings::lints::setup;
use nodecast_settings::{Action, Caveats};

/// Warns of extended resources that pods request and that no node offers which NodePools and node groups admit: they wait for ever. Devices of
/// a dump's nodes and of what the timeline applies are not known here, so nothing is said of such a run.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    let applies_later = setup.scenario.timeline.iter().any(|step| matches!(step.action, Action::Apply(_)));
    if setup.initial.is_some() || applies_later {
        return;
    }
    let mut asking: BTreeMap<&str, (ResourceName, Vec<ObjectName>)> = BTreeMap::new();
    for (workload, requests) in workloads(setup) {
        for (resource, _) in requests.iter().filter(|&(resource, amount)| amount > 0 && is_extended(resource)) {
            asking.entry(resource.0.as_str()).or_insert_with(|| (resource, Vec::new())).1.push(workload);
        }
    }
    if asking.is_empty() {
        return;
    }
    let mut offered = offers(setup);
    // Where nothing is admitted at all, something else is amiss.
    if offered.is_empty() {
        return;
    }
    let groups = &setup.policy.manifests.node_groups;
    offered.extend(groups.iter().flat_map(|group| [&group.tags, &group.own_tags]).map(promised_devices));
    offered.extend(setup.node_overlays.iter().map(|node_overlay| node_overlay.capacity.clone()));
    for (name, (resource, workloads)) in asking {
        if !offered.iter().any(|item| item.get(resource) > 0) {
            let workloads: Vec<String> = workloads.iter().map(ToString::to_string).collect();
            warnings.add(&setup::DEVICE_MISSING, format!(
                "{}: no allowed instance type provides `{name}`, so these pods stay pending. Allow types that have it, or declare it with a \
                 NodeOverlay or a node group tag",
                some_of(&workloads)
            ));
        }
    }
}

/// Whether devices of a node are counted under this name: the resources of Kubernetes itself have names without a domain.
fn is_extended(resource: ResourceName) -> bool {
    resource.0.as_str().contains('/')
}

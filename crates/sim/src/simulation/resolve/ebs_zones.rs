//! What is to be said of pods that ask for the zone by the label of the driver of EBS volumes, where no new node has it.

use std::collections::BTreeSet;

use super::storage;
use super::zone_ids::templates;
use crate::actors::{EBS_DAEMON_SET, Setup};
use crate::domain::requirements::Operator;
use crate::domain::topology::WhenUnsatisfiable;
use crate::domain::words::some_of;
use crate::domain::{PodSpec, well_known};
use nodecast_settings::Caveats;
use nodecast_settings::lints::setup;

/// Warns of workloads whose pods go only where nodes have that label, while nothing of the start gives it to new ones. Karpenter takes it for
/// the label of the zone, and launches nodes that such pods do not fit.
///
/// Source: Karpenter core v1.13 `pkg/apis/v1/labels.go`, `NormalizedLabels`; aws-ebs-csi-driver v1.40 `pkg/driver/node.go`, `NodeGetInfo`.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    let policy = setup.policy;
    let auto_mode = policy.auto_mode.is_some();
    let runs = policy.manifests.daemon_sets.iter().any(|daemon_set| daemon_set.name.name.as_str() == EBS_DAEMON_SET);
    if runs && !auto_mode {
        return;
    }
    let objects = storage::parts(setup.scenario, &policy.manifests);
    let asking = objects.flat_map(templates).filter(|(_, spec)| asks(spec)).map(|(name, _)| name.to_string());
    let asking: Vec<String> = asking.collect::<BTreeSet<_>>().into_iter().collect();
    if asking.is_empty() {
        return;
    }
    let who = if auto_mode {
        "nodes of EKS Auto Mode do not have".to_owned()
    } else {
        format!("is set by the DaemonSet `{EBS_DAEMON_SET}`, which is not in the initial manifests: add it")
    };
    warnings.add(&setup::EBS_ZONE, format!(
        "{}: these pods ask for nodes by the label `{}`, which {who}; new nodes do not fit them, and they wait; or ask by `{}`",
        some_of(&asking),
        well_known::EBS_ZONE,
        well_known::ZONE
    ));
}

/// Whether the pod is refused by every node without the label.
fn asks(spec: &PodSpec) -> bool {
    let key = well_known::EBS_ZONE;
    let terms = &spec.node_affinity.required;
    let needs = |operator| matches!(operator, Operator::In | Operator::Exists);
    spec.node_selector.get(key).is_some()
        || (!terms.is_empty()
            && terms.iter().all(|term| {
                term.expressions.iter().any(|expression| expression.key == key && needs(expression.operator))
            }))
        || spec.topology_spread.iter().any(|topology_spread| {
            topology_spread.topology_key == key
                && topology_spread.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule
        })
}

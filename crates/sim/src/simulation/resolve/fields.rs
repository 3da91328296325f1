//! What is to be said of fields of pods that the stated release of Kubernetes does not know, or not unless a feature gate is opened.

use super::storage::pods;
use crate::actors::Setup;
use crate::domain::topology::{NodeInclusionPolicy, TopologySpread};
use crate::domain::words::counted;
use crate::domain::{KubernetesBehaviour, PodSpec};
use nodecast_settings::Caveats;
use nodecast_settings::lints::setup;

/// A field, the release since which the API server keeps it by itself, and what it does before.
struct Since {
    since: KubernetesBehaviour,
    field: &'static str,
    otherwise: &'static str,
    states: fn(&PodSpec) -> bool,
}

const FIELDS: [Since; 6] = [
    Since {
        since: KubernetesBehaviour::PodLevelResources,
        field: "`resources` for the whole pod",
        otherwise: "the API server drops them, and the requests and limits of the containers count",
        states: |spec| spec.pod_requests.is_some() || spec.pod_limits.is_some(),
    },
    Since {
        since: KubernetesBehaviour::SidecarContainers,
        field: "init containers with `restartPolicy: Always`",
        otherwise: "they are ordinary ones, which have to end before the pod starts",
        states: |spec| spec.sidecars().next().is_some(),
    },
    Since {
        since: KubernetesBehaviour::SchedulingGates,
        field: "`schedulingGates`",
        otherwise: "the API server drops them, and the pods wait for nobody",
        states: |spec| !spec.scheduling_gates.is_empty(),
    },
    Since {
        since: KubernetesBehaviour::SpreadMatchLabelKeys,
        field: "`matchLabelKeys` of spread constraints",
        otherwise: "the API server drops them, and pods of former revisions count too",
        states: |spec| spec.topology_spread.iter().any(|item| !item.match_label_keys.is_empty()),
    },
    Since {
        since: KubernetesBehaviour::SpreadMinDomains,
        field: "`minDomains`",
        otherwise: "the API server drops them, and the domains that there are do",
        states: |spec| spec.topology_spread.iter().any(|item| item.min_domains.is_some()),
    },
    Since {
        since: KubernetesBehaviour::SpreadNodeInclusionPolicy,
        field: "`nodeAffinityPolicy` or `nodeTaintsPolicy` of spread constraints",
        otherwise: "the API server drops them, and nodes count that the pod selects, whatever their taints",
        states: |spec| spec.topology_spread.iter().any(counts_other_nodes),
    },
];

/// Whether other nodes count for the constraint than do where it does not say.
fn counts_other_nodes(spread: &TopologySpread) -> bool {
    use NodeInclusionPolicy::{Honor, Ignore};
    (spread.node_affinity_policy, spread.node_taints_policy) != (Honor, Ignore)
}

/// Warns of such fields: they count all the same.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    let release = setup.policy.versions.kubernetes;
    let pods = pods(setup.scenario, &setup.policy.manifests);
    for field in FIELDS.iter().filter(|field| !release.has(field.since)) {
        let stating = pods.iter().filter(|(_, spec)| (field.states)(spec)).count();
        if stating > 0 {
            warnings.add(&setup::POD_FIELD_OF_LATER_RELEASE, format!(
                "{} {}. The simulation applies them as if the feature gate were on, but in Kubernetes {release}, with the gate off, {}. Match \
                 your cluster, or set `versions: {{ kubernetes: \"1.{}\" }}`",
                counted(stating as u64, "pod template states", "pod templates state"),
                field.field,
                field.otherwise,
                field.since.since()
            ));
        }
    }
}

//! Kubelet settings in `userData`, which nodes have and Karpenter does not read.

use super::{Measured, ProviderSettings, instance_types, kubelet_of, measured_node};
use nodecast_model::catalog::Region;
use nodecast_model::domain::node_pool::{AmiFamily, KubeletConfig};
use nodecast_model::domain::quantity::format_bytes;
use nodecast_model::domain::{NodeClass, NodePool, Requirements, Resources};

/// The kubelet settings of the nodes of `pool`: what Karpenter passes on, over what `userData` says. Karpenter always passes the number
/// of pods on, but for images of the family `Custom`.
///
/// Source: AWS provider v1.13 `pkg/providers/amifamily/bootstrap/bottlerocket.go` and `nodeadm.go`, `Script`;
/// `pkg/providers/amifamily/resolver.go`, `resolveLaunchTemplates`.
/// Deviation: if the kubelet settings of the node class set a map, that map of `userData` is ignored, also where
/// nodeadm merges both.
pub fn kubelet_of_nodes(pool: &NodePool, class: &NodeClass) -> KubeletConfig {
    let (user, mut kubelet) = (&class.user_data, kubelet_of(pool, class).clone());
    if class.ami_family == AmiFamily::Custom {
        kubelet.max_pods = kubelet.max_pods.or(user.max_pods);
    }
    kubelet.pods_per_core = kubelet.pods_per_core.or(user.pods_per_core);
    if kubelet.kube_reserved.is_empty() {
        kubelet.kube_reserved = user.kube_reserved.clone();
    }
    if kubelet.system_reserved.is_empty() {
        kubelet.system_reserved = user.system_reserved.clone();
    }
    if kubelet.eviction_hard.is_empty() {
        kubelet.eviction_hard.clone_from(&user.eviction_hard);
    }
    kubelet
}

/// A warning where `userData` changes what the nodes of `pool` offer, with both figures for the first type that the pool admits.
pub fn user_data_warning(
    region: &Region,
    class: &NodeClass,
    pool: &NodePool,
    settings: ProviderSettings,
) -> Option<String> {
    let (kubelet, passed) = (kubelet_of_nodes(pool, class), kubelet_of(pool, class));
    if kubelet == *passed {
        return None;
    }
    let mut wanted = Requirements::from_labels(&pool.labels);
    pool.requirements.iter().for_each(|requirement| wanted.add(requirement.clone()));
    let types = instance_types(region, class, pool, settings);
    let example = types.into_iter().find(|entry| entry.requirements.intersects(&wanted).is_ok())?;
    let facts = &region.instance_type(example.name)?.facts;
    let offer = measured_node(facts, class, &kubelet, (Measured::default(), settings.reserved_enis)).allocatable;
    let figures = |offer: &Resources| {
        let memory = format_bytes(offer.memory_bytes() >> 20 << 20);
        format!("cpu {}m, memory {memory}, {} pods", offer.cpu_milli(), offer.pods())
    };
    Some(format!(
        "EC2NodeClass {}: its `userData` sets kubelet settings, which Karpenter does not read. For NodePool {}, a node of {} offers {}; \
         Karpenter expects {}. Where a node offers less, Karpenter launches nodes that do not take the pods, so cost is too high and pods \
         wait. State the settings under `spec.kubelet`",
        class.name,
        pool.name,
        example.name,
        figures(&offer),
        figures(&example.allocatable)
    ))
}

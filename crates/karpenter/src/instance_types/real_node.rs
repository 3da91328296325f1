//! What a real node reports, as opposed to what Karpenter expects: kube-scheduler places pods by this.

use super::ProviderSettings;
use super::capacity::{self, MIB};
use nodecast_model::catalog::InstanceFacts;
use nodecast_model::domain::node_pool::{BlockDevice, KubeletConfig};
use nodecast_model::domain::{KarpenterVersion, NodeClass, NodeGroup, ResourceName, Resources};

/// What the kubelet of a node reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RealNode {
    /// `status.capacity`.
    pub capacity: Resources,
    /// `status.allocatable`.
    pub allocatable: Resources,
}

/// What is known of the real machines of a type, where it differs from what is assumed of all types.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Measured {
    /// What the kubelet reports of the memory that EC2's API states: a share of it in millionths, and bytes more.
    pub memory: Option<(u32, i64)>,
    /// Pods that the kubelet accepts.
    pub pods: Option<u32>,
}

impl Measured {
    fn memory_of(&self, facts: &InstanceFacts) -> Option<i64> {
        let (millionths, more) = self.memory?;
        let share = i128::from(facts.memory_mib) * i128::from(MIB) * i128::from(millionths) / 1_000_000;
        Some(i64::try_from(share).unwrap_or(i64::MAX).saturating_add(more).max(0))
    }
}

/// What the kubelet of a node reports that was started from an EKS image with these kubelet settings, whatever the
/// release of Karpenter: the image reserves for the kubelet by the same formula as Karpenter expects, nothing for the
/// system, and evicts below 100 MiB of memory and a tenth of the disk. Memory is what the kernel leaves of it, which is
/// more than Karpenter expects. Device plugins are assumed to be installed.
///
/// Source: amazon-eks-ami, `nodeadm` and the AL2 `bootstrap.sh`, as of 2025.
pub fn real_node(facts: &InstanceFacts, class: &NodeClass, kubelet: &KubeletConfig) -> RealNode {
    measured_node(facts, class, kubelet, (Measured::default(), 0))
}

/// The same of a type of whose machines more is known, and of a kubelet to which Karpenter passes the number of pods that is left
/// by reserved network interfaces.
///
/// Source: AWS provider v1.13 `pkg/providers/amifamily/resolver.go`, `Resolve`: a launch template for each number of pods.
pub fn measured_node(
    facts: &InstanceFacts,
    class: &NodeClass,
    kubelet: &KubeletConfig,
    (measured, reserved_enis): (Measured, u32),
) -> RealNode {
    let settings = ProviderSettings { reserved_enis, ..ProviderSettings::for_version(KarpenterVersion::V1_13) };
    let mut capacity = capacity::node(facts, class, kubelet, settings).capacity;
    let assumed = || (i64::from(facts.memory_mib) - kernel_share_mib(facts)).max(0) * MIB;
    capacity.set(ResourceName::MEMORY, measured.memory_of(facts).unwrap_or_else(assumed));
    if let Some(pods) = measured.pods {
        capacity.set(ResourceName::PODS, i64::from(pods));
    }
    let mut overhead = capacity::kube_reserved(facts, class.ami_family, kubelet, (capacity.pods(), 0));
    overhead.add(&kubelet.system_reserved);
    overhead.add(&capacity::kubelet_eviction_threshold(&capacity, kubelet));
    let allocatable = capacity::less(&capacity, &overhead);
    let allocatable = allocatable.iter().map(|(name, amount)| (name, amount.max(0))).collect();
    RealNode { capacity, allocatable }
}

/// The same of a node of a group, whose volume for pods is as large as the group says and whose kubelet has the group's settings, and takes so many
/// pods as EKS says where the group does not.
pub fn node_of_group(
    facts: &InstanceFacts,
    group: &NodeGroup,
    measured: Measured,
    pods_by_eks: Option<i64>,
) -> RealNode {
    let for_pods = BlockDevice { device: String::new(), size_bytes: group.volume_bytes, root: true, disk: group.disk };
    let class =
        NodeClass { ami_family: group.ami_family, block_devices: vec![for_pods], ..NodeClass::named(group.name) };
    let kubelet = KubeletConfig { max_pods: group.kubelet.max_pods.or(pods_by_eks), ..group.kubelet.clone() };
    measured_node(facts, &class, &kubelet, (measured, 0))
}

/// MiB of the reported memory that firmware, hypervisor and kernel keep, so that `MemTotal` lacks them: 75 MiB, another
/// 64 MiB from 4 GiB on, and 3.3 % (1.7 % on Xen and on bare metal).
///
/// Assumed: fitted by eye to the differences that Karpenter's provider recorded for some 600 types in 2023
/// (`pkg/providers/instancetype/zz_generated.memory_overhead.go`); most are met within a fifth, single ones differ more.
fn kernel_share_mib(facts: &InstanceFacts) -> i64 {
    let mib = i64::from(facts.memory_mib);
    let virtual_by_nitro = facts.hypervisor.is_some_and(|hypervisor| hypervisor.as_str() == "nitro");
    let per_mille = if virtual_by_nitro { 33 } else { 17 };
    let bounce_buffers = if mib >= 4_096 { 64 } else { 0 };
    75 + bounce_buffers + mib * per_mille / 1_000
}

#[cfg(test)]
mod tests {
    use super::{Measured, kernel_share_mib, measured_node, real_node};
    use crate::testing::facts;
    use nodecast_model::domain::node_pool::{AmiFamily, KubeletConfig};
    use nodecast_model::domain::{NodeClass, Resources};

    #[test]
    fn four_cpu_node_has_3920m_allocatable() {
        let class = NodeClass { ami_family: AmiFamily::AL2, ..NodeClass::named("default") };
        let node = real_node(&facts("c5.xlarge"), &class, &class.kubelet);
        assert_eq!(node.allocatable.cpu_milli(), 3_920);
        assert_eq!(node.allocatable.pods(), 58);
        let kept = node.capacity.memory_bytes() - node.allocatable.memory_bytes();
        assert_eq!(kept >> 20, 255 + 11 * 58 + 100);
    }

    #[test]
    fn max_pods_of_the_user_reach_the_node() {
        let class = NodeClass::named("default");
        let kubelet = KubeletConfig {
            max_pods: Some(250),
            system_reserved: Resources::cpu_memory(150, 0),
            ..KubeletConfig::default()
        };
        let node = real_node(&facts("c5.xlarge"), &class, &kubelet);
        assert_eq!((node.allocatable.pods(), node.allocatable.cpu_milli()), (250, 3_770));
    }

    #[test]
    fn measured_overhead_replaces_assumed_overhead() {
        let (class, facts) = (NodeClass::named("default"), facts("c5.xlarge"));
        let of = |measured| measured_node(&facts, &class, &class.kubelet, (measured, 0));
        let assumed = real_node(&facts, &class, &class.kubelet);
        assert_eq!(of(Measured::default()), assumed);
        let node = of(Measured { memory: Some((950_000, -(100 << 20))), pods: None });
        assert_eq!(
            node.capacity.memory_bytes(),
            (8_192_i64 << 20) / 100 * 95 + ((8_192_i64 << 20) % 100) * 95 / 100 - (100 << 20)
        );
        let lost = assumed.capacity.memory_bytes() - node.capacity.memory_bytes();
        assert_eq!(assumed.allocatable.memory_bytes() - node.allocatable.memory_bytes(), lost);
        assert_eq!(node.allocatable.pods(), assumed.allocatable.pods());
        let few = of(Measured { memory: None, pods: Some(20) });
        assert_eq!(few.allocatable.pods(), 20);
        // The images size the kubelet's reserve by the interfaces of the type.
        assert_eq!(few.allocatable.memory_bytes(), assumed.allocatable.memory_bytes());
        assert_eq!(of(Measured { memory: Some((0, -1)), pods: None }).capacity.memory_bytes(), 0);
    }

    #[test]
    fn the_kernels_share_is_near_what_was_recorded() {
        for (name, bytes) in [
            ("t3.nano", 92_966_912),
            ("t3.medium", 264_945_664),
            ("m6i.large", 424_321_024),
            ("c6i.2xlarge", 704_696_320),
            ("r6i.xlarge", 1_261_588_480),
            ("m5n.large", 497_725_440),
            ("c6g.large", 293_154_816),
            ("m4.large", 278_482_944),
            ("t2.medium", 205_082_624),
            ("m6i.metal", 8_923_189_248),
        ] {
            let recorded: i64 = bytes >> 20;
            let ours = kernel_share_mib(&facts(name));
            assert!((ours - recorded).abs() * 5 <= recorded, "{name}: {ours} MiB, recorded {recorded} MiB");
        }
    }
}

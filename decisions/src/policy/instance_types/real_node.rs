//! What a real node reports, as opposed to what Karpenter expects: kube-scheduler places pods by this.

use super::ProviderSettings;
use super::capacity::{self, MIB};
use crate::catalog::InstanceFacts;
use crate::domain::node_pool::KubeletConfig;
use crate::domain::{KarpenterVersion, NodeClass, ResourceName, Resources};

/// What the kubelet of a node reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RealNode {
    /// `status.capacity`.
    pub capacity: Resources,
    /// `status.allocatable`.
    pub allocatable: Resources,
}

/// What the kubelet of a node reports that was started from an EKS image with these kubelet settings, whatever the
/// release of Karpenter: the image reserves for the kubelet by the same formula as Karpenter expects, nothing for the
/// system, and evicts below 100 MiB of memory and a tenth of the disk. Memory is what the kernel leaves of it, which is
/// more than Karpenter expects. Device plugins are assumed to be installed.
///
/// Source: amazon-eks-ami, `nodeadm` and the AL2 `bootstrap.sh`, as of 2025.
pub fn real_node(facts: &InstanceFacts, class: &NodeClass, kubelet: &KubeletConfig) -> RealNode {
    let settings = ProviderSettings::of(KarpenterVersion::V1_13);
    let mut capacity = capacity::node(facts, class, kubelet, settings).capacity;
    let memory = (i64::from(facts.memory_mib) - kernel_share_mib(facts)).max(0) * MIB;
    capacity.set(ResourceName::MEMORY, memory);
    let mut overhead = capacity::kube_reserved(facts, class.ami_family, kubelet, (capacity.pods(), 0));
    overhead.add(&kubelet.system_reserved);
    overhead.add(&capacity::kubelet_eviction_threshold(&capacity, kubelet));
    let allocatable = capacity::less(&capacity, &overhead);
    let allocatable = allocatable.iter().map(|(name, amount)| (name, amount.max(0))).collect();
    RealNode { capacity, allocatable }
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
    use super::{kernel_share_mib, real_node};
    use crate::catalog::testing::facts;
    use crate::domain::node_pool::{AmiFamily, KubeletConfig};
    use crate::domain::{NodeClass, Resources};

    #[test]
    fn a_node_of_four_cpus_leaves_3920m_to_pods() {
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

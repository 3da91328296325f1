//! What new nodes offer of which some are there already: what those show, but for what is stated otherwise.

use super::real_node::{Measured, RealNode};
use nodecast_model::domain::node_pool::KubeletConfig;
use nodecast_model::domain::{ResourceName, Resources};

const GIB: i64 = 1 << 30;

/// What is stated of the nodes of a group or NodePool, which an example does not overrule.
#[derive(Clone, Copy, Debug)]
pub struct NodeSettings<'k> {
    /// Kubelet settings.
    pub kubelet: &'k KubeletConfig,
    /// What the scenario says of the machines of the type.
    pub measured: Measured,
    /// Whether devices that the example lacks are taken to come all the same: Karpenter's nodes count as started only with those that their
    /// pods request.
    pub keeps_devices: bool,
}

impl NodeSettings<'_> {
    /// Whether it says what is kept from pods.
    fn reserves(&self) -> bool {
        let kubelet = self.kubelet;
        !kubelet.kube_reserved.is_empty() || !kubelet.system_reserved.is_empty() || !kubelet.eviction_hard.is_empty()
    }

    fn pods(&self) -> bool {
        self.kubelet.max_pods.or(self.kubelet.pods_per_core).is_some() || self.measured.pods.is_some()
    }
}

impl RealNode {
    /// This node, worked out from its type and from what is stated of it, as it is where `example` shows one of the same group or NodePool and
    /// of the same type: nodes of one launch template are alike, and the same device plugins run on them. What `stated` says holds; the disk is
    /// the example's where that is as large as the one that is ordered.
    ///
    /// Source: Cluster Autoscaler 1.36 `processors/nodeinfosprovider/mixed_nodeinfos_processor.go`, `Process`, which likewise takes a node that is
    /// there for what those to come of its group will be.
    #[must_use]
    pub fn like(&self, example: &Self, stated: NodeSettings<'_>) -> Self {
        let mut node = example.devices();
        if stated.keeps_devices {
            let devices = self.devices();
            let lacking = devices.capacity.iter().filter(|&(name, _)| example.amounts(name).is_none());
            lacking.for_each(|(name, _)| node.set(name, devices.amounts(name)));
        }
        let (disk, reserves) = (ResourceName::EPHEMERAL_STORAGE, stated.reserves());
        let ordered = self.capacity.get(disk) - example.capacity.get(disk);
        let other_disk = !(0..GIB).contains(&ordered);
        let memory = stated.measured.memory.is_some();
        for (name, item, own_reserve) in [
            (ResourceName::CPU, false, reserves),
            (ResourceName::MEMORY, memory, reserves),
            (ResourceName::PODS, stated.pods(), stated.pods()),
            (disk, other_disk, other_disk || reserves),
        ] {
            node.set(name, self.amount(example, name, item, own_reserve));
        }
        node
    }

    /// What it has and offers beside CPU, memory, disk and room for pods.
    fn devices(&self) -> Self {
        const OTHERS: [ResourceName; 4] =
            [ResourceName::CPU, ResourceName::MEMORY, ResourceName::PODS, ResourceName::EPHEMERAL_STORAGE];
        let devices = |all: &Resources| all.iter().filter(|(name, _)| !OTHERS.contains(name)).collect();
        Self { capacity: devices(&self.capacity), allocatable: devices(&self.allocatable) }
    }

    /// Capacity and allocatable of a resource, if both are known.
    fn amounts(&self, name: ResourceName) -> Option<(i64, i64)> {
        self.capacity.find(name).zip(self.allocatable.find(name))
    }

    fn set(&mut self, name: ResourceName, amount: Option<(i64, i64)>) {
        if let Some((capacity, allocatable)) = amount {
            self.capacity.set(name, capacity);
            self.allocatable.set(name, allocatable.max(0));
        }
    }

    /// Capacity and allocatable of a resource: of either whether it is this node's own, else the example's.
    fn amount(&self, example: &Self, name: ResourceName, is_own: bool, own_reserve: bool) -> Option<(i64, i64)> {
        let ours = self.amounts(name)?;
        let theirs = example.amounts(name).unwrap_or(ours);
        let capacity = if is_own { ours.0 } else { theirs.0 };
        let (whole, left) = if own_reserve { ours } else { theirs };
        Some((capacity, capacity - (whole - left)))
    }
}

#[cfg(test)]
mod tests {
    use super::{NodeSettings, RealNode};
    use crate::instance_types::Measured;
    use nodecast_model::domain::node_pool::KubeletConfig;
    use nodecast_model::domain::{ResourceName, Resources, Symbol};

    const MIB: i64 = 1 << 20;
    const GIB: i64 = 1 << 30;

    fn fuse() -> ResourceName {
        ResourceName(Symbol::new("smarter-devices/fuse"))
    }

    /// CPU, MiB, GiB of disk and pods of capacity, and what of the first three is kept.
    fn node((cpu, memory, disk, pods): (i64, i64, i64, i64), kept: (i64, i64, i64)) -> RealNode {
        let of = |cpu, memory, disk| {
            Resources::cpu_memory(cpu, memory * MIB)
                .with(ResourceName::EPHEMERAL_STORAGE, disk)
                .with(ResourceName::PODS, pods)
        };
        RealNode { capacity: of(cpu, memory, disk), allocatable: of(cpu - kept.0, memory - kept.1, disk - kept.2) }
    }

    fn with(mut node: RealNode, name: ResourceName, amount: i64) -> RealNode {
        node.set(name, Some((amount, amount)));
        node
    }

    fn ours() -> RealNode {
        with(node((4_000, 15_800, 20 * GIB, 58), (80, 1_000, 3 * GIB)), ResourceName::NVIDIA_GPU, 1)
    }

    fn like(example: &RealNode, kubelet: &KubeletConfig, measured: Measured, keeps_devices: bool) -> RealNode {
        ours().like(example, NodeSettings { kubelet, measured, keeps_devices })
    }

    #[test]
    fn type_follows_existing_example_node() {
        let example = node((4_000, 15_600, 20 * GIB - 12 * MIB, 29), (1_100, 3_000, 4 * GIB));
        let example = with(with(example, fuse(), 20), ResourceName::NVIDIA_GPU, 4);
        let kubelet = KubeletConfig::default();
        assert_eq!(like(&example, &kubelet, Measured::default(), false), example);
        // A device that it has not: the plugin does not run there.
        let bare = node((4_000, 15_600, 20 * GIB, 29), (1_100, 3_000, 4 * GIB));
        assert_eq!(like(&bare, &kubelet, Measured::default(), false), bare);
        let kept = like(&bare, &kubelet, Measured::default(), true);
        assert_eq!(kept, with(bare, ResourceName::NVIDIA_GPU, 1));
    }

    #[test]
    fn what_is_stated_holds() {
        let example = node((4_000, 15_600, 100 * GIB - 12 * MIB, 29), (1_100, 3_000, 11 * GIB));
        let default = KubeletConfig::default();
        let disk = |real_node: &RealNode| real_node.allocatable.get(ResourceName::EPHEMERAL_STORAGE);
        assert_eq!(disk(&like(&example, &default, Measured::default(), false)), 17 * GIB, "another one is ordered");
        let kubelet = KubeletConfig {
            max_pods: Some(58),
            kube_reserved: Resources::cpu_memory(80, 1_000 * MIB),
            ..KubeletConfig::default()
        };
        let stated = like(&example, &kubelet, Measured::default(), false);
        assert_eq!((stated.allocatable.cpu_milli(), stated.allocatable.pods()), (3_920, 58));
        assert_eq!(stated.capacity.memory_bytes(), 15_600 * MIB);
        assert_eq!(stated.allocatable.memory_bytes(), 14_600 * MIB);
        let measured = Measured { memory: Some((1_000_000, 0)), pods: Some(40) };
        let stated = like(&example, &default, measured, false);
        assert_eq!(stated.allocatable.memory_bytes(), 12_800 * MIB);
        assert_eq!(stated.allocatable.pods(), 58, "what the type was worked out with");
    }
}

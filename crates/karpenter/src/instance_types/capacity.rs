//! Capacity, overhead and allocatable as Karpenter models them.

use super::ProviderSettings;
use super::block_devices::ephemeral_storage;
use crate::release::Behaviour;
use nodecast_model::catalog::{AcceleratorKind, InstanceFacts};
use nodecast_model::domain::node_pool::{AmiFamily, KubeletConfig};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{NodeClass, Quantity, ResourceName, Resources, Symbol};

pub(super) const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;

/// Pods per node where the network does not limit them.
const PODS_WITHOUT_ENI_LIMIT: i64 = 110;
/// Pods that a node of EKS Auto Mode takes at most, whatever its network allows.
///
/// Source: EKS user guide, `automode/create-node-class` (2026).
const PODS_IN_AUTO_MODE: i64 = 110;
/// Memory that the kubelet keeps free by evicting pods.
const EVICTION_MEMORY: i64 = 100 * MIB;

/// What a node has and what it offers to pods.
pub(super) struct Node {
    pub(super) capacity: Resources,
    pub(super) allocatable: Resources,
}

/// The node that Karpenter expects of a type.
///
/// Source: AWS provider v1.13 `pkg/providers/instancetype/types.go`, `NewInstanceType`; v0.16.0
/// `pkg/cloudprovider/aws/instancetype.go`; v0.22.1 `pkg/cloudprovider/instancetype.go`.
/// Deviation: up to v0.27.2 the interfaces of all network cards count. Here only those of the default card count.
pub(super) fn node(
    facts: &InstanceFacts,
    class: &NodeClass,
    kubelet: &KubeletConfig,
    settings: ProviderSettings,
) -> Node {
    let behaviour = Behaviour::for_release(settings.version);
    let pods = pods(facts, class.ami_family, kubelet, settings.reserved_enis);
    let pods = if class.auto_mode { pods.min(PODS_IN_AUTO_MODE) } else { pods };
    let hypervisor_share = hypervisor_share(facts, settings);
    // v0.16 and v0.18 call what the API reports capacity and the hypervisor's share overhead.
    let counts_as_overhead = behaviour.hypervisor_is_overhead;
    let memory = i64::from(facts.memory_mib) * MIB - if counts_as_overhead { 0 } else { hypervisor_share };
    let mut capacity = Resources::new()
        .with(ResourceName::CPU, i64::from(facts.vcpus) * 1_000)
        .with(ResourceName::MEMORY, memory)
        .with(ResourceName::EPHEMERAL_STORAGE, ephemeral_storage(facts, class, behaviour))
        .with(ResourceName::PODS, pods);
    for (name, amount) in devices(facts, class.ami_family, behaviour) {
        if amount > 0 {
            capacity.set(name, amount);
        }
    }
    let without_address = if behaviour.reserves_for_all_enis { 0 } else { settings.reserved_enis };
    let mut overhead = kube_reserved(facts, class.ami_family, kubelet, (pods, without_address));
    overhead.add(&system_reserved(kubelet, behaviour.modern_overhead));
    overhead.add(&eviction_threshold(&capacity, class.ami_family, kubelet, behaviour));
    if counts_as_overhead {
        overhead.add(&Resources::cpu_memory(0, hypervisor_share));
    }
    let allocatable = less(&capacity, &overhead);
    Node { capacity, allocatable }
}

/// `capacity` less `overhead`, of the resources that the capacity names.
///
/// Source: Karpenter core v1.13 `pkg/utils/resources/resources.go`, `Subtract`.
pub(super) fn less(capacity: &Resources, overhead: &Resources) -> Resources {
    capacity.iter().map(|(name, amount)| (name, amount.saturating_sub(overhead.get(name)))).collect()
}

/// Memory that the hypervisor and the kernel are taken to keep: a percentage rounded up to whole MiB, and on Graviton
/// another 64 MiB (from v0.28). The oldest releases multiply with the rest of the percentage and truncate, which comes to
/// the same.
fn hypervisor_share(facts: &InstanceFacts, settings: ProviderSettings) -> i64 {
    let graviton = Behaviour::for_release(settings.version).arm_loses_memory && facts.arch == well_known::ARM64;
    let contiguous = if graviton { 64 } else { 0 };
    let mib = i64::from(facts.memory_mib) - contiguous;
    let share = (mib * i64::from(settings.vm_memory_overhead_millionths) + 999_999) / 1_000_000;
    (contiguous + share) * MIB
}

/// How many pods the kubelet accepts.
///
/// Source: AWS provider v1.13 `pkg/providers/instancetype/types.go`, `pods`.
pub(super) fn pods(facts: &InstanceFacts, family: AmiFamily, kubelet: &KubeletConfig, reserved_enis: u32) -> i64 {
    let count = match kubelet.max_pods {
        Some(max_pods) => max_pods,
        None if is_windows(family) => PODS_WITHOUT_ENI_LIMIT,
        None => eni_limited_pods(facts, reserved_enis),
    };
    match kubelet.pods_per_core {
        Some(per_core) if per_core > 0 && family != AmiFamily::Bottlerocket => {
            count.min(per_core.saturating_mul(i64::from(facts.vcpus)))
        }
        _ => count,
    }
}

/// Pods that can have an address of their own, and two that use the node's. Prefix delegation is not modelled: users set
/// `maxPods`.
///
/// Source: AWS provider v1.13 `pkg/providers/instancetype/types.go`, `ENILimitedPods`.
fn eni_limited_pods(facts: &InstanceFacts, reserved_enis: u32) -> i64 {
    match i64::from(facts.enis.saturating_sub(reserved_enis)) {
        0 => 0,
        enis => enis * (i64::from(facts.ipv4_per_eni) - 1) + 2,
    }
}

const fn is_windows(family: AmiFamily) -> bool {
    matches!(family, AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025)
}

/// Extended resources.
fn devices(facts: &InstanceFacts, family: AmiFamily, behaviour: &Behaviour) -> Vec<(ResourceName, i64)> {
    let mut devices = Vec::new();
    if let Some(gpu) = facts.gpu {
        let name = match gpu.manufacturer.as_str() {
            "nvidia" => Some(well_known::NVIDIA_GPU),
            "amd" => Some(well_known::AMD_GPU),
            "habana" if behaviour.knows_gaudi => Some(well_known::HABANA_GAUDI),
            _ => None,
        };
        devices.extend(name.map(|name| (name, gpu.count)));
    }
    let modern = behaviour.knows_modern_devices;
    if let Some(neuron) = facts.accelerator.filter(|device| device.kind == AcceleratorKind::Neuron) {
        devices.push((well_known::AWS_NEURON, neuron.count));
        if modern {
            devices.push((well_known::AWS_NEURON_CORE, neuron.cores));
        }
    }
    if modern {
        devices.push((well_known::AWS_POD_ENI, facts.branch_enis));
        devices.push((well_known::AWS_EFA, facts.efas));
    }
    if is_windows(family) {
        devices.push((Symbol::new("vpc.amazonaws.com/PrivateIPv4Address"), facts.ipv4_per_eni.saturating_sub(1)));
    }
    devices.into_iter().map(|(name, count)| (ResourceName(name), i64::from(count))).collect()
}

/// What the kubelet and the container runtime keep: a falling share of each CPU, 255 MiB and 11 MiB for each pod that
/// could be there, 1 GiB of disk. Entries of the user replace single resources.
///
/// Source: AWS provider v1.13 `pkg/providers/instancetype/types.go`, `kubeReservedResources`.
///
/// `pods` is how many there could be, and the number of interfaces that are taken to give none an address.
pub(super) fn kube_reserved(
    facts: &InstanceFacts,
    family: AmiFamily,
    kubelet: &KubeletConfig,
    (pods, without_address): (i64, u32),
) -> Resources {
    // The EKS images size the reserve by the number of interfaces, whatever maxPods says.
    let pods = match family {
        AmiFamily::Bottlerocket | AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => pods,
        _ => eni_limited_pods(facts, without_address),
    };
    let mut reserved = Resources::cpu_memory(kube_reserved_cpu(i64::from(facts.vcpus)), (11 * pods + 255) * MIB)
        .with(ResourceName::EPHEMERAL_STORAGE, GIB);
    for (name, amount) in kubelet.kube_reserved.iter() {
        reserved.set(name, amount);
    }
    reserved
}

/// 6 % of the first CPU, 1 % of the second, 0.5 % of the third and fourth, 0.25 % of the others, each part truncated to
/// thousandths.
fn kube_reserved_cpu(vcpus: i64) -> i64 {
    let shares = [(0, 1, 600), (1, 2, 100), (2, 4, 50), (4, i64::MAX, 25)];
    shares.iter().map(|&(from, to, per_myriad)| (vcpus.min(to) - from).max(0) * per_myriad / 10).sum()
}

/// What is set aside for the system: from v0.27.1 only what the user says, before that 100m, 100 MiB and 1 GiB of disk.
fn system_reserved(kubelet: &KubeletConfig, modern: bool) -> Resources {
    let mut reserved = if modern {
        Resources::new()
    } else {
        Resources::cpu_memory(100, 100 * MIB).with(ResourceName::EPHEMERAL_STORAGE, GIB)
    };
    for (name, amount) in kubelet.system_reserved.iter() {
        reserved.set(name, amount);
    }
    reserved
}

/// What the kubelet keeps free by evicting pods: 100 MiB of memory and (from v0.27.1) a tenth of the disk, unless
/// `evictionHard` says otherwise. From v0.22 to v1.8 the larger of `evictionHard` and `evictionSoft` counts; earlier releases know
/// neither.
///
/// Source: AWS provider v1.13 `pkg/providers/instancetype/types.go`, `evictionThreshold`; v0.22.1
/// `pkg/cloudprovider/instancetype.go`.
fn eviction_threshold(
    capacity: &Resources,
    family: AmiFamily,
    kubelet: &KubeletConfig,
    behaviour: &Behaviour,
) -> Resources {
    let usual = Resources::new().with(ResourceName::MEMORY, EVICTION_MEMORY);
    if !behaviour.reads_eviction {
        return usual;
    }
    let mut threshold = if behaviour.modern_overhead { kubelet_eviction_threshold(capacity, kubelet) } else { usual };
    let soft_counts = !behaviour.ignores_soft_eviction && family != AmiFamily::Bottlerocket;
    for (name, text) in
        [(ResourceName::MEMORY, "memory.available"), (ResourceName::EPHEMERAL_STORAGE, "nodefs.available")]
    {
        let stated = |signals| signal(signals, text, capacity.get(name));
        let soft = stated(&kubelet.eviction_soft).filter(|_| soft_counts);
        let counts = name == ResourceName::MEMORY || behaviour.modern_overhead;
        if let Some(amount) = stated(&kubelet.eviction_hard).max(soft).filter(|_| counts) {
            threshold.set(name, amount);
        }
    }
    threshold
}

/// What a kubelet keeps free with the hard thresholds of the EKS images: 100 MiB of memory and a tenth of the disk.
pub(super) fn kubelet_eviction_threshold(capacity: &Resources, kubelet: &KubeletConfig) -> Resources {
    let storage = capacity.get(ResourceName::EPHEMERAL_STORAGE);
    let memory = signal(&kubelet.eviction_hard, "memory.available", capacity.memory_bytes());
    let disk = signal(&kubelet.eviction_hard, "nodefs.available", storage);
    Resources::new()
        .with(ResourceName::MEMORY, memory.unwrap_or(EVICTION_MEMORY))
        .with(ResourceName::EPHEMERAL_STORAGE, disk.unwrap_or_else(|| (storage + 9) / 10))
}

/// The threshold that `signals` state for `name`: a quantity, or a percentage of `capacity` rounded up, where 100 %
/// switches the threshold off. `None` if it is not stated or not readable.
fn signal(signals: &[(Symbol, String)], name: &str, capacity: i64) -> Option<i64> {
    let (_, text) = signals.iter().find(|(signal, _)| signal.as_str() == name)?;
    let Some(percent) = text.strip_suffix('%') else {
        return text.parse::<Quantity>().ok().map(Quantity::value);
    };
    let nanos = percent.parse::<Quantity>().ok()?.nanos();
    let full = 100 * 1_000_000_000;
    if nanos == full {
        return Some(0);
    }
    let share = i128::from(capacity) * nanos;
    i64::try_from((share + full - 1).div_euclid(full)).ok()
}

#[cfg(test)]
mod tests {
    use super::{kube_reserved_cpu, node, signal};
    use crate::instance_types::ProviderSettings;
    use crate::testing::facts;
    use nodecast_model::domain::node_pool::{AmiFamily, KubeletConfig};
    use nodecast_model::domain::quantity::format_bytes;
    use nodecast_model::domain::{KarpenterVersion, NodeClass, ResourceName, Resources, Symbol};

    /// CPU in thousandths, memory, disk and pods that a type offers.
    fn allocatable(name: &str, version: KarpenterVersion) -> (i64, String, String, i64) {
        let class = NodeClass::named("default");
        figures(&node(&facts(name), &class, &class.kubelet, ProviderSettings::for_version(version)).allocatable)
    }

    fn figures(resources: &Resources) -> (i64, String, String, i64) {
        let disk = resources.get(ResourceName::EPHEMERAL_STORAGE);
        (resources.cpu_milli(), format_bytes(resources.memory_bytes()), format_bytes(disk), resources.pods())
    }

    fn with_kubelet(name: &str, family: AmiFamily, kubelet: &KubeletConfig) -> (i64, String, String, i64) {
        let class = NodeClass { ami_family: family, ..NodeClass::named("default") };
        figures(&node(&facts(name), &class, kubelet, ProviderSettings::default()).allocatable)
    }

    #[test]
    fn kube_reserved_cpu_share_falls_with_cpus() {
        let table =
            [(1, 60), (2, 70), (4, 80), (8, 90), (16, 110), (32, 150), (48, 190), (64, 230), (96, 310), (192, 550)];
        for (vcpus, milli) in table {
            assert_eq!(kube_reserved_cpu(vcpus), milli, "{vcpus} vCPU");
        }
    }

    #[test]
    fn allocatable_matches_current_reference_pages() {
        let v1_13 = KarpenterVersion::V1_13;
        assert_eq!(allocatable("m5.large", v1_13), (1_930, "6903Mi".to_owned(), "17Gi".to_owned(), 29));
        assert_eq!(allocatable("m6g.large", v1_13), (1_930, "6844Mi".to_owned(), "17Gi".to_owned(), 29));
        assert_eq!(allocatable("c5.xlarge", v1_13).0, 3_920);
    }

    #[test]
    fn system_reserved_is_100m_before_v1() {
        for version in [KarpenterVersion::V0_16, KarpenterVersion::V0_18, KarpenterVersion::V0_22] {
            assert_eq!(allocatable("c6g.xlarge", version).0, 3_820, "{version}");
            assert_eq!(allocatable("c6g.xlarge", version).1, "6484Mi", "{version}");
            assert_eq!(allocatable("c6g.2xlarge", version).0, 7_810, "{version}");
            assert_eq!(allocatable("c5.4xlarge", version).0, 15_790, "{version}");
        }
        assert_eq!(allocatable("m5.large", KarpenterVersion::V0_4).1, "6803Mi");
        let class = NodeClass::named("default");
        let capacity = |version| {
            let node = node(&facts("m5.large"), &class, &class.kubelet, ProviderSettings::for_version(version));
            node.capacity.memory_bytes() >> 20
        };
        assert_eq!(capacity(KarpenterVersion::V0_16), 8_192);
        assert_eq!(capacity(KarpenterVersion::V0_22), 7_577);
    }

    #[test]
    fn the_kubelet_settings_of_the_user_count() {
        let max_pods = KubeletConfig { max_pods: Some(110), ..KubeletConfig::default() };
        assert_eq!(with_kubelet("m5.large", AmiFamily::AL2023, &max_pods).1, "6903Mi");
        assert_eq!(with_kubelet("m5.large", AmiFamily::AL2023, &max_pods).3, 110);
        assert_eq!(with_kubelet("m5.large", AmiFamily::Bottlerocket, &max_pods).1, "6012Mi");
        let per_core = KubeletConfig { pods_per_core: Some(5), ..KubeletConfig::default() };
        assert_eq!(with_kubelet("m5.large", AmiFamily::AL2023, &per_core).3, 10);
        assert_eq!(with_kubelet("m5.large", AmiFamily::Bottlerocket, &per_core).3, 29);
        assert_eq!(with_kubelet("m5.large", AmiFamily::Windows2022, &KubeletConfig::default()).3, 110);
        let reserved = KubeletConfig {
            kube_reserved: Resources::new().with(ResourceName::CPU, 500),
            system_reserved: Resources::cpu_memory(100, 1 << 30),
            eviction_hard: vec![(Symbol::new("memory.available"), "5%".to_owned())],
            ..KubeletConfig::default()
        };
        let (cpu, memory, ..) = with_kubelet("m5.large", AmiFamily::AL2023, &reserved);
        assert_eq!(cpu, 2_000 - 500 - 100);
        assert_eq!(memory, format_bytes((7_577 - 574 - 1_024) * (1 << 20) - 397_253_018));
    }

    #[test]
    fn an_eviction_threshold_of_all_memory_means_none() {
        let signals = |text: &str| vec![(Symbol::new("memory.available"), text.to_owned())];
        assert_eq!(signal(&signals("100%"), "memory.available", 1_000), Some(0));
        assert_eq!(signal(&signals("0.15%"), "memory.available", 1_000), Some(2));
        assert_eq!(signal(&signals("1Mi"), "memory.available", 1_000), Some(1 << 20));
        assert_eq!(signal(&signals("lots"), "memory.available", 1_000), None);
        assert_eq!(signal(&[], "memory.available", 1_000), None);
    }
}

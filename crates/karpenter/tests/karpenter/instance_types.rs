//! What nodes offer agrees with what Karpenter's documentation prints, and the releases differ where they should.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodecast_karpenter::instance_types::{
    InstanceType, ProviderSettings, instance_types, learn_memory, refresh_offerings,
};
use nodecast_karpenter::packing::{
    PackingOptions, PackingSetup, PendingPod, PoolView, ReservedMode, Situation, TieBreak, Volumes, pack,
};
use nodecast_model::domain::node_pool::{AmiFamily, KubeletConfig};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{
    KarpenterVersion, Labels, NodeClass, NodePool, PodSpec, Requirement, ResourceName, Resources, SimTime, Symbol,
};
use nodecast_prices::Catalog;

/// Cases of the upstream suites that this file pins, see `packing`.
pub const ROWS: &[u16] = &[136, 138, 144];

/// The values that the instance type pages of Karpenter's documentation (v1.14) print, one line for each type.
const PRINTED: &str = include_str!("../../../../tests/data/karpenter_allocatable.csv");

fn types(region: &str, version: KarpenterVersion) -> Vec<InstanceType> {
    let region = Catalog::embedded().unwrap().region(region).unwrap();
    let (class, pool) = (NodeClass::named("default"), NodePool::named("default"));
    instance_types(&region, &class, &pool, ProviderSettings::for_version(version))
}

#[test]
fn allocatable_equals_the_printed_values_of_every_type() {
    let printed: BTreeMap<&str, Vec<i64>> = PRINTED
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(','))
        .map(|(name, figures)| (name, figures.split(',').map(|cell| cell.parse().unwrap_or(0)).collect()))
        .collect();
    assert_eq!(printed.len(), 1_363);
    let mut missing: BTreeSet<&str> = printed.keys().copied().collect();
    for region in ["us-east-1", "us-west-2", "us-east-2", "eu-north-1"] {
        for entry in types(region, KarpenterVersion::V1_13) {
            if missing.remove(entry.name.as_str()) {
                assert_eq!(figures(&entry), printed[entry.name.as_str()], "{}", entry.name);
            }
        }
    }
    assert_eq!(missing, BTreeSet::new());
}

/// CPU, memory, disk, pods, pod interfaces, GPUs, Neuron devices and fabric adapters, in the units of the printed table.
fn figures(entry: &InstanceType) -> Vec<i64> {
    let amount = |name| entry.allocatable.get(name);
    let of = |name| amount(ResourceName(name));
    vec![
        entry.allocatable.cpu_milli(),
        entry.allocatable.memory_bytes() >> 20,
        amount(ResourceName::EPHEMERAL_STORAGE) >> 30,
        entry.allocatable.pods(),
        of(well_known::AWS_POD_ENI),
        of(well_known::NVIDIA_GPU) + of(well_known::AMD_GPU) + of(well_known::HABANA_GAUDI),
        of(well_known::AWS_NEURON),
        of(well_known::AWS_EFA),
    ]
}

#[test]
fn four_cpus_fit_3825m_in_v1_only() {
    let fitting = |version| {
        let fits = |entry: &&InstanceType| entry.allocatable.cpu_milli() >= 3_825;
        let smallest = types("us-east-1", version).iter().filter(fits).map(|entry| entry.capacity.cpu_milli()).min();
        smallest.unwrap() / 1_000
    };
    assert_eq!(fitting(KarpenterVersion::V0_16), 8);
    assert_eq!(fitting(KarpenterVersion::V1_13), 4);
}

#[test]
fn v0_16_lists_types_by_on_demand_price() {
    let price =
        |entry: &InstanceType| entry.offerings.iter().find(|o| o.capacity_type == well_known::ON_DEMAND).unwrap().price;
    let priced: Vec<_> = types("us-east-1", KarpenterVersion::V0_16)
        .into_iter()
        .filter(|entry| entry.offerings.iter().any(|offering| offering.available))
        .collect();
    assert!(priced.is_sorted_by_key(price));
    let xlarges: Vec<&str> = priced
        .iter()
        .filter(|entry| entry.allocatable.cpu_milli() >= 3_825 && entry.allocatable.memory_bytes() >= 6_166_575 << 10)
        .map(|entry| entry.name.as_str())
        .filter(|name| ["t4g.2xlarge", "c6g.2xlarge", "t3a.2xlarge", "c6gd.2xlarge", "c5a.2xlarge"].contains(name))
        .collect();
    assert_eq!(xlarges, ["t4g.2xlarge", "c6g.2xlarge", "t3a.2xlarge", "c6gd.2xlarge", "c5a.2xlarge"]);
    assert!(types("us-east-1", KarpenterVersion::V1_13).is_sorted_by_key(|entry| entry.name));
}

#[test]
fn capacity_error_removes_offering_but_keeps_zone() {
    for (version, zone_stays) in [(KarpenterVersion::V1_13, true), (KarpenterVersion::V0_18, false)] {
        let mut types = types("cn-north-1", version);
        let (name, zone) = (Symbol::new("p3.8xlarge"), Symbol::new("cn-north-1a"));
        refresh_offerings(&mut types, version, |of, offering| {
            (Some(offering.price), of == name && offering.zone == zone)
        });
        let hit = types.iter().find(|entry| entry.name == name).unwrap();
        let available: Vec<Symbol> = hit.offerings.iter().filter(|o| o.available).map(|o| o.zone).collect();
        assert!(!available.is_empty() && !available.contains(&zone), "{version}");
        assert_eq!(hit.requirements.get(well_known::ZONE).unwrap().has(zone), zone_stays, "{version}");
    }
}

#[test]
fn what_real_nodes_report_replaces_the_expected_memory() {
    let mut types = types("us-east-1", KarpenterVersion::V1_13);
    let name = Symbol::new("m5.large");
    let memory = |types: &[InstanceType]| {
        let entry = types.iter().find(|entry| entry.name == name).unwrap();
        (entry.capacity.memory_bytes() >> 20, entry.allocatable.memory_bytes() >> 20)
    };
    assert_eq!(memory(&types), (7_577, 6_903));
    let seen = learn_memory(&mut types, name, 7_800 << 20, None);
    assert_eq!(memory(&types), (7_800, 7_126));
    let seen = learn_memory(&mut types, name, 7_790 << 20, Some(seen));
    learn_memory(&mut types, name, 7_795 << 20, Some(seen));
    assert_eq!(memory(&types), (7_790, 7_116));
}

#[test]
fn node_class_zones_and_architectures_restrict_types() {
    let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
    let class = NodeClass {
        zones: vec![Symbol::new("us-east-1a")],
        ami_architectures: vec![well_known::ARM64],
        ..NodeClass::named("default")
    };
    let types = instance_types(&region, &class, &NodePool::named("default"), ProviderSettings::default());
    assert!(types.len() > 300);
    for entry in &types {
        assert!(entry.offerings.iter().all(|offering| offering.zone.as_str() == "us-east-1a"), "{}", entry.name);
        assert_eq!(entry.requirements.get(well_known::ARCH).unwrap().any(), Some(well_known::ARM64));
    }
    let a1 = types.iter().find(|entry| entry.name.as_str() == "a1.large").unwrap();
    assert!(a1.offerings.is_empty(), "AL2023 does not run on a1");
}

#[test]
fn windows_runs_on_amd64_alone() {
    let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
    for ami_family in [AmiFamily::Windows2019, AmiFamily::Windows2022, AmiFamily::Windows2025] {
        let class = NodeClass { ami_family, ..NodeClass::named("default") };
        let types = instance_types(&region, &class, &NodePool::named("default"), ProviderSettings::default());
        assert!(types.len() > 300);
        for entry in &types {
            let labels = [well_known::ARCH, well_known::OS].map(|key| entry.requirements.get(key).unwrap().any());
            assert_eq!(labels, [Some(well_known::AMD64), Some(well_known::WINDOWS)], "{}", entry.name);
        }
    }
}

#[test]
fn what_is_set_aside_for_kubelet_and_evictions() {
    let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
    let m5_large = |kubelet: KubeletConfig| {
        let class = NodeClass { kubelet, ..NodeClass::named("default") };
        let types = instance_types(&region, &class, &NodePool::named("default"), ProviderSettings::default());
        let entry = types.into_iter().find(|entry| entry.name.as_str() == "m5.large").unwrap();
        let aside = |name| entry.capacity.get(name) - entry.allocatable.get(name);
        (aside(ResourceName::CPU), aside(ResourceName::MEMORY), aside(ResourceName::EPHEMERAL_STORAGE))
    };
    const MIB: i64 = 1 << 20;
    const CAPACITY: i64 = 7_577 * MIB;
    let signal = |text: &str| vec![(Symbol::new("memory.available"), text.to_owned())];
    let hard = |text: &str| KubeletConfig { eviction_hard: signal(text), ..KubeletConfig::default() };
    let given = Resources::cpu_memory(200, 300 * MIB);
    // For the kubelet 255 MiB and 11 MiB for each of 29 pods, for evictions 100 MiB.
    for (kubelet, cpu, memory) in [
        (KubeletConfig::default(), 70, 674 * MIB),
        (KubeletConfig { kube_reserved: given.clone(), ..KubeletConfig::default() }, 200, 400 * MIB),
        (KubeletConfig { system_reserved: given, ..KubeletConfig::default() }, 270, 974 * MIB),
        (hard("500Mi"), 70, 1_074 * MIB),
        (hard("10%"), 70, 574 * MIB + (CAPACITY + 9) / 10),
        (hard("100%"), 70, 574 * MIB),
    ] {
        assert_eq!(m5_large(kubelet.clone()), (cpu, memory, 3 << 30), "{kubelet:?}");
    }
}

#[test]
fn expected_capacity_never_exceeds_recorded_nodes() {
    // Bytes of memory that nodes of these types were recorded to lack, out of what EC2 says they have.
    for (name, lacking) in [
        ("t3.medium", 264_945_664),
        ("m6i.large", 424_321_024),
        ("c6i.2xlarge", 704_696_320),
        ("r6i.xlarge", 1_261_588_480),
        ("m5n.large", 497_725_440),
        ("c6g.large", 293_154_816),
        ("m4.large", 278_482_944),
        ("t2.medium", 205_082_624),
        ("m6i.metal", 8_923_189_248_i64),
    ] {
        let facts = Catalog::embedded().unwrap().facts(name).unwrap();
        let types = types("us-east-1", KarpenterVersion::V1_13);
        let expected = types.iter().find(|entry| entry.name.as_str() == name).unwrap();
        let real = (i64::from(facts.memory_mib) << 20) - lacking;
        assert!(expected.capacity.memory_bytes() <= real, "{name}");
        let set_aside = (255 + 11 * expected.capacity.pods() + 100) << 20;
        assert!(expected.allocatable.memory_bytes() <= real - set_aside, "{name}");
    }
}

#[test]
fn zones_without_spot_price_are_not_offered() {
    let mut types = types("us-east-1", KarpenterVersion::V1_13);
    types.retain(|entry| entry.name.as_str() == "m5.large");
    let mut pool = NodePool::named("default");
    pool.requirements.push(Requirement::equals(well_known::CAPACITY_TYPE, well_known::SPOT));
    let in_zone = |zone: &str| {
        let selector = Labels::new().with("topology.kubernetes.io/zone", zone);
        Arc::new(PodSpec { node_selector: selector, ..PodSpec::default() })
    };
    let placed = |types: &[InstanceType], spec: &Arc<PodSpec>| {
        let setup = PackingSetup {
            karpenter: KarpenterVersion::V1_13,
            options: PackingOptions::default(),
            pools: &[PoolView { pool: &pool, instance_types: types }],
            daemons: &[],
            namespaces: &[],
            volumes: Volumes::default(),
            default_spread: None,
        };
        let (namespace, name) = (Symbol::new("default"), "p");
        let pods = [PendingPod { namespace, name, spec, created: SimTime::ZERO, uid_rank: 0 }];
        let ties = TieBreak::SmallestName;
        let plan = pack(setup, &Situation { nodes: &[], pods: &pods, reserved: ReservedMode::Strict, ties });
        plan.claims.len()
    };
    let (a, b) = (in_zone("us-east-1a"), in_zone("us-east-1b"));
    assert_eq!((placed(&types, &a), placed(&types, &b)), (1, 1));
    for (unpriced, expected) in [(vec!["us-east-1a"], (0, 1)), (vec!["us-east-1a", "us-east-1b"], (0, 0))] {
        let mut types = types.clone();
        refresh_offerings(&mut types, KarpenterVersion::V1_13, |_, offering| {
            let spot = offering.capacity_type == well_known::SPOT;
            let known = !(spot && unpriced.contains(&offering.zone.as_str()));
            (known.then_some(offering.price), false)
        });
        assert_eq!((placed(&types, &a), placed(&types, &b)), expected, "{unpriced:?}");
    }
}

//! The labels that nodes of a type get, as requirements.

use super::{InstanceType, offerings, releases};
use crate::release::{Behaviour, LabelSet};
use nodecast_model::catalog::{AcceleratorKind, InstanceFacts, Region, RegionType};
use nodecast_model::domain::labels::{auto_mode_label, is_of_karpenters_types};
use nodecast_model::domain::node_pool::AmiFamily;
use nodecast_model::domain::requirements::Operator;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{KarpenterVersion, Labels, NodeClass, Requirement, Requirements, Symbol};

/// The requirements that follow from the type alone. `pods` is what a node of it accepts.
///
/// Source: AWS provider v1.13 `pkg/providers/instancetype/types.go`, `computeRequirements`; v0.16.0
/// `pkg/cloudprovider/aws/instancetype.go`; v0.22.1 `pkg/cloudprovider/instancetype.go`.
pub(super) fn of_type(facts: &InstanceFacts, class: &NodeClass, pods: i64, version: KarpenterVersion) -> Requirements {
    let set = Behaviour::for_release(version).labels;
    let mut labels = Vec::with_capacity(40);
    labels.push((well_known::INSTANCE_TYPE, Some(facts.name)));
    labels.push((well_known::ARCH, Some(facts.arch)));
    labels.push((well_known::OS, os(facts, class.ami_family)));
    if set >= LabelSet::V0_16 {
        shape(facts, &mut labels);
    }
    if set.says_pods() {
        labels.push((well_known::INSTANCE_PODS, Some(number(pods))));
    }
    if set >= LabelSet::V0_22 {
        labels.push((well_known::INSTANCE_NETWORK_BANDWIDTH, facts.network_baseline_mbps.map(number)));
        labels.push((well_known::INSTANCE_ENCRYPTION, Some(truth(facts.encryption_in_transit))));
    }
    if set >= LabelSet::V1 {
        current(facts, class.ami_family, &mut labels);
    }
    if set == LabelSet::AutoMode {
        rename(&mut labels);
    }
    let mut requirements = Requirements::with_capacity(labels.len() + PLACES_MAX + 1);
    labels.into_iter().for_each(|(key, value)| requirements.add(label(key, value)));
    if set == LabelSet::V1 && Behaviour::for_release(version).labels_tenancy {
        let tenancies = [well_known::DEFAULT, Symbol::new("dedicated")];
        requirements.add(Requirement::new(well_known::INSTANCE_TENANCY, Operator::In, tenancies));
    }
    requirements
}

/// The labels that a node of the type gets whatever it is launched for: what the type leaves no choice of.
pub fn of_node(facts: &InstanceFacts, class: &NodeClass, version: KarpenterVersion) -> Labels {
    // How many pods it takes is a matter of its kubelet.
    let requirements = of_type(facts, class, 0, version);
    let without_choice = requirements.iter().filter(|requirement| requirement.key != well_known::INSTANCE_PODS);
    let value = |requirement: &Requirement| {
        requirement
            .values
            .first()
            .copied()
            .filter(|_| requirement.operator() == Operator::In && requirement.values.len() == 1)
    };
    without_choice.filter_map(|item| Some((item.key, value(item)?))).collect()
}

/// The labels of a node that has just been launched: what its type leaves no choice of, and what the launch chose.
///
/// Source: AWS provider v1.13 `pkg/cloudprovider/cloudprovider.go`, `instanceToNodeClaim`.
pub(crate) fn of_launched(kind: &InstanceType, zone: Symbol, capacity_type: Symbol, tenancy: Symbol) -> Labels {
    let without_choice =
        kind.requirements.iter().filter(|requirement| !requirement.complement && requirement.values.len() == 1);
    let mut labels: Labels = without_choice
        .filter_map(|key_domains| Some((key_domains.key, key_domains.values.first().copied()?)))
        .collect();
    labels.set(well_known::ZONE, zone);
    labels.set(well_known::CAPACITY_TYPE, capacity_type);
    let mut choose = |key, value| {
        if kind.requirements.get(key).is_some_and(|requirement| requirement.has(value)) {
            labels.set(key, value);
        }
    };
    choose(Symbol::new(releases::OLD_CAPACITY_TYPE), capacity_type);
    choose(well_known::INSTANCE_TENANCY, tenancy);
    let mut there = kind.offerings.iter().filter(|offering| offering.zone == zone);
    if let Some(id) = there.find_map(|item| item.zone_id) {
        choose(well_known::ZONE_ID, id);
    }
    labels
}

/// Whether the types of a release state `key`, where it is a label of Karpenter's AWS provider: pods may ask for no other in its domain.
pub(crate) fn is_stated(key: Symbol, version: KarpenterVersion) -> bool {
    let behaviour = Behaviour::for_release(version);
    let since = match key {
        well_known::INSTANCE_TENANCY => return behaviour.labels_tenancy,
        well_known::INSTANCE_PODS => return behaviour.labels.says_pods(),
        well_known::INSTANCE_NETWORK_BANDWIDTH | well_known::INSTANCE_ENCRYPTION => LabelSet::V0_22,
        _ if SHAPE.contains(&key) => LabelSet::V0_16,
        _ if key.as_str().starts_with("karpenter.k8s.aws/") => LabelSet::V1,
        _ => LabelSet::Basic,
    };
    behaviour.labels >= since
}

/// The labels of [`shape`].
const SHAPE: [Symbol; 12] = [
    well_known::INSTANCE_CATEGORY,
    well_known::INSTANCE_FAMILY,
    well_known::INSTANCE_GENERATION,
    well_known::INSTANCE_SIZE,
    well_known::INSTANCE_CPU,
    well_known::INSTANCE_MEMORY,
    well_known::INSTANCE_HYPERVISOR,
    well_known::INSTANCE_LOCAL_NVME,
    well_known::INSTANCE_GPU_NAME,
    well_known::INSTANCE_GPU_MANUFACTURER,
    well_known::INSTANCE_GPU_COUNT,
    well_known::INSTANCE_GPU_MEMORY,
];

/// Requirements that [`add_places`] adds at most: there are hundreds of types, so that room for them is made at once.
const PLACES_MAX: usize = 4;

/// Adds region, zones and capacity types: the zones that offer the type and that the node class reaches, available or not.
pub(super) fn add_places(
    requirements: &mut Requirements,
    region: &Region,
    entry: &RegionType,
    class: &NodeClass,
    version: KarpenterVersion,
) {
    let zones: Vec<_> = offerings::zones(region, entry, class).map(|zone| region.zones[zone]).collect();
    let mut add = |key, values: Vec<Symbol>| requirements.add(Requirement::new(key, Operator::In, values));
    add(well_known::REGION, vec![region.name]);
    add(well_known::ZONE, zones.iter().map(|zone| zone.name).collect());
    let mut capacity_types = vec![well_known::ON_DEMAND];
    if entry.facts.spot {
        capacity_types.push(well_known::SPOT);
    }
    add(releases::capacity_type_key(version), capacity_types);
    if releases::labels_zone_ids(version) && !zones.is_empty() {
        let ids = zones.iter().map(|zone| zone.id);
        requirements.add(Requirement::new(well_known::ZONE_ID, Operator::In, ids));
    }
}

type Label = (Symbol, Option<Symbol>);

/// The labels of EKS Auto Mode in place of those of Karpenter's own provider; those that it has no counterpart of go.
fn rename(labels: &mut Vec<Label>) {
    labels.retain_mut(|(key, _)| match auto_mode_label(*key) {
        Some(auto_mode_label) => {
            *key = auto_mode_label;
            true
        }
        None => !is_of_karpenters_types(*key),
    });
}

/// What every release with labels of its own states.
fn shape(facts: &InstanceFacts, labels: &mut Vec<Label>) {
    let gpu = facts.gpu;
    labels.extend([
        (well_known::INSTANCE_CATEGORY, facts.category),
        (well_known::INSTANCE_FAMILY, Some(facts.family)),
        (well_known::INSTANCE_GENERATION, facts.generation.map(number)),
        (well_known::INSTANCE_SIZE, Some(facts.size)),
        (well_known::INSTANCE_CPU, Some(number(facts.vcpus))),
        (well_known::INSTANCE_MEMORY, Some(number(facts.memory_mib))),
        // Bare metal has the label with an empty value.
        (well_known::INSTANCE_HYPERVISOR, Some(facts.hypervisor.unwrap_or(well_known::EMPTY))),
        (well_known::INSTANCE_LOCAL_NVME, facts.local_nvme.then(|| number(facts.local_storage_gb))),
        (well_known::INSTANCE_GPU_NAME, gpu.map(|gpu| gpu.name)),
        (well_known::INSTANCE_GPU_MANUFACTURER, gpu.map(|gpu| gpu.manufacturer)),
        (well_known::INSTANCE_GPU_COUNT, gpu.map(|gpu| number(gpu.count))),
        (well_known::INSTANCE_GPU_MEMORY, gpu.map(|gpu| number(gpu.memory_mib_each))),
    ]);
}

/// What only the current releases state.
fn current(facts: &InstanceFacts, family: AmiFamily, labels: &mut Vec<Label>) {
    let flex = facts.family.as_str().contains("-flex");
    let accelerator =
        facts.accelerator.filter(|a| matches!(a.kind, AcceleratorKind::Neuron | AcceleratorKind::Inference));
    labels.extend([
        (well_known::INSTANCE_CPU_MANUFACTURER, facts.cpu_manufacturer),
        (well_known::INSTANCE_CPU_CLOCK_MHZ, facts.clock_mhz.map(number)),
        (well_known::INSTANCE_EBS_BANDWIDTH, ebs_bandwidth(facts)),
        (well_known::INSTANCE_CAPABILITY_FLEX, Some(truth(flex))),
        (well_known::INSTANCE_ACCELERATOR_NAME, accelerator.map(|a| lower_kebab_case(a.name.as_str()))),
        (
            well_known::INSTANCE_ACCELERATOR_MANUFACTURER,
            accelerator.map(|a| match a.kind {
                AcceleratorKind::Neuron => Symbol::new("aws"),
                _ => lower_kebab_case(a.name.as_str().split(' ').next().unwrap_or_default()),
            }),
        ),
        (well_known::INSTANCE_ACCELERATOR_COUNT, accelerator.map(|a| number(a.count))),
        (well_known::WINDOWS_BUILD, windows_build(family)),
        (well_known::CAPACITY_RESERVATION_ID, None),
        (well_known::CAPACITY_RESERVATION_TYPE, None),
        (well_known::CAPACITY_RESERVATION_INTERRUPTIBLE, None),
        (well_known::PLACEMENT_GROUP_ID, None),
        (well_known::PLACEMENT_GROUP_PARTITION, None),
    ]);
}

/// The label is set only where EBS bandwidth of its own is the default, which families before the fourth generation lack.
fn ebs_bandwidth(facts: &InstanceFacts) -> Option<Symbol> {
    facts.ebs_max_mbps.filter(|_| !releases::was_previous_generation(facts.family)).map(number)
}

fn os(facts: &InstanceFacts, family: AmiFamily) -> Option<Symbol> {
    match family.is_windows() {
        false => Some(well_known::LINUX),
        true => (facts.arch == well_known::AMD64).then_some(well_known::WINDOWS),
    }
}

fn windows_build(family: AmiFamily) -> Option<Symbol> {
    match family {
        AmiFamily::Windows2019 => Some(Symbol::new("10.0.17763")),
        AmiFamily::Windows2022 => Some(Symbol::new("10.0.20348")),
        AmiFamily::Windows2025 => Some(Symbol::new("10.0.26100")),
        _ => None,
    }
}

/// `key In [value]`, or `key DoesNotExist`.
fn label(key: Symbol, value: Option<Symbol>) -> Requirement {
    Requirement::new(key, Operator::In, value)
}

fn number(value: impl ToString) -> Symbol {
    Symbol::new(&value.to_string())
}

const fn truth(value: bool) -> Symbol {
    if value { well_known::TRUE } else { well_known::FALSE }
}

fn lower_kebab_case(text: &str) -> Symbol {
    Symbol::new(&text.to_ascii_lowercase().replace(' ', "-"))
}

#[cfg(test)]
mod tests {
    use super::{is_stated, of_launched, of_type};
    use crate::instance_types::{InstanceType, ProviderSettings, instance_types};
    use crate::testing::facts;
    use nodecast_model::catalog::{Price, Region, RegionType};
    use nodecast_model::domain::labels::well_known_labels;
    use nodecast_model::domain::requirements::Operator;
    use nodecast_model::domain::symbol::well_known;
    use nodecast_model::domain::{Currency, KarpenterVersion, NodeClass, NodePool, Requirements, Symbol};

    /// A type as a release lists it in a region of two zones, On-Demand and Spot.
    fn in_two_zones(name: &str, version: KarpenterVersion) -> Option<InstanceType> {
        let price = Price::own("0.096").unwrap();
        let entry = RegionType::everywhere(facts(name), price, Some(price), 2);
        let region = Region::named("us-east-1", Currency::Usd, &["us-east-1a", "us-east-1b"], [entry]);
        let (class, pool) = (NodeClass::named("default"), NodePool::named("default"));
        instance_types(&region, &class, &pool, ProviderSettings::for_version(version)).pop()
    }

    fn requirements(name: &str, version: KarpenterVersion) -> Requirements {
        of_type(&facts(name), &NodeClass::named("default"), 29, version)
    }

    fn value(requirements: &Requirements, key: Symbol) -> String {
        requirements.get(key).map_or("undefined".to_owned(), ToString::to_string)
    }

    #[test]
    fn gpu_type_sets_gpu_but_not_accelerator_labels() {
        let g5 = requirements("g5.xlarge", KarpenterVersion::V1_13);
        let label = |key| value(&g5, key);
        assert_eq!(label(well_known::INSTANCE_GPU_NAME), "karpenter.k8s.aws/instance-gpu-name In [a10g]");
        assert_eq!(label(well_known::INSTANCE_GPU_MEMORY), "karpenter.k8s.aws/instance-gpu-memory In [22888]");
        assert_eq!(label(well_known::INSTANCE_LOCAL_NVME), "karpenter.k8s.aws/instance-local-nvme In [250]");
        assert_eq!(g5.get(well_known::INSTANCE_ACCELERATOR_NAME).unwrap().operator(), Operator::DoesNotExist);
        assert_eq!(label(well_known::INSTANCE_PODS), "undefined");
    }

    #[test]
    fn neuron_devices_are_accelerators_made_by_aws() {
        let inf2 = requirements("inf2.24xlarge", KarpenterVersion::V1_13);
        let has = |key, text: &str| inf2.get(key).unwrap().has(Symbol::new(text));
        assert!(has(well_known::INSTANCE_ACCELERATOR_NAME, "inferentia2"));
        assert!(has(well_known::INSTANCE_ACCELERATOR_MANUFACTURER, "aws"));
        assert!(has(well_known::INSTANCE_ACCELERATOR_COUNT, "6"));
    }

    /// Or launches run away: a pod that asks for the label gets a node, which then lacks it.
    #[test]
    fn launched_node_has_all_type_labels() {
        let zone = Symbol::new("us-east-1b");
        for version in KarpenterVersion::ALL.into_iter().chain([KarpenterVersion::AUTO_MODE]) {
            for kind in ["m5.large", "g4dn.xlarge"].into_iter().filter_map(|name| in_two_zones(name, version)) {
                for tenancy in [well_known::DEFAULT, Symbol::new("dedicated")] {
                    let node = of_launched(&kind, zone, well_known::SPOT, tenancy);
                    for stated in kind.requirements.iter().filter(|requirement| requirement.operator() == Operator::In)
                    {
                        let value = node.get(stated.key);
                        let suits = value.is_some_and(|value| stated.has(value));
                        assert!(suits, "{version}, {}: {stated}, and the node has {value:?}", kind.name);
                    }
                }
            }
        }
    }

    #[test]
    fn launched_node_has_zone_capacity_type_and_tenancy() {
        let kind = in_two_zones("m5.large", KarpenterVersion::V1_13).unwrap();
        let dedicated = Symbol::new("dedicated");
        let node = of_launched(&kind, Symbol::new("us-east-1b"), well_known::SPOT, dedicated);
        let label = |key| node.get(key).map(Symbol::as_str);
        assert_eq!(label(well_known::ZONE), Some("us-east-1b"));
        assert_eq!(label(well_known::ZONE_ID), Some("us-east-1b"), "a region of a test names its ids so");
        assert_eq!(label(well_known::CAPACITY_TYPE), Some("spot"));
        assert_eq!(label(well_known::INSTANCE_TENANCY), Some("dedicated"));
        let older = in_two_zones("m5.large", "v1.8".parse().unwrap()).unwrap();
        let node = of_launched(&older, Symbol::new("us-east-1b"), well_known::SPOT, well_known::DEFAULT);
        assert_eq!(node.get(well_known::INSTANCE_TENANCY), None, "the label came with v1.9");
    }

    /// Of a pod that asks for a label that the release does not have, nothing is launched.
    #[test]
    fn release_labels_are_those_of_its_types() {
        let matches = |key: &Symbol| key.as_str().starts_with("karpenter.k8s.aws/");
        for version in KarpenterVersion::ALL {
            let stated = requirements("m5.large", version);
            for key in well_known_labels().filter(matches) {
                assert_eq!(is_stated(key, version), stated.get(key).is_some(), "{version}: {key}");
            }
        }
    }

    #[test]
    fn older_releases_know_fewer_labels() {
        let v0_6 = requirements("m5.large", KarpenterVersion::V0_6);
        assert_eq!(value(&v0_6, well_known::INSTANCE_FAMILY), "undefined");
        let v0_16 = requirements("m5.large", KarpenterVersion::V0_16);
        assert_eq!(value(&v0_16, well_known::INSTANCE_PODS), "karpenter.k8s.aws/instance-pods In [29]");
        assert_eq!(value(&v0_16, well_known::INSTANCE_CPU_MANUFACTURER), "undefined");
        let v0_22 = requirements("m5.large", KarpenterVersion::V0_22);
        let bandwidth = value(&v0_22, well_known::INSTANCE_NETWORK_BANDWIDTH);
        assert_eq!(bandwidth, "karpenter.k8s.aws/instance-network-bandwidth In [750]");
    }
}

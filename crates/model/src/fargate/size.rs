//! What a pod on Fargate is billed as, and what Fargate does not run.

use std::fmt;

use crate::domain::symbol::well_known;
use crate::domain::{PodSpec, ResourceName, Resources};

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
/// Memory that Fargate adds for kubelet, kube-proxy and containerd.
const OVERHEAD: i64 = 256 * MIB;
/// GiB of ephemeral storage that come with every pod.
pub const STORAGE_INCLUDED_GIB: i64 = 20;
/// The largest ephemeral storage that a pod can ask for.
const STORAGE_MOST: i64 = 175 * GIB;

/// The vCPUs in thousandths that Fargate offers, with the least, the most and the step of memory in MiB that go with them.
const ROWS: [(i64, i64, i64, i64); 7] = [
    (250, 512, 2 * 1_024, 512),
    (500, 1_024, 4 * 1_024, 1_024),
    (1_000, 2 * 1_024, 8 * 1_024, 1_024),
    (2_000, 4 * 1_024, 16 * 1_024, 1_024),
    (4_000, 8 * 1_024, 30 * 1_024, 1_024),
    (8_000, 16 * 1_024, 60 * 1_024, 4 * 1_024),
    (16_000, 32 * 1_024, 120 * 1_024, 8 * 1_024),
];

/// What a pod is billed as: the annotation `CapacityProvisioned`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Billed {
    /// vCPUs in thousandths.
    pub cpu_milli: i64,
    /// Memory in MiB.
    pub memory_mib: i64,
    /// Ephemeral storage in GiB beyond the 20 that cost nothing.
    pub extra_storage_gib: i64,
}

impl fmt::Display for Billed {
    /// As the annotation has it: `0.25vCPU 0.5GB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cpu, memory) = (self.cpu_milli as f64 / 1e3, self.memory_mib as f64 / 1_024.0);
        write!(f, "{cpu}vCPU {memory}GB")
    }
}

/// Why Fargate does not run a pod.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Unsupported {
    /// A container is privileged.
    Privileged,
    /// It opens a port of its node.
    HostPort,
    /// It is in the network of its node.
    HostNetwork,
    /// It asks for a GPU, or another device.
    Device,
    /// It asks for another processor than amd64.
    Architecture,
    /// It asks for Windows.
    Windows,
    /// It asks for Spot.
    Spot,
    /// It has a volume that is not one of EFS.
    Volume,
    /// It asks for more than 16 vCPUs, 120 GB or 175 GiB of ephemeral storage.
    TooLarge,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Privileged => "a container is privileged",
            Self::HostPort => "it opens a host port",
            Self::HostNetwork => "it uses the host network",
            Self::Device => "it requests a device",
            Self::Architecture => "it needs another processor than amd64",
            Self::Windows => "it needs Windows",
            Self::Spot => "it asks for Spot",
            Self::Volume => "it has a volume that is not one of EFS",
            Self::TooLarge => "it requests more than 16 vCPU, 120 GB or 175 GiB of ephemeral storage",
        })
    }
}

/// What stands against a pod on Fargate, its size aside. `foreign_volume` says whether one of its volumes is not one of EFS.
///
/// Deviation: `securityContext.privileged` of containers is read only for Fargate.
pub fn unsupported(spec: &PodSpec, foreign_volume: bool) -> Option<Unsupported> {
    let init = spec.init_containers.iter().map(|init_container| &init_container.container);
    let containers = || spec.containers.iter().chain(init.clone());
    let asks = |key, wanted: fn(&str) -> bool| {
        let selected = spec.node_selector.get(key).is_some_and(|value| wanted(value.as_str()));
        // A term that any value but a foreign one fulfils asks for nothing foreign.
        let only_foreign = |requirement: &crate::domain::Requirement| {
            requirement.key == key
                && !requirement.complement
                && !requirement.values.is_empty()
                && requirement.values.iter().all(|value| wanted(value.as_str()))
        };
        let mut terms = spec.node_affinity.required.iter().map(crate::domain::pod::NodeSelectorTerm::requirements);
        let affine = !spec.node_affinity.required.is_empty() && terms.all(|term| term.iter().any(only_foreign));
        selected || affine
    };
    let is_plain = |name: ResourceName| {
        // A pod on Fargate has its security groups by an annotation, and requests no interface for them.
        let interface = ResourceName(well_known::AWS_POD_ENI);
        [ResourceName::CPU, ResourceName::MEMORY, ResourceName::EPHEMERAL_STORAGE, ResourceName::PODS, interface]
            .contains(&name)
    };
    let found = [
        (containers().any(|container| container.privileged), Unsupported::Privileged),
        (spec.host_network, Unsupported::HostNetwork),
        (containers().any(|container| !container.host_ports.is_empty()), Unsupported::HostPort),
        (
            spec.resource_claims || spec.requests().iter().any(|(name, amount)| !is_plain(name) && amount > 0),
            Unsupported::Device,
        ),
        (asks(well_known::OS, |item| item == "windows"), Unsupported::Windows),
        (asks(well_known::ARCH, |item| item != "amd64"), Unsupported::Architecture),
        (asks(well_known::CAPACITY_TYPE, |item| item == "spot"), Unsupported::Spot),
        (foreign_volume, Unsupported::Volume),
    ];
    found.into_iter().find(|(holds, _)| *holds).map(|(_, why)| why)
}

/// What a pod is billed as: the larger of what init containers peak at and of what runs for long, 256 MB more memory, rounded up to what
/// Fargate offers. Requests count, and a GB is 1024 MiB.
///
/// Deviation: sidecars among init containers count as long-running; AWS does not document this. AWS's MB and GB count
/// as MiB and GiB. Provisioned storage is 1.15 times the request, by AWS's one example.
///
/// `beside` is what containers request that are put beside those of the pod, for want of the agents that a node's DaemonSets bring.
///
/// # Errors
/// If it is larger than anything that Fargate offers.
pub fn size(spec: &PodSpec, beside: &Resources) -> Result<Billed, Unsupported> {
    let mut asked = running(spec);
    asked.add(beside);
    let memory = asked.memory_bytes() + OVERHEAD;
    let has_none = asked.cpu_milli() == 0 && asked.memory_bytes() == 0;
    // A pod without requests has the smallest size, of which nothing is added.
    let memory = if has_none { 0 } else { memory };
    let fits = |&&(cpu, _, most, _): &&(i64, i64, i64, i64)| cpu >= asked.cpu_milli() && most * MIB >= memory;
    let &(cpu_milli, least, most, step) = ROWS.iter().find(fits).ok_or(Unsupported::TooLarge)?;
    let mut memory_mib = least;
    while memory_mib * MIB < memory {
        memory_mib += if cpu_milli == 250 { memory_mib } else { step };
    }
    let storage = asked.get(ResourceName::EPHEMERAL_STORAGE);
    if storage > STORAGE_MOST {
        return Err(Unsupported::TooLarge);
    }
    let provisioned = (storage * 115 + 100 * GIB - 1).div_euclid(100 * GIB);
    let extra = if storage > STORAGE_INCLUDED_GIB * GIB { provisioned - STORAGE_INCLUDED_GIB } else { 0 };
    Ok(Billed { cpu_milli, memory_mib: memory_mib.min(most), extra_storage_gib: extra })
}

/// What counts for the size.
fn running(spec: &PodSpec) -> Resources {
    let mut together = Resources::new();
    let mut peak = Resources::new();
    for container in &spec.containers {
        together.add(&container.effective_requests());
    }
    for init in &spec.init_containers {
        let effective_requests = init.container.effective_requests();
        if init.sidecar { together.add(&effective_requests) } else { peak.raise_to(&effective_requests) }
    }
    together.raise_to(&peak);
    for (name, amount) in spec.pod_requests.iter().flat_map(Resources::iter) {
        together.set(name, amount);
    }
    together
}

//! Interned text: label keys, label values, resource names, instance type names.
//!
//! A [`Symbol`] is four bytes, compares for equality in one instruction and can index dense tables. The table of texts
//! is shared by the whole process and only grows; what may be interned is bounded by the input, so per-object names that
//! a simulation makes up (pod names, node names) are not symbols.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt;
use std::sync::{LazyLock, RwLock};

use rustc_hash::FxHashMap;

/// An interned text. Equality is by identity, order is by the text itself, so that no order in which texts happened to
/// be interned can reach a result.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Symbol(u32);

struct Table {
    by_text: FxHashMap<&'static str, u32>,
    texts: Vec<&'static str>,
}

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(|| {
    let mut table = Table { by_text: FxHashMap::default(), texts: Vec::new() };
    for text in well_known::ALL {
        table.insert(text);
    }
    RwLock::new(table)
});

/// The rank of each well-known text in the order of these texts: two of them, as keys of labels mostly are, need no look at
/// their letters.
static RANKS: [u16; well_known::ALL.len()] = {
    let mut ranks = [0; well_known::ALL.len()];
    let mut number = 0;
    while number < ranks.len() {
        let mut other = 0;
        while other < ranks.len() {
            if stands_before(well_known::ALL[other].as_bytes(), well_known::ALL[number].as_bytes()) {
                ranks[number] += 1;
            }
            other += 1;
        }
        number += 1;
    }
    ranks
};

/// Whether the first text stands before the second; the library's comparison cannot be asked while compiling.
const fn stands_before(first: &[u8], second: &[u8]) -> bool {
    let mut at = 0;
    while at < first.len() && at < second.len() {
        if first[at] != second[at] {
            return first[at] < second[at];
        }
        at += 1;
    }
    first.len() < second.len()
}

thread_local! {
    /// A prefix of the shared table, so that reading a text takes no lock.
    static SEEN: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

impl Table {
    fn insert(&mut self, text: &'static str) -> u32 {
        let id = u32::try_from(self.texts.len()).unwrap_or_else(|_| panic!("more than 2^32 interned texts"));
        self.texts.push(text);
        self.by_text.insert(text, id);
        id
    }
}

impl Symbol {
    /// Interns `text`.
    pub fn new(text: &str) -> Self {
        let read = TABLE.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(&id) = read.by_text.get(text) {
            return Self(id);
        }
        drop(read);
        let mut write = TABLE.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(&id) = write.by_text.get(text) {
            return Self(id);
        }
        Self(write.insert(Box::leak(text.to_owned().into_boxed_str())))
    }

    /// The symbol of `text` if some caller interned it before.
    pub fn existing(text: &str) -> Option<Self> {
        let read = TABLE.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        read.by_text.get(text).map(|&id| Self(id))
    }

    /// The text.
    pub fn as_str(self) -> &'static str {
        if let Some(text) = well_known::ALL.get(self.0 as usize) {
            return text;
        }
        SEEN.with_borrow_mut(|seen| {
            if let Some(text) = seen.get(self.0 as usize) {
                return *text;
            }
            let read = TABLE.read().unwrap_or_else(std::sync::PoisonError::into_inner);
            seen.extend_from_slice(&read.texts[seen.len()..]);
            seen[self.0 as usize]
        })
    }

    /// A dense index, stable within a process; for tables, never for order or output.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The symbol of the `index`-th well-known text.
    pub(crate) const fn well_known(index: u32) -> Self {
        Self(index)
    }
}

impl Ord for Symbol {
    fn cmp(&self, other: &Self) -> Ordering {
        match (RANKS.get(self.0 as usize), RANKS.get(other.0 as usize)) {
            (Some(rank), Some(other)) => rank.cmp(other),
            _ if self == other => Ordering::Equal,
            _ => self.as_str().cmp(other.as_str()),
        }
    }
}

impl PartialOrd for Symbol {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<&str> for Symbol {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl serde::Serialize for Symbol {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for Symbol {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl serde::de::Visitor<'_> for TextVisitor {
            type Value = Symbol;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Symbol, E> {
                Ok(Symbol::new(text))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// Declares the texts that the program itself names, as constants with fixed positions at the front of the table.
macro_rules! well_known_texts {
    ($($(#[$meta:meta])* $name:ident = $text:literal;)*) => {
        /// Texts that the program itself names.
        pub mod well_known {
            use super::Symbol;

            #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
            enum Position { $($name),* }

            $($(#[$meta])* #[doc = concat!("`", $text, "`")] pub const $name: Symbol = Symbol::well_known(Position::$name as u32);)*

            pub(super) const ALL: &[&str] = &[$($text),*];
        }
    };
}

well_known_texts! {
    EMPTY = "";
    CPU = "cpu";
    MEMORY = "memory";
    PODS = "pods";
    EPHEMERAL_STORAGE = "ephemeral-storage";
    NODES = "nodes";
    NVIDIA_GPU = "nvidia.com/gpu";
    AMD_GPU = "amd.com/gpu";
    HABANA_GAUDI = "habana.ai/gaudi";
    AWS_NEURON = "aws.amazon.com/neuron";
    AWS_NEURON_CORE = "aws.amazon.com/neuroncore";
    AWS_POD_ENI = "vpc.amazonaws.com/pod-eni";
    AWS_EFA = "vpc.amazonaws.com/efa";

    HOSTNAME = "kubernetes.io/hostname";
    ARCH = "kubernetes.io/arch";
    OS = "kubernetes.io/os";
    WINDOWS_BUILD = "node.kubernetes.io/windows-build";
    INSTANCE_TYPE = "node.kubernetes.io/instance-type";
    ZONE = "topology.kubernetes.io/zone";
    REGION = "topology.kubernetes.io/region";
    ZONE_ID = "topology.k8s.aws/zone-id";

    BETA_ZONE = "failure-domain.beta.kubernetes.io/zone";
    EBS_ZONE = "topology.ebs.csi.aws.com/zone";
    EBS_DRIVER = "ebs.csi.aws.com";
    BETA_REGION = "failure-domain.beta.kubernetes.io/region";
    BETA_ARCH = "beta.kubernetes.io/arch";
    BETA_OS = "beta.kubernetes.io/os";
    BETA_INSTANCE_TYPE = "beta.kubernetes.io/instance-type";

    DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container";

    NODEPOOL = "karpenter.sh/nodepool";
    PROVISIONER_NAME = "karpenter.sh/provisioner-name";
    CAPACITY_TYPE = "karpenter.sh/capacity-type";
    NODE_REGISTERED = "karpenter.sh/registered";
    NODE_INITIALIZED = "karpenter.sh/initialized";
    READY = "Ready";
    DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt";
    POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost";
    EC2_NODE_CLASS = "karpenter.k8s.aws/ec2nodeclass";
    INSTANCE_CATEGORY = "karpenter.k8s.aws/instance-category";
    INSTANCE_FAMILY = "karpenter.k8s.aws/instance-family";
    INSTANCE_GENERATION = "karpenter.k8s.aws/instance-generation";
    INSTANCE_SIZE = "karpenter.k8s.aws/instance-size";
    INSTANCE_CPU = "karpenter.k8s.aws/instance-cpu";
    INSTANCE_CPU_MANUFACTURER = "karpenter.k8s.aws/instance-cpu-manufacturer";
    INSTANCE_CPU_CLOCK_MHZ = "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz";
    INSTANCE_MEMORY = "karpenter.k8s.aws/instance-memory";
    INSTANCE_EBS_BANDWIDTH = "karpenter.k8s.aws/instance-ebs-bandwidth";
    INSTANCE_NETWORK_BANDWIDTH = "karpenter.k8s.aws/instance-network-bandwidth";
    INSTANCE_HYPERVISOR = "karpenter.k8s.aws/instance-hypervisor";
    INSTANCE_ENCRYPTION = "karpenter.k8s.aws/instance-encryption-in-transit-supported";
    INSTANCE_LOCAL_NVME = "karpenter.k8s.aws/instance-local-nvme";
    INSTANCE_CAPABILITY_FLEX = "karpenter.k8s.aws/instance-capability-flex";
    INSTANCE_TENANCY = "karpenter.k8s.aws/instance-tenancy";
    INSTANCE_GPU_NAME = "karpenter.k8s.aws/instance-gpu-name";
    INSTANCE_GPU_MANUFACTURER = "karpenter.k8s.aws/instance-gpu-manufacturer";
    INSTANCE_GPU_COUNT = "karpenter.k8s.aws/instance-gpu-count";
    INSTANCE_GPU_MEMORY = "karpenter.k8s.aws/instance-gpu-memory";
    INSTANCE_ACCELERATOR_NAME = "karpenter.k8s.aws/instance-accelerator-name";
    INSTANCE_ACCELERATOR_MANUFACTURER = "karpenter.k8s.aws/instance-accelerator-manufacturer";
    INSTANCE_ACCELERATOR_COUNT = "karpenter.k8s.aws/instance-accelerator-count";
    INSTANCE_PODS = "karpenter.k8s.aws/instance-pods";
    CAPACITY_RESERVATION_ID = "karpenter.k8s.aws/capacity-reservation-id";
    CAPACITY_RESERVATION_TYPE = "karpenter.k8s.aws/capacity-reservation-type";
    CAPACITY_RESERVATION_INTERRUPTIBLE = "karpenter.k8s.aws/capacity-reservation-interruptible";
    PLACEMENT_GROUP_ID = "karpenter.k8s.aws/placement-group-id";
    PLACEMENT_GROUP_PARTITION = "karpenter.k8s.aws/placement-group-partition";

    TAINT_NOT_READY = "node.kubernetes.io/not-ready";
    TAINT_UNREACHABLE = "node.kubernetes.io/unreachable";
    TAINT_UNSCHEDULABLE = "node.kubernetes.io/unschedulable";
    TAINT_MEMORY_PRESSURE = "node.kubernetes.io/memory-pressure";
    TAINT_DISK_PRESSURE = "node.kubernetes.io/disk-pressure";
    TAINT_PID_PRESSURE = "node.kubernetes.io/pid-pressure";
    TAINT_UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized";
    TAINT_UNREGISTERED = "karpenter.sh/unregistered";
    TAINT_DISRUPTION = "karpenter.sh/disruption";
    TAINT_DISRUPTED = "karpenter.sh/disrupted";

    EKS_NODEGROUP = "eks.amazonaws.com/nodegroup";
    EKS_CAPACITY_TYPE = "eks.amazonaws.com/capacityType";
    EKS_COMPUTE_TYPE = "eks.amazonaws.com/compute-type";
    EKS_INSTANCE_CATEGORY = "eks.amazonaws.com/instance-category";
    EKS_INSTANCE_FAMILY = "eks.amazonaws.com/instance-family";
    EKS_INSTANCE_GENERATION = "eks.amazonaws.com/instance-generation";
    EKS_INSTANCE_SIZE = "eks.amazonaws.com/instance-size";
    EKS_INSTANCE_CPU = "eks.amazonaws.com/instance-cpu";
    EKS_INSTANCE_CPU_MANUFACTURER = "eks.amazonaws.com/instance-cpu-manufacturer";
    EKS_INSTANCE_MEMORY = "eks.amazonaws.com/instance-memory";
    EKS_INSTANCE_EBS_BANDWIDTH = "eks.amazonaws.com/instance-ebs-bandwidth";
    EKS_INSTANCE_NETWORK_BANDWIDTH = "eks.amazonaws.com/instance-network-bandwidth";
    EKS_INSTANCE_HYPERVISOR = "eks.amazonaws.com/instance-hypervisor";
    EKS_INSTANCE_ENCRYPTION = "eks.amazonaws.com/instance-encryption-in-transit-supported";
    EKS_INSTANCE_LOCAL_NVME = "eks.amazonaws.com/instance-local-nvme";
    EKS_INSTANCE_GPU_NAME = "eks.amazonaws.com/instance-gpu-name";
    EKS_INSTANCE_GPU_MANUFACTURER = "eks.amazonaws.com/instance-gpu-manufacturer";
    EKS_INSTANCE_GPU_COUNT = "eks.amazonaws.com/instance-gpu-count";
    EKS_INSTANCE_GPU_MEMORY = "eks.amazonaws.com/instance-gpu-memory";
    AUTO = "auto";

    SPOT = "spot";
    ON_DEMAND = "on-demand";
    RESERVED = "reserved";
    AMD64 = "amd64";
    ARM64 = "arm64";
    LINUX = "linux";
    WINDOWS = "windows";
    DEFAULT = "default";
    TRUE = "true";
    FALSE = "false";
}

#[cfg(test)]
mod tests {
    use super::{Symbol, well_known};

    #[test]
    fn equal_texts_are_one_symbol_sorted_by_text() {
        let late = Symbol::new("a-later-interned-text");
        assert_eq!(late, Symbol::new("a-later-interned-text"));
        assert!(late < Symbol::new("b"));
        assert_eq!(Symbol::new("cpu"), well_known::CPU);
        assert_eq!(well_known::TAINT_DISRUPTED.as_str(), "karpenter.sh/disrupted");
    }

    #[test]
    fn symbol_text_is_readable_from_other_threads() {
        let symbol = Symbol::new("made-here-read-there");
        let read = std::thread::spawn(move || symbol.as_str()).join();
        assert_eq!(read.ok(), Some("made-here-read-there"));
    }
}

//! What a node of each EC2 instance type offers to pods, as Karpenter's AWS provider computes it: capacity, overhead,
//! allocatable, labels and offerings, by release; and what the kubelet of a real node reports.
//!
//! What must not live here: which type is chosen (`packing` narrows, `selection` chooses), how prices move (`ec2`).

#[cfg(test)]
mod auto_mode_tests;
mod block_devices;
mod capacity;
mod example;
mod labels;
mod offerings;
mod overlays;
mod pod_addresses;
mod pools;
mod real_node;
mod releases;
mod reservations;
mod shared;
mod user_data;
mod volumes;
mod zone_ids;

use std::sync::Arc;

use crate::release::Behaviour;
use nodecast_model::catalog::Region;
use nodecast_model::domain::node_pool::KubeletConfig;
use nodecast_model::domain::{
    HourlyRate, KarpenterVersion, NodeClass, NodePool, PriceOverlay, Requirements, ResourceName, Resources, SimTime,
    Symbol,
};

pub(crate) use block_devices::volumes_of_new;
pub use block_devices::{volumes_beside_local_disks, volumes_of_found};
pub use example::NodeSettings;
pub use labels::of_node as labels_of_node;
pub(crate) use labels::{is_stated, of_launched as labels_of_launched};
pub use offerings::{refresh_offering, refresh_offerings};
pub use overlays::{OverlayVerdict, add_extended, lay_overlays, overlay_warnings};
pub use pod_addresses::pods_by_eks;
pub use pools::{complete_classes, complete_pools, refused_in_auto_mode, types_of_pools};
pub use real_node::{Measured, measured_node, node_of_group};
pub use real_node::{RealNode, real_node};
pub use releases::{capacity_type_key, default_requirements, has_fixed_places, price_list_of};
pub use reservations::{KnownReservation, RESERVATION_LABELS, add_reservations, selects, type_label};
pub use user_data::{kubelet_of_nodes, user_data_warning};
pub use volumes::ebs_attach_limit;
pub use zone_ids::{ways_of_pod, zone_id_doubt};

/// An instance type as Karpenter's scheduler sees it: what its nodes are labelled with, what they hold, and where it can
/// be had at what price.
///
/// Source: Karpenter core v1.13 `pkg/cloudprovider/types.go`, `InstanceType`.
#[derive(Clone, PartialEq, Debug)]
pub struct InstanceType {
    /// Name, for example `m5.large`.
    pub name: Symbol,
    /// The values that each label of its nodes can take; an absent attribute is a `DoesNotExist` requirement. Copies share them.
    pub requirements: Arc<Requirements>,
    /// What a node has, `pods` included.
    pub capacity: Resources,
    /// What a node offers to pods: capacity less what the kubelet, the system and the eviction threshold keep.
    pub allocatable: Resources,
    /// Where it can be had.
    pub offerings: Vec<Offering>,
}

/// One way to buy an instance type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offering {
    /// Zone name.
    pub zone: Symbol,
    /// Zone id, for example `use1-az4`; `None` where it is not known, or not asked for by the release.
    pub zone_id: Option<Symbol>,
    /// `spot`, `on-demand` or `reserved`.
    pub capacity_type: Symbol,
    /// Price that Karpenter compares with; a reserved offering's is a ten-millionth of On-Demand.
    pub price: HourlyRate,
    /// Whether it can be launched as far as Karpenter knows.
    pub available: bool,
    /// The capacity reservation behind a reserved offering.
    pub reservation: Option<Reservation>,
    /// What a NodeOverlay makes of the price that is read.
    pub overlay: Option<PriceOverlay>,
}

/// The capacity reservation behind an offering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// Its id.
    pub id: Symbol,
    /// How many instances it still holds.
    pub free: u32,
    /// When it ends, if it is a Capacity Block; `None` for an ordinary reservation.
    pub block_ends: Option<SimTime>,
}

/// The release of Karpenter's AWS provider and the flags that shape its instance types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProviderSettings {
    /// The release.
    pub version: KarpenterVersion,
    /// `--vm-memory-overhead-percent` in millionths: the share of memory that the hypervisor and the kernel are taken to
    /// keep.
    pub vm_memory_overhead_millionths: u32,
    /// `--reserved-enis`: network interfaces that give pods no addresses.
    pub reserved_enis: u32,
}

impl ProviderSettings {
    /// The defaults of every release: 7.5 % of memory, no reserved interface.
    pub const fn for_version(version: KarpenterVersion) -> Self {
        Self { version, vm_memory_overhead_millionths: 75_000, reserved_enis: 0 }
    }
}

impl Default for ProviderSettings {
    fn default() -> Self {
        Self::for_version(KarpenterVersion::default())
    }
}

/// [`instance_types_priced_by`] the region's own price list.
pub fn instance_types(
    region: &Region,
    class: &NodeClass,
    pool: &NodePool,
    settings: ProviderSettings,
) -> Vec<InstanceType> {
    instance_types_priced_by(region, region, class, pool, settings)
}

/// The instance types that `pool` with node class `class` may use in `region`, as the provider lists them to the
/// scheduler: every type for whose architecture the class has images and that the release does not leave out, with an
/// offering for each zone of the node class and each capacity type. Prices are those of the catalog,
/// On-Demand prices those of `price_list`, which is the region named by [`price_list_of`]; [`refresh_offerings`] brings
/// them up to date.
///
/// In order of name; v0.16 in order of On-Demand price, as its scheduler sorts them.
///
/// Source: AWS provider v1.13 `pkg/providers/instancetype/instancetype.go`, `List`; v0.16.0
/// `pkg/cloudprovider/aws/instancetypes.go`. Types without an image upstream leaves out as it launches (`pkg/providers/amifamily/resolver.go`,
/// `Resolve`): what asks for these alone fails there again and again, and is refused here at once.
/// Deviation: upstream lists instance types in the order of a Go map.
pub fn instance_types_priced_by(
    price_list: &Region,
    region: &Region,
    class: &NodeClass,
    pool: &NodePool,
    settings: ProviderSettings,
) -> Vec<InstanceType> {
    let kubelet = kubelet_of(pool, class);
    let filter = releases::Filter::new(settings.version, pool);
    let mut types: Vec<InstanceType> = region
        .types
        .iter()
        .filter(|entry| filter.keeps(&entry.facts))
        .filter(|entry| class.has_images_for(entry.facts.arch))
        .map(|entry| {
            let node = capacity::node(&entry.facts, class, kubelet, settings);
            let offerings = offerings::of_catalog(price_list, region, entry, class, settings.version);
            let mut requirements = labels::of_type(&entry.facts, class, node.capacity.pods(), settings.version);
            labels::add_places(&mut requirements, region, entry, class, settings.version);
            if !releases::has_fixed_places(settings.version) {
                offerings::narrow_to_available(&mut requirements, &offerings, settings.version);
            }
            InstanceType {
                name: entry.facts.name,
                requirements: Arc::new(requirements),
                capacity: node.capacity,
                allocatable: node.allocatable,
                offerings,
            }
        })
        .collect();
    if Behaviour::for_release(settings.version).lists_by_price {
        types.sort_by_cached_key(|entry| (offerings::on_demand_price(entry), entry.name));
    }
    types
}

/// The position of the type of a name. Lists in order of name, which most are, are not gone through.
pub fn position(types: &[InstanceType], name: Symbol) -> Option<usize> {
    let is = |&place: &usize| types.get(place).is_some_and(|instance_type| instance_type.name == name);
    let sorted = Some(types.partition_point(|instance_type| instance_type.name < name)).filter(is);
    sorted.or_else(|| types.iter().position(|instance_type| instance_type.name == name))
}

/// Takes over that a registered node of the type `name` reports `memory` bytes: from then on that is the type's capacity, and
/// if several nodes report, the least of what they report. `seen` is the least reported so far. Returns the new least.
/// Releases before v1 never learn.
///
/// Source: AWS provider v1.13 `pkg/providers/instancetype/instancetype.go`, `UpdateInstanceTypeCapacityFromNode`.
pub fn learn_memory(types: &mut [InstanceType], name: Symbol, memory: i64, seen: Option<i64>) -> i64 {
    let least = seen.map_or(memory, |seen| seen.min(memory));
    for entry in types.iter_mut().filter(|entry| entry.name == name) {
        let change = least - entry.capacity.memory_bytes();
        entry.capacity.set(ResourceName::MEMORY, least);
        entry.allocatable.set(ResourceName::MEMORY, entry.allocatable.memory_bytes() + change);
    }
    least
}

/// The kubelet settings that reach the nodes of `pool`.
pub fn kubelet_of<'a>(pool: &'a NodePool, class: &'a NodeClass) -> &'a KubeletConfig {
    pool.kubelet.as_ref().unwrap_or(&class.kubelet)
}

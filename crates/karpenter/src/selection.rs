//! From the instance types that a node claim may have to the launch request that Karpenter sends: filters, price order,
//! truncation, allocation strategy.
//!
//! What must not live here: how EC2 answers the request (`ec2`), what a failed launch leads to (actors).

mod current;
mod legacy;
mod open_types;
pub mod price;

use smallvec::SmallVec;

use crate::instance_types::{InstanceType, Offering, capacity_type_key};
use crate::packing::MinValuesPolicy;
use crate::release::Behaviour;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{
    AllocationStrategy, HourlyRate, KarpenterVersion, Requirements, ResourceName, Resources, Symbol,
};

pub use open_types::OpenTypes;

/// What is to be launched.
#[derive(Clone, Copy, Debug)]
pub struct LaunchView<'a> {
    /// The release to reproduce.
    pub karpenter: KarpenterVersion,
    /// The claim's requirements.
    pub requirements: &'a Requirements,
    /// Requests of its daemons and pods together.
    pub requests: &'a Resources,
    /// The instance types that the claim may have, with prices and availability as Karpenter now knows them.
    pub types: &'a [Choice<'a>],
    /// What a `minValues` that can no longer be met leads to.
    pub min_values: MinValuesPolicy,
}

/// An instance type that a claim may have, with what a launch asks of it whatever its prices.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The type.
    pub entry: &'a InstanceType,
    /// Whether its labels can satisfy the claim's requirements.
    pub compatible: bool,
    /// Whether it is bare metal or has an accelerator.
    pub exotic: bool,
}

impl<'a> Choice<'a> {
    /// A type for a claim with these requirements.
    pub fn new(entry: &'a InstanceType, requirements: &Requirements) -> Self {
        Self { entry, compatible: is_compatible(entry, requirements), exotic: is_exotic(entry) }
    }
}

/// Whether the labels of a type can satisfy requirements.
pub fn is_compatible(entry: &InstanceType, requirements: &Requirements) -> bool {
    requirements.intersects(&entry.requirements).is_ok()
}

/// Whether a type is bare metal or has an accelerator.
pub fn is_exotic(entry: &InstanceType) -> bool {
    const ACCELERATORS: [Symbol; 5] = [
        well_known::AWS_NEURON,
        well_known::AWS_NEURON_CORE,
        well_known::AMD_GPU,
        well_known::NVIDIA_GPU,
        well_known::HABANA_GAUDI,
    ];
    let size = entry.name.as_str().split_once('.').map_or("", |(_, size)| size);
    size.contains("metal") || ACCELERATORS.iter().any(|&name| entry.capacity.get(ResourceName(name)) != 0)
}

/// Whether a launch leaves a type out as long as another type of the claim is not of this kind: bare metal and accelerators, before
/// v0.24 every family that is not common.
pub fn is_last_resort(karpenter: KarpenterVersion, entry: &InstanceType) -> bool {
    let behaviour = Behaviour::for_release(karpenter);
    match behaviour.weighs_open_types {
        true => is_exotic(entry),
        false => behaviour.prefers_generic && !legacy::is_generic(entry),
    }
}

/// Whether a claim with these requirements may be launched as a [last resort](is_last_resort) while other types are left.
pub fn keeps_last_resorts(karpenter: KarpenterVersion, requirements: &Requirements) -> bool {
    requirements.has_min_values() && !Behaviour::for_release(karpenter).filters_all_for_min_values
}

/// What Karpenter asks EC2 for: one instance from any of the overrides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaunchRequest {
    /// `spot`, `on-demand` or `reserved`: one request never mixes them, and nothing falls back by itself.
    pub capacity_type: Symbol,
    /// How EC2 is to choose.
    pub strategy: AllocationStrategy,
    /// `default` or `dedicated`.
    pub tenancy: Symbol,
    /// The pools to choose from: types in Karpenter's order, each with its zones.
    pub overrides: Vec<Override>,
    /// What each filter left out, in the order of the filters.
    pub left_out: Vec<LeftOut>,
    /// Whether On-Demand is asked for although Spot is allowed, with fewer than five types to choose from: Karpenter
    /// warns of that.
    pub inflexible: bool,
}

impl LaunchRequest {
    /// The lowest price that is asked for.
    pub fn cheapest(&self) -> Option<HourlyRate> {
        self.overrides.iter().map(|offer| offer.price).min()
    }
}

/// One pool of a launch request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Override {
    /// Instance type.
    pub instance_type: Symbol,
    /// Zone.
    pub zone: Symbol,
    /// The price that Karpenter knows.
    pub price: HourlyRate,
    /// Position of the type in Karpenter's order, 0 first. EC2 heeds it only with a prioritized strategy.
    pub priority: u32,
    /// The capacity reservation to use.
    pub reservation: Option<Symbol>,
}

/// How many instance types a filter left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// The filter.
    pub by: Filter,
    /// How many.
    pub types: usize,
}

/// What may leave an instance type out of a launch request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filter {
    /// It does not meet the requirements, is too small, or has no available offering.
    CompatibleAvailable,
    /// Its reservations are Capacity Blocks and ordinary ones cost less, or the other way round.
    CapacityReservationType,
    /// It has a Capacity Block, and another type has one that costs less.
    CapacityBlock,
    /// Another type has a reserved offering and it has none.
    ReservedOffering,
    /// It is bare metal or has an accelerator, and others have not (before v1: it is not of a common family).
    Exotic,
    /// All of its offerings are Spot and dearer than the cheapest On-Demand one.
    SpotOffering,
    /// It stands behind the 60th (before v0.22 the 20th) in price.
    Truncation,
}

impl Filter {
    /// The filter's name in Karpenter's logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CompatibleAvailable => "compatible-available-filter",
            Self::CapacityReservationType => "capacity-reservation-type-filter",
            Self::CapacityBlock => "capacity-block-filter",
            Self::ReservedOffering => "reserved-offering-filter",
            Self::Exotic => "exotic-instance-filter",
            Self::SpotOffering => "spot-offering-filter",
            Self::Truncation => "truncation",
        }
    }
}

/// Why nothing is asked for. All of these count as insufficient capacity: a current Karpenter deletes the claim, and its
/// pods come up again in the next pass.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SelectionError {
    /// A filter left no instance type.
    #[error("no instance type is left after {}", .0.as_str())]
    NoInstanceTypes(Filter),
    /// The types that are kept have too few values of a label.
    #[error("minValues of \"{key}\" asks for {wanted} values, the {types} cheapest instance types have {found}")]
    MinValues {
        /// The label.
        key: Symbol,
        /// Values asked for.
        wanted: u32,
        /// Values found.
        found: usize,
        /// Types kept.
        types: usize,
    },
    /// No type that is kept has an offering to ask for.
    #[error("no capacity offerings are currently available given the constraints")]
    NoOfferings,
}

/// The request that Karpenter sends for a claim.
///
/// Source: AWS provider v1.13 `pkg/providers/instance/instance.go`, `Create`; v0.16.0 and v0.18.1
/// `pkg/cloudprovider/aws/instance.go`; v0.22.1 `pkg/cloudprovider/instance.go`.
///
/// # Errors
/// If no instance type or no offering is left.
pub fn select(view: &LaunchView<'_>) -> Result<LaunchRequest, SelectionError> {
    if view.behaviour().weighs_open_types { current::select(view) } else { legacy::select(view) }
}

/// [`select`] among the types at the positions `types` of `list` rather than those of the view, of which `open` has learnt
/// everything, as a current Karpenter does it.
///
/// # Errors
/// As [`select`].
pub fn select_known(
    view: &LaunchView<'_>,
    list: &[InstanceType],
    types: &[u32],
    open: &OpenTypes,
) -> Result<LaunchRequest, SelectionError> {
    current::select_known(view, list, types, open)
}

/// An instance type on its way through the filters, with the available and compatible offerings that are left of it.
struct Candidate<'a> {
    entry: &'a InstanceType,
    offerings: SmallVec<[&'a Offering; 6]>,
}

impl Candidate<'_> {
    /// The lowest price of its offerings.
    fn cheapest(&self) -> Option<HourlyRate> {
        self.offerings.iter().map(|offering| offering.price).min()
    }
}

impl LaunchView<'_> {
    /// What the release does.
    fn behaviour(&self) -> &'static Behaviour {
        Behaviour::for_release(self.karpenter)
    }

    /// The key under which the requirements speak of the capacity type.
    fn capacity_type_key(&self) -> Symbol {
        capacity_type_key(self.karpenter)
    }

    /// Whether the requirements allow `capacity_type`.
    fn allows(&self, capacity_type: Symbol) -> bool {
        self.requirements.get(self.capacity_type_key()).is_none_or(|requirement| requirement.has(capacity_type))
    }

    /// Whether exotic types and expensive Spot are left out.
    fn filters_all(&self) -> bool {
        !keeps_last_resorts(self.karpenter, self.requirements)
    }

    /// Whether a type meets the requirements and holds the requests.
    fn takes(&self, choice: &Choice<'_>) -> bool {
        choice.compatible && self.requests.fits(&choice.entry.allocatable)
    }

    /// The types that meet the requirements, hold the requests and have an available offering within the requirements.
    fn compatible_available<'a>(&'a self, left_out: &mut Vec<LeftOut>) -> Result<Vec<Candidate<'a>>, SelectionError> {
        let terms = price::Terms::new(self.requirements, self.capacity_type_key());
        let open = |offering: &&Offering| offering.available && terms.allow(offering);
        let kept: Vec<Candidate<'a>> = self
            .types
            .iter()
            .filter(|instance_type| self.takes(instance_type))
            .map(|&Choice { entry, .. }| Candidate { entry, offerings: entry.offerings.iter().filter(open).collect() })
            .filter(|candidate| !candidate.offerings.is_empty())
            .collect();
        note(left_out, Filter::CompatibleAvailable, self.types.len() - kept.len());
        if kept.is_empty() { Err(SelectionError::NoInstanceTypes(Filter::CompatibleAvailable)) } else { Ok(kept) }
    }

    /// Whether Karpenter warns that On-Demand is asked for with little choice.
    fn is_inflexible(&self, capacity_type: Symbol, types: usize) -> bool {
        capacity_type == well_known::ON_DEMAND && self.allows(well_known::SPOT) && types < FLEXIBLE_FROM
    }
}

/// Every offering of `capacity_type`, in the order of the candidates.
fn overrides(candidates: &[Candidate<'_>], capacity_type: Symbol) -> Result<Vec<Override>, SelectionError> {
    let mut overrides = Vec::new();
    for (candidate, priority) in candidates.iter().zip(0..) {
        let asked_for = candidate.offerings.iter().filter(|offering| offering.capacity_type == capacity_type);
        overrides.extend(asked_for.map(|offering| Override {
            instance_type: candidate.entry.name,
            zone: offering.zone,
            price: offering.price,
            priority,
            reservation: offering.reservation.map(|reservation| reservation.id),
        }));
    }
    if overrides.is_empty() { Err(SelectionError::NoOfferings) } else { Ok(overrides) }
}

/// The capacity type to ask for: the first of `preferred` that some candidate offers, else On-Demand.
fn preferred_capacity_type(candidates: &[Candidate<'_>], preferred: &[Symbol]) -> Symbol {
    let is_offered = |wanted: Symbol| {
        let mut offerings = candidates.iter().flat_map(|candidate| &candidate.offerings);
        offerings.any(|offering| offering.capacity_type == wanted)
    };
    let chosen = preferred.iter().copied().find(|&wanted| is_offered(wanted));
    chosen.unwrap_or(well_known::ON_DEMAND)
}

/// From how many types on a request counts as flexible.
const FLEXIBLE_FROM: usize = 5;

/// Keeps the first `limit` candidates.
fn truncate<T>(candidates: &mut Vec<T>, limit: usize, left_out: &mut Vec<LeftOut>) {
    note(left_out, Filter::Truncation, candidates.len().saturating_sub(limit));
    candidates.truncate(limit);
}

fn note(left_out: &mut Vec<LeftOut>, by: Filter, types: usize) {
    if types > 0 {
        left_out.push(LeftOut { by, types });
    }
}

#[cfg(test)]
mod fixture;

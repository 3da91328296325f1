//! NodeOverlays over instance types: what Karpenter believes of prices and extended resources. What EC2 bills stays as it is.
//!
//! Source: Karpenter core v1.14 `pkg/controllers/nodeoverlay/controller.go` and `store.go`.
//! Deviation: overlays apply from the start, and at once when overlays, pools, or node classes change. Upstream, a
//! pool launches nothing before the first evaluation of the overlays.

use std::collections::BTreeMap;

use super::InstanceType;
use crate::release::Behaviour;
use crate::selection::price::Terms;
use nodecast_model::domain::{
    KarpenterVersion, NodeOverlay, NodePool, PriceOverlay, Requirement, Requirements, ResourceName, Resources, Symbol,
    well_known,
};

/// What became of an overlay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverlayVerdict {
    /// It counts for so many instance types, those of each pool by themselves; for none where it selects none.
    Counts(usize),
    /// `Ready` is false (`Conflict`): another overlay of its weight states the same of this type in this pool, and it counts nowhere.
    Conflict {
        /// The other.
        with: Symbol,
        /// The pool.
        pool: Symbol,
        /// The type.
        instance_type: Symbol,
    },
}

/// What overlays say of one type of one pool so far.
#[derive(Default)]
struct Update {
    /// By the position of the offering, what becomes of its price.
    prices: BTreeMap<usize, Price>,
    capacity: Resources,
    /// The last overlay that stated resources.
    last: Option<Last>,
}

struct Price {
    change: PriceOverlay,
    /// The last overlay that selects the offering, whether or not its price counts, and its weight.
    last: (i32, Symbol),
}

struct Last {
    weight: i32,
    name: Symbol,
    resources: Vec<ResourceName>,
}

/// Lays overlays over the types of `pools`, which stand by the same position, and says what became of each, in the order of
/// `overlays`. A release without NodeOverlays heeds none.
pub fn lay_overlays(
    version: KarpenterVersion,
    overlays: &[NodeOverlay],
    pools: &[NodePool],
    types: &mut [Vec<InstanceType>],
) -> Vec<(Symbol, OverlayVerdict)> {
    let behaviour = Behaviour::for_release(version);
    if !behaviour.knows_node_overlays {
        return Vec::new();
    }
    let mut updates: BTreeMap<(usize, usize), Update> = BTreeMap::new();
    let mut verdicts = BTreeMap::new();
    for overlay in by_weight(overlays) {
        let selected = selected(overlay, pools, types);
        let conflict = selected.iter().find_map(|(place, offerings)| {
            let with = updates.get(place)?.conflict(overlay, offerings)?;
            let (pool, instance_type) = (pools[place.0].name, types[place.0][place.1].name);
            Some(OverlayVerdict::Conflict { with, pool, instance_type })
        });
        let verdict = conflict.unwrap_or(OverlayVerdict::Counts(selected.len()));
        verdicts.insert(overlay.name, verdict);
        if conflict.is_none() {
            for (place, offerings) in selected {
                updates.entry(place).or_default().take(overlay, &offerings, behaviour.last_overlay_states_capacity);
            }
        }
    }
    for ((pool, at), update) in updates {
        update.apply(&mut types[pool][at]);
    }
    overlays.iter().filter_map(|overlay| Some((overlay.name, *verdicts.get(&overlay.name)?))).collect()
}

/// What is to be said of overlays that came to this under a release.
pub fn overlay_warnings(
    version: KarpenterVersion,
    overlays: &[NodeOverlay],
    verdicts: &[(Symbol, OverlayVerdict)],
) -> Vec<String> {
    let mut warnings = Vec::new();
    if overlays.is_empty() {
        return warnings;
    }
    if !Behaviour::for_release(version).knows_node_overlays {
        warnings.push(format!(
            "Karpenter {version} does not know NodeOverlays, which came with v1.7: instance types keep their own prices and capacity"
        ));
        return warnings;
    }
    for (name, verdict) in verdicts {
        match verdict {
            OverlayVerdict::Counts(0) => {
                warnings.push(format!("NodeOverlay {name} selects no instance type of any NodePool: it changes nothing"));
            }
            OverlayVerdict::Counts(_) => {}
            OverlayVerdict::Conflict { with, pool, instance_type } => warnings.push(format!(
                "NodeOverlay {name} is not ready (`Conflict`) and counts nowhere: {with}, of the same weight, states the same of \
                 {instance_type} in NodePool {pool}; give one of them another `weight`"
            )),
        }
    }
    if is_undecided(version) && some_share_a_resource(overlays) {
        warnings.push(format!(
            "Karpenter {version}: which of two weights counts for one resource changed between v1.9 and v1.14, with which release is \
             not known: the greater does here"
        ));
    }
    warnings
}

/// Whether it is not known which of two weights counts for one resource: #2767 came after v1.8 and before v1.14.
fn is_undecided(version: KarpenterVersion) -> bool {
    version.is_since(1, 9) && !version.is_since(1, 14)
}

/// Whether two overlays of different weight state one resource.
fn some_share_a_resource(overlays: &[NodeOverlay]) -> bool {
    overlays.iter().enumerate().any(|(at, one)| {
        let shares = |other: &NodeOverlay| {
            other.weight != one.weight && one.capacity.iter().any(|(name, _)| other.capacity.find(name).is_some())
        };
        overlays[at + 1..].iter().any(shares)
    })
}

/// The heaviest first; of equal weight the one whose name comes later.
fn by_weight(overlays: &[NodeOverlay]) -> Vec<&NodeOverlay> {
    let mut ordered: Vec<&NodeOverlay> = overlays.iter().collect();
    ordered.sort_by(|one, other| other.weight.cmp(&one.weight).then_with(|| other.name.cmp(&one.name)));
    ordered
}

/// The types that an overlay selects, as positions of pool and type, each with the positions of the offerings that it selects.
fn selected(
    overlay: &NodeOverlay,
    pools: &[NodePool],
    types: &[Vec<InstanceType>],
) -> Vec<((usize, usize), Vec<usize>)> {
    let wanted: Requirements = overlay.requirements.iter().cloned().collect();
    let terms = Terms::new(&wanted, well_known::CAPACITY_TYPE);
    let mut selected = Vec::new();
    for (pool_at, (pool, list)) in pools.iter().zip(types).enumerate() {
        let mut of_pool = Requirements::from_labels(&pool.labels);
        of_pool.add(Requirement::equals(well_known::NODEPOOL, pool.name));
        for (at, entry) in list.iter().enumerate() {
            let mut pool = of_pool.clone();
            pool.extend(&entry.requirements);
            if pool.compatible(&wanted, |_| false).is_err() {
                continue;
            }
            let offerings = entry.offerings.iter().enumerate().filter(|(_, offering)| terms.allow(offering));
            let offerings: Vec<usize> = offerings.map(|(position, _)| position).collect();
            if !offerings.is_empty() {
                selected.push(((pool_at, at), offerings));
            }
        }
    }
    selected
}

impl Update {
    /// The overlay of the same weight that states the same.
    fn conflict(&self, overlay: &NodeOverlay, offerings: &[usize]) -> Option<Symbol> {
        let priced = offerings.iter().filter(|_| overlay.price.is_some()).filter_map(|at| self.prices.get(at));
        let by_price = priced.map(|item| item.last).find(|(weight, _)| *weight == overlay.weight).map(|(_, name)| name);
        let stated = |last: &&Last| {
            last.weight == overlay.weight
                && overlay.capacity.iter().any(|(resource, _)| last.resources.contains(&resource))
        };
        by_price.or_else(|| self.last.as_ref().filter(stated).map(|last| last.name))
    }

    /// Takes over what an overlay states and no heavier one has.
    fn take(&mut self, overlay: &NodeOverlay, offerings: &[usize], last_counts: bool) {
        if let Some(change) = overlay.price {
            let last = (overlay.weight, overlay.name);
            for &at in offerings {
                self.prices.entry(at).and_modify(|price| price.last = last).or_insert(Price { change, last });
            }
        }
        if overlay.capacity.is_empty() {
            return;
        }
        for (resource, amount) in overlay.capacity.iter() {
            if last_counts || self.capacity.find(resource).is_none() {
                self.capacity.set(resource, amount);
            }
        }
        let resources = overlay.capacity.iter().map(|(resource, _)| resource).collect();
        self.last = Some(Last { weight: overlay.weight, name: overlay.name, resources });
    }

    fn apply(self, entry: &mut InstanceType) {
        for (at, price) in self.prices {
            let offering = &mut entry.offerings[at];
            offering.overlay = Some(price.change);
            offering.price = price.change.apply(offering.price);
        }
        add_extended(&mut entry.capacity, &mut entry.allocatable, &self.capacity);
    }
}

/// Adds extended resources to what a node has and offers. Huge pages are taken from its memory.
pub fn add_extended(capacity: &mut Resources, allocatable: &mut Resources, extended: &Resources) {
    for (name, amount) in extended.iter() {
        capacity.set(name, amount);
        allocatable.set(name, amount);
        if name.0.as_str().starts_with("hugepages-") {
            let left = (allocatable.memory_bytes() - amount).max(0);
            allocatable.set(ResourceName::MEMORY, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OverlayVerdict, lay_overlays};
    use crate::instance_types::{InstanceType, Offering, ProviderSettings, instance_types, refresh_offerings};
    use crate::testing;
    use nodecast_model::domain::{
        HourlyRate, KarpenterVersion, NodeClass, NodeOverlay, NodePool, PriceOverlay, Requirement, ResourceName,
        Resources, Symbol, well_known,
    };

    fn fuse() -> ResourceName {
        ResourceName(Symbol::new("smarter-devices/fuse"))
    }

    /// An overlay that selects types of a family.
    fn overlay(name: &str, weight: i32, family: &str) -> NodeOverlay {
        let family = Requirement::equals(well_known::INSTANCE_FAMILY, Symbol::new(family));
        let (name, price, capacity) = (Symbol::new(name), None, Resources::new());
        NodeOverlay { name, weight, requirements: vec![family], price, capacity }
    }

    fn priced(node_overlay: NodeOverlay, adjustment: &str) -> NodeOverlay {
        NodeOverlay { price: PriceOverlay::parse_adjustment(adjustment), ..node_overlay }
    }

    fn with_fuse(node_overlay: NodeOverlay, count: i64) -> NodeOverlay {
        NodeOverlay { capacity: Resources::new().with(fuse(), count), ..node_overlay }
    }

    fn laid(
        version: KarpenterVersion,
        pools: &[NodePool],
        overlays: &[NodeOverlay],
    ) -> (Vec<Vec<InstanceType>>, Vec<(Symbol, OverlayVerdict)>) {
        let region = testing::region(&["m5.large", "m5.xlarge", "c5.large"]);
        let class = NodeClass::named("default");
        let list = |pool: &NodePool| instance_types(&region, &class, pool, ProviderSettings::for_version(version));
        let mut types: Vec<Vec<InstanceType>> = pools.iter().map(list).collect();
        let priced = |offering: &Offering| match offering.capacity_type {
            well_known::SPOT => HourlyRate::parse("0.04"),
            _ => HourlyRate::parse("0.1"),
        };
        types.iter_mut().for_each(|list| refresh_offerings(list, version, |_, item| (priced(item), false)));
        let verdicts = lay_overlays(version, overlays, pools, &mut types);
        (types, verdicts)
    }

    fn one(overlays: &[NodeOverlay]) -> (Vec<InstanceType>, Vec<OverlayVerdict>) {
        let (mut types, verdicts) = laid(KarpenterVersion::V1_14, &[NodePool::named("default")], overlays);
        (types.remove(0), verdicts.into_iter().map(|(_, key)| key).collect())
    }

    fn named<'t>(types: &'t [InstanceType], name: &str) -> &'t InstanceType {
        types.iter().find(|instance_type| instance_type.name.as_str() == name).unwrap()
    }

    /// On-Demand and Spot prices of a type in its first zone, as shares of those without overlays.
    fn shares(types: &[InstanceType], name: &str) -> [i64; 2] {
        let (plain, _) = one(&[]);
        [well_known::ON_DEMAND, well_known::SPOT].map(|bought| {
            let price = |types: &[InstanceType]| {
                let of_kind =
                    named(types, name).offerings.iter().find(|offering| offering.capacity_type == bought).unwrap();
                of_kind.price.as_nanos()
            };
            (price(types) * 100 + price(&plain) / 2) / price(&plain)
        })
    }

    #[test]
    fn overlay_price_applies_to_matching_offerings() {
        let spot = Requirement::equals(well_known::CAPACITY_TYPE, well_known::SPOT);
        let mut item = priced(overlay("dear-spot", 0, "m5"), "+50%");
        item.requirements.push(spot);
        let (types, verdicts) = one(&[item]);
        assert_eq!(verdicts, [OverlayVerdict::Counts(2)]);
        assert_eq!((shares(&types, "m5.large"), shares(&types, "c5.large")), ([100, 150], [100, 100]));
    }

    #[test]
    fn heavier_overlay_wins_and_lighter_fills_gaps() {
        let overlays = [priced(overlay("a", 1, "m5"), "-50%"), priced(overlay("b", 10, "m5"), "+20%")];
        let (types, verdicts) = one(&overlays);
        assert_eq!(verdicts, [OverlayVerdict::Counts(2); 2]);
        assert_eq!(shares(&types, "m5.xlarge"), [120, 120]);
    }

    #[test]
    fn earlier_overlay_of_equal_weight_loses_conflict() {
        let mut wide = priced(overlay("a", 5, "m5"), "-50%");
        wide.requirements = Vec::new();
        let (types, verdicts) = one(&[wide, priced(overlay("b", 5, "m5"), "+20%")]);
        let conflict = OverlayVerdict::Conflict {
            with: Symbol::new("b"),
            pool: Symbol::new("default"),
            instance_type: Symbol::new("m5.large"),
        };
        assert_eq!(verdicts, [conflict, OverlayVerdict::Counts(2)]);
        assert_eq!((shares(&types, "c5.large"), shares(&types, "m5.large")), ([100, 100], [120, 120]));
    }

    #[test]
    fn equal_weight_overlays_can_set_different_fields() {
        let overlays = [priced(overlay("a", 5, "m5"), "-50%"), with_fuse(overlay("b", 5, "m5"), 20)];
        let (types, verdicts) = one(&overlays);
        assert_eq!(verdicts, [OverlayVerdict::Counts(2); 2]);
        let entry = named(&types, "m5.large");
        assert_eq!((entry.capacity.get(fuse()), entry.allocatable.get(fuse())), (20, 20));
        assert_eq!(shares(&types, "m5.large"), [50, 50]);
        assert_eq!(named(&types, "c5.large").capacity.get(fuse()), 0);
    }

    #[test]
    fn overlay_capacity_conflict_uses_lighter_until_v1_8() {
        let overlays = [with_fuse(overlay("a", 1, "m5"), 1), with_fuse(overlay("b", 10, "m5"), 10)];
        let count = |version: &str| {
            let (types, _) = laid(version.parse().unwrap(), &[NodePool::named("default")], &overlays);
            named(&types[0], "m5.large").capacity.get(fuse())
        };
        assert_eq!(["v1.6", "v1.7", "v1.8", "v1.14"].map(count), [0, 1, 1, 10]);
    }

    #[test]
    fn overlay_can_select_pool_or_node_labels() {
        let mut gold = NodePool::named("gold");
        gold.labels.set(Symbol::new("team"), Symbol::new("gold"));
        let pools = [NodePool::named("default"), gold];
        let by = |key: &str, value: &str| NodeOverlay {
            requirements: vec![Requirement::equals(Symbol::new(key), Symbol::new(value))],
            ..with_fuse(overlay(value, 0, "m5"), 3)
        };
        let mut overlays = [by("team", "gold"), by("karpenter.sh/nodepool", "default")];
        overlays[1].weight = 1;
        let (types, verdicts) = laid(KarpenterVersion::V1_14, &pools, &overlays);
        assert!(verdicts.iter().all(|(_, own)| *own == OverlayVerdict::Counts(3)), "{verdicts:?}");
        assert!(types.iter().flatten().all(|entry| entry.capacity.get(fuse()) == 3));
    }

    #[test]
    fn prices_that_are_read_later_are_changed_too() {
        let (mut types, _) = one(&[priced(overlay("a", 0, "m5"), "-0.01")]);
        refresh_offerings(&mut types, KarpenterVersion::V1_14, |_, _| (HourlyRate::parse("0.1"), false));
        let price = |name: &str| named(&types, name).offerings[0].price.as_nanos();
        assert_eq!((price("m5.large"), price("c5.large")), (90_000_000, 100_000_000));
    }
}

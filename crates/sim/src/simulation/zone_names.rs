//! A region with the names that an account has for its zones.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{Region, RegionType};
use crate::domain::Symbol;

/// The region in which the zones of `ids` (IDs by name) have the names of an account: each name has the offers and prices of the zone with
/// its ID. Other zones keep their names. Without another name it is the same region.
pub(super) fn renamed(region: &Arc<Region>, ids: &BTreeMap<String, String>) -> Arc<Region> {
    let of_id = |id: &str| region.zones.iter().position(|zone| zone.id.as_str() == id);
    let sources: Vec<usize> = region
        .zones
        .iter()
        .enumerate()
        .map(|(at, zone)| ids.get(zone.name.as_str()).and_then(|id| of_id(id)).unwrap_or(at))
        .collect();
    if sources.iter().enumerate().all(|(at, source)| at == *source) {
        return Arc::clone(region);
    }
    let mut zones = region.zones.clone();
    for (zone, &source) in zones.iter_mut().zip(&sources) {
        let name: Symbol = zone.name;
        *zone = region.zones[source];
        zone.name = name;
    }
    let of_type = |kind: &RegionType| {
        let offers = sources.iter().map(|&source| (kind.offered_in(source), kind.spot(source)));
        let compared = kind.karpenter_price().filter(|_| kind.is_compared_otherwise());
        RegionType::new(Arc::clone(&kind.facts), kind.on_demand, kind.advisor, offers).compared_at(compared)
    };
    let types = region.types.iter().map(of_type).collect();
    let mut renamed = Region::new(region.name, region.currency, zones, types);
    renamed.volumes = region.volumes;
    renamed.commitments.clone_from(&region.commitments);
    (renamed.network, renamed.spot_level) = (region.network, region.spot_level);
    Arc::new(renamed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::renamed;
    use crate::catalog::Catalog;
    use crate::domain::Symbol;

    #[test]
    fn names_of_account_have_prices_of_their_ids() {
        let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
        let [one, other] = [0, 2].map(|at| region.zones[at]);
        let swapped = [(one.name, other.id), (other.name, one.id)];
        let ids: BTreeMap<String, String> =
            swapped.iter().map(|(name, id)| (name.to_string(), id.to_string())).collect();
        let renamed = renamed(&region, &ids);
        assert_eq!((renamed.zones[0].name, renamed.zones[0].id), (one.name, other.id));
        for name in ["m5.large", "c5.xlarge", "g5.xlarge"] {
            let [before, after] = [&region, &renamed].map(|region| region.instance_type(Symbol::new(name)).unwrap());
            assert_eq!((after.spot(0), after.offered_in(2)), (before.spot(2), before.offered_in(0)), "{name}");
            assert_eq!((after.spot(1), after.karpenter_price()), (before.spot(1), before.karpenter_price()), "{name}");
        }
    }

    #[test]
    fn usual_names_leave_region_unchanged() {
        let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
        let usual = region.zones.iter().map(|zone| (zone.name.to_string(), zone.id.to_string())).collect();
        for ids in [BTreeMap::new(), usual] {
            assert!(std::sync::Arc::ptr_eq(&region, &renamed(&region, &ids)));
        }
    }
}

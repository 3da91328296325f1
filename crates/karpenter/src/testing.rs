//! Real instance types for unit tests.

use nodecast_model::catalog::{InstanceFacts, Price, Region, RegionType};
use nodecast_model::domain::{Currency, Symbol};
use nodecast_prices::Catalog;

/// The instance type `name` as the price data have it.
pub fn facts(name: &str) -> InstanceFacts {
    let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
    InstanceFacts::clone(&region.instance_type(Symbol::new(name)).unwrap().facts)
}

/// us-east-1 with one zone that offers these types at 96 USD a thousand hours.
pub fn region(names: &[&str]) -> Region {
    let price = Price::own("0.096").unwrap();
    let types = names.iter().map(|name| RegionType::everywhere(facts(name), price, None, 1));
    Region::named("us-east-1", Currency::Usd, &["us-east-1a"], types)
}

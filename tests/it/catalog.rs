//! The built-in prices are whole and say what anyone can look up; a directory can replace them.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use nodecast::catalog::{Catalog, CatalogError, PriceQuality, Region};
use nodecast::domain::{Currency, HourlyRate, Symbol};

fn region(name: &str) -> std::sync::Arc<Region> {
    Catalog::embedded().unwrap().region(name).unwrap()
}

#[test]
fn every_region_reads_and_every_type_in_it_is_priced_or_offered() {
    let catalog = Catalog::embedded().unwrap();
    assert_eq!(catalog.regions().count(), 30);
    let mut prices = 0;
    for name in catalog.regions() {
        let region = catalog.region(name).unwrap();
        assert!(region.zones.len() >= 2, "{name}");
        assert!(region.types.is_sorted_by(|a, b| a.facts.name < b.facts.name), "{name}");
        for entry in &region.types {
            assert!(entry.on_demand.is_some() || entry.zones_offered().next().is_some(), "{name} {}", entry.facts.name);
            for zone in 0..region.zones.len() {
                if let (Some(spot), Some(on_demand)) = (entry.spot(zone), entry.on_demand) {
                    assert!(spot.rate <= on_demand.rate && spot.rate > HourlyRate::ZERO, "{name} {}", entry.facts.name);
                }
            }
        }
        prices += region.types.iter().filter(|entry| entry.on_demand.is_some()).count();
    }
    assert!(prices > 21_000, "{prices}");
}

#[test]
fn prices_and_sizes_of_us_east_1_are_those_that_aws_lists() {
    let region = region("us-east-1");
    for (name, vcpus, memory_gib, price) in [
        ("m5.large", 2, 8, "0.096"),
        ("c5.xlarge", 4, 8, "0.17"),
        ("t3a.medium", 2, 4, "0.0376"),
        ("m6g.large", 2, 8, "0.077"),
        ("p3.8xlarge", 32, 244, "12.24"),
        ("t4g.2xlarge", 8, 32, "0.2688"),
        ("c6g.2xlarge", 8, 16, "0.272"),
        ("c5a.2xlarge", 8, 16, "0.308"),
        ("m4.4xlarge", 16, 64, "0.8"),
    ] {
        let entry = region.instance_type(Symbol::new(name)).unwrap();
        let on_demand = entry.on_demand.unwrap();
        assert_eq!((entry.facts.vcpus, entry.facts.memory_mib), (vcpus, memory_gib * 1_024), "{name}");
        assert_eq!(on_demand.rate, HourlyRate::parse(price).unwrap(), "{name}");
        assert_eq!((on_demand.quality, on_demand.as_of.as_str()), (PriceQuality::Published, "2026-07-20"), "{name}");
    }
}

#[test]
fn zone_prices_follow_the_zone_id() {
    let region = region("us-east-1");
    let zone = region.zones.iter().position(|zone| zone.id.as_str() == "use1-az4").unwrap();
    assert_eq!(region.zones[zone].name.as_str(), "us-east-1b");
    let spot = region.instance_type(Symbol::new("m5.large")).unwrap().spot(zone).unwrap();
    assert_eq!((spot.rate, spot.quality), (HourlyRate::parse("0.0453").unwrap(), PriceQuality::Published));
}

#[test]
fn beijing_is_priced_in_yuan_and_its_spot_prices_are_marked_as_assumed() {
    let region = region("cn-north-1");
    assert_eq!(region.currency, Currency::Cny);
    let zones: Vec<&str> = region.zones.iter().map(|zone| zone.name.as_str()).collect();
    assert_eq!(zones, ["cn-north-1a", "cn-north-1b"]);
    assert_eq!(region.types.len(), 316);
    for entry in region.types.iter().filter(|entry| entry.facts.spot) {
        let spot = entry.spot(1).unwrap();
        assert_eq!(spot.quality, PriceQuality::Assumed);
        assert_eq!(spot.rate, entry.on_demand.unwrap().rate.scaled(35, 100));
    }
}

#[test]
fn an_unknown_region_is_answered_with_the_nearest_one() {
    let error = Catalog::embedded().unwrap().region("us-east1").unwrap_err();
    let CatalogError::UnknownRegion { nearest, known, .. } = error else { panic!("{error}") };
    assert_eq!(nearest.as_deref(), Some("us-east-1"));
    assert!(known.contains("eu-west-1") && known.contains("cn-north-1"));
}

#[test]
fn a_directory_replaces_what_it_holds_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "regions/us-east-1.csv", "m5.large,0.01,published,2030-01-01,ab,,,,\n");
    let catalog = Catalog::from_dir(directory.path()).unwrap();
    let own = catalog.region("us-east-1").unwrap();
    assert_eq!(own.types.len(), 1);
    assert_eq!(own.types[0].on_demand.unwrap().rate, HourlyRate::from_nanos(10_000_000));
    assert_eq!(catalog.region("eu-west-1").unwrap(), region("eu-west-1"));
}

#[test]
fn a_directory_can_add_a_region() {
    let directory = tempfile::tempdir().unwrap();
    let regions = "region,currency,zone,zone_id,zone_id_basis\neu-central-2,USD,eu-central-2a,euc2-az1,listed\n";
    fs::write(directory.path().join("regions.csv"), regions).unwrap();
    write(directory.path(), "regions/eu-central-2.csv", "m5.large,0.12,published,2030-01-01,a,,,,\n");
    let catalog = Catalog::from_dir(directory.path()).unwrap();
    assert_eq!(catalog.regions().collect::<Vec<_>>(), ["eu-central-2"]);
    assert_eq!(catalog.region("eu-central-2").unwrap().zones[0].name.as_str(), "eu-central-2a");
    assert!(catalog.region("us-east-1").is_err());
}

#[test]
fn a_directory_with_a_misspelled_or_malformed_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refusal = || Catalog::from_dir(directory.path()).unwrap_err().to_string();
    assert!(refusal().contains("it holds neither instance-types.csv"), "{}", refusal());
    write(directory.path(), "regions/us-east-1.csv", "m5.large,free,published,2030-01-01,ab,,,,\n");
    assert_eq!(refusal(), "regions/us-east-1.csv, line 2: on_demand `free` is not a price per hour");
    write(directory.path(), "regions/us-east1.csv", "");
    assert!(refusal().contains("us-east1.csv is not part of pricing data"), "{}", refusal());
}

fn write(directory: &Path, file: &str, lines: &str) {
    let header = "instance_type,on_demand,quality,as_of,zones,spot_zones,spot_day_median,band,savings_percent";
    let path = directory.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{header}\n{lines}")).unwrap();
}

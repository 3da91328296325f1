//! The built-in prices are whole and say what anyone can look up; a directory can replace them.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use nodecast_model::domain::{Currency, HourlyRate, Symbol};
use nodecast_prices::{Catalog, CatalogError, PriceQuality, Region};

fn region(name: &str) -> std::sync::Arc<Region> {
    Catalog::embedded().unwrap().region(name).unwrap()
}

#[test]
fn every_region_reads_with_priced_types() {
    let catalog = Catalog::embedded().unwrap();
    assert_eq!(catalog.regions().count(), 35);
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
    assert!(prices > 23_000, "{prices}");
}

#[test]
fn us_east_1_prices_and_sizes_match_aws() {
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
        assert_eq!(on_demand.quality, PriceQuality::Published, "{name}");
    }
}

#[test]
fn regional_spot_price_applies_in_all_zones() {
    let region = region("us-east-2");
    let entry = region.instance_type(Symbol::new("c5.2xlarge")).unwrap();
    for zone in entry.zones_offered() {
        let spot = entry.spot(zone).unwrap();
        let seen = (HourlyRate::parse("0.0937").unwrap(), PriceQuality::RegionPrice, "2026-08");
        assert_eq!((spot.rate, spot.quality, spot.as_of.as_str()), seen);
    }
}

/// The rule for types whose Spot price was not seen, against the prices of us-east-2 that were: as pricing-data/README.md says.
#[test]
fn spot_estimates_are_near_observed_prices() {
    let region = region("us-east-2");
    let mut ratios: Vec<f64> = Vec::new();
    for entry in &region.types {
        let (Some(spot), Some(on_demand), Some(advice)) =
            (entry.zones_offered().next().and_then(|zone| entry.spot(zone)), entry.on_demand, entry.advisor)
        else {
            continue;
        };
        if spot.quality == PriceQuality::RegionPrice {
            let share = (0.85 * (1.0 - f64::from(advice.savings_percent) / 100.0)).max(0.10);
            ratios.push(spot.rate.as_f64() / (on_demand.rate.as_f64() * share));
        }
    }
    ratios.sort_by(f64::total_cmp);
    assert!(ratios.len() > 440, "{}", ratios.len());
    let quantile = |share: f64| ratios[(share * ratios.len() as f64) as usize];
    assert!((0.97..1.01).contains(&quantile(0.5)), "median {}", quantile(0.5));
    assert!((0.72..0.75).contains(&quantile(0.1)), "p10 {}", quantile(0.1));
    assert!((1.26..1.30).contains(&quantile(0.9)), "p90 {}", quantile(0.9));
    let (low, high) = PriceQuality::AdvisorEstimate.spot_error().unwrap();
    let within = ratios.iter().filter(|&&ratio| (low as f64..high as f64).contains(&(ratio * 1_000.0))).count();
    assert!(within * 10 > ratios.len() * 8, "{within} of {} within the stated band", ratios.len());
}

/// Prices that Karpenter's own table and AWS's price list of another date agree on, bare metal among them, and what Karpenter compares.
#[test]
fn bare_metal_is_billed_shared_and_compared_dedicated() {
    let rate = |text: &str| HourlyRate::parse(text).unwrap();
    for (name, place, billed, compared) in [
        ("m6g.metal", "us-east-1", "2.464", "2.6112"),
        ("m8a.metal-24xl", "us-east-1", "5.84256", "6.42682"),
        ("m5.metal", "us-east-1", "4.608", "4.608"),
        ("m6g.metal", "us-gov-west-1", "3.0976", "3.2835"),
        ("m6g.large", "us-east-1", "0.077", "0.077"),
    ] {
        let region = region(place);
        let entry = region.instance_type(Symbol::new(name)).unwrap();
        assert_eq!(entry.on_demand.unwrap().rate, rate(billed), "{name} in {place}");
        assert_eq!(entry.karpenter_price().unwrap(), rate(compared), "{name} in {place}");
    }
    // Where Karpenter's table is not known, dedicated tenancy costs as much more as in us-east-1.
    let frankfurt = region("eu-central-1");
    let metal = frankfurt.instance_type(Symbol::new("m6g.metal")).unwrap();
    let ratio = metal.karpenter_price().unwrap().as_f64() / metal.on_demand.unwrap().rate.as_f64();
    assert!((ratio - 2.6112 / 2.464).abs() < 1e-5, "{ratio}");
}

#[test]
fn new_types_are_known_and_have_no_price() {
    let region = region("us-east-1");
    let entry = region.instance_type(Symbol::new("r9g.large")).unwrap();
    assert!(entry.on_demand.is_none() && entry.karpenter_price().is_none() && entry.offered_in(0));
    assert!((0..region.zones.len()).all(|zone| entry.spot(zone).is_none()));
}

#[test]
fn mended_prices_carry_their_quality() {
    let price = |place: &str, name: &str| {
        let price = region(place).instance_type(Symbol::new(name)).unwrap().on_demand.unwrap();
        (price.rate.as_f64(), price.quality)
    };
    assert_eq!(price("me-south-1", "x2idn.32xlarge"), (16.408, PriceQuality::Published));
    assert_eq!(price("eu-south-2", "c7i.2xlarge"), (0.383, PriceQuality::Derived));
}

#[test]
fn beijing_uses_yuan_with_assumed_spot_prices() {
    let region = region("cn-north-1");
    assert_eq!(region.currency, Currency::Cny);
    let zones: Vec<&str> = region.zones.iter().map(|zone| zone.name.as_str()).collect();
    assert_eq!(zones, ["cn-north-1a", "cn-north-1b"]);
    assert_eq!(region.types.len(), 316);
    for entry in region.types.iter().filter(|entry| entry.facts.spot) {
        let spot = entry.spot(1).unwrap();
        assert_eq!(spot.quality, PriceQuality::Assumed);
        let share = match entry.facts.category.map(|category| category.as_str()) {
            Some("c") => 22,
            _ => 30,
        };
        assert_eq!(spot.rate, entry.on_demand.unwrap().rate.scaled(share, 100));
    }
}

#[test]
fn unknown_region_error_suggests_nearest() {
    let error = Catalog::embedded().unwrap().region("us-east1").unwrap_err();
    let CatalogError::UnknownRegion { nearest, known, .. } = error else { panic!("{error}") };
    assert_eq!(nearest.as_deref(), Some("us-east-1"));
    assert!(known.contains("eu-west-1") && known.contains("cn-north-1"));
}

#[test]
fn price_directory_replaces_only_its_files() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "regions/us-east-1.csv", "m5.large,0.01,published,2030-01-01,ab,,,,\n");
    let catalog = Catalog::from_dir(directory.path()).unwrap();
    let this_region = catalog.region("us-east-1").unwrap();
    assert_eq!(this_region.types.len(), 1);
    assert_eq!(this_region.types[0].on_demand.unwrap().rate, HourlyRate::from_nanos(10_000_000));
    assert_eq!(catalog.region("eu-west-1").unwrap(), region("eu-west-1"));
    let files: Vec<&str> = catalog.own_files().iter().map(|file| file.path.as_str()).collect();
    assert!(files.len() == 1 && files[0].ends_with("regions/us-east-1.csv"), "{files:?}");
    assert!(Catalog::embedded().unwrap().own_files().is_empty());
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
fn price_directory_with_invalid_file_is_rejected() {
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

/// On-Demand prices that others saw and that the price data were not made from; `tests/data/prices/README.md` says where. All came from AWS's own
/// price list once, so that what is checked is that nothing was lost or mistaken on the way.
#[test]
fn prices_match_external_sources_in_24_regions() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/prices/seen-elsewhere.csv");
    let mut reader = csv::Reader::from_path(path).unwrap();
    let (mut seen, mut differ) = (Vec::new(), Vec::new());
    for row in reader.records() {
        let row = row.unwrap();
        let (name, kind, price): (&str, &str, f64) = (&row[0], &row[1], row[2].parse().unwrap());
        let demand = region(name).instance_type(Symbol::new(kind)).unwrap().on_demand.unwrap();
        if (demand.rate.as_f64() / price - 1.0).abs() > 0.005 {
            differ.push(format!("{name} {kind}: {price} there, {} here", demand.rate.as_f64()));
        }
        seen.push((name.to_owned(), kind.to_owned()));
    }
    let regions: std::collections::BTreeSet<&String> = seen.iter().map(|pair| &pair.0).collect();
    let metal = seen.iter().filter(|pair| pair.1.contains("metal")).count();
    assert_eq!((seen.len(), regions.len(), metal), (358, 24, 116));
    // Seen in August 2024, before both became cheaper.
    assert_eq!(
        differ,
        ["us-east-1 p4d.24xlarge: 32.7726 there, 21.957642 here", "us-east-1 p5.48xlarge: 98.32 there, 55.04 here"]
    );
}

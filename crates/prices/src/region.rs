//! One region: its zones, the types they offer, and the prices.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::table::{for_each_line, for_each_line_with_optional};
use super::{
    CatalogError, CellError, Cells, InstanceFacts, Price, PriceQuality, Region, RegionType, SpotAdvice, SpotLevel,
    Zone, ZoneIdBasis,
};
use nodecast_model::domain::{Currency, HourlyRate, Symbol};

/// Per cent of On-Demand that a Spot instance is assumed to cost where the Advisor does not list its type: of categories c and m, and of all
/// others. Of 611 types in us-east-2 in the summer of 2026 the median is 29.8 %.
const ASSUMED_SPOT_PERCENT: ([(&str, i64); 2], i64) = ([("c", 22), ("m", 30)], 30);
/// Per cent of On-Demand less the Advisor's savings that a Spot instance costs: of categories c, m and r, and of all others.
///
/// Source: 320 pairs of region and type in 23 regions, 2026 (`tests/spot_level.rs` fits these values and the levels of regions).
const OF_ADVISOR_PERCENT: ([(&str, i64); 3], i64) = ([("c", 89), ("m", 86), ("r", 96)], 119);
/// Per cent of On-Demand below which no estimate goes.
const LEAST_SPOT_PERCENT: i64 = 10;

/// What regions.csv says of a region.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct RegionOutline {
    pub(super) name: Symbol,
    pub(super) currency: Currency,
    pub(super) zones: Vec<Zone>,
}

/// Reads the table of regions and zones.
pub(super) fn parse_outlines(file: &str, text: &str) -> Result<Vec<RegionOutline>, CatalogError> {
    let mut regions: BTreeMap<Symbol, RegionOutline> = BTreeMap::new();
    let columns = &["region", "currency", "zone", "zone_id", "zone_id_basis"];
    for_each_line(file, text, columns, |cells| {
        let name = cells.required()?;
        let currency = cells.required()?;
        let Some(currency) = Currency::from_code(currency.as_str()) else {
            return Err(cells.malformed(&format!("`{currency}` is neither USD nor CNY")));
        };
        let zone = Zone { name: cells.required()?, id: cells.required()?, id_basis: zone_id_basis(cells)? };
        let outline = regions.entry(name).or_insert_with(|| RegionOutline { name, currency, zones: Vec::new() });
        if outline.zones.len() == 32 {
            return Err(cells.malformed("is the 33rd zone of its region"));
        }
        if outline.zones.iter().any(|this_zone| this_zone.name == zone.name) {
            return Err(Cells::repeated(zone.name));
        }
        outline.zones.push(zone);
        Ok(())
    })?;
    let mut outlines: Vec<RegionOutline> = regions.into_values().collect();
    for outline in &mut outlines {
        outline.zones.sort_by_key(|zone| zone.name);
    }
    Ok(outlines)
}

fn zone_id_basis(cells: &mut Cells<'_>) -> Result<ZoneIdBasis, CellError> {
    match cells.text() {
        "matched_by_offerings" => Ok(ZoneIdBasis::MatchedByOfferings),
        "listed" => Ok(ZoneIdBasis::Listed),
        "assigned" => Ok(ZoneIdBasis::Assigned),
        "" | "assumed" => Ok(ZoneIdBasis::Assumed),
        text => Err(cells.malformed(&format!("`{text}` is not matched_by_offerings, listed, assigned or assumed"))),
    }
}

/// The dates of the Spot facts, which one collection of pricing data shares.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Dates {
    observed: Symbol,
    day_median: Symbol,
    advisor: Symbol,
}

impl Dates {
    /// The day of the Spot Advisor's figures.
    pub(super) fn advisor(&self) -> &'static str {
        self.advisor.as_str()
    }

    pub(super) fn parse(file: &str, text: &str) -> Result<Self, CatalogError> {
        let unknown = Symbol::new("unknown");
        let mut dates = Self { observed: unknown, day_median: unknown, advisor: unknown };
        for_each_line(file, text, &["fact", "as_of"], |cells| {
            let date = match cells.text() {
                "spot-observed" => &mut dates.observed,
                "spot-day-median" => &mut dates.day_median,
                "spot-advisor" => &mut dates.advisor,
                other => {
                    let why = format!("`{other}` is not spot-observed, spot-day-median or spot-advisor");
                    return Err(cells.malformed(&why));
                }
            };
            *date = cells.required()?;
            Ok(())
        })?;
        Ok(dates)
    }
}

const COLUMNS: &[&str] = &[
    "instance_type",
    "on_demand",
    "quality",
    "as_of",
    "zones",
    "spot_zones",
    "band",
    "savings_percent",
    "spot_region",
    "spot_day_median",
    "karpenter_price",
    "own_price",
    "own_as_of",
];
/// How many of them, at the end, a table need not have.
const OPTIONAL_COLUMNS: usize = 5;

/// Reads the table of the region `outline`.
pub(super) fn parse(
    outline: &RegionOutline,
    text: &str,
    facts: &BTreeMap<&'static str, Arc<InstanceFacts>>,
    (dates, level): (Dates, Option<SpotLevel>),
) -> Result<Region, CatalogError> {
    let mut by_text = BTreeMap::new();
    let file = format!("regions/{}.csv", outline.name);
    for_each_line_with_optional(&file, text, COLUMNS, OPTIONAL_COLUMNS, |cells| {
        let entry = region_type(cells, outline, facts, (dates, level))?;
        match by_text.insert(entry.facts.name.as_str(), entry) {
            None => Ok(()),
            Some(first) => Err(Cells::repeated(first.facts.name)),
        }
    })?;
    let types = by_text.into_values().collect();
    let mut region = Region::new(outline.name, outline.currency, outline.zones.clone(), types);
    region.spot_level = level;
    Ok(region)
}

fn region_type(
    cells: &mut Cells<'_>,
    outline: &RegionOutline,
    facts: &BTreeMap<&'static str, Arc<InstanceFacts>>,
    (dates, level): (Dates, Option<SpotLevel>),
) -> Result<RegionType, CellError> {
    let name = cells.text();
    let Some(facts) = facts.get(name) else {
        return Err(cells.malformed(&format!("`{name}` is not in instance-types.csv")));
    };
    let on_demand = on_demand(cells)?;
    let zones_offered = zones_offered(cells, outline)?;
    let observed = observed(cells, outline)?;
    let advisor = advice(cells)?;
    let of_region = of_region(cells, dates)?;
    let day_median = cells.rate()?;
    let karpenter = cells.rate()?;
    let this_price = own_price(cells)?;
    let fallback = of_region
        .or(day_median.map(|rate| Price { rate, quality: PriceQuality::DayMedian, as_of: dates.day_median }))
        .or_else(|| on_demand.map(|price| estimate(price, advisor, facts.category, (dates, level))));
    let spot = observed.into_iter().enumerate().map(|(zone, observed)| {
        let observed = observed.map(|(rate, date)| Price {
            rate,
            quality: PriceQuality::Published,
            as_of: date.unwrap_or(dates.observed),
        });
        let offered = facts.spot && zones_offered & (1 << zone) != 0;
        observed.or(fallback).filter(|_| offered).map(|price| match on_demand {
            Some(cap) => Price { rate: price.rate.min(cap.rate), ..price },
            None => price,
        })
    });
    let zones = spot.enumerate().map(|(zone, spot)| (zones_offered & (1 << zone) != 0, spot));
    let entry = RegionType::new(Arc::clone(facts), this_price.or(on_demand), advisor, zones);
    Ok(entry.compared_at(karpenter.filter(|_| this_price.is_none())))
}

fn on_demand(cells: &mut Cells<'_>) -> Result<Option<Price>, CellError> {
    let Some(rate) = cells.rate()? else {
        cells.text();
        cells.text();
        return Ok(None);
    };
    let quality = match cells.text() {
        "published" => PriceQuality::Published,
        "historical" => PriceQuality::Historical,
        "from_dedicated" => PriceQuality::FromDedicated,
        "tenancy_unsure" => PriceQuality::TenancyUnsure,
        "derived" => PriceQuality::Derived,
        "derived_low" => PriceQuality::DerivedLow,
        other => {
            let why = format!(
                "`{other}` is not published, historical, from_dedicated, tenancy_unsure, derived or derived_low"
            );
            return Err(cells.malformed(&why));
        }
    };
    Ok(Some(Price { rate, quality, as_of: cells.required()? }))
}

/// The zones named by their letters (`abd`), or all of them (`*`).
fn zones_offered(cells: &mut Cells<'_>, outline: &RegionOutline) -> Result<u32, CellError> {
    let text = cells.text();
    if text == "*" {
        return Ok((0..outline.zones.len()).fold(0, |set, zone| set | 1 << zone));
    }
    let mut set = 0;
    let mut buffer = [0; 4];
    for letter in text.chars() {
        set |= 1 << zone_of(cells, outline, letter.encode_utf8(&mut buffer))?;
    }
    Ok(set)
}

/// A price seen in a zone, with its date where that is stated.
type Observed = (HourlyRate, Option<Symbol>);

/// The prices seen in single zones, with the date where it is stated, written `a=0.0364 b=0.0453@2026-11-20`.
fn observed(cells: &mut Cells<'_>, outline: &RegionOutline) -> Result<Vec<Option<Observed>>, CellError> {
    let mut rates = vec![None; outline.zones.len()];
    for entry in cells.text().split_ascii_whitespace() {
        let Some((letter, price)) = entry.split_once('=') else {
            return Err(cells.malformed(&format!("`{entry}` is not of the form ZONE=PRICE")));
        };
        let (rate, date) = price.split_once('@').map_or((price, None), |(rate, date)| (rate, Some(date)));
        if date.is_some_and(str::is_empty) {
            return Err(cells.malformed(&format!("`{entry}` has no date after `@`")));
        }
        rates[zone_of(cells, outline, letter)?] = Some((cells.rate_of(rate)?, date.map(Symbol::new)));
    }
    Ok(rates)
}

/// The price of the region as a whole, with its date where that is stated, written `0.0364@2026-08`.
fn of_region(cells: &mut Cells<'_>, dates: Dates) -> Result<Option<Price>, CellError> {
    let text = cells.text();
    if text.is_empty() {
        return Ok(None);
    }
    let (rate, date) = text.split_once('@').map_or((text, None), |(rate, date)| (rate, Some(date)));
    if date.is_some_and(str::is_empty) {
        return Err(cells.malformed(&format!("`{text}` has no date after `@`")));
    }
    let as_of = date.map_or(dates.observed, Symbol::new);
    Ok(Some(Price { rate: cells.rate_of(rate)?, quality: PriceQuality::RegionPrice, as_of }))
}

/// What the user pays On-Demand, whatever the list says.
fn own_price(cells: &mut Cells<'_>) -> Result<Option<Price>, CellError> {
    let Some(rate) = cells.rate()? else {
        cells.text();
        return Ok(None);
    };
    Ok(Some(Price { rate, quality: PriceQuality::Own, as_of: cells.required()? }))
}

fn zone_of(cells: &Cells<'_>, outline: &RegionOutline, letter: &str) -> Result<usize, CellError> {
    let is_it = |zone: &Zone| zone.name.as_str().strip_prefix(outline.name.as_str()) == Some(letter);
    let position = outline.zones.iter().position(is_it);
    position.ok_or_else(|| cells.malformed(&format!("names zone `{}{letter}`, which regions.csv lacks", outline.name)))
}

fn advice(cells: &mut Cells<'_>) -> Result<Option<SpotAdvice>, CellError> {
    let band = cells.text();
    if band.is_empty() {
        cells.text();
        return Ok(None);
    }
    let band = band.parse().ok().filter(|&band| band <= 4);
    let Some(band) = band else { return Err(cells.malformed("is not a number from 0 to 4")) };
    let savings = cells.text();
    let Some(savings_percent) = savings.parse().ok().filter(|percent| (-100..=100).contains(percent)) else {
        return Err(cells.malformed("is not a number from -100 to 100"));
    };
    Ok(Some(SpotAdvice { band, savings_percent }))
}

/// Estimate of what a Spot instance costs, from its On-Demand price and the level of Spot prices in the region.
fn estimate(
    on_demand: Price,
    advisor: Option<SpotAdvice>,
    category: Option<Symbol>,
    (dates, level): (Dates, Option<SpotLevel>),
) -> Price {
    let least = on_demand.rate.scaled(LEAST_SPOT_PERCENT, 100);
    let level = level.map_or(1_000, |measured| measured.level);
    let share = |(known, other): (&[(&str, i64)], i64)| {
        known.iter().find(|entry| category.is_some_and(|name| name.as_str() == entry.0)).map_or(other, |entry| entry.1)
            * level
    };
    match advisor {
        Some(advice) => Price {
            rate: on_demand
                .rate
                .scaled(100 - i64::from(advice.savings_percent), 100)
                .scaled(share((&OF_ADVISOR_PERCENT.0, OF_ADVISOR_PERCENT.1)), 100_000)
                .max(least),
            quality: match on_demand.quality {
                PriceQuality::DerivedLow | PriceQuality::Assumed => PriceQuality::DerivedLow,
                _ => PriceQuality::AdvisorEstimate,
            },
            as_of: dates.advisor,
        },
        None => Price {
            rate: on_demand.rate.scaled(share((&ASSUMED_SPOT_PERCENT.0, ASSUMED_SPOT_PERCENT.1)), 100_000).max(least),
            quality: PriceQuality::Assumed,
            as_of: on_demand.as_of,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::{Dates, Region, parse, parse_outlines};
    use crate::{CatalogError, PriceQuality, facts};
    use nodecast_model::domain::Symbol;

    const ZONES: &str = "region,currency,zone,zone_id,zone_id_basis\n\
        xx-one-1,USD,xx-one-1b,xx1-az1,listed\nxx-one-1,USD,xx-one-1a,xx1-az2,listed\n";
    const HEADER: &str = "instance_type,on_demand,quality,as_of,zones,spot_zones,spot_day_median,band,savings_percent";

    fn facts() -> BTreeMap<&'static str, Arc<crate::InstanceFacts>> {
        let text = crate::embedded::INSTANCE_TYPES;
        facts::parse("instance-types.csv", text).unwrap()
    }

    fn region(lines: &str) -> Result<Region, CatalogError> {
        let outline = parse_outlines("regions.csv", ZONES).unwrap().remove(0);
        let dates = Dates::parse("dates.csv", "fact,as_of\nspot-observed,2025\n").unwrap();
        parse(&outline, &format!("{HEADER}\n{lines}\n"), &facts(), (dates, None))
    }

    fn spot(line: &str, zone: usize) -> Option<(i64, PriceQuality)> {
        let region = region(line).unwrap();
        region.types[0].spot(zone).map(|price| (price.rate.as_nanos(), price.quality))
    }

    #[test]
    fn spot_price_uses_best_available_fact() {
        let all = "m5.large,0.1,published,2026,ab,a=0.04,0.05,1,60";
        assert_eq!(spot(all, 0), Some((40_000_000, PriceQuality::Published)));
        assert_eq!(spot(all, 1), Some((50_000_000, PriceQuality::DayMedian)));
        let advised = "m5.large,0.1,published,2026,ab,,,1,60";
        assert_eq!(spot(advised, 1), Some((34_400_000, PriceQuality::AdvisorEstimate)));
        let derived = "m5.large,0.1,derived_low,2026,ab,,,1,60";
        assert_eq!(spot(derived, 1), Some((34_400_000, PriceQuality::DerivedLow)));
        let cheap = "m5.large,0.1,derived,2026,ab,,,1,95";
        assert_eq!(spot(cheap, 1), Some((10_000_000, PriceQuality::AdvisorEstimate)));
        let bare = "m5.large,0.1,published,2026,*,,,,";
        assert_eq!(spot(bare, 1), Some((30_000_000, PriceQuality::Assumed)));
    }

    #[test]
    fn spot_price_is_capped_and_needs_offering() {
        let dear = "m5.large,0.1,published,2026,b,b=0.4,,,";
        assert_eq!(spot(dear, 1), Some((100_000_000, PriceQuality::Published)));
        assert_eq!(spot(dear, 0), None);
        assert_eq!(spot("mac2.metal,0.65,published,2026,ab,,,,", 0), None);
    }

    #[test]
    fn an_observed_price_may_carry_its_own_date() {
        let region = region("m5.large,0.1,published,2026,ab,a=0.04@2026-11-20 b=0.05,,,").unwrap();
        let date = |zone| region.types[0].spot(zone).map(|price| price.as_of.as_str());
        assert_eq!((date(0), date(1)), (Some("2026-11-20"), Some("2025")));
    }

    #[test]
    fn user_price_replaces_on_demand_but_not_spot() {
        let outline = parse_outlines("regions.csv", ZONES).unwrap().remove(0);
        let dates = Dates::parse("dates.csv", "fact,as_of\nspot-observed,2025\n").unwrap();
        let parse = |line: &str| {
            let table = format!("{HEADER},own_price,own_as_of\n{line}\n");
            parse(&outline, &table, &facts(), (dates, None))
        };
        let region = parse("m5.large,0.1,published,2026,ab,b=0.09,,1,60,0.07,2026-04-01").unwrap();
        let price = |price: crate::Price| (price.rate.as_nanos(), price.quality, price.as_of.as_str());
        let entry = &region.types[0];
        assert_eq!(entry.on_demand.map(price), Some((70_000_000, PriceQuality::Own, "2026-04-01")));
        assert_eq!(entry.spot(0).map(|price| price.rate.as_nanos()), Some(34_400_000));
        assert_eq!(entry.spot(1).map(|price| price.rate.as_nanos()), Some(90_000_000));
        let undated = parse("m5.large,0.1,published,2026,ab,,,,,0.07,").unwrap_err().to_string();
        assert!(undated.ends_with("own_as_of is empty"), "{undated}");
    }

    #[test]
    fn regional_price_applies_in_all_zones() {
        let outline = parse_outlines("regions.csv", ZONES).unwrap().remove(0);
        let dates = Dates::parse("dates.csv", "fact,as_of\nspot-observed,2025\n").unwrap();
        let parse = |line: &str| {
            let table = format!(
                "instance_type,on_demand,quality,as_of,zones,spot_zones,band,savings_percent,spot_region,\
                 karpenter_price,own_price,own_as_of\n{line}\n"
            );
            parse(&outline, &table, &facts(), (dates, None))
        };
        let region = parse("m6g.metal,2.464,published,2026,ab,a=1,1,60,0.8@2026-08,2.6112,,").unwrap();
        let entry = &region.types[0];
        let spot = |zone| entry.spot(zone).map(|price| (price.rate.as_nanos(), price.quality, price.as_of.as_str()));
        assert_eq!(spot(0), Some((1_000_000_000, PriceQuality::Published, "2025")));
        assert_eq!(spot(1), Some((800_000_000, PriceQuality::RegionPrice, "2026-08")));
        let billed = |region: &Region| region.types[0].on_demand.unwrap().rate.as_nanos();
        let compared = |region: &Region| region.types[0].karpenter_price().unwrap().as_nanos();
        assert_eq!((billed(&region), compared(&region)), (2_464_000_000, 2_611_200_000));
        assert_eq!(compared(&region.compared_as_billed().unwrap()), 2_464_000_000);
        let by_contract = parse("m6g.metal,2.464,published,2026,ab,,,,,2.6112,2,2026-04-01").unwrap();
        assert_eq!((billed(&by_contract), compared(&by_contract)), (2_000_000_000, 2_000_000_000));
        assert!(by_contract.compared_as_billed().is_none());
        let undated = parse("m6g.metal,2.464,published,2026,ab,,,,0.8@,,,").unwrap_err().to_string();
        assert!(undated.ends_with("spot_region `0.8@` has no date after `@`"), "{undated}");
    }

    #[test]
    fn zones_are_sorted_and_types_found_by_name() {
        let region = region("m5.large,0.1,published,2026,b,,,,\nc5.large,0.1,published,2026,,,,,").unwrap();
        assert_eq!(region.zones[0].id.as_str(), "xx1-az2");
        assert_eq!(region.types[0].facts.name.as_str(), "c5.large");
        let found = region.instance_type(Symbol::new("m5.large")).unwrap();
        assert_eq!(found.zones_offered().collect::<Vec<_>>(), [1]);
        assert!(region.instance_type(Symbol::new("m5.huge")).is_none());
    }

    #[test]
    fn a_bad_line_is_named_with_its_column() {
        let message = |line| region(line).unwrap_err().to_string();
        assert_eq!(
            message("m5.large,dear,published,2026,b,,,,"),
            "regions/xx-one-1.csv, line 2: on_demand `dear` is not a price per hour"
        );
        assert!(
            message("m5.large,1,published,2026,a,,,,\nm5.large,2,published,2026,a,,,,").contains("has a line already")
        );
        assert!(message("m5.huge,1,published,2026,b,,,,").contains("is not in instance-types.csv"));
        assert!(message("m5.large,1,published,2026,c,,,,").contains("names zone `xx-one-1c`"));
        assert!(message("m5.large,1,published,2026,a,,,9,1").contains("band is not a number from 0 to 4"));
    }
}

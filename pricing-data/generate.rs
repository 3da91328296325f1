//! Turns the tables of two data collections (one CSV file for each kind of fact) into the files of this directory:
//!
//!     cargo run --example generate-pricing-data -- FIRST_DIRECTORY SECOND_DIRECTORY pricing-data
//!
//! README.md says what the input tables are and what is written. The same input gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

type Row = BTreeMap<String, String>;
type Outcome<T> = Result<T, Box<dyn Error>>;

/// Regions whose zones no collection lists: they are taken to number three zones without gaps.
const ASSUMED_ZONES: [(&str, &str); 4] =
    [("ap-southeast-7", "apse7"), ("mx-central-1", "mxc1"), ("us-gov-east-1", "usge1"), ("us-gov-west-1", "usgw1")];

/// Regions whose On-Demand prices Karpenter's own table has for every type, in US dollars.
const KARPENTER_REGIONS: [&str; 3] = ["us-east-1", "us-gov-east-1", "us-gov-west-1"];

/// When the Spot prices of a region were seen, as far as their source tells.
const SPOT_SEEN: &str = "2026-08";

/// The columns of instance-types.csv that are carried over under the same name, before and after those computed here.
const PLAIN_COLUMNS: [&str; 9] = [
    "vcpus",
    "memory_mib",
    "arch",
    "cpu_manufacturer",
    "hypervisor",
    "bare_metal",
    "burstable",
    "current_generation",
    "encryption_in_transit",
];
const SPEED_COLUMNS: [&str; 4] = ["network_baseline_mbps", "network_peak_mbps", "ebs_baseline_mbps", "ebs_max_mbps"];
const DEVICE_COLUMNS: [&str; 11] = [
    "gpu_manufacturer",
    "gpu_name",
    "gpu_count",
    "gpu_memory_mib_each",
    "accelerator_kind",
    "accelerator_name",
    "accelerator_count",
    "accelerator_cores",
    "local_storage_gb",
    "local_disk_count",
    "local_nvme",
];

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, first, second, output] = arguments.as_slice() else {
        return Err("usage: generate-pricing-data FIRST_DIRECTORY SECOND_DIRECTORY OUTPUT_DIRECTORY".into());
    };
    let (first, second, output) = (Path::new(first), Path::new(second), Path::new(output));
    fs::create_dir_all(output.join("regions"))?;
    let mut facts = rows(first, "instance_types.csv")?;
    facts.extend(rows(second, "instance_types_added.csv")?);
    facts.sort_by(|one, other| cell(one, "instance_type").cmp(cell(other, "instance_type")));
    let (printed, limits) = (rows(first, "karpenter_allocatable.csv")?, rows(second, "ebs_attach_limits.csv")?);
    fs::write(output.join("instance-types.csv"), instance_types(&facts, &printed, &limits))?;

    let known: BTreeSet<&str> = facts.iter().map(|row| cell(row, "instance_type")).collect();
    let tables = (rows(second, "on_demand.csv.gz")?, rows(second, "on_demand_mend.csv")?);
    let prices = Prices::new(&rows(first, "on_demand_prices.csv")?, (&tables.0, &tables.1));
    let offerings = rows(second, "zone_offerings.csv.gz")?;
    let mut zones = zones(&rows(first, "zones.csv")?, &prices);
    add_newer(&mut zones, &offerings);
    fs::write(output.join("regions.csv"), regions(&zones))?;

    let spot = rows(second, "spot_2026_us-east-2.csv")?;
    let advisor = rows(first, "spot_advisor.csv")?;
    fs::write(output.join("dates.csv"), dates(&rows(first, "spot_prices.csv")?))?;
    fs::write(output.join("ebs.csv"), volumes(&rows(second, "ebs_prices.csv")?, &prices)?)?;
    let (all_upfront, none) = (rows(second, "reserved_discounts.csv")?, rows(second, "no_upfront.csv")?);
    fs::write(output.join("commitments.csv"), commitments(&all_upfront, &none))?;
    for (region, prices) in &prices.by_region {
        let mut table = RegionTable::default();
        table.add_on_demand(prices);
        table.add_offerings(&offerings, region);
        table.add_spot(&spot, region);
        table.add_advisor(&advisor, region);
        fs::write(output.join("regions").join(format!("{region}.csv")), table.text(&known))?;
    }
    Ok(())
}

/// The lines of a table, which is compressed if its name says so.
fn rows(directory: &Path, file: &str) -> Outcome<Vec<Row>> {
    let open = || -> Outcome<Vec<Row>> {
        let raw = File::open(directory.join(file))?;
        let text: Box<dyn Read> =
            if file.ends_with(".gz") { Box::new(flate2::read::GzDecoder::new(raw)) } else { Box::new(raw) };
        Ok(csv::Reader::from_reader(text).deserialize().collect::<Result<_, _>>()?)
    };
    open().map_err(|error| format!("{file}: {error}").into())
}

fn cell<'a>(row: &'a Row, column: &str) -> &'a str {
    row.get(column).map_or("", String::as_str)
}

/// Network cards of a type. Rows of withdrawn types state one card too many.
fn network_cards(row: &Row) -> i64 {
    let surplus = i64::from(cell(row, "source") == "karpenter-docs");
    (number(cell(row, "network_cards")) - surplus).max(1)
}

fn by_type(rows: &[Row]) -> BTreeMap<&str, &Row> {
    rows.iter().map(|row| (cell(row, "instance_type"), row)).collect()
}

/// A large number without an exponent.
fn spelled_out(cell: &str) -> String {
    match cell.parse::<f64>() {
        Ok(number) if cell.contains("e+") => format!("{number:.0}"),
        _ => cell.to_owned(),
    }
}

/// The number in a cell, 0 if it is empty.
fn number(cell: &str) -> i64 {
    cell.parse().unwrap_or(0)
}

/// One line for each type. `enis` counts the interfaces of the default network card only, `branch_enis` is what
/// Karpenter's own table allows: both are read back from the values that Karpenter's documentation prints, if it has them.
fn instance_types(facts: &[Row], printed: &[Row], volumes: &[Row]) -> String {
    let (printed, volumes) = (by_type(printed), by_type(volumes));
    let mut text = format!(
        "instance_type,{},clock_mhz,{},enis,ipv4_per_eni,branch_enis,efas,{},spot,ebs_volumes,ebs_volumes_alone\n",
        PLAIN_COLUMNS.join(","),
        SPEED_COLUMNS.join(","),
        DEVICE_COLUMNS.join(",")
    );
    for row in facts {
        let name = cell(row, "instance_type");
        let golden = printed.get(name).copied();
        let addresses = number(cell(row, "ipv4_per_eni"));
        let printed_pods: Option<i64> = golden.and_then(|golden| cell(golden, "pods").parse().ok());
        let enis = match printed_pods {
            Some(pods) if addresses > 1 => (pods - 2) / (addresses - 1),
            _ => number(cell(row, "max_enis")) / network_cards(row),
        };
        let branch = golden.map_or(cell(row, "branch_enis"), |golden| cell(golden, "pod_eni"));
        let clock_ghz: f64 = cell(row, "clock_ghz").parse().unwrap_or(0.0);
        let mut cells = vec![name.to_owned()];
        let copied = |columns: &[&str]| columns.iter().map(|column| spelled_out(cell(row, column))).collect::<Vec<_>>();
        cells.extend(copied(&PLAIN_COLUMNS));
        cells.push(format!("{:.0}", clock_ghz * 1_000.0));
        cells.extend(copied(&SPEED_COLUMNS));
        cells.extend([enis.to_string(), cell(row, "ipv4_per_eni").to_owned(), branch.to_owned()]);
        cells.push(cell(row, "efa_max").to_owned());
        cells.extend(copied(&DEVICE_COLUMNS));
        cells.push(cell(row, "usage_spot").to_owned());
        let limit = volumes.get(name);
        cells.push(limit.map_or("", |row| cell(row, "max_attachments")).to_owned());
        cells.push(
            limit.map_or("", |row| if cell(row, "attachment_type") == "dedicated" { "1" } else { "" }).to_owned(),
        );
        let cells: Vec<&str> = cells.iter().map(|cell| if cell == "0" { "" } else { cell.as_str() }).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

/// On-Demand prices by region and type.
struct Prices {
    by_region: BTreeMap<String, BTreeMap<String, OnDemand>>,
}

/// An On-Demand price as a line of a region's table states it.
#[derive(Default, Clone)]
struct OnDemand {
    price: String,
    quality: &'static str,
    as_of: String,
    source: String,
    /// The price in Karpenter's table, where that is another.
    karpenter: String,
}

impl Prices {
    /// Prices of `second`, and those of China from `first`, which also has Karpenter's own table.
    fn new(first: &[Row], (second, mended): (&[Row], &[Row])) -> Self {
        let mut by_region: BTreeMap<String, BTreeMap<String, OnDemand>> = BTreeMap::new();
        let mut insert = |row: &Row, price: OnDemand| {
            let region = by_region.entry(cell(row, "region").to_owned()).or_default();
            region.insert(cell(row, "instance_type").to_owned(), price);
        };
        for row in second {
            let price = OnDemand {
                price: cell(row, "price").to_owned(),
                quality: quality(cell(row, "quality")),
                as_of: cell(row, "as_of").to_owned(),
                source: source(cell(row, "sources")),
                karpenter: String::new(),
            };
            insert(row, price);
        }
        for row in first.iter().filter(|row| cell(row, "currency") == "CNY") {
            let price = OnDemand {
                price: cell(row, "price_per_hour").to_owned(),
                quality: quality(cell(row, "quality")),
                as_of: cell(row, "as_of").to_owned(),
                source: "K".to_owned(),
                karpenter: String::new(),
            };
            insert(row, price);
        }
        let mut prices = Self { by_region };
        prices.date_derived();
        prices.mend(mended);
        prices.add_karpenters(first);
        prices
    }

    /// Prices that another source shows, and those of other sizes of the same family that follow from them.
    fn mend(&mut self, rows: &[Row]) {
        for row in rows {
            let name = cell(row, "instance_type");
            let Some(price) = self.by_region.get_mut(cell(row, "region")).and_then(|types| types.get_mut(name)) else {
                continue;
            };
            let by_size = cell(row, "source").contains("size rule");
            let family = name.split('.').next().unwrap_or_default();
            cell(row, "price").clone_into(&mut price.price);
            cell(row, "as_of").chars().take(4).collect::<String>().clone_into(&mut price.as_of);
            price.quality = if by_size { "derived" } else { "published" };
            price.source = if by_size { family.to_owned() } else { "S".to_owned() };
        }
    }

    /// A derived price is as old as the price of us-east-1 that it is derived from.
    fn date_derived(&mut self) {
        let base = self.by_region.get("us-east-1").cloned().unwrap_or_default();
        for price in self.by_region.values_mut().flatten().filter(|(_, price)| price.as_of.is_empty()) {
            let (name, price) = price;
            base.get(name).map_or("unknown", |base| base.as_of.as_str()).clone_into(&mut price.as_of);
        }
    }

    /// What Karpenter compares, where that is not what is billed: it asks for bare metal with dedicated tenancy. Its table states
    /// the price in three regions; elsewhere the type costs as much more than its shared price as it does in us-east-1.
    fn add_karpenters(&mut self, first: &[Row]) {
        let mut more: BTreeMap<String, f64> = BTreeMap::new();
        for region in KARPENTER_REGIONS {
            for row in first.iter().filter(|row| cell(row, "region") == region) {
                let (name, table) = (cell(row, "instance_type"), cell(row, "price_per_hour"));
                let Some(price) = self.by_region.get_mut(region).and_then(|types| types.get_mut(name)) else {
                    continue;
                };
                let (Ok(dedicated), Ok(shared)) = (table.parse::<f64>(), price.price.parse::<f64>()) else { continue };
                if (dedicated / shared - 1.0).abs() > 0.005 {
                    table.clone_into(&mut price.karpenter);
                    if region == "us-east-1" {
                        more.insert(name.to_owned(), dedicated / shared);
                    }
                }
            }
        }
        let elsewhere = self.by_region.iter_mut().filter(|(region, _)| !KARPENTER_REGIONS.contains(&region.as_str()));
        for (_, types) in elsewhere.filter(|(region, _)| !region.starts_with("cn-")) {
            for (name, ratio) in &more {
                let Some(price) = types.get_mut(name) else { continue };
                if let Ok(shared) = price.price.parse::<f64>() {
                    price.karpenter = plain(shared * ratio);
                }
            }
        }
    }
}

/// A price to six decimals, without trailing zeros.
fn plain(price: f64) -> String {
    let text = format!("{price:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The word of this directory for a word of a collection.
fn quality(word: &str) -> &'static str {
    match word {
        "published" | "published_tenancy_inferred" => "published",
        "published_tenancy_unsure" => "tenancy_unsure",
        "from_dedicated" => "from_dedicated",
        "historical" => "historical",
        "derived" | "derived_cut_2025" | "derived_same_family" | "derived_sibling" => "derived",
        _ => "derived_low",
    }
}

/// The letters of the sources, as README.md explains them; of a derived price the family that it was derived from.
fn source(sources: &str) -> String {
    if let Some(family) = sources.strip_prefix("rule:") {
        return family.to_owned();
    }
    let letter = |name: &str| match name {
        "parsec" => "P",
        "karpenter" => "K",
        "rosa" => "R",
        "ec2details" => "E",
        "libcloud" => "L",
        "coroot" => "C",
        _ => "",
    };
    let letters: BTreeSet<&str> = sources.split('+').map(letter).collect();
    letters.into_iter().collect()
}

/// Zone name, zone id and how the id is known, by region.
type Zones = BTreeMap<String, Vec<(String, String, String)>>;

fn zones(table: &[Row], prices: &Prices) -> Zones {
    let mut zones = Zones::new();
    for row in table.iter().filter(|row| prices.by_region.contains_key(cell(row, "region"))) {
        let zone = [cell(row, "zone_name"), cell(row, "zone_id"), cell(row, "id_basis")].map(str::to_owned);
        zones.entry(cell(row, "region").to_owned()).or_default().push(zone.into());
    }
    for (region, id) in ASSUMED_ZONES {
        let assumed = ["a", "b", "c"]
            .iter()
            .zip(1..)
            .map(|(letter, number)| (format!("{region}{letter}"), format!("{id}-az{number}"), "assumed".to_owned()));
        zones.entry(region.to_owned()).or_insert_with(|| assumed.collect());
    }
    zones
}

/// Adds zones that offer something and that the list of zones lacks, under the first free number.
fn add_newer(zones: &mut Zones, offerings: &[Row]) {
    for row in offerings {
        let region = cell(row, "region");
        let Some(known) = zones.get_mut(region) else { continue };
        for letter in cell(row, "zones").split(';') {
            let name = format!("{region}{letter}");
            let Some((prefix, _)) = known.first().and_then(|zone| zone.1.rsplit_once("-az")) else { continue };
            if !known.iter().any(|zone| zone.0 == name) {
                let free = |id: &String| !known.iter().any(|zone| zone.1 == *id);
                let id = (1..).map(|number| format!("{prefix}-az{number}")).find(free).unwrap_or_default();
                known.push((name, id, "assumed".to_owned()));
            }
        }
    }
}

fn regions(zones: &Zones) -> String {
    let mut text = "region,currency,zone,zone_id,zone_id_basis\n".to_owned();
    for (region, zones) in zones {
        let currency = if region.starts_with("cn-") { "CNY" } else { "USD" };
        for (zone, id, basis) in zones {
            let _ = writeln!(text, "{region},{currency},{zone},{id},{basis}");
        }
    }
    text
}

/// The columns of ebs.csv after the region, and what they are called in the collection.
const VOLUME_COLUMNS: [(&str, &str); 13] = [
    ("gp2", "gp2_storage"),
    ("gp3", "gp3_storage"),
    ("gp3_iops", "gp3_iops"),
    ("gp3_throughput", "gp3_throughput"),
    ("io1", "io1_storage"),
    ("io1_iops", "io1_iops"),
    ("io2", "io2_storage"),
    ("io2_iops", "io2_iops_tier1"),
    ("io2_iops_over_32000", "io2_iops_tier2"),
    ("io2_iops_over_64000", "io2_iops_tier3"),
    ("st1", "st1_storage"),
    ("sc1", "sc1_storage"),
    ("standard", "magnetic_storage"),
];

/// One line for each region with prices. Throughput is listed by the GiB per second, and carried by the MiB.
fn volumes(table: &[Row], prices: &Prices) -> Outcome<String> {
    let mut by_region: BTreeMap<&str, BTreeMap<&str, &Row>> = BTreeMap::new();
    for row in table.iter().filter(|row| prices.by_region.contains_key(cell(row, "region"))) {
        by_region.entry(cell(row, "region")).or_default().insert(cell(row, "item"), row);
    }
    let titles: Vec<&str> = VOLUME_COLUMNS.iter().map(|(column, _)| *column).collect();
    let mut text = format!("region,{},as_of\n", titles.join(","));
    for (region, items) in by_region {
        let mut cells = vec![region.to_owned()];
        let mut as_of = "";
        for (_, item) in VOLUME_COLUMNS {
            let row = items.get(item).ok_or_else(|| format!("ebs_prices.csv: no {item} in {region}"))?;
            as_of = cell(row, "as_of");
            let price: f64 = cell(row, "price_usd").parse()?;
            cells.push(if cell(row, "unit") == "GiBps-month" { plain(price / 1_024.0) } else { plain(price) });
        }
        let _ = writeln!(text, "{},{as_of}", cells.join(","));
    }
    Ok(text)
}

/// Discounts by region and family. The collection calls those of one year no upfront; its source calls them "1 year (All upfront)".
/// Those without upfront payment are carried where both discounts are of one date: the ratio of the prices then is 1.070 to 1.0725.
fn commitments(table: &[Row], no_upfront: &[Row]) -> String {
    let of_one_date =
        |row: &&Row| cell(row, "price_ratio").parse::<f64>().is_ok_and(|ratio| (1.070..=1.0725).contains(&ratio));
    let none = |row: &Row| {
        let is_own = |this_row: &&Row| {
            cell(this_row, "region") == cell(row, "region") && cell(this_row, "family") == cell(row, "family")
        };
        let found = no_upfront.iter().filter(of_one_date).find(is_own);
        found.map_or_else(String::new, |row| cell(row, "one_year_no_upfront_discount").to_owned())
    };
    let mut text = "region,family,one_year_all_upfront,three_years_all_upfront,one_year_no_upfront\n".to_owned();
    for row in table {
        let columns = ["region", "family", "discount_1yr_no_upfront", "discount_3yr_all_upfront"];
        let _ = writeln!(text, "{},{}", columns.map(|column| cell(row, column)).join(","), none(row));
    }
    text
}

/// The date of the Advisor's figures. Spot prices carry their own.
fn dates(spot: &[Row]) -> String {
    let advisor = spot.iter().find(|row| cell(row, "kind").starts_with("advisor"));
    format!("fact,as_of\nspot-advisor,{}\n", advisor.map_or("", |row| cell(row, "as_of")))
}

/// What is known of the types of one region, by type.
#[derive(Default)]
struct RegionTable {
    lines: BTreeMap<String, Line>,
}

#[derive(Default)]
struct Line {
    on_demand: OnDemand,
    zones: String,
    spot_region: String,
    advisor: [String; 2],
}

impl RegionTable {
    fn line(&mut self, row: &Row) -> &mut Line {
        self.lines.entry(cell(row, "instance_type").to_owned()).or_default()
    }

    fn add_on_demand(&mut self, prices: &BTreeMap<String, OnDemand>) {
        for (name, price) in prices {
            self.lines.entry(name.clone()).or_default().on_demand = price.clone();
        }
    }

    /// Zone letters; a region that the table of offerings does not cover is assumed to offer everything everywhere (`*`).
    fn add_offerings(&mut self, table: &[Row], region: &str) {
        let covered = table.iter().any(|row| cell(row, "region") == region);
        for row in table.iter().filter(|row| cell(row, "region") == region) {
            self.line(row).zones = cell(row, "zones").replace(';', "");
        }
        if !covered {
            for line in self.lines.values_mut() {
                line.zones = "*".to_owned();
            }
        }
    }

    /// The price of the region as a whole. Prices older than a year stay out: README.md says why.
    fn add_spot(&mut self, table: &[Row], region: &str) {
        for row in table.iter().filter(|row| cell(row, "region") == region) {
            self.line(row).spot_region = format!("{}@{SPOT_SEEN}", cell(row, "spot"));
        }
    }

    fn add_advisor(&mut self, table: &[Row], region: &str) {
        for row in table.iter().filter(|row| cell(row, "region") == region && cell(row, "os") == "linux") {
            self.line(row).advisor = ["band", "savings_pct"].map(|column| cell(row, column).to_owned());
        }
    }

    /// The lines of the types whose facts are known and that are priced or offered here.
    fn text(&mut self, known: &BTreeSet<&str>) -> String {
        let mut text =
            "instance_type,on_demand,quality,as_of,source,karpenter_price,zones,spot_zones,spot_region,band,\
                        savings_percent\n"
                .to_owned();
        for (name, line) in &mut self.lines {
            let price = &line.on_demand;
            if !known.contains(name.as_str()) || (price.price.is_empty() && line.zones.is_empty()) {
                continue;
            }
            let _ = writeln!(
                text,
                "{name},{},{},{},{},{},{},,{},{}",
                price.price,
                price.quality,
                price.as_of,
                price.source,
                price.karpenter,
                line.zones,
                line.spot_region,
                line.advisor.join(",")
            );
        }
        text
    }
}

//! Turns the tables of a data collection (one CSV file for each kind of fact) into the files of this directory:
//!
//!     cargo run --example generate-pricing-data -- INPUT_DIRECTORY pricing-data
//!
//! README.md says what the input tables are and what is written. The same input gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

type Row = BTreeMap<String, String>;
type Outcome<T> = Result<T, Box<dyn Error>>;

/// Regions whose zones the collection does not list: both partitions number their zones without gaps.
const ASSUMED_ZONES: [(&str, &str); 2] = [("us-gov-east-1", "usge1"), ("us-gov-west-1", "usgw1")];

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
    let [_, input, output] = arguments.as_slice() else {
        return Err("usage: generate-pricing-data INPUT_DIRECTORY OUTPUT_DIRECTORY".into());
    };
    let (input, output) = (Path::new(input), Path::new(output));
    fs::create_dir_all(output.join("regions"))?;
    let facts = rows(input, "instance_types.csv")?;
    fs::write(output.join("instance-types.csv"), instance_types(&facts, &rows(input, "karpenter_allocatable.csv")?))?;

    let known: BTreeSet<&str> = facts.iter().map(|row| cell(row, "instance_type")).collect();
    let on_demand = rows(input, "on_demand_prices.csv")?;
    let priced: BTreeSet<&str> = on_demand.iter().map(|row| cell(row, "region")).collect();
    let zones = zones(&rows(input, "zones.csv")?, &priced);
    fs::write(output.join("regions.csv"), regions(&zones, &on_demand))?;

    let offerings = rows(input, "zone_offerings.csv")?;
    let spot = rows(input, "spot_prices.csv")?;
    let advisor = rows(input, "spot_advisor.csv")?;
    fs::write(output.join("dates.csv"), dates(&spot))?;
    for region in &priced {
        let mut table = RegionTable::default();
        table.add_on_demand(&on_demand, region);
        table.add_offerings(&offerings, region);
        table.add_spot(&spot, region, &zones);
        table.add_advisor(&advisor, region);
        fs::write(output.join("regions").join(format!("{region}.csv")), table.text(&known))?;
    }
    Ok(())
}

fn rows(directory: &Path, file: &str) -> Outcome<Vec<Row>> {
    let mut reader = csv::Reader::from_path(directory.join(file)).map_err(|error| format!("{file}: {error}"))?;
    Ok(reader.deserialize().collect::<Result<_, _>>().map_err(|error| format!("{file}: {error}"))?)
}

fn cell<'a>(row: &'a Row, column: &str) -> &'a str {
    row.get(column).map_or("", String::as_str)
}

/// Network cards of a type. Rows of withdrawn types state one card too many.
fn network_cards(row: &Row) -> i64 {
    let surplus = i64::from(cell(row, "source") == "karpenter-docs");
    (number(cell(row, "network_cards")) - surplus).max(1)
}

/// The number in a cell, 0 if it is empty.
fn number(cell: &str) -> i64 {
    cell.parse().unwrap_or(0)
}

/// One line for each type. `enis` counts the interfaces of the default network card only, `branch_enis` is what
/// Karpenter's own table allows: both are read back from the values that Karpenter's documentation prints, if it has them.
fn instance_types(facts: &[Row], printed: &[Row]) -> String {
    let printed: BTreeMap<&str, &Row> = printed.iter().map(|row| (cell(row, "instance_type"), row)).collect();
    let mut text = format!(
        "instance_type,{},clock_mhz,{},enis,ipv4_per_eni,branch_enis,efas,{},spot\n",
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
        let copied = |columns: &[&str]| columns.iter().map(|column| cell(row, column).to_owned()).collect::<Vec<_>>();
        cells.extend(copied(&PLAIN_COLUMNS));
        cells.push(format!("{:.0}", clock_ghz * 1_000.0));
        cells.extend(copied(&SPEED_COLUMNS));
        cells.extend([enis.to_string(), cell(row, "ipv4_per_eni").to_owned(), branch.to_owned()]);
        cells.push(cell(row, "efa_max").to_owned());
        cells.extend(copied(&DEVICE_COLUMNS));
        cells.push(cell(row, "usage_spot").to_owned());
        let cells: Vec<&str> = cells.iter().map(|cell| if cell == "0" { "" } else { cell.as_str() }).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

/// Zone name, zone id and how the id is known, by region.
type Zones = BTreeMap<String, Vec<(String, String, String)>>;

fn zones(table: &[Row], priced: &BTreeSet<&str>) -> Zones {
    let mut zones = Zones::new();
    for row in table.iter().filter(|row| priced.contains(cell(row, "region"))) {
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

fn regions(zones: &Zones, on_demand: &[Row]) -> String {
    let currencies: BTreeMap<&str, &str> =
        on_demand.iter().map(|row| (cell(row, "region"), cell(row, "currency"))).collect();
    let mut text = "region,currency,zone,zone_id,zone_id_basis\n".to_owned();
    for (region, zones) in zones {
        let currency = currencies.get(region.as_str()).copied().unwrap_or("USD");
        for (zone, id, basis) in zones {
            let _ = writeln!(text, "{region},{currency},{zone},{id},{basis}");
        }
    }
    text
}

fn dates(spot: &[Row]) -> String {
    let mut dates = BTreeMap::new();
    for row in spot {
        let kind = match cell(row, "kind") {
            "observed" => "spot-observed",
            "observed_day_median" => "spot-day-median",
            _ => "spot-advisor",
        };
        dates.insert(kind, cell(row, "as_of"));
    }
    let lines = dates.iter().map(|(kind, as_of)| format!("{kind},{as_of}\n"));
    format!("fact,as_of\n{}", lines.collect::<String>())
}

/// What is known of the types of one region, by type.
#[derive(Default)]
struct RegionTable {
    lines: BTreeMap<String, Line>,
}

#[derive(Default)]
struct Line {
    on_demand: [String; 3],
    zones: String,
    spot_zones: Vec<String>,
    day_median: String,
    advisor: [String; 2],
}

impl RegionTable {
    fn line(&mut self, row: &Row) -> &mut Line {
        self.lines.entry(cell(row, "instance_type").to_owned()).or_default()
    }

    fn add_on_demand(&mut self, table: &[Row], region: &str) {
        for row in table.iter().filter(|row| cell(row, "region") == region) {
            self.line(row).on_demand =
                ["price_per_hour", "quality", "as_of"].map(|column| cell(row, column).to_owned());
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

    fn add_spot(&mut self, table: &[Row], region: &str, zones: &Zones) {
        for row in table.iter().filter(|row| cell(row, "region") == region) {
            let price = cell(row, "usd_per_hour");
            match cell(row, "kind") {
                "observed" => {
                    let id = cell(row, "zone");
                    let name = zones.get(region).into_iter().flatten().find(|zone| zone.1 == id).map(|zone| &zone.0);
                    let letter = name.and_then(|name| name.strip_prefix(region));
                    if let Some(letter) = letter {
                        self.line(row).spot_zones.push(format!("{letter}={price}"));
                    }
                }
                "observed_day_median" => self.line(row).day_median = price.to_owned(),
                _ => {}
            }
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
            "instance_type,on_demand,quality,as_of,zones,spot_zones,spot_day_median,band,savings_percent\n".to_owned();
        for (name, line) in &mut self.lines {
            if !known.contains(name.as_str()) || (line.on_demand[0].is_empty() && line.zones.is_empty()) {
                continue;
            }
            line.spot_zones.sort();
            let _ = writeln!(
                text,
                "{name},{},{},{},{},{}",
                line.on_demand.join(","),
                line.zones,
                line.spot_zones.join(" "),
                line.day_median,
                line.advisor.join(",")
            );
        }
        text
    }
}

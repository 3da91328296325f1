//! Laying imported facts over the built-in tables.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::sync::Arc;

use super::records::Reason;
use super::{Fact, FileAccount, Import, ImportError, Imported, RecordKind, RegionAccount, price_list};
use crate::region::{self, RegionOutline};
use crate::{Catalog, CatalogError, FILES, embedded};
use crate::{InstanceFacts, facts};
use nodecast_model::domain::{HourlyRate, Money};
use nodecast_model::text::cells::csv_cell;

const OLDER: Reason = Reason::Borrowed("older than another price of the same type, or the same again");

/// Everything taken so far.
struct Overlay {
    base: &'static Catalog,
    accounts: Vec<FileAccount>,
    /// Cells of instance-types.csv, by type that the built-in table lacks.
    hardware: BTreeMap<String, BTreeMap<&'static str, String>>,
    /// By region and type.
    on_demand: BTreeMap<(String, String), Dated<String>>,
    /// By zone and type.
    spot: BTreeMap<(String, String), Dated<jiff::Timestamp>>,
    /// By region and type.
    own: BTreeMap<(String, String), Dated<String>>,
    /// Zone and type.
    offerings: BTreeMap<(String, String), usize>,
}

/// A price and the file that it came from; the later one is taken, of two at the same time the higher.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Dated<Time> {
    at: Time,
    rate: HourlyRate,
    file: usize,
}

pub(super) fn apply(import: Import) -> Result<Imported, ImportError> {
    let Import { base, accounts, facts } = import;
    let mut overlay = Overlay {
        base,
        accounts,
        hardware: BTreeMap::new(),
        on_demand: BTreeMap::new(),
        spot: BTreeMap::new(),
        own: BTreeMap::new(),
        offerings: BTreeMap::new(),
    };
    // Prices of a new type are taken whichever file comes first.
    let (hardware, others): (Vec<_>, Vec<_>) =
        facts.into_iter().partition(|(_, fact)| fact.kind() == RecordKind::InstanceType);
    for (file, fact) in hardware.into_iter().chain(others) {
        let (kind, name) = (fact.kind(), fact.instance_type().to_owned());
        let written_by_hand = fact.line();
        match (overlay.take(file, fact), written_by_hand) {
            (Ok(()), _) => {}
            (Err(reason), Some(line)) => return Err(overlay.malformed(file, line, &name, &reason).into()),
            (Err(reason), None) => overlay.skip(file, kind, reason, &name),
        }
    }
    overlay.leave_newer_built_in()?;
    overlay.count_taken();
    overlay.into_tables()
}

impl Overlay {
    fn skip(&mut self, file: usize, kind: RecordKind, reason: Reason, example: &str) {
        if let Some(account) = self.accounts.get_mut(file) {
            account.kinds.entry(kind).or_default().skip(reason, example);
        }
    }

    /// Takes a price by contract.
    fn take_own(&mut self, key: (String, String), price: Dated<String>) -> Result<(), Reason> {
        self.priced_region(&key.0)?;
        self.check_type(&key.1)?;
        match self.own.insert(key, price) {
            None => Ok(()),
            Some(_) => Err("has a line already".into()),
        }
    }

    fn malformed(&self, file: usize, line: u64, name: &str, reason: &str) -> CatalogError {
        let file = self.accounts.get(file).map(|account| account.file.clone()).unwrap_or_default();
        CatalogError::Malformed { file, line, reason: format!("`{name}`: {reason}") }
    }

    /// What is known of a region that has prices.
    fn priced_region(&self, region: &str) -> Result<&RegionOutline, Reason> {
        let outline = self.base.outlines.iter().find(|outline| outline.name.as_str() == region);
        let priced = outline.filter(|_| embedded::region(region).is_some());
        priced.ok_or(Reason::Borrowed("in a region without built-in prices"))
    }

    fn take(&mut self, file: usize, fact: Fact) -> Result<(), Reason> {
        match fact {
            Fact::Own { region, instance_type, rate, date, .. } => {
                self.take_own((region, instance_type), Dated { at: date, rate, file })
            }
            Fact::Hardware { instance_type, cells } => self.take_hardware(file, instance_type, cells),
            Fact::OnDemand { region, instance_type, rate, currency, date } => {
                if self.priced_region(&region)?.currency != currency {
                    return Err("in another currency than that of its region".into());
                }
                self.check_type(&instance_type)?;
                let lost = keep_later(&mut self.on_demand, (region, instance_type), Dated { at: date, rate, file });
                self.skip_older(lost, RecordKind::OnDemandPrice);
                Ok(())
            }
            Fact::Spot { zone, instance_type, rate, at } => {
                self.check_type(&instance_type)?;
                self.region_of(&zone)?;
                let lost = keep_later(&mut self.spot, (zone, instance_type), Dated { at, rate, file });
                self.skip_older(lost, RecordKind::SpotPrice);
                Ok(())
            }
            Fact::Offering { zone, instance_type } => {
                self.check_type(&instance_type)?;
                self.region_of(&zone)?;
                match self.offerings.insert((zone, instance_type), file) {
                    None => Ok(()),
                    Some(_) => Err("the same again".into()),
                }
            }
        }
    }

    /// Drops prices that are older than the built-in ones: an On-Demand price if the built-in one is a fact of a later day, a Spot price
    /// if the built-in one of its zone is, or else the Advisor's figures.
    fn leave_newer_built_in(&mut self) -> Result<(), ImportError> {
        let mut tables: BTreeMap<String, Table> = BTreeMap::new();
        for region in self.on_demand.keys().map(|(region, _)| region.clone()).chain(self.spot_regions()) {
            if let btree_map::Entry::Vacant(entry) = tables.entry(region) {
                let table = Table::read(embedded::region(entry.key()).unwrap_or_default())?;
                entry.insert(table);
            }
        }
        let advisor = self.base.dates.advisor();
        let mut skipped: Vec<(usize, RecordKind, String, String)> = Vec::new();
        self.on_demand.retain(|(region, name), price| {
            let Some(newer) = tables.get(region).and_then(|table| table.fact_after(name, &price.at)) else {
                return true;
            };
            let reason = format!("of {}: the built-in price is of {newer}, and newer prices stay", price.at);
            skipped.push((price.file, RecordKind::OnDemandPrice, reason, name.clone()));
            false
        });
        let zones = self.spot.keys().map(|(zone, _)| zone.clone()).collect::<BTreeSet<String>>();
        let regions: BTreeMap<String, &str> =
            zones.into_iter().filter_map(|zone| Some((zone.clone(), self.region_of(&zone).ok()?))).collect();
        self.spot.retain(|(zone, name), price| {
            let day = price_list::day(price.at);
            let region = regions.get(zone).copied().unwrap_or_default();
            let seen = tables.get(region).and_then(|table| table.spot_seen(name, letter(region, zone)));
            let built_in = seen.as_deref().unwrap_or(advisor);
            if day.as_str() >= built_in {
                return true;
            }
            let what = if seen.is_some() { "built-in Spot price" } else { "Spot Advisor's saving" };
            let reason = format!("of before {built_in}: the {what} is of that day, and newer prices stay");
            skipped.push((price.file, RecordKind::SpotPrice, reason, name.clone()));
            false
        });
        for (file, kind, reason, name) in skipped {
            self.skip(file, kind, reason.into(), &name);
        }
        Ok(())
    }

    /// The regions that Spot prices are of.
    fn spot_regions(&self) -> BTreeSet<String> {
        self.spot.keys().filter_map(|(zone, _)| self.region_of(zone).ok().map(str::to_owned)).collect()
    }

    fn skip_older(&mut self, lost: Option<(usize, String)>, kind: RecordKind) {
        if let Some((file, name)) = lost {
            self.skip(file, kind, OLDER, &name);
        }
    }

    fn take_hardware(
        &mut self,
        file: usize,
        instance_type: String,
        cells: BTreeMap<&'static str, String>,
    ) -> Result<(), Reason> {
        if self.base.facts(&instance_type).is_some() {
            return Err("known already; what a type is made of does not change".into());
        }
        if self.hardware.contains_key(&instance_type) {
            return Err("the same again".into());
        }
        let mut table = Table::empty_like(embedded::INSTANCE_TYPES)?;
        table.set_row(&instance_type, &cells);
        if let Err(error) = facts::parse(FILES[0], &table.text()) {
            let why = match error {
                CatalogError::Malformed { reason, .. } => reason,
                other => other.to_string(),
            };
            return Err(why.into());
        }
        self.hardware.insert(instance_type, cells);
        if let Some(account) = self.accounts.get_mut(file) {
            account.kinds.entry(RecordKind::InstanceType).or_default().taken += 1;
        }
        Ok(())
    }

    fn check_type(&self, instance_type: &str) -> Result<(), Reason> {
        if self.base.facts(instance_type).is_some() || self.hardware.contains_key(instance_type) {
            return Ok(());
        }
        Err("of a type whose hardware is not known (bring in `aws ec2 describe-instance-types` too)".into())
    }

    /// The region of a zone.
    fn region_of(&self, zone: &str) -> Result<&'static str, Reason> {
        let holds = |outline: &&RegionOutline| outline.zones.iter().any(|this_zone| this_zone.name.as_str() == zone);
        let outline = self.base.outlines.iter().find(holds).map(|outline| outline.name.as_str());
        let priced = outline.filter(|region| embedded::region(region).is_some());
        priced.ok_or(Reason::Borrowed("in a zone that the built-in regions.csv does not list"))
    }

    fn count_taken(&mut self) {
        let on_demand = self.on_demand.values().map(|price| (price.file, RecordKind::OnDemandPrice));
        let spot = self.spot.values().map(|price| (price.file, RecordKind::SpotPrice));
        let offerings = self.offerings.values().map(|&file| (file, RecordKind::Offering));
        let item = self.own.values().map(|price| (price.file, RecordKind::OwnPrice));
        for (file, kind) in on_demand.chain(spot).chain(offerings).chain(item) {
            if let Some(account) = self.accounts.get_mut(file) {
                account.kinds.entry(kind).or_default().taken += 1;
            }
        }
    }

    /// The tables, each read back as `--pricing-data` would.
    fn into_tables(self) -> Result<Imported, ImportError> {
        let mut edited: BTreeMap<String, (Table, RegionAccount)> = BTreeMap::new();
        for ((region, instance_type), price) in &self.on_demand {
            let (table, account) = edit(&mut edited, region)?;
            table.scale_karpenters(instance_type, price.rate);
            table.set(instance_type, "on_demand", decimal(price.rate));
            table.set(instance_type, "quality", "published".to_owned());
            table.set(instance_type, "as_of", price.at.clone());
            account.on_demand += 1;
            account.dated(&price.at);
        }
        for ((region, instance_type), price) in &self.own {
            let (table, account) = edit(&mut edited, region)?;
            table.set_in_added_column(instance_type, "own_price", decimal(price.rate));
            table.set_in_added_column(instance_type, "own_as_of", price.at.clone());
            account.own += 1;
            account.dated(&price.at);
        }
        for (zone, instance_type) in self.offerings.keys() {
            let Ok(region) = self.region_of(zone) else { continue };
            let (table, account) = edit(&mut edited, region)?;
            account.offerings += u64::from(table.add_zone(instance_type, letter(region, zone)));
        }
        for ((zone, instance_type), price) in &self.spot {
            let Ok(region) = self.region_of(zone) else { continue };
            let (table, account) = edit(&mut edited, region)?;
            let date = price_list::day(price.at);
            account.offerings += u64::from(table.add_zone(instance_type, letter(region, zone)));
            table.add_spot(instance_type, letter(region, zone), &format!("{}@{date}", decimal(price.rate)));
            account.spot += 1;
            account.dated(&date);
        }
        if edited.is_empty() && self.hardware.is_empty() {
            return Err(nothing_taken(&self.accounts));
        }
        let mut tables = BTreeMap::new();
        let facts = self.hardware_table(&mut tables)?;
        let mut regions = BTreeMap::new();
        for (name, (mut table, account)) in edited {
            table.offer_new_rows_everywhere();
            let text = table.text();
            if let Some(outline) = self.base.outlines.iter().find(|outline| outline.name.as_str() == name) {
                region::parse(outline, &text, &facts, (self.base.dates, None))?;
            }
            tables.insert(format!("regions/{name}.csv"), text);
            regions.insert(name, account);
        }
        Ok(Imported { tables, files: self.accounts, regions, new_types: self.hardware.into_keys().collect() })
    }

    /// Adds the table of instance types to `tables` if there are new ones, and gives all of them.
    fn hardware_table(
        &self,
        tables: &mut BTreeMap<String, String>,
    ) -> Result<BTreeMap<&'static str, Arc<InstanceFacts>>, ImportError> {
        if self.hardware.is_empty() {
            return Ok(self.base.facts.clone());
        }
        let mut table = Table::read(embedded::INSTANCE_TYPES)?;
        for (instance_type, cells) in &self.hardware {
            table.set_row(instance_type, cells);
        }
        let text = table.text();
        let facts = facts::parse(FILES[0], &text)?;
        tables.insert(FILES[0].to_owned(), text);
        Ok(facts)
    }
}

/// Keeps the later of two prices; gives the file and the type of the other.
fn keep_later<Time: Ord>(
    prices: &mut BTreeMap<(String, String), Dated<Time>>,
    key: (String, String),
    new: Dated<Time>,
) -> Option<(usize, String)> {
    let name = key.1.clone();
    match prices.get_mut(&key) {
        None => {
            prices.insert(key, new);
            None
        }
        Some(kept) if (&new.at, new.rate) > (&kept.at, kept.rate) => Some((std::mem::replace(kept, new).file, name)),
        Some(_) => Some((new.file, name)),
    }
}

/// The table of `region` under change, at first as it is built in.
fn edit<'a>(
    edited: &'a mut BTreeMap<String, (Table, RegionAccount)>,
    region: &str,
) -> Result<&'a mut (Table, RegionAccount), ImportError> {
    use std::collections::btree_map::Entry;
    match edited.entry(region.to_owned()) {
        Entry::Occupied(entry) => Ok(entry.into_mut()),
        Entry::Vacant(entry) => {
            let table = Table::read(embedded::region(region).unwrap_or_default())?;
            Ok(entry.insert((table, RegionAccount::default())))
        }
    }
}

/// What tells a zone from the others of its region: `a` of `us-east-1a`.
fn letter<'a>(region: &str, zone: &'a str) -> &'a str {
    zone.strip_prefix(region).unwrap_or(zone)
}

/// A rate without trailing zeros.
fn decimal(rate: HourlyRate) -> String {
    let text = Money::from_nanos(i128::from(rate.as_nanos())).to_string();
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn nothing_taken(accounts: &[FileAccount]) -> ImportError {
    let files: Vec<&str> = accounts.iter().map(|account| account.file.as_str()).collect();
    let mut reasons = String::new();
    for account in accounts {
        for (kind, this_kind) in &account.kinds {
            for (reason, skipped) in &this_kind.skipped {
                let name = if skipped.count == 1 { kind.names().0 } else { kind.names().1 };
                reasons.push_str(&format!("\n{}: {} {name} left out: {reason}", account.file, skipped.count));
            }
        }
    }
    ImportError::NothingTaken { files: files.join(", "), reasons }
}

/// A table as text, by its first column.
struct Table {
    headers: Vec<String>,
    rows: BTreeMap<String, Vec<String>>,
    /// The keys that were there from the start.
    known: BTreeSet<String>,
}

impl Table {
    fn read(text: &str) -> Result<Self, ImportError> {
        let malformed = |error: csv::Error| CatalogError::Malformed {
            file: "the built-in table".to_owned(),
            line: error.position().map_or(1, csv::Position::line),
            reason: error.to_string(),
        };
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let headers = reader.headers().map_err(malformed)?.iter().map(str::to_owned).collect();
        let mut rows = BTreeMap::new();
        for record in reader.records() {
            let row: Vec<String> = record.map_err(malformed)?.iter().map(str::to_owned).collect();
            rows.insert(row.first().cloned().unwrap_or_default(), row);
        }
        let known = rows.keys().cloned().collect();
        Ok(Self { headers, rows, known })
    }

    /// The columns of `text` without its lines.
    fn empty_like(text: &str) -> Result<Self, Reason> {
        Self::read(text.lines().next().unwrap_or_default()).map_err(|error| error.to_string().into())
    }

    fn row(&mut self, key: &str) -> &mut Vec<String> {
        let columns = self.headers.len();
        self.rows.entry(key.to_owned()).or_insert_with(|| {
            let mut row = vec![String::new(); columns];
            if let Some(first) = row.first_mut() {
                key.clone_into(first);
            }
            row
        })
    }

    fn cell(&mut self, key: &str, column: &str) -> Option<&mut String> {
        let position = self.headers.iter().position(|header| header == column)?;
        self.row(key).get_mut(position)
    }

    fn set(&mut self, key: &str, column: &str, text: String) {
        if let Some(cell) = self.cell(key, column) {
            *cell = text;
        }
    }

    fn text_of(&self, key: &str, column: &str) -> Option<&str> {
        let position = self.headers.iter().position(|header| header == column)?;
        self.rows.get(key)?.get(position).map(String::as_str)
    }

    /// The day of an On-Demand price that was published, if it is after `day`.
    fn fact_after(&self, key: &str, day: &str) -> Option<String> {
        let is_fact = matches!(self.text_of(key, "quality"), Some("published" | "historical"));
        self.text_of(key, "as_of").filter(|text| is_fact && *text > day).map(str::to_owned)
    }

    /// The day on which the Spot price of a zone was seen.
    fn spot_seen(&self, key: &str, letter: &str) -> Option<String> {
        let entries = self.text_of(key, "spot_zones")?.split_ascii_whitespace();
        let parts = entries.filter_map(|entry| entry.split_once('=')).find(|(zone, _)| *zone == letter)?;
        parts.1.split_once('@').map(|(_, day)| day.to_owned())
    }

    /// As [`set`](Self::set), in a column that is added if the table lacks it.
    fn set_in_added_column(&mut self, key: &str, column: &str, text: String) {
        if !self.headers.iter().any(|header| header == column) {
            self.headers.push(column.to_owned());
            self.rows.values_mut().for_each(|row| row.push(String::new()));
        }
        self.set(key, column, text);
    }

    /// What Karpenter compares of bare metal stays as much above what is billed as it is.
    fn scale_karpenters(&mut self, key: &str, billed: HourlyRate) {
        let mut rate = |column| self.cell(key, column).and_then(|text| HourlyRate::parse(text));
        let (Some(listed), Some(compared)) = (rate("on_demand"), rate("karpenter_price")) else { return };
        if listed > HourlyRate::ZERO {
            self.set(key, "karpenter_price", decimal(billed.scaled(compared.as_nanos(), listed.as_nanos())));
        }
    }

    fn set_row(&mut self, key: &str, cells: &BTreeMap<&'static str, String>) {
        for (column, text) in cells {
            self.set(key, column, text.clone());
        }
    }

    /// Notes that a zone offers a type. Whether that was news.
    fn add_zone(&mut self, key: &str, letter: &str) -> bool {
        let Some(zones) = self.cell(key, "zones") else { return false };
        if zones == "*" || zones.contains(letter) {
            return false;
        }
        let mut letters: Vec<char> = zones.chars().chain(letter.chars()).collect();
        letters.sort_unstable();
        *zones = letters.into_iter().collect();
        true
    }

    /// Notes a Spot price seen in a zone in place of the one known so far.
    fn add_spot(&mut self, key: &str, letter: &str, price: &str) {
        let Some(cell) = self.cell(key, "spot_zones") else { return };
        let known = cell.split_ascii_whitespace().filter_map(|entry| entry.split_once('='));
        let mut prices: BTreeMap<&str, &str> = known.collect();
        prices.insert(letter, price);
        let entries: Vec<String> = prices.iter().map(|(letter, price)| format!("{letter}={price}")).collect();
        *cell = entries.join(" ");
    }

    /// Rows added without a zone that offers the type are taken to be offered in all of them.
    fn offer_new_rows_everywhere(&mut self) {
        let added: Vec<String> = self.rows.keys().filter(|name| !self.known.contains(*name)).cloned().collect();
        for name in added {
            if let Some(zones) = self.cell(&name, "zones").filter(|zones| zones.is_empty()) {
                "*".clone_into(zones);
            }
        }
    }

    fn text(&self) -> String {
        let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
        // Writing into memory cannot fail, and every row has as many cells as there are columns.
        let written = writer.write_record(&self.headers).and_then(|()| {
            self.rows
                .values()
                .try_for_each(|row| writer.write_record(row.iter().map(|cell| csv_cell(cell).into_owned())))
        });
        match written {
            Ok(()) => String::from_utf8_lossy(&writer.into_inner().unwrap_or_default()).into_owned(),
            Err(_) => String::new(),
        }
    }
}

//! `other_usage`: usage outside the clusters that competes for the same commitments, from a CSV file.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use nodecast_commitments::{Bearer, OUTSIDE_CLUSTERS, Platform, Tenancy, UsageKind, UsageLine};
use nodecast_model::catalog::Region;
use nodecast_model::domain::{HourlyRate, SimDuration, SimTime, Symbol};
use nodecast_model::text::error::{InputError, Place, Warning, listed};
use nodecast_model::text::source::{Limits, Source};
use nodecast_prices::{Catalog, CatalogError};
use nodecast_settings::InputFile;
use nodecast_settings::lints::fleet as lints;

use crate::Fleet;
use crate::places::{Read, families, meant};
use crate::usage::{ClusterUsage, HOUR};

/// Columns of the file; `platform` may be missing or empty.
const COLUMNS: [&str; 6] = ["hour", "account", "region", "family", "platform", "list"];
const HOUR_COLUMN: usize = 0;
const ACCOUNT: usize = 1;
const REGION: usize = 2;
const FAMILY: usize = 3;
const PLATFORM: usize = 4;
const LIST: usize = 5;
const PLATFORMS: [Platform; 4] = [Platform::Linux, Platform::Windows, Platform::Rhel, Platform::Suse];

/// Usage outside clusters, by account.
pub(crate) type OtherUsage = Vec<(Bearer, ClusterUsage)>;

/// The usage in a file.
#[derive(Default)]
pub(crate) struct Loaded {
    pub usage: OtherUsage,
    /// The file; `None` if the fleet names none.
    pub input: Option<InputFile>,
    pub warning: Option<Warning>,
}

/// Reads the file of a fleet that runs for `duration` from `start`; nothing if it names none.
pub(crate) fn load(fleet: &Fleet, (start, duration): (Timestamp, SimDuration), catalog: &Catalog) -> Read<Loaded> {
    let Some(path) = &fleet.other_usage else { return Ok(Loaded::default()) };
    let source = nodecast_scenario::source::load(path, path.display().to_string(), &Limits::default());
    let source = source.map_err(|error| match error.place() {
        Some(_) => error,
        None => error.at(fleet.other_usage_place.clone()).because("named here"),
    })?;
    let run = Run { fleet, start, end: SimTime::ZERO + duration, catalog };
    let mut accounts: BTreeMap<Symbol, ClusterUsage> = BTreeMap::new();
    let (mut rows, mut outside) = (0_u64, 0_u64);
    for_each_row(&source, |row| {
        rows += 1;
        match run.line(row)? {
            Some((hour, line)) => accounts.entry(line.account).or_default().lines.push((hour, line)),
            None => outside += 1,
        }
        Ok(())
    })?;
    for usage in accounts.values_mut() {
        usage.lines.sort_unstable();
        let value = |(_, line): &(u32, UsageLine)| nodecast_model::domain::Accrual::new(line.list, line.ran).total();
        usage.charged = usage.lines.iter().map(value).sum();
        usage.total = usage.charged;
    }
    let cluster = Symbol::new(OUTSIDE_CLUSTERS);
    let usage = accounts.into_iter().map(|(account, usage)| (Bearer { cluster, account }, usage)).collect();
    let warning = (outside > 0).then(|| {
        let message = format!("{outside} of {rows} rows of `{}` lie outside the run. They are ignored", source.name);
        Warning::from_lint(&lints::USAGE_OUTSIDE_RUN, message)
            .help(format!("the run is from {start} for {duration}: correct `hour`, `start`, or `duration`"))
    });
    Ok(Loaded { usage, input: Some(nodecast_scenario::source::input_file(&source)), warning })
}

/// A row with its place in the file.
struct Row<'r> {
    source: &'r Source,
    record: &'r csv::StringRecord,
    positions: &'r [Option<usize>; 6],
}

impl Row<'_> {
    fn cell(&self, column: usize) -> &str {
        self.positions[column].and_then(|at| self.record.get(at)).unwrap_or_default()
    }

    /// An error at a cell.
    fn wrong(&self, column: usize, message: String) -> InputError {
        InputError::new(message).at(self.place(column)).because(format!("column `{}`", COLUMNS[column]))
    }

    fn place(&self, column: usize) -> Option<Place> {
        let begin = usize::try_from(self.record.position()?.byte()).ok()?;
        let text = self.source.text.get(begin..)?;
        // Blank lines before a record belong to it.
        let begin = begin + (text.len() - text.trim_start_matches(['\n', '\r']).len());
        let text = self.source.text.get(begin..)?.lines().next().unwrap_or_default();
        let mut at = 0;
        for cell in self.record.iter().take(self.positions[column].unwrap_or(0)) {
            at += text.get(at..).and_then(|rest| rest.find(cell)).unwrap_or(0) + cell.len();
        }
        let cell = self.cell(column);
        at += text.get(at..).and_then(|rest| rest.find(cell)).unwrap_or(0);
        Some(Place::new(&self.source.name, &self.source.text, begin + at, cell.len().max(1)))
    }
}

/// Reads the rows of the file.
fn for_each_row(source: &Source, mut each: impl FnMut(&Row<'_>) -> Read<()>) -> Read<()> {
    let help = format!("the columns are {}", listed(COLUMNS));
    let mut table = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(source.text.as_bytes());
    let malformed = |error: csv::Error| {
        let begin = error.position().map_or(0, |position| usize::try_from(position.byte()).unwrap_or(0));
        InputError::new(format!("`{}` is no CSV file with one header", source.name))
            .at(Some(Place::new(&source.name, &source.text, begin, 1)))
            .because("another number of columns than the header")
            .help(help.clone())
    };
    let header = table.headers().map_err(malformed)?.clone();
    let positions = COLUMNS.map(|column| header.iter().position(|title| title == column));
    for (column, position) in COLUMNS.into_iter().zip(positions) {
        if position.is_none() && column != COLUMNS[PLATFORM] {
            return Err(InputError::new(format!("`{}` has no column `{column}`", source.name))
                .at(Some(Place::new(&source.name, &source.text, 0, source.text.lines().next().map_or(1, str::len))))
                .because("header")
                .help(help));
        }
    }
    for record in table.records() {
        each(&Row { source, record: &record.map_err(malformed)?, positions: &positions })?;
    }
    Ok(())
}

/// What the rows are read for.
struct Run<'r> {
    fleet: &'r Fleet,
    start: Timestamp,
    end: SimTime,
    catalog: &'r Catalog,
}

impl Run<'_> {
    /// The usage of a row and its hour; `None` outside the run.
    fn line(&self, row: &Row<'_>) -> Read<Option<(u32, UsageLine)>> {
        let hour = self.hour(row)?;
        let account = self.account(row)?;
        let region = self.region(row)?;
        let kind = kind(row, &region)?;
        let platform = platform(row)?;
        let list = list(row)?;
        let Some(hour) = u32::try_from(hour).ok() else { return Ok(None) };
        let from = SimTime::ZERO + HOUR * i64::from(hour);
        if from >= self.end {
            return Ok(None);
        }
        let usage = UsageLine {
            cluster: Symbol::new(OUTSIDE_CLUSTERS),
            account,
            node: 0,
            region: region.name,
            zone: Symbol::new(""),
            kind,
            platform,
            tenancy: Tenancy::Shared,
            list,
            rate: list,
            ran: ((from + HOUR).min(self.end)) - from,
            is_reservation: false,
        };
        Ok(Some((hour, usage)))
    }

    /// Hours from the start of the run.
    fn hour(&self, row: &Row<'_>) -> Read<i64> {
        let text = row.cell(HOUR_COLUMN);
        if let Ok(number) = text.parse::<u32>() {
            return Ok(i64::from(number));
        }
        let help =
            "write the start of a clock hour, for example `2026-06-01T13:00:00Z`, or hours from the start of the run";
        let time: Timestamp =
            text.parse().map_err(|_| row.wrong(HOUR_COLUMN, format!("`{text}` is not an hour")).help(help))?;
        if time.as_second().rem_euclid(3_600) != 0 || time.subsec_nanosecond() != 0 {
            return Err(row.wrong(HOUR_COLUMN, format!("`{text}` is not on a full hour")).help(help));
        }
        Ok((time.as_second() - self.start.as_second()).div_euclid(3_600))
    }

    fn account(&self, row: &Row<'_>) -> Read<Symbol> {
        let text = row.cell(ACCOUNT);
        let is_called = |account: &&crate::Account| account.name == text || account.id == text;
        match self.fleet.accounts.iter().find(is_called) {
            Some(account) => Ok(Symbol::new(&account.id)),
            None => {
                let names = self.fleet.accounts.iter().map(|account| account.name.as_str());
                let message = format!("the account `{text}` is not one of this fleet");
                Err(row.wrong(ACCOUNT, message).help(meant(text, names)))
            }
        }
    }

    fn region(&self, row: &Row<'_>) -> Read<Arc<Region>> {
        let text = row.cell(REGION);
        self.catalog.region(text).map_err(|error| match error {
            CatalogError::UnknownRegion { .. } => {
                let known: Vec<&str> = self.catalog.regions().collect();
                row.wrong(REGION, format!("no prices for region `{text}`")).help(meant(text, known.into_iter()))
            }
            other => row.wrong(REGION, other.to_string()),
        })
    }
}

/// What a row is usage of.
fn kind(row: &Row<'_>, region: &Arc<Region>) -> Read<UsageKind> {
    let text = row.cell(FAMILY);
    match text {
        "fargate" => return Ok(UsageKind::FargateCpu),
        "lambda" => return Ok(UsageKind::Lambda),
        _ => {}
    }
    if region.types.iter().any(|kind| kind.facts.family.as_str() == text) {
        return Ok(UsageKind::Instance(Symbol::new(text)));
    }
    let known = families(std::slice::from_ref(region));
    let message = format!("{} has no instance family `{text}`", region.name);
    let help = match text.split_once('.') {
        Some((family, _)) => format!("write the family: `{family}`"),
        None => match nodecast_model::text::error::nearest(text, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write an instance family, `fargate`, or `lambda`".to_owned(),
        },
    };
    Err(row.wrong(FAMILY, message).help(help))
}

fn platform(row: &Row<'_>) -> Read<Platform> {
    let text = row.cell(PLATFORM);
    if text.is_empty() {
        return Ok(Platform::Linux);
    }
    let named = PLATFORMS.into_iter().find(|platform| platform.as_str() == text);
    named.ok_or_else(|| {
        let known = PLATFORMS.map(Platform::as_str);
        row.wrong(PLATFORM, format!("unknown platform `{text}`")).help(meant(text, known.into_iter()))
    })
}

/// Value at list prices of the hour.
fn list(row: &Row<'_>) -> Read<HourlyRate> {
    let text = row.cell(LIST);
    HourlyRate::parse(text).filter(|rate| *rate >= HourlyRate::ZERO).ok_or_else(|| {
        row.wrong(LIST, format!("`{text}` is not an amount"))
            .help("write the value at list prices of the hour, with at most nine decimals, for example 0.192")
    })
}

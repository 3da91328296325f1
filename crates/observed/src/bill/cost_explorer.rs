//! The table that Cost Explorer lets one download: days down, the values of one grouping across.
//!
//! `Service,EC2-Instances($),...,Total costs($)`, then a row `Service total` and one for each day. It names no resources: good for daily
//! totals alone.

use std::io::Read;

use jiff::Timestamp;
use nodecast_model::text::InputError;

use super::amount::Amount;
use super::columns::instant;
use super::place::{Mistake, Spot, of_file};
use super::rows::broken;
use super::source::Watch;

/// Costs by day and by one grouping.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DailyCosts {
    /// What it is grouped by: `Service`, `Usage type`, a tag.
    pub grouping: String,
    /// The values of the grouping, without the sign of the currency.
    pub columns: Vec<String>,
    /// The sign of the currency, where the header states one.
    pub currency: String,
    /// The spans, which are days, or hours or months if it was downloaded so.
    pub days: Vec<DayCosts>,
    /// The table's own total, where it has one. Where it differs from the sum of the days, rows are missing.
    pub stated_total: Option<Amount>,
}

/// The costs of one day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DayCosts {
    /// The begin of the day, in UTC.
    pub start: Timestamp,
    /// One for each column; nothing where the cell is empty.
    pub costs: Vec<Amount>,
    /// The total that the row states.
    pub total: Amount,
}

impl DailyCosts {
    /// The sum over all days.
    pub fn total(&self) -> Amount {
        self.days.iter().map(|day| day.total).sum()
    }
}

/// Whether a header is that of such a table.
pub(super) fn recognises(header: &csv::StringRecord) -> bool {
    header.len() >= 2
        && header.iter().next_back().is_some_and(|title| title.to_ascii_lowercase().starts_with("total cost"))
}

/// Reads the rows below the header.
pub(super) fn read<R: Read>(file: &str, mut reader: csv::Reader<R>, watch: &Watch) -> Result<DailyCosts, InputError> {
    let header = reader.headers().map_err(|error| broken(file, &error, watch))?.clone();
    let (names, last) = (header.len() - 1, header.iter().next_back().unwrap_or_default());
    let currency = sign(last).map_or("", |(_, currency)| currency).to_owned();
    let column = |title: &str| sign(title).map_or(title, |(name, _)| name).to_owned();
    let mut table = DailyCosts {
        grouping: header.get(0).unwrap_or_default().to_owned(),
        columns: header.iter().take(names).skip(1).map(column).collect(),
        currency,
        days: Vec::new(),
        stated_total: None,
    };
    let mut row = csv::StringRecord::new();
    while reader.read_record(&mut row).map_err(|error| broken(file, &error, watch))? {
        watch.row_done();
        let line = watch.line(row.position());
        let spot = Spot { file, line, cells: &row, names: None };
        let costs = (1..row.len()).map(|at| cost(&row, at)).collect::<Result<Vec<_>, _>>();
        let mut costs = costs.map_err(|mistake| spot.error(mistake))?;
        let total = costs.pop().unwrap_or_default();
        let title = row.get(0).unwrap_or_default();
        if title.to_ascii_lowercase().ends_with("total") {
            table.stated_total = Some(total);
        } else if let Some(start) = start_of(title) {
            table.days.push(DayCosts { start, costs, total });
        } else {
            return Err(spot.error(Mistake {
                position: Some(0),
                message: "a row is neither a day nor a total".to_owned(),
                reason: "this is no day".to_owned(),
                help: "download the table with daily granularity".to_owned(),
            }));
        }
    }
    if table.days.is_empty() {
        return Err(of_file(file, "there is no day below the header").help("download the table again"));
    }
    Ok(table)
}

/// A title such as `EC2-Instances($)` as name and sign.
fn sign(title: &str) -> Option<(&str, &str)> {
    let (name, sign) = title.strip_suffix(')')?.rsplit_once('(')?;
    Some((name.trim_end(), sign))
}

fn cost(row: &csv::StringRecord, at: usize) -> Result<Amount, Mistake> {
    let text = row.get(at).unwrap_or_default().trim();
    if text.is_empty() {
        return Ok(Amount::ZERO);
    }
    Amount::parse(text).ok_or_else(|| Mistake {
        position: Some(at),
        message: "a cost is not an amount".to_owned(),
        reason: "in this row".to_owned(),
        help: "a decimal number such as 1771.6043260751 belongs here; do not save the table from a spreadsheet"
            .to_owned(),
    })
}

/// The instant of `2026-10-13`, or of an instant.
fn start_of(title: &str) -> Option<Timestamp> {
    instant(title).or_else(|| instant(&format!("{title}T00:00:00Z")))
}

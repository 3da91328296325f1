//! CSV files of a fleet: `chargeback.csv` and `commitments.csv`.

use std::io::{self, Write};

use nodecast_commitments::{ChargebackRow, RowKind};
use nodecast_model::domain::{Money, Symbol};

use crate::summary::account_name;
use crate::{FleetBill, LoadedFleet};

/// A cell of CSV, in quotes where it has to be.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

pub(crate) fn line(output: &mut dyn Write, cells: impl IntoIterator<Item = String>) -> io::Result<()> {
    let cells: Vec<String> = cells.into_iter().map(|text| cell(&text)).collect();
    writeln!(output, "{}", cells.join(","))
}

/// Writes `chargeback.csv`: a row for each cluster, account, and the organisation, and the total.
pub(crate) fn chargeback(fleet: &LoadedFleet, bill: &FleetBill, output: &mut dyn Write) -> io::Result<()> {
    line(output, ChargebackRow::COLUMNS.map(str::to_owned))?;
    for row in &bill.rows {
        let name = |name: Option<Symbol>| name.map(|name| name.to_string()).unwrap_or_default();
        let account = row.account.map(|account| account_name(fleet, account.as_str())).unwrap_or_default();
        let cluster = match row.kind {
            RowKind::Total => "total".to_owned(),
            RowKind::Organization => "organization".to_owned(),
            RowKind::Cluster | RowKind::Account => name(row.cluster),
        };
        let amounts = row.amounts().map(|amount| amount.to_string());
        line(output, [cluster, account, name(row.group)].into_iter().chain(amounts))?;
    }
    Ok(())
}

/// Writes `commitments.csv`: each hour of each commitment, then the used part of its fee by cluster over the run.
pub(crate) fn commitments(bill: &FleetBill, output: &mut dyn Write) -> io::Result<()> {
    let titles = ["commitment", "hour", "cluster", "fee", "used", "unused", "covered_list"];
    line(output, titles.map(str::to_owned))?;
    for commitment in &bill.bill.commitments {
        let id = commitment.id.to_string();
        for (number, hour) in commitment.hours.iter().enumerate() {
            let amounts = [hour.fee, hour.used(), hour.unused, hour.covered_list].map(|amount| amount.to_string());
            line(output, [id.clone(), number.to_string(), String::new()].into_iter().chain(amounts))?;
        }
        for (bearer, used) in commitment.used.iter().filter(|(_, used)| **used != Money::ZERO) {
            let cells = [id.clone(), String::new(), bearer.cluster.to_string(), String::new(), used.to_string()];
            line(output, cells.into_iter().chain([String::new(), String::new()]))?;
        }
    }
    Ok(())
}

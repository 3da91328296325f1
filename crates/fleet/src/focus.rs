//! The bill of a fleet as a FOCUS file.

use std::collections::BTreeMap;
use std::io::{self, Write};

use nodecast_commitments::{
    Amounts, ChargebackRow, FocusCategory, FocusFile, FocusPricing, FocusRow, FocusService, FocusVersion, RowKind,
    focus_rows,
};
use nodecast_model::domain::{Currency, Money, SimTime, Symbol};

use crate::tables::line;
use crate::{FleetBill, FleetRun, LoadedFleet, price};

/// The name of the file.
pub const FILE: &str = "focus.csv";

/// Writes the bill: usage and commitments by the hour, all other charges of a cluster in one row of the run for each kind.
///
/// # Errors
/// Whatever `output` returns.
pub fn write(
    fleet: &LoadedFleet,
    (run, bill): (&FleetRun, &FleetBill),
    (version, currency): (FocusVersion, Currency),
    output: &mut dyn Write,
) -> io::Result<()> {
    let accounts = fleet.fleet.billing_accounts();
    let file = FocusFile { version, start: fleet.start, currency, accounts };
    let commitments = fleet.fleet.billing_commitments(fleet.start);
    let duration = fleet.clusters[0].scenario.duration;
    let clusters: Vec<_> = run.clusters.iter().map(|cluster| (cluster.bearer, &cluster.usage)).collect();
    let mut writer = Writer { file: &file, output, has_header: false, result: Ok(()) };
    price(&fleet.fleet, (fleet.start, duration), &clusters, &mut |lines, hour| {
        focus_rows(&commitments, lines, hour).iter().for_each(|row| writer.row(row));
    });
    for row in bill.rows.iter().filter(|row| row.kind != RowKind::Total) {
        other_rows(fleet, bill, row).iter().for_each(|row| writer.row(row));
    }
    writer.result
}

struct Writer<'w> {
    file: &'w FocusFile,
    output: &'w mut dyn Write,
    has_header: bool,
    result: io::Result<()>,
}

impl Writer<'_> {
    /// Writes a row; nothing after an error.
    fn row(&mut self, row: &FocusRow) {
        if self.result.is_ok() {
            self.result = self.try_row(row);
        }
    }

    fn try_row(&mut self, row: &FocusRow) -> io::Result<()> {
        let cells = row.cells(self.file);
        if !self.has_header {
            self.has_header = true;
            line(self.output, cells.iter().map(|(title, _)| (*title).to_owned()))?;
        }
        line(self.output, cells.into_iter().map(|(_, text)| text))
    }
}

/// Charges of a chargeback row that no commitment can cover, and its discount.
fn other_rows(fleet: &LoadedFleet, bill: &FleetBill, row: &ChargebackRow) -> Vec<FocusRow> {
    let of_row = |bearer: &nodecast_commitments::Bearer| Some(bearer.cluster) == row.cluster;
    let usage = bill.bill.clusters.iter().find(|(bearer, _)| of_row(bearer)).map(|(_, amounts)| *amounts);
    let usage: Amounts = usage.unwrap_or_default();
    let cluster = fleet.clusters.iter().find(|cluster| row.cluster.is_some_and(|name| name.as_str() == cluster.name));
    let region = cluster.map_or_else(|| Symbol::new("global"), |cluster| Symbol::new(cluster.scenario.region.as_str()));
    let payer = fleet.fleet.accounts.iter().find(|account| account.payer).or(fleet.fleet.accounts.first());
    let payer = payer.map_or_else(|| Symbol::new(""), |account| Symbol::new(&account.id));
    let mut tags = BTreeMap::new();
    if let Some(cluster) = cluster {
        tags.insert("aws:eks:cluster-name".to_owned(), cluster.name.clone());
        tags.insert("nodecast:policy".to_owned(), cluster.policy.clone());
    }
    let standard = FocusPricing::Standard;
    let charges = [
        (row.on_demand - usage.on_demand, FocusService::EC2, "BoxUsage:rounding", standard),
        (row.spot, FocusService::EC2, "SpotUsage", FocusPricing::Dynamic),
        (row.fargate - usage.fargate, FocusService::EKS, "Fargate-EphemeralStorage-GB-Hours", standard),
        (row.storage, FocusService::EC2, "EBS:VolumeUsage.gp3", standard),
        (row.network, FocusService::EC2, "DataTransfer-Regional-Bytes", standard),
        (row.control_plane, FocusService::EKS, "AmazonEKS-Hours:perCluster", standard),
        (row.fees, FocusService::EKS, "Fees", standard),
        (row.discount, FocusService::EC2, "Discount", standard),
    ];
    let end = SimTime::ZERO + fleet.clusters[0].scenario.duration;
    let row_of = |(amount, service, meter, pricing): (Money, FocusService, &str, FocusPricing)| FocusRow {
        account: row.account.unwrap_or(payer),
        from: SimTime::ZERO,
        to: end,
        category: FocusCategory::Usage,
        pricing,
        service,
        meter: meter.to_owned(),
        description: format!("{meter}, the whole run"),
        list: amount,
        contracted: amount,
        billed: amount,
        effective: amount,
        list_price: None,
        contracted_price: None,
        consumed: Some(1_000_000_000),
        unit: "Runs",
        commitment: None,
        region,
        zone: String::new(),
        resource: String::new(),
        tags: tags.clone(),
    };
    charges.into_iter().filter(|charge| charge.0 != Money::ZERO).map(row_of).collect()
}

//! The bill of a fleet as a FOCUS file.

use std::collections::BTreeMap;
use std::io::{self, Write};

use nodecast_commitments::{
    Bearer, ChargebackRow, FocusCategory, FocusFile, FocusPricing, FocusRow, FocusService, FocusVersion,
    OUTSIDE_CLUSTERS, RowKind, focus_rows, instance_id,
};
use nodecast_model::domain::{Currency, Money, SimDuration, SimTime, Symbol};
use nodecast_prices::Catalog;

use crate::charges::{Charge, ChargeKey, meter};
use crate::tables::line;
use crate::usage::{HOUR, hours_between};
use crate::{FleetBill, FleetRun, LoadedCluster, LoadedFleet, price};

/// The name of the file.
pub const FILE: &str = "focus.csv";
/// Tags of a cluster's rows.
const CLUSTER_TAG: &str = "aws:eks:cluster-name";
const POLICY_TAG: &str = "nodecast:policy";

/// Writes the bill hour by hour: usage and commitments, then all other charges.
///
/// # Errors
/// Whatever `output` returns.
pub fn write(
    fleet: &LoadedFleet,
    (run, bill): (&FleetRun, &FleetBill),
    (version, currency): (FocusVersion, Currency),
    catalog: &Catalog,
    output: &mut dyn Write,
) -> io::Result<()> {
    let accounts = fleet.fleet.billing_accounts();
    let file = FocusFile { version, start: fleet.start, currency, accounts };
    let commitments = fleet.fleet.billing_commitments(fleet.start);
    let clusters: Vec<_> = run.clusters.iter().map(|cluster| (cluster.bearer, &cluster.usage)).collect();
    let mut writer = Writer { file: &file, output, has_header: false, result: Ok(()) };
    let places: BTreeMap<&str, &LoadedCluster> =
        fleet.clusters.iter().map(|cluster| (cluster.name.as_str(), cluster)).collect();
    price(fleet, &clusters, &mut |lines, hour| {
        for mut row in focus_rows(&commitments, lines, hour) {
            if let Some(cluster) = row.tags.get(CLUSTER_TAG).and_then(|name| places.get(name.as_str())) {
                row.tags.insert(POLICY_TAG.to_owned(), cluster.policy.clone());
                // Usage has the ids of zones, and FOCUS their names.
                if let Ok(region) = catalog.region(cluster.scenario.region.as_str())
                    && let Some(name) = fleet.fleet.zone_name(cluster.account, &row.zone, &region)
                {
                    row.zone = name;
                }
            }
            writer.row(&row);
        }
    });
    let end = SimTime::ZERO + fleet.clusters[0].scenario.duration;
    for (cluster, run) in fleet.clusters.iter().zip(&run.clusters) {
        let place = Place::new(fleet, Some(cluster), Some(run.bearer.account), end);
        run.usage.charges.iter().for_each(|(key, charge)| writer.row(&place.charge_row(key, charge)));
    }
    for row in bill.rows.iter().filter(|row| row.kind != RowKind::Total) {
        let at =
            fleet.clusters.iter().position(|cluster| row.cluster.is_some_and(|name| name.as_str() == cluster.name));
        let written = at.map_or(Money::ZERO, |at| run.clusters[at].usage.charges.total());
        let place = Place::new(fleet, at.map(|at| &fleet.clusters[at]), row.account, end);
        place.rest_rows(bill, row, written).iter().for_each(|row| writer.row(row));
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

/// Cluster or account of rows.
struct Place<'p> {
    account: Symbol,
    cluster: Option<&'p LoadedCluster>,
    end: SimTime,
}

impl<'p> Place<'p> {
    /// The place of rows; the payer's where no account is known.
    fn new(fleet: &LoadedFleet, cluster: Option<&'p LoadedCluster>, account: Option<Symbol>, end: SimTime) -> Self {
        let payer = || fleet.fleet.accounts.iter().find(|account| account.payer).or(fleet.fleet.accounts.first());
        let account = account.or_else(|| payer().map(|account| Symbol::new(&account.id)));
        Self { account: account.unwrap_or_else(|| Symbol::new("")), cluster, end }
    }

    /// A row of one hour.
    fn row(&self, hour: u32, (service, meter): (FocusService, String), amount: Money) -> FocusRow {
        let from = SimTime::ZERO + HOUR * i64::from(hour);
        let region = self.cluster.map_or("global", |cluster| cluster.scenario.region.as_str());
        let mut tags = BTreeMap::new();
        if let Some(cluster) = self.cluster {
            tags.insert(CLUSTER_TAG.to_owned(), cluster.name.clone());
            tags.insert(POLICY_TAG.to_owned(), cluster.policy.clone());
        }
        FocusRow {
            account: self.account,
            from,
            to: (from + HOUR).min(self.end),
            category: FocusCategory::Usage,
            pricing: FocusPricing::Standard,
            service,
            description: meter.clone(),
            meter,
            list: amount,
            contracted: amount,
            billed: amount,
            effective: amount,
            list_price: None,
            contracted_price: None,
            consumed: None,
            unit: "Hours",
            commitment: None,
            region: Symbol::new(region),
            zone: String::new(),
            resource: String::new(),
            tags,
        }
    }

    /// The row of a charge that no commitment can cover.
    fn charge_row(&self, key: &ChargeKey, charge: &Charge) -> FocusRow {
        let name = self.cluster.map_or("", |cluster| cluster.name.as_str());
        let hours = i128::from(charge.ran.as_micros()) * 1_000_000_000 / i128::from(HOUR.as_micros());
        FocusRow {
            pricing: if key.is_spot { FocusPricing::Dynamic } else { FocusPricing::Standard },
            consumed: (charge.ran > SimDuration::ZERO).then_some(hours),
            zone: key.zone.map_or_else(String::new, |zone| zone.to_string()),
            resource: key.node.map_or_else(String::new, |node| instance_id(Symbol::new(name), node)),
            ..self.row(key.hour, meter(key), charge.amount)
        }
    }

    /// The rest of a chargeback row, spread evenly over the run: `written` is what its charges have already.
    fn rest_rows(&self, bill: &FleetBill, row: &ChargebackRow, written: Money) -> Vec<FocusRow> {
        // The usage of an account's row is outside the clusters.
        let cluster = row.cluster.unwrap_or_else(|| Symbol::new(OUTSIDE_CLUSTERS));
        let of_row = |bearer: &Bearer| bearer.cluster == cluster && Some(bearer.account) == row.account;
        let usage =
            bill.bill.clusters.iter().find(|(bearer, _)| of_row(bearer)).map(|(_, amounts)| amounts.effective());
        let rest = row.net - row.discount - row.unused_share - usage.unwrap_or_default() - written;
        let charges = [(rest, "BoxUsage:rounding"), (row.discount, "Discount")];
        let hours: Vec<(u32, SimDuration)> = hours_between(SimTime::ZERO, self.end).collect();
        let weights = hours.iter().map(|(_, span)| i128::from(span.as_micros()));
        let row = |(amount, name): (Money, &str)| {
            let shares = hours.iter().zip(amount.shared_by(weights.clone()));
            let shares = shares.filter(|(_, share)| *share != Money::ZERO);
            shares.map(|((hour, _), share)| self.row(*hour, (FocusService::EC2, name.to_owned()), share)).collect()
        };
        charges.into_iter().flat_map(|charge| -> Vec<FocusRow> { row(charge) }).collect()
    }
}

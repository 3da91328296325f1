//! FOCUS 1.0, 1.1 and 1.2 with AWS's further columns, as bill lines.
//!
//! Columns: FOCUS specification v1.2, `specification/columns`; AWS Data Exports user guide, tables of FOCUS 1.0 and 1.2 with AWS columns.

use nodecast_decisions::text::InputError;

use super::columns::{Cells, Columns, Wanted};
use super::cur::is_support;
use super::line::{BillLine, ChargeKind, PricingTerm};
use super::place::{Mistake, of_file};
use super::usage_type::{instance_type, without_region};

/// Numbers of the columns in [`WANTED`].
mod column {
    pub const START: usize = 0;
    pub const END: usize = 1;
    pub const PAYER: usize = 2;
    pub const ACCOUNT: usize = 3;
    pub const CURRENCY: usize = 4;
    pub const CATEGORY: usize = 5;
    pub const SERVICE: usize = 6;
    pub const USAGE_TYPE: usize = 7;
    pub const OPERATION: usize = 8;
    pub const RESOURCE: usize = 9;
    pub const ZONE: usize = 10;
    pub const REGION: usize = 11;
    pub const PRICING: usize = 12;
    pub const UNIT: usize = 13;
    pub const USAGE: usize = 14;
    pub const BILLED: usize = 15;
    pub const EFFECTIVE: usize = 16;
    pub const LIST: usize = 17;
    pub const COMMITMENT: usize = 18;
    pub const COMMITMENT_STATUS: usize = 19;
    pub const COMMITMENT_CATEGORY: usize = 20;
    pub const PROVIDER: usize = 21;
    pub const TAGS: usize = 22;
}

const fn needed(names: &'static [&'static str]) -> Wanted {
    Wanted { names, required: true }
}

const fn useful(names: &'static [&'static str]) -> Wanted {
    Wanted { names, required: false }
}

const WANTED: &[Wanted] = &[
    needed(&["ChargePeriodStart"]),
    needed(&["ChargePeriodEnd"]),
    useful(&["BillingAccountId"]),
    needed(&["SubAccountId"]),
    useful(&["BillingCurrency"]),
    needed(&["ChargeCategory"]),
    needed(&["x_ServiceCode"]),
    // 1.1 brought the first; before, AWS had a column of its own.
    needed(&["SkuMeter", "x_UsageType"]),
    useful(&["x_Operation"]),
    needed(&["ResourceId"]),
    useful(&["AvailabilityZone"]),
    useful(&["RegionId"]),
    useful(&["PricingCategory"]),
    useful(&["ConsumedUnit"]),
    needed(&["ConsumedQuantity"]),
    needed(&["BilledCost"]),
    needed(&["EffectiveCost"]),
    useful(&["ListCost"]),
    useful(&["CommitmentDiscountId"]),
    useful(&["CommitmentDiscountStatus"]),
    useful(&["CommitmentDiscountCategory"]),
    useful(&["ProviderName"]),
    needed(&["Tags"]),
];

/// Whether a header is that of a FOCUS export.
pub(super) fn recognises(header: &csv::StringRecord) -> bool {
    ["BilledCost", "EffectiveCost"].iter().all(|name| header.iter().any(|title| title == *name))
}

/// The release of the specification that a header follows, by the columns that it brought.
pub(super) fn release(header: &csv::StringRecord) -> &'static str {
    let has = |names: &[&str]| header.iter().any(|title| names.contains(&title));
    if has(&["InvoiceId", "BillingAccountType", "SubAccountType", "PricingCurrency"]) {
        "1.2"
    } else if has(&["SkuMeter", "SkuPriceDetails", "ServiceSubcategory", "CommitmentDiscountQuantity"]) {
        "1.1"
    } else {
        "1.0"
    }
}

/// Where the columns of one file are.
#[derive(Debug)]
pub(super) struct Layout {
    columns: Columns,
}

impl Layout {
    pub(super) fn new(file: &str, header: &csv::StringRecord) -> Result<Self, InputError> {
        let foreign = header.iter().all(|title| !title.starts_with("x_"));
        if foreign {
            return Err(of_file(file, "a FOCUS export without AWS's further columns")
                .help("export \"FOCUS with AWS columns\": only `x_ServiceCode` and `x_Operation` tell nodes from the rest"));
        }
        Ok(Self { columns: Columns::new(file, "a FOCUS export", header, WANTED)? })
    }

    /// The numbers of the columns that are read.
    pub(super) fn positions(&self) -> Vec<usize> {
        (0..WANTED.len()).filter_map(|column| self.columns.position(column)).collect()
    }

    /// The begin of a row's span, and its account.
    pub(super) fn when_and_who<'r>(
        &'r self,
        row: &'r csv::StringRecord,
    ) -> Result<(jiff::Timestamp, &'r str), Mistake> {
        let cells = self.columns.of(row);
        Ok((cells.instant(column::START)?, cells.text(column::ACCOUNT)))
    }

    /// The line that a row states.
    pub(super) fn line(&self, row: &csv::StringRecord) -> Result<BillLine, Mistake> {
        use column::*;
        let cells = self.columns.of(row);
        let text = |column| cells.text(column).to_owned();
        let provider = cells.text(PROVIDER);
        if !matches!(provider, "" | "AWS" | "Amazon Web Services") {
            return Err(cells.mistake(PROVIDER, "names another cloud than AWS", "export the charges of AWS alone"));
        }
        let usage_type = without_region(cells.text(USAGE_TYPE));
        let why = "every charge has a cost: the file may have been cut off";
        Ok(BillLine {
            start: cells.instant(START)?,
            end: cells.instant(END)?,
            payer: text(PAYER),
            account: text(ACCOUNT),
            service: text(SERVICE),
            usage_type: usage_type.to_owned(),
            operation: text(OPERATION),
            resource: text(RESOURCE),
            zone: text(ZONE),
            region: text(REGION),
            instance_type: instance_type(usage_type).to_owned(),
            tags: cells.map(TAGS)?,
            term: term(cells.text(PRICING)),
            kind: kind(cells),
            usage: cells.amount(USAGE)?.unwrap_or_default(),
            unit: text(UNIT),
            currency: text(CURRENCY),
            unblended: cells.needed(BILLED, why)?,
            net_unblended: None,
            amortised: cells.needed(EFFECTIVE, why)?,
            net_amortised: None,
            list: cells.amount(LIST)?,
            commitment: text(COMMITMENT),
            fingerprint: 0,
        })
    }
}

fn kind(cells: Cells<'_>) -> ChargeKind {
    let support = is_support(cells.text(column::SERVICE));
    let committed = !cells.text(column::COMMITMENT).is_empty();
    let status = cells.text(column::COMMITMENT_STATUS);
    match cells.text(column::CATEGORY) {
        "Tax" => ChargeKind::Tax,
        "Credit" => ChargeKind::Credit,
        "Adjustment" => ChargeKind::Adjustment,
        _ if support => ChargeKind::Support,
        "Purchase" if committed => ChargeKind::CommitmentFee,
        "Usage" => match (status, cells.text(column::COMMITMENT_CATEGORY)) {
            ("Unused", _) => ChargeKind::UnusedCommitment,
            ("Used", "Usage") => ChargeKind::ReservationCovered,
            ("Used", _) => ChargeKind::PlanCovered,
            _ => ChargeKind::Usage,
        },
        other => ChargeKind::Other(other.to_owned()),
    }
}

fn term(category: &str) -> PricingTerm {
    match category {
        "Standard" => PricingTerm::OnDemand,
        "Dynamic" => PricingTerm::Spot,
        "Committed" => PricingTerm::Committed,
        _ => PricingTerm::Unstated,
    }
}

//! FOCUS 1.0, 1.1 and 1.2 with AWS's further columns, as bill lines.
//!
//! Columns: FOCUS specification v1.2, `specification/columns`; AWS Data Exports user guide, tables of FOCUS 1.0 and 1.2 with AWS columns.

use nodecast_model::text::InputError;

use super::columns::{Cells, Columns, columns};
use super::cur::is_support;
use super::line::{BillLine, ChargeKind, PricingTerm};
use super::place::{Mistake, of_file};
use super::usage_type::{instance_type, without_region};

columns! {
    DESCRIPTION useful ["ChargeDescription"];
    PRICE useful ["SkuPriceId"];
    START needed ["ChargePeriodStart"];
    END needed ["ChargePeriodEnd"];
    PAYER useful ["BillingAccountId"];
    ACCOUNT needed ["SubAccountId"];
    CURRENCY useful ["BillingCurrency"];
    CATEGORY needed ["ChargeCategory"];
    SERVICE needed ["x_ServiceCode"];
    // 1.1 brought the first; before, AWS had a column of its own.
    USAGE_TYPE needed ["SkuMeter", "x_UsageType"];
    OPERATION useful ["x_Operation"];
    RESOURCE needed ["ResourceId"];
    ZONE useful ["AvailabilityZone"];
    REGION useful ["RegionId"];
    PRICING useful ["PricingCategory"];
    UNIT useful ["ConsumedUnit"];
    USAGE needed ["ConsumedQuantity"];
    BILLED needed ["BilledCost"];
    EFFECTIVE needed ["EffectiveCost"];
    LIST useful ["ListCost"];
    COMMITMENT useful ["CommitmentDiscountId"];
    COMMITMENT_STATUS useful ["CommitmentDiscountStatus"];
    COMMITMENT_CATEGORY useful ["CommitmentDiscountCategory"];
    PROVIDER useful ["ProviderName"];
    TAGS needed ["Tags"];
}

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
            return Err(of_file(file, "a FOCUS export without AWS's further columns").help(
                "export \"FOCUS with AWS columns\": only `x_ServiceCode` and `x_Operation` tell nodes from the rest",
            ));
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
        let cells = self.columns.cells(row);
        Ok((cells.instant(column::START)?, cells.text(column::ACCOUNT)))
    }

    /// The line that a row states.
    pub(super) fn line(&self, row: &csv::StringRecord) -> Result<BillLine, Mistake> {
        use column::*;
        let cells = self.columns.cells(row);
        let text = |column| cells.text(column).to_owned();
        let provider = cells.text(PROVIDER);
        if !matches!(provider, "" | "AWS" | "Amazon Web Services") {
            return Err(cells.mistake(PROVIDER, "names another cloud than AWS", "export the charges of AWS alone"));
        }
        let usage_type = without_region(cells.text(USAGE_TYPE));
        let why = "every charge has a cost: the file may have been cut off";
        Ok(BillLine {
            id: String::new(),
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

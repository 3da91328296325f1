//! AWS's Cost and Usage Report, the columns of 2.0 and of the legacy report, as bill lines.
//!
//! Columns: AWS Data Exports user guide, tables of CUR 2.0 and of the legacy report's dictionary (2026-08). Amortisation: the same
//! guide's queries by line item type.

use std::collections::BTreeMap;

use nodecast_model::text::InputError;

use super::amount::Amount;
use super::columns::{Cells, Columns, columns};
use super::line::{BillLine, ChargeKind, PricingTerm};
use super::place::Mistake;
use super::usage_type::{instance_type, without_region};

// The first name is that of CUR 2.0 and of Athena's tables of the legacy report, the second the legacy report's own.
columns! {
    ID useful ["identity_line_item_id", "identity/LineItemId"];
    START needed ["line_item_usage_start_date", "lineItem/UsageStartDate"];
    END needed ["line_item_usage_end_date", "lineItem/UsageEndDate"];
    PAYER useful ["bill_payer_account_id", "bill/PayerAccountId"];
    ACCOUNT needed ["line_item_usage_account_id", "lineItem/UsageAccountId"];
    CURRENCY useful ["line_item_currency_code", "lineItem/CurrencyCode"];
    LINE_TYPE needed ["line_item_line_item_type", "lineItem/LineItemType"];
    SERVICE needed ["line_item_product_code", "lineItem/ProductCode"];
    USAGE_TYPE needed ["line_item_usage_type", "lineItem/UsageType"];
    OPERATION useful ["line_item_operation", "lineItem/Operation"];
    RESOURCE needed ["line_item_resource_id", "lineItem/ResourceId"];
    ZONE useful ["line_item_availability_zone", "lineItem/AvailabilityZone"];
    INSTANCE_TYPE useful ["product_instance_type", "product/instanceType"];
    REGION useful ["product_region_code", "product/regionCode", "product_region", "product/region"];
    TERM useful ["pricing_term", "pricing/term"];
    UNIT useful ["pricing_unit", "pricing/unit"];
    USAGE needed ["line_item_usage_amount", "lineItem/UsageAmount"];
    UNBLENDED needed ["line_item_unblended_cost", "lineItem/UnblendedCost"];
    NET_UNBLENDED useful ["line_item_net_unblended_cost", "lineItem/NetUnblendedCost"];
    LIST useful ["pricing_public_on_demand_cost", "pricing/publicOnDemandCost"];
    PLAN useful ["savings_plan_savings_plan_a_r_n", "savingsPlan/SavingsPlanARN"];
    PLAN_EFFECTIVE useful ["savings_plan_savings_plan_effective_cost", "savingsPlan/SavingsPlanEffectiveCost"];
    PLAN_NET_EFFECTIVE useful [
        "savings_plan_net_savings_plan_effective_cost",
        "savingsPlan/NetSavingsPlanEffectiveCost",
    ];
    PLAN_COMMITMENT useful ["savings_plan_total_commitment_to_date", "savingsPlan/TotalCommitmentToDate"];
    PLAN_USED useful ["savings_plan_used_commitment", "savingsPlan/UsedCommitment"];
    PLAN_PAYMENT useful ["savings_plan_payment_option", "savingsPlan/PaymentOption"];
    RESERVATION useful ["reservation_reservation_a_r_n", "reservation/ReservationARN"];
    RESERVATION_EFFECTIVE useful ["reservation_effective_cost", "reservation/EffectiveCost"];
    RESERVATION_NET_EFFECTIVE useful ["reservation_net_effective_cost", "reservation/NetEffectiveCost"];
    UNUSED_UPFRONT useful [
        "reservation_unused_amortized_upfront_fee_for_billing_period",
        "reservation/UnusedAmortizedUpfrontFeeForBillingPeriod",
    ];
    UNUSED_RECURRING useful ["reservation_unused_recurring_fee", "reservation/UnusedRecurringFee"];
    POD_OF useful ["split_line_item_parent_resource_id", "splitLineItem/ParentResourceId"];
    TAGS useful ["resource_tags"];
}

/// Prefixes of columns that hold one tag each, in the legacy report and in Athena's tables of it.
const TAG_PREFIXES: [&str; 2] = ["resourceTags/", "resource_tags_"];

/// Whether a header is that of a Cost and Usage Report.
pub(super) fn recognises(header: &csv::StringRecord) -> bool {
    WANTED[column::USAGE_TYPE].names.iter().any(|name| header.iter().any(|title| title == *name))
}

/// Where the columns of one file are.
#[derive(Debug)]
pub(super) struct Layout {
    columns: Columns,
    /// Columns of one tag each, with the tag's key.
    tags: Vec<(usize, String)>,
    /// Whether tags stand in a map column.
    pub map_of_tags: bool,
}

impl Layout {
    pub(super) fn new(file: &str, header: &csv::StringRecord) -> Result<Self, InputError> {
        let columns = Columns::new(file, "a Cost and Usage Report", header, WANTED)?;
        let key = |title: &str| TAG_PREFIXES.iter().find_map(|prefix| title.strip_prefix(prefix).map(str::to_owned));
        let tags = header.iter().enumerate().filter_map(|(at, title)| Some((at, key(title)?))).collect();
        Ok(Self { map_of_tags: columns.position(column::TAGS).is_some(), columns, tags })
    }

    /// The numbers of the columns that are read.
    pub(super) fn positions(&self) -> Vec<usize> {
        let tags = self.tags.iter().map(|(at, _)| *at);
        (0..WANTED.len()).filter_map(|column| self.columns.position(column)).chain(tags).collect()
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
        let usage_type = without_region(cells.text(USAGE_TYPE));
        let kind = kind(cells);
        let unblended = cells.needed(UNBLENDED, "every line has a cost: the file may have been cut off")?;
        let net_unblended = cells.amount(NET_UNBLENDED)?;
        let stated_type = cells.text(INSTANCE_TYPE);
        let instance_type = if stated_type.is_empty() { instance_type(usage_type) } else { stated_type };
        let plan = cells.text(PLAN);
        Ok(BillLine {
            id: text(ID),
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
            instance_type: instance_type.to_owned(),
            tags: self.tags(cells, row)?,
            term: term(&kind, usage_type, cells.text(TERM)),
            usage: cells.amount(USAGE)?.unwrap_or_default(),
            unit: text(UNIT),
            currency: text(CURRENCY),
            unblended,
            net_unblended,
            amortised: amortised(cells, &kind, unblended)?,
            net_amortised: net_amortised(cells, &kind, net_unblended)?,
            list: cells.amount(LIST)?,
            commitment: if plan.is_empty() { text(RESERVATION) } else { plan.to_owned() },
            kind,
            fingerprint: 0,
        })
    }

    fn tags(&self, cells: Cells<'_>, row: &csv::StringRecord) -> Result<BTreeMap<String, String>, Mistake> {
        let mut tags = cells.map(column::TAGS)?;
        let single = self.tags.iter().map(|(at, key)| (key, row.get(*at).unwrap_or_default()));
        tags.extend(single.filter(|(_, value)| !value.is_empty()).map(|(key, value)| (key.clone(), value.to_owned())));
        Ok(tags)
    }
}

fn kind(cells: Cells<'_>) -> ChargeKind {
    let support = is_support(cells.text(column::SERVICE));
    match cells.text(column::LINE_TYPE) {
        "Tax" => ChargeKind::Tax,
        "Credit" => ChargeKind::Credit,
        "Refund" => ChargeKind::Refund,
        _ if support => ChargeKind::Support,
        "Usage" if !cells.text(column::POD_OF).is_empty() => ChargeKind::PodShare,
        "Usage" => ChargeKind::Usage,
        "SavingsPlanCoveredUsage" => ChargeKind::PlanCovered,
        "DiscountedUsage" => ChargeKind::ReservationCovered,
        "SavingsPlanNegation" => ChargeKind::Negation,
        "SavingsPlanRecurringFee" | "SavingsPlanUpfrontFee" | "RIFee" => ChargeKind::CommitmentFee,
        "Fee" if !cells.text(column::RESERVATION).is_empty() => ChargeKind::CommitmentFee,
        "EdpDiscount" | "PrivateRateDiscount" | "BundledDiscount" | "Discount" => ChargeKind::Discount,
        other => ChargeKind::Other(other.to_owned()),
    }
}

/// Whether a service is AWS Support.
pub(super) fn is_support(service: &str) -> bool {
    service.starts_with("AWSSupport") || service == "OCBPremiumSupport"
}

fn term(kind: &ChargeKind, usage_type: &str, stated: &str) -> PricingTerm {
    match (kind, stated) {
        (ChargeKind::PlanCovered | ChargeKind::ReservationCovered, _) => PricingTerm::Committed,
        _ if usage_type.starts_with("SpotUsage") => PricingTerm::Spot,
        (_, "OnDemand") => PricingTerm::OnDemand,
        (_, "Reserved") => PricingTerm::Committed,
        (_, "Spot") => PricingTerm::Spot,
        _ => PricingTerm::Unstated,
    }
}

/// The amortised cost of a line whose unblended cost is `unblended`.
fn amortised(cells: Cells<'_>, kind: &ChargeKind, unblended: Amount) -> Result<Amount, Mistake> {
    use column::*;
    let why = "add the column to the export's query: without it amortised costs cannot be told";
    match (kind, cells.text(LINE_TYPE)) {
        (ChargeKind::PlanCovered, _) => cells.needed(PLAN_EFFECTIVE, why),
        (ChargeKind::ReservationCovered, _) => cells.needed(RESERVATION_EFFECTIVE, why),
        (ChargeKind::CommitmentFee, "SavingsPlanRecurringFee") => {
            let used = cells.needed(PLAN_USED, why)?;
            Ok(commitment_of_hour(cells, unblended)? - used)
        }
        (ChargeKind::CommitmentFee, "RIFee") => {
            Ok(cells.amount(UNUSED_UPFRONT)?.unwrap_or_default() + cells.amount(UNUSED_RECURRING)?.unwrap_or_default())
        }
        (ChargeKind::Negation | ChargeKind::CommitmentFee, _) => Ok(Amount::ZERO),
        _ => Ok(unblended),
    }
}

/// What a Savings Plan commits its owner to in the line's hour. Without a payment upfront that is its fee. Otherwise the column "total
/// commitment to date" says it, which exports have been seen to state as the sum since the month began.
fn commitment_of_hour(cells: Cells<'_>, fee: Amount) -> Result<Amount, Mistake> {
    let without_upfront = cells.text(column::USAGE_TYPE).contains("NoUpfront")
        || cells.text(column::PLAN_PAYMENT).eq_ignore_ascii_case("No Upfront");
    if without_upfront {
        return Ok(fee);
    }
    cells.needed(column::PLAN_COMMITMENT, "add the column to the export's query: it says what a plan commits to")
}

/// The amortised cost after negotiated discounts; `None` where the export states none.
fn net_amortised(cells: Cells<'_>, kind: &ChargeKind, net: Option<Amount>) -> Result<Option<Amount>, Mistake> {
    match kind {
        ChargeKind::PlanCovered => cells.amount(column::PLAN_NET_EFFECTIVE),
        ChargeKind::ReservationCovered => cells.amount(column::RESERVATION_NET_EFFECTIVE),
        ChargeKind::Negation => Ok(net.map(|_| Amount::ZERO)),
        ChargeKind::CommitmentFee => Ok(None),
        _ => Ok(net),
    }
}

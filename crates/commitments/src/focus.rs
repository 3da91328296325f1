//! The bill as rows of FOCUS with AWS's further columns.
//!
//! A usage line that commitments share has a row for each of them and one for the rest. Purchase rows have the fees of commitments, and unused rows
//! the parts that cover nothing; both belong to the owner's account. Amounts of an hour sum to those of [`Bill`](crate::Bill) exactly.
//!
//! Source: FOCUS specification 1.2 (2025-05) and 1.3; AWS Data Exports user guide, table of FOCUS 1.2 with AWS columns.
//!
//! Deviation: fees, also of commitments paid upfront, are recurring purchases of each hour, so that purchases and their use are equal in any run.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use nodecast_model::domain::{Currency, HourlyRate, Money, SimDuration, SimTime, Symbol};

use crate::accounts::Accounts;
use crate::apply::{CoveredHour, own_units, units};
use crate::bill::{Bearer, hour_amounts};
use crate::commitment::{Commitment, Commitments};
use crate::share::{HOUR, largest_remainder, rounded};
use crate::usage::{OUTSIDE_CLUSTERS, Tenancy, UsageKind, UsageLine};

/// Release of the FOCUS specification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FocusVersion {
    /// 1.2.
    #[default]
    V1_2,
    /// 1.3: also `ServiceProviderName` and `HostProviderName`.
    V1_3,
}

/// Category of a charge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FocusCategory {
    /// Usage, or the unused part of a commitment.
    Usage,
    /// The fee of a commitment.
    Purchase,
}

/// Category of a price.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FocusPricing {
    /// On-Demand, and fees.
    Standard,
    /// Under a commitment.
    Committed,
    /// Spot.
    Dynamic,
}

/// The commitment of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FocusCommitment {
    /// Its id.
    pub id: Symbol,
    /// Whether it is a Savings Plan.
    pub is_plan: bool,
    /// Whether the row has a used part; `None` of purchases.
    pub is_used: Option<bool>,
    /// Quantity in billionths: dollars of a plan, or hours of Reserved Instances.
    pub quantity: i128,
    /// Unit of the quantity.
    pub unit: &'static str,
}

/// Service of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FocusService {
    /// AWS's code, as `AmazonEC2`.
    pub code: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its category, as `Compute`.
    pub category: &'static str,
}

impl FocusService {
    /// EC2.
    pub const EC2: Self = Self { code: "AmazonEC2", name: "Amazon Elastic Compute Cloud", category: "Compute" };
    /// EKS, with Fargate.
    pub const EKS: Self = Self { code: "AmazonEKS", name: "Amazon Elastic Kubernetes Service", category: "Compute" };
    /// Lambda.
    pub const LAMBDA: Self = Self { code: "AWSLambda", name: "AWS Lambda", category: "Compute" };
    /// Savings Plans.
    pub const PLANS: Self =
        Self { code: "ComputeSavingsPlans", name: "Savings Plans for AWS Compute usage", category: "Compute" };
    /// Public addresses.
    pub const VPC: Self = Self { code: "AmazonVPC", name: "Amazon Virtual Private Cloud", category: "Networking" };
    /// Load balancers.
    pub const BALANCERS: Self = Self { code: "AWSELB", name: "Elastic Load Balancing", category: "Networking" };
}

/// A row of FOCUS. Other rows than those of commitments and their usage are the caller's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FocusRow {
    /// The account of the line.
    pub account: Symbol,
    /// Start of the charge period.
    pub from: SimTime,
    /// End of the charge period.
    pub to: SimTime,
    /// Category.
    pub category: FocusCategory,
    /// Category of the price.
    pub pricing: FocusPricing,
    /// Service.
    pub service: FocusService,
    /// Usage type, as `BoxUsage:m5.xlarge`.
    pub meter: String,
    /// Description.
    pub description: String,
    /// Cost at list prices.
    pub list: Money,
    /// Cost at the organisation's own On-Demand prices.
    pub contracted: Money,
    /// Cost on the invoice of the hour.
    pub billed: Money,
    /// Amortised cost.
    pub effective: Money,
    /// List price of a unit.
    pub list_price: Option<HourlyRate>,
    /// The organisation's own price of a unit.
    pub contracted_price: Option<HourlyRate>,
    /// Quantity used, in billionths of `unit`; `None` of unused and purchase rows.
    pub consumed: Option<i128>,
    /// Unit of the quantity.
    pub unit: &'static str,
    /// The commitment.
    pub commitment: Option<FocusCommitment>,
    /// Region.
    pub region: Symbol,
    /// Zone name or id; empty without one.
    pub zone: String,
    /// Resource; empty without one.
    pub resource: String,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// Facts that all rows of a file share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FocusFile {
    /// Release.
    pub version: FocusVersion,
    /// Time of the run's start.
    pub start: Timestamp,
    /// Currency.
    pub currency: Currency,
    /// Accounts.
    pub accounts: Accounts,
}

/// The rows of one hour: usage, unused commitments, and purchases.
pub fn focus_rows(commitments: &Commitments, lines: &[UsageLine], hour: &CoveredHour) -> Vec<FocusRow> {
    let all: Vec<Commitment<'_>> = commitments.iter().collect();
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|&at| (lines[at], at));
    let charges = charges(commitments, lines, hour);
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); lines.len()];
    for (number, part) in hour.parts.iter().enumerate() {
        parts[part.line].push(number);
    }
    let mut rows = Vec::new();
    for at in order {
        let mut of_line: Vec<usize> = std::mem::take(&mut parts[at]);
        of_line.sort_by_key(|&part| all[hour.parts[part].commitment].id());
        rows.extend(of_line.into_iter().map(|part| covered_row(&lines[at], &all, hour, part)));
        if hour.left[at] > SimDuration::ZERO {
            let row = usage_row(&lines[at], hour, hour.left[at]);
            rows.push(FocusRow { contracted: charges[at], billed: charges[at], effective: charges[at], ..row });
        }
    }
    rows.extend(fee_rows(&all, lines, hour));
    rows
}

/// Charge of each line for what nothing covers; the lines of a cluster sum to its amounts.
fn charges(commitments: &Commitments, lines: &[UsageLine], hour: &CoveredHour) -> Vec<Money> {
    let mut charges = vec![Money::ZERO; lines.len()];
    for (bearer, amounts) in hour_amounts(commitments, lines, hour) {
        for (is_fargate, amount) in [(false, amounts.on_demand), (true, amounts.fargate)] {
            let of_bearer = |line: &UsageLine| Bearer { cluster: line.cluster, account: line.account } == bearer;
            let chosen: Vec<usize> = (0..lines.len())
                .filter(|&at| of_bearer(&lines[at]) && lines[at].kind.is_fargate() == is_fargate)
                .collect();
            let weight = |&at: &usize| i128::from(lines[at].rate.as_nanos()) * i128::from(hour.left[at].as_micros());
            let weights: Vec<i128> = chosen.iter().map(weight).collect();
            for (at, share) in chosen.into_iter().zip(largest_remainder(amount.as_nanos(), &weights)) {
                charges[at] = Money::from_nanos(share);
            }
        }
    }
    charges
}

/// A row of time at the On-Demand price, without its costs but that at list prices.
fn usage_row(line: &UsageLine, hour: &CoveredHour, span: SimDuration) -> FocusRow {
    let cost = |rate: HourlyRate| rounded(i128::from(rate.as_nanos()) * i128::from(span.as_micros()));
    let (service, meter, unit) = meter(line);
    let mut tags = BTreeMap::new();
    if !line.cluster.as_str().is_empty() {
        tags.insert("aws:eks:cluster-name".to_owned(), line.cluster.to_string());
    }
    FocusRow {
        account: line.account,
        from: hour.from,
        to: hour.to,
        category: FocusCategory::Usage,
        pricing: FocusPricing::Standard,
        service,
        description: format!("{meter} at {} per hour", line.rate),
        meter,
        list: cost(line.list),
        contracted: cost(line.rate),
        billed: Money::ZERO,
        effective: Money::ZERO,
        list_price: Some(line.list),
        contracted_price: Some(line.rate),
        consumed: Some(hours(i128::from(span.as_micros()))),
        unit,
        commitment: None,
        region: line.region,
        zone: line.zone.to_string(),
        resource: resource(line),
        tags,
    }
}

/// A row of a covered part.
fn covered_row(line: &UsageLine, all: &[Commitment<'_>], hour: &CoveredHour, part: usize) -> FocusRow {
    let part = &hour.parts[part];
    let commitment = &all[part.commitment];
    let quantity = used_quantity(commitment, line, part.covered, part.fee);
    FocusRow {
        pricing: FocusPricing::Committed,
        effective: part.fee,
        commitment: Some(named(commitment, Some(true), quantity)),
        ..usage_row(line, hour, part.covered)
    }
}

/// The unused and the purchase row of each commitment, in order of id.
fn fee_rows(all: &[Commitment<'_>], lines: &[UsageLine], hour: &CoveredHour) -> Vec<FocusRow> {
    let mut order: Vec<usize> =
        (0..all.len()).filter(|&number| all[number].term().within(hour.from, hour.to) > 0).collect();
    order.sort_by_key(|&number| all[number].id());
    let mut rows = Vec::new();
    for number in order {
        let (commitment, fee) = (&all[number], hour.fees[number]);
        let bought = match commitment {
            Commitment::Plan(_) => fee.paid.as_nanos(),
            Commitment::Reserved(reserved) => {
                let micros = commitment.term().within(hour.from, hour.to);
                hours(micros * i128::from(reserved.count) * own_units(reserved)) / divisor(commitment)
            }
        };
        let of_this = hour.parts.iter().filter(|part| part.commitment == number);
        let used: i128 = of_this.map(|part| used_quantity(commitment, &lines[part.line], part.covered, part.fee)).sum();
        if bought > used || fee.unused > Money::ZERO {
            rows.push(FocusRow {
                pricing: FocusPricing::Committed,
                effective: fee.unused,
                ..fee_row(commitment, hour, (Some(false), bought - used))
            });
        }
        rows.push(FocusRow {
            category: FocusCategory::Purchase,
            list: fee.paid,
            contracted: fee.paid,
            billed: fee.paid,
            ..fee_row(commitment, hour, (None, bought))
        });
    }
    rows
}

/// Quantity of a covered part in billionths.
fn used_quantity(commitment: &Commitment<'_>, line: &UsageLine, covered: SimDuration, fee: Money) -> i128 {
    match commitment {
        Commitment::Plan(_) => fee.as_nanos(),
        Commitment::Reserved(reserved) => {
            hours(i128::from(covered.as_micros()) * units(reserved, line)) / divisor(commitment)
        }
    }
}

/// A row of a commitment without costs.
fn fee_row(commitment: &Commitment<'_>, hour: &CoveredHour, (is_used, quantity): (Option<bool>, i128)) -> FocusRow {
    let (service, meter, region) = match commitment {
        Commitment::Reserved(reserved) => {
            (FocusService::EC2, format!("HeavyUsage:{}", reserved.instance_type), reserved.region)
        }
        Commitment::Plan(plan) => {
            let region = match plan.kind {
                crate::PlanKind::Instance { region, .. } => region,
                crate::PlanKind::Compute => Symbol::new("global"),
            };
            (FocusService::PLANS, "ComputeSP".to_owned(), region)
        }
    };
    FocusRow {
        account: commitment.owner(),
        from: hour.from,
        to: hour.to,
        category: FocusCategory::Usage,
        pricing: FocusPricing::Standard,
        service,
        meter,
        description: format!("{} {}", if is_used.is_some() { "unused part of" } else { "fee of" }, commitment.id()),
        list: Money::ZERO,
        contracted: Money::ZERO,
        billed: Money::ZERO,
        effective: Money::ZERO,
        list_price: None,
        contracted_price: None,
        consumed: None,
        unit: "Hours",
        commitment: Some(named(commitment, is_used, quantity)),
        region,
        zone: String::new(),
        resource: String::new(),
        tags: BTreeMap::new(),
    }
}

fn named(commitment: &Commitment<'_>, is_used: Option<bool>, quantity: i128) -> FocusCommitment {
    let (is_plan, unit) = match commitment {
        Commitment::Plan(_) => (true, "USD"),
        Commitment::Reserved(reserved) if reserved.is_size_flexible() => (false, "Normalized Hours"),
        Commitment::Reserved(_) => (false, "Hours"),
    };
    FocusCommitment { id: commitment.id(), is_plan, is_used, quantity, unit }
}

/// Units of a commitment in one of its quantity: quarters of normalised units.
fn divisor(commitment: &Commitment<'_>) -> i128 {
    match commitment {
        Commitment::Reserved(reserved) if reserved.is_size_flexible() => 4,
        _ => 1,
    }
}

/// Billionths of hours of so much time.
fn hours(micros: i128) -> i128 {
    micros * 1_000_000_000 / HOUR
}

fn meter(line: &UsageLine) -> (FocusService, String, &'static str) {
    match line.kind {
        UsageKind::Instance(name) => {
            let head = match (line.is_reservation, line.tenancy) {
                (true, _) => "Reservation",
                (false, Tenancy::Shared) => "BoxUsage",
                (false, Tenancy::Dedicated) => "DedicatedUsage",
            };
            (FocusService::EC2, format!("{head}:{name}"), "Hours")
        }
        UsageKind::FargateCpu => (FocusService::EKS, "Fargate-vCPU-Hours:perCPU".to_owned(), "vCPU-Hours"),
        UsageKind::FargateMemory => (FocusService::EKS, "Fargate-GB-Hours".to_owned(), "GB-Hours"),
        UsageKind::Lambda => (FocusService::LAMBDA, "Lambda-GB-Second".to_owned(), "Hours"),
    }
}

/// An instance id made of the cluster and the node.
pub fn instance_id(cluster: Symbol, node: u32) -> String {
    const PRIME: u64 = 0x0100_0000_01b3;
    let text = cluster.as_str().bytes().chain([0]).chain(node.to_be_bytes());
    let hash = text.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    format!("i-0{hash:016x}")
}

/// The instance of a usage line; empty without one, and outside clusters.
fn resource(line: &UsageLine) -> String {
    match line.kind {
        UsageKind::Instance(_) if !line.is_reservation && line.cluster.as_str() != OUTSIDE_CLUSTERS => {
            instance_id(line.cluster, line.node)
        }
        _ => String::new(),
    }
}

impl FocusRow {
    /// The cells of the row with the names of their columns.
    pub fn cells(&self, file: &FocusFile) -> Vec<(&'static str, String)> {
        let mut cells = self.account_cells(file);
        cells.extend(self.charge_cells());
        cells.extend(self.commitment_cells());
        cells.extend(self.service_cells(file.version));
        cells
    }

    fn account_cells(&self, file: &FocusFile) -> Vec<(&'static str, String)> {
        let account = file.accounts.get(self.account);
        let payer = file.accounts.payer().or(account);
        let name =
            |account: Option<&crate::Account>| account.map_or_else(String::new, |account| account.name.to_string());
        let payer_id = payer.map_or(self.account, |account| account.id).to_string();
        let [month, next] = month(file.start, self.from);
        vec![
            ("BillingAccountId", payer_id),
            ("BillingAccountName", name(payer)),
            ("BillingAccountType", "Payer".to_owned()),
            ("SubAccountId", self.account.to_string()),
            ("SubAccountName", name(account)),
            ("SubAccountType", "Linked".to_owned()),
            ("BillingCurrency", file.currency.code().to_owned()),
            ("PricingCurrency", file.currency.code().to_owned()),
            ("BillingPeriodStart", month),
            ("BillingPeriodEnd", next),
            ("ChargePeriodStart", at(file.start, self.from).to_string()),
            ("ChargePeriodEnd", at(file.start, self.to).to_string()),
            ("InvoiceId", String::new()),
            ("InvoiceIssuerName", "Amazon Web Services".to_owned()),
        ]
    }

    fn charge_cells(&self) -> Vec<(&'static str, String)> {
        let (category, frequency) = match self.category {
            FocusCategory::Usage => ("Usage", "Usage-Based"),
            FocusCategory::Purchase => ("Purchase", "Recurring"),
        };
        let pricing = match self.pricing {
            FocusPricing::Standard => "Standard",
            FocusPricing::Committed => "Committed",
            FocusPricing::Dynamic => "Dynamic",
        };
        let price = |price: Option<HourlyRate>| price.map_or_else(String::new, |price| price.to_string());
        let quantity = self.consumed.map_or_else(String::new, billionths);
        vec![
            ("ChargeCategory", category.to_owned()),
            ("ChargeClass", String::new()),
            ("ChargeDescription", self.description.clone()),
            ("ChargeFrequency", frequency.to_owned()),
            ("PricingCategory", pricing.to_owned()),
            ("ListCost", self.list.to_string()),
            ("ContractedCost", self.contracted.to_string()),
            ("BilledCost", self.billed.to_string()),
            ("EffectiveCost", self.effective.to_string()),
            ("ListUnitPrice", price(self.list_price)),
            ("ContractedUnitPrice", price(self.contracted_price)),
            ("PricingQuantity", quantity.clone()),
            ("PricingUnit", self.unit.to_owned()),
            ("ConsumedUnit", if quantity.is_empty() { String::new() } else { self.unit.to_owned() }),
            ("ConsumedQuantity", quantity),
        ]
    }

    fn commitment_cells(&self) -> Vec<(&'static str, String)> {
        let of = |text: &dyn Fn(&FocusCommitment) -> String| self.commitment.as_ref().map_or_else(String::new, text);
        let by_kind = |plan: &'static str, reserved: &'static str| {
            of(&|commitment| (if commitment.is_plan { plan } else { reserved }).to_owned())
        };
        let status = |commitment: &FocusCommitment| match commitment.is_used {
            Some(true) => "Used".to_owned(),
            Some(false) => "Unused".to_owned(),
            None => String::new(),
        };
        vec![
            ("CommitmentDiscountId", of(&|commitment| commitment.id.to_string())),
            ("CommitmentDiscountName", of(&|commitment| commitment.id.to_string())),
            ("CommitmentDiscountType", by_kind("Savings Plan", "Reserved Instance")),
            ("CommitmentDiscountCategory", by_kind("Spend", "Usage")),
            ("CommitmentDiscountStatus", of(&status)),
            ("CommitmentDiscountQuantity", of(&|commitment| billionths(commitment.quantity))),
            ("CommitmentDiscountUnit", of(&|commitment| commitment.unit.to_owned())),
            ("CapacityReservationId", String::new()),
            ("CapacityReservationStatus", String::new()),
        ]
    }

    fn service_cells(&self, version: FocusVersion) -> Vec<(&'static str, String)> {
        const AWS: &str = "AWS";
        let tags =
            if self.tags.is_empty() { "{}".to_owned() } else { serde_json::to_string(&self.tags).unwrap_or_default() };
        let mut cells = vec![
            ("ServiceName", self.service.name.to_owned()),
            ("ServiceCategory", self.service.category.to_owned()),
            ("ServiceSubcategory", String::new()),
            ("RegionId", self.region.to_string()),
            ("RegionName", self.region.to_string()),
            ("AvailabilityZone", self.zone.clone()),
            ("ResourceId", self.resource.clone()),
            ("ResourceName", String::new()),
            ("ResourceType", String::new()),
            ("SkuId", String::new()),
            ("SkuPriceId", String::new()),
            ("SkuPriceDetails", "{}".to_owned()),
            ("SkuMeter", self.meter.clone()),
            ("Tags", tags),
            ("ProviderName", AWS.to_owned()),
            ("PublisherName", AWS.to_owned()),
        ];
        if version == FocusVersion::V1_3 {
            cells.extend([("ServiceProviderName", AWS.to_owned()), ("HostProviderName", AWS.to_owned())]);
        }
        cells.extend([
            ("x_ServiceCode", self.service.code.to_owned()),
            ("x_UsageType", self.meter.clone()),
            ("x_Operation", operation(self)),
        ]);
        cells
    }
}

/// AWS's operation: instances run, all else has none here.
fn operation(row: &FocusRow) -> String {
    let is_instance = row.category == FocusCategory::Usage && row.meter.contains("Usage:");
    if is_instance { "RunInstances".to_owned() } else { String::new() }
}

/// A number of billionths as a decimal.
fn billionths(count: i128) -> String {
    Money::from_nanos(count).to_string()
}

fn at(start: Timestamp, time: SimTime) -> Timestamp {
    start.saturating_add(time.as_micros().microseconds()).unwrap_or(start)
}

/// Start and end of the calendar month.
fn month(start: Timestamp, time: SimTime) -> [String; 2] {
    let first = at(start, time).to_zoned(TimeZone::UTC).date().first_of_month();
    let next = first.checked_add(1.month()).unwrap_or(first);
    [first, next].map(|date: Date| format!("{date}T00:00:00Z"))
}

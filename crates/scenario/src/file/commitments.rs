//! `ec2.billing.reserved_instances` and `ec2.billing.savings_plans`: their prices where the scenario states a term. `ec2.billing.other`.

use super::{Reading, ScenarioError};
use crate::catalog::PriceQuality;
use crate::cloud::billing::other::{OtherFee, OtherPrice};
use crate::cloud::commitments::{Platform, ReservedInstances, SavingsPlan, WHOLE};
use crate::domain::Symbol;
use crate::reader::Fields;
use crate::schema::billing::{OtherKeys, PlanKeys, ReservedKeys};
use crate::tree::Location;

/// Reserved Instances with what one costs an hour.
pub(crate) fn reserved<'s>(
    reading: &Reading<'_, 's>,
    fields: Fields<'_, 's>,
    reserved_keys: ReservedKeys,
) -> Result<ReservedInstances, ScenarioError> {
    let family = reserved_keys.instance_type.as_str().split('.').next().unwrap_or_default();
    let (rate, quality) = match (reserved_keys.per_hour, reserved_keys.term) {
        (Some(rate), None) => (rate, PriceQuality::Published),
        (None, Some(_)) if reserved_keys.platform != Platform::Linux => {
            return Err(reading
                .error(
                    term(fields),
                    format!("no rates of Reserved Instances for {} are known", reserved_keys.platform.as_str()),
                )
                .because("the price data are for Linux, and discounts do not apply to licences")
                .help("use `per_hour` instead of `term`"));
        }
        (None, Some(years)) => {
            let (discount, quality) = discount(reading, fields, Symbol::new(family), (years, reserved_keys.payment))?;
            let listed = reading.region().instance_type(reserved_keys.instance_type).and_then(|kind| kind.on_demand);
            let Some(listed) = listed else {
                let at = fields.get("type").map_or(fields.at, |node| node.at);
                return Err(reading
                    .error(at, format!("no On-Demand price of {} is known", reserved_keys.instance_type))
                    .because("the discount of a term is on that price")
                    .help("state `per_hour` instead"));
            };
            let rate = listed.rate.scaled(i64::from(WHOLE - discount), i64::from(WHOLE));
            (rate, quality.max(listed.quality))
        }
        (rate, _) => return Err(one_of(reading, fields, "per_hour", rate.is_some())),
    };
    let (instance_type, platform, zone, count) =
        (reserved_keys.instance_type, reserved_keys.platform, reserved_keys.zone, reserved_keys.count);
    Ok(ReservedInstances { instance_type, platform, zone, count, rate, quality })
}

/// A line of the bill that is not simulated.
pub(crate) fn other<'s>(
    reading: &Reading<'_, 's>,
    fields: Fields<'_, 's>,
    other_keys: OtherKeys,
) -> Result<OtherFee, ScenarioError> {
    let at = |key: &'static str| fields.get(key).map_or(fields.at, |node| node.at);
    let price = match (other_keys.per_month, other_keys.per_gb) {
        (Some(price), None) if other_keys.gb_per_month.is_none() => OtherPrice::PerMonth(price),
        (None, Some(price)) => OtherPrice::PerGb { price, milli_gb: other_keys.gb_per_month },
        (Some(_), None) => {
            let error = reading.error(at("gb_per_month"), "`gb_per_month` has no effect on a price per month");
            return Err(error.help("use `per_gb` for a price per gigabyte, or remove `gb_per_month`"));
        }
        (Some(_), Some(_)) => {
            let error = reading.error(at("per_gb"), format!("`{}` has two prices", other_keys.name));
            return Err(error.help("use `per_month` or `per_gb`"));
        }
        (None, None) => {
            let error = reading.error(fields.at, format!("`{}` has no price", other_keys.name));
            return Err(error.help("add `per_month` or `per_gb`"));
        }
    };
    Ok(OtherFee { name: other_keys.name, price })
}

/// A Savings Plan with its discount.
pub(crate) fn plan<'s>(
    reading: &Reading<'_, 's>,
    fields: Fields<'_, 's>,
    plan_keys: PlanKeys,
) -> Result<SavingsPlan, ScenarioError> {
    let (rate, quality) = match (plan_keys.discount, plan_keys.term) {
        (Some(discount), None) => (discount, PriceQuality::Published),
        (None, Some(years)) => {
            let Some(family) = plan_keys.family else {
                return Err(reading
                    .error(term(fields), "the discount of a Compute Savings Plan does not follow from its term")
                    .because("it differs by family, and no rates of these plans are known")
                    .help("state `discount`, or the `family` of an EC2 Instance Savings Plan"));
            };
            discount(reading, fields, family, (years, plan_keys.payment))?
        }
        (discount, _) => return Err(one_of(reading, fields, "discount", discount.is_some())),
    };
    if let Some((family, node)) = plan_keys.family.zip(fields.get("fargate_discount")) {
        return Err(reading
            .error(node.at, format!("a plan for {family} does not cover Fargate"))
            .because("EC2 Instance Savings Plans are for instances of one family")
            .help("leave `family` out for a Compute Savings Plan, or `fargate_discount`"));
    }
    Ok(SavingsPlan {
        family: plan_keys.family,
        commitment: plan_keys.commitment,
        discount: rate,
        family_discounts: plan_keys.family_discounts,
        fargate_discount: plan_keys.fargate_discount,
        quality,
    })
}

/// The discount of AWS's rates for the family, in millionths of the On-Demand price, for so many years and with all paid upfront or nothing;
/// and its quality.
fn discount(
    reading: &Reading<'_, '_>,
    fields: Fields<'_, '_>,
    family: Symbol,
    (years, payment): (u32, Option<bool>),
) -> Result<(u32, PriceQuality), ScenarioError> {
    let at = term(fields);
    let Some(all_upfront) = payment else {
        return Err(reading
            .error(at, "`term` goes with `payment`")
            .because("the price depends on the upfront payment")
            .help("add `payment: no_upfront` or `payment: all_upfront`"));
    };
    let region = reading.region().name;
    let Some(listed) = reading.region().commitment_discount(family) else {
        return Err(reading
            .error(at, format!("no commitment rates known for {family} in {region}"))
            .because("the price data have none of this family there")
            .help("state the price or the discount instead of `term`"));
    };
    listed.of_term(years, all_upfront).ok_or_else(|| {
        reading
            .error(at, "no rates are known for this term with this payment")
            .because("the price data have `1y` with either payment and `3y` with `all_upfront`")
            .help("state the price or the discount instead of `term`")
    })
}

/// Where the term stands; the whole entry without one.
fn term(fields: Fields<'_, '_>) -> Location {
    fields.get("term").map_or(fields.at, |node| node.at)
}

/// The error that the price is stated twice, or not at all.
fn one_of(reading: &Reading<'_, '_>, fields: Fields<'_, '_>, price: &'static str, twice: bool) -> ScenarioError {
    let message = match twice {
        true => format!("`{price}` and `term` both set the price; use one"),
        false => format!("neither `{price}` nor `term` says what this costs"),
    };
    reading
        .error(term(fields), message)
        .because("a commitment needs exactly one price")
        .help(format!("state `{price}`, or `term: 1y` with `payment: no_upfront`"))
}

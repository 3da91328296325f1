//! On-Demand prices from the price list.

use jiff::Timestamp;
use serde_json::Value;

use super::Fact;
use super::records::{Reason, rate, text};
use super::regions;
use nodecast_model::domain::{Currency, HourlyRate};

/// What the attributes of a product must say, and what it is otherwise.
const WANTED: [(&str, &str, &str); 4] = [
    ("operatingSystem", "Linux", "not for Linux"),
    ("tenancy", "Shared", "not on shared hardware"),
    ("preInstalledSw", "NA", "with software of its own"),
    ("capacitystatus", "Used", "a capacity reservation"),
];

/// A product of `aws pricing get-products --service-code AmazonEC2`.
pub(super) fn on_demand(record: &Value) -> Result<Fact, Reason> {
    let product = record.get("product").ok_or("without `product`")?;
    if product
        .get("productFamily")
        .and_then(Value::as_str)
        .is_some_and(|product| !product.starts_with("Compute Instance"))
    {
        return Err("not an instance".into());
    }
    let attributes = product.get("attributes").ok_or("without `attributes`")?;
    let instance_type = text(attributes, "instanceType")?;
    for (key, wanted, otherwise) in WANTED {
        if text(attributes, key)? != wanted {
            return Err(otherwise.into());
        }
    }
    let optional = |key: &str| attributes.get(key).and_then(Value::as_str);
    if optional("marketoption").is_some_and(|option| option != "OnDemand") {
        return Err("not an On-Demand price".into());
    }
    if optional("locationType").is_some_and(|kind| kind != "AWS Region") {
        return Err("in a Local Zone or Wavelength Zone".into());
    }
    let by_location = || optional("location").and_then(regions::by_location);
    let region = optional("regionCode").or_else(by_location).ok_or("in a location without a known region")?;
    let price = hourly_price(record)?;
    let published = record.get("publicationDate").and_then(Value::as_str);
    let date = published.and_then(date).or(price.effective).ok_or("without a date")?;
    Ok(Fact::OnDemand {
        region: region.to_owned(),
        instance_type: instance_type.to_owned(),
        rate: price.rate,
        currency: price.currency,
        date,
    })
}

struct HourlyPrice {
    rate: HourlyRate,
    currency: Currency,
    effective: Option<String>,
}

/// The price per hour of the On-Demand term that took effect last.
fn hourly_price(record: &Value) -> Result<HourlyPrice, Reason> {
    let terms = record.pointer("/terms/OnDemand").and_then(Value::as_object).ok_or("without an On-Demand price")?;
    let mut latest: Option<HourlyPrice> = None;
    for term in terms.values() {
        let effective = term.get("effectiveDate").and_then(Value::as_str).and_then(date);
        let dimensions = term.get("priceDimensions").and_then(Value::as_object);
        for dimension in dimensions.into_iter().flat_map(|dimensions| dimensions.values()) {
            if !matches!(dimension.get("unit").and_then(Value::as_str), Some("Hrs" | "Hours")) {
                continue;
            }
            let by_currency = dimension.get("pricePerUnit").and_then(Value::as_object);
            let known = by_currency
                .into_iter()
                .flatten()
                .find_map(|(code, price)| Some((Currency::from_code(code)?, price.as_str()?)));
            let (currency, price) = known.ok_or("in another currency than USD or CNY")?;
            if latest.as_ref().is_none_or(|latest| latest.effective < effective) {
                latest = Some(HourlyPrice { rate: rate(price)?, currency, effective: effective.clone() });
            }
        }
    }
    latest.ok_or_else(|| "without a price per hour".into())
}

/// The day of an instant, in UTC.
fn date(instant: &str) -> Option<String> {
    let instant: Timestamp = instant.parse().ok()?;
    Some(day(instant))
}

/// The day of an instant, in UTC: `2026-11-20`.
pub(super) fn day(instant: Timestamp) -> String {
    instant.to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::on_demand;
    use crate::import::Fact;

    fn product() -> Value {
        json!({
            "product": {"productFamily": "Compute Instance", "attributes": {
                "instanceType": "m7g.xlarge", "location": "EU (Ireland)", "locationType": "AWS Region",
                "operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}},
            "terms": {"OnDemand": {
                "A": {"effectiveDate": "2026-10-01T00:00:00Z", "priceDimensions": {"A.1": {
                    "unit": "Hrs", "pricePerUnit": {"USD": "0.1800000000"}}}},
                "B": {"effectiveDate": "2026-11-01T00:00:00Z", "priceDimensions": {"B.1": {
                    "unit": "Hrs", "pricePerUnit": {"USD": "0.1700000000"}}}}}}
        })
    }

    #[test]
    fn latest_effective_term_sets_price_and_date() {
        let Ok(Fact::OnDemand { region, rate, date, .. }) = on_demand(&product()) else { panic!() };
        assert_eq!((region.as_str(), rate.as_nanos(), date.as_str()), ("eu-west-1", 170_000_000, "2026-11-01"));
        let mut dated = product();
        dated["publicationDate"] = "2026-11-18T22:00:00Z".into();
        assert!(matches!(on_demand(&dated), Ok(Fact::OnDemand { date, .. }) if date == "2026-11-18"));
    }

    #[test]
    fn prices_other_than_plain_linux_are_excluded() {
        for (key, value, reason) in [
            ("operatingSystem", "Windows", "not for Linux"),
            ("tenancy", "Dedicated", "not on shared hardware"),
            ("preInstalledSw", "SQL Std", "with software of its own"),
            ("capacitystatus", "AllocatedCapacityReservation", "a capacity reservation"),
            ("marketoption", "CapacityBlock", "not an On-Demand price"),
            ("locationType", "AWS Local Zone", "in a Local Zone or Wavelength Zone"),
            ("location", "The Moon", "in a location without a known region"),
        ] {
            let mut record = product();
            record["product"]["attributes"][key] = value.into();
            assert_eq!(on_demand(&record), Err(reason.into()), "{key}");
        }
    }
}

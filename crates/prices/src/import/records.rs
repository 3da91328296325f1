//! Finding the records in a document and telling their kinds apart by what they hold.

use std::borrow::Cow;

use serde_json::Value;

use super::{Fact, RecordKind, hardware, price_list, spot_history};

/// Why a record is left out.
pub(super) type Reason = Cow<'static, str>;

/// What is done with a record: its kind, a name for it, what it says.
pub(super) type Each<'a> = dyn FnMut(RecordKind, &str, Result<Fact, Reason>) + 'a;

/// Where the answers of the AWS CLI keep their records.
const CONTAINERS: [(&str, RecordKind); 4] = [
    ("PriceList", RecordKind::OnDemandPrice),
    ("SpotPriceHistory", RecordKind::SpotPrice),
    ("InstanceTypeOfferings", RecordKind::Offering),
    ("InstanceTypes", RecordKind::InstanceType),
];

/// Calls `each` for every record of `document` with its kind, a name for it and what it says. A document may be an answer
/// as it is, a list of records (as `--query` leaves it) or a single record. Returns what the document holds if nothing
/// in it was recognised.
pub(super) fn read(document: Value, each: &mut Each<'_>) -> Option<String> {
    let mut seen = false;
    let mut record = |record: Value, expected: Option<RecordKind>| {
        let record = unwrapped(record);
        if let Some(kind) = kind_of(&record).or(expected) {
            seen = true;
            each(kind, &name_of(&record), fact(kind, &record));
        }
    };
    let found = description(&document);
    match document {
        Value::Object(mut entries) => {
            let contained = CONTAINERS.into_iter().find_map(|(key, kind)| Some((entries.remove(key)?, kind)));
            match contained {
                Some((Value::Array(records), kind)) => {
                    records.into_iter().for_each(|entry| record(entry, Some(kind)));
                    if !seen {
                        each(kind, "", Err("the list is empty".into()));
                    }
                    return None;
                }
                Some(_) => {}
                None => record(Value::Object(entries), None),
            }
        }
        Value::Array(records) => records.into_iter().for_each(|entry| record(entry, None)),
        other => record(other, None),
    }
    (!seen).then_some(found)
}

/// A record that is JSON written into a string, as those of the price list are, read.
fn unwrapped(record: Value) -> Value {
    match &record {
        Value::String(text) => serde_json::from_str(text).unwrap_or(record),
        _ => record,
    }
}

fn kind_of(record: &Value) -> Option<RecordKind> {
    let has = |key: &str| record.get(key).is_some();
    match () {
        () if has("product") => Some(RecordKind::OnDemandPrice),
        () if has("SpotPrice") => Some(RecordKind::SpotPrice),
        () if has("LocationType") => Some(RecordKind::Offering),
        () if has("VCpuInfo") => Some(RecordKind::InstanceType),
        () => None,
    }
}

fn fact(kind: RecordKind, record: &Value) -> Result<Fact, Reason> {
    match kind {
        RecordKind::OnDemandPrice => price_list::on_demand(record),
        RecordKind::SpotPrice => spot_history::spot(record),
        RecordKind::Offering => spot_history::offering(record),
        RecordKind::InstanceType => hardware::hardware(record),
        // Stands in tables only; no JSON is recognised as one.
        RecordKind::OwnPrice => Err("not an answer of the AWS CLI".into()),
    }
}

/// The instance type of a record; of something else its beginning.
fn name_of(record: &Value) -> String {
    let of_product = || record.pointer("/product/attributes/instanceType");
    match record.get("InstanceType").or_else(of_product).and_then(Value::as_str) {
        Some(name) => name.to_owned(),
        None => record.to_string().chars().take(40).collect(),
    }
}

/// What a document is, for somebody who meant another.
fn description(document: &Value) -> String {
    match document {
        Value::Object(entries) if entries.is_empty() => "it is an empty object".to_owned(),
        Value::Object(entries) => {
            let keys: Vec<String> = entries.keys().take(4).map(|key| format!("`{key}`")).collect();
            format!("its keys are {}{}", keys.join(", "), if entries.len() > 4 { ", ..." } else { "" })
        }
        Value::Array(records) => format!("it is a list of {} other things", records.len()),
        _ => "it is neither an object nor a list".to_owned(),
    }
}

/// The text at `key`.
///
/// # Errors
/// If there is none.
pub(super) fn text<'a>(record: &'a Value, key: &str) -> Result<&'a str, Reason> {
    let text = record.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    text.ok_or_else(|| format!("without `{key}`").into())
}

/// A decimal as a price per hour, rounded to nine decimals.
///
/// # Errors
/// If it is no plain decimal above zero.
pub(super) fn rate(text: &str) -> Result<nodecast_model::domain::HourlyRate, Reason> {
    use nodecast_model::domain::HourlyRate;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let kept = fraction.char_indices().nth(9).map_or(fraction.len(), |(at, _)| at);
    let (fraction, rest) = fraction.split_at(kept);
    let truncated = HourlyRate::parse(&format!("{whole}.{fraction}"));
    let is_plain = rest.bytes().all(|digit| digit.is_ascii_digit());
    let Some(truncated) = truncated.filter(|_| is_plain) else {
        return Err("the price is not a plain decimal".into());
    };
    let rounding = i64::from(rest.bytes().next().is_some_and(|digit| digit >= b'5'));
    match truncated.as_nanos().saturating_add(rounding) {
        0 => Err("the price is zero".into()),
        nanos => Ok(HourlyRate::from_nanos(nanos)),
    }
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn decimals_of_any_length_are_rounded_to_nine() {
        let nanos = |text| rate(text).ok().map(|rate| rate.as_nanos());
        assert_eq!(nanos("0.1632000000"), Some(163_200_000));
        assert_eq!(nanos("0.0000000015"), Some(2));
        assert_eq!(nanos("12"), Some(12_000_000_000));
        for bad in ["0.0000000000", "", "1e3", "-1", "0.123456789x", "0.1é"] {
            assert_eq!(nanos(bad), None, "{bad}");
        }
    }
}

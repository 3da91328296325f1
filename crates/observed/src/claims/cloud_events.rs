//! What AWS records of instances: CloudTrail's calls, and EventBridge's notices.
//!
//! Source: AWS CloudTrail user guide (record contents, `AwsServiceEvent`), EC2 user guide (Spot interruption notices, state changes), EC2
//! API reference (CreateFleet, `errorSet`).

use serde_json::Value;

use super::ledger::{Fact, Ledger, Subject};
use super::lives::{End, Milestone, Shortage};
use super::values::{at, instant, items, text};

/// Takes up one record of CloudTrail.
pub(super) fn trail(ledger: &mut Ledger, value: &Value) {
    // `aws cloudtrail lookup-events` keeps the record as text.
    let inner = text(value, &["CloudTrailEvent"]).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let record = inner.as_ref().unwrap_or(value);
    match text(record, &["eventName"]).unwrap_or_default() {
        "CreateFleet" => shortages(ledger, record),
        "TerminateInstances" => terminated(ledger, record),
        "BidEvictedEvent" => {
            for instance in items(record, &["serviceEventDetails", "instanceIdSet"]).iter().filter_map(Value::as_str) {
                ledger.note(Subject::Instance(instance.to_owned()), Fact::End(End::Interrupted));
            }
        }
        "RunInstances" => {}
        other => return ledger.left(other),
    }
    ledger.taken();
}

/// Lists that AWS writes as a list, as `{item: [...]}`, or as one object alone.
fn listed(value: Option<&Value>) -> Vec<&Value> {
    match value {
        Some(Value::Array(items)) => items.iter().collect(),
        Some(map @ Value::Object(_)) => match map.get("item").or_else(|| map.get("items")) {
            Some(inner) => listed(Some(inner)),
            None => vec![map],
        },
        _ => Vec::new(),
    }
}

fn shortages(ledger: &mut Ledger, record: &Value) {
    let Some(when) = instant(record, &["eventTime"]) else { return };
    let response =
        at(record, &["responseElements", "CreateFleetResponse"]).or_else(|| at(record, &["responseElements"]));
    let Some(response) = response else { return };
    let errors = response.get("errorSet").or_else(|| response.get("errors"));
    for error in listed(errors) {
        let code = text(error, &["errorCode"]).unwrap_or_default();
        if !code.contains("InsufficientInstanceCapacity") && !code.contains("UnfulfillableCapacity") {
            continue;
        }
        let overrides = at(error, &["launchTemplateAndOverrides", "overrides"]).unwrap_or(error);
        let of = |key: &str| text(overrides, &[key]).map(str::to_owned);
        let zone = of("availabilityZone");
        ledger.shortage(Shortage { at: when, instance_type: of("instanceType"), zone, count: 1 });
    }
}

fn terminated(ledger: &mut Ledger, record: &Value) {
    let when = instant(record, &["eventTime"]);
    for item in listed(at(record, &["requestParameters", "instancesSet"])) {
        if let Some(instance) = text(item, &["instanceId"]) {
            ledger.note_at(&Subject::Instance(instance.to_owned()), Milestone::Terminating, when, false);
        }
    }
}

/// Takes up one event of EventBridge.
pub(super) fn bridge(ledger: &mut Ledger, value: &Value) {
    let kind = text(value, &["detail-type"]).unwrap_or_default();
    let Some(instance) = text(value, &["detail", "instance-id"]) else { return ledger.left(kind) };
    let subject = Subject::Instance(instance.to_owned());
    let when = instant(value, &["time"]);
    match (kind, text(value, &["detail", "state"])) {
        ("EC2 Spot Instance Interruption Warning", _) => ledger.note(subject, Fact::End(End::Interrupted)),
        ("EC2 Instance State-change Notification", Some("running")) => {
            ledger.note_at(&subject, Milestone::Running, when, false);
        }
        ("EC2 Instance State-change Notification", Some("shutting-down")) => {
            ledger.note_at(&subject, Milestone::Terminating, when, false);
        }
        ("EC2 Instance State-change Notification" | "EC2 Instance Rebalance Recommendation", _) => {}
        _ => return ledger.left(kind),
    }
    ledger.taken();
}

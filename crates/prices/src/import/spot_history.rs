//! Spot prices by zone, and which zones offer a type.

use serde_json::Value;

use super::Fact;
use super::records::{Reason, rate, text};

/// An entry of `aws ec2 describe-spot-price-history`.
pub(super) fn spot(record: &Value) -> Result<Fact, Reason> {
    match text(record, "ProductDescription")? {
        "Linux/UNIX" | "Linux/UNIX (Amazon VPC)" => {}
        _ => return Err("not for Linux".into()),
    }
    let at = text(record, "Timestamp")?.parse().map_err(|_| "the timestamp is not RFC 3339")?;
    Ok(Fact::Spot {
        zone: text(record, "AvailabilityZone")?.to_owned(),
        instance_type: text(record, "InstanceType")?.to_owned(),
        rate: rate(text(record, "SpotPrice")?)?,
        at,
    })
}

/// An entry of `aws ec2 describe-instance-type-offerings --location-type availability-zone`.
pub(super) fn offering(record: &Value) -> Result<Fact, Reason> {
    if text(record, "LocationType")? != "availability-zone" {
        return Err("not by zone (ask with --location-type availability-zone)".into());
    }
    Ok(Fact::Offering {
        zone: text(record, "Location")?.to_owned(),
        instance_type: text(record, "InstanceType")?.to_owned(),
    })
}

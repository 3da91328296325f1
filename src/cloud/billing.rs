//! From instance lives to lines of the bill.
//!
//! Source: the AWS pricing pages as of 2026: running time is billed by the second with a minimum of 60 s, from entering
//! `running` to leaving it; volumes from creation to deletion, likewise.

use super::bill::{Bill, BillItem, BillLine};
use super::ec2::{Ec2, Instance};
use crate::catalog::PriceQuality;
use crate::domain::{Accrual, Currency, HourlyRate, Money, SimDuration, SimTime};

/// Seconds billed at least each time an instance enters `running`.
const MINIMUM: SimDuration = SimDuration::from_secs(60);
/// Hours in a month, for prices by the month.
const HOURS_PER_MONTH: i64 = 730;
/// gp3 per GB-month in us-east-1: 0.08 USD.
const GP3_PER_GIB_MONTH: HourlyRate = HourlyRate::from_nanos(80_000_000);
/// The EKS control plane under standard support: 0.10 USD per hour in every region priced in USD.
const CONTROL_PLANE: HourlyRate = HourlyRate::from_nanos(100_000_000);

/// The bill for everything up to `end`, when whatever still runs stops being counted.
///
/// Deviation: volumes are billed at the us-east-1 price in every USD region, and neither volumes nor the control plane are
/// billed in CNY regions, whose prices for them are not known.
pub fn bill(ec2: &Ec2, end: SimTime) -> Bill {
    let region = ec2.region();
    let mut lines: Vec<BillLine> = ec2.instances().iter().filter_map(|instance| running_time(instance, end)).collect();
    if region.currency == Currency::Usd {
        let quality = if region.name.as_str() == "us-east-1" { PriceQuality::Published } else { PriceQuality::Assumed };
        lines.extend(ec2.instances().iter().filter_map(|instance| root_volume(instance, end, quality)));
        lines.push(control_plane(end));
    }
    Bill { currency: region.currency, lines }
}

/// The price per hour of everything that is billed by the hour beside instances: the control plane.
pub fn standing_rate(currency: Currency) -> HourlyRate {
    if currency == Currency::Usd { CONTROL_PLANE } else { HourlyRate::ZERO }
}

/// Time billed for a running time of `span`: whole seconds, rounded up, at least the minimum.
pub fn billed_time(span: SimDuration) -> SimDuration {
    let whole =
        SimDuration::from_secs(span.as_micros().div_euclid(1_000_000) + i64::from(span.as_micros() % 1_000_000 != 0));
    whole.max(MINIMUM)
}

fn running_time(instance: &Instance, end: SimTime) -> Option<BillLine> {
    let from = instance.running.filter(|&from| from < end)?;
    let to = instance.terminating.unwrap_or(end).min(end);
    let billed = billed_time(to - from);
    Some(line(BillItem::Instance, instance, from, to, billed, instance.rate, instance.quality))
}

fn root_volume(instance: &Instance, end: SimTime, quality: PriceQuality) -> Option<BillLine> {
    let from = Some(instance.accepted).filter(|&from| from < end)?;
    let to = instance.terminated.unwrap_or(end).min(end);
    let rate = GP3_PER_GIB_MONTH.scaled(instance.volume_gib, HOURS_PER_MONTH);
    Some(line(BillItem::RootVolume, instance, from, to, billed_time(to - from), rate, quality))
}

fn line(
    item: BillItem,
    instance: &Instance,
    from: SimTime,
    to: SimTime,
    billed: SimDuration,
    rate: HourlyRate,
    quality: PriceQuality,
) -> BillLine {
    BillLine {
        item,
        node: Some(instance.node),
        capacity_type: Some(instance.pool.capacity_type),
        instance_type: Some(instance.pool.instance_type),
        zone: Some(instance.pool.zone),
        from,
        to,
        billed,
        rate,
        amount: charge(rate, billed),
        quality,
    }
}

fn control_plane(end: SimTime) -> BillLine {
    let billed = end - SimTime::ZERO;
    BillLine {
        item: BillItem::ControlPlane,
        node: None,
        capacity_type: None,
        instance_type: None,
        zone: None,
        from: SimTime::ZERO,
        to: end,
        billed,
        rate: CONTROL_PLANE,
        amount: charge(CONTROL_PLANE, billed),
        quality: PriceQuality::Published,
    }
}

/// What `rate` charges for `billed`.
pub fn charge(rate: HourlyRate, billed: SimDuration) -> Money {
    Accrual::of(rate, billed).total()
}

#[cfg(test)]
mod tests {
    use super::{billed_time, charge};
    use crate::domain::{HourlyRate, SimDuration};

    fn charged(rate: &str, seconds: f64) -> String {
        let rate = HourlyRate::parse(rate).unwrap();
        charge(rate, billed_time(SimDuration::from_secs_f64(seconds))).to_string()
    }

    #[test]
    fn short_lives_are_billed_for_a_minute_and_long_ones_by_the_second() {
        assert_eq!(charged("0.096", 45.0), "0.001600000");
        assert_eq!(charged("0.096", 5_400.0), "0.144000000");
        assert_eq!(charged("0.04", 1_910.0), "0.021222222");
        assert_eq!(charged("0.036", 60.1), "0.000610000");
    }
}

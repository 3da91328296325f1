//! What the EKS control plane costs: more once EKS's standard support of the cluster's Kubernetes release has ended.
//!
//! Source: the release calendar and the support FAQ of the EKS user guide, as of 2025 and 2026 (dates count from the beginning of the day, UTC);
//! endoflife.date for 1.36; extended support has been charged for since April 2024, at 0.50 USD an hour in addition to the 0.10 of every
//! cluster.

use super::{BillItem, BillLine, Listed, blank, charge};
use nodecast_model::catalog::PriceQuality;
use nodecast_model::domain::versions::KubernetesVersion;
use nodecast_model::domain::{HourlyRate, SimTime};

/// Under standard support, per hour.
pub const STANDARD: HourlyRate = HourlyRate::from_nanos(100_000_000);
/// What extended support costs beside that, per hour.
pub const EXTENDED: HourlyRate = HourlyRate::from_nanos(500_000_000);

/// From when on extended support has been charged for.
const CHARGED_SINCE: Day = (2024, 4, 1);

/// A day of the calendar: year, month, day.
type Day = (i16, i8, i8);

/// Minor releases of Kubernetes, with the days on which EKS's standard and extended support of each end. Older ones had no extended
/// support; when that of newer ones ends is not known.
const CALENDAR: [(u8, Day, Day); 14] = [
    (23, (2023, 10, 11), (2024, 10, 11)),
    (24, (2024, 1, 31), (2025, 1, 31)),
    (25, (2024, 5, 1), (2025, 5, 1)),
    (26, (2024, 6, 11), (2025, 6, 11)),
    (27, (2024, 7, 24), (2025, 7, 24)),
    (28, (2024, 11, 26), (2025, 11, 26)),
    (29, (2025, 3, 23), (2026, 3, 23)),
    (30, (2025, 7, 23), (2026, 7, 23)),
    (31, (2025, 11, 26), (2026, 11, 26)),
    (32, (2026, 3, 23), (2027, 3, 23)),
    (33, (2026, 7, 29), (2027, 7, 29)),
    (34, (2026, 12, 2), (2027, 12, 2)),
    (35, (2027, 3, 27), (2028, 3, 27)),
    (36, (2027, 8, 2), (2028, 8, 2)),
];

/// Unix seconds of the beginning of a day.
fn seconds((year, month, day): Day) -> i64 {
    let midnight = jiff::civil::date(year, month, day).to_zoned(jiff::tz::TimeZone::UTC);
    midnight.map_or(i64::MAX, |instant| instant.timestamp().as_second())
}

/// The Unix second from which on extended support of this release is charged for.
pub fn extended_from(version: KubernetesVersion) -> Option<i64> {
    let row = CALENDAR.iter().find(|row| KubernetesVersion::from_minor(row.0) == Some(version))?;
    Some(seconds(row.1).max(seconds(CHARGED_SINCE)))
}

/// The Unix second from which on EKS no longer supports this release and upgrades clusters of its own accord.
pub fn unsupported_from(version: KubernetesVersion) -> Option<i64> {
    CALENDAR.iter().find(|row| KubernetesVersion::from_minor(row.0) == Some(version)).map(|row| seconds(row.2))
}

/// Whether the dates of this release are not known yet, because it is newer than the calendar.
pub fn is_newer_than_calendar(version: KubernetesVersion) -> bool {
    CALENDAR.last().and_then(|row| KubernetesVersion::from_minor(row.0)).is_some_and(|last| last < version)
}

/// Lines for the control plane of a run that ends at `end`: at the price stated, or at EKS's, with the times under extended support.
pub(super) fn lines(
    stated: Option<HourlyRate>,
    extended: &[(SimTime, SimTime)],
    listed: &mut Listed,
    end: SimTime,
) -> Vec<BillLine> {
    let line = |item, (rate, quality), (from, to): (SimTime, SimTime)| {
        let billed = to - from;
        BillLine { billed, rate, amount: charge(rate, billed), quality, ..blank(item, None, from, to) }
    };
    let Some(price) = listed.everywhere(BillItem::ControlPlane, stated, STANDARD) else { return Vec::new() };
    let mut lines = vec![line(BillItem::ControlPlane, price, (SimTime::ZERO, end))];
    if stated.is_none() {
        let within = extended.iter().map(|&(from, to)| (from, to.min(end))).filter(|(from, to)| from < to);
        lines.extend(within.map(|span| line(BillItem::ExtendedSupport, (EXTENDED, PriceQuality::Published), span)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{extended_from, unsupported_from};
    use nodecast_model::domain::versions::KubernetesVersion;

    #[test]
    fn standard_support_ends_on_calendar_dates() {
        let day = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_second();
        let of = |minor| KubernetesVersion::from_minor(minor).unwrap();
        assert_eq!(extended_from(of(31)), Some(day("2025-11-26T00:00:00Z")));
        assert_eq!(extended_from(of(23)), Some(day("2024-04-01T00:00:00Z")), "not when it ended in 2023");
        assert_eq!(unsupported_from(of(31)), Some(day("2026-11-26T00:00:00Z")));
        let last = (extended_from(of(36)), unsupported_from(of(36)));
        assert_eq!(last, (Some(day("2027-08-02T00:00:00Z")), Some(day("2028-08-02T00:00:00Z"))));
        assert_eq!((extended_from(of(22)), extended_from(of(37))), (None, None));
    }
}

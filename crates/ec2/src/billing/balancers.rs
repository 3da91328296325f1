//! Load balancers: their hours, and the capacity units that their load comes to.
//!
//! Source: the pricing page of Elastic Load Balancing as of 2026, us-east-1, and pricing-data/network.csv. A capacity unit of an Application Load Balancer is 25 new
//! connections a second, 3,000 active ones, 1 GB an hour or 1,000 rule evaluations a second; of a Network Load Balancer 800 new connections a
//! second, 100,000 active ones or 1 GB an hour (TCP); what there is most of counts. A Classic one is billed by the gigabyte. Hours are those
//! begun: AWS's price list says "per LoadBalancer-hour (or partial hour)".
//!
//! Deviation: AWS does not document whether the billed hours of a load balancer are hours of the clock. Here they
//! count from its creation. A load balancer that outlives the run is billed for the time of the run.

use std::collections::BTreeSet;

use super::network::{GB, LoadBalancers};
use super::{BillItem, BillLine, Listed, blank, charge};
use nodecast_model::catalog::{NetworkFees, PriceQuality};
use nodecast_model::domain::BalancerKind;
use nodecast_model::domain::{HourlyRate, Money, SimDuration, SimTime};

/// A load balancer that the manifests call for, and the requests that came through it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BalancerUse {
    /// What it is.
    pub kind: BalancerKind,
    /// Requests to the workloads behind it.
    pub requests: u64,
    /// Since when it is there.
    pub from: SimTime,
    /// Until when.
    pub to: SimTime,
}

/// What a kind of load balancer costs.
struct Prices {
    kind: BalancerKind,
    hour: HourlyRate,
    /// For a capacity unit used for an hour; of a Classic one, for a gigabyte.
    unit: HourlyRate,
    /// New connections for which a unit stands in an hour, if they count.
    connections: Option<i128>,
}

const fn prices(kind: BalancerKind) -> Prices {
    let (hour, unit, connections) = match kind {
        BalancerKind::Application => (22_500_000, 8_000_000, Some(25 * 3_600)),
        BalancerKind::Network => (22_500_000, 6_000_000, Some(800 * 3_600)),
        BalancerKind::Classic => (25_000_000, 8_000_000, None),
    };
    Prices { kind, hour: HourlyRate::from_nanos(hour), unit: HourlyRate::from_nanos(unit), connections }
}

const KINDS: [BalancerKind; 3] = [BalancerKind::Application, BalancerKind::Network, BalancerKind::Classic];

/// When some load balancers are there.
type Span = (SimTime, SimTime);

/// Lines for the hours and the capacity units of a run that ends at `end`: of as many as are stated, else of those in `used`, with lines
/// of their own for those that came or went during the run.
pub(super) fn lines(stated: &LoadBalancers, used: &[BalancerUse], listed: &mut Listed, end: SimTime) -> Vec<BillLine> {
    if let Some(count) = stated.count {
        let (default, whole) = (prices(BalancerKind::Network), (SimTime::ZERO, end));
        let count = i64::from(count);
        let units = count * i64::from(stated.milli_units.unwrap_or(1_000));
        let hours = hour_price(stated, &default, listed).map(|(rate, quality)| (rate.scaled(count, 1), quality));
        let capacity = unit_price(stated, &default, listed);
        let capacity = capacity.map(|(rate, quality)| (rate.scaled(units, 1_000), quality));
        return [(BillItem::LoadBalancer, hours), (BillItem::LoadBalancerCapacity, capacity)]
            .into_iter()
            .filter_map(|(item, price)| Some(line(item, price?, whole)))
            .collect();
    }
    let mut lines = Vec::new();
    for kind in KINDS {
        let balancer_uses: Vec<&BalancerUse> = used.iter().filter(|item| item.kind == kind).collect();
        let spans: BTreeSet<Span> =
            balancer_uses.iter().map(|balancer_use| (balancer_use.from, balancer_use.to)).collect();
        for span in spans {
            let together: Vec<&BalancerUse> = balancer_uses
                .iter()
                .copied()
                .filter(|balancer_use| (balancer_use.from, balancer_use.to) == span)
                .collect();
            lines.extend(of_kind(stated, kind, (span, span.1 < end), (&together, listed)));
        }
    }
    lines
}

/// A price for an hour, and how far it can be trusted.
type Price = (HourlyRate, PriceQuality);

/// What one of a kind costs.
fn hour_price(stated: &LoadBalancers, prices: &Prices, listed: &mut Listed) -> Option<Price> {
    let fee = |fees: &NetworkFees| (fees.balancer(prices.kind).0, fees.balancer_quality);
    listed.fee(BillItem::LoadBalancer, stated.per_hour, fee, prices.hour)
}

/// What a capacity unit of a kind costs.
fn unit_price(stated: &LoadBalancers, prices: &Prices, listed: &mut Listed) -> Option<Price> {
    let fee = |fees: &NetworkFees| (fees.balancer(prices.kind).1, fees.balancer_quality);
    listed.fee(BillItem::LoadBalancerCapacity, stated.per_unit_hour, fee, prices.unit)
}

fn line(item: BillItem, (rate, quality): Price, (from, to): Span) -> BillLine {
    let billed = to - from;
    BillLine { billed, rate, amount: charge(rate, billed), quality, ..blank(item, None, from, to) }
}

/// The hours that are begun in such a time.
fn begun_hours(time: SimDuration) -> SimDuration {
    const HOUR: u64 = 3_600_000_000;
    SimDuration::from_micros((time.as_micros().unsigned_abs().div_ceil(HOUR) * HOUR) as i64)
}

/// Lines for load balancers of one kind that are there at the same time, and whether they are `gone` before the run ends.
fn of_kind(
    stated: &LoadBalancers,
    kind: BalancerKind,
    (span, gone): (Span, bool),
    (item, listed): (&[&BalancerUse], &mut Listed),
) -> Vec<BillLine> {
    let count = item.len() as i64;
    let prices = prices(kind);
    let lived = span.1 - span.0;
    let billed = if gone { begun_hours(lived) } else { lived };
    let hours = hour_price(stated, &prices, listed).map(|(rate, quality)| {
        let rate = rate.scaled(count, 1);
        BillLine { billed, amount: charge(rate, billed), ..line(BillItem::LoadBalancer, (rate, quality), span) }
    });
    let is_used =
        stated.milli_units != Some(0) && (stated.milli_units.is_some() || item.iter().any(|item| item.requests > 0));
    let unit = if is_used { unit_price(stated, &prices, listed) } else { None };
    let capacity = unit.map(|(unit, quality)| match stated.milli_units {
        Some(milli) => {
            let rate = unit.scaled(count * i64::from(milli), 1_000);
            line(BillItem::LoadBalancerCapacity, (rate, quality), span)
        }
        None => {
            let amount = item.iter().map(|item| of_load(unit, &prices, item.requests, stated)).sum();
            let line = blank(BillItem::LoadBalancerCapacity, None, span.0, span.1);
            // AWS's price for units that are assumed; where the price is the user's, so is what comes of it.
            let quality = if quality == PriceQuality::Own { quality } else { PriceQuality::Assumed };
            BillLine { amount, quality, ..line }
        }
    });
    hours.into_iter().chain(capacity.filter(|line| line.amount != Money::ZERO)).collect()
}

/// What the capacity units that so many requests come to cost. Units go by what there is most of; all of it grows with the requests, so
/// that one measure leads at all times.
fn of_load(unit: HourlyRate, prices: &Prices, requests: u64, stated: &LoadBalancers) -> Money {
    let nanos = i128::from(unit.as_nanos());
    let bytes = i128::from(requests) * i128::from(stated.bytes_per_request);
    let by_bytes = (nanos * bytes + GB / 2).div_euclid(GB);
    let by_connections = prices.connections.map_or(0, |connections| {
        let opened = i128::from(requests) * i128::from(stated.connections_permille);
        (nanos * opened + connections * 500).div_euclid(connections * 1_000)
    });
    Money::from_nanos(by_bytes.max(by_connections))
}

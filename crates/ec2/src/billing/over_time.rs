//! What compute comes to over time, by the net bill.

use crate::bill::{Bill, BillLine};
use nodecast_model::domain::{HourlyRate, Money, SimTime};

/// Binary places of a nano-unit per microsecond: a line of a year loses less than a nano-unit by them.
const PLACES: u32 = 48;

/// What compute comes to at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// What an hour costs then: running instances, and what is bought ahead, used or not.
    pub rate: HourlyRate,
    /// What was charged since the instant before.
    pub amount: Money,
}

/// Compute at each of `instants`, which are in order; what runs at `end` goes on. A line is spread evenly over its time, and the
/// last instant has all that comes after it, so that the amounts sum to the compute of the net bill exactly.
pub fn over_time(bill: &Bill, instants: &[SimTime], end: SimTime) -> Vec<Spent> {
    let lines: Vec<&BillLine> = bill.net().iter().filter(|line| line.item.is_compute()).collect();
    let total: Money = lines.iter().map(|line| line.amount).sum();
    let mut changes: Vec<(SimTime, Change)> = Vec::with_capacity(lines.len() * 2);
    for line in lines {
        let span = i128::from((line.to - line.from).as_micros());
        let slope = if span > 0 { (line.amount.as_nanos() << PLACES) / span } else { 0 };
        let rate = i128::from(line.rate.as_nanos());
        changes.push((line.from, Change { rate, slope, over: 0 }));
        // Dividing lost the rest of the amount.
        let over = (line.amount.as_nanos() << PLACES) - slope * span;
        let rate = if line.to < end { -rate } else { 0 };
        changes.push((line.to, Change { rate, slope: -slope, over }));
    }
    changes.sort_by_key(|change| change.0);
    let mut meter = Meter::default();
    let mut changes = changes.into_iter().peekable();
    let mut told = Money::ZERO;
    let mut spent = Vec::with_capacity(instants.len());
    for (number, &at) in instants.iter().enumerate() {
        while let Some((when, change)) = changes.next_if(|change| change.0 <= at) {
            meter.go_to(when);
            meter.rate += change.rate;
            meter.slope += change.slope;
            meter.sum += change.over;
        }
        meter.go_to(at);
        let sum = if number + 1 == instants.len() { total } else { Money::from_nanos(meter.sum >> PLACES) };
        let rate = HourlyRate::from_nanos(i64::try_from(meter.rate).unwrap_or(i64::MAX));
        spent.push(Spent { rate, amount: sum - told });
        told = sum;
    }
    spent
}

/// What changes when a line begins or ends.
struct Change {
    rate: i128,
    slope: i128,
    over: i128,
}

/// What has come together up to an instant.
#[derive(Default)]
struct Meter {
    at: SimTime,
    rate: i128,
    slope: i128,
    sum: i128,
}

impl Meter {
    fn go_to(&mut self, at: SimTime) {
        self.sum += self.slope * i128::from((at - self.at).as_micros());
        self.at = at;
    }
}

#[cfg(test)]
mod tests {
    use super::{Spent, over_time};
    use crate::Bill;
    use crate::bill::{BillItem, BillLine};
    use crate::billing::blank;
    use nodecast_model::domain::{Currency, HourlyRate, Money, SimDuration, SimTime};

    fn at(seconds: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(seconds)
    }

    fn line(item: BillItem, from: i64, to: i64, nanos: i128) -> BillLine {
        let rate = HourlyRate::from_nanos(7_200);
        BillLine { amount: Money::from_nanos(nanos), rate, ..blank(item, None, at(from), at(to)) }
    }

    #[test]
    fn amounts_over_time_sum_to_compute_cost() {
        let lines = vec![
            line(BillItem::Instance, 10, 40, 100),
            line(BillItem::Instance, 20, 50, 7),
            line(BillItem::ControlPlane, 0, 50, 1_000),
        ];
        let spent = over_time(&Bill::plain(Currency::Usd, lines), &[at(0), at(25), at(45)], at(50));
        let expected = [(0, 0), (14_400, 51), (7_200, 56)]
            .map(|(rate, nanos)| Spent { rate: HourlyRate::from_nanos(rate), amount: Money::from_nanos(nanos) });
        assert_eq!(spent, expected);
    }
}

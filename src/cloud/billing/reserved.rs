//! What capacity reservations cost, and which part of whose life they take in.

use super::blank;
use crate::catalog::PriceQuality;
use crate::cloud::bill::{BillItem, BillLine};
use crate::cloud::commitments::Usage;
use crate::cloud::ec2::{Ec2, Instance};
use crate::cloud::market::PriceInterval;
use crate::cloud::reservations::{CapacityReservation, ReservationUse, Stretch, covered};
use crate::domain::{Accrual, HourlyRate, SimDuration, SimTime, well_known};

/// The account's capacity reservations with what each instance spent in one.
pub(super) struct ReservedLives {
    reservations: Vec<CapacityReservation>,
    rates: Vec<(HourlyRate, PriceQuality)>,
    /// For each instance, stretches within a reservation, in order.
    within: Vec<Vec<Stretch>>,
    /// For each reservation, the time that instances spent in it altogether.
    used: Vec<i128>,
    end: SimTime,
}

impl ReservedLives {
    /// Works out who was where. An instance is in one reservation at a time: the first that has room for it.
    pub(super) fn of(ec2: &mut Ec2, instances: &[Instance], end: SimTime) -> Self {
        let reservations = ec2.settings().reservations.clone();
        let listed = |reservation: &CapacityReservation, ec2: &mut Ec2| {
            let price = ec2.market().listed(reservation.pool());
            price.map_or((HourlyRate::ZERO, PriceQuality::Assumed), |price| (price.rate, price.quality))
        };
        let rates = reservations.iter().map(|reservation| listed(reservation, ec2)).collect();
        let mut within: Vec<Vec<Stretch>> = vec![Vec::new(); instances.len()];
        let mut used = Vec::with_capacity(reservations.len());
        for (reservation, position) in reservations.iter().zip(0_u32..) {
            let names = |instance: &Instance| instance.how == ReservationUse::Targeted(position);
            let eligible = |instance: &Instance| {
                names(instance)
                    || (reservation.open && instance.how == ReservationUse::Open && reservation.matches(instance.pool))
            };
            let found = instances.iter().enumerate().filter(|(number, instance)| {
                eligible(instance) && within[*number].is_empty() && life(instance, end).is_some()
            });
            let guests: Vec<usize> = found.map(|(number, _)| number).collect();
            let lives: Vec<(i64, i64, bool)> = guests
                .iter()
                .filter_map(|&number| {
                    let (from, to) = life(&instances[number], end)?;
                    Some((from, to, names(&instances[number])))
                })
                .collect();
            let stretches = covered(reservation.count, held(reservation, SimTime::ZERO, end), &lives);
            let mut total = 0;
            for (number, stretches) in guests.into_iter().zip(stretches) {
                total += stretches.iter().map(|&(from, to)| i128::from(to - from)).sum::<i128>();
                within[number] = stretches;
            }
            used.push(total);
        }
        Self { reservations, rates, within, used, end }
    }

    /// The prices of an instance's life, with nothing to pay while it is in a reservation.
    pub(super) fn priced(&self, number: usize, prices: Vec<PriceInterval>) -> Vec<PriceInterval> {
        let Some(within) = self.within.get(number).filter(|within| !within.is_empty()) else { return prices };
        let mut cuts: Vec<SimTime> =
            within.iter().flat_map(|&(from, to)| [SimTime::from_micros(from), SimTime::from_micros(to)]).collect();
        cuts.dedup();
        let mut parts = Vec::new();
        for price in prices {
            let mut from = price.from;
            let inner = cuts.iter().copied().filter(|&cut| price.from < cut && cut < price.to).chain([price.to]);
            for to in inner.collect::<Vec<_>>() {
                let free = is_within(within, from);
                let rate = if free { HourlyRate::ZERO } else { price.rate };
                parts.push(PriceInterval { from, to, rate, quality: price.quality });
                from = to;
            }
        }
        parts
    }

    /// Whether the instance is in a reservation at `at`.
    pub(super) fn is_reserved(&self, number: usize, at: SimTime) -> bool {
        self.within.get(number).is_some_and(|within| is_within(within, at))
    }

    /// Lines for the reservations: what of each was used, and what was not.
    pub(super) fn lines(&self) -> Vec<BillLine> {
        let mut lines = Vec::new();
        for ((reservation, &(rate, quality)), &used) in self.reservations.iter().zip(&self.rates).zip(&self.used) {
            let (from, to) = held(reservation, SimTime::ZERO, self.end);
            let all = i128::from((to - from).max(0)) * i128::from(reservation.count);
            for (item, micros) in
                [(BillItem::CapacityReservation, used), (BillItem::UnusedCapacityReservation, all - used)]
            {
                if micros > 0 {
                    let billed = SimDuration::from_micros(i64::try_from(micros).unwrap_or(i64::MAX));
                    lines.push(BillLine {
                        billed,
                        rate,
                        amount: Accrual::of(rate, billed).total(),
                        quality,
                        capacity_type: Some(well_known::RESERVED),
                        instance_type: Some(reservation.instance_type),
                        zone: Some(reservation.zone),
                        ..blank(item, None, SimTime::from_micros(from), SimTime::from_micros(to))
                    });
                }
            }
        }
        lines
    }

    /// What reservations add to the usage between two instants that Reserved Instances and Savings Plans discount: all that
    /// is held, used or not.
    pub(super) fn usage(&self, from: SimTime, to: SimTime) -> Vec<Usage> {
        let held_then = |(reservation, &(rate, _)): (&CapacityReservation, &(HourlyRate, PriceQuality))| {
            let (began, ended) = held(reservation, from, to);
            let ran = SimDuration::from_micros((ended - began).max(0)) * i64::from(reservation.count);
            let (instance_type, zone) = (reservation.instance_type, reservation.zone);
            (ran > SimDuration::ZERO).then_some(Usage { instance_type, zone, rate, ran, reserved: true })
        };
        self.reservations.iter().zip(&self.rates).filter_map(held_then).collect()
    }

    /// Time that an instance spent outside reservations between two instants.
    pub(super) fn outside(&self, number: usize, from: SimTime, to: SimTime) -> SimDuration {
        let inside: i64 = self.within.get(number).map_or(0, |within| {
            within.iter().map(|&(began, ended)| (ended.min(to.as_micros()) - began.max(from.as_micros())).max(0)).sum()
        });
        to - from - SimDuration::from_micros(inside)
    }
}

fn is_within(within: &[Stretch], at: SimTime) -> bool {
    within.iter().any(|&(from, to)| from <= at.as_micros() && at.as_micros() < to)
}

/// An instance's running time, in microseconds.
fn life(instance: &Instance, end: SimTime) -> Option<Stretch> {
    let from = instance.running?.as_micros();
    let to = instance.terminating.unwrap_or(end).min(end).as_micros();
    (from < to).then_some((from, to))
}

/// The part of the time between two instants during which a reservation exists.
fn held(reservation: &CapacityReservation, from: SimTime, to: SimTime) -> Stretch {
    let until = reservation.until.map_or(to, |until| until.min(to));
    (reservation.from.max(from).as_micros(), until.as_micros())
}

//! What capacity reservations cost, and which part of whose life they take in.

use super::blank;
use super::net::{Coverage, Meter, Piece, fees, mean_rate};
use crate::bill::{BillItem, BillLine};
use crate::commitments::{CoveredShare, Platform, Usage, UsageKind};
use crate::ec2::{Ec2, Instance};
use crate::market::PriceInterval;
use crate::reservations::{CapacityReservation, ReservationUse, Stretch, covered};
use nodecast_model::catalog::PriceQuality;
use nodecast_model::domain::{Accrual, HourlyRate, SimDuration, SimTime, well_known};

/// The account's capacity reservations with what each instance spent in one.
pub(super) struct ReservedLives {
    reservations: Vec<CapacityReservation>,
    rates: Vec<(HourlyRate, PriceQuality)>,
    /// For each instance, stretches within a reservation, in order.
    within: Vec<Vec<Stretch>>,
    /// For each reservation, the instances that spent time in it.
    guests: Vec<Vec<usize>>,
    /// For each reservation, the time that instances spent in it altogether.
    used: Vec<i128>,
    end: SimTime,
}

impl ReservedLives {
    /// Works out who was where. An instance is in one reservation at a time: the first that has room for it.
    pub(super) fn new(ec2: &mut Ec2, instances: &[Instance], end: SimTime) -> Self {
        let reservations = ec2.settings().reservations.clone();
        let listed = |reservation: &CapacityReservation, ec2: &mut Ec2| {
            if let Some(stated) = reservation.per_hour {
                return (stated, PriceQuality::Published);
            }
            let price = ec2.market().listed(reservation.pool());
            // What AWS asks for a block is in no list: the On-Demand price stands in.
            let quality = |listed| if reservation.block { PriceQuality::Assumed } else { listed };
            price.map_or((HourlyRate::ZERO, PriceQuality::Assumed), |price| (price.rate, quality(price.quality)))
        };
        let rates = reservations.iter().map(|reservation| listed(reservation, ec2)).collect();
        let mut within: Vec<Vec<Stretch>> = vec![Vec::new(); instances.len()];
        let (mut used, mut guests_of) = (Vec::new(), Vec::new());
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
            for (&number, stretches) in guests.iter().zip(stretches) {
                total += stretches.iter().map(|&(from, to)| i128::from(to - from)).sum::<i128>();
                within[number] = stretches;
            }
            used.push(total);
            guests_of.push(guests.into_iter().filter(|&number| !within[number].is_empty()).collect());
        }
        Self { reservations, rates, within, guests: guests_of, used, end }
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
                        amount: Accrual::new(rate, billed).total(),
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
    /// is held, used or not, but for Capacity Blocks, which they do not discount.
    /// Each with the position of its reservation. A reservation is for the platform of the first instance that used it, by position.
    pub(super) fn usage(
        &self,
        (from, to): (SimTime, SimTime),
        platform: impl Fn(usize) -> Platform,
    ) -> Vec<(usize, Usage)> {
        type ReservationGuests<'a> = ((&'a CapacityReservation, &'a (HourlyRate, PriceQuality)), &'a Vec<usize>);
        let held_then = |((reservation, &(rate, _)), guests): ReservationGuests<'_>| {
            let (began, ended) = if reservation.block { (0, 0) } else { held(reservation, from, to) };
            let ran = SimDuration::from_micros((ended - began).max(0)) * i64::from(reservation.count);
            let (kind, zone) = (UsageKind::Instance(reservation.instance_type), reservation.zone);
            let platform = guests.first().map_or(Platform::Linux, |&guest| platform(guest));
            (ran > SimDuration::ZERO).then_some(Usage { kind, platform, zone, rate, ran, reserved: true })
        };
        let all = self.reservations.iter().zip(&self.rates).zip(&self.guests).map(held_then).enumerate();
        all.filter_map(|(number, usage)| Some((number, usage?))).collect()
    }

    /// What the reservations come to net: the part that instances used stands with their nodes, what commitments cover is off,
    /// and what these cost for it is there.
    pub(super) fn net_lines(&self, instances: &[Instance], coverage: &Coverage) -> Vec<BillLine> {
        let mut lines = Vec::new();
        for (number, reservation) in self.reservations.iter().enumerate() {
            let (from, to) = held(reservation, SimTime::ZERO, self.end);
            let whole = Piece {
                from: SimTime::from_micros(from),
                to: SimTime::from_micros(to),
                ran: SimDuration::ZERO,
                share: CoveredShare::default(),
            };
            let hours = coverage.of_reservation(number);
            let hours = if hours.is_empty() && from < to { std::slice::from_ref(&whole) } else { hours };
            let mut meters = [(); 2].map(|()| Meter::new(self.rates[number].0));
            for hour in hours {
                self.net_hour(number, hour, (instances, coverage.qualities()), &mut meters, &mut lines);
            }
        }
        lines
    }

    /// The net lines of one reservation for one stretch. The meters are of what is used and of what is not.
    fn net_hour(
        &self,
        number: usize,
        hour: &Piece,
        (instances, qualities): (&[Instance], [PriceQuality; 2]),
        meters: &mut [Meter; 2],
        lines: &mut Vec<BillLine>,
    ) {
        let (reservation, (listed, quality)) = (&self.reservations[number], self.rates[number]);
        let parts = self.occupation(number, held(reservation, hour.from, hour.to));
        let weight = |part: &Occupied| i128::from(part.to - part.from) * i128::from(part.count);
        let weights: Vec<i128> = parts.iter().map(weight).collect();
        let all: i128 = weights.iter().sum();
        let by_reserved = hour.share.by_reserved.shared_by(weights.iter().copied());
        let by_plans = hour.share.by_plans.shared_by(weights.iter().copied());
        let mut reached = 0;
        let covered_until = |reached: i128| i128::from(hour.share.covered.as_micros()) * reached / all.max(1);
        for ((part, &weight), (by_reserved, by_plans)) in parts.iter().zip(&weights).zip(by_reserved.zip(by_plans)) {
            let covered = covered_until(reached + weight) - covered_until(reached);
            reached += weight;
            let share = CoveredShare { covered: span(covered), by_reserved, by_plans };
            let amount = meters[usize::from(part.guest.is_none())].read(span(weight - covered));
            let (from, to) = (SimTime::from_micros(part.from), SimTime::from_micros(part.to));
            let item =
                if part.guest.is_some() { BillItem::CapacityReservation } else { BillItem::UnusedCapacityReservation };
            let whole = listed.scaled(i64::from(part.count), 1);
            let line = BillLine {
                billed: span(weight),
                rate: if covered == 0 { whole } else { mean_rate(amount, to - from) },
                amount,
                quality,
                capacity_type: Some(well_known::RESERVED),
                instance_type: Some(reservation.instance_type),
                zone: Some(reservation.zone),
                ..blank(item, part.guest.map(|guest| &instances[guest]), from, to)
            };
            lines.extend(fees(&line, &share, qualities));
            lines.push(line);
        }
    }

    /// Who used a reservation during `hour`, and how much of it nobody did.
    fn occupation(&self, number: usize, hour: Stretch) -> Vec<Occupied> {
        let mut parts = Vec::new();
        let mut changes: Vec<(i64, i64)> = vec![(hour.0, 0), (hour.1, 0)];
        for &guest in &self.guests[number] {
            for &(from, to) in &self.within[guest] {
                let (from, to) = (from.max(hour.0), to.min(hour.1));
                if from < to {
                    parts.push(Occupied { from, to, count: 1, guest: Some(guest) });
                    changes.extend([(from, 1), (to, -1)]);
                }
            }
        }
        changes.sort_unstable();
        let mut inside = 0;
        for pair in changes.windows(2) {
            inside += pair[0].1;
            let free = u32::try_from(i64::from(self.reservations[number].count) - inside).unwrap_or(0);
            let (from, to) = (pair[0].0, pair[1].0);
            if free > 0 && from < to {
                match parts.last_mut() {
                    Some(last) if last.guest.is_none() && last.count == free && last.to == from => last.to = to,
                    _ => parts.push(Occupied { from, to, count: free, guest: None }),
                }
            }
        }
        parts
    }

    /// Time that an instance spent outside reservations between two instants.
    pub(super) fn outside(&self, number: usize, from: SimTime, to: SimTime) -> SimDuration {
        let inside: i64 = self.within.get(number).map_or(0, |within| {
            within.iter().map(|&(began, ended)| (ended.min(to.as_micros()) - began.max(from.as_micros())).max(0)).sum()
        });
        to - from - SimDuration::from_micros(inside)
    }
}

/// A stretch in which so many instances of a reservation are used by one guest, or by nobody.
struct Occupied {
    from: i64,
    to: i64,
    count: u32,
    guest: Option<usize>,
}

fn span(micros: i128) -> SimDuration {
    SimDuration::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
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

//! The net bill: what is taken back, and what was bought ahead, spread over what it covers.
//!
//! No line of it is negative. That is why what remains of a life is summed up piece by piece, and what commitments cover is
//! the difference from the list price, not the other way round.

use super::reserved::ReservedLives;
use super::{blank, charge};
use crate::bill::{BillItem, BillLine};
use crate::commitments::{CoveredShare, WHOLE};
use crate::ec2::Instance;
use nodecast_model::catalog::PriceQuality;
use nodecast_model::domain::{Accrual, HourlyRate, Money, SimDuration, SimTime};

/// Microseconds of an hour.
const HOUR: i128 = 3_600_000_000;

/// A stretch of an instance's life or of a reservation, with what commitments cover of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// Its start.
    pub from: SimTime,
    /// Its end.
    pub to: SimTime,
    /// Time used within it at the On-Demand price.
    pub ran: SimDuration,
    /// What is covered of that.
    pub share: CoveredShare,
}

/// What commitments cover, whose it is and when.
pub(super) struct Coverage {
    /// For each instance, in order of time; stretches of which nothing is covered run on over full hours.
    instances: Vec<Vec<Piece>>,
    /// For each capacity reservation, clock hour by clock hour.
    reservations: Vec<Vec<Piece>>,
    /// For vCPUs and memory of each pod on Fargate, as for instances.
    pods: Vec<[Vec<Piece>; 2]>,
    /// For each run of an instance in a warm pool, as for instances.
    warm: Vec<Vec<Piece>>,
    /// What was bought and covered nothing, by the time for which it was paid.
    unused: Vec<(SimTime, SimTime, Money)>,
    /// Quality of the prices of reservations and of the discounts of plans.
    qualities: [PriceQuality; 2],
}

impl Coverage {
    /// Room for these numbers of instances, reservations, pods on Fargate, and runs in warm pools. The qualities are those of what was bought.
    pub(super) fn new(
        (instances, reservations): (usize, usize),
        (pods, warm): (usize, usize),
        qualities: [PriceQuality; 2],
    ) -> Self {
        Self {
            instances: vec![Vec::new(); instances],
            reservations: vec![Vec::new(); reservations],
            pods: vec![<[Vec<Piece>; 2]>::default(); pods],
            warm: vec![Vec::new(); warm],
            unused: Vec::new(),
            qualities,
        }
    }

    /// Quality of what commitments cost.
    pub(super) const fn qualities(&self) -> [PriceQuality; 2] {
        self.qualities
    }

    /// Notes the next piece of an instance's life.
    pub(super) fn note_instance(&mut self, number: usize, piece: Piece) {
        note(&mut self.instances[number], piece);
    }

    /// Notes the next piece of the vCPUs (`part` 0) or the memory (1) of a pod on Fargate.
    pub(super) fn note_fargate(&mut self, (pod, part): (usize, usize), piece: Piece) {
        note(&mut self.pods[pod][part], piece);
    }

    /// Notes the next piece of a run in a warm pool.
    pub(super) fn note_warm(&mut self, run: usize, piece: Piece) {
        note(&mut self.warm[run], piece);
    }

    /// Notes a clock hour of a reservation.
    pub(super) fn note_reservation(&mut self, number: usize, piece: Piece) {
        self.reservations[number].push(piece);
    }

    /// Notes what covered nothing between two instants.
    pub(super) fn note_unused(&mut self, from: SimTime, to: SimTime, amount: Money) {
        if amount != Money::ZERO {
            self.unused.push((from, to, amount));
        }
    }

    /// The hours of a reservation; none where nothing has been bought.
    pub(super) fn of_reservation(&self, number: usize) -> &[Piece] {
        self.reservations.get(number).map_or(&[], Vec::as_slice)
    }

    /// The pieces of an instance's life, if anything is covered of it.
    fn of_instance(&self, number: usize) -> Option<&[Piece]> {
        covered(self.instances.get(number)?)
    }

    /// The pieces of a run in a warm pool, if anything is covered of it.
    pub(super) fn of_warm(&self, run: usize) -> Option<&[Piece]> {
        covered(self.warm.get(run)?)
    }

    /// The pieces of the vCPUs (`part` 0) or the memory (1) of a pod on Fargate, if anything is covered of it.
    pub(super) fn of_fargate(&self, (pod, part): (usize, usize)) -> Option<&[Piece]> {
        covered(self.pods.get(pod)?.get(part)?)
    }
}

/// Adds a piece; one of which nothing is covered goes on where the last is like it.
fn note(pieces: &mut Vec<Piece>, piece: Piece) {
    let nothing = CoveredShare::default();
    match pieces.last_mut() {
        Some(last) if last.to == piece.from && last.share == nothing && piece.share == nothing => {
            last.to = piece.to;
            last.ran += piece.ran;
        }
        _ => pieces.push(piece),
    }
}

fn covered(pieces: &[Piece]) -> Option<&[Piece]> {
    pieces.iter().any(|piece| piece.share != CoveredShare::default()).then_some(pieces)
}

/// Net compute: what instances, reservations and commitments come to for whom. `lives` are the lines of each instance.
pub(super) fn compute<'a>(
    lives: impl Iterator<Item = (&'a Instance, &'a [BillLine])>,
    reserved: &ReservedLives,
    instances: &[Instance],
    coverage: &Coverage,
) -> Vec<BillLine> {
    let mut net = Vec::new();
    for (number, (instance, lines)) in lives.enumerate() {
        let is_free = lines.iter().any(|line| line.item == BillItem::FreeFirstHour);
        match coverage.of_instance(number) {
            _ if is_free => {}
            Some(pieces) => net.extend(of_life(instance.rate, lines, pieces, coverage.qualities)),
            None => net.extend_from_slice(lines),
        }
    }
    net.extend(reserved.net_lines(instances, coverage));
    let unused = coverage.unused.iter().map(|&(from, to, amount)| {
        let rate = mean_rate(amount, to - from);
        let quality = weaker(coverage.qualities);
        BillLine { amount, rate, billed: to - from, quality, ..blank(BillItem::UnusedCommitment, None, from, to) }
    });
    net.extend(unused);
    net
}

/// What is left of a life at this On-Demand price, and what the commitments cost that cover the rest.
pub(super) fn of_life(
    on_demand: HourlyRate,
    lines: &[BillLine],
    pieces: &[Piece],
    qualities: [PriceQuality; 2],
) -> Vec<BillLine> {
    let Some(first) = lines.iter().find(|line| line.rate != HourlyRate::ZERO) else { return lines.to_vec() };
    let gross: Money = lines.iter().map(|line| line.amount).sum();
    let ran = pieces.iter().fold(SimDuration::ZERO, |sum, piece| sum + piece.ran);
    // Rounding up to a second and the minimum of a minute are covered by nobody.
    let mut added = (gross - charge(on_demand, ran)).max(Money::ZERO);
    let mut meter = Meter::new(on_demand);
    let mut left = gross;
    let mut net = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        let mut amount = meter.read(piece.ran - piece.share.covered);
        if number + 1 == pieces.len() {
            amount += std::mem::replace(&mut added, Money::ZERO);
        }
        amount = amount.min(left);
        left = left - amount;
        let rate = if piece.share.covered == SimDuration::ZERO && piece.ran == piece.to - piece.from {
            on_demand
        } else {
            mean_rate(amount, piece.to - piece.from)
        };
        let line = BillLine { from: piece.from, to: piece.to, billed: piece.ran, rate, amount, ..first.clone() };
        net.extend(fees(&line, &piece.share, qualities));
        net.push(line);
    }
    net
}

/// The weaker quality of the two.
pub(super) fn weaker([one, other]: [PriceQuality; 2]) -> PriceQuality {
    one.max(other)
}

/// What commitments cost for what they cover of `line`, with the qualities of what reservations and plans cost.
pub(super) fn fees(line: &BillLine, share: &CoveredShare, qualities: [PriceQuality; 2]) -> Vec<BillLine> {
    [(BillItem::ReservedInstances, share.by_reserved), (BillItem::SavingsPlans, share.by_plans)]
        .into_iter()
        .zip(qualities)
        .filter(|((_, amount), _)| *amount != Money::ZERO)
        .map(|((item, amount), quality)| {
            let rate = mean_rate(amount, line.to - line.from);
            BillLine { item, amount, rate, quality, billed: share.covered, ..line.clone() }
        })
        .collect()
}

/// Charges a rate for pieces of time one after another, so that the amounts sum to what all of the time costs.
pub(super) struct Meter {
    rate: HourlyRate,
    accrued: Accrual,
}

impl Meter {
    /// A meter at nothing.
    pub(super) const fn new(rate: HourlyRate) -> Self {
        Self { rate, accrued: Accrual::ZERO }
    }

    /// What the next `span` costs.
    pub(super) fn read(&mut self, span: SimDuration) -> Money {
        let before = self.accrued.total();
        self.accrued += Accrual::new(self.rate, span);
        self.accrued.total() - before
    }
}

/// What `amount` for `span` comes to in an hour.
pub(super) fn mean_rate(amount: Money, span: SimDuration) -> HourlyRate {
    let nanos = amount.as_nanos() * HOUR / i128::from(span.as_micros()).max(1);
    HourlyRate::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

/// Takes a discount, in millionths, off every line. The running sum is what is rounded, as the line of the discount is.
pub(super) fn discount(share: u32, net: &mut [BillLine]) {
    let off = |sum: Money| sum.portion(i128::from(share), i128::from(WHOLE));
    let mut reached = Money::ZERO;
    for line in net.iter_mut().filter(|_| share > 0) {
        let before = off(reached);
        reached += line.amount;
        line.amount = line.amount - (off(reached) - before);
        line.rate = line.rate.scaled(i64::from(WHOLE - share.min(WHOLE)), i64::from(WHOLE));
    }
}

#[cfg(test)]
mod tests;

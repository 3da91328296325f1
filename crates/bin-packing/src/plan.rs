//! A cheap packing.

use std::collections::BinaryHeap;

use super::columns::Generation;
use super::diving;
use super::filling::Filler;
use super::improvement::{self, mixed};
use super::{Bound, Compiled, Content, Effort, Problem, fitting};

/// A bin to buy with what goes into it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PackedBin {
    /// Position among the problem's bins.
    pub bin: usize,
    /// Kinds of items by position, each with its number.
    pub content: Vec<(u32, u32)>,
}

/// A packing of every item that some bin can hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The bins.
    pub bins: Vec<PackedBin>,
    /// What they cost together.
    pub price: i64,
    /// What they could not cost less than.
    pub bound: Bound,
}

/// Bins with their price.
#[derive(Clone, Debug, Default)]
pub(super) struct Packing {
    pub(super) bins: Vec<PackedBin>,
    pub(super) price: i64,
}

/// Times that a content is used in the relaxation from which on it is bought outright.
const WHOLE: f64 = 1.0 - 1e-6;

/// Packs all items into bins to buy, as cheaply as the effort allows. Bins that are there are not used: what they take is to be
/// taken out of the problem before.
pub fn plan(problem: &Problem, effort: &mut Effort<'_>) -> Plan {
    let compiled = Compiled::new(problem);
    let mut generation = Generation::new(&compiled, effort);
    // The search for prices may have two fifths of the effort.
    let mut part = Effort { steps: effort.steps / 5 * 2, go_on: &mut *effort.go_on };
    let before = part.steps;
    generation.run(&mut part);
    let spent = before - part.steps;
    effort.steps = effort.steps.saturating_sub(spent);
    let counts: Vec<u32> = problem.items.iter().map(|item| item.count).collect();
    let mut repacker = Repacker::new(&compiled, &generation.prices);
    let mut best = repacker.packing(counts.clone(), &[], effort);
    let used = generation.used();
    if used.iter().any(|(_, _, times)| *times >= WHOLE) {
        let rounded = repacker.packing(counts, &used, effort);
        if rounded.price < best.price {
            best = rounded;
        }
    }
    let mut part = Effort { steps: effort.steps / 2, go_on: &mut *effort.go_on };
    let before = part.steps;
    let dived = diving::dive(&compiled, &generation, &repacker, &mut part);
    let spent = before - part.steps;
    effort.steps = effort.steps.saturating_sub(spent);
    if let Some((bins, left)) = dived {
        let packing = repacker.finished(bins, left, effort);
        if packing.price < best.price {
            best = packing;
        }
    }
    improvement::improve(&compiled, &mut repacker, &mut best, effort);
    Plan {
        bins: best.bins,
        price: best.price,
        bound: Bound { amount: generation.proved, finished: generation.finished },
    }
}

/// Packs items by prices.
pub(super) struct Repacker<'c> {
    compiled: &'c Compiled<'c>,
    prices: Vec<f64>,
    filler: Filler,
    /// Bins by price, for finding the cheapest that holds a content.
    by_price: Vec<usize>,
}

/// A bin with what its best content is worth for its price, as far as known. The largest comes first.
struct Offer {
    worth_for_price: f64,
    bin: usize,
}

impl PartialEq for Offer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Offer {}
impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Offer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.worth_for_price.total_cmp(&other.worth_for_price).then(other.bin.cmp(&self.bin))
    }
}

impl<'c> Repacker<'c> {
    pub(super) fn new(compiled: &'c Compiled<'c>, prices: &[f64]) -> Self {
        let mut by_price: Vec<usize> = (0..compiled.problem.bins.len()).collect();
        by_price.sort_by_key(|&bin| (compiled.problem.bins[bin].price, bin));
        let mut repacker = Self { compiled, prices: Vec::new(), filler: Filler::new(compiled.resources), by_price };
        repacker.prices = repacker.positive(prices);
        repacker
    }

    /// Prices of which none is zero: what the relaxation holds for worthless must be packed too. The least price is a share
    /// of what the item's part of the cheapest bin for it costs.
    fn positive(&self, prices: &[f64]) -> Vec<f64> {
        let mut least = vec![f64::INFINITY; prices.len()];
        for (shelf, bin) in self.compiled.shelves.iter().zip(&self.compiled.problem.bins) {
            for (&item, &most) in shelf.items.iter().zip(&shelf.most) {
                let each = bin.price as f64 / f64::from(most) / 50.0;
                least[item as usize] = least[item as usize].min(each);
            }
        }
        prices
            .iter()
            .zip(&least)
            .map(|(&price, &least)| price.max(if least.is_finite() { least } else { 0.0 }))
            .collect()
    }

    /// What a bin's content is worth for its price.
    pub(super) fn worth_for_price(&self, bin: &PackedBin) -> f64 {
        let worth: f64 = bin.content.iter().map(|&(item, number)| self.prices[item as usize] * f64::from(number)).sum();
        worth / self.compiled.problem.bins[bin.bin].price.max(1) as f64
    }

    /// A packing that buys the whole part of what the relaxation uses, and packs the rest greedily.
    fn packing(&mut self, mut left: Vec<u32>, used: &[(usize, &Content, f64)], effort: &mut Effort<'_>) -> Packing {
        let mut bins = Vec::new();
        for &(bin, content, times) in used {
            for _ in 0..(times + 1e-6) as u64 {
                let content: Content = content
                    .iter()
                    .map(|&(item, number)| (item, number.min(left[item as usize])))
                    .filter(|&(_, number)| number > 0)
                    .collect();
                if content.is_empty() {
                    break;
                }
                for &(item, number) in &content {
                    left[item as usize] -= number;
                }
                bins.push(PackedBin { bin: self.cheapest_for(bin, &content), content });
            }
        }
        self.finished(bins, left, effort)
    }

    /// A packing of these bins and greedily what is left.
    fn finished(&mut self, mut bins: Vec<PackedBin>, mut left: Vec<u32>, effort: &mut Effort<'_>) -> Packing {
        let mut unlimited = Effort { steps: u64::MAX, go_on: &mut || true };
        // Packing everything must not end early: only the search for something better may.
        bins.extend(self.greedy(&mut left, None, i64::MAX, &mut unlimited).unwrap_or_default());
        effort.spend(usize::try_from(u64::MAX - unlimited.steps).unwrap_or(usize::MAX));
        let price = bins.iter().map(|bin| self.compiled.problem.bins[bin.bin].price).sum();
        Packing { bins, price }
    }

    /// Buys the bin whose content is worth most for its price until nothing is left that a bin below `ceiling` can hold; with a
    /// number, by prices changed a little. `None` if the bins do not cost less than `ceiling` together, or the effort is spent before.
    pub(super) fn greedy(
        &mut self,
        left: &mut [u32],
        variation: Option<u64>,
        ceiling: i64,
        effort: &mut Effort<'_>,
    ) -> Option<Vec<PackedBin>> {
        let prices = self.varied(variation);
        let compiled = self.compiled;
        let mut bins = Vec::new();
        let mut money = ceiling;
        let mut offers = BinaryHeap::new();
        // Most bins cost more than a few small ones that were taken apart.
        for bin in (0..compiled.shelves.len()).filter(|&bin| compiled.problem.bins[bin].price < ceiling) {
            let (content, worth) = self.filler.fill(compiled, &compiled.shelves[bin], &prices, Some(left));
            if !content.is_empty() {
                offers.push(Offer { worth_for_price: self.for_price(bin, worth), bin });
            }
        }
        while let Some(offer) = offers.pop() {
            let bin = offer.bin;
            let (content, worth) = self.filler.fill(compiled, &compiled.shelves[bin], &prices, Some(left));
            if !effort.spend(self.filler.steps()) {
                return None;
            }
            if content.is_empty() {
                continue;
            }
            let worth_for_price = self.for_price(bin, worth);
            // What a bin can hold only gets worth less as items run out, so a stale offer is looked at again.
            if offers.peek().is_some_and(|next| next.worth_for_price > worth_for_price * (1.0 + 1e-12)) {
                offers.push(Offer { worth_for_price, bin });
                continue;
            }
            let times = content.iter().map(|&(item, number)| left[item as usize] / number).min().unwrap_or(0).max(1);
            for &(item, number) in &content {
                left[item as usize] -= number * times;
            }
            let cheapest = self.cheapest_for(bin, &content);
            money = money.saturating_sub(compiled.problem.bins[cheapest].price.saturating_mul(i64::from(times)));
            if money <= 0 {
                return None;
            }
            bins.extend((0..times).map(|_| PackedBin { bin: cheapest, content: content.clone() }));
            offers.push(Offer { worth_for_price, bin });
        }
        Some(bins)
    }

    fn for_price(&self, bin: usize, worth: f64) -> f64 {
        worth / self.compiled.problem.bins[bin].price.max(1) as f64
    }

    fn varied(&self, variation: Option<u64>) -> Vec<f64> {
        let Some(number) = variation else { return self.prices.clone() };
        let spread = [0.0, 0.03, 0.1, 0.25][(number % 4) as usize];
        let factor = |item: usize| {
            let draw = mixed(mixed(number) ^ item as u64) >> 11;
            1.0 + spread * (draw as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0)
        };
        self.prices.iter().enumerate().map(|(item, price)| price * factor(item)).collect()
    }

    /// The cheapest bin for a content that fits into `bin`.
    pub(super) fn cheapest_for(&self, bin: usize, content: &Content) -> usize {
        let problem = self.compiled.problem;
        let mut takes = vec![0.0; self.compiled.resources];
        for &(item, number) in content {
            for (takes, size) in takes.iter_mut().zip(self.compiled.size(item as usize)) {
                *takes += size * f64::from(number);
            }
        }
        let holds = |&&candidate: &&usize| {
            let fits = takes.iter().zip(&self.compiled.shelves[candidate].capacity).all(|(takes, room)| takes <= room);
            let accepts = &problem.bins[candidate].accepts;
            fits && content.iter().all(|&(item, _)| accepts[problem.items[item as usize].group as usize])
        };
        self.by_price.iter().find(holds).copied().unwrap_or(bin)
    }

    /// Puts what is left into the room that the bins still have, the most valuable kinds first.
    pub(super) fn absorb(&self, bins: &mut [PackedBin], left: &mut [u32]) {
        let problem = self.compiled.problem;
        let mut kinds: Vec<usize> = (0..left.len()).filter(|&item| left[item] > 0).collect();
        kinds.sort_by(|&a, &b| self.prices[b].total_cmp(&self.prices[a]).then(a.cmp(&b)));
        for bin in bins {
            let mut room = self.compiled.shelves[bin.bin].capacity.clone();
            for &(item, number) in &bin.content {
                for (room, size) in room.iter_mut().zip(self.compiled.size(item as usize)) {
                    *room -= size * f64::from(number);
                }
            }
            for &item in &kinds {
                if left[item] == 0 || !problem.bins[bin.bin].accepts[problem.items[item].group as usize] {
                    continue;
                }
                let inside = bin.content.iter().find(|(key, _)| *key as usize == item).map_or(0, |(_, number)| *number);
                let allowed = problem.items[item].most_per_bin.saturating_sub(inside).min(left[item]);
                let number = fitting(self.compiled.size(item), &room).min(f64::from(allowed)) as u32;
                if number == 0 {
                    continue;
                }
                left[item] -= number;
                for (room, size) in room.iter_mut().zip(self.compiled.size(item)) {
                    *room -= size * f64::from(number);
                }
                match bin.content.iter_mut().find(|(key, _)| *key as usize == item) {
                    Some(entry) => entry.1 += number,
                    None => bin.content.push((item as u32, number)),
                }
            }
        }
    }
}

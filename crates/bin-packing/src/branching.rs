//! What a bin's content can be worth at most, by branch and bound: tighter than the fractional knapsack where few items fill
//! a bin.

use super::{Compiled, Content, Shelf, fitting};

/// A search over the contents of one bin.
struct Search<'c, 'p> {
    compiled: &'c Compiled<'p>,
    prices: &'c [i64],
    rates: &'c [f64],
    /// The kinds, those worth most for their weight first.
    order: Vec<Kind>,
    nodes_left: usize,
    best: i64,
    content: Content,
    best_content: Content,
    /// The most that anything not looked at could be worth.
    unseen: f64,
}

/// A kind of items in a bin.
struct Kind {
    item: u32,
    /// How many of it the bin may hold.
    most: u32,
    /// What one is worth.
    worth: f64,
    /// Its size at the rates.
    weight: f64,
    /// What it is worth for its weight, infinite without any.
    ratio: f64,
}

/// Doubles that stand for at most so many times their computed value: far more than the rounding of the few operations of
/// one estimate.
const SAFE: f64 = 1.0 + 1e-9;
/// The same for what was not looked at, whose estimate takes several of the above for the true ratio.
const UNSEEN_SAFE: f64 = 1.0 + 1e-7;

/// An upper limit on the worth of any content, and the best content found, after looking at up to `nodes` partial contents.
pub(super) fn most_worth(
    compiled: &Compiled<'_>,
    shelf: &Shelf,
    prices: &[i64],
    rates: &[f64],
    nodes: usize,
) -> (i64, Content) {
    let weight = |size: &[f64]| size.iter().zip(rates).map(|(size, rate)| size * rate).sum::<f64>();
    let mut order: Vec<Kind> = shelf
        .items
        .iter()
        .zip(&shelf.most)
        .filter(|(item, _)| prices[**item as usize] > 0)
        .map(|(&item, &most)| {
            let weight = weight(compiled.size(item as usize));
            let worth = prices[item as usize] as f64 * SAFE;
            let ratio = if weight > 0.0 { worth / weight * SAFE } else { f64::INFINITY };
            Kind { item, most, worth, weight, ratio }
        })
        .collect();
    order.sort_by(|a, b| b.ratio.total_cmp(&a.ratio).then(a.item.cmp(&b.item)));
    let mut search = Search {
        compiled,
        prices,
        rates,
        order,
        nodes_left: nodes,
        best: 0,
        content: Vec::new(),
        best_content: Vec::new(),
        unseen: 0.0,
    };
    let mut room = shelf.capacity.clone();
    search.visit(0, 0, &mut room);
    // A cast of more than the range gives its end, which limits nothing but is not wrong.
    let limit = search.best.max((search.unseen * UNSEEN_SAFE).ceil() as i64);
    (limit, search.best_content)
}

impl Search<'_, '_> {
    /// The most that the kinds from `depth` on can add in `room`: the best ones first, each no more often than it may be there, and the last
    /// one in part. At the rates no content weighs more than the room.
    fn estimate(&self, depth: usize, room: &[f64]) -> f64 {
        let mut left = room.iter().zip(self.rates).map(|(room, rate)| room * rate).sum::<f64>() * SAFE;
        let mut worth = 0.0;
        for kind in &self.order[depth..] {
            let all = kind.worth * f64::from(kind.most);
            if kind.weight * f64::from(kind.most) > left {
                return worth + left * kind.ratio;
            }
            left -= kind.weight * f64::from(kind.most);
            worth += all;
        }
        worth
    }

    fn visit(&mut self, depth: usize, worth: i64, room: &mut [f64]) {
        if worth > self.best {
            self.best = worth;
            self.best_content.clone_from(&self.content);
        }
        let Some(&Kind { item, most, .. }) = self.order.get(depth) else { return };
        let limit = worth as f64 + self.estimate(depth, room);
        if limit < (self.best + 1) as f64 {
            return;
        }
        if self.nodes_left == 0 {
            self.unseen = self.unseen.max(limit);
            return;
        }
        self.nodes_left -= 1;
        let compiled = self.compiled;
        let size = compiled.size(item as usize);
        let number = fitting(size, room).min(f64::from(most)) as u32;
        let before: Vec<f64> = room.to_vec();
        for number in (0..=number).rev() {
            for ((room, &before), &size) in room.iter_mut().zip(&before).zip(size) {
                *room = before - size * f64::from(number);
            }
            let more = worth + self.prices[item as usize] * i64::from(number);
            if number > 0 {
                self.content.push((item, number));
            }
            self.visit(depth + 1, more, room);
            if number > 0 {
                self.content.pop();
            }
            if self.nodes_left == 0 && number > 0 {
                // Fewer of this kind are not looked at any more: with one less, the rest may fill what it leaves.
                let one_less: Vec<f64> =
                    before.iter().zip(size).map(|(before, size)| before - size * f64::from(number - 1)).collect();
                let least = self.prices[item as usize] as f64 * f64::from(number - 1);
                let others = worth as f64 + least + self.estimate(depth + 1, &one_less);
                self.unseen = self.unseen.max(others);
                break;
            }
        }
        room.copy_from_slice(&before);
    }
}

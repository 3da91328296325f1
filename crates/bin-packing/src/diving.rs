//! A packing by diving: buy what the relaxation is surest of, solve it again for what is left, and so on.
//!
//! Rounding the relaxation once leaves a rest that greedy packing pays too much for. Here each purchase changes the prices of the next,
//! and contents are looked for among what is left.

use super::columns::{Generation, alone, uneven};
use super::filling::Filler;
use super::master::{Column, Master};
use super::plan::{PackedBin, Repacker};
use super::{Compiled, Content, Effort};

/// Contents that a dive remembers from one purchase to the next: those nearest to being used.
const CONTENTS: usize = 300;
/// Rounds of new contents for one purchase.
const ROUNDS: usize = 40;
/// New contents of a round.
const NEW_A_ROUND: usize = 24;
/// Pivots of a round.
const PIVOTS: usize = 400;
/// Kinds of items up to which a dive pays: the relaxation is solved again for each purchase.
const KINDS_MAX: usize = 150;
/// The share of used contents that is bought at once is one in this number.
const SURE_SHARE: usize = 10;
/// A content that the relaxation uses this often is bought at once as well.
const NEARLY_WHOLE: f64 = 0.8;

/// Bins with their contents, and the number of each kind that is left where the effort was spent. `None` if there are too many kinds.
pub(super) fn dive(
    compiled: &Compiled<'_>,
    generation: &Generation<'_, '_>,
    repacker: &Repacker<'_>,
    effort: &mut Effort<'_>,
) -> Option<(Vec<PackedBin>, Vec<u32>)> {
    if compiled.problem.items.len() > KINDS_MAX {
        return None;
    }
    let mut rest = Rest {
        compiled,
        unit: generation.unit(),
        alone: alone(compiled),
        filler: Filler::new(compiled.resources),
        contents: generation.nearest(CONTENTS),
        left: compiled.problem.items.iter().map(|item| item.count).collect(),
    };
    for (left, alone) in rest.left.iter_mut().zip(&rest.alone) {
        *left = if alone.is_some() { *left } else { 0 };
    }
    let mut bins = Vec::new();
    while rest.left.iter().any(|left| *left > 0) {
        // A relaxation without any content would go on for ever.
        let Some(bought) = rest.purchases(effort).filter(|bought| !bought.is_empty()) else { break };
        let packed = |(bin, content)| PackedBin { bin: repacker.cheapest_for(bin, &content), content };
        bins.extend(bought.into_iter().map(packed));
    }
    Some((bins, rest.left))
}

/// What is still to be packed.
struct Rest<'c> {
    compiled: &'c Compiled<'c>,
    unit: f64,
    /// For each kind the bin that is cheapest for it alone, and how many it holds.
    alone: Vec<Option<(usize, u32)>>,
    filler: Filler,
    /// Contents known so far.
    contents: Vec<(usize, Content)>,
    left: Vec<u32>,
}

impl Rest<'_> {
    /// The next bins to buy with their contents, which are no longer left then; `None` if the effort is spent.
    fn purchases(&mut self, effort: &mut Effort<'_>) -> Option<Vec<(usize, Content)>> {
        let mut used = self.relaxed(effort)?;
        used.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| (a.1, &a.2).cmp(&(b.1, &b.2))));
        let sure = used.len() / SURE_SHARE;
        let mut bought = Vec::new();
        for (position, (times, bin, content)) in used.into_iter().enumerate() {
            if position > sure && times < NEARLY_WHOLE {
                break;
            }
            for _ in 0..((times + 1e-6) as u64).max(1) {
                let is_left = content.iter().all(|&(item, number)| self.left[item as usize] >= number);
                if !is_left {
                    break;
                }
                content.iter().for_each(|&(item, number)| self.left[item as usize] -= number);
                bought.push((bin, content.clone()));
            }
        }
        Some(bought)
    }

    /// What the relaxation of the rest uses: how often, which bin, and what of it.
    fn relaxed(&mut self, effort: &mut Effort<'_>) -> Option<Vec<(f64, usize, Content)>> {
        let mut row_of: Vec<Option<u32>> = vec![None; self.left.len()];
        let (mut demand, mut first, mut meaning) = (Vec::new(), Vec::new(), Vec::new());
        for (item, &left) in self.left.iter().enumerate().filter(|(_, left)| **left > 0) {
            let Some((bin, most)) = self.alone[item] else { continue };
            let row = demand.len() as u32;
            row_of[item] = Some(row);
            demand.push(uneven(row as usize, left));
            let number = most.min(left);
            first.push(Some(Column { cost: self.cost(bin), entries: vec![(row, f64::from(number))] }));
            meaning.push((bin, vec![(item as u32, number)]));
        }
        let rows = demand.len();
        let mut master = Master::new(demand, first);
        let left = &self.left;
        // A content of which nothing is left is of no use any more.
        self.contents.retain(|(_, content)| content.iter().any(|&(item, _)| left[item as usize] > 0));
        for place in 0..self.contents.len() {
            let (bin, content) = &self.contents[place];
            self.learn(&mut master, &row_of, *bin, self.cut(content), &mut meaning);
        }
        for _ in 0..ROUNDS {
            let pivots = master.improve(PIVOTS);
            let new = self.new_contents(&master, &row_of);
            if !effort.spend(pivots * (rows * rows / 4 + meaning.len() * 4) + self.filler.steps() + 1) {
                return None;
            }
            if new.is_empty() {
                break;
            }
            for (bin, content) in new {
                self.learn(&mut master, &row_of, bin, content.clone(), &mut meaning);
                self.contents.push((bin, content));
            }
        }
        master.improve(PIVOTS);
        self.prune(&master, &row_of);
        Some(master.used().map(|(column, times)| (times, meaning[column].0, meaning[column].1.clone())).collect())
    }

    /// Keeps the contents that cost least beyond what they are worth.
    fn prune(&mut self, master: &Master, row_of: &[Option<u32>]) {
        if self.contents.len() <= CONTENTS {
            return;
        }
        let prices = self.prices(master, row_of);
        let beyond = |bin: usize, content: &Content| {
            let worth: f64 =
                self.cut(content).iter().map(|&(item, number)| prices[item as usize] * f64::from(number)).sum();
            1.0 - worth / self.compiled.problem.bins[bin].price.max(1) as f64
        };
        let mut order: Vec<(f64, usize)> =
            self.contents.iter().enumerate().map(|(place, (bin, content))| (beyond(*bin, content), place)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        order.truncate(CONTENTS);
        self.contents = order.into_iter().map(|(_, place)| self.contents[place].clone()).collect();
    }

    fn prices(&self, master: &Master, row_of: &[Option<u32>]) -> Vec<f64> {
        let price = |row: &Option<u32>| row.map_or(0.0, |row| master.prices[row as usize].max(0.0) * self.unit);
        row_of.iter().map(price).collect()
    }

    fn learn(
        &self,
        master: &mut Master,
        row_of: &[Option<u32>],
        bin: usize,
        content: Content,
        meaning: &mut Vec<(usize, Content)>,
    ) {
        let entry = |&(item, number): &(u32, u32)| row_of[item as usize].map(|row| (row, f64::from(number)));
        master.add(Column { cost: self.cost(bin), entries: content.iter().filter_map(entry).collect() });
        meaning.push((bin, content));
    }

    /// What is left of a content.
    fn cut(&self, content: &Content) -> Content {
        let cut = |&(item, number): &(u32, u32)| (item, number.min(self.left[item as usize]));
        content.iter().map(cut).filter(|(_, number)| *number > 0).collect()
    }

    /// Contents of what is left that are worth more than their bins cost, the best first.
    fn new_contents(&mut self, master: &Master, row_of: &[Option<u32>]) -> Vec<(usize, Content)> {
        let prices = self.prices(master, row_of);
        let mut found = Vec::new();
        for (bin, shelf) in self.compiled.shelves.iter().enumerate() {
            let (content, worth) = self.filler.fill(self.compiled, shelf, &prices, Some(&self.left));
            let for_price = worth / self.compiled.problem.bins[bin].price.max(1) as f64;
            if for_price > 1.0 + 1e-7 {
                found.push((for_price, bin, content));
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        found.into_iter().take(NEW_A_ROUND).map(|(_, bin, content)| (bin, content)).collect()
    }

    fn cost(&self, bin: usize) -> f64 {
        self.compiled.problem.bins[bin].price as f64 / self.unit
    }
}

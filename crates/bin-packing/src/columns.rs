//! Column generation: contents of bins that lower what the master problem costs, until none does or the effort is spent.

use super::ceiling::{improve_rates, proved, rounded_up};
use super::filling::Filler;
use super::master::{Column, Master};
use super::resource_prices;
use super::{Compiled, Content, Effort, Shelf, branching};

/// The state of a column generation.
pub(super) struct Generation<'c, 'p> {
    compiled: &'c Compiled<'p>,
    /// The amount of money that counts as one in the master.
    unit: f64,
    /// By item, its row; items that only bins that are there can take have none, and a price of zero.
    row_of: Vec<Option<u32>>,
    item_of: Vec<u32>,
    master: Option<Master>,
    /// What each column of the master stands for: the bin (`None` for a bin that is there) and the content.
    meaning: Vec<(Option<usize>, Content)>,
    filler: Filler,
    rates: Vec<Vec<f64>>,
    free_rates: Vec<Vec<f64>>,
    /// The best bound so far, in money, and the prices that prove it.
    pub(super) bound: i64,
    pub(super) prices: Vec<f64>,
    /// The best bound proved, at least `bound`. The search does not follow it, so that plans stay as they are.
    pub(super) proved: i64,
    /// Whether nothing more can be gained.
    pub(super) finished: bool,
}

/// Rounds of column generation at most.
const ROUNDS: usize = 400;
/// More rows than this make pivots too slow: the first prices must do.
const ROWS_MAX: usize = 2_200;
/// The bound is good enough within this share of what the master costs.
const GOOD_ENOUGH: f64 = 0.001;
/// Kinds in a bin up to which its contents are searched one by one.
const KINDS_SEARCHED: usize = 64;
/// Partial contents looked at for one bin.
const CONTENTS_SEARCHED: usize = 1_500;
/// Steps of effort that one partial content counts as.
const STEPS_OF_CONTENT: usize = 8;
/// Steps of effort for each kind in a bin whose worth is limited by the fractional knapsack.
const STEPS_OF_LIMIT: usize = 26;
/// New columns of a round at most.
const COLUMNS_A_ROUND: usize = 24;
/// Pivots of a round.
const PIVOTS: usize = 150;

impl<'c, 'p> Generation<'c, 'p> {
    /// The first prices and their bound.
    pub(super) fn new(compiled: &'c Compiled<'p>, effort: &mut Effort<'_>) -> Self {
        let problem = compiled.problem;
        let unit = problem.bins.iter().map(|bin| bin.price).max().unwrap_or(1).max(1) as f64;
        let first = resource_prices::solve(compiled, unit);
        let items = problem.items.len();
        let (mut row_of, mut item_of) = (vec![None; items], Vec::new());
        for shelf in &compiled.shelves {
            for &item in &shelf.items {
                row_of[item as usize] = Some(0);
            }
        }
        for (item, row) in row_of.iter_mut().enumerate().filter(|(_, row)| row.is_some()) {
            *row = Some(item_of.len() as u32);
            item_of.push(item as u32);
        }
        let mut generation = Self {
            compiled,
            unit,
            row_of,
            item_of,
            master: None,
            meaning: Vec::new(),
            filler: Filler::new(compiled.resources),
            rates: first.rates,
            free_rates: first.free_rates,
            bound: 0,
            prices: vec![0.0; items],
            proved: 0,
            finished: false,
        };
        generation.judge(&first.prices, effort);
        if generation.bound == 0 {
            generation.prices = first.prices;
        }
        generation
    }

    /// Generates columns until the bound is good enough.
    pub(super) fn run(&mut self, effort: &mut Effort<'_>) {
        if self.item_of.len() + self.compiled.free.len() > ROWS_MAX || self.item_of.is_empty() {
            return;
        }
        self.start();
        let mut weight = 0.5;
        for _ in 0..ROUNDS {
            let Some(master) = self.master.as_mut() else { return };
            let pivots = master.improve(PIVOTS);
            let rows = self.item_of.len() + self.compiled.free.len();
            let (cost, master_prices) = (master.cost(), master.prices.clone());
            let priced = self.meaning.len() * 4;
            if !effort.spend(pivots * (rows * rows / 4 + priced) + 1) {
                return;
            }
            let optimal = pivots < PIVOTS;
            if optimal && self.bound as f64 >= cost * self.unit * (1.0 - GOOD_ENOUGH) {
                self.finished = true;
                return;
            }
            let out = self.by_item(&master_prices);
            let between: Vec<f64> =
                self.prices.iter().zip(&out).map(|(best, out)| best * weight + out * (1.0 - weight)).collect();
            let before = self.bound;
            let found = self.generate(&between, &out, &master_prices) + self.judge(&between, effort);
            if found == 0 {
                let exact = self.generate(&out, &out, &master_prices) + self.judge(&out, effort);
                if exact == 0 && optimal && self.bound == before {
                    // What is left is the over-estimate of what bins can hold.
                    self.finished = true;
                    return;
                }
            }
            weight = if self.bound > before { (weight + 0.1_f64).min(0.8) } else { weight * 0.9 };
            if !effort.spend(self.filler.steps()) {
                return;
            }
        }
    }

    /// The amount of money that counts as one.
    pub(super) fn unit(&self) -> f64 {
        self.unit
    }

    /// The contents of bins to buy that cost least beyond what they are worth, at most this many.
    pub(super) fn nearest(&self, most: usize) -> Vec<(usize, Content)> {
        let Some(master) = &self.master else { return Vec::new() };
        let prices = self.by_item(&master.prices);
        let contents = self.meaning.iter().filter_map(|(bin, content)| Some(((*bin)?, content)));
        let mut all: Vec<(f64, usize, &Content)> = contents
            .map(|(bin, content)| {
                let price = self.compiled.problem.bins[bin].price.max(1) as f64;
                (1.0 - worth(content, &prices) / price, bin, content)
            })
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))));
        all.into_iter().take(most).map(|(_, bin, content)| (bin, content.clone())).collect()
    }

    /// The contents that the master uses, with how often; only those of bins to buy.
    pub(super) fn used(&self) -> Vec<(usize, &Content, f64)> {
        let Some(master) = &self.master else { return Vec::new() };
        let used = master.used().filter_map(|(position, times)| {
            let (bin, content) = &self.meaning[position];
            bin.map(|bin| (bin, content, times))
        });
        used.collect()
    }

    /// A master whose first basis buys for each kind the bin that is cheapest for it alone, and knows what each bin holds
    /// when filled by the first prices.
    fn start(&mut self) {
        let problem = self.compiled.problem;
        let alone = alone(self.compiled);
        let (mut demand, mut first) = (Vec::new(), Vec::new());
        for (row, &item) in self.item_of.iter().enumerate() {
            demand.push(uneven(row, problem.items[item as usize].count));
            let (bin, most) = alone[item as usize].unwrap_or((0, 1));
            let cost = problem.bins[bin].price as f64 / self.unit;
            first.push(Some(Column { cost, entries: vec![(row as u32, f64::from(most))] }));
            self.meaning.push((Some(bin), vec![(item, most)]));
        }
        for bin in &problem.free {
            demand.push(-f64::from(bin.count));
            first.push(None);
        }
        self.master = Some(Master::new(demand, first));
        let (prices, none) = (self.prices.clone(), vec![0.0; problem.items.len()]);
        let no_rows = vec![0.0; self.item_of.len() + problem.free.len()];
        self.generate(&prices, &none, &no_rows);
    }

    /// The prices of items in money, from those of the master's rows.
    fn by_item(&self, rows: &[f64]) -> Vec<f64> {
        self.row_of.iter().map(|row| row.map_or(0.0, |row| rows[row as usize].max(0.0) * self.unit)).collect()
    }

    /// Fills every bin by `prices` and makes known what the master's own prices `out` find worth its cost. How many.
    fn generate(&mut self, prices: &[f64], out: &[f64], rows: &[f64]) -> usize {
        let compiled = self.compiled;
        let anything = out.iter().all(|price| *price == 0.0);
        let mut contents: Vec<(f64, usize, Content)> = Vec::new();
        for (bin, shelf) in compiled.shelves.iter().enumerate() {
            let (content, _) = self.filler.fill(compiled, shelf, prices, None);
            let for_cost = worth(&content, out) / compiled.problem.bins[bin].price as f64;
            if !content.is_empty() && (anything || for_cost > 1.0 + 1e-7) {
                contents.push((for_cost, bin, content));
            }
        }
        // A master with few columns is fast; the best of each round are enough.
        contents.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let kept = if anything { contents.len() } else { contents.len().min(COLUMNS_A_ROUND) };
        let mut found = kept;
        for (_, bin, content) in contents.into_iter().take(kept) {
            self.learn(Some(bin), content);
        }
        for (position, shelf) in compiled.free.iter().enumerate() {
            let (content, _) = self.filler.fill(compiled, shelf, prices, None);
            let row = self.item_of.len() + position;
            if !content.is_empty() && (anything || worth(&content, out) > (rows[row] + 1e-9) * self.unit) {
                self.learn_free(position, content);
                found += 1;
            }
        }
        found
    }

    fn learn(&mut self, bin: Option<usize>, content: Content) {
        let cost = bin.map_or(0.0, |bin| self.compiled.problem.bins[bin].price as f64 / self.unit);
        let entries = self.entries(&content);
        if let Some(master) = &mut self.master {
            master.add(Column { cost, entries });
            self.meaning.push((bin, content));
        }
    }

    fn learn_free(&mut self, position: usize, content: Content) {
        let mut entries = self.entries(&content);
        entries.push(((self.item_of.len() + position) as u32, -1.0));
        if let Some(master) = &mut self.master {
            master.add(Column { cost: 0.0, entries });
            self.meaning.push((None, content));
        }
    }

    fn entries(&self, content: &Content) -> Vec<(u32, f64)> {
        let entry = |&(item, number): &(u32, u32)| self.row_of[item as usize].map(|row| (row, f64::from(number)));
        content.iter().filter_map(entry).collect()
    }

    /// The bound that `prices` prove, kept if it is better. Contents met on the way that are worth more than their bin costs
    /// are made known; how many.
    fn judge(&mut self, prices: &[f64], effort: &mut Effort<'_>) -> usize {
        let problem = self.compiled.problem;
        let whole: Vec<i64> = prices
            .iter()
            .zip(&self.row_of)
            .map(|(price, row)| if row.is_some() { price.clamp(0.0, 1e18) as i64 } else { 0 })
            .collect();
        let doubles: Vec<f64> = whole.iter().map(|&price| price as f64).collect();
        let mut learned: Vec<(Option<usize>, usize, Content)> = Vec::new();
        // The bin whose content may be worth most for its price: worth and price.
        let mut worst: Ratio = (1, 1);
        // The same of the bins that can hold each item.
        let mut worst_of = vec![worst; problem.items.len()];
        let mut steps = 0;
        for (bin, shelf) in self.compiled.shelves.iter().enumerate() {
            let price = problem.bins[bin].price;
            let capacity = &problem.bins[bin].capacity;
            let (limit, content, searched) =
                most_worth(self.compiled, capacity, shelf, &whole, &doubles, &mut self.rates[bin], Some(price));
            steps += shelf.items.len() * STEPS_OF_LIMIT + searched;
            let ratio = (i128::from(limit), i128::from(price));
            if exceeds(ratio, worst) {
                worst = ratio;
            }
            for &item in &shelf.items {
                let worst = &mut worst_of[item as usize];
                if exceeds(ratio, *worst) {
                    *worst = ratio;
                }
            }
            if worth(&content, &doubles) > price as f64 * (1.0 + 1e-7) {
                learned.push((Some(bin), bin, content));
            }
        }
        let items = problem.items.iter().zip(&whole);
        let amounts: Vec<i128> = items.map(|(item, &price)| i128::from(item.count) * i128::from(price)).collect();
        let mut total: i128 = amounts.iter().sum();
        // Each item's price lowered by the worst bin that can hold it alone: no content of any bin is worth more than the bin costs then, and
        // what is in the way of some items does not lower the prices of all.
        let mut apart: i128 = amounts.iter().zip(&worst_of).map(|(&amount, &worst)| lowered(amount, worst)).sum();
        for (position, shelf) in self.compiled.free.iter().enumerate() {
            let bin = &problem.free[position];
            let rates = &mut self.free_rates[position];
            let (limit, _, searched) = most_worth(self.compiled, &bin.capacity, shelf, &whole, &doubles, rates, None);
            steps += shelf.items.len() * STEPS_OF_LIMIT + searched;
            let amount = i128::from(limit) * i128::from(bin.count);
            let least = shelf.items.iter().map(|&item| worst_of[item as usize]);
            let least = least.reduce(|least, this_least| if exceeds(least, this_least) { this_least } else { least });
            total -= amount;
            apart -= lowered(amount, least.unwrap_or((1, 1))) + 1;
        }
        let bound = i64::try_from(total.max(0) * worst.1 / worst.0).unwrap_or(0);
        self.proved = self.proved.max(bound).max(i64::try_from(apart).unwrap_or(0));
        if bound > self.bound {
            self.bound = bound;
            let scale = worst.1 as f64 / worst.0 as f64;
            self.prices = prices.iter().map(|price| price * scale).collect();
        }
        let found = learned.len();
        for (bin, _, content) in learned {
            self.learn(bin, content);
        }
        effort.spend(steps);
        found
    }
}

/// The demand of a row for `count` items: slightly uneven, which keeps the simplex from going in circles.
pub(super) fn uneven(row: usize, count: u32) -> f64 {
    f64::from(count) * (1.0 + 1e-7 * ((row * 7_919) % 1_009) as f64 / 1_009.0)
}

/// For each kind the bin that is cheapest for it alone, and how many of it that bin holds; `None` if no bin takes it.
pub(super) fn alone(compiled: &Compiled<'_>) -> Vec<Option<(usize, u32)>> {
    let mut alone: Vec<Option<(f64, usize, u32)>> = vec![None; compiled.problem.items.len()];
    for (bin, shelf) in compiled.shelves.iter().enumerate() {
        for (&item, &most) in shelf.items.iter().zip(&shelf.most) {
            let each = compiled.problem.bins[bin].price as f64 / f64::from(most);
            let best = &mut alone[item as usize];
            if best.is_none_or(|(least, ..)| each < least) {
                *best = Some((each, bin, most));
            }
        }
    }
    alone.into_iter().map(|alone| alone.map(|(_, bin, most)| (bin, most))).collect()
}

/// What a bin's content may be worth, and what the bin costs.
type Ratio = (i128, i128);

fn exceeds(one: Ratio, other: Ratio) -> bool {
    one.0 * other.1 > other.0 * one.1
}

/// The amount at prices lowered so that the content of a bin with this ratio is worth what the bin costs, rounded down.
fn lowered(amount: i128, ratio: Ratio) -> i128 {
    amount.saturating_mul(ratio.1) / ratio.0
}

fn worth(content: &Content, prices: &[f64]) -> f64 {
    content.iter().map(|&(item, number)| prices[item as usize] * f64::from(number)).sum()
}

/// An upper limit on the worth of a bin's content at whole prices, a content if some were looked at, and the steps of that. Bins that are not
/// worth more than their `price` anyway are not looked into.
fn most_worth(
    compiled: &Compiled<'_>,
    capacity: &[i64],
    shelf: &Shelf,
    whole: &[i64],
    doubles: &[f64],
    rates: &mut Vec<f64>,
    price: Option<i64>,
) -> (i64, Content, usize) {
    if shelf.items.is_empty() {
        return (0, Content::new(), 0);
    }
    improve_rates(compiled, shelf, doubles, rates);
    let fractional = i64::try_from(rounded_up(proved(compiled, capacity, shelf, whole, rates))).unwrap_or(i64::MAX);
    if price.is_some_and(|price| fractional <= price) || shelf.items.len() > KINDS_SEARCHED {
        return (fractional, Content::new(), 0);
    }
    let (searched, content) = branching::most_worth(compiled, shelf, whole, rates, CONTENTS_SEARCHED);
    (fractional.min(searched), content, CONTENTS_SEARCHED * STEPS_OF_CONTENT)
}

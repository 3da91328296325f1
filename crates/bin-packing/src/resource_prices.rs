//! First prices: each group of items pays so much for a unit of each resource.
//!
//! The linear relaxation in which items may be cut: small, soon solved, and near the truth where many items fill a bin.

use super::Compiled;
use super::master::{Column, Master};

/// Prices of items, with the rates that show them to be valid.
pub(super) struct ResourcePrices {
    /// By item.
    pub(super) prices: Vec<f64>,
    /// Rates of the resources by bin.
    pub(super) rates: Vec<Vec<f64>>,
    /// The same by bin that is there.
    pub(super) free_rates: Vec<Vec<f64>>,
}

/// Rounds of column generation: a handful suffice, since there are few rows.
const ROUNDS: usize = 200;
/// Pivots of each round.
const PIVOTS: usize = 400;

/// The rows: group and resource, then the bins that are there.
struct Rows {
    resources: usize,
    /// What counts as one of each resource: the most that a bin offers.
    scale: Vec<f64>,
    /// Row of (group, resource).
    of: Vec<Option<u32>>,
    demand: Vec<f64>,
    first: Vec<Option<Column>>,
}

impl Rows {
    /// The number of groups that ask for something; bins may know more.
    fn groups(&self) -> usize {
        self.of.len() / self.resources.max(1)
    }
}

/// `unit` is the amount of money that counts as one.
pub(super) fn solve(compiled: &Compiled<'_>, unit: f64) -> ResourcePrices {
    let resources = compiled.resources;
    let mut rows = rows(compiled, unit);
    let covered = rows.demand.len();
    for bin in &compiled.problem.free {
        rows.demand.push(-f64::from(bin.count));
        rows.first.push(None);
    }
    let mut master = Master::new(std::mem::take(&mut rows.demand), std::mem::take(&mut rows.first));
    for _ in 0..ROUNDS {
        master.improve(PIVOTS);
        let mut found = false;
        for bin in &compiled.problem.bins {
            let (worth, column) = whole_bin(&rows, &master.prices, &bin.capacity, &bin.accepts);
            let cost = bin.price as f64 / unit;
            if worth > cost * (1.0 + 1e-7) {
                master.add(Column { cost, entries: column });
                found = true;
            }
        }
        for (position, bin) in compiled.problem.free.iter().enumerate() {
            let (worth, mut column) = whole_bin(&rows, &master.prices, &bin.capacity, &bin.accepts);
            if worth > master.prices[covered + position] + 1e-9 {
                column.push(((covered + position) as u32, -1.0));
                master.add(Column { cost: 0.0, entries: column });
                found = true;
            }
        }
        if !found {
            break;
        }
    }
    let rate = |group: usize, resource: usize| {
        rows.of[group * resources + resource]
            .map_or(0.0, |row| master.prices[row as usize].max(0.0) * unit / rows.scale[resource])
    };
    let items = compiled.problem.items.iter().enumerate();
    let prices = items.map(|(position, item)| {
        let size = compiled.size(position).iter().enumerate();
        size.map(|(resource, size)| size * rate(item.group as usize, resource)).sum()
    });
    let rates = |accepts: &[bool]| -> Vec<f64> {
        let groups = || (0..accepts.len().min(rows.groups())).filter(|&group| accepts[group]);
        (0..resources).map(|resource| groups().map(|group| rate(group, resource)).fold(0.0, f64::max)).collect()
    };
    ResourcePrices {
        prices: prices.collect(),
        rates: compiled.problem.bins.iter().map(|bin| rates(&bin.accepts)).collect(),
        free_rates: compiled.problem.free.iter().map(|bin| rates(&bin.accepts)).collect(),
    }
}

/// What each group asks of each resource, and for each such row the bin that gives most of it for its price.
fn rows(compiled: &Compiled<'_>, unit: f64) -> Rows {
    let (problem, resources) = (compiled.problem, compiled.resources);
    let groups = problem.items.iter().map(|item| item.group as usize + 1).max().unwrap_or(0);
    let mut asked = vec![0.0; groups * resources];
    for (position, item) in problem.items.iter().enumerate() {
        for (resource, size) in compiled.size(position).iter().enumerate() {
            asked[item.group as usize * resources + resource] += size * f64::from(item.count);
        }
    }
    let most =
        |resource: usize| problem.bins.iter().map(|bin| super::as_double(bin.capacity[resource])).fold(1.0, f64::max);
    let scale: Vec<f64> = (0..resources).map(most).collect();
    let mut rows = Rows { resources, scale, of: vec![None; asked.len()], demand: Vec::new(), first: Vec::new() };
    for (position, &asked) in asked.iter().enumerate() {
        let (group, resource) = (position / resources, position % resources);
        let gives = |bin: &&super::Bin| bin.accepts[group] && bin.capacity[resource] > 0;
        let for_price = |bin: &super::Bin| bin.price as f64 / super::as_double(bin.capacity[resource]);
        let best = problem.bins.iter().filter(gives).min_by(|a, b| for_price(a).total_cmp(&for_price(b)));
        let Some(bin) = best.filter(|_| asked > 0.0) else { continue };
        let row = rows.demand.len() as u32;
        rows.of[position] = Some(row);
        rows.demand.push(asked / rows.scale[resource]);
        let entry = super::as_double(bin.capacity[resource]) / rows.scale[resource];
        rows.first.push(Some(Column { cost: bin.price as f64 / unit, entries: vec![(row, entry)] }));
    }
    rows
}

/// The whole of a bin, each resource given to the group that pays most for it.
fn whole_bin(rows: &Rows, prices: &[f64], capacity: &[i64], accepts: &[bool]) -> (f64, Vec<(u32, f64)>) {
    let mut worth = 0.0;
    let mut column = Vec::new();
    for (resource, &amount) in capacity.iter().enumerate() {
        let paying = (0..accepts.len().min(rows.groups())).filter(|&group| accepts[group]);
        let best = paying
            .filter_map(|group| rows.of[group * rows.resources + resource])
            .max_by(|&a, &b| prices[a as usize].total_cmp(&prices[b as usize]));
        let Some(row) = best.filter(|_| amount > 0) else { continue };
        let amount = super::as_double(amount) / rows.scale[resource];
        worth += amount * prices[row as usize];
        column.push((row, amount));
    }
    (worth, column)
}

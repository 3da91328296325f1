//! Packing items into bins of several sizes and prices at the least cost: a lower bound that no packing can beat, and a
//! search for a cheap packing.
//!
//! The problem is stated without a word of pods and nodes: items of several kinds with a size in each resource, bins to buy
//! as often as wanted, and bins that are there already. `packing` states its pods in these terms and checks every answer by
//! its own rules.
//!
//! [`bound()`] is the linear relaxation over bin contents by column generation with Farley's dual bound: any prices of items
//! give a bound once they are scaled so that no content of a bin is worth more than the bin costs. That worth is
//! over-estimated in integers, so rounding cannot make the bound too high.
//!
//! [`plan`] uses the same prices in three ways: it buys the bin whose content is worth most for its price, again and again; it rounds the
//! relaxation; and it dives, buying what the relaxation is surest of and solving it again for the rest. Then it takes the least worthy
//! bins of the cheapest of these packings apart.
//!
//! What must not live here: Kubernetes, a clock. Whoever asks says when to stop, through [`Effort`].

mod bound;
mod branching;
mod ceiling;
mod columns;
mod diving;
mod filling;
mod improvement;
mod master;
mod plan;
mod resource_prices;

pub use bound::{Bound, bound};
pub use plan::{PackedBin, Plan, plan};

/// Items of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// The amount of each resource that one of them takes.
    pub size: Vec<i64>,
    /// How many there are.
    pub count: u32,
    /// How many of them one bin may hold whatever their size.
    pub most_per_bin: u32,
    /// Items of a group may go into the same bins.
    pub group: u32,
}

/// A bin that can be bought as often as wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bin {
    /// The amount of each resource that it offers.
    pub capacity: Vec<i64>,
    /// Its price in the smallest unit of money.
    pub price: i64,
    /// Which groups of items may go into it, by group.
    pub accepts: Vec<bool>,
}

/// Bins that are there already and cost nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FreeBin {
    /// The amount of each resource that each still offers.
    pub capacity: Vec<i64>,
    /// How many there are.
    pub count: u32,
    /// Which groups of items may go into them, by group.
    pub accepts: Vec<bool>,
}

/// Items to pack and bins to pack them into.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Problem {
    /// The number of resources.
    pub resources: usize,
    /// The items.
    pub items: Vec<Item>,
    /// Bins to buy.
    pub bins: Vec<Bin>,
    /// Bins that are there.
    pub free: Vec<FreeBin>,
}

/// Amounts beyond this are cut: below it a double holds every integer, and sums of what fits stay exact.
const LARGEST_AMOUNT: i64 = 1 << 50;

/// How much work may be done, and who may end it early.
pub struct Effort<'e> {
    /// Steps left; a step looks at one item kind for one bin. The same number of steps gives the same answer everywhere.
    pub steps: u64,
    /// Asked now and then whether to go on. A clock here makes the answer depend on the machine.
    pub go_on: &'e mut dyn FnMut() -> bool,
}

impl Effort<'_> {
    /// Steps for a bound or a search over the largest inputs in a few seconds.
    pub const THOROUGH: u64 = 300_000_000;
    /// Steps for a decision that is taken again and again.
    pub const QUICK: u64 = 30_000_000;
    /// Steps for a bound that a plan is compared with while it is being checked.
    pub const CHECK: u64 = 300_000;

    /// Spends steps; whether to go on.
    fn spend(&mut self, steps: usize) -> bool {
        self.steps = self.steps.saturating_sub(steps as u64);
        self.steps > 0 && (self.go_on)()
    }
}

/// What a bin can hold of each kind, as doubles for speed.
#[derive(Clone, Debug)]
struct Shelf {
    capacity: Vec<f64>,
    /// The kinds that fit, in order.
    items: Vec<u32>,
    /// How many of each at most.
    most: Vec<u32>,
}

/// A problem compiled: sizes in one row, and what each bin can hold.
struct Compiled<'p> {
    problem: &'p Problem,
    resources: usize,
    /// Sizes by item, then resource.
    sizes: Vec<f64>,
    shelves: Vec<Shelf>,
    free: Vec<Shelf>,
}

/// A content: kinds with their numbers.
type Content = Vec<(u32, u32)>;

impl<'p> Compiled<'p> {
    fn new(problem: &'p Problem) -> Self {
        let sizes = problem.items.iter().flat_map(|item| &item.size).map(|&size| as_double(size)).collect();
        let mut compiled = Self { problem, resources: problem.resources, sizes, shelves: Vec::new(), free: Vec::new() };
        compiled.shelves = problem.bins.iter().map(|bin| compiled.shelf(&bin.capacity, &bin.accepts)).collect();
        compiled.free = problem.free.iter().map(|bin| compiled.shelf(&bin.capacity, &bin.accepts)).collect();
        compiled
    }

    fn shelf(&self, capacity: &[i64], accepts: &[bool]) -> Shelf {
        let capacity: Vec<f64> = capacity.iter().map(|&amount| as_double(amount)).collect();
        let (mut items, mut most) = (Vec::new(), Vec::new());
        for (position, item) in self.problem.items.iter().enumerate() {
            if !accepts[item.group as usize] {
                continue;
            }
            let fitting = fitting(self.size(position), &capacity);
            let number = fitting.min(f64::from(item.count.min(item.most_per_bin))) as u32;
            if number > 0 {
                items.push(position as u32);
                most.push(number);
            }
        }
        Shelf { capacity, items, most }
    }

    fn size(&self, item: usize) -> &[f64] {
        &self.sizes[item * self.resources..(item + 1) * self.resources]
    }
}

fn as_double(amount: i64) -> f64 {
    amount.clamp(0, LARGEST_AMOUNT) as f64
}

/// How many items of a size fit into the room; infinite for items without size.
fn fitting(size: &[f64], room: &[f64]) -> f64 {
    let mut number = f64::INFINITY;
    for (&size, &room) in size.iter().zip(room) {
        if size > 0.0 {
            number = number.min((room / size).floor());
        }
    }
    number
}

#[cfg(test)]
mod tests;

//! The lower bound.

use super::columns::Generation;
use super::{Compiled, Effort, Problem};

/// What no packing can cost less than.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The amount, in the unit of the bins' prices.
    pub amount: i64,
    /// Whether more effort would not have raised it.
    pub finished: bool,
}

/// A lower bound on the price of the bins that hold all items. Items that no bin can hold are left out.
///
/// Source: Farley, "A note on bounding a class of linear programming problems, including cutting stock problems", Operations
/// Research 38 (1990); Gilmore and Gomory, "A linear programming approach to the cutting stock problem" (1961).
pub fn bound(problem: &Problem, effort: &mut Effort<'_>) -> Bound {
    if problem.bins.iter().any(|bin| bin.price <= 0) {
        // Bins that cost nothing are left to the caller as bins that are there without end: whatever fits into one costs
        // nothing.
        return bound(&without_gifts(problem), effort);
    }
    let compiled = Compiled::new(problem);
    let mut generation = Generation::new(&compiled, effort);
    generation.run(effort);
    Bound { amount: generation.proved, finished: generation.finished }
}

/// The problem without the bins that cost nothing and without the items that fit into one.
fn without_gifts(problem: &Problem) -> Problem {
    let fits = |item: &super::Item| {
        problem.bins.iter().filter(|bin| bin.price <= 0).any(|bin| {
            bin.accepts[item.group as usize] && item.size.iter().zip(&bin.capacity).all(|(size, room)| size <= room)
        })
    };
    Problem {
        resources: problem.resources,
        items: problem.items.iter().filter(|item| !fits(item)).cloned().collect(),
        bins: problem.bins.iter().filter(|bin| bin.price > 0).cloned().collect(),
        free: problem.free.clone(),
    }
}

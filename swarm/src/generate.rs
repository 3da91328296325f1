//! Random cases. Loads, faults and what people do end after three fifths of a case: what is left to settle has the rest.

mod market;
mod nodes;
mod workloads;

use crate::case::{Case, Guarded, Part};
use crate::random::Random;

/// What is gathered while a case is made.
pub struct Draft {
    /// Random numbers.
    pub random: Random,
    /// Minutes after which nothing is done to the case any more.
    pub busy: u64,
    /// Budgets of pods.
    pub guarded: Vec<Guarded>,
    /// The budget of the NodePool.
    pub node_budget: Option<u64>,
}

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    let mut random = Random::new(seed);
    let minutes = random.between(5, 18) * 10;
    let mut draft = Draft { random, busy: minutes * 3 / 5, guarded: Vec::new(), node_budget: None };
    let (versions, launcher) = nodes::launcher(&mut draft);
    let mut parts = vec![launcher];
    for number in 0..draft.random.between(1, 4) {
        parts.push(workloads::service(&mut draft, number));
    }
    parts.extend(workloads::others(&mut draft));
    parts.extend(market::parts(&mut draft));
    let Draft { guarded, node_budget, .. } = draft;
    Case { seed, minutes, versions, parts, guarded, node_budget }
}

/// A part that comes in so many of a hundred cases.
fn perhaps(draft: &mut Draft, percent: u64, part: impl FnOnce(&mut Draft) -> Part) -> Option<Part> {
    let comes = draft.random.happens(percent);
    comes.then(|| part(draft))
}

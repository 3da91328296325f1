//! Random cases. Loads, faults and what people do end after three fifths of a case: what is left to settle has the rest.

mod dump;
mod market;
mod nodes;
mod people;
mod vertical;
mod workloads;

use crate::case::{Case, Guarded, Part, Vertical};
use crate::random::Random;

/// A Deployment that a case has.
pub struct Service {
    /// Its name, in the namespace `shop`.
    pub name: String,
    /// Pods to begin with.
    pub replicas: u64,
    /// What each requests: milli-CPU and MiB.
    pub requests: (u64, u64),
    /// The object.
    pub deployment: String,
}

/// Nodes that the launcher of a case could have launched, as a dump shows them.
pub struct Fleet {
    /// The label that says whose they are, with its value.
    pub label: (&'static str, &'static str),
    /// Instance type with four vCPUs and 16 GiB, and its architecture.
    pub machine: (&'static str, &'static str),
    /// Labels of the capacity type.
    pub capacity: &'static str,
    /// The object that they are of, where people may edit it.
    pub pool: Option<String>,
    /// Whether somebody changes how many there are.
    pub is_scaled: bool,
}

/// What is gathered while a case is made.
pub struct Draft {
    /// Random numbers.
    pub random: Random,
    /// Minutes after which nothing is done to the case any more.
    pub busy: u64,
    /// Budgets of pods.
    pub guarded: Vec<Guarded>,
    /// VerticalPodAutoscalers.
    pub vertical: Vec<Vertical>,
    /// The budget of the NodePool.
    pub node_budget: Option<u64>,
    /// Its Deployments.
    pub services: Vec<Service>,
    /// What its launcher launches.
    pub fleet: Option<Fleet>,
}

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    let mut random = Random::new(seed);
    let minutes = random.between(5, 18) * 10;
    let mut draft = Draft {
        random,
        busy: minutes * 3 / 5,
        guarded: Vec::new(),
        vertical: Vec::new(),
        node_budget: None,
        services: Vec::new(),
        fleet: None,
    };
    let (mut versions, launcher) = nodes::launcher(&mut draft);
    let mut parts = vec![launcher];
    for number in 0..draft.random.between(1, 4) {
        parts.push(workloads::service(&mut draft, number));
    }
    parts.extend(workloads::others(&mut draft));
    parts.extend(market::parts(&mut draft));
    parts.extend(vertical::parts(&mut draft, &mut versions));
    parts.extend(people::parts(&mut draft, &versions));
    parts.extend(perhaps(&mut draft, 30, dump::part));
    let Draft { guarded, vertical, node_budget, .. } = draft;
    Case { seed, minutes, versions, parts, guarded, vertical, node_budget }
}

/// A part that comes in so many of a hundred cases.
fn perhaps(draft: &mut Draft, percent: u64, part: impl FnOnce(&mut Draft) -> Part) -> Option<Part> {
    let comes = draft.random.happens(percent);
    comes.then(|| part(draft))
}

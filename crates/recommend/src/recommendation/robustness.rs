//! Other days than the scenario's: whether what is recommended still saves and keeps its limits when load, Spot, a zone or a family are
//! not what they are assumed to be.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cloud::faults::{Fault, FaultKind, PoolSelector, Victims};
use crate::domain::{SimTime, Symbol};
use crate::scenario::Scenario;
use crate::scenario::definition::{OpenRequests, Requests};
use crate::statistics::Estimate;

/// Something that turns out differently.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Stress {
    /// Load is so many times what it is.
    Load(f64),
    /// EC2 takes back three of ten Spot instances at once.
    SpotStorm,
    /// A zone loses power for an hour.
    ZoneLost(Symbol),
    /// A family has no capacity for a third of the time.
    NoCapacity(Symbol),
}

/// How a recommendation fares when something turns out differently.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Robustness {
    /// What is different, for people.
    pub when: String,
    /// What is saved then against today under the same conditions, as a share of today's cost; negative where it costs less.
    pub relative: Option<Estimate>,
    /// Whether it still saves and keeps its limits.
    pub holds: bool,
    /// Why it does not.
    pub why: Option<String>,
}

impl Stress {
    /// Those that a scenario can have: `family` is the one that the recommended cluster spends most on.
    pub fn new(scenario: &Scenario, family: Option<Symbol>) -> Vec<Self> {
        let mut all = Vec::new();
        if !scenario.load.is_empty() || !scenario.usage.is_empty() || !scenario.queues.is_empty() {
            all.extend([Self::Load(0.8), Self::Load(1.2), Self::Load(1.5)]);
        }
        all.push(Self::SpotStorm);
        all.extend(scenario.zones.first().map(|zone| Self::ZoneLost(*zone)).filter(|_| scenario.zones.len() > 1));
        all.extend(family.map(Self::NoCapacity));
        all
    }

    /// What it is, for people.
    pub fn words(&self) -> String {
        match self {
            Self::Load(factor) => format!("load \u{d7} {factor}"),
            Self::SpotStorm => "30% of Spot instances are reclaimed at once".to_owned(),
            Self::ZoneLost(zone) => format!("{zone} loses power for an hour"),
            Self::NoCapacity(family) => format!("no {family} capacity for a third of the time"),
        }
    }

    /// The scenario with it.
    pub fn applied(&self, scenario: &Scenario) -> Scenario {
        let mut this_scenario = scenario.clone();
        let span = scenario.duration.as_secs_f64();
        let at = |share: f64| SimTime::ZERO + crate::domain::SimDuration::from_secs_f64(span * share);
        let fault = |kind, from: SimTime, until: SimTime| Fault { at: from, until, kind };
        let middle = at(0.5);
        match *self {
            Self::Load(factor) => {
                scale(&mut this_scenario, factor);
                return this_scenario;
            }
            Self::SpotStorm => {
                let kind = FaultKind::SpotInterruption {
                    pools: PoolSelector::default(),
                    victims: Victims::Permille(300),
                    before: crate::domain::SimDuration::ZERO,
                };
                add(&mut this_scenario, fault(kind, middle, middle));
            }
            Self::ZoneLost(zone) => {
                let until = (middle + crate::domain::SimDuration::from_secs(3_600)).min(at(1.0));
                add(&mut this_scenario, fault(FaultKind::ZoneOutage { zone, power: true }, middle, until));
            }
            Self::NoCapacity(family) => {
                let pools = PoolSelector { family: Some(family), ..PoolSelector::default() };
                let kind = FaultKind::InsufficientCapacity { pools, probability: 1.0 };
                add(&mut this_scenario, fault(kind, at(1.0 / 3.0), at(2.0 / 3.0)));
            }
        }
        this_scenario
    }
}

fn add(scenario: &mut Scenario, fault: Fault) {
    let cloud = Arc::make_mut(&mut scenario.ec2.cloud);
    cloud.faults.push(fault);
    cloud.faults.sort_by_key(|fault| fault.at);
}

fn scale(scenario: &mut Scenario, factor: f64) {
    let open = |requests: &mut OpenRequests| requests.curve = Arc::new((*requests.curve).clone().scaled(factor));
    for load in &mut scenario.load {
        match &mut load.requests {
            Requests::Open(item) | Requests::Cpu(item) => {
                open(item);
                // Arrivals one by one are those of the load as it is: a scaled load has its mean rates.
                item.arrivals = None;
            }
            Requests::ClosedLoop { clients, .. } => {
                *clients = libm::round(f64::from(*clients) * factor).max(1.0) as u32;
            }
        }
    }
    for queue in &mut scenario.queues {
        queue.waiting *= factor;
        if let Some(messages) = &mut queue.messages {
            open(messages);
            messages.arrivals = None;
        }
    }
    for usage in &mut scenario.usage {
        usage.cpu.iter_mut().chain(usage.memory.iter_mut()).for_each(open);
    }
}

#[cfg(test)]
mod tests {
    use super::Stress;
    use crate::catalog::Catalog;
    use crate::scenario::{Limits, Scenario};

    const QUEUE: &str = "name: q\nregion: us-east-1\nduration: 1h\nmanifests: [cluster.yaml]\n\
                         nodeGroups: [{name: own, instanceType: m6i.large, desired: 2}]\n\
                         policies: [{name: own, autoscaler: static}]\nqueues:\n- {name: orders, kind: sqs, workload: worker, \
                         time_per_message: 2s, waiting: 100, messages: {constant: 8}}\n";
    const WORKER: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: worker}\nspec:\n  replicas: 2\n  \
                          selector: {matchLabels: {app: worker}}\n  template:\n    metadata: {labels: {app: worker}}\n    \
                          spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 500m}}}]}\n";

    #[test]
    fn messages_are_load_too() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("scenario.yaml");
        std::fs::write(&file, QUEUE).unwrap();
        std::fs::write(folder.path().join("cluster.yaml"), WORKER).unwrap();
        let catalog = Catalog::embedded().unwrap();
        let (scenario, _) = crate::scenario::load_edited(&file, catalog, &Limits::default(), &[]).unwrap();
        assert!(Stress::new(&scenario, None).contains(&Stress::Load(1.5)), "a scenario with a queue alone has a load");
        let applied = Stress::Load(1.5).applied(&scenario);
        let curve = |scenario: &Scenario| (*scenario.queues[0].messages.as_ref().unwrap().curve).clone();
        assert_eq!(curve(&applied), curve(&scenario).scaled(1.5));
        assert!((applied.queues[0].waiting - 150.0).abs() < 1e-9);
    }
}

//! What an experiment asks, and parts of its answer that were computed elsewhere.
//!
//! A [`Question`] says which simulations there are; [`Part`]s hold the points of some of them. Parts of one question, put
//! together, are the answer of one machine, to the last byte.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::figures::FIGURES;
use super::points::{Cell, Plan, Point, seeds};
use crate::report::summary::{InputSummary, PROGRAM};

/// Version of the form of a part's file.
const SCHEMA_VERSION: u32 = 3;

/// What an experiment asks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Question {
    /// Which command asks.
    pub kind: Kind,
    /// The scenario file, as it was named.
    pub scenario: String,
    /// Its files with their SHA-256.
    pub inputs: Vec<InputSummary>,
    /// The directory of prices, where not the built-in ones are used.
    pub pricing_data: Option<String>,
    /// Names of policies.
    pub policies: Vec<String>,
    /// The first seed.
    pub first_seed: u64,
    /// How many successive seeds.
    pub replications: u32,
    /// The settings of a sweep, each a list of paths with values; one empty setting for a comparison.
    pub settings: Vec<Vec<(String, String)>>,
    /// The options that a sweep's settings came from, as a command line has them.
    pub axes: Vec<String>,
    /// The name of the figure that a sweep holds cost against.
    pub latency: Option<String>,
    /// How long every simulation of a sweep is, where it is not as long as the scenario says; a comparison has it in its
    /// setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
}

/// The kinds of experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Policies against each other.
    Compare,
    /// Settings against each other.
    Sweep,
    /// Policies of a fleet against each other.
    FleetCompare,
}

/// The most simulations that parts are put together of.
const SIMULATIONS_MAX: usize = 10_000_000;

impl Question {
    /// How many simulations answer it; `None` where that is no number any more.
    fn simulations(&self) -> Option<usize> {
        let replications = usize::try_from(self.replications).ok()?;
        self.settings.len().checked_mul(self.policies.len())?.checked_mul(replications)
    }

    /// The simulations that answer it.
    pub fn plan(&self) -> Plan {
        Plan {
            settings: self.settings.len(),
            policies: self.policies.clone(),
            seeds: seeds(self.first_seed, self.replications),
        }
    }
}

/// One of several equal shares of the simulations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shard {
    /// Its number, from 1 on.
    pub number: usize,
    /// How many there are.
    pub count: usize,
}

impl Shard {
    /// The cells of `plan` that fall to this shard: every `count`-th, so that all shards take about the same time.
    pub fn cells<'p>(&self, plan: &'p Plan) -> Vec<Cell<'p>> {
        plan.cells().filter(|cell| cell.index % self.count == self.number - 1).collect()
    }
}

/// The answer of one simulation, as parts hold it.
pub trait Answer: Clone + PartialEq + Serialize {
    /// How many figures it has.
    const FIGURES: usize;
    /// Setting, policy, and seed of its cell.
    fn cell(&self) -> (usize, &str, u64);
    /// What is wrong with its figures, if anything is.
    fn damage(&self) -> Option<String>;
}

impl Answer for Point {
    const FIGURES: usize = FIGURES.len();

    fn cell(&self) -> (usize, &str, u64) {
        (self.setting, &self.policy, self.seed)
    }

    fn damage(&self) -> Option<String> {
        figures_damage(self)
    }
}

/// Some of the points of an experiment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part<A = Point> {
    /// Version of this form.
    pub schema_version: u32,
    /// `nodecast`.
    pub program: String,
    /// The program's version.
    pub program_version: String,
    /// What was asked.
    pub question: Question,
    /// Which share this is.
    pub shard: Shard,
    /// How many figures each point has.
    pub figures: usize,
    /// Points with the numbers of their cells.
    pub points: Vec<(usize, A)>,
    /// SHA-256 of the part as it is written with nothing here, in hexadecimal.
    pub sha256: String,
}

/// Why parts do not make a whole.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, miette::Diagnostic)]
pub enum MergeError {
    /// No part at all.
    #[error("there is no part to merge")]
    #[diagnostic(help("name the files that `--shard` wrote"))]
    Nothing,
    /// A file of another program or release.
    #[error("`{file}` was written by {found}, this is {ours}")]
    #[diagnostic(help("run all parts and the merge with one release"))]
    OtherProgram {
        /// The file.
        file: String,
        /// Who wrote it.
        found: String,
        /// Who we are.
        ours: String,
    },
    /// Parts of two experiments.
    #[error("`{file}` answers another question than `{first}`")]
    #[diagnostic(help("parts belong together when scenario, policies, seeds and settings are the same"))]
    OtherQuestion {
        /// The file.
        file: String,
        /// The first file.
        first: String,
    },
    /// A file that is not as it was written.
    #[error("`{file}` is damaged: {reason}")]
    #[diagnostic(help("run this part again"))]
    Damaged {
        /// The file.
        file: String,
        /// What shows it.
        reason: String,
    },
    /// Simulations that no part holds.
    #[error("{missing} of {whole} simulations are in no part: {shards}")]
    #[diagnostic(help("run the missing parts, or name their files too"))]
    Missing {
        /// How many.
        missing: usize,
        /// Of how many.
        whole: usize,
        /// The shards that are missing or incomplete, for people.
        shards: String,
    },
    /// Two parts disagree about one simulation.
    #[error("two parts give different answers for policy {policy}, seed {seed}")]
    #[diagnostic(help("this should not happen: keep the files and report it; run one of the parts again to go on"))]
    Contradiction {
        /// The policy.
        policy: String,
        /// The seed.
        seed: u64,
    },
}

impl<A: Answer> Part<A> {
    /// The part `shard` of the answer to `question`.
    pub fn new(question: Question, shard: Shard, points: Vec<(usize, A)>) -> Self {
        let mut part = Self {
            schema_version: SCHEMA_VERSION,
            program: PROGRAM.to_owned(),
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            question,
            shard,
            figures: A::FIGURES,
            points,
            sha256: String::new(),
        };
        part.sha256 = part.checksum();
        part
    }

    /// What `sha256` is to be. Numbers are written so that they read back as they were, and so does the part.
    fn checksum(&self) -> String {
        let unsigned = Self { sha256: String::new(), ..self.clone() };
        // A part is text, numbers and lists of them; none of it can fail to become JSON, and an empty text would not agree either.
        let text = serde_json::to_string(&unsigned).unwrap_or_default();
        Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What shows that the part is not as it was written, if anything does.
    fn damage(&self) -> Option<String> {
        if self.figures != A::FIGURES {
            return Some(format!("it has {} figures a simulation, and there are {}", self.figures, A::FIGURES));
        }
        // A part of a hostile hand may ask for more than there is memory.
        let simulations = self.question.simulations();
        if simulations.is_none_or(|count| count > SIMULATIONS_MAX) {
            return Some(format!("its question is of more than {SIMULATIONS_MAX} simulations"));
        }
        let plan = self.question.plan();
        let cells: Vec<Cell<'_>> = plan.cells().collect();
        for (index, point) in &self.points {
            let Some(cell) = cells.get(*index) else {
                return Some(format!("it has a simulation {index}, and there are {}", cells.len()));
            };
            if (cell.setting, cell.policy, cell.seed) != point.cell() {
                return Some(format!("simulation {index} is of another policy, seed or setting"));
            }
            if let Some(reason) = point.damage() {
                return Some(format!("policy {}, seed {}: {reason}", cell.policy, cell.seed));
            }
        }
        (self.sha256 != self.checksum()).then(|| "its checksum is another".to_owned())
    }

    /// The usual name of its file.
    pub fn file_name(&self) -> String {
        format!("part-{}-of-{}.json", self.shard.number, self.shard.count)
    }
}

/// More than any cluster costs or holds, in any unit; beyond it sums would no longer be numbers.
pub const FIGURE_MAX: f64 = 1e15;

/// What is wrong with the figures of a simulation, if anything is.
fn figures_damage(point: &Point) -> Option<String> {
    if point.figures.len() != FIGURES.len() {
        return Some(format!("it has {} figures, and there are {}", point.figures.len(), FIGURES.len()));
    }
    FIGURES.iter().zip(&point.figures).find_map(|(figure, value)| {
        let (least, most) = figure.unit.range();
        match value {
            Some(value) if (least..=most.min(FIGURE_MAX)).contains(value) => None,
            Some(value) => Some(format!("`{}` is {value}", figure.name)),
            None => (figure.name == "cost").then(|| "it has no cost".to_owned()),
        }
    })
}

/// Puts parts, each with the name of its file, together: the question and every point in the order of its cells.
///
/// # Errors
/// If they do not belong together or do not make a whole.
pub fn merge<A: Answer>(parts: Vec<(String, Part<A>)>) -> Result<(Question, Vec<A>), MergeError> {
    let Some((first, question)) = parts.first().map(|(file, part)| (file.clone(), part.question.clone())) else {
        return Err(MergeError::Nothing);
    };
    let ours = (SCHEMA_VERSION, PROGRAM, env!("CARGO_PKG_VERSION"));
    let mut points: BTreeMap<usize, A> = BTreeMap::new();
    let mut count = 1;
    for (file, part) in parts {
        if (part.schema_version, part.program.as_str(), part.program_version.as_str()) != ours {
            let found = format!("{} {} (form {})", part.program, part.program_version, part.schema_version);
            return Err(MergeError::OtherProgram {
                file,
                found,
                ours: format!("{} {} (form {})", ours.1, ours.2, ours.0),
            });
        }
        if let Some(reason) = part.damage() {
            return Err(MergeError::Damaged { file, reason });
        }
        if part.question != question {
            return Err(MergeError::OtherQuestion { file, first });
        }
        count = count.max(part.shard.count);
        for (index, point) in part.points {
            match points.get(&index) {
                Some(known) if *known != point => {
                    let (_, policy, seed) = point.cell();
                    return Err(MergeError::Contradiction { policy: policy.to_owned(), seed });
                }
                Some(_) => {}
                None => {
                    points.insert(index, point);
                }
            }
        }
    }
    let plan = question.plan();
    let missing: Vec<usize> = (0..plan.len()).filter(|index| !points.contains_key(index)).collect();
    if !missing.is_empty() {
        let mut shards: Vec<usize> = missing.iter().map(|index| index % count + 1).collect();
        shards.sort_unstable();
        shards.dedup();
        let names: Vec<String> = shards.iter().take(20).map(|number| format!("{number}/{count}")).collect();
        let shards = format!("see shard {}", names.join(", "));
        return Err(MergeError::Missing { missing: missing.len(), whole: plan.len(), shards });
    }
    Ok((question, points.into_values().collect()))
}

#[cfg(test)]
mod tests {
    use super::{FIGURES, Kind, MergeError, Part, Question, Shard, merge};
    use crate::points::Point;

    fn question() -> Question {
        Question {
            kind: Kind::Compare,
            scenario: "s.yaml".into(),
            inputs: Vec::new(),
            pricing_data: None,
            policies: vec!["a".into(), "b".into()],
            first_seed: 1,
            replications: 4,
            settings: vec![Vec::new()],
            axes: Vec::new(),
            latency: None,
            duration: None,
        }
    }

    fn part(number: usize) -> (String, Part) {
        let (question, shard) = (question(), Shard { number, count: 3 });
        let plan = question.plan();
        let points = shard
            .cells(&plan)
            .iter()
            .map(|cell| {
                let point = Point {
                    setting: cell.setting,
                    policy: cell.policy.to_owned(),
                    seed: cell.seed,
                    figures: FIGURES.iter().map(|_| Some(cell.index as f64 / 30.0)).collect(),
                    objectives: Vec::new(),
                    event_hash: String::new(),
                    unconfirmed: 0.1,
                    cost_by_origin: Default::default(),
                    spot: false,
                    never_registered: 0,
                    silent: Vec::new(),
                    at_zero_seconds: Default::default(),
                    price_date: String::new(),
                    warnings: crate::scenario::Caveats::new(),
                };
                (cell.index, point)
            })
            .collect();
        (format!("{number}.json"), Part::new(question, shard, points))
    }

    #[test]
    fn oversized_question_part_is_rejected() {
        for replications in [u32::MAX, 6_000_000] {
            let question = Question { replications, ..question() };
            let part = Part::<Point>::new(question, Shard { number: 1, count: 1 }, Vec::new());
            let refused = merge(vec![("1.json".to_owned(), part)]);
            let Err(MergeError::Damaged { reason, .. }) = refused else { panic!("{refused:?}") };
            assert!(reason.contains("more than 10000000 simulations"), "{reason}");
        }
    }

    #[test]
    fn question_parts_merge_in_any_order() {
        let through_file = |(name, part): (String, Part)| {
            let json = serde_json::to_string(&part).unwrap();
            let back: Part = serde_json::from_str(&json).unwrap();
            assert_eq!(back, part);
            (name, back)
        };
        let (_, forward) = merge(vec![part(1), part(2), part(3)]).unwrap();
        let (_, backward) =
            merge(vec![part(3), part(3), part(1), part(2)].into_iter().map(through_file).collect()).unwrap();
        assert_eq!(forward, backward);
        assert_eq!(forward.len(), 8);
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = merge(vec![part(1), part(3)]).unwrap_err();
        assert_eq!(error.to_string(), "3 of 8 simulations are in no part: see shard 2/3");
        assert_eq!(merge::<Point>(Vec::new()).unwrap_err(), MergeError::Nothing);
        let mut other = part(2);
        other.1.question.replications = 5;
        other.1.sha256 = other.1.checksum();
        assert!(matches!(merge(vec![part(1), other]).unwrap_err(), MergeError::OtherQuestion { .. }));
    }

    #[test]
    fn damaged_part_is_reported_with_its_file() {
        type Harm = fn(&mut Part);
        let harms: [(Harm, &str); 7] = [
            (|part| part.points[0].1.figures[0] = Some(-5.0), "`cost` is -5"),
            (|part| part.points[0].1.figures[0] = Some(1e308), "`cost` is 1000"),
            (|part| part.points[0].1.figures[0] = None, "it has no cost"),
            (|part| part.points[0].1.figures.push(Some(0.5)), "figures, and there are"),
            (|part| part.figures += 1, "figures a simulation"),
            (|part| part.points[0].0 = 99, "a simulation 99"),
            (|part| part.points[0].1.seed = 77, "of another policy, seed or setting"),
        ];
        for (harm, expected) in harms {
            for again in [false, true] {
                let mut damaged = part(2);
                harm(&mut damaged.1);
                if again {
                    damaged.1.sha256 = damaged.1.checksum();
                }
                let text =
                    merge(vec![part(1), damaged, part(3)]).map_or_else(|error| error.to_string(), |_| String::new());
                assert!(text.starts_with("`2.json` is damaged: ") && text.contains(expected), "{text}");
            }
        }
        let mut quiet = part(2);
        quiet.1.points[0].1.figures[0] = Some(0.3);
        let text = merge(vec![part(1), quiet, part(3)]).map_or_else(|error| error.to_string(), |_| String::new());
        assert_eq!(text, "`2.json` is damaged: its checksum is another");
    }
}

//! Why a node stays, why a decision was made, why a pod waits or went where it went.
//!
//! A run is deterministic, so it can be asked: it is run once to know what happened, and once more up to the moment in
//! question, where the code that decides is asked for its reasons. [`standing`] answers for the cluster of a dump, without a run.
//!
//! Must not: decide anything, use more than one run, write to the terminal.

use nodecast_model::{cluster, domain};
use nodecast_prices as catalog;
use nodecast_report as report;
use nodecast_scenario as scenario;
use nodecast_sim::{actors, simulation};
use nodecast_world as world;

mod groups;
mod moment;
pub mod presentation;
pub mod standing;
mod subjects;
mod vertical;

pub use groups::{GroupFigures, OptionFigures, RoundFigures, ScaleDownFigures, ScaleUpFigures};
pub use moment::{MomentError, StatedTime};
use serde::Serialize;
pub use vertical::{ResourceFigures, VerticalFigures};

use crate::actors::Setup;
use crate::actors::inquiry::{Destination, PodAnswer, Removal};
use crate::catalog::{Catalog, CatalogError};
use crate::domain::node::is_short_name;
use crate::domain::{NodeId, PodId, SimDuration, SimTime};
use crate::report::format::moment as moment_for_people;
use crate::report::pack::PoolExplanation;
use crate::report::summary::{PROGRAM, SCHEMA_VERSION};
use crate::scenario::error::nearest;
use crate::scenario::{PolicyVariant, Scenario};
use crate::simulation::{Outcome, Resolved, Simulation, resolve};
use crate::world::record::{CommandId, Record};

/// What is asked about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subject {
    /// Why a node stays.
    Node {
        /// Its name.
        name: String,
        /// When.
        at: SimTime,
    },
    /// Why a decision was made, and what became of it.
    Decision {
        /// Its id: `d7` of Karpenter's disruption; `up2`, `down3` of the Cluster Autoscaler, its second growth and third removal.
        id: String,
    },
    /// Why a pod waits, or where it went and why.
    Pod {
        /// Its name, with or without its namespace.
        name: String,
        /// When; `None` for the end of the run.
        at: Option<SimTime>,
    },
}

/// An answer.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct Explanation {
    /// The version of this layout.
    pub schema_version: u32,
    /// The program that wrote it.
    pub program: &'static str,
    /// Its version.
    pub program_version: &'static str,
    /// The scenario.
    pub scenario: String,
    /// The policy.
    pub policy: String,
    /// The seed.
    pub seed: u64,
    /// ISO 4217 code of the currency of every amount.
    pub currency: &'static str,
    /// The moment that is explained, from the start of the run.
    pub at_seconds: f64,
    /// The node that was asked about.
    pub node: Option<NodeExplanation>,
    /// The decision that was asked about.
    pub decision: Option<DecisionExplanation>,
    /// The pod that was asked about.
    pub pod: Option<PodExplanation>,
}

/// Why a node stays.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct NodeExplanation {
    /// Its name.
    pub name: String,
    /// Its NodePool or node group.
    pub origin: String,
    /// Its instance type, once launched.
    pub instance_type: Option<String>,
    /// `spot` or `on-demand`, once launched.
    pub capacity_type: Option<String>,
    /// Its zone, once launched.
    pub zone: Option<String>,
    /// Price per hour at launch.
    pub per_hour: f64,
    /// Why nobody can say more; `None` where the rest says it.
    pub because: Option<String>,
    /// What keeps it from being drained, where it is to go; `null` where it is not, or its pods have left.
    pub drain: Option<DrainFigures>,
    /// What stands against its removal, method by method.
    pub methods: Vec<MethodFigures>,
    /// From when on it counts as left alone for `consolidateAfter`, if pods leave it alone.
    pub consolidatable_from_seconds: Option<f64>,
    /// Until when it is nominated for pods.
    pub nominated_until_seconds: Option<f64>,
    /// Nodes of its NodePool that its budgets let go now, by reason; `null` for no limit.
    pub budgets: Vec<BudgetFigures>,
    /// Nodes that multi-node consolidation would take together with it now.
    pub together: Vec<String>,
    /// What consolidation of it alone would come to, whatever stands against it.
    pub removal: Option<RemovalFigures>,
    /// What its replacement for drift would come to, whatever stands against it; `null` if it is not drifted, or of a static NodePool.
    pub replacement: Option<RemovalFigures>,
    /// What the Cluster Autoscaler makes of it, where that runs.
    pub cluster_autoscaler: Option<ScaleDownFigures>,
    /// Decisions that concerned it, in the whole run.
    pub decisions: Vec<String>,
}

/// A drain that goes on.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct DrainFigures {
    /// When it was decided that the node goes, from the start of the run.
    pub since_seconds: f64,
    /// Why it is to go.
    pub reason: Option<&'static str>,
    /// The pods that keep it, each with why; none where all that have to leave are on their way, or wait for their turn.
    pub kept_by: Vec<String>,
}

/// What stands against a method.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct MethodFigures {
    /// `empty`, `drift` or `consolidation`.
    pub method: &'static str,
    /// Every reason against it; none if the node is a candidate.
    pub reasons: Vec<String>,
}

/// What a budget lets go.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct BudgetFigures {
    /// `Empty`, `Drifted` or `Underutilized`.
    pub reason: &'static str,
    /// Nodes; `None` for no limit.
    pub nodes: Option<i64>,
}

/// What the removal of nodes would come to.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct RemovalFigures {
    /// `delete`, `replace` or `nothing`.
    pub verdict: &'static str,
    /// Why nothing would be done.
    pub because: Option<String>,
    /// What the nodes cost per hour.
    pub per_hour: f64,
    /// Nodes that would be launched.
    pub launches: Vec<LaunchFigures>,
    /// Where each of their pods would go.
    pub pods: Vec<PodFigures>,
}

/// A node that would be launched.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct LaunchFigures {
    /// Its NodePool.
    pub node_pool: String,
    /// How many instance types would do.
    pub types: u64,
    /// The cheapest of them.
    pub cheapest: Option<String>,
    /// Its price per hour.
    pub per_hour: Option<f64>,
}

/// Where a pod would go, and where its successor went.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct PodFigures {
    /// The pod.
    pub pod: String,
    /// Namespace and name of its workload.
    pub workload: String,
    /// `node`, `new node`, `nowhere`, or `not moved`.
    pub to: &'static str,
    /// The node, where it exists.
    pub node: Option<String>,
    /// Why nowhere, or what else there is to say.
    pub because: Option<String>,
    /// Where its successor went in the run; `None` where nothing is known.
    pub went_to: Option<String>,
}

/// Why a decision was made.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct DecisionExplanation {
    /// Its id.
    pub id: String,
    /// `Empty`, `Drifted` or `Underutilized`; of the Cluster Autoscaler `ScaleUp` or `ScaleDown`.
    pub reason: String,
    /// The nodes to remove.
    pub nodes: Vec<String>,
    /// What was to take their place.
    pub replacements: Vec<String>,
    /// `succeeded`, `rejected`, `failed` or `under way`.
    pub outcome: String,
    /// Why, where it was rejected or failed.
    pub because: Option<String>,
    /// What the code that decided says at that moment.
    pub removal: Option<RemovalFigures>,
    /// What the Cluster Autoscaler weighed at that moment, if it decided that groups grow.
    pub scale_up: Option<ScaleUpFigures>,
    /// What it made of each node, if it decided that nodes go.
    pub scale_down: Vec<ScaleDownFigures>,
    /// Nodes launched for it, and what became of each.
    pub launched: Vec<String>,
    /// What happened of it, in order.
    pub events: Vec<EventFigures>,
}

/// Something that happened.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct EventFigures {
    /// When, from the start of the run.
    pub at_seconds: f64,
    /// What, as `events.jsonl` names it.
    pub kind: &'static str,
    /// The node concerned.
    pub node: Option<String>,
    /// The cause.
    pub message: String,
}

/// Where a pod went, or why it waits.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct PodExplanation {
    /// Its name.
    pub name: String,
    /// Namespace and name of its workload.
    pub workload: String,
    /// The node that it was bound to by then.
    pub node: Option<String>,
    /// Whether it was on its node when the run began, so that the run has no reasons for its place.
    pub found: bool,
    /// Whether it waits for a node then: it has none, and nobody has asked for its deletion.
    pub waits: bool,
    /// What happened to it up to the moment asked for.
    pub events: Vec<EventFigures>,
    /// What kube-scheduler says of every node just before it bound the pod, or while it waits.
    pub kube_scheduler: Vec<SchedulerFigures>,
    /// What Karpenter would do with it, while it waits; of a pod whose node was launched while it waited, what Karpenter did.
    pub karpenter: Option<String>,
    /// When Karpenter made the claim of that node.
    pub claimed_at_seconds: Option<f64>,
    /// What each NodePool that was asked said to the pod then, instance type by instance type.
    pub node_pools: Vec<PoolExplanation>,
    /// What the Cluster Autoscaler would do for it, while it waits; of a pod for which a group grew, what it weighed then.
    pub cluster_autoscaler: Option<ScaleUpFigures>,
    /// The decision by which a group grew for it.
    pub grown_by: Option<String>,
    /// When that was.
    pub grown_at_seconds: Option<f64>,
    /// The decision that removed its node.
    pub evicted_by: Option<String>,
    /// The pod that took its place, if it had to leave its node.
    pub replaced_by: Option<String>,
    /// The node of that pod; `None` if it got none.
    pub replaced_on: Option<String>,
    /// What the VerticalPodAutoscaler makes of it that is for it.
    pub vertical: Option<VerticalFigures>,
}

/// What kube-scheduler says of a node.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct SchedulerFigures {
    /// The node.
    pub node: String,
    /// The weighted total of its scores, where it passes every filter.
    pub total: Option<i64>,
    /// The scores, 0 to 100, by plugin.
    pub scores: Vec<(String, i64)>,
    /// The filter's reasons where it does not.
    pub reasons: Vec<String>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ExplainError {
    /// The prices do not cover the scenario.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// Nothing of that name.
    #[error("no {kind} `{name}` in this run")]
    Unknown {
        /// `node`, `pod` or `decision`.
        kind: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
        #[help]
        help: String,
    },
    /// A name that things of several namespaces have.
    #[error("the run has a {kind} `{name}` in several namespaces")]
    Ambiguous {
        /// `pod`.
        kind: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
        #[help]
        help: String,
    },
    /// A time outside the run.
    #[error("the run ends {end}, before {at}")]
    Outside {
        /// The time asked for, for people.
        at: String,
        /// The end, for people.
        end: String,
    },
    /// A time at which the thing did not exist.
    #[error("{kind} `{name}` is not there {at}")]
    NotThere {
        /// `node` or `pod`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The time asked for, for people.
        at: String,
        /// When it was.
        #[help]
        help: String,
    },
}

/// What an explanation is made from: the whole run, and the setup to run it again.
struct Inquiry<'q> {
    setup: &'q Setup<'q>,
    outcome: &'q Outcome,
}

/// Explains something of the run of one policy with one seed.
///
/// # Errors
/// If the prices do not cover the scenario, or the subject is not part of the run.
pub fn explain(
    scenario: &Scenario,
    policy: &PolicyVariant,
    catalog: &Catalog,
    seed: u64,
    subject: &Subject,
) -> Result<Explanation, ExplainError> {
    let outcome = simulation::run(scenario, policy, catalog, seed, &mut |_| {})?;
    let Resolved { setup, .. } = resolve(scenario, policy, catalog, seed)?;
    let inquiry = Inquiry { setup: &setup, outcome: &outcome };
    let mut answer = Explanation {
        schema_version: SCHEMA_VERSION,
        program: PROGRAM,
        program_version: env!("CARGO_PKG_VERSION"),
        scenario: scenario.name.clone(),
        policy: policy.name.clone(),
        seed,
        currency: outcome.bill.currency.code(),
        at_seconds: 0.0,
        node: None,
        decision: None,
        pod: None,
    };
    let at = match subject {
        Subject::Node { name, at } => {
            answer.node = Some(inquiry.node(name, *at)?);
            *at
        }
        Subject::Decision { id } => {
            let (at, decision) = inquiry.decision(id)?;
            answer.decision = Some(decision);
            at
        }
        Subject::Pod { name, at } => {
            let (at, pod) = inquiry.pod(name, *at)?;
            answer.pod = Some(pod);
            at
        }
    };
    answer.at_seconds = at.as_secs_f64();
    Ok(answer)
}

impl<'q> Inquiry<'q> {
    fn end(&self) -> SimTime {
        SimTime::ZERO + self.outcome.about.duration
    }

    /// The run up to an instant, whose events have happened.
    fn run_to(&self, at: SimTime) -> Simulation<'q> {
        let mut run = Simulation::new(self.setup);
        run.step_until(at);
        run
    }

    /// The run just before the event after which `happened`, and the time of that event; the end of the run if it never does.
    fn run_before(&self, happened: impl Fn(&Record) -> bool) -> (Simulation<'q>, SimTime) {
        let mut scout = Simulation::new(self.setup);
        let (mut steps, mut at) = (0_u64, self.end());
        while let Some(now) = scout.step() {
            if happened(scout.components().sim.world.record()) {
                at = now;
                break;
            }
            steps += 1;
        }
        let mut run = Simulation::new(self.setup);
        for _ in 0..steps {
            run.step();
        }
        (run, at)
    }

    fn inside(&self, at: SimTime) -> Result<(), ExplainError> {
        let end = self.end();
        if at > end { Err(ExplainError::Outside { at: self.when(at), end: self.when(end) }) } else { Ok(()) }
    }

    /// An instant for people: how long after the start, and the clock.
    fn when(&self, at: SimTime) -> String {
        moment_for_people(self.setup.scenario.start, at, self.outcome.about.duration > SimDuration::from_secs(86_400))
    }

    fn node_name(&self, node: NodeId) -> String {
        self.outcome.record.nodes.get(node.index()).map_or_else(String::new, |facts| facts.name.clone())
    }

    fn workload_of(&self, pod: PodId) -> String {
        let record = &self.outcome.record;
        let workload = record.pods.get(pod).and_then(|facts| record.workloads.get(facts.workload.index()));
        workload.map_or_else(String::new, |facts| facts.name.to_string())
    }

    /// What became of the removal of nodes as an inquiry told it.
    fn figures(&self, removal: &Removal) -> RemovalFigures {
        RemovalFigures::new(
            removal,
            |node| self.node_name(node),
            |pod| {
                let name = self.outcome.record.pods.name(pod).unwrap_or_default().to_owned();
                (name, self.workload_of(pod))
            },
        )
    }
}

impl RemovalFigures {
    /// What the removal of nodes comes to, with the names of nodes, and of pods and their workloads.
    fn new(removal: &Removal, node: impl Fn(NodeId) -> String, pod: impl Fn(PodId) -> (String, String)) -> Self {
        let launches = removal.launches.iter().map(|launch| LaunchFigures {
            node_pool: launch.node_pool.to_string(),
            types: launch.types as u64,
            cheapest: launch.cheapest.map(|(name, _)| name.to_string()),
            per_hour: launch.cheapest.and_then(|(_, price)| price).map(crate::domain::HourlyRate::as_f64),
        });
        Self {
            verdict: removal.verdict,
            because: removal.because.clone(),
            per_hour: removal.price.as_f64(),
            launches: launches.collect(),
            pods: removal.pods.iter().map(|(key, to)| PodFigures::new(pod(*key), to, &node)).collect(),
        }
    }
}

impl PodFigures {
    fn new((pod, workload): (String, String), to: &Destination, name: impl Fn(NodeId) -> String) -> Self {
        let (kind, node, because) = match to {
            Destination::Node(node) => ("node", Some(name(*node)), None),
            Destination::Unready(node) => ("node", Some(name(*node)), Some("which is not initialized".to_owned())),
            Destination::New(_) => ("new node", None, None),
            Destination::Nowhere(why) => ("nowhere", None, Some(why.clone())),
            Destination::NotMoved => ("not moved", None, None),
        };
        Self { pod, workload, to: kind, node, because, went_to: None }
    }
}

/// The help of an error about a name: the nearest one, or the first few.
/// The position of the node called `given`, or of the only one whose host name that is.
///
/// # Errors
/// In words, if there is none or several.
fn position_of_node<'n>(given: &str, names: impl Iterator<Item = &'n str> + Clone) -> Result<usize, String> {
    if let Some(position) = names.clone().position(|name| name == given) {
        return Ok(position);
    }
    let short: Vec<(usize, &str)> = names.clone().enumerate().filter(|(_, name)| is_short_name(given, name)).collect();
    match short.as_slice() {
        [] => Err(names_near(given, names)),
        [(position, _)] => Ok(*position),
        several => {
            let names: Vec<&str> = several.iter().map(|(_, name)| *name).collect();
            Err(format!("several nodes have this host name: {}", names.join(", ")))
        }
    }
}

fn names_near<'n>(given: &str, names: impl Iterator<Item = &'n str> + Clone) -> String {
    if let Some(near) = nearest(given, names.clone()) {
        return format!("did you mean `{near}`?");
    }
    let first: Vec<&str> = names.clone().take(5).collect();
    let more = names.count().saturating_sub(first.len());
    match (first.is_empty(), more) {
        (true, _) => "the run has none".to_owned(),
        (false, 0) => format!("it has {}", first.join(", ")),
        (false, more) => format!("it has {} and {more} more", first.join(", ")),
    }
}

/// A decision of Karpenter's disruption that an id names.
fn command_of(outcome: &Outcome, id: &str) -> Option<CommandId> {
    CommandId::parse(id).filter(|command_id| (command_id.0 as usize) < outcome.record.commands.len())
}

/// What Karpenter would do with a pod that waits, in a sentence.
fn karpenter_says(answer: &PodAnswer, name: impl Fn(NodeId) -> String) -> String {
    match &answer.destination {
        Destination::Node(node) | Destination::Unready(node) => {
            format!("it would be scheduled to {}, which exists or is starting", name(*node))
        }
        Destination::New(_) => {
            let kind = answer.launch.as_ref().and_then(|launch| Some((launch, launch.cheapest?)));
            kind.map_or_else(
                || "a new node would be launched for it".to_owned(),
                |(launch, (cheapest, _))| {
                    let others = match launch.types {
                        1 => String::new(),
                        types => format!(" or one of {types} types in all"),
                    };
                    format!(
                        "a new node from NodePool {} would be launched for it: {cheapest}{others}",
                        launch.node_pool
                    )
                },
            )
        }
        Destination::Nowhere(why) => why.clone(),
        Destination::NotMoved => String::new(),
    }
}

//! The disruption loop of v1: every 10 s the methods are tried in a fixed order; what consolidation proposes is looked at again
//! after 15 s, during which the loop stands still.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/controller.go`, `validation.go`.

use super::cluster_view::with_view;
use super::last_look::{Answer, LastLook, Seen, can_be_kept};
use super::queue::{self, Proposal};
use super::type_lists::LazyPacker;
use super::{claims, consolidation, has_disruption_loop, is_managed, provisioning, time};
use crate::actors::context::{Context, Jitter};
use crate::actors::event::{Event, class};
use crate::cluster::NodePhase;
use crate::domain::node_pool::DisruptionReason;
use crate::domain::{NodeId, PodId, SimDuration, SimTime};
use crate::policy::controller_time::karpenter::{self as model, SearchWork};
use crate::policy::controller_time::{at_speed, work_within};
use crate::policy::disruption::{
    Allowance, Candidate, Class, ClusterView, Command, Found, Memory, Method, NodeCount, Obstacle, Rejection, Survey,
    WhatIf, candidates, drift, emptiness, multi_node, one_for_one, single_node, static_drift, template_claim, validate,
    validate_empty,
};
use crate::policy::packing::PackingSetup;
use crate::world::record::{CommandFacts, CommandId, ControllerLoop, NodeEnd, ReplacementFacts};

/// Between two passes that find nothing.
const POLL: SimDuration = SimDuration::from_secs(10);
/// How much later than planned a timer of the program fires at most (assumed): loops that begin together drift apart.
pub(super) const DRIFT: SimDuration = SimDuration::from_millis(10);
/// While a claim has no instance yet.
const POLL_UNSYNCED: SimDuration = SimDuration::from_secs(1);
/// After a command that could not be started; it doubles with every further one.
const BACKOFF: SimDuration = SimDuration::from_millis(5);
const BACKOFF_MAX: SimDuration = SimDuration::from_secs(1_000);
/// Between a proposal and its validation.
const VALIDATION: SimDuration = SimDuration::from_secs(15);
/// The methods in the order in which they are tried.
const ORDER: [Method; 5] =
    [Method::Emptiness, Method::StaticDrift, Method::Drift, Method::MultiNode, Method::SingleNode];

/// What the loop remembers.
#[derive(Debug, Default)]
pub(super) struct Loop {
    /// For each method the stamp with which it last found nothing.
    memos: [Option<u64>; ORDER.len()],
    memory: Memory,
    survey: Survey,
    last_look: LastLook,
    waiting: Option<Waiting>,
    /// What a look came to whose time is not over.
    thought: Option<Thought>,
    /// Passes in a row that ended with a command that could not be started.
    failures: u32,
    /// Nodes that each reason's method last found it may take, in the order of [`DisruptionReason::ALL`].
    pub(super) eligible: [u32; 3],
}

/// A proposal before its validation.
#[derive(Debug)]
struct Waiting {
    /// Place in the order of methods.
    place: usize,
    proposal: Proposal,
    command: CommandId,
}

/// What the loop has found out, and does when the time is over that this took.
#[derive(Debug)]
enum Thought {
    /// Proposals of a method, if one has something to do.
    Found(Option<Proposals>),
    /// Which nodes of a proposal may still go.
    Validated(Waiting, Result<Vec<NodeId>, Rejection>),
}

/// How long after the scenario's begin the loop looks first.
pub(super) fn phase(context: &Context<'_>) -> SimDuration {
    context.streams.stream("disruption-phase", "").span_up_to(POLL)
}

/// One pass of the loop.
pub(in crate::actors) fn disruption_pass(context: &mut Context<'_>, now: SimTime) {
    if !has_disruption_loop(context.setup.versions.karpenter) {
        return consolidation::pass(context, now);
    }
    if is_unsynced(context) {
        context.karpenter.disruption.failures = 0;
        context.queue.schedule_in(POLL_UNSYNCED, class::DISRUPTION, Event::DisruptionPass);
        return;
    }
    queue::clean_up(context, now);
    try_methods(context, now, 0);
}

/// Whether a claim waits for its instance.
pub(super) fn is_unsynced(context: &Context<'_>) -> bool {
    let launching = |&node: &NodeId| is_managed(context, node) && context.world.node(node).phase == NodePhase::Claimed;
    context.world.live_nodes().iter().any(launching)
}

/// Tries the methods from one on, until one has something to do.
fn try_methods(context: &mut Context<'_>, now: SimTime, from: usize) {
    let (found, took) = search(context, now, from);
    match took {
        // Nothing happens at the end of the look then.
        Some(took) if found.is_none() => nothing_found(context, took),
        Some(took) => think(context, took, Thought::Found(found)),
        None => act(context, now, found),
    }
}

/// What was found out is acted upon after the time that it took.
fn think(context: &mut Context<'_>, took: SimDuration, thought: Thought) {
    context.karpenter.disruption.thought = Some(thought);
    context.queue.schedule_in(took, class::DISRUPTION, Event::DisruptionConcluded);
}

/// The time of a look is over: what it came to is acted upon, by what was seen at its start.
pub(in crate::actors) fn disruption_concluded(context: &mut Context<'_>, now: SimTime) {
    if !has_disruption_loop(context.setup.versions.karpenter) {
        return consolidation::concluded(context, now);
    }
    match context.karpenter.disruption.thought.take() {
        Some(Thought::Found(Some((place, mut proposals)))) => {
            proposals.retain(|proposal| are_there(context, proposal));
            if proposals.is_empty() {
                return next_pass(context, false);
            }
            act(context, now, Some((place, proposals)));
        }
        Some(Thought::Found(None)) => act(context, now, None),
        Some(Thought::Validated(waiting, Ok(_))) if !are_there(context, &waiting.proposal) => {
            settle(context, now, waiting, Err(Rejection::Churn));
        }
        Some(Thought::Validated(waiting, holds)) => settle(context, now, waiting, holds),
        None => {}
    }
}

/// Whether the nodes of a proposal are there as they were, and nobody else has begun to remove one.
pub(super) fn are_there(context: &Context<'_>, proposal: &Proposal) -> bool {
    let there =
        |&node: &NodeId| context.world.node(node).phase == NodePhase::Registered && !claims::is_marked(context, node);
    proposal.nodes.iter().all(there)
}

/// Starts what was found, or has it wait for its validation.
fn act(context: &mut Context<'_>, now: SimTime, found: Option<Proposals>) {
    let Some((place, proposals)) = found else { return nothing_found(context, SimDuration::ZERO) };
    let method = ORDER[place];
    let (mut started, mut failed) = (false, false);
    for proposal in proposals {
        let command = record(context, now, method, &proposal);
        if method.class() == Class::Graceful {
            context.karpenter.disruption.waiting = Some(Waiting { place, proposal, command });
            context.queue.schedule_in(VALIDATION, class::DISRUPTION, Event::DisruptionValidation);
            return;
        }
        let starts = queue::start(context, now, command, proposal);
        started |= starts;
        failed |= !starts;
    }
    if failed || started {
        return next_pass(context, failed);
    }
    try_methods(context, now, place + 1);
}

/// Nothing is to be done: the loop looks again a while after the end of a look that takes so long.
fn nothing_found(context: &mut Context<'_>, took: SimDuration) {
    context.karpenter.disruption.failures = 0;
    let drift = context.jitter(Jitter::DisruptionLoop, 0, context.queue.now(), DRIFT);
    context.queue.schedule_in(took + POLL + drift, class::DISRUPTION, Event::DisruptionPass);
}

/// A command was started, and the loop goes on at once; or one could not be, and it waits ever longer.
fn next_pass(context: &mut Context<'_>, failed: bool) {
    let failures = &mut context.karpenter.disruption.failures;
    let wait = if failed {
        // Doubled eighteen times it is beyond the most.
        (BACKOFF * i64::from(1_u32 << (*failures).min(18))).min(BACKOFF_MAX)
    } else {
        SimDuration::ZERO
    };
    *failures = if failed { *failures + 1 } else { 0 };
    context.queue.schedule_in(wait, class::DISRUPTION, Event::DisruptionPass);
}

/// The first method from one on that has something to do, and what: one command, but for static drift; and how long it took to
/// find out, where that takes time. Methods that find nothing remember the stamp and do not look again before it changes; drift
/// always looks.
fn search(context: &mut Context<'_>, now: SimTime, from: usize) -> (Option<Proposals>, Option<SimDuration>) {
    let stamp = context.karpenter.stamp.read(now);
    let drifted = context.karpenter.nodes.values().any(|claim| claim.drifted.is_some());
    if !drifted {
        // Nobody asks then.
        count(&mut context.karpenter.disruption.eligible, DisruptionReason::Drifted, 0);
    }
    let memos = context.karpenter.disruption.memos;
    let static_pools = super::static_pools::are_on(context);
    let open = |place: &usize| match ORDER[*place] {
        Method::Drift => drifted,
        Method::StaticDrift => drifted && static_pools,
        _ => memos[*place] != Some(stamp),
    };
    let open: Vec<Method> = (from..ORDER.len()).filter(open).map(|place| ORDER[place]).collect();
    if open.is_empty() {
        return (None, took(context, SearchWork::default(), false));
    }
    provisioning::refresh(context, now);
    let pending = provisioning::provisionable(context);
    let seen = Seen::now(context, now, &pending);
    let known = context.karpenter.disruption.last_look.answers(context, now, &seen, &open);
    let (answers, found) = match known {
        Some(known) => {
            if cfg!(debug_assertions) {
                let fresh = look(context, now, &pending, seen, &open);
                assert!(fresh.1.is_none(), "nothing is found at a cluster where nothing was");
                assert_eq!(known, fresh.0, "a look at the same cluster comes to the same");
            }
            (known, None)
        }
        None => look(context, now, &pending, seen, &open),
    };
    let mut work = SearchWork::default();
    let mut cut = false;
    for (method, answer) in answers {
        work = work.plus(answer.work);
        cut |= is_cut(context, method, &answer);
        count(&mut context.karpenter.disruption.eligible, method.reason(), answer.candidates);
        context.world.note_obstacles(answer.met);
        if answer.lasting {
            context.karpenter.disruption.memos[place_of(method)] = Some(stamp);
        }
    }
    (found, took(context, work, cut))
}

/// How long a look with such simulations takes, where it takes time; it is put on record.
pub(super) fn took(context: &mut Context<'_>, work: SearchWork, cut: bool) -> Option<SimDuration> {
    let time = time(context)?;
    let nodes = context.world.live_nodes().len();
    let took = at_speed(model::look(nodes) + work.time(), time.speed_percent);
    context.world.note_loop(ControllerLoop::KarpenterLook, took, cut);
    Some(took)
}

/// How long a method may search at most, as the time that it was measured to take; `None` for any time.
pub(super) fn limit(context: &Context<'_>, method: Method) -> Option<SimDuration> {
    let limit = match method {
        Method::MultiNode => model::MULTI_NODE_LIMIT,
        Method::SingleNode => model::SINGLE_NODE_LIMIT,
        Method::Emptiness | Method::Drift | Method::StaticDrift => return None,
    };
    Some(work_within(limit, time(context)?.speed_percent))
}

/// Whether the end of its time stopped a method.
fn is_cut(context: &Context<'_>, method: Method, answer: &Answer) -> bool {
    limit(context, method).is_some_and(|limit| answer.work.time() > limit)
}

fn place_of(method: Method) -> usize {
    ORDER.iter().position(|own| *own == method).unwrap_or(0)
}

type Proposals = (usize, Vec<Proposal>);

/// Asks the methods one after the other until one has something to do: what those before it came to, and its proposals.
fn look(
    context: &mut Context<'_>,
    now: SimTime,
    pending: &[PodId],
    seen: Seen,
    open: &[Method],
) -> (Vec<(Method, Answer)>, Option<Proposals>) {
    let mut memory = std::mem::take(&mut context.karpenter.disruption.memory);
    let mut survey = std::mem::take(&mut context.karpenter.disruption.survey);
    survey.start_anew();
    let unix_seconds = context.setup.unix_seconds(now);
    let (answers, found, counted) = with_view(context, now, pending, |setup, view, nodes| {
        let mut packer = context.karpenter.instance_types.packer(&context.karpenter.pools, setup);
        let asking = Asking { packer: Some(&mut packer), what_if: None };
        let (memory, survey) = (&mut memory, &mut survey);
        let counted: Vec<NodeCount> = (0..view.pools.len()).map(|pool| view.counted_nodes(pool)).collect();
        let limits = [Method::MultiNode, Method::SingleNode].map(|method| limit(context, method));
        let counts = &counted[..];
        let mut inquiry = Inquiry { view, nodes, setup, asking, survey, memory, counted: counts, unix_seconds, limits };
        let (mut answers, mut found) = (Vec::new(), None);
        for &method in open {
            let (answer, proposals) = inquiry.ask(method);
            answers.extend(answer.map(|answer| (method, answer)));
            if !proposals.is_empty() {
                found = Some((place_of(method), proposals));
                break;
            }
        }
        (answers, found, can_be_kept(context, view).then_some(counted))
    });
    context.karpenter.disruption.memory = memory;
    context.karpenter.disruption.survey = survey;
    let mut last_look = std::mem::take(&mut context.karpenter.disruption.last_look);
    // A search that ran out of time goes on where it stopped.
    let cut = answers.iter().any(|(method, answer)| is_cut(context, *method, answer));
    match counted.filter(|_| found.is_none() && !cut) {
        Some(counted) => last_look.keep(context, seen, counted, answers.clone()),
        None => last_look.forget(),
    }
    context.karpenter.disruption.last_look = last_look;
    (answers, found)
}

/// The methods of one pass, which share what they learn of the cluster.
struct Inquiry<'q, 'p> {
    view: &'q ClusterView<'q>,
    /// The node behind each position in the view.
    nodes: &'q [NodeId],
    setup: PackingSetup<'q>,
    asking: Asking<'q, 'p>,
    survey: &'q mut Survey,
    memory: &'q mut Memory,
    /// Nodes of each pool that count for its budgets.
    counted: &'q [NodeCount],
    unix_seconds: i64,
    /// How long multi-node and single-node consolidation may search.
    limits: [Option<SimDuration>; 2],
}

/// The packer, and from the first question on the cluster as compiled by it.
struct Asking<'q, 'p> {
    packer: Option<&'q mut LazyPacker<'p>>,
    what_if: Option<WhatIf<'q, 'p>>,
}

impl<'q, 'p> Asking<'q, 'p> {
    fn about(&mut self, view: &'q ClusterView<'q>) -> Option<&mut WhatIf<'q, 'p>> {
        if let Some(packer) = self.packer.take() {
            self.what_if = Some(WhatIf::new(packer.get(), view).brief());
        }
        self.what_if.as_mut()
    }

    /// What all questions so far were.
    fn work(&self) -> SearchWork {
        self.what_if.as_ref().map_or(SearchWork::default(), WhatIf::work)
    }
}

impl Inquiry<'_, '_> {
    /// The drifted nodes of static pools that are replaced now, each by a command of its own.
    fn static_drift(&self) -> Vec<Command> {
        let view = self.view;
        let candidates = candidates(view, Method::StaticDrift);
        let allowances = view.allowances(Method::StaticDrift.reason(), self.unix_seconds);
        let replaced = |node: usize| {
            let pool = view.nodes[node].pool(view.pools)?;
            Some(one_for_one(node, template_claim(self.setup, pool, view.ties)?))
        };
        static_drift(view, &candidates, &allowances).into_iter().filter_map(replaced).collect()
    }

    /// Asks a method: what it came to, but for static drift, and what it proposes.
    fn ask(&mut self, method: Method) -> (Option<Answer>, Vec<Proposal>) {
        let (view, nodes) = (self.view, self.nodes);
        if method == Method::StaticDrift {
            let commands = self.static_drift();
            return (None, commands.iter().map(|command| proposal(method, command, nodes)).collect());
        }
        let surveyed = self.survey.of(view, method);
        let (candidates, others) = &*surveyed;
        let mut allowances = view.allowances_of(self.counted, method.reason(), self.unix_seconds);
        let mut answer = Answer::new(view, nodes, method, candidates, &allowances);
        if method == Method::MultiNode {
            // Single-node consolidation leaves the same nodes out: they count once.
            let others = others.iter().filter(|(_, kind)| *kind != Obstacle::Unmanaged);
            answer.met.extend(others.map(|&(node, kind)| (nodes[node], kind)));
        }
        let before = self.asking.work();
        let found = if candidates.is_empty() { None } else { self.try_method(method, candidates, &mut allowances) };
        answer.work = self.asking.work().since(before);
        if method == Method::SingleNode {
            // Each node was looked at by itself, in an order that time changes. It says nothing of the answer.
            self.memory.passed_over.sort_unstable_by_key(|own| own.0);
            answer.met.extend(self.memory.passed_over.drain(..).map(|(node, kind)| (nodes[node], kind)));
        }
        answer.lasting = found == Some(Found::Nothing);
        let proposals = match &found {
            Some(Found::Command(command)) => vec![proposal(method, command, nodes)],
            Some(Found::Nothing | Found::NotNow) | None => Vec::new(),
        };
        (Some(answer), proposals)
    }

    /// What a method comes to that has candidates.
    fn try_method(&mut self, method: Method, candidates: &[Candidate], allowances: &mut [Allowance]) -> Option<Found> {
        if method == Method::Emptiness {
            return Some(emptiness(candidates, allowances));
        }
        // Consolidation leaves nodes without pods alone: no packer is needed to find nothing.
        if method != Method::Drift && candidates.iter().all(|own| own.reschedulable.is_empty()) {
            let constrained = candidates.iter().any(|own| allowances[own.pool].0 == 0);
            return Some(if constrained { Found::NotNow } else { Found::Nothing });
        }
        let [multi, single] = self.limits;
        let multi_over = |work: SearchWork| multi.is_some_and(|limit| work.time() > limit);
        let single_over = |work: SearchWork| single.is_some_and(|limit| work.time() > limit);
        let what_if = self.asking.about(self.view)?;
        Some(match method {
            Method::MultiNode => multi_node(what_if, candidates, allowances, Some(&multi_over)),
            Method::SingleNode => single_node(what_if, candidates, allowances, self.memory, Some(&single_over)),
            Method::Emptiness | Method::Drift | Method::StaticDrift => {
                drift(what_if, candidates, allowances).0.map_or(Found::Nothing, Found::Command)
            }
        })
    }
}

/// Puts the count of a reason in its place in the order of [`DisruptionReason::ALL`].
fn count(eligible: &mut [u32; 3], reason: DisruptionReason, nodes: u32) {
    for (_, own) in DisruptionReason::ALL.iter().zip(eligible).filter(|(own, _)| **own == reason) {
        *own = nodes;
    }
}

pub(super) fn proposal(method: Method, command: &Command, nodes: &[NodeId]) -> Proposal {
    Proposal {
        nodes: command.nodes.iter().map(|&node| nodes[node]).collect(),
        replacements: command.replacements.clone(),
        destinations: command.moves.iter().map(|(node, _)| nodes[*node]).collect(),
        end: match method {
            Method::Emptiness => NodeEnd::Empty,
            Method::Drift | Method::StaticDrift => NodeEnd::Drifted,
            Method::MultiNode | Method::SingleNode => NodeEnd::Underutilized,
        },
    }
}

pub(super) fn record(context: &mut Context<'_>, now: SimTime, method: Method, proposal: &Proposal) -> CommandId {
    let shared: &Context<'_> = context;
    let replacements = proposal.replacements.iter().map(|claim| ReplacementFacts {
        node_pool: claim.node_pool,
        types: claim.instance_types.len(),
        capacity_types: provisioning::capacity_types(shared, claim),
        cheapest: claim.instance_types.first().and_then(|own| Some((own.name, own.price?))),
        currency: shared.setup.region.currency,
    });
    let facts = CommandFacts {
        reason: method.reason(),
        method: match method {
            Method::Emptiness => Some("empty"),
            Method::MultiNode => Some("multi"),
            Method::SingleNode => Some("single"),
            Method::Drift | Method::StaticDrift => None,
        },
        proposed: (method.class() == Class::Graceful).then_some(now),
        candidates: proposal.nodes.clone(),
        replacements: replacements.collect(),
        started: None,
        nodes: Vec::new(),
        made: Vec::new(),
        rejected: None,
        succeeded: None,
        failed: None,
    };
    context.world.propose_command(facts, now)
}

/// The wait is over: what still holds is started, and the loop goes on at once; otherwise the methods that come later are tried.
pub(in crate::actors) fn disruption_validation(context: &mut Context<'_>, now: SimTime) {
    if !has_disruption_loop(context.setup.versions.karpenter) {
        return consolidation::validated(context, now);
    }
    let Some(waiting) = context.karpenter.disruption.waiting.take() else { return };
    provisioning::refresh(context, now);
    let mut survey = std::mem::take(&mut context.karpenter.disruption.survey);
    survey.start_anew();
    let (holds, work) = revalidate(context, now, ORDER[waiting.place], &waiting.proposal, &mut survey);
    context.karpenter.disruption.survey = survey;
    match took(context, work, false) {
        Some(took) => think(context, took, Thought::Validated(waiting, holds)),
        None => settle(context, now, waiting, holds),
    }
}

/// Starts a proposal that still holds, or drops it.
fn settle(context: &mut Context<'_>, now: SimTime, waiting: Waiting, holds: Result<Vec<NodeId>, Rejection>) {
    let Waiting { place, mut proposal, command } = waiting;
    match holds {
        Ok(nodes) => {
            proposal.nodes = nodes;
            let starts = queue::start(context, now, command, proposal);
            next_pass(context, !starts);
        }
        Err(why) => {
            context.world.reject_command(command, now, &why.to_string());
            try_methods(context, now, place + 1);
        }
    }
}

/// The nodes that may still go, and what it took to find out.
pub(super) fn revalidate(
    context: &Context<'_>,
    now: SimTime,
    method: Method,
    proposal: &Proposal,
    survey: &mut Survey,
) -> (Result<Vec<NodeId>, Rejection>, SearchWork) {
    let pending = provisioning::provisionable(context);
    let mut work = SearchWork::default();
    let unix_seconds = context.setup.unix_seconds(now);
    let holds = with_view(context, now, &pending, |setup, view, nodes| {
        let surveyed = survey.of(view, method);
        let fresh = &surveyed.0;
        let mut allowances = view.allowances(method.reason(), unix_seconds);
        // A node that is gone has no position, which no candidate has either.
        let position = |own: &NodeId| nodes.iter().position(|node| node == own).unwrap_or(usize::MAX);
        let proposed: Vec<usize> = proposal.nodes.iter().map(position).collect();
        if method == Method::Emptiness {
            let left = validate_empty(&proposed, fresh, &mut allowances)?;
            return Ok(left.into_iter().map(|node| nodes[node]).collect());
        }
        let command = Command {
            nodes: proposed,
            replacements: proposal.replacements.clone(),
            moves: Vec::new(),
            replaced: Vec::new(),
            price: crate::domain::HourlyRate::ZERO,
        };
        let mut packer = context.karpenter.instance_types.packer(&context.karpenter.pools, setup);
        let mut what_if = WhatIf::new(packer.get(), view);
        let valid = validate(&mut what_if, &command, fresh, &mut allowances);
        work = what_if.work();
        valid.map(|()| proposal.nodes.clone())
    });
    (holds, work)
}

/// Something has changed that could change a decision.
pub(super) fn changed(context: &mut Context<'_>, now: SimTime) {
    context.karpenter.stamp.renew(now);
}

/// A pod came to a node, ended on it or began to leave it.
pub(super) fn pod_event(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    claims::pod_event(context, now, node);
}

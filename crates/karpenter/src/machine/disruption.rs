//! The disruption loop, from v0.23 on: every 10 s the methods are tried in a fixed order; what consolidation proposes is looked at again
//! after 15 s, during which the loop stands still.
//!
//! The second look is in `validation`.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/controller.go`.

use super::cluster_view::with_view;
use super::io::{Action, Busy, Draw, LateTimer, ProposedCommand, ProposedNode, Stage, Timer};
use super::look_memory::{LookAnswer, LookMemory, MethodMemory, is_plain};
use super::queue::{self, Proposal};
use super::step::Step;
use super::type_lists::LazyPacker;
use super::{claims, pace, provisioning, validation};
use crate::controller_time::{self as model, SearchWork};
use crate::disruption::{
    Allowance, Candidate, ClusterView, Command, Disturbance, Memory, Method, MethodResult, NodeCount, Obstacle,
    Rejection, Survey, WhatIf, candidates, drift, emptiness, multi_node, one_for_one, single_node, static_drift,
};
use crate::packing::{PackingSetup, static_claim};
use crate::release::CommandQueue;
use nodecast_model::cluster::{NodeEnd, NodePhase};
use nodecast_model::domain::controller_time::{at_speed, work_within};
use nodecast_model::domain::node_pool::DisruptionReason;
use nodecast_model::domain::{CommandId, NodeId, PodId, SimDuration, SimTime};

/// Between two passes that find nothing.
const POLL: SimDuration = SimDuration::from_secs(10);
/// How much later than planned a timer of the program fires at most (assumed): loops that begin together drift apart.
pub(super) const DRIFT: SimDuration = SimDuration::from_millis(10);
/// While a claim has no instance yet.
const POLL_UNSYNCED: SimDuration = SimDuration::from_secs(1);
/// While a command is under way, where there is one at a time.
const POLL_BUSY: SimDuration = SimDuration::from_secs(1);
/// After a command that could not be started; it doubles with every further one.
const BACKOFF: SimDuration = SimDuration::from_millis(5);
const BACKOFF_MAX: SimDuration = SimDuration::from_secs(1_000);
/// Between a proposal and its validation.
const VALIDATION: SimDuration = SimDuration::from_secs(15);
/// The most methods that a release has.
const METHODS_MAX: usize = 6;

/// What the loop remembers.
#[derive(Debug, Default)]
pub(super) struct Loop {
    /// For each method the stamp with which it last found nothing.
    memos: [Option<u64>; METHODS_MAX],
    pub(super) memory: Memory,
    last_look: LookMemory,
    pub(super) survey: Survey,
    pub(super) waiting: Option<Waiting>,
    /// What a look came to whose time is not over.
    thought: Option<Thought>,
    /// Passes in a row that ended with a command that could not be started.
    failures: u32,
    /// Nodes of the last command, in releases that wait until they are gone.
    last: Vec<NodeId>,
    /// Nodes whose validation failed in this pass, in releases whose single-node consolidation goes on with the next.
    pub(super) refused: Vec<NodeId>,
    /// Nodes that each reason's method last found it may take, in the order of [`DisruptionReason::ALL`].
    pub(super) eligible: [u32; 3],
}

/// A proposal before its validation.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Place in the order of methods.
    pub(super) place: usize,
    pub(super) proposal: Proposal,
    pub(super) command: CommandId,
}

/// What the loop has found out, and does when the time is over that this took.
#[derive(Debug)]
pub(super) enum Thought {
    /// Proposals of a method, if one has something to do.
    Found(Option<Proposals>),
    /// Which nodes of a proposal may still go.
    Validated(Waiting, Result<Vec<NodeId>, Rejection>),
}

/// How long after the scenario's begin the loop looks first.
pub(super) fn phase(step: &Step<'_>) -> SimDuration {
    step.outside.draw(Draw::DisruptionPhase(POLL))
}

/// One pass of the loop.
pub(super) fn pass(step: &mut Step<'_>, now: SimTime) {
    step.karpenter.disruption.refused.clear();
    if is_unsynced(step) {
        step.karpenter.disruption.failures = 0;
        step.wake(now + POLL_UNSYNCED, Timer::DisruptionPass);
        return;
    }
    if is_busy(step, now) {
        step.wake(now + POLL_BUSY, Timer::DisruptionPass);
        return;
    }
    if queue::clean_up(step) {
        step.next(Stage::Look);
    } else {
        look_from_first(step, now);
    }
}

/// Whether commands under way keep the loop from the next one: up to v0.33 there is one at a time, and up to v0.32 its nodes have to be
/// gone.
///
/// Deviation: up to v0.32 the loop checks every second whether the nodes of a command are gone. Upstream waits within
/// the command, with pauses that grow to ten seconds.
fn is_busy(step: &Step<'_>, now: SimTime) -> bool {
    let queue = step.karpenter.behaviour.queue;
    let leaves = |&node: &NodeId| super::consolidation::is_leaving(step, now, node);
    queue != CommandQueue::Any
        && (step.karpenter.commands.are_under_way()
            || (queue == CommandQueue::UntilGone && step.karpenter.disruption.last.iter().any(leaves)))
}

/// Carries out a command; whether it could be started.
pub(super) fn start(step: &mut Step<'_>, now: SimTime, command: CommandId, proposal: Proposal) -> bool {
    step.karpenter.disruption.last.clone_from(&proposal.nodes);
    queue::start(step, now, command, proposal)
}

/// Tries all methods.
pub(super) fn look_from_first(step: &mut Step<'_>, now: SimTime) {
    try_methods(step, now, 0);
}

/// Whether a claim waits for its instance.
pub(super) fn is_unsynced(step: &Step<'_>) -> bool {
    let launching = |&node: &NodeId| step.is_managed(node) && step.cluster.node(node).phase == NodePhase::Claimed;
    step.cluster.live_nodes().iter().any(launching)
}

/// Tries the methods from one on, until one has something to do.
pub(super) fn try_methods(step: &mut Step<'_>, now: SimTime, from: usize) {
    let (found, took) = search(step, now, from);
    match took {
        // Nothing happens at the end of the look then.
        Some(took) if found.is_none() => nothing_found(step, now, took),
        Some(took) => think(step, now, took, Thought::Found(found)),
        None => act(step, now, found),
    }
}

/// What was found out is acted upon after the time that it took.
pub(super) fn think(step: &mut Step<'_>, now: SimTime, took: SimDuration, thought: Thought) {
    step.karpenter.disruption.thought = Some(thought);
    step.wake(now + took, Timer::DisruptionConcluded);
}

/// The time of a look is over: what it came to is acted upon, by what was seen at its start.
pub(super) fn concluded(step: &mut Step<'_>, now: SimTime) {
    match step.karpenter.disruption.thought.take() {
        Some(Thought::Found(Some((place, mut proposals)))) => {
            proposals.retain(|proposal| are_there(step, proposal));
            if proposals.is_empty() {
                return next_pass(step, now, false);
            }
            act(step, now, Some((place, proposals)));
        }
        Some(Thought::Found(None)) => act(step, now, None),
        Some(Thought::Validated(waiting, Ok(_))) if !are_there(step, &waiting.proposal) => {
            validation::settle(step, now, waiting, Err(Rejection::Churn));
        }
        Some(Thought::Validated(waiting, holds)) => validation::settle(step, now, waiting, holds),
        None => {}
    }
}

/// Whether the nodes of a proposal are there as they were, and nobody else has begun to remove one.
pub(super) fn are_there(step: &Step<'_>, proposal: &Proposal) -> bool {
    let there =
        |&node: &NodeId| step.cluster.node(node).phase == NodePhase::Registered && !claims::is_marked(step, node);
    proposal.nodes.iter().all(there)
}

/// Starts what was found, or has it wait for its validation.
fn act(step: &mut Step<'_>, now: SimTime, found: Option<Proposals>) {
    let Some((place, proposals)) = found else { return nothing_found(step, now, SimDuration::ZERO) };
    let method = step.karpenter.behaviour.methods[place];
    let (mut started, mut failed) = (false, false);
    for proposal in proposals {
        let command = propose(step, method, &proposal);
        if method.is_validated(step.karpenter.settings.release) {
            step.karpenter.disruption.waiting = Some(Waiting { place, proposal, command });
            step.wake(now + VALIDATION, Timer::DisruptionValidation);
            return;
        }
        let starts = start(step, now, command, proposal);
        started |= starts;
        failed |= !starts;
    }
    if failed || started {
        return next_pass(step, now, failed);
    }
    try_methods(step, now, place + 1);
}

/// Nothing is to be done: the loop looks again a while after the end of a look that takes so long.
fn nothing_found(step: &mut Step<'_>, now: SimTime, took: SimDuration) {
    step.karpenter.disruption.failures = 0;
    let drift = step.slip(LateTimer::DisruptionLoop, 0, now);
    step.wake(now + took + POLL + drift, Timer::DisruptionPass);
}

/// A command was started, and the loop goes on at once; or one could not be, and it waits ever longer.
pub(super) fn next_pass(step: &mut Step<'_>, now: SimTime, failed: bool) {
    let marking = pace::marking(step);
    let failures = &mut step.karpenter.disruption.failures;
    let wait = if failed {
        // Doubled eighteen times it is beyond the most.
        (BACKOFF * i64::from(1_u32 << (*failures).min(18))).min(BACKOFF_MAX)
    } else {
        marking
    };
    *failures = if failed { *failures + 1 } else { 0 };
    step.wake(now + wait, Timer::DisruptionPass);
}

/// The first method from one on that has something to do, and what: one command, but for static drift; and how long it took to
/// find out, where that takes time. Methods that find nothing remember the stamp and do not look again before it changes; drift
/// always looks.
fn search(step: &mut Step<'_>, now: SimTime, from: usize) -> (Option<Proposals>, Option<SimDuration>) {
    let stamp = step.karpenter.stamp.read(now);
    let drifted = step.karpenter.nodes.values().any(|claim| claim.drifted.is_some());
    if !drifted {
        // Nobody asks then.
        count(&mut step.karpenter.disruption.eligible, DisruptionReason::Drifted, 0);
    }
    let memos = step.karpenter.disruption.memos;
    let static_pools = super::static_pools::are_on(step);
    let methods = step.karpenter.behaviour.methods;
    let expired = methods.contains(&Method::Expiration) && some_expired(step, now);
    let open = |place: &usize| match methods[*place] {
        Method::Expiration => expired,
        Method::Drift => drifted,
        Method::StaticDrift => drifted && static_pools,
        _ => memos[*place] != Some(stamp),
    };
    let open: Vec<Method> = (from..methods.len()).filter(open).map(|place| methods[place]).collect();
    if open.is_empty() {
        return (None, took(step, SearchWork::default(), false));
    }
    provisioning::refresh(step, now);
    let pending = provisioning::provisionable(step, now);
    let (answers, found) = look_or_remember(step, now, &pending, &open);
    let mut work = SearchWork::default();
    let mut cut = false;
    for (method, answer) in answers {
        work = work.plus(answer.work);
        cut |= is_cut(step, method, &answer);
        count(&mut step.karpenter.disruption.eligible, method.reason(), answer.candidates);
        if !answer.met.is_empty() {
            step.act(Action::Met(answer.met));
        }
        if answer.lasting && step.karpenter.behaviour.remembers_by_method {
            step.karpenter.disruption.memos[place_of(step, method)] = Some(stamp);
        }
    }
    if found.is_none() && from == 0 && !cut && !step.karpenter.behaviour.remembers_by_method {
        step.karpenter.disruption.memos = [Some(stamp); METHODS_MAX];
    }
    (found, took(step, work, cut))
}

/// Whether a node has reached its age limit.
fn some_expired(step: &Step<'_>, now: SimTime) -> bool {
    step.karpenter.nodes.iter().any(|(&node, claim)| {
        claims::age_limit(step, node, claim).is_some_and(|age| now - step.cluster.node(node).created >= age)
    })
}

/// How long a look with such simulations takes, where it takes time; it is put on record.
pub(super) fn took(step: &mut Step<'_>, work: SearchWork, cut: bool) -> Option<SimDuration> {
    let time = step.karpenter.settings.time?;
    let nodes = step.cluster.live_nodes().len();
    let took = at_speed(model::look(nodes) + work.time(), time.speed_percent);
    step.act(Action::Takes { what: Busy::Look, took, cut });
    Some(took)
}

/// How long a method may search at most, as the time that it was measured to take; `None` for any time. Where controllers take no
/// time, a search still ends after as many simulations as the measured processor manages: the real program never finishes more.
pub(super) fn limit(step: &Step<'_>, method: Method) -> Option<SimDuration> {
    let limit = match method {
        Method::MultiNode => model::MULTI_NODE_LIMIT,
        Method::SingleNode => model::SINGLE_NODE_LIMIT,
        _ => return None,
    };
    if !step.karpenter.behaviour.limits_searches {
        return None;
    }
    Some(work_within(limit, step.karpenter.settings.time.map_or(100, |time| time.speed_percent)))
}

/// Whether the end of its time stopped a method.
fn is_cut(step: &Step<'_>, method: Method, answer: &Answer) -> bool {
    limit(step, method).is_some_and(|limit| answer.work.time() > limit)
}

fn place_of(step: &Step<'_>, method: Method) -> usize {
    step.karpenter.behaviour.methods.iter().position(|this_method| *this_method == method).unwrap_or(0)
}

type Proposals = (usize, Vec<Proposal>);

/// What a method came to.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Answer {
    /// Whether nothing was found and that holds until something changes; otherwise a budget stood in the way, there was no candidate,
    /// or there is something to do.
    lasting: bool,
    /// How many candidates there were.
    candidates: u32,
    /// What it was for upstream.
    work: SearchWork,
    /// What kept nodes from being taken.
    met: Vec<(NodeId, Obstacle)>,
}

type Answers = (Vec<(Method, Answer)>, Option<Proposals>);

/// Asks the methods unless their answers are known from the last look.
fn look_or_remember(step: &mut Step<'_>, now: SimTime, pending: &[PodId], open: &[Method]) -> Answers {
    let known = step.karpenter.disruption.last_look.answer(step, now, pending, open);
    let check = step.cluster.check();
    match known {
        Some(known) if !check.compares() => {
            step.karpenter.disruption.memory.unseen = known.unseen;
            (known.methods, None)
        }
        _ => {
            let (methods, found) = look(step, now, pending, open);
            let unseen = step.karpenter.disruption.memory.unseen.clone();
            let answer = LookAnswer { methods, unseen };
            check.hold(known.as_ref().is_none_or(|known| found.is_none() && *known == answer), || {
                format!("the last look knew {known:?}, this look found {answer:?} and {found:?}")
            });
            (answer.methods, found)
        }
    }
}

/// Asks the methods one after the other until one has something to do: what those before it came to, and its proposals.
fn look(step: &mut Step<'_>, now: SimTime, pending: &[PodId], open: &[Method]) -> Answers {
    let mut memory = std::mem::take(&mut step.karpenter.disruption.memory);
    let mut survey = std::mem::take(&mut step.karpenter.disruption.survey);
    let unseen = memory.unseen.clone();
    survey.clear_view();
    let unix_seconds = step.karpenter.settings.unix_seconds(now);
    let (answers, found, kept) = with_view(step, now, pending, |setup, view, nodes| {
        let mut packer = step.karpenter.instance_types.packer(&step.karpenter.pools, setup);
        let asking = Asking { packer: Some(&mut packer), what_if: None };
        let (memory, survey) = (&mut memory, &mut survey);
        let counted: Vec<NodeCount> = (0..view.pools.len()).map(|pool| view.counted_nodes(pool)).collect();
        let limits = [Method::MultiNode, Method::SingleNode].map(|method| limit(step, method));
        let refused = &step.karpenter.disruption.refused[..];
        let mut inquiry =
            Inquiry { view, nodes, setup, asking, survey, memory, counted: &counted, unix_seconds, limits, refused };
        let (mut answers, mut kept) = (Vec::new(), Vec::new());
        for &method in open {
            let (answer, proposals) = inquiry.ask(method, &mut kept);
            answers.extend(answer.map(|answer| (method, answer)));
            if !proposals.is_empty() {
                return (answers, Some((place_of(step, method), proposals)), None);
            }
        }
        // Time alone ends the protection of a pod.
        let protected = view.nodes.iter().any(|node| node.digest.is_protected());
        (answers, None, (!protected && is_plain(step)).then_some((counted, kept)))
    });
    step.karpenter.disruption.memory = memory;
    step.karpenter.disruption.survey = survey;
    let last_look = kept.map(|kept| LookMemory::new(step, now, pending, kept, unseen));
    step.karpenter.disruption.last_look = last_look.unwrap_or_default();
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
    /// Nodes that are no candidates in this pass any more.
    refused: &'q [NodeId],
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
            Some(one_for_one(node, static_claim(&self.setup, pool)?))
        };
        static_drift(view, &candidates, &allowances).into_iter().filter_map(replaced).collect()
    }

    /// Asks a method: what it came to, but for static drift, and what it proposes. An answer that time alone does not change is `kept`.
    fn ask(&mut self, method: Method, kept: &mut Vec<MethodMemory>) -> (Option<Answer>, Vec<Proposal>) {
        let (view, nodes) = (self.view, self.nodes);
        if method == Method::StaticDrift {
            let commands = self.static_drift();
            return (None, commands.iter().map(|command| proposal(method, command, nodes)).collect());
        }
        let surveyed = self.survey.survey(view, method);
        let (candidates, others) = &*surveyed;
        let left: Vec<Candidate>;
        let candidates = match self.refused {
            [] => candidates,
            refused => {
                left =
                    candidates.iter().filter(|candidate| !refused.contains(&nodes[candidate.node])).cloned().collect();
                &left
            }
        };
        if method == Method::Expiration {
            // What time alone has brought about is not remembered.
            let allowances = view.allowances_of(self.counted, method.reason(), self.unix_seconds);
            let found = self.asking.about(view).and_then(|what_if| drift(what_if, candidates, &allowances).0);
            return (None, found.iter().map(|command| proposal(method, command, nodes)).collect());
        }
        let allowances = view.allowances_of(self.counted, method.reason(), self.unix_seconds);
        let (found, work) = self.search(method, candidates, &mut allowances.clone());
        let met: Vec<(usize, Obstacle)> = match method {
            // Single-node consolidation leaves the same nodes out: they count once.
            Method::MultiNode => others.iter().filter(|(_, kind)| *kind != Obstacle::Unmanaged).copied().collect(),
            Method::SingleNode => {
                // Each node was looked at by itself, in an order that time changes. It says nothing of the answer.
                self.memory.passed_over.sort_unstable_by_key(|(node, _)| *node);
                std::mem::take(&mut self.memory.passed_over)
            }
            _ => Vec::new(),
        };
        let answer = Answer {
            lasting: found == Some(MethodResult::Nothing),
            candidates: candidates.len() as u32,
            work,
            met: met.into_iter().map(|(node, kind)| (nodes[node], kind)).collect(),
        };
        let proposals = match &found {
            Some(MethodResult::Command(command)) => vec![proposal(method, command, nodes)],
            Some(MethodResult::Nothing | MethodResult::NotNow) | None => Vec::new(),
        };
        if proposals.is_empty() {
            let by_cost = if method.orders_by_cost(view.karpenter) { &candidates[..] } else { &[] };
            let disturbance =
                |candidate: &Candidate| (nodes[candidate.node], Disturbance::new(&view.nodes[candidate.node]));
            let by_cost = by_cost.iter().map(disturbance).collect();
            kept.push(MethodMemory { method, answer: answer.clone(), allowances, by_cost });
        }
        (Some(answer), proposals)
    }

    /// Asks a method, and says what it was for upstream.
    fn search(
        &mut self,
        method: Method,
        candidates: &[Candidate],
        allowances: &mut [Allowance],
    ) -> (Option<MethodResult>, SearchWork) {
        let before = self.asking.work();
        let found = if candidates.is_empty() { None } else { self.try_method(method, candidates, allowances) };
        (found, self.asking.work().since(before))
    }

    /// What a method comes to that has candidates.
    fn try_method(
        &mut self,
        method: Method,
        candidates: &[Candidate],
        allowances: &mut [Allowance],
    ) -> Option<MethodResult> {
        if matches!(method, Method::Emptiness | Method::EmptyConsolidation) {
            return Some(emptiness(candidates, allowances));
        }
        // Consolidation leaves nodes without pods alone: no packer is needed to find nothing.
        if method != Method::Drift && candidates.iter().all(|candidate| candidate.reschedulable.is_empty()) {
            let constrained = candidates.iter().any(|candidate| allowances[candidate.pool].0 == 0);
            return Some(if constrained { MethodResult::NotNow } else { MethodResult::Nothing });
        }
        let [multi, single] = self.limits;
        let multi_over = |work: SearchWork| multi.is_some_and(|limit| work.time() > limit);
        let single_over = |work: SearchWork| single.is_some_and(|limit| work.time() > limit);
        let what_if = self.asking.about(self.view)?;
        Some(match method {
            Method::MultiNode => multi_node(what_if, candidates, allowances, Some(&multi_over)),
            Method::SingleNode => single_node(what_if, candidates, allowances, self.memory, Some(&single_over)),
            _ => drift(what_if, candidates, allowances).0.map_or(MethodResult::Nothing, MethodResult::Command),
        })
    }
}

/// Puts the count of a reason in its place in the order of [`DisruptionReason::ALL`].
fn count(eligible: &mut [u32; 3], reason: DisruptionReason, nodes: u32) {
    for (_, key) in DisruptionReason::ALL.iter().zip(eligible).filter(|(item, _)| **item == reason) {
        *key = nodes;
    }
}

pub(super) fn proposal(method: Method, command: &Command, nodes: &[NodeId]) -> Proposal {
    Proposal {
        nodes: command.nodes.iter().map(|&node| nodes[node]).collect(),
        replacements: command.replacements.clone(),
        destinations: command.moves.iter().map(|(node, _)| nodes[*node]).collect(),
        end: match method {
            Method::Expiration => NodeEnd::Expired,
            Method::Emptiness | Method::EmptyConsolidation => NodeEnd::Empty,
            Method::Drift | Method::StaticDrift => NodeEnd::Drifted,
            Method::MultiNode | Method::SingleNode => NodeEnd::Underutilized,
        },
    }
}

/// Proposes a command.
pub(super) fn propose(step: &mut Step<'_>, method: Method, proposal: &Proposal) -> CommandId {
    let replacements = proposal.replacements.iter().map(|claim| ProposedNode {
        node_pool: claim.node_pool,
        types: claim.instance_types.len(),
        capacity_types: provisioning::capacity_types(step, claim),
        cheapest: claim
            .instance_types
            .first()
            .and_then(|instance_type| Some((instance_type.name, instance_type.price?))),
    });
    let proposed = ProposedCommand {
        reason: method.reason(),
        method: match method {
            Method::Emptiness | Method::EmptyConsolidation => Some("empty"),
            Method::MultiNode => Some("multi"),
            Method::SingleNode => Some("single"),
            Method::Expiration | Method::Drift | Method::StaticDrift => None,
        },
        waits: method.is_validated(step.karpenter.settings.release),
        nodes: proposal.nodes.clone(),
        replacements: replacements.collect(),
    };
    let id = step.next_command();
    step.act(Action::Propose(id, Box::new(proposed)));
    id
}

//! From a node claim to an instance: the launch request, EC2's answer, and the memory of capacity errors.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/providers/instance/instance.go`, `pkg/cache/unavailableofferings.go`.
//!
//! Deviation: identical requests are not merged into one call. This changes only the number of calls.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::claims::whole;
use super::io::{
    Action, CallRefused, ClaimRequest, Draw, Fact, FleetCall, LaunchAnswer, LaunchedInstance, LaunchedNode, Stage,
    Timer,
};
use super::settings::Provider;
use super::step::Step;
use super::type_lists::TypeLists;
use super::unavailable::OfferingKey;
use super::{Claim, Karpenter, cluster_view, images, pace, reservations, termination};
use crate::instance_types::{capacity_type_key, labels_of_launched, position, volumes_of_new};
use crate::release::FullSubnets;
use crate::selection::price::Terms;
use crate::selection::{LaunchRequest, LaunchView, OpenTypes, SelectionError, select, select_known};
use nodecast_model::cluster::{NodeEnd, NodePhase};
use nodecast_model::domain::words::counted;
use nodecast_model::domain::{NodeClass, NodeId, Requirements, SimDuration, SimTime, Symbol, well_known};

/// Karpenter waits this long for identical requests before it calls.
const MERGE: SimDuration = SimDuration::from_millis(35);
/// The AWS SDK calls so often before it gives the error to its caller.
const SDK_ATTEMPTS: u32 = 3;
/// First wait before another attempt; it doubles up to the longest.
const BACKOFF: SimDuration = SimDuration::from_secs(1);
const BACKOFF_MAX: SimDuration = SimDuration::from_secs(60);
/// A claim whose node has not registered after this time is given up.
const REGISTRATION_TIMEOUT: SimDuration = SimDuration::from_secs(15 * 60);
/// Creating one launch template.
const TEMPLATE: SimDuration = SimDuration::from_millis(300);
/// EC2's code for a subnet without a free address.
const NO_ADDRESSES: &str = "InsufficientFreeAddressesInSubnet";

/// Has a new claim launched; the answer comes later.
pub(super) fn request(step: &mut Step<'_>, now: SimTime, node: NodeId, claim: Claim) {
    let (begins, called) = match step.karpenter.settings.provider {
        Provider::Plain => (now, now),
        Provider::Aws if is_known_unavailable(step, &claim) => {
            // The provider refuses it without a call.
            let begins = pace::launch_begins(step, now);
            step.karpenter.launching.insert(node, claim);
            return step.wake(begins, Timer::Launch(node));
        }
        Provider::Aws => {
            let begins = pace::launch_begins(step, now);
            (begins, templates_ready(step, begins, &claim) + MERGE)
        }
    };
    step.karpenter.launching.insert(node, claim);
    step.act(Action::Launch { claim: node, begins, called });
}

/// Whether none of the claim's types has an offering that is available as far as Karpenter knows. Only claims that are made without
/// regard to availability are refused like that: those of static pools.
fn is_known_unavailable(step: &Step<'_>, claim: &Claim) -> bool {
    let types = &step.karpenter.instance_types[claim.pool];
    let terms = Terms::new(&claim.requirements, capacity_type_key(step.karpenter.settings.release));
    let open =
        |&at: &u32| types[at as usize].offerings.iter().any(|offering| offering.available && terms.allow(offering));
    !claim.types.iter().any(open)
}

/// When the templates of a claim's launch exist. One claim at a time sees to its own, so that others wait while some are made.
///
/// Source: Karpenter AWS provider v1.13 `pkg/providers/launchtemplate/launchtemplate.go`, `EnsureAll`.
fn templates_ready(step: &mut Step<'_>, begins: SimTime, claim: &Claim) -> SimTime {
    let made = new_templates(step, claim);
    let ready = begins.max(step.karpenter.templates_ready) + TEMPLATE * i64::from(made);
    if made > 0 {
        step.karpenter.templates_ready = ready;
    }
    ready
}

/// Launch templates (one for each node class and architecture) that do not exist yet.
fn new_templates(step: &mut Step<'_>, claim: &Claim) -> u32 {
    let class = step.karpenter.pools[claim.pool].node_class;
    let karpenter = &mut *step.karpenter;
    let mut made = 0;
    for architecture in karpenter.instance_types.architectures(claim.pool, &claim.types) {
        if karpenter.launch_templates.insert((class, architecture)) {
            made += 1;
        }
    }
    made
}

/// The provider is about to answer: with what Karpenter asks it by then.
pub(super) fn due(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    match step.karpenter.settings.provider {
        Provider::Aws => call_fleet(step, now, node),
        Provider::Plain => create(step, node),
    }
}

/// Hands a claim to a provider that chooses itself.
fn create(step: &mut Step<'_>, node: NodeId) {
    let karpenter = &*step.karpenter;
    let Some(claim) = karpenter.launching.get(&node) else { return };
    let types = &karpenter.instance_types[claim.pool];
    let request = ClaimRequest {
        node_pool: karpenter.pools[claim.pool].name,
        requirements: Arc::clone(&claim.requirements),
        types: claim.types.iter().map(|&at| types[at as usize].name).collect(),
    };
    step.act(Action::Create(node, Box::new(request)));
}

/// Sends EC2 the launch request of a claim.
fn call_fleet(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    let Some(mut claim) = step.karpenter.launching.remove(&node) else { return };
    let Some(pool) = step.karpenter.pools.get(claim.pool).cloned() else { return };
    if claim.refusals > 0 && now - step.cluster.node(node).created >= step.karpenter.behaviour.launch_timeout {
        let reason = format!("no launch call has succeeded within {}", step.karpenter.behaviour.launch_timeout);
        return termination::give_up(step, now, node, &reason);
    }
    let request = match choose(step, &claim) {
        Ok(request) => request,
        Err(error) => return termination::give_up(step, now, node, &error.to_string()),
    };
    let pools = counted(request.overrides.len() as u64, "pool", "pools");
    let message = format!("{} {} over {pools}", request.capacity_type, request.strategy.as_str());
    step.note_node(node, Fact::LaunchRequested, message);
    let key = capacity_type_key(step.karpenter.settings.release);
    let spot_allowed = claim.requirements.get(key).is_none_or(|requirement| requirement.has(well_known::SPOT));
    if request.capacity_type == well_known::ON_DEMAND && spot_allowed && allows_spot(&pool, key) {
        step.note_node(node, Fact::SpotFallback, "no Spot pool that would do is known to have capacity");
    }
    let class = step.karpenter.settings.node_classes.iter().find(|class| class.name == pool.node_class);
    let call = FleetCall {
        request: request.clone(),
        volumes: class.map_or_else(|| volumes_of_new(&NodeClass::named(pool.node_class)), volumes_of_new),
        uses_open_reservations: !step.karpenter.behaviour.uses_reservations(step.karpenter.settings.flags.gates),
    };
    claim.sent = Some(request);
    step.karpenter.launching.insert(node, claim);
    step.act(Action::CreateFleet(node, Box::new(call)));
}

/// The provider answers: an instance, or errors that are remembered.
pub(super) fn answered(step: &mut Step<'_>, now: SimTime, node: NodeId, answer: Result<&LaunchAnswer, CallRefused>) {
    let Some(mut claim) = step.karpenter.launching.remove(&node) else { return };
    let sent = claim.sent.take();
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return refused(step, now, node, claim, error),
    };
    if let Some(request) = &sent {
        reservations::remember_errors(step, now, request, &answer.errors);
    }
    let tenancy = sent.as_ref().map_or(well_known::DEFAULT, |request| request.tenancy);
    remember_errors(step, now, sent.map(|request| request.capacity_type), answer);
    match answer.instance {
        Some(instance) => launched(step, now, node, instance, (&claim, tenancy)),
        None => {
            let codes: Vec<&str> = answer.errors.iter().take(3).map(|error| error.code).collect();
            let text = match step.karpenter.settings.provider {
                Provider::Plain => "no offering has capacity".to_owned(),
                Provider::Aws => {
                    format!("{}: {}", counted(answer.errors.len() as u64, "error", "errors"), codes.join(", "))
                }
            };
            termination::give_up(step, now, node, &text);
        }
    }
}

/// What claims find open of the types of pools: of types that change it is learnt again.
#[derive(Debug, Default)]
pub(super) struct OpenTypesCache {
    /// The position in the journal of changes as of which it holds.
    seen: u64,
    /// By the pool's position and what its claims ask for.
    known: FxHashMap<(usize, Arc<Requirements>), OpenTypes>,
}

/// Sets of requirements remembered, before all are forgotten.
const KEPT_REQUIREMENTS_MAX: usize = 200;

impl OpenTypesCache {
    /// What is known for such claims of the types as they are now.
    fn open_types(&mut self, types: &TypeLists, pool: usize, requirements: &Arc<Requirements>) -> &mut OpenTypes {
        match types.changed_since(self.seen) {
            Some(changed) if self.known.len() <= KEPT_REQUIREMENTS_MAX => {
                self.known.iter_mut().for_each(|((key, _), open)| {
                    changed.iter().filter(|(pool, _)| pool == key).for_each(|&(_, at)| open.forget(at));
                });
            }
            _ => self.known.clear(),
        }
        self.seen = types.changes_end();
        self.known.entry((pool, Arc::clone(requirements))).or_default()
    }
}

/// The request that Karpenter sends for a claim.
fn choose(step: &mut Step<'_>, claim: &Claim) -> Result<LaunchRequest, SelectionError> {
    let (karpenter, weighs_open_types) = (step.karpenter.settings.release, step.karpenter.behaviour.weighs_open_types);
    let (check, min_values) = (step.cluster.check(), cluster_view::options(step).min_values);
    let Karpenter { instance_types, open_types, .. } = &mut *step.karpenter;
    let Claim { pool, requirements, requests, types, .. } = claim;
    let view = LaunchView { karpenter, requirements, requests, types: &[], min_values };
    let choices = |types: &[u32]| instance_types.choices(*pool, types, requirements);
    if !weighs_open_types {
        return select(&LaunchView { types: &choices(types), ..view });
    }
    let open = open_types.open_types(instance_types, *pool, requirements);
    let mut new: Vec<u32> = types.iter().copied().filter(|&at| !open.knows(at as usize)).collect();
    if !new.is_empty() {
        // In the order in which the choices come.
        new.sort_unstable();
        let terms = Terms::new(requirements, capacity_type_key(karpenter));
        new.iter().zip(choices(&new)).for_each(|(&at, choice)| open.learn(at as usize, &choice, &terms));
    }
    let request = select_known(&view, &instance_types[*pool], types, open);
    if check.compares() {
        let anew = select(&LaunchView { types: &choices(types), ..view });
        check.hold(request == anew, || format!("open types as kept give {request:?}, a look at them {anew:?}"));
    }
    request
}

/// EC2 took no call, or failed: the SDK tries twice more; then current releases try again ever more slowly until the claim is five
/// minutes old (before v1.7 fifteen), older ones give the claim up.
///
/// Source: Karpenter core v1.13 `pkg/controllers/nodeclaim/lifecycle/launch.go` and `liveness.go`; AWS SDK, standard
/// retry mode.
fn refused(step: &mut Step<'_>, now: SimTime, node: NodeId, mut claim: Claim, error: CallRefused) {
    let fact = if error.throttled { Fact::CallThrottled } else { Fact::CallFailed };
    step.note_node(node, fact, error.message.clone());
    if step.karpenter.settings.provider == Provider::Plain {
        return try_again(step, now, node, claim);
    }
    claim.refusals += 1;
    let state = step.cluster.node(node);
    let (age, latest) = (now - state.created, state.created + step.karpenter.behaviour.launch_timeout);
    let by_sdk = !claim.refusals.is_multiple_of(SDK_ATTEMPTS);
    let by_karpenter = step.karpenter.behaviour.retries_launches && age < step.karpenter.behaviour.launch_timeout;
    if !by_sdk && !by_karpenter {
        return termination::give_up(step, now, node, &error.message);
    }
    let exponent = if by_sdk { claim.refusals % SDK_ATTEMPTS - 1 } else { claim.refusals / SDK_ATTEMPTS - 1 };
    let longest = (BACKOFF * i64::from(1_u32 << exponent.min(6))).min(BACKOFF_MAX);
    let wait =
        if by_sdk { step.outside.draw(Draw::Retry(state.name.as_str(), claim.refusals, longest)) } else { longest };
    step.karpenter.launching.insert(node, claim);
    step.wake((now + wait).min(latest).max(now), Timer::Launch(node));
}

/// A provider without an SDK failed: the claim is handed to it again, ever more slowly, until it is too old.
fn try_again(step: &mut Step<'_>, now: SimTime, node: NodeId, mut claim: Claim) {
    if now - whole(step.cluster.node(node).created) >= step.karpenter.behaviour.launch_timeout {
        let reason = format!("the launch failed for {}", step.karpenter.behaviour.launch_timeout);
        return termination::give_up(step, now, node, &reason);
    }
    let again = now + (BACKOFF * i64::from(1_u32 << claim.refusals.min(6))).min(BACKOFF_MAX);
    claim.refusals += 1;
    step.karpenter.launching.insert(node, claim);
    step.act(Action::Launch { claim: node, begins: again, called: again });
}

/// An instance was launched for a claim, with this tenancy.
fn launched(
    step: &mut Step<'_>,
    now: SimTime,
    node: NodeId,
    instance: LaunchedInstance,
    (claim, tenancy): (&Claim, Symbol),
) {
    let types = &step.karpenter.instance_types[claim.pool];
    let Some(kind) = position(types, instance.instance_type).map(|place| &types[place]) else { return };
    let mut labels = labels_of_launched(kind, instance.zone, instance.capacity_type, tenancy);
    let capacity_type = if instance.reservation.is_some() { well_known::RESERVED } else { instance.capacity_type };
    let (capacity, allocatable) = (kind.capacity.clone(), kind.allocatable.clone());
    let on_aws = step.karpenter.settings.provider == Provider::Aws;
    if on_aws {
        reservations::label(&mut labels, instance.reservation, reservations::is_block(step, instance.reservation));
    }
    let image_for = if on_aws { images::launched(step, node) } else { None };
    let launched = LaunchedNode { instance, capacity_type, labels, capacity, allocatable, image_for };
    step.act(Action::Launched(node, Box::new(launched)));
    if step.karpenter.behaviour.awaits_registration {
        let latest = (whole(step.cluster.node(node).created) + REGISTRATION_TIMEOUT).max(now);
        step.wake(latest, Timer::RegistrationOverdue(node));
    }
    step.next(Stage::Launched(node));
}

/// A node should have registered by now: if it has not, its claim is given up and its instance terminated. There is no limit
/// on what comes after.
///
/// Source: Karpenter core v1.13 `pkg/controllers/nodeclaim/lifecycle/liveness.go`.
/// Deviation: the fifteen minutes to register count from the claim's creation. Releases before v1 wait without a
/// limit.
pub(super) fn registration_overdue(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    let state = step.cluster.node(node);
    if state.phase == NodePhase::Launched && state.deletion_requested.is_none() {
        let reason = format!("the node has not registered within {REGISTRATION_TIMEOUT}");
        termination::begin(step, now, node, NodeEnd::NotRegistered, &reason);
    }
}

/// Whether a NodePool says that its nodes may be Spot: without a word on it they are On-Demand.
fn allows_spot(pool: &nodecast_model::domain::NodePool, key: Symbol) -> bool {
    let stated = |requirement: &&nodecast_model::domain::Requirement| requirement.key == key;
    pool.requirements.iter().find(stated).is_some_and(|requirement| requirement.has(well_known::SPOT))
}

/// Every pool that could not deliver is avoided for a while, even when another one did.
fn remember_errors(step: &mut Step<'_>, now: SimTime, capacity_type: Option<Symbol>, answer: &LaunchAnswer) {
    let Some(memory) = step.karpenter.behaviour.avoids_for else { return };
    let until = now + memory;
    for error in &answer.errors {
        let whole_zone = match (step.karpenter.behaviour.full_subnets, error.code == NO_ADDRESSES) {
            (FullSubnets::Forgotten, true) => continue,
            (FullSubnets::OfZone, true) => true,
            _ => false,
        };
        if whole_zone {
            avoid_zone(step, error.zone, until);
        } else if let Some(capacity_type) = error.capacity_type.or(capacity_type) {
            step.karpenter.unavailable.insert((error.instance_type, error.zone, capacity_type), until);
        }
    }
}

/// No subnet of a zone has an address left: everything there is avoided.
///
/// Deviation: from v1.13, Karpenter caches each full subnet separately, and the zone when all its subnets are full.
/// Here EC2 reports only when all are full.
fn avoid_zone(step: &mut Step<'_>, zone: Symbol, until: SimTime) {
    let types = step.karpenter.instance_types.iter().flat_map(|types| types.iter());
    let there = types
        .flat_map(|instance_type| instance_type.offerings.iter().map(move |offering| (instance_type.name, offering)));
    let keys: BTreeSet<OfferingKey> = there
        .filter(|(_, offering)| offering.zone == zone)
        .map(|(name, offering)| (name, zone, offering.capacity_type))
        .collect();
    for key in keys {
        step.karpenter.unavailable.insert(key, until);
    }
}

//! From a node claim to an instance: the launch request, EC2's answer, and the memory of capacity errors.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/providers/instance/instance.go`, `pkg/cache/unavailableofferings.go`.
//!
//! Deviation: identical requests are not merged into one call; only the number of calls depends on it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::claims::whole;
use super::type_lists::TypeLists;
use super::{Claim, Karpenter, images, pace, reservations, termination};
use crate::actors::context::{Context, Machine};
use crate::actors::event::{Event, class};
use crate::actors::{interruption, node_life, replay};
use crate::cloud::{BootStages, CallError, CloudProvider, FleetOverride, FleetReply, FleetRequest, Pool};
use crate::cluster::NodePhase;
use crate::domain::words::counted;
use crate::domain::{KarpenterVersion, NodeClass, NodeId, Requirements, SimDuration, SimTime, Symbol, well_known};
use crate::policy::instance_types::{capacity_type_key, position};
use crate::policy::packing::MinValuesPolicy;
use crate::policy::selection::price::Terms;
use crate::policy::selection::{LaunchRequest, LaunchView, OpenTypes, SelectionError, select, select_known};
use crate::world::record::{EventKind, NodeEnd};

/// Karpenter waits this long for identical requests before it calls.
const MERGE: SimDuration = SimDuration::from_millis(35);
/// The AWS SDK calls so often before it gives the error to its caller.
const SDK_ATTEMPTS: u32 = 3;
/// First wait before another attempt; it doubles up to the longest.
const BACKOFF: SimDuration = SimDuration::from_secs(1);
const BACKOFF_MAX: SimDuration = SimDuration::from_secs(60);
/// A claim that has no instance after this time is given up.
const LAUNCH_TIMEOUT: SimDuration = SimDuration::from_secs(300);
/// A claim whose node has not registered after this time is given up.
const REGISTRATION_TIMEOUT: SimDuration = SimDuration::from_secs(15 * 60);
/// Creating one launch template.
const TEMPLATE: SimDuration = SimDuration::from_millis(300);

/// Sends the launch request of a new claim; the answer comes later.
pub(super) fn request(context: &mut Context<'_>, now: SimTime, node: NodeId, claim: Claim) {
    if context.replay.is_some() {
        context.karpenter.launching.insert(node, claim);
        replay::request_launch(context, node);
        return;
    }
    let begins = pace::launch_begins(context, now);
    let call = context.ec2.next_fleet_call_time(1, begins);
    let called = templates_ready(context, begins, &claim) + MERGE;
    context.karpenter.launching.insert(node, claim);
    let answered = called + call;
    context.queue.schedule(answered, class::NODE_AUTOSCALER, Event::FleetAnswered(node));
}

/// When the templates of a claim's launch exist. One claim at a time sees to its own, so that others wait while some are made.
///
/// Source: Karpenter AWS provider v1.13 `pkg/providers/launchtemplate/launchtemplate.go`, `EnsureAll`.
fn templates_ready(context: &mut Context<'_>, begins: SimTime, claim: &Claim) -> SimTime {
    let made = new_templates(context, claim);
    let ready = begins.max(context.karpenter.templates_ready) + TEMPLATE * i64::from(made);
    if made > 0 {
        context.karpenter.templates_ready = ready;
    }
    ready
}

/// Launch templates (one for each node class and architecture) that do not exist yet.
fn new_templates(context: &mut Context<'_>, claim: &Claim) -> u32 {
    let class = context.karpenter.pools[claim.pool].node_class;
    let karpenter = &mut context.karpenter;
    let mut made = 0;
    for architecture in karpenter.instance_types.architectures(claim.pool, &claim.types) {
        if karpenter.launch_templates.insert((class, architecture)) {
            made += 1;
        }
    }
    made
}

/// EC2 answers: an instance, or errors that are remembered.
pub(in crate::actors) fn fleet_answered(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    if context.replay.is_some() {
        replay::answer_launch(context, now, node);
        return;
    }
    let Some(claim) = context.karpenter.launching.remove(&node) else { return };
    let Some(pool) = context.karpenter.pools.get(claim.pool).cloned() else { return };
    if claim.refusals > 0 && now - context.world.node(node).created >= LAUNCH_TIMEOUT {
        termination::give_up(context, now, node, "no launch call has succeeded within five minutes");
        return;
    }
    let request = match choose(context, &claim) {
        Ok(request) => request,
        Err(error) => {
            termination::give_up(context, now, node, &error.to_string());
            return;
        }
    };
    let pools = counted(request.overrides.len() as u64, "pool", "pools");
    let message = format!("{} {} over {pools}", request.capacity_type, request.strategy.as_str());
    context.world.note_node(node, now, EventKind::LaunchRequested, &message);
    let key = capacity_type_key(context.setup.versions.karpenter);
    let spot_allowed = claim.requirements.get(key).is_none_or(|requirement| requirement.has(well_known::SPOT));
    if request.capacity_type == well_known::ON_DEMAND && spot_allowed && allows_spot(&pool, key) {
        context.world.note_node(
            node,
            now,
            EventKind::SpotFallback,
            "no Spot pool that would do is known to have capacity",
        );
    }
    let class = context.setup.node_classes.iter().find(|class| class.name == pool.node_class);
    let volume = class.map_or(20, volume_gib);
    node_life::count_addresses(context);
    let answer = if request.capacity_type == well_known::RESERVED {
        reservations::launch(context, now, &request, node, volume)
    } else {
        let how = reservations::preference(context.setup.versions.karpenter);
        context.cloud().create_fleet_using(&fleet_request(&request), how, &[node], volume, now)
    };
    let reply = match answer {
        Ok(reply) => reply,
        Err(error) => {
            refused(context, now, node, claim, error);
            return;
        }
    };
    remember_errors(context, now, request.capacity_type, &reply);
    let Some(&instance) = reply.instances.first() else {
        let codes: Vec<&str> = reply.errors.iter().take(3).map(|error| error.code.as_str()).collect();
        termination::give_up(
            context,
            now,
            node,
            &format!("{}: {}", counted(reply.errors.len() as u64, "error", "errors"), codes.join(", ")),
        );
        return;
    };
    launched(context, now, node, instance, &claim, class);
}

/// What claims find open of the types of pools: of types that change it is learnt again.
#[derive(Debug, Default)]
pub(super) struct KeptOpenTypes {
    /// The position in the journal of changes as of which it holds.
    seen: u64,
    /// By the pool's position and what its claims ask for.
    known: FxHashMap<(usize, Arc<Requirements>), OpenTypes>,
}

/// Sets of requirements remembered, before all are forgotten.
const KEPT_REQUIREMENTS_MAX: usize = 200;

impl KeptOpenTypes {
    /// What is known for such claims of the types as they are now.
    fn of(&mut self, types: &TypeLists, pool: usize, requirements: &Arc<Requirements>) -> &mut OpenTypes {
        match types.changed_since(self.seen) {
            Some(changed) if self.known.len() <= KEPT_REQUIREMENTS_MAX => {
                self.known.iter_mut().for_each(|((own, _), open)| {
                    changed.iter().filter(|(pool, _)| pool == own).for_each(|&(_, at)| open.forget(at));
                });
            }
            _ => self.known.clear(),
        }
        self.seen = types.changes_end();
        self.known.entry((pool, Arc::clone(requirements))).or_default()
    }
}

/// The request that Karpenter sends for a claim.
fn choose(context: &mut Context<'_>, claim: &Claim) -> Result<LaunchRequest, SelectionError> {
    let karpenter = context.setup.versions.karpenter;
    let Karpenter { instance_types, open_types, .. } = &mut context.karpenter;
    let Claim { pool, requirements, requests, types, .. } = claim;
    let view = LaunchView { karpenter, requirements, requests, types: &[], min_values: MinValuesPolicy::Strict };
    let choices = |types: &[u32]| instance_types.choices(*pool, types, requirements);
    if karpenter < KarpenterVersion::V1_13 {
        return select(&LaunchView { types: &choices(types), ..view });
    }
    let open = open_types.of(instance_types, *pool, requirements);
    let mut new: Vec<u32> = types.iter().copied().filter(|&at| !open.knows(at as usize)).collect();
    if !new.is_empty() {
        // In the order in which the choices come.
        new.sort_unstable();
        let terms = Terms::new(requirements, capacity_type_key(karpenter));
        new.iter().zip(choices(&new)).for_each(|(&at, choice)| open.learn(at as usize, &choice, &terms));
    }
    let request = select_known(&view, &instance_types[*pool], types, open);
    if cfg!(debug_assertions) {
        let anew = select(&LaunchView { types: &choices(types), ..view });
        assert_eq!(request, anew, "what is kept of open types is not what a look at them finds");
    }
    request
}

/// EC2 took no call, or failed: the SDK tries twice more; then current releases try again ever more slowly until the claim is five
/// minutes old, older ones give the claim up.
///
/// Source: Karpenter core v1.13 `pkg/controllers/nodeclaim/lifecycle/launch.go` and `liveness.go`; AWS SDK, standard
/// retry mode.
fn refused(context: &mut Context<'_>, now: SimTime, node: NodeId, mut claim: Claim, error: CallError) {
    let kind = if matches!(error, CallError::Throttled(_)) { EventKind::CallThrottled } else { EventKind::CallFailed };
    context.world.note_node(node, now, kind, &error.to_string());
    claim.refusals += 1;
    let age = now - context.world.node(node).created;
    let by_sdk = !claim.refusals.is_multiple_of(SDK_ATTEMPTS);
    let by_karpenter = context.setup.versions.karpenter >= KarpenterVersion::V0_22 && age < LAUNCH_TIMEOUT;
    if !by_sdk && !by_karpenter {
        termination::give_up(context, now, node, &error.to_string());
        return;
    }
    let exponent = if by_sdk { claim.refusals % SDK_ATTEMPTS - 1 } else { claim.refusals / SDK_ATTEMPTS - 1 };
    let longest = (BACKOFF * i64::from(1_u32 << exponent.min(6))).min(BACKOFF_MAX);
    let name = context.world.node(node).name;
    let wait = if by_sdk {
        context.streams.nth("api-retry", name.as_str(), u64::from(claim.refusals)).span_up_to(longest)
    } else {
        longest
    };
    context.karpenter.launching.insert(node, claim);
    let again = (now + wait).min(context.world.node(node).created + LAUNCH_TIMEOUT).max(now);
    context.queue.schedule(again, class::NODE_AUTOSCALER, Event::FleetAnswered(node));
}

fn launched(
    context: &mut Context<'_>,
    now: SimTime,
    node: NodeId,
    instance: crate::cloud::InstanceId,
    claim: &Claim,
    class: Option<&NodeClass>,
) {
    let chosen = context.ec2.instance(instance).pool;
    let types = &context.karpenter.instance_types[claim.pool];
    let Some(kind) = position(types, chosen.instance_type).map(|place| &types[place]) else { return };
    // A label goes on the node only where the type has one value for it.
    let mut labels: crate::domain::Labels = kind
        .requirements
        .iter()
        .filter(|requirement| !requirement.complement && requirement.values.len() == 1)
        .filter_map(|requirement| requirement.values.first().map(|&value| (requirement.key, value)))
        .collect();
    labels.set(well_known::CAPACITY_TYPE, chosen.capacity_type);
    let reserved = context.ec2.targeted_reservation(instance);
    reservations::label(&mut labels, reserved);
    let chosen = match reserved {
        Some(_) => Pool { capacity_type: well_known::RESERVED, ..chosen },
        None => chosen,
    };
    let rate = context.ec2.instance(instance).rate;
    let facts =
        node_life::launch_facts(context, (chosen, rate), labels, kind.capacity.clone(), kind.allocatable.clone());
    context.world.launch_node(node, &facts, now);
    images::launched(context, node);
    let family = class.map_or(crate::domain::node_pool::AmiFamily::AL2023, |class| class.ami_family);
    let stages = context.setup.boot.unwrap_or_else(|| BootStages::of(family));
    let boot = context.ec2.boot(instance, &stages);
    node_life::launched(context, now, node, Machine { instance, boot });
    if context.setup.versions.karpenter >= KarpenterVersion::V1_13 {
        expect_registration(context, now, node);
    }
    interruption::launched(context, now, chosen);
    super::claim_launched(context, now, node);
}

/// Has Karpenter look whether the node has registered when its time for that is over.
pub(in crate::actors) fn expect_registration(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let latest = (whole(context.world.node(node).created) + REGISTRATION_TIMEOUT).max(now);
    context.queue.schedule(latest, class::NODE_AUTOSCALER, Event::RegistrationOverdue(node));
}

/// A launch failed for another reason than a lack of capacity: how long Karpenter waits before the next try, the n-th from
/// zero on; `None` if the claim is too old for another.
pub(in crate::actors) fn next_try(
    context: &Context<'_>,
    now: SimTime,
    node: NodeId,
    tries: u32,
) -> Option<SimDuration> {
    let age = now - whole(context.world.node(node).created);
    (age < LAUNCH_TIMEOUT).then(|| (BACKOFF * i64::from(1_u32 << tries.min(6))).min(BACKOFF_MAX))
}

/// A node should have registered by now: if it has not, its claim is given up and its instance terminated. There is no limit
/// on what comes after.
///
/// Source: Karpenter core v1.13 `pkg/controllers/nodeclaim/lifecycle/liveness.go`.
/// Deviation: the fifteen minutes to register count from the claim's creation; releases before v1 wait for ever.
pub(in crate::actors) fn registration_overdue(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let state = context.world.node(node);
    if state.phase == NodePhase::Launched && state.deletion_requested.is_none() {
        let reason = format!("the node has not registered within {REGISTRATION_TIMEOUT}");
        termination::begin(context, now, node, NodeEnd::NotRegistered, &reason);
    }
}

/// Whether a NodePool says that its nodes may be Spot: without a word on it they are On-Demand.
fn allows_spot(pool: &crate::domain::NodePool, key: Symbol) -> bool {
    let stated = |requirement: &&crate::domain::Requirement| requirement.key == key;
    pool.requirements.iter().find(stated).is_some_and(|requirement| requirement.has(well_known::SPOT))
}

fn fleet_request(request: &LaunchRequest) -> FleetRequest {
    let overrides = request
        .overrides
        .iter()
        .map(|wanted| FleetOverride {
            instance_type: wanted.instance_type,
            zone: wanted.zone,
            priority: wanted.priority,
        })
        .collect();
    FleetRequest {
        capacity_type: request.capacity_type,
        strategy: request.strategy,
        pools_to_use: 1,
        target: 1,
        overrides,
    }
}

/// Every pool that could not deliver is avoided for a while, even when another one did.
fn remember_errors(context: &mut Context<'_>, now: SimTime, capacity_type: Symbol, reply: &FleetReply) {
    let memory = match context.setup.versions.karpenter {
        KarpenterVersion::V0_4 => return,
        KarpenterVersion::V0_6 => SimDuration::from_secs(45),
        _ => SimDuration::from_secs(180),
    };
    for error in &reply.errors {
        context.karpenter.unavailable.insert((error.instance_type, error.zone, capacity_type), now + memory);
    }
}

/// Size of the volumes that a node of this class gets, in GiB: those it states, else the default of 20.
fn volume_gib(class: &NodeClass) -> i64 {
    if class.block_devices.is_empty() {
        return 20;
    }
    class.block_devices.iter().map(|device| device.size_bytes.div_euclid(1 << 30)).sum()
}

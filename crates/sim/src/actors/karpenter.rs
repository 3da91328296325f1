//! Karpenter in the simulation: what happens is told to the machine ([`nodecast_karpenter::machine`]), and what it does about it is
//! carried out here, action by action.
//!
//! What must not live here: anything that Karpenter decides or remembers.

pub(super) mod inquiry;
mod launches;
mod outside;

use super::actor_events::ActorEvent;
use super::event::{KarpenterEvent, class};
use super::node_templates::NodeTemplates;
use super::scheduler_loop::SchedulerLoop;
use super::setup::{Autoscaler, KarpenterSettings, Setup};
use super::sim::Sim;
use super::volumes::Volumes;
use super::{eviction, kubelet, names, node_life};
use crate::cluster::{NodeOrigin, NodePhase};
use crate::control_plane::call_limit::CallLimit;
use crate::domain::{
    HourlyRate, Labels, NodeClass, NodeId, NodeOverlay, NodePool, SimDuration, SimTime, Symbol, well_known,
};
use crate::engine::{PriorityClass, TimerId};
use crate::world::record::ClaimFacts;
use nodecast_karpenter::disruption::ConditionStatus;
use nodecast_karpenter::instance_types::{
    InstanceType, KnownReservation, Offering, add_reservations, lay_overlays, types_of_pools,
};
use nodecast_karpenter::interruption::Notice;
use nodecast_karpenter::machine::{
    Action, Buffer, Fact, ImageReleases, Input, Karpenter, NewClaim, Provider, Settings, Ties, Timer, Written,
    uses_reservations,
};
use nodecast_karpenter::packing::DefaultSpread;

/// Time from the notice of an interruption to Karpenter reading it: median in seconds and spread; and the share of notices that
/// get lost.
const DELIVERY: (f64, f64) = (1.5, 0.7);
const LOST: f64 = 0.001;

/// The machine and what its driver has to remember; nothing where another autoscaler runs.
#[derive(Debug, Default)]
pub(super) struct Driver {
    /// Absent while it takes a step, too: what happens meanwhile is carried out before the next.
    machine: Option<Box<Karpenter>>,
    /// The end of the batching window on the queue.
    window: Option<TimerId>,
}

/// The driver, with what Karpenter's actions change and what it reads.
#[derive(Debug)]
pub(super) struct Running<'a, 's> {
    pub(super) sim: &'a mut Sim<'s>,
    pub(super) driver: &'a mut Driver,
    pub(super) node_templates: &'a mut NodeTemplates,
    pub(super) scheduler: &'a SchedulerLoop,
    pub(super) volumes: &'a Volumes,
}

impl Driver {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        let Autoscaler::Karpenter(flags) = setup.autoscaler else { return Self::default() };
        let machine = Karpenter::new(settings(setup, flags), setup.node_pools.clone(), instance_types(setup));
        Self { machine: Some(Box::new(machine)), window: None }
    }

    /// The limit of its client, where calls take time.
    pub(super) fn call_limit(&self) -> Option<&CallLimit> {
        self.machine.as_ref()?.call_limit()
    }

    /// Nodes that the disruption loop last found it may take, in the order of `DisruptionReason::ALL`.
    pub(super) fn eligible(&self) -> [u32; 3] {
        self.machine.as_ref().map_or([0; 3], |machine| machine.eligible())
    }

    /// The machine, for those who ask what it remembers.
    pub(super) fn machine(&self) -> Option<&Karpenter> {
        self.machine.as_deref()
    }
}

fn settings(setup: &Setup<'_>, flags: KarpenterSettings) -> Settings {
    let services = setup.policy.manifests.services.iter();
    Settings {
        release: setup.policy.versions.karpenter,
        kubernetes: setup.policy.versions.kubernetes,
        flags,
        node_classes: setup.node_classes.clone(),
        namespaces: setup.namespaces().collect(),
        reservations: !setup.scenario.ec2.cloud.reservations.is_empty(),
        provider: Provider::Aws,
        ties: Ties::Seeded(setup.seed),
        time: setup.policy.controller_time.karpenter,
        epoch: setup.scenario.start.as_second(),
        begins: SimTime::ZERO,
        buffers: setup.buffers.clone(),
        images: images(setup),
        default_spread: DefaultSpread {
            constraints: setup.policy.default_spread.clone(),
            services: services.map(|service| (service.name.namespace, service.selector.clone())).collect(),
        },
    }
}

/// When images come out: EKS Auto Mode has a day for it, others what is stated.
fn images(setup: &Setup<'_>) -> Option<ImageReleases> {
    const WEDNESDAY: i64 = 2;
    let stated = setup.policy.karpenter_options.image_release_every;
    let of_auto_mode = setup.policy.auto_mode.as_ref().map(|auto_mode| auto_mode.images);
    of_auto_mode.or(stated.map(|every| ImageReleases::weekly(every, WEDNESDAY)))
}

/// The instance types of each NodePool, with an offering for each reservation that its class selects.
fn instance_types(setup: &Setup<'_>) -> Vec<Vec<InstanceType>> {
    types_of(setup, &setup.node_pools, &setup.node_classes, &setup.node_overlays)
}

fn types_of(
    setup: &Setup<'_>,
    pools: &[NodePool],
    classes: &[NodeClass],
    overlays: &[NodeOverlay],
) -> Vec<Vec<InstanceType>> {
    let provider = setup.policy.provider_settings();
    let mut types = types_of_pools(&setup.price_list, &setup.region, classes, pools, provider);
    if uses_reservations(provider.version, setup.policy.feature_gates) {
        add_known_reservations(setup, (pools, classes), &mut types);
    }
    lay_overlays(setup.policy.versions.karpenter, overlays, pools, &mut types);
    types
}

fn add_known_reservations(
    setup: &Setup<'_>,
    (pools, classes): (&[NodePool], &[NodeClass]),
    types: &mut [Vec<InstanceType>],
) {
    let price = |name: Symbol| {
        let listed = setup.price_list.instance_type(name).and_then(|kind| kind.karpenter_price());
        listed.unwrap_or(HourlyRate::ZERO)
    };
    let known: Vec<KnownReservation<'_>> = setup
        .scenario
        .ec2
        .cloud
        .reservations
        .iter()
        .map(|reservation| KnownReservation {
            id: reservation.id,
            instance_type: reservation.instance_type,
            zone: reservation.zone,
            zone_id: setup.region.zone_index(reservation.zone).map(|zone| setup.region.zones[zone].id),
            open: reservation.open,
            block_ends: reservation.until.filter(|_| reservation.block),
            tags: &reservation.tags,
            on_demand: price(reservation.instance_type),
        })
        .collect();
    for (pool, types) in pools.iter().zip(types) {
        if let Some(class) = classes.iter().find(|class| class.name == pool.node_class) {
            add_reservations(types, class, &known);
        }
    }
}

/// Karpenter starts.
pub(super) fn begin(parts: &mut Running<'_, '_>) {
    tell(parts, SimTime::ZERO, Input::Begin);
    await_ends(parts);
}

/// Between two looks at what EC2 says of the capacity type of instances.
///
/// Source: Karpenter AWS provider v1.13 `pkg/controllers/capacityreservation/capacitytype/controller.go`, `Reconcile`.
const TYPES_READ_EVERY: SimDuration = SimDuration::from_secs(60);

/// Puts on the queue when it sees that reservations have ended. EC2 takes back the instances of Capacity Blocks before that.
fn await_ends(parts: &mut Running<'_, '_>) {
    let policy = parts.sim.setup.policy;
    if !uses_reservations(policy.versions.karpenter, policy.feature_gates) {
        return;
    }
    for reservation in parts.sim.setup.scenario.ec2.cloud.reservations.iter().filter(|reservation| !reservation.block) {
        if let Some(until) = reservation.until.filter(|&until| until >= SimTime::ZERO) {
            let late =
                parts.sim.streams.stream("reservation-end", reservation.id.as_str()).span_up_to(TYPES_READ_EVERY);
            parts.sim.queue.schedule(
                until + late,
                class::NODE_AUTOSCALER,
                KarpenterEvent::ReservationEnded(reservation.id),
            );
        }
    }
}

/// A node is there that was launched before the run began.
pub(super) fn take_up_node(parts: &mut Running<'_, '_>, now: SimTime, node: NodeId, written: Written, deleting: bool) {
    tell(parts, now, Input::Adopt(node, written));
    if let Some(kind) = parts.sim.world.node(node).labels.get(well_known::INSTANCE_TYPE) {
        tell(parts, now, Input::NodeRegistered(node, kind));
    }
    if deleting {
        tell(parts, now, Input::ClaimDeleted(node));
    }
}

/// A NodePool has changed.
pub(super) fn replace_pool(parts: &mut Running<'_, '_>, now: SimTime, pool: &NodePool) {
    let before = parts.node_templates.of_pool(pool.name);
    parts.node_templates.replace_pool(pool);
    let overlaid = !parts.node_templates.overlays().is_empty();
    let others =
        before.is_none_or(|(before, _)| (before.node_class, &before.kubelet) != (pool.node_class, &pool.kubelet));
    if others || overlaid {
        replace_types(parts, now, types_now(parts, vec![pool.name]));
    }
    tell(parts, now, Input::PoolReplaced(Box::new(pool.clone())));
}

/// A node class has changed, or is new.
pub(super) fn replace_class(parts: &mut Running<'_, '_>, now: SimTime, class: &NodeClass) {
    parts.node_templates.replace_class(class);
    let pools = parts.node_templates.pools_of(class.name);
    let types = types_now(parts, pools);
    tell(parts, now, Input::ClassReplaced(Box::new(class.clone()), types));
    read_prices_again(parts);
}

/// NodeOverlays have changed.
pub(super) fn replace_overlays(parts: &mut Running<'_, '_>, now: SimTime, overlays: &[NodeOverlay]) {
    parts.node_templates.replace_overlays(overlays);
    let pools = parts.node_templates.all().into_iter().map(|(pool, _)| pool.name).collect();
    replace_types(parts, now, types_now(parts, pools));
    tell(parts, now, Input::Changed);
}

/// CapacityBuffers have changed.
pub(super) fn replace_buffers(parts: &mut Running<'_, '_>, now: SimTime, buffers: &[Buffer]) {
    tell(parts, now, Input::BuffersReplaced(buffers.to_vec()));
}

/// Namespaces are labelled otherwise.
pub(super) fn replace_namespaces(parts: &mut Running<'_, '_>, now: SimTime, all: Vec<(Symbol, Labels)>) {
    tell(parts, now, Input::NamespacesReplaced(all));
}

fn replace_types(parts: &mut Running<'_, '_>, now: SimTime, types: Vec<(Symbol, Vec<InstanceType>)>) {
    for (pool, types) in types {
        tell(parts, now, Input::TypesReplaced(pool, types));
    }
    read_prices_again(parts);
}

/// The instance types of these pools as they and their classes are now; of all pools where overlays lie over them, of which those of one
/// pool may count or not because of another.
fn types_now(parts: &Running<'_, '_>, pools: Vec<Symbol>) -> Vec<(Symbol, Vec<InstanceType>)> {
    let overlays = parts.node_templates.overlays();
    let templates = match overlays {
        [] => pools.into_iter().filter_map(|pool| parts.node_templates.of_pool(pool)).collect(),
        _ => parts.node_templates.all(),
    };
    let pools: Vec<NodePool> = templates.iter().map(|(pool, _)| NodePool::clone(pool)).collect();
    let classes: Vec<NodeClass> = templates.iter().map(|(_, class)| NodeClass::clone(class)).collect();
    let types = types_of(parts.sim.setup, &pools, &classes, overlays);
    pools.iter().map(|pool| pool.name).zip(types).collect()
}

/// Karpenter knows the prices of all types, also of those that no pool had when it last read them.
fn read_prices_again(parts: &mut Running<'_, '_>) {
    let Some(mut machine) = parts.driver.machine.take() else { return };
    if let Some(as_of) = machine.prices_read() {
        machine.read_prices(as_of, |name, offering| price(parts, as_of, name, offering));
    }
    parts.driver.machine = Some(machine);
}

/// A NodePool is deleted.
pub(super) fn delete_pool(parts: &mut Running<'_, '_>, now: SimTime, name: Symbol) {
    tell(parts, now, Input::PoolDeleted(name));
}

/// A NodeClaim is deleted, or its node.
pub(super) fn delete_claim(parts: &mut Running<'_, '_>, now: SimTime, node: NodeId) {
    tell(parts, now, Input::ClaimDeleted(node));
}

/// Tells the machine something, and carries out what it does about it.
pub(super) fn tell(parts: &mut Running<'_, '_>, now: SimTime, input: Input<'_>) {
    let actions = with_machine(parts, now, |machine, parts| machine.step(now, &parts.sim.world, parts, input));
    for action in actions.unwrap_or_default() {
        carry_out(parts, now, action);
    }
}

/// Hands over the machine, with prices as of the last time that it reads them, and the rest of the simulation.
fn with_machine<R>(
    parts: &mut Running<'_, '_>,
    now: SimTime,
    ask: impl FnOnce(&mut Karpenter, &Running<'_, '_>) -> R,
) -> Option<R> {
    let mut machine = parts.driver.machine.take()?;
    if let Some(as_of) = machine.prices_due(now) {
        machine.read_prices(as_of, |name, offering| price(parts, as_of, name, offering));
    }
    let answer = ask(&mut machine, parts);
    parts.driver.machine = Some(machine);
    Some(answer)
}

/// The price that Karpenter reads: On-Demand as its release has it listed, where it is to be had at all.
fn price(parts: &mut Running<'_, '_>, as_of: SimTime, name: Symbol, offering: &Offering) -> Option<HourlyRate> {
    let pool = crate::cloud::Pool { instance_type: name, zone: offering.zone, capacity_type: offering.capacity_type };
    let (rate, _) = parts.sim.ec2.market().price(pool, as_of)?;
    if offering.capacity_type != well_known::ON_DEMAND {
        return Some(rate);
    }
    parts.sim.setup.price_list.instance_type(name)?.karpenter_price()
}

fn carry_out(parts: &mut Running<'_, '_>, now: SimTime, action: Action) {
    let action = match action {
        Action::Note(subject, Fact::LaunchFailed, text) => {
            Action::Note(subject, Fact::LaunchFailed, parts.sim.with_fleet_use(text))
        }
        Action::FailLaunch(node, text) => Action::FailLaunch(node, parts.sim.with_fleet_use(text)),
        other => other,
    };
    let Some(action) = parts.sim.world.carry_out(action, now, parts.sim.setup.region.currency) else { return };
    match action {
        Action::Wake(at, timer) => wake(parts, at, timer),
        Action::Next(stage) => tell(parts, now, Input::Next(stage)),
        Action::CreateClaim(claim) => create_claim(parts, now, *claim),
        Action::Launch { claim, begins, called } => launches::begin(parts, claim, begins, called),
        Action::CreateFleet(node, call) => launches::create_fleet(parts, now, node, &call),
        Action::Launched(node, launched) => launches::launched(parts.sim, parts.node_templates, now, node, *launched),
        Action::Taint(node, taint) => {
            parts.sim.world.taint_node(node, taint);
            parts.sim.publish(ActorEvent::NodeTainted(node));
        }
        Action::Untaint(node, key) => {
            parts.sim.world.untaint_node(node, key);
            parts.sim.publish(ActorEvent::NodeTainted(node));
        }
        Action::Initialize(node) => {
            parts.sim.world.initialize_node(node, now);
            parts.sim.publish(ActorEvent::NodeTainted(node));
        }
        Action::Relabel(node, labels) => {
            parts.sim.world.relabel_node(node, *labels);
            if parts.sim.world.node(node).phase == NodePhase::Registered {
                parts.sim.publish(ActorEvent::NodeRelabelled(node));
            }
        }
        Action::Evict(pod) => {
            let allowed = eviction::evict(parts.sim, now, pod, "its node is being removed");
            tell(parts, now, Input::EvictionAnswered(pod, allowed));
        }
        Action::DeletePod(pod, grace) => {
            kubelet::delete_within(parts.sim, now, pod, grace, true, "its node must be gone soon");
        }
        Action::Terminate(node) => node_life::terminate(parts.sim, node),
        Action::Remove { node, unannounced } => {
            if unannounced {
                parts.sim.world.terminate_instance(node, now);
            }
            node_life::remove(parts.sim, now, node);
        }
        other => unreachable!("{other:?} is none of a simulation, whose provider is AWS"),
    }
}

/// Puts a timer on the queue; that of the batching window takes the place of the one before.
fn wake(parts: &mut Running<'_, '_>, at: SimTime, timer: Timer) {
    let set = parts.sim.queue.schedule(at, class_of(timer), KarpenterEvent::Timer(timer));
    if timer == Timer::BatchClosed
        && let Some(before) = parts.driver.window.replace(set)
    {
        parts.sim.queue.cancel(before);
    }
}

const fn class_of(timer: Timer) -> PriorityClass {
    match timer {
        Timer::BatchClosed => class::BATCH,
        Timer::DisruptionPass | Timer::DisruptionConcluded | Timer::DisruptionValidation => class::DISRUPTION,
        _ => class::NODE_AUTOSCALER,
    }
}

/// Lets one event happen.
pub(super) fn handle(parts: &mut Running<'_, '_>, now: SimTime, event: KarpenterEvent) {
    match event {
        KarpenterEvent::Timer(timer) => {
            if timer == Timer::BatchClosed {
                parts.driver.window = None;
            }
            tell(parts, now, Input::Wake(timer));
        }
        KarpenterEvent::InterruptionMessage(node) => {
            tell(parts, now, Input::Notice(node, Notice::SpotInterruption));
        }
        KarpenterEvent::ReservationEnded(id) => tell(parts, now, Input::ReservationEnded(id)),
    }
}

/// Tells the machine what is seen of the cluster.
pub(super) fn observe(parts: &mut Running<'_, '_>, now: SimTime, news: ActorEvent) {
    let ready = |node, status| Input::ConditionChanged(node, well_known::READY, status);
    let input = match news {
        ActorEvent::PodUnschedulable(pod) => Input::PodUnschedulable(pod),
        ActorEvent::PodBound(pod, node) => Input::PodBound(pod, node),
        ActorEvent::PodTerminating(pod, node) => Input::PodTerminating(pod, node),
        ActorEvent::PodGone(_, Some(node)) => Input::PodGone(node),
        ActorEvent::PodGone(_, None) => Input::Changed,
        ActorEvent::NodeRegistered(node, instance_type) => Input::NodeRegistered(node, instance_type),
        ActorEvent::NodeUsable(node) => Input::NodeMayBeInitialized(node),
        ActorEvent::NodeLost(node) => ready(node, ConditionStatus::Unknown),
        ActorEvent::NodeRegained(node) => ready(node, ConditionStatus::True),
        ActorEvent::NodeGone(node) | ActorEvent::NodeDeleted(node) => Input::NodeGone(node),
        ActorEvent::StatusCheckFails(node) => Input::StatusChecked(node, true),
        ActorEvent::ControlPlaneUpgraded => Input::ControlPlaneUpgraded,
        // That comes as a message, later.
        ActorEvent::InterruptionNotice(node) => return send_notice(parts, now, node),
        _ => return,
    };
    tell(parts, now, input);
}

fn create_claim(parts: &mut Running<'_, '_>, now: SimTime, claim: NewClaim) {
    let NewClaim { number, mut node, text, requests, types, capacity_types } = claim;
    node.drawn = names::of_claim(parts.sim, node.origin.name(), number);
    let id = parts.sim.world.add_node(node, now, &text);
    parts.sim.world.describe_claim(id, ClaimFacts { requests, types, capacity_types });
    tell(parts, now, Input::ClaimCreated(id));
}

/// The instance of a node no longer exists; whether Karpenter will notice that by itself.
pub(super) fn instance_gone(parts: &mut Running<'_, '_>, now: SimTime, node: NodeId) -> bool {
    tell(parts, now, Input::InstanceGone(node));
    parts.driver.machine().is_some_and(|machine| machine.awaits_instance(node))
}

/// EC2 has given notice: the message is on its way to Karpenter's queue.
fn send_notice(parts: &mut Running<'_, '_>, now: SimTime, node: NodeId) {
    let managed = matches!(parts.sim.world.node(node).origin, NodeOrigin::NodePool(_));
    if !managed || !parts.driver.machine().is_some_and(Karpenter::reads_notices) {
        return;
    }
    let Some(machine) = parts.sim.machine(node) else { return };
    let instance = parts.sim.ec2.instance(machine.instance);
    let entity = format!("{}/{}/{}", instance.pool.instance_type, instance.pool.zone, instance.pool.capacity_type);
    let mut stream = parts.sim.streams.nth("notice-delivery", &entity, instance.ordinal);
    if stream.happens(LOST.max(parts.sim.ec2.lost_notices(now))) {
        return;
    }
    let drawn = SimDuration::from_secs_f64(stream.lognormal(DELIVERY.0, DELIVERY.1));
    let delay = parts.sim.setup.scenario.ec2.cloud.times.notice_delivery.unwrap_or(drawn);
    parts.sim.queue.schedule(now + delay, class::NODE_AUTOSCALER, KarpenterEvent::InterruptionMessage(node));
}

//! The cloud and the kubelets of a replay.

use super::{Happening, LaunchFaultKind, Run};
use nodecast_ec2::InstanceId;
use nodecast_ec2::api::instance_name;
use nodecast_karpenter::disruption::ConditionStatus;
use nodecast_karpenter::instance_types::{Offering, position};
use nodecast_karpenter::machine::{
    CallRefused, ClaimRequest, Input, LaunchAnswer, LaunchedInstance, LaunchedNode, OfferingError,
};
use nodecast_karpenter::selection::price::Terms;
use nodecast_model::cluster::NodePhase;
use nodecast_model::domain::taints::TaintEffect;
use nodecast_model::domain::{Currency, HourlyRate, Labels, NodeId, Resources, SimTime, Symbol, Taint, well_known};
use nodecast_sim::actors::class;
use nodecast_world::node_operations::LaunchFacts;

/// The instance behind a node.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    capacity: Resources,
    allocatable: Resources,
}

/// An offering that a claim may be launched from, in the order in which they are tried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Offer {
    price: HourlyRate,
    name: Symbol,
    zone: Symbol,
    capacity_type: Symbol,
}

/// A launch is answered: the cheapest offering that has capacity is launched, Spot before all others.
pub(super) fn answer_launch(run: &mut Run, now: SimTime, node: NodeId, request: &ClaimRequest) {
    let mut answer = LaunchAnswer::default();
    for offer in offers(run, now, request) {
        let Offer { name, zone, capacity_type, .. } = offer;
        match fault(run, now, offer, &[LaunchFaultKind::NoCapacity, LaunchFaultKind::Error]) {
            None => {
                let (id, instance_type, reservation) = (0, name, None);
                answer.instance = Some(LaunchedInstance { id, instance_type, zone, capacity_type, reservation });
                break;
            }
            Some(LaunchFaultKind::Error) => {
                let refused = CallRefused { throttled: true, message: "the launch failed".to_owned() };
                return run.tell(now, Input::LaunchAnswered(node, Err(refused)));
            }
            Some(_) => answer.errors.push(OfferingError {
                code: "InsufficientInstanceCapacity",
                instance_type: name,
                zone,
                capacity_type: Some(capacity_type),
                reservation_full: false,
            }),
        }
    }
    run.tell(now, Input::LaunchAnswered(node, Ok(&answer)));
}

fn offers(run: &Run, now: SimTime, request: &ClaimRequest) -> Vec<Offer> {
    let (case, karpenter) = (&run.case, run.machine());
    let terms = Terms::new(&request.requirements, well_known::CAPACITY_TYPE);
    let mut found = Vec::new();
    for &name in &request.types {
        let Some(place) = position(&case.instance_types, name) else { continue };
        let kind = &case.instance_types[place];
        for offering in &kind.offerings {
            let (zone, capacity_type, price) = (offering.zone, offering.capacity_type, offering.price);
            let open = offering.available && !karpenter.avoids((name, zone, capacity_type), now);
            if open && terms.allow(offering) {
                found.push(Offer { price, name, zone, capacity_type });
            }
        }
    }
    if found.iter().any(|offer| offer.capacity_type == well_known::SPOT) {
        found.retain(|offer| offer.capacity_type == well_known::SPOT);
    }
    found.sort_unstable();
    found
}

/// What of `kinds` goes wrong with an offering now.
fn fault(run: &Run, now: SimTime, offer: Offer, kinds: &[LaunchFaultKind]) -> Option<LaunchFaultKind> {
    let strikes = run.case.faults.iter().filter(|fault| {
        kinds.contains(&fault.kind)
            && fault.from <= now
            && now < fault.to
            && fault.types.as_ref().is_none_or(|types| types.contains(&offer.name))
            && fault.zone.is_none_or(|zone| zone == offer.zone)
            && fault.capacity_type.is_none_or(|capacity_type| capacity_type == offer.capacity_type)
    });
    strikes.map(|fault| fault.kind).next()
}

/// A claim has its instance: its milestones are put on the queue.
pub(super) fn launched(run: &mut Run, now: SimTime, node: NodeId, launched: LaunchedNode) {
    let case = &run.case;
    let LaunchedInstance { id, instance_type: name, zone, capacity_type, .. } = launched.instance;
    let LaunchedNode { mut labels, capacity, allocatable, .. } = launched;
    labels.set(well_known::INSTANCE_TYPE, name);
    labels.set(well_known::ZONE, zone);
    let kind = position(&case.instance_types, name).map(|place| &case.instance_types[place]);
    let is = |offering: &&Offering| offering.zone == zone && offering.capacity_type == capacity_type;
    let price =
        kind.and_then(|kind| kind.offerings.iter().find(is)).map_or(HourlyRate::ZERO, |offering| offering.price);
    let machine = Machine { capacity: capacity.clone(), allocatable: allocatable.clone() };
    let facts = LaunchFacts {
        instance: instance_name(InstanceId(id)).into(),
        instance_type: name,
        zone,
        capacity_type,
        arch: labels.get(well_known::ARCH).unwrap_or(well_known::AMD64),
        rate: price,
        currency: Currency::Usd,
        labels,
        capacity,
        allocatable,
    };
    run.world.launch_node(node, &facts, now);
    run.machines.insert(node, machine);
    let offer = Offer { price, name, zone, capacity_type };
    let never = fault(run, now, offer, &[LaunchFaultKind::NeverRegister, LaunchFaultKind::NeverReady]);
    if never != Some(LaunchFaultKind::NeverRegister) {
        run.queue.schedule(now + run.case.register, class::MACHINES, Happening::NodeRegistered(node));
        if never.is_none() {
            run.queue.schedule(now + run.case.ready, class::MACHINES, Happening::NodeReady(node));
        }
    }
}

/// The Node object of an instance appears.
pub(super) fn registered(run: &mut Run, now: SimTime, node: NodeId) {
    let machine = run.machines.get(&node).cloned();
    let Some(machine) = machine.filter(|_| run.world.node(node).phase == NodePhase::Launched) else { return };
    let mut taints = vec![
        Taint::new(well_known::TAINT_NOT_READY, TaintEffect::NoSchedule),
        Taint::new(well_known::TAINT_NOT_READY, TaintEffect::NoExecute),
    ];
    taints.extend_from_slice(&run.world.node(node).startup_taints);
    run.world.register_node(node, machine.capacity, machine.allocatable, (&Labels::new(), &taints), now);
    run.changed();
}

/// The node reports Ready.
pub(super) fn ready(run: &mut Run, now: SimTime, node: NodeId) {
    if run.world.node(node).phase != NodePhase::Registered {
        return;
    }
    run.world.ready_node(node, now);
    run.world.untaint_node(node, well_known::TAINT_NOT_READY);
    run.changed();
    if run.world.node(node).startup_taints.is_empty() {
        run.tell(now, Input::NodeMayBeInitialized(node));
    }
}

/// The termination of an instance is asked for.
pub(super) fn terminate(run: &mut Run, now: SimTime, node: NodeId) {
    run.world.terminate_instance(node, now);
    run.queue.schedule(now + run.case.instance_termination, class::MACHINES, Happening::InstanceGone(node));
}

/// An instance is gone; its node goes too, at once or when Karpenter looks.
pub(super) fn gone(run: &mut Run, now: SimTime, node: NodeId) {
    run.tell(now, Input::InstanceGone(node));
    if !run.machine().awaits_instance(node) {
        remove(run, now, node);
    }
}

/// The node goes.
pub(super) fn remove(run: &mut Run, now: SimTime, node: NodeId) {
    run.changed();
    run.world.remove_node(node, now);
    run.tell(now, Input::NodeGone(node));
}

/// The node of a vanished instance is noticed not to answer.
pub(super) fn unknown(run: &mut Run, now: SimTime, node: NodeId) {
    if run.world.node(node).phase == NodePhase::Registered {
        run.world.unready_node(node, now);
        run.tell(now, Input::ConditionChanged(node, well_known::READY, ConditionStatus::Unknown));
        run.changed();
    }
}

//! The cloud and the kubelets of a replay.

use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::actors::karpenter;
use crate::actors::replay::{self, LaunchFaultKind};
use crate::cluster::NodePhase;
use crate::domain::taints::TaintEffect;
use crate::domain::{HourlyRate, NodeId, Resources, SimTime, Symbol, Taint, well_known};
use crate::policy::disruption::ConditionStatus;
use crate::policy::instance_types::{Offering, position};
use crate::policy::karpenter::{
    CallRefused, ClaimRequest, Input, LaunchAnswer, LaunchedInstance, LaunchedNode, OfferingError,
};
use crate::policy::selection::price::Terms;
use crate::world::node_operations::LaunchFacts;

/// The instance behind a node.
#[derive(Clone, Debug)]
pub(in crate::actors) struct ReplayMachine {
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
pub(in crate::actors) fn answer_launch(context: &mut Context<'_>, now: SimTime, node: NodeId, request: &ClaimRequest) {
    let mut answer = LaunchAnswer::default();
    for offer in offers(context, now, request) {
        let Offer { name, zone, capacity_type, .. } = offer;
        match fault(context, now, offer, &[LaunchFaultKind::NoCapacity, LaunchFaultKind::Error]) {
            None => {
                let (id, instance_type, reservation) = (0, name, None);
                answer.instance = Some(LaunchedInstance { id, instance_type, zone, capacity_type, reservation });
                break;
            }
            Some(LaunchFaultKind::Error) => {
                let refused = CallRefused { throttled: true, message: "the launch failed".to_owned() };
                return karpenter::tell(context, now, Input::LaunchAnswered(node, Err(refused)));
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
    karpenter::tell(context, now, Input::LaunchAnswered(node, Ok(&answer)));
}

fn offers(context: &Context<'_>, now: SimTime, request: &ClaimRequest) -> Vec<Offer> {
    let (Some(setup), Some(karpenter)) = (&context.setup.replay, context.karpenter.machine()) else {
        return Vec::new();
    };
    let terms = Terms::new(&request.requirements, well_known::CAPACITY_TYPE);
    let mut found = Vec::new();
    for &name in &request.types {
        let Some(place) = position(&setup.instance_types, name) else { continue };
        let kind = &setup.instance_types[place];
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
fn fault(context: &Context<'_>, now: SimTime, offer: Offer, kinds: &[LaunchFaultKind]) -> Option<LaunchFaultKind> {
    let faults = context.setup.replay.iter().flat_map(|replay| &replay.faults);
    let strikes = faults.filter(|fault| {
        kinds.contains(&fault.kind)
            && fault.from <= now
            && now < fault.to
            && fault.types.as_ref().is_none_or(|types| types.contains(&offer.name))
            && fault.zone.is_none_or(|zone| zone == offer.zone)
            && fault.capacity_type.is_none_or(|own| own == offer.capacity_type)
    });
    strikes.map(|fault| fault.kind).next()
}

/// A claim has its instance: its milestones are put on the queue.
pub(in crate::actors) fn launched(context: &mut Context<'_>, now: SimTime, node: NodeId, launched: LaunchedNode) {
    let Some(setup) = &context.setup.replay else { return };
    let LaunchedInstance { instance_type: name, zone, capacity_type, .. } = launched.instance;
    let LaunchedNode { mut labels, capacity, allocatable, .. } = launched;
    labels.set(well_known::INSTANCE_TYPE, name);
    labels.set(well_known::ZONE, zone);
    let kind = position(&setup.instance_types, name).map(|place| &setup.instance_types[place]);
    let is = |own: &&Offering| own.zone == zone && own.capacity_type == capacity_type;
    let price = kind.and_then(|kind| kind.offerings.iter().find(is)).map_or(HourlyRate::ZERO, |own| own.price);
    let machine = ReplayMachine { capacity: capacity.clone(), allocatable: allocatable.clone() };
    let facts = LaunchFacts {
        instance_type: name,
        zone,
        capacity_type,
        arch: labels.get(well_known::ARCH).unwrap_or(well_known::AMD64),
        rate: price,
        currency: context.setup.region.currency,
        labels,
        capacity,
        allocatable,
    };
    context.world.launch_node(node, &facts, now);
    if let Some(replay) = &mut context.replay {
        replay.machines.insert(node, machine);
    }
    let offer = Offer { price, name, zone, capacity_type };
    let never = fault(context, now, offer, &[LaunchFaultKind::NeverRegister, LaunchFaultKind::NeverReady]);
    if never != Some(LaunchFaultKind::NeverRegister) {
        context.queue.schedule_in(setup.register, class::MACHINES, Event::NodeRegistered(node));
        if never.is_none() {
            context.queue.schedule_in(setup.ready, class::MACHINES, Event::NodeReady(node));
        }
    }
}

/// The Node object of an instance appears; whether a case is being replayed.
pub(in crate::actors) fn registered(context: &mut Context<'_>, now: SimTime, node: NodeId) -> bool {
    let Some(replay) = &context.replay else { return false };
    let machine = replay.machines.get(&node).cloned();
    if let Some(machine) = machine.filter(|_| context.world.node(node).phase == NodePhase::Launched) {
        let mut taints = vec![
            Taint::new(well_known::TAINT_NOT_READY, TaintEffect::NoSchedule),
            Taint::new(well_known::TAINT_NOT_READY, TaintEffect::NoExecute),
        ];
        taints.extend_from_slice(&context.world.node(node).startup_taints);
        context.world.register_node(node, machine.capacity, machine.allocatable, &taints, now);
        replay::changed(context);
    }
    true
}

/// The node of a vanished instance is noticed not to answer.
pub(in crate::actors) fn unknown(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    if context.world.node(node).phase == NodePhase::Registered {
        context.world.unready_node(node, now);
        karpenter::tell(context, now, Input::ConditionChanged(node, well_known::READY, ConditionStatus::Unknown));
        replay::changed(context);
    }
}

//! The cloud and the kubelets of a replay.

use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::actors::karpenter;
use crate::actors::replay::{self, LaunchFaultKind};
use crate::cluster::NodePhase;
use crate::domain::taints::TaintEffect;
use crate::domain::{Currency, HourlyRate, Labels, NodeId, Resources, SimDuration, SimTime, Symbol, Taint, well_known};
use crate::policy::disruption::ConditionStatus;
use crate::policy::instance_types::{InstanceType, position};
use crate::policy::selection::price::Terms;
use crate::world::node_operations::LaunchFacts;
use crate::world::record::EventKind;

/// How long an offering without capacity counts as unavailable.
const UNAVAILABLE: SimDuration = SimDuration::from_secs(180);

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
    index: usize,
}

/// The call that launches an instance begins.
pub(in crate::actors) fn request_launch(context: &mut Context<'_>, node: NodeId) {
    let Some(replay) = &context.setup.replay else { return };
    context.queue.schedule_in(replay.launch, class::MACHINES, Event::FleetAnswered(node));
}

/// The call ends: the cheapest offering that has capacity is launched, Spot before all others.
pub(in crate::actors) fn answer_launch(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let Some(mut claim) = context.karpenter.launching.remove(&node) else { return };
    let Some(setup) = &context.setup.replay else { return };
    for offer in offers(context, now, claim.pool, &claim.types, &claim.requirements) {
        match fault(context, now, offer, &[LaunchFaultKind::NoCapacity, LaunchFaultKind::Error]) {
            None => {
                launch(context, now, node, claim.pool, offer);
                return;
            }
            Some(LaunchFaultKind::Error) => {
                context.world.note_node(node, now, EventKind::CallThrottled, "the launch failed");
                match karpenter::next_try(context, now, node, claim.refusals) {
                    None => karpenter::claim_failed(context, now, node, "the launch failed for five minutes"),
                    Some(wait) => {
                        claim.refusals += 1;
                        context.karpenter.launching.insert(node, claim);
                        context.queue.schedule_in(wait + setup.launch, class::MACHINES, Event::FleetAnswered(node));
                    }
                }
                return;
            }
            Some(_) => {
                let key = (offer.name, offer.zone, offer.capacity_type);
                context.karpenter.unavailable.insert(key, now + UNAVAILABLE);
            }
        }
    }
    karpenter::claim_failed(context, now, node, "no offering has capacity");
}

fn offers(
    context: &Context<'_>,
    now: SimTime,
    pool: usize,
    types: &[u32],
    requirements: &crate::domain::Requirements,
) -> Vec<Offer> {
    let Some(setup) = &context.setup.replay else { return Vec::new() };
    let refused = |key| context.karpenter.unavailable.is_avoided(&key, now);
    let terms = Terms::new(requirements, well_known::CAPACITY_TYPE);
    let mut found = Vec::new();
    for &index in types {
        let name = context.karpenter.instance_types[pool][index as usize].name;
        let Some(place) = position(&setup.instance_types, name) else { continue };
        let kind = &setup.instance_types[place];
        for (index, offering) in kind.offerings.iter().enumerate() {
            let open = offering.available
                && !context.karpenter.withdrawn.contains(&name)
                && !refused((name, offering.zone, offering.capacity_type));
            if open && terms.allow(offering) {
                let (zone, capacity_type, price) = (offering.zone, offering.capacity_type, offering.price);
                found.push(Offer { price, name, zone, capacity_type, index });
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

fn launch(context: &mut Context<'_>, now: SimTime, node: NodeId, pool: usize, offer: Offer) {
    let Some(setup) = &context.setup.replay else { return };
    let types = &context.karpenter.instance_types[pool];
    let Some(kind) = position(types, offer.name).map(|place| types[place].clone()) else { return };
    context.world.launch_node(node, &facts(&kind, offer, context.setup.region.currency), now);
    let machine = ReplayMachine { capacity: kind.capacity, allocatable: kind.allocatable };
    if let Some(replay) = &mut context.replay {
        replay.machines.insert(node, machine);
    }
    let never = fault(context, now, offer, &[LaunchFaultKind::NeverRegister, LaunchFaultKind::NeverReady]);
    if never != Some(LaunchFaultKind::NeverRegister) {
        context.queue.schedule_in(setup.register, class::MACHINES, Event::NodeRegistered(node));
        if never.is_none() {
            context.queue.schedule_in(setup.ready, class::MACHINES, Event::NodeReady(node));
        }
    }
    karpenter::expect_registration(context, now, node);
    karpenter::claim_launched(context, now, node);
}

fn facts(kind: &InstanceType, offer: Offer, currency: Currency) -> LaunchFacts {
    let single = kind.requirements.iter().filter(|own| !own.complement && own.values.len() == 1);
    let mut labels: Labels = single.filter_map(|own| own.values.first().map(|&value| (own.key, value))).collect();
    labels.set(well_known::INSTANCE_TYPE, offer.name);
    labels.set(well_known::ZONE, offer.zone);
    labels.set(well_known::CAPACITY_TYPE, offer.capacity_type);
    LaunchFacts {
        instance_type: offer.name,
        zone: offer.zone,
        capacity_type: offer.capacity_type,
        arch: labels.get(well_known::ARCH).unwrap_or(well_known::AMD64),
        rate: offer.price,
        currency,
        labels,
        capacity: kind.capacity.clone(),
        allocatable: kind.allocatable.clone(),
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
        karpenter::condition_changed(context, now, node, well_known::READY, ConditionStatus::Unknown);
        replay::changed(context);
    }
}

/// Brings the offerings that Karpenter knows up to date with the capacity errors that are still remembered.
pub(in crate::actors) fn refresh_offerings(context: &mut Context<'_>) {
    let Some(setup) = &context.setup.replay else { return };
    let karpenter = &mut context.karpenter;
    for types in karpenter.instance_types.change_offers() {
        for (kind, base) in types.iter_mut().zip(&setup.instance_types) {
            for (offering, base) in kind.offerings.iter_mut().zip(&base.offerings) {
                let key = (kind.name, offering.zone, offering.capacity_type);
                offering.available = base.available
                    && !karpenter.unavailable.contains(&key)
                    && !karpenter.withdrawn.contains(&kind.name);
            }
        }
    }
}

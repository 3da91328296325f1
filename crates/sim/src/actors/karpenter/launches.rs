//! Karpenter's launches in the simulated EC2: how long a call takes, what it is answered, and what becomes of the instance.

use super::{Running, tell, wake};
use crate::actors::actor_events::ActorEvent;
use crate::actors::node_life;
use crate::actors::node_templates::NodeTemplates;
use crate::actors::sim::Machine;
use crate::actors::sim::Sim;
use crate::cloud::{
    BootStages, CallError, FleetErrorCode, FleetOverride, FleetReply, FleetRequest, InstanceId, Pool, ReservationUse,
};
use crate::domain::node_pool::AmiFamily;
use crate::domain::{NodeId, SimTime, Symbol, well_known};
use crate::world::record::NodeOrigin;
use nodecast_karpenter::instance_types::volumes_beside_local_disks;
use nodecast_karpenter::machine::{
    CallRefused, FleetCall, Input, LaunchAnswer, LaunchedInstance, LaunchedNode, OfferingError, Timer,
};
use nodecast_karpenter::selection::LaunchRequest;

/// A launch begins: its answer comes later.
pub(super) fn begin(parts: &mut Running<'_, '_>, claim: NodeId, begins: SimTime, called: SimTime) {
    let call = parts.sim.ec2.next_fleet_call_time(begins);
    wake(parts, called + call, Timer::Launch(claim));
}

/// EC2 answers a request.
pub(super) fn create_fleet(parts: &mut Running<'_, '_>, now: SimTime, node: NodeId, call: &FleetCall) {
    node_life::count_addresses(parts.sim);
    let FleetCall { request, volumes, uses_open_reservations } = call;
    let reply = if request.capacity_type == well_known::RESERVED {
        let ids: Vec<Symbol> = request.overrides.iter().filter_map(|wanted| wanted.reservation).collect();
        parts.sim.cloud().launch_reserved(&ids, node, volumes, now)
    } else {
        let how = if *uses_open_reservations { ReservationUse::Open } else { ReservationUse::None };
        parts.sim.cloud().create_fleet_using(&fleet_request(request), how, &[node], volumes, now)
    };
    let answer = match reply {
        Ok(reply) => Ok(answer(parts.sim, &reply)),
        Err(error) => Err(CallRefused {
            throttled: matches!(error, CallError::Throttled(_)),
            message: parts.sim.with_fleet_use(error.to_string()),
        }),
    };
    tell(parts, now, Input::LaunchAnswered(node, answer.as_ref().map_err(Clone::clone)));
}

fn answer(sim: &Sim<'_>, reply: &FleetReply) -> LaunchAnswer {
    let instance = reply.instances.first().map(|&id| {
        let Pool { instance_type, zone, capacity_type } = sim.ec2.instance(id).pool;
        let reservation = sim.ec2.targeted_reservation(id);
        LaunchedInstance { id: id.0, instance_type, zone, capacity_type, reservation }
    });
    let errors = reply.errors.iter().map(|error| OfferingError {
        code: error.code.as_str(),
        instance_type: error.instance_type,
        zone: error.zone,
        capacity_type: None,
        reservation_full: error.code == FleetErrorCode::ReservationCapacityExceeded,
    });
    LaunchAnswer { instance, errors: errors.collect() }
}

fn fleet_request(request: &LaunchRequest) -> FleetRequest {
    let overrides = request.overrides.iter().map(|wanted| FleetOverride {
        instance_type: wanted.instance_type,
        zone: wanted.zone,
        priority: wanted.priority,
        weight: 1,
    });
    FleetRequest {
        capacity_type: request.capacity_type,
        strategy: request.strategy,
        pools_to_use: 1,
        target: 1,
        overrides: overrides.collect(),
    }
}

/// A claim has its instance.
pub(super) fn launched(
    sim: &mut Sim<'_>,
    node_templates: &mut NodeTemplates,
    now: SimTime,
    node: NodeId,
    launched: LaunchedNode,
) {
    let LaunchedNode { instance, capacity_type, labels, capacity, allocatable, image_for } = launched;
    let LaunchedInstance { instance_type, zone, .. } = instance;
    let id = InstanceId(instance.id);
    let pool = Pool { instance_type, zone, capacity_type };
    let rate = sim.ec2.instance(id).rate;
    let owner = sim.world.node(node).origin.name();
    node_templates.launched(node, owner);
    order_beside(sim, node_templates, owner, id, instance_type);
    let labels = (image_family(sim, node_templates, node), labels);
    let facts = node_life::launch_facts(sim, (id, pool, rate), labels, capacity, allocatable);
    sim.world.launch_node(node, &facts, now);
    if let Some(release) = image_for {
        sim.world.describe_kubelet(node, release);
    }
    let stages = sim
        .setup
        .scenario
        .ec2
        .launch_latency
        .unwrap_or_else(|| BootStages::from_family(image_family(sim, node_templates, node)));
    let boot = sim.ec2.boot(id, &stages);
    node_life::launched(sim, now, node, Machine { instance: id, boot });
    sim.publish(ActorEvent::InstanceLaunched(node, pool));
}

/// What the node's class says of its address; a node of EKS Auto Mode with local disks for its pods has a smaller volume.
fn order_beside(
    sim: &mut Sim<'_>,
    node_templates: &NodeTemplates,
    pool: Symbol,
    id: InstanceId,
    instance_type: Symbol,
) {
    let Some((_, class)) = node_templates.of_pool(pool) else { return };
    if let Some(has_one) = class.public_address {
        sim.ec2.set_public_address(id, has_one);
    }
    let Some(kind) = sim.setup.region.instance_type(instance_type) else { return };
    if let Some(volumes) = volumes_beside_local_disks(&kind.facts, &class) {
        sim.ec2.set_volumes(id, volumes);
    }
}

/// The image family of the node's class.
fn image_family(sim: &Sim<'_>, node_templates: &NodeTemplates, node: NodeId) -> AmiFamily {
    let NodeOrigin::NodePool(name) = sim.world.node(node).origin else { return AmiFamily::AL2023 };
    node_templates.of_node(node, name).map_or(AmiFamily::AL2023, |(_, class)| class.ami_family)
}

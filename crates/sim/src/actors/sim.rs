//! The part of a simulation that all components share: the cluster, the queue with its clock, random numbers, the cloud and the settings.
//!
//! Must not: hold the memory of one component.

use std::sync::Arc;

use super::actor_events::{ActorEvent, Outbox};
use super::budgets::Budgets;
use super::event::Event;
use super::setup::Setup;
use crate::cloud::autoscaling::GroupSpec;
use crate::cloud::billing::FargatePrices;
use crate::cloud::{AutoScaling, BootTimes, CloudSettings, Ec2, InstanceId, SimulatedAccount};
use crate::domain::hpa::ScaleTargetRef;
use crate::domain::workload::ObjectName;
use crate::domain::{KubernetesVersion, NodeGroup, NodeId, PodId, SimDuration, SimTime, Symbol, WorkloadId};
use crate::engine::{EventQueue, Ordinals, Streams};
use crate::world::World;
use nodecast_settings::WorkloadTimes;

/// Shared state of all components. A method of a component takes it as a parameter.
#[derive(Debug)]
pub struct Sim<'s> {
    /// The resolved scenario.
    pub setup: &'s Setup<'s>,
    /// The cluster.
    pub world: World,
    /// Events to come.
    pub queue: EventQueue<Event>,
    /// Random numbers.
    pub streams: Streams,
    /// The cloud.
    pub ec2: Ec2,
    /// Its Auto Scaling groups, one for each node group of the setup.
    pub groups: AutoScaling,
    /// The release that the control plane runs.
    pub(super) control_plane: KubernetesVersion,
    /// Disruption budgets, with what they allow.
    pub(super) budgets: Budgets,
    draws: Draws,
    machines: Vec<Option<Machine>>,
    /// News that no listener has heard yet.
    pub(super) outbox: Outbox,
}

/// What a run draws for all components.
#[derive(Debug)]
struct Draws {
    pod_uids: Ordinals,
    jitter: Ordinals,
    /// The fraction of a second of the clock at which the run begins.
    fraction: SimDuration,
}

/// Purpose of a jitter: each has draws of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Jitter {
    /// The reaction of workload controllers.
    Reaction,
    /// A call of the ReplicaSet controller, by worker.
    Call,
    /// The disruption loop's wait.
    DisruptionLoop,
    /// A look at a command that is carried out.
    CommandPoll,
    /// A look at a node that drains or whose instance ends.
    NodePoll,
    /// A pod or node that triggers provisioning again.
    Trigger,
}

/// The machine behind a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    /// The instance.
    pub(super) instance: InstanceId,
    /// When it reaches which stage, counted from launch.
    pub(super) boot: BootTimes,
}

/// The account, whose network plugin takes addresses as its DaemonSet or its add-on says.
fn cloud_settings(setup: &Setup<'_>) -> Arc<CloudSettings> {
    let mut settings = Arc::clone(&setup.scenario.ec2.cloud);
    if setup.pod_addresses().prefixes && !settings.network.prefix_delegation {
        Arc::make_mut(&mut settings).network.prefix_delegation = true;
    }
    settings
}

/// The Auto Scaling groups behind the node groups of the setup.
fn groups(setup: &Setup<'_>, streams: Streams) -> AutoScaling {
    let group = |group: &NodeGroup| (GroupSpec::new(group, &setup.scenario.zones, &setup.region), group.desired_size);
    let times = setup.scenario.ec2.cloud.times;
    AutoScaling::new(setup.policy.manifests.node_groups.iter().map(group), times, streams)
}

/// The fraction of a second at which the run begins: as the scenario's start has it, otherwise drawn.
fn first_fraction(setup: &Setup<'_>, streams: &Streams) -> SimDuration {
    let second = SimDuration::from_secs(1);
    let given = SimDuration::from_micros(setup.scenario.start.as_microsecond().rem_euclid(second.as_micros()));
    if given > SimDuration::ZERO { given } else { streams.stream("start-second", "").span_up_to(second) }
}

impl<'s> Sim<'s> {
    pub(super) fn new(setup: &'s Setup<'s>) -> Self {
        let streams = Streams::new(setup.seed);
        let mut world = World::with_room_for(setup.scenario.duration, setup.sample_interval);
        world.set_check(setup.check);
        for mut budget in setup.policy.manifests.disruption_budgets.iter().cloned() {
            budget.drop_unknown(setup.policy.versions.kubernetes);
            world.apply_budget(budget);
        }
        let end = SimTime::ZERO + setup.scenario.duration;
        Self {
            setup,
            budgets: Budgets::new(&world),
            world,
            queue: EventQueue::new(),
            streams,
            ec2: Ec2::in_market(
                Arc::clone(&setup.region),
                streams,
                Streams::new(setup.market_seed),
                cloud_settings(setup),
                end,
            ),
            groups: groups(setup, streams),
            control_plane: setup.policy.versions.kubernetes,
            draws: Draws {
                pod_uids: streams.ordinals("pod-uid"),
                jitter: streams.ordinals("jitter"),
                fraction: first_fraction(setup, &streams),
            },
            machines: Vec::new(),
            outbox: Outbox::default(),
        }
    }

    /// The time as an object of the API has it: in whole seconds of the clock, the rest cut off.
    ///
    /// Source: `metav1.Time` of Kubernetes 1.36, which is written in whole seconds.
    pub(super) fn whole_seconds(&self, at: SimTime) -> SimTime {
        let micros = (at + self.draws.fraction).as_micros();
        at - SimDuration::from_micros(micros.rem_euclid(1_000_000))
    }

    /// A small random span below `most` for something that recurs to one entity: real reactions and timers are never equally
    /// long, which decides races.
    pub(super) fn jitter(&self, kind: Jitter, entity: u32, now: SimTime, most: SimDuration) -> SimDuration {
        debug_assert!(most >= SimDuration::ZERO, "a jitter of at most {most}");
        let draws = self.draws.jitter.part(kind as u64).part(u64::from(entity));
        let drawn = draws.nth(now.as_micros().unsigned_abs());
        SimDuration::from_micros(((i128::from(drawn) * i128::from(most.as_micros())) >> 64) as i64)
    }

    /// The account, as those call it that launch and end instances.
    pub fn cloud(&mut self) -> SimulatedAccount<'_> {
        SimulatedAccount { ec2: &mut self.ec2, groups: &mut self.groups }
    }

    /// The text of a refusal, with the fleet's use of the shared limit that is its reason.
    pub(super) fn with_fleet_use(&mut self, text: String) -> String {
        match self.ec2.take_fleet_use() {
            Some(fleet) => format!("{text} ({fleet})"),
            None => text,
        }
    }

    /// Publishes a change of a pod or a node, which the cluster has already. The listeners run when the handler has returned.
    pub(super) fn publish(&mut self, news: ActorEvent) {
        self.outbox.publish(news);
    }

    /// What Fargate costs in the region, or as the scenario states it.
    pub fn fargate_prices(&self) -> FargatePrices {
        let stated = self.setup.policy.fargate.as_ref();
        let (vcpu, gb) = stated.map_or((None, None), |price| (price.vcpu_hour, price.gb_hour));
        FargatePrices::new(&self.setup.region, vcpu, gb)
    }

    /// The workload called `name`, if it has been applied and not deleted.
    pub(super) fn workload_named(&self, name: ObjectName) -> Option<WorkloadId> {
        self.world.workloads().find(|(_, workload)| workload.name == name && !workload.deleted).map(|(id, _)| id)
    }

    /// The workload that an autoscaler of this namespace scales: one of its target's kind as well as name.
    ///
    /// Source: Kubernetes 1.36.2 `pkg/controller/podautoscaler/horizontal.go`, `reconcileAutoscaler` (`scaleForResourceMappings`).
    pub(super) fn scaled_workload(&self, namespace: Symbol, target: ScaleTargetRef) -> Option<WorkloadId> {
        let name = ObjectName { namespace, name: target.name };
        let kind = target.kind.as_str();
        let mut workloads = self.world.workloads();
        workloads
            .find(|(_, workload)| workload.name == name && workload.kind.as_str() == kind && !workload.deleted)
            .map(|(id, _)| id)
    }

    /// A number that stands for the pod's random UID.
    pub(super) fn pod_uid(&self, pod: PodId) -> u64 {
        self.draws.pod_uids.nth(u64::from(pod.0))
    }

    /// What the scenario says of the times of a workload's pods.
    pub(super) fn times_of(&self, workload: WorkloadId) -> WorkloadTimes {
        self.setup.scenario.times.get(&self.world.workload(workload).name).copied().unwrap_or_default()
    }

    /// The machine behind `node`, once launched.
    pub(super) fn machine(&self, node: NodeId) -> Option<Machine> {
        self.machines.get(node.index()).copied().flatten()
    }

    /// Remembers the machine behind `node`.
    pub(super) fn set_machine(&mut self, node: NodeId, machine: Machine) {
        debug_assert!(self.machine(node).is_none(), "{node:?} has a machine already");
        if self.machines.len() <= node.index() {
            self.machines.resize(node.index() + 1, None);
        }
        self.machines[node.index()] = Some(machine);
    }
}

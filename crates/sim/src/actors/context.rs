//! What a handler may touch: the world, the queue, the cloud, and the memory of each actor.

use std::cell::RefCell;
use std::sync::Arc;

use super::cluster_autoscaler::AutoscalerLoop;
use super::cpu_shares::CpuShares;
use super::credits::Accounts;
use super::dispatch;
use super::event::Event;
use super::fargate::Fargate;
use super::interruption::Interruption;
use super::job_loop::JobLoop;
use super::karpenter;
use super::keda_loop::KedaLoop;
use super::kubectl::drain::Drains;
use super::kubelet::Images;
use super::load_loop::LoadLoop;
use super::metrics_server::MetricsServer;
use super::news::News;
use super::node_autoscaler::NodeAutoscaler;
use super::node_groups::{self, NodeGroups};
use super::node_templates::NodeTemplates;
use super::of_workloads::OfWorkloads;
use super::pod_trace::TraceLoop;
use super::prometheus::{Prometheus, RequestCounters};
use super::queue_loop::QueueLoop;
use super::quotas::Quotas;
use super::replica_loop::{ReplicaLoop, Workers};
use super::restarts::BackOffs;
use super::scheduler_loop::SchedulerLoop;
use super::setup::Setup;
use super::startup_taints::StartupTaints;
use super::taint_eviction::TaintEvictions;
use super::terminations::Terminations;
use super::usage_loop::{NodeLooks, UsageLoop};
use super::vertical::Vertical;
use super::volumes::Volumes;
use super::workload_controllers::Controllers;
use super::zone_outage::Darkness;
use crate::cloud::billing::disks::Disk;
use crate::cloud::billing::{FargatePod, FargatePrices};
use crate::cloud::{AutoScaling, BootTimes, CloudSettings, Ec2, InstanceId, SimulatedAccount};
use crate::cluster::Derived;
use crate::control_plane::budgets::ProtectedByBudgets;
use crate::control_plane::eviction::Protections;
use crate::control_plane::scales::TakenFromOthers;
use crate::domain::controller_time::CallRate;
use crate::domain::hpa::{HorizontalPodAutoscaler, ScaleTargetRef};
use crate::domain::workload::ObjectName;
use crate::domain::{KubernetesVersion, Labels, NodeId, SimDuration, SimTime, Symbol, WorkloadId};
use crate::engine::{EventQueue, Ordinals, Streams};
use crate::load::{RequestModel, WorkQueue};
use crate::world::World;
use crate::world::controller_loops::{AutoscalerPasses, LimitFacts};
use nodecast_settings::WorkloadTimes;

/// One running simulation.
#[derive(Debug)]
pub struct Context<'s> {
    /// What the simulation was told.
    pub setup: &'s Setup<'s>,
    /// The cluster.
    pub world: World,
    /// What happens next.
    pub queue: EventQueue<Event>,
    /// Random numbers.
    pub streams: Streams,
    /// What stands for the random UIDs of pods.
    pub(super) pod_uids: Ordinals,
    jitter: Ordinals,
    /// The cloud.
    pub ec2: Ec2,
    /// Its Auto Scaling groups, one for each node group of the setup.
    pub groups: AutoScaling,
    pub(super) machines: Vec<Option<Machine>>,
    pub(super) scheduler: SchedulerLoop,
    pub(super) images: Images,
    pub(super) pod_trace: TraceLoop,
    pub(super) cpu_shares: CpuShares,
    pub(super) credits: Accounts,
    pub(super) back_offs: BackOffs,
    pub(super) controllers: Controllers,
    pub(super) metrics: MetricsServer,
    pub(super) autoscalers: Vec<ReplicaLoop<'s>>,
    pub(super) autoscaler_workers: Workers,
    pub(super) scaled_objects: Vec<KedaLoop<'s>>,
    pub(super) jobs: Vec<JobLoop<'s>>,
    pub(super) loads: Vec<LoadLoop>,
    pub(super) loads_of: OfWorkloads,
    pub(super) queues: Vec<QueueLoop>,
    pub(super) usages: Vec<UsageLoop>,
    pub(super) usages_of: OfWorkloads,
    pub(super) node_looks: NodeLooks,
    pub(super) vertical: Vertical,
    pub(super) prometheus: Prometheus,
    pub(super) counters: RequestCounters,
    pub(super) karpenter: karpenter::Driver,
    pub(super) cluster_autoscaler: AutoscalerLoop,
    pub(super) interruption: Interruption,
    pub(super) darkness: Darkness,
    pub(super) taint_evictions: TaintEvictions,
    pub(super) startup_taints: StartupTaints,
    pub(super) node_groups: NodeGroups,
    pub(super) terminations: Terminations,
    pub(super) volumes: Volumes,
    pub(super) drains: Drains,
    pub(super) node_templates: NodeTemplates,
    /// Namespaces with their labels as they are now, in order of name.
    pub(super) namespaces: Arc<Vec<(Symbol, Labels)>>,
    pub(super) quotas: Quotas,
    pub(super) fargate: Fargate,
    /// Who tells news.
    dispatch: fn(&mut Self, SimTime, News),
    /// The release that the control plane runs.
    pub(super) control_plane: KubernetesVersion,
    /// What they protect; brought up to date by whoever asks.
    pub(super) protected: RefCell<Derived<ProtectedByBudgets>>,
    /// Which of them protect which pods.
    pub(super) protections: Protections,
    /// Pods that the selectors of other workloads take; brought up to date by whoever asks.
    pub(super) taken_from_others: RefCell<Derived<TakenFromOthers>>,
}

/// What has a jitter of its own.
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

fn loads(setup: &Setup<'_>, streams: &Streams) -> Vec<LoadLoop> {
    let load = |plan| LoadLoop::new(plan, streams, setup.scenario.metrics_server.resolution).checked(setup.check);
    setup.loads.iter().map(load).collect()
}

/// The account, whose network plugin takes addresses as its DaemonSet or its add-on says.
fn cloud_settings(setup: &Setup<'_>) -> Arc<CloudSettings> {
    let mut settings = Arc::clone(&setup.scenario.ec2.cloud);
    if setup.pod_addresses().prefixes && !settings.network.prefix_delegation {
        Arc::make_mut(&mut settings).network.prefix_delegation = true;
    }
    settings
}

impl<'s> Context<'s> {
    /// A simulation about to begin.
    pub fn new(setup: &'s Setup<'s>) -> Self {
        let streams = Streams::new(setup.seed);
        let mut world = World::with_room_for(setup.scenario.duration, setup.sample_interval);
        world.set_check(setup.check);
        for mut budget in setup.policy.manifests.disruption_budgets.iter().cloned() {
            budget.drop_unknown(setup.policy.versions.kubernetes);
            world.apply_budget(budget);
        }
        Self {
            setup,
            queue: EventQueue::new(),
            streams,
            pod_uids: streams.ordinals("pod-uid"),
            jitter: streams.ordinals("jitter"),
            ec2: Ec2::new(
                Arc::clone(&setup.region),
                streams,
                cloud_settings(setup),
                SimTime::ZERO + setup.scenario.duration,
            ),
            groups: node_groups::groups(setup, streams),
            machines: Vec::new(),
            scheduler: SchedulerLoop::new(setup, streams),
            images: Images::default(),
            pod_trace: TraceLoop::default(),
            cpu_shares: CpuShares::default(),
            credits: Accounts::default(),
            back_offs: BackOffs::new(),
            controllers: Controllers::new(setup),
            metrics: MetricsServer::new(setup, &streams),
            autoscalers: Vec::new(),
            autoscaler_workers: Workers::new(setup),
            scaled_objects: Vec::new(),
            jobs: Vec::new(),
            loads: loads(setup, &streams),
            loads_of: OfWorkloads::default(),
            queues: setup.queues.iter().map(QueueLoop::new).collect(),
            usages: setup.usages.iter().map(UsageLoop::new).collect(),
            usages_of: OfWorkloads::default(),
            node_looks: NodeLooks::default(),
            vertical: Vertical::new(setup),
            prometheus: Prometheus::new(setup.prometheus.as_ref()),
            counters: RequestCounters::default(),
            karpenter: karpenter::Driver::new(setup),
            cluster_autoscaler: AutoscalerLoop::new(setup),
            interruption: Interruption::default(),
            darkness: Darkness::default(),
            taint_evictions: TaintEvictions::default(),
            startup_taints: StartupTaints::default(),
            node_groups: NodeGroups::new(setup),
            terminations: Terminations::default(),
            volumes: Volumes::new(setup),
            drains: Drains::default(),
            node_templates: NodeTemplates::new(setup),
            namespaces: Arc::new(setup.namespaces().collect()),
            quotas: Quotas::new(&setup.policy.manifests),
            fargate: Fargate::default(),
            dispatch: dispatch::dispatch,
            control_plane: setup.policy.versions.kubernetes,
            protected: RefCell::new(Derived::new(&world)),
            taken_from_others: RefCell::new(Derived::new(&world)),
            world,
            protections: Protections::default(),
        }
    }

    /// Passes over autoscalers of replicas, where they take time.
    pub fn autoscaler_passes(&self) -> Option<AutoscalerPasses> {
        self.autoscaler_workers.passes()
    }

    /// The limit of kube-scheduler's client, where it has one.
    pub fn scheduler_rate(&self) -> Option<CallRate> {
        self.scheduler.call_limit().map(|(_, rate)| rate)
    }

    /// What the limits of the API server's clients came to, where controllers take time.
    pub fn client_limits(&self) -> Vec<LimitFacts> {
        let time = self.setup.policy.controller_time;
        let manager = time.controller_manager.map(|time| self.controllers.limits(time.calls));
        let scheduler = || {
            let (limit, rate) = self.scheduler.call_limit()?;
            LimitFacts::of("kube-scheduler", rate, limit.used())
        };
        let others = [scheduler(), NodeAutoscaler::of(self.setup).call_limit(self)];
        manager.into_iter().flatten().chain(others.into_iter().flatten()).collect()
    }

    /// Pods on Fargate, in order of their start.
    pub fn fargate_pods(&self) -> &[FargatePod] {
        self.fargate.lives()
    }

    /// What Fargate costs in the region, or as the scenario states it.
    pub fn fargate_prices(&self) -> FargatePrices {
        let stated = self.setup.policy.fargate.as_ref();
        let (vcpu, gb) = stated.map_or((None, None), |own| (own.vcpu_hour, own.gb_hour));
        FargatePrices::of(&self.setup.region, vcpu, gb)
    }

    /// A small random span below `most` for something that recurs to one entity: real reactions and timers are never equally
    /// long, which decides races.
    pub(super) fn jitter(&self, kind: Jitter, entity: u32, now: SimTime, most: SimDuration) -> SimDuration {
        let draws = self.jitter.part(kind as u64).part(u64::from(entity));
        let drawn = draws.nth(now.as_micros().unsigned_abs());
        SimDuration::from_micros(((i128::from(drawn) * i128::from(most.as_micros())) >> 64) as i64)
    }

    /// The account, as those call it that launch and end instances.
    pub fn cloud(&mut self) -> SimulatedAccount<'_> {
        SimulatedAccount { ec2: &mut self.ec2, groups: &mut self.groups }
    }

    /// Hands over what has become of a pod or a node: those who go by it are told now. The cluster must have changed already.
    pub(super) fn tell(&mut self, now: SimTime, news: News) {
        // Who changes the cluster would otherwise import everybody who listens, and most of these change it, too.
        (self.dispatch)(self, now, news);
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
        workloads.find(|(_, own)| own.name == name && own.kind.as_str() == kind && !own.deleted).map(|(id, _)| id)
    }

    /// What the scenario says of the times of a workload's pods.
    pub(super) fn times_of(&self, workload: WorkloadId) -> WorkloadTimes {
        self.setup.scenario.times.get(&self.world.workload(workload).name).copied().unwrap_or_default()
    }

    /// Every load's workload (once applied) and its queue, brought up to `now`.
    pub fn request_models(&mut self, now: SimTime) -> Vec<(WorkloadId, &RequestModel)> {
        for load in &mut self.loads {
            load.model.advance(now);
        }
        self.loads.iter().filter_map(|load| Some((load.id?, &load.model))).collect()
    }

    /// What burstable nodes used beyond their credits until they ended, or `end`, in millionths of a vCPU-hour, in order of node.
    pub fn credits_surplus(&mut self, end: SimTime) -> Vec<(NodeId, i64)> {
        let Self { credits, ec2, machines, .. } = self;
        let machine = |node: NodeId| machines.get(node.index()).copied().flatten();
        let terminating = |node| machine(node).and_then(|own| ec2.instance(own.instance).terminating);
        credits.surplus(|node| terminating(node).unwrap_or(end).min(end))
    }

    /// Lets what becomes of requests count from `now` on.
    pub fn count_requests_anew(&mut self, now: SimTime) {
        for load in &mut self.loads {
            load.model.count_anew(now);
        }
    }

    /// The queues, brought up to `now`, in the order of the setup.
    pub fn work_queues(&mut self, now: SimTime) -> Vec<&WorkQueue> {
        for queue in &mut self.queues {
            queue.queue.advance(now);
        }
        self.queues.iter().map(|queue| &queue.queue).collect()
    }

    /// Autoscalers of replicas that there are, with what they scale.
    pub fn replica_autoscalers(&self) -> impl Iterator<Item = (&HorizontalPodAutoscaler, WorkloadId)> {
        self.autoscalers.iter().filter_map(ReplicaLoop::scales)
    }

    /// Bytes of images that each node pulled, in order of node.
    pub fn bytes_pulled(&self) -> Vec<(NodeId, i64)> {
        self.images.bytes_pulled()
    }

    /// Pods that were bound to nodes which do not attach their volumes, and those nodes.
    pub fn over_attach_limits(&self) -> (usize, usize) {
        self.volumes.over_limits()
    }

    /// The EBS volumes of claims, for the bill.
    pub fn disks(&self) -> &[Disk] {
        self.volumes.disks()
    }

    /// The machine behind `node`, once launched.
    pub(super) fn machine(&self, node: NodeId) -> Option<Machine> {
        self.machines.get(node.index()).copied().flatten()
    }

    /// Remembers the machine behind `node`.
    pub(super) fn set_machine(&mut self, node: NodeId, machine: Machine) {
        if self.machines.len() <= node.index() {
            self.machines.resize(node.index() + 1, None);
        }
        self.machines[node.index()] = Some(machine);
        self.credits.note(node, self.ec2.instance(machine.instance).pool.instance_type);
    }
}

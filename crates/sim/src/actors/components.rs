//! All components of one simulation, and the state that they share.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cluster_autoscaler::{AutoscalerLoop, Lists};
use super::cpu_shares::CpuShares;
use super::fargate::Fargate;
use super::interruption::Interruption;
use super::job_loop::ScaledJobs;
use super::karpenter;
use super::keda_loop::ScaledObjects;
use super::kubectl::drain::Drains;
use super::kubelet::Images;
use super::load_loop::Loads;
use super::metrics_server::MetricsServer;
use super::node_groups::NodeGroups;
use super::node_templates::NodeTemplates;
use super::pod_trace::TraceLoop;
use super::prometheus::Prometheus;
use super::queue_loop::Queues;
use super::replica_loop::{ReplicaLoops, Syncing};
use super::restarts::BackOffs;
use super::sampler::Sampling;
use super::scheduler_loop::SchedulerLoop;
use super::setup::Setup;
use super::sim::Sim;
use super::startup_taints::StartupTaints;
use super::taint_eviction::TaintEvictions;
use super::terminations::Terminations;
use super::usage_loop::Usages;
use super::vertical::{Resizing, Vertical};
use super::volumes::Volumes;
use super::workload_controllers::Controllers;
use super::zone_outage::Darkness;
use crate::cloud::billing::FargatePod;
use crate::cloud::billing::disks::Disk;
use crate::control_plane::call_limit::CallLimit;
use crate::domain::controller_time::CallRate;
use crate::domain::hpa::HorizontalPodAutoscaler;
use crate::domain::{Labels, NodeId, SimTime, Symbol, WorkloadId};
use crate::load::{RequestModel, WorkQueue};
use crate::world::controller_loops::{AutoscalerPasses, LimitFacts};

/// One running simulation.
#[derive(Debug)]
pub struct Components<'s> {
    /// The state that all components share.
    pub sim: Sim<'s>,
    pub(super) scheduler: SchedulerLoop,
    pub(super) images: Images,
    pub(super) pod_trace: TraceLoop,
    pub(super) cpu_shares: CpuShares,
    pub(super) back_offs: BackOffs,
    pub(super) controllers: Controllers,
    pub(super) metrics: MetricsServer,
    pub(super) autoscalers: ReplicaLoops<'s>,
    pub(super) scaled_objects: ScaledObjects<'s>,
    pub(super) jobs: ScaledJobs<'s>,
    pub(super) loads: Loads,
    pub(super) queues: Queues,
    pub(super) usages: Usages,
    pub(super) vertical: Vertical,
    pub(super) prometheus: Prometheus,
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
    pub(super) fargate: Fargate,
}

impl<'s> Components<'s> {
    /// A simulation about to begin.
    pub fn new(setup: &'s Setup<'s>) -> Self {
        let sim = Sim::new(setup);
        let streams = sim.streams;
        Self {
            scheduler: SchedulerLoop::new(setup, streams),
            images: Images::default(),
            pod_trace: TraceLoop::default(),
            cpu_shares: CpuShares::default(),
            back_offs: BackOffs::new(),
            controllers: Controllers::new(setup),
            metrics: MetricsServer::new(setup, &streams),
            autoscalers: ReplicaLoops::new(setup, &sim.world),
            scaled_objects: ScaledObjects::default(),
            jobs: ScaledJobs::default(),
            loads: Loads::new(setup, &streams),
            queues: Queues::new(setup),
            usages: Usages::new(setup),
            vertical: Vertical::new(setup),
            prometheus: Prometheus::new(setup.prometheus.as_ref()),
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
            fargate: Fargate::default(),
            sim,
        }
    }

    /// Passes over autoscalers of replicas, where they take time.
    pub fn autoscaler_passes(&self) -> Option<AutoscalerPasses> {
        self.autoscalers.passes()
    }

    /// The limit of kube-scheduler's client, where it has one.
    pub fn scheduler_rate(&self) -> Option<CallRate> {
        self.scheduler.call_limit().map(|(_, rate)| rate)
    }

    /// What the limits of the API server's clients came to, where controllers take time.
    pub fn client_limits(&self) -> Vec<LimitFacts> {
        let time = self.sim.setup.policy.controller_time;
        let manager = time.controller_manager.map(|time| self.controllers.limits(time.calls));
        let scheduler = || {
            let (limit, rate) = self.scheduler.call_limit()?;
            LimitFacts::new("kube-scheduler", rate, limit.used())
        };
        let facts =
            |name, rate: Option<CallRate>, limit: Option<&CallLimit>| LimitFacts::new(name, rate?, limit?.used());
        let karpenter = facts("karpenter", time.karpenter.map(|time| time.calls), self.karpenter.call_limit());
        let rate = time.cluster_autoscaler.map(|time| time.calls);
        let autoscaler = facts("cluster-autoscaler", rate, self.cluster_autoscaler.call_limit());
        let others = [scheduler(), karpenter, autoscaler];
        manager.into_iter().flatten().chain(others.into_iter().flatten()).collect()
    }

    /// The controller of HorizontalPodAutoscalers, with what it reads and scales.
    pub(super) fn syncing(&mut self) -> Syncing<'_, 's> {
        let Self { sim, autoscalers, scaled_objects, metrics, loads, usages, prometheus, queues, .. } = self;
        Syncing { sim, autoscalers, scaled_objects, metrics, loads, usages, prometheus, queues }
    }

    /// Karpenter, with what it changes and what it reads.
    pub(super) fn karpenter(&mut self) -> karpenter::Running<'_, 's> {
        let Self { sim, karpenter: driver, node_templates, scheduler, volumes, .. } = self;
        karpenter::Running { sim, driver, node_templates, scheduler, volumes }
    }

    /// The Cluster Autoscaler, with what it changes and what it lists.
    pub(super) fn cluster_autoscaler(&mut self) -> (&mut Sim<'s>, &mut AutoscalerLoop, Lists<'_>) {
        let Self { sim, cluster_autoscaler, scheduler, volumes, node_groups, namespaces, .. } = self;
        (sim, cluster_autoscaler, Lists { scheduler, volumes, node_groups, namespaces })
    }

    /// The Vertical Pod Autoscaler, with what its resizes read and change.
    pub(super) fn resizing(&mut self) -> Resizing<'_, 's> {
        let Self { sim, vertical, controllers, cpu_shares, metrics, loads, usages, .. } = self;
        Resizing { sim, vertical, controllers, cpu_shares, metrics, loads, usages }
    }

    /// What a sample is taken of.
    pub(super) fn sampling(&mut self) -> Sampling<'_, 's> {
        let Self { sim, controllers, jobs, autoscalers, metrics, loads, usages, queues, .. } = self;
        let (nodes_eligible, nodes_unneeded) = (self.karpenter.eligible(), self.cluster_autoscaler.unneeded());
        Sampling { sim, controllers, jobs, autoscalers, metrics, loads, usages, queues, nodes_eligible, nodes_unneeded }
    }

    /// Pods on Fargate, in order of their start.
    pub fn fargate_pods(&self) -> &[FargatePod] {
        self.fargate.lives()
    }

    /// Every load's workload (once applied) and its queue, brought up to `now`.
    pub fn request_models(&mut self, now: SimTime) -> Vec<(WorkloadId, &RequestModel)> {
        for load in &mut self.loads.all {
            load.model.advance(now);
        }
        self.loads.all.iter().filter_map(|load| Some((load.id?, &load.model))).collect()
    }

    /// What burstable nodes used beyond their credits until they ended, or `end`, in millionths of a vCPU-hour, in order of node.
    pub fn credits_surplus(&mut self, end: SimTime) -> Vec<(NodeId, i64)> {
        let Self { cpu_shares, sim, .. } = self;
        let terminating = |node| sim.machine(node).and_then(|machine| sim.ec2.instance(machine.instance).terminating);
        cpu_shares.credits.surplus(|node| terminating(node).unwrap_or(end).min(end))
    }

    /// Lets what becomes of requests count from `now` on.
    pub fn count_requests_anew(&mut self, now: SimTime) {
        for load in &mut self.loads.all {
            load.model.count_anew(now);
        }
    }

    /// The queues, brought up to `now`, in the order of the setup.
    pub fn work_queues(&mut self, now: SimTime) -> Vec<&WorkQueue> {
        for queue in &mut self.queues.all {
            queue.queue.advance(now);
        }
        self.queues.all.iter().map(|queue| &queue.queue).collect()
    }

    /// Autoscalers of replicas that there are, with what they scale.
    pub fn replica_autoscalers(&self) -> impl Iterator<Item = (&HorizontalPodAutoscaler, WorkloadId)> {
        self.autoscalers.scales()
    }

    /// Bytes of images that each node pulled, in order of node.
    pub fn bytes_pulled(&self) -> Vec<(NodeId, i64)> {
        self.images.bytes_pulled()
    }

    /// The part of these bytes that is images of private repositories of ECR in the region.
    pub fn bytes_from_ecr(&self) -> BTreeMap<NodeId, i64> {
        self.images.bytes_from_ecr()
    }

    /// Pods that were bound to nodes which do not attach their volumes, and those nodes.
    pub fn over_attach_limits(&self) -> (usize, usize) {
        self.volumes.over_limits()
    }

    /// The EBS volumes of claims, for the bill.
    pub fn disks(&self) -> &[Disk] {
        self.volumes.disks()
    }
}

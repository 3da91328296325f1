//! A pod's life on its node: image pull, start, readiness, stop.
//!
//! What a manifest does not say is assumed unless the scenario says it: images of 100 MB, pulled at 80 MB/s and unpacked at 180
//! MB/s; init containers that take no time, applications that answer at once and stop within a second.
//!
//! Source: Kubernetes 1.36 `pkg/kubelet/kuberuntime`.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::actor_events::ActorEvent;
use super::event::{AttachmentId, KubeletEvent, class};
use super::probes;
use super::sim::Sim;
use super::volumes::{self, Volumes};
use crate::cluster::{NodeOrigin, NodePhase, PodPhase};
use crate::domain::{NodeId, PodId, SimDuration, SimTime, Symbol};
use crate::world::found::FoundPod;
use crate::world::record::EventKind;
use nodecast_settings::ImageSettings;

/// From the pull's begin to the first byte: registry and manifests.
pub const PULL_OVERHEAD: SimDuration = SimDuration::from_millis(1_500);
/// An image that the node has.
const CACHED_PULL: SimDuration = SimDuration::from_millis(300);
/// From the last image pulled to the containers running.
pub const CONTAINER_START: SimDuration = SimDuration::from_secs(1);
/// What a hook that runs when the grace period ends is given once more.
///
/// Source: `kuberuntime_container.go`, `minimumGracePeriodInSeconds`.
const HOOK_EXTENSION: SimDuration = SimDuration::from_secs(2);
/// From binding to the kubelet taking the pod up.
pub const BIND: SimDuration = SimDuration::from_millis(20);

/// The images of every node that there is, and what each that ever was has pulled.
#[derive(Debug, Default)]
pub(super) struct Images {
    of_node: FxHashMap<NodeId, NodeImages>,
    pulled: BTreeMap<NodeId, i64>,
    /// The part of these that is images of private repositories of ECR in the region.
    from_ecr: BTreeMap<NodeId, i64>,
}

/// The images of a node: from when on each is there, and when the node can pull the next one.
#[derive(Debug, Default)]
struct NodeImages {
    /// Some tens at most.
    there: Vec<(Symbol, SimTime)>,
    pulling_until: Option<SimTime>,
}

impl Images {
    /// When `image` can be used on `node` if it is asked for at `from`. A node pulls one image at a time.
    fn available(&mut self, settings: Pulls<'_>, node: NodeId, image: Symbol, from: SimTime) -> SimTime {
        let this_node = self.of_node.entry(node).or_default();
        if let Some((_, there)) = this_node.there.iter().find(|(known, _)| *known == image) {
            return (*there).max(from + CACHED_PULL);
        }
        let idle = this_node.pulling_until.unwrap_or(from);
        let bytes = settings.images.size_of(image);
        let there = idle.max(from) + pull_time(settings, bytes);
        this_node.there.push((image, there));
        this_node.pulling_until = Some(there);
        *self.pulled.entry(node).or_insert(0) += bytes;
        if settings.is_in_ecr(image) {
            *self.from_ecr.entry(node).or_insert(0) += bytes;
        }
        there
    }

    /// The run began with the image on the node.
    fn found(&mut self, node: NodeId, image: Symbol, at: SimTime) {
        let node = self.of_node.entry(node).or_default();
        match node.there.iter_mut().find(|(known, _)| *known == image) {
            Some((_, there)) => *there = at,
            None => node.there.push((image, at)),
        }
    }

    /// The machine of a node was another node before, whose images are on its disk.
    pub(super) fn inherit(&mut self, former: NodeId, node: NodeId) {
        if let Some(images) = self.of_node.remove(&former) {
            self.of_node.insert(node, images);
        }
    }

    /// The node is gone, and its images with it.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.of_node.remove(&node);
    }

    /// Bytes that each node pulled.
    pub(super) fn bytes_pulled(&self) -> Vec<(NodeId, i64)> {
        self.pulled.iter().map(|(&node, &bytes)| (node, bytes)).collect()
    }

    /// The part of these bytes that is images of private repositories of ECR in the region.
    pub(super) fn bytes_from_ecr(&self) -> BTreeMap<NodeId, i64> {
        self.from_ecr.clone()
    }
}

/// How images are pulled to a node.
#[derive(Clone, Copy)]
struct Pulls<'s> {
    images: &'s ImageSettings,
    /// Bytes per second that come in, and that are unpacked.
    rates: (i64, i64),
    region: &'s str,
}

impl<'s> Pulls<'s> {
    /// To a node: Fargate has a rate of its own, which includes unpacking.
    fn to(sim: &Sim<'s>, node: NodeId) -> Self {
        let images = &sim.setup.scenario.images;
        let of_fargate = matches!(sim.world.node(node).origin, NodeOrigin::Fargate(_));
        let fargate = sim.setup.policy.fargate.as_ref().filter(|_| of_fargate);
        let rates = fargate.map_or((images.pull_rate, images.unpack_rate), |fargate| (fargate.pull_rate, i64::MAX));
        Self { images, rates, region: sim.setup.region.name.as_str() }
    }

    /// Whether an image is in a private repository of ECR in the region: `ACCOUNT.dkr.ecr.REGION.amazonaws.com/...`.
    fn is_in_ecr(self, image: Symbol) -> bool {
        let host = image.as_str().split('/').next().unwrap_or_default();
        host.split_once(".dkr.ecr.").is_some_and(|(_, rest)| rest.split('.').next() == Some(self.region))
    }
}

/// Time to fetch and unpack an image, to a tenth of a second.
fn pull_time(settings: Pulls<'_>, bytes: i64) -> SimDuration {
    let at_rate =
        |rate: i64| SimDuration::from_micros((i128::from(bytes) * 1_000_000 / i128::from(rate.max(1))) as i64);
    let exact = PULL_OVERHEAD + at_rate(settings.rates.0) + at_rate(settings.rates.1);
    SimDuration::from_millis((exact.as_micros() + 50_000).div_euclid(100_000) * 100)
}

/// The pod has just been bound: its volumes are attached and its images pulled, those of init containers first, then its
/// containers start.
pub(super) fn take_up(sim: &mut Sim<'_>, images: &mut Images, volumes: &mut Volumes, now: SimTime, pod: PodId) {
    let Some(attached) = volumes.attach(sim, now, pod) else { return };
    let state = sim.world.pod(pod);
    let Some(node) = state.node else { return };
    let times = sim.times_of(state.workload);
    let settings = Pulls::to(sim, node);
    let network = if state.spec.host_network { None } else { network_ready(sim, node) };
    let mounted = volumes::efs_mounted(volumes, sim, pod, node);
    let mut at = attached.max(now + BIND).max(network.unwrap_or(now)).max(mounted.unwrap_or(now));
    for init in &state.spec.init_containers {
        let image = Symbol::new(&init.container.image);
        at = images.available(settings, node, image, at) + CONTAINER_START;
        // A sidecar goes on beside the others once it has started; anything else has to end first.
        at += if init.sidecar {
            init.container
                .startup_probe
                .map_or(SimDuration::ZERO, |probe| probes::first_success(probe, SimDuration::ZERO))
        } else {
            times.init_time
        };
    }
    let pulled = state.spec.containers.iter().map(|container| Symbol::new(&container.image));
    let there = pulled.map(|image| images.available(settings, node, image, at)).max().unwrap_or(at);
    sim.queue.schedule(there + CONTAINER_START, class::MACHINES, KubeletEvent::PodStarted(pod));
}

/// When the network plugin of a node is ready; `None` for a node without a machine. Before, the kubelet starts no pod outside the host's
/// network, and pulls none of its images.
///
/// Source: Kubernetes 1.36 `pkg/kubelet/kubelet.go`, `SyncPod` (`NetworkNotReady`).
/// Deviation: the network plugin is ready after its time in `ec2.launch_latency`, whenever the pod of its DaemonSet
/// runs. The kubelet then checks its pods at once, not within 1.5s.
fn network_ready(sim: &Sim<'_>, node: NodeId) -> Option<SimTime> {
    let registered = sim.world.record().nodes.get(node.index())?.registered?;
    let boot = sim.machine(node)?.boot;
    Some(registered + (boot.network - boot.registered))
}

/// A volume is detached: pods that wait for it go on.
pub(super) fn volume_detached(
    sim: &mut Sim<'_>,
    images: &mut Images,
    volumes: &mut Volumes,
    now: SimTime,
    id: AttachmentId,
) {
    for pod in volumes.detached(now, id) {
        let state = sim.world.pod(pod);
        if state.phase == PodPhase::Starting && state.is_active() {
            take_up(sim, images, volumes, now, pod);
        }
    }
}

/// A pod is on its node as the run begins: what runs has its images and takes its share of the work.
pub(super) fn found(
    sim: &mut Sim<'_>,
    images: &mut Images,
    volumes: &mut Volumes,
    now: SimTime,
    pod: PodId,
    found: FoundPod,
) {
    if !found.running {
        return take_up(sim, images, volumes, now, pod);
    }
    // Its volumes have been attached for long: when they are ready is of no matter.
    let _ = volumes.attach(sim, now, pod);
    let state = sim.world.pod(pod);
    let init = state.spec.init_containers.iter().map(|init| &init.container.image);
    for image in state.spec.containers.iter().map(|container| &container.image).chain(init) {
        images.found(found.node, Symbol::new(image), now);
    }
    sim.publish(ActorEvent::PodStarted(pod));
    if found.ready {
        sim.publish(ActorEvent::PodServes(pod));
    } else if let Some(wait) = probes::pod_ready_after(sim, pod) {
        sim.queue.schedule_in(wait, class::MACHINES, KubeletEvent::PodReady(pod));
    }
}

/// The pod's containers run; its readiness probe, if it has one, is what Ready waits for.
pub(super) fn start(sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
    let state = sim.world.pod(pod);
    if state.phase != PodPhase::Starting || !state.is_active() {
        return;
    }
    sim.world.start_pod(pod, now);
    sim.publish(ActorEvent::PodStartsUp(pod));
    sim.publish(ActorEvent::PodStarted(pod));
    probes::watch(sim, pod);
    match probes::pod_ready_after(sim, pod) {
        // What starts is counted before it is Ready.
        Some(SimDuration::ZERO) => sim.publish(ActorEvent::PodAnswers(pod)),
        Some(wait) => {
            sim.queue.schedule_in(wait, class::MACHINES, KubeletEvent::PodReady(pod));
        }
        None => {}
    }
}

/// The pod is Ready.
pub(super) fn ready(sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
    let state = sim.world.pod(pod);
    if state.phase != PodPhase::Running || !state.is_active() || state.is_ready() {
        return;
    }
    if state.node.is_some_and(|node| sim.world.node(node).phase >= NodePhase::Terminating) {
        return;
    }
    // A container that has been killed since is Ready only as long after its last start.
    let due = state.started.zip(probes::pod_ready_after(sim, pod)).map(|(started, wait)| started + wait);
    if due.is_none_or(|due| due > now) {
        return;
    }
    sim.world.ready_pod(pod, now);
    sim.publish(ActorEvent::PodServes(pod));
    sim.publish(ActorEvent::PodReady(pod));
}

/// Somebody deletes the pod: its endpoint leaves at once; an unbound pod is gone at once, a bound one when it has stopped.
pub(super) fn delete(sim: &mut Sim<'_>, now: SimTime, pod: PodId, evicted: bool, reason: &str) {
    if sim.world.pod(pod).is_active() {
        let grace = sim.world.pod(pod).spec.grace_period();
        delete_within(sim, now, pod, grace, evicted, reason);
    }
}

/// Somebody deletes the pod with a grace period of his own; a pod that is being deleted is given less time.
pub(super) fn delete_within(
    sim: &mut Sim<'_>,
    now: SimTime,
    pod: PodId,
    grace: SimDuration,
    evicted: bool,
    reason: &str,
) {
    let state = sim.world.pod(pod);
    if state.phase == PodPhase::Gone {
        return;
    }
    let (bound, was_ready, again) = (state.node, state.is_ready(), state.deletion_requested.is_some());
    let ends = state.deletion_ends;
    sim.world.request_pod_deletion(pod, now, grace, evicted, reason);
    if again && sim.world.pod(pod).deletion_ends == ends {
        return;
    }
    sim.publish(ActorEvent::PodDeleted(pod));
    if was_ready {
        sim.publish(ActorEvent::PodStoppedServing(pod));
    }
    match bound {
        None => {
            sim.publish(ActorEvent::PodWithdrawn(pod));
            leave(sim, now, pod);
        }
        Some(node) => {
            let stops_in = stop_time(sim, pod, grace);
            sim.queue.schedule_in(stops_in, class::MACHINES, KubeletEvent::PodStopped(pod));
            sim.publish(if again { ActorEvent::GraceShortened(pod) } else { ActorEvent::PodTerminating(pod, node) });
        }
    }
}

/// From the order to stop to the end: the hook, then the application, at most the grace period; a hook that is still running
/// then gets a little more. The hooks of all containers run at once. A native sidecar is stopped when its hook and all other containers have
/// ended, and takes no time to that.
///
/// Source: `kuberuntime_container.go`, `killContainer`; `kuberuntime_termination_order.go`.
pub(super) fn stop_time(sim: &Sim<'_>, pod: PodId, grace: SimDuration) -> SimDuration {
    let state = sim.world.pod(pod);
    let longest = |hooks: &mut dyn Iterator<Item = SimDuration>| hooks.max().unwrap_or(SimDuration::ZERO);
    let hook = longest(&mut state.spec.containers.iter().map(|container| container.pre_stop));
    let of_sidecars = longest(&mut state.spec.sidecars().map(|container| container.pre_stop));
    let most = if hook >= grace && grace > SimDuration::ZERO { grace + HOOK_EXTENSION } else { grace };
    let stopped = (hook + sim.times_of(state.workload).shutdown_time).min(most);
    stopped.max(of_sidecars.min(grace))
}

/// The pod's containers have stopped.
pub(super) fn stopped(sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
    if sim.world.pod(pod).phase != PodPhase::Gone {
        leave(sim, now, pod);
    }
}

/// The pod leaves its node.
fn leave(sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
    let node = sim.world.pod(pod).node;
    sim.world.remove_pod(pod, now);
    sim.publish(ActorEvent::PodGone(pod, node));
}

/// The pod's containers have ended by themselves, their work done.
pub(super) fn succeeded(sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
    cut_off(sim, now, pod);
    sim.world.note_pod(pod, now, EventKind::PodSucceeded, "");
    sim.publish(ActorEvent::PodFinished(pod));
    stopped(sim, now, pod);
}

/// The pod's containers have ended by themselves, their work not done.
pub(super) fn failed(sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
    cut_off(sim, now, pod);
    sim.world.note_pod(pod, now, EventKind::PodFailed, "");
    sim.publish(ActorEvent::PodFinished(pod));
    stopped(sim, now, pod);
}

/// The kubelet does not admit the pod, which had not started: it has failed, for `reason`.
pub(super) fn rejected(sim: &mut Sim<'_>, now: SimTime, pod: PodId, reason: &str) {
    sim.world.note_pod(pod, now, EventKind::PodFailed, reason);
    sim.publish(ActorEvent::PodWithdrawn(pod));
    stopped(sim, now, pod);
}

/// The pod's machine is gone without a word: it answers no more, and nobody has noticed yet.
pub(super) fn cut_off(sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
    if sim.world.pod(pod).is_ready() {
        sim.world.unready_pod(pod, now);
        sim.publish(ActorEvent::PodStoppedServing(pod));
    }
}

/// The node is gone, and the pod with it.
pub(super) fn lost(sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
    let state = sim.world.pod(pod);
    if state.phase == PodPhase::Gone {
        return;
    }
    let was_ready = state.is_ready();
    if state.is_active() {
        sim.world.request_pod_deletion(pod, now, SimDuration::ZERO, true, "its node is gone");
        sim.publish(ActorEvent::PodDeleted(pod));
    }
    if was_ready {
        sim.publish(ActorEvent::PodStoppedServing(pod));
    }
    sim.world.remove_pod(pod, now);
    sim.publish(ActorEvent::PodLost(pod));
}

/// Notes that are about a pod's owner, kept here so that their wording is in one place.
pub(super) fn note_applied(sim: &mut Sim<'_>, now: SimTime, workload: crate::domain::WorkloadId, what: &str) {
    sim.world.note(now, EventKind::ManifestApplied, Some(workload), what);
}

//! Persistent volumes during a run: claims are made and bound, volumes attached to nodes and detached from them.
//!
//! A claim that waits for its first pod gets its volume in the zone of the node that this pod is bound to, and keeps it. One of a
//! class that binds at once gets it in a zone drawn from those that the class allows. Only volumes of EBS have a zone and are
//! attached; those of other drivers are reached from everywhere. How long making, attaching and detaching take is assumed.
//!
//! Deviation: a created volume is visible at once. An existing volume is bound only to a claim that names it or that
//! it is reserved for (`claimRef`).
//!
//! Deviation: a volume has the VolumeAttributesClass of the last description of its claim from its creation. No
//! volume is modified later.
//!
//! Source: Kubernetes 1.36 `pkg/controller/volume/attachdetach`, `pkg/scheduler/framework/plugins/volumebinding`.
//!
//! What must not live here: where a pod may run because of its volumes (`nodecast-scheduler`, `karpenter::packing`).

mod applied;
mod limits;

pub(super) use applied::apply_claim;
pub(crate) use limits::EBS_DAEMON_SET;
pub(super) use limits::{DRIVER_REGISTERS, driver_registered, efs_mounted, runs_ebs_driver};

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::event::{AttachmentId, Event, class};
use super::pod_gc;
use super::setup::Setup;
use super::sim::Sim;
use crate::cloud::billing::disks::Disk;
use crate::cluster::PodPhase;
use crate::domain::pod::{ClaimSource, NodeSelectorExpression, NodeSelectorTerm, VolumeRef};
use crate::domain::requirements::Operator;
use crate::domain::volumes::{PersistentVolume, PersistentVolumeClaim, Storage, StorageClass, VolumeBindingMode};
use crate::domain::workload::ObjectName;
use crate::domain::{Labels, NodeId, PodId, SimDuration, SimTime, Symbol, well_known};
use crate::world::record::EventKind;
use nodecast_scheduler::PodVolumes;

/// From a claim's first pod being placed to its volume being made: assumed.
const PROVISION: SimDuration = SimDuration::from_secs(3);
/// From a pod's binding to its volume being attached and mounted: assumed.
const ATTACH: SimDuration = SimDuration::from_secs(5);
/// From the end of a volume's last pod on a node to the volume being detached: assumed.
const DETACH: SimDuration = SimDuration::from_secs(5);
/// The same where the node is gone and nobody says that the volume is unmounted.
///
/// Source: `attach_detach_controller.go`, `ReconcilerMaxWaitForUnmountDuration`.
const FORCED_DETACH: SimDuration = SimDuration::from_secs(360);

/// Namespace and name of a claim.
type ClaimName = (Symbol, Symbol);

#[derive(Debug)]
struct Attachment {
    claim: ClaimName,
    node: NodeId,
    /// The pods on the node that use it.
    pods: Vec<PodId>,
    /// When it can be used.
    ready: SimTime,
    /// When it is detached, once no pod uses it.
    leaves: Option<SimTime>,
}

/// Claims, volumes, and what is attached where.
#[derive(Debug)]
pub(super) struct Volumes {
    storage: Storage,
    /// When volumes made during the run are there.
    made: FxHashMap<ClaimName, SimTime>,
    attachments: Vec<Attachment>,
    of_claim: FxHashMap<ClaimName, Vec<AttachmentId>>,
    on_node: FxHashMap<NodeId, Vec<AttachmentId>>,
    /// Pods that cannot start because a volume of theirs is attached elsewhere.
    waiting: FxHashMap<ClaimName, Vec<PodId>>,
    /// Limits that kube-scheduler sees.
    limits: FxHashMap<NodeId, Vec<(Symbol, u32)>>,
    /// Limits of nodes whose driver reports late.
    unreported: FxHashMap<NodeId, u32>,
    /// Whether nodes whose driver has not reported take no pods with EBS volumes.
    requires_driver: bool,
    /// Pods that cannot start because their node attaches no more volumes.
    over_limit: FxHashMap<NodeId, Vec<PodId>>,
    /// All that ever were.
    refused: BTreeSet<(NodeId, PodId)>,
    /// Every EBS volume that was there, for the bill.
    disks: Vec<Disk>,
    /// The place in the list of the volume that has a name now.
    disk_of: FxHashMap<Symbol, usize>,
    /// Claims that somebody has deleted and that a pod still uses.
    leaving: FxHashSet<ClaimName>,
    /// Pods with claims of their own that have ended by themselves and whose objects are there.
    ended: FxHashSet<PodId>,
    /// Pods that have ended so, by their node.
    ended_on: FxHashMap<NodeId, Vec<PodId>>,
}

impl Volumes {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        Self {
            storage: setup.storage.clone(),
            made: FxHashMap::default(),
            attachments: Vec::new(),
            of_claim: FxHashMap::default(),
            on_node: FxHashMap::default(),
            waiting: FxHashMap::default(),
            limits: FxHashMap::default(),
            unreported: FxHashMap::default(),
            requires_driver: limits::requires_driver(setup),
            over_limit: FxHashMap::default(),
            refused: BTreeSet::new(),
            disks: Vec::new(),
            disk_of: FxHashMap::default(),
            leaving: FxHashSet::default(),
            ended: FxHashSet::default(),
            ended_on: FxHashMap::default(),
        }
    }

    /// Every EBS volume of known size that was there.
    pub(super) fn disks(&self) -> &[Disk] {
        &self.disks
    }

    /// A volume begins to be billed.
    fn bill(&mut self, volume: &PersistentVolume, from: SimTime) {
        let Some(gib) = volume.gib.filter(|_| volume.driver == Some(well_known::EBS_DRIVER)) else { return };
        let expressions = volume.node_affinity.iter().flat_map(|term| &term.expressions);
        let zone = expressions
            .filter(|expression| expression.key == well_known::ZONE)
            .find_map(|expression| expression.values.first().copied());
        let class = self.storage.disk_of(volume);
        if self.disk_of.get(&volume.name).is_some_and(|&place| self.disks[place].until.is_none()) {
            // It has been retained, and is billed since.
            return;
        }
        self.disk_of.insert(volume.name, self.disks.len());
        self.disks.push(Disk { zone, gib, class, from, until: None });
    }

    /// The claims, volumes and classes as they are now.
    pub(super) const fn storage(&self) -> &Storage {
        &self.storage
    }

    /// How many volumes of each driver a node can attach, once it has registered.
    pub(super) fn limits(&self, node: NodeId) -> &[(Symbol, u32)] {
        self.limits.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Whether a claim's volume is one that is attached to nodes.
    fn is_attached(&self, claim: &PersistentVolumeClaim) -> bool {
        self.storage.bound(claim).is_some_and(|volume| volume.driver == Some(well_known::EBS_DRIVER))
    }

    fn attachment(&mut self, id: AttachmentId) -> &mut Attachment {
        &mut self.attachments[id.0 as usize]
    }

    /// What the volumes of a pod ask of a node as things are now.
    pub(super) fn of_pod(&self, sim: &Sim<'_>, pod: PodId) -> PodVolumes {
        let state = sim.world.pod(pod);
        if state.spec.volumes.is_empty() {
            return PodVolumes::default();
        }
        PodVolumes::new(&self.storage, state.namespace, sim.world.pod_name(pod), &state.spec)
    }

    /// Volumes that are there cost from the start on; claims of classes that bind at once get theirs.
    pub(super) fn begin(&mut self, sim: &Sim<'_>) {
        for volume in sim.setup.storage.volumes_in_order() {
            self.bill(volume, SimTime::ZERO);
        }
        for claim in sim.setup.storage.claims_in_order() {
            self.bind_at_once(sim, claim);
        }
    }

    /// A pod has been created: the claims that come with it are made.
    pub(super) fn pod_created(&mut self, sim: &mut Sim<'_>, pod: PodId) {
        if sim.world.pod(pod).spec.volumes.is_empty() {
            return;
        }
        let state = sim.world.pod(pod);
        let (namespace, name) = (state.namespace, sim.world.pod_name(pod));
        let made = |volume| PersistentVolumeClaim::made_for(volume, namespace, name);
        let claims: Vec<PersistentVolumeClaim> = state.spec.volumes.iter().filter_map(made).collect();
        for mut claim in claims {
            // The empty name asks for a volume made by hand; of such a one nothing is known.
            claim.class = claim.class.filter(|class| *class != well_known::EMPTY);
            if self.storage.claim(claim.namespace, claim.name.as_str()).is_none() {
                self.storage.put_claim(claim);
                self.bind_at_once(sim, &claim);
            }
        }
    }

    /// Gives a claim its volume in one of the zones that its class allows, if the class does not wait for the first pod.
    fn bind_at_once(&mut self, sim: &Sim<'_>, claim: &PersistentVolumeClaim) {
        let Some(class) = self.storage.class_of(claim) else { return };
        if claim.volume.is_some() || class.binding_mode != VolumeBindingMode::Immediate {
            return;
        }
        let (setup, allowed) = (sim.setup, &class.allowed_topologies);
        let mut everywhere = Labels::new().with(well_known::REGION, setup.region.name);
        if setup.policy.auto_mode.is_some() {
            // Classes of EKS Auto Mode name its nodes: that leaves every zone open.
            everywhere.set(well_known::EKS_COMPUTE_TYPE, well_known::AUTO);
        }
        let mut zones = setup.scenario.zones.clone();
        zones.retain(|&zone| {
            // The driver knows its own key; the other is that of the provisioner within Kubernetes.
            let labels = everywhere.clone().with(well_known::ZONE, zone).with(well_known::EBS_ZONE, zone);
            allowed.is_empty() || allowed.iter().any(|term| term.accepts(&labels, ""))
        });
        if zones.is_empty() {
            return;
        }
        let entity = format!("{}/{}", claim.namespace, claim.name);
        let draw = sim.streams.stream("volume-zone", &entity).uniform();
        let zone = zones[((draw * zones.len() as f64) as usize).min(zones.len() - 1)];
        let class = VolumeSpec::by(class);
        self.bind(sim, claim, class, Some(zone));
    }

    fn bind(&mut self, sim: &Sim<'_>, claim: &PersistentVolumeClaim, made: VolumeSpec, zone: Option<Symbol>) {
        debug_assert!(claim.volume.is_none(), "claim {} is bound already", claim.name);
        let (driver, now) = (made.driver, sim.queue.now());
        let name = name_of_made((claim.namespace, claim.name));
        let zone = zone.filter(|_| driver == well_known::EBS_DRIVER);
        let in_zone = zone.map(|zone| NodeSelectorTerm {
            expressions: vec![NodeSelectorExpression {
                key: well_known::ZONE,
                operator: Operator::In,
                values: vec![zone],
            }],
            fields: Vec::new(),
        });
        let volume = PersistentVolume {
            name,
            driver: Some(driver),
            node_affinity: in_zone.into_iter().collect(),
            node_local: false,
            deleting: false,
            class: Some(made.class),
            attributes: claim.attributes,
            gib: claim.gib(),
            retain: made.retain,
            kept_for: None,
        };
        self.bill(&volume, now);
        self.storage.put_volume(volume);
        self.storage.put_claim(PersistentVolumeClaim { volume: Some(name), bind_completed: true, ..*claim });
    }

    /// A pod has been bound: claims that waited for it get their volumes in the node's zone.
    pub(super) fn pod_bound(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId, node: NodeId) {
        if sim.world.pod(pod).spec.volumes.is_empty() {
            return;
        }
        let zone = sim.world.node(node).labels.get(well_known::ZONE);
        for (_, (namespace, name)) in claims_of(sim, pod) {
            let storage = &self.storage;
            let Some(claim) = storage.claim(namespace, name.as_str()).filter(|claim| claim.volume.is_none()).copied()
            else {
                continue;
            };
            let Some(made) = storage.class_of(&claim).map(VolumeSpec::by) else { continue };
            let driver = made.driver;
            self.bind(sim, &claim, made, zone);
            self.made.insert((namespace, name), now + PROVISION);
            let place = if driver == well_known::EBS_DRIVER { zone } else { None };
            let place = place.map_or_else(String::new, |zone| format!(" in {zone}"));
            sim.world.note_pod(pod, now, EventKind::ProvisioningSucceeded, &format!("claim {name}{place}"));
        }
    }

    /// Attaches a pod's volumes to its node; says when all can be used. `None` if one is attached to another node still: the pod is
    /// taken up again once it is not.
    pub(super) fn attach(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId) -> Option<SimTime> {
        if sim.world.pod(pod).spec.volumes.is_empty() {
            return Some(now);
        }
        let node = sim.world.pod(pod).node?;
        let mut ready = Some(now);
        for (_, claim) in claims_of(sim, pod) {
            let known = self.storage.claim(claim.0, claim.1.as_str());
            if !known.is_some_and(|claim| self.is_attached(claim)) {
                continue;
            }
            match attach_one(self, now, (pod, node), claim) {
                Ok(at) => ready = ready.map(|ready| ready.max(at)),
                Err(refusal) => {
                    let message = match refusal {
                        Refusal::AttachedTo(other) => {
                            let name = sim.world.node(other).name;
                            format!("Multi-Attach error for claim {}: attached to {name}", claim.1)
                        }
                        Refusal::Full(limit) => {
                            format!("claim {}: the node attaches {limit} volumes and no more", claim.1)
                        }
                    };
                    sim.world.note_pod(pod, now, EventKind::FailedAttachVolume, &message);
                    ready = None;
                }
            }
        }
        ready
    }

    /// The claim whose volume is attached to another node, so that the pod does not start.
    pub(super) fn waits_for(&self, sim: &Sim<'_>, pod: PodId) -> Option<Symbol> {
        let state = sim.world.pod(pod);
        if state.phase != PodPhase::Starting || !state.is_active() {
            return None;
        }
        let waits = |claim: &ClaimName| self.waiting.get(claim).is_some_and(|pods| pods.contains(&pod));
        claims_of(sim, pod).into_iter().map(|(_, claim)| claim).find(waits).map(|claim| claim.1)
    }

    /// A volume is detached, unless a pod has come to use it again: the pods that wait for it, on other nodes or for room on this.
    pub(super) fn detached(&mut self, now: SimTime, id: AttachmentId) -> Vec<PodId> {
        let attachment = self.attachment(id);
        if attachment.leaves != Some(now) {
            return Vec::new();
        }
        let (claim, node) = (attachment.claim, attachment.node);
        // So that a second event of the same instant finds nothing to do.
        attachment.leaves = None;
        if let Some(claim) = self.of_claim.get_mut(&claim) {
            claim.retain(|&other| other != id);
        }
        if let Some(node) = self.on_node.get_mut(&node) {
            node.retain(|&other| other != id);
        }
        let mut waiting = self.waiting.remove(&claim).unwrap_or_default();
        waiting.extend(self.over_limit.remove(&node).unwrap_or_default());
        waiting
    }

    /// A pod is gone: volumes that no other pod of its node uses are detached in a while; one whose node is `lost` only when the
    /// controller gives up waiting for it.
    pub(super) fn pod_gone(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId, lost: bool) {
        self.release(sim, pod, now + if lost { FORCED_DETACH } else { DETACH });
        if !self.ended.contains(&pod) {
            self.delete_ephemeral(sim, pod);
        }
    }

    /// A pod has ended by itself: where its object stays, the claims that came with it do too.
    pub(super) fn pod_finished(&mut self, sim: &Sim<'_>, pod: PodId) {
        if !has_ephemeral(sim, pod) || !sim.world.workload(sim.world.pod(pod).workload).kind.keeps_ended_pods() {
            return;
        }
        self.ended.insert(pod);
        if let Some(node) = sim.world.pod(pod).node {
            self.ended_on.entry(node).or_default().push(pod);
        }
    }

    /// The object of a pod that had ended by itself is deleted, if it is there, and the claims that came with it.
    pub(super) fn delete_ended(&mut self, sim: &Sim<'_>, pod: PodId) {
        // Another pod may have the name of one that is not there, and claims that are called so.
        if self.ended.remove(&pod) {
            self.delete_ephemeral(sim, pod);
        }
    }

    /// The garbage collector of pods finds those that had ended on a node that is not there any more.
    pub(super) fn delete_ended_on(&mut self, sim: &Sim<'_>, node: NodeId) {
        for pod in self.ended_on.remove(&node).unwrap_or_default() {
            self.delete_ended(sim, pod);
        }
    }

    /// A pod uses its volumes no more: those that no other pod of its node uses are detached when it is time, and claims that somebody
    /// has deleted go if no other pod uses them.
    fn release(&mut self, sim: &mut Sim<'_>, pod: PodId, leaves: SimTime) {
        if sim.world.pod(pod).spec.volumes.is_empty() {
            return;
        }
        for (_, claim) in claims_of(sim, pod) {
            for id in self.of_claim.get(&claim).cloned().unwrap_or_default() {
                let attachment = self.attachment(id);
                let before = attachment.pods.len();
                attachment.pods.retain(|&other| other != pod);
                if attachment.pods.len() < before && attachment.pods.is_empty() {
                    attachment.leaves = Some(leaves);
                    sim.queue.schedule(leaves, class::MACHINES, Event::VolumeDetached(id));
                }
            }
            if self.leaving.contains(&claim) && !is_used(sim, claim, Some(pod)) {
                self.delete_claim(sim, claim);
            }
        }
    }

    /// The claims that came with a pod are deleted with its object, whose they are.
    ///
    /// Source: Kubernetes 1.36 `pkg/controller/volume/ephemeral`.
    fn delete_ephemeral(&mut self, sim: &Sim<'_>, pod: PodId) {
        if sim.world.pod(pod).spec.volumes.is_empty() {
            return;
        }
        for (volume, claim) in claims_of(sim, pod) {
            if matches!(volume.source, ClaimSource::Ephemeral(_)) {
                self.delete_claim(sim, claim);
            }
        }
    }

    /// A claim is deleted, and its volume with it; one that is retained is there for nobody, and costs on.
    fn delete_claim(&mut self, sim: &Sim<'_>, claim: ClaimName) {
        let now = sim.queue.now();
        self.made.remove(&claim);
        self.leaving.remove(&claim);
        let Some(volume) = self.storage.remove_claim(claim.0, claim.1) else { return };
        // The next claim of this name gets a volume of the same name; others are found by theirs again.
        if volume.retain && volume.name != name_of_made(claim) {
            return self.storage.put_volume(volume);
        }
        let disk = self.disk_of.remove(&volume.name).filter(|_| !volume.retain);
        if let Some(disk) = disk.and_then(|place| self.disks.get_mut(place)) {
            disk.until = Some(now);
        }
    }

    /// Somebody deletes a claim; whether it is there. One that a pod uses stays until that pod is gone.
    pub(super) fn delete_by_hand(&mut self, sim: &Sim<'_>, name: ObjectName) -> bool {
        let claim = (name.namespace, name.name);
        if self.storage.claim(claim.0, claim.1.as_str()).is_none() {
            return false;
        }
        if is_used(sim, claim, None) {
            self.leaving.insert(claim);
        } else {
            self.delete_claim(sim, claim);
        }
        true
    }

    /// The claims that a StatefulSet made for a pod that is gone for good are deleted.
    pub(super) fn delete_templates(&mut self, sim: &Sim<'_>, pod: PodId) {
        for (volume, claim) in claims_of(sim, pod) {
            if matches!(volume.source, ClaimSource::Template(_)) {
                self.delete_claim(sim, claim);
            }
        }
    }

    /// The claims that a StatefulSet made from these templates are deleted, those of pods that have been too many among them; one that a pod
    /// uses stays until that pod is gone.
    ///
    /// Source: Kubernetes 1.36 `pkg/controller/statefulset/stateful_set_utils.go`, `updateClaimOwnerRefForSetAndPod`: they are the set's.
    pub(super) fn delete_of_set(&mut self, sim: &Sim<'_>, set: ObjectName, templates: &[VolumeRef]) {
        let of_template = |volume: &&VolumeRef| matches!(volume.source, ClaimSource::Template(_));
        let stem = format!("{}-", set.name);
        let stems: Vec<_> = templates.iter().filter(of_template).map(|volume| volume.claim_name(&stem)).collect();
        let has_ordinal = |name: Symbol, stem: &str| {
            name.as_str().strip_prefix(stem).is_some_and(|ordinal| ordinal.parse::<u32>().is_ok())
        };
        let claims = self.storage.claims_in_order();
        let this_claim = claims
            .iter()
            .filter(|claim| claim.namespace == set.namespace && stems.iter().any(|stem| has_ordinal(claim.name, stem)));
        let object_names: Vec<ObjectName> =
            this_claim.map(|claim| ObjectName { namespace: claim.namespace, name: claim.name }).collect();
        for claim in object_names {
            self.delete_by_hand(sim, claim);
        }
    }

    /// Whether a volume is attached to the node that none of its pods uses for which `stays` says yes.
    pub(super) fn holds_node(&self, node: NodeId, stays: impl Fn(PodId) -> bool) -> bool {
        let attached = self.on_node.get(&node).into_iter().flatten();
        attached.into_iter().any(|id| !self.attachments[id.0 as usize].pods.iter().any(|&pod| stays(pod)))
    }

    /// The node is gone; pods that have ended on it follow when their garbage collector finds them.
    pub(super) fn node_gone(&mut self, sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
        self.limits.remove(&node);
        self.unreported.remove(&node);
        self.over_limit.remove(&node);
        let ended = self.ended_on.get(&node);
        if ended.is_some_and(|pods| pods.iter().any(|pod| self.ended.contains(pod))) {
            pod_gc::node_gone(sim, now, node);
        }
    }
}

/// The volumes of a pod with the names of their claims.
fn claims_of(sim: &Sim<'_>, pod: PodId) -> Vec<(VolumeRef, ClaimName)> {
    let state = sim.world.pod(pod);
    let name = |volume: &VolumeRef| Symbol::new(&volume.claim_name(sim.world.pod_name(pod)));
    state.spec.volumes.iter().map(|volume| (*volume, (state.namespace, name(volume)))).collect()
}

/// What a class says of the volumes that it makes.
#[derive(Clone, Copy)]
struct VolumeSpec {
    class: Symbol,
    driver: Symbol,
    retain: bool,
}

impl VolumeSpec {
    fn by(class: &StorageClass) -> Self {
        Self { class: class.name, driver: class.provisioner, retain: class.retain }
    }
}

/// How the volume is called that is made for a claim.
fn name_of_made(claim: ClaimName) -> Symbol {
    Symbol::new(&format!("pvc-{}-{}", claim.0, claim.1))
}

/// Why a volume is not attached.
enum Refusal {
    /// It is attached to this node.
    AttachedTo(NodeId),
    /// The node attaches this number, and pods use all.
    Full(u32),
}

/// When the pod can use the volume on its node, or why it cannot.
fn attach_one(
    volumes: &mut Volumes,
    now: SimTime,
    (pod, node): (PodId, NodeId),
    claim: ClaimName,
) -> Result<SimTime, Refusal> {
    let there = volumes.of_claim.get(&claim).cloned().unwrap_or_default();
    if let Some(&item) = there.iter().find(|&&id| volumes.attachments[id.0 as usize].node == node) {
        let attachment = volumes.attachment(item);
        attachment.leaves = None;
        if !attachment.pods.contains(&pod) {
            attachment.pods.push(pod);
        }
        return Ok(attachment.ready);
    }
    if let Some(&other) = there.first() {
        let waiting = volumes.waiting.entry(claim).or_default();
        if !waiting.contains(&pod) {
            waiting.push(pod);
        }
        return Err(Refusal::AttachedTo(volumes.attachment(other).node));
    }
    if let Some(limit) = volumes.full(node) {
        let waiting = volumes.over_limit.entry(node).or_default();
        if !waiting.contains(&pod) {
            waiting.push(pod);
        }
        volumes.refused.insert((node, pod));
        return Err(Refusal::Full(limit));
    }
    let ready = volumes.made.get(&claim).copied().unwrap_or(now).max(now) + ATTACH;
    let id = AttachmentId(volumes.attachments.len() as u32);
    volumes.attachments.push(Attachment { claim, node, pods: vec![pod], ready, leaves: None });
    volumes.of_claim.entry(claim).or_default().push(id);
    volumes.on_node.entry(node).or_default().push(id);
    debug_assert_eq!(volumes.of_claim.get(&claim).map(Vec::len), Some(1), "a volume is attached to one node");
    Ok(ready)
}

/// Whether claims of its own come with the pod.
pub(super) fn has_ephemeral(sim: &Sim<'_>, pod: PodId) -> bool {
    sim.world.pod(pod).spec.volumes.iter().any(|volume| matches!(volume.source, ClaimSource::Ephemeral(_)))
}

/// Whether a pod other than `gone` that is not gone names the claim: its finalizer keeps it until then.
///
/// Source: Kubernetes 1.36 `pkg/controller/volume/pvcprotection`.
fn is_used(sim: &Sim<'_>, claim: ClaimName, gone: Option<PodId>) -> bool {
    let of_namespace = sim.world.workloads().filter(|(_, item)| item.name.namespace == claim.0);
    let mut pods = of_namespace.flat_map(|(_, attachment)| &attachment.pods).filter(|&&pod| Some(pod) != gone);
    pods.any(|&pod| claims_of(sim, pod).iter().any(|(_, key)| *key == claim))
}

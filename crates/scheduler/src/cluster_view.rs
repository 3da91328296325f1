//! What the scheduler knows of the cluster, kept up to date change by change.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::node::{NodeEntry, PlacedPod, SchedulerNode};
use super::shape::{PeerId, PodShape, ShapeId, normalized_image};
use super::topology::{KeyIndex, TopologyKeys};
use super::volumes::PodVolumes;
use nodecast_model::domain::labels::{SelectorExpression, SelectorOperator, with_namespace_name};
use nodecast_model::domain::topology::PodAffinity;
use nodecast_model::domain::{LabelSelector, Labels, NodeId, PodId, PodSpec, ResourceName, SimTime, Symbol};

/// A Service as far as it concerns the scheduler: its selector says which pods belong together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Service {
    /// The Service's namespace.
    pub namespace: Symbol,
    /// Its selector; an empty one selects no pod.
    pub selector: Labels,
}

/// A place in the list of nodes; reused after its node is gone.
pub(super) type Slot = u32;

/// Region and zone of a node, as far as it is labelled with them.
pub(super) type Zone = (Option<Symbol>, Option<Symbol>);

/// Nodes in the order in which the scheduler looks at them.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/backend/cache/node_tree.go`.
#[derive(Clone, Default, Debug)]
struct NodeTree {
    zones: Vec<(Zone, Vec<Slot>)>,
}

impl NodeTree {
    fn add(&mut self, zone: Zone, slot: Slot) {
        match self.zones.iter_mut().find(|entry| entry.0 == zone) {
            Some(entry) => entry.1.push(slot),
            None => self.zones.push((zone, vec![slot])),
        }
    }

    fn remove(&mut self, zone: Zone, slot: Slot) {
        if let Some(at) = self.zones.iter().position(|entry| entry.0 == zone) {
            self.zones[at].1.retain(|&other| other != slot);
            if self.zones[at].1.is_empty() {
                self.zones.remove(at);
            }
        }
    }

    /// The first node of each zone, then the second of each, and so on.
    fn list(&self) -> Vec<Slot> {
        let longest = self.zones.iter().map(|entry| entry.1.len()).max().unwrap_or(0);
        (0..longest).flat_map(|turn| self.zones.iter().filter_map(move |entry| entry.1.get(turn).copied())).collect()
    }
}

/// A change of one slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Change {
    pub(super) slot: Slot,
    /// The peers whose number on the node changed, if nothing else did.
    pub(super) peer: Option<PeerId>,
}

/// Changes of nodes or their pods, in order; who keeps something derived from nodes catches up by reading from where
/// it stopped.
#[derive(Clone, Default, Debug)]
struct Journal {
    /// The number of the first entry still held.
    start: u64,
    entries: Vec<Change>,
    /// For each slot the number of the last entry that names it.
    latest: Vec<u64>,
}

/// Entries after which the older half of the journal is dropped.
const JOURNAL_LIMIT: usize = 1 << 16;

impl Journal {
    fn record(&mut self, slot: Slot, peer: Option<PeerId>) {
        if self.entries.len() >= JOURNAL_LIMIT {
            self.entries.drain(..JOURNAL_LIMIT / 2);
            self.start += (JOURNAL_LIMIT / 2) as u64;
        }
        if self.latest.len() <= slot as usize {
            self.latest.resize(slot as usize + 1, 0);
        }
        self.latest[slot as usize] = self.end();
        self.entries.push(Change { slot, peer });
    }

    /// The number that the next entry will have.
    const fn end(&self) -> u64 {
        self.start + self.entries.len() as u64
    }
}

/// Where a pod is or is to be.
#[derive(Clone, Copy, Debug)]
struct Place {
    slot: Slot,
    shape: ShapeId,
}

/// The scheduler's picture of nodes and placed pods. Every operation costs what it changes.
#[derive(Clone, Default, Debug)]
pub struct ClusterView {
    slots: Vec<Option<NodeEntry>>,
    free: Vec<Slot>,
    slot_of: FxHashMap<NodeId, Slot>,
    tree: NodeTree,
    /// Counts additions, removals and moves between zones, that is, changes of the order of nodes.
    order_version: u64,
    journal: Journal,
    shapes: Vec<Arc<PodShape>>,
    shape_ids: FxHashMap<(Symbol, Arc<PodSpec>, Option<LabelSelector>, PodVolumes), ShapeId>,
    /// One shape of each group of peers.
    peers: Vec<Arc<PodShape>>,
    peer_ids: FxHashMap<(Symbol, Labels, PodAffinity, PodAffinity, Vec<Symbol>), PeerId>,
    /// Placed pods that have terms of pod (anti-)affinity.
    pods_with_affinity: usize,
    /// Placed pods by priority.
    priorities: BTreeMap<i32, usize>,
    keys: TopologyKeys,
    pods: FxHashMap<PodId, Place>,
    /// Pods that wait for a node on which they evicted others, with that node's slot.
    nominated: Vec<(PodId, Place)>,
    services: Vec<Service>,
    namespace_labels: FxHashMap<Symbol, Labels>,
    /// How many nodes hold each image.
    image_nodes: FxHashMap<Symbol, i64>,
    image_version: u64,
}

impl ClusterView {
    /// An empty cluster with these Services and namespaces (name and labels). A namespace that is not listed has only
    /// the label `kubernetes.io/metadata.name`, which every namespace has.
    pub fn new(services: Vec<Service>, namespaces: impl IntoIterator<Item = (Symbol, Labels)>) -> Self {
        let namespace_labels =
            namespaces.into_iter().map(|(name, labels)| (name, with_namespace_name(labels, name))).collect();
        Self { services, namespace_labels, ..Self::default() }
    }

    /// The labels of a namespace change. Whoever has worked something out with this view has to forget it: the journal does not say so.
    pub fn label_namespace(&mut self, name: Symbol, labels: Labels) {
        let labels = with_namespace_name(labels, name);
        let of_namespace = |shape: &&mut Arc<PodShape>| shape.namespace == name;
        for shape in self.shapes.iter_mut().chain(&mut self.peers).filter(of_namespace) {
            Arc::make_mut(shape).namespace_labels = labels.clone();
        }
        self.namespace_labels.insert(name, labels);
    }

    /// Adds a node, or replaces what is known of it; its pods stay.
    pub fn add_node(&mut self, id: NodeId, mut node: SchedulerNode) {
        for image in &mut node.images {
            image.name = normalized_image(image.name.as_str());
        }
        if self.slot_of.contains_key(&id) {
            self.replace_node(id, node);
            return;
        }
        let entry = NodeEntry::new(id, node);
        self.count_images(&entry.node, 1);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as Slot - 1
        });
        self.keys.enter(slot, id, &entry.node.labels);
        self.tree.add(entry.zone(), slot);
        self.slots[slot as usize] = Some(entry);
        self.slot_of.insert(id, slot);
        self.order_version += 1;
        self.image_version += 1;
        self.journal.record(slot, None);
    }

    /// Replaces what is known of a node: labels, taints, cordon, allocatable, images. The same as [`Self::add_node`].
    pub fn update_node(&mut self, id: NodeId, node: SchedulerNode) {
        self.add_node(id, node);
    }

    fn replace_node(&mut self, id: NodeId, node: SchedulerNode) {
        let Some(&slot) = self.slot_of.get(&id) else { return };
        let Some(mut entry) = self.slots[slot as usize].take() else { return };
        let old_zone = entry.zone();
        if entry.node.labels != node.labels {
            self.keys.leave(slot, id, &entry.node.labels);
            self.keys.enter(slot, id, &node.labels);
        }
        if entry.node.images != node.images {
            self.count_images(&entry.node, -1);
            self.count_images(&node, 1);
            self.image_version += 1;
        }
        entry.set_node(node);
        if entry.zone() != old_zone {
            self.tree.remove(old_zone, slot);
            self.tree.add(entry.zone(), slot);
            self.order_version += 1;
        }
        self.slots[slot as usize] = Some(entry);
        self.journal.record(slot, None);
    }

    /// What is known of a node.
    pub fn node(&self, id: NodeId) -> Option<&SchedulerNode> {
        self.entry(self.slot(id)?).map(|entry| &entry.node)
    }

    /// What the pods placed on a node request of a resource: thousandths of a CPU, bytes, or pieces; 0 without such a node.
    pub fn requested(&self, id: NodeId, resource: ResourceName) -> i64 {
        let Some(entry) = self.slot(id).and_then(|slot| self.entry(slot)) else { return 0 };
        match resource {
            ResourceName::CPU => entry.requested.milli_cpu,
            ResourceName::MEMORY => entry.requested.memory,
            ResourceName::EPHEMERAL_STORAGE => entry.requested.ephemeral_storage,
            ResourceName::PODS => entry.pods.len() as i64,
            extended => entry.extended.get(extended),
        }
    }

    /// Takes a node away, with whatever is placed there or nominated for it; returns what was known of it.
    pub fn remove_node(&mut self, id: NodeId) -> Option<SchedulerNode> {
        let slot = self.slot_of.remove(&id)?;
        let entry = self.slots[slot as usize].take()?;
        self.keys.leave(slot, id, &entry.node.labels);
        self.count_images(&entry.node, -1);
        for placed in &entry.pods {
            self.pods.remove(&placed.pod);
            self.uncount(placed.shape);
        }
        self.nominated.retain(|(_, place)| place.slot != slot);
        self.tree.remove(entry.zone(), slot);
        self.free.push(slot);
        self.order_version += 1;
        self.image_version += 1;
        self.journal.record(slot, None);
        Some(entry.node)
    }

    /// The shape of pods in `namespace` with this specification. `owner_selector` is the selector of the ReplicaSet,
    /// StatefulSet or ReplicationController that controls them, if one does: the built-in spread constraints count the
    /// pods that it (and the Services that select the pod) select.
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/helper/spread.go`, `DefaultSelector`.
    pub fn shape(&mut self, namespace: Symbol, spec: &Arc<PodSpec>, owner_selector: Option<&LabelSelector>) -> ShapeId {
        self.shape_with_volumes(namespace, spec, owner_selector, PodVolumes::default())
    }

    /// The same of pods whose volumes ask for something.
    pub fn shape_with_volumes(
        &mut self,
        namespace: Symbol,
        spec: &Arc<PodSpec>,
        owner_selector: Option<&LabelSelector>,
        volumes: PodVolumes,
    ) -> ShapeId {
        let known = (namespace, Arc::clone(spec), owner_selector.cloned(), volumes.clone());
        if let Some(&id) = self.shape_ids.get(&known) {
            return id;
        }
        let default_selector = self.default_selector(namespace, &spec.labels, owner_selector);
        let (keys, slots) = (&mut self.keys, &self.slots);
        let peer = self.peers.len() as u32;
        let peer_key = (
            namespace,
            spec.labels.clone(),
            spec.pod_affinity.clone(),
            spec.pod_anti_affinity.clone(),
            volumes.one_pod.clone(),
        );
        let peer = *self.peer_ids.entry(peer_key).or_insert(PeerId(peer));
        let shape = PodShape::new(namespace, spec, peer, default_selector, |name| {
            let nodes = (0..).zip(slots).filter_map(|(slot, entry)| Some((slot, entry.as_ref()?)));
            keys.index(name, nodes.map(|(slot, entry)| (slot, entry.id, &entry.node.labels)))
        });
        let shape = Arc::new(PodShape { volumes, namespace_labels: self.namespace_labels(namespace), ..shape });
        if peer.index() == self.peers.len() {
            self.peers.push(Arc::clone(&shape));
        }
        let id = ShapeId(self.shapes.len() as u32);
        self.shapes.push(shape);
        self.shape_ids.insert(known, id);
        id
    }

    fn default_selector(
        &self,
        namespace: Symbol,
        labels: &Labels,
        owner_selector: Option<&LabelSelector>,
    ) -> Option<LabelSelector> {
        let mut merged = LabelSelector::default();
        for service in self.services.iter().filter(|service| service.namespace == namespace) {
            let selects = service.selector.iter().all(|(key, value)| labels.get(key) == Some(value));
            if selects && !service.selector.is_empty() {
                merged.match_labels.extend(&service.selector);
            }
        }
        if let Some(owner) = owner_selector {
            merged.expressions.extend(owner.expressions.iter().cloned());
            for (key, value) in owner.match_labels.iter() {
                if merged.match_labels.get(key).is_none() {
                    merged.match_labels.set(key, value);
                } else {
                    let values = vec![value];
                    merged.expressions.push(SelectorExpression { key, operator: SelectorOperator::In, values });
                }
            }
        }
        (merged != LabelSelector::default()).then_some(merged)
    }

    /// What is known of a shape.
    pub fn shape_of(&self, id: ShapeId) -> &PodShape {
        &self.shapes[id.index()]
    }

    /// Places a pod on a node, as the scheduler does once it has decided, before the binding is done. `started` is the
    /// pod's start time, by which preemption prefers victims. A pod placed before is moved; without such a node nothing
    /// happens.
    pub fn assume_pod(&mut self, node: NodeId, pod: PodId, shape: ShapeId, started: SimTime) {
        self.forget_pod(pod);
        self.clear_nomination(pod);
        let Some(&slot) = self.slot_of.get(&node) else { return };
        let Some(entry) = self.slots[slot as usize].as_mut() else { return };
        let known = &self.shapes[shape.index()];
        let peer = known.peer;
        entry.place(PlacedPod { pod, shape, started, terminating: false }, known);
        self.pods_with_affinity += usize::from(known.has_affinity_terms());
        *self.priorities.entry(known.spec.priority).or_insert(0) += 1;
        self.pods.insert(pod, Place { slot, shape });
        self.journal.record(slot, Some(peer));
    }

    /// Forgets a placed pod: it ended, was deleted, or its binding failed.
    pub fn forget_pod(&mut self, pod: PodId) {
        let Some(place) = self.pods.remove(&pod) else { return };
        self.uncount(place.shape);
        let known = &self.shapes[place.shape.index()];
        if let Some(entry) = self.slots[place.slot as usize].as_mut() {
            entry.displace(pod, known);
        }
        self.journal.record(place.slot, Some(known.peer));
    }

    /// A placed pod of this shape is there no more.
    fn uncount(&mut self, shape: ShapeId) {
        let known = &self.shapes[shape.index()];
        self.pods_with_affinity -= usize::from(known.has_affinity_terms());
        if let Entry::Occupied(mut entry) = self.priorities.entry(known.spec.priority) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }

    /// Whether some placed pod has a lower priority: without one, nobody can be evicted for a pod of `priority`.
    pub fn has_pods_below(&self, priority: i32) -> bool {
        self.priorities.first_key_value().is_some_and(|(&lowest, _)| lowest < priority)
    }

    /// Says that a placed pod is being deleted: it still takes room, but spread constraints no longer count it.
    pub fn mark_terminating(&mut self, pod: PodId) {
        let Some(&place) = self.pods.get(&pod) else { return };
        let Some(entry) = self.slots[place.slot as usize].as_mut() else { return };
        let shape = &self.shapes[place.shape.index()];
        if let Some(placed) = entry.displace(pod, shape) {
            entry.place(PlacedPod { terminating: true, ..placed }, shape);
        }
        self.journal.record(place.slot, Some(shape.peer));
    }

    /// Reserves a node for a pod that evicted others from it: pods of lower priority are kept from taking the room.
    pub fn nominate(&mut self, pod: PodId, shape: ShapeId, node: NodeId) {
        self.clear_nomination(pod);
        if let Some(&slot) = self.slot_of.get(&node) {
            self.nominated.push((pod, Place { slot, shape }));
        }
    }

    /// Gives up the reservation of [`Self::nominate`].
    pub fn clear_nomination(&mut self, pod: PodId) {
        self.nominated.retain(|(other, _)| *other != pod);
    }

    /// The node for which `pod` is nominated.
    pub fn nominated_node(&self, pod: PodId) -> Option<NodeId> {
        let place = self.nominated.iter().find(|(other, _)| *other == pod)?.1;
        self.entry(place.slot).map(|entry| entry.id)
    }

    /// The node on which `pod` is placed.
    pub fn node_of(&self, pod: PodId) -> Option<NodeId> {
        self.pods.get(&pod).and_then(|place| self.entry(place.slot)).map(|entry| entry.id)
    }

    /// The shape of a placed pod.
    pub fn shape_of_pod(&self, pod: PodId) -> Option<ShapeId> {
        self.pods.get(&pod).map(|place| place.shape)
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.slot_of.len()
    }

    /// Node ids in the order in which the scheduler looks at them.
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/backend/cache/node_tree.go`, `list`.
    pub fn node_order(&self) -> Vec<NodeId> {
        self.order().into_iter().filter_map(|slot| self.entry(slot)).map(|entry| entry.id).collect()
    }

    pub(super) fn order(&self) -> Vec<Slot> {
        self.tree.list()
    }

    pub(super) const fn order_version(&self) -> u64 {
        self.order_version
    }

    pub(super) fn entry(&self, slot: Slot) -> Option<&NodeEntry> {
        self.slots.get(slot as usize)?.as_ref()
    }

    pub(super) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn slot(&self, node: NodeId) -> Option<Slot> {
        self.slot_of.get(&node).copied()
    }

    pub(super) fn shared_shape(&self, id: ShapeId) -> &Arc<PodShape> {
        &self.shapes[id.index()]
    }

    /// A shape of these peers.
    pub(super) fn peer(&self, id: PeerId) -> &PodShape {
        &self.peers[id.index()]
    }

    /// Placed pods that have terms of pod (anti-)affinity.
    pub(super) const fn pods_with_affinity(&self) -> usize {
        self.pods_with_affinity
    }

    /// The domain of the node in `slot` by a topology key.
    pub(super) fn domain(&self, key: KeyIndex, slot: Slot) -> u32 {
        self.keys.domain(key, slot)
    }

    /// The domains of the slots' nodes by a topology key.
    pub(super) fn domains(&self, key: KeyIndex) -> &[u32] {
        self.keys.domains(key)
    }

    /// The label key behind a topology key.
    pub(super) fn key_name(&self, key: KeyIndex) -> Symbol {
        self.keys.name(key)
    }

    /// Pods nominated for a node, in order of nomination.
    pub(super) fn nominated(&self) -> impl Iterator<Item = (PodId, Slot, ShapeId)> + '_ {
        self.nominated.iter().map(|(pod, place)| (*pod, place.slot, place.shape))
    }

    /// The labels of a namespace.
    fn namespace_labels(&self, namespace: Symbol) -> Labels {
        self.namespace_labels.get(&namespace).cloned().unwrap_or_else(|| with_namespace_name(Labels::new(), namespace))
    }

    /// How many nodes hold `image`.
    pub(super) fn nodes_with_image(&self, image: Symbol) -> i64 {
        self.image_nodes.get(&image).copied().unwrap_or(0)
    }

    /// The number that the next journal entry will have, for [`Self::changed_since`].
    pub(super) const fn journal_end(&self) -> u64 {
        self.journal.end()
    }

    /// The changes from entry `since` on, or `None` if that is too long ago to know.
    pub(super) fn changed_since(&self, since: u64) -> Option<&[Change]> {
        let skip = usize::try_from(since.checked_sub(self.journal.start)?).ok()?;
        self.journal.entries.get(skip..)
    }

    /// The slots that a change from entry `since` on names.
    pub(super) fn slots_changed_since(&self, since: u64) -> impl Iterator<Item = Slot> + '_ {
        (0..).zip(&self.journal.latest).filter(move |(_, latest)| **latest >= since).map(|(slot, _)| slot)
    }

    /// Changes whenever the share of nodes that hold some image may have changed.
    pub(super) const fn image_version(&self) -> u64 {
        self.image_version
    }

    fn count_images(&mut self, node: &SchedulerNode, times: i64) {
        for image in &node.images {
            *self.image_nodes.entry(image.name).or_insert(0) += times;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ClusterView, Service};
    use crate::SchedulerNode;
    use nodecast_model::domain::symbol::well_known;
    use nodecast_model::domain::{Labels, NodeId, PodId, PodSpec, SimTime};
    use std::sync::Arc;

    fn node_in(zone: &str) -> SchedulerNode {
        SchedulerNode { labels: Labels::new().with(well_known::ZONE, zone), ..SchedulerNode::default() }
    }

    #[test]
    fn nodes_are_listed_round_robin_by_zone() {
        let mut view = ClusterView::default();
        for (id, zone) in ["a", "a", "b", "c", "a", "b"].into_iter().enumerate() {
            view.add_node(NodeId::from_index(id), node_in(zone));
        }
        let order = |view: &ClusterView| view.node_order().iter().map(|id| id.0).collect::<Vec<_>>();
        assert_eq!(order(&view), [0, 2, 3, 1, 5, 4]);
        view.remove_node(NodeId(3));
        view.update_node(NodeId(0), node_in("b"));
        assert_eq!(order(&view), [1, 2, 4, 5, 0]);
    }

    #[test]
    fn existing_pods_follow_new_namespace_labels() {
        let team = |name: &str| Labels::new().with("team", name);
        let mut view = ClusterView::new(Vec::new(), [(well_known::DEFAULT, team("b"))]);
        let shape = view.shape(well_known::DEFAULT, &Arc::new(PodSpec::default()), None);
        view.label_namespace(well_known::DEFAULT, team("a"));
        let expected = team("a").with("kubernetes.io/metadata.name", "default");
        let peer = view.shape_of(shape).peer;
        assert_eq!([&view.shape_of(shape).namespace_labels, &view.peer(peer).namespace_labels], [&expected; 2]);
        let later = view.shape(well_known::DEFAULT, &Arc::new(PodSpec { priority: 9, ..PodSpec::default() }), None);
        assert_eq!(view.shape_of(later).namespace_labels, expected);
    }

    #[test]
    fn removed_node_drops_pods_and_nominations() {
        let mut view = ClusterView::default();
        view.add_node(NodeId(0), node_in("a"));
        let shape = view.shape(well_known::DEFAULT, &Arc::new(PodSpec::default()), None);
        view.assume_pod(NodeId(0), PodId(1), shape, SimTime::ZERO);
        view.nominate(PodId(2), shape, NodeId(0));
        assert_eq!((view.node_of(PodId(1)), view.nominated_node(PodId(2))), (Some(NodeId(0)), Some(NodeId(0))));
        view.remove_node(NodeId(0));
        assert_eq!((view.node_of(PodId(1)), view.nominated_node(PodId(2))), (None, None));
        assert_eq!(view.node_count(), 0);
    }

    #[test]
    fn pods_of_one_template_share_a_shape() {
        let services = vec![Service { namespace: well_known::DEFAULT, selector: Labels::new().with("app", "web") }];
        let mut view = ClusterView::new(services, []);
        let spec = PodSpec { labels: Labels::new().with("app", "web"), ..PodSpec::default() };
        let first = view.shape(well_known::DEFAULT, &Arc::new(spec.clone()), None);
        let second = view.shape(well_known::DEFAULT, &Arc::new(spec), None);
        assert_eq!(first, second);
        assert_eq!(view.shape_of(first).soft_spread.len(), 2, "the Service says what to count");
    }
}

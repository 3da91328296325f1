//! Existing nodes: what room they have and which pods they take.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/existingnode.go`,
//! `pkg/controllers/state/statenode.go`.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use super::classes::Class;
use super::errors::Refusal;
use super::existing_index::ExistingNodes;
use super::input::{NodeView, PackingSetup};
use super::node_memo::{CachedNode, Fixed, FreeCapacity, KnownFacts, NodeMemo, host_name};
use super::node_pods::PodsOfNode;
use super::ports;
use super::requirement_table::{Combined, RequirementTable, SetId, Undefined};
use super::resource_table::{self, ResourceTable};
use super::topology::{Asking, Blocked, BoundPods, Place, Rules, TaintsId, Topology, TopologyNode, names_host};
use super::volumes::{self, Attachment, PodVolumes};
use crate::release::Behaviour;
use nodecast_model::domain::pod::HostPort;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::taints::{Taint, TaintEffect, first_untolerated};
use nodecast_model::domain::{PodSpec, Symbol};

/// A node that pods may be put on.
#[derive(Clone)]
pub(super) struct ExistingNode {
    /// Position in the situation, which is also its host number.
    pub(super) node: usize,
    /// What no question changes.
    fixed: Arc<Fixed>,
    set: SetId,
    taints: TaintsId,
    /// Which labels a pod may ask for that the node does not have.
    undefined: Undefined,
    /// Room left, after the daemons that are still to come.
    room: SmallVec<[i64; 6]>,
    /// Whether some resource is overdrawn, so that nothing fits any more.
    overdrawn: bool,
    ports: Vec<HostPort>,
    attached: Vec<Attachment>,
    /// Pods put on it in this pass.
    pub(super) pods: Vec<usize>,
}

/// What is compiled of a cluster's nodes.
pub(super) struct CompiledNodes {
    /// Those that pods may be put on.
    pub(super) existing: ExistingNodes,
    /// All of them, as topology sees them.
    pub(super) nodes: Vec<TopologyNode>,
    /// The pods of each of them.
    pub(super) pods: Vec<BoundPods>,
}

/// What compiling nodes needs.
pub(super) struct NodeReader<'r, 'a> {
    pub(super) setup: &'r PackingSetup<'a>,
    pub(super) daemons: &'r [PodSpec],
    pub(super) table: &'r mut RequirementTable,
    pub(super) resources: &'r mut ResourceTable,
    pub(super) rules: &'r mut Rules,
    pub(super) memo: &'r mut NodeMemo,
}

impl NodeReader<'_, '_> {
    /// Compiles the nodes of a cluster. Those that pods may be put on stand in the order in which they are tried:
    /// initialized ones first, then by name.
    pub(super) fn read(&mut self, views: &[NodeView<'_>]) -> CompiledNodes {
        let mut existing: Vec<Option<ExistingNode>> = Vec::with_capacity(views.len());
        let (mut nodes, mut pods) = (Vec::with_capacity(views.len()), Vec::with_capacity(views.len()));
        for (position, view) in views.iter().enumerate() {
            let (known, facts) = self.memo.node(position, view, self.table);
            let tools = RoomTools { facts, daemons: self.daemons, table: self.table, resources: self.resources };
            let taints = self.rules.intern_taints(view.taints);
            let (setup, rules) = (self.setup, &mut *self.rules);
            existing
                .push(considered(setup, view).then(|| new_node(setup, (position, view, taints), known, tools, rules)));
            nodes.push(TopologyNode {
                fixed: Arc::clone(&known.fixed),
                taints,
                registered: view.registered,
                spans: view.registered && view.offered,
            });
            pods.push(BoundPods { pods: known.pods.clone(), specs: known.numbered(self.rules) });
        }
        self.memo.nodes.truncate(views.len());
        // Short keys are put in order, and not the nodes, each of which is larger than any of these.
        let keys = views.iter().enumerate().filter(|&(position, _)| existing[position].is_some());
        let mut order: Vec<_> = keys.map(|(position, view)| (!view.initialized, view.name, position)).collect();
        order.sort_unstable();
        let existing = order.iter().filter_map(|&(_, _, position)| existing[position].take()).collect();
        CompiledNodes { existing: ExistingNodes::new(existing, views.len()), nodes, pods }
    }
}

/// What working out the room of a node needs.
struct RoomTools<'r> {
    facts: &'r mut KnownFacts,
    daemons: &'r [PodSpec],
    table: &'r mut RequirementTable,
    resources: &'r mut ResourceTable,
}

/// The node at a position, whose own taints have an id.
fn new_node(
    setup: &PackingSetup<'_>,
    (position, view, item): (usize, &NodeView<'_>, TaintsId),
    known: &mut CachedNode,
    tools: RoomTools<'_>,
    rules: &mut Rules,
) -> ExistingNode {
    let taints = respected_taints(setup.behaviour(), view);
    let id = if taints.len() == view.taints.len() { item } else { rules.intern_taints(&taints) };
    let sums = known.pods.sums();
    let mut attached = Vec::new();
    if !view.volume_limits.is_empty() {
        for pod in &sums.with_volumes {
            attached.extend(volumes::attachments(setup.volumes, pod.namespace, &pod.name, &pod.spec));
        }
    }
    if !known.room.as_ref().is_some_and(|room| room.taints == id && room.allocatable == *view.allocatable) {
        known.room = None;
    }
    let room = known.room.get_or_insert_with(|| room(view, (&known.fixed, sums), (id, &taints), tools));
    ExistingNode {
        node: position,
        fixed: Arc::clone(&known.fixed),
        set: known.fixed.set,
        undefined: if setup.behaviour().refuses_undefined_labels { Undefined::Refused } else { Undefined::Allowed },
        taints: id,
        overdrawn: room.overdrawn,
        room: SmallVec::from_slice(&room.left),
        ports: sums.ports.clone(),
        attached,
        pods: Vec::new(),
    }
}

fn room(
    view: &NodeView<'_>,
    (fixed, pods): (&Fixed, &PodsOfNode),
    (id, taints): (TaintsId, &[Taint]),
    tools: RoomTools<'_>,
) -> FreeCapacity {
    let RoomTools { facts, daemons, table, resources } = tools;
    let mut available = view.allocatable.clone();
    available.subtract(&pods.requests);
    let mut expected = facts.expected(host_name(view), (fixed.set, id, taints), daemons, table);
    expected.subtract(&pods.daemon_requests);
    for (name, amount) in expected.iter() {
        if amount > 0 && view.allocatable.find(name).is_some() {
            available.set(name, available.get(name) - amount);
        }
    }
    FreeCapacity {
        allocatable: view.allocatable.clone(),
        taints: id,
        left: SmallVec::from_slice(&resources.dense(&available)),
        overdrawn: view.allocatable.iter().any(|(name, _)| available.get(name) < 0),
    }
}

/// Releases before v0.30 consider only nodes that they have launched.
fn considered(setup: &PackingSetup<'_>, view: &NodeView<'_>) -> bool {
    view.offered && (setup.behaviour().reads_unmanaged_nodes || view.managed)
}

/// The taints that count: before a managed node is initialized, its startup taints and those that come and go by
/// themselves do not.
fn respected_taints<'v>(behaviour: &Behaviour, view: &NodeView<'v>) -> Cow<'v, [Taint]> {
    let coming_up = view.managed && !view.initialized;
    if !coming_up || view.taints.is_empty() {
        return Cow::Borrowed(view.taints);
    }
    let startup = |taint: &Taint| view.startup_taints.iter().any(|s| s.key == taint.key && s.effect == taint.effect);
    view.taints.iter().filter(|taint| !(startup(taint) || is_ephemeral(behaviour, taint))).copied().collect()
}

fn is_ephemeral(behaviour: &Behaviour, taint: &Taint) -> bool {
    let schedule = taint.effect == TaintEffect::NoSchedule;
    let execute = taint.effect == TaintEffect::NoExecute;
    // Releases before v1.7 do not count `not-ready:NoExecute` among them (#2265). It keeps no pod away all the same: the API server
    // gives every pod a toleration of it for five minutes.
    (taint.key == well_known::TAINT_NOT_READY && (schedule || execute))
        || (taint.key == well_known::TAINT_UNREACHABLE && schedule)
        || (taint.key == well_known::TAINT_UNINITIALIZED && schedule && taint.value == well_known::TRUE)
        || (taint.key == well_known::TAINT_UNREGISTERED && execute)
        || (behaviour.readiness_taints_go && taint.key.as_str().starts_with("readiness.k8s.io/"))
}

/// A pod in its present state of relaxation, as an existing node sees it.
pub(super) struct Visitor<'v> {
    pub(super) class: &'v Class,
    pub(super) variant: usize,
    pub(super) class_index: usize,
    pub(super) volumes: Option<&'v PodVolumes>,
    /// Whether any topology group has a say.
    pub(super) in_topology: bool,
}

/// Why a node cannot take a pod.
#[derive(Clone, Copy)]
pub(super) struct Unsuitable {
    obstacle: Obstacle,
    /// Whether it stands for the rest of the pass.
    pub(super) for_good: bool,
}

impl Unsuitable {
    /// Whether nodes with the same labels do not take the pod either, as long as nothing else is placed.
    pub(super) const fn is_by_labels(&self) -> bool {
        match self.obstacle {
            Obstacle::Requirements(_) => true,
            Obstacle::Topology(blocked) => blocked.by_labels,
            Obstacle::Taint
            | Obstacle::Room
            | Obstacle::Ports
            | Obstacle::Host
            | Obstacle::VolumeLimit(_)
            | Obstacle::Volume(..) => false,
        }
    }
}

#[derive(Clone, Copy)]
enum Obstacle {
    Taint,
    Room,
    Ports,
    Host,
    VolumeLimit(Symbol),
    Requirements(SetId),
    Volume(SetId, SetId),
    Topology(Blocked),
}

impl ExistingNode {
    /// Whether the node can take the pod; returns its requirements with the pod's.
    ///
    /// # Errors
    /// The first obstacle, in Karpenter's order.
    pub(super) fn can_add(
        &self,
        visitor: &Visitor<'_>,
        tolerates: bool,
        table: &mut RequirementTable,
        topology: &mut Topology<'_>,
    ) -> Result<SetId, Unsuitable> {
        let class = visitor.class;
        let form = &class.variants[visitor.variant].form;
        let host = &self.fixed.host_name[..];
        let for_good = |obstacle| Err(Unsuitable { obstacle, for_good: true });
        if !tolerates {
            return for_good(Obstacle::Taint);
        }
        if let Some(volumes) = visitor.volumes
            && let Some(driver) = volumes::exceeded(&self.fixed.volume_limits, &self.attached, &volumes.attached)
        {
            return Err(Unsuitable { obstacle: Obstacle::VolumeLimit(driver), for_good: false });
        }
        if ports::conflict(&self.ports, &class.shape.ports).is_some() {
            return for_good(Obstacle::Ports);
        }
        if !self.has_room(&class.shape.amounts) {
            return for_good(Obstacle::Room);
        }
        if form.host.as_ref().is_some_and(|wanted| !names_host(wanted, host)) {
            return for_good(Obstacle::Host);
        }
        let base = match table.combine(self.set, form.set, self.undefined) {
            Combined::Set(set) => set,
            // A label that is not defined may yet be, when another pod's exclusion of it is added.
            Combined::Undefined => {
                return Err(Unsuitable { obstacle: Obstacle::Requirements(form.set), for_good: false });
            }
            Combined::Contradiction => return for_good(Obstacle::Requirements(form.set)),
        };
        self.can_add_with_volumes(visitor, base, table, topology)
    }

    /// Tries the places where the pod's volumes can be.
    fn can_add_with_volumes(
        &self,
        visitor: &Visitor<'_>,
        base: SetId,
        table: &mut RequirementTable,
        topology: &mut Topology<'_>,
    ) -> Result<SetId, Unsuitable> {
        let variant = &visitor.class.variants[visitor.variant];
        let host = &self.fixed.host_name[..];
        let mut last = Unsuitable { obstacle: Obstacle::Host, for_good: true };
        for &volume in &visitor.class.volume_sets {
            let Combined::Set(set) = table.combine(base, volume, self.undefined) else {
                last = Unsuitable { obstacle: Obstacle::Volume(base, volume), for_good: false };
                continue;
            };
            if !visitor.in_topology {
                return Ok(set);
            }
            let place = Place { host: self.node, host_name: host, set, undefined: self.undefined };
            let asking = Asking {
                class: visitor.class_index,
                owned: &variant.owned,
                strict: visitor.class.strict_with(variant.form.strict, volume, table),
                strict_host: variant.form.strict_host.as_ref(),
            };
            match topology.narrow(asking, place, table) {
                Ok(narrowed) => return Ok(narrowed),
                Err(blocked) => {
                    last = Unsuitable {
                        obstacle: Obstacle::Topology(blocked),
                        for_good: last.for_good && blocked.for_good,
                    };
                }
            }
        }
        Err(last)
    }

    /// The obstacle in words that stand by themselves.
    pub(super) fn explain(
        &self,
        why: Unsuitable,
        visitor: &Visitor<'_>,
        table: &RequirementTable,
        topology: &Topology<'_>,
        resources: &ResourceTable,
    ) -> Refusal {
        let class = visitor.class;
        let conflict = |existing, incoming| table.conflict(existing, incoming, self.undefined);
        match why.obstacle {
            Obstacle::Taint => {
                let taints = topology.known_rules().taint_list(self.taints);
                let tolerations = &class.variants[visitor.variant].form.spec.tolerations;
                first_untolerated(taints, tolerations).map_or(Refusal::Hostname, |taint| Refusal::Taint(*taint))
            }
            Obstacle::Room => self.shortage(&class.shape.amounts, resources),
            Obstacle::Ports => {
                ports::conflict(&self.ports, &class.shape.ports).map_or(Refusal::Hostname, Refusal::HostPort)
            }
            Obstacle::Host => Refusal::Hostname,
            Obstacle::VolumeLimit(driver) => Refusal::VolumeLimit(driver),
            Obstacle::Requirements(wanted) => {
                conflict(self.set, wanted).map_or(Refusal::Hostname, Refusal::Incompatible)
            }
            Obstacle::Volume(base, volume) => conflict(base, volume).map_or(Refusal::Hostname, Refusal::VolumeTopology),
            Obstacle::Topology(blocked) => Refusal::Topology(Box::new(topology.refusal(blocked))),
        }
    }

    /// The first resource of which there is too little.
    fn shortage(&self, amounts: &[i64], resources: &ResourceTable) -> Refusal {
        let left = |index: usize| self.room.get(index).copied().unwrap_or(0);
        let asked = |index: usize| amounts.get(index).copied().unwrap_or(0);
        let short = |&index: &usize| (asked(index) > 0 && asked(index) > left(index)) || left(index) < 0;
        match (0..resources.len()).find(short) {
            Some(index) => {
                Refusal::Resources { resource: resources.name(index), requested: asked(index), left: left(index) }
            }
            None => Refusal::Hostname,
        }
    }

    /// Whether there is room for `amounts`.
    pub(super) fn has_room(&self, amounts: &[i64]) -> bool {
        !self.overdrawn && resource_table::fits(&self.room, amounts)
    }

    /// Room left by resource, without regard to what is [overdrawn](Self::is_overdrawn).
    pub(super) fn left(&self) -> &[i64] {
        &self.room
    }

    /// Whether nothing fits any more.
    pub(super) fn is_overdrawn(&self) -> bool {
        self.overdrawn
    }

    /// Room left of the resource with this index; nothing if nothing fits any more.
    pub(super) fn room(&self, index: usize) -> i64 {
        if self.overdrawn { i64::MIN } else { self.room.get(index).copied().unwrap_or(0) }
    }

    /// Takes the node away.
    pub(super) fn withdraw(&mut self) {
        self.overdrawn = true;
    }

    /// The taints that pods must tolerate.
    pub(super) fn taints(&self) -> TaintsId {
        self.taints
    }

    /// Its labels as requirements, with what the pods of this pass have added.
    pub(super) fn labels(&self) -> SetId {
        self.set
    }

    /// Puts the pod on the node.
    pub(super) fn add(
        &mut self,
        pod: usize,
        set: SetId,
        visitor: &Visitor<'_>,
        table: &mut RequirementTable,
        topology: &mut Topology<'_>,
    ) {
        self.pods.push(pod);
        self.set = set;
        resource_table::subtract(&mut self.room, &visitor.class.shape.amounts);
        self.ports.extend(&visitor.class.shape.ports);
        if let Some(volumes) = visitor.volumes {
            self.attached.extend(volumes.attached.iter().cloned());
        }
        topology.record(visitor.class_index, self.node, set, self.taints, self.undefined, table);
    }
}

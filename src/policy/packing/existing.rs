//! Existing nodes: what room they have and which pods they take.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/existingnode.go`,
//! `pkg/controllers/state/statenode.go`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::classes::Class;
use super::errors::Refusal;
use super::existing_index::ExistingNodes;
use super::input::{NodeView, PackingSetup};
use super::ports;
use super::requirement_table::{Combined, RequirementTable, SetId, Undefined};
use super::resource_table::ResourceTable;
use super::templates::strict_requirements;
use super::topology::{Asking, Blocked, BoundClass, Place, Rules, TaintsId, Topology, TopologyNode, names_host};
use super::volumes::{self, Attachment, PodVolumes};
use crate::domain::pod::{HostPort, OwnerKind};
use crate::domain::requirements::{Requirement, Requirements};
use crate::domain::symbol::well_known;
use crate::domain::taints::{Taint, TaintEffect, first_untolerated};
use crate::domain::{KarpenterVersion, Labels, PodSpec, Resources, Symbol};

/// A node that pods may be put on.
#[derive(Clone)]
pub(super) struct ExistingNode {
    /// Position in the situation, which is also its host number.
    pub(super) node: usize,
    /// What no question changes.
    fixed: Arc<Fixed>,
    set: SetId,
    taints: TaintsId,
    /// Room left, after the daemons that are still to come.
    room: Vec<i64>,
    /// Whether some resource is overdrawn, so that nothing fits any more.
    overdrawn: bool,
    ports: Vec<HostPort>,
    attached: Vec<Attachment>,
    /// Pods put on it in this pass.
    pub(super) pods: Vec<usize>,
}

/// What no question changes about a node.
struct Fixed {
    host_name: String,
    volume_limits: Vec<(Symbol, u32)>,
}

/// Pods already bound, by specification, computed once.
#[derive(Default)]
struct BoundSpecs {
    requests: FxHashMap<*const PodSpec, Resources>,
    classes: FxHashMap<(Symbol, *const PodSpec), usize>,
    list: Vec<BoundClass>,
}

impl BoundSpecs {
    fn requests(&mut self, spec: &Arc<PodSpec>) -> &Resources {
        self.requests.entry(Arc::as_ptr(spec)).or_insert_with(|| spec.requests())
    }

    fn place(&mut self, namespace: Symbol, spec: &Arc<PodSpec>, node: usize) {
        let class = *self.classes.entry((namespace, Arc::as_ptr(spec))).or_insert_with(|| {
            self.list.push(BoundClass { namespace, spec: Arc::clone(spec), places: Vec::new() });
            self.list.len() - 1
        });
        let places = &mut self.list[class].places;
        match places.last_mut() {
            Some((last, pods)) if *last == node => *pods += 1,
            _ => places.push((node, 1)),
        }
    }
}

/// What is compiled of a cluster's nodes.
pub(super) struct CompiledNodes {
    /// Those that pods may be put on.
    pub(super) existing: ExistingNodes,
    /// All of them, as topology sees them.
    pub(super) nodes: Vec<TopologyNode>,
    /// Pods bound to them that count in topologies.
    pub(super) bound: Vec<BoundClass>,
    /// The class of such pods by namespace and address of the specification.
    pub(super) class_of: FxHashMap<(Symbol, *const PodSpec), usize>,
}

/// What is remembered of nodes from one reading to the next. Nodes of one type and zone differ in nothing but the host
/// name, which is in no set.
#[derive(Default)]
pub(super) struct NodeMemo {
    /// Requirements by labels, the host name left out.
    label_sets: FxHashMap<Vec<(Symbol, Symbol)>, SetId>,
    /// What the daemons want, once compiled.
    daemons: Option<Vec<Daemon>>,
    /// What the daemons of a node request in all, by its requirements and taints; unless one of them asks for a host.
    expected: FxHashMap<(SetId, TaintsId), Resources>,
}

/// What a daemon wants of its node.
struct Daemon {
    wanted: SetId,
    host: Option<Requirement>,
    requests: Resources,
}

impl NodeMemo {
    fn set_of(&mut self, labels: &Labels, table: &mut RequirementTable) -> SetId {
        let shared = labels.iter().filter(|label| label.0 != well_known::HOSTNAME).collect();
        *self.label_sets.entry(shared).or_insert_with(|| table.intern(&Requirements::from_labels(labels)))
    }

    /// What the daemons request that belong on a node: taints and labels are taken strictly, and only the first required
    /// term counts.
    fn expected(
        &mut self,
        view: &NodeView<'_>,
        (set, id, taints): (SetId, TaintsId, &[Taint]),
        specs: &[PodSpec],
        table: &mut RequirementTable,
    ) -> Resources {
        let Self { daemons, expected, .. } = self;
        if let Some(known) = expected.get(&(set, id)) {
            return known.clone();
        }
        let daemons = daemons.get_or_insert_with(|| {
            let compile = |spec: &PodSpec| {
                let wanted = strict_requirements(spec);
                let host = wanted.get(well_known::HOSTNAME).cloned();
                Daemon { wanted: table.intern(&wanted), host, requests: spec.requests() }
            };
            specs.iter().map(compile).collect()
        });
        let mut sum = Resources::new();
        for (daemon, spec) in daemons.iter().zip(specs) {
            if first_untolerated(taints, &spec.tolerations).is_none()
                && daemon.host.as_ref().is_none_or(|host| names_host(host, host_name(view)))
                && table.conflict(set, daemon.wanted, Undefined::Refused).is_none()
            {
                sum.add(&daemon.requests);
            }
        }
        if daemons.iter().all(|daemon| daemon.host.is_none()) {
            expected.insert((set, id), sum.clone());
        }
        sum
    }
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
        let mut bound = BoundSpecs::default();
        let mut existing = Vec::new();
        let mut nodes = Vec::with_capacity(views.len());
        for (position, view) in views.iter().enumerate() {
            let set = self.memo.set_of(view.labels, self.table);
            nodes.push(TopologyNode {
                labels: view.labels.clone(),
                set,
                taints: self.rules.intern_taints(view.taints),
                registered: view.registered,
                spans: view.registered && view.offered,
            });
            for pod in view.pods {
                if pod.counts_in_topology {
                    bound.place(pod.namespace, pod.spec, position);
                }
            }
            if considered(self.setup, view) {
                existing.push(self.new_node(position, view, set, &mut bound));
            }
        }
        existing.sort_by_key(|node| (!views[node.node].initialized, views[node.node].name));
        let existing = ExistingNodes::new(existing, views.len());
        CompiledNodes { existing, nodes, bound: bound.list, class_of: bound.classes }
    }

    fn new_node(&mut self, position: usize, view: &NodeView<'_>, set: SetId, bound: &mut BoundSpecs) -> ExistingNode {
        let taints = respected_taints(view);
        let taints_id = self.rules.intern_taints(&taints);
        let mut available = view.allocatable.clone();
        let mut bound_daemons = Resources::new();
        let (mut ports, mut attached) = (Vec::new(), Vec::new());
        for pod in view.pods {
            let requests = bound.requests(pod.spec);
            available.subtract(requests);
            if pod.spec.owner == OwnerKind::DaemonSet {
                bound_daemons.add(requests);
            }
            ports.extend(pod.spec.host_ports());
            if !view.volume_limits.is_empty() && !pod.spec.volumes.is_empty() {
                attached.extend(volumes::attachments(self.setup.volumes, pod.namespace, pod.name, pod.spec));
            }
        }
        let mut expected = self.memo.expected(view, (set, taints_id, &taints), self.daemons, self.table);
        expected.subtract(&bound_daemons);
        for (name, amount) in expected.iter() {
            if amount > 0 && view.allocatable.find(name).is_some() {
                available.set(name, available.get(name) - amount);
            }
        }
        ExistingNode {
            node: position,
            fixed: Arc::new(Fixed {
                host_name: host_name(view).to_owned(),
                volume_limits: view.volume_limits.to_vec(),
            }),
            set,
            taints: taints_id,
            overdrawn: view.allocatable.iter().any(|(name, _)| available.get(name) < 0),
            room: self.resources.dense(&available),
            ports,
            attached,
            pods: Vec::new(),
        }
    }
}

/// Releases before v1 considered only nodes that they had launched.
fn considered(setup: &PackingSetup<'_>, view: &NodeView<'_>) -> bool {
    view.offered && (setup.karpenter >= KarpenterVersion::V1_13 || view.managed)
}

/// The taints that count: before a managed node is initialized, its startup taints and those that come and go by
/// themselves do not.
fn respected_taints(view: &NodeView<'_>) -> Vec<Taint> {
    let coming_up = view.managed && !view.initialized;
    let startup = |taint: &Taint| view.startup_taints.iter().any(|s| s.key == taint.key && s.effect == taint.effect);
    view.taints.iter().filter(|taint| !(coming_up && (startup(taint) || is_ephemeral(taint)))).copied().collect()
}

fn is_ephemeral(taint: &Taint) -> bool {
    let schedule = taint.effect == TaintEffect::NoSchedule;
    let execute = taint.effect == TaintEffect::NoExecute;
    (taint.key == well_known::TAINT_NOT_READY && (schedule || execute))
        || (taint.key == well_known::TAINT_UNREACHABLE && schedule)
        || (taint.key == well_known::TAINT_UNINITIALIZED && schedule && taint.value == well_known::TRUE)
        || (taint.key == well_known::TAINT_UNREGISTERED && execute)
        || taint.key.as_str().starts_with("readiness.k8s.io/")
}

/// The name under which a node is a domain of the host name.
fn host_name<'v>(view: &NodeView<'v>) -> &'v str {
    match view.labels.get(well_known::HOSTNAME) {
        Some(name) => name.as_str(),
        None => view.name,
    }
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
        if let Some(own) = visitor.volumes
            && let Some(driver) = volumes::exceeded(&self.fixed.volume_limits, &self.attached, &own.attached)
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
        let base = match table.combine(self.set, form.set, Undefined::Refused) {
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
            let Combined::Set(set) = table.combine(base, volume, Undefined::Refused) else {
                last = Unsuitable { obstacle: Obstacle::Volume(base, volume), for_good: false };
                continue;
            };
            if !visitor.in_topology {
                return Ok(set);
            }
            let place = Place { host: self.node, host_name: host, set, undefined: Undefined::Refused };
            let asking = Asking {
                class: visitor.class_index,
                owned: &variant.owned,
                strict: variant.form.strict,
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
        let conflict = |existing, incoming| table.conflict(existing, incoming, Undefined::Refused);
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

    fn has_room(&self, amounts: &[i64]) -> bool {
        let left = |index: usize| self.room.get(index).copied().unwrap_or(0);
        !self.overdrawn && amounts.iter().enumerate().all(|(index, &amount)| amount <= 0 || amount <= left(index))
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
        for (room, amount) in self.room.iter_mut().zip(&visitor.class.shape.amounts) {
            *room -= amount;
        }
        self.ports.extend(&visitor.class.shape.ports);
        if let Some(own) = visitor.volumes {
            self.attached.extend(own.attached.iter().cloned());
        }
        topology.record(visitor.class_index, self.node, set, self.taints, Undefined::Refused, table);
    }
}

//! Existing nodes: what room they have and which pods they take.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/existingnode.go`,
//! `pkg/controllers/state/statenode.go`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::classes::Class;
use super::existing_index::ExistingNodes;
use super::input::{NodeView, PackingSetup};
use super::ports;
use super::requirement_table::{Combined, RequirementTable, SetId, Undefined};
use super::resource_table::ResourceTable;
use super::templates::strict_requirements;
use super::topology::{Asking, BoundClass, Place, Rules, TaintsId, Topology, TopologyNode, names_host};
use super::volumes::{self, Attachment, PodVolumes};
use crate::domain::pod::{HostPort, OwnerKind};
use crate::domain::requirements::Requirements;
use crate::domain::symbol::well_known;
use crate::domain::taints::{Taint, TaintEffect, first_untolerated};
use crate::domain::{KarpenterVersion, PodSpec, Resources, Symbol};

/// A node that pods may be put on.
#[derive(Clone)]
pub(super) struct ExistingNode {
    /// Position in the situation, which is also its host number.
    pub(super) node: usize,
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

/// What compiling nodes needs.
pub(super) struct NodeReader<'r, 'a> {
    pub(super) setup: &'r PackingSetup<'a>,
    pub(super) daemons: &'r [PodSpec],
    pub(super) table: &'r mut RequirementTable,
    pub(super) resources: &'r mut ResourceTable,
    pub(super) rules: &'r mut Rules,
}

impl NodeReader<'_, '_> {
    /// Compiles the nodes of a cluster. Those that pods may be put on stand in the order in which they are tried:
    /// initialized ones first, then by name.
    pub(super) fn read(&mut self, views: &[NodeView<'_>]) -> CompiledNodes {
        let mut bound = BoundSpecs::default();
        let mut existing = Vec::new();
        let mut nodes = Vec::with_capacity(views.len());
        for (position, view) in views.iter().enumerate() {
            let set = self.table.intern(&Requirements::from_labels(view.labels));
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
        let mut expected = expected_daemons(view, &taints, set, self.daemons, self.table);
        expected.subtract(&bound_daemons);
        for (name, amount) in expected.iter() {
            if amount > 0 && view.allocatable.find(name).is_some() {
                available.set(name, available.get(name) - amount);
            }
        }
        ExistingNode {
            node: position,
            set,
            taints: self.rules.intern_taints(&taints),
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

/// The daemons that belong on a node: taints and labels are taken strictly, and only the first required term counts.
fn expected_daemons(
    view: &NodeView<'_>,
    taints: &[Taint],
    set: SetId,
    daemons: &[PodSpec],
    table: &mut RequirementTable,
) -> Resources {
    let mut expected = Resources::new();
    for daemon in daemons {
        if first_untolerated(taints, &daemon.tolerations).is_some() {
            continue;
        }
        let wanted = strict_requirements(daemon);
        let host = wanted.get(well_known::HOSTNAME).is_none_or(|r| names_host(r, host_name(view)));
        let wanted = table.intern(&wanted);
        if host && table.conflict(set, wanted, Undefined::Refused).is_none() {
            expected.add(&daemon.requests());
        }
    }
    expected
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

/// Whether a refusal stands for the rest of the pass.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    ForNow,
    ForGood,
}

impl ExistingNode {
    /// Whether the node can take the pod; returns its requirements with the pod's.
    pub(super) fn can_add(
        &self,
        visitor: &Visitor<'_>,
        tolerates: bool,
        view: &NodeView<'_>,
        table: &mut RequirementTable,
        topology: &mut Topology<'_>,
    ) -> Result<SetId, Refused> {
        let class = visitor.class;
        let variant = &class.variants[visitor.variant];
        let form = &variant.form;
        let host = host_name(view);
        if !tolerates
            || !self.has_room(&class.shape.amounts)
            || ports::conflict(&self.ports, &class.shape.ports).is_some()
            || form.host.as_ref().is_some_and(|wanted| !names_host(wanted, host))
        {
            return Err(Refused::ForGood);
        }
        if let Some(own) = visitor.volumes
            && volumes::exceeded(view.volume_limits, &self.attached, &own.attached).is_some()
        {
            return Err(Refused::ForNow);
        }
        let base = match table.combine(self.set, form.set, Undefined::Refused) {
            Combined::Set(set) => set,
            Combined::Undefined => return Err(Refused::ForNow),
            Combined::Contradiction => return Err(Refused::ForGood),
        };
        let mut refused = Refused::ForGood;
        for &volume in &class.volume_sets {
            let Combined::Set(set) = table.combine(base, volume, Undefined::Refused) else {
                refused = Refused::ForNow;
                continue;
            };
            if !visitor.in_topology {
                return Ok(set);
            }
            let place = Place { host: self.node, host_name: host, set, undefined: Undefined::Refused };
            let asking = Asking {
                class: visitor.class_index,
                owned: &variant.owned,
                strict: form.strict,
                strict_host: form.strict_host.as_ref(),
            };
            match topology.narrow(asking, place, table) {
                Ok(narrowed) => return Ok(narrowed),
                Err(blocked) if blocked.for_good => {}
                Err(_) => refused = Refused::ForNow,
            }
        }
        Err(refused)
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

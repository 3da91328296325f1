//! Pods of one shape and one choice of places for their volumes, as a pass sees them: which groups they own, what has
//! refused them for good.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::bits::GrowingBits;
use super::input::PendingPod;
use super::requirement_table::{Combined, RequirementTable, SetId, Undefined};
use super::resource_table::ResourceTable;
use super::shapes::{CompileContext, Form, Shape, Shapes};
use super::topology::{Rules, TaintsId, Topology};
use super::volumes::PodVolumes;
use nodecast_model::domain::taints::first_untolerated;

/// Pods that no rule can tell apart, except by their place in the queue.
pub(super) struct Class {
    /// What they have in common.
    pub(super) shape: Arc<Shape>,
    /// Where their volumes can be: alternatives, one of which must hold.
    pub(super) volume_sets: SmallVec<[SetId; 1]>,
    /// Whether the places of volumes are taken for the pod's own wishes (up to v1.8).
    wishes_for_volumes: bool,
    /// The specification as it is and, once needed, as each relaxation leaves it.
    pub(super) variants: SmallVec<[Variant; 1]>,
}

impl Class {
    /// What a pod requires itself, by which the domains of its spread are found, where its volumes are at one of their places.
    pub(super) fn strict_with(&self, strict: SetId, volume: SetId, table: &mut RequirementTable) -> SetId {
        if !self.wishes_for_volumes || volume == SetId::EMPTY {
            return strict;
        }
        match table.combine(strict, volume, Undefined::Allowed) {
            Combined::Set(both) => both,
            Combined::Undefined | Combined::Contradiction => strict,
        }
    }
}

/// A class in one state of relaxation.
pub(super) struct Variant {
    /// The specification, compiled.
    pub(super) form: Arc<Form>,
    /// Topology groups that it owns.
    pub(super) owned: SmallVec<[usize; 4]>,
    /// Whether it tolerates a taint list, by list.
    tolerates: SmallVec<[Option<bool>; 8]>,
    /// Open claims that can never take it in this pass.
    pub(super) lost_claims: GrowingBits,
    /// Those of them that refuse it only after a look at their instance types.
    pub(super) full_claims: GrowingBits,
    /// The others, as far as they were counted.
    pub(super) open: OpenClaims,
    /// Where the search for an existing node begins: none before it can ever take it in this pass.
    pub(super) first_open_node: usize,
    /// Existing nodes that can never take it in this pass.
    pub(super) lost_nodes: GrowingBits,
}

/// Claims that have not refused pods for good, in no order.
#[derive(Default)]
pub(super) struct OpenClaims {
    /// Positions; some may have refused since.
    pub(super) list: SmallVec<[u32; 4]>,
    /// Claims before this position are in the list or lost.
    pub(super) seen: usize,
    /// The instance types of the claims that are full, as of a stamp of the pass.
    pub(super) full_types: u64,
    pub(super) stamp: u64,
}

impl Variant {
    fn new(form: Arc<Form>, topology: &mut Topology<'_>, table: &mut RequirementTable) -> Self {
        Self {
            owned: topology.own(&form.constraints, table),
            form,
            tolerates: SmallVec::new(),
            lost_claims: GrowingBits::default(),
            full_claims: GrowingBits::default(),
            open: OpenClaims::default(),
            first_open_node: 0,
            lost_nodes: GrowingBits::default(),
        }
    }

    /// Whether it tolerates every taint of a list.
    pub(super) fn tolerates(&mut self, taints: TaintsId, rules: &Rules) -> bool {
        if self.tolerates.len() <= taints.index() {
            self.tolerates.resize(taints.index() + 1, None);
        }
        let known = &mut self.tolerates[taints.index()];
        *known.get_or_insert_with(|| first_untolerated(rules.taint_list(taints), &self.form.spec.tolerations).is_none())
    }
}

/// Everything that sorting and relaxing pods needs beside the topology.
pub(super) struct SortContext<'w> {
    pub(super) setup: &'w super::PackingSetup<'w>,
    pub(super) spanning: &'w [usize],
    /// Whether some pool has a taint that is only a preference.
    pub(super) prefer_no_schedule: bool,
    pub(super) shapes: &'w mut Shapes,
    pub(super) table: &'w mut RequirementTable,
}

impl SortContext<'_> {
    fn form(&mut self, shape: usize, step: usize, topology: &mut Topology<'_>) -> Option<Arc<Form>> {
        let (setup, spanning, prefer_no_schedule) = (self.setup, self.spanning, self.prefer_no_schedule);
        let (table, rules) = (&mut *self.table, topology.rules());
        self.shapes.form(shape, step, &mut CompileContext { setup, spanning, prefer_no_schedule, table, rules })
    }
}

/// All classes of a pass.
pub(super) struct Classes {
    /// The classes.
    pub(super) list: Vec<Class>,
    /// The class of each pod, by position in the question.
    pub(super) of_pod: Vec<usize>,
}

impl Classes {
    /// Sorts the pods into classes.
    pub(super) fn build(
        pods: &[PendingPod<'_>],
        volumes: &[Option<PodVolumes>],
        tools: &mut SortContext<'_>,
        resources: &mut ResourceTable,
        topology: &mut Topology<'_>,
    ) -> Self {
        let mut known: FxHashMap<(usize, Vec<SetId>), usize> = FxHashMap::default();
        /// No class yet.
        const NONE: usize = usize::MAX;
        let mut without_volumes: Vec<usize> = Vec::new();
        /// More classes than this are rare, and each takes much room.
        const FEW: usize = 64;
        let list = Vec::with_capacity(pods.len().min(FEW));
        let mut classes = Self { list, of_pod: Vec::with_capacity(pods.len()) };
        topology.make_room(pods.len().min(FEW));
        for (position, pod) in pods.iter().enumerate() {
            let volume = volumes.get(position).and_then(Option::as_ref);
            let (setup, spanning, prefer_no_schedule) = (tools.setup, tools.spanning, tools.prefer_no_schedule);
            let (table, rules) = (&mut *tools.table, topology.rules());
            let mut workshop = CompileContext { setup, spanning, prefer_no_schedule, table, rules };
            let shape = tools.shapes.find(pod.namespace, pod.spec, resources, &mut workshop);
            let next = classes.list.len();
            let class = match volume {
                None => {
                    if without_volumes.len() <= shape {
                        without_volumes.resize(shape + 1, NONE);
                    }
                    let known = &mut without_volumes[shape];
                    *known = (*known).min(next);
                    *known
                }
                Some(volume) => {
                    let sets = volume.alternatives.iter().map(|set| tools.table.intern(set)).collect();
                    *known.entry((shape, sets)).or_insert(next)
                }
            };
            if class == next {
                let sets = volume.map_or_else(
                    || smallvec![SetId::EMPTY],
                    |volume| volume.alternatives.iter().map(|set| tools.table.intern(set)).collect(),
                );
                classes.add(shape, sets, tools, topology);
            }
            classes.of_pod.push(class);
        }
        classes
    }

    fn add(
        &mut self,
        shape: usize,
        volume_sets: SmallVec<[SetId; 1]>,
        tools: &mut SortContext<'_>,
        topology: &mut Topology<'_>,
    ) {
        let Some(form) = tools.form(shape, 0, topology) else { return };
        let shape = Arc::clone(tools.shapes.shape(shape));
        topology.add_class(shape.number, &shape.inverse);
        let first = Variant::new(form, topology, tools.table);
        let wishes_for_volumes = !tools.setup.behaviour().keeps_volumes_from_spread;
        self.list.push(Class { shape, volume_sets, wishes_for_volumes, variants: smallvec![first] });
    }

    /// The next state of relaxation of a class after `variant`, if there is one.
    pub(super) fn relax(
        &mut self,
        class: usize,
        variant: usize,
        tools: &mut SortContext<'_>,
        topology: &mut Topology<'_>,
    ) -> Option<usize> {
        let class = &mut self.list[class];
        if variant + 1 == class.variants.len() {
            let form = tools.form(class.shape.number, variant + 1, topology)?;
            class.variants.push(Variant::new(form, topology, tools.table));
        }
        Some(variant + 1)
    }
}

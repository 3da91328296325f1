//! Pods of one specification, computed once: requests, requirements, topology groups, and the chain of specifications
//! that relaxing leads through.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::bits::GrowingBits;
use super::input::{PackingSetup, PendingPod, PreferencePolicy};
use super::relaxation;
use super::requirement_table::{RequirementTable, SetId};
use super::resource_table::ResourceTable;
use super::templates::strict_requirements;
use super::topology::{TaintsId, Topology};
use super::volumes::PodVolumes;
use crate::domain::pod::HostPort;
use crate::domain::requirements::{Requirement, Requirements};
use crate::domain::symbol::well_known;
use crate::domain::taints::first_untolerated;
use crate::domain::{PodSpec, Resources, Symbol};

/// Pods that no rule can tell apart, except by their place in the queue.
pub(super) struct Class {
    /// Their namespace.
    pub(super) namespace: Symbol,
    /// What one of them requests.
    pub(super) requests: Resources,
    /// The same as a vector.
    pub(super) amounts: Vec<i64>,
    /// Ports that one of them opens.
    pub(super) ports: Vec<HostPort>,
    /// Where their volumes can be: alternatives, one of which must hold.
    pub(super) volume_sets: Vec<SetId>,
    /// The specification as it is and, once needed, as each relaxation leaves it.
    pub(super) variants: Vec<Variant>,
    /// Whether the last variant is known to be the last.
    exhausted: bool,
}

/// A class in one state of relaxation.
pub(super) struct Variant {
    /// The specification.
    pub(super) spec: Arc<PodSpec>,
    /// Requirements, the heaviest preference included; without the host name.
    pub(super) set: SetId,
    /// Requirements without preferences.
    pub(super) strict: SetId,
    /// The requirement on the host name.
    pub(super) host: Option<Requirement>,
    /// The same without preferences.
    pub(super) strict_host: Option<Requirement>,
    /// Topology groups that it owns.
    pub(super) owned: Vec<usize>,
    /// Whether it tolerates a taint list, by list.
    tolerates: Vec<Option<bool>>,
    /// Open claims that can never take it in this pass.
    pub(super) lost_claims: GrowingBits,
    /// Existing nodes that can never take it in this pass.
    pub(super) lost_nodes: GrowingBits,
}

impl Variant {
    /// Whether it tolerates every taint of a list.
    pub(super) fn tolerates(&mut self, taints: TaintsId, topology: &Topology<'_>) -> bool {
        if self.tolerates.len() <= taints.index() {
            self.tolerates.resize(taints.index() + 1, None);
        }
        let known = &mut self.tolerates[taints.index()];
        *known.get_or_insert_with(|| first_untolerated(topology.taint_list(taints), &self.spec.tolerations).is_none())
    }
}

/// All classes of a pass.
pub(super) struct Classes {
    /// The classes.
    pub(super) list: Vec<Class>,
    /// The class of each pod, by position in the situation.
    pub(super) of_pod: Vec<usize>,
}

impl Classes {
    /// Sorts the pods into classes. Pods share a class if they share namespace, specification and the places of their
    /// volumes.
    pub(super) fn build(
        setup: &PackingSetup<'_>,
        pods: &[PendingPod<'_>],
        volumes: &[Option<PodVolumes>],
        table: &mut RequirementTable,
        resources: &mut ResourceTable,
        topology: &mut Topology<'_>,
    ) -> Self {
        let mut by_pointer: FxHashMap<(Symbol, *const PodSpec), usize> = FxHashMap::default();
        let mut by_value: FxHashMap<(Symbol, &PodSpec, Vec<SetId>), usize> = FxHashMap::default();
        let mut classes = Self { list: Vec::new(), of_pod: Vec::with_capacity(pods.len()) };
        for (pod, own) in pods.iter().zip(volumes) {
            let pointer = (pod.namespace, Arc::as_ptr(pod.spec));
            let without_volumes = pod.spec.volumes.is_empty();
            if let Some(&class) = by_pointer.get(&pointer).filter(|_| without_volumes) {
                classes.of_pod.push(class);
                continue;
            }
            let sets: Vec<SetId> = match own {
                Some(own) => own.alternatives.iter().map(|set| table.intern(set)).collect(),
                None => vec![SetId::EMPTY],
            };
            let next = classes.list.len();
            let class = *by_value.entry((pod.namespace, pod.spec, sets.clone())).or_insert(next);
            if class == next {
                classes.list.push(new_class(setup, pod, sets, table, resources, topology));
            }
            by_pointer.insert(pointer, class);
            classes.of_pod.push(class);
        }
        classes
    }

    /// The next state of relaxation of a class after `variant`, if there is one.
    pub(super) fn relax(
        &mut self,
        class: usize,
        variant: usize,
        prefer_no_schedule: bool,
        setup: &PackingSetup<'_>,
        table: &mut RequirementTable,
        topology: &mut Topology<'_>,
    ) -> Option<usize> {
        let own = &mut self.list[class];
        if variant + 1 < own.variants.len() {
            return Some(variant + 1);
        }
        if own.exhausted {
            return None;
        }
        match relaxation::relax(&own.variants[variant].spec, prefer_no_schedule) {
            None => {
                own.exhausted = true;
                None
            }
            Some(spec) => {
                let next = new_variant(setup, Arc::new(spec), own.namespace, table, topology);
                own.variants.push(next);
                Some(variant + 1)
            }
        }
    }
}

fn new_class(
    setup: &PackingSetup<'_>,
    pod: &PendingPod<'_>,
    volume_sets: Vec<SetId>,
    table: &mut RequirementTable,
    resources: &mut ResourceTable,
    topology: &mut Topology<'_>,
) -> Class {
    topology.add_class(pod.spec, pod.namespace, table);
    let requests = pod.spec.requests();
    Class {
        namespace: pod.namespace,
        amounts: resources.dense(&requests),
        requests,
        ports: pod.spec.host_ports().collect(),
        volume_sets,
        variants: vec![new_variant(setup, Arc::clone(pod.spec), pod.namespace, table, topology)],
        exhausted: false,
    }
}

fn new_variant(
    setup: &PackingSetup<'_>,
    spec: Arc<PodSpec>,
    namespace: Symbol,
    table: &mut RequirementTable,
    topology: &mut Topology<'_>,
) -> Variant {
    let strict = strict_requirements(&spec);
    let mut full = strict.clone();
    if setup.options.preferences == PreferencePolicy::Respect {
        let preferred = &spec.node_affinity.preferred;
        if let Some(heaviest) = relaxation::heaviest(preferred, |term| term.weight) {
            full.extend(&preferred[heaviest].term.requirements());
        }
    }
    let host = |set: &Requirements| set.get(well_known::HOSTNAME).cloned();
    Variant {
        owned: topology.own(&spec, namespace, table),
        set: table.intern(&full),
        strict: table.intern(&strict),
        host: host(&full),
        strict_host: host(&strict),
        tolerates: Vec::new(),
        lost_claims: GrowingBits::default(),
        lost_nodes: GrowingBits::default(),
        spec,
    }
}

//! Karpenter's scheduler: which pods go on which nodes, existing or new, and which instance types a new node may have.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling` and `pkg/scheduling`. One call is one scheduling
//! pass. Older releases differ only where [`PackingSetup::karpenter`] is consulted.
//!
//! [`Packer::new`] compiles node pools, instance types and daemons once; [`Packer::pack`] then answers for any set of
//! nodes and pods, so that consolidation can ask "what if these nodes were gone" again and again.
//!
//! What must not live here: when a pass happens, which pods are provisionable, what a launch request looks like
//! (`selection`), the creation of anything.

mod bits;
mod by_group;
mod claim;
mod classes;
mod errors;
mod existing;
mod finish;
mod go_sort;
mod input;
mod min_values;
mod pass;
mod plan;
mod ports;
mod relaxation;
mod requirement_table;
mod reservations;
mod resource_table;
mod templates;
mod topology;
mod type_table;
mod validation;
mod volumes;

pub use errors::{
    CriteriaMissed, HostPortConflict, PoolRefusal, Refusal, ReservedRefusal, TopologyKind, TopologyRefusal,
    TypesRefusal, Unschedulable, VolumeRefusal,
};
pub use input::{
    BoundPod, MinValuesPolicy, NamespaceView, NodeView, PackingOptions, PackingSetup, PendingPod, PoolView,
    PreferencePolicy, ReservedMode, Situation, TieBreak, Volumes,
};
pub use min_values::min_values_missed;
pub use plan::{DroppedPool, ExistingPlacement, PackingPlan, PlannedClaim, PricedType, UnschedulablePod};
pub use type_table::{TypeVerdict, judge_types};
pub use validation::{LeftOut, takes_on};

use crate::domain::KarpenterVersion;

/// Node pools, instance types and daemons, compiled; remembers what it has worked out from one pass to the next.
pub struct Packer<'a> {
    setup: PackingSetup<'a>,
    table: requirement_table::RequirementTable,
    resources: resource_table::ResourceTable,
    templates: templates::Templates,
    tables: Vec<type_table::TypeTable<'a>>,
}

impl<'a> Packer<'a> {
    /// Compiles a setup. It must be done again when an offering becomes available or unavailable, or a price changes.
    pub fn new(setup: PackingSetup<'a>) -> Self {
        let mut table = requirement_table::RequirementTable::new();
        let mut resources = resource_table::ResourceTable::default();
        let (templates, tables) = templates::compile(&setup, &mut table, &mut resources);
        Self { setup, table, resources, templates, tables }
    }

    /// One scheduling pass.
    pub fn pack(&mut self, situation: &Situation<'_>) -> PackingPlan {
        let setup = &self.setup;
        let mut topology = topology::Topology::new(setup, &self.templates.spanning, situation.ties);
        let existing = existing::read_nodes(
            setup,
            situation,
            &self.templates,
            &mut self.table,
            &mut self.resources,
            &mut topology,
        );
        let (volumes, failures) = resolve_volumes(setup, situation);
        let left_out: Vec<bool> = failures.iter().map(Option::is_some).collect();
        let classes = classes::Classes::build(
            setup,
            situation.pods,
            &volumes,
            &mut self.table,
            &mut self.resources,
            &mut topology,
        );
        for table in &mut self.tables {
            table.prepare_resources(&self.resources);
        }
        if setup.karpenter <= KarpenterVersion::V0_6 {
            let (templates, table, tables) = (&self.templates, &mut self.table, &mut self.tables[..]);
            return by_group::GroupPass { setup, situation, templates, table, tables, classes, topology }.plan();
        }
        let pools = self.templates.list.iter().map(|template| setup.pools[template.pool].pool);
        let taints = pools.map(|pool| topology.intern_taints(&pool.taints)).collect();
        let engine = claim::Engine {
            setup,
            templates: &self.templates,
            table: &mut self.table,
            tables: &mut self.tables,
            topology,
            reservations: reservations::Reservations::new(setup),
            reserved: situation.reserved,
            taints,
            left: Vec::new(),
            totals: Vec::new(),
        };
        let mut pass = pass::Pass::new(engine, situation, classes, volumes, existing);
        pass.solve(&left_out);
        for (failure, volume) in pass.failures.iter_mut().zip(failures) {
            if volume.is_some() {
                *failure = volume.map(Unschedulable::Volume);
            }
        }
        finish::plan(pass)
    }
}

/// One pass with a setup that is used once.
pub fn pack(setup: PackingSetup<'_>, situation: &Situation<'_>) -> PackingPlan {
    Packer::new(setup).pack(situation)
}

type ResolvedVolumes = (Vec<Option<volumes::PodVolumes>>, Vec<Option<VolumeRefusal>>);

/// The volumes of each pod, or why the pod must be left out.
fn resolve_volumes(setup: &PackingSetup<'_>, situation: &Situation<'_>) -> ResolvedVolumes {
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    for pod in situation.pods {
        let resolved =
            (!pod.spec.volumes.is_empty()).then(|| volumes::resolve(setup.volumes, pod.namespace, pod.name, pod.spec));
        let (own, refusal) = match resolved {
            None => (None, None),
            Some(Ok(own)) => (Some(own), None),
            Some(Err(refusal)) => (None, Some(refusal)),
        };
        found.push(own);
        refused.push(refusal);
    }
    (found, refused)
}

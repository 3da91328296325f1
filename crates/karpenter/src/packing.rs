//! Karpenter's scheduler: which pods go on which nodes, existing or new, and which instance types a new node may have.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling` and `pkg/scheduling`. One call is one scheduling
//! pass. Older releases differ only where [`PackingSetup::karpenter`] is consulted.
//!
//! [`Packer::new`] compiles node pools, instance types and daemons once; [`Packer::pack`] then answers for any set of
//! nodes and pods. [`Packer::cluster`] compiles the nodes too, so that consolidation can ask "what if these nodes were
//! gone" hundreds of times: [`Packer::simulate`] does work only for what the question takes away and places, and leaves
//! the cluster as it was.
//!
//! What must not live here: when a pass happens, which pods are provisionable, what a launch request looks like
//! (`selection`), the creation of anything.

mod bits;
mod by_group;
mod certainty;
mod claim;
mod classes;
mod cluster;
mod cost_aware;
mod default_spread;
#[cfg(test)]
mod drift_of_new_nodes;
mod errors;
mod existing;
mod existing_index;
mod finish;
mod go_sort;
mod hints;
mod input;
mod launch_cost;
mod min_values;
mod node_memo;
mod node_pods;
mod offers;
mod pass;
mod plan;
mod pool_verdict;
mod ports;
mod queue;
mod relaxation;
mod requirement_table;
mod reservations;
mod resource_table;
mod run_prediction;
mod shapes;
mod static_claim;
mod templates;
mod topology;
mod type_table;
mod validation;
mod volumes;
mod work;

pub use cluster::{ClusterView, WhatIf};
pub use default_spread::DefaultSpread;
pub use errors::{
    CriteriaMissed, HostPortConflict, PoolRefusal, Refusal, ReservedRefusal, TopologyKind, TopologyRefusal,
    TypesRefusal, Unschedulable, VolumeRefusal,
};
pub use input::{
    BoundPod, MinValuesPolicy, NamespaceView, NodeView, PackerKind, PackingOptions, PackingSetup, PendingPod, PoolView,
    PreferencePolicy, ReservedMode, Situation, TieBreak, Volumes,
};
pub use min_values::min_values_missed;
pub use node_pods::NodePods;
pub use offers::{LowerBound, lower_bound};
pub use plan::{
    DroppedPool, ExistingPlacement, GivenUp, NodeVerdict, PackingPlan, PlannedClaim, PricedType, UnschedulablePod,
};
pub use pool_verdict::{PoolVerdict, TypeGroup, refusal_of};
pub use queue::QueuedPods;
pub use run_prediction::Outline;
pub use static_claim::static_claim;
pub use type_table::{OffersChanged, TypeVerdict, TypesChanged, judge_types};
pub use validation::{LeftOut, takes_on, takes_on_in};
pub use work::PassWork;

use std::sync::Arc;

use self::reservations::Reservations;
use crate::bin_packing::Effort;
use nodecast_model::domain::{Check, HourlyRate, KarpenterVersion, PodSpec, SimDuration, Symbol};

/// Node pools, instance types and daemons, compiled; remembers what it has worked out from one pass to the next.
pub struct Packer<'a> {
    setup: PackingSetup<'a>,
    table: requirement_table::RequirementTable,
    resources: resource_table::ResourceTable,
    templates: templates::Templates,
    tables: Vec<type_table::TypeTable<'a>>,
    rules: topology::Rules,
    shapes: shapes::Shapes,
    orders: finish::PriceOrders,
    nodes: node_memo::NodeMemo,
    lanes: run_prediction::PodRunCache,
    plans: cost_aware::PlanCache,
}

/// What a [`Packer`] compiled and worked out, kept while nobody asks: see [`Packer::resume`].
pub struct PackerMemory(Packer<'static>);

/// How many sets of requirements a kept memory may know: clusters whose nodes all differ would let it grow without end.
const KEPT_SETS_MAX: usize = 20_000;

/// The setup of a packer at rest.
const NO_SETUP: PackingSetup<'static> = PackingSetup {
    karpenter: KarpenterVersion::V1_13,
    options: PackingOptions {
        preferences: PreferencePolicy::Respect,
        min_values: MinValuesPolicy::Strict,
        max_instance_types: 0,
        check: Check::AsBuilt,
    },
    pools: &[],
    daemons: &[],
    namespaces: &[],
    volumes: Volumes { storage: None },
    default_spread: None,
};

impl<'a> Packer<'a> {
    /// Goes on with what an earlier packer left; compiles the setup where nothing is kept.
    ///
    /// The setup must be equal to the earlier one in release, options, pools, daemons, namespaces and instance types but for
    /// what `changed` says of these; volumes may differ. The answers are those of [`Self::new`].
    pub fn resume(setup: PackingSetup<'a>, memory: Option<(PackerMemory, TypesChanged)>) -> Self {
        let Some((PackerMemory(kept), changed)) = memory else { return Self::new(setup) };
        let Packer {
            setup: _,
            mut table,
            mut resources,
            mut templates,
            tables,
            rules,
            mut shapes,
            mut orders,
            mut nodes,
            mut lanes,
            plans,
        } = kept;
        let types = templates::tables_of(&setup, &templates);
        let tables = tables.into_iter().zip(types).map(|(table, types)| type_table::TypeTable::attached(table, types));
        let mut tables: Vec<type_table::TypeTable<'a>> = tables.collect();
        if changed != TypesChanged::default() {
            if changed.amounts {
                tables.iter_mut().for_each(|table| table.renew_amounts(&resources));
            }
            renew_offers(&setup, &changed.offers, &mut tables, &mut orders);
            shapes.forget_sure();
            lanes.clear();
            if !templates::reopen(&setup, &mut templates, &mut tables, &mut table) {
                // The tables of types are what takes long, and they hold whichever pools are left: in an outage some pool drops out or
                // comes back every few seconds.
                let again = templates::compile(&setup, &mut tables, &mut table, &mut resources);
                orders.forget_labels();
                if again.daemons != templates.daemons {
                    nodes = node_memo::NodeMemo::default();
                }
                templates = again;
            }
        }
        Self { setup, table, resources, templates, tables, rules, shapes, orders, nodes, lanes, plans }
    }

    /// Lets go of the setup and keeps what was worked out; `None` if that is too much to keep.
    pub fn into_memory(self) -> Option<PackerMemory> {
        let Self { setup: _, table, resources, templates, tables, rules, shapes, orders, nodes, lanes, plans } = self;
        if table.sets() > KEPT_SETS_MAX {
            return None;
        }
        let tables = tables.into_iter().map(type_table::TypeTable::detached).collect();
        Some(PackerMemory(Packer {
            setup: NO_SETUP,
            table,
            resources,
            templates,
            tables,
            rules,
            shapes,
            orders,
            nodes,
            lanes,
            plans,
        }))
    }

    /// Compiles a setup.
    pub fn new(setup: PackingSetup<'a>) -> Self {
        let mut table = requirement_table::RequirementTable::new(setup.karpenter);
        let mut resources = resource_table::ResourceTable::default();
        let mut tables = Vec::new();
        let templates = templates::compile(&setup, &mut tables, &mut table, &mut resources);
        Self {
            setup,
            table,
            resources,
            templates,
            tables,
            rules: topology::Rules::default(),
            shapes: shapes::Shapes::default(),
            orders: finish::PriceOrders::default(),
            nodes: node_memo::NodeMemo::default(),
            lanes: run_prediction::PodRunCache::default(),
            plans: cost_aware::PlanCache::default(),
        }
    }

    /// One scheduling pass.
    pub fn pack(&mut self, situation: &Situation<'_>) -> PackingPlan {
        self.pack_within(situation, None)
    }

    /// The same within a time on the processor that was measured: what is placed by then.
    pub fn pack_within(&mut self, situation: &Situation<'_>, time: Option<SimDuration>) -> PackingPlan {
        let question = WhatIf { time, ..WhatIf::placing(situation.pods, situation.reserved, situation.ties) };
        let mut cluster = self.cluster(situation.nodes);
        self.simulate(&mut cluster, &question)
    }

    /// One pass by the cost-aware packer: never dearer than [`Self::pack`], and the same where no cheaper nodes are found. It
    /// exists for the releases from v0.16 on, whose rules it keeps.
    pub fn pack_cost_aware(&mut self, situation: &Situation<'_>, effort: &mut Effort<'_>) -> PackingPlan {
        let question = WhatIf::placing(situation.pods, situation.reserved, situation.ties);
        let mut cluster = self.cluster(situation.nodes);
        let usual = self.simulate(&mut cluster, &question);
        if self.setup.behaviour().packs_by_group || usual.claims.is_empty() {
            return usual;
        }
        let mut cheap = self.plan(&mut cluster, &question, Some(effort));
        cluster.existing.revert();
        cost_aware::keep_cheapest(&self.setup, &mut cheap);
        let usual_cost = usual.launch_cost(&self.setup);
        let plan = if cost_aware::is_better(&self.setup, &cheap, &usual) { cheap } else { usual };
        if self.check().compares() {
            self.check_cost(situation, &plan, usual_cost);
        }
        plan
    }

    /// Ends the run if a plan of the cost-aware packer costs more than Karpenter's or less than any plan can.
    fn check_cost(&self, situation: &Situation<'_>, plan: &PackingPlan, usual: Option<HourlyRate>) {
        let Some(cost) = plan.launch_cost(&self.setup) else { return };
        self.check().hold(usual.is_none_or(|usual| cost <= usual), || {
            format!("the cost-aware packer plans nodes for {cost}/h, Karpenter for {}/h", usual.unwrap_or_default())
        });
        let placed = (plan.claims.iter().flat_map(|claim| &claim.pods))
            .chain(plan.existing.iter().flat_map(|placement| &placement.pods));
        let placed: Vec<usize> = placed.copied().collect();
        let mut effort = Effort { steps: Effort::CHECK, go_on: &mut || true };
        let bound = lower_bound(&self.setup, situation.nodes, situation.pods, &placed, &mut effort).per_hour;
        self.check().hold(bound <= cost, || {
            format!("the cost-aware packer plans nodes for {cost}/h, below the lower bound of {bound}/h")
        });
    }

    /// Whether what is told without packing is packed too, and compared.
    pub const fn check(&self) -> Check {
        self.setup.options.check
    }

    /// Compiles the nodes of a cluster for questions to this packer.
    pub fn cluster(&mut self, nodes: &[NodeView<'_>]) -> ClusterView {
        let Self { setup, table, resources, templates, rules, nodes: memo, .. } = self;
        ClusterView::new(setup, templates, table, resources, rules, memo, nodes)
    }

    /// One scheduling pass over a cluster as a question changes it. `cluster` must come from this packer; it is left as it
    /// was.
    pub fn simulate(&mut self, cluster: &mut ClusterView, question: &WhatIf<'_>) -> PackingPlan {
        for &node in question.without {
            cluster.existing.withdraw(node);
        }
        let plan = self.plan(cluster, question, None);
        cluster.existing.revert();
        plan
    }

    /// The number of the shape of such pods.
    fn shape(&mut self, namespace: Symbol, spec: &Arc<PodSpec>) -> usize {
        let Self { setup, table, resources, templates, rules, shapes, .. } = self;
        let (spanning, prefer_no_schedule) = (&templates.spanning[..], templates.prefer_no_schedule);
        let mut workshop = shapes::CompileContext { setup, spanning, prefer_no_schedule, table, rules };
        shapes.find(namespace, spec, resources, &mut workshop)
    }

    /// A pass by Karpenter's queue, or with some effort for a cheaper plan.
    fn plan(
        &mut self,
        cluster: &mut ClusterView,
        question: &WhatIf<'_>,
        effort: Option<&mut Effort<'_>>,
    ) -> PackingPlan {
        let setup = &self.setup;
        let limits = cluster.limits_without(question.without, setup, &self.templates);
        let taken = topology::Removal::new(question.without, question.displaced);
        let nodes = cluster.len();
        let existing = &mut cluster.existing;
        let mut topology = topology::Topology::new(
            setup,
            &mut self.rules,
            &mut cluster.topology,
            &taken,
            question.ties,
            &mut self.table,
        );
        let (volumes, failures) = resolve_volumes(setup, question.pods);
        let left_out: Vec<bool> = failures.iter().map(Option::is_some).collect();
        let mut tools = classes::SortContext {
            setup,
            spanning: &self.templates.spanning,
            prefer_no_schedule: self.templates.prefer_no_schedule,
            shapes: &mut self.shapes,
            table: &mut self.table,
        };
        let classes = classes::Classes::build(question.pods, &volumes, &mut tools, &mut self.resources, &mut topology);
        for table in &mut self.tables {
            table.prepare_resources(&self.resources);
        }
        if setup.behaviour().packs_by_group {
            let (templates, table, tables) = (&self.templates, &mut self.table, &mut self.tables[..]);
            let (pods, shapes) = (question.pods, &mut self.shapes);
            return by_group::GroupPass { setup, pods, templates, table, tables, shapes, classes, topology }.plan();
        }
        let pools = self.templates.list.iter().map(|template| setup.pools[template.pool].pool);
        let taints = pools.map(|pool| topology.rules().intern_taints(&pool.taints)).collect();
        let reserved_capacity = self.tables.iter().any(|table| table.has_reservations);
        let reservations = if reserved_capacity { Reservations::new(setup) } else { Reservations::default() };
        let engine = claim::Engine {
            setup,
            templates: &self.templates,
            table: &mut self.table,
            tables: &mut self.tables,
            topology,
            reservations,
            reserved: question.reserved,
            taints,
            left: Vec::new(),
            totals: Vec::new(),
            ports_taken: self.templates.list.iter().map(|template| template.daemon_ports.clone()).collect(),
        };
        let asked = asked(setup, nodes, question, &self.resources, volumes);
        let mut pass = pass::Pass::new(engine, asked, classes, &mut self.shapes, existing, limits);
        if !question.unready.is_empty() && !pass.all_are_sure() {
            pass.asked.unready.clear();
        }
        match effort {
            None => pass.solve(&left_out),
            Some(effort) => pass.solve_cheaply(&left_out, effort, &mut self.plans),
        }
        for (failure, volume) in pass.failures.iter_mut().zip(failures) {
            if volume.is_some() {
                *failure = volume.map(Unschedulable::Volume);
            }
        }
        finish::plan(pass, &mut self.orders)
    }
}

fn asked<'p>(
    setup: &PackingSetup<'_>,
    nodes: usize,
    question: &WhatIf<'p>,
    resources: &'p resource_table::ResourceTable,
    volumes: Vec<Option<volumes::PodVolumes>>,
) -> pass::PassInput<'p> {
    let marked = |size: usize, positions: &[usize]| {
        let mut marks = vec![false; size];
        for &position in positions {
            marks[position] = true;
        }
        marks
    };
    let hasty = !question.unready.is_empty();
    // Source: Karpenter core v1.14 `pkg/controllers/disruption/helpers.go`, `SimulateScheduling`.
    let asks = setup.behaviour().weighs_savings && !question.unsettled.is_empty();
    pass::PassInput {
        nodes,
        pods: question.pods,
        volumes,
        running: if asks || hasty { marked(question.pods.len(), question.running) } else { Vec::new() },
        unsettled: if asks { marked(nodes, question.unsettled) } else { Vec::new() },
        unready: if hasty { marked(nodes, question.unready) } else { Vec::new() },
        time: question.time,
        most_claims: question.most_claims,
        only_one: question.only_one,
        watched: question.watched,
        resources,
    }
}

/// Takes over changed offers, table by table.
fn renew_offers(
    setup: &PackingSetup<'_>,
    changed: &OffersChanged,
    tables: &mut [type_table::TypeTable<'_>],
    orders: &mut finish::PriceOrders,
) {
    for (position, table) in tables.iter_mut().enumerate() {
        let types: Vec<usize> = match changed {
            OffersChanged::All => (0..table.types.len()).collect(),
            OffersChanged::Of(list) => {
                let of_table = |pool: usize| std::ptr::eq(setup.pools[pool].instance_types, table.types);
                let mut numbers: Vec<usize> =
                    list.iter().filter(|(pool, _)| of_table(*pool)).map(|&(_, at)| at).collect();
                numbers.sort_unstable();
                numbers.dedup();
                numbers
            }
        };
        table.renew_offers(types.iter().copied());
        orders.renew(setup, (position, table), &types);
    }
}

/// One pass with a setup that is used once.
pub fn pack(setup: PackingSetup<'_>, situation: &Situation<'_>) -> PackingPlan {
    Packer::new(setup).pack(situation)
}

type ResolvedVolumes = (Vec<Option<volumes::PodVolumes>>, Vec<Option<VolumeRefusal>>);

/// The volumes of each pod, or why the pod must be left out; empty where no pod has any.
fn resolve_volumes(setup: &PackingSetup<'_>, pods: &[PendingPod<'_>]) -> ResolvedVolumes {
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    if pods.iter().all(|pod| pod.spec.volumes.is_empty()) {
        return (found, refused);
    }
    let all_places = setup.behaviour().tries_all_volume_places;
    for pod in pods {
        let resolved = (!pod.spec.volumes.is_empty())
            .then(|| volumes::resolve(setup.volumes, pod.namespace, pod.name, pod.spec, all_places));
        let (item, refusal) = match resolved {
            None => (None, None),
            Some(Ok(resolved)) => (Some(resolved), None),
            Some(Err(refusal)) => (None, Some(refusal)),
        };
        found.push(item);
        refused.push(refusal);
    }
    (found, refused)
}

//! What each NodePool would launch: requirements, taints, instance types, daemons.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/scheduler.go` (`NewScheduler`,
//! `getDaemonOverhead`, `isDaemonPodCompatible`) and `nodeclaimtemplate.go`.

mod daemons;

pub(super) use daemons::DaemonGroup;

use std::cmp::Ordering;

use super::bits::{self, Bits};
use super::errors::{CriteriaMissed, Refusal, TypesRefusal};
use super::input::{MinValuesPolicy, PackingSetup};
use super::min_values;
use super::plan::DroppedPool;
use super::relaxation;
use super::requirement_table::{RequirementTable, SetId, Undefined};
use super::resource_table::ResourceTable;
use super::type_table::{TypeQuery, TypeTable};
use crate::instance_types::{InstanceType, capacity_type_key};
use nodecast_model::domain::pod::HostPort;
use nodecast_model::domain::requirements::{Requirement, Requirements};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::taints::first_untolerated;
use nodecast_model::domain::{Labels, NodePool, PodSpec, Resources};

/// A pool, ready to open claims.
pub(super) struct Template {
    /// Position in the setup.
    pub(super) pool: usize,
    /// Position of its type table.
    pub(super) table: usize,
    /// Requirements of every claim.
    pub(super) set: SetId,
    /// Types that the pool's own requirements leave.
    pub(super) types: Bits,
    /// What the daemons request on each claim, whatever its type.
    pub(super) daemon_requests: Resources,
    /// The same as a vector.
    pub(super) daemon_amounts: Vec<i64>,
    /// Ports that the daemons take, whatever the type.
    pub(super) daemon_ports: Vec<HostPort>,
    /// Types with different daemons, each of which is in one group; none where all have the same (before v1.14 always).
    pub(super) daemon_groups: Vec<DaemonGroup>,
}

/// The templates in the order in which they are tried, with what was found on the way.
pub(super) struct Templates {
    /// By weight, the heaviest first; equal weights by name, the last first.
    pub(super) list: Vec<Template>,
    /// Pools without any usable type.
    pub(super) dropped: Vec<DroppedPool>,
    /// Positions of the dynamic pools with instance types: they span the topology domains.
    pub(super) spanning: Vec<usize>,
    /// Whether some pool has a taint that is only a preference.
    pub(super) prefer_no_schedule: bool,
    /// Whether there was any dynamic pool.
    pub(super) any_dynamic: bool,
    /// The daemons as the scan over the pools left them.
    pub(super) daemons: Vec<PodSpec>,
}

/// Labels that every node of a pool has. The label of v0.x that names the Provisioner is read as the present one.
pub(super) fn pool_labels(setup: &PackingSetup<'_>, pool: usize) -> Labels {
    let pool = setup.pools[pool].pool;
    let mut labels = pool.labels.clone();
    labels.set(well_known::NODEPOOL, pool.name);
    if setup.behaviour().labels_node_class {
        labels.set(well_known::EC2_NODE_CLASS, pool.node_class);
    }
    labels
}

/// What a pool requires of its nodes: its requirements, its labels, its name and its node class.
pub(super) fn pool_requirements(setup: &PackingSetup<'_>, pool: usize) -> Requirements {
    let mut requirements: Requirements = setup.pools[pool].pool.requirements.iter().cloned().collect();
    for (key, value) in pool_labels(setup, pool).iter() {
        requirements.add(Requirement::equals(nodecast_model::domain::labels::normalized_key(key), value));
    }
    requirements
}

/// Whether a pool opens nodes for pods: it is ready, and not static.
fn may_launch(pool: &NodePool) -> bool {
    pool.ready && pool.replicas.is_none()
}

/// Compiles the setup's pools. Up to v0.33 pools of equal weight stay in their order. Of `tables`, those of the spanning pools, what is missing is compiled too.
pub(super) fn compile<'a>(
    setup: &PackingSetup<'a>,
    tables: &mut Vec<TypeTable<'a>>,
    table: &mut RequirementTable,
    resources: &mut ResourceTable,
) -> Templates {
    let mut order: Vec<usize> = (0..setup.pools.len()).filter(|&p| may_launch(setup.pools[p].pool)).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (setup.pools[a].pool, setup.pools[b].pool);
        let by_name = if setup.behaviour().orders_pools_by_name { b.name.cmp(&a.name) } else { Ordering::Equal };
        b.weight.cmp(&a.weight).then(by_name)
    });
    let mut templates = Templates {
        any_dynamic: !order.is_empty(),
        spanning: order.iter().copied().filter(|&pool| !setup.pools[pool].instance_types.is_empty()).collect(),
        list: Vec::new(),
        dropped: Vec::new(),
        prefer_no_schedule: false,
        daemons: Vec::new(),
    };
    for pool in templates.spanning.clone() {
        let view = &setup.pools[pool];
        templates.prefer_no_schedule |=
            view.pool.taints.iter().any(|taint| taint.effect == nodecast_model::domain::TaintEffect::PreferNoSchedule);
        // As `tables_of` does it again.
        let known = tables.iter().position(|t| std::ptr::eq(t.types, view.instance_types));
        let types = known.unwrap_or_else(|| {
            let compiled = TypeTable::new(view.instance_types, capacity_type_key(setup.karpenter), (tables, table));
            tables.push(compiled);
            tables.len() - 1
        });
        let requirements = pool_requirements(setup, pool);
        let set = table.intern(&requirements);
        match open(setup, table, &mut tables[types], set) {
            Ok(left) => templates.list.push(Template {
                pool,
                table: types,
                set,
                types: left,
                daemon_requests: Resources::new(),
                daemon_amounts: Vec::new(),
                daemon_ports: Vec::new(),
                daemon_groups: Vec::new(),
            }),
            Err(reason) => templates.dropped.push(DroppedPool { node_pool: view.pool.name, reason }),
        }
    }
    add_daemons(setup, &mut templates, table, resources);
    if setup.behaviour().daemons_by_type {
        daemons::divide(setup, &mut templates, table, resources);
    }
    templates
}

/// The instance types that each table was compiled from: those of the first spanning pool with a table of its own.
pub(super) fn tables_of<'a>(setup: &PackingSetup<'a>, templates: &Templates) -> Vec<&'a [InstanceType]> {
    let mut types: Vec<&'a [InstanceType]> = Vec::new();
    for &pool in &templates.spanning {
        let instance_types = setup.pools[pool].instance_types;
        if !types.iter().any(|known| std::ptr::eq(*known, instance_types)) {
            types.push(instance_types);
        }
    }
    types
}

/// Opens the pools of kept templates again, whose types have changed. Whether that could be done: not where a pool drops out or
/// has dropped out before, since then the templates are others.
pub(super) fn reopen(
    setup: &PackingSetup<'_>,
    templates: &mut Templates,
    tables: &mut [TypeTable<'_>],
    table: &mut RequirementTable,
) -> bool {
    templates.dropped.is_empty()
        && templates.list.iter_mut().all(|template| {
            let opened = open(setup, table, &mut tables[template.table], template.set);
            opened.is_ok_and(|types| {
                template.types = types;
                true
            })
        })
}

/// The types that a pool's requirements leave when nothing is requested.
fn open(
    setup: &PackingSetup<'_>,
    table: &mut RequirementTable,
    types: &mut TypeTable<'_>,
    set: SetId,
) -> Result<Bits, Refusal> {
    types.prepare(set, table);
    let requirements = table.set(set);
    let mut left = bits::full(types.types.len());
    let refused = |missed, min_values_keys| {
        Refusal::InstanceTypes(Box::new(TypesRefusal {
            missed,
            requirements: requirements.clone(),
            requests: Resources::new(),
            daemon_requests: Resources::new(),
            min_values_keys,
        }))
    };
    if !types.filter(&mut left, TypeQuery { set, requests: &[], met: &[] }) {
        let all = bits::full(types.types.len());
        return Err(refused(types.criteria_missed(&all, set, &[]), Vec::new()));
    }
    let short = min_values::shortfalls(requirements, types.types, bits::iter(&left));
    if !short.is_empty() && setup.options.min_values == MinValuesPolicy::Strict {
        return Err(refused(CriteriaMissed::MinValues, short.into_iter().map(|(key, _)| key).collect()));
    }
    Ok(left)
}

/// Adds to each template the requests and ports of the daemons that its nodes would run.
///
/// A daemon whose first required term does not match a pool loses that term for good, also for the pools that come
/// later: upstream relaxes the one representative pod in place. Requests and ports are found in two scans, so the second
/// sees what the first dropped. Up to v1.1 nothing is relaxed: a daemon's preferences count, and its first term alone.
fn add_daemons(
    setup: &PackingSetup<'_>,
    templates: &mut Templates,
    table: &mut RequirementTable,
    resources: &mut ResourceTable,
) {
    let mut daemons: Vec<PodSpec> = setup.counted_daemons().map(|daemon| PodSpec::clone(daemon)).collect();
    for template in &mut templates.list {
        for daemon in &mut daemons {
            if runs_on(setup, template, daemon, table) {
                template.daemon_requests.add(&daemon.requests());
            }
        }
        template.daemon_amounts = resources.dense(&template.daemon_requests);
    }
    for template in &mut templates.list {
        for daemon in &mut daemons {
            if runs_on(setup, template, daemon, table) {
                template.daemon_ports.extend(daemon.host_ports());
            }
        }
    }
    templates.daemons = daemons;
}

fn runs_on(setup: &PackingSetup<'_>, template: &Template, daemon: &mut PodSpec, table: &mut RequirementTable) -> bool {
    let strictly = setup.behaviour().matches_daemons_strictly;
    if strictly {
        relaxation::tolerate_preferences(daemon);
    }
    if first_untolerated(&setup.pools[template.pool].pool.taints, &daemon.tolerations).is_some() {
        return false;
    }
    loop {
        let mut wanted = strict_requirements(daemon);
        if !strictly {
            add_preference(daemon, &mut wanted);
        }
        let host_free = wanted.get(well_known::HOSTNAME).is_none_or(|r| r.complement);
        let set = table.intern(&wanted);
        if host_free && table.conflict(template.set, set, Undefined::WellKnownAllowed).is_none() {
            return true;
        }
        if !strictly || !relaxation::drop_required_term(daemon) {
            return false;
        }
    }
}

/// Adds the heaviest preference.
pub(super) fn add_preference(spec: &PodSpec, wanted: &mut Requirements) {
    let preferred = &spec.node_affinity.preferred;
    if let Some(heaviest) = relaxation::heaviest(preferred, |term| term.weight) {
        wanted.extend(&preferred[heaviest].term.requirements());
    }
}

/// What a pod requires of its node without its preferences: node selector and first required term.
pub(super) fn strict_requirements(spec: &PodSpec) -> Requirements {
    let mut requirements = Requirements::from_labels(&spec.node_selector);
    if let Some(term) = spec.node_affinity.required.first() {
        requirements.extend(&term.requirements());
    }
    requirements
}

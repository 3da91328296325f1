//! How v0.4 and v0.6 packed: pods of equal constraints together, each group filled largest pod first.
//!
//! Source: Karpenter v0.4.1 `pkg/controllers/provisioning/binpacking`, v0.6.3 `pkg/controllers/provisioning/binpacking`
//! and `selection`.
//! Deviation: topology spread and pod affinity are ignored. v0.6.3 dropped preferences one by one in later rounds.
//! Here they are dropped at once if they cannot be met.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::bits::{self, Bits};
use super::classes::{Class, Classes, SortContext};
use super::errors::{PoolRefusal, Refusal, TypesRefusal, Unschedulable};
use super::input::{PackingSetup, PendingPod};
use super::plan::{PackingPlan, PlannedClaim, PricedType, UnschedulablePod};
use super::requirement_table::{Combined, RequirementTable, SetId, Undefined};
use super::resource_table;
use super::shapes::Shapes;
use super::templates::{Template, Templates, pool_labels};
use super::topology::Topology;
use super::type_table::{TypeQuery, TypeTable};
use crate::instance_types::InstanceType;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::taints::first_untolerated;
use nodecast_model::domain::{ResourceName, Symbol};

/// How many instance types go into a launch request.
const MOST_TYPES: usize = 20;

/// Devices: a type that has one is used only for pods that ask for it.
const DEVICES: [ResourceName; 5] = [
    ResourceName(well_known::NVIDIA_GPU),
    ResourceName(well_known::AMD_GPU),
    ResourceName(well_known::HABANA_GAUDI),
    ResourceName(well_known::AWS_NEURON),
    ResourceName(well_known::AWS_NEURON_CORE),
];

/// What a pass of these releases works with.
pub(super) struct GroupPass<'p, 'a> {
    pub(super) setup: &'p PackingSetup<'a>,
    pub(super) pods: &'p [PendingPod<'p>],
    pub(super) templates: &'p Templates,
    pub(super) table: &'p mut RequirementTable,
    pub(super) tables: &'p mut [TypeTable<'a>],
    pub(super) shapes: &'p mut Shapes,
    pub(super) classes: Classes,
    pub(super) topology: Topology<'p>,
}

impl GroupPass<'_, '_> {
    /// Packs every pod onto new nodes; existing nodes are not considered, since only pods that fit none of them are
    /// given.
    pub(super) fn plan(mut self) -> PackingPlan {
        let mut plan = PackingPlan { dropped_pools: self.templates.dropped.clone(), ..PackingPlan::default() };
        let mut groups: BTreeMap<(usize, SetId), Vec<usize>> = BTreeMap::new();
        let mut failures = Vec::new();
        for pod in 0..self.pods.len() {
            match self.group_of(pod) {
                Ok(group) => groups.entry(group).or_default().push(pod),
                Err(reason) => failures.push(UnschedulablePod { pod, reason }),
            }
        }
        for ((template, set), mut pods) in groups {
            pods.sort_by_cached_key(|&pod| {
                let requests = &self.class(pod).shape.requests;
                (Reverse(requests.cpu_milli()), Reverse(requests.memory_bytes()), self.pods[pod].uid_rank)
            });
            self.pack_group(template, set, pods, &mut plan.claims, &mut failures);
        }
        failures.sort_by_key(|failure| failure.pod);
        plan.unschedulable = failures;
        plan
    }

    fn class(&self, pod: usize) -> &Class {
        &self.classes.list[self.classes.of_pod[pod]]
    }

    /// The pool that takes the pod, and the pool's requirements with the pod's.
    fn group_of(&mut self, pod: usize) -> Result<(usize, SetId), Unschedulable> {
        if !self.templates.any_dynamic {
            return Err(Unschedulable::NoDynamicPools);
        }
        let class = self.classes.of_pod[pod];
        let mut variant = 0;
        loop {
            let reason = match self.first_pool(class, variant) {
                Ok(found) => return Ok(found),
                Err(refusals) => Unschedulable::Refused(refusals),
            };
            let mut tools = SortContext {
                setup: self.setup,
                spanning: &self.templates.spanning,
                prefer_no_schedule: false,
                shapes: self.shapes,
                table: self.table,
            };
            match self.classes.relax(class, variant, &mut tools, &mut self.topology) {
                Some(next) => variant = next,
                None => return Err(reason),
            }
        }
    }

    /// v0.4.1 looks only at the pool that the pod names, or at `default`; v0.6.3 takes the first by name that agrees.
    fn first_pool(&mut self, class: usize, variant: usize) -> Result<(usize, SetId), Vec<PoolRefusal>> {
        let form = &self.classes.list[class].variants[variant].form;
        let named = form.spec.node_selector.get(well_known::NODEPOOL).unwrap_or(well_known::DEFAULT);
        let pool_name = |template: &Template| self.setup.pools[template.pool].pool.name;
        let mut order: Vec<usize> = (0..self.templates.list.len()).collect();
        order.sort_by_key(|&template| pool_name(&self.templates.list[template]));
        if self.setup.behaviour().asks_named_pool_only {
            order.retain(|&template| pool_name(&self.templates.list[template]) == named);
        }
        let mut refusals = Vec::new();
        for position in order {
            let template = &self.templates.list[position];
            let pool = self.setup.pools[template.pool].pool;
            let reason = if let Some(taint) = first_untolerated(&pool.taints, &form.spec.tolerations) {
                Refusal::Taint(*taint)
            } else {
                match self.table.combine(template.set, form.set, Undefined::WellKnownAllowed) {
                    Combined::Set(set) => return Ok((position, set)),
                    Combined::Undefined | Combined::Contradiction => {
                        let conflict = self.table.conflict(template.set, form.set, Undefined::WellKnownAllowed);
                        conflict.map_or(Refusal::Hostname, Refusal::Incompatible)
                    }
                }
            };
            refusals.push(PoolRefusal { node_pool: pool.name, reason });
        }
        Err(refusals)
    }

    /// Opens nodes for a sorted group until every pod has one or fits no type.
    fn pack_group(
        &mut self,
        position: usize,
        set: SetId,
        mut pods: Vec<usize>,
        claims: &mut Vec<PlannedClaim>,
        failures: &mut Vec<UnschedulablePod>,
    ) {
        let template = &self.templates.list[position];
        self.tables[template.table].prepare(set, self.table);
        while let Some(&largest) = pods.first() {
            let types = &self.tables[template.table];
            let mut possible = template.types.clone();
            types.filter(&mut possible, TypeQuery { set, requests: &template.daemon_amounts, met: &[] });
            self.drop_idle_devices(types.types, &pods, &mut possible);
            let best = bits::iter(&possible)
                .map(|index| (index, self.greedy(types.types, template, index, &pods)))
                .max_by_key(|(index, packed)| (packed.len(), Reverse(*index)));
            let Some((_, packed)) = best.filter(|(_, packed)| !packed.is_empty()) else {
                failures
                    .push(UnschedulablePod { pod: largest, reason: self.refused(template, largest, set, &possible) });
                pods.remove(0);
                continue;
            };
            let same =
                bits::iter(&possible).filter(|&index| self.greedy(types.types, template, index, &pods) == packed);
            let alternatives = ordered_by_size(types, same.collect(), set);
            pods.retain(|pod| !packed.contains(pod));
            claims.push(self.claim(template, set, packed, &alternatives));
        }
    }

    fn drop_idle_devices(&self, types: &[InstanceType], pods: &[usize], possible: &mut Bits) {
        let wanted = |device: ResourceName| pods.iter().any(|&pod| self.class(pod).shape.requests.get(device) > 0);
        let idle =
            |instance_type: &InstanceType| DEVICES.iter().any(|&d| instance_type.capacity.get(d) > 0 && !wanted(d));
        let mut kept = bits::empty(types.len());
        for index in bits::iter(possible).filter(|&index| !idle(&types[index])) {
            bits::insert(&mut kept, index);
        }
        *possible = kept;
    }

    /// The pods, in order, that a node of this type takes; none if it cannot take the largest.
    fn greedy(&self, types: &[InstanceType], template: &Template, index: usize, pods: &[usize]) -> Vec<usize> {
        let mut used = template.daemon_requests.clone();
        let mut packed = Vec::new();
        for &pod in pods {
            let mut with_pod = used.clone();
            with_pod.add(&self.class(pod).shape.requests);
            if with_pod.fits(&types[index].allocatable) {
                used = with_pod;
                packed.push(pod);
            } else if packed.is_empty() {
                break;
            }
        }
        packed
    }

    fn refused(&self, template: &Template, pod: usize, set: SetId, possible: &[u64]) -> Unschedulable {
        let mut amounts = template.daemon_amounts.clone();
        resource_table::add(&mut amounts, &self.class(pod).shape.amounts);
        let mut requests = template.daemon_requests.clone();
        requests.add(&self.class(pod).shape.requests);
        let reason = Refusal::InstanceTypes(Box::new(TypesRefusal {
            missed: self.tables[template.table].criteria_missed(possible, set, &amounts),
            requirements: self.table.set(set).clone(),
            requests,
            daemon_requests: template.daemon_requests.clone(),
            min_values_keys: Vec::new(),
        }));
        let node_pool: Symbol = self.setup.pools[template.pool].pool.name;
        Unschedulable::Refused(vec![PoolRefusal { node_pool, reason }])
    }

    fn claim(&self, template: &Template, set: SetId, pods: Vec<usize>, alternatives: &[PricedType]) -> PlannedClaim {
        let pool = self.setup.pools[template.pool].pool;
        let mut requests = template.daemon_requests.clone();
        for &pod in &pods {
            requests.add(&self.class(pod).shape.requests);
        }
        PlannedClaim {
            pool: template.pool,
            node_pool: pool.name,
            requirements: Arc::clone(self.table.shared(set)),
            requests,
            daemon_requests: template.daemon_requests.clone(),
            instance_types: Arc::from(&alternatives[..alternatives.len().min(MOST_TYPES)]),
            instance_types_before_cut: alternatives.len(),
            pods,
            labels: pool_labels(self.setup, template.pool),
            taints: pool.taints.clone(),
            startup_taints: pool.startup_taints.clone(),
            min_values_relaxed: false,
        }
    }
}

/// Types from the smallest to the largest: by the length of the vector of cores, GiB and a thousand times the devices.
fn ordered_by_size(types: &TypeTable<'_>, same: Vec<usize>, set: SetId) -> Vec<PricedType> {
    let mut alternatives: Vec<PricedType> = same
        .into_iter()
        .map(|index| PricedType { index: index as u32, name: types.types[index].name, price: types.price(index, set) })
        .collect();
    alternatives
        .sort_by_cached_key(|alternative| (size_squared(&types.types[alternative.index as usize]), alternative.name));
    alternatives
}

/// The square of that length, in thousandths of a unit squared: an integer, so that the order is exact.
fn size_squared(instance_type: &InstanceType) -> i128 {
    let cores = i128::from(instance_type.capacity.cpu_milli());
    let memory = i128::from(instance_type.capacity.memory_bytes()) * 1_000 / (1 << 30);
    let devices =
        DEVICES.iter().map(|&device| i128::from(instance_type.capacity.get(device))).sum::<i128>() * 1_000_000;
    cores * cores + memory * memory + devices * devices
}

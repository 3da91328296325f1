//! Daemons by instance type: from v1.14 on one counts only on the types that it can run on.
//!
//! Source: Karpenter core v1.14 `pkg/controllers/provisioning/scheduling/scheduler.go`, `buildDaemonOverheadGroups`; `nodeclaim.go`,
//! the filter of instance types.
//! Deviation: if the daemon requests of a claim differ between its types, the least of them counts. Upstream's choice
//! is unknown.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Template, Templates, strict_requirements};
use crate::packing::bits::{self, Bits};
use crate::packing::input::PackingSetup;
use crate::packing::ports;
use crate::packing::relaxation;
use crate::packing::requirement_table::{RequirementTable, Undefined};
use crate::packing::resource_table::{self, ResourceTable};
use crate::packing::type_table::{TypeQuery, TypeTable};
use nodecast_model::domain::pod::HostPort;
use nodecast_model::domain::requirements::Requirements;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::taints::first_untolerated;
use nodecast_model::domain::{PodSpec, Resources};

/// Types on which the same daemons run.
pub(in crate::packing) struct DaemonGroup {
    types: Bits,
    /// What they request beyond the daemons of the template.
    requests: Resources,
    amounts: Vec<i64>,
    ports: Vec<HostPort>,
}

impl Template {
    /// Keeps of `types` those that meet what is asked, in whose requests the template's daemons are included, and on which no daemon has
    /// one of these ports; whether any is left.
    pub(in crate::packing) fn keep_fitting(
        &self,
        table: &TypeTable<'_>,
        types: &mut [u64],
        asked: TypeQuery<'_>,
        wanted: &[HostPort],
    ) -> bool {
        if self.daemon_groups.is_empty() {
            return table.filter(types, asked);
        }
        let mut kept = bits::empty(table.types.len());
        for group in &self.daemon_groups {
            let mut bits: Bits = (&*types).into();
            bits::intersect(&mut bits, &group.types);
            if !bits::any(&bits) || ports::conflict(&group.ports, wanted).is_some() {
                continue;
            }
            let mut totals = asked.requests.to_vec();
            resource_table::add(&mut totals, &group.amounts);
            if table.filter(&mut bits, TypeQuery { requests: &totals, ..asked }) {
                bits::unite(&mut kept, &bits);
            }
        }
        types.copy_from_slice(&kept);
        bits::any(types)
    }

    /// What the daemons request on a type.
    pub(in crate::packing) fn daemon_requests_on(&self, index: usize) -> Cow<'_, Resources> {
        let group = self.daemon_groups.iter().find(|group| bits::contains(&group.types, index));
        self.with_group(group)
    }

    /// What they request at least on one of some types.
    pub(in crate::packing) fn daemon_requests_on_any(&self, types: &[u64]) -> Cow<'_, Resources> {
        let mut groups = self.daemon_groups.iter().filter(|group| bits::intersects(&group.types, types));
        let Some(first) = groups.next() else { return Cow::Borrowed(&self.daemon_requests) };
        let mut least = first.requests.clone();
        groups.for_each(|group| least = common(&least, &group.requests));
        let mut all = self.daemon_requests.clone();
        all.add(&least);
        Cow::Owned(all)
    }

    fn with_group(&self, group: Option<&DaemonGroup>) -> Cow<'_, Resources> {
        let Some(group) = group else { return Cow::Borrowed(&self.daemon_requests) };
        let mut all = self.daemon_requests.clone();
        all.add(&group.requests);
        Cow::Owned(all)
    }
}

/// The lesser amount of each resource.
fn common(one: &Resources, other: &Resources) -> Resources {
    let lesser = one.iter().map(|(name, amount)| (name, amount.min(other.get(name))));
    lesser.filter(|(_, amount)| *amount > 0).collect()
}

/// Divides the types of each template by the daemons that run on them.
pub(super) fn divide(
    setup: &PackingSetup<'_>,
    templates: &mut Templates,
    table: &mut RequirementTable,
    resources: &mut ResourceTable,
) {
    let daemons: Vec<Daemon<'_>> = setup.counted_daemons().map(Daemon::new).collect();
    for template in &mut templates.list {
        let types = setup.pools[template.pool].instance_types;
        let ways: Vec<Vec<&Requirements>> = daemons.iter().map(|daemon| daemon.ways(setup, template, table)).collect();
        // By the daemons that run on them, in order of the first type of each.
        let mut groups: Vec<(Vec<bool>, Bits)> = Vec::new();
        for (index, entry) in types.iter().enumerate() {
            let runs = |ways: &Vec<&Requirements>| {
                ways.iter().any(|way| way.is_empty() || entry.requirements.intersects(way).is_ok())
            };
            let is_owns: Vec<bool> = ways.iter().map(runs).collect();
            let at = groups.iter().position(|(known, _)| *known == is_owns).unwrap_or_else(|| {
                groups.push((is_owns, bits::empty(types.len())));
                groups.len() - 1
            });
            bits::insert(&mut groups[at].1, index);
        }
        let sums: Vec<(Resources, Vec<HostPort>)> = groups.iter().map(|(key, _)| sum(&daemons, key)).collect();
        let Some((first, rest)) = sums.split_first() else { continue };
        template.daemon_requests = rest.iter().fold(first.0.clone(), |least, other| common(&least, &other.0));
        template.daemon_amounts = resources.dense(&template.daemon_requests);
        if rest.is_empty() {
            template.daemon_ports = first.1.clone();
            continue;
        }
        template.daemon_ports.clear();
        template.daemon_groups = groups
            .into_iter()
            .zip(sums)
            .map(|((_, types), (mut requests, ports))| {
                requests.subtract(&template.daemon_requests);
                DaemonGroup { types, amounts: resources.dense(&requests), requests, ports }
            })
            .collect();
    }
}

fn sum(daemons: &[Daemon<'_>], is_owns: &[bool]) -> (Resources, Vec<HostPort>) {
    let (mut requests, mut ports) = (Resources::new(), Vec::new());
    for (daemon, _) in daemons.iter().zip(is_owns).filter(|(_, runs)| **runs) {
        requests.add(&daemon.spec.requests());
        ports.extend(daemon.spec.host_ports());
    }
    (requests, ports)
}

/// A daemon with each way in which its required terms can be met.
struct Daemon<'d> {
    spec: &'d PodSpec,
    tolerating: PodSpec,
    ways: Vec<Requirements>,
}

impl<'d> Daemon<'d> {
    fn new(spec: &'d Arc<PodSpec>) -> Self {
        let mut tolerating = PodSpec::clone(spec);
        relaxation::tolerate_preferences(&mut tolerating);
        let (mut term, mut ways) = (tolerating.clone(), Vec::new());
        loop {
            let mut wanted = strict_requirements(&term);
            // Every node of Karpenter's has these labels in the end.
            for key in [well_known::NODE_INITIALIZED, well_known::NODE_REGISTERED] {
                if wanted.get(key).is_some_and(|item| item.has(well_known::TRUE)) {
                    wanted.remove(key);
                }
            }
            ways.push(wanted);
            if !relaxation::drop_required_term(&mut term) {
                break;
            }
        }
        Self { spec, tolerating, ways }
    }

    /// The ways that the template leaves open.
    fn ways(&self, setup: &PackingSetup<'_>, template: &Template, table: &mut RequirementTable) -> Vec<&Requirements> {
        if first_untolerated(&setup.pools[template.pool].pool.taints, &self.tolerating.tolerations).is_some() {
            return Vec::new();
        }
        let open = |way: &&Requirements| {
            let host_free = way.get(well_known::HOSTNAME).is_none_or(|requirement| requirement.complement);
            let set = table.intern(way);
            host_free && table.conflict(template.set, set, Undefined::WellKnownAllowed).is_none()
        };
        self.ways.iter().filter(open).collect()
    }
}

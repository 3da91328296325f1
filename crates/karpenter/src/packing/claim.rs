//! Claims: nodes that the pass has decided to launch, and whether they can take one more pod.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/nodeclaim.go`.

use super::bits::{self, Bits};
use super::classes::Class;
use super::errors::{CriteriaMissed, HostPortConflict, Refusal, ReservedRefusal, TypesRefusal};
use super::input::{MinValuesPolicy, PackingSetup, ReservedMode};
use super::min_values;
use super::ports;
use super::requirement_table::{Combined, RequirementTable, SetId, Undefined};
use super::reservations::Reservations;
use super::resource_table;
use super::templates::{Template, Templates};
use super::topology::{Asking, Blocked, Place, TaintsId, Topology, names_host};
use super::type_table::{MostRoom, TypeQuery, TypeTable};
use crate::release::HostPorts;
use nodecast_model::domain::pod::HostPort;
use nodecast_model::domain::requirements::{Incompatibility, Requirements};
use nodecast_model::domain::{Resources, Symbol};

/// A node to launch.
pub(super) struct Claim {
    /// Position of its template.
    pub(super) template: usize,
    /// Its host number.
    pub(super) host: usize,
    /// Its requirements.
    pub(super) set: SetId,
    /// Requests of daemons and pods.
    pub(super) amounts: Vec<i64>,
    /// Instance types still possible.
    pub(super) types: Bits,
    /// How many these are.
    pub(super) type_count: u64,
    /// The largest allocatable amount among them, by resource.
    most_room: Vec<MostRoom>,
    /// What each of them surely has, by resource; nothing is known beyond the end.
    least_room: Vec<i64>,
    /// Its pods.
    pub(super) pods: Vec<usize>,
    ports: Vec<HostPort>,
    /// Reservations of which it holds a unit.
    pub(super) held: Vec<Symbol>,
    /// Whether a `minValues` was lowered.
    pub(super) min_values_relaxed: bool,
}

impl Claim {
    /// A claim without pods.
    pub(super) fn new(template: usize, from: &Template, host: usize, types: Bits) -> Self {
        Self {
            template,
            host,
            set: from.set,
            amounts: from.daemon_amounts.clone(),
            type_count: u64::from(bits::count(&types)),
            types,
            most_room: Vec::new(),
            least_room: Vec::new(),
            pods: Vec::new(),
            ports: Vec::new(),
            held: Vec::new(),
            min_values_relaxed: false,
        }
    }

    /// Whether even the largest type left is too small for `amounts` more: a quick look before the full check.
    pub(super) fn too_full(&self, amounts: &[i64]) -> bool {
        amounts.iter().enumerate().any(|(index, &amount)| {
            let used = resource_table::amount(&self.amounts, index);
            amount > 0 && amount.saturating_add(used) > self.most_room.get(index).map_or(i64::MAX, |most| most.amount)
        })
    }
}

/// A claim with one more pod, not yet decided. The types that would be left stand in [`Engine::left`].
pub(super) struct Fit {
    set: SetId,
    hold: Vec<Symbol>,
    lowered_min_values: bool,
}

/// Why a claim cannot take a pod: enough to tell whether it ever can, and to explain it if asked.
pub(super) enum Unfit {
    Taint,
    Ports,
    Host,
    Requirements(Combined),
    Volume(SetId, SetId),
    Topology(Blocked),
    Types { set: SetId, narrowed: bool },
    MinValues { set: SetId, keys: Vec<Symbol>, narrowed: bool },
    Reserved(ReservedRefusal),
}

/// A pod in its present state of relaxation, as a claim sees it.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'c> {
    pub(super) class: &'c Class,
    pub(super) class_index: usize,
    pub(super) variant: usize,
    /// Whether any topology group has a say.
    pub(super) in_topology: bool,
}

/// Everything that decides about claims.
pub(super) struct Engine<'p, 'a> {
    pub(super) setup: &'p PackingSetup<'a>,
    pub(super) templates: &'p Templates,
    pub(super) table: &'p mut RequirementTable,
    pub(super) tables: &'p mut [TypeTable<'a>],
    pub(super) topology: Topology<'p>,
    pub(super) reservations: Reservations,
    pub(super) reserved: ReservedMode,
    /// The taint list of each template.
    pub(super) taints: Vec<TaintsId>,
    /// The types that the last check left. Kept here so that an attempt allocates nothing.
    pub(super) left: Vec<u64>,
    /// The requests of the last check.
    pub(super) totals: Vec<i64>,
    /// For each template the ports of its daemons and of the pods of all its claims (v1.4 to v1.12).
    pub(super) ports_taken: Vec<Vec<HostPort>>,
}

/// A claim's placeholder never equals a name that a pod could ask for.
const NO_HOST_NAME: &str = "";

impl Engine<'_, '_> {
    /// Whether the claim can take the pod. `lower_min_values` lets a new claim lower its `minValues`.
    ///
    /// # Errors
    /// The first obstacle, in Karpenter's order.
    pub(super) fn can_add(
        &mut self,
        claim: &Claim,
        candidate: Candidate<'_>,
        tolerates: bool,
        lower_min_values: bool,
    ) -> Result<Fit, Unfit> {
        let class = candidate.class;
        let form = &class.variants[candidate.variant].form;
        if !tolerates {
            return Err(Unfit::Taint);
        }
        if !class.shape.ports.is_empty() && self.port_conflict(claim, class).is_some() {
            return Err(Unfit::Ports);
        }
        if form.host.as_ref().is_some_and(|wanted| !names_host(wanted, NO_HOST_NAME)) {
            return Err(Unfit::Host);
        }
        let base = match self.table.combine(claim.set, form.set, Undefined::WellKnownAllowed) {
            Combined::Set(set) => set,
            other => return Err(Unfit::Requirements(other)),
        };
        let mut last = Unfit::Host;
        for &volume in &class.volume_sets {
            match self.can_add_with_volume(claim, candidate, base, volume, lower_min_values) {
                Ok(fit) => return Ok(fit),
                Err(unfit) => last = unfit,
            }
        }
        Err(last)
    }

    fn can_add_with_volume(
        &mut self,
        claim: &Claim,
        candidate: Candidate<'_>,
        base: SetId,
        volume: SetId,
        lower_min_values: bool,
    ) -> Result<Fit, Unfit> {
        let class = candidate.class;
        let form = &class.variants[candidate.variant].form;
        let Combined::Set(placed) = self.table.combine(base, volume, Undefined::WellKnownAllowed) else {
            return Err(Unfit::Volume(base, volume));
        };
        let mut set = placed;
        if candidate.in_topology {
            let undefined = Undefined::WellKnownAllowed;
            let place = Place { host: claim.host, host_name: NO_HOST_NAME, set, undefined };
            let asking = Asking {
                class: candidate.class_index,
                owned: &class.variants[candidate.variant].owned,
                strict: class.strict_with(form.strict, volume, self.table),
                strict_host: form.strict_host.as_ref(),
            };
            set = self.topology.narrow(asking, place, self.table).map_err(Unfit::Topology)?;
        }
        if !self.filter(claim, set, class) {
            let for_good = set == placed || !self.filter(claim, placed, class);
            return Err(Unfit::Types { set, narrowed: !for_good });
        }
        let mut lowered_min_values = false;
        if self.table.has_min_values(set) {
            let all = self.tables[self.templates.list[claim.template].table].types;
            let short = min_values::shortfalls(self.table.set(set), all, bits::iter(&self.left));
            if !short.is_empty() && !lower_min_values {
                let keys = short.into_iter().map(|(key, _)| key).collect();
                return Err(Unfit::MinValues { set, keys, narrowed: set != placed });
            }
            lowered_min_values = !short.is_empty();
            set = self.with_lowered_min_values(set, &short);
        }
        let hold = self.reservations_to_hold(claim, set)?;
        Ok(Fit { set, hold, lowered_min_values })
    }

    /// What stands against a pod's ports on a claim, whichever type it becomes.
    ///
    /// Source: Karpenter core v1.3, v1.4 and v1.13 `pkg/controllers/provisioning/scheduling/nodeclaim.go`, `hostPortUsage`.
    fn port_conflict(&self, claim: &Claim, class: &Class) -> Option<HostPortConflict> {
        let wanted = &class.shape.ports;
        match self.setup.behaviour().host_ports {
            HostPorts::WithoutDaemons => ports::conflict(&claim.ports, wanted),
            HostPorts::OfTemplate => ports::conflict(&self.ports_taken[claim.template], wanted),
            HostPorts::OfClaim => {
                let daemons = &self.templates.list[claim.template].daemon_ports;
                ports::conflict(daemons, wanted).or_else(|| ports::conflict(&claim.ports, wanted))
            }
        }
    }

    /// Finds the types of the claim that meet `set` with one more pod of the class; returns whether there is one.
    fn filter(&mut self, claim: &Claim, set: SetId, class: &Class) -> bool {
        let more = &class.shape.amounts[..];
        let template = &self.templates.list[claim.template];
        let table = &mut self.tables[template.table];
        table.prepare(set, self.table);
        self.totals.clone_from(&claim.amounts);
        resource_table::add(&mut self.totals, more);
        self.left.clear();
        self.left.extend_from_slice(&claim.types);
        let asked = TypeQuery { set, requests: &self.totals, met: &claim.least_room };
        template.keep_fitting(table, &mut self.left, asked, &class.shape.ports)
    }

    fn with_lowered_min_values(&mut self, set: SetId, short: &[(Symbol, u32)]) -> SetId {
        if short.is_empty() {
            return set;
        }
        let lowered: Requirements = self
            .table
            .set(set)
            .iter()
            .map(|table| match short.iter().find(|(key, _)| *key == table.key) {
                Some(&(_, found)) => table.clone().with_min_values(Some(found)),
                None => table.clone(),
            })
            .collect();
        let set = self.table.intern(&lowered);
        for table in self.tables.iter_mut() {
            table.prepare(set, self.table);
        }
        set
    }

    /// One unit of every reservation that a type of the claim could use: it is not known which one will be launched.
    fn reservations_to_hold(&self, claim: &Claim, set: SetId) -> Result<Vec<Symbol>, Unfit> {
        let table = &self.tables[self.templates.list[claim.template].table];
        let mut hold = Vec::new();
        if !table.has_reservations {
            return Ok(hold);
        }
        let mut compatible = false;
        for index in bits::iter(&self.left) {
            for id in table.reservations(index, set) {
                compatible = true;
                if !hold.contains(&id) && self.reservations.can_hold(claim.host, id) {
                    hold.push(id);
                }
            }
        }
        if self.reserved == ReservedMode::Strict && hold.is_empty() {
            if compatible {
                return Err(Unfit::Reserved(ReservedRefusal::UsedUp));
            }
            if !claim.held.is_empty() {
                return Err(Unfit::Reserved(ReservedRefusal::WouldLoseReservations));
            }
        }
        Ok(hold)
    }

    /// Puts the pod on the claim for which [`Self::can_add`] has just found `fit`.
    pub(super) fn add(&mut self, claim: &mut Claim, pod: usize, candidate: Candidate<'_>, fit: Fit) {
        let table = &self.tables[self.templates.list[claim.template].table];
        let gone = bits::shrink_to(&mut claim.types, &self.left);
        if gone > 0 || claim.pods.is_empty() {
            claim.type_count -= u64::from(gone);
            table.most_room(&claim.types, &mut claim.most_room);
        }
        claim.pods.push(pod);
        claim.set = fit.set;
        claim.min_values_relaxed |= fit.lowered_min_values;
        resource_table::add(&mut claim.amounts, &candidate.class.shape.amounts);
        table.least_room(&claim.amounts, &mut claim.least_room);
        claim.ports.extend(&candidate.class.shape.ports);
        self.ports_taken[claim.template].extend(&candidate.class.shape.ports);
        for &id in &fit.hold {
            self.reservations.hold(claim.host, id);
        }
        for &id in claim.held.iter().filter(|id| !fit.hold.contains(id)) {
            self.reservations.release(claim.host, id);
        }
        claim.held = fit.hold;
        let taints = self.taints[claim.template];
        let undefined = Undefined::WellKnownAllowed;
        self.topology.record(candidate.class_index, claim.host, claim.set, taints, undefined, self.table);
    }

    /// Whether new claims may lower their `minValues`.
    pub(super) fn lowers_min_values(&self) -> bool {
        self.setup.options.min_values == MinValuesPolicy::BestEffort
    }

    /// The obstacle in words that stand by themselves.
    pub(super) fn explain(&mut self, unfit: Unfit, claim: &Claim, candidate: Candidate<'_>) -> Refusal {
        let form = &candidate.class.variants[candidate.variant].form;
        match unfit {
            Unfit::Taint => {
                let taints = self.topology.known_rules().taint_list(self.taints[claim.template]);
                match nodecast_model::domain::taints::first_untolerated(taints, &form.spec.tolerations) {
                    Some(taint) => Refusal::Taint(*taint),
                    None => Refusal::Hostname,
                }
            }
            Unfit::Ports => match self.port_conflict(claim, candidate.class) {
                Some(conflict) => Refusal::HostPort(conflict),
                None => Refusal::Hostname,
            },
            Unfit::Host => Refusal::Hostname,
            Unfit::Requirements(_) => {
                self.conflict(claim.set, form.set).map_or(Refusal::Hostname, Refusal::Incompatible)
            }
            Unfit::Volume(base, volume) => {
                self.conflict(base, volume).map_or(Refusal::Hostname, Refusal::VolumeTopology)
            }
            Unfit::Topology(blocked) => Refusal::Topology(Box::new(self.topology.refusal(blocked))),
            Unfit::Types { set, .. } => {
                let table = &self.tables[self.templates.list[claim.template].table];
                let mut requests = claim.amounts.clone();
                resource_table::add(&mut requests, &candidate.class.shape.amounts);
                let missed = table.criteria_missed(&claim.types, set, &requests);
                self.types_refusal(missed, set, claim, candidate, Vec::new())
            }
            Unfit::MinValues { set, keys, .. } => {
                self.types_refusal(CriteriaMissed::MinValues, set, claim, candidate, keys)
            }
            Unfit::Reserved(refusal) => Refusal::Reserved(refusal),
        }
    }

    fn conflict(&self, existing: SetId, incoming: SetId) -> Option<Incompatibility> {
        self.table.conflict(existing, incoming, Undefined::WellKnownAllowed)
    }

    fn types_refusal(
        &self,
        missed: CriteriaMissed,
        set: SetId,
        claim: &Claim,
        candidate: Candidate<'_>,
        min_values_keys: Vec<Symbol>,
    ) -> Refusal {
        let template = &self.templates.list[claim.template];
        let mut requests: Resources = template.daemon_requests.clone();
        requests.add(&candidate.class.shape.requests);
        Refusal::InstanceTypes(Box::new(TypesRefusal {
            missed,
            requirements: self.table.set(set).clone(),
            requests,
            daemon_requests: template.daemon_requests.clone(),
            min_values_keys,
        }))
    }
}

impl Unfit {
    /// Whether the check came as far as the instance types.
    pub(super) fn is_of_types(&self) -> bool {
        matches!(self, Self::Types { .. } | Self::MinValues { .. } | Self::Reserved(_))
    }

    /// Whether the claim can never take such a pod in this pass: claims only grow and narrow. A label that is not
    /// defined may yet be, when another pod's exclusion of it is added; a topology's domains open and close.
    pub(super) fn for_good(&self) -> bool {
        match self {
            Self::Taint | Self::Ports | Self::Host => true,
            Self::Requirements(combined) => *combined == Combined::Contradiction,
            Self::Topology(blocked) => blocked.for_good,
            Self::Types { narrowed, .. } | Self::MinValues { narrowed, .. } => !narrowed,
            Self::Volume(..) | Self::Reserved(_) => false,
        }
    }
}

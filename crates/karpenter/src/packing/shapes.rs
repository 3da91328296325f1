//! Pod specifications, compiled once for as long as the packer lives: requests, requirements, constraints, and the chain
//! of specifications that relaxing leads through.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::input::{PackingSetup, PreferencePolicy};
use super::relaxation;
use super::requirement_table::{RequirementTable, SetId};
use super::resource_table::ResourceTable;
use super::templates::{add_preference, strict_requirements};
use super::topology::{Constraint, Rules};
use nodecast_model::domain::pod::HostPort;
use nodecast_model::domain::requirements::{Requirement, Requirements};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{PodSpec, Resources, Symbol};

/// Everything that compiling a specification needs.
pub(super) struct CompileContext<'w> {
    pub(super) setup: &'w PackingSetup<'w>,
    pub(super) spanning: &'w [usize],
    /// Whether some pool has a taint that is only a preference.
    pub(super) prefer_no_schedule: bool,
    pub(super) table: &'w mut RequirementTable,
    pub(super) rules: &'w mut Rules,
}

/// What pods of one namespace and specification have in common.
pub(super) struct Shape {
    /// Its number.
    pub(super) number: usize,
    /// Their namespace.
    pub(super) namespace: Symbol,
    /// What one of them requests.
    pub(super) requests: Resources,
    /// The same as a vector.
    pub(super) amounts: Vec<i64>,
    /// CPU in thousandths and memory in bytes, by which the queue is sorted.
    pub(super) size: (i64, i64),
    /// Ports that one of them opens.
    pub(super) ports: Vec<HostPort>,
    /// What their required anti-affinity puts on other pods.
    pub(super) inverse: Vec<Constraint>,
}

/// A shape in one state of relaxation.
pub(super) struct Form {
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
    /// Topology constraints that it owns.
    pub(super) constraints: Vec<Constraint>,
}

struct Entry {
    shape: Arc<Shape>,
    /// The specification as it is and, once needed, as each relaxation leaves it.
    forms: Vec<Arc<Form>>,
    /// Whether the last form is known to be the last.
    exhausted: bool,
    /// Whether such pods are sure of a place where nothing but their own wishes counts, if that is known.
    sure: Option<bool>,
    /// Whether they are and ask for nothing but room, if that is known.
    wants_but_room: Option<bool>,
}

/// All shapes met so far.
#[derive(Default)]
pub(super) struct Shapes {
    entries: Vec<Entry>,
    /// By address. The forms and `kept` keep every specification alive, so that no address is used twice.
    by_address: FxHashMap<(Symbol, *const PodSpec), usize>,
    by_value: FxHashMap<(Symbol, Arc<PodSpec>), usize>,
    kept: Vec<Arc<PodSpec>>,
}

// The addresses are only compared, never followed, and what they point to is kept alive.
impl Shapes {
    /// The number of the shape of such pods.
    pub(super) fn find(
        &mut self,
        namespace: Symbol,
        spec: &Arc<PodSpec>,
        resources: &mut ResourceTable,
        workshop: &mut CompileContext<'_>,
    ) -> usize {
        let address = (namespace, Arc::as_ptr(spec));
        if let Some(&known) = self.by_address.get(&address) {
            return known;
        }
        self.kept.push(Arc::clone(spec));
        let value = (namespace, Arc::clone(spec));
        let number = match self.by_value.get(&value) {
            Some(&known) => known,
            None => {
                let number = self.entries.len();
                self.entries.push(new_entry(number, namespace, spec, resources, workshop));
                self.by_value.insert(value, number);
                number
            }
        };
        self.by_address.insert(address, number);
        number
    }

    /// The shape with this number.
    pub(super) fn shape(&self, number: usize) -> &Arc<Shape> {
        &self.entries[number].shape
    }

    /// Whether pods of the shape have no wish of their own and no say in where others go, volumes and claims aside.
    pub(super) fn asks_for_room_only(&self, number: usize) -> bool {
        let Entry { shape, forms, .. } = &self.entries[number];
        let form = &forms[0];
        let anywhere = form.set == SetId::EMPTY && form.host.is_none() && form.constraints.is_empty();
        anywhere && shape.ports.is_empty() && shape.inverse.is_empty()
    }

    /// Whether pods of the shape ask for nothing but room and are sure of a place, if that was found out before.
    pub(super) fn wants_but_room(&self, number: usize) -> Option<bool> {
        self.entries[number].wants_but_room
    }

    /// Remembers whether pods of the shape ask for nothing but room and are sure of a place.
    pub(super) fn remember_wants_but_room(&mut self, number: usize, known: bool) {
        self.entries[number].wants_but_room = Some(known);
    }

    /// Whether pods of the shape can always have a node of their own, if that was found out before.
    pub(super) fn is_sure(&self, number: usize) -> Option<bool> {
        self.entries[number].sure
    }

    /// Forgets which pods can always have a node of their own: the instance types have changed.
    pub(super) fn forget_sure(&mut self) {
        for entry in &mut self.entries {
            (entry.sure, entry.wants_but_room) = (None, None);
        }
    }

    /// Remembers whether pods of the shape can always have a node of their own.
    pub(super) fn remember_sure(&mut self, number: usize, sure: bool) {
        self.entries[number].sure = Some(sure);
    }

    /// A shape after so many relaxations, if it can be relaxed that often.
    pub(super) fn form(&mut self, number: usize, step: usize, workshop: &mut CompileContext<'_>) -> Option<Arc<Form>> {
        let entry = &mut self.entries[number];
        while entry.forms.len() <= step {
            let last = &entry.forms[entry.forms.len() - 1];
            if entry.exhausted {
                return None;
            }
            match relaxation::relax(&last.spec, workshop.prefer_no_schedule) {
                None => entry.exhausted = true,
                Some(spec) => entry.forms.push(Arc::new(new_form(Arc::new(spec), entry.shape.namespace, workshop))),
            }
        }
        Some(Arc::clone(&entry.forms[step]))
    }
}

fn new_entry(
    number: usize,
    namespace: Symbol,
    spec: &Arc<PodSpec>,
    resources: &mut ResourceTable,
    workshop: &mut CompileContext<'_>,
) -> Entry {
    let requests = spec.requests();
    let CompileContext { setup, spanning, table, rules, .. } = workshop;
    let shape = Shape {
        number,
        namespace,
        amounts: resources.dense(&requests),
        size: (requests.cpu_milli(), requests.memory_bytes()),
        requests,
        ports: spec.host_ports().collect(),
        inverse: rules.inverse(spec, namespace, setup, spanning, table),
    };
    let spec = setup.default_spread.map_or_else(|| Arc::clone(spec), |spread| spread.applied(namespace, spec));
    let first = new_form(spec, namespace, workshop);
    Entry { shape: Arc::new(shape), forms: vec![Arc::new(first)], exhausted: false, sure: None, wants_but_room: None }
}

fn new_form(spec: Arc<PodSpec>, namespace: Symbol, workshop: &mut CompileContext<'_>) -> Form {
    let CompileContext { setup, spanning, table, rules, .. } = workshop;
    let strict = strict_requirements(&spec);
    let mut full = strict.clone();
    if setup.options.preferences == PreferencePolicy::Respect {
        add_preference(&spec, &mut full);
    }
    let host = |set: &Requirements| set.get(well_known::HOSTNAME).cloned();
    Form {
        constraints: rules.owned(&spec, namespace, setup, spanning, table),
        set: table.intern(&full),
        strict: table.intern(&strict),
        host: host(&full),
        strict_host: host(&strict),
        spec,
    }
}

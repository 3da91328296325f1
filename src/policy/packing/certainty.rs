//! Questions that may end early: whether every pod of a pass is sure of a place, whatever becomes of the others.
//!
//! A pod for which a new node can be opened without regard to the cluster is never left without one. Where all pods of a pass are
//! like that, a pod of a node to be removed that has gone to a node which is not ready has settled the matter. And where one new node
//! could take all of them, but has to take so many that it must cost too much, nothing needs to be packed.

use super::claim::{Candidate, Claim};
use super::finish::{self, PriceOrders};
use super::pass::Pass;
use super::requirement_table::SetId;
use super::resource_table;
use crate::domain::HourlyRate;

impl Pass<'_, '_> {
    /// Whether no pod of the pass can be left without a place: false where limits, topology, volumes or reservations might do that.
    pub(super) fn all_are_sure(&mut self) -> bool {
        let plain = self.engine.topology.is_plain()
            && self.engine.templates.any_dynamic
            && self.asked.volumes.is_empty()
            && self.engine.tables.iter().all(|table| !table.has_reservations);
        plain && (0..self.classes.list.len()).all(|class| self.is_sure(class))
    }

    fn is_sure(&mut self, class: usize) -> bool {
        let shape = self.classes.list[class].shape.number;
        if let Some(known) = self.shapes.is_sure(shape) {
            return known;
        }
        let sure = !self.classes.list[class].variants[0].form.spec.resource_claims
            && (0..self.engine.templates.list.len()).any(|template| self.opens(class, template));
        self.shapes.remember_sure(shape, sure);
        sure
    }

    /// Whether a claim of a template whose pool has no limits can always be opened for such a pod.
    fn opens(&mut self, class: usize, template: usize) -> bool {
        if !self.remaining[template].limits.is_empty() {
            return false;
        }
        let types = self.remaining[template].types.clone();
        let claim = Claim::new(template, &self.engine.templates.list[template], self.asked.nodes, types);
        let state = &mut self.classes.list[class].variants[0];
        let tolerates = state.tolerates(self.engine.taints[template], self.engine.topology.known_rules());
        let class = Candidate { class: &self.classes.list[class], class_index: class, variant: 0, in_topology: false };
        let lower = self.engine.lowers_min_values();
        self.engine.can_add(&claim, class, tolerates, lower).is_ok()
    }

    /// Whether there would be exactly one new claim, and the cheapest type left to it would cost at least `ceiling`: nodes that
    /// have no room for a pod now will have none later, and so the claim must take every pod that fits nowhere now.
    pub(super) fn is_certainly_dearer(&mut self, ceiling: HourlyRate, orders: &mut PriceOrders) -> bool {
        let [template] = &self.engine.templates.list[..] else { return false };
        let (set, table) = (template.set, template.table);
        if !self.all_are_alike() || self.engine.table.has_min_values(set) || !self.all_are_sure() {
            return false;
        }
        let Some(Amounts { all, homeless }) = self.amounts() else { return false };
        let own = &mut self.engine.tables[table];
        own.prepare(set, self.engine.table);
        let mut types = self.remaining[0].types.clone();
        if !own.filter(&mut types.clone(), set, &all) || !own.filter(&mut types, set, &homeless) {
            return false;
        }
        finish::cheapest(self, table, set, &types, orders).is_none_or(|least| least >= ceiling)
    }

    /// Whether no pod of the pass wishes for more than room, so that what can take one can take any that it has room for.
    fn all_are_alike(&self) -> bool {
        self.classes.list.iter().all(|class| {
            let form = &class.variants[0].form;
            let anywhere = form.set == SetId::EMPTY && form.host.is_none();
            anywhere && class.shape.ports.is_empty() && class.volume_sets[..] == [SetId::EMPTY]
        })
    }

    /// What a claim would hold with all pods, and with those for which no node has room; `None` if every pod has room somewhere.
    fn amounts(&self) -> Option<Amounts> {
        let daemons = &self.engine.templates.list[0].daemon_amounts;
        let mut amounts = Amounts { all: daemons.clone(), homeless: daemons.clone() };
        let mut pods = vec![0_i64; self.classes.list.len()];
        for &class in &self.classes.of_pod {
            pods[class] += 1;
        }
        let mut some = false;
        for (class, pods) in self.classes.list.iter().zip(pods) {
            let together: Vec<i64> = class.shape.amounts.iter().map(|amount| amount.saturating_mul(pods)).collect();
            resource_table::add(&mut amounts.all, &together);
            if self.existing.next_with_room(0, &class.shape.amounts).is_none() {
                resource_table::add(&mut amounts.homeless, &together);
                some = true;
            }
        }
        some.then_some(amounts)
    }
}

/// What pods request, with the daemons of a new node.
struct Amounts {
    all: Vec<i64>,
    homeless: Vec<i64>,
}

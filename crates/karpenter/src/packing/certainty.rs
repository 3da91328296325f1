//! Questions that may end early: whether every pod of a pass is sure of a place, whatever becomes of the others.
//!
//! A pod for which a new node can be opened without regard to the cluster is never left without one. Where all pods of a pass are
//! like that, a pod of a node to be removed that has gone to a node which is not ready has settled the matter.

use super::claim::{Candidate, Claim};
use super::pass::Pass;

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
}

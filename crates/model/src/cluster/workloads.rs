//! What can become of a workload.

use std::sync::Arc;

use super::state::{Revision, Workload, WorkloadKind};
use super::{Change, Cluster};
use crate::domain::workload::ObjectName;
use crate::domain::{LabelSelector, PodSpec, WorkloadId};

/// A workload about to come to be.
#[derive(Clone, Debug)]
pub struct NewWorkload {
    /// Namespace and name.
    pub name: ObjectName,
    /// What it is.
    pub kind: WorkloadKind,
    /// The pods it owns.
    pub selector: LabelSelector,
    /// What its pods look like.
    pub template: Arc<PodSpec>,
    /// Replicas wanted.
    pub replicas: u32,
}

impl Cluster {
    /// Adds a workload without pods.
    pub fn add_workload(&mut self, new: NewWorkload) -> WorkloadId {
        let id = WorkloadId::from_index(self.workloads.len());
        let spec = self.specs.intern(new.template);
        let known = self.specs.get(spec);
        self.workloads.push(Workload {
            name: new.name,
            kind: new.kind,
            selector: new.selector,
            template: Arc::clone(&known.pod),
            requests: Arc::clone(&known.requests),
            revision: 0,
            revisions: vec![Revision { spec, active: 0 }],
            replicas: new.replicas,
            pods: Vec::new(),
            ready: 0,
            deleted: false,
        });
        self.note_change(Change::Workload(id));
        id
    }

    /// The workload is deleted: it wants no replicas any more, and another may have its name.
    pub fn delete_workload(&mut self, workload: WorkloadId) {
        let state = &mut self.workloads[workload.index()];
        (state.deleted, state.replicas) = (true, 0);
        self.note_change(Change::Workload(workload));
    }

    /// Sets the number of replicas wanted; returns what it was.
    pub fn set_replicas(&mut self, workload: WorkloadId, replicas: u32) -> u32 {
        let before = std::mem::replace(&mut self.workloads[workload.index()].replicas, replicas);
        self.note_change(Change::Workload(workload));
        before
    }

    /// Gives a workload a further template and returns its revision; pods are made from it once it is [in
    /// use](Self::use_revision) or asked for.
    pub fn add_revision(&mut self, workload: WorkloadId, template: Arc<PodSpec>) -> u32 {
        let spec = self.specs.intern(template);
        let revisions = &mut self.workloads[workload.index()].revisions;
        revisions.push(Revision { spec, active: 0 });
        let revision = (revisions.len() - 1) as u32;
        self.note_change(Change::Workload(workload));
        revision
    }

    /// The template of a revision of the workload.
    pub fn template_of(&self, workload: WorkloadId, revision: u32) -> &PodSpec {
        let spec = self.workloads[workload.index()].revisions[revision as usize].spec;
        &self.specs.get(spec).pod
    }

    /// The revision of a template that the workload has had, or of a further one.
    pub fn revision_of(&mut self, workload: WorkloadId, template: PodSpec) -> u32 {
        let known = self.specs.find(&template);
        let mut revisions = self.workloads[workload.index()].revisions.iter();
        match known.and_then(|spec| revisions.position(|revision| revision.spec == spec)) {
            Some(revision) => revision as u32,
            None => self.add_revision(workload, Arc::new(template)),
        }
    }

    /// From now on the workload's pods are made from the template of this revision; whether it has one.
    pub fn use_revision(&mut self, workload: WorkloadId, revision: u32) -> bool {
        let state = &mut self.workloads[workload.index()];
        let Some(spec) = state.revisions.get(revision as usize).map(|known| known.spec) else { return false };
        let known = self.specs.get(spec);
        state.template = Arc::clone(&known.pod);
        state.requests = Arc::clone(&known.requests);
        state.revision = revision;
        self.note_change(Change::Workload(workload));
        true
    }
}

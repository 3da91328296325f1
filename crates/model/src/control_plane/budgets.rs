//! The status of PodDisruptionBudgets, as the disruption controller keeps it.
//!
//! An evicted pod is asked to go in the same instant and counts as ending from then on; the two minutes for which upstream
//! counts it as gone bridge the time until its controller has seen that, and never matter here.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/disruption/disruption.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cluster::{Change, Cluster, Follow, Pod, PodPhase, WorkloadKind};
use crate::control_plane::eviction::{
    BudgetStatus, EvictionAnswer, EvictionBudget, EvictionView, ProtectedPods, Protectors, budget_status, eviction,
    protectors, selectors,
};
use crate::domain::pod::PodPhase as ReportedPhase;
use crate::domain::{PodId, WorkloadId};

/// What each budget protects: the pods that it selects, and what their controllers want.
///
/// A walk over all pods for each question was most of what budgets cost, and questions come with every look of an autoscaler.
/// So each pod's and each workload's share is kept, and a change takes the old share away and adds the new one.
#[derive(Debug, Default, PartialEq)]
pub struct ProtectedByBudgets {
    totals: Vec<ProtectedPods>,
    /// What these come to.
    statuses: Vec<BudgetStatus>,
    /// Budgets whose totals are no longer those of their statuses.
    counted_anew: Vec<u32>,
    /// By pod; gone ones have none.
    pods: Vec<Option<PodShare>>,
    /// By workload.
    workloads: Vec<WorkloadShare>,
}

#[derive(Clone, Debug, PartialEq)]
struct PodShare {
    budgets: Protectors,
    healthy: bool,
    /// Whether its controller has a scale.
    scaled: bool,
}

/// A controller counts with all that it wants for every budget that selects one of its pods.
///
/// Source: `getExpectedScale`.
#[derive(Debug, Default, PartialEq)]
struct WorkloadShare {
    /// Those that select pods as its template has them.
    of_template: Protectors,
    /// How many of its pods each budget selects: pods of a former template or with labels of their own are selected by others.
    selected: BTreeMap<u32, u32>,
    wanted: i64,
}

impl WorkloadShare {
    /// The budgets for which what it wants counts.
    fn budgets(&self) -> Protectors {
        let further = self.selected.keys().filter(|budget| !self.of_template.contains(budget));
        self.of_template.iter().chain(further).copied().collect()
    }
}

impl Follow for ProtectedByBudgets {
    fn build(cluster: &Cluster) -> Self {
        let mut built = Self::default();
        if cluster.budgets().is_empty() {
            return built;
        }
        built.totals.resize(cluster.budgets().len(), ProtectedPods::default());
        for (id, workload) in cluster.workloads() {
            built.update_workload(cluster, id);
            workload.pods.iter().for_each(|&pod| built.update_pod(cluster, pod));
        }
        built.pods.resize(cluster.pod_count(), None);
        built.counted_anew.clear();
        let budgets = cluster.budgets().iter().zip(&built.totals);
        built.statuses = budgets.map(|(budget, &pods)| budget_status(budget.rule, pods)).collect();
        built
    }

    fn follow(&mut self, cluster: &Cluster, changes: &[Change]) {
        if cluster.budgets().is_empty() {
            return;
        }
        if changes.contains(&Change::Budgets) {
            *self = Self::build(cluster);
            return;
        }
        for &change in changes {
            match change {
                Change::Pod(pod) | Change::Placement(pod) => self.update_pod(cluster, pod),
                Change::Workload(workload) => self.update_workload(cluster, workload),
                Change::Node(_) | Change::Budgets => {}
            }
        }
        for budget in self.counted_anew.drain(..).map(|budget| budget as usize) {
            self.statuses[budget] = budget_status(cluster.budgets()[budget].rule, self.totals[budget]);
        }
    }
}

impl ProtectedByBudgets {
    /// The status of every budget, in their order.
    pub fn statuses(&self) -> &[BudgetStatus] {
        &self.statuses
    }

    fn update_workload(&mut self, cluster: &Cluster, id: WorkloadId) {
        let workload = cluster.workload(id);
        // What stands for the pods of a namespace that nothing controls: none of them is wanted by a controller.
        let of_template = match workload.kind {
            WorkloadKind::Pods => Protectors::new(),
            _ => protectors(workload.name.namespace, &workload.template.labels, selectors(cluster)),
        };
        let this_workload = self.workload(id);
        let before = (this_workload.budgets(), this_workload.wanted);
        let is_another = this_workload.of_template != of_template;
        this_workload.of_template = of_template;
        this_workload.wanted = if has_scale(workload.kind) { i64::from(workload.replicas) } else { 0 };
        let after = (this_workload.budgets(), this_workload.wanted);
        before.0.into_iter().for_each(|budget| self.total(budget).wanted -= before.1);
        after.0.into_iter().for_each(|budget| self.total(budget).wanted += after.1);
        if is_another {
            workload.pods.iter().for_each(|&pod| self.update_pod(cluster, pod));
        }
    }

    fn workload(&mut self, id: WorkloadId) -> &mut WorkloadShare {
        if self.workloads.len() <= id.index() {
            self.workloads.resize_with(id.index() + 1, WorkloadShare::default);
        }
        &mut self.workloads[id.index()]
    }

    fn update_pod(&mut self, cluster: &Cluster, id: PodId) {
        let share = self.share_of(cluster, cluster.pod(id));
        if self.pods.len() <= id.index() {
            self.pods.resize(id.index() + 1, None);
        }
        let before = std::mem::replace(&mut self.pods[id.index()], share.clone());
        let budgets = |share: &Option<PodShare>| share.as_ref().map(|share| share.budgets.clone()).unwrap_or_default();
        let (was, is) = (budgets(&before), budgets(&share));
        if was != is {
            let workload = cluster.pod(id).workload;
            is.into_iter().for_each(|budget| self.select(workload, budget));
            was.into_iter().for_each(|budget| self.deselect(workload, budget));
        }
        self.count(before, -1);
        self.count(share, 1);
    }

    /// A budget selects one more pod of a workload.
    fn select(&mut self, workload: WorkloadId, budget: u32) {
        let workload = self.workload(workload);
        let pods = workload.selected.entry(budget).or_default();
        *pods += 1;
        if *pods == 1 && !workload.of_template.contains(&budget) {
            let wanted = workload.wanted;
            self.total(budget).wanted += wanted;
        }
    }

    /// A budget selects one pod of a workload less.
    fn deselect(&mut self, workload: WorkloadId, budget: u32) {
        let workload = self.workload(workload);
        let Some(pods) = workload.selected.get_mut(&budget) else { return };
        *pods -= 1;
        if *pods == 0 {
            workload.selected.remove(&budget);
            if !workload.of_template.contains(&budget) {
                let wanted = workload.wanted;
                self.total(budget).wanted -= wanted;
            }
        }
    }

    fn total(&mut self, budget: u32) -> &mut ProtectedPods {
        if self.counted_anew.last() != Some(&budget) {
            self.counted_anew.push(budget);
        }
        &mut self.totals[budget as usize]
    }

    fn share_of(&self, cluster: &Cluster, pod: &Pod) -> Option<PodShare> {
        if pod.phase == PodPhase::Gone {
            return None;
        }
        let kind = cluster.workload(pod.workload).kind;
        let budgets = if is_as_template(cluster, pod) {
            self.workloads.get(pod.workload.index())?.of_template.clone()
        } else {
            protectors(pod.namespace, &pod.spec.labels, selectors(cluster))
        };
        // Of one that nobody controls nobody is asked.
        let scaled = kind == WorkloadKind::Pods || has_scale(kind);
        Some(PodShare { budgets, healthy: pod.is_ready() && pod.is_active(), scaled })
    }

    fn count(&mut self, share: Option<PodShare>, times: i64) {
        let Some(PodShare { budgets, healthy, scaled }) = share else { return };
        for budget in budgets {
            let total = self.total(budget);
            total.selected += times;
            total.healthy += times * i64::from(healthy);
            total.unscaled += times * i64::from(!scaled);
        }
    }
}

/// Whether a controller made the pod, and its labels are those of the template that the controller has now.
fn is_as_template(cluster: &Cluster, pod: &Pod) -> bool {
    let workload = cluster.workload(pod.workload);
    let alike = || Arc::ptr_eq(&pod.spec, &workload.template) || pod.spec.labels == workload.template.labels;
    workload.kind != WorkloadKind::Pods && alike()
}

/// Whether objects of the kind have the subresource `scale`, which says how many pods they want.
pub(super) const fn has_scale(kind: WorkloadKind) -> bool {
    matches!(kind, WorkloadKind::Deployment | WorkloadKind::StatefulSet)
}

/// What the API server answers to an eviction of `pod`, whose budgets, by position, have these statuses.
///
/// Source: Kubernetes 1.36.2 `pkg/registry/core/pod/storage/eviction.go`.
pub fn eviction_answer(
    cluster: &Cluster,
    statuses: &[BudgetStatus],
    pod: &Pod,
    budgets: &Protectors,
) -> EvictionAnswer {
    let view = EvictionView {
        phase: if pod.phase == PodPhase::Running { ReportedPhase::Running } else { ReportedPhase::Pending },
        deleting: !pod.is_active(),
        ready: pod.is_ready(),
    };
    let eviction_budget = budgets.iter().map(|&budget| budget as usize).map(|budget| EvictionBudget {
        status: statuses[budget],
        always_allow_unhealthy: cluster.budgets()[budget].always_allow_unhealthy,
    });
    eviction(view, &eviction_budget.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::{ProtectedByBudgets, ProtectedPods};
    use crate::cluster::{Cluster, Derived, Follow, NewNode, NewWorkload, NodeOrigin, WorkloadKind};
    use crate::domain::pod::{DisruptionRule, IntOrPercent, PodDisruptionBudget};
    use crate::domain::workload::ObjectName;
    use crate::domain::{LabelSelector, Labels, PodId, PodSpec, SimDuration, SimTime, Symbol, WorkloadId};

    fn labelled(app: usize) -> Arc<PodSpec> {
        Arc::new(PodSpec { labels: Labels::new().with("app", ["web", "api", "none"][app]), ..PodSpec::default() })
    }

    fn budget(app: usize) -> PodDisruptionBudget {
        PodDisruptionBudget {
            namespace: Symbol::new("default"),
            name: Symbol::new(["one", "two", "three"][app]),
            selector: Some(LabelSelector { match_labels: labelled(app).labels.clone(), ..LabelSelector::default() }),
            rule: DisruptionRule::MaxUnavailable(IntOrPercent::Count(1)),
            always_allow_unhealthy: false,
        }
    }

    fn workload(cluster: &mut Cluster, number: usize, kind: WorkloadKind) -> WorkloadId {
        cluster.add_workload(NewWorkload {
            name: ObjectName { namespace: Symbol::new("default"), name: Symbol::new(["a", "b", "c"][number]) },
            kind,
            selector: LabelSelector::default(),
            template: labelled(number),
            replicas: 2,
        })
    }

    /// One thing that happens, chosen by three numbers: what, to which pod, and which template or count.
    fn act(cluster: &mut Cluster, (what, pod, number): (u8, usize, usize)) {
        let (at, id) = (SimTime::ZERO, PodId::from_index(pod % cluster.pod_count()));
        let state = cluster.pod(id);
        let (owner, phase) = (state.workload, state.phase);
        use crate::cluster::PodPhase::{Gone, Pending, Running, Starting};
        match (what, phase) {
            (0, _) => drop(cluster.create_pod(owner, 0, None, at)),
            (1, Pending) => cluster.bind_pod(id, crate::domain::NodeId(0)),
            (2, Starting) => cluster.start_pod(id, at),
            (3, Running) if !cluster.pod(id).is_ready() => cluster.ready_pod(id, at),
            (4, _) => drop(cluster.lose_readiness(id)),
            (5, Starting | Running) => drop(cluster.request_pod_deletion(id, at, SimDuration::ZERO)),
            (6, Pending | Starting | Running) => {
                cluster.lose_readiness(id);
                cluster.remove_pod(id);
            }
            (7, _) => drop(cluster.set_replicas(owner, number as u32)),
            (8, _) => {
                let revision = cluster.add_revision(owner, labelled(number % 3));
                cluster.use_revision(owner, revision);
            }
            (9, Pending | Starting | Running) => cluster.respecify_pod(id, labelled(number % 3)),
            (10, _) => cluster.apply_budget(budget(number % 3)),
            (1..=10, Gone | Pending | Starting | Running) | (11.., _) => {}
        }
    }

    #[test]
    fn pdb_counts_selected_pods_and_controller_replicas() {
        let mut cluster = Cluster::default();
        cluster.add_node(NewNode::called("n", NodeOrigin::NodePool(Symbol::new("p"))), SimTime::ZERO);
        let owner = workload(&mut cluster, 0, WorkloadKind::StatefulSet);
        let pods = [0, 1].map(|_| cluster.create_pod(owner, 0, None, SimTime::ZERO));
        cluster.apply_budget(budget(1));
        let mut protected = Derived::<ProtectedByBudgets>::new(&cluster);
        protected.catch_up(&cluster);
        assert_eq!(protected.value().totals[0], ProtectedPods::default());
        // One of them gets the label that the budget selects by.
        cluster.respecify_pod(pods[0], labelled(1));
        for pod in pods {
            cluster.bind_pod(pod, crate::domain::NodeId(0));
            cluster.start_pod(pod, SimTime::ZERO);
            cluster.ready_pod(pod, SimTime::ZERO);
        }
        protected.catch_up(&cluster);
        let expected = ProtectedPods { selected: 1, healthy: 1, wanted: 2, unscaled: 0 };
        assert_eq!(protected.value().totals[0], expected);
        assert_eq!(protected.value(), &ProtectedByBudgets::build(&cluster));
    }

    proptest! {
        #[test]
        fn incremental_pdb_shares_match_full_scan(
            acts in proptest::collection::vec((0_u8..11, 0_usize..40, 0_usize..5), 1..120),
            pause in 1_usize..9,
        ) {
            let mut cluster = Cluster::default();
            cluster.add_node(NewNode::called("n", NodeOrigin::NodePool(Symbol::new("p"))), SimTime::ZERO);
            for (number, kind) in [WorkloadKind::Deployment, WorkloadKind::Pods].into_iter().enumerate() {
                let owner = workload(&mut cluster, number, kind);
                cluster.create_pod(owner, 0, None, SimTime::ZERO);
            }
            let mut protected = Derived::<ProtectedByBudgets>::new(&cluster);
            for (turn, act_of_turn) in acts.into_iter().enumerate() {
                act(&mut cluster, act_of_turn);
                if turn % pause == 0 {
                    protected.catch_up(&cluster);
                    prop_assert_eq!(protected.value(), &ProtectedByBudgets::build(&cluster));
                }
            }
        }
    }
}

//! Which pods of others the selector of a scale takes: whoever asks for the pods of a scale is given every pod of the namespace that
//! has the labels, whoever made it.
//!
//! Deviation: the object of a Job's pod stays after its containers end. Here no selector selects it then. Upstream it
//! counts as a pod without metrics, and if it has no request, the autoscaler computes nothing while it exists.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/podautoscaler/replica_calculator.go` (`GetResourceReplicas` and its like list pods by
//! namespace and selector), `pkg/registry/apps/deployment/storage/storage.go` (`scaleFromDeployment`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::budgets::has_scale;
use crate::cluster::{Change, Cluster, Follow, Pod, PodPhase, SpecId};
use crate::domain::{PodId, Symbol, WorkloadId};

/// For each workload with a scale the pods of others in its namespace that its selector takes.
#[derive(Debug, Default)]
pub struct TakenFromOthers {
    /// The workloads with a scale.
    scales: BTreeSet<WorkloadId>,
    /// By workload the pods that it takes and has not made; those that take none are not there.
    pods: BTreeMap<WorkloadId, BTreeSet<PodId>>,
    /// Whose selectors take pods of a namespace with a specification, where that was asked.
    takers: FxHashMap<(Symbol, SpecId), Arc<[WorkloadId]>>,
}

/// What was asked for does not count.
impl PartialEq for TakenFromOthers {
    fn eq(&self, other: &Self) -> bool {
        self.scales == other.scales && self.pods == other.pods
    }
}

impl Follow for TakenFromOthers {
    fn build(cluster: &Cluster) -> Self {
        let mut built = Self::default();
        let scales = cluster.workloads().filter(|(_, workload)| has_scale(workload.kind) && !workload.deleted);
        built.scales.extend(scales.map(|(id, _)| id));
        for (_, workload) in cluster.workloads() {
            workload.pods.iter().for_each(|&pod| built.update_pod(cluster, pod));
        }
        built
    }

    fn follow(&mut self, cluster: &Cluster, changes: &[Change]) {
        let changed = |change: &Change| match *change {
            Change::Workload(id) => {
                let workload = cluster.workload(id);
                self.scales.contains(&id) != (has_scale(workload.kind) && !workload.deleted)
            }
            _ => false,
        };
        // Selectors do not change, so that only a scale that has come or gone takes a look at all pods.
        if changes.iter().any(changed) {
            *self = Self::build(cluster);
            return;
        }
        for change in changes {
            if let Change::Pod(pod) | Change::Placement(pod) = *change {
                self.update_pod(cluster, pod);
            }
        }
    }
}

impl TakenFromOthers {
    /// The pods that the selector of a workload takes and that others have made, in order of creation.
    pub fn by(&self, workload: WorkloadId) -> impl Iterator<Item = PodId> {
        self.pods.get(&workload).into_iter().flatten().copied()
    }

    /// Whether no selector takes a pod of others.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// Whether there is a pod that the selectors of both workloads take.
    pub fn meet(&self, cluster: &Cluster, one: WorkloadId, other: WorkloadId) -> bool {
        let made_by = |maker: WorkloadId| move |pod: PodId| cluster.pod(pod).workload == maker;
        one == other
            || self.by(one).any(made_by(other))
            || self.by(other).any(made_by(one))
            || self.by(one).any(|pod| self.pods.get(&other).is_some_and(|this_pod| this_pod.contains(&pod)))
    }

    fn update_pod(&mut self, cluster: &Cluster, id: PodId) {
        let pod = cluster.pod(id);
        let takers = if pod.phase == PodPhase::Gone { Arc::default() } else { self.takers_of(cluster, pod) };
        let takes = |taker: WorkloadId| taker != pod.workload && takers.contains(&taker);
        // It may have had other labels.
        self.pods.retain(|&taker, pod| {
            if !takes(taker) {
                pod.remove(&id);
            }
            !pod.is_empty()
        });
        for &taker in takers.iter().filter(|&&taker| takes(taker)) {
            self.pods.entry(taker).or_default().insert(id);
        }
    }

    fn takers_of(&mut self, cluster: &Cluster, pod: &Pod) -> Arc<[WorkloadId]> {
        let scales = &self.scales;
        let takes = |id: &&WorkloadId| {
            let workload = cluster.workload(**id);
            workload.name.namespace == pod.namespace && workload.selector.matches(&pod.spec.labels)
        };
        let takers = || scales.iter().filter(takes).copied().collect();
        Arc::clone(self.takers.entry((pod.namespace, pod.spec_id)).or_insert_with(takers))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::TakenFromOthers;
    use crate::cluster::{Cluster, Derived, NewWorkload, WorkloadKind};
    use crate::domain::workload::ObjectName;
    use crate::domain::{LabelSelector, Labels, PodSpec, SimTime, Symbol, WorkloadId};

    fn labels(of: &[(&str, &str)]) -> Labels {
        let mut labels = Labels::new();
        of.iter().for_each(|(key, value)| labels.set(Symbol::new(key), Symbol::new(value)));
        labels
    }

    fn add(
        cluster: &mut Cluster,
        (namespace, name, kind): (&str, &str, WorkloadKind),
        selector: &[(&str, &str)],
        item: &[(&str, &str)],
    ) -> WorkloadId {
        let name = ObjectName { namespace: Symbol::new(namespace), name: Symbol::new(name) };
        let selector = LabelSelector { match_labels: labels(selector), ..LabelSelector::default() };
        let template = Arc::new(PodSpec { labels: labels(item), ..PodSpec::default() });
        cluster.add_workload(NewWorkload { name, kind, selector, template, replicas: 1 })
    }

    fn pod(cluster: &mut Cluster, workload: WorkloadId) -> crate::domain::PodId {
        cluster.create_pod(workload, 0, None, SimTime::ZERO)
    }

    #[test]
    fn selector_adopts_foreign_pods_while_it_exists() {
        let mut cluster = Cluster::default();
        let web = add(&mut cluster, ("shop", "web", WorkloadKind::Deployment), &[("app", "shop")], &[("app", "shop")]);
        let both = [("app", "shop"), ("part", "worker")];
        let worker = add(&mut cluster, ("shop", "worker", WorkloadKind::Deployment), &both, &both);
        let job = add(&mut cluster, ("shop", "seed", WorkloadKind::Job), &[], &both);
        let elsewhere = add(&mut cluster, ("lab", "web", WorkloadKind::Deployment), &both, &both);
        let mut taken = Derived::<TakenFromOthers>::new(&cluster);
        let this_pod = pod(&mut cluster, web);
        taken.catch_up(&cluster);
        assert_eq!(taken.value().by(web).count(), 0);
        assert!(!taken.value().meet(&cluster, web, worker), "no pod is both's yet");
        let (of_worker, of_job, _) = (pod(&mut cluster, worker), pod(&mut cluster, job), pod(&mut cluster, elsewhere));
        taken.catch_up(&cluster);
        assert_eq!(taken.value().by(web).collect::<Vec<_>>(), [of_worker, of_job]);
        assert_eq!(taken.value().by(worker).collect::<Vec<_>>(), [of_job]);
        assert_eq!(taken.value().by(elsewhere).count(), 0);
        assert!(taken.value().meet(&cluster, web, worker) && taken.value().meet(&cluster, worker, web));
        cluster.remove_pod(of_worker);
        cluster.remove_pod(this_pod);
        taken.catch_up(&cluster);
        assert_eq!(taken.value().by(web).collect::<Vec<_>>(), [of_job]);
        assert!(taken.value().meet(&cluster, web, worker), "both take the Job's");
        cluster.respecify_pod(of_job, Arc::new(PodSpec { labels: labels(&[("app", "shop")]), ..PodSpec::default() }));
        taken.catch_up(&cluster);
        assert_eq!((taken.value().by(web).count(), taken.value().by(worker).count()), (1, 0));
        cluster.remove_pod(of_job);
        taken.catch_up(&cluster);
        assert!(!taken.value().meet(&cluster, web, worker));
    }

    #[test]
    fn later_workload_adopts_existing_pods() {
        let mut cluster = Cluster::default();
        let job = add(&mut cluster, ("shop", "seed", WorkloadKind::Job), &[], &[("app", "shop")]);
        let there = pod(&mut cluster, job);
        let mut taken = Derived::<TakenFromOthers>::new(&cluster);
        let web = add(&mut cluster, ("shop", "web", WorkloadKind::StatefulSet), &[("app", "shop")], &[("app", "shop")]);
        taken.catch_up(&cluster);
        assert_eq!(taken.value().by(web).collect::<Vec<_>>(), [there]);
        cluster.delete_workload(web);
        taken.catch_up(&cluster);
        assert_eq!(taken.value().by(web).count(), 0);
    }
}

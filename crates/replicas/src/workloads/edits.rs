//! Edits of workloads that the API server refuses.
//!
//! What must not live here: a Job's template, which may change in part ([`may_change_template`](super::may_change_template)).

use nodecast_model::domain::pod::{ClaimSource, VolumeRef};
use nodecast_model::domain::workload::{JobSpec, StatefulSet};
use nodecast_model::domain::{KubernetesBehaviour, KubernetesVersion};

/// The field that an edit of a StatefulSet changes and must not, if there is one.
///
/// Source: Kubernetes 1.36 `pkg/apis/apps/validation/validation.go`, `ValidateStatefulSetUpdate`.
pub fn fixed_of_stateful_set(old: &StatefulSet, new: &StatefulSet) -> Option<&'static str> {
    let claims = |set: &StatefulSet| -> Vec<VolumeRef> {
        let of_set = |volume: &&VolumeRef| matches!(volume.source, ClaimSource::Template(_));
        set.template.volumes.iter().filter(of_set).cloned().collect()
    };
    let changes = [
        ("selector", old.selector != new.selector),
        ("serviceName", old.service != new.service),
        ("podManagementPolicy", old.parallel != new.parallel),
        ("volumeClaimTemplates", claims(old) != claims(new)),
    ];
    changes.into_iter().find(|(_, changes)| *changes).map(|(field, _)| field)
}

/// The field that an edit of a Job changes and must not, if there is one; its template is none of these.
///
/// Whoever states neither `completions` nor `parallelism` has the API server write 1 for both, and an edit that states the latter alone leaves
/// the former as it is.
///
/// Source: Kubernetes 1.36 `pkg/apis/batch/validation/validation.go`, `ValidateJobSpecUpdate` and `validateCompletions`.
pub fn fixed_of_job(old: &JobSpec, new: &JobSpec, version: KubernetesVersion) -> Option<&'static str> {
    let follows = new.indexed && new.completions == Some(new.parallelism);
    let elastic = follows && version.has(KubernetesBehaviour::ElasticIndexedJob);
    let stays = old.completions == new.completions || old.completions == Some(1) && new.completions.is_none();
    let changes = [
        ("completionMode", old.indexed != new.indexed),
        ("completions", !stays && !elastic),
        (
            "podFailurePolicy",
            (old.failure_policy, old.ignores_disruptions) != (new.failure_policy, new.ignores_disruptions),
        ),
        ("successPolicy", old.success_policy != new.success_policy),
        ("managedBy", old.manager != new.manager),
    ];
    changes.into_iter().find(|(_, changes)| *changes).map(|(field, _)| field)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::fixed_of_job;
    use nodecast_model::domain::workload::JobSpec;
    use nodecast_model::domain::{KubernetesVersion, PodSpec, Symbol};

    #[test]
    fn completions_change_only_with_indexed_parallelism() {
        let job = |indexed: bool, parallelism: u32, completions: Option<u32>| JobSpec {
            indexed,
            parallelism,
            completions,
            ..JobSpec::from_template(Arc::new(PodSpec::default()))
        };
        let fixed = |old: &JobSpec, new: &JobSpec, minor: u8| {
            fixed_of_job(old, new, KubernetesVersion::from_minor(minor).unwrap())
        };
        let two = job(true, 2, Some(2));
        assert_eq!(fixed(&two, &job(true, 3, Some(3)), 36), None);
        assert_eq!(fixed(&two, &job(true, 3, Some(3)), 26), Some("completions"));
        assert_eq!(fixed(&two, &job(true, 2, Some(3)), 36), Some("completions"));
        assert_eq!(fixed(&two, &job(false, 2, Some(2)), 36), Some("completionMode"));
        assert_eq!(fixed(&job(false, 2, Some(2)), &job(false, 3, Some(3)), 36), Some("completions"));
        assert_eq!(fixed(&job(false, 1, Some(1)), &job(false, 2, None), 36), None, "nobody has stated them");
        assert_eq!(fixed(&job(false, 2, None), &job(false, 1, Some(1)), 36), Some("completions"));
        let managed = JobSpec { manager: Some(Symbol::new("example.com/queue")), ..two.clone() };
        assert_eq!(fixed(&two, &managed, 36), Some("managedBy"));
    }
}

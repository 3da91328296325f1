//! Workloads: what makes pods.

use std::sync::Arc;

use super::labels::LabelSelector;
use super::pod::{IntOrPercent, PodSpec};
use super::symbol::Symbol;
use super::time::{SimDuration, SimTime};
use super::versions::{KubernetesBehaviour, KubernetesVersion};

/// A namespaced object's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectName {
    /// Namespace.
    pub namespace: Symbol,
    /// Name within it.
    pub name: Symbol,
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The label by which a Deployment tells its ReplicaSets apart.
pub const TEMPLATE_HASH: &str = "pod-template-hash";
/// The label by which a Rollout of Argo does.
pub const ROLLOUT_HASH: &str = "rollouts-pod-template-hash";

/// The Deployment or Rollout that made a ReplicaSet, by the name of the set and the hash on its pods; `None` for a set of its own. Where
/// the pods show no hash, a name that ends with what can be one is that of a made set.
///
/// Source: Kubernetes 1.36 `pkg/controller/deployment/sync.go`, `getNewReplicaSet`; `apimachinery/pkg/util/rand`, `SafeEncodeString`, which
/// makes of a number's digits some of `456789bcdf`.
pub fn deployment_of_set<'n>(set: &'n str, hash: Option<&str>) -> Option<&'n str> {
    const HASH: &str = "456789bcdf";
    let (name, ending) = set.rsplit_once('-').filter(|(name, _)| !name.is_empty())?;
    let is_hash = || ending.len() >= 3 && ending.chars().all(|letter| HASH.contains(letter));
    let is_number = || ending.len() >= 8 && ending.bytes().all(|byte| byte.is_ascii_digit());
    let is_made = hash.map_or_else(|| is_hash() || is_number(), |hash| hash == ending);
    is_made.then_some(name)
}

/// A Deployment.
#[derive(Clone, PartialEq, Debug)]
pub struct Deployment {
    /// Namespace and name.
    pub name: ObjectName,
    /// `replicas`; `None` when the manifest leaves it out (the API then says 1).
    pub replicas: Option<u32>,
    /// The pods it owns.
    pub selector: LabelSelector,
    /// What its pods look like.
    pub template: Arc<PodSpec>,
    /// Whether a new template reaches the pods that there are; not those of a ReplicaSet without a Deployment.
    pub rolls_out: bool,
    /// Pods above the wanted number that a rollout may have; `None` for `Recreate`.
    pub max_surge: Option<IntOrPercent>,
    /// Pods below the wanted number that a rollout may have.
    pub max_unavailable: Option<IntOrPercent>,
    /// How long a pod must be Ready before it counts as available.
    pub min_ready: SimDuration,
    /// How long a rollout may go on without progress before the controller reports it (`progressDeadlineSeconds`).
    pub progress_deadline: SimDuration,
}

/// A DaemonSet.
#[derive(Clone, PartialEq, Debug)]
pub struct DaemonSet {
    /// Namespace and name.
    pub name: ObjectName,
    /// The pods it owns.
    pub selector: LabelSelector,
    /// What its pods look like.
    pub template: Arc<PodSpec>,
    /// Pods that an update may take away at once, 1 unless given; `None` for `OnDelete`.
    pub max_unavailable: Option<IntOrPercent>,
    /// Nodes that may have a new pod beside the old one during an update, none unless given.
    pub max_surge: IntOrPercent,
    /// How long a pod must be Ready before it counts as available.
    pub min_ready: SimDuration,
}

/// A StatefulSet.
#[derive(Clone, PartialEq, Debug)]
pub struct StatefulSet {
    /// Namespace and name.
    pub name: ObjectName,
    /// `replicas`; `None` when the manifest leaves it out (the API then says 1).
    pub replicas: Option<u32>,
    /// The pods it owns.
    pub selector: LabelSelector,
    /// What its pods look like.
    pub template: Arc<PodSpec>,
    /// `podManagementPolicy: Parallel`: pods are made and deleted without waiting for each other.
    pub parallel: bool,
    /// The Service that governs it (`serviceName`), empty unless given.
    pub service: Symbol,
    /// The first ordinal (`ordinals.start`).
    pub first_ordinal: u32,
    /// Whether the claims of a pod stay when there are too many replicas (`persistentVolumeClaimRetentionPolicy.whenScaled`).
    pub keeps_claims: bool,
    /// Whether the claims that it made stay when it is deleted itself (`whenDeleted`).
    pub leaves_claims: bool,
    /// How a changed template reaches its pods.
    pub update: StatefulUpdate,
    /// How long a pod must be Ready before it counts as available.
    pub min_ready: SimDuration,
}

/// How a changed template reaches the pods of a StatefulSet (`updateStrategy`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StatefulUpdate {
    /// When somebody deletes them.
    OnDelete,
    /// From the highest ordinal down to this one.
    Rolling {
        /// `partition`.
        partition: u32,
        /// `maxUnavailable`, 1 unless given.
        max_unavailable: IntOrPercent,
    },
}

/// A rule of `successPolicy`: an Indexed Job succeeds once one of its rules holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SuccessRule {
    /// First and last index of each span that counts; `None` for all indexes.
    pub indexes: Option<Vec<(u32, u32)>>,
    /// How many of them have to succeed; `None` for all.
    pub count: Option<u32>,
}

impl SuccessRule {
    /// Whether it holds once these indexes have succeeded, each given once.
    ///
    /// Source: Kubernetes 1.36 `pkg/controller/job/success_policy.go`, `matchSuccessPolicy`.
    pub fn holds(&self, succeeded: impl Iterator<Item = u32>) -> bool {
        let spans = self.indexes.as_deref();
        let counts =
            |index: &u32| spans.is_none_or(|all| all.iter().any(|&(first, last)| (first..=last).contains(index)));
        let succeeded = succeeded.filter(counts).count() as u64;
        let all =
            spans.map(|all| all.iter().map(|&(first, last)| (u64::from(last) + 1).saturating_sub(first.into())).sum());
        self.count.map(u64::from).or(all).is_some_and(|wanted| succeeded >= wanted)
    }
}

/// A Job's specification.
#[derive(Clone, PartialEq, Debug)]
pub struct JobSpec {
    /// What its pods look like.
    pub template: Arc<PodSpec>,
    /// Pods at a time.
    pub parallelism: u32,
    /// Successes that complete it; `None` if one success of any pod does, once the others have ended too.
    pub completions: Option<u32>,
    /// Failures above which it is given up.
    pub backoff_limit: u32,
    /// Failures above which one of its indexes is given up, where failures count by index (`backoffLimitPerIndex`).
    pub index_backoff_limit: Option<u32>,
    /// Indexes given up above which the Job is (`maxFailedIndexes`).
    pub max_failed_indexes: Option<u32>,
    /// Whether a container that fails restarts in its pod (`restartPolicy: OnFailure`).
    pub restarts_in_place: bool,
    /// How long it may run; `None` for ever.
    pub active_deadline: Option<SimDuration>,
    /// Whether it makes no pods.
    pub suspended: bool,
    /// Whether pods that others evict do not count as failures (`podFailurePolicy` with `Ignore` of `DisruptionTarget`).
    pub ignores_disruptions: bool,
    /// Whether a pod that is being deleted is replaced, and counts as failed, only when it has ended (`podReplacementPolicy: Failed`).
    pub replaces_ended_only: bool,
    /// How long after its end it is deleted (`ttlSecondsAfterFinished`); `None` if nobody deletes it. Only pods on Fargate and
    /// claims of pods cost something until then.
    pub ttl: Option<SimDuration>,
    /// Whether it says what failures of its pods count for (`podFailurePolicy`).
    pub failure_policy: bool,
    /// `completionMode: Indexed`.
    pub indexed: bool,
    /// Rules of which one makes the Job succeed before all completions (`successPolicy`).
    pub success_policy: Vec<SuccessRule>,
    /// Who manages it (`managedBy`), where that is not the Job controller.
    pub manager: Option<Symbol>,
}

impl JobSpec {
    /// Drops the fields that the API server of this release does not know, or not unless a feature gate is opened.
    pub fn drop_unknown(&mut self, version: KubernetesVersion) {
        if !version.has(KubernetesBehaviour::JobPodFailurePolicy) {
            (self.failure_policy, self.ignores_disruptions) = (false, false);
        }
        if !version.has(KubernetesBehaviour::JobPodReplacementPolicy) {
            self.replaces_ended_only = self.failure_policy;
        }
        if !version.has(KubernetesBehaviour::JobBackoffLimitPerIndex) {
            // Without the field the limit of all pods has its usual default.
            if self.index_backoff_limit.is_some() && self.backoff_limit == i32::MAX.unsigned_abs() {
                self.backoff_limit = 6;
            }
            (self.index_backoff_limit, self.max_failed_indexes) = (None, None);
        }
        if !version.has(KubernetesBehaviour::JobSuccessPolicy) {
            self.success_policy.clear();
        }
        if !version.has(KubernetesBehaviour::JobManagedBy) {
            self.manager = None;
        }
    }

    /// Whether the Job controller of this release leaves it to another, as `managedBy` says: it makes no pods of it. Releases before 1.32 drop
    /// the field.
    ///
    /// Source: Kubernetes 1.36 `pkg/controller/job/job_controller.go`, `syncJob`.
    pub const fn is_managed_elsewhere(&self, version: KubernetesVersion) -> bool {
        self.manager.is_some() && version.has(KubernetesBehaviour::JobManagedBy)
    }

    /// A Job of one such pod, with the API's defaults.
    pub const fn from_template(template: Arc<PodSpec>) -> Self {
        Self {
            template,
            parallelism: 1,
            completions: Some(1),
            backoff_limit: 6,
            index_backoff_limit: None,
            max_failed_indexes: None,
            restarts_in_place: false,
            active_deadline: None,
            suspended: false,
            ignores_disruptions: false,
            replaces_ended_only: false,
            ttl: None,
            failure_policy: false,
            indexed: false,
            success_policy: Vec::new(),
            manager: None,
        }
    }

    /// Whether the controller has to know which index each pod has.
    pub const fn follows_indexes(&self) -> bool {
        self.index_backoff_limit.is_some() || !self.success_policy.is_empty()
    }
}

/// A Job.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// Namespace and name.
    pub name: ObjectName,
    /// What it does.
    pub spec: JobSpec,
    /// How far it was in the cluster that the object is from. What is applied brings none: it counts where a run begins with a dump.
    pub status: JobStatus,
    /// Kind and name of what made it, in its namespace, of those that are simulated.
    pub maker: Option<(JobMaker, Symbol)>,
}

/// What makes Jobs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum JobMaker {
    /// A CronJob.
    CronJob,
    /// A ScaledJob of KEDA.
    ScaledJob,
}

/// What the Job controller has written down of a Job.
///
/// Source: Kubernetes 1.36.2 `staging/src/k8s.io/api/batch/v1/types.go`, `JobStatus`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JobStatus {
    /// `startTime`, since 1970: since when it has run without being suspended.
    pub started: Option<SimTime>,
    /// Pods that have ended well; of an Indexed Job its completed indexes.
    pub succeeded: u32,
    /// Pods that have failed.
    pub failed: u32,
    /// Indexes that are given up, of a Job that counts failures by index (`backoffLimitPerIndex`); 0 for every other.
    pub failed_indexes: u32,
    /// How it ended, if it has or is about to.
    pub end: Option<JobConclusion>,
}

/// How a Job ended before a run begins with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobConclusion {
    /// Whether it is complete; else it has failed.
    pub complete: bool,
    /// When, since 1970; `None` if its last pods have not ended yet, or nothing says.
    pub at: Option<SimTime>,
}

/// What a CronJob does when its time comes while a Job of it still runs (`concurrencyPolicy`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Concurrency {
    /// It starts another.
    #[default]
    Allow,
    /// It waits until that one has ended.
    Forbid,
    /// It ends that one and starts another.
    Replace,
}

/// A CronJob.
#[derive(Clone, PartialEq, Debug)]
pub struct CronJob {
    /// Namespace and name.
    pub name: ObjectName,
    /// Five fields, or a name such as `@daily`.
    pub schedule: String,
    /// An IANA time zone; `None` for UTC.
    pub time_zone: Option<String>,
    /// What it does when a Job of it still runs.
    pub concurrency: Concurrency,
    /// How much later than its time a Job may start; `None` for any.
    pub starting_deadline: Option<SimDuration>,
    /// Whether it starts none.
    pub suspended: bool,
    /// Jobs of it that are complete and stay, the youngest (`successfulJobsHistoryLimit`, 3 unless given).
    pub successful_jobs_history_limit: u32,
    /// Jobs of it that were given up and stay, the youngest (`failedJobsHistoryLimit`, 1 unless given).
    pub failed_jobs_history_limit: u32,
    /// When the last Job that it had started in the cluster that the object is from was due (`status.lastScheduleTime`), since 1970. It
    /// counts where a run begins with a dump and a Job of it that still runs has held back what was due since.
    pub last_schedule: Option<SimTime>,
    /// Its Jobs.
    pub job: JobSpec,
}

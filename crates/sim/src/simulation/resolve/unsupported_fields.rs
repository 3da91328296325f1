//! Fields of workloads, autoscalers and budgets that the stated release of Kubernetes does not know, or not unless a feature gate is opened:
//! its API server drops them, so that they have no effect.
//!
//! Must not hold fields of pods that apply whatever the release (`fields`).

use std::sync::Arc;

use super::storage::{parts, pods, templates};
use crate::actors::{Action, Setup, Step};
use crate::domain::hpa::{HorizontalPodAutoscaler, MetricSource};
use crate::domain::pod::IntOrPercent;
use crate::domain::words::counted;
use crate::domain::workload::{JobSpec, StatefulSet, StatefulUpdate};
use crate::domain::{KubernetesBehaviour, KubernetesVersion, PodSpec};
use crate::manifests::Manifests;
use nodecast_karpenter::release::Behaviour;
use nodecast_settings::lints::setup;
use nodecast_settings::{Caveats, PolicyVariant};

/// A field, the release since which the API server keeps it by itself, what it does before, and how many objects state it.
struct Since {
    since: KubernetesBehaviour,
    kinds: [&'static str; 2],
    field: &'static str,
    otherwise: &'static str,
    stating: fn(&Manifests) -> usize,
}

const STATEFUL_SETS: [&str; 2] = ["StatefulSet states", "StatefulSets state"];
const AUTOSCALERS: [&str; 2] = ["HorizontalPodAutoscaler states", "HorizontalPodAutoscalers state"];
const JOBS: [&str; 2] = ["Job, CronJob or ScaledJob states", "Jobs, CronJobs or ScaledJobs state"];

const FIELDS: [Since; 13] = [
    Since {
        since: KubernetesBehaviour::HpaScaleToZero,
        kinds: AUTOSCALERS,
        field: "`minReplicas: 0`",
        otherwise: "rejects (simulated anyway)",
        stating: |item| item.autoscalers.iter().filter(|autoscaler| autoscaler.min_replicas == Some(0)).count(),
    },
    Since {
        since: KubernetesBehaviour::VolumeLimitScaling,
        kinds: ["CSIDriver states", "CSIDrivers state"],
        field: "`preventPodSchedulingIfMissing`",
        otherwise: "drops: nodes take pods before the driver reports its limit",
        stating: |item| item.csi_drivers.iter().filter(|driver| driver.is_required).count(),
    },
    Since {
        since: KubernetesBehaviour::HpaTolerance,
        kinds: AUTOSCALERS,
        field: "`tolerance`",
        otherwise: "drops (the controller's default tolerance applies)",
        stating: |item| item.autoscalers.iter().filter(|autoscaler| has_tolerance(autoscaler)).count(),
    },
    Since {
        since: KubernetesBehaviour::StatefulSetMaxUnavailable,
        kinds: STATEFUL_SETS,
        field: "`maxUnavailable`",
        otherwise: "drops (updates replace one pod at a time)",
        stating: |item| item.stateful_sets.iter().filter(|stateful_set| takes_several(stateful_set)).count(),
    },
    Since {
        since: KubernetesBehaviour::ResourceClaims,
        kinds: ["pod template states", "pod templates state"],
        field: "`resourceClaims`",
        otherwise: "drops: the pods get no devices",
        stating: |item| templates(item).filter(|(_, spec)| spec.resource_claims).count(),
    },
    Since {
        since: KubernetesBehaviour::JobPodReplacementPolicy,
        kinds: JOBS,
        field: "`podReplacementPolicy`",
        otherwise: "drops (terminating pods are replaced immediately)",
        stating: |item| jobs(item).filter(|job| job.replaces_ended_only && !job.failure_policy).count(),
    },
    Since {
        since: KubernetesBehaviour::StatefulSetClaimRetention,
        kinds: STATEFUL_SETS,
        field: "`persistentVolumeClaimRetentionPolicy`",
        otherwise: "drops (all claims are retained)",
        stating: |item| {
            item.stateful_sets
                .iter()
                .filter(|stateful_set| !stateful_set.keeps_claims || !stateful_set.leaves_claims)
                .count()
        },
    },
    Since {
        since: KubernetesBehaviour::StatefulSetOrdinals,
        kinds: STATEFUL_SETS,
        field: "`ordinals`",
        otherwise: "drops: pods are counted from 0",
        stating: |item| item.stateful_sets.iter().filter(|stateful_set| stateful_set.first_ordinal != 0).count(),
    },
    Since {
        since: KubernetesBehaviour::JobPodFailurePolicy,
        kinds: JOBS,
        field: "`podFailurePolicy`",
        otherwise: "drops: each failed pod counts",
        stating: |item| jobs(item).filter(|job| job.failure_policy).count(),
    },
    Since {
        since: KubernetesBehaviour::JobSuccessPolicy,
        kinds: JOBS,
        field: "`successPolicy`",
        otherwise: "drops: the Job ends with all its completions",
        stating: |item| jobs(item).filter(|job| !job.success_policy.is_empty()).count(),
    },
    Since {
        since: KubernetesBehaviour::CronJobTimeZone,
        kinds: ["CronJob states", "CronJobs state"],
        field: "`timeZone`",
        otherwise: "drops: the schedule is one of UTC",
        stating: |manifests| manifests.cron_jobs.iter().filter(|cron_job| cron_job.time_zone.is_some()).count(),
    },
    Since {
        since: KubernetesBehaviour::UnhealthyPodEvictionPolicy,
        kinds: ["PodDisruptionBudget states", "PodDisruptionBudgets state"],
        field: "`unhealthyPodEvictionPolicy`",
        otherwise: "drops: evictions of pods that are not Ready wait for the budget",
        stating: |item| {
            item.disruption_budgets.iter().filter(|disruption_budget| disruption_budget.always_allow_unhealthy).count()
        },
    },
    Since {
        since: KubernetesBehaviour::HpaContainerMetrics,
        kinds: AUTOSCALERS,
        field: "a metric of the type ContainerResource",
        otherwise: "rejects (simulated anyway)",
        stating: |item| item.autoscalers.iter().filter(|autoscaler| has_container_metrics(autoscaler)).count(),
    },
];

fn has_tolerance(pod_autoscaler: &HorizontalPodAutoscaler) -> bool {
    let behavior = pod_autoscaler.behavior.as_ref();
    behavior.is_some_and(|behavior| behavior.scale_up.tolerance.is_some() || behavior.scale_down.tolerance.is_some())
}

fn has_container_metrics(pod_autoscaler: &HorizontalPodAutoscaler) -> bool {
    pod_autoscaler.metrics.iter().any(|metric| matches!(metric.source, MetricSource::ContainerResource { .. }))
}

fn takes_several(stateful_set: &StatefulSet) -> bool {
    matches!(stateful_set.update, StatefulUpdate::Rolling { max_unavailable, .. } if max_unavailable != IntOrPercent::Count(1))
}

/// What Jobs do, whoever makes them.
fn jobs(manifests: &Manifests) -> impl Iterator<Item = &JobSpec> {
    let by_themselves = manifests.jobs.iter().map(|job| &job.spec);
    let of_cron_jobs = manifests.cron_jobs.iter().map(|cron_job| &cron_job.job);
    by_themselves.chain(of_cron_jobs).chain(manifests.scaled_jobs.iter().map(|scaled_job| &scaled_job.job))
}

/// Takes out of what is applied in `step` what this release drops.
///
/// What the release's own controllers pass over is left to them.
pub(super) fn take_out(step: &mut Step, release: KubernetesVersion) {
    if !release.has(KubernetesBehaviour::ResourceClaims) {
        drop_claims(&mut step.action);
    }
    match &mut step.action {
        Action::RunJob(job) => job.spec.drop_unknown(release),
        Action::ScaleJobs(plan) => plan.job.job.drop_unknown(release),
        Action::RunCronJob(cron) => {
            cron.job.drop_unknown(release);
            if !release.has(KubernetesBehaviour::CronJobTimeZone) {
                cron.time_zone = None;
            }
        }
        Action::ApplyBudget(budget) => budget.drop_unknown(release),
        Action::DeployStateful(set) => {
            if !release.has(KubernetesBehaviour::StatefulSetClaimRetention) {
                (set.keeps_claims, set.leaves_claims) = (true, true);
            }
            if !release.has(KubernetesBehaviour::StatefulSetOrdinals) {
                set.first_ordinal = 0;
            }
        }
        _ => {}
    }
}

/// Takes resource claims out of the pod template of what is applied.
fn drop_claims(action: &mut Action) {
    let template = match action {
        Action::Deploy(deployment) => &mut deployment.template,
        Action::DeployStateful(set) => &mut set.template,
        Action::RunDaemon(daemon) => &mut daemon.template,
        Action::RunJob(job) => &mut job.spec.template,
        Action::RunCronJob(cron) => &mut cron.job.template,
        Action::ScaleJobs(plan) => &mut plan.job.job.template,
        Action::RunPod(pod) => {
            pod.spec.resource_claims = false;
            return;
        }
        _ => return,
    };
    if template.resource_claims {
        let as_written = template.as_written.as_ref().map(|written| Arc::new(without_claims(written)));
        *template = Arc::new(PodSpec { as_written, ..without_claims(template) });
    }
}

fn without_claims(spec: &PodSpec) -> PodSpec {
    PodSpec { resource_claims: false, ..spec.clone() }
}

/// Warns of such fields, and of Jobs that another controller than Kubernetes' own manages.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    let release = setup.policy.versions.kubernetes;
    let count = |stating: fn(&Manifests) -> usize| -> u64 {
        parts(setup.scenario, &setup.policy.manifests).map(stating).sum::<usize>() as u64
    };
    for field in FIELDS.iter().filter(|field| !release.has(field.since)) {
        let stating = count(field.stating);
        if stating > 0 {
            warnings.add(
                &setup::FIELD_OF_LATER_RELEASE,
                format!(
                    "{} {}, which the Kubernetes {release} API server {} unless the feature gate is on. Set `versions: {{ kubernetes: \"1.{}\" \
                     }}` to use it",
                    counted(stating, field.kinds[0], field.kinds[1]),
                    field.field,
                    field.otherwise,
                    field.since.since()
                ),
            );
        }
    }
    let restarts = KubernetesBehaviour::CrashLoopBackOffMax;
    if setup.scenario.max_container_restart_period.is_some() && !release.has(restarts) {
        warnings.add(
            &setup::FIELD_OF_LATER_RELEASE,
            format!(
                "`cluster.max_container_restart_period` has no effect with kubelets of Kubernetes {release}: they wait up to 300 s. Set \
                 `versions: {{ kubernetes: \"1.{}\" }}` to use it",
                restarts.since()
            ),
        );
    }
    warn_of_claims(setup, warnings);
    warn_of_managed(setup, warnings);
}

fn warn_of_claims(setup: &Setup<'_>, warnings: &mut Caveats) {
    if !setup.policy.versions.kubernetes.has(KubernetesBehaviour::ResourceClaims) {
        return;
    }
    let pods = pods(setup.scenario, &setup.policy.manifests);
    let claiming = pods.iter().filter(|(_, spec)| spec.resource_claims).count() as u64;
    if claiming > 0 {
        warnings.add(&setup::RESOURCE_CLAIMS, format!(
            "{} `resourceClaims`. No ResourceSlice is read, so no node has devices and these pods stay Pending;{} where a driver \
             publishes devices, the real waits are shorter and the real cost is higher",
            counted(claiming, "pod template states", "pod templates state"),
            karpenter_on_claims(setup.policy)
        ));
    }
}

/// What Karpenter does with pods that claim devices, as part of a sentence.
fn karpenter_on_claims(policy: &PolicyVariant) -> &'static str {
    match policy.autoscaler.is_karpenter() {
        false => "",
        true if Behaviour::for_release(policy.versions.karpenter).refuses_device_claims => {
            " Karpenter ignores them, too, as with its default `IGNORE_DRA_REQUESTS=true`, and launches no node for them;"
        }
        true => " this Karpenter release does not read claims, and launches nodes that these pods cannot use;",
    }
}

fn warn_of_managed(setup: &Setup<'_>, warnings: &mut Caveats) {
    let release = setup.policy.versions.kubernetes;
    let parts = parts(setup.scenario, &setup.policy.manifests);
    let managed = |part: &Manifests| {
        let of_cron_jobs = part.cron_jobs.iter().map(|cron_job| &cron_job.job);
        let all = part.jobs.iter().map(|job| &job.spec).chain(of_cron_jobs);
        all.filter(|spec| spec.is_managed_elsewhere(release)).count()
    };
    let managed = parts.map(managed).sum::<usize>() as u64;
    if managed > 0 {
        warnings.add(&setup::JOB_MANAGED_BY, format!(
            "{} `managedBy` set to an external controller, which is not simulated: no pods are created and the Jobs never finish. Remove the \
             field to use the built-in Job controller",
            counted(managed, "Job or CronJob has", "Jobs or CronJobs have")
        ));
    }
}

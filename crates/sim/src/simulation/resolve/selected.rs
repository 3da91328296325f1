//! Autoscalers that look at more pods than their targets have made: their manifests mean something else than they seem to.

use std::collections::{BTreeMap, BTreeSet};

use crate::actors::{Action, Setup};
use crate::domain::words::some_of;
use crate::domain::workload::ObjectName;
use crate::domain::{HorizontalPodAutoscaler, KubernetesBehaviour, LabelSelector, Labels};
use nodecast_settings::Caveats;
use nodecast_settings::lints::setup;

/// Pods that something of a run makes: of what kind and name it is, and the labels that they have.
type Maker<'s> = (&'static str, ObjectName, &'s Labels);

/// Says of which pods of others autoscalers look at as if they were their targets', and which of them therefore do not scale.
///
/// Source: Kubernetes 1.36.2 `pkg/controller/podautoscaler/horizontal.go`, `validateAndParseSelector`.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    let (selectors, makers) = (selectors(setup), makers(setup));
    let autoscalers: Vec<&HorizontalPodAutoscaler> =
        setup.timeline.iter().filter_map(|step| horizontal_autoscaler(&step.action)).collect();
    let target = |pod_autoscaler: &HorizontalPodAutoscaler| ObjectName {
        namespace: pod_autoscaler.namespace,
        name: pod_autoscaler.target.name,
    };
    for autoscaler in &autoscalers {
        let Some(selector) = selectors.get(&target(autoscaler)) else { continue };
        let takes = |(_, name, labels): &&Maker<'_>| {
            name.namespace == autoscaler.namespace && *name != target(autoscaler) && selector.matches(labels)
        };
        let taken: Vec<&Maker<'_>> = makers.iter().filter(takes).collect();
        if taken.is_empty() {
            continue;
        }
        let names: BTreeSet<String> = taken.iter().map(|(kind, name, _)| format!("{kind} {name}")).collect();
        let rival = |other: &&&HorizontalPodAutoscaler| {
            taken.iter().any(|(_, name, _)| *name == target(other)) && target(other) != target(autoscaler)
        };
        let then = match autoscalers.iter().find(rival) {
            Some(other) if setup.policy.versions.kubernetes.has(KubernetesBehaviour::HpaAmbiguousSelector) => format!(
                "and as HorizontalPodAutoscaler {}/{} looks at some of them as well, neither scales (AmbiguousSelector)",
                other.namespace, other.name
            ),
            _ => "and goes by their use and requests as by its target's".to_owned(),
        };
        warnings.add(&setup::SHARED_SELECTOR, format!(
            "HorizontalPodAutoscaler {}/{} looks at the pods of {}, too, which the selector of its target takes, {then}: give the target's \
             selector a label that no others have",
            autoscaler.namespace,
            autoscaler.name,
            some_of(&names.into_iter().collect::<Vec<_>>())
        ));
    }
}

fn horizontal_autoscaler(action: &Action) -> Option<&HorizontalPodAutoscaler> {
    match action {
        Action::Autoscale(spec) => Some(spec),
        Action::ScaleObject(plan) => plan.autoscaler.as_ref(),
        _ => None,
    }
}

/// By name the selectors of what has a scale.
fn selectors<'s>(setup: &'s Setup<'_>) -> BTreeMap<ObjectName, &'s LabelSelector> {
    let selector = |action: &'s Action| match action {
        Action::Deploy(deploy) => Some((deploy.name, &deploy.selector)),
        Action::DeployStateful(deploy_stateful) => Some((deploy_stateful.name, &deploy_stateful.selector)),
        _ => None,
    };
    setup.timeline.iter().filter_map(|step| selector(&step.action)).collect()
}

fn makers<'s>(setup: &'s Setup<'_>) -> Vec<Maker<'s>> {
    let maker = |action: &'s Action| match action {
        Action::Deploy(deploy) => Some(("Deployment", deploy.name, &deploy.template.labels)),
        Action::DeployStateful(deploy_stateful) => {
            Some(("StatefulSet", deploy_stateful.name, &deploy_stateful.template.labels))
        }
        Action::RunJob(run_job) => Some(("Job", run_job.name, &run_job.spec.template.labels)),
        Action::RunCronJob(run_cron_job) => Some(("CronJob", run_cron_job.name, &run_cron_job.job.template.labels)),
        Action::RunDaemon(run_daemon) => Some(("DaemonSet", run_daemon.name, &run_daemon.template.labels)),
        Action::RunPod(run_pod) => Some(("Pod", run_pod.name, &run_pod.spec.labels)),
        _ => None,
    };
    setup.timeline.iter().filter_map(|step| maker(&step.action)).collect()
}

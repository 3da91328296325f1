//! Warnings about VerticalPodAutoscalers: those that find nothing to go by, and those that meet a HorizontalPodAutoscaler.

use crate::actors::{Action, PodUsageModel, Setup};
use crate::domain::hpa::{MetricSource, MetricTarget};
use crate::domain::vertical::{ContainerPolicy, UpdateMode};
use crate::domain::workload::ObjectName;
use crate::domain::{
    HorizontalPodAutoscaler, KubernetesBehaviour, PodSpec, ResourceName, Symbol, VerticalPodAutoscaler,
};
use nodecast_replicas::hpa::effective_metrics;
use nodecast_settings::Caveats;
use nodecast_settings::lints::setup;

/// What to do where it is not known what containers use.
const ADVICE: &str = "add it under `usage`";
/// Where the use of pods settles in percent of what the Vertical Pod Autoscaler has them request, if it is even: it adds 15 % to the upper
/// edge of a bucket that is up to 5 % wide.
const SETTLES: (i32, i32) = (83, 87);

/// Warns of every VerticalPodAutoscaler that there is at some time.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    let mut told = Caveats::new();
    for step in &setup.timeline {
        if let Action::AutoscaleVertically(vpa) = &step.action {
            about_target(setup, vpa, &mut told);
            about_mode(setup, vpa, &mut told);
            about_replicas(setup, vpa, &mut told);
        }
    }
    warnings.extend(told);
}

fn target(vpa: &VerticalPodAutoscaler) -> ObjectName {
    ObjectName { namespace: vpa.name.namespace, name: vpa.target.name }
}

/// Whether it is for an object that is applied, of which it is known what it uses.
fn about_target(setup: &Setup<'_>, vpa: &VerticalPodAutoscaler, told: &mut Caveats) {
    let (name, target) = (vpa.name, target(vpa));
    let applied = |action: &Action| match (action, vpa.target.kind.as_str()) {
        (Action::Deploy(action), "Deployment") => action.name == target,
        (Action::DeployStateful(action), "StatefulSet") => action.name == target,
        (Action::RunDaemon(action), "DaemonSet") => action.name == target,
        (Action::RunJob(action), "Job") => action.name == target,
        (Action::RunCronJob(action), "CronJob") => action.name == target,
        _ => false,
    };
    if !setup.timeline.iter().any(|step| applied(&step.action)) {
        told.add(
            &setup::VPA_WITHOUT_TARGET,
            format!(
                "VerticalPodAutoscaler {name} has no target: {} {} does not exist",
                vpa.target.kind, vpa.target.name
            ),
        );
        return;
    }
    let stated = PodUsageModel::new(setup, target);
    match stated.of_any() {
        (true, true) => {}
        (false, false) => told.add(&setup::VPA_WITHOUT_USAGE, format!(
            "VerticalPodAutoscaler {name} makes no recommendation: the scenario has no usage for the pods of {target}; {ADVICE}"
        )),
        (cpu, _) => {
            let unknown = if cpu { "memory" } else { "CPU" };
            told.add(&setup::VPA_WITHOUT_USAGE, format!(
                "VerticalPodAutoscaler {name} recommends no {unknown}: nothing says how much of it the pods of {target} use; {ADVICE}"
            ));
        }
    }
    about_containers(setup, vpa, &stated, told);
}

/// The containers for which it recommends nothing of a resource of which it does for others of the same pods.
fn about_containers(setup: &Setup<'_>, vpa: &VerticalPodAutoscaler, stated: &PodUsageModel, told: &mut Caveats) {
    let (name, target) = (vpa.name, target(vpa));
    let of_any = stated.of_any();
    let kinds = [((true, true), "nothing"), ((true, false), "no CPU"), ((false, true), "no memory")];
    let mut left: [Vec<Symbol>; 3] = Default::default();
    for template in templates(setup, vpa) {
        for container in template.containers.iter().map(|container| Symbol::new(&container.name)) {
            let known = stated.of_container(template, container);
            let policy = vpa.policy_of(container);
            let wants = |resource| policy.is_none_or(|policy| !policy.off && policy.controls(resource));
            let lacks =
                (of_any.0 && !known.0 && wants(ResourceName::CPU), of_any.1 && !known.1 && wants(ResourceName::MEMORY));
            let kind = kinds.iter().position(|(key, _)| *key == lacks);
            if let Some(containers) = kind.and_then(|kind| left.get_mut(kind))
                && !containers.contains(&container)
            {
                containers.push(container);
            }
        }
    }
    for ((_, what), containers) in kinds.iter().zip(left).filter(|(_, containers)| !containers.is_empty()) {
        let (noun, they, keep) = if containers.len() == 1 {
            ("container", "it uses", "keeps what it requests")
        } else {
            ("containers", "they use", "keep what they request")
        };
        let names: Vec<String> = containers.iter().map(|container| format!("`{container}`")).collect();
        told.add(&setup::VPA_WITHOUT_USAGE, format!(
            "VerticalPodAutoscaler {name} recommends {what} for the {noun} {} of {target}, which {keep}: neither `load` nor `usage` says what {they}; {ADVICE}",
            names.join(", ")
        ));
    }
}

/// The templates that the target has during the run.
fn templates<'s>(setup: &'s Setup<'_>, vpa: &VerticalPodAutoscaler) -> Vec<&'s PodSpec> {
    let target = target(vpa);
    let topology_state = setup.timeline.iter().filter_map(|step| match (&step.action, vpa.target.kind.as_str()) {
        (Action::Deploy(action), "Deployment") if action.name == target => Some(&*action.template),
        (Action::DeployStateful(action), "StatefulSet") if action.name == target => Some(&*action.template),
        _ => None,
    });
    topology_state.collect()
}

fn about_mode(setup: &Setup<'_>, vpa: &VerticalPodAutoscaler, told: &mut Caveats) {
    let name = vpa.name;
    let kubernetes = setup.policy.versions.kubernetes;
    let updater = &setup.policy.vertical.updater;
    match vpa.update.mode {
        Some(UpdateMode::InPlaceOrRecreate) if !kubernetes.has(KubernetesBehaviour::PodResize) => told.add(&setup::VPA_NO_RESIZE, format!(
            "VerticalPodAutoscaler {name}: Kubernetes {kubernetes} resizes no running pods (1.{} does), so its pods are evicted",
            KubernetesBehaviour::PodResize.since()
        )),
        Some(UpdateMode::InPlace) if !(updater.in_place && updater.behaviour.knows_in_place) => told.add(&setup::VPA_NO_RESIZE, format!(
            "VerticalPodAutoscaler {name}: the mode InPlace is behind a feature gate that is off by default, so running pods stay as they are"
        )),
        Some(UpdateMode::InPlaceOrRecreate)
            if !updater.behaviour.in_place_or_recreate.is_on(updater.in_place_or_recreate) =>
        {
            told.add(&setup::VPA_NO_RESIZE, format!(
                "VerticalPodAutoscaler {name}: the Vertical Pod Autoscaler {} does not resize running pods as it is started, so its pods are evicted",
                setup.policy.versions.vertical
            ));
        }
        _ => {}
    }
    if !vpa.recommenders.is_empty() && vpa.recommenders.iter().all(|recommender| recommender.as_str() != "default") {
        told.add(&setup::VPA_RECOMMENDER, format!(
            "VerticalPodAutoscaler {name}: its recommender `{}` is not simulated, so what its status recommends stays",
            vpa.recommenders[0]
        ));
    }
}

/// Whether it controls a resource of some container.
pub(super) fn controls(vpa: &VerticalPodAutoscaler, resource: ResourceName) -> bool {
    let of_all = vpa.containers.iter().find(|container| container.container.as_str() == ContainerPolicy::ALL_OTHERS);
    let matches = |policy: &ContainerPolicy| !policy.off && policy.controls(resource);
    of_all.is_none_or(matches) || vpa.containers.iter().any(matches)
}

/// What follows where a HorizontalPodAutoscaler goes by a resource that this changes the requests of.
fn about_replicas(setup: &Setup<'_>, vpa: &VerticalPodAutoscaler, told: &mut Caveats) {
    let mode = vpa.update.mode.unwrap_or(UpdateMode::Recreate);
    if mode == UpdateMode::Off {
        return;
    }
    let autoscalers = setup.timeline.iter().filter_map(|step| match &step.action {
        Action::Autoscale(spec) => Some(spec),
        Action::ScaleObject(plan) => plan.autoscaler.as_ref(),
        _ => None,
    });
    let of_target = |hpa: &&HorizontalPodAutoscaler| {
        ObjectName { namespace: hpa.namespace, name: hpa.target.name } == target(vpa)
            && hpa.target.kind == vpa.target.kind
    };
    for hpa in autoscalers.filter(of_target) {
        for metric in effective_metrics(hpa) {
            let (MetricSource::Resource { name } | MetricSource::ContainerResource { name, .. }) = &metric.source
            else {
                continue;
            };
            if let (MetricTarget::Utilization(percent), true) = (&metric.target, controls(vpa, *name)) {
                told.add(&setup::VPA_AND_HPA, both(vpa, hpa, *name, *percent));
            }
        }
    }
}

fn both(vpa: &VerticalPodAutoscaler, hpa: &HorizontalPodAutoscaler, resource: ResourceName, percent: i32) -> String {
    let (low, high) = SETTLES;
    let follows = match percent {
        _ if percent < low => {
            format!("which is above the target of {percent}%, so that replicas drift to the maximum")
        }
        _ if percent > high => {
            format!("which is below the target of {percent}%, so that replicas drift to the minimum")
        }
        _ => format!("which is about the target of {percent}%, so that replicas hardly follow the load"),
    };
    format!(
        "HorizontalPodAutoscaler {}/{} and VerticalPodAutoscaler {} both go by the {} of {}: requests follow use, so that in even load {low} to {high}% of them are used, {follows}",
        hpa.namespace,
        hpa.name,
        vpa.name,
        resource.0,
        target(vpa)
    )
}

//! Which container of a pod does the work of a load, where that is not plain.

use crate::actors::{Action, Setup};
use crate::domain::{Container, PodSpec, ResourceName};
use nodecast_settings::Caveats;
use nodecast_settings::lints::setup;

/// Warns of loads on pods several of whose containers may do the work, with CPU limits that differ: one of them is taken to do it all.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    for load in &setup.loads {
        let mut templates = setup.timeline.iter().filter_map(|step| match &step.action {
            Action::Deploy(deploy) if deploy.name == load.workload => Some(&*deploy.template),
            Action::DeployStateful(deploy_stateful) if deploy_stateful.name == load.workload => {
                Some(&*deploy_stateful.template)
            }
            _ => None,
        });
        let Some(template) = templates.find(|template| is_open(template)) else { continue };
        let Some(worker) = template.working_container() else { continue };
        warnings.add(&setup::CPU_LIMITS_DIFFER, format!(
            "load on {}: the containers of its pods have CPU limits that differ ({}): `{}` is taken to do the work, and its limit throttles it; the \
             annotation `kubectl.kubernetes.io/default-container` of the template says which does",
            load.workload,
            limits(template),
            worker.name
        ));
    }
}

/// Whether more than one container may do the work, and it matters which.
fn is_open(template: &PodSpec) -> bool {
    let mut all = template.possible_workers().map(cpu_limit);
    let first = all.next();
    template.named_worker().is_none() && all.any(|item| Some(item) != first)
}

fn cpu_limit(container: &Container) -> Option<i64> {
    container.limits.find(ResourceName::CPU).filter(|limit| *limit > 0)
}

fn limits(template: &PodSpec) -> String {
    let told = |container: &Container| {
        let limit = cpu_limit(container).map_or_else(|| "none".to_owned(), |limit| ResourceName::CPU.format(limit));
        format!("`{}` {limit}", container.name)
    };
    template.possible_workers().map(told).collect::<Vec<_>>().join(", ")
}

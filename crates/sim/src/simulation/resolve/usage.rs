//! What pods use beside requests: the curves that one seed meets.

use super::demand;
use crate::actors::{Action, Setup, UsagePlan};
use crate::domain::{PodSpec, SimTime, Symbol};
use crate::engine::Streams;
use nodecast_settings::OpenRequests;
use nodecast_settings::lints::setup;
use nodecast_settings::{Caveats, Scenario};

/// Millionths of a CPU.
const MICRO: f64 = 1e6;
const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// What the scenario states, in its order.
pub(super) fn plans(scenario: &Scenario, streams: Streams) -> Vec<UsagePlan> {
    let plan = |(ordinal, spec): (usize, &nodecast_settings::UsageSpec)| {
        let steps = |curve: &Option<OpenRequests>, what: &str, unit: f64| -> Vec<(SimTime, i64)> {
            let Some(open) = curve else { return Vec::new() };
            let entity = format!("{what} of {} {ordinal}", spec.workload);
            let curve = demand(open, scenario.duration, streams, &entity);
            let end = SimTime::ZERO + scenario.duration;
            let steps = curve.steps_from_start().map(|step| (SimTime::ZERO + step.from, step.rate));
            let within = steps.take_while(|(at, _)| *at < end);
            within.map(|(at, amount)| (at, libm::round(amount * unit) as i64)).collect()
        };
        UsagePlan {
            workload: spec.workload,
            container: spec.container,
            of_workload: spec.of_workload,
            cpu: steps(&spec.cpu, "cpu", MICRO),
            memory: steps(&spec.memory, "memory", MEBIBYTE),
            start_up: spec.start_up.map(|start_up| (libm::round(start_up.cpu * MICRO) as i64, start_up.length)),
        }
    };
    scenario.usage.iter().enumerate().map(plan).collect()
}

/// Warns of usage of containers that no pod has.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    for usage in &setup.usages {
        let Some(container) = usage.container else { continue };
        let templates = setup.timeline.iter().filter_map(|step| match &step.action {
            Action::Deploy(deploy) if deploy.name == usage.workload => Some(&*deploy.template),
            Action::DeployStateful(deploy_stateful) if deploy_stateful.name == usage.workload => {
                Some(&*deploy_stateful.template)
            }
            _ => None,
        });
        let templates: Vec<&PodSpec> = templates.collect();
        let has = |spec: &&PodSpec| spec.has_container(container.as_str());
        if !templates.is_empty() && !templates.iter().any(has) {
            warnings.add(&setup::USAGE_CONTAINER, format!(
                "usage of {}: its pods have no container `{container}` (they have {}); its usage is split among all of them",
                usage.workload,
                names(templates[0])
            ));
        }
    }
}

fn names(spec: &PodSpec) -> String {
    let names = spec.containers.iter().map(|container| Symbol::new(&container.name));
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

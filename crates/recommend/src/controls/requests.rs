//! What containers request, of the workloads that cost most: a slider for CPU and one for memory.

use super::{Basis, Control, Effect, Form, Stop};
use crate::domain::{Container, PodSpec, ResourceName, Resources};
use crate::presentation::rightsizing::quantity;
use crate::recommendation::{Level, dearest};
use crate::rightsizing::{Owner, Patch, with_request};

/// Workloads whose requests can be moved, those that cost most.
const WORKLOADS_MAX: usize = 8;
/// Thousandths of a core from ten to a hundred, and ten times that, and so on.
const CPU_STEPS: [i64; 10] = [10, 12, 15, 20, 25, 30, 40, 50, 60, 75];
/// Quarters of a power of two, of memory.
const MEMORY_STEPS: [i64; 4] = [4, 5, 6, 7];
const MIB: i64 = 1 << 20;
/// From a quarter of what is requested today to four times that.
const FACTOR_MAX: i64 = 4;

/// Controls of the requests of the dearest workloads: a node's price goes to its pods by what they request, so these are the
/// workloads whose requests, times their replicas, cost most.
pub(super) fn requests(basis: &Basis<'_>) -> Vec<Control> {
    let manifests = &basis.policy.manifests;
    let deployments =
        manifests.deployments.iter().map(|deployment| (("Deployment", deployment.name), &*deployment.template));
    let sets = manifests
        .stateful_sets
        .iter()
        .map(|stateful_set| (("StatefulSet", stateful_set.name), &*stateful_set.template));
    let daemons =
        manifests.daemon_sets.iter().map(|daemon_set| (("DaemonSet", daemon_set.name), &*daemon_set.template));
    let all: Vec<(Owner, &PodSpec)> = deployments.chain(sets).chain(daemons).collect();
    let names: Vec<String> = all.iter().map(|((_, name), _)| name.to_string()).collect();
    let chosen = dearest(names.iter().map(String::as_str), basis.by_workload, WORKLOADS_MAX);
    // The dearest first.
    let of_name = |name: &str| all.iter().zip(&names).find(|(_, item)| *item == name).map(|(item, _)| item);
    let of_workload = |(owner, template): &(Owner, &PodSpec)| {
        [ResourceName::CPU, ResourceName::MEMORY].map(|resource| control(*owner, template, resource))
    };
    chosen.into_iter().filter_map(of_name).flat_map(of_workload).flatten().collect()
}

/// The slider of the container that requests most of a resource; nothing where none requests any.
fn control(owner: Owner, template: &PodSpec, resource: ResourceName) -> Option<Control> {
    let requested = |container: &Container| container.effective_requests().get(resource);
    // Of equals the first.
    let container = template.containers.iter().rev().max_by_key(|container| requested(container))?;
    let today = requested(container);
    if today <= 0 {
        return None;
    }
    let (kind, name) = owner;
    let (word, called) = if resource == ResourceName::CPU { ("cpu", "CPU") } else { ("memory", "memory") };
    let stop = |amount: i64| {
        let patch: Patch = with_request(owner, container, resource, amount);
        Stop {
            value: quantity(&Resources::new().with(resource, amount), resource, amount).replace('"', ""),
            label: label(resource, amount),
            effect: Effect::of_level(Level { sets: patch.setting(), ..Level::default() }),
        }
    };
    let stops: Vec<Stop> = amounts(resource, today).into_iter().map(stop).collect();
    let of = if template.containers.len() > 1 { format!(" of {}", container.name) } else { String::new() };
    let has_limit = container.limits.get(resource) > 0;
    Some(Control {
        id: format!("requests-{word}.{kind}-{name}"),
        group: format!("{kind} {name}"),
        label: format!("{called} request{of}"),
        form: Form::Slider,
        circumstance: false,
        today: quantity(&Resources::new().with(resource, today), resource, today).replace('"', ""),
        stops,
        note: has_limit.then(|| format!("the {called} limit goes with it, in today's proportion")),
        chips: None,
    })
}

/// Amounts that people write, about today's, which is among them.
fn amounts(resource: ResourceName, today: i64) -> Vec<i64> {
    let (least, most) = (today / FACTOR_MAX, today.saturating_mul(FACTOR_MAX));
    let mut all = vec![today];
    if resource == ResourceName::CPU {
        let mut scale = 1_i64;
        while scale <= most / CPU_STEPS[0] {
            all.extend(CPU_STEPS.iter().map(|step| step * scale));
            scale *= 10;
        }
    } else {
        let mut scale = MIB;
        while scale <= most / MEMORY_STEPS[0] {
            all.extend(MEMORY_STEPS.iter().map(|step| step * scale));
            scale *= 2;
        }
    }
    all.retain(|amount| *amount >= least.max(1) && *amount <= most);
    all.sort_unstable();
    all.dedup();
    all
}

/// An amount for people: `0.25 cores`, `512 MiB`, `1.5 GiB`.
fn label(resource: ResourceName, amount: i64) -> String {
    if resource == ResourceName::CPU {
        let cores = amount as f64 / 1e3;
        return format!("{cores} {}", if amount == 1_000 { "core" } else { "cores" });
    }
    let rounded = |size: f64| libm::round(size * 100.0) / 100.0;
    match amount {
        _ if amount >= 1_024 * MIB => format!("{} GiB", rounded(amount as f64 / (1_024 * MIB) as f64)),
        _ => format!("{} MiB", rounded(amount as f64 / MIB as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::{amounts, control, label};
    use crate::domain::workload::ObjectName;
    use crate::domain::{Container, PodSpec, ResourceName, Resources, Symbol};

    #[test]
    fn amounts_are_about_todays_and_have_units() {
        let cpu = amounts(ResourceName::CPU, 250);
        assert_eq!((cpu.first(), cpu.last()), (Some(&75), Some(&1_000)));
        assert!(cpu.contains(&250) && cpu.is_sorted());
        // What nobody would write is there where it is today's.
        assert!(amounts(ResourceName::CPU, 333).contains(&333));
        let memory = amounts(ResourceName::MEMORY, 512 << 20);
        assert_eq!((memory.first(), memory.last()), (Some(&(128 << 20)), Some(&(2_048 << 20))));
        let labels = [(ResourceName::CPU, 250), (ResourceName::CPU, 1_000), (ResourceName::MEMORY, 1_536 << 20)];
        assert_eq!(labels.map(|(item, amount)| label(item, amount)), ["0.25 cores", "1 core", "1.5 GiB"]);
    }

    #[test]
    fn largest_request_scales_with_its_limit() {
        let container = |name: &str, cpu: i64, limit: i64| Container {
            name: name.to_owned(),
            requests: Resources::cpu_memory(cpu, 0),
            limits: if limit > 0 { Resources::new().with(ResourceName::CPU, limit) } else { Resources::new() },
            ..Container::default()
        };
        let template = PodSpec {
            containers: vec![container("proxy", 100, 0), container("web", 500, 1_000)],
            ..PodSpec::default()
        };
        let owner = ("Deployment", ObjectName { namespace: Symbol::new("default"), name: Symbol::new("web") });
        let Some(this_control) = control(owner, &template, ResourceName::CPU) else {
            panic!("a container requests CPU")
        };
        assert_eq!((this_control.label.as_str(), this_control.today.as_str()), ("CPU request of web", "500m"));
        let Some(stop) = this_control.stops.iter().find(|stop| stop.value == "250m") else { panic!("half of today's") };
        let place = format!("Deployment[{}].spec.template.spec.containers[web].resources", owner.1);
        let expected = [(format!("{place}.requests.cpu"), "250m"), (format!("{place}.limits.cpu"), "500m")];
        assert_eq!(stop.effect.level.sets, expected.map(|(path, value)| (path, value.to_owned())));
        // Nothing is requested of memory.
        assert_eq!(control(owner, &template, ResourceName::MEMORY), None);
    }
}

//! Of which containers the setup says what they use.

use smallvec::SmallVec;

use crate::actors::setup::{Setup, UsagePlan};
use crate::domain::workload::ObjectName;
use crate::domain::{PodSpec, Symbol};

/// What is said of the use of a resource by the pods of a workload.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct UsageModel {
    /// Whether something is said of the pods as a whole, which all their containers share.
    whole: bool,
    /// The containers of which something is said by name.
    named: SmallVec<[Symbol; 2]>,
}

impl UsageModel {
    fn new<'p>(whole: bool, plans: impl Iterator<Item = &'p UsagePlan>) -> Self {
        let mut usage_model = Self { whole, named: SmallVec::new() };
        for plan in plans {
            match plan.container {
                Some(name) => usage_model.named.push(name),
                None => usage_model.whole = true,
            }
        }
        usage_model
    }

    fn says_something(&self) -> bool {
        self.whole || !self.named.is_empty()
    }

    /// Whether something is said of a container of such pods. What is stated of a container that they do not have is divided among all;
    /// what is stated of a sidecar is its own.
    fn says_of(&self, spec: &PodSpec, container: Symbol) -> bool {
        let has = |name: &Symbol| spec.has_container(name.as_str());
        self.whole || self.named.iter().any(|name| *name == container || !has(name))
    }
}

/// Of which containers of a workload's pods it is known how much CPU and how much memory they use.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PodUsageModel {
    cpu: UsageModel,
    memory: UsageModel,
}

impl PodUsageModel {
    /// What the setup says of a workload.
    pub fn new(setup: &Setup<'_>, workload: ObjectName) -> Self {
        let loads = || setup.loads.iter().filter(|plan| plan.workload == workload);
        let usages = || setup.usages.iter().filter(|plan| plan.workload == workload);
        let queues = setup.queues.iter().any(|queue| queue.spec.workload == workload);
        let for_requests = loads().flat_map(|plan| &plan.parts).any(|part| part.service.memory.is_some());
        Self {
            cpu: UsageModel::new(loads().next().is_some() || queues, usages().filter(|plan| !plan.cpu.is_empty())),
            memory: UsageModel::new(for_requests, usages().filter(|plan| !plan.memory.is_empty())),
        }
    }

    /// Whether CPU and memory are known of any container.
    pub fn of_any(&self) -> (bool, bool) {
        (self.cpu.says_something(), self.memory.says_something())
    }

    /// Whether CPU and memory are known of a container of pods with this specification.
    pub fn of_container(&self, spec: &PodSpec, container: Symbol) -> (bool, bool) {
        (self.cpu.says_of(spec, container), self.memory.says_of(spec, container))
    }
}

#[cfg(test)]
mod tests {
    use super::UsageModel;
    use crate::domain::pod::InitContainer;
    use crate::domain::{Container, PodSpec, Symbol};

    #[test]
    fn container_usage_applies_only_to_named_container() {
        let [a, b] = ["a", "b"].map(Symbol::new);
        let container = |name: Symbol| Container { name: name.to_string(), ..Container::default() };
        let spec = PodSpec { containers: vec![container(a), container(b)], ..PodSpec::default() };
        let said = |usage_model: &UsageModel| [a, b].map(|name| usage_model.says_of(&spec, name));
        assert_eq!(said(&UsageModel::default()), [false, false]);
        assert_eq!(said(&UsageModel { whole: false, named: [a].into_iter().collect() }), [true, false]);
        assert_eq!(said(&UsageModel { whole: true, named: [a].into_iter().collect() }), [true, true]);
        let elsewhere = UsageModel { whole: false, named: [Symbol::new("c")].into_iter().collect() };
        assert_eq!(said(&elsewhere), [true, true], "it is divided among all of them");
        let sidecar = InitContainer { container: container(Symbol::new("c")), sidecar: true };
        let meshed = PodSpec { init_containers: vec![sidecar], ..spec.clone() };
        assert_eq!([a, b].map(|name| elsewhere.says_of(&meshed, name)), [false, false], "a sidecar's use is its own");
    }
}

//! What the limits of a pod come to, and which of its containers does its work.

use super::{Container, PodSpec, ResourceName, Resources, well_known};

/// Containers that stand before or beside the one that does the work, by the names under which they are injected or usually written.
const PROXIES: [&str; 10] = [
    "istio-proxy",
    "linkerd-proxy",
    "envoy",
    "consul-dataplane",
    "kuma-sidecar",
    "daprd",
    "queue-proxy",
    "cloud-sql-proxy",
    "oauth2-proxy",
    "kube-rbac-proxy",
];

/// The smaller of two limits, either of which may not be there.
fn tighter(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
}

impl PodSpec {
    /// What quotas and LimitRanges count as the pod's limits: the larger of the running containers' sum and the init containers' peak;
    /// pod-level limits replace it for the resources they name, and overhead comes on top of what is limited. A container without a limit
    /// adds nothing.
    ///
    /// Source: Kubernetes 1.36 `k8s.io/component-helpers/resource`, `PodLimits`.
    pub fn limits(&self) -> Resources {
        let mut running = Resources::new();
        for container in &self.containers {
            running.add(&container.limits);
        }
        let (mut sidecars, mut init_peak) = (Resources::new(), Resources::new());
        for init in &self.init_containers {
            let mut together = init.container.limits.clone();
            if init.sidecar {
                running.add(&together);
                sidecars.add(&together);
                together = sidecars.clone();
            } else {
                together.add(&sidecars);
            }
            init_peak.raise_to(&together);
        }
        running.raise_to(&init_peak);
        for (name, amount) in self.pod_limits.iter().flat_map(Resources::iter) {
            running.set(name, amount);
        }
        for (name, amount) in self.overhead.iter() {
            if let Some(item) = running.find(name).filter(|item| *item > 0) {
                running.set(name, item + amount);
            }
        }
        running
    }

    /// The CPU that the app containers can use together in thousandths: the sum of their limits if every one has one, and no more than the
    /// limit of the whole pod.
    ///
    /// Source: KEP-2837 (pod-level resources): the control group of the pod has the pod's limit, those of its containers have theirs.
    pub fn cpu_limit_milli(&self) -> Option<i64> {
        let containers = self.limit_of_containers(ResourceName::CPU).filter(|limit| *limit > 0);
        tighter(containers, self.pod_limit(ResourceName::CPU).filter(|limit| *limit > 0))
    }

    /// How much of a resource the app containers can use together: the sum of their limits if every one has one, and no more than the
    /// limit of the whole pod.
    pub fn limit(&self, resource: ResourceName) -> Option<i64> {
        tighter(self.limit_of_containers(resource), self.pod_limit(resource))
    }

    /// The same of app containers and sidecars.
    pub fn limit_with_sidecars(&self, resource: ResourceName) -> Option<i64> {
        let sidecars: Option<i64> = self.sidecars().map(|sidecar| sidecar.limits.find(resource)).sum();
        let containers = self.limit_of_containers(resource).and_then(|limit| Some(limit + sidecars?));
        tighter(containers, self.pod_limit(resource))
    }

    /// The app container that is taken to do the work of the pod: the one that the annotation `kubectl.kubernetes.io/default-container`
    /// names, else the first that is no known proxy, else the first.
    pub fn working_container(&self) -> Option<&Container> {
        let first = || self.possible_workers().next();
        self.named_worker().or_else(first).or(self.containers.first())
    }

    /// The app container that the annotation `kubectl.kubernetes.io/default-container` names.
    pub fn named_worker(&self) -> Option<&Container> {
        let name = self.annotations.get(well_known::DEFAULT_CONTAINER)?;
        self.containers.iter().find(|container| container.name == name.as_str())
    }

    /// The app containers that are no known proxies.
    pub fn possible_workers(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().filter(|container| !PROXIES.contains(&container.name.as_str()))
    }

    /// The CPU that the container which does the work can use in thousandths: its own limit, and no more than that of the whole pod.
    ///
    /// Source: Linux CFS bandwidth control, which the kubelet sets for each container by itself (Kubernetes 1.36
    /// `pkg/kubelet/kuberuntime/kuberuntime_container_linux.go`).
    pub fn working_cpu_limit_milli(&self) -> Option<i64> {
        let this_limit =
            self.working_container().and_then(|working_container| working_container.limits.find(ResourceName::CPU));
        tighter(this_limit.filter(|limit| *limit > 0), self.pod_limit(ResourceName::CPU).filter(|limit| *limit > 0))
    }

    /// The limit of the whole pod, if it states one.
    pub fn pod_limit(&self, resource: ResourceName) -> Option<i64> {
        self.pod_limits.as_ref().and_then(|limits| limits.find(resource))
    }

    fn limit_of_containers(&self, resource: ResourceName) -> Option<i64> {
        self.containers.iter().map(|container: &Container| container.limits.find(resource)).sum()
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::pod::InitContainer;
    use crate::domain::{Container, PodSpec, ResourceName, Resources, Symbol, well_known};

    fn limited(cpu_milli: i64) -> Container {
        Container { limits: Resources::new().with(ResourceName::CPU, cpu_milli), ..Container::default() }
    }

    fn cpu(amount: i64) -> Resources {
        Resources::new().with(ResourceName::CPU, amount)
    }

    #[test]
    fn pod_limit_is_max_of_init_and_sum() {
        let init = |cpu_milli, sidecar| InitContainer { container: limited(cpu_milli), sidecar };
        let mut pod = PodSpec {
            containers: vec![limited(500), Container::default()],
            init_containers: vec![init(200, true), init(100, false)],
            overhead: Resources::cpu_memory(7, 9),
            ..PodSpec::default()
        };
        assert_eq!(pod.limits(), cpu(707));
        pod.init_containers.push(init(900, false));
        assert_eq!(pod.limits(), cpu(1_107));
        pod.pod_limits = Some(cpu(300));
        assert_eq!(pod.limits(), cpu(307));
    }

    #[test]
    fn main_container_is_named_or_first_non_proxy() {
        let named = |name: &str, cpu_milli| Container { name: name.to_owned(), ..limited(cpu_milli) };
        let containers = vec![named("istio-proxy", 2_000), named("app", 500), named("log", 100)];
        let mut pod = PodSpec { containers, ..PodSpec::default() };
        assert_eq!(pod.working_cpu_limit_milli(), Some(500));
        pod.annotations.set(well_known::DEFAULT_CONTAINER, Symbol::new("log"));
        assert_eq!(pod.working_cpu_limit_milli(), Some(100));
        pod.annotations.set(well_known::DEFAULT_CONTAINER, Symbol::new("gone"));
        pod.containers[1].limits = Resources::new();
        assert_eq!(pod.working_cpu_limit_milli(), None);
        pod.pod_limits = Some(cpu(900));
        assert_eq!(pod.working_cpu_limit_milli(), Some(900));
        // A gateway is nothing else.
        pod.containers.truncate(1);
        pod.pod_limits = None;
        assert_eq!(pod.working_cpu_limit_milli(), Some(2_000));
    }

    #[test]
    fn pod_level_limit_applies_with_container_limits() {
        let mut pod = PodSpec { containers: vec![limited(500), limited(700)], ..PodSpec::default() };
        assert_eq!(pod.cpu_limit_milli(), Some(1_200));
        pod.pod_limits = Some(cpu(900));
        assert_eq!((pod.cpu_limit_milli(), pod.limit(ResourceName::CPU)), (Some(900), Some(900)));
        pod.containers[0].limits = Resources::new();
        assert_eq!((pod.cpu_limit_milli(), pod.limit(ResourceName::MEMORY)), (Some(900), None));
        pod.init_containers = vec![InitContainer { container: limited(100), sidecar: true }];
        pod.pod_limits = None;
        assert_eq!(pod.limit_with_sidecars(ResourceName::CPU), None);
        pod.containers = vec![limited(500)];
        assert_eq!(pod.limit_with_sidecars(ResourceName::CPU), Some(600));
    }
}

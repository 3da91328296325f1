//! ResourceQuotas: how much the pods and the claims of a namespace may come to.
//!
//! Source: Kubernetes 1.36 `pkg/quota/v1/evaluator/core/pods.go` and `persistent_volume_claims.go`,
//! `staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota`.

use super::workload::ObjectName;
use super::{Container, PodSpec, ResourceName, Resources, Symbol};

/// How much the pods and the claims of a namespace may come to. What it says of other objects does not matter to pods.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceQuota {
    /// Namespace and name.
    pub name: ObjectName,
    /// Pods that have not ended.
    pub pods: Option<i64>,
    /// Their requests.
    pub requests: Resources,
    /// Their limits.
    pub limits: Resources,
    /// For which pods it is; for all of them without one.
    pub scopes: Vec<QuotaScope>,
    /// How much claims may come to: of any storage class, and of some.
    pub claims: Vec<ClaimQuota>,
}

/// How much the claims of a namespace may come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClaimQuota {
    /// Those of this storage class; all without one.
    pub class: Option<Symbol>,
    /// How many.
    pub count: Option<i64>,
    /// The bytes that they ask for.
    pub bytes: Option<i64>,
}

/// What a claim comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClaimCharge {
    /// Its storage class, the default class where it states none.
    pub class: Option<Symbol>,
    /// The bytes that it asks for, 0 where that is not known.
    pub bytes: i64,
}

impl ClaimQuota {
    /// What is exceeded by one more claim where there are these.
    fn exceeded(&self, claim: ClaimCharge, there: &[ClaimCharge]) -> Option<String> {
        let is_for = |claim_charge: &ClaimCharge| self.class.is_none_or(|class| claim_charge.class == Some(class));
        if !is_for(&claim) {
            return None;
        }
        let others = || there.iter().filter(|item| is_for(item));
        let bytes = others().fold(claim.bytes, |sum, other| sum.saturating_add(other.bytes));
        let too_many = self.count.is_some_and(|most| others().count() as i64 >= most);
        let too_large = self.bytes.is_some_and(|most| claim.bytes > 0 && bytes > most);
        let what = too_many.then_some("persistentvolumeclaims").or(too_large.then_some("requests.storage"))?;
        Some(self.class.map_or_else(|| what.to_owned(), |class| format!("{class}{CLASS_SUFFIX}{what}")))
    }
}

/// What stands between the name of a storage class and what is limited of its claims.
pub const CLASS_SUFFIX: &str = ".storageclass.storage.k8s.io/";

/// Pods that a quota is for: those that all scopes take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QuotaScope {
    /// With `activeDeadlineSeconds`, which none has here, or without.
    Terminating(bool),
    /// Without a request and a limit, or with one.
    BestEffort(bool),
    /// Of one of these PriorityClasses; of any for an empty list.
    PriorityClass(Vec<Symbol>),
}

/// What pods come to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Charge {
    /// How many.
    pub pods: i64,
    /// Their requests.
    pub requests: Resources,
    /// Their limits.
    pub limits: Resources,
}

impl Charge {
    /// What so many pods of a template come to.
    pub fn new(template: &PodSpec, count: i64) -> Self {
        let times = |amounts: Resources| {
            let mut all = Resources::new();
            all.add_times(&amounts, count);
            all
        };
        Self { pods: count, requests: times(template.requests()), limits: times(template.limits()) }
    }

    /// The larger of both, name by name.
    pub fn or_more(mut self, other: &Self) -> Self {
        self.pods = self.pods.max(other.pods);
        self.requests.raise_to(&other.requests);
        self.limits.raise_to(&other.limits);
        self
    }

    /// Adds another charge.
    pub fn add(&mut self, other: &Self) {
        self.pods += other.pods;
        self.requests.add(&other.requests);
        self.limits.add(&other.limits);
    }
}

impl ResourceQuota {
    /// Whether pods of the template count.
    pub fn is_for(&self, template: &PodSpec) -> bool {
        self.scopes.iter().all(|scope| match scope {
            QuotaScope::Terminating(ends) => !ends,
            QuotaScope::BestEffort(wanted) => is_best_effort(template) == *wanted,
            QuotaScope::PriorityClass(names) => template
                .priority_class
                .is_some_and(|priority_class| names.is_empty() || names.contains(&priority_class)),
        })
    }

    /// Why one more pod of the template is refused where others come to `used`.
    pub fn refuses(&self, template: &PodSpec, used: &Charge) -> Option<String> {
        self.refuses_more(template, &Charge::new(template, 1), used)
    }

    /// Why one more claim is refused where there are these. A quota with a scope is for no claims.
    ///
    /// Source: Kubernetes 1.36 `pkg/quota/v1/evaluator/core/persistent_volume_claims.go`, `Usage`, `MatchingScopes`.
    pub fn refuses_claim(&self, claim: ClaimCharge, there: &[ClaimCharge]) -> Option<String> {
        let claims = self.claims.iter().filter(|_| self.scopes.is_empty());
        let exceeded = claims.filter_map(|this_claim| this_claim.exceeded(claim, there)).next()?;
        Some(format!("exceeded quota: {}, limited: {exceeded}", self.name.name))
    }

    /// Why a pod may not become another, where pods, itself as it is included, come to `used`: what it comes to less does not count.
    ///
    /// Source: Kubernetes 1.36 `pkg/quota/v1/evaluator/core/pods.go`, `Handles` (`resize`).
    pub fn refuses_change(&self, before: &PodSpec, after: &PodSpec, used: &Charge) -> Option<String> {
        let (before, mut more) = (Charge::new(before, 1), Charge::new(after, 1));
        more.pods -= before.pods;
        for (more, before) in [(&mut more.requests, &before.requests), (&mut more.limits, &before.limits)] {
            more.subtract(before);
            *more = more.iter().filter(|(_, amount)| *amount > 0).fold(Resources::new(), |all, (n, a)| all.with(n, a));
        }
        self.refuses_more(after, &more, used)
    }

    /// Why `more` is refused, which is what a pod comes to beyond what is counted of it already, where pods come to `used`. What the pod does
    /// not raise is not looked at.
    fn refuses_more(&self, pod: &PodSpec, more: &Charge, used: &Charge) -> Option<String> {
        if !self.is_for(pod) {
            return None;
        }
        let mut all = used.clone();
        all.add(more);
        let over = |hard: &Resources, (more, all): (&Resources, &Resources), what: &str| {
            let (name, _) = hard.iter().find(|(name, most)| more.get(*name) > 0 && all.get(*name) > *most)?;
            Some(format!("exceeded quota: {}, limited: {what}.{}", self.name.name, name.0))
        };
        self.missing(pod)
            .or_else(|| {
                let most = self.pods.filter(|most| more.pods > 0 && all.pods > *most)?;
                Some(format!("exceeded quota: {}, limited: pods={most}", self.name.name))
            })
            .or_else(|| over(&self.requests, (&more.requests, &all.requests), "requests"))
            .or_else(|| over(&self.limits, (&more.limits, &all.limits), "limits"))
    }

    /// Which containers do not state the CPU or memory that the quota is for, each of which has to, unless the pod states resources as a whole.
    ///
    /// Source: Kubernetes 1.36 `pkg/quota/v1/evaluator/core/pods.go`, `Constraints`.
    fn missing(&self, pod: &PodSpec) -> Option<String> {
        if states_as_a_whole(pod) {
            return None;
        }
        let told = |hard: &Resources, what: &str, stated: fn(&Container) -> Resources| {
            let compute = hard.iter().filter(|(name, _)| [ResourceName::CPU, ResourceName::MEMORY].contains(name));
            let lacks = compute.filter_map(|(name, _)| {
                let lacking = all_containers(pod).filter(|container| stated(container).find(name).is_none());
                let mut names: Vec<&str> = lacking.map(|item| item.name.as_str()).collect();
                names.sort_unstable();
                (!names.is_empty()).then(|| format!("{what}.{} for: {}", name.0, names.join(",")))
            });
            lacks.collect::<Vec<String>>()
        };
        let mut all = told(&self.limits, "limits", |item| item.limits.clone());
        all.extend(told(&self.requests, "requests", Container::effective_requests));
        all.sort_unstable();
        (!all.is_empty()).then(|| format!("failed quota: {}: must specify {}", self.name.name, all.join("; ")))
    }
}

fn all_containers(pod: &PodSpec) -> impl Iterator<Item = &Container> {
    pod.containers.iter().chain(pod.init_containers.iter().map(|init| &init.container))
}

/// Whether the pod states requests or limits for all its containers together.
fn states_as_a_whole(pod: &PodSpec) -> bool {
    [&pod.pod_requests, &pod.pod_limits].into_iter().flatten().any(|stated| !stated.is_empty())
}

fn is_best_effort(pod: &PodSpec) -> bool {
    let states_nothing = |container: &Container| container.requests.is_empty() && container.limits.is_empty();
    !states_as_a_whole(pod) && all_containers(pod).all(states_nothing)
}

#[cfg(test)]
mod tests {
    use super::{Charge, ClaimCharge, ClaimQuota, QuotaScope, ResourceQuota};
    use crate::domain::pod::InitContainer;
    use crate::domain::workload::ObjectName;
    use crate::domain::{Container, PodSpec, Resources, Symbol};

    fn quota() -> ResourceQuota {
        ResourceQuota {
            name: ObjectName { namespace: Symbol::new("shop"), name: Symbol::new("q") },
            pods: None,
            requests: Resources::cpu_memory(1_000, 1 << 30),
            limits: Resources::new(),
            scopes: Vec::new(),
            claims: Vec::new(),
        }
    }

    #[test]
    fn claims_are_counted_by_class_and_by_size() {
        let (gold, gib) = (Some(Symbol::new("gold")), 1_i64 << 30);
        let all = ClaimQuota { class: None, count: Some(3), bytes: Some(10 * gib) };
        let mut quota =
            ResourceQuota { claims: vec![all, ClaimQuota { class: gold, count: Some(1), bytes: None }], ..quota() };
        let of = |class, gib_of_it: i64| ClaimCharge { class, bytes: gib_of_it * gib };
        let told = |quota: &ResourceQuota, claim, there: &[ClaimCharge]| {
            quota
                .refuses_claim(claim, there)
                .map(|why| why.replace("exceeded quota: q, limited: ", ""))
                .unwrap_or_default()
        };
        let one = [of(gold, 6)];
        assert_eq!(told(&quota, of(None, 4), &one), "");
        assert_eq!(told(&quota, of(None, 5), &one), "requests.storage");
        assert_eq!(told(&quota, of(None, 0), &[one[0]; 3]), "persistentvolumeclaims");
        assert_eq!(told(&quota, of(gold, 1), &one), "gold.storageclass.storage.k8s.io/persistentvolumeclaims");
        quota.scopes = vec![QuotaScope::BestEffort(true)];
        assert_eq!(told(&quota, of(gold, 1), &one), "");
    }

    fn container(name: &str, requests: Resources) -> Container {
        Container { name: name.to_owned(), requests, ..Container::default() }
    }

    #[test]
    fn cpu_quota_requires_requests_of_every_container() {
        let init = container("init", Resources::cpu_memory(10, 10));
        let containers = vec![container("app", Resources::cpu_memory(300, 10)), container("log", Resources::new())];
        let mut pod = PodSpec {
            containers,
            init_containers: vec![InitContainer { container: init, sidecar: false }],
            ..PodSpec::default()
        };
        let refused = |pod: &PodSpec| quota().refuses(pod, &Charge::default());
        let told = "failed quota: q: must specify requests.cpu for: log; requests.memory for: log";
        assert_eq!(refused(&pod).as_deref(), Some(told));
        pod.init_containers[0].container.requests = Resources::new();
        let told = "failed quota: q: must specify requests.cpu for: init,log; requests.memory for: init,log";
        assert_eq!(refused(&pod).as_deref(), Some(told));
        pod.pod_limits = Some(Resources::cpu_memory(500, 500));
        assert_eq!(refused(&pod), None);
    }

    #[test]
    fn quota_checks_growing_but_not_shrinking_pods() {
        let of = |cpu_milli| PodSpec {
            containers: vec![container("app", Resources::cpu_memory(cpu_milli, 10))],
            ..PodSpec::default()
        };
        let change = |before, after| {
            let mut used = Charge::new(&of(before), 1);
            used.add(&Charge::new(&of(700), 1));
            quota().refuses_change(&of(before), &of(after), &used)
        };
        assert_eq!(change(100, 300), None);
        assert_eq!(change(100, 301).as_deref(), Some("exceeded quota: q, limited: requests.cpu"));
        assert_eq!(change(900, 800), None);
    }

    #[test]
    fn quota_ignores_resources_the_pod_does_not_raise() {
        let memory = Resources::new().with(crate::domain::ResourceName::MEMORY, 10);
        let pod = PodSpec { pod_requests: Some(memory), ..PodSpec::default() };
        let used = Charge { requests: Resources::cpu_memory(2_000, 10), ..Charge::default() };
        assert_eq!(quota().refuses(&pod, &used), None);
        assert!(quota().refuses(&pod, &Charge { requests: Resources::cpu_memory(0, 1 << 30), ..used }).is_some());
    }
}

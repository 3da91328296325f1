//! ResourceQuotas: how much the pods of a namespace may come to.
//!
//! Source: Kubernetes 1.36 `pkg/quota/v1/evaluator/core/pods.go`, `staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota`.

use super::workload::ObjectName;
use super::{PodSpec, ResourceName, Resources, Symbol};

/// How much the pods of a namespace may come to. What it says of other objects does not matter to pods.
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
}

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
    pub fn of(template: &PodSpec, count: i64) -> Self {
        let times = |amounts: Resources| {
            let mut all = Resources::new();
            all.add_times(&amounts, count);
            all
        };
        Self { pods: count, requests: times(template.requests()), limits: times(template.limits()) }
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
            QuotaScope::PriorityClass(names) => {
                template.priority_class.is_some_and(|own| names.is_empty() || names.contains(&own))
            }
        })
    }

    /// Why one more pod of the template is refused where others come to `used`.
    pub fn refuses(&self, template: &PodSpec, used: &Charge) -> Option<String> {
        if !self.is_for(template) {
            return None;
        }
        let mut all = used.clone();
        let own = Charge::of(template, 1);
        all.add(&own);
        let stated = |amounts: &Resources, name: ResourceName| amounts.find(name).is_some();
        let missing = |hard: &Resources, own: &Resources, what: &str| {
            let compute = |name: ResourceName| name == ResourceName::CPU || name == ResourceName::MEMORY;
            let lacks = hard.iter().find(|(name, _)| compute(*name) && !stated(own, *name))?;
            Some(format!("failed quota: {}: must specify {what}.{}", self.name.name, lacks.0.0))
        };
        let over = |hard: &Resources, all: &Resources, what: &str| {
            let (name, _) = hard.iter().find(|(name, most)| all.get(*name) > *most)?;
            Some(format!("exceeded quota: {}, limited: {what}.{}", self.name.name, name.0))
        };
        missing(&self.requests, &own.requests, "requests")
            .or_else(|| missing(&self.limits, &own.limits, "limits"))
            .or_else(|| {
                let over = self.pods.is_some_and(|most| all.pods > most);
                over.then(|| format!("exceeded quota: {}, limited: pods={}", self.name.name, self.pods.unwrap_or(0)))
            })
            .or_else(|| over(&self.requests, &all.requests, "requests"))
            .or_else(|| over(&self.limits, &all.limits, "limits"))
    }
}

fn is_best_effort(template: &PodSpec) -> bool {
    let init = template.init_containers.iter().map(|init| &init.container);
    let mut all = template.containers.iter().chain(init);
    all.all(|container| container.requests.is_empty() && container.limits.is_empty())
}

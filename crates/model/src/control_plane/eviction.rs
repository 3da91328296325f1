//! Disruption budgets of pods: how many of a workload's pods may be taken away now, and whether one of them may.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/disruption/disruption.go` and `pkg/registry/core/pod/storage/eviction.go`.

use std::cell::RefCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::cluster::{Cluster, Pod};
use crate::domain::pod::{DisruptionRule, IntOrPercent, PodPhase};
use crate::domain::{LabelSelector, Labels, PodSpec, SimDuration, SimTime, Symbol};

/// How long an evicted pod that is still there counts as gone.
const EVICTED_STAYS_GONE: SimDuration = SimDuration::from_secs(120);

/// Whether a selected pod counts as healthy: ready, not being deleted, and not evicted within the last two minutes.
pub fn is_healthy(ready: bool, deleting: bool, evicted_at: Option<SimTime>, now: SimTime) -> bool {
    ready && !deleting && evicted_at.is_none_or(|evicted| evicted + EVICTED_STAYS_GONE < now)
}

/// Which budgets protect pods, found out once for all pods of one specification: each look at a cluster asks it of every pod
/// several times over, and with a budget for each of fifty services the selectors were a quarter of a run.
///
/// It belongs to one list of budgets, whose namespaces and selectors must stay as they are.
#[derive(Debug, Default)]
pub struct Protections {
    /// By namespace and the address of the specification, which is kept so that the address goes on meaning it.
    known: RefCell<FxHashMap<(Symbol, usize), Protected>>,
}

/// A specification and the budgets that protect its pods.
type Protected = (Arc<PodSpec>, Protectors);

/// Positions of budgets in their list, in its order; mostly there is one at most.
pub type Protectors = SmallVec<[u32; 2]>;

/// Specifications remembered before all are forgotten: rollouts make new ones without end.
const KEPT_SPECS_MAX: usize = 10_000;

impl Protections {
    /// The budgets of a cluster that protect one of its pods.
    pub fn of_pod(&self, cluster: &Cluster, pod: &Pod) -> Protectors {
        if cluster.budgets().is_empty() {
            return Protectors::new();
        }
        self.protectors(pod.namespace, &pod.spec, selectors(cluster))
    }

    /// The budgets that protect pods of a specification; `budgets` are the namespace and the selector of each budget, of which
    /// one without a selector protects none.
    pub fn protectors<'s>(
        &self,
        namespace: Symbol,
        spec: &Arc<PodSpec>,
        budgets: impl Iterator<Item = (Symbol, Option<&'s LabelSelector>)>,
    ) -> Protectors {
        self.ask(namespace, spec, budgets, Protectors::from_slice)
    }

    /// The same for those who only look at them.
    pub fn ask<'s, R>(
        &self,
        namespace: Symbol,
        spec: &Arc<PodSpec>,
        budgets: impl Iterator<Item = (Symbol, Option<&'s LabelSelector>)>,
        look: impl FnOnce(&[u32]) -> R,
    ) -> R {
        let key = (namespace, Arc::as_ptr(spec) as usize);
        let mut known = self.known.borrow_mut();
        if let Some((_, protectors)) = known.get(&key) {
            return look(protectors);
        }
        let protectors = protectors(namespace, &spec.labels, budgets);
        if known.len() >= KEPT_SPECS_MAX {
            known.clear();
        }
        let (_, protectors) = known.entry(key).or_insert((Arc::clone(spec), protectors));
        look(protectors)
    }
}

/// Namespace and selector of every budget of a cluster, in its order.
pub fn selectors(cluster: &Cluster) -> impl Iterator<Item = (Symbol, Option<&LabelSelector>)> {
    cluster.budgets().iter().map(|budget| (budget.namespace, budget.selector.as_ref()))
}

/// Positions of the budgets that select pods of a namespace with these labels; `budgets` are the namespace and the selector of each.
pub fn protectors<'s>(
    namespace: Symbol,
    labels: &Labels,
    budgets: impl Iterator<Item = (Symbol, Option<&'s LabelSelector>)>,
) -> Protectors {
    let selects = |selector: Option<&LabelSelector>| selector.is_some_and(|selector| selector.matches(labels));
    let selecting = (0..).zip(budgets).filter(|(_, (index, selector))| *index == namespace && selects(*selector));
    selecting.map(|(position, _)| position).collect()
}

/// Whether the budgets that protect a pod never let it go: there are several, or one whose rule allows no disruption whatever the
/// number of pods. `only` tells of that one whether its rule does, and whether it lets go of what is not ready (`AlwaysAllow`).
///
/// Source: Karpenter core v1.13 `pkg/utils/pdb/pdb.go`, `IsFullyBlocked`.
pub fn is_fully_blocked(protectors: &[u32], ready: bool, only: impl FnOnce(usize) -> (bool, bool)) -> bool {
    match *protectors {
        [] => false,
        [budget] => {
            let (allows_nothing, always_allow_unhealthy) = only(budget as usize);
            allows_nothing && (ready || !always_allow_unhealthy)
        }
        _ => true,
    }
}

/// The pods that a budget protects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ProtectedPods {
    /// Replicas that the controllers of the selected pods want, summed.
    pub wanted: i64,
    /// Selected pods.
    pub selected: i64,
    /// Those that are healthy, see [`is_healthy`].
    pub healthy: i64,
    /// Those whose controller has no scale: DaemonSets and Jobs.
    pub unscaled: i64,
}

/// The status of a budget.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BudgetStatus {
    /// Pods that there should be.
    pub expected: i64,
    /// Healthy pods that there must be.
    pub desired_healthy: i64,
    /// Healthy pods.
    pub healthy: i64,
    /// Pods that may be taken away now.
    pub disruptions_allowed: i64,
}

/// A budget's status. Percentages are rounded up under both rules. While a workload grows its new pods are expected and not
/// healthy yet, so nothing may be taken away. How many pods a controller without a scale wants cannot be asked: unless a number of
/// healthy pods is stated, nothing may be taken away of a budget that selects a pod of one.
///
/// Source: `disruption.go`, `getExpectedPodCount`, `getScaleController`, `failSafe`, `updatePdbStatus`.
pub fn budget_status(rule: DisruptionRule, pods: ProtectedPods) -> BudgetStatus {
    let (expected, desired_healthy) = match rule {
        DisruptionRule::MaxUnavailable(most) => {
            (pods.wanted, pods.wanted.saturating_sub(most.of_rounded_up(pods.wanted)).max(0))
        }
        DisruptionRule::MinAvailable(IntOrPercent::Count(least)) => (pods.selected, least),
        DisruptionRule::MinAvailable(least) => (pods.wanted, least.of_rounded_up(pods.wanted)),
    };
    let spare = pods.healthy.saturating_sub(desired_healthy).max(0);
    let is_count = matches!(rule, DisruptionRule::MinAvailable(IntOrPercent::Count(_)));
    let is_known = is_count || pods.unscaled == 0;
    let disruptions_allowed = if expected > 0 && is_known { spare } else { 0 };
    BudgetStatus { expected, desired_healthy, healthy: pods.healthy, disruptions_allowed }
}

/// A pod that is to be evicted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EvictionView {
    /// Its phase.
    pub phase: PodPhase,
    /// Whether it is being deleted already.
    pub deleting: bool,
    /// Whether it is ready.
    pub ready: bool,
}

/// A budget that selects the pod.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EvictionBudget {
    /// Its status.
    pub status: BudgetStatus,
    /// `unhealthyPodEvictionPolicy: AlwaysAllow`.
    pub always_allow_unhealthy: bool,
}

/// What the API answers to an eviction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EvictionAnswer {
    /// The pod goes.
    Evicted {
        /// Whether it takes one of the disruptions that the budget allows.
        uses_budget: bool,
    },
    /// The budget allows none now (HTTP 429): try again.
    TooManyRequests,
    /// More than one budget selects the pod (HTTP 500): it is never evicted.
    SeveralBudgets,
}

/// The answer to an eviction of a pod that `budgets` select.
///
/// Source: `eviction.go`, `EvictionREST.Create`, `canIgnorePDB`.
pub fn eviction(pod: EvictionView, budgets: &[EvictionBudget]) -> EvictionAnswer {
    let free = EvictionAnswer::Evicted { uses_budget: false };
    if pod.phase.is_terminal() || pod.phase == PodPhase::Pending || pod.deleting {
        return free;
    }
    let budget = match budgets {
        [] => return free,
        [budget] => budget,
        _ => return EvictionAnswer::SeveralBudgets,
    };
    let status = budget.status;
    let enough = status.healthy >= status.desired_healthy && status.desired_healthy > 0;
    if !pod.ready && (budget.always_allow_unhealthy || enough) {
        return free;
    }
    if status.disruptions_allowed > 0 {
        EvictionAnswer::Evicted { uses_budget: true }
    } else {
        EvictionAnswer::TooManyRequests
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{
        BudgetStatus, EvictionAnswer, EvictionBudget, EvictionView, ProtectedPods, Protections, budget_status,
        eviction, is_healthy,
    };
    use crate::domain::pod::DisruptionRule::{self, MaxUnavailable, MinAvailable};
    use crate::domain::pod::IntOrPercent::{Count, Percent};
    use crate::domain::pod::PodPhase;
    use crate::domain::{LabelSelector, Labels, PodSpec, SimDuration, SimTime, Symbol};

    #[test]
    fn pdb_rules_round_up_their_percentages() {
        for (rule, wanted, selected, healthy, desired, allowed) in [
            (MaxUnavailable(Percent(30)), 7, 7, 7, 4, 3),
            (MaxUnavailable(Count(1)), 10, 5, 5, 9, 0),
            (MaxUnavailable(Count(20)), 10, 10, 3, 0, 3),
            (MinAvailable(Count(2)), 10, 5, 5, 2, 3),
            (MinAvailable(Percent(50)), 7, 7, 7, 4, 3),
            (MinAvailable(Percent(100)), 3, 3, 3, 3, 0),
            (MaxUnavailable(Percent(100)), 0, 0, 0, 0, 0),
        ] {
            let status = budget_status(rule, ProtectedPods { wanted, selected, healthy, unscaled: 0 });
            assert_eq!(
                (status.desired_healthy, status.disruptions_allowed),
                (desired, allowed),
                "{rule:?} of {wanted}"
            );
        }
    }

    #[test]
    fn pdb_expecting_no_pods_allows_no_disruptions() {
        let stray = ProtectedPods { wanted: 0, selected: 2, healthy: 2, unscaled: 0 };
        assert_eq!(budget_status(MaxUnavailable(Count(1)), stray).disruptions_allowed, 0);
    }

    #[test]
    fn pdb_over_job_pods_needs_min_available() {
        let jobs = ProtectedPods { wanted: 0, selected: 4, healthy: 4, unscaled: 4 };
        for (rule, allowed) in [
            (MaxUnavailable(Count(1)), 0),
            (MaxUnavailable(Percent(100)), 0),
            (MinAvailable(Percent(50)), 0),
            (MinAvailable(Count(3)), 1),
        ] {
            assert_eq!(budget_status(rule, jobs).disruptions_allowed, allowed, "{rule:?}");
        }
        // One such pod is enough, whatever else the budget selects.
        let mixed = ProtectedPods { wanted: 5, selected: 6, healthy: 6, unscaled: 1 };
        assert_eq!(budget_status(MaxUnavailable(Count(2)), mixed).disruptions_allowed, 0);
    }

    fn answer(phase: PodPhase, ready: bool, always: bool, rule: DisruptionRule, healthy: i64) -> EvictionAnswer {
        let status = budget_status(rule, ProtectedPods { wanted: 4, selected: 4, healthy, unscaled: 0 });
        let budget = EvictionBudget { status, always_allow_unhealthy: always };
        eviction(EvictionView { phase, deleting: false, ready }, &[budget])
    }

    #[test]
    fn unready_pod_eviction_depends_on_pdb_policy() {
        let one = MaxUnavailable(Count(1));
        let free = EvictionAnswer::Evicted { uses_budget: false };
        for (phase, ready, always, healthy, expected) in [
            (PodPhase::Running, true, false, 4, EvictionAnswer::Evicted { uses_budget: true }),
            (PodPhase::Running, true, false, 3, EvictionAnswer::TooManyRequests),
            (PodPhase::Running, true, true, 3, EvictionAnswer::TooManyRequests),
            (PodPhase::Running, false, false, 3, free),
            (PodPhase::Running, false, false, 2, EvictionAnswer::TooManyRequests),
            (PodPhase::Running, false, true, 0, free),
            (PodPhase::Pending, false, false, 0, free),
            (PodPhase::Failed, false, false, 0, free),
        ] {
            assert_eq!(answer(phase, ready, always, one, healthy), expected, "{phase:?} {ready} {always} {healthy}");
        }
        // Nothing needs to be healthy, which is not "enough": the budget itself decides.
        let all = MaxUnavailable(Percent(100));
        assert_eq!(answer(PodPhase::Running, false, false, all, 0), EvictionAnswer::TooManyRequests);
        assert_eq!(answer(PodPhase::Running, false, false, all, 1), EvictionAnswer::Evicted { uses_budget: true });
    }

    #[test]
    fn two_pdbs_on_a_pod_block_eviction() {
        let status = BudgetStatus { expected: 4, desired_healthy: 1, healthy: 4, disruptions_allowed: 3 };
        let budget = EvictionBudget { status, always_allow_unhealthy: true };
        let pod = EvictionView { phase: PodPhase::Running, deleting: false, ready: true };
        assert_eq!(eviction(pod, &[budget, budget]), EvictionAnswer::SeveralBudgets);
        assert_eq!(eviction(pod, &[]), EvictionAnswer::Evicted { uses_budget: false });
    }

    #[test]
    fn evicted_pod_counts_as_disrupted_for_two_minutes() {
        let at = |secs| SimTime::ZERO + SimDuration::from_secs(secs);
        assert!(is_healthy(true, false, None, at(0)));
        assert!(!is_healthy(true, true, None, at(0)) && !is_healthy(false, false, None, at(0)));
        assert!(!is_healthy(true, false, Some(at(0)), at(120)));
        assert!(is_healthy(true, false, Some(at(0)), at(121)));
    }

    #[test]
    fn pods_of_one_specification_are_asked_about_once() {
        let selector = |app| LabelSelector { match_labels: Labels::new().with("app", app), expressions: Vec::new() };
        let (shop, other) = (Symbol::new("shop"), Symbol::new("other"));
        let (web, all) = (selector("web"), LabelSelector { match_labels: Labels::new(), expressions: Vec::new() });
        let budgets = [(shop, Some(&web)), (other, Some(&all)), (shop, None), (shop, Some(&all))];
        let spec = |app| Arc::new(PodSpec { labels: Labels::new().with("app", app), ..PodSpec::default() });
        let protections = Protections::default();
        let (web_pods, queue_pods) = (spec("web"), spec("queue"));
        let ask = |namespace, spec| protections.protectors(namespace, spec, budgets.iter().copied()).to_vec();
        assert_eq!(ask(shop, &web_pods), [0, 3]);
        assert_eq!(ask(shop, &queue_pods), [3]);
        assert_eq!(ask(other, &web_pods), [1]);
        // What is known is told without another look.
        assert_eq!(protections.protectors(shop, &web_pods, std::iter::empty()).to_vec(), [0, 3]);
    }
}

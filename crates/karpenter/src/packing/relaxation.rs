//! Dropping a pod's preferences, one at each failed attempt.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/preferences.go`.

use nodecast_model::domain::PodSpec;
use nodecast_model::domain::taints::{TaintEffect, Toleration, TolerationOperator};
use nodecast_model::domain::topology::WhenUnsatisfiable;

/// Drops the next thing that may be dropped. `prefer_no_schedule` says whether some pool has a taint that is only a
/// preference. Returns `None` when nothing is left.
pub(super) fn relax(spec: &PodSpec, prefer_no_schedule: bool) -> Option<PodSpec> {
    let mut relaxed = spec.clone();
    if drop_required_term(&mut relaxed)
        || drop_heaviest(&mut relaxed.pod_affinity.preferred, |term| term.weight)
        || drop_heaviest(&mut relaxed.pod_anti_affinity.preferred, |term| term.weight)
        || drop_heaviest(&mut relaxed.node_affinity.preferred, |term| term.weight)
        || drop_schedule_anyway(&mut relaxed)
        || (prefer_no_schedule && tolerate_preferences(&mut relaxed))
    {
        return Some(relaxed);
    }
    None
}

/// Drops the first required node-affinity term; the last one always stays.
pub(super) fn drop_required_term(spec: &mut PodSpec) -> bool {
    let droppable = spec.node_affinity.required.len() > 1;
    if droppable {
        spec.node_affinity.required.remove(0);
    }
    droppable
}

/// Tolerates every taint that is only a preference.
pub(super) fn tolerate_preferences(spec: &mut PodSpec) -> bool {
    let wanted = |toleration: &Toleration| {
        toleration.operator == TolerationOperator::Exists
            && toleration.key.as_str().is_empty()
            && toleration.value.as_str().is_empty()
            && toleration.effect == Some(TaintEffect::PreferNoSchedule)
    };
    if spec.tolerations.iter().any(wanted) {
        return false;
    }
    let effect = Some(TaintEffect::PreferNoSchedule);
    spec.tolerations.push(Toleration { effect, ..Toleration::EVERYTHING });
    true
}

/// The position of the heaviest element, the first among equals.
pub(super) fn heaviest<T>(terms: &[T], weight: impl Fn(&T) -> i64) -> Option<usize> {
    (0..terms.len()).max_by_key(|&position| (weight(&terms[position]), std::cmp::Reverse(position)))
}

fn drop_heaviest<T>(terms: &mut Vec<T>, weight: impl Fn(&T) -> i64) -> bool {
    match heaviest(terms, weight) {
        Some(position) => {
            terms.remove(position);
            true
        }
        None => false,
    }
}

/// Drops the first spread constraint that is only a preference; the last constraint moves into its place.
fn drop_schedule_anyway(spec: &mut PodSpec) -> bool {
    let preferred = |when| when == WhenUnsatisfiable::ScheduleAnyway;
    match spec.topology_spread.iter().position(|constraint| preferred(constraint.when_unsatisfiable)) {
        Some(position) => {
            spec.topology_spread.swap_remove(position);
            true
        }
        None => false,
    }
}

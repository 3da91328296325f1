//! The StatefulSet controller: which of its numbered pods are made and deleted next.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/statefulset/stateful_set_control.go`, `updateStatefulSet`.

use nodecast_model::domain::pod::IntOrPercent;
use nodecast_model::domain::workload::StatefulUpdate;
use nodecast_model::domain::{KubernetesBehaviour, KubernetesVersion};

/// A pod of a StatefulSet that is not gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OrdinalView {
    /// Its number.
    pub ordinal: u32,
    /// Whether it runs, is Ready, and has been for `minReadySeconds`.
    pub available: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether it was made from the present template.
    pub updated: bool,
}

/// A StatefulSet and its pods, in any order; no two have one ordinal.
#[derive(Clone, Copy, Debug)]
pub struct StatefulSetView<'a> {
    /// Pods that it wants.
    pub replicas: u32,
    /// The first ordinal.
    pub first_ordinal: u32,
    /// Whether pods do not wait for each other.
    pub parallel: bool,
    /// How a changed template reaches its pods.
    pub update: StatefulUpdate,
    /// The release: those before 1.35 take away one pod at a time, whatever `maxUnavailable` says.
    pub version: KubernetesVersion,
    /// Its pods.
    pub pods: &'a [OrdinalView],
}

/// Something that the controller does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OrdinalStep {
    /// It makes the pod of this ordinal.
    Create {
        /// The number.
        ordinal: u32,
        /// From the present template rather than from the former one.
        updated: bool,
    },
    /// It deletes the pod at this position of the view.
    Delete(usize),
}

/// What one pass of the controller does, in order. In order of ordinals (not parallel) it does one thing at a time and waits
/// until all pods before it are available; scaling down it goes from the highest ordinal.
pub fn ordinal_steps(set: &StatefulSetView<'_>) -> Vec<OrdinalStep> {
    let wanted = set.first_ordinal..set.first_ordinal.saturating_add(set.replicas);
    let at = |ordinal: u32| set.pods.iter().position(|pod| pod.ordinal == ordinal);
    let mut steps = Vec::new();
    for ordinal in wanted.clone() {
        match at(ordinal) {
            None => {
                steps.push(OrdinalStep::Create { ordinal, updated: is_made_updated(set, ordinal) });
                if !set.parallel {
                    return steps;
                }
            }
            // One that ends or is not available yet holds up all after it.
            Some(position) if !set.parallel && (set.pods[position].deleting || !set.pods[position].available) => {
                return steps;
            }
            Some(_) => {}
        }
    }
    let mut condemned: Vec<usize> =
        (0..set.pods.len()).filter(|&position| !wanted.contains(&set.pods[position].ordinal)).collect();
    condemned.sort_by_key(|&position| std::cmp::Reverse(set.pods[position].ordinal));
    let first_unavailable = first_unavailable(set, &wanted);
    for position in condemned {
        let pod = set.pods[position];
        let others_first = !pod.available && first_unavailable != Some(pod.ordinal);
        if !set.parallel && (pod.deleting || others_first) {
            return steps;
        }
        if !pod.deleting {
            steps.push(OrdinalStep::Delete(position));
            if !set.parallel {
                return steps;
            }
        }
    }
    steps.extend(next_updates(set, wanted));
    steps
}

/// Pods below the partition keep the former template.
fn is_made_updated(set: &StatefulSetView<'_>, ordinal: u32) -> bool {
    match set.update {
        StatefulUpdate::OnDelete => true,
        StatefulUpdate::Rolling { partition, .. } => ordinal >= set.first_ordinal.saturating_add(partition),
    }
}

/// The lowest ordinal that is not available, of the wanted pods first.
fn first_unavailable(set: &StatefulSetView<'_>, wanted: &std::ops::Range<u32>) -> Option<u32> {
    let unavailable = || set.pods.iter().filter(|pod| !pod.available || pod.deleting).map(|pod| pod.ordinal);
    unavailable().filter(|ordinal| wanted.contains(ordinal)).min().or_else(|| unavailable().min())
}

/// The pods that make way for the present template, from the highest ordinal down.
fn next_updates(set: &StatefulSetView<'_>, wanted: std::ops::Range<u32>) -> Vec<OrdinalStep> {
    let StatefulUpdate::Rolling { partition, max_unavailable } = set.update else { return Vec::new() };
    let most = unavailable_at_most(max_unavailable, set.replicas, set.version);
    if most <= 1 {
        return next_update(set, wanted, partition).into_iter().collect();
    }
    let at = |ordinal: u32| set.pods.iter().position(|pod| pod.ordinal == ordinal);
    let is_there = |pod: &OrdinalView| pod.available && !pod.deleting;
    let gone = wanted.clone().filter(|&ordinal| !at(ordinal).is_some_and(|item| is_there(&set.pods[item]))).count();
    let old = |position: &usize| !set.pods[*position].updated && !set.pods[*position].deleting;
    let candidates = wanted.skip(partition as usize).rev().filter_map(at).filter(old);
    candidates.take((most as usize).saturating_sub(gone)).map(OrdinalStep::Delete).collect()
}

/// How many pods an update may have unavailable at once: a share is rounded down, and one there may always be.
///
/// Source: `stateful_set_utils.go`, `getStatefulSetMaxUnavailable`.
fn unavailable_at_most(stated: IntOrPercent, replicas: u32, version: KubernetesVersion) -> u32 {
    if !version.has(KubernetesBehaviour::StatefulSetMaxUnavailable) {
        return 1;
    }
    u32::try_from(stated.of_rounded_down(i64::from(replicas)).max(1)).unwrap_or(u32::MAX)
}

/// The pod of the highest ordinal that still has the former template, once all above it are available.
fn next_update(set: &StatefulSetView<'_>, wanted: std::ops::Range<u32>, partition: u32) -> Option<OrdinalStep> {
    for ordinal in wanted.skip(partition as usize).rev() {
        // One that has just been made is not available, so nothing goes on before it is.
        let position = set.pods.iter().position(|pod| pod.ordinal == ordinal)?;
        let pod = set.pods[position];
        if !pod.updated && !pod.deleting {
            return Some(OrdinalStep::Delete(position));
        }
        if !pod.available || pod.deleting {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::OrdinalStep::{Create, Delete};
    use super::{OrdinalStep, OrdinalView, StatefulSetView, ordinal_steps};
    use nodecast_model::domain::KubernetesVersion;
    use nodecast_model::domain::pod::IntOrPercent;
    use nodecast_model::domain::workload::StatefulUpdate;

    /// Pods as letters by ordinal: `A` available, `n` not available, `d` being deleted, `o` available with the former
    /// template, `.` none.
    fn steps(replicas: u32, parallel: bool, partition: u32, letters: &str) -> Vec<OrdinalStep> {
        let update = StatefulUpdate::Rolling { partition, max_unavailable: IntOrPercent::Count(1) };
        steps_of(replicas, parallel, (update, KubernetesVersion::default()), letters)
    }

    fn steps_of(
        replicas: u32,
        parallel: bool,
        (update, version): (StatefulUpdate, KubernetesVersion),
        letters: &str,
    ) -> Vec<OrdinalStep> {
        let pods: Vec<OrdinalView> = letters
            .chars()
            .enumerate()
            .filter(|(_, letter)| *letter != '.')
            .map(|(ordinal, letter)| OrdinalView {
                ordinal: ordinal as u32,
                available: matches!(letter, 'A' | 'o'),
                deleting: letter == 'd',
                updated: letter != 'o',
            })
            .collect();
        ordinal_steps(&StatefulSetView { replicas, first_ordinal: 0, parallel, update, version, pods: &pods })
    }

    fn make(ordinal: u32) -> OrdinalStep {
        Create { ordinal, updated: true }
    }

    #[test]
    fn pods_come_one_after_the_other_in_order() {
        assert_eq!(steps(3, false, 0, ""), [make(0)]);
        assert_eq!(steps(3, false, 0, "n"), []);
        assert_eq!(steps(3, false, 0, "A"), [make(1)]);
        assert_eq!(steps(3, false, 0, "AdA"), []);
        assert_eq!(steps(3, false, 0, "A.A"), [make(1)]);
        assert_eq!(steps(3, false, 0, "AAA"), []);
    }

    #[test]
    fn stateful_set_scales_down_from_highest_ordinal() {
        assert_eq!(steps(1, false, 0, "AAA"), [Delete(2)]);
        assert_eq!(steps(1, false, 0, "AAd"), []);
        assert_eq!(steps(1, false, 0, "AA"), [Delete(1)]);
        // While another pod is not available, none goes; one that is itself the first of these may.
        assert_eq!(steps(1, false, 0, "nAA"), []);
        assert_eq!(steps(1, false, 0, "AAn"), [Delete(2)]);
        assert_eq!(steps(1, false, 0, "Ann"), []);
    }

    #[test]
    fn in_parallel_nothing_waits() {
        assert_eq!(steps(3, true, 0, "n"), [make(1), make(2)]);
        assert_eq!(steps(1, true, 0, "nAdA"), [Delete(3), Delete(1)]);
    }

    #[test]
    fn stateful_update_descends_to_partition() {
        assert_eq!(steps(3, false, 0, "ooo"), [Delete(2)]);
        assert_eq!(steps(3, false, 0, "oon"), []);
        assert_eq!(steps(3, false, 0, "ooA"), [Delete(1)]);
        assert_eq!(steps(3, false, 2, "ooA"), []);
        assert_eq!(steps(3, false, 2, ".oA"), [Create { ordinal: 0, updated: false }]);
        assert_eq!(steps(3, true, 0, "ond"), []);
    }

    #[test]
    fn stateful_update_respects_max_unavailable() {
        let of = |share: IntOrPercent, minor: u8, parallel: bool, partition: u32, letters: &str| {
            let update = StatefulUpdate::Rolling { partition, max_unavailable: share };
            steps_of(5, parallel, (update, KubernetesVersion::from_minor(minor).unwrap()), letters)
        };
        let two = IntOrPercent::Count(2);
        assert_eq!(of(two, 36, false, 0, "ooooo"), [Delete(4), Delete(3)]);
        assert_eq!(of(two, 34, false, 0, "ooooo"), [Delete(4)]);
        assert_eq!(of(two, 36, false, 4, "ooooo"), [Delete(4)]);
        // In order the pods that are gone come back first; in parallel what is unavailable counts.
        assert_eq!(of(two, 36, false, 0, "ooodd"), []);
        assert_eq!(of(two, 36, true, 0, "oooAn"), [Delete(2)]);
        assert_eq!(of(two, 36, true, 0, "ooodn"), []);
        // 59 % of five are two, 19 % are one at least.
        assert_eq!(of(IntOrPercent::Percent(59), 36, true, 0, "ooooo"), [Delete(4), Delete(3)]);
        assert_eq!(of(IntOrPercent::Percent(19), 36, true, 0, "ooooo"), [Delete(4)]);
    }
}

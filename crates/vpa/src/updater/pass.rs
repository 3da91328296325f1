//! One pass over the pods of a VerticalPodAutoscaler: who is looked at, in which order they have their turn, and what is done.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/updater/logic/updater.go`, `pkg/updater/restriction/pods_inplace_restriction.go` and
//! `pods_eviction_restriction.go`.

use std::cmp::Ordering;

use super::super::admission::updated;
use super::super::capping::{Capped, cap};
use super::group::Group;
use super::{
    Answers, PodToUpdate, Priority, RankedPod, Resize, ResizeCondition, Updater, UpdaterView, Verdict, Way, acceptance,
    priority,
};
use nodecast_model::domain::SimDuration;
use nodecast_model::domain::vertical::ContainerRecommendation;

/// A resize that is deferred for longer is given up.
const MOST_DEFERRED: SimDuration = SimDuration::from_secs(5 * 60);
/// One that is in progress for longer is given up.
const MOST_IN_PROGRESS: SimDuration = SimDuration::from_secs(3_600);

/// A pod in a pass.
struct Entry<'v> {
    pod: &'v PodToUpdate,
    group: usize,
    capped: Capped,
    priority: Priority,
    verdict: Verdict,
}

/// What may be done with a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Decision {
    Wait,
    /// It has its turn, and the real program finds then that it may not touch it.
    Refused,
    Evict,
    Resize,
    /// What does not fit the node is asked for once more, and remembered.
    ResizeInfeasible,
}

/// A pass.
struct Pass<'v, 'u> {
    updater: &'u mut Updater,
    view: &'v UpdaterView<'v>,
    way: Way,
    groups: Vec<Option<Group>>,
}

pub(super) fn run(updater: &mut Updater, view: &UpdaterView<'_>, answers: &mut dyn Answers) -> Vec<RankedPod> {
    let mut entries = entries(view);
    if let Some(way) = updater.way(view.vpa) {
        let min_replicas = view.vpa.update.min_replicas.unwrap_or(updater.settings.min_replicas);
        let of = |group| Group::new(group, min_replicas, way, &updater.settings);
        let groups = view.groups.iter().map(of).collect();
        let mut pass = Pass { updater, view, way, groups };
        let order = pass.order(&mut entries);
        pass.act(&mut entries, order, answers);
    }
    let ranked = entries.into_iter().map(|entry| {
        let Entry { pod, priority, verdict, .. } = entry;
        RankedPod { pod: pod.name, priority, verdict }
    });
    ranked.collect()
}

/// Every pod with what is recommended for it; nobody is looked at yet, but for those of which the real program dies.
fn entries<'v>(view: &UpdaterView<'v>) -> Vec<Entry<'v>> {
    let recommendation = view.vpa.recommendation.as_deref().unwrap_or_default();
    let groups = view.groups.iter().enumerate();
    let pods = groups.flat_map(|(group, this_group)| this_group.pods.iter().map(move |pod| (group, pod)));
    let entries = pods.map(|(group, pod)| match cap(recommendation, view.vpa, &pod.containers, view.limits) {
        Ok(capped) => {
            let priority = priority(&capped, pod);
            Entry { pod, group, capped, priority, verdict: Verdict::Filtered }
        }
        Err(_) => {
            let (capped, priority) = (Capped::default(), Priority::default());
            Entry { pod, group, capped, priority, verdict: Verdict::Crash }
        }
    });
    entries.collect()
}

impl Pass<'_, '_> {
    /// Those that are to change, in the order in which they have their turn.
    fn order(&mut self, entries: &mut [Entry<'_>]) -> Vec<usize> {
        let mut order = Vec::new();
        for (index, entry) in entries.iter_mut().enumerate() {
            let looked_at = match self.way {
                Way::Evict => self.can_evict(entry.pod, entry.group),
                Way::ResizeOrEvict | Way::Resize => self.decide(entry.pod, entry.group) != Decision::Wait,
            };
            if !looked_at || entry.verdict == Verdict::Crash {
                continue;
            }
            let ranked = (&entry.capped, &entry.priority);
            match acceptance::refusal(&self.updater.settings, self.view, entry.pod, ranked) {
                Some(refusal) => entry.verdict = refusal,
                None => {
                    entry.verdict = Verdict::AcceptedNoAction;
                    order.push(index);
                }
            }
        }
        order.sort_by(|left, right| by_need(&entries[*left].priority, &entries[*right].priority));
        order
    }

    fn act(&mut self, entries: &mut [Entry<'_>], order: Vec<usize>, answers: &mut dyn Answers) {
        let to_evict = match self.way {
            Way::Evict => order,
            Way::ResizeOrEvict | Way::Resize => self.resize(entries, order, answers),
        };
        for index in to_evict {
            let entry = &mut entries[index];
            if !self.can_evict(entry.pod, entry.group) {
                continue;
            }
            if !answers.evict(entry.pod.name) {
                entry.verdict = Verdict::EvictionRefused;
                continue;
            }
            entry.verdict = Verdict::Evicted;
            if !entry.pod.pending {
                self.count(entry.group);
            }
        }
    }

    /// Resizes; what comes back are those to evict instead.
    fn resize(&mut self, entries: &mut [Entry<'_>], order: Vec<usize>, answers: &mut dyn Answers) -> Vec<usize> {
        let mut to_evict = Vec::new();
        for index in order {
            let entry = &mut entries[index];
            match self.decide(entry.pod, entry.group) {
                Decision::Wait | Decision::Refused => continue,
                Decision::Evict => {
                    to_evict.push(index);
                    continue;
                }
                Decision::Resize => {}
                Decision::ResizeInfeasible => {
                    let recommendation = self.view.vpa.recommendation.clone().unwrap_or_default();
                    self.updater.infeasible.insert(entry.pod.uid, recommendation);
                }
            }
            let containers = updated(self.view.vpa, &entry.pod.containers, &entry.capped, self.view.limits);
            if answers.resize(Resize { pod: entry.pod.name, containers }) {
                entry.verdict = Verdict::Resized;
                self.count(entry.group);
            } else {
                entry.verdict = Verdict::ResizeRefused;
                if self.way == Way::ResizeOrEvict {
                    to_evict.push(index);
                }
            }
        }
        to_evict
    }

    fn count(&mut self, group: usize) {
        if let Some(group) = &mut self.groups[group] {
            group.disrupt();
        }
    }

    fn can_evict(&mut self, pod: &PodToUpdate, group: usize) -> bool {
        let Some(group) = self.groups[group] else { return false };
        match pod.resize {
            _ if pod.pending => group.lets_pending_go(),
            Some(resize) => self.is_given_up(pod, resize, group),
            None => group.is_disruptable(),
        }
    }

    /// What may be done with a pod that is to be resized where it runs.
    fn decide(&mut self, pod: &PodToUpdate, group: usize) -> Decision {
        let Some(recommendation) = &self.view.vpa.recommendation else { return Decision::Wait };
        let Some(group) = self.groups[group] else {
            // The mode InPlace passes over no pod for being deferred, and `InPlaceUpdate` fails.
            return if self.way == Way::Resize { Decision::Refused } else { Decision::Wait };
        };
        if self.way == Way::Resize {
            return self.decide_in_place(pod, recommendation);
        }
        match pod.resize {
            _ if pod.pending => Decision::Wait,
            Some(resize) if self.is_given_up(pod, resize, group) => Decision::Evict,
            Some(_) => Decision::Wait,
            None if self.updater.settings.skips_budget() && !pod.restarts_on_resize => Decision::Resize,
            None if group.is_disruptable() => Decision::Resize,
            None => Decision::Wait,
        }
    }

    /// The mode InPlace waits for nothing but for less to be recommended than what did not fit.
    fn decide_in_place(&self, pod: &PodToUpdate, recommendation: &[ContainerRecommendation]) -> Decision {
        let refused = self.updater.infeasible.get(&pod.uid);
        if refused.is_some_and(|refused| !asks_for_less(recommendation, refused)) {
            return Decision::Wait;
        }
        match pod.resize {
            Some(ResizeCondition::Infeasible | ResizeCondition::Error) => Decision::ResizeInfeasible,
            _ => Decision::Resize,
        }
    }

    /// Whether a pod is evicted whose resize has not come off. From the first look on its wait counts.
    fn is_given_up(&mut self, pod: &PodToUpdate, resize: ResizeCondition, group: Group) -> bool {
        let first = *self.updater.first_waits.entry(pod.name).or_insert(self.view.now);
        let waited = self.view.now - first;
        let too_long = match resize {
            ResizeCondition::Deferred => waited > MOST_DEFERRED,
            ResizeCondition::InProgress => waited > MOST_IN_PROGRESS,
            ResizeCondition::Infeasible
            | ResizeCondition::PendingOther
            | ResizeCondition::Error
            | ResizeCondition::InProgressOther => true,
        };
        too_long && group.is_disruptable()
    }
}

/// Pods that need more come first, then those that change most.
fn by_need(left: &Priority, right: &Priority) -> Ordering {
    right.scale_up.cmp(&left.scale_up).then(right.change.total_cmp(&left.change))
}

/// Whether some target is lower than it was.
fn asks_for_less(now: &[ContainerRecommendation], before: &[ContainerRecommendation]) -> bool {
    now.iter().any(|now| {
        let before = before.iter().find(|before| before.container == now.container);
        let less = |before: &ContainerRecommendation| {
            now.target.iter().any(|(name, amount)| before.target.find(name).is_some_and(|before| amount < before))
        };
        before.is_some_and(less)
    })
}

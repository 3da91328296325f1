//! `NoExecute` taints that somebody puts on nodes: the pods that do not tolerate them are deleted, the others when the time is over for
//! which they do.
//!
//! Source: Kubernetes 1.36 `pkg/controller/tainteviction/taint_eviction.go`, `processPodOnNode`. What must not live here: nodes that
//! are not Ready or do not answer, whose taints the node controller sets (`zone_outage`).

use std::collections::BTreeMap;

use super::event::{NodeEvent, class};
use super::kubelet;
use super::sim::Sim;
use crate::domain::taints::TaintEffect;
use crate::domain::{NodeId, PodId, SimDuration, SimTime, Symbol, Taint, Toleration, well_known};
use crate::engine::TimerId;

/// Deletions that are to come.
#[derive(Debug, Default)]
pub(super) struct TaintEvictions(BTreeMap<PodId, Planned>);

/// A deletion that is to come.
#[derive(Clone, Copy, Debug)]
struct Planned {
    /// Since when the pod's patience counts.
    since: SimTime,
    timer: TimerId,
}

/// How long a pod bears the taints of its node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Patience {
    ForEver,
    For(SimDuration),
    NotAtAll,
}

impl TaintEvictions {
    /// The taints of a node have changed.
    pub(super) fn node_changed(&mut self, sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
        for pod in sim.world.node(node).pods.clone() {
            self.process(sim, now, pod, node, now);
        }
    }

    /// A node is there when the run begins, with its pods; of its taints these were added at these instants. The patience of a pod counts since the
    /// first of them, or since the pod was made: what was due by now happens now. Where no taint says since when it is there, it counts from now on.
    pub(super) fn node_found(&mut self, sim: &mut Sim<'_>, now: SimTime, node: NodeId, added: &[(Symbol, SimTime)]) {
        let this_taint = sim.world.node(node).taints.iter().filter(|taint| concerns(taint));
        let keys: Vec<Symbol> = this_taint.map(|taint| taint.key).collect();
        if keys.is_empty() {
            return;
        }
        let first = added.iter().filter(|(key, _)| keys.contains(key)).map(|&(_, at)| at).min().unwrap_or(now);
        for pod in sim.world.node(node).pods.clone() {
            let since = first.max(sim.world.pod(pod).created).min(now);
            self.process(sim, now, pod, node, since);
        }
    }

    /// A pod has a node.
    pub(super) fn pod_bound(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId, node: NodeId) {
        if sim.world.node(node).taints.iter().any(concerns) {
            self.process(sim, now, pod, node, now);
        }
    }

    /// A pod has to leave, or may stay as long as its patience lasts, which counts since this instant if none is counted yet.
    fn process(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId, node: NodeId, since: SimTime) {
        let state = sim.world.pod(pod);
        if !state.is_active() {
            return;
        }
        let taints = sim.world.node(node).taints.iter().filter(|taint| concerns(taint));
        match patience(taints, &state.spec.tolerations) {
            Patience::ForEver => self.cancel(sim, pod),
            Patience::NotAtAll => self.evict(sim, now, pod),
            Patience::For(span) => {
                let planned = self.0.get(&pod).copied();
                let since = planned.map_or(since, |planned| planned.since);
                if planned.is_some() && since < now {
                    // What was planned comes first.
                    return;
                }
                self.cancel(sim, pod);
                let due = (since + span).max(now);
                let timer = sim.queue.schedule(due, class::CONTROLLERS, NodeEvent::TaintPatienceOver(pod));
                self.0.insert(pod, Planned { since, timer });
            }
        }
    }

    /// The pod has borne the taints of its node for as long as it tolerates them.
    pub(super) fn evict(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
        self.cancel(sim, pod);
        if sim.world.pod(pod).is_active() {
            kubelet::delete(sim, now, pod, true, "it does not tolerate a NoExecute taint of its node");
        }
    }

    fn cancel(&mut self, sim: &mut Sim<'_>, pod: PodId) {
        if let Some(planned) = self.0.remove(&pod) {
            sim.queue.cancel(planned.timer);
        }
    }
}

/// Whether the taint is one that this controller acts on here.
fn concerns(taint: &Taint) -> bool {
    let of_node_controller = taint.key == well_known::TAINT_NOT_READY || taint.key == well_known::TAINT_UNREACHABLE;
    taint.effect == TaintEffect::NoExecute && !of_node_controller
}

/// The shortest time for which the tolerations that are used allow for the taints.
///
/// Source: `GetMatchingTolerations` and `getMinTolerationTime`.
fn patience<'t>(taints: impl Iterator<Item = &'t Taint>, tolerations: &[Toleration]) -> Patience {
    let mut shortest = None;
    for taint in taints {
        let Some(used) = tolerations.iter().find(|toleration| toleration.tolerates(taint)) else {
            return Patience::NotAtAll;
        };
        shortest = [shortest, used.toleration_seconds].into_iter().flatten().min();
    }
    shortest.map_or(Patience::ForEver, |span| Patience::For(span.max(SimDuration::ZERO)))
}

#[cfg(test)]
mod tests {
    use super::{Patience, patience};
    use crate::domain::taints::TaintEffect;
    use crate::domain::{SimDuration, Symbol, Taint, Toleration};

    #[test]
    fn shortest_applicable_toleration_time_applies() {
        let taint = |key: &str| Taint::new(Symbol::new(key), TaintEffect::NoExecute);
        let bears = |key: &str, seconds: Option<i64>| Toleration {
            toleration_seconds: seconds.map(SimDuration::from_secs),
            ..Toleration::exists(Symbol::new(key), Some(TaintEffect::NoExecute))
        };
        let tolerations = [bears("a", Some(60)), bears("b", None), bears("c", Some(30)), bears("a", Some(1))];
        let of = |keys: &[&str]| {
            let taints: Vec<Taint> = keys.iter().map(|key| taint(key)).collect();
            patience(taints.iter(), &tolerations)
        };
        assert_eq!(of(&[]), Patience::ForEver);
        assert_eq!(of(&["b"]), Patience::ForEver);
        assert_eq!(of(&["a", "b"]), Patience::For(SimDuration::from_secs(60)), "the first that fits is used");
        assert_eq!(of(&["a", "c"]), Patience::For(SimDuration::from_secs(30)));
        assert_eq!(of(&["a", "d"]), Patience::NotAtAll);
    }
}

//! Explanations of the Cluster Autoscaler: which groups it weighed, by what, why their nodes do not take a pod, why a node stays.

use serde::Serialize;

use super::{DecisionExplanation, EventFigures, Inquiry};
use crate::actors::inquiry::{self, GroupAnswer, ScaleDownAnswer, ScaleUpAnswer, Standing};
use crate::domain::{NodeId, PodId, SimTime};
use crate::world::record::{Event, EventKind};
use nodecast_cluster_autoscaler::TO_BE_DELETED;

/// What a scale-up of the Cluster Autoscaler weighed, or would now.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct ScaleUpFigures {
    /// How it ends, as the program names it: `Successful`, `NoOptionsAvailable`, `NotNeeded`, ...
    pub result: &'static str,
    /// What the program makes of the pod that was asked about.
    pub pod: Option<String>,
    /// The groups, in order of name; none if a pod was asked about that no group is weighed for.
    pub groups: Vec<GroupFigures>,
    /// Whether a draw decides among several groups.
    pub by_lot: bool,
}

/// What a group has to do with it.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct GroupFigures {
    /// Its name.
    pub group: String,
    /// The size that the program knows of.
    pub nodes: i64,
    /// The largest size that it may have.
    pub max: i64,
    /// Why it is not looked at; `None` if it is.
    pub skipped: Option<String>,
    /// Why a fresh node of it does not take the pod, in kube-scheduler's words.
    pub reasons: Vec<String>,
    /// What it would do for the pods that wait; `None` if nothing.
    pub option: Option<OptionFigures>,
    /// The size that it grows to; `None` if it does not grow.
    pub grows_to: Option<i64>,
}

/// What a group would do for the pods that wait.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct OptionFigures {
    /// Nodes that it would grow by.
    pub nodes: u64,
    /// Pods that would find room.
    pub pods: u64,
    /// Whether the pod that was asked about is one of them.
    pub helps: bool,
    /// What each of the expander's filters that came to it made of it.
    pub rounds: Vec<RoundFigures>,
}

/// What one of the expander's filters made of an option.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct RoundFigures {
    /// The filter, as the flag names it.
    pub expander: String,
    /// The figure that it goes by: pods, nodes, waste (shares of CPU and of memory left over, added), score or rank.
    pub figure: Option<f64>,
    /// Whether it left the option.
    pub left: bool,
}

/// What the Cluster Autoscaler makes of a node.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct ScaleDownFigures {
    /// The node.
    pub node: String,
    /// Its group; `None` if it belongs to none that the program minds.
    pub group: Option<String>,
    /// The size of the group that the program knows of.
    pub group_nodes: Option<i64>,
    /// The least size that it may have.
    pub group_min: Option<i64>,
    /// Why the node is not looked at; `None` if it is.
    pub not_looked_at: Option<String>,
    /// Share of the resource of which most is requested; `None` if the node is not looked at.
    pub utilization: Option<f64>,
    /// That resource.
    pub resource: Option<String>,
    /// The share up to which a node is looked at further.
    pub threshold: Option<f64>,
    /// Since when it has been unneeded, from the start of the run; `None` if it is not.
    pub unneeded_since_seconds: Option<f64>,
    /// After which time it has been unneeded for long enough.
    pub waits_until_seconds: Option<f64>,
    /// Why it stays, as the program names it.
    pub reason: Option<&'static str>,
    /// The pod that keeps it.
    pub blocking_pod: Option<String>,
    /// Why the pod does, as the program names it.
    pub blocking_reason: Option<&'static str>,
    /// What was found when the node was last found not to be removable, which holds for a while.
    pub found_before: Option<String>,
    /// Until when no node goes because of what happened before; `None` if nothing holds all back.
    pub cooldown_until_seconds: Option<f64>,
    /// Whether it goes now.
    pub goes: bool,
    /// Pods that are evicted for it.
    pub evicts: Vec<String>,
}

/// A decision of the Cluster Autoscaler: an instant, and the events of it.
struct Decided<'r> {
    /// The place of the first event in the record.
    first: usize,
    events: Vec<Event<'r>>,
}

impl Inquiry<'_> {
    /// The growths of groups in the run.
    fn growths(&self) -> Vec<Decided<'_>> {
        self.decided(|event| event.kind == EventKind::ScaledUpGroup)
    }

    /// The removals of nodes in the run: those that began at one instant are one decision.
    fn removals(&self) -> Vec<Decided<'_>> {
        self.decided(|event| event.kind == EventKind::NodeTainted && event.message == TO_BE_DELETED)
    }

    fn decided(&self, is_it: impl Fn(&Event<'_>) -> bool) -> Vec<Decided<'_>> {
        let mut found: Vec<Decided<'_>> = Vec::new();
        for (first, event) in self.outcome.record.events.iter().enumerate().filter(|(_, event)| is_it(event)) {
            match found.last_mut() {
                Some(last) if last.events.iter().all(|this_event| this_event.at == event.at) => last.events.push(event),
                _ => found.push(Decided { first, events: vec![event] }),
            }
        }
        found
    }

    /// What decisions of the Cluster Autoscaler there are, for an error; `None` if there are none.
    pub(super) fn group_decisions(&self) -> Option<String> {
        let name = |count: usize, kind: &str| match count {
            0 => None,
            1 => Some(format!("{kind}1")),
            _ => Some(format!("{kind}1 to {kind}{count}")),
        };
        let all = [name(self.growths().len(), "up"), name(self.removals().len(), "down")];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| format!("the Cluster Autoscaler's decisions are {}", all.join(" and ")))
    }

    /// A decision of the Cluster Autoscaler; `None` if no such id is one.
    pub(super) fn group_decision(&self, id: &str) -> Option<(SimTime, DecisionExplanation)> {
        let number = |kind: &str| id.strip_prefix(kind)?.parse::<usize>().ok()?.checked_sub(1);
        if let Some(index) = number("up") {
            return self.growth(id, self.growths().get(index)?);
        }
        self.removal(id, self.removals().get(number("down")?)?)
    }

    fn growth(&self, id: &str, decided: &Decided<'_>) -> Option<(SimTime, DecisionExplanation)> {
        let (mut run, at) = self.run_before(|record| record.events.len() > decided.first);
        let answer = inquiry::scale_up(run.components_mut(), at, None)?;
        let decision = DecisionExplanation {
            scale_up: Some(self.scale_up_figures(&answer)),
            ..self.group_explanation(id, "ScaleUp", "succeeded", decided)
        };
        Some((at, decision))
    }

    fn removal(&self, id: &str, decided: &Decided<'_>) -> Option<(SimTime, DecisionExplanation)> {
        let nodes: Vec<NodeId> = decided.events.iter().filter_map(|event| event.node).collect();
        let (mut run, at) = self.run_before(|record| record.events.len() > decided.first);
        let mut scale_down = Vec::new();
        for &node in &nodes {
            let answer = inquiry::scale_down(run.components_mut(), at, node);
            scale_down.extend(answer.map(|answer| self.scale_down_figures(node, &answer)));
        }
        let facts = |node: &NodeId| self.outcome.record.nodes.get(node.index());
        let given_back = self.outcome.record.events.since(decided.first).find(|event| {
            event.kind == EventKind::NodeUntainted && event.node.is_some_and(|node| nodes.contains(&node))
        });
        let gone = nodes.iter().filter_map(facts).all(|facts| facts.terminated.is_some());
        let outcome = match given_back {
            _ if gone => "succeeded",
            Some(_) => "failed",
            None => "under way",
        };
        let decision = DecisionExplanation {
            nodes: nodes.iter().map(|&node| self.node_name(node)).collect(),
            because: given_back.filter(|_| !gone).map(|event| event.message.to_string()),
            scale_down,
            ..self.group_explanation(id, "ScaleDown", outcome, decided)
        };
        Some((at, decision))
    }

    fn group_explanation(&self, id: &str, reason: &str, outcome: &str, decided: &Decided<'_>) -> DecisionExplanation {
        let events: Vec<EventFigures> = decided.events.iter().map(|event| self.event(event)).collect();
        DecisionExplanation {
            id: id.to_owned(),
            reason: reason.to_owned(),
            nodes: Vec::new(),
            replacements: Vec::new(),
            outcome: outcome.to_owned(),
            because: None,
            removal: None,
            scale_up: None,
            scale_down: Vec::new(),
            launched: Vec::new(),
            events,
        }
    }

    /// Ids of the removals of a node that the Cluster Autoscaler began.
    pub(super) fn removals_of(&self, node: NodeId) -> Vec<String> {
        let all = self.removals();
        let about = |decided: &Decided<'_>| decided.events.iter().any(|event| event.node == Some(node));
        let found = all.iter().enumerate().filter(|(_, decided)| about(decided));
        found.map(|(index, _)| format!("down{}", index + 1)).collect()
    }

    /// The last growth for a pod before it was bound: its id, its time, and what was weighed.
    pub(super) fn growth_for(&self, pod: PodId, until: SimTime) -> Option<(String, SimTime, ScaleUpFigures)> {
        let events = &self.outcome.record.events;
        let is_it = |event: &Event<'_>| {
            event.kind == EventKind::TriggeredScaleUp && event.pod == Some(pod) && event.at <= until
        };
        let triggered = events.rfind(is_it)?;
        let growths = self.growths();
        let index = growths.iter().position(|growth| growth.events[0].at == triggered.at)?;
        let (mut run, at) = self.run_before(|record| record.events.len() > growths[index].first);
        let answer = inquiry::scale_up(run.components_mut(), at, Some(pod))?;
        Some((format!("up{}", index + 1), at, self.scale_up_figures(&answer)))
    }

    /// What was weighed, for people and programs.
    pub(super) fn scale_up_figures(&self, answer: &ScaleUpAnswer) -> ScaleUpFigures {
        let standing = answer.standing.map(|standing| match standing {
            Standing::Considered => "it is one of those that a group might grow for".to_owned(),
            Standing::Young => "it is too new to be minded".to_owned(),
            Standing::RoomOn(node) => format!("it has room on {}", self.node_name(node)),
            Standing::RoomToCome => "it has room on a node that is on its way".to_owned(),
            Standing::LeftOut => "it is left out".to_owned(),
        });
        // For another pod groups may be weighed all the same, but that is not what was asked.
        let weighed = answer.standing.is_none_or(|standing| standing == Standing::Considered);
        let groups = answer.groups.iter().filter(|_| weighed);
        ScaleUpFigures {
            result: answer.result,
            pod: standing,
            groups: groups.map(|group| self.group_figures(group)).collect(),
            by_lot: answer.by_lot,
        }
    }

    fn group_figures(&self, answer: &GroupAnswer) -> GroupFigures {
        let version = self.setup.policy.versions.kubernetes;
        let option = answer.option.as_ref().map(|option| OptionFigures {
            nodes: option.nodes as u64,
            pods: option.pods as u64,
            helps: option.helps,
            rounds: option
                .rounds
                .iter()
                .map(|(expander, figure, left)| RoundFigures {
                    expander: expander.clone(),
                    figure: *figure,
                    left: *left,
                })
                .collect(),
        });
        GroupFigures {
            group: answer.group.to_string(),
            nodes: answer.size.0,
            max: answer.size.1,
            skipped: answer.skipped.clone(),
            reasons: answer.refused.iter().map(|reason| reason.text(version)).collect(),
            option,
            grows_to: answer.grows_to,
        }
    }

    /// What the Cluster Autoscaler makes of a node, for people and programs.
    pub(super) fn scale_down_figures(&self, node: NodeId, answer: &ScaleDownAnswer) -> ScaleDownFigures {
        let pod_name = |pod: PodId| self.outcome.record.pods.name(pod).unwrap_or_default().to_owned();
        let used = answer.utilization;
        ScaleDownFigures {
            node: self.node_name(node),
            group: answer.group.map(|(name, ..)| name.to_string()),
            group_nodes: answer.group.map(|(_, nodes, _)| nodes),
            group_min: answer.group.map(|(.., min)| min),
            not_looked_at: answer.passed_over.map(str::to_owned),
            utilization: used.map(|(used, _)| used.share),
            resource: used.map(|(used, _)| used.resource.to_string()),
            threshold: used.and_then(|(_, threshold)| threshold),
            unneeded_since_seconds: answer.unneeded_since.map(SimTime::as_secs_f64),
            waits_until_seconds: answer.waits_until.map(SimTime::as_secs_f64),
            reason: answer.reason,
            blocking_pod: answer.blocking.map(|(pod, _)| pod_name(pod)),
            blocking_reason: answer.blocking.map(|(_, why)| why),
            found_before: answer.noted.clone(),
            cooldown_until_seconds: answer.cooldown_until.map(SimTime::as_secs_f64),
            goes: answer.goes,
            evicts: answer.evicts.iter().map(|&pod| pod_name(pod)).collect(),
        }
    }
}

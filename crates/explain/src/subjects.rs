//! The three kinds of subjects: a node, a decision, a pod.

use std::collections::BTreeSet;

use super::{
    BudgetFigures, DecisionExplanation, DrainFigures, EventFigures, ExplainError, Inquiry, MethodFigures,
    NodeExplanation, PodExplanation, SchedulerFigures, command_of, karpenter_says, names_near, position_of_node,
};
use crate::actors::Autoscaler;
use crate::actors::inquiry::{self, Destination, DrainBlocker, PodAnswer};
use crate::domain::{NodeId, PodId, SimTime, Symbol};
use crate::report::pack::PoolExplanation;
use crate::report::summary::DecisionFigures;
use crate::report::summary::churn::moves::{removals, successor};
use crate::world::record::{CommandId, Event, NodeFacts, NodeOrigin, PodFacts};

impl Inquiry<'_> {
    /// Why a node stays.
    pub(super) fn node(&self, name: &str, at: SimTime) -> Result<NodeExplanation, ExplainError> {
        let nodes = &self.outcome.record.nodes;
        let index = position_of_node(name, nodes.iter().map(|facts| facts.name.as_str()))
            .map_err(|help| ExplainError::Unknown { kind: "node", name: name.to_owned(), help })?;
        self.inside(at)?;
        let (node, facts) = (NodeId::from_index(index), &nodes[index]);
        if facts.requested > at || facts.terminated.is_some_and(|gone| gone <= at) {
            let until = facts.terminated.map_or_else(String::new, |gone| format!(" until {}", self.when(gone)));
            let help = format!("it is there from {}{until}", self.when(facts.requested));
            return Err(ExplainError::NotThere { kind: "node", name: name.to_owned(), at: self.when(at), help });
        }
        let mut run = self.run_to(at);
        let answer = inquiry::node(run.components_mut(), at, node);
        let scale_down = inquiry::scale_down(run.components_mut(), at, node);
        let kept = inquiry::kept(run.components_mut(), at, node);
        let text = |symbol: Option<Symbol>| symbol.map(|symbol| symbol.to_string());
        let mut found = NodeExplanation {
            name: facts.name.clone(),
            origin: facts.origin.name().to_string(),
            instance_type: text(facts.instance_type),
            capacity_type: text(facts.capacity_type),
            zone: text(facts.zone),
            per_hour: facts.rate.as_f64(),
            because: None,
            drain: self.drain(facts, at, kept),
            methods: Vec::new(),
            consolidatable_from_seconds: None,
            nominated_until_seconds: None,
            budgets: Vec::new(),
            together: Vec::new(),
            removal: None,
            replacement: None,
            cluster_autoscaler: scale_down.map(|answer| self.scale_down_figures(node, &answer)),
            decisions: self.decisions_about(node),
        };
        let Some(answer) = answer else {
            found.because = found.cluster_autoscaler.is_none().then(|| self.no_say(facts, at));
            return Ok(found);
        };
        let methods = answer.methods.into_iter().map(|(method, reasons)| MethodFigures { method, reasons });
        found.methods = methods.collect();
        found.consolidatable_from_seconds = answer.consolidatable_from.map(SimTime::as_secs_f64);
        found.nominated_until_seconds = answer.nominated_until.map(SimTime::as_secs_f64);
        let budgets = answer.budgets.into_iter().map(|(reason, nodes)| BudgetFigures { reason, nodes });
        found.budgets = budgets.collect();
        found.together = answer.together.into_iter().map(|item| self.node_name(item)).collect();
        found.removal = answer.removal.map(|removal| self.figures(&removal));
        found.replacement = answer.replacement.map(|removal| self.figures(&removal));
        Ok(found)
    }

    /// The drain of a node of Karpenter's that goes on at an instant at which these pods keep it.
    fn drain(&self, facts: &NodeFacts, at: SimTime, kept: Vec<(PodId, DrainBlocker)>) -> Option<DrainFigures> {
        let by = |instant: Option<SimTime>| instant.is_some_and(|instant| instant <= at);
        let went_on = by(facts.drained) || by(facts.terminating) || by(facts.terminated);
        let drains = matches!(facts.origin, NodeOrigin::NodePool(_)) && by(facts.registered) && !went_on;
        let since = facts.deletion_requested.filter(|asked| *asked <= at && drains)?;
        let name = |pod: PodId| self.outcome.record.pods.name(pod).unwrap_or_default();
        let told = kept.into_iter().map(|(pod, keeper)| {
            let why = match keeper {
                DrainBlocker::Budget(budget) => format!("PodDisruptionBudget {budget} allows no eviction"),
                DrainBlocker::SeveralBudgets(all) => {
                    let names: Vec<String> = all.iter().map(ToString::to_string).collect();
                    format!("PodDisruptionBudgets {} all select it, so that it is never evicted", names.join(", "))
                }
                DrainBlocker::DoNotDisrupt => "its annotation `karpenter.sh/do-not-disrupt`".to_owned(),
                DrainBlocker::Stops => "it was told to stop and runs on".to_owned(),
            };
            format!("{} ({}): {why}", name(pod), self.workload_of(pod))
        });
        let reason = facts.end.map(crate::world::record::NodeEnd::as_str);
        Some(DrainFigures { since_seconds: since.as_secs_f64(), reason, kept_by: told.collect() })
    }

    /// Why nobody that removes nodes has a say about a node.
    fn no_say(&self, facts: &NodeFacts, at: SimTime) -> String {
        match facts.origin {
            NodeOrigin::NodeGroup(_) if matches!(self.setup.autoscaler, Autoscaler::ClusterAutoscaler(_)) => {
                "the Cluster Autoscaler does not see it: it has not registered, or is gone".to_owned()
            }
            NodeOrigin::NodeGroup(group) => format!("node group {group} owns it: Karpenter does not disrupt it"),
            NodeOrigin::Fargate(profile) => {
                format!("it runs on Fargate (profile {profile}) and is removed with its pod")
            }
            NodeOrigin::NodePool(_) if facts.launched.is_none_or(|launched| launched > at) => {
                "its instance is not launched yet".to_owned()
            }
            NodeOrigin::NodePool(_) if facts.deletion_requested.is_some_and(|asked| asked <= at) => {
                "it is being removed".to_owned()
            }
            NodeOrigin::NodePool(_) => format!(
                "Karpenter {} has no disruption loop: a timer on each node, its age or an interruption ends it",
                self.setup.policy.versions.karpenter
            ),
        }
    }

    /// Ids of the decisions that concern a node.
    fn decisions_about(&self, node: NodeId) -> Vec<String> {
        let commands = self.outcome.record.commands.iter().enumerate();
        let about = commands.filter(|(_, command)| command.concerned().contains(&node) || command.made.contains(&node));
        let mut ids: Vec<String> = about.map(|(index, _)| id_of(index).to_string()).collect();
        ids.extend(self.removals_of(node));
        ids
    }

    /// Why a decision was made, and when.
    pub(super) fn decision(&self, text: &str) -> Result<(SimTime, DecisionExplanation), ExplainError> {
        if let Some(found) = self.group_decision(text) {
            return Ok(found);
        }
        let count = self.outcome.record.commands.len();
        let id = command_of(self.outcome, text).ok_or_else(|| ExplainError::Unknown {
            kind: "decision",
            name: text.to_owned(),
            help: match (count, self.group_decisions()) {
                (0, Some(groups)) => groups,
                (0, None) if matches!(self.setup.autoscaler, Autoscaler::ClusterAutoscaler(_)) => {
                    "the Cluster Autoscaler decided nothing in this run".to_owned()
                }
                (0, None) => "Karpenter's disruption decided nothing in this run".to_owned(),
                _ => format!("its decisions are d1 to d{count}"),
            },
        })?;
        let facts = &self.outcome.record.commands[id.0 as usize];
        let (mut run, at) = self.run_before(|record| record.commands.len() > id.0 as usize);
        let removal = inquiry::removal(run.components_mut(), at, &facts.candidates, facts.reason);
        let decision_figures = DecisionFigures::new(self.outcome, id, facts);
        let mut removal = removal.map(|removal| self.figures(&removal));
        let went = self.where_pods_went(&facts.candidates);
        for pod in removal.iter_mut().flat_map(|removal| &mut removal.pods) {
            pod.went_to = went.iter().find(|(name, _)| *name == pod.pod).map(|(_, node)| node.clone());
        }
        let events = self.outcome.record.events.iter().filter(|event| event.command == Some(id));
        let decision = DecisionExplanation {
            id: decision_figures.id,
            reason: decision_figures.reason,
            nodes: decision_figures.nodes,
            replacements: decision_figures.replacements,
            outcome: decision_figures.outcome,
            because: decision_figures.because,
            removal,
            scale_up: None,
            scale_down: Vec::new(),
            launched: facts.made.iter().map(|&node| self.what_became_of(node)).collect(),
            events: events.map(|event| self.event(&event)).collect(),
        };
        Ok((at, decision))
    }

    /// The pods that had to leave these nodes, with the node of each one's successor.
    fn where_pods_went(&self, nodes: &[NodeId]) -> Vec<(String, String)> {
        let pods = &self.outcome.record.pods;
        let (removals, _) = removals(self.outcome);
        let of_nodes = removals.iter().filter(|removal| nodes.contains(&removal.node));
        let moves = of_nodes.flat_map(|removal| &removal.moves);
        moves
            .filter_map(|move_| {
                let node = pods.get(move_.successor?)?.node?;
                Some((pods.name(move_.pod)?.to_owned(), self.node_name(node)))
            })
            .collect()
    }

    fn what_became_of(&self, node: NodeId) -> String {
        let Some(facts) = self.outcome.record.nodes.get(node.index()) else { return String::new() };
        let kind = facts.instance_type.map_or_else(String::new, |kind| format!(" ({kind})"));
        let end = facts.end.map_or_else(|| "stays".to_owned(), |end| end.as_str().to_owned());
        match facts.initialized {
            Some(at) => format!("{}{kind}: initialized {}; {end}", facts.name, self.when(at)),
            None => format!("{}{kind}: never initialized; {end}", facts.name),
        }
    }

    pub(super) fn event(&self, event: &Event<'_>) -> EventFigures {
        EventFigures {
            at_seconds: event.at.as_secs_f64(),
            kind: event.kind.as_str(),
            node: event.node.map(|node| self.node_name(node)),
            message: event.message.to_string(),
        }
    }

    /// Where a pod went, or why it waits; and the moment that the answer is about.
    pub(super) fn pod(&self, name: &str, at: Option<SimTime>) -> Result<(SimTime, PodExplanation), ExplainError> {
        let record = &self.outcome.record;
        let until = at.unwrap_or_else(|| self.end());
        self.inside(until)?;
        let pod = self.pod_named(name, until)?;
        let facts = record.pods.facts(pod);
        if facts.created > until {
            let help = format!("it is created {}", self.when(facts.created));
            return Err(ExplainError::NotThere { kind: "pod", name: name.to_owned(), at: self.when(until), help });
        }
        let bound = facts.scheduled.filter(|scheduled| *scheduled <= until);
        let (mut run, now) = match bound {
            Some(_) => self.run_before(|record| record.pods.get(pod).is_some_and(|pod| pod.scheduled.is_some())),
            None => (self.run_to(until), until),
        };
        let (claimed, karpenter) = match facts.node.filter(|_| bound.is_some()) {
            // Why a node that the run begins with was launched, no run tells.
            Some(_) if facts.found => (None, None),
            Some(node) => self.claim_of(pod, node).unzip(),
            None => (None, inquiry::pod(run.components_mut(), now, pod)),
        };
        let (grown, groups) = match bound {
            Some(bound) => {
                self.growth_for(pod, bound).map_or((None, None), |(id, at, item)| (Some((id, at)), Some(item)))
            }
            None => {
                let answer = inquiry::scale_up(run.components_mut(), now, Some(pod));
                (None, answer.map(|answer| self.scale_up_figures(&answer)))
            }
        };
        let events = record.events.iter().filter(|event| event.pod == Some(pod) && event.at <= until);
        let successor = successor(self.outcome, pod);
        let next = successor.and_then(|successor| record.pods.get(successor));
        let explanation = PodExplanation {
            name: facts.name.clone(),
            workload: self.workload_of(pod),
            node: facts.node.filter(|_| bound.is_some()).map(|node| self.node_name(node)),
            found: facts.found && bound.is_some(),
            waits: bound.is_none() && facts.deletion_requested.or(facts.removed).is_none_or(|gone| gone > until),
            events: events.map(|event| self.event(&event)).collect(),
            kube_scheduler: self.verdicts(&run, pod),
            karpenter: karpenter.as_ref().map(|answer| karpenter_says(answer, |node| self.node_name(node))),
            claimed_at_seconds: claimed.map(SimTime::as_secs_f64),
            node_pools: karpenter.iter().flat_map(|answer| &answer.pools).map(PoolExplanation::from_verdict).collect(),
            cluster_autoscaler: groups,
            grown_at_seconds: grown.as_ref().map(|(_, at)| at.as_secs_f64()),
            grown_by: grown.map(|(id, _)| id),
            evicted_by: self.evicted_by(pod),
            replaced_by: successor.and_then(|successor| record.pods.name(successor)).map(str::to_owned),
            replaced_on: next.and_then(|next| next.node).map(|node| self.node_name(node)),
            vertical: self.vertical(pod, until),
        };
        Ok((now, explanation))
    }

    /// When Karpenter made the claim of the node that a pod was bound to, and what it says of the pod just before that; `None` if
    /// the pod did not wait then, or had a place already.
    fn claim_of(&self, pod: PodId, node: NodeId) -> Option<(SimTime, PodAnswer)> {
        let (claimed, of) = (&self.outcome.record.nodes.get(node.index())?, self.outcome.record.pods.facts(pod));
        if !matches!(claimed.origin, NodeOrigin::NodePool(_)) || of.created > claimed.requested {
            return None;
        }
        let (mut run, at) = self.run_before(|record| record.nodes.len() > node.index());
        let answer = inquiry::pod(run.components_mut(), at, pod)?;
        matches!(answer.destination, Destination::New(_)).then_some((at, answer))
    }

    /// The pod of a name. A name that was given to several, one after the other, means the one that there was at the instant; where
    /// there was none, the last before, and before all the first.
    fn pod_named(&self, name: &str, at: SimTime) -> Result<PodId, ExplainError> {
        let record = &self.outcome.record;
        let (namespace, item) =
            name.rsplit_once('/').map_or((None, name), |(namespace, parts)| (Some(namespace), parts));
        let is_it = |pod: &PodFacts| {
            let workload = record.workloads.get(pod.workload.index());
            let of_namespace =
                |wanted: &str| workload.is_some_and(|workload| workload.name.namespace.as_str() == wanted);
            pod.name == item && namespace.is_none_or(of_namespace)
        };
        let all = record.pods.iter().enumerate().filter(|(_, pod)| is_it(pod));
        let named: Vec<(usize, PodFacts)> = all.collect();
        let namespace_of = |(_, pod): &(usize, PodFacts)| {
            record.workloads.get(pod.workload.index()).map(|workload| workload.name.namespace.as_str())
        };
        let namespaces: BTreeSet<&str> = named.iter().filter_map(namespace_of).collect();
        if namespaces.len() > 1 {
            let names: Vec<String> = namespaces.iter().map(|namespace| format!("`{namespace}/{item}`")).collect();
            let help = format!("add the namespace; candidates: {}", names.join(", "));
            return Err(ExplainError::Ambiguous { kind: "pod", name: name.to_owned(), help });
        }
        let before = |(_, pod): &&(usize, PodFacts)| pod.created <= at;
        let there = |(_, pod): &&(usize, PodFacts)| pod.removed.is_none_or(|removed| removed > at);
        let alive = named.iter().filter(before).rfind(there);
        let found = alive.or_else(|| named.iter().rfind(before)).or_else(|| named.first());
        let ids = (0..record.pods.len()).map(PodId::from_index);
        found.map(|(index, _)| PodId::from_index(*index)).ok_or_else(|| ExplainError::Unknown {
            kind: "pod",
            name: name.to_owned(),
            help: names_near(item, ids.filter_map(|id| record.pods.name(id))),
        })
    }

    /// What kube-scheduler says of every node.
    fn verdicts(&self, run: &crate::simulation::Simulation<'_>, pod: PodId) -> Vec<SchedulerFigures> {
        let Some(evaluation) = inquiry::kube_scheduler(run.components(), pod) else { return Vec::new() };
        let version = self.setup.policy.versions.kubernetes;
        let nodes = evaluation.nodes.into_iter().map(|node| SchedulerFigures {
            node: self.node_name(node.node),
            total: node.total,
            scores: node.scores.iter().map(|(plugin, score)| (plugin.as_str().to_owned(), *score)).collect(),
            reasons: node.rejection.map_or_else(Vec::new, |rejection| {
                rejection.reasons.iter().map(|reason| reason.text(version)).collect()
            }),
        });
        nodes.collect()
    }

    /// The decision that removed the node from which a pod was evicted.
    fn evicted_by(&self, pod: PodId) -> Option<String> {
        let record = &self.outcome.record;
        let facts = record.pods.facts(pod);
        let node = facts.node.filter(|_| facts.evicted)?;
        let removed = |command: &crate::world::record::CommandFacts| {
            command.nodes.contains(&node) && command.succeeded.is_some_and(|at| facts.deletion_requested >= Some(at))
        };
        let command = record.commands.iter().position(removed).map(|index| id_of(index).to_string());
        command.or_else(|| self.removals_of(node).pop())
    }
}

fn id_of(index: usize) -> CommandId {
    CommandId(u32::try_from(index).unwrap_or(u32::MAX))
}

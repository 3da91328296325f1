//! What people ask of the Cluster Autoscaler, answered by an iteration of a copy of it whose calls change nothing: which groups
//! would grow for a pod and by what the expander chose, why nodes of a group do not take it, why a node stays.

use super::groups;
use super::observation::IterationInput;
use crate::actors::cluster_autoscaler::{AutoscalerLoop, Lists};
use crate::actors::sim::Sim;
use crate::domain::{NodeId, PodId, SimTime, Symbol};
use nodecast_cluster_autoscaler::aws;
use nodecast_cluster_autoscaler::utilization::Utilization;
use nodecast_cluster_autoscaler::{ClusterAutoscaler, GroupActions, Iteration, ResizeError, ScaleDownResult};
use nodecast_scheduler::Reason;

/// What a scale-up would do now.
#[derive(Clone, PartialEq, Debug)]
pub struct ScaleUpAnswer {
    /// How it would end, as the program names it.
    pub result: &'static str,
    /// What the program makes of the pod, if one was asked about.
    pub standing: Option<Standing>,
    /// The groups, in order of name.
    pub groups: Vec<GroupAnswer>,
    /// Whether a draw decides among several groups.
    pub by_lot: bool,
}

/// What the program makes of a pod that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It is one of those that a group might grow for.
    Considered,
    /// It is not old enough yet.
    Young,
    /// It has room on a node that is there.
    RoomOn(NodeId),
    /// It has room on a node that is still to come.
    RoomToCome,
    /// It is left out: it does not count by its priority or its scheduler, or the iteration ended before.
    LeftOut,
}

/// What a group has to do with it.
#[derive(Clone, PartialEq, Debug)]
pub struct GroupAnswer {
    /// Its name.
    pub group: Symbol,
    /// The size that the program knows of, and the largest.
    pub size: (i64, i64),
    /// Why it is not looked at, if so.
    pub skipped: Option<String>,
    /// Why a fresh node of it does not take the pod, in the scheduler's terms.
    pub refused: Vec<Reason>,
    /// What it would do.
    pub option: Option<OptionAnswer>,
    /// The size that it would grow to.
    pub grows_to: Option<i64>,
}

/// What a group would do for the pods that wait.
#[derive(Clone, PartialEq, Debug)]
pub struct OptionAnswer {
    /// Nodes that it would grow by.
    pub nodes: usize,
    /// Pods that would find room.
    pub pods: usize,
    /// Whether the pod asked about is one of them.
    pub helps: bool,
    /// For each of the expander's filters that it came to: the filter, its figure, and whether the filter left it.
    pub rounds: Vec<(String, Option<f64>, bool)>,
}

/// Why a node stays, or that it goes.
#[derive(Clone, PartialEq, Debug)]
pub struct ScaleDownAnswer {
    /// Its group with the size that the program knows of and the least.
    pub group: Option<(Symbol, i64, i64)>,
    /// Why it is not looked at, if so.
    pub passed_over: Option<&'static str>,
    /// Its utilisation, and the share up to which little enough is asked for.
    pub utilization: Option<(Utilization, Option<f64>)>,
    /// Since when it has been unneeded, if it is.
    pub unneeded_since: Option<SimTime>,
    /// When its time as an unneeded node is over.
    pub waits_until: Option<SimTime>,
    /// Why it stays, as the program names it.
    pub reason: Option<&'static str>,
    /// The pod that keeps it, and why.
    pub blocking: Option<(PodId, &'static str)>,
    /// What was noted when the node was last found not to be removable.
    pub noted: Option<String>,
    /// Until when no node goes because of what happened before.
    pub cooldown_until: Option<SimTime>,
    /// Whether it would go now.
    pub goes: bool,
    /// Pods that would be evicted.
    pub evicts: Vec<PodId>,
}

/// A provider that only counts.
struct Imagined {
    /// Desired and largest sizes.
    sizes: Vec<(i64, i64)>,
}

impl GroupActions for Imagined {
    fn increase_size(&mut self, group: usize, by: i64) -> Result<(), ResizeError> {
        let (desired, max) = self.sizes[group];
        self.sizes[group].0 = aws::increased(desired, max, by)?;
        Ok(())
    }

    fn decrease_target_size(&mut self, group: usize, by: i64) -> Result<(), ResizeError> {
        self.sizes[group].0 -= by;
        Ok(())
    }

    fn delete_instances(&mut self, group: usize, instances: &[std::sync::Arc<str>]) -> Result<(), ResizeError> {
        self.sizes[group].0 -= instances.len() as i64;
        Ok(())
    }

    fn target_size(&self, group: usize) -> i64 {
        self.sizes[group].0
    }
}

/// The iteration that would be now, with what it saw and the copy of the program that went through it; `None` if the Cluster
/// Autoscaler does not run.
fn imagine(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    lists: Lists<'_>,
    now: SimTime,
) -> Option<(IterationInput, ClusterAutoscaler, Iteration)> {
    let mut program = autoscaler.program.as_ref()?.explaining();
    let kept = (autoscaler.groups.clone(), autoscaler.nodes.clone());
    // Without a fresh reading the groups are as they were read last.
    let _ = groups::refresh(sim, autoscaler, lists, &program, now);
    // An iteration that is under way decides by what it saw at its start.
    let begun = autoscaler.thought.as_ref().map(|thought| (thought.seen.clone(), thought.began));
    let (seen, began) = match begun {
        Some(begun) => begun,
        None => (IterationInput::new(sim, autoscaler, lists, program.flags()), now),
    };
    let known = &autoscaler.groups.groups;
    let mut calls = Imagined { sizes: known.iter().map(|group| (group.desired, group.limits.1)).collect() };
    // The lots of the iteration that is under way, or else of the next.
    let number = autoscaler.iterations + u64::from(autoscaler.client.is_some() && autoscaler.thought.is_none());
    let mut ties = super::ties(sim.streams, number);
    let iteration = program.run_once(&seen.observation(began), &mut calls, &mut ties);
    (autoscaler.groups, autoscaler.nodes) = kept;
    Some((seen, program, iteration))
}

/// What a scale-up would do now, for a pod that waits if one is given; `None` if the Cluster Autoscaler does not run, or does not
/// see the pod wait.
pub(in crate::actors) fn scale_up(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    lists: Lists<'_>,
    now: SimTime,
    pod: Option<PodId>,
) -> Option<ScaleUpAnswer> {
    let (seen, program, iteration) = imagine(sim, autoscaler, lists, now)?;
    let report = &iteration.scale_up;
    let asked = match pod {
        Some(pod) => Some(seen.waiting(pod)?),
        None => None,
    };
    let standing = asked.map(|at| {
        if report.considered.contains(&at) {
            return Standing::Considered;
        }
        if report.young.contains(&at) {
            return Standing::Young;
        }
        let room = program.room_found_for(seen.pod(at)).filter(|_| iteration.early_end.is_none());
        match room {
            Some(node) if sim.world.record().nodes.get(node.index()).is_some() => Standing::RoomOn(node),
            Some(_) => Standing::RoomToCome,
            None => Standing::LeftOut,
        }
    });
    let group = |at: usize| {
        let view = seen.group(at);
        let skipped = report.skipped.iter().find(|(group, _)| *group == at).map(|(_, reason)| reason.text());
        let refused = report
            .refusals
            .iter()
            .find(|refusal| refusal.group == at && asked.is_some_and(|pod| refusal.pods.contains(&pod)));
        let grown = report.grown.iter().find(|growth| growth.group == at);
        GroupAnswer {
            group: view.id,
            size: (view.target, view.max),
            skipped,
            refused: refused.map_or_else(Vec::new, |refused| refused.reasons.clone()),
            option: option(&iteration, at, asked),
            grows_to: grown.map(|growth| growth.to),
        }
    };
    Some(ScaleUpAnswer {
        result: report.result.as_str(),
        standing,
        groups: (0..seen.group_count()).map(group).collect(),
        by_lot: report.choices.len() > 1,
    })
}

fn option(iteration: &Iteration, group: usize, asked: Option<usize>) -> Option<OptionAnswer> {
    let report = &iteration.scale_up;
    let position = report.options.iter().position(|option| option.group == group)?;
    let option = &report.options[position];
    let of_round = |round: &nodecast_cluster_autoscaler::expander::Round| {
        let (_, figure) = round.figures.iter().find(|(at, _)| *at == position)?;
        Some((round.filter.to_string(), *figure, round.left.contains(&position)))
    };
    Some(OptionAnswer {
        nodes: option.nodes,
        pods: option.pods.len(),
        helps: asked.is_some_and(|pod| option.pods.contains(&pod)),
        rounds: report.rounds.iter().filter_map(of_round).collect(),
    })
}

/// Why no node is looked at where a flag keeps all of them.
pub const SCALE_DOWN_DISABLED: &str = "scale-down is disabled";

/// Why a node stays, or that it goes now; `None` if the Cluster Autoscaler does not run or does not see the node.
pub(in crate::actors) fn scale_down(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    lists: Lists<'_>,
    now: SimTime,
    node: NodeId,
) -> Option<ScaleDownAnswer> {
    let (seen, program, iteration) = imagine(sim, autoscaler, lists, now)?;
    let at = seen.place_of(node)?;
    let report = &iteration.scale_down;
    // An iteration that ended early, or with scale-down disabled, found nothing.
    let found = report.nodes.get(at).cloned().unwrap_or_default();
    let view = seen.view(at);
    let group = view.group.map(|group| {
        let group = seen.group(group);
        (group.id, group.target, group.min)
    });
    let in_cooldown = report.result == ScaleDownResult::InCooldown;
    let deletion = report.deletions.iter().find(|deletion| deletion.node == at);
    let disabled = (!program.flags().scale_down_enabled).then_some(SCALE_DOWN_DISABLED);
    Some(ScaleDownAnswer {
        group,
        passed_over: disabled.or(found.passed_over.map(|why| why.as_str())),
        utilization: found.utilization.map(|used| (used, found.threshold)),
        unneeded_since: program.planner().unneeded_since(node),
        waits_until: found.waits_until,
        reason: found.reason.map(|reason| reason.as_str()),
        blocking: found.blocking.map(|(pod, why)| (seen.pod(pod), why.as_str())),
        noted: autoscaler.noted.of_node(node).map(str::to_owned),
        cooldown_until: Some(program.cooldown_until()).filter(|until| in_cooldown && *until > now),
        goes: deletion.is_some(),
        evicts: deletion.map_or_else(Vec::new, |deletion| deletion.evict.iter().map(|&pod| seen.pod(pod)).collect()),
    })
}

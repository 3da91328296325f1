//! KEDA: polls the triggers of every ScaledObject, moves its target between zero (or idle) and the minimum, and serves the
//! external metrics of the autoscaler that it owns.
//!
//! Source: KEDA 2.20 `pkg/scaling/scale_handler.go`, `controllers/keda/scaledobject_controller.go`.

use super::replica_loop::ReplicaLoops;
use smallvec::SmallVec;

use super::drift::Drift;
use super::event::{ReplicaEvent, class};
use super::prometheus::Prometheus;
use super::queue_loop::Queues;
use super::setup::{ScalingPlan, TriggerReader};
use super::sim::Sim;
use super::triggers::{self, TriggerMemory};
use super::{replica_loop, workload_controllers};
use crate::domain::words::rounded;
use crate::domain::workload::ObjectName;
use crate::domain::{SimDuration, SimTime, WorkloadId};
use crate::engine::TimerId;
use crate::world::record::EventKind;
use nodecast_replicas::keda::{
    FallbackCounts, FallbackRead, PollDecision, PollView, TriggerState, composite, external_metric_name, fallback_goal,
    is_active, poll as poll_decision, read_with_fallback, valid_fallback,
};

/// Every ScaledObject that there is or has been, in order of application.
#[derive(Debug, Default)]
pub(super) struct ScaledObjects<'s> {
    all: Vec<KedaLoop<'s>>,
}

/// One ScaledObject and what KEDA remembers of it.
#[derive(Debug)]
pub(super) struct KedaLoop<'s> {
    plan: &'s ScalingPlan,
    /// Whether it has been deleted.
    retired: bool,
    target: Option<WorkloadId>,
    /// The replicas that its target had when it came to be.
    original: Option<i32>,
    /// In whole seconds, as objects have their times.
    created: SimTime,
    /// Likewise.
    last_active: Option<SimTime>,
    memory: Vec<TriggerMemory>,
    next_poll: Option<TimerId>,
    drift: Drift,
}

impl KedaLoop<'_> {
    fn name(&self) -> ObjectName {
        ObjectName { namespace: self.plan.object.namespace, name: self.plan.object.name }
    }
}

impl ScaledObjects<'_> {
    /// Of each metric of a ScaledObject's autoscaler whether it is the calendar; with a formula its one metric is not.
    pub(super) fn calendar_triggers(&self, owner: u32) -> SmallVec<[bool; 4]> {
        let plan = self.all[owner as usize].plan;
        if plan.object.scaling_modifiers.is_some() {
            return SmallVec::new();
        }
        plan.readers.iter().map(|reader| matches!(reader, TriggerReader::Calendar(_))).collect()
    }

    /// A workload is deleted: an object that scaled it looks for another of its name.
    pub(super) fn target_deleted(&mut self, workload: WorkloadId) {
        for item in self.all.iter_mut().filter(|item| item.target == Some(workload)) {
            item.target = None;
        }
    }

    fn schedule(&mut self, sim: &mut Sim<'_>, index: usize, after: SimDuration) {
        let timer = sim.queue.schedule_in(after, class::KEDA, ReplicaEvent::KedaPoll(index as u32));
        self.all[index].next_poll = Some(timer);
    }

    /// The workload that the object scales, which may have come to be after it.
    fn target(&mut self, sim: &Sim<'_>, index: usize) -> Option<WorkloadId> {
        let object = &self.all[index].plan.object;
        if self.all[index].target.is_none() {
            self.all[index].target = sim.scaled_workload(object.namespace, object.target);
        }
        self.all[index].target
    }
}

/// What one read of a trigger gave.
struct TriggerReading {
    outcome: FallbackRead,
    state: TriggerState,
    /// Why it failed.
    problem: Option<String>,
}

/// A ScaledObject is applied: a new one, or another form of a known one, which keeps its status. A paused one loses its
/// autoscaler and is not polled.
///
/// An object of the start of the run is first polled within one interval, since its cluster is older than the run; a later
/// one at once.
pub(super) fn apply<'s>(
    sim: &mut Sim<'s>,
    autoscalers: &mut ReplicaLoops<'s>,
    scaled_objects: &mut ScaledObjects<'s>,
    now: SimTime,
    plan: &'s ScalingPlan,
) {
    let object = &plan.object;
    let name = ObjectName { namespace: object.namespace, name: object.name };
    let target = sim.scaled_workload(object.namespace, object.target);
    sim.world.note(now, EventKind::ManifestApplied, target, format!("ScaledObject {name}"));
    let index = match scaled_objects
        .all
        .iter()
        .position(|scaled_object| !scaled_object.retired && scaled_object.name() == name)
    {
        Some(known) => {
            let scaled_object = &mut scaled_objects.all[known];
            if scaled_object.plan.object.triggers != object.triggers {
                scaled_object.memory = vec![TriggerMemory::default(); object.triggers.len()];
            }
            scaled_object.plan = plan;
            known
        }
        None => {
            let drift = Drift::of_poll(&sim.streams, &name.to_string());
            scaled_objects.all.push(KedaLoop {
                plan,
                retired: false,
                target,
                original: target.map(|target| replicas_of(sim, target)),
                created: sim.whole_seconds(now),
                last_active: last_active(sim, now, plan),
                memory: vec![TriggerMemory::default(); object.triggers.len()],
                next_poll: None,
                drift,
            });
            scaled_objects.all.len() - 1
        }
    };
    if let Some(timer) = scaled_objects.all[index].next_poll.take() {
        sim.queue.cancel(timer);
    }
    autoscalers.retire_owned(sim, now, index as u32, plan.autoscaler.as_ref());
    if let Some(autoscaler) = &plan.autoscaler {
        replica_loop::apply(sim, autoscalers, scaled_objects, now, autoscaler, Some(index as u32));
        let first = first_poll(sim, now, name, object.polling_interval);
        scaled_objects.schedule(sim, index, first);
    }
    if let (Some(replicas), Some(target)) = (object.annotations.paused_replicas, target) {
        set_replicas(sim, now, target, replicas, EventKind::ReplicasSet, ("autoscaling.keda.sh/paused-replicas", ""));
    }
}

/// When an object that is there from the start was last active, if it says so: not after the start, whatever it says.
fn last_active(sim: &Sim<'_>, now: SimTime, plan: &ScalingPlan) -> Option<SimTime> {
    let stated = plan.object.last_active.filter(|_| now == SimTime::ZERO)?;
    let start = sim.setup.scenario.start.as_microsecond();
    Some(SimTime::from_micros(stated.as_micros() - start)).filter(|time| *time <= now)
}

/// The ScaledObject of this name is deleted, and the autoscaler that it owns; whether there is one. Its target keeps its replicas unless it
/// says that it gets back those that it had when the object came to be.
pub(super) fn retire(
    sim: &mut Sim<'_>,
    autoscalers: &mut ReplicaLoops<'_>,
    scaled_objects: &mut ScaledObjects<'_>,
    now: SimTime,
    name: ObjectName,
) -> bool {
    let known =
        scaled_objects.all.iter().position(|scaled_object| !scaled_object.retired && scaled_object.name() == name);
    let Some(index) = known else { return false };
    scaled_objects.all[index].retired = true;
    if let Some(timer) = scaled_objects.all[index].next_poll.take() {
        sim.queue.cancel(timer);
    }
    autoscalers.retire_owned(sim, now, index as u32, None);
    let scaled_object = &scaled_objects.all[index];
    let original = scaled_object.original.filter(|_| scaled_object.plan.object.restore_to_original_replica_count);
    if let (Some(replicas), Some(target)) = (original, scaled_object.target) {
        set_replicas(sim, now, target, replicas, EventKind::ReplicasSet, ("restoreToOriginalReplicaCount", ""));
    }
    true
}

/// How long after `now` a new object is polled first: at once, or, if it is there from the start, within one interval, at the
/// phase that the scenario states or at one of its own.
pub(super) fn first_poll(sim: &Sim<'_>, now: SimTime, name: ObjectName, interval: SimDuration) -> SimDuration {
    if now > SimTime::ZERO {
        return SimDuration::ZERO;
    }
    let drawn = || sim.streams.stream("keda-phase", &name.to_string()).span_up_to(interval);
    sim.setup.scenario.phases.keda.unwrap_or_else(drawn)
}

impl ScaledObjects<'_> {
    /// One poll of one ScaledObject.
    pub(super) fn poll(
        &mut self,
        sim: &mut Sim<'_>,
        prometheus: &Prometheus,
        queues: &mut Queues,
        now: SimTime,
        index: u32,
    ) {
        let index = index as usize;
        let plan = self.all[index].plan;
        let next = self.all[index].drift.after(plan.object.polling_interval);
        self.schedule(sim, index, next);
        let Some(target) = self.target(sim, index) else { return };
        let reads = self.read_all(sim, (prometheus, queues), now, index, target, false);
        let states: Vec<TriggerState> = reads.iter().map(|read| read.state).collect();
        let formula = plan.object.scaling_modifiers.as_ref().map(|modifiers| {
            let value = composite_milli(plan, &reads);
            value.is_ok_and(|milli| milli as f64 / 1e3 > modifiers.activation_target.as_f64())
        });
        let keda_loop = &self.all[index];
        let view = PollView {
            now,
            created: keda_loop.created,
            last_active: keda_loop.last_active,
            replicas: replicas_of(sim, target),
            active: is_active(&plan.object, &states, formula),
            failed: states.iter().any(|state| state.failed),
        };
        let decision = poll_decision(&plan.object, &view);
        if decision.refreshes_last_active {
            self.all[index].last_active = Some(sim.whole_seconds(now));
        }
        if decision.replicas != view.replicas {
            write(sim, now, target, plan, &view, &decision, &reads);
        }
    }

    /// What the autoscaler reads as its metric at `position`: the trigger's value, or that of the formula.
    ///
    /// # Errors
    /// A trigger fails and there is no fallback for it, or not yet.
    pub(super) fn external_metric(
        &mut self,
        sim: &mut Sim<'_>,
        prometheus: &Prometheus,
        queues: &mut Queues,
        now: SimTime,
        owner: u32,
        position: usize,
    ) -> Result<i64, String> {
        let index = owner as usize;
        let plan = self.all[index].plan;
        let Some(target) = self.target(sim, index) else {
            return Err("the scale target does not exist".to_owned());
        };
        if plan.object.scaling_modifiers.is_some() {
            let reads = self.read_all(sim, (prometheus, queues), now, index, target, true);
            return composite_milli(plan, &reads);
        }
        let read = self.read_one(sim, (prometheus, queues), now, (index, position), target, true);
        match read.outcome {
            FallbackRead::Value(milli) | FallbackRead::Synthetic(milli) => Ok(milli),
            FallbackRead::Nil | FallbackRead::Failed => Err(read.problem.unwrap_or_else(|| "it failed".to_owned())),
        }
    }

    /// Reads every trigger; those that metrics-server serves are idle and fail never.
    fn read_all(
        &mut self,
        sim: &mut Sim<'_>,
        (prometheus, queues): (&Prometheus, &mut Queues),
        now: SimTime,
        index: usize,
        target: WorkloadId,
        by_autoscaler: bool,
    ) -> Vec<TriggerReading> {
        let count = self.all[index].plan.object.triggers.len();
        (0..count)
            .map(|trigger| self.read_one(sim, (prometheus, &mut *queues), now, (index, trigger), target, by_autoscaler))
            .collect()
    }

    /// Reads one trigger, for a poll or for the autoscaler, which is served what the last poll read where the trigger says so.
    fn read_one(
        &mut self,
        sim: &mut Sim<'_>,
        (prometheus, queues): (&Prometheus, &mut Queues),
        now: SimTime,
        (index, trigger): (usize, usize),
        target: WorkloadId,
        by_autoscaler: bool,
    ) -> TriggerReading {
        let plan = self.all[index].plan;
        let spec = &plan.object.triggers[trigger];
        if spec.source.is_resource() {
            return TriggerReading { outcome: FallbackRead::Nil, state: TriggerState::default(), problem: None };
        }
        let mut memory = std::mem::take(&mut self.all[index].memory[trigger]);
        let cached = if by_autoscaler && spec.use_cached_metrics { memory.polled } else { None };
        let (value, active, problem) = match cached {
            Some(Some(milli)) => (Some(milli), false, None),
            Some(None) => (None, false, Some("the last poll failed".to_owned())),
            None => match triggers::read_current(sim, (prometheus, queues), now, &plan.sources(), trigger, &mut memory)
            {
                Ok(value) => (Some(value.milli), value.active, None),
                Err(problem) => (None, false, Some(problem)),
            },
        };
        if !by_autoscaler {
            memory.polled = Some(value);
        }
        note_failures(sim, now, plan, trigger, target, problem.as_deref(), &mut memory);
        let workload = sim.world.workload(target);
        let counts = FallbackCounts {
            replicas: replicas_of(sim, target),
            ready: i32::try_from(workload.ready).unwrap_or(i32::MAX),
        };
        let goal = fallback_goal(&plan.object, spec);
        let is_known = !matches!(plan.readers[trigger], TriggerReader::Unknown(_));
        let fallback = valid_fallback(&plan.object).filter(|_| is_known);
        let outcome = read_with_fallback(fallback, value, &mut memory.failures, goal, counts);
        self.all[index].memory[trigger] = memory;
        let in_fallback = matches!(outcome, FallbackRead::Synthetic(_) | FallbackRead::Nil);
        TriggerReading {
            outcome,
            state: TriggerState { active: active || in_fallback, failed: problem.is_some() },
            problem,
        }
    }
}

/// Writes what a poll decided, with the values of the triggers.
fn write(
    sim: &mut Sim<'_>,
    now: SimTime,
    target: WorkloadId,
    plan: &ScalingPlan,
    view: &PollView,
    decision: &PollDecision,
    reads: &[TriggerReading],
) {
    let values = reads_text(plan, reads);
    let (kind, reason) = match () {
        () if view.active => (EventKind::ScaleTargetActivated, "KEDA: a trigger is active".to_owned()),
        () if decision.replicas > view.replicas => {
            (EventKind::ScaleTargetActivated, "KEDA: below minReplicaCount".to_owned())
        }
        () => {
            let since = match view.last_active {
                Some(last) => format!("since {last}, longer than cooldownPeriod"),
                None => "and none ever was".to_owned(),
            };
            (EventKind::ScaleTargetDeactivated, format!("KEDA: no trigger is active, {since}"))
        }
    };
    set_replicas(sim, now, target, decision.replicas, kind, (&reason, &values));
}

fn set_replicas(
    sim: &mut Sim<'_>,
    now: SimTime,
    target: WorkloadId,
    replicas: i32,
    kind: EventKind,
    why: (&str, &str),
) {
    if replicas_of(sim, target) != replicas {
        sim.world.rescale(target, u32::try_from(replicas).unwrap_or(0), now, kind, why);
        workload_controllers::wake(sim, target);
    }
}

fn replicas_of(sim: &Sim<'_>, target: WorkloadId) -> i32 {
    i32::try_from(sim.world.workload(target).replicas).unwrap_or(i32::MAX)
}

/// Notes the first and the end of a series of failures.
fn note_failures(
    sim: &mut Sim<'_>,
    now: SimTime,
    plan: &ScalingPlan,
    trigger: usize,
    target: WorkloadId,
    problem: Option<&str>,
    memory: &mut TriggerMemory,
) {
    let failing = problem.is_some();
    if failing == memory.failing {
        return;
    }
    memory.failing = failing;
    let name = external_metric_name(&plan.object, trigger);
    let (kind, text) = match problem {
        Some(problem) => (EventKind::TriggerFailed, format!("{name}: {problem}")),
        None => (EventKind::TriggerRecovered, name.to_string()),
    };
    sim.world.note(now, kind, Some(target), text);
}

/// The formula's value in thousandths. While a trigger is in fallback its synthetic value stands for the whole.
fn composite_milli(plan: &ScalingPlan, reads: &[TriggerReading]) -> Result<i64, String> {
    let (Some(modifiers), Some(formula)) = (&plan.object.scaling_modifiers, &plan.formula) else {
        return Err("there is no formula".to_owned());
    };
    for read in reads {
        match read.outcome {
            FallbackRead::Synthetic(milli) => return Ok(milli),
            FallbackRead::Failed => return Err(read.problem.clone().unwrap_or_default()),
            FallbackRead::Value(_) | FallbackRead::Nil => {}
        }
    }
    let value = |name: &str| {
        let position = plan
            .object
            .triggers
            .iter()
            .position(|trigger| trigger.name.is_some_and(|this_name| this_name.as_str() == name))?;
        Some(match reads.get(position)?.outcome {
            FallbackRead::Value(milli) => Some(milli as f64 / 1e3),
            _ => None,
        })
    };
    let value = formula.evaluate(&value).map_err(|error| error.to_string())?;
    let replicas = plan.object.fallback.map(|fallback| fallback.replicas);
    Ok(composite(modifiers, value, replicas).milli)
}

/// Each trigger with its value, for the record.
fn reads_text(plan: &ScalingPlan, reads: &[TriggerReading]) -> String {
    let text = |(position, read): (usize, &TriggerReading)| {
        if plan.object.triggers[position].source.is_resource() {
            return None;
        }
        let name = external_metric_name(&plan.object, position);
        Some(match (&read.problem, read.outcome) {
            (Some(problem), _) => format!("{name}: {problem}"),
            (None, FallbackRead::Value(milli) | FallbackRead::Synthetic(milli)) => {
                let active = if read.state.active { "active" } else { "not active" };
                format!("{name} is {}, {active}", rounded(milli as f64 / 1e3))
            }
            (None, FallbackRead::Nil | FallbackRead::Failed) => format!("{name} is nil"),
        })
    };
    reads.iter().enumerate().filter_map(text).collect::<Vec<_>>().join("; ")
}

//! Why a pod requests what it does, where a VerticalPodAutoscaler is for it.

use serde::Serialize;

use super::Inquiry;
use crate::actors::inquiry::{self, ContainerAnswer, VerticalAnswer};
use crate::domain::vertical::UpdateMode;
use crate::domain::{PodId, ResourceName, SimDuration, SimTime};
use nodecast_vpa::{Cap, ResizeCondition, Verdict};

/// What a VerticalPodAutoscaler makes of a pod.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct VerticalFigures {
    /// Its namespace and name.
    pub autoscaler: String,
    /// Its mode.
    pub mode: UpdateMode,
    /// The instant that is told of: the one asked for, or the last before the pod was to go.
    pub at_seconds: f64,
    /// Whether the updater would change the pod in a look at that instant.
    pub changes: bool,
    /// What it would do, or why nothing.
    pub because: String,
    /// Each resource of each container of which something is recommended.
    pub resources: Vec<ResourceFigures>,
}

/// What is recommended for a resource of a container: CPU in thousandths, memory in bytes.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct ResourceFigures {
    /// The container.
    pub container: String,
    /// `cpu` or `memory`.
    pub resource: String,
    /// What it requests.
    pub request: Option<i64>,
    /// What it is to request.
    pub target: i64,
    /// A request below it is too small.
    pub lower_bound: Option<i64>,
    /// A request above it is too large.
    pub upper_bound: Option<i64>,
    /// The target before policies.
    pub uncapped_target: Option<i64>,
    /// What changed the target for this pod.
    pub capped_by: Vec<&'static str>,
}

impl Inquiry<'_> {
    /// What the VerticalPodAutoscaler of a pod made of it at an instant, or just before it was to go; `None` if there is none for it.
    pub(super) fn vertical(&self, pod: PodId, until: SimTime) -> Option<VerticalFigures> {
        let record = &self.outcome.record;
        let facts = record.pods.facts(pod);
        if !record.verticals.iter().any(|vertical| vertical.workload == facts.workload) {
            return None;
        }
        let before_it_went = facts.deletion_requested.map(|asked| asked - SimDuration::from_micros(1));
        let at = before_it_went.map_or(until, |before| until.min(before)).max(facts.created);
        let mut run = self.run_to(at);
        let answer = inquiry::vertical(run.components_mut(), at, pod)?;
        let resources = answer.containers.iter().flat_map(resources).collect();
        Some(VerticalFigures {
            autoscaler: answer.name.to_string(),
            mode: answer.mode,
            at_seconds: at.as_secs_f64(),
            changes: matches!(answer.verdict, Verdict::Evicted | Verdict::Resized),
            because: because(&answer),
            resources,
        })
    }
}

fn resources(container_answer: &ContainerAnswer) -> Vec<ResourceFigures> {
    let Some(recommended) = &container_answer.recommended else { return Vec::new() };
    let of = |(name, target): (ResourceName, i64)| ResourceFigures {
        container: container_answer.name.to_string(),
        resource: name.to_string(),
        request: container_answer.requests.find(name),
        target,
        lower_bound: recommended.lower_bound.find(name),
        upper_bound: recommended.upper_bound.find(name),
        uncapped_target: recommended.uncapped_target.find(name),
        capped_by: container_answer.caps.iter().filter(|(key, _)| *key == name).map(|(_, cap)| words(*cap)).collect(),
    };
    recommended.target.iter().map(of).collect()
}

const fn words(cap: Cap) -> &'static str {
    match cap {
        Cap::LimitRangeMin => "the minimum of a LimitRange",
        Cap::LimitRangeMax => "the maximum of a LimitRange",
        Cap::MinAllowed => "`minAllowed`",
        Cap::MaxAllowed => "`maxAllowed`",
        Cap::ContainerLimit => "the container's limit",
    }
}

/// What the updater would do with the pod, or why nothing.
fn because(answer: &VerticalAnswer) -> String {
    if answer.containers.iter().all(|container| container.recommended.is_none()) {
        return "nothing is recommended for it".to_owned();
    }
    match (answer.mode, answer.verdict) {
        (UpdateMode::Off, _) => "in this mode nobody writes into pods what is recommended".to_owned(),
        (UpdateMode::Initial, _) => "in this mode only pods that are made get what is recommended".to_owned(),
        (_, Verdict::Evicted) => format!("the updater evicts it, so that another gets it: {}", need(answer)),
        (_, Verdict::Resized) => format!("the updater resizes it where it runs: {}", need(answer)),
        (_, Verdict::EvictionRefused) => "the updater would evict it, and a PodDisruptionBudget refuses".to_owned(),
        (_, Verdict::ResizeRefused) => "the updater would resize it, and the API server refuses".to_owned(),
        (UpdateMode::InPlace, Verdict::AcceptedNoAction) => filtered(answer),
        (_, Verdict::AcceptedNoAction) => {
            "it is to change, but as many as may be missing at a time had their turn before".to_owned()
        }
        (_, Verdict::YoungInRange) => {
            "it requests what is within the bounds, and it is younger than twelve hours".to_owned()
        }
        (_, Verdict::ChangeTooSmall) => {
            format!("it requests what is within the bounds, and the change would be small: {}", change(answer))
        }
        (_, Verdict::OomWithoutChange) => "it was OOM-killed, and nothing would change".to_owned(),
        (_, Verdict::EvictionRequirement) => "`evictionRequirements` are not met".to_owned(),
        (_, Verdict::Crash) => "the real program dies of it: a LimitRange of pods would change a container for which nothing is recommended".to_owned(),
        (_, Verdict::Filtered) => filtered(answer),
    }
}

/// Why the updater does not look at a pod.
fn filtered(answer: &VerticalAnswer) -> String {
    let (pods, least) = answer.pods;
    match answer.resize {
        Some(ResizeCondition::Deferred) => "its resize waits until its node has room".to_owned(),
        Some(ResizeCondition::Infeasible) => "its resize never fits its node, and it may not be missing now".to_owned(),
        Some(_) => "its resize has not come off yet".to_owned(),
        None if (pods as i64) < i64::from(least) => {
            format!("there are fewer pods than the updater touches: {pods} of at least {least}")
        }
        None => "the updater does not look at it: it does not run, or none of its pods may be missing now".to_owned(),
    }
}

fn need(answer: &VerticalAnswer) -> String {
    let range = if answer.priority.outside_range { "it requests what is out of bounds" } else { "it has run for long" };
    format!("{range}, {}", change(answer))
}

/// How large the change would be, where anything is requested to which it could be compared.
fn change(answer: &VerticalAnswer) -> String {
    let percent = answer.priority.change * 100.0;
    if percent > 1e6 { "from no request at all".to_owned() } else { format!("by {percent:.1}% of its requests") }
}

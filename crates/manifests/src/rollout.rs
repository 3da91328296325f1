//! Argo's Rollouts, read as the Deployments that they stand for.
//!
//! Source: Argo Rollouts 1.8 `pkg/apis/rollouts/v1alpha1/types.go` and `utils/defaults/defaults.go`.

use std::sync::Arc;

use super::bounds::replicas;
use super::common::{int_or_percent, metadata};
use super::pod::OBJECT;
use super::workloads::{PROGRESS_DEADLINE, selected_pods};
use crate::lints;
use nodecast_model::domain::pod::{IntOrPercent, OwnerKind};
use nodecast_model::domain::workload::{Deployment, ObjectName};
use nodecast_model::domain::{LabelSelector, PodSpec, SimDuration, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

static ROLLOUT: Shape = Shape {
    name: "a Rollout's spec",
    keys: &[
        "replicas",
        "selector",
        "template",
        "strategy",
        "minReadySeconds",
        "progressDeadlineSeconds",
        "workloadRef",
    ],
    without_effect: &["revisionHistoryLimit", "analysis", "rollbackWindow", "progressDeadlineAbort", "restartAt"],
    unsupported: &[("paused", "the Rollout is taken as running")],
    strict: false,
};
static STRATEGY: Shape = Shape {
    name: "a Rollout's strategy",
    keys: &["canary", "blueGreen"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

static WORKLOAD_REFERENCE: Shape = Shape {
    name: "a Rollout's `workloadRef`",
    keys: &["apiVersion", "kind", "name", "scaleDown"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
/// Values of `scaleDown`: whether the workload has no replicas once the Rollout has its own.
const SCALE_DOWN: &[(&str, bool)] = &[("never", false), ("onsuccess", true), ("progressively", true)];

/// The kind of what a Rollout is read as.
const DEPLOYMENT: &str = "Deployment";

/// A Rollout that takes its template from another workload (`workloadRef`).
#[derive(Clone, PartialEq, Debug)]
pub struct RolloutOfWorkload {
    /// Namespace and name.
    pub name: ObjectName,
    /// Kind and name of the workload.
    pub workload: (Symbol, ObjectName),
    /// Whether it scales that workload down (`scaleDown: onsuccess` or `progressively`): not unless it says so.
    pub scales_down: bool,
    /// What is its own: replicas, limits and times.
    pub own: RolloutSettings,
}

/// What a Rollout says besides its pods.
#[derive(Clone, PartialEq, Debug)]
pub struct RolloutSettings {
    replicas: Option<u32>,
    max_surge: Option<IntOrPercent>,
    max_unavailable: Option<IntOrPercent>,
    min_ready: SimDuration,
    progress_deadline: SimDuration,
}

impl RolloutSettings {
    /// The Deployment of this name and these pods.
    pub(super) fn deployment(&self, name: ObjectName, selector: LabelSelector, template: Arc<PodSpec>) -> Deployment {
        Deployment {
            name,
            replicas: self.replicas,
            selector,
            template,
            rolls_out: true,
            max_surge: self.max_surge,
            max_unavailable: self.max_unavailable,
            min_ready: self.min_ready,
            progress_deadline: self.progress_deadline,
        }
    }
}

/// A Rollout, by who has its template.
pub(super) enum Rollout {
    OwnTemplate(Deployment),
    OfWorkload(RolloutOfWorkload),
}

/// A Rollout object.
pub(super) fn rollout<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<Rollout, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name;
    let spec = reader.fields(fields.required(reader, "spec")?, &ROLLOUT)?;
    let (max_surge, max_unavailable) = strategy(reader, spec)?;
    let seconds = |key| spec.optional(key, |n, what| reader.seconds(n, what));
    let rollout_settings = RolloutSettings {
        replicas: replicas(reader, spec, "replicas")?,
        max_surge,
        max_unavailable,
        min_ready: seconds("minReadySeconds")?.unwrap_or(SimDuration::ZERO),
        progress_deadline: seconds("progressDeadlineSeconds")?.unwrap_or(PROGRESS_DEADLINE),
    };
    if let Some(node) = spec.get("workloadRef") {
        let reference = reader.fields(node, &WORKLOAD_REFERENCE)?;
        let kind = reader.symbol(reference.required(reader, "kind")?, "kind")?;
        let workload = reader.symbol(reference.required(reader, "name")?, "name")?;
        let scales_down = reference.optional("scaleDown", |n, what| reader.choice(n, what, SCALE_DOWN))?;
        let workload = (kind, ObjectName { name: workload, ..name });
        let scales_down = scales_down.unwrap_or(false);
        return Ok(Rollout::OfWorkload(RolloutOfWorkload { name, workload, scales_down, own: rollout_settings }));
    }
    let (selector, template) = selected_pods(reader, spec, OwnerKind::ReplicaSet)?;
    Ok(Rollout::OwnTemplate(rollout_settings.deployment(name, selector, Arc::new(template))))
}

/// How many pods an update may have too many and too few. One of blue and green has a second set of all.
fn strategy<'s>(
    reader: &mut Reader<'s>,
    spec: Fields<'_, 's>,
) -> Result<(Option<IntOrPercent>, Option<IntOrPercent>), InputError> {
    let quarter = Some(IntOrPercent::Percent(25));
    let Some(node) = spec.get("strategy") else { return Ok((quarter, quarter)) };
    let fields = reader.fields(node, &STRATEGY)?;
    if let Some(node) = fields.get("blueGreen") {
        reader.warn(
            &lints::BLUE_GREEN,
            node.at,
            "blue and green of a Rollout are simulated as an update that makes all new pods first",
            "",
            "promotions happen immediately",
        );
        return Ok((Some(IntOrPercent::Percent(100)), Some(IntOrPercent::Count(0))));
    }
    let Some(canary) = fields.get("canary") else { return Ok((quarter, quarter)) };
    if let Some(steps) = canary.get("steps").filter(|steps| !steps.items().is_empty()) {
        let message = "Rollout steps are not simulated; updates proceed like a Deployment's";
        reader.left_out(&lints::CANARY_STEPS, steps.at, message, "");
    }
    let limit = |key| canary.get(key).map(|node| int_or_percent(reader, node, key)).transpose();
    Ok((limit("maxSurge")?.or(quarter), limit("maxUnavailable")?.or(quarter)))
}

/// Kinds that are read as Deployments.
const AS_DEPLOYMENTS: [&str; 3] = ["Rollout", "ReplicaSet", "ReplicationController"];

/// The kind of a workload that is scaled: some are read as Deployments.
pub(super) fn scaled_kind(kind: Symbol) -> Symbol {
    if AS_DEPLOYMENTS.contains(&kind.as_str()) { Symbol::new(DEPLOYMENT) } else { kind }
}

//! Argo's Rollouts, read as the Deployments that they stand for.
//!
//! Source: Argo Rollouts 1.8 `pkg/apis/rollouts/v1alpha1/types.go` and `utils/defaults/defaults.go`.

use std::sync::Arc;

use super::bounds::replicas;
use super::common::{int_or_percent, metadata};
use super::pod::OBJECT;
use super::workloads::{PROGRESS_DEADLINE, selected_pods};
use crate::domain::pod::{IntOrPercent, OwnerKind};
use crate::domain::workload::Deployment;
use crate::domain::{SimDuration, Symbol};
use crate::text::InputError;
use crate::text::error::Effect;
use crate::text::reader::{Fields, Reader, Shape};
use crate::text::tree::Node;

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

/// The kind of what a Rollout is read as.
const DEPLOYMENT: &str = "Deployment";

/// A Rollout as a Deployment; nothing if another object has its template.
pub(super) fn rollout<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<Option<Deployment>, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name;
    let spec = reader.fields(fields.required(reader, "spec")?, &ROLLOUT)?;
    if let Some(node) = spec.get("workloadRef") {
        let message = format!("Rollout {name} takes its template from another object: its pods are left out");
        reader.note(
            Effect::ChangesAnswer,
            node.at,
            message,
            "not followed",
            "write the template into the Rollout, or a Deployment in its place",
        );
        return Ok(None);
    }
    let (selector, template) = selected_pods(reader, spec, OwnerKind::ReplicaSet)?;
    let (max_surge, max_unavailable) = strategy(reader, spec)?;
    Ok(Some(Deployment {
        name,
        replicas: replicas(reader, spec, "replicas")?,
        selector,
        template: Arc::new(template),
        max_surge,
        max_unavailable,
        min_ready: spec.optional("minReadySeconds", |n, what| reader.seconds(n, what))?.unwrap_or(SimDuration::ZERO),
        progress_deadline: spec
            .optional("progressDeadlineSeconds", |n, what| reader.seconds(n, what))?
            .unwrap_or(PROGRESS_DEADLINE),
    }))
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
        reader.note(
            Effect::MayChangeAnswer,
            node.at,
            "blue and green of a Rollout are simulated as an update that makes all new pods first",
            "",
            "what waits for a promotion goes on at once",
        );
        return Ok((Some(IntOrPercent::Percent(100)), Some(IntOrPercent::Count(0))));
    }
    let Some(canary) = fields.get("canary") else { return Ok((quarter, quarter)) };
    if let Some(steps) = canary.get("steps").filter(|steps| !steps.items().is_empty()) {
        let message = "the steps of a Rollout are not simulated: its updates go on as those of a Deployment";
        reader.left_out(steps.at, message, "");
    }
    let limit = |key| canary.get(key).map(|node| int_or_percent(reader, node, key)).transpose();
    Ok((limit("maxSurge")?.or(quarter), limit("maxUnavailable")?.or(quarter)))
}

/// The kind of a workload that is scaled: a Rollout is read as a Deployment.
pub(super) fn scaled_kind(kind: Symbol) -> Symbol {
    if kind.as_str() == "Rollout" { Symbol::new(DEPLOYMENT) } else { kind }
}

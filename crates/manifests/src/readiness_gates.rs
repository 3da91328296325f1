//! Readiness gates: conditions that others than the kubelet set before a pod is Ready.
//!
//! Source: Kubernetes 1.36 `pkg/kubelet/status/generate.go`, `GeneratePodReadyCondition`.

use super::pod::names;
use crate::lints;
use nodecast_model::domain::Symbol;
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader};

/// Beginnings of conditions of which it is known who sets them: the AWS Load Balancer Controller, now and in its first version, which adds
/// these gates to pods by itself, and OpenKruise, which sets its own from the start.
///
/// Source: AWS Load Balancer Controller 2 `docs/deploy/pod_readiness_gate.md`; OpenKruise 1 `apis/apps/pub`.
const KNOWN: [&str; 4] =
    ["target-health.elbv2.k8s.aws", "target-health.alb.ingress.k8s.aws/", "InPlaceUpdateReady", "KruisePodReady"];

/// The conditions that a pod waits for before it is Ready. All count as met: a warning says so of those that no controller sets of which
/// that is known.
pub(super) fn read<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>) -> Result<Vec<Symbol>, InputError> {
    let gates = names(reader, fields, "readinessGates", "conditionType")?;
    let is_known = |gate: &Symbol| KNOWN.iter().any(|known| gate.as_str().starts_with(known));
    if let (Some(node), Some(unknown)) = (fields.get("readinessGates"), gates.iter().find(|gate| !is_known(gate))) {
        let message =
            format!("the controller that sets `{unknown}` is not simulated; assuming the readiness gate is met");
        reader.left_out(
            &lints::READINESS_GATE,
            node.at,
            message,
            "a pod of which nobody sets the condition never becomes Ready",
        );
    }
    Ok(gates)
}

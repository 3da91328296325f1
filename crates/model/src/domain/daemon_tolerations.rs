//! What the DaemonSet controller gives to the pods that it makes.

use super::symbol::well_known;
use super::{TaintEffect, Toleration};

/// What the pods of every DaemonSet tolerate beside what their template says: nodes that are not ready, cordoned or short of
/// something.
///
/// Source: Kubernetes 1.36 `pkg/controller/daemon/util`, `AddOrUpdateDaemonPodTolerations`.
pub fn daemon_tolerations() -> impl Iterator<Item = Toleration> {
    [
        (well_known::TAINT_NOT_READY, TaintEffect::NoExecute),
        (well_known::TAINT_UNREACHABLE, TaintEffect::NoExecute),
        (well_known::TAINT_DISK_PRESSURE, TaintEffect::NoSchedule),
        (well_known::TAINT_MEMORY_PRESSURE, TaintEffect::NoSchedule),
        (well_known::TAINT_PID_PRESSURE, TaintEffect::NoSchedule),
        (well_known::TAINT_UNSCHEDULABLE, TaintEffect::NoSchedule),
    ]
    .into_iter()
    .map(|(key, effect)| Toleration::exists(key, Some(effect)))
}

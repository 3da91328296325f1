//! What pods use beside requests that are simulated: CPU and memory as curves.

use super::kind::{Amount, Name, Placed, Positive, words};
use super::load::RequestsKeys;
use super::names::Running;
use crate::definition::{StartUpUse, UsageSpec};
use crate::file::usage;

section! {
    /// What the pods of a workload use, stated as curves from the start of the run. It comes on top of what requests and messages use, is
    /// seen by metrics-server, and is what the Vertical Pod Autoscaler and `nodecast rightsize` go by. A container is held to its CPU
    /// limit, and killed when it uses more memory than its memory limit. One of `cpu`, `memory` and `start_up` has to be there.
    USAGE: "an entry of `usage`", "`usage[]`: what pods use";
    example "usage:
  - workload: shop/web
    container: app
    per: pod
    cpu: { diurnal: { night: 0.05, peak: 0.4 }, uncertainty: { factor: 10%, noise: 20% } }   # cores of each pod
    memory: { ramp: { from: 180, to: 420, over: 12h, every: 10m } }             # MiB of each pod
    start_up: { cpu: 1.5, for: 40s }
  - { workload: shop/worker, per: workload, cpu: { constant: 2 }, memory: { constant: 6000 } }   # of all its pods together
";
    becomes UsageSpec, usage::usage;
    struct UsageEntry: {
        /// The Deployment, StatefulSet, or DaemonSet whose pods use it.
        workload: Placed<Running>;
        /// The container that uses it; a sidecar among the init containers (`restartPolicy: Always`) may be named, too.
        container: Name, or "all, in the proportion of what the template has them request";
        /// Whether the curves are of one pod, or of all Ready pods together, which then share.
        per: Per = false;
        /// What each pod uses beyond the rest as it starts: a runtime that loads and compiles, a cache that is filled.
        start_up: StartUpUse, or "nothing more than later";
    } aside {
        /// CPU, in cores: a curve as under `requests`, without `trace`, `closed_loop` and `arrivals`.
        cpu: RequestsKeys, or "none but for requests";
        /// Memory, likewise, in MiB; a `csv` has the columns `t_seconds` and `mebibytes`, an answer of Prometheus is in bytes.
        memory: RequestsKeys, or "none but for requests";
    }
}

section! {
    /// From the start of a pod's containers on, ready or not, up to the CPU limit. Whoever scales by CPU sees it, and the Vertical Pod
    /// Autoscaler sizes for it. It does not make a start longer.
    START_UP: "`start_up`", "`usage[].start_up`";
    impl StartUpUse {
        /// CPU, in cores, on top of what else is stated.
        cpu: Amount;
        /// For how long.
        "for" as length: Positive;
    }
}

words! {
    /// Of whom a curve tells: whether of the whole workload.
    Per: bool, "pod" => false, "workload" => true
}

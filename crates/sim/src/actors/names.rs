//! The random names of NodeClaims and nodes. Karpenter fills nodes in order of their names, so that what the API server draws
//! decides where pods go. Reports call a node by its pool and a number.

use super::sim::Sim;
use crate::cluster::DrawnNames;
use crate::domain::Symbol;
use crate::engine::Streams;

/// The letters of generated names.
///
/// Source: Kubernetes 1.36 `staging/src/k8s.io/apimachinery/pkg/util/rand/rand.go`, `alphanums`.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// How many of them end a generated name.
///
/// Source: Kubernetes 1.36 `staging/src/k8s.io/apiserver/pkg/storage/names/generate.go`, `randomLength`.
const LENGTH: usize = 5;

/// The names of the `number`-th claim of a NodePool and of its node.
pub(super) fn of_claim(sim: &Sim<'_>, pool: Symbol, number: u32) -> Option<DrawnNames> {
    let mut letters = sim.streams.nth("claim-name", pool.as_str(), u64::from(number));
    let claim = format!("{pool}-{}", letters.letters(LETTERS, LENGTH)).into();
    let node = of_node(sim, pool, number)?.node;
    Some(DrawnNames { claim, node })
}

/// The name of the `number`-th node of a pool or group, which is that of its address: in the subnets of a VPC of 65,536.
pub(super) fn of_node(sim: &Sim<'_>, owner: Symbol, number: u32) -> Option<DrawnNames> {
    let [one, two, ..] = sim.streams.nth("node-name", owner.as_str(), u64::from(number)).word().to_le_bytes();
    let node: Box<str> = format!("ip-10-0-{one}-{two}.{}.compute.internal", sim.setup.region.name).into();
    Some(DrawnNames { claim: node.clone(), node })
}

/// The name of the `number`-th Job of a ScaledJob.
///
/// Source: KEDA 2.20 `pkg/scaling/executor/scale_jobs.go`, `generateJobs`.
pub(super) fn of_job(streams: &Streams, scaled_job: Symbol, number: u64) -> String {
    let mut letters = streams.nth("job-name", scaled_job.as_str(), number);
    format!("{scaled_job}-{}", letters.letters(LETTERS, LENGTH))
}

/// The names of a node that is there when the run begins.
pub(super) fn of_found(claim: &str, node: &str) -> DrawnNames {
    DrawnNames { claim: claim.into(), node: node.into() }
}

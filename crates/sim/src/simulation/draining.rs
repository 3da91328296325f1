//! Warnings about nodes that are to go and do not get rid of their pods: they run and are billed for as long as that takes.

use std::collections::BTreeSet;

use crate::actors::Sim;
use crate::actors::inquiry::DrainBlocker;
use crate::cluster::NodeOrigin;
use crate::domain::workload::ObjectName;
use crate::domain::{NodeId, PodId, SimDuration, SimTime, Symbol};
use nodecast_karpenter::release::Behaviour;

/// A node that has been draining for so long at the end of a run is told of.
const LONG: SimDuration = SimDuration::from_secs(15 * 60);
/// So many are told of.
const TOLD_MAX: usize = 5;

/// What keeps nodes of a NodePool, and pods of which workload where that is what to look at.
type BlockedDrain = (Symbol, DrainBlocker, Option<ObjectName>);

/// Nodes of NodePools that have been draining for long at the end of the run, with their NodePools.
pub(super) fn long(sim: &Sim<'_>, end: SimTime) -> Vec<(NodeId, Symbol)> {
    let nodes = sim.world.record().nodes.iter().enumerate();
    let long =
        nodes.filter(|(_, facts)| facts.is_draining() && facts.deletion_requested.is_some_and(|at| end - at >= LONG));
    let of_pools = long.filter_map(|(index, facts)| match facts.origin {
        NodeOrigin::NodePool(pool) => Some((NodeId::from_index(index), pool)),
        NodeOrigin::NodeGroup(_) | NodeOrigin::Fargate(_) => None,
    });
    of_pools.collect()
}

/// A sentence for each thing that keeps nodes of a NodePool from being drained as the run ends; `kept` has the pods that keep a node of the
/// NodePool. It tells of no figure that depends on the seed, so that it stands once where many runs are compared.
pub(super) fn stuck(sim: &Sim<'_>, end: SimTime, kept: Vec<(Symbol, PodId, DrainBlocker)>) -> Vec<String> {
    let mut found: BTreeSet<BlockedDrain> = BTreeSet::new();
    for (pool, pod, keeper) in kept {
        if keeper != DrainBlocker::Stops || stops_for_long(sim, end, pod) {
            let workload = sim.world.workload(sim.world.pod(pod).workload).name;
            let workload = (!matches!(keeper, DrainBlocker::Budget(_))).then_some(workload);
            found.insert((pool, keeper, workload));
        }
    }
    found.iter().take(TOLD_MAX).map(|item| sentence(sim, item)).collect()
}

fn stops_for_long(sim: &Sim<'_>, end: SimTime, pod: PodId) -> bool {
    let facts = sim.world.record().pods.get(pod);
    facts.and_then(|facts| facts.deletion_requested).is_some_and(|asked| end - asked >= LONG)
}

fn sentence(sim: &Sim<'_>, (pool, keeper, workload): &BlockedDrain) -> String {
    let of = workload.map_or_else(String::new, |name| format!(" of {name}"));
    let (why, way_out) = match keeper {
        DrainBlocker::Budget(budget) => (
            format!("PodDisruptionBudget {budget} allows no disruptions"),
            "allow at least one disruption in that budget",
        ),
        DrainBlocker::SeveralBudgets(budgets) => {
            let names: Vec<String> = budgets.iter().map(ToString::to_string).collect();
            let why = format!(
                "PodDisruptionBudgets {} select the same pods{of}, which therefore can never be evicted",
                names.join(", ")
            );
            (why, "select these pods with only one budget")
        }
        DrainBlocker::DoNotDisrupt => {
            (format!("pods{of} have the annotation `karpenter.sh/do-not-disrupt`"), "remove the annotation")
        }
        DrainBlocker::Stops => {
            (format!("pods{of} are terminating but still running"), "shorten their `terminationGracePeriodSeconds`")
        }
    };
    format!(
        "NodePool {pool}: at the end of the run a node has been draining for over 15 minutes and is still billed: {why}; {way_out}{}",
        in_time(sim, *pool)
    )
}

/// What ends a drain whatever keeps the pods, from Karpenter v1 on.
fn in_time(sim: &Sim<'_>, pool: Symbol) -> String {
    let setup = sim.setup;
    let stated = setup
        .node_pools
        .iter()
        .find(|node_pool| node_pool.name == pool)
        .and_then(|node_pool| node_pool.termination_grace_period);
    match stated {
        Some(grace) => format!(" (`terminationGracePeriod` of {grace} will end the drain)"),
        None if Behaviour::for_release(setup.policy.versions.karpenter).v1_api => {
            ", or set `terminationGracePeriod` in the NodePool to force deletion after that time".to_owned()
        }
        None => String::new(),
    }
}

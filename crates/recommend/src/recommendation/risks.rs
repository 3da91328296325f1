//! Risks of changes: a fixed text for each kind of lever.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::levers::Kind;

/// Risk of a change, for the person who decides on it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Risk {
    /// Effect on availability that the simulation may not show.
    pub availability: Cow<'static, str>,
    /// How to take it back.
    pub reversibility: Cow<'static, str>,
    /// Work and decisions that it needs from people.
    pub needs: Cow<'static, str>,
}

const APPLY: &str = "apply the previous object";
const APPLY_PODS: &str = "apply the previous object; pods restart";

/// The risk of a change by this kind of lever.
pub fn risk(kind: Kind) -> Risk {
    let (availability, reversibility, needs) = match kind {
        Kind::Consolidation | Kind::ConsolidateAfter | Kind::Budgets => {
            ("more or fewer evictions", APPLY, "PodDisruptionBudgets where an eviction hurts")
        }
        Kind::Blockers => (
            "pods that were never evicted are evicted; a single replica is away until it is Ready again",
            APPLY,
            "owners who know why each blocker exists and that their pods stop and start cleanly",
        ),
        Kind::Families | Kind::Sizes | Kind::GroupTypes => (
            "other processors and sizes; a group of few types has less spare capacity",
            "apply the previous object; nodes are replaced",
            "a load test if response times matter",
        ),
        Kind::Architectures => (
            "an image without this architecture does not start",
            "apply the previous object; nodes are replaced",
            "images for each architecture",
        ),
        Kind::Spot => (
            "EC2 reclaims Spot nodes with a notice of 2 minutes",
            "apply the previous object; nodes are replaced",
            "pods that stop within 2 minutes and have several replicas",
        ),
        Kind::Weights => ("none known", APPLY, "none"),
        Kind::Limits => ("none known; a fault can launch more nodes", APPLY, "an alarm on the bill"),
        Kind::Split => (
            "pods move to other nodes once",
            "apply the previous objects; pods restart",
            "owners who agree that their pods restart",
        ),
        Kind::HpaTargets | Kind::HpaMinimum | Kind::HpaBehavior => (
            "less spare capacity for a sudden load",
            APPLY,
            "a check of the load that was simulated: are rarer peaks higher?",
        ),
        Kind::Requests => (
            "a pod that uses more than before is OOM-killed or throttled",
            APPLY_PODS,
            "a rollout by the owners of the workloads",
        ),
        Kind::DaemonSets => (
            "an agent that uses more than before competes with other pods of its node",
            APPLY_PODS,
            "a rollout by the owners of the agents",
        ),
        Kind::Schedules => (
            "nobody is served while there are no replicas, and the first request or message waits for a start",
            "delete the ScaledObject, apply the previous objects",
            "KEDA in the cluster, and users who agree with the hours",
        ),
        Kind::Headroom => ("less or more spare capacity for a sudden load", APPLY, "none"),
        Kind::GroupSizes => ("less spare capacity until the group scales up", APPLY, "none"),
        Kind::Flags => ("more or fewer evictions", "set the previous flags; the autoscaler restarts", "none"),
        Kind::Volumes => (
            "less disk performance or space where the label of the value says so",
            "apply the previous object; existing volumes keep their type until they are recreated",
            "disk metrics of the busiest volumes",
        ),
        Kind::UnusedCommitments => (
            "pods run on the family that is paid already; its capacity is shared with other families today",
            "apply the previous object; nodes are replaced",
            "a check that the commitment is not used by another cluster or account",
        ),
        Kind::Support => (
            "removed APIs and changed defaults of the newer release",
            "not reversible: a control plane cannot be downgraded",
            "an upgrade of the control plane, nodes, and add-ons, and tests of manifests",
        ),
        Kind::Zones => (
            "a zone outage takes a larger share of the pods, or all of them",
            "apply the previous object; nodes are replaced",
            "owners who accept fewer zones, and a plan for a zone outage",
        ),
        Kind::TopologyRouting => (
            "replicas of a zone with more clients have more load",
            APPLY,
            "enough replicas in each zone, and a load test",
        ),
        Kind::Endpoints => (
            "none known",
            "delete the endpoint; traffic goes through the NAT gateway again",
            "a change of the VPC: route tables or security groups",
        ),
        Kind::Commitments => (
            "none",
            "not reversible: it is paid for the full term",
            "approval of a contract, and a year that is like the simulated time",
        ),
    };
    let text = Cow::Borrowed;
    Risk { availability: text(availability), reversibility: text(reversibility), needs: text(needs) }
}

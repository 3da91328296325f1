//! NodePools as the API of a release has them: what it does not know is dropped, as the API server drops it.
//!
//! Source: the CRDs of Karpenter core v0.31, v0.37 and v1.0; section 2 of docs/karpenter-releases.md.

use super::{Behaviour, LabelSet, NodeLimit, caveats};
use nodecast_model::domain::node_pool::ConsolidationPolicy;
use nodecast_model::domain::{KarpenterVersion, NodePool, ResourceName, SimDuration, Symbol, well_known};

/// Drops from a NodePool what the release's API does not know. Releases before v0.23 read a Provisioner as it is.
pub fn apply_api(release: KarpenterVersion, pool: &mut NodePool) {
    let behaviour = Behaviour::for_release(release);
    if !behaviour.knows_min_values {
        for requirement in &mut pool.requirements {
            requirement.min_values = None;
        }
    }
    if !behaviour.labels_tenancy {
        pool.requirements.retain(|requirement| requirement.key != well_known::INSTANCE_TENANCY);
    }
    if !behaviour.labels.says_pods() {
        pool.requirements.retain(|requirement| requirement.key != well_known::INSTANCE_PODS);
    }
    if !behaviour.knows_budgets {
        pool.disruption.budgets.clear();
    }
    if !behaviour.v1_api {
        pool.termination_grace_period = None;
        for budget in &mut pool.disruption.budgets {
            budget.reasons = None;
        }
    }
    if has_no_delay(behaviour, pool) {
        pool.disruption.consolidate_after = Some(SimDuration::ZERO);
    }
    if is_without_replicas(behaviour) {
        pool.replicas = None;
    }
    if behaviour.node_limit == NodeLimit::NoEffect && pool.replicas.is_none() {
        pool.limits.remove(ResourceName::NODES);
    }
}

/// Whether consolidation of the pool's nodes does not wait, whatever `consolidateAfter` says (`v1beta1`).
fn has_no_delay(behaviour: &Behaviour, pool: &NodePool) -> bool {
    behaviour.disruption_loop
        && !behaviour.v1_disruption
        && pool.disruption.policy != ConsolidationPolicy::WhenEmpty
        && pool.disruption.consolidate_after.is_some()
}

/// Whether the API knows no `replicas`. Before v0.23 they are read all the same, and such a pool has no nodes.
fn is_without_replicas(behaviour: &Behaviour) -> bool {
    behaviour.reads_notices && behaviour.weighs_open_types && !behaviour.knows_static_pools
}

/// What is to be said of the release and of what NodePools, as they were written, state that it does not know.
pub fn warnings(release: KarpenterVersion, pools: &[NodePool]) -> Vec<String> {
    let mut warnings = Vec::new();
    let reproduced = release.reproduced();
    if release.is_main() {
        warnings.push(
            "Karpenter main is unreleased: its rules are those of 2026-08-20, after v1.14.1, and can change before v1.15".to_owned(),
        );
    }
    if reproduced != release {
        warnings.push(format!("Karpenter {release} is not reproduced: {reproduced} stands in"));
    }
    warnings.extend(caveats(release).iter().map(|caveat| format!("Karpenter {release}: {caveat}")));
    for pool in pools {
        let name = pool.name;
        warnings.extend(unread_kind(release, pool).filter(|_| !pool.legacy));
        let unknown = unknown_fields(release, pool);
        warnings.extend(unknown.into_iter().map(|field| format!("NodePool {name}: Karpenter {release} {field}")));
    }
    warnings
}

/// What is to be said of a pool whose kind the release does not read: a NodePool before v0.32, a Provisioner after it. [`warnings`] say the
/// first themselves; the second is said where it is known in which file the object stands.
///
/// Source: Karpenter's upgrade guide, `website/content/en/v0.33/upgrading/upgrade-guide.md` ("only supports Karpenter v1beta1 APIs").
pub fn unread_kind(release: KarpenterVersion, pool: &NodePool) -> Option<String> {
    let behaviour = Behaviour::for_release(release);
    let name = pool.name;
    match pool.legacy {
        true if !behaviour.reads_provisioners => Some(format!(
            "Provisioner {name}: Karpenter {release} reads no Provisioner, v0.32 was the last to: it is taken for a NodePool without what those \
             releases add to it (amd64, On-Demand, families c, m and r), which no cluster has; state the release that runs"
        )),
        false if behaviour.defaults_for_node_pools => Some(format!(
            "NodePool {name}: Karpenter {release} knows Provisioners, and NodePools came with v0.32: it is read as a Provisioner"
        )),
        _ => None,
    }
}

/// Takes the Provisioners out that the release does not read and that stand beside NodePools, as a cluster keeps them whose upgrade is
/// over; their names, and what is to be said of each. Without a NodePool nothing else says what may be launched: they stay then.
///
/// Source: as that of [`unread_kind`].
pub fn leave_out_unread(release: KarpenterVersion, pools: &mut Vec<NodePool>) -> Vec<(Symbol, String)> {
    if Behaviour::for_release(release).reads_provisioners || pools.iter().all(|pool| pool.legacy) {
        return Vec::new();
    }
    let (unread, read) = std::mem::take(pools).into_iter().partition::<Vec<NodePool>, _>(|pool| pool.legacy);
    *pools = read;
    let told = unread.into_iter().map(|pool| {
        let name = pool.name;
        let text = format!(
            "Provisioner {name} is left out: Karpenter {release} reads no Provisioner, v0.32 was the last to, and there are NodePools beside it"
        );
        (name, text)
    });
    told.collect()
}

/// What of a NodePool the release does not know, as the rest of a sentence about the release. Releases before v0.23 are not asked.
fn unknown_fields(release: KarpenterVersion, pool: &NodePool) -> Vec<&'static str> {
    let behaviour = Behaviour::for_release(release);
    let disruption = &pool.disruption;
    let delays = disruption.consolidate_after.is_some_and(|after| after > SimDuration::ZERO);
    let own_budgets = disruption.budgets != nodecast_model::domain::node_pool::Disruption::default().budgets;
    let limits_nodes = pool.limits.find(ResourceName::NODES).is_some() && pool.replicas.is_none();
    let asks = |key| pool.requirements.iter().any(|requirement| requirement.key == key);
    let stated = [
        (
            !behaviour.labels_tenancy && asks(well_known::INSTANCE_TENANCY),
            "refuses a requirement on `karpenter.k8s.aws/instance-tenancy`, which came with v1.9: it is left out",
        ),
        (
            behaviour.labels >= LabelSet::V1 && asks(well_known::INSTANCE_PODS),
            "gives no node the label `karpenter.k8s.aws/instance-pods`, which v1beta1 dropped: the requirement on it is left out",
        ),
        (
            !behaviour.knows_min_values && pool.requirements.iter().any(|requirement| requirement.min_values.is_some()),
            "does not know `minValues`, which came with v0.35: it has no effect",
        ),
        (
            !behaviour.knows_budgets && own_budgets && !pool.legacy,
            "does not know disruption budgets, which came with v0.34: nothing limits how many nodes go at once",
        ),
        (
            behaviour.knows_budgets
                && !behaviour.v1_api
                && disruption.budgets.iter().any(|budget| budget.reasons.is_some()),
            "does not know `reasons` of budgets, which came with v1.0: such a budget is for every reason",
        ),
        (
            !behaviour.v1_api && pool.termination_grace_period.is_some(),
            "does not know `terminationGracePeriod`, which came with v1.0: it has no effect",
        ),
        (
            has_no_delay(behaviour, pool) && delays,
            "refuses `consolidateAfter` beside `WhenUnderutilized` (v1.0 takes it): consolidation does not wait",
        ),
        (
            behaviour.node_limit == NodeLimit::NoEffect && limits_nodes,
            "counts no nodes, which came with v1.0: the limit on `nodes` has no effect",
        ),
        (
            behaviour.node_limit == NodeLimit::AtCreation && limits_nodes,
            "checks the limit on `nodes` only when it creates a claim, and stops at more than the limit: the pool gets at least one node \
             more, and as many as one pass asks for; v1.11 stops at the limit",
        ),
        (
            is_without_replicas(behaviour) && pool.replicas.is_some(),
            "does not know `replicas`, which came with v1.8: the pool is not static",
        ),
    ];
    stated.into_iter().filter(|(holds, _)| *holds).map(|(_, words)| words).collect()
}

#[cfg(test)]
mod tests {
    use super::{apply_api, leave_out_unread, unread_kind, warnings};
    use nodecast_model::domain::node_pool::{Budget, ConsolidationPolicy, DisruptionReason};
    use nodecast_model::domain::pod::IntOrPercent;
    use nodecast_model::domain::{NodePool, Requirement, ResourceName, SimDuration, Symbol, well_known};

    fn pool() -> NodePool {
        let mut pool = NodePool::named("default");
        pool.requirements.push(Requirement::equals(well_known::ARCH, well_known::AMD64).with_min_values(Some(1)));
        pool.termination_grace_period = Some(SimDuration::from_secs(60));
        pool.limits.set(ResourceName::NODES, 3);
        pool.disruption.consolidate_after = Some(SimDuration::from_secs(600));
        let reasons = Some(vec![DisruptionReason::Empty]);
        pool.disruption.budgets =
            vec![Budget { nodes: IntOrPercent::Count(2), reasons, schedule: None, duration: None }];
        pool
    }

    /// Whether `minValues`, budgets, their reasons, the grace period, the delay and the limit on nodes are left.
    fn left(release: &str) -> [bool; 6] {
        let mut pool = pool();
        apply_api(release.parse().unwrap(), &mut pool);
        let budget = pool.disruption.budgets.first();
        [
            pool.requirements[0].min_values.is_some(),
            budget.is_some(),
            budget.is_some_and(|budget| budget.reasons.is_some()),
            pool.termination_grace_period.is_some(),
            pool.disruption.consolidate_after != Some(SimDuration::ZERO),
            pool.limits.find(ResourceName::NODES).is_some(),
        ]
    }

    #[test]
    fn unknown_pool_fields_are_dropped_with_warning() {
        for (release, expected, said) in [
            ("v0.33", [false, false, false, false, false, false], 5),
            ("v0.34", [false, true, false, false, false, false], 5),
            ("v0.35", [true, true, false, false, false, false], 4),
            ("v1.0", [true, true, true, true, true, true], 1),
            ("v1.10.3", [true, true, true, true, true, true], 1),
            ("v1.11", [true, true, true, true, true, true], 0),
        ] {
            assert_eq!(left(release), expected, "{release}");
            let told = warnings(release.parse().unwrap(), &[pool()]);
            assert_eq!(
                told.iter().filter(|item| item.starts_with("NodePool default")).count(),
                said,
                "{release}: {told:?}"
            );
        }
    }

    /// Its nodes have no such label from v0.32 on: where drift is looked for they would be replaced without end.
    #[test]
    fn pod_count_requirement_is_dropped_from_v0_32() {
        for (release, left) in [("v0.22", 1), ("v0.31", 1), ("v0.32", 0), ("v1.13", 0)] {
            let release = release.parse().unwrap();
            let mut pool = NodePool { legacy: true, ..NodePool::named("default") };
            pool.requirements.push(Requirement::equals(well_known::INSTANCE_PODS, Symbol::new("29")));
            let said = warnings(release, std::slice::from_ref(&pool));
            let said = said.iter().any(|item| item.contains("`karpenter.k8s.aws/instance-pods`"));
            apply_api(release, &mut pool);
            assert_eq!((pool.requirements.len(), said), (left, left == 0), "{release}");
        }
    }

    #[test]
    fn unread_provisioner_next_to_node_pools_is_ignored() {
        let (new, old) = (NodePool::named("default"), NodePool { legacy: true, ..NodePool::named("old") });
        let left = |release: &str, pools: &[&NodePool]| {
            let mut pools: Vec<NodePool> = pools.iter().map(|&pool| pool.clone()).collect();
            let told = leave_out_unread(release.parse().unwrap(), &mut pools);
            (pools.len(), told.len())
        };
        assert_eq!(left("v0.32", &[&new, &old]), (2, 0), "it reads both");
        assert_eq!(left("v0.33", &[&new, &old]), (1, 1));
        assert_eq!(left("v1.13", &[&old]), (1, 0), "nothing else says what may be launched");
        assert_eq!(left("v1.13", &[&new]), (1, 0));
    }

    #[test]
    fn release_reads_only_its_pool_kind() {
        let (new, old) = (NodePool::named("default"), NodePool { legacy: true, ..NodePool::named("old") });
        let unread = |release: &str| {
            let release = release.parse().unwrap();
            [&new, &old].map(|pool| unread_kind(release, pool).is_some())
        };
        assert_eq!(unread("v0.4"), [true, false]);
        assert_eq!(unread("v0.31"), [true, false]);
        assert_eq!(unread("v0.32"), [false, false], "it reads both");
        assert_eq!(unread("v0.33"), [false, true]);
        assert_eq!(unread("v1.13"), [false, true]);
        let release = "v0.22".parse().unwrap();
        assert_eq!(
            warnings(release, &[new]).iter().filter(|warning| warning.starts_with("NodePool default")).count(),
            1
        );
    }

    #[test]
    fn beta_api_keeps_when_empty_and_never_delays() {
        let mut empty = pool();
        empty.disruption.policy = ConsolidationPolicy::WhenEmpty;
        let mut never = pool();
        never.disruption.consolidate_after = None;
        for empty in [&mut empty, &mut never] {
            apply_api("v0.37".parse().unwrap(), empty);
        }
        assert_eq!(empty.disruption.consolidate_after, Some(SimDuration::from_secs(600)));
        assert_eq!(never.disruption.consolidate_after, None);
    }
}

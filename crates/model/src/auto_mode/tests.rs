use super::{Blocker, BuiltIn, check_pod, check_pool, is_part_of_nodes, keep_off, own_pool};
use crate::domain::requirements::Operator;
use crate::domain::workload::{DaemonSet, ObjectName};
use crate::domain::{LabelSelector, Labels, NodePool, PodSpec, Requirement, SimDuration, Symbol, well_known};

fn hours(hours: i64) -> Option<SimDuration> {
    Some(SimDuration::from_secs(hours * 3_600))
}

#[test]
fn built_in_pools_ask_for_what_clusters_show() {
    let shown = |built: BuiltIn| built.pool().requirements.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        shown(BuiltIn::GeneralPurpose),
        [
            "karpenter.sh/capacity-type In [on-demand]",
            "eks.amazonaws.com/instance-category In [c m r]",
            "eks.amazonaws.com/instance-generation Exists >=5",
            "kubernetes.io/arch In [amd64]",
            "kubernetes.io/os In [linux]",
        ]
    );
    let system = BuiltIn::System.pool();
    assert_eq!(system.taints.len(), 1);
    assert_eq!((system.expire_after, system.termination_grace_period), (hours(336), hours(24)));
    assert_eq!(system.disruption.consolidate_after, Some(SimDuration::from_secs(30)));
}

#[test]
fn auto_mode_nodes_live_at_most_21_days() {
    let pool = |expire_after| NodePool { expire_after, ..own_pool("own") };
    assert_eq!(check_pool(&pool(hours(480))), Ok(()), "480h and 24h of grace");
    let refused = check_pool(&pool(hours(500))).unwrap_err();
    assert!(refused.to_string().contains("20d20h + 1d = 21d20h"), "{refused}");
    assert!(matches!(check_pool(&pool(None)), Err(Blocker::LivesTooLong { expire_after: None, .. })));
    let patient = NodePool { termination_grace_period: hours(1), ..pool(hours(500)) };
    assert_eq!(check_pool(&patient), Ok(()), "501h");
}

#[test]
fn karpenter_aws_labels_are_rejected_with_replacement() {
    let mut pool = own_pool("own");
    pool.requirements.push(Requirement::new(well_known::INSTANCE_FAMILY, Operator::In, [Symbol::new("m7g")]));
    let refused = check_pool(&pool).unwrap_err();
    assert_eq!(refused.help(), "write `eks.amazonaws.com/instance-family`");
    let mut spec = PodSpec::default();
    spec.node_selector.set(Symbol::new("karpenter.k8s.aws/instance-capability-flex"), well_known::TRUE);
    let refused = check_pod(&spec).unwrap_err();
    assert!(refused.help().contains("no label of the kind"), "{}", refused.help());
}

fn daemon(name: &str) -> DaemonSet {
    DaemonSet {
        name: ObjectName { namespace: Symbol::new("kube-system"), name: Symbol::new(name) },
        selector: LabelSelector::default(),
        template: std::sync::Arc::default(),
        max_unavailable: None,
        max_surge: crate::domain::pod::IntOrPercent::Count(0),
        min_ready: SimDuration::ZERO,
    }
}

#[test]
fn auto_mode_agents_have_no_pods_on_nodes() {
    assert!(is_part_of_nodes(&daemon("aws-node")));
    let mut daemon = daemon("log-shipper");
    assert!(!is_part_of_nodes(&daemon));
    keep_off(&mut daemon);
    let terms = &daemon.template.node_affinity.required;
    let on_auto_mode = Labels::new().with(well_known::EKS_COMPUTE_TYPE, well_known::AUTO);
    assert!(!terms.iter().any(|term| {
        term.requirements()
            .iter()
            .all(|requirement| on_auto_mode.get(requirement.key).is_none_or(|value| requirement.has(value)))
    }));
}

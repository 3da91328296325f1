//! Which nodes count as empty (E), and what becomes of their removal during the wait.

use nodecast::domain::node_pool::ConsolidationPolicy;
use nodecast_karpenter::disruption::{Blocker, Method, NotEligible, Rejection, candidates, validate_empty};
use serde_json::json;

use super::lab::{CONSOLIDATION, Lab, Pod, now, plain, pod};

pub const ROWS: &[(&str, &str)] = &[
    ("E1", "node_is_empty_without_reschedulable_pods"),
    ("E2", "node_is_empty_without_reschedulable_pods"),
    ("E3", "node_is_empty_without_reschedulable_pods"),
    ("E4", "unconsolidatable_or_nominated_node_stays"),
    ("E5", "all_empty_nodes_go_in_one_command"),
    ("E6", "unconsolidatable_or_nominated_node_stays"),
    ("E7", "only_still_empty_nodes_are_removed"),
    ("E10", "static_pool_nodes_are_never_consolidated"),
    ("E12", "when_empty_policy_spares_used_nodes"),
];

fn emptied(pods: Vec<Pod>) -> Lab {
    let mut lab = Lab::new();
    lab.node("node", "m-4", pods);
    lab
}

#[test]
fn node_is_empty_without_reschedulable_pods() {
    let owned = |owner: &str, ending: bool| Pod {
        deletion: ending.then(now),
        ..pod("own", json!({"cpu": "100m", "owner": owner}))
    };
    for (owner, ending, empty) in [
        ("DaemonSet", false, true),
        ("Node", false, true),
        ("ReplicaSet", true, true),
        ("StatefulSet", true, false),
        ("ReplicaSet", false, false),
        ("none", false, false),
    ] {
        let lab = emptied(vec![owned(owner, ending)]);
        assert_eq!(lab.may("node", Method::Emptiness), empty, "{owner}, ending: {ending}");
    }
}

#[test]
fn unconsolidatable_or_nominated_node_stays() {
    let mut lab = emptied(Vec::new());
    assert!(lab.may("node", Method::Emptiness));
    lab.nodes[0].nominated = true;
    assert_eq!(lab.candidate("node", Method::Emptiness).err(), Some(vec![Blocker::Nominated]));
    (lab.nodes[0].nominated, lab.nodes[0].consolidatable) = (false, false);
    let waits = Blocker::Method(NotEligible::NotConsolidatable);
    assert_eq!(lab.candidate("node", Method::Emptiness).err(), Some(vec![waits]));
}

#[test]
fn all_empty_nodes_go_in_one_command() {
    let mut lab = Lab::new();
    for name in ["a", "b", "c"] {
        lab.node(name, "m-4", Vec::new());
    }
    lab.node("d", "m-4", vec![plain("web", "1")]);
    assert_eq!(lab.told(Method::Emptiness), "a b c");
    assert!(lab.command(Method::Emptiness).replacements.is_empty());
}

/// What is left of a proposal to remove the nodes at `proposed`, or why nothing is.
fn left(lab: &Lab, proposed: &[usize]) -> Result<Vec<usize>, Rejection> {
    lab.ask(|_, view| {
        let mut allowances = view.allowances(Method::Emptiness.reason(), 0);
        validate_empty(proposed, &candidates(view, Method::Emptiness), &mut allowances)
    })
}

#[test]
fn only_still_empty_nodes_are_removed() {
    let mut lab = Lab::new();
    lab.node("a", "m-4", Vec::new());
    lab.node("b", "m-4", Vec::new());
    assert_eq!(left(&lab, &[0, 1]), Ok(vec![0, 1]));
    lab.allow(1);
    assert_eq!(left(&lab, &[0, 1]), Ok(vec![0]));
    lab.nodes[0].pods = vec![plain("web", "1")];
    assert_eq!(left(&lab, &[0, 1]), Ok(vec![1]));
    lab.allow(0);
    assert_eq!(left(&lab, &[0, 1]), Err(Rejection::Budget));
    lab.nodes[1].pods = vec![plain("web", "1")];
    assert_eq!(left(&lab, &[0, 1]), Err(Rejection::Churn));
}

#[test]
fn static_pool_nodes_are_never_consolidated() {
    let mut lab = emptied(Vec::new());
    lab.pool().replicas = Some(1);
    for method in [Method::Emptiness, Method::MultiNode, Method::SingleNode, Method::Drift] {
        let why = Some(vec![Blocker::Method(NotEligible::StaticPool)]);
        assert_eq!(lab.candidate("node", method).err(), why, "{method:?}");
    }
}

#[test]
fn when_empty_policy_spares_used_nodes() {
    let mut lab = Lab::new();
    lab.unmanaged("room", "m-16");
    lab.node("empty", "m-4", Vec::new());
    lab.node("used", "m-4", vec![plain("web", "100m")]);
    assert_eq!(CONSOLIDATION.map(|method| lab.told(method)), ["nothing", "used"]);
    lab.pool().disruption.policy = ConsolidationPolicy::WhenEmpty;
    assert_eq!(lab.told(Method::Emptiness), "empty");
    assert_eq!(CONSOLIDATION.map(|method| lab.told(method)), ["nothing", "nothing"]);
}

//! The second look after the wait, in a cluster that has changed (G).

use nodecast_karpenter::disruption::{Method, Rejection};

use super::lab::{CONSOLIDATION, Lab, plain, pod, protected};
use serde_json::json;

pub const ROWS: &[(&str, &str)] = &[
    ("G2", "too_small_replacement_is_abandoned"),
    ("G4", "what_now_protects_a_pod_stops_a_command"),
    ("G5", "what_now_protects_a_pod_stops_a_command"),
    ("G6", "new_blocker_stops_command"),
    ("G7", "new_blocker_stops_command"),
    ("G8", "unneeded_replacement_is_abandoned"),
    ("G9", "prices_are_not_looked_at_again"),
];

/// A node whose pod would go to a smaller one.
fn replaced() -> Lab {
    let mut lab = Lab::on_demand();
    lab.node("own", "m-16", vec![plain("web", "1")]);
    lab
}

/// A node whose pod has room elsewhere.
fn deleted() -> Lab {
    let mut lab = replaced();
    lab.unmanaged("room", "m-4");
    lab
}

/// What becomes of the command of single-node consolidation when the cluster changes during the wait.
fn after(mut lab: Lab, change: impl FnOnce(&mut Lab)) -> Result<(), Rejection> {
    let command = lab.command(Method::SingleNode);
    assert_eq!(lab.validation(Method::SingleNode, &command), Ok(()));
    change(&mut lab);
    lab.validation(Method::SingleNode, &command)
}

#[test]
fn too_small_replacement_is_abandoned() {
    let grown = after(replaced(), |lab| lab.nodes[0].pods.push(plain("large", "5")));
    assert_eq!(grown, Err(Rejection::Scheduling));
    // As long as everything that was asked for would still do, it may be more.
    let still_fits = after(replaced(), |lab| lab.nodes[0].pods.push(plain("small", "100m")));
    assert_eq!(still_fits, Ok(()));
}

#[test]
fn what_now_protects_a_pod_stops_a_command() {
    for lab in [replaced(), deleted()] {
        let landed = after(lab.clone(), |lab| lab.nodes[0].pods.push(protected("true")));
        assert_eq!(landed, Err(Rejection::Churn));
        let budgeted = after(lab, |lab| {
            lab.nodes[0].pods = vec![pod("web", json!({"cpu": "1", "labels": {"app": "web"}}))];
            lab.budget("web", json!({"maxUnavailable": 0}), 0);
        });
        assert_eq!(budgeted, Err(Rejection::Churn));
    }
}

#[test]
fn new_blocker_stops_command() {
    for lab in [replaced(), deleted()] {
        // A nominated node is no candidate any more, so that the budget is not even asked.
        assert_eq!(after(lab.clone(), |lab| lab.nodes[0].nominated = true), Err(Rejection::Churn));
        assert_eq!(
            after(lab, |lab| {
                lab.allow(0);
            }),
            Err(Rejection::Budget)
        );
    }
    let mut two = Lab::on_demand();
    two.unmanaged("room", "m-16");
    two.node("a", "m-4", vec![plain("web", "1")]);
    two.node("b", "m-4", vec![plain("web", "1")]);
    let command = two.command(Method::MultiNode);
    two.allow(1);
    // All or nothing, unlike with empty nodes.
    assert_eq!(two.validation(Method::MultiNode, &command), Err(Rejection::Budget));
}

#[test]
fn unneeded_replacement_is_abandoned() {
    let roomy = after(replaced(), |lab| {
        lab.unmanaged("room", "m-4");
    });
    assert_eq!(roomy, Err(Rejection::Scheduling));
    let full = after(deleted(), |lab| lab.nodes[1].pods.push(plain("other", "3")));
    assert_eq!(full, Err(Rejection::Scheduling));
}

#[test]
fn prices_are_not_looked_at_again() {
    let dearer = after(replaced(), |lab| {
        for kind in ["m-2", "m-4", "m-8"] {
            lab.reprice(kind, "on-demand", 5_000_000_000);
        }
        assert_eq!(CONSOLIDATION.map(|method| lab.told(method)), ["nothing", "nothing"]);
    });
    assert_eq!(dearer, Ok(()));
}

//! Timelines of the real Karpenter as scenarios: the simulation's own actors, scheduler, kubelets and EC2 bring about what the real
//! controllers did, as the driver does that has the models with which the timelines were recorded.

use std::collections::BTreeMap;
use std::path::Path;

use agreement_timelines::karpenter_timeline_scenario::{Simulated, run};

/// Timelines that a scenario states and that come out otherwise, with the reason.
const OTHERWISE: [(&str, &str); 10] = [
    (
        "batch-gate-slow-launch",
        "calls to EC2 take a moment more here, so that the next trigger finds another batch open",
    ),
    ("budget-reason", SCORES),
    ("instance-lost", "EKS removes the Node of an instance that is gone; the models of the cases have nobody who does"),
    ("launch-ice-all", "the pod is backing off when its node becomes Ready, and is bound seconds later"),
    ("long-expire", SCORES),
    ("long-wave-1", SCORES),
    ("long-wave-3", SCORES),
    ("long-wave-4", SPOT),
    ("multi-delete-budget-1", SCORES),
    ("multi-delete-budget-2", SCORES),
];
/// Why pods end up on other nodes.
const SCORES: &str = "kube-scheduler chooses nodes by score here, and the models of the cases take the first by name";
/// Why another type is launched.
const SPOT: &str = "Spot prices are the program's own";

#[test]
fn timelines_match_real_controllers() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/karpenter-timeline")];
    let fared = run(&paths, None, folder.path()).unwrap_or_else(|problem| panic!("{problem}"));
    let otherwise = BTreeMap::from(OTHERWISE);
    let (mut agree, mut not_stated, mut differ) = (0, 0, Vec::new());
    for (name, simulated) in &fared {
        let reason = otherwise.get(name.as_str());
        match (simulated, reason) {
            (Simulated::Agrees, None) => agree += 1,
            (Simulated::Agrees, Some(reason)) => differ.push(format!("{name} agrees by now, although {reason}")),
            (Simulated::Differs(difference), None) => differ.push(format!("{name}: {difference}")),
            (Simulated::Differs(_), Some(_)) => {}
            (Simulated::NotStated(_), _) => not_stated += 1,
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert_eq!((agree, not_stated, fared.len()), (45, 17, 72));
}

//! Burstable nodes: what is used beyond the baseline costs money in unlimited mode and time in standard mode.

use nodecast::domain::SimDuration;
use nodecast::report::Summary;
use nodecast::simulation::Outcome;
use nodecast::world::record::EventKind;

use crate::reserved_capacity::run_file;

/// Requests that want so many CPUs of one replica on one node of this type, for ten hours.
fn run(kind: &str, group: &str, requests: &str, more: &str) -> Outcome {
    let manifest = format!(
        "apiVersion: eksctl.io/v1alpha5
kind: ClusterConfig
metadata: {{ name: shop, region: us-east-1 }}
nodeGroups:
  - {{ name: fixed, instanceType: {kind}, minSize: 1, desiredCapacity: 1, maxSize: 1, availabilityZones: [us-east-1a]{group} }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: web, namespace: shop }}
spec:
  selector: {{ matchLabels: {{ app: web }} }}
  template:
    metadata: {{ labels: {{ app: web }} }}
    spec: {{ containers: [{{ name: web, resources: {{ requests: {{ cpu: 500m, memory: 512Mi }} }} }}] }}
"
    );
    let scenario = format!(
        "name: shop\nregion: us-east-1\nduration: 10h\nversions: {{ kubernetes: \"1.36\" }}\n\
         cluster: {{ zones: [us-east-1a] }}\nmanifests: [shop.yaml]\npolicies: [{{ name: fixed, autoscaler: none }}]\n\
         load:\n  - workload: shop/web\n    requests: {requests}\n    service: {{ cpu_per_request: 100ms, concurrency: 100, timeout: 10s }}\n{more}"
    );
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("shop.yaml"), manifest).unwrap();
    std::fs::write(directory.path().join("scenario.yaml"), scenario).unwrap();
    run_file(&directory.path().join("scenario.yaml"))
}

fn surcharge(outcome: &Outcome) -> f64 {
    let parts = Summary::from_outcome(outcome).cost.by_item;
    parts.iter().filter(|part| part.name == "CPU credits").map(|part| part.amount).sum()
}

fn spent(outcome: &Outcome) -> Vec<SimDuration> {
    let events = outcome.record.events.iter().filter(|event| event.kind == EventKind::CreditsSpent);
    events.map(|event| event.at - nodecast::domain::SimTime::ZERO).collect()
}

#[test]
fn unlimited_nodes_pay_for_surplus_credits() {
    // t3.medium has a baseline of 0.4 vCPUs: ten requests a second of 100 ms want one, six tenths too many for ten hours, at 0.05 each.
    let outcome = run("t3.medium", "", "{ constant: 10 }", "");
    let cost = surcharge(&outcome);
    assert!((cost / (0.6 * 10.0 * 0.05) - 1.0).abs() < 0.03, "{cost}");
    assert_eq!(spent(&outcome).len(), 0);
    // At the baseline nothing is owed; nor by a type without credits.
    assert!(surcharge(&run("t3.medium", "", "{ constant: 3.5 }", "")).abs() < 1e-9);
    assert!(surcharge(&run("m5.large", "", "{ constant: 10 }", "")).abs() < 1e-9);
}

#[test]
fn standard_nodes_slow_down_without_credits() {
    // t2.medium starts with 60 launch credits and earns 24 an hour: at one vCPU, 0.6 beyond the baseline, they last a hundred minutes.
    let outcome = run("t2.medium", "", "{ constant: 10 }", "");
    let at = spent(&outcome);
    assert_eq!(at.len(), 1, "{at:?}");
    assert!((at[0].as_secs_f64() / 6_000.0 - 1.0).abs() < 0.05, "{at:?}");
    assert!(surcharge(&outcome).abs() < 1e-9);
    let summary = Summary::from_outcome(&outcome);
    // Four of ten requests a second are answered from then on; before, all.
    let (answered, lost) = (summary.requests[0].completed, summary.requests[0].timed_out);
    assert!((answered / (6_000.0 * 10.0 + 30_000.0 * 4.0) - 1.0).abs() < 0.1, "{answered} answered, {lost} given up");
    assert!(lost > 100_000.0);
}

#[test]
fn credit_mode_of_group_overrides_scenario() {
    let standard = "ec2: { cpu_credits: standard }\n";
    assert_eq!(spent(&run("t3.medium", "", "{ constant: 10 }", standard)).len(), 1, "without launch credits, soon");
    let item = run("t3.medium", ", cpuCredits: unlimited", "{ constant: 10 }", standard);
    assert!(spent(&item).is_empty() && surcharge(&item) > 0.2);
}

#[test]
fn credits_recover_during_low_load() {
    // An hour of one vCPU, an hour of a tenth, and so on: what is saved in the quiet hours is spent in the next.
    let steps = "{ steps: [{ at: 0h, rate: 1 }, { at: 2h, rate: 10 }, { at: 3h, rate: 1 }, { at: 5h, rate: 10 }, { at: 6h, rate: 1 }] }";
    let outcome = run("t3.medium", ", cpuCredits: standard", steps, "");
    // Two quiet hours save 36 minutes of a vCPU: at 0.6 beyond the baseline that is an hour.
    assert!(spent(&outcome).len() <= 2, "{:?}", spent(&outcome));
    let busier = run(
        "t3.medium",
        ", cpuCredits: standard",
        "{ steps: [{ at: 0h, rate: 1 }, { at: 1h, rate: 10 }, { at: 4h, rate: 1 }] }",
        "",
    );
    let at = spent(&busier);
    assert!(at.len() == 1 && (at[0].as_secs_f64() / 3_600.0 - 1.5).abs() < 0.1, "{at:?}");
}

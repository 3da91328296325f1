//! What the first tutorial observed on a real cluster, on the shipped scenario: facts S0-a to S0-d.

use std::path::Path;
use std::sync::OnceLock;

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime, Symbol};
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::{Event, EventKind, NodeEnd, NodeOrigin};

const DEMO: &str = "demo-nginx-nlb-karpenter";
const ON_DEMAND_DEMO: &str = "demo-nginx-on-demand";

fn run(policy: &str) -> Outcome {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/eks-101/scenario.yaml");
    let (scenario, _) = nodecast::scenario::load(&path).unwrap();
    let catalog = Catalog::embedded().unwrap();
    let policy = scenario.for_policy(Some(policy)).unwrap();
    simulation::run(&scenario, policy, catalog, scenario.seed, &mut |_| {}).unwrap()
}

fn as_observed() -> &'static Outcome {
    static OUTCOME: OnceLock<Outcome> = OnceLock::new();
    OUTCOME.get_or_init(|| run("karpenter-v0.16"))
}

fn with_current_karpenter() -> &'static Outcome {
    static OUTCOME: OnceLock<Outcome> = OnceLock::new();
    OUTCOME.get_or_init(|| run("karpenter-v1.13"))
}

fn minutes(minutes: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(minutes * 60)
}

fn events(outcome: &Outcome, kind: EventKind) -> Vec<Event<'_>> {
    outcome.record.events.iter().filter(|event| event.kind == kind).collect()
}

/// The vCPUs of the node that was launched for the three pods that found no room, and what was asked for.
fn second_launch(outcome: &Outcome) -> (u32, String) {
    let claims: Vec<Event<'_>> =
        events(outcome, EventKind::ClaimCreated).into_iter().filter(|event| event.at > minutes(10)).collect();
    let node = &outcome.record.nodes[claims[0].node.unwrap().index()];
    let region = Catalog::embedded().unwrap().region(&outcome.about.region).unwrap();
    let vcpus = region.instance_type(node.instance_type.unwrap()).unwrap().facts.vcpus;
    (vcpus, claims[0].message.to_string())
}

#[test]
fn s0_a_requests_match_log_exceeding_four_vcpus() {
    let (vcpus, asked) = second_launch(as_observed());
    assert!(asked.starts_with("3 pods requesting {cpu 3825m, memory 6166575Ki, pods 7} from types "), "{asked}");
    let first_five = asked.split("from types ").nth(1).unwrap();
    assert!(!first_five.contains(".xlarge"), "no 4-vCPU type: {asked}");
    assert!(first_five.contains(".2xlarge") && vcpus >= 8, "{asked}");
}

#[test]
fn s0_b_current_overhead_fits_four_vcpus() {
    let (vcpus, asked) = second_launch(with_current_karpenter());
    assert!(asked.contains("requesting {cpu 3825m, memory 6166575Ki, pods 7}"), "{asked}");
    assert!(asked.contains(".xlarge"), "{asked}");
    assert_eq!(vcpus, 4);
}

#[test]
fn s0_c_six_replicas_end_on_two_nodes() {
    for outcome in [as_observed(), with_current_karpenter()] {
        let at = minutes(25) - SimDuration::RESOLUTION;
        let mut by_node = std::collections::BTreeMap::new();
        for pod in outcome.record.pods.iter().filter(|pod| pod.name.starts_with(DEMO)) {
            let there =
                pod.ready.is_some_and(|ready| ready <= at) && pod.deletion_requested.is_none_or(|gone| gone > at);
            if there {
                *by_node.entry(pod.node.unwrap()).or_insert(0) += 1;
            }
        }
        assert_eq!(by_node.into_values().collect::<Vec<_>>(), [3, 3], "{}", outcome.about.policy);
    }
}

#[test]
fn s0_d_emptied_node_goes_after_thirty_seconds() {
    let outcome = as_observed();
    let within = |event: &Event<'_>| event.at >= minutes(25) && event.at < minutes(40);
    let removed: Vec<Event<'_>> = events(outcome, EventKind::NodeDisrupted).into_iter().filter(within).collect();
    assert_eq!(removed.len(), 1, "one of the two nodes is empty");
    let stamped =
        events(outcome, EventKind::NodeEmpty).into_iter().find(|event| event.node == removed[0].node).unwrap();
    assert_eq!(removed[0].at - stamped.at, SimDuration::from_secs(30));
    let node = &outcome.record.nodes[removed[0].node.unwrap().index()];
    assert_eq!(node.end, Some(NodeEnd::Empty));
    assert!(node.terminating.is_some());
}

#[test]
fn current_karpenter_removes_empty_node_after_validation() {
    let outcome = with_current_karpenter();
    let node = outcome
        .record
        .nodes
        .iter()
        .find(|node| node.end == Some(NodeEnd::Empty) && node.deletion_requested.is_some_and(|at| at < minutes(40)))
        .unwrap();
    // consolidateAfter, up to 10 s to the next poll, 15 s of validation; then at least 5 s of drain.
    let waited = node.deletion_requested.unwrap() - minutes(25);
    assert!((45..=56).contains(&waited.as_secs()), "{waited}");
    assert_eq!((node.terminating.unwrap() - node.deletion_requested.unwrap()).as_secs(), 5);
}

#[test]
fn on_demand_deployment_stays_on_managed_group() {
    for outcome in [as_observed(), with_current_karpenter()] {
        let pods: Vec<_> = outcome.record.pods.iter().filter(|pod| pod.name.starts_with(ON_DEMAND_DEMO)).collect();
        assert_eq!(pods.len(), 2);
        for pod in pods {
            let origin = outcome.record.nodes[pod.node.unwrap().index()].origin;
            assert_eq!(origin, NodeOrigin::NodeGroup(Symbol::new("ng1-od")));
            assert_eq!(pod.unschedulable, None);
        }
    }
}

#[test]
fn selector_keeps_demo_on_spot_nodes() {
    for outcome in [as_observed(), with_current_karpenter()] {
        for pod in outcome.record.pods.iter().filter(|pod| pod.name.starts_with(DEMO)) {
            let node = &outcome.record.nodes[pod.node.unwrap().index()];
            assert_eq!(node.origin, NodeOrigin::NodePool(Symbol::new("default")));
            assert_eq!(node.capacity_type, Some(Symbol::new("spot")));
        }
    }
}

#[test]
fn hpa_reaches_maximum_by_doubling_and_returns() {
    for outcome in [as_observed(), with_current_karpenter()] {
        let counts: Vec<(u32, u32)> = events(outcome, EventKind::Rescaled)
            .iter()
            .map(|event| {
                let mut words = event.message.split_whitespace();
                let from = words.next().unwrap().parse().unwrap();
                (from, words.nth(1).unwrap().parse().unwrap())
            })
            .collect();
        for &(from, to) in &counts {
            assert!(to <= 10 && to <= (2 * from).max(4), "{counts:?}");
        }
        assert!(counts.iter().any(|&(_, to)| to == 10), "{counts:?}");
        assert_eq!(counts.last().map(|&(_, to)| to), Some(1), "{counts:?}");
        assert!((outcome.requests[0].completed - 1e6).abs() < 1.0);
    }
}

#[test]
fn bill_sums_prices_over_running_times() {
    for outcome in [as_observed(), with_current_karpenter()] {
        let end = SimTime::ZERO + outcome.about.duration;
        let mut expected = 0.0;
        for node in &outcome.record.nodes {
            let Some(running) = node.running else { continue };
            let seconds = (node.terminating.unwrap_or(end).min(end) - running).as_secs_f64().ceil().max(60.0);
            expected += node.rate.as_f64() * seconds / 3_600.0;
        }
        let instances = outcome.bill.lines.iter().filter(|line| line.item.as_str() == "instance");
        let billed: f64 = instances.map(|line| line.amount.as_f64()).sum();
        assert!((billed - expected).abs() < 1e-6, "{billed} against {expected}");
    }
}

//! Times of the cloud that are stated exactly, also as zero; and machines that hold something else than expected.

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime};
use nodecast::scenario::Scenario;
use nodecast::scenario::error::Render;
use nodecast::simulation::{Outcome, run};
use nodecast::world::record::NodeFacts;

use crate::cli::Place;
use crate::node_groups::minutes;
use crate::pool_changes::{deployment, pool};

const CLASS: &str = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
";

fn load(manifests: &str, more: &str) -> Result<Scenario, String> {
    let place = Place::new();
    place.put("cluster.yaml", manifests);
    let text =
        "name: exact\nregion: us-east-1\nduration: 1h\ncluster: { zones: [us-east-1a] }\nmanifests: [cluster.yaml]\n";
    place.put("scenario.yaml", &format!("{text}{more}"));
    nodecast::scenario::load(&place.path("scenario.yaml")).map(|(scenario, _)| scenario).map_err(|error| error.render())
}

fn simulate(manifests: &str, more: &str) -> Outcome {
    let scenario = load(manifests, more).unwrap();
    run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
}

/// Four replicas from ten minutes on, none from thirty on: nodes come and go.
fn cluster() -> String {
    CLASS.to_owned() + &pool("general", "m5", "100%") + &deployment("web", 0, "general")
}

const STEPS: &str = "timeline:
  - { at: 10m, scale: { workload: shop/web, replicas: 4 } }
  - { at: 30m, scale: { workload: shop/web, replicas: 0 } }
  - { at: 10m, scale_group: { group: system, desired: 2 } }
";
const GROUP: &str = "nodeGroups: [{ name: system, instanceTypes: [m5.large], desired: 1, max: 3 }]\n";

fn times(fleet: &str, shutdown: &str, group: &str, stages: &str) -> String {
    format!(
        "ec2:
  capacity: infinite
  failures: none
  api: {{ consistency: strong }}
  launch_latency: {{ vm_init: {stages}, os_boot: {stages}, bootstrap: {stages}, register: {stages}, cni_ready: {stages}, status: {stages}, running: {stages}, by_type: false, spread: false }}
  times: {{ fleet_call: {fleet}, shutdown: {shutdown}, notice_delivery: 0s, group_reaction: {group}, group_in_service: {group}, group_health_check: {group} }}
"
    )
}

fn nodes_of_group<'o>(outcome: &'o Outcome, name: &str) -> Vec<&'o NodeFacts> {
    outcome.record.nodes.iter().filter(|node| node.name.starts_with(name)).collect()
}

#[test]
fn cloud_without_delays_has_instant_nodes() {
    let outcome = simulate(&cluster(), &(GROUP.to_owned() + STEPS + &times("0s", "0s", "0s", "0s")));
    let nodes = nodes_of_group(&outcome, "general");
    assert!(!nodes.is_empty());
    for node in nodes {
        let at = node.launched;
        assert!(at.is_some());
        assert_eq!((node.running, node.registered, node.ready), (at, at, at), "{}", node.name);
        assert!(at.unwrap() - node.requested < SimDuration::from_secs(1), "Karpenter's own delays are left");
        let gone = node.terminated.unwrap() - node.terminating.unwrap();
        assert!(gone <= SimDuration::from_secs(6), "as often as Karpenter looks: {gone}");
    }
    let later = nodes_of_group(&outcome, "system")[1];
    let at = Some(minutes(10));
    assert_eq!((later.launched, later.running, later.ready), (at, at, at));
    assert!(outcome.record.pods.iter().all(|pod| pod.scheduled.is_some()));
}

#[test]
fn what_is_stated_takes_just_so_long() {
    let outcome = simulate(&cluster(), &(GROUP.to_owned() + STEPS + &times("2s", "7s", "4s", "3s")));
    let nodes = nodes_of_group(&outcome, "general");
    assert!(!nodes.is_empty());
    for node in nodes {
        let launched = node.launched.unwrap();
        let after = |at: Option<SimTime>| (at.unwrap() - launched).as_secs();
        assert_eq!((after(node.running), after(node.registered), after(node.ready)), (3, 12, 18));
        let call = (launched - node.requested).as_secs_f64();
        assert!((2.0..3.0).contains(&call), "the call to CreateFleet takes 2 s: {call}");
    }
    let later = nodes_of_group(&outcome, "system")[1];
    assert_eq!(later.launched, Some(minutes(10) + SimDuration::from_secs(4)));
}

#[test]
fn smaller_machine_memory_leaves_pods_unscheduled() {
    // Two pods of 7 GiB fit a node of 16 GiB less 7.5 %, and not one of 13 GiB.
    let manifests = CLASS.to_owned()
        + &pool("general", "m5", "0")
        + &deployment("web", 2, "general").replace("cpu: 900m, memory: 1Gi", "cpu: 900m, memory: 6656Mi");
    let quiet = "ec2: { capacity: infinite, failures: none }\n";
    let expected = simulate(&manifests, quiet);
    assert_eq!(nodes_of_group(&expected, "general").len(), 1, "as expected");
    let error =
        "ec2:\n  capacity: infinite\n  failures: none\n  catalog_error: [{ type: \"m5.*\", memory_factor: 0.8 }]\n";
    let other = simulate(&manifests, error);
    let nodes = nodes_of_group(&other, "general");
    assert_eq!(nodes.len(), 2, "the second pod waits for another node");
    assert_eq!(nodes[0].capacity.memory_bytes(), (16_384_i64 << 20) * 4 / 5);
    assert_eq!(other.record.pods.iter().filter(|pod| pod.scheduled.is_some()).count(), 2);
    let delayed = other.record.pods.iter().filter_map(|pod| pod.scheduled).max().unwrap();
    assert!(delayed > nodes[0].ready.unwrap() + SimDuration::from_secs(20), "it waited for the second node: {delayed}");
}

#[test]
fn an_entry_that_fits_no_type_is_refused() {
    let error = load(&cluster(), "ec2: { catalog_error: [{ family: m5, type: c5.large, pods: 3 }] }\n").unwrap_err();
    assert!(error.contains("no instance type is of this family and has this name"), "{error}");
    assert!(error.contains("help:"), "{error}");
}

#[test]
fn ami_selector_name_restricts_architectures() {
    let class = |term: &str| CLASS.replace("[{alias: al2023@latest}]", &format!("[{term}]"));
    let nodes_of_group = |term: &str| load(&class(term), "").unwrap().policies[0].manifests.node_classes[0].clone();
    for (term, expected) in [
        ("{alias: al2023@latest}", &[][..]),
        ("{name: my-eks-arm64-2026-*}", &["arm64"]),
        ("{name: al2023-x86_64-v1}", &["amd64"]),
        ("{tags: {Architecture: aarch64}}", &["arm64"]),
        (
            "{ssmParameter: /aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id}",
            &["amd64"],
        ),
        ("{name: a-arm64}, {name: b-amd64}", &["amd64", "arm64"]),
        ("{name: a-arm64}, {id: ami-0123456789}", &[]),
        ("{id: ami-0123456789}", &[]),
    ] {
        let found = nodes_of_group(term);
        let found: Vec<&str> = found.ami_architectures.iter().map(|name| name.as_str()).collect();
        assert_eq!(found, expected, "{term}");
    }
    let warned = |term: &str| {
        let place = Place::new();
        place.put("cluster.yaml", &class(term));
        let (_, warnings) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
        warnings.iter().any(|warning| warning.message().contains("the images this AMI selector finds are unknown"))
    };
    assert!(warned("{id: ami-0123456789}"));
    assert!(!warned("{name: my-eks-arm64-2026-*}"));
    let both = "---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: any}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: []}}}
";
    let pods = deployment("web", 3, "general").replace("      nodeSelector: {pool: general}\n", "");
    for (arch, other) in [("arm64", "amd64"), ("amd64", "arm64")] {
        let outcome = simulate(&(class(&format!("{{name: my-{arch}-image}}")) + both + &pods), "");
        assert!(!outcome.record.nodes.is_empty());
        assert!(outcome.record.nodes.iter().all(|node| node.arch.is_none_or(|arch| arch.as_str() != other)), "{arch}");
    }
}

//! CapacityBuffers in a running simulation: room that is there before pods ask for it.

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime};
use nodecast::simulation::{Outcome, resolve, run};

use crate::cli::Place;
use crate::pool_changes::{deployment, pool};

const GATE: &str = "versions: { karpenter: v1.14 }\nkarpenter: { feature_gates: { capacity_buffer: true } }";

fn buffer(spec: &str) -> String {
    format!(
        "---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {{name: room, namespace: shop}}
spec:
  {spec}
"
    )
}

/// Nodes of four CPUs that hold four pods of `web` each.
fn shop(replicas: u32) -> String {
    pool("general", "m5", "100%") + &deployment("web", replicas, "general")
}

fn place(manifests: &str, settings: &str, timeline: &str) -> Place {
    let place = Place::new();
    let class = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
";
    place.put("cluster.yaml", &(class.to_owned() + manifests));
    let head = "name: room\nregion: us-east-1\nduration: 2h\nmanifests: [cluster.yaml]\n";
    place.put("scenario.yaml", &format!("{head}{settings}\n{timeline}"));
    place
}

fn simulate(manifests: &str, settings: &str, timeline: &str) -> Outcome {
    let place = place(manifests, settings, timeline);
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
}

fn warnings(manifests: &str, settings: &str) -> Vec<String> {
    let place = place(manifests, settings, "");
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    resolve(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1).unwrap().warnings.texts()
}

/// Nodes at the end of the run.
fn at_the_end(outcome: &Outcome) -> usize {
    outcome.record.nodes.iter().filter(|node| node.ready.is_some() && node.terminating.is_none()).count()
}

/// Time from the creation of pods after an hour to their places.
fn waits(outcome: &Outcome) -> Vec<SimDuration> {
    let hour = SimTime::ZERO + SimDuration::from_secs(3_600);
    let late = outcome.record.pods.iter().filter(|pod| pod.created >= hour);
    late.map(|pod| pod.scheduled.unwrap() - pod.created).collect()
}

const SCALE: &str = "timeline:\n  - { at: 1h, scale: { workload: shop/web, replicas: 8 } }\n";

#[test]
fn pods_use_buffer_and_it_is_refilled() {
    let room = buffer("scalableRef: {apiGroup: apps, kind: Deployment, name: web}\n  replicas: 4");
    let without = simulate(&shop(4), GATE, SCALE);
    let with = simulate(&(shop(4) + &room), GATE, SCALE);
    let (slow, quick) = (waits(&without), waits(&with));
    assert_eq!((slow.len(), quick.len()), (4, 4));
    assert!(slow.iter().all(|wait| *wait > SimDuration::from_secs(20)), "{slow:?}");
    assert!(quick.iter().all(|wait| *wait < SimDuration::from_secs(5)), "{quick:?}");
    // Two nodes for eight pods, and one more for the room, which nothing takes away although it is empty.
    assert_eq!((at_the_end(&without), at_the_end(&with)), (2, 3));
    let taken = with.record.nodes.iter().filter(|node| node.deletion_requested.is_some()).count();
    assert_eq!(taken, 0, "no node comes and goes");
}

#[test]
fn a_share_of_the_replicas_grows_with_them() {
    let room = buffer("scalableRef: {kind: Deployment, name: web}\n  percentage: 100");
    let outcome = simulate(&(shop(4) + &room), GATE, SCALE);
    assert_eq!(at_the_end(&outcome), 4, "eight pods, and room for eight");
}

/// A budget keeps a node without pods, and the room of a later buffer is on it.
#[test]
fn later_buffer_takes_a_node_without_pods() {
    let workloads = deployment("web", 4, "general") + &deployment("api", 0, "general");
    let timeline = "timeline:
  - { at: 10m, scale: { workload: shop/api, replicas: 4 } }
  - { at: 30m, scale: { workload: shop/api, replicas: 0 } }
  - { at: 1h, manifests: [room.yaml] }
";
    let place = place(&(pool("general", "m5", "0") + &workloads), GATE, timeline);
    place.put("room.yaml", &buffer("scalableRef: {apiGroup: apps, kind: Deployment, name: web}\n  replicas: 4"));
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    let outcome = run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap();
    assert_eq!((outcome.record.nodes.len(), at_the_end(&outcome)), (2, 2));
}

#[test]
fn buffer_size_follows_template_and_limits() {
    let template = "---
apiVersion: v1
kind: PodTemplate
metadata: {name: chunk, namespace: shop}
template:
  spec:
    nodeSelector: {pool: general}
    containers: [{name: own, image: own, resources: {requests: {cpu: 900m, memory: 1Gi}}}]
";
    let room = buffer("podTemplateRef: {name: chunk}\n  limits: {cpu: 7300m}");
    let outcome = simulate(&(shop(4) + template + &room), GATE, "");
    assert_eq!(at_the_end(&outcome), 3, "eight chunks of 900m");
    let told = warnings(&(shop(4) + &room), GATE);
    assert!(told.iter().any(|item| item.contains("PodTemplate chunk does not exist")), "{told:?}");
}

#[test]
fn who_keeps_no_room_says_why() {
    let room = buffer("scalableRef: {kind: Deployment, name: web}\n  replicas: 4");
    let alpha = room.replace("v1beta1", "v1alpha1");
    let other = room.replace("replicas: 4", "replicas: 4\n  provisioningStrategy: buffer.x-k8s.io/static-capacity");
    for (room, settings, said) in [
        (&room, "versions: { karpenter: v1.14 }", "feature gate `capacity_buffer` is off"),
        (&room, "versions: { karpenter: v1.13 }", "does not know it, which came with v1.14"),
        (&alpha, GATE, "serves `autoscaling.x-k8s.io/v1beta1` alone"),
        (&other, GATE, "static-capacity` is not simulated"),
    ] {
        let told = warnings(&(shop(4) + room), settings);
        assert!(
            told.iter().any(|item| item.starts_with("CapacityBuffer shop/room") && item.contains(said)),
            "{told:?}"
        );
    }
    assert_eq!(at_the_end(&simulate(&(shop(4) + &room), "versions: { karpenter: v1.14 }", "")), 1);
}

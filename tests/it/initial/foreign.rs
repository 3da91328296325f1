//! What a dump has of controllers that are not simulated: their Jobs, their pods, and the autoscalers that name them.

use nodecast::world::record::JobOutcomeKind;

use super::{NODE_GROUP, OF_GROUP, cluster, deployment, node, outcome, pod};
use crate::cli::Place;

const STATIC: &str = "policies: [{ name: own, autoscaler: static }]\n";

/// A HorizontalPodAutoscaler of at least five replicas of this object.
fn autoscaler(version: &str, kind: &str, name: &str) -> String {
    format!(
        "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: own, namespace: shop}}\nspec:\n  \
         scaleTargetRef: {{apiVersion: {version}, kind: {kind}, name: {name}}}\n  minReplicas: 5\n  maxReplicas: 8\n  \
         metrics: [{{type: Resource, resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 50}}}}}}]\n"
    )
}

/// The draft that `init` makes of a dump, for an hour, and what it said.
fn drafted(dump: &str) -> (Place, String) {
    let place = Place::new();
    place.put("all.yaml", dump);
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "all.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    let text = std::fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    place.put("own/scenario.yaml", &text.replace("duration: 24h", "duration: 1h"));
    (place, err)
}

#[test]
fn node_of_unknown_machine_stays_with_warning() {
    let dump = node("s1", OF_GROUP, 20) + &node("x1", "team: data", 9) + &deployment("web", 1);
    let dump = dump + &pod("web-a", "x1", Some(("ReplicaSet", "web-5f4d7")), 100);
    let (place, err) = drafted(&dump);
    let said =
        "no instance type of node group self-managed-unknown is known, so it is no group here: its 1 node of the dump";
    assert!(err.split_whitespace().collect::<Vec<_>>().join(" ").contains(said), "{err}");
    let outcome = outcome(&place, "own/scenario.yaml");
    assert!(outcome.record.nodes.iter().any(|node| node.name == "x1" && node.terminated.is_none()));
}

#[test]
fn foreign_controlled_job_continues_standalone() {
    let job = "---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: train-0\n  namespace: shop\n  \
        ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: train, uid: u, controller: true}]\n\
        spec: {completions: 3, parallelism: 1, template: {spec: {restartPolicy: Never, containers: [{name: own, image: own, \
        resources: {requests: {cpu: 100m, memory: 900Mi}}}]}}}\nstatus: {active: 1, succeeded: 1}\n";
    let dump = node("s1", OF_GROUP, 20) + job + &pod("train-0-x", "s1", Some(("Job", "train-0")), 100);
    let (place, err) = drafted(&dump);
    assert!(err.contains("JobSet is not simulated: the 1 Job of JobSet goes on as if made by hand"), "{err}");
    assert!(!err.contains("pod of a Job is left out"), "{err}");
    let outcome = outcome(&place, "own/scenario.yaml");
    let made = outcome.record.pods.iter().filter(|pod| pod.name.starts_with("train-0-")).count();
    assert_eq!(made, 2, "two of three are left, and one of them runs");
    let job = outcome.record.jobs.iter().find(|job| &*job.name == "train-0").unwrap();
    assert_eq!(job.end.map(|end| end.kind), Some(JobOutcomeKind::Complete));
}

#[test]
fn hpa_of_unsimulated_workload_scales_its_pods() {
    let of_set = |name: &str| pod(name, "s1", Some(("CloneSet", "cache")), 100);
    let dump = node("s1", OF_GROUP, 20)
        + &deployment("web", 1)
        + &of_set("cache-a")
        + &of_set("cache-b")
        + &autoscaler("apps.kruise.io/v1alpha1", "CloneSet", "cache");
    let (place, err) = drafted(&dump);
    assert!(!err.contains("scales nothing"), "{err}");
    let text = std::fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    let joined = text.replace("\n#", "");
    let told = "HorizontalPodAutoscaler shop/own scales CloneSet cache, which is not simulated: here it is for the Deployment cache";
    assert!(joined.replace("  ", " ").contains(told), "{text}");
    let written = std::fs::read_to_string(place.path("own/autoscalers.yaml")).unwrap();
    assert!(written.contains("kind: Deployment") && !written.contains("CloneSet"), "{written}");
    let outcome = outcome(&place, "own/scenario.yaml");
    assert_eq!(outcome.record.pods.iter().filter(|pod| pod.name.starts_with("cache-")).count(), 5);
}

#[test]
fn hpa_scales_target_of_its_kind() {
    let made = |kind: &str| {
        let objects = deployment("web", 1) + &autoscaler("apps/v1", kind, "web");
        let place = cluster(&objects, &node("s1", OF_GROUP, 20), &format!("{NODE_GROUP}{STATIC}"));
        let outcome = outcome(&place, "scenario.yaml");
        outcome.record.pods.iter().filter(|pod| pod.name.starts_with("web-")).count()
    };
    assert_eq!(made("Deployment"), 5);
    assert_eq!(made("StatefulSet"), 1, "there is none of that kind");
}

#[test]
fn operator_created_and_keda_hpas_scale() {
    let made_by = |version: &str, kind: &str| {
        let owner = format!(
            "namespace: shop, ownerReferences: [{{apiVersion: {version}, kind: {kind}, name: web, uid: u, controller: true}}]}}"
        );
        autoscaler("apps/v1", "Deployment", "web").replacen("namespace: shop}", &owner, 1)
    };
    for (version, kind) in
        [("opentelemetry.io/v1beta1", "OpenTelemetryCollector"), ("keda.sh/v1alpha1", "ScaledObject")]
    {
        let dump = node("s1", OF_GROUP, 20)
            + &deployment("web", 1)
            + &pod("web-5f4d7-x", "s1", Some(("ReplicaSet", "web-5f4d7")), 250)
            + &made_by(version, kind);
        let (place, err) = drafted(&dump);
        let told = err.contains("is KEDA's, and its ScaledObject web is not in the dump");
        assert_eq!(told, kind == "ScaledObject", "{err}");
        let outcome = outcome(&place, "own/scenario.yaml");
        assert_eq!(outcome.record.pods.iter().filter(|pod| pod.name.starts_with("web-")).count(), 5, "{kind}");
    }
}

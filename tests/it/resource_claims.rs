//! Resource claims of pods: no node has devices, so kube-scheduler and the Cluster Autoscaler find no place, as far as their releases have
//! claims at all.

use nodecast::simulation::Outcome;
use nodecast::world::record::EventKind;

use crate::cluster_autoscaler_runs::scenario as with_autoscaler;
use crate::node_groups::run;

/// A Deployment `encode` of three pods with claims and a Deployment `web` of one pod without.
const OBJECTS: &str = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: chip}\nspec: {spec: {devices: \
    {requests: [{name: chip, exactly: {deviceClassName: neuron.aws.com}}]}}}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: \
    {name: encode}\nspec:\n  replicas: 3\n  selector: {matchLabels: {app: encode}}\n  template:\n    metadata: {labels: {app: encode}}\n    \
    spec:\n      resourceClaims: [{name: chip, resourceClaimTemplateName: chip}]\n      containers: [{name: encode, image: \"encode:1\", \
    resources: {requests: {cpu: 900m}, claims: [{name: chip}]}}]\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  \
    replicas: 1\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      \
    containers: [{name: web, image: \"web:1\", resources: {requests: {cpu: 100m}}}]\n";

/// Two nodes of m5.xlarge for half an hour.
fn fixed(release: &str) -> Outcome {
    let text = format!(
        "name: claims\nregion: us-east-1\nduration: 30m\nversions: {{kubernetes: \"{release}\"}}\nmanifests: [manifests.yaml]\n\
         nodeGroups: [{{name: blue, instanceType: m5.xlarge, min: 2, desired: 2, max: 2}}]\npolicies: [{{name: fixed, autoscaler: static}}]\n"
    );
    run(&text, OBJECTS)
}

/// How many pods of a Deployment were bound.
fn bound(outcome: &Outcome, name: &str) -> usize {
    let pods = outcome.record.pods.iter().filter(|pod| pod.name.starts_with(name));
    pods.filter(|pod| pod.scheduled.is_some()).count()
}

fn warns(outcome: &Outcome, text: &str) -> bool {
    outcome.warnings.iter().any(|warning| warning.contains(text))
}

#[test]
fn pods_with_claims_stay_pending_without_devices() {
    for release in ["1.33", "1.34", "1.37"] {
        let outcome = fixed(release);
        assert_eq!((bound(&outcome, "encode"), bound(&outcome, "web")), (0, 1), "{release}");
        let events = outcome.record.events.iter().filter(|event| event.kind == EventKind::PodUnschedulable);
        let wanted = "0/2 nodes are available: 2 cannot allocate all claims.";
        assert_eq!(events.filter(|event| event.message == wanted).count(), 3, "{release}");
        let warning = "1 pod template states `resourceClaims`. No ResourceSlice is read, so no node has devices";
        assert!(warns(&outcome, warning), "{release}: {:?}", outcome.warnings);
    }
}

#[test]
fn earlier_releases_drop_claims_of_pods() {
    for release in ["1.29", "1.32"] {
        let outcome = fixed(release);
        assert_eq!((bound(&outcome, "encode"), bound(&outcome, "web")), (3, 1), "{release}");
        let warning = format!("`resourceClaims`, which the Kubernetes {release} API server drops");
        assert!(warns(&outcome, &warning), "{release}: {:?}", outcome.warnings);
    }
}

#[test]
fn karpenter_refuses_claims_from_v1_7() {
    let pool = crate::karpenter_settings::pool("m5.large", "");
    for (release, refuses, says) in [
        ("v1.6", false, "this Karpenter release does not read claims"),
        ("v1.14", true, "Karpenter ignores them, too, as with its default `IGNORE_DRA_REQUESTS=true`"),
    ] {
        let text = format!(
            "name: claims\nregion: us-east-1\nduration: 20m\nversions: {{karpenter: {release}}}\nmanifests: [manifests.yaml]\n\
             policies: [{{name: karpenter, autoscaler: karpenter}}]\n"
        );
        let outcome = run(&text, &format!("{OBJECTS}---\n{pool}"));
        assert_eq!((bound(&outcome, "encode"), bound(&outcome, "web")), (0, 1), "{release}");
        assert_eq!(outcome.record.nodes.len() == 1, refuses, "{release}");
        assert!(warns(&outcome, says), "{release}: {:?}", outcome.warnings);
        let refused = "pod asks for resource claims, which are ignored";
        assert_eq!(outcome.record.events.iter().any(|event| event.message == refused), refuses, "{release}");
    }
}

#[test]
fn cluster_autoscaler_grows_for_claims_before_1_35() {
    let group = "{ name: blue, instanceType: m5.large, min: 1, desired: 1, max: 5 }";
    let grown = |release: &str, flags: &str| {
        let more = format!("versions: {{kubernetes: \"{release}\", cluster-autoscaler: \"{release}\"}}");
        let outcome = run(&with_autoscaler(group, flags, &more), OBJECTS);
        assert_eq!(bound(&outcome, "encode"), 0, "{release}");
        outcome.record.events.iter().filter(|event| event.kind == EventKind::DesiredCapacitySet).count() > 0
    };
    assert!(grown("1.34", ""), "its simulation leaves out DynamicResources");
    assert!(!grown("1.34", "enable-dynamic-resource-allocation: true"));
    assert!(!grown("1.35", "") && !grown("1.36", ""));
}

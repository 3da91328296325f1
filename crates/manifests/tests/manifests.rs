//! Manifests that people have are read unmodified and mean what they say.

#![allow(clippy::unwrap_used)] // a test that cannot set itself up has failed wherever that happens

use nodecast_manifests::{Manifests, read_manifests};
use nodecast_model::domain::node_pool::AmiFamily;
use nodecast_model::domain::{SimDuration, Symbol};
use nodecast_model::text::Source;

fn manifests(text: &str) -> Manifests {
    read_manifests(&Source::new("objects.yaml", text)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_provisioner_without_ttl_or_consolidation_removes_nothing() {
    let objects = manifests(
        "apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: default}
spec:
  requirements:
  - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
  provider:
    instanceProfile: KarpenterNodeInstanceProfile-${CLUSTER_NAME}
  weight: 10
  taints: [{key: example.com/special-taint, effect: NoSchedule}]
",
    );
    let pool = &objects.node_pools[0];
    assert_eq!((pool.disruption.consolidate_after, pool.expire_after), (None, None));
    assert_eq!((pool.weight, pool.taints[0].to_string().as_str()), (10, "example.com/special-taint:NoSchedule"));
    assert_eq!(objects.node_classes[0].name, pool.node_class);
    assert_eq!(objects.node_classes[0].ami_family, AmiFamily::AL2);
}

#[test]
fn lists_are_unwrapped_and_inert_kinds_are_quiet() {
    let objects = manifests(
        r#"{"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}},
            {"apiVersion": "networking.istio.io/v1alpha3", "kind": "VirtualService", "metadata": {"name": "v"}},
            {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "p"}, "spec": {"containers": []}}]}
        ]}"#,
    );
    assert_eq!(objects.warnings, []);
    assert_eq!(objects.pods[0].name.to_string(), "default/p");
    assert_eq!(objects.services[0].selector.len(), 1);
}

#[test]
fn monitors_give_shortest_scrape_interval_and_targets() {
    let objects = manifests(
        "apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {name: envoy, namespace: istio-system}
spec:
  selector: {matchExpressions: [{key: istio-prometheus-ignore, operator: DoesNotExist}]}
  namespaceSelector: {any: true}
  podMetricsEndpoints:
  - {path: /a, interval: 30s}
  - {path: /b, interval: 15s}
",
    );
    let monitor = &objects.monitors[0];
    assert_eq!(monitor.interval, Some(SimDuration::from_secs(15)));
    assert_eq!((monitor.of_services, &monitor.namespaces), (false, &None));
    assert_eq!(objects.warnings, []);
}

#[test]
fn priority_class_applies_to_its_pods() {
    let mut objects = manifests(
        "apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: -10
preemptionPolicy: Never
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {priorityClassName: low, containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b}
spec: {priorityClassName: system-node-critical, containers: [{name: c}]}
",
    );
    objects.resolve_priorities(&[]).unwrap();
    let priorities: Vec<i32> = objects.pods.iter().map(|pod| pod.spec.priority).collect();
    assert_eq!(priorities, [-10, 2_000_001_000]);
}

#[test]
fn provisioner_selector_maps_to_node_pool() {
    let objects = manifests(
        "apiVersion: v1
kind: Pod
metadata: {name: a, annotations: {karpenter.sh/do-not-evict: \"true\"}}
spec: {nodeSelector: {karpenter.sh/provisioner-name: novo-provisioner}, containers: [{name: c}]}
",
    );
    let spec = &objects.pods[0].spec;
    assert_eq!(spec.node_selector.get(Symbol::new("karpenter.sh/nodepool")), Some(Symbol::new("novo-provisioner")));
    assert_eq!(spec.annotations.get(Symbol::new("karpenter.sh/do-not-disrupt")), Some(Symbol::new("true")));
}

#[test]
fn v1beta1_fields_are_ignored_in_v1() {
    let read = |version: &str| {
        let text = format!(
            "apiVersion: {version}
kind: NodePool
metadata: {{name: default}}
spec:
  disruption: {{consolidationPolicy: WhenEmpty, consolidateAfter: 30s, expireAfter: 1h}}
  template:
    spec:
      kubelet: {{maxPods: 2}}
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      requirements: []
"
        );
        let objects = manifests(&text);
        let pool = &objects.node_pools[0];
        let max_pods = pool.kubelet.as_ref().and_then(|kubelet| kubelet.max_pods);
        let warnings: Vec<String> = objects.warnings.iter().map(ToString::to_string).collect();
        (pool.expire_after, max_pods, warnings)
    };
    let hours = |hours: i64| Some(SimDuration::from_secs(hours * 3_600));
    assert_eq!(read("karpenter.sh/v1beta1"), (hours(1), Some(2), Vec::new()));
    let (expire_after, max_pods, warnings) = read("karpenter.sh/v1");
    assert_eq!((expire_after, max_pods), (hours(720), None));
    assert_eq!(
        warnings,
        ["kubelet", "expireAfter"]
            .map(|key| format!("`karpenter.sh/v1` has no `{key}` here: it is of v1beta1, and the API server drops it"))
    );
}

#[test]
fn zero_in_a_probe_counts_as_not_given() {
    let read = |probe: &str| {
        let text = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{{name: a, livenessProbe: {{{probe}}}}}]}}\n"
        );
        manifests(&text).pods[0].spec.containers[0].liveness_probe
    };
    let zeros = "initialDelaySeconds: 0, timeoutSeconds: 0, periodSeconds: 0, successThreshold: 0, failureThreshold: 0";
    let probe = read(zeros).unwrap();
    assert_eq!((probe.period, probe.success_threshold, probe.failure_threshold), (SimDuration::from_secs(10), 1, 3));
    assert_eq!(read(zeros), read("httpGet: {port: 80}"));
}

#[test]
fn unrendered_objects_ask_for_their_rendered_manifests() {
    let objects = "apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: apps}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: api}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps}
---
apiVersion: helm.cattle.io/v1
kind: HelmChart
metadata: {name: traefik}
";
    let warnings = |text: &str| -> Vec<String> {
        let read = manifests(text);
        read.warnings.iter().map(|warning| warning.message().to_owned()).collect()
    };
    let of = |kind: &str| format!("what {kind} renders is not read: its pods are ignored");
    assert_eq!(
        warnings(objects),
        [
            of("HelmRelease (helm.toolkit.fluxcd.io)"),
            of("Application (argoproj.io)"),
            of("Kustomization (kustomize.toolkit.fluxcd.io)"),
            of("HelmChart (helm.cattle.io)"),
        ]
    );
    assert_eq!(warnings(&objects.replace("metadata: {", "metadata: {uid: a, ")), [] as [String; 0]);
    let file = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [web.yaml]\n";
    assert_eq!(warnings(file), [of("Kustomization (kustomize.config.k8s.io)")]);
}

#[test]
fn claim_annotation_precedes_storage_class_name() {
    let claim = |annotations: &str, class: &str| {
        let text = format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: c, annotations: {{{annotations}}}}}\n\
             spec: {{{class}resources: {{requests: {{storage: 1Gi}}}}}}\n"
        );
        let read = manifests(&text);
        (read.volume_claims[0].class.map(|class| class.as_str()), read.warnings.len())
    };
    let fast = "volume.beta.kubernetes.io/storage-class: fast";
    assert_eq!(claim("", "storageClassName: slow, "), (Some("slow"), 0));
    assert_eq!(claim(fast, "storageClassName: slow, "), (Some("fast"), 1));
    assert_eq!(claim(fast, ""), (Some("fast"), 1));
    assert_eq!(claim(fast, "storageClassName: fast, "), (Some("fast"), 0));
}

//! A dump of a cluster with Karpenter 1.8.1: 24 nodes, some 300 pods, and every kind of workload, as JSON.

use serde_json::{Value, json};

/// Names of the nodes, in order.
pub fn nodes() -> Vec<String> {
    (0..24).map(|number| format!("ip-10-61-{}-{}.ec2.internal", number / 8, 10 + number)).collect()
}

/// The dump.
pub fn dump() -> String {
    let mut items = setup();
    for (number, name) in nodes().iter().enumerate() {
        items.extend(node(number, name));
    }
    items.extend(workloads());
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

fn pool_of(number: usize) -> Option<&'static str> {
    match number {
        0..16 => Some("general"),
        16..22 => Some("memory"),
        _ => None,
    }
}

fn zone_of(number: usize) -> String {
    format!("us-east-1{}", ["a", "b", "c"][number % 3])
}

fn setup() -> Vec<Value> {
    let pool = |name: &str, family: &str| {
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": {
            "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": [family]}],
            }},
            "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1m"},
        }})
    };
    let environment = json!([
        {"name": "CLUSTER_NAME", "value": "prod"},
        {"name": "INTERRUPTION_QUEUE", "value": "prod"},
        {"name": "BATCH_IDLE_DURATION", "value": "2s"},
        {"name": "FEATURE_GATES", "value": "SpotToSpotConsolidation=true,NodeRepair=true"},
    ]);
    let template = json!({"metadata": {"labels": {"app.kubernetes.io/name": "karpenter"}}, "spec": {"containers": [{
        "name": "controller", "image": "public.ecr.aws/karpenter/controller:1.8.1@sha256:ab", "env": environment,
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }]}});
    vec![
        pool("general", "m5"),
        pool("memory", "r5"),
        json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
            "spec": {"amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "nodes"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "karpenter", "namespace": "kube-system",
            "labels": {"app.kubernetes.io/name": "karpenter"}}, "spec": {"replicas": 2,
            "selector": {"matchLabels": {"app.kubernetes.io/name": "karpenter"}}, "template": template}}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "gp3"},
            "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer"}),
    ]
}

fn node(number: usize, name: &str) -> Vec<Value> {
    let kind = if (16..22).contains(&number) { "r5.xlarge" } else { "m5.xlarge" };
    let capacity = if number % 2 == 1 { "spot" } else { "on-demand" };
    let mut labels = json!({
        "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
        "node.kubernetes.io/instance-type": kind, "topology.kubernetes.io/zone": zone_of(number),
        "topology.kubernetes.io/region": "us-east-1",
    });
    match pool_of(number) {
        Some(pool) => {
            labels["karpenter.sh/nodepool"] = json!(pool);
            labels["karpenter.sh/capacity-type"] = json!(capacity);
            labels["karpenter.sh/registered"] = json!("true");
            labels["karpenter.sh/initialized"] = json!("true");
        }
        None => labels["eks.amazonaws.com/nodegroup"] = json!("system"),
    }
    let resources = json!({"cpu": "3920m", "memory": "14Gi", "pods": "58"});
    let object = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "creationTimestamp": "2026-11-20T06:00:00Z", "labels": labels},
        "spec": {"providerID": format!("aws:///{}/i-0{number:016x}", zone_of(number))},
        "status": {"capacity": {"cpu": "4", "memory": "15Gi", "pods": "58"}, "allocatable": resources,
            "nodeInfo": {"kubeletVersion": "v1.33.4-eks-abc"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-20T12:00:00Z"}]}});
    let claim = pool_of(number).map(|pool| {
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": format!("{pool}-{number:05}"),
            "creationTimestamp": "2026-11-20T05:59:00Z", "labels": {"karpenter.sh/nodepool": pool}},
            "status": {"nodeName": name, "conditions": [
                {"type": "Initialized", "status": "True", "lastTransitionTime": "2026-11-20T06:01:00Z"}]}})
    });
    [Some(object), claim].into_iter().flatten().collect()
}

fn pod(name: &str, namespace: &str, owner: (&str, &str), place: Option<usize>, more: Value) -> Value {
    let (kind, controller) = owner;
    let app =
        controller.rsplit_once('-').map_or(controller, |(app, _)| if kind == "ReplicaSet" { app } else { controller });
    let mut spec = json!({"containers": [{"name": "own", "image": "own:1",
        "resources": {"requests": {"cpu": "250m", "memory": "400Mi"}}}]});
    if let (Some(fields), Some(object)) = (spec.as_object_mut(), more.as_object()) {
        fields.extend(object.clone());
    }
    let mut status = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
    if let Some(place) = place {
        spec["nodeName"] = json!(nodes()[place]);
        status = json!({"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-20T07:01:00Z"}]});
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, "labels": {"app": app},
        "creationTimestamp": "2026-11-20T07:00:00Z",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": controller, "uid": controller, "controller": true}]},
        "spec": spec, "status": status})
}

fn template(app: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "own", "image": "own:1",
        "resources": {"requests": {"cpu": "250m", "memory": "400Mi"}}}]}})
}

fn workloads() -> Vec<Value> {
    let mut items = Vec::new();
    for number in 0..12 {
        let app = format!("web{number}");
        let meta = json!({"name": app, "namespace": "shop"});
        let selector = json!({"matchLabels": {"app": app}});
        items.push(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
            "spec": {"replicas": 19, "selector": selector, "template": template(&app)}}));
        items.push(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta,
            "spec": {"maxUnavailable": if number == 3 { 0 } else { 2 }, "selector": selector}}));
        if number < 3 {
            items.push(json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": app}, "minReplicas": 5, "maxReplicas": 30,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}]}}));
        }
        for replica in 0..18 {
            let name = format!("{app}-6d5f-{replica}");
            items.push(pod(
                &name,
                "shop",
                ("ReplicaSet", &format!("{app}-6d5f")),
                Some((number * 7 + replica) % 22),
                json!({}),
            ));
        }
    }
    for replica in 0..2 {
        let owner = ("ReplicaSet", "karpenter-7c9b");
        items.push(pod(&format!("karpenter-7c9b-{replica}"), "kube-system", owner, Some(22 + replica), json!({})));
    }
    items.extend(others());
    items
}

fn others() -> Vec<Value> {
    let mut items = Vec::new();
    for set in ["aws-node", "exporter"] {
        items.push(
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": set, "namespace": "kube-system"},
            "spec": {"selector": {"matchLabels": {"app": set}}, "template": template(set)}}),
        );
        for place in 0..24 {
            items.push(pod(&format!("{set}-{place}"), "kube-system", ("DaemonSet", set), Some(place), json!({})));
        }
    }
    let claims = json!([{"metadata": {"name": "data"}, "spec": {"storageClassName": "gp3", "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "20Gi"}}}}]);
    items.push(json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "data"},
        "spec": {"replicas": 6, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template("db"),
            "volumeClaimTemplates": claims}}));
    for replica in 0..6 {
        let (name, zone) = (format!("data-db-{replica}"), zone_of(16 + replica));
        items.push(
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "data",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"storageClassName": "gp3", "volumeName": format!("pv-{replica}"), "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "20Gi"}}}}),
        );
        items.push(json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": format!("pv-{replica}")}, "spec": {
            "capacity": {"storage": "20Gi"}, "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": format!("vol-{replica}")},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}]}}}}));
        let volumes = json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]});
        items.push(pod(&format!("db-{replica}"), "data", ("StatefulSet", "db"), Some(16 + replica), volumes));
    }
    items.push(
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "load", "namespace": "batch"}, "spec": {
        "parallelism": 10, "completions": 10, "template": {"metadata": {"labels": {"app": "load"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "own", "image": "own:1",
                "resources": {"requests": {"cpu": "250m", "memory": "400Mi"}}}]}}}}),
    );
    for number in 0..10 {
        items.push(pod(
            &format!("load-{number}"),
            "batch",
            ("Job", "load"),
            Some(number),
            json!({"restartPolicy": "Never"}),
        ));
    }
    items
}

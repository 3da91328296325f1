#!/usr/bin/env python3
"""Writes the dumps beside it in the form of `kubectl get ... -A -o yaml` (and -o json): made-up clusters of the shape that one
meets. Equal bytes every time: python3 tests/data/dump/generate.py
"""

import json
import os
import random

HERE = os.path.dirname(os.path.abspath(__file__))
NOW = "2026-11-24T13:42:17Z"
REGION = "eu-west-1"
ZONES = ["eu-west-1a", "eu-west-1b", "eu-west-1c"]
rng = random.Random(7)


def uid():
    digits = "".join(rng.choice("0123456789abcdef") for _ in range(32))
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def suffix(count):
    return "".join(rng.choice("bcdfghjklmnpqrstvwxz2456789") for _ in range(count))


def metadata(name, namespace=None, labels=None, manager="kubectl-client-side-apply", applied=True, more=None):
    """Metadata as an API server hands it out."""
    own = {}
    if applied:
        own["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": '{"kind":"...","metadata":{"name":"%s"}}\n' % name}
    own["creationTimestamp"] = "2026-0%d-1%dT0%d:2%d:11Z" % (rng.randint(1, 9), rng.randint(0, 9), rng.randint(0, 9), rng.randint(0, 9))
    if labels:
        own["labels"] = dict(labels)
    own["managedFields"] = [{
        "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}, "f:spec": {}},
        "manager": manager, "operation": "Update", "time": "2026-10-02T09:11:02Z",
    }]
    own["name"] = name
    if namespace:
        own["namespace"] = namespace
    own["resourceVersion"] = str(rng.randint(10**7, 10**8))
    own["uid"] = uid()
    own.update(more or {})
    return own


# name, namespace, replicas, CPU request in milli, memory in Mi, HorizontalPodAutoscaler (target %, measured %, min, max) or
# None, PodDisruptionBudget or None, architecture wanted or None
DEPLOYMENTS = [
    ("storefront", "shop", 14, 500, 768, (60, 57, 6, 40), "20%", None),
    ("checkout", "shop", 9, 750, 1024, (65, 63, 4, 30), 1, None),
    ("catalog", "shop", 8, 400, 1536, (70, 68, 4, 24), "25%", "arm64"),
    ("search", "shop", 6, 1000, 2048, (60, 58, 3, 20), 1, None),
    ("cart", "shop", 6, 250, 512, (70, 66, 3, 20), 1, "arm64"),
    ("recommendations", "shop", 5, 1000, 3072, (75, 71, 2, 16), None, "arm64"),
    ("payments", "payments", 4, 500, 768, (60, 55, 4, 12), 1, None),
    ("fraud-scoring", "payments", 3, 1500, 2048, (70, 67, 2, 10), 1, None),
    ("ledger", "payments", 3, 500, 1024, None, 1, None),
    ("invoices", "payments", 2, 250, 512, None, None, None),
    ("identity", "platform", 4, 300, 512, (65, 61, 3, 12), 1, None),
    ("api-gateway", "platform", 6, 500, 512, (60, 56, 4, 24), "20%", None),
    ("notifications", "platform", 3, 200, 384, None, None, "arm64"),
    ("webhooks", "platform", 2, 200, 256, None, None, None),
    ("feature-flags", "platform", 2, 100, 256, None, 1, None),
    ("audit", "platform", 2, 200, 512, None, None, None),
    ("image-resizer", "media", 4, 1000, 1024, None, None, "arm64"),
    ("transcoder", "media", 3, 2000, 4096, None, None, None),
    ("thumbnails", "media", 2, 500, 512, None, None, None),
    ("reports", "data", 2, 1000, 4096, None, None, None),
    ("etl-controller", "data", 1, 500, 1024, None, None, None),
    ("feature-store", "data", 3, 750, 6144, None, 1, None),
    ("event-sink", "data", 3, 400, 1024, None, None, None),
    ("coredns", "kube-system", 2, 100, 70, None, 1, None),
    ("karpenter", "kube-system", 2, 1000, 1024, None, 1, None),
    ("metrics-server", "kube-system", 2, 100, 200, None, None, None),
    ("aws-load-balancer-controller", "kube-system", 2, 100, 128, None, None, None),
    ("external-dns", "kube-system", 1, 50, 64, None, None, None),
    ("prometheus-server", "monitoring", 1, 1000, 8192, None, None, None),
    ("grafana", "monitoring", 1, 250, 512, None, None, None),
]
DAEMONS = [
    ("aws-node", "kube-system", 50, 0, "system-node-critical"),
    ("kube-proxy", "kube-system", 100, 0, "system-node-critical"),
    ("ebs-csi-node", "kube-system", 30, 120, "system-node-critical"),
    ("node-exporter", "monitoring", 50, 64, None),
]
SYSTEM = {"coredns", "karpenter", "metrics-server", "aws-load-balancer-controller"}


def pod_spec(name, namespace, cpu, memory, arch):
    images = {"karpenter": "public.ecr.aws/karpenter/controller:1.13.0@sha256:" + "4f" * 32}
    resources = {"limits": {"memory": f"{memory}Mi"}, "requests": {"cpu": f"{cpu}m" if cpu % 1000 else str(cpu // 1000), "memory": f"{memory}Mi"}}
    spec = {
        "containers": [{
            "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "DATABASE_PASSWORD", "value": "not-for-the-repository"}],
            "image": images.get(name, f"123456789012.dkr.ecr.{REGION}.amazonaws.com/{namespace}/{name}:2026.11.{len(name)}"),
            "imagePullPolicy": "IfNotPresent",
            "name": "controller" if name == "karpenter" else name,
            "readinessProbe": {"failureThreshold": 3, "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 5, "successThreshold": 1, "timeoutSeconds": 1},
            "resources": resources,
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    if arch:
        spec["nodeSelector"] = {"kubernetes.io/arch": arch}
    if name in SYSTEM:
        spec["priorityClassName"] = "system-cluster-critical"
        spec["nodeSelector"] = {"role": "system"}
        spec["tolerations"] = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    if namespace in ("shop", "payments"):
        spec["priorityClassName"] = "revenue"
        spec["topologySpreadConstraints"] = [{
            "labelSelector": {"matchLabels": {"app": name}}, "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway",
        }]
    return spec


def deployment(row):
    name, namespace, replicas, cpu, memory, _, _, arch = row
    own = metadata(name, namespace, {"app": name, "team": namespace}, more={"generation": rng.randint(2, 40)})
    own["annotations"]["deployment.kubernetes.io/revision"] = str(rng.randint(1, 60))
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": own,
        "spec": {
            "progressDeadlineSeconds": 600, "replicas": replicas, "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}, "type": "RollingUpdate"},
            "template": {"metadata": {"creationTimestamp": None, "labels": {"app": name, "team": namespace}}, "spec": pod_spec(name, namespace, cpu, memory, arch)},
        },
        "status": {
            "availableReplicas": replicas, "observedGeneration": own["generation"], "readyReplicas": replicas,
            "replicas": replicas, "updatedReplicas": replicas,
            "conditions": [{"lastTransitionTime": "2026-10-02T09:11:02Z", "lastUpdateTime": "2026-10-02T09:11:02Z", "message": "Deployment has minimum availability.", "reason": "MinimumReplicasAvailable", "status": "True", "type": "Available"}],
        },
    }


def autoscaler(row):
    name, namespace, replicas, cpu, _, (target, measured, least, most), _, _ = row
    return {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata(name, namespace),
        "spec": {
            "maxReplicas": most, "minReplicas": least,
            "metrics": [{"resource": {"name": "cpu", "target": {"averageUtilization": target, "type": "Utilization"}}, "type": "Resource"}],
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        },
        "status": {
            "currentMetrics": [{"resource": {"current": {"averageUtilization": measured, "averageValue": f"{cpu * measured // 100}m"}, "name": "cpu"}, "type": "Resource"}],
            "currentReplicas": replicas, "desiredReplicas": replicas, "lastScaleTime": "2026-11-24T12:58:03Z",
            "conditions": [{"lastTransitionTime": "2026-09-01T07:00:00Z", "message": "recommended size matches current size", "reason": "ReadyForNewScale", "status": "True", "type": "AbleToScale"}],
        },
    }


def budget(row):
    name, namespace, replicas, *_, allowed, _ = row
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata(name, namespace),
        "spec": {"maxUnavailable": allowed, "selector": {"matchLabels": {"app": name}}},
        "status": {"conditions": [], "currentHealthy": replicas, "desiredHealthy": replicas - 1, "disruptionsAllowed": 1, "expectedPods": replicas, "observedGeneration": 1},
    }


def pool(name, weight, capacity, arch, families, after):
    own = metadata(name, more={"generation": 3})
    own["annotations"]["karpenter.sh/nodepool-hash"] = "12393960163388511505"
    own["annotations"]["karpenter.sh/nodepool-hash-version"] = "v3"
    return {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": own,
        "spec": {
            "disruption": {"budgets": [{"nodes": "10%"}], "consolidateAfter": after, "consolidationPolicy": "WhenEmptyOrUnderutilized"},
            "limits": {"cpu": "400", "memory": "1600Gi"},
            "template": {
                "metadata": {"labels": {"pool": name}},
                "spec": {
                    "expireAfter": "720h",
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                    "requirements": [
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity},
                        {"key": "kubernetes.io/arch", "operator": "In", "values": [arch]},
                        {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": families},
                        {"key": "karpenter.k8s.aws/instance-size", "operator": "In", "values": ["large", "xlarge", "2xlarge"]},
                    ],
                },
            },
            "weight": weight,
        },
        "status": {"conditions": [{"lastTransitionTime": "2026-10-02T09:11:02Z", "message": "", "reason": "Ready", "status": "True", "type": "Ready"}], "resources": {"cpu": "84", "memory": "310Gi", "nodes": "11"}},
    }


NODE_CLASS = {
    "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": None,
    "spec": {
        "amiSelectorTerms": [{"alias": "al2023@v20261105"}], "role": "KarpenterNodeRole-prod",
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
    },
    "status": {"conditions": [{"lastTransitionTime": "2026-10-02T09:11:02Z", "message": "", "reason": "Ready", "status": "True", "type": "Ready"}]},
}
SIZES = {  # type: milli CPU that pods may use, MiB likewise, pods
    "m6i.large": (1930, 7100, 29), "m6i.xlarge": (3920, 14900, 58), "c6i.xlarge": (3920, 6800, 58), "m6i.2xlarge": (7910, 30200, 58),
    "m7g.large": (1930, 7100, 29), "m7g.xlarge": (3920, 14900, 58), "c7g.xlarge": (3920, 6800, 58), "r7g.xlarge": (3920, 30500, 58),
}


def node(kind, zone, owner, capacity):
    cpu, memory, pods = SIZES[kind]
    name = "ip-10-%d-%d-%d.%s.compute.internal" % (ZONES.index(zone) * 32, rng.randint(0, 254), rng.randint(4, 250), REGION)
    arch = "arm64" if kind.split(".")[0].endswith("g") else "amd64"
    labels = {
        "beta.kubernetes.io/arch": arch, "beta.kubernetes.io/instance-type": kind, "failure-domain.beta.kubernetes.io/region": REGION,
        "k8s.io/cloud-provider-aws": "5553ae84a0d29114870f67bbabd07d44", "kubernetes.io/arch": arch, "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": kind, "topology.kubernetes.io/region": REGION, "topology.kubernetes.io/zone": zone,
    }
    taints = []
    if owner == "system":
        labels.update({"eks.amazonaws.com/capacityType": "ON_DEMAND", "eks.amazonaws.com/nodegroup": "system", "eks.amazonaws.com/nodegroup-image": "ami-0a1b2c3d4e5f60718", "role": "system"})
        taints = [{"effect": "NoSchedule", "key": "CriticalAddonsOnly", "value": "true"}]
    else:
        labels.update({"karpenter.sh/capacity-type": capacity, "karpenter.sh/nodepool": owner, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true", "pool": owner})
    spec = {"providerID": f"aws:///{zone}/i-0{uid().replace('-', '')[:16]}"}
    if taints:
        spec["taints"] = taints
    own = metadata(name, labels=labels, manager="kubelet", applied=False)
    if owner != "system":
        # Younger than the age limit of its pool.
        own["creationTimestamp"] = "2026-11-%02dT09:20:11Z" % (5 + (3 * ZONES.index(zone) + len(kind) + memory) % 17)
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": own, "spec": spec,
        "status": {
            "addresses": [{"address": name, "type": "InternalDNS"}],
            "allocatable": {"cpu": f"{cpu}m", "ephemeral-storage": "18181869946", "memory": f"{memory * 1024}Ki", "pods": str(pods)},
            "capacity": {"cpu": str(-(-cpu // 1000)), "ephemeral-storage": "20893676Ki", "memory": f"{memory * 1100}Ki", "pods": str(pods)},
            "conditions": [{"lastHeartbeatTime": NOW, "lastTransitionTime": "2026-11-20T10:00:00Z", "message": "kubelet is posting ready status", "reason": "KubeletReady", "status": "True", "type": "Ready"}],
            "nodeInfo": {"architecture": arch, "containerRuntimeVersion": "containerd://2.1.4", "kernelVersion": "6.1.155", "kubeletVersion": "v1.35.2-eks-113cf36", "operatingSystem": "linux", "osImage": "Amazon Linux 2023.9.20261105"},
        },
    }, {"cpu": cpu, "memory": memory, "pods": pods, "arch": arch, "owner": owner}


def pod(name, namespace, owner, labels, spec, on):
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": metadata(name, namespace, labels, manager="kube-controller-manager", applied=False, more={
            "ownerReferences": [{"apiVersion": "apps/v1", "blockOwnerDeletion": True, "controller": True, "kind": owner[0], "name": owner[1], "uid": uid()}]}),
        "spec": dict(spec, nodeName=on, priority=1000 if spec.get("priorityClassName") == "revenue" else 0, serviceAccountName="default"),
        "status": {"hostIP": "10.0.0.1", "phase": "Running", "podIP": "10.0.1.1", "qosClass": "Burstable", "startTime": "2026-11-23T08:00:00Z"},
    }


def thin(spec):
    """What a pod's specification shows of a template, without what makes the file long."""
    slim = json.loads(json.dumps(spec))
    for container in slim["containers"]:
        container.pop("readinessProbe", None)
        container.pop("env", None)
    return slim


def place(nodes, cpu, memory, arch, system):
    for name, own in nodes:
        fits = own["cpu"] >= cpu and own["memory"] >= memory and own["pods"] > 0
        if fits and (own["owner"] == "system") == system and (arch is None and own["arch"] == "amd64" or own["arch"] == arch):
            own["cpu"] -= cpu
            own["memory"] -= memory
            own["pods"] -= 1
            return name
    raise SystemExit(f"no node takes {cpu}m and {memory}Mi of {arch}")


def cluster():
    items = [deployment(row) for row in DEPLOYMENTS]
    items += [autoscaler(row) for row in DEPLOYMENTS if row[5]]
    items += [budget(row) for row in DEPLOYMENTS if row[6]]
    items += [
        pool("spot", 50, ["spot"], "amd64", ["c6i", "m6i", "m6a"], "2m"),
        pool("on-demand", 10, ["on-demand"], "amd64", ["c6i", "m6i"], "5m"),
        pool("graviton", 30, ["spot", "on-demand"], "arm64", ["c7g", "m7g", "r7g"], "2m"),
    ]
    items.append(dict(NODE_CLASS, metadata=metadata("default")))
    plan = [("m6i.large", "system", "on-demand")] * 4
    plan += [("m6i.xlarge", "spot", "spot")] * 7 + [("c6i.xlarge", "spot", "spot")] * 5 + [("m6i.2xlarge", "spot", "spot")] * 3
    plan += [("m6i.xlarge", "on-demand", "on-demand")] * 6 + [("m6i.large", "on-demand", "on-demand")] * 3
    plan += [("m7g.xlarge", "graviton", "spot")] * 5 + [("c7g.xlarge", "graviton", "spot")] * 4 + [("r7g.xlarge", "graviton", "on-demand")] * 1 + [("m7g.large", "graviton", "on-demand")] * 2
    nodes = [node(kind, ZONES[i % 3], owner, capacity) for i, (kind, owner, capacity) in enumerate(plan)]
    items += [own for own, _ in nodes]
    free = [(own["metadata"]["name"], room) for own, room in nodes]
    for name, namespace, cpu, memory, priority in DAEMONS:
        labels = {"app.kubernetes.io/name": name, "controller-revision-hash": suffix(10), "pod-template-generation": "4"}
        for on, room in free:
            room["cpu"] -= cpu
            room["memory"] -= memory
            room["pods"] -= 1
            spec = {
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}]}}},
                "containers": [{"image": f"{name}:v1", "name": name, "resources": {"requests": {"cpu": f"{cpu}m", **({"memory": f"{memory}Mi"} if memory else {})}}}],
                "hostNetwork": True, "tolerations": [{"operator": "Exists"}],
            }
            if priority:
                spec["priorityClassName"] = priority
            items.append(pod(f"{name}-{suffix(5)}", namespace, ("DaemonSet", name), labels, spec, on))
    order = sorted(DEPLOYMENTS, key=lambda row: -row[3] - row[4] / 4)
    for name, namespace, replicas, cpu, memory, _, _, arch in order:
        hash_ = suffix(10)
        labels = {"app": name, "team": namespace, "pod-template-hash": hash_}
        for _ in range(replicas):
            on = place(free, cpu, memory, arch, name in SYSTEM)
            items.append(pod(f"{name}-{hash_}-{suffix(5)}", namespace, ("ReplicaSet", f"{name}-{hash_}"), labels, thin(pod_spec(name, namespace, cpu, memory, arch)), on))
    return items


def scalar(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    plain = value and value[0].isalpha() and all(c.isalnum() or c in "-._/" for c in value)
    return value if plain and value.lower() not in ("true", "false", "null", "yes", "no", "on", "off", "y", "n") else json.dumps(value)


def yaml(value, indent=0):
    pad, lines = " " * indent, []
    if isinstance(value, dict):
        for key, own in value.items():
            if isinstance(own, (dict, list)) and own:
                lines.append(f"{pad}{scalar(key)}:")
                lines.append(yaml(own, indent + (2 if isinstance(own, dict) else 0)))
            else:
                lines.append(f"{pad}{scalar(key)}: " + ("{}" if own == {} else "[]" if own == [] else scalar(own)))
    else:
        for own in value:
            if isinstance(own, (dict, list)) and own:
                lines.append(pad + "- " + yaml(own, indent + 2).lstrip())
            else:
                lines.append(pad + "- " + scalar(own))
    return "\n".join(lines)


def small():
    """Two Deployments of a cluster with the Cluster Autoscaler, as JSON and with DaemonSets and a StatefulSet known by pods."""
    rows = [("web", "default", 3, 500, 512, (50, 45, 2, 8), 1, None), ("cluster-autoscaler", "kube-system", 1, 100, 300, None, None, None)]
    items = [deployment(row) for row in rows]
    items[1]["spec"]["template"]["spec"]["containers"][0].update(
        image="registry.k8s.io/autoscaling/cluster-autoscaler:v1.33.0",
        command=["./cluster-autoscaler", "--cloud-provider=aws", "--expander=least-waste", "--scale-down-unneeded-time=5m", "--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled"])
    items += [autoscaler(rows[0]), budget(rows[0])]
    nodes = [node("m6i.large", ZONES[i % 3], "workers", "on-demand")[0] for i in range(3)]
    for own in nodes:
        labels = own["metadata"]["labels"]
        for key in [key for key in labels if key.startswith("karpenter.sh/")]:
            del labels[key]
        labels.update({"eks.amazonaws.com/nodegroup": "workers", "eks.amazonaws.com/capacityType": "SPOT"})
        own["status"]["nodeInfo"]["osImage"] = "Bottlerocket OS 1.49.0 (aws-k8s-1.33)"
        own["status"]["nodeInfo"]["kubeletVersion"] = "v1.33.4-eks-99d6cc0"
    items += nodes
    names = [own["metadata"]["name"] for own in nodes]
    spec = {"containers": [{"image": "postgres:17", "name": "postgres", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]}
    for i in range(2):
        labels = {"app": "postgres", "controller-revision-hash": "postgres-5c4f", "statefulset.kubernetes.io/pod-name": f"postgres-{i}", "apps.kubernetes.io/pod-index": str(i)}
        items.append(pod(f"postgres-{i}", "default", ("StatefulSet", "postgres"), labels, spec, names[i]))
    return items


def write(name, items, form):
    whole = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as out:
        out.write(json.dumps(whole, indent=4) if form == "json" else yaml(whole))
        out.write("\n")


write("cluster.yaml", cluster(), "yaml")
SMALL = small()
write("small.json", SMALL, "json")
write("small.yaml", SMALL, "yaml")

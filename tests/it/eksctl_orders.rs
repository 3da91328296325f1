//! Orders of an eksctl ClusterConfig next to its nodes: NAT gateways, the control plane's tier, node repair, and Karpenter.

use nodecast::domain::ControlPlaneTier;
use nodecast::report::Summary;

use crate::reserved_capacity::run_file;

const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata: { name: kiosk, namespace: fair }
spec:
  replicas: 2
  selector: { matchLabels: { app: kiosk } }
  template:
    metadata: { labels: { app: kiosk } }
    spec: { containers: [{ name: kiosk, resources: { requests: { cpu: 250m, memory: 128Mi } } }] }
";

/// A folder with a scenario of three hours whose ClusterConfig has `cluster`, with `more` in the scenario.
fn folder(cluster: &str, more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{ name: fair, region: eu-central-1 }}\n{cluster}"
    );
    let scenario = format!(
        "name: fair\nregion: eu-central-1\nstart: 2026-09-07T00:00:00Z\nduration: 3h\nmanifests: [cluster.yaml, web.yaml]\n\
         policies: [{{ name: fixed, autoscaler: static }}]\n{more}"
    );
    for (name, text) in [("cluster.yaml", config.as_str()), ("web.yaml", WEB), ("scenario.yaml", &scenario)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Hourly price of the NAT gateways on the bill.
fn nat_per_hour(cluster: &str, more: &str) -> f64 {
    let folder = folder(cluster, more);
    let summary = Summary::from_outcome(&run_file(&folder.path().join("scenario.yaml")));
    let gateways = summary.cost.by_item.iter().filter(|part| part.name == "NAT gateways");
    gateways.map(|part| part.amount).sum::<f64>() / 3.0
}

/// Warnings of a scenario, one text.
fn warnings(cluster: &str, more: &str) -> String {
    let folder = folder(cluster, more);
    let (_, warnings) = nodecast::scenario::load(&folder.path().join("scenario.yaml")).unwrap();
    warnings.iter().map(|warning| format!("{}\n", warning.message())).collect()
}

const GROUP: &str = "managedNodeGroups: [{ name: stalls, instanceType: m6i.large, desiredCapacity: 2 }]\n";

#[test]
fn nat_gateways_of_a_cluster_config_are_billed() {
    let one = nat_per_hour(GROUP, "");
    assert!(one > 0.04, "a ClusterConfig orders one unless it says otherwise: {one}");
    let close = |have: f64, want: f64| assert!((have - want).abs() < 1e-9, "{have} instead of {want}");
    let with = |vpc: &str| nat_per_hour(&format!("{vpc}\n{GROUP}"), "");
    close(with("vpc: { nat: { gateway: Single } }"), one);
    close(with("vpc: { nat: { gateway: HighlyAvailable } }"), 3.0 * one);
    close(
        with("availabilityZones: [eu-central-1a, eu-central-1c]\nvpc: { nat: { gateway: HighlyAvailable } }"),
        2.0 * one,
    );
    close(with("vpc: { nat: { gateway: Disable } }"), 0.0);
    close(with("privateCluster: { enabled: true }"), 0.0);
    close(with("vpc: { id: vpc-0a1, subnets: { public: { eu-central-1a: { id: subnet-1 } } } }"), 0.0);
    let stated = "ec2: { billing: { nat_gateways: { count: 2, per_hour: 0.2 } } }\n";
    close(nat_per_hour(GROUP, stated), 0.4);
}

/// Costs of a run by item, for the items that EKS charges for.
fn eks_items(cluster: &str, more: &str, when: &str) -> (Vec<(String, f64)>, Vec<String>) {
    let folder = folder(cluster, more);
    let path = folder.path().join("scenario.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("start: 2026-09-07T00:00:00Z\nduration: 3h", when)).unwrap();
    let outcome = run_file(&path);
    let of_eks = |name: &str| {
        ["control plane", "extended support", "capability", "hybrid nodes"].iter().any(|kind| name.starts_with(kind))
    };
    let parts = Summary::from_outcome(&outcome).cost.by_item;
    let items = parts.iter().filter(|part| of_eks(&part.name));
    let items = items.map(|part| (part.name.to_string(), (part.amount * 1e4).round() / 1e4)).collect();
    (items, outcome.warnings.iter().map(ToString::to_string).collect())
}

const THREE_HOURS: &str = "start: 2026-09-07T00:00:00Z\nduration: 3h";

#[test]
fn ordered_tier_is_billed() {
    let order = format!("controlPlaneScalingConfig: {{ tier: tier-2xl }}\n{GROUP}");
    assert_eq!(warnings(&order, ""), "");
    let items = |more: &str| eks_items(&order, more, THREE_HOURS).0;
    let has = |more: &str, name: &str, amount: f64| {
        let items = items(more);
        assert!(items.contains(&(name.to_owned(), amount)), "{name} {amount}: {items:?}");
    };
    has("", "control plane tier", 10.2);
    has("", "control plane", 0.3);
    has("ec2: { billing: { control_plane_tier: 3 } }\n", "control plane tier", 9.0);
    has("cluster: { control_plane_tier: 8xl }\n", "control plane tier", 41.7);
    assert_eq!(items("cluster: { control_plane_tier: standard }\n").len(), 1);
    let unknown = warnings(&format!("controlPlaneScalingConfig: {{ tier: tier-ultra }}\n{GROUP}"), "");
    assert!(unknown.contains("tier-ultra") && unknown.contains("cost is too low"), "{unknown}");
}

#[test]
fn extended_support_adds_to_the_tier() {
    let release = |more: &str| format!("versions: {{ kubernetes: '1.33' }}\n{more}");
    let (items, warnings) = eks_items(GROUP, &release(""), "start: 2026-07-28T00:00:00Z\nduration: 2d");
    let total: f64 = items.iter().map(|item| item.1).sum();
    assert!((total - 16.8).abs() < 1e-6, "{items:?}");
    assert!(warnings.iter().any(|text| text.contains("standard support for Kubernetes 1.33 ends")), "{warnings:?}");
    let provisioned = release("cluster: { control_plane_tier: 4xl }\n");
    let (items, warnings) = eks_items(GROUP, &provisioned, "start: 2026-08-10T00:00:00Z\nduration: 1d");
    let amounts = [("control plane", 2.4), ("extended support", 12.0), ("control plane tier", 165.6)];
    for (name, amount) in amounts {
        assert!(items.contains(&(name.to_owned(), amount)), "{name}: {items:?}");
    }
    assert!(!warnings.iter().any(|text| text.contains("standard support")), "{warnings:?}");
}

#[test]
fn tier_changes_during_a_run() {
    let steps = "timeline:\n  - { at: 55m, control_plane_tier: xl }\n  - { at: 115m, control_plane_tier: standard }\n";
    let folder = folder(GROUP, steps);
    let outcome = run_file(&folder.path().join("scenario.yaml"));
    let changed: Vec<String> = outcome
        .record
        .events
        .iter()
        .filter(|event| event.kind == nodecast::world::record::EventKind::ControlPlaneTierChanged)
        .map(|event| format!("{} {}", event.at, event.message))
        .collect();
    assert_eq!(changed, ["01:00:00 xl", "02:00:00 standard"]);
    let (items, _) = eks_items(GROUP, steps, THREE_HOURS);
    assert!(items.contains(&("control plane tier".to_owned(), 1.65)), "{items:?}");
    let old = format!("versions: {{ kubernetes: '1.27' }}\n{steps}");
    let folder = self::folder(GROUP, &old);
    let refused = nodecast::scenario::load(&folder.path().join("scenario.yaml")).unwrap_err().to_string();
    assert!(refused.contains("the tier `xl` of the control plane with Kubernetes 1.27"), "{refused}");
}

#[test]
fn release_without_known_dates_is_warned_of() {
    let of = |release: &str| eks_items(GROUP, &format!("versions: {{ kubernetes: '{release}' }}\n"), THREE_HOURS).1;
    let newest = of("1.37");
    assert!(newest.iter().any(|text| text.contains("standard support for Kubernetes 1.37 is unknown")), "{newest:?}");
    assert!(!of("1.36").iter().any(|text| text.contains("standard support")));
}

#[test]
fn capabilities_and_hybrid_nodes_are_billed() {
    let order = format!("capabilities: [{{ name: gitops, type: ARGOCD, roleArn: r }}]\n{GROUP}");
    let (items, told) = eks_items(&order, "", THREE_HOURS);
    assert!(items.contains(&("capability Argo CD".to_owned(), 0.0831)), "{items:?}");
    assert!(told.iter().any(|text| text.contains("argocd without Applications")), "{told:?}");
    assert!(told.iter().any(|text| text.contains("no price in eu-central-1 for EKS Capabilities")), "{told:?}");
    let stated = "ec2: { billing: { capabilities: [{ type: kro, items: 30, per_hour: 0.005, per_item_hour: 0.0001 }], \
                  hybrid_vcpus: 50 } }\n";
    let (items, told) = eks_items(&order, stated, THREE_HOURS);
    for (name, amount) in [("capability KRO", 0.024), ("hybrid nodes", 3.0)] {
        assert!(items.contains(&(name.to_owned(), amount)), "{name}: {items:?}");
    }
    assert!(!told.iter().any(|text| text.contains("Capabilities")), "{told:?}");
    let unknown = warnings(&format!("capabilities: [{{ name: x, type: FLUX }}]\n{GROUP}"), "");
    assert!(unknown.contains("`FLUX` is unknown"), "{unknown}");
}

#[test]
fn tier_of_a_cluster_config_is_used() {
    let tier = |cluster: &str, more: &str| {
        let folder = folder(&format!("{cluster}{GROUP}"), more);
        nodecast::scenario::load(&folder.path().join("scenario.yaml")).unwrap().0.policies[0].control_plane_tier
    };
    let ordered = "controlPlaneScalingConfig: { tier: tier-2xl }\n";
    assert_eq!(tier(ordered, ""), ControlPlaneTier::Xl2);
    assert_eq!(tier(ordered, "cluster: { control_plane_tier: xl }\n"), ControlPlaneTier::Xl);
    assert_eq!(tier("", ""), ControlPlaneTier::Standard);
}

#[test]
fn other_orders_of_a_cluster_config_are_named() {
    let group = "localZones: [eu-central-1-ham-1a]\nmanagedNodeGroups:\n  - name: stalls\n    instanceType: m6i.large\n    \
                 desiredCapacity: 1\n    nodeRepairConfig: { enabled: true, nodeRepairConfigOverrides: [{ nodeMonitoringCondition: \
                 KernelReady, repairAction: NoAction }] }\n";
    let named = warnings(group, "");
    assert!(named.contains("`localZones`") && named.contains("`nodeRepairConfigOverrides`"), "{named}");
    assert!(!named.contains("unknown key"), "{named}");
    let off = group.replace("KernelReady", "Ready").replace("localZones: [eu-central-1-ham-1a]\n", "");
    assert_eq!(warnings(&off, ""), "");
}

#[test]
fn karpenter_of_a_cluster_config_is_used() {
    let with = |version: &str, more: &str| {
        let pool = "---\n{ apiVersion: karpenter.sh/v1, kind: NodePool, metadata: { name: stalls }, spec: { template: { spec: \
                    { requirements: [], nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: stalls } } } } }\n---\n\
                    { apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: { name: stalls }, spec: { role: stalls, \
                    amiSelectorTerms: [{ alias: al2023@latest }], subnetSelectorTerms: [{ tags: { a: b } }], \
                    securityGroupSelectorTerms: [{ tags: { a: b } }] } }\n";
        let folder = folder(&format!("karpenter: {{ version: {version} }}\n{GROUP}{pool}"), more);
        let path = folder.path().join("scenario.yaml");
        let text = std::fs::read_to_string(&path).unwrap().replace("autoscaler: static", "autoscaler: karpenter");
        std::fs::write(&path, text).unwrap();
        let (scenario, warnings) = nodecast::scenario::load(&path).unwrap();
        let policy = &scenario.policies[0];
        let disagrees = warnings.iter().any(|warning| warning.message().contains("installs Karpenter"));
        (policy.versions.karpenter.to_string(), policy.interruption_queue, disagrees)
    };
    assert_eq!(with("1.6.2", ""), ("v1.6.2".to_owned(), false, false));
    assert_eq!(with("'v1.4'", ""), ("v1.4".to_owned(), false, false));
    assert_eq!(with("1.6.2", "versions: { karpenter: v1.9 }\n"), ("v1.9".to_owned(), false, true));
}

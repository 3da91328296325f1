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
    let summary = Summary::of(&run_file(&folder.path().join("scenario.yaml")));
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

#[test]
fn provisioned_control_plane_is_warned_of() {
    let tier = |tier: &str| warnings(&format!("controlPlaneScalingConfig: {{ tier: {tier} }}\n{GROUP}"), "");
    let warning = tier("tier-4xl");
    assert!(warning.contains("tier-4xl") && warning.contains("cost is too low"), "{warning}");
    assert_eq!(tier("standard"), "");
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
                 desiredCapacity: 1\n    nodeRepairConfig: { enabled: true }\n";
    let named = warnings(group, "");
    assert!(named.contains("`localZones`") && named.contains("`nodeRepairConfig`"), "{named}");
    assert!(!named.contains("unknown key"), "{named}");
    let off = group.replace("enabled: true", "enabled: false").replace("localZones: [eu-central-1-ham-1a]\n", "");
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

//! What the Amazon VPC network plugin is told: whether nodes have branch interfaces, and what addresses their pods get.
//!
//! Source: amazon-vpc-cni-k8s v1.20 `README.md`, `ENABLE_POD_ENI`, `ENABLE_PREFIX_DELEGATION`, `ENABLE_IPv6` and
//! `AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG`.

use nodecast_model::domain::PodAddresses;
use nodecast_model::text::tree::Node;

/// The plugin's DaemonSet, and its add-on in EKS.
const DAEMON_SET: &str = "aws-node";
const ADD_ON: &str = "vpc-cni";

/// What the plugin does, as far as something says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetworkPlugin {
    /// Whether the plugin's DaemonSet is there, with an environment: without any it is not the plugin as it runs, but a stand-in.
    pub is_there: bool,
    /// Whether nodes have branch interfaces; `None` where nothing says so.
    pub pod_enis: Option<bool>,
    /// Addresses of pods; what nothing says is as the plugin has it by default.
    pub addresses: PodAddresses,
}

impl NetworkPlugin {
    /// This, and what a newer statement says where it says something.
    #[must_use]
    pub fn then(self, newer: Self) -> Self {
        let this_addresses = if newer.is_there { newer.addresses } else { self.addresses.and(newer.addresses) };
        // A cluster's family of addresses stays what it was made with.
        let addresses = PodAddresses { ipv6: self.addresses.ipv6 || newer.addresses.ipv6, ..this_addresses };
        Self { is_there: self.is_there || newer.is_there, pod_enis: newer.pod_enis.or(self.pod_enis), addresses }
    }
}

/// What a DaemonSet says, if it is the plugin's.
pub(super) fn of_daemon_set(object: &Node<'_>) -> Option<NetworkPlugin> {
    object.get("metadata")?.get("name")?.as_text().filter(|name| *name == DAEMON_SET)?;
    let containers = object.get("spec")?.get("template")?.get("spec")?.get("containers")?;
    let environments: Vec<_> = containers.items().iter().filter_map(|container| container.get("env")).collect();
    if environments.is_empty() {
        return None;
    }
    let value = |key: &str| {
        let mut variables = environments.iter().flat_map(|environment| environment.items());
        let variable = variables.find(|variable| variable.get("name").and_then(Node::as_text) == Some(key));
        variable.and_then(|variable| variable.get("value")).and_then(Node::as_text).map(str::to_owned)
    };
    let mut plugin = told(value);
    (plugin.is_there, plugin.pod_enis) = (true, Some(plugin.pod_enis.unwrap_or(false)));
    Some(plugin)
}

/// What the add-on of an eksctl ClusterConfig says: `configurationValues` is YAML or JSON with the plugin's environment under `env`.
pub(super) fn of_add_ons(add_ons: &Node<'_>) -> Option<NetworkPlugin> {
    let is_own = |node: &&Node<'_>| node.get("name").and_then(Node::as_text) == Some(ADD_ON);
    let add_on = add_ons.items().iter().find(is_own)?;
    let text = add_on.get("configurationValues").and_then(Node::as_text)?;
    let values: serde_json::Value = serde_saphyr::from_str(text).ok()?;
    let environment = values.get("env")?;
    Some(told(|key| {
        let value = environment.get(key)?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }))
}

/// What an environment says.
fn told(value: impl Fn(&str) -> Option<String>) -> NetworkPlugin {
    let is_on = |key| value(key).map(|value| matches!(value.as_str(), "true" | "True" | "TRUE" | "t" | "T" | "1"));
    let addresses = PodAddresses {
        prefixes: is_on("ENABLE_PREFIX_DELEGATION").unwrap_or(false),
        ipv6: is_on("ENABLE_IPv6").unwrap_or(false),
        of_other_subnets: is_on("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG").unwrap_or(false),
    };
    NetworkPlugin { is_there: false, pod_enis: is_on("ENABLE_POD_ENI"), addresses }
}

#[cfg(test)]
mod tests {
    use super::NetworkPlugin;
    use crate::read_manifests;
    use nodecast_model::domain::PodAddresses;
    use nodecast_model::text::Source;

    fn plugin(text: &str) -> NetworkPlugin {
        read_manifests(&Source::new("cluster.yaml", text)).unwrap().network_plugin
    }

    fn daemon_set(env: &str) -> String {
        format!(
            "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{ name: aws-node, namespace: kube-system }}\nspec:\n  \
             selector: {{ matchLabels: {{ app: cni }} }}\n  template:\n    metadata: {{ labels: {{ app: cni }} }}\n    \
             spec: {{ containers: [{{ name: aws-node, image: cni{env} }}] }}\n"
        )
    }

    fn cluster(rest: &str) -> String {
        format!(
            "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{ name: c, region: us-east-1 }}\n{rest}\n"
        )
    }

    #[test]
    fn vpc_cni_environment_sets_pod_addressing() {
        assert_eq!(plugin(&daemon_set("")), NetworkPlugin::default());
        let off = plugin(&daemon_set(", env: [{ name: ENABLE_PREFIX_DELEGATION, value: \"false\" }]"));
        assert_eq!((off.pod_enis, off.addresses), (Some(false), PodAddresses::default()));
        let on = plugin(&daemon_set(
            ", env: [{ name: ENABLE_PREFIX_DELEGATION, value: \"true\" }, { name: AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG, value: \"true\" }]",
        ));
        assert_eq!(on.addresses, PodAddresses { prefixes: true, ipv6: false, of_other_subnets: true });
        // What runs counts, and not what was asked for before it ran.
        assert_eq!(on.then(off).addresses, PodAddresses::default());
    }

    #[test]
    fn eksctl_config_sets_vpc_cni_and_ip_family() {
        let yaml = cluster(
            "addons: [{ name: vpc-cni, configurationValues: \"env:\\n  ENABLE_PREFIX_DELEGATION: \\\"true\\\"\" }]",
        );
        assert!(plugin(&yaml).addresses.prefixes);
        let json = cluster(
            "addons:\n- name: vpc-cni\n  configurationValues: |-\n    {\"env\": {\"ENABLE_PREFIX_DELEGATION\": true}}",
        );
        assert!(plugin(&json).addresses.prefixes);
        assert_eq!(plugin(&cluster("addons: [{ name: coredns }, { name: vpc-cni }]")), NetworkPlugin::default());
        let ipv6 = plugin(&cluster("kubernetesNetworkConfig: { ipFamily: IPv6 }"));
        assert!(ipv6.addresses.ipv6 && !ipv6.addresses.prefixes);
        assert_eq!(plugin(&cluster("kubernetesNetworkConfig: { ipFamily: IPv4 }")), NetworkPlugin::default());
    }
}

//! What a node group of eksctl says of its nodes' kubelets: `maxPodsPerNode`, Bottlerocket's settings, and commands before and in place of the
//! script that starts them, of which is warned.

use crate::common::{labels, resources};
use crate::lints;
use crate::node_class::signals;
use nodecast_model::domain::node_group::Registration;
use nodecast_model::domain::node_pool::{AmiFamily, KubeletConfig};
use nodecast_model::domain::{Symbol, Taint, TaintEffect};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::{Entry, Node};

static KUBERNETES: Shape = Shape {
    name: "Bottlerocket's `settings.kubernetes`",
    keys: &["max-pods", "kube-reserved", "system-reserved", "eviction-hard", "node-labels", "node-taints"],
    without_effect: &[
        "allowed-unsafe-sysctls",
        "api-server",
        "authentication-mode",
        "bootstrap-token",
        "cloud-provider",
        "cluster-certificate",
        "cluster-dns-ip",
        "cluster-domain",
        "cluster-name",
        "container-log-max-files",
        "container-log-max-size",
        "cpu-cfs-quota-enforced",
        "credential-providers",
        "device-ownership-from-security-context",
        "event-burst",
        "event-qps",
        "hostname-override",
        "hostname-override-source",
        "ids-per-pod",
        "image-gc-high-threshold-percent",
        "image-gc-low-threshold-percent",
        "kube-api-burst",
        "kube-api-qps",
        "log-level",
        "node-ip",
        "pod-infra-container-image",
        "pod-pids-limit",
        "provider-id",
        "registry-burst",
        "registry-qps",
        "seccomp-default",
        "server-certificate",
        "server-key",
        "server-tls-bootstrap",
        "single-process-oom-kill",
        "standalone-mode",
        "static-pods",
    ],
    unsupported: &[
        ("cpu-manager-policy", "pods share the CPUs of their node"),
        ("cpu-manager-policy-options", "pods share the CPUs of their node"),
        ("cpu-manager-reconcile-period", "pods share the CPUs of their node"),
        ("topology-manager-policy", "nodes are not divided"),
        ("topology-manager-scope", "nodes are not divided"),
        ("memory-manager-policy", "nodes are not divided"),
        ("memory-manager-reserved-memory", "nodes are not divided"),
        ("reserved-cpus", "what the kubelet keeps goes by its reserves"),
        ("eviction-soft", "the kubelet evicts by its hard thresholds"),
        ("eviction-soft-grace-period", "the kubelet evicts by its hard thresholds"),
        ("eviction-max-pod-grace-period", "the kubelet evicts by its hard thresholds"),
        ("shutdown-grace-period", "the kubelet does not hold up a shutdown"),
        ("shutdown-grace-period-for-critical-pods", "the kubelet does not hold up a shutdown"),
    ],
    strict: false,
};

/// Kubelet settings of a group with images of this family, and what its kubelets register of themselves.
///
/// Source: eksctl `pkg/nodebootstrap/bottlerocket.go`, `setDerivedBottlerocketSettings` (labels, taints and pods that the group states take the
/// place of those in the settings; every self-managed group has labels), and `assets/scripts/bootstrap.helper.sh` (`node-lifecycle`), which the
/// scripts for Amazon Linux 2 and Ubuntu source and nodes of Amazon Linux 2023 and of managed groups do not have.
pub(super) fn of_group<'s>(
    reader: &mut Reader<'s>,
    group: Fields<'_, 's>,
    family: AmiFamily,
    managed: bool,
) -> Result<(KubeletConfig, Registration), InputError> {
    let stated = group.optional("maxPodsPerNode", |n, what| reader.integer(n, what, 1, 10_000))?;
    let (mut kubelet, mut registers) = match group.get("bottlerocket") {
        Some(node) => bottlerocket(reader, group, node, family, managed)?,
        None => <(KubeletConfig, Registration)>::default(),
    };
    kubelet.max_pods = stated.or(kubelet.max_pods);
    let own_script = group.get("overrideBootstrapCommand").and_then(Node::as_text);
    let helped = own_script.is_none_or(|script| script.contains("bootstrap.helper.sh"));
    registers.lifecycle = !managed && helped && matches!(family, AmiFamily::AL2 | AmiFamily::Ubuntu);
    warn_of_commands(reader, group, stated.is_some())?;
    Ok((kubelet, registers))
}

/// `bottlerocket` of a group.
fn bottlerocket<'s>(
    reader: &mut Reader<'s>,
    group: Fields<'_, 's>,
    node: &Node<'s>,
    family: AmiFamily,
    managed: bool,
) -> Result<(KubeletConfig, Registration), InputError> {
    let none = <(KubeletConfig, Registration)>::default();
    let Some(settings) = node.get("settings") else { return Ok(none) };
    if family != AmiFamily::Bottlerocket {
        let help = "state `amiFamily: Bottlerocket`, or take them out";
        reader.warn(
            &lints::BOTTLEROCKET_SETTINGS,
            node.at,
            "eksctl refuses settings of Bottlerocket for other images",
            "ignored",
            help,
        );
        return Ok(none);
    }
    if let Some(plugins) = settings.get("kubelet-device-plugins") {
        let message = "`kubelet-device-plugins` of Bottlerocket is not simulated: each GPU is one device";
        reader.left_out(&lints::BOTTLEROCKET_PLUGINS, plugins.at, message, "");
    }
    let Some(kubernetes) = settings.get("kubernetes") else { return Ok(none) };
    let fields = reader.fields(kubernetes, &KUBERNETES)?;
    let kubelet = KubeletConfig {
        max_pods: fields.optional("max-pods", |n, what| reader.integer(n, what, 1, 10_000))?,
        kube_reserved: resources(reader, fields, "kube-reserved")?,
        system_reserved: resources(reader, fields, "system-reserved")?,
        eviction_hard: signals(reader, fields, "eviction-hard")?,
        ..KubeletConfig::default()
    };
    let mut registers = Registration { taints: taints(reader, fields)?, ..Registration::default() };
    if let Some(node) = fields.get("node-labels") {
        registers.labels = labels(reader, fields, "node-labels")?;
        if !managed {
            registers.labels = nodecast_model::domain::Labels::new();
            let message = "eksctl writes a self-managed group's `labels` over `node-labels` of Bottlerocket's settings";
            reader.warn(
                &lints::BOTTLEROCKET_SETTINGS,
                node.at,
                message,
                "ignored",
                "state them under `labels` of the group",
            );
        }
    }
    if group.get("taints").is_some() && !managed {
        registers.taints.clear();
    }
    Ok((kubelet, registers))
}

/// `node-taints`: keys with one `value:effect` or a list of them.
fn taints<'s>(reader: &Reader<'s>, fields: Fields<'_, 's>) -> Result<Vec<Taint>, InputError> {
    let Some(node) = fields.get("node-taints") else { return Ok(Vec::new()) };
    let mut taints = Vec::new();
    for Entry { key, value: stated, .. } in reader.entries(node, "node-taints")? {
        let single = std::slice::from_ref(stated);
        for item in if stated.as_text().is_some() { single } else { reader.list(stated, key)? } {
            let text = reader.text(item, key)?;
            let (value, effect) = text.split_once(':').unwrap_or(("", text));
            let Some(effect) = TaintEffect::named(effect) else {
                let shown: String = text.chars().take(80).collect();
                return Err(reader
                    .error(item.at, format!("`{shown}` of `node-taints` names no effect of a taint"))
                    .because("not `value:effect`")
                    .help("write for example `true:NoSchedule`"));
            };
            taints.push(Taint { key: Symbol::new(key), value: Symbol::new(value), effect });
        }
    }
    Ok(taints)
}

/// What commands say that changes what nodes offer or register, as a flag and as a setting.
const TELLING: [(&str, &str); 9] = [
    ("max-pods", "maxPods"),
    ("pods-per-core", "podsPerCore"),
    ("node-labels", "node-labels"),
    ("register-with-taints", "registerWithTaints"),
    ("kube-reserved", "kubeReserved"),
    ("system-reserved", "systemReserved"),
    ("eviction-hard", "evictionHard"),
    ("cpu-manager-policy", "cpuManagerPolicy"),
    ("local-disks", "localStorage"),
];

/// Warns of commands that set what a node offers or registers; `pods` says whether the group states of itself how many pods it takes.
fn warn_of_commands<'s>(reader: &mut Reader<'s>, group: Fields<'_, 's>, pods: bool) -> Result<(), InputError> {
    let before = group.optional("preBootstrapCommands", |n, what| reader.list(n, what))?.unwrap_or_default();
    let before = before.iter().map(|node| ("preBootstrapCommands", node));
    let in_place = group.get("overrideBootstrapCommand").map(|node| ("overrideBootstrapCommand", node));
    for (key, node) in before.chain(in_place) {
        let text = node.as_text().unwrap_or_default();
        let says = |&&(flag, setting): &&(&str, &str)| {
            (text.contains(flag) || text.contains(setting)) && !(pods && flag == "max-pods")
        };
        let set: Vec<String> = TELLING.iter().filter(says).map(|(flag, _)| format!("`{flag}`")).collect();
        if !set.is_empty() {
            let message = format!("`{key}` of a node group sets {}, which is not simulated", set.join(", "));
            reader.left_out(
                &lints::BOOTSTRAP_COMMANDS,
                node.at,
                message,
                "state `maxPodsPerNode`, `labels` and `taints` of the group instead",
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::read_manifests;
    use nodecast_model::domain::Resources;
    use nodecast_model::domain::node_group::NodeGroup;
    use nodecast_model::text::Source;

    /// The group, and how many warnings there are.
    fn group(kind: &str, rest: &str) -> (NodeGroup, usize) {
        let text = format!(
            "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: c, region: us-east-1}}\n{kind}:\n\
             - {{name: a, instanceType: m5.large, {rest}}}\n"
        );
        let mut read = read_manifests(&Source::new("cluster.yaml", text)).unwrap();
        (read.node_groups.remove(0), read.warnings.len())
    }

    #[test]
    fn settings_of_bottlerocket_reach_the_kubelet() {
        let settings = "bottlerocket: {settings: {motd: hello, kubernetes: {max-pods: 8, kube-reserved: {cpu: 1000m}, \
                        eviction-hard: {memory.available: 15%}, node-labels: {tier: own}, \
                        node-taints: {dedicated: [\"own:NoSchedule\"], bare: \":NoExecute\"}}}}";
        let of_family = format!("amiFamily: Bottlerocket, {settings}");
        let (node_group, warnings) = group("managedNodeGroups", &of_family);
        assert_eq!((node_group.kubelet.max_pods, warnings), (Some(8), 0));
        assert_eq!(
            node_group.kubelet.kube_reserved,
            Resources::new().with(nodecast_model::domain::ResourceName::CPU, 1_000)
        );
        assert_eq!(node_group.kubelet.eviction_hard.len(), 1);
        assert_eq!((node_group.registers.labels.iter().count(), node_group.registers.taints.len()), (1, 2));
        // eksctl writes the group's own labels over those.
        let (node_group, warnings) = group("nodeGroups", &of_family);
        assert_eq!(
            (node_group.registers.labels.iter().count(), node_group.registers.taints.len(), warnings),
            (0, 2, 1)
        );
        let (item, warnings) = group("managedNodeGroups", &format!("{of_family}, maxPodsPerNode: 20"));
        assert_eq!((item.kubelet.max_pods, warnings), (Some(20), 0));
        let (item, warnings) = group("managedNodeGroups", settings);
        assert_eq!((item.kubelet.max_pods, warnings), (None, 1));
    }

    #[test]
    fn bootstrap_commands_changing_capacity_are_warned_about() {
        let warnings = |rest: &str| group("managedNodeGroups", rest).1;
        assert_eq!(warnings("preBootstrapCommands: [\"yum install -y htop\"]"), 0);
        assert_eq!(warnings("overrideBootstrapCommand: \"/etc/eks/bootstrap.sh c\""), 0);
        let pods = "overrideBootstrapCommand: \"/etc/eks/bootstrap.sh c --kubelet-extra-args '--max-pods=8'\"";
        assert_eq!((warnings(pods), warnings(&format!("{pods}, maxPodsPerNode: 8"))), (1, 0));
        assert_eq!(warnings("preBootstrapCommands: [\"echo '{maxPods: 8}' >> config\"]"), 1);
    }

    #[test]
    fn eksctl_default_images_register_lifecycle_label() {
        let says = |kind: &str, rest: &str| group(kind, rest).0.registers.lifecycle;
        assert!(says("nodeGroups", "amiFamily: AmazonLinux2"));
        assert!(says("nodeGroups", "amiFamily: Ubuntu2204"));
        assert!(!says("nodeGroups", "amiFamily: AmazonLinux2023"));
        assert!(!says("managedNodeGroups", "amiFamily: AmazonLinux2"));
        assert!(!says("nodeGroups", "amiFamily: AmazonLinux2, overrideBootstrapCommand: \"/etc/eks/bootstrap.sh c\""));
    }
}

//! Security groups for pods: which pods get a network interface of their own, of which a node has few.
//!
//! Source: amazon-vpc-resource-controller-k8s v1.7 `apis/vpcresources/v1beta1/securitygrouppolicy_types.go`,
//! `webhooks/core/pod_webhook.go` (`HandleLinuxPod`) and `pkg/utils/helper.go` (`filterPodSecurityGroups`).

use super::common::{label_selector, metadata};
use super::pod::OBJECT;
use crate::lints;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{Container, LabelSelector, PodSpec, ResourceName};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Reader, Shape};
use nodecast_model::text::tree::Node;

static SPEC: Shape = Shape {
    name: "a SecurityGroupPolicy's spec",
    keys: &["podSelector", "securityGroups", "serviceAccountSelector"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// What a container requests to have its pod given a branch network interface.
const BRANCH_INTERFACE: ResourceName = ResourceName(well_known::AWS_POD_ENI);

/// A SecurityGroupPolicy (`vpcresources.k8s.aws/v1beta1`): the pods that get a branch network interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecurityGroupPolicy {
    /// Namespace, whose pods it selects, and name.
    pub name: ObjectName,
    /// The pods; `None` for none that is known here.
    pub selector: Option<LabelSelector>,
}

impl SecurityGroupPolicy {
    /// Whether the controller gives pods of the template an interface by this policy: not those of Windows or in the network of their node.
    /// One that is bound already has what it was made with.
    pub(super) fn selects(&self, template: &PodSpec) -> bool {
        let windows = [well_known::OS, well_known::BETA_OS]
            .iter()
            .any(|key| template.node_selector.get(*key) == Some(well_known::WINDOWS));
        let selected = self.selector.as_ref().is_some_and(|selector| selector.matches(&template.labels));
        selected && !windows && !template.host_network && template.node_name.is_none()
    }
}

/// A SecurityGroupPolicy object. The labels of ServiceAccounts are not read.
pub(super) fn policy<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<SecurityGroupPolicy, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name;
    let spec = reader.fields(fields.required(reader, "spec")?, &SPEC)?;
    let selector = spec.get("podSelector").map(|node| label_selector(reader, node)).transpose()?;
    let by_account = spec.get("serviceAccountSelector");
    if let Some(node) = by_account {
        let message = "`serviceAccountSelector` of a SecurityGroupPolicy is not simulated: the pods that the policy selects take no branch network interface";
        let help = "select by `podSelector`, or let the pods request `vpc.amazonaws.com/pod-eni: 1`";
        reader.warn(&lints::SERVICE_ACCOUNT_SELECTOR, node.at, message, "left out", help);
    }
    let groups = spec.get("securityGroups").and_then(|spec| spec.get("groupIds"));
    let has_groups = groups.is_some_and(|group| !group.items().is_empty());
    // The controller passes over a policy without groups.
    Ok(SecurityGroupPolicy { name, selector: selector.filter(|_| by_account.is_none() && has_groups) })
}

/// Whether the first container asks for the interface, as the controller would have it.
pub(super) fn has_interface(template: &PodSpec) -> bool {
    template.containers.first().is_none_or(|container| container.effective_requests().get(BRANCH_INTERFACE) > 0)
}

/// Lets a container ask for a branch interface.
pub(super) fn ask(container: &mut Container) {
    container.requests.set(BRANCH_INTERFACE, 1);
    container.limits.set(BRANCH_INTERFACE, 1);
}

#[cfg(test)]
mod tests {
    use super::BRANCH_INTERFACE;
    use crate::{Manifests, read_manifests};
    use nodecast_model::text::Source;

    const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: web, namespace: a }\nspec:\n  \
        selector: { matchLabels: { app: web } }\n  template:\n    metadata: { labels: { app: web } }\n    \
        spec: { containers: [{ name: web, image: web }, { name: log, image: log }] }\n---\n";

    fn policy(spec: &str) -> String {
        format!(
            "apiVersion: vpcresources.k8s.aws/v1beta1\nkind: SecurityGroupPolicy\nmetadata: {{ name: p, namespace: a }}\nspec: {{ {spec} }}\n---\n"
        )
    }

    /// The network plugin with this environment.
    fn plugin(env: &str) -> String {
        format!(
            "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{ name: aws-node, namespace: kube-system }}\nspec:\n  \
             selector: {{ matchLabels: {{ k8s-app: aws-node }} }}\n  template:\n    metadata: {{ labels: {{ k8s-app: aws-node }} }}\n    \
             spec: {{ containers: [{{ name: aws-node, image: amazon-k8s-cni{env} }}] }}\n---\n"
        )
    }

    /// How many interfaces a pod of the Deployment asks for, and what is said.
    fn admitted(text: &str) -> (i64, Vec<String>) {
        let mut manifests: Manifests = read_manifests(&Source::new("m.yaml", text)).unwrap();
        let mut warnings = manifests.warnings.clone();
        warnings.extend(manifests.admit(&[]));
        let asked = manifests.deployments[0].template.requests().get(BRANCH_INTERFACE);
        assert!(
            manifests.admit(&[]).iter().all(|again| again.message().contains("request no branch")),
            "once is enough"
        );
        assert_eq!(manifests.deployments[0].template.requests().get(BRANCH_INTERFACE), asked);
        (asked, warnings.iter().map(|warning| warning.message().to_owned()).collect())
    }

    const GROUPS: &str = "securityGroups: { groupIds: [sg-1] }";

    #[test]
    fn security_group_policy_requests_branch_interface() {
        let of = |selector: &str| admitted(&(DEPLOYMENT.to_owned() + &policy(&format!("{selector}, {GROUPS}"))));
        let (asked, warnings) = of("podSelector: { matchLabels: { app: web } }");
        assert_eq!((asked, warnings.len()), (1, 1));
        assert!(warnings[0].contains("ENABLE_POD_ENI"), "{warnings:?}");
        assert_eq!(of("podSelector: {}").0, 1, "an empty selector selects all");
        assert_eq!(of("podSelector: { matchLabels: { app: db } }"), (0, Vec::new()));
        let (asked, warnings) = of("podSelector: {}, serviceAccountSelector: { matchLabels: { a: b } }");
        assert_eq!((asked, warnings.len()), (0, 1));
        assert!(warnings[0].contains("`serviceAccountSelector`"), "{warnings:?}");
        let elsewhere = policy(&format!("podSelector: {{}}, {GROUPS}")).replace("namespace: a", "namespace: b");
        assert_eq!(admitted(&(DEPLOYMENT.to_owned() + &elsewhere)), (0, Vec::new()));
        assert_eq!(admitted(&(DEPLOYMENT.to_owned() + &policy("podSelector: {}"))), (0, Vec::new()), "no groups");
    }

    #[test]
    fn windows_and_host_network_pods_skip_branch_interfaces() {
        let all = policy(&format!("podSelector: {{}}, {GROUPS}"));
        for more in ["hostNetwork: true", "nodeSelector: { kubernetes.io/os: windows }"] {
            let deployment = DEPLOYMENT.replace("spec: { containers", &format!("spec: {{ {more}, containers"));
            assert_eq!(admitted(&(deployment + &all)), (0, Vec::new()), "{more}");
        }
    }

    #[test]
    fn vpc_cni_setting_enables_branch_interfaces() {
        let all = DEPLOYMENT.to_owned() + &policy(&format!("podSelector: {{}}, {GROUPS}"));
        let with = |env: &str| admitted(&(all.clone() + &plugin(env)));
        assert_eq!(with(", env: [{ name: ENABLE_POD_ENI, value: 'true' }]"), (1, Vec::new()));
        for env in [", env: [{ name: ENABLE_POD_ENI, value: 'false' }]", ", env: [{ name: A, value: b }]"] {
            let (asked, warnings) = with(env);
            assert_eq!((asked, warnings.len()), (0, 1), "{env}");
            assert!(warnings[0].contains("request no branch network interface here"), "{warnings:?}");
        }
        assert_eq!(with("").0, 1, "a stand-in says nothing of it");
    }
}

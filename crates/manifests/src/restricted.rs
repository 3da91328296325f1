//! Labels that a NodePool may not state: what Karpenter keeps for itself.

use super::common::labels;
use super::offered;
use crate::lints;
use nodecast_model::domain::labels::{is_restricted_in_pools, is_restricted_in_provisioners};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{Labels, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::error::nearest;
use nodecast_model::text::reader::{Fields, Reader};
use nodecast_model::text::tree::{Location, Node};

/// What a requirement stands in, which decides what becomes of one that the API server refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stating {
    /// A NodePool that is to be applied.
    Pool,
    /// One that an API server has taken: of a release with other rules, or with labels that no release here knows.
    FoundPool,
    /// A Provisioner that is to be applied.
    Provisioner,
    /// One that an API server has taken.
    FoundProvisioner,
    /// A NodeOverlay, which the API server takes with any label.
    Overlay,
}

impl Stating {
    /// What a NodePool's object is: one with a status is of a cluster, and one without a file has been recorded.
    pub(super) fn of_pool(reader: &Reader<'_>, object: &Node<'_>) -> Self {
        if is_found(reader, object) { Self::FoundPool } else { Self::Pool }
    }

    /// The same of a Provisioner's object.
    pub(super) fn of_provisioner(reader: &Reader<'_>, object: &Node<'_>) -> Self {
        if is_found(reader, object) { Self::FoundProvisioner } else { Self::Provisioner }
    }

    /// Whether an API server refuses the label `key` here.
    fn refuses(self, key: Symbol) -> bool {
        match self {
            Self::Pool | Self::FoundPool => is_restricted_in_pools(key),
            Self::Provisioner | Self::FoundProvisioner => is_restricted_in_provisioners(key),
            Self::Overlay => false,
        }
    }
}

fn is_found(reader: &Reader<'_>, object: &Node<'_>) -> bool {
    object.get("status").is_some() || reader.file().is_none()
}

/// Whether a NodePool may state the label `key`, which stands at `at`. One that was found in a cluster goes on without what it may not state.
///
/// # Errors
/// If the API server refuses it.
pub(super) fn may_state(
    reader: &mut Reader<'_>,
    key: Symbol,
    at: Location,
    stating: Stating,
) -> Result<bool, InputError> {
    if !stating.refuses(key) {
        return Ok(true);
    }
    let help = way_out(key);
    if matches!(stating, Stating::FoundPool | Stating::FoundProvisioner) {
        let message = format!("a NodePool may not state the label `{key}` in any release that is simulated");
        reader.warn(&lints::RESTRICTED_LABEL, at, message, "left out", &help);
        return Ok(false);
    }
    Err(reader.error(at, format!("the label `{key}` is restricted")).because("the API server refuses it").help(help))
}

/// The labels that a NodePool gives its nodes, without those that are left out.
pub(super) fn labels_of_nodes(
    reader: &mut Reader<'_>,
    fields: Fields<'_, '_>,
    stating: Stating,
) -> Result<Labels, InputError> {
    let mut stated = labels(reader, fields, "labels")?;
    for entry in fields.get("labels").map(Node::entries).unwrap_or_default() {
        let key = Symbol::new(&entry.key);
        if !may_state(reader, key, entry.key_at, stating)? {
            stated.remove(key);
        }
    }
    Ok(stated)
}

fn way_out(key: Symbol) -> String {
    if key == well_known::NODEPOOL {
        return "remove it: Karpenter labels each node with the name of its NodePool".to_owned();
    }
    if key == well_known::HOSTNAME {
        return "remove it: each node has a name of its own".to_owned();
    }
    if key == well_known::INSTANCE_PODS {
        return "remove it: v1beta1 dropped this label of Provisioners; `kubelet.maxPods` of the EC2NodeClass bounds how many pods a node takes"
            .to_owned();
    }
    let (domain, _) = key.as_str().split_once('/').unwrap_or_default();
    let known = offered::labels().map(Symbol::as_str).chain([well_known::CAPACITY_TYPE.as_str()]);
    nearest(key.as_str(), known).map_or_else(
        || format!("labels under `{domain}/` are Karpenter's own: take one of another domain, for example `example.com/team`"),
        |near| format!("did you mean `{near}`?"),
    )
}

#[cfg(test)]
mod tests {
    use super::way_out;
    use crate::read_manifests;
    use nodecast_model::domain::Symbol;
    use nodecast_model::domain::labels::{is_restricted_in_pools, is_restricted_in_provisioners};
    use nodecast_model::text::Source;

    #[test]
    fn karpenter_and_custom_domain_labels_are_allowed() {
        for key in [
            "karpenter.sh/capacity-type",
            "karpenter.k8s.aws/instance-family",
            "karpenter.k8s.aws/ec2nodeclass",
            "node.kubernetes.io/instance-type",
            "node-restriction.kubernetes.io/team",
            "team",
            "example.com/team",
            "karpenter.kwok.sh/instance-size",
        ] {
            assert!(!is_restricted_in_pools(Symbol::new(key)), "{key}");
            assert!(!is_restricted_in_provisioners(Symbol::new(key)), "{key}");
        }
    }

    /// No node of a NodePool has the label: all would drift as soon as they are there, and so would those in their place.
    #[test]
    fn only_provisioners_can_set_instance_pods() {
        let requirements = "requirements: [{key: karpenter.k8s.aws/instance-pods, operator: Gt, values: [\"20\"]}]";
        let pool = |status: &str| {
            format!(
                "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: web}}\nspec: {{template: {{spec: {{{requirements}}}}}}}\n{status}"
            )
        };
        let read = |text: String| read_manifests(&Source::new("pools.yaml", text));
        let error = read(pool("")).unwrap_err().to_string();
        assert!(error.contains("the label `karpenter.k8s.aws/instance-pods` is restricted"), "{error}");
        let found = read(pool("status: {}\n")).unwrap();
        assert!(found.node_pools[0].requirements.is_empty(), "one of a cluster goes on without it");
        let provisioner = format!(
            "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {{name: web}}\nspec: {{{requirements}}}\n"
        );
        assert_eq!(read(provisioner).unwrap().node_pools[0].requirements.len(), 1);
    }

    #[test]
    fn restricted_label_error_suggests_alternative() {
        let says = |key: &str| (is_restricted_in_pools(Symbol::new(key)), way_out(Symbol::new(key)));
        let meant = "did you mean `karpenter.k8s.aws/instance-family`?";
        assert_eq!(says("karpenter.k8s.aws/instance-familiy"), (true, meant.to_owned()));
        assert_eq!(says("karpenter.sh/capacity-typ").1, "did you mean `karpenter.sh/capacity-type`?");
        assert!(says("karpenter.sh/nodepool").1.contains("the name of its NodePool"));
        assert!(says("kubernetes.io/hostname").0);
        let (refused, way_out) = says("karpenter.k8s.aws/instance-pods");
        assert!(refused && way_out.contains("`kubelet.maxPods` of the EC2NodeClass"), "{way_out}");
        let (kept, way_out) = says("karpenter.sh/our-own-name-of-a-team");
        assert!(kept && way_out.contains("labels under `karpenter.sh/` are Karpenter's own"), "{way_out}");
    }
}

//! Fargate profiles of an eksctl ClusterConfig, and what EKS refuses of the names and selectors of any profile.

use super::names::{CLUSTER_MAX, LABEL_MAX, is_cluster, is_label, is_qualified, is_value, shown};
use nodecast_model::fargate::{Profile, SELECTORS_MOST, Selector};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::{Entry, Node};

// eksctl decodes its file strictly. A selector whose `labels` are misspelt would take the whole namespace.
static PROFILE: Shape = Shape {
    name: "a Fargate profile",
    keys: &["name", "selectors"],
    without_effect: &["podExecutionRoleARN", "subnets", "tags", "status"],
    unsupported: &[],
    strict: true,
};
static SELECTOR: Shape = Shape {
    name: "a selector of a Fargate profile",
    keys: &["namespace", "labels"],
    without_effect: &[],
    unsupported: &[],
    strict: true,
};

/// `fargateProfiles`, each with a name of its own.
///
/// Source: eksctl `pkg/apis/eksctl.io/v1alpha5/types.go`, `FargateProfile`; `validation.go`, `FargateProfile.Validate`.
///
/// # Errors
/// If eksctl or EKS would refuse one: without name, selector or namespace, with more than five selectors, with a name, a namespace or labels
/// that cannot be such, with an unknown key, or two of one name.
pub(super) fn profiles<'s>(reader: &mut Reader<'s>, cluster: Fields<'_, 's>) -> Result<Vec<Profile>, InputError> {
    let mut profiles: Vec<Profile> = Vec::new();
    for node in cluster.optional("fargateProfiles", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let profile = profile(reader, node)?;
        if profiles.iter().any(|other| other.name == profile.name) {
            return Err(reader
                .error(node.at, format!("duplicate Fargate profile name `{}`", profile.name))
                .because("the second one")
                .help("give each its own name: of several that fit a pod the first by name takes it"));
        }
        profiles.push(profile);
    }
    Ok(profiles)
}

fn profile<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Profile, InputError> {
    let fields = reader.fields(node, &PROFILE)?;
    let name_node = fields.required(reader, "name")?;
    let name = reader.symbol(name_node, "name")?;
    check_profile_name(reader, name_node, name.as_str())?;
    let selectors = reader.list(fields.required(reader, "selectors")?, "selectors")?;
    if selectors.is_empty() || selectors.len() > SELECTORS_MOST {
        return Err(reader
            .error(node.at, format!("the Fargate profile `{name}` has {} selectors", selectors.len()))
            .because("one to five")
            .help("give it one selector at least and five at most; two profiles may serve one namespace"));
    }
    let selectors = selectors.iter().map(|this_selector| selector(reader, this_selector)).collect::<Result<_, _>>()?;
    Ok(Profile { name, selectors })
}

fn selector<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Selector, InputError> {
    let fields = reader.fields(node, &SELECTOR)?;
    let node = fields.required(reader, "namespace")?;
    let namespace = reader.text(node, "namespace")?.to_owned();
    check_profile_namespace(reader, node, &namespace)?;
    let mut labels = Vec::new();
    if let Some(node) = fields.get("labels") {
        for entry in reader.entries(node, "labels")? {
            let value = reader.text(&entry.value, &entry.key)?;
            check_profile_label(reader, entry, value)?;
            labels.push((entry.key.to_string(), value.to_owned()));
        }
    }
    Ok(Selector { namespace, labels })
}

/// What the names of AWS's own profiles begin with.
const RESERVED: &str = "eks-";

/// Checks the name of a profile. What EKS takes beside letters, digits, `-` and `_` its reference does not say: a dot is let through.
///
/// Source: EKS API reference, `CreateFargateProfile`, which states no pattern (2026); eksctl `pkg/apis/eksctl.io/v1alpha5/validation.go`,
/// `ReservedProfileNamePrefix`, the one rule that eksctl has for names.
///
/// # Errors
/// If no profile can be called so.
pub fn check_profile_name(reader: &Reader<'_>, node: &Node<'_>, name: &str) -> Result<(), InputError> {
    let reason = if name.len() > CLUSTER_MAX {
        "longer than 100 characters"
    } else if !is_cluster(&name.replace('.', "-")) {
        "not the name of a profile"
    } else if name.starts_with(RESERVED) {
        "EKS keeps `eks-` for itself"
    } else {
        return Ok(());
    };
    Err(reader
        .error(node.at, format!("invalid Fargate profile name `{}`", shown(name)))
        .because(reason)
        .help("write letters, digits, `-`, `_` and `.`, at most 100 of them, with a letter or a digit first"))
}

/// Checks the namespace of a selector, in which `*` and `?` stand for other characters.
///
/// Source: EKS user guide, `fargate-profile`, wildcards (2024-12).
///
/// # Errors
/// If no namespace can be called so.
pub fn check_profile_namespace(reader: &Reader<'_>, node: &Node<'_>, namespace: &str) -> Result<(), InputError> {
    if namespace.len() <= LABEL_MAX && is_label(&without_wildcards(namespace)) {
        return Ok(());
    }
    Err(reader
        .error(node.at, format!("invalid namespace `{}`", shown(namespace)))
        .because("not a DNS label")
        .help("write small letters, digits and `-`, at most 63 of them, and `*` or `?` for what varies: `team-*`"))
}

/// Checks a label of a selector, in whose key and value `*` and `?` stand for other characters.
///
/// Source: as [`check_profile_namespace`].
///
/// # Errors
/// If no pod can have such a label.
pub fn check_profile_label(reader: &Reader<'_>, entry: &Entry<'_>, value: &str) -> Result<(), InputError> {
    let help = "write letters, digits, `-`, `_` and `.`, at most 63 of them, with a letter or a digit first and last, and `*` or `?` for what varies";
    if !is_qualified(&without_wildcards(&entry.key)) {
        return Err(reader
            .error(entry.key_at, format!("the key of a label cannot be `{}`", shown(&entry.key)))
            .because("not a qualified name")
            .help(help));
    }
    if !is_value(&without_wildcards(value)) {
        return Err(reader
            .error(entry.value.at, format!("the value of a label cannot be `{}`", shown(value)))
            .because("not the value of a label")
            .help(help));
    }
    Ok(())
}

/// A pattern with a letter wherever a character may be any.
fn without_wildcards(pattern: &str) -> String {
    pattern.replace(['*', '?'], "a")
}

#[cfg(test)]
mod tests {
    use crate::{Manifests, read_manifests};
    use nodecast_model::text::{InputError, Source};

    fn cluster(profiles: &str) -> Result<Manifests, InputError> {
        let text = format!(
            "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: shop, region: us-east-1}}\nfargateProfiles:\n{profiles}"
        );
        read_manifests(&Source::new("cluster.yaml", text))
    }

    #[test]
    fn fargate_profile_has_name_and_selectors() {
        let read = cluster(
            "  - name: jobs\n    podExecutionRoleARN: arn:aws:iam::1:role/pods\n    subnets: [subnet-1]\n    tags: {a: b}\n    \
             status: ACTIVE\n    selectors:\n      - namespace: jobs\n      - {namespace: \"team-*\", labels: {runs-on: fargate, size: \"2\"}}\n",
        )
        .unwrap();
        assert_eq!(read.warnings.len(), 0, "{:?}", read.warnings);
        let profile = &read.fargate_profiles[0];
        assert_eq!(read.fargate_profiles.len(), 1);
        assert_eq!((profile.name.as_str(), profile.selectors.len()), ("jobs", 2));
        assert_eq!((profile.selectors[0].namespace.as_str(), profile.selectors[0].labels.len()), ("jobs", 0));
        let labels = [("runs-on".to_owned(), "fargate".to_owned()), ("size".to_owned(), "2".to_owned())];
        assert_eq!(
            (profile.selectors[1].namespace.as_str(), &profile.selectors[1].labels[..]),
            ("team-*", &labels[..])
        );
    }

    #[test]
    fn wildcards_stand_anywhere_in_namespaces_and_labels() {
        let read = cluster(
            "  - {name: A_1-b.c, selectors: [{namespace: '*'}, {namespace: 't?am-*', labels: {'app.*/na?e': 'web-*', tier: '*', none: ''}}]}\n",
        );
        assert_eq!(read.unwrap().fargate_profiles[0].selectors[1].labels.len(), 3);
    }

    #[test]
    fn what_eksctl_or_eks_refuses_is_an_error() {
        let six = "{namespace: a}, ".repeat(6);
        for (profiles, said) in [
            ("  - {selectors: [{namespace: a}]}\n".to_owned(), "a Fargate profile needs `name`"),
            ("  - {name: a}\n".to_owned(), "a Fargate profile needs `selectors`"),
            ("  - {name: a, selectors: []}\n".to_owned(), "the Fargate profile `a` has 0 selectors"),
            (format!("  - {{name: a, selectors: [{six}]}}\n"), "the Fargate profile `a` has 6 selectors"),
            ("  - {name: a, selectors: [{labels: {b: c}}]}\n".to_owned(), "needs `namespace`"),
            ("  - {name: a, selectors: [{namespace: b}]}\n".repeat(2), "duplicate Fargate profile name `a`"),
            ("  - {name: a b, selectors: [{namespace: b}]}\n".to_owned(), "invalid Fargate profile name `a b`"),
            ("  - {name: eks-a, selectors: [{namespace: b}]}\n".to_owned(), "invalid Fargate profile name `eks-a`"),
            (
                format!("  - {{name: {}, selectors: [{{namespace: b}}]}}\n", "a".repeat(101)),
                "invalid Fargate profile name `aaa",
            ),
            ("  - {name: a, selectors: [{namespace: Team}]}\n".to_owned(), "invalid namespace `Team`"),
            ("  - {name: a, selectors: [{namespace: ''}]}\n".to_owned(), "invalid namespace ``"),
            (
                "  - {name: a, selectors: [{namespace: b, labels: {c d: e}}]}\n".to_owned(),
                "key of a label cannot be `c d`",
            ),
            (
                "  - {name: a, selectors: [{namespace: b, labels: {c: -e}}]}\n".to_owned(),
                "value of a label cannot be `-e`",
            ),
            (
                "  - {name: a, selectors: [{namespace: b, label: {c: d}}]}\n".to_owned(),
                "unknown key `label` in a selector",
            ),
        ] {
            let error = cluster(&profiles).unwrap_err();
            assert!(error.to_string().contains(said), "{profiles}: {error}");
            assert!(error.place().is_some(), "{error}");
        }
        let misspelt = cluster("  - {name: a, selectors: [{namespace: b, label: {c: d}}]}\n").unwrap_err();
        assert_eq!(misspelt.way_out(), Some("did you mean `labels`?"));
    }
}

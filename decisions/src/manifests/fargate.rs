//! Fargate profiles of an eksctl ClusterConfig.

use crate::policy::fargate::{Profile, SELECTORS_MOST, Selector};
use crate::text::InputError;
use crate::text::reader::{Fields, Reader, Shape};
use crate::text::tree::Node;

static PROFILE: Shape = Shape {
    name: "a Fargate profile",
    keys: &["name", "selectors"],
    without_effect: &["podExecutionRoleARN", "subnets", "tags", "status"],
    unsupported: &[],
    strict: false,
};
static SELECTOR: Shape = Shape {
    name: "a selector of a Fargate profile",
    keys: &["namespace", "labels"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// `fargateProfiles`, each with a name of its own.
///
/// Source: eksctl `pkg/apis/eksctl.io/v1alpha5/types.go`, `FargateProfile`; `validation.go`, `FargateProfile.Validate`.
///
/// # Errors
/// If eksctl or EKS would refuse one: without name, selector or namespace, with more than five selectors, or two of one name.
pub(super) fn profiles<'s>(reader: &mut Reader<'s>, cluster: Fields<'_, 's>) -> Result<Vec<Profile>, InputError> {
    let mut profiles: Vec<Profile> = Vec::new();
    for node in cluster.optional("fargateProfiles", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let own = profile(reader, node)?;
        if profiles.iter().any(|other| other.name == own.name) {
            return Err(reader
                .error(node.at, format!("two Fargate profiles are called `{}`", own.name))
                .because("the second one")
                .help("give each its own name: of several that fit a pod the first by name takes it"));
        }
        profiles.push(own);
    }
    Ok(profiles)
}

fn profile<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Profile, InputError> {
    let fields = reader.fields(node, &PROFILE)?;
    let name = reader.symbol(fields.required(reader, "name")?, "name")?;
    let selectors = reader.list(fields.required(reader, "selectors")?, "selectors")?;
    if selectors.is_empty() || selectors.len() > SELECTORS_MOST {
        return Err(reader
            .error(node.at, format!("the Fargate profile `{name}` has {} selectors", selectors.len()))
            .because("one to five")
            .help("give it one selector at least and five at most; two profiles may serve one namespace"));
    }
    let selectors = selectors.iter().map(|own| selector(reader, own)).collect::<Result<_, _>>()?;
    Ok(Profile { name, selectors })
}

fn selector<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Selector, InputError> {
    let fields = reader.fields(node, &SELECTOR)?;
    let namespace = reader.text(fields.required(reader, "namespace")?, "namespace")?.to_owned();
    let mut labels = Vec::new();
    if let Some(node) = fields.get("labels") {
        for entry in reader.entries(node, "labels")? {
            labels.push((entry.key.to_string(), reader.text(&entry.value, &entry.key)?.to_owned()));
        }
    }
    Ok(Selector { namespace, labels })
}

#[cfg(test)]
mod tests {
    use crate::manifests::{Manifests, read_manifests};
    use crate::text::{InputError, Source};

    fn cluster(profiles: &str) -> Result<Manifests, InputError> {
        let text = format!(
            "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: shop, region: us-east-1}}\nfargateProfiles:\n{profiles}"
        );
        read_manifests(&Source::new("cluster.yaml", text))
    }

    #[test]
    fn a_profile_has_a_name_and_what_selects_pods() {
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
    fn what_eksctl_or_eks_refuses_is_an_error() {
        let six = "{namespace: a}, ".repeat(6);
        for (profiles, said) in [
            ("  - {selectors: [{namespace: a}]}\n".to_owned(), "a Fargate profile needs `name`"),
            ("  - {name: a}\n".to_owned(), "a Fargate profile needs `selectors`"),
            ("  - {name: a, selectors: []}\n".to_owned(), "the Fargate profile `a` has 0 selectors"),
            (format!("  - {{name: a, selectors: [{six}]}}\n"), "the Fargate profile `a` has 6 selectors"),
            ("  - {name: a, selectors: [{labels: {b: c}}]}\n".to_owned(), "needs `namespace`"),
            ("  - {name: a, selectors: [{namespace: b}]}\n".repeat(2), "two Fargate profiles are called `a`"),
        ] {
            let error = cluster(&profiles).unwrap_err();
            assert!(error.to_string().contains(said), "{profiles}: {error}");
            assert!(error.place().is_some(), "{error}");
        }
    }
}

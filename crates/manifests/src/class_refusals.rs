//! What the API server refuses of an EC2NodeClass beyond what a single key may hold.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/apis/v1/ec2nodeclass.go`, the rules of `AMISelectorTerms`, `AMISelectorTerm`, `Kubelet` and
//! `EC2NodeClass`; those of the kubelet are in v1beta1 and, as a webhook, in v1alpha5 too.

use crate::lints;
use nodecast_model::domain::node_pool::AmiFamily;
use nodecast_model::text::InputError;
use nodecast_model::text::reader::Reader;
use nodecast_model::text::tree::{Location, Node, NodeKind};

fn refused(reader: &Reader<'_>, at: Location, message: impl Into<String>, help: impl Into<String>) -> InputError {
    reader.error(at, message).because("the API server refuses it").help(help)
}

/// An alias stands alone and states a version.
pub(super) fn check_alias<'s>(
    reader: &Reader<'s>,
    (alias, text): (&Node<'s>, &str),
    terms: &[Node<'s>],
) -> Result<(), InputError> {
    if text.split_once('@').is_none_or(|(_, version)| version.is_empty()) {
        let family = text.trim_end_matches('@');
        let message = format!("the AMI alias `{text}` states no version");
        return Err(refused(reader, alias.at, message, format!("write `{family}@latest` or the version of a release")));
    }
    let selects = |key: &str| matches!(key, "id" | "name" | "owner" | "tags" | "ssmParameter");
    let beside = terms.iter().flat_map(Node::entries).find(|entry| selects(&entry.key));
    let another = terms.iter().filter_map(|term| term.get("alias")).nth(1).map(|node| node.at);
    match beside.map(|entry| entry.key_at).or(another) {
        Some(at) => {
            let help = "keep the alias alone, or select by `id`, `name`, `tags` or `ssmParameter` without it";
            Err(refused(reader, at, "an AMI alias stands alone in `amiSelectorTerms`", help))
        }
        None => Ok(()),
    }
}

/// Beside an alias the family is its own, or the user's.
pub(super) fn check_family(
    reader: &Reader<'_>,
    at: Location,
    (stated, of_alias): (AmiFamily, AmiFamily),
) -> Result<(), InputError> {
    if stated == of_alias || stated == AmiFamily::Custom {
        return Ok(());
    }
    let message = format!("`amiFamily` is {stated:?}, and the alias names images of {of_alias:?}");
    Err(refused(reader, at, message, "remove `amiFamily`; the alias determines it"))
}

/// A v1 class has to say which images it takes.
pub(super) fn warn_of_no_images(reader: &mut Reader<'_>, at: Location, family: AmiFamily) {
    reader.warn(
        &lints::CLASS_WITHOUT_IMAGES,
        at,
        "an EC2NodeClass of `karpenter.k8s.aws/v1` has no `amiSelectorTerms`, which is required there",
        &format!("taken as {family:?}, which no newer image replaces"),
        "write it, for example `amiSelectorTerms: [{alias: al2023@latest}]`",
    );
}

/// Kubelet settings that have to fit each other.
pub(super) fn check_kubelet<'s>(reader: &Reader<'s>, kubelet: &Node<'s>) -> Result<(), InputError> {
    const HIGH: &str = "imageGCHighThresholdPercent";
    const LOW: &str = "imageGCLowThresholdPercent";
    let given = |key| kubelet.get(key).filter(|node| node.kind != NodeKind::Null);
    if let (Some(high), Some(low)) = (given(HIGH), given(LOW)) {
        let (at, high) = (high.at, reader.integer(high, HIGH, 0, 100)?);
        let low = reader.integer(low, LOW, 0, 100)?;
        if high <= low {
            let message = format!("`{HIGH}` is {high}, not above `{LOW}`, {low}");
            let help = "raise it: image garbage collection starts at the high threshold and stops at the low one";
            return Err(refused(reader, at, message, help));
        }
    }
    let entries = |key| kubelet.get(key).map(Node::entries).unwrap_or_default();
    let (soft, grace) = (entries("evictionSoft"), entries("evictionSoftGracePeriod"));
    if let Some(entry) = soft.iter().find(|entry| grace.iter().all(|item| item.key != entry.key)) {
        let message = format!("`evictionSoft` has `{}`, and `evictionSoftGracePeriod` has not", entry.key);
        return Err(refused(
            reader,
            entry.key_at,
            message,
            format!("state its grace period, for example `{}: 2m`", entry.key),
        ));
    }
    if let Some(entry) = grace.iter().find(|entry| soft.iter().all(|item| item.key != entry.key)) {
        let message = format!("`evictionSoftGracePeriod` has `{}`, and `evictionSoft` has not", entry.key);
        return Err(refused(reader, entry.key_at, message, "state its threshold, or take it out"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::read_manifests;
    use nodecast_model::text::Source;

    /// What is said to an EC2NodeClass of this spec: why it is refused, or else how often it is warned of.
    fn told(version: &str, spec: &str) -> Result<usize, String> {
        let text = format!(
            "apiVersion: karpenter.k8s.aws/{version}\nkind: EC2NodeClass\nmetadata: {{name: a}}\nspec: {{{spec}}}\n"
        );
        let read = read_manifests(&Source::new("class.yaml", text)).map_err(|error| error.to_string())?;
        Ok(read.warnings.len())
    }

    fn is_refused(spec: &str, what: &str) {
        let reason = told("v1", spec).unwrap_err();
        assert!(reason.contains(what), "{spec}: {reason}");
    }

    const AL2023: &str = "amiSelectorTerms: [{alias: al2023@latest}]";

    #[test]
    fn ami_alias_needs_version_and_no_other_terms() {
        is_refused("amiSelectorTerms: [{alias: al2023@latest}, {id: ami-1}]", "stands alone");
        is_refused("amiSelectorTerms: [{alias: al2023@latest, name: a}]", "stands alone");
        is_refused("amiSelectorTerms: [{alias: al2023@latest}, {alias: al2@latest}]", "stands alone");
        is_refused("amiSelectorTerms: [{alias: al2023}]", "no version");
        is_refused("amiSelectorTerms: [{alias: al2023@}]", "no version");
        is_refused(&format!("amiFamily: Bottlerocket, {AL2023}"), "Bottlerocket");
        for family in ["Custom", "AL2023"] {
            assert_eq!(told("v1", &format!("amiFamily: {family}, {AL2023}")), Ok(0));
        }
    }

    #[test]
    fn v1_node_class_requires_ami_selector() {
        assert_eq!((told("v1", "role: r"), told("v1beta1", "role: r"), told("v1", AL2023)), (Ok(1), Ok(0), Ok(0)));
    }

    #[test]
    fn kubelet_settings_fit_each_other() {
        let kubelet = |settings: &str| format!("{AL2023}, kubelet: {{{settings}}}");
        is_refused(&kubelet("imageGCHighThresholdPercent: 10, imageGCLowThresholdPercent: 80"), "not above");
        is_refused(&kubelet("evictionSoft: {memory.available: 500Mi}"), "evictionSoftGracePeriod");
        is_refused(&kubelet("evictionSoftGracePeriod: {memory.available: 1m}"), "`evictionSoft` has not");
        for taken in [
            "imageGCHighThresholdPercent: 80, imageGCLowThresholdPercent: 10",
            "imageGCHighThresholdPercent: 80",
            "evictionSoft: {memory.available: 500Mi}, evictionSoftGracePeriod: {memory.available: 1m}",
        ] {
            assert_eq!(told("v1", &kubelet(taken)), Ok(0), "{taken}");
        }
    }
}

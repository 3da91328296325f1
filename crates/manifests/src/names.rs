//! Names and labels as the API server takes them: of each kind a DNS subdomain or a DNS label.
//!
//! Source: Kubernetes 1.36 `staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go` for the forms; which kind has which:
//! `pkg/apis/core/validation/validation.go` (names of Services and Namespaces are labels, all others are subdomains),
//! `pkg/apis/batch/validation/validation.go` (a CronJob leaves room for what its Jobs are called), and for objects of custom
//! resources `apiextensions-apiserver/pkg/apiserver/validation`, which takes subdomains.

use super::known_kinds::READ;
use nodecast_model::text::InputError;
use nodecast_model::text::reader::Reader;
use nodecast_model::text::tree::{Entry, Node};

/// How the name of a kind is formed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// Labels with dots between them, as long as this at most.
    Subdomain(usize),
    /// One label.
    Label,
    /// A cluster's, which is no Kubernetes object: letters, digits, `-` and `_`.
    Cluster,
}

pub(super) const LABEL_MAX: usize = 63;
pub(super) const SUBDOMAIN_MAX: usize = 253;
/// A Job's name is its CronJob's, a dash and ten digits, and has to be a label.
const CRON_JOB_MAX: usize = 52;
/// The longest name of an EKS cluster, and of what belongs to one.
pub(super) const CLUSTER_MAX: usize = 100;

/// The form of a kind's names; `None` where it has none, or is not read.
fn form_of(kind: &str) -> Option<Form> {
    match kind {
        // A file that kube-scheduler reads, not an object.
        "KubeSchedulerConfiguration" => None,
        "ClusterConfig" => Some(Form::Cluster),
        "Service" | "Namespace" => Some(Form::Label),
        "CronJob" => Some(Form::Subdomain(CRON_JOB_MAX)),
        _ => READ.contains(&kind).then_some(Form::Subdomain(SUBDOMAIN_MAX)),
    }
}

impl Form {
    /// What is wrong with `name`, if anything is.
    fn refuses(self, name: &str) -> Option<&'static str> {
        match self {
            Self::Label if name.len() > LABEL_MAX => Some("longer than 63 characters"),
            Self::Label if !is_label(name) => Some("not a DNS label"),
            Self::Subdomain(CRON_JOB_MAX) if name.len() > CRON_JOB_MAX => Some("longer than 52 characters"),
            Self::Subdomain(most) if name.len() > most => Some("longer than 253 characters"),
            Self::Subdomain(_) if !name.split('.').all(is_label) => Some("not a DNS subdomain"),
            Self::Cluster if name.len() > CLUSTER_MAX => Some("longer than 100 characters"),
            Self::Cluster if !is_cluster(name) => Some("not the name of a cluster"),
            _ => None,
        }
    }

    fn way_out(self) -> &'static str {
        match self {
            Self::Label => {
                "use lowercase letters, digits, and `-`, at most 63 characters, starting and ending with a letter or digit: `web-2`"
            }
            Self::Subdomain(CRON_JOB_MAX) => {
                "write small letters, digits, `-` and `.`, at most 52 of them, with a letter or a digit first and last: `nightly`"
            }
            Self::Subdomain(_) => {
                "write small letters, digits, `-` and `.`, with a letter or a digit first and last of each part: `web-2`"
            }
            Self::Cluster => "write letters, digits, `-` and `_`, with a letter or a digit first",
        }
    }
}

/// Whether it is a label but for its length, for which the parts of a subdomain have no limit of their own.
pub(super) fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

/// Whether it is made as EKS's names are, but for its length.
pub(super) fn is_cluster(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    name.bytes().all(inner) && name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}

/// Whether `key` can be the key of a label or an annotation: a name, perhaps with a subdomain and a slash before it.
pub(super) fn is_qualified(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let domain = |prefix: &str| prefix.len() <= SUBDOMAIN_MAX && prefix.split('.').all(is_label);
    prefix.is_none_or(domain) && !name.is_empty() && is_value(name)
}

/// Whether `value` can be the value of a label; one may be empty.
pub(super) fn is_value(value: &str) -> bool {
    let end = |byte: Option<u8>| byte.is_none_or(|byte| byte.is_ascii_alphanumeric());
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    value.len() <= LABEL_MAX && value.bytes().all(inner) && end(value.bytes().next()) && end(value.bytes().next_back())
}

/// Refuses an object whose name, or whose namespace, no object of its kind can have.
pub(super) fn check(reader: &Reader<'_>, object: &Node<'_>, kind: &str) -> Result<(), InputError> {
    let (Some(form), Some(metadata)) = (form_of(kind), object.get("metadata")) else { return Ok(()) };
    if let Some(node) = metadata.get("name") {
        check_name(reader, node, form, &format!("the name of a {kind}"))?;
    } else if let Some(node) = metadata.get("generateName") {
        check_prefix(reader, node, form, kind)?;
    }
    match metadata.get("namespace") {
        Some(node) if node.as_text().is_some_and(|text| !text.is_empty()) => {
            check_name(reader, node, Form::Label, "a namespace")
        }
        _ => Ok(()),
    }
}

fn check_name(reader: &Reader<'_>, node: &Node<'_>, form: Form, what: &str) -> Result<(), InputError> {
    let name = reader.text(node, "name")?;
    match form.refuses(name) {
        Some(reason) => Err(reader
            .error(node.at, format!("{what} cannot be `{}`", shown(name)))
            .because(reason)
            .help(form.way_out())),
        None => Ok(()),
    }
}

/// What the API server appends letters to may end with a dash.
fn check_prefix(reader: &Reader<'_>, node: &Node<'_>, form: Form, kind: &str) -> Result<(), InputError> {
    let prefix = reader.text(node, "generateName")?;
    let whole = prefix.strip_suffix('-').unwrap_or(prefix);
    match form.refuses(whole) {
        Some(reason) => Err(reader
            .error(node.at, format!("the name of a {kind} cannot begin with `{}`", shown(prefix)))
            .because(reason)
            .help(form.way_out())),
        None => Ok(()),
    }
}

/// Refuses what can be no label.
pub(super) fn check_label(reader: &Reader<'_>, entry: &Entry<'_>, value: &str) -> Result<(), InputError> {
    if !is_qualified(&entry.key) {
        return Err(reader
            .error(entry.key_at, format!("the key of a label cannot be `{}`", shown(&entry.key)))
            .because("not a qualified name")
            .help("write letters, digits, `-`, `_` and `.`, at most 63 of them, perhaps with a DNS subdomain and `/` before them"));
    }
    if !is_value(value) {
        return Err(reader
            .error(entry.value.at, format!("the value of a label cannot be `{}`", shown(value)))
            .because("not the value of a label")
            .help(
                "write letters, digits, `-`, `_` and `.`, at most 63 of them, with a letter or a digit first and last",
            ));
    }
    Ok(())
}

/// The beginning of what somebody wrote, on one line.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::{Form, form_of, is_qualified, is_value};

    #[test]
    fn names_are_as_the_api_server_takes_them() {
        let of = |kind| form_of(kind).unwrap();
        for (kind, name) in [
            ("Deployment", "web-2.blue"),
            ("Service", "web"),
            ("Node", "ip-10-0-0-1.eu-west-1.compute.internal"),
            ("ClusterConfig", "Main_1"),
            ("CronJob", "nightly"),
        ] {
            assert_eq!(of(kind).refuses(name), None, "{kind} {name}");
        }
        for (kind, name) in [
            ("Deployment", "<script>"),
            ("Deployment", "a/b"),
            ("Deployment", "a\nb"),
            ("Deployment", "a\0b"),
            ("Deployment", "Web"),
            ("Deployment", ""),
            ("Deployment", "a..b"),
            ("NodePool", "-a"),
            ("Namespace", "a.b"),
            ("Service", "a.b"),
            ("ClusterConfig", "<b>"),
        ] {
            assert!(of(kind).refuses(name).is_some(), "{kind} {name}");
        }
        assert!(of("CronJob").refuses(&"a".repeat(53)).is_some() && of("Job").refuses(&"a".repeat(53)).is_none());
        assert!(of("Service").refuses(&"a".repeat(64)).is_some() && of("Pod").refuses(&"a".repeat(254)).is_some());
        assert_eq!((form_of("KubeSchedulerConfiguration"), form_of("ClusterRole")), (None::<Form>, None));
    }

    #[test]
    fn labels_are_as_the_api_server_takes_them() {
        assert!(is_qualified("app.kubernetes.io/name") && is_qualified("team") && is_value("") && is_value("v1.2_b"));
        for key in ["", "/a", "a/", "a/b/c", "<b>", "A.example/x", "-a"] {
            assert!(!is_qualified(key), "{key}");
        }
        assert!(!is_value("a b") && !is_value("-a") && !is_value(&"a".repeat(64)));
    }
}

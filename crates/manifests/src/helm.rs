//! Hooks of Helm in what `helm template` prints: it prints all of them, and an install runs but some.

use nodecast_model::text::tree::Node;

/// The annotation that makes an object a hook.
const HOOK: &str = "helm.sh/hook";
/// Hooks that Helm knows. An object with any other is passed over.
///
/// Source: Helm v3.18 `pkg/releaseutil/manifest_sorter.go`, `events`.
const EVENTS: [&str; 10] = [
    "pre-install",
    "post-install",
    "pre-delete",
    "post-delete",
    "pre-upgrade",
    "post-upgrade",
    "pre-rollback",
    "post-rollback",
    "test",
    "test-success",
];

/// The hook of an object that an install does not create, with what it says; `None` for one that is created. What a cluster holds has
/// been created.
///
/// Source: Helm v3.18 `pkg/releaseutil/manifest_sorter.go`, `sort`, and `pkg/action/install.go`, `performInstall`.
pub(super) fn not_installed<'n, 's>(object: &'n Node<'s>) -> Option<(&'n Node<'s>, &'n str)> {
    let metadata = object.get("metadata")?;
    let node = metadata.get("annotations")?.get(HOOK)?;
    if ["uid", "creationTimestamp"].iter().any(|key| metadata.get(key).and_then(Node::as_text).is_some()) {
        return None;
    }
    let stated = node.as_text()?;
    let hooks: Vec<String> = stated.split(',').map(|hook| hook.trim().to_ascii_lowercase()).collect();
    let known = hooks.iter().all(|hook| EVENTS.contains(&hook.as_str()));
    let installs = hooks.iter().any(|hook| hook == "pre-install" || hook == "post-install");
    (!(known && installs)).then_some((node, stated))
}

#[cfg(test)]
mod tests {
    use crate::read_manifests;
    use nodecast_model::text::Source;

    #[test]
    fn helm_install_runs_only_install_hooks() {
        let hooks = [
            "test",
            "test-success",
            "pre-delete",
            "post-delete",
            "pre-rollback",
            "post-rollback",
            "pre-upgrade",
            "crd-install",
            "pre-upgrade,post-upgrade",
            "pre-install",
            "post-install,post-upgrade",
            "Pre-Install, pre-upgrade",
        ];
        let job = |(place, hook): (usize, &&str)| {
            format!(
                "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: job-{place}, annotations: {{helm.sh/hook: \"{hook}\"}}}}\n\
                 spec: {{template: {{spec: {{containers: [{{name: a, image: a}}]}}}}}}\n---\n"
            )
        };
        let text: String = hooks.iter().enumerate().map(job).collect();
        let read = read_manifests(&Source::new("hooks.yaml", text.as_str())).unwrap();
        let names: Vec<&str> = read.jobs.iter().map(|job| job.name.name.as_str()).collect();
        assert_eq!(names, ["job-9", "job-10", "job-11"]);
        assert_eq!(read.warnings.len(), 1, "{:?}", read.warnings);
        let live = text.replace("metadata: {", "metadata: {uid: a, ");
        assert_eq!(read_manifests(&Source::new("hooks.yaml", live)).unwrap().jobs.len(), hooks.len());
    }
}

//! The ConfigMaps that change a result: the ranks of node groups for Cluster Autoscaler's expander `priority`, and what a device plugin makes of GPUs,
//! which is not simulated.
//!
//! Source: Cluster Autoscaler 1.36 `expander/priority/priority.go`; k8s-device-plugin v0.19 `README.md`, "Shared Access to GPUs".

use std::collections::BTreeMap;

use super::common::metadata;
use crate::lints;
use nodecast_model::domain::GroupRanks;
use nodecast_model::domain::Symbol;
use nodecast_model::text::InputError;
use nodecast_model::text::error::listed;
use nodecast_model::text::reader::Reader;
use nodecast_model::text::tree::Node;

/// Its name, in the autoscaler's own namespace.
const NAME: &str = "cluster-autoscaler-priority-expander";
const NAMESPACE: &str = "kube-system";

/// The scheduler of pods that name none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// What a device plugin's configuration has where several pods share a GPU, or one GPU is several devices.
const SHARING: [&str; 3] = ["timeSlicing", "mps", "migStrategy"];

/// Warns of a ConfigMap that tells a device plugin to let pods share GPUs: here each GPU is one device.
pub(super) fn warn_of_sharing<'s>(reader: &mut Reader<'s>, object: &Node<'s>) {
    let Some(data) = object.get("data") else { return };
    let shares = |text: &str| {
        SHARING.iter().find(|key| text.contains(**key))?;
        let config = serde_saphyr::from_str::<serde_json::Value>(text).ok()?;
        let is_version = config.get("version").is_some();
        let sharing = config.get("sharing").filter(|_| is_version);
        let replicated = SHARING[..2].iter().find(|key| sharing.is_some_and(|sharing| sharing.get(**key).is_some()));
        let strategy = config.get("flags").filter(|_| is_version).and_then(|config| config.get(SHARING[2])?.as_str());
        replicated.or(strategy.filter(|strategy| *strategy != "none").map(|_| &SHARING[2])).copied()
    };
    let Some((at, key)) =
        data.entries().iter().find_map(|datum| Some((datum.value.at, shares(datum.value.as_text()?)?)))
    else {
        return;
    };
    let message =
        format!("`{key}` of a device plugin's ConfigMap is not simulated: each GPU is one device, for one pod");
    let help = "put nodes that have the plugin into the scenario (`init --from`), or tags of node groups and NodeOverlays that say how many devices there are";
    reader.warn(&lints::GPU_SHARING, at, message, "left out", help);
}

/// The names of the profiles of a KubeSchedulerConfiguration that a ConfigMap holds for a scheduler of one's own; `None` if it holds none.
pub fn schedulers_of<'n>(object: &'n Node<'_>) -> Option<(Vec<String>, &'n Node<'n>)> {
    const KIND: &str = "KubeSchedulerConfiguration";
    let entries = object.get("data")?.entries().iter();
    entries.filter_map(|entry| Some((entry.value.as_text()?, &entry.value))).find_map(|(text, node)| {
        let config = Some(text)
            .filter(|text| text.contains(KIND))
            .and_then(|text| serde_saphyr::from_str::<serde_json::Value>(text).ok());
        let config = config.filter(|config| config.get("kind").and_then(serde_json::Value::as_str) == Some(KIND))?;
        let profiles = config.get("profiles").and_then(serde_json::Value::as_array).map_or(&[][..], Vec::as_slice);
        let name = |profile: &serde_json::Value| profile.get("schedulerName")?.as_str().map(str::to_owned);
        let names = profiles.iter().map(|profile| name(profile).unwrap_or_else(|| DEFAULT_SCHEDULER.to_owned()));
        Some((names.collect(), node))
    })
}

/// Warns of a ConfigMap that configures a scheduler of one's own. The control plane of EKS takes no configuration for its scheduler.
pub(super) fn warn_of_scheduler<'s>(reader: &mut Reader<'s>, object: &Node<'s>) {
    let Some((names, node)) = schedulers_of(object) else { return };
    let name = object.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Node::as_text);
    let pods = match names.as_slice() {
        [] => "the pods of its scheduler".to_owned(),
        names => format!("pods with `schedulerName` {}", listed(names.iter().map(String::as_str))),
    };
    let message = format!(
        "the KubeSchedulerConfiguration in ConfigMap {} is not used: the default scheduler places {pods}. Cost is too high if it packs \
         more tightly",
        name.unwrap_or_default()
    );
    let help = "if that scheduler places most pods, add the KubeSchedulerConfiguration as a manifest of its own: then it places all pods";
    reader.warn(&lints::SECOND_SCHEDULER, node.at, message, "not used", help);
}

/// Regular expressions for names of groups, by rank; the higher ranks are preferred.
pub type StatedRanks = BTreeMap<i64, Vec<String>>;

/// The ranks that a ConfigMap states, if it is that of the expander. One that the program could not read is left out with a
/// warning, as the program leaves it out; one in another namespace than the program's is `unread`, which matters to those who rank groups.
pub(super) fn group_ranks<'s>(
    reader: &mut Reader<'s>,
    object: &Node<'s>,
    unread: &mut Option<Symbol>,
) -> Result<Option<StatedRanks>, InputError> {
    let named = object.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Node::as_text);
    if named != Some(NAME) {
        return Ok(None);
    }
    let namespace = metadata(reader, object.get("metadata"))?.name.namespace;
    if namespace.as_str() != NAMESPACE {
        *unread = Some(namespace);
        return Ok(None);
    }
    let stated = object.get("data").and_then(|data| data.get("priorities"));
    let Some(text) = stated.and_then(Node::as_text) else {
        let message = format!("the ConfigMap {NAME} has no `priorities`");
        reader.warn(&lints::EXPANDER_PRIORITIES, object.at, message, "ranks nothing", "put them under `data`, as text");
        return Ok(None);
    };
    let at = stated.map_or(object.at, |node| node.at);
    let read = serde_saphyr::from_str::<StatedRanks>(text).map_err(|error| error.to_string());
    let ranks = read.and_then(|ranks| {
        let pairs = ranks.iter().flat_map(|(rank, names)| names.iter().map(|name| (*rank, name.as_str())));
        GroupRanks::new(pairs).map(|_| ranks)
    });
    match ranks {
        Ok(ranks) => Ok(Some(ranks)),
        Err(reason) => {
            let first = reason.lines().next().unwrap_or_default().to_owned();
            let message = format!("the priorities of the ConfigMap {NAME} cannot be read: {first}");
            let help = "write ranks with lists of regular expressions: `10: [spot.*]`";
            reader.warn(&lints::EXPANDER_PRIORITIES, at, message, "ranks nothing", help);
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_manifests;
    use nodecast_model::text::Source;

    #[test]
    fn scheduler_configuration_in_config_map_is_warned_of() {
        let warned = |config: &str| {
            let text = format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: packer, namespace: kube-system }}\ndata:\n  any.yaml: |-\n    {config}\n"
            );
            let read = read_manifests(&Source::new("map.yaml", text)).unwrap();
            read.warnings.iter().map(|warning| warning.message().to_owned()).collect::<Vec<_>>()
        };
        let config = "apiVersion: kubescheduler.config.k8s.io/v1\n    kind: KubeSchedulerConfiguration";
        let profiles = "profiles: [{ schedulerName: tight }, { schedulerName: loose }]";
        let found = warned(&format!("{config}\n    {profiles}"));
        assert!(
            found.len() == 1 && found[0].contains("ConfigMap packer") && found[0].contains("`tight` and `loose`"),
            "{found:?}"
        );
        assert_eq!(warned(config).len(), 1);
        assert!(
            warned("kind: KubeSchedulerConfigurationDraft").is_empty()
                && warned("{ KubeSchedulerConfiguration").is_empty()
        );
    }

    #[test]
    fn gpu_sharing_config_is_warned_about() {
        for (config, warned) in [
            (
                "version: v1\n    sharing:\n      timeSlicing:\n        resources: [{ name: nvidia.com/gpu, replicas: 4 }]",
                "timeSlicing",
            ),
            ("version: v1\n    sharing: { mps: { resources: [{ name: nvidia.com/gpu, replicas: 4 }] } }", "mps"),
            ("version: v1\n    flags: { migStrategy: mixed }", "migStrategy"),
            ("version: v1\n    flags: { migStrategy: none }", ""),
            ("sharing: { mps: are a nice idea }", ""),
            ("timeSlicing: [", ""),
        ] {
            let text = format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: plugin, namespace: kube-system }}\ndata:\n  any: |-\n    {config}\n"
            );
            let read = read_manifests(&Source::new("plugin.yaml", text)).unwrap();
            let warnings: Vec<String> = read.warnings.iter().map(|warning| format!("{warning:?}")).collect();
            assert_eq!(warnings.len(), usize::from(!warned.is_empty()), "{config}: {warnings:?}");
            assert!(warnings.iter().all(|warning| warning.contains(warned)), "{config}: {warnings:?}");
        }
    }
}

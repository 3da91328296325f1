//! Programs of a cluster that change pods, replicas or nodes: what metrics-server is told, and those that are not simulated.
//!
//! Must not: read Karpenter (`karpenter`), the Cluster Autoscaler (`cluster_autoscaler`) or the Vertical Pod Autoscaler (`vertical`).

use std::fmt::Write as _;

use super::cluster::stated_by;
use super::objects::Object;
use super::{Dump, Notes};
use crate::definition::MetricsServer;
use crate::domain::SimDuration;
use crate::domain::durations::duration;
use crate::tree::Node;

/// What metrics-server reads nodes by, and how often it does unless it is told.
///
/// Source: metrics-server v0.8 `cmd/metrics-server/app/options/options.go`, `NewOptions`.
const RESOLUTION: &str = "metric-resolution";
const UNTOLD: SimDuration = SimDuration::from_secs(60);
/// Within what times a scenario has it.
const RESOLUTIONS: [SimDuration; 2] = [SimDuration::from_secs(10), SimDuration::from_secs(600)];

/// Programs that are not simulated, by the last part of their images' names, with what that means for the answer.
const NOT_SIMULATED: [(&str, &str); 9] = [
    ("descheduler", "no pod is evicted by its policies, so evictions and node removals may be too few"),
    ("kured", "no node is drained for a reboot, so evictions are too few"),
    ("cluster-proportional-autoscaler", "what it scales keeps its replicas when the number of nodes changes"),
    ("cluster-proportional-vertical-autoscaler", "what it sizes keeps its requests when the number of nodes changes"),
    ("kube-downscaler", "workloads keep their replicas in its downtimes, so the cost may be too high"),
    ("kube-green", "workloads keep their replicas in its downtimes, so the cost may be too high"),
    ("kueue", "no Job waits for a quota of its queue, so waits may be too short and the cost too high"),
    ("castai-cluster-controller", "it neither launches nor removes nodes, so the cost may be too high"),
    ("spotinst-kubernetes-cluster-controller", "it neither launches nor removes nodes, so the cost may be too high"),
];

/// How often metrics-server reads nodes, if that is not as it is published.
#[derive(Debug, Default)]
pub(super) struct Controllers {
    resolution: Option<SimDuration>,
}

impl Controllers {
    /// Looks through the workloads of a dump; names those that are not simulated.
    pub(super) fn new(dump: &Dump<'_>, notes: &mut Notes) -> Self {
        let mut controllers = Self::default();
        for object in &dump.carried {
            let names: Vec<&str> = images(object).map(program).collect();
            if names.contains(&"metrics-server") && object.kind == "Deployment" {
                controllers.resolution =
                    resolution(object, notes).filter(|resolution| *resolution != MetricsServer::PUBLISHED.resolution);
            }
            for (name, effect) in NOT_SIMULATED.iter().filter(|(name, _)| names.contains(name)) {
                notes.warn(format!("{} {}: {name} is not simulated: {effect}", object.kind, object.full_name()));
            }
        }
        controllers
    }

    /// The section of the scenario, if there is anything to say.
    pub(super) fn write(&self, text: &mut String) {
        if let Some(resolution) = self.resolution {
            let _ = writeln!(
                text,
                "\nmetrics_server:                     # as its Deployment sets it up\n  resolution: {resolution}"
            );
        }
    }
}

/// The images of the containers that a workload runs, those of a CronJob too.
fn images<'o>(object: &'o Object<'_>) -> impl Iterator<Item = &'o str> {
    const SPECS: [&[&str]; 2] = [
        &["spec", "template", "spec", "containers"],
        &["spec", "jobTemplate", "spec", "template", "spec", "containers"],
    ];
    let containers = SPECS.iter().filter_map(|path| object.at(path)).flat_map(Node::items);
    containers.filter_map(|container| container.get("image").and_then(Node::as_text))
}

/// The last part of an image's name, without the architecture that some have behind it.
fn program(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or(image);
    let last = name.rsplit('/').next().unwrap_or(name);
    let last = last.split(':').next().unwrap_or(last);
    last.strip_suffix("-amd64").or_else(|| last.strip_suffix("-arm64")).unwrap_or(last)
}

/// How often a Deployment's metrics-server reads nodes.
fn resolution(deployment: &Object<'_>, notes: &mut Notes) -> Option<SimDuration> {
    let stated = stated_by(deployment).into_iter().find(|(flag, _)| *flag == RESOLUTION).map(|(_, value)| value);
    let Some(stated) = stated else {
        // Whose command line is not in the dump is taken as published.
        let has_words = deployment.at(&["spec", "template", "spec", "containers"]).map_or(&[][..], Node::items);
        let has_words =
            has_words.iter().any(|has_word| has_word.get("args").is_some() || has_word.get("command").is_some());
        return has_words.then_some(UNTOLD);
    };
    let [least, most] = RESOLUTIONS;
    let read = duration(stated).ok().filter(|duration| (least..=most).contains(duration));
    if read.is_none() {
        notes.warn(format!(
            "metrics-server's flag `--{RESOLUTION}={stated}` is ignored: it is no time from {least} to {most}, so nodes are read every {}",
            MetricsServer::PUBLISHED.resolution
        ));
    }
    read
}

#[cfg(test)]
mod tests {
    use super::program;

    #[test]
    fn program_is_named_without_registry_tag_and_architecture() {
        assert_eq!(program("registry.k8s.io/descheduler/descheduler:v0.31.0"), "descheduler");
        assert_eq!(program("localhost:5000/kured@sha256:0"), "kured");
        assert_eq!(program("cpa/cluster-proportional-autoscaler-arm64:1.8"), "cluster-proportional-autoscaler");
    }
}

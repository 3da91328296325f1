//! First scenarios: the texts of the files that a newcomer starts from, either an example or what a dump of a cluster says.
//!
//! What must not live here: writing files, and any figure that is neither in the dump nor stated as an assumption in the
//! scenario that is made of it.

pub(super) mod dump;
mod example;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::error::{ScenarioError, Warning, nearest};
use super::schema::json_schema;
use super::source::Source;
use crate::catalog::{Catalog, CatalogError, Region};
use crate::domain::{KarpenterVersion, SimDuration, SimTime};

/// A scenario that does not exist as files yet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Draft {
    /// Its files; the scenario itself comes first.
    pub files: Vec<DraftFile>,
    /// What a dump holds that the scenario does not carry, or carries in another form.
    pub warnings: Vec<Warning>,
    /// What the nodes of a dump are and cost, in a sentence.
    pub remark: Option<String>,
}

/// A file of a draft.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DraftFile {
    /// Its name, to stand beside the others.
    pub name: Cow<'static, str>,
    /// Its text.
    pub text: String,
}

/// What is wished of a draft.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wishes {
    /// The scenario's name.
    pub name: String,
    /// The region; `None` for that of the dump, or us-east-1 in an example.
    pub region: Option<String>,
    /// Karpenter's release; `None` for that of the dump, or the default in an example.
    pub karpenter: Option<KarpenterVersion>,
    /// Whether a dump is to have other names, so that it can be shown to others.
    pub anonymise: bool,
    /// What its workloads were seen to be asked for; `None` if nobody looked.
    pub observed: Option<Observed>,
}

/// Feature gates in the form of Karpenter's `FEATURE_GATES`: `SpotToSpotConsolidation=true,NodeRepair=false`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeatureGateWords(pub(crate) String);

impl std::str::FromStr for FeatureGateWords {
    type Err = String;

    /// Reads gates.
    ///
    /// # Errors
    /// If one is unknown, or neither on nor off.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        dump::check_gates(text).map(|()| Self(text.to_owned()))
    }
}

/// What workloads were asked for in a window of time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// The begin of the window.
    pub start: jiff::Timestamp,
    /// Its length.
    pub length: SimDuration,
    /// Zones in which nodes were seen; `None` if no table of nodes was recorded.
    pub zones: Option<BTreeSet<String>>,
    /// By workload.
    pub loads: Vec<ObservedLoad>,
    /// The pods that were seen, in order of creation; `None` if no table of pods was recorded.
    pub pods: Option<Vec<ObservedPod>>,
}

/// A pod that was seen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ObservedPod {
    /// Its name.
    pub name: String,
    /// Namespace and name of what made it.
    pub workload: String,
    /// Whether it came and went with its node.
    pub is_daemon: bool,
    /// When it was created, from the window's begin on; `None` if nobody saw.
    pub created: Option<SimTime>,
    /// When its containers started.
    pub started: Option<SimTime>,
    /// When it was asked to go.
    pub deletion_requested: Option<SimTime>,
    /// When it was gone, or its containers had ended.
    pub removed: Option<SimTime>,
    /// CPU that it requests, thousandths; 0 if nobody recorded it.
    pub cpu_milli: i64,
    /// Memory that it requests; 0 if nobody recorded it.
    pub memory_bytes: i64,
    /// What it asks of its node besides, if anybody recorded it.
    pub placement: Option<ObservedPlacement>,
}

/// What a pod that was seen asks of its node, each as a trace of pods states it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ObservedPlacement {
    /// Whole NVIDIA GPUs.
    pub gpus: i64,
    /// Labels that the node has to have.
    pub node_selector: String,
    /// Taints that the pod tolerates.
    pub tolerations: String,
}

/// CPU time that a request is assumed to take where nothing tells.
pub const CPU_PER_REQUEST: SimDuration = SimDuration::from_millis(dump::MILLISECONDS_PER_REQUEST);

/// What a workload was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ObservedLoad {
    /// Namespace and name.
    pub workload: String,
    /// The curve, as the file that a scenario names: of requests per second, or of cores.
    pub curve: String,
    /// CPU time of one request; `None` where the curve is of cores.
    pub cpu_per_request: Option<SimDuration>,
    /// Whether that is assumed, because nobody measured CPU.
    pub cpu_is_assumed: bool,
    /// Where it is from, for a comment.
    pub basis: String,
}

/// What a dump is to hold, as `kubectl api-resources -o name` calls it. Of ConfigMaps it is one, with the ranks of the Cluster
/// Autoscaler's groups: [`RANKS`].
pub const RESOURCES: [&str; 39] = [
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
    "cronjobs.batch",
    "pods",
    "pods.metrics.k8s.io",
    "services",
    "ingresses.networking.k8s.io",
    "verticalpodautoscalers.autoscaling.k8s.io",
    "horizontalpodautoscalers.autoscaling",
    "poddisruptionbudgets.policy",
    "persistentvolumeclaims",
    "limitranges",
    "resourcequotas",
    "securitygrouppolicies.vpcresources.k8s.aws",
    "rollouts.argoproj.io",
    "scaledobjects.keda.sh",
    "scaledjobs.keda.sh",
    "servicemonitors.monitoring.coreos.com",
    "podmonitors.monitoring.coreos.com",
    "nodes",
    "namespaces",
    "ingressclasses.networking.k8s.io",
    "priorityclasses.scheduling.k8s.io",
    "persistentvolumes",
    "storageclasses.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "volumeattributesclasses.storage.k8s.io",
    "nodepools.karpenter.sh",
    "nodeclaims.karpenter.sh",
    "nodeoverlays.karpenter.sh",
    "capacitybuffers.autoscaling.x-k8s.io",
    "podtemplates",
    "ec2nodeclasses.karpenter.k8s.aws",
    "nodeclasses.eks.amazonaws.com",
    "provisioners.karpenter.sh",
    "machines.karpenter.sh",
    "awsnodetemplates.karpenter.k8s.aws",
];
/// The only ConfigMap that is read: the ranks of the Cluster Autoscaler's expander `priority`.
pub const RANKS: &str = "kube-system/cluster-autoscaler-priority-expander";

/// The name of the scenario's own file.
pub const SCENARIO_FILE: &str = "scenario.yaml";

/// The name of the JSON Schema that editors read for a scenario.
pub const SCHEMA_FILE: &str = "scenario.schema.json";

impl Draft {
    /// A day of a small web shop, with two policies to compare, every line explained.
    ///
    /// # Errors
    /// If there are no prices for the region, or Karpenter's release knows no NodePools.
    pub fn example(wishes: &Wishes, catalog: &Catalog) -> Result<Self, ScenarioError> {
        example::draft(wishes, catalog)
    }

    /// The cluster of a dump: its objects as their authors wrote them, its node groups, releases and zones as its nodes show
    /// them, and load that holds the replicas that it had.
    ///
    /// # Errors
    /// If `sources` are not what `kubectl get -o yaml` (or `-o json`) prints, an object cannot be read, no node names a region
    /// and none is wished for, or there is no workload.
    pub fn of_dump(sources: &[Source], wishes: &Wishes, catalog: &Catalog) -> Result<Self, ScenarioError> {
        dump::draft(sources, wishes, catalog)
    }
}

impl Draft {
    /// Adds the line by which editors find the JSON Schema of a scenario in `directory`, relative to the scenario. The schema in the scenario's own
    /// directory, `.`, is a file of the draft.
    pub fn add_schema(&mut self, directory: &str) {
        if let Some(scenario) = self.files.first_mut() {
            let line = format!("# yaml-language-server: $schema={directory}/{SCHEMA_FILE}\n");
            scenario.text.insert_str(0, &line);
        }
        if directory == "." {
            self.files.push(DraftFile { name: SCHEMA_FILE.into(), text: json_schema::text() });
        }
    }

    /// Namespace and name of each Deployment, Rollout and StatefulSet of a dump.
    ///
    /// # Errors
    /// If `sources` are no dump.
    pub fn serving_workloads(sources: &[Source]) -> Result<BTreeSet<String>, ScenarioError> {
        dump::serving_workloads(sources)
    }

    /// The Deployment of a dump's Cluster Autoscaler, `namespace/name`.
    ///
    /// # Errors
    /// If `sources` are no dump.
    pub fn cluster_autoscaler(sources: &[Source]) -> Result<Option<String>, ScenarioError> {
        dump::cluster_autoscaler(sources)
    }

    /// Whether a dump holds nodes, which say in which region it is.
    ///
    /// # Errors
    /// If it is none.
    pub fn has_nodes(sources: &[Source]) -> Result<bool, ScenarioError> {
        dump::has_nodes(sources)
    }
}

/// The prices of a region that was asked for.
fn region(name: &str, catalog: &Catalog) -> Result<Arc<Region>, ScenarioError> {
    catalog.region(name).map_err(|error| match error {
        CatalogError::UnknownRegion { .. } => {
            let known = || catalog.regions();
            let help = nearest(name, known()).map_or_else(
                || format!("regions with prices: {}", known().collect::<Vec<_>>().join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            ScenarioError::new(format!("no prices for region `{name}`")).help(help)
        }
        other => ScenarioError::new(other.to_string()),
    })
}

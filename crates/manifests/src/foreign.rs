//! Kinds of other projects, by their API group: which make pods of their own and which change nothing.
//!
//! A kind is known by its group, for several projects have a `Job`, a `Service` or a `Cluster`. What must not live here:
//! kinds that are read (`kinds`).

use super::known_kinds::API_VERSIONS;
use nodecast_model::text::error::nearest;

/// What a kind of another project comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Foreign {
    /// Its controller makes pods.
    MakesPods,
    /// It sets the replicas of workloads, in the way of a kind that is read.
    Scales,
    /// Its controller, or a tool, makes objects of it that run pods; a dump of a cluster holds these, a repository does not.
    Renders,
    /// It changes neither capacity, cost nor latency.
    Quiet,
}

/// Kinds that set the replicas of workloads, by group: those of KEDA 1, and KEDA's add-on for HTTP.
const SCALERS: &[(&str, &str)] = &[("keda.k8s.io", "ScaledObject"), ("http.keda.sh", "HTTPScaledObject")];
/// The group of the files that `kustomize build` reads, which no cluster has.
pub const KUSTOMIZE: &str = "kustomize.config.k8s.io";
/// Kinds of which objects are rendered, with what renders them by hand.
const RENDERERS: &[(&str, &str, &str)] = &[
    ("argoproj.io", "Application", "`helm template` or `kustomize build`"),
    ("argoproj.io", "ApplicationSet", "`helm template` or `kustomize build`"),
    ("helm.cattle.io", "HelmChart", "`helm template`"),
    ("helm.toolkit.fluxcd.io", "HelmRelease", "`helm template`"),
    (KUSTOMIZE, "Component", "`kustomize build`"),
    (KUSTOMIZE, "Kustomization", "`kustomize build`"),
    ("kustomize.toolkit.fluxcd.io", "Kustomization", "`kustomize build`"),
];

/// All kinds of a group but those of the other list.
const ALL: &[&str] = &["*"];

/// An API group, its kinds that make pods, and those that change nothing.
type Group = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Groups of projects that clusters often have, by name.
const GROUPS: &[Group] = &[
    ("acid.zalan.do", &["postgresql"], &["OperatorConfiguration", "PostgresTeam"]),
    ("acme.cert-manager.io", &[], ALL),
    ("actions.github.com", ALL, &[]),
    ("actions.summerwind.dev", ALL, &[]),
    ("agent.k8s.elastic.co", ALL, &[]),
    ("agones.dev", ALL, &[]),
    ("allocation.agones.dev", &[], ALL),
    ("apisix.apache.org", &[], ALL),
    ("apps.kruise.io", ALL, &["ImagePullJob", "NodeImage", "ResourceDistribution", "WorkloadSpread", "PodProbeMarker"]),
    ("argoproj.io", &["Workflow", "CronWorkflow", "Experiment", "EventBus", "EventSource", "Sensor"], ALL),
    ("autoscaling.agones.dev", ALL, &[]),
    ("aws.upbound.io", &[], ALL),
    ("batch.volcano.sh", ALL, &[]),
    ("beat.k8s.elastic.co", ALL, &[]),
    ("bitnami.com", &[], ALL),
    ("cassandra.datastax.com", ALL, &[]),
    ("ceph.rook.io", &["CephCluster", "CephFilesystem", "CephObjectStore", "CephNFS"], ALL),
    ("cert-manager.io", &[], ALL),
    ("cilium.io", &[], ALL),
    ("clickhouse.altinity.com", ALL, &["ClickHouseInstallationTemplate", "ClickHouseOperatorConfiguration"]),
    ("constraints.gatekeeper.sh", &[], ALL),
    ("crd.projectcalico.org", &[], ALL),
    ("databases.spotahome.com", ALL, &[]),
    ("datadoghq.com", &["DatadogAgent"], ALL),
    ("elasticsearch.k8s.elastic.co", ALL, &[]),
    ("elbv2.k8s.aws", &[], ALL),
    ("extensions.istio.io", &[], ALL),
    ("external-secrets.io", &[], ALL),
    ("externaldns.k8s.io", &[], ALL),
    ("flagger.app", &["Canary"], ALL),
    ("flink.apache.org", ALL, &["FlinkStateSnapshot"]),
    ("flows.netobserv.io", ALL, &[]),
    ("fluentbit.fluent.io", &["FluentBit"], ALL),
    ("fluentd.fluent.io", &["Fluentd"], ALL),
    ("gateway.networking.k8s.io", &[], ALL),
    ("generators.external-secrets.io", &[], ALL),
    ("getambassador.io", &[], ALL),
    ("grafana.integreatly.org", &["Grafana"], ALL),
    ("helm.cattle.io", &[], ALL),
    ("helm.toolkit.fluxcd.io", &[], ALL),
    ("iam.services.k8s.aws", &[], ALL),
    ("image.toolkit.fluxcd.io", &[], ALL),
    ("jaegertracing.io", ALL, &[]),
    ("jenkins.io", ALL, &[]),
    ("jobset.x-k8s.io", ALL, &[]),
    ("k8ssandra.io", ALL, &[]),
    ("kafka.strimzi.io", ALL, &["KafkaTopic", "KafkaUser", "KafkaRebalance", "KafkaConnector"]),
    ("kibana.k8s.elastic.co", ALL, &[]),
    ("kubeflow.org", ALL, &["PodDefault", "Profile", "Suggestion"]),
    ("kubernetes.dask.org", ALL, &[]),
    ("kubevirt.io", ALL, &["VirtualMachineInstancePreset"]),
    ("kueue.x-k8s.io", &[], &["Topology", "LocalQueue", "ResourceFlavor", "WorkloadPriorityClass"]),
    (KUSTOMIZE, &[], ALL),
    ("kustomize.toolkit.fluxcd.io", &[], ALL),
    ("kyverno.io", &[], ALL),
    ("leaderworkerset.x-k8s.io", ALL, &[]),
    ("linkerd.io", &[], ALL),
    ("logging.banzaicloud.io", &["Logging", "FluentbitAgent"], ALL),
    ("logstash.k8s.elastic.co", ALL, &[]),
    ("longhorn.io", &[], ALL),
    ("milvus.io", ALL, &[]),
    ("minio.min.io", ALL, &[]),
    ("mongodbcommunity.mongodb.com", ALL, &[]),
    ("monitoring.coreos.com", &["Prometheus", "PrometheusAgent", "Alertmanager", "ThanosRuler"], ALL),
    ("mysql.oracle.com", &["InnoDBCluster"], ALL),
    ("networking.istio.io", &[], ALL),
    ("notification.toolkit.fluxcd.io", &[], ALL),
    ("opensearch.opster.io", &["OpenSearchCluster"], ALL),
    ("opentelemetry.io", &["OpenTelemetryCollector", "TargetAllocator", "OpAMPBridge"], ALL),
    ("operator.victoriametrics.com", ALL, &["VMRule", "VMServiceScrape", "VMPodScrape", "VMProbe", "VMUser"]),
    ("perconaxtradb.percona.com", ALL, &[]),
    ("policies.kyverno.io", &[], ALL),
    ("policy.linkerd.io", &[], ALL),
    ("postgresql.cnpg.io", &["Cluster", "Pooler"], ALL),
    ("projectcalico.org", &[], ALL),
    ("psmdb.percona.com", &["PerconaServerMongoDB"], ALL),
    ("pxc.percona.com", &["PerconaXtraDBCluster"], ALL),
    ("rabbitmq.com", &["RabbitmqCluster"], ALL),
    ("ray.io", ALL, &[]),
    ("redis.redis.opstreelabs.in", ALL, &[]),
    ("scheduling.volcano.sh", &[], ALL),
    ("secrets-store.csi.x-k8s.io", &[], ALL),
    ("security.istio.io", &[], ALL),
    ("serving.knative.dev", ALL, &["Route", "DomainMapping"]),
    ("serving.kserve.io", &["InferenceService", "InferenceGraph"], ALL),
    ("snapshot.storage.k8s.io", &[], ALL),
    ("solr.apache.org", &["SolrCloud"], ALL),
    ("source.toolkit.fluxcd.io", &[], ALL),
    ("sparkoperator.k8s.io", ALL, &[]),
    ("status.gatekeeper.sh", &[], ALL),
    ("telemetry.istio.io", &[], ALL),
    ("templates.gatekeeper.sh", &[], ALL),
    ("tekton.dev", &["PipelineRun", "TaskRun", "CustomRun"], ALL),
    ("traefik.containo.us", &[], ALL),
    ("traefik.io", &[], ALL),
    ("triggers.tekton.dev", &["EventListener"], ALL),
    ("vault.banzaicloud.com", ALL, &[]),
    ("velero.io", &[], ALL),
    ("vpcresources.k8s.aws", &[], ALL),
    ("wgpolicyk8s.io", &[], ALL),
    ("zookeeper.pravega.io", ALL, &[]),
];

/// The group of an API version; none for Kubernetes' oldest kinds.
pub fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// What a kind of a group comes to, if the project is known.
pub fn foreign(group: &str, kind: &str) -> Option<Foreign> {
    if SCALERS.contains(&(group, kind)) {
        return Some(Foreign::Scales);
    }
    if renderer(group, kind).is_some() {
        return Some(Foreign::Renders);
    }
    let (_, makers, quiet) = GROUPS.iter().find(|(key, ..)| *key == group)?;
    let names = |list: &[&str]| list.contains(&kind);
    match (names(makers), names(quiet)) {
        (true, _) => Some(Foreign::MakesPods),
        (_, true) => Some(Foreign::Quiet),
        _ if *makers == ALL => Some(Foreign::MakesPods),
        _ if *quiet == ALL => Some(Foreign::Quiet),
        _ => None,
    }
}

/// The command whose output is what a kind of a group renders, if it renders anything.
pub(super) fn renderer(group: &str, kind: &str) -> Option<&'static str> {
    RENDERERS.iter().find(|(key, name, _)| (*key, *name) == (group, kind)).map(|(.., command)| *command)
}

/// Whether a group is that of a project that is known.
pub fn knows_group(group: &str) -> bool {
    GROUPS.iter().any(|(key, ..)| *key == group)
}

/// Whether another project's kind has the name of one that is read. The groups of custom resources have a dot; a group that is
/// nearly right is a slip.
pub fn is_namesake(group: &str, kind: &str) -> bool {
    let Some((_, versions)) = API_VERSIONS.iter().find(|(name, _)| *name == kind) else { return false };
    let known = || versions.iter().map(|version| group_of(version));
    group.contains('.') && known().all(|item| item != group) && nearest(group, known()).is_none()
}

#[cfg(test)]
mod tests {
    use super::{Foreign, GROUPS, foreign, is_namesake};

    #[test]
    fn a_kind_is_known_by_its_group() {
        assert_eq!(foreign("postgresql.cnpg.io", "Cluster"), Some(Foreign::MakesPods));
        assert_eq!(foreign("postgresql.cnpg.io", "ScheduledBackup"), Some(Foreign::Quiet));
        assert_eq!(foreign("kafka.strimzi.io", "KafkaTopic"), Some(Foreign::Quiet));
        assert_eq!(foreign("kueue.x-k8s.io", "ClusterQueue"), None);
        assert_eq!(foreign("argoproj.io", "Application"), Some(Foreign::Renders));
        assert_eq!(foreign("argoproj.io", "AppProject"), Some(Foreign::Quiet));
        assert_eq!(foreign("example.com", "Cluster"), None);
        assert_eq!(foreign("keda.k8s.io", "ScaledObject"), Some(Foreign::Scales));
        assert_eq!(foreign("keda.k8s.io", "TriggerAuthentication"), None);
    }

    #[test]
    fn a_namesake_is_not_what_it_is_called() {
        assert!(is_namesake("batch.volcano.sh", "Job") && is_namesake("serving.knative.dev", "Service"));
        assert!(
            !is_namesake("batch", "Job") && !is_namesake("", "Service") && !is_namesake("karpenter.sk", "NodePool")
        );
    }

    #[test]
    fn every_group_stands_once() {
        let names: std::collections::BTreeSet<&str> = GROUPS.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names.len(), GROUPS.len());
    }
}

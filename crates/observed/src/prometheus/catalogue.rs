//! What is asked of a Prometheus: each question with its PromQL and step, what it tells, and how to have it where it is missing.
//!
//! Sources: kube-state-metrics 2.20 `docs/metrics`, helm chart kube-prometheus-stack 88.5.3 `values.yaml` (what is there by
//! default), karpenter v0.32 to v1.14.1 `website/content/en/*/reference/metrics.md` (names by release).

mod families;
mod karpenter;
mod placement;
mod requests;

pub use self::families::{FAMILIES_ROLE, recorded};
pub use self::karpenter::{ALTERNATIVES, Alternatives};
pub use self::placement::{GPUS_ROLE, NODE_SELECTORS, SELECTORS_ROLE, TOLERATIONS_ROLE};
pub use self::requests::{BALANCER_ROLE, CHANGES, PRODUCERS, Producer, Served, is_behind, period_of, producer_of};

use nodecast_model::domain::SimDuration;
use nodecast_model::text::InputError;

use super::list::{POINTS_MAX, Query, QueryList};

const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;
/// Windows up to so long are asked for by the minute, longer ones in steps of five minutes.
const BY_THE_MINUTE: i64 = 7 * DAY;

/// What makes the queries of one import.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The first second of the window.
    pub from: i64,
    /// Its end; the last instant that is asked for.
    pub to: i64,
    /// Matchers for every selector, for example `cluster="prod"`.
    pub matchers: Vec<String>,
    /// Namespaces that are asked for; all if there are none.
    pub namespaces: Vec<String>,
    /// Labels in which replicas of a Prometheus differ that have recorded the same, for example `prometheus_replica`.
    pub replica_labels: Vec<String>,
    /// Over how long a rate is taken, seconds: four times the interval of scrapes or more.
    pub rate_window: i64,
    /// Over how many seconds the sums are that an exporter of CloudWatch shows of a load balancer.
    pub sum_period: i64,
}

/// What the window is asked with if nothing else is wished, seconds.
pub const RATE_WINDOW: i64 = 300;

/// The period that sums of CloudWatch are taken to be over if nothing else is said, seconds: that of Elastic Load Balancing, and the default of
/// `cloudwatch_exporter`.
pub const SUM_PERIOD: i64 = 60;

impl Plan {
    /// The plan of a window, for all namespaces.
    ///
    /// # Errors
    /// If the window has no length, or its ends are not whole minutes.
    pub fn of_window(from: i64, to: i64) -> Result<Self, InputError> {
        if to - from < 600 {
            return Err(
                InputError::new("the window is shorter than 10 minutes").help("a day or a week tells something")
            );
        }
        if from % 60 != 0 || to % 60 != 0 {
            return Err(InputError::new("a window begins and ends on a whole minute")
                .help("write for example --from 2026-10-13T00:00:00Z --to 2026-10-14T00:00:00Z"));
        }
        let [matchers, namespaces, replica_labels] = [const { Vec::new() }; 3];
        Ok(Self { from, to, matchers, namespaces, replica_labels, rate_window: RATE_WINDOW, sum_period: SUM_PERIOD })
    }

    /// Checks what the user wrote into queries.
    ///
    /// # Errors
    /// If a matcher has not the form of one, or a name could end a text of PromQL.
    pub fn check(&self) -> Result<(), InputError> {
        for matcher in &self.matchers {
            let operator = matcher.find(['=', '!']).filter(|at| *at > 0);
            let value = operator.map(|at| matcher[at..].trim_start_matches(['=', '!', '~']));
            let quoted = value.is_some_and(|value| value.len() >= 2 && value.starts_with('"') && value.ends_with('"'));
            if !quoted || matcher.contains(['{', '}', '\n']) {
                return Err(InputError::new(format!("`{matcher}` is not a matcher"))
                    .help("write for example --match 'cluster=\"prod\"'"));
            }
        }
        for (what, names) in [("namespace", &self.namespaces), ("label", &self.replica_labels)] {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if let Some(name) = names.iter().find(|name| name.is_empty() || !name.chars().all(plain)) {
                return Err(InputError::new(format!("`{name}` is not a {what}")));
            }
        }
        Ok(())
    }

    /// Seconds between the points of curves.
    pub fn fine(&self) -> i64 {
        if self.to - self.from <= BY_THE_MINUTE { 60 } else { 300 }
    }

    /// Seconds that an increase is asked over: a day, or the window if that is shorter.
    pub fn whole(&self) -> i64 {
        DAY.min(self.to - self.from)
    }

    /// The queries, in pieces that a server answers.
    pub fn queries(&self) -> QueryList {
        let mut list = Asking { plan: self, queries: Vec::new() };
        checks(&mut list);
        workloads(&mut list);
        nodes(&mut list);
        pods(&mut list);
        placement::queries(&mut list);
        karpenter::queries(&mut list);
        requests::queries(&mut list);
        QueryList { queries: list.queries.into_iter().flat_map(|query| query.pieces(POINTS_MAX)).collect() }
    }
}

/// The list while it is made.
struct Asking<'p> {
    plan: &'p Plan,
    queries: Vec<Query>,
}

impl Asking<'_> {
    /// A selector of the metric `name` with these matchers and those of the user.
    fn selector(&self, name: &str, texts: &[&str]) -> String {
        let all: Vec<&str> = texts.iter().copied().chain(self.plan.matchers.iter().map(String::as_str)).collect();
        if all.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", all.join(", ")) }
    }

    /// The same of a series with the label `label` for its namespace, where namespaces are chosen.
    fn namespaced(&self, name: &str, label: &str, texts: &[&str]) -> String {
        if self.plan.namespaces.is_empty() {
            return self.selector(name, texts);
        }
        let choice = format!("{label}=~\"{}\"", self.plan.namespaces.join("|").replace('.', "\\\\."));
        let texts: Vec<&str> = texts.iter().copied().chain(std::iter::once(choice.as_str())).collect();
        self.selector(name, &texts)
    }

    /// What replicas of a Prometheus recorded twice, once. `expression` keeps all labels.
    fn once(&self, expression: String) -> String {
        if self.plan.replica_labels.is_empty() {
            return expression;
        }
        format!("max without ({}) ({expression})", self.plan.replica_labels.join(", "))
    }

    /// Half of the window, in whole minutes: in such steps a question is put at its begin, in its middle and at its end.
    fn half(&self) -> i64 {
        (self.plan.to - self.plan.from) / 2 / 60 * 60
    }

    fn rate(&self, selector: &str) -> String {
        self.once(format!("rate({selector}[{}])", span(self.plan.rate_window)))
    }

    fn increase(&self, selector: &str) -> String {
        self.once(format!("increase({selector}[{}])", span(self.plan.whole())))
    }

    /// A query whose first instant is `step` after the window's begin: it looks back over its step.
    fn looking_back(&mut self, role: &str, query: String, step: i64) {
        let step = step.min(self.plan.to - self.plan.from);
        self.push(role, query, self.plan.from + step, step);
    }

    /// A query of curves: from the window's begin to its end.
    fn curve(&mut self, role: &str, query: String, step: i64) {
        self.push(role, query, self.plan.from, step);
    }

    fn push(&mut self, role: &str, query: String, start: i64, step: i64) {
        let end = start + (self.plan.to - start).max(0) / step * step;
        self.queries.push(Query { file: format!("{role}.json"), query, start, end, step });
    }
}

/// A span as PromQL writes it.
fn span(seconds: i64) -> String {
    SimDuration::from_secs(seconds).to_string()
}

/// What tells whether the rest can be trusted: asked at the window's begin, middle and end.
fn checks(list: &mut Asking<'_>) {
    let half = list.half();
    let nodes = list.selector("kube_node_info", &[]);
    list.curve("clusters", format!("count by (cluster) ({nodes})"), half);
    let up = list.selector("up", &[]);
    let apart = "prometheus_replica, replica, __replica__";
    let once = list.once(up.clone());
    // Asked of what is left once the labels that the user names are taken together.
    list.curve("replicas", format!("count by ({apart}) ({once})"), half);
    families::queries(list);
    list.curve("scrapes", format!("min by (job) (count_over_time({up}[10m]))"), half);
    let (infos, phases) = (list.selector("kube_pod_info", &[]), list.selector("kube_pod_status_phase", &[]));
    let (infos, phases) = (list.once(infos), list.once(phases));
    // Without markers of staleness a pod's series from before it had a node lives on for five minutes beside the one after.
    let query = format!("count({infos}) - count(count by (namespace, pod) ({phases} == 1))");
    list.curve("stale", query, 300);
}

fn workloads(list: &mut Asking<'_>) {
    let owner = list.namespaced("kube_pod_owner", "namespace", &[]);
    let owners = [
        ("owners", owner, "namespace, exported_namespace, pod, exported_pod, owner_kind, owner_name"),
        (
            "replicaset_owners",
            list.namespaced("kube_replicaset_owner", "namespace", &[]),
            "namespace, exported_namespace, replicaset, owner_kind, owner_name",
        ),
        (
            "job_owners",
            list.namespaced("kube_job_owner", "namespace", &[]),
            "namespace, exported_namespace, job_name, owner_kind, owner_name",
        ),
    ];
    for (role, selector, by) in owners {
        list.looking_back(role, format!("group by ({by}) (present_over_time({selector}[1h]))"), HOUR);
    }
    // The pod's cgroup has no `container`, its sandbox no image: counted with the containers, all would be there twice.
    let item = ["container!=\"\"", "image!=\"\""];
    let cpu = list.namespaced("container_cpu_usage_seconds_total", "namespace", &item);
    let (rate, increase) = (list.rate(&cpu), list.increase(&cpu));
    list.curve("cpu_by_pod", format!("sum by (namespace, pod) ({rate})"), 300);
    list.looking_back("cpu_increase_by_pod", format!("sum by (namespace, pod) ({increase})"), DAY);
    let memory = list.namespaced("container_memory_working_set_bytes", "namespace", &item);
    let memory = list.once(memory);
    list.curve("memory_by_pod", format!("sum by (namespace, pod) ({memory})"), 300);
    let fine = list.plan.fine();
    for (role, metric, label) in [
        ("replicas_wanted", "kube_deployment_spec_replicas", "deployment"),
        ("replicas_ready", "kube_deployment_status_replicas_ready", "deployment"),
        ("statefulset_replicas_wanted", "kube_statefulset_replicas", "statefulset"),
        ("statefulset_replicas_ready", "kube_statefulset_status_replicas_ready", "statefulset"),
    ] {
        let selector = list.namespaced(metric, "namespace", &[]);
        list.curve(role, format!("max by (namespace, exported_namespace, {label}) ({selector})"), fine);
    }
    let hpa = "namespace, exported_namespace, horizontalpodautoscaler";
    for (role, metric, more) in [
        ("hpa", "kube_horizontalpodautoscaler_spec_target_metric", ", metric_name, metric_target_type"),
        ("hpa_min", "kube_horizontalpodautoscaler_spec_min_replicas", ""),
        ("hpa_max", "kube_horizontalpodautoscaler_spec_max_replicas", ""),
        ("hpa_target_of", "kube_horizontalpodautoscaler_info", ", scaletargetref_kind, scaletargetref_name"),
    ] {
        let selector = list.namespaced(metric, "namespace", &[]);
        list.looking_back(role, format!("max by ({hpa}{more}) (last_over_time({selector}[1h]))"), HOUR);
    }
}

/// The labels of nodes that say what they are, as kube-state-metrics writes them: in lower case, with `_` before what was a capital (2.20
/// `internal/store/utils.go`). OpenCost, which shows the same metric, leaves the capital.
const NODE_LABELS: &str = "label_node_kubernetes_io_instance_type, label_topology_kubernetes_io_zone, \
     label_kubernetes_io_arch, label_karpenter_sh_capacity_type, label_karpenter_sh_nodepool, \
     label_eks_amazonaws_com_nodegroup, label_eks_amazonaws_com_capacity_type, label_eks_amazonaws_com_capacityType";

fn nodes(list: &mut Asking<'_>) {
    let fine = list.plan.fine();
    let labels = list.selector("kube_node_labels", &[]);
    let once = list.once(labels.clone());
    list.curve("nodes", format!("sum by ({NODE_LABELS}) ({once})"), fine);
    list.looking_back("node_labels", format!("group by (node, {NODE_LABELS}) (last_over_time({labels}[1h]))"), HOUR);
    let offered = list.selector("karpenter_nodes_allocatable", &["resource_type=\"cpu\""]);
    let by = "instance_type, zone, capacity_type, nodepool, arch";
    // A scrape of each replica of Karpenter shows the same nodes.
    let each = format!("group by (node_name, {by}) ({offered})");
    list.curve("karpenter_nodes", format!("count by ({by}) ({each})"), fine);
    let seen = format!("group by (node_name, {by}) (last_over_time({offered}[1h]))");
    list.looking_back("karpenter_node_labels", seen, HOUR);
    let info = list.selector("kube_node_info", &[]);
    list.looking_back(
        "node_info",
        format!("group by (node, provider_id, kubelet_version) (present_over_time({info}[1h]))"),
        HOUR,
    );
    list.curve("node_present", format!("group by (node) ({info})"), fine);
    let created = list.selector("kube_node_created", &[]);
    list.looking_back("node_created", format!("max by (node) (last_over_time({created}[1h]))"), HOUR);
    let offers = list.selector("kube_node_status_allocatable", &["resource=~\"cpu|memory\""]);
    list.looking_back("node_allocatable", format!("max by (node, resource) (last_over_time({offers}[1h]))"), HOUR);
}

/// The labels that name a pod, also where a target's own took their place.
const POD: &str = "namespace, exported_namespace, pod, exported_pod";

fn pods(list: &mut Asking<'_>) {
    let fine = list.plan.fine();
    let pending = list.namespaced("kube_pod_status_phase", "namespace", &["phase=\"Pending\""]);
    let pending = list.once(pending);
    list.curve("pods_pending", format!("sum by (namespace, exported_namespace) ({pending})"), fine);
    let without_node = list.namespaced("kube_pod_status_unschedulable", "namespace", &[]);
    let without_node = list.once(without_node);
    list.curve("pods_unschedulable", format!("sum({without_node})"), fine);
    for (role, metric) in [
        ("pod_created", "kube_pod_created"),
        ("pod_scheduled", "kube_pod_status_scheduled_time"),
        ("pod_started", "kube_pod_container_state_started"),
        ("pod_ready", "kube_pod_status_ready_time"),
        ("pod_deleted", "kube_pod_deletion_timestamp"),
        ("pod_completed", "kube_pod_completion_time"),
    ] {
        let selector = list.namespaced(metric, "namespace", &[]);
        list.looking_back(role, format!("max by ({POD}) (last_over_time({selector}[1h]))"), HOUR);
    }
    // A pod that is deleted is gone before the next scrape more often than not, which would see its deletion.
    let seen = list.namespaced("kube_pod_info", "namespace", &[]);
    list.looking_back("pod_seen", format!("max by ({POD}) (last_over_time(timestamp({seen})[1h:1m]))"), HOUR);
    let info = list.namespaced("kube_pod_info", "namespace", &["node!=\"\""]);
    list.looking_back("pod_node", format!("group by ({POD}, node) (present_over_time({info}[1h]))"), HOUR);
    let requests = list.namespaced("kube_pod_container_resource_requests", "namespace", &["resource=~\"cpu|memory\""]);
    let requests = list.once(format!("last_over_time({requests}[1h])"));
    list.looking_back("pod_requests", format!("sum by ({POD}, resource) ({requests})"), HOUR);
}

/// A quantity that a cluster may have recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The name of the quantity.
    pub quantity: &'static str,
    /// What it tells.
    pub tells: &'static str,
    /// The questions that tell it; one with an answer is enough.
    pub roles: &'static [&'static str],
    /// How to have it.
    pub remedy: &'static str,
}

/// The helm value of kube-prometheus-stack without which kube-state-metrics exports no label of a node.
pub const LABELS_VALUE: &str = "kube-state-metrics.metricLabelsAllowlist: [\"nodes=[node.kubernetes.io/instance-type,\
topology.kubernetes.io/zone,kubernetes.io/arch,karpenter.sh/capacity-type,karpenter.sh/nodepool,eks.amazonaws.com/nodegroup,\
eks.amazonaws.com/capacityType]\"]";

const KUBE_STATE_METRICS: &str =
    "scrape kube-state-metrics (kube-prometheus-stack does), and see that --match and --namespace leave it in";
const CADVISOR: &str = "scrape the kubelet's /metrics/cadvisor (kube-prometheus-stack does)";
const OF_KARPENTER: &str = "set serviceMonitor.enabled: true in Karpenter's helm chart";

/// Everything that is looked for, in the order in which it is told.
pub const WANTED: [Wanted; 12] = [
    Wanted {
        quantity: "requests",
        tells: "the traffic of each workload",
        roles: &["requests"],
        remedy: "scrape what counts requests: the workloads themselves, Istio, Linkerd, the ingress controller, or an exporter of CloudWatch; without them load is given in cores",
    },
    Wanted {
        quantity: "cpu",
        tells: "the CPU that each workload uses",
        roles: &["cpu_by_pod", "cpu_by_workload"],
        remedy: CADVISOR,
    },
    Wanted {
        quantity: "memory",
        tells: "the memory that each workload holds",
        roles: &["memory_by_pod", "memory_by_workload"],
        remedy: CADVISOR,
    },
    Wanted { quantity: "owners", tells: "which workload a pod is of", roles: &["owners"], remedy: KUBE_STATE_METRICS },
    Wanted {
        quantity: "replicas",
        tells: "replicas wanted and ready",
        roles: &["replicas_wanted", "statefulset_replicas_wanted"],
        remedy: KUBE_STATE_METRICS,
    },
    Wanted {
        quantity: "autoscalers",
        tells: "limits and targets of HorizontalPodAutoscalers",
        roles: &["hpa", "hpa_max"],
        remedy: KUBE_STATE_METRICS,
    },
    Wanted {
        quantity: "node types",
        tells: "instance type, zone and capacity type of nodes",
        roles: &["nodes", "karpenter_nodes"],
        remedy: LABELS_VALUE,
    },
    Wanted {
        quantity: "nodes",
        tells: "when each node came and went",
        roles: &["node_created", "node_info"],
        remedy: KUBE_STATE_METRICS,
    },
    Wanted {
        quantity: "pods",
        tells: "when each pod was made, bound and Ready",
        roles: &["pod_created"],
        remedy: KUBE_STATE_METRICS,
    },
    Wanted {
        quantity: "pending",
        tells: "pods that wait",
        roles: &["pods_pending", "pods_unschedulable"],
        remedy: KUBE_STATE_METRICS,
    },
    Wanted {
        quantity: "launches",
        tells: "nodes that Karpenter launched and removed, and how long each stage of a launch takes",
        roles: &[
            "claims_created",
            "claims_created_v0_33",
            "claims_created_machines",
            "claim_stage_sum",
            "claim_conditions",
        ],
        remedy: OF_KARPENTER,
    },
    Wanted {
        quantity: "spot prices",
        tells: "Karpenter's view of prices",
        roles: &["spot_prices", "spot_prices_v0_29"],
        remedy: OF_KARPENTER,
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{FAMILIES_ROLE, Plan, WANTED};

    fn plan() -> Plan {
        Plan::of_window(1_791_849_600, 1_791_849_600 + 86_400).unwrap()
    }

    /// The selectors of a query: names of metrics with the text that follows to the closing brace.
    fn selectors(query: &str) -> Vec<String> {
        let metrics = ["kube_", "container_", "karpenter_", "operator_", "cluster_autoscaler_", "up{", "up["];
        let starts = query.match_indices(|c: char| c.is_ascii_lowercase()).map(|(at, _)| at).filter(|at| {
            let before = query[..*at].chars().next_back();
            let word = !before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
            word && metrics.iter().any(|prefix| query[*at..].starts_with(prefix))
        });
        starts
            .map(|at| {
                let end = query[at..].find(['}', ')', '[']).map_or(query.len(), |end| at + end + 1);
                query[at..end].to_owned()
            })
            .collect()
    }

    #[test]
    fn user_matcher_is_in_every_query_selector() {
        let plan = Plan { matchers: vec!["cluster=\"x\"".to_owned()], ..plan() };
        for query in plan.queries().queries {
            let selectors = selectors(&query.query);
            assert!(selectors.iter().all(|selector| selector.contains("cluster=\"x\"")), "{}", query.query);
            assert!(query.query.contains("cluster=\"x\""), "{}", query.query);
            assert!(query.file == "clusters.json" || !query.query.contains("by (cluster"), "{}", query.query);
        }
    }

    #[test]
    fn prometheus_replicas_count_once_in_sums() {
        let plan = Plan { replica_labels: vec!["prometheus_replica".to_owned()], ..plan() };
        // Whether a family is there at all is no sum, whatever its metrics are called.
        let sums = |query: &&super::Query| query.query.contains("sum") && query.role() != FAMILIES_ROLE;
        for query in plan.queries().queries.iter().filter(sums) {
            assert!(query.query.contains("max without (prometheus_replica) ("), "{}", query.query);
        }
    }

    #[test]
    fn every_query_has_unique_file_and_metric() {
        let list = plan().queries();
        let names: BTreeSet<&str> = list.queries.iter().map(|query| query.file.as_str()).collect();
        assert_eq!(names.len(), list.queries.len());
        let roles: BTreeSet<&str> = list.queries.iter().map(super::Query::role).collect();
        for wanted in WANTED {
            let asked = |role: &&str| {
                roles.iter().any(|this_role| this_role == role || this_role.starts_with(&format!("{role}_")))
            };
            assert!(wanted.roles.iter().any(asked), "{}", wanted.quantity);
        }
    }

    #[test]
    fn matchers_breaking_the_selector_are_rejected() {
        let with = |matcher: &str| Plan { matchers: vec![matcher.to_owned()], ..plan() }.check();
        assert!(with("cluster=\"x\"").is_ok() && with("cluster!~\"x|y\"").is_ok());
        assert!(with("cluster").is_err() && with("a=\"x\"} or up{b=\"\"").is_err() && with("=\"x\"").is_err());
        assert!(Plan { namespaces: vec!["a\"b".to_owned()], ..plan() }.check().is_err());
        assert!(Plan::of_window(60, 90).is_err() && Plan::of_window(30, 86_430).is_err());
    }
}

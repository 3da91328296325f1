//! Who counts requests: the workload itself, a mesh, an ingress controller. All are asked, and of each workload the first that has
//! data is taken: an ingress does not see what is called inside the cluster.
//!
//! Sources: OpenTelemetry semantic conventions 1.23 (HTTP metrics), istio.io "Istio standard metrics", linkerd.io "Proxy metrics",
//! ingress-nginx `docs/user-guide/monitoring.md`, doc.traefik.io "Metrics", envoyproxy.io "Cluster statistics"; names of clusters as Istio, Contour and
//! Envoy Gateway make them. Of load balancers: `balancer`.

mod balancer;

pub use self::balancer::{CHANGES, ROLE as BALANCER_ROLE, is_behind, period_of};

use super::{Asking, DAY, POD};

/// Whom the labels of a counter name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Served {
    /// The pod that serves: its owner is looked up.
    Pod,
    /// The workload, under these labels for namespace and name.
    Workload {
        /// The label with its namespace.
        namespace: &'static str,
        /// The label with its name.
        name: &'static str,
    },
    /// The Service in front, under these labels; the workload of the same name is taken to stand behind it.
    Service {
        /// The label with its namespace.
        namespace: &'static str,
        /// The label with its name.
        name: &'static str,
    },
    /// `NAMESPACE-NAME-PORT@kubernetes` in one label.
    TraefikService,
    /// What a controller of Envoy calls a cluster of endpoints, which names a Service or a route: `outbound|80||NAME.NAMESPACE.svc.cluster.local`,
    /// `NAMESPACE_NAME_80`, `httproute/NAMESPACE/NAME/rule/0`.
    EnvoyCluster,
    /// `targetgroup/k8s-NAMESPAC-SERVICE-HASH/ID`, as the AWS Load Balancer Controller names target groups, under the label of any exporter.
    TargetGroup,
}

/// A counter of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Producer {
    /// Its short name, which the role of its query ends with.
    pub name: &'static str,
    /// The counter.
    pub metric: &'static str,
    /// Matchers that keep it from counting a request twice.
    pub matchers: &'static [&'static str],
    /// Whom it names.
    pub served: Served,
    /// The labels that are kept.
    by: &'static str,
    /// The label with the namespace, where namespaces are chosen.
    namespace: &'static str,
}

const fn of_pod(name: &'static str, metric: &'static str) -> Producer {
    Producer { name, metric, matchers: &[], served: Served::Pod, by: POD, namespace: "namespace" }
}

const fn of_istio(name: &'static str, matchers: &'static [&'static str]) -> Producer {
    let served = Served::Workload { namespace: "destination_workload_namespace", name: "destination_workload" };
    let by = "destination_workload_namespace, destination_workload";
    Producer { name, metric: "istio_requests_total", matchers, served, by, namespace: "destination_workload_namespace" }
}

/// Who may count, in the order in which they are believed. Of Istio's two reporters one counts: both see each request, and a mesh
/// of gateways alone has only the second.
pub const PRODUCERS: [Producer; 12] = [
    of_pod("otel", "http_server_request_duration_seconds_count"),
    of_pod("spring", "http_server_requests_seconds_count"),
    of_pod("http", "http_requests_total"),
    of_pod("grpc", "grpc_server_handled_total"),
    of_pod("gin", "gin_requests_total"),
    of_istio("istio", &["reporter=\"destination\""]),
    Producer {
        name: "linkerd",
        metric: "request_total",
        matchers: &["direction=\"inbound\""],
        served: Served::Workload { namespace: "namespace", name: "deployment" },
        by: "namespace, exported_namespace, deployment",
        namespace: "namespace",
    },
    of_istio("istio_source", &["reporter=\"source\""]),
    Producer {
        name: "nginx",
        metric: "nginx_ingress_controller_requests",
        matchers: &[],
        served: Served::Service { namespace: "namespace", name: "service" },
        by: "namespace, exported_namespace, service, exported_service",
        namespace: "exported_namespace",
    },
    Producer {
        name: "traefik",
        metric: "traefik_service_requests_total",
        matchers: &[],
        served: Served::TraefikService,
        by: "service, exported_service",
        namespace: "",
    },
    Producer {
        name: "envoy",
        metric: "envoy_cluster_upstream_rq_total",
        matchers: &[],
        served: Served::EnvoyCluster,
        by: "envoy_cluster_name",
        namespace: "",
    },
    balancer::PRODUCER,
];

/// The producer of an answer with this role: what follows `requests_`, or, of an answer that was saved under another name, the one
/// whose labels its series have.
pub fn producer_of(suffix: &str, labels: &std::collections::BTreeMap<String, String>) -> Option<&'static Producer> {
    let named = PRODUCERS.iter().find(|producer| producer.name == suffix);
    named.or_else(|| {
        PRODUCERS.iter().find(|producer| match producer.served {
            Served::Workload { name, .. } => labels.contains_key(name),
            Served::Pod => labels.contains_key("pod"),
            Served::Service { .. } | Served::TraefikService | Served::EnvoyCluster | Served::TargetGroup => false,
        })
    })
}

pub(super) fn queries(list: &mut Asking<'_>) {
    let fine = list.plan.fine();
    for producer in PRODUCERS.iter().filter(|producer| producer.served != Served::TargetGroup) {
        let selector = if producer.namespace.is_empty() {
            list.selector(producer.metric, producer.matchers)
        } else {
            list.namespaced(producer.metric, producer.namespace, producer.matchers)
        };
        let (rate, increase) = (list.rate(&selector), list.increase(&selector));
        list.curve(&format!("requests_{}", producer.name), format!("sum by ({}) ({rate})", producer.by), fine);
        let role = format!("request_increase_{}", producer.name);
        list.looking_back(&role, format!("sum by ({}) ({increase})", producer.by), DAY);
    }
    balancer::queries(list);
}

//! Services, Ingresses and IngressClasses: what they say of load balancers, and whether calls stay in their zone.
//!
//! Source: Kubernetes 1.36, cloud-provider-aws (Services of type LoadBalancer: a Classic Load Balancer, or `nlb` by annotation); AWS Load
//! Balancer Controller v2.13 (`loadBalancerClass: service.k8s.aws/nlb`, Ingresses of its class `alb`, groups); EKS Auto Mode
//! (`eks.amazonaws.com/nlb`, controller `eks.amazonaws.com/alb`).
//!
//! What must not live here: which load balancers then stand (`load_balancers`).

use super::common::metadata;
use super::names::{SUBDOMAIN_MAX, is_label, is_qualified, shown};
use super::{BalancerMaker, Service};
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{Labels, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::Reader;
use nodecast_model::text::tree::{Node, NodeKind};

/// What a Service of type LoadBalancer says of its load balancer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BalancerRequest {
    /// `spec.loadBalancerClass`.
    pub class: Option<Symbol>,
    /// The annotation `service.beta.kubernetes.io/aws-load-balancer-type`.
    pub annotated: Option<Symbol>,
    /// Whether the Service is as a cluster keeps it, so that nobody adds to it when it is created.
    pub admitted: bool,
}

/// An Ingress, as far as a load balancer stands behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ingress {
    /// Namespace and name.
    pub name: ObjectName,
    /// `spec.ingressClassName`.
    pub class: Option<Symbol>,
    /// The annotation `kubernetes.io/ingress.class`.
    pub annotated: Option<Symbol>,
    /// Whether it is as a cluster keeps it, so that it gets no class when it is created.
    pub admitted: bool,
    /// Ingresses of one group share a load balancer.
    pub group: Option<Symbol>,
    /// The Services behind it.
    pub services: Vec<ObjectName>,
}

/// An IngressClass, as far as AWS makes load balancers for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IngressClass {
    /// Name.
    pub name: Symbol,
    /// Who makes an Application Load Balancer for its Ingresses; `None` if nobody does.
    pub maker: Option<BalancerMaker>,
    /// Whether Ingresses get it that are created without one.
    pub default: bool,
}

/// A Service: its selector, and what it calls for. kube-proxy serves no headless Service, so its routing has no effect there.
///
/// Source: Kubernetes 1.36 `pkg/proxy/util/utils.go`, `ShouldSkipService`.
///
/// # Errors
/// If the API server refuses its type or its class.
pub(super) fn service<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<Service, InputError> {
    let metadata = metadata(reader, object.get("metadata"))?;
    let spec = object.get("spec");
    let mut selector = Labels::new();
    if let Some(node) = spec.and_then(|spec| spec.get("selector")) {
        for entry in reader.entries(node, "selector")? {
            selector.set(entry.key.as_ref().into(), reader.symbol(&entry.value, &entry.key)?);
        }
    }
    let balancer = request(reader, object, &metadata.annotations)?;
    let near = ["service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"];
    let annotation = |key: &str| metadata.annotations.get(Symbol::new(key));
    let distribution = spec.and_then(|spec| spec.get("trafficDistribution")).and_then(Node::as_text);
    let is_near = near.iter().any(|key| annotation(key).is_some_and(|mode| mode.as_str().eq_ignore_ascii_case("auto")))
        || matches!(distribution, Some("PreferClose" | "PreferSameZone" | "PreferSameNode"));
    let is_headless = spec.and_then(|spec| spec.get("clusterIP")).and_then(Node::as_text) == Some("None");
    Ok(Service { name: metadata.name, selector, balancer, keeps_zone: is_near && !is_headless, is_headless })
}

/// The types of Services, and whether a load balancer stands before them.
const TYPES: &[(&str, bool)] =
    &[("ClusterIP", false), ("NodePort", false), ("LoadBalancer", true), ("ExternalName", false)];

/// What a Service of type LoadBalancer says of it; `None` of another one.
///
/// Source: Kubernetes 1.36 `pkg/apis/core/validation/validation.go`, `ValidateService` and `validateLoadBalancerClassField`.
fn request<'s>(
    reader: &Reader<'s>,
    object: &Node<'s>,
    annotations: &Labels,
) -> Result<Option<BalancerRequest>, InputError> {
    let stated = |key| stated(object.get("spec"), key);
    let is_balanced = stated("type").map(|node| reader.choice(node, "type", TYPES)).transpose()?.unwrap_or(false);
    let mut class = None;
    if let Some(node) = stated("loadBalancerClass") {
        let text = reader.text(node, "loadBalancerClass")?;
        if !is_balanced {
            return Err(reader
                .error(node.at, "`loadBalancerClass` is only valid for Services of type LoadBalancer")
                .because("the API server refuses it")
                .help("add `type: LoadBalancer`, or remove it"));
        }
        if !is_qualified(text) {
            return Err(reader
                .error(node.at, format!("`loadBalancerClass` cannot be `{}`", shown(text)))
                .because("not a qualified name")
                .help("write a name such as `service.k8s.aws/nlb`, or take it out"));
        }
        class = Some(Symbol::new(text));
    }
    let annotated = annotations.get(Symbol::new("service.beta.kubernetes.io/aws-load-balancer-type"));
    Ok(is_balanced.then(|| BalancerRequest { class, annotated, admitted: is_admitted(object) }))
}

/// What stands under a key of a spec, if anything does.
fn stated<'n, 's>(spec: Option<&'n Node<'s>>, key: &str) -> Option<&'n Node<'s>> {
    spec.and_then(|spec| spec.get(key)).filter(|node| node.kind != NodeKind::Null)
}

/// Whether a cluster keeps the object as it is written: the API server has given it its `uid`.
fn is_admitted(object: &Node<'_>) -> bool {
    object.get("metadata").and_then(|object| object.get("uid")).is_some()
}

/// An Ingress.
///
/// Source: Kubernetes 1.36 `pkg/apis/networking/validation/validation.go`, `ValidateIngressClassName`.
///
/// # Errors
/// If its class is no name of one.
pub(super) fn ingress<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<Ingress, InputError> {
    let metadata = metadata(reader, object.get("metadata"))?;
    let annotation = |key: &str| metadata.annotations.get(Symbol::new(key));
    let class = stated(object.get("spec"), "ingressClassName").map(|node| class_name(reader, node)).transpose()?;
    let mut names = Vec::new();
    if let Some(spec) = object.get("spec") {
        backends(spec, &mut names);
    }
    names.sort_unstable();
    names.dedup();
    let namespace = metadata.name.namespace;
    Ok(Ingress {
        name: metadata.name,
        class,
        annotated: annotation("kubernetes.io/ingress.class"),
        admitted: is_admitted(object),
        group: annotation("alb.ingress.kubernetes.io/group.name"),
        services: names.into_iter().map(|name| ObjectName { namespace, name: Symbol::new(name) }).collect(),
    })
}

/// The name of an IngressClass.
fn class_name<'s>(reader: &Reader<'s>, node: &Node<'s>) -> Result<Symbol, InputError> {
    let text = reader.text(node, "ingressClassName")?;
    if text.len() <= SUBDOMAIN_MAX && text.split('.').all(is_label) {
        return Ok(Symbol::new(text));
    }
    Err(reader
        .error(node.at, format!("`ingressClassName` cannot be `{}`", shown(text)))
        .because("not a DNS subdomain")
        .help(
            "write the name of an IngressClass: `alb` as the chart of the AWS Load Balancer Controller calls its own",
        ))
}

/// The Services that an Ingress's spec names: `backend.service.name`, and `serviceName` of older API versions.
fn backends<'n>(node: &'n Node<'_>, names: &mut Vec<&'n str>) {
    let of_backend = |backend: &'n Node<'_>| {
        let name = backend.get("service").and_then(|service| service.get("name"));
        name.or_else(|| backend.get("serviceName")).and_then(Node::as_text)
    };
    let mut take = |backend: Option<&'n Node<'_>>| names.extend(backend.and_then(of_backend));
    take(node.get("defaultBackend"));
    take(node.get("backend"));
    let rules = node.get("rules").map(Node::items).unwrap_or_default();
    let paths = rules.iter().filter_map(|rule| rule.get("http")?.get("paths")).flat_map(Node::items);
    for path in paths {
        take(path.get("backend"));
    }
}

/// An IngressClass.
pub(super) fn ingress_class<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<IngressClass, InputError> {
    let metadata = metadata(reader, object.get("metadata"))?;
    let controller = object.get("spec").and_then(|spec| spec.get("controller")).and_then(Node::as_text);
    let default = metadata.annotations.get(Symbol::new("ingressclass.kubernetes.io/is-default-class"));
    Ok(IngressClass {
        name: metadata.name.name,
        maker: match controller {
            Some("ingress.k8s.aws/alb") => Some(BalancerMaker::Controller),
            Some("eks.amazonaws.com/alb") => Some(BalancerMaker::AutoMode),
            _ => None,
        },
        default: default.is_some_and(|default| default.as_str() == "true"),
    })
}

#[cfg(test)]
mod tests {
    use crate::{LoadBalancer, read_manifests};
    use nodecast_model::domain::BalancerKind;
    use nodecast_model::domain::BalancerKind::{Application, Classic, Network};
    use nodecast_model::text::Source;

    fn called_for(text: &str) -> Vec<(BalancerKind, Vec<String>)> {
        let manifests = read_manifests(&Source::new("web.yaml", text)).unwrap();
        assert_eq!(manifests.warnings.len(), 0, "{:?}", manifests.warnings);
        let named =
            |balancer: LoadBalancer| (balancer.kind, balancer.services.iter().map(ToString::to_string).collect());
        manifests.load_balancers().into_iter().map(named).collect()
    }

    fn service(name: &str, more: &str) -> String {
        format!("---\napiVersion: v1\nkind: Service\nmetadata: {{ name: {name}{more}\n")
    }

    #[test]
    fn service_class_or_annotation_creates_load_balancer() {
        let annotated = "annotations: { service.beta.kubernetes.io/aws-load-balancer-type: external }";
        let text = [
            service("inside", " }\nspec: { type: ClusterIP }"),
            service("old", " }\nspec: { type: LoadBalancer }"),
            service("new", &format!(", {annotated} }}\nspec: {{ type: LoadBalancer }}")),
            service("classed", " }\nspec: { type: LoadBalancer, loadBalancerClass: service.k8s.aws/nlb }"),
            service("foreign", " }\nspec: { type: LoadBalancer, loadBalancerClass: tailscale }"),
        ]
        .concat();
        let names = |name: &str| vec![format!("default/{name}")];
        assert_eq!(called_for(&text), [(Classic, names("old")), (Network, names("new")), (Network, names("classed"))]);
        let controller = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: { name: aws-load-balancer-controller, namespace: kube-system }\n\
             spec: { selector: { matchLabels: { app: c } }, template: { metadata: { labels: { app: c } }, spec: { containers: [{ name: c }] } } }\n";
        assert_eq!(called_for(&(text + controller))[0].0, Network, "the controller takes Services without a class");
    }

    #[test]
    fn ingresses_of_a_group_share_one() {
        let ingress = |name: &str, annotations: &str, class: &str, service: &str| {
            format!(
                "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{ name: {name}, annotations: {{ {annotations} }} }}\n\
                 spec: {{ {class}rules: [{{ http: {{ paths: [{{ path: /, backend: {{ service: {{ name: {service} }} }} }}] }} }}] }}\n"
            )
        };
        let group = "alb.ingress.kubernetes.io/group.name: shop";
        let text = [
            ingress("a", group, "ingressClassName: alb, ", "web"),
            ingress("b", group, "ingressClassName: alb, ", "api"),
            ingress("c", "", "ingressClassName: nginx, ", "admin"),
            ingress("d", "kubernetes.io/ingress.class: alb", "", "docs"),
            ingress("e", "", "", "own"),
        ]
        .concat();
        let of = |names: &[&str]| names.iter().map(|name| format!("default/{name}")).collect::<Vec<_>>();
        assert_eq!(called_for(&text), [(Application, of(&["api", "web"])), (Application, of(&["docs"]))]);
        let class = "---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\n\
             metadata: { name: aws, annotations: { ingressclass.kubernetes.io/is-default-class: 'true' } }\n\
             spec: { controller: eks.amazonaws.com/alb }\n";
        assert_eq!(called_for(&(text + class)).last().unwrap().1, of(&["own"]));
    }

    #[test]
    fn what_the_api_server_refuses_is_an_error() {
        let ingress = |class: &str| {
            format!(
                "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{ name: a }}\nspec: {{ ingressClassName: {class} }}\n"
            )
        };
        for (text, said) in [
            (service("a", " }\nspec: { type: Loadbalancer }"), "unknown `type`: `Loadbalancer`"),
            (service("a", " }\nspec: { type: [LoadBalancer] }"), "`type` is text"),
            (
                service("a", " }\nspec: { type: NodePort, loadBalancerClass: a }"),
                "`loadBalancerClass` is only valid for",
            ),
            (
                service("a", " }\nspec: { type: LoadBalancer, loadBalancerClass: a b }"),
                "`loadBalancerClass` cannot be `a b`",
            ),
            (
                service("a", " }\nspec: { type: LoadBalancer, loadBalancerClass: {a: b} }"),
                "`loadBalancerClass` is text",
            ),
            (ingress("A_b"), "`ingressClassName` cannot be `A_b`"),
            (ingress("[alb]"), "`ingressClassName` is text"),
        ] {
            let error = read_manifests(&Source::new("web.yaml", text)).unwrap_err();
            assert!(error.to_string().contains(said) && error.place().is_some(), "{said}: {error}");
        }
        let bare = service("a", " }\nspec: { type: null, loadBalancerClass: null }");
        assert_eq!(called_for(&bare).len(), 0);
    }
}

//! Services and Ingresses: which load balancers they call for, and whether calls stay in their zone.
//!
//! Source: Kubernetes 1.36, cloud-provider-aws (Services of type LoadBalancer: a Classic Load Balancer, or `nlb` by annotation); AWS Load
//! Balancer Controller v2.13 (`loadBalancerClass: service.k8s.aws/nlb`, Ingresses of its class `alb`, groups); EKS Auto Mode
//! (`eks.amazonaws.com/nlb`, controller `eks.amazonaws.com/alb`).
//!
//! Nothing here is refused: what is written otherwise calls for no load balancer of AWS.

use std::collections::BTreeMap;

use super::Service;
use super::common::metadata;
use crate::domain::workload::ObjectName;
use crate::domain::{Labels, Symbol};
use crate::text::InputError;
use crate::text::reader::Reader;
use crate::text::tree::Node;

/// A kind of load balancer; they have their own prices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BalancerKind {
    /// An Application Load Balancer.
    Application,
    /// A Network Load Balancer.
    Network,
    /// A Classic Load Balancer.
    Classic,
}

/// An Ingress, as far as a load balancer stands behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ingress {
    /// Namespace and name.
    pub name: ObjectName,
    /// The class that it names, if it names one.
    pub class: Option<Symbol>,
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
    /// Whether an Application Load Balancer stands behind its Ingresses.
    pub balanced: bool,
    /// Whether it is meant where an Ingress names none.
    pub default: bool,
}

/// What calls for a load balancer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BalancerCaller {
    /// A Service of type LoadBalancer.
    Service(ObjectName),
    /// An Ingress without a group.
    Ingress(ObjectName),
    /// A group of Ingresses.
    Group(Symbol),
}

/// A load balancer that the manifests call for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadBalancer {
    /// What it is.
    pub kind: BalancerKind,
    /// What calls for it.
    pub caller: BalancerCaller,
    /// The Services behind it, in order.
    pub services: Vec<ObjectName>,
}

/// The load balancers that Services and Ingresses call for: one for each Service of type LoadBalancer, one for each group of
/// Ingresses and each Ingress without a group. `controlled` says whether the AWS Load Balancer Controller runs: it takes Services that name
/// no class, too.
///
/// Deviation: Gateways, and groups that an IngressClassParams states, are not looked at.
pub(super) fn called_for(
    services: &[Service],
    ingresses: &[Ingress],
    classes: &[IngressClass],
    controlled: bool,
) -> Vec<LoadBalancer> {
    let of_service = |service: &Service| {
        let kind = match service.balancer? {
            BalancerKind::Classic if controlled => BalancerKind::Network,
            kind => kind,
        };
        Some(LoadBalancer { kind, caller: BalancerCaller::Service(service.name), services: vec![service.name] })
    };
    let mut balancers: Vec<LoadBalancer> = services.iter().filter_map(of_service).collect();
    let mut groups: BTreeMap<Symbol, usize> = BTreeMap::new();
    for ingress in ingresses.iter().filter(|ingress| is_balanced(ingress, classes)) {
        let known = ingress.group.and_then(|group| groups.get(&group).copied());
        let place = known.unwrap_or_else(|| {
            let caller = ingress.group.map_or(BalancerCaller::Ingress(ingress.name), BalancerCaller::Group);
            balancers.push(LoadBalancer { kind: BalancerKind::Application, caller, services: Vec::new() });
            balancers.len() - 1
        });
        groups.extend(ingress.group.map(|group| (group, place)));
        let behind = &mut balancers[place].services;
        behind.extend(&ingress.services);
        behind.sort_unstable();
        behind.dedup();
    }
    balancers
}

/// Whether an Application Load Balancer stands behind an Ingress: by its class, or by that which is meant where it names none.
fn is_balanced(ingress: &Ingress, classes: &[IngressClass]) -> bool {
    match ingress.class {
        Some(name) => match classes.iter().find(|class| class.name == name) {
            Some(class) => class.balanced,
            None => name.as_str() == "alb",
        },
        None => classes.iter().any(|class| class.default && class.balanced),
    }
}

/// A Service: its selector, and what it calls for.
pub(super) fn service<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<Service, InputError> {
    let own = metadata(reader, object.get("metadata"))?;
    let spec = object.get("spec");
    let mut selector = Labels::new();
    if let Some(node) = spec.and_then(|spec| spec.get("selector")) {
        for entry in reader.entries(node, "selector")? {
            selector.set(entry.key.as_ref().into(), reader.symbol(&entry.value, &entry.key)?);
        }
    }
    let text = |key: &str| spec.and_then(|spec| spec.get(key)).and_then(Node::as_text);
    let annotation = |key: &str| own.annotations.get(Symbol::new(key));
    let balancer = (text("type") == Some("LoadBalancer")).then(|| kind_of(text("loadBalancerClass"), &own.annotations));
    let near = ["service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"];
    let keeps_zone =
        near.iter().any(|key| annotation(key).is_some_and(|mode| mode.as_str().eq_ignore_ascii_case("auto")))
            || matches!(text("trafficDistribution"), Some("PreferClose" | "PreferSameZone" | "PreferSameNode"));
    Ok(Service { name: own.name, selector, balancer: balancer.flatten(), keeps_zone })
}

/// What a Service of type LoadBalancer calls for; nothing of AWS where its class is another's.
fn kind_of(class: Option<&str>, annotations: &Labels) -> Option<BalancerKind> {
    let annotated = annotations.get(Symbol::new("service.beta.kubernetes.io/aws-load-balancer-type"));
    match (class, annotated.map(|kind| kind.as_str())) {
        (Some("service.k8s.aws/nlb" | "eks.amazonaws.com/nlb"), _) => Some(BalancerKind::Network),
        (Some(_), _) => None,
        (None, Some("nlb" | "nlb-ip" | "external")) => Some(BalancerKind::Network),
        (None, _) => Some(BalancerKind::Classic),
    }
}

/// An Ingress.
pub(super) fn ingress<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<Ingress, InputError> {
    let own = metadata(reader, object.get("metadata"))?;
    let annotation = |key: &str| own.annotations.get(Symbol::new(key));
    let class = object.get("spec").and_then(|spec| spec.get("ingressClassName")).and_then(Node::as_text);
    let mut names = Vec::new();
    if let Some(spec) = object.get("spec") {
        backends(spec, &mut names);
    }
    names.sort_unstable();
    names.dedup();
    let namespace = own.name.namespace;
    Ok(Ingress {
        name: own.name,
        class: class.map(Symbol::new).or_else(|| annotation("kubernetes.io/ingress.class")),
        group: annotation("alb.ingress.kubernetes.io/group.name"),
        services: names.into_iter().map(|name| ObjectName { namespace, name: Symbol::new(name) }).collect(),
    })
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
    let own = metadata(reader, object.get("metadata"))?;
    let controller = object.get("spec").and_then(|spec| spec.get("controller")).and_then(Node::as_text);
    let default = own.annotations.get(Symbol::new("ingressclass.kubernetes.io/is-default-class"));
    Ok(IngressClass {
        name: own.name.name,
        balanced: matches!(controller, Some("ingress.k8s.aws/alb" | "eks.amazonaws.com/alb")),
        default: default.is_some_and(|own| own.as_str() == "true"),
    })
}

#[cfg(test)]
mod tests {
    use super::BalancerKind::{Application, Classic, Network};
    use crate::manifests::read_manifests;
    use crate::text::Source;

    fn called_for(text: &str) -> Vec<(super::BalancerKind, Vec<String>)> {
        let manifests = read_manifests(&Source::new("web.yaml", text)).unwrap();
        assert_eq!(manifests.warnings.len(), 0, "{:?}", manifests.warnings);
        let named = |own: super::LoadBalancer| (own.kind, own.services.iter().map(ToString::to_string).collect());
        manifests.load_balancers().into_iter().map(named).collect()
    }

    fn service(name: &str, more: &str) -> String {
        format!("---\napiVersion: v1\nkind: Service\nmetadata: {{ name: {name}{more}\n")
    }

    #[test]
    fn a_service_calls_for_a_load_balancer_by_its_class_or_annotation() {
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
}

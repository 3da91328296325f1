//! Which load balancers stand behind Services and Ingresses, as these come, change and go.
//!
//! What one is, is decided when its Service or Ingress comes: the webhook of the AWS Load Balancer Controller and the admission plug-in for
//! the default class look at what is created, `spec.loadBalancerClass` cannot be changed, and nobody turns a load balancer that stands into
//! one of another kind.
//!
//! Source: Kubernetes 1.36 `pkg/apis/core/validation/validation.go`, `validateLoadBalancerClassField`, and
//! `plugin/pkg/admission/network/defaultingressclass/admission.go`; AWS Load Balancer Controller v2.13 `webhooks/core/service_mutator.go`,
//! `pkg/service/service_utils.go` and `pkg/ingress/group_loader.go`, `classifyIngress`; EKS user guide, `automode/auto-configure-nlb` (2026).
//!
//! What must not live here: how Services and Ingresses are written (`balancers`), what load balancers cost (`ec2`).

use std::collections::BTreeMap;

use super::{BalancerRequest, Ingress, Manifests, Service};
use nodecast_model::domain::which::ObjectKind;
use nodecast_model::domain::workload::{Deployment, ObjectName};
use nodecast_model::domain::{BalancerKind, Symbol};

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

/// Who makes a load balancer, and takes it away.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BalancerMaker {
    /// Kubernetes' controller of Services (cloud-provider-aws).
    CloudProvider,
    /// The AWS Load Balancer Controller.
    Controller,
    /// EKS Auto Mode.
    AutoMode,
}

/// A load balancer that Services or Ingresses call for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadBalancer {
    /// What it is.
    pub kind: BalancerKind,
    /// Who makes it.
    pub maker: BalancerMaker,
    /// What calls for it.
    pub caller: BalancerCaller,
    /// The Services behind it, in order.
    pub services: Vec<ObjectName>,
}

/// The class that the webhook of the AWS Load Balancer Controller writes into Services that are created without one.
const CONTROLLERS_CLASS: &str = "service.k8s.aws/nlb";

/// The class that Services get in a cluster with EKS Auto Mode that are created without one.
const AUTO_MODES_CLASS: &str = "eks.amazonaws.com/nlb";

/// What is made, and by whom.
type BalancerOrigin = (BalancerKind, BalancerMaker);

impl BalancerRequest {
    /// What is made for it; nothing of AWS where its class is another's.
    fn made(&self) -> Option<BalancerOrigin> {
        let annotated = self.annotated.map(|annotated| annotated.as_str());
        match (self.class.map(|class| class.as_str()), annotated) {
            (Some(CONTROLLERS_CLASS), _) => Some((BalancerKind::Network, BalancerMaker::Controller)),
            (Some(AUTO_MODES_CLASS), _) => Some((BalancerKind::Network, BalancerMaker::AutoMode)),
            (Some(_), _) => None,
            (None, Some("nlb-ip" | "external")) => Some((BalancerKind::Network, BalancerMaker::Controller)),
            (None, Some("nlb")) => Some((BalancerKind::Network, BalancerMaker::CloudProvider)),
            (None, _) => Some((BalancerKind::Classic, BalancerMaker::CloudProvider)),
        }
    }
}

/// A Service of type LoadBalancer as the API server keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LoadBalancerService {
    /// What was made for it.
    made: Option<BalancerOrigin>,
    /// Its class.
    class: Option<Symbol>,
    /// What its manifest said last.
    stated: BalancerRequest,
}

/// Whether the AWS Load Balancer Controller is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Controller {
    /// No manifest holds it: whoever names its classes has it all the same.
    #[default]
    Unknown,
    /// It runs.
    Runs,
    /// It was taken away.
    Gone,
}

/// The load balancers of a cluster, with what of its Services and Ingresses decides about those that come.
///
/// Deviation: Gateways, and groups that an IngressClassParams sets, are ignored.
#[derive(Clone, Debug, Default)]
pub struct StandingBalancers {
    auto_mode: bool,
    controller: Controller,
    /// The Services that are there; `None` for one of another type.
    services: BTreeMap<ObjectName, Option<LoadBalancerService>>,
    /// The Ingresses that are there, with the class that they were given when they came without one.
    ingresses: BTreeMap<ObjectName, Option<Symbol>>,
    /// The IngressClasses that are there, each with the number of the step in which it came.
    classes: BTreeMap<Symbol, usize>,
    steps: usize,
    standing: Vec<LoadBalancer>,
}

impl StandingBalancers {
    /// None yet, in a cluster with EKS Auto Mode or without.
    pub fn of_cluster(auto_mode: bool) -> Self {
        Self { auto_mode, ..Self::default() }
    }

    /// The load balancers that stand once the cluster holds `known`: one for each Service of type LoadBalancer, one for each group of
    /// Ingresses and each Ingress without a group. Without the controller none of its own come or go.
    pub fn follow(&mut self, known: &Manifests) -> Vec<LoadBalancer> {
        self.controller = match (known.deployments.iter().any(is_controller), self.controller) {
            (true, _) => Controller::Runs,
            (false, Controller::Unknown) => Controller::Unknown,
            (false, _) => Controller::Gone,
        };
        let mut now = self.of_services(&known.services);
        self.of_ingresses(known, &mut now);
        if self.controller == Controller::Gone {
            now.retain(|balancer| balancer.maker != BalancerMaker::Controller);
            now.extend(self.standing.iter().filter(|balancer| balancer.maker == BalancerMaker::Controller).cloned());
        }
        self.standing.clone_from(&now);
        now
    }

    /// Takes an object out of `known` that somebody deletes; whether it is of a kind that decides about load balancers. One of its name
    /// that comes again is another one.
    pub fn delete(&mut self, known: &mut Manifests, kind: ObjectKind, name: ObjectName) -> bool {
        match kind {
            ObjectKind::Deployment => known.deployments.retain(|deployment| deployment.name != name),
            ObjectKind::Service => {
                known.services.retain(|service| service.name != name);
                self.services.remove(&name);
            }
            ObjectKind::Ingress => {
                known.ingresses.retain(|ingress| ingress.name != name);
                self.ingresses.remove(&name);
            }
            _ => return false,
        }
        true
    }

    /// The class of a Service and the one that applying `newer` would give it, where the API server refuses that.
    pub fn refused_class(&self, newer: &Service) -> Option<(Option<Symbol>, Option<Symbol>)> {
        let kept = self.services.get(&newer.name)?.as_ref()?;
        let class = newer.balancer?.class;
        // What a manifest never said `kubectl apply` leaves as the webhook wrote it.
        let is_same = class == kept.class || (class.is_none() && kept.stated.class.is_none());
        (!is_same).then_some((kept.class, class))
    }

    /// Whether applying `newer` asks for another kind of load balancer than the one which stands, and stays.
    pub fn asks_in_vain(&self, newer: &Service) -> bool {
        let (Some(Some(kept)), Some(request)) = (self.services.get(&newer.name), newer.balancer) else { return false };
        let kind = |made: Option<BalancerOrigin>| made.map(|made| made.0);
        kept.stated.annotated != request.annotated && kind(request.made()) != kind(kept.made)
    }

    fn of_services(&mut self, services: &[Service]) -> Vec<LoadBalancer> {
        let before = std::mem::take(&mut self.services);
        let mut balancers = Vec::new();
        for service in services {
            let kept = service.balancer.map(|stated| match before.get(&service.name) {
                Some(Some(kept)) => LoadBalancerService { stated, ..*kept },
                // The webhook looks at what is created, and passes over what it has seen.
                Some(None) => LoadBalancerService { made: stated.made(), class: stated.class, stated },
                None => self.created(stated),
            });
            self.services.insert(service.name, kept);
            if let Some((kind, maker)) = kept.and_then(|balancer_service| balancer_service.made) {
                let caller = BalancerCaller::Service(service.name);
                balancers.push(LoadBalancer { kind, maker, caller, services: vec![service.name] });
            }
        }
        balancers
    }

    /// A Service that is created with this request.
    fn created(&self, stated: BalancerRequest) -> LoadBalancerService {
        let given = match self.controller {
            _ if stated.admitted => None,
            _ if self.auto_mode => Some(AUTO_MODES_CLASS),
            Controller::Runs => Some(CONTROLLERS_CLASS),
            Controller::Unknown | Controller::Gone => None,
        };
        let class = stated.class.or(given.map(Symbol::new));
        LoadBalancerService { made: BalancerRequest { class, ..stated }.made(), class, stated }
    }

    fn of_ingresses(&mut self, known: &Manifests, balancers: &mut Vec<LoadBalancer>) {
        self.steps += 1;
        let mut classes = std::mem::take(&mut self.classes);
        for class in &known.ingress_classes {
            self.classes.insert(class.name, classes.remove(&class.name).unwrap_or(self.steps));
        }
        let default = self.default_class(known);
        let before = std::mem::take(&mut self.ingresses);
        let mut groups: BTreeMap<(BalancerMaker, Symbol), usize> = BTreeMap::new();
        for ingress in &known.ingresses {
            let created = || default.filter(|_| !ingress.admitted);
            let given = before.get(&ingress.name).copied().unwrap_or_else(created);
            self.ingresses.insert(ingress.name, given);
            let Some(maker) = maker_of(ingress, given, known) else { continue };
            let standing = ingress.group.and_then(|group| groups.get(&(maker, group)).copied());
            let place = standing.unwrap_or_else(|| {
                let caller = ingress.group.map_or(BalancerCaller::Ingress(ingress.name), BalancerCaller::Group);
                balancers.push(LoadBalancer { kind: BalancerKind::Application, maker, caller, services: Vec::new() });
                balancers.len() - 1
            });
            groups.extend(ingress.group.map(|group| ((maker, group), place)));
            let behind = &mut balancers[place].services;
            behind.extend(&ingress.services);
            behind.sort_unstable();
            behind.dedup();
        }
    }

    /// The class that Ingresses get which are created without one: of several defaults the newest, of those the first by name.
    fn default_class(&self, known: &Manifests) -> Option<Symbol> {
        let defaults = known
            .ingress_classes
            .iter()
            .filter(|ingress_class| ingress_class.default)
            .map(|ingress_class| ingress_class.name);
        let age = |name: &Symbol| self.steps - self.classes.get(name).copied().unwrap_or(self.steps);
        defaults.min_by(|a, b| age(a).cmp(&age(b)).then_with(|| a.as_str().cmp(b.as_str())))
    }
}

/// Who makes an Application Load Balancer for an Ingress that was `given` a class if it stated none; `None` if nobody does. The
/// annotation comes before the class; a class that no manifest holds is the controller's if it is called as its chart calls it.
fn maker_of(ingress: &Ingress, given: Option<Symbol>, known: &Manifests) -> Option<BalancerMaker> {
    const CHARTS_CLASS: &str = "alb";
    let by_name = |name: Symbol| (name.as_str() == CHARTS_CLASS).then_some(BalancerMaker::Controller);
    if let Some(annotated) = ingress.annotated {
        return by_name(annotated);
    }
    let name = ingress.class.or(given)?;
    match known.ingress_classes.iter().find(|class| class.name == name) {
        Some(class) => class.maker,
        None => by_name(name),
    }
}

/// Whether a Deployment is the AWS Load Balancer Controller: by its name, by the label of its chart, or by its image.
///
/// Source: `helm/aws-load-balancer-controller/templates/_helpers.tpl` and `values.yaml` of v2.13.
fn is_controller(deployment: &Deployment) -> bool {
    const NAME: &str = "aws-load-balancer-controller";
    let is_image = |image: &str| {
        let image = image.split('@').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        image.split(':').next() == Some(NAME)
    };
    let labelled = deployment.template.labels.get(Symbol::new("app.kubernetes.io/name"));
    deployment.name.name.as_str() == NAME
        || labelled.is_some_and(|item| item.as_str() == NAME)
        || deployment.template.containers.iter().any(|container| is_image(&container.image))
}

impl Manifests {
    /// The load balancers that Services and Ingresses call for in a cluster that holds these objects.
    pub fn load_balancers(&self) -> Vec<LoadBalancer> {
        StandingBalancers::default().follow(self)
    }

    /// The objects that say which load balancers there are.
    #[must_use]
    pub fn in_front(&self) -> Self {
        Self {
            services: self.services.clone(),
            ingresses: self.ingresses.clone(),
            ingress_classes: self.ingress_classes.clone(),
            deployments: self.deployments.clone(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BalancerMaker, LoadBalancer, StandingBalancers};
    use crate::{Manifests, read_manifests};
    use nodecast_model::domain::BalancerKind::{self, Application, Classic, Network};
    use nodecast_model::domain::which::ObjectKind;
    use nodecast_model::text::Source;

    fn read(text: &str) -> Manifests {
        read_manifests(&Source::new("web.yaml", text)).unwrap()
    }

    fn service(name: &str, spec: &str) -> String {
        format!("---\napiVersion: v1\nkind: Service\nmetadata: {{ name: {name} }}\nspec: {{ {spec} }}\n")
    }

    fn annotated(name: &str, kind: &str) -> String {
        service(name, "type: LoadBalancer").replace(
            "metadata: { ",
            &format!("metadata: {{ annotations: {{ service.beta.kubernetes.io/aws-load-balancer-type: {kind} }}, "),
        )
    }

    fn ingress(name: &str, spec: &str) -> String {
        format!(
            "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{ name: {name} }}\nspec: {{ {spec} }}\n"
        )
    }

    fn class(name: &str, controller: &str) -> String {
        format!(
            "---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {{ name: {name}, annotations: {{ \
             ingressclass.kubernetes.io/is-default-class: 'true' }} }}\nspec: {{ controller: {controller} }}\n"
        )
    }

    fn controller(name: &str, label: &str, image: &str) -> String {
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{ name: {name} }}\nspec: {{ selector: {{ matchLabels: {{ \
             app.kubernetes.io/name: {label} }} }}, template: {{ metadata: {{ labels: {{ app.kubernetes.io/name: {label} }} }}, spec: {{ \
             containers: [{{ name: c, image: {image} }}] }} }} }}\n"
        )
    }

    fn lbc() -> String {
        controller("aws-load-balancer-controller", "lbc", "lbc")
    }

    /// The kinds that stand after each of some steps, each of which applies more.
    fn kinds(steps: &[&str]) -> Vec<Vec<BalancerKind>> {
        let (mut known, mut standing) = (Manifests::default(), StandingBalancers::default());
        let after = |step: &&str| {
            known.apply(read(step));
            standing.follow(&known).iter().map(|item| item.kind).collect()
        };
        steps.iter().map(after).collect()
    }

    const BALANCED: &str = "type: LoadBalancer";

    #[test]
    fn running_controller_takes_services_without_class() {
        let (old, new) = (service("old", BALANCED), service("new", BALANCED));
        assert_eq!(kinds(&[&old, &lbc(), &new]), [vec![Classic], vec![Classic], vec![Classic, Network]]);
        // One that was there as another type its webhook passes over.
        let inside = service("old", "type: ClusterIP") + &lbc();
        assert_eq!(kinds(&[&inside, &old]), [vec![], vec![Classic]]);
        // What a cluster keeps went past the webhook long ago.
        let dumped = old.replace("name: old", "name: old, uid: 1-2") + &lbc();
        assert_eq!(kinds(&[&dumped]), [vec![Classic]]);
    }

    #[test]
    fn auto_mode_takes_services_without_class() {
        let mut standing = StandingBalancers::of_cluster(true);
        let made = |balancer: &LoadBalancer| (balancer.kind, balancer.maker);
        let known = read(&(service("web", BALANCED) + &annotated("api", "nlb")));
        let auto = (Network, BalancerMaker::AutoMode);
        assert_eq!(standing.follow(&known).iter().map(made).collect::<Vec<_>>(), [auto, auto]);
        let kept = read(&service("web", BALANCED).replace("name: web", "name: web, uid: 1-2"));
        assert_eq!(StandingBalancers::of_cluster(true).follow(&kept)[0].kind, Classic, "it is older than Auto Mode");
    }

    #[test]
    fn existing_load_balancer_ignores_annotation_changes() {
        let steps = [annotated("web", "nlb"), service("web", BALANCED), annotated("web", "external")];
        assert_eq!(kinds(&[&steps[0], &steps[1], &steps[2]]), [[Network]; 3].map(Vec::from));
        let mut standing = StandingBalancers::default();
        standing.follow(&read(&steps[0]));
        assert!(standing.asks_in_vain(&read(&steps[1]).services[0]));
        assert!(!standing.asks_in_vain(&read(&steps[2]).services[0]), "it is a network one all the same");
        // As another type in between it is made anew.
        let between = service("web", "type: NodePort");
        assert_eq!(kinds(&[&steps[0], &between, &steps[1]]), [vec![Network], vec![], vec![Classic]]);
    }

    #[test]
    fn what_is_deleted_comes_again_as_another_one() {
        let (classic, network) = (service("web", BALANCED), annotated("web", "nlb"));
        let (mut known, mut standing) =
            (read(&(classic + &ingress("docs", "ingressClassName: alb"))), StandingBalancers::default());
        let kinds = |all: Vec<LoadBalancer>| all.iter().map(|item| item.kind).collect::<Vec<_>>();
        assert_eq!(kinds(standing.follow(&known)), [Classic, Application]);
        let (web, docs) = (known.services[0].name, known.ingresses[0].name);
        assert!(standing.delete(&mut known, ObjectKind::Service, web));
        known.apply(read(&network));
        assert_eq!(kinds(standing.follow(&known)), [Network, Application]);
        assert!(standing.delete(&mut known, ObjectKind::Ingress, docs));
        assert!(!standing.delete(&mut known, ObjectKind::Job, docs));
        assert_eq!(kinds(standing.follow(&known)), [Network]);
    }

    #[test]
    fn the_class_of_a_service_cannot_be_changed() {
        let classed = |class: &str| service("web", &format!("{BALANCED}, loadBalancerClass: {class}"));
        let refused = |first: &str, second: &str| {
            let mut standing = StandingBalancers::default();
            standing.follow(&read(first));
            let (from, to) = standing.refused_class(&read(second).services[0])?;
            Some((from.map(|item| item.as_str()), to.map(|item| item.as_str())))
        };
        let (nlb, other, none) = (classed("service.k8s.aws/nlb"), classed("tailscale"), service("web", BALANCED));
        assert_eq!(refused(&nlb, &other), Some((Some("service.k8s.aws/nlb"), Some("tailscale"))));
        assert_eq!(refused(&nlb, &none), Some((Some("service.k8s.aws/nlb"), None)));
        assert_eq!(refused(&none, &nlb), Some((None, Some("service.k8s.aws/nlb"))));
        // The webhook wrote it, so that a manifest may say it later, and need not.
        assert_eq!(refused(&(none.clone() + &lbc()), &nlb), None);
        assert_eq!(refused(&(none.clone() + &lbc()), &none), None);
        assert_eq!(refused(&nlb, &service("web", "type: ClusterIP")), None);
    }

    #[test]
    fn controller_is_recognised_by_label_or_image() {
        let web = service("web", BALANCED);
        let image = "public.ecr.aws/eks/aws-load-balancer-controller:v2.13.4@sha256:0";
        for controller in [controller("lbc", "aws-load-balancer-controller", "c"), controller("lbc", "lbc", image)] {
            assert_eq!(kinds(&[&(web.clone() + &controller)]), [[Network]], "{controller}");
        }
        assert_eq!(kinds(&[&(web + &controller("lbc", "lbc", "aws-load-balancer-controller-docs"))]), [[Classic]]);
    }

    #[test]
    fn missing_controller_freezes_its_load_balancers() {
        let text = service("web", BALANCED) + &ingress("docs", "ingressClassName: alb") + &lbc();
        let (mut known, mut standing) = (read(&text), StandingBalancers::default());
        let mut told =
            |known: &Manifests| -> Vec<BalancerKind> { standing.follow(known).iter().map(|item| item.kind).collect() };
        assert_eq!(told(&known), [Network, Application]);
        known.deployments.clear();
        known.services.clear();
        known.apply(read(&(ingress("more", "ingressClassName: alb") + &service("new", BALANCED))));
        assert_eq!(told(&known), [Classic, Network, Application]);
        known.apply(read(&lbc()));
        assert_eq!(told(&known), [Classic, Application, Application]);
    }

    #[test]
    fn ingress_gets_default_class_at_creation() {
        let (docs, alb) = (ingress("docs", ""), class("aws", "ingress.k8s.aws/alb"));
        assert_eq!(
            kinds(&[&docs, &alb]),
            [Vec::<BalancerKind>::new(), Vec::new()],
            "it came before there was a default"
        );
        assert_eq!(kinds(&[&alb, &docs, &docs]), [vec![], vec![Application], vec![Application]]);
        // Of several the first by name, or the newest; what has one keeps it.
        let nginx = class("nginx", "k8s.io/ingress-nginx");
        assert_eq!(kinds(&[&format!("{nginx}{alb}{docs}")]), [[Application]]);
        let other = ingress("other", "");
        assert_eq!(kinds(&[&(alb.clone() + &docs), &nginx, &other]), [[Application]; 3].map(Vec::from));
        // The annotation comes before the class, and names what the controller's flag names.
        let by_annotation = |value: &str| {
            let named = format!("name: docs, annotations: {{ kubernetes.io/ingress.class: {value} }}");
            ingress("docs", "ingressClassName: aws").replace("name: docs", &named)
        };
        assert_eq!(kinds(&[&(alb.clone() + &by_annotation("alb"))]), [[Application]]);
        assert_eq!(kinds(&[&(alb + &by_annotation("aws"))]), [Vec::<BalancerKind>::new()]);
        let auto = class("auto", "eks.amazonaws.com/alb");
        assert_eq!(kinds(&[&(auto + &docs)]), [[Application]]);
    }
}

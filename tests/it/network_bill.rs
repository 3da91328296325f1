//! What manifests and dates call for in the bill beside nodes: load balancers, extended support, public addresses.

use nodecast::report::Summary;
use nodecast::simulation::Outcome;

use crate::reserved_capacity::run_file;

const SERVICES: &str = "apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop, annotations: { service.kubernetes.io/topology-mode: Auto } }
spec: { type: LoadBalancer, loadBalancerClass: service.k8s.aws/nlb, selector: { app: web } }
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: docs, namespace: shop }
spec: { ingressClassName: alb, defaultBackend: { service: { name: docs } } }
---
apiVersion: eksctl.io/v1alpha5
kind: ClusterConfig
metadata: { name: shop, region: us-east-1 }
vpc: { nat: { gateway: Disable } }
managedNodeGroups:
  - { name: fixed, instanceType: m5.large, minSize: 2, desiredCapacity: 2, maxSize: 2, availabilityZones: [us-east-1a, us-east-1b] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: shop }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, resources: { requests: { cpu: 500m, memory: 512Mi } } }] }
";

/// Ten hours of two replicas that answer ten requests a second, on two nodes that are there from the start.
fn summary(start: &str, kubernetes: &str, more: &str) -> Summary {
    Summary::from_outcome(&outcome(start, kubernetes, more, ""))
}

/// The same, where `later.yaml` is there for the timeline.
fn outcome(start: &str, kubernetes: &str, more: &str, later: &str) -> Outcome {
    let scenario = format!(
        "name: shop\nregion: us-east-1\nstart: {start}\nduration: 10h\nversions: {{ kubernetes: \"{kubernetes}\" }}\n\
         cluster: {{ zones: [us-east-1a, us-east-1b] }}\nmanifests: [shop.yaml]\n\
         policies: [{{ name: fixed, autoscaler: none }}]\n\
         load:\n  - workload: shop/web\n    requests: {{ constant: 10 }}\n    service: {{ cpu_per_request: 5ms, concurrency: 10 }}\n{more}"
    );
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("shop.yaml"), SERVICES).unwrap();
    std::fs::write(directory.path().join("later.yaml"), later).unwrap();
    std::fs::write(directory.path().join("scenario.yaml"), scenario).unwrap();
    run_file(&directory.path().join("scenario.yaml"))
}

fn amount(summary: &Summary, item: &str) -> f64 {
    summary.cost.by_item.iter().filter(|part| part.name == item).map(|part| part.amount).sum()
}

#[test]
fn services_and_ingresses_create_billed_load_balancers() {
    let this_summary = summary("2026-06-10T00:00:00Z", "1.36", "");
    // Ten hours of one of each kind at 0.0225. Some 360,000 requests of 20 kB are 7.2 GB at 0.006; nothing is known of what the Ingress carries.
    assert!(
        (amount(&this_summary, "load balancers") - 0.45).abs() < 1e-9,
        "{}",
        amount(&this_summary, "load balancers")
    );
    let capacity = amount(&this_summary, "load balancer capacity units");
    assert!((capacity / 0.0432 - 1.0).abs() < 0.05, "{capacity}");
    let network = amount(&this_summary, "load balancers") + capacity;
    assert!((this_summary.cost.without_network.unwrap() - (this_summary.cost.total - network)).abs() < 1e-9);
    let without = summary("2026-06-10T00:00:00Z", "1.36", "ec2: { billing: { load_balancers: none } }\n");
    assert_eq!((amount(&without, "load balancers"), without.cost.without_network), (0.0, None));
    assert!((without.cost.total - this_summary.cost.without_network.unwrap()).abs() < 1e-9);
}

#[test]
fn timeline_load_balancer_is_billed_while_it_exists() {
    let costs = |later: &str| {
        let timeline = "timeline: [{ at: 4h, manifests: [later.yaml] }]\n";
        let outcome = outcome("2026-06-10T00:00:00Z", "1.36", timeline, later);
        let warnings = outcome.warnings.texts().join("\n");
        assert!(!warnings.contains("load balancer"), "{warnings}");
        let summary = Summary::from_outcome(&outcome);
        (amount(&summary, "load balancers"), amount(&summary, "load balancer capacity units"))
    };
    let object = |name: &str, spec: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{ name: {name}, namespace: shop }}\nspec: {{ {spec}selector: {{ app: web }} }}\n"
        )
    };
    // Beside the two of ten hours, 0.45, one of six hours; and beside the 0.0432 of all requests that of six tenths of them.
    let (hours, capacity) = costs(&object("api", "type: LoadBalancer, loadBalancerClass: service.k8s.aws/nlb, "));
    assert!((hours - 0.585).abs() < 1e-9, "{hours}");
    assert!((capacity / 0.069_12 - 1.0).abs() < 0.05, "{capacity}");
    // That of the Service goes after four hours, with four tenths of the requests.
    let (hours, capacity) = costs(&object("web", ""));
    assert!((hours - 0.315).abs() < 1e-9, "{hours}");
    assert!((capacity / 0.017_28 - 1.0).abs() < 0.05, "{capacity}");
}

#[test]
fn load_balancer_kind_is_fixed_at_creation() {
    let controller = "apiVersion: apps/v1
kind: Deployment
metadata: { name: aws-load-balancer-controller, namespace: kube-system }
spec: { replicas: 0, selector: { matchLabels: { app: c } }, template: { metadata: { labels: { app: c } }, spec: { containers: [{ name: c }] } } }
---
";
    let service = |annotations: &str, kind: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{ name: old, namespace: shop, annotations: {{ {annotations} }} }}\n\
             spec: {{ type: {kind}, selector: {{ app: other }} }}\n"
        )
    };
    let later = format!("{controller}{}", service("", "LoadBalancer"));
    let run = |timeline: &str| {
        let outcome = outcome("2026-06-10T00:00:00Z", "1.36", &format!("timeline: [{timeline}]\n"), &later);
        (amount(&Summary::from_outcome(&outcome), "load balancers"), outcome.warnings.texts().join("\n"))
    };
    // Beside the two of ten hours, 0.45, a network one of six hours: the controller is there as soon as the Service comes.
    let (hours, warnings) = run("{ at: 4h, manifests: [later.yaml] }");
    assert!((hours - 0.585).abs() < 1e-9, "{hours}");
    assert!(!warnings.contains("load balancer"), "{warnings}");
    // Deleted, it leaves those that stand, and takes part in nothing that comes.
    let (hours, _) = run("{ at: 4h, manifests: [later.yaml] }, \
         { at: 5h, delete: { kind: Deployment, name: kube-system/aws-load-balancer-controller } }");
    assert!((hours - 0.585).abs() < 1e-9, "{hours}");
    let directory = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    put("shop.yaml", &(SERVICES.to_owned() + "---\n" + &service("", "LoadBalancer")));
    put("nlb.yaml", &service("service.beta.kubernetes.io/aws-load-balancer-type: nlb", "LoadBalancer"));
    put("inside.yaml", &service("", "ClusterIP"));
    put("controller.yaml", controller);
    put("again.yaml", &service("", "LoadBalancer"));
    let costs = |timeline: &str| {
        put(
            "scenario.yaml",
            &format!(
                "name: shop\nregion: us-east-1\nduration: 10h\ncluster: {{ zones: [us-east-1a, us-east-1b] }}\nmanifests: [shop.yaml]\n\
                 policies: [{{ name: fixed, autoscaler: none }}]\ntimeline: [{timeline}]\n"
            ),
        );
        let outcome = run_file(&directory.path().join("scenario.yaml"));
        (amount(&Summary::from_outcome(&outcome), "load balancers"), outcome.warnings.texts().join("\n"))
    };
    // Two network ones, 0.45, and a classic one at 0.025, which neither an annotation nor the controller makes another.
    let (hours, warnings) = costs("{ at: 3h, manifests: [nlb.yaml] }, { at: 5h, manifests: [controller.yaml] }");
    assert!((hours - 0.7).abs() < 1e-9, "{hours}");
    assert!(warnings.contains("the Service shop/old keeps the kind of load balancer that it has"), "{warnings}");
    let (hours, warnings) = costs("{ at: 3h, manifests: [controller.yaml] }");
    assert!((hours - 0.7).abs() < 1e-9 && !warnings.contains("load balancer"), "{hours} {warnings}");
    // Deleted, the classic one and that of the Ingress go, four begun hours of each: six of 0.025 and of 0.0225 less.
    let (hours, warnings) = costs(
        "{ at: 4h, delete: { kind: Service, name: shop/old } }, { at: 3h30m, delete: { kind: Ingress, name: shop/docs } }, \
         { at: 5h, delete: { kind: Service, name: shop/old } }",
    );
    assert!((hours - 0.415).abs() < 1e-9, "{hours}");
    assert!(warnings.contains("there is no Service old to delete"), "{warnings}");
    // Deleted and made anew in one instant it may be another one.
    let (hours, _) = costs("{ at: 4h, delete: { kind: Service, name: shop/old } }, { at: 4h, manifests: [nlb.yaml] }");
    assert!((hours - 0.685).abs() < 1e-9, "{hours}");
    // Four hours are begun of three and a half; away and back in one instant it was never away.
    let (hours, _) = costs("{ at: 3h30m, manifests: [inside.yaml] }");
    assert!((hours - 0.55).abs() < 1e-9, "{hours}");
    let (hours, _) = costs("{ at: 3h30m, manifests: [inside.yaml] }, { at: 3h30m, manifests: [again.yaml] }");
    assert!((hours - 0.7).abs() < 1e-9, "{hours}");
}

#[test]
fn changing_load_balancer_class_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    put("shop.yaml", SERVICES);
    let (service, _) = SERVICES.split_once("---").unwrap();
    put("later.yaml", &service.replace("service.k8s.aws/nlb", "tailscale"));
    put(
        "scenario.yaml",
        "name: shop\nregion: us-east-1\nduration: 10h\ncluster: { zones: [us-east-1a, us-east-1b] }\nmanifests: [shop.yaml]\n\
         policies: [{ name: fixed, autoscaler: none }]\ntimeline: [{ at: 4h, manifests: [later.yaml] }]\n",
    );
    let error = nodecast::scenario::load(&directory.path().join("scenario.yaml")).unwrap_err();
    let said = "the Service shop/web cannot change its `loadBalancerClass` from `service.k8s.aws/nlb` to `tailscale`";
    assert!(error.to_string().contains(said), "{error}");
    let place = error.place().unwrap();
    assert!(place.file.ends_with("later.yaml") && place.line == 3, "{place:?}");
}

#[test]
fn extended_support_starts_by_date_until_upgrade() {
    // Standard support of 1.31 ended on 2025-11-26: five of the ten hours lie beyond.
    let across = summary("2025-11-25T19:00:00Z", "1.31", "");
    assert!((amount(&across, "extended support") - 2.5).abs() < 1e-9, "{}", amount(&across, "extended support"));
    assert!((amount(&across, "control plane") - 1.0).abs() < 1e-9);
    let upgraded = summary("2025-11-25T19:00:00Z", "1.31", "timeline: [{ at: 7h, upgrade_control_plane: \"1.32\" }]\n");
    assert!((amount(&upgraded, "extended support") - 1.0).abs() < 1e-9, "{}", amount(&upgraded, "extended support"));
    let stated = summary("2025-12-01T00:00:00Z", "1.31", "ec2: { billing: { control_plane: 0.1 } }\n");
    assert!(amount(&stated, "extended support").abs() < 1e-9);
}

#[test]
fn control_plane_price_without_surcharge_is_warned_about() {
    let said = |start: &str, price: &str| {
        let billing = format!("ec2: {{ billing: {{ control_plane: {price} }} }}\n");
        let texts = outcome(start, "1.31", &billing, "").warnings.texts();
        texts.into_iter().filter(|text| text.contains("extended support")).collect::<Vec<_>>()
    };
    let list_price = said("2025-12-01T00:00:00Z", "0.1");
    assert_eq!(list_price.len(), 1, "{list_price:?}");
    assert!(list_price[0].contains("is set to 0.1/h") && list_price[0].contains("0.5/h more"), "{list_price:?}");
    assert_eq!(said("2025-12-01T00:00:00Z", "0.6"), Vec::<String>::new(), "the surcharge is in it");
    assert_eq!(said("2025-12-01T00:00:00Z", "0"), Vec::<String>::new(), "it is left out on purpose");
    assert_eq!(said("2025-10-01T00:00:00Z", "0.1"), Vec::<String>::new(), "standard support has not ended");
}

#[test]
fn windows_node_group_has_larger_root_volume() {
    let group = |family: &str| {
        let more = format!("nodeGroups: [{{ name: more, instanceType: m5.large, desired: 1{family} }}]\n");
        amount(&summary("2026-03-01T00:00:00Z", "1.36", &more), "root volume")
    };
    // Ten hours of 50 GiB and of 20 GiB at 0.08 a month.
    let more = (group(", amiFamily: WindowsServer2022CoreContainer") - group("")) * 730.0;
    assert!((more - 30.0 * 0.08 * 10.0).abs() < 1e-3, "{more}");
    let stated = (group(", amiFamily: WindowsServer2022CoreContainer, volumeSize: 100") - group("")) * 730.0;
    assert!((stated - 80.0 * 0.08 * 10.0).abs() < 1e-3, "{stated}");
}

#[test]
fn public_subnet_nodes_pay_for_addresses() {
    let subnets = "ec2:\n  network: { subnets: [{ zone: us-east-1a, cidr: 10.0.0.0/20, public: true }, { zone: us-east-1b, cidr: 10.0.16.0/20 }] }\n  \
                   billing: { cross_zone: {} }\n";
    let summary = summary("2026-06-10T00:00:00Z", "1.36", subnets);
    let node = 0.005 * 10.0;
    assert!(
        (amount(&summary, "public IPv4") - node).abs() < 1e-6,
        "one of two nodes: {}",
        amount(&summary, "public IPv4")
    );
    assert!(amount(&summary, "cross-zone transfer").abs() < 1e-9, "its Service keeps calls near");
}

#[test]
fn china_bills_set_prices_and_warns_of_others() {
    let scenario = |billing: &str| {
        let directory = tempfile::tempdir().unwrap();
        let text = format!(
            "name: shop\nregion: cn-north-1\nduration: 10h\nstart: 2026-03-01T00:00:00Z\nversions: {{ kubernetes: \"1.36\" }}\n\
             cluster: {{ zones: [cn-north-1a] }}\nnodeGroups: [{{ name: fixed, instanceType: m5.large, desired: 2 }}]\n\
             ec2: {{ billing: {{ {billing} }} }}\npolicies: [{{ name: fixed, autoscaler: none }}]\n"
        );
        std::fs::write(directory.path().join("scenario.yaml"), text).unwrap();
        run_file(&directory.path().join("scenario.yaml"))
    };
    let said = |outcome: &Outcome| {
        let texts = outcome.warnings.texts();
        texts.into_iter().filter(|text| text.contains("no AWS prices known in")).collect::<Vec<_>>()
    };
    let stated = scenario("control_plane: 0.7, public_ipv4: 0.03, volume_per_month: 0.73");
    let summary = Summary::from_outcome(&stated);
    for (item, expected) in [("control plane", 7.0), ("public IPv4", 0.6), ("root volume", 0.4)] {
        assert!((amount(&summary, item) - expected).abs() < 1e-6, "{item}: {}", amount(&summary, item));
    }
    assert_eq!(said(&stated), Vec::<String>::new());
    let none = said(&scenario("spot_price: integrated"));
    assert_eq!(none.len(), 1, "{none:?}");
    assert!(
        none[0].contains("root volume (`ec2.billing.volume_per_month`), control plane (`ec2.billing.control_plane`)."),
        "{none:?}"
    );
}

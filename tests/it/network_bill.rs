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
    Summary::of(&outcome(start, kubernetes, more, ""))
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
fn services_and_ingresses_call_for_load_balancers_that_carry_their_requests() {
    let own = summary("2026-06-10T00:00:00Z", "1.36", "");
    // Ten hours of one of each kind at 0.0225. Some 360,000 requests of 20 kB are 7.2 GB at 0.006; nothing is known of what the Ingress carries.
    assert!((amount(&own, "load balancers") - 0.45).abs() < 1e-9, "{}", amount(&own, "load balancers"));
    let capacity = amount(&own, "load balancer capacity units");
    assert!((capacity / 0.0432 - 1.0).abs() < 0.05, "{capacity}");
    let network = amount(&own, "load balancers") + capacity;
    assert!((own.cost.without_network.unwrap() - (own.cost.total - network)).abs() < 1e-9);
    let without = summary("2026-06-10T00:00:00Z", "1.36", "ec2: { billing: { load_balancers: none } }\n");
    assert_eq!((amount(&without, "load balancers"), without.cost.without_network), (0.0, None));
    assert!((without.cost.total - own.cost.without_network.unwrap()).abs() < 1e-9);
}

#[test]
fn a_load_balancer_that_a_timeline_brings_or_takes_away_is_billed_while_it_is_there() {
    let costs = |later: &str| {
        let timeline = "timeline: [{ at: 4h, manifests: [later.yaml] }]\n";
        let outcome = outcome("2026-06-10T00:00:00Z", "1.36", timeline, later);
        let warnings = outcome.warnings.texts().join("\n");
        assert!(!warnings.contains("load balancer"), "{warnings}");
        let own = Summary::of(&outcome);
        (amount(&own, "load balancers"), amount(&own, "load balancer capacity units"))
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
fn extended_support_begins_on_the_day_of_the_calendar_and_ends_with_an_upgrade() {
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
fn nodes_of_public_subnets_pay_for_their_addresses_and_near_calls_do_not_leave_their_zone() {
    let subnets = "ec2:\n  network: { subnets: [{ zone: us-east-1a, cidr: 10.0.0.0/20, public: true }, { zone: us-east-1b, cidr: 10.0.16.0/20 }] }\n  \
                   billing: { cross_zone: {} }\n";
    let own = summary("2026-06-10T00:00:00Z", "1.36", subnets);
    let node = 0.005 * 10.0;
    assert!((amount(&own, "public IPv4") - node).abs() < 1e-6, "one of two nodes: {}", amount(&own, "public IPv4"));
    assert!(amount(&own, "cross-zone transfer").abs() < 1e-9, "its Service keeps calls near");
}

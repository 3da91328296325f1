//! NodeOverlays in a running simulation: what Karpenter believes decides, and what EC2 asks is billed.

use nodecast::catalog::Catalog;
use nodecast::simulation::{Outcome, resolve, run};

use crate::cli::Place;
use crate::pool_changes::{deployment, pool};

/// An overlay over one family, with these lines of its spec.
fn overlay(name: &str, family: &str, spec: &str) -> String {
    format!(
        "---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {{name: {name}}}
spec:
  requirements:
    - {{key: karpenter.k8s.aws/instance-family, operator: In, values: [{family}]}}
  {spec}
"
    )
}

fn place(manifests: &str, later: Option<&str>, settings: &str) -> Place {
    let place = Place::new();
    let class = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
";
    place.put("cluster.yaml", &(class.to_owned() + manifests));
    let mut timeline = String::new();
    if let Some(later) = later {
        place.put("later.yaml", later);
        timeline.push_str("timeline:\n  - { at: 1h, manifests: [later.yaml] }\n");
    }
    let head = "name: overlays\nregion: us-east-1\nduration: 2h\nmanifests: [cluster.yaml]\n";
    place.put("scenario.yaml", &format!("{head}{settings}\n{timeline}"));
    place
}

const GATE: &str = "karpenter: { feature_gates: { node_overlay: true } }";

fn simulate(manifests: &str, later: Option<&str>, settings: &str) -> Outcome {
    let place = place(manifests, later, settings);
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
}

fn warnings(manifests: &str, settings: &str) -> Vec<String> {
    let place = place(manifests, None, settings);
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    resolve(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1).unwrap().warnings.texts()
}

fn families(outcome: &Outcome) -> Vec<&str> {
    let kinds = outcome.record.nodes.iter().filter_map(|node| node.instance_type);
    let mut families: Vec<&str> = kinds.filter_map(|kind| kind.as_str().split('.').next()).collect();
    families.sort_unstable();
    families.dedup();
    families
}

/// Twelve pods on nodes of m5 or m6i, of which both cost 0.192 an hour.
fn shop() -> String {
    pool("general", "m5, m6i", "100%") + &deployment("web", 12, "general")
}

#[test]
fn overlay_decides_family_but_not_bill() {
    for (cheap, dear) in [("m5", "m6i"), ("m6i", "m5")] {
        let outcome = simulate(&(shop() + &overlay("like", cheap, "priceAdjustment: \"-30%\"")), None, GATE);
        assert_eq!(families(&outcome), [cheap], "not {dear}");
        // Each life at 0.192 an hour, whatever Karpenter believes.
        let rates: Vec<String> = outcome.record.nodes.iter().map(|node| node.rate.to_string()).collect();
        assert!(!rates.is_empty() && rates.iter().all(|rate| rate.starts_with("0.192")), "{rates:?}");
    }
}

/// Capacity types of the nodes that a release launches for pods of a pool of both, where Spot costs 0.12 an hour.
fn capacity_types(release: &str, overlay: &str) -> Vec<&'static str> {
    let both = pool("general", "m5, m6i", "100%").replace("[on-demand]", "[spot, on-demand]");
    let settings = format!(
        "start: 2026-04-01T00:00:00Z
versions: {{ karpenter: {release} }}
cluster: {{ zones: [us-east-1a, us-east-1b] }}
{GATE}
ec2:
  failures: none
  capacity: infinite
  spot: {{ prices: replay, file: spot.csv, interruptions: none }}"
    );
    let place = place(&(both + &deployment("web", 3, "general") + overlay), None, &settings);
    let mut prices = "instance_type,zone,time,price\n".to_owned();
    for pool in ["m5.xlarge,us-east-1a", "m5.xlarge,us-east-1b", "m6i.xlarge,us-east-1a", "m6i.xlarge,us-east-1b"] {
        prices += &format!("{pool},2026-03-31T00:00:00Z,0.12\n");
    }
    place.put("spot.csv", &prices);
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    let outcome = run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap();
    let launched = outcome.record.nodes.iter().filter(|node| node.launched.is_some());
    let mut types: Vec<&str> = launched.filter_map(|node| node.capacity_type).map(|kind| kind.as_str()).collect();
    types.dedup();
    types
}

#[test]
fn discount_below_spot_blocks_launches_until_v1_8() {
    let discount = |percent: u32| {
        format!(
            "---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {{name: plan}}
spec:
  requirements: [{{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}]
  priceAdjustment: \"-{percent}%\"
"
        )
    };
    // On-Demand costs 0.192: 0.106 with the first discount, 0.173 with the second.
    for (release, percent, expected) in [
        ("v1.7", 45, &[][..]),
        ("v1.8", 45, &[]),
        ("v1.9", 45, &["on-demand"]),
        ("v1.13", 45, &["on-demand"]),
        ("v1.8", 10, &["spot"]),
    ] {
        assert_eq!(capacity_types(release, &discount(percent)), expected, "{release}, {percent}%");
    }
}

#[test]
fn overlay_resources_allow_otherwise_unschedulable_pods() {
    let fuse = deployment("fuse", 4, "general").replace("memory: 1Gi}", "memory: 1Gi, smarter-devices/fuse: \"1\"}");
    let manifests = shop() + &fuse;
    let without = simulate(&manifests, None, GATE);
    let waiting = |outcome: &Outcome| {
        outcome.record.pods.iter().filter(|pod| pod.name.starts_with("fuse-") && pod.scheduled.is_none()).count()
    };
    assert_eq!(waiting(&without), 4);
    let with = simulate(&(manifests + &overlay("fuse", "m6i", "capacity: {smarter-devices/fuse: 2}")), None, GATE);
    assert_eq!(waiting(&with), 0);
    let on_m6i = with
        .record
        .nodes
        .iter()
        .filter(|node| node.instance_type.is_some_and(|instance_type| instance_type.as_str().starts_with("m6i")));
    assert!(on_m6i.count() >= 2, "two of them share a node");
}

#[test]
fn overlay_without_gate_or_release_is_ignored() {
    let manifests = shop() + &overlay("like", "m6i", "priceAdjustment: \"-30%\"");
    let plain = simulate(&shop(), None, "");
    for (settings, said) in [
        ("", "feature gate `node_overlay` is off"),
        (
            "versions: { karpenter: v1.6 }\nkarpenter: { feature_gates: { node_overlay: true } }",
            "does not know NodeOverlays",
        ),
    ] {
        let told = warnings(&manifests, settings);
        assert!(told.iter().any(|item| item.contains(said)), "{told:?}");
    }
    assert_eq!(families(&simulate(&manifests, None, "")), families(&plain));
}

#[test]
fn conflicts_and_overlays_that_select_nothing_are_told() {
    let manifests = shop()
        + &overlay("a", "m6i", "price: \"0.1\"")
        + &overlay("b", "m6i", "price: \"0.2\"")
        + &overlay("c", "x9z", "price: \"0.2\"");
    let told = warnings(&manifests, GATE);
    assert!(told.iter().any(|item| item.starts_with("NodeOverlay a is not ready (`Conflict`)")), "{told:?}");
    assert!(told.iter().any(|item| item.starts_with("NodeOverlay c selects no instance type")), "{told:?}");
    assert!(!told.iter().any(|item| item.starts_with("NodeOverlay b")), "{told:?}");
}

#[test]
fn later_overlay_makes_consolidation_replace_nodes() {
    let later =
        overlay("dislike", "m5", "priceAdjustment: \"+60%\"") + &overlay("like", "m6i", "priceAdjustment: \"-40%\"");
    let manifests = pool("general", "m5", "100%") + &deployment("web", 3, "general");
    let both = manifests.replace("values: [m5]", "values: [m5, m6i]");
    let early = overlay("dislike", "m6i", "priceAdjustment: \"+60%\"");
    let outcome =
        simulate(&(both + &early), Some(&(later + &overlay("dislike", "m5", "priceAdjustment: \"+60%\""))), GATE);
    assert_eq!(families(&outcome), ["m5", "m6i"]);
    let left = outcome.record.nodes.iter().filter(|node| node.terminating.is_none());
    assert!(
        left.clone().count() > 0 && left.clone().all(|node| node.instance_type.unwrap().as_str().starts_with("m6i"))
    );
}

#[test]
fn invalid_overlay_is_error_with_place() {
    for (spec, said) in [
        ("price: \"1\"\n  priceAdjustment: \"+1\"", "both `price` and `priceAdjustment`"),
        ("priceAdjustment: \"10%\"", "`priceAdjustment` cannot be `10%`"),
        ("capacity: {cpu: 3}", "cannot state `cpu`"),
        ("weight: 0", "weight"),
    ] {
        let place = place(&(shop() + &overlay("x", "m5", spec)), None, GATE);
        let error = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

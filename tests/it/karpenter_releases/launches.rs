//! What neighbouring releases wait for before they launch, what they ask for, and what they learn from the answers.

use nodecast::catalog::Catalog;
use nodecast::domain::symbol::well_known;
use nodecast::domain::{NodeClass, NodePool, Requirement, Requirements, Resources};
use nodecast::simulation::Outcome;
use nodecast::world::record::{EventKind, NodeEnd};
use nodecast_karpenter::instance_types::{ProviderSettings, instance_types};
use nodecast_karpenter::packing::MinValuesPolicy;
use nodecast_karpenter::selection::{Choice, LaunchView, select};
use serde_json::json;

use super::release;
use crate::cli::Place;
use crate::disruption_cases::story::{Story, of_types, plain, pod};
use crate::pool_changes::{deployment, pool};
use crate::reserved_capacity::run_file;

pub const ROWS: &[&str] = &["P7", "P8", "P12", "P15", "I7", "I8", "I10", "L7"];

#[test]
fn create_fleet_gets_sixty_types_in_most_releases() {
    let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
    let on_demand: Requirements =
        [Requirement::equals(well_known::CAPACITY_TYPE, well_known::ON_DEMAND)].into_iter().collect();
    let requests = Resources::cpu_memory(1_000, 1 << 30);
    for (karpenter, asked) in [("v0.34", 60), ("v0.35", 80), ("v0.36", 80), ("v0.37", 60), ("v1.13", 60)] {
        let version = release(karpenter);
        let (class, pool) = (NodeClass::named("default"), NodePool::named("default"));
        let types = instance_types(&region, &class, &pool, ProviderSettings::for_version(version));
        let common = |name: &str| {
            ["m5", "c5", "r5", "m6i", "c6i", "r6i"].iter().any(|text| name.starts_with(text)) && !name.contains("metal")
        };
        let fitting = types.iter().filter(|kind| common(kind.name.as_str()) && requests.fits(&kind.allocatable));
        let choices: Vec<Choice<'_>> = fitting.take(80).map(|item| Choice::new(item, &on_demand)).collect();
        assert_eq!(choices.len(), 80);
        let view = LaunchView {
            karpenter: version,
            requirements: &on_demand,
            requests: &requests,
            types: &choices,
            min_values: MinValuesPolicy::Strict,
        };
        let mut names: Vec<_> = select(&view).unwrap().overrides.iter().map(|select| select.instance_type).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), asked, "{karpenter}");
    }
}

#[test]
fn repeated_pod_trigger_extends_window_to_v1_1() {
    for (karpenter, least, most) in [("v1.1", 55.0, 75.0), ("v1.2", 12.0, 25.0)] {
        let told = Story::calm()
            .release(karpenter)
            .option("batchIdleSeconds", 12.into())
            .option("batchMaxSeconds", 60.into())
            .pool(json!({"template": {"spec": {"requirements": of_types(&["s-2"])}}}))
            .run(0.25, "huge", 1, plain("100"))
            .run(1.25, "web", 1, plain("1"))
            .until(120.0);
        let asked = crate::disruption_cases::story::time(told.node(1).requested).parse::<f64>().unwrap();
        assert!((least..most).contains(&asked), "{karpenter}: {asked}");
    }
}

#[test]
fn preferences_can_be_ignored_from_v1_4() {
    let large = json!({"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["s-8"]});
    let prefers = json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
        [{"weight": 1, "preference": {"matchExpressions": [large]}}]}}});
    for (karpenter, policy, kind) in
        [("v1.3", "Ignore", "s-8"), ("v1.4", "Ignore", "s-2"), ("v1.4", "Respect", "s-8"), ("v1.13", "Ignore", "s-2")]
    {
        let told = Story::calm()
            .release(karpenter)
            .option("preferencePolicy", policy.into())
            .run(0.25, "web", 1, pod("1", prefers.clone()))
            .until(60.0);
        assert_eq!(told.node(1).instance_type.unwrap().as_str(), kind, "{karpenter} {policy}");
    }
}

/// What comes of the scenario with such lines, under a release.
fn run(karpenter: &str, manifests: &str, lines: &str) -> Outcome {
    let place = Place::new();
    place.put("cluster.yaml", manifests);
    place.put(
        "scenario.yaml",
        &format!(
            "name: launches\nregion: us-east-1\nduration: 1h\nversions: {{ karpenter: {karpenter} }}\nmanifests: [cluster.yaml]\n{lines}"
        ),
    );
    run_file(&place.path("scenario.yaml"))
}

fn class(more: &str) -> String {
    format!(
        "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default}}\n\
         spec: {{amiSelectorTerms: [{{alias: al2023@latest}}], role: nodes{more}}}\n"
    )
}

#[test]
fn reservations_are_used_from_v1_6_on() {
    let reserved = "cluster: { zones: [us-east-1a] }\nec2:\n  failures: none\n  capacity_reservations: [{ id: cr-web, type: m5.xlarge, zone: us-east-1a, count: 4, match: targeted, tags: { team: web } }]\n";
    let manifests = class(", capacityReservationSelectorTerms: [{tags: {team: web}}]")
        + &pool("general", "m5", "0").replace("[on-demand]", "[reserved, on-demand]")
        + &deployment("web", 2, "general").replace("cpu: 900m", "cpu: 3");
    for (karpenter, used) in [("v1.5", false), ("v1.6", true)] {
        let outcome = run(karpenter, &manifests, reserved);
        let bought = |kind: &str| {
            outcome
                .record
                .nodes
                .iter()
                .any(|node| node.capacity_type.is_some_and(|capacity_type| capacity_type.as_str() == kind))
        };
        assert_eq!((bought("reserved"), bought("on-demand")), (used, !used), "{karpenter}");
    }
}

#[test]
fn node_memory_is_learned_from_v1_1() {
    let manifests = class("")
        + &pool("general", "m5", "0")
        + &deployment("web", 2, "general").replace("cpu: 900m, memory: 1Gi", "cpu: 900m, memory: 6656Mi");
    let smaller = "cluster: { zones: [us-east-1a] }\nec2: { capacity: infinite, failures: none, catalog_error: [{ type: \"m5.*\", memory_factor: 0.8 }] }\n\
        timeline: [{ at: 30m, scale: { workload: shop/web, replicas: 4 } }]\n";
    for (karpenter, at_once) in [("v1.0", false), ("v1.1", true)] {
        let nodes = run(karpenter, &manifests, smaller).record.nodes;
        assert_eq!(nodes.len(), 4, "{karpenter}: one for each pod in the end");
        let apart = nodes[3].requested - nodes[2].requested;
        assert_eq!(apart.as_secs() < 5, at_once, "{karpenter}: {apart}");
    }
}

#[test]
fn full_subnet_zones_are_avoided_from_v1_6() {
    let full = "cluster: { zones: [us-east-1a, us-east-1b] }\nfaults: [{ at: 0s, for: 30m, subnet_exhausted: { zone: us-east-1a } }]\nec2: { capacity: infinite, failures: none }\n";
    let manifests = class("")
        + &pool("general", "m5", "0")
        + &pool("other", "c5", "0").replace("pool: other", "pool: general")
        + &deployment("web", 1, "general");
    let there = "nodeSelector: {pool: general, topology.kubernetes.io/zone: us-east-1a}";
    let only_there = manifests.replace("nodeSelector: {pool: general}", there);
    for (karpenter, least) in [("v1.5", 1), ("v1.6", 1), ("v1.13", 1)] {
        let outcome = run(karpenter, &only_there, full);
        let failed = outcome.record.events.iter().filter(|event| event.kind == EventKind::LaunchFailed).count();
        assert!(failed >= least, "{karpenter}: {failed}");
    }
    let asked = ["v0.30", "v1.5", "v1.6", "v1.13"].map(|karpenter| {
        let outcome = run(karpenter, &only_there, full);
        outcome.record.nodes.iter().filter(|node| node.requested.as_secs_f64() < 1_800.0).count()
    });
    // v0.30 forgets at once what it was told, v1.5 avoids the types asked for and goes on to the other pool's, later releases avoid the zone.
    assert!(asked[0] > asked[1] && asked[1] > asked[2] && asked[2] == asked[3], "{asked:?}");
}

#[test]
fn failed_status_checks_drain_in_v1_12() {
    for (karpenter, drained, gone) in [("v1.11", false, false), ("v1.12", true, false), ("v1.13", true, true)] {
        let told = Story::calm()
            .release(karpenter)
            .run(0.25, "web", 1, pod("1", json!({"labels": {"app": "web"}})))
            .budget(1.25, "held", "web", json!({"maxUnavailable": 0}))
            .at(60.25, json!({"op": "statusCheck", "onNodeOf": "web-00000", "failed": true}))
            .until(600.0);
        let node = told.node(1);
        let (asked, left) = (node.deletion_requested.is_some(), node.terminated.is_some());
        assert_eq!((asked, left), (drained, gone), "{karpenter}");
        assert_eq!(node.end == Some(NodeEnd::Unhealthy), drained, "{karpenter}");
    }
}

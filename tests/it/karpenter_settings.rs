//! Karpenter's settings that shape instance types and its use of capacity reservations, in runs, in `pack` and as errors.

use nodecast::domain::Symbol;
use nodecast::simulation::Outcome;

use crate::cli::Place;
use crate::reserved_capacity::run_file;
use crate::startup_taints::warnings;

/// A pool of one instance type, On-Demand.
pub(crate) fn pool(instance_type: &str, class: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{ name: general }}\nspec:\n  template:\n    spec:\n      \
         nodeClassRef: {{ group: karpenter.k8s.aws, kind: EC2NodeClass, name: general }}\n      requirements:\n        \
         - {{ key: karpenter.sh/capacity-type, operator: In, values: [reserved, on-demand] }}\n        \
         - {{ key: node.kubernetes.io/instance-type, operator: In, values: [{instance_type}] }}\n  \
         disruption: {{ consolidationPolicy: WhenEmpty, consolidateAfter: 30s }}\n---\n\
         apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{ name: general }}\nspec:\n  \
         amiSelectorTerms: [{{ alias: al2023@latest }}]\n  role: node\n{class}---\n"
    )
}

fn deployment(replicas: u32, cpu: &str, memory: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{ name: work, namespace: default }}\nspec:\n  replicas: {replicas}\n  \
         selector: {{ matchLabels: {{ app: work }} }}\n  template:\n    metadata: {{ labels: {{ app: work }} }}\n    spec:\n      \
         containers:\n        - {{ name: work, image: example.com/work:1, resources: {{ requests: {{ cpu: {cpu}, memory: {memory} }} }} }}\n"
    )
}

fn placed(objects: &str, karpenter: &str, settings: &str, ec2: &str) -> Place {
    let place = Place::new();
    place.put("objects.yaml", objects);
    place.put(
        "scenario.yaml",
        &format!(
            "name: settings\nregion: us-east-1\nduration: 20m\nversions: {{ karpenter: {karpenter} }}\n\
             cluster: {{ zones: [us-east-1a] }}\nmanifests: [objects.yaml]\nkarpenter: {{ {settings} }}\n\
             ec2: {{ failures: none, capacity: infinite, spot: {{ interruptions: none }}{ec2} }}\n"
        ),
    );
    place
}

fn run(objects: &str, karpenter: &str, settings: &str, ec2: &str) -> Outcome {
    run_file(&placed(objects, karpenter, settings, ec2).path("scenario.yaml"))
}

fn nodes(outcome: &Outcome) -> usize {
    outcome.record.nodes.iter().filter(|node| node.ready.is_some()).count()
}

#[test]
fn smaller_memory_overhead_makes_a_pod_fit() {
    // r6g.large: 16,384 MiB, less 64 on arm64 and 7.5 % or 3 % of the rest: 15,096 or 15,830 MiB; 255 + 11 x 29 and 100 MiB are set aside.
    let objects = format!("{}{}", pool("r6g.large", ""), deployment(1, "500m", "14700Mi"));
    assert_eq!(nodes(&run(&objects, "v1.9", "", "")), 0);
    assert_eq!(nodes(&run(&objects, "v1.9", "vm_memory_overhead_percent: 3%", "")), 1);
    assert_eq!(nodes(&run(&objects, "v1.9", "vm_memory_overhead_percent: 0.03", "")), 1);
}

#[test]
fn reserved_interfaces_lower_the_pods_of_nodes() {
    // c5.large has three interfaces of ten addresses: 29 pods, and 11 with two of them reserved.
    let objects = format!("{}{}", pool("c5.large", ""), deployment(24, "1m", "1Mi"));
    assert_eq!(nodes(&run(&objects, "v1.10", "", "")), 1);
    let outcome = run(&objects, "v1.10", "reserved_enis: 2", "");
    assert_eq!(nodes(&outcome), 3);
    assert_eq!(nodes(&run(&objects, "v1.10", "reserved_enis: 3", "")), 0, "no interface is left");
    let legacy = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: { name: old }\nspec:\n  requirements:\n    \
                  - { key: node.kubernetes.io/instance-type, operator: In, values: [c5.large] }\n---\n";
    let objects = format!("{legacy}{}", deployment(24, "1m", "1Mi"));
    assert_eq!(nodes(&run(&objects, "v0.27", "reserved_enis: 2", "")), 1, "v0.28 brought it");
}

const OPEN: &str = ", capacity_reservations: [{ id: cr-7, type: c6i.xlarge, zone: us-east-1a, count: 3, match: open }]";

fn by_capacity_type(outcome: &Outcome, word: &str) -> usize {
    let wanted = Some(Symbol::new(word));
    outcome.record.nodes.iter().filter(|node| node.launched.is_some() && node.capacity_type == wanted).count()
}

/// Instance-hours of the reservation that nothing used.
fn is_unused(outcome: &Outcome) -> bool {
    use nodecast::cloud::BillItem;
    outcome
        .bill
        .lines
        .iter()
        .any(|line| line.item == BillItem::UnusedCapacityReservation && line.amount.as_f64() > 0.05)
}

#[test]
fn closed_reservation_gate_fills_open_reservations() {
    let objects = format!("{}{}", pool("c6i.xlarge", ""), deployment(4, "3", "1Gi"));
    let off = run(&objects, "v1.9", "feature_gates: { reserved_capacity: false }", OPEN);
    assert_eq!((by_capacity_type(&off, "on-demand"), by_capacity_type(&off, "reserved")), (4, 0));
    let on = run(&objects, "v1.9", "", OPEN);
    assert_eq!((by_capacity_type(&on, "on-demand"), by_capacity_type(&on, "reserved")), (4, 0), "it is not selected");
    assert_eq!((is_unused(&off), is_unused(&on)), (false, true));
}

#[test]
fn opened_reservation_gate_works_from_v1_3() {
    let class = "  capacityReservationSelectorTerms: [{ id: cr-7 }]\n";
    let objects = format!("{}{}", pool("c6i.xlarge", class), deployment(4, "3", "1Gi"));
    let open = "feature_gates: { reserved_capacity: true }";
    for (release, settings, reserved) in
        [("v1.4", "", 0), ("v1.4", open, 3), ("v1.2", open, 0), ("v1.12", "", 3), ("v1.12", open, 3)]
    {
        let outcome = run(&objects, release, settings, OPEN);
        assert_eq!(by_capacity_type(&outcome, "reserved"), reserved, "{release} {settings}");
    }
}

#[test]
fn nonsense_under_karpenter_names_its_place() {
    for (settings, message) in [
        ("vm_memory_overhead_percent: 130%", "not a share"),
        ("vm_memory_overhead_percent: -0.1", "not a share"),
        ("reserved_enis: -1", "reserved_enis"),
        ("reserved_enis: half", "reserved_enis"),
        ("feature_gates: { reserved_capacity: maybe }", "reserved_capacity"),
    ] {
        let place = placed(&deployment(1, "1m", "1Mi"), "v1.13", settings, "");
        let (_, err, code) = place.nodecast(&["validate", "scenario.yaml"]);
        assert_eq!(code, Some(2), "{settings}: {err}");
        assert!(err.contains("scenario.yaml:7:") && err.contains(message), "{settings}: {err}");
    }
}

#[test]
fn settings_without_effect_are_warned_of() {
    let warned = |karpenter: &str, settings: &str, words: &str| {
        let place = placed(&format!("{}{}", pool("c5.large", ""), deployment(1, "1m", "1Mi")), karpenter, settings, "");
        warnings(&place).contains(words)
    };
    assert!(warned("v1.2", "feature_gates: { reserved_capacity: true }", "which came with v1.3"));
    assert!(!warned("v1.3", "feature_gates: { reserved_capacity: true }", "which came with v1.3"));
    assert!(warned("v0.27", "reserved_enis: 1", "which came with v0.28"));
}

#[test]
fn pack_honours_the_reservation_gate() {
    let place = Place::new();
    let class = "  capacityReservationSelectorTerms: [{ id: cr-7 }]\n";
    place.put("cluster.yaml", &format!("{}{}", pool("c6i.xlarge", class), deployment(1, "3", "1Gi")));
    let run = |gates: &[&str]| {
        let (out, err, code) = place.nodecast(&[&["pack", "cluster.yaml", "--region", "us-east-1"], gates].concat());
        assert_eq!(code, Some(0), "{err}");
        format!("{out}{err}").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(run(&[]).contains("what room they have is in no file"));
    let off = run(&["--feature-gates", "ReservedCapacity=false"]);
    assert!(off.contains("feature gate ReservedCapacity is off"), "{off}");
    assert!(!off.contains("has no key"), "{off}");
}

/// A Deployment of six pods in three zones, with a default spread over zones.
fn spread_by_default(karpenter: &str, unsatisfiable: &str) -> Place {
    let place = Place::new();
    place.put("objects.yaml", &format!("{}{}", pool("m5.2xlarge", ""), deployment(6, "1", "1Gi")));
    place.put(
        "scenario.yaml",
        &format!(
            "name: spread\nregion: us-east-1\nduration: 5m\nversions: {{ karpenter: {karpenter} }}\n\
             cluster: {{ zones: [us-east-1a, us-east-1b, us-east-1c] }}\nmanifests: [objects.yaml]\nkarpenter:\n  scheduler_config:\n    \
             podTopologySpread:\n      defaultConstraints:\n        \
             - {{ maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: {unsatisfiable} }}\n\
             ec2: {{ failures: none, capacity: infinite, spot: {{ interruptions: none }} }}\n"
        ),
    );
    place
}

#[test]
fn default_spread_takes_effect_on_main() {
    let required = "which kube-scheduler on EKS cannot have";
    for (karpenter, unsatisfiable, zones, says) in [
        ("v1.14", "DoNotSchedule", 1, "does not have `scheduler_config`"),
        ("main", "DoNotSchedule", 3, required),
        ("main", "ScheduleAnyway", 3, "Karpenter main is unreleased"),
    ] {
        let place = spread_by_default(karpenter, unsatisfiable);
        assert_eq!(nodes(&run_file(&place.path("scenario.yaml"))), zones, "{karpenter}");
        let warnings = warnings(&place);
        assert!(warnings.contains(says), "{karpenter}: {warnings}");
        assert_eq!(warnings.contains(required), says == required, "{karpenter}: {warnings}");
    }
    let place = spread_by_default("main", "DoNotSchedule");
    let twice = std::fs::read_to_string(place.path("scenario.yaml")).unwrap();
    let line = twice.lines().find(|line| line.contains("maxSkew")).unwrap().to_owned();
    place.put("scenario.yaml", &twice.replace(&line, &format!("{line}\n{line}")));
    let (_, err, code) = place.nodecast(&["validate", "scenario.yaml"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(
        err.contains("scenario.yaml:12:") && err.contains("two default constraints on `topology.kubernetes.io/zone`"),
        "{err}"
    );
}

#[test]
fn consolidate_after_is_optional_on_main() {
    for (karpenter, warns) in [("v1.14", true), ("main", false)] {
        let without = pool("m5.large", "").replace(", consolidateAfter: 30s", "");
        let job = "apiVersion: batch/v1\nkind: Job\nmetadata: { name: short }\nspec:\n  template:\n    spec:\n      \
            restartPolicy: Never\n      containers: [{ name: c, image: c, resources: { requests: { cpu: 1500m } } }]\n";
        let place = placed(&format!("{without}{job}"), karpenter, "", "");
        let text = std::fs::read_to_string(place.path("scenario.yaml")).unwrap();
        place.put("scenario.yaml", &format!("{text}workloads: [{{ name: short, run_time: 2m }}]\n"));
        let (_, warnings) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
        let warned = warnings.iter().any(|warning| warning.message().contains("has no `consolidateAfter`"));
        assert_eq!(warned, warns, "{karpenter}: {warnings:?}");
        let outcome = run_file(&place.path("scenario.yaml"));
        let gone = outcome.record.nodes.iter().filter(|node| node.deletion_requested.is_some()).count();
        assert_eq!(gone, 1, "{karpenter}: the node of the finished Job goes");
    }
}

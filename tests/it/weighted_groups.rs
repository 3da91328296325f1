//! Node groups whose instances count by weight: sizes in capacity units, and what Cluster Autoscaler makes of them.

use nodecast::report::Summary;

use crate::group_limits::drafted_with_weights;
use crate::node_groups::{minutes, ready, run, shown_error, web};

/// An hour of a group of these keys, with more keys of the scenario.
fn scenario(group: &str, more: &str) -> String {
    format!(
        "name: weights\nregion: us-east-1\nduration: 1h\ncluster: {{ zones: [us-east-1a, us-east-1b] }}\nmanifests: \
         [manifests.yaml]\nec2: {{ capacity: infinite }}\nnodeGroups:\n  - {{ name: units, managed: false, {group} }}\n{more}\n"
    )
}

const TYPES: &str = "instanceTypes: [m6i.xlarge, m6i.2xlarge], weights: { m6i.2xlarge: 9, m6i.xlarge: 5 }";

#[test]
fn sizes_of_a_weighted_group_are_units() {
    let steps = "timeline:\n  - { at: 10m, scale_group: { group: units, desired: 26 } }\n  - { at: 30m, scale_group: { group: units, desired: 9 } }";
    let outcome = run(&scenario(&format!("{TYPES}, min: 0, desired: 14, max: 40"), steps), &web(1));
    let at = [9, 29, 55].map(|at| ready(&outcome, minutes(at)));
    assert_eq!(at, [3, 6, 2], "15 of 14 units, 30 of 26, 10 of 9");
}

#[test]
fn weighted_group_compares_prices_per_unit() {
    let types = |weights: &str| {
        format!(
            "instanceTypes: [c6i.large, c6i.xlarge], weights: {{ {weights} }}, spot: true, spotStrategy: lowest-price, spotPools: 1"
        )
    };
    let first = |weights: &str| {
        let outcome = run(&scenario(&format!("{}, min: 0, desired: 6, max: 12", types(weights)), ""), &web(1));
        outcome.record.nodes[0].instance_type.map(|name| name.to_string()).unwrap()
    };
    assert_eq!(first("c6i.large: 1, c6i.xlarge: 1"), "c6i.large");
    assert_eq!(first("c6i.large: 1, c6i.xlarge: 6"), "c6i.xlarge");
}

#[test]
fn cluster_autoscaler_waits_for_units_as_nodes() {
    let policy = "policies: [{ name: cas, autoscaler: cluster-autoscaler }]";
    let pending = |weights: &str, desired: u32| {
        let group = format!(
            "instanceType: m6i.xlarge, {weights}min: 1, desired: {desired}, max: 60, tags: {{ k8s.io/cluster-autoscaler/enabled: \"true\" }}"
        );
        let outcome = run(&scenario(&group, policy), &web(16));
        let warned = outcome.warnings.texts().join("\n").contains("reads its capacity units as nodes");
        (Summary::from_outcome(&outcome).pods.pending_at_end, warned)
    };
    assert_eq!(pending("", 1), (0, false));
    let (waiting, warned) = pending("weights: { m6i.xlarge: 6 }, ", 6);
    assert!(waiting > 0 && warned, "{waiting} pods wait: five nodes seem to be on their way");
}

#[test]
fn weights_of_managed_or_unknown_types_are_errors() {
    for (group, words) in [
        (
            "managed: true, instanceType: m6i.large, weights: { m6i.large: 2 }",
            ["weights of a managed node group", "managed: false"],
        ),
        ("instanceType: m6i.large, weights: { m6i.large: 2 }", ["weights of a managed node group", "managed: false"]),
        (
            "managed: false, instanceTypes: [m6i.large, m6a.large], weights: { m6i.large: 2 }",
            ["no weight of `m6a.large`", "m6a.large: 1"],
        ),
        (
            "managed: false, instanceType: m6i.large, weights: { m6i.large: 2, c6i.large: 1 }",
            ["weight of `c6i.large`", "instanceTypes"],
        ),
        ("managed: false, instanceType: m6i.large, weights: { m6i.large: 0 }", ["weights", "999"]),
    ] {
        let error = shown_error(&scenario("m", "").replace("managed: false, m", group), "");
        assert!(
            error.contains("scenario.yaml:8:") && words.iter().all(|word| error.contains(word)),
            "{group}: {error}"
        );
    }
}

#[test]
fn init_takes_over_weights_of_self_managed_groups() {
    let draft = drafted_with_weights();
    let text = &draft.files[0].text;
    assert!(text.contains("weights: { m5.xlarge: 4, m5.2xlarge: 8 }") && text.contains("desired: 24"), "{text}");
    assert!(!draft.warnings.iter().any(|warning| warning.message().contains("weights")));
}

//! Steps of the timeline for nodes that only one policy has.

use nodecast::catalog::Catalog;
use nodecast::scenario::error::Render;

use crate::keda::deployment;

/// A ClusterConfig with one group, whose nodes have the label.
fn group(name: &str, label: &str) -> String {
    format!(
        "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: c, region: us-east-1}}\n\
         managedNodeGroups: [{{name: {name}, instanceType: m5.xlarge, desiredCapacity: 2, minSize: 0, maxSize: 3, labels: {label}}}]\n"
    )
}

#[test]
fn steps_for_groups_of_others_warn_nothing() {
    let place = tempfile::tempdir().unwrap();
    let scenario = "name: two\nregion: us-east-1\nstart: 2026-03-02T00:00:00Z\nduration: 20m\nmanifests: [web.yaml]\ntimeline:\n\
                    - {at: 5m, cordon: {labels: {tier: teal}}}\n- {at: 6m, drain: {labels: {tier: grey}, force: true}}\n\
                    policies:\n- {name: before, autoscaler: static, manifests: [before.yaml]}\n\
                    - {name: after, autoscaler: static, manifests: [after.yaml]}\n";
    for (name, text) in [
        ("scenario.yaml", scenario),
        ("web.yaml", deployment("web", 2).trim_start_matches("---\n")),
        ("before.yaml", &group("old", "{tier: amber}")),
        ("after.yaml", &group("new", "{tier: teal}")),
    ] {
        std::fs::write(place.path().join(name), text).unwrap();
    }
    let loaded = nodecast::scenario::load(&place.path().join("scenario.yaml"));
    let scenario = loaded.unwrap_or_else(|error| panic!("{}", error.render())).0;
    for policy in &scenario.policies {
        let catalog = Catalog::embedded().unwrap();
        let outcome = nodecast::simulation::run(&scenario, policy, catalog, scenario.seed, &mut |_| {}).unwrap();
        let unmet: Vec<&str> = outcome.record.unmet.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(unmet, ["there is no node tier=grey to drain"], "{}", policy.name);
    }
}

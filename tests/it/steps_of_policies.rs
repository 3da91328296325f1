//! Steps of the timeline for nodes that only one policy has.

use nodecast::catalog::Catalog;
use nodecast::scenario::error::Render;

use crate::cli::Place;
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

#[test]
fn group_of_other_policy_is_no_refused_launch() {
    let place = Place::new();
    place.put(
        "steps.yaml",
        "name: colours\nregion: us-east-1\nduration: 30m\ntimeline:\n- {at: 4m, scale_group: {group: teal, desired: 3}}\n\
         - {at: 7m, update_group: {group: amber, ami: ami-3}}\npolicies:\n\
         - {name: before, autoscaler: static, manifests: [before.yaml]}\n\
         - {name: after, autoscaler: static, manifests: [after.yaml]}\n",
    );
    place.put("before.yaml", &group("amber", "{tier: a}"));
    place.put("after.yaml", &group("teal", "{tier: b}"));
    for (policy, step) in [("before", "00:04:00: <code>scale_group"), ("after", "00:07:00: <code>update_group")] {
        let (out, err, code) = place.nodecast(&["run", "steps.yaml", "--policy", policy, "--verbose"]);
        assert_eq!(code, Some(0), "{err}");
        assert!(!out.contains("refused by EC2"), "{out}");
        let page = std::fs::read_to_string(place.path("reports/colours/report.html")).unwrap();
        let warning = format!("timeline at {step}</code> has no effect: this policy has no node group ");
        assert!(page.contains(&warning) && page.contains("[NC0292]"), "{policy}");
    }
}

#[test]
fn compare_prints_rows_of_upgrades() {
    let place = Place::new();
    place.put(
        "updates.yaml",
        "name: updates\nregion: us-east-1\nduration: 2h\nec2: {capacity: infinite}\ntimeline:\n\
         - {at: 9m, update_group: {group: amber, ami: ami-7}}\npolicies:\n\
         - {name: surge, autoscaler: static, manifests: [surge.yaml]}\n\
         - {name: minimal, autoscaler: static, manifests: [minimal.yaml]}\n",
    );
    let surge = group("amber", "{tier: a}");
    place.put("surge.yaml", &surge);
    place.put("minimal.yaml", &surge.replace("minSize: 0", "updateConfig: {updateStrategy: MINIMAL}, minSize: 0"));
    let (out, err, code) = place.nodecast(&["compare", "updates.yaml", "--replications", "2"]);
    assert_eq!(code, Some(0), "{err}");
    for row in ["longest node upgrade", "peak additional nodes in an upgrade", "cost of additional nodes in upgrades"] {
        assert!(out.lines().any(|line| line.starts_with(row)), "{row}: {out}");
    }
}

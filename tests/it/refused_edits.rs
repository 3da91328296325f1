//! Edits of workloads that the API server refuses since a field cannot change: nothing of them is applied.

use nodecast::simulation::Outcome;
use nodecast::world::record::EventKind;

use crate::keda::{cluster, run};
use crate::workloads::{LATER, at, count, daemon_set, pods, slow, stateful, there};

fn edit(first: &str, later: &str) -> Outcome {
    run("20m", LATER, &format!("{}{first}", cluster(0)), &[("later.yaml", later)])
}

#[test]
fn edit_of_immutable_field_is_rejected_entirely() {
    let web = |change: &str| stateful(3, "two", change);
    let other = |form: String| form.replace("app: web", "app: other").replace("app: agent", "app: other");
    let claims = |size: &str| {
        format!(
            "  volumeClaimTemplates: [{{metadata: {{name: d}}, spec: {{accessModes: [ReadWriteOnce], \
             resources: {{requests: {{storage: {size}}}}}}}}}]\n"
        )
    };
    let first = stateful(2, "one", &claims("10Gi"));
    for (first, later, field, kind, pods_made) in [
        (first, web(&claims("20Gi")), "volumeClaimTemplates", "StatefulSet default/web", 2),
        (
            stateful(2, "one", ""),
            web("  podManagementPolicy: Parallel\n"),
            "podManagementPolicy",
            "StatefulSet default/web",
            2,
        ),
        (
            stateful(2, "one", "  serviceName: a\n"),
            web("  serviceName: b\n"),
            "serviceName",
            "StatefulSet default/web",
            2,
        ),
        (stateful(2, "one", ""), other(web("")), "selector", "StatefulSet default/web", 2),
        (slow(2, "one", ""), other(slow(3, "two", "")), "selector", "Deployment default/web", 2),
        (daemon_set("", "image: one"), other(daemon_set("", "image: two")), "selector", "DaemonSet default/agent", 1),
    ] {
        let outcome = edit(&first, &later);
        let text = format!("`{field}` of the {kind} cannot change");
        assert!(outcome.warnings.iter().any(|warning| warning.contains(&text)), "{:?}", outcome.warnings);
        let name = if kind.starts_with("Daemon") { "agent" } else { "web" };
        let pods = pods(&outcome, name);
        assert_eq!((pods.len(), there(&pods, at(1_199)).0), (pods_made, pods_made), "{text}");
        assert_eq!(count(&outcome, EventKind::RolloutStarted), 0, "{text}");
    }
}

#[test]
fn job_completions_are_immutable_unless_indexed() {
    let job = |spec: &str| {
        format!(
            "---\napiVersion: batch/v1\nkind: Job\nmetadata: {{name: report}}\nspec: {{{spec}, template: {{spec: \
             {{restartPolicy: Never, containers: [{{name: a, image: a}}]}}}}}}\n"
        )
    };
    for (first, later, made) in [
        ("parallelism: 1, completions: 2", "parallelism: 1, completions: 3", 2),
        ("parallelism: 2, completions: 2", "parallelism: 3, completions: 3", 2),
        (
            "parallelism: 2, completions: 2, completionMode: Indexed",
            "parallelism: 3, completions: 3, completionMode: Indexed",
            3,
        ),
    ] {
        let rest = "timeline: [{at: 5m, manifests: [later.yaml]}]\nworkloads: [{name: report, run_time: 8m}]";
        let outcome = run("40m", rest, &format!("{}{}", cluster(0), job(first)), &[("later.yaml", &job(later))]);
        assert_eq!(pods(&outcome, "report").len(), made, "{later}");
        let refused = outcome.warnings.iter().any(|text| text.contains("`completions` of the Job default/report"));
        assert_eq!(refused, made == 2, "{:?}", outcome.warnings);
    }
}

//! Jobs and CronJobs that are changed, suspended, deleted or applied again, and pods of theirs that are replaced.

use nodecast::report::Summary;
use nodecast::simulation::Outcome;
use nodecast::world::record::{EventKind, PodFacts};

use crate::keda::{cluster, run};
use crate::workloads::{LATER, count, noted, pods};

/// A Job or CronJob called `report`.
fn object(kind: &str, spec: &str) -> String {
    format!("---\napiVersion: batch/v1\nkind: {kind}\nmetadata: {{name: report}}\nspec:\n{spec}")
}

/// A template of pods that request so much CPU; `more` are further keys of their specification.
fn template(cpu: &str, more: &str) -> String {
    format!(
        "{{metadata: {{labels: {{app: report}}}}, spec: {{restartPolicy: Never, {more}containers: [{{name: a, image: a, \
         resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}"
    )
}

fn job(spec: &str, template: &str) -> String {
    object("Job", &format!("{spec}  template: {template}\n"))
}

/// A Job of which another form is applied after ten minutes.
fn changed(first: &str, later: &str, about: &str) -> Outcome {
    let rest = format!("{LATER}\nworkloads: [{{name: report, {about}}}]");
    run("40m", &rest, &format!("{}{first}", cluster(0)), &[("later.yaml", later)])
}

fn created(pods: &[PodFacts]) -> Vec<i64> {
    pods.iter().map(|pod| pod.created.as_secs()).collect()
}

#[test]
fn cron_job_changes_affect_only_later_jobs() {
    let cron = |cpu: &str, rest: &str| {
        let template = template(cpu, "");
        object(
            "CronJob",
            &format!("  schedule: \"*/5 * * * *\"\n  jobTemplate: {{spec: {{{rest}, template: {template}}}}}\n"),
        )
    };
    let (first, later) =
        (cron("100m", "parallelism: 2, completions: 4"), cron("200m", "parallelism: 1, completions: 2"));
    let rest = "timeline: [{at: 12m, manifests: [later.yaml]}]\nworkloads: [{name: report, run_time: 4m}]";
    let outcome = run("30m", rest, &format!("{}{first}", cluster(0)), &[("later.yaml", &later)]);
    let pods = pods(&outcome, "report");
    let of_job = |job: u32| {
        let this_pod = pods.iter().filter(|pod| pod.job == Some(job));
        this_pod.map(|pod| (pod.requests.cpu_milli(), pod.created.as_secs())).collect::<Vec<_>>()
    };
    // The Job of the tenth minute goes on two by two, with the pods that it began with.
    let before = of_job(1);
    assert!(before.len() == 4 && before.iter().all(|pod| pod.0 == 100), "{before:?}");
    assert!(before[0].1 == before[1].1 && before[2].1 == before[3].1 && before[2].1 > 720, "{before:?}");
    let after = of_job(2);
    assert!(after.len() == 2 && after.iter().all(|pod| pod.0 == 200), "{after:?}");
    assert!(after[1].1 - after[0].1 >= 240, "{after:?}");
    assert_eq!((outcome.record.jobs[1].parallelism, outcome.record.jobs[2].parallelism), (2, 1));
}

#[test]
fn skipped_cron_job_runs_are_unfinished() {
    let figures = |parallelism: u32| {
        let template = template("100m", "");
        let cron = object(
            "CronJob",
            &format!(
                "  schedule: \"*/5 * * * *\"\n  concurrencyPolicy: Forbid\n  jobTemplate: {{spec: {{parallelism: {parallelism}, \
                 completions: 4, template: {template}}}}}\n"
            ),
        );
        let rest = "workloads: [{name: report, run_time: 4m}]";
        Summary::from_outcome(&run("33m", rest, &format!("{}{cron}", cluster(0)), &[])).jobs.unwrap()
    };
    // Due every five minutes from the fifth on; the last has three minutes.
    let (wide, narrow) = (figures(4), figures(1));
    assert_eq!((wide.due, wide.failed, wide.undone), (6, 0, 0), "{wide:?}");
    // One pod after the other: a Job takes more than sixteen minutes.
    assert_eq!((narrow.due, narrow.complete, narrow.undone), (6, 1, 5), "{narrow:?}");
}

#[test]
fn job_deadline_counts_from_resumption() {
    let form = |suspend: bool| {
        job(&format!("  suspend: {suspend}\n  activeDeadlineSeconds: 120\n  backoffLimit: 0\n"), &template("100m", ""))
    };
    let outcome = changed(&form(true), &form(false), "run_time: 60s");
    let ends = (count(&outcome, EventKind::JobFinished), count(&outcome, EventKind::JobFailed));
    assert_eq!((ends, created(&pods(&outcome, "report"))), ((1, 0), vec![600]));
    let outcome = changed(&form(true), &form(false), "run_time: 20m");
    assert_eq!(pods(&outcome, "report")[0].deletion_requested.map(|at| at.as_secs()), Some(720));
    assert_eq!(noted(&outcome, EventKind::JobFailed)[0].1, "DeadlineExceeded; 0 running");
}

#[test]
fn job_deleted_by_ttl_reruns_when_reapplied() {
    for (ttl, runs) in [("  ttlSecondsAfterFinished: 30\n", 2), ("  ttlSecondsAfterFinished: 3600\n", 1), ("", 1)] {
        let first = job(ttl, &template("100m", ""));
        let outcome = changed(&first, &job(ttl, &template("200m", "")), "run_time: 60s");
        let pods = pods(&outcome, "report");
        assert_eq!(
            (pods.len(), count(&outcome, EventKind::JobFinished), outcome.record.jobs.len()),
            (runs, runs, runs)
        );
        // Of a Job that is still there the template cannot change.
        let refused =
            outcome.warnings.iter().any(|text| text.contains("template of the Job default/report cannot change"));
        assert_eq!(refused, runs == 1, "{:?}", outcome.warnings);
        assert!(runs == 1 || pods[1].requests.cpu_milli() == 200 && pods[1].created.as_secs() == 600);
    }
}

#[test]
fn suspended_job_can_change_scheduling() {
    let nowhere = job("  suspend: true\n", &template("100m", "nodeSelector: {example.com/zone: none}, "));
    let anywhere = template("200m", "");
    let outcome = changed(&nowhere, &job("  suspend: false\n", &anywhere), "run_time: 60s");
    let this_pods = pods(&outcome, "report");
    assert_eq!((this_pods.len(), this_pods[0].requests.cpu_milli()), (1, 200));
    assert!(this_pods[0].started.is_some() && count(&outcome, EventKind::JobFinished) == 1);
    // Another image is refused, and the whole change with it.
    let other = anywhere.replace("image: a", "image: b");
    let outcome = changed(&nowhere, &job("  suspend: false\n", &other), "run_time: 60s");
    assert_eq!(pods(&outcome, "report").len(), 0);
    assert!(outcome.warnings.iter().any(|text| text.contains("cannot change so")), "{:?}", outcome.warnings);
}

#[test]
fn pod_failure_policy_delays_replacement_until_termination() {
    let policy = "  podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}\n";
    // Deleted after ten minutes, gone five minutes later; a failure that counts makes the Job wait for ten seconds.
    for (policy, again) in [("", 610), ("  podReplacementPolicy: Failed\n", 910), (policy, 910)] {
        let spec = format!("  parallelism: 2\n  completions: 2\n{policy}");
        let object = job(&spec, &template("100m", "terminationGracePeriodSeconds: 600, "));
        let rest = "timeline: [{at: 10m, delete: {kind: Pod, labels: {app: report}, count: 1}}]\n\
                    workloads: [{name: report, run_time: 3h, shutdown_time: 300s}]";
        let outcome = run("30m", rest, &format!("{}{object}", cluster(0)), &[]);
        let pods = pods(&outcome, "report");
        assert_eq!((pods.len(), pods[0].removed.map(|at| at.as_secs())), (3, Some(900)), "{policy}");
        assert!((again..=again + 1).contains(&pods[2].created.as_secs()), "{policy} {}", pods[2].created);
        assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
    }
}

/// Required anti-affinity between the pods of a node that a term means.
fn apart(term: &str) -> String {
    format!(
        "affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: kubernetes.io/hostname, \
         {term}}}]}}}}, "
    )
}

#[test]
fn job_selector_matches_only_its_pods() {
    let rest = "workloads: [{name: report, run_time: 12m}]";
    let nodes =
        cluster(0).replace("desiredCapacity: 1, minSize: 1, maxSize: 1", "desiredCapacity: 2, minSize: 2, maxSize: 2");
    for (key, value, expected) in [
        ("job-name", "report", 2),
        ("batch.kubernetes.io/job-name", "report", 2),
        ("job-name", "other", 3),
        ("batch.kubernetes.io/job-completion-index", "0", 3),
    ] {
        let term = format!("labelSelector: {{matchLabels: {{{key}: '{value}'}}}}");
        let object = job("  parallelism: 3\n  completions: 3\n", &template("100m", &apart(&term)));
        let outcome = run("10m", rest, &format!("{nodes}{object}"), &[]);
        let placed = pods(&outcome, "report").iter().filter(|pod| pod.scheduled.is_some()).count();
        assert_eq!(placed, expected, "{key}={value}");
        let warned = outcome.warnings.iter().any(|text| text.contains("job-completion-index"));
        assert_eq!(warned, key.ends_with("index"), "{:?}", outcome.warnings);
    }
    // Pods of one Job keep apart, those of the next Job of their CronJob do not mind.
    for (keys, expected) in [("matchLabelKeys: [job-name], ", 3), ("", 1)] {
        let term = format!("{keys}labelSelector: {{matchLabels: {{app: report}}}}");
        let template = template("100m", &apart(&term));
        let spec = format!("  schedule: \"*/5 * * * *\"\n  jobTemplate: {{spec: {{template: {template}}}}}\n");
        let rest = "workloads: [{name: report, run_time: 3h}]";
        let outcome = run("18m", rest, &format!("{}{}", cluster(0), object("CronJob", &spec)), &[]);
        let pods = pods(&outcome, "report");
        let placed = pods.iter().filter(|pod| pod.scheduled.is_some()).count();
        assert_eq!((pods.len(), placed), (3, expected));
    }
}

#[test]
fn deadline_added_to_running_job_counts_from_start() {
    let rest = "timeline: [{at: 60s, manifests: [later.yaml]}]\nworkloads: [{name: report, run_time: 5m}]";
    for (first, deadline, ends) in [("", 120, 120), ("  activeDeadlineSeconds: 200\n", 90, 90), ("", 30, 60)] {
        let later = job(&format!("  activeDeadlineSeconds: {deadline}\n"), &template("100m", ""));
        let manifests = format!("{}{}", cluster(0), job(first, &template("100m", "")));
        let outcome = run("8m", rest, &manifests, &[("later.yaml", &later)]);
        let failed = noted(&outcome, EventKind::JobFailed);
        // The start is in whole seconds.
        assert!(failed.len() == 1 && (ends - 1..=ends).contains(&failed[0].0), "{deadline}: {failed:?}");
    }
}

#[test]
fn externally_managed_job_gets_no_pods() {
    let by = |manager: &str| job(&format!("  managedBy: {manager}\n"), &template("100m", ""));
    for (manager, release, made) in [
        ("kueue.x-k8s.io/multikueue", "1.36", 0),
        ("kueue.x-k8s.io/multikueue", "1.31", 1),
        ("kubernetes.io/job-controller", "1.36", 1),
    ] {
        let rest = format!("versions: {{kubernetes: '{release}'}}\nworkloads: [{{name: report, run_time: 60s}}]");
        let outcome = run("10m", &rest, &format!("{}{}", cluster(0), by(manager)), &[]);
        assert_eq!(pods(&outcome, "report").len(), made, "{manager} {release}");
        let warned = outcome.warnings.iter().any(|text| text.contains("has `managedBy` set to an external controller"));
        assert_eq!(warned, made == 0, "{:?}", outcome.warnings);
    }
}

#[test]
fn release_ignores_unsupported_job_fields_with_warning() {
    let told = |release: &str, manifest: &str, rest: &str| {
        let rest = format!("versions: {{kubernetes: '{release}'}}\n{rest}");
        run("30m", &rest, &format!("{}{manifest}", cluster(0)), &[])
    };
    let says = |outcome: &Outcome, field: &str| {
        outcome.warnings.iter().any(|text| text.contains(field) && text.contains("unless the feature gate is on"))
    };
    let rest = "timeline: [{at: 10m, delete: {kind: Pod, labels: {app: report}, count: 1}}]\n\
                workloads: [{name: report, run_time: 3h, shutdown_time: 300s}]";
    let slow = job("  podReplacementPolicy: Failed\n", &template("100m", "terminationGracePeriodSeconds: 600, "));
    for (release, again) in [("1.28", 610), ("1.29", 910)] {
        let outcome = told(release, &slow, rest);
        let second = pods(&outcome, "report")[1].created.as_secs();
        assert!((again..=again + 1).contains(&second), "{release} {second}");
        assert_eq!(says(&outcome, "`podReplacementPolicy`"), release == "1.28", "{:?}", outcome.warnings);
    }
    let numbered = crate::workloads::stateful(1, "one", "  ordinals: {start: 5}\n");
    for (release, name) in [("1.26", "web-0"), ("1.27", "web-5")] {
        let outcome = told(release, &numbered, "");
        assert_eq!(pods(&outcome, "web")[0].name.as_str(), name);
        assert_eq!(says(&outcome, "`ordinals`"), release == "1.26", "{:?}", outcome.warnings);
    }
    let template = template("100m", "");
    let zoned = object(
        "CronJob",
        &format!(
            "  schedule: \"10 3 * * *\"\n  timeZone: Europe/Berlin\n  jobTemplate: {{spec: {{template: {template}}}}}\n"
        ),
    );
    for (release, made) in [("1.24", 0), ("1.25", 1)] {
        let outcome = told(release, &zoned, "workloads: [{name: report, run_time: 60s}]");
        assert_eq!(pods(&outcome, "report").len(), made, "{release}");
        assert_eq!(says(&outcome, "`timeZone`"), release == "1.24", "{:?}", outcome.warnings);
    }
}

/// A Job under a Kubernetes release, whose pods run as `about` says.
fn under(release: &str, (spec, template): (&str, &str), about: &str) -> Outcome {
    let rest = format!("versions: {{kubernetes: '{release}'}}\nworkloads: [{{name: report, {about}}}]");
    run("40m", &rest, &format!("{}{}", cluster(0), job(spec, template)), &[])
}

/// Seconds from the first start of the Job's only pod to the Job's failure.
fn failed_after(outcome: &Outcome) -> f64 {
    let pods = pods(outcome, "report");
    assert_eq!(pods.len(), 1);
    let failed = outcome.record.events.iter().find(|event| event.kind == EventKind::JobFailed).unwrap();
    assert!(failed.message.starts_with("BackoffLimitExceeded"), "{}", failed.message);
    (failed.at - pods[0].started.unwrap()).as_secs_f64()
}

#[test]
fn on_failure_container_restarts_in_its_pod() {
    let template = template("100m", "").replace("Never", "OnFailure");
    let failed = |release: &str, limit: u32| {
        let spec = format!("  backoffLimit: {limit}\n");
        failed_after(&under(release, (&spec, &template), "run_time: 20s, failures: 1"))
    };
    // Four runs of 20 s, waits of 0, 10, 20 and 40 s, and a second for each start.
    let exact = failed("1.35", 4);
    assert!((154.0..154.5).contains(&exact), "{exact}");
    // The worker of an older kubelet is late for each wait but the first.
    let late = failed("1.34", 4);
    assert!((exact..exact + 45.0).contains(&late) && late > exact + 1.0, "{late}");
    let first = failed("1.35", 0);
    assert!((21.0..21.5).contains(&first), "{first}");
}

#[test]
fn restart_period_of_the_kubelet_shortens_delays() {
    let template = template("100m", "").replace("Never", "OnFailure");
    let failed = |release: &str, period: &str| {
        let rest = format!(
            "versions: {{kubernetes: '{release}'}}\ncluster: {{max_container_restart_period: {period}}}\n\
             workloads: [{{name: report, run_time: 2s, failures: 1}}]"
        );
        let outcome = run("40m", &rest, &format!("{}{}", cluster(0), job("  backoffLimit: 5\n", &template)), &[]);
        (
            failed_after(&outcome),
            outcome.warnings.iter().any(|warning| warning.contains("max_container_restart_period")),
        )
    };
    // Five runs of 2 s; waits of 0, 3, 3, 3 and 3 s, or of 0, 10, 20, 30 and 30 s; a second for each start.
    let (short, _) = failed("1.35", "3s");
    assert!((27.0..27.6).contains(&short), "{short}");
    let (middle, _) = failed("1.35", "30s");
    assert!((105.0..105.6).contains(&middle), "{middle}");
    let (late, warned) = failed("1.34", "3s");
    assert!(late > 150.0 && warned, "{late}");
}

#[test]
fn failed_pods_are_replaced_with_growing_delays() {
    let outcome = under("1.36", ("  backoffLimit: 3\n", &template("100m", "")), "run_time: 4s, failures: 1");
    let pods = pods(&outcome, "report");
    let waits: Vec<i64> = pods.windows(2).map(|two| (two[1].created - two[0].removed.unwrap()).as_secs()).collect();
    assert_eq!(pods.len(), 4);
    assert!(waits.iter().zip([10, 20, 40]).all(|(wait, least)| (least..=least + 1).contains(wait)), "{waits:?}");
    let failed = outcome.record.events.iter().find(|event| event.kind == EventKind::JobFailed).unwrap();
    let late = (failed.at - pods[3].removed.unwrap()).as_secs_f64();
    assert!((0.0..=1.0).contains(&late), "a failure beyond the limit ends the Job within a sync: {late}");
}

#[test]
fn job_back_off_stays_at_ten_minutes() {
    let outcome = under("1.35", ("  backoffLimit: 8\n", &template("100m", "")), "run_time: 2s, failures: 1");
    let pods = pods(&outcome, "report");
    let waits: Vec<i64> = pods.windows(2).map(|two| (two[1].created - two[0].removed.unwrap()).as_secs()).collect();
    assert_eq!(waits.len(), 8);
    let least = [10, 20, 40, 80, 160, 320, 600, 600];
    assert!(waits.iter().zip(least).all(|(wait, least)| (least..=least + 1).contains(wait)), "{waits:?}");
}

#[test]
fn container_that_ran_ten_minutes_restarts_at_once() {
    let template = template("100m", "").replace("Never", "OnFailure");
    let failed = |run_time: &str| {
        failed_after(&under("1.36", ("  backoffLimit: 3\n", &template), &format!("run_time: {run_time}, failures: 1")))
    };
    // Three runs and a second for each start; waits of 0, 10 and 20 s, or none.
    let (short, long) = (failed("9m"), failed("11m"));
    assert!((1653.0..1653.5).contains(&short) && (1983.0..1983.5).contains(&long), "{short} {long}");
}

#[test]
fn success_policy_ends_a_job_from_1_31() {
    let spec = |rule: &str| {
        format!(
            "  completionMode: Indexed\n  parallelism: 2\n  completions: 6\n  successPolicy: {{rules: [{{{rule}}}]}}\n"
        )
    };
    let made = |release: &str, rule: &str| {
        let outcome = under(release, (&spec(rule), &template("100m", "")), "run_time: 30s");
        assert_eq!(count(&outcome, EventKind::JobFinished), 1, "{release}: {rule}");
        pods(&outcome, "report").len()
    };
    assert_eq!(made("1.31", "succeededCount: 2"), 2);
    assert_eq!(made("1.31", "succeededIndexes: \"2-3\""), 4);
    assert_eq!(made("1.31", "succeededIndexes: \"0,2-5\", succeededCount: 2"), 4);
    assert_eq!(made("1.30", "succeededCount: 2"), 6, "the release drops the field");
}

#[test]
fn restarted_container_can_finish_its_work() {
    let template = template("100m", "").replace("Never", "OnFailure");
    let spec = "  parallelism: 12\n  completions: 12\n  backoffLimit: 100\n";
    let outcome = under("1.36", (spec, &template), "run_time: 20s, failures: 0.5");
    assert_eq!((pods(&outcome, "report").len(), count(&outcome, EventKind::JobFinished)), (12, 1));
    let (restarts, failed) = (count(&outcome, EventKind::PodKilled), count(&outcome, EventKind::PodFailed));
    assert!((4..40).contains(&restarts) && failed == 0, "{restarts} {failed}");
}

#[test]
fn ignored_failures_delay_pods_from_1_28() {
    let policy = "  podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}\n";
    for (release, lost, again) in [("1.27", 3, 600), ("1.28", 3, 640), ("1.36", 3, 640), ("1.36", 1, 610)] {
        let spec = format!("  parallelism: 4\n  completions: 4\n  backoffLimit: 0\n{policy}");
        let rest = format!(
            "versions: {{kubernetes: '{release}'}}\nworkloads: [{{name: report, run_time: 3h}}]\n\
             timeline: [{{at: 10m, delete: {{kind: Pod, labels: {{app: report}}, count: {lost}}}}}]"
        );
        let outcome = run("15m", &rest, &format!("{}{}", cluster(0), job(&spec, &template("100m", ""))), &[]);
        let created = created(&pods(&outcome, "report"));
        assert_eq!((created.len(), count(&outcome, EventKind::JobFailed)), (4 + lost, 0), "{release}");
        assert!(created[4..].iter().all(|at| (again..=again + 2).contains(at)), "{release} {created:?}");
    }
}

#[test]
fn indexes_back_off_and_fail_separately() {
    let spec = |more: &str| {
        format!("  completionMode: Indexed\n  parallelism: 3\n  completions: 3\n  backoffLimitPerIndex: 1\n{more}")
    };
    let run = |release: &str, more: &str| {
        let outcome = under(release, (&spec(more), &template("100m", "")), "run_time: 30s, failures: 1");
        let failed = noted(&outcome, EventKind::JobFailed);
        (pods(&outcome, "report"), failed.first().map(|event| event.1.split(';').next().unwrap().to_owned()))
    };
    let (item, reason) = run("1.36", "");
    assert_eq!((item.len(), reason.as_deref()), (6, Some("FailedIndexes")));
    let waits: Vec<i64> = item[3..].iter().map(|pod| (pod.created - item[0].removed.unwrap()).as_secs()).collect();
    assert!(waits.iter().all(|wait| (10..=11).contains(wait)), "each waits for its first failure: {waits:?}");
    let (_, reason) = run("1.36", "  maxFailedIndexes: 1\n");
    assert_eq!(reason.as_deref(), Some("MaxFailedIndexesExceeded"));
    let (item, reason) = run("1.28", "");
    assert_eq!((item.len(), reason.as_deref()), (9, Some("BackoffLimitExceeded")), "the release drops the field");
}

#[test]
fn large_job_creates_500_pods_per_sync() {
    let spec = "  parallelism: 620\n  completions: 620\n";
    let rest = "controller_time: none\nworkloads: [{name: report, run_time: 1h}]";
    let object = job(spec, &template("100m", ""));
    let outcome = run("5m", rest, &format!("{}{object}", cluster(0)), &[]);
    let created = created(&pods(&outcome, "report"));
    assert_eq!((created.len(), created.iter().filter(|at| **at == created[0]).count()), (620, 500));
    assert_eq!(created[619] - created[0], 1);
}

//! Jobs that are half done when a run begins with a dump of them, whoever made them.

use nodecast::domain::{SimDuration, SimTime};
use nodecast::scenario::error::Render;
use nodecast::simulation::Outcome;
use nodecast::world::record::{EventKind, JobOutcomeKind};

use super::{NODE_GROUP, OF_GROUP, cluster, node, outcome, pod};
use crate::cli::Place;

const TEMPLATE: &str = "template: {spec: {restartPolicy: Never, containers: [{name: own, image: own, resources: {requests: {cpu: 100m, memory: 900Mi}}}]}}";

/// An object of `batch/v1` with this specification, and more metadata.
fn object(kind: &str, name: &str, metadata: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: batch/v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: shop{metadata}}}\nspec: {{{spec}}}\n"
    )
}

/// A Job with a status.
fn job(name: &str, spec: &str, status: &str) -> String {
    object("Job", name, "", &format!("{spec}, {TEMPLATE}")) + &format!("status: {{{status}}}\n")
}

/// The metadata that says what made a Job.
fn made_by(version: &str, kind: &str, name: &str) -> String {
    format!(", ownerReferences: [{{apiVersion: {version}, kind: {kind}, name: {name}, uid: u, controller: true}}]")
}

fn run_times(names: &[&str], time: &str) -> String {
    let lines = names.iter().map(|name| format!("  - {{ name: shop/{name}, run_time: {time} }}\n"));
    format!("workloads:\n{}", lines.collect::<String>())
}

/// What becomes of these objects and what runs of them.
fn begun(objects: &str, pods: &[String], more: &str) -> Outcome {
    let dump = node("s1", OF_GROUP, 20) + &pods.concat();
    let more = format!("{NODE_GROUP}policies: [{{ name: own, autoscaler: static }}]\n{more}");
    outcome(&cluster(objects, &dump, &more), "scenario.yaml")
}

/// When a Job ended, in seconds, and how.
fn end(outcome: &Outcome, name: &str) -> Option<(i64, JobOutcomeKind)> {
    let job = outcome.record.jobs.iter().find(|job| &*job.name == name).unwrap();
    job.end.map(|end| (end.at.as_secs(), end.kind))
}

/// How many pods there were whose names begin so.
fn pods(outcome: &Outcome, prefix: &str) -> usize {
    outcome.record.pods.iter().filter(|pod| pod.name.starts_with(prefix)).count()
}

#[test]
fn completed_job_work_is_not_repeated() {
    let objects = [
        job("half", "completions: 10, parallelism: 2", "active: 1, succeeded: 7, failed: 1"),
        job("indexed", "completions: 5, parallelism: 5, completionMode: Indexed", "completedIndexes: \"0-2,4\""),
        job("worn", "completions: 3, parallelism: 3, backoffLimit: 2", "succeeded: 1, failed: 3"),
        job("near", "completions: 1, backoffLimit: 2", "failed: 2"),
    ]
    .concat();
    let there = [pod("half-x", "s1", Some(("Job", "half")), 100)];
    let times =
        run_times(&["half", "indexed", "worn"], "2m") + "  - { name: shop/near, run_time: 2m, failures: 0.999999 }\n";
    let outcome = begun(&objects, &there, &times);
    assert_eq!(pods(&outcome, "half-"), 3, "three of ten are left, and one of them runs");
    assert_eq!(end(&outcome, "half").unwrap().1, JobOutcomeKind::Complete);
    assert_eq!(pods(&outcome, "indexed-"), 1);
    assert_eq!(end(&outcome, "indexed").unwrap().1, JobOutcomeKind::Complete);
    assert_eq!(end(&outcome, "worn"), Some((0, JobOutcomeKind::Failed)), "more have failed than its limit allows");
    assert_eq!(pods(&outcome, "worn-"), 0);
    assert_eq!(pods(&outcome, "near-"), 1, "the third failure is one too many");
    assert_eq!(end(&outcome, "near").unwrap().1, JobOutcomeKind::Failed);
    let half = outcome.record.jobs.iter().find(|job| &*job.name == "half").unwrap();
    assert_eq!(half.ended_before, (7, 1));
}

#[test]
fn failed_index_of_dumped_job_is_not_retried() {
    let spec = "completions: 5, parallelism: 5, completionMode: Indexed, backoffLimitPerIndex: 1";
    let objects = job("indexed", spec, "failed: 4, completedIndexes: \"0\", failedIndexes: \"1,3\"");
    let outcome = begun(&objects, &[], &run_times(&["indexed"], "2m"));
    assert_eq!(pods(&outcome, "indexed-"), 2, "two of five are left");
    assert_eq!(end(&outcome, "indexed").unwrap().1, JobOutcomeKind::Failed, "for the sake of those that were given up");
}

#[test]
fn ended_job_removes_remaining_pods() {
    let ended = |kind: &str| {
        format!("conditions: [{{type: {kind}, status: \"True\", lastTransitionTime: \"2026-10-31T11:00:00Z\"}}]")
    };
    let objects = [
        job("done", "completions: 2, parallelism: 2", &ended("Complete")),
        job("given-up", "completions: 2", &ended("Failed")),
        job("going", "completions: 2", &ended("Suspended")),
    ]
    .concat();
    let deletion = ", deletionTimestamp: \"2026-10-31T11:59:50Z\", finalizers: [foregroundDeletion]";
    let objects = objects + &object("Job", "deleted", deletion, &format!("completions: 2, {TEMPLATE}"));
    let there = ["given-up", "deleted"].map(|job| pod(&format!("{job}-x"), "s1", Some(("Job", job)), 100));
    let outcome = begun(&objects, &there, &run_times(&["done", "given-up", "going", "deleted"], "2m"));
    assert_eq!((pods(&outcome, "done-"), pods(&outcome, "given-up-"), pods(&outcome, "going-")), (0, 1, 2));
    assert_eq!(pods(&outcome, "deleted-"), 1);
    for name in ["given-up-x", "deleted-x"] {
        let left = outcome.record.pods.iter().find(|pod| pod.name == name).unwrap();
        assert_eq!(left.deletion_requested, Some(SimTime::ZERO), "{name}");
    }
    assert!(outcome.record.jobs.iter().all(|job| &*job.name == "going"), "{:?}", outcome.record.jobs);
}

/// Nor would anything in the cluster: a Job that has failed is left out of what is made of a dump, and deletes its pods.
#[test]
fn failed_job_with_leaving_pods_causes_no_warning() {
    let warned = |metadata: &str| {
        let pod = pod("gone-x", "s1", Some(("Job", "gone")), 100);
        let replacen = pod.replacen("metadata:\n", &format!("metadata:\n{metadata}"), 1);
        let warnings = begun(&job("other", "completions: 1", ""), &[replacen], "").warnings.texts().join("\n");
        warnings.contains("1 pod from the dump has no controller in this scenario")
    };
    assert!(warned(""));
    assert!(!warned("  deletionTimestamp: \"2026-10-31T12:00:20Z\"\n"));
}

#[test]
fn job_status_without_dump_is_ignored() {
    let place = Place::new();
    place.put("cluster.yaml", &job("half", "completions: 4, parallelism: 4", "succeeded: 3"));
    place.put(
        "scenario.yaml",
        &format!(
            "name: own\nregion: us-east-1\nduration: 30m\nmanifests: [cluster.yaml]\n{NODE_GROUP}policies: [{{ name: own, autoscaler: static }}]\n{}",
            run_times(&["half"], "2m")
        ),
    );
    assert_eq!(pods(&outcome(&place, "scenario.yaml"), "half-"), 4, "the API server takes it out");
}

#[test]
fn cron_job_and_its_running_job_continue() {
    let cron = |name: &str, more: &str| {
        let spec = format!("schedule: \"30 12 * * *\"{more}, jobTemplate: {{spec: {{{TEMPLATE}}}}}");
        object("CronJob", name, "", &spec)
    };
    let of = |cron: &str, spec: &str, status: &str| {
        let name = format!("{cron}-29000000");
        let made = made_by("batch/v1", "CronJob", cron);
        object("Job", &name, &made, &format!("{spec}, {TEMPLATE}")) + &format!("status: {{{status}}}\n")
    };
    let began = "startTime: \"2026-10-31T08:00:00Z\"";
    let objects = [
        cron("report", ""),
        of("report", "activeDeadlineSeconds: 15600, completions: 4, parallelism: 2", &format!("{began}, succeeded: 2")),
        cron("alone", ", concurrencyPolicy: Forbid"),
        of("alone", "completions: 1", began),
        cron("paused", ", suspend: true"),
        of("paused", "suspend: true, completions: 1", ""),
    ]
    .concat();
    let there = [
        pod("report-29000000-x", "s1", Some(("Job", "report-29000000")), 100),
        pod("alone-29000000-x", "s1", Some(("Job", "alone-29000000")), 100),
    ];
    let outcome = begun(&objects, &there, &run_times(&["report", "alone", "paused"], "3h"));
    // Four hours and twenty minutes after 08:00; the run begins at 12:00.
    assert_eq!(end(&outcome, "report-29000000"), Some((1_200, JobOutcomeKind::Failed)), "its own deadline");
    let jobs: Vec<&str> = outcome.record.jobs.iter().map(|job| &*job.name).collect();
    let of = |cron: &str| jobs.iter().filter(|name| name.starts_with(cron)).count();
    assert_eq!((of("report"), of("alone"), of("paused")), (2, 1, 1), "{jobs:?}");
    let job = outcome.record.jobs.iter().find(|job| &*job.name == "report-29000000").unwrap();
    assert_eq!((job.completions, job.parallelism, job.ended_before), (Some(4), 2, (2, 0)));
    // Two of the Job's run at once, then one of the next Job.
    assert_eq!(pods(&outcome, "report"), 3);
    assert_eq!((pods(&outcome, "alone"), pods(&outcome, "paused")), (1, 0));
    let warnings = outcome.warnings.texts().join("\n");
    assert!(!warnings.contains("report"), "{warnings}");
}

/// The run begins at 12:00, a Job of each still runs, and those of 09:00 to 11:00 were due meanwhile; the next is due in another year.
#[test]
fn held_back_cron_run_starts_after_running_job() {
    let cron = |name: &str, policy: &str, last: &str| {
        let spec =
            format!("schedule: \"0 8-11 31 10 *\", concurrencyPolicy: {policy}, jobTemplate: {{spec: {{{TEMPLATE}}}}}");
        object("CronJob", name, "", &spec) + &format!("status: {{lastScheduleTime: \"2026-10-31T{last}:00:00Z\"}}\n")
    };
    let of = |cron: &str| {
        let made = made_by("batch/v1", "CronJob", cron);
        object("Job", &format!("{cron}-29000000"), &made, &format!("completions: 1, {TEMPLATE}"))
            + "status: {startTime: \"2026-10-31T08:00:00Z\", active: 1}\n"
    };
    let objects = [
        cron("alone", "Forbid", "08"),
        of("alone"),
        cron("latest", "Forbid", "11"),
        of("latest"),
        cron("all", "Allow", "08"),
        of("all"),
    ]
    .concat();
    let there = ["alone", "latest", "all"].map(|cron| {
        let job = format!("{cron}-29000000");
        pod(&format!("{job}-x"), "s1", Some(("Job", &job)), 100)
    });
    let outcome = begun(&objects, &there, &run_times(&["alone", "latest", "all"], "10m"));
    let of = |cron: &str| outcome.record.jobs.iter().filter(|job| job.name.starts_with(cron)).count();
    assert_eq!((of("alone"), of("latest"), of("all")), (2, 1, 1), "{:?}", outcome.record.jobs);
    let second = outcome.record.jobs.iter().rfind(|job| job.name.starts_with("alone")).unwrap();
    assert!(second.created >= SimTime::ZERO + SimDuration::from_secs(600), "{second:?}");
}

/// A ScaledJob with its queue, and Jobs of it that KEDA has made.
fn scaled_jobs(names: &[&str]) -> String {
    let mut objects = format!(
        "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledJob\nmetadata: {{name: batch, namespace: shop}}\nspec:\n  maxReplicaCount: 4\n  \
         jobTargetRef: {{{TEMPLATE}}}\n  triggers: [{{type: aws-sqs-queue, metadata: {{queueURL: \"https://sqs/1/orders\", \
         awsRegion: us-east-1, queueLength: \"1\"}}}}]\n"
    );
    for name in names {
        let made = made_by("keda.sh/v1alpha1", "ScaledJob", "batch");
        objects += &object("Job", name, &made, &format!("completions: 1, {TEMPLATE}"));
        objects += "status: {startTime: \"2026-10-31T11:59:00Z\", active: 1}\n";
    }
    objects
}

const QUEUE: &str = "phases: { keda: 25s }\nqueues:\n  - { name: orders, kind: sqs, workload: shop/batch, time_per_message: 60s, waiting: 30 }\n";

#[test]
fn scaled_job_runs_before_first_keda_poll() {
    let there = [
        pod("batch-aaaaa-x", "s1", Some(("Job", "batch-aaaaa")), 100),
        pod("batch-bbbbb-x", "s1", Some(("Job", "batch-bbbbb")), 100),
    ];
    // With the Jobs among the objects, and by the names of their pods alone.
    for objects in [scaled_jobs(&["batch-aaaaa", "batch-bbbbb"]), scaled_jobs(&[])] {
        let outcome = begun(&objects, &there, QUEUE);
        let made = outcome.record.replica_changes.iter().filter(|change| change.kind == EventKind::JobsCreated);
        let made: Vec<(i64, u32, u32)> = made.map(|change| (change.at.as_secs(), change.from, change.to)).collect();
        assert_eq!(made[0], (25, 2, 4), "four at most, of which two run");
        assert!(made.iter().all(|&(_, _, to)| to <= 4), "{made:?}");
        let ended = |name: &str| outcome.record.pods.iter().find(|pod| pod.name == name).unwrap().removed;
        let minute = Some(SimTime::ZERO + SimDuration::from_secs(60));
        assert_eq!((ended("batch-aaaaa-x"), ended("batch-bbbbb-x")), (minute, minute), "with a message in hand each");
        let queue = &outcome.queues[0];
        assert!((queue.processed - 32.0).abs() < 1e-6 && queue.waiting_at_end.abs() < 1e-6, "{queue:?}");
        let warnings = outcome.warnings.texts().join("\n");
        assert!(!warnings.contains("is not in the scenario"), "{warnings}");
    }
}

#[test]
fn missing_or_future_job_start_is_reported() {
    let limited = "activeDeadlineSeconds: 15600, completions: 1";
    let objects = [
        job("future", limited, "startTime: \"2026-10-31T12:10:00Z\""),
        job("without", limited, "active: 1"),
        job("new", limited, ""),
        job("well", limited, "startTime: \"2026-10-31T11:00:00Z\""),
    ]
    .concat();
    let there = ["future", "without", "well"].map(|name| pod(&format!("{name}-x"), "s1", Some(("Job", name)), 100));
    let outcome = begun(&objects, &there, &run_times(&["future", "without", "new", "well"], "3h"));
    let warnings = outcome.warnings.texts().join("\n");
    for words in [
        "the Job shop/future began 10m after the dump was made",
        "no file says since when the Job shop/without has run (`status.startTime`)",
    ] {
        assert!(warnings.contains(words), "{words}: {warnings}");
    }
    assert!(!warnings.contains("shop/new") && !warnings.contains("shop/well"), "{warnings}");
    // Of one whose start is to come, the pod's age says nothing.
    assert_eq!((end(&outcome, "future"), end(&outcome, "without")), (None, Some((1_200, JobOutcomeKind::Failed))));
}

#[test]
fn invalid_job_start_is_error_with_place() {
    let objects = job("odd", "completions: 1", "startTime: yesterday");
    let place = cluster(&objects, &node("s1", OF_GROUP, 20), NODE_GROUP);
    let error = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap_err().render();
    assert!(error.contains("`startTime` is not a point in time: `yesterday`"), "{error}");
    assert!(error.contains("cluster.yaml:6") && error.contains("help:"), "{error}");
}

#[test]
fn init_keeps_job_progress_and_owner() {
    let cron = format!("schedule: \"0 3 * * *\", jobTemplate: {{spec: {{{TEMPLATE}}}}}");
    let made = made_by("batch/v1", "CronJob", "report");
    let dump = [
        node("s1", OF_GROUP, 20),
        job("half", "completions: 10, parallelism: 2", "active: 1, ready: 1, succeeded: 7, failed: 1"),
        job("done", "completions: 1", "conditions: [{type: Complete, status: \"True\"}]"),
        object("CronJob", "report", "", &cron),
        object("Job", "report-29000000", &made, &format!("activeDeadlineSeconds: 15600, {TEMPLATE}")),
        "status: {startTime: \"2026-10-31T08:00:00Z\", active: 1}\n".to_owned(),
        scaled_jobs(&["batch-aaaaa"]),
        pod("half-x", "s1", Some(("Job", "half")), 100),
        pod("report-29000000-x", "s1", Some(("Job", "report-29000000")), 100),
        pod("batch-aaaaa-x", "s1", Some(("Job", "batch-aaaaa")), 100),
    ]
    .concat();
    let place = Place::new();
    place.put("all.yaml", &dump);
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "all.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(!err.contains("pods of Jobs are left out"), "{err}");
    let text = std::fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    place.put("own/scenario.yaml", &text.replace("duration: 24h", "duration: 1h"));
    let (scenario, _) = nodecast::scenario::load(&place.path("own/scenario.yaml")).unwrap();
    let manifests = &scenario.policies[0].manifests;
    let names: Vec<&str> = manifests.jobs.iter().map(|job| job.name.name.as_str()).collect();
    assert_eq!(names, ["half", "report-29000000", "batch-aaaaa"]);
    let half = &manifests.jobs[0].status;
    assert_eq!((half.succeeded, half.failed), (7, 1));
    assert!(manifests.jobs[1..].iter().all(|job| manifests.maker_of(job).is_some()));
    let outcome = outcome(&place, "own/scenario.yaml");
    assert_eq!(pods(&outcome, "half-"), 3);
    assert_eq!(pods(&outcome, "report-"), 1);
}

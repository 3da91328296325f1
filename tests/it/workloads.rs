//! Workloads in a running simulation: rollouts, ordered pods, pods that nothing controls.

use nodecast::domain::{SimTime, WorkloadId};
use nodecast::simulation::Outcome;
use nodecast::world::record::{EventKind, PodFacts};

use crate::keda::{cluster, deployment, run};

/// A Deployment with a readiness delay, so that a rollout takes a while.
pub fn slow(replicas: u32, image: &str, strategy: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: {replicas}\n{strategy}  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      \
         containers: [{{name: app, image: {image}, resources: {{requests: {{cpu: 100m, memory: 64Mi}}}}, \
         readinessProbe: {{initialDelaySeconds: 20}}}}]\n"
    )
}

pub const LATER: &str = "timeline: [{at: 10m, manifests: [later.yaml]}]";

fn roll_out(first: &str, later: &str) -> Outcome {
    run("20m", LATER, &format!("{}{first}", cluster(0)), &[("later.yaml", later)])
}

pub fn workload(outcome: &Outcome, name: &str) -> WorkloadId {
    let place = outcome.record.workloads.iter().position(|facts| facts.name.name.as_str() == name).unwrap();
    WorkloadId::from_index(place)
}

pub fn pods(outcome: &Outcome, name: &str) -> Vec<PodFacts> {
    let workload = workload(outcome, name);
    outcome.record.pods.iter().filter(|pod| pod.workload == workload).collect()
}

pub fn at(seconds: i64) -> SimTime {
    SimTime::from_micros(seconds * 1_000_000)
}

/// Pods that have been created and not been asked to go, and those of them that are Ready.
pub fn there(pods: &[PodFacts], now: SimTime) -> (usize, usize) {
    let active = |pod: &&PodFacts| pod.created <= now && pod.deletion_requested.is_none_or(|gone| gone > now);
    let ready = |pod: &&PodFacts| active(pod) && pod.ready.is_some_and(|ready| ready <= now);
    (pods.iter().filter(active).count(), pods.iter().filter(ready).count())
}

/// The most and the fewest pods, and the fewest Ready ones, at any tenth of a second from ten minutes on.
pub fn extremes(pods: &[PodFacts]) -> (usize, usize, usize) {
    let instants = (6_000..12_000).map(|tenth| SimTime::from_micros(tenth * 100_000));
    let counts: Vec<(usize, usize)> = instants.map(|now| there(pods, now)).collect();
    let most = counts.iter().map(|count| count.0).max().unwrap();
    let fewest = counts.iter().map(|count| count.0).min().unwrap();
    (most, fewest, counts.iter().map(|count| count.1).min().unwrap())
}

pub fn count(outcome: &Outcome, kind: EventKind) -> usize {
    outcome.record.events.iter().filter(|event| event.kind == kind).count()
}

#[test]
fn changed_template_rolls_out_within_limits() {
    let outcome = roll_out(&slow(10, "one", ""), &slow(10, "two", ""));
    let pods = pods(&outcome, "web");
    // A quarter of ten: three more, two fewer.
    assert_eq!(pods.len(), 20);
    let (most, _, fewest_ready) = extremes(&pods);
    assert_eq!((most, fewest_ready), (13, 8));
    assert!(pods[..10].iter().all(|pod| pod.deletion_requested.is_some()));
    assert!(pods[10..].iter().all(|pod| pod.deletion_requested.is_none() && pod.ready.is_some()));
    assert_eq!((count(&outcome, EventKind::RolloutStarted), count(&outcome, EventKind::RolloutFinished)), (1, 1));
    let end = outcome.record.events.iter().find(|event| event.kind == EventKind::RolloutFinished).unwrap();
    assert_eq!(pods[10..].iter().filter_map(|pod| pod.ready).max().unwrap().as_secs(), end.at.as_secs());
}

#[test]
fn rollout_waits_for_min_ready_seconds() {
    let strategy = "  minReadySeconds: 60\n  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n";
    let outcome = roll_out(&slow(2, "one", strategy), &slow(2, "two", strategy));
    let pods = pods(&outcome, "web");
    let (most, _, fewest_ready) = extremes(&pods);
    assert_eq!((pods.len(), most, fewest_ready), (4, 3, 2));
    let mut gone: Vec<SimTime> = pods[..2].iter().filter_map(|pod| pod.deletion_requested).collect();
    gone.sort_unstable();
    for (old, new) in gone.into_iter().zip(&pods[2..]) {
        let waited = old - new.ready.unwrap();
        assert!((60..=61).contains(&waited.as_secs()), "{waited}");
    }
}

#[test]
fn recreate_removes_old_pods_before_new_ones() {
    let strategy = "  strategy: {type: Recreate}\n";
    let outcome = roll_out(&slow(4, "one", strategy), &slow(4, "two", strategy));
    let pods = pods(&outcome, "web");
    assert_eq!(pods.len(), 8);
    let last_gone = pods[..4].iter().map(|pod| pod.removed.unwrap()).max().unwrap();
    assert!(pods[4..].iter().all(|pod| pod.created >= last_gone), "{last_gone}");
}

#[test]
fn changed_replica_count_only_scales() {
    let grown = roll_out(&slow(3, "one", ""), &slow(5, "one", ""));
    assert_eq!(there(&pods(&grown, "web"), at(1_199)), (5, 5));
    assert_eq!((pods(&grown, "web").len(), count(&grown, EventKind::RolloutStarted)), (5, 0));
    let same = roll_out(&slow(3, "one", ""), &slow(3, "one", ""));
    assert_eq!(pods(&same, "web").len(), 3);
}

#[test]
fn rollback_reuses_pods_of_former_template() {
    let timeline = "timeline: [{at: 10m, manifests: [two.yaml]}, {at: 610s, manifests: [one.yaml]}]";
    let (one, two) = (slow(10, "one", ""), slow(10, "two", ""));
    let others = [("two.yaml", two.as_str()), ("one.yaml", one.as_str())];
    let outcome = run("20m", timeline, &format!("{}{one}", cluster(0)), &others);
    let pods = pods(&outcome, "web");
    // Five new pods were made and two old ones deleted before it went back: the five go, two come again.
    assert_eq!(pods.len(), 17);
    assert_eq!(there(&pods, at(1_199)), (10, 10));
    assert_eq!(pods[..10].iter().filter(|pod| pod.deletion_requested.is_some()).count(), 2);
}

#[test]
fn scaling_during_rollout_affects_both_sets() {
    let timeline = "timeline: [{at: 10m, manifests: [later.yaml]}, {at: 605s, scale: {workload: web, replicas: 20}}]";
    let later = slow(10, "two", "");
    let manifests = format!("{}{}", cluster(0), slow(10, "one", ""));
    let outcome = run("20m", timeline, &manifests, &[("later.yaml", &later)]);
    let pods = pods(&outcome, "web");
    assert_eq!(there(&pods, at(1_199)), (20, 20));
    // Twenty and five more is the most, and old pods were made again for the larger count.
    assert_eq!(extremes(&pods).0, 25);
    assert!(pods.len() > 30, "{}", pods.len());
}

pub fn stateful(replicas: u32, image: &str, rest: &str) -> String {
    slow(replicas, image, rest).replace("kind: Deployment", "kind: StatefulSet")
}

#[test]
fn stateful_set_pods_start_in_order() {
    let outcome = roll_out(&stateful(3, "one", ""), &stateful(1, "one", ""));
    let pods = pods(&outcome, "web");
    let names: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!(names, ["web-0", "web-1", "web-2"]);
    for pair in pods.windows(2) {
        assert!(pair[1].created > pair[0].ready.unwrap());
    }
    assert_eq!(pods[0].deletion_requested, None);
    assert!(pods[1].deletion_requested.unwrap() > pods[2].removed.unwrap());
}

#[test]
fn parallel_stateful_set_creates_pods_at_once() {
    let outcome = roll_out(&stateful(3, "one", "  podManagementPolicy: Parallel\n"), &deployment("other", 0));
    let created: Vec<SimTime> = pods(&outcome, "web").iter().map(|pod| pod.created).collect();
    assert_eq!(created, [created[0]; 3]);
}

#[test]
fn stateful_set_updates_one_by_one_to_partition() {
    let partition = "  updateStrategy: {rollingUpdate: {partition: 1}}\n";
    let outcome = roll_out(&stateful(3, "one", partition), &stateful(3, "two", partition));
    let pods = pods(&outcome, "web");
    let names: Vec<&str> = pods[3..].iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!(names, ["web-2", "web-1"]);
    // The pod keeps its name, so the old one is gone before the new one comes.
    assert!(pods[3].created > pods[2].removed.unwrap() && pods[4].created > pods[1].removed.unwrap());
    assert!(pods[1].deletion_requested.unwrap() > pods[3].ready.unwrap());
    assert_eq!(extremes(&pods).2, 2);
}

#[test]
fn an_autoscaler_scales_a_stateful_set() {
    let hpa = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  \
        scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}\n  minReplicas: 1\n  maxReplicas: 4\n  \
        metrics: [{type: External, external: {metric: {name: told}, target: {type: AverageValue, averageValue: 5}}}]\n";
    let told = "external_metrics: [{metric: told, values: [{at: 0s, value: 14}]}]";
    let outcome = run("20m", told, &format!("{}{}{hpa}", cluster(0), stateful(1, "one", "")), &[]);
    assert_eq!(there(&pods(&outcome, "web"), at(1_199)), (3, 3));
}

/// A DaemonSet with this strategy and container.
pub fn daemon_set(strategy: &str, container: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: agent}}\nspec:\n{strategy}  \
         selector: {{matchLabels: {{app: agent}}}}\n  template:\n    metadata: {{labels: {{app: agent}}}}\n    \
         spec: {{containers: [{{name: a, {container}}}]}}\n"
    )
}

/// A DaemonSet with this strategy on so many nodes, whose template changes after ten minutes.
pub fn update_daemons(strategy: &str, nodes: u32) -> Outcome {
    let size = |nodes: u32| format!("desiredCapacity: {nodes}, minSize: {nodes}, maxSize: {nodes}");
    let manifests = format!("{}{}", cluster(0), daemon_set(strategy, "image: one")).replace(&size(1), &size(nodes));
    run("20m", LATER, &manifests, &[("later.yaml", &daemon_set(strategy, "image: two"))])
}

#[test]
fn changed_daemon_set_updates_nodes_one_by_one() {
    let outcome = update_daemons("", 3);
    let pods = pods(&outcome, "agent");
    assert_eq!((pods.len(), there(&pods, at(1_199))), (6, (3, 3)));
    assert_eq!(extremes(&pods).2, 2);
}

#[test]
fn bare_pod_is_not_recreated() {
    let pod = |name: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: lone}}}}\nspec:\n  \
             containers: [{{name: a, image: a, resources: {{requests: {{cpu: 1}}}}}}]\n"
        )
    };
    let owned = pod("owned").replace("labels:", "ownerReferences: [{kind: Job, name: j, controller: true}], labels:");
    let manifests = format!("{}{}{}{owned}", cluster(1), pod("one"), pod("two"));
    let outcome = run("20m", "", &manifests, &[]);
    let pods = pods(&outcome, "(pods)");
    let names: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    assert!(pods.iter().all(|pod| pod.ready.is_some()));
    assert!(outcome.warnings.iter().any(|warning| warning.starts_with("1 Pod is ignored: completed, or owned")));
}

fn job(kind: &str, spec: &str) -> String {
    format!("---\napiVersion: batch/v1\nkind: {kind}\nmetadata: {{name: report}}\nspec:\n{spec}")
}

const TEMPLATE: &str =
    "{spec: {restartPolicy: Never, containers: [{name: a, image: a, resources: {requests: {cpu: 100m}}}]}}";

fn run_job(spec: &str, about: &str) -> Outcome {
    let manifests = format!("{}{}  template: {TEMPLATE}\n", cluster(0), job("Job", spec));
    run("2h", &format!("workloads: [{{name: report, {about}}}]"), &manifests, &[])
}

pub fn noted(outcome: &Outcome, kind: EventKind) -> Vec<(i64, &str)> {
    let events = outcome.record.events.iter().filter(|event| event.kind == kind);
    events.map(|event| (event.at.as_secs(), event.message)).collect()
}

#[test]
fn job_respects_parallelism_until_complete() {
    let outcome = run_job("  parallelism: 2\n  completions: 5\n", "run_time: 4m");
    let pods = pods(&outcome, "report");
    assert_eq!(pods.len(), 5);
    assert!(pods.iter().all(|pod| (pod.removed.unwrap() - pod.started.unwrap()).as_secs() == 240));
    let instants = (0..7_200).map(|second| there(&pods, at(second)).0);
    let ended = |second: i64| pods.iter().filter(|pod| pod.removed.is_some_and(|gone| gone <= at(second))).count();
    let running = (0..7_200).map(|second| {
        let begun = pods.iter().filter(|pod| pod.created <= at(second)).count();
        begun - ended(second)
    });
    assert_eq!((running.max(), instants.max()), (Some(2), Some(5)));
    assert_eq!(noted(&outcome, EventKind::JobFinished).len(), 1);
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
}

#[test]
fn desired_job_pods_respect_remaining_completions() {
    let outcome = run_job("  parallelism: 2\n  completions: 5\n", "run_time: 4m");
    let (report, all) = (workload(&outcome, "report"), pods(&outcome, "report"));
    let mut seen = std::collections::BTreeSet::new();
    for sample in &outcome.record.samples {
        let workload = sample.workloads.iter().find(|workload| workload.workload == report).unwrap();
        // An instant at which pods end is looked at before the controller sees it.
        if all.iter().all(|pod| pod.removed != Some(sample.at)) {
            let done = all.iter().filter(|pod| pod.removed.is_some_and(|gone| gone < sample.at)).count() as u32;
            assert_eq!(workload.replicas_desired, 2.min(5 - done), "{done} done");
        }
        seen.insert(workload.replicas_desired);
    }
    assert_eq!(Vec::from_iter(seen), [0, 1, 2]);
    // The clock makes the Jobs of a CronJob, and no autoscaler.
    let scaling = nodecast::report::Summary::from_outcome(&cron("")).scaling;
    assert_eq!((scaling.rescales, scaling.changes_in_all), (0, 6));
}

#[test]
fn failing_job_backs_off_and_is_abandoned() {
    let outcome = run_job("  backoffLimit: 3\n", "run_time: 10s, failures: 1");
    let pods = pods(&outcome, "report");
    assert_eq!(pods.len(), 4);
    let waits: Vec<i64> = pods.windows(2).map(|pair| (pair[1].created - pair[0].removed.unwrap()).as_secs()).collect();
    assert_eq!(waits, [10, 20, 40]);
    let failed = noted(&outcome, EventKind::JobFailed);
    assert_eq!(failed.iter().map(|event| event.1).collect::<Vec<_>>(), ["BackoffLimitExceeded; 0 running"]);
}

#[test]
fn job_past_its_deadline_fails_with_pods() {
    let outcome = run_job("  activeDeadlineSeconds: 600\n", "run_time: 1h");
    let pods = pods(&outcome, "report");
    assert_eq!(pods.len(), 1);
    assert_eq!(pods[0].deletion_requested.unwrap().as_secs(), 600);
    assert_eq!(noted(&outcome, EventKind::JobFailed)[0].1, "DeadlineExceeded; 0 running");
}

#[test]
fn missing_run_time_assumes_one_minute() {
    let manifests = format!("{}{}  template: {TEMPLATE}\n", cluster(0), job("Job", ""));
    let outcome = run("1h", "", &manifests, &[]);
    let pods = pods(&outcome, "report");
    assert_eq!((pods[0].removed.unwrap() - pods[0].started.unwrap()).as_secs(), 60);
}

fn cron(policy: &str) -> Outcome {
    let spec = format!(
        "  schedule: \"*/10 8 * * *\"\n  timeZone: Asia/Kolkata\n{policy}  jobTemplate: {{spec: {{template: {TEMPLATE}}}}}\n"
    );
    let manifests = format!("{}{}", cluster(0), job("CronJob", &spec));
    // The run begins at 07:30 in Kolkata.
    run("2h", "workloads: [{name: report, run_time: 14m}]", &manifests, &[])
}

fn minutes(outcome: &Outcome) -> Vec<i64> {
    pods(outcome, "report").iter().map(|pod| pod.created.as_secs() / 60).collect()
}

#[test]
fn cron_job_starts_in_its_time_zone() {
    let outcome = cron("");
    assert_eq!(minutes(&outcome), [30, 40, 50, 60, 70, 80]);
    assert!(pods(&outcome, "report").iter().all(|pod| pod.created.as_secs() % 60 == 0));
    assert_eq!(noted(&outcome, EventKind::JobFinished).len(), 6);
}

#[test]
fn cron_job_concurrency_policy_delays_or_replaces() {
    // Of two times that passed meanwhile only the later is made up for, fourteen minutes after the start before.
    assert_eq!(minutes(&cron("  concurrencyPolicy: Forbid\n")), [30, 44, 58, 72, 86]);
    // Four minutes late is too late for a deadline of two.
    assert_eq!(minutes(&cron("  concurrencyPolicy: Forbid\n  startingDeadlineSeconds: 120\n")), [30, 50, 70]);
    let replaced = cron("  concurrencyPolicy: Replace\n");
    assert_eq!(minutes(&replaced), [30, 40, 50, 60, 70, 80]);
    assert_eq!(noted(&replaced, EventKind::JobFinished).len(), 1);
    assert!(minutes(&cron("  suspend: true\n")).is_empty());
}

fn trace(rows: &str, pods: &str) -> Outcome {
    run("30m", &format!("pods: {{csv: trace.csv{pods}}}"), &cluster(0), &[("trace.csv", rows)])
}

#[test]
fn trace_pods_come_and_go_as_recorded() {
    let outcome = trace(
        "name,create_s,delete_s,run_s,cpu_milli,memory_mib,count,app\n\
         a,0,600,,500,128,1,x\nb,300,,,250,64,3,y\nc,300.5,,60,250,64,1,y\nlate,9999,,,1,1,1,\n",
        ", namespace: batch",
    );
    let pods = pods(&outcome, "(trace)");
    let names: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!(names, ["a", "b-0", "b-1", "b-2", "c"]);
    assert_eq!(pods[0].deletion_requested, Some(at(600)));
    assert_eq!(pods[1].created, at(300));
    assert!(pods[1..4].iter().all(|pod| pod.ready.is_some() && pod.removed.is_none()));
    assert_eq!((pods[4].removed.unwrap() - pods[4].started.unwrap()).as_secs(), 60);
    assert_eq!(pods[0].requests.to_string(), "cpu 500m, memory 128Mi, pods 1");
    assert_eq!(outcome.record.workloads[0].name.to_string(), "batch/(trace)");
}

#[test]
fn preempted_trace_pod_is_recreated_by_default() {
    // The second pod needs nearly the whole node and goes first.
    let rows = "create_s,cpu_milli,memory_mib,priority,name\n0,9000,64,0,low\n600,9000,64,10,high\n";
    let again = trace(rows, "");
    let names = |outcome: &Outcome| pods(outcome, "(trace)").iter().map(|pod| pod.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&again), ["low", "high", "low-again"]);
    assert_eq!(pods(&again, "(trace)")[2].scheduled, None);
    assert_eq!(names(&trace(rows, ", again: false")), ["low", "high"]);
}

fn refused(rows: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let scenario = "name: t\nregion: us-east-1\nduration: 1h\nmanifests: [m.yaml]\npods: {csv: t.csv}\n";
    std::fs::write(directory.path().join("s.yaml"), scenario).unwrap();
    std::fs::write(directory.path().join("m.yaml"), cluster(0)).unwrap();
    std::fs::write(directory.path().join("t.csv"), rows).unwrap();
    let error = nodecast::scenario::load(&directory.path().join("s.yaml")).unwrap_err();
    let place = error.place().map(|place| format!("{}:{}", place.line, place.column));
    format!("{} {}", place.unwrap_or_default(), error.message())
}

#[test]
fn invalid_trace_is_rejected_with_place() {
    let header = "create_s,cpu_milli,memory_mib,delete_s,node_selector\n";
    for (rows, message) in [
        ("create_s,cpu_milli\n0,1\n", "1:1 the header has no column `memory_mib`, but `create_s` and `cpu_milli`"),
        ("", "1:1 there is no header with the column `create_s`"),
        (&format!("{header}0,many,1,,\n"), "2:3 `cpu_milli` is `many`, which is not a number of 0 or more"),
        (&format!("{header}0,1,1,,\n\n# so\n50,,1,,\n"), "5:4 `cpu_milli` is ``, which is empty"),
        (&format!("{header}9,1,1,8,\n"), "2:7 `delete_s` is `8`, which is before the pod is created"),
        (&format!("{header}9,1,1,,\n8,1,1,,\n"), "3:1 `create_s` is `8`, which is before that of the row above"),
        (&format!("{header}9,1,1,,zone"), "2:8 `node_selector` is `zone`, which is not `key=value` or `key=one|other`"),
        (&format!("{header}0,1,1,,\n9,1\n"), "3:1 this row does not have 5 columns, as the header does"),
        (header, "1:1 there is no pod in this file"),
    ] {
        assert_eq!(refused(rows), message);
    }
}

/// From binding to Ready, in tenths of a second, of the only pod of `web`.
fn start_up(spec: &str, rest: &str) -> i64 {
    let manifests = format!(
        "{}---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  selector: {{matchLabels: {{app: web}}}}\n  \
         template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{{spec}}}\n",
        cluster(0)
    );
    let outcome = run("1h", rest, &manifests, &[]);
    let pods = pods(&outcome, "web");
    (pods[0].ready.unwrap() - pods[0].scheduled.unwrap()).as_micros() / 100_000
}

#[test]
fn large_image_or_slow_network_delays_start() {
    let app = "containers: [{name: a, image: big}]";
    // 1.5 s, 100 MB at 80 MB/s and 180 MB/s, a second to start.
    assert_eq!(start_up(app, ""), 43);
    // 800 MB take 10 s and 4.4 s.
    assert_eq!(start_up(app, "images: {sizes: {big: 800M}}"), 169);
    assert_eq!(start_up(app, "images: {size: 80M, pull_rate: 8M, unpack_rate: 80M}"), 135);
}

#[test]
fn init_containers_run_sequentially_and_sidecars_only_start() {
    let app = "containers: [{name: a, image: one}]";
    // The image is there after the first container's pull: 0.3 s then.
    let init = "initContainers: [{name: i, image: one}, {name: j, image: one}], ";
    assert_eq!(
        start_up(&format!("{init}{app}"), "workloads: [{name: web, init_time: 20s}]"),
        33 + 10 + 200 + 13 + 200 + 13
    );
    let sidecar =
        "initContainers: [{name: s, image: one, restartPolicy: Always, startupProbe: {initialDelaySeconds: 7}}], ";
    assert_eq!(start_up(&format!("{sidecar}{app}"), "workloads: [{name: web, init_time: 20s}]"), 33 + 10 + 70 + 13);
}

#[test]
fn pod_is_ready_at_first_successful_probe() {
    let with = |probes: &str| format!("containers: [{{name: a, image: one, {probes}}}]");
    let about = "workloads: [{name: web, start_time: 12s}]";
    assert_eq!(start_up(&with("readinessProbe: {periodSeconds: 10}"), about), 43 + 200);
    assert_eq!(start_up(&with("readinessProbe: {periodSeconds: 5, initialDelaySeconds: 3}"), about), 43 + 130);
    assert_eq!(start_up(&with("readinessProbe: {periodSeconds: 5, successThreshold: 3}"), about), 43 + 150 + 100);
    // The start-up probe finds it first, and the readiness probe follows at once.
    let both = with("startupProbe: {periodSeconds: 2, failureThreshold: 7}, readinessProbe: {periodSeconds: 60}");
    assert_eq!(start_up(&both, about), 43 + 120);
}

#[test]
fn pod_stops_after_hook_or_grace_period() {
    let stop_all = |sidecars: &str, spec: &str, rest: &str| {
        let pod = format!("initContainers: [{sidecars}], containers: [{{name: a, image: one{spec}}}]");
        let manifests = format!(
            "{}---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  selector: {{matchLabels: {{app: web}}}}\n  \
             template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{{pod}, terminationGracePeriodSeconds: 20}}\n",
            cluster(0)
        );
        let rest = format!("{rest}\ntimeline: [{{at: 10m, scale: {{workload: web, replicas: 0}}}}]");
        let outcome = run("20m", &rest, &manifests, &[]);
        let pods = pods(&outcome, "web");
        (pods[0].removed.unwrap() - pods[0].deletion_requested.unwrap()).as_secs()
    };
    let stop = |spec: &str, rest: &str| stop_all("", spec, rest);
    assert_eq!(stop("", ""), 1);
    assert_eq!(stop("", "workloads: [{name: web, shutdown_time: 8s}]"), 8);
    assert_eq!(stop("", "workloads: [{name: web, shutdown_time: 1m}]"), 20);
    assert_eq!(stop(", lifecycle: {preStop: {sleep: {seconds: 15}}}", ""), 16);
    assert_eq!(
        stop(
            ", lifecycle: {preStop: {exec: {command: [sh, -c, sleep 15]}}}",
            "workloads: [{name: web, shutdown_time: 8s}]"
        ),
        20
    );
    assert_eq!(stop(", lifecycle: {preStop: {sleep: {seconds: 40}}}", ""), 22);
    // The hooks run at once; a native sidecar goes when its own has ended and the application has.
    let sidecar = |seconds: u32| {
        format!(
            "{{name: s, image: s, restartPolicy: Always, lifecycle: {{preStop: {{sleep: {{seconds: {seconds}}}}}}}}}"
        )
    };
    let shutdown = "workloads: [{name: web, shutdown_time: 5s}]";
    assert_eq!(stop_all(&sidecar(10), "", shutdown), 10);
    assert_eq!(stop_all(&sidecar(10), ", lifecycle: {preStop: {sleep: {seconds: 8}}}", shutdown), 13);
    assert_eq!(stop_all(&sidecar(40), "", shutdown), 20);
}

#[test]
fn moved_pods_of_trace_end_as_recorded() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/pod-trace/scenario.yaml");
    let (scenario, warnings) = nodecast::scenario::load(&path).unwrap();
    assert_eq!(warnings, []);
    let trace = scenario.pods.clone().unwrap();
    let run = |policy: &str, minutes: i64| {
        let mut scenario = scenario.clone();
        scenario.duration = nodecast::domain::SimDuration::from_secs(minutes * 60);
        let policy = scenario.for_policy(Some(policy)).unwrap();
        let catalog = nodecast::catalog::Catalog::embedded().unwrap();
        nodecast::simulation::run(&scenario, policy, catalog, scenario.seed, &mut |_| {}).unwrap()
    };
    let kept = run("when-empty", 5);
    let all = pods(&kept, "(trace)");
    let begun = trace.rows.iter().filter(|row| row.at <= at(300)).count();
    assert_eq!((trace.rows.len(), all.len(), all.iter().filter(|pod| pod.evicted).count()), (510, begun, 0));
    assert!(all.iter().any(|pod| pod.name == "az2" && pod.deletion_requested == Some(at(223))));
    let moved = run("consolidate", 7);
    let all = pods(&moved, "(trace)");
    let evicted = all.iter().filter(|pod| pod.evicted).count();
    let again = all.iter().filter(|pod| pod.name.ends_with("-again")).count();
    assert!(evicted > 0);
    assert_eq!(evicted, again, "every pod that is taken away is made again");
}

#[test]
fn intolerant_daemon_starts_on_ready_node() {
    use nodecast::domain::Symbol;
    let outcome = crate::reserved_capacity::run_of(
        "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: default }
spec:
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      startupTaints: [{ key: example.com/booting, effect: NoSchedule }]
      requirements: [{ key: karpenter.k8s.aws/instance-family, operator: In, values: [m5] }]
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: { name: default }
spec: { amiSelectorTerms: [{ alias: al2023@latest }], role: node }
---
apiVersion: apps/v1
kind: DaemonSet
metadata: { name: agent }
spec:
  selector: { matchLabels: { app: agent } }
  template:
    metadata: { labels: { app: agent } }
    spec: { containers: [{ name: main, image: agent, resources: { requests: { cpu: 50m } } }] }
---
apiVersion: v1
kind: Pod
metadata: { name: work }
spec: { containers: [{ name: main, image: work, resources: { requests: { cpu: 500m } } }] }
",
    );
    let node = outcome.record.nodes.iter().find(|node| node.origin.name() == Symbol::new("default")).unwrap();
    let daemons: Vec<_> = outcome.record.pods.iter().filter(|pod| pod.name.starts_with("agent")).collect();
    assert_eq!(daemons.len(), 1, "{daemons:?}");
    assert!(daemons[0].created > node.ready.unwrap(), "not while its node has a startup taint");
    assert!(daemons[0].ready.is_some());
}

#[test]
fn stateful_set_pods_are_selectable_by_ordinal() {
    let nodes = |count: u32| {
        let size = format!("desiredCapacity: {count}, minSize: {count}, maxSize: {count}");
        cluster(0).replace("desiredCapacity: 1, minSize: 1, maxSize: 1", &size)
    };
    // One command for all of them would not come to the second before the first is empty.
    let drain =
        (0..3).map(|node| format!("{{at: 10m, drain: {{name: ng-0000{node}}}}}")).collect::<Vec<_>>().join(", ");
    let drain = format!("timeline: [{drain}]");
    for (key, value) in [("apps.kubernetes.io/pod-index", "0"), ("statefulset.kubernetes.io/pod-name", "web-0")] {
        let budget = format!(
            "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: first}}\nspec: {{maxUnavailable: 0, \
             selector: {{matchLabels: {{{key}: '{value}'}}}}}}\n"
        );
        let outcome = run("20m", &drain, &format!("{}{}{budget}", nodes(3), stateful(3, "one", "")), &[]);
        let pods = pods(&outcome, "web");
        let evicted: Vec<bool> = pods.iter().take(3).map(|pod| pod.evicted).collect();
        assert_eq!(evicted, [false, true, true], "{key}");
    }
    // Where pods repel all that have such a name, the third has no node.
    let term = "{topologyKey: kubernetes.io/hostname, labelSelector: {matchExpressions: \
                [{key: statefulset.kubernetes.io/pod-name, operator: Exists}]}}";
    let affinity =
        format!("affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}");
    let set = stateful(3, "one", "").replace("containers:", &format!("{affinity}\n      containers:"));
    let outcome = run("20m", "", &format!("{}{set}", nodes(2)), &[]);
    let placed: Vec<bool> = pods(&outcome, "web").iter().map(|pod| pod.scheduled.is_some()).collect();
    assert_eq!(placed, [true, true, false]);
}

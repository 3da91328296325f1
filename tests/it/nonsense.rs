//! What no API server would take is refused, at its place and with a way out; what one takes is read.

use std::fs;
use std::path::Path;

const FOLDER: &str = "tests/data/nonsense";

/// Scenarios, each with one text of one of its files in another's place: the error's place, and what it says.
fn with(file: &str, from: &str, to: &str) -> Result<(), (String, String)> {
    let place = tempfile::tempdir().unwrap();
    for name in ["scenario.yaml", "cluster.yaml"] {
        let mut text = fs::read_to_string(Path::new(FOLDER).join(name)).unwrap();
        if name == file {
            assert!(text.contains(from), "no `{from}` in {file}");
            text = text.replacen(from, to, 1);
        }
        fs::write(place.path().join(name), text).unwrap();
    }
    let Err(error) = nodecast::scenario::load(&place.path().join("scenario.yaml")) else { return Ok(()) };
    assert!(error.way_out().is_some(), "{error} shows no way out");
    let at = error.place().map(|place| {
        let name = Path::new(&place.file).file_name().map(|name| name.to_string_lossy().into_owned());
        format!("{}:{}:{}", name.unwrap_or_default(), place.line, place.column)
    });
    Err((at.unwrap_or_else(|| "nowhere".to_owned()), error.to_string()))
}

#[test]
fn what_it_is_made_of_is_sound() {
    assert_eq!(with("cluster.yaml", "volumeSize: 20Gi", "volumeSize: 59000Gi"), Ok(()));
}

/// File, text, what stands in its place, where the error is, and what it says.
const NONSENSE: &[(&str, &str, &str, &str, &str)] = &[
    ("cluster.yaml", "volumeSize: 20Gi", "volumeSize: -20Gi", "23:51", "`volumeSize` is `-20Gi`"),
    ("cluster.yaml", "volumeSize: 20Gi", "volumeSize: 0Gi", "23:51", "`volumeSize` is `0Gi`"),
    ("cluster.yaml", "volumeSize: 20Gi", "volumeSize: 100Pi", "23:51", "`volumeSize` is `100Pi`"),
    ("cluster.yaml", "volumeSize: 20Gi", "volumeSize: 59001Gi", "23:51", "`volumeSize` is `59001Gi`"),
    ("cluster.yaml", "volumeSize: 20Gi", "volumeSize: 20", "23:51", "`volumeSize` is `20`"),
    ("cluster.yaml", "volumeType: gp3", "volumeType: floppy", "23:69", "unknown `volumeType`: `floppy`"),
    ("cluster.yaml", "rootVolume: false", "rootVolume: true", "24:7", "`blockDeviceMappings` has two root volumes"),
    ("cluster.yaml", "0 9 * * *", "61 * * * *", "15:39", "`61` is not a valid minute"),
    ("cluster.yaml", "0 9 * * *", "@every 1h", "15:39", "`schedule` is not a cron expression"),
    (
        "cluster.yaml",
        "karpenter.sh/capacity-type",
        "karpenter.k8s.aws/instance-familiy",
        "12:29",
        "the label `karpenter.k8s.aws/instance-familiy` is restricted",
    ),
    (
        "cluster.yaml",
        "karpenter.sh/capacity-type",
        "karpenter.sh/nodepool",
        "12:29",
        "the label `karpenter.sh/nodepool` is restricted",
    ),
    (
        "cluster.yaml",
        "karpenter.sh/capacity-type",
        "kubernetes.io/hostname",
        "12:29",
        "the label `kubernetes.io/hostname` is restricted",
    ),
    ("cluster.yaml", "team: web", "karpenter.sh/team: web", "7:27", "the label `karpenter.sh/team` is restricted"),
    ("cluster.yaml", "minValues: 1", "minValues: 3", "12:109", "`minValues` is 3, of 2 values"),
    (
        "cluster.yaml",
        "restartPolicy: Never",
        "restartPolicy: Always",
        "57:61",
        "the pods of a Job cannot have `restartPolicy: Always`",
    ),
    (
        "cluster.yaml",
        "spec: { containers: [{ name: c, ",
        "spec: { topologySpreadConstraints: [{ topologyKey: z, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, minDomains: 2 }], containers: [{ name: c, ",
        "35:118",
        "`minDomains` requires `whenUnsatisfiable: DoNotSchedule`",
    ),
    ("cluster.yaml", "nodes: 10%", "nodes: 200%", "15:24", "`nodes` is 200%"),
    ("cluster.yaml", "nodes: 10%", "nodes: -1", "15:24", "`nodes` is -1"),
    ("cluster.yaml", "duration: 8h", "duration: 90s", "15:62", "`duration` is `90s`"),
    ("cluster.yaml", "expireAfter: 720h", "expireAfter: 30d", "9:20", "`expireAfter` is `30d`"),
    ("cluster.yaml", "consolidateAfter: 30s", "consolidateAfter: 500ms", "14:23", "`consolidateAfter` is `500ms`"),
    ("cluster.yaml", "team: web", "team: a b", "7:33", "the value of a label cannot be `a b`"),
    ("cluster.yaml", "team: web", "<b>: web", "7:27", "the key of a label cannot be `<b>`"),
    ("cluster.yaml", "maxUnavailable: 0", "maxUnavailable: 101%", "31:64", "`maxUnavailable` is 101%"),
    (
        "cluster.yaml",
        "maxSurge: 125%",
        "maxSurge: 0%",
        "31:30",
        "`maxSurge` and `maxUnavailable` of a rollout are both 0",
    ),
    (
        "cluster.yaml",
        "replicas: 3",
        "replicas: 3\n  minReadySeconds: 600",
        "31:20",
        "`progressDeadlineSeconds`, which is 600 unless given, must be greater than `minReadySeconds`",
    ),
    ("cluster.yaml", "tolerance: 0.05", "tolerance: -0.05", "45:39", "`tolerance` is negative"),
    ("cluster.yaml", "periodSeconds: 60", "periodSeconds: 1801", "45:95", "`periodSeconds` is 1801"),
    ("cluster.yaml", "minAvailable: 50%", "minAvailable: 200%", "50:23", "`minAvailable` is 200%"),
    ("cluster.yaml", "0 3 * * *", "0 24 * * *", "56:13", "`24` is not a valid hour"),
    ("cluster.yaml", "value: 1000", "value: 2000000000", "62:8", "the priority of the class `high` is 2000000000"),
    ("cluster.yaml", "name: high", "name: system-high", "61:19", "a PriorityClass cannot be called `system-high`"),
    (
        "cluster.yaml",
        "value: 2000000000",
        "value: 2000000001",
        "66:19",
        "a PriorityClass cannot be called `system-cluster",
    ),
    ("cluster.yaml", "name: web }", "name: <script> }", "28:19", "the name of a Deployment cannot be `<script>`"),
    ("cluster.yaml", "name: web }", "name: a/b }", "28:19", "the name of a Deployment cannot be `a/b`"),
    ("cluster.yaml", "name: web }", "name: \"a\\nb\" }", "28:19", "the name of a Deployment cannot be `a\\nb`"),
    ("cluster.yaml", "name: web }", "name: \"a\\0b\" }", "28:19", "the name of a Deployment cannot be `a\\0b`"),
    ("cluster.yaml", "name: web }", "name: web, namespace: A }", "28:35", "a namespace cannot be `A`"),
    ("cluster.yaml", "name: default }", "name: Default }", "3:19", "the name of a NodePool cannot be `Default`"),
    ("cluster.yaml", "replicas: 3", "replicas: 1000000000", "30:13", "`replicas` is 1000000000"),
    (
        "scenario.yaml",
        "constant: 20",
        "constant: 20, uncertainty: { noise: 10%, noise_every: 1us }",
        "7:71",
        "would split the run into more than a million steps",
    ),
    (
        "scenario.yaml",
        "constant: 20",
        "burst: { base: 1, peak: 2, every: 200us, for: 100us }",
        "7:51",
        "would split the run into more than a million steps",
    ),
    ("scenario.yaml", "cost: 4", "cost: -1", "10:21", "`cost` is negative"),
    ("scenario.yaml", "scan-interval: 10s", "scan-interval: -1s", "13:74", "-1s is below zero"),
    ("scenario.yaml", "max-nodes-total: 9", "max-nodes-total: -5", "13:96", "-5 is below zero"),
];

#[test]
fn nonsense_is_refused_at_its_place() {
    let mut wrong = Vec::new();
    for (file, from, to, at, says) in NONSENSE {
        match with(file, from, to) {
            Ok(()) => wrong.push(format!("{to} is accepted")),
            Err((place, message)) if place != format!("{file}:{at}") || !message.contains(says) => {
                wrong.push(format!("{to}: {place}: {message}"));
            }
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The NodePool as a dump shows it that was taken with one text of it in another's place.
fn found_pool(from: &str, to: &str) -> nodecast::scenario::manifests::Manifests {
    let text = fs::read_to_string(Path::new(FOLDER).join("cluster.yaml")).unwrap();
    let pool = text.split("---").next().unwrap();
    assert!(pool.contains(from), "no `{from}`");
    let found =
        format!("{}status: {{ conditions: [{{ type: Ready, status: \"True\" }}] }}\n", pool.replacen(from, to, 1));
    nodecast::scenario::manifests::read_manifests(&nodecast::scenario::Source::new("pool.yaml", found)).unwrap()
}

/// Of a release that is not simulated, or applied before there was a rule.
#[test]
fn unknown_pool_label_is_ignored_with_warning() {
    let later =
        "karpenter.k8s.aws/instance-nitro-enclaves-supported, operator: Exists }, { key: karpenter.sh/capacity-type";
    let manifests = found_pool("karpenter.sh/capacity-type", later);
    let keys: Vec<&str> =
        manifests.node_pools[0].requirements.iter().map(|requirement| requirement.key.as_str()).collect();
    assert_eq!(keys, ["karpenter.sh/capacity-type"]);
    let warnings: Vec<String> = manifests.warnings.iter().map(ToString::to_string).collect();
    assert!(
        warnings.iter().any(|warning| warning.contains("may not state the label `karpenter.k8s.aws/instance-nitro")),
        "{warnings:?}"
    );
}

/// A cluster may hold a NodePool that its API server has taken and Karpenter calls invalid. A dump of it is read all the same.
#[test]
fn too_few_values_for_min_values_warn() {
    let warnings = found_pool("minValues: 1", "minValues: 3").warnings;
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.iter().any(|warning| warning.contains("`minValues` is 3, of 2 values")), "{warnings:?}");
}

#[test]
fn unreadable_budget_schedule_is_a_warning() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("pool.yaml");
    let text = fs::read_to_string(Path::new(FOLDER).join("cluster.yaml")).unwrap();
    let pool = text.split("---").next().unwrap().replace("0 9 * * *", "61 * * * *");
    fs::write(&path, format!("{pool}status: {{ conditions: [{{ type: Ready, status: \"False\" }}] }}\n")).unwrap();
    let source = nodecast::scenario::Source::new("pool.yaml", fs::read_to_string(&path).unwrap());
    let manifests = nodecast::scenario::manifests::read_manifests(&source).unwrap();
    let warnings: Vec<String> = manifests.warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.iter().any(|warning| warning.contains("`61` is not a valid minute")), "{warnings:?}");
    assert!(!manifests.node_pools[0].ready);
}

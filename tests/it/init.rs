//! `nodecast init`: what a newcomer starts from runs at once, answers a question, and overwrites nothing.

use std::fs;
use std::path::Path;

use nodecast::catalog::Catalog;
use nodecast::scenario::draft::Wishes;
use nodecast::scenario::error::Render;
use nodecast::scenario::{Draft, Source};
use proptest::prelude::*;
use serde_json::Value;

use crate::bad_input::damaged;
use crate::cli::Place;

/// An answer of the program that is JSON.
fn json(place: &Place, arguments: &[&str]) -> Value {
    let (out, err, code) = place.nodecast(arguments);
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn example_runs_and_second_policy_is_cheaper() {
    let place = Place::new();
    let (out, err, code) = place.nodecast(&["init", "shop"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert!(
        out.starts_with("wrote shop/scenario.yaml\n") && out.contains("\n  nodecast run shop/scenario.yaml\n"),
        "{out}"
    );
    assert!(
        fs::read_dir(place.path("shop")).unwrap().all(|entry| !entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with('.'))
    );
    // The whole day is the release build's; what a day has is there within its busiest hours too.
    let scenario = fs::read_to_string(place.path("shop/scenario.yaml")).unwrap();
    let scenario = scenario
        .replace("T00:00:00Z ", "T11:30:00Z ")
        .replace("duration: 24h", "duration: 90m")
        .replace("first: 12h", "first: 30m");
    let scenario = scenario.replace("at: 18h", "at: 40m").replace("at: 20h", "at: 80m");
    place.put("shop/scenario.yaml", &scenario);
    let summary = |policy: &str| {
        json(&place, &["run", "shop/scenario.yaml", "--policy", policy, "--format", "json", "--quiet", "--out", policy])
    };
    let (on_demand, spot) = (summary("on-demand"), summary("spot"));
    let cost = |summary: &Value| summary["cost"]["total"].as_f64().unwrap();
    assert!(cost(&spot) < 0.9 * cost(&on_demand), "{} against {}", cost(&spot), cost(&on_demand));
    assert!(on_demand["nodes"]["launches"].as_u64().unwrap() >= 4, "nodes come and go");
    assert_eq!(on_demand["warnings"], serde_json::json!([]));
    assert!(on_demand["objectives"].as_array().is_some_and(|all| all.len() == 2), "{}", on_demand["objectives"]);
}

/// The schema that the first line of a scenario names, read from where it points.
fn schema_of(place: &Place, scenario: &str) -> Value {
    let text = fs::read_to_string(place.path(scenario)).unwrap();
    let line = text.lines().next().unwrap();
    let file = line.strip_prefix("# yaml-language-server: $schema=").unwrap_or_else(|| panic!("{line}"));
    let path = place.path(scenario).parent().unwrap().join(file);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn scenario_names_schema_that_accepts_it() {
    let place = Place::new();
    let dump = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dump/cluster.yaml");
    let dump = dump.to_str().unwrap();
    for words in [&["init", "books"][..], &["init", "store", "--from", dump]] {
        let (out, err, code) = place.nodecast(words);
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains(&format!("wrote {}/scenario.schema.json", words[1])), "{out}");
        let name = format!("{}/scenario.yaml", words[1]);
        let schema = schema_of(&place, &name);
        let text = fs::read_to_string(place.path(&name)).unwrap();
        let mut scenario: Value = serde_saphyr::from_str(&text).unwrap();
        assert!(crate::schema::is_valid(&schema, &schema, &scenario), "{name}");
        scenario["replications"] = "a few".into();
        assert!(!crate::schema::is_valid(&schema, &schema, &scenario), "{name}");
    }
}

#[test]
fn fleet_clusters_share_one_schema() {
    let place = Place::new();
    let dump = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dump/cluster.yaml");
    fs::copy(&dump, place.path("east.yaml")).unwrap();
    fs::copy(&dump, place.path("west.yaml")).unwrap();
    let (_, err, code) = place.nodecast(&["init", "all", "--fleet", "--from", "east.yaml", "--from", "west.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(schema_of(&place, "all/east/scenario.yaml"), schema_of(&place, "all/west/scenario.yaml"));
    assert!(place.path("all/scenario.schema.json").is_file() && !place.path("all/east/scenario.schema.json").exists());
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn uncommented_example_policy_runs() {
    let place = Place::new();
    let (_, err, code) = place.nodecast(&["init", "shop", "--region", "eu-central-1"]);
    assert_eq!(code, Some(0), "{err}");
    let scenario = fs::read_to_string(place.path("shop/scenario.yaml")).unwrap();
    let (before, rest) = scenario.split_once("  # - name: cas\n").unwrap();
    let (policy, after) = rest.split_once("\nobjectives:").unwrap();
    let lines: Vec<String> = policy.lines().map(|line| line.replacen("  # ", "  ", 1)).collect();
    assert_eq!(lines.len(), 4, "{policy}");
    place.put("shop/scenario.yaml", &format!("{before}  - name: cas\n{}\nobjectives:{after}", lines.join("\n")));
    let (out, err, code) = place.nodecast(&["validate", "shop/scenario.yaml"]);
    assert!(code == Some(0) && out.contains("cas"), "{out}{err}");
    let words = ["run", "shop/scenario.yaml", "--policy", "cas", "--duration", "40m", "--format", "json"];
    let summary = json(&place, &words);
    assert_eq!(summary["pods"]["pending_at_end"], 0);
    assert!(summary["about"]["autoscaler"].as_str().unwrap().starts_with("Cluster Autoscaler"), "{}", summary["about"]);
    assert!(summary["nodes"]["launches"].as_u64().unwrap() >= 2, "{}", summary["nodes"]);
}

#[test]
fn init_accepts_region_and_release() {
    let place = Place::new();
    let (_, err, code) = place.nodecast(&["init", "a", "--region", "eu-central-1", "--karpenter", "v1.14"]);
    assert_eq!(code, Some(0), "{err}");
    let scenario = fs::read_to_string(place.path("a/scenario.yaml")).unwrap();
    for line in [
        "name: a ",
        "region: eu-central-1 ",
        "  karpenter: v1.14 ",
        "  zones: [eu-central-1a, eu-central-1b, eu-central-1c] ",
    ] {
        assert!(scenario.contains(line), "{line}");
    }
    for (arguments, words) in [
        (&["init", "b", "--region", "eu-central-9"][..], "did you mean `eu-central-1`?"),
        (&["init", "b", "--karpenter", "v0.18"], "which Karpenter v0.18.1 does not know"),
        (&["init", "b", "--karpenter", "v9"], "unknown Karpenter version `v9`"),
        (&["init", "scenario.yaml"], "`scenario.yaml` is not a directory"),
    ] {
        let (out, err, code) = place.nodecast(arguments);
        assert_eq!((out.as_str(), code), ("", Some(2)), "{err}");
        assert!(err.contains(words), "{err}");
        assert!(!place.path("b").exists());
    }
}

#[test]
fn nothing_is_overwritten_unless_it_is_asked_for() {
    let place = Place::new();
    place.put("mine/workloads.yaml", "mine");
    place.put("mine/notes.txt", "mine too");
    let (out, err, code) = place.nodecast(&["init", "mine"]);
    assert_eq!((out.as_str(), code), ("", Some(2)));
    assert!(err.contains("`mine/workloads.yaml` already exists") && err.contains("--force"), "{err}");
    assert_eq!(fs::read_dir(place.path("mine")).unwrap().count(), 2, "nothing half-written");
    let (_, err, code) = place.nodecast(&["init", "mine", "--force"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(fs::read_to_string(place.path("mine/workloads.yaml")).unwrap().contains("kind: Deployment"));
    assert_eq!(fs::read_to_string(place.path("mine/notes.txt")).unwrap(), "mine too");
}

/// Thirty Deployments, ten autoscalers, three NodePools and forty nodes with their pods.
const DUMP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/dump/cluster.yaml");
/// A cluster with the Cluster Autoscaler and a StatefulSet that is known by its pods alone.
const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/dump/small.json");

/// The scenario of `dump` in the directory `own` of a place, and what the program said.
fn from_dump(dump: &str) -> (Place, String, String) {
    let place = Place::new();
    let (out, err, code) = place.nodecast(&["init", "own", "--from", dump]);
    assert_eq!(code, Some(0), "{err}");
    (place, out, err)
}

/// Shortens a scenario to its first minutes.
fn shortened(place: &Place, duration: &str) {
    let scenario = fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    place.put("own/scenario.yaml", &scenario.replace("duration: 24h", &format!("duration: {duration}")));
}

#[test]
fn dump_scenario_lists_all_assumptions() {
    let (place, out, err) = from_dump(DUMP);
    assert!(
        out.contains("wrote own/nodepools.yaml") && out.contains("40 nodes (24 Spot) with 150.8 allocatable"),
        "{out}"
    );
    let scenario = fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    insta::assert_snapshot!("scenario_of_a_dump", scenario);
    assert_eq!(err, "");
    for file in ["cluster.yaml", "nodepools.yaml", "workloads.yaml", "autoscalers.yaml"] {
        let text = fs::read_to_string(place.path(&format!("own/{file}"))).unwrap();
        for word in [
            "managedFields",
            "resourceVersion",
            "uid:",
            "last-applied",
            "creationTimestamp",
            "status:",
            "not-for-the-repository",
        ] {
            assert!(!text.contains(word), "{word} in {file}");
        }
    }
}

#[test]
fn dump_scenario_starts_in_dumped_state() {
    let (place, ..) = from_dump(DUMP);
    shortened(&place, "12m");
    let summary = json(&place, &["run", "own/scenario.yaml", "--format", "json", "--quiet", "--out", "out"]);
    let names = |pools: &str| {
        fs::read_to_string(place.path("out/nodes.csv")).unwrap().lines().filter(|line| line.contains(pools)).count()
    };
    assert_eq!(names("system"), 4, "the managed node group");
    for pool in ["spot", "on-demand", "graviton"] {
        assert!(names(pool) > 0, "{pool}");
    }
    assert_eq!(summary["pods"]["pending_at_end"], 0);
    // Every Deployment has the replicas that it had, and those under load keep them, but for while one of few has been evicted.
    let (manifests, _) = nodecast::scenario::load(&place.path("own/scenario.yaml")).unwrap();
    let deployments = &manifests.policies[0].manifests.deployments;
    assert_eq!(deployments.len(), 30);
    let wanted: u32 = deployments.iter().map(|deployment| deployment.replicas.unwrap()).sum();
    assert_eq!(wanted, 108);
    let created = fs::read_to_string(place.path("out/pods.csv")).unwrap();
    for deployment in deployments {
        let prefix = format!("{}-", deployment.name.name);
        let made = created.lines().filter(|line| line.split(',').any(|cell| cell.starts_with(&prefix))).count();
        assert!(made >= deployment.replicas.unwrap() as usize, "{}: {made}", deployment.name);
    }
    let changed: Vec<&Value> = summary["scaling"]["workloads"].as_array().unwrap().iter().collect();
    assert_eq!(changed.len(), 30);
    let evicted: Vec<&str> = created.lines().filter(|line| line.contains(",true,")).collect();
    let moved = |value: &Value| evicted.iter().any(|pod| pod.split(',').nth(1) == value["workload"].as_str());
    let rescaled: Vec<&&Value> = changed.iter().filter(|item| item["rescales"] != 0).collect();
    assert!(
        rescaled.len() <= 1 && rescaled.iter().all(|rescaled| moved(rescaled)),
        "the load holds the replicas: {rescaled:?}"
    );
}

#[test]
fn cluster_autoscaler_dump_keeps_flags_and_groups() {
    let (place, ..) = from_dump(SMALL);
    let scenario = fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    insta::assert_snapshot!("scenario_of_a_small_dump", scenario);
    shortened(&place, "10m");
    let summary = json(&place, &["run", "own/scenario.yaml", "--format", "json", "--quiet", "--out", "out"]);
    assert_eq!(summary["pods"]["pending_at_end"], 0);
    // The StatefulSet, of which the dump has the pods alone.
    assert!(fs::read_to_string(place.path("own/workloads.yaml")).unwrap().contains("kind: StatefulSet"));
}

fn drafted(text: &str) -> Result<Draft, nodecast::scenario::ScenarioError> {
    let wishes = Wishes { name: "own".to_owned(), ..Wishes::default() };
    Draft::of_dump(&[Source::new("dump.yaml", text)], &wishes, Catalog::embedded().unwrap())
}

fn small_yaml() -> String {
    fs::read_to_string(Path::new(SMALL).with_extension("yaml")).unwrap()
}

#[test]
fn yaml_and_json_dumps_give_same_scenario() {
    let json = fs::read_to_string(SMALL).unwrap();
    let texts = |text: &str| {
        drafted(text).unwrap().files.into_iter().map(|file| file.text.replace('"', "")).collect::<Vec<_>>()
    };
    assert_eq!(texts(&json), texts(&small_yaml()));
}

#[test]
fn dump_supplies_vpa_flags_and_pod_usage() {
    let recommender = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: vpa-recommender, namespace: kube-system}\nspec:\n  \
        selector: {matchLabels: {app: vpa}}\n  template:\n    metadata: {labels: {app: vpa}}\n    spec: {containers: [{name: recommender, \
        image: \"registry.k8s.io/autoscaling/vpa-recommender:1.4.2\", args: [--v=4, --target-cpu-percentile=0.95, --storage=prometheus]}]}\n";
    let used = |pod: &str, cpu: &str| {
        format!(
            "---\napiVersion: metrics.k8s.io/v1beta1\nkind: PodMetrics\nmetadata: {{name: {pod}, namespace: default}}\n\
             containers: [{{name: postgres, usage: {{cpu: {cpu}, memory: 524288Ki}}}}]\n"
        )
    };
    let text = [&*small_yaml(), recommender, &used("postgres-0", "200000000n"), &used("postgres-1", "400m")].join("\n");
    let draft = drafted(&text).unwrap();
    let scenario = &draft.files[0].text;
    for line in [
        "\n  vertical-pod-autoscaler: \"1.4\"\n",
        "\nvertical_pod_autoscaler:            # as its programs were started\n  recommender: { target-cpu-percentile: \"0.95\" }\n",
        "\n  - { workload: default/postgres, container: postgres, cpu: { constant: 0.300 }, memory: { constant: 512 } }   # 2 pods\n",
    ] {
        assert!(scenario.contains(line), "{line}\n{scenario}");
    }
    let warned = |words: &str| draft.warnings.iter().any(|warning| warning.message().contains(words));
    assert!(
        warned("the flag `--storage` of vpa-recommender is left out") && !warned("PodMetrics"),
        "{:?}",
        draft.warnings
    );
}

/// A Deployment of one container with this text after its name.
fn deployment(name: &str, container: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: default}}\nspec:\n  replicas: 1\n  \
         selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      \
         containers: [{{name: own, resources: {{requests: {{cpu: 100m}}}}, {container}}}]\n"
    )
}

#[test]
fn a_dump_tells_how_karpenter_is_set_up() {
    let pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\nspec:\n  template:\n    spec:\n      \
        nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n      requirements: []\n";
    let variable = |name: &str, value: &str| format!("{{name: {name}, value: \"{value}\"}}");
    let env = [
        variable("BATCH_MAX_DURATION", "15s"),
        variable("BATCH_IDLE_DURATION", "2s"),
        variable("INTERRUPTION_QUEUE", ""),
        variable("FEATURE_GATES", "SpotToSpotConsolidation=true,NodeRepair=true,ReservedCapacity=true"),
        "{name: PREFERENCE_POLICY, valueFrom: {configMapKeyRef: {name: c, key: k}}}".to_owned(),
    ];
    let container = format!(
        "image: \"public.ecr.aws/karpenter/controller:1.6.2\", args: [--batch-max-duration=20s], env: [{}]",
        env.join(", ")
    );
    let text = format!("{pool}{}{}", deployment("karpenter", &container), deployment("web", "image: web"));
    let wishes = Wishes { name: "own".to_owned(), region: Some("us-east-1".to_owned()), ..Wishes::default() };
    let draft = Draft::of_dump(&[Source::new("dump.yaml", text)], &wishes, Catalog::embedded().unwrap()).unwrap();
    let section = "\nkarpenter:                          # as its Deployment sets it up\n  interruption_queue: false\n  \
        batch_idle_duration: 2s\n  batch_max_duration: 20s\n  feature_gates: { spot_to_spot_consolidation: true, node_repair: true }\n";
    assert!(draft.files[0].text.contains(section), "{}", draft.files[0].text);
    let warned = |words: &str| draft.warnings.iter().any(|warning| warning.message().contains(words));
    assert!(warned("Karpenter's `PREFERENCE_POLICY` comes from a ConfigMap"), "{:?}", draft.warnings);
}

#[test]
fn eksctl_and_scheduler_settings_apply_without_nodes() {
    let config = "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: shop, region: eu-west-1, version: \"1.33\"}\n\
        managedNodeGroups: [{name: workers, instanceType: m5.large, desiredCapacity: 2}]\n---\n\
        apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: default-scheduler, \
        pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}}]}]\n";
    let place = Place::new();
    place.put("cluster.yaml", &format!("{config}{}", deployment("web", "image: web")));
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "cluster.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    let (scenario, warnings) = nodecast::scenario::load(&place.path("own/scenario.yaml")).unwrap();
    let disagrees = |warning: &nodecast::scenario::error::Warning| warning.message().contains("ClusterConfig says");
    assert!(!warnings.iter().any(disagrees), "{warnings:?}");
    let manifests = &scenario.policies[0].manifests;
    assert_eq!((scenario.region.as_str(), manifests.node_groups.len()), ("eu-west-1", 1));
    assert_eq!(scenario.policies[0].versions.kubernetes.to_string(), "1.33");
    assert!(manifests.scheduler.is_some());
    let draft = drafted(&format!("{}\n---\n{config}", small_yaml())).unwrap();
    let warned = |words: &str| draft.warnings.iter().any(|warning| warning.message().contains(words));
    assert!(warned("the ClusterConfig is left out: node groups"), "{:?}", draft.warnings);
}

#[test]
fn eksctl_fargate_profiles_are_kept_with_dump() {
    let config = "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: shop, region: us-east-2, version: \"1.30\"}\n\
        managedNodeGroups: [{name: spare, instanceType: m5.large, desiredCapacity: 2}]\n\
        fargateProfiles: [{name: jobs, selectors: [{namespace: serverless}]}]\n";
    let place = Place::new();
    place.put("all.yaml", &format!("{}\n---\n{config}", small_yaml()));
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "all.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("the ClusterConfig is left out but for its Fargate profiles"), "{err}");
    let (scenario, _) = nodecast::scenario::load(&place.path("own/scenario.yaml")).unwrap();
    let manifests = &scenario.policies[0].manifests;
    let profiles: Vec<&str> =
        manifests.fargate_profiles.iter().map(|fargate_profile| fargate_profile.name.as_str()).collect();
    assert_eq!(profiles, ["jobs"]);
    assert!(!manifests.node_groups.iter().any(|group| group.name.as_str() == "spare"));
    assert_eq!(scenario.region.as_str(), "eu-west-1", "the nodes say where they are");
}

#[test]
fn dump_without_time_or_known_karpenter_reports_substitutes() {
    let dump = fs::read_to_string(DUMP).unwrap().replace("lastHeartbeatTime", "lastUpdateTime");
    let tag = dump.split("karpenter/controller:").nth(1).and_then(|rest| rest.split(['@', '\n', '"']).next()).unwrap();
    let draft = drafted(&dump.replace(&format!("karpenter/controller:{tag}"), "karpenter/controller:1.15.2")).unwrap();
    let text = &draft.files[0].text;
    assert!(!text.contains("\nstart:"), "nothing tells when the dump was made");
    for words in [
        "No node has a `lastHeartbeatTime`, so nothing says when the dump was made: the run starts at 2026-01-01T00:00:00Z",
        "Node groups keep the size that they have in the dump, as their least and their largest: system has 4.",
        "Karpenter 1.15.2 behaves as v1.14 does.",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let warned: Vec<&str> = draft.warnings.iter().map(|warning| warning.message()).collect();
    let known = "Karpenter 1.15.2 is not supported; using v1.14 (supported: v0.4.1, v0.6.3, v0.16.0, v0.18.1, v0.22.1, v0.23 to v0.37, v1.0 to v1.14, main; override with `--karpenter` or `versions.karpenter`)";
    assert!(warned.contains(&known), "{warned:?}");
    let known = drafted(&dump.replace(&format!("karpenter/controller:{tag}"), "karpenter/controller:1.8.2")).unwrap();
    assert!(known.files[0].text.contains("karpenter: v1.8.2"), "{}", known.files[0].text);
}

#[test]
fn non_dump_file_error_shows_dump_command() {
    let nodes = small_yaml();
    let nodes = format!(
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion{}",
        nodes.split("- apiVersion").find(|item| item.contains("kind: Node\n")).unwrap()
    );
    let without_nodes = small_yaml().replace("kind: Node\n", "kind: Lease\n");
    let mut report = String::new();
    for (name, text) in [
        ("a table", "NAMESPACE   NAME   READY   STATUS\ndefault     web-1  1/1     Running\n"),
        ("a table of several kinds", "NAMESPACE: NAME: READY\n  default\n"),
        ("an answer that is an error", "error: the server doesn't have a resource type \"nodepools\"\n"),
        ("nothing", ""),
        ("a values file", "replicaCount: 2\n"),
        ("nodes alone", &nodes),
        ("no nodes", &without_nodes),
    ] {
        let text = drafted(text).map(|_| ()).unwrap_err().render();
        assert!(text.contains("help:"), "{name}: {text}");
        report += &format!("# {name}\n\n{text}\n");
    }
    insta::assert_snapshot!("files_that_are_no_dump", report);
    let place = Place::new();
    place.put("table.txt", "NAMESPACE NAME\ndefault web\n");
    let (out, err, code) = place.nodecast(&["init", "own", "--from", "table.txt"]);
    assert_eq!((out.as_str(), code), ("", Some(2)), "{err}");
    assert!(err.contains("table.txt:1:1") && err.contains("kubectl get") && !place.path("own").exists(), "{err}");
}

#[test]
fn unsupported_dump_content_is_warned_and_commented() {
    let more = "---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: v, namespace: default}\nspec: {targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: postgres}}\n---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: s, namespace: default}\nspec:\n  scaleTargetRef: {name: postgres}\n  triggers: [{type: kafka, metadata: {topic: t, consumerGroup: g, bootstrapServers: b, lagThreshold: \"5\"}}]\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\n";
    let dump = small_yaml().replace("v1.33.4-eks-99d6cc0", "v1.99.1-eks-1") + more;
    let draft = drafted(&dump).unwrap();
    let warnings: Vec<&str> = draft.warnings.iter().map(|warning| warning.message()).collect();
    for words in ["Kubernetes 1.99 is not supported", "its trigger `kafka`"] {
        assert!(warnings.iter().any(|text| text.contains(words)), "{words}: {warnings:?}");
        assert!(draft.files[0].text.contains(words), "{words}");
    }
    assert!(draft.files.iter().any(|file| file.text.contains("kind: VerticalPodAutoscaler")));
    let carried = draft.files.iter().find(|file| file.name == "cluster.yaml").unwrap();
    assert!(carried.text.contains("kind: PersistentVolumeClaim"), "{}", carried.text);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 3 / 5, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_dump_never_panics(
        damage in prop::collection::vec((0_u8..7, 0.0_f64..1.0, "[-0-9a-z:\\[\\]{}\"'%&*. \n]{0,8}"), 1..4),
    ) {
        let mut dump = small_yaml();
        for (kind, place, with) in &damage {
            dump = damaged(&dump, *kind, *place, with);
        }
        match drafted(&dump) {
            Err(error) => prop_assert!(!error.render().is_empty()),
            Ok(draft) => {
                let folder = tempfile::tempdir().unwrap();
                for file in &draft.files {
                    fs::write(folder.path().join(&*file.name), &file.text).unwrap();
                }
                let read = nodecast::scenario::load(&folder.path().join("scenario.yaml"));
                prop_assert!(read.is_ok(), "{}", read.unwrap_err().render());
            }
        }
    }
}

//! `nodecast pack`: what Karpenter would launch now.

use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

use nodecast::program::Prices;
use nodecast::program::pack::Options;
use nodecast::report::pack::{PackedInstance, SuiteAnswer};
use nodecast_karpenter::packing::PackerKind;

use crate::cli::{Place, assert_fits};

const DUMP: [&str; 2] = ["tests/data/pack/dump.json", "tests/data/pack/nodepool.yaml"];
const TUTORIAL: [&str; 6] = [
    "scenarios/pack/provisioners.yaml",
    "scenarios/pack/daemonsets.yaml",
    "--region",
    "cn-north-1",
    "--karpenter",
    "v0.18",
];

fn pack(arguments: &[&str]) -> (String, String, Option<i32>) {
    let mut command = Command::new(cargo_bin!("nodecast"));
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).arg("pack").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

fn answer(arguments: &[&str]) -> Value {
    let (out, err, code) = pack(&[arguments, &["--format", "json"]].concat());
    assert_eq!((err.as_str(), code), ("", Some(0)), "{arguments:?}");
    serde_json::from_str(&out).unwrap()
}

/// What the tutorial's Provisioners launch for so many pods of one core.
fn one_core_pods(count: u32) -> Value {
    let place = Place::new();
    place.put("pods.csv", &format!("name,replicas,cpu,memory\ninflate,{count},1,0\n"));
    let table = place.path("pods.csv");
    answer(&[&TUTORIAL[..], &[table.to_str().unwrap(), "--explain", "inflate"]].concat())
}

/// The nearest type without enough CPU, as the `default` Provisioner explains it: what it offers.
fn nearest_too_small(answer: &Value) -> &str {
    let pools = answer["explanation"]["node_pools"].as_array().unwrap();
    let pool = pools.iter().find(|pool| pool["node_pool"] == "default").unwrap();
    let short = pool["types_refused"].as_array().unwrap().iter().find(|group| group["reason"] == "not enough cpu");
    short.unwrap()["short"]["allocatable"].as_str().unwrap()
}

#[test]
fn sixteen_one_core_pods_exceed_sixteen_cores() {
    let fifteen = one_core_pods(15);
    let launches = fifteen["launches"].as_array().unwrap();
    assert_eq!((launches.len(), &launches[0]["node_pool"]), (1, &Value::from("default")));
    assert_eq!((&launches[0]["requests"]["cpu_milli"], &launches[0]["requests"]["pods"]), (&15_125.into(), &17.into()));
    assert_eq!(launches[0]["allocatable"]["cpu_milli"], 15_790);
    let sixteen = one_core_pods(16);
    assert_eq!(sixteen["launches"][0]["requests"]["cpu_milli"], 16_125);
    assert!(sixteen["launches"][0]["allocatable"]["cpu_milli"].as_i64().unwrap() > 16_125);
}

#[test]
fn pack_warns_about_provisioners_without_support() {
    let files = ["scenarios/pack/provisioners.yaml", "scenarios/pack/inflate.yaml", "--region", "us-east-1"];
    let (_, err, code) = pack(&files);
    assert_eq!(code, Some(0), "{err}");
    let about: Vec<&str> = err.lines().filter(|line| line.contains("reads no Provisioner")).collect();
    assert!(!about.is_empty() && about.iter().all(|line| line.contains("`--karpenter v0.27`")), "{err}");
    let (_, err, _) = pack(&[&files[..], &["--karpenter", "v0.27"]].concat());
    assert!(!err.contains("reads no Provisioner"), "{err}");
}

#[test]
fn pack_directory_error_lists_manifests() {
    let (_, err, code) = pack(&["scenarios/pack", "--region", "us-east-1"]);
    assert_ne!(code, Some(0));
    assert!(err.contains("`scenarios/pack` is a directory"), "{err}");
    assert!(err.contains("`scenarios/pack/daemonsets.yaml`"), "{err}");
    let (_, err, _) = pack(&["scenarios/eks-101/", "--region", "us-east-1"]);
    assert!(err.contains("`scenarios/eks-101/cluster.yaml`"), "{err}");
}

#[test]
fn five_pods_of_one_core_need_eight_cores() {
    let five = one_core_pods(5);
    assert_eq!(
        (&five["launches"][0]["requests"]["cpu_milli"], &five["launches"][0]["requests"]["pods"]),
        (&5_125.into(), &7.into())
    );
    assert_eq!(five["launches"][0]["allocatable"]["cpu_milli"], 7_810);
    assert_eq!(nearest_too_small(&five), "3820m");
}

#[test]
fn tolerating_pods_use_heavier_tainted_provisioner() {
    let both = [&TUTORIAL[..], &["scenarios/pack/inflate.yaml"]].concat();
    let json = answer(&both);
    let banana = &json["launches"][0];
    assert_eq!((&banana["node_pool"], &banana["capacity_type"]), (&"banana".into(), &"on-demand".into()));
    assert_eq!((&banana["requests"]["cpu_milli"], &banana["requests"]["pods"]), (&3_125.into(), &5.into()));
    let first: Vec<&str> = banana["types"]
        .as_array()
        .unwrap()
        .iter()
        .map(|array| array["instance_type"].as_str().unwrap())
        .take(3)
        .collect();
    assert_eq!(first, ["t3a.xlarge", "c5a.xlarge", "t3.xlarge"], "in the order of us-east-1 prices");
    assert_eq!(json["currency"], "CNY");
    let (out, err, code) = pack(&[&both[..], &["--explain", "default/inflate-1"]].concat());
    assert_eq!((err.as_str(), code), ("", Some(0)));
    insta::assert_snapshot!("pack_tutorial", out);
    assert!(out.contains("banana: not usable: did not tolerate taint example.com/special-taint:NoSchedule"), "{out}");
}

#[test]
fn pack_places_dump_on_existing_and_new_nodes() {
    let (out, err, code) = pack(&[&DUMP[..], &["--explain", "render-0"]].concat());
    assert_eq!((err.as_str(), code), ("", Some(0)));
    insta::assert_snapshot!("pack_dump", out);
    let json = answer(&DUMP);
    assert_eq!(json["existing_nodes"][0]["node"], "ip-10-0-0-2", "the first is full, the third is cordoned");
    assert_eq!(json["launches"][0]["requests"]["cpu_milli"], 3_100, "the DaemonSet's pod counts");
    assert_eq!((&json["summary"]["pods_waiting"], &json["summary"]["pods_pending"]), (&4.into(), &2.into()));
}

#[test]
fn json_has_the_keys_that_the_documentation_lists() {
    let documentation = include_str!("../../docs/outputs.md");
    let json = answer(&[&DUMP[..], &["--explain", "render-0"]].concat());
    let parts = [
        "/summary",
        "/launches/0",
        "/launches/0/types/0",
        "/existing_nodes/0",
        "/pending/0",
        "/explanation",
        "/explanation/node_pools/0",
        "/explanation/node_pools/1/types_refused/1/short",
        "/explanation/node_pools/1/types_refused/0",
    ];
    let inner = parts.into_iter().flat_map(|part| json.pointer(part).unwrap().as_object().unwrap().keys());
    for key in json.as_object().unwrap().keys().chain(inner) {
        assert!(documentation.contains(&format!("`{key}`")), "docs/outputs.md does not explain `{key}`");
    }
}

#[test]
fn unanswerable_pack_request_gets_helpful_error() {
    let place = Place::new();
    place.put("pods.csv", "name,replicas,cpu,memory\nweb,1,1,1Gi\n");
    place.put("broken.csv", "name,replicas,cpu,memory\nweb,1,much,1Gi\n");
    for (arguments, words) in [
        (&["cluster.yaml", "pods.csv"][..], "no region given or found in the files"),
        (&["cluster.yaml", "--region", "us-east-9"], "no prices for region `us-east-9`"),
        (&["cluster.yaml", "--region", "us-east-1", "--zones", "us-west-2a"], "us-east-1 has no zone `us-west-2a`"),
        (&["pods.csv", "--region", "us-east-1"], "there is no NodePool"),
        (&["pool.yaml", "--region", "us-east-1"], "there is no pod"),
        (&["cluster.yaml", "broken.csv", "--region", "us-east-1"], "broken.csv:2: `much` is no amount of cpu"),
        (&["cluster.yaml", "pods.csv", "--region", "us-east-1", "--explain", "wep-1"], "did you mean `web-1`?"),
        (&["nowhere.yaml", "--region", "us-east-1"], "no such file"),
    ] {
        let cluster = std::fs::read_to_string(place.path("cluster.yaml")).unwrap();
        place.put("pool.yaml", cluster.split("---\napiVersion: apps/v1").next().unwrap());
        let (out, err, code) = place.nodecast(&[&["pack"], arguments].concat());
        assert_eq!((out.as_str(), code), ("", Some(2)), "{arguments:?}: {err}");
        assert!(err.contains(words) && err.contains("help: "), "{arguments:?}: {err}");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let files =
        ["provisioners.yaml", "daemonsets.yaml", "inflate.yaml"].map(|file| root.join("scenarios/pack").join(file));
    let options = Options {
        region: Some("us-east-1".to_owned()),
        zones: Vec::new(),
        karpenter: Some("v0.27".parse().unwrap()),
        feature_gates: None,
        packer: PackerKind::Karpenter,
        time_limit: None,
        repack: false,
    };
    let prices = Prices::open(None).unwrap();
    let packed = nodecast::program::pack::pack(&files, Some("inflate-banana"), &prices, &options).unwrap();
    let instance = PackedInstance::new("pods-of-two-provisioners-of-a-tutorial".to_owned(), &packed.answer, 0.5);
    let suite = SuiteAnswer::new("v0.27".to_owned(), "karpenter", vec![instance]);
    for width in [79, 60, 40] {
        assert_fits(&packed.answer.table(), &packed.answer.table_within(Some(width)), width);
        assert_fits(&suite.table(None), &suite.table(Some(width)), width);
    }
    assert_eq!(packed.answer.table_within(Some(400)), packed.answer.table());
    // NodePool and type say of which node the columns below are.
    let narrow = packed.answer.table_within(Some(60));
    assert!(narrow.matches("\nNODEPOOL  CHEAPEST ").count() > 1, "{narrow}");
}

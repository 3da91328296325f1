//! Fleets: usage outside the clusters, planted commitments, and the FOCUS file read back.

use std::collections::BTreeMap;
use std::fs;

use nodecast_observed::bill::{Amount, ChargeKind, Cluster, Ledger, ReadOptions, Totals, read_file};

use crate::cli::Place;
use crate::fleet::{FLEET, chargeback, nanos, run};

/// A row of `out/chargeback.csv` by cluster and account, with its amounts by column.
fn row(place: &Place, cluster: &str, account: &str) -> BTreeMap<String, i128> {
    let rows = chargeback(place);
    let found = rows.iter().find(|row| row[0] == cluster && row[1] == account);
    let found = found.unwrap_or_else(|| panic!("no row {cluster} {account} in {rows:?}"));
    rows[0].iter().cloned().zip(found).skip(3).map(|(title, cell)| (title, nanos(cell))).collect()
}

#[test]
fn usage_outside_clusters_competes_for_plans() {
    let place = Place::new();
    run(&place, FLEET, &[]);
    let alone = row(&place, "b", "right");
    // By list price per hour: 0.0625 in c5 of the owner's account, in the second hour 0.02 of Windows too.
    place.put(
        "other.csv",
        "list,family,hour,region,account,platform\n\
         0.0625,c5,2026-03-02T00:00:00Z,us-east-1,right,\n\
         0.0625,c5,1,us-east-1,000000000032,linux\n\
         0.02,c5,1,us-east-1,right,windows\n\
         0.5,lambda,0,eu-west-1,left,\n",
    );
    let text = format!("{FLEET}other_usage: other.csv\nchargeback: {{ unused: owner }}\n");
    let summary = run(&place, &text, &["--focus", "focus"]);
    let outside = row(&place, "", "right");
    assert_eq!(outside["list"], 145_000_000);
    assert!(outside["savings_plans"] > 0 && outside["unused_share"] == 0, "{outside:?}");
    assert_eq!(outside["on_demand"] + outside["covered_list"], outside["list"]);
    let with = row(&place, "b", "right");
    assert_eq!(with["list"], alone["list"]);
    assert!(with["savings_plans"] < alone["savings_plans"], "{with:?} {alone:?}");
    let lambda = row(&place, "", "left");
    assert_eq!((lambda["net"], lambda["covered_list"]), (500_000_000, 0), "the plan has no discount on Lambda");
    let assumptions = summary["assumptions"].to_string();
    assert!(assumptions.contains("other.csv") && assumptions.contains("$0.645"), "{assumptions}");
    let totals = read_back(&place, "b");
    assert_eq!(totals.everything().amortised, money(row(&place, "total", "")["net"]));
    place.put("fleet.yaml", &text.replace("0.05, discount: 30%", "0.5, discount: 30%, lambda_discount: 17%"));
    let (out, err, code) = place.nodecast(&["run", "fleet.yaml", "--out", "out", "--quiet"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("no cluster, left"), "{out}");
    assert!(row(&place, "", "left")["covered_list"] > 0, "what the owner's account leaves is for others");
}

/// Nano-dollars as an amount of a bill.
fn money(nanos: i128) -> Amount {
    Amount::from_picos(nanos * 1_000)
}

/// The lines of a cluster in `focus/focus.csv`.
fn read_back(place: &Place, cluster: &str) -> Totals {
    let mut ledger = Ledger::new(Cluster { name: cluster.to_owned(), ..Cluster::default() });
    let file = place.path("focus/focus.csv");
    read_file(&file, &ReadOptions::default(), &mut |line| ledger.take(line)).unwrap();
    ledger.finish().unwrap()
}

/// A NodePool of c5 on Spot, and a Deployment for it.
const MIXED: &str = "\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: spot}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [c5]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: batch, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: batch}}
  template:
    metadata: {labels: {app: batch}}
    spec:
      nodeSelector: {karpenter.sh/capacity-type: spot}
      containers:
        - {name: batch, image: batch, resources: {requests: {cpu: 1500m, memory: 1Gi}}}
";

#[test]
fn focus_file_reads_back_to_chargeback() {
    let place = Place::new();
    place.put("mixed.yaml", MIXED);
    let scenario = "name: mixed\nregion: us-east-1\nstart: 2026-03-02T00:00:00Z\nduration: 5h\nseed: 7\n\
                    manifests: [cluster.yaml, mixed.yaml]\n";
    place.put("mixed-scenario.yaml", scenario);
    let text = FLEET
        .replace("duration: 2h", "duration: 5h")
        .replace("name: b, scenario: scenario.yaml", "name: b, scenario: mixed-scenario.yaml");
    let text = format!("{text}discount: 5%\n");
    run(&place, &text, &["--focus", "focus"]);
    let mut all = Amount::default();
    for (cluster, account) in [("a-1", "left"), ("a-2", "left"), ("b", "right")] {
        let (totals, row) = (read_back(&place, cluster), row(&place, cluster, account));
        assert_eq!(totals.total().amortised, money(row["net"]), "{cluster}");
        assert!(totals.is_hourly() && totals.hours_without_lines().is_empty());
        all += totals.total().amortised;
        let spot = totals.groups.iter().filter(|(group, _)| group.name() == "nodes, Spot");
        let spot: Amount = spot.map(|(_, sums)| sums.amortised).sum();
        assert_eq!(spot, money(row["spot"]), "{cluster}");
    }
    let totals = read_back(&place, "b");
    let total = row(&place, "total", "");
    assert_eq!(totals.everything().amortised, money(total["net"]));
    let fees = &totals.others.account[&ChargeKind::CommitmentFee];
    assert_eq!((fees.billed, fees.amortised), (money(250_000_000), Amount::default()));
    for (cluster, nodes) in [("a-1", "nodes, On-Demand"), ("b", "nodes, Spot")] {
        let groups: Vec<String> = read_back(&place, cluster).groups.keys().map(|group| group.name().into()).collect();
        for name in [nodes, "EBS volumes", "control plane"] {
            assert!(groups.iter().any(|group| group == name), "{name} is not in {groups:?}");
        }
    }
    assert!(totals.spot_prices().count() > 4, "each Spot pool has a price in each hour");
    let words = ["backtest", "mixed-scenario.yaml", "--from", "out/b", "--bill", "focus/focus.csv", "--cluster", "b"];
    let words = [&words[..], &["--replications", "1", "--format", "json", "--quiet", "--out", "judged"]].concat();
    let (out, err, code) = place.nodecast(&words);
    assert_eq!(code, Some(0), "{out}{err}");
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    let bill = &answer["bill"];
    let amortised = totals.total().amortised.as_f64();
    assert!((bill["amortised"].as_f64().unwrap() - amortised).abs() < 1e-9, "{bill} {amortised}");
    assert!(bill["hints"].as_array().unwrap().is_empty(), "{bill}");
}

#[test]
fn recommend_shows_other_spot_shares() {
    let place = Place::new();
    place.put("mixed.yaml", MIXED);
    let scenario = "name: mixed\nregion: us-east-1\nstart: 2026-03-02T00:00:00Z\nduration: 4h\nseed: 7\n\
                    manifests: [cluster.yaml, mixed.yaml]\n";
    place.put("mixed-scenario.yaml", scenario);
    let text = FLEET
        .replace("duration: 2h", "duration: 4h\nreplications: 1")
        .replace("name: b, scenario: scenario.yaml", "name: b, scenario: mixed-scenario.yaml");
    let answer = |text: &str| -> serde_json::Value {
        place.put("fleet.yaml", text);
        let (out, err, code) = place.nodecast(&["recommend", "fleet.yaml", "--format", "json", "--quiet"]);
        assert_eq!(code, Some(0), "{out}{err}");
        serde_json::from_str(&out).unwrap()
    };
    let answer_with_spot = answer(&text);
    for offer in answer_with_spot["offers"].as_array().unwrap() {
        let cases = offer["spot"].as_array().unwrap();
        let amounts = |key: &str| cases.iter().map(|case| case[key].as_f64().unwrap()).collect::<Vec<_>>();
        let (changes, shares, on_demand) = (amounts("change"), amounts("spot_share"), amounts("on_demand"));
        assert_eq!(changes, [-0.2, 0.0, 0.2]);
        assert!(shares[0] < shares[1] && shares[1] <= shares[2], "{offer}");
        assert!(on_demand[0] > on_demand[1] && on_demand[1] >= on_demand[2], "{offer}");
        assert!((offer["today"].as_f64().unwrap() - amounts("cost")[1]).abs() < 1e-9, "{offer}");
        assert!(amounts("best")[0] >= amounts("best")[2], "{offer}");
    }
    let years: Vec<u64> =
        answer_with_spot["offers"].as_array().unwrap().iter().map(|offer| offer["years"].as_u64().unwrap()).collect();
    assert_eq!(years, [1, 1, 3]);
    let without = answer(&text.replace("mixed-scenario.yaml", "scenario.yaml"));
    assert_eq!(without["offers"][0]["spot"], serde_json::json!([]), "no cluster uses Spot");
}

/// A cluster without pods.
fn put_empty_cluster(place: &Place) {
    let nodes = fs::read_to_string(place.path("cluster.yaml")).unwrap();
    place.put("nodes.yaml", nodes.split("---\napiVersion: apps/v1").next().unwrap());
    let scenario =
        "name: empty\nregion: us-east-1\nstart: 2026-03-02T00:00:00Z\nduration: 1d\nseed: 7\nmanifests: [nodes.yaml]\n";
    place.put("empty.yaml", scenario);
}

#[test]
fn planted_commitments_are_found_with_bound() {
    let place = Place::new();
    put_empty_cluster(&place);
    place.put(
        "fleet.yaml",
        "fleet: planted\nclusters: [{ name: empty, scenario: empty.yaml }]\nother_usage: used.csv\n",
    );
    let mut used = "hour,account,region,family,platform,list\n".to_owned();
    for hour in 0..24 {
        let (m5, c5) = if hour < 12 { (10, 4) } else { (4, 10) };
        used += &format!("{hour},account,us-east-1,m5,linux,{m5}\n{hour},account,us-east-1,c5,linux,{c5}\n");
    }
    place.put("used.csv", &used);
    let table = "region,family,one_year_all_upfront,three_years_all_upfront,one_year_no_upfront\n";
    place.put("prices/commitments.csv", &format!("{table}us-east-1,m5,0.45,0.6,0.4\nus-east-1,c5,0.45,0.6,0.4\n"));
    let words = ["recommend", "fleet.yaml", "--levers", "commitments", "--terms", "1y", "--payment", "no_upfront"];
    let words = [&words[..], &["--compute-discount", "25%", "--pricing-data", "prices", "--quiet"]].concat();
    let (out, err, code) = place.nodecast(&[&words[..], &["--format", "json"]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    let offer = &answer["offers"][0];
    let near = |value: &serde_json::Value, wanted: f64, share: f64| {
        let value = value.as_f64().unwrap();
        assert!((value - wanted).abs() <= share * wanted, "{value} is not {wanted} in {offer}");
    };
    let plans = offer["plans"].as_array().unwrap();
    let plans: Vec<&str> = plans.iter().map(|plan| plan["class"].as_str().unwrap()).collect();
    assert_eq!(plans, ["us-east-1 c5", "us-east-1 m5", "all families and regions"]);
    for (number, wanted) in [2.4, 2.4, 4.5].into_iter().enumerate() {
        near(&offer["plans"][number]["commitment"], wanted, 0.02);
    }
    for (key, wanted) in [
        ("cost", 9.3),
        ("bound", 9.3),
        ("repriced", 9.3),
        ("on_demand", 14.0),
        ("families_alone", 10.8),
        ("compute_alone", 10.5),
    ] {
        near(&offer[key], wanted, 0.001);
    }
    assert!(offer["bound"].as_f64() <= offer["cost"].as_f64(), "{offer}");
    let (out, err, code) = place.nodecast(&words);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("no plans of these classes cost less than $9.3"), "{out}");
    assert!(out.contains("that `other_usage` states"), "{out}");
}

#[test]
fn quotas_show_refused_launches_and_shared_faults() {
    let place = Place::new();
    let text = |vcpus: u32| {
        format!(
            "{FLEET}shared: {{ quotas: [{{ account: left, region: us-east-1, on_demand: {{ standard: {vcpus} }} }}] }}\n\
             faults:\n  - {{ at: 20m, for: 10m, zone_outage: {{ zone_id: use1-az1 }}, accounts: [left] }}\n"
        )
    };
    let summary = run(&place, &text(3), &[]);
    let rows = summary["quotas"].as_array().unwrap();
    let left = rows.iter().find(|row| row["account"] == "left").unwrap();
    assert_eq!((&left["quota"], &left["limit"]), (&"On-Demand standard".into(), &3.into()), "{left}");
    let refused: u64 =
        left["clusters"].as_array().unwrap().iter().map(|cluster| cluster["refused"].as_u64().unwrap()).sum();
    assert!(refused > 0 && left["refused"] == refused, "{left}");
    assert!(left["at_limit_seconds"].as_f64().unwrap() > 600.0, "{left}");
    let fault = &left["faults"][0];
    assert!(fault["fault"].as_str().unwrap().ends_with("zone_outage: {zone: use1-az1}"), "{fault}");
    assert!(fault["survives"] == false && fault["refused"].as_u64() > Some(0), "{fault}");
    let page = fs::read_to_string(place.path("out/index.html")).unwrap();
    assert!(page.contains("Survives faults") && page.contains("no (at: 20m"), "the page has the table");
    let right = rows.iter().find(|row| row["account"] == "right").unwrap();
    assert_eq!((right["refused"].as_u64(), right["faults"].as_array().map(Vec::len)), (Some(0), Some(0)), "{right}");
    let summary = run(&place, &text(640), &[]);
    let rows = summary["quotas"].as_array().unwrap();
    let left = rows.iter().find(|row| row["account"] == "left").unwrap();
    assert_eq!((&left["peak"], &left["at_limit_seconds"]), (&4.into(), &0.0.into()), "{left}");
    assert_eq!((&left["faults"][0]["survives"], &left["faults"][0]["peak"]), (&true.into(), &4.into()), "{left}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn init_writes_fleet_that_runs() {
    let place = Place::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let dump = fs::read_to_string(format!("{data}/dump/cluster.yaml")).unwrap();
    place.put("prod.yaml", &dump);
    place.put("jobs.yaml", &fs::read_to_string(format!("{data}/clusters/05-spark-operator.yaml")).unwrap());
    let words = ["init", "--fleet", "--from", "prod.yaml", "--from", "jobs.yaml"];
    let (_, err, code) = place.nodecast(&[&words[..], &["both"]].concat());
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("--region us-east-1"), "{err}");
    let (out, err, code) = place.nodecast(&[&words[..], &["--region", "us-east-1", "--force", "both"]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    for cluster in ["prod", "jobs"] {
        let (out, err, code) = place.nodecast(&["validate", &format!("both/{cluster}/scenario.yaml")]);
        assert_eq!(code, Some(0), "{out}{err}");
    }
    let words = ["run", "both/fleet.yaml", "--duration", "30m", "--out", "out", "--format", "json", "--quiet"];
    let (out, err, code) = place.nodecast(&words);
    assert_eq!(code, Some(0), "{out}{err}");
    let summary: serde_json::Value = serde_json::from_str(&out).unwrap();
    let names: Vec<&str> =
        summary["clusters"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["prod", "jobs"]);
    assert!(summary["figures"]["total"].as_f64() > Some(0.0));
}

#[test]
fn interval_covers_draws_of_seeds() {
    let place = Place::new();
    place.put("fleet.yaml", &FLEET.replace("seed: 7", "seed: 7\nreplications: 4"));
    let words = ["recommend", "fleet.yaml", "--levers", "commitments", "--compute-discount", "25%", "--format", "json"];
    let answer = || {
        let (out, err, code) = place.nodecast(&[&words[..], &["--terms", "1y", "--quiet"]].concat());
        assert_eq!(code, Some(0), "{out}{err}");
        out
    };
    let (first, second) = (answer(), answer());
    assert_eq!(first, second);
    let answer: serde_json::Value = serde_json::from_str(&first).unwrap();
    for offer in answer["offers"].as_array().unwrap() {
        let [low, high] = [0, 1].map(|end| offer["interval"][end].as_f64().unwrap());
        assert!(low <= offer["committed"].as_f64().unwrap() + 0.002 && low <= high, "{offer}");
    }
}

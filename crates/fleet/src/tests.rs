//! Errors of fleet files with their places, and what a fleet overrides.

use std::path::{Path, PathBuf};

use nodecast_model::text::error::InputError;
use nodecast_prices::Catalog;

use crate::{LoadedCluster, LoadedFleet, Overrides, Sharing, load};

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: web, resources: { requests: { cpu: 500m, memory: 256Mi } } }] }
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: default }
spec: { template: { spec: { nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }, requirements: [] } } }
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: { name: default }
spec: { amiFamily: AL2023 }
";

/// A directory with scenarios `web.yaml` of us-east-1, `own.yaml` with commitments and a quota of its own, and `cn.yaml` of Beijing.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("cluster.yaml", DEPLOYMENT);
    let head = "name: web\nduration: 2h\nstart: 2026-03-02T00:00:00Z\nmanifests: [cluster.yaml]\n";
    write("web.yaml", &format!("{head}region: us-east-1\n"));
    write("long.yaml", &format!("{}region: us-east-1\n", head.replace("2h", "3h")));
    write("cn.yaml", &format!("{head}region: cn-north-1\n"));
    let own = "region: us-east-1
ec2:
  quotas: { standard: 70 }
  billing: { discount: 3%, savings_plans: [{ commitment: 1, discount: 20% }] }
";
    write("own.yaml", &format!("{head}{own}"));
    directory
}

fn loaded(directory: &Path, text: &str) -> Result<LoadedFleet, InputError> {
    let file: PathBuf = directory.join("fleet.yaml");
    std::fs::write(&file, text).unwrap();
    load(&file, Catalog::embedded().unwrap(), &Overrides::default())
}

const ACCOUNTS: &str = "fleet: two
accounts: [{ id: \"000000000017\", name: shop }, { id: \"000000000018\", name: data, sharing: false }]
clusters:
  - { name: web, scenario: web.yaml, account: shop }
";

#[test]
fn errors_have_place_and_way_out() {
    let directory = directory();
    let one = "clusters: [{ name: web, scenario: web.yaml }]\n";
    let plan = |keys: &str| format!("{ACCOUNTS}commitments: {{ savings_plans: [{{ id: p, {keys} }}] }}\n");
    let reserved = |keys: &str| format!("{ACCOUNTS}commitments: {{ reserved_instances: [{{ id: r, {keys} }}] }}\n");
    let cases: Vec<(String, &str, &str, &str)> = vec![
        (format!("fleet: f\naccounts: [{{ id: 17 }}]\n{one}"), "17", "is a number", "\"000000000017\""),
        (format!("fleet: f\naccounts: [{{ id: \"17a\" }}]\n{one}"), "\"17a\"", "not an account id", "id: \""),
        (
            format!("fleet: f\naccounts: [{{ id: \"000000000017\" }}, {{ id: \"000000000017\", name: b }}]\n{one}"),
            "\"000000000017\", name: b",
            "have one id",
            "remove one",
        ),
        (
            format!(
                "fleet: f\naccounts: [{{ id: \"000000000017\", payer: true, group: g }}]\nsharing: restricted\n{one}"
            ),
            "g }",
            "the payer account",
            "remove `group`",
        ),
        (
            format!("fleet: f\naccounts: [{{ id: \"000000000017\", group: g }}]\n{one}"),
            "g }",
            "`group` has no effect",
            "sharing: prioritized",
        ),
        (
            format!(
                "fleet: f\naccounts: [{{ id: \"000000000017\", payer: yes }}, {{ id: \"000000000018\", payer: yes }}]\n{one}"
            ),
            "yes }]",
            "two accounts are the payer",
            "keep `payer: true`",
        ),
        (
            format!(
                "fleet: f\naccounts: [{{ id: \"000000000017\", zones: {{ us-east-1a: use1-az4, us-east-1b: use1-az4 }} }}]\n{one}"
            ),
            "use1-az4 }",
            "have the id `use1-az4`",
            "correct one",
        ),
        (
            "fleet: f\nclusters: [{ name: a, scenario: web.yaml }, { name: a, scenario: web.yaml }]\n".into(),
            "a, scenario: web.yaml }]",
            "two clusters",
            "rename",
        ),
        (
            "fleet: f\nclusters: [{ name: a, scenario: web.yaml, count: 3 }, { name: a-2, scenario: web.yaml }]\n"
                .into(),
            "a-2",
            "also the name of a copy",
            "rename",
        ),
        (ACCOUNTS.replace("account: shop", "account: shep"), "shep", "unknown account `shep`", "`shop`"),
        (ACCOUNTS.replace(", account: shop", ""), "web, scenario", "has no account", "`shop` and `data`"),
        (ACCOUNTS.replace("account: shop", "account: shop, policy: fast"), "fast", "no policy `fast`", "it has"),
        (ACCOUNTS.replace("web.yaml", "wab.yaml"), "wab.yaml", "no such file", "web.yaml"),
        (ACCOUNTS.replace("account: shop", "account: shop, set: { ec2.spat: 1 }"), "ec2.spat", "ec2", "spot"),
        (
            format!("{ACCOUNTS}start: 2026-03-02T00:30:00Z\n"),
            "2026-03-02T00:30",
            "not on a full hour",
            "2026-06-01T00:00:00Z",
        ),
        (
            plan("owner: shup, kind: compute, commitment: 1, discount: 9%"),
            "shup",
            "owner `shup` is not an account",
            "shop",
        ),
        (plan("owner: shop, kind: compute, commitment: 0, discount: 9%"), "0, discount", "`commitment` is 0", "remove"),
        (
            plan("owner: shop, kind: compute, family: m5, commitment: 1, discount: 9%"),
            "m5, commitment",
            "has a `family`",
            "ec2_instance",
        ),
        (
            plan("owner: shop, kind: ec2_instance, family: m5, commitment: 1, discount: 9%"),
            "{ id: p",
            "has no `region`",
            "add `region`",
        ),
        (
            plan("owner: shop, kind: ec2_instance, family: m55, region: us-east-1, commitment: 1, discount: 9%"),
            "m55",
            "unknown instance family `m55`",
            "m5",
        ),
        (
            plan("owner: shop, kind: ec2_instance, family: m5, region: us-east-9, commitment: 1"),
            "us-east-9",
            "us-east-9",
            "us-east-",
        ),
        (
            plan(
                "owner: shop, kind: compute, commitment: 1, discount: 9%, family_discounts: { m5: 8% }, prices: { m5.large: 0.06 }",
            ),
            "m5.large",
            "both a price and a discount",
            "keep one",
        ),
        (
            reserved("owner: shop, region: us-east-1, type: m5.large, count: 1, per_hour: 0.06, zone_id: us-east-1a"),
            "us-east-1a",
            "no account has a zone",
            "its id is `use1-az",
        ),
        (
            format!(
                "{ACCOUNTS}shared: {{ quotas: [{{ account: shop, region: us-east-1, on_demand: {{ standart: 5 }} }}] }}\n"
            ),
            "standart",
            "standart",
            "standard",
        ),
        (
            format!("{ACCOUNTS}faults: [{{ at: 1h, zone_outage: {{ zone: us-east-1a }} }}]\n"),
            "zone: us-east-1a",
            "`zone_id`, not `zone`",
            "use1-az4",
        ),
        (
            format!("{ACCOUNTS}faults: [{{ at: 1h, zone_outage: {{ zone_id: use1-az4 }}, clusters: [wob] }}]\n"),
            "wob",
            "unknown cluster `wob`",
            "web",
        ),
        (
            format!("{ACCOUNTS}  - {{ name: cn, scenario: cn.yaml, account: data }}\n"),
            "cn.yaml",
            "partition aws, and `cn` has aws-cn",
            "fleet of their own",
        ),
        (
            format!("{ACCOUNTS}  - {{ name: long, scenario: long.yaml, account: data }}\n"),
            "long.yaml",
            "duration 2h",
            "add `duration`",
        ),
        (
            format!("{}discount: 4%\n", ACCOUNTS.replace("web.yaml", "own.yaml")),
            "own.yaml",
            "sets `ec2.billing.discount`",
            "remove",
        ),
        (
            plan("owner: shop, kind: compute, commitment: 1, discount: 9%").replace("web.yaml", "own.yaml"),
            "own.yaml",
            "sets `ec2.billing.savings_plans`",
            "remove",
        ),
        (
            format!(
                "{}shared: {{ quotas: [{{ account: shop, region: us-east-1 }}] }}\n",
                ACCOUNTS.replace("web.yaml", "own.yaml")
            ),
            "own.yaml",
            "sets `ec2.quotas`",
            "shared.quotas",
        ),
        (format!("{ACCOUNTS}comitments: {{}}\n"), "comitments", "unknown key `comitments`", "commitments"),
    ];
    for (text, marked, message, help) in cases {
        let error = loaded(directory.path(), &text).expect_err(&text);
        assert!(error.message().contains(message), "{text}\n{}", error.message());
        assert!(error.way_out().unwrap_or_default().contains(help), "{text}\n{error:?}");
        let place = error.place().unwrap_or_else(|| panic!("{text}\n{error:?}"));
        let line = text.lines().nth(place.line - 1).unwrap();
        assert!(line[place.column - 1..].starts_with(marked), "{text}\n{error:?}");
    }
}

#[test]
fn conditions_apply_to_clusters_of_region() {
    let directory = directory();
    let text = |conditions: &str| {
        format!(
            "fleet: f\nclusters: [{{ name: web, scenario: web.yaml, count: 2 }}]\nshared: {{ conditions: [{conditions}] }}\n"
        )
    };
    let capacity = |conditions: &str| {
        let fleet = loaded(directory.path(), &text(conditions)).unwrap();
        let of =
            |cluster: &LoadedCluster| (cluster.scenario.ec2.cloud.capacity, cluster.scenario.ec2.cloud.interruptions);
        fleet.clusters.iter().map(of).collect::<Vec<_>>()
    };
    let usual = capacity("{ region: eu-west-1, capacity: updown, interruptions: high }");
    let rough = capacity("{ region: us-east-1, capacity: updown, interruptions: high }");
    assert_eq!(usual.len(), rough.len());
    assert!(usual.iter().zip(&rough).all(|(one, other)| one.0 != other.0 && one.1 != other.1), "{usual:?} {rough:?}");
    let twice = loaded(directory.path(), &text("{ region: us-east-1 }, { region: us-east-1 }")).unwrap_err();
    assert!(twice.to_string().contains("two entries of conditions"), "{twice}");
}

#[test]
fn copies_share_scenario_unless_fault_names_one() {
    let directory = directory();
    let text = "fleet: f
start: 2026-06-01T00:00:00Z
duration: 1h
accounts: [{ id: \"000000000017\", zones: { us-east-1a: use1-az4, us-east-1b: use1-az6 } }]
clusters: [{ name: web, scenario: web.yaml, count: 3, set: { ec2.spot.prices: constant } }]
faults:
  - { at: 10m, for: 20m, zone_outage: { zone_id: use1-az6 }, clusters: [web-2] }
  - { at: 30m, for: 5m, api_latency: { factor: 3 } }
";
    let fleet = loaded(directory.path(), text).unwrap();
    let names: Vec<&str> = fleet.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    assert_eq!(names, ["web-1", "web-2", "web-3"]);
    let scenario = |at: usize| &fleet.clusters[at].scenario;
    assert!(std::sync::Arc::ptr_eq(scenario(0), scenario(2)));
    assert_eq!([0, 1, 2].map(|at| scenario(at).ec2.cloud.faults.len()), [1, 2, 1]);
    let faults = format!("{:?}", scenario(1).ec2.cloud.faults);
    assert!(faults.contains("us-east-1b"), "{faults}");
    assert_eq!(scenario(0).duration.to_string(), "1h");
    assert_eq!(fleet.start.to_string(), "2026-06-01T00:00:00Z");
}

#[test]
fn commitments_that_cover_nothing_are_warnings() {
    let directory = directory();
    let text = format!(
        "{}sharing: off
start: 2026-06-01T00:00:00Z
commitments:
  savings_plans:
    - {{ id: old, owner: shop, kind: compute, commitment: 1, discount: 9%, start: 2025-05-01T00:00:00Z, term: 1y }}
    - {{ id: far, owner: data, kind: ec2_instance, family: m5, region: us-east-1, commitment: 1, term: 1y, payment: no_upfront, prices: {{ m5.large: 0.2 }} }}
",
        ACCOUNTS
    );
    let fleet = loaded(directory.path(), &text).unwrap();
    let warnings: Vec<String> =
        fleet.warnings.iter().map(|warning| warning.lint().unwrap().name().to_owned()).collect();
    assert_eq!(warnings, ["COMMITMENT_ENDED", "PLAN_PRICE", "COMMITMENT_WITHOUT_USAGE"]);
    assert_eq!(fleet.fleet.sharing, Sharing::Off);
    assert_eq!(fleet.fleet.plans.len(), 1);
    assert!(fleet.fleet.plans[0].discount.is_some_and(|discount| (300_000..400_000).contains(&discount)));
}

/// The error of a fleet whose `used.csv` has this row, in its third line.
fn usage_error(row: &str) -> InputError {
    let directory = directory();
    let text = format!("hour,account,region,family,platform,list\n0,shop,us-east-1,m5,,1.5\n{row}\n");
    std::fs::write(directory.path().join("used.csv"), text).unwrap();
    loaded(directory.path(), &format!("{ACCOUNTS}other_usage: used.csv\n")).unwrap_err()
}

#[test]
fn errors_of_other_usage_name_their_cell() {
    for (row, column, message, help) in [
        ("noon,shop,us-east-1,m5,,1", 1, "`noon` is not an hour", "2026-06-01T13:00:00Z"),
        ("2026-03-02T00:30:00Z,shop,us-east-1,m5,,1", 1, "not on a full hour", "start of a clock hour"),
        ("1,shp,us-east-1,m5,,1", 3, "`shp` is not one of this fleet", "did you mean `shop`"),
        ("1,data,us-est-1,m5,,1", 8, "no prices for region `us-est-1`", "did you mean `us-east-1`"),
        ("1,data,us-east-1,m5.large,,1", 18, "no instance family `m5.large`", "write the family: `m5`"),
        ("1,data,us-east-1,Fargate,,1", 18, "no instance family `Fargate`", ""),
        ("1,data,us-east-1,m5,win,1", 21, "unknown platform `win`", "windows"),
        ("1,data,us-east-1,m5,,-1", 22, "`-1` is not an amount", "nine decimals"),
        ("1,data,us-east-1,m5,1", 1, "no CSV file with one header", "`platform`"),
    ] {
        let error = usage_error(row);
        let place = error.place().unwrap_or_else(|| panic!("{row}: {error} has no place"));
        assert!(place.file.ends_with("used.csv"), "{row}: {error}");
        assert_eq!((place.line, place.column), (3, column), "{row}: {error}");
        assert!(error.message().contains(message), "{row}: {error}");
        assert!(error.way_out().unwrap_or_default().contains(help), "{row}: {:?}", error.way_out());
    }
    let directory = directory();
    let error = loaded(directory.path(), &format!("{ACCOUNTS}other_usage: none.csv\n")).unwrap_err();
    assert!(error.message().contains("no such file") && error.place().unwrap().line == 5, "{error}");
    std::fs::write(directory.path().join("used.csv"), "hour,account,region,list\n").unwrap();
    let error = loaded(directory.path(), &format!("{ACCOUNTS}other_usage: used.csv\n")).unwrap_err();
    assert!(error.message().contains("no column `family`"), "{error}");
}

#[test]
fn other_usage_outside_run_is_warned_of() {
    let directory = directory();
    let text = "hour,account,region,family,list\n2026-03-02T01:00:00Z,shop,us-east-1,m5,1\n2026-03-02T02:00:00Z,shop,us-east-1,m5,1\n2026-03-01T23:00:00Z,shop,us-east-1,m5,1\n";
    std::fs::write(directory.path().join("used.csv"), text).unwrap();
    let fleet = loaded(directory.path(), &format!("{ACCOUNTS}other_usage: used.csv\n")).unwrap();
    let [(bearer, usage)] = fleet.other_usage.as_slice() else { panic!("{:?}", fleet.other_usage) };
    assert!(bearer.is_outside() && usage.lines.len() == 1 && usage.lines[0].0 == 1, "{usage:?}");
    let warnings: Vec<String> = fleet.warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.iter().any(|warning| warning.contains("2 of 3 rows")), "{warnings:?}");
}

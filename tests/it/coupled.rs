//! Clusters of a fleet on one clock: shared limits bite together, and change nothing where they do not.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use nodecast::catalog::Catalog;
use nodecast::cloud::bill::{BillItem, BillLine};
use nodecast::cloud::quotas::QuotaClass;
use nodecast::cloud::settings::{ApiLimits, BucketSize, CapacityModel, Quotas};
use nodecast::coupled::{self, Demand, Member, MemberRun, QuotaKey, Seeds, SharedLimit};
use nodecast::domain::{SimTime, Symbol, well_known};
use nodecast::scenario::Scenario;
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::EventKind;
use proptest::prelude::*;

use crate::keda::deployment;

const ON_DEMAND: QuotaKey = QuotaKey { class: QuotaClass::Standard, spot: false };

/// A scenario of 40 minutes in which a Deployment of pods with a CPU each grows from 2 to `replicas` at `minute` and shrinks again.
fn growing(replicas: u32, minute: u32, capacity_type: &str) -> Scenario {
    let directory = tempfile::tempdir().unwrap();
    let pool = format!(
        "\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: small}}
spec:
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      requirements:
        - {{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5, c5, r5]}}
        - {{key: karpenter.sh/capacity-type, operator: In, values: [{capacity_type}]}}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {{name: default}}
spec: {{amiSelectorTerms: [{{alias: al2023@latest}}], role: node}}
{}",
        deployment("batch", 2).replace("cpu: 100m", "cpu: \"1\"")
    );
    let scenario = format!(
        "name: growing\nregion: us-east-1\nduration: 40m\nversions: {{ karpenter: v1.13 }}\nmanifests: [cluster.yaml]\n\
         timeline:\n  - {{ at: {minute}m, scale: {{ workload: default/batch, replicas: {replicas} }} }}\n  \
         - {{ at: {}m, scale: {{ workload: default/batch, replicas: 1 }} }}\n",
        minute + 15
    );
    std::fs::write(directory.path().join("cluster.yaml"), pool).unwrap();
    std::fs::write(directory.path().join("scenario.yaml"), scenario).unwrap();
    nodecast::scenario::load(&directory.path().join("scenario.yaml")).unwrap().0
}

/// The scenario with limits of its account.
fn limited(mut scenario: Scenario, quotas: Quotas, api: ApiLimits) -> Scenario {
    let cloud = Arc::make_mut(&mut scenario.ec2.cloud);
    (cloud.quotas, cloud.api) = (quotas, api);
    scenario
}

fn standard(vcpus: u32) -> Quotas {
    Quotas::default().with(QuotaClass::Standard, vcpus)
}

/// Accounts with the zone names of the price data.
static NO_NAMES: BTreeMap<String, String> = BTreeMap::new();

/// One member for each scenario, in accounts with these names.
fn members<'s>(scenarios: &'s [Scenario], accounts: &[&'s str]) -> Vec<Member<'s>> {
    let member = |(scenario, &account): (&'s Scenario, &&'s str)| Member {
        name: "web",
        copy: 0,
        account,
        scenario,
        policy: scenario.for_policy(None).unwrap(),
        seeds: Seeds { market: 7, cluster: 0 },
        keeps_meters: false,
        zones: &NO_NAMES,
    };
    let all = scenarios.iter().zip(accounts).map(member).zip(1_u32..);
    all.map(|(member, copy)| Member { copy, seeds: Seeds { cluster: u64::from(copy), ..member.seeds }, ..member })
        .collect()
}

fn alone(member: &Member<'_>) -> MemberRun {
    let run = coupled::alone(member, Catalog::embedded().unwrap(), &mut |_| ControlFlow::Continue(()));
    run.unwrap().unwrap()
}

fn together(members: &[Member<'_>], shares_pools: bool) -> Vec<MemberRun> {
    let run =
        coupled::together(members, shares_pools, Catalog::embedded().unwrap(), &mut |_| ControlFlow::Continue(()));
    run.unwrap().unwrap()
}

fn demands(runs: &[MemberRun]) -> Vec<&Demand> {
    runs.iter().map(|run| &run.demand).collect()
}

/// Everything that reports are made from, as text.
fn told(outcome: &Outcome) -> String {
    let events: Vec<_> = outcome.record.events.iter().collect();
    format!("{} {events:?} {:?} {:?} {:?}", outcome.event_hash, outcome.record.nodes, outcome.bill, outcome.warnings)
}

fn assert_equal(one: &[MemberRun], other: &[MemberRun]) {
    for (one, other) in one.iter().zip(other) {
        assert_eq!(one.outcome.event_hash, other.outcome.event_hash);
        assert!(told(&one.outcome) == told(&other.outcome), "equal events give unequal records");
        assert!(one.demand == other.demand);
    }
    assert_eq!(one.len(), other.len());
}

/// Messages of launches that were refused.
fn refusals(run: &MemberRun) -> Vec<String> {
    let events = run.outcome.record.events.iter();
    events.filter(|event| event.kind == EventKind::LaunchFailed).map(|event| event.message.to_string()).collect()
}

#[test]
fn one_cluster_gives_results_of_scenario() {
    let scenario = growing(30, 5, "spot");
    let [member] = members(std::slice::from_ref(&scenario), &["a"]).try_into().unwrap();
    let member = Member { seeds: Seeds::single(3), keeps_meters: true, ..member };
    let plain = simulation::run(&scenario, member.policy, Catalog::embedded().unwrap(), 3, &mut |_| {}).unwrap();
    let single = alone(&member);
    assert!(told(&plain) == told(&single.outcome));
    assert_equal(&[single], &together(&[member], true));
}

#[test]
fn shared_quota_bounds_sum_of_clusters() {
    let scenarios: Vec<Scenario> = [(40, 5), (40, 6), (30, 5)]
        .map(|(replicas, minute)| limited(growing(replicas, minute, "on-demand"), standard(96), ApiLimits::default()))
        .into();
    let members = members(&scenarios, &["a", "a", "b"]);
    let single: Vec<MemberRun> = members.iter().map(alone).collect();
    let couplings = coupled::couplings(&members, &demands(&single), false);
    let [coupling] = couplings.as_slice() else { panic!("{couplings:?}") };
    assert_eq!(coupling.members, [0, 1], "the third cluster has an account of its own");
    assert_eq!(coupling.exceeded.first().map(|one| one.limit), Some(SharedLimit::Vcpus(ON_DEMAND)));

    let runs = together(&members[..2], false);
    let end = SimTime::ZERO + scenarios[0].duration;
    let before = coupled::quota_use(&demands(&single[..2]), end);
    let after = coupled::quota_use(&demands(&runs), end);
    assert!(before[0].peak > 96 && before[0].peaks.iter().all(|peak| *peak <= 96), "{before:?}");
    assert!(after[0].peak <= 96 && after[0].peak > 80, "{after:?}");
    assert!(after[0].refused.iter().sum::<u32>() > 0 && after[0].at_limit.as_secs() > 0, "{after:?}");
    let refused: Vec<String> = runs.iter().flat_map(refusals).collect();
    assert!(!refused.is_empty());
    for message in &refused {
        assert!(message.contains("VcpuLimitExceeded (2 clusters of the account use "), "{message}");
        assert!(message.contains(" of 96 vCPUs of the quota On-Demand standard, this cluster "), "{message}");
    }
    assert!(single.iter().all(|run| refusals(run).is_empty()), "alone nothing is refused");
}

#[test]
fn shared_call_bucket_throttles_clusters_together() {
    let mutating = BucketSize { size: 3, per_second: 1 };
    let api = ApiLimits { mutating, ..ApiLimits::default() };
    let scenario = |minute| limited(growing(8, minute, "on-demand"), Quotas::default(), api);
    let scenarios: Vec<Scenario> = (0..5).map(|_| scenario(5)).collect();
    let members = members(&scenarios, &["a"; 5]);
    let single: Vec<MemberRun> = members.iter().map(alone).collect();
    let throttled = |run: &MemberRun| {
        let events = run.outcome.record.events.iter().filter(|event| event.kind == EventKind::CallThrottled);
        events.map(|event| event.message.to_string()).collect::<Vec<_>>()
    };
    assert!(single.iter().all(|run| throttled(run).is_empty()));
    let couplings = coupled::couplings(&members, &demands(&single), false);
    assert_eq!(couplings.first().map(|coupling| coupling.members.len()), Some(5));
    let messages: Vec<String> = together(&members, false).iter().flat_map(throttled).collect();
    assert!(!messages.is_empty());
    for message in messages {
        assert!(message.starts_with("RequestLimitExceeded (5 clusters of the account made "), "{message}");
        assert!(message.contains(" CreateFleet calls in the last minute, this cluster "), "{message}");
    }
}

#[test]
fn shared_pools_couple_clusters_that_compare_depth() {
    let scenarios = [growing(20, 5, "spot"), growing(20, 5, "spot")];
    let members = members(&scenarios, &["a", "b"]);
    let single: Vec<MemberRun> = members.iter().map(alone).collect();
    assert_eq!(coupled::couplings(&members, &demands(&single), false), []);
    let couplings = coupled::couplings(&members, &demands(&single), true);
    assert_eq!(
        couplings.first().and_then(|coupling| coupling.exceeded.first()).map(|one| one.limit),
        Some(SharedLimit::PoolDepth)
    );
    assert_equal(&single, &together(&members, false));
    let runs = together(&members, true);
    let pools = runs.iter().flat_map(|run| &run.demand.pools);
    assert!(pools.clone().count() > 0);
    // No pool gives more than it has.
    let mut live = std::collections::BTreeMap::new();
    let mut steps: Vec<_> = pools.collect();
    steps.sort_by_key(|step| step.at);
    for step in steps {
        let used = live.entry(step.pool).or_insert(0_i64);
        *used += i64::from(step.change);
        assert!(*used <= i64::from(step.capacity), "{step:?}");
    }
}

#[test]
fn names_of_one_zone_share_its_market() {
    let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
    let [first, third] = [0, 2].map(|at| region.zones[at]);
    let in_zone = |zone: Symbol| Scenario { zones: vec![zone], ..growing(12, 5, "spot") };
    let swapped = BTreeMap::from([
        (first.name.to_string(), third.id.to_string()),
        (third.name.to_string(), first.id.to_string()),
    ]);
    let rate = |scenario: &Scenario, zones: &BTreeMap<String, String>| {
        let members = members(std::slice::from_ref(scenario), &["a"]);
        let run = alone(&Member { zones, ..members[0] });
        let is_spot =
            |line: &&BillLine| line.item == BillItem::Instance && line.capacity_type == Some(well_known::SPOT);
        let spot = run.outcome.bill.lines.iter().filter(is_spot);
        spot.map(|line| (line.from, line.instance_type, line.rate)).min().unwrap()
    };
    let (one, _, listed) = rate(&in_zone(first.name), &NO_NAMES);
    let (_, _, same) = rate(&in_zone(third.name), &swapped);
    let (_, _, other) = rate(&in_zone(third.name), &NO_NAMES);
    assert!(same == listed && other != listed, "{one}: {listed}, {same}, {other}");
}

#[test]
fn order_of_members_changes_nothing() {
    let scenarios: Vec<Scenario> = [(40, 5), (24, 7), (30, 5)]
        .map(|(replicas, minute)| limited(growing(replicas, minute, "on-demand"), standard(80), ApiLimits::default()))
        .into();
    let forwards = members(&scenarios, &["a"; 3]);
    let backwards: Vec<Member<'_>> = forwards.iter().rev().copied().collect();
    let mut runs = together(&backwards, false);
    runs.reverse();
    assert_equal(&together(&forwards, false), &runs);
}

/// A value of this process in kB, as `VmHWM`.
#[cfg(target_os = "linux")]
fn kilobytes(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim_matches([':', ' ', '\t']).trim_end_matches(" kB").trim().parse().unwrap()
}

/// Set where a test runs alone in its process.
#[cfg(target_os = "linux")]
const ALONE: &str = "NODECAST_TEST_ALONE";

#[test]
#[cfg(target_os = "linux")]
#[ignore = "slow: .ci/run slow-tests"]
#[allow(clippy::print_stdout)]
fn twenty_coupled_days_need_twenty_times_memory() {
    // In a process of its own: other tests have their memory in the same one.
    if std::env::var_os(ALONE).is_none() {
        let name = "coupled::twenty_coupled_days_need_twenty_times_memory";
        let words = [name, "--exact", "--ignored", "--nocapture"];
        let program = std::env::current_exe().unwrap();
        assert!(std::process::Command::new(program).args(words).env(ALONE, "1").status().unwrap().success());
        return;
    }
    let (scenario, _) = nodecast::scenario::load(std::path::Path::new("scenarios/shop-day/scenario.yaml")).unwrap();
    let scenarios = vec![scenario; 20];
    let members = members(&scenarios, &["a"; 20]);
    let before = kilobytes("VmRSS");
    let begun = std::time::Instant::now();
    let first = alone(&members[0]);
    let (one, one_time) = (kilobytes("VmHWM") - before, begun.elapsed());
    drop(first);
    let begun = std::time::Instant::now();
    let runs = together(&members, true);
    let (all, all_time) = (kilobytes("VmHWM") - before, begun.elapsed());
    println!("one cluster: {one} kB, {one_time:?}; {} coupled clusters: {all} kB, {all_time:?}", runs.len());
    assert!(all <= 20 * one, "{all} kB for twenty, {one} kB for one");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Coupled runs are those of the clusters alone where no joint demand exceeds a limit, and keep the limit otherwise.
    #[test]
    #[ignore = "slow: .ci/run slow-tests"]
    fn coupling_changes_nothing_below_limits(
        clusters in prop::collection::vec((4_u32..40, 3_u32..9, any::<bool>()), 2..5),
        quota in 8_u32..200,
        size in 2_u32..60,
        infinite in any::<bool>(),
    ) {
        let api = ApiLimits { mutating: BucketSize { size, per_second: 1 + size / 10 }, ..ApiLimits::default() };
        let build = |quotas| -> Vec<Scenario> {
            let one = |&(replicas, minute, spot): &(u32, u32, bool)| {
                let mut scenario = limited(growing(replicas, minute, if spot { "spot" } else { "on-demand" }), quotas, api);
                let capacity = if infinite { CapacityModel::Infinite } else { CapacityModel::Static };
                Arc::make_mut(&mut scenario.ec2.cloud).capacity = capacity;
                scenario
            };
            clusters.iter().map(one).collect()
        };
        let accounts = vec!["a"; clusters.len()];
        for vcpus in [quota, 100_000] {
            let scenarios = build(standard(vcpus));
            let members = members(&scenarios, &accounts);
            let single: Vec<MemberRun> = members.iter().map(alone).collect();
            let runs = together(&members, false);
            if coupled::couplings(&members, &demands(&single), false).is_empty() {
                assert_equal(&single, &runs);
            }
            for quota in coupled::quota_use(&demands(&runs), SimTime::ZERO + scenarios[0].duration) {
                prop_assert!(quota.peak <= vcpus.max(1_000 * u32::from(quota.quota.class != QuotaClass::Standard)), "{quota:?}");
            }
        }
    }
}

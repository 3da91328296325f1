//! EKS on Fargate: which pods go there, when they start, what they cost, and that nobody else minds.

use nodecast::catalog::Catalog;
use nodecast::cloud::{BillItem, BillLine};
use nodecast::domain::{HourlyRate, Money, NodeId, PodId, SimDuration, SimTime};
use nodecast::report::{Summary, tables};
use nodecast::scenario::Scenario;
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::{EventKind, NodeEnd, NodeOrigin, PodFacts};

use crate::cli::Place;

/// A Deployment in a namespace, with more of its pods' specification.
fn deployment(namespace: &str, name: &str, replicas: u32, requests: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{ name: {name}, namespace: {namespace} }}\nspec:\n  \
         replicas: {replicas}\n  selector: {{ matchLabels: {{ app: {name} }} }}\n  template:\n    metadata: {{ labels: {{ app: {name} }} }}\n    \
         spec:\n      containers: [{{ name: app, image: app, resources: {{ requests: {{ {requests} }} }} }}]\n      {spec}\n"
    )
}

fn job(spec: &str) -> String {
    format!(
        "---\napiVersion: batch/v1\nkind: Job\nmetadata: {{ name: once, namespace: jobs }}\nspec:\n  {spec}\n  template:\n    \
         spec:\n      restartPolicy: Never\n      containers: [{{ name: app, image: app, resources: {{ requests: {{ cpu: 250m, memory: 256Mi }} }} }}]\n"
    )
}

const JOBS: &str = "profiles: [{ name: jobs, selectors: [{ namespace: jobs }] }]";

fn load(fargate: &str, rest: &str, manifests: &str) -> Result<Scenario, String> {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("objects.yaml", manifests);
    let policies = if rest.contains("policies:") { "" } else { "policies: [{ name: own, autoscaler: static }]\n" };
    let text = format!(
        "name: fargate\nregion: us-east-1\ncluster: {{ zones: [us-east-1a, us-east-1b] }}\nmanifests: [objects.yaml]\n\
         fargate: {{ {fargate} }}\n{policies}{rest}\n"
    );
    write("scenario.yaml", &text);
    nodecast::scenario::load(&directory.path().join("scenario.yaml"))
        .map(|(item, _)| item)
        .map_err(|error| error.to_string())
}

fn run(fargate: &str, rest: &str, manifests: &str) -> Outcome {
    run_policy(&load(fargate, rest, manifests).unwrap(), None)
}

fn run_policy(scenario: &Scenario, name: Option<&str>) -> Outcome {
    let policy = scenario.for_policy(name).unwrap();
    simulation::run(scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &mut |_| {}).unwrap()
}

fn of_item(outcome: &Outcome, item: BillItem) -> Vec<&BillLine> {
    outcome.bill.lines.iter().filter(|line| line.item == item).collect()
}

fn at(seconds: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(seconds)
}

/// From a pod's creation to the pull of its images, in seconds.
fn waits(outcome: &Outcome) -> Vec<f64> {
    let wait = |pod: &PodFacts| (pod.scheduled.unwrap() - pod.created).as_secs_f64();
    outcome.record.pods.iter().filter(|pod| pod.scheduled.is_some()).map(|pod| wait(&pod)).collect()
}

#[test]
fn default_zones_have_cluster_subnets() {
    let zones = |zones: &str| {
        let place = crate::cli::Place::new();
        place.put("objects.yaml", &deployment("jobs", "web", 40, "cpu: 250m, memory: 512Mi", ""));
        place.put(
            "scenario.yaml",
            &format!(
                "name: zones\nregion: us-east-1\nduration: 10m\n{zones}manifests: [objects.yaml]\n\
                 fargate: {{ {JOBS}, spread: round-robin }}\npolicies: [{{ name: own, autoscaler: static }}]\n"
            ),
        );
        let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
        let outcome = run_policy(&scenario, None);
        outcome
            .record
            .nodes
            .iter()
            .filter_map(|node| node.zone)
            .map(|zone| zone.to_string())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let default = zones("");
    assert!(default.len() == 5 && !default.contains("us-east-1e"), "{default:?}");
    assert_eq!(zones("cluster: { zones: [us-east-1e] }\n").len(), 1, "a given zone is used");
}

#[test]
fn each_fargate_pod_has_temporary_node() {
    let scale = "duration: 1h\ntimeline: [{ at: 30m, scale: { workload: jobs/web, replicas: 1 } }]";
    let outcome = run(JOBS, scale, &deployment("jobs", "web", 3, "cpu: 1, memory: 2560Mi", ""));
    assert_eq!(outcome.record.nodes.len(), 3);
    assert!(
        outcome
            .record
            .nodes
            .iter()
            .all(|node| matches!(node.origin, NodeOrigin::Fargate(name) if name.as_str() == "jobs"))
    );
    let mut nodes: Vec<NodeId> = outcome.record.pods.iter().map(|pod| pod.node.unwrap()).collect();
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), 3);
    assert!(waits(&outcome).iter().all(|wait| (25.0..=150.0).contains(wait)), "{:?}", waits(&outcome));
    // 100 MB at 20 MB a second, and what comes before and after it.
    for pod in &outcome.record.pods {
        let start = (pod.started.unwrap() - pod.scheduled.unwrap()).as_secs_f64();
        assert!((7.0..8.5).contains(&start), "{start}");
    }
    let gone: Vec<_> = outcome.record.nodes.iter().filter(|node| node.terminated.is_some()).collect();
    assert_eq!(gone.len(), 2);
    assert!(gone.iter().all(|node| node.end == Some(NodeEnd::PodGone)));
    let summary = nodecast::report::Summary::from_outcome(&outcome);
    let ends: Vec<_> =
        summary.nodes.terminations.iter().map(|termination| (termination.name.as_str(), termination.count)).collect();
    assert_eq!(ends, [("pod gone", 2)]);
    // They are nobody's On-Demand nodes.
    assert!(outcome.record.samples.iter().all(|sample| sample.nodes_on_demand == 0));
    assert_eq!(outcome.record.samples.iter().map(|sample| sample.nodes_fargate).max(), Some(3));
    let table = String::from_utf8(tables::bytes(tables::timeline, &outcome).unwrap()).unwrap();
    assert!(table.lines().next().is_some_and(|head| head.ends_with(",nodes_fargate")), "{table}");
    let launched = outcome.record.events.iter().find(|event| event.kind == EventKind::InstanceLaunched).unwrap();
    assert!(launched.message.starts_with("fargate in us-east-1"), "{}", launched.message);
    // One line for vCPUs and one for memory each, and nothing else but the control plane.
    let (cpu, memory) = (of_item(&outcome, BillItem::FargateCpu), of_item(&outcome, BillItem::FargateMemory));
    assert_eq!((cpu.len(), memory.len(), outcome.bill.lines.len()), (3, 3, 7));
    assert!(cpu.iter().all(|line| line.rate == HourlyRate::parse("0.04048").unwrap()));
    assert!(memory.iter().all(|line| line.rate == HourlyRate::parse("0.013335").unwrap()), "3 GB");
    for (line, other) in cpu.iter().zip(&memory) {
        assert_eq!((line.from, line.to, line.billed), (other.from, other.to, other.billed));
        let pod = outcome.record.pods.iter().find(|pod| pod.node == line.node).unwrap();
        assert_eq!(
            (line.from, line.to),
            (pod.scheduled.unwrap(), pod.removed.unwrap_or(at(3_600))),
            "a life, billed once"
        );
        let exact = i128::from(line.rate.as_nanos()) * i128::from(line.billed.as_micros());
        assert!((line.amount.as_nanos() - (exact + 1_800_000_000).div_euclid(3_600_000_000)).abs() <= 1);
    }
    let sum: Money = outcome.bill.lines.iter().map(|line| line.amount).sum();
    assert_eq!(sum, outcome.bill.total());
}

#[test]
fn fargate_cost_of_workload_excludes_rounding() {
    // 500 m and 0.75 GiB and 0.25 GiB of 256 MB come to half a vCPU and 1 GiB: all of the vCPU is requested. 300 m of it are 0.6.
    let objects = deployment("jobs", "full", 1, "cpu: 500m, memory: 768Mi", "")
        + &deployment("jobs", "part", 1, "cpu: 300m, memory: 128Mi", "");
    let outcome = run(JOBS, "duration: 1h", &objects);
    let of_node = |name: &str| -> f64 {
        let pod = outcome.record.pods.iter().find(|pod| pod.name.starts_with(name)).unwrap();
        outcome.bill.net().iter().filter(|line| line.node == pod.node).map(|line| line.amount.as_f64()).sum()
    };
    let cost = nodecast::report::Summary::from_outcome(&outcome).cost;
    let part = |name: &str| cost.by_workload.iter().find(|part| part.name == name).map_or(0.0, |part| part.amount);
    assert!(of_node("full") > 0.02, "{}", of_node("full"));
    // The node is Ready as soon as it is billed, and the pod is bound to it at once.
    assert!((part("jobs/full") - of_node("full")).abs() < 1e-6, "{} of {}", part("jobs/full"), of_node("full"));
    assert!((part("jobs/part") - 0.6 * of_node("part")).abs() < 1e-6, "{} of {}", part("jobs/part"), of_node("part"));
    assert!((cost.idle.amount - 0.4 * of_node("part")).abs() < 2e-6, "{}", cost.idle.amount);
    assert!((part("(idle)") - cost.idle.amount).abs() < 1e-9);
}

#[test]
fn pod_without_fargate_profile_uses_kube_scheduler() {
    let labelled = "profiles: [{ name: jobs, selectors: [{ namespace: jobs, labels: { app: \"a*\" } }] }]";
    let objects = deployment("jobs", "api", 1, "cpu: 250m", "") + &deployment("jobs", "web", 1, "cpu: 250m", "");
    let outcome = run(labelled, "duration: 20m", &objects);
    let scheduled: Vec<bool> = outcome.record.pods.iter().map(|pod| pod.scheduled.is_some()).collect();
    let ids = (0..outcome.record.pods.len()).map(PodId::from_index);
    let names: Vec<&str> = ids.map(|id| outcome.record.pods.name(id).unwrap().split('-').next().unwrap()).collect();
    assert_eq!(names.iter().zip(scheduled).filter(|(_, own)| *own).map(|(name, _)| *name).collect::<Vec<_>>(), ["api"]);
}

#[test]
fn fargate_launches_are_limited_by_rate_and_quota() {
    let many = run(
        JOBS,
        "duration: 20m\ncontroller_time: none",
        &deployment("jobs", "web", 100, "cpu: 250m, memory: 256Mi", ""),
    );
    assert_eq!(waits(&many).len(), 100);
    let few = format!("{JOBS}, vcpu_quota: 6");
    let outcome = run(&few, "duration: 20m", &deployment("jobs", "web", 10, "cpu: 1, memory: 1Gi", ""));
    assert_eq!(waits(&outcome).len(), 6, "four are pending");
    assert_eq!(outcome.record.nodes.len(), 6);
}

#[test]
fn finished_fargate_pod_costs_until_job_deletion() {
    let run_time = "duration: 2h\nworkloads: [{ name: jobs/once, run_time: 1m }]";
    let kept = run(JOBS, run_time, &job("backoffLimit: 0"));
    let [line] = of_item(&kept, BillItem::FargateCpu)[..] else { panic!("one pod") };
    assert_eq!(line.to, at(7_200), "nobody deletes it");
    let deleted = run(JOBS, run_time, &job("ttlSecondsAfterFinished: 600"));
    let [line] = of_item(&deleted, BillItem::FargateCpu)[..] else { panic!("one pod") };
    let ended = deleted.record.events.iter().find(|event| event.kind == EventKind::PodSucceeded).unwrap().at;
    assert_eq!(line.to, ended + SimDuration::from_secs(600));
    let quick =
        run(JOBS, "duration: 2h\nworkloads: [{ name: jobs/once, run_time: 10s }]", &job("ttlSecondsAfterFinished: 0"));
    let [line] = of_item(&quick, BillItem::FargateCpu)[..] else { panic!("one pod") };
    assert!(line.to - line.from < SimDuration::from_secs(60));
    assert_eq!(line.billed, SimDuration::from_secs(60));
}

#[test]
fn pod_unsupported_by_fargate_stays_pending() {
    let gpu =
        deployment("jobs", "gpu", 1, "cpu: 1", "").replace("requests: { cpu: 1 }", "limits: { nvidia.com/gpu: 1 }");
    let outcome = run(JOBS, "duration: 20m", &gpu);
    assert!(outcome.record.pods.iter().all(|pod| pod.scheduled.is_none()));
    let told = outcome.record.events.iter().any(|event| event.message.contains("UnsupportedOnFargate"));
    assert!(told, "{:?}", outcome.record.events);
}

const POOL: &str = "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: { name: default }\nspec:\n  template:\n    spec:\n      \
    nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }\n      \
    requirements: [{ key: node.kubernetes.io/instance-type, operator: In, values: [m5.large] }, { key: karpenter.sh/capacity-type, operator: In, values: [on-demand] }]\n";
const AGENT: &str = "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: { name: agent, namespace: jobs }\nspec:\n  selector: { matchLabels: { k: n } }\n  template:\n    metadata: { labels: { k: n } }\n    spec: { containers: [{ name: n, image: n, resources: { requests: { cpu: 50m } } }], tolerations: [{ operator: Exists }] }\n";

#[test]
fn karpenter_and_daemons_ignore_fargate_pods() {
    let objects = deployment("jobs", "web", 4, "cpu: 1, memory: 1Gi", "")
        + &deployment("shop", "api", 1, "cpu: 1", "")
        + POOL
        + AGENT;
    let rest = "duration: 1h\npolicies: [{ name: own, autoscaler: karpenter }, { name: nodes, autoscaler: karpenter, fargate: { profiles: [] } }]";
    let scenario = load(JOBS, rest, &objects).unwrap();
    let policy = run_policy(&scenario, Some("own"));
    let of = |outcome: &Outcome, wanted: fn(&NodeOrigin) -> bool| {
        outcome.record.nodes.iter().filter(|node| wanted(&node.origin)).count()
    };
    assert_eq!(of(&policy, |origin| matches!(origin, NodeOrigin::Fargate(_))), 4);
    assert_eq!(of(&policy, |origin| matches!(origin, NodeOrigin::NodePool(_))), 1, "for the one pod of the shop");
    let daemons = policy.record.pods.iter().filter(|pod| pod.name.starts_with("agent")).count();
    assert_eq!(daemons, 1);
    let nodes = run_policy(&scenario, Some("nodes"));
    assert_eq!(of(&nodes, |origin| matches!(origin, NodeOrigin::Fargate(_))), 0);
    assert!(of(&nodes, |origin| matches!(origin, NodeOrigin::NodePool(_))) >= 3);
    assert!(of_item(&nodes, BillItem::FargateCpu).is_empty());
    assert!(policy.record.events.iter().all(|event| !event.message.contains("Consolidat")));
    let figures = Summary::from_outcome(&policy).nodes;
    assert_eq!(figures.launches, 1, "a pod's machine is nothing that EC2 was asked for");
    let booted = figures.launch_to_ready.unwrap();
    assert_eq!(booted.count, 1, "{booted:?}");
}

#[test]
fn mistakes_in_profiles_are_answered() {
    let wrong = |fargate: &str| load(fargate, "duration: 1h", &deployment("jobs", "web", 1, "cpu: 1", "")).unwrap_err();
    assert!(wrong("profiles: [{ name: a, selectors: [] }]").contains("0 selectors"));
    let twice = "profiles: [{ name: a, selectors: [{ namespace: x }] }, { name: a, selectors: [{ namespace: y }] }]";
    assert!(wrong(twice).contains("duplicate Fargate profile name"));
    for (profile, said) in [
        ("name: 'a b', selectors: [{ namespace: x }]", "invalid Fargate profile name `a b`"),
        ("name: a, selectors: [{ namespace: x_y }]", "invalid namespace `x_y`"),
        ("name: a, selectors: [{ namespace: x, labels: { app: 'a b' } }]", "the value of a label cannot be `a b`"),
        ("name: a, selectors: [{ namespace: x, label: { app: a } }]", "unknown key `label`"),
    ] {
        let error = wrong(&format!("profiles: [{{ {profile} }}]"));
        assert!(error.contains(said), "{error}");
    }
}

/// An eksctl ClusterConfig with a profile for the namespace `jobs`.
const CLUSTER: &str = "---\napiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: { name: shop, region: us-east-1 }\n\
    fargateProfiles:\n  - { name: jobs, podExecutionRoleARN: arn, selectors: [{ namespace: jobs }] }\n";

/// A pod in `jobs` and one in `shop`, and the ClusterConfig.
fn with_cluster_config() -> String {
    let pod = |namespace| deployment(namespace, "web", 1, "cpu: 1, memory: 2560Mi", "");
    format!("{}{}{CLUSTER}", pod("jobs"), pod("shop"))
}

/// The profiles that nodes came of, in order.
fn profiles_used(outcome: &Outcome) -> Vec<&'static str> {
    let of = |origin| match origin {
        NodeOrigin::Fargate(name) => Some(name.as_str()),
        _ => None,
    };
    let mut names: Vec<_> = outcome.record.nodes.iter().filter_map(|node| of(node.origin)).collect();
    names.sort_unstable();
    names
}

#[test]
fn eksctl_and_scenario_fargate_profiles_both_apply() {
    let manifests = with_cluster_config();
    let used = |fargate: &str, rest: &str| {
        let outcome = run(fargate, &format!("duration: 1h\n{rest}"), &manifests);
        assert!(!outcome.warnings.texts().join("\n").contains("rofile"), "{:?}", outcome.warnings.texts());
        profiles_used(&outcome)
    };
    assert_eq!(used("", ""), ["jobs"]);
    assert_eq!(used("profiles: [{ name: shop, selectors: [{ namespace: shop }] }]", ""), ["jobs", "shop"]);
    assert_eq!(used(JOBS, ""), ["jobs"], "stated as the cluster has it");
    let policy = |more: &str| format!("policies: [{{ name: own, autoscaler: static, {more} }}]");
    assert_eq!(used("", &policy("manifests: [objects.yaml]")), ["jobs"], "applied again");
    assert_eq!(used("", &policy("fargate: { vcpu_quota: 100 }")), ["jobs"]);
    assert_eq!(used("", &policy("fargate: { profiles: [] }")), Vec::<&str>::new());
    let text = "manifests: [objects.yaml], fargate: { profiles: [] }";
    assert_eq!(used("", &policy(text)), Vec::<&str>::new(), "nor those that its own ClusterConfig brings");
    let other = "fargate: { profiles: [{ name: other, selectors: [{ namespace: shop }] }] }";
    assert_eq!(used("", &policy(other)), ["other"]);
}

#[test]
fn fargate_profiles_of_one_name_must_match() {
    let other = "profiles: [{ name: jobs, selectors: [{ namespace: shop }] }]";
    let error = load(other, "duration: 1h", &with_cluster_config()).unwrap_err();
    assert!(error.contains("duplicate Fargate profile name `jobs`"), "{error}");
    assert!(error.contains("eksctl ClusterConfig"), "{error}");
    // Also where both come from ClusterConfigs, whichever stands last.
    let second =
        CLUSTER.replace("name: shop, region", "name: other, region").replace("namespace: jobs", "namespace: shop");
    for manifests in [with_cluster_config() + &second, second.clone() + &with_cluster_config()] {
        let error = load("", "duration: 1h", &manifests).unwrap_err();
        assert!(error.contains("duplicate Fargate profile name `jobs`"), "{error}");
    }
}

#[test]
fn fargate_profile_in_timeline_is_ignored_with_warning() {
    let place = Place::new();
    place.put("objects.yaml", &deployment("jobs", "web", 1, "cpu: 1, memory: 2560Mi", ""));
    place.put("later.yaml", CLUSTER.trim_start_matches("---\n"));
    place.put(
        "scenario.yaml",
        "name: later\nregion: us-east-1\nduration: 1h\nmanifests: [objects.yaml]\n\
         policies: [{ name: own, autoscaler: static }]\ntimeline: [{ at: 30m, manifests: [later.yaml] }]\n",
    );
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    let outcome = run_policy(&scenario, None);
    assert_eq!(profiles_used(&outcome), Vec::<&str>::new());
    let warnings = outcome.warnings.texts().join("\n");
    assert!(warnings.contains("timeline at 00:30:00: Fargate profiles are there from the start"), "{warnings}");
}

#[test]
fn fargate_pod_waits_for_subnet_address() {
    // Sixteen addresses, of which AWS keeps five and others use nine: two are left in each zone.
    let subnets = "ec2: { network: { subnets: [{ zone: us-east-1a, cidr: 10.0.0.0/28, in_use: 9 }, { zone: us-east-1b, cidr: 10.0.0.16/28, in_use: 9 }] } }";
    let rest = format!(
        "duration: 1h\n{subnets}\ntimeline: [{{ at: 30m, scale: {{ workload: jobs/web, replicas: 0 }} }}, {{ at: 40m, scale: {{ workload: jobs/web, replicas: 2 }} }}]"
    );
    let fargate = format!("{JOBS}, spread: round-robin");
    let outcome = run(&fargate, &rest, &deployment("jobs", "web", 6, "cpu: 250m, memory: 256Mi", ""));
    let placed = |from: i64, to: i64| {
        let pod =
            outcome.record.pods.iter().filter(|pod| pod.scheduled.is_some_and(|one| at(from) <= one && one < at(to)));
        pod.count()
    };
    assert_eq!((placed(0, 1_800), placed(2_400, 3_600)), (4, 2), "what is free again is used again");
}

#[test]
fn sidecars_make_pods_larger_and_dearer() {
    let pods = deployment("jobs", "web", 1, "cpu: 900m, memory: 1800Mi", "");
    let rate = |fargate: &str| {
        let outcome = run(fargate, "duration: 1h", &pods);
        of_item(&outcome, BillItem::FargateCpu)[0].rate
    };
    let (alone, beside) = (rate(JOBS), rate(&format!("{JOBS}, sidecar_cpu: 200m, sidecar_memory: 128Mi")));
    assert_eq!(beside, alone.scaled(2, 1), "two vCPUs for one");
}

#[test]
fn compute_plan_covers_fargate_with_its_discount() {
    let objects = deployment("jobs", "web", 2, "cpu: 1, memory: 2Gi", "");
    let with = |plan: &str| {
        let rest = format!("duration: 3h\nec2: {{ billing: {{ savings_plans: [{{ {plan} }}] }} }}");
        run(JOBS, &rest, &objects)
    };
    let sum = |lines: &[BillLine], items: &[BillItem]| -> Money {
        lines.iter().filter(|line| items.contains(&line.item)).map(|line| line.amount).sum()
    };
    let pods = [BillItem::FargateCpu, BillItem::FargateMemory];
    let without = with("commitment: 1, discount: 30%");
    assert_eq!(sum(&without.bill.lines, &[BillItem::SavingsPlans, BillItem::Covered]), Money::ZERO);
    let outcome = with("commitment: 1, discount: 30%, fargate_discount: 20%");
    let listed = sum(&outcome.bill.lines, &pods).as_f64();
    assert!(listed > 0.2, "{listed}");
    let used = sum(&outcome.bill.lines, &[BillItem::SavingsPlans]).as_f64();
    assert!((used - listed * 0.8).abs() < 1e-4, "{used} of {listed}");
    // Only what rounding up to seconds adds is left at the price of the list.
    assert!(sum(outcome.bill.net(), &pods).as_f64() < 1e-4);
    // A commitment of less than they cost is used up, and the rest of them stays at the list's price.
    let short = with("commitment: 0.04, discount: 30%, fargate_discount: 20%");
    assert!((sum(&short.bill.lines, &[BillItem::SavingsPlans]).as_f64() - 0.12).abs() < 2e-3);
    let left = sum(short.bill.net(), &pods).as_f64();
    assert!((left - (listed - 0.15)).abs() < 3e-3, "{left} of {listed}");
    for without in [&without, &outcome, &short] {
        let net: Money = without.bill.net().iter().map(|line| line.amount).sum();
        assert_eq!((net, without.bill.lines.iter().map(|line| line.amount).sum()), (without.bill.total(), net));
    }
}

#[test]
fn family_plan_has_no_fargate_discount() {
    let plan = "duration: 1h\nec2: { billing: { savings_plans: [{ family: m5, commitment: 1, discount: 30%, fargate_discount: 20% }] } }";
    let error = load(JOBS, plan, &deployment("jobs", "web", 1, "cpu: 1", "")).unwrap_err();
    assert!(error.contains("a plan for m5 does not cover Fargate"), "{error}");
}

//! Node groups in a running simulation: sizes, interruptions and replacements, shortages, drains.

use nodecast::actors::{self, Components};
use nodecast::catalog::Catalog;
use nodecast::domain::{NodeId, SimDuration, SimTime};
use nodecast::report::Summary;
use nodecast::scenario::Scenario;
use nodecast::scenario::error::Render;
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::{EventKind, NodeEnd, NodeFacts};

pub(crate) fn try_load(text: &str, manifests: &str) -> Result<Scenario, String> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scenario.yaml");
    std::fs::write(&file, text).unwrap();
    std::fs::write(directory.path().join("manifests.yaml"), manifests).unwrap();
    nodecast::scenario::load(&file).map(|(scenario, _)| scenario).map_err(|error| error.to_string())
}

/// The error that a scenario is refused with, as it is shown, with single spaces.
pub(crate) fn shown_error(text: &str, manifests: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scenario.yaml");
    std::fs::write(&file, text).unwrap();
    std::fs::write(directory.path().join("manifests.yaml"), manifests).unwrap();
    let shown = nodecast::scenario::load(&file).unwrap_err().render();
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn run_seed(text: &str, manifests: &str, seed: u64) -> Outcome {
    let scenario = try_load(text, manifests).unwrap();
    let policy = scenario.for_policy(None).unwrap();
    simulation::run(&scenario, policy, Catalog::embedded().unwrap(), seed, &mut |_| {}).unwrap()
}

pub(crate) fn run(text: &str, manifests: &str) -> Outcome {
    run_seed(text, manifests, 1)
}

/// A scenario of an hour with one group; `more` are further keys.
fn scenario(group: &str, more: &str) -> String {
    format!(
        "name: groups\nregion: us-east-1\nduration: 1h\ncluster: {{ zones: [us-east-1a, us-east-1b] }}\n\
         manifests: [manifests.yaml]\nnodeGroups:\n  - {{ name: workers, {group} }}\n{more}\n"
    )
}

/// No interruption but injected ones, and of those a half of the Spot instances at ten minutes.
const STORM: &str = "ec2: { capacity: infinite, spot: { interruptions: none } }\n\
    faults: [{ at: 10m, spot_interruption: { fraction: 50% } }]";
const SPOT: &str = "instanceTypes: [m5.large, m5a.large], desired: 4, max: 6, spot: true";

pub(crate) fn web(replicas: u32) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: {replicas}\n  selector: \
         {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      containers: \
         [{{name: web, resources: {{requests: {{cpu: 700m, memory: 1Gi}}}}}}]\n"
    )
}

pub(crate) fn minutes(minutes: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(60 * minutes)
}

fn ended(outcome: &Outcome, end: NodeEnd) -> Vec<&NodeFacts> {
    outcome.record.nodes.iter().filter(|node| node.end == Some(end)).collect()
}

pub(crate) fn times(outcome: &Outcome, kind: EventKind) -> Vec<SimTime> {
    outcome.record.events.iter().filter(|event| event.kind == kind).map(|event| event.at).collect()
}

/// Nodes Ready at `at`.
pub(crate) fn ready(outcome: &Outcome, at: SimTime) -> usize {
    let is = |node: &&NodeFacts| {
        node.ready.is_some_and(|ready| ready <= at) && node.terminating.is_none_or(|ended| ended > at)
    };
    outcome.record.nodes.iter().filter(is).count()
}

#[test]
fn managed_spot_group_drains_and_replaces_interrupted_nodes() {
    let outcome = run(&scenario(SPOT, STORM), &web(6));
    assert_eq!(times(&outcome, EventKind::InterruptionNotice), [minutes(10); 2]);
    let interrupted = ended(&outcome, NodeEnd::Interrupted);
    assert_eq!(interrupted.len(), 2);
    for node in interrupted {
        assert_eq!(node.deletion_requested, Some(minutes(10)), "cordoned at the notice");
        assert!(node.drained.unwrap() < minutes(11), "pods stop within a second");
    }
    let launched: Vec<SimTime> = outcome.record.nodes.iter().skip(4).map(|node| node.launched.unwrap()).collect();
    assert_eq!(launched.len(), 2, "one for each");
    assert!(
        launched.iter().all(|at| *at > minutes(10) && *at < minutes(11)),
        "a rebalance does not wait: {launched:?}"
    );
    assert_eq!(ready(&outcome, minutes(13)), 4);
    let evicted = outcome.record.pods.iter().filter(|pod| pod.evicted).count();
    assert!(evicted > 0);
    assert_eq!(Summary::from_outcome(&outcome).pods.pending_at_end, 0);
}

#[test]
fn plain_group_loses_interrupted_nodes_with_pods() {
    let group = format!("{SPOT}, managed: false");
    let outcome = run(&scenario(&group, STORM), &web(6));
    let reclaimed = times(&outcome, EventKind::InstanceReclaimed);
    assert_eq!(reclaimed, [minutes(12); 2], "EC2 takes them two minutes after the notice");
    assert!(ended(&outcome, NodeEnd::Interrupted).iter().all(|node| node.deletion_requested.is_none()));
    let launched: Vec<SimTime> = outcome.record.nodes.iter().skip(4).map(|node| node.launched.unwrap()).collect();
    assert_eq!(launched.len(), 2);
    assert!(launched.iter().all(|at| *at > minutes(12) && *at < minutes(14)), "{launched:?}");
    assert_eq!(ready(&outcome, minutes(16)), 4);
}

#[test]
fn early_rebalance_recommendation_replaces_instance_before_interruption() {
    // Many events, every one of them announced long before.
    let more = "ec2: { capacity: infinite, spot: { interruptions: { exposure: 24h, stress: 100 } } }";
    let group = "instanceTypes: [r5.24xlarge, p3.8xlarge], desired: 8, max: 20, spot: true";
    let outcome = run(&scenario(group, more), "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n");
    let rebalanced = ended(&outcome, NodeEnd::Rebalanced);
    assert!(!rebalanced.is_empty(), "{:?}", Summary::from_outcome(&outcome).nodes.terminations);
    for node in rebalanced {
        let name = node.name.as_str();
        let others = outcome.record.nodes.iter().filter(|other| other.name != name);
        let before = others.filter_map(|other| other.ready).any(|ready| Some(ready) <= node.deletion_requested);
        assert!(before, "{name}: its replacement is Ready first");
    }
}

#[test]
fn capacity_shortage_retries_with_pauses_until_end() {
    let more = "ec2: { capacity: infinite, spot: { interruptions: none } }\nfaults:\n  - { at: 5m, for: 20m, \
        insufficient_capacity: { capacity_type: spot } }\ntimeline: [{ at: 6m, scale_group: { group: workers, desired: 6 } }]";
    let outcome = run(&scenario(SPOT, more), &web(1));
    let failed = times(&outcome, EventKind::ScalingActivityFailed);
    assert!((6..=12).contains(&failed.len()), "{failed:?}");
    assert!(failed.iter().all(|at| *at > minutes(6) && *at < minutes(25)), "{failed:?}");
    assert_eq!((ready(&outcome, minutes(24)), ready(&outcome, minutes(40))), (4, 6));
    let message =
        &outcome.record.events.iter().find(|event| event.kind == EventKind::ScalingActivityFailed).unwrap().message;
    assert!(message.starts_with("workers: Could not launch Spot Instances. UnfulfillableCapacity - "), "{message}");
    assert_eq!(Summary::from_outcome(&outcome).nodes.failed_launches, failed.len() as u64);
}

#[test]
fn group_follows_size_set_by_timeline() {
    let more = "timeline:\n  - { at: 5m, scale_group: { group: workers, desired: 5 } }\n  - { at: 20m, scale_group: { group: workers, desired: 2 } }";
    let group = "instanceTypes: [m5.large], desired: 3, min: 2, max: 6";
    let outcome = run(&scenario(group, more), &web(4));
    assert_eq!(times(&outcome, EventKind::DesiredCapacitySet), [minutes(5), minutes(20)]);
    assert_eq!([4, 8, 30].map(|at| ready(&outcome, minutes(at))), [3, 5, 2]);
    let scaled_in = ended(&outcome, NodeEnd::ScaledIn);
    assert_eq!(scaled_in.len(), 3);
    assert!(scaled_in.iter().all(|node| node.drained.is_some()));
    let zones: Vec<_> = outcome.record.nodes.iter().filter(|node| node.end.is_none()).map(|node| node.zone).collect();
    assert_ne!(zones[0], zones[1], "what stays is spread");
    assert_eq!(Summary::from_outcome(&outcome).pods.pending_at_end, 0, "two nodes hold four pods");
}

#[test]
fn blocked_drain_of_managed_group_times_out() {
    let more = "timeline: [{ at: 5m, scale_group: { group: workers, desired: 1 } }]";
    let budget = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: \
        {maxUnavailable: 0, selector: {matchLabels: {app: web}}}\n";
    let manifests = format!("{}{budget}", web(4));
    let group = "instanceTypes: [m5.large], desired: 2, min: 0, max: 2";
    let outcome = run(&scenario(group, more), &manifests);
    let [node] = ended(&outcome, NodeEnd::ScaledIn)[..] else { panic!("one node") };
    assert_eq!(node.drained, None);
    let drained_for = node.terminating.unwrap() - node.deletion_requested.unwrap();
    assert_eq!(drained_for, SimDuration::from_secs(300));
    let plain = run(&scenario(&format!("{group}, managed: false"), more), &manifests);
    let [node] = ended(&plain, NodeEnd::ScaledIn)[..] else { panic!("one node") };
    assert_eq!(node.terminating, node.deletion_requested, "nobody drains the nodes of a plain group");
}

#[test]
fn managed_group_at_zero_drains_nodes_in_parallel() {
    let more = "timeline: [{ at: 5m, scale_group: { group: workers, desired: 0 } }]";
    let budget = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: \
        {minAvailable: 100%, selector: {matchLabels: {app: web}}}\n";
    let outcome =
        run(&scenario("instanceTypes: [m5.large], desired: 3, min: 0, max: 3", more), &format!("{}{budget}", web(6)));
    let ended = ended(&outcome, NodeEnd::ScaledIn);
    assert_eq!(ended.len(), 3);
    let requested = ended[0].deletion_requested.unwrap();
    for node in ended {
        assert_eq!(node.deletion_requested, Some(requested), "all at once");
        assert_eq!(node.terminating.unwrap() - requested, SimDuration::from_secs(300), "each has its five minutes");
    }
}

#[test]
fn mixed_group_keeps_on_demand_base_during_storm() {
    let cluster = "---\napiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c, region: us-east-1}\n\
        nodeGroups:\n  - name: mixed\n    desiredCapacity: 6\n    minSize: 0\n    maxSize: 9\n    instancesDistribution:\n      \
        instanceTypes: [c5.large, c5a.large]\n      onDemandBaseCapacity: 2\n      onDemandPercentageAboveBaseCapacity: 25\n      \
        spotAllocationStrategy: capacity-optimized\n";
    let text = scenario("instanceTypes: [m5.large], desired: 1", STORM);
    let outcome = run(&text, &format!("{}{cluster}", web(1)));
    let mixed = |node: &&NodeFacts| node.name.starts_with("mixed-");
    let spot = |node: &&NodeFacts| node.capacity_type.is_some_and(|kind| kind.as_str() == "spot");
    let at_start: Vec<_> = outcome.record.nodes.iter().filter(mixed).take(6).collect();
    assert_eq!(at_start.iter().filter(|node| spot(node)).count(), 3, "two and a quarter of four On-Demand");
    let replacements: Vec<_> = outcome.record.nodes.iter().filter(mixed).skip(6).collect();
    assert_eq!(replacements.len(), 2);
    assert!(replacements.iter().all(spot), "Spot is replaced by Spot");
}

#[test]
fn rejected_terminations_are_retried() {
    let steps = "timeline: [{ at: 5m, scale_group: { group: workers, desired: 0 } }]";
    let group = "instanceTypes: [m5.large], desired: 12, min: 0, max: 12";
    let with = |api: &str| run(&scenario(group, &format!("ec2: {{ api: {api} }}\n{steps}")), &web(1));
    let limited = with("{ terminated_instances: { size: 4, per_second: 1 } }");
    let unlimited = with("unlimited");
    for outcome in [&limited, &unlimited] {
        assert_eq!(ended(outcome, NodeEnd::ScaledIn).len(), 12);
        assert!(outcome.record.nodes.iter().all(|node| node.terminated.is_some()));
    }
    assert!(!times(&limited, EventKind::CallThrottled).is_empty());
    assert!(times(&unlimited, EventKind::CallThrottled).is_empty());
    let last = |outcome: &Outcome| outcome.record.nodes.iter().filter_map(|node| node.terminating).max().unwrap();
    let later = last(&limited) - last(&unlimited);
    assert!((7..40).contains(&later.as_secs()), "eight tokens take eight seconds, not {later}");
}

#[test]
fn storm_victims_depend_only_on_seed() {
    let text = scenario(SPOT, STORM);
    let run = |seed| run_seed(&text, &web(6), seed);
    let (one, same, other) = (run(1), run(1), run(2));
    assert_eq!(one.event_hash, same.event_hash);
    assert_eq!(format!("{:?}", one.bill), format!("{:?}", same.bill));
    assert_ne!(one.event_hash, other.event_hash);
}

#[test]
fn impossible_groups_are_rejected_with_help() {
    let errors = [
        ("instanceTypes: [m5.large], spot: 50%, managed: true", "all Spot or all On-Demand"),
        ("instanceTypes: [m5.lrge]", "`m5.lrge` is not an instance type of us-east-1"),
        ("desired: 1", "a node group needs `instanceTypes`"),
        ("instanceTypes: [m5.large], min: 3, max: 2", "inconsistent sizes"),
        ("instanceTypes: [m5.large], min: 1, minSize: 2", "two names for the same thing"),
        ("instanceTypes: [m5.large], spot: 0.505", "a whole percentage"),
        ("instanceTypes: [m5.large], zones: [us-east-2a]", "`us-east-2a` is not a zone of us-east-1"),
        ("instanceTypes: [m5.large], size: 3", "unknown key `size` in a node group"),
    ];
    for (group, expected) in errors {
        let error = try_load(&scenario(group, ""), &web(1)).unwrap_err();
        assert!(error.contains(expected), "{group}: {error}");
    }
    let timeline = |step: &str| format!("timeline: [{{ at: 1m, scale_group: {step} }}]");
    for (step, expected) in [
        ("{ group: worker, desired: 4 }", "no node group named `worker`"),
        ("{ group: workers, desired: 9 }", "desired size 9 is outside the limits of `workers` at that time (4 to 6)"),
    ] {
        let error = try_load(&scenario(SPOT, &timeline(step)), &web(1)).unwrap_err();
        assert!(error.contains(expected), "{step}: {error}");
    }
}

#[test]
fn zone_power_outage_moves_group_instances() {
    let group = "instanceTypes: [m5.large], desired: 4, max: 8";
    let outage =
        |span: &str| format!("faults: [{{ at: 10m, for: {span}, zone_outage: {{ zone: us-east-1a, mode: power }} }}]");
    let long = run(&scenario(group, &outage("30m")), &web(4));
    let unhealthy = ended(&long, NodeEnd::Unhealthy);
    assert_eq!(unhealthy.len(), 2);
    let mut after: Vec<i64> =
        unhealthy.iter().map(|node| (node.deletion_requested.unwrap() - minutes(10)).as_secs()).collect();
    after.sort_unstable();
    assert!((120..=180).contains(&after[0]), "two status checks and a health check, not {} s", after[0]);
    assert!((after[0] + 15..=after[0] + 180).contains(&after[1]), "the second waits for a replacement: {after:?}");
    for node in unhealthy {
        assert_eq!(node.terminating, node.deletion_requested, "nothing is drained without power");
    }
    let elsewhere = |node: &&NodeFacts| node.zone.is_some_and(|zone| zone.as_str() == "us-east-1b");
    let up = long.record.nodes.iter().filter(|node| node.terminating.is_none_or(|at| at > minutes(20)));
    assert_eq!(up.filter(|node| node.launched.is_some_and(|at| at < minutes(20))).filter(elsewhere).count(), 4);
    let short = run(&scenario(group, &outage("1m")), &web(4));
    assert!(ended(&short, NodeEnd::Unhealthy).is_empty(), "power is back before a health check looks");
}

/// Lets everything up to `until` happen.
fn step_until(components: &mut Components<'_>, until: SimTime) {
    while components.sim.queue.next_time().is_some_and(|at| at <= until) {
        let Some((now, event)) = components.sim.queue.pop() else { return };
        actors::handle(components, now, event);
    }
}

#[test]
fn named_node_drains_with_or_without_replacement() {
    let scenario = try_load(&scenario("instanceTypes: [m5.large], desired: 3, min: 2, max: 3", ""), &web(3)).unwrap();
    let policy = scenario.for_policy(None).unwrap();
    let setup = simulation::resolve(&scenario, policy, Catalog::embedded().unwrap(), 1).unwrap().setup;
    let mut components = Components::new(&setup);
    actors::begin(&mut components);
    step_until(&mut components, minutes(1));
    components.sim.terminate_in_group(minutes(1), NodeId(0), true).unwrap();
    actors::settle(&mut components, minutes(1));
    step_until(&mut components, minutes(5));
    assert_eq!((components.sim.groups.desired(0), components.sim.groups.size(0)), (2, 2));
    let refused = components.sim.terminate_in_group(minutes(5), NodeId(1), true).unwrap_err().to_string();
    assert!(refused.contains("equals minSize (2)"), "{refused}");
    components.sim.terminate_in_group(minutes(5), NodeId(1), false).unwrap();
    actors::settle(&mut components, minutes(5));
    step_until(&mut components, minutes(10));
    assert_eq!((components.sim.groups.desired(0), components.sim.groups.size(0)), (2, 2));
    let nodes = &components.sim.world.record().nodes;
    assert_eq!(nodes.len(), 4, "one replacement");
    assert!(nodes[..2].iter().all(|node| node.drained.is_some() && node.terminated.is_some()));
    assert!(nodes[3].ready.is_some());
    let gone = components.sim.terminate_in_group(minutes(10), NodeId(0), true).unwrap_err().to_string();
    assert!(gone.contains("belongs to no Auto Scaling group"), "{gone}");
}

#[test]
fn karpenter_termination_respects_read_limit() {
    let pool = "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\nspec:\n  \
        disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s}\n  template:\n    spec:\n      \
        expireAfter: 10m\n      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n      \
        requirements: [{key: karpenter.k8s.aws/instance-size, operator: In, values: [large]}]\n---\napiVersion: \
        karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec: {amiSelectorTerms: [{alias: \
        al2023@latest}]}\n";
    let text = |describe: &str| {
        format!(
            "name: k\nregion: us-east-1\nduration: 25m\nmanifests: [manifests.yaml]\nec2: {{ capacity: infinite, api: {{ \
             describe: {describe} }} }}\n"
        )
    };
    let manifests = format!("{}{pool}", web(2));
    let reads = run(&text("{ size: 100, per_second: 20 }"), &manifests);
    let none = run(&text("{ size: 1, per_second: 0 }"), &manifests);
    let terminated = |outcome: &Outcome| outcome.record.nodes.iter().filter(|node| node.terminating.is_some()).count();
    assert_eq!((terminated(&reads), terminated(&none)), (2, 1), "the second look-up finds no token");
    assert!(times(&reads, EventKind::CallThrottled).is_empty());
    assert!(!times(&none, EventKind::CallThrottled).is_empty());
}

#[test]
fn most_allocated_profile_fills_nodes_one_by_one() {
    let profile = "---\napiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n  - \
                   pluginConfig:\n      - name: NodeResourcesFit\n        args: {scoringStrategy: {type: MostAllocated, \
                   resources: [{name: cpu, weight: 1}]}}\n";
    // Of one workload each, so that nothing else spreads them.
    let pods = ["web", "api", "cart"].map(|name| web(1).replace("web", name)).join("---\n");
    let nodes_used = |manifests: &str| {
        let outcome = run(&scenario("instanceTypes: [m5.2xlarge], desired: 3, max: 3", ""), manifests);
        let mut nodes: Vec<NodeId> = outcome.record.pods.iter().filter_map(|pod| pod.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    };
    assert_eq!((nodes_used(&pods), nodes_used(&format!("{pods}{profile}"))), (3, 1));
}

/// Pods that the first node of a group takes.
fn pods_of_first_node(group: &str, manifests: &str) -> i64 {
    let outcome = run(&scenario(group, "policies: [{ name: static, autoscaler: none }]"), manifests);
    outcome.record.nodes[0].allocatable.pods()
}

#[test]
fn managed_group_pod_limit_matches_eks() {
    let plugin = |value: &str| {
        format!(
            "{}---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{ name: aws-node, namespace: kube-system }}\nspec:\n  selector: {{ \
             matchLabels: {{ app: cni }} }}\n  template:\n    metadata: {{ labels: {{ app: cni }} }}\n    spec: {{ hostNetwork: true, containers: [{{ \
             name: cni, env: [{{ name: ENABLE_PREFIX_DELEGATION, value: '{value}' }}] }}] }}\n",
            web(1)
        )
    };
    let (off, on) = (plugin("false"), plugin("true"));
    for (group, manifests, expected) in [
        ("instanceTypes: [m5.large], desired: 1", &off, 29),
        ("instanceTypes: [m5.large], desired: 1", &on, 110),
        ("instanceTypes: [m5.4xlarge], desired: 1", &off, 110),
        ("instanceTypes: [m5.xlarge, m5.large], desired: 1", &off, 29),
        ("instanceTypes: [m5.large], desired: 1, maxPods: 40", &on, 40),
        ("instanceTypes: [m5.large], desired: 1, managed: false", &on, 29),
    ] {
        assert_eq!(pods_of_first_node(group, manifests), expected, "{group}");
    }
}

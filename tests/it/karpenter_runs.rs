//! What Karpenter's controllers do in a running cluster, case by case: when a pass begins, and what follows when EC2 has
//! nothing to give or is slow. `crates/karpenter/tests/karpenter/packing.rs` lists the cases of the upstream suites that this
//! file pins.

use std::fmt::Write;

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime};
use nodecast::explain::presentation::text;
use nodecast::explain::{Subject, explain};
use nodecast::report::{Summary, terminal};
use nodecast::scenario::Scenario;
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::{EventKind, NodeEnd};

/// A cluster in the making. Its pool is On-Demand and has one type unless a test says otherwise.
struct Cluster {
    duration: &'static str,
    zones: &'static str,
    types: &'static str,
    capacity_types: &'static str,
    expire: &'static str,
    rest: String,
    manifests: String,
}

impl Cluster {
    fn new(types: &'static str) -> Self {
        Self {
            duration: "6m",
            zones: "us-east-1a",
            types,
            capacity_types: "on-demand",
            expire: "Never",
            rest: String::new(),
            manifests: String::new(),
        }
    }

    /// Adds a deployment of pods with these requests; `spec` is more of the pod's specification.
    fn deployment(mut self, name: &str, replicas: u32, requests: &str, spec: &str) -> Self {
        let _ = write!(
            self.manifests,
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: {replicas}\n  \
             selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      \
             containers: [{{name: app, image: app, resources: {{requests: {{{requests}}}}}}}]\n      {spec}\n"
        );
        self
    }

    fn manifest(mut self, text: &str) -> Self {
        let _ = write!(self.manifests, "---\n{text}\n");
        self
    }

    /// Adds `faults` and the like to the scenario.
    fn with(mut self, text: &str) -> Self {
        self.rest.push_str(text);
        self
    }

    fn run(&self) -> Outcome {
        let scenario = self.load();
        let policy = scenario.for_policy(None).unwrap();
        simulation::run(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &mut |_| {}).unwrap()
    }

    fn load(&self) -> Scenario {
        let directory = tempfile::tempdir().unwrap();
        let Self { duration, zones, types, capacity_types, expire, rest, manifests } = self;
        let scenario = format!(
            "name: test\nregion: us-east-1\nstart: 2026-01-01T00:00:00Z\nduration: {duration}\nseed: 3\n\
             manifests: [manifests.yaml]\ncluster: {{zones: [{zones}]}}\n{rest}\
             policies: [{{name: only, autoscaler: karpenter}}]\n"
        );
        let pool = format!(
            "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: default}}\nspec:\n  \
             disruption: {{consolidationPolicy: WhenEmpty, consolidateAfter: Never}}\n  template:\n    spec:\n      \
             expireAfter: {expire}\n      \
             nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}\n      requirements:\n      \
             - {{key: karpenter.sh/capacity-type, operator: In, values: [{capacity_types}]}}\n      \
             - {{key: node.kubernetes.io/instance-type, operator: In, values: [{types}]}}\n\
             ---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default}}\nspec: \
             {{amiSelectorTerms: [{{alias: al2023@latest}}]}}\n"
        );
        std::fs::write(directory.path().join("scenario.yaml"), scenario).unwrap();
        std::fs::write(directory.path().join("manifests.yaml"), format!("{pool}{manifests}")).unwrap();
        nodecast::scenario::load(&directory.path().join("scenario.yaml")).unwrap().0
    }
}

/// Requests of which one pod fills an m5.large and two an m5.xlarge.
const LARGE: &str = "cpu: 1500m, memory: 1Gi";

fn millis(span: SimDuration) -> i64 {
    span.as_micros() / 1_000
}

fn seconds(at: SimTime) -> i64 {
    (at - SimTime::ZERO).as_secs()
}

/// When something of this kind happened.
fn times(outcome: &Outcome, kind: EventKind) -> Vec<SimTime> {
    outcome.record.events.iter().filter(|event| event.kind == kind).map(|event| event.at).collect()
}

/// Type, zone and capacity type of each launched node, and its pods, in the order of the claims.
fn launched(outcome: &Outcome) -> Vec<String> {
    let nodes = outcome.record.nodes.iter().filter(|node| node.launched.is_some());
    let text = |name: Option<nodecast::domain::Symbol>| name.map_or("", |name| name.as_str());
    nodes.map(|node| format!("{} {} {}", text(node.instance_type), text(node.zone), text(node.capacity_type))).collect()
}

fn failed(outcome: &Outcome) -> usize {
    outcome.record.nodes.iter().filter(|node| node.end == Some(NodeEnd::LaunchFailed)).count()
}

fn pending(outcome: &Outcome) -> usize {
    outcome.record.pods.iter().filter(|pod| pod.node.is_none() && pod.removed.is_none()).count()
}

#[test]
fn batch_window_ends_on_idle_or_maximum() {
    for (pods, gap, after_last, after_first) in [(1, 0, 1_000, 1_000), (3, 600, 1_000, 2_200), (20, 900, 0, 10_000)] {
        let mut steps = "timeline:\n".to_owned();
        for pod in 0..pods {
            let at = 1_000 + pod * gap;
            let _ = writeln!(steps, "  - {{at: {at}ms, scale: {{workload: default/web, replicas: {}}}}}", pod + 1);
        }
        let outcome = Cluster::new("m5.large").deployment("web", 0, LARGE, "").with(&steps).run();
        let seen: Vec<SimTime> = outcome.record.pods.iter().filter_map(|pod| pod.unschedulable).collect();
        let pass = times(&outcome, EventKind::ClaimsComputed)[0];
        // Controllers answer within 50 to 150 ms.
        assert!((millis(pass - seen[0]) - after_first).abs() <= 110, "{pods} pods: {}", pass - seen[0]);
        let last = *seen.iter().filter(|&&at| at < pass).max().unwrap();
        if after_last > 0 {
            // The pass itself takes some hundredths of a second.
            assert!((0..=60).contains(&(millis(pass - last) - after_last)), "{pods} pods: {}", pass - last);
        } else {
            assert!(millis(pass - last) < 1_060);
        }
    }
}

#[test]
fn pods_arriving_during_launch_wait_for_next_batch() {
    let steps = "timeline:\n  - {at: 1s, scale: {workload: default/a, replicas: 1}}\n  \
        - {at: 2200ms, scale: {workload: default/b, replicas: 1}}\n";
    let cluster = Cluster::new("m5.large").deployment("a", 0, LARGE, "").deployment("b", 0, LARGE, "");
    let outcome = cluster.with(steps).run();
    let passes = times(&outcome, EventKind::ClaimsComputed);
    let first_launch = outcome.record.nodes[0].launched.unwrap();
    let second = outcome.record.pods.facts(nodecast::domain::PodId(1)).unschedulable.unwrap();
    assert!(second + SimDuration::from_secs(1) < first_launch, "the launch was over before the second window closed");
    // The first pod still has no Ready node, so it triggers again after ten seconds, and takes the second one along.
    let first = outcome.record.pods.facts(nodecast::domain::PodId(0)).unschedulable.unwrap();
    assert!((11_000..=11_080).contains(&millis(passes[1] - first)), "{}", passes[1] - first);
    assert_eq!((outcome.record.nodes.len(), outcome.record.nodes[1].requested), (2, passes[1]));
}

const WEB_BUDGET: &str = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {RULE, selector: {matchLabels: {app: web}}}";

#[test]
fn pods_of_deleted_node_share_one_new_node() {
    let daemon = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec:\n  selector: {matchLabels: {app: agent}}\n  \
        template:\n    metadata: {labels: {app: agent}}\n    spec:\n      \
        containers: [{name: a, image: a, resources: {requests: {cpu: 100m}}}]";
    // With the budget the second pod is still in its place when the pass begins; without it both are terminating.
    for budget in [Some("maxUnavailable: 1"), None] {
        let mut cluster = Cluster::new("m5.large").deployment("web", 2, "cpu: 500m", "").manifest(daemon);
        cluster.expire = "10m";
        cluster.duration = "11m";
        if let Some(rule) = budget {
            cluster = cluster.manifest(&WEB_BUDGET.replace("RULE", rule));
        }
        let outcome = cluster.run();
        let expired = outcome.record.nodes[0].deletion_requested.unwrap();
        assert_eq!(seconds(expired) - seconds(outcome.record.nodes[0].requested), 600);
        assert_eq!(outcome.record.nodes.len(), 2, "one node in the place of the other");
        let mut claims = outcome.record.events.iter().filter(|event| event.kind == EventKind::ClaimCreated);
        let message = &claims.nth(1).unwrap().message;
        assert!(message.starts_with("2 pods"), "{budget:?}: {message}");
        assert!((seconds(outcome.record.nodes[1].requested) - seconds(expired)) <= 2);
    }
}

#[test]
fn pods_blocked_by_pdb_get_no_new_node() {
    let two = format!("{}\n---\n{}", WEB_BUDGET, WEB_BUDGET.replace("name: web", "name: also"));
    for (budgets, nodes) in [
        (WEB_BUDGET.replace("RULE", "maxUnavailable: 0"), 1),
        (WEB_BUDGET.replace("RULE", "maxUnavailable: 0%"), 1),
        (WEB_BUDGET.replace("RULE", "minAvailable: 100%"), 1),
        (two.replace("RULE", "maxUnavailable: 1"), 1),
        // A count is not looked through, although it allows nothing either.
        (WEB_BUDGET.replace("RULE", "minAvailable: 1"), 2),
    ] {
        let mut cluster = Cluster::new("m5.large").deployment("web", 1, "cpu: 500m", "").manifest(&budgets);
        cluster.expire = "10m";
        cluster.duration = "11m";
        let outcome = cluster.run();
        assert!(outcome.record.nodes[0].deletion_requested.is_some() && outcome.record.nodes[0].drained.is_none());
        assert_eq!(outcome.record.nodes.len(), nodes, "{budgets}");
    }
}

/// A cluster whose only node reaches its age limit after ten minutes.
fn expiring(duration: &'static str) -> Cluster {
    let mut cluster = Cluster::new("m5.large").deployment("web", 1, "cpu: 500m", "");
    (cluster.expire, cluster.duration) = ("10m", duration);
    cluster
}

/// What warnings say of drains that go on.
fn stuck(outcome: &Outcome) -> Vec<String> {
    outcome.warnings.texts().into_iter().filter(|text| text.contains("has been draining")).collect()
}

#[test]
fn undrainable_node_is_warned_about_with_blocker() {
    let never = WEB_BUDGET.replace("RULE", "maxUnavailable: 0");
    let outcome = expiring("30m").manifest(&never).run();
    let budget = "NodePool default: at the end of the run a node has been draining for over 15 minutes and is still billed: PodDisruptionBudget default/web allows no disruptions; allow at least one disruption in that budget, or set `terminationGracePeriod` in the NodePool to force deletion after that time";
    assert_eq!(stuck(&outcome), [budget]);
    let summary = Summary::from_outcome(&outcome);
    assert!(summary.nodes.terminations.is_empty(), "{:?}", summary.nodes.terminations);
    assert_eq!(summary.nodes.draining_at_end, 1);
    assert!(terminal::table(&summary).contains("1 launched, 0 removed, 1 still draining at the end"));
    // A drain that has not taken long is no matter.
    let outcome = expiring("20m").manifest(&never).run();
    assert_eq!((Summary::from_outcome(&outcome).nodes.draining_at_end, stuck(&outcome)), (1, Vec::new()));

    let mut annotated = expiring("30m");
    annotated.manifests = annotated.manifests.replace(
        "metadata: {labels: {app: web}}",
        "metadata: {labels: {app: web}, annotations: {karpenter.sh/do-not-disrupt: \"true\"}}",
    );
    let told = stuck(&annotated.run());
    assert!(
        told.len() == 1 && told[0].contains("pods of default/web have the annotation `karpenter.sh/do-not-disrupt`"),
        "{told:?}"
    );

    // What ends the drain whatever keeps the pods: in time, and not yet.
    let mut bounded = expiring("18m").manifest(&never);
    bounded.expire = "10m\n      terminationGracePeriod: 5m";
    let summary = Summary::from_outcome(&bounded.run());
    assert_eq!((summary.nodes.terminations[0].name.as_str(), summary.nodes.terminations[0].count), ("expired", 1));
    assert_eq!(summary.nodes.draining_at_end, 0);
    assert!(!serde_json::to_string(&summary).unwrap().contains("draining_at_end"));
    (bounded.expire, bounded.duration) = ("10m\n      terminationGracePeriod: 1h", "30m");
    let told = stuck(&bounded.run());
    assert!(
        told.iter()
            .any(|item| item.contains("default/web allows no disruptions") && item.ends_with("will end the drain)")),
        "{told:?}"
    );
}

#[test]
fn explain_shows_drain_blockers() {
    let scenario = expiring("30m").manifest(&WEB_BUDGET.replace("RULE", "maxUnavailable: 0")).load();
    let ask = |minutes: i64| {
        let at = SimTime::ZERO + SimDuration::from_secs(minutes * 60);
        let subject = Subject::Node { name: "default-00001".to_owned(), at };
        let policy = scenario.for_policy(None).unwrap();
        explain(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &subject).unwrap()
    };
    assert!(ask(5).node.unwrap().drain.is_none());
    let answer = ask(25);
    let drain = answer.node.as_ref().unwrap().drain.as_ref().unwrap();
    assert_eq!((drain.reason, drain.kept_by.len()), (Some("expired"), 1));
    assert!(
        drain.kept_by[0].ends_with("(default/web): PodDisruptionBudget default/web allows no eviction"),
        "{:?}",
        drain.kept_by
    );
    let told = text(&answer);
    assert!(told.contains("(expired)\n    blocked by pod web-"), "{told}");
}

fn short_of(pools: &str, time: &str) -> String {
    format!("faults: [{{at: 0s, {time}insufficient_capacity: {{{pools}}}}}]\n")
}

#[test]
fn sold_out_type_launches_smaller_types() {
    // Only the large type has room for both pods, so the first pass asks for nothing else.
    let neuron = "cpu: 1, aws.amazon.com/neuron: 1";
    for (types, out, requests, instead) in [
        ("m5.large, m5.xlarge", "m5.xlarge", LARGE, "m5.large"),
        ("inf1.xlarge, inf1.6xlarge", "inf1.6xlarge", neuron, "inf1.xlarge"),
    ] {
        let cluster = Cluster::new(types).deployment("web", 2, requests, "");
        let outcome = cluster.with(&short_of(&format!("type: {out}"), "")).run();
        assert_eq!(launched(&outcome), vec![format!("{instead} us-east-1a on-demand"); 2]);
        assert_eq!((failed(&outcome), pending(&outcome)), (1, 0));
        assert!(outcome.record.nodes.iter().all(|node| seconds(node.requested) < 30));
    }
}

#[test]
fn sold_out_preferred_zone_uses_another() {
    let affinity = "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: \
        {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}]}}]}}";
    let mut cluster = Cluster::new("m5.large").deployment("web", 1, LARGE, affinity);
    cluster.zones = "us-east-1a, us-east-1b";
    assert_eq!(launched(&cluster.run()), ["m5.large us-east-1a on-demand"]);
    let outcome = cluster.with("faults: [{at: 0s, zone_outage: {zone: us-east-1a}}]\n").run();
    assert_eq!((launched(&outcome), failed(&outcome)), (vec!["m5.large us-east-1b on-demand".to_owned()], 1));
}

#[test]
fn a_capacity_error_is_forgotten_after_three_minutes() {
    let outcome =
        Cluster::new("m5.large").deployment("web", 1, LARGE, "").with(&short_of("type: m5.large", "for: 1m, ")).run();
    let first = &outcome.record.nodes[0];
    let second = &outcome.record.nodes[1];
    assert_eq!((outcome.record.nodes.len(), first.end), (2, Some(NodeEnd::LaunchFailed)));
    let waited = (second.requested - first.terminated.unwrap()).as_secs();
    assert!((180..=190).contains(&waited), "{waited} s");
    assert!(second.launched.is_some());
}

#[test]
fn no_spot_capacity_launches_on_demand() {
    let mut cluster = Cluster::new("m5.large").deployment("web", 1, LARGE, "");
    cluster.capacity_types = "spot, on-demand";
    let outcome = cluster.with(&short_of("capacity_type: spot", "")).run();
    assert_eq!((launched(&outcome), failed(&outcome)), (vec!["m5.large us-east-1a on-demand".to_owned()], 1));
    assert_eq!(times(&outcome, EventKind::SpotFallback).len(), 1);
}

#[test]
fn capacity_error_deletes_claim_at_once() {
    let cluster = || Cluster { duration: "12m", ..Cluster::new("m5.large") }.deployment("web", 1, LARGE, "");
    let life = |outcome: &Outcome| {
        let node = &outcome.record.nodes[0];
        assert_eq!(node.end, Some(NodeEnd::LaunchFailed));
        (node.terminated.unwrap() - node.requested).as_secs()
    };
    assert!(life(&cluster().with(&short_of("type: m5.large", "")).run()) < 10);
    let refused = "faults: [{at: 0s, for: 4m, api_throttle: {size: 1, per_second: 0}}]\n";
    // The one call that is let through launches the first node.
    let two = cluster().deployment("more", 1, LARGE, "").with(refused).run();
    assert_eq!((launched(&two).len(), failed(&two)), (2, 0), "it is tried again until calls are taken");
    let for_ever = refused.replace("for: 4m, ", "");
    let outcome = cluster().deployment("more", 1, LARGE, "").with(&for_ever).run();
    let given_up: Vec<i64> = outcome
        .record
        .nodes
        .iter()
        .filter(|node| node.end == Some(NodeEnd::LaunchFailed))
        .map(|node| (node.terminated.unwrap() - node.requested).as_secs())
        .collect();
    assert!(given_up.len() >= 2 && given_up.iter().all(|life| (300..=301).contains(life)), "{given_up:?}");
}

#[test]
fn unregistered_node_is_replaced_after_fifteen_minutes() {
    let stages = |register: &str, cni: &str| {
        format!("ec2: {{launch_latency: {{register: {register}, cni_ready: {cni}, spread: false}}}}\n")
    };
    for (latency, ends) in [(stages("20m", "10s"), Some(NodeEnd::NotRegistered)), (stages("10m", "2h"), None)] {
        let mut cluster = Cluster::new("m5.large").deployment("web", 1, LARGE, "").with(&latency);
        cluster.duration = "17m";
        let outcome = cluster.run();
        let first = &outcome.record.nodes[0];
        assert_eq!(first.end, ends);
        if ends.is_some() {
            // The claim's creation is stored in whole seconds.
            assert_eq!(seconds(first.deletion_requested.unwrap()) - seconds(first.requested), 900);
            let second = &outcome.record.nodes[1];
            assert!(second.requested >= first.deletion_requested.unwrap());
        } else {
            assert_eq!(outcome.record.nodes.len(), 1);
        }
    }
}

#[test]
fn zone_without_capacity_delays_spread_while_emptiest() {
    let spread = "topologySpreadConstraints: [{topologyKey: topology.kubernetes.io/zone, maxSkew: 1, \
        whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]";
    let outage = "faults: [{at: 0s, for: 2m, zone_outage: {zone: us-east-1c}}]\n";
    let last_bound = |pods: u32| {
        let mut cluster = Cluster::new("m5.large").deployment("web", pods, LARGE, spread).with(outage);
        cluster.zones = "us-east-1a, us-east-1b, us-east-1c";
        let outcome = cluster.run();
        assert_eq!(pending(&outcome), 0);
        outcome.record.pods.iter().map(|pod| seconds(pod.scheduled.unwrap())).max().unwrap()
    };
    // One pod finds another zone; of three the last has to wait for the third zone.
    assert!(last_bound(1) < 120, "{}", last_bound(1));
    assert!((180..300).contains(&last_bound(3)), "{}", last_bound(3));
}

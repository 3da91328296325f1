//! What holds in every run that Karpenter's disruption takes part in, on random small clusters that grow, shrink and meet
//! capacity errors.

use std::fmt::Write;

use nodecast::catalog::Catalog;
use nodecast::cluster::NodePhase;
use nodecast::domain::node_pool::DisruptionReason;
use nodecast::domain::{HourlyRate, NodeId, SimDuration, SimTime, well_known};
use nodecast::scenario::Scenario;
use nodecast::simulation::{Resolved, Simulation, resolve};
use nodecast::world::World;
use nodecast::world::record::{EventKind, WorkloadKind};
use proptest::prelude::{Strategy, any, prop, proptest};
use proptest::test_runner::Config;

/// How long each run is.
const MINUTES: i64 = 40;
/// A command that began so long before the end has ended: ten minutes is the most that it may take, and a look is due every
/// second.
const ENDS_WITHIN: SimDuration = SimDuration::from_secs(11 * 60);

/// A Deployment: replicas at the start, after 8 minutes and after 16, thousandths of a CPU for each, and whether a
/// PodDisruptionBudget lets one go at a time.
type Service = ([u32; 3], i64, bool);

#[derive(Clone, Debug)]
struct Cluster {
    services: Vec<Service>,
    /// Nodes that may be away at once.
    budget: i64,
    consolidate_after: u32,
    /// Probability in percent that EC2 lacks the smallest type.
    no_capacity: u32,
    seed: u64,
}

fn clusters() -> impl Strategy<Value = Cluster> {
    let replicas = [1..9_u32, 0..9, 0..9];
    let service = (replicas, 300..3_500_i64, any::<bool>());
    let parts = (prop::collection::vec(service, 1..4), 1..4_i64, 0..60_u32, 0..80_u32, any::<u16>());
    parts.prop_map(|(services, budget, consolidate_after, no_capacity, seed)| Cluster {
        services,
        budget,
        consolidate_after,
        no_capacity,
        seed: u64::from(seed),
    })
}

impl Cluster {
    fn manifests(&self) -> String {
        let mut text = format!(
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: default}}\nspec:\n  disruption: \
             {{consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: {}s, budgets: [{{nodes: \"{}\"}}]}}\n  \
             template:\n    spec:\n      expireAfter: Never\n      \
             nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}\n      requirements:\n      \
             - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}\n      \
             - {{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m5.xlarge, m5.2xlarge]}}\n\
             ---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default}}\nspec: \
             {{amiSelectorTerms: [{{alias: al2023@latest}}]}}\n",
            self.consolidate_after, self.budget
        );
        for (number, (replicas, cpu, guarded)) in self.services.iter().enumerate() {
            let _ = write!(
                text,
                "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: app-{number}}}\nspec:\n  replicas: {}\n  \
                 selector: {{matchLabels: {{app: app-{number}}}}}\n  template:\n    metadata: {{labels: {{app: \
                 app-{number}}}}}\n    spec:\n      containers: [{{name: app, image: app, resources: {{requests: {{cpu: \
                 {cpu}m, memory: 256Mi}}}}}}]\n",
                replicas[0]
            );
            if *guarded {
                let _ = write!(
                    text,
                    "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: app-{number}}}\nspec: \
                     {{maxUnavailable: 1, selector: {{matchLabels: {{app: app-{number}}}}}}}\n"
                );
            }
        }
        text
    }

    fn scenario(&self) -> Scenario {
        let mut text = format!(
            "name: test\nregion: us-east-1\nstart: 2026-01-01T00:00:00Z\nduration: {MINUTES}m\nseed: {}\n\
             versions: {{karpenter: v1.13}}\nmanifests: [manifests.yaml]\ncluster: {{zones: [us-east-1a]}}\n\
             policies: [{{name: only, autoscaler: karpenter}}]\n\
             faults: [{{at: 0s, for: {MINUTES}m, insufficient_capacity: {{type: m5.large, probability: {}%}}}}]\ntimeline:\n",
            self.seed, self.no_capacity
        );
        for (at, step) in [("8m", 1), ("16m", 2)] {
            for (number, (replicas, _, _)) in self.services.iter().enumerate() {
                let replicas = replicas[step];
                let _ = writeln!(text, "  - {{at: {at}, scale: {{workload: app-{number}, replicas: {replicas}}}}}");
            }
        }
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("scenario.yaml"), text).unwrap();
        std::fs::write(directory.path().join("manifests.yaml"), self.manifests()).unwrap();
        nodecast::scenario::load(&directory.path().join("scenario.yaml")).unwrap().0
    }

    /// Nodes on their way out that count for the budget: here nothing but disruption removes a node.
    fn keeps_its_budget(&self, world: &World, at: SimTime) {
        let leaves = |&&node: &&NodeId| {
            let state = world.node(node);
            let tainted = state.taints.iter().any(|taint| taint.key == well_known::TAINT_DISRUPTED);
            state.phase == NodePhase::Registered && (tainted || state.deletion_requested.is_some())
        };
        let away = world.live_nodes().iter().filter(leaves).count() as i64;
        assert!(away <= self.budget, "{away} nodes leave at {at}");
    }

    /// After an eviction, whoever was evicted, at most one pod of a guarded Deployment is missing.
    fn keeps_pod_budgets(&self, world: &World, from: usize) {
        for event in world.record().events.since(from) {
            let (Some(pod), EventKind::PodEvicted) = (event.pod, event.kind) else { continue };
            if world.record().pods.facts(pod).ready.is_none() {
                continue;
            }
            let workload = world.workload(world.pod(pod).workload);
            let number: Option<usize> = workload.name.name.as_str().strip_prefix("app-").and_then(|n| n.parse().ok());
            if number.is_some_and(|number| self.services[number].2) {
                let ready =
                    workload.pods.iter().filter(|&&pod| world.pod(pod).is_ready() && world.pod(pod).is_active());
                let ready = ready.count() as u32;
                assert!(ready + 1 >= workload.replicas, "{ready} of {} at {}", workload.replicas, event.at);
            }
        }
    }
}

/// Every Deployment has as many pods as it wants.
fn has_lost_no_pod(world: &World) {
    for (_, workload) in world.workloads().filter(|(_, workload)| workload.kind == WorkloadKind::Deployment) {
        let there = workload.pods.iter().filter(|&&pod| world.pod(pod).is_active()).count() as u32;
        assert_eq!(there, workload.replicas, "{}", workload.name);
    }
}

/// Every command has ended, and those of consolidation that succeeded have made the cluster cheaper.
fn commands_end_and_save(world: &World, end: SimTime) {
    let record = world.record();
    let rate = |nodes: &[NodeId]| -> HourlyRate { nodes.iter().map(|node| record.nodes[node.index()].rate).sum() };
    for command in &record.commands {
        let ended = command.rejected.is_some() || command.failed.is_some() || command.succeeded.is_some();
        let began = command.started.or(command.proposed).unwrap_or_default();
        assert!(ended || began > end - ENDS_WITHIN, "{command:?} has not ended");
        if command.reason == DisruptionReason::Underutilized && command.succeeded.is_some() {
            let (before, after) = (rate(&command.nodes), rate(&command.made));
            assert!(after < before, "{before} to {after}: {command:?}");
        }
    }
}

/// Runs a cluster, looking at it after every event; how many commands succeeded.
fn run(cluster: &Cluster) -> usize {
    let scenario = cluster.scenario();
    let policy = scenario.for_policy(None).unwrap();
    let resolved = resolve(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed).unwrap();
    let Resolved { setup, .. } = resolved;
    let mut simulation = Simulation::new(&setup);
    let mut seen = 0;
    while let Some(at) = simulation.step() {
        let world = &simulation.components().sim.world;
        if world.record().events.len() > seen {
            cluster.keeps_its_budget(world, at);
            cluster.keeps_pod_budgets(world, seen);
            seen = world.record().events.len();
        }
    }
    let world = &simulation.components().sim.world;
    has_lost_no_pod(world);
    commands_end_and_save(world, SimTime::ZERO + setup.scenario.duration);
    world.record().commands.iter().filter(|command| command.succeeded.is_some()).count()
}

proptest! {
    #![proptest_config(Config { cases: Config::default().cases / 16, failure_persistence: None, ..Config::default() })]

    #[test]
    fn disruption_respects_budgets_and_saves_cost(cluster in clusters()) {
        run(&cluster);
    }
}

#[test]
fn property_test_clusters_are_disrupted() {
    let services = vec![([6, 1, 4], 1_700, true), ([4, 2, 1], 1_500, false)];
    let cluster = Cluster { services, budget: 2, consolidate_after: 10, no_capacity: 0, seed: 7 };
    assert!(run(&cluster) >= 1);
}

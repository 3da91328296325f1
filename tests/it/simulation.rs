//! Whole simulations of small clusters: what must hold at every instant, on fixed and on random scenarios.

use std::fmt::Write;
use std::path::Path;

use nodecast::catalog::Catalog;
use nodecast::cluster::{NodePhase, PodPhase};
use nodecast::domain::taints::{TaintEffect, first_untolerated};
use nodecast::domain::{NodeId, SimDuration, SimTime};
use nodecast::engine::Streams;
use nodecast::scenario::Scenario;
use nodecast::simulation::{self, Outcome, Simulation, resolve};
use nodecast::world::World;
use nodecast::world::record::{EventKind, NodeEnd};

/// Loads a scenario written as text, with one file of manifests beside it.
fn load(directory: &Path, scenario: &str, manifests: &str) -> Scenario {
    std::fs::write(directory.join("scenario.yaml"), scenario).unwrap();
    std::fs::write(directory.join("manifests.yaml"), manifests).unwrap();
    nodecast::scenario::load(&directory.join("scenario.yaml")).unwrap().0
}

fn run(scenario: &str, manifests: &str) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let scenario = load(directory.path(), scenario, manifests);
    let policy = scenario.for_policy(None).unwrap();
    simulation::run(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &mut |_| {}).unwrap()
}

fn deployment(name: &str, replicas: u32, cpu: &str, memory: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: {replicas}\n  \
         selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      \
         containers: [{{name: app, image: app, resources: {{requests: {{cpu: {cpu}, memory: {memory}}}}}}}]\n"
    )
}

const NODE_POOL: &str = "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\nspec:\n  \
    disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s}\n  template:\n    spec:\n      \
    expireAfter: EXPIRE\n      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n      \
    requirements:\n      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}\n      \
    - {key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}\n\
    ---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec: \
    {amiSelectorTerms: [{alias: al2023@latest}]}\n";

fn node_pool(expire: &str) -> String {
    NODE_POOL.replace("EXPIRE", expire)
}

fn scenario(duration: &str, rest: &str) -> String {
    format!(
        "name: test\nregion: us-east-1\nstart: 2026-01-01T00:00:00Z\nduration: {duration}\nseed: 3\n\
         manifests: [manifests.yaml]\n{rest}policies: [{{name: only, autoscaler: karpenter}}]\n"
    )
}

#[test]
fn pdb_drains_expired_node_one_by_one() {
    let budget = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: \
        {maxUnavailable: 1, selector: {matchLabels: {app: web}}}\n";
    let manifests = format!("{}{}{budget}", node_pool("30m"), deployment("web", 3, "500m", "512Mi"));
    let outcome = run(&scenario("45m", ""), &manifests);
    let expired = outcome.record.nodes.iter().find(|node| node.end == Some(NodeEnd::Expired)).unwrap();
    // The claim's creation is stored in whole seconds.
    assert_eq!(expired.deletion_requested.unwrap().as_secs() - expired.requested.as_secs(), 30 * 60);
    let mut evicted: Vec<SimTime> =
        outcome.record.pods.iter().filter(|pod| pod.evicted).map(|pod| pod.deletion_requested.unwrap()).collect();
    evicted.sort();
    assert_eq!(evicted.len(), 3);
    // Each waits until the one before is Ready again elsewhere.
    assert!(evicted.windows(2).all(|pair| (pair[1] - pair[0]).as_secs() >= 1), "{evicted:?}");
    for moment in evicted {
        let away = outcome.record.pods.iter().filter(|pod| {
            let ready = pod.ready.is_some_and(|at| at <= moment) && pod.deletion_requested.is_none_or(|at| at > moment);
            !ready
                && pod.created <= moment
                && pod.removed.is_none_or(|at| at > moment)
                && pod.deletion_requested != Some(moment)
        });
        let leaving = away.filter(|pod| pod.deletion_requested.is_none()).count();
        assert_eq!(leaving, 0, "no replacement was still on its way when the next pod was evicted");
    }
}

#[test]
fn blocking_pdb_keeps_expired_node_forever() {
    let budget = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: \
        {maxUnavailable: 0, selector: {matchLabels: {app: web}}}\n";
    let manifests = format!("{}{}{budget}", node_pool("10m"), deployment("web", 1, "500m", "512Mi"));
    let outcome = run(&scenario("30m", ""), &manifests);
    assert!(outcome.record.nodes.iter().any(|node| node.deletion_requested.is_some() && node.terminating.is_none()));
    assert!(outcome.record.pods.iter().all(|pod| !pod.evicted));
}

#[test]
fn unschedulable_pods_wait_without_autoscaler() {
    let cluster = "---\napiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c, region: us-east-1}\n\
        managedNodeGroups: [{name: ng, instanceType: m5.large, desiredCapacity: 1, minSize: 1, maxSize: 1}]\n";
    let manifests = format!("{cluster}{}", deployment("web", 3, "900m", "1Gi"));
    let text = scenario("30m", "").replace("autoscaler: karpenter", "autoscaler: none");
    let outcome = run(&text, &manifests);
    let waiting = outcome.record.pods.iter().filter(|pod| pod.node.is_none()).count();
    assert_eq!((outcome.record.nodes.len(), waiting), (1, 1));
}

#[test]
fn oversized_pod_launches_nothing_with_reason() {
    let manifests = format!("{}{}", node_pool("Never"), deployment("huge", 1, "500", "1Gi"));
    let outcome = run(&scenario("5m", ""), &manifests);
    assert!(outcome.record.nodes.is_empty());
    let refusal = outcome.record.events.iter().find(|event| event.kind == EventKind::PodNotPlaced).unwrap();
    assert!(refusal.message.contains("no instance type"), "{}", refusal.message);
}

#[test]
fn pod_with_unknown_claim_runs_with_assumption() {
    let claim = "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}], containers:";
    let manifests = format!("{}{}", node_pool("Never"), deployment("db", 1, "500m", "1Gi"));
    let manifests = manifests.replace("      containers:", &format!("      {{{claim}"));
    let manifests = manifests.replace("1Gi}}}]\n", "1Gi}}}]}\n");
    let outcome = run(&scenario("5m", ""), &manifests);
    assert!(outcome.record.pods.iter().all(|pod| pod.ready.is_some()));
    assert!(
        outcome.warnings.iter().any(|warning| warning.contains("PersistentVolumeClaim data is not in the manifests")),
        "{:?}",
        outcome.warnings
    );
}

/// What must hold whenever anything has happened.
fn check(world: &World, nodes: usize, pods: usize, now: SimTime) {
    for id in (0..nodes).map(NodeId::from_index) {
        let node = world.node(id);
        if node.phase != NodePhase::Registered {
            continue;
        }
        assert!(
            node.requested.fits(&node.allocatable),
            "{now}: {} holds {} of {}",
            node.name,
            node.requested,
            node.allocatable
        );
        let mut sum = nodecast::domain::Resources::new();
        for &pod in &node.pods {
            let pod = world.pod(pod);
            sum.add(&pod.requests);
            assert!(
                pod.spec.selects_node(&node.labels, node.name.as_str()),
                "{now}: a pod does not select {}",
                node.name
            );
        }
        for (name, amount) in sum.iter() {
            assert_eq!(amount, node.requested.get(name), "{now}: {} counts {name} wrongly", node.name);
        }
    }
    let states = (0..pods).map(|index| world.pod(nodecast::domain::PodId::from_index(index)));
    let live: Vec<_> = states.filter(|pod| !pod.daemon && pod.phase != PodPhase::Gone).collect();
    let ready = live.iter().filter(|pod| pod.is_ready()).count() as u32;
    let pending = live.iter().filter(|pod| pod.phase == PodPhase::Pending).count() as u32;
    let counts = world.counts();
    assert_eq!((counts.ready, counts.pending), (ready, pending), "{now}: pods are miscounted");
    assert_eq!(counts.starting, live.len() as u32 - ready - pending, "{now}: pods are miscounted");
}

/// A random small scenario: workloads of random sizes, scaled up and down at random, under a random release.
fn random_scenario(seed: u64) -> (String, String) {
    let mut stream = Streams::new(seed).stream("swarm", "");
    let mut pick = |most: u32| (stream.uniform() * f64::from(most)) as u32;
    let expire = ["Never", "25m", "1h"][pick(3) as usize];
    let mut manifests = node_pool(expire);
    if pick(2) == 0 {
        manifests =
            manifests.replace("values: [on-demand]", "values: [spot, on-demand]").replace("[m5]", "[m5, c6g, t3]");
    }
    let mut timeline = String::new();
    for workload in 0..1 + pick(4) {
        let (cpu, memory) = (50 + pick(3_000), 64 + pick(6_000));
        let _ = write!(
            manifests,
            "{}",
            deployment(&format!("w{workload}"), pick(12), &format!("{cpu}m"), &format!("{memory}Mi"))
        );
        for _ in 0..pick(4) {
            let (at, replicas) = (pick(50), pick(25));
            let _ =
                writeln!(timeline, "  - {{at: {at}m, scale: {{workload: default/w{workload}, replicas: {replicas}}}}}");
        }
        if pick(3) == 0 {
            let _ = write!(
                manifests,
                "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: w{workload}}}\nspec: \
                 {{maxUnavailable: 1, selector: {{matchLabels: {{app: w{workload}}}}}}}\n"
            );
        }
    }
    let version = ["v1.13", "v0.22", "v0.18"][pick(3) as usize];
    let timeline = if timeline.is_empty() { String::new() } else { format!("timeline:\n{timeline}") };
    (scenario("1h", &format!("versions: {{karpenter: {version}}}\n{timeline}")), manifests)
}

#[test]
fn random_clusters_always_satisfy_invariants() {
    for seed in 0..25 {
        let (text, manifests) = random_scenario(seed);
        let directory = tempfile::tempdir().unwrap();
        let scenario = load(directory.path(), &text, &manifests);
        let policy = scenario.for_policy(None).unwrap();
        let resolved = resolve(&scenario, policy, Catalog::embedded().unwrap(), seed).unwrap();
        let mut simulation = Simulation::new(&resolved.setup);
        let mut checked = SimTime::ZERO;
        while let Some(now) = simulation.step() {
            let world = &simulation.components().sim.world;
            let (nodes, pods) = (world.record().nodes.len(), world.record().pods.len());
            check(world, nodes, pods, now);
            assert!(now >= checked, "time went backwards");
            checked = now;
        }
        let world = &simulation.components().sim.world;
        let idle_since = SimTime::ZERO + SimDuration::from_secs(55 * 60);
        for pod in (0..world.record().pods.len()).map(nodecast::domain::PodId::from_index) {
            let state = world.pod(pod);
            let waits = state.phase == PodPhase::Pending && state.created < idle_since && state.is_active();
            assert!(!waits, "seed {seed}: {} waited for five minutes", world.pod_name(pod));
        }
        let taints_respected = world.live_nodes().iter().all(|&node| {
            let node = world.node(node);
            let kept = node.taints.iter().filter(|taint| taint.effect == TaintEffect::NoExecute);
            node.pods.iter().all(|&pod| first_untolerated(kept.clone(), &world.pod(pod).spec.tolerations).is_none())
        });
        assert!(taints_respected, "seed {seed}");
    }
}

#[test]
fn urgent_pod_preempts_placeholders() {
    let cluster = "---\napiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c, region: us-east-1}\n\
        managedNodeGroups: [{name: ng, instanceType: m5.large, desiredCapacity: 1, minSize: 1, maxSize: 1}]\n\
        ---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: placeholder}\nvalue: -10\n";
    let pause = deployment("pause", 3, "500m", "512Mi")
        .replace("containers:", "priorityClassName: placeholder\n      containers:");
    let manifests = format!("{cluster}{pause}");
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("web.yaml"), deployment("web", 1, "900m", "512Mi")).unwrap();
    let text = scenario("30m", "timeline: [{at: 10m, manifests: [web.yaml]}]\n")
        .replace("autoscaler: karpenter", "autoscaler: none");
    let scenario = load(directory.path(), &text, &manifests);
    let policy = scenario.for_policy(None).unwrap();
    let outcome = simulation::run(&scenario, policy, Catalog::embedded().unwrap(), 3, &mut |_| {}).unwrap();
    let web = outcome.record.pods.iter().find(|pod| pod.name.starts_with("web")).unwrap();
    let waited = web.scheduled.unwrap() - web.created;
    // Until the placeholder that it evicted has stopped.
    assert!((1..10).contains(&waited.as_secs()), "{waited}");
    let evicted: Vec<_> = outcome.record.pods.iter().filter(|pod| pod.evicted).collect();
    assert_eq!(evicted.len(), 1, "500m of one beside the 430m that are free");
    let waiting = outcome.record.pods.iter().filter(|pod| pod.scheduled.is_none() && pod.removed.is_none());
    assert_eq!(waiting.count(), 1, "its replacement finds no room");
    let reason = outcome.record.events.iter().find(|event| event.kind == EventKind::PodEvicted).unwrap();
    assert!(reason.message.starts_with("preempted by web-"), "{}", reason.message);
}

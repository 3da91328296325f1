//! A hand-made outcome of one hour, small enough to check by hand: a Deployment with load on an m5.large that was there
//! from the start, a Spot node that comes and goes, a launch that fails and an On-Demand node that stays.

use nodecast::catalog::PriceQuality;
use nodecast::cloud::{Bill, BillItem, BillLine};
use nodecast::domain::workload::ObjectName;
use nodecast::domain::{
    Accrual, Currency, HourlyRate, Labels, Money, NodeId, NodePool, PodId, Resources, SimDuration, SimTime, Symbol,
    Versions, WorkloadId,
};
use nodecast::scenario::manifests::lints::PRE_STOP;
use nodecast::scenario::{Caveat, Caveats};
use nodecast::simulation::Outcome;
use nodecast::simulation::outcome::{
    About, InputHash, Objectives, Objects, QueueSummary, ReplicaAutoscaler, RequestSummary, ResponseFigures,
};
use nodecast::world::record::{
    AvailabilityFacts, Event, EventKind, MetricFacts, MetricSample, MetricUnit, NodeEnd, NodeFacts, NodeOrigin,
    Obstacles, PodFacts, QueueSample, Record, ReplicaChange, Sample, WorkloadFacts, WorkloadKind, WorkloadSample,
};

const GIB: i64 = 1 << 30;

fn at(seconds: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(seconds)
}

fn rate(text: &str) -> HourlyRate {
    HourlyRate::parse(text).expect("a rate")
}

fn symbol(text: &str) -> Option<Symbol> {
    Some(Symbol::new(text))
}

/// A run of an hour with everything in it that a report can show.
pub fn outcome() -> Outcome {
    Outcome {
        about: about(),
        record: Record {
            verticals: Vec::new(),
            throttled: Vec::new(),
            pressed: Default::default(),
            limits: Vec::new(),
            upgrades: Vec::new(),
            unmet: Vec::new(),
            commands: Vec::new(),
            obstacles: Obstacles::default(),
            drifted: Vec::new(),
            controllers: nodecast::world::record::ControllerLoops::default(),
            scale_ups: Vec::new(),
            workloads: workloads(),
            availability: availability(),
            pods: pods().into_iter().collect(),
            nodes: nodes(),
            events: events().into_iter().collect(),
            jobs: Vec::new(),
            jobs_due: Vec::new(),
            metrics: metrics(),
            replica_changes: vec![ReplicaChange {
                at: at(900),
                workload: WorkloadId(0),
                kind: EventKind::Rescaled,
                from: 2,
                to: 3,
                because: "cpu 75%/60%, asks for 3".into(),
            }],
            samples: (0..=60).map(sample).collect(),
        },
        bill: bill(),
        queues: vec![QueueSummary {
            name: "orders".to_owned(),
            kind: "sqs",
            workload: ObjectName { namespace: Symbol::new("web"), name: Symbol::new("worker") },
            arrived: 1_200.0,
            processed: 1_150.0,
            waiting_at_end: 50.0,
            most_waiting: 400.0,
            most_waiting_at: at(1_200),
            drained: Some(at(1_500)),
            mean_wait_seconds: Some(12.5),
            longest_wait: SimDuration::from_secs(95),
        }],
        objects: objects(),
        requests: vec![RequestSummary {
            workload: WorkloadId(0),
            completed: 1_234_567.0,
            unanswered: 89.0,
            first: at(300),
            last: at(3_000),
            timed_out: 12.0,
            dropped: 3.0,
            response: Some(ResponseFigures { mean: 0.042, p50: 0.031, p95: 0.12, p99: 0.31 }),
            throttled_seconds: 7.5,
            overloaded: SimDuration::from_secs(75),
        }],
        warnings: [Caveat::new(&PRE_STOP, "Deployment web/frontend: <preStop> hooks are not simulated")]
            .into_iter()
            .collect(),
        event_hash: 0x0123_4567_89ab_cdef,
    }
}

/// A run in which nothing happened at all.
pub fn empty() -> Outcome {
    let mut outcome = outcome();
    outcome.record = Record::default();
    outcome.bill.lines.clear();
    outcome.requests.clear();
    outcome.warnings = Caveats::new();
    outcome.about.duration = SimDuration::ZERO;
    outcome
}

fn objects() -> Objects {
    let mut pool = NodePool::named("default");
    pool.limits = Resources::cpu_memory(100_000, 400 * GIB);
    let workload = ObjectName { namespace: Symbol::new("web"), name: Symbol::new("frontend") };
    Objects {
        karpenter: true,
        interruption_queue: true,
        node_pools: vec![pool],
        replica_autoscalers: vec![ReplicaAutoscaler {
            name: workload,
            workload: WorkloadId(0),
            min_replicas: 1,
            max_replicas: 10,
        }],
        ..Objects::default()
    }
}

fn about() -> About {
    About {
        scenario: "flash-sale".to_owned(),
        policy: "karpenter-spot".to_owned(),
        autoscaler: "Karpenter v1.13".to_owned(),
        region: "us-east-1".to_owned(),
        zones: vec![Symbol::new("us-east-1a"), Symbol::new("us-east-1b")],
        start: "2026-11-27T00:00:00Z".to_owned(),
        duration: SimDuration::from_secs(3_600),
        warm_up: SimDuration::ZERO,
        seed: 7,
        versions: Versions::default(),
        control_plane_tier: nodecast::domain::ControlPlaneTier::default(),
        inputs: vec![InputHash { path: "scenario.yaml".to_owned(), sha256: "ab".repeat(32) }],
        price_date: "2026-07-20".to_owned(),
        assumptions: vec!["Every request costs 12 ms of CPU & nothing else".to_owned()],
        costs_of_assumptions: vec![None],
        cost_by: vec![Symbol::new("team")],
        calibration: None,
        objectives: Objectives {
            pending_p99: Some(SimDuration::from_secs(60)),
            request_p99: Some(SimDuration::from_millis(250)),
            cost: Some(1.0),
            ..Objectives::default()
        },
    }
}

fn workloads() -> Vec<WorkloadFacts> {
    let facts = |namespace: &str, name: &str, kind, has_load| WorkloadFacts {
        name: ObjectName { namespace: Symbol::new(namespace), name: Symbol::new(name) },
        kind,
        has_load,
        placeholder: false,
        image: format!("registry.example/{name}:1.2").into(),
        labels: if has_load { Labels::new().with("team", "shop") } else { Labels::new() },
        part_of: None,
    };
    vec![
        facts("web", "frontend", WorkloadKind::Deployment, true),
        facts("kube-system", "agent", WorkloadKind::DaemonSet, false),
    ]
}

/// Half an hour of a missing replica; five minutes of it none was Ready; a quarter of an hour at the maximum.
fn availability() -> Vec<AvailabilityFacts> {
    let mut frontend = AvailabilityFacts::default();
    frontend.wanted = 2 * 3_600 * 1_000_000;
    frontend.missing = 1_800 * 1_000_000;
    (frontend.at_zero, frontend.longest_at_zero) = (SimDuration::from_secs(300), SimDuration::from_secs(240));
    (frontend.times_at_zero, frontend.longest_at_zero_from) = (2, Some(at(600)));
    frontend.at_max = SimDuration::from_secs(900);
    vec![frontend, AvailabilityFacts::default()]
}

fn pod(name: &str, workload: u32, created: i64, scheduled: Option<i64>, node: u32) -> PodFacts {
    PodFacts {
        name: name.to_owned(),
        workload: WorkloadId(workload),
        revision: 0,
        job: None,
        requests: if workload == 0 { Resources::cpu_memory(1_000, GIB) } else { Resources::cpu_memory(100, GIB / 8) }
            .into(),
        requested_before: Vec::new(),
        priority: 0,
        placeholder: false,
        created: at(created),
        found: false,
        unschedulable: scheduled.is_none_or(|scheduled| scheduled > created).then_some(at(created)),
        scheduled: scheduled.map(at),
        started: scheduled.map(|scheduled| at(scheduled + 2)),
        ready: scheduled.map(|scheduled| at(scheduled + 5)),
        cut_off: None,
        deletion_requested: None,
        removed: None,
        node: scheduled.map(|_| NodeId(node)),
        evicted: false,
        grace: None,
        serving: Vec::new(),
    }
}

fn pods() -> Vec<PodFacts> {
    let mut gone = pod("frontend-b", 0, 600, Some(640), 1);
    gone.deletion_requested = Some(at(2_100));
    gone.removed = Some(at(2_130));
    vec![
        pod("frontend-a", 0, 0, Some(0), 0),
        gone,
        pod("frontend-c", 0, 900, Some(950), 3),
        pod("frontend-d", 0, 3_500, None, 0),
        pod("agent-0", 1, 0, Some(0), 0),
        pod("agent-1", 1, 640, Some(640), 1),
    ]
}

fn node(name: &str, origin: NodeOrigin, requested: i64, price: &str) -> NodeFacts {
    NodeFacts {
        name: name.to_owned(),
        origin,
        instance: None,
        instance_type: None,
        zone: None,
        capacity_type: None,
        arch: None,
        kubelet_version: None,
        rate: rate(price),
        capacity: Resources::cpu_memory(2_000, 8 * GIB).into(),
        allocatable: Resources::cpu_memory(2_000, 8 * GIB).into(),
        requested: at(requested),
        launched: None,
        running: None,
        registered: None,
        ready: None,
        not_ready: Vec::new(),
        initialized: None,
        deletion_requested: None,
        drained: None,
        terminating: None,
        terminated: None,
        end: None,
        requested_cpu: 0,
        requested_memory: 0,
        requested_accelerators: Vec::new(),
        claim: None,
        image_bytes: 0,
    }
}

fn launched(mut node: NodeFacts, kind: [&str; 4], launched: i64, running: i64, ready: i64) -> NodeFacts {
    let [instance_type, zone, capacity_type, arch] = kind;
    node.instance_type = symbol(instance_type);
    node.zone = symbol(zone);
    node.capacity_type = symbol(capacity_type);
    node.arch = symbol(arch);
    node.launched = Some(at(launched));
    node.running = Some(at(running));
    node.registered = Some(at(ready.max(1) - 1));
    node.ready = Some(at(ready));
    node.initialized = Some(at(ready));
    node
}

fn nodes() -> Vec<NodeFacts> {
    let pool = NodeOrigin::NodePool(Symbol::new("default"));
    let group = NodeOrigin::NodeGroup(Symbol::new("system"));
    let mut first =
        launched(node("ip-10-0-0-1", group, 0, "0.096"), ["m5.large", "us-east-1a", "on-demand", "amd64"], 0, 0, 0);
    // A quarter of its CPU and half of its memory for the whole hour.
    first.requested_cpu = 500 * 3_600 * 1_000_000;
    first.requested_memory = i128::from(4 * GIB) * 3_600 * 1_000_000;
    let mut spot =
        launched(node("ip-10-0-0-2", pool, 600, "0.04"), ["c5.large", "us-east-1b", "spot", "amd64"], 602, 610, 640);
    spot.requested_cpu = 1_100 * 1_500 * 1_000_000;
    spot.requested_memory = i128::from(GIB) * 1_500 * 1_000_000;
    spot.deletion_requested = Some(at(2_200));
    spot.drained = Some(at(2_205));
    spot.terminating = Some(at(2_210));
    spot.terminated = Some(at(2_240));
    spot.end = Some(NodeEnd::Empty);
    let mut refused = node("default-x7k2p", pool, 900, "0");
    refused.deletion_requested = Some(at(901));
    refused.end = Some(NodeEnd::LaunchFailed);
    let mut last = launched(
        node("ip-10-0-0-4", pool, 902, "0.0816"),
        ["m7g.large", "us-east-1a", "on-demand", "arm64"],
        904,
        910,
        950,
    );
    last.requested_cpu = 1_000 * 2_650 * 1_000_000;
    last.requested_memory = i128::from(GIB) * 2_650 * 1_000_000;
    vec![first, spot, refused, last]
}

fn line(item: BillItem, node: Option<u32>, from: i64, to: i64, price: &str, quality: PriceQuality) -> BillLine {
    let facts = node.map(|node| nodes().swap_remove(node as usize));
    let billed = at(to) - at(from);
    BillLine {
        item,
        node: node.map(NodeId),
        capacity_type: facts.as_ref().filter(|_| item == BillItem::Instance).and_then(|facts| facts.capacity_type),
        instance_type: facts.as_ref().and_then(|facts| facts.instance_type),
        zone: facts.as_ref().and_then(|facts| facts.zone),
        from: at(from),
        to: at(to),
        billed,
        rate: rate(price),
        amount: Accrual::new(rate(price), billed).total(),
        quality,
    }
}

fn bill() -> Bill {
    use BillItem::{ControlPlane, Instance, RootVolume};
    use PriceQuality::{AdvisorEstimate, Published};
    let lines = vec![
        line(Instance, Some(0), 0, 3_600, "0.096", Published),
        line(Instance, Some(1), 610, 2_210, "0.04", AdvisorEstimate),
        line(Instance, Some(3), 910, 3_600, "0.0816", Published),
        line(RootVolume, Some(0), 0, 3_600, "0.002191781", Published),
        line(RootVolume, Some(1), 602, 2_240, "0.002191781", Published),
        line(RootVolume, Some(3), 904, 3_600, "0.002191781", Published),
        line(ControlPlane, None, 0, 3_600, "0.1", Published),
    ];
    Bill::plain(Currency::Usd, lines)
}

fn events() -> Vec<Event<'static>> {
    let event =
        |seconds, kind, pod: Option<u32>, node: Option<u32>, workload: Option<u32>, message: &'static str| Event {
            at: at(seconds),
            kind,
            pod: pod.map(PodId),
            node: node.map(NodeId),
            workload: workload.map(WorkloadId),
            command: None,
            message,
        };
    vec![
        event(600, EventKind::Rescaled, None, None, Some(0), "1 to 2: CPU 160 % of the 80 % wanted"),
        event(600, EventKind::PodUnschedulable, Some(1), None, Some(0), "0/1 nodes: 1 Insufficient cpu"),
        event(601, EventKind::ClaimCreated, None, Some(1), None, "for web/frontend \"b\""),
        event(900, EventKind::Rescaled, None, None, Some(0), "2 to 3"),
    ]
}

fn metrics() -> Vec<MetricFacts> {
    let name = ObjectName { namespace: Symbol::new("web"), name: Symbol::new("frontend") };
    let unit = MetricUnit::PercentOfRequest;
    vec![MetricFacts { autoscaler: name, workload: WorkloadId(0), name: "cpu".to_owned(), target: 60.0, unit }]
}

fn sample(minute: i64) -> Sample {
    let loaded = (5..50).contains(&minute);
    let replicas = if !loaded {
        1
    } else if minute < 15 {
        2
    } else {
        3
    };
    let latency = loaded.then_some(0.03 + 0.001 * (minute % 7) as f64);
    Sample {
        at: at(minute * 60),
        pods_pending: u32::from(minute == 10 || minute == 15 || minute >= 59),
        pods_starting: u32::from(minute == 11),
        pods_ready: replicas,
        nodes_starting: u32::from(minute == 10),
        nodes_spot: u32::from((11..37).contains(&minute)),
        nodes_on_demand: 1 + u32::from(minute > 15),
        nodes_fargate: 0,
        nodes_eligible: [1, 0, 0],
        nodes_unneeded: 0,
        cost_rate: rate(if minute < 11 { "0.096" } else { "0.2176" }),
        cost: Money::ZERO,
        cpu_requested_milli: 1_100,
        cpu_allocatable_milli: 4_000,
        memory_requested_bytes: GIB,
        memory_allocatable_bytes: 16 * GIB,
        workloads: vec![WorkloadSample {
            workload: WorkloadId(0),
            replicas_desired: replicas,
            replicas_ready: replicas.min(2),
            requests_per_second: if loaded { 450.0 + minute as f64 } else { 0.0 },
            cpu_used_milli: if loaded { 800.0 } else { 0.0 },
            memory_used_bytes: Some(GIB / 4),
            latency_mean_seconds: latency,
            latency_p99_seconds: latency.map(|seconds| seconds * 4.0),
        }],
        queues: vec![QueueSample { waiting: 4.0, in_flight: 2.0, arrival_rate: 1.0, throughput: 1.0 }],
        metrics: vec![MetricSample { metric: 0, value: loaded.then_some(75.0), asks_for: loaded.then_some(replicas) }],
        meters: Vec::new(),
        budgets: Vec::new(),
    }
}

//! What goes wrong.

use super::kind::{Moment, Name, Number, Permille, Placed, Share, Whole, kind, words};
use super::names::{Families, InstanceTypes, NodePoolName, Zone};
use crate::cloud::api::ApiAction;
use crate::cloud::faults::{FailureMode as Mode, Fault, FaultKind, PoolSelector, ServerError, Victims};
use crate::cloud::quotas::QuotaClass;
use crate::cloud::settings::BucketSize;
use crate::domain::{SimDuration, Symbol, well_known};
use crate::file::faults;

section! {
    /// A fault has `at` and one thing that goes wrong. Families and types may hold `*`.
    FAULT: "a fault", "`faults[]`: what goes wrong";
    example "faults:
  - { at: 1h, spot_interruption: { fraction: 30%, family: m5, type: m5.large, zone: us-east-1a, before: 10m } }
  - { at: 1h, spot_interruption: { count: 3 } }
  - { at: 1h, spot_interruption: { node: default-00002 } }
  - { at: 1h, node_failure: { count: 1, node_pool: default, family: m5, type: m5.large, zone: us-east-1a, capacity_type: spot, mode: impaired } }
  - { at: 1h, node_failure: { fraction: 10% } }
  - { at: 1h, node_failure: { node: default-00003, mode: terminated } }
  - { at: 1h, node_failure: { count: 2, node_pool: system, mode: kubelet } }
  - at: 1h
    for: 30m
    insufficient_capacity: { family: m5, type: \"m5.*\", zone: us-east-1a, capacity_type: spot, probability: 80% }
  - { at: 2h, for: 20m, zone_outage: { zone: us-east-1b, mode: power } }
  - { at: 3h, for: 10m, api_throttle: { size: 2, per_second: 1, action: CreateFleet } }
  - { at: 4h, for: 10m, api_error: { code: Unavailable, probability: 50%, action: RunInstances } }
  - { at: 5h, for: 10m, api_latency: { factor: 5 } }
  - { at: 6h, for: 1h, slow_boot: { factor: 3 } }
  - { at: 7h, for: 1h, boot_failure: { probability: 20% } }
  - { at: 8h, for: 1h, price_shock: { factor: 2.5, family: c5, type: c5.large, zone: us-east-1a } }
  - { at: 9h, for: 1h, subnet_exhausted: { zone: us-east-1a } }
  - { at: 10h, for: 1h, quota: { class: standard, vcpus: 64, capacity_type: spot } }
  - { at: 11h, for: 1h, lost_notices: { probability: 100% } }
";
    becomes Fault, faults::fault;
    struct FaultEntry: {
        /// When it begins, counted from the start of the run.
        at: Placed<Moment>;
        /// How long it lasts; a Spot interruption and a node failure happen at once.
        "for" as length: Placed<SimDuration>, or "to the end of the run";
    } one kind: FaultKind, faults::none_or_many {
        /// Running Spot instances are interrupted.
        spot_interruption: SpotInterruption;
        /// The hardware of running instances fails.
        node_failure: NodeFailure;
        /// There is no capacity for new instances.
        insufficient_capacity: InsufficientCapacity;
        /// A zone is lost.
        zone_outage: ZoneOutage;
        /// Calls are limited.
        api_throttle: ApiThrottle;
        /// Calls fail on EC2's side.
        api_error: ApiError;
        /// Calls take longer.
        api_latency: SlowCalls;
        /// Boots take longer.
        slow_boot: SlowBoot;
        /// Machines start, but their nodes never register.
        boot_failure: BootFailure;
        /// Spot prices are multiplied; On-Demand stays the limit.
        price_shock: PriceShock;
        /// Subnets have no address left.
        subnet_exhausted: SubnetExhausted;
        /// A vCPU quota is another.
        quota: Quota;
        /// Interruption notices get lost on the way to the autoscaler's queue.
        lost_notices: LostNotices;
    }
}

section! {
    SPOT_INTERRUPTION: "`spot_interruption`", "`faults[].spot_interruption`";
    becomes FaultKind, faults::spot_interruption;
    struct SpotInterruption: {} one victims: Victims, faults::no_victims {
        /// The share of the instances that is struck.
        fraction: StruckShare;
        /// How many are struck.
        count: StruckCount;
        /// The instance of the node of this name is struck: as reports or a dump call it, or as the API server does.
        node: StruckNode;
    } {
        /// Of this family.
        family["instance family"]: Families, or "all";
        /// Of this type.
        "type" as instance_type["instance type"]: InstanceTypes, or "all";
        /// In this zone.
        zone["zone"]: Zone, or "all";
        /// From the rebalance recommendation to the interruption, 2m to 15m; the notice comes two minutes before the
        /// latter.
        before: Before = Before::LEAST;
    }
}

section! {
    /// The machines stop serving at once and do not come back. Nobody is told: the node is NotReady when its lease
    /// has not been renewed for the grace period, and its pods are evicted when their toleration is over (five
    /// minutes unless they say otherwise).
    NODE_FAILURE: "`node_failure`", "`faults[].node_failure`";
    becomes FaultKind, faults::node_failure;
    struct NodeFailure: {} one victims: Victims, faults::no_victims {
        /// The share of the running instances that is struck.
        fraction: StruckShare;
        /// How many are struck.
        count: StruckCount;
        /// The instance of the node of this name is struck: as reports or a dump call it, or as the API server does.
        node: StruckNode;
    } {
        /// Of this NodePool or node group.
        node_pool["NodePool or node group"]: NodePoolName, or "all";
        /// Of this family.
        family["instance family"]: Families, or "all";
        /// Of this type.
        "type" as instance_type["instance type"]: InstanceTypes, or "all";
        /// In this zone.
        zone["zone"]: Zone, or "all";
        /// Of this capacity type.
        capacity_type: CapacityType, or "both";
        /// `impaired`: EC2 goes on running and billing the instance, whose status checks fail; its node group, or
        /// Karpenter from v1.12 on, ends it (v1.12 as its pods let it, later ones at once). `terminated`: EC2 ends it at once.
        /// `kubelet`: its kubelet stops and the machine stays healthy, so that only node repair replaces it.
        mode: FailureMode = Mode::Impaired;
    }
}

section! {
    INSUFFICIENT_CAPACITY: "`insufficient_capacity`", "`faults[].insufficient_capacity`";
    becomes FaultKind, |_, _, own: Self| {
        let pools = PoolSelector {
            family: own.family,
            instance_type: own.instance_type,
            zone: own.zone,
            capacity_type: own.capacity_type,
        };
        Ok(FaultKind::InsufficientCapacity { pools, probability: own.probability })
    };
    struct InsufficientCapacity {
        /// Of this family.
        family["instance family"]: Families, or "all";
        /// Of this type.
        "type" as instance_type["instance type"]: InstanceTypes, or "all";
        /// In this zone.
        zone["zone"]: Zone, or "all";
        /// Of this capacity type.
        capacity_type: CapacityType, or "both";
        /// Probability that a request meets the shortage.
        probability: Share<100> = 1.0;
    }
}

section! {
    ZONE_OUTAGE: "`zone_outage`", "`faults[].zone_outage`";
    becomes FaultKind, |_, _, own: Self| Ok(FaultKind::ZoneOutage { zone: own.zone, power: own.power });
    struct ZoneOutage {
        /// The zone.
        zone["zone"]: Zone;
        /// Only launches fail, or what runs there is lost too.
        "mode" as power: OutageMode = false;
    }
}

section! {
    API_THROTTLE: "`api_throttle`", "`faults[].api_throttle`";
    becomes FaultKind, |_, _, own: Self| {
        let bucket = BucketSize { size: own.size, per_second: own.per_second };
        Ok(FaultKind::ApiThrottle { bucket, action: own.action })
    };
    struct ApiThrottle {
        /// Tokens that the bucket holds.
        size: Whole<1, 1_000_000>;
        /// Tokens that it gains each second.
        per_second: Whole<0, 1_000_000>;
        /// The action.
        action: Action, or "all that launch or terminate";
    }
}

section! {
    API_ERROR: "`api_error`", "`faults[].api_error`";
    becomes FaultKind, |_, _, own: Self| {
        Ok(FaultKind::ApiError { code: own.code, probability: own.probability, action: own.action })
    };
    struct ApiError {
        /// What is answered.
        code: ErrorCode = ServerError::InternalError;
        /// Probability for each call.
        probability: Share<100>;
        /// The action.
        action: Launch, or "all that launch";
    }
}

section! {
    FACTOR: "this fault", "`faults[].api_latency`, `faults[].slow_boot`";
    becomes u32, |_, _, own: Self| Ok(permille(own.factor));
    struct Factor {
        /// How many times as long.
        factor: Number<100, 100_000>;
    }
}

section! {
    PROBABILITY: "this fault", "`faults[].boot_failure`, `faults[].lost_notices`";
    becomes f64, |_, _, own: Self| Ok(own.probability);
    struct Probability {
        /// Probability for each launch, or for each notice.
        probability: Share<100>;
    }
}

section! {
    PRICE_SHOCK: "`price_shock`", "`faults[].price_shock`";
    becomes FaultKind, |_, _, own: Self| {
        let pools = PoolSelector {
            family: own.family,
            instance_type: own.instance_type,
            zone: own.zone,
            capacity_type: None,
        };
        Ok(FaultKind::PriceShock { pools, permille: permille(own.factor) })
    };
    struct PriceShock {
        /// By how much.
        factor: Number<10, 100_000>;
        /// Of this family.
        family["instance family"]: Families, or "all";
        /// Of this type.
        "type" as instance_type["instance type"]: InstanceTypes, or "all";
        /// In this zone.
        zone["zone"]: Zone, or "all";
    }
}

section! {
    SUBNET_EXHAUSTED: "`subnet_exhausted`", "`faults[].subnet_exhausted`";
    becomes FaultKind, |_, _, own: Self| Ok(FaultKind::SubnetExhausted { zone: own.zone });
    struct SubnetExhausted {
        /// In this zone.
        zone["zone"]: Zone, or "all";
    }
}

section! {
    QUOTA: "`quota`", "`faults[].quota`";
    becomes FaultKind, faults::quota;
    struct Quota {
        /// The class of instance types. `p5` is a class of Spot only; `parallel` includes it.
        class: Class;
        /// vCPUs.
        vcpus: Whole<0, 100_000_000>;
        /// Of this capacity type.
        capacity_type: CapacityType, or "both, each";
    }
}

words! {
    /// What becomes of a machine that fails.
    FailureMode: Mode, "impaired" => Mode::Impaired, "terminated" => Mode::Terminated, "kubelet" => Mode::KubeletStops
}

words! {
    /// How far an outage goes: whether what runs is lost.
    OutageMode: bool, "launch_only" => false, "power" => true
}

words! {
    /// A capacity type.
    CapacityType: Symbol, "spot" => well_known::SPOT, "on-demand" => well_known::ON_DEMAND
}

words! {
    /// What EC2 answers to a call that fails.
    ErrorCode: ServerError, "InternalError" => ServerError::InternalError, "Unavailable" => ServerError::Unavailable
}

words! {
    /// A call that launches.
    Launch: ApiAction, "CreateFleet" => ApiAction::CreateFleet, "RunInstances" => ApiAction::RunInstances
}

words! {
    /// A call that can be limited.
    Action: ApiAction, &{
        let mut actions = [("", ApiAction::CreateFleet); ApiAction::ALL.len()];
        let mut at = 0;
        while at < actions.len() {
            actions[at] = (ApiAction::ALL[at].as_str(), ApiAction::ALL[at]);
            at += 1;
        }
        actions
    }
}

words! {
    /// A class of instance types that has a quota.
    Class: QuotaClass, &{
        let mut classes = [("", QuotaClass::Standard); QuotaClass::ALL.len()];
        let mut at = 0;
        while at < classes.len() {
            classes[at] = (QuotaClass::ALL[at].as_str(), QuotaClass::ALL[at]);
            at += 1;
        }
        classes
    }
}

kind! {
    /// The share of instances that is struck.
    StruckShare: Permille => Victims, |_, _, _, share| Ok(Victims::Permille(share))
}

kind! {
    /// How many instances are struck.
    StruckCount: Whole<0, 1_000_000> => Victims, |_, _, _, count| Ok(Victims::Count(count))
}

kind! {
    /// The node whose instance is struck.
    StruckNode: Name => Victims, |_, _, _, node| Ok(Victims::Named(node))
}

kind! {
    /// How long before an interruption FIS may send its rebalance recommendation.
    Before: SimDuration, |reading, node, what, span| {
        if (Before::LEAST..=Before::MOST).contains(&span) {
            return Ok(span);
        }
        Err(reading
            .error(node.at, format!("`{what}` is {span}"))
            .because("out of bounds")
            .help("instances know of their interruption 2 to 15 minutes before: write `2m` to `15m`"))
    }
}

impl Before {
    const LEAST: SimDuration = SimDuration::from_secs(120);
    const MOST: SimDuration = SimDuration::from_secs(900);
}

kind! {
    /// Calls that take longer.
    SlowCalls: Factor => FaultKind, |_, _, _, permille| Ok(FaultKind::ApiLatency { permille })
}

kind! {
    /// Boots that take longer.
    SlowBoot: Factor => FaultKind, |_, _, _, permille| Ok(FaultKind::SlowBoot { permille })
}

kind! {
    /// Nodes that never register.
    BootFailure: Probability => FaultKind, |_, _, _, probability| Ok(FaultKind::BootFailure { probability })
}

kind! {
    /// Notices that get lost.
    LostNotices: Probability => FaultKind, |_, _, _, probability| Ok(FaultKind::LostNotices { probability })
}

fn permille(factor: f64) -> u32 {
    libm::round(factor * 1_000.0) as u32
}

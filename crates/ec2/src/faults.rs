//! What goes wrong when, on purpose: faults that a scenario injects.
//!
//! Source of the shapes: AWS Fault Injection Service, actions `aws:ec2:send-spot-instance-interruptions`,
//! `aws:ec2:asg-insufficient-instance-capacity-error`, `aws:fis:inject-api-internal-error`, and its scenario of a lost
//! availability zone.
//!
//! What must not live here: what the simulated EC2 does about a fault (`ec2`, `market`), or a cluster (actors).

use super::Pool;
use super::api::ApiAction;
use super::quotas::QuotaClass;
use super::settings::BucketSize;
use nodecast_model::domain::words::counted;
use nodecast_model::domain::{SimDuration, SimTime, Symbol};

/// From a Spot interruption notice to the instance's end.
pub const NOTICE: SimDuration = SimDuration::from_secs(120);

/// Something that goes wrong.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fault {
    /// When it begins.
    pub at: SimTime,
    /// When it ends: the same instant for what happens at once.
    pub until: SimTime,
    /// What it is.
    pub kind: FaultKind,
}

impl Fault {
    /// Whether it is going on.
    pub fn is_on(&self, now: SimTime) -> bool {
        self.at <= now && now < self.until
    }
}

/// What goes wrong. Probabilities are from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FaultKind {
    /// The pools have no capacity for new instances.
    InsufficientCapacity {
        /// The pools.
        pools: PoolSelector,
        /// Probability that a request meets the shortage.
        probability: f64,
    },
    /// Spot instances running in the pools are interrupted at once.
    SpotInterruption {
        /// The pools.
        pools: PoolSelector,
        /// How many of the instances there.
        victims: Victims,
        /// From the rebalance recommendation to the interruption; the notice comes two minutes before the latter.
        before: SimDuration,
    },
    /// The hardware of running instances fails.
    NodeFailure {
        /// The instances.
        struck: Struck,
        /// What becomes of them.
        mode: FailureMode,
    },
    /// A zone is lost.
    ZoneOutage {
        /// The zone.
        zone: Symbol,
        /// Whether what runs there loses power; else only launches fail.
        power: bool,
    },
    /// Calls are limited to this.
    ApiThrottle {
        /// The limit on each action.
        bucket: BucketSize,
        /// The action; all that launch or terminate if none is named.
        action: Option<ApiAction>,
    },
    /// Calls fail on EC2's side.
    ApiError {
        /// What is answered.
        code: ServerError,
        /// Probability for each call.
        probability: f64,
        /// The action; all that launch if none is named.
        action: Option<ApiAction>,
    },
    /// Calls take longer.
    ApiLatency {
        /// How many times as long, in thousandths.
        permille: u32,
    },
    /// Boots take longer.
    SlowBoot {
        /// How many times as long, in thousandths.
        permille: u32,
    },
    /// Machines start, but their nodes never register.
    BootFailure {
        /// Probability for each launch.
        probability: f64,
    },
    /// Spot prices are multiplied; On-Demand stays the limit.
    PriceShock {
        /// The pools.
        pools: PoolSelector,
        /// By how much, in thousandths.
        permille: u32,
    },
    /// The subnets of a zone have no address left; of every zone if none is named.
    SubnetExhausted {
        /// The zone.
        zone: Option<Symbol>,
    },
    /// A vCPU quota is another.
    Quota {
        /// The class of instance types.
        class: QuotaClass,
        /// `spot` or `on-demand`; both, each, if `None`.
        capacity_type: Option<Symbol>,
        /// vCPUs.
        vcpus: u32,
    },
    /// Interruption notices get lost on the way to the autoscaler's queue.
    LostNotices {
        /// Probability for each notice.
        probability: f64,
    },
}

/// The running instances that a fault strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Struck {
    /// Those launched from these pools.
    pub pools: PoolSelector,
    /// Those of this NodePool or node group; all if none is named.
    pub node_pool: Option<Symbol>,
    /// How many of them.
    pub victims: Victims,
}

/// How many of the instances that a fault could strike it does strike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Victims {
    /// A share in thousandths, rounded up.
    Permille(u32),
    /// A number.
    Count(u32),
    /// The one of the node of this name.
    Named(Symbol),
}

impl Victims {
    /// How many of `candidates`.
    pub fn count(self, candidates: usize) -> usize {
        match self {
            Self::Permille(permille) => (candidates * permille as usize).div_ceil(1_000),
            Self::Count(count) => (count as usize).min(candidates),
            Self::Named(_) => candidates,
        }
    }
}

/// The errors of a call that are EC2's own fault.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ServerError {
    /// `InternalError`.
    InternalError,
    /// `Unavailable`.
    Unavailable,
}

impl ServerError {
    /// The code as the API writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InternalError => "InternalError",
            Self::Unavailable => "Unavailable",
        }
    }
}

/// What becomes of a machine that fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum FailureMode {
    /// Its status checks fail, and EC2 goes on calling it running.
    #[default]
    Impaired,
    /// EC2 ends it at once.
    Terminated,
    /// Its kubelet stops; the machine is healthy for EC2.
    KubeletStops,
}

impl Struck {
    /// Nodes whose kubelets stop, for the log.
    fn describe_kubelets(&self) -> String {
        let nodes = self.node_pool.map_or_else(String::new, |name| format!(" of {name}"));
        let place = self.pools.describe();
        match self.victims {
            Victims::Permille(permille) => {
                format!("the kubelets of {:.1} % of the nodes{nodes} in {place} stop", f64::from(permille) / 10.0)
            }
            Victims::Count(count) => {
                let kubelets = if count == 1 { "kubelet stops" } else { "kubelets stop" };
                format!("{count} {kubelets} on nodes{nodes} in {place}")
            }
            Victims::Named(node) => format!("the kubelet of {node} stops"),
        }
    }
}

impl FaultKind {
    /// Whether it happens at an instant and has no length.
    pub const fn is_instant(&self) -> bool {
        matches!(self, Self::SpotInterruption { .. } | Self::NodeFailure { .. })
    }

    /// What goes wrong, for the log.
    pub fn describe(&self) -> String {
        let percent = |share: f64| share * 100.0;
        match self {
            Self::InsufficientCapacity { pools, probability } if *probability >= 1.0 => {
                format!("no capacity for new instances in {}", pools.describe())
            }
            Self::InsufficientCapacity { pools, probability } => {
                let share = percent(*probability);
                format!("no capacity for {share:.1} % of the requests for instances in {}", pools.describe())
            }
            Self::SpotInterruption { pools, victims: Victims::Permille(permille), .. } => {
                let share = f64::from(*permille) / 10.0;
                format!("{share:.1} % of the Spot instances in {} are interrupted", pools.describe())
            }
            Self::SpotInterruption { pools, victims: Victims::Count(count), .. } => {
                let one = format!("Spot instance in {} is interrupted", pools.describe());
                let many = format!("Spot instances in {} are interrupted", pools.describe());
                counted(u64::from(*count), &one, &many)
            }
            Self::SpotInterruption { victims: Victims::Named(node), .. } => {
                format!("the Spot instance of {node} is interrupted")
            }
            Self::NodeFailure { struck, mode: FailureMode::KubeletStops } => struck.describe_kubelets(),
            Self::NodeFailure { struck, mode } => {
                let nodes = struck.node_pool.map_or_else(String::new, |name| format!(" of {name}"));
                let verb = if *mode == FailureMode::Terminated { "ended by failing" } else { "without working" };
                let place = struck.pools.describe();
                match struck.victims {
                    Victims::Permille(permille) => {
                        let share = f64::from(permille) / 10.0;
                        format!("{share:.1} % of the instances{nodes} in {place} are {verb} hardware")
                    }
                    Victims::Count(count) => {
                        let one = format!("instance{nodes} in {place} is {verb} hardware");
                        let many = format!("instances{nodes} in {place} are {verb} hardware");
                        counted(u64::from(count), &one, &many)
                    }
                    Victims::Named(node) => format!("the instance of {node} is {verb} hardware"),
                }
            }
            Self::ZoneOutage { zone, power: false } => format!("no instance can be launched in {zone}"),
            Self::ZoneOutage { zone, power: true } => format!("{zone} is without power"),
            Self::ApiThrottle { bucket, action } => {
                let calls = action.map_or_else(|| "calls".to_owned(), |action| format!("{} calls", action.as_str()));
                format!("EC2 takes bursts of {} {calls}, {} a second", bucket.size, bucket.per_second)
            }
            Self::ApiError { code, probability, action } => {
                let calls = action.map_or("launch", ApiAction::as_str);
                format!("EC2 answers {:.1} % of the {calls} calls with {}", percent(*probability), code.as_str())
            }
            Self::ApiLatency { permille } => {
                format!("calls to EC2 take {:.1} times as long", f64::from(*permille) / 1_000.0)
            }
            Self::SlowBoot { permille } => format!("boots take {:.1} times as long", f64::from(*permille) / 1_000.0),
            Self::BootFailure { probability } => {
                format!("{:.1} % of the nodes launched never register", percent(*probability))
            }
            Self::PriceShock { pools, permille } => {
                format!("Spot prices in {} are {:.2} times as high", pools.describe(), f64::from(*permille) / 1_000.0)
            }
            Self::SubnetExhausted { zone: Some(zone) } => format!("the subnets of {zone} have no address left"),
            Self::SubnetExhausted { zone: None } => "no subnet has an address left".to_owned(),
            Self::Quota { class, capacity_type: None, vcpus } => {
                format!("the vCPU quota of {} is {vcpus}", class.as_str())
            }
            Self::Quota { class, capacity_type: Some(bought), vcpus } => {
                format!("the {bought} vCPU quota of {} is {vcpus}", class.as_str())
            }
            Self::LostNotices { probability } => {
                format!("{:.1} % of the interruption notices get lost", percent(*probability))
            }
        }
    }
}

/// Which pools: those that match everything stated. Family and type may hold `*` for any text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolSelector {
    /// Instance family, for example `m7g` or `m*`.
    pub family: Option<Symbol>,
    /// Instance type, for example `m7g.large` or `m7*.large`.
    pub instance_type: Option<Symbol>,
    /// Zone.
    pub zone: Option<Symbol>,
    /// `spot` or `on-demand`.
    pub capacity_type: Option<Symbol>,
}

impl PoolSelector {
    /// Whether it takes in `pool`.
    pub fn matches(&self, pool: Pool) -> bool {
        let family = pool.instance_type.as_str().split('.').next().unwrap_or_default();
        self.family.is_none_or(|wanted| matches_pattern(wanted.as_str(), family))
            && self.instance_type.is_none_or(|wanted| matches_pattern(wanted.as_str(), pool.instance_type.as_str()))
            && self.zone.is_none_or(|wanted| wanted == pool.zone)
            && self.capacity_type.is_none_or(|wanted| wanted == pool.capacity_type)
    }

    fn describe(&self) -> String {
        let parts = [self.family, self.instance_type, self.zone, self.capacity_type];
        let stated: Vec<&str> = parts.iter().flatten().map(|part| part.as_str()).collect();
        if stated.is_empty() { "every pool".to_owned() } else { stated.join(", ") }
    }
}

/// Whether `text` is `pattern`, in which each `*` stands for any text, none included.
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    if !pattern.contains('*') {
        return rest.is_empty();
    }
    let mut parts: Vec<&str> = parts.collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(found) = rest.find(part) else { return false };
        rest = &rest[found + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::{Victims, matches_pattern};

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("m5.large", "m5.large", true),
            ("m5.large", "m5.larger", false),
            ("m5", "m5a", false),
            ("m5*", "m5a.large", true),
            ("*.large", "m5.large", true),
            ("*.large", "m5.xlarge", false),
            ("m*g.*large", "m7g.2xlarge", true),
            ("*", "", true),
            ("a*a", "a", false),
            ("*g*g*", "g", false),
        ] {
            assert_eq!(matches_pattern(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn victim_share_rounds_up_and_count_is_capped() {
        assert_eq!(Victims::Permille(300).count(7), 3);
        assert_eq!(Victims::Permille(0).count(7), 0);
        assert_eq!(Victims::Count(5).count(3), 3);
        assert_eq!(Victims::Count(2).count(3), 2);
    }
}

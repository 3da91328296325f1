//! What a scenario may set about the simulated EC2. Every default is an assumption that reports state.

use nodecast_model::domain::{HourlyRate, SimDuration, SimTime, Symbol};

use super::billing::eks_fees::EksFees;
use super::billing::network::NetworkPrices;
use super::billing::other::OtherFee;
use super::commitments::Commitments;
use super::consistency::Consistency;
use super::credits::CreditMode;
use super::faults::Fault;
use super::market::traces::Availability;
pub use super::quotas::Quotas;
use super::reservations::CapacityReservation;
use super::subnets::Network;

/// What is special about the simulated EC2 and its bill.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CloudSettings {
    /// How Spot prices move.
    pub prices: SpotPrices,
    /// Whether the level of Spot prices is off by what is known of the error of the price data, by a draw for each family; `None` for what
    /// the command does: comparisons draw, a run does not.
    pub price_errors: Option<bool>,
    /// How much there is of each pool.
    pub capacity: CapacityModel,
    /// Recorded availability of Spot pools, in order of pool and time: it takes the place of capacity and interruptions of
    /// the pools that it names.
    pub traces: Vec<Availability>,
    /// How often EC2 reclaims Spot instances.
    pub interruptions: Interruptions,
    /// Limits on vCPUs in use.
    pub quotas: Quotas,
    /// Limits on API calls.
    pub api: ApiLimits,
    /// How consistent reads are.
    pub consistency: Consistency,
    /// How long the cloud takes for what it does, where that is stated.
    pub times: Times,
    /// How often a launch goes wrong by itself.
    pub failures: Failures,
    /// What becomes of burstable instances whose credits are spent; `None` for EC2's default of each family.
    pub cpu_credits: Option<CreditMode>,
    /// The subnets that nodes live in.
    pub network: Network,
    /// Capacity reservations of the account.
    pub reservations: Vec<CapacityReservation>,
    /// How the bill is worked out.
    pub billing: BillingSettings,
    /// What goes wrong when, in order of time.
    pub faults: Vec<Fault>,
}

impl CloudSettings {
    /// What is assumed about the market, for the report.
    pub fn assumptions(&self) -> Vec<String> {
        let prices = match self.prices {
            SpotPrices::Process => {
                "Spot prices move by a seeded process around the level of the price data, fitted to daily prices of 2024; \
                 Karpenter reads them every 12 hours."
            }
            SpotPrices::Constant => "Spot prices stay at the level of the price data.",
            SpotPrices::Replay(_) => {
                "Spot prices follow the recorded ones; pools without a record stay at the level of the price data."
            }
        };
        let capacity = match self.capacity {
            CapacityModel::Infinite => "Every pool has unlimited capacity.",
            CapacityModel::Static => {
                "Each Spot pool has a fixed number of instances, drawn by its interruption band and size, and none for a \
                 while after EC2 has reclaimed from it; On-Demand has no limit."
            }
            CapacityModel::UpDown => {
                "Pools come and go by on/off processes fitted to Spot availability traces of 2022 and 2023; a Spot pool \
                 that goes takes instances along."
            }
        };
        let interruptions = match self.interruptions.exposure_hours {
            None => "No Spot interruptions, except those in `faults`.".to_owned(),
            Some(_) if self.capacity == CapacityModel::UpDown => {
                "Spot instances are interrupted when their pool goes; how many is a draw by interruption band."
                    .to_owned()
            }
            Some(hours) => format!(
                "Spot interruptions follow the Spot Advisor's bands, its figures read as those of instances held for {hours} \
                 hours and multiplied by {}{}; AWS does not publish the exposure, and readings from 24 to 730 hours move the \
                 rate thirtyfold.",
                self.interruptions.stress,
                if self.interruptions.bursts {
                    ", in bursts as Spot availability traces of 2022 and 2023 show them"
                } else {
                    ""
                }
            ),
        };
        let mut stated = vec![prices.to_owned(), capacity.to_owned(), interruptions];
        if self.price_errors == Some(true) {
            stated.push("Spot prices per instance family include a random error drawn from the known error of the price data; all policies with the same seed get the same error.".to_owned());
        }
        if !self.traces.is_empty() {
            stated.push("Pools in the recorded traces have and lose what was recorded of them.".to_owned());
        }
        stated
    }
}

/// How long the cloud takes for what it does, where that is stated: exactly so long, each time. What is not stated is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// From a CreateFleet call to its answer.
    pub fleet_call: Option<SimDuration>,
    /// The median around which calls are drawn whose time is not stated, for the call alone: each instance takes a little more.
    pub fleet_call_median: SimDuration,
    /// From the end of an instance being asked for to its being gone.
    pub shutdown: Option<SimDuration>,
    /// From the notice of an interruption to Karpenter reading it.
    pub notice_delivery: Option<SimDuration>,
    /// From a change to an Auto Scaling group acting on it.
    pub group_reaction: Option<SimDuration>,
    /// From an instance of a group running to its being in service.
    pub group_in_service: Option<SimDuration>,
    /// From an instance of a group being gone to a health check finding that.
    pub group_health_check: Option<SimDuration>,
}

impl Times {
    /// The median of a CreateFleet call where nothing is stated: assumed.
    pub const FLEET_CALL_MEDIAN: SimDuration = SimDuration::from_millis(1_100);
}

impl Default for Times {
    fn default() -> Self {
        Self {
            fleet_call: None,
            fleet_call_median: Self::FLEET_CALL_MEDIAN,
            shutdown: None,
            notice_delivery: None,
            group_reaction: None,
            group_in_service: None,
            group_health_check: None,
        }
    }
}

/// How Spot prices move.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum SpotPrices {
    /// A seeded process around the level of the price data.
    #[default]
    Process,
    /// They stay at the level of the price data.
    Constant,
    /// They follow records, in order of pool and time; a pool without a record stays at the level of the price data.
    Replay(Vec<ReplayedPrice>),
}

/// A recorded Spot price: it holds from `at` on. Before the first record of a pool that first price holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ReplayedPrice {
    /// Instance type.
    pub instance_type: Symbol,
    /// Zone.
    pub zone: Symbol,
    /// From when on.
    pub at: SimTime,
    /// The price.
    pub rate: HourlyRate,
}

/// How much there is of each pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CapacityModel {
    /// More than anybody asks for.
    Infinite,
    /// A fixed number of instances for each Spot pool, drawn by band and size; On-Demand without limit. A pool has none
    /// for a while after EC2 has reclaimed from it.
    #[default]
    Static,
    /// As static, and pools come and go by on/off processes of their own and of their type in the region.
    UpDown,
}

/// How often EC2 reclaims Spot instances.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interruptions {
    /// Hours for which the instances behind the Spot Advisor's figures are taken to have been exposed, on average; `None`
    /// for no interruption but injected ones.
    pub exposure_hours: Option<f64>,
    /// Multiplies the rate.
    pub stress: f64,
    /// Whether types of more than 16 vCPUs are interrupted more often than their band says.
    pub size_factor: bool,
    /// Whether the reclaims of a pool come in bursts, as often as without: whoever launches into a pool just after one is in the most danger.
    pub bursts: bool,
    /// Share of reclaims that a rebalance recommendation does not precede.
    pub without_warning: f64,
    /// Median time from a rebalance recommendation to the notices, in seconds.
    pub warning_median_seconds: f64,
}

impl Interruptions {
    /// Few interruptions: exposure of 730 hours.
    pub const LOW_HOURS: f64 = 730.0;
    /// The default: exposure of 72 hours.
    pub const CENTRAL_HOURS: f64 = 72.0;
    /// Many interruptions: exposure of 24 hours.
    pub const HIGH_HOURS: f64 = 24.0;
    /// The default.
    pub const CENTRAL: Self = Self {
        exposure_hours: Some(Self::CENTRAL_HOURS),
        stress: 1.0,
        size_factor: true,
        bursts: false,
        without_warning: 0.40,
        warning_median_seconds: 600.0,
    };
}

impl Default for Interruptions {
    fn default() -> Self {
        Self::CENTRAL
    }
}

/// How often a launch goes wrong by itself: probabilities, all of them assumed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Failures {
    /// EC2 accepts a launch and gives it up before the instance runs.
    pub abort: f64,
    /// The machine runs, but its node never registers.
    pub never_registers: f64,
    /// EC2 answers a launch call with `InternalError`.
    pub internal_error: f64,
}

impl Default for Failures {
    fn default() -> Self {
        Self { abort: 0.0005, never_registers: 0.001, internal_error: 0.0002 }
    }
}

impl Failures {
    /// Nothing goes wrong by itself.
    pub const NONE: Self = Self { abort: 0.0, never_registers: 0.0, internal_error: 0.0 };
}

/// Limits on API calls: token buckets that are full at the start, one for each action or group of actions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ApiLimits {
    /// Calls that change something and have no limit of their own: CreateFleet.
    pub mutating: BucketSize,
    /// RunInstances calls.
    pub run_calls: BucketSize,
    /// Instances asked for; a call that asks for more than is left fails as a whole.
    pub launched_instances: BucketSize,
    /// Whether fleets draw on `launched_instances` as RunInstances does.
    pub fleet_uses_run_resource_bucket: bool,
    /// TerminateInstances calls.
    pub terminate_calls: BucketSize,
    /// Instances to terminate; a call that names more than is left fails as a whole.
    pub terminated_instances: BucketSize,
    /// Calls that only read, with ids or filters.
    pub describe: BucketSize,
    /// Calls that read Auto Scaling groups.
    pub group_reads: BucketSize,
    /// Calls that change Auto Scaling groups.
    pub group_writes: BucketSize,
}

impl ApiLimits {
    /// Limits that nobody reaches.
    pub const UNLIMITED: Self = {
        let bucket = BucketSize { size: 1_000_000, per_second: 1_000_000 };
        Self {
            mutating: bucket,
            run_calls: bucket,
            launched_instances: bucket,
            fleet_uses_run_resource_bucket: true,
            terminate_calls: bucket,
            terminated_instances: bucket,
            describe: bucket,
            group_reads: bucket,
            group_writes: bucket,
        }
    };
}

impl Default for ApiLimits {
    /// EC2's limits are documented; that fleets draw on the instances of RunInstances and the limits of Auto Scaling are
    /// assumptions.
    fn default() -> Self {
        Self {
            mutating: BucketSize { size: 50, per_second: 5 },
            run_calls: BucketSize { size: 5, per_second: 2 },
            launched_instances: BucketSize { size: 1_000, per_second: 2 },
            fleet_uses_run_resource_bucket: true,
            terminate_calls: BucketSize { size: 100, per_second: 5 },
            terminated_instances: BucketSize { size: 1_000, per_second: 20 },
            describe: BucketSize { size: 100, per_second: 20 },
            group_reads: BucketSize { size: 100, per_second: 10 },
            group_writes: BucketSize { size: 20, per_second: 5 },
        }
    }
}

/// The size of a token bucket and how fast it fills.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BucketSize {
    /// Tokens that it holds.
    pub size: u32,
    /// Tokens that it gains each second.
    pub per_second: u32,
}

/// How the bill is worked out.
#[derive(Clone, PartialEq, Debug)]
pub struct BillingSettings {
    /// Bill Spot by the price at the start of each instance-hour rather than by the price at every instant.
    pub hourly_at_start: bool,
    /// Price per hour of each node's public IPv4 address; `None` for private nodes.
    pub public_ipv4: Option<HourlyRate>,
    /// Price per hour of the EKS control plane; `None` for EKS's own, which rises when standard support of the release ends.
    pub control_plane: Option<HourlyRate>,
    /// Price of a GiB of gp3 for a month of 730 hours; `None` for that of the region.
    pub volume_per_month: Option<HourlyRate>,
    /// Discount on everything that AWS charges, in millionths.
    pub discount: u32,
    /// Licence or vendor fee per hour of each running node; not AWS's and not discounted.
    pub node_fee: HourlyRate,
    /// Fees of EKS in addition to the price of every cluster.
    pub eks: EksFees,
    /// Lines of the bill that are not simulated.
    pub other: Vec<OtherFee>,
    /// What the network costs.
    pub network: NetworkPrices,
    /// What has been bought in advance.
    pub commitments: Commitments,
}

impl Default for BillingSettings {
    /// AWS's list prices, and nothing bought in advance.
    fn default() -> Self {
        Self {
            hourly_at_start: false,
            public_ipv4: None,
            control_plane: None,
            volume_per_month: None,
            discount: 0,
            node_fee: HourlyRate::ZERO,
            eks: EksFees::default(),
            other: Vec::new(),
            network: NetworkPrices::default(),
            commitments: Commitments::default(),
        }
    }
}

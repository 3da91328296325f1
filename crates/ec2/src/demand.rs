//! Demand of one run on limits that other clusters may share, and the check whether several demands together exceed them.
//!
//! A run that records its demand logs every step on a limit: each change of use, and each request with the largest part of it that the
//! cluster alone was granted. The steps of several runs, merged in order of time, show whether a run on one clock would have answered
//! any request differently.
//!
//! Must not: simulate anything.

use std::collections::BTreeMap;

use super::api::{ApiAction, ApiCalls};
use super::ec2::Pool;
pub use super::quotas::QuotaKey;
use super::settings::{ApiLimits, BucketSize};
use nodecast_model::domain::{SimDuration, SimTime};
use nodecast_model::fargate::LaunchRate;

/// A step on a vCPU quota.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VcpuStep {
    /// When.
    pub at: SimTime,
    /// The quota.
    pub quota: QuotaKey,
    /// Change of the cluster's own use, unused capacity reservations included.
    pub change: i32,
    /// vCPUs of the largest instance that a request considered and that the quota had room for; 0 where nothing was requested.
    pub wanted: u32,
    /// The quota at that time; 0 where nothing was requested.
    pub limit: u32,
    /// Whether a launch was refused.
    pub refused: bool,
}

/// A call of the EC2 or Auto Scaling API.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallStep {
    /// When.
    pub at: SimTime,
    /// The action.
    pub action: ApiAction,
    /// Instances that it names or wants.
    pub instances: u32,
    /// The limit of an injected throttle.
    pub injected: Option<BucketSize>,
    /// Whether it had its tokens.
    pub granted: bool,
}

/// A step on the limits of Fargate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FargateStep {
    /// When.
    pub at: SimTime,
    /// What happened.
    pub kind: FargateStepKind,
}

/// What happened to a limit of Fargate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FargateStepKind {
    /// A pod asked for a launch token and has it at `token`.
    Token {
        /// Tokens of a full bucket.
        burst: u32,
        /// Tokens gained each second.
        per_second: u32,
        /// When the pod has its token.
        token: SimTime,
    },
    /// A pod asked for vCPUs.
    Admission {
        /// Thousandths of a vCPU.
        cpu_milli: i64,
        /// The quota, in vCPUs.
        limit: u32,
        /// Whether it has them.
        granted: bool,
    },
    /// A pod returned so many thousandths of a vCPU.
    Release(i64),
}

/// An instance of a Spot pool with a fixed number of instances came or went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolStep {
    /// When.
    pub at: SimTime,
    /// The pool.
    pub pool: Pool,
    /// Instances that came, or went.
    pub change: i32,
    /// Instances that the pool had at the start.
    pub capacity: u32,
}

/// Demand of one run on limits that clusters may share.
#[derive(Clone, PartialEq, Debug)]
pub struct Demand {
    /// vCPUs, in order of time.
    pub vcpus: Vec<VcpuStep>,
    /// Calls, in order of time.
    pub calls: Vec<CallStep>,
    /// Fargate, in order of time.
    pub fargate: Vec<FargateStep>,
    /// Spot pools, in order of time.
    pub pools: Vec<PoolStep>,
    /// Whether a launch compared the number of free instances of several Spot pools, or a pool follows a recorded trace.
    pub compares_depth: bool,
    /// Limits on calls.
    pub api: ApiLimits,
}

impl Demand {
    /// No demand yet, under these limits on calls.
    pub const fn new(api: ApiLimits) -> Self {
        Self {
            vcpus: Vec::new(),
            calls: Vec::new(),
            fargate: Vec::new(),
            pools: Vec::new(),
            compares_depth: false,
            api,
        }
    }
}

/// A limit that clusters share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SharedLimit {
    /// A vCPU quota.
    Vcpus(QuotaKey),
    /// The limit on calls of one action, or on the instances that they name.
    Calls(ApiAction),
    /// The vCPU quota of Fargate.
    FargateVcpus,
    /// The launch rate of Fargate.
    FargateLaunches,
    /// The free instances of a Spot pool.
    Pool(Pool),
    /// The depth of Spot pools, which an allocation strategy compares: every launch of another cluster changes it.
    PoolDepth,
}

/// A shared limit that several demands together exceed although each of them alone does not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Exceeded {
    /// When for the first time.
    pub at: SimTime,
    /// The limit.
    pub limit: SharedLimit,
}

/// Shared limits of one account and region that these demands together exceed, in order of time. Ties of time follow the order of
/// `demands`. If there are none, a run of all clusters on one clock gives the results of the clusters alone.
pub fn exceeded(demands: &[&Demand]) -> Vec<Exceeded> {
    if demands.len() < 2 {
        return Vec::new();
    }
    let mut found = Found::default();
    exceeded_vcpus(demands, &mut found);
    exceeded_calls(demands, &mut found);
    exceeded_fargate(demands, &mut found);
    found.sorted()
}

/// Spot pools of one region that these demands together use up, in order of time. A pool counts as used up by its last instance.
pub fn exceeded_pools(demands: &[&Demand]) -> Vec<Exceeded> {
    let mut found = Found::default();
    if demands.iter().filter(|demand| demand.compares_depth).count() > 1 {
        found.add(SharedLimit::PoolDepth, SimTime::ZERO);
    }
    let mut used: BTreeMap<Pool, Tally> = BTreeMap::new();
    for (cluster, step) in merged(demands, |demand| &demand.pools, |step| step.at) {
        let tally = used.entry(step.pool).or_insert_with(|| Tally::new(demands.len()));
        tally.add(cluster, i64::from(step.change));
        if step.change > 0 && tally.total >= i64::from(step.capacity) && tally.is_shared(cluster) {
            found.add(SharedLimit::Pool(step.pool), step.at);
        }
    }
    found.sorted()
}

/// Steps of all demands in order of time, each with the position of its demand.
fn merged<'d, T>(
    demands: &[&'d Demand],
    steps: impl Fn(&'d Demand) -> &'d Vec<T>,
    at: impl Fn(&T) -> SimTime,
) -> Vec<(usize, &'d T)> {
    let of_demand = |(cluster, &demand)| steps(demand).iter().map(move |step| (cluster, step));
    let mut all: Vec<(usize, &T)> = demands.iter().enumerate().flat_map(of_demand).collect();
    all.sort_by_key(|(cluster, step)| (at(step), *cluster));
    all
}

/// Use of a limit by all clusters and by each.
struct Tally {
    total: i64,
    by_cluster: Vec<i64>,
}

impl Tally {
    fn new(clusters: usize) -> Self {
        Self { total: 0, by_cluster: vec![0; clusters] }
    }

    fn add(&mut self, cluster: usize, change: i64) {
        self.total += change;
        self.by_cluster[cluster] += change;
    }

    /// Whether another cluster than this one uses some of it.
    fn is_shared(&self, cluster: usize) -> bool {
        self.total > self.by_cluster[cluster]
    }
}

/// The first time of each exceeded limit.
#[derive(Default)]
struct Found(BTreeMap<SharedLimit, SimTime>);

impl Found {
    fn add(&mut self, limit: SharedLimit, at: SimTime) {
        let first = self.0.entry(limit).or_insert(at);
        *first = at.min(*first);
    }

    fn sorted(self) -> Vec<Exceeded> {
        let mut all: Vec<Exceeded> = self.0.into_iter().map(|(limit, at)| Exceeded { at, limit }).collect();
        all.sort_unstable();
        all
    }
}

fn exceeded_vcpus(demands: &[&Demand], found: &mut Found) {
    let mut used: BTreeMap<QuotaKey, Tally> = BTreeMap::new();
    for (cluster, step) in merged(demands, |demand| &demand.vcpus, |step| step.at) {
        let tally = used.entry(step.quota).or_insert_with(|| Tally::new(demands.len()));
        let with_request = tally.total + i64::from(step.wanted);
        tally.add(cluster, i64::from(step.change));
        let is_over = with_request.max(tally.total) > i64::from(step.limit);
        if step.limit > 0 && is_over && tally.is_shared(cluster) {
            found.add(SharedLimit::Vcpus(step.quota), step.at);
        }
    }
}

fn exceeded_calls(demands: &[&Demand], found: &mut Found) {
    let Some(first) = demands.first() else { return };
    let mut buckets = ApiCalls::new(&first.api);
    for (cluster, step) in merged(demands, |demand| &demand.calls, |step| step.at) {
        let limits = &demands[cluster].api;
        let granted = buckets.take(step.action, step.instances, limits, step.injected, step.at).is_ok();
        if granted != step.granted {
            found.add(SharedLimit::Calls(step.action), step.at);
        }
    }
}

fn exceeded_fargate(demands: &[&Demand], found: &mut Found) {
    let mut used = Tally::new(demands.len());
    let mut rate: Option<LaunchRate> = None;
    for (cluster, step) in merged(demands, |demand| &demand.fargate, |step| step.at) {
        match step.kind {
            FargateStepKind::Token { burst, per_second, token } => {
                let rate = rate.get_or_insert_with(|| LaunchRate::new(burst, per_second));
                if rate.take(step.at) != token {
                    found.add(SharedLimit::FargateLaunches, step.at);
                }
            }
            FargateStepKind::Admission { cpu_milli, limit, granted: true } => {
                used.add(cluster, cpu_milli);
                if used.total > i64::from(limit) * 1_000 && used.is_shared(cluster) {
                    found.add(SharedLimit::FargateVcpus, step.at);
                }
            }
            FargateStepKind::Admission { granted: false, .. } => {}
            FargateStepKind::Release(cpu_milli) => used.add(cluster, -cpu_milli),
        }
    }
}

/// Use of a vCPU quota by all clusters that share it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuotaUse {
    /// The quota.
    pub quota: QuotaKey,
    /// The quota in vCPUs, as of the last request.
    pub limit: u32,
    /// The largest use, unused capacity reservations included.
    pub peak: u32,
    /// When that was for the first time.
    pub peak_at: SimTime,
    /// Use of each cluster at that time, in the order of the demands.
    pub at_peak: Vec<u32>,
    /// The largest use of each cluster.
    pub peaks: Vec<u32>,
    /// Time at the limit: from each refused launch until use falls, or until `end`.
    pub at_limit: SimDuration,
    /// Launches refused to each cluster.
    pub refused: Vec<u32>,
}

/// Use of each vCPU quota that a cluster used or asked for, by these demands of a run until `end` together, in order of quota.
pub fn quota_use(demands: &[&Demand], end: SimTime) -> Vec<QuotaUse> {
    let mut all: BTreeMap<QuotaKey, (Tally, QuotaUse, Option<SimTime>)> = BTreeMap::new();
    for (cluster, step) in merged(demands, |demand| &demand.vcpus, |step| step.at) {
        let (tally, quota_use, since) = all.entry(step.quota).or_insert_with(|| {
            let none = vec![0; demands.len()];
            let quota_use = QuotaUse {
                quota: step.quota,
                limit: 0,
                peak: 0,
                peak_at: step.at,
                at_peak: none.clone(),
                peaks: none.clone(),
                at_limit: SimDuration::ZERO,
                refused: none,
            };
            (Tally::new(demands.len()), quota_use, None)
        });
        tally.add(cluster, i64::from(step.change));
        quota_use.follow(step, cluster, tally);
        if step.refused {
            since.get_or_insert(step.at);
        } else if let (true, Some(from)) = (step.change < 0, *since) {
            quota_use.at_limit += step.at - from;
            *since = None;
        }
    }
    let finish = |(_, mut quota_use, since): (Tally, QuotaUse, Option<SimTime>)| {
        quota_use.at_limit += since.map_or(SimDuration::ZERO, |from| end - from);
        quota_use
    };
    all.into_values().map(finish).collect()
}

impl QuotaUse {
    fn follow(&mut self, step: &VcpuStep, cluster: usize, tally: &Tally) {
        let vcpus = |used: i64| u32::try_from(used).unwrap_or(0);
        if step.limit > 0 || step.refused {
            self.limit = step.limit;
        }
        self.refused[cluster] += u32::from(step.refused);
        self.peaks[cluster] = self.peaks[cluster].max(vcpus(tally.by_cluster[cluster]));
        if vcpus(tally.total) > self.peak {
            self.peak = vcpus(tally.total);
            self.peak_at = step.at;
            self.at_peak = tally.by_cluster.iter().map(|used| vcpus(*used)).collect();
        }
    }
}

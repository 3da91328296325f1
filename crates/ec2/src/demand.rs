//! Demand of one run on limits that other clusters may share, and the check whether several demands together exceed them.
//!
//! A run that records its demand logs every step on a limit: each change of use, and each request with the largest part of it that the
//! cluster alone was granted. The steps of several runs, merged in order of time, show whether a run on one clock would have answered
//! any request differently.
//!
//! Must not: simulate anything.

use std::collections::BTreeMap;

use super::account::RECENT;
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
    /// The most vCPUs that a request considered and that the quota had room for; 0 where nothing was requested.
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
    /// A pod returned these thousandths of a vCPU.
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

/// A shared limit that several demands together exceed.
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
    let mut found = ExceededLimits::default();
    exceeded_vcpus(demands, &mut found);
    exceeded_calls(demands, &mut found);
    exceeded_fargate(demands, &mut found);
    found.sorted()
}

/// Spot pools of one region that these demands together use up, in order of time. A pool counts as used up by its last instance.
pub fn exceeded_pools(demands: &[&Demand]) -> Vec<Exceeded> {
    let mut found = ExceededLimits::default();
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

/// The demand of a cluster in a region and an account.
#[derive(Clone, Copy, Debug)]
pub struct PlacedDemand<'d> {
    /// The region.
    pub region: &'d str,
    /// The account.
    pub account: &'d str,
    /// The demand.
    pub demand: &'d Demand,
}

/// Clusters that have to run on one clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coupling {
    /// Positions of the clusters, in order.
    pub members: Vec<usize>,
    /// Exceeded limits, in order of time.
    pub exceeded: Vec<Exceeded>,
}

/// Clusters that together exceed a limit that they share, each at most once. Clusters of one account and region share its limits; with
/// `shares_pools`, all clusters of a region share its Spot pools, and are one coupling if a pool is used up.
pub fn couplings(clusters: &[PlacedDemand<'_>], shares_pools: bool) -> Vec<Coupling> {
    let mut regions: BTreeMap<&str, BTreeMap<&str, Vec<usize>>> = BTreeMap::new();
    for (at, cluster) in clusters.iter().enumerate() {
        regions.entry(cluster.region).or_default().entry(cluster.account).or_default().push(at);
    }
    let demands = |members: &[usize]| members.iter().map(|&at| clusters[at].demand).collect::<Vec<_>>();
    let mut all = Vec::new();
    for accounts in regions.into_values() {
        let mut in_region: Vec<usize> = accounts.values().flatten().copied().collect();
        in_region.sort_unstable();
        let pools = if shares_pools { exceeded_pools(&demands(&in_region)) } else { Vec::new() };
        let coupled = accounts.into_values().filter_map(|members| {
            let exceeded = exceeded(&demands(&members));
            (!exceeded.is_empty()).then_some(Coupling { members, exceeded })
        });
        if pools.is_empty() {
            all.extend(coupled);
        } else {
            let mut exceeded: Vec<Exceeded> = coupled.flat_map(|coupling| coupling.exceeded).chain(pools).collect();
            exceeded.sort_unstable();
            all.push(Coupling { members: in_region, exceeded });
        }
    }
    all
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
struct ExceededLimits(BTreeMap<SharedLimit, SimTime>);

impl ExceededLimits {
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

fn exceeded_vcpus(demands: &[&Demand], found: &mut ExceededLimits) {
    let mut used: BTreeMap<QuotaKey, Tally> = BTreeMap::new();
    for (cluster, step) in merged(demands, |demand| &demand.vcpus, |step| step.at) {
        let tally = used.entry(step.quota).or_insert_with(|| Tally::new(demands.len()));
        let with_request = tally.total + i64::from(step.wanted);
        tally.add(cluster, i64::from(step.change));
        let is_over = with_request.max(tally.total) > i64::from(step.limit);
        // A launch that is refused alone, too, names the use of the other clusters.
        if step.limit > 0 && (is_over || step.refused) && tally.is_shared(cluster) {
            found.add(SharedLimit::Vcpus(step.quota), step.at);
        }
    }
}

fn exceeded_calls(demands: &[&Demand], found: &mut ExceededLimits) {
    let Some(first) = demands.first() else { return };
    let mut buckets = ApiCalls::new(&first.api);
    let mut last: BTreeMap<ApiAction, Vec<Option<SimTime>>> = BTreeMap::new();
    for (cluster, step) in merged(demands, |demand| &demand.calls, |step| step.at) {
        let limits = &demands[cluster].api;
        let granted = buckets.take(step.action, step.instances, limits, step.injected, step.at).is_ok();
        let calls = last.entry(step.action).or_insert_with(|| vec![None; demands.len()]);
        calls[cluster] = None;
        let is_recent = |at: &SimTime| step.at - *at < RECENT;
        // A call that is throttled alone, too, names the calls of the other clusters.
        if granted != step.granted || (!granted && calls.iter().flatten().any(is_recent)) {
            found.add(SharedLimit::Calls(step.action), step.at);
        }
        calls[cluster] = Some(step.at);
    }
}

fn exceeded_fargate(demands: &[&Demand], found: &mut ExceededLimits) {
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

#[cfg(test)]
mod tests {
    use super::{CallStep, Demand, Exceeded, QuotaKey, SharedLimit, VcpuStep, exceeded, exceeded_pools, quota_use};
    use crate::Pool;
    use crate::api::ApiAction;
    use crate::demand::{FargateStep, FargateStepKind, PoolStep};
    use crate::quotas::QuotaClass;
    use crate::settings::ApiLimits;
    use nodecast_model::domain::{SimDuration, SimTime, Symbol, well_known};

    const QUOTA: QuotaKey = QuotaKey { class: QuotaClass::Standard, spot: false };

    fn at(seconds: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(seconds)
    }

    /// A demand of launches and ends of instances under a quota of 16 vCPUs.
    fn vcpus(steps: &[(i64, i32)]) -> Demand {
        let step = |&(seconds, change): &(i64, i32)| {
            let (wanted, limit) = if change > 0 { (change.unsigned_abs(), 16) } else { (0, 0) };
            let request = VcpuStep { at: at(seconds), quota: QUOTA, change: 0, wanted, limit, refused: false };
            [request, VcpuStep { change, wanted: 0, ..request }]
        };
        Demand { vcpus: steps.iter().flat_map(step).collect(), ..Demand::new(ApiLimits::default()) }
    }

    #[test]
    fn only_joint_use_above_quota_is_exceeded() {
        let first = vcpus(&[(10, 8), (40, -8)]);
        let fits = vcpus(&[(20, 8), (30, -4)]);
        let over = vcpus(&[(20, 8), (30, 4), (50, 4)]);
        assert_eq!(exceeded(&[&first, &fits]), []);
        let found = [Exceeded { at: at(30), limit: SharedLimit::Vcpus(QUOTA) }];
        assert_eq!(exceeded(&[&first, &over]), found);
        assert_eq!(exceeded(&[&over, &first]), found);
        assert_eq!(exceeded(&[&over]), [], "alone it fits");
    }

    #[test]
    fn considered_instance_without_room_is_exceeded() {
        let first = vcpus(&[(10, 8)]);
        let mut choosy = vcpus(&[(20, 2)]);
        choosy.vcpus[0].wanted = 16;
        assert_eq!(exceeded(&[&first, &choosy]).len(), 1, "the largest type is refused together, and not alone");
        choosy.vcpus[0].wanted = 8;
        assert_eq!(exceeded(&[&first, &choosy]), []);
    }

    #[test]
    fn quota_use_has_peaks_and_time_at_limit() {
        let first = vcpus(&[(10, 8), (40, -8)]);
        let mut second = vcpus(&[(20, 4), (25, 2)]);
        let refused = VcpuStep { at: at(30), quota: QUOTA, change: 0, wanted: 0, limit: 16, refused: true };
        second.vcpus.extend([refused, VcpuStep { at: at(35), ..refused }]);
        let all = quota_use(&[&first, &second], at(100));
        let [quota] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((quota.limit, quota.peak, quota.peak_at), (16, 14, at(25)));
        assert_eq!((quota.at_peak.as_slice(), quota.peaks.as_slice()), ([8, 6].as_slice(), [8, 6].as_slice()));
        assert_eq!((quota.at_limit, quota.refused.as_slice()), (SimDuration::from_secs(10), [0, 2].as_slice()));
    }

    #[test]
    fn joint_calls_exceed_shared_bucket() {
        let calls = |count: i64| {
            let step = |number| CallStep {
                at: at(number / 10),
                action: ApiAction::CreateFleet,
                instances: 1,
                injected: None,
                granted: true,
            };
            Demand { calls: (0..count).map(step).collect(), ..Demand::new(ApiLimits::default()) }
        };
        assert_eq!(exceeded(&[&calls(20), &calls(20)]), []);
        let found = exceeded(&[&calls(40), &calls(40)]);
        assert_eq!(found.first().map(|first| first.limit), Some(SharedLimit::Calls(ApiAction::CreateFleet)));
    }

    #[test]
    fn fargate_pods_of_two_clusters_exceed_quota() {
        let pods = |cpu_milli, token| {
            let steps = [
                FargateStepKind::Token { burst: 1, per_second: 1, token },
                FargateStepKind::Admission { cpu_milli, limit: 4, granted: true },
            ];
            let fargate = steps.map(|kind| FargateStep { at: at(1), kind }).to_vec();
            Demand { fargate, ..Demand::new(ApiLimits::default()) }
        };
        let limits = |found: Vec<Exceeded>| found.into_iter().map(|one| one.limit).collect::<Vec<_>>();
        assert_eq!(limits(exceeded(&[&pods(2_000, at(1)), &pods(2_000, at(2))])), []);
        let both = [SharedLimit::FargateVcpus, SharedLimit::FargateLaunches];
        assert_eq!(limits(exceeded(&[&pods(2_000, at(1)), &pods(3_000, at(1))])), both);
    }

    #[test]
    fn pool_is_used_up_by_its_last_instance() {
        let (instance_type, zone) = (Symbol::new("m5.large"), Symbol::new("a"));
        let pool = Pool { instance_type, zone, capacity_type: well_known::SPOT };
        let launches = |count, compares_depth| {
            let step = PoolStep { at: at(5), pool, change: 1, capacity: 6 };
            Demand { pools: vec![step; count], compares_depth, ..Demand::new(ApiLimits::default()) }
        };
        assert_eq!(exceeded_pools(&[&launches(2, false), &launches(3, true)]), []);
        assert_eq!(exceeded_pools(&[&launches(3, false), &launches(3, false)]).len(), 1);
        let depth = exceeded_pools(&[&launches(1, true), &launches(1, true)]);
        assert_eq!(depth, [Exceeded { at: SimTime::ZERO, limit: SharedLimit::PoolDepth }]);
        assert_eq!(exceeded_pools(&[&launches(6, true)]), []);
    }
}

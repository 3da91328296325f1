//! Use of the limits that all clusters of an account share in a region, and of the Spot pools that all clusters of a region share.
//!
//! A run alone has both for itself. In a run of several clusters on one clock, each cluster has them while it handles its event.
//!
//! Must not: know the limits, which each cluster reads from its own settings.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::api::{ApiAction, ApiCalls};
use super::ec2::Pool;
use super::quotas::QuotaKey;
use super::settings::ApiLimits;
use nodecast_model::domain::{SimDuration, SimTime};
use nodecast_model::fargate::LaunchRate;

/// How long calls are remembered for the events of throttled calls.
pub(super) const RECENT: SimDuration = SimDuration::from_secs(60);

/// Use of the limits of an account in a region by all its clusters.
#[derive(Clone, Debug)]
pub struct AccountUse {
    /// Number of clusters.
    clusters: u32,
    /// vCPUs of instances.
    vcpus: FxHashMap<QuotaKey, u32>,
    /// vCPUs that capacity reservations hold and nothing uses, as of the last event of each cluster.
    pub(super) reserved: FxHashMap<QuotaKey, u32>,
    pub(super) api: ApiCalls,
    /// Calls of the last minute with the number of their cluster, where there are several.
    recent: VecDeque<(SimTime, ApiAction, u32)>,
    /// vCPUs of pods on Fargate, in thousandths.
    pub(super) fargate_milli: i64,
    pub(super) fargate_rate: Option<LaunchRate>,
}

impl AccountUse {
    /// An account of `clusters` in which nothing is in use. Its buckets are full.
    pub fn new(limits: &ApiLimits, clusters: u32) -> Self {
        Self {
            clusters,
            vcpus: FxHashMap::default(),
            reserved: FxHashMap::default(),
            api: ApiCalls::new(limits),
            recent: VecDeque::new(),
            fargate_milli: 0,
            fargate_rate: None,
        }
    }

    /// Number of clusters, if there are several.
    pub(super) fn several(&self) -> Option<u32> {
        (self.clusters > 1).then_some(self.clusters)
    }

    /// vCPUs of instances that count against a quota.
    pub fn vcpus(&self, quota: QuotaKey) -> u32 {
        self.vcpus.get(&quota).copied().unwrap_or(0)
    }

    /// Counts vCPUs of an instance that comes or goes.
    pub(super) fn count_vcpus(&mut self, quota: QuotaKey, change: i32) {
        let used = self.vcpus.entry(quota).or_insert(0);
        *used = used.saturating_add_signed(change);
    }

    /// Remembers a call of one of several clusters.
    pub(super) fn remember_call(&mut self, cluster: u32, action: ApiAction, now: SimTime) {
        if self.clusters > 1 {
            self.recent.push_back((now, action, cluster));
            while self.recent.front().is_some_and(|(at, ..)| now - *at >= RECENT) {
                self.recent.pop_front();
            }
        }
    }

    /// Calls of one action in the last minute: of all clusters, and of one.
    pub(super) fn recent_calls(&self, cluster: u32, action: ApiAction) -> (usize, usize) {
        let calls = || self.recent.iter().filter(|(_, other, _)| *other == action);
        (calls().count(), calls().filter(|(.., caller)| *caller == cluster).count())
    }
}

/// Use of the pools of a region.
#[derive(Clone, Debug, Default)]
pub struct PoolUse {
    /// Free instances of each pool that was launched from.
    pub(super) free: FxHashMap<Pool, u32>,
    /// Instances of each pool that are not terminated.
    live: FxHashMap<Pool, u32>,
}

impl PoolUse {
    /// Instances of a pool that are not terminated.
    pub(super) fn live(&self, pool: Pool) -> u32 {
        self.live.get(&pool).copied().unwrap_or(0)
    }

    /// An instance comes from a pool that had `free` before.
    pub(super) fn take(&mut self, pool: Pool, free: u32) {
        self.free.insert(pool, free.saturating_sub(1));
        *self.live.entry(pool).or_insert(0) += 1;
    }

    /// An instance goes back to its pool.
    pub(super) fn put_back(&mut self, pool: Pool) {
        if let Some(free) = self.free.get_mut(&pool) {
            *free += 1;
        }
        if let Some(live) = self.live.get_mut(&pool) {
            *live = live.saturating_sub(1);
        }
    }
}

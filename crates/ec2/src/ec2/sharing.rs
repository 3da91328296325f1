//! The account's side of limits that several clusters share: turns, Fargate, the log of demand, and the words of a refusal.

use std::cell::RefCell;
use std::mem;

use super::{Ec2, Pool};
use crate::account::{AccountUse, PoolUse};
use crate::api::ApiAction;
use crate::demand::{CallStep, Demand, FargateStep, FargateStepKind, PoolStep, VcpuStep};
use crate::fleet::Throttled;
use crate::quotas::QuotaKey;
use crate::settings::CapacityModel;
use nodecast_model::domain::{AllocationStrategy, SimTime, Symbol, well_known};
use nodecast_model::fargate::LaunchRate;

/// The shared limit that refused the last request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    Quota { quota: QuotaKey, limit: u32 },
    Calls(ApiAction),
}

impl Ec2 {
    /// Makes this the cluster with this number of those that share an account.
    pub fn set_cluster(&mut self, number: u32) {
        self.cluster = number;
    }

    /// Exchanges the use of the account, at the begin and the end of each turn of this cluster.
    pub fn exchange_account(&mut self, account: &mut AccountUse) {
        mem::swap(&mut self.account, account);
    }

    /// Exchanges the use of pools in the same way.
    pub fn exchange_pools(&mut self, pools: &mut PoolUse) {
        mem::swap(&mut self.pools, pools);
    }

    /// Records the demand on limits that clusters may share from now on.
    pub fn record_demand(&mut self) {
        self.demand = Some(Box::new(RefCell::new(Demand::new(self.settings.api))));
    }

    /// The recorded demand.
    pub fn take_demand(&mut self) -> Option<Demand> {
        self.demand.take().map(|demand| demand.into_inner())
    }

    pub(super) fn log(&self, add: impl FnOnce(&mut Demand)) {
        if let Some(demand) = &self.demand {
            add(&mut demand.borrow_mut());
        }
    }

    /// Logs that a request considers instances of `vcpus` vCPUs, for which the quota has room.
    pub(super) fn log_considered(&self, quota: QuotaKey, vcpus: u32, now: SimTime) {
        if vcpus == 0 {
            return;
        }
        self.log(|demand| {
            let is_same = |step: &&mut VcpuStep| step.at == now && step.quota == quota && step.wanted > 0;
            match demand.vcpus.last_mut().filter(is_same) {
                Some(step) if step.change == 0 => step.wanted = step.wanted.max(vcpus),
                _ => {
                    let limit = self.quota(quota, now);
                    demand.vcpus.push(VcpuStep { at: now, quota, change: 0, wanted: vcpus, limit, refused: false });
                }
            }
        });
    }

    /// Logs a change of the use of a quota. A launch that is subject to the quota states it.
    pub(super) fn log_vcpus(&self, quota: QuotaKey, change: i32, limit: u32, now: SimTime) {
        self.log(|demand| {
            demand.vcpus.push(VcpuStep { at: now, quota, change, wanted: 0, limit, refused: false });
        });
    }

    /// Logs that an instance of a Spot pool comes or goes.
    pub(super) fn log_pool(&self, pool: Pool, change: i32, now: SimTime) {
        if pool.capacity_type == well_known::SPOT && self.settings.capacity != CapacityModel::Infinite {
            self.log(|demand| {
                let capacity = self.free_at_start(pool);
                demand.pools.push(PoolStep { at: now, pool: self.market.listed_pool(pool), change, capacity });
            });
        }
    }

    /// Logs that a launch chooses among several pools.
    pub(super) fn log_choice(&self, capacity_type: Symbol, strategy: AllocationStrategy, pools: usize) {
        let is_by_depth = match strategy {
            AllocationStrategy::PriceCapacityOptimized
            | AllocationStrategy::CapacityOptimized
            | AllocationStrategy::CapacityOptimizedPrioritized => pools > 1,
            AllocationStrategy::LowestPrice | AllocationStrategy::Prioritized | AllocationStrategy::Diversified => {
                false
            }
        };
        let is_finite =
            self.settings.capacity != CapacityModel::Infinite && (is_by_depth || !self.settings.traces.is_empty());
        if capacity_type == well_known::SPOT && is_finite {
            self.log(|demand| demand.compares_depth = true);
        }
    }

    /// A quota refused a launch.
    pub(super) fn note_refused_launch(&mut self, pool: Pool, now: SimTime) {
        let Some(kind) = self.region.instance_type(pool.instance_type) else { return };
        let quota = QuotaKey::from_facts(&kind.facts, pool.capacity_type == well_known::SPOT);
        let limit = self.quota(quota, now);
        self.log(|demand| {
            demand.vcpus.push(VcpuStep { at: now, quota, change: 0, wanted: 0, limit, refused: true });
        });
        self.refusal = Some(Refusal::Quota { quota, limit });
    }

    /// Takes the tokens of one call, under the limits that hold now.
    pub(crate) fn take_tokens(&mut self, action: ApiAction, instances: u32, now: SimTime) -> Result<(), Throttled> {
        let injected = self.call_limit(action, now);
        self.account.remember_call(self.cluster, action, now);
        let answer = self.account.api.take(action, instances, &self.settings.api, injected, now);
        self.refusal = answer.is_err().then_some(Refusal::Calls(action));
        self.log(|demand| {
            demand.calls.push(CallStep { at: now, action, instances, injected, granted: answer.is_ok() });
        });
        answer
    }

    /// Use by the fleet of the shared limit that refused the last request: once, and only where other clusters use some of it.
    pub fn take_fleet_use(&mut self) -> Option<String> {
        let (clusters, refusal) = (self.account.several()?, self.refusal.take()?);
        match refusal {
            Refusal::Quota { quota, limit } => {
                let reserved = self.account.reserved.get(&quota).copied().unwrap_or(0);
                let used = self.account.vcpus(quota).saturating_add(reserved);
                let own = self.own_vcpus(quota);
                let text = format!(
                    "{clusters} clusters of the account use {used} of {limit} vCPUs of the quota {quota}, this cluster {own}"
                );
                (used > own).then_some(text)
            }
            Refusal::Calls(action) => {
                let (all, own) = self.account.recent_calls(self.cluster, action);
                let action = action.as_str();
                let text = format!(
                    "{clusters} clusters of the account made {all} {action} calls in the last minute, this cluster {own}"
                );
                (all > own).then_some(text)
            }
        }
    }

    /// When a pod has its launch token of Fargate.
    pub fn take_fargate_token(&mut self, burst: u32, per_second: u32, now: SimTime) -> SimTime {
        let rate = self.account.fargate_rate.get_or_insert_with(|| LaunchRate::new(burst, per_second));
        let token = rate.take(now);
        let kind = FargateStepKind::Token { burst, per_second, token };
        self.log(|demand| demand.fargate.push(FargateStep { at: now, kind }));
        token
    }

    /// Takes vCPUs of Fargate's quota of `limit` vCPUs; false if fewer are left.
    pub fn admit_on_fargate(&mut self, cpu_milli: i64, limit: u32, now: SimTime) -> bool {
        let granted = self.account.fargate_milli + cpu_milli <= i64::from(limit) * 1_000;
        if granted {
            self.account.fargate_milli += cpu_milli;
        }
        let kind = FargateStepKind::Admission { cpu_milli, limit, granted };
        self.log(|demand| demand.fargate.push(FargateStep { at: now, kind }));
        granted
    }

    /// Returns vCPUs of Fargate's quota.
    pub fn release_on_fargate(&mut self, cpu_milli: i64, now: SimTime) {
        self.account.fargate_milli -= cpu_milli;
        self.log(|demand| demand.fargate.push(FargateStep { at: now, kind: FargateStepKind::Release(cpu_milli) }));
    }
}

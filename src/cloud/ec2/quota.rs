//! The account's vCPU quotas: what they leave room for, and what EC2 answers beyond them.

use super::{Ec2, Pool};
use crate::cloud::fleet::FleetErrorCode;
use crate::cloud::quotas::QuotaClass;
use crate::domain::{SimTime, well_known};

/// What EC2 answers to a launch beyond the vCPU quota.
pub(super) fn beyond_quota(pool: Pool) -> FleetErrorCode {
    if pool.capacity_type == well_known::SPOT {
        FleetErrorCode::MaxSpotInstanceCountExceeded
    } else {
        FleetErrorCode::VcpuLimitExceeded
    }
}

impl Ec2 {
    /// What EC2 answers if the vCPU quota has no room for one more instance of `pool`.
    pub(super) fn over_quota(&self, pool: Pool, now: SimTime) -> Option<FleetErrorCode> {
        (self.left_of_quota(pool, now) == 0).then_some(beyond_quota(pool))
    }

    /// Instances of the pool's type that the vCPU quota leaves room for.
    pub(super) fn left_of_quota(&self, pool: Pool, now: SimTime) -> u32 {
        let Some(kind) = self.region.instance_type(pool.instance_type) else { return 0 };
        let class = QuotaClass::of(&kind.facts);
        let spot = pool.capacity_type == well_known::SPOT;
        let used = self.vcpus_in_use.get(&(class, spot)).copied().unwrap_or(0);
        self.quota(class, now).saturating_sub(used) / kind.facts.vcpus.max(1)
    }

    /// Counts the vCPUs of an instance that comes or goes.
    pub(super) fn count_vcpus(&mut self, pool: Pool, change: impl Fn(u32, u32) -> u32) {
        let Some(kind) = self.region.instance_type(pool.instance_type) else { return };
        let key = (QuotaClass::of(&kind.facts), pool.capacity_type == well_known::SPOT);
        let used = self.vcpus_in_use.entry(key).or_insert(0);
        *used = change(*used, kind.facts.vcpus);
    }
}

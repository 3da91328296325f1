//! The account's vCPU quotas: what they leave room for, and what EC2 answers beyond them.
//!
//! Source: EC2 user guide, "On-Demand Capacity Reservations", limits (2026): active and unused reservations count toward the limits of On-Demand
//! Instances, so that what is launched into one does not count again.
//!
//! Deviation: of a Capacity Block, only its running instances count toward the quota.

use super::{Ec2, Pool};
use crate::fleet::FleetErrorCode;
use crate::quotas::QuotaKey;
use nodecast_model::domain::{SimTime, well_known};

/// What EC2 answers to a launch beyond the vCPU quota.
pub(super) fn beyond_quota(pool: Pool) -> FleetErrorCode {
    if pool.capacity_type == well_known::SPOT {
        FleetErrorCode::MaxSpotInstanceCountExceeded
    } else {
        FleetErrorCode::VcpuLimitExceeded
    }
}

/// What is left of the quotas of one capacity type, worked out once for each class.
#[derive(Default)]
pub(super) struct QuotaLeft {
    vcpus: Vec<(QuotaKey, u32)>,
}

impl QuotaLeft {
    /// As [`Ec2::left_of_quota`], for pools of the same capacity type and the same instant.
    pub(super) fn instances(&mut self, ec2: &Ec2, pool: Pool, now: SimTime) -> u32 {
        let Some(kind) = ec2.region.instance_type(pool.instance_type) else { return 0 };
        let quota = QuotaKey::from_facts(&kind.facts, pool.capacity_type == well_known::SPOT);
        let known = self.vcpus.iter().find(|(key, _)| *key == quota).map(|(_, left)| *left);
        let left = known.unwrap_or_else(|| {
            let left = ec2.vcpus_left(quota, now);
            self.vcpus.push((quota, left));
            left
        });
        left / kind.facts.vcpus.max(1)
    }
}

impl Ec2 {
    /// What EC2 answers if the vCPU quota has no room for one more instance of `pool`.
    pub(super) fn over_quota(&self, pool: Pool, now: SimTime) -> Option<FleetErrorCode> {
        (self.left_of_quota(pool, now) == 0).then_some(beyond_quota(pool))
    }

    /// Instances of the pool's type that the vCPU quota leaves room for, beside those that run in what is reserved.
    pub(super) fn left_of_quota(&self, pool: Pool, now: SimTime) -> u32 {
        QuotaLeft::default().instances(self, pool, now)
    }

    /// vCPUs that are left of a quota.
    fn vcpus_left(&self, quota: QuotaKey, now: SimTime) -> u32 {
        let used = self.vcpus_in_use.get(&quota).copied().unwrap_or(0);
        let reserved = if quota.spot { 0 } else { self.unused_vcpus(quota, now) };
        self.quota(quota, now).saturating_sub(used).saturating_sub(reserved)
    }

    /// vCPUs of an On-Demand quota that capacity reservations hold and nothing uses.
    fn unused_vcpus(&self, quota: QuotaKey, now: SimTime) -> u32 {
        let reservations = self.settings.reservations.iter().zip(0_u32..).filter(|(reservation, _)| !reservation.block);
        let unused = reservations.filter_map(|(item, position)| {
            let facts = &self.region.instance_type(item.instance_type)?.facts;
            (QuotaKey::from_facts(facts, false) == quota)
                .then(|| self.room_at(position, now).saturating_mul(facts.vcpus))
        });
        unused.fold(0, u32::saturating_add)
    }

    /// Counts the vCPUs of an instance that comes or goes.
    pub(super) fn count_vcpus(&mut self, pool: Pool, change: impl Fn(u32, u32) -> u32) {
        let Some(kind) = self.region.instance_type(pool.instance_type) else { return };
        let key = QuotaKey::from_facts(&kind.facts, pool.capacity_type == well_known::SPOT);
        let used = self.vcpus_in_use.entry(key).or_insert(0);
        *used = change(*used, kind.facts.vcpus);
    }
}

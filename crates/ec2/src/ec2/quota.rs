//! The account's vCPU quotas: what they leave room for, and what EC2 answers beyond them.
//!
//! Source: EC2 user guide, "On-Demand Capacity Reservations", limits (2026): active and unused reservations count toward the limits of On-Demand
//! Instances, so that what is launched into one does not count again.
//!
//! Deviation: of a Capacity Block, only its running instances count toward the quota.

use super::{Ec2, Pool};
use crate::fleet::{FleetError, FleetErrorCode, FleetReply, FleetRequest};
use crate::quotas::QuotaKey;
use nodecast_model::domain::{SimTime, well_known};
use rustc_hash::FxHashMap;

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
    pub(super) fn instances(&mut self, ec2: &Ec2, (pool, target): (Pool, u32), now: SimTime) -> u32 {
        let Some(kind) = ec2.region.instance_type(pool.instance_type) else { return 0 };
        let quota = QuotaKey::from_facts(&kind.facts, pool.capacity_type == well_known::SPOT);
        let known = self.vcpus.iter().find(|(key, _)| *key == quota).map(|(_, left)| *left);
        let left = known.unwrap_or_else(|| {
            let left = ec2.vcpus_left(quota, now);
            self.vcpus.push((quota, left));
            left
        });
        let vcpus = kind.facts.vcpus.max(1);
        ec2.log_considered(quota, vcpus.saturating_mul(target.min(left / vcpus)), now);
        left / vcpus
    }
}

impl Ec2 {
    /// What EC2 answers if the vCPU quota has no room for one more instance of `pool`.
    pub(super) fn over_quota(&self, pool: Pool, now: SimTime) -> Option<FleetErrorCode> {
        (self.left_of_quota((pool, 1), now) == 0).then_some(beyond_quota(pool))
    }

    /// Instances of the pool's type that the vCPU quota leaves room for, beside those that run in what is reserved.
    /// The demand on the quota counts for a request of `target` instances.
    pub(super) fn left_of_quota(&self, (pool, target): (Pool, u32), now: SimTime) -> u32 {
        QuotaLeft::default().instances(self, (pool, target), now)
    }

    /// vCPUs that are left of a quota.
    fn vcpus_left(&self, quota: QuotaKey, now: SimTime) -> u32 {
        let used = self.account.vcpus(quota);
        let reserved = if quota.spot { 0 } else { self.unused_vcpus(quota, now) + self.reserved_by_others(quota) };
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

    /// vCPUs that the capacity reservations of other clusters hold and nothing uses.
    fn reserved_by_others(&self, quota: QuotaKey) -> u32 {
        let all = self.account.reserved.get(&quota).copied().unwrap_or(0);
        all.saturating_sub(self.own_reserved.get(&quota).copied().unwrap_or(0))
    }

    /// vCPUs of this cluster that count against a quota.
    pub(super) fn own_vcpus(&self, quota: QuotaKey) -> u32 {
        let vcpus = |used: &FxHashMap<QuotaKey, u32>| used.get(&quota).copied().unwrap_or(0);
        vcpus(&self.own_vcpus).saturating_add(vcpus(&self.own_reserved))
    }

    /// Counts the vCPUs of an instance that comes or goes.
    pub(super) fn count_vcpus(&mut self, pool: Pool, change: Change, now: SimTime) {
        let Some(kind) = self.region.instance_type(pool.instance_type) else { return };
        let quota = QuotaKey::from_facts(&kind.facts, pool.capacity_type == well_known::SPOT);
        let vcpus = i32::try_from(kind.facts.vcpus).unwrap_or(i32::MAX);
        let limit = if change == Change::Launched { self.quota(quota, now) } else { 0 };
        let vcpus = if change == Change::Ended { -vcpus } else { vcpus };
        self.account.count_vcpus(quota, vcpus);
        let used = self.own_vcpus.entry(quota).or_insert(0);
        *used = used.saturating_add_signed(vcpus);
        self.log_vcpus(quota, vcpus, limit, now);
    }

    /// Tells the account the vCPUs that this cluster's capacity reservations hold and nothing uses, if they changed.
    pub fn note_reserved(&mut self, now: SimTime) {
        for at in 0..self.settings.reservations.len() {
            let Some(kind) = self.region.instance_type(self.settings.reservations[at].instance_type) else { continue };
            let quota = QuotaKey::from_facts(&kind.facts, false);
            let (unused, before) = (self.unused_vcpus(quota, now), self.own_reserved.get(&quota).copied().unwrap_or(0));
            if unused != before {
                let all = self.account.reserved.entry(quota).or_insert(0);
                *all = all.saturating_sub(before).saturating_add(unused);
                self.own_reserved.insert(quota, unused);
                self.log_vcpus(quota, unused.cast_signed().saturating_sub(before.cast_signed()), 0, now);
            }
        }
    }

    /// Remembers the quota that kept a request from all its instances.
    pub(super) fn note_refusal(&mut self, request: &FleetRequest, reply: &FleetReply, now: SimTime) {
        let is_quota = |error: &&FleetError| {
            matches!(error.code, FleetErrorCode::VcpuLimitExceeded | FleetErrorCode::MaxSpotInstanceCountExceeded)
        };
        if let Some(error) = reply.errors.iter().find(is_quota) {
            let (instance_type, zone) = (error.instance_type, error.zone);
            self.note_refused_launch(Pool { instance_type, zone, capacity_type: request.capacity_type }, now);
        }
    }
}

/// A change of the number of instances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// A launch that is subject to the quota.
    Launched,
    /// A launch into reserved capacity, which counts already.
    Reserved,
    /// The end of an instance.
    Ended,
}

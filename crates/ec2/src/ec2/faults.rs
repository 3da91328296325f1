//! What the account makes of injected faults and of launches that go wrong by themselves.
//!
//! Every draw is by the number of the call, of the request to the pool or of the launch from the pool, so that it is the
//! same under every policy and moves no other.

use super::{Ec2, InstanceId, Pool};
use crate::api::ApiAction;
use crate::boot::BootTimes;
use crate::faults::{FaultKind, ServerError};
use crate::fleet::CallError;
use crate::quotas::QuotaKey;
use crate::settings::BucketSize;
use nodecast_model::domain::{SimDuration, SimTime, Symbol, well_known};

/// What becomes of a launch that EC2 has accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaunchOutcome {
    /// Its node joins the cluster.
    Joins,
    /// It goes from `pending` to `shutting-down` without ever running.
    Aborted,
    /// It runs, but its node never registers.
    NeverRegisters,
}

impl Ec2 {
    /// The faults that are on at `now`, with their positions.
    fn troubles(&self, now: SimTime) -> impl Iterator<Item = (usize, FaultKind)> + '_ {
        let on = move |(at, fault): (usize, &crate::faults::Fault)| fault.is_on(now).then_some((at, fault.kind));
        self.settings.faults.iter().enumerate().filter_map(on)
    }

    /// The injected limit on calls of `action`.
    pub(super) fn call_limit(&self, action: ApiAction, now: SimTime) -> Option<BucketSize> {
        self.troubles(now).find_map(|(_, kind)| match kind {
            FaultKind::ApiThrottle { bucket, action: of } => {
                of.map_or(action.changes_instances(), |of| of == action).then_some(bucket)
            }
            _ => None,
        })
    }

    /// Whether the launch call number `call`, one of `action`, fails on EC2's side: by an injected fault, or by itself.
    pub(super) fn server_error(&self, action: ApiAction, call: u64, now: SimTime) -> Result<(), CallError> {
        let injected = self.troubles(now).filter_map(|(at, kind)| match kind {
            FaultKind::ApiError { code, probability, action: of } if of.is_none_or(|of| of == action) => {
                Some((format!("CreateFleet/fault-{at}"), code, probability))
            }
            _ => None,
        });
        let item = ("CreateFleet".to_owned(), ServerError::InternalError, self.settings.failures.internal_error);
        for (entity, code, probability) in injected.chain([item]) {
            if probability > 0.0 && self.streams.nth("api-error", &entity, call).happens(probability) {
                return Err(CallError::Server(code));
            }
        }
        Ok(())
    }

    /// A call's own time, made longer by faults.
    pub(super) fn with_api_latency(&self, span: SimDuration, now: SimTime) -> SimDuration {
        self.troubles(now).fold(span, |span, (_, kind)| match kind {
            FaultKind::ApiLatency { permille } => {
                SimDuration::from_micros(span.as_micros() * i64::from(permille) / 1_000)
            }
            _ => span,
        })
    }

    /// Whether a fault keeps `pool` from giving anything to this request.
    pub(super) fn is_withheld(&mut self, pool: Pool, now: SimTime) -> bool {
        if self.settings.faults.is_empty() {
            return false;
        }
        let request = self.requests.entry(pool).or_insert(0);
        *request += 1;
        let request = *request;
        self.troubles(now).any(|(at, kind)| match kind {
            FaultKind::InsufficientCapacity { pools, probability } if pools.matches(pool) => {
                let entity = format!("{at}/{}", pool.stream_name());
                probability >= 1.0 || self.streams.nth("fault-shortage", &entity, request).happens(probability)
            }
            FaultKind::ZoneOutage { zone, .. } => zone == pool.zone,
            _ => false,
        })
    }

    /// Whether a fault keeps the subnets of `zone` from giving addresses.
    pub(super) fn are_addresses_withheld(&self, zone: Symbol, now: SimTime) -> bool {
        self.troubles(now).any(|(_, kind)| match kind {
            FaultKind::SubnetExhausted { zone: of } => of.is_none_or(|of| of == zone),
            _ => false,
        })
    }

    /// A vCPU quota.
    pub(super) fn quota(&self, quota: QuotaKey, now: SimTime) -> u32 {
        let other = self.troubles(now).find_map(|(_, kind)| match kind {
            FaultKind::Quota { class, capacity_type, vcpus } if quota.is_in(class) => {
                let is_spot = capacity_type.map(|bought| bought == well_known::SPOT);
                is_spot.is_none_or(|spot| spot == quota.spot).then_some(vcpus)
            }
            _ => None,
        });
        other.unwrap_or_else(|| self.settings.quotas.limit(quota))
    }

    /// The boot of an instance that was launched while faults were on.
    pub(super) fn slowed(&self, boot: BootTimes, accepted: SimTime) -> BootTimes {
        let slow = self.troubles(accepted).find_map(|(_, kind)| match kind {
            FaultKind::SlowBoot { permille } => Some(permille),
            _ => None,
        });
        slow.map_or(boot, |permille| boot.slowed(permille))
    }

    /// What becomes of the launch of `id`.
    pub fn boot_fate(&self, id: InstanceId) -> LaunchOutcome {
        let instance = self.instance(id);
        let injected = self.troubles(instance.accepted).filter_map(|(_, kind)| match kind {
            FaultKind::BootFailure { probability } => Some(probability),
            _ => None,
        });
        let injected = injected.fold(0.0, f64::max);
        let failures = self.settings.failures;
        let mut stream = self.streams.nth("boot-fate", &instance.pool.stream_name(), instance.ordinal);
        let (aborts, is_lost) =
            (stream.happens(failures.abort), stream.happens(failures.never_registers.max(injected)));
        match (aborts, is_lost) {
            (true, _) => LaunchOutcome::Aborted,
            (false, true) => LaunchOutcome::NeverRegisters,
            (false, false) => LaunchOutcome::Joins,
        }
    }

    /// The probability that an interruption notice gets lost because of a fault.
    pub fn lost_notices(&self, now: SimTime) -> f64 {
        let lost = self.troubles(now).filter_map(|(_, kind)| match kind {
            FaultKind::LostNotices { probability } => Some(probability),
            _ => None,
        });
        lost.fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::LaunchOutcome;
    use crate::settings::CloudSettings;
    use crate::{Ec2, Pool};
    use nodecast_engine::Streams;
    use nodecast_model::domain::volumes::NodeVolumes;
    use nodecast_model::domain::{NodeId, SimTime, Symbol, well_known};
    use nodecast_prices::Catalog;

    #[test]
    fn few_launches_abort_or_never_register() {
        let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
        let mut ec2 = Ec2::new(region, Streams::new(3), Arc::new(CloudSettings::default()), SimTime::ZERO);
        let zone = Symbol::new("us-east-1a");
        let pool = Pool { instance_type: Symbol::new("m5.large"), zone, capacity_type: well_known::ON_DEMAND };
        let (mut aborted, mut lost) = (0, 0);
        for number in 0..100_000 {
            let id = ec2.add_running(pool, NodeId(number), &NodeVolumes::gp3(20), SimTime::ZERO).unwrap();
            match ec2.boot_fate(id) {
                LaunchOutcome::Aborted => aborted += 1,
                LaunchOutcome::NeverRegisters => lost += 1,
                LaunchOutcome::Joins => {}
            }
        }
        // Four standard deviations of the two Poisson numbers.
        assert!((22..=78).contains(&aborted), "{aborted}");
        assert!((60..=140).contains(&lost), "{lost}");
    }
}

//! Calls other than CreateFleet: RunInstances, TerminateInstances, DescribeInstances.

use super::quota::beyond_quota;
use super::{Ec2, InstanceId, Pool};
use crate::api::{ApiAction, ApiError};
use crate::consistency::{Consistency, InstanceView, lag, state_as_of};
use crate::fleet::{CallError, Candidate, FleetErrorCode, FleetRequest, Throttled, allocate};
use nodecast_model::domain::volumes::NodeVolumes;
use nodecast_model::domain::{NodeId, SimDuration, SimTime};

/// What RunInstances is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunRequest {
    /// The pool to launch from.
    pub pool: Pool,
    /// With fewer than these nothing is launched.
    pub min: u32,
    /// Instances wanted.
    pub max: u32,
    /// The EBS volumes of each instance.
    pub volumes: NodeVolumes,
}

/// Why RunInstances launched nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LaunchError {
    /// There have been too many calls, or EC2 failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The pool could not deliver.
    #[error("{}", .0.as_str())]
    Refused(FleetErrorCode),
}

/// Which instances DescribeInstances is asked about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InstanceFilter<'a> {
    /// These.
    Ids(&'a [InstanceId]),
    /// All, as by a filter on a tag that all of the cluster's instances have.
    All,
}

impl Ec2 {
    /// RunInstances, answered for the nodes in `nodes` in order.
    ///
    /// # Errors
    /// If there have been too many calls, EC2 fails, or the pool has fewer than the least number: nothing is launched.
    pub fn run_instances(
        &mut self,
        request: &RunRequest,
        nodes: &[NodeId],
        now: SimTime,
    ) -> Result<Vec<InstanceId>, LaunchError> {
        self.arrived += 1;
        self.take_tokens(ApiAction::RunInstances, request.max, now).map_err(CallError::from)?;
        self.server_error(ApiAction::RunInstances, self.arrived, now)?;
        self.settle(now);
        let candidate = match self.candidate((request.pool, request.max), 0, now) {
            Ok(candidate) => candidate,
            Err(code) => {
                if code == beyond_quota(request.pool) {
                    self.note_refused_launch(request.pool, now);
                }
                return Err(LaunchError::Refused(code));
            }
        };
        let granted = candidate.free.min(request.max);
        if granted < request.min {
            return Err(LaunchError::Refused(FleetErrorCode::InsufficientInstanceCapacity));
        }
        let nodes = nodes.iter().take(granted as usize);
        Ok(nodes.map(|&node| self.launch(request.pool, node, &request.volumes, now)).collect())
    }

    /// TerminateInstances: each instance leaves `running` at once; returns how long each takes to be gone.
    ///
    /// # Errors
    /// If there have been too many calls, or too many instances have been named: nothing is terminated.
    pub fn terminate_instances(&mut self, ids: &[InstanceId], now: SimTime) -> Result<Vec<SimDuration>, Throttled> {
        self.take_tokens(ApiAction::TerminateInstances, ids.len() as u32, now)?;
        Ok(ids.iter().map(|&id| self.terminate(id, now)).collect())
    }

    /// DescribeInstances, asked by `caller`. What it shows may be the state of a moment ago: the lag of each instance is
    /// drawn by caller and number of the read.
    ///
    /// # Errors
    /// If there have been too many calls, or one of the instances asked for is not visible.
    pub fn describe_instances(
        &mut self,
        filter: InstanceFilter<'_>,
        caller: &str,
        now: SimTime,
    ) -> Result<Vec<InstanceView>, ApiError> {
        self.take_tokens(ApiAction::DescribeInstances, 0, now)?;
        self.reads += 1;
        match filter {
            InstanceFilter::Ids(ids) => {
                let view = |&id| self.view(id, caller, now, false).ok_or(ApiError::InstanceNotFound(id));
                ids.iter().map(view).collect()
            }
            InstanceFilter::All => {
                let ids = (0..self.instances.len()).map(|index| InstanceId(index as u32));
                Ok(ids.filter_map(|id| self.view(id, caller, now, true)).collect())
            }
        }
    }

    /// The pool of an instance that has been there for a while: the one that `request` would get now, or, where all are
    /// short, the first that exists.
    pub fn likely_pool(&mut self, request: &FleetRequest, now: SimTime) -> Option<Pool> {
        let mut candidates = Vec::new();
        let mut first = None;
        for wanted in &request.overrides {
            let pool =
                Pool { instance_type: wanted.instance_type, zone: wanted.zone, capacity_type: request.capacity_type };
            first = first.or_else(|| self.market.listed(pool).map(|_| pool));
            let candidate = self.candidate((pool, 1), wanted.priority, now);
            candidates.extend(candidate.map(|candidate| Candidate { weight: wanted.weight, ..candidate }));
        }
        let granted = allocate(request.strategy, request.pools_to_use, 1, &candidates);
        let chosen = candidates.iter().zip(granted).find(|(_, count)| *count > 0);
        chosen.map(|(candidate, _)| candidate.pool).or(first)
    }

    /// The instance as one read shows it.
    fn view(&self, id: InstanceId, caller: &str, now: SimTime, listed: bool) -> Option<InstanceView> {
        let instance = self.instances.get(id.0 as usize)?;
        let (pool, launched) = (instance.pool, instance.accepted);
        let state = match self.settings.consistency {
            Consistency::Strong => state_as_of(instance, now, false),
            Consistency::Eventual => {
                let entity = format!("{caller}/{}/{}", pool.stream_name(), instance.ordinal);
                let behind = lag(&mut self.streams.nth("api-lag", &entity, self.reads));
                state_as_of(instance, now - behind, listed)
            }
        }?;
        Some(InstanceView { id, pool, state, launched })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{InstanceFilter, LaunchError, RunRequest};
    use crate::faults::{Fault, FaultKind, PoolSelector};
    use crate::quotas::QuotaClass;
    use crate::settings::{CloudSettings, Interruptions, Quotas};
    use crate::{ApiError, Consistency, Ec2, FleetErrorCode, InstanceState, Pool};
    use nodecast_engine::Streams;
    use nodecast_model::domain::volumes::NodeVolumes;
    use nodecast_model::domain::{NodeId, SimDuration, SimTime, Symbol, well_known};
    use nodecast_prices::Catalog;

    fn at(seconds: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(seconds)
    }

    fn account(settings: CloudSettings) -> Ec2 {
        let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
        let interruptions = Interruptions { exposure_hours: None, ..Interruptions::default() };
        Ec2::new(region, Streams::new(7), Arc::new(CloudSettings { interruptions, ..settings }), at(86_400))
    }

    fn request(min: u32, max: u32) -> RunRequest {
        let pool = Pool {
            instance_type: Symbol::new("m5.large"),
            zone: Symbol::new("us-east-1a"),
            capacity_type: well_known::ON_DEMAND,
        };
        RunRequest { pool, min, max, volumes: NodeVolumes::gp3(20) }
    }

    fn nodes(count: u32) -> Vec<NodeId> {
        (0..count).map(NodeId).collect()
    }

    #[test]
    fn run_instances_launches_fewer_down_to_minimum() {
        let quotas = Quotas::default().with(QuotaClass::Standard, 6);
        let mut ec2 = account(CloudSettings { quotas, ..CloudSettings::default() });
        let short = ec2.run_instances(&request(4, 5), &nodes(5), at(0));
        assert_eq!(short, Err(LaunchError::Refused(FleetErrorCode::InsufficientInstanceCapacity)));
        assert_eq!(ec2.run_instances(&request(1, 5), &nodes(5), at(0)).unwrap().len(), 3, "6 vCPUs are 3 instances");
        let full = ec2.run_instances(&request(1, 1), &nodes(1), at(0));
        assert_eq!(full, Err(LaunchError::Refused(FleetErrorCode::VcpuLimitExceeded)));
    }

    #[test]
    fn run_instances_meets_injected_shortages() {
        let zone = Some(Symbol::new("us-east-1a"));
        let pools = PoolSelector { zone, ..PoolSelector::default() };
        let kind = FaultKind::InsufficientCapacity { pools, probability: 1.0 };
        let faults = vec![Fault { at: at(0), until: at(60), kind }];
        let mut ec2 = account(CloudSettings { faults, ..CloudSettings::default() });
        assert!(ec2.run_instances(&request(1, 1), &nodes(1), at(59)).is_err());
        assert!(ec2.run_instances(&request(1, 1), &nodes(1), at(60)).is_ok());
    }

    #[test]
    fn terminated_instance_stays_visible_for_an_hour() {
        let mut ec2 = account(CloudSettings { consistency: Consistency::Strong, ..CloudSettings::default() });
        let id = ec2.run_instances(&request(1, 1), &nodes(1), at(0)).unwrap()[0];
        ec2.mark_running(id, at(12));
        ec2.terminate_instances(&[id], at(100)).unwrap();
        ec2.mark_terminated(id, at(130));
        let mut state = |seconds| {
            let seen = ec2.describe_instances(InstanceFilter::Ids(&[id]), "test", at(seconds));
            seen.map(|views| views[0].state).ok()
        };
        assert_eq!(state(11), Some(InstanceState::Pending));
        assert_eq!(state(12), Some(InstanceState::Running));
        assert_eq!(state(100), Some(InstanceState::ShuttingDown));
        assert_eq!(state(130), Some(InstanceState::Terminated));
        assert_eq!((state(3_729), state(3_730)), (Some(InstanceState::Terminated), None));
    }

    #[test]
    fn new_instance_is_eventually_consistent() {
        let mut ec2 = account(CloudSettings { api: crate::settings::ApiLimits::UNLIMITED, ..CloudSettings::default() });
        let id = ec2.run_instances(&request(1, 1), &nodes(1), at(0)).unwrap()[0];
        let missing = (0..10_000)
            .filter(|_| {
                let read = ec2.describe_instances(InstanceFilter::Ids(&[id]), "test", at(0));
                read == Err(ApiError::InstanceNotFound(id))
            })
            .count();
        assert!((230..370).contains(&missing), "{missing} of 10,000 reads lag");
        assert!(ec2.describe_instances(InstanceFilter::All, "test", at(0)).unwrap().is_empty());
        let listed = ec2.describe_instances(InstanceFilter::All, "test", at(40)).unwrap();
        assert_eq!(listed.len(), 1, "no lag is longer than 31 seconds");
    }
}

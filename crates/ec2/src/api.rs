//! Limits on API calls: which action draws on which bucket, and what a refused call is told.
//!
//! Source: AWS documentation of request throttling for the EC2 API; the limiter of Karpenter's KWOK provider.

use super::ec2::InstanceId;
use super::fleet::Throttled;
use super::settings::{ApiLimits, BucketSize};
use super::throttle::Bucket;
use nodecast_model::domain::{SimTime, Symbol};

/// The actions whose calls are limited apart from one another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ApiAction {
    /// CreateFleet, as all actions that change something and have no limit of their own.
    CreateFleet,
    /// RunInstances.
    RunInstances,
    /// TerminateInstances.
    TerminateInstances,
    /// DescribeInstances with ids or filters, as all actions that only read.
    DescribeInstances,
    /// DescribeAutoScalingGroups and DescribeScalingActivities.
    DescribeAutoScalingGroups,
    /// SetDesiredCapacity and TerminateInstanceInAutoScalingGroup.
    ChangeAutoScalingGroup,
}

/// Number of actions.
const ACTIONS: usize = 6;

impl ApiAction {
    /// Every action.
    pub const ALL: [Self; ACTIONS] = [
        Self::CreateFleet,
        Self::RunInstances,
        Self::TerminateInstances,
        Self::DescribeInstances,
        Self::DescribeAutoScalingGroups,
        Self::ChangeAutoScalingGroup,
    ];

    /// The limit on its calls.
    fn calls(self, limits: &ApiLimits) -> BucketSize {
        match self {
            Self::CreateFleet => limits.mutating,
            Self::RunInstances => limits.run_calls,
            Self::TerminateInstances => limits.terminate_calls,
            Self::DescribeInstances => limits.describe,
            Self::DescribeAutoScalingGroups => limits.group_reads,
            Self::ChangeAutoScalingGroup => limits.group_writes,
        }
    }

    /// Whether it launches or terminates by itself.
    pub(super) fn changes_instances(self) -> bool {
        self.launches() || self == Self::TerminateInstances
    }

    /// Whether it launches by itself.
    pub(super) fn launches(self) -> bool {
        matches!(self, Self::CreateFleet | Self::RunInstances)
    }

    /// The name as the API writes it; of those that share a limit, one.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreateFleet => "CreateFleet",
            Self::RunInstances => "RunInstances",
            Self::TerminateInstances => "TerminateInstances",
            Self::DescribeInstances => "DescribeInstances",
            Self::DescribeAutoScalingGroups => "DescribeAutoScalingGroups",
            Self::ChangeAutoScalingGroup => "SetDesiredCapacity",
        }
    }
}

/// Why a call was refused, in the API's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ApiError {
    /// There have been too many calls.
    #[error(transparent)]
    Throttled(#[from] Throttled),
    /// The instance is unknown, or not visible yet.
    #[error("InvalidInstanceID.NotFound: the instance ID '{}' does not exist", instance_name(*.0))]
    InstanceNotFound(InstanceId),
    /// The group is unknown.
    #[error("ValidationError: AutoScalingGroup name not found - AutoScalingGroup '{0}' not found")]
    GroupNotFound(Symbol),
    /// The request contradicts the group's limits or state.
    #[error("ValidationError: {0}")]
    Validation(String),
}

/// The id of an instance as the API writes it: 17 hexadecimal digits.
pub fn instance_name(id: InstanceId) -> String {
    format!("i-{:017x}", u64::from(id.0) + 1)
}

/// The buckets of one account in one region.
#[derive(Clone, Debug)]
pub struct ApiCalls {
    calls: [Bucket; ACTIONS],
    launched: Bucket,
    terminated: Bucket,
}

impl ApiCalls {
    /// Every bucket full.
    pub fn new(limits: &ApiLimits) -> Self {
        Self {
            calls: ApiAction::ALL.map(|action| Bucket::full(action.calls(limits))),
            launched: Bucket::full(limits.launched_instances),
            terminated: Bucket::full(limits.terminated_instances),
        }
    }

    /// Takes the tokens of one call that asks for `instances`; a throttle that is injected into this action now takes
    /// the place of its own limit.
    ///
    /// # Errors
    /// If there have been too many calls, or too few tokens are left for so many instances: the call has no effect.
    pub fn take(
        &mut self,
        action: ApiAction,
        instances: u32,
        limits: &ApiLimits,
        injected: Option<BucketSize>,
        now: SimTime,
    ) -> Result<(), Throttled> {
        let size = injected.unwrap_or_else(|| action.calls(limits));
        let bucket = &mut self.calls[action as usize];
        let granted = bucket.take(1, size, now)
            && match action {
                ApiAction::RunInstances => self.launched.take(instances, limits.launched_instances, now),
                ApiAction::CreateFleet if limits.fleet_uses_run_resource_bucket => {
                    self.launched.take(instances, limits.launched_instances, now)
                }
                ApiAction::TerminateInstances => self.terminated.take(instances, limits.terminated_instances, now),
                _ => true,
            };
        if granted { Ok(()) } else { Err(Throttled) }
    }
}

#[cfg(test)]
mod tests {
    use super::{ApiAction, ApiCalls, instance_name};
    use crate::InstanceId;
    use crate::settings::{ApiLimits, BucketSize};
    use nodecast_model::domain::{SimDuration, SimTime};

    fn at(seconds: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(seconds)
    }

    fn granted(calls: &mut ApiCalls, action: ApiAction, instances: u32, now: SimTime) -> bool {
        calls.take(action, instances, &ApiLimits::default(), None, now).is_ok()
    }

    #[test]
    fn api_throttles_101st_describe_but_not_launches() {
        let mut calls = ApiCalls::new(&ApiLimits::default());
        assert!((0..100).all(|_| granted(&mut calls, ApiAction::DescribeInstances, 0, at(0))));
        assert!(!granted(&mut calls, ApiAction::DescribeInstances, 0, at(0)));
        assert!(granted(&mut calls, ApiAction::CreateFleet, 1, at(0)), "each action has its own bucket");
        assert!(granted(&mut calls, ApiAction::DescribeInstances, 0, at(1)), "20 tokens a second come back");
    }

    #[test]
    fn thousand_launches_pass_then_100_after_50s() {
        let mut calls = ApiCalls::new(&ApiLimits::default());
        assert!(granted(&mut calls, ApiAction::RunInstances, 1_000, at(0)));
        assert!(!granted(&mut calls, ApiAction::RunInstances, 100, at(10)), "20 tokens have come back");
        assert!(granted(&mut calls, ApiAction::RunInstances, 100, at(50)));
    }

    #[test]
    fn fleets_share_run_instances_quota_by_default() {
        let mut calls = ApiCalls::new(&ApiLimits::default());
        assert!(granted(&mut calls, ApiAction::CreateFleet, 1_000, at(0)));
        assert!(!granted(&mut calls, ApiAction::RunInstances, 1, at(0)));
        let apart = ApiLimits { fleet_uses_run_resource_bucket: false, ..ApiLimits::default() };
        let mut calls = ApiCalls::new(&apart);
        assert!(calls.take(ApiAction::CreateFleet, 5_000, &apart, None, at(0)).is_ok());
        assert!(calls.take(ApiAction::RunInstances, 1_000, &apart, None, at(0)).is_ok());
    }

    #[test]
    fn terminations_have_calls_and_instances_of_their_own() {
        let mut calls = ApiCalls::new(&ApiLimits::default());
        assert!(granted(&mut calls, ApiAction::TerminateInstances, 1_000, at(0)));
        assert!(!granted(&mut calls, ApiAction::TerminateInstances, 30, at(1)), "20 a second come back");
        assert!(granted(&mut calls, ApiAction::TerminateInstances, 30, at(2)));
    }

    #[test]
    fn injected_throttle_replaces_action_limit() {
        let fault = Some(BucketSize { size: 1, per_second: 0 });
        let limits = ApiLimits::default();
        let mut calls = ApiCalls::new(&limits);
        for action in [ApiAction::CreateFleet, ApiAction::RunInstances, ApiAction::TerminateInstances] {
            assert!(calls.take(action, 1, &limits, fault, at(0)).is_ok(), "{action:?}");
            assert!(calls.take(action, 1, &limits, fault, at(9)).is_err(), "{action:?}");
        }
        assert!((0..50).all(|_| calls.take(ApiAction::DescribeInstances, 0, &limits, None, at(0)).is_ok()));
    }

    #[test]
    fn instance_ids_look_like_those_of_the_api() {
        assert_eq!(instance_name(InstanceId(0)), "i-00000000000000001");
        assert_eq!(instance_name(InstanceId(254)), "i-000000000000000ff");
    }
}

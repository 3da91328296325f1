//! The EC2 API is eventually consistent: a read shows the state of a moment ago.
//!
//! Source: AWS documentation of eventual consistency in the EC2 API, which gives no figures; the lag is an assumption after
//! reports of users.

use super::ec2::{Instance, Pool};
use nodecast_engine::Stream;
use nodecast_model::domain::{SimDuration, SimTime};

/// Share of reads without lag, the mean of the others, and the longest one, in seconds.
const CURRENT: f64 = 0.97;
const LAG_MEAN: f64 = 1.5;
const LAG_MAX: f64 = 30.0;
/// So much later a new instance shows up in lists than in reads by id.
const LISTED_LATER: SimDuration = SimDuration::from_secs(1);
/// A terminated instance stays visible for so long.
const TERMINATED_VISIBLE: SimDuration = SimDuration::from_secs(3_600);

/// How consistent reads are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Consistency {
    /// A read may show the state of a moment ago.
    #[default]
    Eventual,
    /// A read shows the state of its instant: for tests and what-if questions.
    Strong,
}

/// The states of an instance, as DescribeInstances shows them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InstanceState {
    /// Accepted, not running yet.
    Pending,
    /// Running.
    Running,
    /// On its way out.
    ShuttingDown,
    /// Gone.
    Terminated,
}

/// What DescribeInstances tells of one instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstanceView {
    /// The instance.
    pub id: super::InstanceId,
    /// Where it comes from.
    pub pool: Pool,
    /// Its state.
    pub state: InstanceState,
    /// When its launch was accepted.
    pub launched: SimTime,
}

/// Draws how old the state is that one read of one instance shows.
pub(super) fn lag(stream: &mut Stream) -> SimDuration {
    if stream.happens(CURRENT) {
        return SimDuration::ZERO;
    }
    SimDuration::from_secs_f64(stream.exponential(LAG_MEAN).min(LAG_MAX))
}

/// The state of `instance` as of `seen`; `None` if it is not visible. In a list new instances appear later.
pub(super) fn state_as_of(instance: &Instance, seen: SimTime, listed: bool) -> Option<InstanceState> {
    let visible_from = if listed { instance.accepted + LISTED_LATER } else { instance.accepted };
    if seen < visible_from {
        return None;
    }
    if let Some(gone) = instance.terminated.filter(|gone| *gone <= seen) {
        return (seen - gone < TERMINATED_VISIBLE).then_some(InstanceState::Terminated);
    }
    let reached = |time: Option<SimTime>| time.is_some_and(|time| time <= seen);
    Some(if reached(instance.terminating) {
        InstanceState::ShuttingDown
    } else if reached(instance.running) {
        InstanceState::Running
    } else {
        InstanceState::Pending
    })
}

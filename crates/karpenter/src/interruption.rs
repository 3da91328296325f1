//! What Karpenter makes of what AWS says of an instance: by messages of the interruption queue, and by the status of instances
//! that it asks for every minute.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/controllers/interruption/messages`, `pkg/controllers/interruption/controller.go`,
//! `pkg/controllers/interruption/instancestatus`.
//!
//! What must not live here: how messages travel and when they are read (actors).

use nodecast_model::domain::SimDuration;

/// A status check has to fail for this long before the node is removed.
const STATUS_TOLERATED: SimDuration = SimDuration::from_secs(120);

/// What AWS says of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Notice {
    /// EC2 will take the Spot instance in two minutes.
    SpotInterruption,
    /// The Spot instance is at risk.
    RebalanceRecommendation,
    /// An event of AWS Health.
    HealthEvent {
        /// Whether it is about EC2.
        of_ec2: bool,
        /// Whether its category is `scheduledChange`.
        scheduled_change: bool,
    },
    /// The instance has changed its state.
    StateChange(InstanceState),
    /// The capacity reservation of the instance will be interrupted.
    ReservationInterruption,
    /// EC2 has planned to reboot, stop or retire the instance, or maintenance of its host.
    ScheduledEvent,
}

/// The state of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InstanceState {
    /// `pending`.
    Pending,
    /// `running`.
    Running,
    /// `stopping`.
    Stopping,
    /// `stopped`.
    Stopped,
    /// `shutting-down`.
    ShuttingDown,
    /// `terminated`.
    Terminated,
}

/// What is not launched from for a while after a notice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Avoided {
    /// The instance's type in its zone, as it was bought.
    Offering,
    /// The instance's capacity reservation.
    Reservation,
}

impl Notice {
    /// Whether the claim of the instance is deleted.
    pub const fn removes_node(self) -> bool {
        match self {
            Self::SpotInterruption | Self::ReservationInterruption | Self::ScheduledEvent => true,
            Self::RebalanceRecommendation => false,
            Self::HealthEvent { of_ec2, scheduled_change } => of_ec2 && scheduled_change,
            Self::StateChange(state) => !matches!(state, InstanceState::Pending | InstanceState::Running),
        }
    }

    /// What is avoided for a while.
    pub const fn avoids(self) -> Option<Avoided> {
        match self {
            Self::SpotInterruption => Some(Avoided::Offering),
            Self::ReservationInterruption => Some(Avoided::Reservation),
            _ => None,
        }
    }

    /// Why the node is removed.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::SpotInterruption => "its Spot instance is being interrupted",
            Self::RebalanceRecommendation => "its Spot instance is at risk",
            Self::HealthEvent { .. } => "AWS Health announces a change of its instance",
            Self::StateChange(_) => "its instance is being stopped or terminated",
            Self::ReservationInterruption => "its capacity reservation is being interrupted",
            Self::ScheduledEvent => "EC2 has scheduled an event for its instance",
        }
    }
}

/// Whether an instance whose status check has failed for so long is given up.
pub fn is_impaired(failed_for: SimDuration) -> bool {
    failed_for >= STATUS_TOLERATED
}

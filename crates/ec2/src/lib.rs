//! The simulated EC2 and its bill.
//!
//! Pools hold free instances; a fleet request takes from them by its allocation strategy; an instance boots through
//! stages whose durations are drawn from the n-th draw of its pool, so that the n-th launch from a pool has the same
//! luck under every policy; its running time is billed.
//!
//! What must not live here: Kubernetes objects, and any choice that an autoscaler makes.

pub mod account;
pub mod api;
pub mod autoscaling;
pub mod bill;
pub mod billing;
pub mod boot;
pub mod commitments;
pub mod consistency;
pub mod credits;
pub mod demand;
pub mod ec2;
pub mod faults;
pub mod fleet;
pub mod market;
pub mod provider;
pub mod quotas;
pub mod reservations;
pub mod settings;
pub mod subnets;
pub mod throttle;

pub use api::{ApiAction, ApiError};
pub use autoscaling::AutoScaling;
pub use bill::{Bill, BillItem, BillLine};
pub use boot::{BootStages, BootTimes};
pub use consistency::{Consistency, InstanceState, InstanceView};
pub use ec2::{Ec2, EndedBy, InstanceFilter, InstanceId, LaunchError, LaunchOutcome, Pool, RunRequest};
pub use fleet::{CallError, FleetError, FleetErrorCode, FleetOverride, FleetReply, FleetRequest, Throttled};
pub use provider::SimulatedAccount;
pub use reservations::{CapacityReservation, ReservationUse};
pub use settings::CloudSettings;

//! Scaling activities: what a group did, how it ended, and why, in the words of the API.

use crate::InstanceId;
use crate::api::instance_name;
use crate::fleet::{CallError, FleetErrorCode};
use nodecast_model::catalog::Region;
use nodecast_model::domain::{SimTime, Symbol};

/// How far an activity has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ActivityStatus {
    /// It is going on.
    InProgress,
    /// It ended as intended.
    Successful,
    /// It ended without effect.
    Failed,
    /// Its instance was gone before it was in service.
    Cancelled,
}

/// One scaling activity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Activity {
    /// The instance, if there is one.
    pub instance: Option<InstanceId>,
    /// When it began.
    pub start: SimTime,
    /// When it ended.
    pub end: Option<SimTime>,
    /// How far it has come.
    pub status: ActivityStatus,
    /// What it is.
    pub description: String,
    /// Why it was begun.
    pub cause: String,
    /// Why it failed; empty otherwise.
    pub message: String,
}

impl Activity {
    /// The launch of an instance, going on.
    pub(super) fn launching(instance: InstanceId, cause: &str, now: SimTime) -> Self {
        Self {
            instance: Some(instance),
            start: now,
            end: None,
            status: ActivityStatus::InProgress,
            description: format!("Launching a new EC2 instance: {}", instance_name(instance)),
            cause: cause.to_owned(),
            message: String::new(),
        }
    }

    /// A launch that failed.
    pub(super) fn failed(message: String, cause: &str, now: SimTime) -> Self {
        Self {
            instance: None,
            start: now,
            end: Some(now),
            status: ActivityStatus::Failed,
            description: format!("Launching a new EC2 instance.  Status Reason: {message}"),
            cause: cause.to_owned(),
            message,
        }
    }

    /// The end of an instance, going on.
    pub(super) fn terminating(instance: InstanceId, cause: String, now: SimTime) -> Self {
        Self {
            instance: Some(instance),
            start: now,
            end: None,
            status: ActivityStatus::InProgress,
            description: format!("Terminating EC2 instance: {}", instance_name(instance)),
            cause,
            message: String::new(),
        }
    }
}

/// Why instances are launched: there are `size` and there should be `desired`.
pub(super) fn launch_cause(size: u32, desired: u32) -> String {
    format!(
        "an instance was started in response to a difference between desired and actual capacity, increasing the capacity from {size} to {desired}."
    )
}

/// Why EC2 launched nothing, or too little.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reason {
    /// It took no call, or failed.
    Call(CallError),
    /// A pool could not deliver.
    Pool(FleetErrorCode),
}

/// A launch that EC2 refused, as the activity's status message puts it.
pub(super) struct Refusal<'a> {
    /// Why.
    pub reason: Reason,
    /// The zone asked for.
    pub zone: Symbol,
    /// The types asked for.
    pub types: &'a [Symbol],
    /// Whether Spot was asked for.
    pub spot: bool,
    /// Whether a fleet was asked.
    pub by_fleet: bool,
}

impl Refusal<'_> {
    /// The message.
    ///
    /// Source: status messages of DescribeScalingActivities as users report them, 2016 to 2023.
    pub(super) fn message(&self, region: &Region) -> String {
        let code = match self.reason {
            Reason::Pool(code) => code,
            Reason::Call(CallError::Throttled(_)) => {
                return "Request limit exceeded. Launching EC2 instance failed.".to_owned();
            }
            Reason::Call(error) => return format!("{error}. Launching EC2 instance failed."),
        };
        let bought = if self.spot { "Spot" } else { "On-Demand" };
        let fleet = if self.by_fleet {
            format!("Could not launch {bought} Instances. {} - ", self.code_name(code))
        } else {
            String::new()
        };
        format!("{fleet}{} Launching EC2 instance failed.", self.reason(code, region))
    }

    /// A fleet that found no Spot pool of several blames the request as a whole.
    fn code_name(&self, code: FleetErrorCode) -> &'static str {
        if self.no_pool_at_all(code) { "UnfulfillableCapacity" } else { code.as_str() }
    }

    fn no_pool_at_all(&self, code: FleetErrorCode) -> bool {
        self.spot && self.types.len() > 1 && code == FleetErrorCode::InsufficientInstanceCapacity
    }

    fn reason(&self, code: FleetErrorCode, region: &Region) -> String {
        let kind = self.types.first().map_or("", |kind| kind.as_str());
        let zone = self.zone;
        match code {
            _ if self.no_pool_at_all(code) => {
                "Unable to fulfill capacity due to your request configuration. Please adjust your request and try again."
                    .to_owned()
            }
            FleetErrorCode::InsufficientInstanceCapacity if self.spot => {
                "There is no Spot capacity available that matches your request.".to_owned()
            }
            FleetErrorCode::InsufficientInstanceCapacity => format!(
                "We currently do not have sufficient {kind} capacity in the Availability Zone you requested ({zone}). Our system will be working on provisioning additional capacity. You can currently get {kind} capacity by not specifying an Availability Zone in your request or choosing {}.",
                self.other_zones(region)
            ),
            FleetErrorCode::Unsupported => format!(
                "Your requested instance type ({kind}) is not supported in your requested Availability Zone ({zone}). Please retry your request by not specifying an Availability Zone or choosing {}.",
                self.other_zones(region)
            ),
            FleetErrorCode::VcpuLimitExceeded => {
                "You have requested more vCPU capacity than your current vCPU limit allows for the instance bucket that the specified instance type belongs to."
                    .to_owned()
            }
            FleetErrorCode::MaxSpotInstanceCountExceeded => "Max spot instance count exceeded.".to_owned(),
            FleetErrorCode::InsufficientFreeAddressesInSubnet => {
                format!("There are not enough free addresses in the subnet of {zone} to satisfy the requested number of instances.")
            }
            FleetErrorCode::ReservationCapacityExceeded => {
                format!("The capacity reservation for {kind} in {zone} has no room.")
            }
        }
    }

    /// Other zones of the region that offer the first type.
    fn other_zones(&self, region: &Region) -> String {
        let kind = self.types.first().and_then(|&kind| region.instance_type(kind));
        let zones = kind.into_iter().flat_map(|kind| kind.zones_offered());
        let names = zones.map(|zone| region.zones[zone].name.as_str()).filter(|name| *name != self.zone.as_str());
        names.collect::<Vec<_>>().join(", ")
    }
}

//! What a group does next: a pure function of its limits, its members and the zones that refuse for now.
//!
//! Source: EC2 Auto Scaling user guide: distribution over Availability Zones, default termination policy, Capacity
//! Rebalancing.
//!
//! Deviation: if AWS chooses among similar instances at random, the oldest one goes here.

use std::collections::BTreeMap;

use super::spec::GroupSpec;
use crate::InstanceId;
use nodecast_model::domain::{SimDuration, Symbol};

/// An instance of a group that is not being terminated, as the plan sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// The instance.
    pub id: InstanceId,
    /// Its zone.
    pub zone: Symbol,
    /// Whether it is Spot.
    pub spot: bool,
    /// Whether it serves: for a managed node group, its node is Ready.
    pub serves: bool,
    /// Whether it is protected from scale-in.
    pub protected: bool,
    /// Whether it is to go as soon as a replacement serves.
    pub outgoing: bool,
    /// Whether it was launched from an older version of the launch template.
    pub outdated: bool,
    /// How far the allocation strategy would rather do without it; the greater, the sooner it goes.
    pub misfit: u64,
    /// Time since its last full hour of running.
    pub into_hour: SimDuration,
}

/// Instances to launch in one zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchBatch {
    /// The zone.
    pub zone: Symbol,
    /// Whether they are Spot.
    pub spot: bool,
    /// How many.
    pub count: u32,
}

/// What a group does next.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// What to launch.
    pub launches: Vec<LaunchBatch>,
    /// Instances to terminate because there are more than desired.
    pub surplus: Vec<InstanceId>,
    /// Outgoing instances to terminate because their replacements serve.
    pub replaced: Vec<InstanceId>,
    /// An instance of a crowded zone that is to be replaced by one in an emptier zone.
    pub misplaced: Option<InstanceId>,
    /// Whether something is wanted that every zone it could go to refuses for now.
    pub blocked: bool,
}

/// What the group does next; `refuses` says whether a zone has refused (Spot or On-Demand) instances a moment ago.
pub fn plan(spec: &GroupSpec, desired: u32, members: &[Member], refuses: &dyn Fn(Symbol, bool) -> bool) -> Plan {
    let staying: Vec<&Member> = members.iter().filter(|member| !member.outgoing).collect();
    let outgoing: Vec<InstanceId> = members.iter().filter(|member| member.outgoing).map(|member| member.id).collect();
    let mut plan = Plan::default();
    let serving = staying.iter().filter(|member| member.serves).count() + outgoing.len();
    let spare = serving.saturating_sub(desired as usize);
    plan.replaced = outgoing.iter().copied().take(spare).collect();
    let size = staying.len() as u32;
    if size < desired {
        let most = if outgoing.is_empty() { spec.max } else { spec.max + spec.margin() };
        let room = most.saturating_sub(members.len() as u32);
        launch(spec, desired, &staying, (desired - size).min(room), refuses, &mut plan);
    } else if size > desired {
        plan.surplus = surplus(spec, desired, staying, size - desired);
    } else if spec.zone_rebalance && outgoing.is_empty() && staying.iter().all(|member| member.serves) {
        balance(spec, desired, &staying, refuses, &mut plan);
    }
    plan
}

/// Instances by zone; zones of the group without an instance count too.
fn by_zone(spec: &GroupSpec, members: &[&Member]) -> BTreeMap<Symbol, u32> {
    let mut counts: BTreeMap<Symbol, u32> = spec.zones.iter().map(|&zone| (zone, 0)).collect();
    for member in members {
        *counts.entry(member.zone).or_insert(0) += 1;
    }
    counts
}

/// Spreads what is missing over the zones: each instance goes to the zone with the fewest, ties by name.
fn launch(
    spec: &GroupSpec,
    desired: u32,
    staying: &[&Member],
    missing: u32,
    refuses: &dyn Fn(Symbol, bool) -> bool,
    plan: &mut Plan,
) {
    let mut counts = by_zone(spec, staying);
    let on_demand = staying.iter().filter(|member| !member.spot).count() as u32;
    let on_demand = spec.distribution.on_demand_of(desired).saturating_sub(on_demand).min(missing);
    for (spot, count) in [(false, on_demand), (true, missing - on_demand)] {
        for _ in 0..count {
            let open = counts.iter_mut().filter(|(zone, _)| spec.zones.contains(zone) && !refuses(**zone, spot));
            let Some((&zone, held)) = open.min_by_key(|(zone, held)| (**held, **zone)) else {
                plan.blocked = true;
                break;
            };
            *held += 1;
            match plan.launches.iter_mut().find(|batch| batch.zone == zone && batch.spot == spot) {
                Some(batch) => batch.count += 1,
                None => plan.launches.push(LaunchBatch { zone, spot, count: 1 }),
            }
        }
    }
}

/// The instances that the default termination policy ends, one after the other.
fn surplus(spec: &GroupSpec, desired: u32, mut staying: Vec<&Member>, count: u32) -> Vec<InstanceId> {
    let mut chosen = Vec::new();
    for _ in 0..count {
        let Some(next) = victim(spec, desired, &staying, None) else { break };
        staying.retain(|member| member.id != next);
        chosen.push(next);
    }
    chosen
}

/// The instance that the default termination policy ends first: of the zone with the most instances (among those with one
/// that is not protected), of the kind (On-Demand or Spot) of which there are too many, the one that the allocation
/// strategy would rather do without, then one of an older launch template, then the one closest to its next full hour.
fn victim(spec: &GroupSpec, desired: u32, members: &[&Member], zone: Option<Symbol>) -> Option<InstanceId> {
    let counts = by_zone(spec, members);
    let open = |zone: Symbol| members.iter().any(|member| member.zone == zone && !member.protected);
    let crowded = || {
        let zones = counts.iter().filter(|(zone, _)| open(**zone));
        // The greatest count; among equals the zone that comes first by name.
        zones.max_by_key(|(zone, count)| (**count, std::cmp::Reverse(**zone))).map(|(&zone, _)| zone)
    };
    let zone = zone.or_else(crowded)?;
    let of_zone = || members.iter().filter(|member| member.zone == zone && !member.protected);
    let on_demand = members.iter().filter(|member| !member.spot).count() as u32;
    let too_many_spot = on_demand <= spec.distribution.on_demand_of(desired);
    let has_kind = of_zone().any(|member| member.spot == too_many_spot);
    of_zone()
        .filter(|member| !has_kind || member.spot == too_many_spot)
        .max_by_key(|member| (member.misfit, member.outdated, member.into_hour, std::cmp::Reverse(member.id)))
        .map(|member| member.id)
}

/// Finds an instance to move if one zone has at least two more than another that would take one.
fn balance(
    spec: &GroupSpec,
    desired: u32,
    staying: &[&Member],
    refuses: &dyn Fn(Symbol, bool) -> bool,
    plan: &mut Plan,
) {
    let counts = by_zone(spec, staying);
    let least = spec.zones.iter().map(|zone| counts[zone]).min().unwrap_or(0);
    let crowded = counts.iter().filter(|(_, count)| **count >= least + 2);
    let Some((&zone, &most)) = crowded.max_by_key(|(zone, count)| (**count, std::cmp::Reverse(**zone))) else { return };
    let Some(chosen) = victim(spec, desired, staying, Some(zone)) else { return };
    let spot = staying.iter().any(|member| member.id == chosen && member.spot);
    let takes = |zone: &&Symbol| counts[*zone] + 2 <= most && !refuses(**zone, spot);
    if spec.zones.iter().any(|zone| takes(&zone)) {
        plan.misplaced = Some(chosen);
    } else {
        plan.blocked = true;
    }
}

#[cfg(test)]
mod tests;

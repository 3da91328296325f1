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
    /// Its capacity units: one without weights.
    pub weight: u32,
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
    /// How many capacity units: instances, without weights.
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
    let outgoing: Vec<&Member> = members.iter().filter(|member| member.outgoing).collect();
    let mut plan = Plan::default();
    let serving = units(staying.iter().filter(|member| member.serves)) + units(&outgoing);
    let mut spare = serving.saturating_sub(desired);
    for member in &outgoing {
        if member.weight <= spare {
            spare -= member.weight;
            plan.replaced.push(member.id);
        }
    }
    let size = units(&staying);
    if size < desired {
        let most = if outgoing.is_empty() { spec.max } else { spec.max + spec.margin() };
        let room = most.saturating_sub(size + units(&outgoing));
        launch(spec, desired, &staying, (desired - size).min(room), refuses, &mut plan);
    } else if size > desired {
        plan.surplus = surplus(spec, desired, staying, size - desired);
    } else if spec.zone_rebalance && outgoing.is_empty() && staying.iter().all(|member| member.serves) {
        balance(spec, desired, &staying, refuses, &mut plan);
    }
    plan
}

/// Capacity units of members.
fn units<'m>(members: impl IntoIterator<Item = &'m &'m Member>) -> u32 {
    members.into_iter().map(|member| member.weight).sum()
}

/// Capacity units by zone; zones of the group without an instance count too.
fn by_zone(spec: &GroupSpec, members: &[&Member]) -> BTreeMap<Symbol, u32> {
    let mut counts: BTreeMap<Symbol, u32> = spec.zones.iter().map(|&zone| (zone, 0)).collect();
    for member in members {
        *counts.entry(member.zone).or_insert(0) += member.weight;
    }
    counts
}

/// Spreads what is missing over the zones: each instance goes to the zone with the fewest, ties by name.
///
/// With weights, it plans for one zone, and at most as much as the largest instance: how much follows depends on the types that this
/// launch brings. So the group exceeds its size by less than the largest weight.
///
/// Source: EC2 Auto Scaling user guide, instance weights: zones and allocation strategies take precedence over avoiding overage.
fn launch(
    spec: &GroupSpec,
    desired: u32,
    staying: &[&Member],
    missing: u32,
    refuses: &dyn Fn(Symbol, bool) -> bool,
    plan: &mut Plan,
) {
    let mut counts = by_zone(spec, staying);
    let on_demand = units(staying.iter().filter(|member| !member.spot));
    let on_demand = spec.distribution.on_demand_of(desired).saturating_sub(on_demand).min(missing);
    for (spot, mut count) in [(false, on_demand), (true, missing - on_demand)] {
        while count > 0 {
            let open = counts.iter_mut().filter(|(zone, _)| spec.zones.contains(zone) && !refuses(**zone, spot));
            let Some((&zone, held)) = open.min_by_key(|(zone, held)| (**held, **zone)) else {
                plan.blocked = true;
                break;
            };
            if spec.is_weighted() {
                plan.launches.push(LaunchBatch { zone, spot, count: count.min(spec.largest_weight()) });
                return;
            }
            *held += 1;
            count -= 1;
            match plan.launches.iter_mut().find(|batch| batch.zone == zone && batch.spot == spot) {
                Some(batch) => batch.count += 1,
                None => plan.launches.push(LaunchBatch { zone, spot, count: 1 }),
            }
        }
    }
}

/// The instances that the default termination policy ends, one after the other.
///
/// Assumption: an instance whose end would leave the group below its desired size stays, and the next one goes. AWS says only that the
/// capacity is never below the desired one.
fn surplus(spec: &GroupSpec, desired: u32, mut staying: Vec<&Member>, mut excess: u32) -> Vec<InstanceId> {
    let mut chosen = Vec::new();
    while let Some(next) = victim(spec, desired, &staying, (None, excess)) {
        staying.retain(|member| member.id != next.id);
        chosen.push(next.id);
        excess -= next.weight;
    }
    chosen
}

/// The instance that the default termination policy ends first: of the zone with the most instances (among those with one
/// that is not protected), of the kind (On-Demand or Spot) of which there are too many, the one that the allocation
/// strategy would rather do without, then one of an older launch template, then the one closest to its next full hour. Only instances of
/// at most `most` capacity units go.
fn victim<'m>(
    spec: &GroupSpec,
    desired: u32,
    members: &[&'m Member],
    (zone, most): (Option<Symbol>, u32),
) -> Option<&'m Member> {
    let can_go = |member: &&&Member| !member.protected && member.weight <= most;
    let counts = by_zone(spec, members);
    let open = |zone: Symbol| members.iter().filter(can_go).any(|member| member.zone == zone);
    let crowded = || {
        let zones = counts.iter().filter(|(zone, _)| open(**zone));
        // The greatest count; among equals the zone that comes first by name.
        zones.max_by_key(|(zone, count)| (**count, std::cmp::Reverse(**zone))).map(|(&zone, _)| zone)
    };
    let zone = zone.or_else(crowded)?;
    let of_zone = || members.iter().filter(can_go).filter(|member| member.zone == zone);
    let on_demand = units(members.iter().filter(|member| !member.spot));
    let too_many_spot = on_demand <= spec.distribution.on_demand_of(desired);
    let has_kind = of_zone().any(|member| member.spot == too_many_spot);
    of_zone()
        .filter(|member| !has_kind || member.spot == too_many_spot)
        .max_by_key(|member| (member.misfit, member.outdated, member.into_hour, std::cmp::Reverse(member.id)))
        .copied()
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
    let Some(chosen) = victim(spec, desired, staying, (Some(zone), u32::MAX)) else { return };
    // A move that makes the other zone as crowded helps nothing.
    if least + chosen.weight >= most {
        return;
    }
    let takes = |zone: &&Symbol| counts[*zone] + chosen.weight < most && !refuses(**zone, chosen.spot);
    if spec.zones.iter().any(|zone| takes(&zone)) {
        plan.misplaced = Some(chosen.id);
    } else {
        plan.blocked = true;
    }
}

#[cfg(test)]
mod tests;

//! The instance refresh of an Auto Scaling group: batches of instances end, the group launches others, and each batch waits for its warm-up.
//!
//! Nothing drains: pods end with their instance, and budgets do not count.
//!
//! Source: EC2 Auto Scaling user guide, instance refresh (2023-06). Assumptions: the oldest instances go first, and a refresh without progress for
//! an hour fails.

use super::{NodeGroups, Upkeep, update};
use crate::actors::event::{GroupEvent, class};
use crate::actors::sim::Sim;
use crate::domain::node_group::InstanceRefresh;
use crate::domain::{SimDuration, SimTime};
use crate::world::record::UpgradeWay;

/// Between two checks of a refresh.
const POLL: SimDuration = SimDuration::from_secs(1);
/// Longest time without progress.
const PATIENCE: SimDuration = SimDuration::from_secs(3_600);

/// A refresh in progress.
#[derive(Debug)]
pub(in crate::actors) struct Refresh {
    preferences: InstanceRefresh,
    /// Instances to replace, and those replaced so far.
    total: u32,
    replaced: u32,
    /// Those replaced before the last batch.
    earlier: u32,
    /// Position in the record.
    position: usize,
    /// When the last batch began.
    since: SimTime,
    /// When the group had all its instances in service after the last batch.
    full: Option<SimTime>,
}

/// Somebody starts a refresh.
pub(in crate::actors) fn begin(
    sim: &mut Sim<'_>,
    node_groups: &mut NodeGroups,
    now: SimTime,
    preferences: &InstanceRefresh,
) {
    let Some(group) = sim.groups.position(preferences.group) else { return };
    let name = preferences.group;
    if node_groups.upkeep.contains_key(&group) {
        sim.world.note_unmet(now, format!("EC2 rejects the instance refresh of {name}: another one is in progress"));
        return;
    }
    let former = node_groups.releases[group];
    let release = preferences.release.unwrap_or(former);
    let position = sim.world.begin_upgrade(name, UpgradeWay::Refresh, now, &update::target(release, None));
    if !preferences.skip_matching || release != former {
        sim.groups.renew_template(group);
    }
    node_groups.releases[group] = release;
    let total = sim.groups.instances(group, true).len() as u32;
    let refresh = Refresh {
        preferences: preferences.clone(),
        total,
        replaced: 0,
        earlier: 0,
        position,
        since: now,
        full: Some(now),
    };
    node_groups.upkeep.insert(group, Upkeep::Refresh(refresh));
    sim.queue.schedule_in(SimDuration::ZERO, class::CLOUD, GroupEvent::GroupUpkeep(group as u32));
}

/// A refresh proceeds; whether it has ended.
pub(super) fn proceed(sim: &mut Sim<'_>, now: SimTime, group: usize, refresh: &mut Refresh) -> bool {
    let desired = sim.groups.desired(group);
    if refresh.full.is_none() && sim.groups.counts(group).0 >= desired {
        refresh.full = Some(now);
    }
    match refresh.full {
        Some(full) if now - full >= refresh.pause() => {
            if sim.groups.instances(group, true).is_empty() {
                sim.world.end_upgrade(refresh.position, now, None);
                return true;
            }
            end_batch(sim, now, group, refresh, desired);
        }
        None if now - refresh.since >= PATIENCE => {
            let why = Some(("Failed", "the group lacks instances for an hour".to_owned()));
            sim.world.end_upgrade(refresh.position, now, why);
            return true;
        }
        _ => {}
    }
    sim.queue.schedule_in(POLL, class::CLOUD, GroupEvent::GroupUpkeep(group as u32));
    false
}

/// Ends the next batch.
fn end_batch(sim: &mut Sim<'_>, now: SimTime, group: usize, refresh: &mut Refresh, desired: u32) {
    let most = u64::from(desired) * u64::from(100 - refresh.preferences.min_healthy) / 100;
    refresh.earlier = refresh.replaced;
    let mut units = 0;
    for node in update::nodes(sim, group, true) {
        let weight = sim.machine(node).map_or(1, |machine| u64::from(sim.groups.weight(machine.instance)));
        if units > 0 && units + weight > most {
            break;
        }
        units += weight;
        update::disrupt(sim, now, node, "an instance refresh of its node group replaces it");
        if sim.terminate_in_group(now, node, false).is_ok() {
            refresh.replaced += 1;
        }
    }
    (refresh.since, refresh.full) = (now, None);
}

impl Refresh {
    /// From the last batch in service to the next one.
    fn pause(&self) -> SimDuration {
        if self.replaced == 0 {
            return SimDuration::ZERO;
        }
        let done = |replaced: u32, percent: u32| replaced * 100 >= percent * self.total;
        let is_last = |percent: &u32| done(self.replaced, *percent) && !done(self.earlier, *percent);
        let waits = self.preferences.checkpoints.iter().any(is_last);
        let delay = if waits { self.preferences.checkpoint_delay } else { SimDuration::ZERO };
        self.preferences.warm_up.max(delay)
    }
}

//! The update of a managed group to another release or machine image, in the four phases of EKS: set-up, scale-up, upgrade, and scale-down.
//!
//! Source: EKS user guide, `nodegroups/managed-node-update-behavior.adoc` (0bfeeaf). Assumptions: set-up takes 30 seconds, the scale-up at least 5
//! minutes, a new node has 15 minutes to become Ready, the next batch begins 60 seconds after the replacements of the last one are Ready, two steps
//! of the scale-down are 60 seconds apart, and after a failed drain the additional nodes stay. Measured: 25 to 30 minutes for a group of 2 or 3
//! nodes in three zones, new nodes within 5 to 6 minutes (aws/containers-roadmap issue 1560).
//!
//! Deviation: old nodes stay in the target groups of load balancers until they are drained.

use super::drain::evict_pods;
use super::{NodeGroups, Upkeep, member};
use crate::actors::actor_events::ActorEvent;
use crate::actors::event::{GroupEvent, class};
use crate::actors::kubelet;
use crate::actors::sim::Sim;
use crate::cluster::NodePhase;
use crate::domain::node_group::{UpdateStrategy, VersionUpdate};
use crate::domain::taints::TaintEffect;
use crate::domain::{KubernetesVersion, NodeId, SimDuration, SimTime, Symbol, Taint, well_known};
use crate::world::record::{EventKind, NodeEnd, UpgradeWay};

/// Between two checks of an update.
const POLL: SimDuration = SimDuration::from_secs(5);
/// Set-up: EKS makes a version of the launch template.
const SET_UP: SimDuration = SimDuration::from_secs(30);
/// Least length of the scale-up.
const SCALE_UP: SimDuration = SimDuration::from_secs(5 * 60);
/// From the replacements of a batch being Ready to the next batch.
const BETWEEN_BATCHES: SimDuration = SimDuration::from_secs(60);
/// Longest drain of a node.
const DRAIN_LIMIT: SimDuration = SimDuration::from_secs(15 * 60);
/// From the eviction of a node's last pod to its termination.
const AFTER_DRAIN: SimDuration = SimDuration::from_secs(60);
/// Longest wait for a new Ready node.
const READY_LIMIT: SimDuration = SimDuration::from_secs(15 * 60);
/// Between two steps of the scale-down.
const STEP_DOWN: SimDuration = SimDuration::from_secs(60);

/// An update in progress.
#[derive(Debug)]
pub(in crate::actors) struct Update {
    force: bool,
    strategy: UpdateStrategy,
    /// Nodes that are drained at a time.
    batch: u32,
    /// Smallest, largest, and desired size before.
    before: (u32, u32, u32),
    /// The desired size that the update has set last.
    desired: u32,
    /// The launch template and the release before.
    former: (u32, KubernetesVersion),
    /// The release of new nodes.
    release: KubernetesVersion,
    /// Position in the record.
    position: usize,
    phase: Phase,
    batches: u64,
}

#[derive(Debug)]
enum Phase {
    SetUp,
    /// New nodes come: those Ready at the last progress, when that was, and when the phase began.
    ScaleUp(u32, SimTime, SimTime),
    /// Old nodes leave, in batches; when the present batch began, and when its replacements were Ready.
    Upgrade(Vec<Leaving>, SimTime, Option<SimTime>),
    /// The group shrinks; when it last had its size.
    ScaleDown(Option<SimTime>),
}

/// An old node of the present batch.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    node: NodeId,
    /// When its last pod was gone.
    empty: Option<SimTime>,
    /// Whether its remaining pods have been deleted.
    forced: bool,
    /// Whether its termination has been requested.
    ended: bool,
}

/// The end of an update: why it fails, if it does.
type End = Option<(&'static str, String)>;

/// Somebody requests an update.
pub(in crate::actors) fn begin(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, wanted: VersionUpdate) {
    let Some(group) = sim.groups.position(wanted.group) else { return };
    let former = node_groups.releases[group];
    let release = wanted.release.unwrap_or(former);
    if let Some(why) = refusal(sim, node_groups, group, release) {
        sim.world.note_unmet(now, format!("EKS rejects the update of node group {}: {why}", wanted.group));
        return;
    }
    let config = node_groups.stated[group].update_config;
    let way = match config.strategy {
        UpdateStrategy::Default => UpgradeWay::Default,
        UpdateStrategy::Minimal => UpgradeWay::Minimal,
    };
    let to = target(release, wanted.image);
    let position = sim.world.begin_upgrade(wanted.group, way, now, &to);
    let (desired, (min, max)) = (sim.groups.desired(group), sim.groups.limits(group));
    let update = Update {
        force: wanted.force,
        strategy: config.strategy,
        batch: config.max_unavailable.nodes(desired),
        before: (min, max, desired),
        desired,
        former: (0, former),
        release,
        position,
        phase: Phase::SetUp,
        batches: 0,
    };
    node_groups.upkeep.insert(group, Upkeep::Update(update));
    sim.queue.schedule_in(SET_UP, class::CLOUD, GroupEvent::GroupUpkeep(group as u32));
}

/// The release and the image of new nodes, for people.
pub(super) fn target(release: KubernetesVersion, image: Option<Symbol>) -> String {
    image.map_or_else(|| format!(" to {release}"), |image| format!(" to {release}, {image}"))
}

/// Why EKS rejects an update.
fn refusal(sim: &Sim<'_>, node_groups: &NodeGroups, group: usize, release: KubernetesVersion) -> Option<String> {
    if node_groups.upkeep.contains_key(&group) {
        return Some("another one is in progress".to_owned());
    }
    let newest = sim.control_plane;
    (release > newest).then(|| format!("{release} is newer than the control plane ({newest})"))
}

/// An update proceeds; whether it has ended.
pub(super) fn proceed(
    sim: &mut Sim<'_>,
    node_groups: &mut NodeGroups,
    now: SimTime,
    group: usize,
    update: &mut Update,
) -> bool {
    let ended = match &mut update.phase {
        Phase::SetUp => set_up(sim, node_groups, now, group, update),
        Phase::ScaleUp(..) => scale_up(sim, node_groups, now, group, update),
        Phase::Upgrade(..) => upgrade(sim, now, group, update),
        Phase::ScaleDown(..) => scale_down(sim, node_groups, now, group, update),
    };
    match ended {
        Some(end) => sim.world.end_upgrade(update.position, now, end),
        None => {
            sim.queue.schedule_in(POLL, class::CLOUD, GroupEvent::GroupUpkeep(group as u32));
            return false;
        }
    }
    true
}

/// The group takes the new launch template and, unless the strategy is `MINIMAL`, grows: by two nodes per zone or by a batch.
fn set_up(
    sim: &mut Sim<'_>,
    node_groups: &mut NodeGroups,
    now: SimTime,
    group: usize,
    update: &mut Update,
) -> Option<End> {
    update.former.0 = sim.groups.renew_template(group);
    node_groups.releases[group] = update.release;
    if update.strategy == UpdateStrategy::Minimal {
        update.phase = Phase::Upgrade(Vec::new(), now, Some(now - BETWEEN_BATCHES));
        return None;
    }
    let zones = sim.groups.spec(group).zones.len();
    let more = node_groups.stated[group].update_config.surge(update.before.2, zones);
    advance(sim, now, group, &format!("{more} additional nodes"));
    resize(sim, node_groups, now, group, update, i64::from(more));
    update.phase = Phase::ScaleUp(0, now, now);
    None
}

/// Raises or lowers the desired and the largest size alike.
fn resize(
    sim: &mut Sim<'_>,
    node_groups: &mut NodeGroups,
    now: SimTime,
    group: usize,
    update: &mut Update,
    change: i64,
) {
    let (min, max) = sim.groups.limits(group);
    update.desired = update.desired.saturating_add_signed(change as i32);
    let max = max.saturating_add_signed(change as i32);
    node_groups.set_sizes(sim, group, (min, max), update.desired);
    node_groups.wake(sim, now, group);
}

/// Every zone has a new Ready node: the old nodes take no more pods.
fn scale_up(
    sim: &mut Sim<'_>,
    node_groups: &mut NodeGroups,
    now: SimTime,
    group: usize,
    update: &mut Update,
) -> Option<End> {
    let (new, old) = (ready_zones(sim, group, false), ready_zones(sim, group, true));
    let Phase::ScaleUp(ready, since, began) = &mut update.phase else { return None };
    if now - *began >= SCALE_UP && covers_zones(&sim.groups.spec(group).zones, (&new, &old), update.desired) {
        for node in nodes(sim, group, true) {
            cordon(sim, node);
        }
        advance(sim, now, group, "the old nodes are cordoned");
        update.phase = Phase::Upgrade(Vec::new(), now, Some(now - BETWEEN_BATCHES));
        return None;
    }
    if new.len() as u32 > *ready {
        (*ready, *since) = (new.len() as u32, now);
    }
    if now - *since < READY_LIMIT {
        return None;
    }
    roll_back(sim, node_groups, now, group, update);
    Some(Some(("NodeCreationFailure", "no new node became Ready for 15 minutes; the update is rolled back".to_owned())))
}

/// Whether every zone has a new Ready node. One that had more nodes than others gets none, and needs none.
fn covers_zones(zones: &[Symbol], (new, old): (&[Symbol], &[Symbol]), desired: u32) -> bool {
    let count = |zone: &Symbol| new.iter().chain(old).filter(|item| *item == zone).count();
    let most = zones.iter().map(count).max().unwrap_or(0);
    let is_full = (new.len() + old.len()) as u32 >= desired;
    zones.iter().all(|zone| new.contains(zone) || is_full && count(zone) == most)
}

/// The group returns to its launch template and its size.
fn roll_back(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, group: usize, update: &Update) {
    let (min, max, desired) = update.before;
    let (template, release) = update.former;
    sim.groups.restore_template(group, template);
    node_groups.releases[group] = release;
    node_groups.set_sizes(sim, group, (min, max), desired);
    node_groups.wake(sim, now, group);
}

/// Old nodes leave, batch by batch.
fn upgrade(sim: &mut Sim<'_>, now: SimTime, group: usize, update: &mut Update) -> Option<End> {
    let Phase::Upgrade(batch, since, replaced) = &mut update.phase else { return None };
    for leaving in batch.iter_mut().filter(|leaving| !leaving.ended) {
        if drain(sim, now, leaving, (*since, update.force)) {
            let node = sim.world.node(leaving.node).name;
            return Some(Some(("PodEvictionFailure", format!("{node} still has pods after 15 minutes"))));
        }
    }
    if batch.iter().any(|leaving| !leaving.ended || member(sim, leaving.node).is_some()) {
        return None;
    }
    let serving = sim.groups.counts(group).0;
    if serving < update.desired.min(sim.groups.desired(group)) {
        let late = now - *since >= DRAIN_LIMIT + AFTER_DRAIN + READY_LIMIT;
        return late.then(|| Some(("NodeCreationFailure", "a replacement did not become Ready".to_owned())));
    }
    if now - *replaced.get_or_insert(now) < BETWEEN_BATCHES {
        return None;
    }
    let old = nodes(sim, group, true);
    if old.is_empty() {
        advance(sim, now, group, "no old node is left");
        update.phase = Phase::ScaleDown(None);
        return None;
    }
    let joined = old.into_iter().filter(|&node| sim.world.node(node).phase == NodePhase::Registered).collect();
    update.batches += 1;
    let chosen = choose(sim, group, update.batches, joined, update.batch);
    for &node in &chosen {
        cordon(sim, node);
        sim.world.note_node(node, now, EventKind::GroupUpdateAdvanced, "its drain for the update begins");
    }
    let leave = |node| Leaving { node, empty: None, forced: false, ended: false };
    update.phase = Phase::Upgrade(chosen.into_iter().map(leave).collect(), now, None);
    upgrade_now(sim, now, update)
}

/// The first evictions of a batch.
fn upgrade_now(sim: &mut Sim<'_>, now: SimTime, update: &mut Update) -> Option<End> {
    let Phase::Upgrade(batch, since, _) = &mut update.phase else { return None };
    for leaving in batch {
        drain(sim, now, leaving, (*since, update.force));
    }
    None
}

/// Evicts what has to leave, and terminates the node a minute after it is empty; whether the time is over.
fn drain(sim: &mut Sim<'_>, now: SimTime, leaving: &mut Leaving, (since, force): (SimTime, bool)) -> bool {
    let node = leaving.node;
    if sim.world.node(node).phase > NodePhase::Registered {
        leaving.ended = true;
        return false;
    }
    if let Some(empty) = leaving.empty {
        if now - empty >= AFTER_DRAIN {
            disrupt(sim, now, node, "an update of its node group replaces it");
            leaving.ended = sim.terminate_in_group(now, node, false).is_ok();
        }
        return false;
    }
    let remaining = evict_pods(sim, now, node, "its node group is being updated");
    if remaining.is_empty() {
        leaving.empty = Some(now);
        return false;
    }
    if now - since < DRAIN_LIMIT {
        return false;
    }
    if force && !leaving.forced {
        leaving.forced = true;
        for pod in remaining {
            kubelet::delete(sim, now, pod, true, "the update of its node group is forced");
        }
    }
    !force
}

/// Lowers the group by one node at a time to its size before. Ends at once if somebody else has raised it.
fn scale_down(
    sim: &mut Sim<'_>,
    node_groups: &mut NodeGroups,
    now: SimTime,
    group: usize,
    update: &mut Update,
) -> Option<End> {
    let (min, max, before) = update.before;
    let desired = sim.groups.desired(group);
    if desired > update.desired {
        return Some(None);
    }
    if desired < update.desired {
        // Somebody else shrinks the group, too.
        let further = i64::from(desired) - i64::from(update.desired);
        resize(sim, node_groups, now, group, update, further);
    }
    if update.desired <= before {
        let has_size = sim.groups.counts(group).1 <= update.desired;
        if has_size {
            node_groups.set_sizes(sim, group, (min, max), update.desired);
        }
        return has_size.then_some(None);
    }
    if sim.groups.counts(group).1 > update.desired {
        return None;
    }
    let Phase::ScaleDown(since) = &mut update.phase else { return None };
    let since = *since.get_or_insert(now);
    if now - since >= STEP_DOWN {
        update.phase = Phase::ScaleDown(None);
        resize(sim, node_groups, now, group, update, -1);
    }
    None
}

/// Old nodes at random.
fn choose(sim: &Sim<'_>, group: usize, batch: u64, mut old: Vec<NodeId>, count: u32) -> Vec<NodeId> {
    let name = sim.groups.spec(group).name;
    let mut stream = sim.streams.nth("group-update", name.as_str(), batch);
    let count = (count as usize).min(old.len());
    for place in 0..count {
        let rest = (old.len() - place) as u64;
        old.swap(place, place + (stream.word() % rest) as usize);
    }
    old.truncate(count);
    old
}

/// The nodes of a group that are there, of the present launch template or of others.
pub(super) fn nodes(sim: &Sim<'_>, group: usize, outdated: bool) -> Vec<NodeId> {
    let all = sim.groups.instances(group, outdated).into_iter().map(|instance| sim.ec2.instance(instance).node);
    all.filter(|&node| sim.world.node(node).phase < NodePhase::Terminating).collect()
}

/// The zone of each Ready node of a group.
fn ready_zones(sim: &Sim<'_>, group: usize, outdated: bool) -> Vec<Symbol> {
    let ready = nodes(sim, group, outdated).into_iter().filter(|&node| sim.world.node(node).ready);
    ready.filter_map(|node| sim.world.node(node).labels.get(well_known::ZONE)).collect()
}

/// The removal of a node is decided.
pub(super) fn disrupt(sim: &mut Sim<'_>, now: SimTime, node: NodeId, why: &str) {
    if sim.world.node(node).deletion_requested.is_none() {
        sim.world.disrupt_node(node, NodeEnd::Updated, now, why);
    }
}

fn cordon(sim: &mut Sim<'_>, node: NodeId) {
    let taint = Taint::new(well_known::TAINT_UNSCHEDULABLE, TaintEffect::NoSchedule);
    let state = sim.world.node(node);
    if state.phase == NodePhase::Registered && !state.taints.contains(&taint) {
        sim.world.taint_node(node, taint);
        sim.publish(ActorEvent::NodeTainted(node));
    }
}

fn advance(sim: &mut Sim<'_>, now: SimTime, group: usize, what: &str) {
    let name = sim.groups.spec(group).name;
    sim.world.note(now, EventKind::GroupUpdateAdvanced, None, format!("{name}: {what}"));
}

//! Auto Scaling groups: each keeps as many instances as desired, spread over its zones, and replaces those it loses.
//!
//! A group acts by itself, a while after something has changed: [`AutoScaling::act`] launches what is missing and names
//! the instances to terminate. Whoever runs the clock lets it act when [`AutoScaling::reaction`] has passed, tells it when
//! instances serve, are at risk or are gone, and ends the instances that it names (a managed node group's after a drain).
//!
//! What must not live here: Kubernetes nodes and their drain (`actors`).
//!
//! Source: EC2 Auto Scaling user guide and API reference. How fast a group reacts is an assumption after published
//! timelines.

mod activity;
mod calls;
mod launch;
mod plan;
mod refusals;
mod spec;
mod templates;
mod warm_pool;

#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

pub use activity::{Activity, ActivityStatus};
pub use calls::{GroupInstance, GroupView};
pub use plan::{LaunchBatch, Member, Plan, plan};
pub use spec::GroupSpec;
pub use warm_pool::WarmStart;

use super::settings::Times;
use super::{Ec2, InstanceId};
use activity::Activity as Log;
use nodecast_engine::Streams;
use nodecast_model::domain::{HourlyRate, NodeId, SimDuration, SimTime, Symbol, well_known};
use refusals::Refusals;
use warm_pool::WarmMember;

/// Median and spread of the time from a change to the group acting on it, in seconds.
const REACTION: (f64, f64) = (6.0, 0.5);
/// A running instance is in service within this time.
const IN_SERVICE: SimDuration = SimDuration::from_secs(15);
/// A health check notices within this time that an instance is gone.
const HEALTH_CHECK: SimDuration = SimDuration::from_secs(60);

/// The Auto Scaling groups of one account.
#[derive(Debug)]
pub struct AutoScaling {
    groups: Vec<Group>,
    group_of: FxHashMap<InstanceId, usize>,
    times: Times,
    streams: Streams,
}

/// How far an instance of a group has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LifecycleState {
    /// Launched, not in service yet.
    Pending,
    /// In service.
    InService,
    /// About to be terminated: a lifecycle hook may hold it, for example while its node drains.
    Terminating,
}

/// Why a group ends an instance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EndReason {
    /// There are more than desired.
    ScaleIn,
    /// It was at risk of interruption, and its replacement serves.
    CapacityRebalance,
    /// Its zone had more than others, and its replacement serves.
    ZoneRebalance,
    /// Its status checks failed.
    Unhealthy,
    /// Somebody asked for the end of this very instance.
    Requested,
}

/// What a group has done, and what it wants done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Acted {
    /// Instances launched, in order of their nodes.
    pub launched: Vec<InstanceId>,
    /// Instances to terminate.
    pub terminate: Vec<(InstanceId, EndReason)>,
    /// Messages of launches that failed.
    pub failures: Vec<String>,
    /// When it acts again if nothing happens until then.
    pub again: Option<SimTime>,
}

#[derive(Debug)]
struct Group {
    spec: GroupSpec,
    desired: u32,
    members: Vec<MemberState>,
    refusals: Refusals,
    activities: Vec<Log>,
    reactions: u64,
    /// The version of the launch template that new instances have, and the newest one.
    template: u32,
    newest_template: u32,
    /// Instances of the warm pool, and how many were launched into it.
    warm: Vec<WarmMember>,
    warm_launches: u64,
}

/// An instance that a group holds.
#[derive(Clone, Copy, Debug)]
struct MemberState {
    id: InstanceId,
    state: LifecycleState,
    serves: bool,
    protected: bool,
    outgoing: Option<EndReason>,
    /// The version of the launch template that it was launched from.
    template: u32,
    /// Its capacity units.
    weight: u32,
    /// How it left the warm pool; `None` if it was launched cold.
    warm: Option<WarmStart>,
    /// Whether scale-in ends it, so that it may return to the warm pool.
    returns: bool,
    /// Position of the activity that is going on for it.
    activity: Option<usize>,
}

impl AutoScaling {
    /// Groups without instances, each with its desired size, that take these times where they are stated.
    pub fn new(groups: impl IntoIterator<Item = (GroupSpec, u32)>, times: Times, streams: Streams) -> Self {
        let group = |(spec, desired)| Group {
            spec,
            desired,
            members: Vec::new(),
            refusals: Refusals::default(),
            activities: Vec::new(),
            reactions: 0,
            template: 0,
            newest_template: 0,
            warm: Vec::new(),
            warm_launches: 0,
        };
        Self { groups: groups.into_iter().map(group).collect(), group_of: FxHashMap::default(), times, streams }
    }

    /// The position of the group called `name`.
    pub fn position(&self, name: Symbol) -> Option<usize> {
        self.groups.iter().position(|group| group.spec.name == name)
    }

    /// The group that an instance belongs to.
    pub fn group_of(&self, instance: InstanceId) -> Option<usize> {
        self.group_of.get(&instance).copied()
    }

    /// What the group was told when it was created.
    pub fn spec(&self, group: usize) -> &GroupSpec {
        &self.groups[group].spec
    }

    /// How many capacity units the group is to have: instances, without weights.
    pub fn desired(&self, group: usize) -> u32 {
        self.groups[group].desired
    }

    /// Sets the limits of a group and the size that it is to have; it acts on that later.
    pub fn update(&mut self, group: usize, (min, max): (u32, u32), desired: u32) {
        let group = &mut self.groups[group];
        (group.spec.min, group.spec.max) = (min, max);
        group.desired = desired;
    }

    /// Capacity units of the instances that are not being terminated.
    pub fn size(&self, group: usize) -> u32 {
        let members = &self.groups[group].members;
        members.iter().filter(|held| held.state != LifecycleState::Terminating).map(|held| held.weight).sum()
    }

    /// Capacity units of an instance of a group.
    pub fn weight(&self, instance: InstanceId) -> u32 {
        self.held(instance).map_or(1, |held| held.weight)
    }

    /// The place of an instance that the group has had since before the simulation, after `number` others with `units` capacity units: its
    /// zone, and whether it is Spot; `None` if the group has its size.
    pub fn first_place(&self, group: usize, number: usize, units: u32) -> Option<(Symbol, bool)> {
        let group = &self.groups[group];
        let zone = *group.spec.zones.get(number.checked_rem(group.spec.zones.len())?)?;
        (units < group.desired).then(|| (zone, units >= group.spec.distribution.on_demand_of(group.desired)))
    }

    /// How long the group takes to act on the next change.
    pub fn reaction(&mut self, group: usize) -> SimDuration {
        let group = &mut self.groups[group];
        group.reactions += 1;
        let mut stream = self.streams.nth("asg-reaction", group.spec.name.as_str(), group.reactions);
        let drawn = SimDuration::from_secs_f64(stream.lognormal(REACTION.0, REACTION.1));
        self.times.group_reaction.unwrap_or(drawn)
    }

    /// How long after it runs an instance is in service.
    pub fn time_to_service(&self, instance: InstanceId) -> SimDuration {
        let drawn = || self.streams.nth("asg-in-service", "instance", u64::from(instance.0)).span_up_to(IN_SERVICE);
        self.times.group_in_service.unwrap_or_else(drawn)
    }

    /// How long after it is gone a health check notices the loss of an instance.
    pub fn time_to_notice(&self, instance: InstanceId) -> SimDuration {
        let drawn = || self.streams.nth("asg-health", "instance", u64::from(instance.0)).span_up_to(HEALTH_CHECK);
        self.times.group_health_check.unwrap_or_else(drawn)
    }

    /// Takes in an instance that has been in service since before the simulation began.
    pub fn adopt(&mut self, group: usize, instance: InstanceId, ec2: &Ec2) {
        self.group_of.insert(instance, group);
        let group = &mut self.groups[group];
        group.members.push(MemberState {
            id: instance,
            state: LifecycleState::InService,
            serves: true,
            protected: false,
            outgoing: None,
            template: group.template,
            weight: group.spec.weight(ec2.instance(instance).pool.instance_type),
            warm: None,
            returns: false,
            activity: None,
        });
    }

    /// The group compares what it has with what it should have: it launches what is missing, for nodes from `first_node`
    /// on, and names what is to be terminated. Named instances are already counted as leaving.
    pub fn act(&mut self, group: usize, ec2: &mut Ec2, first_node: NodeId, now: SimTime) -> Acted {
        let mut acted = Acted::default();
        let mut plan = self.plan(group, ec2, now);
        if let Some(instance) = plan.misplaced {
            self.mark_outgoing(instance, EndReason::ZoneRebalance);
            plan = self.plan(group, ec2, now);
        }
        for instance in plan.surplus.iter().copied() {
            acted.terminate.push((instance, EndReason::ScaleIn));
        }
        for instance in plan.replaced.iter().copied() {
            let reason = self.held(instance).and_then(|held| held.outgoing).unwrap_or(EndReason::CapacityRebalance);
            acted.terminate.push((instance, reason));
        }
        self.launch(group, ec2, &plan.launches, first_node, now, &mut acted);
        while self.groups[group].spec.is_weighted() && !plan.launches.is_empty() && acted.failures.is_empty() {
            plan = self.plan(group, ec2, now);
            self.launch(group, ec2, &plan.launches, first_node, now, &mut acted);
        }
        let blocked = plan.blocked;
        for &(instance, reason) in &acted.terminate {
            self.begin_end(instance, reason, now);
        }
        if !acted.failures.is_empty() {
            // A zone that refused gets no instance of another zone in exchange.
            for held in &mut self.groups[group].members {
                held.outgoing = held.outgoing.filter(|reason| *reason != EndReason::ZoneRebalance);
            }
        }
        acted.again = self.next_attempt(group, ec2, blocked || !acted.failures.is_empty(), now);
        acted
    }

    /// When the group acts again of its own accord: soon if another zone may deliver what a zone refused, else when the
    /// first zone has had its pause.
    fn next_attempt(&mut self, group: usize, ec2: &mut Ec2, unsatisfied: bool, now: SimTime) -> Option<SimTime> {
        if !unsatisfied {
            return None;
        }
        let next = self.plan(group, ec2, now);
        if !next.launches.is_empty() || next.misplaced.is_some() {
            return Some(now + self.reaction(group));
        }
        self.groups[group].refusals.next_end(now).filter(|_| next.blocked)
    }

    fn plan(&self, group: usize, ec2: &mut Ec2, now: SimTime) -> Plan {
        let group = &self.groups[group];
        let staying = group.members.iter().filter(|held| held.state != LifecycleState::Terminating);
        let members: Vec<Member> = staying.map(|held| member(group, held, ec2, now)).collect();
        plan(&group.spec, group.desired, &members, &|zone, spot| group.refusals.holds(zone, spot, now))
    }

    fn held(&self, instance: InstanceId) -> Option<&MemberState> {
        let group = &self.groups[self.group_of(instance)?];
        group.members.iter().find(|held| held.id == instance)
    }

    fn held_mut(&mut self, instance: InstanceId) -> Option<(&mut MemberState, &mut Vec<Log>)> {
        let group = &mut self.groups[*self.group_of.get(&instance)?];
        let held = group.members.iter_mut().find(|held| held.id == instance)?;
        Some((held, &mut group.activities))
    }

    fn mark_outgoing(&mut self, instance: InstanceId, reason: EndReason) {
        if let Some((held, _)) = self.held_mut(instance) {
            held.outgoing = held.outgoing.or(Some(reason));
        }
    }

    /// The instance is in service.
    pub fn enter_service(&mut self, instance: InstanceId, now: SimTime) {
        let Some((held, activities)) = self.held_mut(instance) else { return };
        if held.state != LifecycleState::Pending {
            return;
        }
        held.state = LifecycleState::InService;
        close(activities, held.activity.take(), now);
    }

    /// The instance does its work: it is in service, and for a managed node group its node is Ready.
    pub fn serves(&mut self, instance: InstanceId) {
        if let Some((held, _)) = self.held_mut(instance) {
            held.serves = true;
        }
    }

    /// EC2 recommends to replace the instance; returns whether the group will.
    pub fn recommend_rebalance(&mut self, instance: InstanceId) -> bool {
        let rebalances = self.group_of(instance).is_some_and(|group| self.groups[group].spec.capacity_rebalance);
        if rebalances {
            self.mark_outgoing(instance, EndReason::CapacityRebalance);
        }
        rebalances
    }

    /// Whether the group has decided to end the instance.
    pub fn is_ending(&self, instance: InstanceId) -> bool {
        self.held(instance).is_some_and(|held| held.state == LifecycleState::Terminating)
    }

    /// Sets whether the instance is protected from scale-in and rebalancing between zones.
    pub fn protect(&mut self, instance: InstanceId, protected: bool) {
        if let Some((held, _)) = self.held_mut(instance) {
            held.protected = protected;
        }
    }

    /// Whether its group ends an unhealthy instance now: at most 10% of the desired size are out of service at a time, and at least one unit.
    /// Instances that are being launched count, whether they replace others or enlarge the group.
    ///
    /// Source: EC2 Auto Scaling user guide, "Health checks for Auto Scaling instances" (6c46a78, 2023-06).
    pub fn replaces_unhealthy(&self, instance: InstanceId) -> bool {
        if self.held(instance).is_none_or(|held| held.state != LifecycleState::InService) {
            return true;
        }
        let Some(&group) = self.group_of.get(&instance) else { return true };
        let group = &self.groups[group];
        let in_service = group.members.iter().filter(|held| held.state == LifecycleState::InService);
        let missing = group.desired.saturating_sub(in_service.map(|held| held.weight).sum());
        missing < (group.desired / 10).max(1)
    }

    /// A health check has found the instance there, but impaired: it is to end.
    pub fn find_unhealthy(&mut self, instance: InstanceId, now: SimTime) {
        self.begin_end(instance, EndReason::Unhealthy, now);
    }

    /// A health check has noticed that the instance is gone.
    pub fn lose(&mut self, instance: InstanceId, now: SimTime) {
        let cause = "an instance was taken out of service in response to an EC2 health check indicating it has been terminated or stopped.";
        if let Some((held, activities)) = self.held_mut(instance) {
            if held.state == LifecycleState::Pending {
                cancel(activities, held.activity.take(), now);
            }
            close(activities, held.activity.take(), now);
            activities.push(Log::terminating(instance, cause.to_owned(), now));
            held.activity = Some(activities.len() - 1);
        }
        self.forget(instance, now);
    }

    /// The instance that the group wanted ended is on its way out of EC2.
    pub fn forget(&mut self, instance: InstanceId, now: SimTime) {
        let Some(group) = self.group_of.remove(&instance) else { return };
        let group = &mut self.groups[group];
        let Some(position) = group.members.iter().position(|held| held.id == instance) else { return };
        let held = group.members.remove(position);
        close(&mut group.activities, held.activity, now);
    }

    /// The end of an instance begins.
    fn begin_end(&mut self, instance: InstanceId, reason: EndReason, now: SimTime) {
        let Some(group) = self.group_of(instance) else { return };
        let (size, weight) = (self.size(group), self.weight(instance));
        let cause = match reason {
            EndReason::ScaleIn => format!(
                "an instance was taken out of service in response to a difference between desired and actual capacity, shrinking the capacity from {size} to {}.",
                size.saturating_sub(weight)
            ),
            EndReason::CapacityRebalance => {
                "an instance was taken out of service in response to an EC2 instance rebalance recommendation.".to_owned()
            }
            EndReason::ZoneRebalance => {
                "instances were launched to balance instances in zones with other zones resulting in more than desired number of instances in the group.".to_owned()
            }
            EndReason::Unhealthy => {
                "an instance was taken out of service in response to an EC2 instance status checks failure.".to_owned()
            }
            EndReason::Requested => "an instance was taken out of service in response to a user request.".to_owned(),
        };
        let Some((held, activities)) = self.held_mut(instance) else { return };
        held.state = LifecycleState::Terminating;
        held.returns = reason == EndReason::ScaleIn;
        close(activities, held.activity.take(), now);
        activities.push(Log::terminating(instance, cause, now));
        held.activity = Some(activities.len() - 1);
    }
}

/// An activity has ended well.
fn close(activities: &mut [Log], position: Option<usize>, now: SimTime) {
    if let Some(activity) = position.and_then(|position| activities.get_mut(position)) {
        activity.end = Some(now);
        activity.status = ActivityStatus::Successful;
    }
}

/// The instance that an activity launched is gone before it was in service.
fn cancel(activities: &mut [Log], position: Option<usize>, now: SimTime) {
    if let Some(activity) = position.and_then(|position| activities.get_mut(position)) {
        activity.end = Some(now);
        activity.status = ActivityStatus::Cancelled;
        activity.message = "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: Server.InternalError: Internal error on launch".to_owned();
    }
}

/// The instance as the plan sees it.
fn member(group: &Group, held: &MemberState, ec2: &mut Ec2, now: SimTime) -> Member {
    let spec = &group.spec;
    let instance = ec2.instance(held.id).clone();
    let spot = instance.pool.capacity_type == well_known::SPOT;
    let by_price = matches!(
        spec.strategy(spot).0,
        nodecast_model::domain::AllocationStrategy::LowestPrice
            | nodecast_model::domain::AllocationStrategy::PriceCapacityOptimized
    );
    let misfit = if by_price {
        let rate = ec2.market().price(instance.pool, now).map_or(HourlyRate::ZERO, |(rate, _)| rate);
        u64::try_from(rate.as_nanos()).unwrap_or(0)
    } else {
        let kind = instance.pool.instance_type;
        spec.instance_types.iter().position(|instance_type| *instance_type == kind).unwrap_or(spec.instance_types.len())
            as u64
    };
    let ran = instance.running.map_or(SimDuration::ZERO, |running| now.saturating_since(running));
    Member {
        id: held.id,
        zone: instance.pool.zone,
        spot,
        serves: held.serves,
        protected: held.protected,
        outgoing: held.outgoing.is_some(),
        outdated: held.template != group.template,
        weight: held.weight,
        misfit,
        into_hour: SimDuration::from_micros(ran.as_micros() % 3_600_000_000),
    }
}

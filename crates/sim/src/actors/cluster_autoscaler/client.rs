//! The client of the API server: all calls of the program share one limit and are served in the order of asking.
//!
//! Events go out one after the other, from a queue that the main loop does not wait for. Each asks for its token when the one before it
//! has returned, so a call of the main loop waits for at most one event.
//!
//! Must not: decide anything.
//!
//! Source: Cluster Autoscaler 1.36 `utils/kubernetes/client.go`, `utils/kubernetes/factory.go`; client-go v0.36 `tools/record/event.go`,
//! `tools/record/events_cache.go`.

use rustc_hash::FxHashMap;

use crate::actors::cluster_autoscaler::AutoscalerLoop;
use crate::actors::event::{LoopEvent, class};
use crate::actors::sim::Sim;
use crate::control_plane::call_limit::CallLimit;
use crate::domain::controller_time::CallRate;
use crate::domain::{NodeId, PodId, SimDuration, SimTime};

/// Time from a call's token to its answer: two calls of this length are part of the 12 ms that an iteration on few groups took.
pub(super) const CALL: SimDuration = SimDuration::from_millis(4);
/// Events that wait at most; further ones are lost.
const QUEUE: usize = 1_000;
/// Within this time an object gets one event of each reason.
const ONCE_IN: SimDuration = SimDuration::from_secs(300);
/// Entries at which those that have run out are dropped.
const TIDY_AT: usize = 8_192;

/// Object and reason of an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Subject {
    /// The status ConfigMap: each such event has a text of its own, and all are posted.
    Status,
    /// A node that is removed.
    Node(NodeId),
    /// A node that is not removed after all.
    NotRemoved(NodeId),
    /// A pod for which a group grows.
    Helped(PodId),
    /// A pod that no group helps.
    NotHelped(PodId),
    /// A pod that is evicted.
    Evicted(PodId),
}

/// The client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) limit: CallLimit,
    waiting: usize,
    is_posting: bool,
    /// When events were last posted.
    posted: FxHashMap<Subject, SimTime>,
}

impl Client {
    pub(super) fn new(rate: CallRate) -> Self {
        Self { limit: CallLimit::new(rate), waiting: 0, is_posting: false, posted: FxHashMap::default() }
    }

    /// Takes a token for a call that is asked for now: when its answer is there.
    pub(super) fn call(&mut self, now: SimTime) -> SimTime {
        self.limit.reserve(now) + CALL
    }

    /// Puts an event in the queue, unless its like was posted a while ago.
    fn queue(&mut self, now: SimTime, subject: Subject) {
        if subject != Subject::Status {
            if self.posted.len() >= TIDY_AT {
                self.posted.retain(|_, at| *at + ONCE_IN > now);
            }
            if self.posted.get(&subject).is_some_and(|&at| at + ONCE_IN > now) {
                return;
            }
            self.posted.insert(subject, now);
        }
        self.waiting = (self.waiting + 1).min(QUEUE);
    }

    /// When the next event is posted, if one waits and none is on its way.
    fn next_post(&mut self, now: SimTime) -> Option<SimTime> {
        if self.is_posting || self.waiting == 0 {
            return None;
        }
        self.waiting -= 1;
        self.is_posting = true;
        Some(self.call(now))
    }
}

/// Puts events in the queue, where calls take time. Those about the status ConfigMap need one.
pub(super) fn notify(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    now: SimTime,
    subjects: impl IntoIterator<Item = Subject>,
) {
    let has_status = super::flags(sim).is_some_and(|flags| flags.write_status_configmap);
    let Some(client) = &mut autoscaler.client else { return };
    for subject in subjects {
        if has_status || subject != Subject::Status {
            client.queue(now, subject);
        }
    }
    post(sim, autoscaler, now);
}

/// Posts the next event.
fn post(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime) {
    let next = autoscaler.client.as_mut().and_then(|client| client.next_post(now));
    if let Some(at) = next {
        sim.queue.schedule(at, class::NODE_AUTOSCALER, LoopEvent::Posted);
    }
}

/// An event was posted.
pub(super) fn posted(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime) {
    if let Some(client) = &mut autoscaler.client {
        client.is_posting = false;
    }
    post(sim, autoscaler, now);
}

#[cfg(test)]
mod tests {
    use super::{CALL, Client, Subject};
    use crate::domain::controller_time::CallRate;
    use crate::domain::{NodeId, PodId, SimDuration, SimTime};

    fn at(millis: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_millis(millis)
    }

    #[test]
    fn loop_waits_for_one_event_per_call() {
        let mut client = Client::new(CallRate::new(4, 1));
        for pod in 0..50 {
            client.queue(at(0), Subject::Helped(PodId(pod)));
        }
        assert_eq!(client.next_post(at(0)), Some(at(0) + CALL));
        assert_eq!(client.next_post(at(0)), None, "one event at a time");
        assert_eq!(client.call(at(1)), at(250) + CALL);
        client.is_posting = false;
        assert_eq!(client.next_post(at(4)), Some(at(500) + CALL));
        assert_eq!(client.call(at(254)), at(750) + CALL);
    }

    #[test]
    fn one_event_per_reason_in_five_minutes() {
        let mut client = Client::new(CallRate::new(4, 1));
        let mut count = |millis, subject| {
            client.queue(at(millis), subject);
            std::mem::take(&mut client.waiting)
        };
        assert_eq!(count(0, Subject::NotHelped(PodId(3))), 1);
        assert_eq!(count(299_999, Subject::NotHelped(PodId(3))), 0);
        assert_eq!(count(299_999, Subject::Evicted(PodId(3))), 1);
        assert_eq!(count(300_000, Subject::NotHelped(PodId(3))), 1);
        assert_eq!((count(300_000, Subject::Node(NodeId(3))), count(300_001, Subject::Node(NodeId(3)))), (1, 0));
        assert_eq!((count(300_000, Subject::Status), count(300_000, Subject::Status)), (1, 1));
    }

    #[test]
    fn full_queue_loses_events() {
        let mut client = Client::new(CallRate::new(4, 1));
        (0..1_200).for_each(|_| client.queue(at(0), Subject::Status));
        assert_eq!(client.waiting, 1_000);
    }
}

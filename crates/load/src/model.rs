//! The requests to one workload: arrivals, servers, backlog, response times.

use std::borrow::Cow;

use super::conditions::{Conditions, Replicas, Service, Source, Spacing};
use super::exact::Exact;
use super::fluid::Fluid;
use super::histogram::LatencyHistogram;
use super::queueing::ResponseTime;
use super::tally::Tally;
use nodecast_engine::Stream;
use nodecast_model::domain::{Check, SimDuration, SimTime};

/// The requests to one workload: one by one where they are few, as a fluid where they are many.
///
/// One queue stands in front of all Ready replicas together, as a balancer has it that sends a request to whoever has the
/// fewest. Service times are exponential. A replica works on as many requests at a time as its concurrency and its CPU
/// allow, whichever is less.
#[derive(Debug)]
pub struct RequestModel {
    conditions: Conditions,
    tally: Tally,
    /// What had become of requests before the tally began anew.
    before: RequestCounts,
    detail: Detail,
}

/// What became of requests.
#[derive(Clone, Copy, Debug, Default)]
struct RequestCounts {
    completed: f64,
    refused: f64,
    given_up: f64,
}

#[derive(Debug)]
enum Detail {
    Fluid(Fluid),
    Exact(Box<Exact>),
}

/// A closed loop whose requests are simulated one by one is looked at this often, to see whether it has ended.
const LOOK_AGAIN: SimDuration = SimDuration::from_secs(1);

impl RequestModel {
    /// A fluid without load and without replicas.
    pub fn new(service: Service) -> Self {
        Self::from_service(service, Detail::Fluid(Fluid::new()))
    }

    /// Requests one by one, without load and without replicas; arrivals and service times are drawn from these streams.
    pub fn exact(service: Service, arrivals: Stream, services: Stream) -> Self {
        Self::from_service(service, Detail::Exact(Box::new(Exact::new(arrivals, services))))
    }

    fn from_service(service: Service, detail: Detail) -> Self {
        Self { conditions: Conditions::new(service), tally: Tally::default(), before: RequestCounts::default(), detail }
    }

    /// The same that is told whether what follows from its conditions is worked out at each use too.
    #[must_use]
    pub fn checked(mut self, check: Check) -> Self {
        self.conditions.check = check;
        self
    }

    /// Whether requests are simulated one by one.
    pub fn is_exact(&self) -> bool {
        matches!(self.detail, Detail::Exact(_))
    }

    /// Changes where requests come from, after bringing the model to `now`.
    pub fn set_source(&mut self, source: Source, now: SimTime) {
        self.advance(now);
        let asks = matches!(source, Source::Open { .. } | Source::Closed { .. });
        if asks && self.tally.first.is_none() {
            self.tally.first = Some(now);
        }
        self.tally.in_cores |= matches!(source, Source::Cpu { .. });
        self.conditions.source = source;
        self.conditions_changed(now, true);
    }

    /// Changes what a request costs and how requests are spaced, after bringing the model to `now`.
    pub fn set_service(&mut self, service: Service, spacing: Spacing, now: SimTime) {
        self.advance(now);
        self.conditions.service = service;
        self.conditions.spacing = spacing;
        self.conditions_changed(now, false);
    }

    /// Changes the ready replicas, after bringing the model to `now`.
    pub fn set_replicas(&mut self, replicas: Replicas, now: SimTime) {
        self.advance(now);
        self.conditions.replicas = replicas;
        self.conditions_changed(now, false);
    }

    /// Changes the CPU that the nodes leave to a replica on average, in thousandths, after bringing the model to `now`.
    pub fn set_cpu_available(&mut self, milli: Option<i64>, now: SimTime) {
        self.advance(now);
        self.conditions.cpu_available_milli = milli;
        self.conditions_changed(now, false);
    }

    /// What decides how fast requests are answered at present.
    pub fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    /// Forgets what became of the requests before `now`; those that wait go on waiting, and count once they are answered.
    pub fn count_anew(&mut self, now: SimTime) {
        self.advance(now);
        if let Detail::Fluid(fluid) = &mut self.detail {
            fluid.forget_answers();
        }
        self.before.completed += self.tally.completed;
        self.before.refused += self.tally.dropped;
        self.before.given_up += self.tally.timed_out;
        let Tally { first, last, in_cores, .. } = self.tally;
        self.tally = Tally { first, last, in_cores, ..Tally::default() };
    }

    /// What became of the requests since the tally began.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Where requests come from at present.
    pub fn source(&self) -> Source {
        self.conditions.source
    }

    /// Brings the model from its last change to `now`.
    pub fn advance(&mut self, now: SimTime) {
        self.advance_watching(now, &mut |_| {});
    }

    /// As [`RequestModel::advance`]; where requests are simulated one by one, every response time in seconds is told to
    /// `answered`.
    pub fn advance_watching(&mut self, now: SimTime, answered: &mut dyn FnMut(f64)) {
        match &mut self.detail {
            Detail::Fluid(fluid) => fluid.advance(&mut self.conditions, &mut self.tally, now),
            Detail::Exact(exact) => exact.advance(&mut self.conditions, &mut self.tally, now, answered),
        }
    }

    /// When the model will change by itself in a way that others may have to know: the backlog is gone, or the last request
    /// of a closed loop is answered. Where requests are simulated one by one, a moment at which to look again.
    pub fn next_change(&self, now: SimTime) -> Option<SimTime> {
        match &self.detail {
            Detail::Fluid(fluid) => fluid.next_change(&self.conditions),
            Detail::Exact(_) => matches!(self.conditions.source, Source::Closed { .. }).then(|| now + LOOK_AGAIN),
        }
    }

    /// Whether a closed loop has had all its answers.
    pub fn is_finished(&self) -> bool {
        matches!(self.conditions.source, Source::Closed { remaining, .. } if remaining < 1e-3)
    }

    /// Requests answered per second at present; where they are simulated one by one, the rate that is to be expected.
    pub fn throughput(&self) -> f64 {
        match &self.detail {
            Detail::Fluid(fluid) => fluid.throughput(&self.conditions),
            Detail::Exact(exact) => {
                let busy = exact.in_service() * self.conditions.service_rate();
                let rate = self.conditions.arrival_rate().min(self.conditions.capacity());
                let closed = matches!(self.conditions.source, Source::Closed { .. });
                if closed || exact.backlog() > 0.0 { busy } else { rate }
            }
        }
    }

    /// CPU that all replicas together use at present, in millionths of a CPU.
    pub fn cpu_use_micro(&self) -> i64 {
        libm::round(self.conditions.cpu_micro(self.throughput())) as i64
    }

    /// CPU that all replicas together would use at present if their nodes had enough of it, in millionths of a CPU.
    pub fn cpu_wanted_micro(&self) -> i64 {
        let mut with_enough = None;
        let free = match self.conditions.cpu_available_milli {
            None => &self.conditions,
            Some(_) => with_enough.insert(self.conditions.with_enough_cpu()),
        };
        let rate = match &self.detail {
            Detail::Fluid(fluid) => fluid.throughput(free),
            Detail::Exact(exact) if exact.backlog() > 0.0 => free.capacity(),
            Detail::Exact(_) => free.arrival_rate().min(free.capacity()) + free.closed_throughput(),
        };
        libm::round(free.cpu_micro(rate)) as i64
    }

    /// CPU that all replicas together have used, in millionths of a CPU times seconds, where requests are simulated one by
    /// one.
    pub fn cpu_used_exactly(&self) -> Option<f64> {
        match &self.detail {
            Detail::Fluid(_) => None,
            Detail::Exact(exact) => Some(exact.cpu()),
        }
    }

    /// Memory that a Ready replica uses at present, in bytes, without what stays of earlier requests; `None` if memory is
    /// not modelled.
    pub fn memory_of_replica(&self) -> Option<i64> {
        let memory = self.conditions.service.memory?;
        let present = match &self.detail {
            Detail::Fluid(fluid) => {
                let mean = fluid.response_time(&self.conditions).map_or(0.0, |response| response.mean());
                // Little's law, or everything that waits where nothing is served.
                fluid.backlog().max(fluid.throughput(&self.conditions) * mean)
            }
            Detail::Exact(exact) => exact.backlog() + exact.in_service(),
        };
        let each = present / f64::from(self.conditions.replicas.count().max(1));
        Some(memory.idle + libm::round(each * memory.per_request as f64) as i64)
    }

    /// The response time to be expected of the queue at present; `None` when nothing is served.
    pub fn response_time(&self) -> Option<ResponseTime> {
        match &self.detail {
            Detail::Fluid(fluid) => fluid.response_time(&self.conditions),
            Detail::Exact(exact) => (self.throughput() > 0.0).then(|| {
                let extra = exact.backlog() / self.conditions.capacity();
                self.conditions.response_time(extra, f64::INFINITY)
            }),
        }
    }

    /// Response times in seconds since the last call, where requests are simulated one by one.
    pub fn take_recent(&mut self) -> Option<Vec<f64>> {
        match &mut self.detail {
            Detail::Fluid(_) => None,
            Detail::Exact(exact) => Some(exact.take_recent()),
        }
    }

    /// What the requests of the tally experienced.
    pub fn histogram(&self) -> Cow<'_, LatencyHistogram> {
        match &self.detail {
            Detail::Fluid(fluid) => fluid.histogram(&self.tally),
            Detail::Exact(_) => Cow::Borrowed(&self.tally.histogram),
        }
    }

    /// Requests answered so far, whenever the tally began.
    pub fn completed(&self) -> f64 {
        self.before.completed + self.tally.completed
    }

    /// Requests refused so far, because the queue was full or no replica was Ready, whenever the tally began.
    pub fn refused(&self) -> f64 {
        self.before.refused + self.tally.dropped
    }

    /// Requests so far whose client gave up before they were taken up, whenever the tally began.
    pub fn given_up(&self) -> f64 {
        self.before.given_up + self.tally.timed_out
    }

    /// Requests that wait for a replica and were not answered.
    pub fn backlog(&self) -> f64 {
        match &self.detail {
            Detail::Fluid(fluid) => fluid.backlog(),
            Detail::Exact(exact) => exact.backlog(),
        }
    }

    /// Requests that wait for an answer: the backlog and what is worked on, or what a closed loop has still to do.
    pub fn unanswered(&self) -> f64 {
        match (self.conditions.source, &self.detail) {
            (Source::Closed { remaining, .. }, _) => remaining,
            (_, Detail::Fluid(fluid)) => fluid.backlog(),
            (_, Detail::Exact(exact)) => exact.backlog() + exact.in_service(),
        }
    }

    fn conditions_changed(&mut self, now: SimTime, new_source: bool) {
        self.conditions.settle();
        match &mut self.detail {
            Detail::Fluid(fluid) => fluid.note_change(now),
            Detail::Exact(exact) => exact.conditions_changed(&mut self.conditions, &mut self.tally, new_source),
        }
    }
}

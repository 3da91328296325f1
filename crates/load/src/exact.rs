//! Requests one by one: arrivals, a queue in order of arrival, servers with exponential service times.
//!
//! The check on the fluid, and the model of choice where requests are so few that their randomness matters.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::conditions::{Conditions, Source, Spacing};
use super::tally::Tally;
use nodecast_engine::Stream;
use nodecast_model::domain::{SimDuration, SimTime};

/// The requests to one workload, one by one.
///
/// A replica that leaves finishes what it works on; what waits is served by the others. Requests are served in order of
/// arrival.
#[derive(Debug)]
pub(super) struct Exact {
    arrivals: Stream,
    services: Stream,
    /// Now, in seconds of the run.
    clock: f64,
    /// Expected arrivals until the next one comes; `None` before the first load. It carries over changes of the rate, so that an arrival
    /// that is due at the instant of a change comes right after it.
    until_next: Option<f64>,
    /// The place in a list of arrivals.
    listed: usize,
    /// Requests that wait, by arrival.
    waiting: VecDeque<f64>,
    /// Requests that are served, by the end of their service.
    busy: BinaryHeap<Reverse<Served>>,
    /// Requests that a closed loop has still to send, without those of clients that pause.
    to_send: f64,
    /// When clients of a closed loop that pause ask again.
    pausing: BinaryHeap<Reverse<Instant>>,
    /// CPU used by all replicas so far, in millionths of a CPU times seconds.
    cpu: f64,
    /// Response times since they were last asked for.
    recent: Vec<f64>,
}

/// A request in service, in order of its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Served {
    end: Instant,
    arrived: Instant,
}

/// Seconds of the run, in their order.
#[derive(Clone, Copy, Debug)]
struct Instant(f64);

impl PartialEq for Instant {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Instant {}

impl PartialOrd for Instant {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Instant {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// A client of a closed loop that is refused asks again after the time of a request that is not CPU time, at least so many
/// seconds, and its pause.
const REFUSAL_SECONDS: f64 = 1e-3;

/// What happens next.
enum Next {
    Arrival,
    PauseEnds,
    Answer,
    GivingUp,
    Nothing,
}

impl Exact {
    pub(super) fn new(arrivals: Stream, services: Stream) -> Self {
        Self {
            arrivals,
            services,
            clock: 0.0,
            until_next: None,
            listed: 0,
            waiting: VecDeque::new(),
            busy: BinaryHeap::new(),
            to_send: 0.0,
            pausing: BinaryHeap::new(),
            cpu: 0.0,
            recent: Vec::new(),
        }
    }

    pub(super) fn backlog(&self) -> f64 {
        self.waiting.len() as f64
    }

    pub(super) fn in_service(&self) -> f64 {
        self.busy.len() as f64
    }

    /// CPU used by all replicas so far, in millionths of a CPU times seconds.
    pub(super) fn cpu(&self) -> f64 {
        self.cpu
    }

    /// Response times in seconds since the last call.
    pub(super) fn take_recent(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.recent)
    }

    /// The conditions have changed: clients of a closed loop begin, waiting requests take servers that have come free.
    pub(super) fn conditions_changed(&mut self, conditions: &mut Conditions, tally: &mut Tally, new_source: bool) {
        if new_source {
            self.to_send = 0.0;
            self.pausing.clear();
            match conditions.source {
                Source::Closed { clients, remaining, .. } => {
                    let first = f64::from(clients).min(remaining);
                    self.to_send = remaining - first;
                    for _ in 0..first as u64 {
                        self.arrive(conditions, tally);
                    }
                }
                Source::Open { .. } if self.until_next.is_none() => self.until_next = Some(self.draw_gap(conditions)),
                Source::Open { .. } | Source::Cpu { .. } | Source::Idle => {}
            }
        }
        self.start_waiting(conditions);
    }

    /// Brings everything to `now`; every response time is also told to `answered`.
    pub(super) fn advance(
        &mut self,
        conditions: &mut Conditions,
        tally: &mut Tally,
        now: SimTime,
        answered: &mut dyn FnMut(f64),
    ) {
        let until = now.as_secs_f64();
        if until <= self.clock {
            return;
        }
        if conditions.source != Source::Idle || !self.waiting.is_empty() || !self.busy.is_empty() {
            tally.last = now;
        }
        if let Spacing::Listed(times) = &conditions.spacing {
            let clock = SimTime::ZERO + SimDuration::from_secs_f64(self.clock);
            self.listed = self.listed.max(times.partition_point(|&at| at < clock));
        }
        while self.clock < until {
            let (at, next) = self.next(conditions, until);
            self.pass(conditions, tally, at);
            match next {
                Next::Arrival => {
                    self.listed += 1;
                    // What rounding left over counts, or else it would add up over millions of even gaps.
                    let rest = if conditions.spacing == Spacing::Even { self.until_next.unwrap_or(0.0) } else { 0.0 };
                    self.until_next = Some(rest + self.draw_gap(conditions));
                    self.arrive(conditions, tally);
                }
                Next::PauseEnds => {
                    self.pausing.pop();
                    self.arrive(conditions, tally);
                }
                Next::Answer => self.answer(conditions, tally, answered),
                Next::GivingUp => {
                    self.waiting.pop_front();
                    tally.timed_out += 1.0;
                    self.replace_closed(conditions, 0.0);
                }
                Next::Nothing => {}
            }
        }
    }

    fn next(&self, conditions: &Conditions, until: f64) -> (f64, Next) {
        let mut next = (until, Next::Nothing);
        if let Some(&arrived) = self.waiting.front() {
            let at = arrived + conditions.timeout_seconds();
            if at < next.0 {
                next = (at, Next::GivingUp);
            }
        }
        if let Some(Reverse(first)) = self.busy.peek()
            && first.end.0 <= next.0
        {
            next = (first.end.0, Next::Answer);
        }
        if let Some(Reverse(end)) = self.pausing.peek()
            && end.0 < next.0
        {
            next = (end.0, Next::PauseEnds);
        }
        let arrival = self.next_arrival(conditions);
        if arrival < next.0 {
            next = (arrival, Next::Arrival);
        }
        (next.0.max(self.clock), next.1)
    }

    fn next_arrival(&self, conditions: &Conditions) -> f64 {
        let Source::Open { rate } = conditions.source else { return f64::INFINITY };
        match &conditions.spacing {
            Spacing::Listed(times) => times.get(self.listed).map_or(f64::INFINITY, |at| at.as_secs_f64()),
            _ if rate > 0.0 => self.until_next.map_or(f64::INFINITY, |left| self.clock + left / rate),
            _ => f64::INFINITY,
        }
    }

    /// Lets the time until `at` pass, in which nothing happens.
    fn pass(&mut self, conditions: &Conditions, tally: &mut Tally, at: f64) {
        let seconds = at - self.clock;
        self.clock = at;
        if let Some(left) = &mut self.until_next {
            *left -= conditions.arrival_rate() * seconds;
        }
        // A request uses its CPU evenly over its service.
        let busy = self.busy.len() as f64;
        self.cpu += conditions.cpu_micro(busy * conditions.service_rate()) * seconds;
        if !self.waiting.is_empty() {
            tally.throttled_seconds += if conditions.is_bound_by_cpu() { seconds } else { 0.0 };
            if conditions.arrival_rate() > conditions.capacity() || matches!(conditions.source, Source::Closed { .. }) {
                tally.overloaded += SimDuration::from_secs_f64(seconds);
            }
        }
    }

    /// Expected arrivals between two of them.
    fn draw_gap(&mut self, conditions: &Conditions) -> f64 {
        match conditions.spacing {
            Spacing::Poisson => self.arrivals.exponential(1.0),
            Spacing::Even | Spacing::Listed(_) => 1.0,
        }
    }

    fn arrive(&mut self, conditions: &mut Conditions, tally: &mut Tally) {
        if self.busy.len() < conditions.servers() as usize {
            self.start(conditions, self.clock);
        } else if (self.waiting.len() as f64) < conditions.queue_max() {
            self.waiting.push_back(self.clock);
        } else {
            tally.dropped += 1.0;
            self.replace_closed(conditions, conditions.service.base_latency.as_secs_f64().max(REFUSAL_SECONDS));
        }
    }

    fn start(&mut self, conditions: &Conditions, arrived: f64) {
        let end = self.clock + self.services.exponential(1.0 / conditions.service_rate());
        self.busy.push(Reverse(Served { end: Instant(end), arrived: Instant(arrived) }));
    }

    fn start_waiting(&mut self, conditions: &Conditions) {
        while self.busy.len() < conditions.servers() as usize {
            let Some(arrived) = self.waiting.pop_front() else { return };
            self.start(conditions, arrived);
        }
    }

    fn answer(&mut self, conditions: &mut Conditions, tally: &mut Tally, answered: &mut dyn FnMut(f64)) {
        let Some(Reverse(served)) = self.busy.pop() else { return };
        let response = self.clock - served.arrived.0;
        tally.completed += 1.0;
        tally.histogram.add_value(response);
        self.recent.push(response);
        answered(response);
        self.start_waiting(conditions);
        self.replace_closed(conditions, 0.0);
    }

    /// A client of a closed loop asks again after so many seconds and its pause.
    fn replace_closed(&mut self, conditions: &mut Conditions, seconds: f64) {
        let Source::Closed { clients, remaining, think_time } = conditions.source else { return };
        conditions.source = Source::Closed { clients, remaining: remaining - 1.0, think_time };
        if self.to_send > 0.0 {
            self.to_send -= 1.0;
            let pause =
                if think_time > SimDuration::ZERO { self.arrivals.exponential(think_time.as_secs_f64()) } else { 0.0 };
            self.pausing.push(Reverse(Instant(self.clock + seconds + pause)));
        }
    }
}

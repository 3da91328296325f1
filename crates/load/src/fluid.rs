//! Requests as a fluid: between two changes of load or replicas rates are constant, so nothing needs a time step.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::conditions::{Conditions, Source};
use super::histogram::{Decays, LatencyHistogram};
use super::queueing::ResponseTime;
use super::tally::Tally;
use nodecast_model::domain::{SimDuration, SimTime};

/// The requests to one workload, as a fluid.
///
/// Deviation: when the conditions change, the equilibrium wait of the queue applies at once, up to the wait that a
/// queue at full use can build up in the time. Clients that give up in equilibrium do not shorten the wait of others.
/// Clients of a closed loop neither give up nor are refused.
#[derive(Clone, Debug)]
pub(super) struct Fluid {
    updated: SimTime,
    /// When the conditions last changed.
    changed: SimTime,
    /// The requests that wait because more arrived than could be served, in order of arrival.
    waiting: VecDeque<Parcel>,
    backlog: f64,
    /// Requests answered without a backlog and not yet in the histogram, by what they met: filling it is dear, so those
    /// that met about the same go there together.
    held: Vec<(Cell, LatencyBucket)>, // in order of the cells
    /// What the last such requests met, to the bit, and the place of their cell: those that come next mostly meet the same.
    filling: Option<(Met, usize)>,
    /// Requests of a closed loop or with a backlog that are not yet there, likewise, as long as they met the very same.
    last: Option<(ResponseTime, f64)>,
}

/// About what a request met in a queue in equilibrium: the probability of a wait, the rate at which it ends on a logarithmic
/// scale, the service rate to the bit.
type Cell = (i32, i32, u64);

/// What a request met in a queue in equilibrium: the bits of the probability of a wait, the rate at which it ends, the
/// service rate.
type Met = [u64; 3];

/// Requests that met about the same.
#[derive(Clone, Copy, Debug, Default)]
struct LatencyBucket {
    requests: f64,
    /// Sum of the probabilities of a wait.
    waiting: f64,
    /// Sum of the expected waits in seconds.
    waits: f64,
}

/// Cells from no wait to a sure one.
const WAIT_CELLS: f64 = 128.0;
/// Cells in each factor of e of the rate at which a wait ends.
const RATE_CELLS: f64 = 50.0;

impl LatencyBucket {
    /// What these requests met on average.
    fn response(&self, service_rate: f64) -> ResponseTime {
        let wait_probability = self.waiting / self.requests;
        let drain_rate = if self.waits > 0.0 { self.waiting / self.waits } else { 1.0 };
        ResponseTime::Open { wait_probability, drain_rate, service_rate, extra_wait: 0.0 }
    }
}

/// Waiting requests that arrived from one instant to another at an even rate. Times are seconds of the run.
#[derive(Clone, Copy, Debug)]
struct Parcel {
    from: f64,
    to: f64,
    rate: f64,
}

/// One stretch in which nothing changes its pace.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// By how many seconds of arrivals the head of the queue moves on in a second.
    head: f64,
    /// Requests per second that are served.
    served: f64,
    /// Requests per second that are given up.
    given_up: f64,
    /// Requests per second that join the queue.
    joining: f64,
    /// How long this can go on.
    lasts: f64,
}

/// How many pieces a stretch with a changing wait is cut into at most when its response times are recorded.
const SLICES_MAX: f64 = 16.0;
/// A backlog of less than this is none.
const NEGLIGIBLE: f64 = 1e-6;

impl Fluid {
    pub(super) fn new() -> Self {
        Self {
            updated: SimTime::ZERO,
            changed: SimTime::ZERO,
            waiting: VecDeque::new(),
            backlog: 0.0,
            held: Vec::new(),
            filling: None,
            last: None,
        }
    }

    /// The conditions are about to change at `now`, to which the fluid has been brought.
    pub(super) fn note_change(&mut self, now: SimTime) {
        self.changed = now;
    }

    /// Leaves out of the histogram what was answered and is not yet there.
    pub(super) fn forget_answers(&mut self) {
        self.held.clear();
        self.filling = None;
        self.last = None;
    }

    pub(super) fn backlog(&self) -> f64 {
        self.backlog
    }

    /// Brings the fluid to `now`; the source is changed where a closed loop has had answers.
    pub(super) fn advance(&mut self, conditions: &mut Conditions, tally: &mut Tally, now: SimTime) {
        let begin = self.updated.as_secs_f64();
        let span = now.saturating_since(self.updated);
        self.updated = self.updated.max(now);
        let seconds = span.as_secs_f64();
        let is_still = matches!(conditions.source, Source::Idle | Source::Cpu { .. });
        if seconds > 0.0 && conditions.is_short_of_cpu() {
            tally.throttled_seconds += seconds;
        }
        if seconds <= 0.0 || (is_still && self.backlog <= 0.0) {
            return;
        }
        tally.last = now;
        if let Source::Closed { clients, remaining, think_time } = conditions.source {
            let done = (self.throughput(conditions) * seconds).min(remaining);
            let waiting = seconds * conditions.closed_waiting_share();
            self.answer(conditions, tally, done, 0.0, 0.0);
            conditions.source = Source::Closed { clients, remaining: remaining - done, think_time };
            tally.overloaded += SimDuration::from_secs_f64(waiting);
            tally.throttled_seconds += if conditions.is_bound_by_cpu() { waiting } else { 0.0 };
            return;
        }
        if conditions.arrival_rate() > conditions.capacity() {
            tally.overloaded += span;
        }
        self.advance_open(conditions, tally, begin, begin + seconds);
    }

    /// When the fluid will change by itself: the backlog is gone, or the last request of a closed loop is answered.
    pub(super) fn next_change(&self, conditions: &Conditions) -> Option<SimTime> {
        let seconds = match conditions.source {
            Source::Closed { remaining, .. } => remaining / self.throughput(conditions),
            _ if self.backlog > 0.0 => {
                let drain = conditions.capacity() - conditions.arrival_rate();
                if drain <= 0.0 {
                    return None;
                }
                self.backlog / drain
            }
            _ => return None,
        };
        // A century is never; an infinite or undefined time neither.
        (seconds < 3.2e9).then(|| self.updated + SimDuration::from_secs_f64(seconds) + SimDuration::RESOLUTION)
    }

    /// Requests answered per second at present, those too late included.
    pub(super) fn throughput(&self, conditions: &Conditions) -> f64 {
        match conditions.source {
            Source::Closed { .. } => conditions.closed_throughput(),
            _ if self.backlog > 0.0 => conditions.capacity(),
            _ => conditions.arrival_rate().min(conditions.capacity()),
        }
    }

    /// Response times at present; `None` when nothing is served.
    pub(super) fn response_time(&self, conditions: &Conditions) -> Option<ResponseTime> {
        if self.throughput(conditions) <= 0.0 {
            return None;
        }
        // At the very moment of a change the wait of a second later stands for what is to come.
        let since = (self.updated - self.changed).as_secs_f64().max(1.0);
        Some(conditions.response_time(self.backlog / conditions.capacity(), since))
    }

    /// What the requests so far experienced.
    pub(super) fn histogram<'t>(&self, tally: &'t Tally) -> Cow<'t, LatencyHistogram> {
        if self.held.is_empty() && self.last.is_none() {
            return Cow::Borrowed(&tally.histogram);
        }
        let (mut histogram, mut decays) = (tally.histogram.clone(), Decays::default());
        for ((.., service_rate), held) in &self.held {
            histogram.add_equilibrium(held.requests, held.response(f64::from_bits(*service_rate)), &mut decays);
        }
        if let Some((response, requests)) = self.last {
            histogram.add_response(requests, response);
        }
        Cow::Owned(histogram)
    }

    /// Brings an open queue from one instant to another, both in seconds of the run.
    fn advance_open(&mut self, conditions: &Conditions, tally: &mut Tally, mut at: f64, until: f64) {
        let (arrivals, capacity) = (conditions.arrival_rate(), conditions.capacity());
        while at < until {
            if self.waiting.is_empty() && arrivals <= capacity {
                self.backlog = 0.0;
                let since = 0.5 * (at + until) - self.changed.as_secs_f64();
                self.answer(conditions, tally, arrivals * (until - at), 0.0, since);
                tally.throttled_seconds += throttled_share(conditions) * (until - at);
                return;
            }
            let pace = self.pace(conditions, at, until - at);
            let seconds = pace.lasts.max(1e-6).min(until - at);
            self.serve(conditions, tally, at, seconds, pace);
            tally.dropped += (arrivals - pace.joining).max(0.0) * seconds;
            tally.throttled_seconds += if conditions.is_bound_by_cpu() { seconds } else { 0.0 };
            at += seconds;
            self.forget_served(at);
        }
    }

    /// How the queue moves from `at` on, and for how long at most `room` that holds.
    fn pace(&mut self, conditions: &Conditions, at: f64, room: f64) -> Pace {
        let (arrivals, capacity) = (conditions.arrival_rate(), conditions.capacity());
        let full = self.backlog >= conditions.queue_max() - NEGLIGIBLE;
        let joining = if full { arrivals.min(capacity) } else { arrivals };
        if joining > 0.0 {
            match self.waiting.back_mut() {
                Some(last) if last.rate.to_bits() == joining.to_bits() => {}
                _ => self.waiting.push_back(Parcel { from: at, to: at, rate: joining }),
            }
        }
        let Some(&head) = self.waiting.front() else {
            return Pace { head: 0.0, served: 0.0, given_up: 0.0, joining, lasts: room };
        };
        let is_last = self.waiting.len() == 1;
        let age = at - head.from;
        let overdue = age >= conditions.timeout_seconds() - 1e-9;
        let alone = capacity / head.rate;
        let pace = if overdue { alone.max(1.0) } else { alone };
        // What is beyond the timeout goes at once: a timeout that was just lowered leaves older requests behind.
        let given_up = if overdue { (1.0 - alone).max(0.0) * head.rate } else { 0.0 };
        let mut lasts = room;
        let growing = is_last && joining > 0.0;
        // The head's parcel ends, or the head meets the arrivals.
        let (left, closing) = if growing { (age, pace - 1.0) } else { (head.to - head.from, pace) };
        if closing > 0.0 {
            lasts = lasts.min(left / closing);
        }
        if !overdue && pace < 1.0 {
            lasts = lasts.min((conditions.timeout_seconds() - age) / (1.0 - pace));
        }
        let growth = joining - capacity - given_up;
        if !full && growth > 0.0 {
            lasts = lasts.min((conditions.queue_max() - self.backlog) / growth);
        }
        Pace { head: pace, served: capacity, given_up, joining, lasts }
    }

    /// Lets the queue move for `seconds`.
    fn serve(&mut self, conditions: &Conditions, tally: &mut Tally, at: f64, seconds: f64, pace: Pace) {
        if pace.joining > 0.0
            && let Some(last) = self.waiting.back_mut()
        {
            last.to = at + seconds;
        }
        if let Some(head) = self.waiting.front_mut() {
            let wait = at - head.from;
            head.from += pace.head * seconds;
            let change = (at + seconds - head.from) - wait;
            let scale = 0.1 * wait.max(1.0 / conditions.service_rate());
            let slices = libm::ceil(change.abs() / scale).clamp(1.0, SLICES_MAX);
            for slice in 0..slices as u32 {
                let middle = wait + change * (f64::from(slice) + 0.5) / slices;
                self.answer(conditions, tally, pace.served * seconds / slices, middle.max(0.0), 0.0);
            }
        }
        tally.timed_out += pace.given_up * seconds;
        self.backlog = (self.backlog + (pace.joining - pace.served - pace.given_up) * seconds).max(0.0);
    }

    /// Takes out what has been served.
    fn forget_served(&mut self, at: f64) {
        while self.waiting.front().is_some_and(|head| (head.to.min(at) - head.from) * head.rate < NEGLIGIBLE) {
            self.waiting.pop_front();
        }
        if self.waiting.is_empty() || self.backlog < NEGLIGIBLE {
            self.waiting.clear();
            self.backlog = 0.0;
        }
    }

    /// Counts `requests` that are answered after a wait of `extra_wait` seconds for those that came before.
    fn answer(&mut self, conditions: &Conditions, tally: &mut Tally, requests: f64, extra_wait: f64, since: f64) {
        if requests <= 0.0 {
            return;
        }
        let response = conditions.response_time(extra_wait, since);
        let given_up = requests * response.wait_beyond(conditions.timeout_seconds());
        let requests = requests - given_up;
        tally.completed += requests;
        tally.timed_out += given_up;
        match response {
            ResponseTime::Open { wait_probability, drain_rate, service_rate, extra_wait } if extra_wait <= 0.0 => {
                let mean_wait = response.mean_wait();
                let held = self.cell_of(wait_probability, drain_rate, service_rate);
                held.requests += requests;
                held.waiting += requests * wait_probability;
                held.waits += requests * mean_wait;
            }
            ResponseTime::Open { .. } | ResponseTime::Closed { .. } => match &mut self.last {
                Some((last, weight)) if *last == response => *weight += requests,
                last => {
                    if let Some((response, weight)) = last.replace((response, requests)) {
                        tally.histogram.add_response(weight, response);
                    }
                }
            },
        }
    }

    /// The cell in which requests are counted that meet this in a queue in equilibrium.
    fn cell_of(&mut self, wait_probability: f64, drain_rate: f64, service_rate: f64) -> &mut LatencyBucket {
        let met = [wait_probability, drain_rate, service_rate].map(f64::to_bits);
        let known = self.filling.filter(|(item, _)| *item == met).map(|(_, place)| place);
        let place = known.unwrap_or_else(|| {
            let cell = cell(wait_probability, drain_rate, service_rate);
            self.held.binary_search_by(|(item, _)| item.cmp(&cell)).unwrap_or_else(|place| {
                self.held.insert(place, (cell, LatencyBucket::default()));
                place
            })
        });
        self.filling = Some((met, place));
        &mut self.held[place].1
    }
}

/// The cell of a response time without a backlog.
fn cell(wait_probability: f64, drain_rate: f64, service_rate: f64) -> Cell {
    let waits = libm::round(wait_probability * WAIT_CELLS) as i32;
    let rate = if wait_probability > 0.0 { libm::round(libm::log(drain_rate) * RATE_CELLS) as i32 } else { 0 };
    (waits, rate, service_rate.to_bits())
}

/// The share of the time in which requests wait for a CPU that is used up.
fn throttled_share(conditions: &Conditions) -> f64 {
    if !conditions.is_bound_by_cpu() {
        return 0.0;
    }
    match conditions.response_time(0.0, f64::INFINITY) {
        ResponseTime::Open { wait_probability, .. } => wait_probability,
        ResponseTime::Closed { .. } => 0.0,
    }
}

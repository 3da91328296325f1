//! The requests to one workload: arrivals, servers, backlog, response times.

use std::borrow::Cow;

use super::histogram::LatencyHistogram;
use super::queueing::{ResponseTime, wait_probability};
use crate::domain::{SimDuration, SimTime};

/// What one request costs one replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Service {
    /// CPU time of one request, as time on one whole CPU.
    pub cpu_per_request: SimDuration,
    /// Requests that a replica serves at a time.
    pub concurrency: u32,
    /// Time of one request that is not CPU time.
    pub base_latency: SimDuration,
    /// The CPU limit of a replica in thousandths; `None` for no limit.
    pub cpu_limit_milli: Option<i64>,
}

/// Where requests come from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Source {
    /// Nobody asks.
    Idle,
    /// Arrivals at a rate per second that does not depend on the answers.
    Open {
        /// Requests per second.
        rate: f64,
    },
    /// A fixed number of clients, each of which sends the next request when the last is answered, without think time,
    /// until all requests are done.
    Closed {
        /// Clients.
        clients: u32,
        /// Requests still to be sent or answered.
        remaining: f64,
    },
}

/// The requests to one workload, as a fluid between changes of load or replicas.
///
/// Deviation: a replica's CPU limit bounds what it serves, the CPU of its node does not; a run in which pods used more CPU
/// than the nodes have warns of it.
///
/// Service times are exponential. A replica works on as many requests at a time as its concurrency and its CPU limit
/// allow, whichever is less.
#[derive(Clone, Debug)]
pub struct RequestModel {
    service: Service,
    source: Source,
    replicas: u32,
    backlog: f64,
    updated: SimTime,
    completed: f64,
    overloaded: SimDuration,
    histogram: LatencyHistogram,
    /// Requests answered under the present conditions and not yet in the histogram: filling it is dear, so it waits until
    /// the conditions change.
    held: Option<(ResponseTime, f64)>,
    first: Option<SimTime>,
    last: SimTime,
}

/// How many pieces a stretch with a changing backlog is cut into when its response times are recorded.
const SLICES: u32 = 16;

impl RequestModel {
    /// A model without load and without replicas.
    pub fn new(service: Service) -> Self {
        Self {
            service,
            source: Source::Idle,
            replicas: 0,
            backlog: 0.0,
            updated: SimTime::ZERO,
            completed: 0.0,
            overloaded: SimDuration::ZERO,
            histogram: LatencyHistogram::default(),
            held: None,
            first: None,
            last: SimTime::ZERO,
        }
    }

    /// Changes where requests come from, after bringing the model to `now`.
    pub fn set_source(&mut self, source: Source, now: SimTime) {
        self.advance(now);
        self.source = source;
        if source != Source::Idle && self.first.is_none() {
            self.first = Some(now);
        }
    }

    /// Changes what a request costs, after bringing the model to `now`.
    pub fn set_service(&mut self, service: Service, now: SimTime) {
        self.advance(now);
        self.service = service;
    }

    /// Changes the number of ready replicas, after bringing the model to `now`.
    pub fn set_replicas(&mut self, replicas: u32, now: SimTime) {
        self.advance(now);
        self.replicas = replicas;
    }

    /// Where requests come from at present.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Brings the model from its last change to `now`.
    pub fn advance(&mut self, now: SimTime) {
        let span = now.saturating_since(self.updated);
        self.updated = self.updated.max(now);
        let seconds = span.as_secs_f64();
        if seconds <= 0.0 || (self.source == Source::Idle && self.backlog <= 0.0) {
            return;
        }
        self.last = now;
        let capacity = self.capacity();
        match self.source {
            Source::Closed { clients, remaining } => {
                let done = (self.throughput() * seconds).min(remaining);
                self.source = Source::Closed { clients, remaining: remaining - done };
                self.record(done, 0.0);
                if f64::from(clients) > f64::from(self.servers()) {
                    self.overloaded += span;
                }
            }
            Source::Open { .. } | Source::Idle => {
                let arrivals = self.arrival_rate();
                if arrivals > capacity {
                    self.overloaded += span;
                }
                self.advance_open(seconds, arrivals, capacity);
            }
        }
    }

    /// When the model will change by itself: the backlog is gone, or the last request of a closed loop is answered.
    pub fn next_change(&self) -> Option<SimTime> {
        let seconds = match self.source {
            Source::Closed { remaining, .. } => remaining / self.throughput(),
            _ if self.backlog > 0.0 => {
                let drain = self.capacity() - self.arrival_rate();
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

    /// Whether a closed loop has had all its answers.
    pub fn is_finished(&self) -> bool {
        matches!(self.source, Source::Closed { remaining, .. } if remaining < 1e-3)
    }

    /// Requests answered per second at present.
    pub fn throughput(&self) -> f64 {
        match self.source {
            Source::Closed { clients, .. } => f64::from(clients.min(self.servers())) * self.service_rate(),
            _ if self.backlog > 0.0 => self.capacity(),
            _ => self.arrival_rate().min(self.capacity()),
        }
    }

    /// CPU that all replicas together use at present, in millionths of a CPU.
    pub fn cpu_use_micro(&self) -> i64 {
        let limit =
            self.service.cpu_limit_milli.map_or(f64::INFINITY, |milli| milli as f64 * 1e3 * f64::from(self.replicas));
        let asked = self.throughput() * self.service.cpu_per_request.as_micros() as f64;
        libm::round(asked.min(limit)) as i64
    }

    /// Response times at present; `None` when nothing is served.
    pub fn response_time(&self) -> Option<ResponseTime> {
        if self.throughput() <= 0.0 {
            return None;
        }
        Some(self.response_time_with(self.backlog))
    }

    /// What the requests so far experienced.
    pub fn histogram(&self) -> Cow<'_, LatencyHistogram> {
        let Some((response, requests)) = self.held else { return Cow::Borrowed(&self.histogram) };
        let mut histogram = self.histogram.clone();
        add(&mut histogram, response, requests);
        Cow::Owned(histogram)
    }

    /// Requests answered so far.
    pub fn completed(&self) -> f64 {
        self.completed
    }

    /// Requests that wait for a replica and were not answered.
    pub fn backlog(&self) -> f64 {
        self.backlog
    }

    /// Requests that wait for an answer: the backlog, or what a closed loop has still to do.
    pub fn unanswered(&self) -> f64 {
        match self.source {
            Source::Closed { remaining, .. } => remaining,
            _ => self.backlog,
        }
    }

    /// Time so far in which more was asked than the ready replicas could serve at once.
    pub fn overloaded(&self) -> SimDuration {
        self.overloaded
    }

    /// When load began and when it was last there.
    pub fn active_span(&self) -> Option<(SimTime, SimTime)> {
        self.first.map(|first| (first, self.last.max(first)))
    }

    /// Requests that all replicas together work on at a time. Where the CPU limit is reached before the concurrency,
    /// the requests beyond it wait for the CPU: they count as waiting, not as served.
    fn servers(&self) -> u32 {
        let servers = libm::floor(f64::from(self.replicas) * self.servers_per_replica() + 1e-9);
        if self.replicas == 0 { 0 } else { (servers as u32).max(1) }
    }

    /// Requests per second that one of these servers answers.
    fn service_rate(&self) -> f64 {
        match self.servers() {
            0 => 1.0 / self.alone_seconds(),
            servers => self.capacity() / f64::from(servers),
        }
    }

    fn capacity(&self) -> f64 {
        f64::from(self.replicas) * self.servers_per_replica() / self.alone_seconds()
    }

    fn servers_per_replica(&self) -> f64 {
        let cpu_seconds = self.service.cpu_per_request.as_secs_f64();
        let concurrency = f64::from(self.service.concurrency);
        match self.service.cpu_limit_milli {
            Some(milli) if cpu_seconds > 0.0 => {
                concurrency.min(self.alone_seconds() * milli as f64 / 1e3 / cpu_seconds)
            }
            _ => concurrency,
        }
    }

    /// Response time of a request that meets no other, at least a microsecond.
    fn alone_seconds(&self) -> f64 {
        (self.service.cpu_per_request + self.service.base_latency).as_secs_f64().max(1e-6)
    }

    fn arrival_rate(&self) -> f64 {
        match self.source {
            Source::Open { rate } => rate,
            _ => 0.0,
        }
    }

    fn advance_open(&mut self, seconds: f64, arrivals: f64, capacity: f64) {
        let growth = arrivals - capacity;
        if self.backlog <= 0.0 && growth <= 0.0 {
            self.record(arrivals * seconds, 0.0);
            return;
        }
        if capacity <= 0.0 {
            self.backlog += arrivals * seconds;
            return;
        }
        // Until the backlog is gone it changes in a straight line and the servers are all busy.
        let busy = if growth < 0.0 { seconds.min(self.backlog / -growth) } else { seconds };
        let slice = busy / f64::from(SLICES);
        for piece in 0..SLICES {
            let middle = self.backlog + growth * slice * (f64::from(piece) + 0.5);
            self.record(capacity * slice, middle.max(0.0));
        }
        self.backlog = (self.backlog + growth * busy).max(0.0);
        if self.backlog < 1e-6 {
            self.backlog = 0.0;
        }
        if seconds > busy {
            self.record(arrivals * (seconds - busy), 0.0);
        }
    }

    fn record(&mut self, requests: f64, backlog: f64) {
        if requests <= 0.0 {
            return;
        }
        let response = self.response_time_with(backlog);
        self.completed += requests;
        match &mut self.held {
            Some((held, weight)) if *held == response => *weight += requests,
            held => {
                if let Some((response, weight)) = held.replace((response, requests)) {
                    add(&mut self.histogram, response, weight);
                }
            }
        }
    }

    fn response_time_with(&self, backlog: f64) -> ResponseTime {
        let service_rate = self.service_rate();
        let servers = self.servers();
        if let Source::Closed { clients, .. } = self.source {
            return ResponseTime::Closed {
                ahead: clients.saturating_sub(servers),
                departure_rate: f64::from(servers) * service_rate,
                service_rate,
            };
        }
        let capacity = self.capacity();
        let offered = self.arrival_rate() / service_rate;
        if backlog > 0.0 || self.arrival_rate() >= capacity {
            let extra_wait = backlog / capacity;
            return ResponseTime::Open { wait_probability: 0.0, drain_rate: 1.0, service_rate, extra_wait };
        }
        let wait_probability = wait_probability(servers, offered);
        let drain_rate = capacity - self.arrival_rate();
        ResponseTime::Open { wait_probability, drain_rate, service_rate, extra_wait: 0.0 }
    }
}

/// Adds `requests` that were answered in `response`.
fn add(histogram: &mut LatencyHistogram, response: ResponseTime, requests: f64) {
    histogram.add_distribution(requests, response.mean(), |seconds| response.within(seconds));
}

#[cfg(test)]
mod tests {
    use super::{RequestModel, Service, Source};
    use crate::domain::{SimDuration, SimTime};

    fn model() -> RequestModel {
        RequestModel::new(Service {
            cpu_per_request: SimDuration::from_millis(10),
            concurrency: 16,
            base_latency: SimDuration::from_millis(20),
            cpu_limit_milli: Some(1_000),
        })
    }

    fn at(seconds: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(seconds)
    }

    #[test]
    fn a_closed_loop_saturates_one_replica_at_its_cpu_limit() {
        let mut model = model();
        model.set_replicas(1, at(0));
        model.set_source(Source::Closed { clients: 100, remaining: 1_000.0 }, at(0));
        assert_eq!(model.cpu_use_micro(), 1_000_000);
        assert!((model.throughput() - 100.0).abs() < 1e-9);
        // Little's law: 100 clients at 100 requests per second take a second each.
        let mean = model.response_time().map(|r| r.mean());
        assert!(mean.is_some_and(|mean| (mean - 1.0).abs() < 1e-9), "{mean:?}");
        let end = model.next_change();
        assert_eq!(end.map(SimTime::as_secs), Some(10));
        model.advance(end.unwrap_or(at(10)));
        assert!(model.is_finished());
        assert!((model.completed() - 1_000.0).abs() < 1e-3);
    }

    #[test]
    fn more_replicas_than_clients_need_leave_nobody_waiting() {
        let mut model = model();
        model.set_replicas(50, at(0));
        model.set_source(Source::Closed { clients: 100, remaining: 1e6 }, at(0));
        // Each CPU keeps up with three requests of 10 ms CPU in 30 ms: 150 servers for 100 clients.
        assert!((model.throughput() - 100.0 / 0.03).abs() < 1e-6);
        assert!(model.response_time().is_some_and(|r| (r.mean() - 0.03).abs() < 1e-9));
        model.set_replicas(10, at(1));
        assert_eq!(model.cpu_use_micro(), 10_000_000);
        assert!(model.response_time().is_some_and(|r| (r.mean() - 0.1).abs() < 1e-9));
    }

    #[test]
    fn an_overload_builds_a_backlog_that_drains_in_a_straight_line() {
        let mut model = model();
        model.set_replicas(1, at(0));
        model.set_source(Source::Open { rate: 150.0 }, at(0));
        model.set_replicas(2, at(10));
        assert!((model.backlog() - 500.0).abs() < 1e-6);
        assert_eq!(model.next_change().map(SimTime::as_secs), Some(20));
        model.advance(at(30));
        assert!(model.backlog().abs() < 1e-9);
        assert!((model.completed() - 4_500.0).abs() < 1e-3, "{}", model.completed());
        assert_eq!(model.overloaded(), SimDuration::from_secs(10));
    }

    #[test]
    fn without_replicas_requests_wait() {
        let mut model = model();
        model.set_source(Source::Open { rate: 5.0 }, at(0));
        model.set_replicas(1, at(10));
        assert!((model.backlog() - 50.0).abs() < 1e-9);
        assert_eq!(model.response_time().map(|r| r.mean() > 0.4), Some(true));
    }
}

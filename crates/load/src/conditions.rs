//! What requests meet: their cost, who sends them, how many replicas answer, and how fast these can go.

use std::sync::Arc;

use smallvec::SmallVec;

use super::queueing::{ResponseTime, closed, wait_probability};
use nodecast_model::domain::{Check, SimDuration, SimTime};

/// What one request costs one replica, and how long anybody waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Service {
    /// CPU time of one request, as time on one whole CPU.
    pub cpu_per_request: SimDuration,
    /// Requests that a replica serves at a time.
    pub concurrency: u32,
    /// Time of one request that is not CPU time.
    pub base_latency: SimDuration,
    /// How long a client waits for its request to be taken up before it gives up; `None` for ever.
    pub timeout: Option<SimDuration>,
    /// Requests that may wait at each Ready replica beyond those that it serves; further ones are refused at once, all of
    /// them where no replica is Ready. `None` for any number.
    pub queue_per_replica: Option<u32>,
    /// What a replica keeps in memory; `None` if that is not modelled.
    pub memory: Option<MemoryUse>,
}

/// What a replica keeps in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryUse {
    /// Bytes without any request.
    pub idle: i64,
    /// Bytes for each request that it works on or that waits for it.
    pub per_request: i64,
    /// Bytes that stay for every million requests that it has answered: a cache that fills, or a leak.
    pub kept_per_million: i64,
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
    /// A fixed number of clients, each of which sends the next request when the last is answered and it has paused, until
    /// all requests are done.
    Closed {
        /// Clients.
        clients: u32,
        /// Requests still to be sent or answered.
        remaining: f64,
        /// The mean pause, exponentially distributed; the first request of a client comes without.
        think_time: SimDuration,
    },
    /// Work of which nothing is known but the CPU that it takes; nobody waits for an answer.
    ///
    /// Deviation: CPU usage that a scenario sets (`cpu` of a load) may exceed the limits of the Ready replicas or the
    /// capacity of their nodes. The excess is dropped. Waiting requests would use it later.
    Cpu {
        /// Thousandths of a CPU, of all replicas together.
        milli: f64,
    },
}

/// Ready replicas, by their CPU limit: during a rollout not all need have the same.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replicas(SmallVec<[(Option<i64>, u32); 2]>); // in order of limit, none of them zero

impl Replicas {
    /// So many with one limit, in thousandths of a CPU; `None` for no limit.
    pub fn alike(count: u32, cpu_limit_milli: Option<i64>) -> Self {
        Self([(cpu_limit_milli, count)].into_iter().filter(|(_, count)| *count > 0).collect())
    }

    /// One more with this limit.
    pub fn add(&mut self, cpu_limit_milli: Option<i64>) {
        match self.0.binary_search_by_key(&cpu_limit_milli, |pair| pair.0) {
            Ok(place) => self.0[place].1 += 1,
            Err(place) => self.0.insert(place, (cpu_limit_milli, 1)),
        }
    }

    /// One fewer with this limit, if there is one.
    pub fn remove(&mut self, cpu_limit_milli: Option<i64>) {
        if let Ok(place) = self.0.binary_search_by_key(&cpu_limit_milli, |pair| pair.0) {
            self.0[place].1 -= 1;
            self.0.retain(|pair| pair.1 > 0);
        }
    }

    /// How many.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|pair| pair.1).sum()
    }

    /// The sum over the replicas of something that follows from the limit of one.
    fn sum(&self, of_one: impl Fn(Option<i64>) -> f64) -> f64 {
        self.0.iter().map(|&(limit, count)| f64::from(count) * of_one(limit)).sum()
    }
}

/// How arrivals are spaced.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Spacing {
    /// At random, independent of each other (a Poisson process).
    #[default]
    Poisson,
    /// Evenly.
    Even,
    /// At these instants, in order of time.
    Listed(Arc<[SimTime]>),
}

impl Spacing {
    /// Squared coefficient of variation of the time between two arrivals, which of a list is not known.
    fn variability(&self) -> f64 {
        match self {
            Self::Even => 0.0,
            Self::Poisson | Self::Listed(_) => 1.0,
        }
    }
}

/// Everything that decides how fast requests are answered at present.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// What one request costs.
    pub(super) service: Service,
    /// Where requests come from.
    pub(super) source: Source,
    /// How they are spaced.
    pub(super) spacing: Spacing,
    /// Ready replicas.
    pub(super) replicas: Replicas,
    /// CPU that the nodes leave to a replica on average, in thousandths; `None` for as much as it wants.
    pub(super) cpu_available_milli: Option<i64>,
    /// What follows from the others, as [`Conditions::settle`] left it.
    kept: CachedConditions,
    /// Whether that is worked out at each use too.
    pub(super) check: Check,
}

/// What is asked for many times between two changes.
#[derive(Clone, Copy, PartialEq, Debug)]
struct CachedConditions {
    pace: Pace,
    /// The probability that a request waits in equilibrium; 1 where there is none, and for a closed loop.
    wait_probability: f64,
}

/// How fast all replicas together are.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Pace {
    servers: u32,
    /// Requests per second of one server, and of all.
    service_rate: f64,
    capacity: f64,
    /// Whether the CPU, by the limit or by the nodes, is reached before the concurrency.
    is_bound_by_cpu: bool,
}

impl Conditions {
    /// Nobody asks and nobody answers.
    pub(super) fn new(service: Service) -> Self {
        let pace = Pace { servers: 0, service_rate: 0.0, capacity: 0.0, is_bound_by_cpu: false };
        let mut new = Self {
            service,
            source: Source::Idle,
            spacing: Spacing::Poisson,
            replicas: Replicas::default(),
            cpu_available_milli: None,
            kept: CachedConditions { pace, wait_probability: 1.0 },
            check: Check::AsBuilt,
        };
        new.settle();
        new
    }

    /// The same on nodes that have enough CPU.
    pub(super) fn with_enough_cpu(&self) -> Self {
        let mut free = Self { cpu_available_milli: None, ..self.clone() };
        free.settle();
        free
    }

    /// Whoever has changed anything else than what a closed loop has still to do settles what follows from it.
    pub(super) fn settle(&mut self) {
        self.kept = self.kept_anew();
    }

    fn kept_anew(&self) -> CachedConditions {
        let pace = self.pace_anew();
        let arrivals = self.arrival_rate();
        let in_equilibrium = !matches!(self.source, Source::Closed { .. }) && pace.capacity - arrivals > 0.0;
        let waits = || wait_probability(pace.servers, arrivals / pace.service_rate);
        CachedConditions { pace, wait_probability: if in_equilibrium { waits() } else { 1.0 } }
    }

    #[inline]
    fn kept(&self) -> &CachedConditions {
        if self.check.compares() {
            self.compare();
        }
        &self.kept
    }

    /// Apart from where it is asked for: a week of requests asks some ten million times.
    #[cold]
    fn compare(&self) {
        let (kept, anew) = (self.kept, self.kept_anew());
        self.check.hold(kept == anew, || format!("conditions of a load were settled as {kept:?} and are {anew:?}"));
    }

    /// What one request costs.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Requests that all replicas together work on at a time. Where the CPU limit is reached before the concurrency,
    /// the requests beyond it wait for the CPU: they count as waiting, not as served.
    pub fn servers(&self) -> u32 {
        self.pace().servers
    }

    /// Requests per second that one of these servers answers.
    pub fn service_rate(&self) -> f64 {
        self.pace().service_rate
    }

    /// Requests per second that all replicas together answer at most.
    pub fn capacity(&self) -> f64 {
        self.pace().capacity
    }

    #[inline]
    fn pace(&self) -> &Pace {
        &self.kept().pace
    }

    fn pace_anew(&self) -> Pace {
        let (all, alone) = (self.servers_of_all(), self.alone_seconds());
        let servers = if self.replicas.0.is_empty() { 0 } else { (libm::floor(all + 1e-9) as u32).max(1) };
        let capacity = all / alone;
        let service_rate = if servers == 0 { 1.0 / alone } else { capacity / f64::from(servers) };
        let is_bound_by_cpu = all < f64::from(self.replicas.count()) * f64::from(self.service.concurrency);
        Pace { servers, service_rate, capacity, is_bound_by_cpu }
    }

    /// Requests per second that arrive whatever the answers.
    pub fn arrival_rate(&self) -> f64 {
        match self.source {
            Source::Open { rate } => rate,
            _ => 0.0,
        }
    }

    /// Requests per second that a closed loop in equilibrium has answered; 0 without one.
    pub fn closed_throughput(&self) -> f64 {
        match self.source {
            Source::Closed { clients, think_time, .. } if think_time > SimDuration::ZERO && self.servers() > 0 => {
                f64::from(clients) / (think_time.as_secs_f64() + self.response_time(0.0, f64::INFINITY).mean())
            }
            Source::Closed { clients, .. } => f64::from(clients.min(self.servers())) * self.service_rate(),
            Source::Open { .. } | Source::Cpu { .. } | Source::Idle => 0.0,
        }
    }

    /// The share of the time in which requests of a closed loop wait.
    pub fn closed_waiting_share(&self) -> f64 {
        match self.response_time(0.0, f64::INFINITY) {
            // A state's share of departures is its share of time by how fast it is left.
            ResponseTime::Closed { wait_probability, departure_rate, .. } if wait_probability > 0.0 => {
                (wait_probability * self.closed_throughput() / departure_rate).min(1.0)
            }
            ResponseTime::Closed { .. } | ResponseTime::Open { .. } => 0.0,
        }
    }

    /// Most requests that may wait; infinite without a bound.
    pub fn queue_max(&self) -> f64 {
        let places = |each: u32| f64::from(each) * f64::from(self.replicas.count());
        self.service.queue_per_replica.map_or(f64::INFINITY, places)
    }

    /// Seconds after which a client gives up; infinite if it never does.
    pub fn timeout_seconds(&self) -> f64 {
        self.service.timeout.map_or(f64::INFINITY, SimDuration::as_secs_f64)
    }

    /// Whether the CPU, by the limit or by the nodes, is reached before the concurrency.
    pub fn is_bound_by_cpu(&self) -> bool {
        self.pace().is_bound_by_cpu
    }

    /// Whether the load is CPU, and more than the replicas may have.
    pub fn is_short_of_cpu(&self) -> bool {
        matches!(self.source, Source::Cpu { milli } if milli * 1e3 > self.cpu_micro(0.0) + 0.5)
    }

    /// CPU that `requests` per second use, and the work beside them, in millionths of a CPU, at most what the replicas may have.
    pub fn cpu_micro(&self, requests: f64) -> f64 {
        let most = |limit| self.cpu_bound_milli(limit).map_or(f64::INFINITY, |milli| milli as f64 * 1e3);
        let most = if self.replicas.count() == 0 { 0.0 } else { self.replicas.sum(most) };
        let work = if let Source::Cpu { milli } = self.source { milli * 1e3 } else { 0.0 };
        (requests * self.service.cpu_per_request.as_micros() as f64 + work).min(most)
    }

    /// The response time in equilibrium at these conditions, on top of a backlog of `extra_wait` seconds that everybody
    /// has to wait for. `since` is the time in seconds for which the conditions have held: near full use a queue needs
    /// long to reach its equilibrium, and the wait that could have built up by then bounds it.
    ///
    /// Source: Erlang C; the factor for the spacing of arrivals as by Allen and Cunneen; the bound is the growth of a queue
    /// at full use, with the square root of time.
    pub fn response_time(&self, extra_wait: f64, since: f64) -> ResponseTime {
        let CachedConditions { pace: Pace { servers, service_rate, capacity, .. }, wait_probability } = *self.kept();
        if let Source::Closed { clients, think_time, .. } = self.source {
            return closed_response_time(clients, think_time.as_secs_f64(), servers, service_rate);
        }
        let spare = capacity - self.arrival_rate();
        let built_up =
            libm::sqrt(2.0 * f64::from(servers.max(1)) * since.max(0.0) / service_rate) / f64::from(servers.max(1));
        if spare <= 0.0 {
            // No equilibrium: everybody waits, and the excess is in the backlog already.
            let waits = extra_wait <= 0.0 && built_up > 0.0;
            return ResponseTime::Open {
                wait_probability: if waits { 1.0 } else { 0.0 },
                drain_rate: if waits { 1.0 / built_up } else { 1.0 },
                service_rate,
                extra_wait,
            };
        }
        if extra_wait > 0.0 {
            return ResponseTime::Open { wait_probability: 0.0, drain_rate: spare, service_rate, extra_wait };
        }
        let mut drain_rate = spare * 2.0 / (1.0 + self.spacing.variability());
        if wait_probability > built_up * drain_rate && built_up > 0.0 {
            drain_rate = wait_probability / built_up;
        }
        ResponseTime::Open { wait_probability, drain_rate, service_rate, extra_wait }
    }

    /// Requests that all replicas together work on at a time, parts of one included.
    fn servers_of_all(&self) -> f64 {
        self.replicas.sum(|limit| self.servers_of_one(limit))
    }

    fn servers_of_one(&self, cpu_limit_milli: Option<i64>) -> f64 {
        let cpu_seconds = self.service.cpu_per_request.as_secs_f64();
        let concurrency = f64::from(self.service.concurrency);
        match self.cpu_bound_milli(cpu_limit_milli) {
            Some(milli) if cpu_seconds > 0.0 => {
                concurrency.min(self.alone_seconds() * milli as f64 / 1e3 / cpu_seconds)
            }
            _ => concurrency,
        }
    }

    /// The tighter of a replica's CPU limit and what the nodes leave.
    fn cpu_bound_milli(&self, cpu_limit_milli: Option<i64>) -> Option<i64> {
        match (cpu_limit_milli, self.cpu_available_milli) {
            (Some(limit), Some(available)) => Some(limit.min(available)),
            (one, other) => one.or(other),
        }
    }

    /// Response time of a request that meets no other, at least a microsecond.
    fn alone_seconds(&self) -> f64 {
        (self.service.cpu_per_request + self.service.base_latency).as_secs_f64().max(1e-6)
    }
}

/// The response time of a closed loop in equilibrium.
fn closed_response_time(clients: u32, think_seconds: f64, servers: u32, service_rate: f64) -> ResponseTime {
    let ahead = clients.saturating_sub(servers);
    let departure_rate = f64::from(servers) * service_rate;
    let wait_probability = match ahead {
        0 => 0.0,
        _ if think_seconds <= 0.0 => 1.0,
        _ => closed::wait_probability(clients, servers, 1.0 / (service_rate * think_seconds)),
    };
    ResponseTime::Closed {
        wait_probability,
        ahead,
        pausing: departure_rate * think_seconds,
        departure_rate,
        service_rate,
    }
}

//! A queue of messages and the workers that empty it: backlog, lag, waiting time.
//!
//! A fluid between changes of arrivals or workers: everything is constant or linear, so there is no time step. Messages are
//! worked on in order of arrival. Kafka's partitions are lanes of their own, each owned by one worker; any other queue is one
//! lane that all workers share.
//!
//! Deviation: a message takes the same time always, consumers of Kafka take over partitions at once, and what a queue reports
//! of itself is exact; SQS reports approximations.

use std::collections::VecDeque;

use crate::domain::{SimDuration, SimTime};

/// What one worker does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// Time that one message takes.
    pub time_per_message: SimDuration,
    /// CPU time of it.
    pub cpu_per_message: SimDuration,
    /// Messages that a worker works on at a time.
    pub concurrency: u32,
}

/// What happened to the messages of a queue.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct QueueHistory {
    /// Messages that arrived, those at the start included.
    pub arrived: f64,
    /// Messages worked on to the end.
    pub processed: f64,
    /// Most messages that waited at once.
    pub most_waiting: f64,
    /// When that was.
    pub most_waiting_at: SimTime,
    /// When nothing waited for the first time after that; `None` if something still does.
    pub drained_at: Option<SimTime>,
    /// Longest that the message at the head had waited.
    pub longest_wait: SimDuration,
    /// Waiting messages times seconds.
    waiting_seconds: f64,
}

impl QueueHistory {
    /// Mean time that a message waits before it is worked on, in seconds, by Little's law; `None` if none arrived.
    pub fn mean_wait_seconds(&self) -> Option<f64> {
        (self.arrived > 0.0).then(|| self.waiting_seconds / self.arrived)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    arrived: f64,
    /// Messages that nobody works on yet.
    waiting: f64,
    /// What its owner works off in a second, as long as something waits.
    capacity: f64,
    /// Messages that its owner can work on at a time.
    servers: f64,
}

/// A queue and its workers.
#[derive(Clone, Debug)]
pub struct WorkQueue {
    work: Work,
    lanes: Vec<Lane>,
    /// Whether each lane belongs to one worker.
    partitioned: bool,
    workers: u32,
    rate: f64,
    updated: SimTime,
    history: QueueHistory,
    /// Messages taken by Jobs and not finished.
    taken: f64,
    /// Points of the curve of arrivals whose messages still wait: instant and messages arrived by then.
    arrivals: VecDeque<(SimTime, f64)>,
}

/// What is smaller is rounding.
const NOTHING: f64 = 1e-6;

impl WorkQueue {
    /// A queue of `partitions` lanes (`None` for one that is not partitioned), in which `waiting` messages wait already.
    pub fn new(work: Work, partitions: Option<u32>, waiting: f64) -> Self {
        let count = partitions.unwrap_or(1).max(1) as usize;
        let each = waiting / count as f64;
        let lane = Lane { arrived: each, waiting: each, ..Lane::default() };
        Self {
            work,
            lanes: vec![lane; count],
            partitioned: partitions.is_some(),
            workers: 0,
            rate: 0.0,
            updated: SimTime::ZERO,
            history: QueueHistory { arrived: waiting, most_waiting: waiting, ..QueueHistory::default() },
            taken: 0.0,
            arrivals: VecDeque::from([(SimTime::ZERO, 0.0), (SimTime::ZERO, waiting)]),
        }
    }

    /// Messages arrive at `rate` per second from `now` on.
    pub fn set_rate(&mut self, rate: f64, now: SimTime) {
        self.advance(now);
        self.rate = rate;
        self.allot();
    }

    /// So many workers work from `now` on.
    pub fn set_workers(&mut self, workers: u32, now: SimTime) {
        self.advance(now);
        self.workers = workers;
        self.allot();
    }

    /// Brings the queue from its last change to `now`.
    pub fn advance(&mut self, now: SimTime) {
        while self.updated < now {
            let until = self.next_change().map_or(now, |change| change.min(now));
            self.run(until);
            self.allot();
        }
    }

    /// When the queue changes by itself: a lane has nothing waiting any more.
    pub fn next_change(&self) -> Option<SimTime> {
        let arrivals = self.rate / self.lanes.len() as f64;
        let seconds = self
            .lanes
            .iter()
            .filter(|lane| lane.waiting > NOTHING && lane.capacity > arrivals)
            .map(|lane| lane.waiting / (lane.capacity - arrivals))
            .min_by(f64::total_cmp)?;
        // A century is never.
        (seconds < 3.2e9).then(|| self.updated + SimDuration::from_secs_f64(seconds) + SimDuration::RESOLUTION)
    }

    fn run(&mut self, until: SimTime) {
        let seconds = (until - self.updated).as_secs_f64();
        let arrivals = self.rate / self.lanes.len() as f64;
        let before = self.waiting();
        for lane in &mut self.lanes {
            lane.arrived += arrivals * seconds;
            let done = if lane.waiting > NOTHING { lane.capacity } else { lane.capacity.min(arrivals) } * seconds;
            let there = lane.waiting + arrivals * seconds;
            let done = done.min(there);
            lane.waiting = there - done;
            if lane.waiting <= NOTHING {
                lane.waiting = 0.0;
            }
            self.history.processed += done;
        }
        self.history.arrived += self.rate * seconds;
        self.updated = until;
        self.arrivals.push_back((until, self.history.arrived));
        self.history.waiting_seconds += (before + self.waiting()) / 2.0 * seconds;
        self.note_waiting();
    }

    fn note_waiting(&mut self) {
        let (waiting, now) = (self.waiting(), self.updated);
        if waiting > self.history.most_waiting {
            self.history.most_waiting = waiting;
            self.history.most_waiting_at = now;
            self.history.drained_at = None;
        } else if waiting <= NOTHING && self.history.most_waiting > NOTHING && self.history.drained_at.is_none() {
            self.history.drained_at = Some(now);
        }
        self.history.longest_wait = self.history.longest_wait.max(self.age_of_head());
    }

    /// How long the message at the head has waited.
    fn age_of_head(&mut self) -> SimDuration {
        let begun = self.history.arrived - self.waiting();
        while self.arrivals.len() > 2 && self.arrivals[1].1 <= begun {
            self.arrivals.pop_front();
        }
        if self.waiting() <= NOTHING {
            return SimDuration::ZERO;
        }
        let (Some(&(from, low)), Some(&(to, high))) = (self.arrivals.front(), self.arrivals.get(1)) else {
            return SimDuration::ZERO;
        };
        let share = if high > low { ((begun - low) / (high - low)).clamp(0.0, 1.0) } else { 1.0 };
        let arrived = from + SimDuration::from_secs_f64((to - from).as_secs_f64() * share);
        self.updated.saturating_since(arrived)
    }

    /// Shares the workers out over the lanes. A worker that owns several partitions gives to those that need less than their
    /// share what they need, and the rest to the others.
    fn allot(&mut self) {
        let (rate_of_one, servers_of_one) =
            (f64::from(self.work.concurrency) / self.seconds_per_message(), f64::from(self.work.concurrency));
        if !self.partitioned {
            let workers = f64::from(self.workers);
            self.lanes[0].capacity = workers * rate_of_one;
            self.lanes[0].servers = workers * servers_of_one;
            return;
        }
        let arrivals = self.rate / self.lanes.len() as f64;
        let (partitions, consumers) = (self.lanes.len(), (self.workers as usize).min(self.lanes.len()));
        for lane in &mut self.lanes {
            (lane.capacity, lane.servers) = (0.0, 0.0);
        }
        let mut first = 0;
        for consumer in 0..consumers {
            let owned = partitions / consumers + usize::from(consumer < partitions % consumers);
            let lanes = &mut self.lanes[first..first + owned];
            first += owned;
            let calm = lanes.iter().filter(|lane| lane.waiting <= NOTHING).count();
            let fair = rate_of_one / owned as f64;
            // What lanes without a backlog leave over goes to those with one.
            let frugal = if arrivals < fair { calm } else { 0 };
            let busy = (owned - frugal).max(1) as f64;
            let rest = rate_of_one - arrivals * frugal as f64;
            for lane in lanes.iter_mut() {
                let is_frugal = arrivals < fair && lane.waiting <= NOTHING;
                lane.capacity = if is_frugal { fair } else { rest / busy };
                lane.servers = servers_of_one / owned as f64;
            }
        }
    }

    fn seconds_per_message(&self) -> f64 {
        self.work.time_per_message.as_secs_f64().max(1e-6)
    }

    /// Messages that nobody works on yet.
    pub fn waiting(&self) -> f64 {
        self.lanes.iter().map(|lane| lane.waiting).sum()
    }

    /// Messages that are being worked on.
    pub fn in_flight(&self) -> f64 {
        let arrivals = self.rate / self.lanes.len() as f64;
        let own: f64 = self.lanes.iter().map(|lane| self.in_flight_of(lane, arrivals)).sum();
        own + self.taken
    }

    fn in_flight_of(&self, lane: &Lane, arrivals: f64) -> f64 {
        if lane.waiting > NOTHING { lane.servers } else { lane.capacity.min(arrivals) * self.seconds_per_message() }
    }

    /// Messages that arrive in a second.
    pub fn arrival_rate(&self) -> f64 {
        self.rate
    }

    /// Messages that are worked off in a second.
    pub fn throughput(&self) -> f64 {
        let arrivals = self.rate / self.lanes.len() as f64;
        let rate = |lane: &Lane| if lane.waiting > NOTHING { lane.capacity } else { lane.capacity.min(arrivals) };
        self.lanes.iter().map(rate).sum()
    }

    /// CPU that all workers together use, in millionths of a CPU.
    pub fn cpu_use_micro(&self) -> i64 {
        libm::round(self.throughput() * self.work.cpu_per_message.as_micros() as f64) as i64
    }

    /// Of each partition the offset behind its last message, and the offset up to which it is worked off.
    pub fn offsets(&self) -> Vec<(i64, i64)> {
        let arrivals = self.rate / self.lanes.len() as f64;
        let offsets = |lane: &Lane| {
            let latest = libm::floor(lane.arrived + NOTHING) as i64;
            let undone = libm::floor(lane.waiting + self.in_flight_of(lane, arrivals) + NOTHING) as i64;
            (latest, (latest - undone).max(0))
        };
        self.lanes.iter().map(offsets).collect()
    }

    /// A Job takes up to `most` whole messages; returns how many it got. It works on them by itself.
    pub fn take(&mut self, most: u32, now: SimTime) -> u32 {
        self.advance(now);
        let mut got = 0;
        for lane in &mut self.lanes {
            let own = (libm::floor(lane.waiting + NOTHING) as u32).min(most - got);
            lane.waiting = (lane.waiting - f64::from(own)).max(0.0);
            got += own;
        }
        self.taken += f64::from(got);
        self.note_waiting();
        got
    }

    /// A Job has finished `count` messages that it took.
    pub fn finish(&mut self, count: u32, now: SimTime) {
        self.advance(now);
        self.taken = (self.taken - f64::from(count)).max(0.0);
        self.history.processed += f64::from(count);
    }

    /// A Job gives `count` messages back that it took and did not finish.
    pub fn give_back(&mut self, count: u32, now: SimTime) {
        self.advance(now);
        self.taken = (self.taken - f64::from(count)).max(0.0);
        self.lanes[0].waiting += f64::from(count);
        self.note_waiting();
    }

    /// What happened so far.
    pub fn history(&self) -> QueueHistory {
        self.history
    }
}

#[cfg(test)]
mod tests {
    use super::{Work, WorkQueue};
    use crate::domain::{SimDuration, SimTime};

    fn at(seconds: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(seconds)
    }

    fn work(concurrency: u32) -> Work {
        Work {
            time_per_message: SimDuration::from_secs(2),
            cpu_per_message: SimDuration::from_millis(500),
            concurrency,
        }
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-3, "{found}, not {expected}");
    }

    #[test]
    fn a_backlog_grows_and_drains_in_straight_lines() {
        let mut queue = WorkQueue::new(work(1), None, 0.0);
        queue.set_rate(10.0, at(0));
        queue.set_workers(4, at(100));
        near(queue.waiting(), 1_000.0);
        near(queue.in_flight(), 4.0);
        // Four workers do 2 a second; thirty do 15, 5 more than arrive.
        queue.set_workers(30, at(200));
        near(queue.waiting(), 1_800.0);
        assert_eq!(queue.next_change().map(SimTime::as_secs), Some(560));
        queue.advance(at(600));
        near(queue.waiting(), 0.0);
        near(queue.in_flight(), 20.0);
        assert_eq!(queue.cpu_use_micro(), 5_000_000);
        let history = queue.history();
        near(history.arrived, 6_000.0);
        near(history.processed, 6_000.0);
        near(history.most_waiting, 1_800.0);
        assert_eq!(history.drained_at.map(SimTime::as_secs), Some(560));
        // 50,000 + 140,000 + 324,000 message seconds.
        near(history.mean_wait_seconds().unwrap_or(0.0), 514_000.0 / 6_000.0);
        // At second 200 the 200 messages of the first 20 seconds are begun: the head has waited for 180 s.
        assert_eq!(history.longest_wait.as_secs(), 180);
    }

    #[test]
    fn a_partition_has_one_consumer_at_most() {
        let mut queue = WorkQueue::new(work(1), Some(4), 400.0);
        queue.set_workers(9, at(0));
        near(queue.throughput(), 2.0);
        queue.advance(at(100));
        assert_eq!(queue.offsets(), [(100, 49); 4], "50 done each, one of them in the works");
        // Three consumers: one of them owns two partitions, which it works off at half the pace each.
        queue.set_workers(3, at(100));
        near(queue.throughput(), 1.5);
        queue.advance(at(140));
        let done: Vec<i64> = queue.offsets().iter().map(|(latest, committed)| latest - committed).collect();
        assert_eq!(done, [40, 40, 31, 31]);
        queue.advance(at(400));
        near(queue.waiting(), 0.0);
    }

    #[test]
    fn jobs_take_whole_messages_and_finish_them_later() {
        let mut queue = WorkQueue::new(work(1), None, 2.5);
        assert_eq!(queue.take(2, at(0)), 2);
        assert_eq!(queue.take(2, at(0)), 0);
        near(queue.waiting(), 0.5);
        near(queue.in_flight(), 2.0);
        queue.finish(1, at(5));
        queue.give_back(1, at(6));
        near(queue.waiting(), 1.5);
        near(queue.in_flight(), 0.0);
        near(queue.history().processed, 1.0);
    }

    #[test]
    fn without_workers_everything_waits() {
        let mut queue = WorkQueue::new(work(3), None, 0.0);
        queue.set_rate(0.25, at(0));
        queue.advance(at(10));
        near(queue.waiting(), 2.5);
        assert_eq!(queue.next_change(), None);
        assert_eq!(queue.history().longest_wait.as_secs(), 10);
    }
}

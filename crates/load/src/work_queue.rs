//! A queue of messages and the workers that empty it: backlog, lag, waiting time.
//!
//! A fluid between changes of arrivals or workers: everything is constant or linear, so there is no time step. Messages are
//! worked on in order of arrival. Kafka's partitions are lanes of their own, each owned by one worker; any other queue is one
//! lane that all workers share.
//!
//! A message that is not done waits, or a worker has it: never both. What is being worked on has been begun evenly over the last
//! [`Work::time_per_message`], so that it is done at that pace, and at another only once what was begun since is due: when more
//! arrive, the first of them are done one such time later; when the backlog is gone, what is in the works drains in one.
//!
//! Deviation: every message takes the same time, workers prefetch no message, and consumers of Kafka take over
//! partitions at once. The metrics of a queue are exact; SQS reports approximations.
//!
//! Deviation: the messages of a worker that ends wait again at once. SQS shows them again after their visibility
//! timeout.

use std::collections::VecDeque;

use nodecast_model::domain::{SimDuration, SimTime};

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
    /// Messages that are not done and that no Job has taken: those that wait and those that a worker has.
    unfinished: f64,
    /// Messages that its owner can work on at a time.
    servers: f64,
    /// Messages that are done in a second, until what is in the works comes to what it is heading for.
    pace: f64,
}

impl Lane {
    /// Messages that a worker has.
    fn in_flight(&self) -> f64 {
        self.unfinished.min(self.servers)
    }

    /// Messages that nobody works on yet.
    fn waiting(&self) -> f64 {
        self.unfinished - self.in_flight()
    }

    /// The number of unfinished messages at which its pace changes next if `arrivals` come in a second and each takes
    /// `seconds`: where nothing waits any more, else where as many are done as arrive. `None` if it goes on as it is.
    fn heading(&self, arrivals: f64, seconds: f64) -> Option<f64> {
        if self.unfinished > self.servers + NOTHING {
            return (self.pace > arrivals).then_some(self.servers);
        }
        let steady = (arrivals * seconds).min(self.servers);
        ((self.unfinished - steady).abs() > NOTHING).then_some(steady)
    }

    /// Sets the pace after a change: that of messages begun evenly over the last `seconds`. What was already on its way to a
    /// level goes on as it did, so that being looked at or given a worker that it does not need changes nothing.
    fn keep_pace(&mut self, arrivals: f64, seconds: f64) {
        let even = self.in_flight() / seconds;
        self.pace = match self.heading(arrivals, seconds) {
            Some(_) if self.unfinished > self.servers + NOTHING => even,
            Some(goal) if self.unfinished > goal => self.pace.max(even).min(self.servers / seconds),
            Some(_) => self.pace.min(even),
            None => even,
        };
    }

    /// Lives through `seconds` in which `arrivals` come in a second; how many messages are done.
    fn run(&mut self, seconds: f64, arrivals: f64, heading: Option<f64>) -> f64 {
        self.arrived += arrivals * seconds;
        let there = self.unfinished + arrivals * seconds;
        let left = there - self.pace * seconds;
        let left = match heading {
            Some(goal) if (left - goal).abs() <= NOTHING || (left < goal) != (self.unfinished < goal) => goal,
            _ => left.max(0.0),
        };
        self.unfinished = left;
        there - left
    }

    /// Whole messages that are not done: those that have come whole, but for those that are done to the end.
    fn whole_unfinished(&self) -> i64 {
        let (latest, done) = self.offsets();
        latest - done
    }

    /// Whole messages that have come, and those of them that are done or taken by Jobs.
    fn offsets(&self) -> (i64, i64) {
        let whole = |messages: f64| libm::floor(messages + NOTHING) as i64;
        (whole(self.arrived), whole(self.arrived - self.unfinished))
    }
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
    /// Messages that Jobs are through with in a second, over the time that each takes for what it took.
    pace_of_jobs: f64,
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
        let lane = Lane { arrived: each, unfinished: each, ..Lane::default() };
        Self {
            work,
            lanes: vec![lane; count],
            partitioned: partitions.is_some(),
            workers: 0,
            rate: 0.0,
            updated: SimTime::ZERO,
            history: QueueHistory { arrived: waiting, most_waiting: waiting, ..QueueHistory::default() },
            taken: 0.0,
            pace_of_jobs: 0.0,
            arrivals: VecDeque::from([(SimTime::ZERO, 0.0), (SimTime::ZERO, waiting)]),
        }
    }

    /// Messages arrive at `rate` per second from `now` on.
    pub fn set_rate(&mut self, rate: f64, now: SimTime) {
        self.advance(now);
        self.rate = rate;
        self.allot();
    }

    /// So many workers work from `now` on. New ones take what waits at once.
    pub fn set_workers(&mut self, workers: u32, now: SimTime) {
        self.advance(now);
        self.workers = workers;
        self.allot();
        self.note_waiting();
    }

    /// Brings the queue from its last change to `now`.
    pub fn advance(&mut self, now: SimTime) {
        while self.updated < now {
            let next = self.next_change();
            self.run(next.map_or(now, |change| change.min(now)));
            // At any other instant everything goes on as it does, however often somebody looks.
            if next.is_some_and(|change| change <= now) {
                self.allot();
            }
        }
    }

    /// When the queue changes by itself: a lane has nothing waiting any more, or as many messages are done as arrive.
    pub fn next_change(&self) -> Option<SimTime> {
        let (arrivals, each) = (self.arrivals_of_lane(), self.seconds_per_message());
        let until = |lane: &Lane| {
            let goal = lane.heading(arrivals, each)?;
            Some((goal - lane.unfinished) / (arrivals - lane.pace))
        };
        // Whoever heads for a level comes nearer to it, but for rounding.
        let seconds = self.lanes.iter().filter_map(until).filter(|seconds| *seconds >= 0.0).min_by(f64::total_cmp)?;
        // A century is never.
        (seconds < 3.2e9).then(|| self.updated + SimDuration::from_secs_f64(seconds) + SimDuration::RESOLUTION)
    }

    fn run(&mut self, until: SimTime) {
        let seconds = (until - self.updated).as_secs_f64();
        let (arrivals, each) = (self.arrivals_of_lane(), self.seconds_per_message());
        let before = self.waiting();
        for lane in &mut self.lanes {
            let heading = lane.heading(arrivals, each);
            self.history.processed += lane.run(seconds, arrivals, heading);
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

    /// Shares the workers out over the lanes, and lets each be worked off at the pace of what is in the works.
    fn allot(&mut self) {
        if self.partitioned {
            self.allot_partitions();
        } else {
            self.lanes[0].servers = f64::from(self.workers) * f64::from(self.work.concurrency);
        }
        let (arrivals, each) = (self.arrivals_of_lane(), self.seconds_per_message());
        for lane in &mut self.lanes {
            lane.keep_pace(arrivals, each);
        }
    }

    /// A worker that owns several partitions gives to those that need less than their share what they need, and the rest to
    /// the others.
    fn allot_partitions(&mut self) {
        let servers_of_one = f64::from(self.work.concurrency);
        let steady = self.arrivals_of_lane() * self.seconds_per_message();
        let (partitions, consumers) = (self.lanes.len(), (self.workers as usize).min(self.lanes.len()));
        for lane in &mut self.lanes {
            lane.servers = 0.0;
        }
        let mut first = 0;
        for consumer in 0..consumers {
            let owned = partitions / consumers + usize::from(consumer < partitions % consumers);
            let lanes = &mut self.lanes[first..first + owned];
            first += owned;
            let fair = servers_of_one / owned as f64;
            // What lanes without a backlog leave over goes to those with one.
            let needs_less = |lane: &&Lane| steady < fair && lane.unfinished <= fair + NOTHING;
            let frugal = lanes.iter().filter(needs_less).count();
            let needed: f64 = lanes.iter().filter(needs_less).map(|lane| lane.unfinished.max(steady)).sum();
            let rest = (servers_of_one - needed).max(0.0) / (owned - frugal).max(1) as f64;
            for lane in lanes.iter_mut() {
                lane.servers = if needs_less(&&*lane) { fair } else { rest.max(fair) };
            }
        }
    }

    fn seconds_per_message(&self) -> f64 {
        self.work.time_per_message.as_secs_f64().max(1e-6)
    }

    /// Messages that arrive in a lane in a second.
    fn arrivals_of_lane(&self) -> f64 {
        self.rate / self.lanes.len() as f64
    }

    /// Messages that nobody works on yet.
    pub fn waiting(&self) -> f64 {
        self.lanes.iter().map(Lane::waiting).sum()
    }

    /// Messages that are being worked on; none of them waits.
    pub fn in_flight(&self) -> f64 {
        self.lanes.iter().map(Lane::in_flight).sum::<f64>() + self.taken
    }

    /// Whole messages that wait, and those that are being worked on, as the queue reports them. A message counts from when it
    /// has come until it is done to the end.
    pub fn messages(&self) -> (i64, i64) {
        let (mut waiting, mut in_flight) = (0, libm::round(self.taken) as i64);
        for lane in &self.lanes {
            let unfinished = lane.whole_unfinished();
            let working = unfinished.min(libm::ceil(lane.servers - NOTHING) as i64);
            waiting += unfinished - working;
            in_flight += working;
        }
        (waiting, in_flight)
    }

    /// Messages that arrive in a second.
    pub fn arrival_rate(&self) -> f64 {
        self.rate
    }

    /// Messages that are done in a second.
    pub fn throughput(&self) -> f64 {
        self.lanes.iter().map(|lane| lane.pace).sum::<f64>() + self.pace_of_jobs
    }

    /// Messages that a Job is through with in a second that took `count`: as many at a time as it works on at once.
    fn pace_of_job(&self, count: u32) -> f64 {
        let rounds = count.div_ceil(self.work.concurrency.max(1)).max(1);
        f64::from(count) / (f64::from(rounds) * self.seconds_per_message())
    }

    /// So many messages are no longer with Jobs, which worked on them at `pace`.
    fn leave_jobs(&mut self, count: u32, pace: f64) {
        self.taken = (self.taken - f64::from(count)).max(0.0);
        self.pace_of_jobs = if self.taken > NOTHING { (self.pace_of_jobs - pace).max(0.0) } else { 0.0 };
    }

    /// Messages that workers take in a second.
    pub fn delivery_rate(&self) -> f64 {
        let arrivals = self.arrivals_of_lane();
        self.lanes.iter().map(|lane| if lane.waiting() > NOTHING { lane.pace } else { arrivals }).sum()
    }

    /// CPU that all workers together use until the next change, in millionths of a CPU: that of what is in the works, by its
    /// mean where that changes.
    pub fn cpu_use_micro(&self) -> i64 {
        let (arrivals, each) = (self.arrivals_of_lane(), self.seconds_per_message());
        let working = |lane: &Lane| match lane.heading(arrivals, each) {
            Some(goal) if lane.waiting() <= NOTHING => (lane.unfinished + goal) / 2.0,
            _ => lane.in_flight(),
        };
        let messages_per_second = self.lanes.iter().map(working).sum::<f64>() / each;
        libm::round(messages_per_second * self.work.cpu_per_message.as_micros() as f64) as i64
    }

    /// Of each partition the offset behind its last message, and the offset up to which it is worked off.
    pub fn offsets(&self) -> Vec<(i64, i64)> {
        self.lanes.iter().map(Lane::offsets).collect()
    }

    /// A Job takes up to `most` whole messages; returns how many it got. It works on them by itself.
    pub fn take(&mut self, most: u32, now: SimTime) -> u32 {
        self.advance(now);
        let mut got = 0;
        for lane in &mut self.lanes {
            let floor = (libm::floor(lane.waiting() + NOTHING) as u32).min(most - got);
            lane.unfinished = (lane.unfinished - f64::from(floor)).max(0.0);
            got += floor;
        }
        self.taken += f64::from(got);
        self.pace_of_jobs += self.pace_of_job(got);
        self.note_waiting();
        got
    }

    /// A Job has had `count` messages since before the run began; they count among those of its start.
    pub fn find_taken(&mut self, count: u32, now: SimTime) -> u32 {
        self.advance(now);
        self.history.arrived += f64::from(count);
        self.taken += f64::from(count);
        self.pace_of_jobs += self.pace_of_job(count);
        count
    }

    /// A Job has finished `count` messages that it took.
    pub fn finish(&mut self, count: u32, now: SimTime) {
        self.advance(now);
        self.leave_jobs(count, self.pace_of_job(count));
        self.history.processed += f64::from(count);
    }

    /// Jobs give `count` messages back that they took and did not finish.
    pub fn give_back(&mut self, count: u32, now: SimTime) {
        self.advance(now);
        // Several may have had them: their part of the pace is that of the messages.
        let pace = self.pace_of_jobs * f64::from(count) / self.taken.max(f64::from(count)).max(1.0);
        self.leave_jobs(count, pace);
        self.lanes[0].unfinished += f64::from(count);
        self.allot();
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
    use nodecast_model::domain::{SimDuration, SimTime};

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
        // Four of the thousand messages are taken at once.
        near(queue.waiting(), 996.0);
        near(queue.in_flight(), 4.0);
        // Four workers do 2 a second; thirty do 15, 5 more than arrive.
        queue.set_workers(30, at(200));
        near(queue.waiting(), 1_770.0);
        assert_eq!(queue.next_change().map(SimTime::as_secs), Some(554));
        queue.advance(at(600));
        near(queue.waiting(), 0.0);
        near(queue.in_flight(), 20.0);
        assert_eq!(queue.cpu_use_micro(), 5_000_000);
        let history = queue.history();
        near(history.arrived, 6_000.0);
        near(history.processed, 5_980.0);
        near(history.most_waiting, 1_796.0);
        assert_eq!(history.drained_at.map(SimTime::as_secs), Some(554));
        // 50,000 + 139,600 + 313,290 message seconds.
        near(history.mean_wait_seconds().unwrap_or(0.0), 502_890.0 / 6_000.0);
        // At second 200 the 204 messages of the first 20.4 seconds are begun: the head has waited for 179.6 s.
        assert_eq!(history.longest_wait.as_secs(), 179);
    }

    #[test]
    fn message_is_either_waiting_or_in_progress() {
        let minute = Work { time_per_message: SimDuration::from_secs(60), ..work(1) };
        let mut queue = WorkQueue::new(minute, None, 100.0);
        assert_eq!(queue.messages(), (100, 0));
        // Workers come, are lost and come again; nothing arrives, so that what there is only ever gets less.
        let mut left = 100;
        for (second, workers) in (1..1_000).map(|second| (second, [1, 7, 40, 3, 300][second as usize / 17 % 5])) {
            queue.set_workers(workers, at(second));
            let (waiting, in_flight) = queue.messages();
            assert!((0..=i64::from(workers)).contains(&in_flight) && waiting >= 0, "{waiting} {in_flight}");
            assert!(waiting + in_flight <= left, "{waiting} and {in_flight} of {left} after {second} s");
            near(queue.waiting() + queue.in_flight() + queue.history().processed, 100.0);
            left = waiting + in_flight;
        }
        assert_eq!(left, 0);
    }

    #[test]
    fn message_in_progress_counts_until_done() {
        let mut queue = WorkQueue::new(work(1), None, 1.0);
        queue.set_workers(5, at(0));
        for millis in 1..20 {
            queue.advance(at(0) + SimDuration::from_millis(millis * 100));
            assert_eq!(queue.messages(), (0, 1));
        }
        queue.advance(at(3));
        assert_eq!((queue.messages(), queue.next_change()), ((0, 0), None));
    }

    #[test]
    fn earliest_messages_finish_after_service_time() {
        let slow = Work { time_per_message: SimDuration::from_secs(100), ..work(1) };
        let mut queue = WorkQueue::new(slow, None, 0.0);
        queue.set_workers(1_000, at(0));
        queue.set_rate(2.0, at(0));
        // None is done for 100 s, then as many as arrive; workers use CPU from the first on.
        near(queue.throughput(), 0.0);
        assert_eq!(queue.cpu_use_micro(), 500_000, "half of what it comes to, over those 100 s");
        queue.advance(at(50));
        near(queue.in_flight(), 100.0);
        queue.advance(at(150));
        near(queue.in_flight(), 200.0);
        near(queue.throughput(), 2.0);
        assert_eq!(queue.cpu_use_micro(), 1_000_000);
        // When no more come, the last is done 100 s after it was taken.
        queue.set_rate(0.0, at(200));
        assert_eq!(queue.next_change().map(SimTime::as_secs), Some(300));
        queue.advance(at(301));
        near(queue.in_flight(), 0.0);
        near(queue.history().processed, 400.0);
    }

    #[test]
    fn a_partition_has_one_consumer_at_most() {
        let mut queue = WorkQueue::new(work(1), Some(4), 400.0);
        queue.set_workers(9, at(0));
        near(queue.throughput(), 2.0);
        queue.advance(at(100));
        assert_eq!(queue.offsets(), [(100, 50); 4], "50 done each; the lag is what is in the works and what waits");
        near(queue.waiting() + queue.in_flight(), 200.0);
        // Three consumers: one of them owns two partitions, which it works off at half the pace each.
        queue.set_workers(3, at(100));
        near(queue.throughput(), 1.5);
        queue.advance(at(140));
        let lags: Vec<i64> = queue.offsets().iter().map(|(latest, committed)| latest - committed).collect();
        assert_eq!(lags, [40, 40, 30, 30]);
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
        // A Job with two messages works on one after the other, for two seconds each.
        near(queue.throughput(), 0.5);
        queue.give_back(1, at(4));
        near(queue.throughput(), 0.25);
        queue.finish(1, at(5));
        near(queue.throughput(), 0.0);
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

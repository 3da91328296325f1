//! What a page asks for: a state with its seeds, one after the other, as events. A page that asks for another no longer wants the first,
//! and a simulation that nobody wants ends at its next event.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::http::Events;
use super::session::{Key, Session, lock, told};
use crate::experiment::axes::Setting;
use crate::experiment::points::{Point, seeds};
use crate::experiment::presentation::studio::held;
use crate::scenario::Scenario;

/// Numbers of seeds at which the page is told; and in the end.
const TOLD_AT: [usize; 5] = [1, 3, 5, 10, 15];
/// Reports that may be made at once: a page and what it is held against.
const ASIDE_MAX: usize = 3;
/// Pages that may ask at once.
const PAGES_MAX: usize = 32;

/// A state, or what it is held against.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub setting: Setting,
    pub key: Key,
}

/// What a page asks for.
pub(super) struct Job {
    unwanted: AtomicBool,
    /// Whether all has been told.
    over: AtomicBool,
    begun: Instant,
    /// How long it took until a thread took it up: the time that the job before it needed to let go, if all were busy.
    taken_up: OnceLock<Duration>,
    /// The state, and what it is held against.
    sides: [Side; 2],
    scenarios: [OnceLock<Result<Arc<Scenario>, String>>; 2],
    seeds: Vec<u64>,
    /// What is to be simulated: a side with a seed.
    cells: Vec<(usize, u64)>,
    next: AtomicUsize,
    /// How many are done.
    done: AtomicUsize,
    found: Mutex<JobState>,
}

/// What is there already.
struct JobState {
    points: [BTreeMap<u64, Arc<Point>>; 2],
    /// How many seeds the page knows of.
    told: usize,
    /// The page; nothing when all has been told.
    page: Option<UnboundedSender<Bytes>>,
}

/// The place of a state among the sides.
const OWN: usize = 0;
/// The place of what it is held against.
const TODAY: usize = 1;

impl Job {
    /// A job for `own` held against `today`, and the events that it gives.
    pub(super) fn new(session: &Session, this_side: Side, today: Side) -> (Arc<Self>, Events) {
        let seeds = seeds(session.seed, session.request.replications);
        let same = this_side.key == today.key;
        // First the seed that the page waits for; what it is held against is mostly known.
        let both = |seed: &u64| [(OWN, *seed), (TODAY, *seed)];
        let cells = seeds.iter().flat_map(both).filter(|(side, _)| *side == OWN || !same).collect();
        // What is known is there from the start, so that the first number waits for one simulation alone.
        let known = |side: &Side| -> BTreeMap<u64, Arc<Point>> {
            seeds.iter().filter_map(|seed| Some((*seed, session.known(&side.key, *seed)?))).collect()
        };
        let points = [known(&this_side), known(&today)];
        let (page, events) = unbounded_channel();
        let job = Arc::new(Self {
            unwanted: AtomicBool::new(false),
            over: AtomicBool::new(false),
            begun: Instant::now(),
            taken_up: OnceLock::new(),
            sides: [this_side, today],
            scenarios: Default::default(),
            seeds,
            cells,
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            found: Mutex::new(JobState { points, told: 0, page: Some(page) }),
        });
        let events = Events::new(events, Arc::clone(&job));
        (job, events)
    }

    /// Nobody wants it any more.
    pub(super) fn drop_it(&self) {
        self.unwanted.store(true, Ordering::Relaxed);
        // Who asks does not wait: a thread that is about to tell the page looks again when it has.
        if let Ok(mut found) = self.found.try_lock() {
            found.page = None;
        }
    }

    fn is_unwanted(&self) -> bool {
        self.unwanted.load(Ordering::Relaxed)
    }

    /// Whether there is something left to begin.
    fn has_cells(&self) -> bool {
        !self.is_unwanted() && self.next.load(Ordering::Relaxed) < self.cells.len()
    }

    /// Whether all has been told.
    fn is_over(&self) -> bool {
        self.is_unwanted() || self.over.load(Ordering::Relaxed)
    }

    /// Simulates one cell and tells the page what is new.
    fn run(&self, session: &Session, cell: (usize, u64)) {
        self.answer(session, cell);
        if self.is_over() {
            lock(&self.found).page = None;
        }
    }

    /// Tells the numbers at once, then what takes longer.
    fn answer(&self, session: &Session, (side, seed): (usize, u64)) {
        let scenario = || {
            let load = || session.scenario_of(&self.sides[side].setting).map_err(|error| told(&error));
            self.scenarios[side].get_or_init(load).clone()
        };
        let is_first = self.seeds.first() == Some(&seed);
        let key = &self.sides[side].key;
        let (point, drawing) = match session.answer((key, seed, is_first), scenario, &self.unwanted) {
            Ok(Some(answer)) => answer,
            Ok(None) => return,
            Err(why) => return self.fail(&why),
        };
        self.add(session, (side, seed), point);
        if let Some(drawing) = drawing.filter(|_| !self.is_unwanted()) {
            let curves = session.curves(key, drawing);
            let name = if side == OWN { "own" } else { "today" };
            self.tell("curves", &format!("{{\"of\":\"{name}\",\"data\":{curves}}}"));
        }
        if is_first && (side == OWN || self.is_today()) && !self.is_unwanted() {
            self.tell("setting", &self.told_of_setting(session).to_string());
        }
        if self.done.fetch_add(1, Ordering::Relaxed) + 1 == self.cells.len() {
            self.tell("done", "{}");
            self.over.store(true, Ordering::Relaxed);
        }
    }

    /// Whether nothing stands elsewhere than in what it is held against.
    fn is_today(&self) -> bool {
        self.sides[OWN].key == self.sides[TODAY].key
    }

    fn tell(&self, name: &str, data: &str) {
        send(lock(&self.found).page.as_ref(), name, data);
    }

    fn add(&self, session: &Session, (side, seed): (usize, u64), point: Arc<Point>) {
        let mut found = lock(&self.found);
        if self.is_today() {
            found.points[TODAY].insert(seed, Arc::clone(&point));
        }
        found.points[side].insert(seed, point);
        // In the order of the seeds, so that the numbers do not depend on which thread was faster.
        let whole =
            self.seeds.iter().take_while(|seed| found.points.iter().all(|point| point.contains_key(seed))).count();
        if !is_worth_telling(found.told, whole, self.seeds.len()) {
            return;
        }
        found.told = whole;
        let of = |side: usize| -> Vec<&Point> {
            self.seeds[..whole].iter().filter_map(|seed| found.points[side].get(seed)).map(Arc::as_ref).collect()
        };
        let held = held(&of(TODAY), &of(OWN), self.seeds.len(), &session.currency);
        let waited = self.taken_up.get().map_or(0, Duration::as_micros) as f64 / 1e3;
        let answer = json!({ "held": held, "waited_ms": waited, "took_ms": self.begun.elapsed().as_millis() as u64 });
        send(found.page.as_ref(), "figures", &answer.to_string());
    }

    /// What is set, how it reads in the manifests, and the command that repeats it.
    fn told_of_setting(&self, session: &Session) -> Value {
        let setting = &self.sides[OWN].setting;
        let changes = session.changes(setting).unwrap_or_default();
        json!({ "changes": changes, "command": session.command(setting) })
    }

    /// Tells the page why there is no answer.
    fn fail(&self, why: &str) {
        let page = lock(&self.found).page.take();
        send(page.as_ref(), "failed", &json!({ "why": why }).to_string());
        self.drop_it();
    }
}

/// Whether a page that knows of so many seeds is told of so many more: some may have been known before it asked, and then the first
/// number waits for no other.
fn is_worth_telling(told: usize, whole: usize, all: usize) -> bool {
    let is_new = |step: &usize| told < *step && *step <= whole;
    whole > told && (whole == all || TOLD_AT.iter().any(is_new))
}

/// One event as server-sent events have it; the data is JSON, and so has no line feed.
fn send(page: Option<&UnboundedSender<Bytes>>, name: &str, data: &str) {
    // A page that has gone hears nothing.
    let _ = page.map(|page| page.send(Bytes::from(format!("event: {name}\ndata: {data}\n\n"))));
}

/// The threads that simulate, and what they have to do.
#[derive(Default)]
pub(super) struct Pool {
    jobs: Mutex<Jobs>,
    wake: Condvar,
    ended: AtomicBool,
    /// How many reports and the like are being made.
    aside: AtomicUsize,
}

#[derive(Default)]
struct Jobs {
    /// Each page's last, by the page's name, with the order in which they came.
    by_page: BTreeMap<String, (u64, Arc<Job>)>,
    came: u64,
}

/// One of the places of what is made aside.
pub(super) struct Place<'p>(&'p AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// Takes a page's job in place of its last one.
    pub(super) fn take_up(&self, page: &str, job: Arc<Job>) {
        let mut jobs = lock(&self.jobs);
        jobs.by_page.retain(|_, (_, job)| !job.is_over());
        jobs.came += 1;
        let came = jobs.came;
        if let Some((_, last)) = jobs.by_page.insert(page.to_owned(), (came, job)) {
            last.drop_it();
        }
        if jobs.by_page.len() > PAGES_MAX
            && let Some(oldest) = jobs.by_page.iter().min_by_key(|(_, key)| key.0).map(|(page, _)| page.clone())
            && let Some((_, job)) = jobs.by_page.remove(&oldest)
        {
            job.drop_it();
        }
        self.wake.notify_all();
    }

    /// A place for what is made beside the jobs, if one is free.
    pub(super) fn place_aside(&self) -> Option<Place<'_>> {
        let place = Place(&self.aside);
        (self.aside.fetch_add(1, Ordering::Relaxed) < ASIDE_MAX).then_some(place)
    }

    /// Set when everything ends.
    pub(super) fn ended(&self) -> &AtomicBool {
        &self.ended
    }

    /// Ends everything.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        let jobs = lock(&self.jobs);
        jobs.by_page.values().for_each(|(_, job)| job.drop_it());
        self.wake.notify_all();
    }

    /// What a thread does until the end: the newest job's next cell.
    pub(super) fn work(&self, session: &Session) {
        while let Some((job, cell)) = self.next() {
            // A mistake of this program in one state is no reason to end it for all others.
            if catch_unwind(AssertUnwindSafe(|| job.run(session, cell))).is_err() {
                job.fail(
                    "the simulation failed because of a bug in nodecast; see the terminal where you started studio",
                );
            }
        }
    }

    fn next(&self) -> Option<(Arc<Job>, (usize, u64))> {
        let mut jobs = lock(&self.jobs);
        loop {
            if self.ended.load(Ordering::Relaxed) {
                return None;
            }
            let waiting = jobs.by_page.values().filter(|(_, job)| job.has_cells());
            if let Some((_, job)) = waiting.max_by_key(|waiting| waiting.0) {
                let number = job.next.fetch_add(1, Ordering::Relaxed);
                if let Some(cell) = job.cells.get(number) {
                    job.taken_up.get_or_init(|| job.begun.elapsed());
                    return Some((Arc::clone(job), *cell));
                }
                continue;
            }
            jobs = self.wake.wait_timeout(jobs, Duration::from_secs(1)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_worth_telling;

    #[test]
    fn page_gets_earlier_progress_on_request() {
        // Seven of twenty seeds were simulated for another page, or before somebody moved on.
        assert!(is_worth_telling(0, 7, 20));
        assert!(!is_worth_telling(7, 8, 20) && is_worth_telling(7, 10, 20) && is_worth_telling(15, 20, 20));
        assert!(!is_worth_telling(0, 0, 20) && !is_worth_telling(5, 5, 20));
        assert!(is_worth_telling(1, 2, 2));
    }
}

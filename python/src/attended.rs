//! Long work that Ctrl-C ends.
//!
//! Python hears of signals on the thread that called, between two of its own steps; so the work goes to another thread, and the
//! caller looks after it.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nodecast::domain::SimDuration;
use nodecast::experiment::Point;
use nodecast::experiment::points::ProgressObserver;
use nodecast::program::Audience;
use pyo3::prelude::*;

/// How long Python waits between two looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Whether the work is to come to an end.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    fn is_asked_for(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether to go on, for work that asks so.
    pub fn control(&self) -> ControlFlow<()> {
        if self.is_asked_for() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl ProgressObserver for &Stop {
    fn done(&self, _: usize, _: &Point) {}

    fn stopped(&self) -> bool {
        self.is_asked_for()
    }
}

impl Audience for &Stop {
    fn begin(&mut self, _: usize, _: &[SimDuration]) -> Box<dyn ProgressObserver + '_> {
        Box::new(*self)
    }
}

/// Does `work` without Python's lock. It has to look at the stop now and then.
///
/// # Errors
/// What a handler of signals raises, `KeyboardInterrupt` as a rule; the work is over by then.
pub fn attended<T: Send>(py: Python<'_>, work: impl FnOnce(&Stop) -> T + Send) -> PyResult<T> {
    let (stop, over) = (Stop::default(), AtomicBool::new(false));
    let caller = thread::current();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // A panic is over too, and wakes nobody: the caller sees it at its next look.
            let done = work(&stop);
            over.store(true, Ordering::Release);
            caller.unpark();
            done
        });
        let mut heard = Ok(());
        while heard.is_ok() && !over.load(Ordering::Acquire) && !worker.is_finished() {
            py.detach(|| thread::park_timeout(LOOK_EVERY));
            heard = py.check_signals();
        }
        stop.0.store(heard.is_err(), Ordering::Relaxed);
        let done = py.detach(|| worker.join()).unwrap_or_else(|panic| resume_unwind(panic));
        heard.map(|()| done)
    })
}

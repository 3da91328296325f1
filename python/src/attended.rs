//! Long work that Ctrl-C ends, and whose progress a Python function can show.
//!
//! Python hears of signals on the thread that called, between two of its own steps; so the work goes to another thread, and the
//! caller looks after it.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nodecast::domain::SimDuration;
use nodecast::experiment::Point;
use nodecast::experiment::points::ProgressObserver;
use nodecast::program::Audience;
use pyo3::prelude::*;

/// How long Python waits between two looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A request to stop the work, and the number of its simulations.
#[derive(Debug, Default)]
pub struct Stop {
    requested: AtomicBool,
    done: AtomicUsize,
    count: AtomicUsize,
}

impl Stop {
    fn is_asked_for(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Completed simulations, and all that have been planned so far.
    fn progress(&self) -> (usize, usize) {
        (self.done.load(Ordering::Relaxed), self.count.load(Ordering::Relaxed))
    }

    /// Whether to go on, for work that asks so.
    pub fn control(&self) -> ControlFlow<()> {
        if self.is_asked_for() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl ProgressObserver for &Stop {
    fn done(&self, _: usize, _: &Point) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn stopped(&self) -> bool {
        self.is_asked_for()
    }
}

impl Audience for &Stop {
    fn begin(&mut self, count: usize, _: &[SimDuration]) -> Box<dyn ProgressObserver + '_> {
        self.count.fetch_add(count, Ordering::Relaxed);
        Box::new(*self)
    }
}

/// A Python function that gets the numbers of completed and of planned simulations whenever one of them has changed.
struct Display<'f> {
    function: Option<&'f Py<PyAny>>,
    shown: (usize, usize),
}

impl Display<'_> {
    fn show(&mut self, py: Python<'_>, progress: (usize, usize)) -> PyResult<()> {
        let Some(function) = self.function.filter(|_| progress != self.shown) else { return Ok(()) };
        self.shown = progress;
        function.call1(py, progress).map(drop)
    }
}

/// Does `work` without Python's lock. It has to check the stop regularly. `display` is called on the thread of the caller.
///
/// # Errors
/// The exception of a signal handler, usually `KeyboardInterrupt`, or of `display`. The work has ended before.
pub fn attended<T: Send>(
    py: Python<'_>,
    display: Option<&Py<PyAny>>,
    work: impl FnOnce(&Stop) -> T + Send,
) -> PyResult<T> {
    let (stop, over) = (Stop::default(), AtomicBool::new(false));
    let mut display = Display { function: display, shown: (0, 0) };
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
            heard = py.check_signals().and_then(|()| display.show(py, stop.progress()));
        }
        stop.requested.store(heard.is_err(), Ordering::Relaxed);
        let done = py.detach(|| worker.join()).unwrap_or_else(|panic| resume_unwind(panic));
        heard.and_then(|()| display.show(py, stop.progress())).map(|()| done)
    })
}

//! How the program speaks: data, talk, progress and errors.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};

use super::remark::Remark;
use crate::domain::words::refusal;
use crate::domain::{SimDuration, SimTime};
use crate::experiment::points::{Point, Watcher};

/// Width of an error's text.
const ERROR_WIDTH: usize = 100;

/// Why a subcommand gave no answer.
#[derive(Debug)]
pub struct Failure {
    exit_code: u8,
    diagnostic: Option<Box<dyn Diagnostic + Send + Sync>>,
}

impl Failure {
    /// The exit code for input that cannot be used.
    pub const BAD_INPUT: u8 = 2;
    /// The exit code for a system that refused.
    const SYSTEM: u8 = 3;
    /// The exit code for an answer that is "worse": a guard that was broken.
    pub const WORSE: u8 = 1;
    /// The exit code for a baseline that another model wrote: there is nothing to hold figures against.
    const OTHER_MODEL: u8 = 4;
    /// The exit code after Ctrl-C, as shells have it.
    pub const INTERRUPTED: u8 = 130;

    /// An end without a word: what there was to say has been said.
    pub fn silent(exit_code: u8) -> Self {
        Self { exit_code, diagnostic: None }
    }

    /// An answer that is worse than a baseline allows.
    pub fn worse(diagnostic: impl Diagnostic + Send + Sync + 'static) -> Self {
        Self { exit_code: Self::WORSE, diagnostic: Some(Box::new(diagnostic)) }
    }

    /// Input that cannot be used.
    pub fn bad_input(diagnostic: impl Diagnostic + Send + Sync + 'static) -> Self {
        Self { exit_code: Self::BAD_INPUT, diagnostic: Some(Box::new(diagnostic)) }
    }

    /// A baseline that another model wrote.
    pub fn other_model(diagnostic: impl Diagnostic + Send + Sync + 'static) -> Self {
        Self { exit_code: Self::OTHER_MODEL, diagnostic: Some(Box::new(diagnostic)) }
    }

    /// A system that refused.
    pub fn system(diagnostic: impl Diagnostic + Send + Sync + 'static) -> Self {
        Self { exit_code: Self::SYSTEM, diagnostic: Some(Box::new(diagnostic)) }
    }

    /// Data that could not be written to stdout. A reader that closed its end has read what it wanted: no failure.
    pub fn of_stdout(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { exit_code: 0, diagnostic: None };
        }
        Self::system(Refused(format!("cannot write to the standard output: {}", refusal(error))))
    }
}

/// What the system refused.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{0}")]
struct Refused(String);

/// The streams of a subcommand.
pub struct Console<'a> {
    /// Data.
    pub out: &'a mut dyn Write,
    /// Talk.
    pub err: &'a mut dyn Write,
    theme: GraphicalTheme,
    is_watched: bool,
    errors_as_json: bool,
    /// Whether anything was written to stdout.
    has_answered: bool,
}

impl<'a> Console<'a> {
    /// Streams of which nothing is known: no colour, no line drawing, no progress.
    pub fn plain(out: &'a mut dyn Write, err: &'a mut dyn Write) -> Self {
        Self { out, err, theme: GraphicalTheme::none(), is_watched: false, errors_as_json: false, has_answered: false }
    }

    /// The streams of this process. Where stderr is a terminal, errors are drawn, in colour unless `NO_COLOR` is set, and
    /// long work shows its progress.
    pub fn of_process(out: &'a mut dyn Write, err: &'a mut dyn Write) -> Self {
        let mut console = Self::plain(out, err);
        if io::stderr().is_terminal() {
            let without_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            console.theme = if without_color { GraphicalTheme::unicode_nocolor() } else { GraphicalTheme::unicode() };
            console.is_watched = true;
        }
        console
    }

    /// From now on an error is also the answer on stdout, as JSON.
    pub fn tell_errors_as_json(&mut self) {
        self.errors_as_json = true;
    }

    /// Gives an error as the answer, where errors are told as JSON and nothing has been answered yet: two documents are none.
    pub(super) fn answer_error(&mut self, error: Remark) {
        if self.has_answered {
            return;
        }
        if let Some(json) = error.into_json().filter(|_| self.errors_as_json) {
            // Whoever does not read stdout has the exit code.
            let _ = self.data(&json);
        }
    }

    /// Whether somebody sees long work progress.
    pub fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// Tells something on stderr. Talk that nobody can hear is lost without harm.
    pub fn tell(&mut self, text: &str) {
        let _ = writeln!(self.err, "{text}");
    }

    /// Writes data to stdout.
    ///
    /// # Errors
    /// If stdout does not take it.
    pub fn data(&mut self, text: &str) -> Result<(), Failure> {
        self.has_answered = true;
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        written.map_err(|error| Failure::of_stdout(&error))
    }

    /// Reports a failure, if there is one, and gives the exit code.
    pub fn conclude(&mut self, result: Result<(), Failure>) -> ExitCode {
        let Err(failure) = result else { return ExitCode::SUCCESS };
        self.show(&failure);
        if let Some(diagnostic) = &failure.diagnostic {
            self.answer_error(Remark::of(diagnostic.as_ref()));
        }
        ExitCode::from(failure.exit_code)
    }

    /// Tells why something failed, if there is anything to tell.
    pub fn show(&mut self, failure: &Failure) {
        if let Some(diagnostic) = &failure.diagnostic {
            let mut theme = self.theme.clone();
            theme.characters.error = "error:".to_owned();
            // A name, a date or a command that is broken at a hyphen cannot be copied.
            let handler = GraphicalReportHandler::new_themed(theme)
                .with_width(ERROR_WIDTH)
                .with_word_splitter(textwrap::WordSplitter::NoHyphenation)
                .with_links(false)
                .with_cause_chain();
            let mut text = String::new();
            match handler.render_report(&mut text, diagnostic.as_ref()) {
                Ok(()) => self.tell(text.trim_end()),
                Err(_) => self.tell(&format!("error: {diagnostic}")),
            }
        }
    }

    /// A bar that follows simulated time up to `duration`; drawn only where somebody watches.
    pub fn progress(&self, duration: SimDuration, wanted: bool) -> Progress {
        let seconds = u64::try_from(duration.as_secs()).unwrap_or(0);
        let target =
            if wanted && self.is_watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(seconds), target);
        let template = "{bar:30} {percent:>3} % of the time to simulate, {eta} left  {msg}";
        // The template is fixed and known to be good; without it indicatif's own bar is drawn.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress { bar }
    }
}

/// Whether Ctrl-C has been pressed; the second time ends the process.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Told of each simulation that is done: its number and its answer.
type Each<'w> = dyn Fn(usize, &Point) + Sync + 'w;

/// Watches many simulations: a bar that counts them, and Ctrl-C, which lets those that run come to their end.
pub struct Watch<'w> {
    bar: ProgressBar,
    each: Box<Each<'w>>,
}

impl Console<'_> {
    /// Watches `count` simulations; `each` is told of each one that is done.
    pub fn watch<'w>(&self, count: u64, wanted: bool, each: impl Fn(usize, &Point) + Sync + 'w) -> Watch<'w> {
        let target =
            if wanted && self.is_watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(count), target);
        let template = "{bar:30} {pos} of {len} simulations, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        // Where the system takes no handler, Ctrl-C ends the process as it always did.
        let _ = ctrlc::try_set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                std::process::exit(i32::from(Failure::INTERRUPTED));
            }
        });
        Watch { bar, each: Box::new(each) }
    }
}

impl Watcher for Watch<'_> {
    fn done(&self, index: usize, point: &Point) {
        (self.each)(index, point);
        self.bar.inc(1);
    }

    fn stopped(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A progress bar that vanishes when dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Whether anybody sees the bar.
    pub fn is_drawn(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Says something beside the bar, in place of what was said before.
    pub fn say(&self, text: String) {
        self.bar.set_message(text);
    }

    /// The simulation has reached `now`.
    pub fn reached(&self, now: SimTime) {
        self.bar.set_position(u64::try_from(now.as_secs()).unwrap_or(0));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

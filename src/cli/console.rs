//! How the program speaks: data, talk, progress and errors.
//!
//! Every text for a terminal goes through here, where characters that a terminal would obey become question marks, wherever they
//! come from. Colours of errors and of help are the program's own.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Stderr, StdoutLock, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use miette::GraphicalTheme;

use crate::domain::words::{is_unprintable, printable};
use crate::domain::{SimDuration, SimTime};
use crate::experiment::points::{Point, ProgressObserver};
use crate::program::{Failure, Remark};
use crate::report::columns::folded;

/// The streams of a subcommand.
pub struct Console<'a> {
    /// Data.
    out: &'a mut dyn Write,
    /// Talk.
    err: &'a mut dyn Write,
    theme: GraphicalTheme,
    is_colored: bool,
    /// Whether answers have colours: stdout is a terminal, and NO_COLOR is not set.
    is_answer_colored: bool,
    is_watched: bool,
    /// Characters in a line of the terminal that stdout is; `None` where it is no terminal.
    width: Option<usize>,
    /// The same of stderr.
    width_of_talk: Option<usize>,
    errors_as_json: bool,
    /// Whether anything was written to stdout.
    has_answered: bool,
}

impl<'a> Console<'a> {
    /// Streams of which nothing is known: no colour, no line drawing, no progress.
    pub fn plain(out: &'a mut dyn Write, err: &'a mut dyn Write) -> Self {
        let theme = GraphicalTheme::none();
        Self {
            out,
            err,
            theme,
            is_colored: false,
            is_answer_colored: false,
            is_watched: false,
            width: None,
            width_of_talk: None,
            errors_as_json: false,
            has_answered: false,
        }
    }

    /// The streams of this process. Where stderr is a terminal, errors are drawn, in colour unless `NO_COLOR` is set, and
    /// long work shows its progress; where stdout is one, tables are no wider than it is, nor notes and errors where stderr is one.
    pub fn of_process(out: &'a mut dyn Write, err: &'a mut dyn Write) -> Self {
        let mut console = Self::plain(out, err);
        let without_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        console.is_answer_colored = io::stdout().is_terminal() && !without_color;
        if io::stderr().is_terminal() {
            console.theme = if without_color { GraphicalTheme::unicode_nocolor() } else { GraphicalTheme::unicode() };
            console.is_colored = !without_color;
            console.is_watched = true;
        }
        let width = |(width, _): (terminal_size::Width, terminal_size::Height)| usize::from(width.0);
        console.width = terminal_size::terminal_size_of(io::stdout()).map(width);
        console.width_of_talk = terminal_size::terminal_size_of(io::stderr()).map(width);
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
            let _ = self.document(&json);
        }
    }

    /// Whether somebody sees long work progress.
    pub fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// Characters in a line of the terminal that data goes to; `None` where it goes elsewhere and lines may be of any length.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// Tells something on stderr. Talk that nobody can hear is lost without harm.
    pub fn tell(&mut self, text: &str) {
        let _ = writeln!(self.err, "{}", printable(text));
    }

    /// The same of a text with colours of the program's own, whose other words are printable.
    fn tell_styled(&mut self, text: &str) {
        let text = if self.is_colored { printable_but_colors(text) } else { printable(text) };
        let _ = writeln!(self.err, "{text}");
    }

    /// Tells a paragraph on stderr, folded where that is a terminal of which the line is too long.
    pub fn note(&mut self, paragraph: &str) {
        for line in folded(paragraph, self.width_of_talk) {
            self.tell(&line);
        }
    }

    /// Writes an answer for people to stdout.
    ///
    /// # Errors
    /// If stdout does not take it.
    pub fn data(&mut self, text: &str) -> Result<(), Failure> {
        self.write(&printable(text))
    }

    /// Writes an answer whose verdicts have colours on a terminal.
    ///
    /// # Errors
    /// If stdout does not take it.
    pub(super) fn verdicts(&mut self, text: &str) -> Result<(), Failure> {
        let text = printable(text);
        self.write(&if self.is_answer_colored { painted(&text) } else { text.into_owned() })
    }

    /// Writes a JSON document to stdout, with escapes for what a terminal would obey.
    ///
    /// # Errors
    /// If stdout does not take it.
    pub(super) fn document(&mut self, json: &str) -> Result<(), Failure> {
        self.write(&escaped(json))
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.has_answered = true;
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        written.map_err(|error| Failure::of_stdout(&error))
    }

    /// Writes an answer as JSON, with a line feed at the end.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn json(&mut self, answer: &impl serde::Serialize) -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(answer).map_err(Failure::of_report)?;
        self.document(&(json + "\n"))
    }

    /// Says how a command line is wrong, and gives the exit code. `again` reads other words as a command line: those of the mistake
    /// are quoted, and are read once more without what a terminal would obey.
    pub(super) fn misused(
        &mut self,
        (words, mistake): (&[OsString], clap::Error),
        again: impl Fn(Vec<OsString>) -> Option<clap::Error>,
    ) -> u8 {
        if !mistake.use_stderr() {
            // When even help cannot be printed, the exit code still tells.
            let _ = self.data(&mistake.render().to_string());
            return 0;
        }
        let words = words.iter().map(|word| match word.to_str() {
            Some(text) => printable(text).into_owned().into(),
            None => printable(&word.to_string_lossy()).into_owned().into(),
        });
        let text = again(words.collect()).unwrap_or(mistake).render();
        self.tell_styled(
            if self.is_colored { text.ansi().to_string() } else { text.to_string() }.trim_end_matches('\n'),
        );
        let text = text.to_string();
        let first = text.lines().next().unwrap_or_default();
        self.answer_error(Remark::plain(first.strip_prefix("error: ").unwrap_or(first).to_owned()));
        Failure::BAD_INPUT
    }

    /// Reports a failure, if there is one, and gives the exit code.
    pub fn conclude(&mut self, result: Result<(), Failure>) -> u8 {
        let Err(failure) = result else { return 0 };
        self.show(&failure);
        if let Some(remark) = failure.remark() {
            self.answer_error(remark);
        }
        failure.exit_code()
    }

    /// Tells why something failed, if there is anything to tell.
    pub fn show(&mut self, failure: &Failure) {
        if let Some(text) = failure.text_within(self.theme.clone(), self.width_of_talk) {
            self.tell_styled(&text);
        }
    }

    /// A bar that follows simulated time up to `duration`; drawn only where somebody watches.
    pub fn progress(&self, duration: SimDuration, wanted: bool) -> Progress {
        let seconds = u64::try_from(duration.as_secs()).unwrap_or(0);
        let target =
            if wanted && self.is_watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(seconds), target);
        let template = "{bar:30} {percent:>3}% of the time to simulate, {eta} left  {msg}";
        // The template is fixed and known to be good; without it indicatif's own bar is drawn.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress { bar }
    }
}

#[cfg(feature = "http")]
impl Console<'_> {
    /// A bar that counts answers of a server; drawn only where somebody watches.
    pub(super) fn answers(&self, wanted: bool) -> Answers {
        let target =
            if wanted && self.is_watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len} answers  {msg}") {
            bar.set_style(style);
        }
        Answers { bar }
    }
}

/// A bar that counts answers of a server; it vanishes when dropped.
#[cfg(feature = "http")]
pub(super) struct Answers {
    bar: ProgressBar,
}

#[cfg(feature = "http")]
impl Answers {
    /// So many of all have come; `next` is asked for now.
    pub(super) fn reached(&self, done: usize, all: usize, next: &str) {
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(printable(next).into_owned());
    }

    /// Whether nobody sees the bar.
    pub(super) fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Says something above the bar.
    pub(super) fn say(&self, text: &str) {
        self.bar.println(printable(text));
    }
}

#[cfg(feature = "http")]
impl Drop for Answers {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The streams of this process.
pub(super) fn streams() -> (StdoutLock<'static>, Stderr) {
    (io::stdout().lock(), io::stderr())
}

/// `text` with a question mark for each character that a terminal would obey, but for sequences that set colours.
fn printable_but_colors(text: &str) -> Cow<'_, str> {
    const BEGIN: &str = "\u{1b}[";
    let Some((first, others)) = text.split_once(BEGIN) else { return printable(text) };
    let mut whole = printable(first).into_owned();
    for part in others.split(BEGIN) {
        let color = part.find(|c: char| !c.is_ascii_digit() && c != ';').filter(|end| part[*end..].starts_with('m'));
        let (color, words) = part.split_at(color.map_or(0, |end| end + 1));
        whole.push_str(if color.is_empty() { "?[" } else { BEGIN });
        whole.push_str(color);
        whole.push_str(&printable(words));
    }
    whole.into()
}

/// Words of verdicts with the colour of each: green or red.
const VERDICTS: [(&str, &str); 14] = [
    ("met", "32"),
    ("ok", "32"),
    ("better", "32"),
    ("cheaper", "32"),
    ("shorter", "32"),
    ("agrees", "32"),
    ("missed", "31"),
    ("MISSED", "31"),
    ("VIOLATED", "31"),
    ("WORSE", "31"),
    ("worse", "31"),
    ("expensive", "31"),
    ("longer", "31"),
    ("differs", "31"),
];

/// `text` with colours for the words of verdicts.
fn painted(text: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.');
    let mut whole = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c: char| !is_part(c)) {
        let word = piece.trim_end_matches(|c: char| !is_part(c)).trim_end_matches('.');
        match VERDICTS.iter().find(|(verdict, _)| *verdict == word) {
            Some((_, color)) => {
                whole.push_str(&format!("\u{1b}[{color}m{word}\u{1b}[0m"));
                whole.push_str(&piece[word.len()..]);
            }
            None => whole.push_str(piece),
        }
    }
    whole
}

/// A JSON document in which characters that a terminal would obey are escaped; they occur within strings only.
fn escaped(json: &str) -> Cow<'_, str> {
    if !json.contains(is_unprintable) {
        return json.into();
    }
    let mut whole = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if is_unprintable(character) {
            whole.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            whole.push(character);
        }
    }
    whole.into()
}

/// Whether Ctrl-C has been pressed; the second time ends the process.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Told of each simulation that is done: its number and its answer.
type Each<'w> = dyn Fn(usize, &Point) + Sync + 'w;

/// Time between two lines of progress where no terminal shows a bar.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Watches many simulations: a bar or lines that count them, and Ctrl-C, which lets those that run come to their end.
pub struct Watch<'w> {
    bar: ProgressBar,
    /// When the last line was written; `None` where a bar is drawn, or no progress is wanted.
    last_line: Option<Mutex<Instant>>,
    each: Box<Each<'w>>,
    stop: Stop,
}

/// What Ctrl-C asks for: to stop and leave nothing behind.
#[derive(Clone, Copy, Debug)]
pub struct Stop(());

impl Stop {
    /// Takes Ctrl-C from now on; the second time it ends the process.
    pub fn on_interrupt() -> Self {
        // Where the system takes no handler, Ctrl-C ends the process as it always did.
        let _ = ctrlc::try_set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                std::process::exit(i32::from(Failure::INTERRUPTED));
            }
        });
        Self(())
    }

    /// Whether it has been pressed.
    #[expect(clippy::unused_self, reason = "only who has taken it may ask")]
    pub fn is_wanted(self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
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
        let last_line = (wanted && !self.is_watched).then(|| Mutex::new(Instant::now()));
        Watch { bar, last_line, each: Box::new(each), stop: Stop::on_interrupt() }
    }
}

impl ProgressObserver for Watch<'_> {
    fn done(&self, index: usize, point: &Point) {
        (self.each)(index, point);
        self.bar.inc(1);
        let Some(Ok(mut last)) = self.last_line.as_ref().map(Mutex::lock) else { return };
        if last.elapsed() >= LINE_EVERY {
            *last = Instant::now();
            // A reader that has gone away stops no simulation.
            let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
            let _ = writeln!(io::stderr(), "{done} of at most {all} simulations, {} s", self.bar.elapsed().as_secs());
        }
    }

    fn stopped(&self) -> bool {
        self.stop.is_wanted()
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
        self.bar.set_message(printable(&text).into_owned());
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

#[cfg(test)]
mod tests {
    use miette::GraphicalTheme;

    use super::{Console, Failure, painted};

    #[test]
    fn verdicts_alone_have_colours() {
        let text = "one: WORSE, two is better.\n  shop/met  met\n";
        let colored =
            "one: \u{1b}[31mWORSE\u{1b}[0m, two is \u{1b}[32mbetter\u{1b}[0m.\n  shop/met  \u{1b}[32mmet\u{1b}[0m\n";
        assert_eq!(painted(text), colored);
        let mut out = Vec::new();
        Console::plain(&mut out, &mut Vec::new()).verdicts(text).unwrap();
        assert_eq!(out, text.as_bytes());
    }

    /// An error with much to say.
    #[derive(Debug, thiserror::Error, miette::Diagnostic)]
    #[error("the file says something that has no meaning at all, and that is said in a sentence of some length")]
    #[diagnostic(help("write something that has a meaning, which this sentence explains at a length of its own, too"))]
    struct Wrong;

    #[test]
    fn warnings_wrap_at_terminal_width() {
        let told = |width: Option<usize>| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut console = Console::plain(&mut out, &mut err);
            console.width_of_talk = width;
            console.note("warning: a note of some words");
            assert!(console.width().is_none(), "what stdout is, stderr does not say");
            String::from_utf8(err).unwrap_or_default()
        };
        assert_eq!(told(None), "warning: a note of some words\n");
        assert_eq!(told(Some(16)), "warning: a note\n    of some\n    words\n");
    }

    /// An error whose words come from an input.
    #[derive(Debug, thiserror::Error, miette::Diagnostic)]
    #[error("no metric `{0}`")]
    #[diagnostic(help("write `{0}`"))]
    struct Hostile(&'static str);

    #[test]
    fn colors_are_the_program_s_alone() {
        let told = |theme: GraphicalTheme, is_colored: bool| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut console = Console::plain(&mut out, &mut err);
            (console.theme, console.is_colored) = (theme, is_colored);
            console.show(&Failure::bad_input(Hostile("a\u{1b}[5mb\u{1b}]2;c\u{7}\u{9b}d\u{202e}")));
            console.tell("e\u{1b}[31mf\rg\th\n");
            String::from_utf8(err).unwrap_or_default()
        };
        let plain = told(GraphicalTheme::none(), false);
        assert!(plain.contains("no metric `a?[5mb?]2;c??d?`") && plain.ends_with("e?[31mf?g\th\n\n"), "{plain}");
        let colored = told(GraphicalTheme::unicode(), true);
        assert!(colored.contains("\u{1b}[3") && !colored.contains("\u{1b}[5m"), "{colored:?}");
        assert!(!colored.contains(['\u{7}', '\u{9b}', '\u{202e}']) && !colored.contains("\u{1b}]"), "{colored:?}");
    }

    #[test]
    fn json_escapes_what_a_terminal_obeys() {
        let json = serde_json::to_string("a\u{9b}b\u{7f}\u{2066}\u{1b}").unwrap_or_default();
        assert_eq!(super::escaped(&json), "\"a\\u009bb\\u007f\\u2066\\u001b\"");
    }

    #[test]
    fn errors_wrap_at_terminal_width() {
        let told = |width: Option<usize>| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut console = Console::plain(&mut out, &mut err);
            console.width_of_talk = width;
            console.show(&Failure::bad_input(Wrong));
            String::from_utf8(err).unwrap_or_default()
        };
        let (whole, narrow) = (told(None), told(Some(50)));
        assert!(whole.lines().any(|line| line.chars().count() > 50), "{whole}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");
        // A bar stands before what goes on of the message.
        let words = |text: &str| text.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" ");
        assert_eq!(words(&whole), words(&narrow));
    }
}

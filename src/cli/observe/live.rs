//! Asking a Prometheus over the network.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nodecast_observed::prometheus::Plan;
use nodecast_observed::prometheus::fetch::{Pace, fetch};
use nodecast_observed::prometheus::http::{Access, Server};
use nodecast_observed::prometheus::list::LIST_FILE;
use nodecast_observed::prometheus::saved::read_list;

use super::super::Console;
use super::super::console::Answers;
use super::{Question, now, second};
use crate::domain::SimDuration;
use crate::program::Failure;
use crate::program::observe::plan_of_window;
use crate::scenario::ScenarioError;

/// Whom to ask, and how.
#[derive(clap::Args, Debug)]
pub(super) struct Asking {
    /// URL of Prometheus or a compatible server, including any path prefix, for example http://localhost:9090
    #[arg(long, value_name = "URL", conflicts_with = "answers")]
    prometheus: Option<String>,
    /// Length of the window
    #[arg(long, value_name = "DURATION", default_value = "7d", conflicts_with = "answers")]
    window: SimDuration,
    /// End of the window [default: the last full hour]
    #[arg(long, value_name = "TIME", value_parser = second, conflicts_with = "answers")]
    to: Option<i64>,
    #[command(flatten)]
    question: Question,
    /// File containing a bearer token
    #[arg(long, value_name = "FILE", conflicts_with = "basic_file")]
    bearer_file: Option<PathBuf>,
    /// File containing user:password for basic authentication
    #[arg(long, value_name = "FILE")]
    basic_file: Option<PathBuf>,
    /// HTTP header with its value read from a file: X-Scope-OrgID=tenant.txt
    #[arg(long, value_name = "NAME=FILE", value_parser = pair)]
    header: Vec<(String, String)>,
    /// Extra query parameter: dedup=true for Thanos, nocache=1 for VictoriaMetrics
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    param: Vec<(String, String)>,
    /// PEM file of CA certificates to trust instead of the built-in ones
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Timeout per query
    #[arg(long, value_name = "DURATION", default_value = "2m")]
    timeout: SimDuration,
}

impl Asking {
    /// The first option that says how to ask and is not as it is by itself.
    pub(super) fn stated(&self) -> Option<&'static str> {
        self.question.stated()
    }

    /// Whether there is somebody to ask.
    pub(super) fn is_wanted(&self) -> bool {
        self.prometheus.is_some()
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("has no `=`")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Saves in `folder` what is missing of the answers.
pub(super) fn ask(arguments: &Asking, folder: &Path, watched: bool, console: &mut Console<'_>) -> Result<(), Failure> {
    let plan = arguments.question.lay_over(window(arguments, folder)?)?;
    let headers: Vec<(String, PathBuf)> =
        arguments.header.iter().map(|(name, path)| (name.clone(), PathBuf::from(path))).collect();
    let access = Access {
        bearer: arguments.bearer_file.as_deref(),
        basic: arguments.basic_file.as_deref(),
        headers: &headers,
        parameters: &arguments.param,
        authorities: arguments.ca_file.as_deref(),
        timeout: Duration::from_micros(arguments.timeout.as_micros().max(1_000_000).unsigned_abs()),
    };
    let server = Server::new(arguments.prometheus.as_deref().unwrap_or_default(), &access)?;
    let pace = Bar { bar: console.answers(watched), watched, remarks: RefCell::new(Vec::new()) };
    let asked = fetch(&plan.queries(), folder, &server, &pace);
    let Bar { bar, remarks, .. } = pace;
    drop(bar);
    for remark in remarks.borrow().iter() {
        console.note(remark);
    }
    Ok(asked?)
}

/// The window: that of an import that was ended, if it is as long and no other end is wished.
fn window(arguments: &Asking, folder: &Path) -> Result<Plan, Failure> {
    let was_begun = arguments.to.is_none() && folder.join(LIST_FILE).exists();
    if was_begun && let Some((from, to)) = read_list(folder)?.span() {
        if to - from == arguments.window.as_secs() {
            return Ok(Plan::of_window(from, to)?);
        }
        return Err(ScenarioError::new(format!(
            "{} holds responses for {}, not for {}",
            folder.display(),
            SimDuration::from_secs(to - from),
            arguments.window
        ))
        .help("choose another --out, or delete this directory")
        .into());
    }
    plan_of_window(arguments.window, arguments.to, now())
}

/// A bar that counts answers.
struct Bar {
    bar: Answers,
    /// Whether anybody wants to know how it goes.
    watched: bool,
    remarks: RefCell<Vec<String>>,
}

impl Pace for Bar {
    fn progress(&self, done: usize, all: usize, next: &str) {
        self.bar.reached(done, all, next);
    }

    fn recorded(&self, text: &str) {
        if self.watched {
            self.remark(text);
        }
    }

    fn remark(&self, text: &str) {
        if self.bar.is_hidden() {
            self.remarks.borrow_mut().push(text.to_owned());
        } else {
            self.bar.say(text);
        }
    }

    fn wait(&self, pause: Duration) {
        std::thread::sleep(pause);
    }
}

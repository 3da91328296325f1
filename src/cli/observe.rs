//! `nodecast observe`: what a cluster's Prometheus recorded, as an observation.

mod queries;

#[cfg(feature = "http")]
mod live;

use std::path::PathBuf;

use clap::Subcommand;

use nodecast_observed::prometheus::catalogue::{RATE_WINDOW, SUM_PERIOD};

use super::{Console, Format};
use crate::domain::SimDuration;
use crate::program::observe::observation;
use crate::program::simulations::shell_line;
use crate::program::{Failure, observe};
use crate::report::observed;
use crate::scenario::draft::Draft;
use crate::scenario::source::Source;
use crate::scenario::{Limits, ScenarioError, source};

/// Import load, nodes, and wait times from a cluster's Prometheus
///
/// Writes an observation: a directory of tables in the same format as a run report, plus observation.json, which lists what was found, what
/// is missing, and how to collect it. `nodecast init my-cluster --from cluster.yaml --from FOLDER` turns it into a scenario. --prometheus
/// contacts only that address. Offline, `nodecast observe queries` prints the queries for curl and --answers reads the saved responses; the
/// result is the same.
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Cluster dump; workloads missing from the recording are listed
    #[arg(long, value_name = "DUMP")]
    from: Vec<PathBuf>,
    /// Output directory; an interrupted import resumes there
    #[arg(long, value_name = "DIR", required = true)]
    out: Option<PathBuf>,
    /// Read saved responses from this directory, which also holds queries.json
    #[arg(long, value_name = "DIR")]
    answers: Option<PathBuf>,
    #[cfg(feature = "http")]
    #[command(flatten)]
    live: live::Asking,
    /// What to print: a table for people, or observation.json
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Hide the progress bar
    #[arg(long)]
    quiet: bool,
}

#[derive(Subcommand, Debug)]
enum Command {
    Queries(queries::QueriesArguments),
}

/// What the queries are about.
#[derive(clap::Args, Debug)]
struct Question {
    /// A matcher for every query, for example 'cluster="prod"'
    #[arg(long = "match", value_name = "MATCHER")]
    matchers: Vec<String>,
    /// Ask for this namespace alone; may be given several times
    #[arg(long, value_name = "NAME")]
    namespace: Vec<String>,
    /// A label in which replicas of a Prometheus differ that recorded the same, for example prometheus_replica
    #[arg(long, value_name = "LABEL")]
    replica_label: Vec<String>,
    /// Over how long rates are taken: at least four times the interval of scrapes
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    rate_window: SimDuration,
    /// Over how long the sums are that an exporter of CloudWatch shows of a load balancer: its `period` or `period_seconds`
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    sum_period: SimDuration,
}

impl Question {
    /// The first option that is not as it is by itself.
    fn stated(&self) -> Option<&'static str> {
        let stated = [
            ("--match", !self.matchers.is_empty()),
            ("--namespace", !self.namespace.is_empty()),
            ("--replica-label", !self.replica_label.is_empty()),
            ("--rate-window", self.rate_window != SimDuration::from_secs(RATE_WINDOW)),
            ("--sum-period", self.sum_period != SimDuration::from_secs(SUM_PERIOD)),
        ];
        stated.into_iter().find_map(|(option, is_stated)| is_stated.then_some(option))
    }

    /// Lays what is asked over a plan.
    fn lay_over(
        &self,
        mut plan: nodecast_observed::prometheus::Plan,
    ) -> Result<nodecast_observed::prometheus::Plan, Failure> {
        plan.matchers.clone_from(&self.matchers);
        plan.namespaces.clone_from(&self.namespace);
        plan.replica_labels.clone_from(&self.replica_label);
        plan.rate_window = self.rate_window.as_secs().max(60);
        plan.sum_period = self.sum_period.as_secs().max(1);
        plan.check()?;
        Ok(plan)
    }
}

/// The second of an instant.
fn second(text: &str) -> Result<i64, String> {
    let instant: jiff::Timestamp =
        text.parse().map_err(|_| "is not a valid time: use RFC 3339, for example 2026-10-13T00:00:00Z".to_owned())?;
    Ok(instant.as_second())
}

/// The present second.
fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    if let Some(Command::Queries(queries)) = &arguments.command {
        return queries::execute(queries, console);
    }
    let out = arguments.out.clone().unwrap_or_default();
    let dump = arguments.from.iter().map(|path| source::load_argument(path, &Limits::default()));
    let dump = dump.collect::<Result<Vec<_>, _>>()?;
    let answers = answers(arguments, &out, console)?;
    let observation = observation(&answers, &dump)?;
    observation.write(&out)?;
    if arguments.format == Format::Json {
        return console.json(&observation.about);
    }
    console.data(&format!(
        "{}\nwrote {}\nnext:\n  {}\n",
        observed::text(&observation.about, console.width()),
        out.display(),
        next(arguments, &dump, &out)?
    ))
}

/// The command that makes a scenario of the observation: of the dump, if it is one with nodes, else of the cluster itself.
fn next(arguments: &Arguments, dump: &[Source], out: &std::path::Path) -> Result<String, Failure> {
    let out = out.display().to_string();
    let dumps: Vec<String> = arguments.from.iter().map(|path| path.display().to_string()).collect();
    let dumps = if dumps.is_empty() { vec!["cluster.yaml".to_owned()] } else { dumps };
    let mut words = vec!["nodecast", "init", "my-cluster"];
    words.extend(dumps.iter().chain([&out]).flat_map(|path| ["--from", path]));
    let plain = shell_line(&words);
    if dump.is_empty() || Draft::has_nodes(dump)? {
        return Ok(plain);
    }
    let of_cluster = shell_line(&["kubectl", "nodecast", "init", "my-cluster", "--from", &out]);
    Ok(format!("{plain} --region REGION\nor of the cluster as it is now:\n  {of_cluster}"))
}

/// The folder with the answers, asked for if need be.
fn answers(arguments: &Arguments, out: &std::path::Path, console: &mut Console<'_>) -> Result<PathBuf, Failure> {
    if let Some(answers) = &arguments.answers {
        #[cfg(feature = "http")]
        if let Some(option) = arguments.live.stated() {
            return Err(ScenarioError::new(format!("`{option}` selects what to query, but --answers reads responses that are already saved"))
                .help(format!("give it to `nodecast observe queries`, and ask anew: nodecast observe queries {option} ... > queries.sh"))
                .into());
        }
        return Ok(answers.clone());
    }
    #[cfg(feature = "http")]
    if arguments.live.is_wanted() {
        let folder = out.join(observe::ANSWERS);
        live::ask(&arguments.live, &folder, !arguments.quiet, console)?;
        return Ok(folder);
    }
    let _ = (out, console, observe::ANSWERS);
    Err(ScenarioError::new("no source given: pass --prometheus or --answers")
        .help("ask a Prometheus with --prometheus http://localhost:9090, or read saved answers with --answers DIR; `nodecast observe queries` prints what to ask")
        .into())
}

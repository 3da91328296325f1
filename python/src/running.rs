//! One run.

use std::path::PathBuf;

use nodecast::experiment::figures::FIGURES;
use nodecast::program::run::{self as program, Request, metrics_step};
use nodecast::program::{Failure, edits};
use nodecast::report::open_metrics;
use nodecast::report::tables::{self, Output};
use nodecast::report::{OutputDirectory, Summary, terminal};
use nodecast::simulation::Outcome;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::attended::attended;
use crate::errors::{OrRaise, argument};
use crate::table::Table;

/// What one run answers.
#[pyclass(frozen, module = "nodecast")]
pub struct Run {
    run: program::Run,
    outcome: Outcome,
    summary: Summary,
}

/// The tables by name.
const TABLES: [(&str, tables::Table); 9] = [
    ("timeline", tables::timeline),
    ("workloads", tables::workloads),
    ("metrics", tables::metrics),
    ("queues", tables::queues),
    ("recommendations", tables::recommendations),
    ("pods", tables::pods),
    ("nodes", tables::nodes),
    ("bill", tables::bill),
    ("events", tables::events),
];

/// The changes that Python states: `PATH=VALUE` each, and how long to simulate.
pub fn changes(set: &[String], duration: Option<&str>) -> Result<Vec<nodecast::scenario::Edit>, Failure> {
    edits::parse(set, length(duration)?)
}

/// How long to simulate.
pub fn length(duration: Option<&str>) -> Result<Option<nodecast::domain::SimDuration>, Failure> {
    duration.map(edits::time).transpose().map_err(|problem| argument("duration", &problem))
}

/// Simulates a scenario.
#[pyfunction]
#[pyo3(signature = (scenario, policy, seed, set, duration, pricing_data))]
pub fn run(
    py: Python<'_>,
    scenario: PathBuf,
    policy: Option<String>,
    seed: Option<u64>,
    set: Vec<String>,
    duration: Option<String>,
    pricing_data: Option<PathBuf>,
) -> PyResult<Run> {
    let simulated = attended(py, None, |stop| {
        let edits = changes(&set, duration.as_deref())?;
        let run = program::Run::load(Request { scenario, policy, seed, edits, pricing_data })?;
        let outcome = run.simulate(&mut |_| stop.control())?.ok_or(Failure::silent(Failure::INTERRUPTED))?;
        let summary = Summary::from_outcome(&outcome);
        Ok(Run { run, outcome, summary })
    })?;
    simulated.or_raise(py)
}

#[pymethods]
impl Run {
    /// The text of `summary.json`.
    fn summary_json(&self, py: Python<'_>) -> PyResult<String> {
        self.summary.to_json().map_err(Failure::of_report).or_raise(py)
    }

    /// What the program prints.
    fn text(&self) -> String {
        terminal::brief(&self.summary, None)
    }

    /// The figures by which runs are compared, by name; `None` where there was nothing to measure.
    fn figures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let figures = PyDict::new(py);
        for figure in FIGURES {
            figures.set_item(figure.name, (figure.of)(&self.summary))?;
        }
        Ok(figures)
    }

    /// A table by its name.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let fill = TABLES.iter().find(|(known, _)| *known == name).map(|(_, fill)| fill);
        let fill = fill.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        py.detach(|| {
            let mut filled = Ok(());
            let table = Table::from_fill(|columns| filled = fill(&self.outcome, &mut Output::Sink(columns)))?;
            filled.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
            Ok(table)
        })
    }

    /// Writes the report into a directory.
    #[pyo3(signature = (directory, open_metrics))]
    fn write(&self, py: Python<'_>, directory: PathBuf, open_metrics: Option<String>) -> PyResult<()> {
        let written = py.detach(|| {
            let step = open_metrics.as_deref().map(metrics_step).transpose();
            let step = step.map_err(|problem| argument("open_metrics", &problem))?;
            let samples_max = open_metrics::Settings::SAMPLES_MAX;
            let directory = OutputDirectory::begin(&directory).map_err(Failure::of_report)?;
            self.run.write((&self.outcome, &self.summary), step, samples_max, directory).map(|_| ())
        });
        written.or_raise(py)
    }
}

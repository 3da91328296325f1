//! Many runs: comparisons and sweeps.

use std::path::PathBuf;

use nodecast::experiment::axes::Sampling;
use nodecast::experiment::figures::FIGURES;
use nodecast::experiment::presentation::{sweep_table, table};
use nodecast::experiment::statistics::Estimate;
use nodecast::experiment::{Cell as Simulation, Point};
use nodecast::program::compare::{Compare, Compared, Precision, Request as CompareRequest};
use nodecast::program::simulations::simulate;
use nodecast::program::sweep::{Request as SweepRequest, Sweep as Question, Swept};
use nodecast::program::{self, Audience, Failure};
use nodecast::report::tables::{Cell, Kind, Sink};
use pyo3::prelude::*;

use crate::attended::{Stop, attended};
use crate::errors::{OrRaise, argument};
use crate::running::{changes, length};
use crate::table::{Columns, Table};

/// Policies of a scenario against the first one, over many seeds.
#[pyclass(frozen, module = "nodecast")]
pub struct Comparison {
    compared: Compared,
    threads: Option<u16>,
}

/// Settings of a scenario against each other.
#[pyclass(frozen, module = "nodecast")]
pub struct Sweep {
    swept: Swept,
}

/// The number of an estimate, if there is one.
fn number(value: Option<f64>) -> Cell<'static> {
    value.map_or(Cell::Nothing, Cell::Number)
}

/// A column for the mean of each figure.
fn figures_of(columns: &mut Columns) {
    for figure in FIGURES {
        columns.column(figure.name, Kind::Number);
    }
}

/// Compares the policies of a scenario.
#[pyfunction]
#[pyo3(signature = (scenario, policies, replications, seed, set, duration, precision, replications_max, threads, pricing_data, progress))]
#[expect(clippy::too_many_arguments, reason = "Python names each of them")]
pub fn compare(
    py: Python<'_>,
    scenario: PathBuf,
    policies: Vec<String>,
    replications: Option<u32>,
    seed: Option<u64>,
    set: Vec<String>,
    duration: Option<String>,
    precision: Option<f64>,
    replications_max: u32,
    threads: Option<u16>,
    pricing_data: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Comparison> {
    let compared = attended(py, progress.as_ref(), |mut stop: &Stop| {
        within("replications", replications, 1, 100_000)?;
        within("threads", threads.map(u32::from), 1, u32::from(u16::MAX))?;
        let share = |share: f64| (share > 0.0 && share <= 1.0).then_some(share);
        let precision = precision
            .map(|precision| {
                share(precision).ok_or_else(|| argument("precision", "write a share above 0, for example 0.02"))
            })
            .transpose()?;
        let edits = changes(&set, duration.as_deref())?;
        let request = CompareRequest { scenario, policies, replications, seed, edits, pricing_data };
        let precision = precision.map(|share| Precision { share, replications_max });
        Compare::load(&request)?.answer(precision, threads, &mut stop)
    })?;
    Ok(Comparison { compared: compared.or_raise(py)?, threads })
}

/// An argument that has to be from `least` to `most`.
fn within(name: &str, value: Option<u32>, least: u32, most: u32) -> Result<(), Failure> {
    if value.is_none_or(|value| (least..=most).contains(&value)) {
        return Ok(());
    }
    Err(argument(name, &format!("has to be from {least} to {most}")))
}

#[pymethods]
impl Comparison {
    /// The text of `comparison.json`.
    fn comparison_json(&self, py: Python<'_>) -> PyResult<String> {
        self.compared.comparison.to_json().map_err(Failure::of_report).or_raise(py)
    }

    /// What the program prints.
    fn text(&self) -> String {
        table::table(&self.compared.comparison)
    }

    /// Every simulation with its figures.
    fn replications(&self) -> PyResult<Table> {
        Table::from_fill(|columns| {
            columns.column("policy", Kind::Text);
            columns.column_of_naturals("seed");
            figures_of(columns);
            columns.column("event_hash", Kind::Text);
            for point in &self.compared.comparison.points {
                columns.cell(Cell::Text(&point.policy));
                columns.natural(point.seed);
                point.figures.iter().for_each(|value| columns.cell(number(*value)));
                columns.cell(Cell::Text(&point.event_hash));
            }
        })
    }

    /// Every figure of every policy: its mean with its interval, and the difference from the first policy.
    fn figures(&self) -> PyResult<Table> {
        let ends = |columns: &mut Columns, estimate: Option<Estimate>| {
            columns.cell(number(estimate.map(|estimate| estimate.mean)));
            columns.cell(number(estimate.and_then(|estimate| estimate.low)));
            columns.cell(number(estimate.and_then(|estimate| estimate.high)));
        };
        Table::from_fill(|columns| {
            columns.column("policy", Kind::Text);
            columns.column("figure", Kind::Text);
            for value in ["mean", "difference", "relative"] {
                for end in ["", "_low", "_high"] {
                    columns.column(format!("{value}{end}"), Kind::Number);
                }
            }
            // Intervals of waits are of these.
            for value in ["median", "difference_median", "relative_median"] {
                columns.column(value, Kind::Number);
            }
            for policy in &self.compared.comparison.policies {
                for figure in &policy.figures {
                    columns.cell(Cell::Text(&policy.name));
                    columns.cell(Cell::Text(&figure.name));
                    let paired = figure.against_first.as_ref();
                    ends(columns, figure.mean);
                    ends(columns, paired.map(|paired| paired.difference));
                    ends(columns, paired.and_then(|paired| paired.relative));
                    let difference = paired.map(|paired| paired.difference);
                    for estimate in [figure.mean, difference, paired.and_then(|paired| paired.relative)] {
                        columns.cell(number(estimate.and_then(|estimate| estimate.median)));
                    }
                }
            }
        })
    }

    /// Writes the report into a directory.
    fn write(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        py.detach(|| program::compare::begin(&directory).and_then(|begin| self.compared.write(begin, self.threads)))
            .or_raise(py)?;
        Ok(())
    }
}

/// Tries settings of a scenario.
#[pyfunction]
#[pyo3(signature = (scenario, set, policies, replications, seed, duration, latency, sample, sampling, threads, pricing_data, progress))]
#[expect(clippy::too_many_arguments, reason = "Python names each of them")]
pub fn sweep(
    py: Python<'_>,
    scenario: PathBuf,
    set: Vec<String>,
    policies: Vec<String>,
    replications: Option<u32>,
    seed: Option<u64>,
    duration: Option<String>,
    latency: String,
    sample: Option<usize>,
    sampling: String,
    threads: Option<u16>,
    pricing_data: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Sweep> {
    let swept = attended(py, progress.as_ref(), |mut stop: &Stop| {
        within("replications", replications, 1, 100_000)?;
        within("threads", threads.map(u32::from), 1, u32::from(u16::MAX))?;
        let sampling = match sampling.as_str() {
            "latin-hypercube" => Sampling::LatinHypercube,
            "random" => Sampling::Random,
            _ => return Err(argument("sampling", "write `latin-hypercube` or `random`")),
        };
        let duration = length(duration.as_deref())?;
        let request = SweepRequest {
            scenario,
            set,
            sample,
            sampling,
            policies,
            latency,
            replications,
            seed,
            duration,
            pricing_data,
        };
        let sweep = Question::load(&request)?;
        let plan = sweep.question.plan();
        let cells: Vec<Simulation<'_>> = plan.cells().collect();
        let one = |cell: Simulation<'_>| sweep.simulate(cell);
        let points = simulate(&cells, &one, threads, &*stop.begin(cells.len(), &[]))?;
        let points: Vec<Point> = points.into_iter().map(|(_, point)| point).collect();
        if points.len() < plan.len() {
            return Err(Failure::silent(Failure::INTERRUPTED));
        }
        sweep.answer(&points)
    })?;
    Ok(Sweep { swept: swept.or_raise(py)? })
}

#[pymethods]
impl Sweep {
    /// The text of `sweep.json`.
    fn sweep_json(&self, py: Python<'_>) -> PyResult<String> {
        self.swept.answer.to_json().map_err(Failure::of_report).or_raise(py)
    }

    /// What the program prints.
    fn text(&self) -> String {
        sweep_table::table(&self.swept.answer)
    }

    /// Every setting under every policy with the means of its figures.
    fn settings(&self) -> PyResult<Table> {
        let answer = &self.swept.answer;
        Table::from_fill(|columns| {
            columns.column("setting", Kind::Whole);
            columns.column("policy", Kind::Text);
            for path in &answer.paths {
                columns.column(path, Kind::Text);
            }
            figures_of(columns);
            for flag in ["meets_objectives", "on_front", "comparable"] {
                columns.column(flag, Kind::Flag);
            }
            for (number_of, result) in answer.results.iter().enumerate() {
                columns.optional(i64::try_from(result.setting).ok().map(Cell::Whole));
                columns.cell(Cell::Text(&result.policy));
                result.values.iter().for_each(|value| columns.cell(Cell::Text(value)));
                result.figures.iter().for_each(|mean| columns.cell(number(mean.map(|mean| mean.mean))));
                columns.optional(result.meets_objectives.map(Cell::Flag));
                columns.cell(Cell::Flag(answer.front.contains(&number_of)));
                columns.cell(Cell::Flag(result.is_comparable()));
            }
        })
    }

    /// Writes the report into a directory.
    fn write(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        py.detach(|| program::sweep::begin(&directory).and_then(|begin| self.swept.write(begin))).or_raise(py)
    }
}

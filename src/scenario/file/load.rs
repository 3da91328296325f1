//! `load`: requests to workloads.

use super::super::definition::{LoadSpec, RateStep, Requests};
use super::super::reader::{Fields, Reader, Shape};
use super::super::tree::Node;
use super::checks::Workloads;
use super::timeline::object_name;
use super::{Files, ScenarioError};
use crate::domain::{SimDuration, SimTime};
use crate::load::Service;

static LOAD: Shape = Shape {
    name: "a load",
    keys: &["workload", "at", "for", "requests", "service"],
    without_effect: &[],
    unsupported: &[],
    strict: true,
};
static REQUESTS: Shape = Shape {
    name: "`requests`",
    keys: &["closed_loop", "constant", "steps", "csv", "scale"],
    without_effect: &[],
    unsupported: &[("uncertainty", "take it out: every seed meets the same curve in this release")],
    strict: true,
};
static CLOSED_LOOP: Shape = Shape {
    name: "`closed_loop`",
    keys: &["clients", "requests"],
    without_effect: &[],
    unsupported: &[("think_time", "take it out: clients ask again at once in this release")],
    strict: true,
};
static STEP: Shape =
    Shape { name: "a step of a rate", keys: &["at", "rate"], without_effect: &[], unsupported: &[], strict: true };
static SERVICE: Shape = Shape {
    name: "`service`",
    keys: &["cpu_per_request", "concurrency", "base_latency"],
    without_effect: &[],
    unsupported: &[],
    strict: true,
};

/// Most steps of one rate curve.
const STEPS_MAX: usize = 10_000_000;

/// Reads `load` and the loads of the timeline.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    of_timeline: &[(SimTime, &Node<'s>)],
    files: &mut Files<'_>,
    workloads: &Workloads,
) -> Result<Vec<LoadSpec>, ScenarioError> {
    let mut load = Vec::new();
    for node in fields.optional("load", |n, what| reader.list(n, what))?.unwrap_or_default() {
        load.push(one(reader, node, None, files, workloads)?);
    }
    for (at, node) in of_timeline {
        load.push(one(reader, node, Some(*at), files, workloads)?);
    }
    load.sort_by_key(|load| load.at);
    Ok(load)
}

fn one<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    step: Option<SimTime>,
    files: &mut Files<'_>,
    workloads: &Workloads,
) -> Result<LoadSpec, ScenarioError> {
    let fields = reader.fields(node, &LOAD)?;
    let workload_node = fields.required(reader, "workload")?;
    let workload = object_name(reader, workload_node)?;
    let cpu_limit_milli = workloads.find(reader, workload_node.at, workload)?.cpu_limit_milli;
    let delay = fields.optional("at", |n, what| reader.duration(n, what))?.unwrap_or(SimDuration::ZERO);
    let at = step.unwrap_or(SimTime::ZERO) + delay;
    let until = fields.optional("for", |n, what| reader.duration(n, what))?.map(|span| at + span);
    let requests = requests(reader, fields.required(reader, "requests")?, at, files)?;
    let service = service(reader, fields.required(reader, "service")?, cpu_limit_milli)?;
    Ok(LoadSpec { workload, at, until, requests, service })
}

fn service<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    cpu_limit_milli: Option<i64>,
) -> Result<Service, ScenarioError> {
    let fields = reader.fields(node, &SERVICE)?;
    let cpu_node = fields.required(reader, "cpu_per_request")?;
    let cpu_per_request = reader.duration(cpu_node, "cpu_per_request")?;
    if cpu_per_request == SimDuration::ZERO {
        return Err(reader
            .error(cpu_node.at, "a request that costs no CPU never moves an autoscaler")
            .because("zero, or below a microsecond")
            .help("write the CPU time of one request, for example `12ms`"));
    }
    let concurrency = reader.integer(fields.required(reader, "concurrency")?, "concurrency", 1, 1_000_000)?;
    let base_latency = fields.optional("base_latency", |n, what| reader.duration(n, what))?;
    Ok(Service {
        cpu_per_request,
        concurrency: u32::try_from(concurrency).unwrap_or(u32::MAX),
        base_latency: base_latency.unwrap_or(SimDuration::ZERO),
        cpu_limit_milli,
    })
}

fn requests<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    start: SimTime,
    files: &mut Files<'_>,
) -> Result<Requests, ScenarioError> {
    let fields = reader.fields(node, &REQUESTS)?;
    let kinds = ["closed_loop", "constant", "steps", "csv"];
    let given: Vec<_> = kinds.iter().filter_map(|&kind| Some((kind, fields.get(kind)?))).collect();
    let [(kind, value)] = given.as_slice() else {
        return Err(reader
            .error(
                node.at,
                format!("`requests` has one of `closed_loop`, `constant`, `steps` and `csv`, not {}", given.len()),
            )
            .because("here")
            .help("write for example `requests: { constant: 50 }` for 50 requests per second"));
    };
    let scale = fields.optional("scale", |n, what| positive(reader, n, what))?;
    let mut steps = match *kind {
        "closed_loop" => {
            if let Some(node) = fields.get("scale") {
                return Err(reader
                    .error(node.at, "a closed loop has no rate to scale")
                    .because("has no effect")
                    .help("change `clients` instead"));
            }
            return closed_loop(reader, value);
        }
        "constant" => vec![RateStep { at: start, rate: positive(reader, value, "constant")? }],
        "steps" => rate_steps(reader, value, start)?,
        _ => {
            let name = reader.text(value, "csv")?;
            let bytes = files.bytes(reader, value, name)?;
            csv_steps(&bytes, &files.directory.join(name).display().to_string(), start)?
        }
    };
    for step in &mut steps {
        step.rate *= scale.unwrap_or(1.0);
    }
    Ok(Requests::Open(steps))
}

fn closed_loop<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Requests, ScenarioError> {
    let fields = reader.fields(node, &CLOSED_LOOP)?;
    let clients = reader.integer(fields.required(reader, "clients")?, "clients", 1, 1_000_000)?;
    let requests = reader.integer(fields.required(reader, "requests")?, "requests", 1, 1_000_000_000_000)?;
    Ok(Requests::ClosedLoop { clients: u32::try_from(clients).unwrap_or(u32::MAX), requests: requests.unsigned_abs() })
}

/// A number of 0 or more.
fn positive(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<f64, ScenarioError> {
    let quantity = reader.quantity(node, what)?;
    if quantity.nanos() < 0 {
        return Err(reader
            .error(node.at, format!("`{what}` is negative"))
            .because("below zero")
            .help("write a number of 0 or more"));
    }
    Ok(quantity.nanos() as f64 / 1e9)
}

fn rate_steps<'s>(reader: &mut Reader<'s>, node: &Node<'s>, start: SimTime) -> Result<Vec<RateStep>, ScenarioError> {
    let mut steps: Vec<RateStep> = Vec::new();
    for node in reader.list(node, "steps")? {
        let fields = reader.fields(node, &STEP)?;
        let at_node = fields.required(reader, "at")?;
        let at = start + reader.duration(at_node, "at")?;
        if steps.last().is_some_and(|last| last.at >= at) {
            return Err(reader
                .error(at_node.at, "the steps of a rate come in order of time")
                .because("not after the step before")
                .help("`at` counts from the start of this load; sort the steps"));
        }
        steps.push(RateStep { at, rate: positive(reader, fields.required(reader, "rate")?, "rate")? });
    }
    Ok(steps)
}

/// The columns of a rate curve.
const COLUMNS: [&str; 2] = ["t_seconds", "requests_per_second"];

/// A curve of mean rates: each row holds from its time to that of the next; after the last the rate is zero once another
/// such span has passed.
fn csv_steps(bytes: &[u8], file: &str, start: SimTime) -> Result<Vec<RateStep>, ScenarioError> {
    let wrong = |line: u64, what: &str| {
        ScenarioError::new(format!("{file}:{line}: {what}")).help(format!(
            "a rate curve is a CSV file with the columns `{}` and `{}`, times rising",
            COLUMNS[0], COLUMNS[1]
        ))
    };
    let mut rows = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(bytes);
    let header = rows.headers().map_err(|_| wrong(1, "is not text"))?.clone();
    let column = |name| header.iter().position(|title| title == name);
    let (Some(time), Some(rate)) = (column(COLUMNS[0]), column(COLUMNS[1])) else {
        return Err(wrong(1, "the header lacks a column"));
    };
    let mut steps: Vec<RateStep> = Vec::new();
    let mut row = csv::StringRecord::new();
    loop {
        let line = rows.position().line();
        match rows.read_record(&mut row) {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) => return Err(wrong(line, "has another number of columns than the header, or is not text")),
        }
        let number = |column: usize| row.get(column).and_then(|cell| cell.parse::<f64>().ok()).filter(|n| *n >= 0.0);
        let (Some(seconds), Some(rate)) = (number(time), number(rate)) else {
            return Err(wrong(line, "is not two numbers of 0 or more"));
        };
        let at = start + SimDuration::from_secs_f64(seconds);
        if !rate.is_finite() || steps.last().is_some_and(|last| last.at >= at) {
            return Err(wrong(line, "the time does not rise, or the rate is not finite"));
        }
        if steps.len() == STEPS_MAX {
            return Err(wrong(line, "there are more than ten million rows"));
        }
        steps.push(RateStep { at, rate });
    }
    match steps.as_slice() {
        [.., before, last] => {
            let end = last.at + (last.at - before.at);
            steps.push(RateStep { at: end, rate: 0.0 });
            Ok(steps)
        }
        _ => Err(wrong(1, "a curve has at least two rows")),
    }
}

#[cfg(test)]
mod tests {
    use super::csv_steps;
    use crate::domain::{SimDuration, SimTime};

    #[test]
    fn a_curve_ends_one_span_after_its_last_row() {
        let start = SimTime::ZERO + SimDuration::from_secs(100);
        let steps = csv_steps(b"t_seconds,requests_per_second\n0,1.5\n60,2\n", "a.csv", start).unwrap();
        let read: Vec<_> = steps.iter().map(|step| (step.at.as_secs(), step.rate)).collect();
        assert_eq!(read, [(100, 1.5), (160, 2.0), (220, 0.0)]);
    }

    #[test]
    fn a_broken_curve_names_its_line() {
        let read = |text: &str| csv_steps(text.as_bytes(), "a.csv", SimTime::ZERO).unwrap_err().to_string();
        assert_eq!(read("time,rate\n0,1\n"), "a.csv:1: the header lacks a column");
        assert_eq!(
            read("t_seconds,requests_per_second\n0,1\n0,2\n"),
            "a.csv:3: the time does not rise, or the rate is not finite"
        );
        assert_eq!(read("t_seconds,requests_per_second\n0,1\n60,many\n"), "a.csv:3: is not two numbers of 0 or more");
        assert_eq!(read("t_seconds,requests_per_second\n0,1\n"), "a.csv:1: a curve has at least two rows");
    }
}

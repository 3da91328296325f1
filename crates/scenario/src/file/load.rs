//! `load`: requests to workloads, and CPU that they use.

pub(crate) mod records;
pub(crate) mod shapes;
mod silence;
mod spans;
mod tables;

use std::sync::Arc;

use super::timeline::warn_of_late;
use super::{Reading, ScenarioError, optional};
use crate::definition::{LoadSpec, OpenRequests, Requests};
use crate::domain::{SimDuration, SimTime};
use crate::error::listed;
use crate::reader::Fields;
use crate::schema::kind::{Amount, Kind, Share, Shift, Text};
use crate::schema::load::{ClosedLoop, LoadEntry, REQUESTS, RecordedValues, Spaced, UncertaintyKeys};
use crate::schema::rates::{Burst, Diurnal, Ramp, Sine, Steps};
use crate::tree::{Location, Node};
use nodecast_load::{Curve, Service, Uncertainty};
use records::{Recorded, Values};

/// Most steps of one rate curve.
const STEPS_MAX: usize = 10_000_000;
/// Most steps of a rate by formula, and of the noise on one: each is drawn, kept and looked up, for every seed.
const FORMULA_STEPS_MAX: usize = 1_000_000;

/// The time that one load has.
#[derive(Clone, Copy)]
pub(crate) struct LoadSpan {
    /// Calendar time of its start.
    pub(super) clock: jiff::Timestamp,
    /// From its start to the end of the run.
    pub(super) length: SimDuration,
}

/// What the numbers of a curve are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Measure {
    /// Requests (or messages) per second.
    #[default]
    Requests,
    /// Cores.
    Cores,
    /// MiB of memory.
    Mebibytes,
}

/// A load that does not depend on the answers, while it is read.
struct Open {
    curve: Curve,
    /// The single arrivals of a trace, as long as they are known.
    arrivals: Option<Vec<SimDuration>>,
}

/// A load with its requests, whose times count from its own beginning.
pub(crate) fn load<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    entry: LoadEntry,
) -> Result<LoadSpec, ScenarioError> {
    let (workload, place) = entry.workload;
    let at = reading.step.unwrap_or(SimTime::ZERO) + entry.at;
    let duration = reading.duration;
    let end = SimTime::ZERO + duration;
    if at >= end && reading.step.is_none_or(|step| step < end) {
        let place = fields.get("at").map_or(place, |node| node.at);
        warn_of_late(&mut reading.reader, place, &format!("load on {workload}"), at, duration);
    }
    reading.span = LoadSpan {
        clock: reading.start + jiff::SignedDuration::from_micros(at.as_micros()),
        length: end.saturating_since(at),
    };
    let (requests, service) = asked_for(reading, fields, entry.service)?;
    silence::warn_of_rest(reading, fields, &requests, entry.length);
    let until = entry.length.map(|length| at + length);
    Ok(LoadSpec { workload, at, until, requests, detail: entry.detail, service })
}

/// The requests of a load with what they cost, or its CPU.
fn asked_for<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    service: Option<Service>,
) -> Result<(Requests, Service), ScenarioError> {
    let Some(cpu) = fields.get("cpu") else {
        let requests = requests(reading, fields.required(&reading.reader, "requests")?)?;
        // Without one the reader says where it is missing.
        fields.required(&reading.reader, "service")?;
        return Ok((requests, service.unwrap_or_default()));
    };
    if let Some(node) = fields.get("requests") {
        return Err(reading
            .error(node.at, "a load has one of `requests` and `cpu`, not both")
            .because("beside `cpu`")
            .help("requests use CPU by `service.cpu_per_request`; keep `cpu` for work whose requests nobody counts"));
    }
    if let Some((key, node)) = ["service", "detail"].iter().find_map(|&key| Some((key, fields.get(key)?))) {
        return Err(reading
            .error(node.at, format!("`{key}` does not apply to a load in cores, which has no requests"))
            .because("has no effect")
            .help("leave it out, or state `requests` in place of `cpu`"));
    }
    Ok((Requests::Cpu(amounts(reading, cpu, Measure::Cores)?), Service::default()))
}

/// CPU or memory in use, as a curve.
pub(crate) fn amounts<'s>(
    reading: &mut Reading<'_, 's>,
    node: &Node<'s>,
    measure: Measure,
) -> Result<OpenRequests, ScenarioError> {
    reading.measure = measure;
    let amounts = without_arrivals(reading, node);
    reading.measure = Measure::Requests;
    amounts
}

fn without_arrivals<'s>(reading: &mut Reading<'_, 's>, node: &Node<'s>) -> Result<OpenRequests, ScenarioError> {
    let fields = reading.reader.fields(node, &REQUESTS.shape)?;
    let uncertainty = optional::<UncertaintyKeys>(reading, fields, "uncertainty")?.unwrap_or_default();
    refuse_arrivals(reading, fields)?;
    let curve = open(reading, fields)?.curve;
    Ok(OpenRequests { curve: Arc::new(curve), arrivals: None, even: true, uncertainty })
}

/// CPU has no arrivals.
fn refuse_arrivals(reading: &Reading<'_, '_>, fields: Fields<'_, '_>) -> Result<(), ScenarioError> {
    let arriving = ["closed_loop", "trace", "arrivals"];
    let Some((key, node)) = arriving.iter().find_map(|&key| Some((key, fields.get(key)?))) else { return Ok(()) };
    let (what, help) = match reading.measure {
        Measure::Mebibytes => ("memory", "write how many MiB are in use, for example `memory: { csv: memory.csv }`"),
        Measure::Cores | Measure::Requests => {
            ("CPU", "write how many cores are in use, for example `cpu: { csv: cores.csv }`")
        }
    };
    Err(reading.error(node.at, format!("{what} in use has no `{key}`")).because("about single requests").help(help))
}

fn requests<'s>(reading: &mut Reading<'_, 's>, node: &Node<'s>) -> Result<Requests, ScenarioError> {
    let fields = reading.reader.fields(node, &REQUESTS.shape)?;
    if let Some(clients) = fields.get("closed_loop") {
        only_kind(reading, fields)?;
        let modifiers = ["speed_up", "repeat", "shift", "scale", "growth_per_month", "uncertainty", "arrivals"];
        if let Some((key, node)) = modifiers.iter().find_map(|&key| Some((key, fields.get(key)?))) {
            return Err(reading
                .error(node.at, format!("`{key}` does not apply to a closed loop, which has no rate"))
                .because("has no effect")
                .help("change `clients` instead"));
        }
        return ClosedLoop::read(reading, clients, "closed_loop");
    }
    let uncertainty = optional::<UncertaintyKeys>(reading, fields, "uncertainty")?.unwrap_or_default();
    let Open { curve, arrivals } = open(reading, fields)?;
    let spaced = optional::<Spaced>(reading, fields, "arrivals")?;
    let listed = arrivals.filter(|_| uncertainty == Uncertainty::default() && spaced.is_none());
    Ok(Requests::Open(OpenRequests {
        curve: Arc::new(curve),
        arrivals: listed.map(Arc::from),
        even: spaced.unwrap_or(false),
        uncertainty,
    }))
}

/// The arrivals of messages at a queue: an open load from the start of the run.
pub(crate) fn messages<'s>(reading: &mut Reading<'_, 's>, node: &Node<'s>) -> Result<OpenRequests, ScenarioError> {
    reading.span = LoadSpan { clock: reading.start, length: reading.duration };
    match requests(reading, node)? {
        Requests::Open(open) => Ok(open),
        Requests::ClosedLoop { .. } | Requests::Cpu(_) => Err(reading
            .error(node.at, "a closed loop is not supported for messages, which have no response")
            .because("a closed loop")
            .help("write for example `messages: { constant: 5 }` for 5 messages per second")),
    }
}

/// The one kind of load that is given.
fn only_kind<'n, 's>(
    reading: &Reading<'_, 's>,
    fields: Fields<'n, 's>,
) -> Result<(&'static str, &'n Node<'s>), ScenarioError> {
    let given = REQUESTS.given(fields);
    let [one] = given.as_slice() else {
        let kinds = listed(REQUESTS.one_of.iter().copied());
        let (key, help) = match reading.measure {
            Measure::Cores => {
                ("cpu", "write for example `cpu: { constant: 1.5 }` for one and a half cores; `sum` adds several up")
            }
            Measure::Mebibytes => {
                ("memory", "write for example `memory: { constant: 300 }` for 300 MiB; `sum` adds several up")
            }
            Measure::Requests => ("requests", ""),
        };
        if reading.measure != Measure::Requests {
            return Err(reading
                .error(fields.at, format!("`{key}` has one of {kinds}, not {}", given.len()))
                .because("here")
                .help(help));
        }
        return Err(reading
            .error(fields.at, format!("`requests` has one of {kinds}, not {}", given.len()))
            .because("here")
            .help("write for example `requests: { constant: 50 }` for 50 requests per second; `sum` adds several up"));
    };
    Ok(*one)
}

/// A rate, with what is done to it: first the speed, then the repetition, the shift, the scale and the growth.
fn open<'s>(reading: &mut Reading<'_, 's>, fields: Fields<'_, 's>) -> Result<Open, ScenarioError> {
    let (kind, value) = only_kind(reading, fields)?;
    let length = reading.span.length;
    let mut open = match kind {
        "constant" => curve_alone(Curve::constant(Amount::read(reading, value, kind)?)),
        "steps" => curve_alone(Steps::read(reading, value, kind)?),
        "ramp" => curve_alone(Ramp::read(reading, value, kind)?),
        "sine" => curve_alone(Sine::read(reading, value, kind)?),
        "diurnal" => curve_alone(Diurnal::read(reading, value, kind)?),
        "burst" => curve_alone(Burst::read(reading, value, kind)?),
        "sum" => curve_alone(sum(reading, value)?),
        _ => {
            let (column, values) = recorded(reading, fields, kind)?;
            let (bytes, shown) = reading.table(value, reading.reader.text(value, kind)?)?;
            let mebibytes = reading.measure == Measure::Mebibytes;
            let of_bytes =
                |curve: Curve| curve_alone(if mebibytes { curve.scaled(1.0 / f64::from(1 << 20)) } else { curve });
            let started = |reading: &mut Reading<'_, 's>, (curve, first): Recorded| {
                silence::tell_of_start(reading, (kind, value), fields, first);
                curve
            };
            match (kind, column) {
                ("csv", Some(column)) => {
                    let (recorded, missing) = records::of_table(&bytes, &shown, &column, values)?;
                    silence::warn_of_missing(reading, value, missing);
                    curve_alone(started(reading, recorded))
                }
                ("csv", None) => curve_alone(tables::curve_of_rows(&bytes, &shown, reading.measure)?),
                ("prometheus", _) => of_bytes(started(reading, tables::curve_of_matrix(&bytes, &shown)?)),
                ("cloudwatch", _) => of_bytes(started(reading, records::of_cloudwatch(&bytes, &shown, values)?)),
                ("datadog", _) => of_bytes(started(reading, records::of_datadog(&bytes, &shown, values)?)),
                _ => tables::of_arrivals(tables::arrivals_of_rows(&bytes, &shown)?),
            }
        }
    };
    let had_rate = silence::has_rate(open.curve.steps());
    if let Some(node) = fields.get("speed_up") {
        let factor = Amount::read(reading, node, "speed_up")?;
        if factor <= 0.0 {
            let error = reading.error(node.at, "`speed_up` is 0");
            return Err(error.because("nothing is left").help("write a number above 0"));
        }
        open = match open.arrivals {
            Some(arrivals) => tables::of_arrivals(
                arrivals.iter().map(|at| SimDuration::from_secs_f64(at.as_secs_f64() / factor)).collect(),
            ),
            None => curve_alone(open.curve.sped_up(factor)),
        };
    }
    let shift = optional::<Shift>(reading, fields, "shift")?;
    if let Some(node) = fields.get("repeat") {
        let period = reading.reader.duration(node, "repeat")?;
        check_count(reading, node.at, period, open.curve.steps().len())?;
        let (begin, end) = (SimDuration::ZERO - shift.unwrap_or_default(), length - shift.unwrap_or_default());
        open = curve_alone(open.curve.repeated(period, begin, end));
    }
    if let Some(shift) = shift {
        open.curve = open.curve.shifted(shift);
        for at in open.arrivals.iter_mut().flatten() {
            *at += shift;
        }
    }
    if had_rate {
        silence::warn_of_none(reading, (kind, value), &open.curve);
    }
    if let Some(node) = fields.get("scale") {
        open = curve_alone(open.curve.scaled(Amount::read(reading, node, "scale")?));
    }
    if let Some(node) = fields.get("growth_per_month") {
        open = curve_alone(open.curve.growing(Share::<1_000>::read(reading, node, "growth_per_month")?, length));
    }
    Ok(open)
}

/// The column of a table and what its values tell, for a kind of file that has such.
fn recorded<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    kind: &str,
) -> Result<(Option<String>, Values), ScenarioError> {
    let column = optional::<Text>(reading, fields, "column")?;
    let stated = optional::<RecordedValues>(reading, fields, "values")?;
    let misplaced = match (column.is_some(), stated.is_some()) {
        (true, _) if kind != "csv" => Some(("column", "a column is one of a `csv`")),
        (_, true) if !(["cloudwatch", "datadog"].contains(&kind) || column.is_some()) => {
            Some(("values", "what values tell is said of `cloudwatch`, `datadog` and a `csv` with a `column`"))
        }
        _ => None,
    };
    if let Some((key, why)) = misplaced {
        let at = fields.get(key).map_or(fields.at, |node| node.at);
        let error = reading.error(at, format!("`{kind}` has no `{key}`")).because("would change nothing");
        return Err(error.help(format!("{why}; leave it out")));
    }
    // CloudWatch counts requests by period; what it says of CPU and memory are means.
    let counts = kind == "cloudwatch" && reading.measure == Measure::Requests;
    Ok((column, stated.unwrap_or(if counts { Values::Totals } else { Values::Rates })))
}

fn curve_alone(curve: Curve) -> Open {
    Open { curve, arrivals: None }
}

fn sum<'s>(reading: &mut Reading<'_, 's>, node: &Node<'s>) -> Result<Curve, ScenarioError> {
    let mut curves = Vec::new();
    for part in reading.reader.list(node, "sum")? {
        let fields = reading.reader.fields(part, &REQUESTS.shape)?;
        for key in ["closed_loop", "uncertainty", "arrivals"] {
            if let Some(node) = fields.get(key) {
                return Err(reading
                    .error(node.at, format!("a part of a sum has no `{key}`"))
                    .because("not a rate of its own")
                    .help("a sum adds rates; state `uncertainty` and `arrivals` beside `sum`, a closed loop as another load"));
            }
        }
        if reading.measure != Measure::Requests {
            refuse_arrivals(reading, fields)?;
        }
        curves.push(open(reading, fields)?.curve);
    }
    if curves.is_empty() {
        return Err(reading.error(node.at, "`sum` adds nothing up").because("no part").help("list rates under it"));
    }
    Ok(Curve::sum(&curves))
}

/// By how much the demand of a seed differs; one of the two shares is there.
pub(crate) fn uncertainty(
    reading: &Reading<'_, '_>,
    fields: Fields<'_, '_>,
    uncertainty_keys: UncertaintyKeys,
) -> Result<Uncertainty, ScenarioError> {
    if uncertainty_keys.factor.is_none() && uncertainty_keys.noise.is_none() {
        return Err(reading
            .error(fields.at, "`uncertainty` needs `factor` or `noise`")
            .because("says nothing")
            .help("write for example `uncertainty: { factor: 20%, noise: 10% }`"));
    }
    let (factor, noise) = (uncertainty_keys.factor.unwrap_or(0.0), uncertainty_keys.noise.unwrap_or(0.0));
    if noise > 0.0 {
        let at = fields.get("noise_every").map_or(fields.at, |node| node.at);
        check_count(reading, at, uncertainty_keys.noise_every, 1)?;
    }
    Ok(Uncertainty { factor, noise, noise_every: uncertainty_keys.noise_every })
}

/// Refuses a curve that would have more steps than fit: one step `every` so often, or a round of `each` steps.
fn check_count(reading: &Reading<'_, '_>, at: Location, every: SimDuration, each: usize) -> Result<(), ScenarioError> {
    check_count_over(reading, at, reading.span.length, every, each)
}

/// The same of a curve of another length than the load's.
fn check_count_over(
    reading: &Reading<'_, '_>,
    at: Location,
    length: SimDuration,
    every: SimDuration,
    each: usize,
) -> Result<(), ScenarioError> {
    let rounds = length.as_micros() / every.as_micros().max(1);
    if every > SimDuration::ZERO
        && usize::try_from(rounds).unwrap_or(usize::MAX).saturating_mul(each) <= FORMULA_STEPS_MAX
    {
        return Ok(());
    }
    Err(reading
        .error(at, format!("{every} would split the run into more than a million steps"))
        .because("too short")
        .help("write a longer span"))
}

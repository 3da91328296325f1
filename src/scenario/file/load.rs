//! `load`: requests to workloads.

mod shapes;
mod tables;

use std::sync::Arc;

use super::super::definition::{Detail, LoadSpec, OpenRequests, Requests};
use super::super::reader::{Fields, Reader};
use super::super::tree::Node;
use super::checks::Workloads;
use super::timeline::{object_name, warn_of_late};
use super::{Files, ScenarioError};
use crate::domain::{SimDuration, SimTime};
use crate::load::{Curve, MemoryUse, Service, Uncertainty};
use crate::scenario::schema::load::{CLOSED_LOOP, LOAD, MEMORY, REQUESTS, SERVICE, UNCERTAINTY};

/// Most steps of one rate curve.
const STEPS_MAX: usize = 10_000_000;
/// How often noise is drawn unless the scenario says so.
const NOISE_EVERY: SimDuration = SimDuration::from_secs(60);

/// What a load must know of the run.
pub(super) struct Run<'a> {
    /// Calendar time at which simulated time is zero.
    pub start: jiff::Timestamp,
    /// How long the run is.
    pub duration: SimDuration,
    /// What may serve requests.
    pub workloads: &'a Workloads,
}

/// The time that one load has.
struct LoadSpan {
    /// Calendar time of its start.
    clock: jiff::Timestamp,
    /// From its start to the end of the run.
    length: SimDuration,
}

/// A load that does not depend on the answers, while it is read.
struct Open {
    curve: Curve,
    /// The single arrivals of a trace, as long as they are known.
    arrivals: Option<Vec<SimDuration>>,
}

/// Reads `load` and the loads of the timeline.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    of_timeline: &[(SimTime, &Node<'s>)],
    files: &mut Files<'_>,
    run: &Run<'_>,
) -> Result<Vec<LoadSpec>, ScenarioError> {
    let mut load = Vec::new();
    for node in fields.optional("load", |n, what| reader.list(n, what))?.unwrap_or_default() {
        load.push(one(reader, node, None, files, run)?);
    }
    for (at, node) in of_timeline {
        load.push(one(reader, node, Some(*at), files, run)?);
    }
    load.sort_by_key(|load| load.at);
    Ok(load)
}

fn one<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    step: Option<SimTime>,
    files: &mut Files<'_>,
    run: &Run<'_>,
) -> Result<LoadSpec, ScenarioError> {
    let fields = reader.fields(node, &LOAD.shape)?;
    let workload_node = fields.required(reader, "workload")?;
    let workload = object_name(reader, workload_node)?;
    run.workloads.find(reader, workload_node.at, workload)?;
    let delay = fields.optional("at", |n, what| reader.duration(n, what))?.unwrap_or(SimDuration::ZERO);
    let at = step.unwrap_or(SimTime::ZERO) + delay;
    let end = SimTime::ZERO + run.duration;
    if at >= end && step.is_none_or(|step| step < end) {
        let what = format!("load on {workload}");
        warn_of_late(reader, fields.get("at").unwrap_or(workload_node), &what, at, run.duration);
    }
    let until = fields.optional("for", |n, what| reader.duration(n, what))?.map(|span| at + span);
    let span = LoadSpan {
        clock: run.start + jiff::SignedDuration::from_micros(at.as_micros()),
        length: (SimTime::ZERO + run.duration).saturating_since(at),
    };
    let requests = requests(reader, fields.required(reader, "requests")?, &span, files)?;
    let details = [("auto", Detail::Auto), ("exact", Detail::Exact), ("fluid", Detail::Fluid)];
    let detail = fields.optional("detail", |n, what| reader.choice(n, what, &details))?.unwrap_or_default();
    let service = service(reader, fields.required(reader, "service")?)?;
    Ok(LoadSpec { workload, at, until, requests, detail, service })
}

fn service<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Service, ScenarioError> {
    let fields = reader.fields(node, &SERVICE.shape)?;
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
    let queue = fields.optional("queue_per_replica", |n, what| reader.integer(n, what, 0, 1_000_000_000))?;
    let memory = fields.get("memory").map(|node| memory(reader, node)).transpose()?;
    Ok(Service {
        cpu_per_request,
        concurrency: u32::try_from(concurrency).unwrap_or(u32::MAX),
        base_latency: base_latency.unwrap_or(SimDuration::ZERO),
        timeout: fields.get("timeout").map(|node| positive_duration(reader, node, "timeout")).transpose()?,
        queue_per_replica: queue.and_then(|places| u32::try_from(places).ok()),
        memory,
    })
}

fn memory<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<MemoryUse, ScenarioError> {
    let fields = reader.fields(node, &MEMORY.shape)?;
    let bytes = |key: &'static str| {
        let node = fields.get(key);
        let bytes = node.map(|node| amount(reader, node, key)).transpose()?;
        Ok::<i64, ScenarioError>(bytes.map_or(0, |bytes| libm::round(bytes) as i64))
    };
    fields.required(reader, "idle")?;
    Ok(MemoryUse {
        idle: bytes("idle")?,
        per_request: bytes("per_request")?,
        kept_per_million: bytes("kept_per_million")?,
    })
}

fn requests<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    span: &LoadSpan,
    files: &mut Files<'_>,
) -> Result<Requests, ScenarioError> {
    let fields = reader.fields(node, &REQUESTS.shape)?;
    if let Some(clients) = fields.get("closed_loop") {
        only_kind(reader, node, fields)?;
        let modifiers = ["speed_up", "repeat", "shift", "scale", "growth_per_month", "uncertainty", "arrivals"];
        if let Some((key, node)) = modifiers.iter().find_map(|&key| Some((key, fields.get(key)?))) {
            return Err(reader
                .error(node.at, format!("a closed loop has no rate that `{key}` could change"))
                .because("has no effect")
                .help("change `clients` instead"));
        }
        return closed_loop(reader, clients);
    }
    let uncertainty = fields.get("uncertainty").map(|node| uncertainty(reader, node)).transpose()?.unwrap_or_default();
    let Open { curve, arrivals } = open(reader, node, fields, span, files)?;
    let spacings = [("poisson", false), ("even", true)];
    let spaced = fields.optional("arrivals", |n, what| reader.choice(n, what, &spacings))?;
    let listed = arrivals.filter(|_| uncertainty == Uncertainty::default() && spaced.is_none());
    Ok(Requests::Open(OpenRequests {
        curve: Arc::new(curve),
        arrivals: listed.map(Arc::from),
        even: spaced.unwrap_or(false),
        uncertainty,
    }))
}

/// The arrivals of messages at a queue: an open load from the start of the run.
pub(super) fn messages<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    files: &mut Files<'_>,
    run: &Run<'_>,
) -> Result<OpenRequests, ScenarioError> {
    let span = LoadSpan { clock: run.start, length: run.duration };
    match requests(reader, node, &span, files)? {
        Requests::Open(open) => Ok(open),
        Requests::ClosedLoop { .. } => Err(reader
            .error(node.at, "messages do not wait for an answer: they have no closed loop")
            .because("a closed loop")
            .help("write for example `messages: { constant: 5 }` for 5 messages per second")),
    }
}

/// The one kind of load that is given.
fn only_kind<'n, 's>(
    reader: &Reader<'s>,
    node: &Node<'s>,
    fields: Fields<'n, 's>,
) -> Result<(&'static str, &'n Node<'s>), ScenarioError> {
    let given: Vec<_> = REQUESTS.one_of.iter().filter_map(|&kind| Some((kind, fields.get(kind)?))).collect();
    let [one] = given.as_slice() else {
        let kinds = super::super::error::listed(REQUESTS.one_of.iter().copied());
        return Err(reader
            .error(node.at, format!("`requests` has one of {kinds}, not {}", given.len()))
            .because("here")
            .help("write for example `requests: { constant: 50 }` for 50 requests per second; `sum` adds several up"));
    };
    Ok(*one)
}

/// A rate, with what is done to it: first the speed, then the repetition, the shift, the scale and the growth.
fn open<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    fields: Fields<'_, 's>,
    span: &LoadSpan,
    files: &mut Files<'_>,
) -> Result<Open, ScenarioError> {
    let (kind, value) = only_kind(reader, node, fields)?;
    let mut open = match kind {
        "constant" => curve_alone(Curve::constant(amount(reader, value, "constant")?)),
        "steps" => curve_alone(shapes::steps(reader, value)?),
        "ramp" => curve_alone(shapes::ramp(reader, value)?),
        "sine" => curve_alone(shapes::sine(reader, value, span)?),
        "diurnal" => curve_alone(shapes::diurnal(reader, value, span)?),
        "burst" => curve_alone(shapes::burst(reader, value, span)?),
        "csv" => curve_alone(tables::csv(reader, value, files)?),
        "prometheus" => curve_alone(tables::prometheus(reader, value, files)?),
        "trace" => tables::trace(reader, value, files)?,
        _ => curve_alone(sum(reader, value, span, files)?),
    };
    if let Some(node) = fields.get("speed_up") {
        let factor = above_zero(reader, node, "speed_up")?;
        open = match open.arrivals {
            Some(arrivals) => tables::of_arrivals(
                arrivals.iter().map(|at| SimDuration::from_secs_f64(at.as_secs_f64() / factor)).collect(),
            ),
            None => curve_alone(open.curve.sped_up(factor)),
        };
    }
    let shift = fields.get("shift").map(|node| signed_duration(reader, node, "shift")).transpose()?;
    if let Some(node) = fields.get("repeat") {
        let period = reader.duration(node, "repeat")?;
        check_count(reader, node, span.length, period, open.curve.steps().len())?;
        let (begin, end) = (SimDuration::ZERO - shift.unwrap_or_default(), span.length - shift.unwrap_or_default());
        open = curve_alone(open.curve.repeated(period, begin, end));
    }
    if let Some(shift) = shift {
        open.curve = open.curve.shifted(shift);
        for at in open.arrivals.iter_mut().flatten() {
            *at += shift;
        }
    }
    if let Some(node) = fields.get("scale") {
        open = curve_alone(open.curve.scaled(amount(reader, node, "scale")?));
    }
    if let Some(node) = fields.get("growth_per_month") {
        open = curve_alone(open.curve.growing(share(reader, node, "growth_per_month")?, span.length));
    }
    Ok(open)
}

fn curve_alone(curve: Curve) -> Open {
    Open { curve, arrivals: None }
}

fn sum<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    span: &LoadSpan,
    files: &mut Files<'_>,
) -> Result<Curve, ScenarioError> {
    let mut curves = Vec::new();
    for part in reader.list(node, "sum")? {
        let fields = reader.fields(part, &REQUESTS.shape)?;
        for key in ["closed_loop", "uncertainty", "arrivals"] {
            if let Some(node) = fields.get(key) {
                return Err(reader
                    .error(node.at, format!("a part of a sum has no `{key}`"))
                    .because("not a rate of its own")
                    .help("a sum adds rates; state `uncertainty` and `arrivals` beside `sum`, a closed loop as another load"));
            }
        }
        curves.push(open(reader, part, fields, span, files)?.curve);
    }
    if curves.is_empty() {
        return Err(reader.error(node.at, "`sum` adds nothing up").because("no part").help("list rates under it"));
    }
    Ok(Curve::sum(&curves))
}

fn uncertainty<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Uncertainty, ScenarioError> {
    let fields = reader.fields(node, &UNCERTAINTY.shape)?;
    let spread = |key| fields.get(key).map(|node| share(reader, node, key)).transpose();
    let (factor, noise) = (spread("factor")?, spread("noise")?);
    if factor.is_none() && noise.is_none() {
        return Err(reader
            .error(fields.at, "`uncertainty` needs `factor` or `noise`")
            .because("says nothing")
            .help("write for example `uncertainty: { factor: 20%, noise: 10% }`"));
    }
    let every = fields.optional("noise_every", |n, what| positive_duration(reader, n, what))?;
    Ok(Uncertainty {
        factor: factor.unwrap_or(0.0),
        noise: noise.unwrap_or(0.0),
        noise_every: every.unwrap_or(NOISE_EVERY),
    })
}

fn closed_loop<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Requests, ScenarioError> {
    let fields = reader.fields(node, &CLOSED_LOOP.shape)?;
    let clients = reader.integer(fields.required(reader, "clients")?, "clients", 1, 1_000_000)?;
    let requests = reader.integer(fields.required(reader, "requests")?, "requests", 1, 1_000_000_000_000)?;
    let think_time = fields.optional("think_time", |n, what| reader.duration(n, what))?;
    Ok(Requests::ClosedLoop {
        clients: u32::try_from(clients).unwrap_or(u32::MAX),
        requests: requests.unsigned_abs(),
        think_time: think_time.unwrap_or(SimDuration::ZERO),
    })
}

/// A number of 0 or more.
fn amount(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<f64, ScenarioError> {
    let quantity = reader.quantity(node, what)?;
    if quantity.nanos() < 0 {
        return Err(reader
            .error(node.at, format!("`{what}` is negative"))
            .because("below zero")
            .help("write a number of 0 or more"));
    }
    Ok(quantity.nanos() as f64 / 1e9)
}

/// A number above 0.
fn above_zero(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<f64, ScenarioError> {
    let number = amount(reader, node, what)?;
    if number > 0.0 {
        return Ok(number);
    }
    Err(reader.error(node.at, format!("`{what}` is 0")).because("nothing is left").help("write a number above 0"))
}

/// A share from 0 to 1000 %, written `10%` or `0.1`.
fn share(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<f64, ScenarioError> {
    let text = reader.text(node, what)?.trim();
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    number.ok().filter(|share| (0.0..=10.0).contains(share)).ok_or_else(|| {
        reader
            .error(node.at, format!("`{what}` is not a share"))
            .because("from 0 to 1000 %")
            .help("write for example `10%` or `0.1`")
    })
}

/// A duration above 0.
fn positive_duration(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<SimDuration, ScenarioError> {
    let duration = reader.duration(node, what)?;
    if duration > SimDuration::ZERO {
        return Ok(duration);
    }
    Err(reader.error(node.at, format!("`{what}` is 0")).because("no time at all").help("write for example `60s`"))
}

/// A duration that may be negative: `6h` or `-6h`.
fn signed_duration(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<SimDuration, ScenarioError> {
    match reader.text(node, what)?.strip_prefix('-').map(str::parse::<SimDuration>) {
        Some(Ok(earlier)) => Ok(SimDuration::ZERO - earlier),
        _ => reader.duration(node, what),
    }
}

/// Refuses a curve that would have more steps than fit: one step `every` so often, or a round of `each` steps.
fn check_count(
    reader: &Reader<'_>,
    node: &Node<'_>,
    length: SimDuration,
    every: SimDuration,
    each: usize,
) -> Result<(), ScenarioError> {
    let rounds = length.as_micros() / every.as_micros().max(1);
    if every > SimDuration::ZERO && usize::try_from(rounds).unwrap_or(usize::MAX).saturating_mul(each) <= STEPS_MAX {
        return Ok(());
    }
    Err(reader
        .error(node.at, format!("{every} cuts the run into more than ten million steps"))
        .because("too short")
        .help("write a longer span"))
}

//! What no program of a real cluster tells: the run, its bill, and how requests and messages fare.

use std::collections::BTreeMap;
use std::io;

use super::exposition::{Changes, Exposition, Family, Labels};
use super::lives::{Lives, value};
use crate::domain::{HourlyRate, SimTime};
use crate::summary::lives::is_daemon;
use crate::summary::rounded;
use nodecast_world::record::WorkloadSample;

/// Series of each workload, for the size of the text.
pub(super) const SERIES: u64 = 5;

pub(super) fn write(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    run(out, lives)?;
    rates(out, lives)?;
    bill(out, lives)?;
    evictions(out, lives)?;
    requests(out, lives)?;
    queues(out, lives)
}

fn run(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let about = &lives.outcome.about;
    let labels = vec![
        ("scenario", about.scenario.clone()),
        ("policy", about.policy.clone()),
        ("seed", about.seed.to_string()),
        ("autoscaler", about.autoscaler.clone()),
        ("region", about.region.clone()),
    ];
    out.family(Family::gauge("nodecast_run_info", "1, with what was simulated."));
    out.series(&labels, SimTime::ZERO, |_| Some(1.0))
}

/// What is charged by the hour at each instant.
fn rates(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let bill = &lives.outcome.bill;
    let mut rates = Changes::default();
    for line in bill.lines.iter().filter(|line| line.rate != HourlyRate::ZERO) {
        let labels = vec![
            ("currency", bill.currency.code().to_owned()),
            ("item", line.item.name().to_owned()),
            ("capacity_type", value(line.capacity_type)),
        ];
        rates.between(labels, line.from, Some(line.to), line.rate.as_nanos());
    }
    out.family(Family::gauge("nodecast_cost_per_hour", "What is charged by the hour, by item of the bill."));
    out.changes(rates, 1e9)
}

/// The bill up to each instant: lines that are over as they are, others by the share of their time that has passed.
fn bill(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let bill = &lives.outcome.bill;
    let mut moments: Vec<(SimTime, i128, f64, f64)> = Vec::new();
    for line in &bill.lines {
        let (from, to) = (line.from.as_micros() as f64, line.to.as_micros() as f64);
        let slope = if to > from { line.amount.as_nanos() as f64 / (to - from) } else { 0.0 };
        moments.push((line.from, 0, slope, slope * from));
        moments.push((line.to, line.amount.as_nanos(), -slope, -slope * from));
    }
    moments.sort_by_key(|moment| moment.0);
    let mut moments = moments.into_iter().peekable();
    let (mut over, mut slope, mut offset) = (0_i128, 0.0_f64, 0.0_f64);
    out.family(Family::gauge("nodecast_bill", "The bill up to now."));
    out.series(&vec![("currency", bill.currency.code().to_owned())], SimTime::ZERO, |at| {
        while let Some((_, amount, slopes, offsets)) = moments.next_if(|moment| moment.0 <= at) {
            (over, slope, offset) = (over + amount, slope + slopes, offset + offsets);
        }
        let under_way = if moments.peek().is_some() { slope * at.as_micros() as f64 - offset } else { 0.0 };
        Some(rounded((over as f64 + under_way) / 1e9, 6))
    })
}

fn evictions(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let mut evicted = Changes::default();
    for (_, ref pod) in lives.pods().filter(|(_, pod)| pod.evicted && !is_daemon(lives.outcome, pod)) {
        if let Some(at) = pod.deletion_requested {
            evicted.add(lives.workload_labels(pod.workload, "workload"), at, 1);
        }
    }
    out.family(Family::counter("nodecast_pods_evicted", "Pods evicted, whoever did it, daemons left out."));
    out.changes(evicted, 1.0)
}

fn requests(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    type Of = fn(&WorkloadSample) -> Option<f64>;
    let families: [(&'static str, &'static str, Of); 4] = [
        ("nodecast_requests_per_second", "Requests answered.", |item| Some(item.requests_per_second)),
        ("nodecast_cpu_used_cores", "CPU in use by all replicas.", |item| Some(item.cpu_used_milli / 1e3)),
        ("nodecast_response_mean_seconds", "Mean response time.", |workload_sample| {
            workload_sample.latency_mean_seconds
        }),
        ("nodecast_response_p99_seconds", "99th percentile of the response time.", |item| item.latency_p99_seconds),
    ];
    let loaded = lives.outcome.record.workloads.iter().enumerate().filter(|(_, facts)| facts.has_load);
    let loaded: Vec<_> = loaded.map(|(index, _)| crate::domain::WorkloadId::from_index(index)).collect();
    for (name, help, of) in families {
        out.family(Family::gauge(name, help));
        for workload in &loaded {
            let labels = lives.workload_labels(*workload, "workload");
            out.series(&labels, SimTime::ZERO, |at| {
                of(lives.sample(at)?.workloads.iter().find(|this_workload| this_workload.workload == *workload)?)
            })?;
        }
    }
    Ok(())
}

fn queues(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    out.family(Family::gauge("nodecast_queue_messages", "Messages that wait, and those being worked on."));
    let mut series: BTreeMap<Labels, (usize, bool)> = BTreeMap::new();
    for (place, queue) in lives.outcome.queues.iter().enumerate() {
        for (state, waits) in [("waiting", true), ("in_flight", false)] {
            series.insert(vec![("queue", queue.name.clone()), ("state", state.to_owned())], (place, waits));
        }
    }
    for (labels, (place, waits)) in series {
        out.series(&labels, SimTime::ZERO, |at| {
            let queue = lives.sample(at)?.queues.get(place)?;
            Some(rounded(if waits { queue.waiting } else { queue.in_flight }, 3))
        })?;
    }
    Ok(())
}

//! Jobs as kube-state-metrics shows them. A Job that has ended is shown for a while, as with `ttlSecondsAfterFinished`.
//!
//! Source: kube-state-metrics 2.15 `docs/metrics/workload/job-metrics.md`.

use std::collections::BTreeMap;
use std::io;

use super::exposition::{Exposition, Family, Labels, Level, Spans};
use super::lives::{FINISHED_STAYS, Lives};
use super::owners::{job_labels, owner_labels};
use crate::domain::SimTime;
use nodecast_world::record::{JobFacts, JobOutcomeKind, WorkloadKind};

/// Series of each Job, for the size of the text.
pub(super) const SERIES: u64 = 9;

/// A Job, and how many of its pods were active, had succeeded and had failed over time.
struct Shown<'l> {
    facts: &'l JobFacts,
    labels: Labels,
    life: Life,
    counts: [Level; 3],
}

pub(super) fn write(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let jobs = jobs(lives);
    facts(out, &jobs)?;
    owners(out, lives, &jobs)?;
    times(out, &jobs)?;
    let names = [
        ("kube_job_status_active", "Pods that are there and have not ended."),
        ("kube_job_status_succeeded", "Pods that have done their work."),
        ("kube_job_status_failed", "Pods that have failed or were lost."),
    ];
    for (place, (name, help)) in names.into_iter().enumerate() {
        out.family(Family::gauge(name, help));
        let mut spans = Spans::default();
        for job in &jobs {
            if let Some(level) = job.counts.get(place) {
                spans.follow(&job.labels, job.life, level, |number| number as f64);
            }
        }
        out.spans(spans, false)?;
    }
    ends(out, &jobs)
}

/// From when until when a Job is shown.
pub(super) fn life_of(facts: &JobFacts) -> Life {
    let until = facts.end.map(|end| match end.kind {
        JobOutcomeKind::Deleted => end.at,
        JobOutcomeKind::Complete | JobOutcomeKind::Failed => end.at + FINISHED_STAYS,
    });
    (facts.created, until)
}

fn jobs<'l>(lives: &'l Lives<'_>) -> Vec<Shown<'l>> {
    let mut changes: BTreeMap<usize, [Vec<(SimTime, i64)>; 3]> = BTreeMap::new();
    for (id, ref pod) in lives.pods() {
        let Some(job) = pod.job else { continue };
        let [active, succeeded, failed] = changes.entry(job as usize).or_default();
        let over = lives.active_until(id, pod);
        active.push((pod.created, 1));
        active.extend(over.map(|over| (over, -1)));
        let ended = lives.outcome.record.jobs.get(job as usize).and_then(|job| job.end).map(|end| end.at);
        match (lives.finished(id), over) {
            (Some((at, false)), _) => succeeded.push((at, 1)),
            (Some((at, true)), _) => failed.push((at, 1)),
            // Pods that a Job deletes at its end have not failed.
            (None, Some(at)) if ended.is_none_or(|ended| at < ended) => failed.push((at, 1)),
            (None, _) => {}
        }
    }
    let shown = lives.outcome.record.jobs.iter().enumerate().map(|(place, facts)| Shown {
        facts,
        labels: job_labels(lives, facts.workload, &facts.name),
        life: life_of(facts),
        counts: {
            let [active, mut succeeded, mut failed] = changes.remove(&place).unwrap_or_default();
            for (counts, before) in [(&mut succeeded, facts.ended_before.0), (&mut failed, facts.ended_before.1)] {
                counts.extend((before > 0).then_some((facts.created, i64::from(before))));
            }
            [active, succeeded, failed].map(Level::from_changes)
        },
    });
    shown.collect()
}

type Life = (SimTime, Option<SimTime>);

fn facts(out: &mut Exposition<'_>, jobs: &[Shown<'_>]) -> io::Result<()> {
    type Of = fn(&JobFacts) -> Option<u32>;
    let families: [(&'static str, &'static str, Of); 3] = [
        ("kube_job_info", "1 for each Job.", |_| Some(1)),
        ("kube_job_spec_parallelism", "Pods at a time.", |item| Some(item.parallelism)),
        ("kube_job_spec_completions", "Successes that complete the Job.", |item| item.completions),
    ];
    for (name, help, of) in families {
        out.family(Family::gauge(name, help));
        let mut spans = Spans::default();
        for job in jobs {
            if let Some(number) = of(job.facts) {
                spans.add(job.labels.clone(), job.life, f64::from(number));
            }
        }
        out.spans(spans, name == "kube_job_info")?;
    }
    Ok(())
}

fn owners(out: &mut Exposition<'_>, lives: &Lives<'_>, jobs: &[Shown<'_>]) -> io::Result<()> {
    out.family(Family::gauge("kube_job_owner", "1 for each Job, with the object that made it."));
    let mut spans = Spans::default();
    for job in jobs {
        let workload = lives.outcome.record.workloads.get(job.facts.workload.index());
        let maker =
            workload.filter(|workload| matches!(workload.kind, WorkloadKind::CronJob | WorkloadKind::ScaledJob));
        let maker =
            maker.map(|maker| (maker.kind.as_str().to_owned(), maker.name.name.to_string())).unwrap_or_default();
        let mut labels = job.labels.clone();
        labels.extend(owner_labels(maker));
        spans.add(labels, job.life, 1.0);
    }
    out.spans(spans, true)
}

fn times(out: &mut Exposition<'_>, jobs: &[Shown<'_>]) -> io::Result<()> {
    type Of = fn(&JobFacts) -> Option<SimTime>;
    let families: [(&'static str, &'static str, Of); 3] = [
        ("kube_job_created", "When the Job was created, in Unix time.", |item| Some(item.created)),
        ("kube_job_status_start_time", "When the controller took up the Job, in Unix time.", |item| Some(item.created)),
        ("kube_job_status_completion_time", "When the Job was complete, in Unix time.", |item| {
            item.end.filter(|end| end.kind == JobOutcomeKind::Complete).map(|end| end.at)
        }),
    ];
    for (name, help, of) in families {
        out.family(Family::gauge(name, help));
        let mut spans = Spans::default();
        for job in jobs {
            if let Some(from) = of(job.facts) {
                spans.add(job.labels.clone(), (from, job.life.1), out.unix_seconds(from) as f64);
            }
        }
        out.spans(spans, false)?;
    }
    Ok(())
}

/// The conditions of Jobs that have ended.
fn ends(out: &mut Exposition<'_>, jobs: &[Shown<'_>]) -> io::Result<()> {
    let families = [
        ("kube_job_complete", "1 for a Job that is complete.", JobOutcomeKind::Complete),
        ("kube_job_failed", "1 for a Job that was given up.", JobOutcomeKind::Failed),
    ];
    for (name, help, kind) in families {
        out.family(Family::gauge(name, help));
        let mut spans = Spans::default();
        for job in jobs {
            if let Some(end) = job.facts.end.filter(|end| end.kind == kind) {
                let mut labels = job.labels.clone();
                labels.push(("condition", "true".to_owned()));
                spans.add(labels, (end.at, job.life.1), 1.0);
            }
        }
        out.spans(spans, true)?;
    }
    Ok(())
}

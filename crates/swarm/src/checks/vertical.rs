//! VerticalPodAutoscalers: bounds are in order and within what is allowed, a mode does what it may and no more, pods request what
//! their template or a recommendation says, and nobody is evicted where there are too few.

use super::{INSTANT, Rule};
use crate::case::{Case, Vertical};
use crate::report::{Event, Pod, Report};

pub fn check(case: &Case, report: &Report, faults: &mut Vec<String>) {
    for item in &case.vertical {
        recommended(item, report, faults);
        requested(item, report, faults);
        acted(item, report, faults);
    }
}

/// A quantity is rounded to a whole one.
const WHOLE: f64 = 1.0;

fn within(value: f64, (least, most): (f64, f64)) -> bool {
    (least - WHOLE..=most + WHOLE).contains(&value)
}

fn recommended(vertical: &Vertical, report: &Report, faults: &mut Vec<String>) {
    let mut rule = Rule::new("recommendations keep their bounds", faults);
    for recommendation in
        report.recommendations.iter().filter(|recommendation| recommendation.workload == vertical.workload)
    {
        rule.holds(
            recommendation.lower <= recommendation.target && recommendation.target <= recommendation.upper,
            || format!("{recommendation:?}"),
        );
        let allowed = if recommendation.of_cpu { vertical.cpu } else { vertical.memory };
        let all = [recommendation.lower, recommendation.target, recommendation.upper];
        rule.holds(all.iter().all(|&value| within(value, allowed)), || {
            format!("{recommendation:?} beyond {allowed:?}")
        });
    }
}

fn requested(vertical: &Vertical, report: &Report, faults: &mut Vec<String>) {
    let mut rule = Rule::new("pods request what their template or a recommendation says", faults);
    let equals = |one: f64, other: f64| (one - other).abs() < WHOLE;
    let recommends = vertical.mode != "Off";
    for pod in report.pods.iter().filter(|pod| pod.workload == vertical.workload) {
        for (cpu, memory) in requests(pod) {
            let of_template = |value: f64, item: fn(&(f64, f64)) -> f64| {
                vertical.templates.iter().any(|template| equals(value, item(template)))
            };
            let holds = (of_template(cpu, |pair| pair.0) || recommends && within(cpu, vertical.cpu))
                && (of_template(memory, |pair| pair.1) || recommends && within(memory, vertical.memory));
            rule.holds(holds, || format!("{} of {} requests {cpu} and {memory}", pod.name, vertical.mode));
        }
    }
}

/// Everything that a pod ever requested.
fn requests(pod: &Pod) -> impl Iterator<Item = (f64, f64)> {
    std::iter::once((pod.cpu, pod.memory)).chain(pod.before.iter().map(|pod| (pod.1, pod.2)))
}

fn acted(vertical: &Vertical, report: &Report, faults: &mut Vec<String>) {
    let mut rule = Rule::new("a mode does what it may", faults);
    let pods: Vec<&Pod> = report.pods.iter().filter(|pod| pod.workload == vertical.workload).collect();
    let matches =
        |event: &&Event| event.workload == vertical.workload && event.message.starts_with("VerticalPodAutoscaler");
    for event in report.events.iter().filter(matches) {
        match event.kind.as_str() {
            "PodEvicted" => {
                let evicts = ["Recreate", "InPlaceOrRecreate"].contains(&vertical.mode);
                rule.holds(evicts, || format!("{} evicts: {}", vertical.mode, event.raw));
                let there = |pod: &&&Pod| {
                    pod.created <= event.at
                        && pod.deletion.is_none_or(|at| at >= event.at - INSTANT)
                        && pod.removed.is_none_or(|at| at >= event.at - INSTANT)
                };
                let count = pods.iter().filter(there).count() as u64;
                rule.holds(count >= vertical.min_replicas, || {
                    format!("one of {count} is evicted, and {} is the least: {}", vertical.min_replicas, event.raw)
                });
            }
            "PodResized" => {
                rule.holds(vertical.mode == "InPlaceOrRecreate", || {
                    format!("{} resizes: {}", vertical.mode, event.raw)
                });
            }
            _ => {}
        }
    }
}

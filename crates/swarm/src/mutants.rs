//! Planted errors: each makes a sound report wrong in one way, and the checkers have to find it.

use crate::case::Case;
use crate::checks;
use crate::report::{Line, Report};

/// An error, and what it does to a report; whether it could be planted.
type Mutant = (&'static str, fn(&mut Report) -> bool);

/// All of them.
pub const ALL: [Mutant; 19] = [
    ("a line of the bill is gone", |report| {
        let place = report.bill.iter().position(|line| line.item == "instance" && line.amount > 0.0);
        place.map(|place| report.bill.remove(place)).is_some()
    }),
    ("a line is charged twice", |report| {
        let line = report.bill.iter().find(|line| line.item == "root volume").cloned();
        line.map(|line| report.bill.push(line)).is_some()
    }),
    ("an amount is a thousandth too high, and so is the total", |report| {
        let Some(line) = report.bill.iter_mut().find(|line| line.item == "instance") else { return false };
        let more = line.amount * 1e-3;
        line.amount += more;
        let total = report.summary["cost"]["total"].as_f64().unwrap_or_default() + more;
        report.summary["cost"]["total"] = total.into();
        true
    }),
    ("a life is billed for a minute less", |report| {
        let long =
            |line: &&mut Line| line.item == "instance" && line.billed > 120.0 && line.capacity_type != "reserved";
        let Some(line) = report.bill.iter_mut().find(long) else { return false };
        line.to -= 60.0;
        true
    }),
    ("a price is another than that charged", |report| {
        report.bill.iter_mut().find(|line| line.item == "instance").map(|line| line.rate *= 1.01).is_some()
    }),
    ("the idle share is above 1", |report| {
        report.summary["cost"]["idle"]["share"] = 1.2.into();
        true
    }),
    ("two events change places", |report| {
        let last = report.events.len() - 1;
        report.events[last].at > report.events[0].at && {
            report.events.swap(0, last);
            true
        }
    }),
    ("a pod is lost", |report| report.pods.pop().is_some()),
    ("a pod is bound to a node that does not exist", |report| {
        let pod = report.pods.iter_mut().find(|pod| pod.scheduled.is_some());
        pod.map(|pod| pod.node = "nobody".to_owned()).is_some()
    }),
    ("a pod is bound to a node before that registered", |report| {
        let late = report.nodes.iter().find(|node| node.registered.is_some_and(|at| at > 10.0)).cloned();
        let Some(late) = late else { return false };
        let pod = report.pods.iter_mut().find(|pod| pod.node == late.name && pod.scheduled.is_some());
        pod.map(|pod| {
            pod.scheduled = late.registered.map(|at| at - 5.0);
            pod.created = pod.created.min(pod.scheduled.unwrap_or_default());
        })
        .is_some()
    }),
    ("a node holds more than it offers", |report| {
        let pod = report.pods.iter_mut().find(|pod| pod.scheduled.is_some());
        pod.map(|pod| pod.cpu += 1e6).is_some()
    }),
    ("a pod is Ready before it started", |report| {
        let pod = report.pods.iter_mut().find(|pod| pod.ready.is_some() && pod.started.is_some_and(|at| at > 1.0));
        pod.map(|pod| pod.ready = Some(0.0)).is_some()
    }),
    ("a node ends before it begins", |report| {
        let node = report.nodes.iter_mut().find(|node| node.running.is_some_and(|at| at > 1.0));
        node.map(|node| node.terminating = Some(0.5)).is_some()
    }),
    ("two nodes of one name at once", |report| {
        let Some(node) = report.nodes.first().cloned() else { return false };
        report.nodes.push(node);
        true
    }),
    ("an event of a binding is gone", |report| {
        let place = report.events.iter().position(|event| event.kind == "PodScheduled");
        place.map(|place| report.events.remove(place)).is_some()
    }),
    ("a node is Ready and no event says so", |report| {
        let Some(name) = report.nodes.iter().find(|node| node.ready.is_some()).map(|node| node.name.clone()) else {
            return false;
        };
        let says = ["NodeReady", "NodeFound"];
        report.events.retain(|event| !says.contains(&event.kind.as_str()) || event.node != name);
        true
    }),
    ("a recommendation is above its upper bound", |report| {
        let first_mut = report.recommendations.first_mut();
        first_mut.map(|first_mut| first_mut.target = first_mut.upper + 1.0).is_some()
    }),
    ("a recommendation is more than may be recommended", |report| {
        let first_mut = report.recommendations.first_mut();
        first_mut.map(|first_mut| (first_mut.target, first_mut.upper) = (1e15, 1e15)).is_some()
    }),
    ("a pod of a vertical autoscaler requests what nobody recommends", |report| {
        let Some(of) = report.recommendations.first().map(|recommendation| recommendation.workload.clone()) else {
            return false;
        };
        let pod = report.pods.iter_mut().find(|pod| pod.workload == of);
        pod.map(|pod| pod.cpu = 1.0).is_some()
    }),
];

/// The planted errors that the checkers do not find in a report, and how many could be planted.
pub fn survivors(case: &Case, read: &dyn Fn() -> Result<Report, String>) -> Result<(Vec<&'static str>, usize), String> {
    let (mut survivors, mut planted) = (Vec::new(), 0);
    for (name, plant) in ALL {
        let mut report = read()?;
        if plant(&mut report) {
            planted += 1;
            if checks::faults(case, &report).is_empty() {
                survivors.push(name);
            }
        }
    }
    Ok((survivors, planted))
}

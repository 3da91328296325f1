//! The bill: it sums, each line is a rate times a time, a life is billed once and without a gap, shares are shares.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{INSTANT, Rule};
use crate::report::{Line, Report};

/// What may be off by rounding to nine decimals, for each line.
const NANO: f64 = 2e-9;

/// Items whose amount is their rate times their time.
const BY_TIME: [&str; 13] = [
    "EKS Auto Mode fee",
    "Fargate vCPU",
    "Fargate memory",
    "Fargate storage",
    "instance",
    "control plane",
    "extended support",
    "public IPv4",
    "node fee",
    "load balancers",
    "NAT gateways",
    "CPU credits",
    "root volume",
];

pub fn check(report: &Report, faults: &mut Vec<String>) {
    sums(report, faults);
    rates(report, faults);
    lives(report, faults);
    shares(report, faults);
}

fn sums(report: &Report, faults: &mut Vec<String>) {
    let mut rule = Rule::new("the bill sums", faults);
    let total: f64 = report.bill.iter().map(|line| line.amount).sum();
    let stated = report.figure("cost.total").unwrap_or(f64::NAN);
    let slack = NANO * (report.bill.len() + 1) as f64;
    rule.holds((total - stated).abs() <= slack, || format!("lines sum to {total}, the summary says {stated}"));
    let mut items: BTreeMap<&str, f64> = BTreeMap::new();
    report.bill.iter().for_each(|line| *items.entry(&line.item).or_default() += line.amount);
    for part in report.summary["cost"]["by_item"].as_array().into_iter().flatten() {
        let name = part["name"].as_str().unwrap_or_default();
        let (item, amount) = (items.get(name).copied().unwrap_or(0.0), part["amount"].as_f64().unwrap_or(f64::NAN));
        rule.holds((item - amount).abs() <= slack, || format!("{name}: lines {item}, summary {amount}"));
    }
    let nodes: f64 = report.nodes.iter().map(|node| node.cost).sum();
    let stated = report.figure("cost.nodes").unwrap_or(f64::NAN);
    rule.holds((nodes - stated).abs() <= slack, || format!("nodes cost {nodes}, the summary says {stated}"));
    for key in ["by_workload", "by_namespace", "by_price_quality"] {
        // Without a second namespace there is no cost by namespace.
        let Some(parts) = report.summary["cost"][key].as_array() else {
            rule.holds(key == "by_namespace", || format!("the summary has no cost.{key}"));
            continue;
        };
        let sum: f64 = parts.iter().filter_map(|part| part["amount"].as_f64()).sum();
        rule.holds((sum - total).abs() <= slack, || format!("{key} sums to {sum}, the bill to {total}"));
    }
}

fn rates(report: &Report, faults: &mut Vec<String>) {
    let mut rule = Rule::new("a line is a rate times a time", faults);
    for line in report.bill.iter().filter(|line| BY_TIME.contains(&line.item.as_str())) {
        let worth = line.rate * line.billed / 3_600.0;
        let slack = NANO + 1e-9 * line.billed / 3_600.0;
        rule.holds((worth - line.amount).abs() <= slack, || format!("{line:?} comes to {worth}"));
        rule.holds(line.to >= line.from && line.rate >= 0.0, || format!("{line:?}"));
    }
}

/// Times of each node that are billed as instance.
fn lives(report: &Report, faults: &mut Vec<String>) {
    let mut rule = Rule::new("a life is billed once and without a gap", faults);
    let mut billed: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in report.bill.iter().filter(|line| line.item == "instance") {
        billed.entry(&line.node).or_default().push(line);
    }
    for node in report.nodes.iter().filter(|node| node.capacity_type != "reserved" && !node.of_fargate) {
        let lines = billed.remove(node.name.as_str()).unwrap_or_default();
        let Some(running) = node.running else {
            rule.holds(lines.is_empty(), || format!("{} never ran and is billed", node.name));
            continue;
        };
        let end = node.terminating.unwrap_or(report.end).min(report.end);
        if end - running <= INSTANT {
            continue;
        }
        let mut at = running;
        for line in &lines {
            rule.holds((line.from - at).abs() <= INSTANT, || format!("{} from {} but {at}", node.name, line.from));
            at = line.to;
        }
        rule.holds((at - end).abs() <= INSTANT, || format!("{} is billed until {at} and ran until {end}", node.name));
    }
    fargate(report, &mut rule);
    rule.holds(billed.is_empty(), || format!("instances that are no node: {:?}", billed.keys()));
}

/// A machine of Fargate has one line for its vCPUs, one for its memory, and none as an instance.
fn fargate(report: &Report, rule: &mut Rule<'_>) {
    let lines =
        |name: &str, item: &str| report.bill.iter().filter(|line| line.node == name && line.item == item).count();
    for node in report.nodes.iter().filter(|node| node.of_fargate) {
        let counts = ["Fargate vCPU", "Fargate memory", "instance"].map(|item| lines(&node.name, item));
        let began = usize::from(node.running.is_some_and(|at| at < report.end));
        rule.holds(counts == [began, began, 0] || counts == [1, 1, 0], || {
            format!("{} is billed {counts:?}", node.name)
        });
    }
}

fn shares(report: &Report, faults: &mut Vec<String>) {
    let mut rule = Rule::new("a share is between 0 and 1", faults);
    let whole = |share: f64| (-1e-9..=1.0 + 1e-6).contains(&share);
    for node in &report.nodes {
        rule.holds(node.shares.iter().all(|&share| whole(share)), || format!("{node:?}"));
    }
    for path in ["cost.unconfirmed.share", "cost.idle.share", "cost.unused.share", "availability.unavailable_share"] {
        if let Some(share) = report.figure(path) {
            rule.holds(whole(share), || format!("{path} is {share}"));
        }
    }
    for resource in ["cpu_requested", "memory_requested"] {
        let share = match &report.summary["utilisation"][resource] {
            Value::Number(number) => number.as_f64(),
            summary => summary["mean"].as_f64(),
        };
        rule.holds(share.is_none_or(whole), || format!("utilisation of {resource} is {share:?}"));
    }
}

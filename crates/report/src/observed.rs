//! What `nodecast observe` tells of an observation: what was found, what was not and how to have it, and the figures.

use std::fmt::Write as _;

use nodecast_observed::observation::about::{About, Figures, Grade, Quantity};

use super::columns::fitted;
use super::figure::Figure;
use super::format::{counted, span};
use super::table::{Rows, Table};
use crate::domain::words::rounded;

/// The account of an observation for people, in lines of no more than `width` characters, if that is known.
pub fn text(about: &About, width: Option<usize>) -> String {
    let mut text = String::new();
    let cluster = if about.cluster.is_empty() { String::new() } else { format!(", {}", about.cluster.join(", ")) };
    let window = &about.window;
    let found = counted(about.quantities.len() as u64, "metric", "metrics");
    let missing = match about.missing.len() {
        0 => "none missing".to_owned(),
        count => format!("{count} missing"),
    };
    let _ = writeln!(text, "observed: {} to {}{cluster}: {found}, {missing}\n", window.start, window.end);
    let source = |quantity: &Quantity| {
        let grade = if quantity.grade == Grade::Derived { " (guessed whose)" } else { "" };
        format!("{}{grade}", quantity.source)
    };
    let found = Rows::new(&about.quantities)
        .text("found", |quantity| &quantity.quantity)
        .text("in", |quantity| source(quantity))
        .number("of the window", |quantity| Figure::share(quantity.coverage))
        .number("to", |quantity| format!("{} s", quantity.resolution_seconds));
    push(&mut text, found, width);
    if !about.missing.is_empty() {
        text.push('\n');
        for item in &about.missing {
            let _ = writeln!(text, "missing: {} (needed for {})", item.quantity, item.tells);
            let _ = writeln!(text, "  to collect it: {}", item.remedy);
        }
    }
    figures(&about.figures, width, &mut text);
    if !about.warnings.is_empty() {
        text.push('\n');
    }
    for warning in &about.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    fitted(text, width)
}

fn figures(figures: &Figures, width: Option<usize>, text: &mut String) {
    if !figures.workloads.is_empty() {
        text.push('\n');
    }
    let workloads = Rows::new(&figures.workloads)
        .text("workload", |workload| &workload.workload)
        .number("requests/s", |workload| workload.requests_per_second.map(rounded))
        .number("CPU of one", |workload| workload.cpu_per_request_seconds.map(|cpu| format!("{:.2} ms", cpu * 1e3)))
        .number("cores", |workload| workload.cpu_used_milli.map(|milli| rounded(milli / 1e3)))
        .number("replicas", |workload| workload.replicas_desired.map(rounded));
    push(text, workloads, width);
    let mut lines = Vec::new();
    if let Some(hours) = figures.node_hours.filter(|hours| *hours > 0.0) {
        let spot = figures.spot_node_hours.unwrap_or(0.0);
        let most = figures.nodes_max.unwrap_or(0);
        lines.push(format!("nodes: {hours:.1} node-hours ({spot:.1} Spot), peak {most}"));
    }
    if let Some(launches) = figures.launches {
        let ends: Vec<String> = figures
            .disruptions
            .iter()
            .map(|disruption| format!("{} {}", rounded(disruption.nodes), disruption.reason))
            .collect();
        let ends = if ends.is_empty() { String::new() } else { format!("; removed: {}", ends.join(", ")) };
        lines.push(format!("launches: {}{ends}", rounded(launches)));
    }
    let stages: Vec<String> = figures
        .stages
        .iter()
        .filter_map(|stage| Some(format!("{} {}", stage.stage, span(stage.mean_seconds.or(stage.median_seconds)?))))
        .collect();
    if !stages.is_empty() {
        lines.push(format!("launch phases, from NodeClaim creation: {}", stages.join(", ")));
    }
    if let Some(waits) = &figures.waits {
        let pods = counted(waits.pods, "pod", "pods");
        lines.push(format!(
            "pod wait for a node: p50 {}, p99 {} over {pods}, 1 s resolution",
            span(waits.p50_seconds),
            span(waits.p99_seconds)
        ));
    }
    if !lines.is_empty() {
        let _ = writeln!(text, "\n{}", lines.join("\n"));
    }
}

fn push(text: &mut String, table: impl Into<Table>, width: Option<usize>) {
    table.into().lines(width).iter().for_each(|line| text.extend([line, "\n"]));
}

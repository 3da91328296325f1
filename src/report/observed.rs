//! What `nodecast observe` tells of an observation: what was found, what was not and how to have it, and the figures.

use std::fmt::Write as _;

use nodecast_observed::observation::about::{About, Figures, Grade};

use super::format::{counted, percent, span};
use crate::domain::words::rounded;

/// The account of an observation for people.
pub fn text(about: &About) -> String {
    let mut text = String::new();
    let cluster = if about.cluster.is_empty() { String::new() } else { format!(", {}", about.cluster.join(", ")) };
    let window = &about.window;
    let _ = writeln!(text, "observed: {} to {}{cluster}\n", window.start, window.end);
    if !about.quantities.is_empty() {
        let rows = about.quantities.iter().map(|own| {
            let grade = if own.grade == Grade::Derived { " (guessed whose)" } else { "" };
            let step = format!("{} s", own.resolution_seconds);
            [own.quantity.clone(), format!("{}{grade}", own.source), percent(own.coverage), step]
        });
        table(&mut text, ["found", "in", "of the window", "to"], rows.collect());
    }
    if !about.missing.is_empty() {
        text.push('\n');
        for own in &about.missing {
            let _ = writeln!(text, "missing: {}, which would tell {}", own.quantity, own.tells);
            let _ = writeln!(text, "  from now on: {}", own.remedy);
        }
    }
    figures(&about.figures, &mut text);
    if !about.warnings.is_empty() {
        text.push('\n');
    }
    for warning in &about.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

fn figures(figures: &Figures, text: &mut String) {
    if !figures.workloads.is_empty() {
        text.push('\n');
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), rounded);
        let rows = figures.workloads.iter().map(|own| {
            let cpu = own.cpu_per_request_seconds.map_or_else(|| "-".to_owned(), |cpu| format!("{:.2} ms", cpu * 1e3));
            [
                own.workload.clone(),
                number(own.requests_per_second),
                cpu,
                number(own.cpu_used_milli.map(|milli| milli / 1e3)),
                number(own.replicas_desired),
            ]
        });
        table(text, ["workload", "requests/s", "CPU of one", "cores", "replicas"], rows.collect());
    }
    let mut lines = Vec::new();
    if let Some(hours) = figures.node_hours.filter(|hours| *hours > 0.0) {
        let spot = figures.spot_node_hours.unwrap_or(0.0);
        let most = figures.nodes_max.unwrap_or(0);
        lines.push(format!("nodes: {hours:.1} node-hours, {spot:.1} of them Spot; {most} at most"));
    }
    if let Some(launches) = figures.launches {
        let ends: Vec<String> =
            figures.disruptions.iter().map(|own| format!("{} {}", rounded(own.nodes), own.reason)).collect();
        let ends = if ends.is_empty() { String::new() } else { format!("; removed: {}", ends.join(", ")) };
        lines.push(format!("launches: {}{ends}", rounded(launches)));
    }
    let stages: Vec<String> = figures
        .stages
        .iter()
        .filter_map(|own| Some(format!("{} {}", own.stage, span(own.mean_seconds.or(own.median_seconds)?))))
        .collect();
    if !stages.is_empty() {
        lines.push(format!("a launch, from its claim on: {}", stages.join(", ")));
    }
    if let Some(waits) = &figures.waits {
        let pods = counted(waits.pods, "pod", "pods");
        lines.push(format!(
            "waits for a node: p50 {}, p99 {} of {pods}, to the second",
            span(waits.p50_seconds),
            span(waits.p99_seconds)
        ));
    }
    if !lines.is_empty() {
        let _ = writeln!(text, "\n{}", lines.join("\n"));
    }
}

/// Columns as wide as their widest cell; all but the first two are flush right.
fn table<const N: usize>(text: &mut String, head: [&str; N], rows: Vec<[String; N]>) {
    let head = head.map(str::to_owned);
    let width = |column: usize| {
        let all = std::iter::once(&head).chain(&rows);
        all.map(|row| row[column].chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in std::iter::once(&head).chain(&rows) {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let wide = widths[column];
            let is_number = cell.starts_with(|c: char| c.is_ascii_digit() || c == '-');
            let _ = if is_number { write!(line, "{cell:>wide$}  ") } else { write!(line, "{cell:<wide$}  ") };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

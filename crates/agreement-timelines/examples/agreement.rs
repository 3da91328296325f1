//! Compares the decisions in `policy/` with the answers of the real programs.
//!
//! `cargo run --release --example agreement -- SUITE PATH...` runs every case file in the given folders and prints one
//! line for each disagreement, then `agreement: N/M`. Exit code 0 only when all agree.

use std::path::PathBuf;
use std::process::ExitCode;

use agreement::{
    cluster_autoscaler, fields, hpa, karpenter, karpenter_consolidation, keda, kube_scheduler, tally, vpa,
};
use agreement_timelines::karpenter_timeline;

const SUITES: &[(&str, tally::Suite)] = &[
    ("cluster-autoscaler", cluster_autoscaler::run),
    ("hpa", hpa::run),
    ("karpenter", karpenter::run),
    ("karpenter-consolidation", karpenter_consolidation::run),
    ("karpenter-timeline", karpenter_timeline::run),
    ("keda", keda::run),
    ("kube-scheduler", kube_scheduler::run),
    ("vpa", vpa::run),
];

#[allow(clippy::print_stdout, clippy::print_stderr)]
fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let names: Vec<&str> = SUITES.iter().map(|(name, _)| *name).collect();
    let usage = format!("usage: agreement SUITE [--catalogs DIR] PATH...\nsuites: {}", names.join(", "));
    let wanted = arguments.next().unwrap_or_default();
    let Some((_, suite)) = SUITES.iter().find(|(name, _)| *name == wanted) else {
        eprintln!("{usage}");
        return ExitCode::from(2);
    };
    let mut catalogs = None;
    let mut paths = Vec::new();
    while let Some(argument) = arguments.next() {
        if argument == "--catalogs" {
            catalogs = arguments.next().map(PathBuf::from);
        } else {
            paths.push(PathBuf::from(argument));
        }
    }
    if paths.is_empty() {
        eprintln!("{usage}");
        return ExitCode::from(2);
    }
    match suite(&paths, catalogs.as_deref()) {
        Ok(tally) => {
            for line in tally.measured.iter().chain(&tally.disagreements) {
                println!("{line}");
            }
            for field in fields::unread() {
                eprintln!("a field of the cases is not read: {field}");
            }
            if tally.compared > 0 {
                println!("agreement: {}/{}", tally.agreed, tally.compared);
            }
            ExitCode::from(u8::from(tally.agreed != tally.compared))
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(2)
        }
    }
}

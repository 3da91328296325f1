//! How often the 95 % intervals of ten seeds hold the truth, which is what 200 other seeds show: for each figure of four shipped
//! scenarios, pooled over policies, levels and differences from the first policy. Exit code 1 if a figure is below 90 %.
//! `cargo run --release --example coverage -- PROGRAM [DIR]`; comparisons are kept in DIR, and read from there if it has them.

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};

use nodecast::experiment::comparison::{Comparison, FigureResult};
use nodecast::experiment::statistics::Estimate;
use nodecast::experiment::{Point, compare};
use nodecast::scenario::Caveats;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The scenarios, and how long they run where that is not as long as they say.
const SCENARIOS: [(&str, Option<&str>); 4] =
    [("spot-storm", None), ("spot-interruption", None), ("zone-outage", None), ("shop-day", Some("8h"))];
/// The figures: cost, waits, counts.
const FIGURES: [&str; 6] = ["cost", "pending_p99", "pending_mean", "launches", "evictions", "interruptions"];
/// Seeds of an interval, and how many intervals of each figure and policy.
const SEEDS: u64 = 10;
const REPETITIONS: u64 = 20;
/// The first seeds of the intervals and of the truth, which has 200.
const FIRST: u64 = 3_001;
const FIRST_OF_TRUTH: u64 = 100_001;
const SEEDS_OF_TRUTH: u64 = 200;
/// The least share of intervals that hold the truth.
const LEAST: f64 = 0.9;

/// Intervals that hold the truth, and all of them.
#[derive(Clone, Copy, Default)]
struct Tally {
    held: u32,
    all: u32,
}

impl Tally {
    fn count(&mut self, interval: Option<&Estimate>, truth: Option<&Estimate>) {
        let (Some(interval), Some(truth)) = (interval, truth) else { return };
        let (Some(low), Some(high)) = (interval.low, interval.high) else { return };
        // The last digits of sums are no miss.
        let slack = 1e-9 * (1.0 + truth.centre().abs());
        self.held += u32::from(low - slack <= truth.centre() && truth.centre() <= high + slack);
        self.all += 1;
    }

    fn share(self) -> f64 {
        if self.all == 0 { 1.0 } else { f64::from(self.held) / f64::from(self.all) }
    }

    fn words(self) -> String {
        format!("{} of {} ({:.1} %)", self.held, self.all, self.share() * 100.0)
    }
}

/// The comparison of a scenario's policies over seeds from `first` on.
fn comparison(
    program: &Path,
    keep: &Path,
    (name, duration): (&str, Option<&str>),
    first: u64,
    seeds: u64,
) -> Result<Comparison> {
    let file = keep.join(format!("{name}-{first}.json"));
    if !file.exists() {
        let mut command = Command::new(program);
        command.args([
            "compare",
            &format!("scenarios/{name}/scenario.yaml"),
            "--format",
            "json",
            "--threads",
            "1",
            "--quiet",
        ]);
        command.args(["--seed", &first.to_string(), "--replications", &seeds.to_string()]);
        command.arg("--out").arg(keep.join(format!("{name}-{first}")));
        if let Some(duration) = duration {
            command.args(["--duration", duration]);
        }
        let output = command.output()?;
        if !output.status.success() {
            return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        std::fs::write(&file, &output.stdout)?;
    }
    Ok(serde_json::from_slice(&std::fs::read(file)?)?)
}

/// The same over some of the seeds.
fn of_seeds(all: &Comparison, seeds: std::ops::Range<u64>) -> Comparison {
    let policies: Vec<String> = all.policies.iter().map(|policy| policy.name.clone()).collect();
    let points: Vec<Point> = all.points.iter().filter(|point| seeds.contains(&point.seed)).cloned().collect();
    compare(all.about.clone(), &policies, points, Caveats::new())
}

/// Counts the intervals of a scenario.
fn cover(sample: &Comparison, truth: &Comparison, tallies: &mut BTreeMap<(&str, bool), Tally>) {
    for repetition in 0..REPETITIONS {
        let first = FIRST + repetition * SEEDS;
        let part = of_seeds(sample, first..first + SEEDS);
        for position in 0..part.policies.len() {
            for name in FIGURES {
                let (Some(figure), Some(truth)) = (part.figure(position, name), truth.figure(position, name)) else {
                    continue;
                };
                tallies.entry((name, false)).or_default().count(figure.mean.as_ref(), truth.mean.as_ref());
                tallies.entry((name, true)).or_default().count(difference(figure), difference(truth));
            }
        }
    }
}

fn difference(figure: &FigureResult) -> Option<&Estimate> {
    figure.against_first.as_ref().map(|paired| &paired.difference)
}

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(program) = words.first() else { return Err("coverage PROGRAM [DIR]".into()) };
    let keep = words.get(1).map_or_else(std::env::temp_dir, Into::into).join("coverage");
    std::fs::create_dir_all(&keep)?;
    let mut pooled = BTreeMap::new();
    for scenario in SCENARIOS {
        let sample = comparison(Path::new(program), &keep, scenario, FIRST, SEEDS * REPETITIONS)?;
        let truth = comparison(Path::new(program), &keep, scenario, FIRST_OF_TRUTH, SEEDS_OF_TRUTH)?;
        let truth = of_seeds(&truth, FIRST_OF_TRUTH..FIRST_OF_TRUTH + SEEDS_OF_TRUTH);
        cover(&sample, &truth, &mut pooled);
    }
    let mut holds = true;
    println!("| figure | levels | differences |\n| --- | --: | --: |");
    for name in FIGURES {
        let [level, difference] = [false, true].map(|of| pooled.get(&(name, of)).copied().unwrap_or_default());
        println!("| `{name}` | {} | {} |", level.words(), difference.words());
        holds &= level.share() >= LEAST && difference.share() >= LEAST;
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

//! The plots of a run: which curves stand in which picture. `canvas` draws them.

mod axis;
mod canvas;

use rayon::prelude::*;

use super::curves::{self, Panel};
use nodecast_world::Outcome;

/// Workloads drawn in one picture; more curves than this cannot be told apart.
const WORKLOADS_MAX: usize = 5;

/// A picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plot {
    /// File name, for example `replicas.svg`.
    pub file: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What was left out of it, if anything.
    pub note: Option<String>,
    /// The `svg` element, without background or style of its own.
    pub svg: String,
}

impl Plot {
    /// The picture as a file of its own, for light and dark surroundings.
    pub fn standalone(&self) -> String {
        const STYLE: &str = "<style>svg{background:#fff}text{fill:#24292f}@media(prefers-color-scheme:dark){\
            svg{background:#14171c}text{fill:#d7dde4}}</style>\n";
        match self.svg.find(">\n") {
            Some(end) => format!("{}{STYLE}{}", &self.svg[..end + 2], &self.svg[end + 2..]),
            None => self.svg.clone(),
        }
    }
}

/// The pictures of a run and those that had nothing to show.
#[derive(Clone, Debug, Default)]
pub struct Plots {
    /// Pictures with data.
    pub drawn: Vec<Plot>,
    /// Why a picture is missing, a sentence each.
    pub left_out: Vec<String>,
}

/// plotters could not draw. Writing to memory does not fail, so nothing is known to cause this.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cannot draw {file}: {reason}")]
pub struct PlotError {
    /// The picture.
    pub file: &'static str,
    /// What plotters said.
    pub reason: String,
}

impl Plots {
    /// Draws every picture that has data.
    ///
    /// # Errors
    /// If plotters fails.
    pub fn from_outcome(outcome: &Outcome) -> Result<Self, PlotError> {
        let mut plots = Self::default();
        if outcome.record.samples.len() < 2 || outcome.about.duration.as_micros() <= 0 {
            plots.left_out.push("There are no plots: the run was too short to be sampled twice.".to_owned());
            return Ok(plots);
        }
        let mut shown = curves::most_replicas_first(outcome);
        shown.truncate(WORKLOADS_MAX);
        let note = note_on_workloads(outcome, &shown);
        let pictures = [
            Picture::new("replicas.svg", "Replicas and load", note.clone(), curves::replicas_and_load(outcome, &shown)),
            Picture::new(
                "metrics.svg",
                "Metrics and their targets",
                metrics_left_out(outcome),
                curves::metrics(outcome, WORKLOADS_MAX),
            ),
            Picture::new("queues.svg", "Queues", None, curves::queues(outcome, WORKLOADS_MAX)),
            Picture::new("nodes.svg", "Nodes and what they cost", None, curves::nodes_and_cost(outcome)),
            Picture::new("pending.svg", "Pods on their way", None, curves::pods_on_their_way(outcome)),
            Picture::new("latency.svg", "Response time", note, curves::latency(outcome, &shown)),
        ];
        let drawn: Vec<Option<Plot>> =
            pictures.par_iter().map(|picture| picture.draw(outcome)).collect::<Result<_, PlotError>>()?;
        for (picture, drawn) in pictures.iter().zip(drawn) {
            match drawn {
                Some(plot) => plots.drawn.push(plot),
                None if ["metrics.svg", "queues.svg"].contains(&picture.file) => {}
                None => {
                    plots.left_out.push(format!(
                        "\u{201c}{}\u{201d} is left out: nothing to show at any sampled instant.",
                        picture.title
                    ));
                }
            }
        }
        Ok(plots)
    }
}

/// A picture to be drawn.
struct Picture {
    file: &'static str,
    title: &'static str,
    note: Option<String>,
    panels: Vec<Panel>,
}

impl Picture {
    fn new(file: &'static str, title: &'static str, note: Option<String>, mut panels: Vec<Panel>) -> Self {
        panels.retain(Panel::has_data);
        Self { file, title, note, panels }
    }

    /// The picture, or nothing if it has no data.
    fn draw(&self, outcome: &Outcome) -> Result<Option<Plot>, PlotError> {
        let Self { file, title, .. } = *self;
        if self.panels.is_empty() {
            return Ok(None);
        }
        let svg =
            canvas::draw(title, outcome.about.duration, &self.panels).map_err(|reason| PlotError { file, reason })?;
        Ok(Some(Plot { file, title, note: self.note.clone(), svg }))
    }
}

fn note_on_workloads(outcome: &Outcome, shown: &[usize]) -> Option<String> {
    let all = outcome.record.samples.iter().map(|sample| sample.workloads.len()).max().unwrap_or(0);
    (all > shown.len()).then(|| {
        format!(
            "The {} workloads with the most replicas are drawn, {} are not; workloads.csv has all.",
            shown.len(),
            all - shown.len()
        )
    })
}

fn metrics_left_out(outcome: &Outcome) -> Option<String> {
    let all = outcome.record.metrics.len();
    (all > WORKLOADS_MAX).then(|| {
        format!("The first {WORKLOADS_MAX} metrics are drawn, {} are not; metrics.csv has all.", all - WORKLOADS_MAX)
    })
}

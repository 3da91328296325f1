//! What a fitted value changes in the answer.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::figures::FIGURES;
use crate::statistics::{Estimate, mean};
use nodecast_points::point::Point;

/// What a fitted value changes in the answer, alone in the place of what the scenario has.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct Effect {
    /// The parameter's name.
    pub parameter: String,
    /// Changes of figures that people look at first, by name.
    pub figures: BTreeMap<&'static str, Difference>,
}

/// A change of a figure, over the seeds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct Difference {
    /// The mean without it.
    pub before: f64,
    /// The mean change, seed by seed.
    pub change: f64,
    /// The 95 % interval of the change; `None` of one seed.
    pub interval: Option<(f64, f64)>,
}

impl Difference {
    /// The change as a share of what was before; of nothing that is no change nothing.
    pub fn share(&self) -> f64 {
        if self.change.abs() < 1e-12 { 0.0 } else { self.change.abs() / self.before.abs().max(1e-9) }
    }
}

/// Figures by which effects are judged.
pub const JUDGED: [&str; 4] = ["cost", "pending_p99", "nodes_mean", "interruptions"];

impl Effect {
    /// The largest change of a figure, as a share of what it was.
    pub fn most(&self) -> f64 {
        self.figures.values().map(Difference::share).fold(0.0, f64::max)
    }
}

/// The effect of a parameter on simulations without it and with it, seed by seed.
pub fn effect(name: &str, before: &[&Point], after: &[&Point]) -> Effect {
    let mut figures = BTreeMap::new();
    for (position, figure) in FIGURES.iter().enumerate().filter(|(_, figure)| JUDGED.contains(&figure.name)) {
        let of =
            |points: &[&Point]| -> Option<Vec<f64>> { points.iter().map(|point| point.figures[position]).collect() };
        let (Some(before), Some(after)) = (of(before), of(after)) else { continue };
        let changes: Vec<f64> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
        let (Some(before), Some(change)) = (mean(&before), Estimate::from_values(&changes)) else { continue };
        let interval = change.low.zip(change.high);
        figures.insert(figure.name, Difference { before, change: change.mean, interval });
    }
    Effect { parameter: name.to_owned(), figures }
}

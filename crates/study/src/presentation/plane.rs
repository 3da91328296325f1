//! The settings of a sweep in the plane of cost and latency, with the front that no other setting beats.
//!
//! The drawing is as wide as the page, and text has one size on all: places along the axis of cost are shares of the width,
//! those along the axis of latency are pixels.

use super::dots::ticks;
use super::sweep_table::latency_label;
use super::value_among;
use crate::figures::{Figure, Unit, find};
use crate::report::page::{Html, sentence, text};
use crate::sweep::{SettingResult, Sweep};

const HEIGHT: f64 = 400.0;
const TOP: f64 = 14.0;
const BELOW: f64 = 54.0;

/// A setting's place in the plane.
struct Place<'a> {
    number: usize,
    result: &'a SettingResult,
    cost: f64,
    latency: f64,
}

/// An axis of the plane, and how its values read.
struct Axis<'a> {
    figure: &'a Figure,
    currency: &'a str,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl<'a> Axis<'a> {
    fn over(
        (figure, currency): (&'a Figure, &'a str),
        values: impl Iterator<Item = f64> + Clone,
        (from, to): (f64, f64),
    ) -> Self {
        let low = values.clone().min_by(f64::total_cmp).unwrap_or(0.0);
        let high = values.max_by(f64::total_cmp).unwrap_or(1.0);
        let margin = if high > low { (high - low) * 0.05 } else { low.abs().max(1.0) * 0.1 };
        Self { figure, currency, low: low - margin, high: high + margin, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// What is drawn along it, and in what unit.
    fn title(&self) -> String {
        let unit = match self.figure.unit {
            Unit::Money => self.currency,
            Unit::Seconds if self.high < 0.999_5 => "milliseconds",
            Unit::Seconds if self.high < 59.95 => "seconds",
            Unit::Seconds if self.high < 3_600.0 => "minutes and seconds",
            Unit::Seconds => "hours and minutes",
            Unit::Count => "number",
            Unit::Share => "%",
        };
        text(&format!("{}, {unit}", sentence(self.figure.label)))
    }

    /// Round values with their places and their labels.
    fn ticks(&self) -> Vec<(f64, String)> {
        let label = |tick| text(&value_among(self.figure, self.currency, tick, self.high));
        ticks(self.figure.unit, self.low, self.high).into_iter().map(|tick| (self.at(tick), label(tick))).collect()
    }
}

/// Adds the drawing, if any setting has both figures.
pub(super) fn figure(page: &mut Html, sweep: &Sweep) {
    let (Some((cost, cost_figure)), Some((latency, latency_figure))) = (find(&sweep.cost), find(&sweep.latency)) else {
        return;
    };
    let mean = |result: &SettingResult, figure: usize| Some(result.figures.get(figure)?.as_ref()?.mean);
    let place =
        |(number, result)| Some(Place { number, result, cost: mean(result, cost)?, latency: result.latency(latency)? });
    let places: Vec<Place<'_>> = sweep.results.iter().enumerate().filter_map(place).collect();
    if places.is_empty() {
        return;
    }
    let currency = sweep.about.currency.as_str();
    let x = Axis::over((cost_figure, currency), places.iter().map(|place| place.cost), (0.0, 100.0));
    let y = Axis::over((latency_figure, currency), places.iter().map(|place| place.latency), (HEIGHT - BELOW, TOP));
    let cost = if sweep.cost == "cost" { "Cost of the run" } else { "Cost per month" };
    page.element("h2", &format!("{cost} against {}", latency_label(sweep)));
    page.raw("<figure>\n<div class=\"plane\">\n");
    page.raw(&scale(&y));
    page.raw(&field(sweep, &places, &x, &y));
    page.raw("</div>\n");
    caption(page, sweep);
    page.raw("</figure>\n");
}

/// The title and the labels of the upright axis.
fn scale(y: &Axis<'_>) -> String {
    let mut svg = format!("<svg class=\"scale fixed\" height=\"{HEIGHT}\" font-size=\"13\" aria-hidden=\"true\">\n");
    let (middle, title) = ((TOP + HEIGHT - BELOW) / 2.0, y.title());
    svg += &format!(
        "<text class=\"axis\" transform=\"translate(14 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{title}</text>\n"
    );
    for (at, label) in y.ticks() {
        svg += &format!("<text x=\"90%\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>\n", at + 4.0);
    }
    svg + "</svg>\n"
}

/// Grid, front and settings.
fn field(sweep: &Sweep, places: &[Place<'_>], x: &Axis<'_>, y: &Axis<'_>) -> String {
    let label = text(&format!("cost against {}", latency_label(sweep)));
    let mut svg = format!(
        "<svg class=\"field fixed\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{label}\" font-size=\"13\">\n"
    );
    grid(&mut svg, x, y);
    let (below, title) = (HEIGHT - 8.0, x.title());
    svg += &format!("<text class=\"axis\" x=\"50%\" y=\"{below:.1}\" text-anchor=\"middle\">{title}</text>\n");
    let on_front = sweep.front.iter().filter_map(|number| places.iter().find(|place| place.number == *number));
    let on_front: Vec<&Place<'_>> = on_front.collect();
    for ends in on_front.windows(2) {
        let [x1, x2] = [x.at(ends[0].cost), x.at(ends[1].cost)];
        let [y1, y2] = [y.at(ends[0].latency), y.at(ends[1].latency)];
        svg += &format!("<line class=\"line\" x1=\"{x1:.2}%\" y1=\"{y1:.1}\" x2=\"{x2:.2}%\" y2=\"{y2:.1}\"/>\n");
    }
    for place in places {
        let class = match place.result.is_comparable() {
            false => "undone",
            true if sweep.front.contains(&place.number) => "front",
            true => "other",
        };
        let (cx, cy) = (x.at(place.cost), y.at(place.latency));
        let title = text(&described(sweep, place.result));
        svg += &format!(
            "<circle class=\"{class}\" cx=\"{cx:.2}%\" cy=\"{cy:.1}\" r=\"5\"><title>{title}</title></circle>\n"
        );
        let ring = match sweep.cheapest == Some(place.number) {
            true => Some("best"),
            false => sweep.not_told_apart.contains(&place.number).then_some("best alike"),
        };
        if let Some(class) = ring {
            svg += &format!("<circle class=\"{class}\" cx=\"{cx:.2}%\" cy=\"{cy:.1}\" r=\"9\"/>\n");
        }
    }
    svg + "</svg>\n"
}

fn grid(svg: &mut String, x: &Axis<'_>, y: &Axis<'_>) {
    let bottom = HEIGHT - BELOW;
    let ticks = x.ticks();
    let many = ticks.len() > 3;
    for (ordinal, (at, label)) in ticks.into_iter().enumerate() {
        // Narrow pages have room for every second of many.
        let class = if many && ordinal % 2 == 1 { " class=\"second\"" } else { "" };
        *svg += &format!("<line class=\"grid\" x1=\"{at:.2}%\" y1=\"{TOP}\" x2=\"{at:.2}%\" y2=\"{bottom}\"/>\n");
        *svg +=
            &format!("<text{class} x=\"{at:.2}%\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>\n", bottom + 18.0);
    }
    for (at, _) in y.ticks() {
        *svg += &format!("<line class=\"grid\" x1=\"0\" y1=\"{at:.1}\" x2=\"100%\" y2=\"{at:.1}\"/>\n");
    }
}

fn caption(page: &mut Html, sweep: &Sweep) {
    let of_what = if sweep.cheapest_meeting_objectives.is_some() { " of those that meet all objectives" } else { "" };
    let mut words = format!(
        "Each dot is a setting, by its mean cost and {}. The line joins those that no other beats in both.",
        latency_label(sweep)
    );
    if sweep.cheapest.is_some() {
        words += &format!(" The ring marks the lowest mean cost{of_what}");
        let alike = if sweep.not_told_apart.is_empty() { "" } else { ", dashed rings what is not told apart from it" };
        words += &format!("{alike}.");
    }
    if !sweep.results.iter().all(SettingResult::is_comparable) {
        words += " Hollow dots leave work undone: their costs are not comparable.";
    }
    page.element("figcaption", &words);
}

fn described(sweep: &Sweep, result: &SettingResult) -> String {
    let set: Vec<String> =
        sweep.paths.iter().zip(&result.values).map(|(path, value)| format!("{path}={value}")).collect();
    format!("{}: {}", result.policy, set.join(", "))
}

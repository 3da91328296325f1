//! The settings of a sweep in the plane of cost and latency, with the front that no other setting beats.
//!
//! The drawing is as wide as the page, and text has one size on all: places along the axis of cost are shares of the width,
//! those along the axis of latency are pixels.

use super::measure;
use super::sweep_table::latency_label;
use crate::figures::{Figure, find};
use crate::report::axis::Axis;
use crate::report::page::{Html, sentence, text};
use crate::statistics::Estimate;
use crate::sweep::{SettingResult, Sweep};

const HEIGHT: f64 = 400.0;
const TOP: f64 = 14.0;
const BELOW: f64 = 54.0;

/// Settings of which each has error bars; of more those of the front alone.
const BARS_MAX: usize = 40;

/// A setting's place in the plane.
struct Place<'a> {
    number: usize,
    result: &'a SettingResult,
    cost: Level,
    latency: Level,
}

/// A figure and the ends of its interval.
#[derive(Clone, Copy)]
struct Level {
    value: f64,
    ends: Option<(f64, f64)>,
}

impl Level {
    fn new(estimate: &Estimate) -> Self {
        Self { value: estimate.centre(), ends: estimate.low.zip(estimate.high) }
    }

    /// Whether this is surely less, as far as intervals say; a single value is taken at its word.
    fn is_below(&self, other: &Self) -> bool {
        let high = self.ends.map_or(self.value, |ends| ends.1);
        high < other.ends.map_or(other.value, |ends| ends.0)
    }
}

/// An axis of the plane, with its title and its place on the page.
struct Side<'a> {
    axis: Axis<'a>,
    label: &'a str,
    from: f64,
    to: f64,
}

impl<'a> Side<'a> {
    /// The axis over the levels and their intervals. One that reaches much further than the others goes on outside.
    fn over(
        (figure, currency): (&'a Figure, &'a str),
        levels: impl Iterator<Item = Level> + Clone,
        (from, to): (f64, f64),
    ) -> Self {
        let values = levels.clone().map(|level| level.value);
        let (low, high) = Axis::over(measure(figure, currency, 1.0), values.clone()).ends();
        let mut reaches: Vec<f64> = levels.clone().filter_map(|level| Some(level.ends?.1 - level.ends?.0)).collect();
        reaches.sort_by(f64::total_cmp);
        let room = high - low + reaches.get(reaches.len() / 2).copied().unwrap_or(0.0);
        let ends = levels.filter_map(|level| level.ends).flat_map(|(low, high)| [low, high]);
        let within = ends.map(|end| end.clamp((low - room).max(figure.unit.range().0), high + room));
        let axis = Axis::over(measure(figure, currency, 1.0), values.chain(within));
        Self { axis, label: figure.label, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        self.from + self.axis.share(value) * (self.to - self.from)
    }

    /// The same, no further than the ends of the axis.
    fn within(&self, value: f64) -> f64 {
        self.from + self.axis.share(value).clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// The label of the figure, and whether distances look larger than they are.
    fn title(&self) -> String {
        let zoomed = if self.axis.is_zoomed() { " (not from zero)" } else { "" };
        text(&format!("{}{zoomed}", sentence(self.label)))
    }

    /// Round values with their places and their labels.
    fn ticks(&self) -> Vec<(f64, String)> {
        self.axis.ticks().into_iter().map(|(tick, label)| (self.at(tick), text(&label))).collect()
    }
}

/// Adds the drawing, if any setting has both figures.
pub(super) fn figure(page: &mut Html, sweep: &Sweep) {
    let (Some((cost, cost_figure)), Some((latency, latency_figure))) = (find(&sweep.cost), find(&sweep.latency)) else {
        return;
    };
    let level = |result: &SettingResult, figure: usize| result.figures.get(figure)?.as_ref().map(Level::new);
    let place = |(number, result): (usize, &'_ SettingResult)| {
        let none_waits = || result.latency(latency).map(|value| Level { value, ends: None });
        let latency = level(result, latency).or_else(none_waits)?;
        Some(Place { number, result: sweep.results.get(number)?, cost: level(result, cost)?, latency })
    };
    let places: Vec<Place<'_>> = sweep.results.iter().enumerate().filter_map(place).collect();
    if places.is_empty() {
        return;
    }
    let currency = sweep.about.currency.as_str();
    let x = Side::over((cost_figure, currency), places.iter().map(|place| place.cost), (0.0, 100.0));
    let y = Side::over((latency_figure, currency), places.iter().map(|place| place.latency), (HEIGHT - BELOW, TOP));
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
fn scale(y: &Side<'_>) -> String {
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
fn field(sweep: &Sweep, places: &[Place<'_>], x: &Side<'_>, y: &Side<'_>) -> String {
    let label = text(&format!("cost against {}", latency_label(sweep)));
    let mut svg = format!(
        "<svg class=\"field fixed\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{label}\" font-size=\"13\">\n"
    );
    grid(&mut svg, x, y);
    let (below, title) = (HEIGHT - 8.0, x.title());
    svg += &format!("<text class=\"axis\" x=\"50%\" y=\"{below:.1}\" text-anchor=\"middle\">{title}</text>\n");
    for [cheaper, dearer] in joined(sweep, places) {
        let [x1, x2] = [x.at(cheaper.cost.value), x.at(dearer.cost.value)];
        let [y1, y2] = [y.at(cheaper.latency.value), y.at(dearer.latency.value)];
        svg += &format!("<line class=\"line\" x1=\"{x1:.2}%\" y1=\"{y1:.1}\" x2=\"{x2:.2}%\" y2=\"{y2:.1}\"/>\n");
    }
    for place in places.iter().filter(|place| places.len() <= BARS_MAX || sweep.front.contains(&place.number)) {
        svg += &bars(place, x, y);
    }
    for place in places {
        let class = match place.result.is_comparable() {
            false => "undone",
            true if sweep.front.contains(&place.number) => "front",
            true => "other",
        };
        let (cx, cy) = (x.at(place.cost.value), y.at(place.latency.value));
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

/// Neighbours on the front of which one surely costs less and the other surely waits less.
fn joined<'p, 'a>(sweep: &Sweep, places: &'p [Place<'a>]) -> Vec<[&'p Place<'a>; 2]> {
    let on_front = sweep.front.iter().filter_map(|number| places.iter().find(|place| place.number == *number));
    let on_front: Vec<&Place<'_>> = on_front.collect();
    let costs_less = |one: &Place<'_>, other: &Place<'_>| {
        one.cost.is_below(&other.cost)
            || against(sweep, one).zip(against(sweep, other)).is_some_and(|(a, b)| a.is_below(&b))
    };
    let pairs = on_front.windows(2).map(|pair| [pair[0], pair[1]]);
    pairs.filter(|[one, other]| costs_less(one, other) && other.latency.is_below(&one.latency)).collect()
}

/// The cost against the cheapest setting, seed by seed: it is known better than the cost.
fn against(sweep: &Sweep, place: &Place<'_>) -> Option<Level> {
    if sweep.cheapest == Some(place.number) {
        return Some(Level { value: 0.0, ends: Some((0.0, 0.0)) });
    }
    place.result.against_cheapest.as_ref().map(|paired| Level::new(&paired.difference))
}

/// The intervals of a setting's cost and latency.
fn bars(place: &Place<'_>, x: &Side<'_>, y: &Side<'_>) -> String {
    let (cx, cy) = (x.at(place.cost.value), y.at(place.latency.value));
    let mut svg = String::new();
    if let Some((low, high)) = place.cost.ends.filter(|(low, high)| low < high) {
        let [x1, x2] = [low, high].map(|end| x.within(end));
        svg += &format!("<line class=\"reach\" x1=\"{x1:.2}%\" y1=\"{cy:.1}\" x2=\"{x2:.2}%\" y2=\"{cy:.1}\"/>\n");
    }
    if let Some((low, high)) = place.latency.ends.filter(|(low, high)| low < high) {
        let [y1, y2] = [low, high].map(|end| y.within(end));
        svg += &format!("<line class=\"reach\" x1=\"{cx:.2}%\" y1=\"{y1:.1}\" x2=\"{cx:.2}%\" y2=\"{y2:.1}\"/>\n");
    }
    svg
}

fn grid(svg: &mut String, x: &Side<'_>, y: &Side<'_>) {
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
    let mut words = format!("Each dot is a setting, plotted by mean cost and {}", latency_label(sweep));
    if sweep.about.replications > 1 {
        words += ", with 95% confidence intervals. A line joins two settings if one clearly costs less and the other clearly waits less.";
    } else {
        words += ". The line joins the Pareto-optimal settings: no other is better in both.";
    }
    if sweep.cheapest.is_some() {
        words += &format!(" The ring marks the lowest mean cost{of_what}");
        let alike = if sweep.not_told_apart.is_empty() {
            ""
        } else {
            ", dashed rings mark settings not significantly different from it"
        };
        words += &format!("{alike}.");
    }
    if !sweep.results.iter().all(SettingResult::is_comparable) {
        words += " Hollow dots left work unfinished; their costs are not comparable.";
    }
    page.element("figcaption", &words);
}

fn described(sweep: &Sweep, result: &SettingResult) -> String {
    let set: Vec<String> =
        sweep.paths.iter().zip(&result.values).map(|(path, value)| format!("{path}={value}")).collect();
    format!("{}: {}", result.policy, set.join(", "))
}

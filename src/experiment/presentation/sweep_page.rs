//! `sweep.html`: the answer, the plane of cost and latency with its front, and a table of all settings.

use super::sweep_table::{answer, columns, header, latency_label, row, short_paths};
use super::value;
use crate::experiment::figures::{Figure, find};
use crate::experiment::sweep::{SettingResult, Sweep};
use crate::report::format::{counted, span};
use crate::report::page::{Html, STYLE, text};

const OWN_STYLE: &str = "\
svg .other { fill: var(--faint); fill-opacity: 0.45; }
svg .front { fill: var(--dot); }
svg .best { fill: none; stroke: var(--good); stroke-width: 3; }
svg .line { fill: none; stroke: var(--dot); stroke-width: 1.5; }
svg .grid { stroke: var(--line); }
:root { --dot: #0969da; }
@media (prefers-color-scheme: dark) { :root { --dot: #58a6ff; } }
.verdict { font-size: 1.15rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 0.75rem 1rem; margin: 1rem 0; }
";

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 14.0;
const BELOW: f64 = 52.0;

/// Rows of the table of all settings.
const ROWS_MAX: usize = 1_000;

/// The page of a sweep. `command` is the command line that repeats it.
pub fn render(sweep: &Sweep, command: &str) -> String {
    let about = &sweep.about;
    let mut page = Html::new();
    page.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n");
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n");
    page.raw("<meta name=\"color-scheme\" content=\"light dark\"/>\n");
    page.raw(&format!("<title>{}, swept \u{2013} nodecast</title>\n", text(&about.scenario)));
    page.raw(&format!("<style>\n{STYLE}{OWN_STYLE}</style>\n</head>\n<body>\n<main>\n"));
    page.element("h1", &format!("{}: settings swept", about.scenario));
    let settings = counted(sweep.results.len() as u64, "setting", "settings");
    let replications = counted(about.replications, "replication", "replications");
    let scope = format!(
        "{settings} of {replications} each, {} from {} in {}",
        span(about.duration_seconds),
        about.start,
        about.region
    );
    page.element("p class=\"faint\"", &scope);
    page.element("p class=\"verdict\"", &answer(sweep));
    plane(&mut page, sweep);
    page.element("h2", "On the front");
    let front: Vec<&SettingResult> = sweep.front.iter().filter_map(|number| sweep.results.get(*number)).collect();
    table(&mut page, sweep, &front);
    page.element("h2", "All settings");
    let all: Vec<&SettingResult> = sweep.results.iter().take(ROWS_MAX).collect();
    table(&mut page, sweep, &all);
    if sweep.results.len() > ROWS_MAX {
        page.element("p class=\"note\"", "The first 1,000; sweep.csv has all.");
    }
    if !sweep.warnings.is_empty() {
        page.raw("<div class=\"warnings\">\n");
        page.element("h2", &counted(sweep.warnings.len() as u64, "warning", "warnings"));
        page.list(&sweep.warnings);
        page.raw("</div>\n");
    }
    page.raw("</main>\n<footer>\n");
    let footer = format!("{} {}, prices of {}", sweep.program, sweep.program_version, about.price_date);
    page.element("p class=\"note\"", &footer);
    page.raw(&format!("<p class=\"note\"><code>{}</code></p>\n", text(command)));
    page.raw("</footer>\n</body>\n</html>\n");
    page.finish()
}

/// The table of some settings; headings are the scenario's own paths.
fn table(page: &mut Html, sweep: &Sweep, results: &[&SettingResult]) {
    let names = 1 + short_paths(sweep).len();
    let class = |column: usize| {
        if column >= names && column < names + columns(sweep).len() { " class=\"figure\"" } else { "" }
    };
    page.raw("<div class=\"scroll\"><table>\n<thead><tr>");
    for (column, name) in header(sweep).iter().enumerate() {
        page.raw(&format!("<th{}>{}</th>", class(column), text(name)));
    }
    page.raw("</tr></thead>\n<tbody>\n");
    for result in results {
        page.raw("<tr>");
        for (column, cell) in row(sweep, result).iter().enumerate() {
            page.raw(&format!("<td{}>{}</td>", class(column), text(cell)));
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody>\n</table></div>\n");
}

/// A setting's place in the plane.
struct Place<'a> {
    number: usize,
    result: &'a SettingResult,
    cost: f64,
    latency: f64,
}

/// An axis of the plane: from value to pixel.
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn over(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let low = values.clone().min_by(f64::total_cmp).unwrap_or(0.0);
        let high = values.max_by(f64::total_cmp).unwrap_or(1.0);
        let margin = if high > low { (high - low) * 0.05 } else { low.abs().max(1.0) * 0.1 };
        Self { low: low - margin, high: high + margin, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }
}

fn plane(page: &mut Html, sweep: &Sweep) {
    let (Some((cost, cost_figure)), Some((latency, latency_figure))) = (find("cost"), find(&sweep.latency)) else {
        return;
    };
    let mean = |result: &SettingResult, figure: usize| Some(result.figures.get(figure)?.as_ref()?.mean);
    let places: Vec<Place<'_>> = sweep
        .results
        .iter()
        .enumerate()
        .filter_map(|(number, result)| {
            Some(Place { number, result, cost: mean(result, cost)?, latency: mean(result, latency)? })
        })
        .collect();
    if places.is_empty() {
        return;
    }
    let x = Scale::over(places.iter().map(|place| place.cost), LEFT, WIDTH - RIGHT);
    let y = Scale::over(places.iter().map(|place| place.latency), HEIGHT - BELOW, TOP);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"cost against {}\" font-size=\"13\">\n",
        text(latency_label(sweep))
    );
    grid(&mut svg, sweep, (&x, cost_figure), (&y, latency_figure));
    let on_front: Vec<&Place<'_>> =
        sweep.front.iter().filter_map(|number| places.iter().find(|place| place.number == *number)).collect();
    let line: Vec<String> =
        on_front.iter().map(|place| format!("{:.1},{:.1}", x.at(place.cost), y.at(place.latency))).collect();
    svg += &format!("<polyline class=\"line\" points=\"{}\"/>\n", line.join(" "));
    for place in &places {
        let class = if sweep.front.contains(&place.number) { "front" } else { "other" };
        let (cx, cy) = (x.at(place.cost), y.at(place.latency));
        let title = described(sweep, place.result);
        svg += &format!(
            "<circle class=\"{class}\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"5\"><title>{}</title></circle>\n",
            text(&title)
        );
        if sweep.cheapest_meeting_objectives == Some(place.number) {
            svg += &format!("<circle class=\"best\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"9\"/>\n");
        }
    }
    svg += "</svg>\n";
    page.raw("<figure><div class=\"scroll\">");
    page.raw(&svg);
    page.raw("</div>\n");
    let ring = if sweep.cheapest_meeting_objectives.is_some() {
        "; the ring marks the cheapest that meets all objectives"
    } else {
        ""
    };
    page.element(
        "figcaption",
        &format!(
            "Each dot is a setting, by its mean cost and {}. The line joins those that no other beats in both{ring}.",
            latency_label(sweep)
        ),
    );
    page.raw("</figure>\n");
}

fn described(sweep: &Sweep, result: &SettingResult) -> String {
    let set: Vec<String> =
        sweep.paths.iter().zip(&result.values).map(|(path, value)| format!("{path}={value}")).collect();
    format!("{}: {}", result.policy, set.join(", "))
}

fn grid(svg: &mut String, sweep: &Sweep, (x, cost): (&Scale, &Figure), (y, latency): (&Scale, &Figure)) {
    let currency = &sweep.about.currency;
    let (bottom, right) = (HEIGHT - BELOW, WIDTH - RIGHT);
    for tick in super::dots::ticks(x.low, x.high) {
        let at = x.at(tick);
        *svg += &format!("<line class=\"grid\" x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\"/>\n");
        let label = text(&value(cost, currency, tick));
        *svg += &format!("<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>\n", bottom + 18.0);
    }
    for tick in super::dots::ticks(y.low, y.high) {
        let at = y.at(tick);
        *svg += &format!("<line class=\"grid\" x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\"/>\n");
        let label = text(&value(latency, currency, tick));
        *svg += &format!("<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>\n", LEFT - 8.0, at + 4.0);
    }
    let middle = (LEFT + right) / 2.0;
    *svg +=
        &format!("<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">cost of the run</text>\n", HEIGHT - 8.0);
    let upright = f64::midpoint(TOP, bottom);
    *svg += &format!(
        "<text transform=\"translate(16 {upright:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        text(latency.label)
    );
}

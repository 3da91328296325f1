//! `comparison.html`: one page that needs nothing else, the verdict first, the distributions below.

use super::dots::{Row, draw};
use super::forest;
use super::table::{LEVEL, difference_cells, durations, is_difference, mean_cells, objective_row};
use super::verdict::verdict;
use super::{compared, measure, seeds, stacked, value_among};
use crate::comparison::{Comparison, PolicyResult, Wording};
use crate::figures::{Figure, Unit, find, for_people};
use crate::report::format::{counted, instant_for_people, warm_up};
use crate::report::page::bars::CHIP_STYLE;
use crate::report::page::{CHART_SCRIPT, Html, VERDICT_STYLE, begin, data, script, sentence, text};
use crate::report::table::Rows;
use crate::simulation::Outcome;

/// Figures whose replications are drawn.
const DRAWN: [&str; 5] = ["unavailable_pod_minutes", "cost_per_month", "pending_p99", "request_p99", "evictions"];

const OWN_STYLE: &str = "\
.dots circle { fill: var(--dot); fill-opacity: 0.75; }
svg .mean { stroke: var(--ink); stroke-width: 2; }
svg .interval { stroke: var(--ink); stroke-width: 5; stroke-opacity: 0.35; }
svg .off { fill: var(--faint); }
svg .beyond { fill: var(--ink); fill-opacity: 0.55; }
svg .grid { stroke: var(--line); }
figure svg.dots { overflow: visible; }
.replications { margin: 1.6rem 0; }
.replications figcaption { color: var(--ink); font-size: 0.95rem; margin-bottom: 0.4rem; }
@media (max-width: 640px) {
  svg .second { display: none; }
  .compared thead { display: none; }
  .compared, .compared tbody, .compared tr { display: block; }
  .compared tr { border-bottom: 1px solid var(--line); padding: 0.35rem 0; }
  .compared td { display: flex; flex-wrap: wrap; justify-content: flex-end; gap: 0 0.4rem; border: 0; padding: 0.05rem 0; }
  .compared td:first-child { justify-content: flex-start; font-weight: 500; white-space: normal; }
  .compared td[data-of]::before { content: attr(data-of); margin-right: auto; max-width: 100%; white-space: normal; overflow-wrap: anywhere; text-align: left; color: var(--faint); }
  .compared td span { color: var(--faint); }
}
:root { --dot: #0969da; }
@media (prefers-color-scheme: dark) { :root { --dot: #58a6ff; } }
";

/// The page of a comparison. `command` is the command line that repeats it; `runs` holds one run of each policy, whose
/// report lies in a folder with the policy's name beside the page.
pub fn render(comparison: &Comparison, command: &str, runs: &[(&str, &Outcome)]) -> String {
    let about = &comparison.about;
    let mut page = Html::new();
    let style = [VERDICT_STYLE, OWN_STYLE, CHIP_STYLE, forest::STYLE].concat();
    begin(&mut page, &format!("{}, compared", about.scenario), &style, &CHART_SCRIPT);
    heading(&mut page, comparison);
    let mut sentences = verdict(comparison);
    if !sentences.is_empty() {
        page.element("p class=\"verdict\"", &sentences.remove(0));
    }
    forest::plot(&mut page, comparison);
    // What makes costs incomparable is never folded.
    let (open, folded): (Vec<String>, Vec<String>) =
        sentences.into_iter().partition(|words| words.ends_with("its cost is not comparable."));
    open.iter().for_each(|words| page.element("p class=\"missed\"", words));
    page.fold("in-words", "In words", &counted(folded.len() as u64, "sentence", "sentences"));
    folded.iter().for_each(|words| page.element("p", words));
    page.end_fold();
    warnings(&mut page, comparison);
    means(&mut page, comparison);
    differences(&mut page, comparison);
    objectives(&mut page, comparison);
    drawings(&mut page, comparison);
    if !runs.is_empty() {
        side_by_side(&mut page, comparison);
    }
    assumptions(&mut page, comparison);
    page.raw("</main>\n");
    footer(&mut page, comparison, command);
    if !runs.is_empty() {
        script(&mut page, &data::of_many(runs), &CHART_SCRIPT);
    }
    page.raw("</body>\n</html>\n");
    page.finish()
}

fn heading(page: &mut Html, comparison: &Comparison) {
    let about = &comparison.about;
    page.element("h1", &format!("{}: {} compared", about.scenario, compared(comparison)));
    let replications = counted(about.replications, "replication", "replications");
    page.element(
        "p class=\"faint\"",
        &format!(
            "{replications} of {} from {} in {}, {}{}",
            durations(about),
            instant_for_people(&about.start),
            about.region,
            seeds(comparison),
            match comparison.wording {
                Wording::Policies => "; all policies face the same load, prices, and capacity",
                Wording::Phrases => " on both sides",
            }
        ),
    );
    if let Some(warm_up) = warm_up(about.warm_up_seconds) {
        page.element("p class=\"faint\"", &warm_up);
    }
    if about.replications < about.replications_planned {
        let planned = about.replications_planned;
        page.element("p class=\"missed\"", &format!("Stopped early ({planned} replications planned)."));
    }
}

fn warnings(page: &mut Html, comparison: &Comparison) {
    if let Some(silenced) = comparison.warnings.about_silenced() {
        page.element("p class=\"faint\"", &silenced);
    }
    page.warnings(comparison.warnings.lines());
}

/// Figures that any policy has a value for.
fn measured(comparison: &Comparison) -> impl Iterator<Item = (usize, &'static Figure)> {
    for_people()
        .filter(|(position, _)| comparison.policies.iter().any(|policy| policy.figures[*position].mean.is_some()))
}

/// The columns of a table with one column for each of `policies`.
fn columns(page: &mut Html, first: &str, policies: &[PolicyResult], rows: &[Vec<String>]) {
    // The page's tables have headings that are known when the program is built; these are the scenario's own names.
    page.raw("<div class=\"scroll\"><table class=\"compared\">\n<thead><tr>");
    page.raw(&format!("<th>{}</th>", text(&sentence(first))));
    for policy in policies {
        page.raw(&format!("<th class=\"figure\">{}</th>", text(&policy.name)));
    }
    page.raw("</tr></thead>\n<tbody>\n");
    for row in rows {
        page.raw("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let policy = policies.get(column.wrapping_sub(1));
            // Where the page is narrow a value stands in a line with its policy.
            let of = |policy: &PolicyResult| format!(" class=\"figure\" data-of=\"{}\"", text(&policy.name));
            let class = policy.map_or_else(String::new, of);
            let content = if column > 0 { stacked(cell) } else { text(cell) };
            page.raw(&format!("<td{class}>{content}</td>"));
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody>\n</table></div>\n");
}

fn means(page: &mut Html, comparison: &Comparison) {
    let currency = &comparison.about.currency;
    let is_zero = |position: usize| {
        let means = comparison.policies.iter().filter_map(|policy| policy.figures[position].mean);
        means.flat_map(|mean| [mean.mean, mean.high.unwrap_or(0.0)]).all(|value| value.abs() <= 0.0)
    };
    let (zero, others): (Vec<_>, Vec<_>) = measured(comparison).partition(|(position, _)| is_zero(*position));
    let rows: Vec<Vec<String>> = others
        .into_iter()
        .map(|(position, figure)| {
            let mut row = vec![sentence(figure.label)];
            let means: Vec<_> = comparison.policies.iter().map(|policy| policy.figures[position].mean).collect();
            row.extend(mean_cells(figure, currency, &means));
            row
        })
        .collect();
    let (heading, everywhere) = match comparison.wording {
        Wording::Policies => ("Results by policy", "under every policy"),
        Wording::Phrases => ("Results", "on both sides"),
    };
    page.element("h2", heading);
    page.element(
        "p class=\"note\"",
        "Mean over all replications (median for waits), with a 95% confidence interval where it varies.",
    );
    columns(page, LEVEL, &comparison.policies, &rows);
    if !zero.is_empty() {
        let labels: Vec<&str> = zero.iter().map(|(_, figure)| figure.label).collect();
        page.element("p class=\"note\"", &format!("Zero {everywhere}: {}.", labels.join("; ")));
    }
}

fn differences(page: &mut Html, comparison: &Comparison) {
    let Some((first, others)) = comparison.policies.split_first() else { return };
    if others.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> = measured(comparison)
        .filter(|(_, figure)| is_difference(comparison, figure))
        .map(|(position, figure)| {
            let mut row = vec![sentence(figure.label)];
            let paired: Vec<_> = others.iter().map(|policy| policy.figures[position].against_first.as_ref()).collect();
            row.extend(difference_cells(figure, &comparison.about.currency, &paired));
            row
        })
        .collect();
    page.element("h2", &format!("Change from {}", first.name));
    let under = comparison.wording.under(&first.name);
    let note = format!(
        "Paired differences between runs with the same seed (mean; median for waits), with a 95% confidence interval; costs as a share of the cost {under}."
    );
    page.element("p class=\"note\"", &note);
    columns(page, "difference", others, &rows);
}

fn objectives(page: &mut Html, comparison: &Comparison) {
    let rows: Vec<Vec<String>> = comparison.objectives().iter().map(objective_row).collect();
    if rows.is_empty() {
        return;
    }
    page.element("h2", "Objectives");
    columns(page, "runs that met it", &comparison.policies, &rows);
}

fn drawings(page: &mut Html, comparison: &Comparison) {
    page.element("h2", "Every replication");
    page.element(
        "p class=\"note\"",
        "Each dot is one replication. The vertical line is the mean (median for waits), the bar its 95% confidence interval; an arrowhead marks an interval that continues off the chart.",
    );
    let mut alike = Vec::new();
    for name in DRAWN {
        let Some((position, figure)) = find(name) else { continue };
        let rows = rows_of_dots(comparison, position);
        let values = || rows.iter().flat_map(|row| row.values.iter().copied());
        let (Some(low), Some(high)) = (values().min_by(f64::total_cmp), values().max_by(f64::total_cmp)) else {
            continue;
        };
        let say = |amount| value_among(figure, &comparison.about.currency, amount, high.abs().max(low.abs()));
        if high > low {
            let measure = measure(figure, &comparison.about.currency, high);
            drawing(page, comparison, figure, &draw(&rows, figure.label, measure, &say));
        } else {
            alike.push(format!("{} {}", figure.label, say(high)));
        }
    }
    if !alike.is_empty() {
        page.element("p", &format!("Identical in every replication: {}.", alike.join("; ")));
    }
}

/// One row for each policy, with the figure at `position` of each of its replications.
fn rows_of_dots(comparison: &Comparison, position: usize) -> Vec<Row<'_>> {
    let row = |policy: &'_ PolicyResult| {
        let this_point = comparison.points.iter().filter(|point| point.policy == policy.name);
        this_point.filter_map(|point| point.figures.get(position).copied().flatten()).collect()
    };
    let policies = comparison.policies.iter();
    policies
        .map(|policy| Row { label: &policy.name, values: row(policy), mean: policy.figures[position].mean })
        .collect()
}

fn drawing(page: &mut Html, comparison: &Comparison, figure: &Figure, svg: &str) {
    let unit = match figure.unit {
        Unit::Money => comparison.about.currency.as_str(),
        Unit::Seconds => "time",
        Unit::Count => "number",
        Unit::Share => "percent",
    };
    let replications = counted(comparison.about.replications, "replication", "replications");
    page.raw("<figure class=\"replications\">\n<figcaption>");
    page.element("strong", &sentence(figure.label));
    page.element("span class=\"faint\"", &format!("({unit}), {replications} each"));
    page.raw("</figcaption>\n");
    page.raw(svg);
    page.raw("</figure>\n");
}

/// Charts with a curve for each policy, and the way to the whole reports.
fn side_by_side(page: &mut Html, comparison: &Comparison) {
    page.element("h2", "One run per policy, side by side");
    let seed = comparison.about.first_seed;
    let note = format!(
        "The replication with seed {seed}. Drag across a chart or pinch to zoom; point at a chart to read its values, in bold next to the names."
    );
    let band = if comparison.about.warm_up_seconds.is_some() { " The grey band is the warm-up." } else { "" };
    page.element("p class=\"note\"", &(note + band));
    page.raw("<div id=\"zoom\" role=\"group\" aria-label=\"time shown\"></div>\n<div id=\"panels\"></div>\n<ul>\n");
    for policy in &comparison.policies {
        // A policy's name is made of letters, digits, `-`, `_` and `.`.
        let name = text(&policy.name);
        page.raw(&format!("<li><a href=\"{name}/report.html\">Full report for {name}</a></li>\n"));
    }
    page.raw("</ul>\n");
}

fn assumptions(page: &mut Html, comparison: &Comparison) {
    let about = &comparison.about;
    if !about.assumptions.is_empty() {
        page.element("h2", "Scenario assumptions");
        page.list(&about.assumptions);
    }
    page.element("h2", "Inputs");
    let inputs = Rows::new(&about.inputs).text("file", |input| &input.path).text("SHA-256", |input| &input.sha256);
    page.add_table(inputs, "comparison.json");
}

fn footer(page: &mut Html, comparison: &Comparison, command: &str) {
    let about = &comparison.about;
    page.raw("<footer>\n");
    page.element(
        "p class=\"note\"",
        &format!("{} {}, prices of {}", comparison.program, comparison.program_version, about.price_date),
    );
    page.raw(&format!("<p class=\"note\"><code>{}</code></p>\n", text(command)));
    page.raw("</footer>\n");
}

//! `sweep.html`: the answer, the plane of cost and latency with its front, and a table of all settings.

use super::sweep_table::{answer, columns, header, own_objectives, rows, short_paths};
use super::{plane, stacked, with_own_unit};
use crate::report::format::{counted, instant_for_people, span, warm_up};
use crate::report::page::{Html, STYLE, VERDICT_STYLE, head, sentence, text};
use crate::sweep::Sweep;

const OWN_STYLE: &str = "\
svg .other { fill: var(--faint); fill-opacity: 0.7; }
svg .front { fill: var(--dot); }
svg .undone { fill: none; stroke: var(--faint); stroke-width: 1.5; }
svg .best { fill: none; stroke: var(--good); stroke-width: 3; }
svg .alike { stroke-width: 2; stroke-dasharray: 4 3; }
svg .axis { fill: var(--faint); }
svg .line { stroke: var(--dot); stroke-width: 1.5; }
svg .reach { stroke: var(--ink); stroke-width: 1.5; stroke-opacity: 0.35; }
svg .grid { stroke: var(--line); }
figure .plane { display: flex; margin: 0.5rem 2rem 0 0; }
figure .plane svg { min-width: 0; overflow: visible; }
figure .plane svg.scale { flex: none; width: 6rem; }
figure .plane svg.field { flex: 1; }
@media (max-width: 640px) { svg .second { display: none; } }
:root { --dot: #0969da; }
@media (prefers-color-scheme: dark) { :root { --dot: #58a6ff; } }
.settings th { white-space: normal; vertical-align: bottom; }
.settings td span { display: block; color: var(--faint); font-size: 0.85em; }
@media (max-width: 640px) {
  .settings thead { display: none; }
  .settings, .settings tbody, .settings tr { display: block; }
  .settings tr { border-bottom: 1px solid var(--line); padding: 0.3rem 0; }
  .settings td { display: flex; flex-wrap: wrap; justify-content: flex-end; gap: 0 0.4rem; border: 0; padding: 0.1rem 0; }
  .settings td::before { content: attr(data-name); margin-right: auto; max-width: 100%; white-space: normal; overflow-wrap: anywhere; text-align: left; color: var(--faint); }
}
";

const NOTE: &str = "Means over the replications, ± half the 95% confidence interval where they vary. The last figure \
                    is the cost against the lowest mean, seed by seed: an interval that includes 0 shows no significant difference.";

/// Settings of which one table is seen at a glance.
const ROWS_SEEN: usize = 12;
/// Rows of the table of all settings.
const ROWS_MAX: usize = 1_000;

/// The page of a sweep. `command` is the command line that repeats it.
pub fn render(sweep: &Sweep, command: &str) -> String {
    let about = &sweep.about;
    let mut page = Html::new();
    head(&mut page, &format!("{}, swept", about.scenario), &[STYLE, VERDICT_STYLE, OWN_STYLE], &[]);
    page.element("h1", &format!("{}: settings swept", about.scenario));
    let settings = counted(sweep.results.len() as u64, "setting", "settings");
    let replications = counted(about.replications, "replication", "replications");
    let most = if sweep.is_sequential() { "at most " } else { "" };
    let scope = format!(
        "{settings} of {most}{replications} each, {} from {} in {}",
        span(about.duration_seconds),
        instant_for_people(&about.start),
        about.region
    );
    page.element("p class=\"faint\"", &scope);
    if let Some(warm_up) = warm_up(about.warm_up_seconds) {
        page.element("p class=\"faint\"", &warm_up);
    }
    let mut sentences = answer(sweep);
    if !sentences.is_empty() {
        page.element("p class=\"verdict\"", &sentences.remove(0));
    }
    plane::figure(&mut page, sweep);
    if !sentences.is_empty() {
        page.fold("in-words", "In words", &counted(sentences.len() as u64, "sentence", "sentences"));
        sentences.iter().for_each(|words| page.element("p", words));
        page.end_fold();
    }
    let rows = rows(sweep);
    // Of a few settings one table is enough.
    if rows.len() > ROWS_SEEN {
        page.element("h2", "Pareto-optimal settings");
        let front: Vec<&Vec<String>> = sweep.front.iter().filter_map(|number| rows.get(*number)).collect();
        table(&mut page, sweep, &front);
    }
    page.element("h2", "All settings");
    page.element("p class=\"note\"", NOTE);
    table(&mut page, sweep, &rows.iter().take(ROWS_MAX).collect::<Vec<_>>());
    if sweep.results.len() > ROWS_MAX {
        page.element("p class=\"note\"", "Showing the first 1,000. See sweep.csv for the rest.");
    }
    if let Some(silenced) = sweep.warnings.about_silenced() {
        page.element("p class=\"faint\"", &silenced);
    }
    page.warnings(sweep.warnings.lines());
    page.raw("</main>\n<footer>\n");
    let footer = format!("{} {}, prices of {}", sweep.program, sweep.program_version, about.price_date);
    page.element("p class=\"note\"", &footer);
    page.raw(&format!("<p class=\"note\"><code>{}</code></p>\n", text(command)));
    page.raw("</footer>\n</body>\n</html>\n");
    page.finish()
}

/// The table of some settings; headings are the scenario's own paths.
fn table(page: &mut Html, sweep: &Sweep, rows: &[&Vec<String>]) {
    let names = 1 + short_paths(sweep).len();
    let figures = columns(sweep).len() + own_objectives(sweep).len();
    let class = |column: usize| {
        if column >= names && column < names + figures { " class=\"figure\"" } else { "" }
    };
    // The names of settings are the scenario's own.
    let heading = |(column, name): (usize, &String)| {
        if (1..names).contains(&column) { name.clone() } else { sentence(name) }
    };
    let headings: Vec<String> = header(sweep).iter().enumerate().map(heading).collect();
    page.raw("<div class=\"scroll\"><table class=\"settings\">\n<thead><tr>");
    for (column, name) in headings.iter().enumerate() {
        page.raw(&format!("<th{}>{}</th>", class(column), text(name)));
    }
    page.raw("</tr></thead>\n<tbody>\n");
    for row in rows {
        page.raw("<tr>");
        for (column, (cell, name)) in row.iter().zip(&headings).enumerate() {
            let content = if column < names { text(cell) } else { stacked(&with_own_unit(cell)) };
            page.raw(&format!("<td{} data-name=\"{}\">{content}</td>", class(column), text(name)));
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody>\n</table></div>\n");
}

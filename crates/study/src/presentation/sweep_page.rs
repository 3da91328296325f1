//! `sweep.html`: the answer, the plane of cost and latency with its front, and a table of all settings.

use super::sweep_table::{answer, columns, header, own_objectives, row, short_paths};
use super::{plane, stacked};
use crate::report::format::{counted, instant_for_people, span, warm_up};
use crate::report::page::{Html, STYLE, head, sentence, text};
use crate::sweep::{SettingResult, Sweep};

const OWN_STYLE: &str = "\
svg .other { fill: var(--faint); fill-opacity: 0.7; }
svg .front { fill: var(--dot); }
svg .undone { fill: none; stroke: var(--faint); stroke-width: 1.5; }
svg .best { fill: none; stroke: var(--good); stroke-width: 3; }
svg .alike { stroke-width: 2; stroke-dasharray: 4 3; }
svg .axis { fill: var(--faint); }
svg .line { stroke: var(--dot); stroke-width: 1.5; }
svg .grid { stroke: var(--line); }
figure .plane { display: flex; margin: 0.5rem 2rem 0 0; }
figure .plane svg { min-width: 0; overflow: visible; }
figure .plane svg.scale { flex: none; width: 6rem; }
figure .plane svg.field { flex: 1; }
@media (max-width: 640px) { svg .second { display: none; } }
:root { --dot: #0969da; }
@media (prefers-color-scheme: dark) { :root { --dot: #58a6ff; } }
.verdict { font-size: 1.15rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 0.75rem 1rem; margin: 1rem 0; }
.verdict p { margin: 0.3rem 0; }
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

const NOTE: &str = "Means over the replications, with half the width of their 95 % interval where they vary. The last figure \
                    is the cost against the lowest mean, seed by seed: an interval that includes 0 tells nothing apart.";

/// A result with its number.
type Numbered<'a> = (usize, &'a SettingResult);

/// Rows of the table of all settings.
const ROWS_MAX: usize = 1_000;

/// The page of a sweep. `command` is the command line that repeats it.
pub fn render(sweep: &Sweep, command: &str) -> String {
    let about = &sweep.about;
    let mut page = Html::new();
    head(&mut page, &format!("{}, swept", about.scenario), &[STYLE, OWN_STYLE], &[]);
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
    page.raw("<div class=\"verdict\">\n");
    answer(sweep).iter().for_each(|sentence| page.element("p", sentence));
    page.raw("</div>\n");
    plane::figure(&mut page, sweep);
    page.element("h2", "On the front");
    page.element("p class=\"note\"", NOTE);
    let front: Vec<Numbered<'_>> =
        sweep.front.iter().filter_map(|number| Some((*number, sweep.results.get(*number)?))).collect();
    table(&mut page, sweep, &front);
    page.element("h2", "All settings");
    let all: Vec<Numbered<'_>> = sweep.results.iter().enumerate().take(ROWS_MAX).collect();
    table(&mut page, sweep, &all);
    if sweep.results.len() > ROWS_MAX {
        page.element("p class=\"note\"", "The first 1,000; sweep.csv has all.");
    }
    if let Some(silenced) = sweep.warnings.about_silenced() {
        page.element("p class=\"faint\"", &silenced);
    }
    if !sweep.warnings.is_empty() {
        page.raw("<div class=\"warnings\">\n");
        page.element("h2", &counted(sweep.warnings.len() as u64, "warning", "warnings"));
        page.list(sweep.warnings.lines());
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
fn table(page: &mut Html, sweep: &Sweep, results: &[Numbered<'_>]) {
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
    for (number, result) in results {
        page.raw("<tr>");
        for (column, (cell, name)) in row(sweep, *number, result).iter().zip(&headings).enumerate() {
            let content = if column < names { text(cell) } else { stacked(&with_own_unit(cell)) };
            page.raw(&format!("<td{} data-name=\"{}\">{content}</td>", class(column), text(name)));
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody>\n</table></div>\n");
}

/// A cell with the unit of its interval at its figure too: below one another, `40` and `± 30 s` would not read as one amount.
fn with_own_unit(cell: &str) -> String {
    let Some((mean, range)) = cell.split_once(" \u{b1} ") else { return cell.to_owned() };
    let is_letter = |last: char| last.is_alphabetic() || last == '%';
    match range.rsplit_once(' ') {
        Some((_, unit)) if unit.ends_with(is_letter) && !mean.ends_with(is_letter) => {
            format!("{mean} {unit} \u{b1} {range}")
        }
        _ => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::with_own_unit;

    #[test]
    fn a_figure_above_its_interval_has_its_unit() {
        let cases = [
            ("40 \u{b1} 30 s", "40 s \u{b1} 30 s"),
            ("+0.4 \u{b1} 0.1 %", "+0.4 % \u{b1} 0.1 %"),
            ("2m 10s \u{b1} 1m 40s", "2m 10s \u{b1} 1m 40s"),
            ("1m 10s \u{b1} 40 s", "1m 10s \u{b1} 40 s"),
            ("$1.72 \u{b1} 0.01", "$1.72 \u{b1} 0.01"),
            ("60 (0 to 130)", "60 (0 to 130)"),
            ("lowest mean", "lowest mean"),
        ];
        for (cell, shown) in cases {
            assert_eq!(with_own_unit(cell), shown);
        }
    }
}

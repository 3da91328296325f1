//! The page of `recommend`: the answer, what it costs in what, and the curves that it was chosen from.

use super::recommendation::{
    among_today, assumed_changes, classes, comparison, diff, large_line_rows, money, sentence, sentence_without_spot,
};
use super::{known, savings, signed_percent};
use crate::domain::words::counted;
use crate::recommendation::{Advice, Change, FamilyCurve, Recommendation, Robustness, Tried};
use crate::report::axis::Axis;
use crate::report::figure::Figure;
use crate::report::format::Measure;
use crate::report::page::{Html, STYLE, VERDICT_STYLE, head, text};
use crate::report::table::Rows;

const OWN_STYLE: &str = "\
svg .other { fill: var(--faint); fill-opacity: 0.55; }
svg .today { fill: none; stroke: var(--faint); stroke-width: 3; }
svg .recommended { fill: var(--good); }
svg .curve { fill: none; stroke: var(--dot); stroke-width: 2; }
svg .axis { fill: var(--faint); font-size: 12px; }
svg .mark { fill: currentColor; font-size: 12px; }
svg .grid { stroke: var(--line); }
:root { --dot: #0969da; }
@media (prefers-color-scheme: dark) { :root { --dot: #58a6ff; } }
.curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem 1.5rem; }
.curves figure { margin: 0; min-width: 0; max-width: 36rem; }
.lines td:last-child { white-space: normal; min-width: 16rem; }
pre.diff { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 0.5rem 0.75rem; overflow-x: auto; }
@media print { pre.diff { white-space: pre-wrap; overflow-wrap: anywhere; } }
@media (max-width: 640px) {
  td:first-child { white-space: normal; }
  .lines thead { display: none; }
  .lines tr { display: block; border-bottom: 1px solid var(--line); padding: 0.3rem 0; }
  .lines td { display: inline; border: 0; padding: 0 0.6rem 0 0; }
  .lines td:last-child { display: block; min-width: 0; }
}
@media (max-width: 480px) { svg .axis, svg .mark { font-size: 15px; } }
";

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 88.0;
/// From the end of the axis along to the edge.
const RIGHT: f64 = 24.0;
const BELOW: f64 = 44.0;
const ABOVE: f64 = 14.0;
/// The file that has all rows of a table.
const FILE: &str = "recommendation.json";
/// Rows of the table of settings that were tried.
const ROWS: usize = 12;

/// The page of an answer.
pub fn render(answer: &Recommendation) -> String {
    let mut page = Html::new();
    head(
        &mut page,
        &format!("{}, recommended", answer.scenario),
        &[STYLE, VERDICT_STYLE, OWN_STYLE, savings::STYLE],
        &[],
    );
    page.element("h1", &format!("{}: recommendation", answer.scenario));
    page.raw("<div class=\"verdict\">\n");
    page.element("p", &sentence(answer));
    page.raw("</div>\n");
    savings::bars(&mut page, answer);
    large_lines(&mut page, answer);
    if answer.is_change() {
        page.element("h2", "Recommended changes");
        changes(&mut page, answer, &answer.changes);
    }
    without_spot(&mut page, answer);
    costs(&mut page, answer);
    robustness(&mut page, answer);
    curves(&mut page, answer);
    tried(&mut page, answer);
    page.warnings(answer.warnings.lines());
    page.raw("</main>\n<footer>\n");
    let effort = &answer.effort;
    let footer = format!(
        "{} {}, policy {} in {}, prices of {}; {} of {} settings, confirmed with {}",
        answer.program,
        answer.program_version,
        answer.policy,
        answer.region,
        answer.price_date,
        counted(effort.used, "simulation", "simulations"),
        effort.settings,
        counted(effort.confirmed_with, "fresh seed", "fresh seeds"),
    );
    page.element("p class=\"note\"", &footer);
    page.raw("</footer>\n</body>\n</html>\n");
    page.finish()
}

fn large_lines(page: &mut Html, answer: &Recommendation) {
    if answer.lines.is_empty() {
        return;
    }
    page.element("h2", "Largest lines of today's bill");
    let rows = Rows::new(large_line_rows(answer));
    page.raw("<div class=\"lines\">\n");
    page.add_table(
        rows.text("line", |row| row.0[0].clone())
            .text("cost", |row| row.0[1].clone())
            .text("share", |row| row.0[2].clone())
            .text("levers", |row| row.1.clone()),
        FILE,
    );
    page.raw("</div>\n");
}

/// The second answer, for clusters whose pods cannot be interrupted.
fn without_spot(page: &mut Html, answer: &Recommendation) {
    let Some(second) = &answer.without_spot else { return };
    page.element("h2 id=\"without-spot\"", "Without Spot");
    page.element("p", &format!("{}.", sentence_without_spot(answer, second)));
    if second.advice == Advice::Change {
        changes(page, answer, &second.changes);
    }
}

fn changes(page: &mut Html, answer: &Recommendation, changes: &[Change]) {
    let ordered = classes(changes).into_iter().flat_map(|(.., group)| group);
    for (number, change) in (1..).zip(ordered) {
        page.element("h3", &format!("{number}. {}: {}", change.subject, change.to));
        let saves = known(&change.saves_per_month).text(among_today(answer));
        page.element(
            "p",
            &format!("Saves {saves} per month, {}. Today: {}.", assumed_changes(answer, change), change.from),
        );
        let mut lines = Vec::new();
        let mut object = "";
        for edit in &change.edits {
            if edit.object != object {
                lines.push(edit.object.clone());
                object = &edit.object;
            }
            lines.extend(diff(edit).into_iter().map(|line| format!("  {line}")));
        }
        page.raw(&format!("<pre class=\"diff\">{}</pre>\n", text(&lines.join("\n"))));
        if let Some(risk) = &change.risk {
            page.element("p class=\"note\"", &format!("Needs: {}.", risk.needs));
        }
    }
}

fn costs(page: &mut Html, answer: &Recommendation) {
    let rows = comparison(answer);
    if rows.is_empty() {
        return;
    }
    page.element("h2", "Effect on cost and service");
    let text = if answer.is_change() { "Recommended" } else { "Best tried" };
    let rows = Rows::new(rows);
    page.add_table(
        rows.text("metric", |row| row.0.clone()).text("today", |row| row.1.clone()).text(text, |row| row.2.clone()),
        FILE,
    );
    let objectives = Rows::new(answer.limits.iter().filter_map(|limit| Some((limit, limit.met?))))
        .text(format!("met, of {}", counted(answer.effort.confirmed_with, "run", "runs")), |(limit, _)| &limit.name)
        .text("today", |(_, (before, _))| before.to_string())
        .text(text, |(_, (_, after))| after.to_string())
        .text("result", |(limit, _)| if limit.kept { "ok" } else { "violated" })
        .table();
    if !objectives.is_empty() {
        page.element("h2", "Objectives");
    }
    page.add_table(objectives, FILE);
}

fn robustness(page: &mut Html, answer: &Recommendation) {
    if answer.robustness.is_empty() {
        return;
    }
    page.element("h2", "Stress tests");
    let verdict =
        |test: &Robustness| test.why.as_ref().map_or_else(|| "holds".to_owned(), |why| format!("fails: {why}"));
    let table = Rows::new(&answer.robustness)
        .text("when", |test| &test.when)
        .text("cost vs today", |test| test.relative.as_ref().map(|relative| signed_percent(relative.mean)))
        .text("result", |test| verdict(test));
    page.add_table(table, FILE);
}

fn curves(page: &mut Html, answer: &Recommendation) {
    page.element("h2", "Settings tried");
    page.element(
        "p class=\"note\"",
        "Each dot is a setting that was tried, including settings that miss objectives. Ring: today. Solid dot: recommended.",
    );
    page.raw("<div class=\"curves\">\n");
    let waits = |tried: &Tried| tried.pending_p99;
    scatter(page, answer, ("pod wait for a node, p99", Measure::Seconds), &waits);
    let evictions = |tried: &Tried| Some(tried.evictions);
    scatter(page, answer, ("pods evicted", Measure::Count), &evictions);
    answer.commitments.iter().for_each(|this_commitment| commitment(page, answer, this_commitment));
    page.raw("</div>\n");
}

/// The frame of a drawing with its ticks. Of the upright axis 0 is at the bottom.
fn frame(page: &mut Html, x: &Axis<'_>, y: &Axis<'_>) {
    let ticks = x.ticks();
    for (ordinal, (value, label)) in ticks.iter().enumerate() {
        let at = along(x, *value);
        page.raw(&format!(
            "<line class=\"grid\" x1=\"{at:.1}\" y1=\"{ABOVE}\" x2=\"{at:.1}\" y2=\"{:.1}\"/>",
            HEIGHT - BELOW
        ));
        // The last label ends where the drawing does, however long it is.
        let is_at_edge = ordinal + 1 == ticks.len() && at > WIDTH - 2.0 * RIGHT;
        let (anchor, at) = if is_at_edge { ("end", WIDTH) } else { ("middle", at) };
        page.raw(&format!(
            "<text class=\"axis\" text-anchor=\"{anchor}\" x=\"{at:.1}\" y=\"{:.1}\">{}</text>\n",
            HEIGHT - BELOW + 18.0,
            text(label)
        ));
    }
    for (value, label) in y.ticks() {
        let at = up(y, value);
        page.raw(&format!(
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\"/>",
            WIDTH - RIGHT
        ));
        page.raw(&format!(
            "<text class=\"axis\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
            LEFT - 6.0,
            at + 4.0,
            text(&label)
        ));
    }
}

fn along(x: &Axis<'_>, value: f64) -> f64 {
    LEFT + x.share(value) * (WIDTH - RIGHT - LEFT)
}

fn up(y: &Axis<'_>, value: f64) -> f64 {
    HEIGHT - BELOW - y.share(value) * (HEIGHT - BELOW - ABOVE)
}

fn open(page: &mut Html, caption: &str) {
    page.raw(&format!("<figure><figcaption>{}</figcaption>\n", text(caption)));
    page.raw(&format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n", text(caption)));
}

/// Cost against something else, a dot for each setting that was tried.
fn scatter(
    page: &mut Html,
    answer: &Recommendation,
    (name, measure): (&str, Measure<'_>),
    of: &dyn Fn(&Tried) -> Option<f64>,
) {
    let points: Vec<(f64, f64, &str)> =
        answer.tried.iter().filter_map(|tried| Some((tried.cost_per_month, of(tried)?, tried.role.as_str()))).collect();
    if points.len() < 2 {
        return;
    }
    let x = Axis::over(among_today(answer), points.iter().map(|point| point.0));
    let y = Axis::over(measure, points.iter().map(|point| point.1));
    open(page, &format!("Cost per month and {name}"));
    frame(page, &x, &y);
    // Those that have a name last, so that nothing covers them.
    for named in [false, true] {
        for (cost, value, role) in points.iter().filter(|point| point.2.is_empty() != named) {
            let class = if role.is_empty() { "other" } else { role };
            let radius = if named { 7 } else { 4 };
            let (cx, cy) = (along(&x, *cost), up(&y, *value));
            page.raw(&format!("<circle class=\"{class}\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"{radius}\"/>"));
            if named {
                let (anchor, at) = if cx > WIDTH / 2.0 { ("end", cx - 11.0) } else { ("start", cx + 11.0) };
                page.raw(&format!(
                    "<text class=\"mark\" text-anchor=\"{anchor}\" x=\"{at:.1}\" y=\"{:.1}\">{role}</text>\n",
                    cy - 8.0
                ));
            }
        }
    }
    page.raw("</svg></figure>\n");
}

/// What a month costs by how much is committed.
fn commitment(page: &mut Html, answer: &Recommendation, family_curve: &FamilyCurve) {
    let hourly = Measure::Money { currency: &answer.currency, largest: family_curve.best_per_hour };
    let x = Axis::over(hourly, family_curve.curve.iter().map(|point| point.per_hour));
    let costs = family_curve.curve.iter().map(|point| point.cost_per_month).chain([family_curve.best_cost_per_month]);
    let y = Axis::over(among_today(answer), costs);
    open(page, &format!("{} On-Demand: monthly cost by hourly commitment (1 year, no upfront)", family_curve.family));
    frame(page, &x, &y);
    let places: Vec<String> = family_curve
        .curve
        .iter()
        .map(|point| format!("{:.1},{:.1}", along(&x, point.per_hour), up(&y, point.cost_per_month)))
        .collect();
    page.raw(&format!("<polyline class=\"curve\" points=\"{}\"/>\n", places.join(" ")));
    page.raw(&format!(
        "<circle class=\"recommended\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"6\"/>",
        along(&x, family_curve.best_per_hour),
        up(&y, family_curve.best_cost_per_month)
    ));
    page.raw("</svg></figure>\n");
}

fn tried(page: &mut Html, answer: &Recommendation) {
    let what = |tried: &Tried| {
        if tried.changes.is_empty() { "today".to_owned() } else { tried.changes.join("; ") }
    };
    let table = Rows::new(answer.tried.iter().take(ROWS))
        .text("setting", |tried| what(tried))
        .number("cost per month", |tried| money(answer, tried.cost_per_month))
        .number("pod wait, p99", |tried| tried.pending_p99.map(Figure::seconds))
        .number("evictions", |tried| Figure::decimals(tried.evictions, 1))
        .number("seeds", |tried| tried.seeds.to_string());
    page.add_table(table, FILE);
}

#[cfg(test)]
mod tests {
    use super::{Axis, Html, OWN_STYLE, STYLE, frame};
    use crate::report::format::Measure;

    #[test]
    fn labels_stay_within_drawing_and_columns() {
        let mut page = Html::new();
        let dollars = Measure::Money { currency: "USD", largest: 1_000.0 };
        frame(&mut page, &Axis::new(dollars, 900.0, 1_050.41), &Axis::new(Measure::Count, 0.0, 9.0));
        let page = page.finish();
        assert!(page.contains("text-anchor=\"end\" x=\"480.0\" y=\"274.0\">$1,050</text>"), "{page}");
        assert!(!STYLE.contains("min-width: 560px") && OWN_STYLE.contains("minmax(min(100%, 24rem), 1fr)"));
    }
}

//! `backtest.html`: what agrees and what does not, recorded and simulated curves over each other.

use jiff::Timestamp;

use super::backtest_table::{figures, workload_header, workload_row};
use super::backtest_words::{error, judged_time, links, sentences, swapped, variant_words};
use super::tally;
use crate::backtest::figures::Window;
use crate::backtest::workloads::Curve;
use crate::backtest::{Answer, Findings, TypeHours, Verdict};
use crate::report::axis::Axis;
use crate::report::format::{Measure, counted, money};
use crate::report::page::{Html, VERDICT_STYLE, begin, sentence, text};

/// Workloads whose curves are drawn.
const DRAWN_MAX: usize = 12;
/// Points of a curve: more cannot be seen on a page.
const POINTS_MAX: usize = 600;
/// Instance types that are told one by one.
const TYPES_MAX: usize = 10;
/// Labels below a curve at most.
const LABELS_MAX: i64 = 6;
const HEIGHT: f64 = 190.0;
const BELOW: f64 = 26.0;
const TOP: f64 = 8.0;
/// Room for labels at the left, in percent of the width.
const LEFT: f64 = 7.0;

const OWN_STYLE: &str = "\
.over { margin: 1.4rem 0; overflow-x: auto; }
.over figcaption { color: var(--ink); font-size: 0.95rem; margin-bottom: 0.3rem; }
.over > svg { min-width: 560px; overflow: visible; }
.over .grid { stroke: var(--line); }
.over .seeds { fill: var(--simulated); fill-opacity: 0.22; }
.over .mean { fill: none; stroke: var(--simulated); stroke-width: 1.6; vector-effect: non-scaling-stroke; }
.over .observed { fill: none; stroke: var(--ink); stroke-width: 1.4; vector-effect: non-scaling-stroke; }
.key i { display: inline-block; width: 1.4em; height: 0; border-top: 3px solid var(--ink); vertical-align: middle; margin: 0 0.3em 0 1em; }
.key i.mean { border-color: var(--simulated); }
.key i.seeds { border-top-width: 0.8em; border-color: var(--simulated); opacity: 0.3; }
.scroll th.figure { white-space: normal; max-width: 8rem; }
td.agrees { color: var(--good); } td.differs { color: var(--bad); font-weight: 600; }
:root { --simulated: #0969da; }
@media (prefers-color-scheme: dark) { :root { --simulated: #58a6ff; } }
";

/// The page. `command` is the command line that repeats it; curves are of `window` of the record, nodes first.
pub fn render(answer: &Answer, curves: &[Curve], window: Window, command: &str) -> String {
    let mut page = Html::new();
    begin(
        &mut page,
        &format!("{}: forecast vs actual", answer.scenario),
        &[VERDICT_STYLE, OWN_STYLE, tally::STYLE].concat(),
        &[],
    );
    page.element("h1", &format!("{}: forecast against record", answer.scenario));
    let seeds = counted(answer.replications, "seed", "seeds");
    let about = format!(
        "Evaluated: {}; policy {}, {seeds}; recorded in {}",
        judged_time(answer),
        answer.policy,
        answer.recorded
    );
    page.element("p class=\"faint\"", &about);
    let mut words = sentences(answer);
    page.element("p class=\"verdict\"", &words.remove(0));
    // That a record judges what it has set up is never folded.
    if answer.in_sample && !words.is_empty() {
        page.element("p class=\"missed\"", &words.remove(0));
    }
    tally::strip(&mut page, answer);
    page.fold("in-words", "In words", &counted(words.len() as u64, "sentence", "sentences"));
    words.iter().for_each(|word| page.element("p", word));
    page.end_fold();
    page.warnings(answer.warnings.lines());
    bill(&mut page, answer);
    if let Some((nodes, others)) = curves.split_first() {
        page.element("h2", "Nodes");
        page.raw("<p class=\"note key\"><i></i>recorded<i class=\"mean\"></i>mean of the seeds<i class=\"seeds\"></i>all seeds</p>\n");
        drawing(&mut page, nodes, window, answer);
        types(&mut page, answer);
        all_figures(&mut page, answer);
        all_workloads(&mut page, answer, others, window);
    }
    ablation(&mut page, answer);
    page.raw("</main>\n<footer>\n");
    page.element("p class=\"note\"", &format!("{} {}", answer.program, answer.program_version));
    page.raw(&format!("<p class=\"note\"><code>{}</code></p>\n</footer>\n</body>\n</html>\n", text(command)));
    page.finish()
}

/// Rows under their first one as the header; the last column is a verdict.
fn judged(page: &mut Html, rows: &[Vec<String>]) {
    let Some((header, rows)) = rows.split_first() else { return };
    page.raw("<div class=\"scroll\"><table>\n<thead><tr>");
    for (column, name) in header.iter().enumerate() {
        let class = if column == 0 { "" } else { " class=\"figure\"" };
        page.raw(&format!("<th{class}>{}</th>", text(&sentence(name))));
    }
    page.raw("</tr></thead>\n<tbody>\n");
    for row in rows {
        page.raw("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let verdict = match cell.as_str() {
                word if word == Verdict::Agrees.as_str() => " agrees",
                word if word == Verdict::Differs.as_str() => " differs",
                _ => "",
            };
            let class = if column == 0 { String::new() } else { format!(" class=\"figure{verdict}\"") };
            page.raw(&format!("<td{class}>{}</td>", text(cell)));
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody>\n</table></div>\n");
}

fn all_figures(page: &mut Html, answer: &Answer) {
    page.element("h2", "Figures");
    let note = "Simulated: the mean of the seeds and, in brackets, where one more seed would lie in 95 of 100 cases. Deviations: how far \
                off the simulation is, in units of that spread. A figure differs if it is two or more off and its error reaches the tolerance: \
                10% of node-hours, replicas and boots, 15% of the bill, 25% of counts and waits.";
    page.element("p class=\"note\"", note);
    judged(page, &figures(answer));
}

fn all_workloads(page: &mut Html, answer: &Answer, curves: &[Curve], window: Window) {
    if answer.findings.workloads.is_empty() {
        return;
    }
    page.element("h2", "Replicas of each workload");
    let note = "Off by: sum of absolute differences between the mean simulated and the recorded curve, minute by minute, as a share of the recorded sum (WAPE).";
    page.element("p class=\"note\"", note);
    let mut rows = vec![workload_header()];
    rows.extend(answer.findings.workloads.iter().map(workload_row));
    judged(page, &rows);
    let (moving, flat): (Vec<&Curve>, Vec<&Curve>) = curves.iter().partition(|curve| moves(curve));
    for curve in moving.iter().take(DRAWN_MAX) {
        drawing(page, curve, window, answer);
    }
    let left = flat.len() + moving.len().saturating_sub(DRAWN_MAX);
    if left > 0 {
        let more = counted(left as u64, "workload is", "workloads are");
        let why = if moving.len() > DRAWN_MAX { "" } else { ", for they never change" };
        page.element("p class=\"note\"", &format!("The curves of {more} not drawn{why}; the table has all."));
    }
}

/// Whether anything of a curve changes, in the record or in a simulation.
fn moves(curve: &Curve) -> bool {
    let mut all = curve.observed.iter().chain(curve.band.iter().flat_map(|(low, high)| [low, high]));
    let Some(first) = all.next() else { return false };
    all.any(|value| (value - first).abs() > 1e-9)
}

/// Hours of instance types: which of a size it is, is luck of prices, and says why hours of one size cost what they do.
fn types(page: &mut Html, answer: &Answer) {
    let all = &answer.findings.types;
    if all.is_empty() {
        return;
    }
    let hours = |hours: f64| format!("{hours:.1}");
    let mut rows = vec![["hours a day of", "recorded", "simulated"].map(str::to_owned).to_vec()];
    rows.extend(all.iter().take(TYPES_MAX).map(|type_hours| {
        vec![type_hours.instance_type.clone(), hours(type_hours.observed), hours(type_hours.simulated)]
    }));
    if let Some(rest) = all.get(TYPES_MAX..).filter(|rest| !rest.is_empty()) {
        let sum = |of: fn(&TypeHours) -> f64| hours(rest.iter().map(of).sum());
        let others = counted(rest.len() as u64, "other type", "other types");
        rows.push(vec![others, sum(|item| item.observed), sum(|item| item.simulated)]);
    }
    judged(page, &rows);
    let note = "Not evaluated: which instance types were used within a size depends on that day's Spot prices, and only the prices of used pools were recorded.";
    page.element("p class=\"note\"", note);
}

/// How figures that anything moves come out with each part of the record.
fn ablation(page: &mut Html, answer: &Answer) {
    if answer.ablation.is_empty() {
        return;
    }
    page.element("h2", "Sources of error");
    page.element("p class=\"note\"", "Error of each metric when parts of the model are replaced with recorded data.");
    let sets: Vec<(String, &Findings)> = std::iter::once((swapped(&answer.swapped_in), &answer.findings))
        .chain(answer.ablation.iter().map(|variant| (variant_words(variant), &variant.findings)))
        .collect();
    let mut rows = vec![vec!["error of".to_owned()]];
    rows[0].extend(sets.iter().map(|(name, _)| name.clone()));
    for figure in &answer.findings.figures {
        let of = |found: &Findings| {
            let same = found.figures.iter().find(|other| other.name == figure.name);
            error(same.and_then(|same| same.judged.error))
        };
        let mut row = vec![figure.label.clone()];
        row.extend(sets.iter().map(|(_, found)| of(found)));
        rows.push(row);
    }
    judged(page, &rows);
}

/// The bill beside the simulated one, and whose lines it is made of.
fn bill(page: &mut Html, answer: &Answer) {
    let Some(bill) = &answer.bill else { return };
    page.element("h2", "The bill");
    let parts: Vec<String> = bill
        .rules
        .iter()
        .map(|part| {
            format!(
                "{} by {} ({})",
                counted(part.lines, "line", "lines"),
                part.name,
                money(&bill.currency, part.amount)
            )
        })
        .collect();
    page.element(
        "p class=\"note\"",
        &format!(
            "{}: {}; {} of others. The cluster's lines sum to {} unblended. All amounts cover the evaluated period. Each step adds what only the simulation has or subtracts what only the bill has.",
            bill.files.join(", "),
            parts.join(", "),
            money(&bill.currency, bill.others),
            money(&bill.currency, bill.unblended)
        ),
    );
    judged(page, &links(bill));
    let left_out: Vec<String> =
        bill.left_out.iter().map(|part| format!("{} {}", part.name, money(&bill.currency, part.amount))).collect();
    if !left_out.is_empty() {
        page.element("p class=\"note\"", &format!("In no sum: {}.", left_out.join(", ")));
    }
}

/// Recorded and simulated curves over each other.
fn drawing(page: &mut Html, curve: &Curve, window: Window, answer: &Answer) {
    let high = curve.observed.iter().copied().chain(curve.band.iter().map(|pair| pair.1)).fold(1.0, f64::max);
    let (base, inner) = (HEIGHT - BELOW, 100.0 - LEFT);
    let y = |value: f64| TOP + (1.0 - value / high) * (base - TOP);
    page.raw("<figure class=\"over\">\n<figcaption>");
    page.element("strong", &curve.name);
    page.raw("</figcaption>\n");
    let label = text(&format!("{}: recorded and simulated", curve.name));
    page.raw(&format!(
        "<svg class=\"fixed\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{label}\" font-size=\"13\">\n"
    ));
    for (tick, label) in Axis::new(Measure::Count, 0.0, high).ticks() {
        let at = y(tick);
        page.raw(&format!("<line class=\"grid\" x1=\"{LEFT}%\" y1=\"{at:.1}\" x2=\"100%\" y2=\"{at:.1}\"/>\n"));
        let below = at + 4.0;
        page.raw(&format!("<text x=\"{:.1}%\" y=\"{below:.1}\" text-anchor=\"end\">{label}</text>\n", LEFT - 1.0));
    }
    for (place, words) in instants(window, answer) {
        let at = LEFT + place * inner;
        page.raw(&format!(
            "<text x=\"{at:.2}%\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
            HEIGHT - 6.0,
            text(&words)
        ));
    }
    page.raw(&format!(
        "<svg x=\"{LEFT}%\" y=\"0\" width=\"{inner}%\" height=\"{HEIGHT}\" viewBox=\"0 0 1000 {HEIGHT}\" preserveAspectRatio=\"none\">\n"
    ));
    let places = places(curve.observed.len());
    let x = |place: usize| place as f64 / (curve.observed.len().max(2) - 1) as f64 * 1_000.0;
    let points = |value: &dyn Fn(usize) -> f64| -> Vec<String> {
        places.iter().map(|&place| format!("{:.1},{:.1}", x(place), y(value(place)))).collect()
    };
    let at = |values: &[f64], place: usize| values.get(place).copied().unwrap_or(0.0);
    let band = |place: usize| curve.band.get(place).copied().unwrap_or((0.0, 0.0));
    let mut around = points(&|place| band(place).0);
    around.extend(points(&|place| band(place).1).into_iter().rev());
    page.raw(&format!("<polygon class=\"seeds\" points=\"{}\"/>\n", around.join(" ")));
    page.raw(&format!(
        "<polyline class=\"mean\" points=\"{}\"/>\n",
        points(&|place| at(&curve.simulated, place)).join(" ")
    ));
    page.raw(&format!(
        "<polyline class=\"observed\" points=\"{}\"/>\n",
        points(&|place| at(&curve.observed, place)).join(" ")
    ));
    page.raw("</svg>\n</svg>\n</figure>\n");
}

/// Which points of a curve are drawn.
fn places(length: usize) -> Vec<usize> {
    let step = length.div_ceil(POINTS_MAX).max(1);
    (0..length).step_by(step).collect()
}

/// Round instants of the window, on the hour or at midnight: how far along they lie, and in words.
fn instants(window: Window, answer: &Answer) -> Vec<(f64, String)> {
    const STEPS: [i64; 11] = [600, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600];
    let Ok(start) = answer.judged_from.parse::<Timestamp>() else { return Vec::new() };
    let (from, length) = (start.as_second(), window.length().as_secs().max(1));
    let step = STEPS.into_iter().find(|step| length / step <= LABELS_MAX).unwrap_or(length / LABELS_MAX);
    let form = if step >= 86_400 {
        "%-d %b"
    } else if length >= 86_400 {
        "%-d %b %H:%M"
    } else {
        "%H:%M"
    };
    let first = from + (-from).rem_euclid(step);
    let mut labels = Vec::new();
    for second in (first..from + length).step_by(usize::try_from(step).unwrap_or(1)) {
        let place = (second - from) as f64 / length as f64;
        // A label at an end would reach over the edge.
        if place <= 0.97
            && let Ok(at) = Timestamp::from_second(second)
        {
            labels.push((place, at.strftime(form).to_string()));
        }
    }
    labels
}

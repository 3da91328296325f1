//! `report.html`: one page that needs nothing else, the answers first.

mod answers;
mod churn;
pub(crate) mod data;
mod html;
mod sections;

use super::plots::Plots;
use super::summary::Summary;
use crate::simulation::Outcome;
pub(crate) use html::{Column, Html, text};

/// Colours and shapes that every page shares.
pub(crate) const STYLE: &str = include_str!("page/style.css");
/// The look of charts, of the replay and of what moves them.
pub(crate) const CHART_STYLE: &str = include_str!("page/charts.css");
/// What every page with charts runs.
pub(crate) const CHART_SCRIPT: [&str; 2] = [include_str!("page/core.js"), include_str!("page/charts.js")];
/// What the page of a run has beside its charts.
const RUN_SCRIPT: [&str; 3] =
    [include_str!("page/replay.js"), include_str!("page/strips.js"), include_str!("page/decisions.js")];

/// The page of a run. `command` is the command line that repeats it.
pub fn render(outcome: &Outcome, summary: &Summary, plots: &Plots, command: &str) -> String {
    let about = &summary.about;
    let mut page = Html::new();
    begin(&mut page, &format!("{}, policy {}", about.scenario, about.policy), "");
    sections::heading(&mut page, summary);
    answers::answers(&mut page, summary);
    sections::warnings(&mut page, summary);
    sections::timeline(&mut page, outcome, plots);
    sections::waiting(&mut page, summary);
    sections::requests(&mut page, summary);
    sections::queues(&mut page, summary);
    sections::replicas(&mut page, summary);
    sections::scaling(&mut page, summary);
    sections::cost(&mut page, summary);
    sections::bill(&mut page, outcome);
    sections::nodes(&mut page, outcome, summary);
    churn::section(&mut page, summary);
    sections::assumptions(&mut page, summary);
    page.raw("</main>\n");
    sections::footer(&mut page, summary, command);
    script(&mut page, &data::of(outcome), &[&CHART_SCRIPT[..], &RUN_SCRIPT[..]].concat());
    page.raw("</body>\n</html>\n");
    page.finish()
}

/// The head of a page with charts, up to the beginning of its content.
pub(crate) fn begin(page: &mut Html, title: &str, own_style: &str) {
    page.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n");
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n");
    page.raw("<meta name=\"color-scheme\" content=\"light dark\"/>\n");
    page.raw(&format!("<title>{} \u{2013} nodecast</title>\n", text(title)));
    page.raw(&format!("<style>\n{STYLE}{CHART_STYLE}{own_style}</style>\n</head>\n<body>\n<main>\n"));
}

/// The data of a page and what is done with it.
pub(crate) fn script(page: &mut Html, data: &str, parts: &[&str]) {
    page.raw(&format!("<script type=\"application/json\" id=\"data\">{data}</script>\n"));
    // A function of its own keeps the script's names out of the page's.
    page.raw(&format!("<script>\n(() => {{\n\"use strict\";\n{}}})();\n</script>\n", parts.concat()));
}

//! `report.html`: one page that needs nothing else, the answers first.

mod churn;
mod html;
mod sections;

use super::plots::Plots;
use super::summary::Summary;
use crate::simulation::Outcome;
pub(crate) use html::{Column, Html, text};

/// Colours and shapes that every page shares.
pub(crate) const STYLE: &str = include_str!("page/style.css");

/// The page of a run. `command` is the command line that repeats it.
pub fn render(outcome: &Outcome, summary: &Summary, plots: &Plots, command: &str) -> String {
    let about = &summary.about;
    let title = format!("{}, policy {}", about.scenario, about.policy);
    let mut page = Html::new();
    page.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n");
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n");
    page.raw("<meta name=\"color-scheme\" content=\"light dark\"/>\n");
    page.raw(&format!("<title>{} \u{2013} nodecast</title>\n", text(&title)));
    page.raw(&format!("<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"));
    sections::heading(&mut page, summary);
    sections::answers(&mut page, summary);
    sections::objectives(&mut page, summary);
    sections::warnings(&mut page, summary);
    sections::plots(&mut page, plots);
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
    page.raw("</body>\n</html>\n");
    page.finish()
}

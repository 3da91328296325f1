//! The table that `sweep` prints, and `sweep.csv`.

use super::value;
use crate::experiment::figures::{FIGURES, Figure, find};
use crate::experiment::sweep::{MET_IN, SettingResult, Sweep};
use crate::report::format::{counted, percent, span};

/// Settings that are printed; the page and the CSV have all.
const ROWS_MAX: usize = 30;

/// The table of `sweep`: the settings, those of the front marked, then the answer.
pub fn table(sweep: &Sweep) -> String {
    let about = &sweep.about;
    let settings = counted(sweep.results.len() as u64, "setting", "settings");
    let replications = counted(about.replications, "replication", "replications");
    let mut lines = vec![
        format!("{}: {settings} of {replications}, seeds from {}", about.scenario, about.first_seed),
        format!(
            "{} from {} in {}, prices of {}",
            span(about.duration_seconds),
            about.start,
            about.region,
            about.price_date
        ),
        String::new(),
    ];
    lines.extend(settings_table(sweep));
    lines.push(String::new());
    lines.push(answer(sweep));
    if !sweep.warnings.is_empty() {
        lines.push(format!("{}, in the report", counted(sweep.warnings.len() as u64, "warning", "warnings")));
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The figures of a row of the front: cost, cost per month, the latency chosen, and two that go with them.
pub(super) fn columns(sweep: &Sweep) -> Vec<(usize, &'static Figure)> {
    let mut names = vec!["cost", "cost_per_month", sweep.latency.as_str(), "nodes_mean", "evictions"];
    names.dedup();
    names.into_iter().filter_map(find).collect()
}

/// The settings: all of them in their order, or, if there are many, the front from cheap to dear and the cheapest of the rest.
fn settings_table(sweep: &Sweep) -> Vec<String> {
    let mut order: Vec<usize> = (0..sweep.results.len()).collect();
    if order.len() > ROWS_MAX {
        order = sweep.front.clone();
        let mut rest: Vec<usize> = (0..sweep.results.len()).filter(|number| !sweep.front.contains(number)).collect();
        rest.sort_by(|a, b| cost(sweep, *a).total_cmp(&cost(sweep, *b)).then(a.cmp(b)));
        order.extend(rest);
    }
    let with = |mut cells: Vec<String>, last: &str| {
        cells.push(last.to_owned());
        cells
    };
    let mut rows = vec![with(header(sweep), "front")];
    for number in order.iter().copied().take(ROWS_MAX) {
        let Some(result) = sweep.results.get(number) else { continue };
        let mark = if sweep.front.contains(&number) { "*" } else { "" };
        rows.push(with(row(sweep, result), mark));
    }
    let mut lines = super::aligned(&rows);
    let latency = latency_label(sweep);
    lines.push(format!("* on the front: none is both cheaper and quicker, by cost and by {latency}"));
    if order.len() > ROWS_MAX {
        let left_out = counted((order.len() - ROWS_MAX) as u64, "setting is", "settings are");
        lines.push(format!("{left_out} not shown here; sweep.csv and the report have all"));
    }
    lines
}

/// The mean cost of a result; infinite where there is none, so that it comes last.
fn cost(sweep: &Sweep, number: usize) -> f64 {
    let figure = find("cost").and_then(|(position, _)| sweep.results.get(number)?.figures.get(position)?.as_ref());
    figure.map_or(f64::INFINITY, |mean| mean.mean)
}

/// The name of the latency that cost is held against.
pub(super) fn latency_label(sweep: &Sweep) -> &str {
    find(&sweep.latency).map_or(sweep.latency.as_str(), |(_, figure)| figure.label)
}

/// Short names of the paths: their last key, whole where two would be alike.
pub(super) fn short_paths(sweep: &Sweep) -> Vec<String> {
    let last = |path: &str| path.rsplit(['.', ']']).find(|part| !part.is_empty()).unwrap_or(path).to_owned();
    let short: Vec<String> = sweep.paths.iter().map(|path| last(path)).collect();
    let alike = |name: &str| short.iter().filter(|other| *other == name).count() > 1;
    sweep.paths.iter().zip(&short).map(|(path, name)| if alike(name) { path.clone() } else { name.clone() }).collect()
}

/// The heading of a table of settings.
pub(super) fn header(sweep: &Sweep) -> Vec<String> {
    let mut cells = vec!["policy".to_owned()];
    cells.extend(short_paths(sweep));
    cells.extend(columns(sweep).into_iter().map(|(_, figure)| figure.label.to_owned()));
    cells.push("objectives".to_owned());
    cells
}

/// A setting in a table.
pub(super) fn row(sweep: &Sweep, result: &SettingResult) -> Vec<String> {
    let mut cells = vec![result.policy.clone()];
    cells.extend(result.values.iter().cloned());
    cells.extend(columns(sweep).into_iter().map(|(position, figure)| {
        let mean = result.figures.get(position).and_then(Option::as_ref);
        mean.map_or_else(|| "\u{2013}".to_owned(), |mean| value(figure, &sweep.about.currency, mean.mean))
    }));
    cells.push(
        match result.meets_objectives {
            Some(true) => "met",
            Some(false) => "missed",
            None => "\u{2013}",
        }
        .to_owned(),
    );
    cells
}

/// The cheapest setting that meets all objectives, in a sentence.
pub fn answer(sweep: &Sweep) -> String {
    let judged = sweep.results.iter().any(|result| result.meets_objectives.is_some());
    let Some(result) = sweep.cheapest_meeting_objectives.and_then(|number| sweep.results.get(number)) else {
        return if judged {
            format!("No setting meets all objectives in {} of its runs.", percent(MET_IN))
        } else {
            "The scenario states no objectives, so none is the cheapest that meets them.".to_owned()
        };
    };
    let setting: Vec<String> =
        sweep.paths.iter().zip(&result.values).map(|(path, value)| format!("{path}={value}")).collect();
    let cost = find("cost").and_then(|(position, figure)| {
        let mean = result.figures.get(position)?.as_ref()?.mean;
        Some(format!(" at {}", value(figure, &sweep.about.currency, mean)))
    });
    format!(
        "Cheapest that meets all objectives: policy {}, {}{}.",
        result.policy,
        setting.join(", "),
        cost.unwrap_or_default()
    )
}

/// `sweep.csv`: one line for each setting under each policy, values and means as exact decimals.
///
/// # Errors
/// Whatever `output` returns.
pub fn csv(sweep: &Sweep, output: &mut dyn std::io::Write) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_writer(output);
    let mut header = vec!["setting".to_owned(), "policy".to_owned()];
    header.extend(sweep.paths.iter().cloned());
    header.extend(FIGURES.iter().map(|figure| figure.name.to_owned()));
    header.extend(["meets_objectives", "on_front"].map(str::to_owned));
    writer.write_record(&header)?;
    for (number, result) in sweep.results.iter().enumerate() {
        let mut row = vec![result.setting.to_string(), result.policy.clone()];
        row.extend(result.values.iter().cloned());
        row.extend(result.figures.iter().map(|mean| mean.map_or_else(String::new, |mean| mean.mean.to_string())));
        row.push(result.meets_objectives.map_or_else(String::new, |met| met.to_string()));
        row.push(sweep.front.contains(&number).to_string());
        writer.write_record(&row)?;
    }
    writer.flush()
}

//! The table that `sweep` prints, and `sweep.csv`.

use nodecast_model::text::cells::csv_cell;

use super::table::{difference_cells, mean_cells};
use super::verdict::{NO_INTERVAL, left_undone};
use super::warnings;
use crate::figures::{FIGURES, Figure, find};
use crate::points::MET_IN;
use crate::report::columns::printed;
use crate::report::format::{counted, money_in_short, objective, percent, span, warm_up};
use crate::report::page::sentence;
use crate::sweep::{SettingResult, Sweep, Undone};

/// Settings that are printed; the page and the CSV have all.
const ROWS_MAX: usize = 30;

/// The answer of `sweep`, then the table of settings, those of the front marked.
pub fn table(sweep: &Sweep) -> String {
    table_within(sweep, None, true)
}

/// The same where lines have no more than `width` characters. Columns that have no room are left out, the least important first; where
/// the table is `wide` they stand below one another.
pub fn table_within(sweep: &Sweep, width: Option<usize>, wide: bool) -> String {
    let about = &sweep.about;
    let settings = counted(sweep.results.len() as u64, "setting", "settings");
    let replications = counted(about.replications, "replication", "replications");
    let most = if sweep.is_sequential() { "at most " } else { "" };
    let mut lines = answer(sweep);
    if let Some(first) = lines.first_mut() {
        *first = format!("{}: {first}", about.scenario);
    }
    lines.extend([
        String::new(),
        format!("{settings} of {most}{replications}, seeds from {}", about.first_seed),
        format!(
            "{} from {} in {}, prices of {}",
            span(about.duration_seconds),
            about.start,
            about.region,
            about.price_date
        ),
    ]);
    lines.extend(warm_up(about.warm_up_seconds).map(|note| note.replace("; ", ";\n  ")));
    lines.push(String::new());
    lines.extend(settings_table(sweep, width, wide));
    warnings(&sweep.warnings, &mut lines);
    printed(&lines, width)
}

/// The figures of a row of the front: replicas missing, cost, cost per month, the latency chosen, who waited and how long on
/// average, and two that go with them.
pub(super) fn columns(sweep: &Sweep) -> Vec<(usize, &'static Figure)> {
    let all = [
        "unavailable_pod_minutes",
        "cost",
        "cost_per_month",
        sweep.latency.as_str(),
        "pending_mean",
        "pods_waited",
        "nodes_mean",
        "evictions",
    ];
    let mut names: Vec<&str> = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.into_iter().filter_map(find).collect()
}

/// Objectives that no figure of [`columns`] stands for: those on the waits of one workload or one priority.
pub(super) fn own_objectives(sweep: &Sweep) -> Vec<&str> {
    let all = sweep.results.first().map_or(&[][..], |result| result.objectives.as_slice());
    all.iter().map(|item| item.name.as_str()).filter(|name| find(name).is_none()).collect()
}

/// What an objective measures on average.
fn objective_cell(result: &SettingResult, name: &str) -> String {
    let this_objective = result.objectives.iter().find(|objective| objective.name == name);
    let mean =
        this_objective.and_then(|this_objective| Some(objective(&this_objective.unit, this_objective.mean?.mean)));
    mean.unwrap_or_else(|| "\u{2013}".to_owned())
}

/// The settings: all of them in their order, or, if there are many, the front from cheap to dear and the cheapest of the rest.
fn settings_table(sweep: &Sweep, width: Option<usize>, wide: bool) -> Vec<String> {
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
    let mut all = self::rows(sweep);
    for number in order.iter().copied().take(ROWS_MAX) {
        let mark = if sweep.front.contains(&number) { "*" } else { "" };
        rows.push(with(std::mem::take(&mut all[number]), mark));
    }
    let dropped = if wide { 0 } else { drop_columns(sweep, &mut rows, width) };
    // Policy and values say which setting a line is of.
    let mut lines = super::aligned_within(&rows, 1 + sweep.paths.len(), width);
    let latency = latency_label(sweep);
    lines.push(format!("* Pareto-optimal: no other setting is both cheaper and faster (mean cost, {latency})"));
    if dropped > 0 {
        lines.push(format!("{} not shown; --wide shows all", counted(dropped as u64, "column", "columns")));
    }
    if order.len() > ROWS_MAX {
        let left_out = counted((order.len() - ROWS_MAX) as u64, "setting is", "settings are");
        lines.push(format!("{left_out} not shown; see sweep.csv or the report"));
    }
    lines
}

/// Columns that give way, the least important first.
const GIVE_WAY: [&str; 7] =
    ["nodes_mean", "pods_waited", "pending_mean", "evictions", "unavailable_pod_minutes", "cost", "cost_per_month"];

/// Takes out columns until lines have no more than `width` characters; returns the number of columns taken out. The labels, the cost by
/// which settings are ranked, the latency, the objectives, and the verdict on cost stay.
fn drop_columns(sweep: &Sweep, rows: &mut [Vec<String>], width: Option<usize>) -> usize {
    let Some(width) = width else { return 0 };
    let first = 1 + sweep.paths.len();
    let mut names: Vec<&str> = columns(sweep).iter().map(|(_, figure)| figure.name).collect();
    let stays = [sweep.cost.as_str(), sweep.latency.as_str()];
    let before = names.len();
    for name in GIVE_WAY.into_iter().filter(|name| !stays.contains(name)) {
        if super::aligned_within(rows, first, None).iter().all(|line| line.chars().count() <= width) {
            break;
        }
        if let Some(at) = names.iter().position(|this_name| *this_name == name) {
            names.remove(at);
            rows.iter_mut().for_each(|row| drop(row.remove(first + at)));
        }
    }
    before - names.len()
}

/// The mean cost of a result; infinite where there is none, so that it comes last.
fn cost(sweep: &Sweep, number: usize) -> f64 {
    let figure = find(&sweep.cost).and_then(|(position, _)| sweep.results.get(number)?.figures.get(position)?.as_ref());
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
    cells.extend(own_objectives(sweep).into_iter().map(str::to_owned));
    cells.extend(["objectives", "cost vs cheapest"].map(str::to_owned));
    cells.extend(sweep.is_sequential().then(|| "seeds".to_owned()));
    cells
}

/// The cells of a row of each result; a figure is rounded alike in all of them.
pub(super) fn rows(sweep: &Sweep) -> Vec<Vec<String>> {
    let currency = &sweep.about.currency;
    let column = |(position, figure): (usize, &Figure)| {
        let means = sweep.results.iter().map(|result| result.figures.get(position).copied().flatten());
        mean_cells(figure, currency, &means.collect::<Vec<_>>())
    };
    let figures: Vec<Vec<String>> = columns(sweep).into_iter().map(column).collect();
    let against = against_cheapest(sweep);
    let results = sweep.results.iter().zip(against).enumerate();
    results
        .map(|(number, (result, against))| {
            let mut cells = vec![result.policy.clone()];
            cells.extend(result.values.iter().cloned());
            cells.extend(figures.iter().map(|column| column[number].clone()));
            cells.extend(own_objectives(sweep).into_iter().map(|name| objective_cell(result, name)));
            let met = match result.meets_objectives {
                Some(true) => "met",
                Some(false) => "missed",
                None => "\u{2013}",
            };
            cells.extend([met.to_owned(), against]);
            cells.extend(sweep.is_sequential().then(|| seeds_of(sweep, result).to_string()));
            cells
        })
        .collect()
}

/// How many seeds a setting got.
fn seeds_of(sweep: &Sweep, result: &SettingResult) -> u64 {
    result.knocked_out_after.unwrap_or(sweep.about.replications)
}

/// The difference of each setting's cost to the cheapest one's, or why it is not comparable.
fn against_cheapest(sweep: &Sweep) -> Vec<String> {
    let cell = |((number, result), difference): ((usize, &SettingResult), String)| {
        if !result.is_comparable() {
            let undone = |undone: &Undone| left_undone(&undone.figure, undone.mean, "lowest mean", undone.least);
            let parts: Vec<String> = result.undone.iter().map(undone).collect();
            return format!("not comparable: {}", parts.join(" and "));
        }
        if sweep.cheapest == Some(number) { "lowest mean".to_owned() } else { difference }
    };
    sweep.results.iter().enumerate().zip(differences(sweep)).map(cell).collect()
}

/// The difference of each setting's cost to the cheapest one's.
fn differences(sweep: &Sweep) -> Vec<String> {
    let paired: Vec<_> = sweep.results.iter().map(|result| result.against_cheapest.as_ref()).collect();
    let Some((_, cost)) = find(&sweep.cost) else { return vec![String::new(); paired.len()] };
    difference_cells(cost, &sweep.about.currency, &paired)
}

/// Settings that are named in a sentence.
const NAMED_MAX: usize = 4;

/// The cheapest setting in sentences, with those that are not told apart from it and those that cannot be compared.
pub fn answer(sweep: &Sweep) -> Vec<String> {
    let mut sentences = Vec::new();
    let (judged, meeting) = (sweep.is_judged(), sweep.cheapest_meeting_objectives.is_some());
    if judged && !meeting {
        let any = sweep.results.iter().any(|result| result.meets_objectives == Some(true));
        sentences.push(if any {
            "Every setting that meets all objectives leaves work unfinished.".to_owned()
        } else {
            format!("No setting meets all objectives in {} of its runs.", percent(MET_IN))
        });
    }
    let which = match (judged, meeting) {
        (true, true) => "cheapest that meets all objectives",
        (true, false) => "cheapest, ignoring objectives",
        (false, _) => "cheapest",
    };
    sentences.extend(cheapest(sweep, which));
    if !judged {
        let why = if sweep.states_objectives() {
            "No setting produced data for the scenario's objectives"
        } else {
            "The scenario has no objectives"
        };
        sentences.push(format!("{why}, so cheap settings may let pods and requests wait without limit."));
    }
    sentences.extend(undone(sweep));
    sentences.extend(knocked_out(sweep));
    if sweep.about.replications < 2 && sweep.results.len() > 1 {
        sentences.push(NO_INTERVAL.to_owned());
    }
    sentences
}

/// How many settings did not get all seeds.
fn knocked_out(sweep: &Sweep) -> Option<String> {
    let after: Vec<u64> = sweep.results.iter().filter_map(|result| result.knocked_out_after).collect();
    let (least, most) = (after.iter().min()?, after.iter().max()?);
    let span = if least == most { counted(*most, "seed", "seeds") } else { format!("{least} to {most} seeds") };
    let run: u64 = sweep.results.iter().map(|result| seeds_of(sweep, result)).sum();
    let all = sweep.about.replications * sweep.results.len() as u64;
    let settings = counted(after.len() as u64, "setting was", "settings were");
    Some(format!(
        "{settings} clearly worse than another after {span} and got no more, so their means are over fewer seeds: {run} of {all} simulations were run."
    ))
}

/// How many settings cannot be compared, and why.
fn undone(sweep: &Sweep) -> Option<String> {
    let (settings, cost) = match sweep.results.iter().filter(|result| !result.is_comparable()).count() {
        0 => return None,
        1 => ("1 setting leaves".to_owned(), "its cost is"),
        many => (format!("{many} settings leave"), "their costs are"),
    };
    let work = "unscheduled pods or unanswered requests that another setting does not";
    Some(format!("{settings} {work}: {cost} not comparable."))
}

/// Which setting is the cheapest, and which ones may be as well.
fn cheapest(sweep: &Sweep, which: &str) -> Vec<String> {
    let Some(result) = sweep.cheapest.and_then(|number| sweep.results.get(number)) else { return Vec::new() };
    let Some((position, _)) = find(&sweep.cost) else { return Vec::new() };
    let currency = &sweep.about.currency;
    let by = if sweep.cost == "cost" { "" } else { " per month" };
    let cost = result.mean(position).map_or_else(String::new, |mean| money_in_short(currency, mean) + by);
    let setting: Vec<String> =
        sweep.paths.iter().zip(&result.values).map(|(path, value)| format!("{path}={value}")).collect();
    let setting = format!("policy {}, {}", result.policy, setting.join(", "));
    if sweep.not_told_apart.is_empty() {
        return vec![format!("{}: {setting} at {cost}.", sentence(which))];
    }
    let names = short_paths(sweep);
    let several = sweep.results.iter().any(|other| other.policy != result.policy);
    let differences = differences(sweep);
    let rival = |number: &usize| {
        let other = sweep.results.get(*number)?;
        let policy = several.then(|| other.policy.clone());
        let values = names.iter().zip(&other.values).map(|(name, value)| format!("{name}={value}"));
        let by = differences.get(*number)?;
        Some(format!("{}, {by}", policy.into_iter().chain(values).collect::<Vec<_>>().join(" ")))
    };
    let mut rivals: Vec<String> = sweep.not_told_apart.iter().take(NAMED_MAX).filter_map(rival).collect();
    let more = sweep.not_told_apart.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        rivals.push(counted(more as u64, "other", "others"));
    }
    vec![
        format!("No setting is clearly the {which}. Lowest mean: {setting}, {cost}."),
        format!("Cost not significantly different: {}.", rivals.join("; ")),
    ]
}

/// Numbers of a CSV, those that are not there empty.
fn cells_of<const N: usize>(numbers: [Option<f64>; N]) -> [String; N] {
    numbers.map(|number| number.map_or_else(String::new, |number| number.to_string()))
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
    header.extend(own_objectives(sweep).into_iter().map(str::to_owned));
    header.extend(["meets_objectives", "on_front", "comparable"].map(str::to_owned));
    header.extend(["cost_low", "cost_high"].map(str::to_owned));
    header.extend(["", "_low", "_high"].map(|end| format!("cost_against_cheapest{end}")));
    header.extend(sweep.is_sequential().then(|| "seeds".to_owned()));
    writer.write_record(header.iter().map(|title| csv_cell(title).into_owned()))?;
    for (number, result) in sweep.results.iter().enumerate() {
        let mut row = vec![result.setting.to_string(), result.policy.clone()];
        row.extend(result.values.iter().cloned());
        row.extend(result.figures.iter().flat_map(|mean| cells_of([mean.map(|mean| mean.mean)])));
        let objective = |name| {
            result.objectives.iter().find(|objective| objective.name == name).and_then(|objective| objective.mean)
        };
        row.extend(
            own_objectives(sweep)
                .into_iter()
                .flat_map(|name| cells_of([objective(name).map(|objective| objective.mean)])),
        );
        row.push(result.meets_objectives.map_or_else(String::new, |met| met.to_string()));
        row.extend([sweep.front.contains(&number), result.is_comparable()].map(|is| is.to_string()));
        let cost = find(&sweep.cost).and_then(|(position, _)| result.figures.get(position).copied().flatten());
        let difference = result.against_cheapest.as_ref().map(|paired| paired.difference);
        row.extend(cells_of([cost.and_then(|cost| cost.low), cost.and_then(|cost| cost.high)]));
        let ends =
            [difference.and_then(|difference| difference.low), difference.and_then(|difference| difference.high)];
        row.extend(cells_of([difference.map(|difference| difference.mean), ends[0], ends[1]]));
        row.extend(sweep.is_sequential().then(|| seeds_of(sweep, result).to_string()));
        writer.write_record(row.iter().map(|cell| csv_cell(cell).into_owned()))?;
    }
    writer.flush()
}

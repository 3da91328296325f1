//! The table that `calibrate` prints.

use nodecast_observed::claims::History;
use nodecast_observed::estimate::Estimate;

use super::signed;
use crate::calibration::{Calibration, Effect, FitOutcome, JUDGED, Parameter, Unit};
use crate::domain::words::counted;
use crate::figures::FIGURES;
use crate::report::columns::printed;
use crate::report::format::percent;
use crate::report::table::Rows;

/// Disagreements that are printed.
const DISAGREEMENTS_SHOWN: usize = 3;

/// A value in its unit.
pub fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Seconds if value.abs() >= 100.0 => format!("{value:.0} s"),
        Unit::Seconds if value.abs() >= 1.0 => format!("{value:.1} s"),
        Unit::Seconds if value.abs() >= 0.1 => format!("{value:.2} s"),
        Unit::Seconds if value.abs() > 0.0 => format!("{:.2} ms", value * 1_000.0),
        Unit::Seconds => "0 s".to_owned(),
        Unit::Bytes => format!("{:.1} MB", value / 1e6),
        Unit::BytesPerSecond => format!("{:.1} MB/s", value / 1e6),
        Unit::PerHour => format!("{} per h", significant(value)),
        Unit::Share if value < 0.01 => format!("{:.2}%", value * 100.0),
        Unit::Share => percent(value),
        Unit::Factor => format!("{value:.2}"),
    }
}

/// Two significant digits.
fn significant(value: f64) -> String {
    if value <= 0.0 {
        return "0".to_owned();
    }
    let digits = (1.0 - libm::floor(libm::log10(value))).clamp(0.0, 9.0) as usize;
    format!("{value:.digits$}")
}

/// An interval in the unit, which is said once.
pub fn interval(unit: Unit, estimate: &Estimate) -> String {
    let (low, high) = (value(unit, estimate.low), value(unit, estimate.high));
    match (low.rsplit_once(' '), high.rsplit_once(' ')) {
        (Some((number, one)), Some((_, other))) if one == other && unit != Unit::PerHour => {
            format!("{number} to {high}")
        }
        _ if unit == Unit::PerHour => format!("{} to {high}", significant(estimate.low)),
        _ => format!("{low} to {high}"),
    }
}

/// What became of a parameter, in a word or two.
pub fn taken(parameter: &Parameter) -> String {
    let value = value(parameter.unit, parameter.value);
    match parameter.taken {
        _ if parameter.is_stated() => "no (set in scenario)".to_owned(),
        FitOutcome::Measured => "measured".to_owned(),
        FitOutcome::Shrunk => format!("partly: {value}"),
        FitOutcome::AsAssumed => "as assumed".to_owned(),
        FitOutcome::Shown => "shown only".to_owned(),
    }
}

/// The answer: what was assumed, what was measured, what is taken, with columns below one another where lines have no more than
/// `width` characters.
pub fn table(calibration: &Calibration, history: &History, width: Option<usize>) -> String {
    let measured = |parameter: &Parameter| {
        format!(
            "{} ({})",
            value(parameter.unit, parameter.measured.value),
            interval(parameter.unit, &parameter.measured)
        )
    };
    let table = Rows::new(&calibration.parameters)
        .text("parameter", |parameter| &parameter.name)
        .number("assumed", |parameter| parameter.assumed.map(|assumed| value(parameter.unit, assumed)))
        .number("measured (95%)", |parameter| measured(parameter))
        .number("from", |parameter| &parameter.from)
        .number("used", |parameter| taken(parameter))
        .gap(3);
    let mut lines = vec![headline(calibration)];
    if !calibration.parameters.is_empty() {
        lines.push(String::new());
        lines.extend(table.table().lines(width));
    }
    let notes = calibration.parameters.iter().filter(|parameter| !parameter.notes.is_empty());
    for parameter in notes {
        lines.push(String::new());
        lines.push(format!("{}:", parameter.name));
        lines.extend(parameter.notes.iter().map(|note| format!("  {note}")));
    }
    sources(history, &mut lines);
    if !calibration.warnings.is_empty() {
        lines.push(String::new());
        lines.extend(calibration.warnings.iter().map(|warning| format!("warning: {warning}")));
    }
    printed(&lines, width)
}

/// The answer in one line: the number of parameters that the data change.
fn headline(calibration: &Calibration) -> String {
    let parameters = &calibration.parameters;
    if parameters.is_empty() {
        return "these files contain no data to fit".to_owned();
    }
    let count = |taken: FitOutcome| {
        let fitted = parameters.iter().filter(|parameter| !parameter.is_stated() && parameter.taken == taken);
        fitted.count() as u64
    };
    let (measured, partly) = (count(FitOutcome::Measured), count(FitOutcome::Shrunk));
    let all = counted(parameters.len() as u64, "parameter", "parameters");
    format!("{} of {all} fitted: {measured} as measured, {partly} partly", measured + partly)
}

fn sources(history: &History, lines: &mut Vec<String>) {
    lines.push(String::new());
    for source in &history.sources {
        let mut line =
            format!("read {}: {}, {}", source.file, source.kind, counted(source.taken as u64, "entry", "entries"));
        if source.left > 0 {
            let first = source.first_left.as_deref().unwrap_or_default();
            line += &format!("; {} not used, starting with `{first}`", source.left);
        }
        lines.push(line);
        lines.extend(source.notes.iter().map(|note| format!("  {note}")));
    }
    let absent = history.not_recorded();
    if !absent.is_empty() {
        lines.push(format!("not recorded, so not fitted: {}", absent.join(", ")));
    }
    let disagreements = &history.disagreements;
    for one in disagreements.iter().take(DISAGREEMENTS_SHOWN) {
        lines.push(format!(
            "sources disagree on when {} was {}: {} by {}, {} by {}; using the first",
            one.claim,
            one.milestone.as_str(),
            one.used.0,
            one.used.1,
            one.other.0,
            one.other.1
        ));
    }
    if disagreements.len() > DISAGREEMENTS_SHOWN {
        lines.push(format!("and on {} instants more", disagreements.len() - DISAGREEMENTS_SHOWN));
    }
}

/// Which of the values change the answer, the one that does most first, in lines of no more than `width` characters.
pub fn effects(effects: &[Effect], policy: &str, currency: &str, replications: u32, width: Option<usize>) -> String {
    let mut table = Rows::new(effects)
        .text(format!("effect of each value alone, compared with {policy}"), |effect| &effect.parameter)
        .gap(3);
    for figure in FIGURES.iter().filter(|figure| JUDGED.contains(&figure.name)) {
        table = table.number(figure.label, |effect| {
            let difference = effect.figures.get(figure.name)?;
            if difference.change.abs() < 1e-9 {
                return Some("same".to_owned());
            }
            let is_open = difference.interval.is_none_or(|(low, high)| low <= 0.0 && high >= 0.0);
            Some(signed(figure, currency, difference.change) + if is_open { "?" } else { "" })
        });
    }
    let mut lines = vec![String::new()];
    lines.extend(table.table().lines(width));
    let seeds = counted(u64::from(replications), "seed", "seeds");
    lines.push(format!("means over {seeds}, the same for each; ? where the sign is not known with 95%"));
    printed(&lines, width)
}

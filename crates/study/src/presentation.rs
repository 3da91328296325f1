//! Comparisons as people read them: the table of the terminal and the page.

mod causes;
pub mod comment;
mod dots;
mod forest;
pub mod inspection;
pub mod movements;
pub mod page;
mod plane;
pub mod studio;
pub mod sweep_page;
pub mod sweep_table;
pub mod table;
pub mod verdict;

use super::comparison::{About, Comparison};
use super::figures::{Figure, Unit};
use super::statistics::Estimate;
use crate::report::format::{self, Measure, mean_count as counted};
use crate::report::page::text;
use nodecast_points::presentation::{
    aligned_within, known, known_difference, signed, signed_percent, value, value_among, warnings, with_sign,
};

/// A cell of a page as HTML: its interval, if it has one, in a `span`, which a style may put below the mean.
fn stacked(cell: &str) -> String {
    let range = || cell.find(" (").filter(|&at| cell[at..].contains(" to "));
    match cell.find(" \u{b1}").or_else(range) {
        Some(at) => format!("{}<span>{}</span>", text(&cell[..at]), text(&cell[at..])),
        None => text(cell),
    }
}

/// A cell with the unit of its interval at its figure too: below one another, `40` and `± 30 s` would not read as one amount.
fn with_own_unit(cell: &str) -> String {
    let Some((mean, range)) = cell.split_once(" \u{b1} ") else { return cell.to_owned() };
    let is_letter = |last: char| last.is_alphabetic() || last == '%';
    match range.rsplit_once(' ') {
        None if range.ends_with('%') && !mean.ends_with(is_letter) => format!("{mean}% \u{b1} {range}"),
        Some((_, unit)) if unit.ends_with(is_letter) && !mean.ends_with(is_letter) => {
            format!("{mean} {unit} \u{b1} {range}")
        }
        _ => cell.to_owned(),
    }
}

/// What is compared: two by their names, more by their number.
fn compared(comparison: &Comparison) -> String {
    match comparison.policies.as_slice() {
        [first, second] => format!("{} and {}", first.name, second.name),
        policies => format::counted(policies.len() as u64, "policy", "policies"),
    }
}

/// The seeds of a comparison: `seed 1`, `seeds 1 to 6`; of one that was stopped those that were run under every policy.
fn seeds(comparison: &Comparison) -> String {
    let About { first_seed: first, replications: have, replications_planned: planned, .. } = comparison.about;
    let count = if have < planned { last_seed(comparison) } else { planned };
    let all = match count {
        0 | 1 => format!("seed {first}"),
        count => format!("seeds {first} to {}", first.wrapping_add(count - 1)),
    };
    // Where several run at once, a later one may be whole and an earlier one not.
    if have < planned && have < count { format!("some of {all}") } else { all }
}

/// The place of the last seed that was run, counted from 1.
fn last_seed(comparison: &Comparison) -> u64 {
    let first = comparison.about.first_seed;
    comparison.points.iter().map(|point| point.seed.wrapping_sub(first).saturating_add(1)).max().unwrap_or(0)
}

/// `low to high` in the words of `say`; empty without an interval.
fn interval(estimate: &Estimate, say: impl Fn(f64) -> String) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!("{} to {}", say(low), say(high)),
        _ => String::new(),
    }
}

/// What a figure is measured in, among values of which `largest` is the largest.
fn measure<'c>(figure: &Figure, currency: &'c str, largest: f64) -> Measure<'c> {
    match figure.unit {
        Unit::Money => Measure::Money { currency, largest },
        Unit::Seconds => Measure::Seconds,
        Unit::Share => Measure::Share,
        Unit::Count => Measure::Count,
    }
}

/// The same of a difference: of shares in percentage points.
fn measure_of_difference<'c>(figure: &Figure, currency: &'c str, largest: f64) -> Measure<'c> {
    match figure.unit {
        Unit::Share => Measure::Points,
        Unit::Money | Unit::Seconds | Unit::Count => measure(figure, currency, largest),
    }
}

/// Whether a difference is good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    Better,
    Worse,
    /// Neither is better.
    Other,
    /// Seeds disagree.
    Unsure,
    Same,
}

fn standing(figure: &Figure, difference: &Estimate) -> Standing {
    if difference.mean.abs() <= 0.0 && !difference.half_width().is_some_and(|half| half > 0.0) {
        return Standing::Same;
    }
    if !difference.is_off_zero() {
        return Standing::Unsure;
    }
    match figure.less_is_better {
        None => Standing::Other,
        Some(less) if less == (difference.mean < 0.0) => Standing::Better,
        Some(_) => Standing::Worse,
    }
}

#[cfg(test)]
mod tests {
    use super::{seeds, with_own_unit};
    use crate::comparison::{About, compare};
    use crate::figures::FIGURES;
    use crate::points::Point;
    use crate::scenario::Caveats;

    /// A comparison of one policy in which so many seeds were planned, and these were run.
    fn seeds_of(planned: u64, run: &[u64]) -> String {
        let about = About::of_test(7, planned);
        let point = |&seed: &u64| Point {
            setting: 0,
            policy: "p".into(),
            seed,
            figures: vec![None; FIGURES.len()],
            objectives: Vec::new(),
            event_hash: String::new(),
            unconfirmed: 0.0,
            cost_by_origin: Default::default(),
            spot: false,
            never_registered: 0,
            silent: Vec::new(),
            at_zero_seconds: Default::default(),
            price_date: String::new(),
            warnings: Caveats::new(),
        };
        seeds(&compare(about, &["p".to_owned()], run.iter().map(point).collect(), Caveats::new()))
    }

    #[test]
    fn stopped_comparison_lists_finished_seeds() {
        assert_eq!(seeds_of(3, &[7, 8, 9]), "seeds 7 to 9");
        assert_eq!(seeds_of(300, &[7, 8, 9]), "seeds 7 to 9");
        assert_eq!(seeds_of(300, &[7, 8, 10]), "some of seeds 7 to 10");
        assert_eq!(seeds_of(300, &[7]), "seed 7");
    }

    #[test]
    fn a_figure_above_its_interval_has_its_unit() {
        let cases = [
            ("40 \u{b1} 30 s", "40 s \u{b1} 30 s"),
            ("+0.4 \u{b1} 0.1%", "+0.4% \u{b1} 0.1%"),
            ("2m10s \u{b1} 1m40s", "2m10s \u{b1} 1m40s"),
            ("1m10s \u{b1} 40 s", "1m10s \u{b1} 40 s"),
            ("$1.72 \u{b1} 0.01", "$1.72 \u{b1} 0.01"),
            ("60 (0 to 130)", "60 (0 to 130)"),
            ("lowest mean", "lowest mean"),
        ];
        for (cell, shown) in cases {
            assert_eq!(with_own_unit(cell), shown);
        }
    }
}

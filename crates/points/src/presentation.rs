//! Values, differences, and estimates as people read them. Must not: choose what is shown.

use super::figures::{Figure, Unit};
use super::statistics::Estimate;
use crate::report::columns::{Align, Columns};
use crate::report::format::{self, IntervalFigure, mean_count as counted, money_among, percent, span};
use nodecast_settings::Caveats;

/// Warnings that are printed; the page has all.
const WARNINGS_MAX: usize = 3;

/// A value of `figure`, with its unit.
pub fn value(figure: &Figure, currency: &str, value: f64) -> String {
    value_among(figure, currency, value, value)
}

/// A value of `figure` among others of which `largest` is the largest, so that money has one number of decimals.
pub fn value_among(figure: &Figure, currency: &str, amount: f64, largest: f64) -> String {
    let size = amount.abs();
    let text = match figure.unit {
        Unit::Money => money_among(currency, size, largest),
        Unit::Seconds => span(size),
        Unit::Share => percent(size),
        Unit::Count => counted(size),
    };
    if amount < 0.0 { format::negative(&text) } else { text }
}

/// A value of `figure` with its sign, for a difference: of shares in percentage points.
pub fn signed(figure: &Figure, currency: &str, amount: f64) -> String {
    let text = match figure.unit {
        Unit::Share => format!("{:.1} points", amount.abs() * 100.0),
        Unit::Money | Unit::Seconds | Unit::Count => value(figure, currency, amount.abs()),
    };
    with_sign(amount, text)
}

/// `text` with the sign of the amount that it is of; zero has none.
pub fn with_sign(amount: f64, text: String) -> String {
    match amount {
        _ if format::is_zero(&text) => text,
        a if a > 0.0 => format!("+{text}"),
        a if a < 0.0 => format::negative(&text),
        _ => text,
    }
}

/// A share with its sign: `+12.3 %`.
pub fn signed_percent(share: f64) -> String {
    with_sign(share, percent(share.abs()))
}

/// A level with its interval, the ends of which are said where one of them is much further off than the other.
pub fn known(estimate: &Estimate) -> IntervalFigure {
    let &Estimate { low, high, .. } = estimate;
    IntervalFigure { mean: estimate.centre(), low, high, ends: estimate.is_lopsided(), signed: false }
}

/// The same of a difference, which has its sign.
pub fn known_difference(estimate: &Estimate) -> IntervalFigure {
    IntervalFigure { signed: true, ..known(estimate) }
}

/// Aligned columns, the first to the left and the others to the right, that are no wider than `width` together, if that is known:
/// those that have no room are below the others, with the first `labels` columns again.
pub fn aligned_within(rows: &[Vec<String>], labels: usize, width: Option<usize>) -> Vec<String> {
    Columns { align: &[Align::Left, Align::Right], gap: 3, labels }.lines(rows, width)
}

/// The first of the warnings.
pub fn warnings(warnings: &Caveats, lines: &mut Vec<String>) {
    if let Some(silenced) = warnings.about_silenced() {
        lines.extend([String::new(), silenced]);
    }
    if warnings.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(format!("{}:", format::counted(warnings.len() as u64, "warning", "warnings")));
    let shown = warnings.lines().into_iter().take(WARNINGS_MAX);
    lines.extend(shown.map(|warning| format!("  {}", warning.replace('\n', " "))));
    if warnings.len() > WARNINGS_MAX {
        lines.push(format!("  + {} more in the report", counted((warnings.len() - WARNINGS_MAX) as f64)));
    }
}

#[cfg(test)]
mod tests {
    use super::aligned_within;

    fn rows() -> Vec<Vec<String>> {
        [["mean", "one", "another", "third"], ["cost", "$1.25", "$2", "$3.50"]]
            .map(|row| row.map(str::to_owned).to_vec())
            .to_vec()
    }

    #[test]
    fn table_with_enough_width_is_unchanged() {
        // 4 characters, then 5, 7 and 5 with three spaces before each.
        assert_eq!(aligned_within(&rows(), 1, None)[0].chars().count(), 30);
        for width in [Some(30), Some(200)] {
            assert_eq!(aligned_within(&rows(), 1, width), aligned_within(&rows(), 1, None), "{width:?}");
        }
    }

    #[test]
    fn overflowing_columns_repeat_below_with_labels() {
        let lines = ["mean     one   another", "cost   $1.25        $2", "", "mean   third", "cost   $3.50"];
        assert_eq!(aligned_within(&rows(), 1, Some(29)), lines);
        let lines =
            ["mean     one   another", "cost   $1.25        $2", "", "mean     one   third", "cost   $1.25   $3.50"];
        assert_eq!(aligned_within(&rows(), 2, Some(24)), lines);
        // However narrow, a block holds a column.
        assert_eq!(aligned_within(&rows(), 1, Some(1)).len(), 8);
    }
}

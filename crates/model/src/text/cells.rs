//! Texts of input files in output files: without control characters, and without formulas in CSV cells.
//!
//! Must not: lay out a table or a page.

use std::borrow::Cow;

/// First characters that make a spreadsheet take a cell for a formula.
const FORMULA: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\n'];

/// The text with U+FFFD for each character that XML 1.0 or HTML forbids. Tabs and line feeds stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_forbidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{fffe}' | '\u{ffff}');
    if text.contains(is_forbidden) { text.replace(is_forbidden, "\u{fffd}").into() } else { text.into() }
}

/// The text as a CSV cell: printable, and with `'` in front where a spreadsheet would take it for a formula. Numbers stay numbers.
///
/// Source: <https://owasp.org/www-community/attacks/CSV_Injection>
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    let formula = is_formula(text);
    let text = printable(text);
    if formula { format!("'{text}").into() } else { text }
}

/// The text of a cell that [`csv_cell`] wrote.
pub fn from_csv_cell(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|text| is_formula(text)).unwrap_or(cell)
}

/// Whether `csv_cell` quotes the text: a formula, or a formula that has quotes already.
fn is_formula(text: &str) -> bool {
    let is_number = || text.bytes().any(|byte| byte.is_ascii_digit()) && text.parse::<f64>().is_ok();
    text.trim_start_matches('\'').starts_with(FORMULA) && !is_number()
}

#[cfg(test)]
mod tests {
    use super::{csv_cell, from_csv_cell, printable};

    #[test]
    fn formulas_get_a_quote_and_read_back() {
        for text in ["=1+1", "+a", "-", "@sum(A1)", "\tx", "\nx", "'=1", "''-b", "-inf"] {
            assert_eq!(csv_cell(text), format!("'{text}"));
            assert_eq!(from_csv_cell(&csv_cell(text)), text);
        }
        for text in ["", "-1.5", "+2e3", "shop/web", "'", "'a", "a=b", "\u{2013}"] {
            assert_eq!(csv_cell(text), text);
            assert_eq!(from_csv_cell(text), text);
        }
        assert_eq!(csv_cell("\r=1"), "'\u{fffd}=1");
    }

    #[test]
    fn control_characters_become_replacements() {
        assert_eq!(
            printable("a\u{1b}[2J\u{7f}\u{9b}\u{ffff}\r\n\tb"),
            "a\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}\u{fffd}\n\tb"
        );
        assert_eq!(csv_cell("x\u{7}"), "x\u{fffd}");
    }
}

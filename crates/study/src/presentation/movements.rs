//! What has moved since a baseline: for the terminal, for a pull request, for a CI system.

use std::fmt::Write as _;

use super::{signed, signed_percent, value};
use crate::baseline::{Movement, Standing};
use crate::figures::named;
use crate::report::columns::folded;
use crate::report::format::percent;
use crate::report::markdown::{cell, code};
use crate::report::table::{Rows, Table, Verdict};

/// What moved, the worse first.
fn moved(movements: &[(Movement, String)]) -> Table {
    let mut moved: Vec<&(Movement, String)> =
        movements.iter().filter(|(movement, _)| movement.standing != Standing::Same).collect();
    moved.sort_by_key(|(movement, _)| movement.standing);
    // A row is a figure of a policy of a scenario.
    Rows::new(moved)
        .text("scenario / policy", |(movement, _)| format!("{} / {}", movement.scenario, movement.policy))
        .text("metric", |(movement, _)| named(movement.figure).map_or(movement.figure, |figure| figure.label))
        .label()
        .number("baseline", |(movement, currency)| amount(movement, movement.was, currency))
        .number("now", |(movement, currency)| amount(movement, movement.is, currency))
        .number("change", |(movement, currency)| change(movement, currency))
        .number("tolerance", |(movement, _)| tolerance(movement))
        .text("", |(movement, _)| verdict_of(movement))
        .gap(3)
        .table()
}

fn verdict_of(movement: &Movement) -> Verdict {
    let (words, is_good) = match movement.standing {
        Standing::Worse => ("WORSE", Some(false)),
        Standing::Better => ("better", Some(true)),
        Standing::Moved => ("ok", None),
        Standing::Noise => ("noise", None),
        Standing::NotJudged => (NOT_JUDGED, None),
        Standing::Same => ("same", None),
    };
    Verdict { words: words.to_owned(), is_good }
}

fn tolerance(movement: &Movement) -> Option<String> {
    (movement.standing != Standing::NotJudged).then(|| percent(movement.tolerance))
}

/// One of the two amounts in the unit of the figure.
fn amount(movement: &Movement, amount: Option<f64>, currency: &str) -> Option<String> {
    Some(value(named(movement.figure)?, currency, amount?))
}

/// The change in percent; as a plain difference where the baseline is too near 0 for a percentage; a dash where either is not
/// measured or nothing changed.
fn change(movement: &Movement, currency: &str) -> Option<String> {
    if let Some(share) = movement.change {
        return Some(signed_percent(share));
    }
    let difference = Some(movement.is? - movement.was?).filter(|difference| difference.abs() > 0.0)?;
    Some(signed(named(movement.figure)?, currency, difference))
}

/// What is said of figures that never fail a check.
const NOT_JUDGED: &str = "not evaluated";

/// The verdict, then the changed metrics, the worse first. Each movement comes with its currency. Where lines have no
/// more than `width` characters, columns stand below one another.
pub fn table(movements: &[(Movement, String)], width: Option<usize>) -> String {
    let mut lines = folded(&verdict(movements), width);
    let moved = moved(movements);
    if !moved.is_empty() {
        lines.push(String::new());
        lines.extend(moved.lines(width).iter().flat_map(|line| folded(line, width)));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// How it stands, in a sentence.
pub fn verdict(movements: &[(Movement, String)]) -> String {
    let count = |standing: Standing| movements.iter().filter(|(movement, _)| movement.standing == standing).count();
    let (worse, better, all) = (count(Standing::Worse), count(Standing::Better), movements.len());
    let verdict = match (worse, better) {
        (0, 0) => format!("check passed: {all} metrics, none worse"),
        (0, _) => {
            format!("check passed: {all} metrics, none worse, {better} better: `--update` makes that the new baseline")
        }
        _ => format!("check failed: {worse} of {all} metrics worse than tolerance"),
    };
    match count(Standing::Noise) {
        0 => verdict,
        noise => format!("{verdict} ({noise} moved only because seeds differ: noise)"),
    }
}

/// The table for a pull request's comment, in Markdown.
pub fn markdown(movements: &[(Movement, String)]) -> String {
    let moved = moved(movements);
    let moved = if moved.is_empty() { String::new() } else { format!("\n{}", moved.markdown()) };
    format!("**{}**\n{moved}{}", verdict(movements), as_it_is(movements))
}

/// Figures that answer what is asked first, in that order.
const ANSWERS: [&str; 6] =
    ["cost", "pending_p99", "request_p99", "unavailable_pod_minutes", "evictions", "pods_pending"];

/// What each scenario comes to, moved or not, as a folded table in Markdown.
fn as_it_is(movements: &[(Movement, String)]) -> String {
    let has = |name: &&&str| movements.iter().any(|(key, _)| key.figure == **name);
    let shown: Vec<&str> = ANSWERS.iter().filter(has).copied().collect();
    if shown.is_empty() {
        return String::new();
    }
    let same = |one: &(Movement, String), other: &(Movement, String)| {
        (&one.0.scenario, &one.0.policy) == (&other.0.scenario, &other.0.policy)
    };
    let mut table = Rows::new(movements.chunk_by(same))
        .text("scenario / policy", |policy| format!("{} / {}", policy[0].0.scenario, policy[0].0.policy));
    for name in shown {
        table = table.number(named(name).map_or(name, |figure| figure.label), |policy| {
            let (movement, currency) = policy.iter().find(|(movement, _)| movement.figure == name)?;
            amount(movement, movement.is, currency)
        });
    }
    format!("\n<details><summary>Current values</summary>\n\n{}\n</details>\n", table.table().markdown())
}

/// One test case for each figure, as CI systems read them.
///
/// Source: the JUnit XML form as Jenkins, GitLab and GitHub's reporters read it.
pub fn junit(movements: &[(Movement, String)]) -> String {
    let worse = movements.iter().filter(|(movement, _)| movement.standing == Standing::Worse).count();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(xml, "<testsuites name=\"nodecast check\" tests=\"{}\" failures=\"{worse}\">", movements.len());
    let mut suites: Vec<(String, Vec<&(Movement, String)>)> = Vec::new();
    for entry in movements {
        let name = format!("{} / {}", entry.0.scenario, entry.0.policy);
        match suites.iter_mut().find(|(known, _)| *known == name) {
            Some((_, item)) => item.push(entry),
            None => suites.push((name, vec![entry])),
        }
    }
    for (name, suite) in suites {
        let worse = suite.iter().filter(|(movement, _)| movement.standing == Standing::Worse).count();
        let _ =
            writeln!(xml, "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{worse}\">", escaped(&name), suite.len());
        for (movement, currency) in suite {
            let case = format!("classname=\"{}\" name=\"{}\"", escaped(&name), escaped(movement.figure));
            if movement.standing == Standing::Worse {
                let or_dash = |text: Option<String>| text.unwrap_or_else(|| "\u{2013}".to_owned());
                let message = format!(
                    "{} was {}, is {} ({}, at most {})",
                    named(movement.figure).map_or(movement.figure, |figure| figure.label),
                    or_dash(amount(movement, movement.was, currency)),
                    or_dash(amount(movement, movement.is, currency)),
                    or_dash(change(movement, currency)),
                    or_dash(tolerance(movement))
                );
                let _ = writeln!(xml, "    <testcase {case}><failure message=\"{}\"/></testcase>", escaped(&message));
            } else if movement.standing == Standing::NotJudged {
                let _ = writeln!(xml, "    <testcase {case}><skipped message=\"{NOT_JUDGED}\"/></testcase>");
            } else {
                let _ = writeln!(xml, "    <testcase {case}/>");
            }
        }
        xml += "  </testsuite>\n";
    }
    xml + "</testsuites>\n"
}

/// That a baseline is of another model, for a pull request's comment.
pub fn other_model_markdown(message: &str, changes: &[&str], baseline: &str) -> String {
    let mut text = format!("**check: {}**\n\n", cell(message));
    for change in changes {
        let _ = writeln!(text, "- {change}");
    }
    text + &format!("\nUpdate it: {}\n", code(&format!("nodecast check --baseline {baseline} --update")))
}

/// That a baseline is of another model, as CI systems read it: one test that could not run.
pub fn other_model_junit(message: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"nodecast check\" tests=\"1\" failures=\"0\" errors=\"1\">\n  \
         <testsuite name=\"baseline\" tests=\"1\" failures=\"0\" errors=\"1\">\n    \
         <testcase classname=\"baseline\" name=\"model\"><error message=\"{}\"/></testcase>\n  \
         </testsuite>\n</testsuites>\n",
        escaped(message)
    )
}

/// Text for an attribute in XML, which allows fewer control characters than HTML.
fn escaped(plain: &str) -> String {
    crate::report::page::text(plain)
}

#[cfg(test)]
mod tests {
    use super::{junit, markdown, table};
    use crate::baseline::{Movement, Standing};

    fn movement(figure: &'static str, was: f64, is: f64, standing: Standing) -> (Movement, String) {
        let change = crate::report::format::relative_change(is - was, was);
        let (scenario, policy) = ("a|b<c.yaml".to_owned(), "p".to_owned());
        let movement =
            Movement { scenario, policy, figure, was: Some(was), is: Some(is), change, tolerance: 0.02, standing };
        (movement, "USD".to_owned())
    }

    #[test]
    fn overflowing_movement_columns_move_below() {
        let movements = [
            movement("cost", 10.0, 12.5, Standing::Worse),
            movement("evictions", 4.0, 5.0, Standing::Moved),
            movement("launches", 2.0, 3.0, Standing::NotJudged),
        ];
        let whole = table(&movements, None);
        assert_eq!(table(&movements, Some(200)), whole);
        for width in [70, 50, 25] {
            let narrow = table(&movements, Some(width));
            assert!(narrow.lines().all(|line| line.chars().count() <= width), "{width}:\n{narrow}");
            let words = whole.split_whitespace().filter(|word| !"scenario / policy".contains(word));
            words.for_each(|word| assert!(narrow.contains(word), "{word} is not in\n{narrow}"));
        }
        // The rows of a policy are below its name, where names and figures leave no room for more.
        let narrow = table(&movements, Some(25));
        assert!(narrow.contains("\n\na|b<c.yaml / p\n  metric "), "{narrow}");
        assert_eq!(narrow.matches("a|b<c.yaml / p").count(), 1, "{narrow}");
    }

    #[test]
    fn noise_is_shown_and_fails_nothing() {
        let movements = [movement("interruptions", 1.2, 1.6, Standing::Noise)];
        let table = table(&movements, None);
        assert!(table.contains("1.20") && table.contains("noise\n"), "{table}");
        assert!(
            table.starts_with("check passed: 1 metrics, none worse (1 moved only because seeds differ: noise)\n"),
            "{table}"
        );
        assert!(junit(&movements).contains("failures=\"0\""));
    }

    #[test]
    fn change_from_nearly_zero_is_a_plain_difference() {
        let movements = [
            movement("requests_lost", 3e-201, 0.021, Standing::Worse),
            movement("evictions", 0.0, 12.0, Standing::Worse),
            movement("cost", 0.000_02, 730.0, Standing::Worse),
        ];
        let table = table(&movements, None);
        assert!(table.contains("+2.1 points") && table.contains("+12") && table.contains("+$730.00"), "{table}");
        assert!(table.lines().all(|line| line.chars().count() < 120), "{table}");
        assert!(markdown(&movements).contains("| +12 |"), "{table}");
    }

    #[test]
    fn worse_metrics_come_first_in_table() {
        let movements = [
            movement("launches", 2.0, 3.0, Standing::NotJudged),
            movement("cost", 10.0, 12.5, Standing::Worse),
            movement("evictions", 4.0, 4.0, Standing::Same),
        ];
        let table = table(&movements, None);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[3].contains("cost") && lines[3].contains("+25.0%") && lines[3].ends_with("WORSE"), "{table}");
        assert_eq!(lines[0], "check failed: 1 of 3 metrics worse than tolerance");
        assert!(
            markdown(&movements).contains("| a\\|b&lt;c.yaml / p | cost | $10.00 | $12.50 | +25.0% | 2.0% | WORSE |")
        );
        assert!(markdown(&movements).contains("| a\\|b&lt;c.yaml / p | $12.50 | 4 |\n"));
        assert!(markdown(&movements).contains(" | launches | 2 | 3 | +50.0% | \u{2013} | not evaluated |\n"));
        assert!(lines[4].contains("launches") && lines[4].ends_with("\u{2013}   not evaluated"), "{table}");
        let xml = junit(&movements);
        assert!(xml.contains("name=\"launches\"><skipped message=\"not evaluated\"/></testcase>"), "{xml}");
        assert!(
            xml.contains("failures=\"1\"") && xml.contains("a|b&lt;c.yaml") && xml.matches("<testcase").count() == 3
        );
    }
}

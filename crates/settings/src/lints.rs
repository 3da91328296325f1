//! The registry of lints: every table of the workspace, one after the other.
//!
//! To add one: a row in the table of its area, and one call where it applies (`warnings.add(&lints::NAME, text)`, or `reader.warn`). docs/warnings.md
//! is generated from here. Must not: hold sentences with values, which stand where the values are known.

pub mod file;
pub mod fleet;
pub mod outcome;
pub mod setup;
pub mod studies;

use std::fmt::Write as _;

use nodecast_model::text;
use nodecast_model::text::error::Effect;
pub use nodecast_model::text::lint::{Bias, Lint, LintId};
use nodecast_single_pass as single_pass;

/// Part of the registry.
pub struct Area {
    /// Its heading.
    pub title: &'static str,
    /// Its table.
    pub lints: &'static [&'static Lint],
    /// Numbers that were used once and are not used again.
    pub retired: &'static [u16],
}

/// All tables, in the order of their numbers.
pub static AREAS: [Area; 8] = [
    Area { title: "Keys of manifests", lints: text::lints::LINTS, retired: &[] },
    Area { title: "Manifests", lints: nodecast_manifests::lints::LINTS, retired: &[] },
    Area { title: "A cluster as files describe it", lints: single_pass::lints::LINTS, retired: &[] },
    Area { title: "Scenario files", lints: file::LINTS, retired: &[] },
    Area { title: "Before a run", lints: setup::LINTS, retired: &[] },
    Area { title: "After a run", lints: outcome::LINTS, retired: &[] },
    Area { title: "Comparisons, sweeps, recommendations, backtests", lints: studies::LINTS, retired: &[] },
    Area { title: "Fleets", lints: fleet::LINTS, retired: &[] },
];

/// Every lint, in the order of their numbers.
pub fn all() -> impl Iterator<Item = &'static Lint> {
    AREAS.iter().flat_map(|area| area.lints).copied()
}

/// docs/warnings.md: every lint, with its level, when it applies, and the direction of its bias.
pub fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    for area in &AREAS {
        let _ =
            write!(text, "\n## {}\n\n| id | level | applies when | bias |\n| --- | --- | --- | --- |\n", area.title);
        for lint in area.lints {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                lint.id(),
                level(lint.level()),
                lint.when().replace('|', "\\|"),
                lint.bias().words()
            );
        }
    }
    text
}

/// A level as the page calls it.
const fn level(level: Effect) -> &'static str {
    match level {
        Effect::ChangesAnswer => "changes",
        Effect::MayChangeAnswer => "may change",
        Effect::AboutInput => "input",
        Effect::Harmless => "harmless",
    }
}

/// The page up to its first table.
const INTRODUCTION: &str = "# Warnings

A warning says what nodecast ignores or assumes, and ends with the id of its kind: `[NC0206]`. This page lists every kind. It is
generated: `nodecast schema --format warnings` prints it.

The level says what the cause can do to the answer:

| level | in summary.json | meaning |
| --- | --- | --- |
| changes | `changes_answer` | The answer differs from the real cluster's: pods do not run, cost is missing, or a setting has no effect. |
| may change | `may_change_answer` | The answer may differ: a part is not simulated, or a value is assumed. |
| input | `about_input` | The input is odd and may not say what you meant. |
| harmless | `harmless` | The answer is the same. |

The bias is the direction of the error, compared with the real cluster. \"None\" means that the warning reports what happened in the run, or
what has no effect.

To silence kinds that you know, list them in the scenario:

```yaml
allow: [NC0206, NC0404]
```

The report says which kinds were silenced. An id that did not apply is a warning itself (NC0100), an unknown id an error. `allow` changes no
metric and no exit code except that of `validate --strict`.

Numbers are stable: a new kind has a new number, and a number that is gone is not used again.
";

/// The lint with this id.
pub fn find(id: LintId) -> Option<&'static Lint> {
    all().find(|lint| lint.id() == id)
}

#[cfg(test)]
mod tests {
    use super::AREAS;

    #[test]
    fn lint_numbers_are_unique_and_never_freed() {
        let mut last = 0;
        for area in &AREAS {
            let mut numbers: Vec<u16> = area.lints.iter().map(|lint| lint.id().number()).collect();
            assert!(numbers.is_sorted(), "{}: rows stand in the order of their numbers", area.title);
            numbers.extend(area.retired);
            numbers.sort_unstable();
            let first = numbers[0];
            assert!(last < first, "{}: {first} is of an earlier area", area.title);
            let whole: Vec<u16> = (first..).take(numbers.len()).collect();
            assert_eq!(numbers, whole, "{}: a number that is gone belongs into `retired`", area.title);
            last = first + numbers.len() as u16 - 1;
        }
    }
}

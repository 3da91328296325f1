//! The description as a reference for people, in Markdown: `docs/scenario.md`.

use super::whole::SCENARIO;
use super::{Form, Key, Presence, Program, SECTIONS, Section};
use crate::error::listed;
use crate::manifests::{API_VERSIONS, NOT_SIMULATED, READ, WITHOUT_EFFECT};

const HEAD: &str = "\
# Scenario reference

Every key in a scenario file, with its type, default, and meaning. Printed by
`nodecast schema --format markdown` from the description that the program reads scenarios by; edit that, not this file.

`nodecast validate scenario.yaml` checks a scenario with everything that it names, without simulating it.

## In an editor

`nodecast schema` prints the same as a JSON Schema (draft 7). Editors that use yaml-language-server (VS Code with the
extension \"YAML\" by Red Hat, Neovim, Helix, Zed) then complete keys, explain them and mark mistakes:

```sh
nodecast schema > scenario.schema.json
```

`nodecast init` writes this file, and the first line of the scenario, with the path relative to it:

```yaml
# yaml-language-server: $schema=./scenario.schema.json
```

In VS Code `settings.json` does the same for many files:
`\"yaml.schemas\": { \"./scenario.schema.json\": \"scenarios/**/scenario.yaml\" }`.

";

const VALUES: &str = "\
## Value formats

| value | is written |
| --- | --- |
| duration | `250ms`, `30s`, `5m`, `1h30m`, `7d`, `2w`; a number alone is refused, but for `0` |
| share | `30%` or `0.3` |
| number with a unit | plain, or with a suffix of Kubernetes: `1500`, `1.5k`, `120Mi` |
| price | a number with at most nine decimals, in the region's currency |
| time | `2026-11-27T00:00:00Z`; UTC unless it has an offset |
| `namespace/name` | a workload; without a namespace it is in `default` |
| file | a path relative to the scenario |
| release | with or without its patch level, in quotes if it looks like a number: `v1.13`, `\"1.30\"` |

";

/// The reference, ending in a newline.
pub fn text() -> String {
    let mut text = HEAD.to_owned();
    contents(&mut text);
    text.push_str(VALUES);
    for section in SECTIONS {
        of_section(section, &mut text);
    }
    manifests(&mut text);
    text
}

/// Whether a section stands under a key of the scenario itself.
fn is_outer(section: &Section) -> bool {
    std::ptr::eq(section, &raw const SCENARIO)
        || SCENARIO
            .keys
            .iter()
            .any(|key| section_of(&key.form()).is_some_and(|this_section| std::ptr::eq(this_section, section)))
}

/// The section that stands under a key, if one does.
fn section_of(value: &Form) -> Option<&'static Section> {
    match value {
        Form::Map(section) => Some(section),
        Form::List(inner) | Form::OneOrMore(inner) | Form::Free(_, inner) => section_of(inner),
        Form::Either(one, other) => section_of(one).or_else(|| section_of(other)),
        _ => None,
    }
}

fn contents(text: &mut String) {
    text.push_str("## Contents\n\n");
    for section in SECTIONS.iter().filter(|section| is_outer(section)) {
        text.push_str(&format!("- {}\n", link(section)));
    }
    text.push_str("- [Manifests](#manifests)\n\n");
}

fn of_section(section: &Section, text: &mut String) {
    let level = if is_outer(section) { "##" } else { "###" };
    text.push_str(&format!("{level} {}\n\n", section.title));
    if !section.about().is_empty() {
        text.push_str(&format!("{}\n\n", section.about()));
    }
    if !section.example.is_empty() {
        text.push_str(&format!("```yaml\n{}```\n\n", section.example));
    }
    if !section.one_of.is_empty() {
        text.push_str(&format!("Exactly one of {} has to be there.\n\n", listed(section.one_of.iter().copied())));
    }
    text.push_str("| key | value | without it | meaning |\n| --- | --- | --- | --- |\n");
    for key in section.keys {
        text.push_str(&row(key));
    }
    text.push('\n');
}

fn row(key: &Key) -> String {
    let without = match key.presence {
        Presence::Required => "**required**".to_owned(),
        Presence::Default(value) => format!("`{}`", value()),
        Presence::Otherwise(what) => what.to_owned(),
    };
    format!("| `{}` | {} | {without} | {} |\n", key.name, described(&key.form()), key.meaning())
}

fn described(value: &Form) -> String {
    match value {
        Form::Text(what) => (*what).to_owned(),
        Form::FolderName => "letters, digits, `-`, `_`, `.`".to_owned(),
        Form::File => "file".to_owned(),
        Form::Workload => "`namespace/name`".to_owned(),
        Form::Truth => "`true` or `false`".to_owned(),
        Form::Integer(least, i64::MAX) => format!("whole number from {least}"),
        Form::Integer(least, most) => format!("whole number, {least} to {most}"),
        Form::Number(least, most) => format!("number, {least} to {most}"),
        Form::Amount(unit) => format!("number ({unit})"),
        Form::Quantity => "number".to_owned(),
        Form::Duration => "duration".to_owned(),
        Form::SignedDuration => "duration, perhaps negative".to_owned(),
        Form::Share(100) => "share".to_owned(),
        Form::Share(most) => format!("share, up to {most}%"),
        Form::Price => "price".to_owned(),
        Form::Instant => "time".to_owned(),
        Form::Words(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Form::Release(program) => releases(*program),
        Form::Scalar => "text, number or truth value".to_owned(),
        Form::List(item) => format!("list: {}", described(item)),
        Form::OneOrMore(item) => format!("{}, or a list", described(item)),
        Form::Map(section) => link(section),
        Form::Free(key, inner) => format!("map: {key} to {}", described(inner)),
        Form::Either(one, other) => format!("{}, or {}", described(one), described(other)),
    }
}

/// The known releases; of a long row the first and the last.
fn releases(program: Program) -> String {
    const SHOWN: usize = 7;
    let all = program.releases();
    match all.as_slice() {
        [first, .., last] if all.len() > SHOWN => format!("release, `{first}` to `{last}`"),
        _ => format!("release: {}", all.iter().map(|release| format!("`{release}`")).collect::<Vec<_>>().join(", ")),
    }
}

fn link(section: &Section) -> String {
    let name = section.title.split(':').next().unwrap_or_default();
    format!("[{name}](#{})", anchor(section.title))
}

/// The anchor that GitHub and GitLab give to a heading.
pub(super) fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Which kinds of object are read.
fn manifests(text: &mut String) {
    text.push_str(
        "## Manifests\n\nManifests are read as you apply them, lists and dumps of `kubectl get -o yaml` too. A misspelled key, another \
         API version and whatever could change the answer but is not simulated are warnings.\n\n| kind | API versions |\n| --- | --- |\n",
    );
    for kind in READ {
        let versions = API_VERSIONS.iter().find(|(name, _)| name == kind);
        let versions = versions.map_or_else(|| "any".to_owned(), |(_, item)| listed(item.iter().copied()));
        text.push_str(&format!("| {kind} | {versions} |\n"));
    }
    text.push_str("\nThese could change the answer and are left out, with a warning:\n\n| kind | what that means |\n| --- | --- |\n");
    for (kind, consequence) in NOT_SIMULATED {
        text.push_str(&format!("| {kind} | {consequence} |\n"));
    }
    text.push_str(&format!("\nThese change nothing here and are passed over: {}.\n", WITHOUT_EFFECT.join(", ")));
}

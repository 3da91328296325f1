//! The fitted values as a fragment of a scenario: YAML to read and to change, each value with where it comes from.

use std::fmt::Write;

use super::{Calibration, FitOutcome, Key, Parameter, Unit, shown_path};
use crate::presentation::calibration::{interval, value};
use nodecast_model::text::yaml::word;

/// The first words of a fragment, by which one is known again.
pub const HEAD: &str = "# Fitted by nodecast calibrate";

/// A map of the fragment, in the order of keys.
#[derive(Default)]
struct Tree<'c> {
    children: Vec<(String, Tree<'c>)>,
    leaf: Option<(&'c Key, Option<&'c Parameter>)>,
}

impl<'c> Tree<'c> {
    fn add(&mut self, path: &[String], leaf: (&'c Key, Option<&'c Parameter>)) {
        let Some((step, rest)) = path.split_first() else {
            self.leaf = Some(leaf);
            return;
        };
        let at = self.children.iter().position(|(name, _)| name == step);
        let at = at.unwrap_or_else(|| {
            self.children.push((step.clone(), Self::default()));
            self.children.len() - 1
        });
        self.children[at].1.add(rest, leaf);
    }
}

/// The fragment: what is taken, with comments. `about` is said at its head, a line each.
pub fn yaml(calibration: &Calibration, about: &[String]) -> String {
    let mut text = format!("{HEAD}. Values take the place of defaults where a scenario names this file:\n");
    text += "# `calibration: calibration.yaml`; what the scenario states itself holds. Change or delete what you know better.\n";
    for line in about {
        let _ = writeln!(text, "# {line}");
    }
    let taken: Vec<&Parameter> = calibration.parameters.iter().filter(|one| is_written(one)).collect();
    let shrunk: Vec<&&Parameter> = taken.iter().filter(|one| one.taken == FitOutcome::Shrunk).collect();
    if !shrunk.is_empty() {
        text += "\ngrades:   # values that little was recorded for: between what was measured and what is assumed\n";
        for key in shrunk.iter().flat_map(|one| &one.keys) {
            let _ = writeln!(text, "  {}: shrunk", word(&shown_path(&key.path)));
        }
    }
    let mut tree = Tree::default();
    for parameter in &taken {
        for (number, key) in parameter.keys.iter().enumerate() {
            tree.add(&key.path, (key, (number == 0).then_some(parameter)));
        }
    }
    for (name, child) in &tree.children {
        text.push('\n');
        write(&mut text, 0, name, child);
    }
    text
}

fn is_written(parameter: &Parameter) -> bool {
    matches!(parameter.taken, FitOutcome::Measured | FitOutcome::Shrunk) && !parameter.keys.is_empty()
}

fn write(text: &mut String, depth: usize, name: &str, tree: &Tree<'_>) {
    let indent = "  ".repeat(depth);
    if let Some((key, parameter)) = tree.leaf {
        if let Some(parameter) = parameter {
            comments(text, &indent, parameter);
        }
        let stated = if key.stated { ", which the scenario states and holds" } else { "" };
        let _ = writeln!(text, "{indent}{}: {}   # in place of {}{stated}", word(name), key.value, key.instead_of);
        return;
    }
    let _ = writeln!(text, "{indent}{}:", word(name));
    for (child, below) in &tree.children {
        match child.strip_prefix('[').and_then(|child| child.strip_suffix(']')) {
            Some(item) => {
                let _ = writeln!(text, "{indent}  - name: {}", word(item));
                below.children.iter().for_each(|(name, leaf)| write(text, depth + 2, name, leaf));
            }
            None => write(text, depth + 1, child, below),
        }
    }
}

fn comments(text: &mut String, indent: &str, parameter: &Parameter) {
    let say = |number: f64| value(parameter.unit, number);
    let assumed = parameter.assumed.map_or_else(String::new, |assumed| format!("; assumed {}", say(assumed)));
    let _ = writeln!(
        text,
        "{indent}# {}: {} ({}), {}{assumed}",
        parameter.name,
        say(parameter.measured.value),
        interval(parameter.unit, &parameter.measured),
        parameter.from
    );
    if parameter.taken == FitOutcome::Shrunk {
        let taken = say(parameter.value);
        let _ = writeln!(text, "{indent}# too little to go by alone: {taken} is between the two");
    }
    if parameter.unit == Unit::Factor {
        let _ = writeln!(text, "{indent}# as a multiple of what is assumed");
    }
    for note in &parameter.notes {
        let _ = writeln!(text, "{indent}# {note}");
    }
}

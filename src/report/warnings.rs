//! Warnings in the order of what they are likely to do to the answer.
//!
//! A warning is a sentence; how much it weighs is told by what it speaks of. What must not live here: warnings.

/// Warnings, sorted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ranked {
    /// Those that may change the answer, the weightiest first; of equals in the order in which they came.
    pub telling: Vec<String>,
    /// Those that hardly do: something is left unused, or only looks odd.
    pub harmless: Vec<String>,
}

/// Words by which a warning is known to speak of money, of pods that may not run or run otherwise, or of a part that is not simulated.
const WEIGHTY: [&str; 14] = [
    "billed",
    "no price",
    "free here",
    "launches nothing",
    "nothing launches",
    "nobody in this policy",
    "never",
    "not simulated",
    "not reproduced",
    "stands in",
    "left out",
    "drift to an end",
    "without the nodes",
    "waits for others",
];
/// Words by which one is known to speak of what changes nothing.
const SLIGHT: [&str; 7] = [
    "unused",
    "ignored",
    "changes nothing",
    "does nothing",
    "only the later one counts",
    "makes no difference",
    "is sampled",
];

/// Sorts warnings by their likely effect.
pub fn ranked(warnings: &[String]) -> Ranked {
    let speaks = |warning: &str, of: &[&str]| of.iter().any(|words| warning.contains(words));
    let (mut weighty, mut others, mut harmless) = (Vec::new(), Vec::new(), Vec::new());
    for warning in warnings {
        let place = if speaks(warning, &WEIGHTY) {
            &mut weighty
        } else if speaks(warning, &SLIGHT) {
            &mut harmless
        } else {
            &mut others
        };
        place.push(warning.clone());
    }
    weighty.append(&mut others);
    Ranked { telling: weighty, harmless }
}

#[cfg(test)]
mod tests {
    use super::ranked;

    #[test]
    fn what_costs_comes_first_and_what_changes_nothing_is_set_aside() {
        let warnings =
            ["no claim names a: such PersistentVolumes stay unused", "an odd thing", "such volumes are not billed"];
        let found = ranked(&warnings.map(str::to_owned));
        assert_eq!(found.telling, ["such volumes are not billed", "an odd thing"]);
        assert_eq!(found.harmless, [warnings[0]]);
    }
}

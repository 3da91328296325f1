//! The smallest case that still fails in the same way: parts are left out and time is cut for as long as it does.

use crate::case::Case;
use crate::trial::{self, Programs};

/// What a fault is about: the words before its first colon.
fn rule(fault: &str) -> &str {
    fault.split(':').next().unwrap_or(fault)
}

/// Makes a case smaller as long as one of the same rules does not hold; with what is wrong with the smallest.
pub fn shrink(case: &Case, faults: Vec<String>, programs: &Programs) -> (Case, Vec<String>) {
    let (mut smallest, mut left) = (case.clone(), faults);
    loop {
        let rules: Vec<String> = left.iter().map(|fault| rule(fault).to_owned()).collect();
        let found = smaller(&smallest).into_iter().find_map(|case| {
            let faults = trial::faults(&case, programs);
            faults.iter().any(|fault| rules.iter().any(|this_rule| this_rule == rule(fault))).then_some((case, faults))
        });
        match found {
            Some((case, faults)) => (smallest, left) = (case, faults),
            None => return (smallest, left),
        }
    }
}

/// Cases that have a little less.
fn smaller(case: &Case) -> Vec<Case> {
    let without = (1..case.parts.len()).map(|part| {
        let mut case = case.clone();
        case.parts.remove(part);
        case
    });
    let shorter = (case.minutes > 20).then(|| Case { minutes: case.minutes / 2, ..case.clone() });
    without.chain(shorter).collect()
}

//! What holds of every report, whatever the scenario. Nothing here knows how nodecast works it out.

mod bill;
mod life;
mod settled;
mod vertical;

use crate::case::Case;
use crate::report::Report;

/// Times are written to a microsecond.
const INSTANT: f64 = 2e-6;

/// Everything that does not hold.
pub fn faults(case: &Case, report: &Report) -> Vec<String> {
    let mut faults = Vec::new();
    bill::check(report, &mut faults);
    life::check(case, report, &mut faults);
    settled::check(case, report, &mut faults);
    vertical::check(case, report, &mut faults);
    faults
}

/// Says what does not hold, a few times at most for each rule.
struct Rule<'f> {
    name: &'static str,
    said: usize,
    faults: &'f mut Vec<String>,
}

impl<'f> Rule<'f> {
    fn new(name: &'static str, faults: &'f mut Vec<String>) -> Self {
        Self { name, said: 0, faults }
    }

    fn holds(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if holds {
            return;
        }
        self.said += 1;
        if self.said <= 3 {
            self.faults.push(format!("{}: {}", self.name, what()));
        }
    }
}

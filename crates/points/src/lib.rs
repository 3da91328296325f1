//! One simulation reduced to its figures, and arithmetic on several of them.
//!
//! A [`Point`](point::Point) is the answer of one simulation, reduced to its [`figures`]: a pure function of (scenario, policy, seed).
//! [`statistics`] has levels and paired differences with their intervals, [`levels`] the statistic of each figure, [`axes`] the
//! settings of a sweep, and [`presentation`] the form in which people read an estimate.
//!
//! Must not: simulate, read a scenario file, choose what a report shows.

use nodecast_engine as engine;
use nodecast_report as report;

pub mod axes;
pub mod figures;
pub mod levels;
pub mod point;
pub mod presentation;
pub mod statistics;

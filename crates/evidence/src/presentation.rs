//! Tables and pages of backtests and calibrations.

pub mod backtest_page;
pub mod backtest_table;
mod backtest_words;
pub mod calibration;
mod tally;

use nodecast_points::presentation::{aligned_within, known, signed, signed_percent, warnings};

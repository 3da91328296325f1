//! What the program does, whoever asks: the command line and the Python package read, run, compare, sweep and pack through the
//! same functions, so that both give the same bytes.
//!
//! What must not live here: any figure, how a question is written on a command line, and where an answer is printed.

pub mod backtest;
pub mod calibrate;
pub mod compare;
pub mod edits;
mod failure;
pub mod first_nodes;
pub mod observe;
pub mod pack;
pub mod prices;
pub mod recommend;
pub mod remark;
pub mod rightsize;
pub mod run;
pub mod simulations;
#[cfg(feature = "studio")]
pub mod studio;
pub mod sweep;

pub use failure::Failure;
pub use prices::Prices;
pub use remark::Remark;
pub use simulations::Audience;

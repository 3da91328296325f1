//! What the program does, whoever asks: the command line and the Python package read, run, compare, sweep and pack through the
//! same functions, so that both give the same bytes.
//!
//! A request is one type that both fill in; its doc comments and attributes are the options of the command line.
//!
//! What must not live here: any figure, and where an answer is printed.

pub mod backtest;
pub mod base;
pub mod calibrate;
pub mod compare;
pub mod edits;
mod failure;
pub mod first_nodes;
pub mod fleet;
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

pub use failure::{Failure, recorded_path};
pub use prices::Prices;
pub use remark::Remark;
pub use simulations::Audience;

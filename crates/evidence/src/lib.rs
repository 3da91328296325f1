//! Recordings of a cluster compared with simulations of it.
//!
//! [`backtest`] compares a forecast with the recording of the same time, metric by metric. [`calibration`] fits parameters of the model to
//! a recording. [`presentation`] has their tables and pages.
//!
//! Must not: run a simulation, read the format of a recording (`nodecast-observed`), write to the terminal.

use nodecast_ec2 as cloud;
use nodecast_engine as engine;
use nodecast_load as load;
use nodecast_model::domain;
use nodecast_points::{figures, statistics};
use nodecast_prices as catalog;
use nodecast_report as report;
use nodecast_scenario as scenario;
use nodecast_world as world;

pub mod backtest;
pub mod calibration;
pub mod presentation;

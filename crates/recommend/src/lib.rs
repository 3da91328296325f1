//! Changes of a cluster that save money and keep what it promises.
//!
//! [`recommendation`] has the levers that can be pulled in a scenario, and the search through them. [`rightsizing`] has requests that fit the
//! use of containers. [`controls`] are the same levers as controls of the studio. [`presentation`] has their tables and pages.
//!
//! Must not: run a simulation (the caller passes the answers), write to the terminal.

use nodecast_ec2 as cloud;
use nodecast_engine as engine;
use nodecast_model::domain;
use nodecast_points::{axes, figures, levels, point as points, statistics};
use nodecast_prices as catalog;
use nodecast_report as report;
use nodecast_scenario as scenario;
use nodecast_world as world;

pub mod controls;
pub mod presentation;
pub mod recommendation;
pub mod rightsizing;

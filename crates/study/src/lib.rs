//! More than one simulation: every policy with every seed, paired differences, sweeps, baselines, shards.
//!
//! A [`Point`] is what one simulation answers, reduced to its figures: a pure function of (scenario, policy, seed). Points
//! are computed side by side, one simulation to a thread, and always kept in the order of policies and seeds, so that no
//! result depends on the number of threads. Everything else here is arithmetic on points.
//!
//! What must not live here: anything inside a simulation.

use nodecast_model::{cluster, domain};
use nodecast_prices as catalog;
use nodecast_report as report;
use nodecast_scenario as scenario;
use nodecast_sim::{actors, simulation};
use nodecast_world as world;

pub mod baseline;
pub mod comparability;
pub mod comparison;
pub mod deciding;
pub mod effects;
pub mod inspection;
pub mod model;
pub mod points;
pub mod presentation;
pub mod price_dates;
pub mod question;
pub mod racing;
pub mod sequential;
pub mod sweep;
pub mod unfinished_work;

pub use nodecast_points::{axes, figures, levels, statistics};

pub use comparison::{Comparison, compare};
pub use points::{Cell, Plan, Point, run, simulate};
pub use question::{Question, Shard};

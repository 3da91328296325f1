//! What to change: the cheapest settings that keep what a scenario asks for.
//!
//! [`levers()`] finds in a scenario what its user may change, [`search`](search::Search) tries it, [`Verdict`] is what remains after a second
//! look with seeds that the search never saw.
//!
//! What must not live here: how the answer is drawn (`presentation`), and where it is written (`program`).

mod allowed;
mod answer;
mod commitments;
mod effort;
mod levers;
mod limits;
mod lines;
mod risks;
mod robustness;
mod search;
mod support;
#[cfg(test)]
mod synthetic;

pub(crate) use allowed::is_guarded;
pub use allowed::{Allowance, Exclusion, Reach, Reaches, exclude, fragile_on_spot};
pub use answer::{
    Alternative, Change, Class, EffortMade, Figures, LeverTried, LimitKept, Recommendation, SCHEMA_VERSION, Tried,
    ValueChange,
};
pub use commitments::{
    ALL_FAMILIES, CurvePoint, FamilyCurve, LongerTerm, OnDemandTime, added_cost, curves, dearest_family, hours,
    lever as commitments_lever, on_demand_times,
};
pub use effort::Effort;
pub(crate) use levers::dearest;
pub use levers::{BaselineFacts, Kind, Level, Lever, Requirements, Terms, levers, requirements, setting};
pub use limits::{Limit, limits, measures, missing_more, strain};
pub use lines::{Concern, LargeLine, LeverResult, LineLever, largest_lines};
pub use risks::{Risk, risk};
pub use robustness::{Robustness, Stress};
pub use search::{Choice, Problem, Sample, Search};
pub use support::{Advice, Verdict};

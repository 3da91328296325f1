//! A subset of PromQL over simulated series: what queries that scale workloads are made of.
//!
//! [`Query::parse`] reads a query, [`Query::evaluate`] asks it at an instant of whatever implements [`SeriesSource`]. What
//! is not supported is refused when the query is read, see [`SUPPORTED`].
//!
//! Source: Prometheus 3 `promql/parser`, `promql/engine.go`, `promql/functions.go` (`extrapolatedRate`). Ranges and the
//! lookback of five minutes are open on the left, as they are since Prometheus 3.
//!
//! What must not live here: which series exist and what their samples are (`actors`).

mod evaluation;
mod lexer;
mod parser;
mod rate;

use nodecast_model::domain::labels::Labels;
use nodecast_model::domain::{SimDuration, SimTime};

use parser::Node;

/// What a query may contain, for error messages.
pub const SUPPORTED: &str = "numbers; selectors with =, !=, =~ and !~, ranges and offset; rate, irate, increase, delta, and avg, \
                             max, min, sum, count and last _over_time; sum, avg, min, max and count with by or without; abs, \
                             ceil, floor, round, clamp, clamp_min, clamp_max, scalar, vector; + - * / % ^, comparisons with or \
                             without bool, and, or, unless, with on or ignoring";

/// How far an instant selector looks back for a sample.
pub const LOOKBACK: SimDuration = SimDuration::from_secs(300);

/// A query, read once and evaluated at each read of the metric.
#[derive(Clone, Debug)]
pub struct Query(Node);

/// What is wrong with a query.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{problem} (character {position})")]
pub struct QueryError {
    /// What is wrong.
    pub problem: String,
    /// Where, in characters from the start, counted from 1.
    pub position: usize,
}

/// Why a query that could be read gives no value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EvaluationError {
    /// Two series on one side of an operator have the labels that are matched on.
    #[error("found duplicate series for the match group {0} on one side of an operator")]
    ManyToMany(String),
}

/// One sample of a series.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// When it was scraped.
    pub at: SimTime,
    /// Its value.
    pub value: f64,
}

/// A series.
#[derive(Clone, Copy, Debug)]
pub struct SeriesView<'a> {
    /// Its labels, without the name.
    pub labels: &'a Labels,
    /// Its samples, oldest first.
    pub points: &'a [Point],
    /// From when on it counts as ended, if it has.
    pub ended: Option<SimTime>,
}

/// Where a query finds its series.
pub trait SeriesSource {
    /// Shows every series called `name`, in an order that depends on nothing but the series.
    fn visit(&self, name: &str, visit: &mut dyn FnMut(SeriesView<'_>));
}

/// One element of a result.
#[derive(Clone, PartialEq, Debug)]
pub struct Element {
    /// Its labels.
    pub labels: Labels,
    /// Its value.
    pub value: f64,
}

/// The result of a query.
#[derive(Clone, PartialEq, Debug)]
pub enum QueryValue {
    /// One number without labels.
    Scalar(f64),
    /// Elements, each with labels of its own.
    Vector(Vec<Element>),
}

impl Query {
    /// Reads a query.
    ///
    /// # Errors
    /// It is no PromQL, or contains something that is not supported.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        parser::parse(text).map(Self)
    }

    /// The result at `now`.
    ///
    /// # Errors
    /// Series cannot be matched one to one.
    pub fn evaluate(&self, source: &dyn SeriesSource, now: SimTime) -> Result<QueryValue, EvaluationError> {
        evaluation::evaluate(&self.0, source, now)
    }

    /// Whether the result is a number without labels, which Prometheus answers in another form than series.
    pub fn is_scalar(&self) -> bool {
        self.0.is_scalar()
    }

    /// The names of the series that the query selects, in order of appearance, each once.
    pub fn series_names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.0.visit_selectors(&mut |selector, _| {
            if !names.contains(&selector.name.as_str()) {
                names.push(selector.name.as_str());
            }
        });
        names
    }

    /// Counters (by their name, `..._total`) that the query uses as they are, not their rate or increase: such a value never
    /// falls while its series live.
    pub fn bare_counters(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.0.visit_selectors(&mut |selector, ranged| {
            if !ranged && selector.name.ends_with("_total") && !names.contains(&selector.name.as_str()) {
                names.push(selector.name.as_str());
            }
        });
        names
    }

    /// The longest time before the instant of a query that it looks at.
    pub fn reach(&self) -> SimDuration {
        let mut longest = LOOKBACK;
        self.0.visit_reaches(&mut |reach| longest = longest.max(reach));
        longest
    }
}

#[cfg(test)]
mod tests;

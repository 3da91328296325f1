//! As many seeds as it takes: looks after so many seeds, twice as many, and so on, until what is asked is sure.
//!
//! Who looks often enough at an interval of 95 % finds it beside the truth some time. So each look has a wider interval: all looks together
//! are beside it in at most 5 % of cases (Bonferroni's inequality). After how many seeds it is looked depends on nothing but how many there
//! may be, so the answer is the same whatever the threads.

use serde::{Deserialize, Serialize};

use super::comparison::Comparison;
use super::figures::find;
use super::points::Point;
use super::statistics::{Estimate, mean};

/// Seeds of the first look: with fewer the spread is hardly known.
const FIRST: u32 = 5;

/// How a comparison went that ends when its differences are sure.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sequential {
    /// A difference that is surely below this share of the first policy's cost needs no sign.
    pub share: f64,
    /// Most replications.
    pub replications_max: u64,
    /// The share of cases in which the interval of each look covers the true difference.
    pub confidence: f64,
    /// Whether each difference of cost was sure in the end.
    pub sure: bool,
}

/// After how many seeds it is looked, of at most `most`.
pub fn looks(most: u32) -> Vec<u32> {
    let doubled = std::iter::successors(Some(FIRST), |count| count.checked_mul(2));
    doubled.take_while(|count| *count < most).chain(std::iter::once(most)).collect()
}

/// A figure of `points` less that of `base`, whose points are in the same order of seeds, over the seeds that both have; `None` where neither
/// had anything to measure.
pub(super) fn difference(base: &[&Point], points: &[&Point], figure: usize, confidence: f64) -> Option<Estimate> {
    let value = |point: &&Point| point.figures.get(figure).copied().flatten();
    let pairs = base.iter().zip(points).filter_map(|(base, point)| Some(value(point)? - value(base)?));
    Estimate::with_confidence(&pairs.collect::<Vec<f64>>(), confidence)
}

/// Whether each cost that can be held against the first policy's is known to be higher, to be lower, or to differ by less than `share` of it.
pub fn is_sure(comparison: &Comparison, share: f64, confidence: f64) -> bool {
    let Some((cost, _)) = find("cost") else { return false };
    let of = |position: usize| -> Vec<&Point> {
        let name = comparison.policies.get(position).map(|policy| policy.name.as_str());
        comparison.points.iter().filter(|point| Some(point.policy.as_str()) == name).collect()
    };
    let base = of(0);
    let costs: Vec<f64> = base.iter().filter_map(|point| point.figures.get(cost).copied().flatten()).collect();
    let least = share * mean(&costs).unwrap_or(0.0);
    let is_known = |estimate: &Estimate| {
        let small = estimate.low.zip(estimate.high).is_some_and(|(low, high)| low > -least && high < least);
        estimate.excludes_zero() || small
    };
    let mut all = comparison.comparable();
    all.all(|position| {
        difference(&base, &of(position), cost, confidence).is_some_and(|difference| is_known(&difference))
    })
}

#[cfg(test)]
mod tests {
    use super::looks;
    use crate::statistics::{Estimate, confidence_per_look};
    use nodecast_engine::Streams;

    #[test]
    fn looks_double_up_to_the_most() {
        assert_eq!(looks(3), [3]);
        assert_eq!(looks(5), [5]);
        assert_eq!(looks(30), [5, 10, 20, 30]);
        assert_eq!(looks(40), [5, 10, 20, 40]);
    }

    /// How often one of the looks at noise without any mean takes a sign for sure.
    fn wrong(confidence: f64) -> usize {
        let all = looks(160);
        let wrong = |problem: &u64| {
            let mut stream = Streams::new(*problem).stream("looks", "");
            let noise: Vec<f64> = (0..160).map(|_| stream.normal()).collect();
            let sure = |count: &u32| {
                let estimate = Estimate::with_confidence(&noise[..*count as usize], confidence);
                estimate.is_some_and(|estimate| estimate.excludes_zero())
            };
            all.iter().any(sure)
        };
        (0..2_000).filter(wrong).count()
    }

    #[test]
    fn all_looks_together_are_as_sure_as_one() {
        let (once, together) = (wrong(0.95), wrong(confidence_per_look(looks(160).len())));
        assert!(once > 240 && together < 100, "{once} and {together} of 2,000");
    }
}

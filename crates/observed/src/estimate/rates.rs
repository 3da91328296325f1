//! How often something happens while something runs: events over exposure.

use super::Estimate;
use super::distributions::{chi_square_quantile, gamma_quantile};

/// What ran for how long, and how often it ended by the event.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub struct Exposed {
    /// Hours of everything that ran, to the event or to any other end.
    pub hours: f64,
    /// Events.
    pub events: usize,
}

/// Events per hour.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct Rate {
    /// What it comes from.
    pub exposed: Exposed,
    /// Events over hours, with the exact 95 % interval by the chi-square distribution.
    pub per_hour: Estimate,
}

/// The rate of what happened in the time; `None` without any time.
///
/// The interval is `[X(0.025, 2d), X(0.975, 2d + 2)] / 2E` of `d` events in `E` hours. Without an event its upper end is the rate
/// that would show none with a probability of 5 %, `3.0 / E`.
pub fn rate(exposed: Exposed) -> Option<Rate> {
    let Exposed { hours, events } = exposed;
    if hours.is_nan() || hours <= 0.0 {
        return None;
    }
    let d = events as f64;
    let high = if events == 0 { 0.95 } else { 0.975 };
    let per_hour = Estimate {
        value: d / hours,
        low: chi_square_quantile(0.025, 2.0 * d) / (2.0 * hours),
        high: chi_square_quantile(high, 2.0 * d + 2.0) / (2.0 * hours),
        n: events,
    };
    Some(Rate { exposed, per_hour })
}

/// The rate of what happened in groups; `None` without any time.
///
/// Each event counts, so that the value has no bias however many come together. The interval is that of as many events by themselves as
/// spread a count as far: sizes of groups that come one by one make the variance of their sum the sum of the squares.
pub fn rate_in_groups(hours: f64, groups: &Groups) -> Option<Rate> {
    let single = rate(Exposed { hours, events: groups.events })?;
    if groups.events <= groups.groups {
        return Some(single);
    }
    let value = single.per_hour.value;
    let of =
        |share: f64, more: f64| chi_square_quantile(share, 2.0 * groups.effective + more) / (2.0 * groups.effective);
    let per_hour = Estimate { low: value * of(0.025, 0.0), high: value * of(0.975, 2.0), ..single.per_hour };
    Some(Rate { per_hour, ..single })
}

/// What is assumed of a rate before anything is seen: a gamma distribution.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct GammaPrior {
    /// Its mean, events per hour.
    pub per_hour: f64,
    /// Its weight: as if it came from so many hours.
    pub hours: f64,
}

impl GammaPrior {
    /// The rate that is believed after what was seen, with its 95 % credible interval: `(r0 w + d) / (w + E)`.
    pub fn posterior(&self, exposed: Exposed) -> Estimate {
        let shape = self.per_hour * self.hours + exposed.events as f64;
        let hours = self.hours + exposed.hours;
        Estimate {
            value: shape / hours,
            low: gamma_quantile(0.025, shape) / hours,
            high: gamma_quantile(0.975, shape) / hours,
            n: exposed.events,
        }
    }
}

/// Pools that have to have had an event before their differences tell anything.
const POOLS_MIN: usize = 5;
/// The least weight of a prior that is fitted to pools, in hours.
const HOURS_MIN: f64 = 100.0;

/// The prior that the cluster's pools make for each other, by the method of moments; `None` where fewer than five had an event.
///
/// The mean is that of all pools together. Their rates differ by more than chance would make them; the rest is the variance of the
/// prior, `mean / weight`.
pub fn empirical_bayes(pools: &[Exposed]) -> Option<GammaPrior> {
    let running: Vec<Exposed> = pools.iter().filter(|pool| pool.hours > 0.0).copied().collect();
    if running.iter().filter(|pool| pool.events > 0).count() < POOLS_MIN {
        return None;
    }
    let hours: f64 = running.iter().map(|pool| pool.hours).sum();
    let events: f64 = running.iter().map(|pool| pool.events as f64).sum();
    let mean = events / hours;
    // Weighted by exposure: E[sum of E (r - mean)²] = (pools - 1) mean + variance (E - sum of E² / E).
    let squares = |pool: &Exposed| {
        let rate = pool.events as f64 / pool.hours;
        pool.hours * (rate - mean) * (rate - mean)
    };
    let scatter: f64 = running.iter().map(squares).sum();
    let effective = hours - running.iter().map(|pool| pool.hours * pool.hours).sum::<f64>() / hours;
    let variance = (scatter - (running.len() - 1) as f64 * mean) / effective;
    let weight = if variance > 0.0 { (mean / variance).max(HOURS_MIN) } else { hours.max(HOURS_MIN) };
    Some(GammaPrior { per_hour: mean, hours: weight })
}

/// Events that came together.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct Groups {
    /// How many groups.
    pub groups: usize,
    /// Events in the largest.
    pub largest: usize,
    /// Events in all of them.
    pub events: usize,
    /// As many events by themselves would tell as much: the square of their number over the sum of the squares of sizes.
    pub effective: f64,
}

/// Groups of events: those of one pool that are at most `within` seconds apart are one. `events` are pools with instants in seconds.
pub fn groups<P: Ord + Clone>(events: &[(P, f64)], within: f64) -> Groups {
    let mut sorted: Vec<&(P, f64)> = events.iter().collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let (mut groups, mut largest, mut size, mut squares) = (0, 0, 0, 0.0);
    for (position, event) in sorted.iter().enumerate() {
        let before = position.checked_sub(1).map(|before| sorted[before]);
        let together = before.is_some_and(|before| before.0 == event.0 && event.1 - before.1 <= within);
        size = if together { size + 1 } else { 1 };
        groups += usize::from(!together);
        largest = largest.max(size);
        // What a group's square grows by with its next event.
        squares += (2 * size - 1) as f64;
    }
    let events = sorted.len() as f64;
    let effective = if sorted.is_empty() { 0.0 } else { events * events / squares };
    Groups { groups, largest, events: sorted.len(), effective }
}

#[cfg(test)]
mod tests {
    use super::{Exposed, GammaPrior, empirical_bayes, groups, rate, rate_in_groups};

    /// One reclaim in 43 hours of a cluster whose default is 0.0007 per hour.
    #[test]
    fn one_event_is_no_evidence() {
        let exposed = Exposed { hours: 43.0, events: 1 };
        let raw = rate(exposed).unwrap().per_hour;
        assert!((raw.value - 0.023).abs() < 0.000_5, "{raw:?}");
        assert!((raw.low - 0.000_6).abs() < 0.000_05 && (raw.high - 0.13).abs() < 0.000_5, "{raw:?}");
        let shrunk = GammaPrior { per_hour: 0.000_7, hours: 300.0 }.posterior(exposed);
        assert!((shrunk.value - 0.003_5).abs() < 0.000_05, "{shrunk:?}");
        assert!(shrunk.holds(shrunk.value));
    }

    #[test]
    fn no_event_says_something_too() {
        let none = rate(Exposed { hours: 1_000.0, events: 0 }).unwrap().per_hour;
        assert!(none.low < 1e-300 && (none.high - 0.003).abs() < 0.000_01, "{none:?}");
        assert_eq!(rate(Exposed::default()), None);
    }

    #[test]
    fn clustered_events_widen_rate_uncertainty() {
        let apart: Vec<(&str, f64)> = (0..40).map(|number| ("a", f64::from(number) * 3_600.0)).collect();
        let together: Vec<(&str, f64)> = (0..40).map(|number| ("a", f64::from(number / 10) * 3_600.0)).collect();
        let (apart, together) = (groups(&apart, 60.0), groups(&together, 60.0));
        let single = rate(Exposed { hours: 10_000.0, events: 40 }).unwrap();
        assert_eq!(rate_in_groups(10_000.0, &apart), Some(single));
        let grouped = rate_in_groups(10_000.0, &together).unwrap().per_hour;
        let four = rate(Exposed { hours: 1_000.0, events: 4 }).unwrap().per_hour;
        assert!(
            (grouped.value - 0.004).abs() < 1e-12 && (grouped.high - four.high).abs() < 1e-9,
            "{grouped:?} {four:?}"
        );
        assert!(grouped.low < single.per_hour.low && grouped.holds(grouped.value), "{grouped:?}");
    }

    #[test]
    fn differing_pools_give_weak_prior() {
        let pools = |events: [usize; 6]| events.map(|events| Exposed { hours: 1_000.0, events });
        let unlike = empirical_bayes(&pools([1, 2, 40, 1, 3, 35])).unwrap();
        let alike = empirical_bayes(&pools([10, 11, 9, 10, 12, 10])).unwrap();
        assert!(unlike.hours < 200.0 && alike.hours > 1_000.0, "{unlike:?} {alike:?}");
        assert_eq!(empirical_bayes(&pools([0, 0, 1, 1, 1, 1])), None);
    }

    #[test]
    fn nearby_events_form_one_group() {
        let events = [("a", 0.0), ("a", 50.0), ("b", 55.0), ("a", 100.0), ("a", 500.0)];
        let groups = groups(&events, 60.0);
        assert_eq!((groups.groups, groups.largest, groups.events), (3, 3, 5));
        assert!((groups.effective - 25.0 / 11.0).abs() < 1e-12, "{groups:?}");
    }
}

//! The closed loop M/M/c//N: clients that pause between an answer and their next request.
//!
//! While all servers are busy, how many clients pause goes up with every departure and is a Poisson variable cut off at the
//! number of clients. Waits follow from that: one longer than `t` means that the clients that pause and the departures in `t`
//! are together fewer than those that do not fit into the servers. Both are Poisson, so their sum is.
//!
//! Source: L. Kleinrock, Queueing Systems I (1975), section 3.8, for the states; the arrival theorem of Sevcik and Mitrani
//! (1981): a request meets the loop as it is without its own client.

/// Probability that a request of `clients` clients finds all `servers` busy. `offered` is the requests that one client sends
/// during one service if it is never in the queue: the time of a service by the mean pause.
pub fn wait_probability(clients: u32, servers: u32, offered: f64) -> f64 {
    let others = clients.saturating_sub(1);
    if others < servers {
        return 0.0;
    }
    let (others, busy_max) = (f64::from(others), f64::from(servers));
    // How much likelier one request more is in the system than `present`: falls with `present`.
    let up = |present: f64| (others - present) * offered / (present + 1.0).min(busy_max);
    // Where it passes 1 the likeliest state is; the sum goes from there both ways until nothing is added.
    let likeliest = if up(busy_max) >= 1.0 {
        libm::floor(others - busy_max / offered)
    } else {
        libm::floor((others * offered - 1.0) / (1.0 + offered))
    }
    .clamp(0.0, others);
    let (mut waiting, mut all) = (0.0, 0.0);
    let mut add = |present: f64, weight: f64| {
        all += weight;
        if present >= busy_max {
            waiting += weight;
        }
        weight > all * 1e-17
    };
    let (mut present, mut weight) = (likeliest, 1.0);
    while add(present, weight) && present < others {
        weight *= up(present);
        present += 1.0;
    }
    (present, weight) = (likeliest, 1.0);
    while present > 0.0 {
        present -= 1.0;
        weight /= up(present);
        if !add(present, weight) {
            break;
        }
    }
    waiting / all
}

/// Departures that a request which waits has to wait for on average, at most `ahead`, with so many clients `pausing` as
/// [`Closed`](super::ResponseTime::Closed) has it.
pub(super) fn mean_ahead(ahead: u32, pausing: f64) -> f64 {
    let most = f64::from(ahead);
    if pausing <= 0.0 || ahead == 0 {
        return most;
    }
    let last = libm::exp(ln_poisson(most - 1.0, pausing) - ln_at_most(most - 1.0, pausing));
    most - pausing + pausing * last
}

/// Probability that a request which waits is answered within `t` seconds.
pub(super) fn waited_within(ahead: u32, pausing: f64, (departure_rate, service_rate): (f64, f64), t: f64) -> f64 {
    let most = f64::from(ahead) - 1.0;
    let given = ln_at_most(most, pausing);
    let later = pausing + departure_rate * t;
    let still_waits = libm::exp(ln_at_most(most, later) - given);
    let servers = departure_rate / service_rate;
    // Taken up before `t` and served beyond it: the density of the wait times the share of services that last so long. The
    // exponents of both make another Poisson sum, or with one server a power.
    let ln_served_late = if servers < 1.0 + 1e-9 {
        let power = |mean: f64| (most + 1.0) * libm::log(mean);
        let (now, before) = (power(later), power(pausing));
        -later - libm::lgamma(most + 2.0) + now + libm::log1p(-libm::exp(before - now))
    } else {
        let slower = 1.0 - 1.0 / servers;
        -service_rate * t - pausing / servers - (most + 1.0) * libm::log(slower)
            + ln_between(most, pausing * slower, later * slower)
    };
    (1.0 - still_waits - libm::exp(ln_served_late - given)).clamp(0.0, 1.0)
}

/// Logarithm of the probability of `count` at this Poisson mean above 0.
fn ln_poisson(count: f64, mean: f64) -> f64 {
    count * libm::log(mean) - mean - libm::lgamma(count + 1.0)
}

/// Logarithm of the probability of at most `count` at this Poisson mean above 0. The side that is small is summed.
fn ln_at_most(count: f64, mean: f64) -> f64 {
    if mean <= count { libm::log1p(-libm::exp(ln_beyond(count, mean))) } else { ln_tail(count, mean, -1.0) }
}

/// Logarithm of the probability of more than `count` at this Poisson mean above 0.
fn ln_beyond(count: f64, mean: f64) -> f64 {
    if mean <= count { ln_tail(count + 1.0, mean, 1.0) } else { libm::log1p(-libm::exp(ln_at_most(count, mean))) }
}

/// Logarithm of the sum from `count` on away from the mean, up or down by `step`.
fn ln_tail(count: f64, mean: f64, step: f64) -> f64 {
    let (mut place, mut term, mut sum) = (count, 1.0, 1.0);
    while term > sum * 1e-17 && place >= 0.0 {
        term *= if step > 0.0 { mean / (place + 1.0) } else { place / mean };
        place += step;
        sum += term;
    }
    ln_poisson(count, mean) + libm::log(sum)
}

/// Logarithm of the fall of the probability of at most `count` from one Poisson mean to a higher one.
fn ln_between(count: f64, low: f64, high: f64) -> f64 {
    let (more, less) = if low > count {
        (ln_at_most(count, low), ln_at_most(count, high))
    } else {
        (ln_beyond(count, high), ln_beyond(count, low))
    };
    more + libm::log1p(-libm::exp(less - more))
}

#[cfg(test)]
mod tests {
    use super::super::ResponseTime;
    use super::wait_probability;

    /// The states of the loop by their definition, for `clients` clients on `servers` servers.
    fn states(clients: u32, servers: u32, offered: f64) -> Vec<f64> {
        let mut states = vec![1.0];
        for present in 0..clients {
            let up = f64::from(clients - present) * offered / f64::from((present + 1).min(servers));
            states.push(states[present as usize] * up);
        }
        let sum: f64 = states.iter().sum();
        states.iter().map(|state| state / sum).collect()
    }

    const LOOPS: [(u32, u32, f64); 6] =
        [(2, 1, 0.5), (30, 1, 0.02), (30, 1, 0.2), (100, 16, 0.2), (100, 16, 0.12), (400, 50, 0.11)];

    fn response((clients, servers, offered): (u32, u32, f64)) -> ResponseTime {
        let departure_rate = 10.0 * f64::from(servers);
        ResponseTime::Closed {
            wait_probability: wait_probability(clients, servers, offered),
            ahead: clients - servers,
            pausing: departure_rate * 0.1 / offered,
            departure_rate,
            service_rate: 10.0,
        }
    }

    #[test]
    fn closed_loop_arrival_excludes_its_client() {
        for (clients, servers, offered) in LOOPS {
            let expected: f64 = states(clients - 1, servers, offered)[servers as usize..].iter().sum();
            let found = wait_probability(clients, servers, offered);
            assert!((found - expected).abs() < 1e-12, "{clients} on {servers}: {found} against {expected}");
        }
        assert!(wait_probability(16, 16, 5.0) <= 0.0);
        assert!((wait_probability(1_000_000, 10, 1e-3) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn means_are_those_of_littles_law() {
        for (clients, servers, offered) in LOOPS {
            let states = states(clients, servers, offered);
            let present: f64 = states.iter().enumerate().map(|(count, share)| count as f64 * share).sum();
            let busy: f64 =
                states.iter().enumerate().map(|(count, share)| (count as f64).min(f64::from(servers)) * share).sum();
            let (found, expected) = (response((clients, servers, offered)).mean(), present / (busy * 10.0));
            assert!((found / expected - 1.0).abs() < 1e-9, "{clients} on {servers}: {found} against {expected}");
        }
    }

    #[test]
    fn the_distribution_has_the_mean() {
        for one in LOOPS {
            let response = response(one);
            // The integral of what exceeds, in steps of a thousandth of the mean.
            let step = response.mean() / 1_000.0;
            let sum: f64 = (0..40_000).map(|place| 1.0 - response.within((f64::from(place) + 0.5) * step)).sum();
            assert!((sum * step / response.mean() - 1.0).abs() < 1e-4, "{one:?}: {} {}", sum * step, response.mean());
        }
    }
}

//! Closed forms of queueing theory: the open M/M/c queue and the closed M/M/c//N loop.

pub mod closed;

/// The response time of a queue in equilibrium.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ResponseTime {
    /// Open queue: with probability `wait_probability` an exponential wait at `drain_rate` per second, then an
    /// exponential service at `service_rate` per second.
    Open {
        /// Probability that a request waits (Erlang C).
        wait_probability: f64,
        /// Rate at which a waiting request's wait ends: servers x service rate - arrival rate.
        drain_rate: f64,
        /// Service rate of one server.
        service_rate: f64,
        /// A wait that everybody has on top: the backlog's.
        extra_wait: f64,
    },
    /// Closed loop: with probability `wait_probability` a wait for departures at `departure_rate` per second, then an
    /// exponential service at `service_rate`.
    Closed {
        /// Probability that a request finds all servers busy.
        wait_probability: f64,
        /// Departures that a request waits for at most: when no other client pauses.
        ahead: u32,
        /// Clients that would pause on average if their number had no bound and all servers were busy: departures per
        /// second times the pause.
        pausing: f64,
        /// Departures per second while all servers are busy.
        departure_rate: f64,
        /// Service rate of one server.
        service_rate: f64,
    },
}

impl ResponseTime {
    /// Mean wait in seconds before a request is taken up.
    pub fn mean_wait(&self) -> f64 {
        match *self {
            Self::Open { wait_probability, drain_rate, extra_wait, .. } => extra_wait + wait_probability / drain_rate,
            Self::Closed { wait_probability, ahead, pausing, departure_rate, .. } => {
                wait_probability * closed::mean_ahead(ahead, pausing) / departure_rate
            }
        }
    }

    /// Mean in seconds.
    pub fn mean(&self) -> f64 {
        self.mean_wait() + 1.0 / self.service_rate()
    }

    /// Probability that an open queue takes a request up later than `seconds`; what waits in a backlog does not count.
    pub fn wait_beyond(&self, seconds: f64) -> f64 {
        match *self {
            Self::Open { wait_probability, drain_rate, extra_wait, .. } if extra_wait <= 0.0 => {
                wait_probability * libm::exp(-drain_rate * seconds)
            }
            Self::Open { .. } | Self::Closed { .. } => 0.0,
        }
    }

    /// Probability of a response within `seconds`.
    pub fn within(&self, seconds: f64) -> f64 {
        match *self {
            Self::Open { wait_probability, drain_rate, service_rate, extra_wait } => {
                let t = seconds - extra_wait;
                if t <= 0.0 {
                    return 0.0;
                }
                open_within(wait_probability, drain_rate, service_rate, (t, libm::exp(-service_rate * t)))
            }
            Self::Closed { wait_probability, ahead, pausing, departure_rate, service_rate } => {
                if seconds <= 0.0 {
                    return 0.0;
                }
                let at_once = 1.0 - libm::exp(-service_rate * seconds);
                if wait_probability <= 0.0 {
                    return at_once;
                }
                let waited = if pausing > 0.0 {
                    closed::waited_within(ahead, pausing, (departure_rate, service_rate), seconds)
                } else {
                    erlang_then_exponential(ahead, departure_rate, service_rate, seconds)
                };
                (1.0 - wait_probability) * at_once + wait_probability * waited
            }
        }
    }

    /// The same for a caller who knows `still_served`, e to the minus `seconds` times the service rate: for many times and
    /// few rates it is worked out once.
    pub fn within_given(&self, seconds: f64, still_served: f64) -> f64 {
        match *self {
            Self::Open { wait_probability, drain_rate, service_rate, extra_wait }
                if extra_wait <= 0.0 && seconds > 0.0 =>
            {
                open_within(wait_probability, drain_rate, service_rate, (seconds, still_served))
            }
            _ => self.within(seconds),
        }
    }

    /// The rate at which waits of an open queue without a backlog end, where some wait and the rate is one percent or more from that of
    /// service: nearer to it the difference of their decays is known too coarsely.
    pub fn drain_apart(&self) -> Option<f64> {
        match *self {
            Self::Open { wait_probability, drain_rate, service_rate, extra_wait }
                if wait_probability > 0.0
                    && extra_wait <= 0.0
                    && (drain_rate - service_rate).abs() >= 0.01 * drain_rate =>
            {
                Some(drain_rate)
            }
            Self::Open { .. } | Self::Closed { .. } => None,
        }
    }

    /// Probability of a response within a time for a caller who knows what share of services and of waits of such a queue
    /// ([`Self::drain_apart`]) last longer; 0 for other queues.
    pub fn within_both(&self, still_served: f64, still_waiting: f64) -> f64 {
        let Self::Open { wait_probability, drain_rate, service_rate, .. } = *self else { return 0.0 };
        let left = (drain_rate * still_served - service_rate * still_waiting) / (drain_rate - service_rate);
        (1.0 - wait_probability) * (1.0 - still_served) + wait_probability * (1.0 - left).clamp(0.0, 1.0)
    }

    /// A time in seconds that every response takes longer than: what all have waited before they stand in the queue.
    pub fn least_seconds(&self) -> f64 {
        match *self {
            Self::Open { extra_wait, .. } => extra_wait,
            Self::Closed { .. } => 0.0,
        }
    }

    /// The service rate of one server of an open queue in which nobody waits for others than those of its backlog.
    pub fn rate_without_waits(&self) -> Option<f64> {
        match *self {
            Self::Open { wait_probability, service_rate, .. } if wait_probability <= 0.0 => Some(service_rate),
            Self::Open { .. } | Self::Closed { .. } => None,
        }
    }

    /// The service rate of one server.
    pub fn service_rate(&self) -> f64 {
        match *self {
            Self::Open { service_rate, .. } | Self::Closed { service_rate, .. } => service_rate,
        }
    }

    /// The time in seconds within which a share `p` of requests is answered; where some wait, to one part in 10⁹.
    pub fn quantile(&self, p: f64) -> f64 {
        if let Self::Open { wait_probability, drain_rate, service_rate, extra_wait } = *self {
            if wait_probability <= 0.0 {
                return extra_wait - libm::log(1.0 - p) / service_rate;
            }
            return extra_wait + open_quantile(wait_probability, drain_rate, service_rate, 1.0 - p);
        }
        let mut high = self.mean().max(1e-9);
        while self.within(high) < p && high < 1e12 {
            high *= 2.0;
        }
        let mut low = 0.0;
        while high - low > high * 1e-9 {
            let middle = 0.5 * (low + high);
            if self.within(middle) < p { low = middle } else { high = middle }
        }
        high
    }
}

/// Probability that a request to `servers` busy for `offered` Erlang has to wait (Erlang C); 1 at or above capacity, 0 below
/// a millionth of a millionth.
///
/// Source: A. K. Erlang (1917). The reciprocal of the loss probability is summed from its last term on, which ends early
/// where hardly anybody waits.
pub fn wait_probability(servers: u32, offered: f64) -> f64 {
    if servers == 0 || offered >= f64::from(servers) {
        return 1.0;
    }
    if offered <= 0.0 {
        return 0.0;
    }
    let each = 1.0 / offered;
    let (mut sum, mut term, mut left) = (1.0, 1.0, f64::from(servers));
    while left > 0.0 {
        term *= left * each;
        sum += term;
        left -= 1.0;
        if sum > 1e12 {
            return 0.0;
        }
        if left < offered && term < sum * 1e-17 {
            break;
        }
    }
    let loss = 1.0 / sum;
    let utilisation = offered / f64::from(servers);
    loss / (1.0 - utilisation * (1.0 - loss))
}

/// Probability that an open queue without a backlog answers within `t`, given e to the minus `t` times the service rate.
fn open_within(wait_probability: f64, drain_rate: f64, service_rate: f64, (t, still_served): (f64, f64)) -> f64 {
    let served = 1.0 - still_served;
    if wait_probability <= 0.0 {
        return served;
    }
    let waited_and_served = two_stages_within(drain_rate, service_rate, (t, still_served));
    (1.0 - wait_probability) * served + wait_probability * waited_and_served
}

/// The time that a share `beyond` of the answers of such a queue exceeds, to one part in 10⁹: Newton's steps on the logarithm
/// of the share, which is nearly a straight line, kept within bounds that close in.
fn open_quantile(wait_probability: f64, drain_rate: f64, service_rate: f64, beyond: f64) -> f64 {
    let longer = |t: f64| {
        let still_served = libm::exp(-service_rate * t);
        let density = (1.0 - wait_probability) * service_rate * still_served
            + wait_probability * two_stages_density(drain_rate, service_rate, (t, still_served));
        (1.0 - open_within(wait_probability, drain_rate, service_rate, (t, still_served)), density)
    };
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut t = -libm::log(beyond) / service_rate.min(drain_rate);
    for _ in 0..200 {
        let (share, density) = longer(t);
        if share > beyond {
            low = t
        } else {
            high = t
        }
        let step = libm::log(share / beyond) * share / density;
        let middle = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * t };
        let next = if step.is_finite() && low < t + step && t + step < high { t + step } else { middle };
        if (next - t).abs() <= t * 1e-10 || high - low <= high * 1e-9 {
            return next;
        }
        t = next;
    }
    t
}

/// Probability that an exponential stage at `rate`, then one at `last_rate`, end within `t`, given e to the minus `t` times
/// `last_rate`.
fn two_stages_within(rate: f64, last_rate: f64, (t, still_last): (f64, f64)) -> f64 {
    let difference = rate - last_rate;
    if difference.abs() < 1e-6 * rate {
        return erlang_within(2, rate, t);
    }
    let left = (rate * still_last - last_rate * libm::exp(-rate * t)) / difference;
    (1.0 - left).clamp(0.0, 1.0)
}

/// The density of the same.
fn two_stages_density(rate: f64, last_rate: f64, (t, still_last): (f64, f64)) -> f64 {
    let difference = rate - last_rate;
    if difference.abs() < 1e-6 * rate {
        return rate * rate * t * still_last;
    }
    rate * last_rate * (still_last - libm::exp(-rate * t)) / difference
}

/// Probability that `count` exponential stages at `rate`, then one at `last_rate`, end within `t`.
fn erlang_then_exponential(count: u32, rate: f64, last_rate: f64, t: f64) -> f64 {
    if t <= 0.0 {
        return 0.0;
    }
    if count == 0 {
        return 1.0 - libm::exp(-last_rate * t);
    }
    let difference = rate - last_rate;
    if difference.abs() < 1e-9 * rate {
        return erlang_within(count + 1, rate, t);
    }
    if difference < 0.0 {
        // The closed form below alternates in sign here; integrate over the last stage instead.
        return erlang_then_fast_exponential(count, rate, last_rate, t);
    }
    // P(sum <= t) = P(E <= t) - (rate/difference)^count e^(-last_rate t) P(Erlang(count, difference) <= t)
    let log_factor = f64::from(count) * libm::log(rate / difference) - last_rate * t;
    let tail = erlang_within(count, difference, t);
    let correction = if tail > 0.0 { libm::exp(log_factor + libm::log(tail)) } else { 0.0 };
    (erlang_within(count, rate, t) - correction).clamp(0.0, 1.0)
}

/// As above for a last stage faster than the others, by Simpson's rule over the last stage's duration.
fn erlang_then_fast_exponential(count: u32, rate: f64, last_rate: f64, t: f64) -> f64 {
    let steps = 200;
    let end = t.min(40.0 / last_rate);
    let width = end / f64::from(steps);
    let value = |u: f64| last_rate * libm::exp(-last_rate * u) * erlang_within(count, rate, t - u);
    let mut sum = value(0.0) + value(end);
    for step in 1..steps {
        sum += value(f64::from(step) * width) * if step % 2 == 1 { 4.0 } else { 2.0 };
    }
    (sum * width / 3.0).clamp(0.0, 1.0)
}

/// Probability that `count` exponential stages at `rate` end within `t`: one minus a Poisson sum.
fn erlang_within(count: u32, rate: f64, t: f64) -> f64 {
    if t <= 0.0 {
        return 0.0;
    }
    let mean = rate * t;
    // Sum whichever side of the Poisson distribution is small, so that no digits cancel.
    if mean < f64::from(count) {
        let mut log_term = -mean + f64::from(count) * libm::log(mean) - libm::lgamma(f64::from(count) + 1.0);
        let mut sum = 0.0;
        let mut stage = count;
        loop {
            let term = libm::exp(log_term);
            sum += term;
            if term <= sum * 1e-17 || stage > count + 100_000 {
                return sum.min(1.0);
            }
            stage += 1;
            log_term += libm::log(mean / f64::from(stage));
        }
    }
    let mut log_term = -mean;
    let mut sum = libm::exp(log_term);
    for stage in 1..count {
        log_term += libm::log(mean / f64::from(stage));
        sum += libm::exp(log_term);
    }
    (1.0 - sum).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::{ResponseTime, wait_probability};
    use nodecast_engine::Streams;

    #[test]
    fn erlang_c_matches_tabled_values() {
        assert!((wait_probability(1, 0.5) - 0.5).abs() < 1e-12);
        assert!((wait_probability(2, 1.0) - 1.0 / 3.0).abs() < 1e-12);
        assert!((wait_probability(10, 8.0) - 0.409_180_208).abs() < 1e-6);
        assert!((wait_probability(3, 3.0) - 1.0).abs() < 1e-12);
    }

    /// A closed loop without pauses on sixteen servers.
    fn closed(wait_probability: f64, ahead: u32) -> ResponseTime {
        ResponseTime::Closed { wait_probability, ahead, pausing: 0.0, departure_rate: 160.0, service_rate: 10.0 }
    }

    #[test]
    fn distributions_agree_with_draws() {
        let cases = [
            ResponseTime::Open { wait_probability: 0.4, drain_rate: 2.0, service_rate: 5.0, extra_wait: 0.1 },
            ResponseTime::Open { wait_probability: 0.4, drain_rate: 9.0, service_rate: 5.0, extra_wait: 0.0 },
            closed(1.0, 84),
            closed(0.0, 0),
            ResponseTime::Open { wait_probability: 0.0, drain_rate: 9.0, service_rate: 5.0, extra_wait: 0.3 },
        ];
        let mut stream = Streams::new(3).stream("queueing", "");
        for case in cases {
            let mut draws: Vec<f64> = (0..40_000)
                .map(|_| match case {
                    ResponseTime::Open { wait_probability, drain_rate, service_rate, extra_wait } => {
                        let wait =
                            if stream.happens(wait_probability) { stream.exponential(1.0 / drain_rate) } else { 0.0 };
                        extra_wait + wait + stream.exponential(1.0 / service_rate)
                    }
                    ResponseTime::Closed { ahead, departure_rate, service_rate, .. } => {
                        let wait: f64 = (0..ahead).map(|_| stream.exponential(1.0 / departure_rate)).sum();
                        wait + stream.exponential(1.0 / service_rate)
                    }
                })
                .collect();
            draws.sort_by(f64::total_cmp);
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            assert!((mean / case.mean() - 1.0).abs() < 0.02, "{case:?}: {mean} against {}", case.mean());
            for (p, index) in [(0.5, 20_000), (0.95, 38_000), (0.99, 39_600)] {
                let ratio = draws[index] / case.quantile(p);
                assert!((ratio - 1.0).abs() < 0.05, "{case:?} p{p}: {ratio}");
            }
        }
    }
}

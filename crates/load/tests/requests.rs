//! The request model: requests one by one against closed forms, the fluid against both, and what clients see when there
//! are too few replicas.

#![allow(clippy::unwrap_used)] // a test that cannot set itself up has failed wherever that happens

use nodecast_engine::Streams;
use nodecast_load::{MemoryUse, Replicas, RequestModel, ResponseTime, Service, Source, Spacing};
use nodecast_model::domain::{SimDuration, SimTime};
use proptest::prelude::*;

/// Four servers that take a tenth of a second each on average: 40 requests per second.
const FOUR_SERVERS: Service = Service {
    cpu_per_request: SimDuration::from_millis(1),
    concurrency: 4,
    base_latency: SimDuration::from_millis(99),
    timeout: None,
    queue_per_replica: None,
    memory: None,
};
const CAPACITY: f64 = 40.0;

/// A hundred requests per second on each replica with one CPU.
const BY_CPU: Service = Service {
    cpu_per_request: SimDuration::from_millis(10),
    concurrency: 16,
    base_latency: SimDuration::from_millis(20),
    ..FOUR_SERVERS
};

fn unlimited(count: u32) -> Replicas {
    Replicas::alike(count, None)
}

fn of_one_cpu(count: u32) -> Replicas {
    Replicas::alike(count, Some(1_000))
}

fn at(seconds: f64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs_f64(seconds)
}

fn exact(service: Service, seed: u64) -> RequestModel {
    let streams = Streams::new(seed);
    RequestModel::exact(service, streams.stream("request-arrival", ""), streams.stream("request-service", ""))
}

/// The closed form of the queue in equilibrium, worked out here once more from Erlang's formula.
fn closed_form(load: f64) -> ResponseTime {
    let offered = 4.0 * load;
    let terms: Vec<f64> = (0..4).map(|k| libm::pow(offered, f64::from(k)) / libm::tgamma(f64::from(k) + 1.0)).collect();
    let last = libm::pow(offered, 4.0) / 24.0 / (1.0 - load);
    let wait_probability = last / (terms.iter().sum::<f64>() + last);
    let service_rate = CAPACITY / 4.0;
    ResponseTime::Open { wait_probability, drain_rate: CAPACITY * (1.0 - load), service_rate, extra_wait: 0.0 }
}

/// Mean and standard error of a figure over batches.
fn estimate(batches: &[f64]) -> (f64, f64) {
    let count = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / count;
    let variance = batches.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0);
    (mean, libm::sqrt(variance / count))
}

/// Mean and 95th percentile of the response time with their standard errors, over 100 batches after a warm-up of two.
fn measured(load: f64, requests: f64) -> [(f64, f64); 2] {
    let mut model = exact(FOUR_SERVERS, 11);
    model.set_replicas(unlimited(1), SimTime::ZERO);
    model.set_source(Source::Open { rate: CAPACITY * load }, SimTime::ZERO);
    let batch = requests / 100.0 / (CAPACITY * load);
    let (mut means, mut tails) = (Vec::new(), Vec::new());
    for number in 0..102 {
        let mut responses = Vec::new();
        model.advance_watching(at(f64::from(number + 1) * batch), &mut |seconds| responses.push(seconds));
        if number >= 2 {
            means.push(responses.iter().sum::<f64>() / responses.len() as f64);
            let rank = responses.len() * 95 / 100;
            tails.push(*responses.select_nth_unstable_by(rank, f64::total_cmp).1);
        }
    }
    assert!(model.completed() > requests);
    [estimate(&means), estimate(&tails)]
}

fn check_against_closed_form(load: f64, requests: f64) {
    let closed = closed_form(load);
    let [mean, tail] = measured(load, requests);
    for (name, (found, error), expected) in [("mean", mean, closed.mean()), ("p95", tail, closed.quantile(0.95))] {
        assert!(error < 0.01 * expected, "{name} at {load}: {found} with an error of {error} says too little");
        assert!((found - expected).abs() < 3.0 * error, "{name} at {load}: {found} +- {error}, closed form {expected}");
    }
}

#[test]
fn exact_requests_match_closed_form_at_light_load() {
    check_against_closed_form(0.3, 1e6);
}

#[test]
fn exact_requests_match_closed_form_at_medium_load() {
    check_against_closed_form(0.6, 1e6);
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn exact_requests_match_closed_form_at_heavy_load() {
    check_against_closed_form(0.9, 1e7);
}

#[test]
fn fluid_model_is_within_5_percent() {
    for load in [0.3, 0.6, 0.9] {
        let mut model = RequestModel::new(FOUR_SERVERS);
        model.set_replicas(unlimited(1), SimTime::ZERO);
        model.set_source(Source::Open { rate: CAPACITY * load }, SimTime::ZERO);
        model.advance(at(3_600.0));
        let closed = closed_form(load);
        let histogram = model.histogram();
        for (found, expected) in
            [(histogram.mean_seconds(), closed.mean()), (histogram.quantile_seconds(0.95), closed.quantile(0.95))]
        {
            assert!((found / expected - 1.0).abs() < 0.05, "{load}: {found}, closed form {expected}");
        }
    }
}

/// A minute of overload on one replica, a minute with two, then what is left of five: completed, given up, refused,
/// mean response time in seconds.
fn episode(mut model: RequestModel) -> [f64; 4] {
    model.set_replicas(of_one_cpu(1), SimTime::ZERO);
    model.set_source(Source::Open { rate: 150.0 }, SimTime::ZERO);
    model.set_replicas(of_one_cpu(2), at(60.0));
    model.set_source(Source::Open { rate: 60.0 }, at(120.0));
    model.set_replicas(of_one_cpu(0), at(200.0));
    model.set_replicas(of_one_cpu(1), at(230.0));
    model.advance(at(300.0));
    let tally = model.tally();
    [tally.completed, tally.timed_out, tally.dropped, model.histogram().mean_seconds()]
}

fn check_agreement(service: Service, tolerance: f64) {
    let runs: Vec<[f64; 4]> = (0..30).map(|seed| episode(exact(service, seed))).collect();
    let fluid = episode(RequestModel::new(service));
    for (position, name) in ["completed", "timed out", "dropped", "mean"].into_iter().enumerate() {
        let (mean, error) = estimate(&runs.iter().map(|run| run[position]).collect::<Vec<_>>());
        let slack = 4.0 * error + tolerance * mean.max(fluid[position]);
        assert!(
            (mean - fluid[position]).abs() <= slack,
            "{name}: {mean} +- {error} one by one, {} fluid",
            fluid[position]
        );
    }
}

#[test]
fn where_the_models_meet_they_agree() {
    check_agreement(BY_CPU, 0.03);
}

#[test]
fn they_agree_on_clients_that_give_up() {
    check_agreement(Service { timeout: Some(SimDuration::from_secs(5)), ..BY_CPU }, 0.05);
}

#[test]
fn they_agree_on_requests_that_are_refused() {
    check_agreement(Service { queue_per_replica: Some(200), ..BY_CPU }, 0.05);
}

#[test]
fn no_request_is_lost_from_the_count() {
    for service in
        [BY_CPU, Service { timeout: Some(SimDuration::from_secs(2)), queue_per_replica: Some(100), ..BY_CPU }]
    {
        for mut model in [RequestModel::new(service), exact(service, 5)] {
            let is_exact = model.is_exact();
            model.set_service(service, Spacing::Even, SimTime::ZERO);
            model.set_source(Source::Open { rate: 120.0 }, SimTime::ZERO);
            for step in 0..60_u32 {
                model.set_replicas(of_one_cpu(step % 4), at(f64::from(step)));
            }
            model.set_source(Source::Idle, at(60.0));
            let tally = model.tally();
            let sum = tally.completed + tally.failed() + model.unanswered();
            assert!((sum - 7_200.0).abs() < 1.5, "exact {is_exact}: {sum} in {tally:?}");
        }
    }
}

#[test]
fn clients_time_out_after_their_patience() {
    let mut model = RequestModel::new(Service { timeout: Some(SimDuration::from_secs(5)), ..BY_CPU });
    model.set_replicas(of_one_cpu(1), SimTime::ZERO);
    model.set_source(Source::Open { rate: 150.0 }, SimTime::ZERO);
    model.advance(at(1_000.0));
    // The queue grows by 50 a second until its head is five seconds old, and then sheds 50 a second.
    assert!((model.backlog() - 750.0).abs() < 1.0, "{}", model.backlog());
    assert!((model.tally().timed_out / 49_250.0 - 1.0).abs() < 0.05, "{}", model.tally().timed_out);
}

#[test]
fn without_ready_replica_clients_wait_until_timeout() {
    let mut model = RequestModel::new(Service { timeout: Some(SimDuration::from_secs(60)), ..BY_CPU });
    model.set_source(Source::Open { rate: 10.0 }, SimTime::ZERO);
    model.set_replicas(of_one_cpu(2), at(45.0));
    model.advance(at(100.0));
    assert!(model.tally().timed_out < 1e-6, "{}", model.tally().timed_out);
    assert!((model.histogram().quantile_seconds(0.99) / 44.0 - 1.0).abs() < 0.1);
}

#[test]
fn refused_requests_follow_the_ready_replicas() {
    let service = Service { queue_per_replica: Some(0), ..BY_CPU };
    let refused = |replicas: u32| {
        let mut model = RequestModel::new(service);
        model.set_replicas(of_one_cpu(replicas), SimTime::ZERO);
        model.set_source(Source::Open { rate: 250.0 }, SimTime::ZERO);
        model.advance(at(100.0));
        libm::round(model.tally().dropped) as i64
    };
    assert_eq!([0, 1, 2, 3].map(refused), [25_000, 15_000, 5_000, 0]);
}

#[test]
fn even_arrivals_wait_less_than_random_ones() {
    let wait = |spacing: &Spacing, mut model: RequestModel| {
        model.set_service(FOUR_SERVERS, spacing.clone(), SimTime::ZERO);
        model.set_replicas(unlimited(1), SimTime::ZERO);
        model.set_source(Source::Open { rate: 36.0 }, SimTime::ZERO);
        model.advance(at(20_000.0));
        model.histogram().mean_seconds() - 0.1
    };
    let fluid = || RequestModel::new(FOUR_SERVERS);
    let ratios = [
        wait(&Spacing::Even, fluid()) / wait(&Spacing::Poisson, fluid()),
        wait(&Spacing::Even, exact(FOUR_SERVERS, 3)) / wait(&Spacing::Poisson, exact(FOUR_SERVERS, 3)),
    ];
    assert!((ratios[0] - 0.5).abs() < 0.01, "{ratios:?}");
    assert!((ratios[1] - 0.5).abs() < 0.1, "{ratios:?}");
}

#[test]
fn listed_requests_arrive_when_the_list_says() {
    let mut model = exact(FOUR_SERVERS, 1);
    let times = [1.0, 1.0, 2.5, 700.0].map(at);
    model.set_service(FOUR_SERVERS, Spacing::Listed(times.to_vec().into()), SimTime::ZERO);
    model.set_replicas(unlimited(1), SimTime::ZERO);
    model.set_source(Source::Open { rate: 2.0 }, SimTime::ZERO);
    let counts = [0.9, 10.0, 699.0, 720.0].map(|seconds| {
        model.advance(at(seconds));
        model.completed() as i64
    });
    assert_eq!(counts, [0, 3, 3, 4]);
}

#[test]
fn memory_follows_the_requests_in_flight() {
    let memory = MemoryUse { idle: 100, per_request: 10, kept_per_million: 0 };
    let mut model = RequestModel::new(Service { memory: Some(memory), ..BY_CPU });
    model.set_replicas(of_one_cpu(2), SimTime::ZERO);
    assert_eq!(model.memory_of_replica(), Some(100));
    // 50 requests per second for 30 ms each are one and a half in flight, on two replicas.
    model.set_source(Source::Open { rate: 50.0 }, SimTime::ZERO);
    assert_eq!(model.memory_of_replica(), Some(108));
    model.set_replicas(of_one_cpu(0), at(10.0));
    model.set_replicas(of_one_cpu(1), at(20.0));
    // 500 wait, three are worked on.
    assert_eq!(model.memory_of_replica(), Some(100 + 10 * 503));
}

#[test]
fn exact_closed_loop_ends_after_last_response() {
    let mut model = exact(BY_CPU, 2);
    model.set_replicas(of_one_cpu(1), SimTime::ZERO);
    model
        .set_source(Source::Closed { clients: 100, remaining: 20_000.0, think_time: SimDuration::ZERO }, SimTime::ZERO);
    let mut now = SimTime::ZERO;
    while !model.is_finished() {
        now = model.next_change(now).unwrap();
        model.advance(now);
    }
    assert!((now.as_secs_f64() / 200.0 - 1.0).abs() < 0.05, "100 a second: {now}");
    assert!((model.histogram().mean_seconds() - 1.0).abs() < 0.05, "Little's law");
    assert!((model.cpu_used_exactly().unwrap() / 200e6 - 1.0).abs() < 0.05);
}

/// Throughput and mean response time of the loop by its states, which are worked out here once more.
fn loop_by_states(clients: u32, think_seconds: f64, servers: u32, service_rate: f64) -> (f64, f64) {
    let mut weights = vec![1.0];
    for present in 0..clients {
        let (asks, answers) =
            (f64::from(clients - present) / think_seconds, f64::from((present + 1).min(servers)) * service_rate);
        weights.push(weights[present as usize] * asks / answers);
    }
    let sum: f64 = weights.iter().sum();
    let mean = |of: &dyn Fn(f64) -> f64| {
        weights.iter().enumerate().map(|(present, weight)| of(present as f64) * weight).sum::<f64>() / sum
    };
    let throughput = service_rate * mean(&|present| present.min(f64::from(servers)));
    (throughput, mean(&|present| present) / throughput)
}

#[test]
fn think_time_clients_match_closed_form() {
    // Four servers of 10 a second each: hardly used, half used, full, overrun.
    for (clients, think_seconds) in [(4, 3.0), (20, 1.0), (44, 1.0), (100, 1.0), (100, 0.2)] {
        let (throughput, mean) = loop_by_states(clients, think_seconds, 4, CAPACITY / 4.0);
        let span = 60_000.0 / throughput;
        let run = |mut model: RequestModel| {
            let think_time = SimDuration::from_secs_f64(think_seconds);
            model.set_replicas(unlimited(1), SimTime::ZERO);
            model.set_source(Source::Closed { clients, remaining: 1e9, think_time }, SimTime::ZERO);
            model.advance(at(span));
            let tally = model.tally();
            let tail = model.histogram().quantile_seconds(0.95);
            [tally.completed / span, model.histogram().mean_seconds(), tail, tally.overloaded.as_secs_f64() / span]
        };
        let fluid = run(RequestModel::new(FOUR_SERVERS));
        assert!((fluid[0] / throughput - 1.0).abs() < 1e-9, "{clients}: {} of {throughput} a second", fluid[0]);
        assert!((fluid[1] / mean - 1.0).abs() < 1e-9, "{clients}: {} for {mean} s", fluid[1]);
        let runs: Vec<[f64; 4]> = (0..4).map(|seed| run(exact(FOUR_SERVERS, seed))).collect();
        for (position, name) in ["throughput", "mean", "p95", "share of time with waiting"].into_iter().enumerate() {
            let (found, error) = estimate(&runs.iter().map(|run| run[position]).collect::<Vec<_>>());
            let slack = 4.0 * error + 0.02 * fluid[position];
            assert!(error <= 0.05 * found.max(0.01), "{name} of {clients}: {found} +- {error} says too little");
            assert!(
                (found - fluid[position]).abs() <= slack,
                "{name} of {clients}: {found}, fluid {}",
                fluid[position]
            );
        }
    }
}

#[test]
fn clients_that_pause_end_after_their_last_answer() {
    let think_time = SimDuration::from_secs(1);
    for mut model in [RequestModel::new(FOUR_SERVERS), exact(FOUR_SERVERS, 4)] {
        model.set_replicas(unlimited(1), SimTime::ZERO);
        model.set_source(Source::Closed { clients: 11, remaining: 2_000.0, think_time }, SimTime::ZERO);
        let mut now = SimTime::ZERO;
        while !model.is_finished() {
            now = model.next_change(now).unwrap();
            model.advance(now);
        }
        // Ten a second, nearly.
        assert!((now.as_secs_f64() / 200.0 - 1.0).abs() < 0.05, "{now}");
        assert!((model.completed() - 2_000.0).abs() < 1e-3);
    }
}

#[test]
fn rejected_closed_loop_client_retries() {
    let mut model = exact(Service { queue_per_replica: Some(0), ..FOUR_SERVERS }, 4);
    model.set_replicas(unlimited(1), SimTime::ZERO);
    let think_time = SimDuration::from_secs(1);
    model.set_source(Source::Closed { clients: 100, remaining: 5_000.0, think_time }, SimTime::ZERO);
    model.advance(at(600.0));
    let tally = model.tally();
    assert!(model.is_finished() && (tally.completed + tally.dropped - 5_000.0).abs() < 1e-6, "{tally:?}");
    assert!(tally.dropped > 2_000.0, "{tally:?}");
}

#[test]
fn mixed_replicas_add_up_their_throughput() {
    // 100 a second for each CPU; the third is bound by its sixteen requests at a time, of 30 ms each.
    let mut replicas = of_one_cpu(1);
    replicas.add(Some(500));
    replicas.add(Some(100_000));
    let expected = 100.0 + 50.0 + 16.0 / 0.03;
    for mut model in [RequestModel::new(BY_CPU), exact(BY_CPU, 3)] {
        model.set_replicas(replicas.clone(), SimTime::ZERO);
        model.set_source(Source::Open { rate: 2_000.0 }, SimTime::ZERO);
        model.advance(at(100.0));
        assert!((model.completed() / 100.0 / expected - 1.0).abs() < 0.02, "{} a second", model.completed() / 100.0);
    }
    replicas.remove(Some(100_000));
    replicas.remove(Some(500));
    assert_eq!(replicas, of_one_cpu(1));
}

#[test]
fn new_tally_resets_responses_and_keeps_queue() {
    for mut model in [RequestModel::new(FOUR_SERVERS), exact(FOUR_SERVERS, 3)] {
        model.set_replicas(unlimited(1), at(0.0));
        model.set_source(Source::Open { rate: 2.0 * CAPACITY }, at(0.0));
        model.advance(at(100.0));
        let (answered, waiting) = (model.completed(), model.backlog());
        assert!(answered > 3_800.0 && waiting > 3_500.0, "{answered} answered, {waiting} wait");
        model.count_anew(at(100.0));
        assert_eq!((model.completed(), model.backlog()), (answered, waiting), "counters go on, and so does the queue");
        assert_eq!((model.tally().completed, model.histogram().total()), (0.0, 0.0));
        assert_eq!(model.tally().overloaded, SimDuration::ZERO);
        assert_eq!(model.tally().first, Some(at(0.0)));
        model.set_source(Source::Idle, at(100.0));
        model.advance(at(400.0));
        let since = model.tally().completed;
        assert!((since - waiting - 4.0).abs() < 5.0, "{since} answered of {waiting} that waited");
        assert!((model.histogram().total() - since).abs() < 1e-6);
        assert!((model.completed() - answered - since).abs() < 1e-6);
    }
}

/// How many requests come in rows of so many seconds at so many a second, where something else changes in the middle of each row.
fn arrived(rows: &[(f64, f64)]) -> f64 {
    let mut model = exact(BY_CPU, 1);
    model.set_service(BY_CPU, Spacing::Even, SimTime::ZERO);
    let mut clock = 0.0;
    for (place, &(seconds, rate)) in rows.iter().enumerate() {
        model.set_source(Source::Open { rate }, at(clock));
        model.set_replicas(unlimited(1 + place as u32 % 3), at(clock + seconds / 2.0));
        clock += seconds;
    }
    model.set_source(Source::Idle, at(clock));
    model.completed() + model.unanswered()
}

#[test]
fn even_arrivals_at_row_ends_are_not_lost() {
    // Four requests of one row, half a request of one row, and one at the very end of each row.
    for (seconds, rate, rows) in [(20.0, 0.2, 90), (5.0, 0.1, 400), (4.0, 0.25, 300), (1.0, 1.0, 500), (60.0, 0.05, 60)]
    {
        let expected = seconds * rate * f64::from(rows);
        let count = arrived(&vec![(seconds, rate); rows as usize]);
        assert!((count - expected).abs() <= 1.0, "{count} of {expected} in rows of {seconds} s at {rate}/s");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 4 / 5, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn even_arrivals_equal_integral_of_rate(
        rows in prop::collection::vec((1_u32..200, prop_oneof![Just(0_u32), 1_u32..40, 100_u32..3_000]), 1..60),
        unit in prop_oneof![Just(1.0), Just(0.5), Just(0.1)],
    ) {
        // Rates in hundredths, so that many arrivals fall on the ends of rows.
        let rows: Vec<(f64, f64)> =
            rows.iter().map(|&(seconds, rate)| (f64::from(seconds) * unit, f64::from(rate) / 100.0)).collect();
        let integral: f64 = rows.iter().map(|(seconds, rate)| seconds * rate).sum();
        let count = arrived(&rows);
        prop_assert!((count - libm::floor(integral + 1e-9)).abs() <= 1.0, "{count} of {integral}");
    }
}

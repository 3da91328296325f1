//! Requests: how they arrive and what one costs.

use super::Value::{Amount, Duration, File, Integer, List, Map, Share, SignedDuration, Words, Workload};
use super::rates;

section! {
    LOAD: "a load", "`load[]`: requests";
    "**Times inside a load count from its own beginning**, not from the start of the run: a load with `at: 10m` whose `requests` have \
     a step with `at: 5m` changes its rate fifteen minutes into the run. From its beginning on a load takes the place of an earlier \
     one on the same workload. [load.md](load.md) explains the model.";
    "load:
  - workload: shop/web
    at: 10m
    for: 6h
    requests: { steps: [{ at: 0s, rate: 20 }, { at: 5m, rate: 90 }] }   # 90 from 15m on
    detail: auto
    service:
      cpu_per_request: 12ms
      concurrency: 16
      base_latency: 20ms
      timeout: 5s
      queue_per_replica: 100
      memory: { idle: 120Mi, per_request: 2Mi, kept_per_million: 50Mi }
";
    {
        "workload" required: Workload, "The Deployment or StatefulSet that serves the requests.";
        "at" default("0s"): Duration,
            "When it begins: from the start of the run, or, under `timeline[].load`, from the step.";
        "for" otherwise("to the end of the run"): Duration, "For how long.";
        "requests" required: Map(&REQUESTS), "How requests arrive.";
        "detail" default("auto"): Words(&["auto", "exact", "fluid"]),
            "Whether requests are simulated one by one: `auto` does up to ten a second and a million in all, and in a `closed_loop` where its clients may fail.";
        "service" required: Map(&SERVICE), "What one request costs.";
    }
}

section! {
    REQUESTS: "`requests`", "`requests`: how they arrive";
    "One kind of rate, and what is done to it: first `speed_up`, then `repeat`, `shift`, `scale`, `growth_per_month`. Rates are requests \
     (or messages) per second. Every time counts from the beginning of the load.";
    "load:
  - workload: shop/web
    requests: { constant: 50, arrivals: even }
    service: &service { cpu_per_request: 12ms, concurrency: 16 }
  - { workload: shop/web, at: 1h, requests: { ramp: { from: 0, to: 200, over: 30m, every: 1m } }, service: *service }
  - { workload: shop/web, at: 2h, requests: { sine: { mean: 100, amplitude: 60, period: 2h, every: 1m } }, service: *service }
  - workload: shop/web
    at: 3h
    requests:
      diurnal: { night: 20, peak: 300, peak_at: 14h, weekend: 60%, time_zone: Europe/Paris, every: 5m }
      growth_per_month: 5%
      uncertainty: { factor: 20%, noise: 10%, noise_every: 60s }
    service: *service
  - { workload: shop/web, at: 4h, requests: { burst: { base: 5, peak: 400, every: 1h, for: 3m, first: 10m } }, service: *service }
  - { workload: shop/web, at: 5h, requests: { csv: rate.csv, speed_up: 4, repeat: 7d, shift: -6h, scale: 1.5 }, service: *service }
  - { workload: shop/web, at: 6h, requests: { trace: arrivals.csv }, service: *service }
  - { workload: shop/web, at: 7h, requests: { prometheus: answer.json }, service: *service }
  - { workload: shop/web, at: 8h, requests: { sum: [{ constant: 5 }, { csv: rate.csv, scale: 0.2 }] }, service: *service }
  - { workload: shop/web, at: 9h, requests: { closed_loop: { clients: 100, requests: 10000, think_time: 2s } }, service: *service }
";
    one_of: &["closed_loop", "constant", "steps", "ramp", "sine", "diurnal", "burst", "csv", "trace", "prometheus", "sum"];
    {
        "closed_loop" otherwise("-"): Map(&CLOSED_LOOP),
            "Clients that each ask again when they are answered, until all requests are done (as `ab -c 100 -n 10000` does). None of the \
             changes below apply.";
        "constant" otherwise("-"): Amount("per second"), "Always the same rate.";
        "steps" otherwise("-"): List(&Map(&rates::STEP)), "Rates, each from its `at` on; 0 before the first.";
        "ramp" otherwise("-"): Map(&rates::RAMP), "A straight line, then on at its last rate.";
        "sine" otherwise("-"): Map(&rates::SINE), "A wave.";
        "diurnal" otherwise("-"): Map(&rates::DIURNAL), "Day and night.";
        "burst" otherwise("-"): Map(&rates::BURST), "A higher rate every so often.";
        "csv" otherwise("-"): File,
            "Rates from a file with the columns `t_seconds` and `requests_per_second`; a row holds until the next.";
        "trace" otherwise("-"): File,
            "Single arrivals from a file with the column `t_seconds`, and perhaps `count`.";
        "prometheus" otherwise("-"): File, "The JSON answer to a range query; its series are added up.";
        "sum" otherwise("-"): List(&Map(&REQUESTS)),
            "The sum of rates, each with changes of its own; `uncertainty` and `arrivals` belong to the whole.";
        "speed_up" default("1"): Amount("factor"), "The shape takes so many times less time; rates stay.";
        "repeat" otherwise("it comes once"): Duration, "What comes in the first so long comes again and again.";
        "shift" default("0s"): SignedDuration, "Everything comes so much later, or earlier (`-6h`).";
        "scale" default("1"): Amount("factor"), "Multiplies rates.";
        "growth_per_month" default("0%"): Share(1_000), "Rates grow so much each month, compounded, from the load's beginning.";
        "uncertainty" otherwise("none"): Map(&UNCERTAINTY), "By how much the demand of one seed differs from the curve.";
        "arrivals" otherwise("at random (`poisson`), those of a trace when it says"): Words(&["poisson", "even"]),
            "Whether arrivals come at random or evenly spaced.";
    }
}

section! {
    CLOSED_LOOP: "`closed_loop`", "`requests.closed_loop`";
    "";
    "";
    {
        "clients" required: Integer(1, 1_000_000), "How many clients.";
        "requests" required: Integer(1, 1_000_000_000_000), "How many requests they send altogether.";
        "think_time" default("0s"): Duration,
            "How long a client pauses on average between an answer and its next request; pauses are exponentially distributed.";
    }
}

section! {
    UNCERTAINTY: "`uncertainty`", "`requests.uncertainty`";
    "Log-normal factors with the mean 1; the shares are standard deviations of the logarithms. One of `factor` and `noise` has to be \
     there.";
    "";
    {
        "factor" otherwise("none"): Share(1_000), "One for the whole run.";
        "noise" otherwise("none"): Share(1_000), "One for every `noise_every`.";
        "noise_every" default("60s"): Duration, "How often noise is drawn.";
    }
}

section! {
    SERVICE: "`service`", "`service`: what one request costs";
    "One queue stands in front of all Ready replicas. The CPU limit of the workload's pods holds.";
    "";
    {
        "cpu_per_request" required: Duration, "CPU time of one request on one whole CPU.";
        "concurrency" required: Integer(1, 1_000_000), "Requests that a replica serves at a time.";
        "base_latency" default("0s"): Duration, "Time of a request that is not CPU time.";
        "timeout" otherwise("clients wait for ever"): Duration, "Clients give up a request that waits longer to be taken up.";
        "queue_per_replica" otherwise("any number"): Integer(0, 1_000_000_000),
            "Requests that may wait for each Ready replica; further ones are refused.";
        "memory" otherwise("as requested, whatever the load"): Map(&MEMORY), "How memory follows load.";
    }
}

section! {
    MEMORY: "`memory`", "`service.memory`";
    "A pod whose containers all have a memory limit is killed when it needs more.";
    "";
    {
        "idle" required: Amount("bytes"), "Without requests.";
        "per_request" default("0"): Amount("bytes"), "For each request that is served or waits.";
        "kept_per_million" default("0"): Amount("bytes"), "What stays for every million requests answered: a cache that fills, or a leak.";
    }
}

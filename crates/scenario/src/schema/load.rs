//! Requests: how they arrive and what one costs; and work that is known by the CPU that it takes.

use super::kind::{Amount, File, Memory, Placed, Positive, Share, Shift, Text, Whole, kind, words};
use super::names::Serving;
use super::rates::{Burst, Diurnal, Ramp, Sine, Steps};
use crate::definition::{Detail, LoadSpec, Requests};
use crate::domain::SimDuration;
use crate::file::load;
use crate::file::load::records::Values;
use nodecast_load::{MemoryUse, Service, Uncertainty};

section! {
    /// **Times inside a load count from its own beginning**, not from the start of the run: a load with `at: 10m`
    /// whose `requests` have a step with `at: 5m` changes its rate fifteen minutes into the run. From its beginning
    /// on a load takes the place of an earlier one on the same workload. [load.md](load.md) explains the model.
    LOAD: "a load", "`load[]`: requests";
    example "load:
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
  - { workload: shop/web, at: 8h, cpu: { diurnal: { night: 0.5, peak: 6 }, scale: 1.2 } }   # cores
";
    one_of ["requests", "cpu"];
    becomes LoadSpec, load::load;
    struct LoadEntry: {
        /// The Deployment or StatefulSet that serves the requests.
        workload: Placed<Serving>;
        /// When it begins: from the start of the run, or, under `timeline[].load`, from the step.
        at: SimDuration = SimDuration::ZERO;
        /// For how long.
        "for" as length: SimDuration, or "to the end of the run";
    } aside {
        /// How requests arrive.
        requests: RequestsKeys, or "-";
        /// How much CPU the workload takes, where nobody counts its requests: as `requests`, with cores in place of
        /// requests per second, without `trace`, `closed_loop` and `arrivals`. Its Ready pods share it, up to what they can use.
        cpu: RequestsKeys, or "-";
    } {
        /// Whether requests are simulated one by one: `auto` does up to ten a second and a million in all, and in a
        /// `closed_loop` where its clients may fail.
        detail: DetailWord = Detail::Auto;
        /// What one request costs; there has to be one with `requests`, and with `cpu` there is none.
        service: Service, or "-";
    }
}

section! {
    /// One kind of rate, and what is done to it: first `speed_up`, then `repeat`, `shift`, `scale`,
    /// `growth_per_month`. Rates are requests (or messages) per second. Every time counts from the beginning of the
    /// load.
    REQUESTS: "`requests`", "`requests`: how they arrive";
    example "load:
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
  - { workload: shop/web, at: 7h10m, requests: { cloudwatch: requests.json, values: totals }, service: *service }
  - { workload: shop/web, at: 7h20m, requests: { datadog: hits.json }, service: *service }
  - { workload: shop/web, at: 7h30m, requests: { csv: grafana.csv, column: requests, scale: 0.001 }, service: *service }
  - { workload: shop/web, at: 8h, requests: { sum: [{ constant: 5 }, { csv: rate.csv, scale: 0.2 }] }, service: *service }
  - { workload: shop/web, at: 9h, requests: { closed_loop: { clients: 100, requests: 10000, think_time: 2s } }, service: *service }
";
    one_of ["closed_loop", "constant", "steps", "ramp", "sine", "diurnal", "burst", "csv", "trace", "prometheus", "cloudwatch", "datadog", "sum"];
    struct RequestsKeys: {} aside {
        /// Clients that each ask again when they are answered, until all requests are done (as `ab -c 100 -n 10000`
        /// does). None of the changes below apply.
        closed_loop: ClosedLoop, or "-";
        /// Always the same rate.
        constant["per second"]: Amount, or "-";
        /// Rates, each from its `at` on; 0 before the first.
        steps: Steps, or "-";
        /// A straight line, then on at its last rate.
        ramp: Ramp, or "-";
        /// A wave.
        sine: Sine, or "-";
        /// Day and night.
        diurnal: Diurnal, or "-";
        /// A higher rate every so often.
        burst: Burst, or "-";
        /// Rates from a file with the columns `t_seconds` and `requests_per_second` (under `cpu`: `cores`); a row holds until
        /// the next.
        csv: File, or "-";
        /// Single arrivals from a file with the column `t_seconds`, and perhaps `count`.
        trace: File, or "-";
        /// The JSON answer to a range query; its series are added up.
        prometheus: File, or "-";
        /// The JSON that `aws cloudwatch get-metric-data` prints; its results are added up.
        cloudwatch: File, or "-";
        /// The JSON answer of Datadog's `/api/v1/query`; its series are added up.
        datadog: File, or "-";
        /// A column of the `csv` whose values count, whatever its title; instants are then read from a column `timestamp`, `time`, `date` or
        /// `datetime`, and counted from the first. A row holds until the next; where rows are missing nothing comes.
        column: Text, or "`csv` has the columns `t_seconds` and `requests_per_second`";
        /// What each value of `cloudwatch`, `datadog` or such a `csv` tells of its period: how much there was in it, or a mean or a rate per
        /// second.
        values: RecordedValues, or "`totals` of requests in `cloudwatch`, else `rates`";
        /// The sum of rates, each with changes of its own; `uncertainty` and `arrivals` belong to the whole.
        sum: Vec<RequestsKeys>, or "-";
        /// The shape takes so many times less time; rates stay.
        speed_up["factor"]: Amount = 1.0;
        /// What comes in the first so long comes again and again.
        repeat: SimDuration, or "it comes once";
        /// Everything comes so much later, or earlier (`-6h`).
        shift: Shift = SimDuration::ZERO;
        /// Multiplies rates.
        scale["factor"]: Amount = 1.0;
        /// Rates grow so much each month, compounded, from the load's beginning.
        growth_per_month: Share<1_000> = 0.0;
        /// By how much the demand of one seed differs from the curve.
        uncertainty: UncertaintyKeys, or "none";
        /// Whether arrivals come at random or evenly spaced.
        arrivals: Spaced, or "at random (`poisson`), those of a trace when it says";
    }
}

section! {
    CLOSED_LOOP: "`closed_loop`", "`requests.closed_loop`";
    becomes Requests, |_, _, own: Self| {
        let Self { clients, requests, think_time } = own;
        Ok(Requests::ClosedLoop { clients, requests, think_time })
    };
    struct ClosedLoop {
        /// How many clients.
        clients: Whole<1, 1_000_000>;
        /// How many requests they send altogether.
        requests: Whole<1, 1_000_000_000_000, u64>;
        /// How long a client pauses on average between an answer and its next request; pauses are exponentially
        /// distributed.
        think_time: SimDuration = SimDuration::ZERO;
    }
}

section! {
    /// Log-normal factors with the mean 1; the shares are standard deviations of the logarithms. One of `factor` and
    /// `noise` has to be there.
    UNCERTAINTY: "`uncertainty`", "`requests.uncertainty`";
    becomes Uncertainty, load::uncertainty;
    struct UncertaintyKeys {
        /// One for the whole run.
        factor: Share<1_000>, or "none";
        /// One for every `noise_every`.
        noise: Share<1_000>, or "none";
        /// How often noise is drawn.
        noise_every: Positive = SimDuration::from_secs(60);
    }
}

section! {
    /// One queue stands in front of all Ready replicas. The CPU limit of the workload's pods holds.
    SERVICE: "`service`", "`service`: what one request costs";
    impl Service {
        /// CPU time of one request on one whole CPU.
        cpu_per_request: CpuTime;
        /// Requests that a replica serves at a time.
        concurrency: Whole<1, 1_000_000>;
        /// Time of a request that is not CPU time.
        base_latency: SimDuration = SimDuration::ZERO;
        /// Clients give up a request that waits longer to be taken up.
        timeout: Positive, or "clients wait for ever";
        /// Requests that may wait for each Ready replica; further ones are refused.
        queue_per_replica: Whole<0, 1_000_000_000>, or "any number";
        /// How memory follows load.
        memory: MemoryUse, or "as requested, whatever the load";
    }
}

section! {
    /// A pod whose containers all have a memory limit is killed when it needs more.
    MEMORY: "`memory`", "`service.memory`";
    impl MemoryUse {
        /// Without requests.
        idle["bytes"]: Memory;
        /// For each request that is served or waits.
        per_request["bytes"]: Memory = 0;
        /// What stays for every million requests answered: a cache that fills, or a leak.
        kept_per_million["bytes"]: Memory = 0;
    }
}

words! {
    /// What a value that was recorded tells.
    RecordedValues: Values, "totals" => Values::Totals, "rates" => Values::Rates
}

words! {
    /// How closely requests are simulated.
    DetailWord: Detail, "auto" => Detail::Auto, "exact" => Detail::Exact, "fluid" => Detail::Fluid
}

words! {
    /// How arrivals are spaced: whether evenly.
    Spaced: bool, "poisson" => false, "even" => true
}

kind! {
    /// CPU time of a request.
    CpuTime: SimDuration, |reading, node, _, time| {
        if time > SimDuration::ZERO {
            return Ok(time);
        }
        Err(reading
            .error(node.at, "a request that costs no CPU never moves an autoscaler")
            .because("zero, or below a microsecond")
            .help("write the CPU time of one request, for example `12ms`"))
    }
}

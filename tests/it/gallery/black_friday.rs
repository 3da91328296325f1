//! `scenarios/black-friday`: what its README says.

use nodecast::report::format;

use super::{Run, has_rows, runs};

/// The longest 99th percentile of response times of any service in an instant sampled within these minutes.
fn slowest_within(run: &Run, from: i64, to: i64) -> f64 {
    let samples = run.outcome.record.samples.iter();
    let within = samples.filter(|sample| (from * 60..to * 60).contains(&sample.at.as_secs()));
    let latency_p99_seconds =
        within.flat_map(|sample| sample.workloads.iter().filter_map(|workload| workload.latency_p99_seconds));
    latency_p99_seconds.fold(0.0, f64::max)
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn calendar_scaling_handles_sudden_crowds_most_cheaply() {
    let all @ [plain, pause, larger, calendar, cautious] = &runs::<5>("black-friday");
    has_rows("black-friday", all, |run| {
        let lost = run.lost();
        let completed: f64 = run.summary.requests.iter().map(|request| request.completed).sum();
        let share = lost / (lost + completed);
        [run.cost(), format::whole(lost), format::percent(share), format::span(run.slowest())]
    });
    // What an autoscaler that takes its time loses, one that looks every 15 s does not lose when the crowd only grows.
    assert!(slowest_within(plain, 87, 102) > 5.0);
    assert!(slowest_within(plain, 120, 240) < 3.0 && slowest_within(cautious, 120, 240) > 5.0);
    assert!(cautious.lost() > 2.0 * plain.lost());
    assert!(pause.lost() > 0.4 * plain.lost() && pause.lost() < 0.8 * plain.lost());
    assert!(larger.lost() < 1.0 && calendar.lost() < 1.0);
    let cost = |run: &Run| run.summary.cost.total;
    assert!(cost(calendar) < 0.8 * cost(larger) && cost(calendar) < 1.3 * cost(plain));
    assert!(cost(cautious) > 0.9 * cost(plain), "what is lost saves little");
    assert!(cost(pause) > 1.2 * cost(calendar), "readiness all day costs more than an entry in the calendar");
}

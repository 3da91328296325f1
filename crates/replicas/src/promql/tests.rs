//! Queries against series whose results are worked out by hand.

use super::{Element, Point, Query, QueryValue, SeriesSource, SeriesView};
use nodecast_model::domain::labels::Labels;
use nodecast_model::domain::{SimDuration, SimTime};

fn at(secs: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(secs)
}

/// Series by name: labels, samples as (second, value), and when it ended.
struct Fixture(Vec<(&'static str, Labels, Vec<Point>, Option<SimTime>)>);

impl SeriesSource for Fixture {
    fn visit(&self, name: &str, visit: &mut dyn FnMut(SeriesView<'_>)) {
        for (_, labels, points, ended) in self.0.iter().filter(|series| series.0 == name) {
            visit(SeriesView { labels, points, ended: *ended });
        }
    }
}

fn series(samples: &[(i64, f64)]) -> Vec<Point> {
    samples.iter().map(|&(secs, value)| Point { at: at(secs), value }).collect()
}

/// Two pods of one app whose counters rise by 2 and 4 a second, scraped every 15 s from second 10 on, one of another app,
/// and one that has ended.
fn fixture() -> Fixture {
    let pod = |app: &'static str, pod: &'static str| Labels::new().with("app", app).with("pod", pod);
    let rising = |slope: f64| series(&(0..8).map(|i| (10 + 15 * i, slope * (10 + 15 * i) as f64)).collect::<Vec<_>>());
    Fixture(vec![
        ("requests_total", pod("web", "a"), rising(2.0), None),
        ("requests_total", pod("web", "b"), rising(4.0), None),
        ("requests_total", pod("api", "c"), series(&[(100, 7.0)]), None),
        ("requests_total", pod("web", "d"), rising(8.0), Some(at(119))),
        ("limit", Labels::new().with("pod", "a"), series(&[(110, 480.0)]), None),
        ("resets_total", Labels::new(), series(&[(60, 50.0), (75, 80.0), (90, 10.0), (105, 40.0)]), None),
    ])
}

/// The result at second 120, elements as (labels, value).
fn ask(text: &str) -> Vec<(String, f64)> {
    let query = Query::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    match query.evaluate(&fixture(), at(120)).unwrap_or_else(|error| panic!("{text}: {error}")) {
        QueryValue::Scalar(value) => vec![(String::new(), value)],
        QueryValue::Vector(elements) => elements.iter().map(written).collect(),
    }
}

fn written(element: &Element) -> (String, f64) {
    let labels: Vec<String> = element.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    (labels.join(","), element.value)
}

/// The only value.
fn one(text: &str) -> f64 {
    match ask(text).as_slice() {
        [(_, value)] => *value,
        other => panic!("{text}: {other:?}"),
    }
}

fn near(text: &str, expected: f64) {
    let value = one(text);
    assert!((value - expected).abs() < 1e-9, "{text} is {value}, not {expected}");
}

#[test]
fn instant_selector_takes_newest_live_sample() {
    let expected = [("app=web,pod=a", 230.0), ("app=web,pod=b", 460.0)].map(|(l, v)| (l.to_owned(), v));
    assert_eq!(ask("requests_total{app=\"web\"}"), expected);
    near("sum(requests_total{app=~\"w.*\"})", 690.0);
    near("sum(requests_total{app!=\"web\"})", 7.0);
    near("count(requests_total)", 3.0);
    // `d` had ended a second before now, but not 30 s before.
    near("count(requests_total{app!~\"api\"} offset 30s)", 3.0);
    assert_eq!(ask("nothing"), []);
    assert_eq!(ask("sum(nothing)"), []);
}

#[test]
fn promql_lookback_is_five_minutes_left_open() {
    let query = Query::parse("requests_total{pod=\"c\"}").unwrap_or_else(|error| panic!("{error}"));
    let found = |secs| match query.evaluate(&fixture(), at(secs)) {
        Ok(QueryValue::Vector(elements)) => elements.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!((found(99), found(100), found(399), found(400)), (0, 1, 1, 0));
}

#[test]
fn rate_extrapolates_to_range_edges() {
    // Samples at 70, 85, 100, 115 within (60, 120]: the gaps of 10 s and 5 s are below 1.1 times 15 s.
    near("rate(requests_total{pod=\"a\"}[1m])", 2.0);
    near("increase(requests_total{pod=\"a\"}[1m])", 120.0);
    near("sum by (app) (rate(requests_total{app=\"web\", pod!=\"d\"}[1m]))", 6.0);
    near("irate(requests_total{pod=\"b\"}[1m])", 4.0);
    // A single sample has no rate.
    assert_eq!(ask("rate(requests_total{pod=\"c\"}[1m])"), []);
}

#[test]
fn extrapolation_stops_where_counter_was_zero() {
    // All samples from 10 on within (-180, 120]: far from the edge, so half a spacing, which the zero at second 0 does not
    // reach: (115 - 10) + 7.5 + 5 seconds at 2 a second.
    near("increase(requests_total{pod=\"a\"}[5m])", 2.0 * (105.0 + 7.5 + 5.0));
    // From 50 to 40 over 45 s with one reset: 40 - 50 + 80 = 70. The gap at the start would be 15 s, and zero was
    // 45 * 50 / 70 s before: not reached.
    near("increase(resets_total[75s])", 70.0 * (45.0 + 15.0 + 15.0) / 45.0);
    // One that began at zero right after the start is not extended beyond it.
    let born =
        Fixture(vec![("n_total", Labels::new(), series(&[(70, 1.0), (85, 31.0), (100, 61.0), (115, 91.0)]), None)]);
    let query = Query::parse("increase(n_total[1m])").unwrap_or_else(|error| panic!("{error}"));
    let Ok(QueryValue::Vector(found)) = query.evaluate(&born, at(120)) else { panic!("no vector") };
    assert!((found[0].value - 90.0 * (45.0 + 0.5 + 5.0) / 45.0).abs() < 1e-9, "{found:?}");
}

#[test]
fn over_time_functions_use_samples_in_range() {
    near("avg_over_time(requests_total{pod=\"a\"}[1m])", 185.0);
    near("max_over_time(requests_total{pod=\"a\"}[1m])", 230.0);
    near("min_over_time(requests_total{pod=\"a\"}[1m])", 140.0);
    near("count_over_time(requests_total{pod=\"a\"}[1m])", 4.0);
    near("last_over_time(requests_total{pod=\"a\"}[1m] offset 1m)", 110.0);
    near("delta(requests_total{pod=\"a\"}[1m])", 120.0);
}

#[test]
fn operators_bind_and_match_as_in_promql() {
    for (text, expected) in [
        ("1 + 2 * 3", 7.0),
        ("-2 ^ 2", -4.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("10 % 4", 2.0),
        ("1 < bool 2", 1.0),
        ("scalar(limit) / 2", 240.0),
        ("sum(requests_total) / count(requests_total)", 697.0 / 3.0),
        ("ceil(limit / 100)", 5.0),
        ("clamp_max(limit, 100)", 100.0),
        ("clamp_min(limit, 1e3)", 1_000.0),
        ("round(limit, 100)", 500.0),
        ("vector(3)", 3.0),
        ("sum(nothing) or vector(0)", 0.0),
        ("avg without (pod) (requests_total{app=\"web\"}) # a comment", 345.0),
        ("max(requests_total)", 460.0),
        ("min(requests_total)", 7.0),
        ("scalar(requests_total) > bool 0 or 1", f64::NAN),
    ] {
        if expected.is_nan() {
            assert!(Query::parse(text).is_err(), "{text}");
        } else {
            near(text, expected);
        }
    }
    // Only the pod of that name has a limit, and its other labels are left out of the match.
    assert_eq!(ask("requests_total / on (pod) limit"), [("pod=a".to_owned(), 230.0 / 480.0)]);
    assert_eq!(ask("requests_total and on (pod) limit"), [("app=web,pod=a".to_owned(), 230.0)]);
    assert_eq!(ask("requests_total{app=\"web\"} unless on (pod) limit"), [("app=web,pod=b".to_owned(), 460.0)]);
    assert_eq!(ask("requests_total > 300"), [("app=web,pod=b".to_owned(), 460.0)]);
    assert_eq!(ask("requests_total{pod=\"a\"} == bool 230"), [("app=web,pod=a".to_owned(), 1.0)]);
    let many = Query::parse("requests_total / on (app) requests_total").unwrap_or_else(|error| panic!("{error}"));
    assert!(many.evaluate(&fixture(), at(120)).is_err());
}

#[test]
fn a_query_tells_what_it_looks_at() {
    let query = |text| Query::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let raw = query("sum(istio_requests_total{a=\"b\"}) + rate(other_total[10m] offset 5m) + {__name__=\"up\"}");
    assert_eq!(raw.series_names(), ["istio_requests_total", "other_total", "up"]);
    assert_eq!(raw.bare_counters(), ["istio_requests_total"]);
    assert_eq!(raw.reach(), SimDuration::from_secs(900));
    assert!(query("scalar(up) + 1").is_scalar() && !raw.is_scalar());
}

#[test]
fn unsupported_promql_is_rejected_with_position() {
    for (text, position, problem) in [
        ("", 1, "the query ends where a value is expected"),
        ("sum(rate(a[5m])", 16, "the query ends where `)` is expected after what is aggregated"),
        ("histogram_quantile(0.9, a)", 1, "`histogram_quantile` is not supported"),
        ("topk(3, a)", 1, "`topk` is not supported"),
        ("rate(a)", 6, "`rate` needs a range, for example `a[1m]`"),
        ("a[5m]", 1, "a range needs a function"),
        ("a{b=c}", 5, "`c` stands where a text in quotes is expected"),
        ("a{b=~\"(\"}", 6, "the pattern cannot be read"),
        ("a{b=\"c}", 5, "this text has no closing quote"),
        ("{b=\"c\"}", 1, "a selector without the name of a series is not supported"),
        ("a + on (b) group_left c", 12, "`group_left` is not supported"),
        ("max_over_time(rate(a[1m])[5m:])", 15, "`max_over_time` needs a range"),
        ("rate(a[5x])", 8, "`5x` is neither a number nor a span of time"),
        ("a and 1", 3, "`and`, `or` and `unless` need series on both sides"),
        ("1 > 2", 3, "comparing two numbers needs `bool`"),
        ("a b", 3, "`b` stands after the end of the query"),
        ("a $ b", 3, "`$` has no meaning here"),
        ("sum(1)", 5, "an aggregation needs series, not a number"),
        ("clamp(a, 1)", 1, "`clamp` takes series, then a number, then a number"),
        ("a @ 5", 3, "`@` is not supported"),
    ] {
        let error = Query::parse(text).expect_err(text);
        assert!(error.problem.starts_with(problem), "{text}: {error}");
        assert_eq!(error.position, position, "{text}: {error}");
    }
    assert!(Query::parse(&"(".repeat(5_000)).is_err() && Query::parse(&"-".repeat(5_000)).is_err());
    assert!(Query::parse(&format!("1{}", "+1".repeat(4_000))).is_err());
    assert!(Query::parse(&"a".repeat(20_000)).is_err());
}

/// Pieces of queries, from which random ones are put together.
const PIECES: &[&str] = &[
    "sum", "rate", "(", ")", "{", "}", "[", "]", "a_total", "app", "=", "=~", "\"x\"", "5m", "1", "-", "+", "/", "^",
    "by", "without", "on", "ignoring", "and", "or", "offset", ",", ">", "bool", "#", "\n", "'", "0x", "1e", ".", "é",
    "\\", "@", ":",
];

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,60}") {
        let _ = Query::parse(&text);
    }

    #[test]
    fn random_promql_never_panics(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..30),
    ) {
        if let Ok(query) = Query::parse(&pieces.join(" ")) {
            let asked = || format!("{:?}", query.evaluate(&fixture(), at(120)));
            proptest::prop_assert_eq!(asked(), asked());
        }
    }
}

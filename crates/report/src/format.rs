//! Figures as people read them, and as tables hold them.

mod known;

use std::fmt;

use jiff::{SignedDuration, Timestamp};

pub use known::{IntervalFigure, Measure, column};

pub use crate::domain::words::counted;
use crate::domain::words::grouped;
use crate::domain::{Currency, SimTime};

/// The sign of a number below zero, for people; tables for programs have a hyphen.
const MINUS: &str = "\u{2212}";

/// A duration for people, to three or four digits and without parts that are zero: `0.4 ms`, `250 ms`, `12.3 s`, `4m05s`, `2h03m`, `3d`.
pub fn span(seconds: f64) -> String {
    if seconds < 0.0 {
        return negative(&span(-seconds));
    }
    match seconds {
        0.0 => "0 s".to_owned(),
        s if s < 0.000_999_5 => format!("{:.2} ms", s * 1e3),
        s if s < 0.099_95 => format!("{} ms", whole_or_tenths(s * 1e3)),
        s if s < 0.999_5 => format!("{:.0} ms", s * 1e3),
        s if s < 59.95 => format!("{} s", whole_or_tenths(s)),
        s => long_span(libm::round(s) as i64),
    }
}

/// Karpenter's release with its origin and open feature gates: `Karpenter v1.8, from the dump's Deployment kube-system/karpenter`.
pub fn karpenter_label(release: &str, source: &str, gates: &[&str]) -> String {
    let gates = if gates.is_empty() { String::new() } else { format!(", with {}", gates.join(", ")) };
    format!("Karpenter {release}{gates}, {source}")
}

/// `text` with a minus before it; without one where it says nothing but zeros.
pub fn negative(text: &str) -> String {
    if is_zero(text) { text.to_owned() } else { format!("{MINUS}{text}") }
}

/// Whether a number as it is written is zero.
pub fn is_zero(text: &str) -> bool {
    !text.contains(|c: char| ('1'..='9').contains(&c))
}

/// What figures leave out of a run, for people; `None` if nothing.
pub fn warm_up(seconds: Option<f64>) -> Option<String> {
    let first = span(seconds?);
    Some(format!(
        "Warm-up {first}: excluded from waits, missing replicas, churn, replica changes, and response times; included in cost and node \
         counts."
    ))
}

/// A span that may not exist: a dash stands for nothing.
pub fn span_or_dash(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "–".to_owned(), span)
}

fn long_span(seconds: i64) -> String {
    let minutes = (seconds + 30) / 60;
    let hours = (seconds + 1_800) / 3_600;
    if seconds < 3_600 {
        two_parts((seconds / 60, "m"), (seconds % 60, "s"))
    } else if minutes < 48 * 60 {
        two_parts((minutes / 60, "h"), (minutes % 60, "m"))
    } else {
        two_parts((hours / 24, "d"), (hours % 24, "h"))
    }
}

/// A duration in two units, the second left out if it is zero: `4m05s`, `4m`.
fn two_parts((large, unit): (i64, &str), (small, smaller): (i64, &str)) -> String {
    if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small:02}{smaller}") }
}

/// A number to one decimal, without it if it is zero.
fn whole_or_tenths(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// The unit of an objective that is a span of time.
pub const SECONDS: &str = "seconds";
/// The unit of an objective on replicas that are wanted and not Ready, times minutes.
pub const POD_MINUTES: &str = "pod-minutes";

/// A value of an objective in its unit: a span, pod-minutes, or else money of the currency that the unit is.
pub fn objective(unit: &str, value: f64) -> String {
    match unit {
        SECONDS => span(value),
        POD_MINUTES => format!("{} {POD_MINUTES}", minutes(value)),
        currency => money(currency, value),
    }
}

/// A number of pod-minutes: with a decimal below a hundred, else whole.
pub fn minutes(value: f64) -> String {
    let decimals = usize::from(value.abs() < 99.95);
    grouped(&format!("{value:.decimals$}"))
}

/// An amount of money with its sign, two decimals, or four below ten units: `$1,234.50`, `$0.0416`.
pub fn money(currency: &str, amount: f64) -> String {
    money_among(currency, amount, amount)
}

/// An amount of money as people say it: whole from a hundred on, with two decimals from one on.
pub fn money_in_short(currency: &str, amount: f64) -> String {
    match amount.abs() {
        size if size >= 99.995 => money_with(currency, amount, 0),
        size if size >= 1.0 => money_with(currency, amount, 2),
        _ => money(currency, amount),
    }
}

/// As [`money`], with as many decimals as `largest` has, so that amounts beside each other can be compared.
pub fn money_among(currency: &str, amount: f64, largest: f64) -> String {
    money_with(currency, amount, if largest.abs() < 9.999_95 { 4 } else { 2 })
}

fn money_with(currency: &str, amount: f64, decimals: usize) -> String {
    let sign = Currency::from_code(currency).map_or("", Currency::sign);
    let text = format!("{sign}{}", grouped(&format!("{:.decimals$}", amount.abs())));
    if amount < 0.0 { negative(&text) } else { text }
}

/// A price per hour for people, to four decimals: `$0.1632`.
pub fn hourly(currency: Currency, per_hour: f64) -> String {
    let cents = money_among(currency.code(), per_hour, 0.0);
    // An amount that rounds to nothing would read as free.
    if per_hour > 0.0 && per_hour < 0.000_05 { format!("{}{per_hour:.9}", currency.sign()) } else { cents }
}

/// A share as a percentage: `12.3%`.
pub fn percent(share: f64) -> String {
    let text = format!("{}%", grouped(&format!("{:.1}", share.abs() * 100.0)));
    if share < 0.0 { negative(&text) } else { text }
}

/// Below this a figure is a residue of rounding: money has nine decimals, and no count, share or time is as small.
const RESIDUE: f64 = 1e-9;

/// From this ratio on a change is no longer a share of anything: the base was nearly zero.
const RATIO_MAX: f64 = 10_000.0;

/// `difference` as a share of `base`: the one way to a relative change. `None` where the base is zero or so nearly zero that
/// the share has no meaning; 0 where nothing differs.
pub fn relative_change(difference: f64, base: f64) -> Option<f64> {
    if difference.abs() <= 0.0 && base.abs() > 0.0 {
        return Some(0.0);
    }
    let share = (base.abs() > RESIDUE).then(|| difference / base.abs())?;
    (share.abs() < RATIO_MAX).then_some(share)
}

/// A count with its thousands grouped.
pub fn count(count: u64) -> String {
    grouped(&count.to_string())
}

/// A capacity type as people name it: `Spot`, `On-Demand`. Any other stays as its label has it.
pub fn bought_as(capacity_type: &str) -> &str {
    match capacity_type {
        "spot" => "Spot",
        "on-demand" => "On-Demand",
        other => other,
    }
}

/// A number of bytes in decimal units, as AWS counts transfer: `120 MB`, `1.3 GB`.
pub fn bytes(bytes: u64) -> String {
    match bytes as f64 {
        b if b < 999.5e6 => format!("{:.0} MB", b / 1e6),
        b if b < 999.5e9 => format!("{:.1} GB", b / 1e9),
        b => format!("{:.1} TB", b / 1e12),
    }
}

/// A mean of counts: whole if it is, else with one or two decimals.
pub fn mean_count(value: f64) -> String {
    if (value - libm::round(value)).abs() < 1e-9 {
        whole(value)
    } else if value.abs() < 10.0 {
        format!("{value:.2}")
    } else {
        grouped(&format!("{value:.1}"))
    }
}

/// How often something happens in a day: whole, but below one with decimals, so that what happens is not said never to.
pub fn per_day(rate: f64) -> String {
    match rate {
        r if r >= 0.95 => whole(r),
        r if r >= 0.05 => format!("{r:.1}"),
        r => format!("{r:.2}"),
    }
}

/// A number of requests: whole, its thousands grouped.
pub fn whole(number: f64) -> String {
    grouped(&format!("{number:.0}"))
}

/// Microseconds shown as an exact decimal of seconds without trailing zeros, for tables: `93.5`.
#[derive(Clone, Copy, Debug)]
pub struct ExactSeconds(pub i64);

impl fmt::Display for ExactSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tables have hundreds of thousands of these: the text is made from its end, and handed on in one piece.
        let mut text = [0_u8; 28];
        let mut from = text.len();
        let mut put = |byte: u8| {
            from -= 1;
            text[from] = byte;
        };
        let magnitude = self.0.unsigned_abs();
        let (mut whole, mut fraction) = (magnitude / 1_000_000, magnitude % 1_000_000);
        if fraction > 0 {
            let mut counts = false;
            for _ in 0..6 {
                counts |= fraction % 10 != 0;
                if counts {
                    put(b'0' + (fraction % 10) as u8);
                }
                fraction /= 10;
            }
            put(b'.');
        }
        loop {
            put(b'0' + (whole % 10) as u8);
            whole /= 10;
            if whole == 0 {
                break;
            }
        }
        if self.0 < 0 {
            put(b'-');
        }
        f.write_str(std::str::from_utf8(&text[from..]).unwrap_or_default())
    }
}

/// An RFC 3339 instant as people read it, to the minute where it is whole: `2026-11-27 12:00 UTC`. Any other text stays as
/// it is.
pub fn instant_for_people(instant: &str) -> String {
    let Ok(time) = instant.parse::<Timestamp>() else { return instant.to_owned() };
    let text = time.to_string();
    let text = text.strip_suffix('Z').unwrap_or(&text);
    let text = text.strip_suffix(":00").unwrap_or(text);
    format!("{} UTC", text.replace('T', " "))
}

/// An instant of a run that began at `start`, as people read it: `1h after start (14:42)`, with the day where the run
/// has several, `dated`.
pub fn moment(start: Timestamp, instant: SimTime, dated: bool) -> String {
    let since = span(instant.as_secs_f64());
    let Ok(time) = start.checked_add(SignedDuration::from_micros(instant.as_micros())) else {
        return format!("{since} after start");
    };
    let time = time.to_zoned(jiff::tz::TimeZone::UTC);
    let day = if dated { "%-d %b " } else { "" };
    let clock = if time.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
    format!("{since} after start ({})", time.strftime(&format!("{day}{clock}")))
}

/// Turns instants of a run into calendar time.
#[derive(Clone, Copy, Debug)]
pub struct Calendar {
    start: Option<Timestamp>,
}

impl Calendar {
    /// A run that began at `start`, RFC 3339. A text that is no instant gives a calendar that knows no time.
    pub fn new(start: &str) -> Self {
        Self { start: start.parse().ok() }
    }

    /// The calendar time of `instant`, RFC 3339 in UTC; `None` when it lies outside the calendar.
    pub fn time(self, instant: SimTime) -> Option<String> {
        self.instant(instant).map(|time| time.to_string())
    }

    /// The same as a number that is no text yet.
    pub fn instant(self, instant: SimTime) -> Option<Timestamp> {
        let since_start = SignedDuration::from_micros(instant.as_micros());
        self.start?.checked_add(since_start).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Calendar, ExactSeconds, counted, grouped, hourly, instant_for_people, moment, money, money_among,
        money_in_short, per_day, percent, relative_change, span,
    };
    use crate::domain::{Currency, SimTime};

    #[test]
    fn change_of_a_residue_has_no_percentage() {
        assert_eq!([relative_change(0.5, 2.0), relative_change(-0.5, -2.0)], [Some(0.25), Some(-0.25)]);
        assert_eq!([relative_change(0.0, 1e-180), relative_change(0.0, 7.0)], [Some(0.0), Some(0.0)]);
        assert_eq!([relative_change(0.02, 6e-170), relative_change(0.02, 0.0), relative_change(0.0, 0.0)], [None; 3]);
        assert_eq!([relative_change(900.0, 1e-5), relative_change(f64::NAN, 1.0)], [None; 2]);
    }

    #[test]
    fn durations_have_three_or_four_digits() {
        let cases = [
            (0.0, "0 s"),
            (0.000_41, "0.41 ms"),
            (0.0123, "12.3 ms"),
            (0.25, "250 ms"),
            (0.02, "20 ms"),
            (0.999_6, "1 s"),
            (12.34, "12.3 s"),
            (59.96, "1m"),
            (245.0, "4m05s"),
            (3_599.7, "1h"),
            (7_380.0, "2h03m"),
            (259_200.0, "3d"),
            (273_600.0, "3d04h"),
            (-2.0, "\u{2212}2 s"),
        ];
        for (seconds, text) in cases {
            assert_eq!(span(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn money_groups_thousands_and_shows_cents_or_finer() {
        assert_eq!(money("USD", 1_234_567.891), "$1,234,567.89");
        assert_eq!(money("USD", 0.041_6), "$0.0416");
        assert_eq!(money_among("USD", 0.041_6, 400.0), "$0.04");
        assert_eq!(
            [1_682.03, 99.996, 5.5, -0.041_6].map(|item| money_in_short("USD", item)),
            ["$1,682", "$100", "$5.50", "\u{2212}$0.0416"]
        );
        assert_eq!(money("CNY", -12.5), "\u{2212}¥12.50");
        assert_eq!([percent(0.1234), percent(-0.5), percent(12.5)], ["12.3%", "\u{2212}50.0%", "1,250.0%"]);
        assert_eq!(grouped("-123"), "-123");
        assert_eq!([percent(-0.000_1), money("USD", -0.000_01), span(-1e-9)], ["0.0%", "$0.0000", "0.00 ms"]);
        assert_eq!([0.004, 0.2, 1.4, 120.0].map(per_day), ["0.00", "0.2", "1", "120"]);
        assert_eq!(counted(1, "node", "nodes"), "1 node");
        assert_eq!(counted(2_000, "node", "nodes"), "2,000 nodes");
    }

    #[test]
    fn hourly_prices_keep_four_decimals() {
        assert_eq!(hourly(Currency::Usd, 0.163_2), "$0.1632");
        assert_eq!(hourly(Currency::Cny, 98.32), "¥98.3200");
        assert_eq!(hourly(Currency::Usd, 0.000_01), "$0.000010000");
    }

    #[test]
    fn an_instant_for_people_has_no_needless_seconds() {
        assert_eq!(instant_for_people("2026-11-27T12:00:00Z"), "2026-11-27 12:00 UTC");
        assert_eq!(instant_for_people("2026-11-27T12:00:05.5+01:00"), "2026-11-27 11:00:05.5 UTC");
        assert_eq!(instant_for_people("some day"), "some day");
    }

    #[test]
    fn a_moment_has_its_span_and_its_clock() {
        let start = "2026-11-27T13:42:00Z".parse().unwrap();
        let at = |seconds: i64, dated| moment(start, SimTime::from_micros(seconds * 1_000_000), dated);
        assert_eq!(at(3_600, false), "1h after start (14:42)");
        assert_eq!(at(1, false), "1 s after start (13:42:01)");
        assert_eq!(at(86_400, true), "24h after start (28 Nov 13:42)");
    }

    #[test]
    fn exact_seconds_lose_nothing() {
        let exact_seconds = |micros| ExactSeconds(micros).to_string();
        assert_eq!(exact_seconds(93_500_000), "93.5");
        assert_eq!(exact_seconds(-1), "-0.000001");
        assert_eq!(exact_seconds(-7_040_200), "-7.0402");
        assert_eq!(exact_seconds(20_000_000), "20");
        assert_eq!([0, 100_000, 1_000_001].map(exact_seconds), ["0", "0.1", "1.000001"]);
        assert_eq!(exact_seconds(i64::MIN), "-9223372036854.775808");
    }

    #[test]
    fn calendar_time_follows_the_start() {
        let at = |start: &str, micros| Calendar::new(start).time(SimTime::from_micros(micros));
        assert_eq!(at("2026-11-27T00:00:00Z", 90_500_000).as_deref(), Some("2026-11-27T00:01:30.5Z"));
        assert_eq!(at("some day", 0), None);
        assert_eq!(at("2026-11-27T00:00:00Z", i64::MAX), None);
    }
}

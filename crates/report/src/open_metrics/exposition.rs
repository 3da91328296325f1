//! The text of OpenMetrics 1.0: families, series, samples with timestamps.
//!
//! What must not live here: which metrics there are.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use crate::domain::{SimDuration, SimTime};

/// Prometheus takes a series for ended when its last sample is five minutes old, unless it is told another time; a sample is
/// written at least so often.
pub const STEP_MAX: SimDuration = SimDuration::from_secs(240);
/// So often a series of a node or a pod has a sample, as from a Prometheus that scrapes each minute.
pub const MINUTE: SimDuration = SimDuration::from_secs(60);

/// Names and values of labels; an empty value is the same as no label.
pub(super) type Labels = Vec<(&'static str, String)>;

/// What kind of numbers a family holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Goes up and down.
    Gauge,
    /// Only grows; its samples end in `_total`.
    Counter,
    /// Count, sum and quantiles.
    Summary,
    /// Count, sum and buckets.
    Histogram,
    /// A counter of old, whose name does not say so.
    Unknown,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Summary => "summary",
            Self::Histogram => "histogram",
            Self::Unknown => "unknown",
        }
    }
}

/// A metric family, named without the suffixes of its samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
}

impl Family {
    pub(super) const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: Kind::Gauge, help }
    }

    pub(super) const fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: Kind::Counter, help }
    }

    /// What follows the name in a sample that is neither a bucket nor a quantile.
    const fn suffix(self) -> &'static str {
        if matches!(self.kind, Kind::Counter) { "_total" } else { "" }
    }

    /// The unit, where the name states one.
    fn unit(self) -> Option<&'static str> {
        ["seconds", "bytes", "cores"]
            .into_iter()
            .find(|unit| self.name.strip_suffix(unit).is_some_and(|before| before.ends_with('_')))
    }
}

/// One number of a point that has several.
pub(super) struct Part {
    /// `_count`, `_sum`, `_bucket`, or nothing for a quantile.
    pub suffix: &'static str,
    /// `le` or `quantile` with its value.
    pub label: Option<(&'static str, String)>,
    /// The number.
    pub value: f64,
}

/// An OpenMetrics text being written.
pub(super) struct Exposition<'o> {
    output: &'o mut dyn Write,
    /// Labels that every sample of the present job has, as text.
    common: String,
    cluster: String,
    start_micros: i64,
    step: SimDuration,
    end: SimTime,
    /// So often lives have a sample where nothing changes.
    heartbeat: SimDuration,
    family: Option<Family>,
    begun: bool,
    line: String,
}

impl<'o> Exposition<'o> {
    /// A text of samples every `step` up to `end`; simulated time zero is `start_micros` of Unix time.
    pub(super) fn new(
        output: &'o mut dyn Write,
        cluster: &str,
        start_micros: i64,
        step: SimDuration,
        end: SimTime,
    ) -> Self {
        let cluster = escaped(cluster);
        let (common, line) = (String::new(), String::new());
        let heartbeat = MINUTE;
        Self { output, common, cluster, start_micros, step, end, heartbeat, family: None, begun: false, line }
    }

    /// What follows is scraped under the name `job`.
    pub(super) fn job(&mut self, job: &str) {
        self.common = format!("cluster=\"{}\",job=\"{job}\"", self.cluster);
    }

    /// What follows is scraped under the name `job` at this path, which is told.
    pub(super) fn job_at(&mut self, job: &str, path: &str) {
        self.job(job);
        let _ = write!(self.common, ",metrics_path=\"{path}\"");
    }

    /// The series of lives that follow have a sample at least so often.
    pub(super) fn beat(&mut self, heartbeat: SimDuration) {
        self.heartbeat = heartbeat;
    }

    /// Unix time of `at` in whole seconds, as the API server writes it.
    pub(super) fn unix_seconds(&self, at: SimTime) -> i64 {
        (self.start_micros + at.as_micros()).div_euclid(1_000_000)
    }

    /// The first whole second of Unix time from `at` on. Fractions of a second are cut off to milliseconds by whoever reads
    /// them, and could fall on the sample before.
    fn whole_second(&self, at: SimTime) -> SimTime {
        let over = (self.start_micros + at.as_micros()).rem_euclid(1_000_000);
        at + SimDuration::from_micros((1_000_000 - over) % 1_000_000)
    }

    /// What follows belongs to `family`. Nothing is written before its first sample.
    pub(super) fn family(&mut self, family: Family) {
        (self.family, self.begun) = (Some(family), false);
    }

    /// The instants of samples from `from` on, the end of the run last.
    fn instants(&self, from: SimTime) -> impl Iterator<Item = SimTime> + use<> {
        let (step, end) = (self.step.as_micros().max(1), self.end);
        let first = (from.as_micros().max(0) + step - 1).div_euclid(step) * step;
        let regular = (0..).map(move |number: i64| SimTime::from_micros(first + number * step));
        let regular = regular.take_while(move |&at| at < end);
        regular.chain((from <= end).then_some(end))
    }

    /// A series with a sample at every instant from `from` on at which there is a value.
    ///
    /// # Errors
    /// Whatever the output returns.
    pub(super) fn series(
        &mut self,
        labels: &Labels,
        from: SimTime,
        mut value: impl FnMut(SimTime) -> Option<f64>,
    ) -> io::Result<()> {
        let text = self.labels_of(labels);
        for at in self.instants(from) {
            if let Some(value) = value(at) {
                self.sample("", &text, None, value, at)?;
            }
        }
        Ok(())
    }

    /// The series of something that lives from `from` until `until` and whose value goes on changing: a sample at every
    /// instant of its life at which there is a value, further apart where lives are to have fewer.
    ///
    /// # Errors
    /// Whatever the output returns.
    pub(super) fn living(
        &mut self,
        labels: &Labels,
        (from, until): (SimTime, Option<SimTime>),
        mut value: impl FnMut(SimTime) -> Option<f64>,
    ) -> io::Result<()> {
        let text = self.labels_of(labels);
        let every = if self.heartbeat > MINUTE { self.heartbeat } else { self.step };
        let mut written: Option<SimTime> = None;
        for at in self.instants(from).take_while(|at| until.is_none_or(|until| *at < until)) {
            let due = at == self.end || written.is_none_or(|then| at + self.step - then > every);
            if let Some(value) = value(at).filter(|_| due) {
                self.sample("", &text, None, value, at)?;
                written = Some(at);
            }
        }
        Ok(())
    }

    /// The series of things that come and go: a sample where the value has changed, and one each heartbeat. With `closed` a
    /// life ends with a 0 in the second in which it is over, so that sums are right at once.
    ///
    /// # Errors
    /// Whatever the output returns.
    pub(super) fn spans(&mut self, spans: Spans, closed: bool) -> io::Result<()> {
        for (labels, mut spans) in spans.0 {
            spans.sort_by_key(|span| span.from);
            self.one_of_spans(&labels, &spans, closed)?;
        }
        Ok(())
    }

    fn one_of_spans(&mut self, labels: &Labels, spans: &[Span], closed: bool) -> io::Result<()> {
        let Some(first) = spans.first() else { return Ok(()) };
        let text = self.labels_of(labels);
        let mut next = 0;
        let mut written: Option<(SimTime, f64)> = None;
        for at in self.instants(first.from) {
            let is_open = closed && written.is_some_and(|(_, before)| before != 0.0);
            if let Some(over) = self.end_between(spans, next, at).filter(|_| is_open) {
                self.sample("", &text, None, 0.0, over)?;
                written = Some((over, 0.0));
            }
            while spans.get(next).is_some_and(|span| span.from <= at) {
                next += 1;
            }
            let span = next.checked_sub(1).and_then(|last| spans.get(last));
            let value = span.filter(|span| span.until.is_none_or(|until| at < until)).map(|span| span.value);
            let is_open = closed && written.is_some_and(|(_, before)| before != 0.0);
            let Some(value) = value.or_else(|| is_open.then_some(0.0)) else {
                if next == spans.len() {
                    return Ok(());
                }
                continue;
            };
            let changed = |before: f64| before.to_bits() != value.to_bits();
            let due = written.is_none_or(|(then, before)| changed(before) || at + self.step - then > self.heartbeat);
            if due || at == self.end {
                self.sample("", &text, None, value, at)?;
                written = Some((at, value));
            }
        }
        Ok(())
    }

    /// The second in which the span before the one at `next` was over, if that is before `at` and no other span follows it at
    /// once.
    fn end_between(&self, spans: &[Span], next: usize, at: SimTime) -> Option<SimTime> {
        let until = spans.get(next.checked_sub(1)?)?.until.filter(|until| *until < at)?;
        let over = self.whole_second(until);
        let alone = spans.get(next).is_none_or(|span| span.from > over);
        (over < at && alone).then_some(over)
    }

    /// A series whose points have several parts each, those of one instant together and instants in order.
    ///
    /// Source: OpenMetrics 1.0, "MetricPoint": `MetricPoints MUST NOT be interleaved`.
    ///
    /// # Errors
    /// Whatever the output returns.
    pub(super) fn points(&mut self, labels: &Labels, mut parts: impl FnMut(SimTime) -> Vec<Part>) -> io::Result<()> {
        let text = self.labels_of(labels);
        for at in self.instants(SimTime::ZERO) {
            for part in parts(at) {
                self.sample(part.suffix, &text, part.label, part.value, at)?;
            }
        }
        Ok(())
    }

    /// The series of `changes`, each number divided by `scale`: a counter's from the start of the run, others' from their
    /// first change.
    ///
    /// # Errors
    /// Whatever the output returns.
    pub(super) fn changes(&mut self, changes: Changes, scale: f64) -> io::Result<()> {
        let counts = self.family.is_some_and(|family| matches!(family.kind, Kind::Counter | Kind::Unknown));
        for (labels, level) in changes.into_levels() {
            let from = if counts { SimTime::ZERO } else { level.begins() };
            self.series(&labels, from, |at| Some(level.at(at) as f64 / scale))?;
        }
        Ok(())
    }

    /// Nothing follows.
    ///
    /// # Errors
    /// Whatever the output returns.
    pub(super) fn finish(self) -> io::Result<()> {
        self.output.write_all(b"# EOF\n")
    }

    fn labels_of(&self, labels: &Labels) -> String {
        let mut text = self.common.clone();
        for (name, value) in labels {
            if !value.is_empty() {
                // Writing to a string does not fail.
                let _ = write!(text, ",{name}=\"{}\"", escaped(value));
            }
        }
        text
    }

    fn sample(
        &mut self,
        suffix: &str,
        labels: &str,
        more: Option<(&'static str, String)>,
        value: f64,
        at: SimTime,
    ) -> io::Result<()> {
        let Some(family) = self.family else { return Ok(()) };
        if !self.begun {
            self.begun = true;
            self.header(family)?;
        }
        self.line.clear();
        let suffix = if suffix.is_empty() { family.suffix() } else { suffix };
        let _ = write!(self.line, "{}{suffix}{{{labels}", family.name);
        if let Some((name, value)) = more {
            let _ = write!(self.line, ",{name}=\"{value}\"");
        }
        let micros = self.start_micros + at.as_micros();
        let _ = writeln!(self.line, "}} {value} {}", super::super::format::ExactSeconds(micros));
        self.output.write_all(self.line.as_bytes())
    }

    fn header(&mut self, family: Family) -> io::Result<()> {
        writeln!(self.output, "# TYPE {} {}", family.name, family.kind.as_str())?;
        if let Some(unit) = family.unit() {
            writeln!(self.output, "# UNIT {} {unit}", family.name)?;
        }
        writeln!(self.output, "# HELP {} {}", family.name, escaped(family.help))
    }
}

/// `text` as it stands within quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A value for a while.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: SimTime,
    until: Option<SimTime>,
    value: f64,
}

/// Values for a while, by labels. Things that bear one name after the other share a series.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans(BTreeMap<Labels, Vec<Span>>);

impl Spans {
    /// From `from` until `until` there is a `value`.
    pub(super) fn add(&mut self, labels: Labels, (from, until): (SimTime, Option<SimTime>), value: f64) {
        if until.is_none_or(|until| from < until) {
            self.0.entry(labels).or_default().push(Span { from, until, value });
        }
    }

    /// From `from` until `until` there is the value that `level` has, as `shown` shows it.
    pub(super) fn follow(
        &mut self,
        labels: &Labels,
        (from, until): (SimTime, Option<SimTime>),
        level: &Level,
        shown: impl Fn(i64) -> f64,
    ) {
        for (from, until, number) in level.pieces((from, until)) {
            self.add(labels.clone(), (from, until), shown(number));
        }
    }
}

/// What is added to numbers when, by labels.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes(BTreeMap<Labels, Vec<(SimTime, i64)>>);

impl Changes {
    /// From `at` on the number is higher by `by`.
    pub(super) fn add(&mut self, labels: Labels, at: SimTime, by: i64) {
        self.0.entry(labels).or_default().push((at, by));
    }

    /// From `from` until `until` the number is higher by `by`.
    pub(super) fn between(&mut self, labels: Labels, from: SimTime, until: Option<SimTime>, by: i64) {
        if until.is_some_and(|until| until <= from) {
            return;
        }
        let changes = self.0.entry(labels).or_default();
        changes.push((from, by));
        changes.extend(until.map(|until| (until, -by)));
    }

    /// There is a series with these labels, though nothing may ever change it.
    pub(super) fn there_is(&mut self, labels: Labels) {
        self.add(labels, SimTime::ZERO, 0);
    }

    /// The numbers over time.
    pub(super) fn into_levels(self) -> impl Iterator<Item = (Labels, Level)> {
        self.0.into_iter().map(|(labels, changes)| (labels, Level::from_changes(changes)))
    }
}

/// A whole number over time.
#[derive(Clone, Debug, Default)]
pub(super) struct Level(Vec<(SimTime, i64)>);

impl Level {
    /// The number that follows from changes in any order.
    pub(super) fn from_changes(mut changes: Vec<(SimTime, i64)>) -> Self {
        changes.sort_unstable();
        let mut level = 0;
        for (_, value) in &mut changes {
            level += *value;
            *value = level;
        }
        Self(changes)
    }

    /// The number at an instant, 0 before the first change.
    pub(super) fn at(&self, at: SimTime) -> i64 {
        let passed = self.0.partition_point(|(when, _)| *when <= at);
        passed.checked_sub(1).and_then(|last| self.0.get(last)).map_or(0, |(_, level)| *level)
    }

    /// The numbers between two instants, each with the time for which it holds.
    pub(super) fn pieces(&self, (from, until): (SimTime, Option<SimTime>)) -> Vec<(SimTime, Option<SimTime>, i64)> {
        let mut pieces = Vec::new();
        let mut began = from;
        for (at, _) in self.0.iter().filter(|(at, _)| *at > from && until.is_none_or(|until| *at < until)) {
            if *at > began {
                pieces.push((began, Some(*at), self.at(began)));
                began = *at;
            }
        }
        pieces.push((began, until, self.at(began)));
        pieces
    }

    /// The first change.
    pub(super) fn begins(&self) -> SimTime {
        self.0.first().map_or(SimTime::ZERO, |(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::{Changes, Exposition, Family, Level, STEP_MAX, Spans};
    use crate::domain::{SimDuration, SimTime};

    fn at(seconds: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(seconds)
    }

    fn written(end: i64, write: impl FnOnce(&mut Exposition<'_>)) -> Vec<String> {
        let mut bytes = Vec::new();
        let mut text = Exposition::new(&mut bytes, "a/b", 1_000_000_000, SimDuration::from_secs(60), at(end));
        text.job("j");
        write(&mut text);
        text.finish().unwrap_or_default();
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
    }

    #[test]
    fn samples_are_at_step_multiples_and_end() {
        let lines = written(150, |text| {
            text.family(Family::gauge("x_seconds", "A \"thing\""));
            let _ = text.series(&vec![("l", "a\"b\\c\nd".to_owned()), ("none", String::new())], at(1), |_| Some(1.5));
        });
        let labels = r#"{cluster="a/b",job="j",l="a\"b\\c\nd"}"#;
        let expected = [
            "# TYPE x_seconds gauge".to_owned(),
            "# UNIT x_seconds seconds".to_owned(),
            "# HELP x_seconds A \\\"thing\\\"".to_owned(),
            format!("x_seconds{labels} 1.5 1060"),
            format!("x_seconds{labels} 1.5 1120"),
            format!("x_seconds{labels} 1.5 1150"),
            "# EOF".to_owned(),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn changes_and_heartbeats_are_exported_until_zero() {
        let lines = written(3_600, |text| {
            text.beat(STEP_MAX);
            text.family(Family::gauge("x", "x"));
            let mut spans = Spans::default();
            let level = Level::from_changes(vec![(at(120), 1), (at(0), 1)]);
            spans.follow(&Vec::new(), (at(0), Some(at(601))), &level, |number| number as f64);
            // The next of that name.
            spans.add(Vec::new(), (at(800), Some(at(880))), 3.0);
            // Between two instants nobody sees it.
            spans.add(Vec::new(), (at(910), Some(at(950))), 4.0);
            let _ = text.spans(spans, true);
        });
        let samples: Vec<&str> =
            lines.iter().filter_map(|line| line.strip_prefix("x{cluster=\"a/b\",job=\"j\"} ")).collect();
        assert_eq!(samples, ["1 1000", "2 1120", "2 1360", "2 1600", "0 1601", "3 1840", "0 1880"]);
    }

    #[test]
    fn lifetimes_have_one_sample_per_minute_by_default() {
        let lives = |text: &mut Exposition<'_>| {
            text.family(Family::gauge("x", "x"));
            let mut spans = Spans::default();
            spans.add(vec![("of", "state".to_owned())], (at(30), Some(at(300))), 1.0);
            let _ = text.spans(spans, false);
            let used = |now: SimTime| Some(now.as_secs_f64());
            let _ = text.living(&vec![("of", "use".to_owned())], (at(30), Some(at(300))), used);
        };
        let samples = |lines: &[String]| lines.iter().filter(|line| line.starts_with("x{")).count();
        assert_eq!(samples(&written(600, lives)), 4 + 4);
        let few = written(600, |text| {
            text.beat(STEP_MAX);
            lives(text);
        });
        assert_eq!(samples(&few), 1 + 1);
    }

    #[test]
    fn a_family_without_samples_is_not_mentioned() {
        let lines = written(60, |text| {
            text.family(Family::counter("none", "none"));
            let _ = text.changes(Changes::default(), 1.0);
        });
        assert_eq!(lines, ["# EOF"]);
    }

    #[test]
    fn changes_add_up_whatever_their_order() {
        let mut changes = Changes::default();
        changes.between(Vec::new(), at(5), Some(at(9)), 2);
        changes.between(Vec::new(), at(0), None, 1);
        changes.between(Vec::new(), at(7), Some(at(7)), 100);
        let level = changes.into_levels().next().map(|(_, level)| level).unwrap_or_default();
        assert_eq!([0, 4, 5, 8, 9].map(|second| level.at(at(second))), [1, 1, 3, 3, 1]);
        assert_eq!((Level::default().at(at(3)), level.begins()), (0, at(0)));
    }
}

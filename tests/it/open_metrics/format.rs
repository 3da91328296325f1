//! A strict reader of OpenMetrics 1.0 text: whatever the format forbids is an error with its line.

use std::collections::{BTreeMap, BTreeSet};

type Labels = Vec<(String, String)>;

/// What a text says.
#[derive(Default)]
pub struct Exposition {
    /// Type of each family, by name.
    pub types: BTreeMap<String, String>,
    /// Samples (Unix time and value) of each series, by the name of the sample and its labels.
    pub series: BTreeMap<(String, Labels), Vec<(f64, f64)>>,
}

impl Exposition {
    /// The last value at or before `at`, of every series of `name` whose labels contain `labels`.
    pub fn at(&self, name: &str, labels: &[(&str, &str)], at: f64) -> Vec<f64> {
        let matches = |this_labels: &Labels| {
            labels.iter().all(|(key, value)| this_labels.iter().any(|(k, v)| k == key && v == value))
        };
        let series = self.series.iter().filter(|((key, found), _)| key == name && matches(found));
        series
            .filter_map(|(_, samples)| samples.iter().rev().find(|(when, _)| *when <= at).map(|sample| sample.1))
            .collect()
    }

    /// The sum of these, five minutes back as Prometheus looks.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)], at: f64) -> f64 {
        self.at(name, labels, at).iter().sum()
    }

    /// How many series there are of a sample's name.
    pub fn count(&self, name: &str) -> usize {
        self.series.keys().filter(|(item, _)| item == name).count()
    }
}

/// Suffixes that samples of a type may have.
fn suffixes(kind: &str) -> &'static [&'static str] {
    match kind {
        "counter" => &["_total"],
        "histogram" => &["_bucket", "_count", "_sum"],
        "summary" => &["", "_count", "_sum"],
        _ => &[""],
    }
}

struct Reader {
    found: Exposition,
    family: Option<(String, String)>,
    /// Which of TYPE, UNIT, HELP the present family has had, and whether it has samples.
    seen: (BTreeSet<&'static str>, bool),
    /// Metrics (labels without `le` and `quantile`) of the present family that are complete, and the present one.
    done: BTreeSet<Labels>,
    metric: Option<Labels>,
    /// The time of the present metric's last sample: all samples of one point come before those of the next.
    time: f64,
}

/// Reads a text.
pub fn read(text: &str) -> Result<Exposition, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("the text does not end in `# EOF` and a line feed")?;
    let (seen, done) = ((BTreeSet::new(), false), BTreeSet::new());
    let mut reader =
        Reader { found: Exposition::default(), family: None, seen, done, metric: None, time: f64::NEG_INFINITY };
    for (number, line) in body.lines().enumerate() {
        reader.line(line).map_err(|problem| format!("line {}: {problem}: {line}", number + 1))?;
    }
    if !body.is_empty() && !body.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    reader.found.check_values()?;
    Ok(reader.found)
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let Some(rest) = line.strip_prefix("# ") else { return self.sample(line) };
        let mut words = rest.splitn(3, ' ');
        let (word, name, text) = (words.next(), words.next(), words.next());
        let (Some(word), Some(name), Some(text)) = (word, name, text) else { return Err("not metadata".to_owned()) };
        let word = *["TYPE", "UNIT", "HELP"].iter().find(|text| **text == word).ok_or("unknown metadata")?;
        if self.family.as_ref().is_none_or(|(item, _)| item != name) {
            if word != "TYPE" {
                return Err("the type of a family comes first".to_owned());
            }
            if self.found.types.insert(name.to_owned(), text.to_owned()).is_some() {
                return Err("the family was there before".to_owned());
            }
            self.family = Some((name.to_owned(), text.to_owned()));
            (self.seen, self.metric) = ((BTreeSet::new(), false), None);
            self.done.clear();
        }
        if self.seen.1 || !self.seen.0.insert(word) {
            return Err("metadata stands twice or after samples".to_owned());
        }
        match word {
            "TYPE" if !["gauge", "counter", "summary", "histogram", "unknown"].contains(&text) => {
                Err("unknown type".into())
            }
            "TYPE" if text == "counter" && name.ends_with("_total") => Err("`_total` is no part of the family".into()),
            "UNIT" if !name.ends_with(&format!("_{text}")) => Err("the unit ends no name".into()),
            _ => Ok(()),
        }
    }

    fn sample(&mut self, line: &str) -> Result<(), String> {
        let (name, labels, rest) = parse(line)?;
        let (family, kind) = self.family.as_ref().ok_or("a sample without a family")?;
        let suffix = name.strip_prefix(family.as_str()).ok_or("a sample of another family")?;
        if !suffixes(kind).contains(&suffix) {
            return Err(format!("`{suffix}` does not follow the name of a {kind}"));
        }
        self.seen.1 = true;
        let this_labels: Labels = labels.iter().filter(|(key, _)| key != "le" && key != "quantile").cloned().collect();
        if self.metric.as_ref() != Some(&this_labels) {
            if let Some(before) = self.metric.replace(this_labels.clone()) {
                self.done.insert(before);
            }
            if self.done.contains(&this_labels) {
                return Err("samples of one metric stand apart".to_owned());
            }
            self.time = f64::NEG_INFINITY;
        }
        let mut numbers = rest.split(' ');
        let value: f64 = numbers.next().and_then(|number| number.parse().ok()).ok_or("no value")?;
        let at: f64 = numbers.next().and_then(|number| number.parse().ok()).ok_or("no timestamp")?;
        if numbers.next().is_some() {
            return Err("more after the timestamp".to_owned());
        }
        if at < self.time {
            return Err("points of one metric are interleaved".to_owned());
        }
        self.time = at;
        let series = self.found.series.entry((name.to_owned(), labels)).or_default();
        if series.last().is_some_and(|(before, _)| *before >= at) {
            return Err("time does not go on".to_owned());
        }
        if kind == "counter" && series.last().map_or(value < 0.0, |(_, before)| *before > value) {
            return Err("a counter falls".to_owned());
        }
        series.push((at, value));
        Ok(())
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Name, labels and what follows the space after them.
fn parse(line: &str) -> Result<(&str, Labels, &str), String> {
    let brace = line.find('{').ok_or("no labels")?;
    let (name, mut rest) = (&line[..brace], &line[brace + 1..]);
    let mut labels: Labels = Vec::new();
    while !rest.starts_with('}') {
        let (key, after) = rest.split_once("=\"").ok_or("a label without a value")?;
        let key = if labels.is_empty() { key } else { key.strip_prefix(',').ok_or("labels without a comma")? };
        if !is_name(key) || labels.iter().any(|(this_key, _)| this_key == key) {
            return Err(format!("`{key}` is no label or stands twice"));
        }
        let mut value = String::new();
        let mut chars = after.char_indices();
        loop {
            match chars.next().ok_or("a value without an end")? {
                (at, '"') => {
                    rest = &after[at + 1..];
                    break;
                }
                (_, '\\') => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, c @ ('\\' | '"'))) => value.push(c),
                    _ => return Err("an unknown escape".to_owned()),
                },
                (_, c) => value.push(c),
            }
        }
        labels.push((key.to_owned(), value));
    }
    labels.sort();
    let rest = rest.strip_prefix("} ").ok_or("no space after the labels")?;
    if is_name(name) { Ok((name, labels, rest)) } else { Err("not a name".to_owned()) }
}

impl Exposition {
    /// Buckets grow with their limits, and the last one counts all.
    fn check_values(&self) -> Result<(), String> {
        for family in self.types.iter().filter(|(_, kind)| *kind == "histogram").map(|(name, _)| name) {
            let mut points: BTreeMap<(Labels, u64), Vec<(f64, f64)>> = BTreeMap::new();
            for ((_, labels), samples) in
                self.series.iter().filter(|((name, _), _)| *name == format!("{family}_bucket"))
            {
                let limit = labels.iter().find(|(key, _)| key == "le").ok_or("a bucket without a limit")?;
                let limit: f64 = limit.1.parse().map_err(|_| "a limit that is no number")?;
                let others: Labels = labels.iter().filter(|(key, _)| key != "le").cloned().collect();
                for (at, value) in samples {
                    points.entry((others.clone(), at.to_bits())).or_default().push((limit, *value));
                }
            }
            for ((labels, at), mut buckets) in points {
                buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
                let grows = buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1);
                let all = self
                    .series
                    .get(&(format!("{family}_count"), labels))
                    .and_then(|samples| samples.iter().find(|(when, _)| when.to_bits() == at).map(|(_, value)| *value));
                if !grows || buckets.last().is_none_or(|(limit, value)| *limit != f64::INFINITY || Some(*value) != all)
                {
                    return Err(format!("buckets of {family} do not add up"));
                }
            }
        }
        Ok(())
    }
}

//! The settings of a sweep: axes of values, and the points on them.

use rustc_hash::FxHashSet;

use crate::engine::{Stream, Streams};

/// One setting: paths with values.
pub type Setting = Vec<(String, String)>;

/// Most settings of one sweep.
const SETTINGS_MAX: usize = 100_000;

/// A path and the values to try for it.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The path of a value in the scenario or a manifest.
    pub path: String,
    /// The values.
    pub values: Values,
}

/// Values to try.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    /// These, as YAML.
    List(Vec<String>),
    /// From `low` to `high`.
    Range(Range),
}

/// A range of numbers with a common suffix: `1..8`, `10%..50%:10%`, `30s..300s:30s`.
#[derive(Clone, PartialEq, Debug)]
pub struct Range {
    low: f64,
    high: f64,
    /// The distance of values on a grid, and of what values drawn at random are rounded to.
    step: Option<f64>,
    /// What follows the number: `s`, `%`, `Gi`, or nothing.
    suffix: String,
}

/// Why an axis or a sample cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, miette::Diagnostic)]
pub enum AxisError {
    /// No `=`, no path or no value.
    #[error("`{0}` is not PATH=VALUES")]
    #[diagnostic(help(
        "write for example `NodePool[default].spec.disruption.consolidateAfter=30s,1m,5m` or `replicas=2..10:2`"
    ))]
    Malformed(String),
    /// A range that goes nowhere.
    #[error("the range `{0}` has no values")]
    #[diagnostic(help("the second number is the larger one, and the step is above zero: `2..10:2`"))]
    Empty(String),
    /// A range without a step on a grid.
    #[error("the range of `{0}` has no step")]
    #[diagnostic(help("add one, as in `0.1..0.9:0.2`, or draw from it with --sample"))]
    NoStep(String),
    /// The same path twice.
    #[error("`{0}` is set twice")]
    #[diagnostic(help("give all its values in one --set"))]
    Twice(String),
    /// More settings than are sensible.
    #[error("these axes have {0} settings")]
    #[diagnostic(help("at most 100000 are tried: take fewer values, or draw some with --sample"))]
    TooMany(String),
}

/// Sampling method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sampling {
    /// Draw each value independently.
    Random,
    /// Divide each axis into N equal parts and use each part once.
    LatinHypercube,
}

impl Axis {
    /// Reads `PATH=VALUES`: values separated by commas, or a range.
    ///
    /// # Errors
    /// If it has not that form.
    pub fn parse(text: &str) -> Result<Self, AxisError> {
        let malformed = || AxisError::Malformed(text.chars().take(80).collect());
        let equals = find_outside(text, '=').ok_or_else(malformed)?;
        let (path, values) = (text[..equals].trim(), text[equals + 1..].trim());
        if path.is_empty() || values.is_empty() {
            return Err(malformed());
        }
        let list = || {
            let mut values = Vec::new();
            let mut rest = values_of(&mut values, text[equals + 1..].trim());
            while let Some(more) = rest {
                rest = values_of(&mut values, more);
            }
            values
        };
        let values = match Range::parse(values)? {
            Some(range) => Values::Range(range),
            None => Values::List(list()),
        };
        if let Values::List(list) = &values
            && list.iter().any(String::is_empty)
        {
            return Err(malformed());
        }
        Ok(Self { path: path.to_owned(), values })
    }

    /// All values in order.
    fn grid(&self) -> Result<Vec<String>, AxisError> {
        match &self.values {
            // A value that stands twice is tried once.
            Values::List(values) => {
                let mut seen = FxHashSet::default();
                Ok(values.iter().filter(|value| seen.insert(value.as_str())).cloned().collect())
            }
            Values::Range(range) => range.grid(&self.path),
        }
    }

    /// The value at `position` of the way, 0 to below 1.
    fn at(&self, position: f64) -> String {
        match &self.values {
            Values::List(values) => {
                let index = libm::floor(position * values.len() as f64) as usize;
                values[index.min(values.len() - 1)].clone()
            }
            Values::Range(range) => range.at(position),
        }
    }
}

/// Takes the first of values separated by commas; returns what follows its comma.
fn values_of<'t>(values: &mut Vec<String>, text: &'t str) -> Option<&'t str> {
    match find_outside(text, ',') {
        Some(comma) => {
            values.push(text[..comma].trim().to_owned());
            Some(&text[comma + 1..])
        }
        None => {
            values.push(text.trim().to_owned());
            None
        }
    }
}

/// The first `wanted` outside brackets and quotes.
fn find_outside(text: &str, wanted: char) -> Option<usize> {
    let mut depth = 0_u32;
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, _) if character == wanted && depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

impl Range {
    fn parse(text: &str) -> Result<Option<Self>, AxisError> {
        let Some((low, rest)) = text.split_once("..") else { return Ok(None) };
        let (high, step) = rest.split_once(':').map_or((rest, None), |(high, step)| (high, Some(step)));
        let (Some((low, low_suffix)), Some((high, suffix))) = (number(low), number(high)) else { return Ok(None) };
        let step = step.map(number);
        let alike = low_suffix.is_empty() || low_suffix == suffix;
        let step = match step {
            None => None,
            Some(Some((step, item))) if item == suffix || item.is_empty() => Some(step),
            Some(_) => return Ok(None),
        };
        if !alike {
            return Ok(None);
        }
        if high < low || step.is_some_and(|step| step <= 0.0) {
            return Err(AxisError::Empty(text.to_owned()));
        }
        let whole = |value: f64| (value - libm::round(value)).abs() < 1e-9;
        let step = step.or_else(|| (whole(low) && whole(high)).then_some(1.0));
        Ok(Some(Self { low, high, step, suffix: suffix.to_owned() }))
    }

    fn grid(&self, path: &str) -> Result<Vec<String>, AxisError> {
        let step = self.step.ok_or_else(|| AxisError::NoStep(path.to_owned()))?;
        let count = libm::floor((self.high - self.low) / step + 1e-9);
        if count >= SETTINGS_MAX as f64 {
            return Err(AxisError::TooMany(format!("{count:.0}")));
        }
        Ok((0..=count as u32).map(|index| self.say(self.low + f64::from(index) * step)).collect())
    }

    fn at(&self, position: f64) -> String {
        match self.step {
            Some(step) => {
                let count = libm::floor((self.high - self.low) / step + 1e-9) + 1.0;
                self.say(self.low + libm::floor(position * count).min(count - 1.0) * step)
            }
            None => self.say(self.low + (self.high - self.low) * position),
        }
    }

    /// A value to nine digits after the point, which is finer than any quantity here.
    fn say(&self, value: f64) -> String {
        let text = format!("{value:.9}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        format!("{text}{}", self.suffix)
    }
}

/// A number and what follows it.
fn number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
    let value: f64 = text[..end].parse().ok()?;
    let suffix = &text[end..];
    suffix.chars().all(|c| c.is_ascii_alphabetic() || c == '%').then_some((value, suffix))
}

fn check_paths(axes: &[Axis]) -> Result<(), AxisError> {
    for (position, axis) in axes.iter().enumerate() {
        if axes[..position].iter().any(|other| other.path == axis.path) {
            return Err(AxisError::Twice(axis.path.clone()));
        }
    }
    Ok(())
}

/// Every combination of values, the last axis changing fastest.
///
/// # Errors
/// If there are too many, a path occurs twice, or a range has no step.
pub fn grid(axes: &[Axis]) -> Result<Vec<Setting>, AxisError> {
    check_paths(axes)?;
    let values = axes.iter().map(Axis::grid).collect::<Result<Vec<_>, _>>()?;
    let count = values.iter().try_fold(1_usize, |count, values| count.checked_mul(values.len()));
    if count.is_none_or(|count| count > SETTINGS_MAX) {
        return Err(AxisError::TooMany(count.map_or_else(|| "too many".to_owned(), |count| count.to_string())));
    }
    let mut settings: Vec<Setting> = vec![Vec::new()];
    for (axis, values) in axes.iter().zip(&values) {
        settings = settings
            .iter()
            .flat_map(|setting| {
                values.iter().map(|value| {
                    let mut longer = setting.clone();
                    longer.push((axis.path.clone(), value.clone()));
                    longer
                })
            })
            .collect();
    }
    Ok(settings)
}

/// `count` settings drawn with `seed`; equal ones are kept once.
///
/// # Errors
/// If a path occurs twice, or `count` is beyond the limit.
pub fn sample(axes: &[Axis], count: usize, sampling: Sampling, seed: u64) -> Result<Vec<Setting>, AxisError> {
    check_paths(axes)?;
    if count > SETTINGS_MAX {
        return Err(AxisError::TooMany(count.to_string()));
    }
    let streams = Streams::new(seed);
    let columns: Vec<Vec<f64>> = axes
        .iter()
        .map(|axis| {
            let mut stream = streams.stream("sweep", &axis.path);
            match sampling {
                Sampling::Random => (0..count).map(|_| stream.uniform()).collect(),
                Sampling::LatinHypercube => latin(count, &mut stream),
            }
        })
        .collect();
    let setting = |row: usize| -> Setting {
        axes.iter().zip(&columns).map(|(axis, column)| (axis.path.clone(), axis.at(column[row]))).collect()
    };
    let mut seen: FxHashSet<Setting> = FxHashSet::default();
    Ok((0..count).map(setting).filter(|setting| seen.insert(setting.clone())).collect())
}

/// One position in each of `count` equal parts, in random order.
fn latin(count: usize, stream: &mut Stream) -> Vec<f64> {
    let mut positions: Vec<f64> = (0..count).map(|part| (part as f64 + stream.uniform()) / count as f64).collect();
    for last in (1..count).rev() {
        let other = libm::floor(stream.uniform() * (last + 1) as f64) as usize;
        positions.swap(last, other.min(last));
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::{Axis, AxisError, Sampling, grid, sample};

    fn axes(texts: &[&str]) -> Vec<Axis> {
        texts.iter().map(|text| Axis::parse(text).unwrap()).collect()
    }

    fn values(text: &str) -> Vec<String> {
        grid(&axes(&[text])).unwrap().into_iter().map(|setting| setting[0].1.clone()).collect()
    }

    #[test]
    fn a_value_that_stands_twice_is_tried_once() {
        let axis = Axis::parse("replicas=2,2,4,2").unwrap();
        let tried: Vec<String> = grid(&[axis]).unwrap().into_iter().map(|item| item[0].1.clone()).collect();
        assert_eq!(tried, ["2", "4"]);
    }

    #[test]
    fn values_are_lists_or_ranges() {
        assert_eq!(values("a=30s,1m, 5m"), ["30s", "1m", "5m"]);
        assert_eq!(values("a=[x, y],[z]"), ["[x, y]", "[z]"]);
        assert_eq!(values("a=2..8:3"), ["2", "5", "8"]);
        assert_eq!(values("a=1..3"), ["1", "2", "3"]);
        assert_eq!(values("a=10%..30%:10%"), ["10%", "20%", "30%"]);
        assert_eq!(values("a=0.1..0.3:0.1"), ["0.1", "0.2", "0.3"]);
        assert_eq!(values("l[k=v]=x"), ["x"]);
        assert_eq!(values("a=\"b,c\""), ["\"b,c\""]);
    }

    #[test]
    fn a_grid_has_every_combination_in_order() {
        let settings = grid(&axes(&["a=1,2", "b=x,y"])).unwrap();
        let flat: Vec<String> = settings.iter().map(|s| format!("{}{}", s[0].1, s[1].1)).collect();
        assert_eq!(flat, ["1x", "1y", "2x", "2y"]);
    }

    #[test]
    fn what_cannot_be_an_axis_is_refused() {
        for text in ["a", "=1", "a=", "a=1,,2"] {
            assert!(Axis::parse(text).is_err(), "{text}");
        }
        assert_eq!(Axis::parse("a=5..1").unwrap_err(), AxisError::Empty("5..1".into()));
        assert!(grid(&axes(&["a=0.5..1.5"])).is_err());
        assert!(grid(&axes(&["a=1", "a=2"])).is_err());
        assert!(grid(&axes(&["a=1..1000", "b=1..1000"])).is_err());
    }

    #[test]
    fn latin_hypercube_uses_each_level_once() {
        let settings = sample(&axes(&["a=0..9", "b=0..9"]), 10, Sampling::LatinHypercube, 3).unwrap();
        for axis in 0..2 {
            let mut seen: Vec<&str> = settings.iter().map(|setting| setting[axis].1.as_str()).collect();
            seen.sort_unstable();
            assert_eq!(seen, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
        }
        assert_eq!(settings, sample(&axes(&["a=0..9", "b=0..9"]), 10, Sampling::LatinHypercube, 3).unwrap());
    }
}

//! How an answer is read: straight from its text into samples, without a tree of its JSON and without a text for each value, since an answer
//! may have millions of them.
//!
//! What must not live here: what an answer that cannot be read is told to be ([`super::Answer::read`] looks at it once more for that).

use std::fmt;

use nodecast_model::text::InputError;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Sample, Series, without_doubles};

/// What has been read of an answer.
#[derive(Debug, Default)]
pub(super) struct Reading<'f> {
    /// The name of the file, for messages.
    pub(super) file: &'f str,
    pub(super) status: Option<String>,
    pub(super) error_type: Option<String>,
    pub(super) error: Option<String>,
    pub(super) warnings: Vec<String>,
    pub(super) infos: Vec<String>,
    /// Whether the server says that a part of its storage did not answer.
    pub(super) is_partial: bool,
    /// `resultType`, once there is one.
    pub(super) kind: Option<String>,
    /// Series in the order of the text, each with its samples in order of time.
    pub(super) series: Vec<Series>,
    /// The pair that a scalar is, in place of series.
    pub(super) scalar: Option<Sample>,
    /// Samples that stood in another order, samples that were there twice, series with native histograms.
    pub(super) repairs: [u64; 3],
    /// What is wrong with a sample, where JSON has nothing against it.
    pub(super) failure: Option<InputError>,
}

impl<'f> Reading<'f> {
    pub(super) fn from_file(file: &'f str) -> Self {
        Self { file, ..Self::default() }
    }

    /// Keeps what is wrong, and ends the reading.
    fn fail<E: Error>(&mut self, why: InputError) -> E {
        self.failure = Some(why);
        E::custom("a sample")
    }

    fn sample<E: Error>(&mut self, seconds: f64, value: &str) -> Result<Sample, E> {
        let Ok(value) = value.parse() else {
            let file = self.file;
            return Err(
                self.fail(InputError::new(format!("{file}: the sample `{value}` at {seconds} is not a number")))
            );
        };
        // A Unix time has room for microseconds in the 53 bits of a float.
        Ok(Sample { at: libm::round(seconds * 1e6) as i64, value })
    }

    /// Takes a series that has been read: its samples in order, each once.
    fn take<E: Error>(&mut self, mut series: Series) -> Result<(), E> {
        let out_of_order = series.samples.windows(2).filter(|pair| pair[1].at < pair[0].at).count() as u64;
        if out_of_order > 0 {
            series.samples.sort_by_key(|sample| sample.at);
        }
        let twice =
            without_doubles(&mut series.samples, &series.labels, self.file).map_err(|why| self.fail::<E>(why))?;
        series.samples.shrink_to_fit();
        self.repairs[0] += out_of_order;
        self.repairs[1] += twice;
        self.series.push(series);
        Ok(())
    }
}

/// Reads the whole.
impl<'d> DeserializeSeed<'d> for &mut Reading<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'d>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    Status,
    ErrorType,
    Error,
    Data,
    Warnings,
    Infos,
    /// VictoriaMetrics says so where a part of its storage did not answer.
    IsPartial,
    #[serde(other)]
    Other,
}

impl<'d> Visitor<'d> for &mut Reading<'_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an answer")
    }

    fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key()? {
            match key {
                Key::Status => self.status = map.next_value()?,
                Key::ErrorType => self.error_type = map.next_value()?,
                Key::Error => self.error = map.next_value()?,
                Key::Warnings => self.warnings = map.next_value()?,
                Key::Infos => self.infos = map.next_value()?,
                Key::IsPartial => self.is_partial = map.next_value()?,
                Key::Data if self.kind.is_some() => return Err(A::Error::duplicate_field("data")),
                Key::Data => map.next_value_seed(Data(self))?,
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// `data`: what kind of result, and the result, in any order.
struct Data<'r, 'f>(&'r mut Reading<'f>);

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum DataKey {
    ResultType,
    Result,
    #[serde(other)]
    Other,
}

impl<'d> DeserializeSeed<'d> for Data<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'d>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'d> Visitor<'d> for Data<'_, '_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("data")
    }

    /// A server that refuses says `null`, if anything.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<(), A::Error> {
        let mut results = 0_u32;
        while let Some(key) = map.next_key()? {
            match key {
                DataKey::ResultType => self.0.kind = Some(map.next_value()?),
                DataKey::Result => {
                    results += 1;
                    let is_of_numbers = self.0.kind.as_deref().is_none_or(is_of_numbers);
                    if is_of_numbers && results == 1 {
                        map.next_value_seed(Results(self.0))?;
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                DataKey::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if results != 1 {
            return Err(A::Error::custom("not one result"));
        }
        self.0.kind.as_ref().map(|_| ()).ok_or_else(|| A::Error::missing_field("resultType"))
    }
}

/// Whether results of a kind are series of numbers, or one.
pub(super) fn is_of_numbers(kind: &str) -> bool {
    matches!(kind, "matrix" | "vector" | "scalar")
}

/// `result`: series, or the pair of a scalar.
struct Results<'r, 'f>(&'r mut Reading<'f>);

impl<'d> DeserializeSeed<'d> for Results<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'d>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'d> Visitor<'d> for Results<'_, '_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("series, or an instant and a value")
    }

    fn visit_seq<A: SeqAccess<'d>>(self, mut all: A) -> Result<(), A::Error> {
        let mut usual = 0;
        match all.next_element_seed(First(self.0, &mut usual))? {
            None | Some(Element::Series) => {
                while let Some(()) = all.next_element_seed(OneSeries(self.0, &mut usual))? {}
            }
            Some(Element::Instant(seconds)) => {
                let value = all.next_element_seed(Value(self.0, seconds))?;
                self.0.scalar = Some(value.ok_or_else(|| A::Error::invalid_length(1, &"a pair"))?);
            }
        }
        Ok(())
    }
}

/// What a result begins with.
enum Element {
    Series,
    Instant(f64),
}

struct First<'r, 'f, 'u>(&'r mut Reading<'f>, &'u mut usize);

impl<'d> DeserializeSeed<'d> for First<'_, '_, '_> {
    type Value = Element;

    fn deserialize<D: Deserializer<'d>>(self, deserializer: D) -> Result<Element, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'d> Visitor<'d> for First<'_, '_, '_> {
    type Value = Element;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a series, or an instant")
    }

    fn visit_map<A: MapAccess<'d>>(self, map: A) -> Result<Element, A::Error> {
        OneSeries(self.0, self.1).visit_map(map).map(|()| Element::Series)
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<Element, E> {
        Ok(Element::Instant(seconds))
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<Element, E> {
        Ok(Element::Instant(seconds as f64))
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<Element, E> {
        Ok(Element::Instant(seconds as f64))
    }
}

/// A series; how many samples the one before had, so that there is room for as many.
struct OneSeries<'r, 'f, 'u>(&'r mut Reading<'f>, &'u mut usize);

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum SeriesKey {
    Metric,
    Values,
    Value,
    Histograms,
    #[serde(other)]
    Other,
}

impl<'d> DeserializeSeed<'d> for OneSeries<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'d>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'d> Visitor<'d> for OneSeries<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a series")
    }

    fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(reading, usual) = self;
        let mut series = Series::default();
        let mut alone = None;
        let mut has_histograms = false;
        while let Some(key) = map.next_key()? {
            match key {
                SeriesKey::Metric => series.labels = map.next_value()?,
                SeriesKey::Values => series.samples = map.next_value_seed(Samples(reading, *usual))?,
                SeriesKey::Value => alone = map.next_value_seed(Pair(reading))?,
                SeriesKey::Histograms => has_histograms = !map.next_value::<Vec<IgnoredAny>>()?.is_empty(),
                SeriesKey::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        series.samples.extend(alone);
        *usual = series.samples.len();
        reading.repairs[2] += u64::from(has_histograms);
        reading.take(series)
    }
}

/// `values`, with room for so many.
struct Samples<'r, 'f>(&'r mut Reading<'f>, usize);

impl<'d> DeserializeSeed<'d> for Samples<'_, '_> {
    type Value = Vec<Sample>;

    fn deserialize<D: Deserializer<'d>>(self, deserializer: D) -> Result<Vec<Sample>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'d> Visitor<'d> for Samples<'_, '_> {
    type Value = Vec<Sample>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("samples")
    }

    fn visit_seq<A: SeqAccess<'d>>(self, mut all: A) -> Result<Vec<Sample>, A::Error> {
        let mut samples = Vec::with_capacity(self.1);
        while let Some(sample) = all.next_element_seed(Pair(self.0))? {
            samples.push(sample.ok_or_else(|| A::Error::custom("a sample is missing"))?);
        }
        Ok(samples)
    }
}

/// An instant and a value; `None` for `null`.
struct Pair<'r, 'f>(&'r mut Reading<'f>);

impl<'d> DeserializeSeed<'d> for Pair<'_, '_> {
    type Value = Option<Sample>;

    fn deserialize<D: Deserializer<'d>>(self, deserializer: D) -> Result<Option<Sample>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'d> Visitor<'d> for Pair<'_, '_> {
    type Value = Option<Sample>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an instant and a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Option<Sample>, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'d>>(self, mut pair: A) -> Result<Option<Sample>, A::Error> {
        let seconds = pair.next_element::<f64>()?.ok_or_else(|| A::Error::invalid_length(0, &"a pair"))?;
        let value = pair.next_element_seed(Value(self.0, seconds))?;
        value.map(Some).ok_or_else(|| A::Error::invalid_length(1, &"a pair"))
    }
}

/// The value of the sample at so many seconds, which is a text.
struct Value<'r, 'f>(&'r mut Reading<'f>, f64);

impl<'d> DeserializeSeed<'d> for Value<'_, '_> {
    type Value = Sample;

    fn deserialize<D: Deserializer<'d>>(self, deserializer: D) -> Result<Sample, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'d> Visitor<'d> for Value<'_, '_> {
    type Value = Sample;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a number in a text")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Sample, E> {
        self.0.sample(self.1, value)
    }
}

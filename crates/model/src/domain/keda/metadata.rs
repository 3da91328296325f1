//! The metadata of a trigger: reading by key, with the mistakes that KEDA finds.
//!
//! Must not: know one scaler from another (`scalers`).

use std::str::FromStr;

use super::scalers::{Origin, Scaler, activation_key, whole};
use super::triggers::{QueueTrigger, Reads, TriggerMetricType, TriggerProblem, TriggerSource};
use crate::domain::labels::Labels;
use crate::domain::quantity::Quantity;
use crate::domain::symbol::Symbol;

/// The metadata of a trigger, with reading by key.
pub(super) struct Metadata<'a> {
    pub(super) kind: &'a str,
    given: &'a Labels,
    pub(super) metric_type: Option<TriggerMetricType>,
    pub(super) scaler: &'static Scaler,
}

impl<'a> Metadata<'a> {
    pub(super) fn new(kind: &'a str, given: &'a Labels, metric_type: Option<TriggerMetricType>) -> Self {
        Self { kind, given, metric_type, scaler: Scaler::find(kind).unwrap_or(Scaler::UNKNOWN) }
    }

    /// A source with what every trigger has.
    pub(super) fn source(&self, metric: &str, target: Quantity, activation: f64, reads: Reads) -> TriggerSource {
        let (kind, metric) = (Symbol::new(self.kind), metric.to_owned());
        TriggerSource { kind, metric, target: Some(target), activation, reads }
    }

    /// What its scaler makes of it.
    pub(super) fn to_source(&self) -> Result<TriggerSource, TriggerProblem> {
        (self.scaler.read)(self)
    }

    /// The scaler's target as a whole number, and the activation value of it.
    pub(super) fn whole_target(&self) -> Result<(i64, i64), TriggerProblem> {
        let (keys, default) = self.scaler.target;
        let key = keys.first().copied().unwrap_or_default();
        Ok((self.integer(key, default.unwrap_or_default())?, self.integer(activation_key(key), 0)?))
    }

    /// A queue of the kind that the scaler names, with whether messages in flight and delayed ones count.
    pub(super) fn queue(&self, metric: &str, name: &str, target: (i64, i64), counted: (bool, bool)) -> TriggerSource {
        let system = if let Origin::Queues(system) = self.scaler.value { system } else { "" };
        let (in_flight, delayed) = counted;
        let reads = Reads::Queue(QueueTrigger { system, name: name.to_owned(), in_flight, delayed });
        self.source(&format!("{metric}-{name}"), whole(target.0), target.1 as f64, reads)
    }

    pub(super) fn text(&self, key: &str) -> Option<&'static str> {
        let found = self.given.iter().find(|(this_key, _)| this_key.as_str() == key);
        found.map(|(_, value)| value.as_str()).filter(|text| !text.is_empty())
    }

    pub(super) fn required(&self, key: &'static str) -> Result<&'static str, TriggerProblem> {
        self.text(key).ok_or(TriggerProblem::Missing(key))
    }

    pub(super) fn read<T: FromStr>(
        &self,
        key: &'static str,
        default: T,
        expected: &'static str,
    ) -> Result<T, TriggerProblem> {
        let Some(text) = self.text(key) else { return Ok(default) };
        text.trim().parse().map_err(|_| TriggerProblem::Malformed { key, given: text.to_owned(), expected })
    }

    pub(super) fn integer(&self, key: &'static str, default: i64) -> Result<i64, TriggerProblem> {
        self.read(key, default, "a whole number")
    }

    pub(super) fn number(&self, key: &'static str, default: i64) -> Result<Quantity, TriggerProblem> {
        self.read(key, whole(default), "a number")
    }

    /// A number that must be above zero.
    pub(super) fn above_zero(&self, key: &'static str) -> Result<Quantity, TriggerProblem> {
        let number = self.number(key, 0)?;
        if number.nanos() > 0 {
            return Ok(number);
        }
        let given = self.text(key).unwrap_or_default().to_owned();
        Err(TriggerProblem::Malformed { key, given, expected: "above zero" })
    }

    pub(super) fn flag(&self, key: &'static str, default: bool) -> Result<bool, TriggerProblem> {
        // The texts that Go's `strconv.ParseBool` takes.
        match self.text(key) {
            None => Ok(default),
            Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(true),
            Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
            Some(other) => Err(TriggerProblem::Malformed { key, given: other.to_owned(), expected: "true or false" }),
        }
    }

    /// One of several words; the first is the default.
    pub(super) fn word<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&str, T)],
        default: T,
        expected: &'static str,
    ) -> Result<T, TriggerProblem> {
        let Some(text) = self.text(key) else { return Ok(default) };
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.ok_or_else(|| TriggerProblem::Malformed { key, given: text.to_owned(), expected })
    }
}

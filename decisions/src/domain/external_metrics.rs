//! Values that a scenario states in place of a model: a scaler of the user's own, a metric from outside, what pods use.

use super::resources::ResourceName;
use super::symbol::Symbol;
use super::time::SimTime;
use super::workload::ObjectName;

/// A value over time.
#[derive(Clone, PartialEq, Debug)]
pub struct ExternalMetric {
    /// Who serves it.
    pub subject: ExternalSubject,
    /// A trigger that reads it is active above this.
    pub active_above: f64,
    /// From when on it is what, in order of time.
    pub values: Vec<ExternalValue>,
}

/// Who serves a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ExternalSubject {
    /// A scaler behind a KEDA trigger of the type `external` or `external-push`.
    Scaler {
        /// `scalerAddress`.
        address: String,
        /// The trigger's name, where one scaler serves several.
        trigger: Option<Symbol>,
    },
    /// Whatever a trigger of a ScaledObject or a ScaledJob reads.
    Trigger {
        /// The object.
        object: ObjectName,
        /// The trigger's name, or `s0`, `s1` … by its place; `None` for all that nothing else serves.
        trigger: Option<Symbol>,
    },
    /// A metric that a HorizontalPodAutoscaler reads as External or Object, by its name.
    Metric(Symbol),
    /// metrics-server, for the pods of a workload: each uses so many percent of what it requests.
    Resource {
        /// The workload.
        workload: ObjectName,
        /// CPU or memory.
        resource: ResourceName,
    },
}

/// From an instant on, a value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExternalValue {
    /// From when on.
    pub at: SimTime,
    /// The value; `None` while reading it fails.
    pub value: Option<f64>,
}

impl ExternalMetric {
    /// The value at `now`; `None` while reading it fails, and before the first one.
    pub fn at(&self, now: SimTime) -> Option<f64> {
        let begun = self.values.partition_point(|value| value.at <= now);
        self.values.get(begun.checked_sub(1)?)?.value
    }
}

#[cfg(test)]
mod tests {
    use super::{ExternalMetric, ExternalSubject, ExternalValue};
    use crate::domain::{SimDuration, SimTime, Symbol};

    #[test]
    fn a_value_holds_from_its_instant_until_the_next() {
        let at = |secs| SimTime::ZERO + SimDuration::from_secs(secs);
        let values = vec![
            ExternalValue { at: at(10), value: Some(3.0) },
            ExternalValue { at: at(20), value: None },
            ExternalValue { at: at(30), value: Some(5.0) },
        ];
        let metric = ExternalMetric { subject: ExternalSubject::Metric(Symbol::new("m")), active_above: 0.0, values };
        let read: Vec<Option<f64>> = [9, 10, 19, 20, 30, 99].map(|secs| metric.at(at(secs))).to_vec();
        assert_eq!(read, [None, Some(3.0), Some(3.0), None, Some(5.0), Some(5.0)]);
    }
}

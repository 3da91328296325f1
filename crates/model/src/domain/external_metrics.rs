//! Values that a scenario states in place of a model: a scaler of the user's own, a metric from outside, what pods use.

use super::hpa::MetricSource;
use super::labels::LabelSelector;
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
    /// A metric that a HorizontalPodAutoscaler reads as External or Object.
    Metric {
        /// Its name.
        name: Symbol,
        /// The selector by which autoscalers ask for it; `None` for whatever nothing else serves.
        selector: Option<LabelSelector>,
        /// The object that it tells of, whatever its kind; `None` for whatever nothing else serves.
        object: Option<ObjectName>,
    },
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

/// What is stated of an External or Object metric that an autoscaler of `namespace` reads: of what is stated under its name what is for its
/// selector and its object, else what is for either, else what is for neither.
///
/// Source: Kubernetes 1.36 `pkg/controller/podautoscaler/metrics/client.go`, `GetExternalMetric` and `GetObjectMetric`, which ask by name,
/// selector and object.
pub fn stated_for<'m>(
    all: &'m [ExternalMetric],
    namespace: Symbol,
    source: &MetricSource,
) -> Option<&'m ExternalMetric> {
    let (metric, selected, described) = match source {
        MetricSource::External { metric, selector } => (*metric, selector, None),
        MetricSource::Object { metric, selector, object } => {
            (*metric, selector, Some(ObjectName { namespace, name: object.name }))
        }
        MetricSource::Resource { .. } | MetricSource::ContainerResource { .. } | MetricSource::Pods { .. } => {
            return None;
        }
    };
    let everything = LabelSelector::default();
    let selected = selected.as_ref().unwrap_or(&everything);
    let serves = |stated: &ExternalMetric| match &stated.subject {
        ExternalSubject::Metric { name, selector, object } => {
            *name == metric
                && selector.as_ref().is_none_or(|selector| selector.says_the_same(selected))
                && object.is_none_or(|object| described == Some(object))
        }
        _ => false,
    };
    all.iter().filter(|stated| serves(stated)).min_by_key(|stated| std::cmp::Reverse(stated.narrowness()))
}

impl ExternalMetric {
    /// In how many ways it says which of the metrics of one name it is.
    fn narrowness(&self) -> u8 {
        match &self.subject {
            ExternalSubject::Metric { selector, object, .. } => {
                u8::from(selector.is_some()) + u8::from(object.is_some())
            }
            ExternalSubject::Scaler { .. } | ExternalSubject::Trigger { .. } | ExternalSubject::Resource { .. } => 0,
        }
    }

    /// The value at `now`; `None` while reading it fails, and before the first one.
    pub fn at(&self, now: SimTime) -> Option<f64> {
        let begun = self.values.partition_point(|value| value.at <= now);
        self.values.get(begun.checked_sub(1)?)?.value
    }
}

#[cfg(test)]
mod tests {
    use super::{ExternalMetric, ExternalSubject, ExternalValue, stated_for};
    use crate::domain::hpa::{MetricSource, ScaleTargetRef};
    use crate::domain::selector_text::parse_selector;
    use crate::domain::workload::ObjectName;
    use crate::domain::{SimDuration, SimTime, Symbol};

    #[test]
    fn external_metric_value_holds_until_next() {
        let at = |secs| SimTime::ZERO + SimDuration::from_secs(secs);
        let values = vec![
            ExternalValue { at: at(10), value: Some(3.0) },
            ExternalValue { at: at(20), value: None },
            ExternalValue { at: at(30), value: Some(5.0) },
        ];
        let subject = ExternalSubject::Metric { name: Symbol::new("m"), selector: None, object: None };
        let metric = ExternalMetric { subject, active_above: 0.0, values };
        let read: Vec<Option<f64>> = [9, 10, 19, 20, 30, 99].map(|secs| metric.at(at(secs))).to_vec();
        assert_eq!(read, [None, Some(3.0), Some(3.0), None, Some(5.0), Some(5.0)]);
    }

    #[test]
    fn selector_or_object_value_overrides_metric_name() {
        let stated = |selector: Option<&str>, object: Option<&str>, value: f64| {
            let name = |name: &str| ObjectName { namespace: Symbol::new("shop"), name: Symbol::new(name) };
            let selector = selector.map(|text| parse_selector(text).unwrap());
            let subject = ExternalSubject::Metric { name: Symbol::new("m"), selector, object: object.map(name) };
            ExternalMetric {
                subject,
                active_above: 0.0,
                values: vec![ExternalValue { at: SimTime::ZERO, value: Some(value) }],
            }
        };
        let all = [
            stated(None, None, 1.0),
            stated(Some("q=a"), None, 2.0),
            stated(None, Some("web"), 3.0),
            stated(Some("q=a"), Some("web"), 4.0),
        ];
        let read = |namespace: &str, selector: Option<&str>, object: Option<&str>| {
            let selector = selector.map(|text| parse_selector(text).unwrap());
            let metric = Symbol::new("m");
            let kind = Symbol::new("Service");
            let source = match object {
                Some(name) => {
                    let object = ScaleTargetRef { kind, name: Symbol::new(name) };
                    MetricSource::Object { metric, selector, object }
                }
                None => MetricSource::External { metric, selector },
            };
            stated_for(&all, Symbol::new(namespace), &source).and_then(|item| item.at(SimTime::ZERO))
        };
        assert_eq!(read("shop", None, None), Some(1.0));
        assert_eq!(read("shop", Some("q=a"), None), Some(2.0));
        assert_eq!(read("shop", Some("q=b"), None), Some(1.0));
        assert_eq!(read("shop", None, Some("web")), Some(3.0));
        assert_eq!(read("shop", Some("q=a"), Some("web")), Some(4.0));
        assert_eq!(read("shop", Some("q=a"), Some("other")), Some(2.0));
        assert_eq!(read("other", None, Some("web")), Some(1.0), "of another namespace");
    }
}
